"""`sweep`: the levels of a search in reverse order; a backend may run the sweep as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core.expr import kind_of
from lagpu.core.matrix import Matrix
from lagpu.core.recorder import Recorder, current_observer, current_recorder
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL
from lagpu.errors import DomainMismatch, InvalidValue
from lagpu.loops.loop import BY_ITSELF, IN_A_BODY, run_recorded, why_eager
from lagpu.loops.purity import LoopBody, read_body
from lagpu.operations import Handle, Levels, Sweep

Pair = tuple[Any, Any]
Array = np.ndarray[Any, Any]


def sweep(levels: Vector | Matrix) -> Iterator[Pair]:
    """Yield each level of a search with the one before it, the farthest first.

    Parameters
    ----------
    levels : Vector, (n,), or Matrix, (k, n), of an integer type
        Levels as `bfs_levels` and `bfs_levels_multi` return them. They are read once, before the
        first iteration; a position without an entry belongs to no level.

    Yields
    ------
    here, above : Vector, (n,), or Matrix, (k, n), BOOL
        True where the level is d, and where it is d - 1; no other entries. d falls from the deepest
        level to 1. A level without entries has its iteration too.

    Raises
    ------
    DomainMismatch
        If `levels` is neither a `Vector` nor a `Matrix`, or not of an integer type.
    InvalidValue
        If a level is negative, or not less than n.

    Notes
    -----
    The entries of a vector are sorted by level once, so an iteration costs only the entries of its
    levels. On `gpu` and `sim` a body of lagpu statements may run as one kernel, for a matrix with
    one thread block for each row (docs/design/sweep.md).

    Examples
    --------
    >>> from lagpu.algorithms import bfs_levels
    >>> from lagpu.generators import path
    >>> for here, above in sweep(bfs_levels(path(4, backend="cpu"), 1)):
    ...     print(here.to_coo()[0].tolist(), above.to_coo()[0].tolist())
    [3] [0, 2]
    [0, 2] [1]
    """
    if not isinstance(levels, (Vector, Matrix)):
        raise DomainMismatch(
            f"sweep: {kind_of(levels)} is neither a Vector nor a Matrix. Give one."
        )
    if levels.dtype.numpy.kind not in "iu":
        raise DomainMismatch(
            f"sweep: {levels.name} is of type {levels.dtype}, and levels are integers. "
            "Give what bfs_levels returns."
        )
    found = _Levels(levels)
    backend = levels.backend
    if not backend.capabilities.fuses:
        backend.last_loop = BY_ITSELF
        return _iterate(found)
    why = why_eager() or ("" if current_recorder() is None else IN_A_BODY)
    if isinstance(levels, Matrix) and type(found.data) is _HostLevels:
        why = why or "its levels are a matrix that is not stored as a bitmap"
    body = LoopBody(reason=why) if why else read_body(sys._getframe(1), "sweep")
    if body.scalar:
        why = f"{body.scalar} is a scalar, and a sweep can neither read nor write one"
        body = LoopBody(reason=why)
    return _record_and_run(backend, found, body)


class _Levels:
    """The checked levels of a vector or a matrix, each of which can be cut out as an object.

    Attributes
    ----------
    deepest : int
        The last level; -1 if there are no entries.
    data : Levels
        The levels on handles.
    """

    def __init__(self, levels: Vector | Matrix) -> None:
        self._like = levels
        self.data = _levels_of(levels)
        self.deepest, size = self.data.deepest, max(levels.shape)
        if self.data.lowest < 0:
            raise InvalidValue(
                f"sweep: level {self.data.lowest} < 0 in {levels.name}. "
                "Levels begin at 0; delete the entries of unreached vertices."
            )
        if self.deepest >= size:
            raise InvalidValue(
                f"sweep: level {self.deepest} >= {size} in {levels.name}. "
                f"No level of {size} vertices is larger than {size - 1}."
            )

    def cut(self, d: int, name: str) -> Any:
        """Return the vector or matrix that is True where the level is `d`."""
        like, data = self._like, self.data.cut(d)
        if isinstance(like, Vector):
            return Vector._of(data, BOOL, like.size, like.backend, name)
        return Matrix._of(data, BOOL, like.shape, like.backend, name)


def _levels_of(levels: Vector | Matrix) -> Levels:
    """Return the backend's levels, or levels sorted on the host."""
    backend = levels._flushed()
    found = backend.levels(levels.data)
    if found is not None:
        return found
    *where, values = levels.to_coo()
    return _HostLevels(backend, tuple(where), values, levels.shape)


class _HostLevels:
    """Levels of which the entries are sorted by level on the host."""

    def __init__(
        self, backend: Backend, where: tuple[Array, ...], values: Array, shape: tuple[int, ...]
    ) -> None:
        self._backend, self._shape = backend, shape
        order = np.argsort(values, kind="stable")
        self._values = values[order]
        self._where = [x[order] for x in where]
        self.lowest, self.deepest = 0, -1
        if len(values):
            self.lowest, self.deepest = (int(level) for level in self._values[[0, -1]])

    def cut(self, d: int) -> Handle:
        first, last = np.searchsorted(self._values, [d, d + 1])
        where, true = [x[first:last] for x in self._where], np.True_
        if len(where) == 1:
            return self._backend.vector_from_coo(where[0], true, BOOL, self._shape[0])
        (rows, cols), (nrows, ncols) = where, self._shape
        return self._backend.matrix_from_coo(rows, cols, true, BOOL, (nrows, ncols), None)


def _iterate(levels: _Levels, above: Any = None, done: int = 0) -> Iterator[Pair]:
    """Yield the pairs after the first `done`; `above` is the second of the last pair before."""
    observer = current_observer()
    outer = -1 if observer is None else observer.level
    try:
        for d in range(levels.deepest - done, 0, -1):
            here = levels.cut(d, "here") if above is None else above
            here.name, above = "here", levels.cut(d - 1, "above")
            if observer is not None:
                observer.level = done
            done += 1
            yield here, above
    finally:
        if observer is not None:
            observer.level = outer


def _record_and_run(backend: Backend, levels: _Levels, body: LoopBody) -> Iterator[Pair]:
    """Record the body once and let the backend run the whole sweep; if impossible, iterate."""
    if levels.deepest < 1:
        backend.last_loop = "no iteration"
        return
    if not body.statements:
        backend.last_loop = f"eager: {body.reason}"
        yield from _iterate(levels)
        return
    here, above = (levels.cut(levels.deepest - k, ("here", "above")[k]) for k in (0, 1))
    recorder = Recorder(backend, here.ndim)
    with recorder:  # if the body raises, the statements before the error run at its end
        recorder.open()
        yield here, above
        recorder.close()
        if len(recorder.statements) < body.statements + recorder.temporaries:
            backend.last_loop = "eager: the body writes vectors and matrices"
        elif run_recorded(recorder, Sweep(here.data, above.data, levels.data)):
            return
    yield from _iterate(levels, above, 1)
