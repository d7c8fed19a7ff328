"""Random graphs, the same for the same seed, and simple shapes with known answers."""

from __future__ import annotations

import numpy as np

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.core import Matrix
from lagpu.dtypes import Array
from lagpu.generators import edges as drawing
from lagpu.generators.edges import Edges, KroneckerEdges, UniformEdges, count, require
from lagpu.io.arrays import is_on_gpu
from lagpu.io.csc import CSC, edge_keys, from_edge_keys, from_entries, undirected

__all__ = [
    "chains", "complete", "cycle", "delaunay", "gnm", "grid2d", "hubs", "kronecker", "mycielskian",
    "path", "road", "star", "uniform",
]  # fmt: skip

Place = str | Backend | None

_KEPT = 0.8  # share of a grid's links that a road network keeps
_SPARSE = 50
_CHUNK = 1 << 16  # edges made at a time, so that they stay in the cache


def grid2d(rows: int, cols: int, *, backend: Place = None) -> Matrix:
    """Return a grid graph; vertex ``r * cols + c`` is at row r, column c."""
    return _joined(*grid_links("grid2d", rows, cols, backend), backend)


def grid_links(what: str, rows: int, cols: int, backend: Place) -> tuple[Array, Array, int]:
    """Return the links of a grid, each once, and its size, if there is memory for their matrix."""
    rows, cols = count(what, "rows", rows, 1), count(what, "cols", cols, 1)
    n = rows * cols
    require(what, n, 2 * n, backend=backend)
    at = np.arange(n, dtype=np.int32).reshape(rows, cols)
    u = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    v = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    return u, v, n


def path(n: int, directed: bool = False, *, backend: Place = None) -> Matrix:
    """Return the path 0, 1, ..., n - 1; if `directed`, of the edges i -> i + 1 alone."""
    n = count("path", "n", n, 1)
    require("path", n, n, backend=backend)
    i = np.arange(n, dtype=np.int32)
    return _simple(i[:-1], i[1:], n, directed, backend)


def cycle(n: int, directed: bool = False, *, backend: Place = None) -> Matrix:
    """Return the cycle 0, 1, ..., n - 1, 0 of at least 3 vertices.

    If `directed`, of the edges i -> i + 1 and n - 1 -> 0 alone.
    """
    n = count("cycle", "n", n, 3)
    require("cycle", n, n, backend=backend)
    i = np.arange(n, dtype=np.int32)
    return _simple(i, np.roll(i, -1), n, directed, backend)


def star(n: int, *, backend: Place = None) -> Matrix:
    """Return the star of n vertices whose centre is vertex 0."""
    n = count("star", "n", n, 1)
    require("star", n, n, backend=backend)
    return _joined(np.zeros(n - 1, np.int32), np.arange(1, n, dtype=np.int32), n, backend)


