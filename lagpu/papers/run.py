"""Run the experiments of a paper, each result proved, and show what their figures say."""

from __future__ import annotations

import functools
import gc
import itertools
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, NamedTuple, cast

import numpy as np

from lagpu import algorithms, backends, errors
from lagpu.algorithms.betweenness import count_paths, dependencies
from lagpu.backends.guard import overridden
from lagpu.backends.protocol import Backend, Measured
from lagpu.bench import harness, peers, suite
from lagpu.bench.graphs import HostGraph, drawn, require_graph
from lagpu.bench.harness import Array, Clock, Report, Row, Sample, Say, used_bytes
from lagpu.bench.suite import ALGORITHMS, Searched, Tested, placed_on
from lagpu.check.graph import Edges
from lagpu.core import Matrix
from lagpu.core.recorder import Observer
from lagpu.errors import BackendUnavailable, InvalidValue, LagpuError, NotSupported
from lagpu.generators import path
from lagpu.generators.load import canonical, is_random, is_spec, load
from lagpu.host import progress
from lagpu.host.display import one_line
from lagpu.host.fitting import FittingTable
from lagpu.io.csc import CSC
from lagpu.observe.trace import trace
from lagpu.operations import Constant
from lagpu.papers import experiments as data
from lagpu.papers.experiments import Experiment, Paper, PaperGraph, Variant

_QUICK_ROOTS = 2
_BY_LEVEL = "by level"  # of a system on a grid, whose levels the host runs: Python's time
_TURNS = 2  # of all variants of a graph: the spread of one row's runs is that of our clocks
_KERNELS_MS = 2.0  # of runs of one search
_LONG = 8  # times of the seconds of a turn: a search that takes longer runs once
_SPANS = 4  # roots whose span is measured, where the kernels' times count
#: The counter of energy moves some ten times a second: searches are repeated for so long, from one
#: move to another, but not for ever where it stands still.
_SECONDS, _STILL = 0.5, 1.0
_NO_ENERGY = "paper: energy cannot be read: {}. Take a figure of times instead, as --figure 1."
_SPARE = ("runs as", "mode", "entries", "degrees", "GTEPS", "paper")


class Runner(NamedTuple):
    """A variant and where it runs, on no backend if it is a library."""

    variant: Variant
    place: Backend | None
    runs_as: str

    @property
    def is_papers(self) -> bool:
        """Whether it runs on a GPU by the kernel or the policy of the paper, or by the library."""
        variant, place = self.variant, self.place
        asked = variant.kernel or variant.policy or self.runs_as
        return place is None or (self.runs_as == asked and Clock(place).has_device)

    @property
    def mode(self) -> str:
        """How loops run: what the paper compares runs in one, by the paper's own kernels."""
        assert self.place is not None
        variant, can = self.variant, self.place.capabilities
        by_itself = variant.kernel is None and variant.policy is None
        return "fused" if (by_itself or variant.fused or can.searches) and can.records else "eager"


def runner_of(variant: Variant, place: Backend) -> Runner:
    """Return where a variant runs; `BackendUnavailable` or `NotSupported` says what is missing."""
    # On a backend without kernels to choose from, a kernel is replaced by its direction, and a
    # policy by ``beamer``.
    if variant.peer is not None:
        peers.chosen([variant.peer])
        return Runner(variant, None, variant.peer)
    kernel, policy = variant.kernel, variant.policy
    if kernel is None and policy is None:
        return Runner(variant, place, "lagpu by itself")
    can = place.capabilities
    offered = can.kernels if kernel else can.policies
    if not can.kernels and str(policy).partition(":")[0] not in offered:
        policy = kernel.partition("_")[0] if kernel else "beamer"
        kernel, offered = None, can.policies
    name = str(kernel or policy)
    what = "kernel" if kernel else "policy"
    lacks = NotSupported(f"the {place.name} backend has no {what} {name}")
    if name.partition(":")[0] not in offered:
        raise lacks
    chosen = overridden(place, kernel, policy)
    try:  # an argument that the kernel or the policy does not take
        algorithms.bfs_levels(path(3, backend=chosen), 0)
    except InvalidValue:
        raise lacks from None
    return Runner(variant, chosen, name)


