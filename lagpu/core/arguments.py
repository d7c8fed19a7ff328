"""Check and convert users' arguments; data in and out: arrays, DLPack, pickles."""

import functools
import math
import operator
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from lagpu import backends, errors
from lagpu import operations as ops
from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Parameterized, UnaryOp
from lagpu.algebra.tables import binary, indexunary, unary
from lagpu.backends.protocol import Backend
from lagpu.core.hints import NoArithmetic, how_to_enter, is_operand, name_of, object_of
from lagpu.core.recorder import current_observer, current_recorder, flush, queue
from lagpu.dtypes import BOOL, FP64, INT64, UINT64, Array, DType, as_array, cast, lookup, unify

_DLPACK_HOST = (1, 3)  # kDLCPU, kDLCUDAHost: memory that NumPy reads
_OWN = frozenset((np.ndarray, list, tuple, range, bool, int, float))


def array_in(x: Any, place: Backend, what: str, *, copies: bool = False) -> Any:
    """Return an array of any library as one of NumPy, or of CuPy for a backend on a GPU.

    It may have ``__cuda_array_interface__`` or ``__dlpack__`` (PyTorch, JAX, Numba, the array API),
    or be a column of pandas, polars or pyarrow. Host arrays are not copied; numbers, lists and all
    else pass as they are. With `copies`, data on a GPU is copied to a backend on the host; without,
    it is a `BackendMismatch`. A missing value, NA, null or masked, is an `InvalidValue`.
    """
    if type(x) in _OWN:
        return x
    _require_none_missing(x, what)
    if isinstance(x, (np.ndarray, np.generic)):
        return np.asarray(x) if isinstance(x, np.ma.MaskedArray) else x
    on_device = hasattr(x, "__cuda_array_interface__")
    if on_device or hasattr(x, "__dlpack__"):
        return _exported(x, place, what, on_device, copies)
    numpy_dtype = getattr(getattr(x, "dtype", None), "numpy_dtype", None)
    return x if numpy_dtype is None else x.to_numpy(dtype=numpy_dtype)  # of pandas: Int64 and such


def _exported(x: Any, place: Backend, what: str, by_interface: bool, copies: bool) -> Any:
    """Return the array behind ``__cuda_array_interface__`` or ``__dlpack__``."""
    if not by_interface and _asked(x, "__dlpack_device__", what)[0] in _DLPACK_HOST:
        array = _asked(x, np.asarray if hasattr(x, "__array__") else np.from_dlpack, what)
        return array if array.ndim else array[()]
    on_gpu = place.device is not None and place.device.xp is not np
    if not on_gpu and not copies:
        raise errors.BackendMismatch(
            f"{what}: the array is on a GPU, the backend is {place.name}. Copy it first, e.g. with "
            "cupy.asnumpy, or take backend='gpu'."
        )
    try:
        import cupy
    except ImportError as error:
        raise errors.BackendUnavailable(
            f"{what}: device arrays need CuPy. Install lagpu[gpu], or copy them to the host."
        ) from error
    array = cupy.asarray(x) if by_interface else _asked(x, cupy.from_dlpack, what)
    return array if on_gpu else array.get()


