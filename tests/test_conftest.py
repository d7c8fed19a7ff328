"""`pytest --backend NAME`: a backend asked for by name is never skipped."""

import subprocess
import sys
from pathlib import Path

import pytest

from lagpu import backends
from lagpu.errors import BackendUnavailable

HERE = Path(__file__).parent


def run(*options):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    file = str(HERE / "loops" / "test_loop.py")
    return subprocess.run(
        [*command, file, "-k", "of_an_empty_vector"],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_backend_alone():
    done = run("--backend", "cpu")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "skipped" not in done.stdout


def test_several_backends():
    done = run("--backend", "cpu,cpu", "--collect-only")
    assert done.stdout.count("[cpu") == 2, done.stdout


def test_pieces_of_a_grid():
    done = run("--backend", "grid:2:cpu,sim:1", "--collect-only")
    assert done.stdout.count("[grid:2:cpu") == done.stdout.count("[sim:1") == 1, done.stdout


def test_unknown_backend():
    done = run("--backend", "cppu")
    assert done.returncode == 4
    assert "--backend: there is no cppu" in done.stderr


def test_a_missing_backend_asked_for_fails():
    try:
        backends.get("gpu")
    except BackendUnavailable:
        done = run("--backend", "gpu")
        assert done.returncode == 1
        assert "BackendUnavailable" in done.stdout
    else:
        pytest.skip("this machine has a device")
