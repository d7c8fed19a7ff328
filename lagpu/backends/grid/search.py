"""A search that one kernel runs on the devices of all pieces together; see search/peers.cu."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.peers import MOST_PEERS, Peers, posts_words
from lagpu.backends.gpu.device.protocol import CheckedLaunch, named_error
from lagpu.backends.gpu.fused.match import SearchBody, match_search, why_no_search, why_no_values
from lagpu.backends.gpu.fused.search_grid import (
    NEW_LOG,
    NO_LIMIT,
    Saved,
    block_of,
    form_arguments,
    logs_of,
    outputs_of,
    pull_room,
    restore_values,
    save_values,
    search_macros,
    unused_outputs,
)
from lagpu.backends.gpu.kernels import Kernel, constant, kernel
from lagpu.backends.gpu.ops.planner import alpha_of, beta_of, gamma_of
from lagpu.backends.gpu.ops.spmv import iso_result
from lagpu.backends.gpu.profile import (
    LoopLog,
    SearchRows,
    SearchTraffic,
    value_bytes,
    why_level,
)
from lagpu.backends.gpu.storage.forms import csr_of, transpose, why_no_csr
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import SEARCH_COUNTERS, pull_space, push_space
from lagpu.backends.grid.handles import GridMatrix, GridVector, become_all
from lagpu.backends.grid.partition import Partition
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.grid.systems import plan_system
from lagpu.host.interrupt import heard
from lagpu.operations import FusedLoop, Rejection, Statement, Sweep, Until

Array = Any
BITS = 32  # of a word
_LINE = 32  # words of a line of a GPU's memory
LEFT = constant("kLeft")
SPACE = "search of pieces"  # its place in a part's cache
Count = Callable[[], int]


class Slots(NamedTuple):
    """The bits that stand for the vertices in the words of a frontier.

    The words of a piece hold no vertex of another one, so each has one writer.

    Attributes
    ----------
    vertices, words : int
        How many there are of all pieces; words are a multiple of 4.
    run : int
        ``1 << run`` consecutive words are of one piece.
    room : int
        The most vertices that a piece has.
    of_vertex, names : array of INT32 or None
        The slot of each vertex, and the vertex of each slot; None where both are the same number,
        as in blocks of whole words.
    """

    vertices: int
    run: int
    words: int
    room: int
    of_vertex: np.ndarray[Any, Any] | None
    names: np.ndarray[Any, Any] | None

    def window_words(self, pieces: int, value_bytes: int) -> int:
        """Return the u64 of a window: posts, all words twice, two lists a piece, and values."""
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


def _in_words(by: Partition) -> bool:
    """Whether each block of indices fills words, so that an index is its own slot."""
    return by.new is None and by.block % BITS == 0


def _words_of(by: Partition) -> tuple[int, int]:
    """Return the words of a block of one piece, and of all blocks of all pieces."""
    most = max(1, nwords(max(by.count(p) for p in range(by.pieces))))
    length = by.block // BITS if _in_words(by) else min(_LINE, 1 << (most.bit_length() - 1))
    runs = -(-most // length)
    return length, -(-runs * length * by.pieces // 4) * 4


class PieceSpace:
    """Arrays for the searches of a piece of a matrix; made once, and kept in the part's cache.

    The part has all rows of the piece's own columns; the space does not hold it, which would then
    hold itself. `degree` is the mean of the whole matrix. `_Space` sets what depends on all pieces.

    Attributes
    ----------
    degrees : array of u32
        Edges that leave each own vertex, to any piece.
    targets, behind : int, float
        How many vertices edges lead to, and their mean of `degrees`, over all edges.
    words : tuple of array of u32
        The two buffers of all slots' words in the own window.
    symmetric : bool
        Whether the whole matrix is symmetric.
    reach : int
        Own vertices after these have no predecessors, so no search finds them.
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
    """The kind of a search, alike on all pieces."""

    sums: bool  # products of one level add up
    iso: bool  # every product is 1
    sends_values: bool  # products read the frontier's values, so that all pieces need them
    keep: bool  # the frontier's values are stored


