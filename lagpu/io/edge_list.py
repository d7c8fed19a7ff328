"""Edge lists in the format of SNAP: lines ``i j`` or ``i j weight``, comments, maybe a header.

Vertices keep their numbers, from 0; the number of vertices is the maximum of the largest number
plus one, the header's count, and the count in a comment ``# Nodes: n``.

Lines that are blank or begin with ``#`` or ``%`` are comments. After a leading comment
``# Undirected graph``, or the first line ``% sym`` of KONECT, each line is an edge in both
directions.

The first line is a header ``n m`` if it has two numbers, exactly m >= 1 lines follow, and all their
vertices are below n. `header` overrides this rule. A first line that would be such a header for
vertices 1 .. n raises an error, since it is more likely a header than an edge; so do the sizes of
a Matrix Market file without its banner, and such a banner that is not written as it must be.
"""

from __future__ import annotations

import re
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io.csc import CSC, bytes_for_entries, from_entries
from lagpu.io.formats import named_edges
from lagpu.io.reading import (
    NAMES_HINT,
    NUMBERS_HINT,
    Budget,
    Edges,
    Extent,
    Options,
    Parsed,
    graph_of,
)
from lagpu.io.text import (
    COMMENT,
    PIECE,
    REAL,
    Fault,
    Malformed,
    data_lines,
    fits,
    fortran,
    is_number,
    line_number,
    number,
    numbers,
    pieces,
    shape_of,
    show,
    write_rows,
)

Array = np.ndarray[Any, Any]

_UNDIRECTED = re.compile(rb"^[#%]\s*undirected graph", re.IGNORECASE | re.MULTILINE)
_KONECT = re.compile(rb"%[ \t]*(sym|asym|bip)(?:[ \t]+([a-z]+))?[ \t\r\v\f]*\n")
_NODES = re.compile(rb"^[#%].*?\bnodes:[ \t]*([0-9]{1,30})\b", re.IGNORECASE | re.MULTILINE)
_BANNER = re.compile(rb"^[ \t]*[#%]+[ \t]*matrix[ \t]*market\b.*", re.IGNORECASE | re.MULTILINE)
_LARGEST = 2**53  # FP64 represents whole numbers up to this exactly


