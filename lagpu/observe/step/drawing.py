"""A step: the state after a statement, as text, as drawings, and on a page with all others."""

from __future__ import annotations

import ast
import base64
import gzip
import inspect
import json
import linecache
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from lagpu.core import Matrix, Vector
from lagpu.draw import look
from lagpu.draw.look import Array, SvgCanvas, fill, text
from lagpu.draw.shapes import Cells, dropped_and_used, edges, fitting, places, triplets, vertices
from lagpu.dtypes import BOOL, DType
from lagpu.errors import LimitExceeded
from lagpu.host.source import SYNTAX, file_name

#: Longest vector, and most rows or columns of a matrix, that are drawn.
LARGEST = 64

_CELLS = 24  # of a vector on a line of text
_ROWS = 8  # of a matrix
FOR_TOOLS = re.compile(r"  # (?:fmt: skip|noqa|type: ).*")  # comments that a listing leaves out
_LONG = re.compile(r"-?\d*\.\d{5,}(e[+-]\d+)?")  # a number of more than four digits
_SIGNS = (
    ("name", "not in use now", f'fill="{look.GREY}">'),
    ("", "s, t, T: objects without a name in the code", r">(?:\u25b6 )?[stT]\d*[<:]"),
    ("", "(2), (old): another object of that name", r" \((?:\d+|old)\)[<:]"),
)  # of a legend: name, words, and where an SVG has such a one
_FLAT = 4  # most rows of a matrix whose rows are drawn as vectors are
_WAITING = 9  # most vectors that have their place from the first step on
_NAMES, _GAP = 132, 10  # most pixels on the left, for names; and between objects
_WIDTH, _HEIGHT, _EDGE = 460.0, 300.0, 30.0  # pixels; the last one is left free on each side
_CORNERS = (1, -1), (-1, -1), (1, 1), (-1, 1)  # of a vertex, the first the best for its value


@dataclass(frozen=True, eq=False)
class State:
    """The entries of a vector at one moment, (nvals,), their indices rising; zeros are entries."""

    size: int  # of the vector
    dtype: DType
    indices: Array  # INT64
    values: Array  # of `dtype`

    @property
    def nvals(self) -> int:
        """Number of entries."""
        return len(self.indices)

    @property
    def pattern(self) -> Array:
        """Where there is an entry, BOOL, (size,)."""
        return np.isin(np.arange(self.size), self.indices)

    def to_dict(self) -> dict[int, Any]:
        """Return {index: value} of the entries."""
        return dict(zip(self.indices.tolist(), self.values.tolist(), strict=True))

    def same_as(self, other: State) -> bool:
        """Return True if both have the same entries with the same values; NaN equals NaN."""
        mine, its = ((x.indices.tobytes(), x.values.tobytes()) for x in (self, other))
        return self.size == other.size and self.dtype is other.dtype and mine == its


class Masking(NamedTuple):
    """The mask of a statement: its formula with the author's names, and what it is made of."""

    formula: str
    state: State | None  # None for the mask of a matrix
    structure: bool
    complement: bool

    @property
    def kept(self) -> Array | None:
        """The positions of a vector that the mask keeps, BOOL, (size,); None for a matrix."""
        if self.state is None:
            return None
        kept = self.state.pattern
        if not self.structure:
            kept[self.state.indices] = self.state.values != 0
        return ~kept if self.complement else kept


class Multiplied(NamedTuple):
    """The operands of a product, ``u @ A`` if `vector_left`, else ``A @ u``."""

    matrix: str
    transposed: bool
    vector: str
    vector_left: bool


