"""Ask every system every question about every graph, in order and within a time budget."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from lagpu import errors
from lagpu.bench import peers, report
from lagpu.bench.algorithms import menu
from lagpu.bench.algorithms.libraries import LIBRARIES
from lagpu.bench.algorithms.menu import Answer, Question
from lagpu.bench.algorithms.problem import Facts, Problem
from lagpu.bench.algorithms.systems import Bench, Measured
from lagpu.bench.algorithms.worker import Failed, TimeUp, Worker
from lagpu.bench.graphs import require_graph
from lagpu.errors import CheckFailed, InvalidValue
from lagpu.host.interrupt import removed

__all__ = ["NO_TIME", "Plan", "run"]

Row = dict[str, Any]
Report = dict[str, Any]

NO_TIME = "no time left"
_PREPARING = 300.0  # seconds for work that is not measured: importing, making and reading a graph
_MOST = 1_000_000  # seconds, or repeats: more would seem endless
_EXPECTED = ("OutOfMemory", "OutOfMemoryError", "MemoryError", "NotSupported", "LimitExceeded")


@dataclass(frozen=True)
class Plan:
    """The request of a user; see `lagpu bench --help`.

    Attributes
    ----------
    graphs : sequence of str
        Names, generated graphs or files.
    algorithms, backends, peers : sequence of str
        Names; no algorithm means all.
    repeats : int
        Runs of each question, after a warm-up.
    seconds : float
        Total time of the runs of a question after which there are no more.
    limit : float
        Seconds after which a measurement is stopped.
    budget : float
        Seconds of the whole run; each graph gets an equal share of the remaining time.
    seed : int, optional
        Seed of generated graphs and of the choice of sources.
    renumber : bool
        Whether vertices of the graphs, which are files then, have names, or numbers with gaps.
    bench : callable
        Makes the object that each process serves.
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
    plan: Plan,
    tell: Callable[[str], None] = lambda _text: None,
    keep: Callable[[Report], None] = lambda _report: None,
) -> tuple[Report, list[str]]:
    """Ask every system every question about every graph.

    Parameters
    ----------
    plan : Plan
        The plan, whose names are checked before anything runs.
    tell : callable
        Called with a description of each step, for a progress display.
    keep : callable
        Called with the report after each graph, and before an error ends the run.

    Returns
    -------
    report : dict
        ``machine commit date versions plan rows``, ready for JSON. A row has ``graph vertices edges
        algorithm options system runs median_ms min_ms max_ms device_ms rounds loop bytes checked
        note``. Times are wall times until the device has ended, None if nothing was measured;
        `note` then says why. `checked` is true if another system gave the same answer, or the
        answer was proved.
    failures : list of str
        Graphs that could not be made, and measurements that raised an error.

    Raises
    ------
    CheckFailed
        If two systems contradict each other, or an answer is proved wrong.
    LagpuError
        For wrong input.
    """
    _require_plan(plan)
    questions = menu.chosen(plan.algorithms)
    names = list(plan.graphs)
    for name in names:
        require_graph(name, plan.renumber)
    others = peers.chosen(plan.peers, tuple(LIBRARIES))
    begin = time.monotonic()
    places, machine = _places(plan)
    whole = report.envelope([], peers.versions(others))
    whole["machine"] |= machine
    whole["plan"] = {
        name: getattr(plan, name) for name in ("repeats", "seconds", "limit", "budget")
    }
    rows: list[Row] = []
    failures: list[str] = []
    whole["rows"] = rows
    for k, name in enumerate(names):
        left = begin + plan.budget - time.monotonic()
        end = time.monotonic() + left / (len(names) - k)
        try:
            with tempfile.TemporaryDirectory(prefix="lagpu-") as folder, removed(folder):
                tested = _TestGraph(plan, Path(folder), end, failures)
                for row in tested.rows(name, places, others, questions, tell):
                    rows.append(row)
        except (Failed, errors.OutOfMemory) as error:  # other graphs may be smaller
            failures.append(f"{name}: {error}")
        finally:
            keep(whole)
    return whole, failures


def _require_plan(plan: Plan) -> None:
    if not plan.graphs:
        raise InvalidValue("bench: --algorithm needs a graph. Name one, such as kron20e16.")
    for name in ("repeats", "seconds", "limit", "budget"):
        if not 0 < getattr(plan, name) <= _MOST:
            raise InvalidValue(
                f"bench: --{name} {getattr(plan, name)} is not above 0 and at most {_MOST:,}."
            )


def _places(plan: Plan) -> tuple[list[str], dict[str, str]]:
    """Return the backends, `auto` resolved, and their devices, each found in its own process."""
    machine: dict[str, str] = {}
    found = []
    for name in plan.backends:
        worker = Worker(plan.bench)
        try:
            place, device = _required(worker, "describe", name)
        finally:
            worker.end()
        found.append(place)
        machine |= device
    return list(dict.fromkeys(found)), machine


