"""What the command line refuses, in one line and with exit code 2, and what it leaves then."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zipfile
from pathlib import Path

import pytest
from command import spawn

import lagpu
from lagpu.cli import run as run_module

WRONG_ARGUMENTS = {
    "no source": (["bfs", "path:3"], "give one of --source 0 and --sources 0,5,9"),
    "two kinds of sources": (["bfs", "path:3", "-s", 0, "--sources", "1"], "give one of --source"),
    "each of one": (["bfs", "path:3", "-s", 0, "--each"], "--each: needs --sources"),
    "sources are words": (["bfs", "path:3", "--sources", "0,x"], "'0,x' is not a list of vertices"),
    "no sources": (["bfs", "path:3", "--sources", ""], "'' is not a list of vertices"),
    "a source twice": (["bfs", "path:3", "--sources", "0,0", "--each"], "0 is given twice"),
    "one of the sources too large": (["bfs", "path:3", "--sources", "0,3"], "index 3 is outside"),
    "parents of several": (
        ["bfs", "path:3", "--sources", "0,1", "--output", "parents"],
        "use levels, or add --each for parents",
    ),
    "paths of each": (
        ["bfs", "path:3", "--sources", "0,1", "--each", "--output", "paths"],
        "levels or parents with --each",
    ),
    "steps of several": (
        ["bfs", "path:3", "--sources", "0,1", "--step", "a.html"],
        "--step: shows",
    ),
    "steps and rows in one file": (
        ["bfs", "path:3", "-s", "0", "--step", "a.html", "--trace", "./a.html"],
        "--step: a.html is also the file of --trace. Give another",
    ),
    "a matrix as csv": (
        ["bfs", "path:3", "--sources", "0,1", "--each", "--save", "a.csv"],
        "a.csv cannot have a row for each source",
    ),
    "source is a word": (["bfs", "path:3", "-s", "x"], "--source"),
    "source is a fraction": (["bfs", "path:3", "-s", "1.5"], "--source"),
    "negative source": (["bfs", "path:3", "-s", "-1"], "index -1 is outside 0 .. 2"),
    "source too large": (["bfs", "path:3", "-s", "3"], "index 3 is outside 0 .. 2"),
    "unknown option": (["bfs", "path:3", "-s", "0", "--blah"], "No such option"),
    "unknown command": (["blah"], "No such command"),
    "unknown output": (["bfs", "path:3", "-s", "0", "--output", "x"], "--output"),
    "unknown backend": (["bfs", "path:3", "-s", "0", "-b", "tpu"], "auto, cpu, gpu, sim"),
    "unknown kernel": (["bfs", "path:3", "-s", "0", "-b", "sim", "--kernel", "x"], "push_edge"),
    "unknown policy": (["bfs", "path:3", "-s", "0", "-b", "sim", "--policy", "x"], "density"),
    "kernel on cpu": (["bfs", "path:3", "-s", "0", "-b", "cpu", "--kernel", "x"], "cpu backend"),
    "kernel and policy": (
        ["bfs", "path:3", "-s", "0", "-b", "sim", "--kernel", "push_edge", "--policy", "auto"],
        "Give one of the two",
    ),
    "kernel of many searches": (
        ["bfs", "path:3", "--sources", "0,1", "--each", "-b", "sim", "--kernel", "push_edge"],
        "--kernel: a product of matrices has no kernels",
    ),
    "policy of triangles": (
        ["triangles", "path:3", "-b", "sim", "--policy", "auto"],
        "--policy: a product of matrices has no kernels",
    ),
    "save in no folder": (
        ["bfs", "kron:60", "-s", "0", "--save", "none/a.npz"],
        "--save: there is no folder none",
    ),
    "save of another kind": (["cores", "kron:60", "--save", "a.bmp"], "--save: a.bmp does not end"),
    "unknown graph": (["bfs", "nograph:5", "-s", "0"], "there is no graph"),
    "numbers of a graph": (["info", "grid:5"], "grid:RxC"),
    "negative seed": (["info", "kron:4", "--seed", "-1"], "--seed"),
    "missing file": (["bfs", "missing.mtx", "-s", "0"], "there is no file missing.mtx"),
    "nothing to check": (
        ["check", "path:3", "-s", "0"],
        "--levels, --parents, --paths, --distances, --components,",
    ),
    "missing result": (["check", "path:3", "-s", "0", "--levels", "missing"], "there is no file"),
    "huge graph": (["bfs", "kron:40", "-s", "0"], "needs"),
    "huge graph in a file": (["generate", "kron:40", "never.npz"], "GB free"),
}


@pytest.mark.parametrize(("args", "message"), WRONG_ARGUMENTS.values(), ids=WRONG_ARGUMENTS)
def test_wrong_arguments(refused, args, message):
    assert message in refused(*args)
    assert not Path("never.npz").exists()


def zipped(name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr(name, b"")
    return file.getvalue()


WRONG_FILES = {
    "empty": (b"", "is empty"),
    "binary": (bytes(range(256)), "is binary"),
    "truncated": (gzip.compress(b"0 1\n" * 99, mtime=0)[:-9], "truncated"),
    "not edges": (b"0 1\n1 banana\n", "line 2"),
    "lying header": (b"%%MatrixMarket matrix coordinate pattern general\n3 3 5\n1 1\n", "5"),
    "outside": (
        b"%%MatrixMarket matrix coordinate pattern general\n3 3 1\n4 1\n",
        "is outside 3 x 3",
    ),
    "zip": (zipped("A/A.mtx"), "graph (A.mtx) is empty"),
    "not square": (b"%%MatrixMarket matrix coordinate pattern general\n3 4 1\n1 1\n", "square"),
}


@pytest.mark.parametrize(("content", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
@pytest.mark.parametrize("command", ["bfs", "info", "check"])
def test_wrong_files(refused, tmp_path, command, content, message):
    file = tmp_path / "graph"
    file.write_bytes(content)
    more = {
        "bfs": ["-s", 0, "-b", "cpu"],
        "info": [],
        "check": ["-s", 0, "--levels", file],
    }[command]
    assert message in refused(command, file, *more)


WRONG_RESULTS = {
    "levels.txt": (b"0 0\n1 x\n", "line 2 is not an index and a value"),
    "three.txt": (b"0 0 0\n", "line 1"),
    "empty.txt": (b"# nothing\n", "has no entry"),
    "large.txt": (b"0 0\n99999999999999999999 1\n", "64 bits"),
    "outside.txt": (b"0 0\n7 1\n", "outside"),
    "text.npz": (b"0 0\n", "no arrays"),
    "cut.npz": (b"PK\x03\x04", "no arrays"),
}


@pytest.mark.parametrize("name", WRONG_RESULTS)
def test_wrong_results(refused, tmp_path, name):
    content, message = WRONG_RESULTS[name]
    (tmp_path / name).write_bytes(content)
    assert message in refused("check", "path:3", "-s", 0, "--levels", tmp_path / name)


@pytest.mark.parametrize("name", ["levels.bmp", "no/folder/levels.txt"])
def test_nothing_half_written(refused, tmp_path, name):
    refused("bfs", "path:3", "-s", 0, "-b", "cpu", "--json", "--save", tmp_path / name)
    refused("generate", "path:3", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_where_a_graph_cannot_be_written_none_is_made(refused, monkeypatch, tmp_path):
    monkeypatch.setattr("lagpu.generators.from_spec", None)
    for name in ("graph.bmp", "graph.npz.gz", "no/folder/graph.mtx", "."):
        refused("generate", "path:3", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_report_without_a_folder_is_refused_at_once(refused, monkeypatch, tmp_path):
    monkeypatch.setattr("lagpu.selftest.run", None)
    refused("selftest", "-b", "cpu", "--json", tmp_path / "no" / "report.json")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_gpu_names_the_package(refused, monkeypatch):
    from lagpu import backends

    monkeypatch.setattr(backends, "_loaded", {})
    monkeypatch.setitem(sys.modules, "cupy", None)  # importing it fails
    message = refused("bfs", "path:3", "-s", 0, "--backend", "gpu")
    assert 'pip install "lagpu[gpu]"' in message
    assert "CuPy is missing" in message


def test_a_missing_compiler_says_what_to_install():
    environment = os.environ | {"CXX": "no-such-compiler"}
    process = spawn("bfs", "path:3", "-s", 0, "--backend", "sim", env=environment)
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert "no-such-compiler" in err
    assert "apt install g++" in err
    assert err.count("\n") == 1


def test_debug_shows_where(run):
    for args in (["--debug", "info", "missing"], ["info", "missing", "--debug"]):
        with pytest.raises(lagpu.errors.FileMissing):
            run(*args)


def test_allocations_that_fail_are_one_line(refused, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(run_module, "load", lambda *_, **__: fail())
    assert "out of memory" in refused("bfs", "path:3", "-s", 0, "-b", "cpu")
