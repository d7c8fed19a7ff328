"""Pictures of matrices, vectors, masks, products and searches, for lectures and notebooks.

Each function takes lagpu objects of any backend and returns Matplotlib `Axes` (or a `Figure` with
several panels): those given as ``ax=``, by default those of a new figure. The extra ``viz`` is
required (``pip install "lagpu[viz]"``), else they raise `BackendUnavailable`. No entry and an
explicit zero never look the same, and colour-blind readers can distinguish the colours (Okabe and
Ito 2008).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lagpu.core import Matrix, Vector
from lagpu.core.expr import Call, Mask, format_formula, mark_used
from lagpu.core.views import SelectionMatrix, TransposedMatrix
from lagpu.draw import look
from lagpu.draw.look import AS_IT_IS, LABEL, Array, AxesCanvas, axes, pyplot, save
from lagpu.draw.shapes import Cells, edges, places, triplets, vertices
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.operations import Multiply, MultiplySelection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw", "frontier", "frontiers", "graph", "level_histogram",
    "mask", "matrix", "product", "save", "vector",
]  # fmt: skip

_LONGEST = 40  # cells of a vector
_CELLS = 20  # most rows and columns for which values are written
_SQUARES = 120  # most rows and columns for which each entry is a square
_BINS = 128  # most rows and columns of a density
_FETCHED = 100_000_000  # most entries that are fetched for a density: 1.6 GB
_VERTICES, _EDGES, _LABELLED = 500, 5000, 60
_PANELS = 12


def _refuse_larger(what: str, found: int, most: int, unit: str, remedy: str) -> None:
    if found > most:
        raise InvalidValue(f"viz.{what}: {found:,} {unit} > {most:,}. {remedy}")


def _entries(A: Any, what: str) -> tuple[Matrix, Array, Array, Array]:
    """Return a matrix, also made of a view, with its triplets, or raise if it is too large."""
    if not isinstance(A, Matrix | TransposedMatrix | SelectionMatrix):
        raise DomainMismatch(f"viz.{what}: {type(A).__name__} is not a Matrix. Give one.")
    _refuse_larger(what, A.nvals, _FETCHED, "entries", "Draw a part of it, or a smaller graph.")
    stored = A if isinstance(A, Matrix) else A.new(name=A.name)
    return stored, *stored.to_coo()


# ---- matrices
def matrix(A: Matrix | TransposedMatrix | SelectionMatrix, *, ax: Axes | None = None) -> Axes:
    """Draw the pattern of a matrix, and values if it is small.

    Parameters
    ----------
    A : Matrix, its transpose or a selection, (m, n)
        Up to 20 rows and columns each entry is a cell with its value; up to 120 it is a square,
        hollow if the value is zero; beyond that, the picture is the number of entries in each of
        at most 128 x 128 parts.

    Raises
    ------
    DomainMismatch
        If `A` is not a matrix.
    InvalidValue
        If `A` has more than 100 million entries.
    """
    A, rows, cols, values = _entries(A, "matrix")
    largest = max(A.nrows, A.ncols)
    if largest <= _CELLS:
        return _matrix_cells(A, ax)
    canvas = AxesCanvas(axes(ax, 5, 5))
    if largest <= _SQUARES:
        full = look.ENTRY._replace(face=look.BLUE, edge="none")
        hollow = look.ZERO._replace(name="entry-zero", dashed=False)
        for kind, side, which in ((full, 0.84, values != 0), (hollow, 0.62, values == 0)):
            centres = list(zip(cols[which].tolist(), rows[which].tolist(), strict=True))
            canvas.squares(kind, centres, (side, side), kind.name)
        canvas.plane(A.shape)
    else:
        _density(canvas, A.shape, rows, cols)
    title = f"{A.name}: {A.nrows:,} x {A.ncols:,}, {A.nvals:,} entries"
    canvas.ax.set_title(title, fontsize=11, **AS_IT_IS)
    return canvas.ax


def _matrix_cells(A: Matrix, ax: Axes | None) -> Axes:
    canvas = AxesCanvas(axes(ax, max(4.5, 1.2 + 0.42 * A.ncols), 1.3 + 0.42 * A.nrows))
    grid = Cells(A.name, A.nrows, A.ncols).fill(triplets(A))
    x, y = _name_place(A.name)
    canvas.bare(-1.4, A.ncols - 0.3, y - 0.5, A.nrows - 0.3)
    grid.draw(canvas)
    grid.number(canvas)
    canvas.words((x, y), A.name, canvas.font(1)[0])
    canvas.legend(grid.kinds)
    return canvas.ax


def _name_place(name: str) -> tuple[float, float]:
    """Return the middle of a matrix's name: in the corner, a longer one above the numbers."""
    return (-0.9, -0.9) if len(name) <= 3 else (0.15 * len(name) - 0.5, -1.6)


