"""Lists and tables of edges: lines ``i j [weight]``, or columns with commas, tabs or semicolons.

Lists are in the format of SNAP. Vertices keep their numbers, from 0; the number of vertices is the
maximum of the largest number plus one, the header's count, and the count in a comment
``# Nodes: n``. Lines that are blank or begin with ``#`` or ``%`` are comments. After a leading
comment ``# Undirected graph`` each line is an edge in both directions.

The first line of a list is a header ``n m`` if it has two numbers, exactly m >= 1 lines follow, and
all their vertices are below n. `header` overrides this rule. A first line that would be such a
header for vertices 1 .. n raises an error, since it is more likely a header than an edge; so do the
sizes of a Matrix Market file without its banner, and such a banner that is not written as it must
be. The first line of a table has the names of the columns if none of its fields is a number.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu.dtypes import Array
from lagpu.errors import FileFormatError, InvalidValue, LimitExceeded, OutOfMemory
from lagpu.host.columns import distinct
from lagpu.io import reading
from lagpu.io.csc import CSC
from lagpu.io.reading import NAMES_HINT, Budget, Edges, Malformed, Options, Parsed, show

_UNDIRECTED = re.compile(rb"^[#%]\s*undirected graph", re.IGNORECASE | re.MULTILINE)
KONECT = re.compile(
    rb"%[ \t]*(sym|asym|bip)(?:[ \t]+([a-z]+))?[ \t\r\v\f]*\n"
    rb"(?:%[ \t]*[0-9]{1,18}[ \t]+([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r\v\f]*\n)?"
)
_DIRECTED = re.compile(rb"^[ \t]*graph\.\S*\.directed[ \t]*=[ \t]*(true|false)\b", re.MULTILINE)
_NODES = re.compile(rb"^[#%].*?\bnodes:[ \t]*([0-9]{1,30})\b", re.IGNORECASE | re.MULTILINE)
_EDGES = re.compile(rb"^[#%].*?\bnodes:[ \t]*[0-9]+[ \t]+edges:[ \t]*([0-9]{1,18})\b", re.I | re.M)
_COMMENT = re.compile(rb"^[ \t]*[#%][^\n]*", re.MULTILINE)
_BANNER = re.compile(rb"^[ \t]*[#%]+[ \t]*matrix[ \t]*market\b.*", re.IGNORECASE | re.MULTILINE)
_BYTES_OF_EDGE = 32  # with what joins the pieces (docs/design/memory.md)


class Top(NamedTuple):
    """The beginning of an edge list."""

    text: bytes  # up to the end of the first line that is not a comment
    start: int  # where this line begins
    first: bytes  # this line, empty if there is none
    nodes: int | None  # the vertices that a comment says
    edges: int  # as many as a comment says, more than a file has that was cut
    undirected: bool  # as in `Parsed`
    width: int  # the numbers of each line after it
    second: tuple[int, bytes]  # the number of the next such line, and the line, or nothing

    def require(self, count: int, name: str) -> None:
        """Raise `FileFormatError` if fewer edges follow than a comment says."""
        if count < self.edges:
            fact = f"a comment says {self.edges} edges, and {count} follow"
            raise FileFormatError(f"read: {name}: {fact}. Get the rest, or remove the comment.")


def top_of(data: bytes, name: str) -> Top:
    """Return the beginning of a list of whole lines."""
    lines = reading.data_lines(data)
    start, first = next(lines, (len(data), b""))
    at, second = next(lines, (0, b""))
    nodes, undirected = comments_of(data, start, name)
    text = data[: data.find(b"\n", start) + 1 or len(data)]
    width = _width(second) or _width(first) or 2
    said, line = _EDGES.search(data, 0, start), reading.line_number(data, at)
    return Top(
        text, start, first, nodes, int(said[1]) if said else 0, undirected, width, (line, second)
    )


def comments_of(data: bytes, end: int, name: str) -> tuple[int | None, bool]:
    """Return what the comments before an offset say: the vertices, and whether undirected."""
    banner = _BANNER.search(data, 0, end)
    if banner:
        line = reading.line_number(data, banner.start())
        raise FileFormatError(
            f"read: {name}, line {line}: {show(banner[0])} looks like "
            "the banner of Matrix Market. Make it the first line and write it %%MatrixMarket, or "
            "remove it from an edge list."
        )
    nodes = _NODES.search(data, 0, end)
    return int(nodes[1]) if nodes else None, _UNDIRECTED.search(data, 0, end) is not None


def parse(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the graph of an edge list: BOOL without weights, else INT64 or FP64."""
    name, top = budget.name, top_of(data, budget.name)
    if not top.first and (options.header or top.nodes is None):
        raise FileFormatError(f"read: {name} has no edges, only blank lines and comments.")
    _require_lines(data, budget)
    n, ids = 0, None
    try:
        if top.first and not options.header:
            _parsed(top.text, top.start, _width(top.first) or top.width, name)
        edges = _parsed(data, len(top.text), top.width, name)
        n, first = settled(top, edges.extent(), name, options)
        edges = Edges.join([first, edges])
    except FileFormatError:  # names, or numbers that FP64 does not hold
        if not options.renumber:
            raise
        edges, ids = _named(data, top, budget, options)
        top.require(len(edges.u), name)
    part, largest = "", n - 1
    if not options.renumber and n > len(data) and largest == edges.largest():
        part = f"vertex {largest}"  # which alone is to blame
        if found := re.search(rb"(?<![0-9.])%d(?![0-9])" % largest, data):
            part += f" in line {reading.line_number(data, found.start())}"
    how: Any = {"undirected": top.undirected, "part": part}
    return reading.graph_of(edges, budget, options, held=len(data), n=n, ids=ids, **how)


