"""What is drawn on a canvas: cells of matrices, vectors, masks and frontiers; and graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from lagpu.draw import look
from lagpu.draw.look import Array, Canvas, Kind, Line, Point
from lagpu.host.display import short


def fitting(value: Any) -> str:
    """Return a value for a cell: 1 and 0 for BOOL, a float of few digits if it is longer."""
    number = value.item() if hasattr(value, "item") else value
    if not np.isfinite(number):
        return short(number)
    word = f"{number:.0f}" if abs(number) < 1_000_000 else f"{number:.1e}"
    if isinstance(number, float) and abs(number) < 100:
        words = [f"{number:.{digits}g}" for digits in (4, 3, 2)]
        words += [word.replace("0.", ".") for word in (words[-1], f"{number:.1g}")]
        fits = (word for word in words if len(word.lstrip("-")) <= 4)
        word = next(fits, f"{number:.0e}")
    return word.replace("e+", "e").replace("e0", "e").replace("e-0", "e-")


class Cells:
    """A grid of cells whose ids begin with `name`; (x, y) is the centre of cell (0, 0)."""

    def __init__(
        self, name: str, nrows: int, ncols: int, x: float = 0, y: float = 0, side: float = 1
    ) -> None:
        self.name, self.nrows, self.ncols = name, nrows, ncols
        self.x, self.y, self.side = x, y, side
        self.cells: dict[tuple[int, int], tuple[Kind, str]] = {}

    def put(self, i: int, j: int, kind: Kind, value: Any = None) -> None:
        """Set the kind and the value of cell (i, j); other cells have no entry."""
        self.cells[int(i), int(j)] = (kind, "" if value is None else fitting(value))

    def fill(self, entries: Iterable[tuple[int, int, Any]]) -> Cells:
        """Set cells to the entries (row, column, value) of an object; return itself."""
        for i, j, value in entries:
            self.put(i, j, look.ZERO if value == 0 else look.ENTRY, value)
        return self

    def turn(self) -> None:
        self.nrows, self.ncols = self.ncols, self.nrows
        self.cells = {(j, i): cell for (i, j), cell in self.cells.items()}

    def at(self, i: float, j: float) -> Point:
        return self.x + j * self.side, self.y + i * self.side

    @property
    def kinds(self) -> list[Kind]:
        found = [kind for kind, _ in self.cells.values()]
        if len(self.cells) < self.nrows * self.ncols:
            found.append(look.NONE)
        return list(dict.fromkeys(found))

    def draw(self, canvas: Canvas, *, tall: float = 1, blank: bool = True) -> None:
        """Draw every cell, `tall` times as high as wide, and a frame; `blank`: empty ones, too."""
        places = np.ndindex(self.nrows, self.ncols) if blank else self.cells
        # The kinds that are drawn first are below the others.
        by_kind: dict[Kind, list[tuple[int, int]]] = {look.NONE: [], look.TOUCHED: []}
        for place in places:
            by_kind.setdefault(self.cells.get(place, (look.NONE,))[0], []).append(place)
        for kind, found in by_kind.items():
            ids = [f"{self.name}-{i}-{j}-{kind.name}" for i, j in found]
            w = self.side * kind.side
            canvas.squares(kind, [self.at(*place) for place in found], (w, w * tall), ids)
        size, room = canvas.font(self.side)
        for place, (kind, text) in self.cells.items():
            if text:
                wide = len(text) - (text.count(".") + text.count("-")) / 2  # of digits
                fits = max(1.4 * room / wide, min(1.5 * room / wide, 10.1))
                canvas.words(self.at(*place), text, min(size, fits), kind.ink)
        self.frame(canvas, tall)

    def frame(self, canvas: Canvas, tall: float = 1) -> None:
        middle = self.at((self.nrows - 1) / 2, (self.ncols - 1) / 2)
        w, h = self.ncols * self.side, self.nrows * self.side * tall
        canvas.squares(look.FRAME, [middle], (w, h), [f"{self.name}-frame"])

    def pattern(
        self, canvas: Canvas, rows: Array, cols: Array, front: Array | None = None,
        kept: Array | None = None, *, by_rows: bool = True,
    ) -> Array:  # fmt: skip
        """Draw a matrix's entries as squares; return which of them a product uses, (nvals,).

        `front` is where the product's vector has entries, along the rows or, without `by_rows`,
        the columns; `kept` is what the mask keeps of the result.
        """
        dropped = used = np.zeros(len(rows), bool)
        if front is not None:
            dropped, used = dropped_and_used(
                *((rows, cols) if by_rows else (cols, rows)), front, kept
            )
            if kept is not None:
                self._bands(canvas, look.VEIL, np.flatnonzero(~kept), not by_rows, "seen")
            self._bands(canvas, look.TOUCHED, np.flatnonzero(front), by_rows, "front")
        side = 0.76 * self.side
        for kind, name, which in (
            (look.IDLE, "idle", ~dropped & ~used),
            (look.DROP, "back", dropped),
            (look.USED, "new", used),
        ):
            pairs = zip(rows[which].tolist(), cols[which].tolist(), strict=True)
            canvas.squares(kind, [self.at(i, j) for i, j in pairs], (side, side), name)
        return used

    def _bands(self, canvas: Canvas, kind: Kind, which: Array, rows: bool, name: str) -> None:
        i, j = (self.nrows - 1) / 2, (self.ncols - 1) / 2
        w, h = (self.ncols, 1) if rows else (1, self.nrows)
        places = [self.at(k, j) if rows else self.at(i, k) for k in which.tolist()]
        ids = [f"{name}-{k}" for k in which.tolist()]
        canvas.squares(kind, places, (w * self.side, h * self.side), ids)

    def number(self, canvas: Canvas, *, rows: bool = True, cols: bool = True) -> None:
        """Write the indices on the left of the rows and above the columns."""
        size = 0.9 * canvas.font(self.side)[0]
        for i in range(self.nrows * rows):
            canvas.words(self.at(i, -0.62), str(i), size, look.MUTED, "right")
        for j in range(self.ncols * cols):
            canvas.words(self.at(-0.85, j), str(j), size, look.MUTED)


def dropped_and_used(
    begins: Array, ends: Array, front: Array, kept: Array | None
) -> tuple[Array, Array]:
    """Return the entries that a product multiplies: those the mask drops, and those it keeps.

    `begins` and `ends` are the indices of each entry in the vector and in the result; `front` is
    where the vector has entries, `kept` what the mask keeps. Both arrays are BOOL, (nvals,).
    """
    multiplied = front[begins]
    kept_ends = np.ones(len(ends), bool) if kept is None else kept[ends]
    return multiplied & ~kept_ends, multiplied & kept_ends


def triplets(x: Any) -> Iterator[tuple[int, int, Any]]:
    """Yield row, column and value of each entry of a matrix, or of a vector as a row."""
    *where, values = x.to_coo()
    cells = where if len(where) == 2 else (np.zeros_like(where[0]), *where)
    yield from zip(*(index.tolist() for index in cells), values.tolist(), strict=True)


# ---- A graph on a canvas: places of its vertices, the same in each run, its edges and vertices.
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
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    pattern = coo_array((np.ones(len(rows)), (rows, cols)), shape=(n, n)).tocsr()
    wanted = np.asarray(shortest_path(pattern, directed=False, unweighted=True))
    joined = np.isfinite(wanted)
    wanted[~joined] = 0.6 * wanted[joined].max(initial=0) + 1
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
        pulls = weights * wanted / np.maximum(np.hypot(between[..., 0], between[..., 1]), 1e-9)
        found = solve @ (pulls.sum(1)[:, None] * found - pulls @ found)
    return np.asarray(found)


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
