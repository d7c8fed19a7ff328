"""Sums over sources, which the sub-clusters of a grid share out; elsewhere one has them all."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from lagpu.algorithms.brandes import batches
from lagpu.backends.processes import require_alike
from lagpu.backends.protocol import Clusters
from lagpu.core.arguments import integer
from lagpu.core.matrix import Matrix
from lagpu.core.observer import current_observer
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, FP64
from lagpu.errors import InvalidValue

__all__ = ["sums"]

Array = np.ndarray[Any, Any]
Add = Callable[[Matrix, list[int], list[Vector]], None]


def sums(
    A: Matrix, sources: list[int], batch: int | None, pieces: int | None, count: int, add: Add
) -> list[Vector]:
    """Return sums over sources.

    Parameters
    ----------
    A : Matrix, (n, n)
        The graph, of which only the pattern counts.
    sources : list of int
        The sources. Sub-cluster c of C has ``sources[c::C]``.
    batch : int or None
        Sources at once.
    pieces : int or None
        Pieces of a grid that share a copy of the graph; None: as few as hold it.
    count : int
        The number of sums.
    add : callable
        ``add(A, chosen, totals)`` adds what some sources contribute; `A` may be a copy.

    Returns
    -------
    list of Vector, (n,), FP64
        Full. Those of sub-clusters are added in their order, so they are the same on every run.

    Raises
    ------
    InvalidValue
        If `A` has no pieces, or cannot be shared by so many.
    """
    pieces = None if pieces is None else integer(pieces, "betweenness: pieces")
    split = A.backend.capabilities.clusters
    if split is None and pieces not in (None, 1):
        raise InvalidValue(
            f"betweenness: pieces {pieces}: {A.backend.name} has no sub-clusters. Leave it out."
        )
    require_alike(A.backend, "betweenness", sources=np.array(sources), batch=batch)
    clusters = None if split is None else split(A.data, pieces)
    if clusters is None:
        return _added(A, sources, batch, count, add, threading.Event())
    shared: Clusters = clusters

    def work() -> list[Array]:
        def copy(k: int) -> Matrix:
            made = shared.copy(A.data, k)
            return Matrix._of(made, BOOL, (A.nrows, A.ncols), shared.backends[k], None)

        def of(k: int, copied: Matrix) -> list[Array]:
            mine = sources[shared.numbers[k] :: shared.count]
            return [x.to_dense() for x in _added(copied, mine, batch, count, add, stop)]

        stop = threading.Event()
        parts = _each(shared, copy, of, stop)
        return [shared.total(list(one)) for one in zip(*parts, strict=True)]

    return [Vector.from_dense(total, like=A) for total in shared.run(work)]


def _added(
    A: Matrix,
    sources: list[int],
    batch: int | None,
    count: int,
    add: Add,
    stop: threading.Event,
) -> list[Vector]:
    totals = [Vector(FP64, A.nrows, like=A, name="total") for _ in range(count)]
    for total in totals:
        total << 0
    for chosen in batches(A, sources, batch):
        if stop.is_set():
            break
        add(A, chosen, totals)
    return totals


def _each(
    shared: Clusters,
    copy: Callable[[int], Matrix],
    work: Callable[[int, Matrix], list[Array]],
    stop: threading.Event,
) -> list[list[Array]]:
    """Do some work for each sub-cluster: in threads if devices are apart and nobody observes.

    Else a copy goes before the next one comes.
    """
    numbers = range(len(shared.numbers))
    if not shared.apart or current_observer() is not None:
        return [_alone(shared, work, k, copy(k)) for k in numbers]
    copies = [copy(k) for k in numbers]
    with ThreadPoolExecutor(len(copies)) as threads:
        try:
            done = [
                threads.submit(contextvars.copy_context().run, work, k, copies[k]) for k in numbers
            ]
            return [one.result() for one in done]
        finally:
            stop.set()  # after an error or Ctrl-C the others end at their next batch


def _alone(
    shared: Clusters, work: Callable[[int, Matrix], list[Array]], k: int, copied: Matrix
) -> list[Array]:
    return shared.inside(lambda: work(k, copied))
