"""`crosscheck`: one algorithm on several backends, compared statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from lagpu import backends as registry
from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.core.observer import observing
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.core.views import SelectionMatrix, TransposedMatrix
from lagpu.crosscheck.eager_run import Alone
from lagpu.crosscheck.fused import Outcome, compare_outcomes, require_fusing
from lagpu.crosscheck.lockstep import Lockstep
from lagpu.crosscheck.report import Report
from lagpu.errors import DomainMismatch, InvalidValue

__all__ = ["crosscheck"]


def crosscheck(
    algorithm: Callable[..., Any],
    *args: Any,
    backends: Sequence[str | Backend] = ("cpu", "gpu"),
    **kwargs: Any,
) -> Report:
    """Run an algorithm on several backends and compare the result of every statement.

    Parameters
    ----------
    algorithm : callable
        A function of public lagpu, such as `lagpu.algorithms.bfs_levels`.
    *args, **kwargs
        Its arguments; each `Matrix` and `Vector` among them, also in lists and dicts, is copied to
        every backend, and NumPy arrays are copied, so they stay as they are. Who draws random
        numbers needs a seed.
    backends : sequence of str or Backend
        The first is the oracle. One alone is compared with itself: the results, and what was
        written into arguments, with loops run as one program against those of a run statement by
        statement.

    Returns
    -------
    Report
        How many statements agree, how each was compared, and the result.

    Raises
    ------
    CrosscheckFailed
        At the first difference, with the statement, the indices, both values and both plans; its
        `report` says what agreed until then. It is an AssertionError.
    InvalidValue
        If no backend is given, or only one that runs loops in one way.
    DomainMismatch
        If `algorithm` cannot be called, or `backends` holds no backends.

    Notes
    -----
    The text runs once, and each of its operations on every backend. What `any` chose must be a
    value that met, which NumPy finds out; sums of floats must agree within `rules.TOLERANCE` of
    what was added; all else must be equal. A backend that may differ goes on with the oracle's
    value. Where two runs of one backend are compared, what `any` chose in the fused one must have
    met in the eager one; behind a choice that was computed with, indices alone are compared. The
    report's rows and notes say how each result was compared, or that it was not. Each statement
    costs a copy of its output to the host.

    Examples
    --------
    >>> from lagpu.algorithms import bfs_levels
    >>> from lagpu.generators import path
    >>> report = crosscheck(bfs_levels, path(4, backend="cpu"), 0, backends=("cpu", "cpu"))
    >>> report.ok, report.statements, report.iterations
    (True, 9, 4)
    """
    if not callable(algorithm):
        raise DomainMismatch(
            f"crosscheck: {type(algorithm).__name__} cannot be called. Give a function."
        )
    places = _places(backends)
    name = getattr(algorithm, "__name__", type(algorithm).__name__)
    report = Report(name, tuple(place.name for place in places))
    if len(places) == 1:
        require_fusing(places[0])
    lockstep: Any = Alone(places[0], report) if len(places) == 1 else Lockstep(places, report)
    with observing(lockstep), registry.use(lockstep):
        moved = [_moved(x, lockstep) for x in args]
        named = {key: _moved(x, lockstep) for key, x in kwargs.items()}
        lockstep.tally.begin()
        result = algorithm(*moved, **named)
        eager = Outcome(result, moved, named)
        free = lockstep.free_reads  # by the program, not by what follows
        report.result = _moved(result, places[0])
    if len(places) == 1:
        fused = _as_it_comes(algorithm, places[0], args, kwargs)
        compare_outcomes(eager, fused, Outcome(None, args, kwargs), free, places[0], report)
    return report


def _places(backends: Any) -> list[Backend]:
    """Return the backends that names and backends mean, or one of them alone."""
    if isinstance(backends, str) or hasattr(backends, "plan_loop"):
        backends = (backends,)
    if not isinstance(backends, Iterable):
        raise DomainMismatch(
            f"crosscheck: backends={backends!r} holds no backends. Give backends=('cpu', 'sim')."
        )
    places = [registry.get(name) for name in backends]
    if not places:
        raise InvalidValue("crosscheck: there is no backend. Give backends=('cpu', 'sim').")
    return places


def _as_it_comes(
    algorithm: Callable[..., Any], place: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Outcome:
    """Run an algorithm on one backend, which says how the last loop ran."""
    place.last_loop = ""
    with registry.use(place):
        moved = [_moved(x, place) for x in args]
        named = {key: _moved(x, place) for key, x in kwargs.items()}
        return Outcome(algorithm(*moved, **named), moved, named)


def _moved(x: Any, place: Any) -> Any:
    """Return a copy of what is in `x` on another backend."""
    if isinstance(x, (Matrix, Vector)):
        return x.to(place)
    if isinstance(x, np.ndarray):
        return x.copy()
    if isinstance(x, TransposedMatrix):
        return _moved(x.stored, place).T
    if isinstance(x, SelectionMatrix):
        return _moved(x.operand, place).selection(x.nrows)
    if isinstance(x, Scalar):
        return Scalar(x.dtype, x.value, name=x.name)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_moved(one, place) for one in x))
    if isinstance(x, (list, tuple)):
        return type(x)(_moved(one, place) for one in x)
    if isinstance(x, dict):
        return {key: _moved(one, place) for key, one in x.items()}
    return x
