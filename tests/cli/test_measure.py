"""`lagpu bench`: its report, its statistics, its refusals."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from command import PATIENCE, spawn, wait_for_handler

from lagpu import Matrix, algorithms, backends
from lagpu.backends.cpu import csgraph
from lagpu.backends.gpu.fused.plan import FUSED_POLICIES
from lagpu.backends.gpu.ops.planner import POLICIES
from lagpu.bench import graph500, harness, peers, suite, zoo
from lagpu.bench.graphs import SMALL_SUITE, SUITE, HostGraph, require_graph
from lagpu.cli import measure
from lagpu.errors import InvalidValue, OutOfMemory
from lagpu.generators import grid2d

FIELDS = {
    "graph", "backend", "mode", "kernel", "policy", "orientation", "output", "roots",
    "median_ms", "max_ms", "wall_median_ms", "first_ms", "q1_ms", "q3_ms",
    "gteps", "bytes", "checked", "vertices", "edges",
}  # fmt: skip


def test_rows_have_the_promised_fields(run, tmp_path):
    file = tmp_path / "b.json"
    args = ("-b", "cpu", "-b", "sim", "--roots", 2, "--mode", "both", "--peers", "scipy,networkx")
    outputs = ("--output", "levels", "--output", "parents", "--output", "paths")
    code, out, _ = run("bench", "kron6e4", *args, *outputs, "--json", file)
    assert code == 0
    found = json.loads(file.read_text())
    assert set(found) == {"machine", "commit", "date", "versions", "rows"}
    assert "networkx" in found["versions"]
    assert all(set(row) == FIELDS for row in found["rows"])
    kinds = [(row["backend"], row["mode"]) for row in found["rows"] if row["output"] == "parents"]
    assert kinds == [("cpu", "eager"), ("sim", "fused"), ("sim", "eager"), ("scipy", "peer")]
    assert len(found["rows"]) == 11
    for row in found["rows"]:
        assert row["checked"] is True
        assert row["vertices"] == 64
        assert 0 < row["q1_ms"] <= row["median_ms"] <= row["q3_ms"] <= row["max_ms"]
        assert row["gteps"] > 0
        assert row["first_ms"] > 0
    assert out.count("kron6e4") == 1  # above the table, as all rows have it
    assert list(tmp_path.iterdir()) == [file]


def test_statistics_are_those_by_hand():
    tested = suite.Tested("grid", HostGraph.of(grid2d(2, 2, backend="cpu")), [0, 1, 2, 3])
    tested.edges = dict.fromkeys(tested.roots, 10**6)
    samples = [*map(harness.Sample, [1.0, 2.0, 3.0, 4.0], [9.0, 5.0, 7.0, 5.0])]
    found = tested.row("cpu", suite.Searched("eager", "levels", samples, ""))
    assert (found["q1_ms"], found["median_ms"], found["q3_ms"]) == (1.75, 2.5, 3.25)
    assert (found["max_ms"], found["wall_median_ms"]) == (4.0, 6.0)
    # 1, 1/2, 1/3, 1/4 GTEPS: their harmonic mean is 4 / (1 + 2 + 3 + 4)
    assert found["gteps"] == pytest.approx(0.4)


def test_edges_count_once():
    # a triangle with a self-loop, and a pair
    rows, cols = [0, 1, 1, 2, 2, 0, 0, 3, 4], [1, 0, 2, 1, 0, 2, 0, 4, 3]
    A = Matrix.from_coo(rows, cols, nrows=6, ncols=6, backend="cpu")
    host = HostGraph.of(A)
    assert host.facts.edges_from(np.array([0, 1, 2])) == 4
    assert host.facts.edges_from(np.array([3, 4])) == 1
    assert sorted(host.candidates(A)) == [0, 1, 2]  # of the largest component


@pytest.mark.parametrize("place", ["cpu", "sim", "grid:3:cpu"])
def test_roots_of_a_directed_graph_have_edges_and_are_in_the_largest_component(place):
    # 0 -> 1 -> 2 <- 3, a self-loop alone, and a pair
    rows, cols = [0, 1, 3, 4, 5], [1, 2, 2, 4, 6]
    A = Matrix.from_coo(rows, cols, nrows=7, ncols=7, backend=place)
    assert sorted(HostGraph.of(A).candidates(A)) == [0, 1, 3]


def test_loops_that_cpu_runs_as_one_call_are_timed_so(run, monkeypatch, tmp_path):
    monkeypatch.setattr(csgraph, "SMALL", 1)
    file = tmp_path / "b.json"
    for more, mode in ((), "fused"), (("--mode", "eager"), "eager"):
        args = ("bench", "path:2000", "-b", "cpu", "--roots", 1, "--json", file, *more)
        assert run(*args)[0] == 0
        assert [row["mode"] for row in json.loads(file.read_text())["rows"]] == [mode]
        assert backends.get("cpu").last_loop.startswith("SciPy") == (mode == "fused")


def test_what_all_rows_have_in_common_is_above_the_table(run):
    _, out, _ = run("bench", "path:5", "path:6", "-b", "cpu", "--roots", 1)
    above = out[: out.index("median ms")]
    assert "backend cpu, mode eager, output levels\n" in re.sub(" +\n", "\n", above)
    assert "path" not in above
    assert "path:5" in out
    assert out.count("cpu") == 2  # and the threads
    _, out, _ = run("bench", "path:5", "-b", "cpu", "--roots", 1)
    assert "backend" in out[: out.index("path:5")]  # a heading


def test_a_wrong_answer_is_refused(run, monkeypatch, tmp_path):
    right = suite.ALGORITHMS["levels"]

    def wrong(A, root):
        levels = right(A, root)
        levels[int(levels.to_coo()[0][-1])] = 7
        return levels

    monkeypatch.setitem(suite.ALGORITHMS, "levels", wrong)
    file = tmp_path / "b.json"
    args = ("bench", "path:9", "-b", "cpu", "--roots", 2, "--json", file)
    code, out, err = run(*args)
    assert code == 1
    assert "NO" in out
    assert err.startswith("lagpu: bench: path:9, cpu (eager), levels: check_levels")
    assert [row["checked"] for row in json.loads(file.read_text())["rows"]] == [False]


def test_backends_that_disagree_are_refused():
    tested = suite.Tested("grid", HostGraph.of(grid2d(2, 2, backend="cpu")), [0])
    first = (np.array([0, 2]), np.array([0, 1]))

    def compared(output, who, *found):
        return tested.compare(0, output, who, found)

    assert compared("levels", "a", *first) == ""
    assert compared("levels", "b", first[0][::-1], first[1][::-1]) == ""
    assert compared("levels", "c", first[0], first[1] + 1) == (
        "levels from vertex 0 differ between a and c"
    )
    assert "reached" in compared("parents", "d", first[0] + 1, first[1])


@pytest.mark.parametrize(
    ("args", "listed"),
    [
        (["kron99x"], SUITE),
        (["path:3", "--peers", "gunrock"], ("scipy", "networkit")),
        (["path:3", "-b", "tpu"], ("cpu", "sim")),
        (["path:3", "-b", "sim", "--kernel", "fast"], ("push_edge", "pull_warp")),
        (["path:3", "-b", "sim", "--policy", "fast"], ("density",)),
        (["path:3", "-b", "sim", "--policy", "all", "--policy", "fast"], ("density",)),
        (["path:3", "-b", "sim", "--policy", "auto", "--kernel", "push_edge"], ("Give one",)),
        (["path:3", "-b", "cpu", "--policy", "density"], ("Use auto, beamer, push or pull",)),
        (["path:3", "--output", "girth"], ("levels", "parents", "paths")),
        (["path:3", "--roots", "0"], ("roots",)),
        (["path:3", "-b", "cpu", "--mode", "fused"], ("--mode eager",)),
        (
            ["path:3", "-b", "cpu", "--kernel", "push_edge"],
            ("the cpu", "leave out --kernel."),
        ),
        (["path:1", "-b", "cpu"], ("no vertex",)),
        (["zoo", "-b", "cpu"], ("gpu or sim",)),
        (["zoo:7", "-b", "sim"], ("8 to 24",)),
        (["zoo", "path:3", "-b", "sim"], ("no other graph",)),
        (["zoo", "--mode", "eager"], ("--mode", "without zoo")),
        (["zoo", "--peers", "scipy"], ("--peers", "without zoo")),
        (["path:3", "-b", "cpu", "--json", "/nowhere/at/all.json"], ("/nowhere/at",)),
    ],
)
def test_wrong_input_names_what_is_right(run, args, listed):
    code, out, err = run("bench", *args)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    for name in listed:
        assert name in err


@pytest.mark.parametrize("command", [("bench", "path:3"), ("graph500", "--scale", "3")])
@pytest.mark.parametrize(
    ("file", "fact"),
    [
        ("", ". is a folder"),
        ("taken", "taken is a folder"),
        ("none/x.json", "there is no folder none"),
        ("/proc/x.json", "/proc/x.json: "),
    ],
)
def test_a_report_that_cannot_be_written_is_reported_before_any_work(
    run, monkeypatch, tmp_path, command, file, fact
):
    def began(*_args, **_how):
        raise AssertionError("it began to work")

    monkeypatch.setattr(suite, "run", began)
    monkeypatch.setattr(graph500, "run", began)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    code, out, err = run(*command, "-b", "cpu", "--json", file)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert fact in err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("command", [("bench", "path:3"), ("graph500", "--scale", "3")])
def test_what_was_measured_is_shown_though_it_cannot_be_written(
    run, monkeypatch, tmp_path, command
):
    def full(*_args):
        raise InvalidValue("no space left on device.")

    monkeypatch.setattr(measure, "write_json", full)
    code, out, err = run(*command, "-b", "cpu", "--json", tmp_path / "x.json")
    assert (code, err) == (2, "lagpu: no space left on device.\n")
    assert "path:3" in out or "harmonic_mean" in out


def test_a_report_goes_through_a_pipe(run, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert run("bench", "path:3", "-b", "cpu", "--roots", 1, "--json", pipe)[0] == 0
    assert len(json.loads(os.read(reader, 1 << 16))["rows"]) == 1
    os.close(reader)
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ((), [("eager", "push_edge")]),
        (("--mode", "both"), [("fused", None), ("eager", "push_edge")]),
    ],
)
def test_a_chosen_kernel_runs_eagerly_and_is_named(run, tmp_path, more, expected):
    file = tmp_path / "b.json"
    args = ("-b", "sim", "--roots", 1, "--kernel", "push_edge", "--json", file, *more)
    code, out, _ = run("bench", "path:5", *args)
    assert code == 0
    rows = json.loads(file.read_text())["rows"]
    assert [(row["mode"], row["kernel"]) for row in rows] == expected
    assert out.count("push_edge") == 1


def test_the_zoo_is_a_table_and_a_report(run, monkeypatch, tmp_path):
    monkeypatch.setattr(zoo, "zoo", lambda s: {"stars": [f"star:{1 << s}", "path:9"]})
    file = tmp_path / "zoo.json"
    args = ("--roots", 1, "--output", "parents", "--json", file)
    code, out, _ = run("bench", "zoo", "-b", "sim", *args)
    assert code == 0
    assert "stars 2" in out
    assert "by entries, 8 for a pushed one" in out
    report = json.loads(file.read_text())
    assert report["scale"] == 8
    assert [row["output"] for row in report["rows"]] == ["parents"] * 2


def test_an_interrupted_zoo_has_shown_and_kept_its_rows(run, monkeypatch, tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(zoo, "zoo", lambda s: {"stars": [f"star:{1 << s}", interrupted]})
    file = tmp_path / "zoo.json"
    code, out, _ = run("bench", "zoo", "-b", "sim", "--roots", 1, "--json", file)
    assert code == 130
    assert out.startswith("stars 1, levels: ")
    (row,) = json.loads(file.read_text())["rows"]
    assert row["graph"] == "stars 1"


def test_without_a_gpu_the_default_graphs_are_small(run, monkeypatch):
    assert not set(SMALL_SUITE) & set(SUITE)
    monkeypatch.setattr(suite, "SMALL_SUITE", SMALL_SUITE[2:3])
    code, out, err = run("bench", "-b", "cpu", "--roots", 1)
    assert (code, err) == (0, "")
    assert SMALL_SUITE[2] in out
    assert "These are small graphs, since no GPU takes part." in out
    assert "small graphs" not in run("bench", "path:5", "-b", "cpu", "--roots", 1)[1]


def test_names_lead_to_generators():
    for name in ("kron20e16", "road2048", "path:3", "kron10", __file__):
        require_graph(name)
    assert suite.load("mycielskian5", "cpu").nrows == 23


@pytest.mark.ci
def test_interrupt_leaves_no_file(tmp_path):
    file = tmp_path / "b.json"
    command = ["bench", "kron16e16", "-b", "cpu", "--roots", "5000", "--json", str(file)]
    process = spawn(*command)
    wait_for_handler(process)
    time.sleep(3)  # it makes the graph or searches; all searches take many times as long
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "lagpu: interrupted." in err
    assert not list(tmp_path.iterdir())


def test_a_system_of_a_grid_is_measured(run, tmp_path):
    report = tmp_path / "report.json"
    args = ["bench", "path:9", "-b", "grid:2x2:cpu", "--policy", "kepler", "--roots", 2]
    code, _, err = run(*args, "--json", report)
    assert code == 0, err
    (row,) = json.loads(report.read_text())["rows"]
    assert (row["mode"], row["policy"], row["checked"]) == ("eager", "kepler", True)


def test_all_policies_beside_the_fused_loop(run, tmp_path):
    file = tmp_path / "bench.json"
    args = ("-b", "sim", "--roots", 1, "--policy", "all", "--mode", "both", "--json", file)
    assert run("bench", "path:9", *args)[0] == 0
    rows = json.loads(file.read_text("utf-8"))["rows"]
    assert [(row["mode"], row["policy"]) for row in rows] == [
        ("fused", None),
        *(
            (mode, policy)
            for policy in POLICIES
            for mode in ("fused", "eager")[policy not in FUSED_POLICIES :]
        ),
    ]
    assert all(row["checked"] for row in rows)
    code, _, err = run("bench", "path:9", "-b", "sim", "--policy", "vbfs:3", "--mode", "fused")
    assert (code, "with a policy of their own kernels, are not fused" in err) == (2, True)


def test_a_policy_that_fuses_is_measured_so(run, tmp_path):
    file = tmp_path / "bench.json"
    named = ("beamer:alpha=9,beta=3", "vbfs:3")
    args = ("-b", "sim", "--roots", 1, "--policy", named[0], "--policy", named[1], "--json", file)
    code, out, _ = run("bench", "path:9", *args)
    rows = json.loads(file.read_text("utf-8"))["rows"]
    assert (code, [(row["mode"], row["policy"]) for row in rows]) == (
        0, [("fused", named[0]), ("eager", named[1])]
    )  # fmt: skip
    assert "vbfs:3" in out
    assert "fused" in out
    code, _, err = run("bench", "path:9", "-b", "sim", "--policy", "beamer:gamma=1")
    assert (code, "no argument 'gamma=1'. Use alpha=, beta=" in err) == (2, True)


def test_a_directed_graph_is_measured_in_one_form(run, tmp_path):
    edges, file = tmp_path / "edges.txt", tmp_path / "bench.json"
    edges.write_text("".join(f"{v} {v + 1}\n0 {v}\n" for v in range(2, 600)) + "0 1\n")
    rows = []
    for orientation in ("auto", "csc"):
        args = ("-b", "sim", "--roots", 1, "--orientation", orientation, "--json", file)
        assert run("bench", edges, *args)[0] == 0
        rows += json.loads(file.read_text("utf-8"))["rows"]
    assert [(row["mode"], row["orientation"], row["checked"]) for row in rows] == [
        ("fused", "auto", True), ("fused", "csc", True)
    ]  # fmt: skip


def test_a_library_that_fails_costs_no_other_row(run, monkeypatch, tmp_path):
    (tmp_path / "igraph.py").write_text("raise ImportError('libfoo.so is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "igraph", raising=False)
    file = tmp_path / "b.json"
    args = ("-b", "cpu", "--roots", 1, "--peers", "igraph,scipy", "--json", file)
    code, _, err = run("bench", "path:5", *args)
    assert (code, err) == (
        1, "lagpu: bench: path:5, igraph: ImportError: libfoo.so is missing\n"
    )  # fmt: skip
    rows = json.loads(file.read_text())["rows"]
    assert [row["backend"] for row in rows] == ["cpu", "scipy"]


def test_a_graph_that_does_not_fit_costs_no_other_row(run, monkeypatch, tmp_path):
    def load(name, *how, **more):
        if name == "path:9":
            raise OutOfMemory("path: needs 9.0 GB, 1.0 GB free on cuda:0. Use a smaller graph.")
        return right(name, *how, **more)

    right = suite.load
    monkeypatch.setattr(suite, "load", load)
    file = tmp_path / "b.json"
    args = ("-b", "cpu", "--roots", 1, "--json", file)
    code, _, err = run("bench", "path:5", "path:9", "path:7", *args)
    assert (code, err.startswith("lagpu: bench: path:9: path: needs 9.0 GB, 1.0 GB free")) == (
        1,
        True,
    )
    assert [row["graph"] for row in json.loads(file.read_text())["rows"]] == ["path:5", "path:7"]
    code, out, err = run("bench", "path:9", "-b", "cpu")
    assert (code, out, err.startswith("lagpu: path: needs 9.0 GB, 1.0 GB free")) == (2, "", True)


@pytest.mark.ci
def test_a_file_that_is_no_graph_costs_no_other_row(run, tmp_path):
    wrong, file = tmp_path / "wrong.mtx", tmp_path / "b.json"
    wrong.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n")
    args = ("-b", "cpu", "--roots", 1, "--json", file)
    code, _, err = run("bench", "path:5", wrong, "path:7", *args)
    assert (code, err.startswith(f"lagpu: bench: {wrong}: ")) == (1, True), err
    assert [row["graph"] for row in json.loads(file.read_text())["rows"]] == ["path:5", "path:7"]


def test_pylibcugraph_by_its_documented_interface(monkeypatch):
    """It needs a GPU and gigabytes; a stand-in with its signatures shows that the call is right."""
    asked = []

    class SGGraph:
        def __init__(self, handle, properties, src, dst, *, weight_array, store_transposed,
                     renumber, do_expensive_check):  # fmt: skip
            assert src.dtype == dst.dtype == np.int32
            self.ends = src, dst

    def bfs(handle, graph, sources, direction_optimizing, limit, predecessors, expensive):
        asked.append((sources.tolist(), direction_optimizing, limit))
        n = 1 + max(int(ends.max()) for ends in graph.ends)
        S = sp.csr_array((np.ones(len(graph.ends[0])), graph.ends), shape=(n, n))
        hops = sp.csgraph.shortest_path(S, unweighted=True, indices=sources[0])
        distances = np.where(np.isinf(hops), np.iinfo(np.int32).max, hops).astype(np.int32)
        order = np.random.default_rng(0).permutation(n).astype(np.int32)
        return distances[order], None, order

    cupy = SimpleNamespace(
        asarray=np.asarray,
        asnumpy=np.asarray,
        cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None)),
    )
    plc = ModuleType("pylibcugraph")
    plc.SGGraph, plc.bfs = SGGraph, bfs
    plc.ResourceHandle = plc.GraphProperties = lambda **_: None
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "pylibcugraph", plc)
    graph = HostGraph.of(grid2d(3, 4, backend="cpu"))
    library = peers.PEERS["pylibcugraph"].open(graph)
    vertices, levels = library.levels(5, library.search(5))
    expected = algorithms.bfs_levels(grid2d(3, 4, backend="cpu"), 5).to_coo()
    assert vertices.tolist() == expected[0].tolist()
    assert levels.tolist() == expected[1].tolist()
    assert asked == [([5], True, -1)]


def test_graph500_from_one_root_has_no_deviation(run, tmp_path):
    file = tmp_path / "x.json"
    code, out, _ = run("graph500", "--scale", 4, "--roots", 1, "-b", "cpu", "--json", file)
    assert code == 0
    assert "bfs  harmonic_stddev_TEPS:      nan" in out
    assert json.loads(file.read_text())["fields"]["bfs  harmonic_stddev_TEPS"] is None
