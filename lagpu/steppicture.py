"""A step as a drawing: the matrix with what a product touches, the mask, and every vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lagpu.pages import text
from lagpu.stepstate import State, Step
from lagpu.steptext import shown

__all__ = ["LARGEST", "Layout", "draw", "framed", "legend"]

#: Longest vector, and most rows or columns of a matrix, that are drawn.
LARGEST = 64

_INK, _SOFT, _TOUCHED, _ENTRY = "#1c2733", "#5b6775", "#c05a00", "#14659e"
_LABEL = 132  # pixels left of what is drawn, for names
_GAP = 10

# How cells look. An entry, an explicit zero and no entry differ in border, fill and text, so that
# they do on paper too.
_STYLES = {
    "none": 'fill="#fbfcfd" stroke="#b8c2cc" stroke-dasharray="2 3"',
    "entry": f'fill="#d9e8f6" stroke="{_ENTRY}"',
    "zero": 'fill="#ffe7a3" stroke="#8a5a00" stroke-width="2"',
    "kept": 'fill="#ffffff" stroke="#2f7d4f" stroke-width="1.5"',
    "blocked": 'fill="#5b6775" stroke="#5b6775"',
    "dot": 'fill="#aab4be"',
    "frame": 'fill="none" stroke="#8a94a0"',
    "band": 'fill="#fff0de"',
    "veil": f'fill="{_INK}" fill-opacity="0.13"',
    "met": f'fill="#ffd9ae" stroke="{_TOUCHED}" stroke-width="1.5"',
    "used": f'fill="{_TOUCHED}"',
    "changed": f'fill="none" stroke="{_TOUCHED}" stroke-width="3"',
}


@dataclass(frozen=True)
class Layout:
    """What is drawn where, the same for all steps of a page so that nothing jumps.

    Attributes
    ----------
    matrix : str or None
        Name of the matrix that is drawn while there is no product.
    transposed : bool
        Whether it is drawn transposed.
    beside, above : bool
        Whether there is room for a factor left of the matrix and for one above it.
    names : tuple of str
        The vectors, from top to bottom.
    scalars : tuple of str
        The scalars.
    """

    matrix: str | None
    transposed: bool
    beside: bool
    above: bool
    names: tuple[str, ...]
    scalars: tuple[str, ...]

    @classmethod
    def of(cls, steps: Iterable[Step]) -> Layout:
        """Return one that fits each of these steps."""
        steps = list(steps)
        products = [s.product for s in steps if s.product is not None]
        matrices = [name for s in steps for name in s.matrices]
        return cls(
            matrix=products[0].matrix if products else next(iter(matrices), None),
            transposed=bool(products) and products[0].transposed,
            beside=any(p.vector_left for p in products),
            above=any(not p.vector_left for p in products),
            names=tuple(dict.fromkeys(name for s in steps for name in s.vectors)),
            scalars=tuple(dict.fromkeys(name for s in steps for name in s.scalars)),
        )


class _Grid(NamedTuple):
    """Where the cells of the drawing are."""

    cell: float
    left: float
    top: float
    nrows: int
    ncols: int

    def x(self, j: float) -> float:
        return self.left + j * self.cell

    def y(self, i: float) -> float:
        return self.top + i * self.cell


class _Canvas:
    """SVG elements; squares of one style become one path, which may be shared between drawings."""

    def __init__(self, share: Callable[[str], str] | None) -> None:
        self.parts: list[str] = []
        self.width = self.height = 0.0
        self._share = share

    def squares(
        self, style: str, corners: Iterable[tuple[float, float]], w: float, h: float
    ) -> None:
        """Draw rectangles of one size."""
        path = "".join(f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z" for x, y in corners)
        if path:
            made = f'<path d="{path}" {_STYLES[style]}/>'
            self.parts.append(made if self._share is None else self._share(made))

    def words(self, x: float, y: float, content: str, size: float, more: str = "") -> None:
        """Write text on a baseline."""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" {more}>{text(content)}</text>'
        )

    def reach(self, width: float, height: float) -> None:
        """Make room."""
        self.width, self.height = max(self.width, width), max(self.height, height)

    def svg(self, label: str) -> str:
        """Return the drawing."""
        w, h = self.width + 4, self.height + 4
        return (
            f'<svg viewBox="0 0 {w:g} {h:g}" width="{w:g}" height="{h:g}" role="img" '
            f'preserveAspectRatio="xMinYMin" aria-label="{text(label)}" fill="{_INK}" '
            f'font-family="system-ui, DejaVu Sans, sans-serif">{"".join(self.parts)}</svg>'
        )


def draw(
    step: Step, layout: Layout | None = None, share: Callable[[str], str] | None = None
) -> str:
    """Return a step as SVG.

    Parameters
    ----------
    step : Step
        What to draw; nothing of it longer than `LARGEST`.
    layout : Layout, optional
        By default the one that fits this step.
    share : callable, optional
        Gets an SVG element that other drawings may have too, and returns what to draw instead.
    """
    layout = layout or Layout.of([step])
    canvas = _Canvas(share)
    grid = _matrix(canvas, step, layout)
    y = grid.y(grid.nrows) + _GAP + 4
    if step.kept is not None and not _is_column(step):
        _mask_cells(canvas, step, grid, y)
    y += grid.cell + _GAP
    for name in layout.names:
        state = step.vectors.get(name)
        if state is not None:
            _vector(canvas, step, name, state, grid, y)
        y += grid.cell + 8
    for name in layout.scalars:
        if name in step.scalars:
            value = step.scalars[name]
            shows = f"{name} is empty" if value is None else f"{name} = {shown(value)}"
            if name == step.output:
                shows = f"\u25b6 {shows}"
            canvas.words(2, y + 14, shows, 15)
        y += 22
    canvas.reach(0, y)
    return canvas.svg(f"step {step.number}: {step.formula}")


def _is_column(step: Step) -> bool:
    """Whether the step is ``A @ u``, whose vectors stand upright beside the matrix."""
    return step.product is not None and not step.product.vector_left


def _matrix(canvas: _Canvas, step: Step, layout: Layout) -> _Grid:
    """Draw the matrix, and for a product what it touches; return where the cells are."""
    p = step.product
    name = p.matrix if p is not None else layout.matrix
    transposed = p.transposed if p is not None else layout.transposed
    A = step.matrices.get(name) if name is not None else None
    longest = max((state.size for state in step.vectors.values()), default=1)
    nrows, ncols = (0, longest) if A is None else A.shape[::-1] if transposed else A.shape
    cell = float(min(34, max(11, 600 // max(nrows, ncols, longest, 1))))
    left = _LABEL + (cell + _GAP + 26 if layout.beside else 26)
    top = 22 + (cell + _GAP if layout.above else 0)
    grid = _Grid(cell, left, top, nrows, ncols)
    canvas.reach(grid.x(max(ncols, longest)) + (2.5 * cell + 2 * _GAP if layout.above else 0), 0)
    each = 1 if cell >= 16 else 4
    for j in range(0, ncols, each):
        canvas.words(grid.x(j + 0.5), 14, str(j), 11, _MIDDLE)
    for i in range(0, nrows, each):
        canvas.words(left - 6, grid.y(i + 0.5) + 4, str(i), 11, _END)
    if A is not None and name is not None:
        shows = f"{name}'" if transposed else name
        if p is not None:
            shows = f"{p.vector} @ {shows}" if p.vector_left else f"{shows} @ {p.vector}"
        canvas.words(2, grid.y(nrows / 2) + 5, _short(shows), 15)
        rows, cols = (np.asarray(x) for x in A.to_coo()[:2])
        if transposed:
            rows, cols = cols, rows
        _entries(canvas, step, grid, rows, cols)
    return grid


_MIDDLE = f'text-anchor="middle" fill="{_SOFT}"'
_END = f'text-anchor="end" fill="{_SOFT}"'


def _entries(canvas: _Canvas, step: Step, grid: _Grid, rows: Any, cols: Any) -> None:
    """Draw the entries; of a product's those that it meets, and those that the mask lets by."""
    c, m, n = grid.cell, grid.nrows, grid.ncols
    p = step.product
    inset = max(1.5, c * 0.2)

    def at(chosen: Any) -> Iterable[tuple[float, float]]:
        pairs = zip(rows[chosen].tolist(), cols[chosen].tolist(), strict=True)
        return [(grid.x(j) + inset, grid.y(i) + inset) for i, j in pairs]

    size = c - 2 * inset
    everything = np.ones(len(rows), bool)
    if p is None:
        canvas.squares("dot", at(everything), size, size)
    else:
        factor = step.before[p.vector]
        met = factor.pattern[rows if p.vector_left else cols]
        out = cols if p.vector_left else rows
        kept = everything if step.kept is None else step.kept[out]
        if p.vector_left:
            canvas.squares(
                "band", [(grid.left, grid.y(i)) for i in factor.indices.tolist()], n * c, c
            )
            _strip(canvas, factor, [(grid.left - 24 - _GAP - c, grid.y(i)) for i in range(m)], c)
        else:
            canvas.squares(
                "band", [(grid.x(j), grid.top) for j in factor.indices.tolist()], c, m * c
            )
            _strip(canvas, factor, [(grid.x(j), grid.top - _GAP - c) for j in range(n)], c)
            _upright(canvas, step, grid)
        canvas.squares("dot", at(~met), size, size)
        canvas.squares("met", at(met & ~kept), size, size)
        canvas.squares("used", at(met & kept), size, size)
        if step.kept is not None:
            blocked = np.flatnonzero(~step.kept).tolist()
            if p.vector_left:
                canvas.squares("veil", [(grid.x(j), grid.top) for j in blocked], c, m * c)
            else:
                canvas.squares("veil", [(grid.left, grid.y(i)) for i in blocked], n * c, c)
    canvas.squares("frame", [(grid.left, grid.top)], n * c, m * c)


