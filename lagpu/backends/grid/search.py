"""A search that one kernel runs on the devices of all pieces together; see search/peers.cu."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import numpy as np

from lagpu.backends import match
from lagpu.backends.gpu import GpuBackend, profile
from lagpu.backends.gpu.device.protocol import MOST_PEERS, CheckedLaunch, Device, Peers, posts_words
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.gpu.fused.loop import lasts
from lagpu.backends.gpu.kernels import constant, kernel
from lagpu.backends.gpu.ops import planner
from lagpu.backends.gpu.ops.planner import alpha_of, beta_of, gamma_of
from lagpu.backends.gpu.storage import workspaces
from lagpu.backends.gpu.storage.forms import csr_of, transpose, why_no_csr
from lagpu.backends.gpu.storage.stores import CscMatrix, VectorStore, nwords
from lagpu.backends.grid import systems
from lagpu.backends.grid.comm import alone
from lagpu.backends.grid.partition import BITS, GridHandle, Partition, needed, take_all
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.protocol import LoopRow, Phase, Sent
from lagpu.host.interrupt import heard
from lagpu.operations import Planned, Product, RecordedBody, Rejection, Statements, Sweep, Turns

Array = Any
BY_SLOTS = "by slots"  # the place of such a part in the other one's cache
_LINE = 32  # words of a line of a GPU's memory
_STRIDE = constant("kCounterStride")
_PULLS, _FINDS_NOTHING = constant("kPulls"), constant("kFindsNothing")
LEFT, _BARRIER = constant("kLeft"), constant("kWaitsForAll")
_REACHED = constant("kEpoch") + 1  # its place in a report
#: What each search of a piece has of its own, before its outputs; the last four not in rows.
_EACH = (
    "f_iso", "source", "num_sources", "blank", "result", "v_words", "sources", "source_values",
    "reach", "own_values", "f_words", "times",
)  # fmt: skip
_REACH = _EACH.index("reach")


class Started(NamedTuple):
    """A search of a piece that has all it needs."""

    outputs: Sequence[VectorStore]
    launch: CheckedLaunch
    given: list[Any]  #: Arguments, in the order of `_EACH`.
    settle: Callable[[Sequence[int]], None]  #: Takes over what the kernel reports.
    had: list[profile.Count | None]  #: With a log, the entries of each output before, if any.


class Slots(NamedTuple):
    """The bits of vertices in the words of a frontier; each word is of one piece, its writer."""

    vertices: int  #: Of all pieces.
    run: int  #: ``1 << run`` consecutive words are of one piece.
    words: int  #: Of all pieces, a multiple of 4.
    room: int  #: The most vertices that a piece has.
    #: array of INT32: the slot of each vertex, and the vertex of each slot; None where both are the
    #: same number, as in blocks of whole words.
    of_vertex: np.ndarray[Any, Any] | None
    names: np.ndarray[Any, Any] | None

    def window_words(self, pieces: int, value_bytes: int) -> int:
        """Return the u64 of a window: posts, all words twice, two lists a piece, and values."""
        values = -(-self.vertices * value_bytes // 8)
        return posts_words(pieces) + self.words + pieces * self.room + values

    def buffers(self, window: Array, pieces: int) -> tuple[Array, Array]:
        first, each = posts_words(pieces), self.words // 2
        both = window[first : first + 2 * each].view(np.uint32)
        return both[: self.words], both[self.words :]


def slots_of(by: Partition) -> Slots:
    """Return the slots of a partition's indices, fewer than 2**31."""
    counts = [by.count(p) for p in range(by.pieces)]
    length, words = _words_of(by)
    run = length.bit_length() - 1
    if by.in_words:
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


