"""The parts of a grid's objects, for code that makes graphs or counts in them; see `Parts`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np

from lagpu.backends.grid.comm import Arrays
from lagpu.backends.grid.handles import GridMatrix
from lagpu.backends.grid.partition import Layout
from lagpu.backends.grid.pieces import NOTHING, Pieces
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
            """Make a part; return what returns it, or raises its error inside the statement."""
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

        given = {"dtype": dtype, "shape": shape, "symmetric": symmetric}
        return self._run("matrix of parts", make, given)

    def owned(
        self, entries: Callable[[Backend, int], Arrays], shape: tuple[int, int]
    ) -> dict[int, Arrays]:
        """See the protocol."""
        by = self._pieces.layout(shape)

        def send() -> dict[int, Arrays]:
            given = [entries(place, p) for _, p, place in self._pieces]
            received = self._pieces.routed(given, [by.owner(*lists[:2]) for lists in given])
            local = zip(self._pieces.engine.local, received, strict=True)
            return {p: (*by.position(*own[:2]), *own[2:]) for p, own in local}

        return self._run("entries of parts", send, {"shape": shape})

    def columns(self, A: GridMatrix) -> dict[int, tuple[Any, ...]]:
        """See the protocol."""
        by = self._pieces.layout(A.shape)

        def read() -> dict[int, tuple[Any, ...]]:
            found = {}
            for k, p, place in self._pieces:
                each = zip(by.dims, by.parts(p), strict=True)
                names = [None if dim.whole else dim.own(part) for dim, part in each]
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
        pieces, layout, size = self._pieces, self._pieces.layout(shape), shape[dim]
        by, owners = layout.dims[dim], pieces.partition(size)

        def reduce() -> Array:
            given = []
            for _, p, place in pieces:
                part, values = layout.parts(p)[dim], work(place, p)
                columns = values[None] if values.ndim == 1 else values.T  # an engine sends lists
                to = {}
                for q in range(owners.pieces):
                    # A part has all indices of an owner, or none.
                    if owners.count(q) and by.owner(owners.index(q, 0)) == part:
                        to[q] = tuple(columns[:, by.position(owners.own(q))])
                given.append(to)
            totals = []
            for lists in pieces.engine.exchange(given):
                each = zip(*lists.values(), strict=True)
                totals.append(tuple(functools.reduce(ufunc, of) for of in each))
            found = np.empty((len(columns), size), values.dtype)
            for p, total in enumerate(pieces.engine.gather(totals)[0]):
                for column, of in zip(found, total, strict=bool(total)):
                    owners.put(p, of, column)
            return np.ascontiguousarray(found.T).reshape(size, *values.shape[1:])

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