class _Kernels(Observer):
    """Times the kernels of each statement by themselves, and counts nothing, as a trace does."""

    why_eager = "its kernels are timed"

    def __init__(self, place: Backend) -> None:
        self._meter = place.meter()
        self._timed: list[Callable[[], Measured]] = []

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        self._timed.append(self._meter.run(work, None, Constant(None)))

    def ms(self) -> float:
        """Return the time of all kernels, once these have ended."""
        self._meter.stop()
        return sum(measured().kernel_ms for measured in self._timed)


class _Clock(Clock):
    """Times kernels of loops that are not one kernel, and the span of a few; or parts of searches.

    The kernels' time is that of a paper's C program: Python's time between them does not count.
    """

    def __init__(self, place: Backend | None, mode: str, by_part: bool = False) -> None:
        # Kernels differ little from run to run; the turns show how much.
        super().__init__(place, repeats=3, enough_ms=200.0)
        self.mode, self._by_part, self.spans = mode, by_part, 0

    @property
    def by_kernel(self) -> bool:
        return self.mode == "eager" and cast(Backend, self.backend).device is not None

    def measure(self, search: Callable[[], Any]) -> tuple[Sample, Any]:
        if self._by_part:
            return self._parts_of(search)
        ms, kernel_ms = math.nan, None
        if not self.by_kernel or self.spans:
            self.spans -= 1
            once = self.queued if self.has_device else self.wall
            times, result = self.repeat(once, search, 1 if self.by_kernel else None)
            ms = median(times)
        if self.by_kernel:
            times, result = self.repeat(self._kernels, search, enough_ms=_KERNELS_MS)
            kernel_ms = median(times)
        return Sample(ms, ms, kernel_ms), result

    def _kernels(self, search: Callable[[], Any]) -> tuple[float, Any]:
        seen = _Kernels(cast(Backend, self.backend))
        try:
            with seen:
                result = search()
        finally:  # else the device is observed after a search that failed
            ms = seen.ms()
        return ms, result

    def _parts_of(self, search: Callable[[], Any]) -> tuple[Sample, Any]:
        """Search under a trace, which has the parts of the time: directions, or phases."""
        with trace(fuse=self.mode == "fused") as traced:
            result = search()
        parts: dict[str, float] = defaultdict(float)
        for row in traced.rows:
            for phase in row.phases:
                parts[phase.name] += phase.ms
            if not row.phases and row.direction:
                parts[row.direction] += row.kernel_ms
        whole = sum(parts.values())
        return Sample(whole, whole, parts=parts), result


def _timed(
    tested: Tested, clock: _Clock, run: Callable[[int], Any], output: str, who: str,
    read: Callable[[int, Any], Any],
) -> tuple[Searched, Any]:  # fmt: skip
    """Search from every root; return the times, and the last result."""
    refusal = ""
    with suite.as_mode(clock.mode):
        if tested.seconds is not None or tested.on_host or clock.mode == "fused":
            root, mode = tested.roots[0], clock.mode
            # The first run compiles kernels and makes workspaces: a second one may be much shorter.
            enough = 1e3 * (tested.seconds or math.inf)
            for long in (_LONG * enough, enough):
                begin, compiled = time.perf_counter(), clock.compile_ms()
                sample, found = clock.measure(functools.partial(run, root))
                ms = (time.perf_counter() - begin) * 1e3 - clock.compile_ms() + compiled
                ms = clock.slowest(ms)
                if not enough < ms <= long:
                    break
            loop = "" if clock.backend is None else clock.backend.last_loop
            if mode == "fused" and loop.startswith(("eager", "no ")):
                clock.mode = "eager"  # the actual mode
            refusal = tested.compare(root, output, who, read(root, found))
            if ms > enough and mode == clock.mode:  # it is the only one
                del tested.roots[1:]
                tested.used = used_bytes(clock.backend) if clock.backend else 0
                sample = sample._replace(wall_ms=ms)
                return Searched(mode, "", [sample], refusal, once=ms > _LONG * enough), found
        clock.spans = _SPANS
        samples, other, found = tested.search(clock, run, output, who, read)
    return Searched(clock.mode, "", samples, other or refusal), found


