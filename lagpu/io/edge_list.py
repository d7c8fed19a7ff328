"""Edge lists in the format of SNAP: lines ``i j`` or ``i j weight``, comments, maybe a header.

Vertices keep their numbers, from 0; the number of vertices is the maximum of the largest number
plus one, the header's count, and the count in a comment ``# Nodes: n``.

Lines that are blank or begin with ``#`` or ``%`` are comments. After a leading comment
``# Undirected graph`` each line is an edge in both directions.

The first line is a header ``n m`` if it has two numbers, exactly m >= 1 lines follow, and all their
vertices are below n. `header` overrides this rule. A first line that would be such a header for
vertices 1 .. n raises an error, since it is more likely a header than an edge; so do the sizes of
a Matrix Market file without its banner, and such a banner that is not written as it must be.
"""

from __future__ import annotations

import re
import warnings
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.errors import FileFormatError
from lagpu.io.budget import Budget
from lagpu.io.csc import CSC, bytes_for_entries, from_entries
from lagpu.io.text import PIECE, data_lines, line_number, pieces, show, write_rows

__all__ = ["dump", "parse"]

Array = np.ndarray[Any, Any]

_UNDIRECTED = re.compile(rb"^[#%]\s*undirected graph", re.IGNORECASE | re.MULTILINE)
_NODES = re.compile(rb"^[#%].*?\bnodes:[ \t]*([0-9]{1,30})\b", re.IGNORECASE | re.MULTILINE)
_BANNER = re.compile(rb"^[ \t]*[#%]+[ \t]*matrix[ \t]*market\b.*", re.IGNORECASE | re.MULTILINE)
_COMMENT = re.compile(rb"^[ \t]*[#%][^\n]*", re.MULTILINE)
_WHOLE = re.compile(rb"[+-]?[0-9]+")
_REAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(nan|inf)", re.IGNORECASE)
_INTEGER = np.zeros(256, bool)
_INTEGER[list(b"0123456789- \t\n\v\f\r")] = True
_LARGEST = 2**53  # FP64 represents whole numbers up to this exactly


class _Edges(NamedTuple):
    u: Array
    v: Array
    weights: Array | None

    def largest(self) -> int:
        """Return the largest vertex, -1 if there are no edges."""
        return int(max(self.u.max(initial=-1), self.v.max(initial=-1)))


class _Malformed(Exception):
    """A piece contains a line that is not an edge; `_first_fault` then finds the line."""


def parse(
    data: bytes, budget: Budget, *, header: bool | None, dup_op: BinaryOp | None = None
) -> tuple[CSC, bool]:
    """Return the matrix of an edge list, and whether its comments call it undirected.

    Parameters
    ----------
    data : bytes
        Content of the file; its last line has an end.
    budget : Budget
        Name of the file in messages, and the memory that it may take.
    header : bool or None
        Whether the first line is a header ``n m``; None decides by the rule of this module.
    dup_op : BinaryOp, optional
        Combines the weights of lines given twice, instead of summing them.

    Returns
    -------
    CSC
        The entries in the file. BOOL without weights, where equal lines are merged; with weights
        INT64 or FP64, where the weights of an edge given twice are summed.
    bool
        Whether a leading comment says ``Undirected graph``.

    Raises
    ------
    FileFormatError
        If a line is not an edge (with its number), if there is no edge, or if the first line is not
        a header although ``header=True``.
    OutOfMemory, LimitExceeded
        If a matrix with so many vertices does not fit.
    """
    name = budget.name
    offset, first = next(data_lines(data), (len(data), b""))
    banner = _BANNER.search(data, 0, offset)
    if banner:
        raise FileFormatError(
            f"read: {name}, line {line_number(data, banner.start())}: {show(banner[0])} looks like "
            "the banner of Matrix Market. Make it the first line and write it %%MatrixMarket, or "
            "remove it from an edge list."
        )
    nodes = _NODES.search(data, 0, offset)
    n = int(nodes[1]) if nodes else 0
    if not first and (header or not nodes):
        raise FileFormatError(f"read: {name} has no edges, only blank lines and comments.")
    budget.require(_bytes_of_lines(data), "its lines", held=len(data))
    end = data.find(b"\n", offset)
    edges = _edges(data, offset, len(data) if end < 0 else end + 1, name)
    top = _header(first, edges, name, header) if first else None
    if top is not None:
        n = max(n, top)
    elif first:
        edges = _join([_first_edge(data, offset, first, edges, name), edges])
    largest = edges.largest()
    if n > largest:
        part = f"{n} vertices"
    else:
        n = 1 + largest
        sparse = n > len(data)  # otherwise no single vertex is to blame
        part = f"vertex {largest}{_line_of(largest, data)}" if sparse else f"{n} vertices"
    held = len(data) + 8 * len(edges.u)
    need = bytes_for_entries(len(edges.u), n, values=edges.weights is not None, held=held)
    budget.require(need, part, "Number the vertices from 0 without gaps", held)
    csc = from_entries(edges.u, edges.v, edges.weights, n, n, dup_op)
    return csc, _UNDIRECTED.search(data, 0, offset) is not None


