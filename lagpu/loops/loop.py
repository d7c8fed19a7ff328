"""`loop` and `sweep`: record a body, run it fused or one by one, and count its iterations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from operator import attrgetter
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

import numpy as np

from lagpu import operations as ops
from lagpu.backends.match import holds
from lagpu.backends.protocol import Backend, NotCompiled
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core import recorder as core_recorder
from lagpu.core.arguments import integer
from lagpu.core.expr import kind_of
from lagpu.core.hints import name_of
from lagpu.core.recorder import Recorder, blocking, current_observer, current_recorder, queue
from lagpu.core.views import SelectionMatrix, TransposedMatrix
from lagpu.dtypes import BOOL, INT64
from lagpu.errors import DomainMismatch, InvalidValue, NotSupported, OutOfMemory
from lagpu.loops import purity
from lagpu.loops.purity import LoopBody, WhileBody, backend_of, lookup, read_body
from lagpu.operations import Statement, Statements

T = TypeVar("T")


class CounterName:
    """The counter's name in the author's namespace, and how its last value is kept there."""

    def __init__(self, name: str, namespace: dict[str, Any]) -> None:
        self._name, self._namespace = name, namespace
        self.last: Callable[[], int] | None = None

    def leave(self, last: int | None = None) -> None:
        """Put the last value into the namespace: `last`, or what the loop has counted.

        A counter ``_``, which nothing reads, is not counted, and is no name after the loop.
        """
        if last is None and self.last is not None:
            last = int(self.last())
        if last is None:
            self._namespace.pop(self._name, None)
        else:
            self._namespace[self._name] = last

    def plan(self, backend: Backend, recorder: Recorder, turns: ops.Turns) -> ops.Planned:
        """Return the plan of a loop that counts its iterations, unless the counter is ``_``."""
        statements = recorder.statements
        loop = _planned(backend, statements, turns)
        if isinstance(loop, ops.Rejection) or self._name == "_":
            return loop
        if hasattr(loop, "count"):
            self.last = loop.count()
            return loop
        last = ops.ScalarValue(INT64)
        self.last = last.get
        number = ops.Constant(ops.CounterRef(INT64))
        count = Statement(last, ops.Descriptor(), number, INT64)
        return backend.plan_loop([*statements, count], turns)


# ---- Loops that were recorded before: the statements of the record are reused on other objects.
#
# A body of lagpu statements alone means the same whenever its names do. If only vectors, matrices,
# their views and scalars differ, with the same types and shapes, all checks would pass again; so
# the new handles replace the old ones, and the body does not run.
_MOST = 512  # loops; then all are forgotten
_known: dict[int, KnownLoop] = {}  # by `_site`
#: A view has the handle of another object.
_BASES = {SelectionMatrix: attrgetter("operand"), TransposedMatrix: attrgetter("stored")}
_OBJECTS = (Vector, Matrix, Scalar, *_BASES)
_REMADE = (int, float, *_BASES)  # types of objects that are alike, and yet one may be another


class KnownLoop:
    """A loop of a function, and what its names must mean for its statements to be reused."""

    record: ops.Record | None = None
    ndim = 0  # of what it writes beside scalars

    def __init__(self, code: CodeType, named: list[tuple[str, Any]]) -> None:
        self._code = code  # keeps its id from being reused
        objects = [(name, x, _BASES.get(type(x))) for name, x in named if type(x) in _OBJECTS]
        bases = [x if base is None else base(x) for _, x, base in objects]
        self._likes = [
            (name, type(x), base, of.dtype, x.shape if x.ndim else x.name)  # errors have names
            for (name, x, base), of in zip(objects, bases, strict=True)
        ]
        self._shapes = [of.shape for of in bases]
        self._others = [(x, y) for x, y in named if type(y) not in _OBJECTS]
        self._own = {name for name, _ in named if purity.is_unbound(name, code, {})}  # variables
        self.placed = next((name for name, x in named if type(x) in (Vector, Matrix)), "")
        self._same: list[int] | None = None  # which names have one handle, if some have

    def handles(self, frame: FrameType, backend: Backend) -> list[ops.Handle] | None:
        """Return the handles that the names have now; None if one means something else."""
        local, outer = frame.f_locals, frame.f_globals
        handles = []
        for name, kind, base, dtype, alike in self._likes:
            found: Any = local.get(name)
            if type(found) is not kind:
                found = self._global(name, local, outer)
                if type(found) is not kind:
                    return None
            if alike != (found.name if kind is Scalar else found.shape):
                return None
            found = found if base is None else base(found)
            if found.dtype is not dtype or (found.backend is not backend and kind is not Scalar):
                return None
            handles.append(found.data)
        for name, what in self._others:
            found = local[name] if name in local else self._global(name, local, outer)
            if found is not what and not _are_one_number(found, what):
                return None
        same = None
        if len({*map(id, handles)}) < len(handles):
            alone = {id(x): x for x in handles}
            same, handles = [[*alone].index(id(x)) for x in handles], [*alone.values()]
        if self.record is None:  # it learns
            self._same = same
        return handles if same == self._same else None

    def _global(self, name: str, local: dict[str, Any], outer: dict[str, Any]) -> Any:
        """Return the meaning of a name that is not a variable with a value."""
        if name in local or (name in self._own and purity.is_unbound(name, self._code, local)):
            return self  # which no name means
        return lookup(name, local, outer)

    def learn(
        self, statements: list[Statement], handles: list[ops.Handle], masks: Sequence[Any] = ()
    ) -> bool:
        """Take the statements of a record; return False if they have objects without a name.

        The `masks` of a sweep are the last of the record's handles.
        """
        named = {id(x) for x in (*handles, *masks)}
        for s in statements:
            mask = [] if s.desc.mask is None else [s.desc.mask]
            scalars = [ref.scalar for ref in s.scalars]
            used = {id(x) for x in (s.out, *mask, *scalars, *ops.operands_of(s.operation))}
            operation: Any = s.operation
            lists = None if "indices" in operation.reads else getattr(operation, "indices", None)
            if not used <= named or lists is not None:
                return False
        shapes = dict(zip(self._same or range(len(handles)), self._shapes, strict=True))
        of = [*(shapes[k] for k in range(len(handles))), *(x.shape for x in masks)]
        self.record = ops.Record(statements, [*handles, *masks], of)
        self.ndim = max(len(s.out.shape) for s in self.record.statements)
        return True


def _are_one_number(x: Any, y: Any) -> bool:
    """Whether two numbers of Python are the same to the bit, as those that a function computes."""
    alike = type(x) is type(y) and type(x) in (int, float)
    return alike and x == y and (x != 0 or str(x) == str(y))


def _site(frame: FrameType) -> int:
    """Return the place of the call of `loop`, or of the test of a ``while``: inside its code."""
    return id(frame.f_code) + frame.f_lasti


def _backend_known(frame: FrameType) -> Backend | None:
    """Return the backend of one object of a loop that was recorded; `find_known` looks at all."""
    known = _known.get(_site(frame))
    named: Any = known and lookup(known.placed, frame.f_locals, frame.f_globals)
    return named.backend if type(named) in (Vector, Matrix) else None


def find_known(frame: FrameType, backend: Backend, ndim: int = 0) -> ops.RecordedBody | None:
    """Return the recorded body of a loop like that of `frame`, which watches `ndim` dimensions."""
    known = _known.get(_site(frame))
    if known is None or sys.gettrace() is not None or {ndim, known.ndim} == {1, 2}:
        return None  # a debugger must see the body, and no program has vectors and matrices
    record, handles = known.record, known.handles(frame, backend)
    return None if record is None or handles is None else ops.RecordedBody(record, handles)


def keep_known(
    frame: FrameType, site: int, backend: Backend, body: LoopBody, statements: list[Statement],
    masks: Sequence[ops.Handle] = (),
) -> None:  # fmt: skip
    """Keep the record of a loop that began at a site of `frame`, if it may be reused."""
    written = any("written" in uses for uses in body.names.values())
    if body.counter or written:
        return
    local, outer = frame.f_locals, frame.f_globals
    named = [(name, lookup(name, local, outer)) for name in body.names]
    for name, found in named:
        if isinstance(found, FunctionType):  # what it names may change
            return
        if "identity" in body.names[name] and type(found) in _REMADE:
            return
    known = KnownLoop(frame.f_code, named)
    handles = known.handles(frame, backend)
    if handles is None or not known.learn(statements, handles, masks):
        return
    if len(_known) >= _MOST:
        _known.clear()
    _known[site] = known


# ---- Run a recorded body again and again: its statements wait for each other, or run by
# themselves.
def replay(backend: Backend, body: Statements, until: _Until, counted: Any = None) -> int:
    """Run the iterations of a recorded loop after those done, at least one; return how many.

    The body is proved to be the same in every iteration but for counter and scalars. The condition
    is tested as late in an iteration as possible, so that the device has work meanwhile.
    """
    empty, unchanged, _, done, _ = until
    idle = 0 if empty is None else _count_idle(body, empty)
    first, others = body[:idle], body[idle:]
    while done != until.times:
        _run(backend, first, done)
        if empty is not None and not empty.nvals:
            return done
        if counted is not None:
            counted.leave(done)
        before = None if unchanged is None else unchanged.dup()
        _run(backend, others, done)
        done += 1
        if until.is_left(before):
            return done
    return done


def _count_idle(body: Statements, empty: Vector | Matrix) -> int:
    """Return how many statements at the start have no effect once `empty` has no entry."""
    for k, s in enumerate(body):
        desc = s.desc
        masked = desc.mask is empty.data and not desc.complement and not desc.replace
        may_raise = s.scalars or any(x.formula for x in s.counters)
        if may_raise or not masked or s.out is empty.data:
            return k
    return len(body)


def _run(backend: Backend, statements: Statements, depth: int) -> None:
    for s in statements:
        now = s._replace(operation=ops.resolved(s.operation, depth)) if s.counters else s
        if not queue.takes(now, backend, id(s)):
            core_recorder.run_statement(backend, now)


# ---- `loop`: repeat statements until a condition holds; a backend may run the loop as a whole
def loop(
    *unnamed: Any, until_empty: Vector | Matrix | None = None,
    until_unchanged: Vector | Matrix | None = None, times: int | None = None,
    until: Scalar | None = None,
) -> Iterator[int]:  # fmt: skip
    """Yield 0, 1, 2, ... until a condition on a vector, a matrix or a scalar holds.

    Parameters
    ----------
    until_empty : Vector or Matrix
        Stop before an iteration in which this object would have no entry. One of python-graphblas
        is accepted too, so that a loop runs on both libraries; its statements run one by one.
    until_unchanged : Vector or Matrix
        Stop after an iteration that left this object unchanged.
    times : int
        Stop after this many iterations; alone or as a bound with another condition.
    until : Scalar
        Stop after an iteration that leaves this scalar true: with a value that is not 0. The body
        writes it, as in ``close << (change < 1e-6)`` or ``found << levels[target]``; alone or with
        another condition.

    Yields
    ------
    int
        The number of iterations done so far.

    Raises
    ------
    InvalidValue
        If there is no condition, or both `until_empty` and `until_unchanged`, or `times` is
        negative.
    DomainMismatch
        If a condition is on neither a `Vector` nor a `Matrix`, `until` is not a `Scalar`, `times`
        is not an integer, or an argument is not given by name.
    """
    if unnamed:
        name = "until_empty" if isinstance(unnamed[0], (Vector, Matrix)) else "times"
        name = "until" if isinstance(unnamed[0], Scalar) else name
        raise DomainMismatch(
            f"loop: {name_of(unnamed[0])} is given without a name. "
            f"Write loop({name}={name_of(unnamed[0])})."
        )
    if until_empty is not None and until_unchanged is not None:
        raise InvalidValue("loop: give one of until_empty= and until_unchanged=, not both.")
    if until_empty is None and until_unchanged is None and times is None and until is None:
        raise InvalidValue("loop: give until_empty=, until_unchanged=, until= or times=.")
    watched = until_unchanged if until_empty is None else until_empty
    if watched is not None and not isinstance(watched, (Vector, Matrix)):
        kind = type(watched).__name__
        if kind in ("Vector", "Matrix") and hasattr(watched, "gb_obj"):  # of python-graphblas
            return _iterate(ops.new(_Until, (until_empty, until_unchanged, times, 0, until)))
        raise DomainMismatch(f"loop: {kind} is neither a Vector nor a Matrix. Give one.")
    if until is not None and not isinstance(until, Scalar):
        raise DomainMismatch(
            f"loop: until= is a {kind_of(until)}, not a Scalar. Write s = Scalar(BOOL) before the "
            "loop, until=s, and s << (change < 1e-6) in the body."
        )
    if times is not None:
        times = min(integer(times, "loop: times", 0), 2**64 - 1)  # kernels count in 64 bits
    queue.flush()
    ends = ops.new(_Until, (until_empty, until_unchanged, times, 0, until))
    frame, observer = sys._getframe(1), current_observer()
    backend = _backend_known(frame) if watched is None else watched.backend
    recorded = body = None
    if backend is not None and observer is None:  # which sees the body
        recorded = find_known(frame, backend, 0 if watched is None else watched.ndim)
    if watched is None and recorded is None:
        body = read_body(frame)
        backend = backend_of(body, frame)
    if backend is None:
        _require_fused("the objects that its body names are on no backend, or on several")
        return _iterate(ends)
    if not backend.capabilities.records:
        body = body or read_body(frame)
        _require_fused(body.reason)
        backend.last_loop = BY_ITSELF
        may = until is None and not ends.is_over and isinstance(ends.watched, Vector)
        patience = _patience(backend, ends.handles(), body, frame) if may else None
        if patience is None:
            return _iterate(ends)
        return _iterate_first(backend, ends, patience, body, frame)
    why = "" if current_recorder() is None else IN_A_BODY
    if observer is not None or isinstance(watched, Matrix):
        why = why_eager() or why  # not even the first iteration is recorded
    if why:
        _run_eagerly(backend, why)
        return _iterate(ends)
    if recorded is not None:
        _run_known(backend, ends, recorded)
        return iter(())
    body = body or read_body(frame)
    if body.scalar and watched is not None and backend_of(body, frame) is not backend:
        why = f"{body.scalar} is a scalar, and the vectors are on several backends"
        body = LoopBody(reason=why)
    learn = partial(keep_known, frame, _site(frame), backend, body)
    return _record_and_run(backend, ends, body, not blocking.get(), _counted(body, frame), learn)


def _counted(body: LoopBody, frame: FrameType) -> CounterName | None:
    return CounterName(body.counter, frame.f_globals) if body.counter else None


def _patience(
    backend: Backend, turns: ops.Until | ops.Levels, body: LoopBody, frame: FrameType
) -> int | None:
    """Return after how many iterations the backend may run the rest as one program, or None."""
    ask = backend.capabilities.patience
    observed = current_observer() is not None or sys.gettrace() is not None
    if ask is None or observed or not body.statements or body.scalar or _must_fuse.get():
        return None
    if why_eager() or current_recorder() is not None:
        return None
    local, outer = frame.f_locals, frame.f_globals
    named = [lookup(name, local, outer) for name in body.names]
    objects = [x for x in named if isinstance(x, (Vector, Matrix))]
    if any(x.backend is not backend for x in objects):
        return None
    return ask([x.data for x in objects], turns)


def _iterate_first(
    backend: Backend, until: _Until, patience: int, body: LoopBody, frame: FrameType
) -> Iterator[int]:
    """Run some iterations by statement; if the loop goes on, record one and run the rest."""
    done = 0
    if patience:
        bound = patience if until.times is None else min(patience, until.times)
        for turn in _iterate(until._replace(times=bound)):
            yield turn
            done = turn + 1
        if done < patience or done == until.times or not until.watched.nvals:
            return
    counted, rest = _counted(body, frame), until._replace(done=done)
    yield from _record_and_run(backend, rest, body, True, counted, lambda _: None)


class _Until(ops.Until):
    """The conditions that end a loop, on the front end's objects."""

    __slots__ = ()

    @property
    def is_over(self) -> bool:
        return self.times == 0 or (self.empty is not None and not self.empty.nvals)

    @property
    def watched(self) -> Any:
        return self.unchanged if self.empty is None else self.empty

    def handles(self) -> ops.Until:
        """Return the conditions on handles, for a backend."""
        return ops.new(ops.Until, [getattr(x, "data", x) for x in self])

    def is_left(self, before: Vector | Matrix | None) -> bool:
        """Whether the loop ends after an iteration; `before` is what `unchanged` was until then."""
        unchanged = before is not None and before.isequal(self.unchanged)
        return unchanged or (self.holds is not None and bool(self.holds))