def _upright(canvas: _Canvas, step: Step, grid: _Grid) -> None:
    """Draw mask and result of ``A @ u`` right of the matrix."""
    x, c = grid.x(grid.ncols) + _GAP, grid.cell
    if step.kept is not None:
        for style, wanted in (("kept", True), ("blocked", False)):
            places = np.flatnonzero(step.kept == wanted).tolist()
            canvas.squares(style, [(x, grid.y(i)) for i in places], c * 0.5, c)
    out = step.vectors[step.output]
    _strip(canvas, out, [(x + c * 0.5 + _GAP, grid.y(i)) for i in range(out.size)], c)


def _mask_cells(canvas: _Canvas, step: Step, grid: _Grid, y: float) -> None:
    """Draw the mask under the columns it is for."""
    assert step.mask is not None
    c = grid.cell
    canvas.words(2, y + c * 0.5 + 5, _short(f"mask {step.mask.formula}"), 15, 'fill="#2f7d4f"')
    for style, wanted in (("kept", True), ("blocked", False)):
        places = np.flatnonzero(step.kept == wanted).tolist()
        canvas.squares(style, [(grid.x(j), y + c * 0.2) for j in places], c, c * 0.6)


def _vector(canvas: _Canvas, step: Step, name: str, state: State, grid: _Grid, y: float) -> None:
    """Draw a vector with its name, and an outline around what the statement changed."""
    c, written = grid.cell, name == step.output
    canvas.words(
        2, y + c * 0.5 + 5, ("\u25b6 " if written else "") + _short(name), 15,
        f'font-weight="600" fill="{_TOUCHED}"' if written else "",
    )  # fmt: skip
    places = [(grid.x(j), y) for j in range(state.size)]
    _strip(canvas, state, places, c)
    if written:
        before = step.before[name]
        canvas.squares("changed", [places[j] for j in _changed(before, state)], c, c)
    canvas.reach(grid.x(state.size), 0)


