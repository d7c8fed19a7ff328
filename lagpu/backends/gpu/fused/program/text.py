"""The text of a generated loop's kernel.

Each statement becomes some lines of the kernel, in order, with a barrier of the grid where a
statement reads words that other threads wrote.
The text depends on operations, types and masks alone, so loops of one structure share one kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.fused.emit import (
    Arguments,
    LogLines,
    Parameters,
    Run,
    accum_type,
    column_types,
    columns_of,
    expression,
    whole_sums,
    whole_types,
)
from lagpu.backends.gpu.fused.program.order import Passes
from lagpu.backends.gpu.fused.program.passes import Operand, sizes_to_hold
from lagpu.backends.gpu.fused.scalars import KernelScalars
from lagpu.backends.gpu.kernels import Kernel, from_source
from lagpu.backends.gpu.ops.elementwise import mask_bits
from lagpu.backends.gpu.ops.strategies import sums_every_entry
from lagpu.backends.gpu.storage.forms import csr_of, is_symmetric, may_make_csr
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import index_types, push_space
from lagpu.dtypes import BOOL, DType
from lagpu.operations import (
    Descriptor,
    Handle,
    Multiply,
    MultiplySelection,
    Product,
    RecordedBody,
    Reduce,
    Statement,
)

__all__ = ["Program", "ProgramText"]

BLOCKS = 1  # of a multiprocessor: registers for each thread follow from this and its threads


class Program(NamedTuple):
    """The kernel of a generated loop, and its arguments for run after run.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    arguments : Arguments
        Those that come first.
    counters : int
        How many counters a turn of the loop has.
    """

    kernel: Kernel
    arguments: Arguments
    counters: int


class ProgramText:
    """The text of a kernel for the body of a loop, and its parameters.

    Parameters
    ----------
    statements : sequence of Statement
        The body.
    written : sequence of VectorStore
        The vectors that the loop writes, or compares with what they were.
    empty, unchanged : VectorStore or None
        The loop's condition.
    block : int
        Threads of a block.
    log : LogLines
        The lines of the log.
    handles : sequence of Handle
        Vectors and matrices that have places already; those of a record have theirs.

    Attributes
    ----------
    header : str
        The header with the functions that the text calls.
    shared : tuple of str
        Lines for the shared memory of a block of threads.
    params : Parameters
        Of the kernel, once `write` has run.
    scalars : KernelScalars
        The scalars of the body.
    """

    header = "program/program.cuh"
    shared: tuple[str, ...] = ("LG_SHARED(PutOff, later, 1);", "(void)later;")

    def __init__(
        self,
        statements: Sequence[Statement],
        written: Sequence[VectorStore],
        empty: VectorStore | None,
        unchanged: VectorStore | None,
        block: int,
        log: LogLines,
        handles: Sequence[Handle] = (),
    ) -> None:
        self._statements, self._written, self._block, self._log = statements, written, block, log
        self._empty, self._unchanged = empty, unchanged
        if isinstance(statements, RecordedBody):
            handles = statements.handles
        self.params = Parameters(handles)
        self.device = written[0].device
        self.scalars = KernelScalars(statements, self.params, self.device)
        self._before: list[str] = []  # lines that run once, before the loop
        self._held: dict[int, str] = {}  # registers of vectors that every warp holds, by `id`
        self._sizes: set[int] = set()  # of these
        self._counters = 2  # entries, changes

    def write(self, records: int) -> Program:
        """Write the text, for a log of so many records, and return the program."""
        for x in self._written:
            self.params.vector(x, written=True)
        scalars = self.scalars.opening()
        log = self._log
        if log.on:  # a record of each statement: none shares a pass
            lines = [line for s in self._statements for line in self._statement(s)]
        else:
            self._sizes = self._to_hold()
            lines = Passes(self).of(self._statements)
        before, top, end = self._condition()
        stored = self._stored()
        counters = f"kTurns * {self._counters} * kCounterStride"
        selects = any(isinstance(s.operation, MultiplySelection) for s in self._statements)
        text = "\n".join(
            [
                f'#include "{self.header}"',
                *(['#include "program/selection.cuh"'] if selects else []),
                *(['#include "program/scalars.cuh"'] if self.scalars else []),
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
                *stored,
                *self.scalars.closing(),
                "}",
            ]
        )  # fmt: skip
        macros = {"BLOCK": str(self._block), "BLOCKS": str(BLOCKS)}
        macros |= {"LOG": str(records)} if log.on else {}
        prelude = self.params.prelude.text
        kernel = from_source(text, "program", file="program.cu", prelude=prelude, **macros)
        return Program(kernel, self.params.arguments, self._counters)

    def _condition(self) -> tuple[list[str], list[str], list[str]]:
        """Return the lines of the loop's condition: before the loop, at its top and at its end."""
        if self._empty is not None and self.holds(self._empty.size):
            return [], [f"if (!warp_any({self.named(self._empty).held}.there)) break;"], []
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
        values = self.params.room(y.dtype.ctype, y.size, y.dtype.numpy)
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
        """Return the lines of one statement, and of its record in the log."""
        if isinstance(s.operation, (Multiply, MultiplySelection)):
            lines, t, logged = self._multiplied(s)
            kind = t.dtype.ctype
            source = f"Mapped<Identity, {kind}, {kind}, {kind}>"
            source += f"{{{t.words}, {t.values}, {t.number}, {kind}(0), false}}"
            return [*lines, *self._write(s.out, s.desc, t.dtype, source, logged), "warp_sync();"]
        checks = self.scalars.checks(s)
        if s.writes_scalar:
            count = self._counted(self.scalars.count(s))
            return [*checks, *self.scalars.statement(s), *count]
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
        return self.scalars.number(ctype, value)

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
        bits, complemented = self.mask_of(desc)
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

    # ---------------------------------------------------------------------- see `PassWriter`
    def named(self, x: VectorStore) -> Operand:
        """See `PassWriter`."""
        name, place = self.params.vector(x), self.params.place(x)
        number = f"{name}_iso"
        if self.holds(x.size):
            return Operand(f"{name}_words", f"{name}_values", number, x.dtype, self._hold(x))
        if not any(x is w for w in self._written) and self.params.ask(
            lambda operands: operands[place].is_number
        ):
            return Operand("", "", number, x.dtype)
        return Operand(f"{name}_words", f"{name}_values", number, x.dtype)

    def mask_of(self, desc: Descriptor) -> tuple[str, bool]:
        """See `PassWriter`."""
        m: VectorStore | None = desc.mask
        if m is None or desc.structure:
            return mask_bits(desc)
        place, rest = self.params.place(m), desc[1:]
        return self.params.ask(lambda operands: mask_bits(Descriptor(operands[place], *rest)))

    def holds(self, size: int) -> bool:
        """See `PassWriter`."""
        return size in self._sizes

    def filled(self, s: Statement) -> str:
        """See `PassWriter`."""
        return "all"

    def space(self, s: Statement) -> Any:
        """See `PassWriter`."""
        return (s.operation.operand if isinstance(s.operation, Reduce) else s.out).size

    def product(self, s: Statement) -> tuple[list[str], Operand]:
        """See `PassWriter`."""
        lines, result, _ = self._multiplied(s)
        return lines, result

    # ------------------------------------------------------------------------- held vectors
    def _to_hold(self) -> set[int]:
        """Return the sizes whose vectors every warp holds."""
        return sizes_to_hold(self._statements, [] if self._unchanged is None else [self._unchanged])

    def _hold(self, x: VectorStore) -> str:
        """Return the registers of a vector; they are loaded before the loop."""
        found = self._held.get(id(x))
        if found is None:
            found = self._held[id(x)] = f"held{len(self._held)}"
            self._before.append(f"Entry<{x.dtype.ctype}> {found} = load_held({self._place_of(x)});")
        return found

    def _stored(self) -> list[str]:
        """Return the lines after the loop that store the held vectors which it writes."""
        held = [x for x in self._written if id(x) in self._held]
        return [f"store_held({self._held[id(x)]}, {self._place_of(x)});" for x in held]

    def _place_of(self, x: VectorStore) -> str:
        name = self.params.vector(x)
        return f"{self.params.size(x.size)}, {name}_words, {name}_values, {name}_iso"

    # ----------------------------------------------------------------------------- products
    def _multiplied(self, s: Statement) -> tuple[list[str], Operand, tuple[str, ...]]:
        """Return a product's (lines, result in a vector of its own, numbers for the log)."""
        if isinstance(s.operation, Multiply):
            return self._product(s, s.operation)
        assert isinstance(s.operation, MultiplySelection)
        return self._selection(s, s.operation)

    def _product(
        self, s: Statement, operation: Multiply
    ) -> tuple[list[str], Operand, tuple[str, ...]]:
        """Return the same as `_multiplied`."""
        A, u, product = operation.matrix, operation.operand, operation.product
        params, matrix = self.params, self.params.place(operation.matrix)
        types = params.ask(lambda operands: index_types(operands[matrix].csc()))
        name = f"Product{len(params.structs)}"
        spec = params.product(product, u.dtype, A.dtype, name, **types)
        x = params.vector(u)
        lines, mask, sums, result = self._target(s, product, spec)
        place = self._counters
        self._counters += 3 + self._log.on
        adds_all = s.desc.mask is None and not s.desc.complement and sums_every_entry(product)
        kinds = [
            *("i32*", f"{types['PTR']}*", "u32*", "u64*"),
            *column_types(types, A.dtype) * 2,
            *(whole_types(types, u.dtype, product.result) if adds_all else ()),
            "u64",
        ]
        warps = self._block // 32 if adds_all else 0
        made = params.made(kinds, functools.partial(_on_forms, matrix, product, u.dtype, warps))
        lists, incoming, outgoing, whole = (
            f"{{{', '.join(part)}}}" for part in (made[:3], made[4:8], made[8:12], made[12:-1])
        )
        whole = f"MaybeWhole<{spec}>{{{whole}}}" if adds_all else f"NoWhole<{spec}>{{}}"
        pulls = f"const bool pulls{place} = " if self._log.on else ""
        lines += [
            f"{pulls}multiply_all<{spec}>({{{incoming}, {outgoing}, {made[-1]}, "
            f"{{{x}_words, {x}_values, {x}_iso}}, {params.size(u.size)}, {mask}, {sums}, "
            f"{lists}, {made[3]}}}, {whole}, now + {place} * kCounterStride, barrier, later);"
        ]
        one_way = self._log.on and None in _both_ways(A.csc(), product)
        at = f"load_volatile(at + {place} * kCounterStride)"
        logged = (
            f"pulls{place} ? kPulls : kPushes",
            f"load_volatile(at + {place + 3} * kCounterStride)",
            "kUnknown" if one_way else at,
        )
        return lines, result, logged

    def _selection(
        self, s: Statement, operation: MultiplySelection
    ) -> tuple[list[str], Operand, tuple[str, ...]]:
        """Return the same as `_multiplied`, of a product with a selection."""
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
        return lines, result, (how, f"load_volatile(at + {place} * kCounterStride)")

    def _words(self, size: int) -> str:
        """Add room for the presence words of `size` entries; return its name."""
        return self.params.room("u32", nwords(size), np.uint32)

    def _target(
        self, s: Statement, product: Product, spec: str
    ) -> tuple[list[str], str, str, Operand]:
        """Return a product's (lines of the mask, ``Mask``, ``Sums``, vector with these)."""
        lines, mask, complement = self._mask(s.desc)
        kind, size = product.result.ctype, self.params.size(s.out.size)
        words = self._words(s.out.size)
        values = self.params.room(kind, s.out.size, product.result.numpy)
        sums = f"{{{words}, {values}}}"
        self._before.append(f"clear_sums<{spec}, {kind}>({sums}, {size});")
        read = Operand(words, values, f"{kind}(0)", product.result)
        return lines, f"{{{mask}, {complement}, {size}}}", sums, read