@contextmanager
def eager() -> Iterator[None]:
    """Run every loop statement by statement, inside ``with lagpu.eager(): ...``.

    A body of lagpu statements alone is recorded once; then each statement runs by itself, in every
    iteration. Under a debugger, and while statements are traced, Python runs the body.
    """
    queue.flush()
    token = blocking.set(True)
    try:
        yield
    finally:
        blocking.reset(token)


@contextmanager
def fused() -> Iterator[None]:
    """Raise where a loop does not run as one program, inside ``with lagpu.fused(): ...``.

    On a backend that fuses, as `gpu` and `sim` do, each `loop` and `sweep` must run as one kernel.
    On others, such as `cpu`, its statements run as ever, but it must be one that could be fused as
    far as its source shows: a body of lagpu statements only. Loops without iterations pass.

    Raises
    ------
    NotSupported
        Inside, before a loop that is not fused, or after its first iteration, with the reason that
        ``last_loop`` would have.

    Examples
    --------
    >>> import lagpu
    >>> v = lagpu.Vector.from_dense([1.0, 2.0], backend="cpu")
    >>> with lagpu.fused():  # as a test of this loop would
    ...     for _ in lagpu.loop(times=3):
    ...         v << v.apply("times", right=0.5)
    """
    token = _must_fuse.set(True)
    try:
        yield
    finally:
        _must_fuse.reset(token)


