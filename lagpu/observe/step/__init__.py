"""`step`: an algorithm statement by statement, with every vector after each of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from lagpu.core.expr import format_formula
from lagpu.core.matrix import Matrix
from lagpu.core.observer import Observer, observing
from lagpu.core.recorder import run_statement
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.core.views import SelectionMatrix
from lagpu.dtypes import BOOL
from lagpu.errors import DomainMismatch, LimitExceeded
from lagpu.host.source import author, lines_of, named, source_between, target_of
from lagpu.observe.step.displayed import Step
from lagpu.observe.step.state import Masking, Multiplied, State
from lagpu.operations import Descriptor, Multiply, MultiplySelection, SelectionToMatrix, Statement

__all__ = ["ENTRIES", "STATEMENTS", "step"]

#: Most statements that `step` records, unless `limit` is given.
STATEMENTS = 10_000
#: Most entries in all recorded states together; an unchanged state is stored once.
ENTRIES = 10_000_000


def step(
    algorithm: Callable[..., Any], /, *args: Any, limit: int = STATEMENTS, **options: Any
) -> Generator[Step, None, Any]:
    """Run an algorithm and yield its state after each statement.

    Parameters
    ----------
    algorithm : callable
        Any function of lagpu's statements, such as `bfs_levels` or your own, unchanged.
    *args, **options
        Arguments of the algorithm.
    limit : int, optional
        Most statements to record.

    Yields
    ------
    Step
        In order. The algorithm runs to its end before the first step is yielded, its loops
        statement by statement; if it raised, the error follows the last step.

    Returns
    -------
    Any
        What the algorithm returned, the value of ``yield from``.

    Raises
    ------
    LimitExceeded
        After the last step, if there are more than `limit` statements, or more than `ENTRIES`
        entries to store.
    DomainMismatch
        If `algorithm` cannot be called, or `limit` is not an integer.

    Examples
    --------
    >>> from lagpu.algorithms import bfs_levels
    >>> from lagpu.generators import path
    >>> for s in step(bfs_levels, path(3, backend="cpu"), 0):
    ...     print(s.level, s.formula, s.vectors["frontier"].to_dict())
    -1 frontier[0] << True {0: True}
    0 levels(frontier.S) << 0 {0: True}
    0 frontier(~levels.S, replace) << frontier any_pair A {1: True}
    1 levels(frontier.S) << 1 {1: True}
    1 frontier(~levels.S, replace) << frontier any_pair A {2: True}
    2 levels(frontier.S) << 2 {2: True}
    2 frontier(~levels.S, replace) << frontier any_pair A {}
    """
    if not callable(algorithm):
        raise DomainMismatch(f"step: {type(algorithm).__name__} cannot be called. Give a function.")
    if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)):
        raise DomainMismatch(
            f"step: limit {limit!r} is not an integer. Leave it out for {STATEMENTS:,} statements."
        )
    recorder = _Recorder(limit)
    error, result = None, None
    with observing(recorder):
        try:
            result = recorder.call(algorithm, args, options)
        except Exception as raised:
            error = raised
    yield from recorder.steps()
    if error is not None:
        raise error
    return result


_SHOWN = (Vector, Matrix, Scalar, SelectionMatrix)


class _Record(NamedTuple):
    """A statement as the observer saw it, with objects by their ``id``."""

    level: int
    to: Any
    call: Any
    code: CodeType | None
    lines: tuple[int, int]
    source: str
    names: dict[int, str]
    scope: dict[int, Any]
    before: dict[int, State]
    after: dict[int, State]
    scalars: dict[int, Any]
    matrices: dict[int, Matrix]


class _Recorder(Observer):
    """The observer of `step`, which records every statement."""

    why_eager = "it is stepped through"

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries = 0
        self._records: list[_Record] = []
        self._last: dict[int, State] = {}
        self._views: dict[int, tuple[SelectionMatrix, State, Matrix]] = {}
        self._copies: dict[int, tuple[Matrix, Matrix]] = {}

    def call(self, algorithm: Callable[..., Any], args: Any, options: Any) -> Any:
        """Call the algorithm; this frame separates its frames from the caller's."""
        return algorithm(*args, **options)

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """See `Observer`."""
        if len(self._records) >= self._limit:
            raise LimitExceeded(
                f"step: more than {self._limit:,} statements. Use a smaller graph, or raise limit=."
            )
        frame = author()
        code, lines = (None, (0, 0)) if frame is None else (frame.f_code, lines_of(frame))
        names, scope = self._in_scope(frame)
        for x in (to.out, *call.inputs, *(() if to.mask is None else (to.mask.vector,))):
            scope.setdefault(id(x), x)
        for P in (getattr(part, "stored", None) for part in call.formula):
            if isinstance(P, SelectionMatrix):
                scope.setdefault(id(P), P)
        before = self._states(scope)
        views = {k: self._viewed(x) for k, x in scope.items() if isinstance(x, SelectionMatrix)}
        work()
        self._copies.pop(id(to.out), None)
        self._records.append(
            _Record(
                self.level,
                to,
                call,
                code,
                lines,
                "" if code is None else source_between(code.co_filename, *lines),
                names,
                scope,
                before,
                self._states(scope),
                {k: x.value for k, x in scope.items() if isinstance(x, Scalar)},
                {k: self._copy(x) for k, x in scope.items() if isinstance(x, Matrix)} | views,
            )
        )

    def _in_scope(self, frame: FrameType | None) -> tuple[dict[int, str], dict[int, Any]]:
        """Return names and objects in the variables of the algorithm's frames, innermost first."""
        names: dict[int, str] = {}
        scope: dict[int, Any] = {}
        taken: set[str] = set()
        while frame is not None and frame.f_code is not _Recorder.call.__code__:
            for name, x in list(frame.f_locals.items()):
                if isinstance(x, _SHOWN) and id(x) not in names:
                    unique = name if name not in taken else f"{name} of {frame.f_code.co_name}"
                    taken.add(unique)
                    names[id(x)], scope[id(x)] = unique, x
            frame = frame.f_back
        return names, scope

    def _states(self, scope: dict[int, Any]) -> dict[int, State]:
        return {k: self._state(k, x) for k, x in scope.items() if isinstance(x, Vector)}

    def _state(self, key: int, v: Vector) -> State:
        """Return the state of a vector now; the last recorded one if nothing has changed."""
        new = State(v.size, v.dtype, *v.to_coo())
        known = self._last.get(key)
        if known is not None and new.same_as(known):
            return known
        self._entries += new.nvals
        if self._entries > ENTRIES:
            raise LimitExceeded(
                f"step: more than {ENTRIES:,} entries in the states. Use a smaller graph."
            )
        self._last[key] = new
        return new

    def _viewed(self, P: SelectionMatrix) -> Matrix:
        """Return a selection as a matrix; the last one if nothing has changed."""
        f: Any = P.operand
        state = self._state(id(f), f)
        known = self._views.get(id(P))
        if known is None or known[1] is not state or known[2].shape != P.shape:
            data = P.backend.matrix(BOOL, P.shape)
            fill = Statement(data, Descriptor(), SelectionToMatrix(f.data, P.nrows), BOOL)
            run_statement(P.backend, fill)  # without the observer: not a statement of the author
            known = P, state, Matrix._of(data, P.dtype, P.shape, P.backend, P.name)
            self._views[id(P)] = known
        return known[2]

    def _copy(self, A: Matrix) -> Matrix:
        """Return a copy of a matrix; the last copy if no statement has written the matrix."""
        known = self._copies.get(id(A))
        if known is None:
            data = A.backend.dup(A.data, A.dtype)
            copy = Matrix._of(data, A.dtype, A.shape, A.backend, A.name)
            known = self._copies[id(A)] = A, copy
        return known[1]

    # ------------------------------------------------------------------------------ reading
    def steps(self) -> Iterator[Step]:
        """Yield the recorded steps, with names instead of ids."""
        for number, record in enumerate(self._records, 1):
            yield self._step(number, record)

    def _step(self, number: int, r: _Record) -> Step:
        names = named(r.names, r.to.out, target_of(r.code, r.source), r.scope)
        code = r.code
        mask = r.to.mask
        return Step(
            number=number,
            level=r.level,
            formula=" << ".join(format_formula(x.formula, names) for x in (r.to, r.call)),
            source=r.source,
            code=code,
            file="" if code is None else code.co_filename,
            line=r.lines[0],
            last_line=r.lines[1],
            output=names[id(r.to.out)],
            vectors={names[k]: state for k, state in r.after.items()},
            before={names[k]: state for k, state in r.before.items()},
            scalars={names[k]: value for k, value in r.scalars.items()},
            matrices={names[k]: A for k, A in r.matrices.items()},
            mask=None if mask is None else _masking(mask, r.before.get(id(mask.vector)), names),
            product=_multiplied(r.call, names),
        )


def _masking(mask: Any, state: State | None, names: Mapping[int, str]) -> Masking:
    formula = f"{'~' * mask.complement}{names[id(mask.vector)]}.{'S' if mask.structure else 'V'}"
    if state is None:  # of a matrix
        return Masking(formula, None)
    kept = state.pattern
    if not mask.structure:
        kept[state.indices] = state.values != 0
    return Masking(formula, ~kept if mask.complement else kept)


def _multiplied(call: Any, names: Mapping[int, str]) -> Multiplied | None:
    if not isinstance(call.operation, (Multiply, MultiplySelection)) or len(call.shape) != 1:
        return None
    left, _, right = call.formula
    vector_left = isinstance(left, Vector)
    vector, matrix = (left, right) if vector_left else (right, left)
    stored = matrix.stored
    return Multiplied(names[id(stored)], stored is not matrix, names[id(vector)], vector_left)
