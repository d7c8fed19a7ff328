"""The ways to measure one variant on one graph, each result proved."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from lagpu import check
from lagpu.algorithms.brandes import count_paths, dependencies
from lagpu.backends.protocol import Backend
from lagpu.bench import peers
from lagpu.bench.suite import ALGORITHMS, Tested, placed_on, searched, searched_by
from lagpu.bench.timing import Clock, Sample
from lagpu.core.matrix import Matrix
from lagpu.errors import CheckFailed, LimitExceeded
from lagpu.io.csc import column_blocks
from lagpu.loops.loop import eager
from lagpu.observe.trace import trace
from lagpu.papers.experiment import Variant
from lagpu.papers.places import Runner

__all__ = ["WAYS", "Found", "search_all"]

Array = np.ndarray[Any, Any]

_LAGPU = Variant("lagpu", ours=True)
_BLOCK = 1 << 26  # entries looked at together


class Found(NamedTuple):
    """A variant measured on a graph.

    Attributes
    ----------
    mode, output : str
        As in the rows of `lagpu bench`.
    samples : list of Sample
        The times of each search.
    refusal : str
        Why the results are not proved, or an empty string.
    nbytes : int or None
        Memory on the device after a search.
    parts : mapping of str to list of float
        The milliseconds of each search by part of the time, where a trace tells them.
    """

    mode: str
    output: str
    samples: list[Sample]
    refusal: str
    nbytes: int | None = None
    parts: Mapping[str, list[float]] = MappingProxyType({})


def _mode(variant: Variant, place: Backend) -> str:
    """Return the mode of a variant: what the paper compares runs in one, by its own kernels."""
    by_itself = variant.kernel is None and variant.policy is None
    may = by_itself or variant.fused or place.capabilities.searches
    return "fused" if may and place.capabilities.records else "eager"


def _as(mode: str) -> AbstractContextManager[None]:
    return eager() if mode == "eager" else nullcontext()


def searches(tested: Tested, A: Matrix, runner: Runner, before: int) -> Found:
    """Search from every root, as `lagpu bench` does."""
    variant, place = runner.variant, runner.place
    if place is not None:
        found = searched(tested, placed_on(A, place), _mode(variant, place), variant.output, before)
        return Found(found.mode, variant.output, found.samples, found.refusal, found.nbytes)
    name = str(variant.peer)
    if tested.host.facts.entries > peers.PEERS[name].most:
        raise LimitExceeded(f"{name}: takes at most {peers.PEERS[name].most:g} entries")
    found = searched_by(tested, name)
    return Found(found.mode, peers.PEERS[name].output, found.samples, found.refusal)


def search_all(variant: Variant, A: Matrix, roots: list[int], mode: str) -> int:
    """Search once from each root in a mode; return how often that was."""
    with _as(mode):
        for root in roots:
            ALGORITHMS[variant.output](A, root)
    return len(roots)


def by_part(tested: Tested, A: Matrix, runner: Runner, before: int) -> Found:
    """Search under a trace, which tells the parts of the time: directions, or phases."""
    place, variant = runner.place, runner.variant
    assert place is not None
    A = placed_on(A, place)
    fuse = place.capabilities.searches  # by a grid's policy, which tells its phases
    mode = "fused" if fuse else "eager"
    proved = searched(tested, A, mode, variant.output, before)
    samples: list[Sample] = []
    parts: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(tested.roots))
    for k, root in enumerate(tested.roots):
        with trace(fuse=fuse) as traced:
            ALGORITHMS[variant.output](A, root)
        for row in traced.rows:
            for phase in row.phases:
                parts[phase.name][k] += phase.ms
            if not row.phases and row.direction:
                parts[row.direction][k] += row.kernel_ms
        whole = sum(part[k] for part in parts.values())
        samples.append(Sample(whole, whole))
    return Found(proved.mode, variant.output, samples, proved.refusal, proved.nbytes, parts)


def accumulations(tested: Tested, A: Matrix, runner: Runner, before: int) -> Found:
    """Compute the dependencies of each root alone: a round of betweenness centrality."""
    place = runner.place
    assert place is not None
    if not tested.edges:
        searched(tested, A, _mode(_LAGPU, A.backend), "levels", before)  # counts them
    A = placed_on(A, place)
    mode = _mode(runner.variant, place)

    def round_of(root: int) -> tuple[Any, Any, Any]:
        levels, paths = count_paths(A, [root])
        return levels, paths, dependencies(A, levels, paths)

    samples: list[Sample] = []
    with _as(mode):
        round_of(tested.roots[0])  # compiles kernels
        clock = Clock(place)
        once = clock.queued if clock.has_device else clock.wall
        for root in tested.roots:  # once each: they are a thousand
            ms, found = once(functools.partial(round_of, root))
            samples.append(Sample(ms, ms))
    levels, paths, delta = (x.to_coo() for x in found)
    refusal = ""
    try:
        check.check_levels(tested.host.pattern, tested.roots[-1], levels)
        check.check_paths(tested.host.pattern, tested.roots[-1], paths)
    except CheckFailed as error:
        refusal = str(error)
    refusal = refusal or _wrong_dependencies(tested, levels, paths, delta)
    device = place.device
    nbytes = None if device is None else int(device.used_bytes()) - before
    return Found(mode, "dependencies", samples, refusal, nbytes)


def _wrong_dependencies(tested: Tested, *found: tuple[Array, Array]) -> str:
    """Return why dependencies do not obey their recurrence, or an empty string.

    With proved levels d and numbers of paths p it has one solution: the dependency on u is the sum
    of p[u] / p[v] (1 + dependency on v) over the edges u -> v to the next level.
    """
    n = tested.host.facts.vertices
    level, path, delta = (np.full(n, fill) for fill in (-1.0, 1.0, 0.0))
    for dense, (indices, values) in zip((level, path, delta), found, strict=True):
        dense[indices] = values
    col_ptr, row_idx = tested.host.columns
    right = np.zeros(n)
    for first, last in column_blocks(col_ptr, _BLOCK):
        v = np.repeat(np.arange(first, last), np.diff(col_ptr[first : last + 1]))
        u = row_idx[col_ptr[first] : col_ptr[last]]
        next_one = (level[u] >= 0) & (level[v] == level[u] + 1)
        u, v = u[next_one], v[next_one]
        right += np.bincount(u, path[u] / path[v] * (1 + delta[v]), minlength=n)
    if np.allclose(delta, right, rtol=1e-9, atol=1e-9):
        return ""
    return f"dependencies from vertex {tested.roots[-1]} do not obey their recurrence"


#: By the `kind` of an experiment.
WAYS: dict[str, Callable[[Tested, Matrix, Runner, int], Found]] = {
    "searches": searches,
    "parts": by_part,
    "accumulations": accumulations,
}