def _asked(x: Any, how: Any, what: str) -> Any:
    """Return the answer of an exporter to `how`, a function or a method's name; or raise why."""
    try:
        return getattr(x, how)() if isinstance(how, str) else how(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = type(x).__name__
        raise errors.DomainMismatch(
            f"{what}: {kind} does not export its data: {error}. Convert it to NumPy or CuPy."
        ) from error


def _require_none_missing(x: Any, what: str) -> None:
    """Raise `InvalidValue` if a value is NA, null or masked; NumPy would make NaN of some."""
    if isinstance(x, np.ma.MaskedArray):
        missing = int(np.ma.getmaskarray(x).sum())
    elif hasattr(x, "null_count"):  # pyarrow, and polars, where it is a method
        missing = int(x.null_count() if callable(x.null_count) else x.null_count)
    elif hasattr(x, "isna") and not (isinstance(x.dtype, np.dtype) and x.dtype.kind != "O"):
        missing = int(x.isna().sum())
    else:
        return
    if missing:
        raise errors.InvalidValue(
            f"{what}: {missing} of {len(x)} values are missing. Leave them out, as with "
            "x.dropna() of pandas, or fill them in; an entry without a value has no entry."
        )


def require_fit(array: Any, given: DType, kind: DType, what: str) -> None:
    """Raise `DomainMismatch` if a number of an array does not fit the integer type `kind`."""
    if kind.is_bool or kind.is_float or given.is_bool or not array.size:
        return
    if given.is_float:
        low, high = float(kind.smallest), float(int(kind.largest) + 1)  # both are powers of two
        fits = (array >= low) & (array < high) & (array == array.round())
        if bool(fits.all()):
            return
        outlier, remedy = array[~fits][0].item(), "Use a float type, or round the values first."
    else:
        low, high = int(array.min()), int(array.max())
        if low >= int(kind.smallest) and high <= int(kind.largest):
            return
        outlier = low if low < int(kind.smallest) else high
        remedy = kind.instead_for(outlier)
    raise errors.DomainMismatch(f"{what}: {outlier} does not fit {kind}. {remedy}")


# ---- Objects in the place of a type, as in ``Matrix(S)``: refused, with the line to write
def dtype_for(dtype: Any, what: str) -> DType:
    """Return the `DType` for the constructor that `what` names."""
    if type(dtype) is DType:
        return dtype
    instead = "" if isinstance(dtype, (str, type, np.dtype)) else _instead(dtype, what)
    if instead:
        kind = type(dtype).__name__
        raise errors.DomainMismatch(f"{what}: {kind} is not a type of values. Write {instead}.")
    return lookup(dtype)


def _instead(x: Any, what: str) -> str:
    if isinstance(x, NoArithmetic):
        return "x.dup() for a copy, x.new() for an expression, or x.dtype for its type"
    if type(x).__module__.startswith("graphblas."):
        return "lagpu.io.from_graphblas(x)"
    if hasattr(x, "tocoo"):
        of = "cupyx" if type(x).__module__.startswith("cupyx") else "scipy"
        return f"lagpu.io.from_{of}(x)"
    if hasattr(x, "is_directed") and hasattr(x, "adj"):
        return "lagpu.io.from_networkx(x)"
    if hasattr(x, "columns"):
        return "Matrix.from_coo(x['row'], x['column'], x['value']), with its names of columns"
    ndim = getattr(x, "ndim", None)
    if ndim is None and isinstance(x, (list, tuple, range, dict, set)):
        ndim = 2 if any(isinstance(row, (list, tuple)) for row in x) else 1
    if isinstance(x, (bool, int, float, np.generic)) or ndim == 0:
        return "Scalar.from_value(x)" if what == "Scalar" else f"{what}(FP64, ...), the type first"
    if isinstance(x, (dict, set)):
        return "Vector.from_coo(list(x.keys()), list(x.values()))" * isinstance(x, dict)
    if ndim == 1:
        return "Vector.from_dense(x), or Vector.from_coo(indices, values)"
    return "Matrix.from_dense(x, missing_value=0), which drops zeros" if ndim == 2 else ""


# ---- Check and convert users' arguments: scalars, sizes, indices, values, operators

MAX_SIZE = 2**60  # GraphBLAS' own limit


def scalar_value(value: Any, dtype: DType, what: str, *, now: bool = False) -> Any:
    """Return `value` as a NumPy scalar of `dtype`.

    While a loop's body is recorded, a `Scalar` and the loop's counter become references, which are
    read when the statement runs; so does a `Scalar` that a statement is still to write. Of what is
    no statement the number is needed `now`.
    """
    number = plain_number(value, dtype)
    if number is not None:
        return number
    if type(value) is ops.Counter:
        found = scalar_value(value.first, dtype, what)  # raises if it does not fit
        if now or current_recorder() is None:
            return found
        read = functools.partial(scalar_value, dtype=dtype, what=what)
        return ops.CounterRef(dtype, value.formula, read)
    return _scalar(value, dtype, what, now)


_INTEGERS = frozenset((int, bool))


def plain_number(value: Any, dtype: DType) -> Any:
    """Return a number of Python as `scalar_value` does, if that is quick, or None."""
    if type(value) in _INTEGERS:  # counters of loops and sources of searches
        return _integer_scalar(value, dtype)
    return np.float64(value) if type(value) is float and dtype is FP64 else None


@functools.lru_cache(maxsize=4096)
def _integer_scalar(value: int, dtype: DType) -> Any:
    try:
        return _scalar(value, dtype, "")
    except errors.DomainMismatch:
        return None


def _scalar(value: Any, dtype: DType, what: str, now: bool = False) -> Any:
    scalar_dtype(value, dtype, what)  # raises unless it is a number
    data = getattr(value, "data", None)
    if not now and type(data) is ops.ScalarValue:
        waits = current_recorder() is not None or queue.writes(data)  # the host has no value yet
        if waits or (data.location is not None and current_observer() is None):
            read = functools.partial(_read, dtype=dtype, what=what, name=value.name)
            return ops.ScalarRef(data, dtype, value.name, read)
    number = getattr(value, "value", value)
    if number is None:
        raise _empty(what, value.name)
    return _converted(number, dtype, what, exact=number is value)


def _read(data: ops.ScalarValue, dtype: DType, what: str, name: str) -> Any:
    """Return the value of a scalar, once the statements that write it have run."""
    flush()
    number = data.get()
    if number is None:
        raise _empty(what, name)
    return _converted(number.item(), dtype, what)


def _empty(what: str, name: str) -> errors.EmptyObject:
    return errors.EmptyObject(f"{what}: the scalar {name} has no value. Check is_empty first.")


def _converted(number: Any, dtype: DType, what: str, *, exact: bool = False) -> Any:
    if isinstance(number, (float, np.floating)) or dtype.is_bool:
        found = cast(number, dtype)
        whole = not (dtype.is_bool or dtype.is_float)
        if whole and exact and int(found) != float(number):  # exact, as Python compares
            raise errors.DomainMismatch(f"{what}: {number} does not fit {dtype}. Use a float type.")
        return found
    number = int(number)
    if dtype.is_float:
        try:
            return cast(float(number), dtype)
        except OverflowError:
            raise errors.DomainMismatch(f"{what}: {number} does not fit {dtype}.") from None
    if not int(dtype.smallest) <= number <= int(dtype.largest):
        instead = dtype.instead_for(number)
        raise errors.DomainMismatch(f"{what}: {number} does not fit {dtype}. {instead}")
    return dtype.numpy.type(number)


def as_fill(value: Any, dtype: DType) -> Any:
    """Return the value of missing entries as a NumPy scalar; one of a `Scalar` must fit, too."""
    found = object_of(value)
    number = found.value if isinstance(getattr(found, "data", None), ops.ScalarValue) else found
    return scalar_value(found if number is None else number, dtype, "to_dense")


def dense_type(x: Any, fill_value: Any, dtype: Any) -> DType:
    """Return the type of the dense array of an object: one that the fill value fits, too."""
    if dtype is not None or fill_value is None:
        return x.dtype if dtype is None else lookup(dtype)
    try:
        as_fill(fill_value, x.dtype)
    except errors.DomainMismatch:
        return unify(x.dtype, scalar_dtype(object_of(fill_value), x.dtype, "to_dense"))
    return x.dtype


def scalar_dtype(value: Any, like: DType, what: str) -> DType:
    """Return the type of a scalar that is combined with operands of type `like`.

    Python numbers are weak, as in NumPy 2: an ``int`` with INT32 is INT32 if it fits.
    """
    value = value.first if type(value) is ops.Counter else value
    if isinstance(value, float) and not isinstance(value, np.floating):
        return like if like.is_float else FP64
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, int):
        if like.is_float:
            return like
        like = INT64 if like.is_bool else like
        if int(like.smallest) <= value <= int(like.largest):
            return like
        return INT64 if value <= int(INT64.largest) else UINT64
    if isinstance(value, np.generic):
        return lookup(value.dtype)
    dtype = getattr(value, "dtype", None)
    if isinstance(dtype, DType) and getattr(value, "ndim", None) == 0:
        return dtype
    raise errors.DomainMismatch(f"{what}: {type(value).__name__} is not a number.")


