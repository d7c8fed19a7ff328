"""All formats of graph files: by what each is known, and who reads and writes it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

from lagpu.errors import InvalidValue
from lagpu.io import binsparse, delimited, edge_list, markup, matrix_market, npz, parquet, suites
from lagpu.io.csc import CSC, asymmetry
from lagpu.io.reading import Budget, Options, Parsed

Read = Callable[[Any, Budget, Options], Parsed]
Dump = Callable[[CSC, IO[bytes]], None]


class Format(NamedTuple):
    """A format of graph files.

    Attributes
    ----------
    name : str
        Its name.
    suffixes : tuple of str
        Suffixes of its files; `write` chooses by them, `read` only where `known` is None.
    read : callable
        Returns the graph of (content, budget, options): the whole text, or an open file of a
        format that has `magic`.
    dump : callable
        Writes (matrix, open file).
    known : callable, optional
        Whether the whole content is of this format.
    magic : tuple of bytes
        First bytes of a file that is not read as a whole; it is not packed by gzip.
    heeds : frozenset of str
        Options of `read` that count beside `directed`: ``header columns renumber dup_op``.
    holds : frozenset of str
        What a file can hold: ``rectangular`` matrices, ``last`` vertices without an edge,
        ``directed`` graphs, ``values``.
    extra : str
        Extra of lagpu that it needs.
    binary : bool
        Whether files are no text.
    guessed : bool
        Whether files are known by what they are not.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Read
    dump: Dump
    known: Callable[[bytes], bool] | None = None
    magic: tuple[bytes, ...] = ()
    heeds: frozenset[str] = frozenset()
    holds: frozenset[str] = frozenset()
    extra: str = ""
    binary: bool = False
    guessed: bool = False

    def require_fit(self, csc: CSC, name: str) -> None:
        """Raise if a file of this format would lose something of a matrix.

        Raises
        ------
        InvalidValue
            For a matrix that is not square, a last vertex without edges, a directed graph or
            values where a file has no place for them.
        """
        lost = ""
        if csc.nrows != csc.ncols and "rectangular" not in self.holds:
            lost = f"a matrix of {csc.nrows} x {csc.ncols}, which is not square"
        elif "last" not in self.holds and csc.nrows > 1 + _last(csc):
            lost = f"vertex {csc.nrows - 1}, the last one, which has no edge"
        elif "values" not in self.holds and not csc.is_pattern:
            lost = f"values of type {csc.dtype}"
        elif "directed" not in self.holds and (pair := asymmetry(csc)) is not None:
            lost = f"directed edges, such as {pair[0]} -> {pair[1]}"
        if lost:
            raise InvalidValue(
                f"write: {name}: {self.name} has no place for {lost}. Use .mtx or .npz."
            )


def _last(csc: CSC) -> int:
    """Return the last vertex with an edge, or -1."""
    columns = csc.col_ptr.searchsorted(csc.nvals)  # of entries, the last one ends there
    return max(int(csc.row_idx.max(initial=-1)), int(columns) - 1)


_with = functools.partial
_LIST = frozenset({"header", "renumber", "dup_op"})
_TABLE = _LIST | {"columns"}
_ALL = frozenset({"rectangular", "last", "directed", "values"})
_SQUARE = _ALL - {"rectangular"}
_ENTRIES = frozenset({"directed", "values"})

