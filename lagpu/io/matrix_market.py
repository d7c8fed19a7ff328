"""Matrix Market coordinate files: checks around SciPy's parser.

Source: Boisvert, Pozo, Remington 1996, The Matrix Market exchange formats (NISTIR 5935).
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.io
import scipy.sparse as sp

from lagpu.errors import FileFormatError, NotSupported
from lagpu.io import reading
from lagpu.io.csc import CSC, bytes_for_entries, from_entries
from lagpu.io.reading import Budget, Edges, Fault, Malformed, Options, Parsed, line_number, show

BANNER = b"%%MatrixMarket"
_REAL = (
    rb"[+-]?(?:(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
    rb"|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN])"
)
_PLAIN = ("general", "symmetric")
_SIGNED = (*_PLAIN, "hermitian", "skew-symmetric")
# By the field: the value of an entry, its type, and the symmetries.
_FIELDS: dict[str, tuple[bytes, Any, tuple[str, ...]]] = {
    "pattern": (b"", None, _PLAIN),
    "integer": (rb"[ \t]++-?[0-9]++", np.int64, _SIGNED),
    "unsigned-integer": (rb"[ \t]++[0-9]++", np.uint64, (*_PLAIN, "hermitian")),
    "real": (rb"[ \t]++" + _REAL, np.float64, _SIGNED),
}
_MATRIX = [BANNER.decode().lower(), "matrix"]
# The size line, after comments and blank lines.
_SIZES = re.compile(rb"(?:[ \t]*+(?:%[^\n]*+|\r?)\n)*+([^\n]*+)")


class Sizes(NamedTuple):
    """What the banner and the size line say, and where the entries begin."""

    nrows: int
    ncols: int
    nvals: int
    field: str
    symmetry: str
    start: int

    @property
    def mirror(self) -> int:
        """1 if each entry is there across the diagonal too, -1 with the other sign, else 0."""
        return {"general": 0, "skew-symmetric": -1}.get(self.symmetry, 1)

    @property
    def kind(self) -> np.dtype[Any] | None:
        """The type of the values, or None for a pattern."""
        kind = _FIELDS[self.field][1]
        return None if kind is None else np.dtype(kind)


def parse(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the matrix of a coordinate file."""
    # BOOL for the field ``pattern``, INT64 for ``integer``, FP64 for ``real``. Symmetric and
    # skew-symmetric files are expanded.
    name, sizes = budget.name, sizes_of(data, budget.name)
    nrows, ncols, kind = sizes.nrows, sizes.ncols, sizes.kind
    room = (len(data) - sizes.start) // (2 * _width(sizes.field))  # a number and a separator
    stored = min(sizes.nvals, room) * (2 if sizes.mirror else 1)
    triplets = 40 * stored  # as the parser returns them, joined and expanded
    beside = len(data) + triplets
    need = triplets + bytes_for_entries(stored, ncols, values=kind is not None, held=beside)
    budget.require(need, f"{nrows} x {ncols}", held=len(data))
    parts = _of_large(data, sizes, name) or reading.parsed(
        data, sizes.start, lambda text: edges_of(text, sizes), name
    )
    edges = Edges.join(parts)
    require_count(sizes, len(edges.u), name)
    u, v, values = edges.mirrored(sizes.mirror)
    if values is None and kind is not None:
        values = np.empty(0, kind)
    both, by_rows = sizes.mirror == 1, options.by_rows and sizes.mirror != 1 and nrows == ncols
    u, v = (v, u) if by_rows else (u, v)
    csc = from_entries(u, v, values, nrows, ncols, options.dup_op, symmetric=both)
    return Parsed(replace(csc, by_rows=by_rows))


def _of_large(data: bytes, sizes: Sizes, name: str) -> list[Edges]:
    """Return the entries of a large file by pyarrow, or nothing where others must read it."""
    kind, width = {"real": "f", "integer": "i", "pattern": ""}.get(sizes.field), _width(sizes.field)
    if kind is None:
        return []
    try:
        parts = reading.shares(data, sizes.start, name, " ", "int32")
        u, v, values = edges = Edges.join([Edges.of(columns, width) for columns in parts])
    except Malformed:
        return []
    _, (rows, cols), least = edges.extent()
    inside = least > 0 and rows <= sizes.nrows and cols <= sizes.ncols
    fits = inside and ("" if values is None else values.dtype.kind) == kind
    return [Edges(u - 1, v - 1, values)] if fits else []


