"""The text of a generated loop's kernel, and which statements share a pass."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

import lagpu.operations as ops
from lagpu.algebra.tables import monoid
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.kernels import Kernel, from_source
from lagpu.backends.gpu.storage.stores import VectorStore
from lagpu.dtypes import DType, lookup
from lagpu.operations import Descriptor, Handle, Statement, Statements, operands_of

WORDS = 4  # at once, as kWords of common/entries.cuh
BYTES = 32  # of one index that a thread may hold for so many words; for more bytes fewer words
PRESENCE, VALUE = 1, 2  # what statements need of an entry as it is before the pass


class _Entry:
    """A vector of a pass, and the variables that it has in the lines, each with its suffix.

    For each word ``k``: ``b``, the presence bits before the pass; ``w``, a bound of those by now;
    ``a``, those after the pass, if it is written. For each index: ``x``, the entry before the pass,
    for several words at once; ``e``, the entry by now; ``c``, whether its value has changed.
    """

    def __init__(self, suffix: int, operand: emit.Operand) -> None:
        self.suffix, self.operand = suffix, operand
        self.kind = operand.dtype.ctype
        self.constant = not operand.values  # whether it is a number at every index
        self.needed = 0  # or PRESENCE, or VALUE and presence
        self.known = False  # whether ``e`` has the value by now: it is loaded, or all is replaced
        self.written = False

    def need(self, what: int) -> None:
        """Require the presence of the entry as it is by now, or its value too."""
        if not self.known:
            self.needed = max(self.needed, what)
            self.known = what == VALUE


def index_in(listed: Any, params: emit.Parameters) -> str:
    place = params.place(listed)
    return params.made(["i64"], lambda run: [np.int64(run.handles[place][0])])[0]


class Pass(emit.Writer):
    """Statements over one index space, on registers, and the `Writer` of them."""

    def __init__(self, operands: emit.Operands, like: VectorStore) -> None:
        self.params, self._operands = operands.params, operands
        self._n = operands.params.size(like.size)
        self._index = operands.at(like)
        self.at = f"{self._index}, 0"
        self._entries: dict[int, _Entry] = {}
        self._by_word: list[str] = []  # lines that find where there is something to do: ``work``
        self._by_index: list[str] = []  # lines that do it
        self._before: list[str] = []  # lines before the pass
        self.sums: list[str] = []  # lines that leave a block's parts of sums, whole after a barrier

    # ------------------------------------------------------------------------ statements
    def add(self, s: Statement, result: emit.Operand | None = None) -> None:
        """Add an element-wise statement, or a product's, whose result is given."""
        if result is None:
            some = self._candidates(s)
            z, t = emit.expression(s, self)
        else:
            e = self._new_entry(id(result), result)
            z, t, some = result.dtype, self._read(e), f"w{e.suffix}"
        self._write(s, z, t, some)

    def sum(self, s: Statement, operation: Any, name: str) -> str:
        """Add the sum of a vector, or of one entry; return the ``Entry`` it is after a barrier."""
        e = self._vector(operation.operand)
        x, z = self._read(e), s.dtype.ctype
        bits, kept, add = "all", "true", monoid.any
        if isinstance(operation, ops.Reduce):
            add = operation.monoid
        else:
            bits, kept = self._one(self.params.number("i64", operation.position[0]))
        functor = self.params.prelude.functor(add)
        self._by_word.append(f"work |= w{e.suffix} & {bits};")
        self._by_index.append(
            f"if (here[q] && {kept} && {x}.there) {name} = "
            f"join<{functor}>({name}, Entry<{z}>{{true, cast<{z}>({x}.value)}});"
        )
        self._before.append(f"Entry<{z}> {name}{{false, {z}(0)}};")
        return self._total(name, functor, z)

    def _total(self, name: str, functor: str, z: str) -> str:
        """Return the sum of what every thread has under a name."""
        parts = self._operands.scalars.new_parts()
        self.sums.append(f"leave_sum<{functor}>({name}, {parts});")
        return f"sum_of_blocks<{functor}, {z}>({parts})"

    def _candidates(self, s: Statement) -> str:
        """Return the bits of word ``k`` where a statement may have results, at most."""
        operation = s.operation
        if isinstance(operation, ops.AssignScalar):
            return self._operands.filled(s)
        words = [f"w{self._vector(x).suffix}" for x in operands_of(operation)]
        both = isinstance(operation, ops.Ewise) and operation.kind == "ewise_mult"
        return (" & " if both else " | ").join(words)

    def _write(self, s: Statement, z: DType, t: str, some: str) -> None:
        """Add the lines that write results `t` of type `z`, at most at the bits `some`."""
        desc, w = s.desc, self._vector(s.out)
        where = s.operation.indices if isinstance(s.operation, ops.AssignScalar) else None
        fresh = desc.is_fresh and where is None
        i = "" if where is None else index_in(where[0], self.params)
        bits, kept = self._mask(desc) if where is None else self._one(i)
        accum = emit.accum_type(self.params, desc, s.out.dtype, z)
        if desc.accum is not None:
            w.need(VALUE)
        elif not fresh:
            w.need(PRESENCE)
        replace, x = str(desc.replace).lower(), f"w{w.suffix}"
        self._by_word += [
            "{",
            f"const u32 kept = {bits}, some = ({some}) & kept;",
            f"{x} = staying<{accum}>({x}, kept, ~0u, {replace}) | some;",
            "work |= some;",
            "}",
        ]
        self._by_index += [
            "{",
            f"const Entry<{z.ctype}> t = {self._guarded(s, z, t, kept)};",
            f"write_here<{accum}>(e{w.suffix}, c{w.suffix}, t, {kept}, {replace}, {self._index});",
            "}",
        ]
        w.known = w.known or fresh
        w.written = True

    def _guarded(self, s: Statement, z: DType, t: str, kept: str) -> str:
        """Return the result `t`; a user's function may be undefined at other indices."""
        of = s.operation.function if isinstance(s.operation, ops.Apply) else s.operation
        op = getattr(of, "op", None)
        if op is None or not op.of_numbers:
            return t
        return f"here[q] && {kept} ? {t} : Entry<{z.ctype}>{{false, {z.ctype}(0)}}"

    def _one(self, i: str) -> tuple[str, str]:
        """Return what one index keeps, as `_mask` does."""
        return f"(k == {i} / LG_WARP ? 1u << {i} % LG_WARP : 0u)", f"(at == {i})"

    def _mask(self, desc: Descriptor) -> tuple[str, str]:
        """Return what a mask keeps: the bits of word ``k``, and whether it keeps the index."""
        if desc.mask is None:
            return "all", "true"
        where, complement = self._operands.mask_of(desc)
        if where == "nowhere":
            return ("0u", "false") if complement else ("all", "true")
        m = self._vector(desc.mask)
        bits, there = f"w{m.suffix}", f"e{m.suffix}.there"
        if where == "values":
            there = f"({there} && cast<bool>({self._read(m)}.value))"
            self._by_word.append(f"work |= {bits};")
        else:
            m.need(PRESENCE)
        return (f"all & ~{bits}", f"!{there}") if complement else (f"all & {bits}", there)

    # --------------------------------------------------------------------------- vectors
    def _vector(self, x: VectorStore) -> _Entry:
        found = self._entries.get(id(x))
        return found or self._new_entry(id(x), self._operands.named(x))

    def _new_entry(self, key: int, operand: emit.Operand) -> _Entry:
        made = self._entries[key] = _Entry(len(self._entries), operand)
        return made

    def _read(self, e: _Entry) -> str:
        """Return the name of an entry, and require its value as it is by now."""
        e.need(VALUE)
        return f"e{e.suffix}"

    def operand(self, x: VectorStore) -> str:
        return self._read(self._vector(x))

    # ------------------------------------------------------------------------------ text
    def lines(self) -> list[str]:
        """Return the lines of the pass; parts of sums are left in memory."""
        entries = list(self._entries.values())
        written = [e for e in entries if e.written]
        stored = [(e.suffix, e.operand) for e in written]
        loads = [e for e in entries if e.needed and not e.constant]
        held = sum(e.operand.dtype.numpy.itemsize for e in loads if e.needed == VALUE)
        words = WORDS if held <= BYTES else WORDS // 2 if held <= 2 * BYTES else 1
        return [
            *self._before,
            f"each_tile({self._n}, [&](i64 k, bool mine) {{",
            f"const u32 all = mine ? entry_bits(nullptr, k, {self._n}) : 0;",
            "(void)all;",
            *(self._word(e) for e in entries),
            "u32 work = 0;",
            *self._by_word,
            *(f"u32 a{e.suffix} = w{e.suffix} & ~work;" for e in written),
            f"each_words<{words}>(work, k, [&](const u32(&from)[{words}], "
            f"const i64(&i)[{words}]) {{",
            f"bool here[{words}];",
            *(f"Entry<{e.kind}> x{e.suffix}[{words}];" for e in loads),
            "#pragma unroll",
            f"for (u32 q = 0; q < {words}; ++q) {{",
            "const u32 lane = from[q] % LG_WARP;",
            "here[q] = from[q] < LG_WARP && warp_shfl(work, lane) >> lane_id() & 1;",
            *(self._load(e) for e in loads),
            "}",
            "#pragma unroll",
            f"for (u32 q = 0; q < {words}; ++q) {{",
            "const i64 at = i[q];",
            *(self._register(e) for e in entries),
            *(f"bool c{e.suffix} = false;" for e in written),
            *self._by_index,
            *(line for e in written for line in self._store(e)),
            "}",
            "});",
            *(f"if (a{k} != b{k}) {x.words}[k] = a{k};" for k, x in stored),
            "});",
            "warp_sync();",
            *self.sums,
        ]

    def _word(self, e: _Entry) -> str:
        if e.constant:
            return f"const u32 w{e.suffix} = all;"
        bits = f"const u32 b{e.suffix} = mine ? entry_bits({e.operand.words}, k, {self._n}) : 0;"
        return f"{bits} {'' if e.written else 'const '}u32 w{e.suffix} = b{e.suffix};"

    def _load(self, e: _Entry) -> str:
        _, values, number, *_ = e.operand
        there = f"here[q] && (word{e.suffix} >> lane_id() & 1)"
        word = f"const u32 word{e.suffix} = warp_shfl(b{e.suffix}, lane);"
        if e.needed == VALUE:
            return f"{word} x{e.suffix}[q] = load_entry({there}, {values}, {number}, i[q]);"
        return f"{word} x{e.suffix}[q] = {{{there}, {e.kind}(0)}};"

    def _register(self, e: _Entry) -> str:
        if e.constant:
            return f"const Entry<{e.kind}> e{e.suffix}{{true, {e.operand.number}}};"
        before = f" = x{e.suffix}[q]" if e.needed else f"{{false, {e.kind}(0)}}"
        return f"{'' if e.written else 'const '}Entry<{e.kind}> e{e.suffix}{before};"

    def _store(self, e: _Entry) -> list[str]:
        k = e.suffix
        return [
            f"if (here[q] && c{k} && e{k}.there) {e.operand.values}[at] = e{k}.value;",
            f"const u32 now{k} = warp_ballot(here[q] && e{k}.there);",
            f"if (lane_id() == from[q]) a{k} |= now{k};",
        ]


