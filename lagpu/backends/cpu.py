"""The cpu backend: each operation is one GraphBLAS C call through python-graphblas; the oracle.

Objects, operators and user-defined functions are python-graphblas'. The calls go straight to the
C library it carries, because its own checks and dispatch, which lagpu's front end has already
made, take three times as long as a BFS level on a road network (docs/design/cpu.md).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from lagpu.algebra import unary
from lagpu.backends.base import Applied, Descriptor, Product, Statement
from lagpu.backends.measure import Meter
from lagpu.dtypes import DType, lookup
from lagpu.errors import (
    BackendMismatch,
    BackendUnavailable,
    InvalidValue,
    LagpuError,
    NotSupported,
    OutOfMemory,
)
from lagpu.memory import available_bytes
from lagpu.operators import BinaryOp, IndexUnaryOp, Monoid, Operator, Semiring, UnaryOp

try:
    import graphblas as gb
    from suitesparse_graphblas import ffi, lib
except ImportError as error:
    raise BackendUnavailable(
        f"cpu: {error}. Install it with: pip install python-graphblas"
    ) from error

__all__ = ["CpuBackend", "make"]

Array = np.ndarray[Any, Any]
NULL = ffi.NULL


class GraphBLASError(LagpuError, RuntimeError):
    """The C library refused a call that the front end had checked: a bug worth reporting."""


class Box:
    """A python-graphblas object with its C handle at hand.

    Attributes
    ----------
    gb : graphblas.Vector or graphblas.Matrix
        The object, which owns the handle.
    handle : cffi pointer
        ``GrB_Vector`` or ``GrB_Matrix``.
    dtype : DType
        Type of the values.
    symmetric : bool or None
        For a matrix: whether it equals its transpose, once known.
    degrees : dict
        For a matrix: entries a row (True) and a column (False), once a trace has asked.
    full : bool
        For a vector: whether GraphBLAS may store it as a full one.
    twin : graphblas.Vector, graphblas.Matrix or None
        The last copy that served as a mask in its place, kept while the C library uses it.
    """

    __slots__ = ("degrees", "dtype", "full", "gb", "handle", "symmetric", "twin")

    def __init__(self, obj: Any, dtype: DType) -> None:
        self.gb = obj
        self.handle = obj.gb_obj[0]
        self.dtype = dtype
        self.symmetric: bool | None = None
        self.full = True
        self.twin: Any = None
        self.degrees: dict[bool, Any] = {}

    @property
    def width(self) -> int:
        """Bytes of a value; a stored one, as GraphBLAS tells nobody which it keeps once."""
        return int(self.dtype.numpy.itemsize)


# ------------------------------------------------------------------------------ C operators

_keep_alive: list[Any] = []  # what GraphBLAS holds pointers to


@functools.cache
def _function(name: str, dtype: DType) -> Any:
    """Return the C function ``GrB_<name>_<type>``."""
    return getattr(lib, f"GrB_{name}_{dtype.name}")


@functools.cache
def _descriptor(replace: bool, structure: bool, complement: bool, transpose: str) -> Any:
    """Return the predefined descriptor; `transpose` is ``""``, ``"T0"`` or ``"T1"``."""
    name = "R" * replace + "S" * structure + "C" * complement + transpose
    return getattr(lib, f"GrB_DESC_{name}") if name else NULL


def _compiled(op: Operator, domain: DType, result: DType, arity: int) -> Any:
    """Return python-graphblas' operator, not yet typed, of a NumPy function of numbers.

    Its result is exactly `result`, whatever Numba would infer.
    """
    try:
        import numba
    except ImportError as error:
        raise BackendUnavailable(
            f"cpu: {op!r} needs Numba. Install it with: pip install numba"
        ) from error
    function, read, write = op.numpy, domain.numpy.type, result.numpy.type
    if isinstance(function, np.ufunc):  # Numba calls a ufunc, but does not compile one alone
        inner = numba.njit(lambda *operands: function(*operands))
    else:
        inner = numba.njit(function)
    if arity == 1:
        return gb.unary.register_anonymous(lambda x: write(inner(read(x))), op.name, is_udt=True)
    if arity == 2:
        return gb.binary.register_anonymous(
            lambda x, y: write(inner(read(x), read(y))), op.name, is_udt=True
        )
    return gb.indexunary.register_anonymous(
        lambda x, i, j, y: write(inner(read(x), i, j, read(y))), op.name, is_udt=True
    )


@functools.cache
def _operator(op: Operator, domain: DType) -> Any:
    """Return python-graphblas' typed operator."""
    kinds: dict[type[Operator], tuple[Any, int]] = {
        UnaryOp: (gb.unary, 1),
        BinaryOp: (gb.binary, 2),
        IndexUnaryOp: (gb.indexunary, 4),
    }
    module, arity = kinds[type(op)]
    if op.body:
        return _compiled(op, domain, op.result(domain), arity)[domain.name]
    if isinstance(op, BinaryOp) and op.positional:
        return getattr(module.ss, op.name)["INT64"]
    if isinstance(op, IndexUnaryOp) and not op.uses_value:
        return getattr(module, op.name)["INT64"]
    return getattr(module, op.name)[domain.name]


