"""Topological order, cores and independent sets, against NetworkX and the checkers."""

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of, random_edges
from hypothesis import strategies as st
from strategies import for_all

from lagpu import BOOL, INT32, INT64, Matrix, Vector
from lagpu.algorithms import (
    core_number,
    k_core,
    maximal_independent_set,
    topological_levels,
    topological_order,
)
from lagpu.check import (
    check_core_numbers,
    check_independent_set,
    check_k_core,
    check_topological_levels,
    check_topological_order,
)
from lagpu.errors import (
    CheckFailed,
    CycleFound,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
)

# ----------------------------------------------------------------------------- topological order


def prove_order(A):
    """Levels and an order, or a cycle."""
    G = networkx_of(A)
    if nx.is_directed_acyclic_graph(G):
        levels = topological_levels(A)
        assert levels.dtype is INT32
        generations = enumerate(nx.topological_generations(G))
        assert entries(levels) == {v: k for k, some in generations for v in some}
        check_topological_levels(A, levels)
        order = topological_order(A)
        assert order.dtype is INT64
        place = {v: k for k, v in entries(order).items()}
        assert sorted(place) == list(range(A.nrows))
        assert all(place[u] < place[v] for u, v in G.edges)
        check_topological_order(A, order)
        return
    for search in (topological_levels, topological_order):
        with pytest.raises(CycleFound, match=r"there is a cycle \d+ ->") as caught:
            search(A)
        cycle = caught.value.cycle
        assert len(set(cycle)) == len(cycle) > 0
        assert all(G.has_edge(u, v) for u, v in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


@for_all(cpu=80, compiled=8)
def test_orders_of_random_graphs(backend, draw):
    n = draw(st.integers(1, 16), label="n")
    order = draw(st.permutations(range(n)), label="order")
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    edges = [(min(e), max(e)) for e in draw(st.lists(pair, max_size=3 * n), label="edges")]
    edges = [(order[u], order[v]) for u, v in edges if u != v]
    prove_order(matrix(n, edges, backend))
    prove_order(matrix(n, [*edges, draw(pair, label="one more")], backend))


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_orders_of_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    prove_order(matrix(n, edges, backend))
    prove_order(matrix(n, both_ways(edges), backend))


def test_the_cycle_is_said():
    A = matrix(5, [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)], "cpu")
    with pytest.raises(CycleFound, match=r"there is a cycle 1 -> 2 -> 3 -> 1\. Remove an edge"):
        topological_levels(A)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([0, 1, 2, None], "vertex 3: no level"),
        ([0, 1, 2, -1], "vertex 3: level -1"),
        ([0, 1, 2, 0], "vertex 3: level 0, not 3"),
        ([0, 1, 1, 2], "vertex 2: level 1, not 2"),
        ([1, 2, 3, 3], "vertex 0: level 1, not 0"),
    ],
)
def test_wrong_levels_are_refused(levels, message):
    A = matrix(4, [(0, 1), (1, 2), (0, 2), (2, 3)], "cpu")
    check_topological_levels(A, (np.arange(4), np.arange(4)))
    kept = [v for v, level in enumerate(levels) if level is not None]
    with pytest.raises(CheckFailed, match=message):
        check_topological_levels(A, (np.array(kept), np.array([levels[v] for v in kept])))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 2, 1, 3], "vertex 2: place 1, but the edge 1 -> 2 comes from place 2"),
        ([0, 1, 2, None], "vertex 3: place 3 has no vertex"),
        ([0, 1, 2, 4], "vertex 3: place 3 has 4"),
        ([0, 1, 2, 2], "vertex 3: no place"),
    ],
)
def test_wrong_orders_are_refused(order, message):
    A = matrix(4, [(0, 1), (1, 2), (0, 2), (2, 3)], "cpu")
    assert len(check_topological_order(A, (np.arange(4), np.arange(4)))) == 2
    kept = [v for v, x in enumerate(order) if x is not None]
    with pytest.raises(CheckFailed, match=message):
        check_topological_order(A, (np.array(kept), np.array([order[v] for v in kept])))


