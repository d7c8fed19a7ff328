"""Loops of a grid that run as one kernel: a search, on every device of this process together."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.peers import MOST_PEERS, Peers
from lagpu.backends.gpu.fused.match import SearchBody, match_search
from lagpu.backends.gpu.fused.search_grid import why_no_search
from lagpu.backends.gpu.storage.forms import why_no_csr
from lagpu.backends.grid.handles import GridHandle, GridMatrix, GridVector
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.grid.search import PieceSearch, PieceSpace, slots_of
from lagpu.backends.grid.systems import plan_system
from lagpu.operations import FusedLoop, Rejection, Statement, Sweep, Until

__all__ = ["GridLoop", "plan_loop", "searches"]

SPACE = "search of pieces"  # its place in a part's cache


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
    why = _why_apart(pieces)
    if why:
        return Rejection(why)
    if isinstance(turns, Sweep) or turns.empty is None:
        return Rejection("the loop has no frontier; on a grid only a search is one kernel")
    if not isinstance(turns.empty, GridVector):
        return Rejection("the frontier has several rows; on a grid a search of one is one kernel")
    body = match_search(statements, turns.empty)
    if isinstance(body, Rejection):
        return body
    why = _why_no_search(pieces, body, turns.times)
    return Rejection(why) if why else GridLoop(pieces, body, turns.times)


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
    if body.sums:
        return "products of a level add up; on a grid the first one of a vertex has to do"
    if body.reads[0]:
        return "the product reads the frontier's values, which each piece has of its own vertices"
    if multiply.positional == ("j" if body.product.flip else "i"):
        return "each product is the index of the output, which a piece numbers by position"
    if times is not None and not body.assigns_first:
        return "the number of levels is bounded, and the assignments follow the product"
    A: Any = body.A
    n = A.shape[0]
    if n >= 2**30:
        return f"{n} vertices >= 2**30"
    by = pieces.partition(n)
    if any(A.parts[k].shape != (n, by.count(p)) for k, p, _ in pieces):
        return "each piece has some of the rows alone; a search needs all edges into a vertex"
    lacking = next(filter(None, (why_no_csr(part.csc()) for part in A.parts)), "")
    return why_no_search(body) or (
        lacking and f"a search needs the matrix by rows too, and {lacking}"
    )


class _Space:
    """What the searches of one grid matrix keep: a space for each piece, and the meetings."""

    def __init__(self, pieces: Pieces, A: GridMatrix) -> None:
        n, count = A.shape[0], pieces.engine.size
        by = pieces.partition(n)
        slots = slots_of(by)
        self.nvals = pieces.nvals(A)
        degree = self.nvals / max(n, 1)
        self.of_piece: list[PieceSpace] = []
        lengths = []
        for k, _, place in pieces:
            with place.device.alone():
                part = A.parts[k].csc()
                space = PieceSpace(part, slots, count, degree)
                self.of_piece.append(space)
                count_of = space.column_lengths if A.symmetric else space.row_lengths
                lengths.append(count_of(part))
        self._parts = [weakref.ref(part.csc()) for part in A.parts]
        if not A.symmetric:  # each piece has some of the edges that leave a vertex
            whole = np.sum(lengths, axis=0)
            lengths = [whole[by.own(p)] for p in pieces.engine.local]
        for k, _, place in pieces:
            with place.device.alone():
                degrees = place.device.from_host(lengths[k].astype(np.uint32))
                self.of_piece[k].degrees = degrees
        windows = pieces.engine.window(8 * slots.window_words(count))
        assert windows is not None
        for space, window in zip(self.of_piece, windows, strict=True):
            space.words = slots.buffers(window, count)
        self.peers = Peers([place.device for place in pieces.places], windows)
        self.nbytes = self.peers.nbytes + sum(space.nbytes for space in self.of_piece)

    def fits(self, A: GridMatrix) -> bool:
        """Whether it was made of these parts."""
        return all(of() is part.csc() for of, part in zip(self._parts, A.parts, strict=True))


class GridLoop:
    """A search that one kernel runs on the devices of all pieces together; see `FusedLoop`.

    Like a statement, it makes new parts, which the handles take once all devices have ended.

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
    keeps_log = False

    def __init__(self, pieces: Pieces, body: SearchBody, times: int | None) -> None:
        self._pieces, self._body, self._times = pieces, body, times
        self.statements = body.statements
        self.why = f"the body is a search from one frontier; {pieces.engine.size} pieces"

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: the new parts."""
        written = [self._body.frontier, *(a.target for a in self._body.assignments)]
        return sum(part.bytes_to_write for x in written for part in x.parts)

    def run(self) -> None:
        """Run the loop to its end, and wait for it.

        Raises
        ------
        GridTimeout
            If a device has waited too long for another one; nothing was written then.
        """
        if self._times == 0:
            return
        with contextlib.ExitStack() as held:
            for place in self._pieces.places:
                held.enter_context(place.lock)
            made = self._made()
            try:
                _take(made)
            except BaseException:  # an interrupt between two of them
                _take(made)
                raise

    def _made(self) -> list[tuple[GridHandle, GridHandle]]:
        """Run the kernel; return each handle that the loop writes with what it becomes."""
        pieces, body = self._pieces, self._body
        given: Any = body.A
        A = given if body.product.transpose else pieces.turned(given)
        product = body.product._replace(transpose=True)
        space = self._space(A)
        frontier = pieces.empty(body.frontier.dtype, body.frontier.shape)
        targets = [_copied(pieces, a.target) for a in body.assignments]
        parts, launches = [], []
        for k, p, place in pieces:
            assigned = tuple(
                a._replace(target=made.parts[k])
                for a, made in zip(body.assignments, targets, strict=True)
            )
            local = SearchBody(
                A.parts[k].csc(), body.frontier.parts[k], body.excluded.parts[k], product,
                assigned, body.assigns_first, body.statements,
            )  # fmt: skip
            with place.device.alone():
                own, n = space.of_piece[k], A.shape[0]
                part = PieceSearch(local, frontier.parts[k], own, n, space.nvals, self._times)
                parts.append(part)
                launches.append(part.launch(space.peers, p))
        for part, result in zip(parts, space.peers.run(launches), strict=True):
            part.settle(result)
        written = [body.frontier, *(a.target for a in body.assignments)]
        return list(zip(written, [frontier, *targets], strict=True))

    def _space(self, A: GridMatrix) -> _Space:
        """Return what searches of a matrix keep, made at the first one."""
        kept: dict[str, Any] = A.parts[0].csc().cache
        found: _Space | None = kept.get(SPACE)
        if found is None or not found.fits(A):
            found = kept[SPACE] = _Space(self._pieces, A)
        return found


def _take(made: list[tuple[GridHandle, GridHandle]]) -> None:
    for x, new in made:
        x.become(new)


def _copied(pieces: Pieces, x: GridVector) -> GridVector:
    """Return a new vector with the same entries."""
    made: GridVector = pieces.empty(x.dtype, x.shape)
    for k, _, place in pieces:
        if x.parts[k].nvals:
            made.parts[k] = place.dup(x.parts[k], x.dtype)
    return made