class HeldPass(Pass):
    """The same over at most 32 indices, each a lane of every warp: all warps have a sum at once."""

    def _total(self, name: str, functor: str, z: str) -> str:
        """See `Pass`: a warp has the whole sum."""
        return f"warp_fold<{functor}>({name})"

    def lines(self) -> list[str]:
        entries = list(self._entries.values())
        written = [e.suffix for e in entries if e.written]
        return [
            *self._before,
            "{",
            "const u32 q = 0;",
            "const i64 at = lane_id();",
            f"const bool here[1] = {{at < {self._n}}};",
            "(void)here, (void)q;",
            *(f"auto& e{e.suffix} = {e.operand.held};" for e in entries),
            *(f"bool c{k} = false;" for k in written),
            *self._by_index,
            *(f"e{k}.there = e{k}.there && here[0];" for k in written),
            "}",
        ]


BARRIER = "grid_sync(barrier);"


@dataclass
class _ScalarLines:
    """Lines that give scalars values, in order, and the scalars they write and read, by `id`."""

    lines: list[str] = field(default_factory=list)
    writes: set[int] = field(default_factory=set)
    reads: set[int] = field(default_factory=set)

    def follow(self, others: _ScalarLines) -> bool:
        """Whether these lines must come after `others`, which precede them in the body."""
        return bool(self.writes & (others.writes | others.reads) or self.reads & others.writes)

    def extend(self, more: _ScalarLines) -> None:
        self.lines += more.lines
        self.writes |= more.writes
        self.reads |= more.reads


