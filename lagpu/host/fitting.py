"""Tables that fit a terminal: no word is torn, and no heading is lost."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

_INDENT = "  "
# Options of a form, its cost in all and for each column; the widest first.
_FORMS: tuple[tuple[dict[str, Any], int, int], ...] = (
    ({}, 1, 3),
    ({"box": box.SIMPLE_HEAD, "show_edge": False, "padding": 0}, -1, 1),
)


class FittingTable(Table):
    """A table in the first of these forms that fits a terminal; it breaks cells between words only.

    With a frame; without one; without the columns of the headings `spare`, which a line below then
    names; and as lines ``heading value  heading value``. A column of the headings `common` stands
    above several rows if all have the same cell there.
    """

    def __init__(
        self, *headers: str, spare: Sequence[str] = (), common: Sequence[str] = (), **how: Any
    ) -> None:
        super().__init__(*headers, **how)
        self._spare, self._common = spare, common

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        above = {}
        for column in self.columns:
            cells = {_text(cell, console) for cell in column.cells}
            if column.header in self._common and self.row_count > 1 and len(cells) == 1:
                above[column.header] = cells.pop()
        same = ", ".join(f"{heading} {cell}" for heading, cell in above.items() if cell)
        title = "; ".join(part for part in (str(self.title or ""), same) if part)
        shown = [column for column in self.columns if column.header not in above]
        kept = [column for column in shown if column.header not in self._spare]
        for columns, note in ((shown, ""), (kept, f"too narrow for {', '.join(self._spare)}")):
            # The widths of the longest word and of the longest cell of each column.
            sizes = [[*map(console.measure, (c.header, *c.cells))] for c in columns]
            needs = [
                (max(1, *(x.minimum for x in of)), max(1, *(x.maximum for x in of))) for of in sizes
            ]
            for how, ends, each in _FORMS:
                room = options.max_width - ends - each * len(columns)
                if sum(least for least, _ in needs) <= room:
                    caption = "; ".join(part for part in (str(self.caption or ""), note) if part)
                    table = Table(title=title or None, caption=caption or None, **how)
                    for column, width in zip(columns, _widths(needs, room), strict=True):
                        table.add_column(column.header, justify=column.justify, width=width)
                    for row in zip(*(column.cells for column in columns), strict=True):
                        table.add_row(*row)
                    yield table
                    return
        for line in (title, *_lines(shown, console, options.max_width), self.caption):
            if line:
                yield Text(str(line))


def _text(cell: RenderableType, console: Console) -> str:
    text = console.render_str(cell) if isinstance(cell, str) else cell
    return text.plain if isinstance(text, Text) else str(text)


def _widths(needs: Sequence[tuple[int, int]], room: int) -> list[int]:
    """Return a width for each column: what is over its longest word goes to the neediest last."""
    widths = [least for least, _ in needs]
    over = room - sum(widths)
    by_need = sorted(range(len(needs)), key=lambda k: needs[k][1] - needs[k][0])
    for place, k in enumerate(by_need):
        more = min(needs[k][1] - needs[k][0], over // (len(needs) - place))
        widths[k] += more
        over -= more
    return widths


def _lines(columns: Sequence[Column], console: Console, width: int) -> Iterator[str]:
    """Yield the rows as lines of pairs; the first line of a row starts at the margin."""
    headings = [_text(column.header, console) for column in columns]
    room = max(width - len(_INDENT), 1)
    for row in zip(*(column.cells for column in columns), strict=True):
        lines = [""]
        for heading, cell in zip(headings, row, strict=True):
            pair = f"{heading} {_text(cell, console)}"
            for part in textwrap.wrap(pair, room, break_on_hyphens=False):
                joined = f"{lines[-1]}  {part}".strip()
                lines[-1:] = [joined] if cell_len(joined) <= room else [lines[-1], part]
        yield lines[0]
        yield from (_INDENT + line for line in lines[1:])
