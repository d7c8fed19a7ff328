"""Batches: statements in a row that run once, as one kernel."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import lagpu.operations as ops
from lagpu.backends.gpu.device.compiled import in_background
from lagpu.backends.gpu.device.protocol import Device, HostNotification
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.fused.loop import KernelLoop, Prepared
from lagpu.backends.gpu.fused.program import text
from lagpu.backends.gpu.fused.program.run import (
    MOST_ENTRIES,
    MOST_PROGRAMS,
    counters_of,
    has_one_index,
    why_no_line,
)
from lagpu.backends.gpu.kernels import GRID_BARRIER
from lagpu.backends.gpu.profile import LoopLog
from lagpu.backends.gpu.storage.stores import Counters, VectorStore
from lagpu.backends.match import distinct, holds
from lagpu.operations import Statement, Statements, Until

_KEY, _HANDLES, _NUMBERS, _, _SAME = map(operator.itemgetter, range(5))  # of a `BatchLine`
_OUT = operator.attrgetter("out")  # of a `Statement`
_STAMP = operator.attrgetter("stamp")  # of a vector, a matrix or a scalar; an index list has none
_EACH = "counts", "notification", "serial"  # arguments of each launch, beside its numbers
AFTER = 2  # batches alike that run statement by statement; then a program is made
WAITS = False  # whether the program is made at once, not in the background: for tests
_MOST, _MOST_INDICES = 64, 1 << 25  # statements of a batch, and indices of their outputs
_MOST_KEPT = 4  # programs of batches alike
_MOST_WITH_ROOMS, _MOST_ROOM = 4, 1 << 25  # programs that keep rooms, and bytes of each
_MOST_LINES = 4096  # whose keys are kept; then they get new numbers
#: Of a matrix whose products take the device longer than the host takes for the next batch.
_LONG = 1 << 23

#: A `Line` with a number for its key, the share of a batch that the statement fills, and what shows
#: that the next statement at its place is the same but for its numbers and scalars, or None: the
#: first result of `parts_of`, the stamp of each handle, the number, the share, and whether there
#: are scalars.
BatchLine = tuple[int, tuple[Any, ...], tuple[Any, ...], float, Any]
_OUTPUTS = VectorStore, ops.ScalarValue


class Batches:
    """The programs of statements in a row that came again and again.

    A program is made in the background, while such statements still run one by one. What was found
    out of a statement or a batch serves those that differ in objects and numbers alone.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._numbers = itertools.count(1)
        #: By their keys: a number, 0 where the statement cannot join, whether it has scalars, and
        #: the share.
        self._lines: dict[Any, tuple[int, bool, float]] = {}
        self._known: dict[tuple[Any, ...], _Known] = {}
        self._latest: list[_Kept] = []  # those that keep their rooms
        #: What came again last, by its first line, its last one and how many there are.
        self._again: dict[tuple[int, int, int], _Again] = {}
        #: The last batch of such lines, with the first place of the object at each place, and how
        #: many objects there are: a batch with the same of these needs no new signature.
        self._last: dict[tuple[Any, ...], tuple[list[int], int, _Known, bool]] = {}

    def line(self, statement: Statement, last: Any = None) -> BatchLine | None:
        """Return what `run` needs of a statement; None unless it writes a vector or a scalar.

        `last` is the last element of the line before it from the same place. The share of a batch
        that it fills is that of a statement for which the device takes long, or whose output is
        large. The batch ends with the statement by which it is full.
        """
        parts = text.parts_of(statement) if type(statement[0]) in _OUTPUTS else None
        if parts is None:  # of a grid, or a matrix
            return None
        what, handles, numbers = parts
        if last is not None and what == last[0] and [*map(_STAMP, handles)] == last[1]:
            if last[4]:
                self._bring(handles)
            return last[2], handles, numbers, last[3], last
        operation: Any = statement.operation
        kind, nvals = what[0], 0
        if kind is ops.AssignScalar and operation.indices and not has_one_index(statement):
            return None
        if kind is ops.Multiply:
            nvals = operation.matrix.nvals
            if nvals > MOST_ENTRIES and statement.desc.mask is not None:
                return None
        key = text.line_of(*parts)[0]
        found = self._lines.get(key)
        if found is None:
            if len(self._lines) >= _MOST_LINES:
                self._lines.clear()
            lacking = why_no_line(statement) or emit.why_no_scalars((statement,))
            number = 0 if lacking else next(self._numbers)
            has_scalars = any(type(x) is ops.ScalarValue for x in handles)
            share = 1 / _MOST + getattr(statement.out, "size", 0) / _MOST_INDICES
            found = self._lines[key] = number, has_scalars, share
        number, has_scalars, share = found
        if not number:
            return None
        if has_scalars:
            self._bring(handles)
        share = 1.0 if nvals > _LONG else share
        stamps = [getattr(x, "stamp", None) for x in handles]
        same = None if None in stamps else (what, stamps, number, share, has_scalars)
        return number, handles, numbers, share, same

    def _bring(self, handles: Sequence[Any]) -> None:
        """Have the host read scalars that another device has, whose memory this one cannot read."""
        for x in handles:
            if type(x) is ops.ScalarValue and x.holder not in (None, self._counters.device):
                x.get()

    def again(self, lines: Sequence[BatchLine], counted: Any) -> bool:
        """Run lines as `run` does if their launch comes again; `Device.began` is set with it."""
        found = self._again.get((lines[0][0], lines[-1][0], len(lines)))
        device = self._counters.device
        if found is None or device.observers:
            return False
        if device.enter is not None:  # it runs in this thread
            device.enter()
        try:
            return found.run(lines, counted)
        except MemoryError:  # then `run` tries, which names the error
            return False

    def run(self, statements: Statements, lines: Sequence[BatchLine], counted: Any) -> bool:
        """Run such statements as one program; False if there is none, or it has no memory.

        `lines` has what `line` returned for each. The number of entries of the vector `counted` is
        asked for next. The caller holds the lock of the backend.
        """
        enter = self._counters.device.enter
        if enter is not None:
            enter()
        try:
            program = self._plan(statements, lines, counted)
            if program is None:
                return False
            program.run()
        except MemoryError:  # it has done nothing
            return False
        again = program.again(counted)
        if again is not None:
            if len(self._again) >= MOST_PROGRAMS:
                self._again.clear()
            self._again[lines[0][0], lines[-1][0], len(lines)] = again
        return True

    def _plan(
        self, statements: Statements, lines: Sequence[BatchLine], counted: Any
    ) -> Batch | None:
        """Return the program of such statements; None if there is none, or none yet."""
        named = [*itertools.chain.from_iterable(map(_HANDLES, lines))]
        known, counts = self._of(statements, lines, named, counted)
        counted = counted if counts else None
        known.came += 1
        if not known.written or known.came <= AFTER:
            return None
        handles = [named[k] for k in known.handles]
        for kept in known.kept:
            repeats = kept.repeats(handles)
            if repeats or kept.program.arguments.fit(handles):
                if kept.launch is None:
                    if not kept.is_compiled():
                        return None
                    kept.load(0)
                if kept not in self._latest:
                    self._latest.append(kept)
                    if len(self._latest) > _MOST_WITH_ROOMS and (gone := self._latest.pop(0)).rooms:
                        gone.forget()
                return Batch(known, kept, statements, lines, named, handles, counted, repeats)
        if len(known.kept) < _MOST_KEPT:
            known.kept.append(_Kept(self._counters, statements, handles, counted))
        return None

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Compile kernels in the background; `NotCompiled` is raised where one is missing."""
        token = in_background.set(not WAITS)
        try:
            yield
        finally:
            in_background.reset(token)

    def _of(
        self, statements: Statements,
        lines: Sequence[BatchLine], named: list[Any], counted: Any,
    ) -> tuple[_Known, bool]:  # fmt: skip
        """Return what is known of batches alike, and whether they write `counted`."""
        kinds, ids = tuple(map(_KEY, lines)), [*map(id, named), id(counted)]
        last = self._last.get(kinds)
        if last is not None:
            first, count, its, counts = last
            alike = [*map(ids.__getitem__, first)] == ids and len({*ids}) == count
            if alike and its.has_numbers(named):
                return its, counts
        counts = counted is not None and holds(map(_OUT, statements), counted)
        key, *_ = text.signature(statements, [counted if counts else None], lines)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_PROGRAMS:
                self._known.clear()
            known = self._known[key] = _Known(self._counters.device, statements, named)
        if len(self._last) >= MOST_PROGRAMS:
            self._last.clear()
        self._last[kinds] = [*map(ids.index, ids)], len({*ids}), known, counts
        return known, counts


class _Known:
    """What batches alike have in common, by places in the list of the handles of all lines."""

    def __init__(self, device: Device, statements: Statements, named: Sequence[Any]) -> None:
        self.came = 0
        first: dict[int, int] = {}
        for k, x in enumerate(named):
            first.setdefault(id(x), k)
        scalars = {of for of, k in first.items() if type(named[k]) is ops.ScalarValue}
        #: The handles, each once, without scalars.
        self.handles = [k for of, k in first.items() if of not in scalars]
        self._asked = [first[id(x)] for x in text.scalars_asked(statements)]
        self._there = [named[k].is_there for k in self._asked]
        self.written = [first[id(x)] for x in distinct(s.out for s in statements)]
        self.written = [k for k in self.written if type(named[k]) is VectorStore]
        #: The places of scalars, and of those the one where each came first.
        self._scalar_places = [k for k, x in enumerate(named) if id(x) in scalars]
        self._pattern = self._pattern_of(named)
        made = emit.LoopScalars.of(statements, device)
        self._device = device
        self.scalars = [first[id(x)] for x in made.all]
        self._sure = made.sure
        #: The reads that may find no value: a statement, and which of its scalars.
        reads = iter([(k, n) for k, s in enumerate(statements) for n in range(len(s.scalars))])
        self.unsure = [
            next((k, n) for k, n in reads if statements[k].scalars[n] is ref)
            for _, ref in made.unsure
        ]
        self.kept: list[_Kept] = []  # for vectors in other forms, as `Arguments.fit` tests

    def _pattern_of(self, named: Sequence[Any]) -> list[int]:
        ids = [id(named[k]) for k in self._scalar_places]
        return [*map(ids.index, ids)]

    def has_scalars(self, named: Sequence[Any]) -> bool:
        """Whether the same scalars are one as here, and have a value."""
        return self._pattern_of(named) == self._pattern and self.has_numbers(named)

    def scalars_of(self, statements: Statements, named: Sequence[Any]) -> emit.LoopScalars | None:
        """Return the scalars of a batch like this; None if there are none."""
        if not self.scalars:
            return None
        found = [named[k] for k in self.scalars]
        unsure = [(k, statements[k].scalars[n]) for k, n in self.unsure]
        return emit.LoopScalars(self._device, found[: len(self._sure)], found, unsure, self._sure)

    def has_numbers(self, named: Sequence[Any]) -> bool:
        """Whether the same scalars have a value for sure as here."""
        asked = self._asked
        return not asked or [named[k].is_there for k in asked] == self._there


class _Kept:
    """A program of batches alike, which may not be compiled yet."""

    def __init__(
        self, counters: Counters, statements: Statements,
        handles: Sequence[Any], counted: Any,
    ) -> None:  # fmt: skip
        """Write a program for such statements, and begin to compile it."""
        self.counters, self.device = counters, counters.device
        bare, block = text.without_numbers(statements), self.device.limits.loop_block
        written = distinct(s.out for s in bare if not s.writes_scalar)
        scalars = emit.LoopScalars.of(bare, self.device)
        operands = emit.Operands(bare, scalars, written, Until(times=1), block, False, handles)
        operands.once, operands.counted = True, counted
        self.program, self._block = text.write_program(operands, 0), block
        self.launch: Any = None
        #: Of the last run, for the next one, unless they are large: to allocate takes longer than
        #: to queue a statement.
        self.rooms: list[Any] | None = []
        #: Of the vectors and matrices of the last run, if its launch can come again with them.
        self.stamps: list[Any] | None = None
        self.again: _Again | None = None  # where it comes with them
        kernel = self.program.kernel
        self.is_compiled = (lambda: True) if WAITS else self.device.compile_beside(kernel)

    def forget(self) -> None:
        self.rooms, self.stamps, self.again = [], None, None

    def each(self, run: emit.Run) -> list[Any]:
        """Return the arguments that change though no handle's arrays do."""
        return [x for _, _, make in self.program.arguments.each for x in make(run)]

    def repeats(self, handles: Sequence[Any]) -> bool:
        """Whether the launch can come again with these, as nothing of theirs was replaced since."""
        stamps = self.stamps
        return stamps == [*map(_STAMP, handles)] if stamps and not self.device.observers else False

    def load(self, shared: int) -> None:
        """Load the program, and fix the arguments that are the same in each run.

        A block has so many bytes of shared memory beside its own; `grid` are the blocks without.
        """
        device, (kernel, arguments, names, num_counters, _) = self.device, self.program
        self.grid, self.shared = device.max_cooperative_blocks(kernel, self._block), shared
        blocks = device.max_cooperative_blocks(kernel, self._block, shared)
        vary = {k + j for k, _ in arguments.vectors for j in range(3)}
        vary.update(k for first, end, _ in arguments.made for k in range(first, end))
        each = [k for first, end, _ in arguments.each for k in range(first, end)]
        #: The arguments that runs have of their own, and their places among those of the program.
        self.varying = {names[k]: k for k in (*sorted(vary), *each)}
        fixed = {x: arguments.fixed[k] for k, x in enumerate(names) if x not in self.varying}
        self.barrier = device.xp.zeros(GRID_BARRIER, np.uint32)
        self.launch = device.prepare(
            kernel, blocks * self._block, block=self._block, cooperative=True, shared=shared,
            times=1, counters=counters_of(device, num_counters), stop=None,
            each=[*(names[k] for k in each), *_EACH], **fixed,
        )  # fmt: skip


