"""`lagpu graph500`: the rules, the fields, the statistics."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from lagpu import algorithms
from lagpu.bench import graph500
from lagpu.bench.tuples import validate
from lagpu.cli import main
from lagpu.errors import CheckFailed

# a triangle 0 1 2 with an edge twice and a self-loop, a tail 2-3, and a pair 4-5 apart
U = np.array([0, 1, 2, 1, 1, 2, 4])
V = np.array([1, 2, 0, 0, 1, 3, 5])
TREE = np.array([0, 0, 0, 2, -1, -1])


@pytest.mark.parametrize("name", ["cpu", "sim"])
def test_the_command(name, capsys, tmp_path):
    file = tmp_path / "g.json"
    args = ["graph500", "--scale", "5", "--roots", "4", "-b", name, "--json", str(file)]
    assert main(args) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "SCALE:                          5",
        "edgefactor:                     16",
        "NBFS:                           4",
    ]
    (mean,) = [line for line in lines if "harmonic_mean" in line]
    assert mean.startswith("bfs  harmonic_mean_TEPS:     !  ")
    assert len(lines) == 6 + 7 + 7 + 7 + 7
    found = json.loads(file.read_text())
    assert {"machine", "commit", "date", "versions", "fields", "searches"} == set(found)
    assert len({search["root"] for search in found["searches"]}) == 4
    fields = found["fields"]
    for statistic in ("min", "firstquartile", "median", "thirdquartile", "max", "mean", "stddev"):
        assert f"bfs  {statistic}_time" in fields
        assert f"{statistic}_nedge" in fields
    rates = [search["TEPS"] for search in found["searches"]]
    assert fields["bfs  harmonic_mean_TEPS"] == pytest.approx(4 / sum(1 / r for r in rates))
    assert fields["bfs  max_TEPS"] == pytest.approx(max(rates))
    assert max(search["nedge"] for search in found["searches"]) <= 16 * 32


def test_statistics_by_hand():
    found = graph500.statistics_of([4, 1, 3, 2])
    assert found["firstquartile"] == 1.5
    assert (found["min"], found["median"], found["thirdquartile"], found["max"]) == (1, 2.5, 3.5, 4)
    assert found["mean"] == 2.5
    assert found["stddev"] == pytest.approx(math.sqrt(5 / 3))
    assert graph500.statistics_of([1, 2, 3, 4, 5])["median"] == 3
    assert math.isnan(graph500.statistics_of([1])["stddev"])
    # 2 s and 4 s for 8 edges: 1/4 and 1/2 s an edge, deviation sqrt(1/32)
    rates = graph500._results([2.0, 4.0], [8, 8], [0.0, 0.0])
    assert rates["bfs  harmonic_mean_TEPS"] == pytest.approx(8 / 3)
    expected = math.sqrt(1 / 32) / (0.375**2 * 1)
    assert rates["bfs  harmonic_stddev_TEPS"] == pytest.approx(expected)
    assert (rates["bfs  min_TEPS"], rates["bfs  max_TEPS"]) == (2, 4)


def test_tuples_of_the_component_count_once_each():
    assert validate(np, U, V, 0, TREE) == 6
    assert validate(np, U, V, 4, np.array([-1, -1, -1, -1, 4, 4])) == 1


@pytest.mark.parametrize(
    ("parents", "rule"),
    [
        ([1, 0, 0, 2, -1, -1], "rule 1"),  # the root has another parent
        ([0, 2, 1, 2, -1, -1], "rule 1"),  # a cycle
        ([0, 0, 0, 4, -1, -1], "rule 1"),  # a parent outside the tree
        ([0, 0, 0, 9, -1, -1], "rule 1"),  # no vertex
        ([0, 0, 1, 2, -1, -1], "rule 3"),  # 0-2 joins depths 0 and 2
        ([0, 0, 0, -1, -1, -1], "rule 4"),  # a vertex is missing
        ([0, 0, 0, 1, -1, -1], "rule 5"),  # no such edge
        ([0, 0, 0, 2, 0, 0], "rule 5"),  # another component
    ],
)
def test_each_rule_is_proved(parents, rule):
    with pytest.raises(CheckFailed, match=rule):
        validate(np, U, V, 0, np.array(parents))


def test_an_invalid_search_has_no_result(monkeypatch, capsys, tmp_path):
    right = algorithms.bfs_parents

    def wrong(A, root):
        parents = right(A, root)
        parents[root] = (root + 1) % A.nrows
        return parents

    monkeypatch.setattr(algorithms, "bfs_parents", wrong)
    file = tmp_path / "g.json"
    args = ["graph500", "--scale", "5", "--roots", "2", "-b", "cpu", "--json", str(file)]
    assert main(args) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("lagpu: graph500: rule 1")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("args", [["--scale", "0"], ["--scale", "99"], ["--roots", "0"], []])
def test_wrong_input(args, capsys):
    scale = [] if "--scale" in args or not args else ["--scale", "4"]
    assert main(["graph500", "-b", "cpu", *scale, *args]) == 2
    assert capsys.readouterr().err.count("\n") == 1
