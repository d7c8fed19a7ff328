"""Triangles against NetworkX and the checkers."""

import importlib

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of, random_edges
from hypothesis import strategies as st
from strategies import for_all

from lagpu import FP64, INT64, Matrix
from lagpu.algorithms import (
    average_clustering,
    clustering,
    square_clustering,
    transitivity,
    triangle_centrality,
    triangle_count,
    triangles,
)
from lagpu.algorithms.inputs import simple
from lagpu.backends.gpu.storage import forms
from lagpu.check import (
    check_clustering,
    check_square_clustering,
    check_transitivity,
    check_triangle_centrality,
    check_triangle_count,
    check_triangles,
)
from lagpu.errors import (
    CheckFailed,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
)
from lagpu.generators import delaunay, kronecker
from lagpu.io import from_networkx

triangles_module = importlib.import_module(triangles.__module__)  # its name is the function's

ALL = (triangle_count, triangles, clustering, transitivity)
PROOFS = (check_triangle_count, check_triangles, check_clustering, check_transitivity)


def prove(A, G=None):
    G = networkx_of(A, directed=False) if G is None else G
    count, each, share, whole = (find(A) for find in ALL)
    assert type(count) is int
    assert (each.dtype, share.dtype) == (INT64, FP64)
    assert entries(each) == nx.triangles(G)
    assert count == sum(nx.triangles(G).values()) // 3
    assert entries(share) == pytest.approx(nx.clustering(G), rel=1e-15)
    assert whole == pytest.approx(nx.transitivity(G), rel=1e-15)
    for check, found in zip(PROOFS, (count, each, share, whole), strict=True):
        check(A, found)
    assert average_clustering(A) == pytest.approx(nx.average_clustering(G), rel=1e-12)
    if any(nx.clustering(G).values()):
        theirs = nx.average_clustering(G, count_zeros=False)
        assert average_clustering(A, count_zeros=False) == pytest.approx(theirs, rel=1e-12)
    else:
        assert average_clustering(A, count_zeros=False) == 0
    theirs = nx.average_clustering(G, [A.nrows - 1])
    assert average_clustering(A, A.nrows - 1) == pytest.approx(theirs, rel=1e-12)


@for_all(cpu=80, compiled=12)
def test_random_graphs(backend, draw):
    prove(drawn(draw, backend, directed=False, degree=6))


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    prove(matrix(n, both_ways(edges), backend))


def test_a_larger_graph(backend):
    prove(matrix(200, both_ways(random_edges(200, 2500, 3)), backend))


@pytest.mark.parametrize("shift", [0, 97])
def test_hubs_are_the_last_vertices(backend, shift):
    """Few vertices have most edges, the first ones or others: edges then lead to them."""
    hubs = [(u, v) for u in range(3) for v in range(u + 1, 100)]
    moved = ((np.array(hubs + random_edges(100, 60, 5)) + shift) % 100).tolist()
    A = matrix(100, both_ways([tuple(edge) for edge in moved]), backend)
    whole = simple(A, "")
    degree = np.diff(whole.to_csc()[0])
    assert degree.max() * whole.nrows > triangles_module._HUB * whole.nvals
    down, up = triangles_module._halves(whole)
    rows, cols, _ = up.to_coo()
    keys = degree * 100 + np.arange(100)
    assert (keys[rows] < keys[cols]).all()
    assert 2 * len(rows) == whole.nvals
    back, there, _ = down.to_coo()
    assert set(zip(rows, cols, strict=True)) == set(zip(there, back, strict=True))
    prove(A)


@pytest.mark.parametrize("most", [32, 33])
def test_few_neighbours_are_not_halved(backend, most):
    """Up to 32 edges a vertex all of its edges are compared, above that the halves."""
    clique = [(u, v) for u in range(most + 1) for v in range(u)]
    A = matrix(most + 40, both_ways([*clique, (most, most + 2), (0, most + 2)]), backend)
    A[0, 0] = True
    largest = int(np.diff(simple(A, "").to_csc()[0]).max())
    assert (triangles_module._halves(simple(A, "")) is None) == (largest <= triangles_module._SHORT)
    prove(A)


def test_an_undirected_graph_is_not_sorted(backend, monkeypatch):
    if backend.name not in ("sim", "gpu"):
        pytest.skip("its matrices have no forms")
    sorted_, sort = [], forms.transpose

    def watched(A, *args):
        sorted_.append(A.shape)
        return sort(A, *args)

    monkeypatch.setattr(forms, "transpose", watched)
    for A in (delaunay(6, backend=backend), kronecker(6, backend=backend)):
        for find in ALL:
            sorted_.clear()
            find(A)
            assert A.shape not in sorted_