@functools.cache
def _binary(op: BinaryOp, left: DType, right: DType) -> Any:
    """Return the C operator for operands of these types."""
    return _operator(op, op.types(left, right)[0]).gb_obj


def _accumulator(w: Box, accum: BinaryOp | None, result: DType) -> Any:
    """Return the C operator that adds a result to `w`, or NULL.

    Adding to a full vector, SuiteSparse 9.4.5 is wrong in three ways that tests/test_cpu.py shows:
    a few masked entries end the process, values that need a cast are read without it, and sums of
    no products fail. So a vector that something is added to is stored as sparse or bitmap.
    """
    if accum is None:
        return NULL
    if w.full:
        form = lib.GxB_SPARSE | lib.GxB_BITMAP
        _check(lib.GrB_Vector_set_INT32(w.handle, form, lib.GxB_SPARSITY_CONTROL), "accumulate")
        w.full = False
    return _binary(accum, w.dtype, result)


def _mask(desc: Descriptor) -> Any:
    """Return the mask's C handle, or NULL.

    SuiteSparse 9.4.5 ends the process when something is added to a sparse output at a mask that is
    stored as a full one (tests/test_cpu.py): the mask is then a sparse copy.
    """
    mask = desc.mask
    if mask is None:
        return NULL
    if desc.accum is None or mask.gb.nvals < math.prod(mask.gb.shape):
        return mask.handle
    mask.twin = mask.gb.dup()
    handle = mask.twin.gb_obj[0]
    kind = "Vector" if mask.gb.ndim == 1 else "Matrix"
    call = getattr(lib, f"GrB_{kind}_set_INT32")
    _check(call(handle, lib.GxB_SPARSE, lib.GxB_SPARSITY_CONTROL), "mask")
    return handle


@functools.cache
def _monoid(monoid: Monoid, dtype: DType) -> Any:
    """Return the C monoid for operands of this type."""
    domain = monoid.types(dtype)[0]
    if not monoid.registered:
        return getattr(gb.monoid, monoid.name)[domain.name].gb_obj
    values = [monoid.identity(domain).item()]
    if monoid.terminal is not None:
        values.append(monoid.terminal(domain).item())
    new = f"{'GrB_Monoid' if len(values) == 1 else 'GxB_Monoid_terminal'}_new_{domain.name}"
    handle = ffi.new("GrB_Monoid*")
    operator = _operator(monoid.op, domain).gb_obj
    _check(getattr(lib, new)(handle, operator, *values), f"monoid {monoid.name}")
    _keep_alive.append(handle)
    return handle[0]