def test_a_self_loop_has_no_order():
    A = matrix(2, [(0, 1), (1, 1)], "cpu")
    with pytest.raises(CheckFailed, match="vertex 1: place 1, but the edge 1 -> 1"):
        check_topological_order(A, (np.arange(2), np.arange(2)))


# ----------------------------------------------------------------------------------------- cores


def prove_cores(A):
    G = networkx_of(A, directed=not A.is_symmetric)
    G.remove_edges_from(list(nx.selfloop_edges(G)))
    found = core_number(A)
    assert found.dtype is INT32
    theirs = nx.core_number(G)
    assert entries(found) == theirs
    check_core_numbers(A, found)
    assert k_core(A).dtype is BOOL
    assert set(entries(k_core(A))) == set(nx.k_core(G))
    for k in range(4):
        assert set(entries(k_core(A, k))) == {v for v, c in theirs.items() if c >= k}
        check_k_core(A, k_core(A, k), k)


@for_all(cpu=80, compiled=6)
def test_cores_of_random_graphs(backend, draw):
    prove_cores(drawn(draw, backend, degree=draw(st.sampled_from([1, 5]), label="degree")))


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_cores_of_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    prove_cores(matrix(n, edges, backend))
    prove_cores(matrix(n, both_ways(edges), backend))


def test_cores_of_a_larger_graph(backend):
    prove_cores(matrix(200, both_ways(random_edges(200, 700, 5)), backend))
    prove_cores(matrix(200, random_edges(200, 700, 5), backend))


def test_core_numbers_are_not_found_again(backend):
    A = matrix(4, [(0, 1), (1, 2), (2, 0), (2, 3)], backend)
    given = Vector.from_dense([3, 1, 3, 0], like=A)  # not the right ones, so it shows
    assert k_core(A, core_number=given).to_coo()[0].tolist() == [0, 2]
    assert k_core(A, 1, given).to_coo()[0].tolist() == [0, 1, 2]
    assert k_core(A, 2, core_number(A)).isequal(k_core(A, 2))
    with pytest.raises(DimensionMismatch, match=r"core_number\.size 3 != 4 vertices"):
        k_core(A, 1, Vector.from_dense([1, 1, 1], like=A))
    with pytest.raises(DomainMismatch, match="core_number is a dict, not a Vector"):
        k_core(A, 1, {0: 1})


@pytest.mark.parametrize("nodes", [[], (), set(), np.array([], int)])
def test_no_nodes_are_any_set(backend, nodes):
    A = matrix(4, both_ways([(0, 1), (1, 2), (2, 3)]), backend)
    found = maximal_independent_set(A, nodes, seed=2)
    assert found.isequal(maximal_independent_set(A, seed=2))


def test_bad_k():
    A = matrix(3, [(0, 1)], "cpu")
    assert k_core(A, 100).nvals == 0
    with pytest.raises(InvalidValue, match="k -1 < 0"):
        k_core(A, -1)
    with pytest.raises(DomainMismatch, match="k_core: k"):
        k_core(A, 1.5)


@pytest.mark.parametrize(
    ("cores", "message"),
    [
        ([2, 2, 2, None], "vertex 3: no core number"),
        ([2, 2, 2, 0.5], "vertex 3: core number 0.5"),
        ([2, 2, 2, 2], "vertex 3: core number 2, but 1 neighbours"),
        ([2, 2, 2, 0], "vertex 3: core number 0, but peeled at 1"),
        ([1, 1, 1, 1], "vertex 0: core number 1, but peeled at 2"),
    ],
)
def test_wrong_cores_are_refused(cores, message):
    A = matrix(4, both_ways([(0, 1), (1, 2), (2, 0), (2, 3)]), "cpu")
    check_core_numbers(A, (np.arange(4), np.array([2, 2, 2, 1])))
    kept = [v for v, core in enumerate(cores) if core is not None]
    with pytest.raises(CheckFailed, match=message):
        check_core_numbers(A, (np.array(kept), np.array([cores[v] for v in kept])))


