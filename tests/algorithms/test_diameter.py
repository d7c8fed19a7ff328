"""Eccentricity, diameter, closeness and paths between two vertices, against NetworkX."""

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of, random_edges
from hypothesis import strategies as st
from loop_names import GRID, loop_name
from samples import sampled
from strategies import for_all

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix
from lagpu.algorithms import (
    bfs_levels,
    center,
    closeness_centrality,
    diameter,
    eccentricity,
    harmonic_centrality,
    has_path,
    periphery,
    pseudo_diameter,
    radius,
    shortest_path,
)
from lagpu.check import check_betweenness, check_diameter, check_remoteness, check_route
from lagpu.errors import (
    CheckFailed,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
    NoPath,
    OutOfMemory,
)


def prove(A):
    """All of it on one graph, connected or not."""
    G = networkx_of(A)
    n = A.nrows
    length, begin, end = pseudo_diameter(A)
    assert bfs_levels(A, begin).get(end) == length
    if nx.is_strongly_connected(G):
        theirs = nx.eccentricity(G)
        found = eccentricity(A)
        assert found.dtype is INT32
        assert entries(found) == theirs
        check_remoteness(A, found, "eccentricity")
        assert diameter(A) == max(theirs.values()) >= length
        check_diameter(A, diameter(A))
        assert radius(A) == nx.radius(G)
        assert set(entries(center(A))) == set(nx.center(G))
        assert set(entries(periphery(A))) == set(nx.periphery(G))
        assert center(A).dtype is periphery(A).dtype is BOOL
    else:
        for search in (eccentricity, diameter, radius, center, periphery):
            with pytest.raises(NoPath, match="there is no path from") as caught:
                search(A)
            s, t = (int(w) for w in str(caught.value).split(". ")[0].split()[-3::2])
            assert not nx.has_path(G, s, t)
    for wf_improved in (True, False):
        found = closeness_centrality(A, wf_improved=wf_improved)
        assert found.dtype is FP64
        theirs = nx.closeness_centrality(G, wf_improved=wf_improved)
        assert entries(found) == pytest.approx(theirs, rel=1e-9)
        check_remoteness(A, found, "closeness", wf_improved=wf_improved)
    found = harmonic_centrality(A)
    assert entries(found) == pytest.approx(nx.harmonic_centrality(G), rel=1e-9)
    check_remoteness(A, found, "harmonic")
    prove_route(A, G, 0, n - 1)


def prove_route(A, G, s, t):
    for method in (None, "bidirectional", "single"):
        there = has_path(A, s, t, method=method)
        assert there is nx.has_path(G, s, t)
        if there:
            route = shortest_path(A, s, t, method=method)
            assert len(route) == len(nx.shortest_path(G, s, t))
            check_route(A, s, t, route)
        else:
            with pytest.raises(NoPath, match=f"no path from {s} to {t}"):
                shortest_path(A, s, t, method=method)


@for_all(cpu=60, compiled=5)
def test_random_graphs(backend, draw):
    prove(drawn(draw, backend, max_n=10, degree=draw(st.sampled_from([1, 4]), label="degree")))


@for_all(cpu=60, compiled=5)
def test_connected_graphs(backend, draw):
    """A cycle through all vertices, so that there is a diameter, and some edges more."""
    n = draw(st.integers(1, 24), label="n")
    edges = [(v, (v + 1) % n) for v in range(n)]
    vertex = st.integers(0, n - 1)
    edges += draw(st.lists(st.tuples(vertex, vertex), max_size=6), label="chords")
    directed = draw(st.booleans(), label="directed")
    A = matrix(n, edges if directed else both_ways(edges), backend)
    G = networkx_of(A)
    assert diameter(A) == nx.diameter(G)
    prove_route(A, G, draw(vertex, label="s"), draw(vertex, label="t"))


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", sampled(AWKWARD, 2))
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    if backend.capabilities.kernels and n > 12:
        pytest.skip("a search from every vertex: too many statements for a device that compiles")
    prove(matrix(n, edges, backend))
    prove(matrix(n, both_ways(edges), backend))


