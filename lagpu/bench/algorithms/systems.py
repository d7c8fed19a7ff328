"""The systems that are asked, each with one graph: lagpu's backends and other libraries."""

from __future__ import annotations

import functools
import gc
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from lagpu import backends
from lagpu.backends import protocol
from lagpu.bench.algorithms import libraries, menu, problem
from lagpu.bench.algorithms.menu import Answer, Question
from lagpu.bench.algorithms.problem import Facts, Problem
from lagpu.bench.timing import Clock
from lagpu.core.matrix import Matrix
from lagpu.dtypes import INT64

__all__ = ["Bench", "Measured", "describe_backend", "open_system"]


class Measured(NamedTuple):
    """Times of one question, and its answer.

    Attributes
    ----------
    wall_ms : list of float
        Each run, until the device has ended.
    device_ms : float or None
        Median between two events on a GPU; None off one, and where a run is long.
    first : bool
        Whether the only run is the first, which was too long for another.
    loop : str
        How the last loop ran, on a backend that runs loops as a whole.
    bytes : int or None
        What arrays on the device hold at the end, the graph included.
    answer : Answer
        What was found.
    """

    wall_ms: list[float]
    device_ms: float | None
    first: bool
    loop: str
    bytes: int | None
    answer: Answer


class System(Protocol):
    """What answers questions about one graph."""

    @property
    def place(self) -> protocol.Backend | None:
        """The backend; None of another library."""

    def prepare(self, question: Question) -> tuple[Callable[[], Any], Callable[[Any], Answer]]:
        """Return what to time, and how to read what it returns."""


class Backend:
    """One of lagpu's backends."""

    def __init__(self, name: str, given: Problem) -> None:
        self.place = backends.get(name)
        self._given = given
        self._kept: dict[str, Matrix] = {}

    def prepare(self, question: Question) -> tuple[Callable[[], Any], Callable[[Any], Answer]]:
        """Return the algorithm with its matrix, and the question's reader."""
        A = self._matrix(question.graph)
        return functools.partial(question.run, A, self._given.facts), question.read

    def _matrix(self, kind: str) -> Matrix:
        """Return a matrix; the one before is let go, so that its memory is not counted."""
        if kind not in self._kept:
            made = self._make(kind)
            assert made.is_symmetric in (True, False)  # known from here on, and not timed
            self._kept = {kind: made}
        return self._kept[kind]

    def _make(self, kind: str) -> Matrix:
        given = self._given
        if kind == "acyclic":
            whole = self._matrix("pattern")
            return whole if given.facts.acyclic else whole.select("triu", 1).new()
        values = given.weights if kind == "weighted" else True
        n, dtype = given.facts.vertices, INT64 if kind == "weighted" else None
        return Matrix.from_csc(*given.columns, values, nrows=n, dtype=dtype, backend=self.place)


def open_system(name: str, given: Problem) -> System:
    """Return a system with a graph."""
    if name in libraries.LIBRARIES:
        return libraries.LIBRARIES[name].open(given)
    return Backend(name, given)


def describe_backend(name: str) -> tuple[str, dict[str, str]]:
    """Return the name of a backend, ``auto`` resolved, and its device in words."""
    place = backends.get(name)
    return place.name, {} if place.device is None else place.device.describe()


class Bench:
    """What a process holds: one system, and the clock."""

    def __init__(self) -> None:
        self._system: System | None = None
        self._clock = Clock()
        self._before = 0
        self._run: Callable[[], Any] = lambda: None
        self._read: Callable[[Any], Answer] = lambda found: found

    def describe(self, backend: str) -> tuple[str, dict[str, str]]:
        """See `describe_backend`."""
        return describe_backend(backend)

    def make(self, graph: str, backend: str, seed: int | None, folder: Path) -> Facts:
        """See `lagpu.bench.algorithms.problem.make`."""
        return problem.make(graph, backends.get(backend), seed, folder)

    def open(self, system: str, folder: Path) -> None:
        """Give a system the graph in a folder."""
        self._before = _used(backends.get(system)) if system in backends.names() else 0
        self._system = open_system(system, Problem.read(folder))
        self._clock = Clock(self._system.place)

    def prepare(self, key: str) -> None:
        """Make what a question needs; it takes its time, and is not measured."""
        assert self._system is not None
        self._run, self._read = self._system.prepare(next(q for q in menu.menu() if q.key == key))

    def measure(self, repeats: int, seconds: float, limit: float) -> Measured:
        """Ask the question that was prepared again and again.

        Parameters
        ----------
        repeats : int
            Runs behind the first, which is not counted.
        seconds : float
            No more runs once they took so long together; a first run that did is the only one,
            but on a device, where kernels compile in it.
        limit : float
            Seconds that all of it may take; a run that took a third of them is the last, not
            counting what it compiled.
        """
        assert self._system is not None
        place, run = self._system.place, self._run
        compiled = _compile_ms(place)
        if place is not None:
            place.last_loop = ""
        gc.collect()
        ms, found = self._clock.wall(run)
        next_ms = ms - (_compile_ms(place) - compiled)
        wall, device = [ms], None
        enough_ms, limit_ms = seconds * 1e3, limit * 1e3
        on_device = place is not None and place.device is not None
        long = max(enough_ms, limit_ms / 3) if on_device else enough_ms
        first = next_ms >= long or ms + next_ms >= limit_ms
        if not first:
            wall, found = self._clock.repeat(self._clock.wall, run, repeats, enough_ms)
            if self._clock.has_device and wall[-1] < enough_ms:
                times, found = self._clock.repeat(self._clock.queued, run, repeats, enough_ms)
                device = statistics.median(times)
        loop = "" if place is None else place.last_loop
        held = _used(place) - self._before if on_device else None
        return Measured(wall, device, first, loop, held, self._read(found))


def _compile_ms(place: protocol.Backend | None) -> float:
    """Return the milliseconds that a backend has compiled for so far."""
    return 0.0 if place is None or place.device is None else float(place.device.compile_ms)


def _used(place: protocol.Backend | None) -> int:
    return 0 if place is None or place.device is None else int(place.device.used_bytes())
