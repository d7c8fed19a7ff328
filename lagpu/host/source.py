"""The author of the running statement: the frame, the source text, and the names in it."""

import ast
import dis
import functools
import linecache
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

from lagpu.host.display import Unnamed

#: Held while Python makes or takes syntax trees: 3.11 counts their nesting for all threads
#: together, and raises SystemError if two threads do so at the same time.
SYNTAX = threading.RLock()
_TARGET = re.compile(r"(\w+)\s*=(?!=)")
# The packages of the notation itself; the author called into them.
_NOTATION = tuple(
    f"lagpu.{package}." for package in ("algebra", "core", "crosscheck", "host", "loops", "observe")
)
_BESIDE = ("LOAD_", "BUILD_", "PUSH_NULL", "KW_NAMES", "CACHE", "EXTENDED_ARG")
_PACKAGES = frozenset(prefix.removesuffix(".") for prefix in _NOTATION)


class Expression(NamedTuple):
    """The source of an instruction: line, text on one line, and the `rest` of its last line."""

    line: int
    text: str
    rest: str


def author(inside: int = 0) -> FrameType | None:
    """Return the author's frame: the innermost outside the notation; skip `inside` callers."""
    frame: FrameType | None = sys._getframe(1 + inside)
    while frame is not None and is_notation(frame):
        frame = frame.f_back
    return frame


def is_notation(frame: FrameType) -> bool:
    """Whether a frame runs the notation itself, and no author's code."""
    return _of_notation(frame.f_globals.get("__name__", ""))


@functools.lru_cache(maxsize=4096)
def _of_notation(module: str) -> bool:
    return module.startswith(_NOTATION) or module in _PACKAGES


def is_command(frame: FrameType) -> bool:
    """Whether a frame runs a command of lagpu, which calls the algorithm and is no part of it."""
    return str(frame.f_globals.get("__name__", "")).startswith("lagpu.cli.")


def operation_at(frame: FrameType) -> str:
    """Return the name of the instruction that a frame runs, such as ``"POP_TOP"``."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]


def drops_an_error(frame: FrameType) -> bool:
    """Whether a frame ends a ``with`` block with an error, dropping all that it refers to."""
    names = (dis.opname[opcode] for opcode in reversed(frame.f_code.co_code[: frame.f_lasti : 2]))
    return next(name for name in names if name != "CACHE") in ("RERAISE", "POP_EXCEPT", "POP_TOP")


@functools.lru_cache(maxsize=4096)
def taken_by(code: CodeType, instruction: int) -> str:
    """Return the name of the instruction that takes the value of another, as ``"CALL"``."""
    names = (dis.opname[opcode] for opcode in code.co_code[instruction + 2 :: 2])
    return next((name for name in names if not name.startswith(_BESIDE)), "")


def line_of_author() -> tuple[str, int, str]:
    """Return (file, line, text) of the running statement; ``("?", 0, "")`` if there is none."""
    frame = author()
    return ("?", 0, "") if frame is None else _line_at(frame.f_code, frame.f_lasti, frame.f_lineno)


@functools.lru_cache(maxsize=4096)
def _line_at(code: CodeType, instruction: int, line: int) -> tuple[str, int, str]:
    found = expression_at(code, instruction)
    if not found.text:
        return code.co_filename, line, source_between(code.co_filename, line, line)
    text, rest = found.text, found.rest
    if rest.startswith("=") and not rest.startswith("=="):  # w[i] = x is compiled as w[i]
        text = " ".join(f"{text} {rest}".split())
    return code.co_filename, found.line, text


def mentioned_in_with(frame: FrameType) -> frozenset[str]:
    """Return the names in the ``with`` statement that a frame enters; none without its source."""
    line = frame.f_lineno
    for node in _nodes(frame.f_code):
        if isinstance(node, ast.With) and node.lineno <= line <= node.body[0].lineno:
            return frozenset(x.id for x in ast.walk(node) if isinstance(x, ast.Name))
    return frozenset()


def lines_of(frame: FrameType) -> tuple[int, int]:
    """Return the first and the last line of a frame's running statement."""
    line = frame.f_lineno
    ends = _simple_statements(frame.f_code)
    return next(((a, b) for a, b in ends if a <= line <= b), (line, line))


def source_of(frame: FrameType) -> str:
    """Return a frame's running statement on one line; empty if the source cannot be read."""
    return source_between(frame.f_code.co_filename, *lines_of(frame))


