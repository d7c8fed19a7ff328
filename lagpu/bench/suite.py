"""Run the benchmark: every graph on every backend, in every mode, for every output."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lagpu import algorithms, backends
from lagpu.algebra.tables import binary, monoid
from lagpu.backends.guard import overridden
from lagpu.backends.protocol import Backend
from lagpu.bench import harness, peers
from lagpu.bench.graphs import SMALL_SUITE, SUITE, HostGraph, drawn, require_graph
from lagpu.bench.harness import Array, Clock, Report, Row, Sample, Say, used_bytes
from lagpu.catalog import FINDS, PROOFS
from lagpu.core import Matrix, Vector
from lagpu.dtypes import INT64
from lagpu.errors import CheckFailed, FileFormatError, InvalidValue, NotSupported, OutOfMemory
from lagpu.generators import path
from lagpu.generators.load import load
from lagpu.host import progress
from lagpu.host.display import one_line
from lagpu.host.fitting import FittingTable
from lagpu.loops.loop import eager

Run = Callable[[int], Any]
Found = tuple[Array, Array]  # vertices and values

#: What a search may find, by the name of its result.
ALGORITHMS: dict[str, Callable[[Matrix, int], Vector]] = {
    output: getattr(algorithms, name) for output, name in FINDS.items()
}
_ROOTS, _FEW_ROOTS = 32, 8  # few roots for graphs of thousands of levels
_DEEP = ("road", "delaunay")


@dataclass(frozen=True)
class Plan:
    """The request of a user; see `lagpu bench --help`.

    No graphs means the whole suite, the small one if no backend is a GPU; peers are libraries, and
    files of recorded rows, which end in ``.json``.
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


