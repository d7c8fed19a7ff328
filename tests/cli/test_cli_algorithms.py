"""The commands of the further algorithms: what they print, save, prove and refuse."""

import json
import re
import sys

import numpy as np
import pytest
from browser import check_page
from samples import picked

from lagpu import algorithms
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.grid.pieces import Pieces
from lagpu.cli.check import WHOLE
from lagpu.generators import from_spec
from lagpu.io.files import read_vector
from lagpu.operations import Multiply

WEIGHTED = "# weighted\n0 1 1.5\n1 2 0.25\n0 2 9\n3 0 1\n"
ACYCLIC = "0 1\n1 2\n0 2\n3 0\n"

#: Command, its arguments after the graph, and what the JSON must say of kron:6.
COMMANDS = {
    "sssp": (["-s", 1], {"algorithm": "sssp", "source": 1}),
    "sssp delta": (["-s", 1, "--delta", 2], {"algorithm": "sssp"}),
    "sssp limit": (["-s", 1, "--limit", 2], {"algorithm": "sssp"}),
    "components": ([], {"algorithm": "connected_components"}),
    "components bfs": (["--method", "bfs"], {"algorithm": "connected_components"}),
    "components strong": (["--strong"], {"algorithm": "strongly_connected_components"}),
    "pagerank": (["--alpha", 0.5, "--no-weight"], {"algorithm": "pagerank"}),
    "bc": ([], {"algorithm": "betweenness_centrality", "sources": 64}),
    "bc some": (["-k", 3, "--sums", "--endpoints"], {"sources": 3, "at_once": 3}),
    "bc of sources": (["--sources", "5,1,9"], {"sources": [5, 1, 9], "at_once": 3}),
    "bc of targets": (
        ["--sources", "5,1", "--targets", "9,3"],
        {"sources": [5, 1], "targets": [9, 3], "at_once": 2},
    ),
    "bc weight": (["--weight"], {"sources": 64, "at_once": 1}),
    "bc in batches": (["--batch", 16], {"sources": 64, "at_once": 16}),
    "closeness": ([], {"algorithm": "closeness_centrality"}),
    "closeness weight": (["--weight"], {"algorithm": "closeness_centrality"}),
    "closeness harmonic": (["--harmonic"], {"algorithm": "harmonic_centrality"}),
    "diameter pseudo": (["--pseudo", "-s", 1], {"algorithm": "pseudo_diameter"}),
    "bipartite": ([], {"algorithm": "bipartite_sides", "bipartite": False}),
    "cores": ([], {"algorithm": "core_number"}),
    "independent": ([], {"algorithm": "maximal_independent_set"}),
    "triangles": ([], {"algorithm": "triangles"}),
    "triangles clustering": (["--clustering"], {"algorithm": "clustering"}),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_proves_what_it_prints(run, name):
    more, wanted = COMMANDS[name]
    args = [name.split()[0], "kron:6", *more, "-b", "cpu", "--check"]
    code, out, err = run(*args, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["checked"] is True
    assert (found["vertices"], found["backend"]) == (64, "cpu")
    assert found["ms"] >= 0
    assert found | wanted == found
    code, out, err = run(*args)
    assert (code, err) == (0, "")
    assert "passed" in out
    assert "385 undirected" in out


def test_facts(run, tmp_path):
    weighted, acyclic = tmp_path / "weighted.txt", tmp_path / "acyclic.txt"
    weighted.write_text(WEIGHTED)
    acyclic.write_text(ACYCLIC)

    def facts(*args):
        return json.loads(run(*args, "-b", "cpu", "--check", "--json")[1])

    assert facts("sssp", weighted, "-s", 3)["farthest"] == [[2, 2.75], [1, 2.5], [0, 1.0], [3, 0.0]]
    found = facts("order", acyclic)
    assert (found["levels"], found["widest_level"]) == (4, 1)
    found = facts("components", acyclic, "--strong")
    assert (found["components"], found["largest"], found["of_one_vertex"]) == (4, 1, 4)
    found = facts("components", "grid:3x4")
    assert (found["components"], found["largest"]) == (1, 12)
    assert facts("diameter", "grid:3x4")["diameter"] == 5
    found = facts("diameter", "path:5", "--pseudo", "--source", 2)
    assert (found["pseudo_diameter"], {found["begin"], found["end"]}) == (4, {0, 4})
    assert facts("path", "path:5", "-s", 4, "-t", 2)["path"] == [4, 3, 2]
    found = facts("path", weighted, "-s", 0, "-t", 2, "--weight")
    assert (found["length"], found["edges_of_path"], found["path"]) == (1.75, 2, [0, 1, 2])
    assert facts("path", weighted, "-s", 0, "-t", 2)["path"] == [0, 2]
    found = facts("bipartite", "grid:3x4")
    assert (found["bipartite"], found["side_0"], found["side_1"]) == (True, 6, 6)
    assert facts("bipartite", "cycle:3")["odd_cycle"] == [0, 1, 2]
    found = facts("cores", "complete:5")
    assert (found["largest_core"], found["vertices_in_it"]) == (4, 5)
    assert facts("independent", "complete:5")["members"] == 1
    found = facts("triangles", "complete:5")
    assert (found["triangles"], found["triangles_of_vertex"][0]) == (10, [0, 6])
    found = facts("triangles", "cycle:3", "--clustering")
    assert (found["mean"], found["clustering"][2]) == (1.0, [2, 1.0])
    assert facts("bc", "star:5")["betweenness"][0] == [0, 1.0]
    assert facts("bc", "star:5", "-k", 1)["betweenness"][0][1] is not None  # no NaN in JSON


def test_a_ranking_is_a_table(run):
    out = run("bc", "path:5", "-b", "cpu")[1]
    table = [line.split("│")[1:-1] for line in out.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row] for row in table[:2]] == [
        ["2", "0.666667"],
        ["1", "0.5"],
    ]
    assert "not requested (--check)" in out


@pytest.mark.parametrize("suffix", ["npz", "txt", "csv"])
def test_results_are_saved(run, tmp_path, suffix):
    file = tmp_path / f"cores.{suffix}"
    assert run("cores", "kron:6", "-b", "cpu", "--save", file)[0] == 0
    indices, values = read_vector(file)
    wanted = algorithms.core_number(from_spec("kron:6", backend="cpu"))
    assert np.array_equal(indices, wanted.to_coo()[0])
    assert np.array_equal(values, wanted.to_coo()[1])


def test_distances_of_a_graph_from_the_standard_input(run, tmp_path, monkeypatch):
    """It is read once; of an edge that is given twice the shorter length counts."""
    graph, file = tmp_path / "graph.txt", tmp_path / "distances.txt"
    graph.write_text("0 1 5\n0 1 2\n1 2 1\n")
    assert run("sssp", graph, "-s", 0, "-b", "cpu", "--save", file)[0] == 0
    with graph.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert run("check", "-", "-s", 0, "--distances", file)[0] == 0


@pytest.mark.parametrize("suffix", ["npz", "txt", "csv"])
def test_saved_distances_can_be_checked(run, tmp_path, suffix):
    graph, file = tmp_path / "graph.txt", tmp_path / f"distances.{suffix}"
    graph.write_text(WEIGHTED)
    assert run("sssp", graph, "-s", 3, "-b", "cpu", "--save", file)[0] == 0
    code, out, _ = run("check", graph, "-s", 3, "--distances", file)
    assert (code, out.splitlines()[0]) == (0, "distances: passed")
    code, out, err = run("check", graph, "-s", 0, "--distances", file)
    assert (code, out) == (1, "")
    assert err.startswith("lagpu: check_distances: the source has distance 0")


def test_an_estimate_has_its_standard_error(run):
    args = ["bc", "kron:6", "-b", "cpu", "--seed", 5, "--check"]
    found = json.loads(run(*args, "-k", 20, "--json")[1])
    A = from_spec("kron:6", seed=5, backend="cpu")
    centrality, error = algorithms.betweenness_estimate(A, 20, seed=5)
    for k, (vertex, value) in enumerate(found["betweenness"]):
        assert value == centrality.get(vertex)
        assert found["standard_error"][k] == [vertex, error.get(vertex)]
    out = run(*args, "-k", 20)[1]
    assert "standard error" in out
    assert f"{found['standard_error'][0][1]:.6g}" in out
    assert "standard_error" not in json.loads(run(*args, "-k", 1, "--json")[1])
    assert "standard_error" not in json.loads(run(*args, "--json")[1])


#: Option of `lagpu check`, and the command that saves such a result.
SAVED = {
    "components": ["components"],
    "strong": ["components", "--strong"],
    "cores": ["cores"],
    "independent": ["independent", "--seed", 3],
    "triangles": ["triangles"],
    "clustering": ["triangles", "--clustering"],
    "pagerank": ["pagerank"],
    "betweenness": ["bc"],
    "closeness": ["closeness"],
    "harmonic": ["closeness", "--harmonic"],
    "sides": ["bipartite"],
    "order": ["order"],
}


@pytest.mark.parametrize("command", [["bipartite"], ["run", "bipartite_sides"]])
def test_it_says_that_there_is_nothing_to_save(run, tmp_path, command):
    code, _, err = run(*command, "cycle:3", "-b", "cpu", "--save", tmp_path / "sides.txt")
    assert (code, err) == (0, "lagpu: --save: there is no result to write.\n")
    assert not (tmp_path / "sides.txt").exists()


def test_every_result_of_a_whole_graph_can_be_checked():
    assert SAVED.keys() == WHOLE.keys()


@pytest.mark.parametrize("option", SAVED)
def test_saved_results_can_be_checked(run, tmp_path, option):
    """As saved, and refused once the first value is another."""
    graph, file = tmp_path / "graph.txt", tmp_path / "result.txt"
    edges = {"order": ACYCLIC, "sides": "0 1\n1 0\n1 2\n2 1\n"}
    graph.write_text(edges.get(option, "0 1\n1 0\n1 2\n2 1\n0 2\n2 0\n2 3\n3 2\n"))
    command, *more = SAVED[option]
    assert run(command, graph, *more, "-b", "cpu", "--save", file)[0] == 0
    code, out, err = run("check", graph, f"--{option}", file)
    assert (code, err, out.splitlines()[0]) == (0, "", f"{option}: passed")
    found = json.loads(run("check", graph, f"--{option}", file, "--json")[1])
    assert found["checked"] is True
    assert list(found["rules"]) == [option]
    assert "reached" not in found
    first, *rest = file.read_text().splitlines()
    vertex, value = first.split()
    wrong = "0.2222" if option in ("clustering", "closeness", "harmonic") else f"{value}0"
    if option == "independent":  # values do not matter there: two neighbours do
        rest = [*rest, f"{(int(vertex) + 1) % 3} 1", f"{(int(vertex) + 2) % 3} 1"]
    elif float(value) == float(wrong):
        wrong = "3"
    file.write_text("\n".join([f"{vertex} {wrong}", *rest, ""]))
    code, out, err = run("check", graph, f"--{option}", file)
    assert (code, out) == (1, ""), err
    assert err.startswith("lagpu: check_")


@pytest.mark.parametrize("option", SAVED)
def test_saved_results_with_a_vertex_missing_are_refused(run, tmp_path, option):
    graph, file = tmp_path / "graph.txt", tmp_path / "result.txt"
    edges = {"order": ACYCLIC, "sides": "0 1\n1 0\n1 2\n2 1\n"}
    graph.write_text(edges.get(option, "0 1\n1 0\n1 2\n2 1\n0 2\n2 0\n2 3\n3 2\n"))
    command, *more = SAVED[option]
    assert run(command, graph, *more, "-b", "cpu", "--save", file)[0] == 0
    file.write_text("\n".join([*file.read_text().splitlines()[:-1], ""]))
    code, out, err = run("check", graph, f"--{option}", file)
    assert (code, out) == (1, ""), err
    assert err.startswith("lagpu: check_")


def test_several_results_at_once(run, tmp_path):
    files = {name: tmp_path / f"{name}.npz" for name in ("cores", "levels")}
    assert run("cores", "kron:6", "-b", "cpu", "--save", files["cores"])[0] == 0
    assert run("bfs", "kron:6", "-s", 1, "-b", "cpu", "--save", files["levels"])[0] == 0
    args = ["check", "kron:6", "--cores", files["cores"], "--levels", files["levels"]]
    found = json.loads(run(*args, "-s", 1, "--json")[1])
    assert (found["source"], found["reached"]) == (1, 62)
    assert sorted(found["rules"]) == ["cores", "levels"]
    assert run(*args)[0] == 2  # levels need a source


@pytest.mark.parametrize("more", [[], ["--each"], ["--each", "--output", "parents"]])
def test_saved_searches_from_several_can_be_checked(run, tmp_path, more):
    file = tmp_path / "result.npz"
    sources = ["--sources", "1,9,5"]
    assert run("bfs", "kron:6", *sources, *more, "-b", "cpu", "--save", file)[0] == 0
    option = "--parents" if "parents" in more else "--levels"
    args = ["check", "kron:6", option, file, *more[:1]]
    assert run(*args, *sources)[0] == 0
    code, out, err = run(*args, "--sources", "1,5,8")
    assert (code, out) == (1, "")
    assert "check_" in err
    if more:
        found = json.loads(run(*args, *sources, "--json")[1])
        assert (found["sources"], found["each"], found["reached"]) == ([1, 9, 5], True, 186)


def test_of_edges_given_twice_the_shortest_counts(run, tmp_path):
    graph, file = tmp_path / "graph.txt", tmp_path / "distances.txt"
    graph.write_text("0 1 5\n0 1 2\n1 2 1\n1 2 4\n")
    args = ["sssp", graph, "-s", 0, "-b", "cpu", "--check"]
    assert json.loads(run(*args, "--json")[1])["farthest"] == [[2, 3], [1, 2], [0, 0]]
    assert run(*args, "--save", file)[0] == 0
    assert run("check", graph, "--distances", file, "-s", 0)[0] == 0
    assert "shorter of two lengths counts" in run("sssp", "--help")[1]


def test_one_seed_one_answer(run):
    def found(*more):
        return json.loads(run("bc", "kron:6", "-k", 4, "-b", "cpu", "--json", *more)[1])

    assert found("--seed", 5)["betweenness"] == found("--seed", 5)["betweenness"]
    assert found("--seed", 5)["betweenness"] != found("--seed", 6)["betweenness"]


def test_a_wrong_result_is_refused_and_not_saved(run, tmp_path, monkeypatch):
    right = algorithms.core_number

    def wrong(A):
        found = right(A)
        found[0] = 9
        return found

    monkeypatch.setattr(algorithms, "core_number", wrong)
    saved = tmp_path / "cores.txt"
    args = ["cores", "path:3", "-b", "cpu", "--check", "--save", saved]
    code, out, err = run(*args, "--json")
    assert (code, json.loads(out)["checked"]) == (1, False)
    assert err.startswith("lagpu: check_core_numbers: ")
    assert not saved.exists()
    assert "FAILED" in run(*args)[1]


def test_a_wrong_pseudo_diameter_is_refused(run, monkeypatch):
    monkeypatch.setattr(algorithms, "pseudo_diameter", lambda A, source=0: (4, 0, 2))
    code, _, err = run("diameter", "path:3", "--pseudo", "-b", "cpu", "--check")
    assert (code, err) == (1, "lagpu: pseudo_diameter: 4, but the path has 2 edges.\n")


@pytest.mark.parametrize("more", [[], ["--grid", "2x2:cpu"], ["--grid", "4:cpu", "--pieces", 2]])
def test_betweenness_without_branches_and_on_a_grid(run, more):
    where = more or ["-b", "cpu"]
    found = json.loads(run("bc", "kron:6", *where, "--one-degree", "--check", "--json")[1])
    assert found["checked"] is True
    assert ("at_once" in found) is not bool(more)  # each sub-cluster has its own


def test_a_policy_reaches_each_product_of_betweenness(run, monkeypatch):
    """Whose sources are then taken one by one: a product of blocks has no kernel to choose."""
    chosen, real = [], GpuBackend.execute

    def execute(place, statement):
        if isinstance(statement.operation, Multiply):
            chosen.append(statement.operation.product.policy)
        real(place, statement)

    monkeypatch.setattr(GpuBackend, "execute", execute)
    args = ["bc", "grid:3x4", "-b", "sim", "--policy", "mgbc", "--check", "--json"]
    assert json.loads(run(*args)[1])["checked"] is True
    assert chosen.count("mgbc") > 12


def test_what_is_long_runs_once(run, monkeypatch):
    """A run that compiles kernels may be longer, and may be repeated."""
    monkeypatch.setattr("lagpu.cli.run._AGAIN_MS", 0.0)
    found = json.loads(run("cores", "path:3", "-b", "cpu", "--json")[1])
    assert found["warm"] is False
    assert "the first run" in run("cores", "path:3", "-b", "cpu")[1]
    assert json.loads(run("cores", "path:3", "-b", "sim", "--json")[1])["warm"] is True
    monkeypatch.setattr("lagpu.cli.run._AGAIN_COMPILED_MS", 0.0)
    assert json.loads(run("cores", "path:3", "-b", "sim", "--json")[1])["warm"] is False


def test_kernels_can_be_chosen(run):
    for more in (["--kernel", "pull_scalar"], ["--policy", "density"]):
        args = ["components", "grid:3x4", "-b", "sim", *more, "--check", "--json"]
        assert json.loads(run(*args)[1])["checked"] is True


def test_betweenness_takes_one_source_at_a_time_where_a_kernel_is_chosen(run):
    args = ["bc", "kron:6", "-b", "sim", "-k", "40", "--seed", "1", "--json"]
    assert json.loads(run(*args)[1])["at_once"] > 1
    assert json.loads(run(*args, "--policy", "mgbc", "--check")[1])["at_once"] == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["triangles", "--directed"], "Give the undirected one, with --undirected."),
        (["pagerank"], "Use --no-weight to ignore it."),
        (["diameter"], "connected component, or lagpu diameter --pseudo."),
        (["run", "eccentricity"], "connected component, or lagpu diameter --pseudo."),
    ],
)
def test_errors_name_options(refused, tmp_path, command, said):
    (tmp_path / "graph.txt").write_text("0 1 -1\n1 2 1\n3 2 1\n")
    assert said in refused(*command, tmp_path / "graph.txt", "-b", "cpu")


