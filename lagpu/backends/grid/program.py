"""A loop that runs as one kernel on the device of each piece; see gpu/fused/program/pieces.py."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from lagpu import operations as ops
from lagpu.algebra.tables import binary, indexunary, monoid, semiring
from lagpu.backends import match
from lagpu.backends.gpu.device.protocol import Peers, has_free
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.fused.program.pieces import Numbering, PieceProgram
from lagpu.backends.gpu.fused.program.run import as_loop, why_not_generated
from lagpu.backends.gpu.fused.search_grid import extreme_values
from lagpu.backends.gpu.fused.sweep import PieceSweep
from lagpu.backends.gpu.ops.planner import LONG_SEARCH_DEGREE
from lagpu.backends.gpu.ops.strategies import sums_every_entry
from lagpu.backends.gpu.profile import LoopLog
from lagpu.backends.gpu.storage.bitmap import MatrixHandle
from lagpu.backends.gpu.storage.stores import CscMatrix, VectorStore, as_type, nwords
from lagpu.backends.gpu.storage.workspaces import ORDER, by_length
from lagpu.backends.grid.comm import alone
from lagpu.backends.grid.exchange import whole
from lagpu.backends.grid.partition import BITS, GridHandle, Partition, take_all
from lagpu.backends.grid.pieces import Pieces, may_gather, on_one_device
from lagpu.backends.grid.search import BY_SLOTS, by_slots, num_slots, own_degrees, slots_of
from lagpu.dtypes import BOOL
from lagpu.host.interrupt import heard
from lagpu.operations import Descriptor, Handle, Rejection, Statement, Sweep, Until, operands_of

Array = Any
Part = PieceProgram | PieceSweep
Numbered = tuple[Numbering, list[tuple[Array | None, Array | None]]]
_WINDOW = "program of pieces"  # its place in a part's cache
_COPY = -1  # of a whole matrix, among the copies of sub-clusters
#: How far numbers are relaxed together, in units of the largest value over the mean degree.
STEP = 8.0
_LARGE = 1 << 16  # vertices of a graph that one device may search for all


def plan_program(
    pieces: Pieces, body: ops.Statements, turns: ops.Turns, why: str
) -> GridProgram | Rejection:
    """Return the generated loop of a body on all pieces, or why none; `why`: it is no search."""
    statements, own = body, tuple[Handle, ...]()
    if isinstance(turns, Sweep):
        if not isinstance(turns.levels, GridLevels):
            return Rejection("the levels of a sweep are a matrix")
        lacking = next(filter(None, (_why_not_here(pieces, s) for s in statements)), "")
        swept = match.match_sweep(statements, *turns[:2], pieces.nvals)
        if not lacking and not isinstance(swept, Rejection):
            return GridSweep(pieces, swept, turns)
        lacking = lacking or cast(Rejection, swept).why
        why, own, like = f"no sweep: {lacking}", turns[:2], turns.levels.vector
        made = as_loop(statements, turns, functools.partial(pieces.empty, like.dtype, like.shape))
        if made is None:
            return Rejection(lacking)
        statements, turns = made
    lacking = ops.once(statements, _why_no_vectors)
    relaxed = None if lacking or turns.empty is None else _relaxation(pieces, body, turns)
    if relaxed is not None:
        return relaxed
    kept = _kept(pieces, statements, turns)
    if kept is None or not kept.is_known:
        each = (_why_not_here(pieces, s) for s in statements)
        lacking = lacking or next(filter(None, each), "") or why_not_generated(statements)
    return Rejection(lacking) if lacking else GridProgram(pieces, statements, turns, why, own)


def _why_no_vectors(statements: ops.Statements) -> str:
    return next(filter(None, map(_why_no_vector, statements)), "")


def _why_no_vector(s: Statement) -> str:
    operation: Any = s.operation
    read = [operation.operand] if isinstance(operation, ops.Multiply) else operands_of(operation)
    has_matrix = any(map(_is_matrix, (*read, s.out)))
    return "the body has matrices beside those of products" if has_matrix else ""


def _is_matrix(x: Any) -> bool:
    return type(x) is not ops.ScalarValue and len(x.shape) > 1


def _why_not_here(pieces: Pieces, s: Statement) -> str:
    operation: Any = s.operation
    if isinstance(operation, ops.ExtractElement) or (
        isinstance(operation, ops.AssignScalar) and operation.indices is not None
    ):
        return "an index of a vector is on one piece alone"
    if not isinstance(operation, emit.PRODUCTS):
        return ""
    position = operation.product.semiring.multiply.positional
    if operation.product.is_output_index:
        return "each product is the index of the output, which a piece numbers by position"
    by = pieces.partition(operation.operand.size)
    if position and (num_slots(by) != by.size or not by.in_words):
        return "products are indices, which pieces number by slots"
    sizes = (operation.operand.size, s.out.size)
    if max(num_slots(pieces.partition(size)) for size in sizes) >= 2**31:
        return "the words of a vector take 2**31 slots or more"
    return ""


# ---- Relaxations: nearest vertices first, as by `delta_stepping`; fewer edges are relaxed twice.
def _relaxation(pieces: Pieces, body: ops.Statements, until: Until) -> GridProgram | None:
    """Return the program of a relaxation over ``min_plus``, or None if the body is none."""
    found: Any = match.match_relaxation(body, until.empty)
    if isinstance(found, Rejection) or found.product.semiring is not semiring.min_plus:
        return None
    A, f, d, worse, product, _ = found
    dtype, n = f.dtype, A.shape[0]
    blank = d.count == worse.count == 0
    wide = dtype is d.dtype is product.result and dtype.numpy.itemsize >= 4
    if not (f.single and blank and wide) or (until.times is not None and until.times <= n):
        return None
    least, most = _extremes(A)
    farthest = f.single[1].item() + n * most
    if not 0 <= least <= 2 * farthest < dtype.largest:
        return None
    step = max(least, STEP * float(most) * n / max(pieces.nvals(A), n))
    step = step if dtype.is_float else max(1, min(int(step), dtype.largest - farthest))
    copies = [alone(part.device, part.copy, dtype) for part in f.parts]
    waiting = pieces.handle(copies, dtype, f.shape)
    settled = pieces.empty(BOOL, f.shape)  # by the least number that waits and the least value
    limit, plus = ops.ScalarValue(dtype), Descriptor(accum=binary.plus)
    upto = ops.ScalarRef(limit, dtype, "limit", ops.ScalarValue.get)
    within, number = Descriptor(f, True), dtype.numpy.type
    statements: ops.Statements = [
        Statement(limit, Descriptor(), ops.Reduce(waiting, monoid.min), dtype),
        Statement(limit, plus, ops.Constant(number(least)), dtype),
        Statement(settled, Descriptor(), ops.Select(d, indexunary.valuele, upto), dtype),
        Statement(limit, plus, ops.Constant(number(step - least)), dtype),
        Statement(f, Descriptor(), ops.Select(waiting, indexunary.valuele, upto), dtype),
        Statement(waiting, Descriptor(f, True, True, None, True), ops.Assign(waiting), dtype),
        Statement(d, within, ops.Assign(f), dtype),
        body[2]._replace(desc=Descriptor(settled, True, True, None, True)),
        *(s for s in (body[3], body[0], body[1])),
        Statement(waiting, within, ops.Assign(f), dtype),
    ]
    if isinstance(body, ops.RecordedBody):
        handles, numbers = [A, f, d, worse, waiting, settled, limit], (least, step)
        known = body.record.found.get(_relaxation, (None, None))
        if known[0] != numbers:
            shapes = [() if x is limit else x.shape for x in handles]
            known = numbers, ops.Record(statements, handles, shapes)
            body.record.found[_relaxation] = known
        statements = ops.RecordedBody(known[1], handles)
    why = "a relaxation may take edges in any order"
    return GridProgram(pieces, statements, Until(waiting), why, (waiting, worse, settled))


def _extremes(A: GridHandle) -> tuple[Any, Any]:
    """Return the least and the largest value; NaN for both if one is not a finite number."""

    def of(part: MatrixHandle) -> tuple[Any, Any]:
        return extreme_values(part.csc())

    ends = [x for part in A.parts if part.nvals for x in alone(part.device, of, part)] or [0]
    return (math.nan, math.nan) if any(map(math.isnan, ends)) else (min(ends), max(ends))


class GridLevels:
    """The entries of an integer vector of a grid, by value; see `lagpu.operations.Levels`."""

    def __init__(self, pieces: Pieces, x: GridHandle) -> None:
        self._pieces, self.vector = pieces, x
        self.parts: list[Any] = [place.levels(x.parts[k]) for k, _, place in pieces]
        self.deepest = max(part.deepest for part in self.parts)
        self.lowest = min((part.lowest for part in self.parts if len(part.order)), default=0)

    def cut(self, d: int) -> GridHandle:
        """See `Levels`; parts are made where something reads them, which no fused sweep does."""

        def parts(x: GridHandle) -> list[Any]:
            each = zip(self.parts, self._pieces.parts_of(x), strict=True)
            return [level.cut(d) if d <= level.deepest else part for level, part in each]

        made = self._pieces.handle(parts, BOOL, self.vector.shape)
        made.count = None  # it has entries
        return made


class Kept:
    """What all programs of a record have in common, on pieces that cut its vectors alike."""

    is_known = False
    written: Sequence[int]  #: The places of `GridProgram._written`, and so on.
    vectors: Sequence[int]
    products: Sequence[tuple[int, ops.Product]]  #: The places of matrices.
    held: set[int]

    def __init__(self) -> None:
        self.records: dict[int, ops.Record] = {}  # of each local piece


def _kept(pieces: Pieces, body: ops.Statements, until: Until) -> Kept | None:
    """Return what is kept of a record; None for other statements."""
    if not isinstance(body, ops.RecordedBody):
        return None
    ends = [None if x is None else body.place_of(x) for x in until[:2]]
    if ends.count(None) > until[:2].count(None):
        return None
    layouts = (pieces.layout(place.shape) for place in body.record.places if place.shape)
    return pieces.programs.setdefault(body.record, {}).setdefault((*ends, *layouts), Kept())


class GridProgram:
    """A generated loop on the devices of all pieces together; see `FusedLoop`.

    Like a statement, it makes new parts, which the handles take once all devices have ended. The
    caller holds the locks of all places. Statements are on handles of the grid; those that the loop
    has of its `own` stay as they are.
    """

    name = PieceProgram.name
    sends_in_order = True  #: Whether a product's vector may be sent in the order of degrees.

    def __init__(
        self, pieces: Pieces, statements: ops.Statements,
        until: Until, why: str, own: Sequence[Handle] = (),
    ) -> None:  # fmt: skip
        self._pieces, self._until, self._own = pieces, until, own
        self.statements, self.why = statements, f"{why}; {pieces.engine.size} pieces"
        kept: Any = _kept(pieces, statements, until)
        self._kept: Kept | None = kept
        at: Any = [] if kept is None else cast(ops.RecordedBody, statements).handles
        if kept is not None and kept.is_known:
            self._written, self._vectors = (
                [at[k] for k in kept.written],
                [at[k] for k in kept.vectors],
            )
            self._products = [(at[k], product) for k, product in kept.products]
            self._held = kept.held
            return
        self._written, self._vectors = _vectors_of(statements, until)
        found = (s.operation for s in statements)
        self._products = [(x.matrix, x.product) for x in found if isinstance(x, ops.Multiply)]
        most = emit.Operands.most_held
        self._held = emit.sizes_to_hold(statements, until.unchanged, _size, most)
        if kept is not None:
            place = {id(x): k for k, x in enumerate(at)}
            kept.written = [place[id(x)] for x in self._written]
            kept.vectors = [place[id(x)] for x in self._vectors]
            kept.products = [(place[id(A)], product) for A, product in self._products]
            kept.held, kept.is_known = self._held, True

    @property
    def nbytes(self) -> int:
        return sum(part.bytes_to_write for x in self._written for part in x.parts)

    def run(self, logs: Sequence[LoopLog] = ()) -> None:
        """Run the loop to its end, and wait for it; `GridTimeout` if nothing was written."""
        pieces = self._pieces
        for s in self.statements if self._kept is None else ():
            for x in (*(ref.scalar for ref in s.scalars), *operands_of(s.operation), s.out):
                if type(x) is ops.ScalarValue:
                    x.get()  # another device may have it
        columns = [self._columns(A, product) for A, product in self._products]
        held = {id(x): whole(pieces, x, "loop") for x in self._vectors if x.size in self._held}
        numberings = {size: self._numbering(size) for size in {x.size for x in self._vectors}}
        shared = [numbering for numbering, _ in numberings.values()]
        programs, made = list[Part](), []
        for k, _, place in pieces:
            with place.device.lock, place.device.entered():
                parts = {id(x): held.get(id(x), x.parts)[k] for x in self._vectors}
                new = [parts[id(x)].copy(x.dtype) for x in self._written]
                made.append(new)
                parts |= {id(x): part for x, part in zip(self._written, new, strict=True)}
                sizes = {id(parts[id(x)]): x.size for x in self._vectors}
                local = self._local(k, [own[k] for own in columns], parts)
                programs.append(self._part(k, local, self._until.on(parts), shared, sizes))
        self._run(programs, [tables for _, tables in numberings.values()], list(numberings))
        self._take(made)
        alone(programs[0].device, programs[0].ran)

    def _part(self, k: int, local: ops.Statements, until: Until, *given: Any) -> Part:
        return PieceProgram(local, until, len(self._pieces.places), *given)

    def _run(self, programs: Sequence[Part], tables: Sequence[Any], sizes: Sequence[int]) -> None:
        pieces = self._pieces
        written = [alone(program.device, program.write) for program in programs]
        blocks = min(fit for fit, _, _ in written)
        _, ghosts, sums = written[0]
        peers = self._window(8 * (ghosts + sums * blocks))
        # Of a ghost some words have no owner, so what another program has left would stay there.
        layout = programs[0].kernel, [pieces.partition(x.size) for x in self._vectors]
        if not peers.ready or peers.layout != layout:
            peers.clear()
            peers.layout = layout
        launches = []
        for program, (k, p, _) in zip(programs, pieces, strict=True):
            own = {size: of[k] for size, of in zip(sizes, tables, strict=True)}
            launches.append(alone(program.device, program.start, p, peers, blocks, own, ghosts))
        with heard(*[device.stop[1] for device in pieces.devices]):
            peers.run(launches)

    def _take(self, made: Sequence[Sequence[VectorStore]]) -> None:
        """Have the handles take the parts that the kernels have written."""
        pieces, new = self._pieces, []
        for x, *parts in zip(self._written, *made, strict=True):
            if match.holds(self._own, x):
                continue
            if x.size in self._held:
                found = pieces.places[0].vector_to_coo(parts[0])
                new.append((x, pieces.vector_of(*found, x.dtype, x.size).parts))
            else:
                new.append((x, parts))
        take_all(new)

    def _local(
        self, k: int, matrices: Sequence[Handle], parts: Mapping[int, Any]
    ) -> ops.Statements:
        """Return the statements on a local piece; each product has one of its `matrices`."""
        body, kept, handles = self.statements, self._kept, list[Handle]()
        if kept is not None:
            own = (x for x in cast(ops.RecordedBody, body).handles if not _is_matrix(x))
            handles = [*(parts.get(id(x), x) for x in own), *matrices]
        if kept is None or k not in kept.records:
            each = iter(matrices)
            made = [_on_piece(ops.moved(s, parts), each) for s in body]
            if kept is None:
                return made
            shapes = [() if type(x) is ops.ScalarValue else x.shape for x in handles]
            kept.records[k] = ops.Record(made, handles, shapes)
        return ops.RecordedBody(kept.records[k], handles)

    def _columns(self, A: GridHandle, product: ops.Product) -> Sequence[Handle]:
        """Return the parts of a product's matrix whose columns lead to what the product finds."""
        pieces = self._pieces
        if not product.transpose:
            A = pieces.transpose(A)
        if self.sends_in_order and product.reads[0] and sums_every_entry(product):
            first: Any = A.parts[0]
            found = first.csc().kept("by degree", functools.partial(by_degree, pieces, A))
            if found is not None:
                return cast(Sequence[Handle], found)
        (_, slots, _), tables = self._numbering(A.shape[0])
        if tables[0][0] is None:
            return list(A.parts)
        forms: list[CscMatrix] = [alone(x.device, x.csc) for x in cast(Any, A.parts)]
        return [
            MatrixHandle(form.kept(BY_SLOTS, functools.partial(by_slots, form, slot_of, slots)))
            for form, (slot_of, _) in zip(forms, tables, strict=True)
        ]

    def _numbering(self, size: int) -> Numbered:
        """Return the numbering of a size, and on each local piece its tables, if it needs some."""
        by, kept = self._pieces.partition(size), self._pieces.numberings
        if by not in kept:
            slots, devices = slots_of(by), self._pieces.devices
            both, count = (slots.of_vertex, slots.names), by.size
            tables: list[Any] = [both] * len(devices)
            if slots.of_vertex is not None:
                tables = [[alone(d, d.from_host, x) for x in both] for d in devices]
                count = slots.words * BITS
            kept[by] = Numbering(by.size, count, slots.run), tables
        return cast(Numbered, kept[by])

    def _window(self, nbytes: int) -> Peers:
        """Return windows of so many bytes, kept with the first product's matrix."""
        pieces = self._pieces
        found: Any = self._products
        kept = found[0][0].parts[0].csc().cache if found else pieces.windows
        peers: Peers | None = kept.get(_WINDOW)
        if peers is None or peers.nbytes < nbytes * len(pieces.places):
            kept.pop(_WINDOW, None)  # which frees its memory first
            windows = pieces.engine.windows(nbytes, pieces.devices)
            peers = kept[_WINDOW] = Peers(pieces.devices, [window.own for window in windows])
        return peers


