"""Run the benchmark: every graph on every backend, in every mode, for every output."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lagpu import algorithms, backends, check
from lagpu.backends.override import overridden
from lagpu.backends.protocol import Backend
from lagpu.bench import peers, recorded, report
from lagpu.bench.agreement import Agreement
from lagpu.bench.graphs import SMALL_SUITE, SUITE, HostGraph, require_graph
from lagpu.bench.timing import Clock, Sample, devices_of
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import FileFormatError, InvalidValue, NotSupported, OutOfMemory
from lagpu.generators import path
from lagpu.generators.load import load
from lagpu.loops.loop import eager

__all__ = [
    "ALGORITHMS",
    "Plan",
    "Searched",
    "Tested",
    "placed_on",
    "run",
    "searched",
    "searched_by",
]

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
Tell = Callable[[str], None]
LevelsOf = Callable[[int], Vector]

#: What a search may find, by the name of its result.
ALGORITHMS: dict[str, Callable[[Matrix, int], Vector]] = {
    "levels": algorithms.bfs_levels,
    "parents": algorithms.bfs_parents,
    "paths": algorithms.count_shortest_paths,
}
_CHECKERS: dict[str, Callable[..., check.CheckReport]] = {
    "levels": check.check_levels,
    "parents": check.check_parents,
    "paths": check.check_paths,
}
_ROOTS, _FEW_ROOTS = 32, 8  # few roots for graphs of thousands of levels
_DEEP = ("road", "delaunay")
_ROOT_SEED = 7


@dataclass(frozen=True)
class Plan:
    """The request of a user; see `lagpu bench --help`.

    Attributes
    ----------
    graphs, backends, outputs, peers : sequence of str
        Names; no graphs means the whole suite, the small one if no backend is a GPU. A peer that
        ends in ``.json`` is a file of recorded rows (`lagpu.bench.recorded`).
    roots : int, optional
        Searches per row.
    mode : str, optional
        ``fused``, ``eager`` or ``both``; by default fused on backends that fuse loops.
    kernel : str, optional
        The kernel of every product; loops then run eagerly.
    policies : sequence of str
        Policies to measure one after the other, with arguments as in ``bfs2d:ratio=0.1``; ``all``
        means every policy. One that no fused search follows runs eagerly.
    orientation : str
        ``csc``: directed graphs are kept by columns alone.
    seed : int, optional
        Seed of generated graphs and of the choice of roots.
    renumber : bool
        Whether vertices of the graphs, which are files then, have names, or numbers with gaps.
    """

    graphs: Sequence[str] = ()
    backends: Sequence[str] = ("auto",)
    roots: int | None = None
    mode: str | None = None
    outputs: Sequence[str] = ("levels",)
    kernel: str | None = None
    policies: Sequence[str] = ()
    orientation: str = "auto"
    seed: int | None = None
    peers: Sequence[str] = ()
    renumber: bool = False


@dataclass(eq=False)
class Tested:
    """A graph under test: its columns on the host, the roots, and the results so far.

    Attributes
    ----------
    name : str
        Its name in reports.
    host : HostGraph
        Its columns and facts.
    roots : list of int
        Where searches begin.
    found : Agreement
        The results so far.
    edges : dict
        The edges that the search from a root traverses, each counted once, by the root.
    """

    name: str
    host: HostGraph
    roots: list[int]
    found: Agreement = field(default_factory=Agreement)
    edges: dict[int, int] = field(default_factory=dict)

    def count(self, root: int, reached: Array) -> None:
        """Store the number of edges that a search from a root has traversed."""
        if root not in self.edges:
            self.edges[root] = self.host.edges_from(reached)

    def prove(
        self, output: str, indices: Array, values: Array, levels_of: LevelsOf | None = None
    ) -> str:
        """Return why the result of the last root is not proved, or an empty string.

        ``levels_of(root)`` returns levels, which the proof of path counts proves too; without it
        the checker finds them, which takes much longer on large graphs.
        """
        root, result = self.roots[-1], (indices, values)

        def proof() -> check.CheckReport:
            levels = None
            if output == "paths" and levels_of is not None:
                with contextlib.suppress(OutOfMemory):  # the checker's search takes none there
                    levels = levels_of(root)
                return check.check_paths(self.host.pattern, root, result, levels)
            return _CHECKERS[output](self.host.pattern, root, result)

        return self.found.prove(root, output, result, proof)

    def row(self, who: str, output: str, found: Searched) -> Row:
        """Return a row of the report."""
        facts = self.host.facts
        device_ms, wall_ms = zip(*found.samples, strict=True)
        edges = [self.edges[root] for root in self.roots]
        return {
            "graph": self.name,
            "backend": who,
            "mode": found.mode,
            "kernel": None,
            "policy": None,
            "orientation": "auto",
            "output": output,
            "roots": len(self.roots),
            **report.statistics_of(device_ms, wall_ms, edges),
            "first_ms": found.first_ms,
            "bytes": found.nbytes,
            "checked": not found.refusal,
            "vertices": facts.vertices,
            "edges": facts.edges,
        }


def run(plan: Plan, tell: Tell = lambda _text: None) -> tuple[dict[str, Any], list[str]]:
    """Run all measurements of a plan.

    Parameters
    ----------
    plan : Plan
        The plan, checked as a whole before anything runs.
    tell : callable
        Called with a description of each step, for a progress display.

    Returns
    -------
    report : dict
        ``machine commit date versions rows``, ready for JSON. A row has ``graph backend mode
        kernel policy orientation output roots median_ms max_ms wall_median_ms first_ms q1_ms
        q3_ms gteps bytes checked vertices edges``; in recorded rows of other systems, what nobody
        measured is None.
        Times are measured by `lagpu.bench.timing`, the median of several runs from each root;
        `max_ms` is that of the slowest root, and `first_ms` the wall time of the row's first
        search, which makes what the others find: compiled kernels, and workspaces of the graph;
        `bytes` is the memory of all arrays on the device after a search (graph, workspaces and
        result), None without a device; `checked` is true if the result of the last root is proved
        and the results of all roots equal those of the rows before.
    refusals : list of str
        Why rows are not checked, which libraries failed, and which of several graphs do not fit or
        are not graph files.

    Raises
    ------
    LagpuError
        For wrong input, before anything runs.
    """
    if plan.renumber and not plan.graphs:
        raise InvalidValue("--renumber: the default graphs are made. Name a file, or leave it out.")
    for name in plan.graphs:
        require_graph(name, plan.renumber)
    if plan.roots is not None and plan.roots < 1:
        raise InvalidValue(f"bench: {plan.roots} roots < 1. Give 1 or more.")
    others = peers.chosen([name for name in plan.peers if not recorded.is_file(name)])
    runners = [runner for name in plan.backends for runner in _runners(backends.get(name), plan)]
    if plan.kernel is not None or plan.policies:
        for runner in runners:  # raise for an unknown name before minutes of work
            algorithms.bfs_levels(path(3, backend=runner.place), 0)
    on_gpu = any("gpu" in runner.place.name.split(":") for runner in runners)
    names = plan.graphs or (SUITE if on_gpu else SMALL_SUITE)
    files = filter(recorded.is_file, plan.peers)
    elsewhere = recorded.rows_of(files, names, plan.outputs)
    rows: list[Row] = []
    refusals: list[str] = []
    for name in names:
        try:
            for row, refusal in _graph(name, plan, runners, others, tell):
                rows += [row] if row else []
                refusals += [refusal] if refusal else []
        except (OutOfMemory, FileFormatError) as error:
            if len(names) == 1:
                raise
            refusals.append(f"{name}: {error}")  # other graphs may be smaller, or valid files
        rows += [row for row in elsewhere if row["graph"] == name]
    places = [runner.place for runner in runners]
    return {**report.envelope(places, peers.versions(others)), "rows": rows}, refusals


class _Runner(NamedTuple):
    """A backend, the modes to measure on it, and the kernel or policy of all its products."""

    place: Backend
    modes: tuple[str, ...]
    kernel: str | None = None
    policy: str | None = None

    @property
    def name(self) -> str | None:
        """The kernel or the policy, or None."""
        return self.kernel or self.policy


def _runners(place: Backend, plan: Plan) -> list[_Runner]:
    """Return the runners of a backend: as it is, or one for each kernel or policy."""
    every = place.capabilities.policies or ("all",)
    named = [name for one in plan.policies for name in (every if one == "all" else (one,))]
    overrides: list[tuple[str | None, str | None]]
    overrides = [(plan.kernel, policy) for policy in dict.fromkeys(named)]
    if plan.kernel is not None:
        overrides = overrides or [(plan.kernel, None)]
    if not overrides:
        return [_Runner(place, _modes(place, plan))]
    runners = [_Runner(overridden(place, *override), (), *override) for override in overrides]
    runners = [runner._replace(modes=_modes(runner.place, plan)) for runner in runners]
    if plan.mode == "both":
        runners.insert(0, _Runner(place, ("fused",)))
    return runners


def _modes(place: Backend, plan: Plan) -> tuple[str, ...]:
    """Return the modes to measure on a backend."""
    can_fuse = place.capabilities.records
    if plan.mode == "fused" and not can_fuse:
        why = f"the {place.name} backend fuses no loops"
        if plan.kernel is not None or plan.policies:
            why = "loops with --kernel, or with a policy of their own kernels, are not fused"
        raise NotSupported(f"bench: {why}. Use --mode eager.")
    if plan.mode == "both" and can_fuse:
        return ("fused", "eager")
    return ("fused",) if can_fuse and plan.mode != "eager" else ("eager",)


def placed_on(A: Matrix, place: Backend) -> Matrix:
    """Return a matrix on a backend; an overridden backend shares the data of the original."""
    if place.name == A.backend.name:
        return Matrix._of(A.data, A.dtype, A.shape, place, A.name)
    return A.to(place)


def _graph(
    name: str,
    plan: Plan,
    runners: list[_Runner],
    others: list[str],
    tell: Tell,
) -> Iterator[tuple[Row | None, str]]:
    """Yield (row, why it is not checked, or an empty string) for one graph."""
    tell(f"{name}: loading the graph")
    gc.collect()
    before = _used(runners[0].place)
    first = load(name, runners[0].place, seed=plan.seed, renumber=plan.renumber)
    tell(f"{name}: counting edges and drawing roots")
    host = HostGraph.of(first)
    few = name.startswith(_DEEP)
    count = plan.roots or (_FEW_ROOTS if few else _ROOTS)
    tested = Tested(name, host, host.roots(count, _ROOT_SEED if plan.seed is None else plan.seed))
    for runner in runners:
        place = runner.place
        if place.name != first.backend.name:
            before = _used(place)
        A = placed_on(first, place)
        if plan.orientation != "auto":
            A.orientation = plan.orientation
        for mode in runner.modes:
            for output in plan.outputs:
                tell(f"{name}: {output} on {place.name}, {runner.name or mode}")
                row, refusal = _measured(tested, A, mode, output, before)
                row |= {"kernel": runner.kernel, "policy": runner.policy}
                yield row | {"orientation": plan.orientation}, refusal
    for peer in others:
        if host.facts.entries > peers.PEERS[peer].most:
            tell(f"{name}: too large for {peer}")
            continue
        tell(f"{name}: {peer}")
        try:
            found = _peer(tested, peer)
        except Exception as error:  # any error of another library; the other rows stay
            text = " ".join(str(error).split())
            yield None, f"{name}, {peer}: {type(error).__name__}: {text}"
        else:
            yield found


def _used(place: Backend) -> int:
    return sum(int(device.used_bytes()) for device in devices_of(place))


class Searched(NamedTuple):
    """Searches from every root of a graph.

    Attributes
    ----------
    mode : str
        ``fused`` or ``eager``, as they ran, or ``peer``.
    samples : list of Sample
        The times of each root.
    refusal : str
        Why the results are not proved, or an empty string.
    first_ms : float
        The wall time of the first search.
    nbytes : int or None
        Memory of all arrays on the devices after a search, None without a device.
    """

    mode: str
    samples: list[Sample]
    refusal: str
    first_ms: float
    nbytes: int | None = None


def _measured(tested: Tested, A: Matrix, mode: str, output: str, before: int) -> tuple[Row, str]:
    """Search from every root, and return a row and why it is not checked."""
    place = A.backend
    found = searched(tested, A, mode, output, before)
    row = tested.row(place.name, output, found)
    who = f"{tested.name}, {place.name} ({mode}), {output}"
    return row, f"{who}: {found.refusal}" if found.refusal else ""


def searched(tested: Tested, A: Matrix, mode: str, output: str, before: int = 0) -> Searched:
    """Search from every root, compare with the searches before, and prove the last result.

    Parameters
    ----------
    tested : Tested
        The graph; it takes the results and the edges.
    A : Matrix, (n, n)
        The graph on the backend that is measured.
    mode : str
        ``fused`` or ``eager``.
    output : str
        ``levels``, ``parents`` or ``paths``.
    before : int
        Bytes that the device had in use before the graph was loaded.
    """
    place, algorithm = A.backend, ALGORITHMS[output]
    who = f"{place.name} ({mode})"
    samples: list[Sample] = []
    refusal = ""
    used = before
    with eager() if mode == "eager" else nullcontext():
        clock = Clock(place)
        first_ms, _ = clock.wall(functools.partial(algorithm, A, tested.roots[0]))
        algorithm(A, tested.roots[-1])  # compiles kernels too
        if mode == "fused" and place.last_loop.startswith(("eager", "no ")):
            mode = "eager"  # the actual mode
        for root in tested.roots:
            sample, result = clock.measure(functools.partial(algorithm, A, root))
            used = _used(place)
            samples.append(sample)
            indices, values = result.to_coo()
            tested.count(root, indices)
            refusal = refusal or tested.found.compare(root, output, who, indices, values)
    levels_of = functools.partial(algorithms.bfs_levels, A)
    refusal = tested.prove(output, indices, values, levels_of) or refusal
    nbytes = used - before if devices_of(place) else None
    return Searched(mode, samples, refusal, first_ms, nbytes)


def _peer(tested: Tested, name: str) -> tuple[Row, str]:
    """Search from every root with another library; return a row and why it is not checked."""
    found = searched_by(tested, name)
    row = tested.row(name, peers.PEERS[name].output, found)
    return row, f"{tested.name}, {name}: {found.refusal}" if found.refusal else ""


def searched_by(tested: Tested, name: str) -> Searched:
    """Search from every root with another library, compare, and prove the last result."""
    peer = peers.PEERS[name]
    assert peer.prepare is not None  # as `peers.chosen` takes no others
    search = peer.prepare(tested.host)
    clock = Clock()
    first_ms, _ = clock.wall(functools.partial(search.run, tested.roots[0]))
    samples: list[Sample] = []
    refusal = ""
    for root in tested.roots:
        sample, raw = clock.measure(functools.partial(search.run, root))
        samples.append(sample)
        found = search.levels(root, raw)
        tested.count(root, found[0])
        refusal = refusal or tested.found.compare(root, "levels", name, *found)
    refusal = tested.prove("levels", *found) or refusal
    return Searched("peer", samples, refusal, first_ms)
