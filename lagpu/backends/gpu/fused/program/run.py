"""The generated loop: one cooperative kernel for the body of any loop over vectors or matrices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

import lagpu.operations as ops
from lagpu.algebra.operators import IndexUnaryOp
from lagpu.algebra.tables import indexunary
from lagpu.backends.gpu.device.protocol import Device, has_free
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.fused.loop import KernelLoop, Prepared, if_fits
from lagpu.backends.gpu.fused.program.text import Program, signature, without_numbers, write_program
from lagpu.backends.gpu.kernels import GRID_BARRIER, constant
from lagpu.backends.gpu.ops import spmv
from lagpu.backends.gpu.ops.planner import BITS_PUSH_COST, PULL_FIRST, PULL_SUMS
from lagpu.backends.gpu.ops.strategies import by_inputs, by_outputs
from lagpu.backends.gpu.profile import LoopLog, ProgramRows
from lagpu.backends.gpu.storage import forms, stores
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, MatrixHandle, stride, words_of
from lagpu.backends.gpu.storage.forms import is_symmetric
from lagpu.backends.gpu.storage.stores import Counters, CscMatrix, VectorStore, bytes_of, nwords
from lagpu.backends.gpu.storage.workspaces import chunks_of, index_types
from lagpu.backends.match import distinct, holds, method
from lagpu.dtypes import BOOL
from lagpu.operations import Handle, RecordedBody, Rejection, Statement, Until, once, operands_of

NO_LIMIT = 2**64 - 1
_FLAGS = 2  # words beside the counters, where all threads see that the loop is stopped
#: Of a matrix with masked products in batches, or within its pattern: of more, the kernels that the
#: planner chooses save more than launches take.
MOST_ENTRIES = 1 << 20
MOST_PROGRAMS = 256  # that are kept by signatures; then they are written again

_programs: dict[tuple[Any, ...], list[Program]] = {}


def kept_programs(*key: Any) -> list[Program]:
    if len(_programs) >= MOST_PROGRAMS:
        _programs.clear()
    return _programs.setdefault(key, [])


def counters_of(device: Device, counters: int) -> Any:
    """Return room for so many counters an iteration, and for the flags beside them."""
    count = constant("kTurns") * counters * constant("kCounterStride") + _FLAGS
    return device.xp.empty(count, np.uint64)


def generated_loop(statements: ops.Statements, until: Until, why: str) -> GeneratedLoop | Rejection:
    """Return the kernel of a loop over vectors, or why it has none; `why`: no other kernel fits."""
    lacking = once(statements, why_not_generated)
    return Rejection(lacking) if lacking else GeneratedLoop(statements, until, why)


def generated_sweep(
    statements: ops.Statements, turns: ops.Sweep, why: str
) -> GeneratedLoop | Rejection:
    """Return a loop whose body ends with the masks of the next level; `why`: it is no sweep."""
    levels: Any = turns.levels
    for k, mask in enumerate(turns[:2]):  # which may be empty: see `VectorLevels.mask`
        mask.restore(levels.cut(levels.deepest - k).state())
    like = levels.vector
    empty = functools.partial(VectorStore, like.device, like.counters, like.dtype, like.size)
    made = as_loop(statements, turns, empty)
    return Rejection(why) if made is None else generated_loop(*made, f"no sweep: {why}")


def as_loop(
    statements: ops.Statements, turns: ops.Sweep, empty: Callable[[], Handle]
) -> tuple[list[Statement], Until] | None:
    """Return a sweep as a loop whose body makes the next masks; None if it writes one or levels."""
    given: Any = turns.levels
    levels, deepest, body = given.vector, given.deepest, list(statements)
    if any(s.out is x for s in body for x in (levels, *turns[:2])):
        return None
    for k, mask in enumerate(turns[:2], 1):
        level = ops.CounterRef(levels.dtype, ops.Formula("-", np.int64(deepest - k), None))
        select, at = ops.Select(levels, indexunary.valueeq, level), empty()
        body.append(Statement(at, ops.Descriptor(), select, levels.dtype))
        to = ops.Descriptor(at, replace=True)
        body.append(Statement(mask, to, ops.AssignScalar(np.True_), BOOL))
    return body, Until(times=deepest)


def why_not_generated(statements: ops.Statements) -> str:
    """Return why statements cannot be lines of one kernel, or an empty string."""
    why = next(filter(None, map(why_no_line, statements)), "")
    if not why and all(s.writes_scalar for s in statements):
        why = "the body writes no vector"
    return why or emit.why_no_scalars(statements) or emit.why_no_counters(statements)


def why_no_text(s: Statement) -> str:
    """Return why a statement raises where it runs, or an empty string."""
    x: Any = s.operation
    semiring = getattr(getattr(x, "product", None), "semiring", None)
    op = getattr(getattr(x, "function", x), "op", None)
    named = [s.desc.accum, getattr(x, "monoid", None), op]
    named += [] if semiring is None else [semiring.monoid, semiring.multiply]
    each = (getattr(y, "op", y) for y in named if y is not None)  # of a monoid
    given = any(y.of_numbers and not y.body for y in each)
    return "an operator is a Python function, which only cpu runs" if given else ""


def why_no_line(s: Statement) -> str:
    """Return why a statement cannot be lines of a kernel, or an empty string."""
    operation = s.operation
    if why := why_no_text(s):
        return why
    if isinstance(operation, (ops.AssignScalar, ops.Assign, ops.Extract)):
        may = operation.indices is None or has_one_index(s)
        return "" if may else f"{method(s)} has several indices, or a mask"
    if isinstance(operation, emit.PRODUCTS):
        if operation.product.is_named:
            return "the product names a kernel or a policy"
        sizes = [operation.operand.size, s.out.size]
        if isinstance(operation, ops.MultiplySelection):
            sizes.append(operation.indices.size)
        elif max(operation.matrix.shape) >= 2**31:
            return "the matrix has more than 2**31 rows or columns"
        return "" if all(sizes) else "the matrix has no rows or no columns"
    if isinstance(operation, (ops.Reduce, ops.ExtractElement)):
        is_matrix = len(getattr(operation.operand, "shape", ())) > 1
        return f"the operand of {method(s)} is a matrix" if is_matrix else ""
    if isinstance(operation, ops.Constant) and operation.value is None:
        return "a scalar becomes empty"
    if isinstance(operation, (ops.Apply, ops.Select, ops.Constant, ops.Ewise)):
        return ""
    return f"{method(s)} is not among the operations of a fused loop"


def has_one_index(s: Statement) -> bool:
    """Whether a statement is ``w[i] << number``."""
    operation = s.operation
    if type(operation) is not ops.AssignScalar or type(s.out) is not VectorStore or s.desc.mask:
        return False
    where = operation.indices
    return where is not None and where[0] is not None and len(where[0]) == 1


class GeneratedLoop(KernelLoop):
    """A kernel, its arguments, and the vectors it writes; see `FusedLoop`."""

    name = "generated loop"
    keeps_log = may_run_on = True
    one_way = "only one form of the matrix is stored"  # why a product has no choice
    counted_input = -1  # of the vectors that a statement reads, in a trace
    _numbers: Sequence[Any] = ()

    def __init__(self, statements: ops.Statements, until: Until, why: str) -> None:
        self.statements, self.why = statements, why
        self._until, self._ends = until, until[:2]
        written = [x for x in ops.outputs_of(statements) if type(x) is not ops.ScalarValue]
        watched = [x for x in self._ends if x is not None]
        self.written: list[VectorStore] = distinct([*written, *watched])
        self.device = self.written[0].device
        self._block = self.device.limits.loop_block
        self._scalars: emit.LoopScalars | None = None  # of the last run
        self.stops = self._may_last()

    def _may_last(self) -> bool:
        """Whether the loop takes so long that a user wants to stop it, or may have no end."""
        times = self._until.times
        if times is None:
            return True
        body: Any = self.statements
        recorded = isinstance(body, RecordedBody)  # whose statements are made where they are read
        listed = body.record.statements if recorded else body
        factors = [s.operation.matrix for s in listed if isinstance(s.operation, ops.Multiply)]
        factors = [body.handles[A.number] for A in factors] if recorded else factors
        entries = sum(x.size for x in self.written) + sum(A.nvals for A in factors)
        return bool(times * entries > self.device.limits.lasting)

    @property
    def nbytes(self) -> int:
        sums = sum(
            bytes_of(s.out.size, s.operation.product.result)
            for s in self.statements
            if isinstance(s.operation, emit.PRODUCTS)
        )
        return super().nbytes + sums

    def _prepare(self, log: LoopLog | None) -> Prepared:
        rows = None if log is None else self._rows(log)
        for x in self.written:
            x.to_writable()
        (kernel, arguments, _, num_counters, _), handles = self._program(log)
        block, xp = self._block, self.device.xp
        grid = self.device.max_cooperative_blocks(kernel, block)
        run = emit.Run(handles, self.device, grid, self._scalars, numbers=self._numbers)
        run.most_shared = min(self.device.limits.ranked_bytes, self.device.dynamic_shared_bytes)
        given = arguments.of(run)
        if run.shared:
            grid = self.device.max_cooperative_blocks(kernel, block, run.shared)
        barrier = xp.zeros(GRID_BARRIER, np.uint32) if run.barrier is None else run.barrier
        counters = counters_of(self.device, num_counters)
        times = NO_LIMIT if self._until.times is None else self._until.times
        for x in self.written:
            x.changes()
        launch = functools.partial(
            self.device.launch, kernel, grid * block, *given, block=block, cooperative=True,
            shared=run.shared, times=times, counters=counters, barrier=barrier,
            stop=self.device.stop[0] if self.stops else None,
            **({} if log is None else {"log_words": log.words, "log_is_new": log.is_new}),
        )  # fmt: skip

        def settle() -> None:
            self._store()
            if log is not None and rows is not None:
                log.ran(rows)
            if self._scalars:
                self._scalars.ran()

        return launch, settle

    def _store(self) -> None:
        """Store what the kernel has written in the handles of matrices."""

    def _program(self, log: LoopLog | None) -> tuple[Program, Sequence[Handle]]:
        """Return the program and its handles by place; one that is kept, if it fits them."""
        self._scalars = None
        kept, handles = self._kept() if log is None else ([], [])
        if self._scalars is None and self._has_scalars:
            self._scalars = emit.LoopScalars.of(self.statements, self.device)
        for program in kept:
            if program.arguments.fit(handles):
                return program, handles
        operands = self._operands(log is not None, handles)
        program = write_program(operands, 0 if log is None else log.capacity)
        kept.append(program)
        return program, operands.params.handles

    def _kept(self) -> tuple[list[Program], Sequence[Handle]]:
        """Return where the body's programs are kept, by record or signature; handles by place."""
        body, ends = self.statements, (*self._ends, self._until.holds)
        if not isinstance(body, RecordedBody):
            of, handles, self._numbers = signature(body, ends)
            return self._programs(of, handles), handles
        places = [None if x is None else body.place_of(x) for x in ends]
        if places.count(None) > ends.count(None):  # the type of an end is not recorded
            return [], body.handles
        found, key = body.record.found, (Program, self._block, *places)
        if not body.record.has_scalars:
            return found.setdefault((*key, *self._apart(body.handles)), []), body.handles
        scalars = [x for x in body.handles if type(x) is ops.ScalarValue]
        key = (*key, *(x.is_there for x in scalars))  # by which a read is sure to find a value
        if key not in found:
            of, handles, numbers = signature(body, ends)
            at = {id(x): k for k, x in enumerate(body.handles)}
            own = emit.LoopScalars.of(body, self.device).on_places(at)
            found[key] = of, [at[id(x)] for x in handles], numbers, own
        of, at, self._numbers, own = found[key]
        self._scalars = own.on(body.handles, self.device)
        handles = [body.handles[k] for k in at]
        return self._programs(of, handles), handles

    def _programs(self, of: tuple[Any, ...], handles: Sequence[Handle]) -> list[Program]:
        return kept_programs(self.device, self._block, of, *self._apart(handles))

    def _apart(self, handles: Sequence[Handle]) -> tuple[Any, ...]:
        """Return what tells programs apart beside the statements and types."""
        return ()

    @property
    def _has_scalars(self) -> bool:
        body = self.statements
        return not isinstance(body, RecordedBody) or body.record.has_scalars

    def _operands(self, traced: bool, handles: Sequence[Handle] = ()) -> emit.Operands:
        """Return what the statements name; `handles` have their places already."""
        statements, scalars = self.statements, self._scalars
        if self._numbers:
            statements = without_numbers(statements)
        if self._numbers or isinstance(statements, RecordedBody):
            scalars = emit.LoopScalars.of(statements, self.device)
        scalars = scalars or emit.LoopScalars.of((), self.device)
        given = statements, scalars, self.written, self._until
        return self._named(*given, self._block, traced, handles)

    def _named(self, *given: Any) -> emit.Operands:
        return emit.Operands(*given)

    def _rows(self, log: LoopLog) -> ProgramRows:
        """Return the maker of a trace's rows; entries are counted from now on, nothing waits."""
        statements = self.statements
        inputs = []
        for s in statements:
            vectors = [x for x in operands_of(s.operation) if type(x) is VectorStore]
            inputs.append(vectors[self.counted_input] if vectors else s.out)
        seen = {id(x): x for x in (*(s.out for s in statements), *inputs)}
        none = lambda: 0  # noqa: E731  # of a scalar, whose entries no row shows
        counts = {of: log.count_of(x) if type(x) is VectorStore else none for of, x in seen.items()}
        bounds = {}
        why = dict.fromkeys(range(len(statements)), self.one_way)
        for k, s in enumerate(statements):
            if isinstance(s.operation, ops.MultiplySelection):
                why[k] = spmv.SELECTIONS["pull" if s.operation.product.transpose else "push"][1]
            elif isinstance(s.operation, ops.Multiply):
                bounds[k] = self._bound(s.operation)
        return ProgramRows(statements, inputs, counts, bounds, why)

    def _bound(self, operation: ops.Multiply) -> tuple[int, int]:
        """Return (entries, factor): a product pulls where its edges exceed their quotient."""
        takes_any = operation.product.semiring.monoid.name == "any"
        return operation.matrix.nvals, PULL_FIRST if takes_any else PULL_SUMS


