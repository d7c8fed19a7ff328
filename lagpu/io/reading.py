"""What the readers of files share: lines and their numbers, edges, memory, names of vertices."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
import scipy.io

from lagpu import errors
from lagpu.algebra.operators import BinaryOp
from lagpu.dtypes import Array
from lagpu.host import memory, progress
from lagpu.host.columns import distinct
from lagpu.io.csc import CSC, bytes_for_entries, from_entries

T = TypeVar("T")

_VARIABLE = "LAGPU_READ_LIMIT"
_LEAST = 10**9
_TIMES = 100

# ---- Lines of a text.

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PIECE = 1 << 24  # bytes; the temporaries of a piece are small compared with a large file
_LINES = 1 << 16  # written at a time
# Control characters that no text has: all but tab, line feed, vertical tab, form feed, return.
_CONTROL = bytes([*range(9), *range(14, 32), 127])
# A return inside a line is a space; Python's other separators are not.
_PLAIN = bytes.maketrans(b"\r\x1c\x1d\x1e\x1f", b" \0\0\0\0")
_SMALL = bytes.maketrans(b"E", b"e")
_DIGITS = b"0123456789+-,; \t\n\v\f"  # all characters of whole numbers and what separates them
_REAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(nan|inf)", re.IGNORECASE)
_ODD_MINUS = re.compile(rb"-(?:[^0-9.]|[0.]+[\neE])")  # SciPy adds -0.0 to 0.0
# What pyarrow takes for a number: 0x1F, +1 for a real one, and nan(1).
_ODD_MARKS = (b"x", b"X", b"+")
_ODD = re.compile(rb"0[xX]|(?<![eE])\+")
LARGE = 1 << 21  # bytes of a text for which pyarrow is loaded; if it is, 1/32 of them are enough
_SHARE = 1 << 28  # bytes that pyarrow reads at a time
_LINE = 1 << 17  # bytes of a longest line there, and so of a longest field, as in Python's csv
_FORTRAN = tuple(  # of the last column, and of the one before it
    re.compile(rb"(?<=[0-9.])[dD](?=[+-]?[0-9]+%b[ \t\r]*$)" % more, re.MULTILINE)
    for more in (b"", rb"(?:[ \t]+\S+)?")
)


class Malformed(Exception):
    """Some words are not what a format needs; its reader then finds the line."""


class Fault(Exception):
    """Line `line` of a part of a text, counted from 1, is malformed; `why` shows it too."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line, self.why = line, why


def is_binary(start: bytes) -> bool:
    """Return True if the first bytes of a file include characters that no text has."""
    return len(start.translate(None, _CONTROL)) != len(start)


