"""Trees and paths over weights, lengths, all pairs and negative cycles: NetworkX and checkers."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of
from hypothesis import strategies as st
from loop_names import is_fused
from strategies import for_all

from lagpu import FP64, INT64, Matrix
from lagpu.algorithms import (
    bellman_ford,
    delta_stepping,
    find_negative_cycle,
    floyd_warshall,
    path_weight,
    shortest_path,
    sssp,
    sssp_parents,
)
from lagpu.check import (
    check_distances,
    check_floyd_warshall,
    check_negative_cycle,
    check_route,
    check_sssp_parents,
)
from lagpu.errors import (
    CheckFailed,
    CycleFound,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
    NoPath,
)


@for_all(cpu=60, compiled=5)
def test_trees_and_paths_are_those_of_networkx(backend, draw):
    A = drawn(draw, backend, weights=draw(st.sampled_from(["ones", "whole", "float"])))
    vertex = st.integers(0, A.nrows - 1)
    sources = draw(st.lists(vertex, min_size=1, max_size=3, unique=True), label="sources")
    target = draw(vertex, label="target")
    G = networkx_of(A)
    expected, _ = nx.multi_source_dijkstra(G, sources)
    distances, parents = sssp_parents(A, sources)
    assert entries(distances) == expected
    check_sssp_parents(A, sources, distances, parents)
    assert delta_stepping(A, sources).isequal(distances)
    one = nx.single_source_dijkstra_path_length(G, sources[0])
    if target in one:
        route = shortest_path(A, sources[0], target, weight=True)
        assert path_weight(A, route) == one[target] == nx.path_weight(G, route, "weight")
        check_route(A, sources[0], target, route, weight=True)
    else:
        with pytest.raises(NoPath, match=f"no path from {sources[0]} to {target}"):
            shortest_path(A, sources[0], target, weight=True)


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    for A in (matrix(n, edges, backend), matrix(n, both_ways(edges), backend)):
        check_sssp_parents(A, 0, *sssp_parents(A, 0))
        check_negative_cycle(A, find_negative_cycle(A))
        if n < 40:
            check_floyd_warshall(A, floyd_warshall(A))


def test_edges_of_length_zero_close_no_cycle_of_parents(backend):
    edges = [(0, 1, 3), (1, 2, 0), (2, 1, 0), (2, 3, 0), (3, 3, 0), (0, 3, 4)]
    A = matrix(5, edges, backend, weights="whole")
    distances, parents = sssp_parents(A, 0)
    assert entries(distances) == {0: 0, 1: 3, 2: 3, 3: 3}
    assert entries(parents) == {0: 0, 1: 0, 2: 1, 3: 2}
    assert distances.dtype is INT64
    if backend.capabilities.fuses:
        assert is_fused(backend.last_loop)


def test_negative_weights_and_a_path(backend):
    A = matrix(4, [(0, 1, 4), (0, 2, 5), (2, 1, -2), (1, 3, 1)], backend, weights="whole")
    assert shortest_path(A, 0, 3, weight=True) == [0, 2, 1, 3]
    assert path_weight(A, [0, 2, 1, 3]) == 4
    assert shortest_path(A, 0, 3) == [0, 1, 3]
    with pytest.raises(InvalidValue, match=r"take one search\. Leave method out"):
        shortest_path(A, 0, 3, weight=True, method="single")


@pytest.mark.parametrize("dtype", ["INT64", "FP64", "BOOL"])
@pytest.mark.parametrize("limit", [None, 3])
def test_a_target_ends_the_search(backend, dtype, limit):
    """The vertices that are farther than the nearest target have no distance."""
    rng = np.random.default_rng(3)
    rows, cols = rng.integers(0, 40, (2, 90))
    A = Matrix.from_coo(rows, cols, rng.integers(0, 5, 90), dtype, nrows=41, ncols=41,
                        dup_op="min", backend=backend)  # fmt: skip
    whole = bellman_ford(A, [3, 5])
    for target in (3, 17, [8, 21, 40], 40):
        found = sssp(A, [3, 5], target=target, limit=limit)
        nearest = [d for t in np.atleast_1d(target) if (d := whole.get(int(t))) is not None]
        most = min([*nearest, 10**9 if limit is None else limit])
        assert found.isequal(whole.select("valuele", most).new())
        check_distances(A, [3, 5], found, most)
        check_sssp_parents(A, [3, 5], *sssp_parents(A, [3, 5], target=target), min([*nearest, 99]))
    if backend.capabilities.fuses:
        assert is_fused(backend.last_loop)


@pytest.mark.parametrize("dtype", [INT64, FP64])
def test_largest_distances_meet_an_infinite_limit(backend, dtype):
    largest = 2**60 if dtype is INT64 else 1.5e308
    A = Matrix.from_coo([0, 1], [1, 2], [largest, 1], dtype, nrows=3, ncols=3, backend=backend)
    assert sssp(A, 0, target=2).nvals == 3


def test_arguments_that_are_refused(backend):
    A = matrix(3, [(0, 1, 1), (1, 2, -2)], backend, weights="whole")
    with pytest.raises(InvalidValue, match=r"with a limit or a target: a weight is -2 < 0"):
        sssp(A, 0, target=1)
    with pytest.raises(InvalidValue, match="no target"):
        sssp(A, 0, target=1, delta=2)
    with pytest.raises(InvalidValue, match="vertex 1 is given twice"):
        sssp(A, [1, 1])
    with pytest.raises(InvalidValue, match="empty"):
        sssp(A, [])
    for call in (lambda: sssp(A, [0, 3]), lambda: sssp(A, 0, target=3)):
        with pytest.raises(IndexOutOfBound, match="3"):
            call()
    with pytest.raises(NoPath, match="no edge 2 -> 1"):
        path_weight(A, [0, 1, 2, 1])
    with pytest.raises(DomainMismatch):
        path_weight(A, [0.5, 1])
    assert path_weight(A, [2]) == path_weight(A, []) == 0


@pytest.mark.parametrize("weights", ["whole", "float"])
def test_a_walk_counts_an_edge_as_often_as_it_takes_it(backend, weights):
    A = matrix(3, [(0, 1, 0.1), (1, 0, 0.7), (1, 2, 9)], backend, weights=weights)
    walk = [0, 1, 0, 1, 2]
    assert path_weight(A, walk) == sum(A.get(u, v) for u, v in itertools.pairwise(walk))


@for_all(cpu=60, compiled=4)
def test_all_pairs_and_negative_cycles(backend, draw):
    n = draw(st.integers(1, 8), label="n")
    vertex = st.integers(0, n - 1)
    edge = st.tuples(vertex, vertex, st.integers(-2, 9))
    A = matrix(n, draw(st.lists(edge, max_size=2 * n), label="edges"), backend, weights="whole")
    G = networkx_of(A)
    cycle = find_negative_cycle(A)
    check_negative_cycle(A, cycle)
    assert (cycle is not None) == nx.negative_edge_cycle(G)
    if cycle is not None:
        with pytest.raises(CycleFound):
            floyd_warshall(A)
        return
    D = floyd_warshall(A)
    check_floyd_warshall(A, D)
    theirs = nx.floyd_warshall(G)
    rows, cols, values = D.to_coo()
    found = {(int(i), int(j)): x for i, j, x in zip(rows, cols, values, strict=True)}
    assert found == {(i, j): d for i in G for j, d in theirs[i].items() if d < math.inf}


def test_only_cycles_that_the_source_reaches_count(backend):
    A = matrix(5, [(0, 1, 1), (2, 3, -1), (3, 2, 0), (2, 0, 1)], backend, weights="whole")
    assert find_negative_cycle(A, [0, 4]) is None
    assert sorted(find_negative_cycle(A, [2])) == sorted(find_negative_cycle(A)) == [2, 3]
    assert find_negative_cycle(Matrix("INT64", 0, 0, backend=backend)) is None
    assert floyd_warshall(Matrix("INT64", 0, 0, backend=backend)).nvals == 0


def test_a_cycle_that_only_rounding_makes_negative_is_not_returned():
    lengths = [(0, 4, 1.11), (4, 3, 1.11), (3, 2, -0.37), (2, 1, -1.11), (1, 0, -0.74 - 2**-53)]
    A = matrix(5, lengths, "cpu", weights="float")
    with pytest.raises(CycleFound, match="rounding makes it negative"):
        find_negative_cycle(A, 0)


def test_rounding_may_leave_no_path_as_long_as_a_distance():
    """Distances on the cycle of length zero fall by a rounding, below every path."""
    A = matrix(3, [(0, 1, 1.85), (1, 2, 2.59), (2, 1, -2.59)], "cpu", weights="float")
    distances = bellman_ford(A, 0)
    assert distances.get(1) < 1.85
    with pytest.raises(InvalidValue, match=r"no path to vertex 1 that is as long .* integer"):
        sssp_parents(A, 0)


def test_float_distances_of_all_pairs_may_be_rounded():
    A = matrix(30, [(v, (v * k + 1) % 30, 0.1 * k + v / 7) for v in range(30) for k in (1, 3, 7)],
               "cpu", weights="float")  # fmt: skip
    check_floyd_warshall(A, floyd_warshall(A))


# ---- wrong results are refused

ROAD = [(0, 1, 2), (1, 2, 0), (2, 1, 0), (0, 2, 5), (3, 0, -1)]
RIGHT = {0: 0, 1: 2, 2: 2}


def pairs(found):
    return np.array(list(found)), np.array(list(found.values()))


@pytest.mark.parametrize(
    ("distances", "parents", "message"),
    [
        ({0: 0, 1: 2, 2: 5}, {0: 0, 1: 0, 2: 0}, "vertex 2: distance 5, but 2 through 1"),
        ({0: 1, 1: 2, 2: 2}, {0: 0, 1: 0, 2: 1}, r"distance\[0\] is 1, not 0"),
        (RIGHT, {0: 0, 1: 0}, "vertex 2: no parent"),
        (RIGHT, {0: 0, 1: 0, 2: 1, 3: 0}, "vertex 3: a parent"),
        (RIGHT, {0: 1, 1: 0, 2: 1}, "vertex 0: parent 1"),
        (RIGHT, {0: 0, 1: 0, 2: 0}, "joined to its child .* vertex 2: parent 0"),
        (RIGHT, {0: 0, 1: 0, 2: 3}, "vertex 2: parent 3"),
        (RIGHT, {0: 0, 1: 0, 2: 9}, "vertex 2: parent -1"),
        (RIGHT, {0: 0, 1: 2, 2: 1}, "ends at a source: vertex 1"),
    ],
)
def test_wrong_trees(distances, parents, message):
    A = matrix(4, ROAD, "cpu", weights="whole")
    check_sssp_parents(A, 0, pairs(RIGHT), pairs({0: 0, 1: 0, 2: 1}))
    with pytest.raises(CheckFailed, match=message):
        check_sssp_parents(A, 0, pairs(distances), pairs(parents))


def test_wrong_routes_cycles_and_pairs():
    A = matrix(4, ROAD, "cpu", weights="whole")
    check_route(A, 0, 2, [0, 1, 2], weight=True)
    with pytest.raises(CheckFailed, match="length 5, but distance 2"):
        check_route(A, 0, 2, [0, 2], weight=True)
    with pytest.raises(CheckFailed, match="no edge 0 -> 3"):
        check_route(A, 0, 3, [0, 3], weight=True)
    check_negative_cycle(A, None)
    with pytest.raises(CheckFailed, match="has length 0"):
        check_negative_cycle(A, [1, 2])
    with pytest.raises(CheckFailed, match="no edge 2 -> 0"):
        check_negative_cycle(A, [0, 1, 2])
    with pytest.raises(CheckFailed, match="twice"):
        check_negative_cycle(A, [1, 2, 1, 2])
    B = matrix(4, [*ROAD, (2, 3, -3)], "cpu", weights="whole")
    check_negative_cycle(B, [0, 1, 2, 3])
    with pytest.raises(CheckFailed, match="still decreases"):
        check_negative_cycle(B, None)
    D = floyd_warshall(A)
    D[0, 2] = 3
    with pytest.raises(CheckFailed, match="from 0 to 2: 3"):
        check_floyd_warshall(A, D)