# ----------------------------------------------------------------------------- over matrices
_OF_MATRICES = (
    *(ops.Multiply, ops.Ewise, ops.Apply, ops.Select, ops.Assign, ops.AssignScalar),
    *(ops.Reduce, ops.Constant),
)


class OnEntries(NamedTuple):
    """Statements on bitmap matrices, rewritten as statements on vectors."""

    #: Outputs, masks and operands are vectors; a product has the same matrix.
    statements: list[Statement]
    written: list[MatrixHandle]
    bitmaps: dict[int, BitmapMatrix]  #: The bitmap matrix of each handle, by the handle's ``id``.

    def store(self) -> None:
        for handle in self.written:
            made = self.bitmaps[id(handle)]
            made.changed()
            handle.store = made


def on_entries(
    counters: Counters, statements: ops.Statements,
    read: Sequence[MatrixHandle], shape: tuple[int, int] | None = None,
) -> OnEntries | Rejection:  # fmt: skip
    """Return statements on entries, or why none; `shape` is of all but the matrices of products."""
    why = next(filter(None, (why_not_on_entries(s, shape) for s in statements)), "")
    written = matrices(s.out for s in statements)
    all_read = [*read, *written, *(A for s in statements for A in _by_position(s))]
    if why := why or why_no_bitmap(all_read, 1 if shape is None else 2):
        return Rejection(why)
    bitmaps = {id(C): C.own_bitmap(counters) for C in written}
    for A in (*read, *(A for s in statements for A in _by_position(s))):
        if id(A) not in bitmaps:
            bitmaps[id(A)] = A.bitmap(counters)
    entries = {of: made.entries for of, made in bitmaps.items()}
    return OnEntries([_on_entries(s, entries) for s in statements], written, bitmaps)


