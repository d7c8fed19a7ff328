"""Trusses, spanning forests and matchings, against NetworkX and the checkers."""

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of, random_edges
from loop_names import GENERATED, loop_name
from strategies import for_all

from lagpu import BOOL, FP64, INT64, Matrix
from lagpu.algorithms import k_truss, maximal_matching, minimum_spanning_forest
from lagpu.check import check_k_truss, check_matching, check_spanning_forest
from lagpu.errors import CheckFailed, DimensionMismatch, InvalidValue


def edges_of(A):
    rows, cols, values = A.to_coo()
    return dict(zip(zip(rows.tolist(), cols.tolist(), strict=True), values.tolist(), strict=True))


def two_ways(edges):
    return {e: w for u, v, w in edges for e in ((u, v), (v, u))}


def plain(A):
    """The undirected graph without self-loops, edges in the order of rows."""
    G = networkx_of(A, directed=False)
    G.remove_edges_from(list(nx.selfloop_edges(G)))
    return G


def symmetric_lightest(G):
    """An undirected graph whose edges have one weight, whatever both directions of them had."""
    return both_ways([(u, v, w) for u, v, w in G.edges(data="weight") if u <= v])


def prove(A):
    """All three, of an undirected graph with weights."""
    G = plain(A)
    for k in (0, 2, 3, 4):
        truss = k_truss(A, k)
        assert truss.dtype is A.dtype
        wanted = {
            e: w for u, v, w in nx.k_truss(G, k).edges(data="weight") for e in ((u, v), (v, u))
        }
        assert edges_of(truss) == wanted
        check_k_truss(A, truss, k)
    for maximum, find in ((False, nx.minimum_spanning_edges), (True, nx.maximum_spanning_edges)):
        forest = minimum_spanning_forest(A, maximum=maximum)
        assert edges_of(forest) == two_ways((u, v, w["weight"]) for u, v, w in find(G))
        check_spanning_forest(A, forest, maximum=maximum)
    prove_matchings(A, G)


def prove_matchings(A, G):
    mates = entries(maximal_matching(A, order="rows"))
    wanted = nx.maximal_matching(G)
    assert {(u, v) for u, v in mates.items() if u < v} == wanted
    for order in ("random", "weight"):
        mates = maximal_matching(A, order=order, seed=1)
        check_matching(A, mates)
        pairs = {(u, v) for u, v in entries(mates).items() if u < v}
        assert nx.is_maximal_matching(G, pairs)
    weight = sum(max(0, G.edges[e]["weight"]) for e in pairs)
    best = nx.max_weight_matching(G)
    assert 2 * weight >= sum(G.edges[e]["weight"] for e in best) - 1e-9


def undirected(draw, backend):
    A = drawn(draw, "cpu", directed=False, weights="whole", degree=4)
    return matrix(A.nrows, symmetric_lightest(networkx_of(A)), backend, weights="whole")


@for_all(cpu=60, compiled=8)
def test_random_graphs(backend, draw):
    prove(undirected(draw, backend))


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    weighted = {(min(e), max(e)): (3 * k) % 4 - 1 for k, e in enumerate(edges)}
    prove(matrix(n, both_ways([(*e, w) for e, w in weighted.items()]), backend, weights="whole"))


@pytest.mark.parametrize("n", [31, 32, 33, 150])
def test_larger_graphs_are_one_kernel_each(backend, n):
    edges = dict.fromkeys((min(e), max(e)) for e in random_edges(n, 3 * n, n))
    A = matrix(n, both_ways([(u, v, (u * v) % 9) for u, v in edges]), backend, weights="whole")
    prove(A)
    for find in (lambda: k_truss(A, 3), lambda: minimum_spanning_forest(A),
                 lambda: maximal_matching(A, seed=3)):  # fmt: skip
        find()
        if backend.name in ("sim", "gpu"):
            assert loop_name(A.backend) == GENERATED


def test_a_path_whose_weights_fall(backend):
    """Trees become deep: each vertex but one hooks to the next, and they are no stars for long."""
    n = 70
    A = matrix(n, both_ways([(v, v + 1, n - v) for v in range(n - 1)]), backend, weights="whole")
    assert minimum_spanning_forest(A).nvals == 2 * (n - 1)
    mates = entries(maximal_matching(A, order="weight"))
    assert mates == {v: v ^ 1 for v in range(n)}


def test_equal_weights_and_infinite_ones(backend):
    inf = float("inf")
    ring = [(v, (v + 1) % 5, w) for v, w in enumerate([inf, -inf, 0.0, -0.0, inf])]
    A = matrix(5, both_ways(ring), backend, weights="float")
    forest = edges_of(minimum_spanning_forest(A))
    assert {e for e in forest if e[0] < e[1]} == {(0, 1), (1, 2), (2, 3), (3, 4)}
    check_spanning_forest(A, minimum_spanning_forest(A))


