"""The observer and the recorder of a program's statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import get_ident
from typing import Any

from lagpu.backends.protocol import Backend
from lagpu.operations import Constant, FusedLoop, Rejection, ScalarValue, Statement, resolved


class Recorder:
    """Takes the statements of a loop's body instead of running them, until it is closed.

    At the end of a ``with`` statement it runs what it has taken and nothing else has run.
    Statements of other backends run at once. It takes those that write vectors or scalars, `ndim`
    1, or matrices, 2, by default the kind of the first; one of the other kind ends the recording.
    `before_running` is called before recorded statements run by themselves after all.

    Attributes
    ----------
    statements : list of Statement
        The recorded statements that have not run.
    mixed : bool
        Whether a statement of the other kind ended the recording.
    is_open : bool
        Whether it takes statements.
    temporaries : int
        How many of them compute a part of an expression, and are no statement of the author's.
    """

    def __init__(
        self,
        backend: Backend,
        ndim: int | None = None,
        before_running: Callable[[], None] = lambda: None,
    ) -> None:
        self.backend, self.ndim = backend, ndim
        self.statements: list[Statement] = []
        self.temporaries = 0
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
            self._observer.forget()

    def open(self) -> None:
        """Take the statements of this thread or task from now on."""
        self.is_open = True
        _current.set(self)
        if self._observer is not None:
            self._observer.level = 0  # of statements that run by themselves after all

    def close(self) -> None:
        """Take no more."""
        self.is_open = False
        if _current.get() is self:  # the context may differ from the one that opened it
            _current.set(None)

    def takes(self, s: Statement, ndim: int, backend: Backend | None) -> bool:
        """Take a statement and return True, or return False if it is to run now.

        In the second case the statements taken before, on which it may depend, have run.
        """
        if backend is not self.backend and backend is not None:
            if ndim == 0:
                self.flush()
            return False
        kind = max(ndim, 1)
        if self.ndim is None:
            self.ndim = kind
        if kind != self.ndim:
            self.mixed = True
            self.flush()
            return False
        self.statements.append(s)
        return True

    def flush(self) -> None:
        """Run the recorded statements, in order, and take no more."""
        was_open, taken = self.is_open, self.statements
        self.close()
        self.statements, self.temporaries = [], 0
        if was_open or taken:  # what follows runs by itself, too
            self._before_running()
        for k, s in enumerate(taken):
            if self._observer is None:
                run_statement(self.backend, s)
            else:
                self._observer.replay(k, partial(run_statement, self.backend, s))


_current: ContextVar[Recorder | None] = ContextVar("lagpu_recorder", default=None)


def current_recorder() -> Recorder | None:
    """Return the recorder that takes the statements of this thread or task, or None."""
    found = _current.get()
    return found if found is not None and found.is_open else None


def flush(backend: Backend | None = None) -> None:
    """Run the statements recorded for a backend (None: any), before one of its objects is read."""
    recorder = current_recorder()
    if recorder is not None and backend in (None, recorder.backend):
        recorder.flush()


def why_unreadable(x: Any) -> str:
    """Return why a display cannot read an object now, or an empty string."""
    recorder = current_recorder()
    recorded = recorder is not None and x.backend in (None, recorder.backend)
    return "a loop is being recorded" if recorded else ""


def run_statement(backend: Backend | None, s: Statement, depth: int = 0) -> None:
    """Run one statement now."""
    operation = resolved(s.operation, depth)
    if type(s.out) is ScalarValue:
        if isinstance(operation, Constant):
            number = operation.value
        else:
            assert backend is not None
            number = backend.evaluate(operation)
        s.out.write(s.desc.accum, s.dtype, number)
    else:
        assert backend is not None
        backend.execute(s if operation is s.operation else s._replace(operation=operation))


# ------------------------------------------------------------------------------------------
# The observer of a program, which sees each statement as it runs; at most one, often none.


class Observer:
    """Base of a trace, a stepper and a crosscheck: sees each statement before it runs, and runs it.

    Attributes
    ----------
    level : int
        Iteration of the innermost `loop`, from 0; -1 outside of a loop. The loop sets it.
    why_eager : str
        Why loops run statement by statement, such as ``"it is stepped through"``; an empty string
        if they need not, and then their statements are `recorded`.
    thread : int
        The thread whose statements it sees.
    """

    level: int = -1
    thread: int = 0
    why_eager: str = ""

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """See the checked statement ``to << call``, and run it by calling `work` once."""
        work()

    def entry(
        self, v: Any, describe: Callable[[], tuple[Any, Any]], work: Callable[[], None]
    ) -> None:
        """See ``v[i] = x`` for one number, and run it by calling `work` once.

        `describe` returns the same as a statement: an updater and a call.
        """
        self.statement(*describe(), work)

    def recorded(self, to: Any, call: Any) -> None:
        """See a recorded statement of a loop's body, which runs later or as part of the loop."""

    def replay(self, k: int, work: Callable[[], None]) -> None:
        """Run the k-th recorded statement by itself after all, by calling `work` once."""
        work()

    def run_loop(
        self, backend: Backend, plan: Callable[[], FusedLoop | Rejection]
    ) -> FusedLoop | Rejection:
        """Plan the recorded loop by calling `plan`, run it unless rejected, and return the plan."""
        loop = plan()
        if not isinstance(loop, Rejection):
            loop.run()
        return loop

    def forget(self) -> None:
        """Forget the recorded statements: the loop is over, or goes on without them."""


_current_observer: ContextVar[Observer | None] = ContextVar("lagpu_observer", default=None)


def current_observer() -> Observer | None:
    """Return the observer of this thread or task, or None.

    `asyncio.to_thread` copies the context of a task into another thread, which the observer does
    not see: its level and its recorded statements are those of one thread.
    """
    observer = _current_observer.get()
    if observer is None or observer.thread == get_ident():
        return observer
    return None


def set_observer(observer: Observer | None) -> None:
    """Let `observer` see every statement of this thread from now on; None ends it."""
    if observer is not None:
        observer.thread = get_ident()
    _current_observer.set(observer)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Let `observer` see every statement inside ``with``, hidden from an outer observer."""
    outer = current_observer()
    set_observer(observer)
    try:
        yield
    finally:
        set_observer(outer)