def as_size(size: Any, what: str) -> int:
    """Return a size as a non-negative int."""
    if type(size) is int and 0 <= size <= MAX_SIZE:
        return size
    n = integer(size, f"{what}: size")
    if not 0 <= n <= MAX_SIZE:
        why = "< 0. Give 0 or more" if n < 0 else "> 2**60, the largest that GraphBLAS allows"
        raise errors.DimensionMismatch(f"{what}: size {n} {why}.")
    return n


def integer(number: Any, what: str, least: int | None = None) -> int:
    """Return `number` as an int, which is not below `least`."""
    if type(number) is not int:
        try:
            if isinstance(number, (bool, np.bool_)):
                raise TypeError
            number = operator.index(number)
        except TypeError:
            raise errors.DomainMismatch(f"{what} {number!r:.60} is not an integer.") from None
    if least is not None and number < least:
        raise errors.InvalidValue(f"{what} {number} < {least}. Give {least} or more.")
    return number


def require_ndim(array: Any, ndim: int) -> None:
    """Raise unless a dense array has this number of dimensions."""
    if array.ndim == 0:
        raise errors.DomainMismatch("from_dense: one number is no array. Write from_scalar(x, n).")
    if array.ndim != ndim:
        hint = " Write Vector.from_dense for a vector." * (array.ndim == 1)
        fact = f"the array is {array.ndim}-D, not {ndim}-D."
        raise errors.DimensionMismatch(f"from_dense: {fact}{hint}")


