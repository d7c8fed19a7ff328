"""What `docs/benchmarks/grids.py` measures: it agrees, and says where it does not."""

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lagpu import Vector, algorithms, generators
from lagpu.errors import InvalidValue
from lagpu.host import job

FILE = Path(__file__).parents[2] / "docs" / "benchmarks" / "grids.py"
SPEC = spec_from_file_location("measured_grids", FILE)
grids = module_from_spec(SPEC)
SPEC.loader.exec_module(grids)

run = CliRunner().invoke


def test_a_report_has_a_row_for_each_backend_and_mode(tmp_path, monkeypatch):
    monkeypatch.setattr(grids, "_SOURCES", (3,))
    file = tmp_path / "grids.json"
    words = ["kron8e16", "-b", "sim", "-b", "grid:2:sim", "--roots", "3", "--json", str(file)]
    asked = [word for name in ("parents", "ranks", "betweenness") for word in ("--output", name)]
    said = run(grids.app, [*words, "--by-statement", *asked])
    assert said.exit_code == 0, said.output
    report = json.loads(file.read_text("utf-8"))
    rows = report["rows"]
    by_cluster, by_pieces = "betweenness of 3 sources", "betweenness of 3 sources, each on 2"
    assert [(row["backend"], row["what"]) for row in rows] == [
        (place, what)
        for place, last in (("sim", [by_cluster]), ("grid:2:sim", [by_cluster, by_pieces]))
        for what in ("parents", "ranks", *last)
        for _ in range(2)
    ]
    assert all(row["same"] for row in rows)
    assert [row["loop"].partition(":")[0] for row in rows[:2]] == ["grid search", "eager"]
    assert rows[6]["loop"].startswith("search of pieces")
    assert said.output.count("parents: median_ms") == 4


@pytest.mark.parametrize("rank", [0, 1])
def test_the_first_process_of_a_job_prints_and_writes(tmp_path, monkeypatch, rank):
    monkeypatch.setattr(job, "launched", lambda: job.Job(2, rank))
    file = tmp_path / "grids.json"
    said = run(grids.app, ["kron6e8", "-b", "cpu", "--roots", "2", "--json", str(file)])
    assert (said.exit_code, bool(said.output), file.exists()) == (0, rank == 0, rank == 0)


@pytest.mark.parametrize("says", [False, True])
def test_one_process_of_a_job_says_an_error(monkeypatch, says):
    monkeypatch.setattr(grids, "speaks", lambda error: says)
    said = run(grids.app, ["no-such-graph", "-b", "cpu"])
    assert (said.exit_code, "no-such-graph" in said.output) == (1, says)


def test_what_was_measured_before_an_error_is_in_the_file(tmp_path):
    file = tmp_path / "grids.json"
    words = ["kron6e8", "no-such-graph", "-b", "sim", "--roots", "2", "--json", str(file)]
    assert run(grids.app, words).exit_code == 1
    assert [row["graph"] for row in json.loads(file.read_text("utf-8"))["rows"]] == ["kron6e8"]


def test_another_result_is_reported():
    A = generators.kronecker(7, backend="cpu")
    roots, numbers, known = grids.roots_of(A, 2), grids._numbers(A), {}

    def row():
        runs = grids.runs_of(A, "levels", roots)["levels"]
        return grids.measured(A, "levels", runs, True, numbers, known)

    assert row()["same"]
    count, *sums = known[roots[1]]
    known[roots[1]] = (count, *sums[:-1], sums[-1] + 1)
    assert not row()["same"]


def test_floats_may_be_added_in_another_order_and_whole_numbers_are_exact():
    assert grids._agree((3, 0.1 + 0.2), (3, 0.3))
    assert not grids._agree((3, 0.3), (3, 0.3001))
    assert not grids._agree((3, 10**16 + 1), (3, 10**16))


def test_a_digest_tells_results_from_one_another():
    i, x = [1, 2, 5], [7, 3, 4]
    others = [([1, 2, 4], x), (i, [7, 3, 5]), (i, [3, 7, 4]), (i, [4, 5, 4]), (i[:2], x[:2])]

    def digest(j, y, values):
        numbers = grids._numbers(generators.path(9, backend="cpu"))
        return grids._digest(Vector.from_coo(j, y, size=9, backend="cpu"), numbers, values)

    assert len({digest(*given, True) for given in [(i, x), *others]}) == 6
    assert [digest(*given, False) for given in others] == [(3, 10), *[(3, 11)] * 3, (2, 5)]


def test_roots_have_edges_and_a_graph_may_have_too_few():
    A = generators.kronecker(6, backend="cpu")
    assert all(algorithms.bfs_levels(A, root).nvals > 1 for root in grids.roots_of(A, 8))
    with pytest.raises(InvalidValue, match="fewer than 2 vertices"):
        grids.roots_of(generators.path(1, backend="cpu"), 2)


def test_wrong_words_end_with_a_line():
    said = run(grids.app, ["kron8e16", "-b", "nonsense"])
    assert said.exit_code == 1
