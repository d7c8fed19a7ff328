"""Breadth-first search and path counts against NetworkX, SciPy, the checkers and GraphBLAS."""

import ast
import inspect
import textwrap
from contextlib import nullcontext
from itertools import product

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from samples import picked, sampled
from strategies import for_all

import lagpu
from lagpu import BOOL, INT32, INT64, Matrix, algorithms, generators
from lagpu.algorithms import bfs, bfs_levels, bfs_parents, count_shortest_paths
from lagpu.algorithms.inputs import index_type
from lagpu.check import check_levels, check_parents, check_paths
from lagpu.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound, LimitExceeded

SIZES = (1, 2, 3, 31, 32, 33, 1023, 1025)


def graph(n, edges, backend, *, directed=True):
    edges = np.array(sorted(set(edges)), np.int64).reshape(-1, 2)
    if not directed:
        edges = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    return Matrix.from_coo(edges[:, 0], edges[:, 1], nrows=n, ncols=n, backend=backend)


def networkx_of(A):
    rows, cols, _ = A.to_coo()
    G = nx.DiGraph()
    G.add_nodes_from(range(A.nrows))
    G.add_edges_from(zip(rows.tolist(), cols.tolist(), strict=True))
    return G


def entries(v):
    return dict(zip(*(x.tolist() for x in v.to_coo()), strict=True))


def path_counts(G, source):
    """Count shortest paths by adding up along levels, with Python's own integers."""
    counts, level = {source: 1}, nx.single_source_shortest_path_length(G, source)
    for v in sorted(level, key=level.get):
        if v != source:
            before = (u for u in G.predecessors(v) if level.get(u) == level[v] - 1)
            counts[v] = sum(counts[u] for u in before)
    return counts


def prove(A, source):
    """Check all three algorithms on one graph in every way there is."""
    G = networkx_of(A)
    expected = dict(nx.single_source_shortest_path_length(G, source))
    levels, parents = bfs_levels(A, source), bfs_parents(A, source)
    paths = count_shortest_paths(A, source)
    assert (levels.dtype, parents.dtype, paths.dtype.name) == (INT32, INT32, "FP64")
    assert entries(levels) == expected
    rows, cols, _ = A.to_coo()
    ones = np.ones(len(rows))
    distances = scipy.sparse.csgraph.dijkstra(
        scipy.sparse.csr_array((ones, (rows, cols)), shape=A.shape), indices=source, unweighted=True
    )
    assert entries(levels) == {int(v): int(distances[v]) for v in np.flatnonzero(distances < 1e300)}
    got = entries(parents)
    assert got.keys() == expected.keys()
    assert got[source] == source
    for v, parent in got.items():
        if v != source:
            assert G.has_edge(parent, v)
            assert expected[v] == expected[parent] + 1
    assert entries(paths) == path_counts(G, source)
    both = bfs(A, source)
    assert both[0].isequal(levels)
    check_levels(A, source, levels)
    check_parents(A, source, parents, levels)
    check_parents(A, source, both[1], both[0])
    check_paths(A, source, paths, levels)


@for_all(cpu=120, compiled=30)
def test_random_graphs(backend, draw):
    n = draw(st.integers(1, 40), label="n")
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=3 * n), label="edges")
    A = graph(n, edges, backend, directed=draw(st.booleans(), label="directed"))
    prove(A, draw(vertex, label="source"))


def random_edges(n, degree, seed):
    generator = np.random.default_rng(seed)
    return [tuple(e) for e in generator.integers(0, n, (n * degree, 2)).tolist()]