@pytest.mark.parametrize("nodes", [3, [1, 4], {0}])
def test_some_vertices(backend, nodes):
    A = matrix(6, both_ways(random_edges(6, 12, 1)), backend)
    wanted = {nodes} if isinstance(nodes, int) else set(nodes)
    for find in (triangles, clustering):
        every = entries(find(A))
        assert len(every) == 6
        assert entries(find(A, nodes)) == {v: every[v] for v in wanted}
        with pytest.raises(IndexOutOfBound, match="nodes"):
            find(A, 6)


def test_values_and_parallel_edges_do_not_count(backend):
    G = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 0), (2, 2), (2, 3)])
    nx.set_edge_attributes(G, {e: k for k, e in enumerate(G.edges(keys=True))}, "w")
    A = from_networkx(G, weight="w", backend=backend)
    prove(A, nx.Graph(G))
    skew = Matrix.from_coo([0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2], [1, 2, 3, 4, -5, 0], like=A)
    assert triangle_count(skew) == 1


def test_no_vertices(backend):
    A = Matrix("BOOL", 0, 0, backend=backend)
    assert (triangle_count(A), transitivity(A)) == (0, 0.0)
    assert triangles(A).size == clustering(A).size == 0


@pytest.mark.parametrize("find", [*ALL, triangle_centrality, square_clustering])
def test_bad_input(find):
    if find not in (clustering, transitivity):
        with pytest.raises(InvalidValue, match=f"{find.__name__}: an edge has no reverse"):
            find(matrix(3, [(0, 1), (1, 2), (2, 0)], "cpu"))
    with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
        find(Matrix("BOOL", 2, 3, backend="cpu"))
    with pytest.raises(DomainMismatch, match="is not a Matrix"):
        find(np.eye(2))


def test_the_remedy_of_a_directed_graph_is_one():
    A = matrix(3, [(0, 1), (1, 2), (2, 0)], "cpu")
    assert triangle_count(A.ewise_add(A.T, "max").new()) == 1


# -------------------------------------------------------------------------- the checkers themselves

# Two triangles that share 1 -- 2, and a tail 3 -- 4.
EDGES = both_ways([(0, 1), (1, 2), (2, 0), (1, 3), (2, 3), (3, 4)])
EACH = [1, 2, 2, 1, 0]
SHARES = [1, 2 / 3, 2 / 3, 1 / 3, 0]


@pytest.mark.parametrize(
    ("check", "right", "v", "value", "message"),
    [
        (check_triangles, EACH, 1, None, "vertex 1: no number"),
        (check_triangles, EACH, 1, 1, "vertex 1: 1, not 2"),
        (check_triangles, EACH, 4, 1, "vertex 4: 1, not 0"),
        (check_triangles, EACH, 0, np.nan, "vertex 0: nan, not 1"),
        (check_clustering, SHARES, 0, None, "vertex 0: no number"),
        (check_clustering, SHARES, 3, 0.33, "vertex 3: 0.33, not 0.333"),
        (check_clustering, SHARES, 4, 1e-9, "vertex 4: 1e-09, not 0"),
    ],
)
def test_wrong_numbers_are_refused(check, right, v, value, message):
    A = matrix(5, EDGES, "cpu")
    assert len(check(A, (np.arange(5), np.array(right)))) == 2
    wrong = {k: x for k, x in (dict(enumerate(right)) | {v: value}).items() if x is not None}
    with pytest.raises(CheckFailed, match=message):
        check(A, (np.array(list(wrong)), np.array(list(wrong.values()))))


def test_wrong_totals_are_refused():
    A = matrix(5, EDGES, "cpu")
    check_triangle_count(A, 2)
    check_transitivity(A, 0.6)
    for wrong in (0, 1, 3, 6):
        with pytest.raises(CheckFailed, match=f"{wrong}, but there are 2"):
            check_triangle_count(A, wrong)
    for share in (0.0, 0.5, float("nan"), 0.2):
        with pytest.raises(CheckFailed, match=r"but the share is 0\.6"):
            check_transitivity(A, share)


