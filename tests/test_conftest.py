"""`pytest --backend NAME` skips no backend that it names; what a plain run leaves out."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from samples import picked

from lagpu import backends
from lagpu.errors import BackendUnavailable

HERE = Path(__file__).parent
OPTIONS = ["-q", "-p", "no:cacheprovider", "-c", HERE.parent / "pyproject.toml"]


def run(*options):
    file = HERE / "loops" / "test_loop.py"
    return pytest_run(*options, file, "-k", "of_an_empty_vector")


def pytest_run(*words):
    return subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *words],
        cwd=HERE.parent,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE / "support", *sys.path)))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_backend_alone():
    done = run("--backend", "cpu")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.ci
def test_several_backends():
    done = run("--backend", "cpu,cpu", "--collect-only")
    assert done.stdout.count("[cpu") == 2, done.stdout


@pytest.mark.ci
def test_pieces_of_a_grid():
    done = run("--backend", "grid:2:cpu,sim:1", "--collect-only")
    assert done.stdout.count("[grid:2:cpu") == done.stdout.count("[sim:1") == 1, done.stdout


@pytest.mark.ci
def test_unknown_backend():
    done = run("--backend", "cppu")
    assert done.returncode == 4
    assert "--backend: there is no cppu" in done.stderr


@pytest.mark.ci
def test_a_missing_backend_asked_for_fails():
    try:
        backends.get("gpu")
    except BackendUnavailable:
        done = run("--backend", "gpu")
        assert done.returncode == 1
        assert "BackendUnavailable" in done.stdout
    else:
        pytest.skip("this machine has a device")


@pytest.mark.ci
@pytest.mark.parametrize(
    ("options", "found"),
    picked(
        [
            ([], ["plain"]),
            (["-m", "ci"], ["ci"]),
            (["--backend", "sim"], ["plain"]),
            (["--backend", "cpu,gpu:1"], ["plain", "ci"]),
            (["-m", "exhaustive"], ["exhaustive"]),
        ],
        ([], ["plain"]),
        (["--backend", "cpu,gpu:1"], ["plain", "ci"]),
        rest="exhaustive",
    ),
    ids=" ".join,  # of lists: the order of a set differs from process to process
)
def test_what_a_run_leaves_out(tmp_path, options, found):
    text = "import pytest\ndef test_plain(): pass\n"
    for name in ("ci", "exhaustive"):
        text += f"@pytest.mark.{name}\ndef test_{name}(): pass\n"
    (tmp_path / "test_marks.py").write_text(text)
    place = [f"--confcutdir={tmp_path}", "-p", "conftest", "--collect-only", tmp_path]
    done = pytest_run(*options, *place)
    listed = [line.rpartition("_")[2] for line in done.stdout.splitlines() if "::" in line]
    assert listed == found


def test_no_item_is_made_of_a_case_that_the_run_leaves_out(tmp_path):
    (tmp_path / "test_cases.py").write_text(
        "import pytest\n"
        "x = pytest.param(1, marks=pytest.mark.exhaustive)\n"
        "@pytest.mark.parametrize('x', [0, *9 * [x]])\ndef test_x(x): pass\n"
        "@pytest.mark.parametrize('x', 9 * [x])\ndef test_none_is_plain(x): pass\n"
    )
    place = [f"--confcutdir={tmp_path}", "-p", "conftest", "--collect-only", tmp_path]
    assert "1/2 tests collected (1 deselected)" in pytest_run(*place).stdout
    assert "18/19 tests collected" in pytest_run(*place, "-m", "exhaustive").stdout


@pytest.mark.ci
def test_a_mark_that_is_unknown_is_refused(tmp_path):
    """Misspelt, it would let a plain run have what it should leave out."""
    (tmp_path / "test_marks.py").write_text("import pytest\npytestmark = pytest.mark.exhaustve\n")
    done = pytest_run(f"--confcutdir={tmp_path}", tmp_path)
    assert done.returncode == 2
    assert "'exhaustve' not found in `markers`" in done.stdout


def test_what_needs_a_library_of_the_group_files_is_marked():
    """Else no run of CI has it: the README's command installs none of them."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))
    libraries = {re.match(r"\w+", line)[0] for line in project["dependency-groups"]["files"]}
    for file in sorted(HERE.rglob("test_*.py")):
        text = file.read_text("utf-8")
        if libraries & set(re.findall(r'importorskip\("(\w+)', text)):
            assert "pytest.mark.extra" in text, file


def test_the_quick_set_names_what_is_there():
    text = (HERE / "conftest.py").read_text("utf-8")
    listed = re.findall(r'"(.*)",', re.search(r"^QUICK = \((.*?)^\)", text, re.M | re.S)[1])
    assert len(listed) > 10
    assert [place for place in listed if not (HERE / place).exists()] == []
