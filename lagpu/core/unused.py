"""What an author began and did not use: a warning says so, with the line where it was written."""

from __future__ import annotations

import dis
import sys
import warnings
from types import CodeType, FrameType
from typing import Any, ClassVar

from lagpu.errors import UnusedCall
from lagpu.host.source import expression_at

__all__ = ["Unfinished"]

_told: dict[str, dict[Any, Any]] = {}  # what Python needs to warn once a line, by file


class Unfinished:
    """Half a statement, which does nothing by itself.

    A subclass sets `_used`. It warns where it is let go, if it is a statement of its own there:
    an error on its way lets go as well, of `w(mask)` in ``w(mask) << x`` if `x` raises.
    """

    __slots__ = ("_used",)
    _remedy: ClassVar[str]  # {0} is what the author wrote

    def _excuse(self) -> None:
        """Take no further offence: it is used, or an error has been raised, and one is enough."""
        self._used = True

    def __del__(self) -> None:
        try:
            if self._used:
                return
        except AttributeError:  # it was refused as it was made
            return
        place = self._place(sys._getframe().f_back)
        if place is not None:
            _warn(self, *place)

    def _place(self, frame: FrameType | None) -> tuple[CodeType, int] | None:
        """Return where it was written, now that `frame` lets it go; None to say nothing."""
        if frame is None or dis.opname[frame.f_code.co_code[frame.f_lasti]] != "POP_TOP":
            return None
        if expression_at(frame.f_code, frame.f_lasti).text.startswith(("with ", "async with ")):
            return None  # its end lets go of an error, and of all that the error held
        return frame.f_code, frame.f_lasti


def _warn(x: Unfinished, code: CodeType, instruction: int) -> None:
    found = expression_at(code, instruction)
    message = x._remedy.format(found.text or repr(x))
    known = _told.setdefault(code.co_filename, {})
    warnings.warn_explicit(message, UnusedCall, code.co_filename, found.line, registry=known)
