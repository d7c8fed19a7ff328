"""`UnusedCall` warnings for expressions that were written and never used, at their line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, ClassVar, NoReturn

from lagpu.errors import UnusedCall
from lagpu.host.source import expression_at, operation_at

__all__ = ["Unassigned"]

_warned: dict[str, dict[Any, Any]] = {}  # by file, the registry by which Python warns once a line


_finalized: set[str] = set()  # the classes that have such a twin


class Unassigned:
    """One side of a statement, which does nothing by itself.

    A subclass sets `_used`. An object that is dropped unused warns if the expression that made it
    is a statement of its own. An exception drops such objects as well, as it drops ``w(mask)`` in
    ``w(mask) << x`` if `x` raises; then there is no warning.
    """

    __slots__ = ("_used",)
    _used: bool
    _remedy: ClassVar[str]  # {0} is the author's expression
    _without_finalizer: ClassVar[type[Any] | None] = None

    def __init_subclass__(cls) -> None:
        """Make the same class once more, for objects that are used.

        A finalizer in Python is a place where an interrupt (Ctrl-C) may come, and there it goes to
        nobody. So an object that is used changes its class for one whose finalizer is compiled.
        """
        if cls.__name__ not in _finalized:
            _finalized.add(cls.__name__)
            body = {"__slots__": (), "__del__": staticmethod(tuple), "__module__": cls.__module__}
            cls._without_finalizer = type(cls.__name__, (cls,), body)

    def _mark_used(self) -> None:
        """Mark this object as used, so that no warning follows an error that is being raised."""
        self.__class__ = self._without_finalizer  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        refuse: Callable[[str], NoReturn] = self.refuse  # type: ignore[attr-defined]
        refuse("cannot be copied or pickled")

    def __del__(self) -> None:
        try:
            if self._used:
                return
        except AttributeError:  # its constructor raised
            return
        origin = self._origin(sys._getframe().f_back)
        if origin is not None:
            _warn(self, *origin)

    def _origin(self, frame: FrameType | None) -> tuple[CodeType, int] | None:
        """Return the instruction that made the object, which `frame` drops; None: do not warn."""
        if frame is None or operation_at(frame) != "POP_TOP":
            return None
        if expression_at(frame.f_code, frame.f_lasti).text.startswith(("with ", "async with ")):
            return None  # the end of the block drops an error with all objects it refers to
        return frame.f_code, frame.f_lasti


def _warn(x: Unassigned, code: CodeType, instruction: int) -> None:
    found = expression_at(code, instruction)
    message = x._remedy.format(found.text or repr(x))
    known = _warned.setdefault(code.co_filename, {})
    warnings.warn_explicit(message, UnusedCall, code.co_filename, found.line, registry=known)