def test_bounds_save_searches():
    """A random graph of 400 vertices takes far fewer searches than that."""
    edges = both_ways(random_edges(400, 1200, 3) + [(v, v + 1) for v in range(399)])
    A = matrix(400, edges, "cpu")
    with lagpu.trace() as traced:
        found = diameter(A)
    assert found == nx.diameter(networkx_of(A, directed=False))
    searches = sum(row.method == "mxv" and row.level == 0 for row in traced.rows)
    assert 0 < searches < 200


@pytest.mark.parametrize("edges", [[(1, 0), (2, 1), (3, 2)], both_ways([(0, 1), (1, 2), (2, 3)])])
def test_pseudo_diameter_of_a_path(backend, edges):
    """From anywhere: exact on a path, along the edges of a directed one."""
    A = matrix(4, edges, backend)
    for source in range(4):
        length, begin, end = pseudo_diameter(A, source)
        assert (length, {begin, end}) == (3, {0, 3}) or not A.is_symmetric
    assert pseudo_diameter(A, 3) in ((3, 3, 0), (3, 0, 3))


def test_some_vertices(backend):
    A = matrix(4, both_ways([(0, 1), (1, 2), (2, 3)]), backend)
    assert entries(eccentricity(A, [3, 1])) == {1: 2, 3: 3}
    assert entries(eccentricity(A, 0)) == {0: 3}
    assert entries(closeness_centrality(A, 1)) == {1: 0.75}
    assert entries(harmonic_centrality(A, [0])) == {0: pytest.approx(11 / 6)}


def test_arguments_stand_where_networkx_has_them(backend):
    A = matrix(4, [(0, 1), (1, 2), (3, 1)], backend)
    G = networkx_of(A)
    for at in ((1, None, False), (1, None, True), (2, None)):
        found = entries(closeness_centrality(A, *at))
        assert found == pytest.approx({at[0]: nx.closeness_centrality(G, *at)})


LENGTHS = [(0, 1, 2), (1, 2, 0), (2, 0, 5), (2, 3, 1), (3, 0, 7), (1, 3, 0.25)]


@pytest.mark.parametrize("weights", ["whole", "float"])
def test_lengths_count_as_in_networkx(backend, weights):
    """Edges of length 0 among them; whole lengths are exact."""
    for edges in (LENGTHS, both_ways(LENGTHS)):
        A = matrix(4, edges, backend, weights=weights)
        G = networkx_of(A)
        found = closeness_centrality(A, distance=True)
        assert entries(found) == pytest.approx(nx.closeness_centrality(G, distance="weight"))
        check_remoteness(A, found, "closeness", weight=True)
        found = harmonic_centrality(A, [1, 2], True, [0, 3])
        theirs = nx.harmonic_centrality(G, [1, 2], "weight", [0, 3])
        assert entries(found) == pytest.approx(theirs)
        check_remoteness(A, harmonic_centrality(A, distance=True), "harmonic", weight=True)
        found = eccentricity(A, weight=True)
        assert found.dtype is (FP64 if weights == "float" else INT64)
        assert entries(found) == nx.eccentricity(G, weight="weight")
        check_remoteness(A, found, "eccentricity", weight=True)
        for ours, theirs in ((diameter, nx.diameter), (radius, nx.radius)):
            assert ours(A, weight=True) == theirs(G, weight="weight")
        check_diameter(A, diameter(A, weight=True), weight=True)
        for ours, theirs in ((center, nx.center), (periphery, nx.periphery)):
            members = ours(A, weight=True).to_coo()[0].tolist()
            assert members == sorted(theirs(G, weight="weight"))


@pytest.mark.parametrize("length", [2**61, 2**62])
def test_lengths_whose_sums_may_exceed_64_bits_are_refused(backend, length):
    A = matrix(4, both_ways([(0, 1, length), (1, 2, 1), (2, 3, 1)]), backend, weights="whole")
    for search in (diameter, radius, eccentricity):
        with pytest.raises(InvalidValue, match=r"may exceed 64 bits. Use A.dup\(FP64\)"):
            search(A, weight=True)


