"""lagpu's NumPy archives, read in shares: their arrays are in the file as they are in memory."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from lagpu import dtypes
from lagpu.io.budget import Budget
from lagpu.io.npz import Archive, errors_named, require_version
from lagpu.io.reading import Edges, Extent
from lagpu.io.slices.share import Chunk, Sliced

__all__ = ["sliced_archive"]

Array = np.ndarray[Any, Any]

_MOST = 1 << 22  # entries at a time
_LOCAL = struct.Struct("<4s22xHH")  # of a member: signature, lengths of its name and of the rest


def sliced_archive(stream: IO[bytes], file: Path, budget: Budget) -> Sliced | None:
    """Return an archive of which pieces can read shares, or None: it is packed, or not lagpu's.

    Raises
    ------
    FileFormatError
        If it is damaged, or its arrays are not those of a matrix.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            stored = all(of.compress_type == zipfile.ZIP_STORED for of in archive.infolist())
            if not stored or "lagpu_format.npy" not in archive.namelist():
                return None
    except (zipfile.BadZipFile, OSError):  # the reader of whole files says it
        return None
    return _Sliced(stream, file, budget)


class _Sliced:
    """An archive as `lagpu.io.npz` writes it; see `Sliced`.

    A share has as many entries as the others, and these of the column pointers that it needs. The
    check sums of the archive are those of whole arrays, and are not looked at.

    Parameters
    ----------
    stream : binary file
        The archive, from its first byte.
    file : Path
        Its path.
    budget : Budget
        The name of the file in messages.

    Raises
    ------
    FileFormatError
        If it is damaged.
    """

    undirected, mirror, head = False, 0, 0

    def __init__(self, stream: IO[bytes], file: Path, budget: Budget) -> None:
        self._name = f"read: {budget.name} is not a matrix archive"
        with errors_named(self._name):
            archive = Archive(stream, None)
            require_version(archive)
            self._nrows, self._ncols = archive.shape()
            self.kind: np.dtype[Any] | None = dtypes.lookup(archive.word("dtype")).numpy
            self._iso = archive["iso"].astype(self.kind)[()] if "iso" in archive else None
            self.pattern = self._iso is not None and self.kind == np.bool_ and bool(self._iso)
            self._ptr = _mapped(stream, file, archive, "col_ptr")
            self._rows = _mapped(stream, file, archive, "row_idx")
            self._values = _mapped(stream, file, archive, "values") if self._iso is None else None
            self._check()

    def _check(self) -> None:
        ptr, rows = self._ptr, self._rows
        if ptr.shape != (self._ncols + 1,) or rows.ndim != 1:
            raise ValueError(f"col_ptr {ptr.shape} != ({self._ncols + 1},)")
        if self._values is not None and self._values.shape != rows.shape:
            raise ValueError(f"{self._values.shape} values != {rows.shape} rows")
        if ptr[0] != 0 or ptr[-1] != len(rows):
            raise ValueError("col_ptr does not rise from 0 to the number of entries")

    def bytes_of(self, count: int) -> int:
        """See `Sliced`."""
        return (32 * len(self._rows) + 16 * len(self._ptr)) // count

    def chunks(self, pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        """See `Sliced`."""
        with errors_named(self._name):
            for piece in pieces:
                self._require_rising(piece, count)
                first, last = (len(self._rows) * (piece + k) // count for k in (0, 1))
                for k, start in enumerate(range(first, last, _MOST)):
                    edges = self._edges(start, min(start + _MOST, last))
                    yield piece, Chunk(piece << 32 | k, 0, edges)

    def _require_rising(self, piece: int, count: int) -> None:
        """Raise if the column pointers of a share do not rise."""
        first, last = (self._ncols * (piece + k) // count for k in (0, 1))
        own = self._ptr[first : last + 1]
        if (own[1:] < own[:-1]).any():
            raise ValueError("col_ptr does not rise from 0 to the number of entries")

    def _edges(self, start: int, stop: int) -> Edges:
        """Return a run of the entries."""
        first = int(np.searchsorted(self._ptr, start, "right")) - 1
        last = int(np.searchsorted(self._ptr, stop, "left"))
        ends = np.clip(self._ptr[first : last + 1], start, stop).astype(np.int64)
        cols = np.repeat(np.arange(first, last), np.diff(ends))
        rows = self._rows[start:stop].astype(np.int64)
        if len(cols) != len(rows):
            raise ValueError("col_ptr does not rise from 0 to the number of entries")
        if len(rows) and not 0 <= rows.min() <= rows.max() < self._nrows:
            raise ValueError(f"a row outside 0 .. {self._nrows - 1}")
        before = max(start - 1, 0)
        rising = self._rows[before + 1 : stop] > self._rows[before : stop - 1]
        begins = self._ptr[first : last + 1].astype(np.int64) - before - 1
        rising[begins[(begins >= 0) & (begins < len(rising))]] = True  # a new column begins
        if not rising.all():
            raise ValueError("rows that do not rise within a column")
        values = None
        if self._values is not None:
            values = self._values[start:stop].astype(self.kind)
        elif not self.pattern:
            values = np.full(len(rows), self._iso)
        return Edges(rows, cols, values)

    def shape(self, extent: Extent) -> tuple[int, int, Edges]:
        """See `Sliced`."""
        return self._nrows, self._ncols, Edges.join([])


def _mapped(stream: IO[bytes], file: Path, archive: Archive, name: str) -> Array:
    """Return an array of an archive as a view of the file, from which nothing is read yet."""
    member = archive.member(name)
    shape, dtype = archive.headers[name]
    if dtype.kind not in "biuf":
        raise ValueError(f"{name} has the type {dtype}")
    stream.seek(member.header_offset)
    signature, *lengths = _LOCAL.unpack(stream.read(_LOCAL.size))
    if signature != b"PK\x03\x04":
        raise ValueError(f"{name} is not where the archive says")
    size = int(np.prod(shape)) * dtype.itemsize
    at = member.header_offset + _LOCAL.size + sum(lengths) + member.file_size - size
    if not size:
        return np.zeros(shape, dtype)
    return np.memmap(file, dtype, "r", at, shape)