def why_no_bitmap(matrices: Sequence[MatrixHandle], wide: int) -> str:
    """Return why one of them cannot be a bitmap matrix, or an empty string."""
    shapes = (A.shape for A in matrices if not A.may_be_bitmap(wide))
    what = "cannot be a bitmap matrix; take fewer rows at a time"
    return next((f"a matrix of shape {shape} {what}" for shape in shapes), "")


def matrices(handles: Iterable[Any]) -> list[Any]:
    """Return handles that are no scalars and not None, each once."""
    return [x for x in distinct(handles) if x is not None and type(x) is not ops.ScalarValue]


def _by_position(s: Statement) -> list[MatrixHandle]:
    """Return the matrices that a statement reads position by position."""
    read: Any = operands_of(s.operation)
    if isinstance(s.operation, ops.Multiply):
        read = (s.operation.operand,)
    return matrices((*read, s.desc.mask))


def why_not_on_entries(
    s: Statement, shape: tuple[int, int] | None, turns: Any = (ops.Multiply, ops.Assign)
) -> str:
    """Return why a statement cannot be on entries, or ""; `turns` may not transpose an operand."""
    operation: Any = s.operation
    what = method(s)
    if isinstance(operation, (ops.Assign, ops.AssignScalar)) and operation.indices is not None:
        return f"{what} has indices"
    if isinstance(operation, turns) and operation.transposed:
        return f"{what} transposes its operand"
    if isinstance(operation, ops.Ewise) and any(operation.transposed):
        return f"{what} transposes an operand"
    if not isinstance(operation, _OF_MATRICES):
        return f"{what} is not among the operations of a fused loop over matrices"
    if not all(isinstance(A, MatrixHandle) for A in _by_position(s)):
        return f"the operand of {what} is a vector"
    if shape is not None and s.writes_scalar:
        return "a sweep over a matrix writes no scalar"
    if shape is not None and any(A.shape != shape for A in (s.out, *_by_position(s))):
        return f"{what} has an operand whose shape is not that of the levels"
    return ""