def _changed(before: State, after: State) -> list[int]:
    old, new = before.to_dict(), after.to_dict()
    return [j for j in range(after.size) if old.get(j) != new.get(j) or (j in old) != (j in new)]


def _strip(canvas: _Canvas, state: State, places: list[tuple[float, float]], c: float) -> None:
    """Draw the cells of a vector."""
    entries = state.to_dict()
    looks: dict[str, list[tuple[float, float]]] = {"none": [], "entry": [], "zero": []}
    for j, place in enumerate(places):
        looks["none" if j not in entries else "entry" if entries[j] else "zero"].append(place)
    for style, corners in looks.items():
        canvas.squares(style, corners, c, c)
    for j, value in entries.items():
        x, y = places[j]
        word = _fitting(value)
        size = min(c * 0.5, 1.5 * c / len(word), 16)
        bold = "" if value else ' font-weight="700"'
        canvas.words(x + c / 2, y + c / 2 + size * 0.36, word, size, f'text-anchor="middle"{bold}')


def _fitting(value: Any) -> str:
    """Return a value in at most four characters, if two digits of it are."""
    word = shown(value)
    for digits in (3, 2):
        if isinstance(value, float) and len(word) > 4:
            word = f"{value:.{digits}g}"
    return word


def _short(name: str) -> str:
    return name if len(name) <= 19 else name[:18] + "\u2026"


def legend() -> str:
    """Return as SVG what the cells mean."""
    canvas = _Canvas(None)
    x = 2.0
    samples = (
        ("entry", "7", "entry"), ("zero", "0", "explicit zero"), ("none", "", "no entry"),
        ("changed", "", "changed"), ("used", "", "meets the vector, kept"),
        ("met", "", "meets it, masked out"), ("kept", "", "mask keeps"),
        ("blocked", "", "mask blocks"),
    )  # fmt: skip
    for style, word, meaning in samples:
        canvas.squares(style, [(x, 3)], 18, 18)
        if word:
            canvas.words(x + 9, 16.5, word, 12, 'text-anchor="middle"')
        canvas.words(x + 24, 17, meaning, 14)
        x += 24 + 7.6 * len(meaning) + 18
    canvas.reach(x, 24)
    return canvas.svg("legend")


def framed(step: Step) -> str:
    """Return a step as HTML for a notebook: the drawing, or text if it would be too large."""
    sizes = [state.size for state in step.vectors.values()]
    sizes += [n for A in step.matrices.values() for n in A.shape]
    head = f"<div><code>{text(step.formula)}</code> <small>{text(_head(step))}</small></div>"
    if max(sizes, default=0) > LARGEST:
        return f"<pre>{text(repr(step))}</pre>"
    return f"<div style='background:#fff;color:{_INK}'>{head}{draw(step)}</div>"


def _head(step: Step) -> str:
    where = f"level {step.level}, " if step.level >= 0 else ""
    return f"step {step.number}, {where}{step.place}"
