"""What the README says is so: its commands, its Python, its numbers."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
from samples import picked

import lagpu
from lagpu.cli import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", picked(range(len(blocks("python"))), 1))
def test_python_blocks_run(number):
    block = blocks("python")[number]
    done = subprocess.run(
        [sys.executable, "-c", block],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(Path(lagpu.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    printed = re.findall(r"print\(.*\)  # (.*)$", block, re.MULTILINE)
    assert done.stdout.split("\n")[:-1] == printed


def test_the_first_loop_runs_as_one_kernel_as_it_is_pasted(tmp_path, monkeypatch):
    block = next(block for block in blocks("python") if "loop(" in block)
    program = tmp_path / "pasted.py"
    program.write_text(block, "utf-8")
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {"__name__": "pasted"}
    with lagpu.use("sim") as sim:
        exec(compile(block, str(program), "exec"), names)
    assert sim.last_loop.startswith("grid search")
    levels = names["levels"]
    assert isinstance(levels, lagpu.Vector)
    assert names["depth"] == levels.reduce("max").value


def test_there_is_a_short_algorithm_to_write():
    (components,) = [block for block in blocks("python") if "components" in block]
    assert len([line for line in components.splitlines() if line]) <= 10


def test_the_first_two_commands_are_one_line_each():
    bfs, tests = blocks("sh")[:2]
    for command in (bfs, tests):
        assert command.count("\n") == 1
        assert command.startswith("python3 -m venv .venv && ")
    last = shlex.split(bfs.rpartition("&&")[2])
    assert last[:2] == [".venv/bin/lagpu", "bfs"]
    assert "--check" in last
    assert (ROOT / last[2]).is_file()
    assert shlex.split(tests.rpartition("&&")[2])[0] == ".venv/bin/pytest"
    for group in re.findall(r"--group (\w+)", tests):
        assert group in PROJECT["dependency-groups"]


def test_the_search_it_begins_with_passes(capsys):
    from lagpu.cli import main

    command = shlex.split(blocks("sh")[0].rpartition("&&")[2])[1:]
    command[1] = str(ROOT / command[1])
    assert main(command) == 0
    assert "passed" in capsys.readouterr().out


def test_commands_exist():
    named = set(re.findall(r"(?:`|/bin/)lagpu (\w+)", README))
    known = set(typer.main.get_command(app).commands)
    assert named == known


def test_versions_agree():
    version = PROJECT["project"]["version"]
    assert lagpu.__version__ == version
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## \[(.*?)\]", changelog, re.MULTILINE)[1] == version
    least = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert f"Python >= {least}" in README


SAID = r'pip install (?:-\w )?"?(lagpu|\.)\[(\w+)\]'


def test_extras_exist():
    sources = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "lagpu").rglob("*.py")]
    for file in (ROOT / "README.md", *sources):
        for _, extra in re.findall(SAID, file.read_text("utf-8")):
            assert extra in PROJECT["project"]["optional-dependencies"], file
    for extra in re.findall(r'"\.\[(\w+)\]"', README):
        assert extra in PROJECT["project"]["optional-dependencies"]


def test_pages_install_from_a_clone():
    """No index has lagpu: only where it is installed does ``lagpu[...]`` install anything."""
    for page in (ROOT / "docs").rglob("*.md"):
        assert {place for place, _ in re.findall(SAID, page.read_text("utf-8"))} <= {"."}, page


def test_its_first_screen_shows_code_and_a_picture_and_leads_on():
    assert len(README.encode()) <= 9000
    screen = "\n".join(README.splitlines()[:38])
    words = ("loop(", "](docs/_static/", "docs/course/01", "docs/index.md", "sphinx-build")
    for word in (*words, "docs/notation.md", 'backend="lagpu"'):
        assert word in screen, word


def test_links_lead_somewhere():
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        text = re.sub("`[^`]*`", "", (ROOT / page).read_text("utf-8"))
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if not target.startswith("https://"):
                assert (ROOT / target.partition("#")[0]).exists(), target


def test_what_it_does_not_do_is_refused():
    u = lagpu.Vector(lagpu.BOOL, 3, backend="cpu")
    with pytest.raises(lagpu.errors.DomainMismatch):
        u[u].new()