def test_directed_graphs_are_matched_as_undirected_ones(backend):
    A = matrix(6, [(1, 0), (2, 1), (3, 2), (3, 3), (5, 4)], backend)
    mates = maximal_matching(A, order="rows")
    assert entries(mates) == {0: 1, 1: 0, 2: 3, 3: 2, 4: 5, 5: 4}
    check_matching(A, mates)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_edges(backend, n):
    A = Matrix(FP64, n, n, like=Matrix(BOOL, 1, 1, backend=backend))
    for found in (k_truss(A, 3), minimum_spanning_forest(A)):
        assert (found.shape, found.nvals, found.dtype) == ((n, n), 0, FP64)
    assert maximal_matching(A).size == n
    check_matching(A, maximal_matching(A, order="weight"))


def test_bad_input(backend):
    one_way = matrix(3, [(0, 1), (1, 2), (2, 0)], backend)
    for find in (lambda A: k_truss(A, 3), minimum_spanning_forest,
                 lambda A: maximal_matching(A, order="weight")):  # fmt: skip
        with pytest.raises(InvalidValue, match="no reverse"):
            find(one_way)
        with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
            find(Matrix(BOOL, 2, 3, like=one_way))
    nan = Matrix.from_coo([0, 1], [1, 0], float("nan"), like=one_way)
    other = Matrix.from_coo([0, 1], [1, 0], [1, 2], INT64, like=one_way)
    for A in (nan, other):
        with pytest.raises(InvalidValue, match="a weight is NaN, or an entry has no reverse of"):
            minimum_spanning_forest(A)
    for k in (-1, 2.5):
        with pytest.raises((InvalidValue, TypeError), match="k_truss: k"):
            k_truss(other, k)
    with pytest.raises(InvalidValue, match="there is no order 'first'"):
        maximal_matching(other, order="first")
    with pytest.raises(InvalidValue, match="seed"):
        maximal_matching(other, seed=-1)


# -------------------------------------------------------------------------- the checkers themselves

SQUARE = both_ways([(0, 1, 1), (1, 2, 2), (2, 3, 3), (3, 0, 4), (0, 2, 5), (3, 4, 0)])


def sub(*edges):
    return matrix(5, both_ways([e for e in SQUARE if e[:2] in edges]), "cpu", weights="whole")


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (1, 2), (0, 2), (2, 3)], r"\(0, 3\) is missing"),
        ([(0, 1), (1, 2), (0, 2), (2, 3), (3, 0), (3, 4)], r"\(3, 4\) is not one"),
    ],
)
def test_wrong_trusses_are_refused(edges, message):
    A = matrix(5, SQUARE, "cpu", weights="whole")
    check_k_truss(A, sub((0, 1), (1, 2), (0, 2), (2, 3), (3, 0)), 3)
    with pytest.raises(CheckFailed, match=message):
        check_k_truss(A, sub(*edges), 3)
    truss = k_truss(A, 3)
    truss[2, 0] = 0
    with pytest.raises(CheckFailed, match=r"\(2, 0\): 0, not 5"):
        check_k_truss(A, truss, 3)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (1, 2), (2, 3)], "3 edges and 2 components, not 1"),
        ([(0, 1), (1, 2), (0, 2), (3, 4)], "4 edges and 2 components, not 1"),
        ([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)], "5 edges and 1 components"),
        ([(0, 1), (1, 2), (3, 0), (3, 4)], "at place 3"),
    ],
)
def test_wrong_forests_are_refused(edges, message):
    A = matrix(5, SQUARE, "cpu", weights="whole")
    check_spanning_forest(A, sub((0, 1), (1, 2), (2, 3), (3, 4)))
    check_spanning_forest(A, sub((0, 2), (3, 0), (2, 1), (3, 4)), maximum=True)
    with pytest.raises(CheckFailed, match=message):
        check_spanning_forest(A, sub(*edges))


@pytest.mark.parametrize(
    "entry", [(0, 4, 1), (0, 0, 1), (0, 1, 9)], ids=["no edge", "a self-loop", "another weight"]
)
def test_entries_that_the_graph_lacks_are_refused(entry):
    A = matrix(5, SQUARE, "cpu", weights="whole")
    tree = [e for e in SQUARE if e[:2] in {(1, 2), (2, 3), (3, 4)} | {(2, 1), (3, 2), (4, 3)}]
    with pytest.raises(CheckFailed, match="an entry of the forest is one of the graph"):
        check_spanning_forest(A, matrix(5, [*tree, *both_ways([entry])], "cpu", weights="whole"))


@pytest.mark.parametrize(
    ("mates", "message"),
    [
        ({0: 1, 1: 0}, "vertex 2: 1 edges to others without a mate"),
        ({0: 1, 1: 0, 2: 3}, "vertex 2: mate 3"),
        ({0: 1, 1: 2, 2: 1}, "vertex 0: mate 1"),
        ({0: 4, 4: 0, 1: 2, 2: 1}, "vertex 0: mate 4"),
        ({0: 1, 1: 0, 2: 2, 3: 4, 4: 3}, "vertex 2: mate 2"),
        ({0: 1, 1: 0, 2: 7}, "vertex 2: mate 7"),
    ],
)
def test_wrong_matchings_are_refused(mates, message):
    A = matrix(5, [*SQUARE, (2, 2, 1)], "cpu", weights="whole")
    check_matching(A, (np.array([0, 1, 2, 3]), np.array([1, 0, 3, 2])))
    with pytest.raises(CheckFailed, match=message):
        check_matching(A, (np.array(list(mates)), np.array(list(mates.values()))))
