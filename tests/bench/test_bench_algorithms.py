"""`lagpu bench --algorithm`: processes, who is stopped, whole runs, the command and its tables."""

from __future__ import annotations

import json
import multiprocessing
import time

import pytest
from loop_names import is_fused

from lagpu import backends
from lagpu.bench import algorithms
from lagpu.bench.algorithms import NO_TIME, Bench, Plan, run
from lagpu.cli import main
from lagpu.errors import BackendUnavailable, CheckFailed, InvalidValue, OutOfMemory

FIELDS = {
    "graph", "vertices", "edges", "algorithm", "options", "system", "runs", "median_ms", "min_ms",
    "max_ms", "device_ms", "rounds", "loop", "bytes", "checked", "note",
}  # fmt: skip


@pytest.fixture
def forked(monkeypatch):
    """Fork processes from one that has imported lagpu; importing it is most of their time."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, algorithms.__name__, "scipy.sparse.csgraph"])
    monkeypatch.setattr(algorithms, "_SPAWN", context)


# ------------------------------------------------------------------------------------ whole runs


class Wrong(Bench):
    """SciPy finds another component."""

    def measure(self, *how):
        times, answer = super().measure(*how)
        if self._clock.backend is None:
            answer.same[-1] += 1
        return times, answer


class Faulty(Bench):
    """Core numbers raise, PageRank runs out of memory, and a search takes for ever."""

    def prepare(self, key):
        self.key = key
        super().prepare(key)

    def measure(self, *how):
        if self.key == "core_number":
            raise ZeroDivisionError("planted")
        if self.key == "pagerank":
            raise MemoryError("planted")
        if self.key == "bfs_levels":
            time.sleep(600)
        return super().measure(*how)


class Small(Bench):
    """Two graphs do not fit."""

    def make(self, graph, *how):
        if graph == "path:9":
            raise OutOfMemory("bench: too large.")
        if graph == "path:8":
            raise MemoryError("planted")
        return super().make(graph, *how)


class Proofless(Bench):
    """Parents form no tree of the graph."""

    def measure(self, *how):
        times, answer = super().measure(*how)
        indices, values = answer.proof
        return times, answer._replace(proof=(indices, values[::-1]))


@pytest.mark.ci
def test_systems_that_differ_end_the_run(forked):
    kept = []
    plan = Plan(["grid:3x4"], ["connected_components", "bfs"], ["cpu"], ["scipy"], bench=Wrong)
    with pytest.raises(CheckFailed, match="connected_components fastsv: cpu and scipy differ"):
        run(plan, keep=lambda found: kept.append(json.loads(json.dumps(found))))
    rows = kept[-1]["rows"]
    assert [(row["algorithm"], row["system"], row["checked"]) for row in rows] == [
        ("bfs", "cpu", True),
        ("connected_components", "cpu", False),
        ("connected_components", "scipy", False),
    ]


def test_an_answer_that_is_proved_wrong_ends_the_run(forked):
    plan = Plan(["grid:3x4"], ["bfs_parents"], ["cpu"], bench=Proofless)
    with pytest.raises(CheckFailed, match="bfs_parents: cpu: check_parents"):
        run(plan)


@pytest.mark.ci
def test_what_does_not_end_or_fails_is_a_row_and_no_more(forked):
    names = ["bfs_levels", "bfs", "pagerank", "core_number", "diameter"]
    plan = Plan(["grid:3x4"], names, ["cpu"], bench=Faulty, limit=8)  # ample on a busy machine
    found, failures = run(plan)
    notes = {row["algorithm"]: row["note"] for row in found["rows"]}
    assert notes == {
        "bfs_levels": "over 8 s",
        "bfs": "",
        "pagerank": "MemoryError: planted",
        "core_number": "ZeroDivisionError: planted",
        "diameter": "",
    }
    assert failures == ["grid:3x4, core_number, cpu: ZeroDivisionError: planted"]
    measured = [row["algorithm"] for row in found["rows"] if row["median_ms"] is not None]
    assert measured == ["bfs", "diameter"]
    assert all(set(row) == FIELDS for row in found["rows"])


@pytest.mark.ci
def test_a_graph_that_does_not_fit_leaves_the_others(forked):
    kept = []
    plan = Plan(["path:9", "path:8", "cycle:9"], ["bfs"], ["cpu"], bench=Small)
    found, failures = run(plan, keep=lambda report: kept.append(len(report["rows"])))
    assert [row["graph"] for row in found["rows"]] == ["cycle:9"]
    assert failures == ["path:9: bench: too large.", "path:8: MemoryError: planted"]
    assert kept == [0, 0, 1]


@pytest.mark.ci
def test_no_time_left(forked):
    kept = []
    plan = Plan(["path:9", "cycle:9"], ["bfs"], ["cpu"], budget=1e-3)
    found, failures = run(plan, keep=lambda report: kept.append(len(report["rows"])))
    assert [(row["graph"], row["note"]) for row in found["rows"]] == [
        ("path:9", NO_TIME),
        ("cycle:9", NO_TIME),
    ]
    assert (kept, failures) == ([1, 2], [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"graphs": []}, "needs a graph"),
        ({"graphs": ["krn9"]}, "there is no graph or file 'krn9'"),
        ({"repeats": 0}, "--repeats 0 is not above 0"),
        ({"budget": float("nan")}, "--budget nan is not above 0"),
        ({"peers": ["igraph"]}, "scipy, networkx, pylibcugraph"),
        ({"backends": ["tpu"]}, "cpu"),
        pytest.param({"graphs": ["path:1"]}, "no vertex", marks=pytest.mark.ci),
    ],
)
def test_wrong_plans(forked, change, message):
    with pytest.raises(InvalidValue, match=message):
        run(Plan(**{"graphs": ["path:3"], "algorithms": ["bfs"], "backends": ["cpu"]} | change))


@pytest.mark.ci
def test_a_backend_that_is_missing(forked):
    try:
        backends.get("gpu")
    except BackendUnavailable:
        pass
    else:
        pytest.skip("there is a GPU")
    with pytest.raises((BackendUnavailable, InvalidValue)):
        run(Plan(["path:3"], ["bfs"], ["gpu"]))


# --------------------------------------------------------------------------- command and tables


@pytest.mark.ci
def test_the_command(capsys, tmp_path):
    file = tmp_path / "f.json"
    words = ["bench", "kron6e4", "path:9", "--algorithm", "bfs_parents,diameter", "--repeats", "2"]
    code = main([*words, "-b", "sim", "-b", "cpu", "--peers", "scipy", "--json", str(file)])
    out = capsys.readouterr().out
    assert code == 0
    assert "kron6e4: 64 vertices" in out
    assert "not connected" in out
    assert list(tmp_path.iterdir()) == [file]
    found = json.loads(file.read_text())
    assert set(found) == {"machine", "commit", "date", "versions", "plan", "rows"}
    assert "device" in found["machine"]
    assert found["plan"] == {"repeats": 2, "seconds": 1.0, "limit": 10.0, "budget": 480.0}
    assert [(row["graph"], row["system"]) for row in found["rows"][:4]] == [
        ("kron6e4", "sim"), ("kron6e4", "cpu"), ("kron6e4", "scipy"), ("kron6e4", "sim"),
    ]  # fmt: skip
    measured = [row for row in found["rows"] if row["median_ms"] is not None]
    assert len(measured) == 8  # the Kronecker graph has no diameter, SciPy none
    for row in measured:
        assert row["checked"] is True
        assert 0 < row["min_ms"] <= row["median_ms"] <= row["max_ms"]
        assert row["runs"] == 2
        assert (row["bytes"] is not None) is (row["system"] == "sim")
        assert is_fused(row["loop"]) is (row["system"] == "sim")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--algorithm", "all", "--roots", "3"], "--roots: is only for lagpu bench without"),
        (["--algorithm", "all", "--mode", "eager"], "--mode"),
        (["--budget", "0"], "--budget: is only for lagpu bench with"),
        (["--algorithm", "girth"], "no 'girth'"),
        (["--algorithm", "bfs", "--json", "/nowhere/at/all.json"], "/nowhere/at"),
    ],
)
def test_wrong_options(capsys, words, message):
    assert main(["bench", "path:3", *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_failures_end_in_a_refusal(monkeypatch, capsys):
    row = dict.fromkeys(FIELDS) | {
        "graph": "g", "vertices": 3, "edges": 2, "algorithm": "bfs", "options": "", "system": "cpu",
        "loop": "", "checked": False, "note": "Died: the process ended",
    }  # fmt: skip
    machine = {"cpu": "a processor", "threads": "3"}
    found = {"machine": machine, "rows": [row]}, ["g, bfs, cpu: Died", "more"]
    monkeypatch.setattr(algorithms, "run", lambda *_: found)
    assert main(["bench", "path:3", "--algorithm", "bfs"]) == 1
    out, err = capsys.readouterr()
    assert "Died" in out
    assert "a processor, 3 threads for cpu" in " ".join(out.split())
    assert err == "lagpu: bench: g, bfs, cpu: Died (and 1 more)\n"


def test_tables_say_why_there_is_no_number():
    base = dict.fromkeys(FIELDS) | {
        "graph": "g", "vertices": 1234, "edges": 2, "algorithm": "bfs", "options": "", "loop": "",
        "checked": True, "note": "",
    }  # fmt: skip
    rows = [
        base
        | {
            "system": "gpu",
            "median_ms": 0.12345,
            "device_ms": 0.1,
            "loop": "grid search: why",
        },
        base | {"system": "cpu", "median_ms": 12345.6},
        base | {"system": "networkx", "note": "too large", "checked": False},
        base | {"system": "gpu", "algorithm": "diameter", "median_ms": 7.0, "checked": False},
        base | {"system": "cpu", "algorithm": "diameter", "note": "Died: x | y", "checked": False},
    ]
    (printed,) = algorithms.tables(rows)
    assert printed.title == "g: 1,234 vertices, 2 edges; ms"
    assert {column.header: tuple(column.cells) for column in printed.columns} == {
        "algorithm": ("bfs", "diameter"),
        "gpu": ("0.123 (0.1)", "7 ?"),
        "cpu": ("12,346", "Died"),
        "networkx": ("too large", "-"),
        "loop": ("grid search", ""),
        "checked": ("yes", "-"),
    }