@dataclass(frozen=True, eq=False, repr=False)
class Step:
    """The state of a program after one statement; objects are those in scope, by name."""

    number: int  # of the statement, from 1
    level: int  # iteration of the enclosing `loop`, from 0; -1 outside of a loop
    formula: str  # the statement as mathematics, with the author's names
    source: str  # the text of the statement on one line; empty if it cannot be read
    code: CodeType | None  # the function that contains the statement
    file: str  # of the function
    line: int  # the first line of the statement
    last_line: int
    output: str  # name of the object that the statement wrote
    vectors: dict[str, State]  # after the statement
    before: dict[str, State]  # the vectors before it
    scalars: dict[str, Any]  # their numbers; None for one that is empty
    matrices: dict[str, Matrix]  # a selection as a matrix, from before the statement
    overwritten: Matrix | None  # the matrix that it wrote, before it
    mask: Masking | None  # of the statement
    product: Multiplied | None  # the operands of a product of a matrix and a vector

    @property
    def kept(self) -> Array | None:
        """The positions that the mask keeps; None without a mask, or for a matrix."""
        return None if self.mask is None else self.mask.kept

    @property
    def place(self) -> str:
        """``file.py:line``."""
        return f"{file_name(self.file)}:{self.line}"

    @property
    def where(self) -> str:
        """``level 3, file.py:line``."""
        return f"level {self.level}, {self.place}" if self.level >= 0 else self.place

    @property
    def words(self) -> str:
        """What the drawings show, for readers who do not see them."""
        said = f"Step {self.number}: {_LONG.sub(lambda x: _shown(float(x[0])), self.formula)}."
        A, state = self.matrices.get(self.output), self.vectors.get(self.output)
        if self.output in self.scalars:
            x = self.scalars[self.output]
            return f"{said} {self.output} is {'empty' if x is None else _shown(x)}."
        if state is None:
            return said if A is None else f"{said} {self.output} has {A.nvals} entries."
        entries = islice(state.to_dict().items(), _CELLS)
        found = [str(k) if x is True else f"{k}: {_shown(x)}" for k, x in entries]
        more = ", ..." * (state.nvals > _CELLS)
        return f"{said} {self.output} has {', '.join(found) or 'no entries'}{more}."

    def __repr__(self) -> str:
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        sizes = [x.size for x in self.vectors.values()], *(x.shape for x in self.matrices.values())
        if max((n for some in sizes for n in some), default=0) > LARGEST:
            return f"<pre>{text(repr(self))}</pre>"
        where = f"step {self.number}, {self.where}"
        head = f"<div><code>{text(self.formula)}</code> <small>{text(where)}</small></div>"
        return f"<div style='background:#fff;color:{look.INK}'>{head}{draw(self)}</div>"


def _lines(step: Step) -> Iterator[str]:
    """Yield the statement, a line for each vector, and the first rows of a written matrix."""
    yield f"step {step.number}: {step.where}"
    yield f"  {step.formula}"
    width = max(map(len, [*step.vectors, *step.scalars]), default=0)
    words = {name: _words(state) for name, state in step.vectors.items()}
    words |= {name: "." if x is None else _shown(x) for name, x in step.scalars.items()}
    for name, shows in words.items():
        yield f"{'>' if name == step.output else ' '} {name:<{width}}  {shows}"
    A = step.matrices.get(step.output)
    if A is None:
        return
    for k in range(min(A.nrows, _ROWS)):
        row: Vector = A[k, :].new()
        yield f"> {step.output}[{k}]  {_words(State(row.size, row.dtype, *row.to_coo()))}"
    if A.nrows > _ROWS:
        yield f"> ... {A.nrows - _ROWS} more rows, {A.nvals} entries"


def _words(state: State) -> str:
    """Return the values of a vector, a dot where there is no entry."""
    entries = state.to_dict()
    words = [_shown(entries[k]) if k in entries else "." for k in range(min(state.size, _CELLS))]
    width = max(map(len, words), default=0)
    rest = state.size - len(words)
    more = f"  ... {rest} more, {state.nvals} entries" if rest else ""
    return " ".join(f"{word:>{width}}" for word in words) + more


