"""The text of a generated loop's kernel.

Each statement becomes some lines of the kernel, in order, with a barrier of the grid where a
statement reads words that other threads wrote: `order.Passes` makes the lines of statements, or
`traced.Traced` those of a traced loop, and both name what they read by `operands.Operands`.
The text depends on operations, types and masks alone, so loops of one structure share one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lagpu.backends.gpu.fused.emit import Arguments
from lagpu.backends.gpu.fused.program.operands import Operands
from lagpu.backends.gpu.fused.program.order import Passes
from lagpu.backends.gpu.fused.program.traced import LogLines, Traced
from lagpu.backends.gpu.kernels import Kernel, from_source
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.operations import MultiplySelection, Statement

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