class Passes:
    """The lines of a body, with a pass for statements in a row wherever they may share one.

    They leave what the statements leave one after the other. A scalar that a pass sums has its
    value after the next barrier, which is that of a product if one comes before the first statement
    that reads the scalar. Numbers given to scalars wait with it where they read it, or write what
    lines that wait read. What may end the loop is between passes, where no sum waits.
    """

    def __init__(self, operands: emit.Operands) -> None:
        self._operands, self._scalars = operands, operands.scalars
        self._lines: list[str] = []
        self._pass: Pass | None = None  # the open one
        self._space: Any = None
        self._reads: set[int] = set()  # the scalars that it reads, by `id`
        self._after_pass = _ScalarLines()  # of statements that are in it, or follow those
        self._after_barrier = _ScalarLines()  # of passes that have ended, whose sums need one
        self._sums = 0

    def of(self, statements: Iterable[Statement]) -> list[str]:
        for s in statements:
            self._add(s)
        self._end_pass()
        self._synchronise()
        return self._lines

    def _add(self, s: Statement) -> None:
        checks = self._scalars.checks(s)
        if checks:  # they may end the loop, after all that comes before
            self._end_pass()
            self._synchronise()
            self._lines += checks
        refs = set(map(id, s.scalars_read))
        if (refs | {id(s.out)}) & self._after_barrier.writes:
            self._synchronise()
        if isinstance(s.operation, emit.PRODUCTS):
            self._end_pass()
            lines, result, _ = self._operands.product(s)
            self._add_barrier(lines)
            self._in_pass(s, s.out).add(s, result)
        elif isinstance(s.operation, emit.SUMMED):
            open_pass = self._in_pass(s, s.operation.operand)
            name = f"sum{self._sums}"
            self._sums += 1
            z = open_pass.sum(s, s.operation, name)
            self._after_pass.extend(_ScalarLines([self._scalars.writes(s, z)], {id(s.out)}))
        elif s.writes_scalar:
            self._add_computed(s, refs)
        else:
            if refs & self._after_pass.writes:
                self._end_pass()
                self._synchronise()
            self._in_pass(s, s.out).add(s)
            self._reads |= refs

    def _add_computed(self, s: Statement, refs: set[int]) -> None:
        """Add a scalar that is computed of numbers: before the open pass, or else after it."""
        this = _ScalarLines([self._scalars.computes(s)], {id(s.out)}, refs)
        if id(s.out) in self._after_barrier.reads:
            self._synchronise()
        if id(s.out) in self._reads or this.follow(self._after_pass):
            self._after_pass.extend(this)
        else:
            self._lines += this.lines

    def _in_pass(self, s: Statement, like: VectorStore) -> Pass:
        """Return the pass for a statement: the open one if that is over the same index space."""
        space = self._operands.space(s)
        if self._pass is None or space != self._space:
            self._end_pass()
            self._pass = (HeldPass if self._operands.holds(like) else Pass)(self._operands, like)
            self._space = space
        return self._pass

    def _end_pass(self) -> None:
        """Add the open pass, and scalars' lines after it: now, or after the next barrier."""
        if self._pass is not None:
            self._lines += self._pass.lines()
            if self._pass.sums or self._after_pass.follow(self._after_barrier):
                self._after_barrier.extend(self._after_pass)
            else:
                self._lines += self._after_pass.lines
        self._pass, self._space, self._after_pass = None, None, _ScalarLines()
        self._reads.clear()

    def _synchronise(self) -> None:
        """Add a barrier before the open pass if lines wait for one."""
        if self._after_barrier.lines:
            self._add_barrier(self._operands.synchronised())

    def _add_barrier(self, lines: list[str]) -> None:
        self._lines += [*lines, *self._after_barrier.lines]
        self._after_barrier = _ScalarLines()


