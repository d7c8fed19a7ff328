"""Matrix Market coordinate files: checks around SciPy's parser.

Source: Boisvert, Pozo, Remington 1996, The Matrix Market exchange formats (NISTIR 5935).
"""

from __future__ import annotations

import io
import re
from typing import IO, Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from lagpu.algebra.operators import BinaryOp
from lagpu.errors import FileFormatError, NotSupported
from lagpu.host import memory
from lagpu.io.csc import CSC, bytes_for_entries, from_entries
from lagpu.io.text import data_lines, line_number, show

__all__ = ["BANNER", "dump", "parse"]

BANNER = b"%%MatrixMarket"
_REAL = re.compile(rb"[.eE]")


def parse(data: bytes, name: str, dup_op: BinaryOp | None = None) -> CSC:
    """Return the matrix of a coordinate file.

    Parameters
    ----------
    data : bytes
        Content of the file, from its banner on.
    name : str
        Name of the file in messages.
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
    OutOfMemory
        If a matrix of the size in the header does not fit.
    """
    nrows, ncols, nvals, field, symmetry = _header(data, name)
    stored = nvals if symmetry == "general" else 2 * nvals
    need = len(data) + bytes_for_entries(stored, ncols, values=True)
    memory.require(need, f"read: {name}")
    try:
        entries: Any = scipy.io.mmread(io.BytesIO(data), spmatrix=False)
    except (ValueError, OverflowError) as error:
        raise FileFormatError(f"read: {name}: {error}") from error
    values = None if field == "pattern" else entries.data
    return from_entries(entries.row, entries.col, values, nrows, ncols, dup_op)


def _header(data: bytes, name: str) -> tuple[int, int, int, str, str]:
    """Return (nrows, ncols, nvals, field, symmetry), checked against the rest of the file."""
    try:
        nrows, ncols, nvals, layout, field, symmetry = scipy.io.mminfo(io.BytesIO(data))
    except (ValueError, OverflowError) as error:
        raise FileFormatError(f"read: {name}: {error}") from error
    if layout != "coordinate":
        raise NotSupported(f"read: {name} is a dense matrix ({layout}). Give a coordinate file.")
    if field == "complex":
        raise NotSupported(f"read: {name} has complex values. Give a real or pattern matrix.")
    if symmetry != "general" and nrows != ncols:
        raise FileFormatError(
            f"read: {name}: the header says {symmetry}, but nrows {nrows} != ncols {ncols}."
        )
    _check_body(data, name, nvals, field)
    return nrows, ncols, nvals, field, symmetry


def _check_body(data: bytes, name: str, nvals: int, field: str) -> None:
    """Check the count before the parser allocates, and numbers that the parser would skip."""
    lines = data_lines(data)
    next(lines)  # the size line, which the parser has checked
    start, first = next(lines, (len(data), b""))
    width = 2 if field == "pattern" else 3
    if first and len(first.split()) != width:
        raise FileFormatError(
            f"read: {name}, line {line_number(data, start)}: {show(first)} is not {width} numbers, "
            f"which the field {field} needs."
        )
    room = (len(data) - start + 1) // (2 * width)  # a number and a separator, each one byte
    if nvals > room:
        raise FileFormatError(
            f"read: {name}: the header says {nvals} entries, the file has room for at most {room}. "
            "It is truncated, or its header is wrong."
        )
    real = _REAL.search(data, start) if field == "integer" else None
    if real:
        raise FileFormatError(
            f"read: {name}, line {line_number(data, real.start())}: a real number "
            "in a file of the field integer."
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
