"""Quotient graphs, modularities and communities, against NetworkX and the checkers."""

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of, random_edges
from networkx.algorithms import community
from strategies import for_all

from lagpu import BOOL, FP64, INT64, Matrix, Vector
from lagpu.algorithms import communities, contraction, label_propagation, louvain, modularity
from lagpu.check import (
    check_communities,
    check_contraction,
    check_label_propagation,
    check_modularity,
)
from lagpu.errors import CheckFailed, DimensionMismatch, DomainMismatch, InvalidValue


def sets_of(labels):
    found = {}
    for v, label in entries(labels).items():
        found.setdefault(label, set()).add(v)
    return sorted(map(sorted, found.values()))


def labelled(A, values):
    return Vector.from_dense(np.array(values, np.int64), like=A)


def prove_quotient(A, labels):
    """Of an undirected graph: NetworkX adds both directions of a directed one."""
    quotient, names = contraction(A, labels)
    check_contraction(A, labels, quotient, names)
    G, name = networkx_of(A, directed=False), dict(enumerate(names.to_dense().tolist()))
    theirs = nx.quotient_graph(G, [{*some} for some in sets_of(labels)], relabel=True)
    rows, cols, values = (x.tolist() for x in quotient.select("offdiag").new().to_coo())
    first = {names_: k for k, names_ in name.items()}
    label = labels.to_dense().tolist()
    place = {k: first[label[some[0]]] for k, some in enumerate(sets_of(labels))}
    assert dict(zip(zip(rows, cols, strict=True), values, strict=True)) == pytest.approx(
        {
            e: w
            for a, b, w in theirs.edges(data="weight")
            for e in ((place[a], place[b]), (place[b], place[a]))
        }
    )


def prove_modularity(A, labels, directed):
    G, sets = networkx_of(A, directed=directed), sets_of(labels)
    for weight in (True, False):
        for resolution in (1, 0.5):
            options = {"weight": weight, "resolution": resolution, "directed": directed}
            if not G.size("weight" if weight else None):
                with pytest.raises(InvalidValue, match="weights of all edges sum to 0"):
                    modularity(A, labels, **options)
                continue
            found = modularity(A, labels, **options)
            key = "weight" if weight else None
            assert found == pytest.approx(
                nx.community.modularity(G, sets, weight=key, resolution=resolution), abs=1e-12
            )
            check_modularity(A, labels, found, **options)


def colored(A):
    coloring = nx.greedy_color(networkx_of(A, directed=False))
    return labelled(A, [coloring[v] for v in range(A.nrows)])


def prove_propagation(A):
    labels = label_propagation(A, max_iter=6)  # many labels swap for ever
    check_label_propagation(A, labels, max_iter=6)
    G = networkx_of(A, directed=False)
    if not nx.number_of_selfloops(G):  # which cannot be coloured
        labels = label_propagation(A, colored(A))
        assert sets_of(labels) == sorted(map(sorted, community.label_propagation_communities(G)))
        check_label_propagation(A, labels, colored(A))


@for_all(cpu=60, compiled=3)
def test_random_graphs(backend, draw):
    A = drawn(draw, backend, directed=True, weights="whole")
    labels = labelled(A, [(v * v) % 4 for v in range(A.nrows)])
    check_contraction(A, labels, *contraction(A, labels))
    prove_modularity(A, labels, directed=True)
    options = {"weight": True, "max_iter": 5}
    check_label_propagation(A, label_propagation(A, **options), **options)