def is_present(array: Any, missing_value: Any) -> Any:
    """Return where an array has entries: not where it equals `missing_value`, which may be NaN."""
    if missing_value is None:
        return np.ones(array.shape, bool)
    scalar_dtype(missing_value, INT64, "from_dense: missing_value")
    number = getattr(missing_value, "value", missing_value)
    return array == array if number != number else array != number


def single_index(i: Any, size: int, what: str, *, from_end: bool = True) -> int:
    """Return `i` as an int in ``0 .. size-1``; -1 is the last one if `from_end`."""
    found = i if type(i) is int else integer(i, f"{what}: index")
    if found < 0 and from_end and found >= -size:
        return found + size
    if not 0 <= found < size:
        raise outside(f"{what}: index", found, size)
    return found


def outside(what: str, i: int, size: int) -> errors.IndexOutOfBound:
    """Return the error for an index outside ``0 .. size-1``."""
    where = f"outside 0 .. {size - 1}" if size else "outside: a size of 0 has no index"
    return errors.IndexOutOfBound(f"{what} {i} is {where}.")


def integer_array(array: Any, what: str) -> Any:
    """Return a list of indices as an integer array; a device array stays on the device."""
    given = array
    if not hasattr(array, "__cuda_array_interface__"):
        try:
            array = np.asarray(array)
        except ValueError:  # lists of several lengths
            raise errors.DimensionMismatch(f"{what}: indices are not 1-D.") from None
    if array.ndim != 1:
        raise errors.DimensionMismatch(f"{what}: indices are {array.ndim}-D, not 1-D.")
    if array.dtype.kind in "fO" and all(type(x) is int for x in given):  # too large for INT64
        array = np.array([min(max(x, -(2**63)), 2**63 - 1) for x in given])
    if array.dtype.kind not in "iu" and len(array):
        raise errors.DomainMismatch(f"{what}: indices are {array.dtype}, not integers.")
    if array.dtype == np.uint64:  # with INT64 and UINT64, NumPy computes in floats
        array = array.clip(max=2**63 - 1).astype(np.int64)
    known = array.dtype in (np.int32, np.int64, np.uint32)  # to kernels
    return array if known else array.astype(np.int64)


def index_array(indices: Any, size: int, what: str, *, from_end: bool = True) -> Array | None:
    """Return indices as INT64, None for all in order; negative ones count back if `from_end`."""
    if isinstance(indices, slice):
        try:
            chosen = range(*indices.indices(size))
        except (TypeError, ValueError) as error:
            raise errors.DomainMismatch(f"{what}: {indices} is not a slice of integers.") from error
        return None if chosen == range(size) else np.arange(chosen.start, chosen.stop, chosen.step)
    array: Array = integer_array(indices, what)
    if array.size == 0:
        return np.empty(0, np.int64)
    low, high = int(array.min()), int(array.max())
    if low < (-size if from_end else 0) or high >= size:
        raise outside(f"{what}: index", low if low < 0 else high, size)
    if low < 0:
        array = np.where(array < 0, array + size, array)
    return array.astype(np.int64, copy=False)