def _require_fused(why: str, where: str = "any backend") -> None:
    """Raise the reason why a loop is not one program, if there is one, inside `fused`."""
    if why and _must_fuse.get():
        raise NotSupported(
            f"loop: it does not run as one program on {where}: {why}. Change the body, or take the "
            "loop out of lagpu.fused()."
        )


def _run_eagerly(backend: Backend, why: str) -> None:
    _require_fused(why, backend.name)
    backend.last_loop = f"eager: {why}"


_must_fuse: ContextVar[bool] = ContextVar("lagpu_must_fuse", default=False)
_in_while: ContextVar[bool] = ContextVar("lagpu_in_while", default=False)
_INSIDE = "inside lagpu.eager()"
BY_ITSELF = "eager: this backend runs each statement by itself"
IN_A_BODY = "it is inside the recorded body of another loop"


def why_eager() -> str:
    """Return why each statement is to run by itself, or an empty string."""
    observer = current_observer()
    observed = "" if observer is None else observer.why_eager
    return observed or (_INSIDE if blocking.get() else "")


def _run_known(backend: Backend, until: _Until, body: ops.RecordedBody) -> None:
    """Run a whole loop whose body was recorded before; there is no observer."""
    turns = until.handles()
    for x in body.handles if body.record.has_scalars else ():
        if type(x) is ops.ScalarValue and x.holder not in (None, backend.device):
            x.get()  # as by `_fetch_scalars`
    if turns.times == 0 or (turns.empty is not None and not backend.nvals(turns.empty)):
        backend.last_loop = "no iteration"
    elif blocking.get():
        _run_eagerly(backend, _INSIDE)
        replay(backend, body, until)
    elif not _run_whole(backend, partial(_planned, backend, body, turns)):
        replay(backend, body, until)