class LogLines:
    """The lines by which a generated loop logs its statements; none without a log."""

    def __init__(self, operands: emit.Operands) -> None:
        self._operands, self._statements = operands, len(operands.statements)
        self._fills: list[str] = []

    def written(self, total: str, logged: emit.Logged) -> list[str]:
        """Return lines that run `total`, count the entries it wrote, and stamp its record."""
        counter = self._operands.new_counters(1)
        k, many, entries = len(self._fills), self._statements, emit.counted(counter)
        edges = f"{logged.edges}, {logged.frontier_edges}"
        self._fills.append(f"log->fill({k}, {many}, {entries}, {edges});")
        return [
            f"add_total({total}, now + {counter} * kCounterStride);",
            f"if (global_thread() == 0) log->stamp({k}, {many}, depth, {logged.how});",
        ]

    def params(self) -> list[str]:
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

    def at_top(self) -> list[str]:
        """Return the lines after the barrier at the top of an iteration."""
        return self._if_on(f"if (open) flush({self._before()});", "block_sync();")

    def at_end(self) -> list[str]:
        """Return the lines after the barrier at the end of an iteration."""
        return self._if_on("flush(now);", "block_sync();")

    def pending(self) -> list[str]:
        """Return the last line of an iteration whose counts are complete in the next one."""
        return self._if_on("open = true;")

    def at_break(self) -> list[str]:
        return self._if_on(f"if (open) {{ {BARRIER} flush(now); }}")

    def closing(self) -> list[str]:
        return self._if_on(
            f"if (open) {{ {BARRIER} flush({self._before()}); }}",
            "if (global_thread() == 0) log->close();",
        )

    def _if_on(self, *lines: str) -> list[str]:
        return list(lines) if self._operands.traced else []

    def _before(self) -> str:
        """Return the counters of the iteration before."""
        return f"counters + (turn + 2) % kTurns * {self._operands.counters} * kCounterStride"