def _on_piece(body: SearchBody, k: int) -> SearchBody:
    """Return a body that is on handles of the grid on the parts of a local piece."""
    A: Any = body.A
    return SearchBody(
        A.parts[k].csc(), body.frontier.parts[k], body.excluded.parts[k], body.product,
        tuple([a._replace(target=a.target.parts[k]) for a in body.assignments]),
        body.assigns_first, body.statements,
    )  # fmt: skip


def kind_of(body: SearchBody, pieces: int, times: int | None) -> Kind:
    """Return the kind of a search from its body on handles of the grid, of so many local pieces."""
    sends_values = body.reads[0]  # each part may have one value, but not the same one
    iso = not sends_values and all(_is_one(_on_piece(body, k)) for k in range(pieces))
    sums = not iso and body.sums
    return Kind(sums, iso, sends_values, sums or sends_values or (times is not None and not iso))


def _is_one(body: SearchBody) -> bool:
    number = iso_result(body.A, False, body.frontier.number, body.product)
    return number is not None and number.item() == 1


class Started(NamedTuple):
    """One search on a piece, ready to be launched.

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
        Without entries; it takes what `times` leaves in the frontier,
    words, values : array or None
        which the kernel writes here.
    saved : Saved
        Of the parts that it writes, the values to restore there.
    """

    launch: CheckedLaunch
    given: dict[str, Any]
    had: list[Count | None]
    frontier: VectorStore
    words: Array
    values: Array
    saved: Saved


class PieceSearch:
    """The searches of one structure on a piece; it keeps their launches, but not the part.

    The piece has position `k` among the local ones; `n` and `nvals` are of the whole matrix.
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
            The loop's body on handles of the grid; the matrix has the columns that the product
            finds.
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
        overwritten = [] if times is None else body.overwrites(self._kind.sums)
        saved = save_values(overwritten, targets, blank)
        launch = self._launch(body, logs_of(log, blank, len(targets)))
        flags, result = blank, peers.results[self._piece]
        if log is not None:
            result = log.words
            flags |= NEW_LOG if log.is_new else 0
        kept = frontier.spare_values(f.dtype) if self._kind.keep else None
        words = None if times is None else frontier.spare_words()
        # After `reach` no level would take a source's bit out of the words again, so a search from
        # there covers all vertices, as do several sources, which the host does not know.
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
        """Take over the frontier that the kernel has left, by its report."""
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
        sums, iso, sends_values, keep = self._kind
        macros, prelude = search_macros(body, form, iso, sums, keep)
        macros |= {"BLOCK": str(space.block), "PEERS": str(space.pieces)} | logs
        macros["TRAVEL"] = str(int(sends_values))
        return kernel("search/peers.cu", "peers_search", prelude=prelude, **macros)


# ------------------------------------------------------------------------------------------
# A recorded loop as such a search.


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
    if not pieces.one_kernel:
        why = _why_apart(pieces)
        if why:
            return Rejection(why)
        pieces.one_kernel = True  # neither places nor links change
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
    """The records of a traced search."""

    records: list[Callable[[], np.ndarray[Any, Any]]]  # returns those of each piece
    had: list[list[Count | None]]  # `Started.had` of each piece
    value_bytes: int  # of the value that a piece sends with each vertex, or 0
    rows: SearchRows  # makes rows of the records of all as one


def _structure(body: SearchBody, times: int | None) -> tuple[Any, ...]:
    """Return what a search's kernel is made for; of one structure all may run, or none."""
    product, assigned = body.product, [(a.what, a.target.dtype) for a in body.assignments]
    return (
        product.semiring, product.domain, product.result, product.flip, body.frontier.dtype,
        tuple(assigned), body.assigns_first, times is None,
    )  # fmt: skip


