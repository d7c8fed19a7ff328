"""A zoo of graphs: how far the default directions of a search are from those of the best policy."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from lagpu import backends
from lagpu.backends.guard import overridden
from lagpu.bench import harness
from lagpu.bench.harness import Clock, Keep, Report, Row, Say
from lagpu.bench.suite import ALGORITHMS, as_mode, placed_on
from lagpu.core import Matrix
from lagpu.errors import InvalidValue, NotSupported
from lagpu.generators.families import graph, zoo
from lagpu.host import progress
from lagpu.host.fitting import FittingTable
from lagpu.observe.trace import trace

#: The default, policies of the same kernels, pushing alone, pulling alone, and no fusing.
POLICIES = ("auto", "beamer", "hiragushi", "beamer:alpha=0", "beamer:alpha=1e9,beta=1e9", "eager")
_ENOUGH_MS = 25.0  # an eager loop of thousands of levels is not repeated
_ON_GPU, _SMALL = 19, 8  # scales, by default
_SMALLEST, _LARGEST, _ROOTS, _SHOWN = 8, 24, 3, 20
_PUSHED, _LEVEL = 8, 4096  # costs where nothing is timed, in entries that a pull looks at
_COUNTS = f"entries, {_PUSHED} for a pushed one, {_LEVEL} a level"


def scale_of(name: str) -> int | None:
    """Return the scale of ``zoo:SCALE``, 0 for ``zoo``; None for another name."""
    head, _, scale = name.partition(":")
    return (int(scale) if scale.isdecimal() else 0) if head == "zoo" else None


def run(
    name: str, backend: str, outputs: Sequence[str], roots: int | None,
    say: Say, keep: Keep, show: Say,
) -> tuple[Report, list[str]]:  # fmt: skip
    """Search every graph of ``zoo`` or ``zoo:SCALE``; keep the report, and show each row."""
    place = backends.get(backend)
    timed = Clock(place).has_device
    s = scale_of(name) or (_ON_GPU if timed else _SMALL)
    if not _SMALLEST <= s <= _LARGEST:
        raise InvalidValue(f"{name}: the scale is outside {_SMALLEST} to {_LARGEST}.")
    if not place.capabilities.fuses:
        raise NotSupported(f"bench zoo: {place.name} chooses no direction. Name gpu or sim.")
    made = [(f"{f} {k + 1}", f, x) for f, xs in zoo(s).items() for k, x in enumerate(xs)]
    found: Report = {"scale": s, "cost": "milliseconds" if timed else _COUNTS, "rows": []}
    report = harness.envelope([place], {}) | found
    for label, family, one in progress.over(made, name):
        say(label)
        for row in measured(label, graph(family, one, place), outputs, roots or _ROOTS, s):
            report["rows"].append(row)
            keep(report)
            show("{graph}, {output}: {ratio:.2f} of {best}".format_map(row))
    return report, []


def measured(name: str, A: Matrix, outputs: Sequence[str], roots: int, seed: int) -> Iterator[Row]:
    """Yield a row for each output; `ratio` is default to best policy, at the worst root."""
    place, clock = A.backend, Clock(A.backend, enough_ms=_ENOUGH_MS)
    found = np.flatnonzero(np.diff(A.to_csc()[0]))
    sources = np.random.default_rng(seed).choice(found, min(roots, len(found)), replace=False)
    for output in outputs:
        costs: dict[str, list[float]] = {}
        for policy in POLICIES * (1 + clock.has_device):  # the smaller of two medians counts
            chosen = None if policy in ("auto", "eager") else policy
            search = partial(ALGORITHMS[output], placed_on(A, overridden(place, None, chosen)))
            with as_mode(policy):
                if clock.has_device:  # compiles kernels, and makes workspaces
                    search(int(sources[0]))
                times = [cost_of(clock, partial(search, int(v))) for v in sources]
            costs[policy] = list(map(min, times, costs.get(policy, times)))
        ratio, best = max((max(np.divide(costs["auto"], x)), key) for key, x in costs.items())
        yield {"graph": name, "output": output, "ratio": float(ratio),
               "best": best, "costs": costs}  # fmt: skip


def cost_of(clock: Clock, search: Callable[[], object]) -> float:
    """Return the milliseconds of a search, or what it looks at where nothing is timed."""
    if clock.has_device:
        return statistics.median(clock.repeat(clock.queued, search)[0])
    with trace() as t:
        search()
    products, weights = (row for row in t.rows if row.method == "mxv"), {"push": _PUSHED}
    return float(sum(_LEVEL + (row.edges or 0) * weights.get(row.direction, 1) for row in products))


def table(rows: Sequence[Row]) -> FittingTable:
    """Return the graphs on which a policy is much better than the default, worst first."""
    ratios = [row["ratio"] for row in rows]
    title = f"{len(rows)} searches: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}"
    worst = sorted(rows, key=lambda row: -row["ratio"])[:_SHOWN]
    texts = ("graph", "{graph}"), ("output", "{output}"), ("best policy", "{best}")
    return harness.table(worst, texts, [("default / best", "{ratio:.2f}")], title=title)
