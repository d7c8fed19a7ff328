"""Saving: the old file or the new one, whatever happens, and nothing that stays behind."""

import errno
import os
import signal
import subprocess
import sys

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


@pytest.fixture(params=["without a name", "with a name"])
def way(request, monkeypatch):
    """How the file system has temporary files."""

    usual = os.open

    def refused(path, flags, mode=0o777):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return usual(path, flags, mode)

    if request.param == "with a name":
        monkeypatch.setattr(files.os, "open", refused)
    return request.param


def test_a_killed_process_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "a.mtx"
    write(path, b"old")
    killed_while_saving(path)
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == []


def test_a_file_has_the_mode_of_any_new_file(tmp_path, way):
    (tmp_path / "usual").touch()
    write(tmp_path / "a.mtx", b"x")
    assert (tmp_path / "a.mtx").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_process_that_ends_without_unwinding_discards_what_has_a_name(tmp_path, way):
    saving = replacing(tmp_path / "a.mtx")
    saving.__enter__().write(b"half")
    assert len(leftovers(tmp_path)) == (way == "with a name")
    files.discard()
    assert leftovers(tmp_path) == []
    saving.gen.close()
    assert leftovers(tmp_path) == []


def test_processes_that_save_the_same_file_at_the_same_time(tmp_path):
    path = tmp_path / "a.mtx"
    runs = [subprocess.Popen([sys.executable, "-c", TOGETHER, path]) for _ in range(4)]
    assert [run.wait() for run in runs] == [0] * 4
    assert path.read_bytes() == b"whole"
    assert leftovers(tmp_path) == []


def test_a_file_that_is_saved_twice_at_the_same_time(tmp_path, way):
    path = tmp_path / "a.mtx"
    with replacing(path) as file:
        file.write(b"slow")
        write(path, b"quick")
        assert path.read_bytes() == b"quick"
    assert path.read_bytes() == b"slow"
    assert leftovers(tmp_path) == []


def test_a_name_of_any_length(tmp_path, way):
    write(tmp_path / ("\u00e4" * 127), b"x")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_save_that_fails_leaves_nothing(tmp_path, error, way):
    def fails(_):
        raise error

    with pytest.raises(error), replacing(tmp_path / "a.mtx") as file:
        fails(file.write(b"half"))
    assert list(tmp_path.iterdir()) == []
