"""A case: a program that must return the same on a backend and on the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core import Matrix, Vector

Results = Iterator[tuple[str, Any]]
"""Results by name: vectors, matrices, scalars or plain values."""
Program = Callable[[Backend], Results]
"""Builds its data on a backend and yields what it finds."""


class Difference(Exception):
    """Two backends disagree."""


@dataclass(frozen=True, eq=False)
class Case:
    """A row of the report.

    Attributes
    ----------
    group, name : str
        The subject of the case.
    run : callable
        Takes (backend, oracle), returns a summary in a few words, raises if the case fails.
    brief : callable, optional
        The same on fewer graphs, for a quick run; by default `run`.
    """

    group: str
    name: str
    run: Callable[[Backend, Backend], str]
    brief: Callable[[Backend, Backend], str] | None = None


def kind_of(group: str, name: str) -> tuple[str, str]:
    """Return a group of cases, and the kernel, operation or algorithm in the name of one."""
    return group, name.split()[0].rstrip(",")


def agree(program: Program) -> Callable[[Backend, Backend], str]:
    """Return the run of a case whose program must yield the same on both backends."""

    def run(place: Backend, oracle: Backend) -> str:
        count = 0
        for (name, got), (_, wanted) in zip(program(place), program(oracle), strict=True):
            if differs := difference(got, wanted):
                raise Difference(f"{name}: {differs}")
            count += 1
        return f"{count} results agree"

    return run


def difference(got: Any, wanted: Any, *, rounded: bool = False) -> str:
    """Return how two results differ, or an empty string; `rounded` allows rounding of sums."""
    ours, theirs = dict(_parts(got)), dict(_parts(wanted))
    if ours.keys() != theirs.keys():
        return f"{got!r}, not {wanted!r}"
    for what, x, y in ((what, np.asarray(x), np.asarray(theirs[what])) for what, x in ours.items()):
        if x.dtype.kind != y.dtype.kind or (x.shape and x.dtype != y.dtype):
            return f"{what}: {x.dtype}, not {y.dtype}"
        if x.shape != y.shape:
            return f"{what}: {x.shape}, not {y.shape}"
        same = (x == y) | ((x != x) & (y != y))  # NaN is like NaN
        if rounded and x.dtype.kind == "f":
            same = np.isclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True)
        if not same.all():
            k = np.unravel_index(np.argmin(same), same.shape)
            return f"{what}{[*map(int, k)] if k else ''} is {x[k]}, not {y[k]}"
    return ""


def _parts(result: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, part) of a result, for comparison."""
    if isinstance(result, tuple):
        for k, part in enumerate(result):
            yield from _parts(part, f"{name}{k} ")
    elif isinstance(result, Vector):
        indices, values = result.to_coo()
        yield f"{name}size", result.size
        yield f"{name}indices", indices
        yield f"{name}values", values
    elif isinstance(result, Matrix):
        rows, cols, values = result.to_coo()
        yield f"{name}shape", np.array(result.shape)
        yield from (
            (f"{name}rows", rows.astype(np.int64)),
            (f"{name}columns", cols.astype(np.int64)),
        )
        yield f"{name}values", values
    else:
        yield f"{name}value", getattr(result, "value", result)
