"""Similarity, reciprocity, Laplacian matrices and neighbourhoods, against NetworkX and checkers."""

import math

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of, random_edges
from loop_names import is_fused
from strategies import for_all

from lagpu import BOOL, FP64, Matrix
from lagpu.algorithms import (
    ego_graph,
    k_hop_sizes,
    laplacian_matrix,
    largest_component,
    overall_reciprocity,
    reciprocity,
    similarity,
)
from lagpu.algorithms.similarity import KINDS
from lagpu.check import (
    check_ego_graph,
    check_k_hop_sizes,
    check_laplacian,
    check_largest_component,
    check_reciprocity,
    check_similarity,
)
from lagpu.errors import (
    CheckFailed,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
)
from lagpu.generators import star
from lagpu.io import to_scipy

THEIRS = {
    "adamic_adar": nx.adamic_adar_index,
    "jaccard": nx.jaccard_coefficient,
    "preferential_attachment": nx.preferential_attachment,
    "resource_allocation": nx.resource_allocation_index,
    "common_neighbors": lambda G, pairs: ((u, v, len(nx.common_neighbors(G, u, v)))
                                          for u, v in pairs),
    "cosine": lambda G, pairs: ((u, v, len(nx.common_neighbors(G, u, v))
                                 / math.sqrt(max(1, G.degree[u] * G.degree[v])))
                                for u, v in pairs),
}  # fmt: skip


def edges_of(A):
    rows, cols, values = A.to_coo()
    return dict(zip(zip(rows.tolist(), cols.tolist(), strict=True), values.tolist(), strict=True))


def prove_pairs(A, kinds=KINDS):
    G = networkx_of(A, directed=False)
    G.remove_edges_from(list(nx.selfloop_edges(G)))
    some = [(u, v) for u in range(0, A.nrows, 2) for v in range(A.nrows) if u != v]
    for kind in kinds:
        found = similarity(A, some, kind=kind)
        assert found.dtype is FP64
        assert edges_of(found) == pytest.approx({(u, v): x for u, v, x in THEIRS[kind](G, some)})
        check_similarity(A, found, some, kind=kind)
        every = similarity(A, kind=kind)
        check_similarity(A, every, kind=kind)
    assert similarity(A, every).isequal(similarity(A))


def prove_directed(A):
    G = networkx_of(A)
    share = reciprocity(A)
    wanted = {v: x for v, x in nx.reciprocity(G, list(G)).items() if x is not None}
    assert entries(share) == pytest.approx(wanted)
    check_reciprocity(A, share)
    if A.nvals:
        found = overall_reciprocity(A)
        assert found == pytest.approx(nx.overall_reciprocity(G))
        check_reciprocity(A, found)
    for strong, find in ((False, nx.weakly_connected_components),
                         (True, nx.strongly_connected_components)):  # fmt: skip
        members = largest_component(A, strong=strong)
        right = min(find(G), key=lambda some: (-len(some), min(some)))
        assert set(entries(members)) == right
        check_largest_component(A, members, strong=strong)


def prove_near(A, vertex):
    G = networkx_of(A)
    for radius in (0, 1, 2):
        for options in ({}, {"center": False}, {"undirected": True}):
            found = ego_graph(A, vertex, radius, **options)
            theirs = nx.ego_graph(G, vertex, radius, **options)
            assert edges_of(found) == {(u, v): w for u, v, w in theirs.edges(data="weight")}
            check_ego_graph(A, vertex, found, radius, **options)
        check_k_hop_sizes(A, radius, k_hop_sizes(A, radius))
    # NetworkX takes a radius of 2.5 for 3.
    assert ego_graph(A, vertex, 2.5).isequal(ego_graph(A, vertex, 2))
    near = nx.single_source_shortest_path_length(G, vertex, 2)
    assert entries(k_hop_sizes(A, 2, vertex)) == {vertex: len(near) - 1}


@for_all(cpu=60, compiled=4)
def test_pairs_of_random_graphs(backend, draw):
    prove_pairs(drawn(draw, backend, directed=False, degree=4))