def source_between(file: str, first: int, last: int) -> str:
    lines = (line.strip() for line in _lines_of(file)[first - 1 : last])
    return " ".join(line for line in lines if line)


def _lines_of(file: str) -> list[str]:
    try:
        return linecache.getlines(file)
    except ImportError:  # from Python 3.13 on it imports modules, which fails at the end of Python
        with open(file, encoding="utf-8") as source:  # noqa: PTH123
            return source.readlines()


def target_of(frame: FrameType | None, source: str) -> str:
    """Return the variable that gets the value of a frame's running call, or an empty string."""
    found = _TARGET.match(source)
    if found is None or frame is None or frame.f_code.co_name == "<lambda>":  # assigns nothing
        return ""
    codes = (dis.opname[one] for one in frame.f_code.co_code[frame.f_lasti + 2 :: 2])
    after = next((name for name in codes if name not in ("CACHE", "EXTENDED_ARG")), "")
    return "" if after in ("LOAD_ATTR", "LOAD_METHOD") or found[1] == "_" else found[1]


def named(
    names: Mapping[int, str], out: Any, target: str, scope: Mapping[int, Any]
) -> dict[int, str]:
    """Return a name for each object of a statement, by ``id``."""
    found = dict(names)
    if target and id(out) not in found:
        for key, name in names.items():
            if name == target:  # the object that the assignment is about to replace
                found[key] = f"{name} (old)"
        found[id(out)] = target
    for key, x in scope.items():
        if key in found:
            continue
        operand, wanted = getattr(x, "operand", None), x.name
        if id(operand) in found:
            wanted = f"selection({found[id(operand)]})"
        elif isinstance(wanted, Unnamed):  # nothing holds it but the expression
            wanted = {"A": "T", "v": "t"}.get(wanted, wanted)
        count, name = 1, wanted
        while name in found.values():
            count += 1
            name = f"{wanted} ({count})"
        found[key] = name
    return found


def file_name(file: str) -> str:
    """Return the name of a source file without its folders; ``"cell"`` for a notebook's cell."""
    folder, _, name = file.replace("\\", "/").rpartition("/")
    return "cell" if "ipykernel_" in folder else name


@functools.lru_cache(maxsize=4096)
def expression_at(code: CodeType, instruction: int) -> Expression:
    """Return the source text of an instruction, given as ``f_lasti`` of a frame."""
    start, stop, left, right = list(code.co_positions())[instruction // 2]
    if start is None or stop is None or left is None or right is None:
        return Expression(start or 0, "", "")
    if (start, left) in _headers_of(code):  # of a `for` statement only the header, not the body
        stop, right = _headers_of(code)[start, left]
    lines = [line.encode() for line in _lines_of(code.co_filename)[start - 1 : stop]] or [b""]
    rest = lines[-1][right:].strip().decode(errors="replace")
    lines[-1] = lines[-1][:right]
    lines[0] = lines[0][left:]
    return Expression(start, " ".join(b" ".join(lines).decode(errors="replace").split()), rest)


@functools.lru_cache(maxsize=256)
def _headers_of(code: CodeType) -> dict[tuple[int, int], tuple[int, int]]:
    """Return (line, byte) of the beginning and the end of each ``for`` header of a file."""
    return {
        (node.lineno, node.col_offset): (node.iter.end_lineno or 0, node.iter.end_col_offset or 0)
        for node in _nodes(code)
        if isinstance(node, ast.For)
    }


@functools.lru_cache(maxsize=256)
def _simple_statements(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Return the lines of each statement that spans several lines and contains no other."""
    simple = (x for x in _nodes(code) if isinstance(x, ast.stmt) and not hasattr(x, "body"))
    spans = ((x.lineno, x.end_lineno or 0) for x in simple)
    return tuple((first, last) for first, last in spans if last > first)


def _nodes(code: CodeType) -> Iterator[ast.AST]:
    """Yield the syntax nodes of the file of `code`; none if it is not valid Python."""
    linecache.checkcache(code.co_filename)
    try:
        with SYNTAX:
            tree = ast.parse("".join(_lines_of(code.co_filename)))
    except SyntaxError:
        return
    rest: list[ast.AST] = [tree]
    for node in rest:  # not ast.walk, which imports something and so fails at the end of Python
        rest.extend(ast.iter_child_nodes(node))
    yield from rest
