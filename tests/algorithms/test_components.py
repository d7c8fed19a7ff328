"""Components against NetworkX and the checker, and searches from several vertices."""

import itertools

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of, random_edges
from hypothesis import strategies as st
from loop_names import GENERATED, loop_name
from strategies import for_all

import lagpu
from lagpu import INT32, Matrix
from lagpu.algorithms import (
    bfs_levels,
    bfs_levels_joint,
    connected_components,
    k_hop,
    neighborhood,
    strongly_connected_components,
)
from lagpu.check import check_components, check_k_hop, check_levels_joint
from lagpu.errors import CheckFailed, DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.errors import IndexOutOfBound as Outside


def least(components):
    return {v: min(part) for part in components for v in part}


def prove(A):
    G = networkx_of(A)
    expected = least(nx.weakly_connected_components(G))
    for method in ("fastsv", "bfs"):
        labels = connected_components(A, method=method)
        assert labels.dtype is INT32
        assert entries(labels) == expected
        check_components(A, labels)
    labels = strongly_connected_components(A)
    assert entries(labels) == least(nx.strongly_connected_components(G))
    check_components(A, labels, strong=True)


@for_all(cpu=100, compiled=10)
def test_random_graphs(backend, draw):
    A = drawn(draw, backend, degree=draw(st.sampled_from([1, 3]), label="degree"))
    prove(A)


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    prove(matrix(n, edges, backend))
    prove(matrix(n, both_ways(edges), backend))


@pytest.mark.parametrize("seed", range(3))
def test_many_components(backend, seed):
    """A path in random order, and what is left of a random graph with few edges."""
    n = 200
    order = np.random.default_rng(seed).permutation(n).tolist()
    prove(matrix(n, list(itertools.pairwise(order)), backend))
    prove(matrix(n, random_edges(n, n, seed), backend))


def test_a_chain_of_strong_components(backend):
    """Cycles of three, each leading to the next, downward and upward."""
    around = [(3 * k + i, 3 * k + (i + 1) % 3) for k in range(5) for i in range(3)]
    for step in (3, -3):
        links = [(v, v + step) for v in range(0, 15, 3) if 0 <= v + step < 15]
        labels = strongly_connected_components(matrix(15, around + links, backend))
        assert labels.to_dense().tolist() == [v - v % 3 for v in range(15)]


@pytest.mark.parametrize(
    ("n", "edges"),
    [
        (1, []),
        (1, [(0, 0)]),
        (33, []),
        (33, both_ways([(v, v + 1) for v in range(32)])),
        (40, [(v, (v * 7) % 40) for v in range(40)]),
        (70, both_ways([(v, v % 3) for v in range(3, 70)])),
    ],
    ids=["a vertex", "a loop", "no edges", "a path", "directed", "stars"],
)
def test_the_loop_is_one_program(backend, n, edges):
    if not backend.capabilities.fuses:
        pytest.skip("cpu fuses nothing")
    A = matrix(n, edges, backend)
    labels = connected_components(A)
    assert loop_name(backend) == GENERATED
    assert entries(labels) == least(nx.weakly_connected_components(networkx_of(A)))
    with lagpu.eager():
        assert connected_components(A).isequal(labels)
    assert backend.last_loop.startswith("eager")


def test_values_do_not_matter(backend):
    A = Matrix.from_coo(
        [0, 1, 3], [1, 0, 2], [0.0, np.nan, -1.0], nrows=4, ncols=4, backend=backend
    )
    prove(A)


def test_few_iterations():
    """Hooking and shortcutting: a path of 4096 vertices takes about log n, not n."""
    A = matrix(4096, both_ways([(v, v + 1) for v in range(4095)]), "cpu")
    with lagpu.trace() as traced:
        connected_components(A)
    assert max(row.level for row in traced.rows) < 24


def test_strong_components_of_an_undirected_graph_are_its_components():
    """A path of 4096 vertices takes few products, not one a vertex; one way it is another."""
    A = matrix(4096, both_ways([(v, v + 1) for v in range(4095)]), "cpu")
    with lagpu.trace() as traced:
        labels = strongly_connected_components(A)
    assert len(traced.rows) < 500
    assert set(labels.to_dense()) == {0}
    B = matrix(3, [(0, 1), (1, 2)], "cpu")
    assert strongly_connected_components(B).to_dense().tolist() == [0, 1, 2]


