"""Sweeps over the levels of a search, the deepest first, as one kernel each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.fused.loop import KernelLoop, Prepared, if_fits
from lagpu.backends.gpu.fused.match import SweepBody, match_sweep
from lagpu.backends.gpu.fused.program.run import OnEntries, on_entries
from lagpu.backends.gpu.fused.search_many import BLOCKS, why_not_per_source
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, from_source, kernel
from lagpu.backends.gpu.ops.strategies import by_outputs
from lagpu.backends.gpu.profile import LoopLog
from lagpu.backends.gpu.storage.bitmap import (
    BitmapLevels,
    BitmapMatrix,
    MatrixHandle,
    Ordered,
    bytes_of,
    stride,
)
from lagpu.backends.gpu.storage.matrix import Counters
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import index_types
from lagpu.operations import Rejection, Statement, Sweep, operands_of

Array = Any


class Permuted(NamedTuple):
    """The entries of a matrix in level order."""

    has: Array  #: array of BOOL, (k * n,): presence.
    values: Array  #: array, (k * n,), or None: none if all are the vector's `iso`.


class LevelOrder:
    """Permutes the matrices of a sweep, (k, n), into level order, and those it writes back.

    A bitmap matrix is stored vertex by vertex, so most of a cache line that one row loads belongs
    to other rows, at other levels. In level order a level's entries lie side by side; see
    sweep/permute.cu. `kept` are permuted there and back, `read` only there; `x`, the operand of the
    product, has entries only while the sweep runs, and is not permuted.
    """

    def __init__(
        self,
        device: Device,
        shape: tuple[int, int],
        kept: list[VectorStore],
        read: list[VectorStore],
        x: VectorStore,
    ) -> None:
        self._device, self._shape = device, shape
        self._kept, self._read, self._x = kept, read, x
        self._permuted: dict[int, Permuted] = {}
        self._ranks: Array = None

    @property
    def nbytes(self) -> int:
        """Bytes that `permute` allocates."""
        k, n = self._shape
        stored = [*self._kept, self._x, *(v for v in self._read if v.values is not None)]
        of_all = len(self._kept) + len(self._read) + 1 + sum(v.dtype.numpy.itemsize for v in stored)
        return k * n * of_all

    def permute(self, ordered: Ordered) -> None:
        """Make the permuted arrays, before anything else is allocated."""
        xp, (k, n) = self._device.xp, self._shape
        self._ranks = ordered.ranks
        deepest = ordered.offsets.size // k - 2
        for v in (*self._kept, *self._read, self._x):
            of_one_value = v.values is None and any(v is u for u in self._read)
            values = None if of_one_value else xp.empty(k * n, v.dtype.numpy)
            self._permuted[id(v)] = Permuted(xp.empty(k * n, np.bool_), values)
        for v in (*self._kept, *self._read):
            run = kernel("sweep/permute.cu", "to_level_order", U=v.dtype.ctype)
            self._device.launch(
                run, n, n=n, k=k, stride=stride(k), deepest=deepest, order=ordered.order,
                offsets=ordered.offsets, **v.arguments(), has=self.of(v).has, own=self.of(v).values,
            )  # fmt: skip

    def load(self) -> None:
        """Compile what `restore` launches: behind the sweep nothing may fail."""
        for v in self._kept:
            self._device.load(kernel("sweep/permute.cu", "from_level_order", U=v.dtype.ctype))

    def restore(self) -> None:
        """Write the entries of kept matrices back to their bitmaps, which must be allocated."""
        k, n = self._shape
        per = stride(k) // 32
        for v in self._kept:
            run = kernel("sweep/permute.cu", "from_level_order", U=v.dtype.ctype)
            self._device.launch(
                run, n * per * 8, n=n, k=k, per=per, ranks=self._ranks, has=self.of(v).has,
                own=self.of(v).values, words=v.words, values=v.values,
            )  # fmt: skip

    def of(self, v: VectorStore) -> Permuted:
        """Return the permuted entries of a matrix, once `permute` has run."""
        return self._permuted[id(v)]


class Frame(NamedTuple):
    """The frame of a sweep's kernel, around the function of a vertex."""

    params: tuple[str, ...]  #: Parameters after those of the body.
    bounds: str  #: Arguments of ``__launch_bounds__``.
    at: str  #: The type of sweep/vertex.cuh that locates entries.
    swept: str  #: The fields of ``Swept`` after the columns and the operand's values.
    #: The statement that stores an entry of the multiplied vector, ``{x}`` at vertex ``v``.
    made: str
    #: The first lines of the kernel, and those that call ``visit`` and ``fetch``.
    before: tuple[str, ...]
    after: tuple[str, ...]