def _record_and_run(
    backend: Backend, until: _Until, body: LoopBody, fuse: bool,
    counted: CounterName | None, learn: Callable[[list[Statement]], None],
) -> Iterator[Any]:  # fmt: skip
    """Record the body once and run all iterations from it but those done, or iterate."""
    if until.is_over:
        backend.last_loop = "no iteration"
        return
    if not fuse or not body.statements:
        _run_eagerly(backend, body.reason if fuse else _INSIDE)
    if not body.statements:
        yield from _iterate(until)
        return
    copies: list[Any] = []  # of `unchanged`, before the first iteration has written it

    def copy() -> None:
        if until.unchanged is not None and not copies:
            copies.append(until.unchanged.dup())

    watched = until.watched
    recorder = Recorder(backend, None if watched is None else watched.ndim, copy)
    with recorder:  # if the body raises, the statements before the error run at its end
        recorder.open()
        try:
            yield ops.Counter(until.done)
        except GeneratorExit:  # nothing else leaves a body that can be recorded
            if fuse:
                backend.last_loop = "eager: the body raised an error"
            raise
        finally:
            if counted is not None:
                counted.leave(until.done)
        recorder.close()
        if len(recorder.statements) == body.statements and not recorder.parts:
            learn(recorder.statements)
        if _run_record(recorder, until, body, fuse, counted):
            return
    if not until.is_left(copies[0] if copies else None):
        yield from _iterate(until._replace(done=until.done + 1))