class _Space:
    """What the searches of one grid matrix keep: a space for each piece, and the windows.

    Attributes
    ----------
    searches : dict
        For each structure the `PieceSearch` of each piece.
    """

    def __init__(self, pieces: Pieces, A: GridMatrix, value_bytes: int) -> None:
        self.value_bytes = value_bytes
        self.searches: dict[tuple[Any, ...], list[PieceSearch]] = {}
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
                into.append(_lengths(part))  # of rows too, if A is symmetric
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
        """Return the space of a matrix, if it still has the parts that it was made for."""
        space: _Space | None = A.parts[0].csc().cache.get(SPACE)
        if space is not None:
            for kept, part in zip(space._parts, A.parts, strict=True):
                if kept() is not part.csc():
                    return None
        return space


class GridLoop:
    """A search that one kernel runs on the devices of all pieces together; see `FusedLoop`.

    Like a statement, it makes new parts, which the handles take once all devices have ended. The
    caller holds the locks of all places. The body is on handles of the grid; `times` bounds the
    iterations.
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
                old = [x.parts[k] for x in written]
                targets = [x.copy(x.dtype) if x.nvals else _blank(x) for x in old]
                log = logs[k] if logs else None
                started.append(search[k].start(body, targets, left, times, space.peers, log))
                made.append([left, *targets])
            launches = [s[:2] for s in started]
            with heard(*[place.device.stop[1] for place in pieces.places]):
                results = space.peers.run(launches, [log.words for log in logs])
        except Exception as error:
            named = named_error(device, error, "device")
            if named is None:
                raise
            raise named from error
        for of_piece, s, result in zip(search, started, results, strict=True):
            of_piece.settle(s, result)
        if logs:
            self.logged = self._log_of(body, space, [s.had for s in started], logs)
        become_all(
            [
                (x, GridVector(parts, x.dtype, x.shape))
                for x, *parts in zip([body.frontier, *written], *made, strict=True)
            ]
        )

    def _find(self) -> tuple[_Space, list[PieceSearch]] | None:
        """Return what a search of this structure has kept on the same parts, or None.

        A search by the transpose has kept it there; this one looks at the matrix alone.
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

    def _learn(self, body: SearchBody) -> tuple[_Space, list[PieceSearch]]:
        """Return what searches of this structure on these parts share; it is kept."""
        pieces, A, structure = self._pieces, cast(Any, body.A), _structure(body, self._times)
        kind = kind_of(body, len(pieces.places), self._times)
        nbytes = body.frontier.dtype.numpy.itemsize if kind.sends_values else 0
        space = _Space.of(A)
        if space is None or space.value_bytes < nbytes:
            kept: dict[str, Any] = A.parts[0].csc().cache
            kept.pop(SPACE, None)  # which frees its memory first
            space = kept[SPACE] = _Space(pieces, A, nbytes)
        if structure not in space.searches:
            space.searches[structure] = [
                PieceSearch(space.of_piece[k], kind, k, p, A.shape[0], space.nvals)
                for k, p, _ in pieces
            ]
        return space, space.searches[structure]

    def _log_of(
        self,
        body: SearchBody,
        space: _Space,
        had: list[list[Count | None]],
        logs: Sequence[LoopLog],
    ) -> Logged:
        A: Any = body.A
        n, first, kind = A.shape[0], A.parts[0].csc(), kind_of(body, len(had), self._times)
        alpha = alpha_of(space.nvals / max(n, 1), n, kind.sums, wide=True)
        why = functools.partial(why_level, n, "kByEdges", alpha, beta_of(kind.sums))
        assigned = [value_bytes(a.target.dtype) for a in body.assignments]
        traffic = SearchTraffic.of_vector(first, body.product, body.frontier.dtype, n, assigned)
        traffic = traffic._replace(bits=traffic.bits * len(had))  # each piece has them all
        # A function that counts the entries of all pieces before the loop; None without any.
        known = [[count for count in each if count is not None] for each in zip(*had, strict=True)]
        total = [(lambda of=of: sum(count() for count in of)) if of else None for of in known]
        return Logged(
            [log.launched() for log in logs],
            had,
            body.frontier.dtype.numpy.itemsize if kind.sends_values else 0,
            SearchRows(self.statements, total, why, traffic),
        )


def _blank(x: VectorStore) -> VectorStore:
    """Return a part without entries; the memory was reserved when `x` was made."""
    return VectorStore(x.device, x.counters, x.dtype, x.size)
