"""Recorded figures of other systems: the files, what pages quote, and `lagpu bench --peers`."""

import json
import re
from pathlib import Path

import pytest

from lagpu.bench import peers
from lagpu.generators.load import canonical

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "benchmarks"
PEERS = json.loads((PAGES / "h200-peers.json").read_text("utf-8"))


def row(**fields):
    return {"graph": "kron5", "backend": "theirs", "output": "levels", "median_ms": 1.5} | fields


def report(*rows):
    return json.dumps({"rows": list(rows)})


@pytest.mark.parametrize("name", ["h200-peers", "cpu-peers", "h200-bfs"])
def test_files_have_the_form_of_a_report(name):
    rows = peers.recorded(str(PAGES / f"{name}.json"))
    assert rows
    whole = json.loads((PAGES / f"{name}.json").read_text("utf-8"))
    assert {"machine", "commit", "date", "versions", "rows"} <= set(whole)
    fields = set(json.loads((PAGES / "h200-bfs.json").read_text("utf-8"))["rows"][0])
    # reports of before there were these lack them
    later = {"orientation", "first_ms"}
    assert all(set(one) | later == fields | later for one in rows)


def test_the_readme_quotes_the_best():
    text = (ROOT / "README.md").read_text("utf-8")
    said = re.search(r"took ([\d.]+) ms for levels of (\w+) and ([\d.]+) ms for (\w+)\.", text)
    assert said is not None
    for ms, graph in (said.groups()[:2], said.groups()[2:]):
        best = min(one["median_ms"] for one in PEERS["rows"] if one["graph"] == graph)
        assert float(ms) == best


def test_rows_stand_beside_those_of_the_same_graph(run, save, tmp_path):
    other = row(backend="other", graph="kron6", output="parents")
    theirs = save(report(row(graph="kron:5:16"), row(graph="kron:7"), other), "theirs.json")
    args = ("kron5", "kron6", "-b", "cpu", "--roots", 1, "--json", tmp_path / "b.json")
    code, out, _ = run("bench", *args, "--peers", theirs, "--peers", "scipy")
    assert code == 0
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    shown = [(one["graph"], one["backend"], one["mode"]) for one in rows]
    assert shown == [
        ("kron5", "cpu", "eager"), ("kron5", "scipy", "peer"), ("kron5", "theirs", "recorded"),
        ("kron6", "cpu", "eager"), ("kron6", "scipy", "peer"),
    ]  # fmt: skip
    assert set(rows[2]) == set(rows[0])
    assert rows[2]["median_ms"] == 1.5
    assert rows[2]["max_ms"] is None
    assert "theirs" in out


def test_an_earlier_report_is_such_a_file(run, tmp_path):
    file = tmp_path / "earlier.json"
    assert run("bench", "kron:5", "-b", "cpu", "--roots", 1, "--json", file)[0] == 0
    code, out, _ = run("bench", "kron5e16", "-b", "cpu", "--roots", 1, "--peers", file)
    assert code == 0
    assert out.count("kron5e16") == 1  # above the table


WRONG = {
    "no JSON": "{",
    "deep": "[" * 100_000,
    "a list": "[]",
    "no rows": "{}",
    "rows that are none": '{"rows": 3}',
    "a row that is none": '{"rows": [3]}',
    "without a time": report({"graph": "kron5", "backend": "x", "output": "levels"}),
    "a negative time": report(row(median_ms=-1)),
    "a time in words": report(row(max_ms="fast")),
    "no number": report(row(median_ms=float("nan"))),
    "a graph that is no text": report(row(graph=5)),
    "a mode that is no text": report(row(mode=[])),
    "binary": "\0\1",
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_other_files_are_refused(content, refused, save):
    file = save(content, "theirs.json")
    said = refused("bench", "kron5", "-b", "cpu", "--peers", file)
    assert "is not a report of lagpu bench. Give one" in said


def test_a_file_without_the_graph_or_no_file_is_refused(refused, save, tmp_path):
    file = save(report(row(graph="kron9")), "theirs.json")
    said = refused("bench", "kron5", "-b", "cpu", "--peers", file)
    assert "has none of kron5 for levels. It has kron9 (levels)." in said
    said = refused("bench", "kron5", "-b", "cpu", "--peers", tmp_path / "none.json")
    assert "No such file" in said
    refused("bench", "kron5", "-b", "cpu", "--algorithm", "bfs_levels", "--peers", file)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("kron16", "kron:16:16", True),
        ("kron16e8", "kron:16:8", True),
        ("kron16e8", "kron16", False),
        ("grid30x40", "grid:30x40", True),
        ("road64", "road:64", True),
        ("graph.mtx", "graph.mtx", True),
        ("urand5", "urand:5:16", True),
    ],
)
def test_a_graph_has_one_canonical_text(one, other, same):
    assert (canonical(one) == canonical(other)) is same
