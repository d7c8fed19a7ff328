"""Tables on terminals of any width: whole words, every heading, no line beyond the edge."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from lagpu.host.fitting import FittingTable

HEADINGS = ("graph", "mode", "edges examined", "kernel", "q1", "median ms", "checked")
ROWS = (
    ("kron20e16", "fused", "1,234,567", "grid search", "0.123", "10.123", "yes"),
    ("mycielskian17", "statement by statement", "9", "-", "0.5", "1,234.568", "NO"),
)
LONGEST = max(len(word) for row in ROWS for cell in row for word in cell.split())


def made(**how):
    table = FittingTable("graph", title="a title", caption="a note", **how)
    for name in HEADINGS[1:]:
        table.add_column(name, justify="right")
    for *cells, verdict in ROWS:
        table.add_row(*cells, Text(verdict, "green"))
    return table


def printed(table, width):
    out = Console(file=io.StringIO(), width=width, color_system=None)
    out.print(table)
    return out.file.getvalue()


@pytest.mark.each_value
@pytest.mark.parametrize("spare", [(), ("q1", "edges examined")])
@pytest.mark.parametrize("width", range(LONGEST + 2 + len("graph "), 140))
def test_no_word_is_torn_and_no_heading_lost(width, spare):
    text = printed(made(spare=spare), width)
    assert max(map(len, text.splitlines())) <= width
    words = set(text.replace("│", " ").replace("┃", " ").replace(",\n", " ").split())
    words |= {word.rstrip(",") for word in words}
    assert {word for heading in HEADINGS for word in heading.split()} <= words
    lost = {HEADINGS.index(name) for name in spare} if "too narrow for" in text else set()
    kept = [cell for row in ROWS for k, cell in enumerate(row) if k not in lost]
    assert {word for cell in kept for word in cell.split()} <= words


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_terminal_narrower_than_the_indent(width):
    assert "".join(printed(made(), width).split()).startswith("atitlegraphkron20e16modefused")


def test_the_forms_in_turn():
    table = made(spare=("q1",))
    forms = [printed(table, width) for width in (120, 80, 72, 62, 40)]
    assert ["┃" in form for form in forms] == [True, True, False, False, False]
    assert ["──" in form for form in forms] == [True, True, True, True, False]
    assert ["too narrow for q1" in form for form in forms] == [False, False, False, True, False]
    assert "graph kron20e16  mode fused\n  edges examined 1,234,567\n" in forms[-1]


@pytest.mark.parametrize("width", [120, 40])
def test_a_column_with_one_cell_in_all_rows_stands_above_them(width):
    def text(*rows, common=("kernel", "note"), **how):
        table = FittingTable("level", "kernel", "ms", "note", common=common, **how)
        for row in rows:
            table.add_row(*row)
        return printed(table, width)

    same = text(("0", "SuiteSparse saxpy", "1.5", ""), ("1", "SuiteSparse saxpy", "1.5", ""))
    assert same.split()[:3] == ["kernel", "SuiteSparse", "saxpy"]
    assert same.count("saxpy") == 1
    assert same.count("1.5") == 2
    assert "note" not in same
    rows = ("0", "pull", "1.5", ""), ("1", "push", "1.5", "")
    assert text(*rows, title="a title").split()[:2] == ["a", "title"]
    assert text(*rows).index("level") < text(*rows).index("kernel") < text(*rows).index("pull")
    assert text(rows[1]).index("level") < text(rows[1]).index("push")  # one row has nothing above
    assert text(rows[0], rows[0], common=()).count("pull") == 2
