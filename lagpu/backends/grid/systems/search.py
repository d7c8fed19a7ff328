"""A search of a grid by a paper's system: the host's loop over levels."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lagpu.backends.gpu.ops.planner import pulls_by_edges
from lagpu.backends.grid.handles import GridMatrix
from lagpu.backends.grid.pieces import Pieces, cut
from lagpu.backends.grid.systems.exchange import COLUMN, ROW, Exchange
from lagpu.backends.grid.systems.neighbours import Listed
from lagpu.backends.grid.systems.piece import Piece
from lagpu.backends.grid.systems.policy import System
from lagpu.backends.profile import Phase

__all__ = ["Level", "Search"]

Array = np.ndarray[Any, Any]
T = TypeVar("T")


class Level(NamedTuple):
    """What a trace knows of a level.

    Attributes
    ----------
    frontier, found : int
        Vertices of the whole frontier, and of the one after it.
    pulls : int
        Local pieces that pulled.
    why : str
        The reason, in the numbers of the first local piece or of all.
    phases : tuple of Phase
        Times of this process, and what its pieces sent.
    products : int
        Products of a place in it: one for each local piece, unless neighbours are listed.
    listed : int
        Neighbours that the local pieces have listed.
    """

    frontier: int
    found: int
    pulls: int
    why: str
    phases: tuple[Phase, ...]
    products: int
    listed: int


class Search:
    """One search, level by level. Every process makes it and calls the methods, in step.

    A level is: expand along the column of pieces, expansion, fold along the row, update; Bisson and
    others 2016, algorithm 2. Messages have positions of vertices in a piece.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    A : GridMatrix, (n, n)
        Entry (i, j) is the edge i -> j.
    system : System
        The policy.
    numbered : bool
        Whether parents are wanted.

    Attributes
    ----------
    local : list of Piece
        The local pieces.
    total : int
        Vertices of the frontier, in all pieces.
    levels : list of Level
        The levels so far.
    """

    def __init__(self, pieces: Pieces, A: GridMatrix, system: System, numbered: bool) -> None:
        self._pieces, self._system, self._numbered = pieces, system, numbered
        self._layout, self._by = pieces.layout(A.shape), pieces.partition(A.shape[0])
        self._exchange = Exchange(pieces, self._layout, self._by)
        targets = self._layout.dims[ROW]
        self.local = [
            Piece(pieces, k, A, self._layout.shape(p), targets.position(self._by.own(p)), system)
            for k, p, _ in pieces
        ]
        self._nvals, self._degrees = 0, [np.zeros(0, np.int64)] * len(self.local)
        if system.rule == "edges":
            self._nvals, self._degrees = pieces.nvals(A), self._out_degrees(A)
        self._explored, self._pulled = 0, False
        self._phases: list[Phase] = []
        self.total, self._edges = 0, 0
        self.levels: list[Level] = []

    def begin(self, fronts: list[Array], visited: list[Array]) -> None:
        """Take the first frontier, and what is visited: own vertices of the local pieces."""
        for piece, front, before in zip(self.local, fronts, visited, strict=True):
            piece.visit_own(before)
            piece.front = front
        self.total, self._edges = self._agreed()
        self._exchange.noted()

    def advance(self) -> None:
        """Replace the frontier by the vertices next to it that are not visited, and visit these."""
        system, before, self._phases = self._system, self.total, []
        why = self._one_direction()
        form = system.messages
        if form == "direction":
            form = "bitmap" if self._pulled else "list"
        sources = self._timed("expand", lambda: self._expand(form))
        pulls = [self._pulled] * len(self.local)
        if system.rule == "ratio":
            found = [_ratio(len(of), piece) for of, piece in zip(sources, self.local, strict=True)]
            pulls = [ratio >= system.ratio for ratio in found]
            why = f"frontier / unvisited {found[0]:.3g}, threshold {system.ratio:g}"
        if system.share == "yes" and self._any_pulls(pulls):
            self._timed("share", lambda: self._share(form))
        lists = self._lists(sources, pulls)
        reached = self._reached(sources, pulls, lists)
        given = self._timed("fold", lambda: self._fold(reached, form))
        self._timed("update", lambda: self._update(reached, given))
        self.total, self._edges = self._timed("agree", self._agreed)
        known = [of for of in lists if of is not None]
        listed = sum(len(of.targets) for of in known)
        if known:
            why += f"; {listed} neighbours sorted, {sum(of.nbytes for of in known)} bytes"
        phases, products = tuple(self._phases), len(lists) - len(known)
        self.levels.append(Level(before, self.total, sum(pulls), why, phases, products, listed))

    def parents(self) -> list[Array]:
        """Return, for each local piece, the parents of its own vertices that the search has found.

        The others have any number. Those that came without their parents are asked for now.
        """
        if self._system.parents == "late":
            self._phases = []
            self._timed("parents", self._ask)
            if self.levels:
                last = self.levels[-1]
                self.levels[-1] = last._replace(phases=(*last.phases, *self._phases))
        found = []
        for p, piece in zip(self._pieces.engine.local, self.local, strict=True):
            here = np.flatnonzero(piece.giver == p)
            piece.source[here] = piece.via[piece.own[here]]
            index = np.zeros(piece.size, np.int64)
            for s in (p, *self._exchange.mates(p, ROW)):
                at = np.flatnonzero(piece.giver == s)
                part = self._layout.parts(s)[COLUMN]
                index[at] = self._layout.dims[COLUMN].index(part, piece.source[at])
            found.append(index)
        return found

    # ---------------------------------------------------------------------------- the direction
    def _one_direction(self) -> str:
        """Choose the direction of all pieces, where the rule is such; return why."""
        if self._system.rule != "edges":
            return "always pushes"
        self._explored += self._edges
        left, system = self._nvals - self._explored, self._system
        self._pulled = pulls_by_edges(
            self.total, self._by.size, self._edges, left, self._pulled, system.alpha, system.beta
        )
        return f"frontier {self.total}, its edges {self._edges}, unexplored {left}"

    def _any_pulls(self, pulls: list[bool]) -> bool:
        """Whether any piece pulls; they tell each other if each decides by itself."""
        if self._system.rule == "ratio":
            count = [(int(pull),) for pull in pulls]
            return self._timed("agree", lambda: self._exchange.totals(count))[0] > 0
        return self._pulled

    def _agreed(self) -> tuple[int, int]:
        """Return the vertices of the whole frontier, and the edges that leave them if needed."""
        numbers = [
            (len(piece.front), int(degrees[piece.front].sum()) if len(degrees) else 0)
            for piece, degrees in zip(self.local, self._degrees, strict=True)
        ]
        vertices, edges = self._exchange.totals(numbers)
        return vertices, edges

    def _out_degrees(self, A: GridMatrix) -> list[Array]:
        """Return the edges that leave each own vertex, to any piece; the matrix remembers them."""
        if A.degrees is None:
            counts = [piece.out_degrees() for piece in self.local]
            given = [
                {d: (of[self._sources_of(d)],) for d in self._exchange.mates(p, COLUMN)}
                for p, of in zip(self._pieces.engine.local, counts, strict=True)
            ]
            received = self._exchange.numbers(given, COLUMN, 1, "counts")
            found = [
                of[self._sources_of(p)] + sum(count for (count,) in lists.values())
                for p, of, lists in zip(self._pieces.engine.local, counts, received, strict=True)
            ]
            self._pieces.changes.make(lambda: setattr(A, "degrees", found))
            return found
        return A.degrees

    # ------------------------------------------------------------------------------- the phases
    def _timed(self, name: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        made = work()
        ms = (time.perf_counter() - start) * 1e3
        self._phases.append(Phase(name, ms, self._exchange.noted()))
        return made

    def _expand(self, form: str) -> list[Array]:
        """Return, for each local piece, the sources in the frontier of its column of pieces."""
        received = self._exchange.told([piece.front for piece in self.local], COLUMN, form)
        return [
            np.concatenate([self._at(COLUMN, s, vertices) for s, vertices in of.items()])
            for of in self._with_own(received)
        ]

    def _with_own(self, received: list[dict[int, Array]]) -> list[dict[int, Array]]:
        local = zip(self._pieces.engine.local, self.local, received, strict=True)
        return [{p: piece.front} | lists for p, piece, lists in local]

    def _share(self, form: str) -> None:
        """Tell the row of pieces which own vertices are visited that it was not told yet."""
        received = self._exchange.told([piece.take_untold() for piece in self.local], ROW, form)
        for piece, lists in zip(self.local, received, strict=True):
            for s, vertices in lists.items():
                piece.visit(self._at(ROW, s, vertices))

    def _lists(self, sources: list[Array], pulls: list[bool]) -> list[Listed | None]:
        """Return, for each local piece, the neighbours of its sources where they are sorted."""
        if self._system.claims != "sort" or all(pulls):
            return [None] * len(pulls)

        def work() -> list[Listed | None]:
            of_piece = zip(self.local, sources, pulls, strict=True)
            return [None if pull else piece.listed(of) for piece, of, pull in of_piece]

        return self._timed("expansion", work)

    def _reached(
        self, sources: list[Array], pulls: list[bool], lists: list[Listed | None]
    ) -> list[dict[int, Any]]:
        """Return what `_expansion` does, in the phase of its name, or in that of sorting."""
        name = "expansion" if all(of is None for of in lists) else "sort"
        return self._timed(name, lambda: self._expansion(sources, pulls, lists))

    def _expansion(
        self, sources: list[Array], pulls: list[bool], lists: list[Listed | None]
    ) -> list[dict[int, Any]]:
        """Return, for each local piece and owner, the vertices found and the source of each."""
        reached = []
        of_piece = zip(self._pieces.engine.local, self.local, sources, pulls, lists, strict=True)
        for p, piece, of, pull, listed in of_piece:
            if listed is None:
                targets, via = piece.find(of, pull, self._numbered)
            else:
                targets, via = piece.claim(listed)
            index = self._layout.dims[ROW].index(self._layout.parts(p)[ROW], targets)
            by_owner = cut((self._by.position(index), via), self._by.owner(index), self._by.pieces)
            reached.append(dict(enumerate(by_owner)))
        return reached

    def _fold(self, reached: list[dict[int, Any]], form: str) -> list[dict[int, Any]]:
        """Give each vertex to its owner, with its source if parents are sent."""
        if self._numbered and self._system.parents == "sent":
            return self._exchange.numbers(reached, ROW, 2, "pairs")
        vertices = [{d: lists[0] for d, lists in of.items()} for of in reached]
        received = self._exchange.sets(vertices, ROW, form, of_receiver=True)
        return [{s: (at,) for s, at in lists.items()} for lists in received]

    def _update(self, reached: list[dict[int, Any]], given: list[dict[int, Any]]) -> None:
        """Make the next frontier: what a piece has found itself, then what others gave, by rank."""
        local = zip(self._pieces.engine.local, self.local, reached, given, strict=True)
        for p, piece, of, lists in local:
            own = of[p][0]
            piece.take(own, p)
            fresh = [own]
            for s, (vertices, *sources) in lists.items():
                new = piece.visit_own(vertices)
                piece.giver[vertices[new]] = s
                if sources:
                    piece.source[vertices[new]] = sources[0][new]
                fresh.append(vertices[new])
            piece.front = np.sort(np.concatenate(fresh))

    def _ask(self) -> None:
        """Ask for the sources of the vertices that mates gave: two messages for each pair."""
        form, local = "shorter", self._pieces.engine.local
        wanted = [
            {s: np.flatnonzero(piece.giver == s) for s in self._exchange.mates(p, ROW)}
            for p, piece in zip(local, self.local, strict=True)
        ]
        asked = self._exchange.sets(wanted, ROW, form, of_receiver=False)
        answers = [
            {s: (piece.via[self._at(ROW, s, vertices)],) for s, vertices in lists.items()}
            for piece, lists in zip(self.local, asked, strict=True)
        ]
        received = self._exchange.numbers(answers, ROW, 1, "parents")
        for piece, lists, own in zip(self.local, received, wanted, strict=True):
            for s, (sources,) in lists.items():
                piece.source[own[s]] = sources

    def _at(self, along: int, piece: int, vertices: Array) -> Array:
        """Return the sources, or the targets, that vertices of a piece are for its mates."""
        found: Array = self._layout.dims[along].position(self._by.index(piece, vertices))
        return found

    def _sources_of(self, piece: int) -> Array:
        return self._at(COLUMN, piece, np.arange(self._by.count(piece)))


def _ratio(frontier: int, piece: Piece) -> float:
    return frontier / piece.unvisited if piece.unvisited else float("inf")
