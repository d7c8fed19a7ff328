"""The Graph500 benchmark, kernels 1 and 2, by the rules of its specification 2.0.

Tuples are generated untimed, self-loops and duplicates included. Kernel 1 begins with the tuples
and is timed until everything that searches reuse has been made, which includes one search. Then,
after a warm-up, each root is searched once, one at a time, timed on the wall until the parents are
in memory, and its tree is proved on the tuples themselves, untimed. The last tree is also proved by
`lagpu.check.check_parents`. On a grid each piece has a slice of the tuples and a part of the graph,
and proves trees on these; no process has all of them.

Not a submission: vertices are numbered in 32 bits, where a submission needs 48.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lagpu import algorithms, backends, check
from lagpu.backends.protocol import Backend
from lagpu.bench.graphs import drawn
from lagpu.bench.harness import Clock, Report, Say, envelope, silent
from lagpu.check.graph import climbed
from lagpu.core import Matrix
from lagpu.errors import CheckFailed, InvalidValue
from lagpu.generators import edges as drawing
from lagpu.generators import path
from lagpu.host import job, progress
from lagpu.io import csc
from lagpu.io.arrays import is_on_gpu

Array = Any  # numpy.ndarray or cupy.ndarray

_ROOTS = 64  # of the rules
_QUARTILES = ("min", "firstquartile", "median", "thirdquartile", "max")
_CHUNK = 1 << 25  # tuples at a time


def run(
    scale: int, edge_factor: int = 16, *, backend: str = "auto",
    roots: int | None = None, seed: int | None = None, say: Say = silent,
) -> Report:  # fmt: skip
    """Run the benchmark on ``2**scale`` vertices with ``edge_factor`` tuples each.

    By the rules there are 64 searches, fewer if fewer vertices have an edge to another. The report
    has ``machine commit date versions fields searches``, ready for JSON; `fields` are the output
    fields that the rules require, None for NaN, which JSON lacks, and `searches` the root, time,
    edges and TEPS of each. A tree that breaks a rule raises `CheckFailed`; there is no result then.
    """
    drawing.count("graph500", "scale", scale, 1, drawing.LARGEST_SCALE)
    if roots is not None:
        drawing.count("graph500", "roots", roots, 1)
    place = backends.get(backend)
    first_seed = 1 if seed is None else seed
    wall = Clock(place).wall
    say("generating tuples")
    generation, tuples = wall(lambda: Tuples.drawn(place, scale, edge_factor, first_seed))
    algorithms.bfs_parents(path(64, backend=place), 0)  # compiles kernels
    say("kernel 1: construction")
    construction, A = wall(tuples.matrix)
    linked = tuples.linked(A.nrows)
    if roots is not None and 0 < linked.size < roots:
        raise InvalidValue(
            f"graph500: {roots} roots, but only {linked.size} vertices have an edge to another. "
            "Give fewer, or use a larger scale."
        )
    refusal = "graph500: there are only self-loops. Use a larger scale."
    keys = drawn(linked, _ROOTS if roots is None else roots, first_seed, refusal)
    algorithms.bfs_parents(A, keys[0])
    times: list[float] = []
    edges: list[int] = []
    validations: list[float] = []
    for number, root in enumerate(progress.over(keys, "searches"), 1):
        say(f"kernel 2: search {number} of {len(keys)}")
        ms, parents = wall(functools.partial(algorithms.bfs_parents, A, root))
        times.append(ms / 1e3)
        dense = np.full(parents.size, -1, np.int64)
        reached, values = parents.to_coo()
        dense[reached] = values
        ms, m = wall(functools.partial(tuples.validate, root, dense))
        validations.append(ms / 1e3)
        edges.append(m)
    say("proving the last search again, on the graph")
    check.check_parents(A, keys[-1], parents)
    processes = job.launched()
    fields = {
        "SCALE": scale, "edgefactor": edge_factor, "NBFS": len(keys),
        "graph_generation": generation / 1e3,
        "num_mpi_processes": 1 if processes is None else processes.size,
        "construction_time": construction / 1e3, **_results(times, edges, validations),
    }  # fmt: skip
    each = zip(keys, times, edges, strict=True)
    searches = [{"root": v, "time": s, "nedge": m, "TEPS": m / s} for v, s, m in each]
    known = {name: None if value != value else value for name, value in fields.items()}
    return {**envelope([place], {}), "fields": known, "searches": searches}


def statistics_of(values: Sequence[float]) -> dict[str, float]:
    """Return minimum, quartiles, maximum, mean and sample deviation, as in the reference code."""
    x = np.asarray(values, float)
    parts = np.quantile(x, (0, 0.25, 0.5, 0.75, 1), method="averaged_inverted_cdf")
    deviation = float(x.std(ddof=1)) if len(x) > 1 else math.nan
    found = dict(zip(_QUARTILES, parts.tolist(), strict=True))
    return found | {"mean": float(x.mean()), "stddev": deviation}


def _results(times: list[float], edges: list[int], validations: list[float]) -> dict[str, float]:
    """Return the required statistics by their names in the output of the reference code."""
    found = {f"bfs  {name}_time": x for name, x in statistics_of(times).items()}
    found |= {f"{name}_nedge": x for name, x in statistics_of(edges).items()}
    # A rate is the inverse of a time per edge, so the least rate is the greatest inverse.
    inverse = statistics_of([t / m for t, m in zip(times, edges, strict=True)])
    for name, other in zip(_QUARTILES, reversed(_QUARTILES), strict=True):
        found[f"bfs  {name}_TEPS"] = 1 / inverse[other]
    mean, n = inverse["mean"], len(times)
    found["bfs  harmonic_mean_TEPS"] = 1 / mean
    # Norris 1940, The standard errors of the geometric and harmonic means
    spread = inverse["stddev"] / (mean**2 * math.sqrt(n - 1)) if n > 1 else math.nan
    found["bfs  harmonic_stddev_TEPS"] = spread
    return found | {f"bfs  {name}_validate": x for name, x in statistics_of(validations).items()}


def lines(fields: dict[str, float | None]) -> list[str]:
    """Return lines in the reference format: a name, a colon, and the value in column 33."""
    found = []
    for name, value in fields.items():
        digits = "%.11g" if name.endswith("_nedge") else "%g"
        number = math.nan if value is None else value
        text = str(value) if isinstance(value, int) else digits % number
        label = f"{name}:"
        if name == "bfs  harmonic_mean_TEPS":
            label = f"{label:<29}!"
        found.append(f"{label:<32}{text}")
    return found


class Tuples:
    """The raw tuples of a graph, self-loops and duplicates included.

    They are slices, (u, v) in INT32, by the number of each piece of this process; those of one
    backend are piece 0. Every process calls each method, which returns the same in all.
    """

    def __init__(self, place: Backend, slices: dict[int, tuple[Array, Array]]) -> None:
        self._place, self._slices = place, slices

    @classmethod
    def drawn(cls, place: Backend, scale: int, edge_factor: int, seed: int) -> Tuples:
        """Return the tuples of `lagpu.generators.kronecker`."""
        return cls(place, drawing.kronecker_tuples(scale, edge_factor, seed, place))

    def matrix(self) -> Matrix:
        """Return the graph, and make by one search what searches reuse."""

        def largest(xp: Any, u: Array, v: Array) -> tuple[Array]:
            return (np.array([max((int(x.max()) for x in (u, v) if len(x)), default=-1)]),)

        n = 1 + max(int(x[0]) for (x,) in self._gather(largest))
        if self._place.capabilities.parts is not None or is_on_gpu(self._place):
            A = drawing.undirected(self._slices, n, self._place)
        else:
            drawing.require("graph500", n, len(self._slices[0][0]))
            A = csc.undirected(*self._slices[0], n).matrix(self._place)
        algorithms.bfs_parents(A, A.nrows - 1)  # which is in a tuple
        return A

    def linked(self, n: int) -> Array:
        """Return the vertices with an edge to another one, rising, on the host."""

        def mark(xp: Any, u: Array, v: Array) -> tuple[Array]:
            marks, apart = xp.zeros(n, bool), u != v
            marks[u[apart]] = True
            marks[v[apart]] = True
            return (_host(xp.packbits(marks)),)

        return np.flatnonzero(_united(self._gather(mark), n))

    def validate(self, root: int, parents: Any) -> int:
        """Prove a search tree, given by parents or -1, and count the tuples with both ends in it.

        That is the m of TEPS. Levels are the depths in the tree, so rule 2, levels of a tree edge
        differ by one, holds by construction.
        """

        def prove(xp: Any, u: Array, v: Array) -> tuple[Array, Array]:
            known, edges = _proved(xp, u, v, root, xp.asarray(parents))
            return _host(xp.packbits(known)), np.array([edges])

        found = self._gather(prove)
        known = _united([(bits,) for bits, _ in found], len(parents))
        _refuse(np, (parents >= 0) & ~known, "5: a vertex and its parent are joined by an edge")
        return sum(int(edges[0]) for _, edges in found)

    def _gather(self, work: Callable[[Any, Array, Array], Any]) -> list[Any]:
        """Return what ``work(xp, u, v)`` returns for each slice: arrays on the host."""

        def on_piece(home: Backend, piece: int) -> Any:
            device = home.device if is_on_gpu(home) else None
            if device is None:
                return work(np, *self._slices[piece])
            with device.lock, device.entered():
                return work(device.xp, *self._slices[piece])

        return drawing.parts_of(self._place).gather(on_piece)


def _host(array: Array) -> Array:
    return array.get() if hasattr(array, "get") else array


def _united(bits: list[tuple[Array]], n: int) -> Array:
    """Return which vertices any piece has marked, from packed bits."""
    return np.unpackbits(np.bitwise_or.reduce([packed for (packed,) in bits]), count=n).astype(bool)


def _proved(xp: Any, u: Array, v: Array, root: int, parents: Array) -> tuple[Array, int]:
    """Return (vertices whose tree edge is among some tuples, how many tuples are in the tree)."""
    inside = parents >= 0
    depth = _depths(xp, root, parents, inside)
    known = xp.zeros(len(parents), bool)
    known[root] = True
    edges = 0
    for start in range(0, len(u), _CHUNK):
        a, b = (ends[start : start + _CHUNK] for ends in (u, v))
        in_a, in_b = inside[a], inside[b]
        _refuse(xp, in_a != in_b, "4: the tree spans the component", (a, b))
        far = in_a & (xp.abs(depth[a] - depth[b]) > 1)
        _refuse(xp, far, "3: an edge joins levels that differ by at most one", (a, b))
        known[a[parents[a] == b]] = True
        known[b[parents[b] == a]] = True
        edges += int(xp.count_nonzero(in_a))
    return known, edges


def _depths(xp: Any, root: int, parents: Array, inside: Array) -> Array:
    """Return each vertex's depth, or raise unless the parents are a tree."""
    if int(parents[root]) != root:
        raise CheckFailed(f"graph500: rule 1: the root {root} is not its own parent.")
    rule = "1: the parents form a tree"
    _refuse(xp, parents >= len(parents), rule)
    above = xp.where(inside, parents, xp.arange(len(parents)))
    _refuse(xp, inside & ~inside[above], rule)
    depth, ends = climbed(xp, above)
    _refuse(xp, inside & (ends != root), rule)
    return depth


def _refuse(xp: Any, bad: Array, rule: str, ends: tuple[Array, Array] | None = None) -> None:
    """Raise if a rule is broken anywhere: at a vertex, or by a tuple with these ends."""
    if bool(bad.any()):
        k = int(xp.argmax(bad))
        where = f"at vertex {k}"
        if ends is not None:
            where = f"by the tuple ({int(ends[0][k])}, {int(ends[1][k])})"
        raise CheckFailed(f"graph500: rule {rule}: broken {where}.")
