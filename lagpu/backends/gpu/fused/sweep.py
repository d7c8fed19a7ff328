"""Sweeps over the levels of a search, the deepest first, as one kernel each."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import CheckedLaunch, Peers, posts_words
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.fused.loop import KernelLoop, Prepared, if_fits
from lagpu.backends.gpu.fused.program.pieces import Numbering, Tables, launch_of
from lagpu.backends.gpu.fused.program.run import OnEntries, on_entries
from lagpu.backends.gpu.fused.search_many import BLOCKS, why_not_per_source
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, from_source, kernel
from lagpu.backends.gpu.ops.planner import LONG_SEARCH_DEGREE
from lagpu.backends.gpu.ops.strategies import by_outputs, form_beside
from lagpu.backends.gpu.profile import LoopLog
from lagpu.backends.gpu.storage.bitmap import BitmapLevels, Ordered, VectorLevels, bytes_of, stride
from lagpu.backends.gpu.storage.forms import why_no_csr
from lagpu.backends.gpu.storage.stores import Counters, VectorStore, bounds, nwords
from lagpu.backends.gpu.storage.workspaces import NO_RANKS, Ranked, index_types, ranked
from lagpu.backends.match import SweepBody, distinct, holds, match_sweep
from lagpu.operations import Rejection, Statement, Statements, Sweep, operands_of

Array = Any


class FusedSweep(KernelLoop, emit.Writer):
    """A sweep that one kernel runs: a function of a vertex, within a frame.

    Operands are vectors; of masks only the identity counts. `blank` vectors have entries in the
    last iteration alone, as has x, the product's operand; `kept` keep theirs; `read` are only read.
    """

    at = "i, j"
    header = "sweep/levels.cuh"

    def __init__(self, body: SweepBody, masks: list[Any], levels: Any) -> None:
        self.statements, self.device = body.statements, body.multiply.operand.device
        self._body, self._levels = body, levels
        self._mask_names = {id(x): name for x, name in zip(masks, ("here", "above"), strict=True)}
        self._x, self._y = body.multiply.operand, body.product.out
        self._blank: list[VectorStore] = [*body.replaced, self._y]
        around = (*body.before, *body.after)
        self.written: list[VectorStore] = distinct(s.out for s in body.statements)
        self._kept = [w for w in self.written if not holds(self._blank, w)]
        own = [*self.written, *masks]
        read = distinct(x for s in around for x in operands_of(s.operation))
        self._read = [x for x in read if not holds(own, x)]
        self._in_order: dict[int, tuple[Array, Array]] = {}  # see `PerSourceSweep._permute`
        self.params = emit.Parameters()

    def _make_room(self) -> None:
        """Allocate, and name, all vectors written or read; the bits of blank ones are not set."""
        for x in self._blank:
            x.set_empty()
            x.to_blank()
        for x in self._kept:
            x.to_writable()
        for x in (*self.written, *self._read):
            self._add_vector(x)

    def _launch(self, kernel: Kernel, threads: int, block: int, **named: Any) -> Any:
        """Return the launch of the kernel; the vectors that it writes are about to change."""
        arguments = self.params.arguments.of(emit.Run(self.params.handles, self.device))
        for x in self.written:
            x.changes()
        return functools.partial(
            self.device.launch, kernel, threads, *arguments, block=block, **named
        )

    def _kernel(
        self, file: str, macros: dict[str, str], *, params: Sequence[str], at: str, swept: str,
        made: str, first: Sequence[str], last: Sequence[str], values: str = "",
        bounds: str = "LG_BLOCK, 1", idx: Array = None,
    ) -> Kernel:  # fmt: skip
        """Return the kernel ``sweep`` of a file that errors name, once vectors are named."""
        body, names, product = self._body, self.params, self._body.multiply.product
        A = body.multiply.matrix.csc()
        form = by_outputs(A, product)
        types = index_types(form)
        kinds = emit.column_types(types, A.dtype)
        columns = ", ".join(map(names.add, kinds, emit.columns_of(form, A.dtype, idx)))
        x, y = self._names_of([self._x, self._y])
        values = values or f"{x}_{'made' if self._in_order else 'values'}"
        record = getattr(self.statements, "record", None)
        key = (file, *macros.items(), *types.items(), at, swept, made, values, *first, *last)
        known, begin = {} if record is None else record.found, len(names.text)
        if key in known:
            kernel, text, fixed = known[key]
            names.text += text
            names.arguments.fixed += fixed
            return kernel
        names.product(product, self._x.dtype, A.dtype, "Product", **types)
        after = [self._statement(s) for s in body.after]
        before = [self._statement(s) for s in body.before]
        near = self._names_of([*self._kept, *self._read])
        # A line of words serves many vertices, so it is near already; one of bytes may not be.
        bytes_near = near if self._in_order else []
        inside, outside = "{true, true}", "{false, false}"
        text = "\n".join(
            [
                f'#include "{self.header}"',
                *names.structs,
                f'extern "C" __global__ void __launch_bounds__({bounds})',
                "sweep(" + ", ".join([*names.text, *params]) + ") {",
                f"typedef {at} At;",
                "typedef Later<Product, At> Deferred;",
                "LG_SHARED(Deferred, later, 1);",
                *first,
                f"const Swept<Product, At> s{{{{{columns}}}, {values}, {swept}}};",
                "const auto visit = [&](const Place<Product, At>& its, i64 d, "
                "Entry<Product::Z> sum) {",
                "const i32 v = its.v;",
                "const i64 at = s.at.home(v, its.rank), in_bitmap = s.at.in_bitmap(v);",
                "const i64 i = s.at.i(v), j = s.at.j(v);",
                "(void)i, (void)j, (void)in_bitmap;",
                *self._loads(),
                "if (d < deepest) {",
                f"const Entry<bool> here{outside};",
                f"const Entry<bool> above{inside};",
                "(void)here, (void)above;",
                f"{y} = {{sum.there, cast<{self._y.dtype.ctype}>(sum.value)}};",
                *after,
                "}",
                "if (d > 0) {",
                f"const Entry<bool> here{inside};",
                f"const Entry<bool> above{outside};",
                "(void)here, (void)above;",
                *before,
                "}",
                *self._stores(x, y, made),
                "};",
                "const auto fetch = [&](const Place<Product, At>& next) {",
                "const i64 at = s.at.home(next.v, next.rank);",
                *(f"if ({name}_values) prefetch(&{name}_values[at]);" for name in near),
                *(f"if ({name}_words) prefetch(&{name}_words[at]);" for name in bytes_near),
                "};",
                *last,
                "}",
            ]
        )
        kernel = from_source(text, "sweep", file=file, prelude=names.prelude.text, **macros)
        known[key] = kernel, names.text[begin:], names.arguments.fixed[begin:]
        return kernel

    def _add_vector(self, x: VectorStore) -> None:
        """Add the parameters of a vector: ``_words``, ``_values`` and ``_iso``.

        In level order presence is a byte each, in place of words. The multiplied vector has
        ``_has`` and ``_made`` there while the sweep runs, and its words in the end.
        """
        in_order, kind = self._in_order.get(id(x)), x.dtype.ctype
        bytewise = None if holds(self._blank, x) else in_order
        name = self.params.vector(x, holds(self.written, x), bytewise)
        if in_order is not None and x is self._x:
            self.params.add("bool*", in_order[0], f"{name}_has")
            self.params.add(f"{kind}*", in_order[1], f"{name}_made")

    def _loads(self) -> list[str]:
        """Return the lines that make each vector a variable; a blank one has no entry yet."""
        lines = []
        for x in (*self._kept, *self._read):
            name, kind = self.params.vector(x), x.dtype.ctype
            args = f"{name}_words, {name}_values, {name}_iso, at"
            lines.append(f"Entry<{kind}> {name} = entry_at<{kind}>({args});")
        lines += [f"const bool had_{n} = {n}.there;" for n in self._names_of(self._kept)]
        for x in self._blank:
            kind = x.dtype.ctype
            lines.append(f"Entry<{kind}> {self.params.vector(x)}{{false, {kind}(0)}};")
        return lines

    def _stores(self, x: str, y: str, made: str) -> list[str]:
        """Return the lines that put the vectors back; blank ones keep the last turn's entries."""
        kept = self._names_of(self._kept)
        lines = [f"put_back({name}_words, {name}_values, at, {name}, had_{name});" for name in kept]
        for name in self._names_of(self._blank):
            last = f"if ({name}.there && d == {int(name != y)})"
            if name == x:
                lines += [made, f"{last} set_bit({x}_words, in_bitmap);"]
            else:
                what = f"{name}_words, {name}_values, in_bitmap, {name}, false"
                lines.append(f"{last} put_back({what});")
        return lines

    def _names_of(self, vectors: list[VectorStore]) -> list[str]:
        return [self.params.vector(x) for x in vectors]

    def _statement(self, s: Statement) -> str:
        z, source = emit.expression(s, self)
        w, kind = self.params.vector(s.out), s.out.dtype
        accum = emit.accum_type(self.params, s.desc, kind, z)
        return emit.write_here(w, f"{accum}, {kind.ctype}, {z.ctype}", source, "i")

    def operand(self, x: VectorStore) -> str:
        return self._mask_names.get(id(x)) or self.params.vector(x)