def searches(
    tested: Tested, A: Matrix, runner: Runner, before: int, by_part: bool = False
) -> Searched:
    """Search from every root, and prove the last result."""
    variant, place, output = runner.variant, runner.place, runner.variant.output
    if place is None:
        who = str(variant.peer)
        peer = peers.PEERS[who]
        if tested.host.facts.entries > peer.most_searched:
            raise errors.LimitExceeded(f"{who}: takes at most {peer.most_searched:g} entries")
        library = tested.libraries[who] = tested.libraries.get(who) or peer.open(tested.host)
        clock = _Clock(None, "peer")
        found, last = _timed(tested, clock, library.search, output, who, library.levels)
        refusal = tested.prove(output, *library.levels(tested.roots[-1], last)) or found.refusal
        return found._replace(output=peer.output, refusal=refusal)
    A, who, mode = placed_on(A, place), f"{place.name}, {variant.name}", runner.mode
    if by_part:  # by a grid's policy, whose trace has phases, or by products
        mode = "fused" if place.capabilities.searches else "eager"
    run, clock = functools.partial(ALGORITHMS[output], A), _Clock(place, mode, by_part)
    found, last = _timed(tested, clock, run, output, who, lambda _, x: x)
    levels_of = functools.partial(algorithms.bfs_levels, A)
    with suite.as_mode(found.mode):
        indices, values = last.to_coo()
        refusal = tested.prove(output, indices, values, levels_of) or found.refusal
    nbytes = tested.used - before if harness.devices_of(place) else None
    return found._replace(output=output, refusal=refusal, nbytes=nbytes)


def accumulations(tested: Tested, A: Matrix, runner: Runner, before: int) -> Searched:
    """Compute the dependencies of each root alone: a round of betweenness centrality."""
    place = runner.place
    assert place is not None
    A = placed_on(A, place)

    def round_of(root: int) -> tuple[Any, Any, Any]:
        levels, paths = count_paths(A, [root])
        return levels, paths, dependencies(A, levels, paths)

    clock, who = _Clock(place, runner.mode), runner.variant.name
    found, last = _timed(tested, clock, round_of, "levels", who, lambda _, of: of[0])
    refusal = _wrong_dependencies(tested, *last) or found.refusal
    nbytes = tested.used - before if place.device else None
    return found._replace(output="dependencies", refusal=refusal, nbytes=nbytes)


def _wrong_dependencies(tested: Tested, *last: Any) -> str:
    """Return why levels d, path counts p or dependencies are wrong, or an empty string."""
    # For proved d and p the recurrence has one solution: the dependency on u is the sum of p[u] /
    # p[v] (1 + dependency on v) over the edges u -> v to the next level.
    n, root = tested.host.facts.vertices, tested.roots[-1]
    found = [x.to_coo() for x in last]
    for output, (indices, values) in zip(("levels", "paths"), found, strict=False):
        refusal = tested.prove(output, indices, values, lambda _: last[0])
        if refusal:
            return refusal
    level, path, delta = (np.full(n, fill) for fill in (-1.0, 1.0, 0.0))
    for dense, (indices, values) in zip((level, path, delta), found, strict=True):
        dense[indices] = values

    def share(e: Edges) -> Array:
        next_one = (level[e.end] >= 0) & (level[e.begin] == level[e.end] + 1)
        return np.where(next_one, path[e.end] / path[e.begin] * (1 + delta[e.begin]), 0.0)

    edges = tested.host.pattern.slices  # those of each u with the ends of its edges as begins
    edges = edges if edges.symmetric else edges.reversed
    if np.allclose(delta, edges.at_ends(share, np.add, 0.0), rtol=1e-9, atol=1e-9):
        return ""
    return f"dependencies from vertex {root} do not obey their recurrence"


#: By the `kind` of an experiment.
WAYS: dict[str, Callable[..., Searched]] = {
    "searches": searches, "parts": functools.partial(searches, by_part=True),
    "accumulations": accumulations,
}  # fmt: skip


