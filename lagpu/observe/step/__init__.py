"""`step`, `steps`, `explore`: a program statement by statement, with its vectors after each."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any, overload

import numpy as np

from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.expr import format_formula
from lagpu.core.recorder import Observer
from lagpu.core.views import SelectionMatrix
from lagpu.draw.look import text
from lagpu.errors import DomainMismatch, InvalidValue, LimitExceeded
from lagpu.host import source
from lagpu.host.files import return_or_write
from lagpu.observe.step.drawing import Labels, Masking, Multiplied, State, Step, page_of_runs
from lagpu.operations import Multiply, MultiplySelection

__all__ = ["ENTRIES", "STATEMENTS", "Explored", "Steps", "explore", "step", "steps"]

#: Most statements that `step` records, unless `limit` is given.
STATEMENTS = 10_000
#: Most entries in all recorded states together; an unchanged state is stored once.
ENTRIES = 10_000_000
#: Most combinations of options that `explore` runs.
COMBINATIONS = 500


def step(
    algorithm: Callable[..., Any], /, *args: Any, limit: int = STATEMENTS, **options: Any
) -> Generator[Step, None, Any]:
    """Run an algorithm and yield its state after each statement.

    Parameters
    ----------
    algorithm : callable
        Any function of lagpu's statements, such as `bfs_levels` or your own, unchanged. It runs to
        its end before the first step is yielded, its loops statement by statement.
    *args, **options
        The arguments of the algorithm.
    limit : int, optional
        Most statements to record.

    Yields
    ------
    Step
        In order. If the algorithm raised, the error follows the last step. What it returned is the
        value of ``yield from``.

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
    _require_callable(algorithm, "step")
    recorder = Steps(limit, "step")
    error, result = None, None
    with recorder:
        try:
            result = algorithm(*args, **options)
        except Exception as raised:
            error = raised
    yield from recorder
    if error is not None:
        raise error
    return result


def _require_callable(algorithm: Any, what: str) -> None:
    if not callable(algorithm):
        kind = type(algorithm).__name__
        raise DomainMismatch(f"{what}: {kind} cannot be called. Give a function.")


def steps(*, limit: int = STATEMENTS) -> Steps:
    """Record the state after each statement that runs inside: ``with lagpu.steps() as s: ...``.

    The program runs unchanged, its loops statement by statement. For a graph of up to 64 vertices
    ``s.to_html("steps.html")`` writes the page that ``--step`` writes for the commands of lagpu,
    and a notebook shows this page for ``s``. The steps are ``len(s)``, ``s[k]``, ``for step in s``.

    Raises
    ------
    LimitExceeded
        Within ``with``, if there are more than `limit` statements, or more than `ENTRIES` entries
        to store; the steps before are kept.
    DomainMismatch
        If `limit` is not an integer.

    Examples
    --------
    >>> from lagpu import INT64, Vector, binary, loop, semiring
    >>> from lagpu.generators import path
    >>> def components(A):
    ...     labels = Vector.from_dense([0, 1, 2], dtype=INT64, like=A)
    ...     for _ in loop(until_unchanged=labels):
    ...         labels(accum=binary.min) << semiring.min_first(labels @ A)
    ...     return labels
    >>> with steps() as s:
    ...     labels = components(path(3, backend="cpu"))
    >>> for step in s:
    ...     print(step.level, step.formula, step.vectors["labels"].to_dict())
    0 labels(min) << labels min_first A {0: 0, 1: 0, 2: 1}
    1 labels(min) << labels min_first A {0: 0, 1: 0, 2: 0}
    2 labels(min) << labels min_first A {0: 0, 1: 0, 2: 0}
    >>> page = s.to_html()  # or to_html("steps.html")
    """
    return Steps(limit)


def explore(
    algorithm: Callable[..., Any], /, *args: Any, **options: Mapping[str, Any] | Iterable[Any]
) -> Explored:
    """Record the steps of an algorithm for each combination of options, for one page.

    The reader of the page chooses the options and steps, without Python: lagpu has computed all
    results. A notebook shows the page. `algorithm` is as for `step`, `args` are its arguments that
    stay the same, and each of `options` has the values of an argument to choose from:
    ``{text: value}``, or values that are shown as text, such as ``source=range(7)``.

    Raises
    ------
    DomainMismatch
        If `algorithm` cannot be called.
    InvalidValue
        If there is no option, or an option has no value.
    LimitExceeded
        If there are more than 500 combinations.

    Examples
    --------
    >>> from lagpu.algorithms import bfs_levels
    >>> from lagpu.generators import path
    >>> found = explore(bfs_levels, path(3, backend="cpu"), source=range(3))
    >>> [len(found[source]) for source in ("0", "1", "2")]
    [7, 5, 7]
    >>> page = found.to_html()  # or to_html("page.html")
    """
    _require_callable(algorithm, "explore")
    values = {
        name: dict(found) if isinstance(found, Mapping) else {str(x): x for x in found}
        for name, found in options.items()
    }
    if not values or not all(values.values()):
        raise InvalidValue("explore: an option has no value. Write source=range(7), or similar.")
    count = math.prod(map(len, values.values()))
    if count > COMBINATIONS:
        fact = f"explore: {count:,} combinations > {COMBINATIONS}. Give fewer values of an option."
        raise LimitExceeded(fact)
    runs = {}
    for labels in product(*values.values()):
        given = {name: values[name][label] for name, label in zip(values, labels, strict=True)}
        runs[labels] = Steps(what="explore")
        with runs[labels]:
            algorithm(*args, **given)
    return Explored({name: tuple(found) for name, found in values.items()}, runs)


