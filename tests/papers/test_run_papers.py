"""``lagpu paper --quick``: every row is proved, and what is missing is named."""

import json
import time
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace

import pytest

from lagpu import algorithms, backends, binary
from lagpu.algorithms.betweenness import count_paths, dependencies
from lagpu.backends.guard import is_overridden
from lagpu.bench import suite
from lagpu.errors import BackendUnavailable, KernelLaunchError, NotSupported
from lagpu.generators.load import load as load_graph
from lagpu.papers import run as runs
from lagpu.papers.experiments import Experiment, Paper, PaperGraph, Variant, metric, paper_of
from lagpu.papers.run import Request
from lagpu.papers.run import run as run_paper

TURBOBFS = paper_of("003")
ROW = {
    "graph", "kind", "made_from", "stand_in", "vertices", "entries", "paper_size", "degrees",
    "variant", "of_paper", "runs_as", "note", "backend", "mode", "output", "roots", "value",
    "unit", "more", "reported", "median_ms", "mean_ms", "gteps", "bytes", "joules", "checked",
    "own", "size_only", "runs", "rates", "kernel_ms",
}  # fmt: skip
PART = {
    "part", "title", "metric", "definition", "measured_on", "notes", "roots", "missing", "says",
    "rows",
}  # fmt: skip


def record(run, tmp_path, *words):
    """Run a command; return its report and what it printed."""
    file = tmp_path / "p.json"
    code, out, err = run("paper", *words, "--quick", "--json", file)
    assert (code, err) == (0, "")
    return json.loads(file.read_text("utf-8")), out


def prove(found):
    """Check what every report of ``--quick`` has."""
    assert found.keys() == {
        "machine", "commit", "date", "versions", "paper", "quick", "memory", "experiments",
    }  # fmt: skip
    assert datetime.fromisoformat(found["date"]).tzinfo is not None
    for part in found["experiments"]:
        assert part.keys() == PART
        assert part["rows"]
        for row in part["rows"]:
            assert row.keys() == ROW
            assert row["checked"] is True
            assert row["value"] is None or row["value"] >= 0  # a phase that one piece has not


def test_turbobfs_on_cpu(run, tmp_path):
    found, out = record(run, tmp_path, "turbobfs", "--table", 2, "-b", "cpu")
    prove(found)
    assert found["paper"]["number"] == "003"
    (part,) = found["experiments"]
    assert {row["graph"] for row in part["rows"]} == {"mycielski12", "kron-logn16", "mawi-12345"}
    as_ = {row["variant"]: row["runs_as"] for row in part["rows"]}
    assert as_["tdscCSC"] == "pull"
    assert as_["tdscCOOC (searched)"] == "push"
    assert as_["SuiteSparse:GraphBLAS"] == "python-graphblas"
    no_gpu, text = part["missing"]
    assert no_gpu == "a GPU: times on cpu judge no claim"
    assert text.startswith("kernels: the cpu backend has none; its directions replace them")
    best = [row for row in part["rows"] if row["reported"] == 2036]
    assert len(best) == 1
    assert best[0]["of_paper"]
    assert "table 2: the variants on irregular graphs" in out
    assert "a small graph, since --quick is given" in out
    undecided = "Undecided: tdveCSC over tdscCSC on 3 graphs: "  # by the kernels of cpu
    assert any(text.startswith(undecided) for text in part["says"])
    assert not any(text.startswith(("Held", "Not held")) for text in part["says"])


def test_hiragushi_on_cpu(run, tmp_path):
    found, out = record(run, tmp_path, "hiragushi", "--figure", "4b", "-b", "cpu")
    prove(found)
    (part,) = found["experiments"]
    shares = [row["value"] for row in part["rows"]]
    assert [a + b for a, b in zip(shares[::2], shares[1::2], strict=True)] == [
        pytest.approx(100)
    ] * 3
    assert "% of the time" in out


