"""Loops of a grid that run as one kernel: a search, on every device of this process together."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.peers import MOST_PEERS, Peers
from lagpu.backends.gpu.device.protocol import named_error
from lagpu.backends.gpu.fused.match import SearchBody, match_search, why_no_search, why_no_values
from lagpu.backends.gpu.ops.planner import alpha_of, beta_of
from lagpu.backends.gpu.profile import (
    LoopLog,
    SearchRows,
    SearchTraffic,
    value_bytes,
    why_level,
)
from lagpu.backends.gpu.storage.forms import why_no_csr
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.grid.handles import GridHandle, GridMatrix, GridVector
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.grid.search import Kind, PieceSearch, PieceSpace, kind_of, num_slots, slots_of
from lagpu.backends.grid.systems import plan_system
from lagpu.host.interrupt import heard
from lagpu.operations import FusedLoop, Rejection, Statement, Sweep, Until

SPACE = "search of pieces"  # its place in a part's cache
Count = Callable[[], int]


def searches(pieces: Pieces) -> bool:
    """Whether the pieces are all here, on devices with kernels of their own."""
    all_here = len(pieces.engine.local) == pieces.engine.size
    return all_here and all(isinstance(place, GpuBackend) for place in pieces.places)


def plan_loop(
    pieces: Pieces, statements: Sequence[Statement], turns: Until | Sweep
) -> FusedLoop | Rejection:
    """Return the kernel that runs a loop on all pieces, or why there is none.

    A search whose product names a paper's system runs by that, on pieces of any kind.
    """
    by_system = plan_system(pieces, statements, turns)
    if by_system is not None:
        return by_system
    if not pieces.together:
        why = _why_apart(pieces)
        if why:
            return Rejection(why)
        pieces.together = True  # neither places nor wires change
    if isinstance(turns, Sweep) or turns.empty is None:
        return Rejection("the loop has no frontier; on a grid only a search is one kernel")
    if not isinstance(turns.empty, GridVector):
        return Rejection("the frontier has several rows; on a grid a search of one is one kernel")
    body = match_search(statements, turns.empty)
    if isinstance(body, Rejection):
        return body
    loop = GridLoop(pieces, body, turns.times)
    why = "" if loop.is_known else _why_no_search(pieces, body, turns.times)
    return Rejection(why) if why else loop


def _why_apart(pieces: Pieces) -> str:
    """Return why the pieces cannot run one kernel together, or an empty string."""
    kinds = {place.name for place in pieces.places if not isinstance(place, GpuBackend)}
    if kinds:
        return f"pieces are on {' and '.join(sorted(kinds))}, which has no kernels"
    if len(pieces.engine.local) < pieces.engine.size:
        return "the pieces are in several processes, and meet in each statement"
    if pieces.grid[1] > 1:
        return "the pieces stand in rows and columns, and meet in each statement"
    if pieces.engine.size > MOST_PEERS:
        return f"{pieces.engine.size} pieces; at most {MOST_PEERS} run one kernel"
    devices = [place.device for place in pieces.places]
    if len({type(device) for device in devices}) > 1:
        return "the pieces are on devices of several kinds"
    with devices[0].alone():
        found: str = devices[0].why_apart(devices)
    return found


def _why_no_search(pieces: Pieces, body: SearchBody, times: int | None) -> str:
    """Return why a search does not run on all pieces together, or an empty string."""
    multiply = body.product.semiring.multiply
    if multiply.positional == ("j" if body.product.flip else "i"):
        return "each product is the index of the output, which a piece numbers by position"
    if times is not None and not body.assigns_first:
        return "the number of levels is bounded, and the assignments follow the product"
    A: Any = body.A
    n = A.shape[0]
    by = pieces.partition(n)
    if num_slots(by) >= 2**31:
        return f"{n} vertices take 2**31 slots in words of the pieces or more"
    if any(A.parts[k].shape != (n, by.count(p)) for k, p, _ in pieces):
        return "each piece has some of the rows alone; a search needs all edges into a vertex"
    lacking = next(filter(None, (why_no_csr(part.csc()) for part in A.parts)), "")
    return (
        why_no_search(body)
        or why_no_values(body, body.sums, body.sums or body.reads[0])
        or (lacking and f"a search needs the matrix by rows too, and {lacking}")
    )


class Logged(NamedTuple):
    """What the kernels of a traced search have written, and what it takes to read it.

    Attributes
    ----------
    records : list of callable
        For each piece, returns its records.
    had : list of list
        For each piece its `PieceSearch.had`.
    value_bytes : int
        Of the value that it publishes of each vertex it finds, or 0.
    rows : SearchRows
        Makes rows of the records of all as one.
    """

    records: list[Callable[[], np.ndarray[Any, Any]]]
    had: list[list[Count | None]]
    value_bytes: int
    rows: SearchRows


class _Search(NamedTuple):
    """What the searches of one structure on a matrix share; see `_structure`.

    Attributes
    ----------
    kind : Kind
        What they do.
    of_piece : list of PieceSearch
        For each piece its launches.
    """

    kind: Kind
    of_piece: list[PieceSearch]


def _structure(body: SearchBody, times: int | None) -> tuple[Any, ...]:
    """Return what a search does, whatever its vectors hold: all that its kernel is made for.

    Two searches of one structure on the same parts may both run as one kernel, or neither may.
    """
    product, assigned = body.product, [(a.what, a.target.dtype) for a in body.assignments]
    return (
        product.semiring, product.domain, product.result, product.flip, body.frontier.dtype,
        tuple(assigned), body.assigns_first, times is None,
    )  # fmt: skip


class _Space:
    """What the searches of one grid matrix keep: a space for each piece, and the meetings.

    Attributes
    ----------
    searches : dict
        A `_Search` for each structure that was searched by.
    """

    def __init__(self, pieces: Pieces, A: GridMatrix, value_bytes: int) -> None:
        self.value_bytes = value_bytes
        self.searches: dict[tuple[Any, ...], _Search] = {}
        n, count = A.shape[0], pieces.engine.size
        by = pieces.partition(n)
        slots = slots_of(by)
        self.nvals = pieces.nvals(A)
        degree = self.nvals / max(n, 1)
        self.of_piece: list[PieceSpace] = []
        into, rows = [], []
        for k, _, place in pieces:
            with place.device.alone():
                part = A.parts[k].csc()
                space = PieceSpace(part, slots, count, degree)
                self.of_piece.append(space)
                into.append(space.column_lengths(part))
                if not A.symmetric:
                    rows.append(space.row_lengths(part))
        self._parts = [weakref.ref(part.csc()) for part in A.parts]
        # Without symmetry each piece has some of the edges that leave a vertex.
        whole: Any = None if A.symmetric else np.sum(rows, axis=0, dtype=np.uint32)
        walks = 0.0
        for k, p, place in pieces:
            with place.device.alone():
                out = into[k] if whole is None else place.device.from_host(whole[by.own(p)])
                walks += float(place.device.xp.multiply(into[k], out, dtype=np.float64).sum())
                self.of_piece[k].degrees = out
        targets = sum(space.targets for space in self.of_piece)
        for space in self.of_piece:
            space.targets, space.behind = targets, walks / max(self.nvals, 1)
            space.symmetric = bool(A.symmetric)
        windows = pieces.engine.window(8 * slots.window_words(count, value_bytes))
        assert windows is not None
        for space, window in zip(self.of_piece, windows, strict=True):
            space.words = slots.buffers(window, count)
        self.peers = Peers([place.device for place in pieces.places], windows)
        self.nbytes = self.peers.nbytes + sum(space.nbytes for space in self.of_piece)

    @staticmethod
    def of(A: GridMatrix) -> _Space | None:
        """Return what searches of a matrix have kept, if it still has the parts that they had."""
        space: _Space | None = A.parts[0].csc().cache.get(SPACE)
        if space is not None:
            for kept, part in zip(space._parts, A.parts, strict=True):
                if kept() is not part.csc():
                    return None
        return space


class GridLoop:
    """A search that one kernel runs on the devices of all pieces together; see `FusedLoop`.

    Like a statement, it makes new parts, which the handles take once all devices have ended. Who
    plans and runs it holds the locks of all places.

    Parameters
    ----------
    pieces : Pieces
        All of them in this process.
    body : SearchBody
        The loop's body, on handles of the grid.
    times : int or None
        Iterations, at most.
    """

    name = "search of pieces"
    keeps_log = True

    def __init__(self, pieces: Pieces, body: SearchBody, times: int | None) -> None:
        self._pieces, self._body, self._times = pieces, body, times
        self.statements = body.statements
        self.why = f"the body is a search from one frontier; {pieces.engine.size} pieces"
        self.logged: Logged | None = None
        self._known = self._find()

    @property
    def is_known(self) -> bool:
        """Whether a search of this structure has run on the same parts, so that this one may."""
        return self._known is not None

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: the new parts."""
        written = [self._body.frontier, *(a.target for a in self._body.assignments)]
        return sum(part.bytes_to_write for x in written for part in x.parts)

    def run(self, logs: Sequence[LoopLog] = ()) -> None:
        """Run the loop to its end, and wait for it.

        With a log of each piece's device the kernels write records, and `logged` has them.

        Raises
        ------
        GridTimeout
            If a device has waited too long for another one; nothing was written then.
        """
        if self._times == 0:
            return
        made = self._made(logs)
        try:
            _take(made)
        except BaseException:  # an interrupt between two of them
            _take(made)
            raise

    def _made(self, logs: Sequence[LoopLog]) -> list[tuple[GridHandle, GridHandle]]:
        """Run the kernel; return each handle that the loop writes with what it becomes."""
        pieces, body, times = self._pieces, self._by_columns(), self._times
        space, search = self._known or self._learn(body)
        written = [a.target for a in body.assignments]
        made, started = [], []
        device = pieces.places[0].device
        try:
            for k, _, place in pieces:
                device = place.device
                if device.enter is not None:
                    device.enter()
                left = _blank(body.frontier.parts[k])
                targets = [_renewed(x.parts[k]) for x in written]
                log = logs[k] if logs else None
                started.append(
                    search.of_piece[k].start(body, targets, left, times, space.peers, log)
                )
                made.append([left, *targets])
            launches = [s[:2] for s in started]
            with heard(*[place.device.stop[1] for place in pieces.places]):
                results = space.peers.run(launches, [log.words for log in logs])
        except Exception as error:
            named = named_error(device, error, "device")
            if named is None:
                raise
            raise named from error
        for of_piece, s, result in zip(search.of_piece, started, results, strict=True):
            of_piece.settle(s, result)
        if logs:
            self.logged = self._log_of(body, space, search.kind, [s.had for s in started], logs)
        return [
            (x, GridVector(parts, x.dtype, x.shape))
            for x, *parts in zip([body.frontier, *written], *made, strict=True)
        ]

    def _find(self) -> tuple[_Space, _Search] | None:
        """Return what a search of this structure has kept on the same parts, or None.

        A search by the transpose has kept it there, where the matrix itself is asked anew.
        """
        body, A = self._body, cast(Any, self._body.A)
        space = _Space.of(A) if body.product.transpose or A.symmetric else None
        search = None if space is None else space.searches.get(_structure(body, self._times))
        return None if space is None or search is None else (space, search)

    def _by_columns(self) -> SearchBody:
        """Return the body with the matrix whose columns lead to what the product finds."""
        body: Any = self._body
        if not body.product.transpose:
            product = body.product._replace(transpose=True)
            body = body._replace(A=self._pieces.turned(body.A), product=product)
        return cast(SearchBody, body)

    def _learn(self, body: SearchBody) -> tuple[_Space, _Search]:
        """Return what searches of this structure on these parts share; it is kept."""
        pieces, A, structure = self._pieces, cast(Any, body.A), _structure(body, self._times)
        kind = kind_of(body, len(pieces.places), self._times)
        space = self._space(A, body.frontier.dtype.numpy.itemsize if kind.travels else 0)
        if structure not in space.searches:
            of_piece = [
                PieceSearch(space.of_piece[k], kind, k, p, A.shape[0], space.nvals)
                for k, p, _ in pieces
            ]
            space.searches[structure] = _Search(kind, of_piece)
        return space, space.searches[structure]

    def _log_of(
        self,
        body: SearchBody,
        space: _Space,
        kind: Kind,
        had: list[list[Count | None]],
        logs: Sequence[LoopLog],
    ) -> Logged:
        A: Any = body.A
        n, first = A.shape[0], A.parts[0].csc()
        alpha = alpha_of(space.nvals / max(n, 1), n, kind.sums, wide=True)
        why = functools.partial(why_level, n, "kByEdges", alpha, beta_of(kind.sums))
        assigned = [value_bytes(a.target.dtype) for a in body.assignments]
        traffic = SearchTraffic.of_vector(first, body.product, body.frontier.dtype, n, assigned)
        traffic = traffic._replace(bits=traffic.bits * len(had))  # each piece has them all
        total = [_sum_of(of_pieces) for of_pieces in zip(*had, strict=True)]
        return Logged(
            [log.launched() for log in logs],
            had,
            body.frontier.dtype.numpy.itemsize if kind.travels else 0,
            SearchRows(self.statements, total, why, traffic),
        )

    def _space(self, A: GridMatrix, value_bytes: int) -> _Space:
        """Return what searches of a matrix keep, made at the first one that needs so much."""
        found = _Space.of(A)
        if found is None or found.value_bytes < value_bytes:
            kept: dict[str, Any] = A.parts[0].csc().cache
            kept.pop(SPACE, None)
            found = kept[SPACE] = _Space(self._pieces, A, value_bytes)
        return found


def _sum_of(counts: Sequence[Count | None]) -> Count | None:
    """Return what counts the entries of all pieces before a loop; None if there were none."""
    known = [count for count in counts if count is not None]
    return (lambda: sum(count() for count in known)) if known else None


def _blank(x: VectorStore) -> VectorStore:
    """Return a part without entries, for which making `x` has asked for memory too."""
    return VectorStore(x.device, x.counters, x.dtype, x.size)


def _renewed(x: VectorStore) -> VectorStore:
    """Return a new part with the entries of `x`."""
    return x.copy(x.dtype) if x.nvals else _blank(x)


def _take(made: list[tuple[GridHandle, GridHandle]]) -> None:
    for x, new in made:
        x.become(new)
