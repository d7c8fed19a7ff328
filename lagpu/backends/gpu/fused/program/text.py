"""The text of a generated loop's kernel, and what decides it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Semiring, UnaryOp
from lagpu.backends.gpu.fused.emit import Arguments, accum_type, expression
from lagpu.backends.gpu.fused.program.operands import Logged, Operands, counted
from lagpu.backends.gpu.fused.program.passes import Passes
from lagpu.backends.gpu.kernels import Kernel, from_source
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import DType
from lagpu.operations import (
    AssignScalar,
    Descriptor,
    Handle,
    Multiply,
    MultiplySelection,
    Reduce,
    ScalarRef,
    ScalarValue,
    Statement,
)


class LogLines:
    """The lines by which a generated loop logs its statements; none without a log.

    Parameters
    ----------
    statements : int
        How many the body has.
    on : bool
        Whether there is a log.
    """

    def __init__(self, statements: int, on: bool) -> None:
        self._on, self._statements = on, statements
        self._fills: list[str] = []

    def written(self, total: str, counter: int, logged: Logged) -> list[str]:
        """Return lines that run `total`, count the entries it wrote, and stamp its record."""
        k, many = len(self._fills), self._statements
        self._fills.append(
            f"log->fill({k}, {many}, {counted(counter)}, {logged.edges}, {logged.frontier_edges});"
        )
        return [
            f"add_total({total}, now + {counter} * kCounterStride);",
            f"if (global_thread() == 0) log->stamp({k}, {many}, depth, {logged.how});",
        ]

    def params(self) -> list[str]:
        """Return the kernel's last parameters."""
        return self._if_on("u64* log_words", "bool log_is_new")

    def opening(self) -> list[str]:
        """Return the lines before the loop; call it after all statements are written."""
        return self._if_on(
            "LG_SHARED(LoopLog, log, 1);",
            "if (global_thread() == 0) log->open(log_words, log_is_new);",
            "bool open = false;",
            "const auto flush = [&](const u64* at) {",
            "open = false;",
            "if (global_thread() != 0) return;",
            *self._fills,
            f"log->next({self._statements});",
            "};",
        )

    def at_top(self, counters: int) -> list[str]:
        """Return the lines after the barrier at the top of an iteration."""
        before = f"counters + (turn + 2) % kTurns * {counters} * kCounterStride"
        return self._if_on(f"if (open) flush({before});", "block_sync();")

    def at_end(self) -> list[str]:
        """Return the lines after the barrier at the end of an iteration."""
        return self._if_on("flush(now);", "block_sync();")

    def pending(self) -> list[str]:
        """Return the last line of an iteration whose counts are complete in the next one."""
        return self._if_on("open = true;")

    def closing(self, counters: int) -> list[str]:
        """Return the lines after the loop."""
        before = f"counters + (turn + 2) % kTurns * {counters} * kCounterStride"
        return self._if_on(
            f"if (open) {{ grid_sync(barrier); flush({before}); }}",
            "if (global_thread() == 0) log->close();",
        )

    def _if_on(self, *lines: str) -> list[str]:
        return list(lines) if self._on else []


