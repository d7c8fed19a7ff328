"""All formats of graph files: how each is recognised, read and written."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu.dtypes import UINT64
from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io import binsparse, edge_list, matrix_market, networkx_graphs, npz, parquet, suites
from lagpu.io.csc import CSC, asymmetry
from lagpu.io.reading import Budget, Options, Parsed, is_binary

# Reads a whole text, or an open file, and raises the errors of `lagpu.io.read` for one that is
# damaged, contradicts itself, has what lagpu lacks, or does not fit.
Read = Callable[[Any, Budget, Options], Parsed]
Dump = Callable[[CSC, IO[bytes]], None]


class Format(NamedTuple):
    """A format of graph files; `write` chooses by the suffix, `read` only where `known` is None."""

    name: str
    suffixes: tuple[str, ...]
    read: Read  # of the whole text, or of an open file where there is `magic`
    dump: Dump
    known: Callable[[bytes], object] | None = None  # whether a whole content is of this format
    magic: tuple[bytes, ...] = ()  # first bytes of a file that is not read whole
    heeds: frozenset[str] = frozenset()  # options beside `directed`: header columns renumber dup_op
    # Of _TYPED; `last` is last vertices without an edge, `unsigned` numbers of 2**63 and more,
    # `infinite` also NaN.
    holds: frozenset[str] = frozenset()
    extra: str = ""  # of lagpu, which it needs
    binary: bool = False  # whether files are not text
    guessed: bool = False  # whether any other text might be taken for this format

    def require_fit(self, csc: CSC, name: str) -> None:
        """Raise `InvalidValue` if a file of this format has no place for something of a matrix."""
        lost = ""
        columns = int(csc.col_ptr.searchsorted(csc.nvals))  # of entries, the last one ends there
        last = max(int(csc.row_idx.max(initial=-1)), columns - 1)
        if csc.nrows != csc.ncols and "rectangular" not in self.holds:
            lost = f"a matrix of {csc.nrows} x {csc.ncols}, which is not square"
        elif "last" not in self.holds and csc.nrows > 1 + last:
            lost = f"vertex {csc.nrows - 1}, the last one, which has no edge"
        elif "values" not in self.holds and not csc.is_pattern:
            lost = f"values of type {csc.dtype}"
        elif "unsigned" not in self.holds and csc.dtype is UINT64 and np.any(csc.values >= 2**63):
            lost = "numbers of 2**63 and more"
        elif "infinite" not in self.holds and not np.isfinite(csc.values).all():
            lost = "infinite numbers and NaN"
        elif "directed" not in self.holds and (pair := asymmetry(csc)) is not None:
            lost = f"directed edges, such as {pair[0]} -> {pair[1]}"
        if lost:
            raise InvalidValue(
                f"write: {name}: {self.name} has no place for {lost}. Use .mtx or .npz."
            )


class Packing(NamedTuple):
    """A way to pack a file: its first bytes, and what wraps a file to read or to write it."""

    magic: bytes
    reader: Callable[[IO[bytes]], Any]
    writer: Callable[[IO[bytes]], Any]


# By suffix. mtime=0, so that the same matrix gives the same bytes.
PACKINGS = {
    ".gz": Packing(
        b"\x1f\x8b",
        lambda file: gzip.GzipFile(fileobj=file),
        lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0),
    ),
    ".bz2": Packing(b"BZh", bz2.BZ2File, lambda file: bz2.BZ2File(file, "wb")),
    ".xz": Packing(b"\xfd7zXZ\x00", lzma.LZMAFile, functools.partial(lzma.LZMAFile, mode="wb")),
}

_with = functools.partial
_START = 1 << 16  # bytes that show that a text is XML or GML


def _list(head: str = "", **how: Any) -> Dump:
    return functools.partial(edge_list.dump, head=head, **how)


_DUP = frozenset({"dup_op"})
_IDS = _DUP | {"renumber"}
_LIST = _IDS | {"header"}
_ALL = frozenset({"rectangular", "last", "directed", "values", "infinite"})
_TYPED = _ALL | {"unsigned"}
_SQUARE = _ALL - {"rectangular"}
_ENTRIES = frozenset({"directed", "values", "infinite"})

FORMATS: tuple[Format, ...] = (
    Format("Matrix Market", (".mtx",), matrix_market.parse, matrix_market.dump,
           lambda data: data.startswith(matrix_market.BANNER), heeds=_DUP, holds=_TYPED),
    Format("NumPy archive", (".npz",), npz.parse, npz.dump,
           magic=(b"PK\x03\x04", b"PK\x05\x06"), holds=_TYPED),  # with members, without members
    *(Format(kind, (f".{kind.lower()}",), _with(networkx_graphs.parse, kind=kind),
             _with(networkx_graphs.dump, kind=kind),
             lambda data, known=known: known.match(data, 0, _START),  # type: ignore[misc]
             heeds=_IDS, holds=_SQUARE, extra="nx")
      for kind, known in (("GraphML", networkx_graphs.GRAPHML), ("GML", networkx_graphs.GML))),
    Format("DIMACS arcs", (".gr",), suites.parse_dimacs,
           _list("p sp {n} {m}\n", prefix="a ", first=1, weights=True), suites.PROBLEM.match,
           heeds=_DUP, holds=_SQUARE - {"infinite"}),
    Format("DIMACS edges", (".col",), suites.parse_dimacs,
           _list("p edge {n} {m}\n", prefix="e ", first=1, weights=False, once=True),
           suites.PROBLEM.match,
           heeds=_DUP, holds=frozenset({"last"})),
    Format("METIS", (".graph", ".metis"), suites.parse_metis, suites.dump_metis,
           heeds=_DUP, holds=frozenset({"last", "values"})),
    Format("GAP serialized", (".sg",), suites.parse_gap, suites.dump_gap, suites.bytes_of_item,
           holds=_SQUARE - {"values"}, binary=True),
    Format("GAP serialized with weights", (".wsg",), suites.parse_gap,
           _with(suites.dump_gap, weights=True), suites.bytes_of_item, holds=_SQUARE, binary=True),
    Format("Parquet", (".parquet",), parquet.parse, parquet.dump, magic=(parquet.MAGIC,),
           heeds=_IDS | {"columns"}, holds=_SQUARE | {"unsigned"}, extra="parquet"),
    Format("Binsparse in HDF5", (".h5", ".hdf5"), binsparse.parse, binsparse.dump,
           magic=(binsparse.MAGIC,), heeds=_DUP, holds=_TYPED, extra="hdf5"),
    Format("KONECT", (".konect",), edge_list.parse_konect,
           _list("% asym {kind}\n% {m} {n} {n}\n", first=1), edge_list.KONECT.match,
           heeds=_DUP | {"columns"}, holds=_SQUARE),
    Format("LDBC Graphalytics", (".e",), edge_list.parse_ldbc, _list(),
           heeds=_IDS, holds=_ENTRIES, guessed=True),
    Format("CSV", (".csv",), edge_list.parse_table, _list("{names}\n", separator=","),
           edge_list.is_table, heeds=_LIST | {"columns"}, holds=_ENTRIES, guessed=True),
    Format("TSV", (".tsv",), edge_list.parse_table, _list("{names}\n", separator="\t"),
           heeds=_LIST | {"columns"}, holds=_ENTRIES, guessed=True),
    Format("GAP edge list", (".el",), edge_list.parse, _list(weights=False),
           heeds=_LIST, holds=frozenset({"directed"}), guessed=True),
    Format("GAP edge list with weights", (".wel",), edge_list.parse, _list(weights=True),
           heeds=_LIST, holds=_ENTRIES, guessed=True),
    # Last, since any other text is one.
    Format("edge list", (".txt",), edge_list.parse,
           _list("# Nodes: {n} Edges: {m}\n# FromNodeId\tToNodeId\n", separator="\t"),
           lambda data: True,
           heeds=_LIST, holds=_SQUARE, guessed=True),
)  # fmt: skip


# ---- What no format is, by its first bytes or the beginning of its text, each with the remedy.


_PICTURE = "a picture. Give the graph that it shows"
_PACKED = "Unpack it first; gzip, bzip2, xz, .zip and tar are read as they are"
# First bytes, and what they are the beginning of.
_BYTES: tuple[tuple[bytes | tuple[bytes, ...], str], ...] = (
    (b"%PDF-", "a PDF document. Give the data that it shows"),
    (b"\x89PNG", _PICTURE),
    (b"\xff\xd8\xff", _PICTURE),
    (b"GIF8", _PICTURE),
    (b"\x28\xb5\x2f\xfd", f"packed by zstd. {_PACKED}"),
    (b"7z\xbc\xaf\x27\x1c", f"packed by 7-Zip. {_PACKED}"),
    (b"\x93NUMPY", "one NumPy array (.npy). Use lagpu.io.from_edgelist(numpy.load(path))"),
    (b"SQLite format 3\x00", "an SQLite database. Export its table as CSV"),
    (b"ARROW1", "an Arrow (Feather) table. Write it as Parquet, or use from_pandas_edgelist"),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file. Use scipy.io.loadmat and lagpu.io.from_scipy"),
    (
        (b"\x80\x04\x95", b"\x80\x05\x95"),
        "a Python pickle, which is not read. Use lagpu.io.from_scipy or the like",
    ),
    ((b"\xff\xfe", b"\xfe\xff"), "text in UTF-16. Convert the file to UTF-8"),
)
_NX = "Read it by NetworkX and use lagpu.io.from_networkx"
_TEXTS: tuple[tuple[re.Pattern[bytes], str], ...] = tuple(
    (re.compile(rb"\s*+(?:" + pattern + rb")", re.IGNORECASE | re.DOTALL), what)
    for pattern, what in (
        (rb"(?:<\?xml[^>]*>|<!--.*?-->|\s)*+<gexf\b", f"GEXF. {_NX}"),
        (rb"<!doctype html|<html\b", "a web page. Download the file that it offers"),
        (rb"<", "XML, but no GraphML"),
        (rb"(?:strict\s+)?(?:di)?graph\b[^\[\n]*\{", f"a DOT file of Graphviz. {_NX}"),
        (rb"\*(?:vertices|network)\b", f"a Pajek file. {_NX}"),
        (rb"[\[{]\s*[\"\[{}\]]", "JSON. Use lagpu.io.from_edgelist with what json.load returns"),
    )
)


def by_suffix(file: Path) -> Format | None:
    """Return the format of a suffix, which that of a packing may follow where files are packed."""
    packed = file.suffix in PACKINGS
    suffix = (file.with_suffix("") if packed else file).suffix.lower()
    return next((f for f in FORMATS if suffix in f.suffixes and not (packed and f.magic)), None)


def of_start(start: bytes, name: str) -> Format | None:
    """Return the format whose files begin so, if its reader takes an open file."""
    form = next((f for f in FORMATS if f.magic and start.startswith(f.magic)), None)
    kind = next((what for mark, what in _BYTES if start.startswith(mark)), "")
    if form is None and kind:
        raise FileFormatError(f"read: {name} is {kind}.")
    return form


def of_content(data: bytes, file: Path, asked: Format | None, name: str) -> Format:
    """Return the format of a content, or of its beginning: the one that is asked for, if any."""
    form = asked or _of_text(data, file)
    if form.magic:
        raise FileFormatError(f"read: {name} is no {form.name}.")
    if not form.binary and is_binary(data[: 1 << 16]):
        names = ", ".join(form.name for form in FORMATS)
        raise FileFormatError(f"read: {name} is binary. Give one of {names} (text also packed).")
    if form.guessed and asked is None:
        start = data[: 1 << 14]
        if kind := next((what for pattern, what in _TEXTS if pattern.match(start)), ""):
            raise FileFormatError(f"read: {name} is {kind}.")
    return form


def _of_text(data: bytes, file: Path) -> Format:
    """Return the format of a content, by itself and else by the suffix of its name."""
    named = by_suffix(file)
    fits = (x for x in FORMATS if (x.known(data) if x.known else x is named and not x.magic))
    form = next(fits)  # at last a list, which any text is
    return named if named is not None and named.known == form.known else form


def suffixes() -> list[str]:
    """Return all suffixes, for messages and help."""
    return [suffix for form in FORMATS for suffix in form.suffixes]


def asked_for(text: str) -> Format:
    """Return the format that a user names by a suffix, such as ``.graph``."""
    found = by_suffix(Path("graph" + text)) if re.fullmatch(r"\.\w+", text) else None
    if found is None:
        raise InvalidValue(f"read: format={text!r} is none of {', '.join(suffixes())}.")
    return found