def _require_lines(
    data: bytes, budget: Budget, nbytes: int = _BYTES_OF_EDGE, piece: int = 16, width: int = 2
) -> None:
    """Ask for the memory of so many bytes a line of a text; at first for the most possible."""
    ask = functools.partial(budget.require, part="its lines", held=len(data))
    beside = piece * min(len(data), reading.PIECE)
    try:
        ask(nbytes * (len(data) // (2 * width)) + beside)
    except (OutOfMemory, LimitExceeded):
        ask(nbytes * data.count(b"\n") + beside)


def _parsed(data: bytes, start: int, width: int, name: str, places: tuple[int, ...] = ()) -> Edges:
    """Return the edges of all lines from an offset on."""
    with contextlib.suppress(Malformed):  # the usual lines, where pyarrow is installed
        found = reading.shares(data, start, name, reading.mark_of(data, start), "int32")
        return Edges.join([Edges.of(columns, width, places) for columns in found])
    return Edges.join(reading.parsed(data, start, lambda text: edges_of(text, width, places), name))


def edges_of(text: bytes, width: int, places: tuple[int, ...] = ()) -> Edges:
    """Return the edges of whole lines of so many numbers each, or raise `Fault` for one of none."""
    # The sources, targets and weights are at the `places`, by default the first ones.

    def edges(part: bytes) -> Edges:
        part = _uncommented(part)
        columns = reading.columns(reading.fortran(part, width - 2) if width >= 3 else part)
        return Edges.of(columns, width, places)

    return reading.by_line(text, edges, lambda line: _why(line, width))


def _uncommented(text: bytes) -> bytes:
    return _COMMENT.sub(b"", text) if b"#" in text or b"%" in text else text


def settled(top: Top, edges: reading.Extent, name: str, options: Options) -> tuple[int, Edges]:
    """Return (vertices, the edge of the first line or none) for the extent of all other edges."""
    found, n = Edges.join([]), None
    if top.first:
        n = _header(top, edges, name, options)
        if n is None:
            own = _width(top.first)
            if own not in (0, top.width):  # the first line is an edge, so the others are not
                line, second = top.second
                why = _why(second, own)
                raise FileFormatError(f"read: {name}, line {line}: {show(second)} {why}.")
            found = _parsed(top.text, top.start, top.width, name)
    top.require(edges.size + len(found.u), name)
    return max(top.nodes or 0, n or 0, 1 + max(edges.top), 1 + found.largest()), found


def _header(top: Top, edges: reading.Extent, name: str, options: Options) -> int | None:
    """Return n if the first line is a header ``n m``, else None."""
    first = top.first
    # Vertices that are renumbered may be 1 .. n, and any numbers if the user says that it is one.
    header, tokens = options.header, first.split(None, 3)
    if header is False:
        return None
    sizes = [int(token) for token in tokens if token.isdigit() and len(token) < 17]
    sizes = sizes if len(sizes) == len(tokens) else []
    if header is None and sizes and sizes[0] < (top.nodes or 0):
        return None  # but a vertex of those that a comment counts
    (sources, targets), largest, count = edges.top, max(edges.top), edges.size
    if len(sizes) == 2 and sizes[1] == count:
        n = sizes[0]
        if (largest < n or (header and options.renumber)) and (count or header):
            return n
        if header is None and n == largest and edges.least > 0:
            if options.renumber:
                return n
            raise FileFormatError(
                f"read: {name}: {show(first)} looks like a header of vertices 1 .. {n}. "
                f"{reading.NUMBERS_HINT}, or give header=False if it is an edge."
            )
    if header:
        raise FileFormatError(
            f"read: {name}: the header {show(first)} does not fit: {count} lines follow, with "
            f"largest vertex {largest}. Leave header=True out if it is an edge."
        )
    if len(sizes) == 3 and sizes[2] == count > 0 and sources <= sizes[0] and targets <= sizes[1]:
        raise FileFormatError(
            f"read: {name}: {show(first)} looks like the sizes of a Matrix Market file. Give "
            "it its banner as first line, or give header=False if it is an edge."
        )
    return None


def _width(line: bytes) -> int:
    """Return how many numbers a line has, or 0 if that is not 2 or 3."""
    count = len(line.split(None, 3))
    return count if count in (2, 3) else 0


def _why(line: bytes, width: int) -> str:
    """Return what is wrong with a line of numbers, or an empty string."""
    words = line.split()
    if len(words) != width:
        only = ". Separate them by spaces or tabs" if re.search(rb"[0-9][,;|:][0-9]", line) else ""
        if len(words) > 3 and not only:
            only = ". Keep the ends and the weight, as awk '{print $1, $2, $3}' does"
        return f"has {len(words)} numbers, not {width}{only}"
    if not all(map(reading.is_number, words[:2])) or not all(map(reading.is_weight, words[2:])):
        only = "Separate them by spaces or tabs alone" if re.search(rb"[0-9][,;|:]", line) else ""
        return f"is not made of numbers. {only or NAMES_HINT}"
    found = [reading.number(word) for word in words]
    for vertex in found[:2]:
        if vertex != vertex or vertex < 0 or vertex % 1:
            return "has a vertex that is not a whole number 0, 1, 2, ..."
        if vertex >= 2**53:
            return f"has a vertex beyond {2**53 - 1}, the largest that can be read"
    whole = all(isinstance(x, int) for x in found)
    small = all(-(2**63) <= x < 2**63 for x in found[2:])
    return "" if not whole or small else "has a weight beyond 64 bits"


# ---- Lists of two collections, whose first lines or other files say what the graph is. KONECT has
# ``% sym kind`` and maybe ``% m rows columns`` above lines ``i j [weight [time]]`` of vertices
# 1 .. n, and LDBC Graphalytics a file of edges ``.e`` beside one of vertices ``.v``.
#
# Sources: Kunegis, KONECT handbook, 2018, section 8.2; the LDBC Graphalytics Benchmark, 2020, 2.2.


def parse_konect(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the graph of a list of KONECT, without the times of edges unless asked for."""
    name, top = budget.name, KONECT.match(data)
    if top is None:
        raise FileFormatError(f"read: {name} does not begin with `% sym` or `% asym` of KONECT.")
    odd = "a bipartite graph" if top[1] == b"bip" else ""
    remedy = "Write it as Matrix Market, which has rows and columns."
    if top[2] == b"dynamic":
        odd, remedy = "a graph with edges that come and go", "Keep the edges of one time."
    if odd:
        shown = show(data[: data.find(b"\n")].strip())
        raise FileFormatError(f"read: {name}, line 1: {shown} is {odd} of KONECT. {remedy}")
    start, first = next(reading.data_lines(data), (len(data), b""))
    width = min(max(2, len(first.split(None, 4))), 4)
    names = ("source", "target", "weight", "time")[:width]
    usual = None if top[2] != b"unweighted" or width < 3 else names[:2]
    places = chosen(names, options.columns or usual, name)
    _require_lines(data, budget)
    edges = _parsed(data, start, width, name, places)
    n = max(int(top[3] or 0), int(top[4] or 0))
    u, v = reading.from_one(name, n or 2**53, edges.u, edges.v)
    edges, undirected = Edges(u, v, edges.weights), top[1] == b"sym"
    return reading.graph_of(edges, budget, options, held=len(data), n=n, undirected=undirected)


def parse_ldbc(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the graph of a list of LDBC, whose vertices and direction are in files beside it."""
    name, vertices = budget.name, budget.beside(".v")
    width = _width(next(reading.data_lines(data), (0, b""))[1]) or 2
    _require_lines(data, budget)
    edges, ids, n = _parsed(data, 0, width, name), None, 0
    directed = _DIRECTED.search(budget.beside(".properties") or b"graph.x.directed = true")
    if vertices is not None:
        budget.require(24 * len(vertices), "its vertices", held=len(data) + len(vertices))
        rows = reading.parsed(vertices, 0, _vertex_of_lines, f"the .v of {name}")
        ids = distinct(np.concatenate([np.empty(0, np.int64), *rows]))
        n = 1 + int(ids.max(initial=-1))
        at = [np.searchsorted(ids, x) for x in edges[:2]]
        for x, places in zip(edges[:2], at, strict=True):
            known = places < len(ids)
            known[known] = ids[places[known]] == x[known]
            if not known.all():
                raise FileFormatError(f"read: {name}: vertex {x[~known][0]} is not in its .v file.")
        if options.renumber:
            edges = edges._replace(u=at[0], v=at[1])
    return reading.graph_of(
        edges, budget, options, held=len(data), n=n, ids=ids if options.renumber else None,
        undirected=directed is not None and directed[1] == b"false",
    )  # fmt: skip


def _vertex_of_lines(text: bytes) -> Array:
    """Return the first numbers of lines that have a vertex each."""

    def vertex(part: bytes) -> Array:
        found = reading.table(part)
        if found.shape[1] > 1 or found.dtype.kind == "f" or found.min(initial=0) < 0:
            raise Malformed
        return found.ravel()

    return reading.by_line(text, vertex, lambda line: "is not one vertex 0, 1, 2, ...")


# ---- Vertices with names: lines ``name name`` or ``name name weight``.


def _named(data: bytes, top: Top, budget: Budget, options: Options) -> tuple[Edges, Array]:
    """Return the edges between renumbered vertices, and the id of each vertex."""
    # The first line is a header if it has usual names of columns, unless `header` says otherwise.
    header, words = options.header, top.first.decode("utf-8", "replace").split()
    if header is None and are_columns(words):
        header = True
        if chosen(words, None, budget.name) != tuple(range(len(words))):
            line = reading.line_number(data, top.start)
            raise FileFormatError(
                f"read: {budget.name}, line {line}: {show(top.first)} has "
                "names of columns in another order than source target weight. Write it with commas."
            )
    begin = len(top.text) if header else top.start
    width = _width(next(reading.data_lines(data, begin), (0, b""))[1]) or 2
    names, done = reading.Names(), 0

    def edges(text: bytes) -> Edges:
        nonlocal done
        new = 2 * text.count(b"\n") * reading.BYTES_OF_NAME + 16 * len(text)
        have = len(data) + len(names) * reading.BYTES_OF_NAME + 48 * done
        budget.require(new, "its names", held=have)
        found, weights = reading.by_line(
            text, lambda part: _words(part, width), lambda line: _why_named(line, width)
        )
        u, v = (names.codes(found[k::width], len(found) // width) for k in (0, 1))
        done += len(u)
        return Edges(u, v, weights)

    found = Edges.join(reading.parsed(data, begin, edges, budget.name))
    try:
        return names.ordered(found, utf8=True)
    except UnicodeDecodeError as error:
        fact = f"{show(bytes(error.object))} is not UTF-8. Convert the file to UTF-8."
        raise FileFormatError(f"read: {budget.name}: {fact}") from None


def _words(text: bytes, width: int) -> tuple[list[bytes], Array | None]:
    """Return the words of lines of `width` words, and the weights if there is a third word."""
    text = _uncommented(text)
    if not _rows_of(width).fullmatch(text):
        raise Malformed
    words = text.split()
    return words, reading.numbers_of(words[2::3]) if width == 3 else None


@functools.cache
def _rows_of(width: int) -> re.Pattern[bytes]:
    """Return the pattern of lines of `width` words."""
    space = rb"[ \t\r\v\f]"
    more = rb"(?:%b++\S++){%d}" % (space, width - 1)
    return re.compile(rb"(?:%b*+(?:\S++%b%b*+)?\n)*+" % (space, more, space))


def _why_named(line: bytes, width: int) -> str:
    words = line.split()
    if len(words) != width:
        return f"has {len(words)} words, not {width}"
    if not reading.is_weight(words[-1]):
        return f"has the weight {show(words[-1])}, which is no number"
    return "has a weight beyond 64 bits"


# ---- Names of columns: which are the sources, the targets and the weights.


_SOURCES = ("source", "src", "from", "fromnodeid", "from_node", "u", "i", "row", "tail", "node1")
_TARGETS = ("target", "dst", "to", "tonodeid", "to_node", "v", "j", "col", "head", "node2")
_WEIGHTS = ("weight", "w", "value", "wgt", "data", "cost", "distance", "length")
_INDEX = re.compile(r"(unnamed: ?[0-9]+|__index_level_[0-9]+__)?")  # as pandas writes its own


def is_header(words: Sequence[str]) -> bool | None:
    """Return whether a first line has names of columns; None for some names and some numbers."""
    found = {reading.is_weight(word.encode()) for word in words}
    return None if len(found) > 1 else found == {False}


def are_columns(words: Sequence[str]) -> bool:
    """Return whether words are usual names of columns: one of sources and one of targets."""
    plain = {word.strip().lower() for word in words}
    return bool(is_header(words) and plain & {*_SOURCES} and plain & {*_TARGETS})


def chosen(header: Sequence[str], columns: tuple[str, ...] | None, name: str) -> tuple[int, ...]:
    """Return the places of the columns of sources, targets, and weights if there are any."""
    # They have the names that the user gives, `columns`, or else usual ones (``source`` and
    # ``target``, ``src`` and ``dst``, ``from`` and ``to``, and ``weight``). If just two columns are
    # not called as weights are, these are the ends, in their order. The columns of an index, such
    # as pandas writes, do not count.
    if columns is not None:
        for column in columns:
            if header.count(column) != 1:
                lack = f" has no column {column!r}. It has {', '.join(header[:20])}."
                twice = f": two columns are called {column!r}. Rename one of them."
                raise InvalidValue(f"read: {name}{twice if column in header else lack}")
        return tuple(map(header.index, columns))
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
    places = (source, target) if weight is None else (source, target, weight)
    for k in places:
        if plain.count(plain[k]) > 1:
            raise FileFormatError(
                f"read: {name}: two columns are called {header[k]!r}. Rename one of them."
            )
    return places


# ---- Tables. Numbers are parsed many lines at a time; names, quotes and gaps are left to ``csv``.


_SEPARATORS = ("\t", ",", ";")
_ROWS = 1 << 16  # at a time
_NO_VERTEX = f"has the vertex {{}}, not a whole number 0, 1, 2, ... below 2**53. {NAMES_HINT}"
_NO_WEIGHT = "has the weight {}, which is no number of 64 bits"


class Form(NamedTuple):
    """The form of a table."""

    data: bytes  # the content of its file
    name: str
    start: int  # of the first line that is not a comment, or below the header
    separator: str
    width: int = 0  # fields of a line
    places: tuple[int, ...] = ()  # the columns of sources, targets, and weights if there are any

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the last line and the fields of each row that is not blank."""
        lines = io.TextIOWrapper(io.BytesIO(self.data), "utf-8", newline="")
        lines.seek(self.start)
        rows = csv.reader(lines, delimiter=self.separator, skipinitialspace=True)
        above = reading.line_number(self.data, self.start) - 1
        try:
            for row in rows:
                fields = [field.strip() for field in row]
                if fields not in ([], [""]):
                    yield above + rows.line_num, fields
        except csv.Error:  # which has no other one for lines as `parse` takes them
            raise FileFormatError(
                f"read: {self.name}, line {above + rows.line_num}: a field is longer than "
                f"{csv.field_size_limit():,} characters. Close its quotes."
            ) from None

    def fault(self, k: int, why: str) -> FileFormatError:
        """Return the error for a row, counted from 0 below the header."""
        line, row = next(itertools.islice(self.rows(), k, None))
        shown = show(self.separator.join(row))
        return FileFormatError(f"read: {self.name}, line {line}: {shown} {why}.")


def is_table(data: bytes) -> bool:
    """Return whether a text is a table of edges, by its first line after comments."""
    first = next(reading.data_lines(data), (0, b""))[1][: reading.PIECE]
    by_tabs = b"\t" in first and are_columns(first.decode("utf-8", "replace").split("\t"))
    return by_tabs or b"," in first or b";" in first


def parse_table(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the graph of a table."""
    name = budget.name
    offset, first = next(reading.data_lines(data), (len(data), b""))
    if not first:
        raise FileFormatError(f"read: {name} has no edges, only blank lines and comments.")
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):  # each sees other lines
        raise FileFormatError(
            f"read: {name} has a carriage return alone. End its lines by a line feed."
        )
    nodes, undirected = comments_of(data, offset, name)
    ids = None
    try:
        form = _form_of(data, offset, first, options, name)
        _require_lines(data, budget, 16 * (form.width + 1), 32, form.width)
        kinds = ("int32", "int64", *["string"] * options.renumber)
        readers: list[Any] = [functools.partial(_of_columns, kind=kind) for kind in kinds]
        for read in (*readers, _of_numbers, _of_words):
            with contextlib.suppress(Malformed):
                edges, ids = read(form, options, budget)
                break
    except UnicodeDecodeError:
        raise FileFormatError(f"read: {name} is not UTF-8. Convert the file to UTF-8.") from None
    how: Any = {"held": len(data), "n": nodes or 0, "ids": ids, "undirected": undirected}
    return reading.graph_of(edges, budget, options, **how)


def _form_of(data: bytes, offset: int, first: bytes, options: Options, name: str) -> Form:
    """Return the form of a file, by its first lines after comments."""
    line = data[offset : data.find(b"\n", offset)]
    counts = {mark: line.count(mark.encode()) for mark in _SEPARATORS}
    separator = max(counts, key=counts.__getitem__) if any(counts.values()) else ","
    rows = Form(data, name, offset, separator).rows()
    last, top = next(rows, (0, []))
    where = f"read: {name}, line {reading.line_number(data, offset)}: {show(first)}"
    width = len(top)
    if not _has_header(top, next(rows, (0, None))[1], options, where):
        if options.columns is not None:
            raise InvalidValue(f"read: {name} has no header, so columns have no names.")
        if width not in (2, 3):
            raise FileFormatError(
                f"{where} has {width} fields and no names of columns. Write "
                f"source,target{',weight' * (width > 2)} and the like above the first edge."
            )
        return Form(data, name, offset, separator, width, tuple(range(width)))
    below = offset
    for _ in range(last + 1 - reading.line_number(data, offset)):  # a name may have a line end
        below = data.find(b"\n", below) + 1 or len(data)
    return Form(data, name, below, separator, width, chosen(top, options.columns, name))


def _has_header(top: list[str], below: list[str] | None, options: Options, where: str) -> bool:
    """Return whether the first row has the names of the columns."""
    if options.header is not None:
        return options.header
    if options.columns is not None or are_columns(top):
        return True
    found = is_header(top)
    if found and not below:
        raise FileFormatError(f"{where} is the only line, and no edge.")
    if below and found and options.renumber and is_header(below[:2]) is not False:
        raise FileFormatError(
            f"{where} may be names of columns or an edge. Write source,target above the first "
            "edge, or give io.read header=True or header=False."
        )
    if found is None and not options.renumber:  # else the number is a name, or a weight
        raise FileFormatError(
            f"{where} is neither names of columns nor an edge of numbers. Correct it, or give "
            f"header=True if it has names of columns. {NAMES_HINT}."
        )
    return bool(found)


def _of_columns(
    form: Form, options: Options, budget: Budget, kind: str
) -> tuple[Edges, Array | None]:
    """Return the edges of a large table by pyarrow, and the ids of its vertices if they are texts.

    Raises `Malformed` for a table that others have to read, or that has ends of another kind.
    """
    names: Any = reading.Names()
    found, given = [], (form.width, form.places)
    for columns in reading.shares(form.data, form.start, form.name, form.separator, kind, *given):
        if kind == "string":
            codes = names.codes_of(budget, *columns[:2], held=2 * len(form.data))
            columns[:2] = codes.reshape(2, -1)
        found.append(Edges(*columns) if options.renumber else Edges.of(columns, len(columns)))
    edges = Edges.join(found)
    if kind != "string":
        return edges, None
    whole = all(map(reading.is_number, map(str.encode, names)))
    if whole or "" in names or list(map(str.strip, names)) != list(names):
        raise Malformed
    return names.ordered(edges)


def _of_numbers(form: Form, options: Options, budget: Budget) -> tuple[Edges, None]:
    """Return the edges of a table of numbers alone."""

    def edges(text: bytes) -> Edges:
        found = Edges.of(reading.table(text, form.separator).T, form.width, form.places)
        x = found.weights
        if form.width > 3 and x is not None and x.dtype.kind == "f" and (x == np.rint(x)).all():
            raise Malformed  # the other columns alone may have fractions
        return found

    return Edges.join(reading.parsed(form.data, form.start, edges, form.name)), None


def _of_words(form: Form, options: Options, budget: Budget) -> tuple[Edges, Array | None]:
    """Return the edges of any table, and the ids of its vertices if they are renumbered."""
    names, found, done = reading.Names(), [], 0
    rows = (row for _, row in form.rows())
    while part := list(itertools.islice(rows, _ROWS)):
        have = len(form.data) + len(names) * reading.BYTES_OF_NAME + 48 * done
        new = (2 * reading.BYTES_OF_NAME + 100 * form.width) * _ROWS
        budget.require(new, "its names", held=have)
        for k, row in enumerate(part):
            if len(row) != form.width:
                raise form.fault(done + k, f"has {len(row)} fields, not {form.width}")
        columns = [[row[place] for row in part] for place in form.places]
        for column in columns[:2]:
            if "" in column:
                raise form.fault(done + column.index(""), "has an empty end")
        weights = [_numbers(x, _weights, _NO_WEIGHT, form, done) for x in columns[2:]]
        if options.renumber:
            u, v = (names.codes(column, len(part)) for column in columns[:2])
        else:
            u, v = (_numbers(x, _vertices, _NO_VERTEX, form, done) for x in columns[:2])
        found.append(Edges(u, v, *weights))
        done += len(part)
    edges = Edges.join(found)
    return names.ordered(edges) if options.renumber else (edges, None)


def _vertices(words: list[str]) -> Array:
    found = reading.whole_numbers(words)
    if found is None or not 0 <= found.min() <= found.max() < 2**53:
        raise Malformed
    return found.astype(np.int64)


def _weights(words: list[str]) -> Array:
    return reading.numbers_of([word.encode() for word in words])


def _numbers(
    column: list[str], convert: Callable[[list[str]], Array], why: str, form: Form, done: int
) -> Array:
    """Return the numbers of a column, or raise for the first row without one."""
    try:
        return convert(column)
    except Malformed:
        for k, word in enumerate(column):
            try:
                convert([word])
            except Malformed:
                raise form.fault(done + k, why.format(repr(word[:60]))) from None
        raise  # pragma: no cover (each is a number, and all together are)


# ---- Writing.


def dump(
    csc: CSC, file: IO[bytes], *, head: str = "", separator: str = " ", prefix: str = "",
    first: int = 0, weights: bool | None = None, once: bool = False,
) -> None:  # fmt: skip
    """Write a line for each entry: a prefix, the ends, counted from `first`, and maybe the value.

    Values are written if `weights`, by default unless all are True, and of a symmetric matrix
    maybe each edge `once`. The `head` above is formatted with ``n m kind names``.
    """
    if not head and not csc.nvals:  # the GAP suite does not read comments
        raise InvalidValue(
            "write: a plain list has no place for a graph without edges. Use .mtx or .npz."
        )
    columns = csc.entries(values=weights)
    if once:
        above = columns[0] <= columns[1]
        columns = [column[above] for column in columns]
    names = separator.join(("source", "target", "weight")[: len(columns)])
    kind, n = "weighted" if len(columns) == 3 else "unweighted", max(csc.nrows, csc.ncols)
    file.write(head.format(n=n, m=len(columns[0]), kind=kind, names=names).encode())
    columns[:2] = [ends + first for ends in columns[:2]]
    if not head and len(columns) == 2:  # the first line must be no header `n m`
        skipped = int(np.argmax(columns[1] != len(columns[1]) - 1))
        columns = [np.roll(column, -skipped) for column in columns]
    reading.write_rows(file, columns, separator, prefix)