@for_all(cpu=60, compiled=3)
def test_random_undirected_graphs(backend, draw):
    A = drawn(draw, backend, directed=False, degree=4)
    labels = labelled(A, [v // 3 for v in range(A.nrows)])
    prove_quotient(A, labels)
    prove_modularity(A, labels, directed=False)
    prove_propagation(A)
    check_communities(A, louvain(A, seed=1))


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    A = matrix(n, both_ways(edges), backend)
    labels = labelled(A, [7 - v % 3 for v in range(n)])
    prove_quotient(A, labels)
    prove_modularity(A, labels, directed=False)
    prove_propagation(A)
    check_communities(A, louvain(A, seed=2))


def test_louvain_is_as_good_as_that_of_networkx(backend):
    """And the same on every backend for one seed."""
    G = nx.karate_club_graph()
    edges = both_ways([(u, v, w) for u, v, w in G.edges(data="weight")])
    A = matrix(34, edges, backend, weights="whole")
    labels = louvain(A, seed=3)
    check_communities(A, labels)
    assert modularity(A, labels) > 0.443  # NetworkX has 0.4439 or 0.4449 by its seed
    assert labels.isequal(louvain(matrix(34, edges, "cpu", weights="whole"), seed=3).to(A.backend))
    prove_propagation(A)


def test_options_of_louvain():
    G = nx.karate_club_graph()
    A = matrix(34, both_ways(list(G.edges(data="weight"))), "cpu", weights="whole")
    labels = louvain(A, seed=3)
    assert len(sets_of(louvain(A, seed=3, max_level=1))) >= len(sets_of(labels))
    assert len(sets_of(louvain(A, seed=3, resolution=4))) > len(sets_of(labels))
    assert len(sets_of(louvain(A, seed=3, threshold=1))) == 34
    plain = louvain(A, seed=3, weight=False)
    check_communities(A, plain, weight=False)


def test_gains_are_differences_of_modularity():
    """Of each vertex that moves alone."""
    n = 12
    A = matrix(n, both_ways(random_edges(n, 25, 4)), "cpu")
    B, c = communities._weights(A, True, ""), labelled(A, [v // 3 * 3 for v in range(n)])
    others, weight = B.select("offdiag").new(), B.reduce_rowwise("plus").new()
    total = weight.reduce("plus").new().value
    moves, gains = communities._moves(others, c, weight, weight.diag(), 1 / total)
    assert moves.nvals > n // 3
    for v, label in entries(moves).items():
        moved = c.dup()
        moved[v] = label
        difference = modularity(A, moved) - modularity(A, c)
        assert 2 * gains.get(v) / total == pytest.approx(difference)


def test_whether_a_graph_is_directed(backend):
    """By default its weights decide, which matters to self-loops."""
    A = matrix(2, [(0, 1), (1, 0), (0, 0)], backend)
    labels = labelled(A, [0, 1])
    assert modularity(A, labels) == modularity(A, labels, directed=False) == pytest.approx(-0.125)
    assert modularity(A, labels, directed=True) == pytest.approx(1 / 3 - 5 / 9)
    check_modularity(A, labels, modularity(A, labels))
    one_way = matrix(2, [(0, 1), (0, 0)], backend)
    assert modularity(one_way, labels) == modularity(one_way, labels, directed=True)


@pytest.mark.parametrize("n", [31, 32, 33])
def test_labels_that_swap_for_ever(n, backend):
    """The two ends of an edge exchange their labels in each round."""
    A = matrix(n, both_ways([(0, 1)]), backend)
    for rounds in (1, 2, 3):
        labels = label_propagation(A, max_iter=rounds).to_dense().tolist()
        assert labels[:2] == ([1, 0] if rounds % 2 else [0, 1])
        assert labels[2:] == [*range(2, n)]


def test_other_monoids_of_a_quotient(backend):
    A = matrix(4, [(0, 2, 5), (1, 2, 3), (0, 3, 4), (2, 3, 9)], backend, weights="whole")
    labels = labelled(A, [10, 10, -2, -2])
    for op, wanted in (("min", [9, 3]), ("max", [9, 5]), ("plus", [9, 12])):
        quotient, names = contraction(A, labels, op)
        assert names.to_dense().tolist() == [-2, 10]
        assert [x.tolist() for x in quotient.to_coo()] == [[0, 1], [0, 0], wanted]


def test_small_types_do_not_overflow(backend):
    A = matrix(20, random_edges(20, 90, 1), "cpu").dup("UINT8").to(backend)
    A << A.apply("times", right=100)
    labels = labelled(A, [0] * 20)
    assert contraction(A, labels)[0].get(0, 0) == 100 * A.nvals
    assert modularity(A, labels) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("factor", [5e-324, 1e-200, 1e200, 2.0**1021])
def test_weights_whose_sum_or_its_square_is_no_number(backend, factor):
    """Communities depend on ratios of weights alone."""
    edges = [(0, 1, 4), (0, 2, 5), (1, 2, 4), (2, 3, 1), (3, 4, 5), (3, 5, 4), (4, 5, 4)]
    A = matrix(6, both_ways(edges), backend, weights="real")
    B = A.apply("times", right=factor).new()
    labels = labelled(A, [0, 0, 0, 3, 3, 3])
    assert modularity(B, labels) == pytest.approx(modularity(A, labels))
    assert louvain(B, seed=1).isequal(labels.dup("INT32"))
    for colors in (None, labelled(A, [*range(6)])):
        found = label_propagation(B, colors, max_iter=9, weight=True)
        assert found.isequal(label_propagation(A, colors, max_iter=9, weight=True))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_edges(backend, n):
    A = Matrix(FP64, n, n, backend=backend)
    labels = labelled(A, [*range(n)])
    assert label_propagation(A).isequal(louvain(A))
    assert louvain(A).to_dense().tolist() == [*range(n)]
    quotient, names = contraction(A, labels)
    assert (quotient.shape, quotient.nvals, names.size) == ((n, n), 0, n)
    with pytest.raises(InvalidValue, match="weights of all edges sum to 0"):
        modularity(A, labels)


def test_bad_input(backend):
    A = matrix(3, [(0, 1), (1, 2)], backend)
    short, few = labelled(A, [1, 2]), Vector(INT64, 3, like=A)
    for find in (contraction, modularity, label_propagation):
        with pytest.raises(DimensionMismatch, match=r"labels.size 2 != 3 vertices"):
            find(A, short)
        with pytest.raises(InvalidValue, match="3 vertices have no label"):
            find(A, few)
        for wrong in ([0, 1, 2], Vector(FP64, 3, like=A), Vector(BOOL, 3, like=A)):
            with pytest.raises(DomainMismatch, match="labels is not a Vector of integers"):
                find(A, wrong)
    for find in (louvain, label_propagation):
        with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
            find(Matrix(BOOL, 2, 3, like=A))
    for edges in ([(0, 1, 1)], both_ways([(0, 1, -1)])):
        with pytest.raises(InvalidValue, match="a weight is negative, or an entry has no reverse"):
            louvain(matrix(3, edges, backend, weights="whole"))
    nan = Matrix.from_coo([0, 1], [1, 0], float("nan"), like=A)
    for find in (louvain, lambda A: modularity(A, labelled(A, [0, 0])),
                 lambda A: label_propagation(A, weight=True)):  # fmt: skip
        with pytest.raises(InvalidValue, match="2 weights are NaN or infinite"):
            find(nan)
    for options in ({"max_level": 0}, {"seed": -1}):
        with pytest.raises(InvalidValue, match="louvain"):
            louvain(A.ewise_add(A.T, "lor").new(), **options)
    with pytest.raises(InvalidValue, match="max_iter"):
        label_propagation(A, max_iter=0)


# -------------------------------------------------------------------------- the checkers themselves

PAIR = [0, 0, 0, 1, 1, 1]
TWO = matrix(6, both_ways([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)]), "cpu")


def pairs(values):
    return np.arange(len(values)), np.array(values)


def test_wrong_quotients_are_refused():
    right, names = contraction(TWO, labelled(TWO, PAIR))
    check_contraction(TWO, pairs(PAIR), right, names)
    with pytest.raises(CheckFailed, match="names are the labels"):
        check_contraction(TWO, pairs(PAIR), right, pairs([0, 2]))
    for (i, j), value, said in (
        ((0, 1), 2, r"\(0, 1\): 2, not 1"), ((1, 0), None, r"\(1, 0\) is missing"),
    ):  # fmt: skip
        wrong = right.dup()
        if value is None:
            del wrong[i, j]
        else:
            wrong[i, j] = value
        with pytest.raises(CheckFailed, match=said):
            check_contraction(TWO, pairs(PAIR), wrong, names)


def test_wrong_modularities_are_refused():
    found = modularity(TWO, labelled(TWO, PAIR))
    check_modularity(TWO, pairs(PAIR), found)
    for wrong in (found + 1e-6, -found, float("nan")):
        with pytest.raises(CheckFailed, match=r"not 0\.357"):
            check_modularity(TWO, pairs(PAIR), wrong)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0, 0, 4, 4, 4], "vertex 3: label 4, not 3"),
        ([0, 0, 0, 3, 3, 5], "joining two communities gains no modularity: 3 and 5"),
        ([0, 1, 2, 3, 4, 5], "joining two communities gains no modularity"),
    ],
)
def test_wrong_communities_are_refused(labels, message):
    check_communities(TWO, pairs([0, 0, 0, 3, 3, 3]))
    with pytest.raises(CheckFailed, match=message):
        check_communities(TWO, pairs(labels))


def test_wrong_labels_are_refused():
    right = label_propagation(TWO).to_dense()
    check_label_propagation(TWO, pairs(right))
    for v in range(6):
        wrong = right.copy()
        wrong[v] = (wrong[v] + 1) % 6
        with pytest.raises(CheckFailed, match=f"vertex {v}: label {wrong[v]}, not {right[v]}"):
            check_label_propagation(TWO, pairs(wrong))
