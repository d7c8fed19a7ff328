"""Searches of the paper systems."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lagpu.algebra.tables import semiring
from lagpu.backends.gpu.fused.match import DEPTH, NUMBER, SearchBody, match_search
from lagpu.backends.gpu.ops.planner import WARP_LENGTH, pulls_by_edges
from lagpu.backends.grid.handles import GridHandle, GridMatrix, GridVector
from lagpu.backends.grid.pieces import Entries, Pieces, cut, entries_of, from_entries
from lagpu.backends.grid.systems.exchange import COLUMN, ROW, Exchange, Listed, Neighbours
from lagpu.backends.grid.systems.policy import System, policies_with_systems, system_of
from lagpu.backends.policies import require_policy
from lagpu.backends.profile import LoopRow, Measured, Phase
from lagpu.backends.protocol import Backend
from lagpu.dtypes import BOOL, DType
from lagpu.errors import NotSupported
from lagpu.host.interrupt import uninterrupted
from lagpu.operations import (
    Assign,
    AssignScalar,
    Descriptor,
    Handle,
    Multiply,
    Product,
    Rejection,
    Statement,
    Sweep,
    Until,
    once,
)

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


# ------------------------------------------------------------------------------------------
# A search of a grid by a paper's system: the host's loop over levels.


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


# ------------------------------------------------------------------------------------------
# A recorded loop as a search by a paper's system.


_Assigned = list[tuple[int, Array]]  # the depth and the own vertices of each frontier


def plan_system(
    pieces: Pieces, statements: Sequence[Statement], turns: Until | Sweep
) -> SystemLoop | None:
    """Return the loop as a search by the system that its product names; None if it names none.

    Raises
    ------
    InvalidValue
        If the system has no such argument.
    NotSupported
        If the loop is not such a search.
    """
    policy = once(statements, _policy_of)
    system = None if policy is None else system_of(policy)
    if system is None:
        return None
    body: SearchBody | Rejection
    if isinstance(turns, Sweep) or not isinstance(turns.empty, GridVector):
        body = Rejection("the loop has no frontier that is a vector")
    else:
        body = match_search(list(map(_without_policy, statements)), turns.empty)
    why = body.why if isinstance(body, Rejection) else _why_no_search(body)
    if why:
        raise _refused(str(policy), why)
    assert isinstance(body, SearchBody)
    assert isinstance(turns, Until)
    return SystemLoop(pieces, body, system, str(policy), turns.times)


def _policy_of(statements: Sequence[Statement]) -> str | None:
    """Return the policy of the first product."""
    products = (s.operation.product for s in statements if isinstance(s.operation, Multiply))
    return next((product.policy for product in products), None)


def require_no_system(place: Backend, policy: str | None) -> None:
    """Raise `NotSupported` if a product by itself names a system; `InvalidValue` if no policy."""
    if policy is not None:
        require_policy(policies_with_systems(place), policy)
    if system_of(policy) is not None:
        raise _refused(str(policy), "a product that runs by itself is no search")


def _refused(policy: str, why: str) -> NotSupported:
    return NotSupported(
        f"policy {policy}: {why}. Search for levels or parents from one vertex by a loop that is "
        "recorded, on a grid that lagpu.grid(policy=...) or --policy gave it, or leave it out."
    )


def _without_policy(s: Statement) -> Statement:
    if not isinstance(s.operation, Multiply):
        return s
    product = s.operation.product._replace(policy=None)
    return s._replace(operation=s.operation._replace(product=product))


def _why_no_search(body: SearchBody) -> str:
    """Return why a body is no search for levels or parents, or an empty string."""
    multiply, monoid = body.product.semiring.multiply, body.product.semiring.monoid
    if body.sums:
        return "products of a level add up"
    if multiply.positional == "k" and monoid.op.name == "any":
        return ""
    if multiply.positional or any(body.reads) or not monoid.idempotent:
        return "the values of the product are neither ones nor predecessors"
    return ""


class SystemLoop:
    """A search that runs by a system; see `FusedLoop`.

    It makes new parts, which the handles take once no process can fail any more.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    body : SearchBody
        The loop's body, on handles of the grid.
    system : System
        How it runs.
    policy : str
        The name and arguments of the system, as given.
    times : int or None
        Iterations, at most.
    """

    def __init__(
        self, pieces: Pieces, body: SearchBody, system: System, policy: str, times: int | None
    ) -> None:
        self._pieces, self._body, self._system, self._times = pieces, body, system, times
        self._search: Search | None = None
        R, C = pieces.grid
        self.name = policy
        self.why = f"the body is a search from one frontier; {R} x {C} pieces"
        self.nbytes = 0  # on the places: they ask for it themselves

    def run(self) -> None:
        """See `FusedLoop`."""
        body = self._body._replace(statements=())  # of which the other fields are made
        given = {"policy": self.name, "body": body, "times": self._times}
        self._pieces.changes.run("search", self._run, given)

    def _run(self) -> None:
        if self._times == 0:
            return
        body = self._body
        given: Any = body.A
        A = given if body.product.transpose else self._pieces.turned(given)
        numbered = body.product.semiring.multiply.positional == "k"
        search = self._search = Search(self._pieces, A, self._system, numbered)
        first = [place.vector_to_coo(body.frontier.parts[k]) for k, _, place in self._pieces]
        self._begin(search, first)
        assigned: list[_Assigned] = [[] for _ in first]
        while search.total and len(search.levels) != self._times:
            depth = len(search.levels)
            if body.assigns_first:
                _note(assigned, search, depth)
            search.advance()
            if not body.assigns_first:
                _note(assigned, search, depth)
        self._write(search, assigned, self._values(search, first, numbered))

    def _begin(self, search: Search, first: Sequence[Entries]) -> None:
        """Give the search the frontier, and what the mask of the first product leaves out."""
        visited = []
        for (k, _, place), (front, _values) in zip(self._pieces, first, strict=True):
            excluded = place.vector_to_coo(self._body.excluded.parts[k])[0]
            visited.append(np.union1d(excluded, front) if self._body.assigns_first else excluded)
        search.begin([front for front, _ in first], visited)

    def _values(self, search: Search, first: Sequence[Entries], numbered: bool) -> list[Array]:
        """Return the value in the frontier of each own vertex that was in one, by local piece."""
        dtype, found = self._body.frontier.dtype.numpy, []
        parents = search.parents() if numbered else [1] * len(first)
        for piece, (front, values), of in zip(search.local, first, parents, strict=True):
            own = np.empty(piece.size, dtype)
            own[:] = of
            given = piece.giver[front] < 0  # not found once more
            own[front[given]] = values[given]
            found.append(own)
        return found

    def _write(self, search: Search, assigned: list[_Assigned], values: list[Array]) -> None:
        """Make the new parts of the frontier and of what is assigned; the handles take them."""
        body, pieces = self._body, self._pieces
        frontier = pieces.empty(body.frontier.dtype, body.frontier.shape)
        targets = [pieces.empty(a.target.dtype, a.target.shape) for a in body.assignments]
        for k, _, place in pieces:
            size, at = len(values[k]), search.local[k].front
            frontier.parts[k] = _vector(place, at, values[k][at], frontier.dtype, size)
            at = np.concatenate([at[:0], *(front for _, front in assigned[k])])
            depths = np.repeat([d for d, _ in assigned[k]], [len(f) for _, f in assigned[k]])
            for a, target in zip(body.assignments, targets, strict=True):
                given = depths if a.what == DEPTH else values[k][at]
                if a.what == NUMBER:
                    given = np.full(len(at), a.number)
                part = _vector(place, at, given, target.dtype, size)
                target.parts[k] = _added(place, a.target.parts[k], part, target.dtype)
        written = [body.frontier, *(a.target for a in body.assignments)]
        new = list(zip(written, [frontier, *targets], strict=True))
        pieces.changes.make(lambda: _take(new))

    def rows(self, products: Sequence[Measured]) -> list[LoopRow]:
        """Return a row for each statement and level, once the loop has run.

        Parameters
        ----------
        products : sequence of Measured
            The local products in their order, level by level.
        """
        assert self._search is not None
        found, local, done = [], len(self._search.local), 0
        for depth, level in enumerate(self._search.levels):
            parts = products[done : done + level.products]
            done += level.products
            edges = [level.listed, *(part.edges for part in parts)]
            known = all(count is not None for count in edges)
            measured = Measured(
                kernel_ms=sum(phase.ms for phase in level.phases),
                host_ms=None,
                direction={0: "push", local: "pull"}.get(level.pulls, "both"),
                kernel=(parts[0].kernel if parts else "") or self.name,
                reason=f"{level.why}; {level.pulls} of {local} pieces pull",
                edges=sum(count or 0 for count in edges) if known else None,
                phases=level.phases,
            )
            assigned = Measured(0.0, None, reason="timed with the product")
            for k, s in enumerate(self._body.statements):
                is_product = isinstance(s.operation, Multiply)
                out = level.found if is_product else level.frontier
                of = measured if is_product else assigned
                found.append(LoopRow(k, depth, level.frontier, out, of))
        return found


def _note(assigned: list[_Assigned], search: Search, depth: int) -> None:
    for noted, piece in zip(assigned, search.local, strict=True):
        noted.append((depth, piece.front))


def _take(new: Sequence[tuple[GridHandle, GridHandle]]) -> None:
    with uninterrupted():
        for x, found in new:
            x.become(found)


def _vector(place: Backend, at: Array, values: Array, dtype: DType, size: int) -> Handle:
    return from_entries(place, (at, values.astype(dtype.numpy)), dtype, (size,))


def _added(place: Backend, x: Handle, part: Handle, dtype: DType) -> Handle:
    """Return a vector with the entries of `part`, and elsewhere those of `x`."""
    if not place.nvals(x):
        return part
    made = place.dup(x, dtype)
    place.execute(Statement(made, Descriptor(part), Assign(part), dtype))
    return made