def test_too_many_paths_name_the_options_of_a_sample(refused, tmp_path):
    edges = ((3 * k, 3 * k + j, 3 * k + 3) for k in range(1025) for j in (1, 2))
    (tmp_path / "graph.txt").write_text("".join(f"{u} {v}\n{v} {w}\n" for u, v, w in edges))
    said = refused("bc", tmp_path / "graph.txt", "-b", "cpu", "--sources", "0")
    assert "Choose other sources with -k and --seed" in said


def test_list_names_all_algorithms(run):
    lines = json.loads(run("list", "--json")[1])
    assert list(lines) == algorithms.__all__
    assert all(line.endswith(".") and len(line) > 20 for line in lines.values())
    out = run("list")[1]
    assert all(name in out for name in lines)


WRONG = {
    "no source": (["sssp", "path:3"], "Missing option '--source'"),
    "source too large": (["sssp", "path:3", "-s", 3], "index 3 is outside 0 .. 2"),
    "delta is a word": (["sssp", "path:3", "-s", 0, "--delta", "x"], "--delta"),
    "negative limit": (["sssp", "path:3", "-s", 0, "--limit", -1], "limit -1.0 is not 0 or more"),
    "negative delta": (["sssp", "path:3", "-s", 0, "--delta", -1], "delta -1.0 is not above 0"),
    "unknown method": (["components", "path:3", "--method", "dfs"], "--method"),
    "alpha": (["pagerank", "path:3", "--alpha", 2], "alpha 2.0 is not a probability"),
    "iterations": (["pagerank", "path:3", "--max-iter", 1], "after 1 iterations"),
    "no batch": (["bc", "path:3", "--batch", 0], "--batch"),
    "pieces of no grid": (["bc", "path:3", "--pieces", 2], "cpu has no sub-clusters"),
    "pieces that do not divide": (
        ["bc", "path:3", "--grid", "3", "--pieces", 2],
        "cannot be shared by 2 of 3 pieces",
    ),
    "folded sources": (["bc", "path:3", "--one-degree", "-k", 1], "counts all pairs"),
    "sources and a sample": (["bc", "path:3", "-k", 1, "--sources", "0"], "Give it or sources"),
    "no such source": (["bc", "path:3", "--sources", "0,3"], "index 3 is outside"),
    "no such target": (["bc", "path:3", "--targets", "0,3"], "targets: index 3 is outside"),
    "targets and a sample": (["bc", "path:3", "-k", 1, "--targets", "0"], "Give sources, not k"),
    "no list of targets": (["bc", "path:3", "--targets", "x"], "--targets: 'x' is not a list"),
    "a sample by weights": (["bc", "path:3", "--weight", "-k", 1], "one by one"),
    "no sources": (["bc", "path:3", "-k", 0], "k 0 is not one of 1 .. 3"),
    "too many sources": (["bc", "path:3", "-k", 4], "k 4 is not one of 1 .. 3"),
    "negative seed": (["bc", "path:3", "-k", 1, "--seed", -1], "--seed"),
    "not connected": (["diameter", "kron:6"], "there is no path from"),
    "pseudo source": (["diameter", "path:3", "--pseudo", "-s", 9], "index 9"),
    "no target": (["path", "path:3", "-s", 0], "Missing option '--target'"),
    "target": (["path", "path:3", "-s", 0, "-t", -1], "target: index -1"),
    "no path": (["path", "kron:6", "-s", 0, "-t", 34], "there is no path from 0 to 34"),
    "cycle": (["order", "cycle:3"], "there is a cycle"),
    "unknown backend": (["cores", "path:3", "-b", "tpu"], "auto, cpu, gpu, sim"),
    "kernel on cpu": (["cores", "path:3", "-b", "cpu", "--kernel", "x"], "cpu backend"),
    "unknown kernel": (["cores", "path:3", "-b", "sim", "--kernel", "x"], "push_edge"),
    "unknown graph": (["bipartite", "nograph:5"], "there is no graph"),
    "missing file": (["independent", "missing.mtx"], "there is no file missing.mtx"),
    "pagerank does not end": (
        ["pagerank", "kron:6", "--max-iter", 1, "-b", "cpu"],
        "Allow more with --max-iter, or a larger --tol.",
    ),
    "iterations below 0": (["pagerank", "kron:6", "--max-iter=-1"], "--max-iter"),
    "unknown option": (["closeness", "path:3", "--blah"], "No such option"),
    "check without source": (
        ["check", "path:3", "--levels", "a.txt"],
        "give one of --source",
    ),
    "check each": (
        ["check", "path:3", "--each", "--cores", "a.txt"],
        "no given result is of a search",
    ),
    "check paths of several": (
        ["check", "path:3", "--sources", "0,1", "--paths", "a.txt"],
        "--paths: is for one source",
    ),
    "check distances of each": (
        ["check", "path:3", "--sources", "0,1", "--each", "--distances", "a.txt"],
        "--distances: is for one source",
    ),
    "saved as": (["cores", "path:3", "--save", "cores.bmp"], "cores.bmp"),
}