FORMATS: tuple[Format, ...] = (
    Format(
        "Matrix Market", (".mtx",), matrix_market.parse, matrix_market.dump,
        lambda data: data.startswith(matrix_market.BANNER), (), frozenset({"dup_op"}), _ALL,
    ),
    Format(
        "NumPy archive", (".npz",), npz.parse, npz.dump,
        None, (b"PK\x03\x04", b"PK\x05\x06"), frozenset(), _ALL,  # with members, without members
    ),
    Format(
        "GraphML", (".graphml",), markup.parse_graphml, markup.dump_graphml,
        markup.is_graphml, (), frozenset({"renumber", "dup_op"}), _SQUARE, "nx",
    ),
    Format(
        "GML", (".gml",), markup.parse_gml, markup.dump_gml,
        markup.is_gml, (), frozenset({"renumber", "dup_op"}), _SQUARE, "nx",
    ),
    Format(
        "DIMACS arcs", (".gr",), suites.parse_dimacs, suites.dump_arcs,
        suites.is_dimacs, (), frozenset({"dup_op"}), _SQUARE,
    ),
    Format(
        "DIMACS edges", (".col",), suites.parse_dimacs, suites.dump_edges,
        suites.is_dimacs, (), frozenset({"dup_op"}), frozenset({"last"}),
    ),
    Format(
        "METIS", (".graph", ".metis"), suites.parse_metis, suites.dump_metis,
        None, (), frozenset({"dup_op"}), frozenset({"last", "values"}),
    ),
    Format(
        "GAP serialized", (".sg",), suites.parse_gap, suites.dump_gap,
        suites.is_serialized, (), frozenset(), _SQUARE - {"values"}, "", True,
    ),
    Format(
        "GAP serialized with weights", (".wsg",), suites.parse_gap, suites.dump_gap_weights,
        suites.is_serialized, (), frozenset(), _SQUARE, "", True,
    ),
    Format(
        "Parquet", (".parquet",), parquet.parse, parquet.dump,
        None, (parquet.MAGIC,), _TABLE - {"header"}, _SQUARE, "parquet",
    ),
    Format(
        "Binsparse in HDF5", (".h5", ".hdf5"), binsparse.parse, binsparse.dump,
        None, (binsparse.MAGIC,), frozenset({"dup_op"}), _ALL, "hdf5",
    ),
    Format(
        "CSV", (".csv",), delimited.parse, _with(edge_list.dump_delimited, separator=","),
        delimited.is_table, (), _TABLE, _ENTRIES, "", False, True,
    ),
    Format(
        "TSV", (".tsv",), delimited.parse, _with(edge_list.dump_delimited, separator="\t"),
        None, (), _TABLE, _ENTRIES, "", False, True,
    ),
    Format(
        "GAP edge list", (".el",), edge_list.parse, edge_list.dump_plain,
        None, (), _LIST, frozenset({"directed"}), "", False, True,
    ),
    Format(
        "GAP edge list with weights", (".wel",), edge_list.parse,
        _with(edge_list.dump_plain, weights=True), None, (), _LIST, _ENTRIES, "", False, True,
    ),
    # Last, since any other text is one.
    Format(
        "edge list", (".txt",), edge_list.parse, edge_list.dump,
        lambda data: True, (), _LIST, _ALL, "", False, True,
    ),
)  # fmt: skip


def by_suffix(file: Path) -> Format | None:
    """Return the format of a suffix, which ``.gz`` may follow where files are packed."""
    packed = file.suffix == ".gz"
    suffix = (file.with_suffix("") if packed else file).suffix.lower()
    found = next((f for f in FORMATS if suffix in f.suffixes), None)
    return None if found is not None and packed and found.magic else found


def of_start(start: bytes) -> Format | None:
    """Return the format whose files begin so, if its reader takes an open file."""
    return next((f for f in FORMATS if f.magic and start.startswith(f.magic)), None)


def of_text(data: bytes, file: Path) -> Format:
    """Return the format of a content, by itself and else by the suffix of its name."""
    named = by_suffix(file)
    for form in FORMATS:
        if form.known is None:
            if form is named and not form.magic:
                return form
        elif form.known(data):
            return named if named is not None and named.known == form.known else form
    raise InvalidValue(f"read: {file.name} has no format.")  # pragma: no cover (any is a list)


def suffixes() -> str:
    """Return all suffixes, for messages and help."""
    return ", ".join(suffix for form in FORMATS for suffix in form.suffixes)


def names() -> str:
    """Return the names of all formats, for messages and help."""
    return ", ".join(form.name for form in FORMATS)


def asked_for(text: str) -> Format:
    """Return the format that a user names by a suffix, such as ``.graph``."""
    found = by_suffix(Path("graph" + text)) if re.fullmatch(r"\.\w+", text) else None
    if found is None:
        raise InvalidValue(f"read: format={text!r} is none of {suffixes()}.")
    return found
