"""Cases: programs that must return the same on a backend and on the oracle; and their data.

The graphs and vectors are small, of awkward shapes, and the same on every backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core import Matrix, Vector
from lagpu.dtypes import BOOL, Array, DType
from lagpu.generators.graphs import grid_links
from lagpu.host.columns import distinct

Results = Iterator[tuple[str, Any]]
"""Results by name: vectors, matrices, scalars or plain values."""
Program = Callable[[Backend], Results]
"""Builds its data on a backend and yields what it finds."""


class Difference(Exception):
    """Two backends disagree."""


@dataclass(frozen=True, eq=False)
class Case:
    """A row of the report: its subject, and its run."""

    group: str
    name: str
    #: Takes (backend, oracle), returns a summary in a few words, raises if the case fails.
    run: Callable[[Backend, Backend], str]
    brief: Callable[[Backend, Backend], str] | None = None  # on fewer graphs, for quick runs


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
        yield f"{name}rows", rows.astype(np.int64)
        yield f"{name}columns", cols.astype(np.int64)
        yield f"{name}values", values
    else:
        yield f"{name}value", getattr(result, "value", result)


# ---- graphs and vectors


@dataclass(frozen=True, eq=False)
class Graph:
    """The entries of a square matrix, on no backend yet."""

    name: str  # in reports
    n: int
    rows: Array  # edges ``rows[k] -> cols[k]``, each once
    cols: Array

    def matrix(self, dtype: DType, place: Backend, *, wide: bool = False) -> Matrix:
        """Return the matrix with values 1 .. 3, or True."""
        # `wide`: with 64-bit indices, like a huge matrix, on a backend with a device.
        values: Any = True
        if dtype is not BOOL:
            values = (1 + (self.rows * 7 + self.cols * 3) % 3).astype(dtype.numpy)
        A = Matrix.from_coo(
            self.rows, self.cols, values, dtype, nrows=self.n, ncols=self.n, backend=place
        )
        if wide and place.device is not None:  # as a huge matrix is stored there
            stored = A.data.csc()
            stored.col_ptr = stored.col_ptr.astype(np.int64)
            stored.row_idx = stored.row_idx.astype(np.int64)
        return A

    def sources(self) -> list[int]:
        """Return some sources: the ends, the middle, and the vertex with most edges."""
        hub = int(np.argmax(np.bincount(self.rows, minlength=self.n)))
        return sorted({0, self.n // 2, self.n - 1, hub})


def _graph(name: str, n: int, rows: Array, cols: Array) -> Graph:
    keys = distinct(rows.astype(np.int64) * n + cols)
    return Graph(name, n, keys // n, keys % n)


def _undirected(name: str, n: int, i: Array, j: Array) -> Graph:
    return _graph(name, n, np.r_[i, j], np.r_[j, i])


def _random(n: int, degree: int, *, directed: bool) -> Graph:
    i, j = np.random.default_rng(n).integers(0, n, (2, n * degree))
    if directed:
        return _graph(f"directed random {n}", n, i, j)
    return _undirected(f"random {n}", n, i, j)


def _hub(n: int) -> Graph:
    """Return a star with a path through its leaves: one long column, many short ones."""
    i = np.arange(1, n - 1)
    first = np.zeros(n - 1, np.int64)
    return _undirected(f"hub {n}", n, np.r_[first, i], np.r_[np.arange(1, n), i + 1])


def _isolated(n: int) -> Graph:
    """Return a cycle through every third vertex; the others have no edge."""
    i = np.arange(0, n, 3)
    return _undirected(f"isolated {n}", n, i, np.roll(i, -1))


def _loops(n: int) -> Graph:
    """Return a directed path on which every vertex has an edge to itself."""
    i = np.arange(n)
    return _graph(f"self-loops {n}", n, np.r_[i, i[:-1]], np.r_[i, i[1:]])


_NOTHING = np.zeros(0, np.int64)

#: Sizes are around that of a warp, and around the words that a thread block processes.
GRAPHS = (
    _graph("one vertex", 1, _NOTHING, _NOTHING),
    _graph("one self-loop", 1, np.zeros(1, np.int64), np.zeros(1, np.int64)),
    _graph("empty 33", 33, _NOTHING, _NOTHING),
    _random(31, 3, directed=False),
    _random(32, 4, directed=True),
    _isolated(33),
    _loops(33),
    _hub(1023),
    _random(1025, 3, directed=True),
    _random(1025, 9, directed=False),
)

#: A ladder of 71 levels; up to 64 levels searches of many sources run level by level.
DEEP = _undirected("ladder 140", 140, *grid_links("ladder", 70, 2, "cpu")[:2])


def vector(n: int, dtype: DType, place: Backend, *, share: float, seed: int) -> Vector:
    """Return a vector with entries, some zero, at a random share of the indices."""
    rng = np.random.default_rng((n, seed))
    indices = np.flatnonzero(rng.random(n) < share)
    values = rng.integers(0, 4, len(indices)).astype(dtype.numpy)
    return Vector.from_coo(indices, values, dtype, size=n, backend=place)