def _required(worker: Worker, *call: Any) -> Any:
    """Return the result of a call; an error of lagpu in the process is raised here."""
    try:
        return worker.call(*call, limit=_PREPARING)
    except Failed as error:
        kind = getattr(errors, error.kind, None)
        if kind is None:
            raise
        raise kind(error.text) from error
    except TimeUp:
        raise Failed("TimeUp", f"the preparation took over {_PREPARING:g} s") from None


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
        self,
        name: str,
        places: list[str],
        others: list[str],
        questions: list[Question],
        tell: Callable[[str], None],
    ) -> Iterator[Row]:
        """Yield the rows of one graph; each answer is compared with the first to its question."""
        tell(f"{name}: loading the graph")
        maker = Worker(self.plan.bench)
        try:
            what = (name, places[0], self.plan.seed, self.folder, self.plan.renumber)
            facts = _required(maker, "make", *what)
        finally:
            maker.end()
        given = Problem.read(self.folder)
        try:
            for question in questions:
                asked: list[tuple[Row, Answer]] = []
                wrong = ""
                for system in (*places, *others):
                    if system in others and question.key not in LIBRARIES[system].keys:
                        continue
                    tell(f"{facts.graph}: {question.key} on {system}")
                    row, answer = self._row(facts, question, system)
                    if answer is not None and not wrong:
                        asked.append((row, answer))
                        wrong = _check(given, question, asked)
                    yield row
                    if wrong:
                        raise CheckFailed(f"bench: {facts.graph}, {question.key}: {wrong}")
        finally:
            for worker in self.workers.values():
                worker.end()

    def _row(self, facts: Facts, question: Question, system: str) -> tuple[Row, Answer | None]:
        """Return one row, and the answer if there is one."""
        row: Row = {
            "graph": facts.graph,
            "vertices": facts.vertices,
            "edges": facts.edges,
            "algorithm": question.algorithm,
            "options": question.options,
            "system": system,
            **dict.fromkeys(("runs", "median_ms", "min_ms", "max_ms", "device_ms", "rounds")),
            "loop": "",
            "bytes": None,
            "checked": False,
            "note": self._why_not(facts, question, system),
        }
        if row["note"]:
            return row, None
        try:
            found = self._measured(question, system)
        except TimeUp:
            left = self.end - time.monotonic()
            row["note"] = NO_TIME if left <= 0 else f"over {self.plan.limit:g} s"
            return row, None
        except Failed as error:
            row["note"] = f"{error.kind}: {error.text}"
            if error.kind not in _EXPECTED:
                self.failures.append(f"{facts.graph}, {question.key}, {system}: {row['note']}")
                self._end(system)  # its state is unknown
            return row, None
        row |= {
            "runs": len(found.wall_ms),
            "median_ms": median(found.wall_ms),
            "min_ms": min(found.wall_ms),
            "max_ms": max(found.wall_ms),
            "device_ms": found.device_ms,
            "rounds": None if question.rounds is None else question.rounds(facts, found.answer),
            "loop": found.loop,
            "bytes": found.bytes,
            "note": "first run" if found.first else "",
        }
        return row, found.answer

    def _why_not(self, facts: Facts, question: Question, system: str) -> str:
        """Return why a system is not asked, or an empty string."""
        why = question.why_not(facts)
        if not why and system in LIBRARIES:
            why = LIBRARIES[system].why_not(question.key, facts.entries)
        if not why and time.monotonic() >= self.end:
            why = NO_TIME
        return why or self.broken.get(system, "")

    def _measured(self, question: Question, system: str) -> Measured:
        """Ask a system a question, in a new process if there is none."""
        worker = self.workers.get(system)
        if worker is None or not worker.alive:
            worker = self.workers[system] = Worker(self.plan.bench)
            try:
                worker.call("open", system, self.folder, limit=self.end - time.monotonic())
            except Failed as error:
                self.broken[system] = f"{error.kind}: {error.text}"
                self._end(system)
                raise
        worker.call("prepare", question.key, limit=self.end - time.monotonic())
        limit = min(self.plan.limit, self.end - time.monotonic())
        call = self.plan.repeats, self.plan.seconds, limit
        found: Measured = worker.call("measure", *call, limit=limit)
        return found

    def _end(self, system: str) -> None:
        worker = self.workers.pop(system, None)
        if worker is not None:
            worker.end()


def _check(given: Problem, question: Question, asked: list[tuple[Row, Answer]]) -> str:
    """Prove the last answer and compare it with the first; return the fault or an empty string."""
    (first, right), (row, answer) = asked[0], asked[-1]
    if question.prove is not None and answer.proof is not None:
        try:
            question.prove(given, answer)
        except CheckFailed as error:
            return f"{row['system']}: {error}"
        row["checked"] = True
    if len(asked) > 1:
        if menu.differs(question.rule, right, answer):
            row["checked"] = False
            return f"{first['system']} and {row['system']} differ"
        first["checked"] = row["checked"] = True
    return ""