def _on_entries(s: Statement, entries: dict[int, VectorStore]) -> Statement:
    made, operation = ops.moved(s, entries), s.operation
    if isinstance(operation, ops.Multiply):
        operation = operation._replace(operand=entries[id(operation.operand)])
        made = made._replace(operation=operation)
    return made


def generated_bitmap_loop(
    counters: Counters, statements: ops.Statements, until: Until, why: str
) -> KernelLoop | Rejection:
    """Return the kernel of a loop over matrices, or why it has none; `why`: no other one fits."""
    products = (s.operation for s in statements if isinstance(s.operation, ops.Multiply))
    if any(s.out is p.matrix for p in products for s in statements):
        return Rejection("the body writes the matrix of a product")
    found = on_entries(counters, statements, [A for A in until[:2] if A is not None])
    if isinstance(found, Rejection):
        return found
    lacking = why_not_generated(found.statements)
    lacking = lacking or next(filter(None, map(_why_not_bitmap, found.statements)), "")
    if lacking:
        return Rejection(lacking)
    return if_fits(GeneratedBitmapLoop(found, until, why), "generated loop over matrices")


def _why_not_bitmap(s: Statement) -> str:
    operation = s.operation
    if nwords(getattr(s.out, "size", 0)) >= 2**32:  # kernels number them so
        return "a matrix has 2**32 words of presence bits or more"
    if isinstance(operation, ops.Multiply):
        A = operation.matrix.csc()
        if _bytes_of_rows(A, operation.product) and not A.may_keep_csr and not is_symmetric(A):
            return "a product needs the matrix by rows, and its orientation is csc"
    return why_not_anywhere(s)


