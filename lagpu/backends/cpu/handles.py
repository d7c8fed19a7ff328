"""Handles of the cpu backend, and arguments of C calls: descriptors, index lists, scalars."""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

import numpy as np

from lagpu.backends.guard import out_of_memory
from lagpu.dtypes import DType
from lagpu.errors import BackendMismatch, BackendUnavailable, LagpuError, OutOfMemory

try:
    import graphblas as gb
    from suitesparse_graphblas import ffi, lib

    _SHORTAGE = gb.exceptions.OutOfMemory  # loads all of the library, which is lazy
    # python-graphblas raises the second when it has counted the entries of an invalid object.
    _LOSS = (gb.exceptions.InvalidObject, gb.exceptions.EmptyObject)
except ImportError as error:
    raise BackendUnavailable(
        f"cpu: {error}. Install it with: pip install python-graphblas"
    ) from error
except (MemoryError, OSError) as error:  # under `ulimit -v` a library may not fit
    reason = str(error).split(". ")[0] or "memory is short"
    raise BackendUnavailable(
        f"cpu: python-graphblas cannot be loaded: {reason}. Allow the process more memory."
    ) from error

__all__ = [
    "C_NAMES",
    "LOCK",
    "NULL",
    "Box",
    "GraphBLASError",
    "c_function",
    "c_scalar",
    "check",
    "count_entries",
    "descriptor",
    "ffi",
    "gb",
    "index_list",
    "is_lost",
    "lib",
    "method_descriptor",
    "named_error",
    "on_host",
    "store_as",
    "usual_forms",
]

Array = np.ndarray[Any, Any]
NULL = ffi.NULL
C_NAMES = {
    "BOOL": "bool",
    "INT32": "int32_t",
    "INT64": "int64_t",
    "UINT32": "uint32_t",
    "UINT64": "uint64_t",
    "FP32": "float",
    "FP64": "double",
}


class GraphBLASError(LagpuError, RuntimeError):
    """The C library refused a call that the front end had checked: a bug worth reporting."""


#: Held by every call of GraphBLAS: reading an object may finish its pending work, operators are
#: made on first use, and a fork between two calls finds nothing half done.
LOCK = threading.RLock()


def named_error(_backend: Any, error: Exception, method: str) -> LagpuError | None:
    """Return lagpu's error for one of NumPy or python-graphblas in a method of the backend."""
    if isinstance(error, (MemoryError, _SHORTAGE)):
        return out_of_memory(error, method, "cpu")
    if isinstance(error, _LOSS):
        return _lost(method)
    if isinstance(error, gb.exceptions.GraphblasException):
        return GraphBLASError(f"{method}: GraphBLAS says {error}. Report it as a bug.")
    return None


def _run_alone() -> None:
    """Let GraphBLAS use one thread in a forked process: OpenMP's others have stayed behind."""
    LOCK.release()
    gb.ss.config["nthreads"] = 1


os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=_run_alone)


class Box:
    """The cpu backend's handle of a vector or matrix: a python-graphblas object and its C handle.

    Attributes
    ----------
    gb : graphblas.Vector or graphblas.Matrix
        The object, which owns the handle.
    handle : cffi pointer
        ``GrB_Vector`` or ``GrB_Matrix``.
    dtype : DType
        Type of the values.
    size : int
        For a vector: its size; python-graphblas asks the library for it each time.
    symmetric : bool or None
        For a matrix: whether it equals its transpose, once known.
    counts : Counts or None
        For a matrix: its entries, and those of its rows and columns, once a product has asked.
    transposed : Box or None
        For a matrix that is not symmetric: its transpose, where it is kept as a second form.
    may_transpose : bool
        For a matrix: whether the second form may be made.
    search : Search or None
        For a vector: what the product that made it leaves for the choice of the next one.
    full : bool
        Whether GraphBLAS may use its full form for the object.
    has_hub : bool or None
        For a matrix: whether a row or a column has more than 256 entries, once a product has asked.
    mask_copy : graphblas.Vector, graphblas.Matrix or None
        The last copy that served as a mask in place of the object, kept while C uses it.
    """

    __slots__ = (
        "__weakref__",
        "counts",
        "dtype",
        "full",
        "gb",
        "handle",
        "has_hub",
        "mask_copy",
        "may_transpose",
        "search",
        "size",
        "symmetric",
        "transposed",
    )

    def __init__(self, obj: Any, dtype: DType) -> None:
        self.gb = obj
        self.handle = obj.gb_obj[0]
        self.dtype = dtype
        self.size = obj.shape[0] if obj.ndim == 1 else 0  # `size` would ask C
        self.symmetric: bool | None = None
        self.full = True
        self.has_hub: bool | None = None
        self.mask_copy: Any = None
        self.counts: Any = None
        self.transposed: Box | None = None
        self.may_transpose = True
        self.search: Any = None

    def become(self, other: Box) -> None:
        """Take over the object of another box, of the same type and shape."""
        self.gb, self.handle, self.full = other.gb, other.handle, other.full
        self.symmetric = self.has_hub = self.mask_copy = None
        self.counts = self.transposed = self.search = None

    @property
    def kind(self) -> str:
        """``"Vector"`` or ``"Matrix"``, as in the names of C functions."""
        return "Vector" if self.gb.ndim == 1 else "Matrix"

    @property
    def shape(self) -> tuple[int, ...]:
        """Size, or rows and columns."""
        found: tuple[int, ...] = self.gb.shape
        return found

    @property
    def width(self) -> int:
        """Bytes of a value; GraphBLAS does not report whether it stores one value for all."""
        return int(self.dtype.numpy.itemsize)