class EnergyCounter:
    """The counter of all energy that a backend's GPU has taken, idle power too, through NVML."""

    def __init__(self, place: Backend) -> None:
        xp: Any = None if place.device is None else place.device.xp
        if not hasattr(xp, "cuda"):
            raise BackendUnavailable(_NO_ENERGY.format(f"the {place.name} backend has no GPU"))
        try:
            import pynvml
        except ImportError:
            why = 'NVML\'s package is missing: pip install "lagpu[energy]"'
            raise BackendUnavailable(_NO_ENERGY.format(why)) from None
        self._nvml: Any = pynvml
        self._synchronize = place.device.synchronize
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(xp.cuda.Device().pci_bus_id)
            self._read()
        except pynvml.NVMLError as error:
            raise BackendUnavailable(_NO_ENERGY.format(f"NVML: {error}")) from None

    def joules(self, run: Callable[[], int], seconds: float = _SECONDS) -> float:
        """Return the energy of a search; `run`, repeated for some seconds, returns how many."""
        _, before = self._until_it_moves(run, 0.0)
        searches, after = self._until_it_moves(run, seconds)
        return (after - before) / searches

    def _until_it_moves(self, run: Callable[[], int], seconds: float) -> tuple[int, float]:
        """Run for some seconds and until the counter moves; return the searches and the joules."""
        begin, last, searches = time.perf_counter(), self._read(), 0
        while True:
            searches += run()
            self._synchronize()
            before, last = last, self._read()
            passed = time.perf_counter() - begin
            if passed >= seconds and (last != before or passed >= seconds + _STILL):
                return searches, last

    def _read(self) -> float:
        """Return the joules since the driver was loaded."""
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3


@dataclass(frozen=True)
class Request:
    """The request of a user; see ``lagpu paper --help``.

    `files` are by the paper's name of a graph, and may be texts for `lagpu.generators`; `memory` is
    the number of bytes that the arrays of a device hold at most, the graph included; `seconds` are
    those of a variant's runs on a graph in one turn: fewer roots where they do not suffice.
    """

    backend: str = "auto"
    quick: bool = False
    roots: int | None = None
    seed: int | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    only: Sequence[str] = ()
    memory: int | None = None
    seconds: float = math.inf


def run(
    paper: Paper, experiments: Sequence[Experiment], request: Request, say: Say = harness.silent,
    keep: harness.Keep = harness.silent,
) -> tuple[Report, list[str]]:  # fmt: skip
    """Run some experiments of a paper; return the report, and why rows are not checked."""
    # `keep` is called with the report after each graph. In a row of an experiment `value` is in the
    # paper's metric, `reported` the paper's figure or None, `paper_size` its vertices and stored
    # entries, and `degrees` are maximum, mean and deviation; `memory` is the limit in bytes or
    # None. If nothing at all can be run, the error of the first graph is raised.
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
    whole = harness.envelope([place], peers.versions(sorted(libraries)))
    whole |= {"paper": about, "quick": request.quick, "memory": request.memory, "experiments": []}
    graphs = _Graphs(place, request, say)
    works = [_Work(experiment, graphs) for experiment in experiments]
    whole["experiments"] = [work.report() for work in works]
    keys = dict.fromkeys(graphs.key(graph) for work in works for graph in work.graphs)
    for key in progress.over([*keys], "graphs"):  # each is made once
        for k, work in enumerate(works):
            for graph in work.graphs:
                if graphs.key(graph) == key:
                    work.measure(graph)
                    whole["experiments"][k] = work.report()
                    if work.rows:
                        keep(whole)
        graphs.forget()
    failed = [error for work in works for error in work.errors]
    if failed and not any(work.rows for work in works):
        raise failed[0]
    return whole, [text for work in works for text in work.refusals]


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
    if not request.seconds > 0:
        raise InvalidValue(f"--seconds: {request.seconds:g}. Give more than 0, as 1.")