def test_no_vertices(backend):
    A = Matrix("BOOL", 0, 0, backend=backend)
    assert connected_components(A).size == strongly_connected_components(A).size == 0
    assert connected_components(A, method="bfs").nvals == 0


def test_bad_input():
    with pytest.raises(InvalidValue, match=r"no method 'dfs'. Use fastsv or bfs"):
        connected_components(Matrix("BOOL", 2, 2, backend="cpu"), method="dfs")
    for search in (connected_components, strongly_connected_components):
        with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
            search(Matrix("BOOL", 2, 3, backend="cpu"))
        with pytest.raises(DomainMismatch, match="is not a Matrix"):
            search(np.eye(2))


def test_no_vector_is_sent_while_components_are_found(backend, monkeypatch):
    if not backend.capabilities.fuses:
        pytest.skip("vectors of the cpu backend are on the host")
    A = matrix(40, both_ways(random_edges(40, 30, 2)), backend)
    wanted = entries(connected_components(A))

    def refuse(*args):
        raise AssertionError("a vector goes to the host")

    with monkeypatch.context() as patch:
        patch.setattr(type(backend), "vector_to_coo", refuse)
        found = connected_components(A)
    assert entries(found) == wanted


# --------------------------------------------------------------------- from several vertices


@for_all(cpu=60, compiled=8)
def test_joint_searches(backend, draw):
    A = drawn(draw, backend)
    vertex = st.integers(0, A.nrows - 1)
    sources = draw(st.lists(vertex, min_size=1, max_size=4, unique=True), label="sources")
    G = networkx_of(A)
    expected = {}
    for source in sources:
        for v, d in nx.single_source_shortest_path_length(G, source).items():
            expected[v] = min(d, expected.get(v, d))
    assert entries(bfs_levels_joint(A, sources)) == expected
    check_levels_joint(A, sources, bfs_levels_joint(A, sources))
    k = draw(st.integers(0, 5), label="k")
    near = neighborhood(A, sources, k)
    check_levels_joint(A, sources, near, k=k)
    assert entries(near) == {v: d for v, d in expected.items() if d <= k}
    hop = k_hop(A, sources, k)
    assert set(entries(hop)) == {v for v, d in expected.items() if d == k}
    check_k_hop(A, sources, k, hop)
    assert set(entries(k_hop(A, sources[0], k))) == nx.descendants_at_distance(G, sources[0], k) | (
        {sources[0]} if k == 0 else set()
    )


def test_kinds_of_sources(backend):
    A = matrix(4, [(0, 1), (1, 2), (2, 3)], backend)
    for sources in (1, [1], (1,), {1}, range(1, 2), np.array([1], np.uint8)):
        assert bfs_levels_joint(A, sources).isequal(bfs_levels(A, 1))
    assert entries(k_hop(A, 0, 0)) == {0: True}
    assert entries(k_hop(A, 0, 100)) == {}


@pytest.mark.parametrize("search", [bfs_levels_joint, neighborhood, lambda A, s: k_hop(A, s, 1)])
@pytest.mark.parametrize(
    ("sources", "error", "message"),
    [
        ([], InvalidValue, "sources: the list is empty"),
        ([1, 0, 1], InvalidValue, "vertex 1 is given twice"),
        ([0, 4], Outside, "index 4 is outside 0 .. 3"),
        ([-1], Outside, "index -1 is outside"),
        (4, Outside, "index 4 is outside"),
        ([0.5], DomainMismatch, "not integers"),
        ("0", DomainMismatch, "sources"),
        (None, DomainMismatch, "sources"),
    ],
)
def test_bad_sources(search, sources, error, message):
    with pytest.raises(error, match=message):
        search(matrix(4, [(0, 1)], "cpu"), sources)


def test_bad_radii():
    A = matrix(4, [(0, 1)], "cpu")
    for search in (neighborhood, k_hop):
        with pytest.raises(InvalidValue, match="k -1 < 0"):
            search(A, 0, -1)
        with pytest.raises(DomainMismatch, match=r"k 1\.5 is not an integer"):
            search(A, 0, 1.5)


# ------------------------------------------------------------------------ the checkers themselves

# 0 -> 1 -> 2 -> 0, 2 -> 3 and 5 -> 4.
EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (5, 4)]


