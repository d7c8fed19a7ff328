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
    assert leftovers(tmp_path) == [left]  # it is young: it may be another's that is not locked yet
    age(left)
    write(path, b"newer")
    assert path.read_bytes() == b"newer"
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
