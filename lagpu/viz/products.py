"""Draw a product as in textbooks: a row of cells times a square of cells is a row of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lagpu.core.expr import Call, Mask, format_formula, mark_used
from lagpu.core.vector import Vector
from lagpu.errors import DomainMismatch, InvalidValue
from lagpu.operations import Multiply, MultiplySelection
from lagpu.viz.cells import (
    ENTRY,
    INDEX,
    NONE,
    OUT,
    RESULT,
    TOUCHED,
    USED,
    ZERO,
    CellGrid,
    bare,
    legend,
    name_place,
)
from lagpu.viz.matrices import CELLS, entries
from lagpu.viz.style import AS_IT_IS, INK, MUTED, axes, pyplot, refuse_larger

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAYOUTS = ("aligned", "equation")

Extent = tuple[float, float, float, float]  # left, right, top, bottom
Sign = tuple[float, float, str, float]  # x, y, text, size relative to the text of a cell


def product(
    call: Call,
    *,
    mask: Mask | None = None,
    layout: str = "aligned",
    name: str = "w",
    ax: Axes | None = None,
) -> Axes:
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
    ax : Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    DomainMismatch
        If `call` is not the product of a vector and a matrix.
    InvalidValue
        If the matrix is too large for a picture, or there is no such layout.
    BackendUnavailable
        If Matplotlib is not installed.

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
    if layout not in LAYOUTS:
        raise InvalidValue(f"viz.product: there is no layout {layout!r}. Use one of {LAYOUTS}.")
    left, right = call.formula[0], call.formula[2]
    refuse_larger(
        "product", max(*left.shape, *right.shape), CELLS, "rows or columns", "Use a small graph."
    )
    pyplot()
    grids = _CellGrids(left, right, call.new(mask=mask, name=name), mask)
    put = grids.equation if layout == "equation" else grids.aligned
    extent, signs = put()
    left_edge, right_edge, top, bottom = extent
    ax = axes(ax, max(5.5, 0.42 * (right_edge - left_edge)), 0.42 * (bottom - top) + 1.1)
    size = bare(ax, *extent)
    for grid in grids.all:
        grid.draw(ax, size)
    for x, y, text, share in signs:
        colour = MUTED if text.isdigit() else INK
        how = {"ha": "center", "va": "center", "fontsize": share * size, "color": colour}
        ax.text(x, y, text, **how, **AS_IT_IS)
    under = "" if mask is None else f"({format_formula(mask.formula)})"
    op = operation.product.semiring.name
    title = f"{name}{under} << {op}({left.name} @ {right.name})"
    ax.set_title(title, fontsize=11, family="monospace", **AS_IT_IS)
    legend(ax, grids.kinds)
    return ax


class _CellGrids:
    """The three grids of a product: vector, matrix, result."""

    def __init__(self, left: Any, right: Any, w: Vector, mask: Mask | None) -> None:
        self.vector_first = isinstance(left, Vector)
        u, A = (left, right) if self.vector_first else (right, left)
        upright = not self.vector_first
        self.u = CellGrid(u.name, u.size, 1) if upright else CellGrid(u.name, 1, u.size)
        self.w = CellGrid(w.name, w.size, 1) if upright else CellGrid(w.name, 1, w.size)
        self.A = CellGrid(A.name, A.nrows, A.ncols)
        self.touched = set(u.to_coo()[0].tolist())
        self.kept = set(range(w.size) if mask is None else mask.new().to_coo()[0].tolist())
        self._fill_vectors(u, w)
        self._fill_matrix(A)

    @property
    def all(self) -> tuple[CellGrid, CellGrid, CellGrid]:
        """The grids from left to right."""
        return (self.u, self.A, self.w) if self.vector_first else (self.A, self.u, self.w)

    @property
    def kinds(self) -> list[Any]:
        """The kinds of cells for the legend, operands first."""
        line = "row" if self.vector_first else "column"
        found = [kind for grid in self.all for kind in grid.kinds]
        order = (USED, TOUCHED, ENTRY, ZERO, OUT, RESULT, NONE)
        named = TOUCHED._replace(label=f"{line} of an entry of {self.u.name}")
        return [named if kind is TOUCHED else kind for kind in order if kind in found]

    def _fill_vectors(self, u: Vector, w: Vector) -> None:
        for i, x in zip(*u.to_coo(), strict=True):
            self.u.put(*self._cell(i), USED, x)
        for j in set(range(w.size)) - self.kept:
            self.w.put(*self._cell(j), OUT)
        for j, x in zip(*w.to_coo(), strict=True):
            self.w.put(*self._cell(j), RESULT, x)

    def _cell(self, i: int) -> tuple[int, int]:
        """Return the cell of a vector's index: in a row, or in a column for ``A @ u``."""
        return (0, i) if self.vector_first else (i, 0)

    def _fill_matrix(self, A: Any) -> None:
        _, rows, cols, values = entries(A, "product")
        found = dict(zip(zip(rows.tolist(), cols.tolist(), strict=True), values, strict=True))
        for i in range(A.nrows):
            for j in range(A.ncols):
                meets, goes = (i, j) if self.vector_first else (j, i)
                x = found.get((i, j))
                if goes not in self.kept:
                    kind = OUT
                elif meets in self.touched:
                    kind = TOUCHED if x is None else USED
                elif x is None:
                    continue
                else:
                    kind = ZERO if x == 0 else ENTRY
                self.A.put(i, j, kind, x)

    def equation(self) -> tuple[Extent, list[Sign]]:
        """Place the grids side by side; return the extent and the signs between them."""
        x, signs = 0.0, []
        tall = max(grid.nrows for grid in self.all)
        for grid, sign in zip(self.all, ("@", "=", ""), strict=True):
            grid.x, grid.y = x, (tall - grid.nrows) / 2
            above = 1.55 if grid.ncols > 1 else 0.95
            signs.append((x + (grid.ncols - 1) / 2, grid.y - above, grid.name, 1.0))
            signs += _numbers(grid)
            x += grid.ncols + 2.2
            signs.append((x - 1.85, (tall - 1) / 2, sign, 1.4))
        return (-1.4, x - 2.4, -1.9, tall - 0.3), signs

    def aligned(self) -> tuple[Extent, list[Sign]]:
        """Place the vector along the lines that it multiplies; return the extent and the signs."""
        u, A, w = _transposed(self.u), self.A, self.w
        self.u = u
        x, y = name_place(A.name)
        if self.vector_first:  # left of the rows; the result below the columns
            u.x, w.y = -2.6, A.nrows + 0.6
            extent = (-4.0, A.ncols - 0.3, y - 0.7, A.nrows + 1.3)
            names = [(u.x, -0.9, u.name, 1.0), (_beside(w.name), w.y, w.name, 1.0)]
        else:  # above the columns; the result right of the rows
            u.y, w.x = -2.4, A.ncols + 0.6
            extent = (-1.4, A.ncols + 1.3, -3.2, A.nrows - 0.3)
            names = [(_beside(u.name), u.y, u.name, 1.0), (w.x, -0.9, w.name, 1.0)]
        return extent, [*names, *_numbers(A), (x, y, A.name, 1.0)]


def _beside(name: str) -> float:
    """Return the middle of a name that ends on the left of a row of cells."""
    return -0.8 - 0.15 * len(name)


def _transposed(grid: CellGrid) -> CellGrid:
    """Return a row as a column, a column as a row."""
    found = CellGrid(grid.name, grid.ncols, grid.nrows)
    found.cells = {(j, i): cell for (i, j), cell in grid.cells.items()}
    return found


def _numbers(grid: CellGrid) -> list[Sign]:
    """Return the indices of the rows and columns of a grid, if there are several."""
    rows = range(grid.nrows if grid.nrows > 1 else 0)
    cols = range(grid.ncols if grid.ncols > 1 else 0)
    return [(grid.x - 0.85, grid.y + i, str(i), INDEX) for i in rows] + [
        (grid.x + j, grid.y - 0.8, str(j), INDEX) for j in cols
    ]