class _Graphs:
    """The graphs of a run, one at a time, each made once, and what is `known` of their searches."""

    def __init__(self, place: Backend, request: Request, say: Say) -> None:
        self.place, self.request, self.say = place, request, say
        self.known: dict[tuple[object, ...], Searched] = {}
        self._host: tuple[str, HostGraph, Array] | None = None
        self.forget()

    def forget(self) -> None:
        """Drop the graph, but for what is on the host: the next one may be the same in pieces."""
        self._A: Matrix | None = None
        self._tested: dict[int, Tested] = {}

    def source(self, graph: PaperGraph) -> str | None:
        """Return the file or the text of a graph; None without any."""
        return self.request.files.get(graph.name, graph.quick if self.request.quick else graph.made)

    def why(self, graph: PaperGraph) -> str:
        """Return how a graph differs from the paper's, or an empty string."""
        given = self.request.files.get(graph.name)
        if given is None:
            return "a small graph, since --quick is given" if self.request.quick else graph.why
        if not is_spec(given):
            return ""
        generators = {canonical(text).partition(":")[0] for text in (given, graph.made or "")}
        if len(generators) > 1:
            return f"size only: {given}, by --graph"
        return f"{graph.why or 'by the same generator'}; of another size, by --graph"

    def key(self, graph: PaperGraph) -> tuple[str | None, str]:
        """Return a key that two names of the same matrix share."""
        return self.source(graph), graph.pieces

    def place_of(self, graph: PaperGraph) -> Backend:
        """Return the backend of a graph, or the grid of its pieces, each on a backend like it."""
        if not graph.pieces:
            return self.place
        name = self.place.name
        kind = name.rpartition(":")[2] if name.startswith("grid") else name
        try:
            return backends.get(f"grid:{graph.pieces}:{kind}")
        except (BackendUnavailable, InvalidValue) as error:
            fact = f"needs a grid of {graph.pieces}: {error}"
            raise BackendUnavailable(f"paper: {fact} -b cpu and -b sim need no GPU.") from error

    def matrix(self, graph: PaperGraph) -> Matrix:
        if self._A is None:
            source, place = str(self.source(graph)), self.place_of(graph)
            self.say(f"{graph.name}: loading {source}")
            gc.collect()
            self.before = used_bytes(place) if place.device else 0
            self._again = functools.partial(load, source, place, seed=self.request.seed)
            self._A = self._again()
        return self._A

    def clear(self) -> None:
        """Drop what variants have left at the matrix, if it would count in a limit of memory."""
        if self.request.memory is not None:
            self._A = None
            gc.collect()
            self._A = self._again()

    def tested(self, graph: PaperGraph, roots: int) -> Tested:
        """Return a graph with some roots and the results so far."""
        A, source = self.matrix(graph), str(self.source(graph))
        if self._host is None or self._host[0] != source:
            self._host = None
            parts = A.backend.capabilities.parts
            if parts is not None and len(parts.homes) == parts.count:
                with suppress(errors.OutOfMemory):  # one piece alone is much quicker
                    A = load(source, parts.homes[0], seed=self.request.seed)
            host = HostGraph.of(A)
            self._host = source, host, host.candidates(A)
        _, host, candidates = self._host
        if roots not in self._tested:
            chosen = drawn(candidates, roots, self.request.seed)
            self._tested[roots] = Tested(graph.name, host, chosen)
            if is_spec(source) and not is_random(source):
                # made on the host; a copy takes less time
                again = CSC(A.nrows, A.ncols, *host.columns, symmetric=host.facts.symmetric or None)
                self._again = functools.partial(again.matrix, self.place_of(graph))
        return self._tested[roots]