@pytest.mark.parametrize(
    "check",
    [check_triangle_count, check_triangles, check_triangle_centrality, check_square_clustering],
)
def test_checkers_refuse_directed_graphs(check):
    A = matrix(3, [(0, 1), (1, 2), (2, 0)], "cpu")
    with pytest.raises(InvalidValue, match="the graph is directed"):
        check(A, 1 if check is check_triangle_count else (np.arange(3), np.ones(3)))


def test_a_mean_without_zeros_has_what_is_below_zero(backend):
    edges = [(0, 1, -1), (1, 2, 1), (0, 2, 1), (2, 3, 2)]
    A = matrix(4, both_ways(edges), backend, weights="whole")
    theirs = nx.average_clustering(networkx_of(A, directed=False), None, "weight", False)
    assert theirs < 0
    assert average_clustering(A, None, True, False) == pytest.approx(theirs)


# ------------------------------------------- directions, weights, squares, and triangle centrality


def check_everything(A, directed):
    G = networkx_of(A, directed=directed)
    for weight in (False, True):
        found = clustering(A, weight=weight)
        theirs = nx.clustering(G, weight="weight" if weight else None)
        assert entries(found) == pytest.approx(theirs, rel=1e-12)
        check_clustering(A, found, weight=weight)
    assert transitivity(A) == pytest.approx(nx.transitivity(G), rel=1e-15)
    check_transitivity(A, transitivity(A))
    assert average_clustering(A, [0], True) == pytest.approx(theirs[0], rel=1e-12)
    if not directed:
        found = square_clustering(A)
        assert entries(found) == pytest.approx(nx.square_clustering(G), rel=1e-12)
        check_square_clustering(A, found)
        check_triangle_centrality(A, triangle_centrality(A))


def test_shares_of_fp32_weights_have_the_precision_of_fp64(backend):
    edges = both_ways([(0, 1, 1), (1, 2, 3), (0, 2, 7)])
    check_everything(matrix(3, edges, backend, weights="whole").dup("FP32"), directed=False)


@for_all(cpu=60, compiled=3)
def test_random_graphs_of_weights(backend, draw):
    """Weights of both directions differ unless the graph is undirected."""
    n, directed = draw(st.integers(1, 9), label="n"), draw(st.booleans(), label="directed")
    edge = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(1, 9))
    edges = draw(st.lists(edge, max_size=4 * n), label="edges") or [(0, 0, 1)]
    check_everything(matrix(n, edges if directed else both_ways(edges), backend, weights="whole"),
                     directed)  # fmt: skip


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs_of_squares(backend, name):
    n, edges = AWKWARD[name]
    check_everything(matrix(n, both_ways(edges), backend), False)


def test_a_directed_graph_of_an_undirected_one_is_the_same(backend):
    edges = both_ways([(u, v, 1 + u % 3) for u, v in random_edges(12, 30, 4)])
    A = matrix(12, edges, backend, weights="whole")
    B = A.dup(FP64)
    u, v = next((u, v) for u, v, _ in edges if u != v)
    B[u, v] = B.get(u, v) * (1 + 1e-13)  # so that both directions are added up
    assert clustering(A, weight=True).isclose(clustering(B, weight=True), rel_tol=1e-12)


def test_triangle_centrality_of_two_triangles(backend):
    """By hand: a vertex of the common edge is in all, and its neighbours are in all."""
    A = matrix(5, EDGES, backend)
    found = triangle_centrality(A)
    assert found.to_dense() == pytest.approx([5 / 6, 1, 1, 5 / 6, 1 / 2])
    assert triangle_centrality(matrix(3, both_ways([(0, 1)]), backend)).to_dense().sum() == 0


def test_wrong_shares_of_directed_graphs_and_squares():
    A = matrix(4, [(0, 1), (1, 2), (2, 0), (0, 2)], "cpu")
    for share in (0.0, 0.9):
        with pytest.raises(CheckFailed, match="but the share is"):
            check_transitivity(A, share)
    with pytest.raises(CheckFailed, match="vertex 0"):
        check_clustering(A, (np.arange(4), np.ones(4)))
    B = matrix(5, EDGES, "cpu")
    with pytest.raises(CheckFailed, match="vertex"):
        check_square_clustering(B, clustering(B))
    with pytest.raises(CheckFailed, match="vertex"):
        check_triangle_centrality(B, clustering(B))
    with pytest.raises(InvalidValue, match="the largest weight is -1"):
        clustering(matrix(2, [(0, 1, -1)], "cpu", weights="whole"), weight=True)
