"""A canvas of Matplotlib's axes, legends and files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lagpu.draw.cells import EDGE, GREY, INK, MUTED, NONE, Array, Kind, Line, Point
from lagpu.errors import BackendUnavailable, DomainMismatch, FileMissing, InvalidValue

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Size of labels in points: 14 pixels where a page shows a picture at its own size.
LABEL = 10.5

#: For text with names, in which a dollar sign begins no formula.
AS_IT_IS: dict[str, Any] = {"parse_math": False}


def pyplot(what: str = "viz") -> Any:
    """Return ``matplotlib.pyplot``, or raise `BackendUnavailable`."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise BackendUnavailable(
            f'{what}: Matplotlib is missing ({error}). Install it with: pip install "lagpu[viz]"'
        ) from error
    return plt


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or new axes in a figure of this size in inches."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
    if not hasattr(ax, "add_patch"):
        raise DomainMismatch(f"viz: ax is {type(ax).__name__}, not Axes. Use plt.subplots().")
    return ax


def level_colours(count: int) -> list[Any]:
    """Return a colour for each of `count` levels, dark to light, distinct in grey too."""
    shades = pyplot().get_cmap("viridis")
    return [shades(x) for x in np.linspace(0.12, 0.97, max(count, 2))[:count]]


class Canvas:
    """Axes on which cells and graphs are drawn; a size of text is in points."""

    def __init__(self, ax: Axes) -> None:
        self.ax = ax

    def bare(self, left: float, right: float, top: float, bottom: float) -> None:
        """Show this part of the plane without axes, rows downward."""
        self.ax.set_xlim(left, right)
        self.ax.set_ylim(bottom, top)
        self.ax.set_aspect("equal")
        self.ax.set_axis_off()

    def plane(self, shape: tuple[int, int]) -> None:
        """Show rows downward and columns to the right, numbered above."""
        from matplotlib.ticker import MaxNLocator

        ax = self.ax
        ax.set_xlim(-0.5, max(shape[1], 1) - 0.5)
        ax.set_ylim(max(shape[0], 1) - 0.5, -0.5)
        ax.set_aspect("equal")
        ax.xaxis.tick_top()
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True))
        ax.tick_params(labelsize=LABEL, colors=MUTED, length=2)
        for spine in ax.spines.values():
            spine.set_color(MUTED)

    def squares(
        self, kind: Kind, centres: Sequence[Point], w: float, h: float, names: Sequence[str] | str
    ) -> None:
        """Draw rectangles of one size, each as a patch with its id, or as one collection."""
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        found = [Rectangle((x - w / 2, y - h / 2), w, h) for x, y in centres]
        if isinstance(names, str):
            if found:
                self.ax.add_collection(PatchCollection(found, gid=names, zorder=2, **_look(kind)))
            return
        for square, name in zip(found, names, strict=True):
            square.set(gid=name, zorder=2, **_look(kind))
            self.ax.add_patch(square)

    def words(
        self,
        x: float,
        y: float,
        content: str,
        size: float,
        ink: str = INK,
        align: str = "center",
    ) -> None:
        """Write text beside a place or around it."""
        place = {"ha": align, "va": "center_baseline", "zorder": 5}
        self.ax.text(x, y, content, color=ink, fontsize=size, **place, **AS_IT_IS)

    def font(self, side: float) -> tuple[float, float]:
        """Return the size of text in a cell, and the side of the cell, in points."""
        figure: Any = self.ax.get_figure()
        box, dots = self.ax.get_window_extent(), figure.dpi / 72
        (left, right), (bottom, top) = self.ax.get_xlim(), self.ax.get_ylim()
        cell = side * min(box.width / abs(right - left), box.height / abs(bottom - top)) / dots
        return float(min(12, max(4, 0.44 * cell))), cell

    def lines(
        self, line: Line, at: Array, tails: Array, heads: Array, radius: float, arrows: bool
    ) -> None:
        """Draw edges as one collection, or arrows, each with its id."""
        from matplotlib.collections import LineCollection

        if not arrows:
            ends = np.stack([at[tails], at[heads]], axis=1)
            style = {"colors": line.colour, "linewidths": line.width, "zorder": 1}
            self.ax.add_collection(LineCollection(ends, gid=line.name, **style))
            return
        arrow = {
            "arrowstyle": "-|>",
            "color": MUTED if line is EDGE else line.colour,
            "lw": line.width,
            "shrinkA": radius,
            "shrinkB": radius + 1,
            "connectionstyle": "arc3,rad=0.08",
        }
        for u, v in zip(tails.tolist(), heads.tolist(), strict=True):
            gid = f"{line.name}-{u}-{v}"
            self.ax.annotate("", at[v], at[u], arrowprops=arrow, zorder=1, gid=gid)

    def loops(self, line: Line, at: Array, radius: float) -> None:
        """Draw a circle above each vertex."""
        from matplotlib.transforms import ScaledTranslation

        figure: Any = self.ax.get_figure()
        lift = ScaledTranslation(0, 1.6 * radius / 72, figure.dpi_scale_trans)
        style = {"facecolors": "none", "edgecolors": MUTED, "zorder": 1, "gid": "loops"}
        self.ax.scatter(*at.T, s=2.8 * radius**2, transform=self.ax.transData + lift, **style)

    def discs(self, kind: Kind, at: Array, radius: float) -> None:
        """Draw vertices as a collection, with a label for the legend."""
        style = {"color": [kind.face], "edgecolors": kind.edge, "linewidths": kind.width}
        named = {"label": kind.label, "gid": kind.name, "zorder": 3}
        self.ax.scatter(*at.T, s=(2 * radius) ** 2, **style, **named)

    def legend(self, kinds: Sequence[Kind]) -> None:
        """Draw a legend of kinds of cells below the picture, in as many columns as fit."""
        if not kinds:  # a matrix without cells
            return
        figure: Any = self.ax.get_figure()
        room = self.ax.get_window_extent().width / figure.dpi
        widest = max(0.5 + 0.075 * len(kind.label) for kind in kinds)  # inches, about
        columns = max(1, min(3, int(1.25 * room / widest)))
        legend(self.ax, kinds, "upper center", columns, bbox_to_anchor=(0.5, 0.0))