class Traced(emit.Writer):
    """The lines of statements that have records. It is the `Writer` of them, on whole vectors."""

    def __init__(self, operands: emit.Operands, log: LogLines) -> None:
        self._operands, self._log = operands, log
        self.params, self._scalars = operands.params, operands.scalars

    def of(self, statements: Iterable[Statement]) -> list[str]:
        return [line for s in statements for line in self._statement(s)]

    def _statement(self, s: Statement) -> list[str]:
        if isinstance(s.operation, emit.PRODUCTS):
            lines, t, logged = self._operands.product(s)
            kind = t.dtype.ctype
            source = f"Mapped<Identity, {kind}, {kind}, {kind}>"
            source += f"{{{t.words}, {t.values}, {t.number}, {kind}(0), false}}"
            return [*lines, *self._write(s, t.dtype, source, logged)]
        checks = self._scalars.checks(s)
        if s.writes_scalar:
            lines = self._scalar(s)
            return [*checks, *lines, *self._log.written(self._scalars.count(s), emit.Logged())]
        z, source = emit.expression(s, self)
        if isinstance(s.operation, ops.AssignScalar):
            source = self._operands.filling(s, source)
        return [*checks, *self._write(s, z, source, emit.Logged())]

    def _scalar(self, s: Statement) -> list[str]:
        operation, scalars = s.operation, self._scalars
        if not isinstance(operation, emit.SUMMED):
            return [scalars.computes(s)]
        u, params = operation.operand, self.params
        if isinstance(operation, ops.ExtractElement):
            i = params.number("i64", operation.position[0])
            n, x = params.size(u.size), params.vector(u)
            there = f"entry_bits({x}_words, {i} / LG_WARP, {n}) >> {i} % LG_WARP & 1"
            z = f"load_entry({there}, {x}_values, {x}_iso, {i})"
            return [BARRIER, scalars.writes(s, z), BARRIER]
        entries, add = params.entries(u), params.prelude.functor(operation.monoid)
        what = f"{params.size(u.size)}, {entries}, {scalars.new_parts()}, barrier"
        return [scalars.writes(s, f"reduce_all<{add}, {s.dtype.ctype}>({what})")]

    def _write(self, s: Statement, z: DType, source: str, logged: emit.Logged) -> list[str]:
        """Return the lines that write the results of `source`, of type `z`, into the output."""
        w, desc = s.out, s.desc
        lines, mask, complement = self._operands.mask_words(desc)
        where = s.operation.indices if isinstance(s.operation, ops.AssignScalar) else None
        if where is not None:  # one index, without a mask
            i, mask = index_in(where[0], self.params), self._operands.new_words(w.size)
            there = self.params.there(s)
            bit = f"k == {i} / LG_WARP ? 1u << {i} % LG_WARP : 0"
            lines = [
                f"each_tile({self.params.size(w.size)}, [&](i64 k, bool mine) {{",
                "if (!mine) return;",
                f"{mask}[k] = {there} ? {bit} : 0;",
                f"if (!{there}) {self.params.vector(w)}_words[k] &= ~({bit});",
                "});",
                "warp_sync();",
            ]
        accum = emit.accum_type(self.params, desc, w.dtype, z)
        x, kind = self.params.vector(w), w.dtype.ctype
        replace = str(desc.replace).lower()
        out = f"Output<{kind}>{{{x}_words, {x}_values, {mask}, {complement}, {replace}, nullptr}}"
        total = f"write_all<{accum}, {z.ctype}>({self.params.size(w.size)}, {out}, {source})"
        return [*lines, *self._log.written(total, logged), "warp_sync();"]

    # ----------------------------------------------------------------------- see `Writer`
    def operand(self, x: VectorStore) -> str:
        return self.params.entries(x)

    def constant(self, ctype: str, value: str, there: str = "true") -> str:
        return f"Filled<{ctype}>{{{value}}}"

    def call(self, name: str, types: str, args: str) -> str:
        """See `Writer`: the struct that computes the results of a whole vector."""
        return f"{name.capitalize()}<{types}>{{{args}}}"