def test_negative_lengths_are_refused_and_wrong_results_found(backend):
    A = matrix(3, both_ways([(0, 1, 2), (1, 2, 3)]), backend, weights="whole")
    with pytest.raises(CheckFailed, match="4, but from 0 it is 5"):
        check_diameter(A, 4, weight=True)
    with pytest.raises(CheckFailed, match="vertex 0: eccentricity 2, but it is 5"):
        check_remoteness(A, eccentricity(A), "eccentricity", weight=True)
    A = matrix(3, both_ways([(0, 1, 2), (1, 2, -3)]), backend, weights="whole")
    for call in (
        lambda: closeness_centrality(A, distance=True),
        lambda: harmonic_centrality(A, distance=True),
        lambda: diameter(A, weight=True),
        lambda: center(A, weight=True),
    ):
        with pytest.raises(InvalidValue, match=r"^\w+: a weight is -3 < 0\. Leave such edges out"):
            call()


@pytest.mark.parametrize("sources", [1, [0, 3], {1, 2}])
def test_harmonic_centrality_from_some(backend, sources):
    A = matrix(5, both_ways([(0, 1), (1, 2), (2, 3)]), backend)
    theirs = nx.harmonic_centrality(
        networkx_of(A), sources=[sources] if isinstance(sources, int) else sources
    )
    assert entries(harmonic_centrality(A, sources=sources)) == pytest.approx(theirs)
    some = harmonic_centrality(A, [2, 0], sources=sources)
    assert entries(some) == pytest.approx({v: theirs[v] for v in (0, 2)})
    with pytest.raises(InvalidValue, match="harmonic_centrality: sources: the list is empty"):
        harmonic_centrality(A, sources=[])


def test_a_vertex_and_itself(backend):
    A = matrix(3, [(0, 1)], backend)
    for method in ("bidirectional", "single"):
        assert shortest_path(A, 2, 2, method=method) == [2]
        assert has_path(A, 2, 2, method=method)


def test_searches_meet_in_a_frontier(backend):
    """Where they meet is sought among the new vertices only: each is looked at once."""
    n = 60
    A = matrix(n, both_ways([(v, v + 1) for v in range(n - 1)]), backend)
    with lagpu.trace() as traced:
        assert shortest_path(A, 0, n - 1, method="bidirectional") == list(range(n))
    sought = [row for row in traced.rows if row.method == "ewise_mult"]
    assert len(sought) == n - 1
    assert max(row.nvals_in for row in sought) == 1
    assert sum(row.copy_bytes for row in sought) == 0


@pytest.mark.parametrize("method", ["bidirectional", "single"])
def test_a_long_route(backend, method):
    """Longer than what is asked for vertex by vertex."""
    n = 300
    A = matrix(n, both_ways([(v, v + 1) for v in range(n - 1)]), backend)
    assert shortest_path(A, 3, n - 2, method=method) == list(range(3, n - 1))
    assert all(type(v) is int for v in shortest_path(A, 3, n - 2, method=method))


def test_one_kernel_where_there_is_one(backend):
    A = matrix(40, both_ways([(v, v + 1) for v in range(39)]), backend)
    with lagpu.trace() as traced:
        shortest_path(A, 0, 39)
    assert any(row.method == "ewise_mult" for row in traced.rows) is not backend.capabilities.fuses
    if backend.capabilities.fuses:
        assert loop_name(backend) == GRID


def test_no_vertices(backend):
    A = Matrix("BOOL", 0, 0, backend=backend)
    assert eccentricity(A).size == closeness_centrality(A).size == harmonic_centrality(A).size == 0
    for search in (diameter, radius, center, periphery):
        with pytest.raises(InvalidValue, match=f"{search.__name__}: there is no vertex"):
            search(A)
    with pytest.raises(IndexOutOfBound, match="source"):
        pseudo_diameter(A)