class _Work:
    """One experiment: its rows, what is missing, what was refused."""

    def __init__(self, experiment: Experiment, graphs: _Graphs) -> None:
        self._experiment, self._graphs, request = experiment, graphs, graphs.request
        self._counter: EnergyCounter | None = None
        self._rows: dict[str, list[Row]] = {}  # by graph
        self.missing: dict[str, None] = {}  # in order
        self.refusals: list[str] = []
        self.errors: list[LagpuError] = []
        wanted = [g for g in experiment.graphs if not request.only or g.name in request.only]
        self.graphs = [graph for graph in wanted if graphs.source(graph)]
        without = [graph.name for graph in wanted if not graphs.source(graph)]
        if without and not request.quick:
            names = ", ".join(without)
            self.missing.setdefault(f"no file, no generator (--graph NAME=FILE): {names}")
        if not Clock(graphs.place).has_device:
            self.missing.setdefault(f"a GPU: times on {graphs.place.name} judge no claim")
        if experiment.energy:
            try:
                self._counter = EnergyCounter(graphs.place)
            except BackendUnavailable as error:
                self._leave_out(str(error), error)
                self.graphs = []

    @property
    def rows(self) -> list[Row]:
        """The rows so far, in the order of the experiment's graphs."""
        return [row for graph in self.graphs for row in self._rows.get(graph.name, ())]

    def measure(self, graph: PaperGraph) -> None:
        """Measure every variant on a graph, or say why not."""
        try:
            self._rows[graph.name] = []
            self._rows[graph.name] = [*self._rows_of(graph)]
        except (errors.OutOfMemory, errors.FileFormatError, BackendUnavailable) as error:
            # others may be smaller, valid, in fewer pieces
            self._leave_out(f"{graph.name}: {error}", error)

    def _leave_out(self, why: str, error: LagpuError) -> None:
        self.missing.setdefault(why)
        self.errors.append(error)

    def report(self) -> dict[str, Any]:
        """Return the experiment with its rows, for the report."""
        experiment, source = self._experiment, self._graphs.source
        rows = [row.copy() for row in self.rows]
        _complete(experiment, rows)
        whole = [graph for graph in experiment.graphs if source(graph)]
        waiting = ", ".join(graph.name for graph in self.graphs if graph.name not in self._rows)
        missing = [*self.missing, *([f"not run: {waiting}"] if waiting else [])]
        says = (data.sentence(claim, rows, whole) for claim in experiment.claims)
        return {
            "part": experiment.part, "title": experiment.title,
            "metric": experiment.metric.unit, "definition": experiment.metric.definition,
            "measured_on": experiment.machine, "notes": list(experiment.notes),
            "roots": experiment.roots, "missing": missing,
            "says": [*filter(None, says)], "rows": rows,
        }  # fmt: skip

    def _rows_of(self, graph: PaperGraph) -> Iterator[Row]:
        graphs, request = self._graphs, self._graphs.request
        count = request.roots or (_QUICK_ROOTS if request.quick else self._experiment.roots)
        runners, limit = self._runners(graphs.place_of(graph)), request.memory
        tested = graphs.tested(graph, count)
        tested.on_host, most = limit is not None, len(tested.roots)
        found: dict[Runner, list[Searched]] = {runner: [] for runner in runners}
        for turn, runner in itertools.product(range(_TURNS), runners):
            who = f"{graph.name}, {runner.variant.name}"
            before = found[runner]
            if len(before) < turn or (before and before[0].once):
                continue  # it failed in the turn before, or took too long
            if before and runner.place is not None:
                # all of lagpu's have the same roots
                before[0] = before[0]._replace(samples=before[0].samples[:most])
            graphs.say(f"{who.replace(',', ':')}, turn {turn + 1} of {_TURNS}")
            if runner.place is not None:
                graphs.clear()
            given = (len(before[0].samples), None) if before else (most, request.seconds)
            own = tested.own(*given)
            try:
                with nullcontext() if limit is None else graphs.place.device.limited(limit):
                    one = self._measured(graph, count, own, runner, turn)
            except (errors.OutOfMemory, NotSupported, errors.LimitExceeded) as error:
                self.missing.setdefault(f"{who}: {error}")
            except LagpuError as error:  # the other rows stay
                self.refusals.append(f"{who}: {error}")
            except Exception as error:
                if runner.place is not None:
                    raise
                self.missing.setdefault(f"{who}: {one_line(error)}")  # another library
            else:
                if one.refusal:
                    self.refusals.append(f"{who}: {one.refusal}")
                before.append(one)
                if runner.place is not None and not one.once:
                    most = min(most, len(one.samples))
        for runner, turns in found.items():
            if turns:
                yield self._row(graph, tested, runner, turns)

    def _runners(self, place: Backend) -> list[Runner]:
        runners = []
        for variant in self._experiment.variants:
            try:
                runners.append(runner_of(variant, place))
            except (BackendUnavailable, NotSupported) as error:
                why = str(error).removeprefix("--peers: ")
                self.missing.setdefault(f"{variant.name}: {why}")
        if any(r.runs_as != (r.variant.kernel or r.variant.policy or r.runs_as) for r in runners):
            instead = "its directions replace them, so variants of one direction are the same"
            self.missing.setdefault(f"kernels: the {place.name} backend has none; {instead}")
        return runners

    def _measured(
        self, graph: PaperGraph, count: int, tested: Tested, runner: Runner, turn: int
    ) -> Searched:
        """Measure a variant, unless it was measured in this run beside the same other variants."""
        variant, place, kind = runner.variant, runner.place, self._experiment.kind
        graphs, known = self._graphs, self._graphs.known
        variants = frozenset((v.kernel, v.policy, v.peer) for v in self._experiment.variants)
        of = (kind, *graphs.key(graph), count, variants)
        key = (*of, runner.runs_as, variant.output, variant.fused, turn)
        if key not in known:
            known[key] = WAYS[kind](tested, graphs.matrix(graph), runner, graphs.before)
        found = known[key]
        if self._counter is not None and place is not None and found.joules is None:
            A = placed_on(graphs.matrix(graph), place)
            search = functools.partial(ALGORITHMS[variant.output], A)
            roots = tested.roots[: len(found.samples)]
            with suite.as_mode(found.mode):
                joules = self._counter.joules(lambda: len([search(v) for v in roots]))
            found = known[key] = found._replace(joules=joules)
        return found

    def _row(
        self, graph: PaperGraph, tested: Tested, runner: Runner, turns: Sequence[Searched]
    ) -> Row:
        """Return the row of a variant that was measured in some turns."""
        variant, place = runner.variant, runner.place
        facts, degree = tested.host.facts, tested.host.facts.out_degree
        last, metric = turns[-1], self._experiment.metric
        edges = tuple(tested.edges[root] for root in tested.roots[: len(last.samples)])

        def measured(one: Searched) -> data.Measured:
            ms = (x.device_ms if x.kernel_ms is None else x.kernel_ms for x in one.samples)
            parts = tuple(x.parts.get(variant.part, 0.0) for x in one.samples)
            of_graph = edges, facts.entries, facts.symmetric
            return data.Measured(tuple(ms), *of_graph, one.joules, parts)

        runs = [*map(measured, turns)]
        whole = runs[0]._replace(
            ms=_means([run.ms for run in runs]),
            parts=_means([run.parts for run in runs]),
            joules=None if last.joules is None else fmean(cast(float, x.joules) for x in turns),
        )
        samples = [sample for one in turns for sample in one.samples]
        span = [x.device_ms for x in samples if not math.isnan(x.device_ms)]
        span = span or [x.wall_ms for x in samples]
        why = self._graphs.why(graph)
        mode = _BY_LEVEL if graph.pieces and last.mode == "eager" else last.mode
        return {
            "graph": graph.name, "kind": graph.kind, "made_from": self._graphs.source(graph),
            "stand_in": why, "vertices": facts.vertices, "entries": facts.entries,
            "paper_size": graph.size,
            "degrees": (int(degree.max()), float(degree.mean()), float(degree.std())),
            "variant": variant.name, "of_paper": variant.of_paper, "runs_as": runner.runs_as,
            "note": variant.note, "backend": runner.runs_as if place is None else place.name,
            "own": runner.is_papers and mode != _BY_LEVEL,
            "size_only": self._graphs.request.quick or why.startswith("size only"),
            "mode": mode, "output": last.output, "roots": len(edges),
            "value": metric.of(whole), "runs": [metric.of(run) for run in runs],
            "unit": metric.unit, "more": metric.more, "reported": graph.reported.get(variant.name),
            "median_ms": median(span), "mean_ms": fmean(span),
            "kernel_ms": None if last.samples[0].kernel_ms is None else median(whole.ms),
            "gteps": harness.harmonic_gteps(whole.ms, edges),
            "rates": [harness.harmonic_gteps(run.ms, edges) for run in runs],
            "bytes": last.nbytes, "joules": whole.joules,
            "checked": not any(one.refusal for one in turns),
        }  # fmt: skip