BLOCKS = 1  # of a multiprocessor: registers for each thread follow from this and its threads


class Program(NamedTuple):
    """The kernel of a generated loop, and its arguments for run after run."""

    kernel: Kernel
    arguments: emit.Arguments  #: Those that come first.
    names: list[str]  #: Of these.
    counters: int  #: How many counters an iteration has.
    window: tuple[int, int]  #: See `Operands`.


def write_program(operands: emit.Operands, records: int) -> Program:
    """Write the kernel of a loop, for a log of so many records.

    Each statement becomes some lines, in order, with a barrier of the grid where a statement reads
    words that other threads wrote. The text depends on operations, types and masks alone, so loops
    of one structure share one kernel. `operands` collects its parameters and lines.
    """
    statements = operands.statements
    log, params = LogLines(operands), operands.params
    body = Traced(operands, log) if operands.traced else Passes(operands)
    lines = body.of(statements)
    before, top, end = operands.condition() or _condition(operands, log)
    if operands.until is not None:  # all threads have the same scalar
        name = operands.scalars.operand(operands.until)
        holds = f"{name}.there && cast<bool>({name}.value)"
        end = [*end, f"if ({holds}) {{", *log.at_break(), "break;", "}"]
    after = operands.after()
    counters = f"{operands.counters} * kCounterStride"
    selects = any(isinstance(s.operation, ops.MultiplySelection) for s in statements)
    text = "\n".join(
        [
            f'#include "{operands.header}"',
            *(['#include "program/selection.cuh"'] if selects else []),
            *(['#include "program/scalars.cuh"'] if operands.scalars else []),
            *params.structs,
            'extern "C" __global__ void __launch_bounds__(LG_BLOCK, LG_BLOCKS)',
            "program(" + ", ".join([*params.text, "u64 times", "u64* counters",
                                    "GridBarrier* barrier", "const u64* stop",
                                    *log.params(), *operands.more_params()]) + ") {",
            *operands.shared,
            f"u64* const flags = counters + kTurns * {counters};",
            "for (u64* k = counters + global_thread(); k < flags + 2; k += global_threads()) "
            "*k = 0;",
            *before,
            *operands.before,
            *log.opening(),
            *operands.begins(),
            "u32 turn = 0;",
            "for (u64 depth = 0; depth != times; ++depth, ++turn) {",
            f"u64* const now = counters + turn % kTurns * {counters};",
            f"u64* const next = counters + (turn + 1) % kTurns * {counters};",
            f"for (u32 k = global_thread(); k < {counters}; k += global_threads()) next[k] = 0;",
            *top,
            *lines,
            *end,
            "}",
            *log.closing(),
            *after,
            "}",
        ]
    )  # fmt: skip
    macros = {"BLOCK": str(operands.block), "BLOCKS": str(BLOCKS), **operands.macros}
    macros |= {"LOG": str(records)} if operands.traced else {}
    prelude = params.prelude.text
    kernel = from_source(text, "program", file="program.cu", prelude=prelude, **macros)
    names = [declared.split()[-1] for declared in params.text]
    return Program(kernel, params.arguments, names, operands.counters, operands.window)


