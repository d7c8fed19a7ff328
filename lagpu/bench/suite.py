"""A run of the benchmark: every graph on every backend, in every mode, for every output."""

from __future__ import annotations

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
from lagpu.bench import peers, report
from lagpu.bench.agreement import Agreement
from lagpu.bench.graphs import SUITE, HostGraph, load, spec_of
from lagpu.bench.timing import Clock, Sample
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import CheckFailed, FileFormatError, InvalidValue, NotSupported, OutOfMemory
from lagpu.generators import path
from lagpu.loops.loop import eager

__all__ = ["Plan", "run"]

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
Tell = Callable[[str], None]

_ALGORITHMS: dict[str, Callable[[Matrix, int], Vector]] = {
    "levels": algorithms.bfs_levels,
    "parents": algorithms.bfs_parents,
    "paths": algorithms.count_shortest_paths,
}
_CHECKERS: dict[str, Callable[..., check.CheckReport]] = {
    "levels": check.check_levels,
    "parents": check.check_parents,
    "paths": check.check_paths,
}
_ROOTS, _FEW_ROOTS = 32, 8  # few for graphs of thousands of levels
_DEEP = ("road", "delaunay")
_ROOT_SEED = 7


@dataclass(frozen=True)
class Plan:
    """What a user asks for; see `lagpu bench --help`.

    Attributes
    ----------
    graphs, backends, outputs, peers : sequence of str
        None of the graphs means the whole suite.
    roots : int, optional
        Searches a row.
    mode : str, optional
        ``fused``, ``eager`` or ``both``; by default fused where the backend runs loops as a whole.
    kernel : str, optional
        Of every product; the loops then run eagerly.
    policies : sequence of str
        One after the other, eagerly; ``all`` means all there are.
    seed : int, optional
        Of generated graphs and of the choice of roots.
    """

    graphs: Sequence[str] = ()
    backends: Sequence[str] = ("auto",)
    roots: int | None = None
    mode: str | None = None
    outputs: Sequence[str] = ("levels",)
    kernel: str | None = None
    policies: Sequence[str] = ()
    seed: int | None = None
    peers: Sequence[str] = ()


@dataclass(eq=False)
class _Bed:
    """One graph under test: where it is proved, from where it is searched, and what was found."""

    name: str
    host: HostGraph
    roots: list[int]
    found: Agreement = field(default_factory=Agreement)
    edges: dict[int, int] = field(default_factory=dict)

    def count(self, root: int, reached: Array) -> None:
        """Remember the edges of what a search has reached."""
        if root not in self.edges:
            self.edges[root] = self.host.edges_from(reached)

    def row(self, who: str, mode: str, output: str, samples: list[Sample]) -> Row:
        """Return a row of the report, but for `bytes` and `checked`."""
        facts = self.host.facts
        device_ms, wall_ms = zip(*samples, strict=True)
        edges = [self.edges[root] for root in self.roots]
        return {
            "graph": self.name,
            "backend": who,
            "mode": mode,
            "kernel": None,
            "policy": None,
            "output": output,
            "roots": len(self.roots),
            **report.statistics_of(device_ms, wall_ms, edges),
            "bytes": None,
            "checked": False,
            "vertices": facts.vertices,
            "edges": facts.edges,
        }


def run(plan: Plan, tell: Tell = lambda _text: None) -> tuple[dict[str, Any], list[str]]:
    """Measure everything that a plan asks for.

    Parameters
    ----------
    plan : Plan
        Checked as a whole before anything runs.
    tell : callable
        Is told what goes on.

    Returns
    -------
    report : dict
        ``machine commit date versions rows``, ready for JSON. A row has ``graph backend mode
        kernel policy output roots median_ms max_ms wall_median_ms q1_ms q3_ms gteps bytes checked
        vertices edges``.
        Times are those of `lagpu.bench.timing`, the median of several runs from each root; `bytes`
        is what arrays on the device hold when a search has ended, graph, workspace and result, and
        None off a device; `checked` is true if the last root's result has been proved and all
        roots' results equal those of the rows before.
    refusals : list of str
        Why rows are not checked, which libraries failed, and which of several graphs do not fit or
        are no graph files.

    Raises
    ------
    LagpuError
        For wrong input, before anything runs.
    """
    names = list(plan.graphs) or list(SUITE)
    for name in names:
        spec_of(name)
    if plan.roots is not None and plan.roots < 1:
        raise InvalidValue(f"bench: {plan.roots} roots < 1. Give 1 or more.")
    others = peers.chosen(plan.peers)
    runners = [runner for name in plan.backends for runner in _runners(backends.get(name), plan)]
    if plan.kernel is not None or plan.policies:
        for runner in runners:  # an unknown name is told before minutes of work
            algorithms.bfs_levels(path(3, backend=runner.place), 0)
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
            refusals.append(f"{name}: {error}")  # the other graphs may be smaller, or right
    places = [runner.place for runner in runners]
    return {**report.envelope(places, peers.versions(others)), "rows": rows}, refusals


class _Runner(NamedTuple):
    """A backend, the modes to measure on it, and what it was told."""

    place: Backend
    modes: tuple[str, ...]
    kernel: str | None = None
    policy: str | None = None

    @property
    def name(self) -> str | None:
        """What it was told."""
        return self.kernel or self.policy