def test_vbfs_on_cpu(run, tmp_path):
    found, _ = record(run, tmp_path, "vbfs", "--figure", 1, "-b", "cpu")
    prove(found)
    (part,) = found["experiments"]
    assert [row["variant"] for row in part["rows"]] == ["baseline", "VBFS", "lagpu"]
    base, vbfs, _ = part["rows"]
    assert base["value"] == 1.0
    assert vbfs["value"] == pytest.approx(base["mean_ms"] / vbfs["mean_ms"])
    assert (base["vertices"], base["entries"]) == (128, 7750)


def test_mgbc_on_cpu(run, tmp_path):
    found, _ = record(run, tmp_path, "mgbc", "--table", 4, "-b", "cpu")
    prove(found)
    (part,) = found["experiments"]
    assert {row["output"] for row in part["rows"]} == {"dependencies"}
    assert {row["graph"]: row["reported"] for row in part["rows"] if row["variant"] == "MGBC"} == {
        "roadNet-PA": 65, "R-MAT S23 EF32": 291,
    }  # fmt: skip


def test_kepler_on_a_grid(run, tmp_path):
    found, _ = record(run, tmp_path, "kepler", "--figure", 7, "-b", "cpu")
    prove(found)
    (part,) = found["experiments"]
    grids = {"grid:1x1:cpu", "grid:1x2:cpu", "grid:2x2:cpu"}
    assert {row["backend"] for row in part["rows"]} == grids
    assert {row["mode"] for row in part["rows"]} == {"by level"}
    by_graph = {}
    for row in part["rows"]:
        by_graph[row["graph"]] = by_graph.get(row["graph"], 0) + row["value"]
    assert [*by_graph.values()] == [pytest.approx(100)] * 3
    assert part["says"][0].startswith("Undecided: update, % of the time: ")


@pytest.mark.parametrize(("paper", "parts"), [("000", 2), ("002", 3), ("004", 6)])
def test_two_simulated_gpus(sim, run, tmp_path, paper, parts):
    """The systems on two GPUs are one kernel; times of sim judge nothing."""
    found, out = record(run, tmp_path, paper, "-b", "sim", "--gpus", 2, "--roots", 1)
    assert len(found["experiments"]) == parts
    rows = [row for part in found["experiments"] for row in part["rows"]]
    assert {row["backend"] for row in rows} == {"grid:1x1:sim", "grid:1x2:sim"}
    assert {row["mode"] for row in rows} == {"fused"}
    assert all(row["checked"] and not row["own"] for row in rows)
    assert "A quick run: 1 root a graph instead of 64." in out
    said = [text for part in found["experiments"] for text in part["says"]]
    assert len(said) == (2 if paper == "004" else 0)
    assert all(text.startswith("Undecided: ") for text in said)


def test_searches_beyond_the_limit_of_memory_are_missing(sim):
    free = sim.device.free_bytes()
    request = Request("sim", True, 1, only=["mycielski12"], memory=1)
    found, refusals = run_paper(TURBOBFS, TURBOBFS.experiments[1:2], request)
    assert (found["memory"], refusals) == (1, [])
    (part,) = found["experiments"]
    assert "tdscCOOC" not in {row["variant"] for row in part["rows"]}  # it stores the columns
    (text,) = [text for text in part["missing"] if text.startswith("mycielski12, tdscCOOC: ")]
    assert "0 B free on sim" in text
    assert sim.device.free_bytes() > free / 2
    assert sim.device.observer is None  # no clock is left where the search failed


