"""Every algorithm on every graph, as one program and eagerly: proved, and equal to the oracle's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lagpu import algorithms, check
from lagpu.backends.base import Backend
from lagpu.dtypes import BOOL, INT64
from lagpu.loop import eager
from lagpu.matrix import Matrix
from lagpu.selftest.case import Case, Difference
from lagpu.selftest.data import GRAPHS, Graph

__all__ = ["cases"]

Array = np.ndarray[Any, Any]


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for name, prove in _PROOFS.items():
        for graph in GRAPHS:
            yield Case("algorithms", f"{name} on {graph.name}", _searched(graph, prove))


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


# Each returns what any right answer shares with the oracle's.
_PROOFS: dict[str, Callable[[Matrix, int], Array]] = {
    "bfs_levels": _levels,
    "bfs_parents": _parents,
    "bfs": _both,
    "count_shortest_paths": _paths,
    "bellman_ford": _distances,
    "delta_stepping": _buckets,
}


def _searched(graph: Graph, prove: Callable[[Matrix, int], Array]) -> Any:
    def run(place: Backend, oracle: Backend) -> str:
        for dtype in (BOOL, INT64):
            A, B = graph.matrix(dtype, place), graph.matrix(dtype, oracle)
            for source in graph.sources():
                right = prove(B, source)
                if not np.array_equal(prove(A, source), right):
                    raise Difference(f"{dtype}, from {source}: another answer than the oracle's")
                with eager():
                    again = prove(A, source)
                if not np.array_equal(again, right):
                    raise Difference(f"{dtype}, from {source}, eagerly: another answer")
        return f"{2 * len(graph.sources())} searches proved, as one program and eagerly"

    return run