@pytest.mark.parametrize(
    ("members", "k", "message"),
    [
        ([0, 1, 2, 3], 2, "at least k neighbours among the members: vertex 3: 1 neighbours, not 2"),
        ([0, 1], 2, "vertex 0: 1 neighbours, not 2"),
        ([], 2, "leaves only members: vertex 0: left, but not a member"),
        ([0, 1, 2], 1, "vertex 3: left, but not a member"),
        ([0, 1, 2], 3, "vertex 0: 2 neighbours, not 3"),
    ],
)
def test_wrong_k_cores_are_refused(members, k, message):
    A = matrix(4, both_ways([(0, 1), (1, 2), (2, 0), (2, 3)]), "cpu")
    assert len(check_k_core(A, (np.arange(3), np.ones(3)), 2)) == 2
    with pytest.raises(CheckFailed, match=message):
        check_k_core(A, (np.array(members, int), np.ones(len(members))), k)


# ------------------------------------------------------------------------------ independent sets


@for_all(cpu=80, compiled=8)
def test_independent_sets_of_random_graphs(backend, draw):
    A = drawn(draw, backend, degree=draw(st.sampled_from([1, 3]), label="degree"))
    seed = draw(st.integers(0, 999), label="seed")
    found = maximal_independent_set(A, seed=seed)
    assert found.dtype is BOOL
    check_independent_set(A, found)
    assert found.isequal(maximal_independent_set(A, seed=seed))
    assert found.to("cpu").isequal(maximal_independent_set(A.to("cpu"), seed=seed))
    v = draw(st.integers(0, A.nrows - 1), label="node")
    found = maximal_independent_set(A, [v], seed=seed)
    assert v in found
    check_independent_set(A, found)


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_independent_sets_of_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    for these in (edges, both_ways(edges)):
        A = matrix(n, these, backend)
        check_independent_set(A, maximal_independent_set(A, seed=1))


def test_seeds_differ(backend):
    A = matrix(60, both_ways(random_edges(60, 120, 1)), backend)
    found = [maximal_independent_set(A, seed=seed) for seed in range(4)]
    assert not all(one.isequal(found[0]) for one in found)
    check_independent_set(A, maximal_independent_set(A))


def test_bad_nodes_and_seeds():
    A = matrix(4, [(0, 1), (2, 2)], "cpu")
    for seed, error in ((-1, InvalidValue), (0.5, DomainMismatch), ("a", DomainMismatch)):
        with pytest.raises(error, match="maximal_independent_set: seed"):
            maximal_independent_set(A, seed=seed)
    with pytest.raises(InvalidValue, match=r"edges join the nodes \[0, 1\]"):
        maximal_independent_set(A, [0, 1, 3])
    assert 2 in maximal_independent_set(A, 2)
    for nodes, error in (([3, 3], InvalidValue), (4, IndexOutOfBound)):
        with pytest.raises(error, match="maximal_independent_set: nodes"):
            maximal_independent_set(A, nodes)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([0, 1, 3], "vertex 0: a member, like 1"),
        ([0], "vertex 2: no neighbour is a member"),
        ([], "vertex 0: no neighbour is a member"),
    ],
)
def test_wrong_sets_are_refused(members, message):
    A = matrix(4, [(0, 1), (1, 2), (2, 3), (1, 1)], "cpu")
    check_independent_set(A, (np.array([0, 2]), np.array([True, True])))
    with pytest.raises(CheckFailed, match=message):
        check_independent_set(A, (np.array(members, int), np.ones(len(members), bool)))


# --------------------------------------------------------------------------------------- all three


def test_no_vertices(backend):
    A = Matrix("BOOL", 0, 0, backend=backend)
    for search in (topological_levels, topological_order, core_number, k_core):
        assert search(A).size == 0
    assert maximal_independent_set(A).size == 0


def test_bad_graphs():
    searches = (topological_levels, topological_order, core_number, k_core, maximal_independent_set)
    for search in searches:
        with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
            search(Matrix("BOOL", 2, 3, backend="cpu"))
        with pytest.raises(DomainMismatch, match="is not a Matrix"):
            search(np.eye(2))
