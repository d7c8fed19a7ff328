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
import struct
import zipfile
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from lagpu import dtypes
from lagpu.errors import DomainMismatch, NotSupported
from lagpu.io.csc import CSC, bytes_for_entries, compress
from lagpu.io.reading import Budget, Options, Parsed, errors_named, require_inside, require_rising

_VERSION = 1
_LONGEST = 64  # characters of a word, such as the name of a type
_KINDS = "biufc"
_PACKING = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LOCAL = struct.Struct("<4s22xHH")  # of a member: signature, lengths of its name and of the rest


class Archive:
    """The arrays of a NumPy archive; all their headers are checked before one is allocated.

    They may take the memory of `budget`; without one they are views of the file, from which nothing
    is read yet, and none may be packed. Arrays of `texts` are read only if so asked.

    The errors are ValueError for an array that is not as long as its header says, or is not of
    numbers or a short word, and many others of libraries: see `errors_named`.
    """

    def __init__(self, file: IO[bytes], budget: Budget | None, *, texts: bool = False) -> None:
        self._zip, self._mapped = zipfile.ZipFile(file), file if budget is None else None
        self.headers: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        total = 0
        for member in self._zip.infolist():
            if member.compress_type not in (_PACKING if self._mapped is None else _PACKING[:1]):
                # A few bytes would unpack to gigabytes at once, before any size can be checked.
                raise ValueError(f"{member.filename} is packed in a way that NumPy does not use")
            name = member.filename.removesuffix(".npy")
            if name in self.headers:
                raise ValueError(f"{member.filename} is there twice")
            shape, dtype, size = _header(self._zip, member, _KINDS + "U" if texts else _KINDS)
            self.headers[name] = shape, dtype
            total += size
        if budget is not None:
            budget.require(total, "its arrays")
        self.nbytes = total

    def __contains__(self, name: object) -> bool:
        return name in self.headers

    def __getitem__(self, name: str) -> Any:
        if name not in self.headers:
            raise ValueError(f"there is no array {name!r}")
        member, (shape, dtype) = self._zip.getinfo(name + ".npy"), self.headers[name]
        size = math.prod(shape) * dtype.itemsize
        if self._mapped is None or not shape or not size:
            with self._zip.open(member) as content:
                array = np.lib.format.read_array(content, allow_pickle=False)
            return array.astype(array.dtype.newbyteorder("="), copy=False)
        self._mapped.seek(member.header_offset)
        signature, *lengths = _LOCAL.unpack(self._mapped.read(_LOCAL.size))
        if signature != b"PK\x03\x04":
            raise ValueError(f"{name} is not where the archive says")
        at = member.header_offset + _LOCAL.size + sum(lengths) + member.file_size - size
        return np.memmap(self._mapped, dtype, "r", at, shape)

    def indices(self, name: str) -> Any:
        """Return a one-dimensional array of whole numbers."""
        found = self[name]
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise ValueError(f"{name} is {found.dtype} {found.shape}, not a list of whole numbers")
        return found

    def word(self, name: str) -> str:
        """Return a text, which SciPy stores as bytes."""
        found = self[name]
        if found.shape != () or found.dtype.kind not in "SU":
            raise ValueError(f"{name} is not a word")
        word = found.item()
        return word.decode("ascii") if isinstance(word, bytes) else str(word)

    def shape(self) -> tuple[int, int]:
        """Return the array `shape`, of a matrix."""
        sizes = tuple(self.indices("shape").tolist())
        if len(sizes) != 2 or min(sizes) < 0:
            raise ValueError(f"the shape {sizes} is not of a matrix, but of a {len(sizes)}-D array")
        return sizes