def _run_record(
    recorder: Recorder, until: _Until, body: LoopBody, fuse: bool, counted: CounterName | None
) -> bool:
    """Run all iterations of a recorded loop and return True; False if Python must run the body."""
    backend, statements = recorder.backend, recorder.statements
    if len(statements) != body.statements + len(recorder.parts):
        if fuse:
            _run_eagerly(backend, _why_incomplete(recorder))
        return False
    if fuse and run_recorded(recorder, until.handles(), counted):
        return True
    if current_observer() is not None or sys.gettrace() is not None:
        return False
    recorder.statements = []
    replay(backend, statements, until, counted)
    return True


def _why_incomplete(recorder: Recorder) -> str:
    """Return why a recorder has fewer statements than the body."""
    if recorder.mixed:
        return "the body writes vectors and matrices"
    if not recorder.statements:
        return f"line {recorder.line} reads a value on the host"
    return "a line of the body writes nothing"


def run_recorded(recorder: Recorder, turns: ops.Turns, counted: CounterName | None = None) -> bool:
    """Run what is left of a recorded loop or sweep as one program; False if it is rejected."""
    backend = recorder.backend
    _fetch_scalars(recorder.statements, backend.device)
    plan = partial(_planned, backend, recorder.statements, turns)
    if counted is not None:
        plan = partial(counted.plan, backend, recorder, turns)
    try:
        if not _run_whole(backend, plan):
            return False
        if counted is not None:
            counted.leave()
        recorder.statements = []
        return True
    except BaseException:  # an interrupt after the loop has run, too: no statement runs again
        recorder.statements = []
        with suppress(Exception):  # that of the first iteration is there
            counted.leave(int(counted.last()) + 1)  # type: ignore[union-attr, misc]
        raise


