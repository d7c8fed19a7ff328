"""Eigenvector, Katz and degree centralities, hubs and authorities: NetworkX and the checkers."""

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of
from hypothesis import strategies as st
from loop_names import is_fused
from strategies import for_all

from lagpu import FP64, Matrix, Vector
from lagpu.algorithms import (
    degree_centrality,
    eigenvector_centrality,
    hits,
    in_degree_centrality,
    katz_centrality,
    out_degree_centrality,
    pagerank,
)
from lagpu.check import (
    check_degree_centrality,
    check_eigenvector,
    check_hits,
    check_katz,
    check_pagerank,
)
from lagpu.errors import CheckFailed, DimensionMismatch, DomainMismatch, InvalidValue, NotConverged

DEGREES = {
    "all": (degree_centrality, nx.degree_centrality),
    "in": (in_degree_centrality, nx.in_degree_centrality),
    "out": (out_degree_centrality, nx.out_degree_centrality),
}


def strong(backend, weights="float", n=17):
    """A strongly connected graph, so that eigenvectors are unique."""
    edges = [(v, (v + 1) % n, 1 + v % 3) for v in range(n)]
    edges += [(v, v * v % n, 0.5 + v % 2) for v in range(n)] + [(0, v, 2) for v in (3, 5, 9)]
    return matrix(n, edges, backend, weights=weights)


@pytest.mark.parametrize("weights", ["ones", "whole", "float"])
@pytest.mark.parametrize("weight", [True, False])
def test_iterations_are_those_of_networkx(backend, weights, weight):
    A = strong(backend, weights)
    G, of = networkx_of(A), "weight" if weight else None
    found = eigenvector_centrality(A, weight=weight, max_iter=300)
    assert found.dtype is FP64
    assert entries(found) == pytest.approx(
        nx.eigenvector_centrality(G, weight=of, max_iter=300), rel=1e-9
    )
    check_eigenvector(A, found, weight=weight)
    if backend.capabilities.fuses:
        assert is_fused(backend.last_loop)
    for more in ({}, {"normalized": False}, {"beta": {0: 2.0, 3: 1.5}}, {"nstart": {1: 5.0}}):
        theirs = dict.fromkeys(G, 0.0)
        theirs = {k: theirs | v if isinstance(v, dict) else v for k, v in more.items()}
        found = katz_centrality(A, 0.05, weight=weight, **more)
        assert entries(found) == pytest.approx(
            nx.katz_centrality(G, 0.05, weight=of, **theirs), rel=1e-9
        )
        more.pop("nstart", None)
        check_katz(A, found, 0.05, weight=weight, **more)
    if backend.capabilities.fuses:
        assert is_fused(backend.last_loop)


@pytest.mark.parametrize("weights", ["ones", "float"])
def test_hubs_and_authorities(backend, weights):
    A = strong(backend, weights)
    theirs = nx.hits(networkx_of(A), tol=1e-12)
    found = hits(A, max_iter=1000)
    for x, expected in zip(found, theirs, strict=True):
        assert entries(x) == pytest.approx(expected, abs=1e-6)
    check_hits(A, found)
    if backend.capabilities.fuses:
        assert is_fused(backend.last_loop)
    hubs, authorities = hits(A, max_iter=1000, normalized=False)
    assert np.linalg.norm(authorities.to_dense()) == pytest.approx(1)
    assert hubs.isclose(found[0].apply("times", right=hubs.reduce("plus").new().value).new())
    one, other = hits(A, max_iter=1000, weight=False, nstart=dict.fromkeys(range(17), 3))
    check_hits(A, (one, other), weight=False)


def test_vectors_as_arguments(backend):
    A = strong(backend)
    v = Vector.from_coo([0, 3], [2.0, 1.5], size=17, backend=backend)
    given = {0: 2.0, 3: 1.5}
    for search in (
        lambda x: katz_centrality(A, 0.05, x),
        lambda x: eigenvector_centrality(A, 500, nstart=x),
        lambda x: hits(A, 500, nstart=x)[0],
    ):
        assert search(v).isclose(search(given))


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_degrees(backend, name):
    n, edges = AWKWARD[name]
    for A in (matrix(n, edges, backend), matrix(n, both_ways(edges), backend)):
        G = networkx_of(A)
        for kind, (ours, theirs) in DEGREES.items():
            whole = kind == "all" and A.is_symmetric
            H = nx.Graph(G) if whole else G
            assert entries(ours(A)) == pytest.approx(theirs(H), rel=1e-15)
            check_degree_centrality(A, ours(A), kind)


@for_all(cpu=40, compiled=4)
def test_random_graphs(backend, draw):
    """Where iterations converge the checkers agree, on any graph."""
    A = drawn(draw, backend, weights=draw(st.sampled_from(["ones", "whole", "float"])))
    check_degree_centrality(A, degree_centrality(A))
    check_katz(A, katz_centrality(A, 0.001), 0.001)
    check_pagerank(A, pagerank(A, 0.6, tol=None, max_iter=7), 0.6, tol=None, max_iter=7)
    check_pagerank(A, pagerank(A, dangling=False), dangling=False)
    for search, check in ((eigenvector_centrality, check_eigenvector), (hits, check_hits)):
        try:
            found = search(A)
        except NotConverged:
            continue
        except InvalidValue:
            assert A.nvals == 0
            continue
        check(A, found)


