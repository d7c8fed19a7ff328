"""The counter that a loop outside a function leaves behind: a number, known when it is asked for.

Inside a function the proof of a loop's body sees who reads the counter afterwards. At the level of
a module or in a cell of a notebook anybody may, at any time. So there a loop that runs as one
program counts its iterations on the device, and leaves a `LastCount` in the place of its counter.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from lagpu.backends.protocol import Backend
from lagpu.core.recorder import Recorder
from lagpu.dtypes import INT64
from lagpu.errors import InvalidValue
from lagpu.operations import (
    Constant,
    CounterRef,
    Descriptor,
    FusedLoop,
    Rejection,
    ScalarValue,
    Statement,
    Sweep,
    Until,
)

__all__ = ["Counted", "LastCount"]


def _two(name: str) -> Callable[[Any, Any], Any]:
    """Return the method of ``self op other``, for the function of this name in `operator`."""
    function = getattr(operator, name)
    return lambda self, other: function(self._number(), other)


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    """Return the method of ``other op self``."""
    function = getattr(operator, name)
    return lambda self, other: function(other, self._number())


class LastCount:
    """A whole number that is fetched when it is first asked for; it computes as an int does.

    Parameters
    ----------
    fetch : callable
        Returns the number; may wait for a device.
    """

    __slots__ = ("_fetch", "_known")
    __array_ufunc__ = None  # NumPy defers to our operators

    def __init__(self, fetch: Callable[[], int]) -> None:
        self._fetch: Callable[[], int] | None = fetch
        self._known = 0

    def _number(self) -> int:
        if self._fetch is not None:
            self._known, self._fetch = int(self._fetch()), None
        return self._known

    def __repr__(self) -> str:
        return repr(self._number())

    def __format__(self, spec: str) -> str:
        return format(self._number(), spec)

    def __hash__(self) -> int:
        return hash(self._number())

    def __bool__(self) -> bool:
        return bool(self._number())

    def __float__(self) -> float:
        return float(self._number())

    __int__ = __index__ = __trunc__ = _number
    __add__, __radd__ = _two("add"), _reflected("add")
    __sub__, __rsub__ = _two("sub"), _reflected("sub")
    __mul__, __rmul__ = _two("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _two("truediv"), _reflected("truediv")
    __floordiv__, __rfloordiv__ = _two("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _two("mod"), _reflected("mod")
    __pow__, __rpow__ = _two("pow"), _reflected("pow")
    __eq__, __ne__ = _two("eq"), _two("ne")
    __lt__, __le__, __gt__, __ge__ = _two("lt"), _two("le"), _two("gt"), _two("ge")

    def __neg__(self) -> int:
        return -self._number()


class Counted:
    """The counter's name in the author's namespace, and how its last value is kept there.

    Parameters
    ----------
    name : str
        The counter's name.
    namespace : dict
        The names of the author's module or notebook.
    """

    def __init__(self, name: str, namespace: dict[str, Any]) -> None:
        self._name, self._namespace = name, namespace
        self._last: Callable[[], int] = self._unknown

    def leave(self, last: int | None = None) -> None:
        """Put the last value into the namespace: `last`, or what the loop has counted."""
        self._namespace[self._name] = LastCount(self._last) if last is None else last

    def plan(
        self, backend: Backend, recorder: Recorder, turns: Until | Sweep
    ) -> FusedLoop | Rejection:
        """Return the plan of a loop that counts its iterations, by itself or by one more statement.

        Nobody is expected to read a counter that is called ``_``: it is not counted.
        """
        statements = recorder.statements
        loop = backend.plan_loop(statements, turns)
        if isinstance(loop, Rejection) or self._name == "_":
            return loop
        if hasattr(loop, "count"):
            self._last = loop.count()
            return loop
        if recorder.ndim != 1:
            return Rejection("it is outside a function, and a loop over matrices keeps no counter")
        last = ScalarValue(INT64)
        self._last = last.get
        number = Constant(CounterRef(INT64))
        return backend.plan_loop([*statements, Statement(last, Descriptor(), number, INT64)], turns)

    def _unknown(self) -> int:
        raise InvalidValue(
            f"{self._name}: the counter of a loop that ran as one program was not kept, as nobody "
            "reads a counter of this name. Give it another name."
        )
