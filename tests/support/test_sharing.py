"""One test fills the GPU's memory: it waits until no other test runs, and others wait for it."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sharing

FILLS = """
import fcntl
import pytest
from test_sharing import free

@pytest.fixture
def filled():
    return []

def test_alone(filled):
    assert not free("SH")

def test_beside_others():
    assert free("SH")
    assert not free("EX")
"""


def free(how, folder=sharing.FOLDER):
    """Whether another process would get this lock on the room now."""
    with (folder / f"lagpu-tests-{os.getuid()}-room.lock").open("w") as room:
        try:
            fcntl.flock(room, getattr(fcntl, f"LOCK_{how}") | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_every_test_has_a_place():
    assert not free("EX")


@pytest.mark.ci
def test_a_test_that_fills_the_memory_is_alone(tmp_path, monkeypatch):
    """In a session of its own, as what a test starts is part of it."""
    monkeypatch.delenv(sharing.HELD)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    support = Path(__file__).parent
    tests = support.parent
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}:{support}")
    (tmp_path / "test_fills.py").write_text(FILLS)
    (tmp_path / "conftest.py").write_text((tests / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    words = ["-q", "-p", "no:cacheprovider", "-c", str(tmp_path / "pytest.ini"), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("alone", [True, False])
def test_what_a_test_starts_does_not_wait_for_it(tmp_path, monkeypatch, alone):
    monkeypatch.delenv(sharing.HELD)
    with sharing.place_on_gpu(alone=alone, folder=tmp_path):
        assert (free("SH", tmp_path), free("EX", tmp_path)) == (not alone, False)
        with sharing.place_on_gpu(alone=True, folder=tmp_path):  # else it would wait for ever
            assert sharing.HELD in os.environ
    assert free("EX", tmp_path)
