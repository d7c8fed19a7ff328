"""Measure each aim of speed on a GPU in one run, and write it beside the aim and what bounds it.

    python docs/benchmarks/aims.py --before before.json --zoo zoo.json --json h200-aims.json

`before` has the times of commit 90ba4f0 on the same card, by algorithm and graph; a review measured
that commit beside cuGraph, so its ratio times before / now is the ratio of today. `zoo` is a report
of ``lagpu bench zoo``. A search is timed from 32 random vertices that reach most of the graph.
"""

from __future__ import annotations

import functools
import gc
import json as text
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from lagpu import algorithms, backends
from lagpu.bench import zoo as of_policies
from lagpu.bench.harness import Clock, Row, envelope
from lagpu.bench.suite import ALGORITHMS
from lagpu.core.matrix import Matrix
from lagpu.generators.load import load
from lagpu.host.files import require_writable, write_json

ROOTS, DEEP_ROOTS = 32, 8
SAMPLE = 20_000  # vertices, for the share that their hints do not find
COPIED = 1 << 28  # numbers, to measure the rate of a copy
DEEP = ("road", "delaunay", "path")
#: cuGraph 26.10 over lagpu at 90ba4f0, measured by a review on one H100 in one run.
REVIEWED = {
    ("pagerank", "kron20e16"): 4.1 / 4.5, ("pagerank", "kron22e16"): 14.4 / 16.2,
    ("pagerank", "delaunay20"): 1.5 / 3.6, ("pagerank", "road2048"): 5.5 / 8.6,
    ("triangles", "delaunay20"): 4.4 / 18.2, ("triangle_count", "delaunay20"): 0.92,
}  # fmt: skip
#: What bounds a row that misses its aim, and what was tried, by the beginning of the aim.
BOUNDS = {
    "path counts over": "each entry of an unvisited column is looked at, where levels need one; "
    "tried: a table of hubs' counts (kept), values by rank, words for large pushes (kept), "
    "pushes instead of pulls",
    "levels over the bytes": "rounds of dependent loads, and a barrier a level; "
    "tried: loads of 16 bytes, prefetches two words ahead",
    "slowest root": "one push of millions of edges from neighbours of hubs; "
    "tried: words instead of lists (kept), other alphas and deltas",
    "levels, ms": "hundreds of levels, each with a barrier; "
    "tried: clusters of 4 and of 16 blocks, one warp alone, blocks of 256 threads",
    "a level between hubs": "a barrier of one block and two dependent loads; "
    "tried: one warp alone, smaller blocks",
    "pagerank": "a millisecond of Python before the loop, then bytes; tried: tiles of 256 entries, "
    "loads ahead, values by rank (kept), also in shared memory (kept), sums in the pass",
    "worst of the zoo": "pulls that look in vain at hubs of other components; tried: all blocks "
    "share such columns (kept), a rule by the growth of the frontier (kept), with 1/4 and 1/8 in "
    "it, other deltas",
}
CALLS: dict[str, Callable[[Matrix], object]] = {
    "pagerank": functools.partial(algorithms.pagerank, tol=1e-4),
    "triangles": algorithms.triangles,
    "triangle_count": algorithms.triangle_count,
}


class Graphs:
    """Graphs on a GPU, one at a time, with the times of their searches by output."""

    def __init__(self) -> None:
        self.place = backends.get("gpu")
        self.name = ""

    def take(self, name: str) -> Matrix:
        """Return a graph, which replaces the one before."""
        if name != self.name:
            self.A = self.roots = None
            self.ms: dict[str, list[float]] = {}
            gc.collect()
            self.name, self.A = name, load(name, self.place)
            self.roots = self._drawn()
        return self.A

    def _drawn(self) -> list[int]:
        rng, n = np.random.default_rng(7), self.A.nrows
        found: list[int] = []
        want = DEEP_ROOTS if self.name.startswith(DEEP) else ROOTS
        degrees = np.diff(self.A.to_csc()[0])
        most = algorithms.bfs_levels(self.A, int(degrees.argmax())).nvals
        for root in rng.permutation(n):
            if algorithms.bfs_levels(self.A, int(root)).nvals == most:
                found.append(int(root))
                if len(found) == want:
                    break
        return found

    def searched(self, name: str, output: str) -> list[float]:
        """Return the device time of a search from each root, in milliseconds."""
        A = self.take(name)
        if output not in self.ms:
            search = algorithms.bfs if output == "both" else ALGORITHMS[output]
            search(A, self.roots[0])
            clock = Clock(self.place, enough_ms=20.0)
            times = (
                clock.repeat(clock.queued, functools.partial(search, A, v))[0] for v in self.roots
            )
            self.ms[output] = [statistics.median(each) for each in times]
        return self.ms[output]

    def called(self, name: str, what: str) -> float:
        """Return the caller's time of an algorithm, in milliseconds."""
        run = functools.partial(CALLS[what], self.take(name))
        run()
        clock = Clock(self.place)
        return statistics.median(clock.repeat(clock.wall, run)[0])


