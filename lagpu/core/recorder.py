"""The recorder of a loop's body, the queue of statements that wait, and the observer of both."""

import os
from collections.abc import Callable
from contextvars import ContextVar
from functools import cached_property, partial
from threading import RLock, Thread, current_thread, get_ident
from threading import enumerate as enumerate_threads
from types import FrameType
from typing import Any, Self

from lagpu import operations as ops
from lagpu.backends.protocol import Backend
from lagpu.host.interrupt import uninterrupted
from lagpu.host.source import author
from lagpu.operations import Handle, Planned, Rejection, ScalarValue, Statement


class Recorder:
    """Takes the statements of a loop's body instead of running them, until it is closed.

    At the end of a ``with`` statement it runs what it has taken and nothing else has run.
    Statements of other backends run at once. It takes those that write scalars, and vectors, `ndim`
    1, or matrices, 2, by default the kind of the first; one of the other kind ends the recording,
    as `mixed` says. `line` is the author's line that ended it before its end, or 0.
    `before_running` is called before recorded statements run by themselves after all. `statements`
    have not run; `parts` are the outputs of those that compute a part of an author's expression.
    """

    def __init__(
        self, backend: Backend, ndim: int | None = None,
        before_running: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.backend, self.ndim = backend, ndim
        self.statements: list[Statement] = []
        self.parts: list[Handle] = []
        self.line = 0
        self.mixed = False
        self._before_running = before_running
        self.is_open = False
        self._observer = current_observer()
        self._outer = -1 if self._observer is None else self._observer.level

    def __enter__(self) -> None:
        """Take nothing yet: `open` does, inside the block, whose end an interrupt cannot skip."""

    def __exit__(self, *error: object) -> None:
        self.flush()
        if self._observer is not None:
            self._observer.level = self._outer
            self._observer.notes.clear()

    def open(self) -> None:
        """Take the statements of this thread or task from now on."""
        queue.flush()
        self.is_open = True
        recording.set(self)
        if self._observer is not None:
            self._observer.level = 0  # of statements that run by themselves after all

    def close(self) -> None:
        """Take no more."""
        self.is_open = False
        if recording.get() is self:  # the context may differ from the one that opened it
            recording.set(None)

    def takes(self, s: Statement, ndim: int, backend: Backend | None) -> bool:
        """Take a statement and return True, or return False if it is to run now.

        In the second case the statements taken before, on which it may depend, have run.
        """
        if backend is not self.backend and backend is not None:
            if ndim == 0:
                self.flush()
            return False
        if self.ndim is None:
            self.ndim = ndim or None
        if ndim not in (0, self.ndim):
            self.mixed = True
            self.flush()
            return False
        self.statements.append(s)
        return True

    def flush(self) -> None:
        """Run the recorded statements, in order, and take no more."""
        was_open, taken = self.is_open, self.statements
        self.close()
        self.statements, self.parts = [], []
        if was_open or taken:  # what follows runs by itself, too
            self.line = getattr(author(), "f_lineno", 0)
            self._before_running()
        for k, s in enumerate(taken):
            work = partial(run_statement, self.backend, s)
            if self._observer is None or k >= len(self._observer.notes):  # or interrupted before
                work()
            else:
                self._observer.replay(self._observer.notes[k], work)


#: None if `current_recorder` is None, most of the time.
recording: ContextVar[Recorder | None] = ContextVar("lagpu_recorder", default=None)


def current_recorder() -> Recorder | None:
    """Return the recorder that takes the statements of this thread or task, or None."""
    found = recording.get()
    return found if found is not None and found.is_open else None


def flush(backend: Backend | None = None, counted: Handle | None = None) -> None:
    """Run what is recorded or waits for a backend (None: any), before one of its objects is read.

    `counted` is the vector whose number of entries is about to be read, if that is all.
    """
    recorder = current_recorder()
    if recorder is not None and backend in (None, recorder.backend):
        recorder.flush()
    if queue.errors or (queue.statements and backend in (None, queue.backend)):
        queue.flush(counted)


def why_unreadable(x: Any) -> str:
    """Return why a display cannot read an object now, or an empty string."""
    recorder = current_recorder()
    recorded = recorder is not None and x.backend in (None, recorder.backend)
    if not recorded:
        queue.flush()
    return "a loop is being recorded" if recorded else ""


# ---- Nonblocking mode, as GraphBLAS calls it: statements of a loop that Python runs wait, and then
# run as one program. A site is the place of a statement in the author's code.
HOT = 3  # statements of a site that run at once; the next ones wait, as it is taken for a loop's
_REPEATED = 3  # statements of one site that wait together; of the first site only one does
_AGAIN = 64  # statements of a site that run at once after one that has waited alone
_MOST_SITES = 4096  # sites that are counted; then all counts begin again

blocking: ContextVar[bool] = ContextVar("lagpu_blocking", default=False)


class Queue:
    """The statements of one thread and one backend that wait for each other.

    They run when a value is read, when a statement comes that cannot join them, when the site of
    the first one comes again (or another site often), or when there are many. No other thread's
    statements wait with them: a thread that finds some runs them, and from then on every statement
    runs at once. If one raises, both get the error, the first thread when it calls lagpu again:
    until then it is in `errors`.
    """

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.errors: dict[Thread, Exception] = {}
        self.backend: Backend | None = None
        self._lines: list[Any] = []  # the backend's `BatchLine` of each, to run them together
        self._lock = RLock()
        self._thread = 0
        self._is_shared = False
        self._room = 1.0  # the share of a batch that is left
        self._first: Any = None  # the site of the first one
        self._alone: Any = None  # the site of the last one that ran, if nothing waited with it
        self._sites: dict[Any, int] = {}  # how often each site has come since
        #: By site: how often its statement has come, then `last` of ``batches.line``.
        self._seen: dict[int, Any] = {}
        self._ours: set[int] = set()  # the functions of lagpu that sites call, by ``id``

    def takes(self, s: Statement, backend: Backend | None, caller: Any) -> bool:
        """Take a statement and return True; or return False, when all before it have run.

        `caller` is the caller's frame, or that of a function of lagpu that the author's line has
        called; or a number that is the same for each run of a statement known to be repeated.
        """
        if backend is None:  # a number for a scalar
            backend = self.backend
            if backend is None or not self.statements:
                return False
        batches = None if backend.device is None else backend.capabilities.batches
        site: Any = caller
        line: Any = None
        if not (batches is None or self._is_shared or blocking.get()):
            if type(caller) is int:
                same = self._seen.get(caller)
            else:
                site = id(caller.f_code) + caller.f_lasti
                same = self._seen.get(site, -1)
                if type(same) is int and same < HOT:
                    site = self._hot(caller)
                    same = self._seen.get(site)
            if site is not None:
                line = batches.line(s, same if type(same) is tuple else None)
                if line is not None and line[-1] is not same:
                    self._note(site, line[-1] or HOT)
        if line is None and not self.statements:
            if self.errors:
                self.flush()
            return False
        with self._lock:
            waits, sites = self.statements, self._sites
            joins = line is not None and waits and site not in sites
            if joins and backend is self.backend and self._thread == get_ident():
                sites[site] = 1
            elif self._opens(line is not None, site, backend):
                waits = self.statements
                sites[site] = sites.get(site, 0) + 1
            else:
                return False
            waits.append(s)
            self._lines.append(line)
            self._room -= line[3]
            if self._room <= 0:
                self._flush()
        return True

    def _opens(self, joins: bool, site: Any, backend: Backend) -> bool:
        """Run what waits if it must not wait for a statement; return whether that may wait."""
        if self.statements:
            came = self._sites.get(site, 0)
            others = backend is not self.backend or self._thread != get_ident()
            again = came == _REPEATED or (came > 0 and site == self._first)
            if not joins or again or others:
                self._flush()
        if self.errors:
            self.flush()
        if not joins or self._is_shared:
            return False
        if not self.statements:
            if site == self._alone:  # it has waited for nothing
                self._note(site, HOT - _AGAIN)
                return False
            self.backend, self._thread, self._first = backend, get_ident(), site
            self._room = 1.0
            self._sites.clear()
        return True

    def _hot(self, frame: FrameType, inside: int = 0) -> int | None:
        """Return the site of the author's statement, or None if it has not come often.

        A line of the author's may run several, from other sites inside lagpu.
        """
        found: Any = frame
        while (code := id(found.f_code)) in self._ours:
            inside = 31 * inside + found.f_lasti
            found = found.f_back
        site = code + found.f_lasti  # inside the code object
        if inside:
            site = hash((site, inside))
        if site not in self._seen and found.f_globals.get("__name__", "").startswith("lagpu.core."):
            self._ours.add(code)
            inside = 31 * inside + found.f_lasti
            return None if found.f_back is None else self._hot(found.f_back, inside)
        return site if self._comes(site) else None

    def _comes(self, site: int) -> bool:
        """Count a site; return whether it has come often."""
        seen = self._seen.get(site, 0)
        if type(seen) is not int or seen >= HOT:
            return True
        self._note(site, seen + 1)
        return False

    def _note(self, site: int, seen: Any) -> None:
        if len(self._seen) >= _MOST_SITES:
            self._seen.clear()
        self._seen[site] = seen

    def ends(self, frame: FrameType, x: Any) -> bool:
        """Run the rest of a loop ``while x.nvals:`` whose condition `frame` has tested often.

        Return False if it is none, or has to be left to Python.
        """
        site = id(frame.f_code) + frame.f_lasti
        if not self._comes(site):
            return False
        waits = max(end(frame, x) for end in loop_enders)
        if waits:
            self._seen[site] = HOT - waits
        return not waits

    def writes(self, x: ScalarValue) -> bool:
        """Whether a statement that waits gives a scalar its value."""
        return any(s.out is x for s in self.statements)

    def flush(self, counted: Handle | None = None) -> None:
        """Run the statements that wait; `counted` is as `flush` takes it.

        If one of them raises, it is as if the program had ended there. An interrupt, which comes
        after all of them in the program, is raised when they have run.
        """
        if self.statements:
            with self._lock:
                self._flush(counted)
        if self.errors and (error := self.errors.pop(current_thread(), None)) is not None:
            raise error

    def _flush(self, counted: Handle | None = None) -> None:
        """Do what `flush` does, in a thread that has the lock."""
        owner = self._thread
        try:
            self._run(counted)
        except Exception as error:
            if owner != get_ident():
                self.errors |= {x: error for x in enumerate_threads() if x.ident == owner}
            raise

    def _run(self, counted: Handle | None) -> None:
        backend, lines = self.backend, self._lines
        if backend is None or not lines:  # another thread has run them
            return
        self._is_shared = self._is_shared or self._thread != get_ident()
        self._alone = self._first if len(lines) == 1 else None
        batches = backend.capabilities.batches
        if len(lines) > 1:
            device, ran = backend.device, False
            with backend.lock:
                device.began = False
                try:
                    ran = batches.again(lines, counted)
                except BaseException as error:  # before the launch an interrupt leaves them waiting
                    ran = device.began or isinstance(error, Exception)
                    raise
                finally:
                    if ran:
                        self.statements, self._lines = [], []
            if ran:
                return
        with uninterrupted():
            taken, self._lines = self.statements, []
            try:
                if len(taken) > 1:
                    with backend.lock:  # what a plan has found holds until the program has run
                        if batches.run(taken, lines, counted):
                            return
                for s in taken:
                    run_statement(backend, s)
            finally:  # so until now other threads wait for the lock
                self.statements = []

    def forget(self) -> None:
        """Forget what waits: it is that of the process before a fork."""
        self.__init__()  # type: ignore[misc]


#: What may run the rest of a loop ``while x.nvals:``, by the frame that tests it and x; it returns
#: 0, or how often Python tests the condition before this is to be called again.
loop_enders: list[Callable[[FrameType, Any], int]] = []
queue = Queue()
os.register_at_fork(after_in_child=queue.forget)


def run_statement(backend: Any, s: Statement, depth: int = 0) -> None:
    """Run one statement now; a number for a scalar needs no backend."""
    operation: Any = s.operation
    if operation.refers and isinstance(getattr(operation, operation.refers), tuple):
        if s.may_delete and len(operation.indices) == 1 and operation.value.scalar.get() is None:
            none = backend.vector(s.out.dtype, len(operation.indices[0]))
            s = s._replace(operation=ops.Assign(none, operation.indices))
        operation = ops.resolved(s.operation, depth)
    if type(s.out) is not ScalarValue:
        backend.execute(s if operation is s.operation else s._replace(operation=operation))
        return
    of_numbers = isinstance(operation, (ops.Constant, ops.Apply, ops.Select, ops.Ewise))
    number = ops.of_scalars(operation) if of_numbers else backend.evaluate(operation)
    s.out.write(s.desc.accum, s.dtype, number)


# ---- The observer of a program, which sees each statement as it runs; at most one, often none.
class Observer:
    """Base of a trace, a stepper and a crosscheck: sees each statement before it runs, and runs it.

    The statements are those of a `thread`. `level` is the iteration of the innermost `loop`, which
    sets it, from 0; -1 outside of a loop. `why_eager` says why loops run statement by statement, as
    ``"it is stepped through"``; if it is empty, their statements are recorded, and `noted`.
    """

    level: int = -1
    thread: int = 0
    why_eager: str = ""

    def __enter__(self) -> Self:
        """See every statement inside ``with``, hidden from an outer observer."""
        self._outer = current_observer()
        set_observer(self)
        return self

    def __exit__(self, *error: object) -> None:
        set_observer(self._outer)

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """See the checked statement ``to << call``, and run it by calling `work` once."""
        work()

    @cached_property
    def notes(self) -> list[Any]:
        """What was noted of each recorded statement of a loop's body, until the loop is over."""
        return []

    def noted(self, to: Any, call: Any) -> Any:
        """Return a note of a recorded statement, which runs later or as part of the loop."""

    def replay(self, note: Any, work: Callable[[], None]) -> None:
        """Run a recorded statement by itself after all, by calling `work` once."""
        work()

    def run_loop(self, backend: Backend, plan: Callable[[], Planned]) -> Planned:
        """Plan the recorded loop by calling `plan`, run it unless rejected, and return the plan."""
        loop = plan()
        if not isinstance(loop, Rejection):
            loop.run()
        return loop


#: None if `current_observer` is None, most of the time.
observed: ContextVar[Observer | None] = ContextVar("lagpu_observer", default=None)


def current_observer() -> Observer | None:
    """Return the observer of this thread or task, or None."""
    observer = observed.get()
    return observer if observer is None or observer.thread == get_ident() else None


def set_observer(observer: Observer | None) -> None:
    """Let `observer` see every statement of this thread from now on; None ends it."""
    queue.flush()
    if observer is not None:
        observer.thread = get_ident()
    observed.set(observer)