@pytest.mark.parametrize("search", [eccentricity, closeness_centrality, harmonic_centrality])
@pytest.mark.parametrize(
    ("vertices", "error"),
    [
        ([], InvalidValue),
        ([1, 1], InvalidValue),
        ([4], IndexOutOfBound),
        (-1, IndexOutOfBound),
        ([0.5], DomainMismatch),
    ],
)
def test_bad_vertices(search, vertices, error):
    with pytest.raises(error, match=search.__name__):
        search(matrix(4, both_ways([(0, 1), (1, 2), (2, 3)]), "cpu"), vertices)


def test_bad_graphs_and_ends():
    wide = Matrix("BOOL", 2, 3, backend="cpu")
    for search in (eccentricity, diameter, pseudo_diameter, closeness_centrality):
        with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
            search(wide)
    A = matrix(4, [(0, 1)], "cpu")
    for search in (shortest_path, has_path):
        with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
            search(wide, 0, 1)
        with pytest.raises(IndexOutOfBound, match="source: index 4"):
            search(A, 4, 0)
        with pytest.raises(IndexOutOfBound, match="target: index -1"):
            search(A, 0, -1)
        with pytest.raises(DomainMismatch, match="target"):
            search(A, 0, None)
        with pytest.raises(InvalidValue, match=r"no method 'both'. Use bidirectional or single"):
            search(A, 0, 1, method="both")


# -------------------------------------------------------------------------- the checkers themselves


@pytest.mark.parametrize(
    ("of", "right"),
    [
        ("eccentricity", [2, 2, 2]),
        ("closeness", [2 / 3, 2 / 3, 2 / 3]),
        ("harmonic", [1.5, 1.5, 1.5]),
    ],
)
def test_wrong_values_are_refused(of, right):
    A = matrix(3, [(0, 1), (1, 2), (2, 0)], "cpu")
    check_remoteness(A, (np.arange(3), np.array(right)), of)
    one = np.array([1]), np.array(right[1:2])
    check_remoteness(A, one, of, vertices=[1])
    for vertices in (None, [1, 2]):
        with pytest.raises(CheckFailed, match=r"requested vertex has a value: vertex .: no value"):
            check_remoteness(A, one, of, vertices=vertices)
    with pytest.raises(IndexOutOfBound, match=r"vertices \[3\] are not"):
        check_remoteness(A, one, of, vertices=[3])
    for wrong in (right[1] + 1, 0, np.nan):
        with pytest.raises(CheckFailed, match=f"vertex 1: {of} .*, but it is"):
            check_remoteness(A, (np.arange(3), np.array([right[0], wrong, right[2]], float)), of)


@pytest.mark.parametrize(
    ("route", "error", "message"),
    [
        ([], CheckFailed, "begins at the source"),
        ([0, 1], CheckFailed, "begins at the source"),
        ([0, 2, 3], CheckFailed, "there is no edge 0 -> 2"),
        ([0, 1, 2, 3], CheckFailed, "3 edges, but distance 2"),
        ([0, 4, 3], IndexOutOfBound, "within"),
    ],
)
def test_wrong_routes_are_refused(route, error, message):
    A = matrix(4, [(0, 1), (1, 2), (2, 3), (1, 3)], "cpu")
    check_route(A, 0, 3, [0, 1, 3])
    with pytest.raises(error, match=message):
        check_route(A, 0, 3, route)


def test_a_wrong_diameter_is_refused():
    A = matrix(4, both_ways([(0, 1), (1, 2), (2, 3)]), "cpu")
    check_diameter(A, 3)
    for wrong in (2, 4):
        with pytest.raises(CheckFailed, match=f"{wrong}, but from 0 to 3 it is 3"):
            check_diameter(A, wrong)
    with pytest.raises(CheckFailed, match="from 0 to 2 it is inf"):
        check_diameter(matrix(3, [(0, 1)], "cpu"), 1)


def test_checks_of_all_pairs_need_memory(monkeypatch):
    monkeypatch.setattr("lagpu.host.memory.available_bytes", lambda: 100)
    A = matrix(4, [(0, 1)], "cpu")
    for check in (
        lambda: check_diameter(A, 1),
        lambda: check_betweenness(A, (range(4), [0.0] * 4)),
    ):
        with pytest.raises(OutOfMemory, match="check: distances"):
            check()
