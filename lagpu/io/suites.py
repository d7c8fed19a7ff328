"""Formats of graph collections: DIMACS, METIS, and the serialized graphs of the GAP suite."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import IO, NamedTuple

import numpy as np
import scipy.sparse as sp

from lagpu.dtypes import Array
from lagpu.errors import FileFormatError, InvalidValue, NotSupported
from lagpu.io import reading
from lagpu.io.csc import CSC, asymmetry, bytes_for_entries, compress, known_symmetric
from lagpu.io.reading import Budget, Edges, Malformed, Options, Parsed, from_one, graph_of, show

# ---- DIMACS: arcs with lengths (``.gr``), and edges without values (``.col``), each there once.
# Vertices are 1 .. n, and become 0 .. n-1.
#
# Sources: the 9th DIMACS Implementation Challenge (shortest paths, 2006), ``p sp n m`` and lines
# ``a u v w``; the 2nd one (cliques and colouring, 1993), ``p edge n m`` and lines ``e u v``.

_REMARK = re.compile(rb"^c(?:[ \t][^\n]*)?\r?\n", re.MULTILINE)
PROBLEM = re.compile(
    rb"(?:c(?:[ \t][^\n]*)?\r?\n|[ \t]*\r?\n)*+"
    rb"p[ \t]+([a-z]+)[ \t]+([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r]*\n"
)
# A vertex that is written as a real number.
_ODD_END = re.compile(rb"\n[ae][ \t]+(?:[0-9+]+[ \t]+)?[0-9+]*[^0-9+ \t]")
_LINES = {b"sp": "a u v w", b"edge": "e u v", b"col": "e u v"}  # by the problem


def parse_dimacs(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the graph of a DIMACS file; arcs are directed, edges are not."""
    name, top = budget.name, PROBLEM.match(data)
    if top is None:
        raise FileFormatError(f"read: {name} has no line `p sp n m` or `p edge n m` at its top.")
    kind, n, m = top[1], int(top[2]), int(top[3])
    if kind not in _LINES:
        raise NotSupported(
            f"read: {name} is DIMACS of the problem {kind.decode()!r}. Give `p sp` (shortest "
            "paths) or `p edge` (colouring)."
        )
    form, need = _LINES[kind], 64 * data.count(b"\n") + 16 * min(len(data), reading.PIECE)
    budget.require(need, "its lines", held=len(data))
    edges = Edges.join(reading.parsed(data, top.end(), lambda text: _arcs(text, form), name))
    count = len(edges.u)
    if count != m and (kind == b"sp" or count != 2 * m):
        raise FileFormatError(
            f"read: {name}: the header says {m} lines `{form}`, the file has {count}. It is "
            "truncated, or its header is wrong."
        )
    u, v = from_one(name, n, edges.u, edges.v)
    edges, undirected = Edges(u, v, edges.weights), kind != b"sp"
    return graph_of(edges, budget, options, held=len(data), n=n, undirected=undirected)


def _arcs(text: bytes, form: str) -> Edges:
    """Return the edges of whole lines of a form; raise `Fault` if one has another."""
    mark, width = form[:1].encode(), len(form.split()) - 1

    def edges(part: bytes) -> Edges:
        rows = b"\n" + (_REMARK.sub(b"\n", part) if b"c" in part else part)
        rows = reading.fortran(rows) if width == 3 else rows
        marked = sum(rows.count(b"\n" + mark + space) for space in (b" ", b"\t"))
        numbers = reading.table(rows.translate(None, mark).replace(b"\n ", b"\n")[1:])
        odd = numbers.dtype.kind == "f" and _ODD_END.search(rows)
        if odd or not marked == rows.count(mark) == len(numbers) or not np.isfinite(numbers).all():
            raise Malformed
        return Edges.of(numbers.T, width)

    return reading.by_line(text, edges, lambda line: f"is no line `{form}` of numbers of 64 bits")


# ---- METIS: ``n m [format [weights of a vertex]]``, then a line of neighbours for each vertex.
# Vertices are 1 .. n, and become 0 .. n-1; each edge is in the lines of both its ends, and m counts
# it once. Weights and sizes of vertices are not kept.
#
# Source: the manual of METIS 5, section 4.1.