@functools.cache
def _semiring(semiring: Semiring, domain: DType) -> Any:
    """Return the C semiring whose multiplication works on `domain`."""
    add, multiply = semiring.monoid, semiring.multiply
    if not add.registered and not multiply.body:
        module = gb.semiring.ss if multiply.positional else gb.semiring
        kind = gb.dtypes.lookup_dtype("INT64" if multiply.positional else domain.name)
        found = getattr(module, semiring.name, None)
        if found is not None and kind in found.types:
            return found[kind].gb_obj
    product = multiply.result(domain)
    result = add.types(product)[1]
    if product is result:
        times = _operator(multiply, domain)
    elif multiply.positional:
        raise NotSupported(
            f"cpu: {semiring!r} adds {result}, and GraphBLAS' {multiply.name} gives {product}."
        )
    else:  # GraphBLAS does not cast a product; a function compiled with the cast does
        times = _compiled(multiply, domain, result, 2)[domain.name]
    handle = ffi.new("GrB_Semiring*")
    info = lib.GrB_Semiring_new(handle, _monoid(add, result), times.gb_obj)
    _check(info, f"semiring {semiring.name}")
    _keep_alive.append(handle)
    return handle[0]


def _check(info: int, what: str) -> None:
    """Turn a GraphBLAS status into an error."""
    if info == lib.GrB_OUT_OF_MEMORY:
        raise OutOfMemory(f"{what}: GraphBLAS ran out of memory.")
    if info < 0:
        raise GraphBLASError(f"{what}: GraphBLAS status {info}.")


def _pointer(indices: Array | None, size: int) -> tuple[Any, int, Any]:
    """Return (C pointer, length, owner) of an index list; None means all."""
    if indices is None:
        return lib.GrB_ALL, size, None
    owner = np.ascontiguousarray(indices, np.uint64)
    return ffi.cast("GrB_Index*", ffi.from_buffer(owner)), len(owner), owner


def _host(array: Any) -> Any:
    """Return a NumPy array; a device array does not move by itself."""
    if hasattr(array, "__cuda_array_interface__"):
        raise BackendMismatch("cpu: the array is on a GPU. Copy it first, e.g. with cupy.asnumpy.")
    return array