_SHOWN = (Vector, Matrix, Scalar, SelectionMatrix)


class _Paged:
    """What has a page, as a file and in a notebook."""

    _what: str
    _remedy: str

    def _runs(self) -> tuple[dict[str, Labels], dict[Labels, Steps]]:
        """Return the values of each option, and the steps of each combination."""
        raise NotImplementedError

    def to_html(
        self, path: str | Path | None = None, *, title: str = "Steps",
        facts: Mapping[str, object] | None = None,
    ) -> str | None:  # fmt: skip
        """Return one self-contained HTML page that shows one step at a time, and prints all.

        It is written to the file `path` instead if that is given; `facts` are names and values to
        show beside the heading, such as the name of the graph.

        Raises
        ------
        LimitExceeded
            If a vector or a matrix is larger than 64, or a run has more than 1000 steps.
        InvalidValue
            If no statement was recorded.
        """
        return return_or_write(path, self._page(title, facts))

    def _page(self, title: str, facts: Mapping[str, object] | None = None) -> str:
        names, runs = self._runs()
        if not all(map(len, runs.values())):
            raise InvalidValue(f"{self._what}: no statement ran{self._remedy}")
        return page_of_runs(runs, title, facts, names=names, what=self._what)

    def _repr_html_(self) -> str:
        try:
            page = text(self._page("Steps"))
        except (LimitExceeded, InvalidValue) as error:
            return f"<p>{text(error)}</p>"
        look = 'style="width:100%;height:56rem;border:1px solid #d8dee5"'
        fit = "this.style.height=this.contentDocument.documentElement.scrollHeight+2+'px'"
        return f'<iframe title="steps" {look} onload="{fit}" srcdoc="{page}"></iframe>'


class Explored(_Paged):
    """The steps of an algorithm for each combination of options; see `explore`."""

    _what = "explore"
    _remedy = " in one of the runs. Give a function of lagpu's statements."

    def __init__(self, options: dict[str, Labels], runs: dict[Labels, Steps]) -> None:
        self._options, self._steps = options, runs

    def _runs(self) -> tuple[dict[str, Labels], dict[Labels, Steps]]:
        return self._options, self._steps

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, labels: str | Labels) -> Steps:
        return self._steps[(labels,) if isinstance(labels, str) else labels]

    def __repr__(self) -> str:
        return f"Explored({', '.join(self._options)}: {len(self)} combinations)"


