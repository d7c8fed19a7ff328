"""`UnusedCall` warnings for expressions that were written and never used, at their line."""

from __future__ import annotations

import dis
import sys
import warnings
from types import CodeType, FrameType
from typing import Any, ClassVar

from lagpu.errors import UnusedCall
from lagpu.host.source import expression_at

__all__ = ["Unassigned"]

_warned: dict[str, dict[Any, Any]] = {}  # by file, the registry by which Python warns once a line


class Unassigned:
    """One side of a statement, which does nothing by itself.

    A subclass sets `_used`. An object that is dropped unused warns if the expression that made it
    is a statement of its own. An exception drops such objects as well, as it drops ``w(mask)`` in
    ``w(mask) << x`` if `x` raises; then there is no warning.
    """

    __slots__ = ("_used",)
    _remedy: ClassVar[str]  # {0} is the author's expression

    def _mark_used(self) -> None:
        """Mark this object as used, so that no warning follows an error that is being raised."""
        self._used = True

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
        if frame is None or dis.opname[frame.f_code.co_code[frame.f_lasti]] != "POP_TOP":
            return None
        if expression_at(frame.f_code, frame.f_lasti).text.startswith(("with ", "async with ")):
            return None  # the end of the block drops an error with all objects it refers to
        return frame.f_code, frame.f_lasti


def _warn(x: Unassigned, code: CodeType, instruction: int) -> None:
    found = expression_at(code, instruction)
    message = x._remedy.format(found.text or repr(x))
    known = _warned.setdefault(code.co_filename, {})
    warnings.warn_explicit(message, UnusedCall, code.co_filename, found.line, registry=known)