def _fetch_scalars(statements: Statements, device: Any) -> None:
    """Bring scalars that another device holds to the host; call it without a lock."""
    for s in statements:
        scalars = s.scalars_read
        for x in [*scalars, s.out] if s.writes_scalar else scalars:
            if x.holder is not None and x.holder is not device:
                x.get()


def _planned(backend: Backend, body: Statements, turns: ops.Turns) -> ops.Planned:
    """Return the program of a loop; see `Backend.plan_loop`, which need not read other scalars."""
    ends = None if isinstance(turns, ops.Sweep) else turns.holds
    if ends is not None and all(x is not ends for x in ops.outputs_of(body)):
        return ops.Rejection("the body does not write the scalar of until=")
    return backend.plan_loop(body, turns)


def _run_whole(backend: Backend, plan: Callable[[], ops.Planned]) -> bool:
    """Plan a loop and run it as one program, as an observer sees it; False if it is rejected."""
    observer = current_observer() or _UNOBSERVED
    beside = backend.capabilities.batches.beside() if _in_while.get() else _NOWHERE
    with backend.lock, beside:  # what a plan has found holds until the loop has run
        loop = observer.run_loop(backend, plan)
    if isinstance(loop, ops.Rejection):
        _run_eagerly(backend, loop.why)
        return False
    backend.last_loop = f"{loop.name}: {loop.why}"
    return True


_UNOBSERVED, _NOWHERE = core_recorder.Observer(), nullcontext()


def _iterate(until: _Until) -> Iterator[int]:
    def turns() -> Iterator[int]:
        empty, unchanged, times, turn, _ = until
        while turn != times and (empty is None or empty.nvals):
            before = None if unchanged is None else unchanged.dup()
            yield turn
            turn += 1
            if until.is_left(before):
                return

    return _observed(turns(), until.done)


def _observed(turns: Iterator[T], done: int = 0) -> Iterator[T]:
    """Yield what each iteration of a loop gets; the observer's level is its number."""
    observer = current_observer()
    if observer is None:
        yield from turns
        return
    outer = observer.level
    try:
        for observer.level, turn in enumerate(turns, done):
            yield turn
    finally:
        observer.level = outer


# ---- ``while q.nvals:``, which is a `loop` in other words
_LATER, _SOON = 64, 8  # times that Python tests a condition before it is looked at again


def end_while(frame: FrameType, watched: Vector | Matrix) -> int:
    """Run the rest of a loop ``while q.nvals:`` as `loop` would, so that ``q`` has no entry left.

    `frame` tests the condition, which is true. Return how often Python is to test it before the
    next call, if it is another condition, or if the source does not show that the body is lagpu
    statements and a counter that nothing else reads; else 0.
    """
    looks_on = current_observer() is not None or sys.gettrace() is not None
    if looks_on or current_recorder() is not None or blocking.get() or _must_fuse.get():
        return 0  # it may be one, but not now
    backend, ends = watched.backend, _Until(watched, None, None)
    recorded = find_known(frame, backend)
    found = purity.read_while(frame, watched) if recorded is None else None
    if recorded is None and (found is None or backend_of(found.body, frame) is not backend):
        return _LATER
    before, backend.last_loop = backend.last_loop, ""
    token = _in_while.set(True)
    try:
        if recorded is not None:
            _run_known(backend, ends, recorded)
        elif found is not None:
            _run_while(frame, ends, found)
    except (OutOfMemory, NotCompiled) as error:  # Python goes on, if no statement has run
        if backend.last_loop:
            raise
        backend.last_loop = before
        return _SOON if isinstance(error, NotCompiled) else _LATER
    finally:
        _in_while.reset(token)
    return 0