def parse(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the matrix of an edge list, and whether its comments call it undirected.

    Parameters
    ----------
    data : bytes
        Content of the file; its last line has an end.
    budget : Budget
        Name of the file in messages, and the memory that it may take.
    options : Options
        `header`: whether the first line is a header ``n m``; None decides by the rule of this
        module. `dup_op`: combines the weights of lines given twice, instead of summing them.
        `renumber`: vertices may have any words as names.

    Returns
    -------
    Parsed
        BOOL without weights, where equal lines are merged; with weights INT64 or FP64, where the
        weights of an edge given twice are summed. Undirected if a leading comment says
        ``Undirected graph``.

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
    nodes, undirected = comments_of(data, offset, name)
    n = nodes or 0
    if not first and (options.header or nodes is None):
        raise FileFormatError(f"read: {name} has no edges, only blank lines and comments.")
    budget.require(_bytes_of_lines(data), "its lines", held=len(data))
    if options.renumber:
        return _renumbered(data, offset, first, budget, options, undirected)
    edges, top = _numbered(data, offset, first, name, options)
    n = max(n, top)
    largest = edges.largest()
    if n > largest:
        part = f"{n} vertices"
    else:
        n = 1 + largest
        sparse = n > len(data)  # otherwise no single vertex is to blame
        part = f"vertex {largest}{_line_of(largest, data)}" if sparse else f"{n} vertices"
    held = len(data) + 8 * len(edges.u)
    need = bytes_for_entries(len(edges.u), n, values=edges.weights is not None, held=held)
    budget.require(need, part, NUMBERS_HINT, held)
    csc = from_entries(edges.u, edges.v, edges.weights, n, n, options.dup_op)
    return Parsed(csc, undirected)


def comments_of(data: bytes, end: int, name: str) -> tuple[int | None, bool]:
    """Return what the comments before an offset say: the vertices, and whether undirected.

    Raises
    ------
    FileFormatError
        For an odd banner of Matrix Market, and for a graph of KONECT that is no square matrix.
    """
    banner = _BANNER.search(data, 0, end)
    if banner:
        raise FileFormatError(
            f"read: {name}, line {line_number(data, banner.start())}: {show(banner[0])} looks like "
            "the banner of Matrix Market. Make it the first line and write it %%MatrixMarket, or "
            "remove it from an edge list."
        )
    nodes = _NODES.search(data, 0, end)
    undirected = _UNDIRECTED.search(data, 0, end) is not None
    if konect := _KONECT.match(data, 0, end):
        undirected = undirected or konect[1] == b"sym"
        odd = "a bipartite graph" if konect[1] == b"bip" else ""
        remedy = "Write it as Matrix Market, which has rows and columns."
        if konect[2] == b"dynamic":
            odd, remedy = "a graph with edges that come and go", "Keep the edges of one time."
        if odd:
            top = show(konect[0].strip())
            raise FileFormatError(f"read: {name}, line 1: {top} is {odd} of KONECT. {remedy}")
    return int(nodes[1]) if nodes else None, undirected


def _numbered(
    data: bytes, offset: int, first: bytes, name: str, options: Options
) -> tuple[Edges, int]:
    """Return the edges of a file of numbers, and the number of vertices in its header, or 0."""
    end = data.find(b"\n", offset)
    edges = _edges(data, offset, len(data) if end < 0 else end + 1, name)
    top = _header(first, edges.extent(), name, options) if first else None
    if top is not None:
        return edges, top
    if first:
        edges = Edges.join([_first_edge(data, offset, first, edges, name), edges])
    return edges, 0


def _renumbered(
    data: bytes, offset: int, first: bytes, budget: Budget, options: Options, undirected: bool
) -> Parsed:
    """Return the graph of a file whose vertices have names, or numbers with gaps."""
    ids = None
    try:
        edges, _ = _numbered(data, offset, first, budget.name, options)
    except FileFormatError:  # names, or numbers that FP64 does not hold
        edges, ids = named_edges.parse(data, offset, first, budget, options.header)
    held = len(data) + 16 * len(edges.u)
    return graph_of(edges, budget, options, held=held, ids=ids, undirected=undirected)


def _bytes_of_lines(data: bytes) -> int:
    """Return an upper bound on the bytes that `_edges` takes (docs/design/memory.md)."""
    return 2 * _bytes_of_edges(data.count(b"\n")) + 16 * min(len(data), PIECE)


def _bytes_of_edges(count: int) -> int:
    return 16 * count


def _line_of(vertex: int, data: bytes) -> str:
    """Return where a vertex stands first, for a message, if it is written in digits alone."""
    found = re.search(rb"(?<![0-9.])%d(?![0-9])" % vertex, data)
    return f" in line {line_number(data, found.start())}" if found else ""


def _edges(data: bytes, first: int, start: int, name: str) -> Edges:
    """Return the edges of all lines from an offset on; the first line of all begins at `first`."""
    found: list[Edges] = []
    for offset, text in pieces(data, start):
        try:
            if len(text) > PIECE:  # one line
                raise Malformed
            table = _table(text)
            if found and len(table) and (found[0].weights is None) != (table.shape[1] == 2):
                raise Malformed
        except Malformed:
            raise _first_fault(data, first, offset, start, name) from None
        if len(table):
            found.append(_columns(table))
    return Edges.join(found)


def _table(text: bytes) -> Array:
    """Return the numbers of whole lines, (lines, 2 or 3), as INT64, or FP64 if necessary."""
    if b"#" in text or b"%" in text:
        text = COMMENT.sub(b"", text)
    raw = np.frombuffer(text, np.uint8)
    lines, width = shape_of(raw)
    if lines == 0:
        return np.empty((0, 2), np.int64)
    if width == 3 and (plain := fortran(text)) is not text:
        raw, text = np.frombuffer(plain, np.uint8), plain
    found = numbers(text, raw)
    if found.size != lines * width:  # pragma: no cover (should NumPy ever split otherwise)
        raise Malformed
    table: Array = found.reshape(-1, width)
    ids = table[:, :2]
    if ids.min() < 0 or not ids.max() < _LARGEST:  # also refuses NaN
        raise Malformed
    if table.dtype == np.float64 and (ids != np.floor(ids)).any():
        raise Malformed
    return table


def _columns(table: Array) -> Edges:
    """Return the columns of a table, vertices in 32 bits if they fit."""
    kind = np.int32 if table[:, :2].max() < 2**31 - 1 else np.int64
    u, v = table[:, 0].astype(kind), table[:, 1].astype(kind)
    return Edges(u, v, table[:, 2].copy() if table.shape[1] == 3 else None)


def _header(first: bytes, edges: Extent, name: str, options: Options) -> int | None:
    """Return n if the first line is a header ``n m``, else None.

    Vertices that are renumbered may be 1 .. n, and any numbers if the user says that it is one.
    """
    header = options.header
    if header is False:
        return None
    tokens = first.split(None, 3)
    sizes = [int(token) for token in tokens if token.isdigit() and len(token) < 17]
    largest, count = max(edges.top), edges.size
    if len(sizes) == len(tokens) == 2:
        n, m = sizes
        if m == count and (largest < n or (header and options.renumber)) and (count or header):
            return n
        if header is None and m == count and n == largest and edges.least > 0:
            if options.renumber:
                return n
            raise FileFormatError(
                f"read: {name}: {show(first)} looks like a header of vertices 1 .. {n}. "
                f"{NUMBERS_HINT}, or give header=False if it is an edge."
            )
    if (
        header is None
        and len(sizes) == len(tokens) == 3
        and sizes[2] == count > 0
        and (edges.top[0] <= sizes[0] and edges.top[1] <= sizes[1])
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


def _first_edge(data: bytes, offset: int, first: bytes, edges: Edges, name: str) -> Edges:
    """Return the first line as an edge, or raise if its width differs from the other lines."""
    try:
        table = _table(first)
        if len(edges.u) and (table.shape[1] == 2) != (edges.weights is None):
            raise Malformed
    except Malformed:
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
        if len(tokens) > 3 and not only:  # a time, in KONECT
            only = ". Keep the ends and the weight, as awk '{print $1, $2, $3}' does"
        return f"has {len(tokens)} numbers, not {width}{only}"
    if not all(map(REAL.fullmatch, tokens[:2])) or not is_number(tokens[-1]):
        only = "Separate them by spaces or tabs alone" if re.search(rb"[0-9][,;|:]", line) else ""
        return f"is not made of numbers. {only or NAMES_HINT}"
    found = [number(token) for token in tokens]
    for vertex in found[:2]:
        if vertex != vertex or vertex < 0 or vertex % 1:
            return "has a vertex that is not a whole number 0, 1, 2, ..."
        if vertex >= _LARGEST:
            return f"has a vertex beyond {_LARGEST - 1}, the largest that can be read"
    whole = all(isinstance(x, int) for x in found)
    return "has a weight beyond 64 bits" if whole and not fits(found[-1]) else ""


# ------------------------------------------------------------------------------ in shares
class Top(NamedTuple):
    """The beginning of an edge list that is read in shares.

    Attributes
    ----------
    text : bytes
        All up to the end of the first line that is no comment.
    first : bytes
        This line.
    nodes : int
        The vertices that a comment says, or 0.
    undirected : bool
        As in `Parsed`.
    width : int
        The numbers of each line after it.
    """

    text: bytes
    first: bytes
    nodes: int
    undirected: bool
    width: int


def top_of(head: bytes, name: str) -> Top | None:
    """Return the beginning of a list of whole lines; None if two of them are not there."""
    lines = data_lines(head)
    (offset, first), (_, second) = next(lines, (0, b"")), next(lines, (0, b""))
    if not second:
        return None
    nodes, undirected = comments_of(head, offset, name)
    text = head[: head.find(b"\n", offset) + 1]
    return Top(text, first, nodes or 0, undirected, _width(second) or _width(first) or 2)


def edges_of(text: bytes, width: int) -> Edges:
    """Return the edges of whole lines of so many numbers each, comments aside.

    Raises
    ------
    Fault
        If a line is no such edge.
    """
    try:
        found = _table(text)
        if len(found) and found.shape[1] != width:
            raise Malformed
    except Malformed:
        for at, line in data_lines(text):
            if fault := _fault(line, width):
                raise Fault(line_number(text, at), fault) from None
        raise Fault(1, "the text is not an edge list") from None  # pragma: no cover (see above)
    return _columns(found) if len(found) else Edges.join([])


def settled(top: Top, edges: Extent, name: str, options: Options) -> tuple[int, Edges]:
    """Return (vertices, the edge of the first line or none) of a list whose other edges are known.

    Raises
    ------
    FileFormatError
        As `parse`.
    """
    found, n = Edges.join([]), _header(top.first, edges, name, options)
    if n is None:
        try:
            found = edges_of(top.first + b"\n", top.width)
        except Fault as fault:
            line = line_number(top.text, len(top.text) - 1)
            raise FileFormatError(f"read: {name}, line {line}: {fault.why}.") from None
    return max(top.nodes, n or 0, 1 + max(edges.top), 1 + found.largest()), found


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write ``i j``, or ``i j value`` unless all are True, after a comment with the vertices."""
    n = max(csc.nrows, csc.ncols)
    file.write(f"# Nodes: {n} Edges: {csc.nvals}\n# FromNodeId\tToNodeId\n".encode())
    columns = [csc.row_idx, csc.columns()]
    write_rows(file, columns if csc.is_pattern else [*columns, csc.dense_values()], "\t")


def dump_plain(csc: CSC, file: IO[bytes]) -> None:
    """Write ``i j`` without a comment, which programs of the GAP suite do not read.

    Raises
    ------
    InvalidValue
        If there is no edge: the file would be empty.
    """
    _dump_rows(file, [csc.row_idx, csc.columns()])


def dump_weights(csc: CSC, file: IO[bytes]) -> None:
    """Write ``i j value`` as `dump_plain` does; True is written as 1."""
    _dump_rows(file, [csc.row_idx, csc.columns(), csc.dense_values()])


def _dump_rows(file: IO[bytes], columns: list[Array]) -> None:
    if not len(columns[0]):
        raise InvalidValue(
            "write: a GAP edge list has no place for a graph without edges. Use .mtx or .npz."
        )
    write_rows(file, columns, " ")