@pytest.mark.parametrize(("memory", "kept"), [(1 << 40, False), (None, True)])
def test_under_a_limit_each_variant_begins_with_the_graph_alone(sim, monkeypatch, memory, kept):
    """Workspaces and forms that variants before it left would count."""
    left = []

    def searches(tested, A, runner, before):
        held = A.data.store
        left.append(runner.place is not None and bool(held.cache or held.kernels))
        return runs.searches(tested, A, runner, before)

    loads = []

    def load(*given, **named):
        loads.append(given)
        return load_graph(*given, **named)

    monkeypatch.setattr("lagpu.papers.run.load", load)
    monkeypatch.setitem(runs.WAYS, "searches", searches)
    request = Request("sim", True, 1, only=["mycielski12"], memory=memory)
    found, _ = run_paper(TURBOBFS, TURBOBFS.experiments[1:2], request)
    assert 2 * len(found["experiments"][0]["rows"]) == len(left) >= 18
    assert any(left) is kept
    assert len(loads) == 1  # the host makes such a graph once


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("003", "-b", "cpu", "--memory", 12), "12000000000 bytes on cpu. Give 1 or more, on one"),
        (("004", "--figure", 7, "-b", "sim", "--memory", 12), "bytes on a grid. Give 1 or more"),
        (("003", "-b", "sim", "--memory", 0), "--memory: 0 GB. Give more than 0"),
        (("003", "-b", "sim", "--memory", "nan"), "--memory: nan GB. Give more than 0"),
    ],
)
def test_a_limit_of_memory_that_nothing_heeds_is_refused(run, words, text):
    code, out, err = run("paper", *words, "--quick")
    assert (code, out) == (2, "")
    assert text in err


@pytest.mark.ci
@pytest.mark.parametrize(
    "words",
    [
        ("000", "--figure", "4a", "--only", "kron_g500-logn20"),
        ("001", "--figure", "2"),
        ("002", "--figure", "7", "--only", "R-MAT S19 EF16"),
        ("003", "--table", "2", "--only", "mycielski12"),
        ("004", "--table", "2"),
    ],
)
def test_papers_on_sim(run, tmp_path, words):
    found, _ = record(run, tmp_path, *words, "-b", "sim")
    prove(found)
    (part,) = found["experiments"]
    assert {"push", "pull"} >= {row["runs_as"].partition("_")[0] for row in part["rows"]} - {
        "hiragushi:push=merrill,pull=gather", "hiragushi", "bfs2d", "tdbu:scalar", "tdbu:vector",
        "python-graphblas", "lagpu by itself",
    }  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["000", "001", "002", "003", "004"])
def test_whole_papers_on_sim(run, tmp_path, name):
    found, out = record(run, tmp_path, name, "-b", "sim")
    for part in found["experiments"]:
        assert part["rows"] or part["missing"]
        assert all(row["checked"] for row in part["rows"])
    assert "--quick shows that everything runs" in out


PAIR = Experiment(
    "table 1",
    "two",
    (PaperGraph("p", "path:5", "a path", "path:4", "line", {"thread": 3.0}),),
    (
        Variant("thread", kernel="pull_scalar"),
        Variant("future", kernel="push_time"),
        Variant("argument", kernel="pull_scalar:7"),
        Variant("plan", policy="no_policy:alpha=1"),
        Variant("lagpu", ours=True),
    ),
    metric("EDGES_BY_MEAN"),
    roots=2,
)
ONE = Paper("009", ("one",), "A paper", "nowhere", (PAIR,))


@pytest.fixture
def sim(backend):
    if backend.name != "sim":
        pytest.skip("kernels by name")
    return backend


def test_what_is_not_there_yet_is_named(sim):
    found, refusals = run_paper(ONE, ONE.experiments, Request("sim", quick=True))
    (part,) = found["experiments"]
    assert refusals == []
    assert [row["variant"] for row in part["rows"]] == ["thread", "lagpu"]
    no_gpu, future, argument, plan = part["missing"]
    assert no_gpu == "a GPU: times on sim judge no claim"
    assert future == "future: the sim backend has no kernel push_time"
    assert argument == "argument: the sim backend has no kernel pull_scalar:7"
    assert plan == "plan: the sim backend has no policy no_policy:alpha=1"
    assert part["rows"][0]["reported"] == 3.0
    assert [row["of_paper"] for row in part["rows"]] == [True, False]
    assert [row["mode"] for row in part["rows"]] == ["eager", "fused"]
    assert part["rows"][0]["entries"] == 6


