"""Text and HTML of an object for a terminal or a notebook: facts, and a table of some entries.

Only the upper left corner is fetched, and nothing is computed. An object that cannot be read (the
device is lost, a loop is being recorded) shows the reason. A cell ``.`` is no entry, ``0`` an entry
that is zero. Objects are read by their attributes: this module imports no class of lagpu, so that
every package can use it.
"""

import html
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

FEW = 8  # rows, columns, and entries of a vector that are shown
SHORT = 16  # size up to which every position of a vector is shown
GAP = 3  # in a longer vector, the longest run without entries that is shown position by position

_LINE = "1px solid rgba(128,128,128,0.45)"
_CELL = "padding:1px 6px;min-width:1.1em;text-align:center;border:"
_INDEX = "color:gray;font-weight:normal;text-align:center;padding:1px 6px;border:none"
_REST = f'style="{_CELL}none;color:gray">'
_NONE = f'<td title="no entry" style="{_CELL}{_LINE};color:rgba(128,128,128,0.7)">·</td>'


class Unnamed(str):
    """The name of an object without one of its own: a letter, as in a formula."""

    __slots__ = ()


class Lines(str):
    """A text of several lines, which a prompt and a notebook show as `print` does."""

    __slots__ = ()
    __repr__ = str.__str__


_numbers = itertools.count()


def own_name(x: Any) -> str:
    """Return the name of an object; one without a name of its own is numbered now, as ``v_0``."""
    if type(x.name) is Unnamed:
        x.name = f"{x.name}_{next(_numbers)}"
    return str(x.name)