@for_all(cpu=60, compiled=4)
def test_random_directed_graphs(backend, draw):
    A = drawn(draw, backend, directed=True, weights="whole")
    prove_directed(A)
    prove_near(A, A.nrows // 2)
    for weight in (True, False):
        found = laplacian_matrix(A, weight=weight)
        theirs = nx.laplacian_matrix(networkx_of(A), range(A.nrows), "weight" if weight else None)
        assert np.array_equal(to_scipy(found).toarray(), theirs.toarray())
        check_laplacian(A, found, weight=weight)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    A = matrix(n, both_ways(edges), backend)
    prove_pairs(A, KINDS[3:])
    prove_directed(matrix(n, edges, backend))
    found = laplacian_matrix(A, normalized=True)
    theirs = nx.normalized_laplacian_matrix(networkx_of(A, directed=False), range(n))
    assert to_scipy(found).toarray() == pytest.approx(theirs.toarray())
    check_laplacian(A, found, normalized=True)


def test_by_lengths(backend):
    edges = [(u, v, 1 + (3 * u + v) % 5) for u, v in dict.fromkeys(random_edges(33, 90, 2))]
    A = matrix(33, edges, backend, weights="whole")
    for radius in (0, 3, 4.5):
        found = ego_graph(A, 4, radius, weight=True)
        theirs = nx.ego_graph(networkx_of(A), 4, radius, distance="weight")
        assert edges_of(found) == {(u, v): w for u, v, w in theirs.edges(data="weight")}
    A[32, 0] = -1
    for radius in (0, 3, math.inf):
        with pytest.raises(InvalidValue, match=r"ego_graph: a weight is -1 < 0"):
            ego_graph(A, 4, radius, weight=True)


@pytest.mark.parametrize("n", [31, 70])
def test_searches_are_one_kernel(backend, n):
    """Also of more vertices than one word of a search has."""
    A = matrix(n, random_edges(n, 3 * n, n), backend)
    for find in (lambda: k_hop_sizes(A, 2), lambda: ego_graph(A, 0, 2),
                 lambda: largest_component(A)):  # fmt: skip
        find()
        assert backend.name not in ("sim", "gpu") or is_fused(A.backend.last_loop)
    check_k_hop_sizes(A, 2, k_hop_sizes(A, 2))
    check_k_hop_sizes(A, 3, k_hop_sizes(A, 3, [5, 2, 9]), [5, 2, 9])


@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_edges(backend, n):
    A = Matrix(FP64, n, n, backend=backend)
    for found in (similarity(A), laplacian_matrix(A), laplacian_matrix(A, normalized=True)):
        assert (found.shape, found.nvals) == ((n, n), 0)
    assert entries(reciprocity(A)) == {}
    assert entries(largest_component(A)) == ({0: True} if n else {})
    assert k_hop_sizes(A, 3).to_dense().tolist() == [0] * n
    with pytest.raises(InvalidValue, match="overall_reciprocity: the graph has no edges"):
        overall_reciprocity(A)
    assert similarity(A, []).nvals == 0


def test_a_vertex_with_itself(backend):
    A = star(4, backend=backend)
    found = similarity(A, [(0, 0), (1, 1)], kind="adamic_adar")
    assert found.get(0, 0) == np.inf  # the leaves have no other neighbour: 1 / log(1)
    assert found.get(1, 1) == pytest.approx(1 / np.log(3))


def test_bad_input(backend):
    A = matrix(3, both_ways([(0, 1), (1, 2)]), backend)
    with pytest.raises(InvalidValue, match=r"there is no kind 'dice'\. Use one of adamic_adar, "):
        similarity(A, kind="dice")
    with pytest.raises(InvalidValue, match="similarity: an edge has no reverse"):
        similarity(matrix(3, [(0, 1)], backend))
    with pytest.raises(IndexOutOfBound, match="similarity: pairs"):
        similarity(A, [(0, 3)])
    with pytest.raises(DimensionMismatch, match=r"pairs.shape \(2, 2\)"):
        similarity(A, Matrix(BOOL, 2, 2, like=A))
    for pairs in ([0, 1], [(0, 1, 2)]):
        with pytest.raises(DomainMismatch, match="are not pairs of vertices"):
            similarity(A, pairs)
    for radius in (-1, float("nan")):
        with pytest.raises(InvalidValue, match="ego_graph: radius"):
            ego_graph(A, 0, radius)
    with pytest.raises(IndexOutOfBound, match="ego_graph: n"):
        ego_graph(A, 3)
    with pytest.raises(InvalidValue, match="k_hop_sizes: k"):
        k_hop_sizes(A, -1)
    with pytest.raises(InvalidValue, match="laplacian_matrix: the sum of a row is negative"):
        laplacian_matrix(A.dup(FP64).apply("ainv").new(), normalized=True)
    for find in (similarity, reciprocity, overall_reciprocity, laplacian_matrix):
        with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
            find(Matrix(BOOL, 2, 3, like=A))


# -------------------------------------------------------------------------- the checkers themselves

A = matrix(4, [(0, 1, 2), (1, 0, 2), (1, 2, 3), (2, 1, 3), (0, 3, 1), (3, 0, 1)], "cpu",
           weights="whole")  # fmt: skip
ONE_WAY = matrix(4, [(0, 1), (1, 0), (1, 2), (3, 3)], "cpu")


def changed(B, i, j, value):
    """The matrix with another value at one place, or none there."""
    wrong = B.dup()
    if value is None:
        del wrong[i, j]
    else:
        wrong[i, j] = value
    return wrong


@pytest.mark.parametrize(
    ("check", "right", "i", "j", "value", "message"),
    [
        (check_similarity, similarity(A), 0, 2, None, r"every pair.*\(0, 2\) is missing"),
        (check_similarity, similarity(A), 0, 1, 0.5, r"every pair.*\(0, 1\) is not one"),
        (check_similarity, similarity(A), 0, 2, 0.25, r"\(0, 2\): 0.25, not 0.5"),
        (check_laplacian, laplacian_matrix(A), 0, 1, 2.0, r"\(0, 1\): 2.0, not -2.0"),
        (check_laplacian, laplacian_matrix(A), 0, 0, None, r"\(0, 0\): 0.0, not 3.0"),
        (
            lambda A, x: check_ego_graph(A, 0, x),
            ego_graph(A, 0),
            0,
            3,
            None,
            r"\(0, 3\) is missing",
        ),
        (lambda A, x: check_ego_graph(A, 0, x), ego_graph(A, 0), 1, 2, 3, "is not one"),
        (lambda A, x: check_ego_graph(A, 0, x), ego_graph(A, 0), 0, 1, 3, r"\(0, 1\): 3, not"),
    ],
)
def test_wrong_matrices_are_refused(check, right, i, j, value, message):
    check(A, right)
    with pytest.raises(CheckFailed, match=message):
        check(A, changed(right, i, j, value))


@pytest.mark.parametrize(
    ("check", "right", "v", "value", "message"),
    [
        (check_reciprocity, reciprocity(ONE_WAY), 1, 0.5, "vertex 1: 0.5, not 0.66"),
        (check_reciprocity, reciprocity(ONE_WAY), 2, None, "vertex 2: no share"),
        (lambda A, x: check_k_hop_sizes(A, 1, x), k_hop_sizes(ONE_WAY, 1), 0, 2, "0: 2, not 1"),
        (lambda A, x: check_k_hop_sizes(A, 1, x), k_hop_sizes(ONE_WAY, 1), 0, None, "0: no size"),
        (
            lambda A, x: check_k_hop_sizes(A, 1, x, [2, 0]),
            k_hop_sizes(ONE_WAY, 1, [2, 0]),
            2,
            None,
            "2: no size",
        ),
        (check_largest_component, largest_component(ONE_WAY), 3, True, "vertex 3: a member"),
        (check_largest_component, largest_component(ONE_WAY), 1, None, "vertex 1: no member"),
    ],
)
def test_wrong_vectors_are_refused(check, right, v, value, message):
    check(ONE_WAY, right)
    wrong = {u: x for u, x in (entries(right) | {v: value}).items() if x is not None}
    with pytest.raises(CheckFailed, match=message):
        check(ONE_WAY, (np.array(list(wrong)), np.array(list(wrong.values()))))


def test_a_wrong_share_is_refused():
    check_reciprocity(ONE_WAY, overall_reciprocity(ONE_WAY))
    for wrong in (0.75, float("nan")):
        with pytest.raises(CheckFailed, match=r"not 0\.5"):
            check_reciprocity(ONE_WAY, wrong)
