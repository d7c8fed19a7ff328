"""How everything looks: colours, kinds of cells and lines, and drawings in SVG or in axes."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lagpu.errors import BackendUnavailable, DomainMismatch, FileMissing, InvalidValue

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, and greys; distinct under every common form of colour-blindness.
BLUE, GREEN, ORANGE, VERMILION = "#0072B2", "#009E73", "#E69F00", "#D55E00"
INK, MUTED, GREY, PALE = "#222222", "#5B6775", "#AAB4BE", "#E3E7EB"

Array = np.ndarray[Any, Any]
Point = tuple[float, float]


class Kind(NamedTuple):
    """The style of one kind of cell, square or vertex."""

    name: str  # end of a cell's id in a picture: ``A-2-3-entry``
    label: str  # in a legend
    face: str
    edge: str = "none"
    ink: str = INK
    dashed: bool = False
    hatched: bool = False
    width: float = 0.9  # of the border, in points
    opacity: float = 1.0  # of the face
    side: float = 0.92  # relative to the cell, so that the borders of neighbours do not overlap


NONE = Kind("none", "no entry", "white", PALE, side=1)
ENTRY = Kind("entry", "entry", "#CFE5F5", BLUE)
ZERO = Kind("zero", "entry that is zero", "#FFF4D6", "#8A5200", "#8A5200", dashed=True, width=1.6)
USED = Kind("used", "entry that takes part", "#C25100", "#C25100", "white")
DROP = Kind("dropped", "edge that the mask drops", "#FBD3AE", "#C25100", width=1.2)
IDLE = Kind("idle", "edge from outside the frontier", GREY)
TOUCHED = Kind("touched", "row or column of an entry", "#BFDDF2", opacity=0.7, side=1)
RESULT = Kind("result", "result", "#BFE6DA", GREEN)
KEPT = Kind("kept", "kept by the mask", "#BFE6DA", GREEN)
OUT = Kind("out", "not kept by the mask", "#F1F2F4", GREY, MUTED, hatched=True)
VEIL = Kind("veil", "row or column that the mask drops", PALE, side=1)
CHANGED = Kind("changed", "changed", "none", VERMILION, width=3)
FRAME = Kind("frame", "", "none", MUTED, width=1, side=1)


class Line(NamedTuple):
    """The style of edges, with the beginning of their ids; the width is in points."""

    name: str
    colour: str
    width: float


EDGE = Line("edges", GREY, 1.1)
TREE = Line("tree", VERMILION, 2.6)
DROPPED = Line("dropped", "#F0B27A", 2.4)


# ---- Self-contained HTML pages: templates filled with text that is escaped.
_MARKUP = re.compile("<(?=[/!])")
_SLOT = re.compile(r"\{\{(\w+)\}\}")


def fill(template: str, **slots: str) -> str:
    """Return a file of this package with each ``{{name}}`` replaced by markup, `text` or `data`."""
    from importlib import resources  # slow to import

    page = resources.files("lagpu.draw").joinpath(template).read_text(encoding="utf-8")
    return _SLOT.sub(lambda slot: slots[slot[1]], page)  # one pass: filled text stays


def text(content: object) -> str:
    """Return content as HTML text, also valid inside a quoted attribute."""
    return html.escape(str(content))


def data(content: Any) -> str:
    """Return content as JSON that cannot end the ``<script>`` around it."""
    made = json.dumps(content, separators=(",", ":"))
    return _MARKUP.sub("\\\\u003c", made)  # only </script and <!-- mean anything in a script


# ---- Drawings in SVG.
_ANCHORS = {"left": "", "center": ' text-anchor="middle"', "right": ' text-anchor="end"'}


def cell_style(kind: Kind) -> str:
    border = "" if kind.edge == "none" else f' stroke="{kind.edge}" stroke-width="{kind.width}"'
    dashed = ' stroke-dasharray="4 2"' if kind.dashed else ""
    clear = "" if kind.opacity == 1 else f' fill-opacity="{kind.opacity}"'
    return f'fill="{kind.face}"{border}{dashed}{clear}'


def line_style(line: Line) -> str:
    return f'fill="none" stroke="{line.colour}" stroke-width="{line.width}"'


class SvgCanvas:
    """A drawing in SVG, in pixels; squares of one style become one path.

    `share` is called with an element that other drawings may share; it returns what to draw.
    """

    def __init__(self, share: Callable[[str], str] | None = None) -> None:
        self.parts: list[str] = []
        self.width = self.height = 0.0
        self._share = share

    def path(self, path: str, style: str) -> None:
        if path:
            made = f'<path d="{path}" {style}/>'
            self.parts.append(made if self._share is None else self._share(made))

    def squares(
        self, kind: Kind, centres: Sequence[Point], size: Point, _names: Sequence[str] | str = ""
    ) -> None:
        """Draw rectangles of one size; only those in axes have names."""
        w, h = size
        corners = [(x - w / 2, y - h / 2) for x, y in centres]
        drawn = (f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z" for x, y in corners)
        self.path("".join(drawn), cell_style(kind))
        if kind.hatched:
            strokes = (f"M{x:g} {y + h:g}l{w:g} {-h:g}" for x, y in corners)
            self.path("".join(strokes), f'fill="none" stroke="{GREY}"')

    def words(
        self, place: Point, content: str, size: float,
        ink: str = INK, align: str = "center", *, halo: bool = False,
    ) -> None:  # fmt: skip
        """Write text beside a place or around it, bold in the colour of what is new."""
        x, y = place
        style = _ANCHORS[align] + ("" if ink == INK else f' fill="{ink}"')
        style += ' font-weight="600"' if ink == VERMILION else ""
        style += ' stroke="#fff" stroke-width="4" paint-order="stroke"' if halo else ""
        at = f'x="{x:g}" y="{y + 0.36 * size:g}"'
        self.parts.append(f'<text {at} font-size="{size:g}"{style}>{text(content)}</text>')

    def font(self, side: float) -> tuple[float, float]:
        """Return the size of text in a cell, and the side of the cell, in pixels."""
        return min(max(0.5 * side, min(0.8 * side, 14)), 16), side

    def lines(
        self, line: Line, at: Array, tails: Array, heads: Array, radius: float, arrows: bool
    ) -> None:
        begin, end = at[tails], at[heads]
        along = end - begin
        along /= (along**2).sum(1, keepdims=True) ** 0.5
        end = end - along * (radius + 1)
        ends = [begin]
        if arrows:
            across = along[:, ::-1] * (1, -1)
            ends += [end - 9 * along + side * across for side in (5, -5)]
        parts = (
            f"M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}"
            for rows in zip(*(some.tolist() for some in ends), end.tolist(), strict=True)
            for (x, y), (u, v) in ((one, rows[-1]) for one in rows[:-1])
        )
        self.path("".join(parts), line_style(line))

    def loops(self, line: Line, at: Array, radius: float) -> None:
        half = f"a{radius / 2:g} {radius / 2:g} 0 1 1 {radius:g} 0"
        places = at - (radius / 2, radius)
        parts = (f"M{x:.1f} {y:.1f}{half}" for x, y in places.tolist())
        self.path("".join(parts), line_style(line))

    def discs(self, kind: Kind, at: Array, radius: float) -> None:
        half = f"a{radius:g} {radius:g} 0 1 0"
        for x, y in at.tolist():
            circle = f"M{x - radius:.1f} {y:.1f}{half} {2 * radius:g} 0{half} {-2 * radius:g} 0z"
            self.path(circle, cell_style(kind))

    def grow_to(self, width: float, height: float) -> None:
        self.width, self.height = max(self.width, width), max(self.height, height)

    def svg(self, label: str, *, left: float = 0, top: float = 0) -> str:
        """Return the drawing from its corner (left, top), with a text that says what it shows."""
        w, h = self.width - left + 4, self.height - top + 4
        return (
            f'<svg viewBox="{left:g} {top:g} {w:g} {h:g}" width="{w:g}" height="{h:g}" role="img" '
            f'style="--w:{w:g}px;--h:{h:g}px" '
            f'preserveAspectRatio="xMinYMin" aria-label="{text(label)}" fill="{INK}" '
            f'font-family="system-ui, DejaVu Sans, sans-serif">{"".join(self.parts)}</svg>'
        )


# ---- Drawings in Matplotlib's axes, with their legends and files.

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


class AxesCanvas:
    """Axes on which cells and graphs are drawn; a size of text is in points."""

    def __init__(self, ax: Axes) -> None:
        self.ax, self.figure = ax, cast(Any, ax.get_figure())

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
        self, kind: Kind, centres: Sequence[Point], size: Point, names: Sequence[str] | str
    ) -> None:
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        w, h = size
        found = [Rectangle((x - w / 2, y - h / 2), w, h) for x, y in centres]
        if isinstance(names, str):
            if found:
                self.ax.add_collection(PatchCollection(found, gid=names, zorder=2, **_patch(kind)))
            return
        for square, name in zip(found, names, strict=True):
            square.set(gid=name, zorder=2, **_patch(kind))
            self.ax.add_patch(square)

    def words(
        self, place: Point, content: str, size: float, ink: str = INK, align: str = "center"
    ) -> None:
        how = {"ha": align, "va": "center_baseline", "zorder": 5}
        self.ax.text(*place, content, color=ink, fontsize=size, **how, **AS_IT_IS)

    def font(self, side: float) -> tuple[float, float]:
        """Return the size of text in a cell, and the side of the cell, in points."""
        box, dots = self.ax.get_window_extent(), self.figure.dpi / 72
        (left, right), (bottom, top) = self.ax.get_xlim(), self.ax.get_ylim()
        cell = side * min(box.width / abs(right - left), box.height / abs(bottom - top)) / dots
        return float(min(12, max(4, 0.44 * cell))), cell

    def lines(
        self, line: Line, at: Array, tails: Array, heads: Array, radius: float, arrows: bool
    ) -> None:
        from matplotlib.collections import LineCollection

        if not arrows:
            ends = np.stack([at[tails], at[heads]], axis=1)
            style = {"colors": line.colour, "linewidths": line.width, "zorder": 1}
            self.ax.add_collection(LineCollection(ends, gid=line.name, **style))
            return
        colour = MUTED if line is EDGE else line.colour
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": line.width}
        arrow |= {"shrinkA": radius, "shrinkB": radius + 1, "connectionstyle": "arc3,rad=0.08"}
        for u, v in zip(tails.tolist(), heads.tolist(), strict=True):
            gid = f"{line.name}-{u}-{v}"
            self.ax.annotate("", at[v], at[u], arrowprops=arrow, zorder=1, gid=gid)

    def loops(self, line: Line, at: Array, radius: float) -> None:
        from matplotlib.transforms import ScaledTranslation

        lift = ScaledTranslation(0, 1.6 * radius / 72, self.figure.dpi_scale_trans)
        style = {"facecolors": "none", "edgecolors": MUTED, "zorder": 1, "gid": "loops"}
        self.ax.scatter(*at.T, s=2.8 * radius**2, transform=self.ax.transData + lift, **style)

    def discs(self, kind: Kind, at: Array, radius: float) -> None:
        style = {"color": [kind.face], "edgecolors": kind.edge, "linewidths": kind.width}
        named = {"label": kind.label, "gid": kind.name, "zorder": 3}
        self.ax.scatter(*at.T, s=(2 * radius) ** 2, **style, **named)

    def legend(self, kinds: Sequence[Kind]) -> None:
        """Draw a legend of kinds of cells below the picture, in as many columns as fit."""
        if not kinds:  # a matrix without cells
            return
        room = self.ax.get_window_extent().width / self.figure.dpi
        widest = max(0.5 + 0.075 * len(kind.label) for kind in kinds)  # inches, about
        columns = max(1, min(3, int(1.25 * room / widest)))
        legend(self.ax, kinds, "upper center", columns, bbox_to_anchor=(0.5, 0.0))


Canvas = SvgCanvas | AxesCanvas


def _patch(kind: Kind) -> dict[str, Any]:
    return {
        "facecolor": (kind.face, kind.opacity) if kind.opacity < 1 else kind.face,
        "edgecolor": kind.edge,
        "hatch": "////" if kind.hatched else "",
        "linewidth": 0 if kind.edge == "none" else kind.width,
        "linestyle": "dashed" if kind.dashed else "solid",
    }


def legend(place: Any, kinds: Sequence[Kind], loc: str, columns: int = 1, **more: Any) -> None:
    from matplotlib.patches import Patch

    patches = [
        Patch(label=kind.label, **_patch(kind._replace(edge=GREY if kind is NONE else kind.edge)))
        for kind in dict.fromkeys(kinds)
    ]
    style = {"frameon": False, "fontsize": LABEL, "handlelength": 1.2, "handleheight": 1.2}
    for label in place.legend(handles=patches, loc=loc, ncols=columns, **style, **more).get_texts():
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
