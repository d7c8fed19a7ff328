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

import functools
import re
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io.csc import CSC, bytes_for_entries, from_entries
from lagpu.io.reading import (
    BYTES_OF_NAME,
    NAMES_HINT,
    NUMBERS_HINT,
    Budget,
    Edges,
    Extent,
    Names,
    Options,
    Parsed,
    graph_of,
)
from lagpu.io.text import (
    COMMENT,
    PIECE,
    Fault,
    Malformed,
    are_vertices,
    data_lines,
    fault_in,
    fits,
    fortran,
    is_number,
    line_number,
    number,
    numbers_of,
    parsed,
    require_short,
    show,
    table,
    write_rows,
)

Array = np.ndarray[Any, Any]

_UNDIRECTED = re.compile(rb"^[#%]\s*undirected graph", re.IGNORECASE | re.MULTILINE)
_KONECT = re.compile(rb"%[ \t]*(sym|asym|bip)(?:[ \t]+([a-z]+))?[ \t\r\v\f]*\n")
_NODES = re.compile(rb"^[#%].*?\bnodes:[ \t]*([0-9]{1,30})\b", re.IGNORECASE | re.MULTILINE)
_BANNER = re.compile(rb"^[ \t]*[#%]+[ \t]*matrix[ \t]*market\b.*", re.IGNORECASE | re.MULTILINE)
_BYTES_OF_EDGE = 32  # with what joins the pieces (docs/design/memory.md)


class Top(NamedTuple):
    """The beginning of an edge list.

    Attributes
    ----------
    text : bytes
        All up to the end of the first line that is no comment.
    start : int
        Where this line begins.
    first : bytes
        This line, empty if there is none.
    nodes : int or None
        The vertices that a comment says.
    undirected : bool
        As in `Parsed`.
    width : int
        The numbers of each line after it.
    second : tuple of int, bytes
        The number of the next such line, and the line, empty if there is none.
    """

    text: bytes
    start: int
    first: bytes
    nodes: int | None
    undirected: bool
    width: int
    second: tuple[int, bytes]


def top_of(data: bytes, name: str) -> Top:
    """Return the beginning of a list of whole lines."""
    lines = data_lines(data)
    start, first = next(lines, (len(data), b""))
    at, second = next(lines, (0, b""))
    nodes, undirected = comments_of(data, start, name)
    end = data.find(b"\n", start)
    text = data if end < 0 else data[: end + 1]
    width = _width(second) or _width(first) or 2
    below = line_number(data, at), second
    return Top(text, start, first, nodes, undirected, width, below)


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