class Traced:
    """The lines of statements that have records. It is the `Writer` of them, on whole vectors.

    Parameters
    ----------
    operands : Operands
        Of the program.
    log : LogLines
        The lines of its log.
    """

    def __init__(self, operands: Operands, log: LogLines) -> None:
        self._operands, self._log = operands, log
        self.params, self._scalars = operands.params, operands.scalars
        self.number, self.counter = operands.scalars.number, operands.scalars.counter

    def of(self, statements: Iterable[Statement]) -> list[str]:
        """Return the lines of statements."""
        return [line for s in statements for line in self._statement(s)]

    def _statement(self, s: Statement) -> list[str]:
        """Return the lines of one statement, and of its record."""
        if isinstance(s.operation, (Multiply, MultiplySelection)):
            lines, t, logged = self._operands.product(s)
            kind = t.dtype.ctype
            source = f"Mapped<Identity, {kind}, {kind}, {kind}>"
            source += f"{{{t.words}, {t.values}, {t.number}, {kind}(0), false}}"
            return [*lines, *self._write(s.out, s.desc, t.dtype, source, logged)]
        checks = self._scalars.checks(s)
        if s.writes_scalar:
            lines = self._scalar(s)
            return [*checks, *lines, *self._counted(self._scalars.count(s), Logged())]
        z, source = expression(s, self)
        if isinstance(s.operation, AssignScalar):
            source = self._operands.filling(s, source)
        return [*checks, *self._write(s.out, s.desc, z, source, Logged())]

    def _scalar(self, s: Statement) -> list[str]:
        """Return the lines of a statement that writes a scalar."""
        operation, scalars = s.operation, self._scalars
        if not isinstance(operation, Reduce):
            return [scalars.constant(s)]
        u, params = operation.operand, self.params
        entries, add = params.entries(u), params.prelude.functor(operation.monoid)
        what = f"{params.size(u.size)}, {entries}, {scalars.new_parts()}, barrier"
        return [scalars.writes(s, f"reduce_all<{add}, {s.dtype.ctype}>({what})")]

    def _write(
        self, w: VectorStore, desc: Descriptor, z: DType, source: str, logged: Logged
    ) -> list[str]:
        """Return the lines that write the results of `source`, of type `z`, into `w`."""
        lines, mask, complement = self._operands.mask_words(desc)
        accum = accum_type(self.params, desc, w.dtype, z)
        x, kind = self.params.vector(w), w.dtype.ctype
        replace = str(desc.replace).lower()
        out = f"Output<{kind}>{{{x}_words, {x}_values, {mask}, {complement}, {replace}, nullptr}}"
        total = f"write_all<{accum}, {z.ctype}>({self.params.size(w.size)}, {out}, {source})"
        return [*lines, *self._counted(total, logged), "warp_sync();"]

    def _counted(self, total: str, logged: Logged) -> list[str]:
        """Return the lines that run `total`, which returns entries written, and log it."""
        return self._log.written(total, self._operands.new_counters(1), logged)

    # ----------------------------------------------------------------------- see `Writer`
    def operand(self, x: VectorStore) -> str:
        """See `Writer`: where the whole vector is."""
        return self.params.entries(x)

    def constant(self, ctype: str, value: str) -> str:
        """See `Writer`."""
        return f"Filled<{ctype}>{{{value}}}"

    def call(self, name: str, types: str, args: str) -> str:
        """See `Writer`: the struct that computes the results of a whole vector."""
        struct = {"mapped": "Mapped", "selected": "Selected", "combined": "Combined"}[name]
        return f"{struct}<{types}>{{{args}}}"


