"""Taking the statements of a loop's body instead of running them, and running them after all."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

from lagpu.backends.protocol import Backend, Counter, Data, Descriptor, Statement
from lagpu.operations.scalar import Cell, held_in, read

__all__ = ["Recorder", "latest", "recording", "runner"]


def runner(backend: Any, s: Statement, often: bool = False) -> Callable[..., None]:
    """Return what runs a statement, by ``run(w, desc, *args)``, with scalars as they are then.

    With `often` it is one of a loop, which will run it again and again.
    """
    if type(s.w) is Cell:
        return partial(_write_cell, getattr(backend, s.method, None), s.dtype)
    run: Callable[..., None] = (often and backend.repeated(s)) or getattr(backend, s.method)
    if not any(held_in(s.args)):
        return run
    return lambda w, desc, *args: run(w, desc, *read(args))


def _write_cell(make: Any, dtype: Any, cell: Cell, desc: Descriptor, *args: Any) -> None:
    """Write what `make` returns, or the number that `args` are, into a scalar."""
    given = read(args)
    cell.write(desc.accum, dtype, given[0] if make is None else make(*given))


class Recorder:
    """Takes the statements of a loop's body instead of running them.

    Parameters
    ----------
    backend : Backend
        Whose statements.
    replay_one : callable, optional
        Runs the statement that was taken as the k-th, by calling what it is given with k.
    ndim : int or None, default 1
        What it takes: statements that write vectors (1), or matrices (2). Another one ends the
        recording. None: what the first one writes.

    Attributes
    ----------
    ndim : int or None
        As given, or found.
    statements : list of Statement
        What was taken and has not run.
    """

    def __init__(
        self,
        backend: Backend,
        replay_one: Callable[[int, Callable[[], None]], None] | None = None,
        ndim: int | None = 1,
    ) -> None:
        self.backend = backend
        self.statements: list[Statement] = []
        self._replay_one = replay_one or (lambda _, work: work())
        self.ndim = ndim

    def takes(self, ndim: int, call: Any = None) -> bool:
        """Whether it takes statements that write such objects; else what was taken is run.

        A scalar (0) goes with vectors. A `call` that it does not take gets the data that its
        matrices have then, and the numbers that scalars have.
        """
        if self.ndim is None:
            self.ndim = max(ndim, 1)
        if max(ndim, 1) == self.ndim:
            return True
        held = [] if call is None else [(x, x.data) for x in call.inputs]
        self.replay()
        if call is not None:
            now = {id(data): x.data for x, data in held}
            call.args = read(tuple(now.get(id(x), x) for x in call.args))
        return False

    def add(
        self,
        call: Any,
        w: Data,
        desc: Descriptor,
        out: Any = None,
        again: Callable[[], None] | None = None,
    ) -> None:
        """Take one checked call of the front end; of a matrix with what `Statement` has of it."""
        is_counter = type(call.formula[0]) is Counter
        self.statements.append(
            Statement(call.method, w, desc, call.args, is_counter, out, again, call.dtype)
        )

    def replay(self) -> None:
        """Run what was taken, in order, and take no more."""
        self.backend.recorder = None
        taken, self.statements = self.statements, []
        for k, s in enumerate(taken):
            run = s.again or partial(runner(self.backend, s), s.w, s.desc, *s.args)
            self._replay_one(k, run)


#: The recorder of the loop that was begun last here: what a scalar, which has no backend, asks for.
latest: ContextVar[Recorder | None] = ContextVar("lagpu_recorder", default=None)


def recording(backend: Any = None, call: Any = None) -> Recorder | None:
    """Return the recorder that takes scalars, or the `call` for one, now, or None.

    One that takes no scalars, or whose backend is not `backend`, if that is given, runs what it has
    taken, and records no more.
    """
    found = latest.get()
    if found is None or found.backend.recorder is not found or not found.takes(0, call):
        return None
    if backend is not None and backend is not found.backend:
        found.replay()
        return None
    return found