def short(value: Any) -> str:
    """Return the text of a value in a cell: 1 and 0 for BOOL, three digits of a float."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, float):
        if math.isinf(number):
            return "∞" if number > 0 else "-∞"
        return "NaN" if math.isnan(number) else f"{number:.3g}"
    number = int(number)
    return str(number) if abs(number) < 100_000 else f"{number:.1e}".replace("e+0", "e")


def _read_or_reason(x: Any, read: Callable[[], Any]) -> Any:
    """Return the result of `read`, or a text that says why an object cannot be read."""
    why = x._why_unreadable()
    if why:
        return why
    try:
        return read()
    except Exception as error:  # showing an object must never fail
        return f"not readable: {type(error).__name__}"


def _facts(x: Any) -> str:
    """Return ``Vector(INT64, size 3, 2 entries, sparse on cpu)``."""
    stored = getattr(x, "stored", x)  # of a transpose its matrix
    own = getattr(stored, "_form", None)  # of a view
    form_of = own or (lambda: x.backend.form(stored.data))
    form = _read_or_reason(x, lambda: f"{form_of()} on ")
    count = _read_or_reason(x, lambda: x.nvals)
    if isinstance(count, int):
        count = f"{count:,} {'entry' if count == 1 else 'entries'}"
    where = f"{form if form.endswith(' on ') else ''}{x.backend.name}"
    size = f"size {x.size:,}" if x.ndim == 1 else " x ".join(f"{n:,}" for n in x.shape)
    return f"{type(x).__name__}({x.dtype}, {size}, {count}, {where})"


def _object_html(x: Any, found: Any, shown: Callable[[Any], str]) -> str:
    """Return the facts about an object, and its entries or why it cannot be read, as HTML."""
    own_name(getattr(x, "stored", x))  # a transpose has the name of its matrix
    inside = html.escape(found) if isinstance(found, str) else shown(found)
    return f"<div>{_title(f'{x.name}: {_facts(x)}')}{inside}</div>"


# ---- vectors
def _first_entries(v: Any) -> Any:
    """Return the first entries of a vector as (index, value) pairs, or why it cannot be read."""

    def read() -> list[tuple[int, Any]]:
        indices, values = v.backend.vector_head(v.data, FEW + 1)
        return list(zip(indices.tolist(), values.tolist(), strict=True))

    return _read_or_reason(v, read)


def vector_text(v: Any) -> str:
    """Return ``Vector(INT64, size 3, 2 entries, sparse on cpu) {0: 1, 2: 2}``."""
    found = _first_entries(v)
    if not isinstance(found, str):
        found = ", ".join([f"{i}: {x}" for i, x in found[:FEW]] + ["..."] * (len(found) > FEW))
    return f"{_facts(v)} {{{found}}}"


def vector_html(v: Any) -> str:
    return _object_html(v, _first_entries(v), lambda found: _row_of_cells(v.size, found))


def _row_of_cells(size: int, found: list[tuple[int, Any]]) -> str:
    """Return a row of cells: entries, and the positions without entries between them."""
    indices, cells, at = [], [], 0
    for i, x in [*found[:FEW], *([(size, None)] if len(found) <= FEW else [])]:
        if i - at > (GAP if size > SHORT else SHORT):
            indices.append("")
            cells.append(f'<td title="no entry" {_REST}{i - at:,} without</td>')
        else:
            indices += [str(k) for k in range(at, i)]
            cells += [_NONE] * (i - at)
        if i < size:
            indices.append(f"{i:,}")
            cells.append(_cell(x))
        at = i + 1
    if len(found) > FEW:
        indices.append("")
        cells.append(f"<td {_REST}…</td>")
    return _table([_row(map(_index, indices)), _row(cells)])


# ---- matrices
def _preview(A: Any) -> Any:
    """Return the upper left entries as {(row, column): value}, or why A cannot be read."""
    B, transposed = getattr(A, "stored", A), getattr(A, "stored", A) is not A
    nrows, ncols = min(B.shape[0], FEW), min(B.shape[1], FEW)

    def read() -> dict[tuple[int, int], Any]:
        if not (nrows and ncols):
            return {}
        rows, cols, values = B._preview(nrows, ncols)
        where = zip(*((cols, rows) if transposed else (rows, cols)), strict=True)
        return {(int(i), int(j)): x for (i, j), x in zip(where, values, strict=True)}

    return _read_or_reason(A, read)


def matrix_text(A: Any) -> str:
    """Return the facts, and below them the upper left corner if it has entries."""
    head, found = _facts(A), _preview(A)
    if isinstance(found, str):
        return f"{head} {{{found}}}"
    if not found:
        return head
    nrows, ncols = min(A.nrows, FEW), min(A.ncols, FEW)
    more = "  ..." if A.ncols > FEW else ""
    lines = [["", *map(str, range(ncols))]]
    for i in range(nrows):
        row = (found.get((i, j)) for j in range(ncols))
        lines.append([str(i), *("." if x is None else short(x) for x in row)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["  ".join(map(str.rjust, line, widths)) + more for line in lines]
    if A.nrows > FEW:
        table.append("...".rjust(widths[0] + 3))
    return "\n".join([head, *table])


def matrix_html(A: Any) -> str:
    """Return the facts and the upper left corner as HTML."""

    def shown(found: Any) -> str:
        nrows, ncols = min(A.nrows, FEW), min(A.ncols, FEW)
        more = [f"<td {_REST}…</td>"] * (A.ncols > FEW)
        lines = [_row(map(_index, ["", *range(ncols)]))]
        for i in range(nrows):
            cells = (_cell(found.get((i, j))) for j in range(ncols))
            lines.append(_row([_index(i), *cells, *more]))
        return _table([*lines, *[_row([_index("…")])] * (A.nrows > FEW)])

    return _object_html(A, _preview(A), shown)


def mask_html(m: Any) -> str:
    """Return a mask as HTML: where it lets results through, and its vector or matrix."""
    shown = vector_html(m.vector) if m.vector.ndim == 1 else matrix_html(m.vector)
    if m.structure:
        where = "no entry" if m.complement else "an entry"
    else:
        where = "no entry, or a zero" if m.complement else "an entry that is not zero"
    title = f"{m!r}: Mask, lets through where {own_name(m.vector)} has {where}"
    return f"<div>{_title(title)}{shown}</div>"


def _title(text: str) -> str:
    return f"<code>{html.escape(text)}</code>"


def _table(lines: list[str]) -> str:
    style = "border-collapse:separate;border-spacing:2px;margin:4px 0;border:none;width:auto"
    return f'<table style="{style}">{"".join(lines)}</table>'


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _index(i: object) -> str:
    return f'<th style="{_INDEX}">{i}</th>'


def _cell(value: Any) -> str:
    if value is None:
        return _NONE
    if value == 0:
        return f'<td title="an entry that is zero" style="{_CELL}2px dashed #E69F00">0</td>'
    style = f"{_CELL}1px solid #0072B2;background:rgba(86,180,233,0.25)"
    return f'<td title="entry" style="{style}">{html.escape(short(value))}</td>'


def one_line(error: BaseException) -> str:
    """Return the message of any error on one line."""
    return " ".join(str(error).split())