def test_a_file_takes_the_place_of_a_graph(tmp_path):
    file = tmp_path / "triangle.txt"
    file.write_text("0 1\n1 0\n1 2\n2 1\n2 0\n0 2\n")
    for request, entries, why in (
        (Request("cpu", files={"p": str(file)}), 6, ""),
        (Request("cpu"), 8, "a path"),
        (Request("cpu", quick=True), 6, "a small graph, since --quick is given"),
    ):
        found, _ = run_paper(ONE, ONE.experiments, request)
        row = found["experiments"][0]["rows"][0]
        assert (row["entries"], row["stand_in"]) == (entries, why)


@pytest.mark.parametrize(
    ("given", "why", "size_only"),
    [
        ("path:4", "a path; of another size, by --graph", False),
        ("star:4", "size only: star:4, by --graph", True),
    ],
)
def test_a_text_in_place_of_a_file_is_a_stand_in(given, why, size_only):
    found, _ = run_paper(ONE, ONE.experiments, Request("cpu", files={"p": given}))
    row = found["experiments"][0]["rows"][0]
    assert (row["made_from"], row["stand_in"], row["size_only"]) == (given, why, size_only)


def test_files_are_found_in_a_folder(run, tmp_path):
    folder = tmp_path / "real" / "below"
    folder.mkdir(parents=True)
    (folder / "mawi-201512012345.txt").write_text("0 1\n1 0\n")
    (folder / "mawi_201512012345_b.txt").write_text("0 1\n")
    found, _ = record(
        run, tmp_path, "003", "--table", 2, "-b", "cpu", "--graph", tmp_path / "real",
        "--only", "mawi-12345",
    )  # fmt: skip
    (part,) = found["experiments"]
    assert {row["entries"] for row in part["rows"]} == {2}
    assert {row["stand_in"] for row in part["rows"]} == {""}
    (folder / "mawi-201512012345.txt").unlink()
    code, _, err = run("paper", "003", "--table", 2, "--graph", folder)
    assert code == 2
    assert f"--graph: {folder} has no file of mycielskian12, " in err


def test_a_graph_without_a_file_is_named():
    graphs = (*PAIR.graphs, PaperGraph("web"))
    experiment = replace(PAIR, graphs=graphs, variants=PAIR.variants[-1:])
    found, _ = run_paper(ONE, [experiment], Request("cpu"))
    assert found["experiments"][0]["missing"][0] == "no file, no generator (--graph NAME=FILE): web"


def test_a_wrong_result_is_refused(run, monkeypatch):
    def wrong(A, root):
        levels = algorithms.bfs_levels(A, root)
        levels[root] = 1
        return levels

    monkeypatch.setitem(suite.ALGORITHMS, "levels", wrong)
    code, out, err = run("paper", "003", "--table", 3, "--quick", "-b", "cpu")
    assert code == 1
    assert "NO" in out
    assert err.startswith("lagpu: paper: kmer-V1r, ")


def test_a_variant_that_fails_costs_its_own_row(run, monkeypatch, tmp_path):
    def fails(A, root):
        raise (NotSupported if is_overridden(A.backend) else KernelLaunchError)("no")

    file = tmp_path / "p.json"
    words = ("paper", "003", "--table", 3, "--quick", "-b", "cpu", "--only", "twitter7")
    monkeypatch.setitem(suite.ALGORITHMS, "levels", fails)
    code, out, err = run(*words, "--json", file)
    assert (code, err) == (1, "lagpu: paper: twitter7, lagpu: no\n")
    assert "missing: twitter7, busc: no" in out
    (part,) = json.loads(file.read_text())["experiments"]
    assert [row["variant"] for row in part["rows"]][-2:] == ["tdveCSC", "SuiteSparse:GraphBLAS"]


