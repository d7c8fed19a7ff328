"""`crosscheck`: run an algorithm on several backends and compare statement by statement."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from lagpu import backends as registry
from lagpu.backends.protocol import Backend
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.views import SelectionMatrix, TransposedMatrix
from lagpu.crosscheck.lockstep import Crosscheck
from lagpu.crosscheck.report import Report
from lagpu.errors import DomainMismatch, InvalidValue

__all__ = ["crosscheck"]


def crosscheck(
    algorithm: Callable[..., Any], *args: Any,
    backends: Sequence[str | Backend] = ("cpu", "gpu"), **kwargs: Any,
) -> Report:  # fmt: skip
    """Run an algorithm on several backends and compare the result of every statement.

    Parameters
    ----------
    algorithm : callable
        A function of public lagpu, such as `lagpu.algorithms.bfs_levels`.
    *args, **kwargs
        Arguments of the algorithm; each `Matrix` and `Vector` among them, also in lists and dicts,
        is copied to every backend, and NumPy arrays are copied, so the originals do not change. An
        algorithm that draws random numbers needs a seed.
    backends : sequence of str or Backend
        The first is the oracle. A loop that a backend runs as one program is compared with its
        statements there, so there may be a single backend.

    Returns
    -------
    Report
        The number of statements that agree, how each was compared, and the result.

    Raises
    ------
    CrosscheckFailed
        At the first difference, with the statement, the indices, both values and both plans; the
        error's `report` has the statements that agreed before. It is an AssertionError.
    InvalidValue
        If no backend is given, or a single one that fuses no loops.
    DomainMismatch
        If `algorithm` cannot be called, or `backends` is not a sequence of backends.

    Notes
    -----
    The program runs once, and each operation on every backend. A value chosen by `any` must be one
    of the candidates, which NumPy computes; sums of floats must agree within `TOLERANCE` of
    the summands; everything else must be equal. A backend whose value may differ goes on with the
    oracle's value. What a fused loop has written is compared at its end: a value chosen by `any`
    must be a candidate in the eager run; once a statement computes with a chosen value, only
    indices are compared. The report's rows say how each result was compared, or that it was not.
    Each statement costs a copy of the output to the host.

    Examples
    --------
    >>> from lagpu.algorithms import bfs_levels
    >>> from lagpu.generators import path
    >>> report = crosscheck(bfs_levels, path(4, backend="cpu"), 0, backends=("cpu", "cpu"))
    >>> report.ok, report.statements, report.iterations
    (True, 9, 4)
    """
    if not callable(algorithm):
        kind = type(algorithm).__name__
        raise DomainMismatch(f"crosscheck: {kind} cannot be called. Give a function.")
    places = places_of(backends)
    suite = registry.get()  # of a test that is crosschecked itself
    home: Any = suite if isinstance(suite, Crosscheck) else places[0]
    name = getattr(algorithm, "__name__", type(algorithm).__name__)
    report = Report(name, tuple(place.name for place in places))
    lockstep: Any = Crosscheck(places, report)
    with lockstep, registry.use(lockstep):
        copied, named = _copied((args, kwargs), lockstep)
        lockstep.counts = True
        result = algorithm(*copied, **named)
        if inspect.isgenerator(result):
            raise DomainMismatch(f"crosscheck: {name} is a generator. Give a function that loops.")
        lockstep.counts = False  # the copy that follows is not a statement
        report.result = _copied(result, home)
    if len(places) == 1 and not report.loops:
        report.notes.append("no loop ran as one program")
    return report


def places_of(backends: Any) -> list[Backend]:
    """Return the backends of a sequence of names and backends, or of a single one, checked."""
    if isinstance(backends, str) or hasattr(backends, "plan_loop"):
        backends = (backends,)
    if not isinstance(backends, Iterable):
        raise DomainMismatch(
            f"crosscheck: backends={backends!r} is not a sequence of backends. "
            "Give backends=('cpu', 'sim')."
        )
    places = [_own(name) for name in backends]
    if not places:
        raise InvalidValue("crosscheck: backends= is empty. Give backends=('cpu', 'sim').")
    if len(places) == 1 and not places[0].capabilities.records:
        raise InvalidValue(
            f"crosscheck: {places[0].name} runs every loop eagerly, so there are no two runs to "
            "compare. Give two backends."
        )
    return places


def _own(name: Any) -> Backend:
    """Return the backend of a name, also where a test suite is crosschecked under its name."""
    found: Any = registry.get(name)
    if isinstance(found, Crosscheck):
        return next((place for place in found.places if place.name == name), found.places[0])
    return cast(Backend, found)


def _copied(x: Any, place: Any) -> Any:
    """Return a copy of `x`, and of the objects in it, on another backend."""
    if isinstance(x, (Matrix, Vector)):
        return x.to(place)
    if isinstance(x, np.ndarray):
        return x.copy()
    if isinstance(x, TransposedMatrix):
        return _copied(x.stored, place).T
    if isinstance(x, SelectionMatrix):
        return _copied(x.operand, place).selection(x.nrows)
    if isinstance(x, Scalar):
        return Scalar(x.dtype, x.value, name=x.name)
    if isinstance(x, (list, tuple)):
        parts = [_copied(one, place) for one in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return {k: _copied(one, place) for k, one in x.items()} if isinstance(x, dict) else x