def _words_of(by: Partition) -> tuple[int, int]:
    """Return the words of a block of one piece, and of all blocks of all pieces."""
    most = max(1, nwords(max(by.count(p) for p in range(by.pieces))))
    length = by.block // BITS if by.in_words else min(_LINE, 1 << (most.bit_length() - 1))
    runs = -(-most // length)
    return length, -(-runs * length * by.pieces // 4) * 4


class RowSlots(NamedTuple):
    """Places in the windows of pieces in rows and columns; see `Places` in search/rows.cu."""

    run: int  #: ``1 << run`` consecutive words are of one piece.
    own: int  #: Words of a piece; these numbers of words are multiples of 4.
    sources: int  #: Words of the pieces of a column.
    targets: int  #: Words of the pieces of a row.
    room: int  #: Vertices of a list.

    def window_words(self, pieces: int, value_bytes: int) -> int:
        rows, columns = self.sources // self.own, self.targets // self.own
        words = self.sources + columns * self.own + self.targets + MOST_PEERS
        words += (rows + columns) * self.room + (BITS * self.targets if value_bytes else 0)
        return posts_words(pieces) + -(-words // 2)


def row_slots(by: Partition, grid: tuple[int, int], long: bool) -> RowSlots:
    """Return the places for a partition of whole words; `long` lists have room for all vertices."""
    most = max(by.count(p) for p in range(by.pieces))
    own = max(4, -(-nwords(most) // (by.block // BITS)) * by.block // BITS)
    room = -(-(most if long else own) // 4) * 4
    return RowSlots((by.block // BITS).bit_length() - 1, own, own * grid[0], own * grid[1], room)


class Kind(NamedTuple):
    """The kind of a search, alike on all pieces."""

    #: What its kernel is made for; of one structure all searches may run, or none.
    structure: tuple[Any, ...]
    sums: bool  #: Whether products of one level add up.
    iso: bool  #: Whether every product is 1.
    value_bytes: int  #: Of the value that is sent with each vertex, if products read it; else 0.
    keep: bool  #: Whether the frontier's values are stored.
    #: Whether a search from one vertex leaves nothing but its outputs, if these were empty.
    plain: bool
    system: systems.System | None  #: How pieces in rows and columns search.


def _long(system: systems.System) -> bool:
    return system.messages in ("list", "direction")


def _name_of(system: systems.System | None) -> str:
    """Return what the space of searches by a system is called in a part's cache."""
    rows = "" if system is None else f" in rows{', long lists' * _long(system)}"
    return systems.SPACE + rows


def kind_of(
    body: match.SearchBody, pieces: Pieces, times: int | None, system: systems.System | None = None
) -> Kind:
    """Return the kind of a search from its body on handles of the grid."""
    sends = body.product.reads[0]  # each part may have one value, but not the same one
    ones = (search_grid.is_one(_on_piece(body, k)) for k in range(len(pieces.places)))
    iso = pieces.engine.all(not sends and all(ones))
    sums = not iso and body.sums
    keep = sums or sends or (times is not None and not iso)
    if system is not None:
        keep = not iso and any(a.what == match.VALUE for a in body.assignments)
    nbytes = body.frontier.dtype.numpy.itemsize if sends or (system and keep) else 0
    plain = not keep and times is None and system is None
    return Kind(_structure(body, times, system), sums, iso, nbytes, keep, plain, system)


def _structure(
    body: match.SearchBody, times: int | None, system: systems.System | None
) -> tuple[Any, ...]:
    """Return what decides the kind; the last two are no bound, and the system."""
    product, assigned = body.product, [(a.what, a.target.dtype) for a in body.assignments]
    return (
        product.semiring, product.domain, product.result, product.flip, body.frontier.dtype,
        tuple(assigned), body.assigns_first, times is None, system,
    )  # fmt: skip


def _on_piece(body: match.SearchBody, k: int) -> match.SearchBody:
    """Return a body that is on handles of the grid on the parts of a local piece."""
    return match.SearchBody(
        body.A.parts[k].csc(), body.frontier.parts[k], body.excluded.parts[k], body.product,
        tuple([a._replace(target=a.target.parts[k]) for a in body.assignments]),
        body.assigns_first, body.statements,
    )  # fmt: skip


class PieceSpace:
    """What the searches of a piece of a matrix keep in the part's cache: arrays and launches.

    The part has all rows of the piece's own columns; the space does not hold it, which would then
    hold itself. The piece has position `k` among the local ones.
    """

    def __init__(self, k: int, part: CscMatrix, slots: Slots | RowSlots, degree: float) -> None:
        device, xp, own = part.device, part.device.xp, part.shape[1]
        self._k, self._slots = k, slots
        self._renumbered: CscMatrix | None = None
        self.names = None
        if isinstance(slots, Slots) and slots.of_vertex is not None and slots.names is not None:
            self.names = device.from_host(slots.names)
            given = part, device.from_host(slots.of_vertex), slots.words * BITS
            self._renumbered = part.kept(BY_SLOTS, functools.partial(by_slots, *given))
            del given  # the table's memory
        predecessors, successors = self.forms(part)
        self._push = workspaces.push_space(successors)
        self._pull = workspaces.pull_space(predecessors, successors)
        self.targets = self._pull.targets  #: How many own vertices edges lead to.
        #: Own vertices after these have no predecessors, so no search finds them.
        self.reach = int(xp.searchsorted(part.col_ptr, part.nvals))
        self._visited = xp.empty(nwords(own), np.uint32)
        self._found = xp.zeros(-(-nwords(own) // 4) * 4, np.uint32)
        self._counters = xp.zeros(workspaces.SEARCH_COUNTERS, np.uint64)
        self._block = min(search_grid.block_of(device, degree), device.limits.peers_block)
        own_arrays = (self.names, self._visited, self._found, self._counters)
        self.nbytes = sum(int(x.nbytes) for x in own_arrays if x is not None)
        #: By the id of the kind, which the space keeps, and the macros of logs.
        self.launches: dict[tuple[Any, ...], CheckedLaunch] = {}

    def forms(self, part: CscMatrix) -> tuple[CscMatrix, CscMatrix]:
        """Return the part by columns and by rows, the whole matrix' rows numbered by slots."""
        predecessors = part if self._renumbered is None else self._renumbered
        return predecessors, csr_of(predecessors)

    def start(
        self, space: _Space, body: match.SearchBody, kind: Kind,
        new: Sequence[VectorStore], times: int | None, log: profile.LoopLog | None = None,
    ) -> Started:  # fmt: skip
        """Return a search of at most `times` iterations; what it needs is allocated and compiled.

        `body` is on handles of the grid, whose matrix has the columns that the product finds. `new`
        has a new part of the frontier, without entries, and one for each assignment, which the
        kernel writes.
        """
        (frontier, *targets), peers = new, space.peers
        f, excluded = body.frontier.parts[self._k], body.excluded.parts[self._k]
        source, nvals = f.single, f.nvals
        sources, values = (None, None) if source >= 0 or not nvals else f.listed()
        left_out = None
        if excluded.nvals:
            excluded.to_bitmap()
            left_out = excluded.words
        blank, outputs, had = search_grid.outputs_of(targets, log)
        overwritten = [] if times is None else body.overwrites(kind.sums)
        saved = search_grid.save_values(overwritten, targets, blank)
        logs = search_grid.logs_of(log, blank, len(targets))
        key = id(kind), *logs.items()
        if key not in self.launches:
            on_piece = _on_piece(body, self._k)
            self.launches[key] = self._prepared(space, on_piece, kind, logs, [*outputs])
        whole = times is None and kind.system is None
        made = [x for k, x in enumerate(targets) if whole and blank >> k & 1]
        words, kept = None if times is None else frontier.spare_words(), None
        if kind.keep and kind.system is None:
            what = zip(targets, body.assignments, strict=True)
            x, *more = [x for x, a in what if a.what == match.VALUE] or [frontier]
            # Sums are added up in the output that takes them, if it is new.
            alike = kind.sums and not more and x in made and x.dtype is f.dtype
            kept = x.values if alike else frontier.spare_values(f.dtype)
        new_log = search_grid.NEW_LOG if log is not None and log.is_new else 0
        result, most = peers.results[self._k] if log is None else log.words, search_grid.NO_LIMIT
        given = [f.number, source, nvals, blank | new_log, result, left_out, sources, values]
        if kind.system is None:
            # No level would clear the bit of a source after `reach`, so a search from there covers
            # all vertices; so does one from several sources, which the host does not know.
            reach = self.reach if not nvals or 0 <= source < self.reach else excluded.size
            given += reach, kept, words, most if times is None else min(times, most)

        def settle(report: Sequence[int]) -> None:
            left = 0 if words is None else int(report[LEFT])
            _count(made, report)
            if left:
                if saved and frontier.device.enter is not None:
                    frontier.device.enter()
                search_grid.leave(frontier, words, kept, left, saved)

        return Started(targets, self.launches[key], [*given, *outputs.values()], settle, had)

    def _prepared(
        self, space: _Space, body: match.SearchBody, kind: Kind, logs: dict[str, str],
        outputs: Sequence[str],
    ) -> CheckedLaunch:  # fmt: skip
        """Prepare the launch with what all searches of a kind share."""
        slots, part, push = self._slots, body.A, self._push
        device: Device = part.device
        predecessors, successors = self.forms(part)
        sums, iso = kind.sums, kind.iso
        macros, prelude = search_grid.search_macros(body, predecessors, iso, sums, kind.keep)
        macros |= {"BLOCK": str(self._block), "PEERS": str(space.peers.count)} | logs
        own, name = self._own_arguments(space, part, kind, macros)
        own |= search_grid.unused_outputs(len(body.assignments)) | space.peers.fixed(self._k)
        each = [*_EACH[: None if kind.system is None else -4], *outputs, "epoch", "patience"]
        if name == "peers":
            monoid, kept = body.product.semiring.monoid, body.frontier.dtype
            same = kept is body.product.result and monoid.is_exact(kept)
            macros["ADDS"] = str(int(sums and (same or body.counts)))
            looks = sums and space.degree > planner.LONG_SEARCH_DEGREE
            ranks = workspaces.NO_RANKS
            if looks and body.counts:  # a pull adds up by a table
                ranks = workspaces.ranked(predecessors, successors, search_grid.COUNT_BYTES)
                macros |= {} if ranks.idx is None else {"RANKS": "1"}
            near = workspaces.near_words(device, predecessors.shape[0]) if looks else 0
            own |= {"near": near, "ranked_idx": ranks.idx, "rank": ranks.rank}
            own["counts"] = ranks.words
        made = kernel(f"search/{name}.cu", f"{name}_search", prelude=prelude, **macros)
        shared = max(search_grid.pull_room(self._block, sums), 4 * (own.get("near", 0) + 1))
        grid = device.max_cooperative_blocks(made, self._block, shared)
        unhinted = sums or (not iso and body.product.reads[1] and part.values is not None)
        return device.prepare(
            made, grid * self._block, block=self._block, cooperative=True, shared=shared,
            n=space.n, own=space.own[self._k], nvals_a=space.nvals,
            **search_grid.form_arguments("out", successors, iso),
            **search_grid.form_arguments("in", predecessors, iso),
            a_iso=False if iso else part.number, hint=None if unhinted else self._pull.hint,
            empty=self._pull.empty, degrees=space.degrees[self._k], names=self.names,
            shift=int(body.assigns_first), symmetric=int(space.symmetric), visited=self._visited,
            found_words=self._found, vertex=push.vertex, start=push.start, degree=push.degree,
            chunks=push.chunks, counters=self._counters, barrier=push.barrier, run=slots.run,
            room=slots.room, stop=device.stop[0], each=each, **own,
        )  # fmt: skip

    def _own_arguments(
        self, space: _Space, part: CscMatrix, kind: Kind, macros: dict[str, str]
    ) -> tuple[dict[str, Any], str]:
        """Add the macros of a kernel; return the arguments that it alone has, and its name."""
        macros["SENDS_VALUES"] = str(int(kind.value_bytes > 0))
        slots, (alpha, beta) = cast(Slots, self._slots), _thresholds(space, kind)
        words = slots.buffers(space.windows[self._k].own, space.peers.count)
        return {
            "num_targets": int(space.targets), "alpha": alpha, "beta": beta,
            "gamma": gamma_of(alpha, space.degree, space.behind), "words_a": words[0],
            "words_b": words[1], "words": slots.words,
        }, "peers"  # fmt: skip


def _thresholds(space: _Space, kind: Kind) -> tuple[float, float]:
    if kind.system is not None and kind.system is not systems.AUTO:
        return kind.system.alpha, kind.system.beta
    alpha = alpha_of(space.degree, space.n, wide=True)
    if kind.sums:  # each product that is pushed crosses a wire
        alpha = 2.0 if space.degree >= planner.DENSE_DEGREE else 14.0
    return alpha, beta_of(kind.sums)


def _why_by_system(system: systems.System, r: Any, _before: int) -> str:
    """Return why a level of a system went in its direction, on the first piece."""
    if r["how"] == _FINDS_NOTHING:
        return f"vertices {r['in']}, none leads on: not run"
    if system.rule == "push":
        return f"vertices {r['in']}; always pushes"
    ratio = int(r["frontier_edges"]) / int(r["other"]) if r["other"] else float("inf")
    return f"frontier / unvisited {ratio:.3g}, threshold {system.ratio:g}"


_RULES = {"edges": "kByEdges", "ratio": "kByUnvisited", "push": "kOnlyPushes"}


class RowsPiece(PieceSpace):
    """The same for a piece in rows and columns, whose part has some of the rows: its sources.

    `names` has the vertex that each source is in another order; the `_Space` sets it, for parents.
    """

    def _own_arguments(
        self, space: _Space, part: CscMatrix, kind: Kind, macros: dict[str, str]
    ) -> tuple[dict[str, Any], str]:
        xp, slots, own = part.device.xp, cast(RowSlots, self._slots), space.own[self._k]
        system, (alpha, beta) = cast(systems.System, kind.system), _thresholds(space, kind)
        rows, columns = slots.sources // slots.own, slots.targets // slots.own
        macros |= {"PEER_ROWS": str(rows), "SENDS_VALUES": "0"}
        macros["LATE"] = str(int(system.parents == "late"))
        shorter = 0 if system.messages == "bitmap" else slots.own
        return {
            "targets": part.shape[1], "rule": constant(_RULES[system.rule]),
            "share": int(system.share == "yes"),
            "most": 2**63 if _long(system) else shorter,
            "pulls_words": int(system.messages == "direction"),
            "alpha": alpha, "beta": beta, "ratio": system.ratio,
            "seen": xp.empty(nwords(own), np.uint32),
            "sent": xp.zeros(columns * _STRIDE, np.uint64),
            "giver": xp.empty(own if kind.keep else 0, np.int32), "open": xp.zeros(1, np.uint64),
            "source_words": slots.sources, "target_words": slots.targets, "own_words": slots.own,
        }, "rows"  # fmt: skip


def own_degrees(pieces: Pieces, A: GridHandle, sign: int = 1) -> list[Array]:
    """Return `sign` times the entries of each own row, on the device of each piece."""
    forms: list[CscMatrix] = [alone(x.device, x.csc) for x in cast(Any, A.parts)]
    need = needed(pieces.layout(A.shape), 0)
    whole = A.symmetric and need.by.whole  # a part's columns are as long as the rows
    found = []
    for form in forms:
        with form.device.lock, form.device.entered():
            rows = form if whole else form.csr
            ptr = rows.col_ptr if rows else workspaces.row_lengths(form)
            lengths = workspaces.lengths_of(form.device, ptr, sign)
            found.append(lengths if whole else (form.device.to_host(lengths),))
    if whole:
        return found
    sums = pieces.own_sums(found, need, np.add)  # each piece has some of the entries of a row
    none = (np.empty(0, np.int64),)
    each = zip(forms, sums, strict=True)
    return [alone(form.device, form.device.from_host, *(of or none)) for form, of in each]


def by_slots(part: CscMatrix, slot_of: Array, slots: int) -> CscMatrix:
    """Return a part whose rows are numbered by slots, and rise; it has its form by rows.

    In the order of degrees a pull looks at the predecessors of most edges first (Hiragushi and
    Takahashi 2013, section 3.4).
    """
    device, what, shape = part.device, ("rows of the matrix", ""), (slots, part.shape[1])
    with device.lock, device.entered():
        rows = slot_of[part.row_idx]
        unordered = CscMatrix(device, part.dtype, shape, part.col_ptr, rows, part.values, part.iso)
        by_rows = transpose(unordered, *what, rows_rise=False)
        del rows, unordered
        made = transpose(by_rows, *what)
        made.csr = by_rows
    return made


# ----------------------------------------------------------------- A recorded loop as such a search
def searches(pieces: Pieces) -> bool:
    """Whether the pieces are on devices with kernels of their own."""
    return all(isinstance(place, GpuBackend) for place in pieces.places)


def plan_loop(pieces: Pieces, statements: Statements, turns: Turns) -> Planned:
    """Return the search that runs a loop on all pieces as one kernel, or why there is none."""
    why = _why_apart(pieces)
    if why:
        return Rejection(why)
    if isinstance(turns, Sweep) or turns.empty is None:
        return Rejection("the loop has no frontier")
    if len(turns.empty.shape) > 1:
        return Rejection("the frontier has several rows")
    times = turns.times
    if isinstance(statements, RecordedBody) and statements.record.has_scalars:
        statements = list(statements)
    name, system, statements = systems.without_system(statements)
    body = match.match_search(statements, turns.empty)
    if isinstance(body, Rejection):
        return body
    if system is None and pieces.grid[1] > 1:
        system = systems.AUTO
    if system is not None:
        why = systems.why_no_system_search(body)
        if why:
            return Rejection(f"{why}; such a search of pieces in rows and columns is no kernel")
    structure = _structure(body, times, system)
    known = _known(body.A, body.product, structure)
    loop = GridLoop(pieces, body.statements, body.written, times, system, known, name)
    loop._body = body
    if known:
        if isinstance(statements, RecordedBody) and pieces.watch is None:
            places = [x.number for x in body.on_places.written]
            statements.record.found[search_again] = body.on_places, places, structure
        return loop
    why = pieces.run("plan", lambda: _of_any(pieces, _why_not_here(pieces, body, times, system)))
    return Rejection(why) if why else loop


def search_again(pieces: Pieces, body: Any, turns: Any) -> GridLoop | None:
    """Return the search of a recorded body that was planned before on its matrix, or None."""
    found = body.record.found.get(search_again) if isinstance(body, RecordedBody) else None
    if found is None or pieces.watch is not None:
        return None
    of, places, structure = found
    handles, times, system = body.handles, turns.times, structure[-1]
    if handles[places[0]] is not turns.empty:
        return None
    structure = (*structure[:-2], times is None, system)
    known = _known(handles[of.A.number], of.product, structure)
    return known and GridLoop(pieces, body, [handles[k] for k in places], times, system, known)


def _known(
    A: GridHandle, product: Product, structure: tuple[Any, ...]
) -> tuple[_Space, Kind] | None:
    """Return what such searches have kept with a matrix, not with its transpose; or None."""
    space = _Space.of(A, _name_of(structure[-1])) if product.transpose or A.symmetric else None
    kind = None if space is None else space.kinds.get(structure)
    return None if space is None or kind is None else (space, kind)


def fuse(pieces: Pieces) -> bool:
    """Whether other loops than searches may be one kernel: pieces of one column, all here."""
    return pieces.engine.alone and pieces.grid[1] == 1 and not _why_apart(pieces)


def _why_apart(pieces: Pieces) -> str:
    """Return why no kernel runs on all places, or an empty string."""
    if pieces.one_kernel:  # neither places nor links change
        return ""
    why = _why_no_kernels(pieces) or pieces.run("devices", lambda: _why_no_link(pieces))
    pieces.one_kernel = not why
    return why


def _why_no_kernels(pieces: Pieces) -> str:
    kinds = {place.name for place in pieces.places if not isinstance(place, GpuBackend)}
    if kinds:
        return f"pieces are on {' and '.join(sorted(kinds))}, which has no kernels"
    if pieces.engine.size > MOST_PEERS:
        return f"{pieces.engine.size} pieces; at most {MOST_PEERS} run one kernel"
    if len(set(map(type, pieces.devices))) > 1:
        return "the pieces are on devices of several kinds"
    return ""


def _why_no_link(pieces: Pieces) -> str:
    engine, devices = pieces.engine, pieces.devices
    names = engine.gather_objects([device.identity for device in devices])
    others = [name for p, name in enumerate(names) if p not in engine.local]
    why = _of_any(pieces, alone(devices[0], devices[0].why_apart, devices, others))
    if not why and others:
        try:
            engine.windows(8, devices)
        except (OSError, *devices[0].errors) as error:  # as containers may forbid it
            why = f"a process cannot address the memory of another one: {error}"
        why = _of_any(pieces, why)
    return why


def _of_any(pieces: Pieces, why: str) -> str:
    """Return the first reason that a process has, or an empty string."""
    return next(filter(None, pieces.engine.gather_objects([why] * len(pieces.places))), "")


def _why_not_here(
    pieces: Pieces, body: match.SearchBody, times: int | None, system: systems.System | None
) -> str:
    if system is not None and times is not None:
        return "the number of levels is bounded"
    if system is not None and pieces.partition(body.frontier.shape[0]).block % BITS:
        return "the vertices of a piece do not fill words"
    if body.product.is_output_index:
        return "each product is the index of the output, which a piece numbers by position"
    if times is not None and not body.assigns_first:
        return "the number of levels is bounded, and the assignments follow the product"
    A: Any = body.A
    n = A.shape[0]
    by = pieces.partition(n)
    if num_slots(by) >= 2**31:
        return f"{n} vertices take 2**31 slots in words of the pieces or more"
    if system is None and any(A.parts[k].shape != (n, by.count(p)) for k, p, _ in pieces):
        return "each piece has some of the rows alone; a search needs all edges into a vertex"
    lacking = next(filter(None, (why_no_csr(part.csc()) for part in A.parts)), "")
    return (
        match.why_no_search(body)
        or match.why_no_values(body, body.sums, body.sums or body.product.reads[0])
        or (lacking and f"a search needs the matrix by rows too, and {lacking}")
    )


class _Space:
    """What the searches of one grid matrix keep: a space for each piece, and the windows."""

    def __init__(self, pieces: Pieces, A: GridHandle, kind: Kind) -> None:
        self.value_bytes, system = kind.value_bytes, kind.system
        self.kinds: dict[tuple[Any, ...], Kind] = {}  #: Of each structure that was searched.
        self.n, self.nvals, self.symmetric = A.shape[0], pieces.nvals(A), bool(A.symmetric)
        self.degree = self.nvals / max(self.n, 1)
        self.ahead: dict[int, list[Started]] = {}  #: The next search, by the id of its kind.
        #: Whether a search may take long.
        self.lasts = lasts(self.n, self.nvals, pieces.places[0].device.limits)
        self.by = by = pieces.partition(self.n)
        engine, layout = pieces.engine, pieces.layout(A.shape)
        self.own = {k: by.count(p) for k, p, _ in pieces}  #: Vertices of each local piece.
        slots: Slots | RowSlots = (
            slots_of(by) if system is None else row_slots(by, pieces.grid, _long(system))
        )
        make = PieceSpace if system is None else RowsPiece
        self.of_piece: list[PieceSpace] = []
        for k, p, place in pieces:
            with place.device.lock, place.device.entered():
                part = A.parts[k].csc()
                space = make(k, part, slots, self.degree)
                self.of_piece.append(space)
                if system is not None and kind.keep and not by.rises:
                    vertices = layout.dims[0].index(layout.parts(p)[0], np.arange(part.shape[0]))
                    space.names = place.device.from_host(vertices.astype(np.int32))
        self._parts = [weakref.ref(part.csc()) for part in A.parts[1:]]
        self.degrees, walks = list[Array](), []  #: Edges that leave each own vertex, u32.
        for (k, _, place), out in zip(pieces, own_degrees(pieces, A), strict=True):
            with place.device.lock, place.device.entered():
                self.degrees.append(out.astype(np.uint32))
                if system is None:
                    into = workspaces.lengths_of(place.device, A.parts[k].csc().col_ptr)
                    walks.append(float(place.device.xp.multiply(into, out, dtype=np.float64).sum()))
        #: How many vertices edges lead to, and their mean edges that leave them, over all edges.
        self.targets = int(engine.sum([space.targets for space in self.of_piece]))
        self.behind = engine.sum(walks) / max(self.nvals, 1) if walks else 0.0
        nbytes = 8 * slots.window_words(engine.size, kind.value_bytes)
        self.windows = windows = engine.windows(nbytes, pieces.devices)
        own, everywhere = [w.own for w in windows], [w.addresses for w in windows]
        self.peers = Peers(pieces.devices, own, everywhere, engine.local[0])
        self.nbytes = self.peers.nbytes + sum(space.nbytes for space in self.of_piece)

    @staticmethod
    def of(A: GridHandle, name: str = systems.SPACE) -> _Space | None:
        """Return a space of a matrix, if it still has the parts that it was made for."""
        parts = A.parts
        space: _Space | None = parts[0].csc().cache.get(name)
        if space is not None:
            for kept, part in zip(space._parts, parts[1:], strict=True):
                if kept() is not part.csc():
                    return None
        return space


class GridLoop:
    """A search that one kernel runs on the devices of all pieces together; see `FusedLoop`.

    Like a statement, it makes new parts, which the handles take once all devices have ended. The
    caller holds the locks of all places. The body is on handles of the grid.
    """

    rows: Callable[[], list[LoopRow]] | None = None

    def __init__(
        self, pieces: Pieces, statements: Statements, written: list[GridHandle], times: int | None,
        system: systems.System | None, known: tuple[_Space, Kind] | None, name: str = systems.SPACE,
    ) -> None:  # fmt: skip
        self._pieces, self.statements, self._written = pieces, statements, written
        self._times, self.system, self.known, self.name = times, system, known, name
        count = pieces.engine.size if system is None else " x ".join(map(str, pieces.grid))
        self.why = f"the body is a search from one frontier; {count} pieces"

    @functools.cached_property
    def _body(self) -> match.SearchBody:
        """The body on these handles, which a search that leaves its outputs alone does not need."""
        recorded: Any = self.statements
        return recorded.record.found[search_again][0].on(recorded)

    @property
    def nbytes(self) -> int:
        return sum(part.bytes_to_write for x in self._written for part in x.parts)

    def run(self, logs: Sequence[profile.LoopLog] = ()) -> None:
        """Run the loop to its end, and wait for it; `GridTimeout` leaves all as it was.

        With a log of each piece's device the kernels write records, and `rows` returns its rows.
        """
        if self._times == 0:
            return
        if self._pieces.engine.alone:
            return self._run(logs)
        body = self._body._replace(statements=())  # from which the other fields were made
        given = {"body": body, "times": self._times, "traced": bool(logs)}
        name = "search" if self.known else "first search"
        return self._pieces.run(name, lambda: self._run(logs), given)

    def _run(self, logs: Sequence[profile.LoopLog]) -> None:
        pieces = self._pieces
        space, kind = self.known or self._learn()
        peers, engine = space.peers, pieces.engine
        left, started = (not logs and self._again(space, kind)) or self._any(space, kind, logs)
        # No process launches a kernel before all have come here, or if one has failed.
        if not engine.all(peers.ready):
            peers.clear()
            engine.barrier()
        turn, new = [*peers.turn().values()], list[tuple[GridHandle, Any]]()
        launches = [(piece.launch, piece.given + turn) for piece in started]

        def meanwhile() -> None:
            made = [piece.outputs for piece in started]
            if not kind.plain:
                for outputs in made:
                    with outputs[0].device.lock, outputs[0].device.entered():
                        outputs[0].counters.allocate_ahead(outputs)
            elif not logs and made[0][0].counters.are_small(made[0]):
                with suppress(MemoryError):
                    space.ahead = {id(kind): self._next(space, kind)}
            new.extend(zip(self._written, [left, *map(list, zip(*made, strict=True))], strict=True))

        run = functools.partial(peers.run, launches, [log.words for log in logs], meanwhile)
        # To watch for Ctrl-C takes as long as a short search, which ends soon anyway.
        results = self._heard(run) if space.lasts else run()
        for piece, result in zip(started, results, strict=True):
            piece.settle(result)
        if logs:
            self.rows = self._rows_of(space, kind, [piece.had for piece in started], logs)
        if not engine.alone:
            peers.ready = False  # until every process has come to its end
            pieces.change(functools.partial(setattr, peers, "ready", True))
        pieces.change(functools.partial(take_all, new))

    def _again(self, space: _Space, kind: Kind) -> tuple[Any, list[Started]] | None:
        """Begin a plain search from one vertex whose outputs have no entries; else return None.

        The first one of its kind, which prepares the launches, is as any.
        """
        pieces, (f, *outputs) = self._pieces, self._written
        ready = kind.plain and (id(kind),) in space.of_piece[-1].launches
        if f.single is None or not ready or [x for x in outputs if x.count != 0]:
            return None
        (i, number), started = f.single, space.ahead.pop(id(kind), None)
        started = started or self._next(space, kind)
        owner, at = space.by.located(i)
        for (k, p, _), (_, _, given, *_) in zip(pieces, started, strict=True):
            given[0] = number
            if p == owner:
                given[1:3] = at, 1
                if at >= space.of_piece[k].reach:
                    given[_REACH] = space.own[k]
        return pieces.parts_of, started

    def _next(self, space: _Space, kind: Kind) -> list[Started]:
        """Prepare what `_again` begins, without the vertex; the first device is entered last."""
        started, dtypes = [], [x.dtype for x in self._written[1:]]
        for k, _, place in [*cast(Any, self._pieces)][::-1]:
            piece, of = space.of_piece[k], (place.device, place.runtime.counters)
            new = [VectorStore(*of, dtype, space.own[k]) for dtype in dtypes]
            given = [None, -1, 0, (1 << len(new)) - 1, space.peers.results[k], None, None, None]
            given += piece.reach, None, None, search_grid.NO_LIMIT
            with place.device.lock, place.device.entered():
                for x in new:
                    x.to_blank()
                    given += x.values, x.words
            settle = functools.partial(_count, new)
            started.append(Started(new, piece.launches[id(kind),], given, settle, []))
        return started[::-1]

    def _any(
        self, space: _Space, kind: Kind, logs: Sequence[profile.LoopLog]
    ) -> tuple[Any, list[Started]]:
        """Begin a search; return new parts of the frontier too."""
        body, (f, *outputs), left, started = self._by_columns(), self._written, [], []
        for k, _, place in self._pieces:
            with place.device.lock, place.device.entered():
                left.append(_blank(f.parts[k]))
                old = [x.parts[k] for x in outputs]
                new = [left[k], *(x.copy(x.dtype) if x.nvals else _blank(x) for x in old)]
                piece, log = space.of_piece[k], logs[k] if logs else None
                started.append(piece.start(space, body, kind, new, self._times, log))
        return left, started

    def _heard(self, run: Callable[[], list[Array]]) -> list[Array]:
        """Return what the kernels report; all end where one process is interrupted."""
        stops = [device.stop[1] for device in self._pieces.devices]
        try:
            with heard(*stops):
                return run()
        except KeyboardInterrupt:
            if not any(stop[0] for stop in stops):
                self._pieces.engine.barrier()  # where that process reports it
            raise

    def _by_columns(self) -> match.SearchBody:
        """Return the body with the matrix whose columns lead to what the product finds."""
        body = self._body
        if not body.product.transpose:
            product = body.product._replace(transpose=True)
            body = body._replace(A=self._pieces.transpose(body.A), product=product)
        return body

    def _learn(self) -> tuple[_Space, Kind]:
        """Return what searches of this structure on these parts share; it is kept."""
        pieces, body = self._pieces, self._by_columns()
        A = body.A
        kind = kind_of(body, pieces, self._times, self.system)
        name = _name_of(self.system)
        space = _Space.of(A, name)
        if space is None or space.value_bytes < kind.value_bytes:
            kept: dict[str, Any] = A.parts[0].csc().cache
            kept.pop(name, None)  # which frees its memory first
            space = kept[name] = _Space(pieces, A, kind)
        return space, space.kinds.setdefault(kind.structure, kind)

    def _rows_of(
        self, space: _Space, kind: Kind,
        had: list[list[profile.Count | None]], logs: Sequence[profile.LoopLog],
    ) -> Callable[[], list[LoopRow]]:  # fmt: skip
        body = self._by_columns()
        n, first = space.n, body.A.parts[0].csc()
        alpha, beta = _thresholds(space, kind)
        why = functools.partial(profile.why_level, n, "kByEdges", alpha, beta)
        if kind.system is not None and kind.system.rule != "edges":
            why = functools.partial(_why_by_system, kind.system)
        assigned = [profile.value_bytes(a.target.dtype) for a in body.assignments]
        of, dtype = profile.SearchTraffic.of_vector, body.frontier.dtype
        traffic = of(first, body.product, dtype, n, assigned)
        records, engine = [log.launched() for log in logs], self._pieces.engine
        if not engine.alone:
            own = engine.gather([(read().view(np.uint8),) for read in records])
            records = [functools.partial(of.view, profile.RECORD) for (of,) in own]
            before = [[count and count() for count in of] for of in had]
            had = [
                [None if n is None else functools.partial(int, n) for n in of]
                for of in engine.gather_objects(before)
            ]
        traffic = traffic._replace(bits=traffic.bits * len(had))  # each piece has them all
        # A function that counts the entries of all pieces before the loop; None without any.
        known = [[count for count in each if count is not None] for each in zip(*had, strict=True)]
        total = [(lambda of=of: sum(count() for count in of)) if of else None for of in known]
        rows = profile.SearchRows(self.statements, total, why, traffic)
        grid = self._pieces.grid
        return lambda: _rows_of_pieces(rows, [read() for read in records], had, kind, grid)


def _count(written: Sequence[VectorStore], report: Sequence[int]) -> None:
    """Note how many entries a kernel has written to outputs that had none."""
    for x in written:
        x.counted(int(report[_REACHED]))


def _blank(x: VectorStore) -> VectorStore:
    """Return a part without entries; the memory was reserved when `x` was made."""
    return VectorStore(x.device, x.counters, x.dtype, x.size)


# ------------------------------------------------------------------ records of several pieces
def _rows_of_pieces(
    rows: profile.SearchRows, logs: Sequence[Array], had: Any, kind: Kind, grid: tuple[int, int]
) -> list[LoopRow]:
    """Return the rows of a search of pieces: a level of all, and in it phases, or each piece."""
    levels = [records[records["how"] != _BARRIER] for records in logs]
    barriers = [records[records["how"] == _BARRIER] for records in logs]
    ends = barriers if kind.system is None else [at_barrier[::2] for at_barrier in barriers]
    found, at = [], 0
    for row in rows(_merged(levels, ends, had, rows.assigns_after)):
        measured = row.measured
        if measured.direction:  # the product's
            at += 1
            if kind.system is None:
                measured = measured._replace(phases=_phases(at, barriers, kind.value_bytes))
            else:
                pulls = sum(int(records["how"][at] == _PULLS) for records in levels)
                measured = measured._replace(
                    direction={0: "push", len(levels): "pull"}.get(pulls, "both"),
                    reason=f"{measured.reason}; {pulls} of {len(levels)} pieces pull",
                    phases=_phases_in_rows(at, barriers, kind.system, grid),
                )
            row = row._replace(measured=measured)
        found.append(row)
    return found


def _phases_in_rows(
    at: int, barriers: Sequence[Array], system: systems.System, grid: tuple[int, int]
) -> tuple[Phase, ...]:
    """Return the phases of a level: the slowest piece's time, and what all pieces have sent."""
    (R, C), ms = grid, np.zeros(4)
    messages: list[list[tuple[str, int, int]]] = [[], [], []]
    for of in barriers:
        before, fold, end = of[2 * at - 2 : 2 * at + 1]
        times = [before["ns"], fold["other"], fold["ns"], end["other"], end["ns"]]
        ms = np.maximum(ms, np.maximum(np.diff(np.array(times, np.int64)), 0) / 1e6)
        words, listed, found = int(fold["in"]), int(fold["out"]), int(end["out"])
        messages[0].append(_message(words, listed, C - 1, 1))
        messages[1].append(_message(int(end["in"]), found, R - 1, R - 1))
        if system.share == "yes" and end["in"]:
            messages[2].append(_message(words, 0, C - 1, 1))
    fold_sent, expand_sent, share_sent = map(_sent, messages)
    sent = (), fold_sent, (), expand_sent
    names = "expansion", "fold", "update", "expand"
    phases = [Phase(*of) for of in zip(names, ms.tolist(), sent, strict=True)]
    return (*phases, *([Phase("share", 0.0, share_sent)] if share_sent else []))


def _message(words: int, listed: int, mates: int, times: int) -> tuple[str, int, int]:
    """Return the form, messages and bytes of words to each of some mates, or of a list."""
    if words:
        return "bitmap", mates, 4 * words * mates
    return "list", mates if listed else 0, 4 * listed * times if mates else 0


def _sent(messages: Sequence[tuple[str, int, int]]) -> tuple[Sent, ...]:
    found = []
    for form in sorted({form for form, _, nbytes in messages if nbytes}):
        of_form = [message for message in messages if message[0] == form]
        found.append(Sent(form, sum(m for _, m, _ in of_form), sum(n for _, _, n in of_form)))
    return tuple(found)


def _merged(levels: list[Array], barriers: list[Array], had: Any, assigns_after: bool) -> Array:
    """Return the records of all pieces as those of one device: what each has counted is added.

    All have the same records but for the edges that they have looked at, and the new entries of
    outputs that had some; in a part without entries before, all that the piece has found are new.
    """
    merged = levels[0].copy()
    merged["edges"] = sum(records["edges"] for records in levels)
    merged["added"] = 0
    for records, at_barrier, counts in zip(levels, barriers, had, strict=True):
        found = np.cumsum(at_barrier["out"][1 if assigns_after else 0 :])[: len(records) - 1]
        for k, count in enumerate(counts):
            merged["added"][1:, k] += found if count is None else records["added"][1:, k]
    return merged


def _phases(at: int, barriers: Sequence[Array], value_bytes: int) -> tuple[Phase, ...]:
    """Return, for each piece, how long its part of a level took, and what it sent to the others."""
    phases, others = [], len(barriers) - 1
    for p, at_barrier in enumerate(barriers):
        ms = max(int(at_barrier["other"][at]) - int(at_barrier["ns"][at - 1]), 0) / 1e6
        words, found = int(at_barrier["in"][at]), int(at_barrier["out"][at])
        sent = [Sent(*_message(words, found, others, others))]
        if value_bytes:
            sent.append(Sent("values", others if found else 0, others * value_bytes * found))
        phases.append(Phase(f"piece {p}", ms, tuple(sent)))
    return tuple(phases)
