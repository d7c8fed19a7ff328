"""The papers' systems of many GPUs: searches by levels, with the host's loop and messages."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from lagpu import operations as ops
from lagpu.algebra.tables import semiring
from lagpu.backends.gpu.ops import planner
from lagpu.backends.gpu.storage.forms import csr_of
from lagpu.backends.grid.comm import Arrays
from lagpu.backends.grid.exchange import FORMS, form_of, packed, summed, unpacked
from lagpu.backends.grid.partition import GridHandle, become_all, needed
from lagpu.backends.grid.pieces import Entries, Pieces, cut, entries_of, from_entries
from lagpu.backends.match import DEPTH, NUMBER, SearchBody, match_search
from lagpu.backends.policies import choice, number, read_arguments, require_policy
from lagpu.backends.protocol import Backend, LoopRow, Measured, Phase
from lagpu.dtypes import BOOL, DType
from lagpu.errors import InvalidValue, NotSupported
from lagpu.operations import Descriptor, Multiply, Rejection, Statement, Sweep, Until

Array = np.ndarray[Any, Any]
T = TypeVar("T")


# ------------------------------------------------------------------------------------------
# Policies.


_CHOICES = {
    "rule": ("push", "ratio", "edges"),
    "messages": (*FORMS, "direction"),
    "parents": ("late", "sent"),
    "share": ("no", "yes"),
    "claims": ("atomic", "scatter", "sort"),
}
_NUMBERS = ("ratio", "alpha", "beta")


@dataclass(frozen=True)
class System:
    """A search of many pieces by a paper.

    Attributes
    ----------
    rule : str
        ``"push"`` at each level; ``"ratio"``: each piece by itself pulls where its frontier over
        its unvisited vertices is at least `ratio`; ``"edges"``: all pieces alike, by `alpha` and
        `beta` over the sums of all.
    messages : str
        Sets of vertices are sent as a ``"list"``, as a ``"bitmap"``, or as the ``"shorter"`` of the
        two, message by message; ``"direction"``: lists in a level that pushes, else bitmaps.
    parents : str
        ``"sent"`` with each vertex, or requested ``"late"``: after the last level.
    share : str
        ``"yes"``: before it pulls, a row of pieces gets the vertices that the owners have visited.
    claims : str
        How a push has each vertex once: by ``"atomic"`` claims; by a ``"scatter"`` in which any
        source of a vertex wins, compacted; or the list of all neighbours is ``"sort"`` ed.
    kernels : tuple of str
        The kernels for a push and for a pull of few and of many entries a column, where the places
        offer a choice.
    """

    rule: str
    messages: str
    parents: str
    share: str
    kernels: tuple[str, str, str]
    ratio: float = planner.BFS2D_RATIO
    alpha: float = planner.BEAMER[0]
    beta: float = planner.BEAMER[1]
    claims: str = "atomic"


#: Bisson and others 2016; Bernaschi and others 2018; Hiragushi and Takahashi 2013.
SYSTEMS = {
    "kepler": System(
        "push", "shorter", "late", "no", ("push_active", "pull_scalar", "pull_warp")
    ),
    "bfs2d": System(
        "ratio", "shorter", "late", "yes", ("push_active", "pull_scalar", "pull_warp")
    ),
    "hiragushi": System(
        "edges", "direction", "sent", "yes", ("push_queue", "pull_bitmap", "pull_bitmap"),
        alpha=planner.HIRAGUSHI[0], beta=planner.HIRAGUSHI[1],
    ),
}  # fmt: skip


#: A search that names none, on rows and columns of pieces with kernels.
AUTO = System("edges", "shorter", "late", "yes", ("push_queue", "pull_bitmap", "pull_bitmap"))


_ARGUMENTS = {
    name: {key: choice(getattr(system, key), *words) for key, words in _CHOICES.items()}
    | {key: number(getattr(system, key)) for key in _NUMBERS}
    for name, system in SYSTEMS.items()
}


def policies_with_systems(place: Backend) -> tuple[str, ...]:
    """Return the names that a policy may have on a grid of such places."""
    return tuple(dict.fromkeys((*place.capabilities.policies, *SYSTEMS)))


def system_of(policy: str | None) -> System | None:
    """Return the system that a policy names, as ``"bfs2d:ratio=0.1,share=no"``, or None.

    It raises `InvalidValue` for an argument or a value that the system does not have.
    """
    name, _, text = (policy or "").partition(":")
    system = SYSTEMS.get(name)
    if policy is None or system is None:
        return None
    require_policy(tuple(SYSTEMS), policy)
    found = dataclasses.replace(system, **read_arguments(name, text, _ARGUMENTS[name]))
    if found.messages == "direction" and found.rule == "ratio":
        raise InvalidValue(
            "policy: messages=direction needs one direction for all pieces, which rule=ratio does "
            "not give. Use rule=edges, or messages=shorter."
        )
    return found


# ------------------------------------------------------------------------------------------
# A piece of a search.


class Neighbours:
    """A piece's part by its sources: claims by sorting the list of all neighbours of a frontier.

    Paper: Mastrostefano and Bernaschi 2013, to which Bisson and others 2016 compare their atomics.
    """

    def __init__(self, place: Backend, part: Any, shape: tuple[int, ...]) -> None:
        self._device = place.device
        self._xp = np if self._device is None else self._device.xp
        with self._alone():
            if self._device is None:
                col_ptr, rows, _ = place.matrix_to_csc(part)
                entries: Any = np.ones(len(rows), bool), rows, col_ptr
                form = sp.csc_array(entries, shape=(shape[0], shape[1])).tocsr()
                self._ptr, self._targets = form.indptr, form.indices
            else:
                by_rows = csr_of(part.csc())
                self._ptr, self._targets = by_rows.col_ptr, by_rows.row_idx

    def listed(self, front: Array) -> tuple[Any, Any]:
        """Return (targets, sources) of the entries in a frontier's rows, rising sources first."""
        xp = self._xp
        with self._alone():
            rows = xp.asarray(np.sort(front).astype(np.int64))
            starts, ends = self._ptr[rows].astype(np.int64), self._ptr[rows + 1].astype(np.int64)
            before = xp.cumsum(ends - starts)
            total = int(before[-1]) if len(front) else 0
            if self._device is not None:
                self._device.require(48 * total, "claims=sort")
            place = xp.arange(total)
            of = xp.searchsorted(before, place, side="right")
            at = (ends - before)[of] + place
            return self._targets[at], rows[of]

    def distinct(self, targets: Any, sources: Any) -> list[Array]:
        """Return, on the host, the targets rising and each once, with the first source of each."""
        xp = self._xp
        with self._alone():
            order = xp.argsort(targets, kind="stable")
            targets, sources = targets[order], sources[order]
            new = xp.ones(len(order), bool)
            new[1:] = targets[1:] != targets[:-1]
            found = targets[new], sources[new]
            if self._device is not None:
                found = self._device.to_host(found[0]), self._device.to_host(found[1])
        return [x.astype(np.int64) for x in found]

    def _alone(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._device is None else self._device.alone()


class Piece:
    """The state of a local piece: its *sources* are the rows of its part, *targets* the columns.

    Targets that belong to other pieces of its row are visited once this piece has found them, so
    that each is sent to its owner once. Paper: Bisson and others 2016, section 3.4.

    Attributes
    ----------
    own : array of int
        The target that each of its own vertices is, by position.
    front, fronts : array of int, list of these
        The own vertices of the frontier, by position, rising; those of all levels.
    unvisited : int
        Targets that are not visited, as far as the piece knows.
    unshared : list of array of int
        The own vertices that were visited since its row of pieces was sent them.
    via : array of INT64, (targets,)
        The source by which the piece has found a target.
    giver, source : array of INT64, (own vertices,)
        The piece that has found an own vertex, -1 before; and the source there, once it is known.
    neighbours, listed
        For claims by sorting: the part by its sources; in a level those of the frontier.
    sources, pulls, reached
        In a level: the sources in the frontier; whether it pulls; by owner the vertices found and
        the source of each.
    requested
        By piece the own vertices whose sources it requests.
    """

    def __init__(self, pieces: Pieces, k: int, A: GridHandle, own: Array, system: System) -> None:
        self._pieces, self._k, self._part, self._dtype = pieces, k, A.parts[k], A.dtype
        self._place, self.own = pieces.places[k], own
        shape = pieces.layout(A.shape).shape(pieces.engine.local[k])
        self._sources, targets = shape
        self._kernels: tuple[str | None, str | None] = None, None
        if self._place.capabilities.kernels:
            push, few, many = system.kernels
            push = "push_scatter" if system.claims == "scatter" else push
            is_long = self._place.nvals(self._part) >= planner.WARP_LENGTH * targets
            self._kernels = push, many if is_long else few
        sorts = system.claims == "sort"
        self.neighbours = Neighbours(self._place, self._part, shape) if sorts else None
        self._visited = self._place.vector(BOOL, targets)
        self._seen = np.zeros(targets, bool)
        self.unvisited = targets
        self.front = self.sources = np.zeros(0, np.int64)
        self.unshared = [self.front]
        self.fronts: list[Array] = []
        self.via = np.zeros(targets, np.int64)
        self.giver, self.source = np.full(len(own), -1), np.zeros(len(own), np.int64)
        self.pulls = False
        self.listed: tuple[Any, Any] | None = None
        self.reached: dict[int, Arrays] = {}
        self.requested: dict[int, Arrays] = {}

    def find(self, numbered: bool) -> tuple[Array, Array]:
        """Visit and return the unvisited targets next to the frontier, and the source of each.

        The sources mean nothing unless `numbered`.
        """
        if self.neighbours is not None and self.listed is not None:
            targets, via = self.neighbours.distinct(*self.listed)
            new = ~self._seen[targets]
            targets, via = targets[new], via[new]
        else:
            place = self._place
            algebra = semiring.any_secondi if numbered else semiring.any_pair
            domain, result = algebra.types(BOOL, self._dtype)
            product = ops.Product(algebra, domain, result, True, True, self._kernels[self.pulls])
            u = place.vector_from_coo(np.sort(self.sources), np.True_, BOOL, self._sources)
            out = place.vector(result, len(self._seen))
            desc = Descriptor(self._visited, complement=True, replace=True)
            multiply = Multiply(self._part, u, product)
            self._pieces.execute(self._k, Statement(out, desc, multiply, result))
            targets, via = place.vector_to_coo(out)
        self.visit(targets)
        self.via[targets] = via
        return targets, via

    def visit_own(self, vertices: Array) -> Array:
        """Visit own vertices; return those that were not visited before, as a mask."""
        new: Array = ~self._seen[self.own[vertices]]
        self.visit(self.own[vertices])
        self.unshared.append(vertices[new])
        return new

    def visit(self, targets: Array) -> None:
        """Visit targets; some may be visited already."""
        targets = targets[~self._seen[targets]]
        if len(targets):
            self._seen[targets] = True
            self.unvisited -= len(targets)
            at = self._place.vector_from_coo(np.sort(targets), np.True_, BOOL, len(self._seen))
            visit = ops.AssignScalar(np.True_)
            self._place.execute(Statement(self._visited, Descriptor(at), visit, BOOL))


# ------------------------------------------------------------------------------------------
# A search: the host's loop over levels.


COLUMN, ROW = 0, 1  # pieces with the same sources; pieces with the same targets


class Level(NamedTuple):
    """One level in a trace."""

    frontier: int  # vertices of the whole frontier
    found: int  # of the next one
    products: int  # local pieces that multiplied
    listed: int  # neighbours that the others have listed
    measured: Measured  # without the edges


class SystemLoop:
    """A search that runs by a system, as named by a policy; see `FusedLoop`.

    A level is: expand along the column of pieces, expansion, fold along the row, update; Bisson and
    others 2016, algorithm 2. Messages have positions of vertices in a piece. Every process runs it.
    It makes new parts, which the handles take once no process can fail any more.
    """

    def __init__(
        self, pieces: Pieces, body: SearchBody, system: System, policy: str, times: int | None
    ) -> None:
        self._pieces, self.body, self.system, self.times = pieces, body, system, times
        self._numbered = body.product.semiring.multiply.positional == "k"  # finds parents
        R, C = pieces.grid
        self.name = policy
        self.why = f"the body is a search from one frontier; {R} x {C} pieces"
        self.nbytes = 0  # each place checks its own memory
        self._phases: list[Phase] = []
        self._messages: list[tuple[str, int]] = []  # form and bytes of each in this phase
        self._levels: list[Level] = []

    def run(self) -> None:
        """See `FusedLoop`."""
        body = self.body._replace(statements=())  # from which the other fields were made
        given = {"policy": self.name, "body": body, "times": self.times}
        self._pieces.run("search", self._run, given)

    def _run(self) -> None:
        if self.times == 0:
            return
        body, pieces, matrix = self.body, self._pieces, cast(GridHandle, self.body.A)
        A = matrix if body.product.transpose else pieces.turned(matrix)
        self._layout, self._by = pieces.layout(A.shape), pieces.partition(A.shape[0])
        targets = self._layout.dims[ROW]
        self._local = {
            p: Piece(pieces, k, A, targets.position(self._by.own(p)), self.system)
            for k, p, _ in pieces
        }
        self._nvals, self._degrees = 0, [np.zeros(0, np.int64)] * len(self._local)
        if self.system.rule == "edges":
            self._nvals, self._degrees = pieces.nvals(A), self._out_degrees(A)
        self._explored, self._pulled, self._levels = 0, False, []
        first = []
        for (k, _, place), piece in zip(pieces, self._local.values(), strict=True):
            first.append(place.vector_to_coo(body.frontier.parts[k]))
            piece.front = first[-1][0]
            piece.fronts.append(piece.front)
            excluded = place.vector_to_coo(body.excluded.parts[k])[0]  # by the first mask
            piece.visit_own(np.union1d(excluded, piece.front) if body.assigns_first else excluded)
        self._total, self._edges = self._agreed()  # vertices of the frontier, in all pieces
        self._messages.clear()
        while self._total and len(self._levels) != self.times:
            self._advance()
        self._write(first, self._parents() if self._numbered else [1] * len(first))

    def _write(self, first: Sequence[Entries], found: list[Any]) -> None:
        """Make the new parts of the frontier and of what is assigned; the handles take them.

        `found` has, for each local piece, the value of each own vertex that the search has found.
        """
        body, pieces = self.body, self._pieces
        frontier = pieces.empty(body.frontier.dtype, body.frontier.shape)
        targets = [pieces.empty(a.target.dtype, a.target.shape) for a in body.assignments]
        for k, p, place in pieces:
            piece, (front, given) = self._local[p], first[k]
            values = np.empty(len(piece.own), frontier.dtype.numpy)
            values[:] = found[k]
            kept = piece.giver[front] < 0  # not found once more
            values[front[kept]] = given[kept]
            at = piece.front
            frontier.parts[k] = _vector(place, at, values[at], frontier.dtype, piece)
            fronts = piece.fronts[:-1] if body.assigns_first else piece.fronts[1:]  # by depth
            at = np.concatenate([at[:0], *fronts])
            depths = np.repeat(np.arange(len(fronts)), [*map(len, fronts)])
            for a, target in zip(body.assignments, targets, strict=True):
                written = depths if a.what == DEPTH else values[at]
                if a.what == NUMBER:
                    written = np.full(len(at), a.number)
                part, old = _vector(place, at, written, target.dtype, piece), a.target.parts[k]
                if place.nvals(old):  # elsewhere its entries stay
                    made = place.dup(old, target.dtype)
                    place.execute(Statement(made, Descriptor(part), ops.Assign(part), target.dtype))
                    part = made
                target.parts[k] = part
        old = [body.frontier, *(a.target for a in body.assignments)]
        new = list(zip(old, [frontier, *targets], strict=True))
        pieces.change(lambda: become_all(new))

    def rows(self, products: Sequence[Callable[[], Measured]]) -> list[LoopRow]:
        """Return a row for each statement and level, from the local products level by level."""
        found, done = [], 0
        assigned = Measured(0.0, None, reason="timed with the product")
        for depth, level in enumerate(self._levels):
            parts = [measured() for measured in products[done : done + level.products]]
            done += level.products
            edges = [level.listed, *(part.edges for part in parts)]
            known = all(count is not None for count in edges)
            measured = level.measured._replace(
                kernel=(parts[0].kernel if parts else "") or self.name,
                edges=sum(count or 0 for count in edges) if known else None,
            )
            for k, s in enumerate(self.body.statements):
                if isinstance(s.operation, Multiply):
                    found.append(LoopRow(k, depth, level.frontier, level.found, measured))
                else:
                    found.append(LoopRow(k, depth, level.frontier, level.frontier, assigned))
        return found

    def _advance(self) -> None:
        """Replace the frontier by the vertices next to it that are not visited, and visit these."""
        system, before, self._phases = self.system, self._total, []
        why = self._one_direction()
        form = system.messages
        if form == "direction":
            form = "bitmap" if self._pulled else "list"
        self._timed("expand", lambda: self._expand(form))
        local = [*self._local.values()]
        for piece in local:
            piece.pulls, piece.listed = self._pulled, None
        if system.rule == "ratio":
            ratios = [len(of.sources) / of.unvisited if of.unvisited else np.inf for of in local]
            for piece, ratio in zip(local, ratios, strict=True):
                piece.pulls = ratio >= system.ratio
            why = f"frontier / unvisited {ratios[0]:.3g}, threshold {system.ratio:g}"
        if system.share == "yes" and self._any_pulls():
            self._timed("share", lambda: self._share(form))
        pushing = [piece for piece in local if not piece.pulls]
        sorting = system.claims == "sort" and bool(pushing)
        if sorting:
            self._timed("expansion", lambda: self._list(pushing))
        self._timed("sort" if sorting else "expansion", self._expansion)
        given = self._timed("fold", lambda: self._fold(form))
        self._timed("update", lambda: self._update(given))
        self._total, self._edges = self._timed("agree", self._agreed)
        known = [piece.listed for piece in local if piece.listed is not None]
        listed = sum(len(targets) for targets, _ in known)
        if known:
            nbytes = sum(array.nbytes for arrays in known for array in arrays)
            why += f"; {listed} neighbours sorted, {nbytes} bytes"
        pulls = len(local) - len(pushing)
        measured = Measured(
            kernel_ms=sum(phase.ms for phase in self._phases),
            host_ms=None,
            direction={0: "push", len(local): "pull"}.get(pulls, "both"),
            reason=f"{why}; {pulls} of {len(local)} pieces pull",
            phases=tuple(self._phases),
        )
        level = Level(before, self._total, len(local) - len(known), listed, measured)
        self._levels.append(level)

    def _parents(self) -> list[Array]:
        """Return, for each local piece, the parents of its own vertices that the search has found.

        The others have any number. Parents that were not sent with their vertices are sent now.
        """
        if self.system.parents == "late":
            self._timed("parents", self._request)
            if self._levels:
                *_, phase = self._phases
                last = self._levels[-1].measured
                last = last._replace(
                    kernel_ms=last.kernel_ms + phase.ms, phases=(*last.phases, phase)
                )
                self._levels[-1] = self._levels[-1]._replace(measured=last)
        found = []
        for p, piece in self._local.items():
            here = np.flatnonzero(piece.giver == p)
            piece.source[here] = piece.via[piece.own[here]]
            index = np.zeros(len(piece.own), np.int64)
            for s in (p, *self._mates(p, ROW)):
                at = np.flatnonzero(piece.giver == s)
                part = self._layout.parts(s)[COLUMN]
                index[at] = self._layout.dims[COLUMN].index(part, piece.source[at])
            found.append(index)
        return found

    # ---------------------------------------------------------------------------- the direction
    def _one_direction(self) -> str:
        """Choose the direction of all pieces, where the rule is such; return why."""
        if self.system.rule != "edges":
            return "always pushes"
        self._explored += self._edges
        left, system = self._nvals - self._explored, self.system
        self._pulled = planner.pulls_by_edges(
            self._total, self._by.size, self._edges, left, self._pulled, system.alpha, system.beta
        )
        return f"frontier {self._total}, its edges {self._edges}, unexplored {left}"

    def _any_pulls(self) -> bool:
        """Whether any piece pulls; a sum over all if each decides by itself."""
        if self.system.rule == "ratio":
            count = [(int(piece.pulls),) for piece in self._local.values()]
            return self._timed("agree", lambda: self._totals(count))[0] > 0
        return self._pulled

    def _agreed(self) -> tuple[int, int]:
        """Return the vertices of the whole frontier, and the edges that leave them if needed."""
        vertices, edges = self._totals(
            [
                (len(piece.front), degrees[piece.front].sum() if len(degrees) else 0)
                for piece, degrees in zip(self._local.values(), self._degrees, strict=True)
            ]
        )
        return vertices, edges

    def _out_degrees(self, A: GridHandle) -> list[Array]:
        """Return the edges that leave each own vertex, to any piece; the matrix remembers them."""
        if A.degrees is None:
            counts, layout = [], self._layout
            for k, p, place in self._pieces:
                rows = entries_of(place, A.parts[k], 2)[0]
                counts.append((np.bincount(rows, minlength=layout.shape(p)[0]).astype(np.uint32),))
            sums = self._pieces.own_sums(counts, needed(layout, COLUMN), np.add)
            found = [of[0].astype(np.int64) if of else np.zeros(0, np.int64) for of in sums]
            self._pieces.change(lambda: setattr(A, "degrees", found))
            return found
        return A.degrees

    # ------------------------------------------------------------------------------ the messages
    def _mates(self, piece: int, along: int) -> list[int]:
        """Return the other pieces of a piece's column or row, rising."""
        return [q for q in needed(self._layout, along).group(piece) if q != piece]

    def _send(
        self,
        give: Callable[[Piece, int], Arrays],
        along: int,
        form: str,
        of_receiver: bool = False,
    ) -> list[dict[int, Any]]:
        """Send each mate arrays; return, by sender, what each local piece receives.

        ``give(piece, mate)`` returns one set of vertices, if the form is one of `FORMS`: positions
        of the receiver's own vertices if `of_receiver`, else of the sender's. Else it returns
        arrays of numbers below 2**32, and the form is their name in a trace.
        """
        engine, is_set, given = self._pieces.engine, form in FORMS, []
        for p, piece in self._local.items():
            messages = {}
            for d in self._mates(p, along):
                arrays, name = give(piece, d), form
                if is_set:
                    how = self._packing(d if of_receiver else p, form)
                    arrays = (packed(arrays[0], *how),)
                    name = form_of(arrays[0], *how)
                else:
                    arrays = tuple(x.astype(np.uint32) for x in arrays)
                self._messages.append((name, sum(x.nbytes for x in arrays)))
                messages[d] = arrays
            given.append(messages)
        found = []
        for p, received in zip(self._local, engine.exchange(given), strict=True):
            lists: dict[int, Any] = {}
            for s, arrays in received.items():
                if is_set:
                    how = self._packing(p if of_receiver else s, form)
                    lists[s] = (unpacked(arrays[0], *how),)
                else:
                    lists[s] = tuple(x.astype(np.int64) for x in arrays)
            found.append(lists)
        return found

    def _packing(self, piece: int, form: str) -> tuple[int, str, int]:
        """Return how a set of vertices of a piece is packed: bits for those that may have edges."""
        return self._by.count(piece), form, self._by.used(piece)

    def _totals(self, numbers: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the sums over all pieces of the numbers of each local one."""
        engine, given = self._pieces.engine, [(np.array(of, np.int64),) for of in numbers]
        self._messages += [("counts", counts.nbytes) for (counts,) in given] * (engine.size - 1)
        totals: list[int] = np.sum([of for (of,) in engine.gather(given)], axis=0).tolist()
        return totals

    # ------------------------------------------------------------------------------- the phases
    def _timed(self, name: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        made = work()
        ms = (time.perf_counter() - start) * 1e3
        self._phases.append(Phase(name, ms, summed(self._messages)))
        self._messages.clear()
        return made

    def _expand(self, form: str) -> None:
        """Give each local piece the sources in the frontier of its column of pieces."""
        received = self._send(lambda piece, _: (piece.front,), COLUMN, form)
        for (p, piece), lists in zip(self._local.items(), received, strict=True):
            fronts = {p: (piece.front,)} | lists
            piece.sources = np.concatenate([self._at(COLUMN, s, of) for s, (of,) in fronts.items()])

    def _share(self, form: str) -> None:
        """Send the row of pieces the own vertices that were visited since the last time."""
        for piece in self._local.values():
            piece.unshared = [np.concatenate(piece.unshared)]
        received = self._send(lambda piece, _: (piece.unshared[0],), ROW, form)
        for piece, lists in zip(self._local.values(), received, strict=True):
            piece.unshared = [piece.front[:0]]
            for s, (vertices,) in lists.items():
                piece.visit(self._at(ROW, s, vertices))

    def _list(self, pushing: Sequence[Piece]) -> None:
        """List the neighbours of the sources of the pieces that push."""
        for piece in pushing:
            assert piece.neighbours is not None
            piece.listed = piece.neighbours.listed(piece.sources)

    def _expansion(self) -> None:
        """Find the vertices next to the frontier, for each local piece by owner."""
        for p, piece in self._local.items():
            targets, via = piece.find(self._numbered)
            index = self._layout.dims[ROW].index(self._layout.parts(p)[ROW], targets)
            lists = self._by.position(index), via
            piece.reached = dict(enumerate(cut(lists, self._by.owner(index), self._by.pieces)))

    def _fold(self, form: str) -> list[dict[int, Any]]:
        """Send each vertex to its owner, with its source if parents are sent."""
        if self._numbered and self.system.parents == "sent":
            return self._send(lambda piece, d: piece.reached[d], ROW, "pairs")
        return self._send(lambda piece, d: piece.reached[d][:1], ROW, form, of_receiver=True)

    def _update(self, given: list[dict[int, Any]]) -> None:
        """Make the next frontier: what a piece has found itself, then what others sent, by rank."""
        for (p, piece), lists in zip(self._local.items(), given, strict=True):
            fresh = [piece.reached[p][0]]
            piece.giver[fresh[0]] = p
            piece.unshared.append(fresh[0])
            for s, (vertices, *sources) in lists.items():
                new = piece.visit_own(vertices)
                fresh.append(vertices[new])
                piece.giver[fresh[-1]] = s
                if sources:
                    piece.source[fresh[-1]] = sources[0][new]
            piece.front = np.sort(np.concatenate(fresh))
            piece.fronts.append(piece.front)

    def _request(self) -> None:
        """Request the sources of the vertices that mates found: two messages for each pair."""
        wanted = self._send(lambda piece, s: (np.flatnonzero(piece.giver == s),), ROW, "shorter")
        for piece, requested in zip(self._local.values(), wanted, strict=True):
            piece.requested = requested
        received = self._send(
            lambda piece, d: (piece.via[self._at(ROW, d, piece.requested[d][0])],), ROW, "parents"
        )
        for piece, lists in zip(self._local.values(), received, strict=True):
            for s, (sources,) in lists.items():
                piece.source[piece.giver == s] = sources

    def _at(self, along: int, piece: int, vertices: Array) -> Array:
        """Return the sources, or the targets, that vertices of a piece are for its mates."""
        found: Array = self._layout.dims[along].position(self._by.index(piece, vertices))
        return found


def _vector(place: Backend, at: Array, values: Array, dtype: DType, piece: Piece) -> ops.Handle:
    return from_entries(place, (at, values.astype(dtype.numpy)), dtype, (len(piece.own),))


# ------------------------------------------------------------------------------------------
# A recorded loop as such a search.


def plan_system(
    pieces: Pieces, statements: Sequence[Statement], turns: Until | Sweep
) -> SystemLoop | None:
    """Return the loop as a search by the system that its product names; None if it names none.

    It raises `NotSupported` if the loop is not such a search, and what `system_of` raises.
    """
    policy = ops.once(statements, _policy_of)
    system = None if policy is None else system_of(policy)
    if system is None:
        return None
    body: SearchBody | Rejection
    if isinstance(turns, Sweep) or turns.empty is None or len(turns.empty.shape) > 1:
        body = Rejection("the loop has no frontier that is a vector")
    else:
        body = match_search(list(map(_without_policy, statements)), turns.empty)
    why = body.why if isinstance(body, Rejection) else why_no_system_search(body)
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


def why_no_system_search(body: SearchBody) -> str:
    """Return why a body is no search for levels or parents, or an empty string."""
    multiply, monoid = body.product.semiring.multiply, body.product.semiring.monoid
    if body.sums:
        return "products of a level add up"
    if multiply.positional == "k" and monoid.op.name == "any":
        return ""
    if multiply.positional or any(body.reads) or not monoid.idempotent:
        return "the values of the product are neither ones nor predecessors"
    return ""