def _runners(place: Backend, plan: Plan) -> list[_Runner]:
    """Return what is to be measured on a backend: as it is, or as it is told to work."""
    every = place.capabilities.policies or ("all",)
    named = [name for one in plan.policies for name in (every if one == "all" else (one,))]
    told: list[tuple[str | None, str | None]]
    told = [(plan.kernel, policy) for policy in dict.fromkeys(named)]
    if plan.kernel is not None:
        told = told or [(plan.kernel, None)]
    if not told:
        return [_Runner(place, _modes(place, plan))]
    runners = [_Runner(overridden(place, *how), (), *how) for how in told]
    runners = [runner._replace(modes=_modes(runner.place, plan)) for runner in runners]
    if plan.mode == "both":
        runners.insert(0, _Runner(place, ("fused",)))
    return runners


def _modes(place: Backend, plan: Plan) -> tuple[str, ...]:
    """Return the modes to measure on a backend."""
    can_fuse = place.capabilities.fuses
    if plan.mode == "fused" and not can_fuse:
        told = plan.kernel is not None or plan.policies
        why = "was told how" if told else "runs no loop as a whole"
        raise NotSupported(f"bench: the {place.name} backend {why}. Use --mode eager.")
    if plan.mode == "both" and can_fuse:
        return ("fused", "eager")
    return ("fused",) if can_fuse and plan.mode != "eager" else ("eager",)


def _on(A: Matrix, place: Backend) -> Matrix:
    """Return a matrix on a backend; one that was only told how to work shares its data."""
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
    """Yield the rows of one graph, each with what refuses it or an empty text."""
    tell(f"{name}: making or reading it")
    gc.collect()
    before = _used(runners[0].place)
    first = load(name, runners[0].place, plan.seed)
    tell(f"{name}: looking at it")
    host = HostGraph.of(first)
    few = name.startswith(_DEEP)
    count = plan.roots or (_FEW_ROOTS if few else _ROOTS)
    bed = _Bed(name, host, host.roots(count, _ROOT_SEED if plan.seed is None else plan.seed))
    for runner in runners:
        place = runner.place
        if place.name != first.backend.name:
            before = _used(place)
        A = _on(first, place)
        for mode in runner.modes:
            for output in plan.outputs:
                tell(f"{name}: {output} on {place.name}, {runner.name or mode}")
                row, refusal = _measured(bed, A, mode, output, before)
                yield row | {"kernel": runner.kernel, "policy": runner.policy}, refusal
    for peer in others:
        if host.facts.entries > peers.PEERS[peer].most:
            tell(f"{name}: too large for {peer}")
            continue
        tell(f"{name}: {peer}")
        try:
            found = _peer(bed, peer)
        except Exception as error:  # another library's, whatever it is: the other rows stay
            told = " ".join(str(error).split())
            yield None, f"{name}, {peer}: {type(error).__name__}: {told}"
        else:
            yield found


def _used(place: Backend) -> int:
    device = place.device
    return 0 if device is None else int(device.used_bytes())


def _measured(bed: _Bed, A: Matrix, mode: str, output: str, before: int) -> tuple[Row, str]:
    """Search from every root, and prove what the last one gives."""
    place, algorithm = A.backend, _ALGORITHMS[output]
    who = f"{place.name} ({mode})"
    samples: list[Sample] = []
    refusal = ""
    used = before
    with eager() if mode == "eager" else nullcontext():
        for root in (bed.roots[0], bed.roots[-1]):  # kernels compile
            algorithm(A, root)
        if mode == "fused" and place.last_loop.startswith(("eager", "no ")):
            mode = "eager"  # what it was, whatever was asked for
        clock = Clock(place)
        for root in bed.roots:
            sample, result = clock.measure(functools.partial(algorithm, A, root))
            used = _used(place)
            samples.append(sample)
            indices, values = result.to_coo()
            bed.count(root, indices)
            refusal = refusal or bed.found.compare(root, output, who, indices, values)
    try:
        _CHECKERS[output](bed.host.columns, bed.roots[-1], (indices, values))
    except CheckFailed as error:
        refusal = str(error)
    row = bed.row(place.name, mode, output, samples)
    row |= {"bytes": None if place.device is None else used - before, "checked": not refusal}
    return row, f"{bed.name}, {who}, {output}: {refusal}" if refusal else ""


def _peer(bed: _Bed, name: str) -> tuple[Row, str]:
    """Search from every root with another library, and prove what the last one gives."""
    peer = peers.PEERS[name]
    search = peer.prepare(bed.host)
    clock = Clock()
    search.run(bed.roots[0])
    samples: list[Sample] = []
    refusal = ""
    for root in bed.roots:
        sample, raw = clock.measure(functools.partial(search.run, root))
        samples.append(sample)
        found = search.levels(root, raw)
        bed.count(root, found[0])
        refusal = refusal or bed.found.compare(root, "levels", name, *found)
    try:
        check.check_levels(bed.host.columns, bed.roots[-1], found)
    except CheckFailed as error:
        refusal = str(error)
    row = bed.row(name, "peer", peer.output, samples) | {"checked": not refusal}
    return row, f"{bed.name}, {name}: {refusal}" if refusal else ""