def test_a_report_is_kept_after_each_graph(monkeypatch):
    kept = []
    graphs = (*PAIR.graphs, PaperGraph("q", "path:6"))
    relative, variants = metric("SPEEDUP", "lagpu"), PAIR.variants[-1:]
    experiment = replace(PAIR, graphs=graphs, variants=variants, metric=relative)
    run_paper(
        ONE, [experiment], Request("cpu"),
        keep=lambda report: kept.append(json.loads(json.dumps(report))["experiments"][0]["rows"]),
    )  # fmt: skip
    assert [[row["graph"] for row in rows] for rows in kept] == [["p"], ["p", "q"]]
    assert [row["value"] for rows in kept for row in rows] == [1.0] * 3


def test_wrong_dependencies_are_refused(run, monkeypatch):
    def wrong(A, levels, paths):
        delta = dependencies(A, levels, paths)
        delta(accum=binary.plus) << paths.apply(binary.minus, right=1)
        return delta

    monkeypatch.setattr("lagpu.papers.run.dependencies", wrong)
    code, _, err = run("paper", "002", "--table", 4, "--quick", "-b", "cpu")
    assert code == 1
    assert "do not obey their recurrence" in err


def test_wrong_path_counts_are_refused_though_the_levels_are_right(run, monkeypatch):
    def wrong(A, roots):
        levels, paths = count_paths(A, roots)
        paths(accum=binary.plus) << paths
        return levels, paths

    monkeypatch.setattr("lagpu.papers.run.count_paths", wrong)
    code, _, err = run("paper", "002", "--table", 4, "--quick", "-b", "cpu")
    assert code == 1
    assert "check_paths" in err


def test_a_grid_that_is_not_there(refused, monkeypatch):
    def get(name):
        if str(name).startswith("grid"):
            raise BackendUnavailable("gpu:1: there is no such device.")
        return backends.get(name)

    monkeypatch.setattr("lagpu.papers.run.backends", SimpleNamespace(get=get))
    err = refused("paper", "004", "--table", 3, "--quick", "-b", "cpu")
    assert "needs a grid of 1x2: gpu:1: there is no such device. -b cpu and -b sim need no" in err


def test_a_graph_that_does_not_fit(refused):
    large = ("--graph", "mycielski12=kron:31:99")
    err = refused("paper", "003", "--table", 2, "-b", "cpu", "--only", "mycielski12", *large)
    assert "GB" in err


@pytest.fixture
def ran(monkeypatch):
    """The kind, the backend and the variant of each measurement."""
    ran = []

    def noted(kind, way):
        def measured(tested, A, runner, before):
            ran.append((kind, runner.place.name, runner.variant.name))
            return way(tested, A, runner, before)

        return measured

    for kind, way in runs.WAYS.items():
        monkeypatch.setitem(runs.WAYS, kind, noted(kind, way))
    return ran


def run_parts(**parts):
    """Run experiments, each of (graph, variants) and more, as a paper; return their rows."""
    experiments = tuple(
        Experiment(part, "t", (graph,), variants, metric("MEAN_MS"), (), 1, "a card", **more)
        for part, (graph, variants, more) in parts.items()
    )
    paper = Paper("009", ("x",), "title", "where", experiments, {})
    report, refusals = run_paper(paper, experiments, Request("sim", True))
    assert not refusals
    return [part["rows"] for part in report["experiments"]]


PATH = PaperGraph("a path", "path:9", quick="path:9")
PUSHED = Variant("a", kernel="push_edge")


def test_experiments_that_compare_the_same_variants_measure_them_once(ran):
    two = PUSHED, Variant("b", kernel="push_queue")
    rows = run_parts(one=(PATH, two, {}), again=(PATH, two, {}), fewer=(PATH, two[:1], {}))
    assert [name for *_, name in ran] == [*"abab", *"aa"]  # a figure's variants, by turns
    ms = [[row["median_ms"] for row in part] for part in rows]
    assert ms[0] == ms[1]
    for row in rows[0]:
        assert len(row["runs"]) == 2
        assert row["value"] == pytest.approx(sum(row["runs"]) / 2)  # of mean times, one root
        assert row["value"] == pytest.approx(row["kernel_ms"])
        assert 0 < row["kernel_ms"] <= row["median_ms"] * 20  # without the host's time


