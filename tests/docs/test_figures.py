"""Figures in the pages are those of the data files."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "docs" / "benchmarks"
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import figures  # noqa: E402

PAGES = [page for page in (ROOT / "docs").rglob("*.md") if "<!-- rows" in page.read_text("utf-8")]


def data(name):
    return json.loads((BENCHMARKS / name).read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_table_of_a_page_is_printed(page):
    text = page.read_text("utf-8")
    made = figures.with_figures(text)
    assert "<!-- rows" not in made
    assert "<!-- pivot" not in made
    for file in re.findall(r"<!-- (?:rows|pivot) (\S+)", text):
        assert f"[{file}]({file}): " in made


def test_rows_and_pivots_have_the_numbers_of_the_file(tmp_path):
    rows = [
        {"graph": "a", "system": "x", "ms": 1.2345, "bytes": 2_000_000_000},
        {"graph": "a", "system": "y", "ms": None, "note": "too large: 3", "bytes": 1},
        {"graph": "b", "system": "x", "ms": 12345.6, "bytes": 1},
    ]
    whole = {"machine": {"cpu": "C"}, "date": "2026-01-02T00", "versions": {"v": "1", "w": None}}
    (tmp_path / "f.json").write_text(json.dumps(whole | {"rows": rows}), "utf-8")
    asked = "<!-- rows f.json columns=graph,ms,bytes where=system:x -->"
    assert figures.with_figures(asked, tmp_path).splitlines() == [
        "| graph | ms | GB |", "| --- | ---: | ---: |", "| a | 1.23 | 2.00 |",
        "| b | 12,346 | 0.00 |", "", "[f.json](f.json): C, 2026-01-02; v 1, w.",
    ]  # fmt: skip
    asked = "<!-- pivot f.json index=graph columns=system value=ms -->"
    assert figures.with_figures(asked, tmp_path).splitlines()[2:4] == [
        "| a | 1.23 | too large |",
        "| b | 12,346 | - |",
    ]


def test_the_readme_quotes_the_files():
    text = (ROOT / "README.md").read_text("utf-8")
    file = data("h200-bfs.json")
    assert f"{file['machine']['device']}, {file['date'][:10]}" in text
    found = {(row["graph"], row["mode"], row["output"]): row for row in file["rows"]}
    table = re.findall(r"^\| (\w+) \| ([\d.]+) M \| \*\*(.*?)\*\* \| (.*) GB \|$", text, re.M)
    assert len(table) == 7
    for graph, edges, levels, others in table:
        one, parents = found[graph, "fused", "levels"], found[graph, "fused", "parents"]
        eager = found[graph, "eager", "levels"]
        said = (edges, levels, *others.split(" | "))
        numbers = (one["edges"] / 1e6, one["median_ms"], parents["median_ms"], one["max_ms"])
        numbers += (one["wall_median_ms"], eager["median_ms"], one["bytes"] / 1e9)
        for number, quoted in zip(numbers, said, strict=True):
            places = len(quoted.partition(".")[2])
            assert quoted == f"{number:.{places}f}", graph
    for row in data("cpu-overhead.json")["rows"]:
        assert f"{row['ratio']:.2f}" in text
