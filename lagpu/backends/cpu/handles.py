"""Handles of python-graphblas objects, and its operators by our names."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from lagpu import errors
from lagpu.algebra import operators
from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator, Semiring, UnaryOp
from lagpu.backends.guard import out_of_memory
from lagpu.dtypes import DType

try:
    import graphblas as gb
    from graphblas.core.ss import context as contexts
    from suitesparse_graphblas import ffi, lib

    _SHORTAGE = gb.exceptions.OutOfMemory  # loads all of the library, which is lazy
    # python-graphblas raises the second when it has counted the entries of an invalid object.
    _LOSS = (gb.exceptions.InvalidObject, gb.exceptions.EmptyObject)
except (ImportError, MemoryError, OSError) as error:  # under `ulimit -v` a library may not fit
    if isinstance(error, ImportError) and "failed to map" not in str(error):
        raise errors.BackendUnavailable(
            f"cpu: {error}. Install it with: pip install python-graphblas"
        ) from error
    reason = str(error).split(". ")[0] or "memory is short"
    raise errors.BackendUnavailable(
        f"cpu: python-graphblas cannot be loaded: {reason}. Allow the process more memory."
    ) from error

__all__ = ["ffi", "gb", "lib"]  # and what is defined here

NULL = ffi.NULL
_C_NAMES = {"BOOL": "bool", "FP32": "float", "FP64": "double"}  # of others ``int32_t`` and so on


class GraphBLASError(errors.LagpuError, RuntimeError):
    """The C library refused a call that the front end had checked: a bug worth reporting."""


#: Held by every call of GraphBLAS: reading an object may finish its pending work, operators are
#: made on first use, and a fork between two calls finds nothing half done.
LOCK = threading.RLock()


def named_error(_backend: Any, error: Exception, method: str) -> errors.LagpuError | None:
    """Return lagpu's error for one of NumPy or python-graphblas in a method of the backend."""
    if isinstance(error, (MemoryError, _SHORTAGE)):
        return out_of_memory(error, method, "cpu")
    if isinstance(error, _LOSS):
        return _lost(method)
    if isinstance(error, gb.exceptions.GraphblasException):
        return GraphBLASError(f"{method}: GraphBLAS says {error}. Report it as a bug.")
    return None


def _run_alone() -> None:
    """Let GraphBLAS use one thread in a forked process: OpenMP's others are in the parent."""
    LOCK.release()
    gb.ss.config["nthreads"] = 1


os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=_run_alone)


class Box:
    """The cpu backend's handle of a vector or matrix: a python-graphblas object and its C handle.

    `kind` and `shape` are ``"Vector"`` or ``"Matrix"``, as in the names of C functions, and the
    size, or rows and columns; python-graphblas asks the library for them each time.
    """

    symmetric: bool | None = None  #: Whether a matrix equals its transpose, once known.
    full = True  #: Whether GraphBLAS may use its full form for the object.
    has_hub: bool | None = None  #: Whether a row or a column has more than 256 entries, once known.
    #: The last copy that served as a mask in place of the object, kept while C uses it.
    mask_copy: Any = None
    counts: Any = None  #: `Counts` of a matrix, once a product has needed them.
    transposed: Box | None = None  #: The transpose of a matrix as a second form.
    may_transpose = True  #: Whether that may be made.
    #: A matrix' rows as SciPy's csgraph reads them, by whether they are of it or its transpose.
    graphs: Mapping[bool, Any] = MappingProxyType({})
    long = False  #: Whether a loop with the matrix has been run by csgraph.
    stats: Any = None  #: `ProductStats` of the product that made a vector, for the next choice.

    def __init__(self, obj: Any, dtype: DType) -> None:
        self.gb = obj
        self.handle = obj.gb_obj[0]
        self.dtype = dtype
        self.shape: tuple[int, ...] = obj.shape
        self.kind = _KINDS[len(self.shape)]

    def become(self, other: Box) -> None:
        """Take over the object of another box, of the same type and shape."""
        self.gb, self.handle, self.full = other.gb, other.handle, other.full
        self.symmetric = self.has_hub = self.mask_copy = None
        self.counts = self.transposed = self.stats = None
        self.graphs, self.long = MappingProxyType({}), False

    @property
    def size(self) -> int:
        return self.shape[0]

    @property
    def width(self) -> int:
        """Bytes of a value; GraphBLAS does not report whether it stores one value for all."""
        return self.dtype.numpy.itemsize