def searches(graphs: Graphs) -> Iterator[Row]:
    """Yield the rows of breadth-first searches on the graphs of the aims."""
    for name in ("kron20e16", "urand22e16", "kron22e16", "kron24e16"):
        levels, paths = graphs.searched(name, "levels"), graphs.searched(name, "paths")
        ratio = statistics.median(paths) / statistics.median(levels)
        yield {"aim": "path counts over levels", "graph": name, "value": ratio, "must": 4,
               "levels_ms": statistics.median(levels)}  # fmt: skip
        if name in ("urand22e16", "kron24e16"):
            floor = floor_ms(graphs, name)
            value = statistics.median(levels) / floor
            yield {"aim": "levels over the time to copy these bytes", "graph": name, "value": value,
                   "must": 3}  # fmt: skip
    yield worst(graphs.searched("kron24e16", "levels"), "slowest root over median", "kron24e16", 2)
    yield worst(graphs.searched("kron24e16", "both"), "levels and parents, slowest over median",
                "kron24e16", 2)  # fmt: skip
    yield worst(graphs.searched("kron22e64", "levels"), "slowest root over median", "kron22e64", 2)
    yield worst(graphs.searched("kron20e256", "paths"), "path counts, slowest over median",
                "kron20e256", 4)  # fmt: skip
    for name, must in (("road2048", 8.0), ("delaunay20", 1.8)):
        value = statistics.median(graphs.searched(name, "levels"))
        yield {"aim": "levels, ms", "graph": name, "value": value, "must": must}


def worst(ms: list[float], aim: str, graph: str, must: float) -> Row:
    return {"aim": aim, "graph": graph, "value": max(ms) / statistics.median(ms), "must": must}


def floor_ms(graphs: Graphs, name: str) -> float:
    """Return the time of the bytes that a search must move, at the rate of a copy.

    These are, of each vertex, a hint, a column's two ends and the level; of each that the hint
    does not find, a sector of 32 bytes; and a bit of each in the words of three levels.
    """
    import cupy as cp

    A = graphs.take(name)
    n = A.nrows
    col_ptr, row_idx, _ = A.to_csc()
    level = np.full(n, -9)
    at, values = algorithms.bfs_levels(A, graphs.roots[0]).to_coo()
    level[at] = values
    degrees, missed = np.diff(col_ptr), 0
    sample = np.random.default_rng(7).choice(np.flatnonzero(level > 0), SAMPLE)
    for v in sample:
        preds = row_idx[col_ptr[v] : col_ptr[v + 1]]
        missed += level[preds[degrees[preds].argmax()]] != level[v] - 1
    missed = missed * np.count_nonzero(level > 0) // SAMPLE
    nbytes = 16 * n + 32 * missed + 3 * n // 8
    source = cp.empty(COPIED, cp.int64)
    target = cp.empty_like(source)
    clock = Clock(graphs.place)
    ms = statistics.median(clock.repeat(clock.queued, lambda: cp.copyto(target, source))[0])
    return nbytes / (2 * source.nbytes / ms)


