"""A zoo of graphs: how far the default directions of a search are from those of the best policy."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from lagpu import backends
from lagpu.backends.guard import overridden
from lagpu.backends.protocol import Backend
from lagpu.bench import harness
from lagpu.bench.graphs import drawn
from lagpu.bench.harness import Clock, Keep, Report, Row, Say
from lagpu.bench.suite import ALGORITHMS, as_mode, placed_on
from lagpu.core import Matrix
from lagpu.dtypes import Array
from lagpu.errors import InvalidValue, NotSupported
from lagpu.generators.load import from_spec
from lagpu.host import progress
from lagpu.host.fitting import FittingTable
from lagpu.io.csc import from_entries, undirected
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
    found: Report = {"scale": s, "cost": "milliseconds" if timed else _COUNTS, "rows": []}
    report = harness.envelope([place], {}) | found
    for label, family, one in progress.over(named(s), name):
        say(label)
        for row in measured(label, graph(family, one, place), outputs, roots or _ROOTS, s):
            report["rows"].append(row)
            keep(report)
            show("{graph}, {output}: {ratio:.2f} of {best}".format_map(row))
    return report, []


def measured(name: str, A: Matrix, outputs: Sequence[str], roots: int, seed: int) -> Iterator[Row]:
    """Yield a row for each output; `ratio` is default to best policy, at the worst root."""
    place, clock = A.backend, Clock(A.backend, enough_ms=_ENOUGH_MS)
    sources = sources_of(A, roots, seed)
    for output in outputs:
        costs: dict[str, list[float]] = {}
        for policy in POLICIES * (1 + clock.has_device):  # the smaller of two medians counts
            chosen = None if policy in ("auto", "eager") else policy
            search = partial(ALGORITHMS[output], placed_on(A, overridden(place, None, chosen)))
            with as_mode(policy):
                if clock.has_device:  # compiles kernels, and makes workspaces
                    search(sources[0])
                times = [cost_of(clock, partial(search, v)) for v in sources]
            costs[policy] = list(map(min, times, costs.get(policy, times)))
        ratio, best = max((max(np.divide(costs["auto"], x)), key) for key, x in costs.items())
        yield {"graph": name, "output": output, "ratio": float(ratio),
               "best": best, "costs": costs}  # fmt: skip


def sources_of(A: Matrix, count: int, seed: int) -> list[int]:
    """Return some vertices that have an edge."""
    return drawn(np.flatnonzero(np.diff(A.to_csc()[0])), count, seed)


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


# ---- The graphs, of twenty families.
Edges = tuple[Array, Array, int]
Made = Callable[[], Edges]


def _rmat(s: int, factor: int, a: float) -> Edges:
    """R-MAT: edges are in corner `a` of each square, or in any of the other three alike."""
    draw, (u, v) = np.random.default_rng(s), np.zeros((2, factor << s), np.int32)
    for _ in range(s):
        corner = draw.random(len(u), np.float32)
        one, two, three = (corner >= a + k * (1 - a) / 3 for k in range(3))
        u += u + two
        v += v + (one ^ two ^ three)
    return u, v, 1 << s


def _cliques(count: int, size: int, hub: bool = True) -> Edges:
    """Cliques whose first vertices a hub joins; or each is joined to the next one."""
    (i, j), first = np.triu_indices(size, 1), size * np.arange(count)
    u, v = (first, 0 * first + count * size) if hub else (first[1:] - 1, first[1:])
    inside = [(first[:, None] + end).ravel() for end in (i, j)]
    return np.r_[inside[0], u], np.r_[inside[1], v], count * size + hub


def _tree(s: int, arity: int) -> Edges:
    below = np.arange(1, 1 << s)
    return below, (below - 1) // arity, 1 << s


def _attached(s: int, each: int, near: int = 0) -> Edges:
    """Join new vertices to ends of earlier edges; or, all alike, to the last `near` vertices."""
    new, draw = np.repeat(np.arange(1, 1 << s), each), np.random.default_rng(s)
    if near:
        return new, new - 1 - draw.integers(0, np.minimum(new, near)), 1 << s
    end = draw.integers(0, 2 * each * new - 2 * each + 1)
    to = np.where(end % 2, -1 - end // 2, new[np.minimum(end // 2, len(new) - 1)])
    while (far := to < 0).any():  # the other end of an earlier edge
        to[far] = to[-1 - to[far]]
    return new, np.minimum(to, new - 1), 1 << s


def _lattice(side: int, dims: int) -> Edges:
    """Cells of a cube join all cells that touch them."""
    x, place, found = np.indices((side,) * dims).reshape(dims, -1), side ** np.arange(dims), []
    for step in np.array(list(np.ndindex((3,) * dims))) - 1:
        to = x + step[:, None]
        here = np.flatnonzero(((to >= 0) & (to < side)).all(axis=0))
        found.append([here, to[::-1, here].T @ place])
    return *np.concatenate(found, axis=1), side**dims


def _ring(s: int, near: int, rewired: float = 0, cube: bool = False) -> Edges:
    """Neighbours on a ring, some at random (Watts and Strogatz); or those of a hypercube."""
    n, draw = 1 << s, np.random.default_rng(s)
    u, k = np.repeat(np.arange(n), near), np.tile(np.arange(near), n)
    v = u ^ 1 << k if cube else (u + k + 1) % n
    return u, np.where(draw.random(len(u)) < rewired, draw.integers(0, n, len(u)), v), n


def _communities(s: int, size: int, near: int, far: float) -> Edges:
    """`near` neighbours of each vertex, from its community of `size`, some from any."""
    n, draw = 1 << s, np.random.default_rng(s)
    u = np.repeat(np.arange(n), near)
    own = u // size * size + draw.integers(0, size, len(u))
    return u, np.where(draw.random(len(u)) < far, draw.integers(0, n, len(u)), own), n


def _sides(s: int, left: int, each: int) -> Edges:
    """Bipartite: all vertices of the right side join `each` of the left side."""
    v = np.repeat(np.arange(left, 1 << s), each)
    return np.random.default_rng(s).integers(0, left, len(v)), v, 1 << s


def _tailed(made: Made, tails: int, length: int) -> Edges:
    """Add paths that begin at the first vertices."""
    (u, v, n), path = made(), np.arange(tails * length)
    before = np.where(path % length, n + path - 1, path // length)
    return np.r_[u, before], np.r_[v, n + path], n + len(path)


def _beside(*made: Made) -> Edges:
    us, vs, sizes = zip(*(one() for one in made), strict=True)
    at = np.cumsum([0, *sizes])
    u, v = (np.concatenate([x + k for x, k in zip(xs, at[:-1], strict=True)]) for xs in (us, vs))
    return u, v, int(at[-1])


def zoo(s: int) -> dict[str, list[Made | str]]:
    """Return graphs of about 2**s vertices by family, as functions and as texts of generators."""
    r, half, P = _rmat, 1 << s // 2, partial
    return {
        "R-MAT": [P(r, s, 16, 0.57), P(r, s, 4, 0.57), P(r, s, 16, 0.4), P(r, s, 8, 0.7),
                  P(r, s, 16, 0.85), P(r, s - 4, 128, 0.57), f"kron:{s}:16"],
        "uniform": [f"urand:{s}:2", f"urand:{s}:8", f"urand:{s - 2}:64"],
        "cliques": [P(_cliques, 1 << s - 5, 32), P(_cliques, half // 2, half // 2),
                    P(_cliques, 4, 2 * half), P(_cliques, 1 << s - 4, 16, False)],
        "stars": [f"star:{1 << s}", f"hubs:{1 << s}:8", P(_tree, s, half)],
        "barbells": [P(_cliques, 2, half, False), P(_tailed, P(_cliques, 2, half), 2, half)],
        "trees": [P(_tree, s, 2), P(_tree, s, 16), P(_attached, s, 1, 1 << s),
                  P(_attached, s, 1, 64)],
        "caterpillars": [P(_tailed, P(_tree, s // 2, 1), half, half),
                         P(_tailed, P(_tree, s - s // 2, 1), 2 * half, 1)],
        "bipartite": [P(_sides, s, 1 << s - 1, 8), P(_sides, s, 1 << s - 6, 8),
                      P(_sides, s, 64, 16)],
        "meshes": [f"grid:{half}x{half}", f"delaunay:{s - 2}", P(_lattice, half, 2),
                   P(_lattice, round(2 ** (s / 3)), 3)],
        "roads": [f"road:{half}", f"road:{half // 2}:4"],
        "k-mers": [f"chains:{s - 4}:8", f"chains:{s - 8}:128"],
        "power-law chains": [P(_tailed, P(r, s - 4, 8, 0.57), 1 << s - 6, 32),
                             P(_tailed, P(_attached, s - 3, 2), 1 << s - 4, 8)],
        "attachment": [P(_attached, s, 1), P(_attached, s, 2), P(_attached, s, 16)],
        "hypercubes": [P(_ring, s, s, cube=True), P(_ring, s - 3, s - 3, cube=True)],
        "small world": [P(_ring, s, 8, 0.001), P(_ring, s, 8, 0.1), P(_ring, s, 2, 0.05)],
        "communities": [P(_communities, s, half, 8, 0.01), P(_communities, s, half // 8, 16, 0.1),
                        P(_communities, s, 1 << s - 3, 4, 0.001)],
        "rings": [P(_ring, s, 16), P(_ring, s - 3, 128), f"cycle:{8 * half}"],
        "webs": [P(_tailed, P(r, s, 8, 0.57), 1, 4 * half), P(_tailed, P(r, s, 8, 0.7), 64, half)],
        "disconnected": [P(_beside, P(r, s - 1, 16, 0.57), P(_ring, s - 1, 8)),
                         P(_beside, P(r, s - 1, 16, 0.57), P(_cliques, 1 << s - 6, 32)),
                         P(_beside, *[P(r, s - 4, 16, 0.57)] * 16)],
        "dense": [f"complete:{4 * half}", f"gnm:{4 * half}:{4 << s}", f"mycielskian:{s // 2 + 5}"],
    }  # fmt: skip


def named(s: int) -> list[tuple[str, str, Made | str]]:
    """Return (name, family, graph) of each graph of `zoo`."""
    return [(f"{f} {k + 1}", f, x) for f, xs in zoo(s).items() for k, x in enumerate(xs)]


def graph(family: str, made: Made | str, place: Backend | str) -> Matrix:
    """Return the matrix of a graph of the zoo; those of webs are directed."""
    if isinstance(made, str):
        return from_spec(made, backend=place)
    u, v, n = made()
    found = from_entries(u, v, None, n, n) if family == "webs" else undirected(u, v, n)
    return found.matrix(place)
