"""The measurements: their records, and that a wrong result is no measurement. No times."""

from __future__ import annotations

import json
from datetime import datetime

import numpy as np
import pytest
from typer.testing import CliRunner

from lagpu import algorithms, generators, versions
from lagpu.bench import overhead, suite
from lagpu.bench.graphs import HostGraph
from lagpu.errors import CheckFailed, InvalidValue, OutOfMemory
from lagpu.host.files import write_json

pytestmark = pytest.mark.usefixtures("own_garbage")  # it is collected before each timing

NUMBERS = ("lagpu_ms", "direct_ms", "c_ms", "ratio")


@pytest.fixture
def run():
    """Run the program and return (exit code, stdout, stderr)."""

    def program(*words):
        done = CliRunner().invoke(overhead.app, [*words])
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return done.exit_code, done.stdout, done.stderr

    return program


def test_the_record(run, tmp_path, monkeypatch):
    monkeypatch.setenv("LAGPU_COMMIT", "0123abc")
    file = tmp_path / "overhead.json"
    small = ("--roots", "2", "--repeats", "2")
    code, out, _ = run("kron:6", "grid:3x4", *small, "--json", str(file))
    assert code == 0
    assert "kron:6" in out
    assert "ratio" in out
    assert list(tmp_path.iterdir()) == [file]
    found = json.loads(file.read_text())
    assert found.keys() == {
        "benchmark", "date", "commit", "machine", "versions", "threads", "clock", "rows",
    }  # fmt: skip
    assert found["clock"] == "wall"
    assert found["benchmark"] == "cpu-overhead"
    assert datetime.fromisoformat(found["date"]).tzinfo is not None
    assert found["commit"] == "0123abc"
    assert found["versions"] == versions.versions()
    assert found["machine"].keys() == {"cpu", "cores", "system"}
    assert [row["graph"] for row in found["rows"]] == ["kron:6", "grid:3x4"]
    for row in found["rows"]:
        assert row.keys() == {
            "graph", "vertices", "entries", "depth", *NUMBERS, "ratio_low", "ratio_high",
            "repeats", "roots",
        }  # fmt: skip
        assert len(row["roots"]) == row["repeats"] == 2
        for root in row["roots"]:
            assert root.keys() == {"root", "depth", *NUMBERS}
        assert all(part[name] > 0 for part in (row, *row["roots"]) for name in NUMBERS)
        assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"]
    assert found["rows"][1]["vertices"] == 12
    assert found["rows"][1]["entries"] == 34


def test_the_clock_may_be_that_of_the_processor(run, monkeypatch, tmp_path):
    seconds = iter(range(1000))
    monkeypatch.setattr(overhead.time, "process_time", lambda: next(seconds))
    file = tmp_path / "overhead.json"
    small = ("path:5", "--roots", "1", "--repeats", "2", "--json", str(file))
    assert run(*small, "--processor-time")[0] == 0
    found = json.loads(file.read_text())
    assert found["clock"] == "processor"
    assert [found["rows"][0][name] for name in NUMBERS] == [1000, 1000, 1000, 1]


def test_a_file_is_named_without_its_folder(tmp_path):
    file = tmp_path / "triangle.txt"
    file.write_text("0 1\n1 2\n2 0\n")
    assert overhead.measure(str(file), roots=1, repeats=1)["graph"] == "triangle.txt"


def test_the_same_roots_each_time():
    first, again = (overhead.measure("kron:6", roots=3, repeats=1) for _ in range(2))
    assert [r["root"] for r in first["roots"]] == [r["root"] for r in again["roots"]]


@pytest.mark.parametrize("name", ["lagpu_levels", "direct_levels", "c_levels"])
@pytest.mark.parametrize("fault", ["value", "missing", "type"])
def test_a_wrong_result_is_noticed(run, monkeypatch, name, fault):
    right = getattr(overhead, name)

    def wrong(A, source):
        levels = right(A, source).dup("INT64" if fault == "type" else None)
        if fault == "value":
            levels[source] = 1
        elif fault == "missing":
            del levels[source]
        return levels

    monkeypatch.setattr(overhead, name, wrong)
    with pytest.raises(CheckFailed, match="the programs found different levels from"):
        overhead.measure("path:5", roots=1, repeats=1)
    code, out, err = run("path:5")
    assert (code, out) == (1, "")
    assert err.startswith("lagpu.bench: bench: the programs found different")


def test_wrong_input(run, tmp_path):
    with pytest.raises(InvalidValue, match=r"no edge\. Give a graph with edges"):
        overhead.measure("path:1")
    with pytest.raises(InvalidValue, match="0 roots, 9 repeats"):
        overhead.measure("path:2", roots=0)
    for words, message in (
        (("krn:6",), "there is no graph 'krn:6'"),
        (("missing.mtx",), "missing.mtx"),
        (("path:4", "--json", str(tmp_path / "no" / "x.json")), "there is no folder"),
    ):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert message in err
        assert len(err.splitlines()) == 1


def test_a_record_that_cannot_be_written(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(InvalidValue, match=r"bench: .*taken"):
        write_json({}, tmp_path / "taken", "bench")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_path_counts_are_proved_with_levels_that_are_proved_too(monkeypatch):
    A = generators.path(4, backend="cpu")
    tested = suite.Tested("path", HostGraph.of(A), [0])
    monkeypatch.setattr("lagpu.check.graph.Slices.search", None)  # no search on the host
    assert not suite.searched(tested, A, "eager", "paths").refusal
    wrong = algorithms.bfs_levels(A, 3)
    found = tested.prove("paths", np.arange(4), np.array([1, 1, 1, 2]), lambda _root: wrong)
    assert "level[0] is 3" in found


def test_path_counts_are_proved_where_levels_do_not_fit():
    A = generators.path(4, backend="cpu")
    tested = suite.Tested("path", HostGraph.of(A), [0])

    def levels_of(root):
        raise OutOfMemory("bfs_levels: no memory")

    assert not tested.prove("paths", np.arange(4), np.ones(4, int), levels_of)
    assert "check_paths" in tested.prove("paths", np.arange(4), np.arange(1, 5), levels_of)