_COMMENT = re.compile(rb"^[ \t]*%[^\n]*\n", re.MULTILINE)
_FLAGS = re.compile(rb"[01]{1,3}")


class _Head(NamedTuple):
    n: int
    m: int
    weighted: bool  # edges
    skipped: int  # numbers of a vertex before its neighbours


def looks_like_metis(data: bytes) -> bool:
    """Return whether the first line is a header, and as many lines and numbers follow."""
    offset, first = next(reading.data_lines(data), (0, b""))
    try:
        head = _head(first, "")
    except FileFormatError:
        return False
    body = _COMMENT.sub(b"", data[data.find(b"\n", offset) + 1 :])
    count = 2 * head.m * (2 if head.weighted else 1) + head.n * head.skipped
    return 0 < head.n == body.count(b"\n") and count == len(body.split())


def parse_metis(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the symmetric graph of a file: BOOL, or INT64 if edges have weights."""
    name = budget.name
    offset, first = next(reading.data_lines(data), (len(data), b""))
    head = _head(first, name)
    start = data.find(b"\n", offset) + 1 or len(data)
    need = 10 * (len(data) - start) + 24 * min(len(data), reading.PIECE)
    budget.require(need, "its lines", held=len(data))
    parts = [(np.empty(0, np.int64),) * 2, *reading.parsed(data, start, _neighbours, name)]
    words, counts = (np.concatenate(of) for of in zip(*parts, strict=True))
    n = head.n
    if len(counts) < n or counts[n:].any():
        given = len(counts) if len(counts) < n else int(np.flatnonzero(counts)[-1]) + 1
        raise FileFormatError(
            f"read: {name}: the header says {n} vertices, {given} lines follow. It is truncated, "
            "or no METIS graph."
        )
    edges = _adjacent(words, counts[:n], head, name)
    held = len(data) + 8 * len(words)
    found = graph_of(edges, budget, options._replace(by_rows=False), held=held, n=n)
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


def _neighbours(text: bytes) -> tuple[Array, Array]:
    """Return all numbers of some lines, and how many of them each line has."""

    def words(part: bytes) -> tuple[Array, Array]:
        part = _COMMENT.sub(b"", part) if b"%" in part else part
        raw = np.frombuffer(part, np.uint8)
        full = raw > 32
        begins = full.copy()
        begins[1:] &= ~full[:-1]
        line = np.cumsum(raw == 10)[begins]
        if part.translate(None, b"0123456789 \t\n\v\f\r"):
            raise Malformed
        found = np.fromstring(part, np.int64, sep=" ") if line.size else np.empty(0, np.int64)
        if found.max(initial=0) >= 10**18:  # the parser saturates
            found = reading.table(b"\n".join(part.split())).ravel()
        return found, np.bincount(line, minlength=part.count(b"\n"))

    return reading.by_line(text, words, lambda line: "is not made of whole numbers of 64 bits")


def _adjacent(words: Array, counts: Array, head: _Head, name: str) -> Edges:
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
        place = np.arange(len(words)) - np.repeat(np.cumsum(counts) - counts, counts)
        words = words[place >= head.skipped]
    u = np.repeat(np.arange(head.n, dtype=np.int64), rest // step)
    (v,) = from_one(name, head.n, words[::step])
    if len(u) != 2 * head.m:
        raise FileFormatError(
            f"read: {name}: the header says {head.m} edges, each in the lines of both its ends, "
            f"but the lines have {len(u)} neighbours, not {2 * head.m}."
        )
    return Edges(u, v, words[1::2].copy() if head.weighted else None)


def dump_metis(csc: CSC, file: IO[bytes]) -> None:
    """Write a symmetric matrix without self-loops; values other than True are weights."""
    if (csc.row_idx == csc.columns()).any():
        raise InvalidValue("write: METIS has no self-loops. Remove them, or use .mtx or .npz.")
    plain = csc.is_pattern
    if not plain and (csc.dtype.is_float or csc.dense_values().min(initial=0) < 0):
        raise InvalidValue("write: METIS has whole weights from 0 on. Use .mtx or .npz.")
    file.write(f"{csc.nrows} {csc.nvals // 2}{'' if plain else ' 001'}\n".encode())
    columns = [csc.row_idx + 1, *([] if plain else [csc.dense_values().astype(np.int64)])]
    words = list(map(str, np.column_stack(columns).ravel().tolist()))
    ptr = (csc.col_ptr * len(columns)).tolist()
    for k in range(csc.nrows):
        file.write((" ".join(words[ptr[k] : ptr[k + 1]]) + "\n").encode())


# ---- The serialized graphs of the GAP Benchmark Suite: ``.sg``, and ``.wsg`` with weights. A byte
# says whether the graph is directed; then come m and n in 64 bits, n + 1 offsets in 64 bits, and
# the m neighbours in 32 bits, with weights each before a weight in 32 bits. Of a directed graph the
# same follows for incoming edges.

_OFFSETS = 17


def bytes_of_item(data: bytes) -> int:
    """Return the bytes of a neighbour, 4 or 8 with a weight; 0 if the sizes do not fit the data."""
    if len(data) < _OFFSETS or data[0] > 1:
        return 0
    m, n = np.frombuffer(data, "<i8", 2, 1).tolist()
    if m < 0 or n < 0:
        return 0
    for item in (4, 8):
        if _OFFSETS + (1 + data[0]) * (8 * (n + 1) + item * m) == len(data):
            return item
    return 0


def parse_gap(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the graph in a file: BOOL, or INT32 with weights."""
    name, item = budget.name, bytes_of_item(data)
    if not item:
        raise FileFormatError(
            f"read: {name}: the sizes of a serialized GAP graph do not fit its length. It is "
            "truncated, or of another kind."
        )
    m, n = np.frombuffer(data, "<i8", 2, 1).tolist()
    budget.require(bytes_for_entries(m, n, values=True) + 16 * m, f"{n} vertices", held=len(data))
    ptr = np.frombuffer(data, "<i8", n + 1, _OFFSETS)
    items = np.frombuffer(data, "<i4", m * item // 4, _OFFSETS + 8 * (n + 1)).reshape(m, item // 4)
    ends = items[:, 0]
    with reading.errors_named(f"read: {name}"):
        reading.require_rising("offsets do", ptr, n, m)
        reading.require_inside("a neighbour is", ends, n)
    values = np.ones(m, np.int8) if item == 4 else items[:, 1].copy()
    rows = sp.csr_array((values, ends.copy(), ptr.copy()), shape=(n, n))
    csc = compress(rows.tocsc(), pattern=item == 4)
    del rows
    return Parsed(csc if data[0] else known_symmetric(csc))


def dump_gap(csc: CSC, file: IO[bytes], *, weights: bool = False) -> None:
    """Write the places of the entries, and if so asked, weights of 32 bits; True is 1."""
    n, m = csc.nrows, csc.nvals
    values = csc.dense_values() if weights else np.ones(m, np.int8)
    whole = (values == np.floor(values)) & (values >= -(2**31)) & (values < 2**31)
    if not (whole & ((values != 0) | ~np.signbit(values))).all():  # -0.0 would lose its sign
        raise InvalidValue("write: .wsg has whole weights of 32 bits alone. Use .mtx or .npz.")
    if n >= 2**31:
        raise InvalidValue(f"write: .sg and .wsg have no vertex beyond 32 bits, and {n} are there.")
    directed = asymmetry(csc) is not None
    columns = sp.csc_array((values.astype("<i4"), csc.row_idx, csc.col_ptr), shape=(n, n))
    file.write(bytes([directed]) + np.array([m, n], "<i8").tobytes())
    # The columns of a matrix are the incoming edges; those of a symmetric one are all edges.
    for part in [columns.tocsr(), columns] if directed else [columns]:
        ends = part.indices.astype("<i4")
        file.write(part.indptr.astype("<i8").tobytes())
        file.write((np.column_stack([ends, part.data]) if weights else ends).tobytes())