class Tested:
    """A graph under test: its columns on the host, the roots, and the results so far.

    Each search from a root is compared with the first one, and results are proved, each once. A
    vertex has a random number, and the sums of two results are equal if these are, but for a
    chance of about 2**-60. They are added up where a result is, so that it is not copied to the
    host, unless `on_host`. Levels must be equal; of parents and path counts, which may differ or be
    rounded, the reached vertices are compared.

    `edges` are those that the search from a root traverses, each counted once, by the root; `used`
    are the bytes on the devices after a search. Roots are fewer where `seconds` do not suffice for
    the runs of a search; None means as many as there are.
    """

    seconds: float | None = np.inf
    on_host = False  # where what compares results must not take memory of the device

    def __init__(self, name: str, host: HostGraph, roots: list[int]) -> None:
        self.name, self.host, self.roots, self.used = name, host, roots, 0
        self.libraries: dict[str, Any] = {}
        self.edges: dict[int, int] = {}
        self._edges_of: dict[int, int] = {}  # by what is reached
        self._proved: set[tuple[int, str, int, int]] = set()
        self._known: dict[tuple[int, str], tuple[int, str]] = {}
        n = host.facts.vertices
        self._numbers = np.random.default_rng(harness.SEED).integers(-(2**63), 2**63 - 1, n)
        self._placed: dict[str, Vector] = {}

    @classmethod
    def of(cls, name: str, A: Matrix, roots: int, seed: int | None) -> Tested:
        host = HostGraph.of(A)
        bare = placed_on(A, backends.get(A.backend.name))  # a policy may be for searches alone
        return cls(name, host, drawn(host.candidates(bare), roots, seed))

    def own(self, count: int, seconds: float | None) -> Tested:
        """Return the graph with some roots alone; results are common."""
        found = copy.copy(self)
        found.roots, found.seconds = self.roots[:count], seconds
        return found

    def search(
        self, clock: Clock, run: Run, output: str, who: str, read: Callable[[int, Any], Any]
    ) -> tuple[list[Sample], str, Any]:
        """Search from every root; return the times, how a result differs, and the last result."""
        samples, refusal = [], ""
        for root in self.paced(clock):
            sample, result = clock.measure(functools.partial(run, root))
            self.used = used_bytes(clock.backend) if clock.backend else 0
            samples.append(sample)
            refusal = self.compare(root, output, who, read(root, result)) or refusal
        return samples, refusal, result

    def paced(self, clock: Clock) -> Iterator[int]:
        """Yield the roots; after the first one leave out those that there is no time for."""
        # A quarter of them, and again a quarter: two days seldom differ in the number.
        for k, root in enumerate(progress.over([*self.roots], "roots")):
            begin = time.perf_counter()
            yield root
            if not k and self.seconds is not None:
                seconds = clock.slowest(time.perf_counter() - begin)
                while len(self.roots) > 1 and len(self.roots) * seconds > self.seconds:
                    del self.roots[max(len(self.roots) // 4, 1) :]
            if k + 1 == len(self.roots):
                return

    def sums(self, output: str, found: Vector | Found) -> dict[str, int]:
        """Return the sums of the numbers of the reached vertices, and of their levels."""
        if isinstance(found, tuple):
            found = Vector.from_coo(*found, size=len(self._numbers), backend="cpu")
        place = found.backend
        if place.name not in self._placed:
            self._placed[place.name] = Vector.from_dense(self._numbers, backend=place)
        kept = Vector(INT64, found.size, like=found)
        kept(found.S) << Vector._of(self._placed[place.name].data, INT64, found.shape, place, None)
        terms = {"vertices reached": kept}
        if output == "levels":
            terms["levels"] = kept.ewise_mult(found, binary.times).new()
        return {what: int(x.reduce(monoid.plus).new().get(0)) for what, x in terms.items()}

    def compare(self, root: int, output: str, who: str, found: Vector | Found) -> str:
        """Return how a result differs from the first of its root, or ""; note the root's edges."""
        if self.on_host and not isinstance(found, tuple):
            found = found.to_coo()
        sums = self.sums(output, found)
        if root not in self.edges:
            reached = sums["vertices reached"]
            if reached not in self._edges_of:
                vertices, _ = found if isinstance(found, tuple) else found.to_coo()
                self._edges_of[reached] = self.host.facts.edges_from(vertices)
            self.edges[root] = self._edges_of[reached]
        for what, number in sums.items():
            known, other = self._known.setdefault((root, what), (number, who))
            if known != number:
                return f"{what} from vertex {root} differ between {other} and {who}"
        return ""

    def prove(
        self, output: str, indices: Array, values: Array, levels_of: Run | None = None
    ) -> str:
        """Return why the result of the last root is not proved, or an empty string.

        The proof of path counts and parents proves what ``levels_of(root)`` returns too; without it
        the checker searches, which takes much longer on large graphs.
        """
        root, numbers = self.roots[-1], self._numbers[indices]
        bits = values.astype(np.float64).view(np.int64) if values.dtype.kind == "f" else values
        kind = f"{output} {values.dtype}"
        key = (root, kind, int(numbers.sum()), int((numbers * bits.astype(np.int64)).sum()))
        if key in self._proved:
            return ""
        levels = []
        if output != "levels" and levels_of is not None:
            with contextlib.suppress(OutOfMemory):  # the checker's search takes none there
                levels = [levels_of(root)]
        try:
            PROOFS[FINDS[output]](self.host.pattern, root, (indices, values), *levels)
        except CheckFailed as error:
            return str(error)
        self._proved.add(key)
        return ""

    def row(self, who: str, found: Searched, **how: Any) -> Row:
        """Return a row of the report; `how` has the kernel, the policy and the orientation."""
        facts = self.host.facts
        device_ms, wall_ms, *_ = zip(*found.samples, strict=True)
        q1, median, q3 = np.percentile(device_ms, (25, 50, 75)).tolist()
        return {
            "graph": self.name, "backend": who, "mode": found.mode, "kernel": None,
            "policy": None, "orientation": "auto", "output": found.output,
            "roots": len(self.roots), "median_ms": median, "max_ms": max(device_ms),
            "wall_median_ms": float(np.median(wall_ms)), "q1_ms": q1, "q3_ms": q3,
            "gteps": harness.harmonic_gteps(device_ms, [self.edges[root] for root in self.roots]),
            "first_ms": found.first_ms, "bytes": found.nbytes, "checked": not found.refusal,
            "vertices": facts.vertices, "edges": facts.edges, **how,
        }  # fmt: skip


def run(plan: Plan, say: Say = harness.silent) -> tuple[Report, list[str]]:
    """Run all measurements of a plan, which is checked as a whole before anything runs.

    Returns the report, and why rows are not checked, which libraries failed, and which of several
    graphs do not fit or are not graph files.

    Times in a row are the median of several runs from each root; `max_ms` is that of the slowest
    root, and `first_ms` the wall time of the row's first search, which compiles kernels and makes
    workspaces of the graph; `bytes` is the memory of all arrays on the device after a search, None
    without a device; `checked` is true if the result of the last root is proved and the results of
    all roots equal those of the rows before. In recorded rows of other systems, what was not
    measured is None.
    """
    if plan.renumber and not plan.graphs:
        raise InvalidValue("--renumber: the default graphs are made. Name a file, or leave it out.")
    for name in plan.graphs:
        require_graph(name, plan.renumber)
    if plan.roots is not None and plan.roots < 1:
        raise InvalidValue(f"bench: {plan.roots} roots < 1. Give 1 or more.")
    others = peers.chosen([name for name in plan.peers if not peers.is_file(name)])
    runners = [runner for name in plan.backends for runner in _runners(backends.get(name), plan)]
    if plan.kernel is not None or plan.policies:
        for runner in runners:  # raise for an unknown name before minutes of work
            algorithms.bfs_levels(path(3, backend=runner.place), 0)
    on_gpu = any("gpu" in runner.place.name.split(":") for runner in runners)
    names = plan.graphs or (SUITE if on_gpu else SMALL_SUITE)
    elsewhere = peers.recorded_for(filter(peers.is_file, plan.peers), names, plan.outputs)
    rows: list[Row] = []
    refusals: list[str] = []
    for name in progress.over(names, "bench"):
        try:
            rows.extend(_graph(name, plan, runners, others, refusals, say))
        except (OutOfMemory, FileFormatError) as error:
            if len(names) == 1:
                raise
            refusals.append(f"{name}: {error}")  # other graphs may be smaller, or valid files
        rows += [row for row in elsewhere if row["graph"] == name]
    places = [runner.place for runner in runners]
    return {**harness.envelope(places, peers.versions(others)), "rows": rows}, refusals


class _Runner(NamedTuple):
    """A backend, the modes to measure on it, and the kernel or policy of all its products."""

    place: Backend
    modes: tuple[str, ...]
    kernel: str | None = None
    policy: str | None = None


def _runners(place: Backend, plan: Plan) -> list[_Runner]:
    every = place.capabilities.policies or ("all",)
    named = [name for one in plan.policies for name in (every if one == "all" else (one,))]
    if not named and plan.kernel is None:
        return [_Runner(place, _modes(place, plan))]
    runners = [_Runner(place, ("fused",))] if plan.mode == "both" else []
    for policy in dict.fromkeys(named) or (None,):
        chosen = overridden(place, plan.kernel, policy)
        runners.append(_Runner(chosen, _modes(chosen, plan), plan.kernel, policy))
    return runners


def _modes(place: Backend, plan: Plan) -> tuple[str, ...]:
    if plan.mode == "fused" and not place.capabilities.records:
        why = f"the {place.name} backend fuses no loops"
        if plan.kernel is not None or plan.policies:
            why = "loops with --kernel, or with a policy of their own kernels, are not fused"
        raise NotSupported(f"bench: {why}. Use --mode eager.")
    if plan.mode == "both" and place.capabilities.records:
        return ("fused", "eager")
    # What the user gets: `searched` names the actual mode, as cpu runs some loops as one call.
    return ("eager",) if plan.mode == "eager" else ("fused",)


def as_mode(mode: str) -> AbstractContextManager[None]:
    return eager() if mode == "eager" else nullcontext()


def placed_on(A: Matrix, place: Backend) -> Matrix:
    """Return a matrix on a backend; an overridden backend shares the data of the original."""
    if place.name == A.backend.name:
        return Matrix._of(A.data, A.dtype, A.shape, place, A.name)
    return A.to(place)


def _graph(
    name: str, plan: Plan, runners: list[_Runner], others: list[str], refusals: list[str], say: Say
) -> Iterator[Row]:
    """Yield the rows of a graph; say in `refusals` why one is missing or not checked."""
    say(f"{name}: loading the graph")
    gc.collect()
    before = used_bytes(runners[0].place)
    first = load(name, runners[0].place, seed=plan.seed, renumber=plan.renumber)
    say(f"{name}: counting edges and drawing roots")
    count = plan.roots or (_FEW_ROOTS if name.startswith(_DEEP) else _ROOTS)
    tested = Tested.of(name, first, count, plan.seed)
    for runner in progress.over(runners, name):
        place = runner.place
        if place.name != first.backend.name:
            before = used_bytes(place)
        A = placed_on(first, place)
        if plan.orientation != "auto":
            A.orientation = plan.orientation
        for mode in runner.modes:
            for output in plan.outputs:
                say(f"{name}: {output} on {place.name}, {runner.kernel or runner.policy or mode}")
                found = searched(tested, A, mode, output, before)
                if found.refusal:
                    who = f"{name}, {place.name} ({found.mode})"
                    refusals.append(f"{who}, {output}: {found.refusal}")
                how = {"kernel": runner.kernel, "policy": runner.policy}
                yield tested.row(place.name, found, **how, orientation=plan.orientation)
    for peer in others:
        if tested.host.facts.entries > peers.PEERS[peer].most_searched:
            say(f"{name}: too large for {peer}")
            continue
        say(f"{name}: {peer}")
        try:
            found = searched_by(tested, peer)
        except Exception as error:  # any error of another library; the other rows stay
            refusals.append(f"{name}, {peer}: {type(error).__name__}: {one_line(error)}")
        else:
            refusals += [f"{name}, {peer}: {found.refusal}"] if found.refusal else []
            yield tested.row(peer, found)


class Searched(NamedTuple):
    """Searches from every root of a graph.

    `mode` is how they ran, ``peer`` for a library; `refusal` says why results are not proved;
    `joules` is the energy of a search, where it is known; `once` says that one search took too long
    for more.
    """

    mode: str
    output: str
    samples: list[Sample]
    refusal: str
    first_ms: float = 0.0
    nbytes: int | None = None
    joules: float | None = None
    once: bool = False


def searched(tested: Tested, A: Matrix, mode: str, output: str, before: int = 0) -> Searched:
    """Search from every root, compare and prove; `before` are bytes in use without the graph."""
    place, run = A.backend, functools.partial(ALGORITHMS[output], A)
    with as_mode(mode):
        clock = Clock(place)
        first_ms, _ = clock.wall(functools.partial(run, tested.roots[0]))
        run(tested.roots[-1])  # compiles kernels too
        if mode == "fused" and place.last_loop.startswith(("eager", "no ")):
            mode = "eager"  # the actual mode
        who = f"{place.name} ({mode})"
        samples, refusal, last = tested.search(clock, run, output, who, lambda _, x: x)
    levels_of = functools.partial(algorithms.bfs_levels, A)
    indices, values = last.to_coo()
    refusal = tested.prove(output, indices, values, levels_of) or refusal
    nbytes = tested.used - before if harness.devices_of(place) else None
    return Searched(mode, output, samples, refusal, first_ms, nbytes)


def searched_by(tested: Tested, name: str) -> Searched:
    """Search from every root with another library, compare, and prove the last result."""
    library, clock = peers.PEERS[name].open(tested.host), Clock()
    first_ms, _ = clock.wall(functools.partial(library.search, tested.roots[0]))
    samples, refusal, last = tested.search(clock, library.search, "levels", name, library.levels)
    refusal = tested.prove("levels", *library.levels(tested.roots[-1], last)) or refusal
    return Searched("peer", peers.PEERS[name].output, samples, refusal, first_ms)


def table(rows: Sequence[Row]) -> FittingTable:
    """Return the rows as a table; what they have in common of `_TEXTS` is above it."""
    return harness.table(rows, _TEXTS, _NUMBERS, spare=_SPARE)


def _how(row: Row) -> str:
    """Return the kernel, or the policy and whether its loops were fused, or the mode alone."""
    chosen = row["kernel"] or row["policy"]
    fused = ", fused" if row["mode"] == "fused" else ""
    return str(row["mode"]) if chosen is None else f"{chosen}{fused}"


_TEXTS = (("graph", "{graph}"), ("backend", "{backend}"), ("mode", _how), ("output", "{output}"))
_NUMBERS = (
    ("roots", "{roots:.12g}"), ("median ms", "{median_ms:,.3f}"), ("q1", "{q1_ms:,.3f}"),
    ("q3", "{q3_ms:,.3f}"), ("max", "{max_ms:,.3f}"), ("wall ms", "{wall_median_ms:,.3f}"),
    ("first ms", "{first_ms:,.3f}"), ("GTEPS", "{gteps:.3g}"),
    ("MB", lambda row: "-" if row["bytes"] is None else f"{row['bytes'] / 1e6:,.1f}"),
    ("checked", harness.checked),
)  # fmt: skip
# A narrow terminal leaves them out; a report has all.
_SPARE = ("roots", "q1", "q3", "max", "first ms", "MB")
