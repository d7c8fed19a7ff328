"""Measure every algorithm on every system, compare the answers, and keep to a time budget.

Each system works in its own process, which is stopped at its limit; so no question can delay the
others, and no estimate of its time is needed.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from lagpu import backends, errors
from lagpu.bench import graphs, harness, peers
from lagpu.bench.graphs import HostGraph, Summary
from lagpu.bench.harness import Clock, Report, Row, Say, used_bytes
from lagpu.catalog import QUESTIONS, Algorithm, Answer, differs, questions_of
from lagpu.core import Matrix
from lagpu.dtypes import FP32, INT64
from lagpu.host import progress
from lagpu.host.display import one_line
from lagpu.host.fitting import FittingTable
from lagpu.host.interrupt import deaf, removed

NO_TIME = "no time left"
_MOST = 1_000_000  # seconds, or repeats: more would seem endless
_EXPECTED = ("OutOfMemory", "OutOfMemoryError", "MemoryError", "NotSupported", "LimitExceeded")
_TIMES = ("repeats", "seconds", "limit", "budget")


class Backend:
    """A backend of lagpu with a graph, which answers questions as a library does."""

    def __init__(self, name: str, given: HostGraph) -> None:
        self.place = backends.get(name)
        self._given = given
        self._kept: dict[str, Matrix] = {}

    def prepare(self, question: Algorithm) -> peers.Asked:
        """Return the function to time, and the reader of its result."""
        A = self._matrix(question.graph)
        return functools.partial(question.run, A, self._given.facts), question.read

    def _matrix(self, kind: str) -> Matrix:
        """Return a matrix; the one before is freed, so that its memory does not count."""
        kind = "pattern" if kind == "undirected" else kind
        if kind in self._kept:
            return self._kept[kind]
        given, n = self._given, self._given.facts.vertices
        if kind == "acyclic":
            A = self._matrix("pattern")
            A = A if given.facts.acyclic else A.select("triu", 1).new()
        else:
            dtype = {"weighted": INT64, "FP32": FP32}.get(kind)
            values = True if dtype is None else given.weights
            A = Matrix.from_csc(*given.columns, values, nrows=n, dtype=dtype, backend=self.place)
        assert A.is_symmetric in (True, False)  # tested here, so that no run does
        self._kept = {kind: A}
        return A


class Bench:
    """The object that a process serves: one system with a graph, and a clock."""

    def __init__(self) -> None:
        self._system: Any = None
        self._clock = Clock()
        self._before = 0
        self._asked: peers.Asked | None = None

    def describe(self, backend: str) -> tuple[str, dict[str, str]]:
        """Return the name of a backend, ``auto`` resolved, and its hardware in words."""
        place = backends.get(backend)
        return place.name, harness.hardware_of(place)

    def make(self, graph: str, backend: str, *how: Any) -> Summary:
        return graphs.make(graph, backends.get(backend), *how)

    def open(self, system: str, folder: Path) -> None:
        given, peer = HostGraph.read(folder), peers.PEERS.get(system)
        place = None if peer else backends.get(system)
        self._before = used_bytes(place) if place else 0
        self._system = peer.open(given) if peer else Backend(system, given)
        self._clock = Clock(place)

    def prepare(self, key: str) -> None:
        self._asked = None  # frees what the question before has prepared
        self._asked = self._system.prepare(next(q for q in QUESTIONS if q.key == key))

    def measure(self, repeats: int, seconds: float, limit: float) -> tuple[Row, Answer]:
        """Ask the prepared question after a warm-up, until the runs took some seconds.

        A warm-up that takes so long is the only run; on a device, where it compiles kernels, if it
        takes a third of the limit, the seconds of the whole call, without compiling.
        """
        assert self._asked is not None
        place, (run, read) = self._clock.backend, self._asked
        compiled = self._clock.compile_ms()
        if place is not None:
            place.last_loop = ""
        gc.collect()
        ms, found = self._clock.wall(run)
        next_ms = ms - (self._clock.compile_ms() - compiled)
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
        held = used_bytes(place) - self._before if place and on_device else None
        return {
            "runs": len(wall), "median_ms": statistics.median(wall), "min_ms": min(wall),
            "max_ms": max(wall), "device_ms": device, "loop": loop, "bytes": held,
            "note": "first run" if first else "",
        }, read(found)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """The request of a user; see `lagpu bench --help`. Each graph gets an equal share of the time.

    `bench` makes the object that each process serves.
    """

    graphs: Sequence[str]
    algorithms: Sequence[str] = ()
    backends: Sequence[str] = ("auto", "cpu")
    peers: Sequence[str] = ()
    repeats: int = 3
    seconds: float = 1.0
    limit: float = 10.0
    budget: float = 480.0
    seed: int | None = None
    renumber: bool = False
    bench: Callable[[], Any] = Bench


def run(
    plan: Plan, say: Say = harness.silent, keep: harness.Keep = harness.silent
) -> tuple[Report, list[str]]:
    """Ask every system every question about every graph; return the report, and what failed.

    A row has ``graph vertices edges algorithm options system runs median_ms min_ms max_ms device_ms
    rounds loop bytes checked note``. Times are wall times until the device has ended, None if
    nothing was measured; `note` then says why. `device_ms` is measured on GPUs, but for long runs,
    and `bytes` is the memory on the device, the graph included. `checked` is true if another system
    gave the same answer, or the answer was proved.

    `keep` is called with the report after each graph, and before an error ends the run:
    `CheckFailed` if two systems contradict each other, or an answer is proved wrong. Wrong input is
    refused before anything runs.
    """
    if not plan.graphs:
        raise errors.InvalidValue("bench: --algorithm needs a graph. Name one, such as kron20e16.")
    for name in _TIMES:
        if not 0 < getattr(plan, name) <= _MOST:
            fact = f"--{name} {getattr(plan, name)} is not above 0 and at most {_MOST:,}"
            raise errors.InvalidValue(f"bench: {fact}.")
    asked = questions_of(plan.algorithms)
    for name in plan.graphs:
        graphs.require_graph(name, plan.renumber)
    others = peers.chosen(plan.peers, peers.ANSWERING)
    begin = time.monotonic()
    whole = harness.envelope([], peers.versions(others))
    found: dict[str, None] = {}
    for name in plan.backends:  # `auto` is resolved in a process of its own
        with contextlib.closing(Worker(plan.bench)) as worker:
            place, device = worker.require("describe", name)
        found[place] = None
        whole["machine"] |= device
    places = [*found]
    whole["plan"] = {name: getattr(plan, name) for name in _TIMES}
    rows: list[Row] = []
    failures: list[str] = []
    whole["rows"] = rows
    for k, name in enumerate(plan.graphs):
        left = begin + plan.budget - time.monotonic()
        end = time.monotonic() + left / (len(plan.graphs) - k)
        try:
            with tempfile.TemporaryDirectory(prefix="lagpu-") as folder, removed(folder):
                tested = _TestGraph(plan, Path(folder), end, failures)
                rows.extend(tested.rows(name, places, others, asked, say))
        except (Failed, errors.OutOfMemory) as error:  # other graphs may be smaller
            failures.append(f"{name}: {error}")
        finally:
            keep(whole)
    return whole, failures


@dataclass(eq=False)
class _TestGraph:
    """A graph under test: its files, its time, and a process for each system."""

    plan: Plan
    folder: Path
    end: float
    failures: list[str]
    workers: dict[str, Worker] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    def rows(
        self, name: str, places: list[str], others: list[str], asked: list[Algorithm], say: Say
    ) -> Iterator[Row]:
        say(f"{name}: loading the graph")
        with contextlib.closing(Worker(self.plan.bench)) as maker:
            what = (name, places[0], self.plan.seed, self.folder, self.plan.renumber)
            facts = maker.require("make", *what)
        given = HostGraph.read(self.folder)
        try:
            for question in progress.over(asked, name):
                answers: list[tuple[Row, Answer]] = []
                wrong = ""
                for system in (*places, *others):
                    if system in others and question.key not in peers.PEERS[system].keys:
                        continue
                    say(f"{facts.graph}: {question.key} on {system}")
                    row, answer = self._row(facts, question, system)
                    if answer is not None and not wrong:
                        answers.append((row, answer))
                        wrong = _check(given, question, answers)
                    yield row
                    if wrong:
                        raise errors.CheckFailed(f"bench: {facts.graph}, {question.key}: {wrong}")
        finally:
            for worker in self.workers.values():
                worker.close()

    def _row(self, facts: Summary, question: Algorithm, system: str) -> tuple[Row, Answer | None]:
        row: Row = {
            "graph": facts.graph, "vertices": facts.vertices, "edges": facts.edges,
            "algorithm": question.name, "options": question.label, "system": system,
            **dict.fromkeys(("runs", "median_ms", "min_ms", "max_ms", "device_ms", "rounds")),
            "loop": "", "bytes": None, "checked": False,
            "note": self._why_not(facts, question, system),
        }  # fmt: skip
        if row["note"]:
            return row, None
        try:
            times, answer = self._measured(question, system)
        except TimeUp:
            left = self.end - time.monotonic()
            row["note"] = NO_TIME if left <= 0 else f"over {self.plan.limit:g} s"
            return row, None
        except Failed as error:
            row["note"] = f"{error.kind}: {error.text}"
            if error.kind not in _EXPECTED:
                self.failures.append(f"{facts.graph}, {question.key}, {system}: {row['note']}")
                if system in self.workers:
                    self.workers.pop(system).close()  # its state is unknown
            return row, None
        rounds = None if question.rounds is None else question.rounds(facts, answer)
        return row | times | {"rounds": rounds}, answer

    def _why_not(self, facts: Summary, question: Algorithm, system: str) -> str:
        peer = peers.PEERS.get(system)
        return (
            question.why_not(facts)
            or (peer.why_not(question.key, facts.entries) if peer else "")
            or (NO_TIME if time.monotonic() >= self.end else self.broken.get(system, ""))
        )

    def _measured(self, question: Algorithm, system: str) -> tuple[Row, Answer]:
        worker = self.workers.get(system)
        if worker is None or not worker.process.is_alive():
            worker = self.workers[system] = Worker(self.plan.bench)
            try:
                worker.call("open", system, self.folder, limit=self.end - time.monotonic())
            except Failed as error:
                self.broken[system] = f"{error.kind}: {error.text}"
                self.workers.pop(system).close()
                raise
        worker.call("prepare", question.key, limit=self.end - time.monotonic())
        plan, limit = self.plan, min(self.plan.limit, self.end - time.monotonic())
        return worker.call("measure", plan.repeats, plan.seconds, limit, limit=limit)


def _check(given: HostGraph, question: Algorithm, answers: list[tuple[Row, Answer]]) -> str:
    """Prove the last answer and compare it with the first; return the fault or an empty string."""
    (first, right), (row, answer) = answers[0], answers[-1]
    if answer.proof is not None:
        try:
            question.prove(given.pattern, given.facts, answer.proof)
        except errors.CheckFailed as error:
            return f"{row['system']}: {error}"
        row["checked"] = True
    if len(answers) > 1:
        if differs(question.rule, right, answer):
            row["checked"] = False
            return f"{first['system']} and {row['system']} differ"
        first["checked"] = row["checked"] = True
    return ""


def tables(rows: Sequence[Row]) -> Iterator[FittingTable]:
    """Yield a table of milliseconds for each graph; a cell without a time says why."""
    for graph, of_graph in itertools.groupby(rows, itemgetter("graph")):
        members = [*of_graph]
        edges = f"{members[0]['vertices']:,} vertices, {members[0]['edges']:,} edges"
        found = FittingTable("algorithm", title=f"{graph}: {edges}; ms", common=("loop", "checked"))
        systems = dict.fromkeys(row["system"] for row in members)
        for system in systems:
            found.add_column(system, justify="right")
        found.add_column("loop")
        found.add_column("checked")
        question = itemgetter("algorithm", "options")
        for (name, options), answers in itertools.groupby(members, question):
            known = {row["system"]: row for row in answers}
            measured = [row for row in known.values() if row["median_ms"] is not None]
            checked = bool(measured) and all(row["checked"] for row in measured)
            loops = (row["loop"].partition(":")[0] for row in known.values() if row["loop"])
            cells = [_cell(known[system]) if system in known else "-" for system in systems]
            label = f"{name}, {options}" if options else name
            found.add_row(label, *cells, next(loops, ""), "yes" if checked else "-")
        yield found


def _cell(row: Row) -> str:
    if row["median_ms"] is None:
        return str(row["note"]).partition(":")[0]
    on_device = "" if row["device_ms"] is None else f" ({_ms(row['device_ms'])})"
    unconfirmed = "" if row["checked"] else " ?"
    return f"{_ms(row['median_ms'])}{on_device}{unconfirmed}"


def _ms(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


# ---- Processes that answer calls, and that are ended in the middle of one.
_PREPARING = 300.0  # seconds for work that is not measured: importing, making and reading a graph
_SPAWN = multiprocessing.get_context("spawn")  # a fork would share threads and a CUDA context


class TimeUp(Exception):
    """An answer took too long; the process has been ended."""


class Failed(Exception):
    """A question raised an error of this class, with this message on one line."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Worker:
    """A process that makes one object and calls its methods; it can be ended in the middle."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._here, there = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(there, make), daemon=True)
        with deaf():
            self.process.start()
        there.close()

    def call(self, method: str, *args: Any, limit: float) -> Any:
        """Return the result of a method in the process, or raise `TimeUp` or `Failed`."""
        try:
            self._here.send((method, args))
            if not self._here.poll(max(limit, 0)):
                self.close()
                raise TimeUp
            done, found = self._here.recv()
        except (EOFError, OSError) as error:
            self.close()
            code = self.process.exitcode
            raise Failed("Died", f"the process ended with exit code {code}") from error
        if not done:
            raise Failed(*found)
        return found

    def require(self, *call: Any) -> Any:
        """Return the result of unmeasured work; an error of lagpu in the process is raised."""
        try:
            return self.call(*call, limit=_PREPARING)
        except Failed as error:
            kind = getattr(errors, error.kind, None)
            if kind is None:
                raise
            raise kind(error.text) from error
        except TimeUp:
            raise Failed("TimeUp", f"the preparation took over {_PREPARING:g} s") from None

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self._here.close()


def _serve(there: Any, make: Callable[[], Any]) -> None:
    """Answer calls until the parent closes the pipe."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    served = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            method, args = there.recv()
            try:
                if served is None:
                    served = make()
                answer = True, getattr(served, method)(*args)
            except Exception as error:  # any error becomes the note of a row
                answer = False, (type(error).__name__, one_line(error))
            there.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
