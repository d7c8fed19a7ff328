"""Saving: the old file or the new one, whatever happens, and nothing that stays behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from lagpu.host import files
from lagpu.host.files import replacing

KILLED = """
import pathlib, sys, time
from lagpu.host.files import replacing
with replacing(pathlib.Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    time.sleep(60)
"""

TOGETHER = """
import pathlib, sys
from lagpu.host.files import replacing
for _ in range(200):
    with replacing(pathlib.Path(sys.argv[1])) as file:
        file.write(b"whole")
"""


def write(path, content):
    with replacing(path) as file:
        file.write(content)


def killed_while_saving(path):
    with subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"half\n"
        run.send_signal(signal.SIGKILL)


def leftovers(folder, name="a.mtx"):
    return [path for path in folder.iterdir() if path.name != name]


def age(path):
    os.utime(path, (time.time() - 3600,) * 2)


def test_a_killed_process_leaves_the_old_file_and_the_next_save_cleans(tmp_path):
    path = tmp_path / "a.mtx"
    write(path, b"old")
    killed_while_saving(path)
    assert path.read_bytes() == b"old"
    (left,) = leftovers(tmp_path)
    assert left.name.startswith(".a.mtx.lagpu-")
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert leftovers(tmp_path) == []


def test_a_leftover_of_another_machine_is_removed_once_it_is_old(tmp_path, monkeypatch):
    """Its locks may not be seen here."""
    path = tmp_path / "a.mtx"
    killed_while_saving(path)
    here = os.uname()
    elsewhere = os.uname_result((here[0], "elsewhere", *here[2:]))
    monkeypatch.setattr(files.os, "uname", lambda: elsewhere)
    (left,) = leftovers(tmp_path)
    write(path, b"new")
    assert leftovers(tmp_path) == [left]
    age(left)
    write(path, b"newer")
    assert leftovers(tmp_path) == []


def test_a_file_that_is_removed_before_it_is_locked_is_made_once_more(tmp_path, monkeypatch):
    path, flock, made = tmp_path / "a.mtx", files.fcntl.flock, []

    def late(file, how):
        if not made:
            made.extend(leftovers(tmp_path))
            write(path, b"quick")  # takes it for a leftover
            assert leftovers(tmp_path) == []
        flock(file, how)

    monkeypatch.setattr(files.fcntl, "flock", late)
    write(path, b"slow")
    assert path.read_bytes() == b"slow"
    assert leftovers(tmp_path) == []


def test_processes_that_save_the_same_file_at_the_same_time(tmp_path):
    path = tmp_path / "a.mtx"
    runs = [subprocess.Popen([sys.executable, "-c", TOGETHER, path]) for _ in range(4)]
    assert [run.wait() for run in runs] == [0] * 4
    assert path.read_bytes() == b"whole"
    assert leftovers(tmp_path) == []


def test_what_another_process_still_writes_is_not_removed(tmp_path):
    path = tmp_path / "a.mtx"
    with replacing(path) as file:
        file.write(b"slow")
        file.flush()
        (mine,) = leftovers(tmp_path)
        age(mine)
        write(path, b"quick")
        assert leftovers(tmp_path) == [mine]
    assert path.read_bytes() == b"slow"
    assert leftovers(tmp_path) == []


def test_files_of_others_stay(tmp_path):
    for name in (".b.mtx.lagpu-1.tmp", ".a.mtx.lagpu-1", "a.mtx.tmp", ".hidden"):
        (tmp_path / name).write_bytes(b"")
        age(tmp_path / name)
    write(tmp_path / "a.mtx", b"x")
    assert len(leftovers(tmp_path)) == 4


def test_a_name_of_any_length(tmp_path):
    write(tmp_path / ("\u00e4" * 127), b"x")
    assert len(list(tmp_path.iterdir())) == 1


def test_where_nothing_can_be_locked_files_are_written_all_the_same(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError

    monkeypatch.setattr(files.fcntl, "flock", refused)
    write(tmp_path / "a.mtx", b"x")
    assert (tmp_path / "a.mtx").read_bytes() == b"x"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_save_that_fails_leaves_nothing(tmp_path, error):
    def fails(_):
        raise error

    with pytest.raises(error), replacing(tmp_path / "a.mtx") as file:
        fails(file.write(b"half"))
    assert list(tmp_path.iterdir()) == []