def hub_of_cliques(graphs: Graphs, count: int = 1000, size: int = 1000) -> Iterator[Row]:
    """Yield the rows of cliques around one hub, vertex 0, made from arrays on the device."""
    import cupy as cp

    graphs.A, graphs.name = None, ""
    gc.collect()
    n = 1 + count * size
    row_idx = cp.empty(count * size * (size + 1), cp.int32)
    row_idx[: n - 1] = cp.arange(1, n, dtype=cp.int32)
    columns = row_idx[n - 1 :].reshape(count, size, size)
    own, other = cp.arange(size, dtype=cp.int32)[:, None], cp.arange(size - 1, dtype=cp.int32)
    clique = other + (other >= own) + 1
    for k in range(count):
        columns[k, :, 0] = 0
        columns[k, :, 1:] = clique + k * size
    col_ptr = cp.concatenate((cp.zeros(1, cp.int64), n - 1 + cp.arange(n, dtype=cp.int64) * size))
    cp.cuda.Device().synchronize()
    start = time.perf_counter()
    A = Matrix.from_csr(col_ptr, row_idx, True, ncols=n, backend=graphs.place)
    cp.cuda.Device().synchronize()
    yield {"aim": "the first from_csr of device arrays, s", "graph": "cliques around a hub",
           "value": time.perf_counter() - start, "must": 1.0}  # fmt: skip
    for row in of_policies.measured(
        "cliques around a hub", A, ("levels", "parents", "paths"), 3, 7
    ):
        yield {"aim": f"{row['output']} over the best policy", "graph": row["graph"],
               "value": row["ratio"], "must": 1.15, "costs": row["costs"]}  # fmt: skip


def hubs_far_apart(graphs: Graphs, levels: int = 91_043) -> Row:
    """Return the time of a level on a path between two stars."""
    path = np.arange(levels)
    leaves = np.arange(1000)
    u = np.concatenate((path[:-1], np.zeros(1000, np.int64), np.full(1000, levels - 1)))
    v = np.concatenate((path[1:], levels + leaves, levels + 1000 + leaves))
    n = levels + 2000
    both = np.concatenate((u, v)), np.concatenate((v, u))
    A = Matrix.from_coo(*both, True, nrows=n, ncols=n, backend=graphs.place)
    search = functools.partial(algorithms.bfs_levels, A, levels)
    search()
    clock = Clock(graphs.place)
    ms = statistics.median(clock.repeat(clock.queued, search)[0])
    return {"aim": "a level between hubs, us", "graph": f"path of {levels} with hubs",
            "value": 1e3 * ms / (levels + 1), "must": 1.0}  # fmt: skip


def beside_cugraph(graphs: Graphs, before: dict[str, float]) -> Iterator[Row]:
    """Yield the rows of algorithms that cuGraph has."""
    for (what, name), ratio in REVIEWED.items():
        ms = graphs.called(name, what)
        key = f"{what} {name}"
        value = ratio * before[key] / ms if key in before else None
        yield {"aim": f"{what}, cuGraph's time over ours", "graph": name, "value": value, "ms": ms,
               "before_ms": before.get(key), "must": 1.1}  # fmt: skip


def of_zoo(report: dict[str, Any]) -> Iterator[Row]:
    """Yield the worst and the median ratio of the zoo to the best policy of each search."""
    ratios = [row["ratio"] for row in report["rows"]]
    for name, value, must in (
        ("worst", max(ratios), 1.3),
        ("median", statistics.median(ratios), 1.05),
    ):
        yield {"aim": f"{name} of the zoo over the best policy", "graph": f"{len(ratios)} searches",
               "value": value, "must": must}  # fmt: skip


def bounds(row: Row) -> str:
    """Return what bounds a row that misses its aim, or an empty string."""
    value, must, aim = row["value"], row["must"], str(row["aim"])
    if value is None or must is None:
        return ""
    missed = value < must if "cuGraph" in aim else value > must
    return (
        next((text for begin, text in BOUNDS.items() if aim.startswith(begin)), "")
        if missed
        else ""
    )


def main(
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
    before: Annotated[Path | None, typer.Option(help="Times of commit 90ba4f0.")] = None,
    zoo: Annotated[Path | None, typer.Option(help="A report of the zoo.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Parts alone.")] = None,
) -> None:
    """Measure the aims of speed."""
    require_writable(json, "bench")
    graphs = Graphs()
    old = text.loads(before.read_text("utf-8")) if before else {}
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "cliques": lambda: hub_of_cliques(graphs),
        "deep": lambda: iter([hubs_far_apart(graphs)]),
        "cugraph": lambda: beside_cugraph(graphs, old),
        "searches": lambda: searches(graphs),
    }
    if zoo is not None:
        parts["zoo"] = lambda: of_zoo(text.loads(zoo.read_text("utf-8")))
    made: list[Row] = []
    for name in only or parts:
        for row in parts[name]():
            made.append(row | {"bounds": bounds(row)})
            print({key: x for key, x in row.items() if key != "costs"}, flush=True)
            if json is not None:
                write_json(envelope([graphs.place], {}) | {"rows": made}, json, "bench")


if __name__ == "__main__":
    typer.run(main)