def _density(canvas: AxesCanvas, shape: tuple[int, int], rows: Array, cols: Array) -> None:
    """Draw the number of entries in each part; parts without entries are white."""
    from matplotlib.colors import LogNorm

    nrows, ncols = max(shape[0], 1), max(shape[1], 1)
    tall, wide = min(nrows, _BINS), min(ncols, _BINS)
    part = rows * tall // nrows * wide + cols * wide // ncols
    counts = np.bincount(part, minlength=tall * wide).reshape(tall, wide)
    how: Any = {"cmap": "viridis_r", "interpolation": "nearest", "aspect": "equal"}
    how |= {"norm": LogNorm(1, max(int(counts.max(initial=0)), 2)), "gid": "density"}
    extent = (-0.5, ncols - 0.5, nrows - 0.5, -0.5)
    image = canvas.ax.imshow(np.ma.masked_equal(counts, 0), extent=extent, **how)
    canvas.plane(shape)
    label = f"entries in {-(-nrows // tall):,} x {-(-ncols // wide):,} positions, white: none"
    _colour_bar(canvas.ax, image, label, shrink=0.8, pad=0.03, format="{x:,.0f}")


def _colour_bar(ax: Axes, scale: Any, label: str, **more: Any) -> None:
    figure: Any = ax.get_figure()
    bar = figure.colorbar(scale, ax=ax, **more)
    bar.set_label(label, size=LABEL)
    bar.ax.tick_params(labelsize=LABEL)


# ---- vectors and masks
def vector(*vectors: Vector, ax: Axes | None = None) -> Axes:
    """Draw vectors as rows of cells: blank without an entry, dashed where an entry is zero.

    Parameters
    ----------
    *vectors : Vector, (n,), n <= 40
        One vector, or several of one size, drawn below one another.

    Raises
    ------
    DomainMismatch, DimensionMismatch
        If an argument is not a vector, or the vectors differ in size.
    InvalidValue
        If the vectors are too long for a picture, or there is none.
    """
    for v in vectors:
        if not isinstance(v, Vector):
            remedy = "See viz.matrix." if isinstance(v, Matrix) else "Give a Vector."
            raise DomainMismatch(f"viz.vector: {type(v).__name__} is not a Vector. {remedy}")
    return _below_one_another([_cells(v, "vector") for v in vectors], "vector", ax)


def mask(*masks: Mask, ax: Axes | None = None) -> Axes:
    """Draw masks: a vector or matrix, and below it the positions that each mask keeps.

    Parameters
    ----------
    *masks : Mask, (n,), n <= 40, or (m, n), both <= 20
        ``v.S``, ``v.V``, ``~v.S`` or ``~v.V``, or masks of a matrix; a vector is drawn once for
        all its masks that follow.

    Raises
    ------
    DomainMismatch, DimensionMismatch
        If an argument is not a mask, or the masks differ in size.
    InvalidValue
        If the masks are too long for a picture, or there is none.
    """
    grids: list[Cells] = []
    source = None
    for m in masks:
        if not isinstance(m, Mask):
            raise DomainMismatch(f"viz.mask: {type(m).__name__} is not a mask. Write v.S or ~v.V.")
        if m.vector is not source:
            source = m.vector
            grids.append(_cells(source, "mask"))
        lets = Cells(format_formula(m.formula), grids[-1].nrows, grids[-1].ncols)
        lets.cells = dict.fromkeys(np.ndindex(lets.nrows, lets.ncols), (look.OUT, ""))
        lets.cells |= {(i, j): (look.KEPT, "") for i, j, _ in triplets(m.new())}
        grids.append(lets)
    return _below_one_another(grids, "mask", ax)


