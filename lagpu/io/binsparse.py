"""Matrices in the Binsparse layout, in HDF5 files, by h5py.

Source: the Binsparse specification, version 0.1: a JSON descriptor in the attribute ``binsparse``,
and an array in a data set of its own for pointers, indices and values. The compressed and the
coordinate forms are read; `dump` writes CSC.
"""

from __future__ import annotations

import io
import json
import math
import re
import zlib
from typing import IO, Any

import numpy as np

from lagpu.dtypes import Array
from lagpu.errors import NotSupported
from lagpu.host import memory
from lagpu.io import reading
from lagpu.io.csc import CSC, bytes_for_entries, from_entries
from lagpu.io.reading import Budget, Edges, Options, Parsed, errors_named, needed

MAGIC = b"\x89HDF\r\n\x1a\n"
_VERSION = "0.1.0"
_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_TYPES: dict[str, np.dtype[Any]] = {"bint8": np.dtype(np.uint8)}
_TYPES |= {name: np.dtype(name) for name in (*_NUMBERS, "float32", "float64")}
# Forms by what gives the outer indices: pointers, their non-empty lists and pointers, or a list.
_POINTED, _DOUBLY, _LISTED = ("CSR", "CSC"), ("DCSR", "DCSC"), ("COO", "COOR", "COOC")
_ARRAYS = ("pointers_to_1", "indices_0", "indices_1", "values")
_FILTERS = {1: "g", 2: "s", 3: "f", 32000: "l"}  # gzip, shuffle, Fletcher's check sum, lzf
_HEAP, _MARK = re.compile(rb"GCOL\x01\0\0\0"), 8
_LARGE = 1 << 20  # bytes; gzip makes at most 1032 times as many of them
_STRUCTURE = re.compile("(symmetric|skew_symmetric)_(lower|upper)")


def parse(file: IO[bytes], budget: Budget, options: Options) -> Parsed:
    """Return the matrix in a file, with the values in their type."""
    h5py = needed("hdf5", f"read: {budget.name} is HDF5, and")
    with errors_named(f"read: {budget.name} is no matrix of Binsparse"):
        _require_heaps(file)
        with h5py.File(file, "r") as h5:
            if "binsparse" not in h5.attrs:
                raise ValueError("its root has no attribute `binsparse`")
            descriptor = json.loads(h5.attrs["binsparse"])
            head = descriptor.get("binsparse", descriptor)
            return Parsed(_Reader(h5, head, budget).matrix(options))


