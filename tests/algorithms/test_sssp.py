"""Weighted shortest paths against NetworkX, SciPy and the checker; wrong weights are refused."""

import math

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of
from hypothesis import strategies as st
from loop_names import GENERATED, loop_name
from scipy.sparse import csgraph
from strategies import for_all

import lagpu
from lagpu import FP32, FP64, INT32, INT64, UINT64, Matrix
from lagpu.algorithms import bellman_ford, delta_stepping, sssp
from lagpu.check import check_distances
from lagpu.errors import (
    CheckFailed,
    CycleFound,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
)
from lagpu.generators import road

ALL = (sssp, bellman_ford, delta_stepping)


def csr(A):
    rows, cols, lengths = A.to_coo()
    return sp.csr_array((lengths.astype(float), (rows, cols)), shape=A.shape)


def prove(A, source, delta=None):
    expected = nx.single_source_dijkstra_path_length(networkx_of(A), source)
    scipys = csgraph.bellman_ford(csr(A), indices=source)
    for found in (bellman_ford(A, source), delta_stepping(A, source, delta)):
        assert found.dtype is (FP64 if A.dtype.is_float else INT64)
        assert entries(found) == pytest.approx(expected, rel=1e-12)
        assert found.to_dense(2**62).clip(max=1e18) == pytest.approx(scipys.clip(max=1e18))
        check_distances(A, source, found)
    return found


@for_all(cpu=80, compiled=12)
def test_random_graphs(backend, draw):
    weights = draw(st.sampled_from(["ones", "whole", "float"]), label="weights")
    A = drawn(draw, backend, weights=weights)
    source = draw(st.integers(0, A.nrows - 1), label="source")
    prove(A, source, draw(st.sampled_from([None, 1, 2.5, 100]), label="delta"))


@for_all(cpu=80, compiled=6)
def test_negative_weights(backend, draw):
    """Any weights: a cycle of negative length is reported, or distances are NetworkX's."""
    n = draw(st.integers(1, 8), label="n")
    vertex = st.integers(0, n - 1)
    edge = st.tuples(vertex, vertex, st.integers(-2, 9))
    A = matrix(n, draw(st.lists(edge, max_size=2 * n), label="edges"), backend, weights="whole")
    G = networkx_of(A)
    try:
        expected = nx.single_source_bellman_ford_path_length(G, 0)
    except nx.NetworkXUnbounded:
        with pytest.raises(CycleFound, match=r"bellman_ford: the cycle .* has negative") as caught:
            bellman_ford(A, 0)
        cycle = caught.value.cycle
        assert nx.has_path(G, 0, cycle[0])
        assert len(set(cycle)) == len(cycle)
        around = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        assert sum(G.edges[e]["weight"] for e in around) < 0
    else:
        found = bellman_ford(A, 0)
        assert entries(found) == expected
        check_distances(A, 0, found)


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    prove(matrix(n, edges, backend), 0)
    prove(matrix(n, both_ways(edges), backend), n - 1)


def test_of_parallel_edges_the_shortest_counts(backend):
    """As in NetworkX, if the matrix is built so."""
    G = nx.MultiDiGraph()
    G.add_weighted_edges_from([(0, 1, 5), (0, 1, 2), (1, 2, 1), (1, 2, 4), (2, 2, 3)])
    u, v, w = (list(x) for x in zip(*G.edges(data="weight"), strict=True))
    A = Matrix.from_coo(u, v, w, nrows=3, ncols=3, dup_op="min", backend=backend)
    assert entries(sssp(A, 0)) == nx.single_source_dijkstra_path_length(G, 0)


def test_a_longer_way_may_be_shorter(backend):
    A = Matrix.from_coo(
        [0, 0, 1, 2], [1, 3, 2, 3], [1.5, 9.0, 0.25, 0.0], backend=backend, ncols=4, nrows=4
    )
    assert entries(prove(A, 0, 1.0)) == {0: 0.0, 1: 1.5, 2: 1.75, 3: 1.75}
    assert entries(sssp(A, 3)) == {3: 0.0}


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("dtype", ["BOOL", "INT32", "UINT32", "UINT64", "FP32"])
def test_types(backend, dtype):
    A = Matrix.from_coo([0, 1], [1, 2], [1, 1], dtype, nrows=3, ncols=3, backend=backend)
    found = prove(A, 0)
    assert entries(found) == {0: 0, 1: 1, 2: 2}


def test_whole_lengths_do_not_wrap(backend):
    wide = Matrix.from_coo([0, 1], [1, 2], 2**31 - 1, INT32, nrows=3, ncols=3, backend=backend)
    assert bellman_ford(wide, 0).get(2) == 2**32 - 2
    for dtype, value in ((INT64, 2**62), (INT64, -(2**62)), (UINT64, 2**64 - 1)):
        A = Matrix.from_coo([0], [1], value, dtype, nrows=2, ncols=2, backend=backend)
        with pytest.raises(InvalidValue, match=r"may exceed 64 bits\. Use A\.dup"):
            sssp(A, 0)
    assert bellman_ford(A.dup(FP64), 0).get(1) == 2.0**64


