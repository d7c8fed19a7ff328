"""No algorithm's loop goes back to the host for each level: whatever the graph is like."""

import contextlib

import pytest
from graphs import both_ways, matrix, random_edges
from loop_names import is_fused

from lagpu import FP64, INT64, algorithms, generators
from lagpu.backends.gpu.backend import GpuBackend
from lagpu.catalog import ALGORITHMS
from lagpu.errors import NoPath, NotConverged
from lagpu.selftest.algorithms import Inputs

HUBS = generators.kronecker(6, 8, backend="sim")  # some columns of most entries
SPARSE = generators.road(9, backend="sim")
DIRECTED = matrix(90, random_edges(90, 240, seed=3), "sim")
TREE = matrix(33, [(v // 2, v) for v in range(1, 33)], "sim")
WEIGHTED = matrix(30, both_ways([(u, v, 1 + (u * v) % 7) for u, v in random_edges(30, 60, 5)]),
                  "sim", weights="whole")  # fmt: skip

#: What a sweep over blocks is where rows share their work: few levels, each of large products.
SWEEP = "eager: no per-source sweep: "
#: Algorithms without a loop of products: one or two statements. Loops of communities make matrices.
NO_LOOP = {row.name for row in ALGORITHMS if row.topic == "triangles"}
NO_LOOP |= {"floyd_warshall", "degree_centrality", "in_degree_centrality", "out_degree_centrality"}
NO_LOOP |= {"contraction", "modularity", "label_propagation", "louvain"}
NO_LOOP |= {"similarity", "reciprocity", "overall_reciprocity", "laplacian_matrix"}


@pytest.fixture
def outcomes(monkeypatch):
    """What `last_loop` was, one loop that did something after the other."""
    said = []

    def say(_, how):
        if how != "no iteration":  # as of a source with no edge
            said.append(how)

    kept = property(lambda _: said[-1] if said else "", say)
    monkeypatch.setattr(GpuBackend, "last_loop", kept, raising=False)
    return said


def graphs_for(row):
    name = row.name
    if name.startswith("topological"):
        return [TREE]
    if row.graph in ("weighted", "positive"):
        return [WEIGHTED, WEIGHTED.dup(FP64), HUBS]
    if name in ("k_truss", "minimum_spanning_forest"):
        return [HUBS, SPARSE, WEIGHTED]
    undirected = {
        "maximal_independent_set",
        "bipartite_sides",
        "is_bipartite",
        "diameter",
        "pseudo_diameter",
    }
    return [HUBS, SPARSE, TREE] if name in undirected else [HUBS, SPARSE, DIRECTED]


@pytest.mark.parametrize(
    "row", [row for row in ALGORITHMS if row.name not in NO_LOOP], ids=lambda row: row.key
)
def test_every_loop_is_one_kernel(outcomes, row):
    for A in graphs_for(row):
        outcomes.clear()
        with contextlib.suppress(NoPath, NotConverged):  # of a graph in parts, or on a long way
            row.run(A, Inputs({"pattern": A}, 1, 0, [0, 1, 2]))
        assert outcomes
        assert all(is_fused(how) or how.startswith(SWEEP) for how in outcomes), outcomes


@pytest.mark.parametrize("A", [HUBS, SPARSE, DIRECTED])
@pytest.mark.parametrize("batch", [1, 2, 17])
def test_batches_of_sources(outcomes, A, batch):
    algorithms.betweenness_centrality(A, k=17, seed=1, batch=batch)
    assert all(is_fused(how) or how.startswith(SWEEP) for how in outcomes), outcomes


@pytest.mark.parametrize("method", ["fastsv", "bfs"])
def test_components_either_way(outcomes, method):
    for A in (HUBS, SPARSE, DIRECTED, WEIGHTED.dup(INT64)):
        algorithms.connected_components(A, method=method)
    assert all(is_fused(how) for how in outcomes), outcomes