def _require_heaps(file: IO[bytes]) -> None:
    """Raise for a heap of texts with a size that would keep libhdf5 in a loop without end."""
    at, tail, heaps = file.seek(0), b"", []
    while part := file.read(reading.PIECE):
        heaps += [at - len(tail) + x.start() for x in _HEAP.finditer(tail + part)]
        at, tail = at + len(part), (tail + part)[-_MARK + 1 :]
    for heap in heaps:
        file.seek(heap + _MARK)
        stop, at = heap + int.from_bytes(file.read(8), "little"), heap + 16
        while at + 16 <= stop and file.seek(at) == at and len(head := file.read(16)) == 16:
            size = int.from_bytes(head[8:], "little")
            step = 16 + -(-size // 8) * 8 if any(head[:2]) else size  # the rest is free
            if not 0 < step <= stop - at:
                raise ValueError("a heap of texts is damaged")
            at += step


class _Reader:
    """The arrays of a file, whose sizes are checked before one is read."""

    def __init__(self, h5: Any, head: dict[str, Any], budget: Budget) -> None:
        self.h5, self.head, self.budget = h5, head, budget
        version = str(head.get("version"))
        if not re.fullmatch(r"0\.1(\.[0-9]+)?", version):
            raise ValueError(f"version {version!r}, but this lagpu reads 0.1")
        self.form = str(head["format"])
        if self.form not in _POINTED + _DOUBLY + _LISTED:
            raise NotSupported(
                f"read: {budget.name} has the form {self.form[:20]!r} of Binsparse. Give a sparse "
                "matrix: CSR, CSC, COO, DCSR or DCSC."
            )
        shape, count = head["shape"], head["number_of_stored_values"]
        if len(shape) != 2 or not all(type(size) is int and size >= 0 for size in (*shape, count)):
            raise ValueError(f"shape {shape} and {count} values are not of a matrix")
        self.shape, self.count = (shape[0], shape[1]), count
        self.structure = head.get("structure")
        words = str(self.structure)
        if self.structure is not None and not _STRUCTURE.fullmatch(words):
            raise NotSupported(f"read: {budget.name} has the structure {words[:40]!r}.")
        self.arrays = {name: self._inside(name) for name in _ARRAYS if name in head["data_types"]}
        total = 0
        for data in self.arrays.values():
            total += data.size * max(8, data.dtype.itemsize)
            if data.chunks is not None:  # each is unpacked as a whole
                total += math.prod(data.chunks) * data.dtype.itemsize
        stored = count * (1 if self.structure is None else 2)
        need = bytes_for_entries(stored, max(shape), values=True) + 16 * stored
        budget.require(total + need, f"{shape[0]} x {shape[1]}")
        for name, data in self.arrays.items():
            self._require_chunks(name, data)

    def _inside(self, name: str) -> Any:
        """Return a data set of numbers, if reading it opens no other file and loads no plug-in."""
        # `ValueError` for soft and external links, external and virtual storage, unusual packing.
        h5py, key = needed("hdf5", "read: HDF5"), name.encode()
        if not self.h5.id.links.exists(key):
            raise ValueError(f"there is no {name}")
        if self.h5.id.links.get_info(key).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{name} is a link, which may lead to another file")
        data = self.h5[name]
        if not isinstance(data, h5py.Dataset):
            raise ValueError(f"{name} is no array")
        how = data.id.get_create_plist()
        own = (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED)
        if how.get_layout() not in own or how.get_external_count():
            raise ValueError(f"{name} is in another file")
        packing = [how.get_filter(k)[0] for k in range(how.get_nfilters())]
        if not re.fullmatch("s?[gl]?f?", "".join(_FILTERS.get(code, "?") for code in packing)):
            raise ValueError(f"{name} is packed by HDF5 filters {packing}. Use gzip, or none")
        if data.dtype.kind not in "biuf":
            raise ValueError(f"{name} has the type {data.dtype}")
        return data

    def _require_chunks(self, name: str, data: Any) -> None:
        """Raise if a chunk unpacks to more than its size, which HDF5 sees when it is too late."""
        if data.compression != "gzip" or self.budget.size < _LARGE:
            return
        size = math.prod(data.chunks) * data.dtype.itemsize + 4  # with a check sum
        for k in range(data.id.get_num_chunks()):
            chunk = data.id.get_chunk_info(k)
            if chunk.size >= _LARGE:
                _, packed = data.id.read_direct_chunk(chunk.chunk_offset)
                unpacking, found = zlib.decompressobj(), 0
                while packed and found <= size:
                    found += len(unpacking.decompress(packed, _LARGE))
                    packed = unpacking.unconsumed_tail
                if found > size:
                    raise ValueError(f"{name} unpacks to more than its size")

    def array(self, name: str, size: int | None) -> Array:
        """Return a list of numbers of its type, as many as there must be."""
        kind = str(self.head["data_types"][name])
        if name not in self.arrays:
            raise ValueError(f"there is no {name}")
        data = self.arrays[name]
        if kind not in _TYPES:
            raise NotSupported(f"read: {self.budget.name}: {name} has the type {kind[:30]!r}.")
        if data.ndim != 1 or (size is not None and data.size != size):
            raise ValueError(f"{name} has the shape {data.shape}, not ({size},)")
        stored: Array = np.asarray(data[()])
        found = stored.astype(_TYPES[kind], copy=False)
        if not np.can_cast(stored.dtype, found.dtype) and not np.array_equal(stored, found):
            raise ValueError(f"{name} has values of the type {data.dtype} that {kind} has not")
        return found != 0 if kind == "bint8" else found

    def indices(self, name: str, size: int | None, limit: int) -> Array:
        """Return places below a limit."""
        found = self.array(name, size)
        if found.dtype.kind not in "iu":
            raise ValueError(f"{name} is not of whole numbers")
        reading.require_inside(f"{name} has an index", found, limit)
        return found.astype(np.int64)

    def repeated(self, lists: Array) -> Array:
        """Return which of some lists each entry is in, by the pointers to where they begin."""
        found = self.indices("pointers_to_1", len(lists) + 1, self.count + 1)
        reading.require_rising("pointers_to_1 does", found, len(lists), self.count)
        return np.repeat(lists, np.diff(found))

    def values(self) -> Array:
        """Return a value for each entry; an iso-valued file has one for all."""
        iso = re.fullmatch(r"iso\[(.*)\]", str(self.head["data_types"]["values"]))
        if iso is None:
            return self.array("values", self.count)
        self.head["data_types"]["values"] = iso[1]
        return np.full(self.count, self.array("values", 1)[0])

    def matrix(self, options: Options) -> CSC:
        """Return the matrix."""
        by_columns = self.form.endswith("C")
        outer, inner = self.shape[::-1] if by_columns else self.shape
        if self.form in _POINTED:
            first = self.repeated(np.arange(outer))
        elif self.form in _DOUBLY:
            first = self.repeated(self.indices("indices_0", None, outer))
        else:
            first = self.indices("indices_0", self.count, outer)
        second = self.indices("indices_1", self.count, inner)
        rows, cols = (second, first) if by_columns else (first, second)
        edges, both = Edges(rows, cols, self.values()), False
        if self.structure is not None:
            kind, triangle = str(self.structure).rsplit("_", 1)
            if outer != inner:
                raise ValueError(f"shape {self.shape} is not square, but {self.structure}")
            if (rows < cols if triangle == "lower" else rows > cols).any():
                raise ValueError(f"an entry is outside the triangle of {self.structure}")
            both = kind == "symmetric"
            edges = edges.mirrored(1 if both else -1)
        rows, cols, values = edges
        if values is not None and values.dtype.kind == "b" and values.all():
            values = None
        return from_entries(rows, cols, values, *self.shape, options.dup_op, symmetric=both)


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write a matrix in CSC form; one value for all if they are equal."""
    h5py = needed("hdf5", "write: Binsparse")
    values = np.asarray([csc.values] if csc.iso else csc.values)
    memory.require(24 * (csc.nvals + csc.ncols) + values.nbytes, "write", "Use .npz.")
    kind = "bint8" if csc.dtype.is_bool else values.dtype.name
    arrays = {
        "pointers_to_1": csc.col_ptr.astype(np.uint64),
        "indices_1": csc.row_idx.astype(np.uint64),
        "values": values.astype(np.uint8) if csc.dtype.is_bool else values,
    }
    kinds = dict.fromkeys(arrays, "uint64") | {"values": f"iso[{kind}]" if csc.iso else kind}
    head = {
        "version": _VERSION, "format": "CSC", "shape": [csc.nrows, csc.ncols],
        "number_of_stored_values": csc.nvals, "data_types": kinds,
    }  # fmt: skip
    image = io.BytesIO()  # HDF5 reads what it has written, and a new file is only written
    with h5py.File(image, "w") as h5:
        h5.attrs["binsparse"] = json.dumps({"binsparse": head})
        for name, array in arrays.items():
            h5.create_dataset(name, data=array)
    file.write(image.getbuffer())
