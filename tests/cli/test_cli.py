"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import PATIENCE, spawn
from loop_names import GRID, loop_name

import lagpu
from lagpu import algorithms, check, io
from lagpu.algorithms import bfs_levels
from lagpu.backends.gpu.ops.planner import POLICIES
from lagpu.backends.gpu.ops.strategies import STRATEGIES

SHIPPED = Path(__file__).parents[2] / "examples" / "data" / "stdlib-imports.txt.gz"


# ----------------------------------------------------------------------------------- bfs


def test_bfs_shows_the_search(run):
    code, out, err = run("bfs", SHIPPED, "--source", 0, "--check", "--backend", "cpu")
    assert (code, err) == (0, "")
    for fact in ("628", "2,646 undirected", "613 (97.6%) from vertex 0", "passed", "MTEPS"):
        assert fact in out
    table = [line.split("│")[1:-1] for line in out.splitlines() if line.startswith("│")]
    assert [int(row[1]) for row in table] == [1, 20, 82, 314, 194, 2]


def test_bfs_json_agrees_with_the_library(run):
    code, out, err = run("bfs", "kron:8", "-s", 1, "--backend", "cpu", "--check", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    A = lagpu.Matrix.from_csc(*_kron8().to_csc(), nrows=256, backend="cpu")
    levels = bfs_levels(A, 1)
    report = check.check_levels(A, 1, levels)
    assert found["vertices"] == 256
    assert found["edges"] == A.nvals // 2
    assert found["edges_kind"] == "undirected"
    assert (found["reached"], found["depth"]) == (report.reached, report.depth)
    assert found["edges_traversed"] == report.edges
    assert found["mteps"] == pytest.approx(report.edges / found["ms"] / 1e3)
    assert (found["backend"], found["checked"]) == ("cpu", True)
    frontiers = np.bincount(levels.to_coo()[1]).tolist()
    assert [level["frontier"] for level in found["levels"]] == frontiers
    assert found["versions"]["lagpu"] == lagpu.__version__


def _kron8():
    from lagpu.generators import from_spec

    return from_spec("kron:8", backend="cpu")


@pytest.mark.parametrize("output", ["levels", "parents", "paths"])
@pytest.mark.parametrize("suffix", ["npz", "txt", "csv"])
def test_saved_results_can_be_checked(run, tmp_path, output, suffix):
    file = tmp_path / f"result.{suffix}"
    args = ["kron:8", "--source", 3]
    assert run("bfs", *args, "--output", output, "--save", file, "-b", "cpu")[0] == 0
    code, out, _ = run("check", *args, f"--{output}", file)
    assert code == 0
    assert f"{output}: passed" in out
    wrong = run("check", "kron:8", "--source", 4, f"--{output}", file)
    assert wrong[0] == 1
    assert wrong[1] == ""
    assert f"lagpu: check_{output}: " in wrong[2]


@pytest.mark.each_value
@pytest.mark.parametrize("place", ["cpu", "sim"])
@pytest.mark.parametrize("output", ["levels", "parents"])
def test_a_search_from_each_of_several_vertices(run, tmp_path, place, output):
    """The table, the JSON and the saved matrix are of as many searches."""
    file = tmp_path / "result.npz"
    args = ["kron:6", "-b", place, "--check", "--save", file]
    more = ["--output", output, "--sources", "5,1,63", "--each"]
    found = json.loads(run("bfs", *args, *more, "--json")[1])
    A = lagpu.generators.from_spec("kron:6", backend="cpu")
    levels = [check.check_levels(A, s, bfs_levels(A, s)) for s in (5, 1, 63)]
    assert (found["sources"], found["each"], found["checked"]) == ([5, 1, 63], True, True)
    assert found["reached"] == sum(one.reached for one in levels)
    assert found["edges_traversed"] == sum(one.edges for one in levels)
    assert found["depth"] == max(one.depth for one in levels)
    assert found["levels"][0]["frontier"] == 3
    assert sum(level["frontier"] for level in found["levels"]) == found["reached"]
    saved = lagpu.io.read(file, backend="cpu")
    assert (saved.shape, saved.nvals) == ((3, 64), found["reached"])
    out = run("bfs", *args, *more)[1]
    assert f"from each of 3 vertices\n   depth  {found['depth']}" in out
    assert "check  passed" in out


def test_a_search_whose_kernel_keeps_no_log(run, tmp_path):
    """One row for all levels; the depth is that of the search all the same."""
    file = tmp_path / "trace.json"
    args = ["path:9", "-b", "sim", "--check", "--trace", file]
    more = ["--output", "parents", "--sources", "3,1", "--each"]
    found = json.loads(run("bfs", *args, *more, "--json")[1])
    assert (found["depth"], found["reached"], found["checked"]) == (7, 18, True)
    (level,) = found["levels"]
    assert (level["level"], level["frontier"], level["edges"]) == (None, None, None)
    assert level["kernel"] == "fused"
    assert [row["level"] for row in json.loads(file.read_text())["rows"]] == [None, None]
    out = run("bfs", *args, *more)[1]
    assert " all " in out
    assert "which keeps no log" in " ".join(out.split())


def test_a_search_from_the_nearest_of_several_vertices(run, tmp_path):
    file = tmp_path / "levels.txt"
    args = ["bfs", "path:9", "-b", "cpu", "--sources", "0,6", "--check", "--save", file]
    found = json.loads(run(*args, "--json")[1])
    assert (found["sources"], found["each"], found["checked"]) == ([0, 6], False, True)
    assert (found["reached"], found["depth"]) == (9, 3)
    assert file.read_text().split("\n")[3] == "3 3"
    assert "9 (100.0%) from the nearest of 2 vertices" in run(*args)[1]


def test_a_wrong_row_is_refused(run, tmp_path, monkeypatch):
    right = algorithms.bfs_levels_multi
    monkeypatch.setattr(algorithms, "bfs_levels_multi", lambda A, sources: right(A, sources[::-1]))
    code, out, err = run("bfs", "path:3", "-b", "cpu", "--sources", "0,2", "--each", "--check")
    assert (code, "FAILED" in out) == (1, True)
    assert err.startswith("lagpu: check_levels_multi: row 0, source 0: check_levels: the source")


def test_unasked_check_is_null(run):
    found = json.loads(run("bfs", "path:3", "-s", 0, "-b", "cpu", "--json")[1])
    assert found["checked"] is None
    assert found["edges"] == 2


def test_a_wrong_result_is_refused_and_not_saved(run, tmp_path, monkeypatch):
    def wrong(A, source):
        levels = bfs_levels(A, source)
        levels[source] = 1
        return levels

    monkeypatch.setattr(algorithms, "bfs_levels", wrong)
    saved = tmp_path / "levels.txt"
    args = ["bfs", "path:3", "-s", 0, "-b", "cpu", "--check", "--save", saved]
    code, out, err = run(*args, "--json")
    assert code == 1
    assert json.loads(out)["checked"] is False
    assert err.startswith("lagpu: check_levels: the source has level 0")
    assert not saved.exists()
    assert "FAILED" in run(*args)[1]


@pytest.mark.parametrize("kernel", STRATEGIES)
def test_kernels_can_be_chosen(run, kernel):
    args = ["bfs", "grid:5x7", "-s", 3, "-b", "sim", "--kernel", kernel, "--check", "--json"]
    found = json.loads(run(*args)[1])
    assert {level["kernel"] for level in found["levels"]} == {kernel}
    assert found["checked"] is True
    assert found["reached"] == 35


def test_a_system_of_a_grid_shows_the_phases_of_each_level(run):
    args = ["bfs", "grid:5x7", "-s", 3, "--grid", "2x2:cpu", "--policy", "bfs2d:ratio=0.3"]
    code, out, _ = run(*args, "--output", "parents", "--check")
    assert code == 0
    for word in ("expand", "share", "expansion", "fold", "update", "bitmap"):
        assert f" {word} " in out
    levels = json.loads(run(*args, "--check", "--json")[1])["levels"]
    assert [level["level"] for level in levels] == list(range(len(levels)))
    expand = levels[0]["phases"][0]
    assert expand["name"] == "expand"
    assert expand["sent"] == [{"form": "bitmap", "messages": 1, "bytes": 2}]
    plain = json.loads(run(*args[:-2], "--json")[1])["levels"]
    assert plain[0]["phases"][0]["sent"] == expand["sent"]


def test_a_search_of_pieces_shows_each_piece(run):
    args = ["bfs", "grid:5x7", "-s", 3, "--grid", "2:sim"]
    out = run(*args)[1]
    for words in ("piece 0", "piece 1", "ms of this process, by piece"):
        assert words in " ".join(out.split())
    levels = json.loads(run(*args, "--json")[1])["levels"]
    assert [level["level"] for level in levels] == list(range(len(levels)))
    sent = [sent for phase in levels[0]["phases"] for sent in phase["sent"]]
    assert sum(x["bytes"] for x in sent) == 4 * levels[1]["frontier"]


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_can_be_chosen(run, policy):
    args = ["bfs", "grid:5x7", "-s", 3, "-b", "sim", "--policy", policy, "--check", "--json"]
    found = json.loads(run(*args)[1])
    assert found["checked"] is True
    assert found["reached"] == 35


def test_directed_edges_count_as_entries(run, tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("0 1\n1 2\n2 2\n0 3\n")
    args = ["bfs", file, "-s", 1, "-b", "cpu", "--check", "--json"]
    found = json.loads(run(*args)[1])
    assert (found["edges"], found["edges_kind"], found["reached"]) == (4, "directed", 2)
    assert found["edges_traversed"] == 2  # 1 -> 2 and the loop at 2
    both = json.loads(run(*args, "--undirected")[1])
    assert (both["edges"], both["edges_kind"], both["reached"]) == (4, "undirected", 4)
    assert both["edges_traversed"] == 4


def test_long_tables_are_folded(run):
    out = run("bfs", "path:100", "-s", 0, "-b", "cpu")[1]
    assert "68 more" in out
    rows = [line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│")]
    assert rows == [*map(str, range(24)), "68 more", *map(str, range(92, 100))]


# -------------------------------------------------------------------------- other commands


@pytest.mark.parametrize("grid", ["3:cpu", "2x2-degree:cpu", "2:sim"])
def test_info_of_pieces(run, grid):
    """The facts of the graph are those of one piece; then what each piece has."""
    found = json.loads(run("info", "kron:7", "--grid", grid, "--json")[1])
    pieces = found.pop("pieces")
    assert found == json.loads(run("info", "kron:7", "--json")[1])
    assert len(pieces) == int(grid[0]) * (2 if "x" in grid else 1)
    assert sum(piece["entries"] for piece in pieces) == found["entries"]
    assert all(piece["csc_bytes"] > 4 * piece["entries"] for piece in pieces)
    most = max(piece["entries"] for piece in pieces)
    lines = run("info", "kron:7", "--grid", grid)[1].splitlines()
    assert lines[:-1] == run("info", "kron:7")[1].splitlines()
    assert lines[-1].startswith(f"    pieces  {len(pieces)} of grid:{grid}, ")
    assert f"each with at most {most:,} entries, " in lines[-1]


def test_info(run, tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("# Nodes: 6\n0 1\n1 0\n1 2\n2 1\n2 2\n4 4\n")
    found = json.loads(run("info", file, "--json")[1])
    wanted = {
        "vertices": 6,
        "edges": 4,
        "edges_kind": "undirected",
        "entries": 6,
        "symmetric": True,
        "self_loops": 2,
        "isolated": 3,  # 3 and 5, and 4, whose only edge is to itself
        "degree_min": 0,
        "degree_mean": 1.0,
        "degree_max": 2,
        "csc_bytes": 4 * 6 + 4 * 7,
    }
    assert {name: found[name] for name in wanted} == wanted
    text = run("info", file)[1]
    assert "4 undirected" in text
    assert "2" in text


@pytest.mark.parametrize(
    ("directed", "orientation"), [(True, "auto"), (False, "auto"), (True, "csc")]
)
def test_info_says_what_a_search_will_hold(run, tmp_path, directed, orientation):
    """A hub with chunks of its own, and chains; what is there when a search has ended."""
    file = tmp_path / "hub.txt"
    ends = [(0, v) for v in range(1, 1000)] + [(v, v + 1) for v in range(1, 1500)]
    file.write_text("".join(f"{u} {v}\n" for u, v in ends))
    how = "--directed" if directed else "--undirected"
    reported = json.loads(run("info", file, how, "--json")[1])
    A = io.read(file, directed=directed, backend="sim")
    A.orientation = orientation
    levels = algorithms.bfs_levels(A, 0).data
    assert loop_name(A.backend) == GRID
    store = A.data.store
    forms = [store] if store.csr is None else [store, store.csr]
    assert len(forms) == 1 + (directed and orientation == "auto")
    cache = sum(space.nbytes for form in forms for space in form.cache.values())
    held = sum(form.nbytes for form in forms) + cache + levels.values.nbytes + levels.words.nbytes
    assert reported["bfs_bytes_csc" if orientation == "csc" else "bfs_bytes"] == held
    assert ("--orientation csc" in run("info", file, how)[1]) == directed


def test_a_directed_graph_in_one_form(run, tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("".join(f"{v} {v + 1}\n0 {v}\n" for v in range(2, 60)) + "0 1\n")
    args = ["-b", "sim", "--directed", "--orientation", "csc", "--check", "--json"]
    found = json.loads(run("bfs", file, "-s", 0, *args)[1])
    assert found["checked"] is True
    assert {level["direction"] for level in found["levels"]} == {"pull"}
    found = json.loads(run("components", file, *args)[1])
    assert found["checked"] is True
    code, _, err = run("bfs", file, "-s", 0, "--orientation", "rows")
    assert (code, "auto" in err, "csc" in err) == (2, True, True)


def test_generate(run, tmp_path):
    file = tmp_path / "graph.mtx.gz"
    code, out, err = run("generate", "mycielskian:5", file)
    assert (code, err) == (0, "")
    assert "23 vertices, 142 entries" in out
    assert io.read(file, backend="cpu").nvals == 142
    other = tmp_path / "other.npz"
    run("generate", "kron:6", other, "--seed", 7)
    run("generate", "kron:6", file, "--seed", 8)
    assert not io.read(file, backend="cpu").isequal(io.read(other, backend="cpu"))


def test_backends_and_version(run):
    found = json.loads(run("backends", "--json")[1])
    assert found["cpu"] == "yes"
    assert set(found) >= {"cpu", "gpu", "sim"}
    assert run("--version")[1] == f"lagpu {lagpu.__version__}\n"


@pytest.mark.parametrize("args", [[], ["--help"], ["bfs", "--help"], ["selftest", "--help"]])
def test_help(run, args):
    code, out, err = run(*args)
    assert (code, err) == (0, "")
    assert "Usage: lagpu" in out


def test_help_and_import_load_nothing_heavy():
    code = (
        "import sys; from lagpu.cli import main; main(['bfs', '--help']); "
        "print({'cupy', 'graphblas', 'numba', 'networkx'} & sys.modules.keys(), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "set()\n")


# --------------------------------------------------------------------------- the process itself


def test_interrupt_is_one_line(tmp_path):
    pipe = tmp_path / "graph.txt"
    os.mkfifo(pipe)
    process = spawn("info", pipe)
    writer = _writer(pipe)  # which never writes, so the reader waits
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    os.close(writer)
    assert (process.returncode, out) == (130, "")
    assert err == "lagpu: interrupted.\n"


def _writer(pipe: Path) -> int:
    """Open a pipe for writing, once somebody reads it."""
    for _ in range(10 * PATIENCE):
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # no server yet
            time.sleep(0.1)
    raise TimeoutError


def test_a_closed_pipe_is_quiet():
    read, write = os.pipe()
    os.close(read)  # before it begins: nothing may fit into the pipe
    process = spawn("bfs", "path:3", "-s", 0, "-b", "cpu", stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (141, "")


def test_a_full_disk_is_reported_in_one_line():
    for args in (["list"], ["bfs", "path:3", "-s", 0, "-b", "cpu", "--json"]):
        with Path("/dev/full").open("w") as full:
            process = spawn(*args, stdout=full)
            _, err = process.communicate(timeout=PATIENCE)
        said = "lagpu: the system reports: [Errno 28] No space left on device.\n"
        assert (process.returncode, err) == (2, said)


@pytest.mark.parametrize(("closed", "ends"), [("<&-", 2), (">&-", 0)])
def test_a_closed_stream(closed, ends):
    command = f"{shlex.quote(sys.executable)} -m lagpu info {'-' if ends else 'path:3'} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    said = "lagpu: read: - is empty.\n" if ends else ""
    assert (done.returncode, done.stdout, done.stderr) == (ends, "", said)