@pytest.mark.parametrize(
    ("strong", "labels", "message"),
    [
        (False, [0, 0, 0, 0, 4, None], "vertex 5: no label"),
        (False, [0, 0, 0, 0, 4, 6], "vertex 5: label 6"),
        (False, [0, 0, 0, 0, 4, 3.5], "vertex 5: label 3.5"),
        (False, [3, 3, 3, 3, 4, 4], "least vertex with this label: vertex 0: label 3"),
        (False, [0, 0, 0, 3, 4, 4], "vertex 3: label 3, but it is in the component of 0"),
        (False, [0, 0, 0, 0, 0, 0], "vertex 4: label 0, but it is in the component of 4"),
        (True, [0, 0, 0, 0, 4, 5], "vertex 3: label 0, but it is in the component of 3"),
        (True, [0, 1, 2, 3, 4, 5], "vertex 1: label 1, but it is in the component of 0"),
    ],
)
def test_wrong_labels_are_refused(strong, labels, message):
    A = matrix(6, EDGES, "cpu")
    kept = [v for v, label in enumerate(labels) if label is not None]
    values = np.array([labels[v] for v in kept])
    with pytest.raises(CheckFailed, match=message):
        check_components(A, (np.array(kept), values), strong=strong)


def test_right_labels_pass():
    A = matrix(6, EDGES, "cpu")
    vertices = np.arange(6)
    assert len(check_components(A, (vertices, np.array([0, 0, 0, 0, 4, 4])))) == 3
    assert check_components(A, (vertices, np.array([0, 0, 0, 3, 4, 5])), strong=True)


@pytest.mark.parametrize(
    ("levels", "k", "message"),
    [
        ([0, 1, 2, 0, None], None, "level 0: vertex 3: level 0"),
        ([1, 1, 2, 3, 0], None, "level 0: vertex 0: level 1"),
        ([None, 1, 2, 3, 0], None, "level 0: vertex 0: no level"),
        ([0, 1, None, None, 0], None, "vertex 2: no level, but the edge 1 -> 2 comes from level 1"),
        ([0, 1, 3, 4, 0], None, "vertex 2: level 3, but the edge 1 -> 2 comes from level 1"),
        ([0, 1, 1, 2, 0], None, "vertex 2: level 1, but its nearest in-neighbour has level 1"),
        ([0, 1, 2, 3.5, 0], None, "vertex 3: level 3.5"),
        ([0, 1, 2, 3, 0], 2, "vertex 3: level 3"),
        ([0, 1, None, None, 0], 2, "vertex 2: no level"),
    ],
)
def test_wrong_joint_levels_are_refused(levels, k, message):
    A = matrix(5, [(0, 1), (1, 2), (2, 3), (3, 0)], "cpu")
    right = np.array([0, 1, 2, 3, 0])
    check_levels_joint(A, [0, 4], (np.arange(5), right))
    check_levels_joint(A, [0, 4], (np.array([0, 1, 2, 4]), np.array([0, 1, 2, 0])), k=2)
    kept = [v for v, level in enumerate(levels) if level is not None]
    with pytest.raises(CheckFailed, match=message):
        check_levels_joint(A, [0, 4], (np.array(kept), np.array([levels[v] for v in kept])), k=k)
    with pytest.raises(Outside, match="a source is outside"):
        check_levels_joint(A, [5], (np.arange(5), right))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([1], "vertex 2: not a member, at distance 1"),
        ([1, 2, 3], "vertex 3: a member, at distance 2"),
    ],
)
def test_wrong_hops_are_refused(members, message):
    A = matrix(5, [(0, 1), (0, 2), (2, 3)], "cpu")
    assert len(check_k_hop(A, [0], 1, (np.array([1, 2]), np.ones(2)))) == 1
    with pytest.raises(CheckFailed, match=message):
        check_k_hop(A, [0], 1, (np.array(members), np.ones(len(members))))
    with pytest.raises(CheckFailed, match="vertex 4: a member, at distance inf"):
        check_k_hop(A, [0, 3], 1, (np.array([1, 2, 4]), np.ones(3)))
    with pytest.raises(Outside, match="a source is outside"):
        check_k_hop(A, [5], 1, (np.array([1]), np.ones(1)))
