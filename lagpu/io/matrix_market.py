"""Matrix Market coordinate files: checks around SciPy's parser.

Source: Boisvert, Pozo, Remington 1996, The Matrix Market exchange formats (NISTIR 5935).
"""

from __future__ import annotations

import functools
import io
import itertools
import re
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.io
import scipy.sparse as sp

from lagpu.algebra.operators import BinaryOp
from lagpu.errors import FileFormatError, NotSupported
from lagpu.io.csc import CSC, bytes_for_entries, from_entries
from lagpu.io.reading import Budget, Edges
from lagpu.io.text import Fault, fortran, line_number, number, show

BANNER = b"%%MatrixMarket"
_REAL = (
    rb"[+-]?(?:(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
    rb"|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN])"
)
# The value of an entry, by the field.
_VALUES = {
    "pattern": b"",
    "integer": rb"[ \t]++-?[0-9]++",
    "unsigned-integer": rb"[ \t]++[0-9]++",
    "real": rb"[ \t]++" + _REAL,
}


_KIND = [BANNER.decode().lower(), "matrix", "coordinate"]
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
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


def parse(data: bytes, budget: Budget, dup_op: BinaryOp | None = None) -> CSC:
    """Return the matrix of a coordinate file.

    Parameters
    ----------
    data : bytes
        Content of the file, from its banner on; its last line has an end.
    budget : Budget
        Name of the file in messages, and the memory that it may take.
    dup_op : BinaryOp, optional
        Combines duplicates instead of summing them.

    Returns
    -------
    CSC
        BOOL for the field ``pattern``, INT64 for ``integer``, FP64 for ``real``. Symmetric and
        skew-symmetric files are expanded; duplicates are summed (merged for ``pattern``).

    Raises
    ------
    FileFormatError
        If the file is malformed or truncated, has more or fewer entries than its header says, or
        an index outside its shape.
    NotSupported
        If it is dense (``array``) or complex.
    OutOfMemory, LimitExceeded
        If a matrix of the size in the header does not fit.
    """
    sizes = _header(data, budget.name)
    nrows, ncols, nvals, field, symmetry, start = sizes
    if field == "real" and (data.find(b"D", start) >= 0 or data.find(b"d", start) >= 0):
        budget.require(len(data), "its lines", held=len(data))
        data = data[:start] + fortran(data[start:])
    _check_body(data, start, budget.name, nvals, field)
    stored = nvals if symmetry == "general" else 2 * nvals
    triplets = stored * 16 + 24 * nvals  # as the parser returns them, expanded where symmetric
    beside = len(data) + triplets
    need = triplets + bytes_for_entries(stored, ncols, values=field != "pattern", held=beside)
    budget.require(need, f"{nrows} x {ncols}", held=len(data))
    try:
        entries: Any = scipy.io.mmread(io.BytesIO(data), spmatrix=False)
    except (ValueError, OverflowError) as error:
        line, why = _refusal(data, 0, sizes, error)
        if not why:
            rows = data[start:]
            require_count(sizes, rows.count(b"\n") - len(_BLANK.findall(rows)), budget.name)
        raise FileFormatError(f"read: {budget.name}, line {line}: {why or error}.") from error
    values = None if field == "pattern" else entries.data
    both = symmetry == "symmetric"
    return from_entries(entries.row, entries.col, values, nrows, ncols, dup_op, symmetric=both)


def _header(data: bytes, name: str) -> Sizes:
    """Return what the first lines say."""
    end = data.find(b"\n")
    banner = data[:end]
    words = banner.decode("utf-8", "replace").lower().split()
    if words[1:2] == ["vector"]:
        raise NotSupported(f"read: {name}, line 1: {show(banner)} is a vector. Give a matrix.")
    kind = words[:3]
    if len(words) != 5 or kind not in (_KIND, [*_KIND[:2], "array"]):
        raise FileFormatError(
            f"read: {name}, line 1: {show(banner)} is not a banner of five words, as "
            "%%MatrixMarket matrix coordinate real general."
        )
    layout, field, symmetry = words[2:]
    if layout != "coordinate":
        raise NotSupported(f"read: {name} is a dense matrix ({layout}). Give a coordinate file.")
    if field == "complex":
        raise NotSupported(f"read: {name} has complex values. Give a real or pattern matrix.")
    if (
        field not in _VALUES
        or symmetry not in _SYMMETRIES
        or (field == "pattern" and symmetry not in ("general", "symmetric"))
        or (field == "unsigned-integer" and symmetry == "skew-symmetric")
    ):
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


