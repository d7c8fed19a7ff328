"""No algorithm's loop goes back to the host for each level: whatever the graph is like."""

import contextlib

import pytest
from graphs import both_ways, matrix, random_edges
from loop_names import is_fused

import lagpu
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
#: Algorithms without a loop, and their products at most, each one launch on a graph without hubs.
STATEMENTS = {
    **dict.fromkeys(("degree_centrality", "in_degree_centrality", "out_degree_centrality"), 0),
    **dict.fromkeys(("reciprocity", "overall_reciprocity"), 0),
    **dict.fromkeys(("triangle_count", "triangles", "transitivity"), 1),
    **dict.fromkeys(("clustering", "average_clustering", "square_clustering"), 1),
    **dict.fromkeys(("contraction", "modularity", "laplacian_matrix"), 2),
    **{"triangle_centrality": 3, "similarity": 4},
}
#: Algorithms whose loops run on the host, and why.
BY_HOST = {
    "floyd_warshall": "a step reads the row and the column of its vertex by their index",
    "label_propagation": "a round makes a matrix: the weight of each label around each vertex",
    "louvain": "a move makes such a matrix, and a level makes the graph of the next one",
}


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
    "row",
    [row for row in ALGORITHMS if row.name not in STATEMENTS | BY_HOST],
    ids=lambda row: row.key,
)
def test_every_loop_is_one_kernel(outcomes, row):
    for A in graphs_for(row):
        outcomes.clear()
        with contextlib.suppress(NoPath, NotConverged):  # of a graph in parts, or on a long way
            row.run(A, Inputs({"pattern": A}, 1, 0, [0, 1, 2]))
        assert outcomes
        assert all(is_fused(how) or how.startswith(SWEEP) for how in outcomes), outcomes


def most_products(name):
    """Return the products of an algorithm on a small graph, of its row that has most of them."""
    counts = []
    for row in ALGORITHMS:
        if row.name == name:
            with lagpu.trace() as t:
                row.run(WEIGHTED, Inputs({"pattern": WEIGHTED}, 1, 0, [0, 1, 2]))
            counts.append(sum(r.method in ("mxv", "vxm", "matrix_mxm") for r in t.rows))
    return max(counts)


@pytest.mark.parametrize("name", STATEMENTS)
def test_without_a_loop_there_are_few_products(outcomes, name):
    assert most_products(name) == STATEMENTS[name]
    assert not outcomes


@pytest.mark.parametrize("name", BY_HOST)
def test_loops_of_the_host(outcomes, name):
    assert most_products(name) > max(STATEMENTS.values())
    assert not outcomes


def test_three_quarters_of_the_algorithms_run_as_one_kernel():
    """Each loop is one kernel, or there is no loop and at most one product."""
    names = {row.name for row in ALGORITHMS}
    others = {*BY_HOST, *(name for name, count in STATEMENTS.items() if count > 1)}
    assert others < names
    assert STATEMENTS.keys() < names
    print(f"{len(names - others)} of {len(names)}: {len(names - others - {*STATEMENTS})} by loops")
    assert len(names - others) >= 0.75 * len(names)


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
