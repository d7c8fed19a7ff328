"""One piece of a search that a kernel on every device runs together; see search/peers.cu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from lagpu.backends.gpu.device.peers import Peers, posts_words
from lagpu.backends.gpu.device.protocol import CheckedLaunch
from lagpu.backends.gpu.fused.match import SearchBody
from lagpu.backends.gpu.fused.search_grid import (
    NEW_LOG,
    NO_LIMIT,
    Saved,
    logs_of,
    outputs_of,
    pull_room,
    restore_values,
    save_values,
    search_macros,
    unused_outputs,
)
from lagpu.backends.gpu.fused.search_space import block_of, form_arguments
from lagpu.backends.gpu.kernels import Kernel, constant, kernel
from lagpu.backends.gpu.ops.planner import alpha_of, beta_of, gamma_of
from lagpu.backends.gpu.ops.spmv import iso_result
from lagpu.backends.gpu.profile import LoopLog
from lagpu.backends.gpu.storage.forms import csr_of, transpose
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import SEARCH_COUNTERS, pull_space, push_space
from lagpu.backends.grid.dealing import Dealt, Partition

Array = Any
BITS = 32  # of a word
_LINE = 32  # words of a line of a GPU's memory
LEFT = constant("kLeft")


class Slots(NamedTuple):
    """The bits that stand for the vertices in the words of a frontier.

    The words of a piece hold no vertex of another one, so each has one writer.

    Attributes
    ----------
    vertices : int
        How many there are.
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

    vertices: int
    run: int
    words: int
    room: int
    of_vertex: np.ndarray[Any, Any] | None
    names: np.ndarray[Any, Any] | None

    def window_words(self, pieces: int, value_bytes: int) -> int:
        """Return the u64 of a window.

        It has posts, all words twice, two lists of each piece, and behind these, if a value has
        some bytes, the value of each vertex.
        """
        values = -(-self.vertices * value_bytes // 8)
        return posts_words(pieces) + self.words + pieces * self.room + values

    def buffers(self, window: Array, pieces: int) -> tuple[Array, Array]:
        """Return the two buffers of words in a window."""
        first, each = posts_words(pieces), self.words // 2
        both = window[first : first + 2 * each].view(np.uint32)
        return both[: self.words], both[self.words :]


def slots_of(by: Partition) -> Slots:
    """Return the slots of a partition's indices, of which there are fewer than 2**31."""
    counts = [by.count(p) for p in range(by.pieces)]
    length, words = _words_of(by)
    run = length.bit_length() - 1
    if _in_words(by):
        return Slots(by.size, run, words, max(counts), None, None)
    of_vertex = np.zeros(by.size, np.int32)
    names = np.zeros(words * BITS, np.int32)
    for p in range(by.pieces):
        own, at = by.own(p), np.arange(counts[p])
        of_run = length * BITS
        slots = (at // of_run * by.pieces + p) * of_run + at % of_run
        of_vertex[own], names[slots] = slots, own
    return Slots(by.size, run, words, max(counts), of_vertex, names)


def num_slots(by: Partition) -> int:
    """Return how many slots `slots_of` would make."""
    return _words_of(by)[1] * BITS


def _in_words(by: Partition) -> TypeGuard[Dealt]:
    """Whether each run of indices fills words, so that an index is its own slot."""
    return isinstance(by, Dealt) and by.run % BITS == 0


def _words_of(by: Partition) -> tuple[int, int]:
    """Return the words of a run of one piece, and of all runs of all pieces."""
    most = max(1, nwords(max(by.count(p) for p in range(by.pieces))))
    length = by.run // BITS if _in_words(by) else min(_LINE, 1 << (most.bit_length() - 1))
    runs = -(-most // length)
    return length, -(-runs * length * by.pieces // 4) * 4


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
        Edges that leave each own vertex, to any piece; whoever makes all spaces sets it,
    targets, behind : int, float
        how many vertices edges lead to (own ones, until then), the mean of `degrees` of such a
        vertex, over all edges, and
    words : tuple of array of u32
        the two buffers of all slots' words in the own window.
    symmetric : bool
        Whether the whole matrix is symmetric, as whoever makes all spaces says.
    reach : int
        Own vertices behind these have no predecessors, so no search finds them.
    """

    def __init__(self, part: CscMatrix, slots: Slots, pieces: int, degree: float) -> None:
        device, xp, own = part.device, part.device.xp, part.shape[1]
        self.slots, self.pieces = slots, pieces
        self._renumbered: CscMatrix | None = None
        self.names = None
        if slots.of_vertex is not None and slots.names is not None:
            self.names = device.from_host(slots.names)
            self._renumbered = _renumbered(part, slots.of_vertex, slots.words * BITS)
        predecessors, successors = self.forms(part)
        self.push = push_space(successors)
        pull = pull_space(predecessors, successors)
        self.empty, self.hint = pull.empty, pull.hint
        self.degrees: Array = None
        self.targets, self.behind, self.symmetric = pull.targets, 0.0, False
        self.words: tuple[Array, Array] = (None, None)
        self.reach = int(xp.searchsorted(part.col_ptr, part.nvals))
        self.visited = xp.empty(nwords(own), np.uint32)
        self.found = xp.zeros(-(-nwords(own) // 4) * 4, np.uint32)
        self.counters = xp.zeros(SEARCH_COUNTERS, np.uint64)
        self.block = min(block_of(device, degree), device.limits.peers_block)
        self.degree = degree
        own_arrays = (self.names, self.visited, self.found, self.counters)
        self.nbytes = sum(int(x.nbytes) for x in own_arrays if x is not None)

    def forms(self, part: CscMatrix) -> tuple[CscMatrix, CscMatrix]:
        """Return the part by columns and by rows, the whole matrix' rows numbered by slots."""
        predecessors = part if self._renumbered is None else self._renumbered
        return predecessors, csr_of(predecessors)

    def row_lengths(self, part: CscMatrix) -> np.ndarray[Any, Any]:
        """Return how many entries each vertex has in its row of this part, by vertex."""
        lengths: np.ndarray[Any, Any] = part.device.to_host(_lengths(self.forms(part)[1]))
        return lengths if self.slots.of_vertex is None else lengths[self.slots.of_vertex]

    def column_lengths(self, part: CscMatrix) -> Array:
        """Return how many entries the own columns have, on the piece's device.

        The own rows have as many, if the whole matrix is symmetric.
        """
        return _lengths(part)


def _lengths(form: CscMatrix) -> Array:
    return form.device.xp.diff(form.col_ptr).astype(np.uint32)


def _renumbered(part: CscMatrix, slot_of: np.ndarray[Any, Any], slots: int) -> CscMatrix:
    """Return a part whose rows are numbered by slots, and rise; it has its form by rows.

    So in the order of degrees a pull looks at the predecessors of most edges first (Hiragushi and
    Takahashi 2013, section 3.4).
    """
    device, what = part.device, ("rows of the matrix", "")
    rows = device.from_host(slot_of)[part.row_idx]
    unordered = CscMatrix(
        device, part.dtype, (slots, part.shape[1]), part.col_ptr, rows, part.values, part.iso
    )
    by_rows = transpose(unordered, *what)
    del rows, unordered
    made = transpose(by_rows, *what)
    made.csr = by_rows
    return made


class Kind(NamedTuple):
    """What a search does, alike on all pieces.

    Attributes
    ----------
    sums : bool
        Whether the products of one level add up.
    iso : bool
        Whether every product is 1.
    travels : bool
        Whether products read the frontier's values, so that all pieces need them.
    keep : bool
        Whether the frontier's values are stored.
    """

    sums: bool
    iso: bool
    travels: bool
    keep: bool


def _on_piece(body: SearchBody, k: int) -> SearchBody:
    """Return a body that is on handles of the grid on the parts of a local piece."""
    A: Any = body.A
    return SearchBody(
        A.parts[k].csc(), body.frontier.parts[k], body.excluded.parts[k], body.product,
        tuple([a._replace(target=a.target.parts[k]) for a in body.assignments]),
        body.assigns_first, body.statements,
    )  # fmt: skip


def kind_of(body: SearchBody, pieces: int, times: int | None) -> Kind:
    """Return what a search does whose body is on handles of the grid, of so many local pieces."""
    travels = body.reads[0]  # the parts of a frontier may have one value each, but not the same
    iso = not travels and all(_is_one(_on_piece(body, k)) for k in range(pieces))
    sums = not iso and body.sums
    return Kind(sums, iso, travels, sums or travels or (times is not None and not iso))


def _is_one(body: SearchBody) -> bool:
    number = iso_result(body.A, False, body.frontier.number, body.product)
    return number is not None and number.item() == 1


class Started(NamedTuple):
    """One search on a piece, of which all is there but the launch.

    Attributes
    ----------
    launch : CheckedLaunch
        The launch.
    given : dict
        Its arguments.
    had : list of callable or None
        With a log, for each assignment a callable that returns its output's entries before the
        loop, or None if there are none.
    frontier : VectorStore
        Without entries; it takes what `times` leaves in the frontier.
    words, values : array or None
        Where the kernel writes that.
    saved : Saved
        Of the parts that it writes, the values to restore there.
    """

    launch: CheckedLaunch
    given: dict[str, Any]
    had: list[Callable[[], int] | None]
    frontier: VectorStore
    words: Array
    values: Array
    saved: Saved


class PieceSearch:
    """The searches of one structure on a piece; it keeps their launches.

    Like the space it does not hold the part.

    Parameters
    ----------
    space : PieceSpace
        Of the part.
    kind : Kind
        What the searches do.
    k, piece : int
        Its position among the local pieces, and its number.
    n, nvals : int
        Vertices and entries of the whole matrix.
    """

    def __init__(
        self, space: PieceSpace, kind: Kind, k: int, piece: int, n: int, nvals: int
    ) -> None:
        self._space, self._kind, self._k, self._piece = space, kind, k, piece
        self._n, self._nvals = n, nvals
        self._launches: dict[tuple[tuple[str, str], ...], CheckedLaunch] = {}  # by macros of logs

    def start(
        self,
        body: SearchBody,
        targets: Sequence[VectorStore],
        frontier: VectorStore,
        times: int | None,
        peers: Peers,
        log: LoopLog | None = None,
    ) -> Started:
        """Return a search; what it needs is allocated and compiled.

        Parameters
        ----------
        body : SearchBody
            The loop's body on handles of the grid, of which the search reads the piece's parts
            alone; the matrix has the columns that the product finds.
        targets : sequence of VectorStore
            For each assignment a new part, which the kernel writes.
        frontier : VectorStore
            A new part without entries.
        times : int or None
            Iterations, at most.
        peers : Peers
            Of all pieces.
        log : LoopLog, optional
            Where its kernel writes records.
        """
        f, excluded = body.frontier.parts[self._k], body.excluded.parts[self._k]
        source, nvals = f.single, f.nvals
        sources, values = (None, None) if source >= 0 or not nvals else f.listed()
        left_out = None
        if excluded.nvals:
            excluded.to_bitmap()
            left_out = excluded.words
        blank, outputs, had = outputs_of(targets, log)
        saved = save_values(body.overwrites(times is not None, self._kind.sums), targets, blank)
        launch = self._launch(body, logs_of(log, blank, len(targets)))
        flags, result = blank, peers.results[self._piece]
        if log is not None:
            result = log.words
            flags |= NEW_LOG if log.is_new else 0
        kept = frontier.spare_values(f.dtype) if self._kind.keep else None
        words = None if times is None else frontier.spare_words()
        # Behind `reach` no level would take a source's bit out of the words again, so a search from
        # there tells of all vertices. Of several sources the host does not know.
        near = not nvals or 0 <= source < self._space.reach
        reach = self._space.reach if near else excluded.size
        given = {
            "reach": reach, "v_words": left_out, "sources": sources, "source_values": values,
            "f_iso": f.number, "source": source, "num_sources": nvals, "own_values": kept,
            **outputs, **unused_outputs(len(targets)), "blank": flags, "f_words": words,
            "times": NO_LIMIT if times is None else times, **peers.arguments(self._piece),
            "stop": frontier.device.stop[0], "result": result,
        }  # fmt: skip
        return Started(launch, given, had, frontier, words, kept, saved)

    def settle(self, search: Started, result: Sequence[int]) -> None:
        """Take over what the kernel has left in the frontier, by its report."""
        left = 0 if search.words is None else int(result[LEFT])
        if left:
            number = None if self._kind.keep else search.frontier.dtype.numpy.type(1)
            search.frontier.set_bitmap(search.words, search.values, number, left)
            if search.saved and search.frontier.device.enter is not None:
                search.frontier.device.enter()
            restore_values(search.saved, search.words)

    def _launch(self, body: SearchBody, logs: dict[str, str]) -> CheckedLaunch:
        """Return the launch of the kernel with these macros of its log; it is kept."""
        key = tuple(logs.items())
        found = self._launches.get(key)
        if found is None:
            found = self._launches[key] = self._bound(_on_piece(body, self._k), logs)
        return found

    def _bound(self, body: SearchBody, logs: dict[str, str]) -> CheckedLaunch:
        """Prepare the launch with the arguments that all loops of this structure share."""
        space, slots, kind, part = self._space, self._space.slots, self._kind, body.A
        device, made = part.device, self._kernel(body, logs)
        shared = pull_room(space.block, kind.sums)
        grid = device.max_cooperative_blocks(made, space.block, shared)
        predecessors, successors = space.forms(part)
        reads_matrix = not kind.iso and body.reads[1]
        unhinted = kind.sums or (reads_matrix and part.values is not None)
        push, own = space.push, part.shape[1]
        alpha = alpha_of(space.degree, self._n, kind.sums, wide=True)
        return device.prepare(
            made, grid * space.block, block=space.block, cooperative=True, shared=shared,
            n=self._n, own=own, nvals_a=self._nvals,
            **form_arguments("out", successors, kind.iso),
            **form_arguments("in", predecessors, kind.iso),
            a_iso=False if kind.iso else part.number, hint=None if unhinted else space.hint,
            empty=space.empty, degrees=space.degrees, names=space.names,
            shift=int(body.assigns_first), num_targets=int(space.targets),
            symmetric=int(space.symmetric), alpha=alpha, beta=beta_of(kind.sums),
            gamma=gamma_of(alpha, space.degree, space.behind), visited=space.visited,
            found_words=space.found, words_a=space.words[0], words_b=space.words[1],
            vertex=push.vertex, start=push.start, degree=push.degree, chunks=push.chunks,
            counters=space.counters, barrier=push.barrier, run=slots.run, words=slots.words,
            room=slots.room,
        )  # fmt: skip

    def _kernel(self, body: SearchBody, logs: dict[str, str]) -> Kernel:
        space = self._space
        form, _ = space.forms(body.A)
        sums, iso, travels, keep = self._kind
        macros, prelude = search_macros(body, form, iso, sums, keep)
        macros |= {"BLOCK": str(space.block), "PEERS": str(space.pieces)} | logs
        macros["TRAVEL"] = str(int(travels))
        return kernel("search/peers.cu", "peers_search", prelude=prelude, **macros)
