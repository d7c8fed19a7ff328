"""Run the experiments of a paper and say what their figures say; `lagpu.bench` measures."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, NamedTuple

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.bench import peers, report
from lagpu.bench.graphs import HostGraph, require_graph
from lagpu.bench.suite import Tested, placed_on
from lagpu.core.matrix import Matrix
from lagpu.errors import (
    BackendUnavailable,
    FileFormatError,
    InvalidValue,
    LagpuError,
    LimitExceeded,
    NotSupported,
    OutOfMemory,
)
from lagpu.generators.load import load
from lagpu.generators.spec import is_random, is_spec
from lagpu.io.csc import CSC
from lagpu.papers.claims import best_of
from lagpu.papers.energy import EnergyCounter
from lagpu.papers.experiment import BEST, Experiment, Paper, PaperGraph, Row
from lagpu.papers.measure import WAYS, Found, search_all
from lagpu.papers.metrics import Measured
from lagpu.papers.places import Runner, runner_of

__all__ = ["Request", "run"]

Tell = Callable[[str], None]

_QUICK_ROOTS = 2
_ROOT_SEED = 7


class _Known(NamedTuple):
    """What several experiments of a run ask for, or several parts of one, measured once.

    Attributes
    ----------
    found : Found
        The searches.
    edges : dict
        The edges that they traverse, by root.
    joules : float or None
        The energy of a search, where an experiment has asked for it.
    """

    found: Found
    edges: dict[int, int]
    joules: float | None = None


@dataclass(frozen=True)
class Request:
    """What a user asks for; see ``lagpu paper --help``.

    Attributes
    ----------
    backend : str
        Where the variants run.
    quick : bool
        Whether small graphs and few searches do.
    roots : int, optional
        Searches a graph; by default as many as the paper's.
    seed : int, optional
        Seed of generated graphs and of the choice of roots.
    files : mapping of str to str
        By the paper's name of a graph: a file, or a text for `lagpu.generators`.
    only : sequence of str
        The paper's names of the graphs to run; by default all.
    memory : int, optional
        Bytes that the arrays of a device hold at most while it searches, the graph included.
    """

    backend: str = "auto"
    quick: bool = False
    roots: int | None = None
    seed: int | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    only: Sequence[str] = ()
    memory: int | None = None


def run(
    paper: Paper,
    experiments: Sequence[Experiment],
    request: Request,
    tell: Tell = lambda _text: None,
    keep: Callable[[dict[str, Any]], None] = lambda _report: None,
) -> tuple[dict[str, Any], list[str]]:
    """Run some experiments of a paper.

    Parameters
    ----------
    paper : Paper
        The paper.
    experiments : sequence of Experiment
        Those of its experiments to run.
    request : Request
        How.
    tell : callable
        Called with a description of each step, for a progress display.
    keep : callable
        Called with the report after each graph.

    Returns
    -------
    report : dict
        ``machine commit date versions paper quick memory experiments``, ready for JSON, where
        `memory` is the limit in bytes or None. An experiment has
        ``part title metric definition measured_on notes missing says rows``; a row has
        ``graph kind made_from stand_in vertices entries paper_size degrees variant of_paper runs_as
        note backend mode output roots value unit more reported median_ms mean_ms gteps bytes joules
        checked``: `value` is the paper's metric, `reported` the paper's figure or None, `gteps` and
        `median_ms` are as `lagpu bench` has them, `paper_size` is the paper's vertices and stored
        entries, `degrees` are maximum, mean and standard deviation, and `joules` is None where it
        is not known.
    refusals : list of str
        Why rows are not checked.

    Raises
    ------
    InvalidValue
        For the name of a graph that no experiment has, or no file or generator of this name.
    OutOfMemory, BackendUnavailable, LagpuError
        If nothing at all can be run, the reason of the first graph.
    """
    _require_known(experiments, request)
    place = backends.get(request.backend)
    pieces = any(graph.pieces for e in experiments for graph in e.graphs)
    if request.memory is not None and (place.device is None or pieces or request.memory < 1):
        raise InvalidValue(
            f"--memory: {request.memory} bytes on {'a grid' if pieces else place.name}. "
            "Give 1 or more, on one GPU or sim, and a table or figure of one GPU."
        )
    libraries = {v.peer for e in experiments for v in e.variants if v.peer is not None}
    about = {"number": paper.number, "title": paper.title, "where": paper.where}
    whole = report.envelope([place], peers.versions(sorted(libraries)))
    whole |= {"paper": about, "quick": request.quick, "memory": request.memory, "experiments": []}
    refusals: list[str] = []
    errors: list[LagpuError] = []
    known: dict[tuple[object, ...], _Known] = {}
    for experiment in experiments:
        work = _Work(experiment, request, place, known, tell)
        rows: list[Row] = []
        whole["experiments"].append(work.report(rows))
        for graph in work.graphs:
            rows += work.rows_of(graph)
            whole["experiments"][-1] = work.report(rows)
            if rows:
                keep(whole)
        refusals += work.refusals
        errors += work.errors
    if errors and not any(part["rows"] for part in whole["experiments"]):
        raise errors[0]
    return whole, refusals


def _require_known(experiments: Sequence[Experiment], request: Request) -> None:
    names = list(dict.fromkeys(g.name for e in experiments for g in e.graphs))
    for option, given in (("--graph", request.files), ("--only", request.only)):
        for name in given:
            if name not in names:
                raise InvalidValue(f"{option}: there is no {name!r} here. Use {', '.join(names)}.")
    for text in request.files.values():
        require_graph(text)
    made = {g.name for e in experiments for g in e.graphs if (g.quick if request.quick else g.made)}
    if request.only and not made.union(request.files) & {*request.only}:
        raise InvalidValue(
            f"--only: no {'small ' * request.quick}graph is made for {', '.join(request.only)}. "
            f"Give --graph {request.only[0]}=FILE."
        )
    if request.roots is not None and request.roots < 1:
        raise InvalidValue(f"paper: {request.roots} roots < 1. Give 1 or more.")


class _Work:
    """One experiment on its way: what is missing, what was refused."""

    def __init__(
        self,
        experiment: Experiment,
        request: Request,
        place: Backend,
        known: dict[tuple[object, ...], _Known],
        tell: Tell,
    ) -> None:
        self._experiment, self._request, self._tell = experiment, request, tell
        self._place, self._known = place, known
        self._counter: EnergyCounter | None = None
        self.missing: list[str] = []
        self.refusals: list[str] = []
        self.errors: list[LagpuError] = []
        wanted = [g for g in experiment.graphs if not request.only or g.name in request.only]
        self.graphs = [graph for graph in wanted if self._source(graph)]
        without = [graph.name for graph in wanted if not self._source(graph)]
        if without and not request.quick:
            names = ", ".join(without)
            self.missing.append(f"no file, no generator (--graph NAME=FILE): {names}")
        if experiment.energy:
            try:
                self._counter = EnergyCounter(place)
            except BackendUnavailable as error:
                self._leave_out("", error)
                self.graphs = []

    def _leave_out(self, name: str, error: LagpuError) -> None:
        self.errors.append(error)
        self._miss(f"{name}: {error}" if name else str(error))

    def _miss(self, text: str) -> None:
        if text not in self.missing:
            self.missing.append(text)

    def _source(self, graph: PaperGraph) -> str | None:
        """Return the file or the generator's text of a graph."""
        made = graph.quick if self._request.quick else graph.made
        return self._request.files.get(graph.name, made)

    def _why_stand_in(self, graph: PaperGraph) -> str:
        """Return how a graph differs from the paper's, an empty string if it does not."""
        if graph.name in self._request.files:
            return ""
        return "a small graph, since --quick is given" if self._request.quick else graph.why

    def report(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the experiment with its rows, for the report."""
        experiment = self._experiment
        rows = [row.copy() for row in rows]
        _put_relative(experiment, rows)
        _put_best(experiment, rows)
        return {
            "part": experiment.part,
            "title": experiment.title,
            "metric": experiment.metric.unit,
            "definition": experiment.metric.definition,
            "measured_on": experiment.machine,
            "notes": list(experiment.notes),
            "missing": [*self.missing],
            "says": [text for text in (claim.says(rows) for claim in experiment.claims) if text],
            "rows": rows,
        }

    def rows_of(self, graph: PaperGraph) -> Iterator[Row]:
        """Measure every variant on a graph."""
        try:
            yield from self._rows_of(graph)
        except (OutOfMemory, FileFormatError, BackendUnavailable) as error:
            self._leave_out(graph.name, error)  # others may be smaller, valid, in fewer pieces

    def _rows_of(self, graph: PaperGraph) -> Iterator[Row]:
        request, place = self._request, self._place
        if graph.pieces:
            place = _grid_of(graph, place)
        runners = []
        for variant in self._experiment.variants:
            runner = runner_of(variant, place)
            if isinstance(runner, str):
                self._miss(runner)
            else:
                runners.append(runner)
        if any(r.runs_as != (r.variant.kernel or r.variant.policy or r.runs_as) for r in runners):
            self._miss(
                f"kernels: the {place.name} backend has none; its directions stand for them, so "
                "variants of one direction are the same"
            )
        self._tell(f"{graph.name}: loading {self._source(graph)}")
        gc.collect()
        before = 0 if place.device is None else int(place.device.used_bytes())
        again = functools.partial(load, str(self._source(graph)), place, seed=request.seed)
        A = again()
        count = request.roots or (_QUICK_ROOTS if request.quick else self._experiment.roots)
        seed = _ROOT_SEED if request.seed is None else request.seed
        host = HostGraph.of(A)
        tested = Tested(graph.name, host, host.roots(count, seed))
        if _made_on_host(str(self._source(graph))):  # which takes longer than to copy it
            columns = CSC(A.nrows, A.ncols, *host.columns, symmetric=host.facts.symmetric or None)
            again = functools.partial(columns.matrix, place)
        for runner in runners:
            self._tell(f"{graph.name}: {runner.variant.name}")
            if request.memory is not None and runner.place is not None:
                del A  # with what the variants before have left at it, which would count
                gc.collect()
                A = again()
            try:
                with self._limited():
                    row = self._row(graph, tested, A, runner, before)
            except (OutOfMemory, NotSupported, LimitExceeded) as error:
                self._miss(f"{graph.name}, {runner.variant.name}: {error}")
            except LagpuError as error:  # the other rows stay
                self.refusals.append(f"{graph.name}, {runner.variant.name}: {error}")
            except Exception as error:
                if runner.place is not None:
                    raise
                text = " ".join(str(error).split())  # any error of another library
                self._miss(f"{graph.name}, {runner.variant.name}: {text}")
            else:
                yield row

    def _limited(self) -> AbstractContextManager[None]:
        """Return the context in which the device has the memory that was asked for."""
        device, memory = self._place.device, self._request.memory
        return nullcontext() if device is None or memory is None else device.limited(memory)

    def _measured(
        self, graph: PaperGraph, tested: Tested, A: Matrix, runner: Runner, before: int
    ) -> _Known:
        """Measure a variant, unless it was measured in this run beside the same other variants."""
        variant, place, kind = runner.variant, runner.place, self._experiment.kind
        variants = frozenset((v.kernel, v.policy, v.peer) for v in self._experiment.variants)
        of = (kind, self._source(graph), graph.pieces, len(tested.roots), variants)
        key = (*of, runner.runs_as, variant.output, variant.fused)
        if key not in self._known:
            found = WAYS[kind](tested, A, runner, before)
            self._known[key] = _Known(found, tested.edges)
        known = self._known[key]
        if self._counter is not None and place is not None and known.joules is None:
            again = functools.partial(
                search_all, variant, placed_on(A, place), tested.roots, known.found.mode
            )
            known = self._known[key] = known._replace(joules=self._counter.joules(again))
        return known

    def _row(
        self, graph: PaperGraph, tested: Tested, A: Matrix, runner: Runner, before: int
    ) -> Row:
        """Measure a variant on a graph."""
        variant, place = runner.variant, runner.place
        found, edges_of, joules = self._measured(graph, tested, A, runner, before)
        if found.refusal:
            self.refusals.append(f"{graph.name}, {variant.name}: {found.refusal}")
        facts = tested.host.facts
        ms = tuple(sample.device_ms for sample in found.samples)
        edges = tuple(edges_of[root] for root in tested.roots)
        metric = self._experiment.metric
        parts = tuple(found.parts.get(variant.part, [0.0] * len(ms)))
        measured = Measured(ms, edges, facts.entries, facts.symmetric, joules, parts)
        return {
            "graph": graph.name,
            "kind": graph.kind,
            "made_from": self._source(graph),
            "stand_in": self._why_stand_in(graph),
            "vertices": facts.vertices,
            "entries": facts.entries,
            "paper_size": graph.size,
            "degrees": _degrees(facts.out_degree),
            "variant": variant.name,
            "of_paper": variant.of_paper,
            "runs_as": runner.runs_as,
            "note": variant.note,
            "backend": runner.runs_as if place is None else place.name,
            "mode": found.mode,
            "output": found.output,
            "roots": len(ms),
            "value": metric.of(measured),
            "unit": metric.unit,
            "more": metric.more,
            "reported": graph.reported.get(variant.name),
            "median_ms": median(ms),
            "mean_ms": fmean(ms),
            "gteps": report.harmonic_gteps(ms, edges),
            "bytes": found.nbytes,
            "joules": joules,
            "checked": not found.refusal,
        }


def _degrees(degree: Any) -> tuple[float, float, float]:
    """Return maximum, mean and standard deviation of degrees."""
    return int(degree.max()), float(degree.mean()), float(degree.std())


def _made_on_host(text: str) -> bool:
    """Return whether a text names a graph that no device draws, all of which are patterns."""
    return is_spec(text) and not is_random(text)


def _grid_of(graph: PaperGraph, place: Backend) -> Backend:
    """Return the grid that a graph is dealt to, each piece on a backend like this one."""
    kind = place.name.rpartition(":")[2] if place.name.startswith("grid") else place.name
    try:
        return backends.get(f"grid:{graph.pieces}:{kind}")
    except (BackendUnavailable, InvalidValue) as error:
        raise BackendUnavailable(
            f"paper: needs a grid of {graph.pieces}: {error} With -b cpu or sim a host has any."
        ) from error


def _put_relative(experiment: Experiment, rows: Sequence[Row]) -> None:
    """Divide the values by that of the metric's baseline, graph by graph; without it by none."""
    over = experiment.metric.over
    if not over:
        return
    whole = {row["graph"]: row["value"] for row in rows if row["variant"] == over}
    for row in rows:
        base = whole.get(row["graph"])
        known = base is not None and row["value"] is not None
        row["value"] = row["value"] / base if known else None


def _put_best(experiment: Experiment, rows: Sequence[Row]) -> None:
    """Put the paper's figure for its best variant beside our best, graph by graph."""
    for graph in experiment.graphs:
        best = best_of([row for row in rows if row["graph"] == graph.name])
        if best is not None and BEST in graph.reported:
            best["reported"] = graph.reported[BEST]