_KINDS = "Scalar", "Vector", "Matrix"


def made(dtype: DType, *shape: int) -> Any:
    """Return a python-graphblas vector or matrix without entries, made by one call of C."""
    kind, their = _KINDS[len(shape)], _dtype(dtype)
    handle = ffi.new(f"GrB_{kind}*")
    check(method(kind, "new")(handle, their.gb_obj, *shape), "new")
    return getattr(gb, kind)._from_obj(handle, their, *shape, name="")


@functools.cache
def _dtype(dtype: DType) -> Any:
    return gb.dtypes.lookup_dtype(dtype.name)


@functools.cache
def method(kind: str, name: str) -> Any:
    """Return the C function ``GrB_<kind>_<name>`` of a box's kind."""
    return getattr(lib, f"GrB_{kind}_{name}")


def check(info: int, what: str) -> None:
    if not info:
        return
    if info == lib.GrB_OUT_OF_MEMORY:
        raise errors.OutOfMemory(f"{what}: GraphBLAS ran out of memory.")
    if info == lib.GrB_INVALID_OBJECT:
        raise _lost(what)
    if info < 0:
        raise GraphBLASError(f"{what}: GraphBLAS returned status {info}. Report it as a bug.")


def _lost(what: str) -> errors.OutOfMemory:
    """Return the error for an object that GraphBLAS left invalid when it could not write it."""
    return errors.OutOfMemory(
        f"{what}: GraphBLAS ran out of memory when it wrote an object of this statement before, "
        "whose entries are lost. Make the object again."
    )