def _on_forms(matrix: int, product: Product, u: DType, warps: int, run: Run) -> list[Any]:
    """Return the arguments of a product that belong to the forms of its matrix.

    They are the lists that a push needs, both forms, those of a sum of all entries where a block
    has any `warps`, and the number of entries.
    """
    A = run.operands[matrix].csc()
    incoming, outgoing = _both_ways(A, product)
    lists: tuple[Any, ...] = (None,) * 4
    if outgoing is not None:
        space = push_space(outgoing)
        lists = space.vertex, space.start, space.degree, space.chunks
        run.barrier = space.barrier
    given = [*lists, *columns_of(incoming, A.dtype), *columns_of(outgoing, A.dtype)]
    if warps:
        parts = run.device.xp.empty(run.blocks * warps, product.result.numpy)
        given += whole_sums(incoming, outgoing, u, parts)
    return [*given, np.uint64(A.nvals)]


def _both_ways(A: CscMatrix, product: Product) -> tuple[CscMatrix | None, CscMatrix | None]:
    """Return the forms of a product's matrix by outputs and by inputs, None if one is lacking."""
    both = is_symmetric(A) or A.csr is not None
    if not both and may_make_csr(A):
        both = csr_of(A) is not A
    incoming = A if product.transpose else csr_of(A) if both else None
    outgoing = A if not product.transpose else csr_of(A) if both else None
    if both and csr_of(A).col_ptr.dtype != A.col_ptr.dtype:  # of two widths: one form
        return (A, None) if product.transpose else (None, A)
    return incoming, outgoing