def why_not_anywhere(s: Statement) -> str:
    """Return why a statement needs the places of a matrix' entries, or an empty string."""
    if isinstance(s.operation, (ops.Apply, ops.Select)):
        op = s.operation.function.op if isinstance(s.operation, ops.Apply) else s.operation.op
        if isinstance(op, IndexUnaryOp) and (op.body or not op.name.startswith("value")):
            return f"{method(s)} reads row or column indices"
    return why_no_text(s)


def _bytes_of_rows(A: CscMatrix, product: ops.Product) -> int:
    """Return the bytes for making the columns that a product pulls from; 0 if they are stored."""
    return 0 if product.transpose or A.symmetric or A.csr is not None else A.nbytes + 32 * A.nvals


class GeneratedBitmapLoop(GeneratedLoop):
    """A kernel, its arguments, and the bitmap matrices it writes; see `GeneratedLoop`."""

    one_way = "sums of bitmap matrices are pulled, and so is a matrix stored in one form"
    counted_input = 0

    def __init__(self, found: OnEntries, until: Until, why: str) -> None:
        entries = {of: A.entries for of, A in found.bitmaps.items()}
        super().__init__(found.statements, until.on(entries), why)
        self._found = found
        self._shapes = {id(A.entries): A.shape for A in found.bitmaps.values()}

    @property
    def nbytes(self) -> int:
        found, copied = self._found, self._ends[1]
        rows, sums = {}, 0
        for s in found.statements:
            if isinstance(s.operation, ops.Multiply):
                A, product = s.operation.matrix.csc(), s.operation.product
                sums += bytes_of(s.out.size, product.result)
                if not product.transpose:
                    rows[id(A)] = _bytes_of_rows(A, product)
        return (
            sum(A.entries.bytes_to_write for A in found.bitmaps.values())
            + sum(rows.values())
            + sums
            + sum(4 * nwords(s.out.size) for s in found.statements if not s.desc.structure)
            + (0 if copied is None else bytes_of(copied.size, copied.dtype))
        )

    def _kept(self) -> tuple[list[Program], Sequence[Handle]]:
        """See `GeneratedLoop`: the arguments of such a program belong to its matrices."""
        return [], []

    def _named(self, *given: Any) -> BitmapOperands:
        return BitmapOperands(self._shapes, self.nbytes, *given)

    def _store(self) -> None:
        self._found.store()

    def _bound(self, operation: ops.Multiply) -> tuple[int, int]:
        k, _ = self._shapes[id(operation.operand)]
        return operation.matrix.nvals * words_of(k)[1], BITS_PUSH_COST