def test_page_rank_of_the_benchmarks(backend):
    """GAP loses the ranks of vertices without edges out; LDBC makes a given number of steps."""
    A = matrix(5, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)], backend)
    P = np.zeros((5, 5))
    P[[0, 1, 2, 2, 3], [1, 2, 0, 3, 4]] = [1, 1, 0.5, 0.5, 1]
    x = np.full(5, 0.2)
    for _ in range(4):
        x = 0.85 * (x @ P + x[4] / 5) + 0.03
    assert pagerank(A, max_iter=4, tol=None).to_dense() == pytest.approx(x, rel=1e-12)
    x = np.full(5, 0.2)
    for _ in range(200):
        x = 0.85 * x @ P + 0.03
    lost = pagerank(A, tol=1e-14, max_iter=500, dangling=False)
    assert lost.to_dense() == pytest.approx(x, rel=1e-9)
    assert x.sum() < 0.9


@pytest.mark.parametrize("weight", [1e308, 1e-308])
def test_the_length_of_very_large_centralities(backend, weight):
    """Their squares are infinite."""
    A = Matrix.from_coo([0], [1], weight, FP64, nrows=3, ncols=3, backend=backend)
    found = katz_centrality(A, 0.05, beta=1e-3)
    G = nx.DiGraph([(0, 1, {"weight": weight}), (2, 2, {"weight": 0})])
    wanted = nx.katz_centrality(G, 0.05, 1e-3, weight="weight")
    assert found.to_dense().tolist() == pytest.approx([wanted[v] for v in range(3)], rel=1e-9)


def test_what_is_refused(backend):
    A = matrix(4, [(0, 1, 1), (1, 2, -2), (2, 3, 3)], backend, weights="whole")
    with pytest.raises(InvalidValue, match=r"hits: a weight is -2 < 0\. Use weight=False"):
        hits(A)
    with pytest.raises(InvalidValue, match="there is no edge"):
        hits(Matrix("FP64", 3, 3, backend=backend))
    for search in (eigenvector_centrality, katz_centrality, hits):
        with pytest.raises(NotConverged, match=r"still change by .* after 1 iterations"):
            search(strong(backend), max_iter=1)
        with pytest.raises(InvalidValue, match="tol 0 is not above 0"):
            search(strong(backend), tol=0)
        with pytest.raises(DimensionMismatch):
            search(Matrix("FP64", 2, 3, backend=backend))
        with pytest.raises(DomainMismatch, match="nstart is neither"):
            search(strong(backend), nstart=[1, 2])
        empty = search(Matrix("FP64", 0, 0, backend=backend))
        assert all(x.nvals == 0 for x in (empty if isinstance(empty, tuple) else [empty]))
    with pytest.raises(NotConverged, match="katz_centrality"):
        katz_centrality(strong(backend), alpha=5)
    with pytest.raises(DomainMismatch, match="beta"):
        katz_centrality(strong(backend), beta="a")
    with pytest.raises(InvalidValue, match="nstart needs"):
        eigenvector_centrality(strong(backend), nstart={0: -1})
    assert degree_centrality(Matrix("BOOL", 0, 0, backend=backend)).nvals == 0
    assert entries(degree_centrality(Matrix("BOOL", 1, 1, backend=backend))) == {0: 1}


def test_wrong_numbers_are_refused():
    A = strong("cpu")
    found = eigenvector_centrality(A, 300)
    with pytest.raises(CheckFailed, match="their length"):
        check_eigenvector(A, found.apply("times", right=2).new())
    with pytest.raises(CheckFailed, match="a further step"):
        check_eigenvector(A, Vector.from_scalar(17**-0.5, 17, FP64, backend="cpu"))
    katz = katz_centrality(A, 0.05)
    with pytest.raises(CheckFailed, match="a further step"):
        check_katz(A, katz, 0.06)
    with pytest.raises(CheckFailed, match="their length"):
        check_katz(A, katz_centrality(A, 0.05, normalized=False), 0.05)
    hubs, authorities = hits(A, 1000)
    with pytest.raises(CheckFailed, match="a further step"):
        check_hits(A, (authorities, hubs))
    with pytest.raises(CheckFailed, match="it is 2"):
        check_hits(A, (hubs, authorities.apply("times", right=2).new()))
    with pytest.raises(CheckFailed, match="vertex 0"):
        check_degree_centrality(A, in_degree_centrality(A), "out")
    ranks = pagerank(A, tol=None, max_iter=3)
    with pytest.raises(CheckFailed, match="after so many steps"):
        check_pagerank(A, ranks, tol=None, max_iter=4)
