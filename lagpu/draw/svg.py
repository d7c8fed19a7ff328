"""A canvas of SVG, and self-contained HTML pages: templates filled with text that is escaped."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

from lagpu.draw.cells import GREY, INK, Array, Kind, Line, Point

_MARKUP = re.compile("<(?=[/!])")
_SLOT = re.compile(r"\{\{(\w+)\}\}")
_ANCHORS = {"left": "", "center": ' text-anchor="middle"', "right": ' text-anchor="end"'}


def fill(template: str, **slots: str) -> str:
    """Return a file of this package, such as ``"trace.html"``, with each ``{{name}}`` replaced.

    Each slot is the result of `text` or `data`, or markup made of these.
    """
    page = resources.files("lagpu.draw").joinpath(template).read_text(encoding="utf-8")
    return _SLOT.sub(lambda slot: slots[slot[1]], page)  # one pass: filled text stays


def text(content: object) -> str:
    """Return content as HTML text, also valid inside a quoted attribute."""
    return html.escape(str(content))


def data(content: Any) -> str:
    """Return content as JSON that cannot end the ``<script>`` around it."""
    made = json.dumps(content, separators=(",", ":"))
    return _MARKUP.sub("\\\\u003c", made)  # only </script and <!-- mean anything in a script


def look(kind: Kind) -> str:
    """Return a style as attributes of an SVG element."""
    border = "" if kind.edge == "none" else f' stroke="{kind.edge}" stroke-width="{kind.width}"'
    dashed = ' stroke-dasharray="4 2"' if kind.dashed else ""
    clear = "" if kind.opacity == 1 else f' fill-opacity="{kind.opacity}"'
    return f'fill="{kind.face}"{border}{dashed}{clear}'


def stroke(line: Line) -> str:
    """Return the style of edges as attributes of an SVG element."""
    return f'fill="none" stroke="{line.colour}" stroke-width="{line.width}"'


class Canvas:
    """A drawing in SVG, in pixels; squares of one style become one path.

    `share` is called with an element that other drawings may share; it returns what to draw.
    """

    def __init__(self, share: Callable[[str], str] | None = None) -> None:
        self.parts: list[str] = []
        self.width = self.height = 0.0
        self._share = share

    def path(self, path: str, style: str) -> None:
        """Draw a path with attributes."""
        if path:
            made = f'<path d="{path}" {style}/>'
            self.parts.append(made if self._share is None else self._share(made))

    def squares(
        self,
        kind: Kind,
        centres: Sequence[Point],
        w: float,
        h: float,
        names: Sequence[str] | str = "",
    ) -> None:
        """Draw rectangles of one size."""
        corners = [(x - w / 2, y - h / 2) for x, y in centres]
        self.path("".join(f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z" for x, y in corners), look(kind))
        if kind.hatched:
            strokes = (f"M{x:g} {y + h:g}l{w:g} {-h:g}" for x, y in corners)
            self.path("".join(strokes), f'fill="none" stroke="{GREY}"')

    def words(
        self,
        x: float,
        y: float,
        content: str,
        size: float,
        ink: str = INK,
        align: str = "center",
        *,
        bold: bool = False,
    ) -> None:
        """Write text beside a place or around it."""
        style = _ANCHORS[align] + ("" if ink == INK else f' fill="{ink}"')
        style += ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y + 0.36 * size:g}" font-size="{size:g}"{style}>'
            f"{text(content)}</text>"
        )

    def font(self, side: float) -> tuple[float, float]:
        """Return the size of text in a cell, and the side of the cell, in pixels."""
        return min(max(0.5 * side, min(0.8 * side, 14)), 16), side

    def lines(
        self, line: Line, at: Array, tails: Array, heads: Array, radius: float, arrows: bool
    ) -> None:
        """Draw edges that end at the border of a vertex, with or without an arrow there."""
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
        self.path("".join(parts), stroke(line))

    def loops(self, line: Line, at: Array, radius: float) -> None:
        """Draw a circle above each vertex."""
        half = f"a{radius / 2:g} {radius / 2:g} 0 1 1 {radius:g} 0"
        places = at - (radius / 2, radius)
        parts = (f"M{x:.1f} {y:.1f}{half}" for x, y in places.tolist())
        self.path("".join(parts), stroke(line))

    def discs(self, kind: Kind, at: Array, radius: float) -> None:
        """Draw vertices."""
        half = f"a{radius:g} {radius:g} 0 1 0"
        for x, y in at.tolist():
            circle = f"M{x - radius:.1f} {y:.1f}{half} {2 * radius:g} 0{half} {-2 * radius:g} 0z"
            self.path(circle, look(kind))

    def grow_to(self, width: float, height: float) -> None:
        """Make the drawing at least this large."""
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