class BitmapOperands(emit.Operands):
    """What statements on entries of bitmap matrices name; see `Operands`.

    `shapes` has each matrix' shape, by the ``id`` of the vector that stores its entries; `nbytes`
    are those that the loop allocates beside its operands.
    """

    header = "program/bitmap.cuh"
    most_held = 0  # a product may read a matrix of any size
    shared = ("LG_SHARED(u64, sums, LG_BLOCK);", "LG_SHARED(u32, found, 32);",
              "(void)sums; (void)found;")  # fmt: skip

    def __init__(self, shapes: dict[int, tuple[int, int]], nbytes: int, *given: Any) -> None:
        super().__init__(*given)
        self._shapes, self._nbytes = shapes, nbytes

    def space(self, s: Statement) -> Any:
        x = s.operation.operand if isinstance(s.operation, emit.SUMMED) else s.out
        return self._shapes[id(x)]

    def filled(self, s: Statement) -> str:
        """See `Operands`: the positions of rows."""
        each, rows = self._rows_of(s)
        return f"all & rows_of<u32>(u32(k) % u32({each} / 32), {rows})"

    def filling(self, s: Statement, source: str) -> str:
        """See `Operands`: restricted to the positions of rows."""
        each, rows = self._rows_of(s)
        return f"InRows<Filled<{s.out.dtype.ctype}>>{{{source}, {each}, {rows}}}"

    def _rows_of(self, s: Statement) -> tuple[str, str]:
        """Add the positions of a column of an output, and its rows; return their names."""
        k, _ = self._shapes[id(s.out)]
        return self.params.size(stride(k)), self.params.size(k)

    def _by_matrix(self, s: Statement, operation: ops.Multiply) -> emit.ProductText:
        A, u, product = operation.matrix.csc(), operation.operand, operation.product
        params, kind = self.params, product.result.ctype
        # vectors that the body writes have their values stored
        known = spmv.iso_result(A, u.values is not None, u.number, product)
        lines, mask, complement = self.mask_words(s.desc)
        words = params.add("u32*", self.device.xp.zeros(nwords(s.out.size), np.uint32))
        if known is None:
            values = params.add(f"{kind}*", self.device.xp.empty(s.out.size, product.result.numpy))
            number = f"{kind}(0)"
            call, logged = self._sums(s, operation, f"{mask}, {complement}, {{{words}, {values}}}")
        else:
            values, number = f"({kind}*)nullptr", params.add(kind, known)
            call, logged = self._bits(s, operation, f"{mask}, {complement}, {words}")
        return [*lines, call], emit.Operand(words, values, number, product.result), logged

    def _sums(self, s: Statement, operation: ops.Multiply, out: str) -> tuple[str, emit.Logged]:
        """Return the line of a product with values, and the numbers that are logged."""
        A, u, product = operation.matrix.csc(), operation.operand, operation.product
        params, form, (k, n) = self.params, by_outputs(A, product), self._shapes[id(s.out)]
        name = f"Product{len(params.structs)}"
        params.product(product, u.dtype, A.dtype, name, **index_types(form))
        x, long = params.entries(u), chunks_of(form).columns
        shape = ", ".join(params.size(size) for size in (n, stride(k) // 32, k))
        longs = f"{params.size(len(long))}, {params.add('const i64*', long)}"
        kinds = emit.column_types(index_types(form), A.dtype)
        columns = ", ".join(params.made(kinds, lambda _: emit.columns_of(form, A.dtype)))
        count = self.new_counters(int(self.traced))
        line = (
            f"multiply_bitmap<{name}>({{{{{columns}}}, "
            f"{{{x}}}, {{{shape}}}, {out}}}, {longs}, sums, found, "
            f"now + {count} * kCounterStride, barrier);"
        )
        return line, emit.Logged("kPulls", emit.counted(count))

    def _bits(self, s: Statement, operation: ops.Multiply, out: str) -> tuple[str, emit.Logged]:
        """Return the same as `_sums`, for a product whose sums have one value."""
        A, product, params = operation.matrix.csc(), operation.product, self.params
        form, (k, n) = by_outputs(A, product), self._shapes[id(s.out)]
        rows = self._by_inputs(A, product, form)
        cut = f"CutColumns<{', '.join(index_types(form).values())}>"
        columns = f"{cut}{self._cut(form, form, n)}"
        pushed = f"{cut}{self._cut(rows, form, self._shapes[id(operation.operand)][1])}"
        word, groups = words_of(k)
        bits = f"BitProduct<{word}, {index_types(form)['PTR']}>"
        sizes = f"{params.size(groups)}, {params.size(k)}"
        nvals, cost = (params.add("u64", np.uint64(x)) for x in (A.nvals, BITS_PUSH_COST))
        first = self.new_counters(2 + self.traced)
        pulls = f"const bool pulls{first} = " if self.traced else ""
        line = (
            f"{pulls}multiply_bits({bits}{{{sizes}, {params.vector(operation.operand)}_words, "
            f"{out}}}, {columns}, {pushed}, {nvals}, {cost}, now + {first} * kCounterStride, "
            "barrier);"
        )
        out_edges = "kUnknown" if rows is None else emit.counted(first)
        how = f"pulls{first} ? kPulls : kPushes"
        return line, emit.Logged(how, emit.counted(first + 2), out_edges)

    def _cut(self, form: CscMatrix | None, like: CscMatrix, n: int) -> str:
        """Return the initialiser of a form's ``CutColumns``: null pointers if there is no form."""
        arrays: tuple[Any, ...] = (None,) * 4
        if form is not None:
            chunks = chunks_of(form)
            arrays = (form.col_ptr, form.row_idx, chunks.column, chunks.start)
        types = index_types(like)
        kinds = (types["PTR"], types["IDX"], "i64", "i64")
        ptr, idx, column, start = (
            self.params.add(f"const {kind}* __restrict__", x)
            for kind, x in zip(kinds, arrays, strict=True)
        )
        count = self.params.size(0 if form is None else len(chunks.column))
        return f"{{{self.params.size(n)}, {ptr}, {idx}, {count}, {column}, {start}}}"

    def _by_inputs(self, A: CscMatrix, product: ops.Product, form: CscMatrix) -> CscMatrix | None:
        """Return the form that a push goes through, or None if there is none beside `form`."""
        if product.transpose and not (is_symmetric(A) or A.csr is not None):
            nbytes = self._nbytes + A.nbytes + 32 * A.nvals
            if not (A.may_keep_csr and has_free(self.device, nbytes)):
                return None
        found = by_inputs(A, product)
        return found if index_types(found) == index_types(form) else None


# ------------------------------------------------------------ over sparse matrices of one pattern
# Entries stay within those of one matrix, as in a k-truss: ``C(C.S) << plus_pair(C @ C.T)`` never
# adds an entry. So the pattern that C has before the loop serves all iterations. Each matrix is a
# vector over its entries, and the statements are those of vectors; an entry that is deleted is one
# that the vector lacks.
def generated_pattern_loop(
    counters: Counters, statements: ops.Statements, until: Until, why: str
) -> KernelLoop | Rejection:
    """Return the kernel of a loop within a pattern, or why it has none; `why`: no other fits."""
    masks = [s.desc.mask for s in statements if isinstance(s.operation, ops.Multiply)]
    if not masks or masks[0] is None:
        return Rejection("no product is at the entries of a mask")
    A: MatrixHandle = masks[0]
    if A.shape[0] != A.shape[1] or not 0 < A.csc().nvals <= MOST_ENTRIES or A.shape[0] >= 2**31:
        fact = f"has none or more than {MOST_ENTRIES} entries"
        return Rejection(f"the mask is not square, or {fact}")
    named = [x for s in statements for x in (s.out, s.desc.mask, *operands_of(s.operation))]
    used = matrices((*named, *until[:2]))
    for x in used:
        if x.shape != A.shape or (x is not A and x.csc().nvals):
            return Rejection("a matrix may have entries outside of the mask of a product")
    lacking = next(filter(None, map(_why_not_within, statements)), "")
    if lacking:
        return Rejection(lacking)
    entries = {id(x): VectorStore(A.device, counters, x.dtype, A.csc().nvals) for x in used}
    made = [ops.moved(s, entries) for s in statements]
    lacking = emit.why_no_scalars(made) or emit.why_no_counters(made)
    if lacking:
        return Rejection(lacking)
    return if_fits(GeneratedPatternLoop(A, used, entries, made, until, why))


def _why_not_within(s: Statement) -> str:
    """Return why a statement may leave the pattern, or is no statement on entries."""
    operation, desc = s.operation, s.desc
    fills = isinstance(operation, (ops.Multiply, ops.AssignScalar))
    if fills and (desc.mask is None or desc.complement):
        return f"{method(s)} is not at the entries of a mask"
    if isinstance(operation, ops.Multiply) and operation.product.is_named:
        return "the product names a kernel or a policy"
    return why_not_on_entries(s, None, (ops.Assign,)) or why_not_anywhere(s)


class GeneratedPatternLoop(GeneratedLoop):
    """A kernel, its arguments, and the entries of the matrices it writes; see `GeneratedLoop`."""

    keeps_log = False

    def __init__(
        self, A: MatrixHandle, used: Sequence[MatrixHandle], entries: dict[int, VectorStore],
        statements: ops.Statements, until: Until, why: str,
    ) -> None:  # fmt: skip
        self._pattern, first = A.csc(), entries[id(A)]
        values = self._pattern.values
        first.set_full(None if values is None else values.copy(), self._pattern.iso)
        super().__init__(statements, until.on(entries), why)
        written = ((x, entries[id(x)]) for x in used)
        self._handles = [(x, v) for x, v in written if holds(self.written, v)]

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: lists of the rows besides."""
        return super().nbytes + 16 * self._pattern.nvals

    def _kept(self) -> tuple[list[Program], Sequence[Handle]]:
        """See `GeneratedLoop`; the pattern has the last place."""
        kept, handles = super()._kept()
        return kept, [*handles, self._pattern]

    def _named(self, *given: Any) -> PatternOperands:
        return PatternOperands(self._pattern, *given)

    def _store(self) -> None:
        for handle, v in self._handles:
            handle.store = forms.take(self._pattern.with_values(v.dtype, v.values, None), v.words)


class PatternOperands(emit.Operands):
    """What statements within a pattern name; see `Operands`."""

    header = "program/pattern.cuh"
    most_held = 0
    shared = ()

    def __init__(self, pattern: CscMatrix, *given: Any) -> None:
        super().__init__(*given)
        self._pattern = pattern
        self._lists: dict[bool, str] = {}

    def _lists_of(self, rows: bool) -> str:
        if rows not in self._lists:
            at = self.params.place(self._pattern)
            kinds = ["const i32*"] * 3
            names = self.params.made(kinds, lambda run: _lists(run.handles[at], rows))
            self._lists[rows] = f"Lists{{{', '.join(names)}}}"
        return self._lists[rows]

    def _by_matrix(self, s: Statement, operation: ops.Multiply) -> emit.ProductText:
        u, product, params = operation.operand, operation.product, self.params
        a: Any = operation.matrix  # the vector of its entries
        lines, mask, complement = self.mask_words(s.desc)
        name, kind = f"Product{len(params.structs)}", product.result.ctype
        params.product(product, u.dtype, a.dtype, name)
        words = params.room("u32", nwords(s.out.size), np.uint32)
        values = params.room(kind, s.out.size, product.result.numpy)
        left, right = map(self._lists_of, (not operation.transposed, not product.transpose))
        n, at = params.size(s.out.size), params.place(self._pattern)
        (ncols,) = params.made(["i64"], lambda run: [np.int64(run.handles[at].shape[1])])
        x, y = params.entries(u), params.entries(a)
        dot = f"DotProduct<{name}>{{{left}, {right}, {{{x}}}, {{{y}}}}}"
        line = (
            f"multiply_within<{name}>({n}, {ncols}, {self._lists_of(False)}, {dot}, "
            f"Mask{{{mask}, {complement}, {n}}}, {{{words}, {values}}}, barrier);"
        )
        result = emit.Operand(words, values, f"{kind}(0)", product.result)
        return [*lines, line], result, emit.Logged("kPulls")


def _lists(A: CscMatrix, by_rows: bool) -> tuple[Any, ...]:
    """Return where each row or column begins, its indices, and which entries these are, or None."""
    if not by_rows:
        return A.col_ptr, A.row_idx, None
    device = A.device
    order = device.order_of(A.row_idx)
    rows = stores.gather(device, A.row_idx, order, np.int32)
    columns = stores.gather(device, A.columns(kind=np.int32), order)
    starts = stores.bounds(device, rows, range(A.shape[0] + 1), kind=np.int32)
    return starts, columns, stores.as_type(device, order, np.int32)