class _Again:
    """The launch of a batch that comes again, as its lines differ in numbers and scalars alone."""

    def __init__(
        self, known: _Known, kept: _Kept, lines: Sequence[BatchLine], counted: Any, counts: bool
    ) -> None:
        self._known, self._kept, self._counts = known, kept, counts
        #: As the lines will be the next time: the first launch may have changed forms.
        self._same = [(x[0], [*map(_STAMP, line[1])], *x[2:]) for line in lines for x in line[4:]]
        self._counted = counted and counted.stamp
        #: The first line that writes each vector, and the line and place of each number.
        firsts = {id(x[1][0]): k for k, x in reversed([*enumerate(lines)])}
        self._writes = [k for k in firsts.values() if type(lines[k][1][0]) is not ops.ScalarValue]
        numbers = [(k, place) for k, x in enumerate(lines) for place in range(len(x[2]))]
        self._numbers = [numbers[k] for k in kept.program.arguments.places]

    def run(self, lines: Sequence[BatchLine], counted: Any) -> bool:
        """Run these lines; False if the last launch of the program was that of others."""
        kept, known, scalars = self._kept, self._known, None
        if kept.again is not self or self._same != [*map(_SAME, lines)]:
            return False
        if self._counted != (counted and counted.stamp):
            return False
        if known.scalars:
            named = [*itertools.chain.from_iterable(map(_HANDLES, lines))]
            if not known.has_scalars(named):
                return False
            scalars = known.scalars_of((), named)
            numbers = [*itertools.chain.from_iterable(map(_NUMBERS, lines))]
            each = kept.each(emit.Run((), kept.device, kept.grid, scalars, numbers=numbers))
        else:
            each = [lines[k][2][place] for k, place in self._numbers]
        for k in self._writes:
            lines[k][1][0].changes()
        if scalars is None and not self._counts:  # the kernel writes no notification
            kept.launch.again([*each, None, None, 0])
            return True
        heard, counts = kept.device.notification(), kept.counters.take(3) if self._counts else None
        settle = partial(_settle, scalars, counted if self._counts else None, heard, counts)
        try:
            kept.launch.again([*each, counts, heard.memory, heard.serial])
            settle()
        except BaseException as error:  # see `KernelLoop`
            if kept.device.began and not isinstance(error, Exception):
                settle()
            raise
        return True


