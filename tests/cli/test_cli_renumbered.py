"""``--renumber``: vertices are taken, shown, saved and proved by the ids of a file."""

import json

import numpy as np
import pytest

from lagpu.cli.commands import FILES
from lagpu.cli.graphs import Names
from lagpu.errors import FileFormatError
from lagpu.io import read
from lagpu.io.formats import suffixes

TEXT = "ann bob 2\nbob cid 1\nbob eve 3\neve zed 1\n"


@pytest.fixture
def file(save):
    return save(TEXT)


def found(run, *args):
    code, out, err = run(*args, "--renumber", "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_two_edges_with_large_ids(run, save):
    path = save("1000000000\t5\n5\t7\n")
    code, _, err = run("info", path)
    assert code == 2
    assert "vertex 1000000000 in line 1: needs" in err
    assert "--renumber" in err
    assert found(run, "info", path)["vertices"] == 3
    result = found(run, "bfs", path, "-s", 10**9, "-b", "cpu", "--check")
    assert (result["source"], result["reached"]) == (10**9, 3)


@pytest.mark.each_value
@pytest.mark.parametrize("suffix", ["csv", "txt", "npz"])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["bfs", "-s", "ann"], "--levels"),
        (["bfs", "-s", "ann", "--output", "parents"], "--parents"),
        (["bfs", "-s", "ann", "--output", "paths"], "--paths"),
        (["sssp", "-s", "ann"], "--distances"),
        (["components"], "--components"),
        (["pagerank"], "--pagerank"),
    ],
)
def test_saved_results_have_ids_and_are_proved(run, file, tmp_path, suffix, command, option):
    saved = tmp_path / f"a.{suffix}"
    name, *more = command
    result = run(name, file, *more, "-b", "cpu", "--renumber", "--check", "--save", saved)
    assert (result[0], result[2]) == (0, "")
    if suffix == "npz":
        with np.load(saved) as archive:
            assert "zed" in archive["indices"].tolist()
    else:
        assert "zed" in saved.read_text()
    start = more[:2]
    code, out, err = run("check", file, *start, "--renumber", option, saved)
    assert (code, err) == (0, "")
    assert "passed" in out
    if suffix == "txt" and start:
        wrong = saved.read_text().replace("zed", "cid", 1)
        saved.write_text(wrong)
        assert run("check", file, *start, "--renumber", option, saved)[0] in (1, 2)
        saved.write_text(wrong.replace("cid", "nobody"))
        code, _, err = run("check", file, *start, "--renumber", option, saved)
        assert code == 2
        assert "has no vertex 'nobody'" in err


def test_results_show_ids(run, file):
    assert found(run, "path", file, "-s", "ann", "-t", "zed", "-b", "cpu")["path"] == [
        *("ann", "bob", "eve", "zed"),
    ]
    ranked = found(run, "sssp", file, "-s", "ann", "-b", "cpu")
    assert ranked["source"] == "ann"
    assert ranked["farthest"][0] == ["zed", 6]
    ends = found(run, "diameter", file, "--pseudo", "-s", "bob", "-b", "cpu")
    assert {ends["begin"], ends["end"]} <= {"ann", "bob", "cid", "eve", "zed"}
    many = found(run, "bfs", file, "--sources", "ann,eve", "--each", "-b", "cpu")
    assert many["sources"] == ["ann", "eve"]
    some = found(run, "bc", file, "--sources", "ann,eve", "--targets", "zed", "-b", "cpu")
    assert (some["sources"], some["targets"]) == (["ann", "eve"], ["zed"])
    out = run("bfs", file, "-s", "ann", "--renumber", "-b", "cpu")[1]
    assert "from vertex ann" in out
    args = ["crosscheck", "sssp", file, "-s", "ann", "--renumber", "--backends", "cpu,sim"]
    assert run(*args)[0] == 0


