"""Figures in the pages are those of the data files."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "docs" / "benchmarks"
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import figures  # noqa: E402

ALL = sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)
PAGES = [page for page in ALL if re.search("<!-- (rows|pivot)", page.read_text("utf-8"))]

#: A number and its unit, which is of a measurement unless SAID below has it.
FIGURE = re.compile(
    r"(?<![\w./^])(\d[\d,]*(?:\.\d+)?)[ -]?"
    r"(?:[munµp]?s|seconds?|minutes?|hours?|[GT]B/s|[GMT]TEPS|times|x)\b(?! \d)"
)
RULE = "a threshold of the code"
PLAN = "minutes of a lecture, which its teacher plans"
CLAIM = "a paper's own figure"
#: Numbers with units that no data file has: page, words, reason.
SAID = [
    ("algorithms.md", "more than 8 times the mean", RULE),
    ("algorithms.md", "Steps of 8 to 16 times the largest weight", RULE),
    ("fusing.md", "pulls if 14 times these (3 times if it adds up)", RULE),
    ("planner.md", "the steps are at most 8 times the products", RULE),
    ("grid.md", "After 10 seconds a block marks", RULE),
    ("index.md", "For a lecture of 90 minutes", PLAN),
    ("bfs.md", "A lecture of 90 minutes", PLAN),
    *(("bfs.md", f"# Exercise {k} ({m} minutes)", PLAN) for k, m in enumerate((5, 8, 8, 7, 6), 1)),
    ("turbobfs.md", "the paper's 1.8 times gunrock", CLAIM),
    ("turbobfs.md", "its 5.8 times GraphBLAST", CLAIM),
]


def data(name):
    return json.loads((BENCHMARKS / name).read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_table_of_a_page_is_printed(page):
    text = page.read_text("utf-8")
    name = str(page.relative_to(ROOT / "docs").with_suffix(""))
    made = figures.with_figures(text, name)
    assert "<!-- rows" not in made
    assert "<!-- pivot" not in made
    for file in re.findall(r"<!-- (?:rows|pivot) (\S+)", text):
        (link,) = set(re.findall(rf"^\[{file}\]\((.*?)\): ", made, re.M))
        assert (page.parent / link).resolve() == BENCHMARKS / file


def test_a_table_says_that_its_kernels_have_changed():
    """Data of a GPU that are older than the kernels; not data of a CPU, nor of these kernels."""
    git = ["git", "log", "--format=%H", "-3", "--", *figures.KERNELS]
    ran = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    changes = ran.stdout.split()
    if len(changes) < 3:
        pytest.skip("a copy without the history")
    gpu = {"commit": changes[1], "date": "2026-01-01", "machine": {"device": "a card"}}
    said = "; kernels have changed since"
    assert said in figures._measured(gpu, "x.json", "x.json")
    cpu = gpu | {"machine": {"cpu": "a processor"}}
    for whole in (cpu, gpu | {"commit": changes[0]}, gpu | {"commit": "0" * 40}):
        assert "changed" not in figures._measured(whole, "x.json", "x.json")
    both = gpu | {"machine": gpu["machine"] | cpu["machine"]}
    assert ": a card and a processor, 2026-01-01" in figures._measured(both, "x.json", "x.json")


def test_rows_and_pivots_have_the_numbers_of_the_file(tmp_path):
    rows = [
        {"graph": "a", "system": "x", "ms": 1.2345, "bytes": 2_000_000_000},
        {"graph": "a", "system": "y", "ms": None, "note": "too large: 3", "bytes": 1},
        {"graph": "b", "system": "x", "ms": 12345.6, "bytes": 1},
    ]
    whole = {"machine": {"cpu": "C"}, "date": "2026-01-02T00", "versions": {"v": "1", "w": None}}
    (tmp_path / "f.json").write_text(json.dumps(whole | {"rows": rows}), "utf-8")
    asked = "<!-- rows f.json columns=graph,ms,bytes where=system:x -->"
    assert figures.with_figures(asked, folder=tmp_path).splitlines() == [
        "| graph | ms | GB |", "| --- | ---: | ---: |", "| a | 1.23 | 2.00 |",
        "| b | 12,346 | 0.00 |", "", "[f.json](f.json): C, 2026-01-02; v 1, w.",
    ]  # fmt: skip
    asked = "<!-- pivot f.json index=graph columns=system value=ms -->"
    assert figures.with_figures(asked, folder=tmp_path).splitlines()[2:4] == [
        "| a | 1.23 | too large |",
        "| b | 12,346 | - |",
    ]


PEERS = ("lagpu", "scipy", "igraph", "networkit")


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


def test_the_readme_has_all_comparisons_of_cpu_with_other_libraries():
    text = (ROOT / "README.md").read_text("utf-8")
    said, columns = {}, list(itertools.product(("luxembourg_osm", "email-Enron"), PEERS))
    for call, cells in re.findall(r"^\| ([a-z, 4]+) \|((?:[ .\d]*\|){8})$", text, re.M):
        of_each = zip(columns, cells.split("|")[:-1], strict=True)
        said |= {(graph, call, who): cell.strip() for (graph, who), cell in of_each}
    said = {key: quoted for key, quoted in said.items() if quoted}
    found = {}
    for row in data("cpu-deep.json")["rows"]:
        if row["kind"] == "library":
            found[row["graph"], row["call"], row["peer"]] = row["peer_ms"]
            found[row["graph"], row["call"], "lagpu"] = row["lagpu_ms"]
    assert said == {key: f"{ms:.{int(ms < 9.95)}f}" for key, ms in found.items()}


def numbers_in(value):
    """Yield every number of a data file."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from numbers_in(one)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def typed_in(text, name, folder):
    """Return the numbers with units that neither SAID nor a file linked in their section has."""
    for page, words, _ in SAID:
        text = text.replace(words, "") if page == name else text
    found = []
    for section in re.split(r"^#+ ", text, flags=re.M):
        files = [folder / link for link in re.findall(r"\]\(([^)]+\.json)\)", section)]
        known = [x for f in files for x in numbers_in(json.loads(f.read_text("utf-8")))]
        prose = re.sub(r"^```.*?^```|^    .*?$|<!--.*?-->", "", section, flags=re.S | re.M)
        prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", prose)
        for match in FIGURE.finditer(prose):
            digits = match[1].replace(",", "")
            places = len(digits.partition(".")[2])
            if not any(f"{x:.{places}f}" == digits for x in known):
                found.append(match[0])
    return found


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ALL], ids=lambda page: page.name
)
def test_no_figure_is_typed_in(page):
    """A number with a unit is printed from a data file, or its section links to the file."""
    assert typed_in(page.read_text("utf-8"), page.name, page.parent) == []


def test_a_figure_that_is_typed_in_is_found(tmp_path):
    (tmp_path / "f.json").write_text('{"rows": [{"ms": 0.8512}]}', "utf-8")
    text = "# A\nIt took 0.85 ms ([data](f.json)), 2 times `5 ms`.\n# B\nAlso 0.85 ms, 9-second.\n"
    assert typed_in(text, "x.md", tmp_path) == ["2 times", "0.85 ms", "9-second"]


@pytest.mark.parametrize(("page", "words", "why"), SAID)
def test_what_may_be_said_is_said(page, words, why):
    pages = [ROOT / "CONTRIBUTING.md", *ALL]
    assert any(words in one.read_text("utf-8") for one in pages if one.name == page)