def parse(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the matrix of an edge list, and whether its comments call it undirected.

    BOOL without weights, where equal lines are merged; with weights INT64 or FP64, where the
    weights of an edge given twice are summed.

    Raises
    ------
    FileFormatError
        If a line is not an edge (with its number), if there is no edge, or if the first line is not
        a header although ``header=True``.
    OutOfMemory, LimitExceeded
        If a matrix with so many vertices does not fit.
    """
    name, top = budget.name, top_of(data, budget.name)
    if not top.first and (options.header or top.nodes is None):
        raise FileFormatError(f"read: {name} has no edges, only blank lines and comments.")
    lines = data.count(b"\n")
    budget.require(_BYTES_OF_EDGE * lines + 16 * min(len(data), PIECE), "its lines", held=len(data))
    n, ids = 0, None
    try:
        edges, n = _numbered(data, top, name, options)
    except FileFormatError:  # names, or numbers that FP64 does not hold
        if not options.renumber:
            raise
        edges, ids = _named(data, top, budget, options)
    held = len(data) + 16 * len(edges.u)
    if options.renumber:
        return graph_of(edges, budget, options, held=held, ids=ids, undirected=top.undirected)
    part, largest = f"{n} vertices", n - 1
    if n > len(data) and largest == edges.largest():  # otherwise no single vertex is to blame
        part = f"vertex {largest}{_line_of(largest, data)}"
    need = bytes_for_entries(len(edges.u), n, values=edges.weights is not None, held=held)
    budget.require(need, part, NUMBERS_HINT, held)
    csc = from_entries(edges.u, edges.v, edges.weights, n, n, options.dup_op)
    return Parsed(csc, top.undirected)


def _numbered(data: bytes, top: Top, name: str, options: Options) -> tuple[Edges, int]:
    """Return the edges of a file of numbers, and the number of vertices."""
    if top.first and not options.header:
        _edge(top, _width(top.first) or top.width, name)
    parts = parsed(data, len(top.text), lambda text: edges_of(text, top.width), name)
    edges = Edges.join(parts)
    n, first = settled(top, edges.extent(), name, options)
    return Edges.join([first, edges]), n


def _line_of(vertex: int, data: bytes) -> str:
    """Return the line of a vertex, for a message, if it is written in digits alone."""
    found = re.search(rb"(?<![0-9.])%d(?![0-9])" % vertex, data)
    return f" in line {line_number(data, found.start())}" if found else ""


def edges_of(text: bytes, width: int) -> Edges:
    """Return the edges of whole lines of so many numbers each, comments aside.

    Raises
    ------
    Fault
        If a line is no such edge.
    """

    def edges(part: bytes) -> Edges:
        if b"#" in part or b"%" in part:
            part = COMMENT.sub(b"", part)
        found = table(fortran(part) if width == 3 else part)
        return Edges.of(found, width, (0, 1, 2 if width == 3 else None))

    try:
        return edges(text)
    except Malformed:
        raise fault_in(text, edges, lambda line: _why(line, width)) from None


def settled(top: Top, edges: Extent, name: str, options: Options) -> tuple[int, Edges]:
    """Return (vertices, the edge of the first line or none) of a list whose other edges are known.

    Raises
    ------
    FileFormatError
        As `parse`.
    """
    found, n = Edges.join([]), top.nodes
    if top.first:
        n = _header(top.first, edges, name, options)
        if n is None:
            own = _width(top.first)
            if own not in (0, top.width):  # the first line is an edge, so the others are not
                line, second = top.second
                raise Fault(line, f"{show(second)} {_why(second, own)}").named(name)
            found = _edge(top, top.width, name)
    return max(top.nodes or 0, n or 0, 1 + max(edges.top), 1 + found.largest()), found


def _edge(top: Top, width: int, name: str) -> Edges:
    """Return the first line as an edge of so many numbers."""
    try:
        require_short(top.first)
        return edges_of(top.first, width)
    except Fault as fault:
        raise fault.named(name, line_number(top.text, top.start) - 1) from None


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


def _width(line: bytes) -> int:
    """Return how many numbers a line has, or 0 if an edge has never so many."""
    count = len(line.split(None, 3))
    return count if count in (2, 3) else 0


def _why(line: bytes, width: int) -> str:
    """Return what is wrong with a line of numbers, or an empty string."""
    words = line.split()
    if len(words) != width:
        only = ". Separate them by spaces or tabs" if re.search(rb"[0-9][,;|:][0-9]", line) else ""
        if len(words) > 3 and not only:  # a time, in KONECT
            only = ". Keep the ends and the weight, as awk '{print $1, $2, $3}' does"
        return f"has {len(words)} numbers, not {width}{only}"
    if not are_vertices(words[:2]) or not is_number(words[-1]):
        only = "Separate them by spaces or tabs alone" if re.search(rb"[0-9][,;|:]", line) else ""
        return f"is not made of numbers. {only or NAMES_HINT}"
    found = [number(word) for word in words]
    for vertex in found[:2]:
        if vertex != vertex or vertex < 0 or vertex % 1:
            return "has a vertex that is not a whole number 0, 1, 2, ..."
        if vertex >= 2**53:
            return f"has a vertex beyond {2**53 - 1}, the largest that can be read"
    whole = all(isinstance(x, int) for x in found)
    return "has a weight beyond 64 bits" if whole and not fits(found[-1]) else ""


# ------------------------------------------------------------------------------------------
# Vertices with names: lines ``name name`` or ``name name weight``.


def _named(data: bytes, top: Top, budget: Budget, options: Options) -> tuple[Edges, Array]:
    """Return the edges between renumbered vertices, and the id of each vertex.

    The first line is a header if it has usual names of columns, unless `header` says otherwise.
    """
    header, words = options.header, top.first.decode("utf-8", "replace").split()
    if header is None and are_columns(words):
        header = True
        if chosen(words, None, budget.name) != (0, 1, 2 if len(words) == 3 else None):
            raise FileFormatError(
                f"read: {budget.name}, line {line_number(data, top.start)}: {show(top.first)} has "
                "names of columns in another order than source target weight. Write it with commas."
            )
    begin = len(top.text) if header else top.start
    width = _width(next(data_lines(data, begin), (0, b""))[1]) or 2
    names, done = Names(), 0

    def edges(text: bytes) -> Edges:
        nonlocal done
        new = 2 * text.count(b"\n") * BYTES_OF_NAME + 16 * len(text)
        have = len(data) + len(names) * BYTES_OF_NAME + 48 * done
        budget.require(new, "its names", held=have)
        try:
            found, weights = _words(text, width)
        except Malformed:
            raise fault_in(
                text, lambda part: _words(part, width), lambda line: _why_named(line, width)
            ) from None
        u, v = (names.codes(found[k::width], len(found) // width) for k in (0, 1))
        done += len(u)
        return Edges(u, v, weights)

    u, v, weights = Edges.join(parsed(data, begin, edges, budget.name))
    try:
        u, v, ids = names.ordered(u, v, utf8=True)
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"read: {budget.name}: {show(bytes(error.object))} is not UTF-8. Convert the file to "
            "UTF-8."
        ) from None
    return Edges(u, v, weights), ids


def _words(text: bytes, width: int) -> tuple[list[bytes], Array | None]:
    """Return the words of lines of so many each, and the weights if these are the third ones."""
    if b"#" in text or b"%" in text:
        text = COMMENT.sub(b"", text)
    if not _rows_of(width).fullmatch(text):
        raise Malformed
    words = text.split()
    return words, numbers_of(words[2::3]) if width == 3 else None


@functools.cache
def _rows_of(width: int) -> re.Pattern[bytes]:
    """Return the pattern of lines of so many words."""
    space = rb"[ \t\r\v\f]"
    more = rb"(?:%b++\S++){%d}" % (space, width - 1)
    return re.compile(rb"(?:%b*+(?:\S++%b%b*+)?\n)*+" % (space, more, space))


def _why_named(line: bytes, width: int) -> str:
    words = line.split()
    if len(words) != width:
        return f"has {len(words)} words, not {width}"
    if not is_number(words[-1]):
        return f"has the weight {show(words[-1])}, which is no number"
    return "has a weight beyond 64 bits"


# ------------------------------------------------------------------------------------------
# Names of columns: which are the sources, the targets and the weights.


_SOURCES = ("source", "src", "from", "fromnodeid", "from_node", "u", "i", "row", "tail", "node1")
_TARGETS = ("target", "dst", "to", "tonodeid", "to_node", "v", "j", "col", "head", "node2")
_WEIGHTS = ("weight", "w", "value", "wgt", "data", "cost", "distance", "length")
_INDEX = re.compile(r"(unnamed: ?[0-9]+|__index_level_[0-9]+__)?")  # as pandas writes its own


def is_header(words: Sequence[str]) -> bool | None:
    """Return whether a first line has names of columns; None for some names and some numbers."""
    found = {is_number(word.encode()) for word in words}
    return None if len(found) > 1 else found == {False}


def are_columns(words: Sequence[str]) -> bool:
    """Return whether words are usual names of columns: one of sources and one of targets."""
    plain = {word.strip().lower() for word in words}
    return bool(is_header(words) and plain & {*_SOURCES} and plain & {*_TARGETS})


def chosen(
    header: Sequence[str], columns: tuple[str, ...] | None, name: str
) -> tuple[int, int, int | None]:
    """Return the places of the columns of sources, targets and weights, or None for no weights.

    Parameters
    ----------
    header : sequence of str
        Names of all columns.
    columns : tuple of str, optional
        Names given by the user, two or three. By default the columns with usual names
        (``source`` and ``target``, ``src`` and ``dst``, ``from`` and ``to``, and ``weight``). If
        just two columns are not called as weights are, these are the ends, in their order. The
        columns of an index, such as pandas writes, do not count.
    name : str
        Name of the file in messages.

    Raises
    ------
    InvalidValue
        If a given column is not there, or twice.
    FileFormatError
        If the names do not say which columns are the ends, or two columns have the same name.
    """
    if columns is not None:
        places = [_place(header, column, name) for column in columns]
        return places[0], places[1], places[2] if len(places) == 3 else None
    plain = [word.strip().lower() for word in header]
    source, target, weight = (
        next((plain.index(word) for word in usual if word in plain), None)
        for usual in (_SOURCES, _TARGETS, _WEIGHTS)
    )
    if source is None or target is None:
        names = [k for k, word in enumerate(plain) if not _INDEX.fullmatch(word)]
        ends = [k for k in names if k != weight]
        shown = ", ".join(header[k] for k in names[:8])
        if len(names) < 2:
            raise FileFormatError(
                f"read: {name} has one column ({shown}), and an edge has two ends."
            )
        if len(ends) != 2 or source not in (None, ends[0]) or target not in (None, ends[1]):
            raise FileFormatError(
                f"read: {name} has {len(names)} columns ({shown}). Say which are the sources, "
                'targets and weights: columns=("source", "target", "weight").'
            )
        source, target = ends
    for k in (source, target, weight):
        if k is not None and plain.count(plain[k]) > 1:
            raise FileFormatError(
                f"read: {name}: two columns are called {header[k]!r}. Rename one of them."
            )
    return source, target, weight


def _place(header: Sequence[str], column: str, name: str) -> int:
    count = header.count(column)
    if count == 1:
        return header.index(column)
    if count:
        raise InvalidValue(f"read: {name}: two columns are called {column!r}. Rename one of them.")
    raise InvalidValue(f"read: {name} has no column {column!r}. It has {', '.join(header[:20])}.")


# ------------------------------------------------------------------------------------------
# Writing.


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write ``i j``, or ``i j value`` unless all are True, after a comment with the vertices."""
    n = max(csc.nrows, csc.ncols)
    file.write(f"# Nodes: {n} Edges: {csc.nvals}\n# FromNodeId\tToNodeId\n".encode())
    columns = [csc.row_idx, csc.columns()]
    write_rows(file, columns if csc.is_pattern else [*columns, csc.dense_values()], "\t")


def dump_plain(csc: CSC, file: IO[bytes], *, weights: bool = False) -> None:
    """Write ``i j`` or ``i j value`` without comments, which the GAP suite does not read.

    Raises
    ------
    InvalidValue
        If there is no edge: the file would be empty.
    """
    if not csc.nvals:
        raise InvalidValue(
            "write: a GAP edge list has no place for a graph without edges. Use .mtx or .npz."
        )
    columns = [csc.row_idx, csc.columns()]
    write_rows(file, [*columns, csc.dense_values()] if weights else columns, " ")


def dump_delimited(csc: CSC, file: IO[bytes], separator: str) -> None:
    """Write ``source,target``, and ``weight`` unless all values are True."""
    columns, names = [csc.row_idx, csc.columns()], ["source", "target"]
    if not csc.is_pattern:
        columns, names = [*columns, csc.dense_values()], [*names, "weight"]
    file.write(f"{separator.join(names)}\n".encode())
    write_rows(file, columns, separator)