class SweepText:
    """The function of a vertex, and its parameters; masks and operands are vectors.

    Attributes
    ----------
    blank, kept : list of VectorStore
        Vectors that have entries in the last iteration alone, and those that keep their entries.
    written, read : list of VectorStore
        Blank and kept vectors, and those that are only read.
    x : VectorStore
        The operand of the product; it is blank.
    """

    def __init__(self, body: SweepBody, here: VectorStore, above: VectorStore) -> None:
        self._body, self._here, self._above = body, here, above
        self.blank: list[VectorStore] = [*body.replaced, body.product.out]
        statements = (*body.before, body.product, *body.after)
        self.written = list({id(s.out): s.out for s in statements}.values())
        self.x: VectorStore = body.multiply.operand
        self.kept = [w for w in self.written if not any(w is x for x in self.blank)]
        around = (*body.before, *body.after)
        read = {id(x): x for s in around for x in operands_of(s.operation)}
        own = [*self.written, here, above]
        self.read = [x for x in read.values() if not any(x is y for y in own)]
        self._names: dict[int, str] = {}
        self.params = emit.Parameters()

    def make_room(self) -> None:
        """Allocate bits and values of all vectors written; the bits of blank ones are not set."""
        for x in self.blank:
            x.set_empty()
            x.to_blank()
        for x in self.kept:
            x.to_writable()

    def arguments(self) -> list[Any]:
        """Return the arguments of the kernel that `write` has written."""
        return self.params.arguments.of(emit.Run(self.params.handles, self.x.device))

    def changed(self) -> None:
        """Forget the counts and statistics of the vectors that the kernel writes."""
        for x in self.written:
            x.changes()

    def kernel(
        self,
        file: str,
        framed: Callable[[SweepText], Frame],
        level_order: LevelOrder | None = None,
        **macros: str,
    ) -> Kernel:
        """Return the kernel ``sweep``; `framed` is called once vectors have names.

        Kept and read vectors are in level order if `level_order` is given.
        """
        text = self._write(framed, level_order)
        return from_source(text, "sweep", file=file, prelude=self.params.prelude.text, **macros)

    def _write(self, framed: Callable[[SweepText], Frame], level_order: LevelOrder | None) -> str:
        body = self._body
        for v in (*self.written, *self.read):
            self._vector(v, level_order)
        frame = framed(self)
        columns, types = self._columns(), index_types(by_outputs(*self._matrix()))
        A, product = self._matrix()
        self.params.product(product, self.x.dtype, A.dtype, "Product", **types)
        x, y = (self._names[id(v)] for v in (self.x, body.product.out))
        values = f"{x}_values" if level_order is None else f"{x}_made"
        kind = body.product.out.dtype.ctype
        after = [line for s in body.after for line in self._statement(s)]
        before = [line for s in body.before for line in self._statement(s)]
        near = self.names_of([*self.kept, *self.read])
        # A line of words serves many vertices, so it is near already; one of bytes may not be.
        bytes_near = near if level_order is not None else []
        return "\n".join(
            [
                '#include "sweep/levels.cuh"',
                *self.params.structs,
                f'extern "C" __global__ void __launch_bounds__({frame.bounds})',
                "sweep(" + ", ".join([*self.params.text, *frame.params]) + ") {",
                f"typedef {frame.at} At;",
                "typedef Later<Product, At> Deferred;",
                "LG_SHARED(Deferred, later, 1);",
                *frame.before,
                f"const Swept<Product, At> s{{{columns}, {values}, {frame.swept}}};",
                "const auto visit = [&](const Place<Product, At>& its, i64 d, "
                "Entry<Product::Z> sum) {",
                "const i32 v = its.v;",
                "const i64 at = s.at.home(v, its.rank), in_bitmap = s.at.in_bitmap(v);",
                "const i64 i = s.at.i(v), j = s.at.j(v);",
                "(void)i, (void)j, (void)in_bitmap;",
                *self._loads(),
                "if (d < deepest) {",
                *self._masks(here=False),
                f"{y} = {{sum.there, cast<{kind}>(sum.value)}};",
                *after,
                "}",
                "if (d > 0) {",
                *self._masks(here=True),
                *before,
                "}",
                *self._stores(x, y, frame.made),
                "};",
                "const auto fetch = [&](const Place<Product, At>& next) {",
                "const i64 at = s.at.home(next.v, next.rank);",
                *(f"if ({name}_values) prefetch(&{name}_values[at]);" for name in near),
                *(f"if ({name}_words) prefetch(&{name}_words[at]);" for name in bytes_near),
                "};",
                *frame.after,
                "}",
            ]
        )

    def _vector(self, x: VectorStore, level_order: LevelOrder | None) -> None:
        """Add the parameters of a vector: ``_words``, ``_values`` and ``_iso``.

        In level order presence is a byte each, in place of words. The multiplied vector has
        ``_has`` and ``_made`` there while the sweep runs, and its words in the end.
        """
        const = "" if any(x is w for w in self.written) else "const "
        kind, presence = x.dtype.ctype, "u32"
        words, values, number = x.readable()
        if level_order is not None and not any(x is b for b in self.blank):
            (words, values), presence = level_order.of(x), "bool"
        parts = [
            ("words", f"{const}{presence}*", words),
            ("values", f"{const}{kind}*", values),
            ("iso", kind, number),
        ]
        if level_order is not None and x is self.x:
            has, made = level_order.of(x)
            parts += [("has", "bool*", has), ("made", f"{kind}*", made)]
        name = self._names[id(x)] = f"v{len(self._names)}"
        for what, ctype, argument in parts:
            self.params.add(ctype, argument, f"{name}_{what}")

    def _matrix(self) -> tuple[Any, Any]:
        """Return the matrix by columns and the algebra of the product."""
        return self._body.multiply.matrix.csc(), self._body.multiply.product

    def _columns(self) -> str:
        """Add the parameters of the matrix; return the initialiser of its ``Columns``."""
        A, product = self._matrix()
        form = by_outputs(A, product)
        kinds = emit.column_types(index_types(form), A.dtype)
        return "{" + ", ".join(map(self.params.add, kinds, emit.columns_of(form, A.dtype))) + "}"

    # ------------------------------------------------------------------------ at one vertex
    def _loads(self) -> list[str]:
        """Return the lines that make each vector a variable; a blank one has no entry yet."""
        lines = []
        for x in (*self.kept, *self.read):
            name, kind = self._names[id(x)], x.dtype.ctype
            args = f"{name}_words, {name}_values, {name}_iso, at"
            lines.append(f"Entry<{kind}> {name} = entry_at<{kind}>({args});")
        lines += [f"const bool had_{n} = {n}.there;" for n in self.names_of(self.kept)]
        for x in self.blank:
            kind = x.dtype.ctype
            lines.append(f"Entry<{kind}> {self._names[id(x)]}{{false, {kind}(0)}};")
        return lines

    def _masks(self, here: bool) -> list[str]:
        """Return the lines that make the masks variables."""
        inside, outside = "{true, true}", "{false, false}"
        return [
            f"const Entry<bool> here{inside if here else outside};",
            f"const Entry<bool> above{outside if here else inside};",
            "(void)here, (void)above;",
        ]

    def _stores(self, x: str, y: str, made: str) -> list[str]:
        """Return the lines that put the vectors back; blank ones keep the last turn's entries."""
        lines = []
        for name in self.names_of(self.kept):
            lines.append(f"put_back({name}_words, {name}_values, at, {name}, had_{name});")
        for name in self.names_of(self.blank):
            last = f"if ({name}.there && d == {int(name != y)})"
            if name == x:
                lines += [made.format(x=x), f"{last} set_bit({x}_words, in_bitmap);"]
            else:
                what = f"{name}_words, {name}_values, in_bitmap, {name}, false"
                lines.append(f"{last} put_back({what});")
        return lines

    def names_of(self, vectors: list[VectorStore]) -> list[str]:
        """Return the names of vectors in the text."""
        return [self._names[id(x)] for x in vectors]

    def _statement(self, s: Statement) -> list[str]:
        """Return the lines of an element-wise statement."""
        z, source = emit.expression(s, self)
        w, kind = self._names[id(s.out)], s.out.dtype
        accum = emit.accum_type(self.params, s.desc, kind, z)
        return [emit.write_here(w, f"{accum}, {kind.ctype}, {z.ctype}", source, "i")]

    def operand(self, x: VectorStore) -> str:
        """See `Writer`: the variable that is the vector's entry at the vertex."""
        if x is self._here or x is self._above:
            return "here" if x is self._here else "above"
        return self._names[id(x)]

    def number(self, ctype: str, value: Any) -> str:
        """See `Writer`."""
        return self.params.add(ctype, value)

    def counter(self, ctype: str) -> str:
        """See `Writer`."""
        raise AssertionError(f"a sweep has no counter of type {ctype}")

    def constant(self, ctype: str, value: str) -> str:
        """See `Writer`."""
        return f"Entry<{ctype}>{{true, {value}}}"

    def call(self, name: str, types: str, args: str) -> str:
        """See `Writer`: a function of the entries at the vertex."""
        return f"{name}<{types}>({args}, i, j)"