def _bytes_of_lines(data: bytes) -> int:
    """Return an upper bound on the bytes that `_edges` takes (docs/design/memory.md)."""
    return 2 * _bytes_of_edges(data.count(b"\n")) + 16 * min(len(data), PIECE)


def _bytes_of_edges(count: int) -> int:
    return 16 * count


def _line_of(vertex: int, data: bytes) -> str:
    """Return where a vertex stands first, for a message, if it is written in digits alone."""
    found = re.search(rb"(?<![0-9.])%d(?![0-9])" % vertex, data)
    return f" in line {line_number(data, found.start())}" if found else ""


def _edges(data: bytes, first: int, start: int, name: str) -> _Edges:
    """Return the edges of all lines from an offset on; the first line of all begins at `first`."""
    found: list[_Edges] = []
    for offset, text in pieces(data, start):
        try:
            if len(text) > PIECE:  # one line
                raise _Malformed
            table = _table(text)
            if found and len(table) and (found[0].weights is None) != (table.shape[1] == 2):
                raise _Malformed
        except _Malformed:
            raise _first_fault(data, first, offset, start, name) from None
        if len(table):
            found.append(_columns(table))
    return _join(found)


def _table(text: bytes) -> Array:
    """Return the numbers of whole lines, (lines, 2 or 3), as INT64, or FP64 if necessary."""
    if b"#" in text or b"%" in text:
        text = _COMMENT.sub(b"", text)
    raw = np.frombuffer(text, np.uint8)
    full = raw > 32
    begins = full.copy()
    begins[1:] &= ~full[:-1]
    line = np.cumsum(raw == 10, dtype=np.int32)[begins]  # the line of each number
    if line.size == 0:
        return np.empty((0, 2), np.int64)
    width = int(np.searchsorted(line, line[0], side="right"))
    if width not in (2, 3) or line.size % width:
        raise _Malformed
    grid = line.reshape(-1, width)
    if (grid[:, 0] != grid[:, -1]).any() or (np.diff(grid[:, 0]) <= 0).any():
        raise _Malformed
    numbers = _numbers(text, raw)
    if numbers.size != line.size:  # pragma: no cover (should NumPy ever split otherwise)
        raise _Malformed
    table: Array = numbers.reshape(-1, width)
    ids = table[:, :2]
    if ids.min() < 0 or not ids.max() < _LARGEST:  # also refuses NaN
        raise _Malformed
    if table.dtype == np.float64 and (ids != np.floor(ids)).any():
        raise _Malformed
    return table