def _header(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, kinds: str
) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return shape, type and bytes of an array, checked against the size of its member."""
    with archive.open(member) as array:
        old = np.lib.format.read_magic(array) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(array)
        size = math.prod(shape) * dtype.itemsize
        if array.tell() + size != member.file_size:
            raise ValueError(f"{member.filename}: {member.file_size} bytes, not {size}")
    word = dtype.kind in "SU" and shape == () and size <= 4 * _LONGEST
    if not word and (dtype.kind not in kinds or min(shape, default=0) < 0):
        raise ValueError(f"{member.filename} has the type {dtype}, which no matrix has")
    return shape, dtype, size


def parse(file: IO[bytes], budget: Budget, options: Options) -> Parsed:
    """Return the matrix in an archive; no option counts."""
    try:
        with errors_named(f"read: {budget.name} is not a matrix archive"):
            archive = Archive(file, budget)
            read = _from_lagpu if "lagpu_format" in archive else _from_scipy
            return Parsed(read(archive, budget))
    except DomainMismatch as error:
        raise NotSupported(f"read: {budget.name}: {error}") from error


def _from_lagpu(archive: Archive, budget: Budget) -> CSC:
    nrows, ncols, kind, col_ptr, row_idx, values = columns_of(archive)
    require_columns(nrows, ncols, col_ptr, row_idx)
    need = bytes_for_entries(len(row_idx), ncols, values=values.ndim > 0)
    budget.require(max(0, need - archive.nbytes), f"{nrows} x {ncols}", held=archive.nbytes)
    values = values.astype(kind, copy=False)
    return CSC(nrows, ncols, col_ptr, row_idx, values if values.ndim else values[()])


def columns_of(archive: Archive) -> tuple[int, int, np.dtype[Any], Any, Any, Any]:
    """Return (nrows, ncols, type of values, pointers, rows, values or one value) of lagpu's."""
    version = archive["lagpu_format"]
    if version.shape != () or version != _VERSION:
        raise ValueError(f"format {version}, but this lagpu reads {_VERSION}")
    nrows, ncols = archive.shape()
    kind = dtypes.lookup(archive.word("dtype")).numpy
    col_ptr, row_idx = archive.indices("col_ptr"), archive.indices("row_idx")
    iso = "iso" in archive
    values = archive["iso" if iso else "values"]
    if values.shape != (() if iso else row_idx.shape):
        raise ValueError(f"{values.shape} values != {row_idx.shape} rows")
    return nrows, ncols, kind, col_ptr, row_idx, values


def require_columns(nrows: int, ncols: int, col_ptr: Any, row_idx: Any) -> None:
    """Raise `ValueError` for arrays that are not those of a matrix in compressed columns."""
    require_rising("col_ptr does", col_ptr, ncols, len(row_idx))
    require_inside("a row", row_idx, nrows)
    rising = row_idx[1:] > row_idx[:-1]
    starts = col_ptr[1:-1]
    rising[starts[(starts > 0) & (starts < row_idx.size)] - 1] = True  # a new column begins
    if not rising.all():
        raise ValueError("rows that do not rise within a column")


# Of the forms of SciPy, the arrays of indices.
_INDICES: dict[str, tuple[str, ...]] = dict.fromkeys(("bsr", "csc", "csr"), ("indices", "indptr"))
_INDICES |= {"coo": ("row", "col"), "dia": ("offsets",)}


def _from_scipy(archive: Archive, budget: Budget) -> CSC:
    form, shape, data = archive.word("format"), archive.shape(), archive["data"]
    if form not in _INDICES:
        raise ValueError(f"its format is {form[:20]!r}")
    data = data.astype(dtypes.lookup(data.dtype).numpy, copy=False)  # before it is summed
    need = archive.nbytes + bytes_for_entries(data.size, max(shape), values=True)
    budget.require(need, f"{shape[0]} x {shape[1]}", held=archive.nbytes)
    lists = [archive.indices(name) for name in _INDICES[form]]
    block = data.shape[1:] if form == "bsr" and data.ndim == 3 else (1, 1)
    if min(block) < 1 or shape[0] % block[0] or shape[1] % block[1]:
        raise ValueError(f"blocks {block} do not fit the shape {shape}")
    if data.ndim != {"bsr": 3, "dia": 2}.get(form, 1) or len(data) != len(lists[0]):
        raise ValueError(f"{data.shape} values do not fit {len(lists[0])} indices")
    if form == "dia":
        require_inside("a diagonal", lists[0].astype(np.int64) + shape[0], sum(shape) + 1)
    elif form != "coo":  # SciPy itself may crash on wrong indices
        size, width = shape[0] // block[0], shape[1] // block[1]
        size, width = (width, size) if form == "csc" else (size, width)
        require_rising("indptr does", lists[1], size, len(lists[0]))
        require_inside("an index", lists[0], width)
    given = (data, tuple(lists)) if form == "coo" else (data, *lists)
    return compress(getattr(sp, f"{form}_array")(given, shape=shape).tocsc())


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write an archive in the format of lagpu."""
    values = {"iso": csc.values} if csc.iso else {"values": csc.values}
    np.savez(
        file, allow_pickle=False, lagpu_format=_VERSION, shape=(csc.nrows, csc.ncols),
        dtype=csc.dtype.name, col_ptr=csc.col_ptr, row_idx=csc.row_idx, **values,
    )  # fmt: skip