class Steps(_Paged, Observer):
    """The steps of the statements that ran inside ``with``, in order; see `steps`."""

    why_eager = "it is stepped through"
    _remedy = " inside with. Write with lagpu.steps() as s:, and call the algorithm in its body."

    def __init__(self, limit: int = STATEMENTS, what: str = "steps") -> None:
        if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)):
            raise DomainMismatch(
                f"{what}: limit {limit!r} is not an integer. "
                f"Leave it out for {STATEMENTS:,} statements."
            )
        self._limit, self._what = limit, what
        self._home: FrameType | None = None  # of the ``with``
        self._mentioned: frozenset[str] = frozenset()
        self._touched: dict[int, Any] = {}
        self._entries = 0
        self._steps: list[Step] = []
        self._last: dict[int, State] = {}
        self._views: dict[int, tuple[SelectionMatrix, State, Matrix]] = {}
        self._copies: dict[int, tuple[Matrix, Matrix]] = {}

    def __enter__(self) -> Steps:
        self._home = sys._getframe(1)
        self._mentioned = source.mentioned_in_with(self._home)
        return super().__enter__()

    def __exit__(self, *exc_info: object) -> None:
        self._home = None  # a frame keeps its objects alive
        self._last, self._views, self._copies, self._touched = {}, {}, {}, {}
        super().__exit__()

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """See `Observer`."""
        if len(self._steps) >= self._limit:
            raise LimitExceeded(
                f"{self._what}: more than {self._limit:,} statements. "
                "Use a smaller graph, or raise limit=."
            )
        frame = source.author()
        code, lines = (None, (0, 0)) if frame is None else (frame.f_code, source.lines_of(frame))
        operands = (to.out, *call.inputs, *(() if to.mask is None else (to.mask.vector,)))
        self._touched |= {id(y): y for x in operands for y in (x, getattr(x, "stored", x))}
        names, scope = self._in_scope(frame)
        for x in operands:
            scope.setdefault(id(x), x)
        for P in (getattr(part, "stored", None) for part in call.formula):
            if isinstance(P, SelectionMatrix):
                scope.setdefault(id(P), P)
        before = self._states(scope)
        views = {k: self._viewed(x) for k, x in scope.items() if isinstance(x, SelectionMatrix)}
        overwritten = self._copy(to.out) if isinstance(to.out, Matrix) else None
        work()
        self._copies.pop(id(to.out), None)
        shown = "" if code is None else source.source_between(code.co_filename, *lines)
        names = source.named(names, to.out, source.target_of(frame, shown), scope)
        matrices = {k: self._copy(x) for k, x in scope.items() if isinstance(x, Matrix)} | views
        masking, mask = None, to.mask
        if mask is not None:
            shape = f"{'~' * mask.complement}{names[id(mask.vector)]}.{'SV'[not mask.structure]}"
            masking = Masking(shape, before.get(id(mask.vector)), mask.structure, mask.complement)
        self._steps.append(Step(
            len(self._steps) + 1, self.level,
            formula=" << ".join(format_formula(x.formula, names) for x in (to, call)),
            source=shown, code=code, file="" if code is None else code.co_filename,
            line=lines[0], last_line=lines[1], output=names[id(to.out)],
            vectors={names[k]: state for k, state in self._states(scope).items()},
            before={names[k]: state for k, state in before.items()},
            scalars={names[k]: x.value for k, x in scope.items() if isinstance(x, Scalar)},
            matrices={names[k]: A for k, A in matrices.items()},
            overwritten=overwritten, mask=masking, product=_multiplied(call, names),
        ))  # fmt: skip

    def _in_scope(self, frame: FrameType | None) -> tuple[dict[int, str], dict[int, Any]]:
        """Return names and objects in the variables of the algorithm's frames, innermost first."""
        # The frame of the ``with`` is the last; of its objects, which may be those of a whole
        # notebook, only those count that a statement has used, or that the ``with`` mentions while
        # its own statements run.
        mentioned = self._mentioned if frame is self._home else frozenset()
        names: dict[int, str] = {}
        scope: dict[int, Any] = {}
        taken: set[str] = set()
        while frame is not None and not source.is_command(frame):
            last = frame is self._home or frame.f_code.co_name == "<module>"
            for name, x in list(frame.f_locals.items()):
                if not isinstance(x, _SHOWN) or id(x) in names or name == "_":
                    continue
                used = id(x) in self._touched and not name.startswith("_")
                if last and not used and name not in mentioned:
                    continue
                unique = name if name not in taken else f"{name} of {frame.f_code.co_name}"
                taken.add(unique)
                names[id(x)], scope[id(x)] = unique, x
            frame = None if last else frame.f_back
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
            fact = f"more than {ENTRIES:,} entries in the states"
            raise LimitExceeded(f"{self._what}: {fact}. Use a smaller graph.")
        self._last[key] = new
        return new

    def _viewed(self, P: SelectionMatrix) -> Matrix:
        """Return a selection as a matrix; the last one if nothing has changed."""
        f: Any = P.operand
        state = self._state(id(f), f)
        known = self._views.get(id(P))
        if known is None or known[1] is not state or known[2].shape != P.shape:
            with Observer():  # which hides a statement that is not the author's
                known = self._views[id(P)] = P, state, P.new(name=P.name)
        return known[2]

    def _copy(self, A: Matrix) -> Matrix:
        """Return a copy of a matrix; the last copy if no statement has written the matrix."""
        if id(A) not in self._copies:
            self._copies[id(A)] = A, A.dup()
        return self._copies[id(A)][1]

    # ------------------------------------------------------------------------------ reading
    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    @overload
    def __getitem__(self, k: int) -> Step: ...

    @overload
    def __getitem__(self, k: slice) -> list[Step]: ...

    def __getitem__(self, k: int | slice) -> Step | list[Step]:
        return self._steps[k]

    def _runs(self) -> tuple[dict[str, Labels], dict[Labels, Steps]]:
        return {}, {(): self}

    def __repr__(self) -> str:
        return f"Steps({len(self)} statements)"


def _multiplied(call: Any, names: Mapping[int, str]) -> Multiplied | None:
    if not isinstance(call.operation, (Multiply, MultiplySelection)) or len(call.shape) != 1:
        return None
    left, _, right = call.formula
    vector_left = isinstance(left, Vector)
    vector, matrix = (left, right) if vector_left else (right, left)
    name, transposed = names[id(matrix.stored)], matrix.stored is not matrix
    return Multiplied(name, transposed, names[id(vector)], vector_left)
