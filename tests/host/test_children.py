"""Programs that a process starts, and their end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lagpu.host import children


def test_a_program_has_a_code_and_two_texts():
    done = children.run(["/bin/sh", "-c", "cat; echo no >&2; exit 7"], "yes", seconds=60)
    assert done == (7, "yes", "no\n")


def test_a_program_keeps_its_temporary_files_in_a_folder(tmp_path):
    done = children.run(["/bin/sh", "-c", "echo $TMPDIR"], seconds=60, folder=str(tmp_path))
    assert done.out == f"{tmp_path}\n"


def test_a_program_that_cannot_be_started():
    with pytest.raises(FileNotFoundError):
        children.run(["/no/such/program"], seconds=60)


ENDS_ALL = """
import subprocess, time
from lagpu.host import children
shell = subprocess.Popen(["/bin/sh", "-c", "sleep 999 & echo $!; wait"], stdout=subprocess.PIPE)
below = int(shell.stdout.readline())
children.end_all()
print(shell.pid, below, flush=True)
time.sleep(999)
"""


def test_the_end_of_all_waits_for_children_and_theirs():
    with subprocess.Popen([sys.executable, "-c", ENDS_ALL], stdout=subprocess.PIPE) as process:
        try:
            ended = {int(pid) for pid in process.stdout.readline().split()}
            assert len(ended) == 2
            assert not ended & set(children._descendants(process.pid))  # no dead one either
        finally:
            process.kill()