def vector_sweep(statements: Statements, turns: Sweep) -> VectorSweep | Rejection:
    """Return the sweep over a vector's levels, or why the statements do not fit."""
    here, above, levels = turns
    body = _match(statements, here, above)
    return body if isinstance(body, Rejection) else VectorSweep(body, [here, above], levels)


def _match(statements: Statements, here: VectorStore, above: VectorStore) -> SweepBody | Rejection:
    """Match a body whose matrix has the form that the product needs."""
    body = match_sweep(statements, here, above)
    if isinstance(body, Rejection) or body.multiply.product.transpose:
        return body
    lacking = why_no_csr(body.multiply.matrix.csc())
    return Rejection(f"a sweep needs the matrix by rows too, and {lacking}") if lacking else body


def _mark(deepest: int) -> tuple[str, int]:
    """Return the narrowest type that holds every level, and its bytes: more fit into a cache."""
    if deepest < 1 << 8:
        return "unsigned char", 1
    return ("unsigned short", 2) if deepest < 1 << 16 else ("u32", 4)


class VectorSweep(FusedSweep):
    """A sweep over the levels of a vector, as a cooperative kernel."""

    name, why = "sweep", "the levels are a vector"

    @property
    def nbytes(self) -> int:
        return int(self._levels.size * _mark(self._levels.deepest)[1] + super().nbytes)

    def _prepare(self, log: LoopLog | None) -> Prepared:
        device, xp, levels = self.device, self.device.xp, self._levels
        self._make_room()
        block, x, ranks = device.limits.loop_block, self.params.vector(self._x), self._ranks()
        last, at, kind = f"{x}_values[at] = {x}.value", "v", self._x.dtype
        if ranks.words is not None:
            last, at = f"if (d == 1) {last}; by_rank[rank[v]] = {x}.value", "rank[v]"
            self.params.add("const i32*", ranks.rank, "rank")
            self.params.add(f"{kind.ctype}*", ranks.words.view(kind.numpy), "by_rank")
        kernel = self._kernel(
            "sweep.cu", {"BLOCK": str(block)},
            params=(
                "i64 count", "i64 deepest", "const i32* order", "const i32* level",
                "const i64* offsets", "i64 num_words", "i64 num_marks", "u32* marks",
                "u32* entries", "i64* reached", "GridBarrier* barrier",
            ),
            at=f"AtVertex<{_mark(levels.deepest)[0]}>", idx=ranks.idx,
            values="" if ranks.words is None else "by_rank",
            swept="order, offsets, entries, At{reinterpret_cast<At::Mark*>(marks)}",
            # The mark of a vertex records its entry.
            made=f"if ({x}.there) {{ {last}; s.at.marks[{at}] = At::Mark(d); }}",
            first=(
                *self._clearing(),
                "for (i64 k = thread; k <= deepest; k += threads) entries[k] = 0;",
            ),
            last=[
                "visit_levels(s, level, count, deepest, reached, later, barrier, visit, fetch);",
            ],
        )  # fmt: skip
        grid = device.max_cooperative_blocks(kernel, block)
        size = -(-levels.size * _mark(levels.deepest)[1] // 4)
        marks, entries = (xp.empty(k, np.uint32) for k in (size, levels.deepest + 1))
        launch = self._launch(
            kernel, grid * block, block, cooperative=True,
            count=len(levels.order), deepest=levels.deepest, order=levels.order,
            level=levels.level.astype(np.int32, copy=False), offsets=levels.offsets,
            num_words=nwords(levels.size), num_marks=size, marks=marks, entries=entries,
            reached=xp.empty(1, np.int64), barrier=xp.zeros(GRID_BARRIER, np.uint32),
        )  # fmt: skip
        return launch, lambda: None

    def _ranks(self) -> Ranked:
        """Return the order of degrees for marks and values, where hubs then share lines of L1."""
        product, A = self._body.multiply.product, self._body.multiply.matrix.csc()
        even = A.nvals <= LONG_SEARCH_DEGREE * A.shape[0]
        if even or product.semiring.is_positional:
            return NO_RANKS
        form = by_outputs(A, product)
        return ranked(form, form_beside(A, form), self._x.dtype.numpy.itemsize)

    def _clearing(self) -> list[str]:
        """Return the lines that empty the marks, and the words of blank vectors."""
        return [
            "const i64 thread = global_thread(), threads = global_threads();",
            "for (i64 k = thread; k < num_marks; k += threads) marks[k] = 0;",
            "for (i64 k = thread; k < num_words; k += threads) {",
            *(f"{name}_words[k] = 0;" for name in self._names_of(self._blank)),
            "}",
        ]


class PieceSweep(VectorSweep):
    """The part of a sweep that one of several devices runs; see sweep/pieces.cuh.

    `levels` are those of the own vertices; `deepest` is the deepest level of all.
    """

    name, header = "sweep of pieces", "sweep/pieces.cuh"

    def __init__(
        self, body: SweepBody, masks: list[Any], levels: VectorLevels,
        deepest: int, pieces: int, numbering: Numbering,
    ) -> None:  # fmt: skip
        super().__init__(body, masks, levels)
        self._deepest, self._pieces, self._numbering = deepest, pieces, numbering

    def write(self) -> tuple[int, int, int]:
        """See `PieceProgram`: no block has sums."""
        self._make_room()
        x, kind = self.params.vector(self._x), self._x.dtype
        block, slots = self.device.limits.loop_block, self._numbering.slots
        mark, width = _mark(self._deepest)
        marks_at = posts_words(self._pieces)
        values_at = marks_at + -(-slots * width // 16) * 2
        sent = f"slots.slot_of(v), d, {x}.value, marks_at, values_at"
        self.kernel = self._kernel(
            "sweep.cu", {"BLOCK": str(block), "PEERS": str(self._pieces)},
            params=(
                "i64 deepest", "const i32* order", "const i64* offsets", "i64 num_words",
                "i64 num_marks", "i64 marks_at", "i64 values_at", "u32 run",
                "const i32* slots_of", "const i32* names_of", "u32 piece", "u32 epoch",
                "u64 patience", "const u64* windows", "const u64* stop", "u64* result",
            ),
            at=f"AtPiece<{mark}>",
            values=f"all.in_own<const {kind.ctype}>(values_at)",
            swept="order, offsets, nullptr, At{{all.in_own<At::Mark>(marks_at)}, slots}",
            made=f"if ({x}.there) {{ send_made<At::Mark>(&all, {sent}); "
            f"if (d == 1) {x}_values[at] = {x}.value; }}",
            first=(
                "Together all{{piece, epoch, patience, windows}, nullptr, false};",
                "const Slots slots{piece, run, slots_of, names_of};",
                "u32* const marks = all.in_own<u32>(marks_at);",
                *self._clearing(),
            ),
            last=(
                "(void)fetch;",
                "const u32 turn = visit_levels(s, deepest, later, &all, stop, visit);",
                "report(all, turn, result);",
            ),
        )  # fmt: skip
        self._where = {"marks_at": marks_at, "values_at": values_at}
        end = values_at + -(-slots * kind.numpy.itemsize // 16) * 2
        return self.device.max_cooperative_blocks(self.kernel, block), end, 0

    def start(
        self, piece: int, peers: Peers, blocks: int, tables: Tables, sums: int
    ) -> tuple[CheckedLaunch, dict[str, Any]]:
        device, levels, params = self.device, self._levels, self.params
        given = params.arguments.of(emit.Run(params.handles, device))
        names = [declared.split()[-1] for declared in params.text]
        slots_of, names_of = tables[self._numbering.size]
        width = _mark(self._deepest)[1]
        for x in self.written:
            x.changes()
        launch = launch_of(device, self.kernel, blocks, device.limits.loop_block)
        return launch, dict(zip(names, given, strict=True)) | self._where | peers.fixed(
            piece
        ) | peers.turn() | {
            "deepest": self._deepest, "order": levels.order,
            "offsets": bounds(device, levels.level, range(self._deepest + 2)),
            "num_words": nwords(levels.size), "num_marks": -(-self._numbering.slots * width // 4),
            "run": self._numbering.run, "slots_of": slots_of, "names_of": names_of,
            "stop": device.stop[0], "result": peers.results[piece],
        }  # fmt: skip

    def ran(self) -> None:
        """See `PieceProgram`: it has no scalars."""


def per_source_sweep(
    counters: Counters, statements: Statements, turns: Sweep
) -> KernelLoop | Rejection:
    """Return the sweep over a matrix' levels, or why the statements do not fit."""
    here, above, levels = turns
    assert isinstance(levels, BitmapLevels)
    found = on_entries(counters, statements, (here, above), here.shape)
    if isinstance(found, Rejection):
        return found
    masks = [found.bitmaps[id(A)].entries for A in (here, above)]
    body = _match(found.statements, *masks)
    if isinstance(body, Rejection):
        return body
    why = why_not_per_source(body.multiply.matrix.csc(), here.shape[0])
    if why:
        return Rejection(f"no per-source sweep: {why}")
    return if_fits(PerSourceSweep(body, found, masks, levels))


class PerSourceSweep(FusedSweep):
    """A sweep over the levels of a matrix: one thread block sweeps each row alone.

    A bitmap matrix is stored vertex by vertex, so most of a cache line that one row loads belongs
    to other rows, at other levels. So entries are permuted into level order, in which a level's
    entries lie side by side, and those that are kept are permuted back; see sweep/permute.cu. The
    operand of the product has entries only while the sweep runs, and is not permuted.
    """

    name, why = "per-source sweep", "the levels are a matrix, of a sparse graph without hubs"

    def __init__(
        self, body: SweepBody, found: OnEntries, masks: list[VectorStore], levels: BitmapLevels
    ) -> None:
        super().__init__(body, masks, levels)
        self._store = found.store
        self._k, self._n = levels.shape
        self._of_one_value = [v for v in self._read if v.values is None]

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: the level order, the permuted entries, and new bitmap matrices."""
        permuted = [*self._kept, *self._read, self._x]
        values = sum(v.dtype.numpy.itemsize for v in permuted if not holds(self._of_one_value, v))
        made = [*self.written, *(x for x in self._read if x.form == "sparse")]
        lacking = [x for x in made if x.form != "bitmap" or x.values is None]
        needed = self._levels.order_bytes() + self._k * self._n * (len(permuted) + values)
        return int(needed + sum(bytes_of(x.dtype, self._levels.shape) or 0 for x in lacking))

    def _prepare(self, log: LoopLog | None) -> Prepared:
        ordered = self._levels.ordered()
        self._permute(ordered)
        self._make_room()
        for v in self._blank:  # rows share words, and there is no barrier between them
            v.words.fill(0)
        block, x = self.device.limits.row_block, self.params.vector(self._x)
        at = f"At{{ranks, starts, {x}_has, row * vertices, stride, i32(row)}}"
        kernel = self._kernel(
            "rowsweep.cu", {"BLOCK": str(block), "BLOCKS": str(BLOCKS)},
            params=(
                "i64 rows", "i64 vertices", "i64 stride", "i64 deepest", "const i32* order",
                "const i32* offsets", "const i32* last", "const i32* ranks",
            ),
            bounds="LG_BLOCK, LG_BLOCKS",
            at="InLevelOrder",
            swept=f"order + row * vertices, starts, nullptr, {at}",
            # An entry is stored in level order; that of the last iteration in the bitmap too.
            made=f"{x}_has[at] = {x}.there; if ({x}.there) {x}_made[at] = {x}.value; "
            f"if ({x}.there && d == 1) {x}_values[in_bitmap] = {x}.value;",
            first=(
                "for (i64 row = block_index(); row < rows; row += grid_blocks()) {",
                "const i32* const starts = offsets + row * (deepest + 2);",
            ),
            last=("visit_row(s, last[row], later, visit, fetch);", "}"),
        )  # fmt: skip
        for v in self._kept:  # compiled now: nothing may fail after the sweep
            self.device.load(_permutation("from", v))
        launch = self._launch(
            kernel, self._k * block, block, rows=self._k, vertices=self._n, stride=stride(self._k),
            deepest=self._levels.deepest, **ordered._asdict(),
        )  # fmt: skip
        return launch, lambda: self._settle(ordered.ranks)

    def _permute(self, ordered: Ordered) -> None:
        """Make the permuted presence and values, before anything else is allocated."""
        xp, k, n = self.device.xp, self._k, self._n
        for v in (*self._kept, *self._read, self._x):
            values = None if holds(self._of_one_value, v) else xp.empty(k * n, v.dtype.numpy)
            self._in_order[id(v)] = xp.empty(k * n, np.bool_), values
        for v in (*self._kept, *self._read):
            has, own = self._in_order[id(v)]
            self.device.launch(
                _permutation("to", v), n, n=n, k=k, stride=stride(k), deepest=self._levels.deepest,
                order=ordered.order, offsets=ordered.offsets, **v.arguments(), has=has, own=own,
            )  # fmt: skip

    def _settle(self, ranks: Array) -> None:
        n, per = self._n, stride(self._k) // 32
        for v in self._kept:
            has, own = self._in_order[id(v)]
            self.device.launch(
                _permutation("from", v), n * per * 8, n=n, k=self._k, per=per, ranks=ranks,
                has=has, own=own, words=v.words, values=v.values,
            )  # fmt: skip
        self._store()


def _permutation(way: str, v: VectorStore) -> Kernel:
    return kernel("sweep/permute.cu", f"{way}_level_order", U=v.dtype.ctype)
