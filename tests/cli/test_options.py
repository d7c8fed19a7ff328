"""Options that several commands share."""

import json

import pytest

from lagpu.cli.commands import placed
from lagpu.errors import InvalidValue


@pytest.mark.parametrize(
    ("given", "grid", "name"),
    [
        ("auto", None, "auto"),
        ("sim", None, "sim"),
        ("auto", "all", "grid"),
        ("auto", "all:cpu", "grid:cpu"),
        ("auto", "2", "grid:2"),
        ("gpu", "2", "grid:2:gpu"),
        ("cpu", "all", "grid:cpu"),
        ("auto", "2x3", "grid:2x3"),
        ("auto", "2x3:sim", "grid:2x3:sim"),
        ("auto", "3-random:cpu", "grid:3-random:cpu"),
        ("cpu", "all-degree", "grid-degree:cpu"),
        ("auto", "2x3-degree:sim", "grid:2x3-degree:sim"),
    ],
)
def test_a_grid_has_a_name(given, grid, name):
    assert placed(given, grid) == name


@pytest.mark.parametrize(
    "grid", ["", "0", "x", "2x", "2:", ":cpu", "02", "-1", "2,3", "all2", "2-size"]
)
def test_the_form_of_a_grid(grid):
    with pytest.raises(InvalidValue, match="is not all, 2, 2x3, 4-degree:cpu or the like"):
        placed("auto", grid)


@pytest.mark.parametrize(
    "command",
    [
        ["bfs", "kron:7", "--source", "1", "--check", "--json"],
        ["pagerank", "kron:7", "--check", "--json"],
    ],
)
def test_commands_take_a_grid(run, command):
    code, out, err = run(*command, "--grid", "3:cpu")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["backend"] == "grid:3:cpu"
    assert found["checked"] is True


def test_benchmarks_take_a_grid(run, tmp_path):
    file = tmp_path / "b.json"
    code, _, err = run("graph500", "--scale", 5, "--grid", "2:cpu", "--json", file)
    assert (code, err) == (0, "")
    assert json.loads(file.read_text("utf-8"))["fields"]["NBFS"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--grid", "2:cpu", "-b", "sim"], "names the backend of the pieces, and so does"),
        (["--grid", "two"], "is not all, 2, 2x3, 4-degree:cpu or the like"),
        (["--grid", "2:nothing"], "there is no 'grid:2:nothing'"),
    ],
)
def test_wrong_grids(run, words, message):
    code, out, err = run("bfs", "kron:5", "--source", "1", *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