def sizes_of(data: bytes, name: str) -> Sizes:
    """Return the facts in the first lines of a file."""
    end = data.find(b"\n")
    banner = data[:end]
    words = banner.decode("utf-8", "replace").lower().split()
    if words[1:2] == ["vector"]:
        raise NotSupported(f"read: {name}, line 1: {show(banner)} is a vector. Give a matrix.")
    if len(words) != 5 or words[:2] != _MATRIX or words[2] not in ("coordinate", "array"):
        raise FileFormatError(
            f"read: {name}, line 1: {show(banner)} is not a banner of five words, as "
            "%%MatrixMarket matrix coordinate real general."
        )
    layout, field, symmetry = words[2:]
    if layout == "array":
        raise NotSupported(f"read: {name} is a dense matrix (array). Give a coordinate file.")
    if field == "complex":
        raise NotSupported(f"read: {name} has complex values. Give a real or pattern matrix.")
    if field not in _FIELDS or symmetry not in _FIELDS[field][2]:
        raise FileFormatError(
            f"read: {name}, line 1: a {symmetry[:20]} matrix cannot have the field {field[:20]}."
        )
    top = _SIZES.match(data, end + 1)
    assert top is not None  # any line is one
    sizes = [int(word) for word in top[1].split() if re.fullmatch(rb"[0-9]{1,18}", word)]
    if len(sizes) != 3 or len(top[1].split()) != 3:
        at = line_number(data, top.start(1))
        raise FileFormatError(
            f"read: {name}, line {at}: {show(top[1].strip())} is not `rows columns entries`, the "
            "sizes of a matrix."
        )
    nrows, ncols, nvals = sizes
    if symmetry != "general" and nrows != ncols:
        raise FileFormatError(
            f"read: {name}: the header says {symmetry}, but nrows {nrows} != ncols {ncols}."
        )
    return Sizes(nrows, ncols, nvals, field, symmetry, min(top.end() + 1, len(data)))


def _width(field: str) -> int:
    return 2 if field == "pattern" else 3


def _rows_end(text: bytes, start: int, field: str) -> int:
    """Return where the first line begins that cannot be an entry of a field, or the end."""
    row = rb"-?[0-9]++[ \t]++-?[0-9]++" + _FIELDS[field][0]
    rows = re.compile(rb"(?:[ \t]*+(?:" + row + rb")?[ \t\r]*+\n)*+").match(text, start)
    assert rows is not None  # no line is one, too
    return rows.end()


_BLANK = re.compile(rb"(?:\A|\n)[ \t\r]*+(?=\n)")
_LINE = re.compile(r"Line ([0-9]+): ")


def edges_of(text: bytes, sizes: Sizes, *, quick: bool = True) -> Edges:
    """Return the entries of whole lines as they are, or raise `Fault` for a line that is none."""
    # SciPy's parser gets only lines that are entries: it reads ``3abc`` as 3, and reads beyond its
    # memory to find the end of a last line that is cut.
    field = sizes.field
    text = reading.fortran(text) if field == "real" else text
    width, count, whole = reading.regular(text, b" ")
    usual = quick and width == _width(field) and (whole or field == "real")
    if not usual or (field == "unsigned-integer" and b"-" in text):
        _require_rows(text, field)
        count = text.count(b"\n") - len(_BLANK.findall(text))
    if not count:
        return Edges.join([])
    head = f"{BANNER.decode()} matrix coordinate {field} general\n"
    head += f"{sizes.nrows} {sizes.ncols} {count}\n"
    try:
        entries: Any = scipy.io.mmread(io.BytesIO(head.encode() + text), spmatrix=False)
    except (ValueError, OverflowError) as error:
        if usual:  # a line of blanks may count as one of numbers
            return edges_of(text, sizes, quick=False)
        found = _LINE.match(str(error))
        line = int(found[1]) - 2 if found else 1  # without the head
        shown = text.split(b"\n", line)[line - 1].strip()
        i, j = map(reading.number, shown.split()[:2])
        why = "has a value that is not of 64 bits"
        if not (1 <= i <= sizes.nrows and 1 <= j <= sizes.ncols):
            shape = f"{sizes.nrows} x {sizes.ncols}"
            why = f"is outside {shape}, the shape in the header; indices count from 1"
        raise Fault(line, f"{show(shown)} {why}") from error
    return Edges(entries.row, entries.col, None if field == "pattern" else entries.data)


def _require_rows(text: bytes, field: str) -> None:
    """Raise `Fault` for the first line that cannot be an entry of a field."""
    at = _rows_end(text, 0, field)
    if at < len(text):
        line = show(text[at : text.find(b"\n", at)])
        why = f"{line} is not {_width(field)} numbers, which the field {field} needs"
        if field == "integer" and _rows_end(text, at, "real") > at:
            why = "a real number in a file of the field integer"
        raise Fault(line_number(text, at), why)


def require_count(sizes: Sizes, count: int, name: str) -> None:
    """Raise `FileFormatError` unless a file has as many entries as its size line says."""
    if count != sizes.nvals:
        raise FileFormatError(
            f"read: {name}: the header says {sizes.nvals} entries, the file has {count}. "
            "It is truncated, or its header is wrong."
        )


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write a coordinate file: ``pattern`` if all entries are True; other BOOL as 0 and 1."""
    values = csc.dense_values()
    pattern = csc.dtype.is_bool and bool(values.all())
    if pattern and not csc.nvals:  # SciPy would write the field real
        size = f"{csc.nrows} {csc.ncols} 0\n"
        file.write(BANNER + b" matrix coordinate pattern general\n" + size.encode())
        return
    if csc.dtype.is_bool:
        values = values.astype(np.int8)
    elif csc.dtype.is_float:  # as FP64, in which it is read: the digits of FP32 are another number
        values = values.astype(np.float64, copy=False)
    entries = sp.coo_array((values, (csc.row_idx, csc.columns())), shape=(csc.nrows, csc.ncols))
    # Symmetry is not tested: a general file reads back the same. SciPy would seek in a file that
    # has the method, and one that is packed cannot.
    out: Any = SimpleNamespace(write=file.write)
    scipy.io.mmwrite(out, entries, field="pattern" if pattern else None, symmetry="general")