def _run_while(frame: FrameType, ends: _Until, found: WhileBody) -> None:
    local, body, backend = dict(frame.f_locals), found.body, ends.watched.backend
    start = local.get(found.counter)
    learn = partial(keep_known, frame, _site(frame), backend, body)
    for turn in _record_and_run(backend, ends, body, True, None, learn):
        if found.counter:
            local[found.counter] = found.counted(start, turn)
        exec(found.code, frame.f_globals, local)


core_recorder.loop_enders.append(end_while)


# ---- `sweep`: the levels of a search in reverse order; a backend may run the sweep as a whole
Pair = tuple[Any, Any]
Array = np.ndarray[Any, Any]


def sweep(levels: Vector | Matrix) -> Iterator[Pair]:
    """Yield each level of a search with the one before it, the farthest first.

    Parameters
    ----------
    levels : Vector, (n,), or Matrix, (k, n), of an integer type
        Levels as `bfs_levels` and `bfs_levels_multi` return them. They are read once, before the
        first iteration; a position without an entry belongs to no level.

    Yields
    ------
    here, above : Vector, (n,), or Matrix, (k, n), BOOL
        True where the level is d, and where it is d - 1; no other entries. d falls from the deepest
        level to 1. A level without entries has its iteration too.

    Raises
    ------
    DomainMismatch
        If `levels` is neither a `Vector` nor a `Matrix`, or not of an integer type.
    InvalidValue
        If a level is negative, or not less than n.

    Notes
    -----
    The entries of a vector are sorted by level once, so an iteration costs only the entries of its
    levels. On `gpu` and `sim` a body of lagpu statements may run as one kernel, for a matrix with
    one thread block for each row (docs/design/sweep.md).

    Examples
    --------
    >>> from lagpu.algorithms import bfs_levels
    >>> from lagpu.generators import path
    >>> for here, above in sweep(bfs_levels(path(4, backend="cpu"), 1)):
    ...     print(here.to_coo()[0].tolist(), above.to_coo()[0].tolist())
    [3] [0, 2]
    [0, 2] [1]
    """
    if not isinstance(levels, (Vector, Matrix)):
        raise DomainMismatch(
            f"sweep: {kind_of(levels)} is neither a Vector nor a Matrix. Give one."
        )
    if levels.dtype.numpy.kind not in "iu":
        raise DomainMismatch(
            f"sweep: {levels.name} is of type {levels.dtype}, and levels are integers. "
            "Give what bfs_levels returns."
        )
    queue.flush()
    found = _Levels(levels)
    backend = levels.backend
    if not backend.capabilities.records:
        frame = sys._getframe(1)
        body = read_body(frame, "sweep")
        _require_fused(body.reason)
        backend.last_loop = BY_ITSELF
        may = isinstance(levels, Vector) and found.deepest > 0
        if not may or _patience(backend, found.data, body, frame) is None:
            return _iterate_levels(found)
        return _record_sweep(backend, found, body, lambda *_: None)
    if found.deepest < 1:
        backend.last_loop = "no iteration"
        return iter(())
    why = why_eager() or ("" if current_recorder() is None else IN_A_BODY)
    if isinstance(levels, Matrix) and type(found.data) is _HostLevels:
        why = why or "its levels are a matrix that is not stored as a bitmap"
    frame = sys._getframe(1)
    if not why and current_observer() is None:
        recorded = find_known(frame, backend, levels.ndim)
        if recorded is not None:
            return _sweep_known(backend, found, recorded)
    body = LoopBody(reason=why) if why else read_body(frame, "sweep")
    if body.scalar:
        why = f"{body.scalar} is a scalar, and a sweep can neither read nor write one"
        body = LoopBody(reason=why)
    learn = partial(keep_known, frame, _site(frame), backend, body)
    return _record_sweep(backend, found, body, learn)


class _Levels:
    """The checked levels of a vector or a matrix; each can be cut out as an object."""

    def __init__(self, levels: Vector | Matrix) -> None:
        self._like = levels
        backend = levels._flushed()
        found = backend.levels(levels.data)
        self.data: ops.Levels = _HostLevels(levels) if found is None else found
        self.deepest, size = self.data.deepest, max(levels.shape)
        if self.data.lowest < 0:
            raise InvalidValue(
                f"sweep: level {self.data.lowest} < 0 in {levels.name}. "
                "Levels begin at 0; delete the entries of unreached vertices."
            )
        if self.deepest >= size:
            raise InvalidValue(
                f"sweep: level {self.deepest} >= {size} in {levels.name}. "
                f"No level of {size} vertices is larger than {size - 1}."
            )

    def cut(self, d: int, name: str) -> Any:
        """Return the vector or matrix that is True where the level is `d`."""
        like = self._like
        return like._of(self.data.cut(d), BOOL, like.shape, like.backend, name)