def test_an_odd_cycle_is_of_ids(run, save):
    result = found(run, "bipartite", save("b a\na c\nc b\n"), "--undirected", "-b", "cpu")
    assert set(result["odd_cycle"]) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["bfs", "FILE", "-s", "who", "--renumber"], "--source: no line of the graph names 'who'"),
        (["bfs", "FILE", "--sources", "ann,who", "--renumber"], "--sources: no line of the graph"),
        (["bfs", "FILE", "-s", "ann"], "--source: 'ann' is no vertex. Give a number, or --renumb"),
        (["sssp", "FILE", "-s", "ann"], "--source: 'ann' is no vertex"),
        (["path", "FILE", "-s", "0", "-t", "x"], "--target: 'x' is no vertex"),
        (
            ["crosscheck", "bfs", "FILE", "-s", "ann", "--backends", "cpu,sim"],
            "--source: 'ann' is no vertex",
        ),
        (["info", "FILE"], "If they are names, give renumber=True, on the command line --renumber"),
        (["info", "NAMES", "--renumber"], "an edge. Write source,target above the first edge, or"),
        (["info", "path:3", "--renumber"], "--renumber: path:3 is made, not read from a file"),
        (["bfs", "FILE", "-s", "ann", "--renumber", "--step", "a.html"], "--step: shows vertices"),
        (
            ["bfs", "FILE", "--sources", "ann", "--each", "--renumber", "--save", "a.npz"],
            "--save: a matrix has no place for names",
        ),
        (["convert", "FILE", "a.mtx", "--ids", "a.txt"], "--ids: vertices have no ids"),
        (
            ["convert", "FILE", "a.xyz"],
            "write: a.xyz: use .mtx, .npz or .txt, or else .graphml, ",
        ),
    ],
)
def test_wrong_words(refused, file, save, args, message):
    names = save("a,b\nc,d\n", "names.csv") if "NAMES" in args else ""
    assert message in refused(*[{"FILE": file, "NAMES": names}.get(word, word) for word in args])


def test_ids_with_spaces_are_saved_where_they_have_a_place(run, save, tmp_path):
    path = save('source,target\n"New York",Rome\nRome,"a ""b"", c"\n')
    args = ["bfs", path, "-s", "New York", "--renumber", "-b", "cpu"]
    for suffix in ("csv", "npz"):
        saved = tmp_path / f"levels.{suffix}"
        assert run(*args, "--save", saved)[0] == 0
        code, out, _ = run("check", path, "-s", "New York", "--renumber", "--levels", saved)
        assert (code, "passed" in out) == (0, True)
    code, _, err = run(*args, "--save", tmp_path / "levels.txt")
    assert code == 2
    assert "has a space. Use .csv or .npz." in err


def test_convert(run, save, tmp_path):
    path = save("9 700\n700 5\n")
    out, ids = tmp_path / "a.graph", tmp_path / "ids.txt"
    code, text, err = run("convert", path, out, "--renumber", "--undirected", "--ids", ids)
    assert (code, err) == (0, "")
    assert "3 vertices, 4 entries" in text
    assert ids.read_text() == "0 5\n1 9\n2 700\n"
    assert out.read_text() == "3 2\n3\n3\n1 2\n"
    assert run("convert", out, tmp_path / "b.mtx")[0] == 0
    assert read(tmp_path / "b.mtx", backend="cpu").nvals == 4


def test_help_lists_the_suffixes_of_the_table():
    assert FILES.partition(";")[0] == ", ".join(suffixes())


def test_ids_of_a_file_that_are_not_there():
    names = Names(np.array([5, 7]))
    assert names.shown([0, 1]) == [5, 7]
    assert names.places(["7", "5"], "a").tolist() == [1, 0]
    with pytest.raises(FileFormatError, match="read: a: the graph has no vertex '6'"):
        names.places(["6"], "a")


def test_bench_measures_a_file_of_names(run, file, tmp_path):
    report = tmp_path / "b.json"
    args = ("bench", file, "-b", "cpu", "--roots", 2, "--json", report)
    assert run(*args)[0] == 2
    assert run(*args, "--renumber")[0] == 0
    (row,) = json.loads(report.read_text())["rows"]
    assert (row["vertices"], row["edges"], row["checked"]) == (5, 4, True)


@pytest.mark.ci
def test_bench_of_an_algorithm_measures_a_file_of_names(run, file):
    args = ("bench", file, "-b", "cpu", "--algorithm", "bfs_levels", "--repeats", 1, "--renumber")
    code, out, _ = run(*args)
    assert code == 0
    assert "bfs_levels" in out


@pytest.mark.parametrize("graphs", [(), ("kron5",), ("FILE", "kron:5")])
@pytest.mark.parametrize("more", [(), ("--algorithm", "bfs_levels")])
def test_bench_renumbers_files_alone(graphs, more, refused, file):
    args = [str(file) if graph == "FILE" else graph for graph in graphs]
    said = refused("bench", *args, "-b", "cpu", "--renumber", *more)
    assert "--renumber: " in said or "--algorithm needs a graph" in said
