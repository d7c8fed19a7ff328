"""Grids of cells, in which small matrices, vectors and products are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lagpu.host.display import short
from lagpu.viz.style import AS_IT_IS, BLUE, GREEN, GREY, INK, LABEL, MUTED, ORANGE, PALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INDEX = 0.9  # size of an index, relative to the text of a cell


class Kind(NamedTuple):
    """The style of one kind of cell.

    Attributes
    ----------
    name : str
        End of the cell's id in an SVG: ``A-2-3-entry``.
    label : str
        Text in the legend.
    face, edge, ink : str
        Colours of the square, its border and its text.
    hatch, line : str
        Matplotlib's patterns of the square and of its border.
    """

    name: str
    label: str
    face: str
    edge: str
    ink: str = INK
    hatch: str = ""
    line: str = "solid"


NONE = Kind("none", "no entry", "white", PALE)
ENTRY = Kind("entry", "entry", "#CFE5F5", BLUE)
ZERO = Kind("zero", "entry that is zero", "white", ORANGE, "#8A5200", line="dashed")
USED = Kind("used", "entry that takes part", BLUE, BLUE, "white")
TOUCHED = Kind("touched", "row of an entry", "#EAF4FB", "#D3E6F3")
RESULT = Kind("result", "result", "#BFE6DA", GREEN)
KEPT = Kind("kept", "kept by the mask", "#BFE6DA", GREEN)
OUT = Kind("out", "not kept by the mask", "#F6F6F6", GREY, MUTED, "////")


def entry(value: Any) -> Kind:
    """Return the kind of an entry of this value."""
    return ZERO if value == 0 else ENTRY


class CellGrid:
    """A grid of cells at a place in the axes, rows downward.

    Parameters
    ----------
    name : str
        Name of the object, with which the ids of its cells begin.
    nrows, ncols : int
        Shape.
    x, y : float
        Centre of cell (0, 0).
    """

    def __init__(self, name: str, nrows: int, ncols: int, x: float = 0, y: float = 0) -> None:
        self.name = name
        self.nrows, self.ncols = nrows, ncols
        self.x, self.y = x, y
        self.cells: dict[tuple[int, int], tuple[Kind, str]] = {}

    def put(self, i: int, j: int, kind: Kind, value: Any = None) -> None:
        """Set the kind and the value of cell (i, j); other cells have no entry."""
        self.cells[int(i), int(j)] = (kind, "" if value is None else short(value))

    @property
    def kinds(self) -> list[Kind]:
        """The kinds that occur, each once."""
        found = [kind for kind, _ in self.cells.values()]
        if len(self.cells) < self.nrows * self.ncols:
            found.append(NONE)
        return list(dict.fromkeys(found))

    def draw(self, ax: Axes, fontsize: float) -> None:
        """Draw every cell, and a frame around the grid."""
        from matplotlib.patches import Rectangle

        for i in range(self.nrows):
            for j in range(self.ncols):
                kind, text = self.cells.get((i, j), (NONE, ""))
                x, y = self.x + j, self.y + i
                self._square(ax, x, y, kind, f"{self.name}-{i}-{j}-{kind.name}")
                if text:
                    size = fontsize * min(1, 3.6 / len(text))
                    ax.text(
                        x, y, text, ha="center", va="center_baseline", color=kind.ink,
                        fontsize=size, zorder=5,
                    )  # fmt: skip
        outline = Rectangle(
            (self.x - 0.5, self.y - 0.5), self.ncols, self.nrows,
            fill=False, edgecolor=MUTED, linewidth=1, zorder=4, gid=f"{self.name}-frame",
        )  # fmt: skip
        ax.add_patch(outline)

    def _square(self, ax: Axes, x: float, y: float, kind: Kind, gid: str) -> None:
        from matplotlib.patches import Rectangle

        plain = kind in (NONE, TOUCHED)
        half = 0.5 if plain else 0.46  # smaller, so that neighbours do not hide the border
        square = Rectangle(
            (x - half, y - half), 2 * half, 2 * half,
            facecolor=kind.face, edgecolor=kind.edge, hatch=kind.hatch,
            linewidth=1.6 if kind is ZERO else 0.8, linestyle=kind.line,
            zorder=1 if plain else 2, gid=gid,
        )  # fmt: skip
        ax.add_patch(square)

    def number(self, ax: Axes, fontsize: float, *, rows: bool = True, cols: bool = True) -> None:
        """Write the indices on the left of the rows and above the columns."""
        style = {"ha": "center", "va": "center", "color": MUTED, "fontsize": INDEX * fontsize}
        for i in range(self.nrows * rows):
            ax.text(self.x - 0.85, self.y + i, str(i), **style)
        for j in range(self.ncols * cols):
            ax.text(self.x + j, self.y - 0.85, str(j), **style)


def bare(ax: Axes, left: float, right: float, top: float, bottom: float) -> float:
    """Show this part of the plane without axes, rows downward; return the font size of a cell."""
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    ax.set_aspect("equal")
    ax.set_axis_off()
    figure: Any = ax.get_figure()
    box, dots = ax.get_window_extent(), figure.dpi / 72
    cell = min(box.width / (right - left), box.height / (bottom - top)) / dots
    return float(min(12, max(4, 0.44 * cell)))


def legend(ax: Axes, kinds: Sequence[Kind]) -> None:
    """Draw a legend of kinds of cells below the picture, in as many columns as fit."""
    if not kinds:  # a matrix without cells
        return
    from matplotlib.patches import Patch

    figure: Any = ax.get_figure()
    room = ax.get_window_extent().width / figure.dpi
    widest = max(0.5 + 0.075 * len(kind.label) for kind in kinds)  # inches, about
    columns = max(1, min(3, int(1.25 * room / widest)))

    patches = [
        Patch(
            facecolor=k.face, edgecolor=GREY if k is NONE else k.edge, hatch=k.hatch,
            linestyle=k.line, label=k.label,
        )
        for k in dict.fromkeys(kinds)
    ]  # fmt: skip
    made = ax.legend(
        handles=patches, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=columns,
        frameon=False, fontsize=LABEL, handlelength=1.2, handleheight=1.2,
    )  # fmt: skip
    for label in made.get_texts():
        label.set(**AS_IT_IS)


def name_place(name: str) -> tuple[float, float]:
    """Return the middle of a matrix's name: in the corner, a longer one above the numbers."""
    return (-0.9, -0.9) if len(name) <= 3 else (0.15 * len(name) - 0.5, -1.6)
