"""The page of files has every format, and says of each what the table says."""

from pathlib import Path

from lagpu.io.formats import FORMATS

PAGE = Path(__file__).parents[2] / "docs" / "files.md"
LOST = {
    "directed": "directed edges",
    "values": "values",
    "last": "isolated last vertices",
}


def row(form):
    suffixes = ", ".join(f"`{suffix}`" for suffix in form.suffixes)
    lost = [text for name, text in LOST.items() if name not in form.holds]
    if {"values", "infinite"} & form.holds == {"values"}:
        lost.append("infinities, NaN")
    return [
        form.name,
        suffixes,
        "no" if form.magic else "yes",
        ", ".join(lost) or "-",
        "yes" if "renumber" in form.heeds else "no",
        f"`lagpu[{form.extra}]`" if form.extra else "-",
    ]


def test_the_page_has_the_table():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert found[1:] == [row(form) for form in FORMATS]