class CpuBackend:
    """python-graphblas: the oracle, and the default where there is no GPU."""

    name = "cpu"
    recorder = None

    def run_loop(self, statements: list[Statement], until_empty: Box, times: int | None) -> bool:
        """See `Backend`: SuiteSparse runs each statement by itself."""
        return False

    def block_bytes(self, dtype: DType, nrows: int, ncols: int) -> None:
        """See `Backend`: there are no blocks."""

    def meter(self) -> Meter:
        """See `Backend`."""
        from lagpu.backends.cpumeter import CpuMeter

        return CpuMeter()

    def explain(self, A: Any, u: Any, how: Product) -> list[str]:
        """See `Backend`."""
        return ["SuiteSparse:GraphBLAS chooses its own method and does not tell"]

    def free_bytes(self) -> int:
        """See `Backend`."""
        return available_bytes()

    # ------------------------------------------------------------------ objects: vectors
    def vector(self, dtype: DType, size: int) -> Box:
        """See `Backend`."""
        return Box(gb.Vector(dtype.name, size), dtype)

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> Box:
        """See `Backend`."""
        if np.ndim(values):
            v = gb.Vector.from_coo(_host(indices), _host(values), dtype.name, size=size)
            return Box(v, dtype)
        out = self.vector(dtype, size)
        if len(indices):
            self.assign_scalar(out, Descriptor(), dtype.numpy.type(values), _host(indices))
        return out

    def vector_to_coo(self, v: Box) -> tuple[Array, Array]:
        """See `Backend`."""
        indices, values = v.gb.to_coo()
        return indices.astype(np.int64, copy=False), values

    def vector_values(self, v: Box) -> Array:
        """See `Backend`."""
        return self.vector_to_coo(v)[1]

    def vector_head(self, v: Box, count: int) -> tuple[Array, Array]:
        """See `Backend`."""
        indices, values = v.gb.ss.head(count, sort=True)
        return indices[:count].astype(np.int64, copy=False), values[:count]

    def vector_form(self, v: Box) -> str:
        """See `Backend`: SuiteSparse may store an object otherwise after each operation."""
        return str(v.gb.ss.format) + ", iso" * bool(v.gb.nvals and v.gb.ss.is_iso)

    def vector_dup(self, v: Box, dtype: DType) -> Box:
        """See `Backend`."""
        return Box(v.gb.dup(dtype.name), dtype)

    def vector_nvals(self, v: Box) -> int:
        """See `Backend`."""
        lib.GrB_Vector_nvals(_COUNT, v.handle)
        return int(_COUNT[0])

    def vector_wait(self, v: Box) -> None:
        """See `Backend`."""
        _check(lib.GrB_Vector_wait(v.handle, lib.GrB_MATERIALIZE), "wait")

    def vector_get(self, v: Box, i: int) -> Any:
        """See `Backend`."""
        return self._get("Vector", v, i)

    def vector_set(self, v: Box, i: int, value: Any) -> None:
        """See `Backend`."""
        _check(_function("Vector_setElement", v.dtype)(v.handle, value.item(), i), "setElement")

    def vector_remove(self, v: Box, i: int) -> None:
        """See `Backend`."""
        _check(lib.GrB_Vector_removeElement(v.handle, i), "removeElement")

    def vector_clear(self, v: Box) -> None:
        """See `Backend`."""
        v.gb.clear()

    def vector_resize(self, v: Box, size: int) -> None:
        """See `Backend`."""
        v.gb.resize(size)

    def vector_isequal(self, u: Box, v: Box) -> bool:
        """See `Backend`."""
        return bool(u.gb.isequal(v.gb))

    # ----------------------------------------------------------------- objects: matrices
    def matrix_from_coo(
        self,
        rows: Any,
        cols: Any,
        values: Any,
        dtype: DType,
        shape: tuple[int, int],
        dup_op: BinaryOp | None,
    ) -> Box:
        """See `Backend`."""
        if np.ndim(values) == 0:  # GraphBLAS takes no dup_op beside a scalar
            values = np.broadcast_to(dtype.numpy.type(values), len(rows))
        dup = None if dup_op is None else _operator(dup_op, dup_op.types(dtype)[0])
        try:
            A = gb.Matrix.from_coo(
                _host(rows), _host(cols), _host(values), dtype.name,
                nrows=shape[0], ncols=shape[1], dup_op=dup,
            )  # fmt: skip
        except ValueError as error:
            twice = "from_coo: an entry is given twice. Give dup_op=, e.g. binary.plus."
            raise InvalidValue(twice) from error
        return Box(A, dtype)

    def matrix_from_csc(
        self, col_ptr: Any, row_idx: Any, values: Any, dtype: DType, shape: tuple[int, int]
    ) -> Box:
        """See `Backend`."""
        if np.ndim(values) == 0:
            values = dtype.numpy.type(values)
        A = gb.Matrix.from_csc(
            _host(col_ptr), _host(row_idx), _host(values), dtype.name, nrows=shape[0]
        )
        A.ss.config["format"] = "by_row"  # the form in which a sparse frontier pushes
        return Box(A, dtype)

    def matrix_to_csc(self, A: Box) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        ptr, idx, values = A.gb.to_csc()
        return ptr.astype(np.int64, copy=False), idx.astype(np.int64, copy=False), values

    def matrix_corner(self, A: Box, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        rows, cols, values = A.gb[:nrows, :ncols].new().to_coo()
        return rows.astype(np.int64, copy=False), cols.astype(np.int64, copy=False), values

    matrix_form = vector_form

    def matrix_dup(self, A: Box, dtype: DType) -> Box:
        """See `Backend`."""
        return Box(A.gb.dup(dtype.name), dtype)

    def matrix_nvals(self, A: Box) -> int:
        """See `Backend`."""
        return int(A.gb.nvals)

    def matrix_get(self, A: Box, i: int, j: int) -> Any:
        """See `Backend`."""
        return self._get("Matrix", A, i, j)

    def _get(self, kind: str, x: Box, *where: int) -> Any:
        value = ffi.new(f"{_C_NAMES[x.dtype.name]}*")
        info = _function(f"{kind}_extractElement", x.dtype)(value, x.handle, *where)
        if info == lib.GrB_NO_VALUE:
            return None
        _check(info, "extractElement")
        return value[0]

    def matrix_isequal(self, A: Box, B: Box) -> bool:
        """See `Backend`."""
        return bool(A.gb.isequal(B.gb))

    def matrix_transpose(self, A: Box) -> Box:
        """See `Backend`."""
        return Box(A.gb.T.new(), A.dtype)

    def matrix_apply(self, A: Box, op: Operator, how: Applied) -> Box:
        """See `Backend`."""
        C = gb.Matrix(how.result.name, A.gb.nrows, A.gb.ncols)
        out = Box(C, how.result)
        self._apply("Matrix", out, NULL, NULL, NULL, A, op, how)
        return out

    def matrix_select(self, A: Box, op: IndexUnaryOp, thunk: Any) -> Box:
        """See `Backend`."""
        out = Box(gb.Matrix(A.dtype.name, A.gb.nrows, A.gb.ncols), A.dtype)
        if _compares_in_type_of_entries(op, A, thunk):
            self._select("Matrix", out, NULL, NULL, NULL, A, op, thunk)
        else:
            kept = self.matrix_select(self.matrix_dup(A, lookup(thunk.dtype)), op, thunk)
            shape = (lib.GrB_ALL, A.gb.nrows, lib.GrB_ALL, A.gb.ncols)
            where = (out.handle, kept.handle, NULL, A.handle, *shape, lib.GrB_DESC_S)
            _check(lib.GrB_Matrix_assign(*where), "select")
        return out

    def matrix_from_diag(self, v: Box, k: int) -> Box:
        """See `Backend`."""
        return Box(v.gb.diag(k), v.dtype)

    def matrix_diag(self, A: Box, k: int) -> Box:
        """See `Backend`."""
        return Box(A.gb.diag(k), A.dtype)

    def matrix_is_symmetric(self, A: Box) -> bool:
        """See `Backend`."""
        if A.symmetric is None:
            A.symmetric = bool(A.gb.isequal(A.gb.T.new()))
        return A.symmetric

    def matrix_turnable(self, A: Any, allowed: bool | None) -> bool:
        """See `Backend`."""
        if allowed is not None:
            raise NotSupported("orientation: SuiteSparse:GraphBLAS keeps the forms it likes.")
        return True

    def matrix_reduce(self, A: Box, monoid: Monoid) -> Any:
        """See `Backend`."""
        return self._reduce("Matrix", A, monoid) if A.gb.nvals else None

    # --------------------------------------------------------- operations: write a vector
    def mxv(self, w: Box, desc: Descriptor, A: Box, u: Box, how: Product) -> None:
        """See `Backend`."""
        if how.kernel or how.policy:
            raise NotSupported(
                f"cpu: SuiteSparse chooses its own kernels, not {how.kernel or how.policy!r}. "
                "Leave kernel= and policy= out."
            )
        _, structure, complement, accum, replace = desc
        semiring = _semiring(how.semiring, how.domain)
        target = _mask(desc)
        plus = _accumulator(w, accum, how.result)
        if how.flip:
            d = _descriptor(replace, structure, complement, "" if how.transpose else "T1")
            info = lib.GrB_vxm(w.handle, target, plus, semiring, u.handle, A.handle, d)
        else:
            d = _descriptor(replace, structure, complement, "T0" if how.transpose else "")
            info = lib.GrB_mxv(w.handle, target, plus, semiring, A.handle, u.handle, d)
        if info:
            _check(info, "mxv")

    def ewise_add(self, w: Box, desc: Descriptor, u: Box, v: Box, op: BinaryOp) -> None:
        """See `Backend`."""
        self._ewise(lib.GrB_Vector_eWiseAdd_BinaryOp, w, desc, u, v, op)

    def ewise_mult(self, w: Box, desc: Descriptor, u: Box, v: Box, op: BinaryOp) -> None:
        """See `Backend`."""
        self._ewise(lib.GrB_Vector_eWiseMult_BinaryOp, w, desc, u, v, op)

    def _ewise(self, call: Any, w: Box, desc: Descriptor, u: Box, v: Box, op: BinaryOp) -> None:
        mask, accum, d = self._how(w, desc, op.types(u.dtype, v.dtype)[1])
        operator = _binary(op, u.dtype, v.dtype)
        if mask is NULL and accum is NULL and w is not u and w is not v:
            # SuiteSparse 9.4.5 writes out of bounds of a full vector of equal values.
            _check(lib.GrB_Vector_clear(w.handle), "clear")
        _check(call(w.handle, mask, accum, operator, u.handle, v.handle, d), "ewise")

    def ewise_union(
        self,
        w: Box,
        desc: Descriptor,
        u: Box,
        v: Box,
        op: BinaryOp,
        defaults: tuple[Any, Any],
    ) -> None:
        """See `Backend`."""
        domain, result = op.types(u.dtype, v.dtype)
        mask, accum, d = self._how(w, desc, result)
        left, right = (_scalar(x, domain) for x in defaults)
        info = lib.GxB_Vector_eWiseUnion(
            w.handle, mask, accum, _operator(op, domain).gb_obj,
            u.handle, left.handle, v.handle, right.handle, d,
        )  # fmt: skip
        _check(info, "ewise_union")

    def apply(self, w: Box, desc: Descriptor, u: Box, op: Operator, how: Applied) -> None:
        """See `Backend`."""
        mask, accum, d = self._how(w, desc, how.result)
        self._apply("Vector", w, mask, accum, d, u, op, how)

    def _apply(
        self, kind: str, w: Box, mask: Any, accum: Any, d: Any, u: Box, op: Operator, how: Applied
    ) -> None:
        operator = _operator(op, how.domain).gb_obj
        if isinstance(op, UnaryOp):
            info = getattr(lib, f"GrB_{kind}_apply")(w.handle, mask, accum, operator, u.handle, d)
        elif how.left is not None:
            call = _function(f"{kind}_apply_BinaryOp1st", how.domain)
            info = call(w.handle, mask, accum, operator, how.left.item(), u.handle, d)
        else:
            name = "BinaryOp2nd" if isinstance(op, BinaryOp) else "IndexOp"
            call = _function(f"{kind}_apply_{name}", how.domain)
            info = call(w.handle, mask, accum, operator, u.handle, how.right.item(), d)
        _check(info, "apply")

    def select(self, w: Box, desc: Descriptor, u: Box, op: IndexUnaryOp, thunk: Any) -> None:
        """See `Backend`."""
        if _compares_in_type_of_entries(op, u, thunk):
            mask, accum, d = self._how(w, desc, u.dtype)
            self._select("Vector", w, mask, accum, d, u, op, thunk)
        else:
            kept = self.vector_dup(u, lookup(thunk.dtype))
            self.select(kept, Descriptor(), kept, op, thunk)
            chosen = self.vector(u.dtype, u.gb.size)
            self.assign(chosen, Descriptor(kept), u, None)
            self.assign(w, desc, chosen, None)

    def _select(
        self, kind: str, w: Box, mask: Any, accum: Any, d: Any, u: Box, op: IndexUnaryOp, thunk: Any
    ) -> None:
        domain = lookup(thunk.dtype)
        operator = _operator(op, domain).gb_obj
        call = _function(f"{kind}_select", domain)
        _check(call(w.handle, mask, accum, operator, u.handle, thunk.item(), d), "select")

    def assign_scalar(self, w: Box, desc: Descriptor, value: Any, indices: Array | None) -> None:
        """See `Backend`."""
        mask, accum, d = self._how(w, desc, w.dtype)
        where, count, _owner = _pointer(indices, w.gb.size)
        call = _function("Vector_assign", w.dtype)
        _check(call(w.handle, mask, accum, value.item(), where, count, d), "assign")

    def assign(self, w: Box, desc: Descriptor, u: Box, indices: Array | None) -> None:
        """See `Backend`."""
        if _crashes_on_full(desc) and self.vector_nvals(u) == u.gb.size:
            if indices is not None:
                u, given = self.vector(u.dtype, w.gb.size), u
                self.assign(u, Descriptor(), given, indices)
            self.apply(w, desc, u, unary.identity, Applied(u.dtype, u.dtype))
            return
        mask, accum, d = self._how(w, desc, u.dtype)
        where, count, _owner = _pointer(indices, w.gb.size)
        _check(lib.GrB_Vector_assign(w.handle, mask, accum, u.handle, where, count, d), "assign")

    def extract(self, w: Box, desc: Descriptor, u: Box, indices: Array | None) -> None:
        """See `Backend`."""
        mask, accum, d = self._how(w, desc, u.dtype)
        where, count, _owner = _pointer(indices, u.gb.size)
        _check(lib.GrB_Vector_extract(w.handle, mask, accum, u.handle, where, count, d), "extract")

    def extract_column(self, w: Box, desc: Descriptor, A: Box, j: int, transpose: bool) -> None:
        """See `Backend`."""
        mask, accum, d = self._how(w, desc, A.dtype, "T0" if transpose else "")
        size = A.gb.ncols if transpose else A.gb.nrows
        info = lib.GrB_Col_extract(w.handle, mask, accum, A.handle, lib.GrB_ALL, size, j, d)
        _check(info, "extract")

    def reduce_vector(
        self, w: Box, desc: Descriptor, A: Box, monoid: Monoid, transpose: bool
    ) -> None:
        """See `Backend`."""
        mask, accum, d = self._how(w, desc, monoid.types(A.dtype)[1], "T0" if transpose else "")
        operator = _monoid(monoid, A.dtype)
        info = lib.GrB_Matrix_reduce_Monoid(w.handle, mask, accum, operator, A.handle, d)
        _check(info, "reduce")

    def reduce(self, u: Box, monoid: Monoid) -> Any:
        """See `Backend`."""
        return self._reduce("Vector", u, monoid) if self.vector_nvals(u) else None

    def _reduce(self, kind: str, u: Box, monoid: Monoid) -> Any:
        result = monoid.types(u.dtype)[1]
        value = ffi.new(f"{_C_NAMES[result.name]}*")
        call = _function(f"{kind}_reduce", result)
        _check(call(value, NULL, _monoid(monoid, u.dtype), u.handle, NULL), "reduce")
        return value[0]

    def _how(
        self, w: Box, desc: Descriptor, result: DType, transpose: str = ""
    ) -> tuple[Any, Any, Any]:
        """Return (mask, accumulator, descriptor) as C handles."""
        _, structure, complement, accum, replace = desc
        return (
            _mask(desc),
            _accumulator(w, accum, result),
            _descriptor(replace, structure, complement, transpose),
        )


_COUNT = ffi.new("GrB_Index*")
_C_NAMES = {
    "BOOL": "bool",
    "INT32": "int32_t",
    "INT64": "int64_t",
    "UINT32": "uint32_t",
    "UINT64": "uint64_t",
    "FP32": "float",
    "FP64": "double",
}


def _crashes_on_full(desc: Descriptor) -> bool:
    """Whether SuiteSparse 9.4.5 may crash at assigning a full vector: if the mask is sparse."""
    return desc.mask is not None and desc.accum is not None


def _compares_in_type_of_entries(op: IndexUnaryOp, entries: Box, thunk: Any) -> bool:
    """Whether GraphBLAS compares as lagpu does.

    It casts the thunk to the type of the entries, so that -1 would equal the UINT32 4294967295.
    """
    return not op.uses_value or bool(op.body) or lookup(thunk.dtype) is entries.dtype


def _scalar(number: Any, dtype: DType) -> Box:
    """Return a GraphBLAS scalar."""
    box = Box(gb.Scalar(dtype.name, is_cscalar=False), dtype)
    _check(_function("Scalar_setElement", dtype)(box.handle, number.item()), "setElement")
    return box


def make() -> CpuBackend:
    """Return the cpu backend."""
    from lagpu.backends.cpumatrices import WholeCpuBackend

    return WholeCpuBackend()
