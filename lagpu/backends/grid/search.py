"""One piece of a search that a kernel on every device runs together; see search/peers.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.peers import Peers, posts_words
from lagpu.backends.gpu.device.protocol import PER_CALL, Device, PreparedLaunch
from lagpu.backends.gpu.fused.match import MAX_ASSIGNMENTS, SearchBody
from lagpu.backends.gpu.fused.search_grid import (
    BETA,
    NO_LIMIT,
    block_of,
    outputs_of,
    search_macros,
)
from lagpu.backends.gpu.kernels import Kernel, constant, kernel
from lagpu.backends.gpu.ops.directions import alpha_of
from lagpu.backends.gpu.ops.spmv import iso_result
from lagpu.backends.gpu.storage.forms import csr_of
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import SEARCH_COUNTERS, pull_space, push_space
from lagpu.backends.grid.partition import Dealt, Partition

__all__ = ["PieceSearch", "PieceSpace", "Slots", "slots_of"]

Array = Any
BITS = 32  # of a word
SIM_BLOCK = 64  # threads a block on sim, which runs the blocks of all devices
LEFT = constant("kLeft")
# Arguments that vary by call: before the flag that tells when assignments are made, and the last.
OUTPUTS, MEETINGS = 8 + 2 * MAX_ASSIGNMENTS, 6


class Slots(NamedTuple):
    """The bits that stand for the vertices in the words of a frontier.

    The words of a piece hold no vertex of another one, so each has one writer.

    Attributes
    ----------
    run : int
        ``1 << run`` words, one behind the other, are of one piece.
    words : int
        Words of all pieces, a multiple of 4.
    room : int
        The most vertices that a piece has.
    of_vertex, names : array of INT32 or None
        The slot of each vertex, and the vertex of each slot; None where both are the same number,
        as in runs of whole words.
    """

    run: int
    words: int
    room: int
    of_vertex: np.ndarray[Any, Any] | None
    names: np.ndarray[Any, Any] | None

    def window_words(self, pieces: int) -> int:
        """Return the u64 of a window: posts, all words twice, and two lists of each piece."""
        return posts_words(pieces) + self.words + pieces * self.room

    def buffers(self, window: Array, pieces: int) -> tuple[Array, Array]:
        """Return the two buffers of words in a window."""
        first, each = posts_words(pieces), self.words // 2
        both = window[first : first + 2 * each].view(np.uint32)
        return both[: self.words], both[self.words :]


def slots_of(by: Partition) -> Slots:
    """Return the slots of a partition's indices, of which there are fewer than 2**31."""
    straight = isinstance(by, Dealt) and by.run % BITS == 0
    length = by.run // BITS if isinstance(by, Dealt) and straight else 1
    counts = [by.count(p) for p in range(by.pieces)]
    runs = -(-nwords(max(counts)) // length)
    words = -(-runs * length * by.pieces // 4) * 4
    run = length.bit_length() - 1
    if straight:
        return Slots(run, words, max(counts), None, None)
    of_vertex = np.zeros(by.size, np.int32)
    names = np.zeros(words * BITS, np.int32)
    for p in range(by.pieces):
        own, at = by.own(p), np.arange(counts[p])
        slots = (at // BITS * by.pieces + p) * BITS + at % BITS
        of_vertex[own], names[slots] = slots, own
    return Slots(run, words, max(counts), of_vertex, names)


class PieceSpace:
    """Arrays for the searches of a piece of a matrix; made once, and kept in the part's cache.

    It does not hold the part, which would then hold itself.

    Parameters
    ----------
    part : CscMatrix, (n, m)
        All rows of the piece's own columns.
    slots : Slots
        Of the n vertices.
    pieces : int
        The number of pieces.
    degree : float
        The mean degree of the whole matrix.

    Attributes
    ----------
    degrees : array of u32
        Edges that leave each own vertex, to any piece; whoever makes all spaces sets it, and
    words : tuple of array of u32
        the two buffers of all slots' words in the own window.
    """

    def __init__(self, part: CscMatrix, slots: Slots, pieces: int, degree: float) -> None:
        device, xp, own = part.device, part.device.xp, part.shape[1]
        self.slots, self.pieces = slots, pieces
        self._renumbered: CscMatrix | None = None
        self.names = None
        if slots.of_vertex is not None and slots.names is not None:
            self.names = device.from_host(slots.names)
            rows = device.from_host(slots.of_vertex)[part.row_idx]
            shape = (slots.words * BITS, own)
            self._renumbered = CscMatrix(
                device, part.dtype, shape, part.col_ptr, rows, part.values, part.iso
            )
        predecessors, successors = self.forms(part)
        self.push = push_space(successors)
        pull = pull_space(predecessors, successors)
        self.empty, self.hint = pull.empty, pull.hint
        self.degrees: Array = None
        self.words: tuple[Array, Array] = (None, None)
        self.visited = xp.empty(nwords(own), np.uint32)
        self.found = xp.zeros(-(-nwords(own) // 4) * 4, np.uint32)
        self.counters = xp.zeros(SEARCH_COUNTERS, np.uint64)
        self.block = SIM_BLOCK if device.name == "sim" else block_of(device, degree)
        self.alpha = np.float32(alpha_of(degree))
        self.launches: dict[Any, PreparedLaunch] = {}
        own_arrays = (self.names, self.visited, self.found, self.counters)
        self.nbytes = sum(int(x.nbytes) for x in own_arrays if x is not None)

    def forms(self, part: CscMatrix) -> tuple[CscMatrix, CscMatrix]:
        """Return the part by columns and by rows, the whole matrix' rows numbered by slots."""
        predecessors = part if self._renumbered is None else self._renumbered
        return predecessors, csr_of(predecessors)

    def row_lengths(self, part: CscMatrix) -> np.ndarray[Any, Any]:
        """Return how many entries each vertex has in its row of this part, by vertex."""
        lengths = _lengths(self.forms(part)[1])
        return lengths if self.slots.of_vertex is None else lengths[self.slots.of_vertex]

    def column_lengths(self, part: CscMatrix) -> np.ndarray[Any, Any]:
        """Return how many entries the own columns have: their rows too, if `A` is symmetric."""
        return _lengths(part)


def _lengths(form: CscMatrix) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = np.diff(form.device.to_host(form.col_ptr).astype(np.int64))
    return found


class PieceSearch:
    """A piece's part of one search.

    Parameters
    ----------
    body : SearchBody
        The loop's body on the piece: its part of the matrix, of the frontier and of the excluded
        vector, which are read alone; and new targets.
    frontier : VectorStore
        Without entries; it takes what `times` leaves in the frontier.
    space : PieceSpace
        Of the part.
    n, nvals : int
        Vertices and entries of the whole matrix.
    times : int or None
        Iterations, at most.
    """

    def __init__(
        self,
        body: SearchBody,
        frontier: VectorStore,
        space: PieceSpace,
        n: int,
        nvals: int,
        times: int | None,
    ) -> None:
        self._body, self._frontier, self._space = body, frontier, space
        self._n, self._nvals, self._times = n, nvals, times
        self._device: Device = body.A.device
        number = iso_result(body.A, False, body.frontier.number, body.product)
        self._iso = number is not None and number.item() == 1
        self._keep = times is not None and not self._iso
        self._left: tuple[Array, Array] = (None, None)

    def launch(self, peers: Peers, piece: int) -> tuple[PreparedLaunch, tuple[Any, ...]]:
        """Return the launch with its arguments; what it needs is allocated and compiled."""
        body, f = self._body, self._body.frontier
        source = f.single
        sources, values = (None, None) if source >= 0 or not f.nvals else f.listed()
        excluded = None
        if body.excluded.nvals:
            body.excluded.to_bitmap()
            excluded = body.excluded.words
        blank, outputs, words, _ = outputs_of(body.assignments)
        kept = self._frontier.spare_values(f.dtype) if self._keep else None
        rest = None if self._times is None else self._frontier.spare_words()
        self._left = rest, kept
        times = NO_LIMIT if self._times is None else self._times
        given = (
            excluded, sources, values, f.number, source, f.nvals, kept, *outputs, *words, blank,
            rest, times, *peers.arguments(piece), peers.results[piece],
        )  # fmt: skip
        launch = self._prepared()
        return launch, given

    def settle(self, result: np.ndarray[Any, Any]) -> None:
        """Take over what the kernel has left in the frontier."""
        words, values = self._left
        left = 0 if words is None else int(result[LEFT])
        if left:
            number = None if self._keep else self._frontier.dtype.numpy.type(1)
            self._frontier.set_bitmap(words, values, number, left)

    def _prepared(self) -> PreparedLaunch:
        """Return the launch for loops of this structure; it is kept."""
        body, product = self._body, self._body.product
        assigned = tuple((a.what, a.target.dtype) for a in body.assignments)
        key = (
            product.semiring, product.flip, product.domain, body.frontier.dtype, assigned,
            body.assigns_first, self._iso, self._keep,
        )  # fmt: skip
        launches = self._space.launches
        if key not in launches:
            launches[key] = self._bound()
        return launches[key]

    def _bound(self) -> PreparedLaunch:
        """Prepare the launch with the arguments that all loops of this structure share."""
        space, device, slots = self._space, self._device, self._space.slots
        made = self._kernel()
        grid = device.max_cooperative_blocks(made, space.block)
        matrix, inverse = (
            (form.col_ptr, form.row_idx, None if self._iso else form.values)
            for form in reversed(space.forms(self._body.A))
        )
        part = self._body.A
        unhinted = not self._iso and self._body.reads[1] and part.values is not None
        push, own = space.push, part.shape[1]
        return device.prepare(
            made, grid * space.block,
            np.int64(self._n), np.int64(own), np.uint64(self._nvals), *matrix, *inverse,
            False if self._iso else part.number, None if unhinted else space.hint, space.empty,
            space.degrees, space.names, *(PER_CALL,) * OUTPUTS, PER_CALL,
            np.uint32(self._body.assigns_first), PER_CALL, space.alpha, BETA, space.visited,
            space.found, *space.words, push.vertex, push.start, push.degree, push.chunks,
            space.counters, push.barrier, np.uint32(slots.run), np.int64(slots.words),
            np.uint32(slots.room), *(PER_CALL,) * MEETINGS, block=space.block, cooperative=True,
        )  # fmt: skip

    def _kernel(self) -> Kernel:
        space = self._space
        form, _ = space.forms(self._body.A)
        macros, prelude = search_macros(self._body, form, self._iso, sums=False, keep=self._keep)
        macros |= {"BLOCK": str(space.block), "PEERS": str(space.pieces)}
        return kernel("search/peers.cu", "peers_search", prelude=prelude, **macros)
