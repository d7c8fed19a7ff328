"""Loops that were recorded before: the statements of that record serve again, on other objects.

A body that is nothing but lagpu statements says the same each time that its names mean the same.
Where vectors and matrices alone are others, of the same types and shapes, all checks would pass
again; so their handles take the places of the old ones, and the body does not run.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.core.observer import current_observer
from lagpu.core.vector import Vector
from lagpu.loops.purity import VIEWS, LoopBody, lookup
from lagpu.operations import Handle, Record, RecordedBody, Statement, operands_of

__all__ = ["KnownLoop", "find_known", "keep_known"]

_MOST = 512  # loops; then they are recorded anew
_known: dict[tuple[int, int], KnownLoop] = {}


class KnownLoop:
    """A loop of a function, and what its names must mean for the same statements to serve again.

    Attributes
    ----------
    record : Record
        The statements.
    """

    record: Record

    def __init__(self, code: CodeType, named: list[tuple[str, Any]]) -> None:
        self._code = code  # kept, so that no other has its id
        self._likes = [(name, *_like(found)) for name, found in named]

    def handles(self, frame: FrameType, backend: Backend) -> list[Handle] | None:
        """Return the handles that the names have now; None if one means something else."""
        local, outer = frame.f_locals, frame.f_globals
        handles = []
        for name, kind, what, shape in self._likes:
            found = local[name] if name in local else lookup(name, local, outer)
            if kind is None:
                if found is not what:
                    return None
            elif (
                type(found) is kind
                and found.dtype is what
                and found.backend is backend
                and found.shape == shape
            ):
                handles.append(found.data)
            else:
                return None
        return handles if len(set(map(id, handles))) == len(handles) else None

    def learn(self, statements: list[Statement], handles: list[Handle]) -> bool:
        """Take the statements of a record; return False if they have objects without a name."""
        named = {id(x) for x in handles}
        for s in statements:
            mask = [] if s.desc.mask is None else [s.desc.mask]
            if s.scalars or not {id(x) for x in (s.out, *mask, *operands_of(s.operation))} <= named:
                return False
        shapes = [shape for _, kind, _, shape in self._likes if kind is not None]
        self.record = Record(statements, handles, shapes)
        return True


def _like(x: Any) -> tuple[Any, ...]:
    """Return what an object must be like: its class, type and shape, or the object itself."""
    return (type(x), x.dtype, x.shape) if type(x) in (Vector, Matrix) else (None, x, ())


def find_known(frame: FrameType, backend: Backend) -> RecordedBody | None:
    """Return the body of the loop that `frame` begins, if such a one was recorded before."""
    known = _known.get((id(frame.f_code), frame.f_lineno))
    if known is None or current_observer() is not None or sys.gettrace() is not None:
        return None  # who looks on, as a trace or a debugger, is to see the body
    handles = known.handles(frame, backend)
    return None if handles is None else RecordedBody(known.record, handles)


def keep_known(
    frame: FrameType, line: int, backend: Backend, body: LoopBody, statements: list[Statement]
) -> None:
    """Keep the record of a loop that began at `line` of `frame`, if others may be like it."""
    if body.counter or body.written or body.scalar:
        return
    local, outer = frame.f_locals, frame.f_globals
    named = [(name, lookup(name, local, outer)) for name in body.names]
    if any(isinstance(found, VIEWS) for _, found in named):  # it does not follow another handle
        return
    known = KnownLoop(frame.f_code, named)
    handles = known.handles(frame, backend)
    if handles is None or not known.learn(statements, handles):
        return
    if len(_known) >= _MOST:
        _known.clear()
    _known[id(frame.f_code), line] = known
