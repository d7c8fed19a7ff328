"""`lagpu graph500`: the rules, the fields, the statistics."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest

from lagpu import algorithms, backends, generators
from lagpu.bench import graph500
from lagpu.bench.graph500 import Tuples
from lagpu.cli import main
from lagpu.errors import CheckFailed
from lagpu.generators.edges import kronecker_tuples

# a triangle 0 1 2 with an edge twice and a self-loop, a tail 2-3, and a pair 4-5 apart
U = np.array([0, 1, 2, 1, 1, 2, 4])
V = np.array([1, 2, 0, 0, 1, 3, 5])
TREE = np.array([0, 0, 0, 2, -1, -1])
WHERE = ["cpu", "grid:3:cpu", "grid:2x2:cpu"]


def tuples(where):
    """These tuples, on a grid in slices of which one may be empty."""
    place = backends.get(where)
    parts = place.capabilities.parts
    if parts is None:
        return Tuples(place, {0: (U, V)})
    ends = [0, 0, *(len(U) * k // (parts.count - 1) for k in range(1, parts.count))]
    return Tuples(place, {k: (U[i:j], V[i:j]) for k, (i, j) in enumerate(pairwise(ends))})


@pytest.mark.parametrize("name", ["cpu", "sim", "grid:2x3:cpu"])
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


@pytest.mark.parametrize("where", WHERE)
def test_tuples_of_the_component_count_once_each(where):
    assert tuples(where).validate(0, TREE) == 6
    assert tuples(where).validate(4, np.array([-1, -1, -1, -1, 4, 4])) == 1


@pytest.mark.parametrize("where", WHERE)
def test_the_graph_and_its_roots_are_those_of_the_tuples(where):
    A = tuples(where).matrix()
    assert A.backend.name == where
    assert A.is_symmetric
    rows, cols, _ = A.to_coo()
    assert {*zip(rows.tolist(), cols.tolist(), strict=True)} == {
        (i, j) for u, v in zip(U, V, strict=True) if u != v for i, j in ((u, v), (v, u))
    }
    assert A.nvals == 10
    assert tuples(where).linked(6).tolist() == [0, 1, 2, 3, 4, 5]
    assert Tuples(backends.get("cpu"), {0: (U[3:5], V[3:5])}).linked(6).tolist() == [0, 1]


@pytest.mark.parametrize("where", WHERE)
def test_tuples_and_graph_do_not_depend_on_the_grid(where):
    drawn = Tuples.drawn(backends.get(where), 6, 5, 3)
    assert drawn.matrix().to("cpu").isequal(generators.kronecker(6, 5, seed=3, backend="cpu"))
    slices = [x for _, x in sorted(drawn._slices.items())]
    for found, wanted in zip(
        zip(*slices, strict=True), kronecker_tuples(6, 5, 3, backends.get("cpu"))[0], strict=True
    ):
        assert np.array_equal(np.concatenate(found), wanted)


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
@pytest.mark.parametrize("where", WHERE)
def test_each_rule_is_proved(where, parents, rule):
    with pytest.raises(CheckFailed, match=rule):
        tuples(where).validate(0, np.array(parents))


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