class _HostLevels:
    """Levels whose entries are sorted on the host: `values`, and `where`, a list of indices."""

    def __init__(self, levels: Vector | Matrix) -> None:
        *where, values = levels.to_coo()
        self._backend, self._shape = levels.backend, (*levels.shape,)
        few = values.astype(np.int16)  # NumPy sorts 16 bits by radix
        order = np.argsort(few if (few == values).all() else values, kind="stable")
        self.values = values[order]
        self.where = [x[order] for x in where]
        self.lowest, self.deepest = 0, -1
        if len(values):
            self.lowest, self.deepest = (int(level) for level in self.values[[0, -1]])

    def cut(self, d: int) -> ops.Handle:
        first, last = np.searchsorted(self.values, [d, d + 1])
        where, true = [x[first:last] for x in self.where], np.True_
        if len(where) == 1:
            return self._backend.vector_from_coo(where[0], true, BOOL, self._shape[0])
        (rows, cols), (nrows, ncols) = where, self._shape
        return self._backend.matrix_from_coo(rows, cols, true, BOOL, (nrows, ncols), None)


def _iterate_levels(levels: _Levels, above: Any = None, done: int = 0) -> Iterator[Pair]:
    """Return the pairs after the first `done`; `above` is the second of the last pair before."""

    def pairs() -> Iterator[Pair]:
        nearer = above
        for d in range(levels.deepest - done, 0, -1):
            here = levels.cut(d, "here") if nearer is None else nearer
            here.name, nearer = "here", levels.cut(d - 1, "above")
            yield here, nearer

    return _observed(pairs(), done)


def _sweep_known(backend: Backend, levels: _Levels, body: ops.RecordedBody) -> Iterator[Pair]:
    """Run a whole sweep whose body was recorded before; iterate if the backend does not."""
    blank = getattr(levels.data, "mask", None)  # a level need not be cut out that no one reads
    here, above = (blank() if blank else levels.data.cut(levels.deepest - k) for k in (0, 1))
    body.handles += here, above
    turns = ops.Sweep(here, above, levels.data)
    done = _run_whole(backend, partial(_planned, backend, body, turns))
    return iter(()) if done else _iterate_levels(levels)


def _record_sweep(
    backend: Backend, levels: _Levels, body: LoopBody, learn: Callable[..., None]
) -> Iterator[Pair]:
    """Record the body once and let the backend run the whole sweep; if impossible, iterate."""
    if not body.statements:
        _run_eagerly(backend, body.reason)
        yield from _iterate_levels(levels)
        return
    here, above = (levels.cut(levels.deepest - k, ("here", "above")[k]) for k in (0, 1))
    recorder = Recorder(backend, here.ndim)
    with recorder:  # if the body raises, the statements before the error run at its end
        recorder.open()
        yield here, above
        recorder.close()
        if len(recorder.statements) == body.statements and not recorder.parts:
            learn(recorder.statements, (here.data, above.data))
        _mask_parts(recorder, (here.data, above.data))
        if len(recorder.statements) < body.statements + len(recorder.parts):
            _run_eagerly(backend, "the body writes vectors and matrices")
        elif run_recorded(recorder, ops.Sweep(here.data, above.data, levels.data)):
            return
    yield from _iterate_levels(levels, above, 1)


def _mask_parts(recorder: Recorder, masks: tuple[ops.Handle, ...]) -> None:
    """Mask a part of an expression as the one statement that reads it, entry by entry."""
    found = recorder.statements
    for k, s in reversed(tuple(enumerate(found))):
        readers = [x for x in found[k + 1 :] if holds(ops.operands_of(x.operation), s.out)]
        if len(readers) == 1 and s.desc.mask is None and holds(recorder.parts, s.out):
            (reader,) = readers
            if holds(masks, reader.desc.mask) and isinstance(reader.operation, _BY_ENTRY):
                found[k] = s._replace(desc=reader.desc._replace(accum=None, replace=True))


_BY_ENTRY = (ops.Apply, ops.Ewise, ops.Select)
