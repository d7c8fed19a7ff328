"""Where the statement that is running stands, and its text as written."""

from __future__ import annotations

import functools
import linecache
import sys
from types import CodeType, FrameType

from lagpu.crosscheck.report import Place
from lagpu.host.source import expression_at

__all__ = ["author", "place_of_author"]

# A statement stands where the notation, or this package, was called from.
_NOTATION = ("algebra", "core", "crosscheck", "host", "loops", "observe")


def author() -> FrameType | None:
    """Return the frame of whoever wrote the running statement."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_notation(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame


def place_of_author() -> Place:
    """Return where whoever wrote the running statement wrote it."""
    frame = author()
    if frame is None:
        return Place("?", 0, "")
    return _read(frame.f_code, frame.f_lasti, frame.f_lineno)


def _is_notation(module: str) -> bool:
    package, _, rest = module.partition(".")
    return package == "lagpu" and rest.split(".")[0] in _NOTATION


@functools.lru_cache(maxsize=4096)
def _read(code: CodeType, instruction: int, line: int) -> Place:
    """Return the place of an instruction, with the text that it comes from."""
    found = expression_at(code, instruction)
    if not found.text:
        return Place(code.co_filename, line, linecache.getline(code.co_filename, line).strip())
    text, behind = found.text, found.behind
    if behind.startswith("=") and not behind.startswith("=="):  # w[i] = x is noted as w[i]
        text = " ".join(f"{text} {behind}".split())
    return Place(code.co_filename, found.line, text)