# A sweep over a vector is a cooperative kernel; in a sweep over a matrix one thread block sweeps
# each row alone. See sweep/levels.cuh.


def vector_sweep(statements: Sequence[Statement], turns: Sweep) -> VectorSweep | Rejection:
    """Return the sweep over a vector's levels, or why the statements do not fit."""
    here, above, _ = turns
    assert isinstance(here, VectorStore)
    assert isinstance(above, VectorStore)
    body = match_sweep(statements, here, above)
    if isinstance(body, Rejection):
        return body
    return VectorSweep(statements, SweepText(body, here, above), turns.levels)


_VECTOR_PARAMS = (
    "i64 count", "i64 deepest", "const i32* order", "const i32* level", "const i64* offsets",
    "i64 num_words", "i64 num_marks", "u32* marks", "u32* entries", "i64* reached",
    "GridBarrier* barrier",
)  # fmt: skip
# The mark of a vertex records its entry.
_VECTOR_MADE = "if ({x}.there) {{ {x}_values[at] = {x}.value; s.at.marks[v] = At::Mark(d); }}"


def _mark(deepest: int) -> tuple[str, int]:
    """Return the narrowest type that holds every level, and its bytes: more fit into a cache."""
    if deepest < 1 << 8:
        return "unsigned char", 1
    return ("unsigned short", 2) if deepest < 1 << 16 else ("u32", 4)


