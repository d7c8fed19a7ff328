"""One piece of a search by levels: what it has visited, and how it found its vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.tables import semiring
from lagpu.backends.gpu.ops.directions import WARP_LENGTH
from lagpu.backends.grid.handles import GridMatrix
from lagpu.backends.grid.pieces import Pieces, entries_of
from lagpu.backends.grid.systems.neighbours import Listed, Neighbours
from lagpu.backends.grid.systems.policy import System
from lagpu.dtypes import BOOL
from lagpu.operations import (
    AssignScalar,
    Descriptor,
    Multiply,
    Product,
    Statement,
)

__all__ = ["Piece"]

Array = np.ndarray[Any, Any]


class Piece:
    """The state of a local piece: its *sources* are the rows of its part, *targets* the columns.

    Targets that belong to other pieces of its row are visited once this piece has found them, so
    that each is sent to its owner once. Paper: Bisson and others 2016, section 3.4.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    k : int
        The position of this one among the local pieces.
    A : GridMatrix, (n, n)
        The matrix.
    shape : tuple of int
        (sources, targets) of its part.
    own : array of int
        The target that each of its own vertices is, by position.
    system : System
        Names the kernels.

    Attributes
    ----------
    own : array of int
        As given.
    front : array of int
        The own vertices of the frontier, by position, rising.
    unvisited : int
        Targets that are not visited, as far as the piece knows.
    via : array of INT64, (targets,)
        The source by which the piece has found a target.
    giver, source : array of INT64, (own vertices,)
        The piece that has found an own vertex, -1 before; and the source there, once it is known.
    """

    def __init__(
        self,
        pieces: Pieces,
        k: int,
        A: GridMatrix,
        shape: tuple[int, ...],
        own: Array,
        system: System,
    ) -> None:
        self._pieces, self._k, self._part, self._dtype = pieces, k, A.parts[k], A.dtype
        self._place, self.own = pieces.places[k], own
        self._kernels: tuple[str | None, str | None] = None, None
        self._sources, targets = shape
        if self._place.capabilities.kernels:
            push, few, many = system.kernels
            push = "push_scatter" if system.claims == "scatter" else push
            is_long = self._place.nvals(self._part) >= WARP_LENGTH * targets
            self._kernels = push, many if is_long else few
        self._neighbours: Neighbours | None = None
        if system.claims == "sort":
            self._neighbours = Neighbours(self._place, self._part, self._sources)
        self._visited = self._place.vector(BOOL, targets)
        self._seen = np.zeros(targets, bool)
        self.unvisited = targets
        self.front: Array = np.zeros(0, np.int64)
        self.via = np.zeros(targets, np.int64)
        self.giver, self.source = np.full(len(own), -1), np.zeros(len(own), np.int64)
        self._untold: list[Array] = [self.front]

    @property
    def size(self) -> int:
        """The number of own vertices."""
        return len(self.own)

    def out_degrees(self) -> Array:
        """Return the number of entries in each row of the part."""
        rows = entries_of(self._place, self._part, 2)[0]
        return np.bincount(rows, minlength=self._sources)

    def find(self, sources: Array, pulls: bool, numbered: bool) -> tuple[Array, Array]:
        """Return the targets next to these sources that are not visited, and the source of each.

        They are visited from now on. The sources mean nothing unless `numbered`.
        """
        place, targets = self._place, len(self._seen)
        algebra = semiring.any_secondi if numbered else semiring.any_pair
        domain, result = algebra.types(BOOL, self._dtype)
        product = Product(algebra, domain, result, True, True, self._kernels[pulls])
        u = place.vector_from_coo(np.sort(sources), np.True_, BOOL, self._sources)
        out = place.vector(result, targets)
        desc = Descriptor(self._visited, complement=True, replace=True)
        product_of = Statement(out, desc, Multiply(self._part, u, product), result)
        self._pieces.execute(self._k, product_of)
        where, values = place.vector_to_coo(out)
        self._visit(where)
        self.via[where] = values
        return where, values

    def listed(self, sources: Array) -> Listed:
        """Return the entries in the rows of these sources, for `claim`."""
        assert self._neighbours is not None
        return self._neighbours.listed(np.sort(sources))

    def claim(self, listed: Listed) -> tuple[Array, Array]:
        """Return what `find` returns, from the list of neighbours."""
        assert self._neighbours is not None
        targets, sources = self._neighbours.distinct(listed)
        new = ~self._seen[targets]
        where, values = targets[new], sources[new]
        self._visit(where)
        self.via[where] = values
        return where, values

    def visit_own(self, vertices: Array) -> Array:
        """Visit own vertices; return which of them were not visited before."""
        new: Array = ~self._seen[self.own[vertices]]
        self._visit(self.own[vertices[new]])
        self._untold.append(vertices[new])
        return new

    def take(self, vertices: Array, giver: int) -> None:
        """Note who has found own vertices that are visited."""
        self.giver[vertices] = giver
        self._untold.append(vertices)

    def take_untold(self) -> Array:
        """Return the own vertices that were visited since the last call."""
        untold, self._untold = np.concatenate(self._untold), [np.zeros(0, np.int64)]
        return untold

    def visit(self, targets: Array) -> None:
        """Visit targets of which some may be visited."""
        self._visit(targets[~self._seen[targets]])

    def _visit(self, targets: Array) -> None:
        """Mark targets that are not visited."""
        if len(targets):
            self._seen[targets] = True
            self.unvisited -= len(targets)
            at = self._place.vector_from_coo(np.sort(targets), np.True_, BOOL, len(self._seen))
            desc = Descriptor(at)
            self._place.execute(Statement(self._visited, desc, AssignScalar(np.True_), BOOL))
