"""DIMACS files: arcs with lengths (``.gr``), and edges without values (``.col``).

Sources: the 9th DIMACS Implementation Challenge (shortest paths, 2006), ``p sp n m`` and lines
``a u v w``; the 2nd one (cliques and colouring, 1993), ``p edge n m`` and lines ``e u v``, where
each edge is there once. Vertices are 1 .. n, and become 0 .. n-1.
"""

from __future__ import annotations

import re
from typing import IO, Any

import numpy as np

from lagpu.errors import FileFormatError, NotSupported
from lagpu.io.csc import CSC
from lagpu.io.reading import Budget, Edges, Options, Parsed, graph_of
from lagpu.io.text import PIECE, Malformed, line_number, numbers, pieces, show, write_rows

Array = np.ndarray[Any, Any]

_COMMENT = re.compile(rb"^c(?:[ \t][^\n]*)?\r?\n", re.MULTILINE)
_PROBLEM = re.compile(
    rb"(?:c(?:[ \t][^\n]*)?\r?\n|[ \t]*\r?\n)*+"
    rb"p[ \t]+([a-z]+)[ \t]+([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r]*\n"
)
_REAL = rb"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_ROWS = {
    b"sp": re.compile(
        rb"(?:a[ \t]++[0-9]++[ \t]++[0-9]++[ \t]++" + _REAL + rb"[ \t\r]*+\n|\s*\n)*+"
    ),
    b"edge": re.compile(rb"(?:e[ \t]++[0-9]++[ \t]++[0-9]++[ \t\r]*+\n|\s*\n)*+"),
}
_ROWS[b"col"] = _ROWS[b"edge"]
_FORM = {b"sp": "a u v w", b"edge": "e u v", b"col": "e u v"}


def is_dimacs(data: bytes) -> bool:
    """Return whether a text begins with comments ``c`` and a line ``p kind n m``."""
    return _PROBLEM.match(data) is not None


def parse(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the graph of a file; arcs are directed, edges are not.

    Parameters
    ----------
    data : bytes
        Content of the file; its last line has an end.
    budget : Budget
        Name of the file in messages, and the memory that it may take.
    options : Options
        `dup_op`.

    Raises
    ------
    FileFormatError
        If a line is no arc or edge, a vertex is outside 1 .. n, or there are more or fewer lines
        than the file says.
    NotSupported
        For the file of another problem, as maximum flow.
    OutOfMemory, LimitExceeded
        If the graph does not fit.
    """
    name, top = budget.name, _PROBLEM.match(data)
    if top is None:
        raise FileFormatError(f"read: {name} has no line `p sp n m` or `p edge n m` at its top.")
    kind, n, m = top[1], int(top[2]), int(top[3])
    if kind not in _ROWS:
        raise NotSupported(
            f"read: {name} is DIMACS of the problem {kind.decode()!r}. Give `p sp` (shortest "
            "paths) or `p edge` (colouring)."
        )
    lines = data.count(b"\n")
    budget.require(64 * lines + 16 * min(len(data), PIECE), "its lines", held=len(data))
    width = 3 if kind == b"sp" else 2
    parts = []
    for offset, text in pieces(data, top.end()):
        parts.append(_edges(text, data, offset, kind, width, name))
    edges = Edges.join(parts)
    count = len(edges.u)
    if count != m and (kind == b"sp" or count != 2 * m):
        raise FileFormatError(
            f"read: {name}: the header says {m} lines `{_FORM[kind]}`, the file has {count}. It is "
            "truncated, or its header is wrong."
        )
    least = min(edges.u.min(initial=1), edges.v.min(initial=1))
    if least < 1 or edges.largest() > n:
        bad = edges.largest() if least >= 1 else least
        raise FileFormatError(f"read: {name}: vertex {bad} is outside 1 .. {n}.")
    edges = Edges(edges.u - 1, edges.v - 1, edges.weights)
    held = len(data) + 8 * count
    return graph_of(edges, budget, options, held=held, n=n, undirected=kind != b"sp")


def _edges(text: bytes, data: bytes, offset: int, kind: bytes, width: int, name: str) -> Edges:
    """Return the edges of whole lines."""
    rows = _COMMENT.sub(b"\n", text) if text.startswith(b"c") or b"\nc" in text else text
    found = _ROWS[kind].match(rows)
    stop = 0 if found is None else found.end()
    try:
        if stop < len(rows):
            raise Malformed
        plain = rows.translate(None, b"a" if kind == b"sp" else b"e")
        table = numbers(plain, np.frombuffer(plain, np.uint8)) if plain.strip() else np.empty(0)
        table = table.reshape(-1, width)
        if len(table) and not table[:, :2].max() < 2**53:
            raise Malformed
    except Malformed:
        line = rows[stop : rows.find(b"\n", stop)]
        at = line_number(data, offset) + rows.count(b"\n", 0, stop)
        fault = f"is no line `{_FORM[kind]}` of numbers of 64 bits"
        raise FileFormatError(f"read: {name}, line {at}: {show(line)} {fault}.") from None
    index = np.int32 if len(table) and table[:, :2].max() < 2**31 - 1 else np.int64
    u, v = table[:, 0].astype(index), table[:, 1].astype(index)
    return Edges(u, v, table[:, 2].copy() if width == 3 else None)


def dump_arcs(csc: CSC, file: IO[bytes]) -> None:
    """Write ``p sp n m`` and an arc for each entry; True is written as 1."""
    file.write(f"p sp {csc.nrows} {csc.nvals}\n".encode())
    write_rows(file, [csc.row_idx + 1, csc.columns() + 1, csc.dense_values()], " ", "a ")


def dump_edges(csc: CSC, file: IO[bytes]) -> None:
    """Write ``p edge n m`` and each edge of a symmetric matrix once."""
    cols = csc.columns()
    once = csc.row_idx <= cols
    file.write(f"p edge {csc.nrows} {int(once.sum())}\n".encode())
    write_rows(file, [csc.row_idx[once] + 1, cols[once] + 1], " ", "e ")