def by_threads(count: int, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function whose C calls take at most `count` threads.

    With 0 they take as many as the user allows, one for each `CHUNK` of work. The user's context,
    if one is engaged, is engaged again afterwards.
    """
    theirs, allowed = contexts.threadlocal.context, allowed_threads()
    ours = _context(min(count, allowed), 1) if count else _context(allowed, CHUNK)
    lib.GxB_Context_engage(ours)
    _ENGAGED.append(ours)
    try:
        return call(*arguments)
    finally:
        _ENGAGED.pop()
        if _ENGAGED:
            lib.GxB_Context_engage(_ENGAGED[-1])
        elif theirs is contexts.global_context:
            lib.GxB_Context_disengage(ours)
        else:
            lib.GxB_Context_engage(theirs._carg)


def allowed_threads() -> int:
    """Return the threads that a statement may take: those of the user's context or of OpenMP."""
    theirs = contexts.threadlocal.context._carg
    check(lib.GxB_Context_get_INT32(theirs, lib.GxB_CONTEXT_NTHREADS, _ALLOWED), "threads")
    return int(_ALLOWED[0])


#: Entries of a vector for each thread of a statement. SuiteSparse takes one for 65,536, which is
#: less work than waiting for a thread where other programs are busy (docs/design/cpu.md).
CHUNK = 1 << 20
_ALLOWED = ffi.new("int32_t*")
_ENGAGED: list[Any] = []  # contexts of `by_threads`, used under the lock


@functools.cache
def _context(threads: int, chunk: int) -> Any:
    """Return a context, which is not engaged."""
    handle = ffi.new("GxB_Context*")
    check(lib.GxB_Context_new(handle), "context")
    check(lib.GxB_Context_set_INT32(handle[0], lib.GxB_CONTEXT_NTHREADS, threads), "context")
    check(lib.GxB_Context_set_FP64(handle[0], lib.GxB_CONTEXT_CHUNK, chunk), "context")
    KEPT.append(handle)
    return handle[0]


def count_entries(x: Box) -> int:
    """Return the number of entries; loops ask at each level."""
    if info := method(x.kind, "nvals")(COUNT, x.handle):
        check(info, "nvals")
    return int(COUNT[0])


COUNT = ffi.new("GrB_Index*")  # used under the lock, as every call


def finish(x: Box) -> None:
    """Have GraphBLAS finish its pending work on a vector or matrix."""
    check(method(x.kind, "wait")(x.handle, lib.GrB_MATERIALIZE), "wait")


def store_as(x: Any, forms: int) -> None:
    check(method(_KINDS[x.ndim], "set_INT32")(x.gb_obj[0], forms, lib.GxB_SPARSITY_CONTROL), "form")


def usual_forms(v: Box) -> int:
    """Return the storage forms among which SuiteSparse may choose for a vector."""
    return int(lib.GxB_AUTO_SPARSITY if v.full else lib.GxB_SPARSE | lib.GxB_BITMAP)


@functools.cache
def place_for(dtype: DType) -> Any:
    """Return memory for one C number of a type, used under the lock."""
    return ffi.new(f"{_C_NAMES.get(dtype.name, f'{dtype.name.lower()}_t')}*")


@functools.cache
def c_function(name: str, dtype: DType) -> Any:
    """Return the C function ``GrB_<name>_<type>``."""
    return getattr(lib, f"GrB_{name}_{dtype.name}")


@functools.cache
def descriptor(
    replace: bool, structure: bool, complement: bool, transpose: str = "", method: int = 0
) -> Any:
    handle = ffi.new("GrB_Descriptor*")
    check(lib.GrB_Descriptor_new(handle), "descriptor")
    for field, value in (
        (lib.GrB_OUTP, lib.GrB_REPLACE * replace),
        (lib.GrB_MASK, lib.GrB_STRUCTURE * structure + lib.GrB_COMP * complement),
        (lib.GrB_INP0, lib.GrB_TRAN * ("T0" in transpose)),
        (lib.GrB_INP1, lib.GrB_TRAN * ("T1" in transpose)),
        (lib.GxB_AxB_METHOD, method),
    ):
        if value:
            check(lib.GrB_Descriptor_set_INT32(handle[0], value, field), "descriptor")
    KEPT.append(handle)
    return handle[0]


def index_list(indices: np.ndarray[Any, Any] | None, size: int) -> tuple[Any, int, Any]:
    if indices is None:
        return lib.GrB_ALL, size, None
    owner = np.ascontiguousarray(indices, np.uint64)
    return ffi.cast("GrB_Index*", ffi.from_buffer(owner)), len(owner), owner


def on_host(array: Any) -> Any:
    """Return a NumPy array, or raise for a device array, which is never copied silently."""
    if hasattr(array, "__cuda_array_interface__"):
        fact = "cpu: the array is on a GPU. Copy it first, e.g. with cupy.asnumpy."
        raise errors.BackendMismatch(fact)
    return array


# ------------- Operators, monoids and semirings of the C library for those of lagpu, each made once
KEPT: list[Any] = []  # objects to which GraphBLAS has pointers


def _compiled(op: Operator, domain: DType, result: DType) -> Any:
    """Return a typed python-graphblas operator, compiled from a function of numbers."""
    try:
        import numba
    except ImportError as error:
        fact = f"cpu: {op!r} needs Numba. Install it with: pip install numba"
        raise errors.BackendUnavailable(fact) from error
    try:
        return _registered(numba, op, domain, result)[domain.name]
    except Exception as error:  # of Numba, or of the function itself
        if not op.of_numbers:
            fact = f"cpu: {op!r} is in no semiring of {domain} here. Add its results up afterwards."
            raise errors.NotSupported(fact) from error
        fact = f"cpu: Numba does not compile {op!r} for {domain}. It says:\n{error}"
        raise errors.KernelCompileError(fact) from error


def _registered(numba: Any, op: Operator, domain: DType, result: DType) -> Any:
    """Return an untyped python-graphblas operator of a function that Numba compiles when typed."""
    function, read, write = op.numpy, domain.numpy.type, _cast(numba, result)
    own, at = _cast(numba, op.result(domain)), np.int64  # positions arrive without a sign
    if op.domain is operators.arithmetic and domain.numpy.kind == "i" and not op.of_numbers:
        read = np.dtype(f"u{domain.numpy}").type  # signed integers do not wrap in Numba
    # Numba calls a ufunc, but does not compile one. In Python's error model 1 / 0 would raise.
    ours = (lambda *x: function(*x)) if isinstance(function, np.ufunc) else function
    inner = numba.njit(ours, error_model="numpy")
    of_numbers: dict[type[Operator], Any] = {
        UnaryOp: lambda x: write(own(inner(read(x)))),
        BinaryOp: lambda x, y: write(own(inner(read(x), read(y)))),
        IndexUnaryOp: lambda x, i, j, y: write(own(inner(read(x), at(i), at(j), read(y)))),
    }
    kind = type(op)
    return getattr(gb, _MODULES[kind]).register_anonymous(of_numbers[kind], op.name, is_udt=True)


def _cast(numba: Any, dtype: DType) -> Any:
    """Return the cast of a number in Numba's code, of a float to an integer by saturation."""
    kind: Any = dtype.numpy.type
    if dtype.is_float or dtype.is_bool:
        return kind
    least, most = kind(np.iinfo(kind).min), kind(np.iinfo(kind).max)
    cast, whole, cut = (  # without annotations, which Numba compares
        lambda x: NotImplemented,
        lambda x: kind(x),
        lambda x: kind(0) if x != x else least if x <= least else most if x >= most else kind(x),
    )
    numba.extending.overload(cast)(lambda x: cut if isinstance(x, numba.types.Float) else whole)
    return cast


_MODULES = {UnaryOp: "unary", BinaryOp: "binary", IndexUnaryOp: "indexunary"}  # their modules


@functools.cache
def typed_operator(op: Operator, domain: DType) -> Any:
    if op.of_numbers:
        return _compiled(op, domain, op.result(domain))
    module = getattr(gb, _MODULES[type(op)])
    if isinstance(op, BinaryOp) and op.positional:
        return getattr(module.ss, op.name)["INT64"]
    if isinstance(op, IndexUnaryOp) and not op.uses_value:
        return getattr(module, op.name)["INT64"]
    extended = getattr(module, "ss", module)  # what the C library has beyond GraphBLAS' standard
    return getattr(extended if op.name in dir(extended) else module, op.name)[domain.name]


@functools.cache
def binary_operator(op: BinaryOp, left: DType, right: DType) -> Any:
    return typed_operator(op, op.types(left, right)[0]).gb_obj


@functools.cache
def c_monoid(monoid: Monoid, dtype: DType) -> Any:
    domain = monoid.types(dtype)[0]
    found = None if monoid.registered else getattr(gb.monoid, monoid.name)
    if found is not None and gb.dtypes.lookup_dtype(domain.name) in found.types:
        return found[domain.name].gb_obj
    values = [of(domain).item() for of in (monoid.identity, monoid.terminal) if of is not None]
    new = f"{'GrB_Monoid' if len(values) == 1 else 'GxB_Monoid_terminal'}_new_{domain.name}"
    handle = ffi.new("GrB_Monoid*")
    operator = typed_operator(monoid.op, domain).gb_obj
    check(getattr(lib, new)(handle, operator, *values), f"monoid {monoid.name}")
    KEPT.append(handle)
    return handle[0]


@functools.cache
def c_semiring(semiring: Semiring, domain: DType) -> Any:
    """Return the C semiring whose multiplication works on `domain`."""
    add, multiply = semiring.monoid, semiring.multiply
    if not add.registered and not multiply.of_numbers:
        kind = gb.dtypes.lookup_dtype("INT64" if multiply.positional else domain.name)
        found = getattr(gb.semiring.ss if multiply.positional else gb.semiring, semiring.name, None)
        if found is not None and kind in found.types:
            return found[kind].gb_obj
    product = multiply.result(domain)
    result = add.types(product)[1]
    if product is result:
        times = typed_operator(multiply, domain)
    elif multiply.positional:
        fact = f"cpu: {semiring!r} adds {result}, and GraphBLAS' {multiply.name} gives {product}."
        raise errors.NotSupported(fact)
    else:  # GraphBLAS does not cast a product; a function compiled with the cast does
        times = _compiled(multiply, domain, result)
    handle = ffi.new("GrB_Semiring*")
    check(lib.GrB_Semiring_new(handle, c_monoid(add, result), times.gb_obj), "semiring")
    KEPT.append(handle)
    return handle[0]
