"""Checkers of orders, cores and independent sets: right results pass, each single change fails."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from lagpu import Matrix, algorithms, io
from lagpu.check import (
    check_components,
    check_core_numbers,
    check_diameter,
    check_distances,
    check_ego_graph,
    check_floyd_warshall,
    check_independent_set,
    check_k_core,
    check_k_hop,
    check_katz,
    check_largest_component,
    check_levels_joint,
    check_negative_cycle,
    check_odd_cycle,
    check_route,
    check_topological_levels,
    check_topological_order,
    check_transitivity,
)
from lagpu.check.graph import Proof
from lagpu.check.searches import _depths
from lagpu.errors import CheckFailed, DimensionMismatch, IndexOutOfBound, InvalidValue


def graph_of(G, weight=None):
    """The sparse array of a NetworkX graph; edges both ways if it is undirected."""
    return sp.csc_array(nx.to_scipy_sparse_array(G, weight=weight, format="csc"))


def pair(result):
    return np.array(list(result), int), np.array(list(result.values()))


def refused(check, A, right, choices, **options):
    """Whether each change of one entry is refused; `choices` gives the wrong values of a vertex."""
    for v in range(A.shape[0]):
        for wrong in choices(v):
            changed = {**right, v: wrong}
            kept = {u: x for u, x in changed.items() if x is not None}
            with pytest.raises(CheckFailed):
                check(A, pair(kept), **options)


@st.composite
def graphs(draw, directed=False):
    n = draw(st.integers(1, 9))
    density = draw(st.sampled_from((0.1, 0.3, 0.6, 1.0)))
    return nx.gnp_random_graph(n, density, seed=draw(st.integers(0, 99)), directed=directed)


def one_way(A):
    """A graph with each edge in one direction, which decides nothing for cores and such sets."""
    return sp.csc_array(sp.triu(A))


ways = st.sampled_from((lambda A: A, one_way))


@given(graphs(), ways)
def test_core_numbers(G, way):
    A, right = way(graph_of(G)), nx.core_number(G)
    check_core_numbers(A, pair(right))
    refused(check_core_numbers, A, right, lambda v: ({None, *range(10)}) - {right[v]})


@given(graphs(), st.integers(0, 4), ways)
def test_k_cores(G, k, way):
    A = way(graph_of(G))
    right = {v: True for v, core in nx.core_number(G).items() if core >= k}
    check_k_core(A, pair(right), k)
    refused(check_k_core, A, right, lambda v: [None if v in right else True], k=k)


@given(graphs(), ways)
def test_independent_sets(G, way):
    A = way(graph_of(G))
    right = dict.fromkeys(nx.maximal_independent_set(G, seed=1), True)
    check_independent_set(A, pair(right))
    refused(check_independent_set, A, right, lambda v: [None if v in right else True])


@given(graphs(directed=True))
def test_topological_levels(G):
    G.remove_edges_from([(u, v) for u, v in G.edges if u >= v])
    A = graph_of(G)
    right = {v: d for d, some in enumerate(nx.topological_generations(G)) for v in some}
    check_topological_levels(A, pair(right))
    refused(check_topological_levels, A, right, lambda v: ({None, *range(10)}) - {right[v]})


@given(graphs(directed=True))
def test_topological_orders(G):
    G.remove_edges_from([(u, v) for u, v in G.edges if u >= v])
    A, right = graph_of(G), dict(enumerate(nx.topological_sort(G)))
    check_topological_order(A, pair(right))
    refused(check_topological_order, A, right, lambda k: ({None, *range(10)}) - {right[k]})
    place = {v: k for k, v in right.items()}
    for u, v in G.edges:  # two vertices that change places
        with pytest.raises(CheckFailed):
            check_topological_order(A, pair({**right, place[u]: v, place[v]: u}))


@given(graphs(directed=True), st.booleans())
def test_components(G, strong):
    A = graph_of(G)
    found = nx.strongly_connected_components(G) if strong else nx.weakly_connected_components(G)
    right = {v: min(some) for some in found for v in some}
    check_components(A, pair(right), strong=strong)
    check = lambda A, labels: check_components(A, labels, strong=strong)  # noqa: E731
    refused(check, A, right, lambda v: ({None, *range(len(G))}) - {right[v]})


@given(graphs(directed=True), st.integers(0, 99))
def test_distances(G, seed):
    lengths = np.random.default_rng(seed).integers(1, 5, len(G.edges))
    for (u, v), length in zip(G.edges, lengths.tolist(), strict=True):
        G.edges[u, v]["weight"] = length
    A, right = graph_of(G, "weight"), dict(nx.single_source_dijkstra_path_length(G, 0))
    check_distances(A, 0, pair(right))
    check = lambda A, found: check_distances(A, 0, found)  # noqa: E731
    refused(check, A, right, lambda v: ({None, *range(12)}) - {right.get(v)})


def test_distances_of_fractions_and_of_short_integers():
    path = lambda x: sp.csc_array((x, ([0, 1], [1, 2])), shape=(3, 3))  # noqa: E731
    check_distances(path(np.array([0.5, 0.25])), 0, pair({0: 0.0, 1: 0.5, 2: 0.75}))
    check_distances(path(np.array([100, 100], np.int8)), 0, pair({0: 0, 1: 100, 2: 200}))


def test_distances_of_64_bits_neither_wrap_nor_round():
    path = sp.csc_array((np.array([2**63 - 1, 3]), ([0, 1], [1, 2])), shape=(3, 3))
    for wrong in (-(2**63) + 2, 2**63 - 1):
        with pytest.raises(CheckFailed, match="no path from 0 is that long"):
            check_distances(path, 0, pair({0: 0, 1: 2**63 - 1, 2: wrong}))
    for last in (2**60 + 1, 2**60 + 2):
        path.data[:] = 2**60, last - 2**60
        found = np.array([0, 2**60, last], np.uint64)
        check_distances(path, 0, (np.arange(3), found))
        found[2] ^= np.uint64(3)
        with pytest.raises(CheckFailed):
            check_distances(path, 0, (np.arange(3), found))


def test_lengths_of_a_cycle_are_not_rounded():
    for last, message in ((-1, "length 0"), (-2, None)):
        lengths = np.array([2**53 + 1, -(2**53), last])
        cycle = sp.csc_array((lengths, ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
        if message is None:
            check_negative_cycle(cycle, [0, 1, 2])
            continue
        with pytest.raises(CheckFailed, match=message):
            check_negative_cycle(cycle, [0, 1, 2])


def test_messages_name_the_place_and_the_fault():
    path = sp.csc_array((np.ones(2), ([0, 1], [1, 2])), shape=(3, 3))
    for check, wrong, message in (
        (check_topological_order, {0: 0, 2: 2}, "place 1 has no vertex"),
        (check_topological_order, {0: 0, 1: 7, 2: 2}, "place 1 has 7"),
        (lambda A, x: check_distances(A, 0, x), {1: 1, 2: 2}, r"distance\[0\] is none, not 0"),
        (lambda A, x: check_distances(A, 0, x), {0: 3, 1: 1, 2: 2}, r"distance\[0\] is 3, not 0"),
        (lambda A, x: check_distances(A, 0, x), {0: 0, 1: 5, 2: 6}, "5, but 1.* through 0"),
        (lambda A, x: check_distances(A, 0, x), {0: 0, 1: 1, 2: 7}, "7, but 2.* through 1"),
        (lambda A, x: check_k_core(A, x, 2), {0: True}, "vertex 0: 0 neighbours, not 2"),
    ):
        with pytest.raises(CheckFailed, match=message):
            check(path, pair(wrong))


def test_several_sources_are_vertices():
    path = sp.csc_array((np.ones(2), ([0, 1], [1, 2])), shape=(3, 3))
    for sources in ([-1], [0, -1], [3], [0, 3]):
        with pytest.raises(IndexOutOfBound, match=r"a source is outside 0 \.\. 2"):
            check_levels_joint(path, sources, pair({2: 0, 0: 0, 1: 1}))
        with pytest.raises(IndexOutOfBound, match=r"a source is outside 0 \.\. 2"):
            check_k_hop(path, sources, 0, pair({2: True, 0: True}))
    check_levels_joint(path, [2], pair({2: 0}))


@pytest.mark.parametrize(
    ("check", "arguments"),
    [
        (check_independent_set, ()),
        (check_k_core, (0,)),
        (check_largest_component, ()),
        (lambda A, x: check_k_hop(A, [0, 1], 0, x), ()),
    ],
)
def test_a_false_entry_is_no_member(check, arguments):
    apart = sp.csc_array((2, 2))
    members = {0: True} if check is check_largest_component else {0: True, 1: True}
    check(apart, pair(members), *arguments)
    check(apart, pair(dict.fromkeys(members, 0)), *arguments)  # such as levels
    with pytest.raises(CheckFailed, match="vertex 0: its entry is False"):
        check(apart, pair({**members, 0: False}), *arguments)


def test_vertices_of_a_list_are_whole_numbers():
    triangle = sp.csc_array(np.ones((3, 3)) - np.eye(3))
    for wrong in ([0, 1, 2.5], [0.0, 1.0, 2.0], [False, True, 2**70]):
        with pytest.raises(InvalidValue, match="are not whole numbers"):
            check_odd_cycle(triangle, wrong)
    with pytest.raises(InvalidValue, match="are not whole numbers"):
        check_route(triangle, 0, 1, [0, 1.0])


def longer(A):
    """The matrix with its first value one more."""
    i, j, x = A.to_coo()
    return Matrix.from_coo(i, j, x + (np.arange(len(x)) == 0), nrows=A.nrows, ncols=A.ncols)


def test_whole_lengths_that_floats_round_are_exact():
    """Two ways round a cycle: one is longer by 1, which FP64 does not show."""
    large = 2**54
    lengths = [large, large, large + 1, large, 1]
    A = Matrix.from_coo([0, 0, 1, 2, 3], [1, 2, 3, 3, 0], lengths, backend="cpu")
    check_route(A, 0, 3, [0, 2, 3], weight=True)
    with pytest.raises(CheckFailed, match=f"length {2 * large + 1}, but distance {2 * large}"):
        check_route(A, 0, 3, [0, 1, 3], weight=True)
    check_ego_graph(A, 0, A, 2)
    with pytest.raises(CheckFailed, match=rf"\(0, 1\): {large + 1}, not {large}"):
        check_ego_graph(A, 0, longer(A), 2)
    distances = algorithms.floyd_warshall(A)
    check_floyd_warshall(A, distances)
    check_floyd_warshall(A, io.to_scipy(distances))
    with pytest.raises(DimensionMismatch, match="3 rows of distances != 4 vertices"):
        check_floyd_warshall(A, io.to_scipy(distances)[:3, :3])
    with pytest.raises(CheckFailed, match="from 0 to 0: 1, not 0"):
        check_floyd_warshall(A, longer(distances))
    with pytest.raises(CheckFailed, match="from 0 to 0: inf, not 0"):
        check_floyd_warshall(A, distances.select("offdiag").new())
    farthest = algorithms.diameter(A, weight=True)
    check_diameter(A, farthest, weight=True)
    for wrong in (farthest + 1, float(farthest)):
        with pytest.raises(CheckFailed, match=rf"but from 1 it is {farthest}"):
            check_diameter(A, wrong, weight=True)


def test_katz_centralities_have_the_sign_of_beta():
    loop = sp.csc_array([[1.0]])
    check_katz(loop, pair({0: 1.0}))
    with pytest.raises(CheckFailed, match="a further step changes the numbers"):
        check_katz(loop, pair({0: -1.0}))


def test_what_is_not_reached_is_at_no_distance():
    path = sp.csc_array(([1], ([0], [1])), shape=(3, 3))
    check_k_hop(path, [0], 3, pair({}))
    with pytest.raises(CheckFailed, match="vertex 2: a member, at distance inf"):
        check_k_hop(path, [0], 3, pair({2: True}))


@pytest.mark.parametrize("n", [2**31 - 2, 2**31 - 1])
def test_a_level_more_than_any_fits(n):
    """As a graph of so many vertices would: `unreached` is n, and levels are compared with more."""
    kind = np.int32 if n + 1 < 2**31 else np.int64
    one = np.zeros(1, np.int64), np.ones(1, bool)
    graph = Proof.__new__(Proof)
    graph.n, graph.unreached, graph.source, graph.rules = n, n, 0, ()
    graph.dense = lambda *_: one
    assert graph.levels(None, 0).dtype == kind
    graph.n = 1
    assert _depths(graph, *one).dtype == kind


def test_transitivity():
    triangle = graph_of(nx.complete_graph(3))
    check_transitivity(triangle, 1.0)
    for wrong in (np.nan, 1 + 1e-14, 1 - 1e-14, 0.0, np.inf, -1.0):
        with pytest.raises(CheckFailed, match=r"but the share is 1\.0"):
            check_transitivity(triangle, wrong)