def as_values(values: Any, dtype: Any, count: int, what: str) -> tuple[Any, DType]:
    """Return (values as an array or a NumPy scalar, their type)."""
    if np.ndim(values) == 0:
        kind = lookup(dtype) if dtype is not None else scalar_dtype(values, INT64, what)
        return scalar_value(values, kind, what, now=True), kind
    on_device = hasattr(values, "__cuda_array_interface__")
    array = values if on_device else as_array(values)
    if array.shape != (count,):
        raise errors.DimensionMismatch(f"{what}: {count} indices != values of shape {array.shape}.")
    given = lookup(array.dtype)
    array = array.astype(given.numpy, copy=False)
    kind = given if dtype is None else lookup(dtype)
    if kind is not given:
        require_fit(array, given, kind, what)
    if on_device or kind is given:
        return array.astype(kind.numpy, copy=False), kind
    return cast(array, kind), kind


def sorted_distinct(indices: Array, values: Any, kind: DType, dup_op: Any) -> tuple[Array, Any]:
    """Sort (index, value) pairs by index and combine the values of equal indices.

    One value of all entries needs no `dup_op`: an index given twice is then one entry.
    """
    if len(indices) < 2 or (np.diff(indices) > 0).all():
        return indices, values
    order = np.argsort(indices, kind="stable")
    indices = indices[order]
    if np.ndim(values):
        values = values[order]
    first = np.diff(indices, prepend=-1) > 0
    if first.all():
        return indices, values
    if dup_op is None and np.ndim(values) == 0:
        return indices[first], values
    if dup_op is None:
        twice = int(indices[~first][0])
        raise errors.InvalidValue(
            f"from_coo: index {twice} is given twice. Give dup_op=, e.g. binary.plus."
        )
    dense = np.broadcast_to(values, indices.shape)
    return indices[first], binary_operator(dup_op).fold_runs(dense, np.flatnonzero(first), kind)


def binary_operator(op: Any) -> BinaryOp:
    """Return the binary operator given as itself, as a monoid or by name."""
    if type(op) is BinaryOp and not op.positional:
        return op
    if isinstance(op, Parameterized):
        op = op()
    found = op.op if isinstance(op, Monoid) else binary.lookup(op)
    if found.positional:
        raise errors.DomainMismatch(
            f"{found!r}: reads the indices of a product. Use it in a semiring."
        )
    return found


def check_how(how: Any) -> None:
    """Raise `InvalidValue` unless `how` is a word that `wait` takes."""
    if how not in ("materialize", "complete"):
        raise errors.InvalidValue(f"wait: there is no {how!r}. Use materialize or complete.")


def all_close(x: Any, y: Any, rel_tol: float, abs_tol: float) -> bool:
    """Whether all numbers of two arrays are close, by the rule of `binary.isclose`."""
    x, y = np.asarray(x), np.asarray(y)
    apart = x != y
    exact = object if x.dtype.kind != "f" and y.dtype.kind != "f" else None  # no overflow
    x, y = x[apart].astype(exact), y[apart].astype(exact)
    with np.errstate(invalid="ignore", over="ignore"):
        off = abs(x - y)
        close = off <= np.maximum(rel_tol * np.maximum(abs(x), abs(y)), abs_tol)
    return bool(np.all(close)) and bool(np.all(off < np.inf))


@functools.lru_cache(maxsize=1024)
def _of_one(op: UnaryOp, dtype: DType) -> ops.BoundOperator:
    return ops.BoundOperator(op, *op.types(dtype))


def _applied(op: Any, alone: bool) -> Any:
    """Return the operator of `apply`, given as itself, by its name or as Python's function."""
    if isinstance(op, Parameterized):
        op = op()
    if type(op) is str:
        named = next((t for t in (unary, binary, indexunary) if op in t), None)
        return (unary if alone else binary).from_string(op) if named is None else named[op]
    if isinstance(op, (FunctionType, BuiltinFunctionType)):
        op = (unary if alone else binary).lookup(op)
    return op.op if isinstance(getattr(op, "op", None), IndexUnaryOp) else op  # `lagpu.select`


