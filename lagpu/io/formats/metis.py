"""METIS files: ``n m [format [weights of a vertex]]``, then a line of neighbours for each vertex.

Source: the manual of METIS 5, section 4.1. Vertices are 1 .. n, and become 0 .. n-1; each edge is
in the lines of both its ends, and m counts it once. Weights and sizes of vertices are not kept.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io.csc import CSC, asymmetry
from lagpu.io.reading import Budget, Edges, Options, Parsed, graph_of
from lagpu.io.text import PIECE, Malformed, data_lines, line_number, numbers, pieces, show

Array = np.ndarray[Any, Any]

_COMMENT = re.compile(rb"^[ \t]*%[^\n]*\n", re.MULTILINE)
_FLAGS = re.compile(rb"[01]{1,3}")


class _Head(NamedTuple):
    n: int
    m: int
    weighted: bool  # edges
    skipped: int  # numbers of a vertex before its neighbours


def looks_like_metis(data: bytes) -> bool:
    """Return whether the first line is a header, and as many lines and numbers follow."""
    offset, first = next(data_lines(data), (0, b""))
    try:
        head = _head(first, "")
    except FileFormatError:
        return False
    body = _COMMENT.sub(b"", data[data.find(b"\n", offset) + 1 :])
    count = 2 * head.m * (2 if head.weighted else 1) + head.n * head.skipped
    return 0 < head.n == body.count(b"\n") and count == len(body.split())


def parse(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the symmetric graph of a file: BOOL, or INT64 if edges have weights.

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
        If the header does not fit the lines, a vertex is outside 1 .. n, or an edge is not in the
        lines of both its ends.
    OutOfMemory, LimitExceeded
        If the graph does not fit.
    """
    name = budget.name
    offset, first = next(data_lines(data), (len(data), b""))
    head = _head(first, name)
    start = data.find(b"\n", offset) + 1 or len(data)
    budget.require(
        10 * (len(data) - start) + 24 * min(len(data), PIECE), "its lines", held=len(data)
    )
    words, counts = _words(data, start, name)
    n = head.n
    if len(counts) < n or counts[n:].any():
        given = len(counts) if len(counts) < n else int(np.flatnonzero(counts)[-1]) + 1
        raise FileFormatError(
            f"read: {name}: the header says {n} vertices, {given} lines follow. It is truncated, "
            "or no METIS graph."
        )
    edges = _edges(words, counts[:n], head, name)
    held = len(data) + 8 * len(words) + 16 * len(edges.u)
    found = graph_of(edges, budget, options, held=held, n=n)
    pair = asymmetry(found.csc)
    if pair is not None:
        i, j = pair
        raise FileFormatError(
            f"read: {name}: the line of vertex {i + 1} has the edge to {j + 1}, that of {j + 1} "
            "not the same. METIS graphs are undirected."
        )
    return found._replace(csc=replace(found.csc, symmetric=True))  # BOOL or INT64


def _head(first: bytes, name: str) -> _Head:
    words = first.split(None, 5)
    whole = all(word.isdigit() and len(word) < 18 for word in words)
    if not 2 <= len(words) <= 4 or not whole or (len(words) > 2 and not _FLAGS.fullmatch(words[2])):
        raise FileFormatError(
            f"read: {name}: {show(first)} is not the header `n m` of a METIS graph. If the file "
            'is an edge list, name it .txt, or give format=".txt".'
        )
    flags = words[2].zfill(3) if len(words) > 2 else b"000"
    sizes, of_vertices, of_edges = (flag == ord("1") for flag in flags)
    more = int(words[3]) if len(words) == 4 else 1
    return _Head(int(words[0]), int(words[1]), of_edges, sizes + (more if of_vertices else 0))


def _words(data: bytes, start: int, name: str) -> tuple[Array, Array]:
    """Return all numbers below the header, and how many of them each line has."""
    found, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for offset, text in pieces(data, start):
        plain = _COMMENT.sub(b"", text) if b"%" in text else text
        raw = np.frombuffer(plain, np.uint8)
        full = raw > 32
        begins = full.copy()
        begins[1:] &= ~full[:-1]
        line = np.cumsum(raw == 10, dtype=np.int32)[begins]
        try:
            part = numbers(plain, raw) if line.size else found[0]
            if part.dtype != np.int64 or part.size != line.size:
                raise Malformed
        except Malformed:
            raise _fault(data, offset, name) from None
        found.append(part)
        counts.append(np.bincount(line, minlength=plain.count(b"\n")))
    return np.concatenate(found), np.concatenate(counts)


def _fault(data: bytes, offset: int, name: str) -> FileFormatError:
    """Return the error for the first line that is not made of whole numbers."""
    for at, line in data_lines(data, offset):
        words = line.split()
        if not all(re.fullmatch(rb"-?[0-9]{1,18}", word) for word in words):
            where = line_number(data, at)
            return FileFormatError(
                f"read: {name}, line {where}: {show(line)} is not made of whole numbers."
            )
    return FileFormatError(f"read: {name} is not made of whole numbers of 64 bits.")


def _edges(words: Array, counts: Array, head: _Head, name: str) -> Edges:
    """Return the edges of the lines of all vertices."""
    step = 2 if head.weighted else 1
    rest = counts - head.skipped
    bad = np.flatnonzero((rest < 0) | (rest % step != 0))
    if bad.size:
        k = int(bad[0])
        raise FileFormatError(
            f"read: {name}: the line of vertex {k + 1} has {counts[k]} numbers, which does not fit "
            "the header."
        )
    if head.skipped:
        begin = np.cumsum(counts) - counts
        place = np.arange(len(words)) - np.repeat(begin, counts)
        words = words[place >= head.skipped]
    u = np.repeat(np.arange(head.n, dtype=np.int64), rest // step)
    v, weights = words[::step] - 1, words[1::2].copy() if head.weighted else None
    if len(u) != 2 * head.m:
        raise FileFormatError(
            f"read: {name}: the header says {head.m} edges, which stand in the lines of both their "
            f"ends, and the lines have {len(u)} neighbours, not {2 * head.m}."
        )
    if v.size and not 0 <= v.min() <= v.max() < head.n:
        bad_one = int(v.min() if v.min() < 0 else v.max()) + 1
        raise FileFormatError(f"read: {name}: vertex {bad_one} is outside 1 .. {head.n}.")
    return Edges(u, v, weights)


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write a symmetric matrix without self-loops; values other than True are weights.

    Raises
    ------
    InvalidValue
        If there is a self-loop, or a weight that is no whole number.
    """
    if (csc.row_idx == csc.columns()).any():
        raise InvalidValue("write: METIS has no self-loops. Remove them, or use .mtx or .npz.")
    plain = csc.is_pattern
    if not plain and csc.dtype.is_float:
        raise InvalidValue("write: METIS has whole weights alone. Use .mtx or .npz.")
    file.write(f"{csc.nrows} {csc.nvals // 2}{'' if plain else ' 001'}\n".encode())
    words = csc.row_idx + 1
    step = 1
    if not plain:
        pairs = np.empty((csc.nvals, 2), np.int64)
        pairs[:, 0], pairs[:, 1] = words, csc.dense_values().astype(np.int64)
        words, step = pairs.ravel(), 2
    ptr = (csc.col_ptr * step).tolist()
    text = list(map(str, words.tolist()))
    for k in range(csc.nrows):
        file.write((" ".join(text[ptr[k] : ptr[k + 1]]) + "\n").encode())