@pytest.mark.parametrize("words", [("--only", "nope"), ("--graph", "nope=a.mtx")])
def test_a_graph_that_an_experiment_lacks(refused, words):
    err = refused("paper", "003", "--table", 2, "-b", "cpu", *words)
    assert err.startswith(f"lagpu: {words[0]}: there is no 'nope' here. Use mycielski12, ")


def test_variants_that_differ_are_measured_each(ran):
    fused = Variant("fused", kernel="push_edge", fused=True)
    itself, split = (Variant("lagpu", ours=True),), replace(PATH, pieces="1x2")
    run_parts(
        one=(PATH, (PUSHED, fused), {}),
        whole=(PATH, itself, {}),
        split=(split, itself, {}),
        parts=(PATH, itself, {"kind": "parts"}),
    )
    assert ran == [  # the graph in two pieces is another one
        *[("searches", "sim", "a"), ("searches", "sim", "fused")] * 2,
        *[("searches", "sim", "lagpu")] * 2,
        *[("parts", "sim", "lagpu")] * 2,
        *[("searches", "grid:1x2:sim", "lagpu")] * 2,
    ]


def test_a_graph_is_made_once_for_all_experiments(monkeypatch):
    made = []

    def load(*given, **named):
        made.append(given[0])
        return load_graph(*given, **named)

    monkeypatch.setattr("lagpu.papers.run.load", load)
    other = PaperGraph("q", "path:7", quick="path:7")
    variants = PAIR.variants[-1:]
    experiments = [
        replace(PAIR, part=part, graphs=graphs, variants=variants, roots=roots)
        for part, graphs, roots in (
            ("table 1", (PATH, other), 2), ("table 2", (other, PATH), 3), ("table 3", (PATH,), 1),
        )
    ]  # fmt: skip
    report, _ = run_paper(ONE, experiments, Request("cpu"))
    assert made == ["path:9", "path:7"]
    graphs = [[row["graph"] for row in part["rows"]] for part in report["experiments"]]
    assert graphs == [["a path", "q"], ["q", "a path"], ["a path"]]
    assert [part["rows"][0]["roots"] for part in report["experiments"]] == [2, 3, 1]


@pytest.mark.parametrize(("seconds", "roots", "runs"), [(1e9, 9, 2), (1e-6, 1, 1)])
def test_roots_are_as_many_as_there_is_time_for(sim, seconds, roots, runs):
    """A search that takes much longer than all should runs once."""
    variants = PAIR.variants[0], PAIR.variants[-1]
    experiment = replace(PAIR, graphs=(PATH,), variants=variants, roots=9)
    request = Request("sim", seconds=seconds)
    report, refusals = run_paper(ONE, [experiment], request)
    (part,) = report["experiments"]
    assert not refusals
    assert {(row["roots"], len(row["runs"])) for row in part["rows"]} == {(roots, runs)}
    assert all(row["checked"] for row in part["rows"])


def test_what_a_first_search_makes_is_not_in_the_time_of_the_only_one():
    def run(root):
        time.sleep(0.4 * (not searched))
        searched.append(root)
        return levels

    A = load_graph("path:9", "cpu")
    levels, searched = algorithms.bfs_levels(A, 0), []
    tested = suite.Tested.of("a path", A, 4, 1).own(4, 0.2)
    clock = runs._Clock(None, "peer")
    found, _ = runs._timed(tested, clock, run, "levels", "a test", lambda *_: levels)
    assert not found.once
    assert max(sample.device_ms for sample in found.samples) < 200
    assert len(tested.roots) == len(found.samples) == 4