#: Types of numbers that mean the same each time. What is made of one is kept, but not of zeros,
#: which are equal and have two signs.
PLAIN = frozenset((int, float))


def bound_operator(dtype: DType, op: Any, left: Any, right: Any) -> ops.BoundOperator:
    """Return the operator of `apply` with its bound operand, for entries of type `dtype`."""
    number = right if left is None else left
    if number is None and type(op) is UnaryOp:
        return _of_one(op, dtype)
    one = left is None or right is None
    if one and type(op) is BinaryOp and type(number) in PLAIN and number:
        return _bound_once(dtype, op, left, right)
    return _bound(dtype, op, left, right)


def _bound(dtype: DType, op: Any, left: Any, right: Any) -> ops.BoundOperator:
    if type(op) is not BinaryOp:
        op = _applied(op, left is None and right is None)
    if isinstance(op, UnaryOp):
        if left is not None or right is not None:
            raise errors.DomainMismatch(
                f"apply: {op!r} takes one operand. Leave out left= and right=."
            )
        return _of_one(op, dtype)
    if isinstance(op, IndexUnaryOp):
        if left is not None:
            raise errors.DomainMismatch(f"apply: {op!r} takes no left=. Give the thunk as right=.")
        _, thunk, domain = selected(dtype, op, 0 if right is None else right, applies=True)
        return ops.BoundOperator(op, domain, op.result(domain), None, thunk)
    op = binary_operator(op)
    if (left is None) == (right is None):
        raise errors.DomainMismatch(
            f"apply: {op!r} takes two operands. Give one of left= and right=."
        )
    bound = right if left is None else left
    domain, result = op.types(dtype, scalar_dtype(bound, dtype, "apply"))
    number = scalar_value(bound, domain, "apply")
    sides = (None, number) if left is None else (number, None)
    return ops.BoundOperator(op, domain, result, *sides)


_bound_once = functools.lru_cache(maxsize=1024, typed=True)(_bound)


def with_defaults(
    op: Any, left: DType, right: DType, defaults: tuple[Any, Any]
) -> tuple[BinaryOp, tuple[Any, Any]]:
    """Return the operator of `ewise_union`, bound by its defaults too, and these in its domain."""
    found = binary_operator(op)
    kind = unify(left, right)
    for default in defaults:
        kind = unify(kind, scalar_dtype(default, kind, "ewise_union"))
    if found.dtype is None and kind is not unify(left, right):
        found = found[kind]
    domain, _ = found.types(left, right)
    first, second = (scalar_value(x, domain, "ewise_union") for x in defaults)
    return found, (first, second)


def selected(
    dtype: DType, op: Any, thunk: Any, *, applies: bool = False
) -> tuple[IndexUnaryOp, Any, DType]:
    """Return an index-unary operator, its thunk as a NumPy scalar, and its domain."""
    if type(thunk) in PLAIN and thunk and type(op) in (IndexUnaryOp, str):
        return _selected_once(dtype, op, thunk, applies)
    return _selected(dtype, op, thunk, applies)


def _selected(dtype: DType, op: Any, thunk: Any, applies: bool) -> tuple[IndexUnaryOp, Any, DType]:
    found = indexunary.lookup(op)
    if not applies and found.types(dtype)[1] is not BOOL:
        raise errors.DomainMismatch(f"select: {found!r} has no BOOL result. Use apply.")
    if not found.uses_value:
        return found, scalar_value(thunk, INT64, found.name), INT64
    domain, _ = found.types(dtype, scalar_dtype(thunk, dtype, found.name))
    return found, scalar_value(thunk, domain, found.name), domain


_selected_once = functools.lru_cache(maxsize=1024, typed=True)(_selected)


# ---- Data in and out of vectors and matrices: checked arrays, dense arrays, DLPack, pickles
_HOST, _CUDA = 1, 2  # kDLCPU, kDLCUDA