def _settle(
    scalars: emit.LoopScalars | None, counted: Any, heard: HostNotification, counts: Any
) -> None:
    """Note where a batch that was launched leaves its scalars, and the entries of `counted`."""
    if scalars is not None:
        scalars.ran(heard if counted is None else None, once=True)
    if counted is not None:
        counted.counted(counts, heard)


class Batch(KernelLoop):
    """One run of a batch's program; see `KernelLoop`. It ends by itself."""

    name = "batch"
    why = "the loop is run by Python"

    def __init__(
        self, known: _Known, kept: _Kept, statements: Statements,
        lines: Sequence[BatchLine], named: Sequence[Any],
        handles: Sequence[Any], counted: Any, repeats: bool,
    ) -> None:  # fmt: skip
        self.statements, self.device = statements, kept.device
        self.written = [named[k] for k in known.written]
        self._known, self._kept, self._counted = known, kept, counted
        self._named, self._handles, self._lines, self._repeats = named, handles, lines, repeats

    def again(self, counted: Any) -> _Again | None:
        """Return what runs it next, if its launch came again, and no read of it may fail."""
        kept, lines = self._kept, self._lines
        if not self._repeats or self._known.unsure or None in map(_SAME, lines):
            return None
        counts = self._counted is not None
        kept.again = _Again(self._known, kept, lines, counted, counts)
        return kept.again

    def _outputs(self) -> Sequence[VectorStore]:
        return () if self._repeats else self.written  # a launch that comes again changes no form

    def _prepare(self, log: LoopLog | None) -> Prepared:
        kept, device = self._kept, self.device
        scalars = self._known.scalars_of(self.statements, self._named)
        numbers = [*itertools.chain.from_iterable(map(_NUMBERS, self._lines))]
        run = emit.Run(self._handles, device, kept.grid, scalars, None, numbers, None, kept.rooms)
        new = None if self._repeats else self._arguments(run)
        heard, counts = device.notification(), kept.counters.take(3)
        more = counts, heard.memory, heard.serial
        for x in self.written:
            x.changes()
        if new is None:
            start = partial(kept.launch.again, [*kept.each(run), *more])
        else:
            start = partial(self._launch, new | dict(zip(_EACH, more, strict=True)))
        return start, partial(_settle, scalars, self._counted, heard, counts)

    def _arguments(self, run: emit.Run) -> dict[str, Any]:
        kept, device = self._kept, self.device
        for x in self.written:
            if x.form != "bitmap" or x.values is None:
                if x.size > emit.UNASKED:
                    device.require(x.bytes_to_write, "batch")
                x.to_writable()
        run.most_shared = min(device.limits.ranked_bytes, device.dynamic_shared_bytes)
        found = kept.program.arguments.of(run)
        if run.shared > kept.shared:
            kept.load(run.shared)
        if sum(x.nbytes for x in kept.rooms or ()) > _MOST_ROOM:
            kept.rooms = None
        new = {name: found[k] for name, k in kept.varying.items()}
        return new | {"barrier": kept.barrier if run.barrier is None else run.barrier}

    def _launch(self, new: dict[str, Any]) -> None:
        """Launch with these arguments, and note if the launch can come again."""
        kept, handles = self._kept, self._handles
        kept.stamps = kept.again = None
        kept.launch(new)
        may = kept.launch.repeats and kept.rooms is not None
        if may and all(hasattr(x, "stamp") for x in handles):
            kept.stamps = [*map(_STAMP, handles)]
