"""`Scalar`: one value or none, the result of a reduction."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from lagpu import backends
from lagpu import operations as ops
from lagpu.algebra.operators import as_scalar
from lagpu.algebra.tables import binary, monoid, unary
from lagpu.core import arguments
from lagpu.core.expr import OUTPUTS, Call, Expression, Updater, constant, write
from lagpu.core.hints import NoArithmetic, _one, object_of
from lagpu.core.infix import UNARY, WAYS, Joined, described, operator_of
from lagpu.core.recorder import current_recorder, flush, queue
from lagpu.dtypes import BOOL, DType, cast, lookup
from lagpu.errors import DomainMismatch, EmptyObject, InvalidValue, NotComputed
from lagpu.host import display

_UNNAMED = display.Unnamed("s")


class Scalar(NoArithmetic):
    """One value of a type, or no value: the sum of no entries is empty, not zero.

    A scalar that a loop writes as one kernel stays on the device; reading its value waits.

    Parameters
    ----------
    dtype : DType or anything `lagpu.dtypes.lookup` takes
        Type of the value.
    value : number, optional
        The value; without one the scalar is empty.
    like : Vector or Matrix, optional
        Accepted as in `Vector`; a scalar is on the host, and any backend may write it.
    is_cscalar : bool, optional
        Accepted as in python-graphblas; there is one kind of scalar.
    """

    __slots__ = ("__weakref__", "data", "dtype", "name")
    ndim = 0
    shape = ()
    backend = None  # a statement of any backend may write it

    def __init__(
        self, dtype: Any, value: Any = None, *, like: Any = None,
        name: str | None = None, is_cscalar: bool | None = None,
    ) -> None:  # fmt: skip
        kind = arguments.dtype_for(dtype, "Scalar")
        if like is not None:
            backends.choose(like, None)  # raises unless it has a backend
        self.name: str = name or _UNNAMED
        number = None if value is None else arguments.scalar_value(value, kind, "Scalar", now=True)
        self.dtype, self.data = kind, ops.ScalarValue(kind, number)

    @classmethod
    def from_value(
        cls, value: Any, dtype: Any = None, *,
        name: str | None = None, is_cscalar: bool | None = None,
    ) -> Scalar:  # fmt: skip
        """Return a scalar of a value, of type `dtype` or else of the type of `value`."""
        value = object_of(value)
        kind = arguments.scalar_dtype(value, lookup(int), "Scalar") if dtype is None else dtype
        return cls(kind, value, name=name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy or pickle the value, without the backend that computes it."""
        return partial(type(self), name=self.name), (self.dtype, self.value)

    @property
    def _value(self) -> Any:
        flush()  # the value may depend on recorded statements
        return self.data.get()

    @property
    def value(self) -> Any:
        """The value as a Python number, or None."""
        found = self._value
        return None if found is None else found.item()

    @value.setter
    def value(self, value: Any) -> None:
        if value is None:
            self.clear()
        else:
            self << value

    @property
    def is_empty(self) -> bool:
        """Whether there is no value."""
        return self._value is None

    @property
    def nvals(self) -> int:
        """1 if there is a value, else 0."""
        return int(self._value is not None)

    def get(self, default: Any = None) -> Any:
        """Return the value as a Python number, or `default` if there is none."""
        found = self.value
        return default if found is None else found

    def dup(
        self, dtype: Any = None, *, clear: bool = False,
        name: str | None = None, is_cscalar: bool | None = None,
    ) -> Scalar:  # fmt: skip
        """Return a copy, cast to `dtype` if it is given; empty with `clear`."""
        new = Scalar(self.dtype if dtype is None else dtype, name=name or self.name)
        found = None if clear else self._value
        if found is not None:
            new.data.set(cast(found, new.dtype))
        return new

    def isequal(self, other: Any, *, check_dtype: bool = False) -> bool:
        """Whether both have equal values, or none; a number counts as one of this type."""
        other = self._alike(other, check_dtype)
        return other is not None and bool(self == other)

    def _alike(self, other: Any, check_dtype: bool) -> Scalar | None:
        """Return a scalar to compare with, also of a number; None if its type must not differ."""
        other = object_of(other)
        if isinstance(other, Scalar):
            return None if check_dtype and other.dtype is not self.dtype else other
        return Scalar(self.dtype) if other is None else Scalar.from_value(other)

    def isclose(
        self, other: Any, *, rel_tol: float = 1e-7, abs_tol: float = 0.0, check_dtype: bool = False
    ) -> bool:
        """Whether both have values equal up to a tolerance, or none; see `Vector.isclose`."""
        other = self._alike(other, check_dtype)
        if other is None:
            return False
        x, y = self.value, other.value
        return x is y if None in (x, y) else arguments.all_close(x, y, rel_tol, abs_tol)

    def wait(self, how: str = "materialize") -> Scalar:
        """Return this scalar when its value is known; see `Vector.wait`."""
        arguments.check_how(how)
        flush()
        self.data.get()
        return self

    def clear(self) -> None:
        """Make the scalar empty."""
        flush()
        self.data.set(None)

    def __call__(self, *given: Any, accum: Any = None) -> Updater:
        """Return the updater of ``s(accum=op) << call``."""
        if given:
            mask, accum, replaces = described(self, given, None, accum, False)
            if mask is not None or replaces:
                raise DomainMismatch(f"{self.name}(...): a scalar has no mask. Leave it out.")
        return Updater(self, None, accum)

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        if type(value) is Call:
            write(self, value)
        else:
            Updater(self) << value

    __lshift__ = update

    def _call_for(self, value: Any, indices: Any) -> Call:
        if isinstance(value, Expression):
            return value.call()
        number = arguments.scalar_value(value, self.dtype, self.name)
        return constant(number, self.dtype, value if type(value) is ops.Counter else None)

    def _infix(self, sign: str, other: Any, reflected: bool = False) -> Any:
        if sign in ("|", "&") and not getattr(other, "ndim", 0):
            x, y = (other, self) if reflected else (self, other)
            return Joined(x, y, sign)
        other = object_of(other)
        if getattr(other, "ndim", 0):
            return other._infix(sign, self, not reflected)
        if sign in ("==", "!="):
            return (self == other) is (sign == "==")
        if sign not in WAYS:
            self.refuse(f"has no {sign}", "Use it on vectors and matrices.")
        op, way = operator_of(sign), WAYS[sign]
        if way == "ewise_mult" and not isinstance(other, Scalar):
            return self.apply(op, left=other) if reflected else self.apply(op, other)
        x, y = self, other
        if reflected:
            x, y = self._number(other, sign), self
        # to a difference a missing number counts as zero
        return x._with(y, op, way, (False, False) if way == "ewise_union" else None)

    def _number(self, other: Any, what: str) -> Scalar:
        if isinstance(other, Scalar):
            return other
        kind = arguments.scalar_dtype(other, self.dtype, what)
        return constant(arguments.scalar_value(other, kind, what), kind).new()

    def _with(self, other: Any, op: Any, way: str, defaults: Any = None) -> Call:
        """Return the scalar of this number and another, combined as two entries of vectors are."""
        other = object_of(other)
        if getattr(other, "ndim", 0):
            self.refuse(f"has no {way} with a {type(other).__name__}", "Write v.apply(op, s).")
        other, op = self._number(other, way), arguments.binary_operator(op)
        if defaults is not None:
            op, defaults = arguments.with_defaults(op, self.dtype, other.dtype, defaults)
        operation = ops.Ewise(way, self.data, other.data, op, defaults)
        return _computed(operation, op.types(self.dtype, other.dtype)[1])

    def ewise_add(self, other: Any, op: Any = monoid.plus) -> Call:
        """Combine with a scalar or a number; where one is missing the other stays as it is."""
        return self._with(other, op, "ewise_add")

    def ewise_mult(self, other: Any, op: Any = binary.times) -> Call:
        """Combine with a scalar or a number; empty where one is missing."""
        return self._with(other, op, "ewise_mult")

    def ewise_union(self, other: Any, op: Any, left_default: Any, right_default: Any) -> Call:
        """Combine with a scalar or a number, with a default in place of one that is missing."""
        return self._with(other, op, "ewise_union", (left_default, right_default))

    def apply(self, op: Any, right: Any = None, *, left: Any = None) -> Call:
        """Apply an operator to the value, if there is one; see `Vector.apply`."""
        function = arguments.bound_operator(self.dtype, op, object_of(left), object_of(right))
        return _computed(ops.Apply(self.data, function), function.result)

    def copying(self) -> Call:
        """Return the deferred copy."""
        return self.apply(unary.identity)

    def select(self, op: Any, thunk: Any = 0) -> Call:
        """Keep the value if `op` of it and `thunk` is true; see `Vector.select`."""
        found, number, _ = arguments.selected(self.dtype, op, thunk)
        return _computed(ops.Select(self.data, found, number), self.dtype)

    def _inplace(self, sign: str, other: Any) -> Any:
        self << self._infix(sign, other)
        return self

    __invert__ = _one("~")

    def _alone(self, sign: str) -> Any:
        if sign == "~" and self.dtype is not BOOL:
            self.refuse(f"has no ~ for {self.dtype}", "It is for BOOL alone.")
        return self.apply(unary[UNARY[sign]])

    def _known(self) -> Any:
        found = self._value
        if found is None:
            raise EmptyObject(f"{self.name}: the scalar has no value. Check is_empty first.")
        return found

    def __bool__(self) -> bool:
        return bool(self._value)  # False if there is none, as the sum of no entries is nothing

    def __format__(self, spec: str) -> str:
        return format(self._known(), spec) if spec else str(self)

    def __int__(self) -> int:
        return int(self._known())

    def __float__(self) -> float:
        return float(self._known())

    def __index__(self) -> int:
        if self.dtype.numpy.kind not in "iu":
            raise NotComputed(f"{self.name}: a {self.dtype} is not an index. Use an integer type.")
        return int(self._known())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Return the value as an array without dimensions; NumPy makes one for itself."""
        if copy is False:
            raise InvalidValue(f"{self.name}: a scalar has no array of its own. Leave out copy=.")
        return np.array(self._known(), dtype)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, Scalar) else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Scalar({self.dtype}, {self.value})"


def _computed(operation: Any, dtype: DType) -> Call:
    """Return an operation on scalars: its result, or deferred if one has no value yet."""
    reads = ops.Statement(None, ops.Descriptor(), operation, dtype).scalars_read
    if current_recorder() is None and not any(map(queue.writes, reads)):
        return constant(ops.of_scalars(operation), dtype)
    return Call(operation, (), dtype, (), ("a scalar",))


OUTPUTS[0] = Scalar
as_scalar.append(Scalar.from_value)