def array_of(x: Any, backend: Backend, what: str) -> Any:
    """Return the values of a full vector on a backend, or an array as `array_in` does."""
    if not is_operand(x, 1):
        return array_in(x, backend, what)
    if x.backend is not backend:
        usual = f"Give like={name_of(x)}, or move it with .to({backend.name!r})."
        raise errors.BackendMismatch(
            f"{what}: {x.name} is on {x.backend.name}, the new object on {backend.name}. "
            + (how_to_enter(backend, x) or usual)
        )
    require_full(x, x.nvals, what, "Give a full vector.")
    return backend.vector_values(x.data, True)


def transpose_compressed(
    ptr: Array, idx: Array, values: Any, shape: tuple[int, int]
) -> tuple[Array, Array, Any]:
    """Convert compressed rows of a matrix of this shape to compressed columns, sorted."""
    iso = np.ndim(values) == 0
    data = np.broadcast_to(np.int8(1), len(idx)) if iso else values
    from scipy.sparse import csr_array  # slow to import, and seldom needed

    other = csr_array((data, idx, ptr), shape=shape).tocsc()
    return other.indptr, other.indices, values if iso else other.data


def from_rows(
    backend: Backend, ptr: Any, idx: Any, values: Any, dtype: DType, shape: tuple[int, int]
) -> Any:
    """Return a backend's matrix of checked compressed rows; device arrays stay on the device."""
    if backend.capabilities.by_rows:
        rows: Any = backend
        return rows.matrix_from_csc(ptr, idx, values, dtype, shape, by_rows=True)
    if any(hasattr(x, "__cuda_array_interface__") for x in (ptr, idx, values)):
        out = backend.matrix(dtype, shape)
        by_rows = backend.matrix_from_csc(ptr, idx, values, dtype, shape[::-1])
        transpose = ops.Assign(by_rows, None, True)
        backend.execute(ops.Statement(out, ops.Descriptor(), transpose, dtype))
        return out
    columns = transpose_compressed(ptr, idx, values, shape)  # needs no device memory
    return backend.matrix_from_csc(*columns, dtype, shape)


def check_compressed(
    ptr: Any, idx: Any, major: int | None, minor: int | None, what: str, device: Any = None
) -> tuple[tuple[int, int], Any, Any]:
    """Return ((major, minor), ptr, idx), or raise what is wrong with compressed arrays.

    `device` is that of the new matrix, which checks arrays that are on it by one kernel.
    """
    ptr, idx = integer_array(ptr, what), integer_array(idx, what)
    if major is not None and len(ptr) != as_size(major, what) + 1:
        raise errors.DimensionMismatch(
            f"{what}: the pointer has {len(ptr)} elements != {major} + 1."
        )
    faults, low, high, falls = True, 0, 0, False
    if len(ptr):
        there = all(  # and such that a kernel may read them
            hasattr(x, "__cuda_array_interface__")
            and x.dtype in (np.int32, np.int64)
            and x.flags.c_contiguous
            for x in (ptr, idx)
        )
        found = device.compressed_faults if there and device is not None else _compressed_faults
        faults, low, high, falls = found(ptr, idx)
    if faults:
        raise errors.InvalidValue(f"{what}: the pointer must rise from 0 to {len(idx)}.")
    minor = _extent(low, high, minor, f"{what}: index")
    if falls:
        raise errors.InvalidValue(f"{what}: indices must rise within each row or column.")
    return (len(ptr) - 1, minor), ptr, idx


def _compressed_faults(ptr: Any, idx: Any) -> tuple[bool, int, int, bool]:
    """Return whether the pointer is wrong, the bounds of the indices, and whether some fall."""
    # Each question to a device is an array until the end, so that it answers once.
    if bool((ptr[:1] != 0) | (ptr[-1:] != len(idx)) | (ptr[1:] < ptr[:-1]).any()):
        return True, 0, 0, False
    low, high = _bounds(idx)
    if len(idx) < 2:
        return False, low, high, False
    falls = idx != idx
    falls[1:] = idx[1:] <= idx[:-1]
    falls[ptr % len(idx)] = False  # where a row or column begins; the first never falls
    return False, low, high, bool(falls.any())


def extent(indices: Any, size: int | None, what: str) -> int:
    """Return `size`, checked against the indices, or for None the largest index plus one."""
    return _extent(*_bounds(indices), size, what)


