"""Brandes' algorithm for vertices and edges: sources, path counts, dependencies, scale.

A search counts paths p with a frontier q for each level; a sweep then computes, level by level
backward, the dependencies d of each source on each vertex. p, q and d are vectors for one source,
and matrices with a row for each of several::

    q<!s(p)> = q (+.first) A;  p = p + q
    d<above> = (((1 + d) / p)<here> (+.first) A') p
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.bfs import bfs_levels
from lagpu.algorithms.inputs import random_seed, require_square
from lagpu.backends.processes import of_all
from lagpu.core.arguments import integer
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, FP64, INT32
from lagpu.errors import InvalidValue, LimitExceeded
from lagpu.loops.loop import loop
from lagpu.loops.sweep import sweep

__all__ = [
    "batch_size",
    "batches",
    "count_paths",
    "dependencies",
    "is_directed",
    "require_reverses",
    "sample",
    "scale",
    "weights",
]

Array = np.ndarray[Any, Any]

# k x n matrices in use at the same time. FP64: paths, delta, share, pulled and frontier; INT32:
# levels, and a sweep's copy of one level; BOOL: here and above.
_LIVE = ((FP64, 5), (INT32, 2), (BOOL, 2))


def sample(A: Matrix, k: int | None, seed: Any) -> list[int]:
    """Return all vertices, or `k` random ones, the same as NetworkX chooses."""
    require_square(A)
    if k is None:
        return list(range(A.nrows))
    k = integer(k, "betweenness: k")
    if not 1 <= k <= A.nrows:
        raise InvalidValue(f"betweenness: k {k} is not one of 1 .. {A.nrows} sources.")
    if hasattr(seed, "sample"):  # a generator, of which each process of a grid has its own
        return list(map(int, of_all(A.backend, *seed.sample(range(A.nrows), k))[0]))
    return random.Random(random_seed(seed, "betweenness", A)).sample(range(A.nrows), k)


def batch_size(A: Matrix, sources: Sequence[int]) -> int:
    """Return how many sources to take at once, which the backend of `A` decides.

    A search from the first source gives the backend the number of levels.
    """
    if len(sources) < 2:
        return 1
    levels = 1 + bfs_levels(A, sources[0]).reduce("max").new().value
    return A.backend.batch_size(A.data, len(sources), levels, _LIVE)


def batches(A: Matrix, sources: list[int], batch: int | None) -> Iterator[list[int]]:
    """Yield the sources in batches of `batch`, or for None of `batch_size`."""
    batch = batch_size(A, sources) if batch is None else integer(batch, "betweenness: batch")
    if batch < 1:
        raise InvalidValue(f"betweenness: batch {batch} < 1. Give 1 or more, or leave it out.")
    for k in range(0, len(sources), batch):
        yield sources[k : k + batch]


def count_paths(A: Matrix, sources: list[int]) -> tuple[Any, Any]:
    """Return the levels of the vertices, and the numbers of shortest paths to the vertices.

    Both are vectors for one source, and matrices with a row for each of several sources.

    Raises
    ------
    LimitExceeded
        If a number of paths does not fit FP64.
    """
    frontier: Any
    if len(sources) == 1:
        frontier = Vector(FP64, A.nrows, like=A, name="frontier")
        frontier[sources[0]] = 1
    else:
        rows, k = np.arange(len(sources)), len(sources)
        frontier = Matrix.from_coo(
            rows, sources, 1, FP64, nrows=k, ncols=A.nrows, like=A, name="frontier"
        )
    levels = type(frontier)(INT32, *frontier.shape, like=A, name="levels")
    paths = type(frontier)(FP64, *frontier.shape, like=A, name="paths")
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        paths(frontier.S) << frontier
        frontier(~levels.S, replace=True) << semiring.plus_first(frontier @ A)
    if math.isinf(paths.reduce("max").new().value):
        raise LimitExceeded(
            f"betweenness: from {_named(sources)} there are more than 1.8e308 shortest paths to a "
            "vertex, which do not fit FP64. Choose other sources with k and seed, or leave out the "
            "part of the graph that multiplies the paths."
        )
    return levels, paths


def _named(sources: list[int]) -> str:
    return f"vertex {sources[0]}" if len(sources) == 1 else f"one of {len(sources)} vertices"


def dependencies(A: Matrix, levels: Any, paths: Any, held: Matrix | None = None) -> Any:
    """Return the dependencies of each source on the vertices that it reaches.

    The dependency on v is the sum over all t of (paths to t through v) / (paths to t); on the
    source itself it is the number of vertices that the source reaches. A diagonal matrix `held` has
    for each vertex how many others it stands for: these are targets too, and the result for v
    includes those that v stands for.
    """
    delta, share, pulled = (
        type(paths)(FP64, *paths.shape, like=A, name=name) for name in ("delta", "share", "pulled")
    )
    delta(paths.S) << 0
    if held is not None:
        delta << semiring.plus_second(paths @ held)
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta.apply(binary.plus, right=1)
        share(here.S) << share.ewise_mult(paths, binary.truediv)
        pulled(above.S, replace=True) << semiring.plus_first(share @ A.T)
        delta(accum=binary.plus) << pulled.ewise_mult(paths, binary.times)
    return delta


def is_directed(A: Matrix) -> bool:
    """Return True if the pattern of `A` is not symmetric."""
    return not A.apply("one").new().is_symmetric


def require_reverses(A: Matrix, directed: bool | None, option: str = "directed=False") -> None:
    """Raise `InvalidValue` if `directed` is False and an edge has no reverse."""
    if directed is not None and not directed and is_directed(A):
        raise InvalidValue(
            f"betweenness: {option}, but an edge has no reverse. Give the undirected graph, as "
            f"A.ewise_add(A.T, 'max').new(), or leave {option.partition('=')[0]}= out."
        )


def weights(A: Matrix, sources: list[int], endpoints: bool) -> Array:
    """Return how many sources count for each vertex, (n,); itself only with endpoints."""
    count = np.full(A.nrows, len(sources), float)
    if not endpoints:
        count[sources] -= 1
    return count


def scale(
    A: Matrix, sources: list[int], normalized: bool, endpoints: bool, directed: bool | None
) -> tuple[float, float]:
    """Return the factors of the sums over pairs, of vertices that are no sources and of sources.

    A pair (s, t) counts for v if s is a source, t another vertex and, without endpoints, v is
    neither. NaN where no pair counts.
    """
    n, count = A.nrows, len(sources)
    others = n if endpoints else n - 1
    if others < 2:
        return 1.0, 1.0
    whole = 1.0
    if not normalized:
        whole = others * (others - 1)
        whole /= 1 if (is_directed(A) if directed is None else directed) else 2

    def factor(count: int) -> float:
        return whole / (count * (others - 1)) if count else math.nan

    return factor(count), factor(count if endpoints else count - 1)
