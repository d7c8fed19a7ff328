"""Write and run one cooperative kernel for the recorded body of any loop.

Where `traversal` is made for searches, this serves what is left: each statement becomes a piece of
the kernel, in order, with a barrier of the grid where one reads what other threads wrote. The text
depends on operations, types and masks alone, so loops of one structure share one kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.gpu.fused.emit import MODES, source_of
from lagpu.backends.gpu.fused.log import LogLines, LoopLog
from lagpu.backends.gpu.fused.parameters import Parameters
from lagpu.backends.gpu.fused.scalars import Cells, accum_of, why_no_cell
from lagpu.backends.gpu.kernels import Kernel, from_source
from lagpu.backends.gpu.ops import selection
from lagpu.backends.gpu.storage.forms import by_rows, can_turn, is_symmetric
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import PushSpace, index_types, push_space
from lagpu.backends.protocol import Descriptor, Product, Statement
from lagpu.dtypes import BOOL, DType
from lagpu.operations.scalar import Cell

__all__ = ["Program", "program_of", "why_no_program"]

LINE = 16  # u64 a counter, as kFar in program/program.cuh
FOREVER = 2**64 - 1
# Threads of a block, and blocks of a multiprocessor: registers for each thread follow from both.
BLOCK, BLOCKS, SIM_BLOCK = 1024, 1, 256
Array = Any


def program_of(
    statements: list[Statement], until_empty: VectorStore | None, unchanged: VectorStore | None
) -> Program | str:
    """Return the program of a loop's body, or why there is none."""
    return why_no_program(statements) or Program(statements, until_empty, unchanged)


def why_no_program(statements: list[Statement]) -> str:
    """Return why statements cannot be a program, or nothing."""
    for s in statements:
        why = _misfit(s)
        if why:
            return why
    if all(type(s.w) is Cell for s in statements):
        return "no vector is written"
    return why_no_cell(statements)


def _misfit(s: Statement) -> str:
    """Return why a statement cannot be a piece of a program, or nothing."""
    if s.method in ("assign_scalar", "assign", "extract"):
        return f"{s.method} has indices" if s.args[1] is not None else ""
    if s.method == "mxv":
        A, u, how = s.args
        if how.kernel is not None or how.policy is not None:
            return "the author chose the kernel"
        if max(A.shape) >= 2**31:
            return "the matrix has more than 2**31 rows or columns"
        return "" if u.size and s.w.size else "the matrix has no rows or no columns"
    if s.method == "mxv_selection":
        return selection.why_no_piece(s)
    if s.method in ("apply", "select", "reduce", "constant", *MODES):
        return ""
    return f"{s.method} is no piece of a program yet"


