"""A case: a program that must return the same on a backend and on the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector

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

    @property
    def kind(self) -> tuple[str, str]:
        """The group, and the kernel, operation or algorithm."""
        return self.group, self.name.split()[0].rstrip(",")


def agree(program: Program) -> Callable[[Backend, Backend], str]:
    """Return the run of a case whose program must yield the same on both backends."""

    def run(place: Backend, oracle: Backend) -> str:
        count = 0
        for (name, got), (_, wanted) in zip(program(place), program(oracle), strict=True):
            _compare(name, got, wanted)
            count += 1
        return f"{count} results agree"

    return run


def _compare(name: str, got: Any, wanted: Any) -> None:
    for (what, x), (_, y) in zip(_parts(got), _parts(wanted), strict=True):
        if isinstance(x, np.ndarray):
            if x.dtype != y.dtype:
                raise Difference(f"{name}: {what} are {x.dtype}, not {y.dtype}")
            if x.shape != y.shape:
                raise Difference(f"{name}: {len(x)} {what}, not {len(y)}")
            same = (x == y) | ((x != x) & (y != y))  # NaN is like NaN
            if not same.all():
                k = int(np.argmin(same))
                raise Difference(f"{name}: {what}[{k}] is {x[k]}, not {y[k]}")
        elif x != y and not (x != x and y != y):
            raise Difference(f"{name}: {what} is {x}, not {y}")


def _parts(result: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, part) of a result, for comparison."""
    if isinstance(result, Vector):
        indices, values = result.to_coo()
        yield from (("size", result.size), ("indices", indices), ("values", values))
    elif isinstance(result, Matrix):
        rows, cols, values = result.to_coo()
        yield "shape", result.shape
        yield from (("rows", rows.astype(np.int64)), ("columns", cols.astype(np.int64)))
        yield "values", values
    else:
        yield "value", getattr(result, "value", result)