def complete(n: int, *, backend: Place = None) -> Matrix:
    """Return the complete graph, in which every vertex is joined to every other.

    It has ``n * (n - 1)`` entries.
    """
    n = count("complete", "n", n, 1)
    degree = n - 1
    require("complete", n, n * degree // 4, backend=backend)  # 6 bytes an entry: nothing is sorted
    rows = np.tile(np.arange(degree, dtype=np.int32), n).reshape(n, degree)
    rows += rows >= np.arange(n)[:, None]  # step over the diagonal
    col_ptr = np.arange(n + 1, dtype=np.int64) * degree
    return CSC(n, n, col_ptr, rows.ravel(), symmetric=True).matrix(backend)


def _simple(u: Array, v: Array, n: int, directed: bool, backend: Place) -> Matrix:
    return from_entries(u, v, None, n, n).matrix(backend) if directed else _joined(u, v, n, backend)


def _joined(u: Array, v: Array, n: int, backend: Place) -> Matrix:
    """Return the undirected graph of INT32 edges; a GPU sorts them much faster than the host."""
    place = backends.get(backend)
    if is_on_gpu(place):
        with place.device.lock, place.device.entered():
            tuples = {0: (place.device.from_host(u), place.device.from_host(v))}
        return drawing.undirected(tuples, n, place)
    return undirected(u, v, n).matrix(place)


def mycielskian(k: int, *, backend: Place = None) -> Matrix:
    """Return Mycielski's triangle-free graph of chromatic number k, at least 2.

    It has ``3 * 2**(k - 2) - 1`` vertices, as ``mycielskianK`` in the SuiteSparse collection; with
    k = 2 it is one edge.
    Source: Mycielski 1955, Sur le coloriage des graphes.
    """
    n, m = 2, 1
    for _ in range(count("mycielskian", "k", k, 2, 60) - 2):
        n, m = 2 * n + 1, 3 * m + n
    require("mycielskian", n, m, extra=16 * m, backend=backend)
    u, v, n = np.array([0], np.int32), np.array([1], np.int32), 2
    for _ in range(k - 2):
        # Vertices n .. 2n - 1 join the neighbours of their originals, and 2n joins all copies.
        copies = np.arange(n, 2 * n, dtype=np.int32)
        hub = np.full(n, 2 * n, np.int32)
        u, v = np.concatenate([u, u, v, copies]), np.concatenate([v, v + n, u + n, hub])
        n = 2 * n + 1
    return _joined(u, v, n, backend)


def kronecker(scale: int, edge_factor: int = 16, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return a Graph500 Kronecker graph of ``2**scale`` vertices, 0 <= scale <= 31.

    Each of ``edge_factor * 2**scale`` edges is drawn bit by bit with the probabilities of the
    specification (0.57, 0.19, 0.19, 0.05), and vertices are relabelled by a random permutation.
    Self-loops and repeated edges are dropped, as kernel 1 of the specification may, so the graph
    has fewer edges; the order of edge tuples, which the specification shuffles, has no meaning.

    Random numbers are those of `lagpu.generators.edges`, so graphs differ from the reference code,
    and are the same on every backend. On a GPU the device makes them.
    Source: Graph500 benchmark specification 2.0, section 4 (the R-MAT model of Chakrabarti, Zhan
    and Faloutsos 2004).
    """
    return _drawn("kronecker", KroneckerEdges, scale, edge_factor, seed, backend)


def uniform(scale: int, edge_factor: int = 16, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return a uniform random graph: both endpoints of each edge are drawn uniformly.

    The arguments are those of `kronecker`.
    Source: the graph Urand of the GAP benchmark suite (Beamer, Asanovic, Patterson 2015).
    """
    return _drawn("uniform", UniformEdges, scale, edge_factor, seed, backend)


def gnm(n: int, m: int, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return a directed graph of exactly m edges, every such set of edges with equal chance.

    There are n vertices, 0 <= m <= n (n - 1), and no self-loops.
    Source: Erdős and Rényi 1959, the model G(n, m).
    """
    n = count("gnm", "n", n, 1)
    pairs = n * (n - 1)
    m = count("gnm", "m", m, 0, pairs)
    dense = pairs < _SPARSE * m  # then NumPy shuffles a list of all pairs
    require("gnm", n, m, extra=8 * pairs if dense else 80 * m, backend=backend)
    chosen = _numbers("gnm", seed).choice(pairs, m, replace=False, shuffle=False)
    u, v = np.divmod(chosen, max(n - 1, 1))
    v += v >= u
    return from_entries(u, v, None, n, n).matrix(backend)


def _numbers(what: str, seed: int) -> np.random.Generator:
    # Not one of None: NumPy would draw a graph that no other process and no piece has.
    return np.random.default_rng(count(what, "seed", seed, 0))


def _drawn(
    what: str, kind: type[Edges], scale: int, edge_factor: int, seed: int, backend: Place
) -> Matrix:
    """Return the graph of all edges, made where its backend has its memory."""
    place, seed = backends.get(backend), count(what, "seed", seed, 0)
    if place.capabilities.parts is not None or is_on_gpu(place):
        return drawing.drawn(what, kind, scale, edge_factor, seed, place)
    n, draws = drawing.size_of(what, scale, edge_factor)
    require(what, n, draws)
    return from_edge_keys(_keys(kind(scale, seed), draws), n).matrix(place)


def _keys(edges: Edges, draws: int) -> Array:
    """Return the keys of all edges, drawn in chunks."""
    keys = np.empty(draws, np.int64)
    for start in range(0, draws, _CHUNK):
        part = keys[start : start + _CHUNK]
        part[:] = edge_keys(*edges(start, len(part)))
    return keys


def road(k: int, chain: int = 1, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return a road-like graph: a k x k grid from which a random fifth of the links is removed.

    `chain` is the mean number of edges of a link. From 2 on each link is a chain of random length,
    as between the junctions of a real road network, so that few pairs have many shortest paths.
    """
    mean = count("road", "chain", chain, 1)
    _require_chains("road", count("road", "k", k, 1) ** 2, 2 * _KEPT, mean, backend)
    u, v, n = grid_links("road", k, k, backend)
    draw = _numbers("road", seed)
    keep = draw.random(len(u)) < _KEPT
    return _joined(*_chained(u[keep], v[keep], n, mean, draw), backend)


def chains(scale: int, chain: int = 16, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return a uniform random graph of degree 4 whose edges are chains of random length.

    There are ``2**scale`` junctions, 0 <= scale <= 31, and two chains of `chain` edges on average
    for each. Like a graph of k-mers it has vertices of degree 2 almost everywhere, and thousands of
    levels where chains are long.
    """
    mean = count("chains", "chain", chain, 1)
    n, draws = drawing.size_of("chains", scale, 2)
    _require_chains("chains", n, 2, mean, backend)
    draw = _numbers("chains", seed)
    u, v = drawing.endpoints(np, UniformEdges(scale, seed), 0, draws, _CHUNK)
    return _joined(*_chained(u, v, n, mean, draw), backend)


def hubs(n: int, hubs: int = 8, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return a path of hubs, each with half as many leaves as the hub before, in random order.

    The first `hubs` of the n vertices are the hubs, 1 <= hubs <= n. Nearly all edges are at a few
    vertices, as in a trace of a network's packets.
    """
    n = count("hubs", "n", n, 1)
    hubs = count("hubs", "hubs", hubs, 1, n)
    require("hubs", n, n, extra=16 * n, backend=backend)
    path = np.arange(hubs - 1, dtype=np.int32)
    leaves = np.arange(hubs, n, dtype=np.int32)
    of = np.minimum(_numbers("hubs", seed).geometric(0.5, len(leaves)), hubs) - 1
    u = np.concatenate([path, of.astype(np.int32)])
    return _joined(u, np.concatenate([path + 1, leaves]), n, backend)


def _require_chains(what: str, n: int, links: float, mean: int, backend: Place) -> None:
    """Ask for the memory of `links` chains a junction, before any is drawn."""
    edges = int(n * links * mean)
    require(what, n + edges - int(n * links), edges, extra=40 * edges, backend=backend)


def _chained(
    u: Array, v: Array, n: int, mean: int, draw: np.random.Generator
) -> tuple[Array, Array, int]:
    """Return edges and vertices, with a chain of `mean` edges on average, at least one, a link."""
    if mean > 1:
        length = draw.geometric(1 / mean, len(u))
        of = np.repeat(np.arange(len(u)), length)
        step = np.arange(len(of)) - np.repeat(np.cumsum(length) - length, length)
        inner = n + np.arange(len(of)) - of  # the vertex at the end of a step, but of the last one
        u = np.where(step == 0, u[of], inner - 1).astype(np.int32)
        v = np.where(step == length[of] - 1, v[of], inner).astype(np.int32)
        n += len(of) - len(length)
    return u, v, n


def delaunay(scale: int, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return the Delaunay triangulation of random points in the unit square.

    There are ``2**scale`` points, 2 <= scale <= 31.
    """
    from scipy.spatial import Delaunay  # slow to import, and only needed here

    n = 2 ** count("delaunay", "scale", scale, 2, drawing.LARGEST_SCALE)
    require("delaunay", n, 3 * n, extra=700 * n, backend=backend)  # of Qhull, measured
    corners = Delaunay(_numbers("delaunay", seed).random((n, 2))).simplices.T
    return _joined(corners.ravel(), np.roll(corners, -1, axis=0).ravel(), n, backend)
