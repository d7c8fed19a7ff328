"""The value of a scalar: on the host, or on a device until somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lagpu.algebra.operators import BinaryOp
from lagpu.dtypes import DType, cast

__all__ = ["Cell", "Held", "held_in", "read"]


class Cell:
    """Where the value of a scalar is.

    Parameters
    ----------
    dtype : DType
        Type of the value.
    value : NumPy scalar of `dtype`, optional
        The value; None if there is none.

    Attributes
    ----------
    place : object or None
        What a device keeps the value in, as it gave it to `put_off`; None once the host has it.
    """

    __slots__ = ("_later", "_value", "dtype", "place")

    def __init__(self, dtype: DType, value: Any = None) -> None:
        self.dtype = dtype
        self.set(value)

    def get(self) -> Any:
        """Return the value as a NumPy scalar, or None; waits for a device that has it."""
        if self._later is not None:
            self.set(self._later())
        return self._value

    def set(self, value: Any) -> None:
        """Replace the value by a NumPy scalar of the type, or by none."""
        self._value = value
        self._later: Callable[[], Any] | None = None
        self.place: Any = None

    def put_off(self, later: Callable[[], Any], place: Any) -> None:
        """Note that a device has the value, in `place`; `later` fetches it."""
        self._later, self.place = later, place

    def write(self, accum: BinaryOp | None, dtype: DType, new: Any) -> None:
        """Assign a number of type `dtype`, or none, as GraphBLAS writes a scalar."""
        if accum is not None:
            before = self.get()
            if new is None:
                return
            if before is not None:
                domain, _ = accum.types(self.dtype, dtype)
                new = accum.evaluate(domain, before, dtype.numpy.type(new))
        self.set(None if new is None else cast(new, self.dtype))


class Held(NamedTuple):
    """A number that a recorded statement reads when it runs.

    Attributes
    ----------
    cell : Cell
        Where it is.
    dtype : DType
        What it is cast to.
    name : str
        The scalar's, for formulas.
    now : callable
        Returns it as a NumPy scalar of `dtype`, or raises as a statement does that runs at once.
    """

    cell: Cell
    dtype: DType
    name: str
    now: Callable[[], Any]

    def __str__(self) -> str:
        return self.name


def held_in(x: Any) -> Iterator[Held]:
    """Yield the numbers in the arguments of a statement that are read when it runs."""
    if type(x) is Held:
        yield x
    elif isinstance(x, tuple):
        for part in x:
            yield from held_in(part)


def read(x: Any) -> Any:
    """Return arguments with those numbers as they are now."""
    if type(x) is Held:
        return x.now()
    if isinstance(x, tuple) and any(held_in(x)):
        parts = map(read, x)
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return x