def _cells(x: Vector | Matrix, what: str) -> Cells:
    if isinstance(x, Vector):
        _refuse_larger(what, x.size, _LONGEST, "cells", "Draw a part, such as v[:20].new().")
    else:
        remedy = "Draw a part, such as A[:20, :20].new()."
        _refuse_larger(what, max(x.shape), _CELLS, "rows or columns", remedy)
    return Cells(x.name, *(x.shape if isinstance(x, Matrix) else (1, x.size))).fill(triplets(x))


def _below_one_another(grids: list[Cells], what: str, ax: Axes | None) -> Axes:
    """Draw grids of cells with their names, and indices above the first."""
    if not grids:
        raise InvalidValue(f"viz.{what}: there is nothing to draw. Give at least one.")
    first = grids[0]
    for grid in grids:
        if first.nrows == grid.nrows == 1 and first.ncols != grid.ncols:
            raise DimensionMismatch(
                f"viz.{what}: {first.name}.size {first.ncols} != {grid.name}.size {grid.ncols}."
            )
        if (first.nrows, first.ncols) != (grid.nrows, grid.ncols):
            raise DimensionMismatch(
                f"viz.{what}: {first.name} has {first.nrows} x {first.ncols} cells != "
                f"{grid.nrows} x {grid.ncols} of {grid.name}. Draw them separately."
            )
    tall = first.nrows > 1
    right = -1.6 if tall else -0.8  # of the names; between them and the cells are row numbers
    left = right - 0.3 - 0.28 * max(len(grid.name) for grid in grids)
    step = first.nrows + 0.35
    bottom = step * len(grids) - 0.65
    wide, high = max(5.5, 0.42 * (first.ncols - left)), 0.42 * (bottom + 1.2) + 0.9
    canvas = AxesCanvas(axes(ax, wide, high))
    canvas.bare(left, first.ncols - 0.3, -1.2, bottom)
    for k, grid in enumerate(grids):
        grid.y = step * k
        grid.draw(canvas)
        grid.number(canvas, rows=tall, cols=grid is first)
        middle = right, grid.at((grid.nrows - 1) / 2, 0)[1]
        canvas.words(middle, grid.name, canvas.font(1)[0], align="right")
    canvas.legend([kind for grid in grids for kind in grid.kinds])
    return canvas.ax