def cuts(data: bytes, start: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of pieces of whole lines, of `size` bytes at most or one longer line."""
    while start < len(data):
        stop = len(data)
        if stop - start > size:
            cut = data.rfind(b"\n", start, start + size)
            cut = data.find(b"\n", start) if cut < 0 else cut
            stop = stop if cut < 0 else cut + 1
        yield start, stop
        start = stop


def parsed(data: bytes, start: int, parse: Callable[[bytes], T], name: str) -> list[T]:
    """Return what a parser makes of each piece of a text; its `Fault` becomes `FileFormatError`."""
    found = []
    with progress.bar(f"reading {name}", len(data)) as done:
        for at, stop in cuts(data, start, PIECE):
            text = data[at:stop]
            try:
                first = next(data_lines(text), (0, b""))[1]
                if len(first) > PIECE:
                    raise Fault(1, f"{show(first)} is longer than {PIECE} bytes")
                found.append(parse(text))
            except Fault as fault:
                line = line_number(data, at) - 1 + fault.line
                raise errors.FileFormatError(f"read: {name}, line {line}: {fault.why}.") from None
            done(stop)
    return found


def by_line(text: bytes, parse: Callable[[bytes], T], why: Callable[[bytes], str]) -> T:
    """Return what a parser makes of whole lines, or raise the `Fault` of the first it refuses."""
    try:
        return parse(text)
    except Malformed:
        lines = text.split(b"\n")
    low, high = 0, len(lines)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            parse(b"\n".join(lines[low:middle]) + b"\n")
        except Malformed:
            high = middle
        else:
            low = middle
    line = lines[low].strip()
    raise Fault(low + 1, f"{show(line)} {why(line)}")


def data_lines(data: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) of the lines that are neither blank nor comments (``#``, ``%``)."""
    while start < len(data):
        stop = data.find(b"\n", start)
        stop = len(data) if stop < 0 else stop
        line = data[start:stop].strip()
        if line and not line.startswith((b"#", b"%")):
            yield start, line
        start = stop + 1


def line_number(data: bytes, offset: int) -> int:
    """Return the number, from 1, of the line at an offset."""
    return data.count(b"\n", 0, offset) + 1


def show(line: bytes | str) -> str:
    """Return a line as text for a message, shortened to 60 characters."""
    text = line if isinstance(line, str) else line[:240].decode("utf-8", "replace")
    return repr(text if len(text) <= 60 else text[:57] + "...")


def write_rows(file: IO[bytes], columns: list[Array], separator: str, prefix: str = "") -> None:
    """Write arrays of equal length as the columns of a table, after a prefix."""
    # BOOL is written as 0 and 1, and objects as texts.
    plain = [column.astype(np.int8) if column.dtype.kind == "b" else column for column in columns]
    words = separator.join("%s" if column.dtype.kind == "O" else "%r" for column in plain)
    line = f"{prefix}{words}\n"
    for k in range(0, len(plain[0]), _LINES):
        part = [column[k : k + _LINES].tolist() for column in plain]
        # Formatting many lines at once is several times faster than line by line.
        numbers = [number for row in zip(*part, strict=True) for number in row]
        file.write((line * len(part[0]) % tuple(numbers)).encode())


def table(text: bytes, separator: str | None = None) -> Array:
    """Return the numbers of lines, (lines, numbers of each), without blank lines."""
    # They are INT64, or FP64 if one is not a whole number. `Malformed` if lines have different
    # numbers of words, a word is not a number, or a whole one does not fit 64 bits.
    if not text or text.isspace():
        return np.empty((0, 0), np.int64)
    if (usual := _usual_table(text, separator)) is not None:
        return usual
    plain = text.translate(_PLAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a fraction that is to be an integer
        for kind in ("i8", "f8"):
            if kind == "f8" and not plain.translate(None, _DIGITS):
                break
            with contextlib.suppress(ValueError):
                how: Any = {"comments": None, "ndmin": 2, "encoding": "ascii"}
                return np.loadtxt(io.BytesIO(plain), kind, delimiter=separator, **how)
    raise Malformed


def regular(text: bytes, mark: bytes) -> tuple[int, int, bool]:
    """Return the width of a text in the usual form, its lines, and whether all numbers are whole.

    In a line are `width` lists of digits with a mark between them; the last one may have a sign, a
    point and an exponent. The width of any other text is 0. A list before an exponent may be empty,
    which a parser finds: no pattern is matched, since that takes longer than to parse the numbers.
    """
    marks = text.translate(_SMALL, b"0123456789-+")
    plain = marks.translate(None, b".e")
    width, whole = plain.find(b"\n") + 1, len(marks) == len(plain)
    lines = len(plain) // max(1, width)
    usual = (
        plain == (mark * (width - 1) + b"\n") * lines
        and _all_beside(text, b"-", -1, mark + b"eE")
        and _all_beside(text, b"+", -1, b"eE")
        and _all_beside(marks, b".", 1, b"e\n")
        and _all_beside(marks, b"e", 1, b"\n")
        and (b"e" not in marks or _all_beside(text, b"\n", -1, b"0123456789."))
    )
    return (width, lines, whole) if usual else (0, 0, False)


def _all_beside(text: bytes, char: bytes, step: int, allowed: bytes) -> bool:
    """Return whether the characters before (-1) or after (1) all of one kind are `allowed`."""
    if char not in text:
        return True
    chars, table = np.frombuffer(text, np.uint8), np.zeros(256, bool)
    table[[*allowed]] = True
    return bool(table[chars.take(np.flatnonzero(chars == ord(char)) + step, mode="wrap")].all())


def _usual_table(text: bytes, separator: str | None) -> Array | None:
    """Return `table` of a text in the usual form, several times as fast; None for others."""
    text = text.replace(b"\r\n", b"\n") if b"\r" in text else text
    mark = (separator or mark_of(text)).encode()
    width, lines, whole = regular(text, mark)
    if not width or _ODD_MINUS.search(text):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            if whole:
                text = text if mark.isspace() else text.replace(mark, b" ")
                found: Array = np.fromstring(text, np.int64, sep=" ")
                if not -(10**18) < found.min() <= found.max() < 10**18:  # the parser saturates
                    return None
            else:
                head = f"%%MatrixMarket matrix array real general\n{lines * width} 1\n".encode()
                found = np.asarray(scipy.io.mmread(io.BytesIO(head + text.replace(mark, b"\n"))))
            return found.reshape(lines, width)
        except (ValueError, DeprecationWarning):  # a list is empty
            return None


def mark_of(text: bytes, start: int = 0) -> str:
    """Return what separates the numbers of a list, by its first line from an offset on."""
    return "\t" if b"\t" in text[start : text.find(b"\n", start)] else " "


def columns(text: bytes, separator: str | None = None) -> Sequence[Array] | Array:
    """Return the columns of `table`, where large by pyarrow, which is faster if it is installed."""
    found = _columns_of(text, separator or mark_of(text)) if _is_large(len(text)) else None
    return table(text, separator).T if found is None else found


def _is_large(nbytes: int) -> bool:
    return nbytes >= (LARGE / 32 if "pyarrow" in sys.modules else LARGE)


def shares(
    data: bytes, start: int, name: str, separator: str, kind: str,
    width: int = 0, places: tuple[int, ...] = (),
) -> Iterator[list[Any]]:  # fmt: skip
    """Yield the columns of each share of a large text by pyarrow; see `_columns_of`.

    Raises `Malformed` for what others must read.
    """
    if not _is_large(len(data) - start):
        raise Malformed
    quotes = width > 0 and b'"' in data
    size = len(data) if quotes else _SHARE  # a line end may be in quotes
    with progress.bar(f"reading {name}", len(data)) as done:
        for at, stop in cuts(data, start, size):
            if width > len(places) and not data.isascii():
                data[at:stop].decode()  # columns that are not read
            found = _columns_of(data, separator, at, stop, width, places, kind, quotes)
            if found is None:
                raise Malformed
            yield found
            done(stop)
    importlib.import_module("pyarrow").default_memory_pool().release_unused()


def _columns_of(
    data: bytes, separator: str, start: int = 0, stop: int | None = None,
    width: int = 0, places: tuple[int, ...] = (), kind: str = "", quotes: bool = False,
) -> list[Any] | None:  # fmt: skip
    """Return the columns of whole lines as pyarrow reads them, or None for what others must read.

    Those are lines that pyarrow refuses, or might read otherwise. The columns are INT64 or FP64,
    but the first two of a `kind` if one is given, as pyarrow has it if that is "string". Of a table
    with `width` columns only those at the `places` are returned.
    """
    stop, texts = len(data) if stop is None else stop, kind == "string"
    odd = () if texts and len(places) == 2 else _ODD_MARKS
    if any(data.find(x, start, stop) >= 0 for x in odd) and _ODD.search(data, start, stop):
        return None
    alone = not width and b"\r" in data and data.count(b"\r") != data.count(b"\r\n")
    if alone or data.startswith(BYTE_ORDER_MARK, start):
        return None  # to pyarrow they are ends of lines, and nothing
    try:
        pyarrow, reader = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.csv"))
    except ImportError:
        return None
    titles = [f"f{k}" for k in range(width)]  # as pyarrow calls them by itself
    types = {f"f{k}": kind for k in (places or (0, 1))[:2] if kind}
    if not width and kind and b"." in data[start : data.find(b"\n", start)]:
        types["f2"] = "double"  # the weights
    try:
        found = reader.read_csv(
            pyarrow.BufferReader(pyarrow.py_buffer(data).slice(start, stop - start)),
            reader.ReadOptions(
                use_threads=pyarrow.cpu_count() > 1, block_size=_LINE,
                column_names=titles, autogenerate_column_names=not width,
            ),
            reader.ParseOptions(
                delimiter=separator, quote_char='"' if quotes else False, newlines_in_values=quotes
            ),
            reader.ConvertOptions(
                column_types=types,
                include_columns=[titles[k] for k in places] if width else None,
                null_values=[], true_values=[], false_values=[],
            ),
        ).columns  # fmt: skip
    except pyarrow.ArrowException:
        return None
    kinds = {"int32" if kind == "int32" else "int64", "int64", "double"}
    if any(str(column.type) not in kinds for column in found[2 * texts :]):
        return None
    numbers = [array_of(column) for column in found[2 * texts :]]
    for x in numbers:
        usual = x.dtype.kind != "f" or -(2.0**63) < x.min(initial=0) <= x.max(initial=0) < 2.0**63
        if not usual and (np.isfinite(x[abs(x) >= 2.0**63]).any() or b"(" in data):
            return None  # they may be whole, and beyond 64 bits; and of nan(1)
    return [*found[: 2 * texts], *numbers]


def array_of(column: Any) -> Array:
    """Return a column of pyarrow without missing values; it may be read-only."""
    # Not by `to_numpy`, which imports pandas where it is installed, and ignores Ctrl-C meanwhile.
    if str(column.type) == "bool":  # a bit each
        return array_of(column.cast("uint8")).view(np.bool_)
    return np.from_dlpack(column.combine_chunks() if hasattr(column, "chunks") else column)


def numbers_of(words: list[bytes]) -> Array:
    """Return weights as INT64, or FP64 if necessary; raise `Malformed` if one is no number."""
    found = table(fortran(b"\n".join(words)))
    if words and found.shape != (len(words), 1):
        raise Malformed
    return found.ravel()


def fortran(text: bytes, last: int = 1) -> bytes:
    """Return a text with e for D in Fortran's numbers, 1.5D+01, of the last column or two."""
    return _FORTRAN[last - 1].sub(b"e", text) if b"D" in text or b"d" in text else text


def is_number(word: bytes) -> bool:
    """Return whether a word is a number as vertices are written."""
    return _REAL.fullmatch(word) is not None


def is_weight(word: bytes) -> bool:
    """Return whether a word is a number, maybe with an exponent of Fortran."""
    return is_number(fortran(word.strip()))


def number(word: bytes) -> int | float:
    """Return the number of a word that `is_weight`."""
    if re.fullmatch(rb"[+-]?[0-9]{1,1000}", word):  # Python converts up to 4300 digits
        return int(word)
    return float(fortran(word))


# ---- What a reader gets, and what it returns.


class Budget(NamedTuple):
    """A file, by its name in messages, its limit, and the files that belong to it."""

    name: str
    size: float
    limit: float
    beside: Callable[[str], bytes | None] = lambda _suffix: None  # of the same name

    @classmethod
    def of(cls, name: str, size: float, beside: Callable[[str], bytes | None]) -> Budget:
        """Return the budget of a file of `size` bytes; a pipe has infinitely many."""
        text, limit = os.environ.get(_VARIABLE), max(_LEAST, _TIMES * size)
        if text:
            try:
                limit = float(text)
            except ValueError:
                limit = np.nan
            if not limit > 0:
                raise errors.InvalidValue(
                    f"{_VARIABLE}: {text!r} is not a number of bytes. Write 16e9."
                )
        return cls(name, size, limit, beside)

    def require(
        self, nbytes: int, part: str = "", remedy: str = "Use a smaller graph", held: int = 0
    ) -> None:
        """Raise OutOfMemory or LimitExceeded unless reading may take some more bytes."""
        # `part` of the file needs them, and `remedy` is what the user can do, without a full stop.
        # The content of the file takes `held` bytes already, which count for the limit.
        what = f"read: {self.name}, {part}"
        memory.require(nbytes, what, remedy + ".")
        total = nbytes + held
        if total > self.limit:
            advice = f"or set {_VARIABLE}={2 * total:.0e} if you trust the file."
            raise errors.LimitExceeded(
                f"{what}: needs {total / 1e9:,.1f} GB, more than the limit {self.limit / 1e9:,.1f} "
                f"GB for a file of {self.size:,} bytes. {remedy}, {advice}"
            )


NUMBERS_HINT = (
    "Give renumber=True, on the command line --renumber, or number the vertices from 0 without gaps"
)
NAMES_HINT = "If they are names, give renumber=True, on the command line --renumber"


class Options(NamedTuple):
    """The options of `lagpu.io.read` that a reader may heed."""

    header: bool | None = None
    dup_op: BinaryOp | None = None
    renumber: bool = False
    columns: tuple[str, ...] | None = None
    by_rows: bool = False  # whether the backend stores a matrix that is not made symmetric so


class Parsed(NamedTuple):
    """The graph in a file."""

    csc: CSC
    undirected: bool = False  # whether the file says that each edge has two directions
    ids: Array | None = None  # of each vertex, (n,), if the vertices were renumbered


class Extent(NamedTuple):
    """How many edges there are, the largest source and target (-1 without edges), the least end."""

    size: int
    top: tuple[int, int]
    least: int


class Edges(NamedTuple):
    """Edges by the numbers of their ends, (k,), and maybe their weights."""

    u: Array
    v: Array
    weights: Array | None = None

    @classmethod
    def of(
        cls, columns: Sequence[Array] | Array, width: int, places: tuple[int, ...] = ()
    ) -> Edges:
        """Return the edges of the columns of sources, targets, and maybe of weights.

        `Malformed` if there are not `width` columns, or an end is no whole number below 2**53.
        """
        if not len(columns):
            return cls.join([])
        if len(columns) != width:
            raise Malformed
        u, v, *weights = (columns[place] for place in places or (0, 1, 2)[:width])
        ends = u, v
        low, high = min(x.min() for x in ends), max(x.max() for x in ends)
        if not (low >= 0 and high < 2**53):  # FP64 has them all; this refuses NaN too
            raise Malformed
        kind = np.int32 if high < 2**31 - 1 else np.int64
        u, v = (x.astype(kind, copy=False) for x in ends)
        if ends[0].dtype.kind == "f" and any((x != np.rint(x)).any() for x in ends):
            raise Malformed
        both = np.result_type(*columns)  # as of a table, whose columns have one type
        return cls(u, v, *(np.ascontiguousarray(x, both) for x in weights))

    def largest(self) -> int:
        """Return the largest vertex, -1 if there are no edges."""
        return int(max(self.u.max(initial=-1), self.v.max(initial=-1)))

    def extent(self) -> Extent:
        """Return their number and their least and largest ends."""
        top = int(self.u.max(initial=-1)), int(self.v.max(initial=-1))
        least = int(min(self.u.min(), self.v.min())) if len(self.u) else 2**53
        return Extent(len(self.u), top, least)

    def mirrored(self, sign: int) -> Edges:
        """Return these edges, and unless the sign is 0 those across with their weights times it."""
        if not sign:
            return self
        across = np.flatnonzero(self.u != self.v)
        weights = self.weights
        if weights is not None:
            back = weights[across]
            weights = np.concatenate([weights, back if sign > 0 else -back])
        u, v = np.concatenate([self.u, self.v[across]]), np.concatenate([self.v, self.u[across]])
        return Edges(u, v, weights)

    @classmethod
    def join(cls, parts: list[Edges]) -> Edges:
        """Return the edges of all parts."""
        parts = [part for part in parts if len(part.u)]
        if len(parts) < 2:
            nothing = np.empty(0, np.int32)
            return parts[0] if parts else cls(nothing, nothing)
        return cls(*(np.concatenate(of) for of in zip(*parts, strict=True) if of[0] is not None))


def graph_of(
    edges: Edges, budget: Budget, options: Options, *, held: int, n: int = 0,
    ids: Array | None = None, undirected: bool = False, part: str = "",
) -> Parsed:  # fmt: skip
    """Return the graph of some edges, after asking for the memory."""
    # Its ends are at least 0, and are renumbered here unless `ids` are given; `n` is the least
    # number of vertices, `held` the bytes beside the ends that are allocated already and freed
    # before a matrix is made, and `part` what needs the memory, if not the number of vertices.
    u, v, weights = edges
    held += 16 * len(u)
    if options.renumber and ids is None:
        budget.require(48 * len(u), "its vertices", held=held)
        u, v, ids = renumbered(u, v)
    n = len(ids) if ids is not None else max(n, 1 + edges.largest())
    need = bytes_for_entries(len(u), n, values=weights is not None, held=held)
    budget.require(need, part or f"{n} vertices", NUMBERS_HINT, held)
    by_rows = options.by_rows and not undirected
    csc = from_entries(*((v, u) if by_rows else (u, v)), weights, n, n, options.dup_op)
    return Parsed(replace(csc, by_rows=by_rows), undirected, ids)


def from_one(name: str, n: int, *ends: Array) -> list[Array]:
    """Return vertices 1 .. n as 0 .. n-1, or raise for one outside."""
    least = min(int(x.min(initial=1)) for x in ends)
    most = max(int(x.max(initial=0)) for x in ends)
    if least < 1 or most > n:
        bad = most if least >= 1 else least
        raise errors.FileFormatError(f"read: {name}: vertex {bad} is outside 1 .. {n}.")
    return [x - 1 for x in ends]


# ---- Arrays of compressed matrices: checks, whose errors `errors_named` turns into those of lagpu.


def require_rising(what: str, pointers: Array, size: int, nvals: int) -> None:
    """Raise `ValueError` unless pointers say where each of `size` lists of entries begins."""
    # The message begins with the `what`, such as "offsets do".
    if pointers.shape != (size + 1,):
        raise ValueError(f"{what} not have the shape ({size + 1},) but {pointers.shape}")
    if pointers[0] != 0 or pointers[-1] != nvals or (pointers[1:] < pointers[:-1]).any():
        raise ValueError(f"{what} not rise from 0 to {nvals}")


def require_inside(what: str, indices: Array, size: int) -> None:
    """Raise `ValueError` unless all indices are in ``0 .. size - 1``."""
    if indices.size and not 0 <= indices.min() <= indices.max() < size:
        raise ValueError(f"{what} outside 0 .. {size - 1}")


@contextlib.contextmanager
def errors_named(what: str) -> Iterator[None]:
    """Turn an error of reading an archive into `FileFormatError`, ``what: cause``."""
    # The libraries that read archives, trees and tables raise some fifteen types of error for
    # damaged files, and none for anything else.
    try:
        yield
    except (errors.LagpuError, MemoryError):
        raise
    except Exception as error:
        fact = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
        if isinstance(error, RecursionError):
            fact = "it is nested too deeply"
        raise errors.FileFormatError(f"{what}: {fact}.") from error


# ---- Vertices that have names, or numbers with gaps, are numbered from 0. The ids ascend, numbers
# by value and text by its characters; ids without an order are in the order of first sight.


# Measured, docs/design/memory.md: a name of some characters in the tables, while it is ordered too.
BYTES_OF_NAME = 250
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")


def renumbered(u: Array, v: Array) -> tuple[Array, Array, Array]:
    """Return the ends of edges, given by ids, as numbers from 0, and the id of each, ascending."""
    ids = distinct(np.concatenate([u, v]))
    if ids.dtype.kind in "iu" and ids.dtype.itemsize < 8:
        ids = ids.astype(np.int64)
    return _narrow(np.searchsorted(ids, u), ids), _narrow(np.searchsorted(ids, v), ids), ids


def _narrow(numbers: Array, ids: Array) -> Array:
    return numbers.astype(np.int32 if len(ids) < 2**31 else np.int64, copy=False)


class Names(defaultdict[Hashable, int]):
    """Numbers for names, which come part by part."""

    def __init__(self) -> None:
        super().__init__(self.__len__)

    def codes(self, names: Iterable[Hashable], count: int) -> Array:
        """Return the number of each name, (count,), in the order of first sight so far."""
        return np.fromiter(map(self.__getitem__, names), np.int64, count)

    def codes_of(self, budget: Budget, *columns: Any, held: int = 0) -> Array:
        """Return the number of each name in chunked arrays of pyarrow, which have one type."""
        chunks = [chunk for column in columns for chunk in column.chunks]
        if not str(columns[0].type).startswith("dictionary"):
            chunks = importlib.import_module("pyarrow").chunked_array(chunks, columns[0].type)
            chunks = chunks.dictionary_encode().chunks
        known, codes, parts = None, self.codes((), 0), [np.empty(0, np.int64)]
        for chunk in chunks:
            if known is None or not chunk.dictionary.equals(known):
                known, have = chunk.dictionary, held + len(self) * BYTES_OF_NAME
                budget.require(len(known) * BYTES_OF_NAME, "its names", held=have)
                codes = self.codes(known.to_pylist(), len(known))
            parts.append(codes[array_of(chunk.indices)])
        return np.concatenate(parts)

    def ordered(self, edges: Edges, *, utf8: bool = False) -> tuple[Edges, Array]:
        """Return edges whose ends are final numbers, and the id of each number."""
        # The ids are INT64 or UINT64 if all names are whole numbers, also in text, FP64 if all are
        # numbers, else objects. With `utf8` the names are bytes, and the ids texts. The names are
        # forgotten, to take less memory.
        names: list[Any] = list(self)
        self.clear()
        if utf8:
            names = [name.decode() for name in names]
        numbers = whole_numbers(names)
        if numbers is None:
            ids = np.fromiter(names, object, len(names))
            try:
                order = sorted(range(len(names)), key=names.__getitem__)
            except TypeError:
                return edges, ids
            rank = np.empty(len(ids), np.int64)
            rank[order] = np.arange(len(ids))
            ids = ids[order]
        else:  # names that are written differently may be the same number
            ids = distinct(numbers)
            rank = np.searchsorted(ids, numbers)
        u, v = (_narrow(rank[ends], ids) for ends in edges[:2])
        return Edges(u, v, edges.weights), ids


def whole_numbers(names: list[Any]) -> Array | None:
    """Return names as numbers if all are whole and fit 64 bits (or all are floats), else None."""
    kinds = set(map(type, names))
    if all(issubclass(kind, str) for kind in kinds):
        if not all(map(_WHOLE.fullmatch, names)):
            return None
        names = [int(name) for name in names]
    elif any(issubclass(kind, bool | np.bool_) for kind in kinds):
        return None
    elif all(issubclass(kind, float | np.floating) for kind in kinds):
        return np.array(names, np.float64)
    elif not all(issubclass(kind, int | np.integer) for kind in kinds):
        return None
    least, most = min(names, default=0), max(names, default=0)
    if least >= -(2**63) and most < 2**63:
        return np.array(names, np.int64)
    return np.array(names, np.uint64) if least >= 0 and most < 2**64 else None


# ---- Libraries that some formats need, by the extra of lagpu that installs them.


_MODULES = {"nx": "networkx", "parquet": "pyarrow.parquet", "hdf5": "h5py", "igraph": "igraph"}


def needed(extra: str, what: str) -> Any:
    """Return the module of an extra; `what` begins the message of `BackendUnavailable`."""
    module = _MODULES[extra]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise errors.BackendUnavailable(
            f"{what} needs {package}, which is missing. "
            f'Install it with: pip install "lagpu[{extra}]"'
        ) from error
