"""The Graph500 benchmark, kernels 1 and 2, by the rules of its specification 2.0.

Tuples are generated untimed, self-loops and duplicates included. Kernel 1 begins with the tuples
and is timed until everything that searches reuse has been made, which includes one search. Then,
after a warm-up, each root is searched once, one at a time, timed on the wall until the parents are
in memory, and its tree is proved on the tuples themselves, untimed. The last tree is also proved by
`lagpu.check.check_parents`. On a grid each piece has a slice of the tuples and a part of the graph,
and proves trees on these; nobody has the whole.

Not a submission: vertices are numbered in 32 bits, where a submission needs 48.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lagpu import algorithms, backends, check
from lagpu.backends.protocol import Backend
from lagpu.bench.report import envelope
from lagpu.bench.tuples import Tuples
from lagpu.core.matrix import Matrix
from lagpu.errors import InvalidValue
from lagpu.generators import path
from lagpu.generators.sizes import LARGEST_SCALE, count
from lagpu.host import job

__all__ = ["lines", "run", "statistics_of"]

Array = np.ndarray[Any, Any]

_ROOTS = 64  # of the rules
_QUARTILES = ("min", "firstquartile", "median", "thirdquartile", "max")


def run(
    scale: int,
    edge_factor: int = 16,
    *,
    backend: str = "auto",
    roots: int | None = None,
    seed: int | None = None,
    tell: Callable[[str], None] = lambda _text: None,
) -> dict[str, Any]:
    """Run the benchmark.

    Parameters
    ----------
    scale, edge_factor : int
        ``2**scale`` vertices, ``edge_factor`` tuples per vertex.
    backend : str
        The backend; on gpu the tuples are made on the device.
    roots : int, optional
        Searches; by default 64, fewer if there are fewer vertices with an edge to another vertex,
        as the rules say.
    seed : int, optional
        Seed of the tuples and the roots.
    tell : callable
        Called with a description of each step, for a progress display.

    Returns
    -------
    dict
        ``machine commit date versions fields searches``, ready for JSON; `fields` are the output
        fields that the rules require, `searches` the root, time, edges and TEPS of each.

    Raises
    ------
    CheckFailed
        If a tree breaks a rule; there is no result then.
    InvalidValue, OutOfMemory
        If a number is out of range, `roots` is more than there are such vertices, or the graph
        does not fit.
    """
    count("graph500", "scale", scale, 1, LARGEST_SCALE)
    if roots is not None:
        count("graph500", "roots", roots, 1)
    place = backends.get(backend)
    first_seed = 1 if seed is None else seed
    tell("generating tuples")
    begin = time.perf_counter()
    tuples = Tuples.drawn(place, scale, edge_factor, first_seed)
    _synchronize(place)
    generation = time.perf_counter() - begin
    algorithms.bfs_parents(path(64, backend=place), 0)  # compiles kernels
    tell("kernel 1: construction")
    begin = time.perf_counter()
    A = _construct(place, tuples)
    construction = time.perf_counter() - begin
    keys = _roots(tuples.linked(A.nrows), roots, first_seed)
    algorithms.bfs_parents(A, keys[0])
    times: list[float] = []
    edges: list[int] = []
    validations: list[float] = []
    for number, root in enumerate(keys, 1):
        tell(f"kernel 2: search {number} of {len(keys)}")
        _synchronize(place)
        begin = time.perf_counter()
        parents = algorithms.bfs_parents(A, root)
        _synchronize(place)
        times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        indices, values = parents.to_coo()
        dense = np.full(A.nrows, -1, np.int64)
        dense[indices] = values
        edges.append(tuples.validate(root, dense))
        validations.append(time.perf_counter() - begin)
    tell("proving the last search again, on the graph")
    check.check_parents(A, keys[-1], (indices, values))
    processes = job.launched()
    fields = {
        "SCALE": scale,
        "edgefactor": edge_factor,
        "NBFS": len(keys),
        "graph_generation": generation,
        "num_mpi_processes": 1 if processes is None else processes.size,
        "construction_time": construction,
        **_results(times, edges, validations),
    }
    searches = [
        {"root": root, "time": seconds, "nedge": m, "TEPS": m / seconds}
        for root, seconds, m in zip(keys, times, edges, strict=True)
    ]
    return {**envelope([place], {}), "fields": fields, "searches": searches}


def _construct(place: Backend, tuples: Tuples) -> Matrix:
    """Make the graph from the tuples, and by one search everything that searches reuse."""
    A = tuples.matrix()
    algorithms.bfs_parents(A, A.nrows - 1)  # which is in a tuple
    _synchronize(place)
    return A


def _roots(candidates: Array, number: int | None, seed: int) -> list[int]:
    """Return distinct vertices of those with an edge to another one."""
    if not candidates.size:
        raise InvalidValue("graph500: there are only self-loops. Use a larger scale.")
    if number is not None and number > candidates.size:
        raise InvalidValue(
            f"graph500: {number} roots, but only {candidates.size} vertices have an edge to "
            "another. Give fewer, or use a larger scale."
        )
    least = min(_ROOTS, candidates.size) if number is None else number
    drawn = np.random.default_rng(seed).choice(candidates, least, replace=False)
    return [int(root) for root in drawn]


def _synchronize(place: Backend) -> None:
    if place.device is not None:
        place.device.synchronize()


def statistics_of(values: Sequence[float]) -> dict[str, float]:
    """Return minimum, quartiles, maximum, mean and sample deviation, as in the reference code.

    A quartile between two values is their mean. The deviation of a single value is NaN.
    """
    x = sorted(float(value) for value in values)
    n = len(x)
    places = (
        (0, 0),
        ((n - 1) // 4, n // 4),
        ((n - 1) // 2, n // 2),
        (n - 1 - (n - 1) // 4, n - 1 - n // 4),
        (n - 1, n - 1),
    )
    found = {name: (x[i] + x[j]) / 2 for name, (i, j) in zip(_QUARTILES, places, strict=True)}
    mean = sum(x) / n
    squares = sum((value - mean) ** 2 for value in x)
    return found | {"mean": mean, "stddev": math.sqrt(squares / (n - 1)) if n > 1 else math.nan}


def _results(
    times: Sequence[float], edges: Sequence[int], validations: Sequence[float]
) -> dict[str, float]:
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
    found["bfs  harmonic_stddev_TEPS"] = (
        inverse["stddev"] / (mean**2 * math.sqrt(n - 1)) if n > 1 else math.nan
    )
    return found | {f"bfs  {name}_validate": x for name, x in statistics_of(validations).items()}


def lines(fields: dict[str, float]) -> list[str]:
    """Return lines in the reference format: a name, a colon, and the value in column 33."""
    found = []
    for name, value in fields.items():
        digits = "%.11g" if name.endswith("_nedge") else "%g"
        text = str(value) if isinstance(value, int) else digits % value
        label = f"{name}:"
        if name == "bfs  harmonic_mean_TEPS":
            label = f"{label:<29}!"
        found.append(f"{label:<32}{text}")
    return found