class VectorSweep(KernelLoop):
    """A kernel, its arguments, and the vectors it writes; see `FusedLoop`."""

    name, why = "sweep", "the levels are a vector"

    def __init__(self, statements: Sequence[Statement], text: SweepText, levels: Any) -> None:
        self.statements = statements
        self._text, self._levels, self.device = text, levels, text.x.device

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: a mark a vertex, and the vectors written."""
        marks: int = self._levels.size * _mark(self._levels.deepest)[1]
        return marks + sum(int(x.bytes_to_write) for x in self._text.written)

    def _outputs(self) -> list[VectorStore]:
        return self._text.written

    def _prepare(self, log: LoopLog | None) -> Prepared:
        device, xp, levels = self.device, self.device.xp, self._levels
        self._text.make_room()
        block = device.limits.loop_block
        kernel = self._text.kernel("sweep.cu", self._frame, BLOCK=str(block))
        grid = device.max_cooperative_blocks(kernel, block)
        size = -(-levels.size * _mark(levels.deepest)[1] // 4)
        marks, entries = (xp.empty(k, np.uint32) for k in (size, levels.deepest + 1))
        launch = functools.partial(
            device.launch, kernel, grid * block, *self._text.arguments(),
            block=block, cooperative=True,
            count=len(levels.order), deepest=levels.deepest, order=levels.order,
            level=levels.level.astype(np.int32, copy=False), offsets=levels.offsets,
            num_words=nwords(levels.size), num_marks=size, marks=marks, entries=entries,
            reached=xp.empty(1, np.int64), barrier=xp.zeros(GRID_BARRIER, np.uint32),
        )  # fmt: skip
        self._text.changed()
        return launch, lambda: None

    def _frame(self, text: SweepText) -> Frame:
        return Frame(
            params=_VECTOR_PARAMS,
            bounds="LG_BLOCK, 1",
            at=f"AtVertex<{_mark(self._levels.deepest)[0]}>",
            swept="order, offsets, entries, At{reinterpret_cast<At::Mark*>(marks)}",
            made=_VECTOR_MADE,
            before=(
                "const i64 thread = global_thread(), threads = global_threads();",
                "for (i64 k = thread; k < num_marks; k += threads) marks[k] = 0;",
                "for (i64 k = thread; k <= deepest; k += threads) entries[k] = 0;",
                "for (i64 k = thread; k < num_words; k += threads) {",
                *(f"{name}_words[k] = 0;" for name in text.names_of(text.blank)),
                "}",
            ),
            after=(
                "visit_levels(s, level, count, deepest, reached, later, barrier, visit, fetch);",
            ),
        )


# ------------------------------------------------------------------------ over a matrix, by rows
_ROW_PARAMS = (
    "i64 rows", "i64 vertices", "i64 stride", "i64 deepest", "const i32* order",
    "const i32* offsets", "const i32* last", "const i32* ranks",
)  # fmt: skip
# An entry is stored in level order; that of the last iteration in the bitmap matrix too.
_ROW_MADE = (
    "{x}_has[at] = {x}.there; if ({x}.there) {x}_made[at] = {x}.value; "
    "if ({x}.there && d == 1) {x}_values[in_bitmap] = {x}.value;"
)


def per_source_sweep(
    counters: Counters, statements: Sequence[Statement], turns: Sweep
) -> KernelLoop | Rejection:
    """Return the sweep over a matrix' levels, or why the statements do not fit."""
    here, above, levels = turns
    assert isinstance(here, MatrixHandle)
    assert isinstance(above, MatrixHandle)
    assert isinstance(levels, BitmapLevels)
    found = on_entries(counters, statements, (here, above), here.shape)
    if isinstance(found, Rejection):
        return found
    masks = [found.bitmaps[id(A)] for A in (here, above)]
    body = match_sweep(found.statements, masks[0].entries, masks[1].entries)
    if isinstance(body, Rejection):
        return body
    A = body.multiply.matrix.csc()
    why = why_not_per_source(A, here.shape[0])
    if why:
        return Rejection(f"no per-source sweep: {why}")
    return if_fits(PerSourceSweep(body, found, masks, levels))


