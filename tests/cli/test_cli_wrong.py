"""Hundreds of wrong invocations: each ends with exit code 2 and one line, and soon."""

from __future__ import annotations

import signal

import pytest
from command import spawn
from samples import picked, sampled
from wrong_commands import write_files, wrong_commands

COMMANDS = wrong_commands()
SAMPLE = sorted(COMMANDS)[:: len(COMMANDS) // 6]
_ENDLESS_SECONDS = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the commands name."""
    made = tmp_path_factory.mktemp("wrong")
    write_files(made)
    return made


@pytest.fixture
def ends():
    """Fail a command that runs for ever."""

    def fail(*_):
        raise AssertionError("the command runs for ever")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(_ENDLESS_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("line", sampled(COMMANDS, 8, ci=4))
def test_it_is_refused_in_one_line(refused, folder, ends, monkeypatch, line):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    refused(*COMMANDS[line])
    assert sorted(folder.iterdir()) == before


def test_there_are_hundreds():
    assert len(COMMANDS) >= 600


@pytest.mark.parametrize("line", picked(SAMPLE, SAMPLE[0]))
def test_a_process_ends_the_same_way(folder, line):
    process = spawn(*COMMANDS[line], cwd=folder)
    out, err = process.communicate(timeout=_ENDLESS_SECONDS)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("lagpu: ")
