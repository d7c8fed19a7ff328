"""SVG elements of the drawings of steps: cells of a grid in several styles, and text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from lagpu.host.pages import text

INK, SOFT, TOUCHED, _ENTRY = "#1c2733", "#5b6775", "#c05a00", "#14659e"

# Styles of cells. An entry, an explicit zero and no entry differ in border, fill and text, so that
# they can be told apart on paper, too.
STYLES = {
    "none": 'fill="#fbfcfd" stroke="#b8c2cc" stroke-dasharray="2 3"',
    "entry": f'fill="#d9e8f6" stroke="{_ENTRY}"',
    "zero": 'fill="#ffe7a3" stroke="#8a5a00" stroke-width="2"',
    "kept": 'fill="#ffffff" stroke="#2f7d4f" stroke-width="1.5"',
    "blocked": 'fill="#5b6775" stroke="#5b6775"',
    "dot": 'fill="#aab4be"',
    "frame": 'fill="none" stroke="#8a94a0"',
    "band": 'fill="#fff0de"',
    "veil": f'fill="{INK}" fill-opacity="0.13"',
    "met": f'fill="#ffd9ae" stroke="{TOUCHED}" stroke-width="1.5"',
    "used": f'fill="{TOUCHED}"',
    "changed": f'fill="none" stroke="{TOUCHED}" stroke-width="3"',
}


class Grid(NamedTuple):
    """The position and the size of the cells of a matrix, in pixels."""

    cell: float
    left: float
    top: float
    nrows: int
    ncols: int

    def x(self, j: float) -> float:
        """Return the left edge of column `j`."""
        return self.left + j * self.cell

    def y(self, i: float) -> float:
        """Return the upper edge of row `i`."""
        return self.top + i * self.cell


class Canvas:
    """A drawing in SVG; squares of one style become one path, which drawings may share."""

    def __init__(self, share: Callable[[str], str] | None) -> None:
        self.parts: list[str] = []
        self.width = self.height = 0.0
        self._share = share

    def squares(
        self, style: str, corners: Iterable[tuple[float, float]], w: float, h: float
    ) -> None:
        """Draw rectangles of one size."""
        path = "".join(f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z" for x, y in corners)
        self.path(path, STYLES[style])

    def path(self, path: str, look: str) -> None:
        """Draw a path with attributes of its own."""
        if path:
            made = f'<path d="{path}" {look}/>'
            self.parts.append(made if self._share is None else self._share(made))

    def words(self, x: float, y: float, content: str, size: float, more: str = "") -> None:
        """Write text on a baseline."""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" {more}>{text(content)}</text>'
        )

    def grow_to(self, width: float, height: float) -> None:
        """Make the drawing at least this large."""
        self.width, self.height = max(self.width, width), max(self.height, height)

    def svg(self, label: str) -> str:
        """Return the drawing."""
        w, h = self.width + 4, self.height + 4
        return (
            f'<svg viewBox="0 0 {w:g} {h:g}" width="{w:g}" height="{h:g}" role="img" '
            f'style="--w:{w:g}px;--h:{h:g}px" '
            f'preserveAspectRatio="xMinYMin" aria-label="{text(label)}" fill="{INK}" '
            f'font-family="system-ui, DejaVu Sans, sans-serif">{"".join(self.parts)}</svg>'
        )


def legend() -> str:
    """Return the legend of the cells, an SVG for each, which wrap like words."""
    samples = (
        ("entry", "7", "entry"), ("zero", "0", "explicit zero"), ("none", "", "no entry"),
        ("changed", "", "changed"), ("used", "", "meets the vector, and is kept"),
        ("met", "", "meets it, but the mask drops it"), ("kept", "", "mask keeps"),
        ("blocked", "", "mask blocks"),
    )  # fmt: skip
    drawn = []
    for style, word, meaning in samples:
        canvas = Canvas(None)
        canvas.squares(style, [(2, 3)], 18, 18)
        if word:
            canvas.words(11, 16.5, word, 12, 'text-anchor="middle"')
        canvas.words(26, 17, meaning, 14)
        canvas.grow_to(26 + 7.6 * len(meaning) + 12, 24)
        drawn.append(canvas.svg(meaning))
    return "".join(drawn)