def _condition(operands: emit.Operands, log: LogLines) -> tuple[list[str], list[str], list[str]]:
    """Return the lines of the loop's condition: before the loop, at its top and at its end.

    They have the barriers of an iteration, after which a log is written. There the loop looks now
    and then whether the host stops it; without one it needs a barrier for that.
    """
    look = "if (looks(turn)) set_stop(stop, stop_flag(flags, turn, kStopEvery));"
    leave = "if (looks(turn) && load_volatile(stop_flag(flags, turn, kStopEvery))) break;"
    alone = [
        "if (looks_alone(turn)) {",
        "u64* const flag = stop_flag(flags, turn, kStopEveryAlone);",
        "set_stop(stop, flag);",
        BARRIER,
        "if (load_volatile(flag)) break;",
        "}",
    ]
    params, empty, unchanged = operands.params, operands.empty, operands.unchanged
    if operands.once:
        return [], [], []
    if empty is not None and operands.holds(empty):
        return [], [f"if (!warp_any({operands.named(empty).held}.there)) break;", *alone], []
    if empty is not None:
        x = params.vector(empty)
        top = [
            look,
            f"add_of_block(entries_of_block({params.size(empty.size)}, {x}_words), now);",
            BARRIER,
            *log.at_top(),
            "if (load_volatile(now) == 0) break;",
            leave,
        ]
        return [], top, log.pending()
    if unchanged is None:
        return [], alone, [BARRIER, *log.at_end()] if operands.traced else []
    where = operands.remembered()
    end = [
        look,
        f"add_of_block(remember({where}, false), now + kCounterStride);",
        BARRIER,
        *log.at_end(),
        "if (load_volatile(now + kCounterStride) == 0) break;",
        leave,
    ]
    return [f"remember({where}, true);"], [], end


# ------------------------------------------------------------------------------- signatures
# Of each operation: the parts that the text of a program depends on, its handles and its numbers.
_Parts = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]


def _of_product(x: Any) -> _Parts:
    return x[2:], x[:2], ()


def _of_ewise(x: ops.Ewise) -> _Parts:
    kind, left, right, op, defaults, _ = x
    if defaults is None:
        return (kind, op), (left, right), ()
    (one, scalars, numbers), (other, more_scalars, more) = map(_number, defaults)
    return (kind, op, one, other), (left, right, *scalars, *more_scalars), numbers + more


def _of_apply(x: ops.Apply) -> _Parts:
    u, (op, domain, result, left, right) = x
    if left is None and right is None:
        return (op, domain, result), (u,), ()
    kind, scalars, numbers = _number(right if left is None else left)
    return (op, domain, result, left is None, kind), (u, *scalars), numbers


def _of_select(x: ops.Select) -> _Parts:
    kind, scalars, numbers = _number(x.thunk)
    return (x.op, kind), (x.operand, *scalars), numbers


def _of_assigned(x: ops.AssignScalar) -> _Parts:
    kind, scalars, numbers = _number(x.value)
    return (kind, x.indices is None), (*(x.indices or ()), *scalars), numbers


def _of_constant(x: ops.Constant) -> _Parts:
    kind, scalars, numbers = _number(x[0])
    return (kind, True), scalars, numbers