def check(info: int, what: str) -> None:
    """Turn a GraphBLAS status into an error."""
    if info == lib.GrB_OUT_OF_MEMORY:
        raise OutOfMemory(f"{what}: GraphBLAS ran out of memory.")
    if info == lib.GrB_INVALID_OBJECT:
        raise _lost(what)
    if info < 0:
        raise GraphBLASError(f"{what}: GraphBLAS returned status {info}. Report it as a bug.")


def _lost(what: str) -> OutOfMemory:
    """Return the error for an object that GraphBLAS left invalid when it could not write it."""
    return OutOfMemory(
        f"{what}: GraphBLAS ran out of memory when it wrote an object of this statement before, "
        "whose entries are lost. Make the object anew."
    )


def count_entries(v: Box) -> int:
    """Return the number of entries of a vector; loops ask at each level."""
    if info := lib.GrB_Vector_nvals(_COUNT, v.handle):
        check(info, "nvals")
    return int(_COUNT[0])


_COUNT = ffi.new("GrB_Index*")  # behind the lock, as every call


def store_as(x: Any, forms: int) -> None:
    """Restrict a python-graphblas vector or matrix to these storage forms."""
    kind = "Vector" if x.ndim == 1 else "Matrix"
    call = getattr(lib, f"GrB_{kind}_set_INT32")
    check(call(x.gb_obj[0], forms, lib.GxB_SPARSITY_CONTROL), f"{kind}: form")


def usual_forms(v: Box) -> int:
    """Return the storage forms among which SuiteSparse may choose for a vector."""
    return int(lib.GxB_AUTO_SPARSITY if v.full else lib.GxB_SPARSE | lib.GxB_BITMAP)


def is_lost(v: Box) -> bool:
    """Whether GraphBLAS has left a vector invalid."""
    return bool(lib.GrB_Vector_nvals(ffi.new("GrB_Index*"), v.handle) == lib.GrB_INVALID_OBJECT)


@functools.cache
def c_function(name: str, dtype: DType) -> Any:
    """Return the C function ``GrB_<name>_<type>``."""
    return getattr(lib, f"GrB_{name}_{dtype.name}")


@functools.cache
def descriptor(replace: bool, structure: bool, complement: bool, transpose: str) -> Any:
    """Return the predefined descriptor; `transpose` is ``""``, ``"T0"`` or ``"T1"``."""
    name = "R" * replace + "S" * structure + "C" * complement + transpose
    return getattr(lib, f"GrB_DESC_{name}") if name else NULL


@functools.cache
def method_descriptor(
    replace: bool, structure: bool, complement: bool, transpose: str, method: int
) -> Any:
    """Return the same descriptor with a method of products, made once."""
    handle = ffi.new("GrB_Descriptor*")
    check(lib.GrB_Descriptor_new(handle), "descriptor")
    mask = lib.GrB_STRUCTURE * structure + lib.GrB_COMP * complement
    for field, value in (
        (lib.GrB_OUTP, lib.GrB_REPLACE * replace),
        (lib.GrB_MASK, mask),
        (lib.GrB_INP0, lib.GrB_TRAN * (transpose == "T0")),
        (lib.GrB_INP1, lib.GrB_TRAN * (transpose == "T1")),
        (lib.GxB_AxB_METHOD, method),
    ):
        if value:
            check(lib.GrB_Descriptor_set_INT32(handle[0], value, field), "descriptor")
    _DESCRIPTORS.append(handle)
    return handle[0]


_DESCRIPTORS: list[Any] = []  # the cached ones, which their owners would free


def index_list(indices: Array | None, size: int) -> tuple[Any, int, Any]:
    """Return (C pointer, length, owner) of an index list; None means all."""
    if indices is None:
        return lib.GrB_ALL, size, None
    owner = np.ascontiguousarray(indices, np.uint64)
    return ffi.cast("GrB_Index*", ffi.from_buffer(owner)), len(owner), owner


def c_scalar(number: Any, dtype: DType) -> Box:
    """Return a GraphBLAS scalar."""
    box = Box(gb.Scalar(dtype.name, is_cscalar=False), dtype)
    check(c_function("Scalar_setElement", dtype)(box.handle, number.item()), "setElement")
    return box


def on_host(array: Any) -> Any:
    """Return a NumPy array, or raise for a device array, which is never copied silently."""
    if hasattr(array, "__cuda_array_interface__"):
        raise BackendMismatch("cpu: the array is on a GPU. Copy it first, e.g. with cupy.asnumpy.")
    return array
