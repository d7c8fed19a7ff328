"""Scalars of statements: values, and references that are read when a statement runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lagpu.algebra.operators import BinaryOp
from lagpu.dtypes import DType, cast

__all__ = ["Counter", "CounterRef", "ScalarRef", "ScalarValue", "read", "refs_in"]


class Counter(int):
    """The counter of a loop whose body is being recorded: a placeholder for every value."""


class ScalarValue:
    """The value of a scalar, on the host or still on a device.

    Parameters
    ----------
    dtype : DType
        Type of the value.
    value : NumPy scalar of `dtype`, optional
        The value; None for an empty scalar.

    Attributes
    ----------
    location : object or None
        The device memory that holds the value, as given to `defer`; None once the host has the
        value.
    holder : object or None
        The device whose memory that is.
    """

    __slots__ = ("_fetch", "_value", "dtype", "holder", "location")

    def __init__(self, dtype: DType, value: Any = None) -> None:
        self.dtype = dtype
        self.set(value)

    def get(self) -> Any:
        """Return the value as a NumPy scalar, or None; waits if a device has the value."""
        fetch = self._fetch
        if fetch is None:
            return self._value
        value = fetch()
        if self._fetch is fetch:  # no other thread has set a value meanwhile
            self.set(value)
        return value

    def set(self, value: Any) -> None:
        """Replace the value by a NumPy scalar of the type, or by None."""
        self._value = value
        self._fetch: Callable[[], Any] | None = None
        self.location: Any = None
        self.holder: Any = None

    def defer(self, fetch: Callable[[], Any], location: Any, holder: Any) -> None:
        """Note that `holder` has the value in `location`; `fetch` copies it to the host."""
        self._fetch, self.location, self.holder = fetch, location, holder

    def write(self, accum: BinaryOp | None, dtype: DType, new: Any) -> None:
        """Assign a number of type `dtype`, or None, as GraphBLAS writes a scalar."""
        if accum is not None:
            before = self.get()
            if new is None:
                return
            if before is not None:
                domain, _ = accum.types(self.dtype, dtype)
                new = accum.evaluate(domain, before, dtype.numpy.type(new))
        self.set(None if new is None else cast(new, self.dtype))


class ScalarRef(NamedTuple):
    """A scalar whose value a recorded statement reads when it runs.

    Attributes
    ----------
    scalar : ScalarValue
        The scalar.
    dtype : DType
        The type that its value is cast to.
    name : str
        The scalar's name, for formulas.
    now : callable
        Returns the value as a NumPy scalar of `dtype`, or raises the error that a statement would
        raise if it ran now.
    """

    scalar: ScalarValue
    dtype: DType
    name: str
    now: Callable[[], Any]

    def __str__(self) -> str:
        return self.name


class CounterRef(NamedTuple):
    """The counter of a recorded loop, cast to `dtype`."""

    dtype: DType


def refs_in(x: Any) -> Iterator[ScalarRef]:
    """Yield the references to scalars in an operation."""
    if type(x) is ScalarRef:
        yield x
    elif isinstance(x, tuple):
        for part in x:
            yield from refs_in(part)


def read(x: Any, depth: int) -> Any:
    """Return an operation with the values of its scalars, in iteration `depth` of a loop."""
    if type(x) is ScalarRef:
        return x.now()
    if type(x) is CounterRef:
        return x.dtype.numpy.type(depth)
    if not isinstance(x, tuple):
        return x
    parts = [read(part, depth) for part in x]
    if all(new is old for new, old in zip(parts, x, strict=True)):
        return x
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