def _numbers(text: bytes, raw: Array) -> Array:
    whole = bool(_INTEGER[raw].all())
    if whole:
        minus = np.flatnonzero(raw == ord("-"))
        after = raw[np.minimum(minus + 1, raw.size - 1)]
        if (after < ord("0")).any():  # a "-" alone, which NumPy parses as 0
            raise _Malformed
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy < 2.3 warns instead of raising
        try:
            numbers = np.fromstring(text, np.int64 if whole else np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            raise _Malformed from None
    limits = np.iinfo(np.int64)
    if whole and (np.max(numbers) == limits.max or np.min(numbers) == limits.min):
        words = text.split()  # the parser saturates, so the text decides what is out of range
        last = np.flatnonzero((numbers == limits.max) | (numbers == limits.min)).tolist()
        if not all(_fits(_number(words[k])) for k in last):
            raise _Malformed
    return numbers


def _columns(table: Array) -> _Edges:
    """Return the columns of a table, vertices in 32 bits if they fit."""
    kind = np.int32 if table[:, :2].max() < 2**31 - 1 else np.int64
    u, v = table[:, 0].astype(kind), table[:, 1].astype(kind)
    return _Edges(u, v, table[:, 2].copy() if table.shape[1] == 3 else None)


def _join(parts: list[_Edges]) -> _Edges:
    parts = [part for part in parts if len(part.u)]
    if not parts:
        nothing = np.empty(0, np.int32)
        return _Edges(nothing, nothing, None)
    weights = [part.weights for part in parts if part.weights is not None]
    return _Edges(
        np.concatenate([part.u for part in parts]),
        np.concatenate([part.v for part in parts]),
        np.concatenate(weights) if weights else None,
    )


def _header(first: bytes, edges: _Edges, name: str, header: bool | None) -> int | None:
    """Return n if the first line is a header ``n m``, else None."""
    if header is False:
        return None
    tokens = first.split(None, 3)
    sizes = [int(token) for token in tokens if token.isdigit() and len(token) < 17]
    largest, count = edges.largest(), len(edges.u)
    if len(sizes) == len(tokens) == 2:
        n, m = sizes
        if m == count and largest < n and (count or header):
            return n
        if header is None and m == count and n == largest and min(edges.u.min(), edges.v.min()) > 0:
            raise FileFormatError(
                f"read: {name}: {show(first)} looks like a header of vertices 1 .. {n}. Number "
                "them from 0, or give header=False if it is an edge."
            )
    if (
        header is None
        and len(sizes) == len(tokens) == 3
        and sizes[2] == count > 0
        and (edges.u.max() <= sizes[0] and edges.v.max() <= sizes[1])
    ):
        raise FileFormatError(
            f"read: {name}: {show(first)} looks like the sizes of a Matrix Market file. Give "
            "it its banner as first line, or give header=False if it is an edge."
        )
    if header:
        raise FileFormatError(
            f"read: {name}: the header {show(first)} does not fit: {count} lines follow, with "
            f"largest vertex {largest}. Leave header=True out if it is an edge."
        )
    return None


def _first_edge(data: bytes, offset: int, first: bytes, edges: _Edges, name: str) -> _Edges:
    """Return the first line as an edge, or raise if its width differs from the other lines."""
    try:
        table = _table(first)
        if len(edges.u) and (table.shape[1] == 2) != (edges.weights is None):
            raise _Malformed
    except _Malformed:
        raise _first_fault(data, offset, offset, offset, name) from None
    return _columns(table)


def _first_fault(data: bytes, first: int, offset: int, start: int, name: str) -> FileFormatError:
    """Return the error for the first malformed line from an offset on.

    A line is malformed too if its width differs from the line at `start`. The line at `first`,
    which may be a header of another width, is named before it.
    """
    top = next(data_lines(data, first))[1]
    own, width = _width(top), _width(next(data_lines(data, start), (start, b""))[1])
    width = width or own or 2
    fault = _fault(top, own or width)
    if fault:
        return FileFormatError(f"read: {name}, line {line_number(data, first)}: {fault}.")
    for at, line in data_lines(data, offset):
        fault = _fault(line, width)
        if fault:
            return FileFormatError(f"read: {name}, line {line_number(data, at)}: {fault}.")
    return FileFormatError(f"read: {name} is not an edge list.")  # pragma: no cover (no such file)


def _width(line: bytes) -> int:
    """Return how many numbers a line has, or 0 if an edge has never so many."""
    count = len(line.split(None, 3))
    return count if count in (2, 3) else 0


def _fault(line: bytes, width: int) -> str:
    """Return a line and what is wrong with it, or an empty string."""
    fault = _why(line, width)
    return fault and f"{show(line)} {fault}"


def _why(line: bytes, width: int) -> str:
    if len(line) > PIECE:
        return f"is longer than {PIECE} bytes"
    tokens = line.split()
    if len(tokens) != width:
        only = ". Separate them by spaces or tabs" if re.search(rb"[0-9][,;|:][0-9]", line) else ""
        return f"has {len(tokens)} numbers, not {width}{only}"
    if not all(_REAL.fullmatch(token) for token in tokens):
        only = ". Separate them by spaces or tabs alone" if re.search(rb"[0-9][,;|:]", line) else ""
        return f"is not made of numbers{only}"
    numbers = [_number(token) for token in tokens]
    for vertex in numbers[:2]:
        if vertex != vertex or vertex < 0 or vertex % 1:
            return "has a vertex that is not a whole number 0, 1, 2, ..."
        if vertex >= _LARGEST:
            return f"has a vertex beyond {_LARGEST - 1}, the largest that can be read"
    whole = all(isinstance(x, int) for x in numbers)
    return "has a weight beyond 64 bits" if whole and not _fits(numbers[-1]) else ""


def _number(token: bytes) -> int | float:
    if _WHOLE.fullmatch(token) and len(token) < 1000:  # Python converts up to 4300 digits
        return int(token)
    return float(token)


def _fits(number: int | float) -> bool:
    return -(2**63) <= number < 2**63


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write ``i j``, or ``i j value`` unless BOOL, after a comment with the number of vertices."""
    n = max(csc.nrows, csc.ncols)
    file.write(f"# Nodes: {n} Edges: {csc.nvals}\n# FromNodeId\tToNodeId\n".encode())
    columns = [csc.row_idx, csc.columns()]
    write_rows(file, columns if csc.dtype.is_bool else [*columns, csc.dense_values()], "\t")
