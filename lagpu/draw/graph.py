"""A graph on a canvas: places of its vertices, the same in each run, its edges and vertices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lagpu.draw.look import Array, Canvas, Kind, Line

_ROUNDS = 150
_NEAR = 1.5  # edges between the nearest vertices of two components
_LINE = 12  # edges of a path that lies straight; a longer one is bent


def edges(
    canvas: Canvas, line: Line, at: Array, tails: Array, heads: Array, radius: float, arrows: bool
) -> None:
    """Draw edges, self-loops as circles, between vertices at the places `at`, (n, 2)."""
    own = tails == heads
    if own.any():
        canvas.loops(line, at[np.unique(tails[own])], radius)
    canvas.lines(line, at, tails[~own], heads[~own], radius, arrows)


def vertices(
    canvas: Canvas, kinds: Sequence[Kind], of: Array, at: Array, radius: float, size: float
) -> None:
    """Draw vertex v as a disc of ``kinds[of[v]]``, with its number in text of a size, unless 0."""
    for k, kind in enumerate(kinds):
        if (of == k).any():
            canvas.discs(kind, at[of == k], radius)
    for v, place in enumerate(at.tolist() if size else ()):
        canvas.words(place, str(v), size, kinds[of[v]].ink)


def places(rows: Array, cols: Array, n: int) -> Array:
    """Return a place for each of n vertices, (n, 2), so that distances follow those in the graph.

    Stress majorization from a start by classical scaling, without regard to directions. Vertices
    that no path joins are 0.6 times the longest path plus one apart; then smaller components move
    towards the largest. Where all would lie on one long line, distances count less the longer they
    are, so that the line bends. Sources: Torgerson 1952; Gansner, Koren and North 2004.
    """
    wanted, joined = _distances(rows, cols, n)
    found = _settled(wanted)
    if wanted.max(initial=0) > _LINE and np.ptp(found, axis=0).min() < wanted.max() / 30:
        found = _settled(wanted**0.7)
    return _gathered(found, joined)


def _gathered(found: Array, joined: Array) -> Array:
    """Return the positions with each smaller component moved straight towards the largest."""
    if joined.all():
        return found
    part = joined.argmax(1)
    names, sizes = np.unique(part, return_counts=True)
    largest = names[sizes.argmax()]
    ways = {p: (found[part == largest].mean(0) - found[part == p].mean(0)) for p in names}
    for one in sorted(set(names) - {largest}, key=lambda p: float(np.hypot(*ways[p]))):
        mine, others = found[part == one], found[part != one]
        before = _apart(mine, others)
        for share in np.linspace(0, 1, 101)[1:]:
            moved = mine + share * ways[one]
            now = _apart(moved, others)
            if ((now < _NEAR) & (now < before)).any():
                break
            found[part == one] = moved
    return found


def _apart(some: Array, others: Array) -> Array:
    """Return the distance of each of some positions and each of others."""
    return np.asarray(np.hypot(*(some[:, None] - others).transpose(2, 0, 1)))


def _settled(wanted: Array) -> Array:
    """Return positions whose distances approximate these."""
    n = len(wanted)
    found = _scaled(wanted)
    if n < 3:
        return found
    weights = np.zeros((n, n))
    apart = wanted > 0
    weights[apart] = wanted[apart] ** -2.0
    solve = np.linalg.pinv(np.diag(weights.sum(1)) - weights)
    for _ in range(_ROUNDS):
        between = found[:, None] - found
        lengths = np.maximum(np.hypot(between[..., 0], between[..., 1]), 1e-9)
        pulls = weights * wanted / lengths
        found = solve @ (pulls.sum(1)[:, None] * found - pulls @ found)
    return np.asarray(found)


def _distances(rows: Array, cols: Array, n: int) -> tuple[Array, Array]:
    """Return the edges between each two vertices, more without a path, and where there is one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    pattern = coo_array((np.ones(len(rows)), (rows, cols)), shape=(n, n)).tocsr()
    found = shortest_path(pattern, directed=False, unweighted=True)
    finite = np.isfinite(found)
    found[~finite] = 0.6 * found[finite].max(initial=0) + 1
    return np.asarray(found), finite


def _scaled(distances: Array) -> Array:
    """Return positions whose distances approximate these, by classical scaling."""
    n = len(distances)
    if n < 3:
        return np.column_stack([np.arange(n), np.zeros(n)]).astype(float)
    squared = distances**2
    centred = squared - squared.mean(0) - squared.mean(1)[:, None] + squared.mean()
    sizes, vectors = np.linalg.eigh(-centred / 2)
    vectors *= np.where(vectors[np.abs(vectors).argmax(0), np.arange(n)] < 0, -1, 1)
    found = vectors[:, [-1, -2]] * np.sqrt(np.maximum(sizes[[-1, -2]], 1e-9))
    turn = 2.4 * np.arange(n)  # vertices at one position are moved a little in several directions
    away = 0.01 * float(np.ptp(found, axis=0).max()) * (1 + np.arange(n) / n)
    return np.asarray(found + np.column_stack([np.cos(turn), np.sin(turn)]) * away[:, None])