class GridSweep(GridProgram):
    """A sweep over a vector, as one kernel on each device; see `PieceSweep`."""

    name = PieceSweep.name
    sends_in_order = False

    def __init__(self, pieces: Pieces, body: match.SweepBody, turns: Sweep) -> None:
        super().__init__(pieces, body.statements, Until(), "the levels are a vector", turns[:2])
        self._body, self._levels = body, cast(GridLevels, turns.levels)
        self._vectors = [x for x in self._vectors if x not in turns[:2]]  # known by the levels

    def _local(
        self, k: int, matrices: Sequence[Handle], parts: Mapping[int, Any]
    ) -> ops.Statements:
        return super()._local(k, matrices, {**parts, **{id(x): x for x in self._own}})

    def _part(self, k: int, local: ops.Statements, until: Until, *given: Any) -> PieceSweep:
        levels, count = self._levels, len(self._pieces.places)
        body, masks = self._body.on(local), [*self._own]
        return PieceSweep(body, masks, levels.parts[k], levels.deepest, count, given[0][0])


# ---- Ghosts in the order of degrees: values that most products take are near each other, as by
# `Ranked` on one GPU. Each piece brings its own values into this order, not all of them.
def by_degree(pieces: Pieces, A: GridHandle) -> list[MatrixHandle] | None:
    """Return the parts of a matrix, rows by slots and those of most entries first; None if no use.

    A form has `ORDER` in its cache.
    """
    by, orders, near = pieces.partition(A.shape[0]), list[Array](), 0
    forms: list[CscMatrix] = [alone(x.device, x.csc) for x in cast(Any, A.parts)]
    if not all(form.nvals and has_free(form.device, 6 * form.nbytes) for form in forms):
        return None
    slots, of_slot = slots_of(by), np.empty(by.size, np.int32)
    run = BITS << slots.run
    for (_, p, place), lengths in zip(pieces, own_degrees(pieces, A, -1), strict=True):
        device = place.device
        with device.lock, device.entered():
            most = device.limits.cached // (8 * by.pieces)
            order, rank, _, entries = by_length(device, lengths, most)
            orders.append(as_type(device, order, np.int32))
            at = device.to_host(rank).astype(np.int64)
        of_slot[by.own(p)] = (at // run * by.pieces + p) * run + at % run
        near += entries
    if 4 * near < pieces.nvals(A):  # as in `workspaces.ranked`
        return None
    made = []
    for form, order in zip(forms, orders, strict=True):
        table = alone(form.device, form.device.from_host, of_slot)
        made.append(MatrixHandle(by_slots(form, table, slots.words * BITS)))
        made[-1].csc().cache[ORDER] = order
    return made


def _on_piece(s: Statement, matrices: Iterator[Handle]) -> Statement:
    """Return a statement on a piece; a product has the columns that lead to what it finds."""
    operation = s.operation
    if not isinstance(operation, ops.Multiply):
        return s
    product = operation.product._replace(transpose=True)
    return s._replace(operation=operation._replace(matrix=next(matrices), product=product))


def _vectors_of(
    statements: ops.Statements, until: Until
) -> tuple[list[GridHandle], list[GridHandle]]:
    """Return the vectors that a loop writes or watches, and all that it names."""
    watched = [x for x in until[:2] if x is not None]
    written = match.distinct([*(s.out for s in statements if not s.writes_scalar), *watched])
    read = (x for s in statements for x in (*operands_of(s.operation), s.desc.mask))
    vectors = [x for x in read if isinstance(x, GridHandle) and not _is_matrix(x)]
    return written, match.distinct([*written, *vectors])


def _size(x: Any) -> int:
    return 0 if type(x) is ops.ScalarValue or _is_matrix(x) else int(x.size)


# ---- One device alone, if it has room for a copy of the graph: each of the many levels of a deep
# graph is shorter than a barrier across devices; and where values differ the kernel for relaxations
# took half as long on one GPU as that of two pieces.
def plan_on_one(pieces: Pieces, body: ops.Statements, until: Until) -> OnOnePiece | None:
    """Return a loop as a kernel on the first piece's device, if it is faster there.

    That is any loop of one piece. Else a search of a deep graph, or a relaxation that is not of
    many edges with one value; None too where the graph is small, or a copy does not fit there.
    """
    if pieces.are_one:
        if isinstance(body, ops.RecordedBody):
            named = body.handles
        else:
            named = [x for s in body for x in (*s.operation, s.desc.mask, s.out)]
        of = {id(x): x.parts[0] for x in (*named, *until[:2]) if isinstance(x, GridHandle)}
        loop = OnOnePiece(pieces, body, until, of)
        return None if isinstance(loop.inner, Rejection) else loop
    if until.empty is None or _is_matrix(until.empty):
        return None
    found: Any = match.match_search(body, until.empty)
    if relaxes := isinstance(found, Rejection):
        found = match.match_relaxation(body, until.empty)
    A: Any = None if isinstance(found, Rejection) else found.A
    if A is None or A.shape[0] <= _LARGE or not may_gather(pieces, A):
        return None
    if sum(part.nvals for part in A.parts) > LONG_SEARCH_DEGREE * A.shape[0]:
        least, most = _extremes(A) if relaxes else (0, 0)
        if least == most and (not relaxes or found.product.semiring is semiring.min_plus):
            return None
    copy, home = A.copies.get(_COPY), pieces.places[0]
    if copy is None:
        if 3 * sum(part.csc().nbytes for part in A.parts) > home.free_bytes():
            return None
        copy = A.copies[_COPY] = on_one_device(pieces, A, home, pattern=False)
    _, vectors = _vectors_of(body, until)
    of = {id(A): copy} | {id(x): _on_first(pieces, x) for x in vectors}
    loop = OnOnePiece(pieces, body, until, of)
    return None if isinstance(loop.inner, Rejection) else loop


class OnOnePiece:
    """A loop on the first piece's device, whose results are sent to their owners."""

    def __init__(
        self, pieces: Pieces, statements: ops.Statements, until: Until, of: Mapping[int, Any]
    ) -> None:
        """`of` has by ``id`` what a handle is on the device: its only part, or a copy of it all."""
        self._pieces, self.statements, self._of = pieces, statements, of
        self._written, _ = _vectors_of(statements, until)
        body: ops.Statements
        if isinstance(statements, ops.RecordedBody):
            own = [of.get(id(x), x) for x in statements.handles]
            body = ops.RecordedBody(statements.record, own)
        else:
            body = [ops.moved(s, of) for s in statements]
        self.inner = pieces.places[0].plan_loop(body, until.on(of))
        if not isinstance(self.inner, Rejection):
            self.name, self.nbytes, self.why = self.inner.name, self.inner.nbytes, self.inner.why
            if not pieces.are_one:
                self.why += f"; on one of {pieces.engine.size} pieces, which is faster"
            if hasattr(self.inner, "count"):
                self.count = self.inner.count

    def run(self, logs: Sequence[LoopLog] = ()) -> None:
        pieces, written, inner = self._pieces, self._written, cast(Any, self.inner)
        place: Any = pieces.places[0]
        if pieces.are_one:  # facts of before do not hold
            take_all([(x, x.parts) for x in written])
        sent: dict[int, list[Handle]] = {}

        def send() -> None:
            """Let what the kernel writes follow it to its owners, without a wait between them."""
            try:
                for x in written:
                    v = self._of[id(x)]
                    if v.form == "bitmap" and v.values is not None:
                        sent[id(x)] = _sent_by_one(pieces, v, x)
            finally:  # the host waits for this device next
                place.device.enter()

        with place.lock:
            if place.enter is not None:
                place.enter()
            early = not pieces.are_one and inner.final
            inner.run(meanwhile=send) if early else inner.run()
        if not pieces.are_one:
            parts = ((x, sent.get(id(x))) for x in written)
            take_all([(x, own or _sent_by_one(pieces, self._of[id(x)], x)) for x, own in parts])


def _on_first(pieces: Pieces, x: GridHandle) -> Any:
    """Return a vector on the first piece's device; one entry stays on the host, as a source."""
    if x.count != 0 and x.single is None:
        return whole(pieces, x, "loop")[0]
    made: Any = pieces.places[0].vector(x.dtype, x.size)
    if x.single is not None:
        made.set_single(*x.single)
    return made


def _sent_by_one(pieces: Pieces, v: Any, x: GridHandle) -> list[Handle]:
    """Return a vector whose entries are on the first piece's device, as parts like those of `x`."""
    by, home = pieces.partition(x.size), pieces.places[0]
    if v.known == 0:  # as the frontier, in the end
        return pieces.empty(x.dtype, x.shape).parts
    if not by.in_words:
        return pieces.vector_of(*home.vector_to_coo(v), x.dtype, x.size).parts
    # Blocks are whole words, which are distributed as their indices are.
    words, parts = Partition(nwords(by.size), by.pieces, by.block // BITS), list[Handle]()
    for k, p, place in pieces:
        with v.device.lock, v.device.entered():
            v.to_writable()
            bits, values = words.taken(p, v.words), by.taken(p, v.values)
        with place.device.lock, place.device.entered():
            made = VectorStore(place.device, x.parts[k].counters, x.dtype, by.count(p))
            if place.device is not v.device:
                bits, values = (place.device.fetched(x, v.device) for x in (bits, values))
            made.set_bitmap(bits, values, None, None)
        parts.append(made)
    return parts