def _look(kind: Kind) -> dict[str, Any]:
    return {
        "facecolor": (kind.face, kind.opacity) if kind.opacity < 1 else kind.face,
        "edgecolor": kind.edge,
        "hatch": "////" if kind.hatched else "",
        "linewidth": 0 if kind.edge == "none" else kind.width,
        "linestyle": "dashed" if kind.dashed else "solid",
    }


def legend(place: Any, kinds: Sequence[Kind], loc: str, columns: int = 1, **more: Any) -> None:
    """Draw a legend of kinds in axes or a figure."""
    from matplotlib.patches import Patch

    patches = [
        Patch(label=kind.label, **_look(kind._replace(edge=GREY if kind is NONE else kind.edge)))
        for kind in dict.fromkeys(kinds)
    ]
    style = {"frameon": False, "fontsize": LABEL, "handlelength": 1.2, "handleheight": 1.2}
    made = place.legend(handles=patches, loc=loc, ncols=columns, **style, **more)
    for label in made.get_texts():
        label.set(**AS_IT_IS)


def save(picture: Axes | Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture to a file; in an SVG text stays text, and equal pictures are equal files.

    Parameters
    ----------
    picture : Axes or Figure
        The result of a function of `lagpu.viz`.
    path : path
        The file; the suffix decides the format: ``.svg``, ``.pdf``, ``.png``.

    Raises
    ------
    InvalidValue
        If Matplotlib does not know the format, or the file cannot be written.
    FileMissing
        If the file's folder does not exist.
    """
    figure: Any = picture if hasattr(picture, "savefig") else picture.get_figure()
    suffix = Path(path).suffix.removeprefix(".").lower()
    known = figure.canvas.get_supported_filetypes()
    if suffix not in known:
        raise InvalidValue(f"viz.save: {suffix!r} is not a format. Use one of {', '.join(known)}.")
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileMissing(f"viz.save: there is no folder {folder}. Create it first.")
    from matplotlib import rc_context

    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    try:
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "lagpu"}):
            figure.savefig(path, bbox_inches="tight", dpi=160, metadata=dated.get(suffix))
    except OSError as error:
        raise InvalidValue(f"viz.save: {path}: {error.strerror or error}.") from error
