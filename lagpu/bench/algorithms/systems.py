"""The systems that answer questions about one graph: lagpu's backends and other libraries."""

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
from lagpu.dtypes import FP32, INT64

__all__ = ["Bench", "Measured", "describe_backend", "open_system"]


class Measured(NamedTuple):
    """Times of one question, and its answer.

    Attributes
    ----------
    wall_ms : list of float
        Wall time of each run, until the device has ended.
    device_ms : float or None
        Median time between two events on a GPU; None without a GPU, and for long runs.
    first : bool
        Whether the warm-up is the only run, as it was too long for another.
    loop : str
        How the last loop ran, on a backend that fuses loops.
    bytes : int or None
        Memory of all arrays on the device at the end, the graph included.
    answer : Answer
        The answer.
    """

    wall_ms: list[float]
    device_ms: float | None
    first: bool
    loop: str
    bytes: int | None
    answer: Answer


class System(Protocol):
    """A backend or a library with one graph, which answers questions about it."""

    @property
    def place(self) -> protocol.Backend | None:
        """The backend; None for another library."""

    def prepare(self, question: Question) -> tuple[Callable[[], Any], Callable[[Any], Answer]]:
        """Return the function to time, and the reader of its result."""


class Backend:
    """A backend of lagpu."""

    def __init__(self, name: str, given: Problem) -> None:
        self.place = backends.get(name)
        self._given = given
        self._kept: dict[str, Matrix] = {}

    def prepare(self, question: Question) -> tuple[Callable[[], Any], Callable[[Any], Answer]]:
        """Return the algorithm with its matrix, and the reader of the question."""
        A = self._matrix(question.graph)
        return functools.partial(question.run, A, self._given.facts), question.read

    def _matrix(self, kind: str) -> Matrix:
        """Return a matrix; the one before is freed, so that its memory does not count."""
        if kind not in self._kept:
            made = self._make(kind)
            assert made.is_symmetric in (True, False)  # tested here, so that no run does
            self._kept = {kind: made}
        return self._kept[kind]

    def _make(self, kind: str) -> Matrix:
        given = self._given
        if kind == "acyclic":
            whole = self._matrix("pattern")
            return whole if given.facts.acyclic else whole.select("triu", 1).new()
        dtype = {"weighted": INT64, "FP32": FP32}.get(kind)
        n, values = given.facts.vertices, True if dtype is None else given.weights
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
    """The object that each process serves: one system, and a clock."""

    def __init__(self) -> None:
        self._system: System | None = None
        self._clock = Clock()
        self._before = 0
        self._run: Callable[[], Any] = lambda: None
        self._read: Callable[[Any], Answer] = lambda found: found

    def describe(self, backend: str) -> tuple[str, dict[str, str]]:
        """See `describe_backend`."""
        return describe_backend(backend)

    def make(
        self, graph: str, backend: str, seed: int | None, folder: Path, renumber: bool = False
    ) -> Facts:
        """See `lagpu.bench.algorithms.problem.make`."""
        return problem.make(graph, backends.get(backend), seed, folder, renumber)

    def open(self, system: str, folder: Path) -> None:
        """Give a system the graph in a folder."""
        self._before = _used(backends.get(system)) if system in backends.names() else 0
        self._system = open_system(system, Problem.read(folder))
        self._clock = Clock(self._system.place)

    def prepare(self, key: str) -> None:
        """Prepare a question, which is not measured."""
        assert self._system is not None
        self._run, self._read = self._system.prepare(next(q for q in menu.menu() if q.key == key))

    def measure(self, repeats: int, seconds: float, limit: float) -> Measured:
        """Ask the prepared question repeatedly.

        Parameters
        ----------
        repeats : int
            Runs after a warm-up.
        seconds : float
            Total time of the runs after which there are no more; a warm-up that takes so long is
            the only run, except on a device, where it compiles kernels.
        limit : float
            Seconds for the whole call; a warm-up that takes a third of the limit, without
            compiling, is the only run.
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
        loop = "" if place is None or not place.capabilities.records else place.last_loop
        held = _used(place) - self._before if on_device else None
        return Measured(wall, device, first, loop, held, self._read(found))


def _compile_ms(place: protocol.Backend | None) -> float:
    """Return the total milliseconds that a backend has spent compiling."""
    return 0.0 if place is None or place.device is None else float(place.device.compile_ms)


def _used(place: protocol.Backend | None) -> int:
    return 0 if place is None or place.device is None else int(place.device.used_bytes())
