"""Draw a step on the graph itself: vertices with the entries, edges that a product uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lagpu.dtypes import BOOL
from lagpu.host.layout import places
from lagpu.observe.step.state import State, StepRecord
from lagpu.observe.step.svg import SOFT, STYLES, TOUCHED, Canvas
from lagpu.observe.step.text import fitting

_WIDTH, _HEIGHT, _EDGE = 460.0, 300.0, 30.0  # pixels; the last one is left free on each side
_MIDDLE = 'text-anchor="middle"'
_LINES = {
    "dot": 'fill="none" stroke="#aab4be" stroke-width="1.5"',
    "met": 'fill="none" stroke="#f0b27a" stroke-width="3"',
    "used": f'fill="none" stroke="{TOUCHED}" stroke-width="3.5"',
}
_NO_ENTRY = 'fill="#ffffff" stroke="#8a94a0"'
Array = np.ndarray[Any, Any]


class GraphDrawing:
    """The graph of a matrix, with its vertices in the same places in each step.

    Parameters
    ----------
    name : str
        Name of the matrix.
    steps : iterable of Step
        Steps of which one at least has the matrix.
    """

    def __init__(self, name: str, steps: Iterable[StepRecord]) -> None:
        A = next(step.matrices[name] for step in steps if name in step.matrices)
        rows, cols = (np.asarray(x) for x in A.to_coo()[:2])
        self._name, self._n = name, A.nrows
        found = places(rows, cols, A.nrows)
        low, high = found.min(0), found.max(0)
        room = np.array([_WIDTH - 2 * _EDGE, _HEIGHT - 2 * _EDGE])
        scale = float((room / np.maximum(high - low, 1e-9)).min())
        self._at = (found - (low + high) / 2) * min(scale, 1e6) + np.array([_WIDTH, _HEIGHT]) / 2
        self._radius = min(18.0 if A.nrows <= 20 else 13.0, max(9.0, _nearest(self._at) / 2))

    def draw(self, step: StepRecord, share: Callable[[str], str] | None = None) -> str:
        """Return a step as SVG; an empty string for a step without the matrix."""
        A = step.matrices.get(self._name)
        if A is None or A.shape != (self._n, self._n):
            return ""
        canvas = Canvas(share)
        canvas.grow_to(_WIDTH, _HEIGHT + 26)
        rows, cols = (np.asarray(x) for x in A.to_coo()[:2])
        directed = not A.is_symmetric
        met = used = np.zeros(len(rows), bool)
        p = step.product
        uses = p is not None and p.matrix == self._name
        flows = (rows, cols)
        if p is not None and uses:
            flows = (cols, rows) if p.transposed == p.vector_left else (rows, cols)
            met, kept = step.meeting(*flows)
            met, used = met & ~kept, met & kept
        self._lines(canvas, "dot", rows, cols, ~met & ~used, directed)
        self._lines(canvas, "met", *flows, met, True)
        self._lines(canvas, "used", *flows, used, True)
        self._vertices(canvas, step, step.vectors.get(step.output))
        canvas.words(
            _WIDTH / 2, _HEIGHT + 18, self._caption(step, uses), 15, f'{_MIDDLE} fill="{SOFT}"'
        )
        return canvas.svg(f"the graph of {self._name} after step {step.number}")

    def _lines(
        self, canvas: Canvas, style: str, tails: Array, heads: Array, which: Array, arrows: bool
    ) -> None:
        parts = []
        for i, j in zip(tails[which].tolist(), heads[which].tolist(), strict=True):
            (x, y), (u, v) = self._at[i], self._at[j]
            length = float(np.hypot(u - x, v - y))
            if length < 1e-9:  # a self-loop
                r = self._radius
                parts.append(f"M{x - r / 2:.1f} {y - r:.1f}a{r / 2:g} {r / 2:g} 0 1 1 {r:g} 0")
                continue
            dx, dy = (u - x) / length, (v - y) / length
            u, v = u - dx * (self._radius + 1), v - dy * (self._radius + 1)
            parts.append(f"M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}")
            if arrows:
                for turn in (-1, 1):
                    a, b = u - 9 * dx - turn * 5 * dy, v - 9 * dy + turn * 5 * dx
                    parts.append(f"M{u:.1f} {v:.1f}L{a:.1f} {b:.1f}")
        canvas.path("".join(parts), _LINES[style])

    def _vertices(self, canvas: Canvas, step: StepRecord, state: State | None) -> None:
        """Draw the vertices, with the entries of a vector that has one for each."""
        entries = state.to_dict() if state is not None and state.size == self._n else {}
        before = step.before[step.output].to_dict() if entries or state is not None else {}
        r = self._radius
        for i, (x, y) in enumerate(self._at.tolist()):
            look = STYLES["entry" if entries.get(i) else "zero"] if i in entries else _NO_ENTRY
            half = f"a{r:g} {r:g} 0 1 0"
            circle = f"M{x - r:.1f} {y:.1f}{half} {2 * r:g} 0{half} {-2 * r:g} 0z"
            canvas.path(circle, look)
            if state is not None and state.size == self._n and entries.get(i) != before.get(i):
                canvas.path(circle, STYLES["changed"])
            canvas.words(x, y + 5, str(i), 14, _MIDDLE)
            if i in entries and state is not None and state.dtype is not BOOL:
                where = f'fill="{TOUCHED}" font-weight="600"'
                canvas.words(x + r * 0.75, y - r * 0.75, fitting(entries[i]), 14, where)

    def _caption(self, step: StepRecord, uses: bool) -> str:
        state = step.vectors.get(step.output)
        if state is None or state.size != self._n:
            return f"the graph of {self._name}"
        return f"filled: {step.output}" + ("; orange edges: the product" if uses else "")


def _nearest(at: Array) -> float:
    """Return the least distance of two vertices; of one alone, infinity."""
    apart = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1))
    np.fill_diagonal(apart, np.inf)
    return float(apart.min(initial=np.inf))