class PerSourceSweep(KernelLoop):
    """A kernel, its arguments, and the bitmap matrices it writes; see `FusedLoop`."""

    name, why = "per-source sweep", "the levels are a matrix, of a sparse graph without hubs"

    def __init__(
        self, body: SweepBody, found: OnEntries, masks: list[BitmapMatrix], levels: BitmapLevels
    ) -> None:
        self.statements = found.statements
        self._text = text = SweepText(body, masks[0].entries, masks[1].entries)
        self._found, self._levels, self.device = found, levels, masks[0].device
        self._order = LevelOrder(self.device, levels.shape, text.kept, text.read, text.x)

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: the level order, the permuted entries, and new bitmap matrices."""
        text = self._text
        made = [*text.written, *(x for x in text.read if x.form == "sparse")]
        lacking = [x for x in made if x.form != "bitmap" or x.values is None]
        needed = self._levels.order_bytes() + self._order.nbytes
        return needed + sum(bytes_of(x.dtype, self._levels.shape) or 0 for x in lacking)

    def _outputs(self) -> list[VectorStore]:
        return self._text.written

    def _prepare(self, log: LoopLog | None) -> Prepared:
        device, (k, n) = self.device, self._levels.shape
        ordered = self._levels.ordered()
        self._order.permute(ordered)
        self._text.make_room()
        for x in self._text.blank:  # rows share words, and there is no barrier between them
            x.words.fill(0)
        block = device.limits.row_block
        macros = {"BLOCK": str(block), "BLOCKS": str(BLOCKS)}
        kernel = self._text.kernel("rowsweep.cu", _row_frame, self._order, **macros)
        self._order.load()
        self._text.changed()
        launch = functools.partial(
            device.launch, kernel, k * block, *self._text.arguments(), block=block,
            rows=k, vertices=n, stride=stride(k), deepest=self._levels.deepest,
            **ordered._asdict(),
        )  # fmt: skip
        return launch, self._settle

    def _settle(self) -> None:
        """Take over what the kernel has written."""
        self._order.restore()
        self._found.store()


def _row_frame(text: SweepText) -> Frame:
    """Return the frame of a kernel that sweeps each row of a matrix."""
    has = text.names_of([text.x])[0] + "_has"
    at = f"At{{ranks, starts, {has}, row * vertices, stride, i32(row)}}"
    return Frame(
        params=_ROW_PARAMS,
        bounds="LG_BLOCK, LG_BLOCKS",
        at="InLevelOrder",
        swept=f"order + row * vertices, starts, nullptr, {at}",
        made=_ROW_MADE,
        before=(
            "for (i64 row = block_index(); row < rows; row += grid_blocks()) {",
            "const i32* const starts = offsets + row * (deepest + 2);",
        ),
        after=("visit_row(s, last[row], later, visit, fetch);", "}"),
    )
