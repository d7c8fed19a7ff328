"""The generated loop: one cooperative kernel for the recorded body of any loop over vectors.

Each statement becomes some lines of the kernel, in order, with a barrier of the grid where a
statement reads words that other threads wrote.
The text depends on operations, types and masks alone, so loops of one structure share one kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu.fused.emit import (
    LogLines,
    Parameters,
    accum_type,
    columns_of,
    expression,
    whole_sums,
)
from lagpu.backends.gpu.fused.match import method
from lagpu.backends.gpu.fused.scalars import KernelScalars, why_no_scalars
from lagpu.backends.gpu.fused.whole import Prepared, run_whole
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, constant, from_source
from lagpu.backends.gpu.ops import selection
from lagpu.backends.gpu.ops.directions import PULL_FIRST, PULL_SUMS
from lagpu.backends.gpu.ops.elementwise import mask_bits
from lagpu.backends.gpu.ops.strategies import sums_every_entry
from lagpu.backends.gpu.profile.log import LoopLog
from lagpu.backends.gpu.profile.log_rows import ProgramRows
from lagpu.backends.gpu.storage.forms import csr_of, is_symmetric, may_make_csr
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore, bytes_of, nwords
from lagpu.backends.gpu.storage.workspaces import PushSpace, index_types, push_space
from lagpu.dtypes import BOOL, DType
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    Constant,
    Descriptor,
    Ewise,
    Extract,
    Multiply,
    MultiplySelection,
    Product,
    Reduce,
    Rejection,
    Select,
    Statement,
    once,
    operands_of,
)

__all__ = ["GeneratedLoop", "generated_loop", "why_not_generated"]

NO_LIMIT = 2**64 - 1
# Threads of a block, and blocks of a multiprocessor: registers for each thread follow from both.
BLOCK, BLOCKS, SIM_BLOCK = 1024, 1, 256
Array = Any


def generated_loop(
    statements: Sequence[Statement],
    empty: VectorStore | None,
    unchanged: VectorStore | None,
    times: int | None,
    why: str,
) -> GeneratedLoop | Rejection:
    """Return the kernel of a loop over vectors, or why there is none; `why` no other one fits."""
    lacking = once(statements, why_not_generated)
    if lacking:
        return Rejection(lacking)
    return GeneratedLoop(statements, empty, unchanged, times, why)


def why_not_generated(statements: Sequence[Statement]) -> str:
    """Return why statements cannot be lines of one kernel, or an empty string."""
    for s in statements:
        why = _why_not(s)
        if why:
            return why
    if all(s.writes_scalar for s in statements):
        return "the body writes no vector"
    return why_no_scalars(statements)


def _why_not(s: Statement) -> str:
    """Return why a statement cannot be lines of a kernel, or an empty string."""
    operation = s.operation
    if isinstance(operation, (AssignScalar, Assign, Extract)):
        return "" if operation.indices is None else f"{method(s)} has indices"
    if isinstance(operation, (Multiply, MultiplySelection)):
        product = operation.product
        if product.kernel is not None or product.policy is not None:
            return "the product names a kernel or a policy"
        sizes = [operation.operand.size, s.out.size]
        if isinstance(operation, MultiplySelection):
            sizes.append(operation.indices.size)
        elif max(operation.matrix.shape) >= 2**31:
            return "the matrix has more than 2**31 rows or columns"
        return "" if all(sizes) else "the matrix has no rows or no columns"
    if isinstance(operation, Reduce) and type(operation.operand) is not VectorStore:
        return "the operand of reduce is a matrix"
    if isinstance(operation, (Apply, Select, Reduce, Constant, Ewise)):
        return ""
    return f"{method(s)} is not among the operations of a fused loop"


class GeneratedLoop:
    """The text of a kernel, its arguments, and the vectors it writes; see `FusedLoop`.

    Parameters
    ----------
    statements : sequence of Statement
        The body, which `why_not_generated` accepts.
    empty, unchanged : VectorStore or None
        The loop's condition.
    times : int or None
        Iterations, at most.
    why : str
        Why no other kernel runs the loop.

    Attributes
    ----------
    header : str
        The header with the functions that the text calls.
    shared : tuple of str
        Lines for the shared memory of a block of threads.
    one_way : str
        Why a product has no direction to choose.
    """

    name = "generated loop"
    keeps_log = True
    header = "program/program.cuh"
    shared: tuple[str, ...] = ("LG_SHARED(PutOff, later, 1);", "(void)later;")
    one_way = "only one form of the matrix is stored"

    def __init__(
        self,
        statements: Sequence[Statement],
        empty: VectorStore | None,
        unchanged: VectorStore | None,
        times: int | None,
        why: str,
    ) -> None:
        self.statements, self.why = statements, why
        self._empty, self._unchanged, self._times = empty, unchanged, times
        watched = [x for x in (empty, unchanged) if x is not None]
        outputs = [s.out for s in statements if not s.writes_scalar]
        self.written: list[VectorStore] = list({id(x): x for x in [*outputs, *watched]}.values())
        self.device = self.written[0].device
        self._block = SIM_BLOCK if self.device.name == "sim" else BLOCK
        self.params = Parameters()
        self._scalars = KernelScalars(statements, self.params, self.device)
        self._before: list[str] = []  # lines that run once, before the loop
        self._counters = 2  # entries, changes
        self._barrier: Array = None

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: words and values of what is written, and of each product's sums."""
        sums = sum(
            bytes_of(s.out.size, s.operation.product.result)
            for s in self.statements
            if isinstance(s.operation, (Multiply, MultiplySelection))
        )
        return sum(x.bytes_to_write for x in self.written) + sums

    # ---------------------------------------------------------------------------- running
    def run(self, log: LoopLog | None = None) -> None:
        """Run the loop to its end; the host waits only if a scalar may lack its value."""
        run_whole(self.device, self.name, self.written, lambda: self._prepared(log))

    def _prepared(self, log: LoopLog | None) -> Prepared:
        rows = None if log is None else self._rows(log)
        for x in self.written:
            x.to_writable()
        self._log, xp = LogLines(len(self.statements), log is not None), self.device.xp
        kernel = self._kernel(0 if log is None else log.capacity)
        barrier = xp.zeros(GRID_BARRIER, np.uint32) if self._barrier is None else self._barrier
        block = self._block
        grid = self.device.max_cooperative_blocks(kernel, block)
        count = constant("kTurns") * self._counters * constant("kCounterStride")
        counters = xp.empty(count, np.uint64)
        given = self.params.arguments(grid)
        times = NO_LIMIT if self._times is None else self._times
        for x in self.written:
            x.changes()
        launch = functools.partial(
            self.device.launch,
            kernel, grid * block, *given, np.uint64(times), counters, barrier,
            *(() if log is None else (log.words, log.is_new)), block=block, cooperative=True,
        )  # fmt: skip
        return launch, lambda: self._settle(log, rows)

    def _settle(self, log: LoopLog | None, rows: ProgramRows | None) -> None:
        """Take over what the kernel has written."""
        if log and rows:
            log.ran(rows)
        self._scalars.ran()

    def _rows(self, log: LoopLog) -> ProgramRows:
        """Return the maker of a trace's rows; entries are counted from now on, nothing waits."""
        statements = self.statements
        inputs = [self._counted_input(s) for s in statements]
        seen = {id(x): x for x in (*(s.out for s in statements), *inputs)}
        counts = {
            of: log.count_of(x) if type(x) is VectorStore else _none for of, x in seen.items()
        }
        bounds = {}
        why = dict.fromkeys(range(len(statements)), self.one_way)
        for k, s in enumerate(statements):
            if isinstance(s.operation, MultiplySelection):
                direction = "pull" if s.operation.product.transpose else "push"
                why[k] = selection.reason(direction)
            elif isinstance(s.operation, Multiply):
                bounds[k] = self._bound(s.operation)
        return ProgramRows(statements, inputs, counts, bounds, why)

    def _counted_input(self, s: Statement) -> Any:
        """Return the last vector that a statement reads; its entries are a row's input."""
        found = [x for x in operands_of(s.operation) if type(x) is VectorStore]
        return found[-1] if found else s.out

    def _bound(self, operation: Multiply) -> tuple[int, int]:
        """Return (entries, factor): a product pulls where its edges exceed their quotient."""
        takes_any = operation.product.semiring.monoid.name == "any"
        return operation.matrix.nvals, PULL_FIRST if takes_any else PULL_SUMS

    def _kernel(self, records: int) -> Kernel:
        """Write the text."""
        for x in self.written:
            self.params.vector(x, written=True)
        scalars = self._scalars.opening()
        lines = [line for s in self.statements for line in self._statement(s)]
        log = self._log
        before, top, end = self._condition()
        counters = f"kTurns * {self._counters} * kCounterStride"
        selects = any(isinstance(s.operation, MultiplySelection) for s in self.statements)
        text = "\n".join(
            [
                f'#include "{self.header}"',
                *(['#include "program/selection.cuh"'] if selects else []),
                *(['#include "program/scalars.cuh"'] if self._scalars else []),
                *self.params.structs,
                'extern "C" __global__ void __launch_bounds__(LG_BLOCK, LG_BLOCKS)',
                "program(" + ", ".join([*self.params.text, "u64 times", "u64* counters",
                                        "GridBarrier* barrier", *log.params()]) + ") {",
                *self.shared,
                f"for (i64 k = global_thread(); k < {counters}; k += global_threads()) "
                "counters[k] = 0;",
                *before,
                *scalars,
                *self._before,
                *log.opening(),
                "grid_sync(barrier);",
                "u32 turn = 0;",
                "for (u64 depth = 0; depth != times; ++depth, ++turn) {",
                f"u64* const now = counters + turn % kTurns * {self._counters} * kCounterStride;",
                "u64* const next = "
                f"counters + (turn + 1) % kTurns * {self._counters} * kCounterStride;",
                f"for (u32 k = global_thread(); k < {self._counters} * kCounterStride; "
                "k += global_threads()) next[k] = 0;",
                *top,
                *lines,
                *end,
                "}",
                *log.closing(self._counters),
                *self._scalars.closing(),
                "}",
            ]
        )  # fmt: skip
        macros = {"BLOCK": str(self._block), "BLOCKS": str(BLOCKS)}
        macros |= {"LOG": str(records)} if log.on else {}
        prelude = self.params.prelude.text
        return from_source(text, "program", file="program.cu", prelude=prelude, **macros)

    def _condition(self) -> tuple[list[str], list[str], list[str]]:
        """Return the lines of the loop's condition: before the loop, at its top and at its end."""
        if self._empty is not None:
            x = self.params.vector(self._empty)
            top = [
                f"count_entries({self.params.size(self._empty.size)}, {x}_words, now);",
                "grid_sync(barrier);",
                *self._log.at_top(self._counters),
                "if (load_volatile(now) == 0) break;",
            ]
            return [], top, self._log.pending()
        if self._unchanged is None:
            return [], [], ["grid_sync(barrier);", *self._log.at_end()] if self._log.on else []
        y = self._unchanged
        x = self.params.vector(y)
        words = self._words(y.size)
        values = self._room(f"{y.dtype.ctype}*", y.size, y.dtype.numpy)
        where = f"{self.params.size(y.size)}, {x}_words, {x}_values, {words}, {values}"
        end = [
            f"remember({where}, now + kCounterStride);",
            "grid_sync(barrier);",
            *self._log.at_end(),
            "if (load_volatile(now + kCounterStride) == 0) break;",
        ]
        return [f"remember({where}, (u64*)nullptr);"], [], end

    # --------------------------------------------------------------------------- statements
    def _statement(self, s: Statement) -> list[str]:
        """Return the lines of one statement."""
        if isinstance(s.operation, Multiply):
            return self._product(s, s.operation)
        if isinstance(s.operation, MultiplySelection):
            return self._selection(s, s.operation)
        checks = self._scalars.checks(s)
        if s.writes_scalar:
            count = self._counted(self._scalars.count(s))
            return [*checks, *self._scalars.statement(s), *count]
        z, source = self._source(s)
        return [*checks, *self._write(s.out, s.desc, z, source), "warp_sync();"]

    def _source(self, s: Statement) -> tuple[DType, str]:
        """Return (type, text) of an element-wise statement's results."""
        return expression(s, self)

    def operand(self, x: VectorStore) -> str:
        """See `Writer`."""
        name = self.params.vector(x)
        return f"{name}_words, {name}_values, {name}_iso"

    def number(self, ctype: str, value: Any) -> str:
        """See `Writer`."""
        return self._scalars.number(ctype, value)

    def counter(self, ctype: str) -> str:
        """See `Writer`."""
        return f"cast<{ctype}>(i64(depth))"

    def constant(self, ctype: str, value: str) -> str:
        """See `Writer`."""
        return f"Filled<{ctype}>{{{value}}}"

    def call(self, name: str, types: str, args: str) -> str:
        """See `Writer`: the struct that computes the results of a whole vector."""
        struct = {"mapped": "Mapped", "selected": "Selected", "combined": "Combined"}[name]
        return f"{struct}<{types}>{{{args}}}"

    def _write(
        self,
        w: VectorStore,
        desc: Descriptor,
        z: DType,
        source: str,
        logged: tuple[str, ...] = (),
    ) -> list[str]:
        """Return the lines that write the results of `source` into `w`, and log `logged`."""
        lines, mask, complement = self._mask(desc)
        accum = accum_type(self.params, desc, w.dtype, z)
        x, kind = self.params.vector(w), w.dtype.ctype
        replace = "true" if desc.replace else "false"
        out = f"Output<{kind}>{{{x}_words, {x}_values, {mask}, {complement}, {replace}, nullptr}}"
        total = f"write_all<{accum}, {z.ctype}>({self.params.size(w.size)}, {out}, {source})"
        if not self._log.on:
            return [*lines, f"{total};"]
        return [*lines, *self._counted(total, *logged)]

    def _counted(
        self,
        total: str,
        how: str = "kWrites",
        edges: str = "kUnknown",
        frontier_edges: str = "kUnknown",
    ) -> list[str]:
        """Return the lines that log the entries a statement writes, and the edges of a product."""
        if not self._log.on:
            return []
        self._counters += 1
        return self._log.written(total, self._counters - 1, how, edges, frontier_edges)

    def _mask(self, desc: Descriptor) -> tuple[list[str], str, str]:
        """Return (lines that prepare it, presence words, complement) of a mask."""
        m: VectorStore | None = desc.mask
        bits, complemented = mask_bits(desc)
        complement = str(complemented).lower()
        if m is None or bits == "nowhere":
            return [], "(const u32*)nullptr", complement
        x = self.params.vector(m)
        if bits == "presence":
            return [], f"{x}_words", complement
        true = self._words(m.size)
        size = self.params.size(m.size)
        lines = [f"write_true_bits({size}, {x}_words, {x}_values, {true});", "warp_sync();"]
        return lines, true, complement

    # ----------------------------------------------------------------------------- products
    def _product(self, s: Statement, operation: Multiply) -> list[str]:
        """Return the lines of a product: into a vector of its own, then from there into `w`."""
        A, u, product = operation.matrix.csc(), operation.operand, operation.product
        params = self.params
        spec, incoming, outgoing = self._spec(A, u, product)
        x = params.vector(u)
        lines, mask, sums, result = self._target(s, product, spec)
        place = self._counters
        self._counters += 3 + self._log.on
        lists = self._lists(outgoing, A)
        forms = [columns_of(params, form, A) for form in (incoming, outgoing)]
        whole = f"NoWhole<{spec}>{{}}"
        if s.desc.mask is None and not s.desc.complement and sums_every_entry(product):
            xp, warps = self.device.xp, self._block // 32
            parts = lambda blocks: xp.empty(blocks * warps, product.result.numpy)  # noqa: E731
            whole = whole_sums(params, spec, (incoming, outgoing), A, operation, parts)
        pulls = f"const bool pulls{place} = " if self._log.on else ""
        lines += [
            f"{pulls}multiply_all<{spec}>({{{forms[0]}, {forms[1]}, "
            f"{params.add('u64', np.uint64(A.nvals))}, {{{x}_words, {x}_values, {x}_iso}}, "
            f"{params.size(u.size)}, {mask}, {sums}, {lists}}}, {whole}, "
            f"now + {place} * kCounterStride, barrier, later);"
        ]
        at = f"load_volatile(at + {place} * kCounterStride)"
        logged = (
            f"pulls{place} ? kPulls : kPushes",
            f"load_volatile(at + {place + 3} * kCounterStride)",
            "kUnknown" if incoming is None or outgoing is None else at,
        )
        return [*lines, *self._write(s.out, s.desc, product.result, result, logged), "warp_sync();"]

    def _selection(self, s: Statement, operation: MultiplySelection) -> list[str]:
        """Return the lines of a product with a selection, as those of `_product`."""
        f, u, product = operation
        params = self.params
        spec = params.product(product, u.dtype, BOOL, f"Product{len(params.structs)}")
        lines, mask, sums, result = self._target(s, product, spec)
        place = self._counters
        self._counters += self._log.on
        looked_at = f"now + {place} * kCounterStride" if self._log.on else "(u64*)nullptr"
        x, y = params.vector(f), params.vector(u)
        nrows = params.size(u.size if product.transpose else s.out.size)
        chosen = f"{x}_words, {x}_values, {x}_iso, {params.size(f.size)}, {nrows}"
        operand = f"{y}_words, {y}_values, {y}_iso"
        types = f"{spec}, {str(product.transpose).lower()}, {f.dtype.ctype}"
        lines.append(
            f"select_all<{types}>({{{chosen}}}, {{{operand}}}, {mask}, {sums}, {looked_at}, "
            "barrier);"
        )
        how = "kPulls" if product.transpose else "kPushes"
        logged = how, f"load_volatile(at + {place} * kCounterStride)"
        return [*lines, *self._write(s.out, s.desc, product.result, result, logged), "warp_sync();"]

    def _words(self, size: int) -> str:
        """Add room for the presence words of `size` entries; return its name."""
        return self._room("u32*", nwords(size), np.dtype(np.uint32))

    def _room(self, kind: str, count: int, dtype: np.dtype[Any]) -> str:
        """Add room for `count` numbers of the kernel's type `kind`; return its name."""
        self.device.require(count * dtype.itemsize, "fused loop")
        return self.params.add(kind, self.device.xp.empty(count, dtype))

    def _target(self, s: Statement, product: Product, spec: str) -> tuple[list[str], str, str, str]:
        """Return a product's (lines of the mask, ``Mask``, ``Sums``, the text that reads them)."""
        lines, mask, complement = self._mask(s.desc)
        kind, size = product.result.ctype, self.params.size(s.out.size)
        words = self._words(s.out.size)
        values = self._room(f"{kind}*", s.out.size, product.result.numpy)
        sums = f"{{{words}, {values}}}"
        self._before.append(f"clear_sums<{spec}, {kind}>({sums}, {size});")
        zero = f"{kind}(0), {kind}(0), false"
        read = f"Mapped<Identity, {kind}, {kind}, {kind}>{{{words}, {values}, {zero}}}"
        return lines, f"{{{mask}, {complement}, {size}}}", sums, read

    def _spec(
        self, A: CscMatrix, u: VectorStore, product: Product
    ) -> tuple[str, CscMatrix | None, CscMatrix | None]:
        """Add the struct of a product's types; return its name and the forms of the matrix."""
        both = is_symmetric(A) or A.csr is not None
        if not both and may_make_csr(A):
            both = csr_of(A) is not A
        incoming = A if product.transpose else csr_of(A) if both else None
        outgoing = A if not product.transpose else csr_of(A) if both else None
        if both and csr_of(A).col_ptr.dtype != A.col_ptr.dtype:  # of two widths: one form
            incoming, outgoing = (A, None) if product.transpose else (None, A)
        name = f"Product{len(self.params.structs)}"
        spec = self.params.product(product, u.dtype, A.dtype, name, **index_types(A))
        return spec, incoming, outgoing

    def _lists(self, form: CscMatrix | None, A: CscMatrix) -> str:
        """Return the initialisers of the lists that a push needs."""
        space: PushSpace | None = None if form is None else push_space(form)
        kinds = ("i32*", f"{index_types(A)['PTR']}*", "u32*", "u64*")
        arrays: tuple[Array, ...] = (None,) * 4
        if space is not None:
            arrays = (space.vertex, space.start, space.degree, space.chunks)
            self._barrier = space.barrier
        names = [self.params.add(kind, array) for kind, array in zip(kinds, arrays, strict=True)]
        return f"{{{', '.join(names[:3])}}}, {names[3]}"


def _none() -> int:
    """Return 0, the entries of a scalar before a loop; no row shows them."""
    return 0
