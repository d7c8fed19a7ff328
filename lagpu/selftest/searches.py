"""Every algorithm on every graph, fused and eager: proved, and compared with the oracle."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lagpu import algorithms, check
from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL, INT64
from lagpu.loops.loop import eager
from lagpu.selftest.case import Case, Difference
from lagpu.selftest.data import DEEP, GRAPHS, Graph

Array = np.ndarray[Any, Any]


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for name, prove in _PROOFS.items():
        for graph in GRAPHS:
            run = _proved(graph, prove, graph.sources())
            yield Case("algorithms", f"{name} on {graph.name}", run)
    for name, prove_whole in _WHOLE.items():
        for graph in GRAPHS:
            run = _proved(graph, _without_source(prove_whole), [0])
            yield Case("algorithms", f"{name} on {graph.name}", run)
    for name, prove_many in _MANY.items():
        run = _proved(DEEP, prove_many, [DEEP.n // 2])
        yield Case("algorithms", f"{name} on {DEEP.name}", run)


def _levels(A: Matrix, source: int) -> Array:
    levels = algorithms.bfs_levels(A, source)
    check.check_levels(A, source, levels)
    return levels.to_dense(-1)


def _parents(A: Matrix, source: int) -> Array:
    parents = algorithms.bfs_parents(A, source)
    check.check_parents(A, source, parents)
    return parents.to_dense(-1) >= 0


def _both(A: Matrix, source: int) -> Array:
    levels, parents = algorithms.bfs(A, source)
    check.check_parents(A, source, parents, levels)
    return levels.to_dense(-1)


def _paths(A: Matrix, source: int) -> Array:
    paths = algorithms.count_shortest_paths(A, source)
    check.check_paths(A, source, paths)
    return paths.to_dense(0)


def _distances(A: Matrix, source: int) -> Array:
    distances = algorithms.bellman_ford(A, source)
    check.check_distances(A, source, distances)
    return distances.to_dense(-1)


def _buckets(A: Matrix, source: int) -> Array:
    distances = algorithms.delta_stepping(A, source, 2)
    check.check_distances(A, source, distances)
    return distances.to_dense(-1)


def _joint(A: Matrix, source: int) -> Array:
    sources = sorted({0, source, A.nrows // 3})
    levels = algorithms.bfs_levels_joint(A, sources)
    check.check_levels_joint(A, sources, levels)
    near = algorithms.neighborhood(A, sources, 2)
    check.check_levels_joint(A, sources, near, k=2)
    check.check_k_hop(A, sources, 2, algorithms.k_hop(A, sources, 2))
    return levels.to_dense(-1)


def _multi(A: Matrix, source: int) -> Array:
    sources = sorted({0, source, A.nrows // 3})
    levels = algorithms.bfs_levels_multi(A, sources)
    check.check_levels_multi(A, sources, levels)
    parents = algorithms.bfs_parents_multi(A, sources)
    check.check_parents_multi(A, sources, parents)
    return np.concatenate(levels.to_coo())


def _connected(A: Matrix) -> Array:
    labels = algorithms.connected_components(A)
    check.check_components(A, labels)
    return labels.to_dense()


def _strongly_connected(A: Matrix) -> Array:
    labels = algorithms.strongly_connected_components(A)
    check.check_components(A, labels, strong=True)
    return labels.to_dense()


def _ranks(A: Matrix) -> Array:
    ranks = algorithms.pagerank(A)
    check.check_pagerank(A, ranks)
    return ranks.to_dense() > 0


def _betweenness(A: Matrix) -> Array:
    k, directed = min(3, A.nrows), not A.is_symmetric
    found, error = algorithms.betweenness_estimate(A, k, seed=1, batch=k)
    one_by_one = algorithms.betweenness_centrality(A, k, seed=1, batch=1)
    sources = random.Random(1).sample(range(A.nrows), k)
    check.check_betweenness(A, found, directed=directed, sources=sources, error=error)
    check.check_betweenness(A, one_by_one, directed=directed, sources=sources)
    return found.to_dense() > 0


def _sides(A: Matrix) -> Array:
    sides, cycle = algorithms.bipartite_sides(A)
    if sides is None:
        check.check_odd_cycle(A, cycle or [])
        return np.array([])
    check.check_sides(A, sides)
    return sides.to_dense()


def _remoteness(A: Matrix, source: int) -> Array:
    closeness = algorithms.closeness_centrality(A, source)
    check.check_remoteness(A, closeness, "closeness", vertices=[source])
    harmonic = algorithms.harmonic_centrality(A, source)
    check.check_remoteness(A, harmonic, "harmonic", vertices=[source])
    length, begin, end = algorithms.pseudo_diameter(A, source)
    check.check_route(A, begin, end, algorithms.shortest_path(A, begin, end))
    return np.array([length])


def _order(A: Matrix) -> Array:
    above = A.select("triu", 2).new()  # the path through the hub's leaves would be long
    levels = algorithms.topological_levels(above)
    check.check_topological_levels(above, levels)
    order = algorithms.topological_order(above)
    check.check_topological_order(above, order)
    return order.to_dense()


def _cores(A: Matrix) -> Array:
    cores = algorithms.core_number(A)
    check.check_core_numbers(A, cores)
    check.check_k_core(A, algorithms.k_core(A, 2), 2)
    return cores.to_dense()


def _independent(A: Matrix) -> Array:
    members = algorithms.maximal_independent_set(A, seed=1)
    check.check_independent_set(A, members)
    return members.to_dense(False)


def _triangles(A: Matrix) -> Array:
    both = A.ewise_add(A.T, "max").new()
    found = algorithms.triangles(both)
    check.check_triangles(both, found)
    check.check_triangle_count(both, algorithms.triangle_count(both))
    check.check_clustering(both, algorithms.clustering(both))
    return found.to_dense()


def _without_source(prove: Callable[[Matrix], Array]) -> Callable[[Matrix, int], Array]:
    return lambda A, _source: prove(A)


# Each function returns the part of the result that all right answers have in common.
_PROOFS: dict[str, Callable[[Matrix, int], Array]] = {
    "bfs_levels": _levels,
    "bfs_parents": _parents,
    "bfs": _both,
    "count_shortest_paths": _paths,
    "bellman_ford": _distances,
    "delta_stepping": _buckets,
    "bfs_levels_joint": _joint,
    "bfs_levels_multi, bfs_parents_multi": _multi,
    "closeness, harmonic, pseudo_diameter, shortest_path": _remoteness,
}
_WHOLE: dict[str, Callable[[Matrix], Array]] = {
    "connected_components": _connected,
    "strongly_connected_components": _strongly_connected,
    "pagerank": _ranks,
    "betweenness_centrality, betweenness_estimate": _betweenness,
    "bipartite_sides": _sides,
    "topological_levels": _order,
    "core_number": _cores,
    "maximal_independent_set": _independent,
    "triangles, triangle_count, clustering": _triangles,
}
# Searches of many sources at once: on a deep graph a backend may search per source.
_MANY: dict[str, Callable[[Matrix, int], Array]] = {
    "bfs_levels_multi, bfs_parents_multi": _multi,
    "betweenness_centrality, betweenness_estimate": _without_source(_betweenness),
}


def _proved(graph: Graph, prove: Callable[[Matrix, int], Array], sources: list[int]) -> Any:
    def run(place: Backend, oracle: Backend) -> str:
        for dtype in (BOOL, INT64):
            A, B = graph.matrix(dtype, place), graph.matrix(dtype, oracle)
            for source in sources:
                right = prove(B, source)
                if not np.array_equal(prove(A, source), right):
                    raise Difference(f"{dtype}, from {source}: differs from the oracle")
                with eager():
                    again = prove(A, source)
                if not np.array_equal(again, right):
                    raise Difference(f"{dtype}, from {source}, eager: differs from the oracle")
        return f"{2 * len(sources)} runs proved, fused and eager"

    return run