@pytest.mark.parametrize(("args", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arguments(refused, args, message):
    more = [] if "-b" in args or args[0] == "check" else ["-b", "cpu"]
    assert message in refused(*args, *more)


def test_triangles_of_a_directed_graph(run, refused, tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("0 1\n1 2\n0 2\n")
    assert "an edge has no reverse" in refused("triangles", file, "-b", "cpu")
    found = json.loads(run("triangles", file, "--undirected", "-b", "cpu", "--json")[1])
    assert found["triangles"] == 1


def test_negative_weights(refused, tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("0 1 1\n1 2 -3\n2 0 1\n")
    assert "the cycle" in refused("sssp", file, "-s", 0, "-b", "cpu")
    assert "a weight is -3" in refused("sssp", file, "-s", 0, "--delta", 1, "-b", "cpu")
    assert "a weight is -3" in refused("pagerank", file, "-b", "cpu")


STEPPED = (
    "sssp grid:3x3 -s 0",
    "pagerank complete:4",
    "bc path:3",
    "components path:4 --strong",
    "path grid:2x2 -s 0 -t 3",
    "bipartite cycle:3",
    "triangles complete:3",
)


@pytest.mark.parametrize("command", picked(STEPPED, STEPPED[0]))
def test_every_algorithm_can_be_stepped_through(run, tmp_path, command):
    file = tmp_path / "steps.html"
    code, out, err = run(*command.split(), "-b", "cpu", "--step", file)
    assert (code, err) == (0, "")
    assert out.endswith(f"--step: wrote {file}\n")
    page = file.read_text("utf-8")
    check_page(page)
    assert page.count('<section class="step"') > 1
    assert f"graph {command.split()[1]}, on cpu" in page
    assert not re.search(r" of (&lt;lambda&gt;|run)\b", page)  # the command's own names


def test_what_no_page_of_steps_has_room_for(refused, tmp_path):
    file = tmp_path / "steps.html"
    assert "65 > 64" in refused("cores", "path:65", "-b", "cpu", "--step", file)
    assert "does not end in .html" in refused("cores", "path:5", "-b", "cpu", "--step", "a.txt")
    assert not file.exists()


#: Commands whose proof looks at the edges where they are.
IN_PIECES = (
    "bfs kron:6 -s 1 --output levels",
    "bfs kron:6 -s 1 --output parents",
    "bfs kron:6 -s 1 --output paths",
    "bfs kron:6 --sources 1,2",
    "sssp kron:6 -s 1",
    "components kron:6",
    "pagerank kron:6",
    "path kron:6 -s 1 -t 2",
    "diameter kron:6 --pseudo -s 1",
    "bipartite grid:3x4",
    "bipartite kron:6",
    "independent kron:6",
)


@pytest.mark.parametrize("command", IN_PIECES)
def test_no_process_collects_the_graph_to_prove_a_result(run, command, monkeypatch):
    """Neither does the command itself; results are vectors."""

    def refuse(*_args, **_more):
        raise AssertionError("the graph is collected")

    collected = Pieces.collected
    monkeypatch.setattr(
        Pieces, "collected", lambda self, x: refuse() if len(x.shape) == 2 else collected(self, x)
    )
    code, out, err = run(*command.split(), "--grid", "2x3:cpu", "--check", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["checked"] is True
