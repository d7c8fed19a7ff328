"""`lagpu bench --algorithm`: what is asked, who answers, who is stopped, and what is refused."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from lagpu import Matrix, algorithms, backends, io
from lagpu.bench import family
from lagpu.bench.family import libraries, menu, table
from lagpu.bench.family.__main__ import app
from lagpu.bench.family.libraries import LIBRARIES
from lagpu.bench.family.menu import Answer, depths, differs, least_labels
from lagpu.bench.family.problem import Problem, make
from lagpu.bench.family.run import NO_TIME, Plan, run
from lagpu.bench.family.systems import Backend, Bench
from lagpu.bench.family.worker import Failed, TimeUp, Worker
from lagpu.cli import main
from lagpu.errors import BackendUnavailable, CheckFailed, InvalidValue, OutOfMemory

FIELDS = {
    "graph", "vertices", "edges", "algorithm", "options", "system", "runs", "median_ms", "min_ms",
    "max_ms", "device_ms", "rounds", "loop", "bytes", "checked", "note",
}  # fmt: skip

# Two triangles joined by an edge, with a self-loop; a path that leads back; a diamond; two parts.
GRAPHS = {
    "undirected": [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (4, 4)],
    "even": [(0, 1), (1, 2), (2, 3), (3, 0)],
    "directed": [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)],
    "acyclic": [(3, 1), (3, 0), (1, 2), (0, 2)],
    "apart": [(0, 1), (1, 2), (3, 4)],
}
UNDIRECTED = ("undirected", "even", "apart")


def matrix(kind: str) -> Matrix:
    i, j = (list(ends) for ends in zip(*GRAPHS[kind], strict=True))
    if kind in UNDIRECTED:
        i, j = i + j, j + i
    n = 1 + max(i + j)
    return Matrix.from_coo(i, j, nrows=n, ncols=n, dup_op="lor", backend="cpu")


@pytest.fixture(params=GRAPHS)
def kind(request):
    return request.param


@pytest.fixture
def given(kind, tmp_path):
    return problem_of(kind, tmp_path)


def problem_of(kind, folder) -> Problem:
    io.write(matrix(kind), folder / "graph.npz")
    make(str(folder / "graph.npz"), backends.get("cpu"), None, folder)
    return Problem.read(folder)


def question(key: str) -> menu.Question:
    return next(q for q in menu.menu() if q.key == key)


def answer(system, key: str) -> Answer:
    ask, read = system.prepare(question(key))
    return read(ask())


# -------------------------------------------------------------------------------- the questions


def test_every_algorithm_is_measured_or_named_with_another():
    asked = {q.algorithm for q in menu.menu()}
    assert asked <= set(algorithms.__all__)
    assert set(algorithms.__all__) - asked <= set(menu.LEFT_OUT)
    assert not asked & set(menu.LEFT_OUT)
    keys = [q.key for q in menu.menu()]
    assert len(set(keys)) == len(keys)


def test_an_algorithm_that_is_not_there_yet_is_not_asked(monkeypatch):
    monkeypatch.setattr(algorithms, "triangle_count", lambda A: 1, raising=False)
    assert "triangle_count" in {q.algorithm for q in menu.menu()}
    monkeypatch.delattr(algorithms, "triangle_count")
    assert "triangle_count" not in {q.algorithm for q in menu.menu()}


def test_names_are_chosen():
    assert [q.key for q in menu.chosen(["bfs,pagerank"])] == ["bfs", "pagerank"]
    assert [q.options for q in menu.chosen(["connected_components"])] == ["fastsv", "bfs"]
    assert len(menu.chosen([])) == len(menu.chosen(["all"])) == len(menu.menu())
    with pytest.raises(InvalidValue, match="measured as bellman_ford, delta_stepping"):
        menu.chosen(["sssp"])
    with pytest.raises(InvalidValue, match=r"no 'girth'.*bfs_levels"):
        menu.chosen(["girth"])


def test_answers_that_differ():
    x = Answer(np.array([1.0, 2.0]))
    for rule in ("equal", "close", "sum"):
        assert not differs(rule, x, Answer(x.same.copy()))
        assert differs(rule, x, Answer(np.array([1.0, 2.5])))
        assert differs(rule, x, Answer(np.array([1.0])))
        assert differs(rule, x, Answer(np.array([1.0, np.nan])))
    near = Answer(x.same * (1 + 1e-9))
    assert differs("equal", x, near)
    assert not differs("close", x, near)
    assert not differs("close", Answer(np.array([np.nan])), Answer(np.array([np.nan])))


def test_depths_and_labels():
    assert depths(np.array([1, 1, 0, 2, -1])).tolist() == [1, 0, 2, 3, -1]
    assert depths(np.array([0, 0, 1, 2, 3, 4, 5, 6, 7])).tolist() == list(range(9))
    assert least_labels(np.array([7, 3, 7, 3, 5])).tolist() == [0, 1, 0, 1, 4]


@pytest.mark.parametrize(
    ("key", "kind", "fault"),
    [
        ("bfs_parents", "even", lambda a: (a.proof[0], np.full(4, a.proof[0][0]))),
        ("bfs", "undirected", lambda a: (a.proof[0][1:], a.proof[1][1:])),
        ("shortest_path", "directed", lambda a: [*a.proof, a.proof[-1]]),
        ("shortest_path", "undirected", lambda a: [5, *a.proof[1:]]),
        ("bipartite_sides", "even", lambda a: (a.proof[0], np.zeros(4, int))),
        ("bipartite_sides", "undirected", lambda a: [0, 1, 3]),
        ("bipartite_sides", "undirected", lambda a: [0, 1]),
        ("bipartite_sides", "apart", lambda a: (a.proof[0][1:], a.proof[1][1:])),
    ],
)
def test_what_may_differ_is_proved(key, kind, fault, tmp_path):
    given = problem_of(kind, tmp_path)
    right = answer(Backend("cpu", given), key)
    prove = question(key).prove
    prove(given, right)
    with pytest.raises(CheckFailed):
        prove(given, right._replace(proof=fault(right)))


# ---------------------------------------------------------------------------------- the problem


def test_facts(kind, given):
    facts, A = given.facts, matrix(kind)
    assert (facts.vertices, facts.entries) == (A.nrows, A.nvals)
    assert facts.graph == "graph.npz"
    assert facts.symmetric is (kind in UNDIRECTED)
    assert facts.acyclic is (kind == "acyclic")
    assert facts.connected is (kind in ("undirected", "even"))
    assert (facts.outside > 0) is (kind == "apart")
    levels = algorithms.bfs_levels(A, int(np.argmax(A.reduce_rowwise("plus").new().to_dense(0))))
    assert facts.depth == levels.reduce("max").new().value
    assert set(facts.sources) == set(levels.to_coo()[0].tolist())
    assert algorithms.has_path(A, facts.source, facts.target)
    assert (facts.source, facts.target) == (facts.sources[0], facts.sources[-1])


def test_edges_and_lengths(given):
    A = given.rows.toarray()
    pattern = np.array([[given.has_edge(i, j) for j in range(len(A))] for i in range(len(A))])
    assert np.array_equal(A > 0, pattern)
    assert A[A > 0].min() >= 1
    both = (A > 0) & (A.T > 0)
    assert np.array_equal(A[both], A.T[both])


def test_lengths_differ(tmp_path):
    make("kron:6", backends.get("cpu"), 3, tmp_path)
    weights = Problem.read(tmp_path).weights
    assert len(np.unique(weights)) > 100
    assert 100 < weights.mean() < 156


def test_a_graph_without_an_edge(tmp_path):
    io.write(Matrix.from_coo([0], [0], nrows=3, ncols=3, backend="cpu"), tmp_path / "loop.npz")
    with pytest.raises(InvalidValue, match="no vertex has an edge"):
        make(str(tmp_path / "loop.npz"), backends.get("cpu"), None, tmp_path)


# ---------------------------------------------------------------------------------- the systems


@pytest.mark.parametrize("name", ["scipy", "networkx"])
def test_libraries_find_what_the_oracle_finds(name, given):
    oracle, other = Backend("cpu", given), LIBRARIES[name].open(given)
    asked = 0
    for q in menu.menu():
        if q.key in LIBRARIES[name].keys and not q.bar(given.facts, False):
            right = answer(oracle, q.key)
            assert not differs(q.rule, right, answer(other, q.key)), q.key
            wrong = right.same.copy()
            wrong[-1] = not wrong[-1] if wrong.dtype == bool else wrong[-1] + 1
            assert differs(q.rule, Answer(wrong), answer(other, q.key)), q.key
            asked += 1
    assert asked >= 4
    assert LIBRARIES[name].table(given).keys() == LIBRARIES[name].keys


def test_backends_find_what_the_oracle_finds(backend, given):
    oracle, other = Backend("cpu", given), Backend(backend.name, given)
    for q in menu.menu():
        if not q.bar(given.facts, False):
            right, found = answer(oracle, q.key), answer(other, q.key)
            assert not differs(q.rule, right, found), q.key
            if q.prove is not None:
                q.prove(given, found)
            if q.rounds is not None:
                assert q.rounds(given.facts, found) >= 1


def test_one_matrix_is_held_at_a_time(tmp_path):
    given = problem_of("acyclic", tmp_path)
    system = Backend("cpu", given)
    for key, kind in (("bfs", "pattern"), ("topological_levels", "acyclic"), ("bfs", "pattern")):
        system.prepare(question(key))
        assert list(system._kept) == [kind]
    ask, _ = system.prepare(question("bellman_ford"))
    assert ask.args[0].dtype.name == "INT64"
    assert ask.args[0].to_csc()[2].tolist() == given.weights.tolist()


def test_a_triangle_is_counted(monkeypatch, tmp_path):
    monkeypatch.setattr(algorithms, "triangle_count", lambda A: 2, raising=False)
    given = problem_of("undirected", tmp_path)
    systems = Backend("cpu", given), LIBRARIES["networkx"].open(given)
    counts = [answer(system, "triangle_count") for system in systems]
    assert not differs("equal", *counts)


def test_searches_from_each_are_read_row_by_row():
    levels = Matrix.from_coo([0, 1, 1], [0, 1, 2], [0, 0, 1], nrows=2, ncols=3, backend="cpu")
    assert menu._levels_of_each(levels).same.tolist() == [[0, -1, -1], [-1, 0, 1]]


def test_what_rules_a_question_out(tmp_path):
    facts = problem_of("apart", tmp_path).facts
    assert question("diameter").bar(facts, False) == "not connected"
    many = replace(facts, outside=10**6, vertices=4 * 10**6, depth=4000)
    assert question("connected_components bfs").bar(many, False) == "1,000,000 vertices apart"
    betweenness = next(q for q in menu.menu() if q.algorithm == "betweenness_centrality")
    assert betweenness.bar(many, True) == "frontiers of 128 GB"
    assert betweenness.bar(many, False) == betweenness.bar(facts, True) == ""
    assert LIBRARIES["networkx"].bar("bfs_levels", 10**7) == "too large"
    assert LIBRARIES["networkx"].bar("bfs_levels", 10**5) == ""
    assert LIBRARIES["networkx"].bar("diameter", 10**5) == "too large"


def test_pylibcugraph_by_its_documented_interface(monkeypatch, kind, given):
    """It needs a GPU and gigabytes; a stand-in with its signatures shows that calls are right."""
    n, order = given.facts.vertices, np.random.default_rng(0).permutation(given.facts.vertices)

    class SGGraph:
        def __init__(self, handle, properties, src, dst, *, weight_array, store_transposed,
                     renumber, do_expensive_check):  # fmt: skip
            assert src.dtype == dst.dtype == np.int32
            values = np.ones(len(src)) if weight_array is None else weight_array
            self.S = sp.csr_array((values, (src, dst)), shape=(n, n))

    def far(distances, dtype, largest):
        return np.where(np.isinf(distances), largest, distances).astype(dtype)[order]

    def bfs(handle, graph, sources, direction_optimizing, limit, predecessors, expensive):
        hops = sp.csgraph.shortest_path(graph.S, unweighted=True, indices=sources[0])
        return far(hops, np.int32, np.iinfo(np.int32).max), None, order

    def sssp(handle, graph, source, cutoff, predecessors, expensive):
        assert predecessors
        lengths = sp.csgraph.dijkstra(graph.S, indices=source)
        return order, far(lengths, float, np.finfo(float).max), None

    def pagerank(handle, graph, weights_of, sums, guess_of, guess, alpha, epsilon, most, expensive):
        nx = pytest.importorskip("networkx")
        G = nx.from_scipy_sparse_array(graph.S, create_using=nx.DiGraph)
        found = nx.pagerank(G, alpha, tol=epsilon, max_iter=most, weight=None)
        return order, np.array([found[v] for v in order])

    def weakly_connected_components(handle, graph, offsets, indices, weights, labels, expensive):
        return order, 9 - sp.csgraph.connected_components(graph.S)[1][order]

    def core_number(handle, graph, degree_type, expensive):
        assert degree_type in ("incoming", "outgoing", "bidirectional")
        return order, algorithms.core_number(matrix(kind)).to_dense()[order]

    def triangle_count(handle, graph, start_list, expensive):
        S = graph.S
        return order, ((S @ S).multiply(S).sum(axis=1) / 2).astype(int)[order]

    cupy = SimpleNamespace(
        asarray=np.asarray,
        asnumpy=np.asarray,
        cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None)),
    )
    plc = ModuleType("pylibcugraph")
    plc.ResourceHandle = plc.GraphProperties = lambda **_: None
    calls = (SGGraph, bfs, sssp, pagerank, weakly_connected_components, core_number, triangle_count)
    for call in calls:
        setattr(plc, call.__name__, call)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "pylibcugraph", plc)
    S = given.rows.astype(bool).astype(int)
    count = int(((S @ S).multiply(S)).sum()) // 6
    monkeypatch.setattr(algorithms, "triangle_count", lambda A: count, raising=False)
    keys = libraries._pylibcugraph(given).keys()
    assert keys == (LIBRARIES["pylibcugraph"].keys if kind in ("even", "apart") else
                    {"bfs_levels", "delta_stepping", "pagerank"})  # fmt: skip
    oracle, other = Backend("cpu", given), LIBRARIES["pylibcugraph"].open(given)
    for key in keys:
        assert not differs(question(key).rule, answer(oracle, key), answer(other, key)), key


@pytest.fixture
def bench(backend, tmp_path):
    problem_of("undirected", tmp_path)
    held = Bench()
    held.open(backend.name, tmp_path)
    return held


def test_runs_are_counted(bench, backend):
    bench.prepare("bfs_levels")
    found = bench.measure(3, 60.0, 60.0)
    assert (len(found.wall_ms), found.first) == (3, False)
    assert all(ms > 0 for ms in found.wall_ms)
    assert found.loop.startswith("fused") is (backend.name != "cpu")
    assert (found.bytes is None) is (backend.name == "cpu")
    assert (found.device_ms is None) is (backend.name != "gpu")
    right = answer(Backend("cpu", bench._system._given), "bfs_levels")
    assert found.answer.same.tolist() == right.same.tolist()


def test_no_more_runs_than_time(bench, backend):
    bench.prepare("pagerank")
    found = bench.measure(10**6, 1e-9, 60.0)
    assert len(found.wall_ms) == 1
    assert found.first is (backend.name == "cpu")  # else the first one compiles
    assert bench.measure(10**6, 1e-9, 1e-9).first


# ------------------------------------------------------------------------------------ processes


class Held:
    def add(self, x, y):
        return x + y

    def wait(self, seconds):
        time.sleep(seconds)

    def die(self):
        os._exit(3)


@pytest.fixture
def worker():
    made = Worker(Held)
    yield made
    made.end()


def test_a_process_answers(worker):
    assert worker.call("add", [1], [2], limit=60) == [1, 2]
    with pytest.raises(Failed, match="TypeError") as caught:
        worker.call("add", 1, "2", limit=60)
    assert caught.value.kind == "TypeError"
    assert worker.call("add", 1, 2, limit=60) == 3


def test_a_process_is_ended_in_the_middle(worker):
    assert worker.alive
    with pytest.raises(TimeUp):
        worker.call("wait", 600, limit=0.1)
    assert not worker.alive
    with pytest.raises(Failed, match="Died"):
        worker.call("add", 1, 2, limit=60)


def test_a_process_that_dies(worker):
    with pytest.raises(Failed, match="Died: the process ended with exit code 3"):
        worker.call("die", limit=60)


# ------------------------------------------------------------------------------------ whole runs


class Wrong(Bench):
    """SciPy finds another component."""

    def measure(self, *how):
        found = super().measure(*how)
        if self._system.place is None:
            found.answer.same[-1] += 1
        return found


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
        found = super().measure(*how)
        indices, values = found.answer.proof
        return found._replace(answer=found.answer._replace(proof=(indices, values[::-1])))


def test_systems_that_differ_end_the_run():
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


def test_an_answer_that_is_proved_wrong_ends_the_run():
    plan = Plan(["grid:3x4"], ["bfs_parents"], ["cpu"], bench=Proofless)
    with pytest.raises(CheckFailed, match="bfs_parents: cpu: check_parents"):
        run(plan)


def test_what_does_not_end_or_fails_is_a_row_and_no_more():
    names = ["bfs_levels", "bfs", "pagerank", "core_number", "diameter"]
    plan = Plan(["grid:3x4"], names, ["cpu"], bench=Faulty, limit=0.5)
    found, failures = run(plan)
    notes = {row["algorithm"]: row["note"] for row in found["rows"]}
    assert notes == {
        "bfs_levels": "over 0.5 s",
        "bfs": "",
        "pagerank": "MemoryError: planted",
        "core_number": "ZeroDivisionError: planted",
        "diameter": "",
    }
    assert failures == ["grid:3x4, core_number, cpu: ZeroDivisionError: planted"]
    measured = [row["algorithm"] for row in found["rows"] if row["median_ms"] is not None]
    assert measured == ["bfs", "diameter"]
    assert all(set(row) == FIELDS for row in found["rows"])


def test_a_graph_that_does_not_fit_leaves_the_others():
    kept = []
    plan = Plan(["path:9", "path:8", "cycle:9"], ["bfs"], ["cpu"], bench=Small)
    found, failures = run(plan, keep=lambda report: kept.append(len(report["rows"])))
    assert [row["graph"] for row in found["rows"]] == ["cycle:9"]
    assert failures == ["path:9: bench: too large.", "path:8: MemoryError: planted"]
    assert kept == [0, 0, 1]


def test_no_time_left():
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
        ({"graphs": ["path:1"]}, "no vertex"),
    ],
)
def test_wrong_plans(change, message):
    with pytest.raises(InvalidValue, match=message):
        run(Plan(**{"graphs": ["path:3"], "algorithms": ["bfs"], "backends": ["cpu"]} | change))


def test_a_backend_that_is_missing():
    try:
        backends.get("gpu")
    except BackendUnavailable:
        pass
    else:
        pytest.skip("there is a GPU")
    with pytest.raises((BackendUnavailable, InvalidValue)):
        run(Plan(["path:3"], ["bfs"], ["gpu"]))


# --------------------------------------------------------------------------- command and tables


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
        assert row["loop"].startswith("fused") is (row["system"] == "sim")
    done = CliRunner().invoke(app, [str(file)])
    assert done.exit_code == 0
    assert done.stdout == family.markdown(found)
    assert done.stdout.startswith("### kron6e4\n\n64 vertices")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--algorithm", "all", "--roots", "3"], "--roots: it is for lagpu bench without"),
        (["--algorithm", "all", "--mode", "eager"], "--mode"),
        (["--budget", "0"], "--budget: it is for lagpu bench with"),
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
    monkeypatch.setattr(family, "run", lambda *_: ({"rows": [row]}, ["g, bfs, cpu: Died", "more"]))
    assert main(["bench", "path:3", "--algorithm", "bfs"]) == 1
    out, err = capsys.readouterr()
    assert "Died" in out
    assert err == "lagpu: bench: g, bfs, cpu: Died (and 1 more)\n"


def test_tables_say_why_there_is_no_number():
    base = dict.fromkeys(FIELDS) | {
        "graph": "g", "vertices": 1234, "edges": 2, "algorithm": "bfs", "options": "", "loop": "",
        "checked": True, "note": "",
    }  # fmt: skip
    rows = [
        base
        | {"system": "gpu", "median_ms": 0.12345, "device_ms": 0.1, "loop": "fused: one kernel"},
        base | {"system": "cpu", "median_ms": 12345.6},
        base | {"system": "networkx", "note": "too large", "checked": False},
        base | {"system": "gpu", "algorithm": "diameter", "median_ms": 7.0, "checked": False},
        base | {"system": "cpu", "algorithm": "diameter", "note": "Died: x | y", "checked": False},
    ]
    assert table.markdown({"rows": rows}).splitlines() == [
        "### g",
        "",
        "1,234 vertices, 2 edges.",
        "",
        "| algorithm | gpu | cpu | networkx | loop |",
        "| --- | ---: | ---: | ---: | --- |",
        "| bfs | 0.123 (0.1) | 12,346 | too large | fused |",
        "| diameter | 7 ? | Died | - |  |",
    ]
    (printed,) = table.tables(rows)
    assert [column.header for column in printed.columns][-2:] == ["loop", "checked"]
    assert list(printed.columns[-1].cells) == ["yes", "-"]


def test_a_file_that_is_no_report(tmp_path):
    for text in (None, "[]", "{}", "no JSON"):
        file = tmp_path / "x.json"
        if text is not None:
            file.write_text(text)
        done = CliRunner().invoke(app, [str(file)])
        assert done.exit_code == 2
        assert str(file) in done.stderr
        file.unlink(missing_ok=True)
