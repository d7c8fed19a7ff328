"""Draw a step as SVG: the matrix with the entries that a product uses, the mask, every vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu.core.matrix import Matrix
from lagpu.host.pages import text
from lagpu.observe.step.state import State, StepRecord
from lagpu.observe.step.svg import INK, SOFT, TOUCHED, Canvas, Grid
from lagpu.observe.step.text import fitting, shown

#: Longest vector, and most rows or columns of a matrix, that are drawn.
LARGEST = 64

_LABEL = 132  # pixels on the left, for names
_GAP = 10


@dataclass(frozen=True)
class Layout:
    """The places of all objects, the same for all steps of a page so that nothing moves.

    Attributes
    ----------
    matrix : str or None
        Name of the matrix that is drawn in steps without a product.
    transposed : bool
        Whether this matrix is drawn transposed.
    nrows, ncols : int
        The largest shape of the matrices that are drawn in this place.
    written : int
        Most rows of any other matrix that a statement writes; it is drawn below all else.
    beside, above : bool
        Whether there is room for a factor on the left of the matrix and for one above.
    names : tuple of str
        The vectors, from top to bottom.
    scalars, matrices : tuple of str
        The scalars; and the matrices, if there are several, of which one at a time is drawn.
    """

    matrix: str | None
    transposed: bool
    nrows: int
    ncols: int
    written: int
    beside: bool
    above: bool
    names: tuple[str, ...]
    scalars: tuple[str, ...]
    matrices: tuple[str, ...]

    @classmethod
    def of(cls, steps: Iterable[StepRecord]) -> Layout:
        """Return a layout that fits each of these steps."""
        steps = list(steps)
        products = [s.product for s in steps if s.product is not None]
        matrices = tuple(dict.fromkeys(name for s in steps for name in s.matrices))
        matrix = products[0].matrix if products else next(iter(matrices), None)
        transposed = bool(products) and products[0].transposed
        shapes = [_drawn_shape(s.matrices.get(matrix or ""), transposed) for s in steps]
        shapes += [_drawn_shape(s.matrices.get(p.matrix), p.transposed) for s in steps
                   for p in [s.product] if p is not None]  # fmt: skip
        written = [s.matrices[s.output].shape for s in steps
                   if s.output in s.matrices and s.output != matrix]  # fmt: skip
        return cls(
            matrix=matrix,
            transposed=transposed,
            nrows=max((nrows for nrows, _ in shapes), default=0),
            ncols=max((ncols for _, ncols in (*shapes, *written)), default=0),
            written=max((nrows for nrows, _ in written), default=0),
            beside=any(p.vector_left for p in products),
            above=any(not p.vector_left for p in products),
            names=tuple(dict.fromkeys(name for s in steps for name in s.vectors)),
            scalars=tuple(dict.fromkeys(name for s in steps for name in s.scalars)),
            matrices=matrices if len(matrices) > 1 else (),
        )


def _drawn_shape(A: Matrix | None, transposed: bool) -> tuple[int, int]:
    """Return the rows and columns of a matrix in the drawing; (0, 0) for None."""
    if A is None:
        return 0, 0
    return (A.ncols, A.nrows) if transposed else (A.nrows, A.ncols)


def draw(
    step: StepRecord, layout: Layout | None = None, share: Callable[[str], str] | None = None
) -> str:
    """Return a step as SVG.

    Parameters
    ----------
    step : Step
        The step, without vectors and matrices larger than `LARGEST`.
    layout : Layout, optional
        By default a layout that fits this step.
    share : callable, optional
        Called with an SVG element that other drawings may share; returns the element to draw.
    """
    layout = layout or Layout.of([step])
    canvas = Canvas(share)
    grid = _matrix(canvas, step, layout)
    y = grid.y(layout.nrows) + _GAP + 4
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
            canvas.words(2, y + 14, _with_arrow(step, name, shows), 15)
        y += 22
    for name in layout.matrices:
        A = step.matrices.get(name)
        if A is not None:
            shows = f"{name}: {A.nrows} x {A.ncols}, {A.nvals} entries"
            canvas.words(2, y + 14, _with_arrow(step, name, shows), 15)
        y += 22
    if layout.written:
        if step.output in step.matrices and step.output != layout.matrix:
            _written(canvas, step, grid, y + _GAP)
        y += layout.written * grid.cell + 2 * _GAP
    canvas.grow_to(0, y)
    return canvas.svg(f"step {step.number}: {step.formula}")


def _with_arrow(step: StepRecord, name: str, shows: str) -> str:
    """Return the label of an object, with an arrow if the statement wrote it."""
    return f"\u25b6 {shows}" if name == step.output else shows


def _is_column(step: StepRecord) -> bool:
    """Return True for a step ``A @ u``, whose vectors are drawn as columns beside the matrix."""
    return step.product is not None and not step.product.vector_left


def _matrix(canvas: Canvas, step: StepRecord, layout: Layout) -> Grid:
    """Draw the matrix, and the entries that a product uses; return the grid of cells."""
    p = step.product
    name = p.matrix if p is not None else layout.matrix
    transposed = p.transposed if p is not None else layout.transposed
    if p is None and name not in step.matrices:
        name, transposed = next((x for x in step.matrices if x != step.output), None), False
    A = step.matrices.get(name) if name is not None else None
    longest = max((state.size for state in step.vectors.values()), default=1)
    nrows, ncols = (0, longest) if A is None else _drawn_shape(A, transposed)
    cell = float(min(34, max(11, 600 // max(layout.nrows, layout.ncols, longest, 1))))
    left = _LABEL + (cell + _GAP + 26 if layout.beside else 26)
    top = 22 + (cell + _GAP if layout.above else 0)
    grid = Grid(cell, left, top, nrows, ncols)
    canvas.grow_to(
        grid.x(max(layout.ncols, longest)) + (2.5 * cell + 2 * _GAP if layout.above else 0), 0
    )
    for j in range(0, ncols, _every(grid)):
        canvas.words(grid.x(j + 0.5), 14, str(j), 14, _MIDDLE)
    _numbers(canvas, grid)
    if A is not None and name is not None:
        shows = f"{name}'" if transposed else name
        if p is not None:
            shows = f"{p.vector} @ {shows}" if p.vector_left else f"{shows} @ {p.vector}"
        if name == step.output:
            _written(canvas, step, grid, top)
            return grid
        canvas.words(2, grid.y(nrows / 2) + 5, _short(shows), 15)
        rows, cols = (np.asarray(x) for x in A.to_coo()[:2])
        if transposed:
            rows, cols = cols, rows
        _entries(canvas, step, grid, rows, cols)
    return grid


_MIDDLE = f'text-anchor="middle" fill="{SOFT}"'
_END = f'text-anchor="end" fill="{SOFT}"'
_WRITTEN = f'font-weight="600" fill="{TOUCHED}"'


def _every(grid: Grid) -> int:
    """Return the distance of the rows and columns whose numbers are written."""
    return 1 if grid.cell >= 20 else 2 if grid.cell >= 16 else 4


def _numbers(canvas: Canvas, grid: Grid) -> None:
    """Write the number of each row beside it."""
    for i in range(0, grid.nrows, _every(grid)):
        canvas.words(grid.left - 6, grid.y(i + 0.5) + 5, str(i), 14, _END)


def _written(canvas: Canvas, step: StepRecord, above: Grid, y: float) -> None:
    """Draw the written matrix with its values, its columns below those of the grid `above`."""
    A = step.matrices[step.output]
    grid = Grid(above.cell, above.left, y, A.nrows, A.ncols)
    name = _with_arrow(step, step.output, _short(step.output))
    canvas.words(2, grid.y(A.nrows / 2) + 5, name, 15, _WRITTEN)
    _numbers(canvas, grid)
    rows, cols, values = A.to_coo()
    places = [(grid.x(j), grid.y(i)) for i, j in zip(rows.tolist(), cols.tolist(), strict=True)]
    state = State(len(places), A.dtype, np.arange(len(places)), values)
    _cells(canvas, state, places, grid.cell)
    canvas.squares("frame", [(grid.left, grid.top)], grid.ncols * grid.cell, grid.nrows * grid.cell)


def _entries(canvas: Canvas, step: StepRecord, grid: Grid, rows: Any, cols: Any) -> None:
    """Draw the entries; in a product mark those that it uses, and those that the mask keeps."""
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
        met, kept = step.meeting(*((rows, cols) if p.vector_left else (cols, rows)))
        if p.vector_left:
            canvas.squares(
                "band", [(grid.left, grid.y(i)) for i in factor.indices.tolist()], n * c, c
            )
            _cells(canvas, factor, [(grid.left - 24 - _GAP - c, grid.y(i)) for i in range(m)], c)
        else:
            canvas.squares(
                "band", [(grid.x(j), grid.top) for j in factor.indices.tolist()], c, m * c
            )
            _cells(canvas, factor, [(grid.x(j), grid.top - _GAP - c) for j in range(n)], c)
            _mask_and_result(canvas, step, grid)
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


def _mask_and_result(canvas: Canvas, step: StepRecord, grid: Grid) -> None:
    """Draw mask and result of ``A @ u`` as columns on the right of the matrix."""
    x, c = grid.x(grid.ncols) + _GAP, grid.cell
    if step.kept is not None:
        for style, wanted in (("kept", True), ("blocked", False)):
            places = np.flatnonzero(step.kept == wanted).tolist()
            canvas.squares(style, [(x, grid.y(i)) for i in places], c * 0.5, c)
    out = step.vectors[step.output]
    _cells(canvas, out, [(x + c * 0.5 + _GAP, grid.y(i)) for i in range(out.size)], c)


def _mask_cells(canvas: Canvas, step: StepRecord, grid: Grid, y: float) -> None:
    """Draw the mask below the columns of the matrix."""
    assert step.mask is not None
    c = grid.cell
    canvas.words(2, y + c * 0.5 + 5, _short(f"mask {step.mask.formula}"), 15, 'fill="#2f7d4f"')
    for style, wanted in (("kept", True), ("blocked", False)):
        places = np.flatnonzero(step.kept == wanted).tolist()
        canvas.squares(style, [(grid.x(j), y + c * 0.2) for j in places], c, c * 0.6)


def _vector(
    canvas: Canvas, step: StepRecord, name: str, state: State, grid: Grid, y: float
) -> None:
    """Draw a vector with its name, and an outline around entries that the statement changed."""
    c, written = grid.cell, name == step.output
    shows = _with_arrow(step, name, _short(name))
    canvas.words(2, y + c * 0.5 + 5, shows, 15, _WRITTEN if written else "")
    places = [(grid.x(j), y) for j in range(state.size)]
    _cells(canvas, state, places, c)
    if written:
        before = step.before[name]
        canvas.squares("changed", [places[j] for j in _changed(before, state)], c, c)
    canvas.grow_to(grid.x(state.size), 0)


def _changed(before: State, after: State) -> list[int]:
    old, new = before.to_dict(), after.to_dict()
    return [j for j in range(after.size) if old.get(j) != new.get(j) or (j in old) != (j in new)]


def _cells(canvas: Canvas, state: State, places: list[tuple[float, float]], c: float) -> None:
    """Draw the cells of a vector."""
    entries = state.to_dict()
    looks: dict[str, list[tuple[float, float]]] = {"none": [], "entry": [], "zero": []}
    for j, place in enumerate(places):
        looks["none" if j not in entries else "entry" if entries[j] else "zero"].append(place)
    for style, corners in looks.items():
        canvas.squares(style, corners, c, c)
    for j, value in entries.items():
        x, y = places[j]
        word = fitting(value)
        size = min(max(c * 0.5, min(c * 0.8, 14)), 1.5 * c / len(word), 16)
        bold = "" if value else ' font-weight="700"'
        canvas.words(x + c / 2, y + c / 2 + size * 0.36, word, size, f'text-anchor="middle"{bold}')


def _short(name: str) -> str:
    return name if len(name) <= 19 else name[:18] + "\u2026"


def step_html(step: StepRecord) -> str:
    """Return a step as HTML for a notebook: the drawing, or text if it would be too large."""
    sizes = [state.size for state in step.vectors.values()]
    sizes += [n for A in step.matrices.values() for n in A.shape]
    head = f"<div><code>{text(step.formula)}</code> <small>{text(_head(step))}</small></div>"
    if max(sizes, default=0) > LARGEST:
        return f"<pre>{text(repr(step))}</pre>"
    return f"<div style='background:#fff;color:{INK}'>{head}{draw(step)}</div>"


def _head(step: StepRecord) -> str:
    where = f"level {step.level}, " if step.level >= 0 else ""
    return f"step {step.number}, {where}{step.place}"