@pytest.mark.parametrize(("seconds", "left"), [(50, 50), (12, 12), (10, 3), (1, 1)])
def test_roots_that_there_is_no_time_for_are_left_out_by_quarters(seconds, left):
    tested = suite.Tested.of("a path", load_graph("path:60", "cpu"), 50, 1).own(50, float(seconds))
    slow = SimpleNamespace(slowest=lambda _: 1.0)  # seconds of each search
    first = [*tested.roots]
    assert [*tested.paced(slow)] == tested.roots == first[:left]


def test_all_variants_of_lagpu_have_the_roots_of_the_slowest(sim, monkeypatch):
    def paced(self, clock):
        kernel = runner.pop(0)
        if self.seconds is not None:
            del self.roots[{"a": 8, "b": 2}[kernel] :]
        yield from [*self.roots]

    runner = [*"abab"]
    monkeypatch.setattr(suite.Tested, "paced", paced)
    two = PUSHED, Variant("b", kernel="push_queue")
    experiment = replace(PAIR, graphs=(PATH,), variants=two, roots=9)
    report, _ = run_paper(ONE, [experiment], Request("sim", seconds=9.0))
    rows = report["experiments"][0]["rows"]
    assert [(row["roots"], len(row["runs"])) for row in rows] == [(2, 2)] * 2
    assert not runner


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_seconds_are_more_than_none(refused, seconds):
    err = refused("paper", "003", "-b", "cpu", "--quick", "--seconds", seconds)
    assert f"--seconds: {float(seconds):g}. Give more than 0" in err


def test_a_report_of_some_graphs_names_the_others(monkeypatch):
    kept = []
    graphs = (*PAIR.graphs, PaperGraph("q", "path:6"))
    claim = {"says": "Peak", "of": "lagpu", "least": 0.0, "paper": "-"}
    experiment = replace(PAIR, graphs=graphs, variants=PAIR.variants[-1:], claims=(claim,))
    keep = lambda report: kept.append(json.loads(json.dumps(report))["experiments"][0])  # noqa: E731
    run_paper(ONE, [experiment], Request("cpu"), keep=keep)
    one, two = kept
    assert "not run: q" in one["missing"]
    assert one["says"][0].startswith("Undecided: lagpu reaches")
    assert "Not measured: q." in one["says"][0]
    assert not any(text.startswith("not run") for text in two["missing"])
    assert "Not measured" not in two["says"][0]


@pytest.mark.parametrize("name", ["cpu", "sim"])
def test_a_graph_in_pieces_is_copied_to_the_host_from_one(sim, monkeypatch, name):
    """To gather and to sort the entries of all pieces takes minutes."""
    copied = []

    def of(A):
        copied.append(A.backend.name)
        return host_of(A)

    host_of = runs.HostGraph.of
    monkeypatch.setattr(runs.HostGraph, "of", of)
    split = [replace(PATH, name=pieces, pieces=pieces) for pieces in ("1x1", "1x2")]
    experiment = replace(PAIR, graphs=tuple(split), variants=PAIR.variants[-1:])
    report, refusals = run_paper(ONE, [experiment], Request(name))
    assert not refusals
    assert [row["backend"] for row in report["experiments"][0]["rows"]] == [
        f"grid:1x1:{name}", f"grid:1x2:{name}",
    ]  # fmt: skip
    assert copied == [name]


@pytest.mark.parametrize("seconds", [1e-9, 1e-2, 1e9])
def test_a_row_has_a_span_however_few_runs_it_has(sim, monkeypatch, seconds):
    """Kernels alone are timed in a first run that is the only one of its turn."""
    monkeypatch.setattr(runs, "_LONG", 1e15 if seconds == 1e-2 else 1)
    experiment = replace(PAIR, graphs=(PATH,), variants=PAIR.variants[:1], roots=9)
    report, _ = run_paper(ONE, [experiment], Request("sim", seconds=seconds))
    (row,) = report["experiments"][0]["rows"]
    assert row["kernel_ms"] > 0
    assert 0 < row["median_ms"] < 1e5
    json.dumps(report, allow_nan=False)
