"""NumPy archives: those of `scipy.sparse.save_npz`, and those of lagpu.

An archive of lagpu has the arrays of the compressed column form, without compression:

=================  ==================================================================
``lagpu_format``   1, the version of this table
``shape``          (nrows, ncols)
``dtype``          GraphBLAS name of the value type, such as ``BOOL``
``col_ptr``        (ncols + 1,)
``row_idx``        (nvals,), rising within a column
``values``         (nvals,), or instead
``iso``            one number, the value of every entry
=================  ==================================================================
"""

from __future__ import annotations

import math
import zipfile
import zlib
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from lagpu import dtypes
from lagpu.errors import DomainMismatch, FileFormatError, NotSupported
from lagpu.host import memory
from lagpu.io.csc import CSC, compress

__all__ = ["dump", "parse"]

_VERSION = 1
_BROKEN = (
    EOFError,
    KeyError,
    OSError,
    RuntimeError,  # encrypted, or an unknown compression
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def parse(file: IO[bytes], name: str) -> CSC:
    """Return the matrix in an archive.

    Parameters
    ----------
    file : binary file
        The archive, from its first byte; it must allow seeking.
    name : str
        Name of the file in messages.

    Raises
    ------
    FileFormatError
        If it is damaged, or its arrays are not those of a matrix.
    NotSupported
        If the values have a type that lagpu lacks, such as complex numbers.
    OutOfMemory
        If its arrays do not fit in memory.
    """
    try:
        memory.require(3 * _checked_bytes(file), f"read: {name}")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            if "lagpu_format" in archive:
                return _from_lagpu(archive)
        file.seek(0)
        return _from_scipy(sp.load_npz(file))
    except DomainMismatch as error:
        raise NotSupported(f"read: {name}: {error}") from error
    except _BROKEN as error:
        raise FileFormatError(f"read: {name} is not a matrix archive: {error}") from error


def _checked_bytes(file: IO[bytes]) -> int:
    """Return the bytes of all arrays, after checking that each is as long as its header says.

    Otherwise NumPy would allocate the size in a wrong header before it reads the array.
    """
    total = 0
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            with archive.open(member) as array:
                version = np.lib.format.read_magic(array)
                read = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = read(array)
                size = math.prod(shape) * dtype.itemsize
                if array.tell() + size != member.file_size:
                    raise ValueError(f"{member.filename}: {member.file_size} bytes, not {size}")
                total += size
    return total


def _from_lagpu(archive: Any) -> CSC:
    if int(archive["lagpu_format"]) != _VERSION:
        raise ValueError(f"format {archive['lagpu_format']}, but this lagpu reads {_VERSION}")
    nrows, ncols = (int(size) for size in archive["shape"])
    kind = dtypes.lookup(str(archive["dtype"])).numpy
    col_ptr, row_idx = archive["col_ptr"], archive["row_idx"]
    values: Any = (
        archive["iso"].astype(kind)[()] if "iso" in archive else archive["values"].astype(kind)
    )
    if col_ptr.dtype.kind not in "iu" or row_idx.dtype.kind not in "iu":
        raise ValueError("indices that are not whole numbers")
    _check_columns(nrows, ncols, col_ptr, row_idx)
    if isinstance(values, np.ndarray) and values.shape != row_idx.shape:
        raise ValueError(f"{values.shape} values != {row_idx.shape} rows")
    return CSC(nrows, ncols, col_ptr, row_idx, values)


def _check_columns(nrows: int, ncols: int, col_ptr: Any, row_idx: Any) -> None:
    if nrows < 0 or ncols < 0 or col_ptr.shape != (ncols + 1,) or row_idx.ndim != 1:
        raise ValueError(f"col_ptr {col_ptr.shape} != ({ncols + 1},)")
    if col_ptr[0] != 0 or col_ptr[-1] != row_idx.size or (col_ptr[1:] < col_ptr[:-1]).any():
        raise ValueError("col_ptr does not rise from 0 to the number of entries")
    if row_idx.size and not 0 <= row_idx.min() <= row_idx.max() < nrows:
        raise ValueError(f"a row outside 0 .. {nrows - 1}")
    rising = row_idx[1:] > row_idx[:-1]
    starts = col_ptr[1:-1]
    rising[starts[(starts > 0) & (starts < row_idx.size)] - 1] = True  # a new column begins
    if not rising.all():
        raise ValueError("rows that do not rise within a column")


def _from_scipy(entries: Any) -> CSC:
    if entries.ndim != 2:
        raise ValueError(f"a {entries.ndim}-D array")
    if hasattr(entries, "check_format"):  # a compressed form, whose indices SciPy has not checked
        entries.check_format(full_check=True)
    return compress(entries.tocsc())


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write an archive in the format of lagpu."""
    values = {"iso": csc.values} if csc.iso else {"values": csc.values}
    np.savez(
        file,
        allow_pickle=False,
        lagpu_format=_VERSION,
        shape=(csc.nrows, csc.ncols),
        dtype=csc.dtype.name,
        col_ptr=csc.col_ptr,
        row_idx=csc.row_idx,
        **values,
    )
