"""A process knows by its launcher's variables which one of a job it is; one of a job prints."""

import atexit
import subprocess
import sys
import time

import pytest

from lagpu.errors import ProcessFailed
from lagpu.host import job as module
from lagpu.host.job import Job, end_together, launched, owner, speaks


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for names in module._VARIABLES:
        for name in names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "_deciders", [])
    monkeypatch.setattr(module, "_of_all", [])


@pytest.mark.parametrize(
    ("variables", "job"),
    [
        ({}, None),
        ({"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "2"}, Job(3, 2)),
        ({"PMI_SIZE": "4", "PMI_RANK": "0"}, Job(4, 0)),
        ({"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}, None),
        ({"SLURM_STEP_NUM_TASKS": "8", "PMIX_RANK": "7"}, Job(8, 7)),
        ({"SLURM_STEP_NUM_TASKS": "8"}, None),  # a job's script, or a program without MPI
        ({"PMI_SIZE": "many", "PMI_RANK": "0"}, None),
    ],
)
def test_launched(monkeypatch, variables, job):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert launched() == job


def test_who_speaks(monkeypatch):
    slept, at_exit = [], []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(atexit, "register", lambda *call: at_exit.append(call))
    assert speaks(ValueError())
    assert at_exit == []
    for rank in "01":
        monkeypatch.setenv("PMI_SIZE", "2")
        monkeypatch.setenv("PMI_RANK", rank)
        assert speaks(ValueError())
    assert slept == [4.0]  # the second one; the launcher ends it meanwhile if the first has spoken
    assert at_exit == [(time.sleep, 2.0)]  # the first one, which has spoken by then


def test_processes_that_can_meet_decide_together(monkeypatch):
    monkeypatch.setattr(sys, "excepthook", print)
    monkeypatch.setattr(module, "_hooked", [])
    end_together()
    hook = sys.excepthook
    end_together(lambda error: "mine" in str(error))
    assert sys.excepthook is hook is not print
    assert speaks(ValueError("mine"))
    assert not speaks(ValueError("theirs"))


def test_whose_error_it_is(monkeypatch):
    """That of the process that has it; of none if all have it, or if its message has a number."""
    reported = ProcessFailed("process 2 of 3: full")
    reported.process = 2
    assert owner(ValueError()) == ""
    for rank, others in (("0", ""), ("1", "process 1 of 3: ")):
        monkeypatch.setenv("PMI_SIZE", "3")
        monkeypatch.setenv("PMI_RANK", rank)
        assert owner(ValueError()) == others  # before they can meet: the first one tells its own
        assert owner(reported) == ""
    for of_all in (True, False):
        end_together(lambda _: True, lambda of_all=of_all: of_all)
        assert owner(ValueError()) == ("" if of_all else "process 1 of 3: ")
        assert owner(reported) == ""


@pytest.mark.parametrize("mine", [True, False])
def test_an_error_that_is_not_caught(mine):
    code = f"""
from lagpu.host.job import end_together
end_together(lambda error: {mine})
raise ValueError("boom\\nand\\x1b[2Jmore")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    if mine:
        assert "Traceback" in done.stderr
        said = done.stderr.splitlines()[-1]
        assert said == r"lagpu: this process ended the job: ValueError: boom and\x1b[2Jmore"
    else:
        assert done.stderr == ""