def require_size(indices: Any, *sizes: int | None) -> None:
    """Raise `InvalidValue` if there is neither a size nor an index to take it from."""
    if sizes.count(None) == len(sizes) and not len(indices):
        raise errors.InvalidValue("from_coo: no indices, so the size is not known. Give it.")


def _bounds(indices: Any) -> tuple[int, int]:
    """Return the least index and the largest one plus one, or 0 and 0."""
    return (int(indices.min()), int(indices.max()) + 1) if len(indices) else (0, 0)


def _extent(low: int, bound: int, size: int | None, what: str) -> int:
    high = bound - 1
    n = as_size(max(bound, 0) if size is None else size, what)
    if low < 0 or high >= n:
        raise outside(what, low if low < 0 else high, n)
    return n


def as_type(values: Any, dtype: Any) -> Any:
    """Return an array cast to `dtype`, or as it is for None."""
    return values if dtype is None else np.asarray(cast(values, lookup(dtype)))


def split(rows: Iterable[Any], width: int) -> list[list[Any]]:
    """Return the columns of an iterable of tuples of this width."""
    listed = [tuple(row) for row in rows]
    return [list(column) for column in zip(*listed, strict=True)] if listed else [[]] * width


# ---- A vector as a dense array: on the host, on its device, and through DLPack
def require_full(
    x: Any, nvals: int, what: str = "to_dense",
    remedy: str = "Give fill_value= for the missing ones.",
) -> None:  # fmt: skip
    """Raise `InvalidValue` if an object has no entry somewhere; {0} of `remedy` is its name."""
    size = math.prod(x.shape)
    if nvals < size:
        name = name_of(x)
        raise (errors.DomainMismatch if what == "to_dense" else errors.InvalidValue)(
            f"{what}: {name} has {nvals} of {size} entries. {remedy.format(name)}"
        )


def dlpack(
    self: Any, *, stream: Any = None, max_version: Any = None,
    dl_device: Any = None, copy: bool | None = None,
) -> Any:  # fmt: skip
    """Return a DLPack capsule of a copy of all values, where they live.

    ``torch.from_dlpack(v)``, ``jax.dlpack.from_dlpack(v)``, ``cupy.from_dlpack(v)`` and
    ``numpy.from_dlpack(v)`` call it.

    Raises
    ------
    InvalidValue
        If an entry is missing, or with ``copy=False``.
    """
    if copy is False:
        raise errors.InvalidValue(
            "__dlpack__: exports a copy, since a vector's memory changes with each statement. "
            "Leave out copy=False."
        )
    require_full(self, self.nvals, "__dlpack__", "Export {0}.to_dense(fill_value) instead.")
    wanted = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
    given = {name: value for name, value in wanted.items() if value is not None}
    return self.backend.vector_values(self.data, True).__dlpack__(**given)


def dlpack_device(self: Any) -> tuple[int, int]:
    """Return DLPack's (kind, number) of the device where the values live."""
    device = self.backend.device
    if device is None or device.xp is np:
        return _HOST, 0
    return _CUDA, int(device.name.rpartition(":")[2])


# ---- Pickles, for multiprocessing, joblib or dask: entries as host arrays, and a backend's name.
def put_together(
    kind: Any, shape: Any, dtype: Any, where: list[Any], values: Any, place: str, name: str
) -> Any:
    """Return the vector or matrix; see `lagpu.backends.found_again` for where it lives."""
    backend = backends.found_again(place)
    if len(shape) == 2:
        col_ptr, row_idx = where
        data = backend.matrix_from_csc(col_ptr, row_idx, values, dtype, shape)
    else:
        (size,), (indices,) = shape, where
        if indices is None and np.ndim(values) == 0:
            indices = np.arange(size)
        data = backend.vector_from_coo(indices, values, dtype, size)
    return kind._of(data, dtype, shape, backend, name)


def one_if_alike(values: Array) -> Any:
    """Return the one number if all values have the same bits, as NaN may; else the values."""
    if len(values) < 2:
        return values
    bits = values.view(f"u{values.itemsize}")
    return values[0] if bool((bits == bits[0]).all()) else values
