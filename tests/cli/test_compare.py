"""``lagpu crosscheck``: what it prints, and its exit codes."""

import json

import numpy as np
import pytest
from faulty import with_loops, with_operations
from loop_names import GRID

from lagpu import algorithms, backends
from lagpu.cli.check import CROSSCHECKED, PROOFS, SEARCHES


@pytest.fixture
def faulty(monkeypatch):
    """Register a copy of sim whose assignments ignore their masks."""

    def unmasked(place, right, s):
        right(s._replace(desc=s.desc._replace(mask=None)))

    monkeypatch.setitem(backends._loaded, "faulty", with_operations(assign_scalar=unmasked))


@pytest.mark.parametrize(("output", "count"), [("levels", 11), ("parents", 11), ("paths", 12)])
def test_backends_that_agree(run, output, count):
    args = ["crosscheck", "bfs", "kron:7", "-s", 1, "--backends", "cpu,sim", "--output", output]
    code, out, err = run(*args)
    assert (code, err) == (0, "")
    assert f"on cpu and sim: {count} statements agree, loops of at most 5 iterations\n" in out
    assert "bfs.py" in out or "counting.py" in out


@pytest.mark.each_value
@pytest.mark.parametrize("backends", ["cpu,sim", "sim"])
@pytest.mark.parametrize(
    "algorithm",
    [
        *("sssp", "pagerank", "bc", "closeness", "components", "diameter", "bipartite", "cores"),
        *("independent", "path", "triangles"),
    ],
)
def test_every_command_has_its_crosscheck(run, algorithm, backends):
    more = ["--target", 7] if algorithm == "path" else []
    code, out, err = run("crosscheck", algorithm, "grid:4x5", "--backends", backends, *more)
    assert (code, err) == (0, "")
    assert "agree" in out


def test_topological_order(run, tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("0 1\n1 2\n0 2\n")
    code, out, err = run("crosscheck", "order", file, "--directed", "--backends", "cpu,sim")
    assert (code, err) == (0, "")
    assert "topological_levels on cpu and sim" in out


def test_json(run):
    args = ["crosscheck", "bfs", "path:5", "--backends", "cpu, sim", "--json"]
    code, out, err = run(*args)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["ok"], found["difference"], found["iterations"]) == (True, None, 5)
    assert found["backends"] == ["cpu", "sim"]
    assert [row["runs"] for row in found["rows"]] == [1, 5, 5]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_difference_ends_with_1(run, faulty, as_json):
    args = ["crosscheck", "bfs", "path:5", "--backends", "cpu,faulty", *["--json"] * as_json]
    code, out, err = run(*args)
    assert code == 1
    assert err.startswith("lagpu: crosscheck of bfs_levels: statement 2 (")
    assert "at 1 cpu has none, faulty 0" in err
    assert err.count("\n") == 1
    if as_json:
        found = json.loads(out)["difference"]
        assert (found["number"], found["level"], found["count"]) == (2, 0, 4)
        assert found["rows"][0] == [1, None, 0, ""]
    else:
        assert "written   levels(frontier.S) << depth" in out


def test_one_backend_fused_and_eager(run):
    code, out, err = run("crosscheck", "bfs", "grid:5x6", "--backends", "sim")
    assert (code, err) == (0, "")
    assert f"loop(until_empty=frontier): 1 x as one program on sim, {GRID}: exactly" in out


def test_a_wrong_parent_of_a_fused_loop_is_refused(run, monkeypatch):
    place = with_loops(lambda place, w: place.vector_set(w, 29, np.int32(29)))
    monkeypatch.setitem(backends._loaded, "faulty", place)
    args = ["crosscheck", "bfs", "grid:5x6", "--backends", "faulty", "--output", "parents"]
    code, out, err = run(*args)
    assert code == 1
    assert "29  any may choose one of 23, 28" in out

    ran = []

    def later(place, w):  # what crosscheck gives back is the oracle's; so another run is proved
        ran.append(w)
        if len(ran) > 1:
            place.vector_set(w, 29, np.int32(29))

    monkeypatch.setitem(backends._loaded, "faulty", with_loops(later))
    code, out, err = run(*args)
    assert (code, len(ran)) == (1, 2)
    assert "vertex 29: is its own parent" in err


def test_kernels_and_policies(run):
    args = ["crosscheck", "bfs", "grid:5x6", "--backends", "cpu,sim", "--kernel", "pull_warp"]
    assert run(*args)[0] == 0
    assert run(*args[:-2], "--policy", "beamer")[0] == 0


def test_what_both_get_wrong_is_refused(run, monkeypatch):
    right = algorithms.bfs_levels

    def wrong(A, source):
        levels = right(A, source)
        levels[source] = 1
        return levels

    monkeypatch.setattr(algorithms, "bfs_levels", wrong)
    code, _, err = run("crosscheck", "bfs", "path:5", "--backends", "cpu,sim")
    assert code == 1
    assert "check_levels: the source has level 0" in err


def test_every_algorithm_has_its_proof(run, monkeypatch):
    assert {*CROSSCHECKED.values(), *SEARCHES[""].values()} <= PROOFS.keys()
    right = algorithms.core_number

    def wrong(A):
        cores = right(A)
        cores[0] = 7
        return cores

    monkeypatch.setattr(algorithms, "core_number", wrong)
    code, out, err = run("crosscheck", "cores", "path:5", "--backends", "cpu,sim")
    assert (code, "agree" in out) == (1, True)
    assert "check_core_numbers: " in err


WRONG = {
    "algorithm": (["dfs", "path:3"], "there is no algorithm 'dfs'. Use bfs, path"),
    "output": (["sssp", "path:3", "--output", "paths"], "sssp has only one result"),
    "target": (["bfs", "path:3", "-t", "2"], "bfs does not take it"),
    "no target": (["path", "path:3"], "needs it"),
    "backend": (["bfs", "path:3", "--backends", "cpu,tpu"], "there is no 'tpu'"),
    "no backend": (["bfs", "path:3", "--backends", ","], "--backends: is empty"),
    "an empty name": (["bfs", "path:3", "--backends", "cpu,,sim"], "'cpu,,sim' has an empty name"),
    "itself": (["bfs", "path:3", "--backends", "cpu,sim,cpu"], "cpu is compared with itself"),
    "itself by two names": (["bfs", "path:3", "--backends", "auto,auto"], "with itself"),
    "a source": (["cores", "path:3", "-s", "1"], "--source: cores does not take it"),
    "one way": (["bfs", "path:3", "--backends", "cpu"], "Give two backends"),
    "source": (["bfs", "path:3", "-s", "3", "--backends", "cpu,sim"], "outside 0 .. 2"),
    "kernel": (["bfs", "path:3", "--backends", "cpu,sim", "--kernel", "x"], "push_edge"),
    "no kernels": (["bfs", "path:3", "--backends", "cpu", "--kernel", "x"], "none of cpu has"),
    "graph": (["bfs", "nograph", "--backends", "cpu,sim"], "there is no file nograph"),
}


@pytest.mark.parametrize(("args", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arguments(run, args, message):
    code, out, err = run("crosscheck", *args)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