def _shown(value: Any) -> str:
    """Return a value in few characters: 1 and 0 for BOOL, whole numbers, or four digits."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(int(value) if isinstance(value, bool) else value)


class Layout:
    """The places of all objects, the same for all steps of a page so that nothing moves.

    `matrix`, `transposed` or not, is drawn in steps that read no other, in a place of at most
    `nrows` x `ncols`, with room for a factor `beside` or `above` it. Below are the vectors `names`,
    matrices of few rows, whose numbers are `flat`, `lines` of scalars and of other matrices if
    `several`, and `written` rows of such a one that is written.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        steps = list(steps)
        products = [s.product for s in steps if s.product is not None]
        matrices = tuple(dict.fromkeys(name for s in steps for name in s.matrices))
        self.matrix = products[0].matrix if products else next(iter(matrices), None)
        self.transposed = bool(products) and products[0].transposed
        self.flat = self._flat(steps, matrices)
        shapes = [_drawn_shape(*self.drawn(s)[1:]) for s in steps]
        apart = {self.matrix, *self.flat}
        outputs = [s.matrices.get(s.output) for s in steps if s.output not in apart]
        written = [A.shape for A in outputs if A is not None]
        self.nrows = max((nrows for nrows, _ in shapes), default=0)
        self.ncols = max((ncols for _, ncols in (*shapes, *written)), default=0)
        self.written = max((nrows for nrows, _ in written), default=0)
        self.beside = any(p.vector_left for p in products)
        self.above = any(not p.vector_left for p in products)
        self.names = tuple(dict.fromkeys(name for s in steps for name in s.vectors))
        self.several = len({*matrices} - {*self.flat}) > 1
        self.longest = self._longest(steps)
        self.lines = max((len(self.listed(s)) for s in steps), default=0)

    def drawn(self, step: Step) -> tuple[str, Matrix | None, bool]:
        """Return the name of the matrix that is drawn, the matrix, and whether it is transposed."""
        if step.product is not None:
            name = step.product.matrix
            return name, step.matrices.get(name), step.product.transposed
        read = step.formula.partition(" << ")[2] if step.output != self.matrix else ""
        others = [x for x in step.matrices if x != step.output and x not in self.flat]
        name = next((name for name in others if _has(read, name)), "")
        own = step.output not in self.flat and step.overwritten is not None
        if not name and own and _has(read, step.output):
            return f"{step.output} before", step.overwritten, False
        name = name or self.matrix or ""
        name = name if name in step.matrices else next(iter(others), "")
        return name, step.matrices.get(name), self.transposed and name == self.matrix

    def _flat(self, steps: list[Step], names: Labels) -> dict[str, int]:
        """Return the rows of matrices like the vectors of several sources, below `matrix`."""
        n = max(
            (s.matrices[x].ncols for s in steps for x in s.matrices if x == self.matrix), default=0
        )
        most: dict[str, int] = {}
        for name, A in (item for step in steps for item in step.matrices.items()):
            flat = A.ncols == n and A.nrows <= min(n // 2, _FLAT)
            most[name] = max(most.get(name, 0), A.nrows if flat else LARGEST)
        used = {s.product.matrix for s in steps if s.product is not None} | {self.matrix}
        return {x: most[x] for x in names if most[x] <= _FLAT and x not in used}

    def _longest(self, steps: list[Step]) -> tuple[int, int]:
        """Return the most characters of the label of a matrix, and of a vector or mask."""
        of_matrices, of_vectors = [0], [0]
        for step in steps:
            name, _, turned = self.drawn(step)
            of_matrices += [len(name) + turned, len(step.product.vector) + 2 if step.product else 0]
            of_matrices += [len(x) + 2 for x in self.flat]
            of_vectors += [*map(len, step.vectors), 6 + len(step.mask.formula) if step.mask else 0]
            of_output = of_vectors if step.output in step.vectors else of_matrices
            of_output.append(2 + len(step.output))
        return max(of_matrices), max(of_vectors)

    def listed(self, step: Step) -> dict[str, str]:
        """Return scalars in words, and of `several` matrices those that the step's code names."""
        words = {k: "is empty" if x is None else f"= {_shown(x)}" for k, x in step.scalars.items()}
        of = step.code
        own = (*of.co_varnames, *of.co_cellvars, *of.co_freevars) if of else ()
        own = of.co_names if of and of.co_name == "<module>" else own  # others' have ``.S``, too
        named = " ".join([*own, step.formula])
        for name, A in step.matrices.items():
            if self.several and name not in self.flat and _has(named, name):
                words[f"{name}:"] = f"{A.nrows} x {A.ncols}, {A.nvals} entries"
        return words


def _has(words: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words) is not None


def _drawn_shape(A: Matrix | None, transposed: bool) -> tuple[int, int]:
    """Return the rows and columns of a matrix in the drawing; (0, 0) for None."""
    return (0, 0) if A is None else (A.ncols, A.nrows) if transposed else (A.nrows, A.ncols)


def draw(
    step: Step, layout: Layout | None = None, share: Callable[[str], str] | None = None
) -> str:
    """Return a step as SVG: the matrix with what a product uses, the mask, every vector."""
    return _Drawing(step, layout or Layout([step]), SvgCanvas(share)).svg()


class _Drawing:
    """The drawing of a step; `left` and `top` are the corner of the matrix, `c` a cell's side."""

    def __init__(self, step: Step, layout: Layout, canvas: SvgCanvas) -> None:
        self.step, self.layout, self.canvas = step, layout, canvas
        self.longest = max((state.size for state in step.vectors.values()), default=1)
        widest = max(layout.nrows, layout.ncols, self.longest, 1)
        # The drawing fits a telephone at three fifths of its size, unless cells get too small.
        self.c = c = float(max(11, min(18, 600 // widest), min(34, 330 // widest)))
        numbers = 26 + (c + _GAP if layout.beside else 0)  # with a factor beside the matrix
        of_matrices, of_vectors = layout.longest
        self.left = min(
            _NAMES + numbers, max(8.4 * of_matrices + 4 + numbers, 8.4 * of_vectors + 16)
        )
        self.top = 22 + (c + _GAP if layout.above else 0)
        right = self.left + max(layout.ncols, self.longest) * c
        canvas.grow_to(right + (2.5 * c + 2 * _GAP if layout.above else 0), 0)

    def svg(self) -> str:
        step, layout, c = self.step, self.layout, self.c
        self._matrix()
        y = self.top + layout.nrows * c + _GAP + 4
        # The mask and the result of ``A @ u`` are columns beside the matrix.
        upright = step.product is not None and not step.product.vector_left
        if step.mask is not None and step.kept is not None and not upright:
            self._name(f"mask {step.mask.formula}", y + c / 2, "#2F7D4F")
            self._mask(self._cells("mask", 1, step.kept.size, self.left, y), tall=0.6)
        y += c + _GAP
        for name in layout.names:
            state = step.vectors.get(name)
            if state is not None:
                self._vector(name, state, y)
            elif len(layout.names) > _WAITING:
                continue
            else:  # it comes later; its place is not an unexplained gap
                self._name(name, y + c / 2, look.GREY)
            y += c + 8
        for name, rows in layout.flat.items():
            if name in step.matrices:
                self._values(name, y)
            else:
                self._name(name, y + rows * c / 2, look.GREY)
            y += rows * c + 8
        for k, (name, words) in enumerate(layout.listed(step).items()):
            self._label(name.rstrip(":"), f"{name} {words}", y + 9 + 22 * k)
        y += 22 * layout.lines
        if layout.written:
            if step.output in step.matrices and step.output not in (layout.matrix, *layout.flat):
                self._values(step.output, y + _GAP)
            elif step.output not in step.matrices:
                self._name("no matrix written", y + _GAP + layout.written * c / 2, look.GREY)
            y += layout.written * c + 2 * _GAP
        self.canvas.grow_to(0, y)
        return self.canvas.svg(step.words)

    def _label(self, name: str, shows: str, y: float, ink: str = look.INK) -> None:
        """Write the label of an object on the left, with an arrow if the statement wrote it."""
        arrow = "\u25b6 " if name == self.step.output else ""
        self.canvas.words((2, y), arrow + shows, 15, ink, "left")

    def _name(self, name: str, y: float, ink: str = look.INK) -> None:
        """Write the name of an object on the left, in two lines or shortened if it is long."""
        first, at, second = name.partition(" @ ")
        if at and self.layout.nrows * self.c >= 40:
            self._label(name, f"{first} @", y - 10, ink)
            self._label(name, second, y + 10, ink)
            return
        first, of, caller = name.partition(" of ")
        if len(name) <= 19 or not of or self.c < 20:
            self._label(name, name if len(name) <= 19 else name[:18] + "\u2026", y, ink)
            return
        self._label(name, first, y - 10, ink)
        room = int((self.left - 8) / 8.6) - 3  # characters
        caller = caller if len(caller) <= room else caller[: room - 1] + "\u2026"
        self.canvas.words((2, y + 10), f"of {caller}", 15, ink, "left")

    def _cells(self, name: str, nrows: int, ncols: int, left: float, top: float) -> Cells:
        return Cells(name, nrows, ncols, left + self.c / 2, top + self.c / 2, self.c)

    def _numbers(self, grid: Cells, top: float = 0) -> None:
        """Write the numbers of the rows, and of the columns above them if there is room."""
        every = 1 if self.c >= 20 else 2 if self.c >= 16 else 4
        for i in range(0, grid.nrows, every):
            self.canvas.words((self.left - 6, grid.at(i, 0)[1]), str(i), 15, look.MUTED, "right")
        for j in range(0, grid.ncols if top else 0, every):
            self.canvas.words((grid.at(0, j)[0], top), str(j), 15, look.MUTED)

    def _matrix(self) -> None:
        """Draw the matrix, the entries that a product uses, its factor and its result."""
        step, p = self.step, self.step.product
        name, A, transposed = self.layout.drawn(step)
        shape = (0, self.longest) if A is None else _drawn_shape(A, transposed)
        grid = self._cells("matrix", *shape, self.left, self.top)
        self._numbers(grid, self.top - 13 if p is None or p.vector_left else 9)
        if A is None:
            return
        if name == step.output:
            self._values(name, self.top)
            return
        shows = f"{name}'" if transposed else name
        if p is not None:
            shows = f"{p.vector} @ {shows}" if p.vector_left else f"{shows} @ {p.vector}"
        self._name(shows, self.top + grid.nrows * self.c / 2)
        rows, cols = A.to_coo()[1::-1] if transposed else A.to_coo()[:2]
        if p is None:
            grid.pattern(self.canvas, rows, cols)
        else:
            factor, kept = step.before[p.vector], step.kept
            grid.pattern(self.canvas, rows, cols, factor.pattern, kept, by_rows=p.vector_left)
            if p.vector_left:
                self._line(factor, self.left - 24 - _GAP - self.c, self.top, upright=True)
            else:
                self._line(factor, self.left, self.top - _GAP - self.c)
                x = self.left + grid.ncols * self.c + _GAP
                if kept is not None:
                    self._mask(self._cells("mask", kept.size, 1, x, self.top))
                    x += self.c + _GAP
                self._line(step.vectors[step.output], x, self.top, upright=True)
        grid.frame(self.canvas)

    def _mask(self, grid: Cells, tall: float = 1) -> None:
        assert self.step.kept is not None
        for k, kept in enumerate(self.step.kept.tolist()):
            grid.put(*((0, k) if grid.nrows == 1 else (k, 0)), look.KEPT if kept else look.OUT)
        grid.draw(self.canvas, tall=tall)

    def _line(self, state: State, left: float, top: float, *, upright: bool = False) -> Cells:
        grid = self._cells("vector", *((state.size, 1) if upright else (1, state.size)), left, top)
        grid.fill((k, 0, x) if upright else (0, k, x) for k, x in state.to_dict().items())
        grid.draw(self.canvas)
        return grid

    def _vector(self, name: str, state: State, y: float) -> None:
        """Draw a vector with its name, and an outline around entries that the statement changed."""
        written = name == self.step.output
        self._name(name, y + self.c / 2, look.VERMILION if written else look.INK)
        grid = self._line(state, self.left, y)
        if written:
            before = self.step.before[name].to_dict()
            changed = [grid.at(0, j) for j in _changed(before, state.to_dict())]
            self.canvas.squares(look.CHANGED, changed, (self.c, self.c))

    def _values(self, name: str, y: float) -> None:
        """Draw a matrix with its values as `_vector` does a vector; columns stand below others'."""
        A, old = self.step.matrices[name], self.step.overwritten
        written = name == self.step.output
        self._name(name, y + A.nrows * self.c / 2, look.VERMILION if written else look.INK)
        grid = self._cells(name, A.nrows, A.ncols, self.left, y).fill(triplets(A))
        self._numbers(grid)
        grid.draw(self.canvas, blank=False)
        if written and old is not None:
            before, after = ({(i, j): x for i, j, x in triplets(B)} for B in (old, A))
            changed = [grid.at(*at) for at in _changed(before, after)]
            self.canvas.squares(look.CHANGED, changed, (self.c, self.c))


def _changed(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> list[Any]:
    """Return where an entry has come, gone or another value."""
    return [at for at in sorted({**before, **after}) if before.get(at) != after.get(at)]


class GraphDrawing:
    """The graph of a matrix of some steps, with its vertices in the same places in each step."""

    def __init__(self, name: str, steps: Iterable[Step]) -> None:
        A = next(step.matrices[name] for step in steps if name in step.matrices)
        self._name, self._A, self._n = name, A, A.nrows
        found = places(*A.to_coo()[:2], A.nrows)
        low, high = found.min(0), found.max(0)
        room = np.array([_WIDTH - 2 * _EDGE, _HEIGHT - 2 * _EDGE])
        scale = float((room / np.maximum(high - low, 1e-9)).min())
        self._at = (found - (low + high) / 2) * min(scale, 1e6) + np.array([_WIDTH, _HEIGHT]) / 2
        between = self._at[None] - self._at[:, None]
        apart = np.hypot(*between.transpose(2, 0, 1))
        np.fill_diagonal(apart, np.inf)
        most = 18.0 if A.nrows <= 20 else 13.0
        self._radius = min(most, max(9.0, float(apart.min(initial=np.inf)) / 2))
        joined = np.zeros(apart.shape, bool)
        joined[tuple(A.to_coo()[:2])] = True
        ways = between / np.maximum(apart, 1e-9)[..., None]
        self._ways = [ways[i, near] for i, near in enumerate(joined | joined.T)]

    def draw(self, step: Step, share: Callable[[str], str] | None = None) -> str:
        """Return a step as SVG; an empty string for a step without the matrix."""
        same = (B for B in step.matrices.values() if B.isequal(self._A))  # a helper's name for it
        A = step.matrices.get(self._name, next(same, None))
        if A is None or A.shape != (self._n, self._n):
            return ""
        canvas, at, radius = SvgCanvas(share), self._at, self._radius
        canvas.grow_to(_WIDTH, _HEIGHT + 64)
        tails, heads = A.to_coo()[:2]
        p, n = step.product, self._n
        M = A if p is None else step.matrices[p.matrix]
        flows = i, j = M.to_coo()[:2]
        dropped = used = np.zeros(len(i), bool)
        along = M.shape == A.shape and bool(np.isin(i * n + j, tails * n + heads).all())
        if p is not None and along:
            flows = (j, i) if p.transposed == p.vector_left else flows
            dropped, used = dropped_and_used(*flows, step.before[p.vector].pattern, step.kept)
        rest = ~np.isin(tails * n + heads, (i * n + j)[dropped | used])
        edges(canvas, look.EDGE, at, tails[rest], heads[rest], radius, not A.is_symmetric)
        for line, which in ((look.DROPPED, dropped), (look.TREE, used)):
            edges(canvas, line, at, flows[0][which], flows[1][which], radius, True)
        state, caption = step.vectors.get(step.output), f"the graph of {self._name}"
        state = None if state is None or state.size != self._n else state
        if state is not None:
            caption = f"filled: entries of {step.output}, ringed: changed"
            if p is not None and along:
                was, now = (" before", " after") if p.vector == step.output else ("", "")
                caption += f"; orange arrows: from {p.vector}{was} to {step.output}{now}"
                caption += "; light orange arrows: dropped by the mask" * bool(dropped.any())
        self._vertices(canvas, step, state)
        for k, part in enumerate(caption.split("; ")):
            canvas.words((_WIDTH / 2, _HEIGHT + 13 + 19 * k), part, 15, look.MUTED)
        said = f"; {caption}" * (state is not None)
        return canvas.svg(f"The graph of {self._name}{said}. {step.words}")

    def _vertices(self, canvas: SvgCanvas, step: Step, state: State | None) -> None:
        """Draw the vertices, with the entries of a vector that has one for each."""
        of = np.zeros(self._n, int)
        if state is not None:
            of[state.indices] = np.where(state.values != 0, 1, 2)
        kinds = (look.NONE._replace(edge=look.MUTED), look.ENTRY, look.ZERO)
        vertices(canvas, kinds, of, self._at, self._radius, 14)
        if state is None:
            return
        before = step.before[step.output].to_dict()
        changed = self._at[_changed(before, state.to_dict())]
        canvas.discs(look.CHANGED, changed, self._radius)
        if state.dtype is not BOOL:
            for i, value in state.to_dict().items():
                word, away = fitting(value), 0.75 * self._radius
                right, below = self._corner(i, away + 10 * len(word))
                down = below * (away + 5 if right else self._radius + 9)
                x, y = self._at[i] + (right * away, down)
                side = "left" if right > 0 else "right" if right else "center"
                canvas.words((x, y), word, 14, look.VERMILION, side, halo=True)

    def _corner(self, i: int, wide: float) -> tuple[int, int]:
        """Return where a word of a vertex has room and is far from edges: at a corner, or below."""
        (x, y), ways = self._at[i], self._ways[i]
        fit = [c for c in _CORNERS if 0 < x + c[0] * wide < _WIDTH]
        half = 0.48 * (wide - 0.75 * self._radius)  # of the word alone
        if half < x < _WIDTH - half and y + self._radius + 20 < _HEIGHT:
            fit.append((0, 1))
        near = {c: (ways @ c).max(initial=-1) / np.hypot(*c) for c in fit or _CORNERS}
        return min(near, key=lambda c: round(float(near[c]), 1))


def legend(drawn: str, names: bool = False) -> str:
    """Return the legend of the cells in some SVG, an SVG for each, and of the `names` there."""
    other = look.IDLE._replace(label="other entry of a matrix")
    kinds = [look.ENTRY, look.ZERO, look.NONE, look.CHANGED, look.USED, look.DROP, other]
    made = []
    for kind in [*kinds, look.TOUCHED, look.KEPT, look.OUT, look.VEIL]:
        if look.cell_style(kind) + "/>" * (kind is other) not in drawn:
            continue
        canvas = SvgCanvas()
        canvas.squares(kind, [(11, 12)], (18, 18))
        canvas.words((11, 12), {"entry": "7", "zero": "0"}.get(kind.name, ""), 12, kind.ink)
        canvas.words((26, 12), kind.label, 14, align="left")
        canvas.grow_to(26 + 7.6 * len(kind.label) + 12, 24)
        made.append(canvas.svg(kind.label))
    for name, words, sign in _SIGNS[: None if names else 1]:
        if not re.search(sign, drawn):
            continue
        canvas, begin = SvgCanvas(), 46 if name else 2
        canvas.words((2, 12), name, 14, look.GREY, "left")
        canvas.words((begin, 12), words, 14, align="left")
        canvas.grow_to(begin + 7.6 * len(words) + 12, 24)
        made.append(canvas.svg(f"{name} {words}".strip()))
    return "".join(made)


Labels = tuple[str, ...]
#: Most steps on a page.
MOST = 1000
_SECTION = (
    '<section class="step" data-code="{code}" data-line="{step.line}" '
    'data-last="{step.last_line}" data-level="{level}"><div class="state">'
    "<h2>step {step.number}, {where}</h2><p>{source}</p>{drawing}</div>"
    '<div class="graph">{graph}</div></section>'
)


def require_size(size: int, name: str, what: str) -> None:
    """Raise `LimitExceeded` if an object is larger than a page draws."""
    if size > LARGEST:
        raise LimitExceeded(
            f"{what}: {name} has size {size:,} > {LARGEST}, the largest that a page draws. "
            "Use a smaller graph, such as kron:4 or grid:4x5."
        )


def page_of_runs(
    runs: Mapping[Labels, Iterable[Step]], title: str, facts: Mapping[str, object] | None = None, *,
    names: Mapping[str, Labels] | None = None, what: str = "page",
) -> str:  # fmt: skip
    """Return a page that shows one step of a run at a time, and prints all of the first run."""
    # A run has a label for each option of `names`, from which a reader chooses. An error message
    # begins with `what`. Raises `LimitExceeded` if a run has more than `MOST` steps, or a vector or
    # matrix is larger than `LARGEST`.
    small = {labels: list(steps) for labels, steps in runs.items()}
    every = [step for steps in small.values() for step in steps]
    for step in every:
        drawn: dict[str, Any] = {**step.vectors, **step.matrices}
        for name, x in drawn.items():
            require_size(x.size if isinstance(x, State) else max(x.shape), name, what)
    if (most := max(map(len, small.values()))) > MOST:
        raise LimitExceeded(
            f"{what}: {most:,} steps > {MOST}, the most that a page shows. "
            "Use a graph of fewer levels, or fewer iterations."
        )
    layout = Layout(every)
    codes = list(dict.fromkeys(step.code for step in every if step.code is not None))
    shared: dict[str, str] = {}

    def share(element: str) -> str:
        if len(element) < 200:
            return element
        name = shared.setdefault(element, f"p{len(shared)}")
        return f'<use href="#{name}"/>'

    graph, sizes = graph_of(every), [16.0]  # the largest text in a cell

    def section(step: Step) -> str:
        code = -1 if step.code is None else codes.index(step.code)
        drawing = draw(step, layout, share)
        sizes.extend(map(float, re.findall(r'font-size="([\d.]+)"', drawing)))
        return _SECTION.format(
            code=code, level=step.level if step.level >= 0 else "", step=step,
            source=_breaking(step.source or step.formula), drawing=drawing,
            where=text(step.where), graph=graph.draw(step, share) if graph else "",
        )  # fmt: skip

    sections = {labels: "".join(map(section, steps)) for labels, steps in small.items()}
    first, choices, others = next(iter(small)), "", ""
    for name, labels in (names or {}).items():
        values = "".join(f"<option>{text(label)}</option>" for label in labels)
        choices += f"<label>{text(name)} <select>{values}</select></label>"
    if len(sections) > 1:  # as a script can read them
        packed = gzip.compress(json.dumps(list(sections.values())).encode(), mtime=0)
        others = base64.b64encode(packed).decode()
    return fill(
        "step.html", title=text(title), count=str(max(len(small[first]), 1)),
        facts=text(", ".join(f"{k} {v}" for k, v in (facts or {}).items())),
        shared="".join(f'<g id="{name}">{element}</g>' for element, name in shared.items()),
        codes="".join(_listing(k, code, every) for k, code in enumerate(codes)),
        scale=f"{10 / min(sizes):.3f}", choices=choices, steps=sections[first], others=others,
        legend=legend("".join([*sections.values(), *shared]), names=True),
    )  # fmt: skip


def graph_of(steps: list[Step]) -> GraphDrawing | None:
    """Return the drawing of the first square matrix, of those in products if there are any."""
    begin = steps[0].matrices if steps else {}
    products = [(step.product.matrix, step) for step in steps if step.product is not None]
    used = {name: step.matrices[name] for name, step in reversed(products)}
    same = [x for x, A in used.items() if any(A.isequal(B) for B in begin.values())]
    names = [x for x in begin if x in used] or same or begin  # another function may rename it
    square = (x for x in names if len({*{**used, **begin}[x].shape}) == 1)
    return next((GraphDrawing(x, steps) for x in square), None)


def _listing(number: int, code: CodeType, steps: list[Step]) -> str:
    """Return the source of a function as HTML, or those statements of a script that ran."""
    whole = code.co_name == "<module>"
    lines, first = linecache.getlines(code.co_filename), 1
    if not whole:
        try:
            lines, first = inspect.getsourcelines(code)
        except OSError:
            lines, first = [], code.co_firstlineno
    lines = textwrap.dedent("".join(lines) or "# the source cannot be read").splitlines()
    hidden = _hidden(lines, {step.line for step in steps if step.code is code} if whole else None)
    spans = ""
    for k, line in enumerate(lines):
        if k + 1 not in hidden:
            bare, n = line.strip() + '"""' * (not whole and k + 2 in hidden), first + k
            indent = len(line) - len(line.lstrip())  # of the line's continuation where it wraps
            shown = f'<code style="--in:{indent}">{_breaking(bare)}</code>'
            spans += f'<span id="c{number}-{n}" data-n="{n}">{shown}</span>'
    return f'<div class="code"><h2>{text(file_name(code.co_filename))}</h2><pre>{spans}</pre></div>'


def _breaking(line: str) -> str:
    """Return a line of code as HTML that may break before a method's dot or a longer name's."""
    shown = text(FOR_TOOLS.sub("", line)).replace("-&gt;", "<bdi>-&gt;</bdi>")
    return re.sub(r"(?<=\))\.|\.(?=[A-Za-z_]{6})", "<wbr>.", shown)


def _hidden(lines: list[str], ran: set[int] | None) -> set[int]:
    """Return the lines, from 1, that a listing leaves out."""
    # Those of a docstring after the first; of a script, outermost statements without a line `ran`.
    try:
        with SYNTAX:
            body = ast.parse("\n".join(lines)).body
    except SyntaxError:
        return set()
    if ran is not None:
        spans = [range(node.lineno, (node.end_lineno or 0) + 1) for node in body]
        kept = {n for span in spans if ran.intersection(span) for n in span}
        return set(range(1, len(lines) + 1)) - kept if kept else set()
    function = next(iter(body), None)
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(function):
        docstring = function.body[0]
        return set(range(docstring.lineno + 1, (docstring.end_lineno or 0) + 1))
    return set()
