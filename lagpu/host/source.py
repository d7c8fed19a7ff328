"""The text of the statement that is running, and the names its author gave."""

from __future__ import annotations

import ast
import functools
import linecache
import re
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

__all__ = [
    "Expression",
    "expression_at",
    "lines_of",
    "named",
    "source_between",
    "source_of",
    "target_of",
]

_TARGET = re.compile(r"(\w+)\s*=(?!=)")


class Expression(NamedTuple):
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


def lines_of(frame: FrameType) -> tuple[int, int]:
    """Return the first and the last line of the statement that a frame is running."""
    line = frame.f_lineno
    for first, last in _simple_statements(frame.f_code):
        if first <= line <= last:
            return first, last
    return line, line


def source_of(frame: FrameType) -> str:
    """Return the statement that a frame is running, in one line; empty without a text."""
    return source_between(frame.f_code.co_filename, *lines_of(frame))


def source_between(file: str, first: int, last: int) -> str:
    """Return lines of a file in one line."""
    lines = (linecache.getline(file, k).strip() for k in range(first, last + 1))
    return " ".join(line for line in lines if line)


def target_of(code: CodeType | None, source: str) -> str:
    """Return the variable that a statement of `code` gives its result, or an empty text."""
    found = _TARGET.match(source)
    if found is None or code is None or code.co_name == "<lambda>":  # it is one expression
        return ""
    return found[1]


def named(
    names: Mapping[int, str], out: Any, target: str, sight: Mapping[int, Any]
) -> dict[int, str]:
    """Return a name for each object of a statement, by ``id``.

    Parameters
    ----------
    names : mapping
        Those of the author's variables.
    out : Vector, Matrix or Scalar
        What is written.
    target : str
        From `target_of`: behind ``w = call.new()`` the output is in no variable yet.
    sight : mapping
        All objects; one without a variable keeps its own name, numbered if that is taken.
    """
    found = dict(names)
    if target and id(out) not in found:
        for key, name in names.items():
            if name == target:  # what the variable is about to let go
                found[key] = f"{name} (old)"
        found[id(out)] = target
    for key, x in sight.items():
        if key in found:
            continue
        count, name, wanted = 1, x.name, x.name
        while name in found.values():
            count += 1
            name = f"{wanted} ({count})"
        found[key] = name
    return found


@functools.lru_cache(maxsize=4096)
def expression_at(code: CodeType, instruction: int) -> Expression:
    """Return what the source says of an instruction, ``f_lasti`` of a frame."""
    start, stop, left, right = list(code.co_positions())[instruction // 2]
    if start is None or stop is None or left is None or right is None:
        return Expression(start or 0, "", "")
    if (start, left) in _headers_of(code):  # what a `for` runs itself stands in its first line
        stop, right = _headers_of(code)[start, left]
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(start, stop + 1)]
    behind = lines[-1][right:].strip().decode(errors="replace")
    lines[-1] = lines[-1][:right]
    lines[0] = lines[0][left:]
    text = b" ".join(lines).decode(errors="replace")
    return Expression(start, " ".join(text.split()), behind)


@functools.lru_cache(maxsize=256)
def _headers_of(code: CodeType) -> dict[tuple[int, int], tuple[int, int]]:
    """Return where the header of each ``for`` of the file of `code` begins, with its end.

    Both are (line, byte); the colon is left out.
    """
    return {
        (node.lineno, node.col_offset): (node.iter.end_lineno or 0, node.iter.end_col_offset or 0)
        for node in _nodes(code)
        if isinstance(node, ast.For)
    }


@functools.lru_cache(maxsize=256)
def _simple_statements(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Return the lines of each statement of several lines that holds no other statement."""
    return tuple(
        (node.lineno, node.end_lineno)
        for node in _nodes(code)
        if isinstance(node, ast.stmt)
        and not hasattr(node, "body")
        and node.end_lineno is not None
        and node.end_lineno > node.lineno
    )


def _nodes(code: CodeType) -> Iterator[ast.AST]:
    """Yield what the file that holds `code` consists of; nothing if it is no Python."""
    linecache.checkcache(code.co_filename)
    try:
        yield from ast.walk(ast.parse("".join(linecache.getlines(code.co_filename))))
    except SyntaxError:
        return
