"""The text of an expression as it was written: the compiler noted where an instruction stands."""

from __future__ import annotations

import functools
import linecache
from types import CodeType
from typing import NamedTuple

__all__ = ["Written", "written"]


class Written(NamedTuple):
    """What the source says of an instruction.

    Attributes
    ----------
    line : int
        Where its expression begins; 0 if nobody knows.
    text : str
        The expression on one line; empty if the source cannot be read.
    behind : str
        What follows it on its last line.
    """

    line: int
    text: str
    behind: str


@functools.lru_cache(maxsize=4096)
def written(code: CodeType, instruction: int) -> Written:
    """Return what the source says of an instruction, ``f_lasti`` of a frame."""
    start, stop, left, right = list(code.co_positions())[instruction // 2]
    if start is None or stop is None or left is None or right is None:
        return Written(start or 0, "", "")
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(start, stop + 1)]
    behind = lines[-1][right:].strip().decode(errors="replace")
    lines[-1] = lines[-1][:right]
    lines[0] = lines[0][left:]
    text = b" ".join(lines).decode(errors="replace")
    return Written(start, " ".join(text.split()), behind)
