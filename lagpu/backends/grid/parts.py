"""The parts of a grid, as those who make graphs or count in them see them; see `Parts`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from lagpu.backends.grid.dealing import Layout
from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.handles import GridMatrix
from lagpu.backends.grid.pieces import Pieces, joined
from lagpu.backends.grid.together import NOTHING
from lagpu.backends.protocol import Backend
from lagpu.dtypes import DType
from lagpu.host.memory import mapped
from lagpu.operations import Handle

Array = np.ndarray[Any, Any]
T = TypeVar("T")


class Parts:
    """See `lagpu.backends.protocol.Parts`."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self.count = pieces.engine.size
        self.beside = len(pieces.engine.local) * pieces.engine.beside
        self.homes = pieces.places

    def matrix(
        self,
        part: Callable[[Backend, Layout, int], Handle],
        dtype: DType,
        shape: tuple[int, int],
        symmetric: bool | None = None,
        apart: bool = False,
    ) -> GridMatrix:
        """See the protocol."""
        by = self._pieces.layout(shape)

        def attempt(piece: tuple[int, int, Backend]) -> Callable[[], Handle]:
            """Make a part; return what returns it, or raises its error where all can hear of it."""
            _, p, place = piece
            try:
                made = part(place, by, p)
            except Exception as error:
                return functools.partial(_raise, error)
            return lambda: made

        at_once = apart and self._on_own_gpus
        ready = mapped(attempt, self._pieces, waits=True) if at_once else []

        def make() -> GridMatrix:
            parts = [of() for of in ready] or [part(place, by, p) for _, p, place in self._pieces]
            made: GridMatrix = self._pieces.handle(parts, dtype, shape)
            made.symmetric = symmetric
            return self._pieces.ordered(made)

        return self._run(
            "matrix of parts", make, {"dtype": dtype, "shape": shape, "symmetric": symmetric}
        )

    def owned(
        self, entries: Callable[[Backend, int], Arrays], shape: tuple[int, int]
    ) -> dict[int, Arrays]:
        """See the protocol."""
        by = self._pieces.layout(shape)

        def travel() -> dict[int, Arrays]:
            given = [entries(place, p) for _, p, place in self._pieces]
            owners = [by.owner(*lists[:2]) for lists in given]
            received = map(joined, self._pieces.routed(given, owners))
            local = self._pieces.engine.local
            return {
                p: (*by.position(*own[:2]), *own[2:])
                for p, own in zip(local, received, strict=True)
            }

        return self._run("entries of parts", travel, {"shape": shape})

    def columns(self, A: GridMatrix) -> dict[int, tuple[Any, ...]]:
        """See the protocol."""
        by = self._pieces.layout(A.shape)

        def index(dim: int, part: int) -> Array | None:
            return None if by.dims[dim].whole else by.dims[dim].own(part)

        def read() -> dict[int, tuple[Any, ...]]:
            found = {}
            for k, p, place in self._pieces:
                names = (index(dim, part) for dim, part in enumerate(by.parts(p)))
                found[p] = (*place.matrix_to_csc(A.parts[k], narrow=True), *names)
            return found

        return self._run("columns of parts", read, {"matrix": A})

    def reduced(
        self,
        work: Callable[[Backend, int], Array],
        shape: tuple[int, int],
        dim: int,
        ufunc: np.ufunc,
    ) -> Array:
        """See the protocol."""
        pieces, layout = self._pieces, self._pieces.layout(shape)
        by, owners = layout.dims[dim], pieces.partition(shape[dim])

        def reduce() -> Array:
            given, where = [], []
            for _, p, place in pieces:
                index, values = by.own(layout.parts(p)[dim]), work(place, p)
                given.append((owners.position(index), _each_as_one(values)))
                where.append(owners.owner(index))
            like = values[:0]  # an engine takes lists alone, so rows travel as single values
            totals = []
            for p, lists in zip(pieces.engine.local, pieces.routed(given, where), strict=True):
                received = [(at, _like(like, rows)) for at, rows in lists]
                totals.append((_each_as_one(_reduced(owners.count(p), received, ufunc)),))
            found = np.empty((shape[dim], *like.shape[1:]), like.dtype)
            for p, (total,) in enumerate(pieces.engine.gather(totals)[0]):
                found[owners.own(p)] = _like(like, total)
            return found

        return self._run("sums of parts", reduce, {"shape": shape, "dim": dim})

    def gather(self, work: Callable[[Backend, int], Arrays]) -> list[Arrays]:
        """See the protocol."""

        def gather() -> list[Arrays]:
            found = [work(place, p) for _, p, place in self._pieces]
            return list(self._pieces.engine.gather(found)[0])

        return self._run("gather", gather)

    def require_alike(self, what: str, given: Mapping[str, Any]) -> None:
        """See the protocol."""
        self._run(what, lambda: None, given)

    @property
    def _on_own_gpus(self) -> bool:
        """Whether each of several local pieces has a GPU to itself."""
        devices = {
            id(home.device) for home in self.homes if home.device and home.device.xp is not np
        }
        return len(devices) == len(self.homes) > 1

    def _run(self, name: str, work: Callable[[], T], given: Mapping[str, Any] = NOTHING) -> T:
        with self._pieces.lock:
            return self._pieces.changes.run(name, work, given)


def _raise(error: Exception) -> NoReturn:
    raise error


def _reduced(size: int, lists: Sequence[Arrays], ufunc: np.ufunc) -> Array:
    """Return the reduction of (positions, values) from several pieces; each position has one."""
    like = lists[0][1]
    found, known = np.empty((size, *like.shape[1:]), like.dtype), np.zeros(size, bool)
    for where, values in lists:
        first = ~known[where]
        found[where[first]] = values[first]
        again = where[~first]
        found[again] = ufunc(found[again], values[~first])
        known[where] = True
    return found


def _each_as_one(values: Array) -> Array:
    """Return an array of rows as a list, each row one value of as many bytes."""
    if values.ndim == 1:
        return values
    row = np.dtype((np.void, values.shape[1] * values.itemsize))
    return np.ascontiguousarray(values).view(row)[:, 0]


def _like(like: Array, values: Array) -> Array:
    """Return the values again of which `_each_as_one` made a list."""
    return values if like.ndim == 1 else values.view(like.dtype).reshape(-1, like.shape[1])