FAMILIES = {
    "empty": lambda n: [],
    "loops": lambda n: [(v, v) for v in range(n)],
    "path": lambda n: [(v, v + 1) for v in range(n - 1)][:60],
    "cycle": lambda n: [(v, (v + 1) % n) for v in range(n)][-60:],
    "star out": lambda n: [(0, v) for v in range(1, n)],
    "star in": lambda n: [(v, 0) for v in range(1, n)],
    "hub": lambda n: [(0, 1 % n), *((1 % n, v) for v in range(n)), *((v, n - 1) for v in range(n))],
    "isolated root": lambda n: [(u, v) for u, v in random_edges(n, 3, 1) if 0 not in (u, v)],
    "random": lambda n: random_edges(n, 4, 2),
    "tree": lambda n: [(v, w) for v in range(n) for w in (2 * v + 1, 2 * v + 2) if w < n],
}


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("n", "family", "directed"), sampled(product(SIZES, FAMILIES, (True, False)), 3)
)
def test_families(backend, n, family, directed):
    A = graph(n, FAMILIES[family](n), backend, directed=directed)
    prove(A, 0)
    if n > 1 and family in ("path", "tree", "random"):
        prove(A, n - 1)


@pytest.mark.parametrize("n", [1, 2, 31, 33])
def test_complete_graphs(backend, n):
    A = graph(n, [(u, v) for u in range(n) for v in range(n) if u != v], backend)
    prove(A, n // 2)
    assert bfs_levels(A, 0).reduce("max").new() == min(1, n - 1)


def test_direction_of_edges(backend):
    """Row i, column j is the edge i -> j: the other way round nothing is reached."""
    A = graph(3, [(0, 1), (1, 2)], backend)
    assert entries(bfs_levels(A, 0)) == {0: 0, 1: 1, 2: 2}
    assert entries(bfs_levels(A, 2)) == {2: 0}
    assert entries(bfs_levels(A.T.new(), 2)) == {0: 2, 1: 1, 2: 0}


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("values", [[0, 0, 0], [0.5, -1.0, float("nan")], [False, True, False]])
def test_values_do_not_matter(backend, values):
    """An entry is an edge whatever its value, zero included."""
    A = Matrix.from_coo([0, 1, 2], [1, 2, 0], values, backend=backend)
    assert entries(bfs_levels(A, 0)) == {0: 0, 1: 1, 2: 2}
    assert entries(bfs_parents(A, 0)) == {0: 0, 1: 0, 2: 1}
    assert entries(count_shortest_paths(A, 0)) == {0: 1.0, 1: 1.0, 2: 1.0}


def test_counts_do_not_wrap(backend):
    """A chain of 70 diamonds has 2**70 paths: beyond 64 bits, exact in FP64."""
    edges = [
        e
        for k in range(0, 210, 3)
        for e in ((k, k + 1), (k, k + 2), (k + 1, k + 3), (k + 2, k + 3))
    ]
    paths = count_shortest_paths(graph(211, edges, backend), 0)
    assert paths.get(210) == 2.0**70


@pytest.mark.parametrize(
    "fused", picked([True, False], True, rest="exhaustive"), ids=["fused", "eager"]
)
def test_counts_that_do_not_fit_are_refused(backend, fused):
    """As betweenness does; a chain of 256 bundles of 16 paths each has 2**1024 paths."""
    bundle = np.array([(0, k) for k in range(1, 17)] + [(k, 17) for k in range(1, 17)])
    edges = np.concatenate([bundle + 17 * k for k in range(256)])
    A = Matrix.from_coo(*edges.T, nrows=4353, ncols=4353, backend=backend)
    with nullcontext() if fused else lagpu.eager():
        with pytest.raises(LimitExceeded, match=r"from vertex 0 there are more than 1\.8e308"):
            count_shortest_paths(A, 0)
        assert count_shortest_paths(A, 17).reduce("max").new().value == 2.0**1020


@pytest.mark.each_value
@pytest.mark.parametrize("search", [bfs_levels, bfs_parents, bfs, count_shortest_paths])
@pytest.mark.parametrize(
    ("source", "error", "built_in"),
    [
        (4, IndexOutOfBound, IndexError),
        (-1, IndexOutOfBound, IndexError),
        (1.0, DomainMismatch, TypeError),
        ("0", DomainMismatch, TypeError),
        (True, DomainMismatch, TypeError),
        (None, DomainMismatch, TypeError),
    ],
)
def test_bad_sources(backend, search, source, error, built_in):
    A = graph(4, [(0, 1)], backend)
    with pytest.raises(error, match="source") as caught:
        search(A, source)
    assert isinstance(caught.value, built_in)


@pytest.mark.parametrize("search", [bfs_levels, bfs_parents, bfs, count_shortest_paths])
def test_bad_graphs(backend, search):
    with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
        search(Matrix("BOOL", 2, 3, backend=backend), 0)
    with pytest.raises(IndexOutOfBound, match="source"):
        search(Matrix("BOOL", 0, 0, backend=backend), 0)
    with pytest.raises(DomainMismatch, match=r"ndarray is not a Matrix\. Make one with lagpu\.io"):
        search(np.eye(3), 0)
    with pytest.raises(DomainMismatch, match=r"TransposedMatrix is .* Write x\.new\(\)"):
        search(Matrix("BOOL", 2, 2, backend=backend).T, 0)


def test_numpy_integers_are_sources(backend):
    A = graph(4, [(3, 1)], backend)
    assert entries(bfs_levels(A, np.uint8(3))) == {3: 0, 1: 1}


def test_parents_of_huge_graphs_are_64_bit():
    class Sized:
        nrows = 2**31

    assert index_type(Sized()) is INT32
    Sized.nrows += 1
    assert index_type(Sized()) is INT64


# --------------------------------------------------------------- the text, on GraphBLAS itself


def loop_text(function):
    """The loop of a function, as written."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    (body,) = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    return ast.unparse(body)


def graphblas_loop(*, until_empty):
    depth = 0
    while until_empty.nvals:
        yield depth
        depth += 1


@pytest.mark.parametrize(
    ("function", "result", "dtype", "first"),
    [(bfs_levels, "levels", "BOOL", True), (bfs_parents, "parents", "INT32", None)],
)
def test_the_loop_runs_on_python_graphblas_as_it_stands(function, result, dtype, first):
    gb = pytest.importorskip("graphblas")

    class Semirings:
        any_pair = gb.semiring.any_pair
        any_secondi = gb.semiring.ss.any_secondi

    n, source = 50, 3
    A = graph(n, random_edges(n, 2, 5), "cpu")
    rows, cols, _ = A.to_coo()
    frontier = gb.Vector(dtype, n)
    frontier[source] = source if first is None else first
    names = {
        "A": gb.Matrix.from_coo(rows, cols, True, nrows=n, ncols=n),
        "frontier": frontier,
        result: gb.Vector("INT32", n),
        "semiring": Semirings,
        "loop": graphblas_loop,
    }
    text = loop_text(function)
    assert "<<" in text
    exec(text, names)
    indices, values = names[result].to_coo()
    theirs = dict(zip(indices.tolist(), values.tolist(), strict=True))
    if result == "levels":
        assert theirs == entries(bfs_levels(A, source))
    else:
        check_parents(A, source, (indices.astype(np.int64), values), bfs_levels(A, source))


@pytest.mark.parametrize("search", [bfs_levels, bfs_parents, bfs])
def test_a_graph_without_vertices_has_no_source(backend, search):
    with pytest.raises(IndexOutOfBound, match=r"^source: the graph has no vertices\. Give a graph"):
        search(Matrix(BOOL, 0, 0, backend=backend), 0)


@pytest.mark.parametrize("place", ["cpu", "sim", "grid:2:sim"])
@pytest.mark.parametrize("k", [2**32 - 1, 2**32, 2**64, 10**30])
def test_a_radius_may_be_any_integer(place, k):
    A = generators.path(5, backend=place)
    assert algorithms.neighborhood(A, 1, k).to_dense().tolist() == [1, 0, 1, 2, 3]
    assert algorithms.k_hop(A, 1, k).nvals == 0
    assert algorithms.k_hop_sizes(A, k).to_dense().tolist() == [4] * 5
    assert algorithms.pagerank(A, max_iter=k).nvals == 5
