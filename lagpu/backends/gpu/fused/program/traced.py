"""The lines of a traced loop: statements one by one, each with a record in the log.

A record says what one statement wrote, so no two of them share a pass (`order.Passes`): each is a
call of a function that goes through whole vectors in memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from lagpu.backends.gpu.fused.emit import accum_type, expression
from lagpu.backends.gpu.fused.program.operands import Logged, Operands, counted
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import DType
from lagpu.operations import (
    AssignScalar,
    Descriptor,
    Multiply,
    MultiplySelection,
    Reduce,
    Statement,
)

__all__ = ["LogLines", "Traced"]


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