# ---- products
def product(
    call: Call, *, mask: Mask | None = None, layout: str = "aligned",
    name: str = "w", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw one product of a vector and a small matrix, with its result.

    Cells in strong colour are the entries of the vector and the entries of the matrix that they
    multiply; columns (for ``A @ u`` rows) that the mask does not keep are hatched.

    Parameters
    ----------
    call : Call
        The deferred product, such as ``semiring.any_pair(q @ A)``; at most 20 rows and columns.
    mask : Mask, optional
        The mask of the result.
    layout : str
        ``"aligned"`` draws the vector along the rows that it multiplies, and the result along the
        columns; ``"equation"`` draws vector, matrix and result side by side.
    name : str
        Name of the result.

    Raises
    ------
    DomainMismatch
        If `call` is not the product of a vector and a matrix.
    InvalidValue
        If the matrix is too large for a picture, or there is no such layout.

    Notes
    -----
    The product is computed by the backend of the operands; the picture shows the result.
    """
    mark_used(call)  # one error is enough
    operation = call.operation if isinstance(call, Call) and len(call.shape) == 1 else None
    if not isinstance(operation, (Multiply, MultiplySelection)):
        raise DomainMismatch(
            f"viz.product: {call!r} is not a product of a vector and a matrix. "
            "Give one such as semiring.any_pair(q @ A)."
        )
    if layout not in _LAYOUTS:
        known = tuple(_LAYOUTS)
        raise InvalidValue(f"viz.product: there is no layout {layout!r}. Use one of {known}.")
    left, right = call.formula[0], call.formula[2]
    largest = max(*left.shape, *right.shape)
    _refuse_larger("product", largest, _CELLS, "rows or columns", "Use a small graph.")
    pyplot()
    row = isinstance(left, Vector)
    u, w, A = _product_cells(left, right, call.new(mask=mask, name=name), mask)
    numbered, (first, last, top, bottom), signs = _LAYOUTS[layout](u, w, A, row)
    around = 1.7 if layout == "equation" else 1.1  # inches of title and legend
    canvas = AxesCanvas(axes(ax, max(5.5, 0.42 * (last - first)), 0.42 * (bottom - top) + around))
    canvas.bare(first, last, top, bottom)
    for grid in (u, A, w):
        grid.draw(canvas)
    for grid in numbered:
        grid.number(canvas, rows=grid.nrows > 1, cols=grid.ncols > 1)
    for place, text in signs:
        canvas.words(place, text, canvas.font(1)[0] * (1.4 if text in ("@", "=") else 1))
    under = "" if mask is None else f"({format_formula(mask.formula)}, replace)"
    title = f"{name}{under} << {operation.product.semiring.name}({left.name} @ {right.name})"
    canvas.ax.set_title(title, fontsize=10, family="monospace", **AS_IT_IS)
    label = f"{'row' if row else 'column'} of an entry of {u.name}"
    order = ("used", "touched", "entry", "zero", "out", "result", "none")
    kinds = {kind.name: kind for grid in (u, A, w) for kind in grid.kinds}
    if "touched" in kinds:
        kinds["touched"] = look.TOUCHED._replace(label=label)
    canvas.legend([kinds[each] for each in order if each in kinds])
    return canvas.ax


def _product_cells(left: Any, right: Any, result: Vector, mask: Mask | None) -> list[Cells]:
    """Return the cells of the vector and of the result, both as rows, and of the matrix."""
    row = isinstance(left, Vector)
    factor, A = (left, right) if row else (right, left)
    kept = set(range(result.size) if mask is None else mask.new().to_coo()[0].tolist())
    u, w = Cells(factor.name, 1, factor.size), Cells(result.name, 1, result.size)
    for _, i, x in triplets(factor):
        u.put(0, i, look.USED, x)
    for j in set(range(result.size)) - kept:
        w.put(0, j, look.OUT)
    for _, j, x in triplets(result):
        w.put(0, j, look.RESULT, x)
    entries = list(triplets(_entries(A, "product")[0]))
    grid, values = Cells(A.name, *A.shape).fill(entries), {(i, j): x for i, j, x in entries}
    for i, j in np.ndindex(A.shape):
        begin, end = (i, j) if row else (j, i)
        x = values.get((i, j))
        if end not in kept:
            grid.put(i, j, look.OUT, x)
        elif (0, begin) in u.cells:
            grid.put(i, j, look.TOUCHED if x is None else look.USED, x)
    return [u, w, grid]


# The grids with numbers; left, right, top, bottom of the picture; texts with their places.
_Placed = tuple[Sequence[Cells], tuple[float, ...], list[tuple[look.Point, str]]]


def _equation(u: Cells, w: Cells, A: Cells, row: bool) -> _Placed:
    """Place the grids side by side, with signs between them."""
    if not row:
        u.turn()
        w.turn()
    x = 0.0
    signs: list[tuple[look.Point, str]] = []
    grids = (u, A, w) if row else (A, u, w)
    tall = max(grid.nrows for grid in grids)
    for grid, sign in zip(grids, ("@", "=", ""), strict=True):
        grid.x, grid.y = x, (tall - grid.nrows) / 2
        above = 1.55 if grid.ncols > 1 else 0.95
        signs.append(((x + (grid.ncols - 1) / 2, grid.y - above), grid.name))
        x += grid.ncols + 1.8
        signs.append(((x - 1.7, (tall - 1) / 2), sign))
    return grids, (-0.9, x - 2, -1.9, tall - 0.3), signs


def _aligned(u: Cells, w: Cells, A: Cells, row: bool) -> _Placed:
    """Place the vector along the lines that it multiplies, and the result along the others."""
    x, y = _name_place(A.name)
    if row:  # the vector left of the rows; the result below the columns
        u.turn()
        u.x, w.y = -2.6, A.nrows + 0.6
        extent = (-4.0, A.ncols - 0.3, y - 0.7, A.nrows + 1.3)
    else:  # above the columns; right of the rows
        w.turn()
        u.y, w.x = -2.4, A.ncols + 0.6
        extent = (-1.4, A.ncols + 1.3, -3.2, A.nrows - 0.3)
    upright, flat = (u, w) if row else (w, u)
    beside = -0.8 - 0.15 * len(flat.name)  # the middle of a name that ends left of the cells
    names = [((upright.x, -0.9), upright.name), ((beside, flat.y), flat.name), ((x, y), A.name)]
    return (A,), extent, names


_LAYOUTS = {"aligned": _aligned, "equation": _equation}


# ---- searches
def frontier(A: Matrix, levels: Vector, depth: int, *, ax: Axes | None = None) -> Axes:
    """Draw one level of a search on the adjacency matrix.

    Rows of the frontier are blue; columns of vertices that already have a level are grey, which is
    the mask. An entry where a blue row crosses a white column leads to a new vertex, and is red.

    Parameters
    ----------
    A : Matrix, (n, n), n <= 120
        The graph.
    levels : Vector, (n,)
        Levels of a finished search, as `lagpu.algorithms.bfs_levels` returns them.
    depth : int
        The level whose vertices are the frontier.

    Raises
    ------
    DimensionMismatch, DomainMismatch
        If `levels` are not levels of this graph.
    InvalidValue
        If the graph is too large for a picture, or the search has no such level.
    """
    rows, cols, level, _ = _searched(A, levels, [depth], "frontier")
    ax = axes(ax, 5, 5.4)
    _panel(ax, level, rows, cols, depth)
    AxesCanvas(ax).legend(_PANEL_KINDS)
    return ax


def frontiers(A: Matrix, levels: Vector, depths: Iterable[int] | None = None) -> Figure:
    """Draw all levels of a search side by side; see `frontier`.

    Parameters
    ----------
    A : Matrix, (n, n), n <= 120
        The graph.
    levels : Vector, (n,)
        Levels of a finished search.
    depths : iterable of int, optional
        The levels to draw, at most 12; by default all.

    Returns
    -------
    Figure

    Raises
    ------
    DimensionMismatch, DomainMismatch, InvalidValue
        As `frontier` raises them; also for more than 12 levels.
    """
    plt = pyplot()
    rows, cols, level, shown = _searched(A, levels, depths, "frontiers")
    wide = min(math.ceil(len(shown) ** 0.5), 4)
    tall = math.ceil(len(shown) / wide)
    size = max(3.1 * wide, 6), 3.5 * tall
    figure, panels = plt.subplots(tall, wide, figsize=size, layout="constrained", squeeze=False)
    for ax, depth in zip(panels.flat, shown, strict=False):
        _panel(ax, level, rows, cols, depth)
    for ax in panels.flat[len(shown) :]:
        ax.set_axis_off()
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.06)
    look.legend(figure, _PANEL_KINDS, "outside lower center", 2 if wide > 2 else 1)
    return figure


def _searched(
    A: Matrix, levels: Vector, depths: Iterable[int] | None, what: str
) -> tuple[Array, Array, Array, list[int]]:
    """Return rows and columns of the entries, the level of each vertex, and the depths to draw."""
    size = max(getattr(A, "shape", (0,)))
    _refuse_larger(what, size, _SQUARES, "vertices", "Use viz.level_histogram, or a smaller graph.")
    A, rows, cols, _ = _entries(A, what)
    level = _level_array(what, A, levels)
    count = int(level.max(initial=-1)) + 1
    shown = list(range(count) if depths is None else depths)
    _refuse_larger(what, len(shown), _PANELS, "levels", "Choose some with depths=.")
    if not (count and shown):
        raise InvalidValue(f"viz.{what}: no vertex has a level. Give levels of a search.")
    for depth in shown:
        if depth not in range(count):
            remedy = f"Use one of 0 .. {count - 1}."
            raise InvalidValue(f"viz.{what}: there is no level {depth}. {remedy}")
    return rows, cols, level, shown


def _require_integers(what: str, levels: Vector) -> None:
    if not isinstance(levels, Vector) or levels.dtype.is_float or levels.dtype.is_bool:
        raise DomainMismatch(f"viz.{what}: levels are a Vector of integers. See bfs_levels.")


def _level_array(what: str, A: Matrix, levels: Vector) -> Array:
    """Return each vertex's level, or -1, after checks against the graph."""
    _require_integers(what, levels)
    if not A.nrows == A.ncols == levels.size:
        raise DimensionMismatch(
            f"viz.{what}: {A.nrows} x {A.ncols} matrix != {levels.size} levels. "
            "Give the levels of this graph."
        )
    return levels.to_dense(-1, "INT64")


_PANEL_KINDS = (
    look.TOUCHED._replace(label="row of a vertex of the frontier"),
    look.VEIL._replace(label="column of a vertex that has a level: masked"),
    look.USED._replace(label="edge to a new vertex"),
    look.DROP,
    look.IDLE,
)


def _panel(ax: Axes, level: Array, rows: Array, cols: Array, depth: int) -> None:
    """Draw one level: bands of rows and columns, then entries coloured by their end."""
    canvas, front = AxesCanvas(ax), level == depth
    unseen = (level < 0) | (level > depth)
    new = Cells("A", len(level), len(level)).pattern(canvas, rows, cols, front, unseen)
    canvas.plane((len(level), len(level)))
    count = int(front.sum())
    title = f"level {depth}: {count} {'vertex' if count == 1 else 'vertices'}, "
    ax.set_title(f"{title}{len(np.unique(cols[new]))} new", fontsize=LABEL, color=look.INK)


def level_histogram(levels: Vector, *, ax: Axes | None = None) -> Axes:
    """Draw how many vertices each level has, and how many vertices have no level.

    Parameters
    ----------
    levels : Vector, (n,), of integers
        Levels of a search, of any size.

    Raises
    ------
    DomainMismatch
        If `levels` are not integers from 0.
    """
    pyplot()
    _require_integers("level_histogram", levels)
    values = levels.to_coo()[1].astype(np.int64)
    if values.min(initial=0) < 0:
        raise DomainMismatch(f"viz.level_histogram: level {values.min()} < 0. Levels begin at 0.")
    from matplotlib.ticker import MaxNLocator

    counts = np.bincount(values)
    n, without = len(counts), levels.size - len(values)
    few = n <= 20
    ax = axes(ax, 6.4 if 10 < n <= 20 else 5.2, 3)
    colours = look.level_colours(n) if few else look.BLUE
    for depth, bar in enumerate(ax.bar(range(n), counts, width=0.8 if few else 1.0, color=colours)):
        bar.set_gid(f"level-{depth}")
    if without:
        place, width = (n + 0.2, 0.8) if few else (1.03 * n, max(1.0, 0.02 * n))
        style = {"color": "white", "edgecolor": look.MUTED, "hatch": "////"}
        ax.bar([place], [without], width, label="no level", gid="no-level", **style)
        ax.legend(frameon=False, fontsize=LABEL)
    if few:
        ax.set_xticks(range(n))
        for container in ax.containers:
            ax.bar_label(container, fmt="{:,.0f}", fontsize=LABEL, padding=2)
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.set_xlabel("level: edges from the source", fontsize=LABEL)
    ax.set_ylabel("vertices", fontsize=LABEL)
    ax.tick_params(labelsize=LABEL)
    ax.margins(y=0.12)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


# ---- graphs
def graph(
    A: Matrix, levels: Vector | None = None, *, parents: Vector | None = None,
    layout: Any = None, labels: bool | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw a graph of up to a few hundred vertices, coloured by level.

    Parameters
    ----------
    A : Matrix, (n, n), n <= 500
        Entry (i, j) is the edge i -> j; a symmetric matrix is drawn without arrows. At most 5000
        edges.
    levels : Vector, (n,), optional
        Levels of a search; a vertex without a level is white.
    parents : Vector, (n,), optional
        Parents of a search; the edges of this tree are drawn thick.
    layout : array_like, (n, 2), or str, optional
        Positions of the vertices; ``"levels"`` puts each level in a column. By default distances
        in the plane follow distances in the graph (see Notes); the same in each run.
    labels : bool, optional
        Whether to write vertex numbers; by default if there are at most 60 vertices.

    Raises
    ------
    DimensionMismatch, DomainMismatch
        If the matrix is not square, or levels or parents are not those of this graph.
    InvalidValue
        If the graph is too large for a picture, or the layout is wrong.

    Notes
    -----
    The default layout is stress majorization. Source: Gansner, Koren and North 2004.
    """
    remedy = "Draw viz.matrix(A), or a smaller graph."
    _refuse_larger("graph", max(getattr(A, "shape", (0,))), _VERTICES, "vertices", remedy)
    _refuse_larger("graph", getattr(A, "nvals", 0), 2 * _EDGES, "entries", remedy)
    A, rows, cols, _ = _entries(A, "graph")
    n, symmetric = A.nrows, bool(A.is_symmetric)
    if n != A.ncols:
        raise DimensionMismatch(f"viz.graph: {n} rows != {A.ncols} columns. A graph is square.")
    level = None if levels is None else _level_array("graph", A, levels)
    above = np.full(n, -1) if parents is None else _level_array("graph", A, parents)
    at = _graph_places(n, rows, cols, level, layout)
    labels = n <= _LABELLED if labels is None else labels
    radius = 9.1 if labels else max(12, min(120, 5000 / max(n, 1))) ** 0.5 / 2
    canvas = AxesCanvas(axes(ax, 5.2, 6))
    in_tree = (above[cols] == rows) | (symmetric & (above[rows] == cols))
    once = rows <= cols if symmetric else np.ones(len(rows), bool)
    for line, which in ((look.EDGE, once & ~in_tree), (look.TREE, once & in_tree)):
        edges(canvas, line, at, rows[which], cols[which], radius, not symmetric)
    if in_tree.any():
        style = {"color": look.TREE.colour, "lw": look.TREE.width}
        canvas.ax.plot([], [], label="tree of parents", **style)
    _graph_vertices(canvas, at, level, radius, labels)
    canvas.ax.set_axis_off()
    canvas.ax.margins(0.08)
    if not isinstance(layout, str):
        canvas.ax.set_aspect("equal")
    return canvas.ax


draw = graph  # the name in python-graphblas


def _graph_places(n: int, rows: Array, cols: Array, level: Array | None, layout: Any) -> Array:
    """Return the position (x, y) of each vertex in the given layout."""
    if isinstance(layout, str):
        if layout != "levels" or level is None:
            raise InvalidValue(
                f"viz.graph: layout {layout!r} is not 'levels', or levels= is missing. "
                "Give both, or an array of positions."
            )
        # Columns, one for each level; vertices without a level are in the last.
        column = np.where(level < 0, level.max(initial=-1) + 1.5, level)
        found = np.zeros((len(level), 2))
        for x in np.unique(column):
            (here,) = np.nonzero(column == x)
            found[here, 0] = x
            found[here, 1] = np.linspace(0, -1, len(here) + 2)[1:-1] * len(here) ** 0.5
            found[here, 1] -= found[here, 1].mean()
        return found
    if layout is not None:
        given = np.asarray(layout, dtype=float)
        if given.shape != (n, 2) or not np.isfinite(given).all():
            fact = f"layout has shape {given.shape} != ({n}, 2), or is not finite"
            raise InvalidValue(f"viz.graph: {fact}.")
        return given
    return places(rows, cols, n)


def _graph_vertices(
    canvas: AxesCanvas, at: Array, level: Array | None, radius: float, labels: bool
) -> None:
    """Draw dots coloured by level, white without a level, with a legend or a colour bar."""
    most = -1 if level is None else int(level.max(initial=-1))
    colours = look.level_colours(most + 1)
    without = look.Kind("no-level", "no level", "white", look.MUTED)
    kinds = [without if level is not None else without._replace(face=look.ENTRY.face)]
    for depth, colour in enumerate(colours):
        dark = np.dot(colour[:3], (0.299, 0.587, 0.114)) < 0.5
        ink = "white" if dark else look.INK
        kinds.append(look.Kind(f"level-{depth}", f"level {depth}", colour, look.MUTED, ink))
    of = np.zeros(len(at), int) if level is None else level + 1
    vertices(canvas, kinds, of, at, radius, LABEL if labels else 0)
    if level is None:
        return
    if most < 12:
        style = {"frameon": False, "fontsize": LABEL, "markerscale": min(1, 70**0.5 / (2 * radius))}
        canvas.ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, **style)
        return
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.ticker import MaxNLocator

    shades = ScalarMappable(Normalize(-0.5, most + 0.5), ListedColormap(colours))
    _colour_bar(canvas.ax, shades, "level", shrink=0.6, ticks=MaxNLocator(8, integer=True))