def _means(of_turns: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the mean of the turns, root by root."""
    return tuple(map(fmean, zip(*of_turns, strict=True)))


def _complete(experiment: Experiment, rows: Sequence[Row]) -> None:
    """Put in values relative to the baseline, and the paper's best figure beside our best."""
    for graph in experiment.graphs:
        mine = [row for row in rows if row["graph"] == graph.name]
        if experiment.metric.over:
            base = next((row for row in mine if row["variant"] == experiment.metric.over), None)
            over = [None] if base is None else [base["value"], *base["runs"]]
            for row in mine:
                of = [row["value"], *row["runs"]]
                known = None not in (*over, *of)
                found = [x / by for x, by in zip(of, over, strict=False)] if known else [None]
                row["value"], *row["runs"] = found
        best = data.best_of(mine)
        if best is not None and data.BEST in graph.reported:
            best["reported"] = graph.reported[data.BEST]


def table_of(experiment: Report) -> FittingTable:
    """Return the rows of an experiment of a report as a table."""
    # `degrees` are maximum, mean and standard deviation; a paper without numbers has no column.
    rows = experiment["rows"]
    texts = (
        ("graph", "{graph}"),
        ("made from", lambda row: row["made_from"] + "*" * bool(row["stand_in"])),
        ("variant", "{variant}"),
        ("runs as", "{runs_as}"),
        ("mode", "{mode}"),
    )
    numbers: list[tuple[str, str | Callable[[Row], Any]]] = [
        ("entries", "{entries:,}"),
        ("degrees", lambda row: "/".join(f"{x:.0f}" for x in row["degrees"])),
        (experiment["metric"], lambda row: _digits(row["value"])),
        ("paper", lambda row: _digits(row["reported"])),
        ("spread", lambda row: f"{data.spread_of(row):.2f}x"),
        ("median ms", "{median_ms:,.3f}"),
        ("kernel ms", lambda row: _digits(row.get("kernel_ms"))),
        ("GTEPS", lambda row: _digits(row["gteps"], 3)),
        ("checked", harness.checked),
    ]
    empty = {"paper"} if all(row["reported"] is None for row in rows) else set()
    if not any(len(row.get("runs", ())) > 1 for row in rows):  # a report of one run a row
        empty |= {"spread", "kernel ms"}
    numbers = [(head, of) for head, of in numbers if head not in empty]
    title = f"{experiment['part']}: {experiment['title']}"
    return harness.table(rows, texts, numbers, title=title, spare=_SPARE)


def _digits(x: float | None, digits: int = 4) -> str:
    large = x is not None and abs(x) >= 1000
    return "-" if x is None else f"{x:,.0f}" if large else f"{x:.{digits}g}"


def lines_of(experiment: dict[str, Any]) -> Iterator[str]:
    """Yield the lines below the table of an experiment."""
    graphs = {row["graph"] for row in experiment["rows"]}
    said = f"{experiment['metric']}: {experiment['definition']}"
    if any(row["reported"] is not None for row in experiment["rows"]):
        said += f"; paper: its figure on {experiment['measured_on']}"
    yield f"{said}."
    for why in dict.fromkeys(row["stand_in"] for row in experiment["rows"] if row["stand_in"]):
        of = dict.fromkeys(row["graph"] for row in experiment["rows"] if row["stand_in"] == why)
        some = ", ".join(of) if len(of) < len(graphs) else "all graphs"
        yield f"* {some}: {why}; --graph NAME=FILE reads the paper's graph."
    roots = {row["roots"] for row in experiment["rows"] if row["roots"] < experiment["roots"]}
    if roots:
        n = " or ".join(map(str, sorted(roots)))
        yield f"A quick run: {n} root{'s' * (n != '1')} a graph instead of {experiment['roots']}."
    yield from experiment["notes"]
    yield from experiment["says"]
    yield from (f"missing: {text}" for text in experiment["missing"])