def _check_body(data: bytes, start: int, name: str, nvals: int, field: str) -> None:
    """Check the count before the parser allocates, and each line, since the parser does not.

    It reads ``3abc`` as 3 and ignores what follows a number; at the end of the file it reads beyond
    its memory to find the end of the line, and ends the process.
    """
    stop = _rows_end(data, start, field)
    if stop < len(data):
        where = f"read: {name}, line {line_number(data, stop)}"
        raise FileFormatError(f"{where}: {_why(data, stop, field)}.")
    # A number and a separator, each one byte.
    room = (len(data) - start) // (2 * _width(field))
    if nvals > room:
        raise FileFormatError(
            f"read: {name}: the header says {nvals} entries, the file has room for at most {room}. "
            "It is truncated, or its header is wrong."
        )


def _width(field: str) -> int:
    return 2 if field == "pattern" else 3


def _why(data: bytes, at: int, field: str) -> str:
    """Return what is wrong with the line at an offset."""
    if field == "integer" and _rows_end(data, at, "real") > at:
        return "a real number in a file of the field integer"
    line = data[at : data.find(b"\n", at)]
    return f"{show(line)} is not {_width(field)} numbers, which the field {field} needs"


def _rows_end(data: bytes, start: int, field: str) -> int:
    """Return where the first line begins that no entry of a field can be, or the end."""
    rows = _rows_of(field).match(data, start)
    return start if rows is None else rows.end()


@functools.cache
def _rows_of(field: str) -> re.Pattern[bytes]:
    """Return the pattern of the lines that an entry of a field may be, as many as there are."""
    value = _VALUES[field]
    usual = rb"[0-9]++ [0-9]++" + value.replace(rb"[ \t]++", b" ") + rb"\n"  # twice as fast
    row = rb"-?[0-9]++[ \t]++-?[0-9]++" + value
    return re.compile(rb"(?:" + usual + rb"|[ \t]*+(?:" + row + rb")?[ \t\r]*+\n)*+")


def _refusal(text: bytes, above: int, sizes: Sizes, error: Exception) -> tuple[int, str]:
    """Return the line that the parser refuses, and why; an empty text for a wrong count of lines.

    The parser has read some lines `above` the text.
    """
    found = _LINE.match(str(error))
    k = int(found[1]) - above if found else 1
    line = next(itertools.islice(io.BytesIO(text), k - 1, None), b"")
    if found is None or "lines" in found[2]:
        return k, ""
    i, j = map(number, line.split()[:2])
    if 1 <= i <= sizes.nrows and 1 <= j <= sizes.ncols:
        return k, f"{show(line.strip())} has a value that is not of 64 bits"
    shape = f"{sizes.nrows} x {sizes.ncols}, the shape in the header"
    return k, f"{show(line.strip())} is outside {shape}; indices count from 1"


# ------------------------------------------------------------------------------ in shares
_BLANK = re.compile(rb"^[ \t\r]*\n", re.MULTILINE)
_LINE = re.compile(r"Line ([0-9]+): (.*)")
_HEAD = 2  # lines before those of a share


def sizes_of(head: bytes, name: str) -> Sizes | None:
    """Return what the first lines of a file say; None if its size line is not among them.

    Raises
    ------
    FileFormatError, NotSupported
        As `parse`.
    """
    top = _SIZES.match(head, head.find(b"\n") + 1)
    return _header(head, name) if top and top[1] else None


def edges_of(text: bytes, sizes: Sizes) -> Edges:
    """Return the entries of whole lines, those across the diagonal not among them.

    Raises
    ------
    Fault
        If a line is no entry of the matrix.
    """
    text = fortran(text) if sizes.field == "real" else text
    stop = _rows_end(text, 0, sizes.field)
    if stop < len(text):
        raise Fault(line_number(text, stop), _why(text, stop, sizes.field))
    count = text.count(b"\n") - len(_BLANK.findall(text))
    if not count:
        return Edges.join([])
    size = f"general\n{sizes.nrows} {sizes.ncols} {count}\n"
    head = b"%s matrix coordinate %s " % (BANNER, sizes.field.encode()) + size.encode()
    try:
        entries: Any = scipy.io.mmread(io.BytesIO(head + text), spmatrix=False)
    except (ValueError, OverflowError) as error:
        line, why = _refusal(text, _HEAD, sizes, error)
        raise Fault(line, why or str(error)) from error
    return Edges(entries.row, entries.col, None if sizes.field == "pattern" else entries.data)


def require_count(sizes: Sizes, count: int, name: str) -> None:
    """Raise if a file has not as many entries as its size line says.

    Raises
    ------
    FileFormatError
        ``read: a.mtx: the header says 10 entries, the file has 9. ...``
    """
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
    entries = sp.coo_array((values, (csc.row_idx, csc.columns())), shape=(csc.nrows, csc.ncols))
    # Symmetry is not tested: a general file reads back the same.
    scipy.io.mmwrite(file, entries, field="pattern" if pattern else None, symmetry="general")