@pytest.mark.parametrize("place", ["cpu", "sim", "grid:2:sim"])
@pytest.mark.parametrize(("n", "length"), [(1, 2**62 - 1), (2, 2**61 - 1), (3, 2**60)])
def test_no_step_is_longer_than_a_type_holds(place, n, length):
    A = Matrix.from_coo([0, n - 1], [n - 1, 0], length, nrows=n, dup_op="min", backend=place)
    for search in (bellman_ford, delta_stepping):
        assert entries(search(A, 0)) == {n - 1: length} | {0: 0}


@pytest.mark.parametrize("edge", [(0, 0), (1, 1)])
def test_a_negative_self_loop_is_a_cycle(backend, edge):
    A = matrix(2, [(0, 1, 1), (*edge, -1)], backend, weights="whole")
    with pytest.raises(CycleFound, match=f"the cycle {edge[0]} -> {edge[0]} has") as caught:
        bellman_ford(A, 0)
    assert caught.value.cycle == [edge[0]]
    assert isinstance(caught.value, ValueError)


def test_a_negative_cycle_out_of_reach_does_not_matter(backend):
    A = matrix(4, [(0, 1, 2), (2, 3, -1), (3, 2, 0), (2, 0, 1)], backend, weights="whole")
    assert entries(bellman_ford(A, 0)) == {0: 0, 1: 2}


def test_a_cycle_of_length_zero_that_rounding_settles(backend):
    """After n rounds distances still fall, and in the next one no more."""
    A = matrix(3, [(0, 1, 1.85), (1, 2, 2.59), (2, 1, -2.59)], backend, weights="float")
    found = bellman_ford(A, 0)
    assert entries(found) == pytest.approx({0: 0, 1: 1.85, 2: 4.44}, rel=1e-12)


def test_a_cycle_that_only_rounding_makes_negative(backend):
    """Its length is reported, as it is not below 0."""
    lengths = [(0, 4, 1.11), (4, 3, 1.11), (3, 2, -0.37), (2, 1, -1.11), (1, 0, -0.74 - 2**-53)]
    assert math.fsum(length for _, _, length in lengths) == 0
    A = matrix(5, lengths, backend, weights="float")
    with pytest.raises(CycleFound, match="has length 0, but rounding makes it negative") as caught:
        bellman_ford(A, 0)
    assert sorted(caught.value.cycle) == [0, 1, 2, 3, 4]


def test_a_distance_beyond_the_largest_number_is_infinite(backend):
    A = matrix(3, [(0, 1, 1.7e308), (1, 2, 1.7e308)], backend, weights="float")
    assert entries(bellman_ford(A, 0)) == {0: 0, 1: 1.7e308, 2: math.inf}


@pytest.mark.each_value
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("search", ALL)
@pytest.mark.parametrize("dtype", [FP32, FP64])
def test_weights_that_are_no_lengths(backend, search, value, dtype):
    A = Matrix.from_coo([0, 1], [1, 0], [1.0, value], dtype, backend=backend)
    with pytest.raises(InvalidValue, match="1 weights are NaN or infinite"):
        search(A, 0)


def test_large_weights_are_lengths(backend):
    A = Matrix.from_coo([0, 1], [1, 0], [1.7e308, 1.7e308], backend=backend)
    assert bellman_ford(A, 0).get(1) == 1.7e308


def test_delta_stepping_refuses_negative_weights(backend):
    A = Matrix.from_coo([0, 1], [1, 0], [3, -2], backend=backend)
    for call in (lambda: delta_stepping(A, 0), lambda: sssp(A, 0, delta=2)):
        with pytest.raises(InvalidValue, match=r"a weight is -2 < 0\. Use bellman_ford"):
            call()
    assert entries(sssp(A, 0)) == {0: 0, 1: 3}


@pytest.mark.parametrize(
    ("delta", "error"),
    [
        (0, InvalidValue),
        (-1, InvalidValue),
        (float("nan"), InvalidValue),
        (float("inf"), InvalidValue),
        ("1", DomainMismatch),
        (True, DomainMismatch),
        (10**400, DomainMismatch),
    ],
)
def test_bad_deltas(delta, error):
    A = Matrix.from_coo([0], [1], [1.0], nrows=2, ncols=2, backend="cpu")
    with pytest.raises(error, match="delta"):
        delta_stepping(A, 0, delta)


@pytest.mark.parametrize("dtype", ["BOOL", "INT32", "FP64"])
@pytest.mark.parametrize("delta", [1e-300, 0.5, 2**62, 10**30, 1e300])
def test_any_width_will_do(backend, delta, dtype):
    A = Matrix.from_coo([0, 1], [1, 2], 1, dtype, nrows=3, ncols=3, backend=backend)
    assert delta_stepping(A, 0, delta).to_dense().tolist() == [0, 1, 2]


