"""What Brandes' algorithm needs for vertices and for edges: sources, path counts, scale."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from lagpu.algebra import semiring
from lagpu.algorithms.bfs import bfs_levels
from lagpu.algorithms.source import random_seed, require_square
from lagpu.dtypes import FP64
from lagpu.errors import InvalidValue
from lagpu.loop import loop
from lagpu.matrix import Matrix
from lagpu.operands import integer
from lagpu.vector import Vector

__all__ = ["batch_size", "blocks", "is_directed", "path_counts", "sample", "scale", "weights"]

Array = np.ndarray[Any, Any]

_ENTRY_BYTES = 96  # of a product's entry while it is sorted, and of a vertex in all levels together
_POINTER_BYTES = 8
_TOUCHED = 2**24  # entries: more fill no machine better, and one source at a time is as fast


def sample(A: Matrix, k: int | None, seed: int | None) -> list[int]:
    """Return all vertices, or `k` chosen ones: those that NetworkX chooses."""
    require_square(A)
    if k is None:
        return list(range(A.nrows))
    k = integer(k, "betweenness: k")
    if not 1 <= k <= A.nrows:
        raise InvalidValue(f"betweenness: k {k} is not one of 1 .. {A.nrows} sources.")
    return random.Random(random_seed(seed, "betweenness")).sample(range(A.nrows), k)


def batch_size(A: Matrix, sources: list[int]) -> int:
    """Return how many of the sources to take at once, a power of two or all of them.

    As many as fit half of the free memory where `A` lives, if in the widest level every edge of
    each source is on a shortest path, beside a pointer for each vertex and level; and no more than
    touch 2**24 entries, in the widest product and where each level is written into its block. A
    search from the first source says how many levels there are.
    """
    if len(sources) < 2:
        return 1
    depth = 1 + bfs_levels(A, sources[0]).reduce("max").new().value
    left = A.backend.free_bytes() // 2 - _POINTER_BYTES * A.nrows * depth
    size = A.nvals + A.nrows
    room = min(max(left, 0) // (_ENTRY_BYTES * size), _TOUCHED // (size + depth * A.nrows))
    return len(sources) if room >= len(sources) else 1 << max(0, room.bit_length() - 1)


def blocks(A: Matrix, sources: list[int], batch: int | None) -> Iterator[list[int]]:
    """Yield the sources that are taken at once."""
    batch = batch_size(A, sources) if batch is None else integer(batch, "betweenness: batch")
    if batch < 1:
        raise InvalidValue(f"betweenness: batch {batch} < 1. Give 1 or more, or leave it out.")
    for k in range(0, len(sources), batch):
        yield sources[k : k + batch]


def path_counts(A: Matrix, sources: list[int]) -> list[Any]:
    """Return for each level the numbers of shortest paths to its vertices.

    One source has a vector, several have a matrix with a row for each.
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
    paths = type(frontier)(FP64, *frontier.shape, like=A, name="paths")
    kept = []
    for _ in loop(until_empty=frontier):
        above = frontier.dup()  # multiplied as it is kept: a policy may leave lists of edges there
        kept.append(above)
        paths(above.S) << above
        frontier(~paths.S, replace=True) << semiring.plus_first(above @ A)
    return kept


def is_directed(A: Matrix) -> bool:
    """Whether the pattern of `A` is not symmetric."""
    return not A.apply("one").new().is_symmetric


def weights(A: Matrix, sources: list[int], endpoints: bool) -> Array:
    """Return how many of the sources count for each vertex, (n,): itself only with endpoints."""
    count = np.full(A.nrows, len(sources), float)
    if not endpoints:
        count[sources] -= 1
    return count


def scale(
    A: Matrix, sources: list[int], normalized: bool, endpoints: bool, directed: bool | None
) -> Array:
    """Return what to multiply each vertex's sum over pairs with, (n,).

    A pair (s, t) counts for v if s is a source, t another vertex and, without endpoints, v neither.
    """
    n = A.nrows
    others = n if endpoints else n - 1
    if others < 2:
        return np.ones(n)
    pairs = weights(A, sources, endpoints) * (others - 1)
    whole = 1.0
    if not normalized:
        whole = others * (others - 1)
        whole /= 1 if (is_directed(A) if directed is None else directed) else 2
    found: Array = np.divide(whole, pairs, out=np.full(n, math.nan), where=pairs > 0)
    return found
