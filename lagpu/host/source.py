"""Who wrote the statement that is running: the author's frame, its text, and the names in it."""

from __future__ import annotations

import ast
import functools
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

__all__ = [
    "Expression",
    "author",
    "expression_at",
    "line_of_author",
    "lines_of",
    "named",
    "names_in",
    "source_between",
    "source_of",
    "target_of",
]

_TARGET = re.compile(r"(\w+)\s*=(?!=)")
# The notation itself: a statement stands where these packages were called from.
_NOTATION = tuple(
    f"lagpu.{package}." for package in ("algebra", "core", "crosscheck", "host", "loops", "observe")
)
_PACKAGES = frozenset(prefix.removesuffix(".") for prefix in _NOTATION)


class Expression(NamedTuple):
    """What the source says of an instruction.

    Attributes
    ----------
    line : int
        Where its expression begins; 0 if nobody knows.
    text : str
        The expression on one line; empty if the source cannot be read.
    rest : str
        What follows it on its last line.
    """

    line: int
    text: str
    rest: str


def author(inside: int = 0) -> FrameType | None:
    """Return the frame of whoever wrote the statement that is running.

    Parameters
    ----------
    inside : int
        How many callers are known to belong to the notation, the caller of this function first;
        they are not looked at.
    """
    frame: FrameType | None = sys._getframe(1 + inside)
    while frame is not None and _is_notation(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame


def _is_notation(module: str) -> bool:
    return module.startswith(_NOTATION) or module in _PACKAGES


def line_of_author() -> tuple[str, int, str]:
    """Return (file, line, text) of the statement that is running; ``("?", 0, "")`` without one."""
    frame = author()
    if frame is None:
        return "?", 0, ""
    return _line_at(frame.f_code, frame.f_lasti, frame.f_lineno)


@functools.lru_cache(maxsize=4096)
def _line_at(code: CodeType, instruction: int, line: int) -> tuple[str, int, str]:
    found = expression_at(code, instruction)
    if not found.text:
        return code.co_filename, line, linecache.getline(code.co_filename, line).strip()
    text, rest = found.text, found.rest
    if rest.startswith("=") and not rest.startswith("=="):  # w[i] = x is compiled as w[i]
        text = " ".join(f"{text} {rest}".split())
    return code.co_filename, found.line, text


def names_in(frame: FrameType | None, wanted: Callable[[Any], bool]) -> dict[int, str]:
    """Return the names that a frame gives the objects for which `wanted` holds, by their ``id``."""
    if frame is None:
        return {}
    return {id(x): name for name, x in reversed(frame.f_locals.items()) if wanted(x)}


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
    """Return the variable that a statement of `code` assigns to, or an empty string."""
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
        From `target_of`: while ``w = call.new()`` runs, the output is in no variable yet.
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
    rest = lines[-1][right:].strip().decode(errors="replace")
    lines[-1] = lines[-1][:right]
    lines[0] = lines[0][left:]
    text = b" ".join(lines).decode(errors="replace")
    return Expression(start, " ".join(text.split()), rest)


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