class Program:
    """The text of a kernel, its arguments, and the vectors it writes.

    Parameters
    ----------
    statements : list of Statement
        The body; each has passed `program_of`.
    until_empty, unchanged : VectorStore or None
        The loop's condition.

    Attributes
    ----------
    header : str
        What has the pieces.
    shared : tuple of str
        Lines for the shared memory of a block of threads.
    one_way : str
        Why a product has no direction to choose.
    """

    header = "program/program.cuh"
    shared: tuple[str, ...] = ("LG_SHARED(PutOff, later, 1);", "(void)later;")
    one_way = "the matrix has no other form"

    def __init__(
        self,
        statements: list[Statement],
        until_empty: VectorStore | None,
        unchanged: VectorStore | None,
    ) -> None:
        self._statements = statements
        self._until_empty, self._unchanged = until_empty, unchanged
        watched = [x for x in (until_empty, unchanged) if x is not None]
        outputs = [s.w for s in statements if type(s.w) is not Cell]
        self.written = list({id(x): x for x in [*outputs, *watched]}.values())
        self.device = self.written[0].device
        self._params = Parameters(self.written)
        self._cells = Cells(statements, self._params, self.device)
        self._before: list[str] = []  # what is done once, before the loop
        self._counters = 2  # entries, changes
        self._barrier: Array = None

    # ---------------------------------------------------------------------------- running
    def run(self, times: int | None, log: LoopLog | None = None) -> None:
        """Run the loop to its end; nothing is waited for, unless a scalar may lack its value."""
        if log is not None:
            log.count()
        for x in self.written:
            x.to_writable()
        self._log = LogLines(len(self._statements), log is not None)
        kernel = self._kernel(0 if log is None else log.capacity)
        xp = self.device.xp
        barrier = self._barrier
        if barrier is None:
            barrier = xp.zeros(32, np.uint32)
        block = SIM_BLOCK if self.device.name == "sim" else BLOCK
        grid = self.device.max_cooperative_blocks(kernel, block)
        counters = xp.empty(3 * self._counters * LINE, np.uint64)
        times = FOREVER if times is None else times
        given = self._params.arguments(grid)
        self.device.launch(
            kernel, grid * block, *given, np.uint64(times), counters, barrier,
            *(() if log is None else (log.words, log.is_new)), block=block, cooperative=True,
        )  # fmt: skip
        if log is not None:
            log.ran_program(self.one_way)
        for x in self.written:
            x.counted(None)
            x.forget()
        self._cells.ran()

    def _kernel(self, records: int) -> Kernel:
        """Write the text."""
        for x in self.written:
            self._params.vector(x)
        scalars = self._cells.opening()
        pieces = [line for s in self._statements for line in self._statement(s)]
        log = self._log
        before, top, end = self._condition()
        counters = f"3 * {self._counters} * kFar"
        selects = any(s.method == "mxv_selection" for s in self._statements)
        text = "\n".join(
            [
                f'#include "{self.header}"',
                *(['#include "program/selection.cuh"'] if selects else []),
                *(['#include "program/scalars.cuh"'] if self._cells else []),
                *self._params.structs,
                'extern "C" __global__ void __launch_bounds__(LG_BLOCK, LG_BLOCKS)',
                "program(" + ", ".join([*self._params.text, "u64 times", "u64* counters",
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
                f"u64* const now = counters + turn % 3 * {self._counters} * kFar;",
                f"u64* const next = counters + (turn + 1) % 3 * {self._counters} * kFar;",
                f"if (block_index() == 0 && block_thread() < {self._counters}) "
                "next[block_thread() * kFar] = 0;",
                *top,
                *pieces,
                *end,
                "}",
                *log.closing(self._counters),
                *self._cells.closing(),
                "}",
            ]
        )  # fmt: skip
        block = SIM_BLOCK if self.device.name == "sim" else BLOCK
        macros = {"BLOCK": str(block), "BLOCKS": str(BLOCKS)}
        macros |= {"LOG": str(records)} if log.on else {}
        prelude = "".join(self._params.functors)
        return from_source(text, "program", file="program.cu", prelude=prelude, **macros)

    def _condition(self) -> tuple[list[str], list[str], list[str]]:
        """Return what is done before the loop, at its top and at its end."""
        if self._until_empty is not None:
            x = self._params.vector(self._until_empty)
            top = [
                f"count_entries({self._params.size(self._until_empty.size)}, {x}_words, now);",
                "grid_sync(barrier);",
                *self._log.at_top(self._counters),
                "if (load_volatile(now) == 0) break;",
            ]
            return [], top, self._log.behind()
        if self._unchanged is None:
            return [], [], ["grid_sync(barrier);", *self._log.at_end()] if self._log.on else []
        y = self._unchanged
        x = self._params.vector(y)
        words = self._words(y.size)
        values = self._room(f"{y.dtype.ctype}*", y.size, y.dtype.numpy)
        where = f"{self._params.size(y.size)}, {x}_words, {x}_values, {words}, {values}"
        end = [
            f"remember({where}, now + kFar);",
            "grid_sync(barrier);",
            *self._log.at_end(),
            "if (load_volatile(now + kFar) == 0) break;",
        ]
        return [f"remember({where}, (u64*)nullptr);"], [], end

    # --------------------------------------------------------------------------- statements
    def _statement(self, s: Statement) -> list[str]:
        """Return the lines of one statement."""
        if s.method == "mxv":
            return self._product(s)
        if s.method == "mxv_selection":
            return self._selection(s)
        checks = self._cells.checks(s)
        if type(s.w) is Cell:
            return [*checks, *self._cells.statement(s), *self._counted(self._cells.count(s))]
        z, source = self._source(s)
        return [*checks, *self._write(s.w, s.desc, z, source), "warp_sync();"]

    def _source(self, s: Statement) -> tuple[DType, str]:
        """Return the type of an element-wise statement's results and what makes them."""
        return source_of(s, self._params, self._cells)

    def _write(
        self,
        w: VectorStore,
        desc: Descriptor,
        z: DType,
        source: str,
        logged: tuple[str, ...] = (),
    ) -> list[str]:
        """Return the lines that write what `source` makes into `w`; a log has `logged` of it."""
        lines, mask, complement = self._mask(desc)
        accum = accum_of(self._params, desc, w.dtype, z)
        x, kind = self._params.vector(w), w.dtype.ctype
        replace = "true" if desc.replace else "false"
        out = f"Output<{kind}>{{{x}_words, {x}_values, {mask}, {complement}, {replace}, nullptr}}"
        total = f"write_all<{accum}, {z.ctype}>({self._params.size(w.size)}, {out}, {source})"
        if not self._log.on:
            return [*lines, f"{total};"]
        return [*lines, *self._counted(total, *logged)]

    def _counted(
        self, total: str, how: str = "kWrites", edges: str = "kUnknown", leaving: str = "kUnknown"
    ) -> list[str]:
        """Return the lines that log how many entries a statement leaves, and more of a product."""
        if not self._log.on:
            return []
        self._counters += 1
        return self._log.written(total, self._counters - 1, how, edges, leaving)

    def _mask(self, desc: Descriptor) -> tuple[list[str], str, str]:
        """Return (lines that prepare it, presence words, complement) of a mask."""
        m: VectorStore | None = desc.mask
        complement = "true" if desc.complement else "false"
        if m is None:
            return [], "(const u32*)nullptr", "false"
        if not any(m is x for x in self.written):
            m.readable()
            if not desc.structure and m.values is None:
                if not m.number and m.nvals:  # all entries are zero, so none is kept
                    return [], "(const u32*)nullptr", "false" if desc.complement else "true"
                return [], f"{self._params.vector(m)}_words", complement
        x = self._params.vector(m)
        if desc.structure:
            return [], f"{x}_words", complement
        true = self._words(m.size)
        size = self._params.size(m.size)
        lines = [f"write_true_bits({size}, {x}_words, {x}_values, {true});", "warp_sync();"]
        return lines, true, complement

    # ----------------------------------------------------------------------------- products
    def _product(self, s: Statement) -> list[str]:
        """Return the lines of a product: into a vector of its own, then from there into `w`."""
        A, u, how = s.args
        spec, incoming, outgoing = self._spec(A, u, how)
        x = self._params.vector(u)
        lines, mask, sums, result = self._target(s, spec)
        place = self._counters
        self._counters += 3 + self._log.on
        lists = self._lists(outgoing, A)
        forms = [self._columns(form, A) for form in (incoming, outgoing)]
        pulls = f"const bool pulls{place} = " if self._log.on else ""
        lines += [
            f"{pulls}multiply_all<{spec}>({{{forms[0]}, {forms[1]}, "
            f"{self._params.add('u64', np.uint64(A.nvals))}, {{{x}_words, {x}_values, {x}_iso}}, "
            f"{self._params.size(u.size)}, {mask}, {sums}, {lists}}}, "
            f"now + {place} * kFar, barrier, later);"
        ]
        at = f"load_volatile(at + {place} * kFar)"
        logged = (
            f"pulls{place} ? kPulls : kPushes",
            f"load_volatile(at + {place + 3} * kFar)",
            "kUnknown" if incoming is None or outgoing is None else at,
        )
        return [*lines, *self._write(s.w, s.desc, how.result, result, logged), "warp_sync();"]

    def _selection(self, s: Statement) -> list[str]:
        """Return the lines of a product with a selection, as those of `_product`."""
        _, u, how = s.args
        spec = self._params.product(how, u.dtype, BOOL)
        lines, mask, sums, result = self._target(s, spec)
        place = self._counters
        self._counters += self._log.on
        looked_at = f"now + {place} * kFar" if self._log.on else "(u64*)nullptr"
        lines.append(selection.piece(self._params, spec, s, mask, sums, looked_at))
        logged = "kPulls" if how.transpose else "kPushes", f"load_volatile(at + {place} * kFar)"
        return [*lines, *self._write(s.w, s.desc, how.result, result, logged), "warp_sync();"]

    def _words(self, size: int) -> str:
        """Add room for the presence words of so many entries; return its name."""
        return self._room("u32*", nwords(size), np.dtype(np.uint32))

    def _room(self, kind: str, count: int, dtype: np.dtype[Any]) -> str:
        """Add room for so many numbers, which the kernel knows as `kind`; return its name."""
        self.device.require(count * dtype.itemsize, "fused loop")
        return self._params.add(kind, self.device.xp.empty(count, dtype))

    def _target(self, s: Statement, spec: str) -> tuple[list[str], str, str, str]:
        """Return the lines of a product's mask, its ``Mask``, its ``Sums``, and what reads them."""
        lines, mask, complement = self._mask(s.desc)
        result = s.args[2].result
        kind, size = result.ctype, self._params.size(s.w.size)
        words = self._words(s.w.size)
        values = self._room(f"{kind}*", s.w.size, result.numpy)
        sums = f"{{{words}, {values}}}"
        self._before.append(f"clear_sums<{spec}, {kind}>({sums}, {size});")
        zero = f"{kind}(0), {kind}(0), false"
        read = f"Mapped<Identity, {kind}, {kind}, {kind}>{{{words}, {values}, {zero}}}"
        return lines, f"{{{mask}, {complement}, {size}}}", sums, read

    def _spec(
        self, A: MatrixStore, u: VectorStore, how: Product
    ) -> tuple[str, MatrixStore | None, MatrixStore | None]:
        """Add the struct of a product's types; return its name and the forms of the matrix."""
        both = is_symmetric(A) or A.rows is not None
        if not both and can_turn(A):
            both = by_rows(A) is not A
        incoming = A if how.transpose else by_rows(A) if both else None
        outgoing = A if not how.transpose else by_rows(A) if both else None
        types = index_types(A)
        if both and by_rows(A).col_ptr.dtype != A.col_ptr.dtype:  # of two widths: one form
            incoming, outgoing = (A, None) if how.transpose else (None, A)
        return self._params.product(how, u.dtype, A.dtype, **types), incoming, outgoing

    def _columns(self, form: MatrixStore | None, A: MatrixStore) -> str:
        """Return the initialiser of a form's ``Columns``."""
        types = index_types(A)
        ptr, idx, values = (
            (None, None, None) if form is None else (form.col_ptr, form.row_idx, form.values)
        )
        number = A.dtype.numpy.type(0) if form is None else form.number
        parts = (
            self._params.add(f"const {types['PTR']}*", ptr),
            self._params.add(f"const {types['IDX']}*", idx),
            self._params.add(f"const {A.dtype.ctype}*", values),
            self._params.add(A.dtype.ctype, number),
        )
        return "{" + ", ".join(parts) + "}"

    def _lists(self, form: MatrixStore | None, A: MatrixStore) -> str:
        """Return the initialisers of the lists that a push needs."""
        space: PushSpace | None = None if form is None else push_space(form)
        kinds = ("i32*", f"{index_types(A)['PTR']}*", "u32*", "u64*")
        arrays: tuple[Array, ...] = (None,) * 4
        if space is not None:
            arrays = (space.vertex, space.start, space.degree, space.chunks)
            self._barrier = space.barrier
        names = [self._params.add(kind, array) for kind, array in zip(kinds, arrays, strict=True)]
        return f"{{{', '.join(names[:3])}}}, {names[3]}"
