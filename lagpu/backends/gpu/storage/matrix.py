"""Sparse matrices on a device, by columns; casts of values; counters."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from lagpu.algebra.operators import Monoid, Operator
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import Kernel, Prelude, kernel
from lagpu.dtypes import FP64, DType, lookup

Array = Any  # numpy.ndarray or cupy.ndarray


def index_type(largest: int) -> type[np.signedinteger[Any]]:
    """Return INT32 if it holds 0 .. `largest`, else INT64."""
    return np.int32 if largest < 2**31 else np.int64


def cast_number(number: Any, dtype: DType) -> Any:
    """Return a NumPy scalar cast as `cast_array` casts."""
    if number.dtype == dtype.numpy:
        return number
    return _cast(np, np.array([number]), dtype)[0]


def cast_array(device: Device, array: Array, dtype: DType) -> Array:
    """Return a copy cast as GraphBLAS casts: saturating, NaN to 0, to BOOL what is not 0."""
    if array.dtype.kind == dtype.numpy.kind == "f" and array.dtype != dtype.numpy:
        return _resized(device, array, dtype)
    return _cast(device.xp, array, dtype)


def are_nonzero(array: Array) -> Array:
    """Return which values are true in a mask by value: all but 0, -0.0 and False."""
    return bits(array) << 1 != 0 if array.dtype.kind == "f" else array != 0  # all but the sign


def bits(array: Array) -> Array:
    """Return floats as unsigned integers of their bits, other values as they are."""
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "f" else array


def comparable(device: Device, array: Array) -> Array:
    """Return the values in a type in which CuPy compares and computes exactly.

    CuPy's own kernels take FP32 numbers below 1.2e-38 for 0.
    """
    return _resized(device, array, FP64) if array.dtype == np.float32 else array


def _resized(device: Device, array: Array, dtype: DType) -> Array:
    """Cast between FP32 and FP64."""
    array = device.xp.ascontiguousarray(array)
    made = device.xp.empty(array.shape, dtype.numpy)
    run = specialised("elementwise/map.cu", "cast_values", U=lookup(array.dtype), W=dtype)
    device.launch(run, array.size, array.size, array, made)
    return made


def _cast(xp: Any, array: Array, dtype: DType) -> Array:
    kind = dtype.numpy
    if array.dtype.kind != "f" or kind.kind == "f":
        with np.errstate(over="ignore"):  # a large double is an infinite float
            return array.astype(kind)
    if kind.kind == "b":
        return are_nonzero(array)
    info = np.iinfo(kind)
    low, high = array <= info.min, array >= info.max
    safe = xp.where(low | high | xp.isnan(array), 0, array)
    return xp.where(low, info.min, xp.where(high, info.max, safe.astype(kind))).astype(kind)


@functools.lru_cache(maxsize=1024)
def specialised(file: str, name: str, **by: Operator | Monoid | DType | str | None) -> Kernel:
    """Return a kernel with a functor, a type or a word for each macro; None leaves one out."""
    prelude, macros = Prelude(), {}
    for macro, x in by.items():
        if isinstance(x, (Operator, Monoid)):
            macros[macro] = prelude.functor(x)
        elif x is not None:
            macros[macro] = x if isinstance(x, str) else x.ctype
    return kernel(file, name, prelude=prelude.text, **macros)


class Counters:
    """Zeroed u64 arrays; one device operation zeroes those of a whole block of memory.

    A block whose arrays nothing else holds is zeroed and reused with its array objects: a long loop
    allocates nothing, neither on the device nor on the host.
    """

    _ARRAYS = 256  # a block

    def __init__(self, device: Device) -> None:
        self.device = device
        self._blocks: dict[int, list[tuple[Array, list[Array]]]] = {}  # memory, and its arrays
        self._free: dict[int, list[Array]] = {}

    def take(self, count: int = 1) -> Array:
        """Return an array of `count` zeros; a view of the array does not keep it from reuse."""
        free = self._free.get(count)
        if not free:
            free = self._free[count] = self._fresh(count)
        return free.pop()

    def _fresh(self, count: int) -> list[Array]:
        blocks = self._blocks.setdefault(count, [])
        for block, arrays in blocks:
            # held by the list, by this loop, and by the question
            if all(sys.getrefcount(one) == 3 for one in arrays):
                block.fill(0)
                return arrays.copy()
        block = self.device.xp.zeros(self._ARRAYS * count, np.uint64)
        arrays = [block[k : k + count] for k in range(0, len(block), count)]
        blocks.append((block, arrays))
        return arrays.copy()


T = TypeVar("T")


class CscMatrix:
    """A matrix by columns, which does not change; of equal values only one is kept."""

    def __init__(
        self,
        device: Device,
        dtype: DType,
        shape: tuple[int, int],
        col_ptr: Array,
        row_idx: Array,
        values: Array | None,
        iso: Any = None,
    ) -> None:
        self.device, self.dtype = device, dtype
        self.shape = shape  #: (nrows, ncols)
        self.nvals = len(row_idx)
        #: INT32 while they hold every offset and every row, else INT64; rows rise in a column.
        self.col_ptr = col_ptr.astype(index_type(self.nvals), copy=False)
        self.row_idx = row_idx.astype(index_type(shape[0]), copy=False)
        self.values = values  #: None if all entries have the value `iso`
        self.iso = iso
        self.symmetric: bool | None = None  #: whether it equals its transpose, once known
        self.csr: CscMatrix | None = None  #: the transpose by columns, that is, this by rows
        self.may_keep_csr = True  #: whether `csr` may be made
        self.kernels: dict[Any, Any] = {}  #: launches, by what they were specialised for
        self.cache: dict[str, Any] = {}  #: workspaces that kernels keep between runs, by kind
        self.facts: dict[str, Any] = {}  #: what was computed of the matrix

    @property
    def number(self) -> Any:
        """`iso` as the kernels take it: any number of the type where values are stored."""
        return self.dtype.zero if self.iso is None else self.iso

    @property
    def nbytes(self) -> int:
        """Bytes of the column form."""
        values = 0 if self.values is None else self.values.nbytes
        return int(self.col_ptr.nbytes + self.row_idx.nbytes + values)

    def arguments(self) -> dict[str, Any]:
        """Return the sizes and index arrays as kernels name them."""
        indices = {"col_ptr": self.col_ptr, "row_idx": self.row_idx}
        return {"nvals": self.nvals, "ncols": self.shape[1], **indices}

    def all_values(self) -> Array:
        """Return a value for each entry, also where only one is kept."""
        if self.values is not None:
            return self.values
        return self.device.xp.full(self.nvals, self.number, self.dtype.numpy)

    def columns(self, begin: int = 0, end: int | None = None) -> Array:
        """Return the columns of the entries from `begin` to before `end`, or of all; INT64."""
        xp = self.device.xp
        entries = xp.arange(begin, self.nvals if end is None else end, dtype=self.col_ptr.dtype)
        return (xp.searchsorted(self.col_ptr, entries, side="right") - 1).astype(np.int64)

    def column_range(self, j: int) -> tuple[int, int]:
        """Return where the entries of column `j` begin and end."""
        first, last = self.device.to_host(self.col_ptr[j : j + 2]).tolist()
        return first, last

    def kept(self, place: str, make: Callable[[], T]) -> T:
        """Return the workspace of this name, made at the first call."""
        if place not in self.cache:
            self.cache[place] = make()
        found: T = self.cache[place]
        return found

    def fact(self, name: str, compute: Callable[[], T]) -> T:
        """Return the fact of this name, computed at the first call."""
        if name not in self.facts:
            self.facts[name] = compute()
        found: T = self.facts[name]
        return found

    def with_values(self, dtype: DType, values: Array | None, iso: Any) -> CscMatrix:
        """Return a matrix of the same entries with other values; the index arrays are shared."""
        return CscMatrix(self.device, dtype, self.shape, self.col_ptr, self.row_idx, values, iso)

    def copy(self, dtype: DType) -> CscMatrix:
        """Return a copy, cast to `dtype`; index arrays, which do not change, are shared."""
        values = None if self.values is None else cast_array(self.device, self.values, dtype)
        iso = None if self.iso is None else cast_number(self.iso, dtype)
        copied = self.with_values(dtype, values, iso)
        copied.symmetric = self.symmetric or None  # a cast may make it so
        return copied