# ------------------------------------------------------------------------------------------
# The text of a generated loop's kernel.
#
# Each statement becomes some lines of the kernel, in order, with a barrier of the grid where a
# statement reads words that other threads wrote: `order.Passes` makes the lines of statements, or
# `traced.Traced` those of a traced loop, and both name what they read by `operands.Operands`. The
# text depends on operations, types and masks alone, so loops of one structure share one kernel.


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
        How many counters an iteration has.
    """

    kernel: Kernel
    arguments: Arguments
    counters: int


class ProgramText:
    """The text of a kernel for the body of a loop.

    Parameters
    ----------
    statements : sequence of Statement
        The body.
    operands : Operands
        What the statements name; parameters, counters and lines are added to it.
    empty, unchanged : VectorStore or None
        The loop's condition.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        operands: Operands,
        empty: VectorStore | None,
        unchanged: VectorStore | None,
    ) -> None:
        self._statements, self.operands = statements, operands
        self._empty, self._unchanged = empty, unchanged
        self._log = LogLines(len(statements), operands.traced)

    def write(self, records: int) -> Program:
        """Write the text, for a log of so many records, and return the program."""
        operands, log = self.operands, self._log
        params = operands.params
        body = Traced(operands, log) if operands.traced else Passes(operands)
        lines = body.of(self._statements)
        before, top, end = self._condition()
        after = operands.after()
        counters = f"{operands.counters} * kCounterStride"
        selects = any(isinstance(s.operation, MultiplySelection) for s in self._statements)
        text = "\n".join(
            [
                f'#include "{operands.header}"',
                *(['#include "program/selection.cuh"'] if selects else []),
                *(['#include "program/scalars.cuh"'] if operands.scalars else []),
                *params.structs,
                'extern "C" __global__ void __launch_bounds__(LG_BLOCK, LG_BLOCKS)',
                "program(" + ", ".join([*params.text, "u64 times", "u64* counters",
                                        "GridBarrier* barrier", "const u64* stop",
                                        *log.params()]) + ") {",
                *operands.shared,
                f"u64* const flags = counters + kTurns * {counters};",
                "for (u64* k = counters + global_thread(); k < flags + 2; k += global_threads()) "
                "*k = 0;",
                *before,
                *operands.before,
                *log.opening(),
                "grid_sync(barrier);",
                "u32 turn = 0;",
                "for (u64 depth = 0; depth != times; ++depth, ++turn) {",
                f"u64* const now = counters + turn % kTurns * {counters};",
                f"u64* const next = counters + (turn + 1) % kTurns * {counters};",
                f"for (u32 k = global_thread(); k < {counters}; "
                "k += global_threads()) next[k] = 0;",
                *top,
                *lines,
                *end,
                "}",
                *log.closing(operands.counters),
                *after,
                "}",
            ]
        )  # fmt: skip
        macros = {"BLOCK": str(operands.block), "BLOCKS": str(BLOCKS)}
        macros |= {"LOG": str(records)} if operands.traced else {}
        prelude = params.prelude.text
        kernel = from_source(text, "program", file="program.cu", prelude=prelude, **macros)
        return Program(kernel, params.arguments, operands.counters)

    def _condition(self) -> tuple[list[str], list[str], list[str]]:
        """Return the lines of the loop's condition: before the loop, at its top and at its end.

        They have the barriers of an iteration, after which a log is written. There the loop looks
        now and then whether the host stops it; without one it needs a barrier for that.
        """
        look = "if (looks(turn)) set_stop(stop, stop_flag(flags, turn, kStopEvery));"
        leave = "if (looks(turn) && load_volatile(stop_flag(flags, turn, kStopEvery))) break;"
        alone = [
            "if (looks_alone(turn)) {",
            "u64* const flag = stop_flag(flags, turn, kStopEveryAlone);",
            "set_stop(stop, flag);",
            "grid_sync(barrier);",
            "if (load_volatile(flag)) break;",
            "}",
        ]
        operands, log = self.operands, self._log
        params = operands.params
        if self._empty is not None and operands.holds(self._empty.size):
            held = operands.named(self._empty).held
            return [], [f"if (!warp_any({held}.there)) break;", *alone], []
        if self._empty is not None:
            x = params.vector(self._empty)
            top = [
                look,
                f"count_entries({params.size(self._empty.size)}, {x}_words, now);",
                "grid_sync(barrier);",
                *log.at_top(operands.counters),
                "if (load_volatile(now) == 0) break;",
                leave,
            ]
            return [], top, log.pending()
        if self._unchanged is None:
            return [], alone, ["grid_sync(barrier);", *log.at_end()] if operands.traced else []
        y = self._unchanged
        x = params.vector(y)
        words = operands.new_words(y.size)
        values = params.room(y.dtype.ctype, y.size, y.dtype.numpy)
        where = f"{params.size(y.size)}, {x}_words, {x}_values, {words}, {values}"
        end = [
            look,
            f"remember({where}, now + kCounterStride);",
            "grid_sync(barrier);",
            *log.at_end(),
            "if (load_volatile(now + kCounterStride) == 0) break;",
            leave,
        ]
        return [f"remember({where}, (u64*)nullptr);"], [], end


# ------------------------------------------------------------------------------------------
# What decides the text of a program: two bodies with one signature have the same text.
#
# A record keeps its program (`RecordedBody`), but a loop with scalars is not kept as a record,
# and writing the text takes longer than a short loop runs. So programs of such loops are kept by
# this.


# Parts of a statement that are their own signature; others are numbers, scalars or handles.
_ITSELF = frozenset(
    {type(None), str, bool, BinaryOp, DType, IndexUnaryOp, Monoid, Semiring, UnaryOp}
)


def signature(
    statements: Sequence[Statement], *ends: VectorStore | None
) -> tuple[tuple[Any, ...], list[Handle]]:
    """Return (the signature, vectors and matrices in their order) of a body and its condition.

    The signature has operators and types themselves, and numbers by their bits.
    """
    handles: list[Handle] = []
    places: dict[int, int] = {}
    scalars: list[Any] = []

    def scalar(x: ScalarValue) -> Any:
        place = places.get(id(x))
        if place is None:
            place = places[id(x)] = -1 - len(scalars)
            scalars.append((x.dtype, x.location is None and x.get() is not None))
        return place

    def part(x: Any) -> Any:
        if type(x) in _ITSELF:
            return x
        place = places.get(id(x))
        if place is not None:
            return place
        if isinstance(x, np.generic):
            return x.dtype.char, x.tobytes()
        if type(x) is ScalarRef:
            return scalar(x.scalar), x.dtype
        if type(x) is ScalarValue:
            return scalar(x)
        if isinstance(x, tuple):
            return type(x), *map(part, x)
        place = places[id(x)] = len(handles)
        handles.append(x)
        return place

    body = tuple(map(part, statements))
    parts = (*body, *map(part, ends))
    return (*parts, *((type(x), x.dtype, x.shape) for x in handles), *scalars), handles