def _number(x: Any) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Return the kind of a number, the scalar that has it, and the number itself."""
    kind = type(x)
    if kind not in _NO_NUMBERS:
        return kind, (), (x,)
    if kind is ops.ScalarRef:
        return x.dtype, (x.scalar,), ()
    if kind is ops.CounterRef:
        formula, _, numbers = _number(x.formula)
        return (x.dtype, formula), (), numbers
    if kind is ops.Formula:
        (one, _, numbers), (other, _, more) = map(_number, x[1:])
        return (x.sign, one, other), (), numbers + more
    return kind, (), ()


_NO_NUMBERS = {ops.ScalarRef, ops.CounterRef, ops.Formula, type(None)}
#: For each operation that a program may have.
PARTS: dict[Any, Callable[[Any], _Parts]] = {
    ops.Multiply: _of_product,
    ops.MultiplySelection: _of_product,
    ops.Ewise: _of_ewise,
    ops.Apply: _of_apply,
    ops.Select: _of_select,
    ops.Assign: lambda x: ((x.indices is None,), (x.operand,), ()),
    ops.Extract: lambda x: ((x.indices is None,), (x.operand,), ()),
    ops.AssignScalar: _of_assigned,
    ops.Constant: _of_constant,
    ops.Reduce: lambda x: ((x.monoid,), (x.operand,), ()),
    ops.ExtractElement: lambda x: ((), (x.operand,), x.position),
}


#: What a statement adds to a `signature`: a key, the same for statements that differ in objects and
#: numbers alone, which has types and sizes and keeps no vector alive; then the statement's scalars,
#: vectors, matrices and index lists, some perhaps twice; then its numbers.
Line = tuple[Any, tuple[Handle, ...], tuple[Any, ...]]
_KIND = operator.attrgetter("kind")


def parts_of(statement: Statement) -> _Parts | None:
    """Return the parts of a statement as `PARTS` does, its output and its mask among them."""
    out, desc, operation, dtype = statement
    kind, mask = type(operation), desc[0]
    parts = PARTS.get(kind)
    if parts is None:
        return None
    what, handles, numbers = parts(operation)
    handles = (out, *handles) if mask is None else (out, mask, *handles)
    return (kind, dtype, desc[1:], what), handles, numbers


def line_of(text: tuple[Any, ...], handles: Sequence[Any], numbers: tuple[Any, ...]) -> Line:
    try:
        kinds = [*map(_KIND, handles)]
    except AttributeError:  # of index lists
        kinds = [getattr(x, "kind", None) or (x.dtype, len(x), "indices") for x in handles]
    return (*text, *kinds), tuple(handles), numbers


def signature(
    statements: Statements, ends: Sequence[Handle | None], lines: Sequence[tuple[Any, ...]] = ()
) -> tuple[tuple[Any, ...], list[Handle], list[Any]]:
    """Return the key of the programs of a body and its condition's ends, its handles and numbers.

    The handles are vectors, matrices and index lists, each once; the numbers are arguments. Known
    `lines` begin as a `Line`. By the key the programs of batches are kept, and of loops with
    scalars, whose bodies are not kept as records: to write the text takes longer than a short loop
    runs.
    """
    lines = lines or [line_of(*cast(_Parts, parts_of(s))) for s in statements]
    named = [x for line in lines for x in line[1]]
    named += [x for x in ends if x is not None]
    found = {id(x): x for x in named}
    places = {of: k for k, of in enumerate(found)}
    pattern = tuple(map(places.__getitem__, map(id, named)))
    scalars = tuple(x.is_there for x in scalars_asked(statements))
    kinds = [None if x is None else x.kind for x in ends]
    key = (*[line[0] for line in lines], *kinds, pattern, scalars)
    handles = [x for x in found.values() if type(x) is not ops.ScalarValue]
    return key, handles, [x for line in lines for x in line[2]]


def scalars_asked(statements: Statements) -> list[ops.ScalarValue]:
    """Return the scalars that statements read or add to before one of them has replaced them."""
    asked: dict[int, ops.ScalarValue] = {}
    replaced: set[int] = set()
    for s in statements:
        found = [*s.scalars_read, *([s.out] if s.writes_scalar and s.desc.accum else [])]
        asked |= {id(x): x for x in found if id(x) not in replaced}
        if s.writes_scalar:
            replaced.add(id(s.out))
    return [*asked.values()]


def without_numbers(statements: Statements) -> list[Statement]:
    """Return statements with a `Number` in place of each, in the order of `signature`."""
    places = itertools.count()

    def part(x: Any) -> Any:
        if isinstance(x, np.generic):
            return emit.Number(next(places), lookup(x.dtype))
        if isinstance(x, tuple) and type(x) is not ops.ScalarRef:
            parts = [part(y) for y in x]
            return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        return x

    return [part(s) for s in statements]
