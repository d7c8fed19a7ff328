"""`Scalar`: one value or none, the result of a reduction."""

from __future__ import annotations

from typing import Any

from lagpu import display, watch
from lagpu.backends.base import Descriptor
from lagpu.dtypes import DType, cast, lookup
from lagpu.errors import EmptyObject, NotSupported
from lagpu.expr import Call, Updater, constant
from lagpu.indexing import IndexExpr
from lagpu.operands import scalar_dtype, scalar_value
from lagpu.refusals import NoArithmetic, spoken

__all__ = ["Scalar"]


class Scalar(NoArithmetic):
    """One value of a type, or no value: the sum of no entries is empty, not zero.

    Parameters
    ----------
    dtype : DType or anything `lookup` takes
        Type of the value.
    value : number, optional
        The value; without it the scalar is empty.
    """

    __slots__ = ("_value", "dtype", "name")
    ndim = 0
    shape = ()
    backend = None  # a scalar lives on the host

    def __init__(self, dtype: Any, value: Any = None, *, name: str | None = None) -> None:
        self.dtype: DType = lookup(dtype)
        self.name = name or "s"
        self._value = None if value is None else scalar_value(value, self.dtype, "Scalar")

    @classmethod
    def from_value(cls, value: Any) -> Scalar:
        """Return a scalar of the value's own type."""
        return cls(scalar_dtype(value, lookup(int), "Scalar"), value)

    @property
    def value(self) -> Any:
        """The value as a Python number, or None."""
        return None if self._value is None else self._value.item()

    @property
    def is_empty(self) -> bool:
        """Whether there is no value."""
        return self._value is None

    @property
    def nvals(self) -> int:
        """1 if there is a value, else 0."""
        return int(self._value is not None)

    def clear(self) -> None:
        """Make it empty."""
        self._value = None

    def __call__(self, *, accum: Any = None) -> Updater:
        """``s(accum=op) << call``."""
        return Updater(self, None, accum)

    def __lshift__(self, value: Any) -> None:
        Updater(self) << value

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        Updater(self) << value

    def _call_for(self, value: Any, to: Updater) -> Call:
        if to.indices is not None:
            raise NotSupported(f"{self.name}[...]: a scalar has no indices.")
        if isinstance(value, Call):
            return value
        if isinstance(value, IndexExpr):
            return value.call()
        number = scalar_value(value, self.dtype, self.name)
        return constant(number, self.dtype)

    def _write(self, call: Call, desc: Descriptor, to: Updater) -> None:
        if watch.active is not None and call.backend is not None:
            watch.active.statement(to, call, lambda: self._set(call, desc))
        else:
            self._set(call, desc)

    def _set(self, call: Call, desc: Descriptor) -> None:
        if call.method == "constant":
            new = call.args[0]
        else:
            new = getattr(call.backend, call.method)(*call.args)
        if new is None:
            if desc.accum is None:
                self._value = None
            return
        if desc.accum is not None and self._value is not None:
            domain, _ = desc.accum.types(self.dtype, call.dtype)
            new = desc.accum.evaluate(domain, self._value, call.dtype.numpy.type(new))
        self._value = cast(new, self.dtype)

    def _instead(self, sign: str, other: Any, reflected: bool) -> str:
        me, it = f"{spoken(self)}.value", spoken(other)
        if len(sign) == 2 and sign[1] == "=":
            return f"Write {spoken(self)} << {me} {sign[0]} {it}."
        return f"Write {it} {sign} {me}." if reflected else f"Write {me} {sign} {it}."

    def _known(self) -> Any:
        if self._value is None:
            raise EmptyObject(f"{self.name}: the scalar has no value. Ask is_empty first.")
        return self._value

    def __bool__(self) -> bool:
        return bool(self._known())

    def __int__(self) -> int:
        return int(self._known())

    def __float__(self) -> float:
        return float(self._known())

    def __index__(self) -> int:
        return int(self._known().__index__())

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, Scalar) else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Scalar({self.dtype}, {self.value})"

    def _repr_html_(self) -> str:
        value = "empty" if self._value is None else str(self.value)
        return display.facts_html(f"{self.name}: Scalar({self.dtype})", {"value": value})