def test_one_kernel_relaxes_fewer_edges_in_steps():
    A = road(24, backend="sim")
    rows, cols, _ = A.to_coo()
    A = Matrix.from_coo(rows, cols, 1 + (rows * cols) % 90, INT64, nrows=A.nrows, backend="sim")
    looked_at = []
    for delta in (10**9, 30):
        with lagpu.trace() as t:
            sssp(A, 0, delta=delta)
        assert loop_name(A.backend) == GENERATED
        looked_at.append(t.totals().edges)
    assert looked_at[0] > 2 * looked_at[1] >= 2 * A.nvals


@pytest.mark.parametrize("search", ALL)
def test_bad_graphs_and_sources(search):
    with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
        search(Matrix("FP64", 2, 3, backend="cpu"), 0)
    A = Matrix("FP64", 2, 2, backend="cpu")
    for source, error in ((2, IndexOutOfBound), (-1, IndexOutOfBound), (0.5, DomainMismatch)):
        with pytest.raises(error, match="source"):
            search(A, source)


# 0 -> 1 -> 2 of lengths 1 and 2, a longer 0 -> 2, a cycle 1 -> 3 -> 1 of length 0; 4 -> 0.
A = sp.coo_array(
    (np.array([1.0, 2, 9, 0, 0, 1]), (np.array([0, 1, 0, 1, 3, 4]), np.array([1, 2, 2, 3, 1, 0]))),
    shape=(5, 5),
)
RIGHT = {0: 0.0, 1: 1.0, 2: 3.0, 3: 1.0}


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({0: 1.0}, r"distance\[0\] is 1.0, not 0"),
        ({0: None}, r"distance\[0\] is none, not 0"),
        ({2: None}, "ends at a reached vertex: vertex 2: no distance"),
        ({2: 9.0}, "shortcut: .*: vertex 2: distance 9.0, but 3.0 through 1"),
        ({2: np.nan}, "vertex 2: distance nan, but 9.0 through 0"),
        ({2: 2.5}, "vertex 2: distance 2.5, but no path from 0 is that long"),
        ({1: 0.5, 3: 0.5, 2: 2.5}, "vertex 1: distance 0.5, but no path"),
        ({4: 7.0}, "vertex 4: distance 7.0, but no path"),
        ({4: -1.0}, "vertex 4: distance -1.0, but no path"),
        ({4: -2.0}, "shortcut: .*: vertex 0: distance 0.0, but -1.0 through 4"),
    ],
)
def test_wrong_distances_are_refused(faults, message):
    found = {v: d for v, d in {**RIGHT, **faults}.items() if d is not None}
    with pytest.raises(CheckFailed, match=message):
        check_distances(A, 0, (np.array(list(found)), np.array(list(found.values()))))


def test_the_report_of_right_distances():
    report = check_distances(A, 0, (np.array(list(RIGHT)), np.array(list(RIGHT.values()))))
    assert (report.reached, report.depth, report.edges) == (4, 2, 5)


@pytest.mark.parametrize("dtype", ["INT64", "FP64", "BOOL"])
@pytest.mark.parametrize("limit", [0, 2.5, 7, 10**30, math.inf])
def test_a_limit_leaves_out_what_is_farther(backend, dtype, limit):
    rng = np.random.default_rng(3)
    rows, cols = rng.integers(0, 40, (2, 90))
    weights = rng.integers(0, 5, 90)
    A = Matrix.from_coo(
        rows, cols, weights, dtype, nrows=40, ncols=40, dup_op=lagpu.binary.min, backend=backend
    )
    found, whole = sssp(A, 3, limit=limit), sssp(A, 3)
    assert found.isequal(whole.select("valuele", min(limit, 2**40)).new())
    assert check_distances(A, 3, found, limit)
    if limit == 2.5:
        with pytest.raises(CheckFailed, match="no distance"):
            check_distances(A, 3, found)
        with pytest.raises(CheckFailed, match="beyond the limit"):
            check_distances(A, 3, whole, limit)


def test_limits_that_are_refused(backend):
    A = Matrix.from_coo([0, 1], [1, 2], [1, -2], nrows=3, ncols=3, backend=backend)
    for limit in (-1, math.nan):
        with pytest.raises(InvalidValue, match="is not 0 or more"):
            bellman_ford(A, 0, limit=limit)
    with pytest.raises(InvalidValue, match="a weight is -2 < 0"):
        sssp(A, 0, limit=5)
    with pytest.raises(InvalidValue, match="has no limit"):
        sssp(A, 0, limit=5, delta=1)
    with pytest.raises(DomainMismatch, match="is not a number"):
        sssp(A, 0, limit="5")
