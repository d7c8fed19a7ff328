"""Edge lists in the format of SNAP: lines ``i j`` or ``i j weight``, comments, maybe a header.

Vertices keep their numbers, from 0; the number of vertices is the maximum of the largest number
plus one, the header's count, and the count in a comment ``# Nodes: n``.

Lines that are blank or begin with ``#`` or ``%`` are comments. After a leading comment
``# Undirected graph`` each line is an edge in both directions.

The first line is a header ``n m`` if it has two numbers, exactly m >= 1 lines follow, and all their
vertices are below n. `header` overrides this rule. A first line that would be such a header for
vertices 1 .. n raises an error, since it is more likely a header than an edge.
"""

from __future__ import annotations

import re
import warnings
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.errors import FileFormatError
from lagpu.host import memory
from lagpu.io.csc import CSC, bytes_for_entries, from_entries
from lagpu.io.text import data_lines, line_number, pieces, show, write_rows

__all__ = ["dump", "parse"]

Array = np.ndarray[Any, Any]

_UNDIRECTED = re.compile(rb"^[#%]\s*undirected graph", re.IGNORECASE | re.MULTILINE)
_NODES = re.compile(rb"^[#%].*\bnodes:\s*([0-9]{1,18})\b", re.IGNORECASE | re.MULTILINE)
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
    data: bytes, name: str, *, header: bool | None, dup_op: BinaryOp | None = None
) -> tuple[CSC, bool]:
    """Return the matrix of an edge list, and whether its comments call it undirected.

    Parameters
    ----------
    data : bytes
        Content of the file.
    name : str
        Name of the file in messages.
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
    OutOfMemory
        If a matrix with so many vertices does not fit.
    """
    offset, first = next(data_lines(data), (len(data), b""))
    comments = data[:offset]
    nodes = _NODES.search(comments)
    n = int(nodes[1]) if nodes else 0
    if not first and (header or not nodes):
        raise FileFormatError(f"read: {name} has no edges, only blank lines and comments.")
    end = data.find(b"\n", offset)
    edges = _edges(data, len(data) if end < 0 else end + 1, name)
    top = _header(first, edges, name, header) if first else None
    if top is not None:
        n = max(n, top)
    elif first:
        edges = _join([_first_edge(data, offset, first, edges, name), edges])
    n = max(n, 1 + edges.largest())
    need = bytes_for_entries(len(edges.u), n, values=edges.weights is not None)
    memory.require(need, f"read: {name}, {n} vertices")
    csc = from_entries(edges.u, edges.v, edges.weights, n, n, dup_op)
    return csc, _UNDIRECTED.search(comments) is not None


def _edges(data: bytes, start: int, name: str) -> _Edges:
    """Return the edges of all lines from an offset on."""
    found: list[_Edges] = []
    for offset, text in pieces(data, start):
        try:
            table = _table(text)
            if found and len(table) and (found[0].weights is None) != (table.shape[1] == 2):
                raise _Malformed
        except _Malformed:
            raise _first_fault(data, offset, start, name) from None
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
        raise _Malformed  # out of range; the parser saturates
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
    tokens = first.split()
    largest, count = edges.largest(), len(edges.u)
    if len(tokens) == 2 and all(token.isdigit() and len(token) < 17 for token in tokens):
        n, m = int(tokens[0]), int(tokens[1])
        if m == count and largest < n and (count or header):
            return n
        if header is None and m == count > n == largest and edges.u.min() > 0 < edges.v.min():
            raise FileFormatError(
                f"read: {name}: {show(first)} looks like a header of vertices 1 .. {n}. Number "
                "them from 0, or give header=False if it is an edge."
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
        raise _first_fault(data, offset, offset, name) from None
    return _columns(table)


def _first_fault(data: bytes, offset: int, start: int, name: str) -> FileFormatError:
    """Return the error for the first malformed line from an offset on.

    A line is malformed too if its width differs from the first line at `start`.
    """
    width = len(next(data_lines(data, start))[1].split())
    width = width if width in (2, 3) else 2
    for at, line in data_lines(data, offset):
        fault = _fault(line, width)
        if fault:
            number = line_number(data, at)
            return FileFormatError(f"read: {name}, line {number}: {show(line)} {fault}.")
    return FileFormatError(f"read: {name} is not an edge list.")  # pragma: no cover (no such file)


def _fault(line: bytes, width: int) -> str:
    """Return what is wrong with a line, or an empty string."""
    tokens = line.split()
    if len(tokens) != width:
        return f"has {len(tokens)} numbers, not {width}"
    if not all(_REAL.fullmatch(token) for token in tokens):
        return "is not made of numbers"
    numbers = [int(token) if _WHOLE.fullmatch(token) else float(token) for token in tokens]
    for vertex in numbers[:2]:
        if vertex != vertex or vertex < 0 or vertex >= _LARGEST or vertex != int(vertex):
            return "has a vertex that is not a whole number 0, 1, 2, ..."
    return "has a weight beyond 64 bits" if any(abs(x) >= 2**63 - 1 for x in numbers) else ""


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write ``i j``, or ``i j value`` unless BOOL, after a comment with the number of vertices."""
    n = max(csc.nrows, csc.ncols)
    file.write(f"# Nodes: {n} Edges: {csc.nvals}\n# FromNodeId\tToNodeId\n".encode())
    columns = [csc.row_idx, csc.columns()]
    write_rows(file, columns if csc.dtype.is_bool else [*columns, csc.dense_values()], "\t")
