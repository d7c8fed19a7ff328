"""Ctrl-C where Python cannot see it, and files that are whole or not there."""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import PATIENCE, spawn, wait_for_handler
from samples import picked

from lagpu.host import interrupt
from lagpu.host.files import discard, replacing

# A command that is stuck in compiled code with half a file written: a lock that is taken twice is
# waited for whatever signals come.
STUCK = """
import ctypes, sys
from pathlib import Path
from lagpu.host import files
from lagpu.cli import main
from lagpu.cli import graphs

def load(*args, **how):
    with files.replacing(Path(sys.argv[1])) as file:
        file.write(b"half")
        file.flush()
        C, lock = ctypes.CDLL(None), ctypes.create_string_buffer(256)
        C.pthread_mutex_lock(lock)
        print("stuck", flush=True)
        C.pthread_mutex_lock(lock)

graphs.load_quietly = load
sys.exit(main(["bfs", "path:3", "--source", "0", "--backend", "cpu"]))
"""


def test_a_command_stuck_in_compiled_code_ends_and_leaves_no_half_file(tmp_path):
    file = tmp_path / "out.json"
    file.write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK, str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout.readline() == "stuck\n"
        time.sleep(1)  # until it waits for the lock
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (130, "lagpu: interrupted.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert file.read_text() == "old"


def test_what_is_finished_is_not_discarded(tmp_path):
    with replacing(tmp_path / "a") as stream:
        stream.write(b"whole")
    discard()
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing(tmp_path / "link") as stream:
        stream.write(b"whole")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"whole"


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as stream:
        stream.write(b"whole")
    assert os.read(reader, 99) == b"whole"
    os.close(reader)
    assert pipe.is_fifo()


# ---------------------------------------------------------------------------- at random moments

COMMANDS = {
    "bfs": ["bfs", "kron:8", "-s", 1, "-b", "cpu", "--check"],
    "sim": ["bfs", "kron:6", "-s", 1, "-b", "sim"],
    "selftest": ["selftest", "-b", "sim"],
    "bench": ["bench", "kron:6", "-b", "cpu", "--algorithm", "bfs_levels"],
    "generate": ["generate", "kron:15", "graph.npz"],
}
_EARLIEST, _LATEST = 0.0, 2.5  # seconds after the handler is there
_ENDS = (130, -signal.SIGINT)  # the shell says 130 for both; the other while Python shuts down


def moments():
    """Return commands, whether the whole process group is interrupted, and moments."""
    drawn = random.Random(20)
    names = itertools.islice(itertools.cycle(COMMANDS), 100)
    at = [round(drawn.uniform(_EARLIEST, _LATEST), 3) for _ in range(100)]
    return [(name, k % 2 == 1, at[k]) for k, name in enumerate(names)]


EACH_TWICE, MORE = moments()[: 2 * len(COMMANDS)], moments()[2 * len(COMMANDS) :]


@pytest.mark.parametrize(
    ("command", "whole_group", "moment"),
    [*picked(EACH_TWICE, *EACH_TWICE[:2]), *picked(MORE, rest="exhaustive")],
)
def test_ctrl_c_at_any_moment(tmp_path, command, whole_group, moment):
    """In a terminal the programs that a command has started are interrupted too."""
    (tmp_path / "tmp").mkdir()
    folders = {"LAGPU_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "tmp")}
    process = spawn(  # with an empty cache, so that the compiler runs
        *COMMANDS[command], cwd=tmp_path, env=os.environ | folders, start_new_session=True
    )
    try:
        wait_for_handler(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        if process.poll() is None:
            (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
            # The interrupt may come when everything is done and said.
            assert process.returncode in _ENDS or (process.returncode == 0 and out.endswith("\n"))
            assert err == ("lagpu: interrupted.\n" if process.returncode == 130 else "")
        # A program that was being started just then ends a moment after the command.
        deadline = time.monotonic() + PATIENCE
        while in_session(process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert in_session(process.pid) == []
        left = {path.name for path in tmp_path.rglob("*") if path.suffix != ".so"}
        assert left <= {"cache", "tmp", "graph.npz"}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def in_session(session):
    """The processes of a session, dead ones that were not waited for among them."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = status.read_text().rpartition(")")
            if int(rest.split()[3]) == session:
                found.append(name)
    return found


@pytest.mark.parametrize("command", ["selftest --quick -b cpu --jobs 2", "compile -b sim --jobs 2"])
def test_ctrl_c_while_processes_that_share_the_work_begin(command):
    process = spawn(*command.split(), start_new_session=True)
    try:
        while len(in_session(process.pid)) < 4:  # two, and the tracker of their resources
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, err) == (130, "lagpu: interrupted.\n")


def test_python_in_which_lagpu_is_imported_keeps_its_interrupts():
    code = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
import lagpu
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("argv", "orig", "expected"),
    [
        (["/usr/bin/lagpu", "bfs"], ["python", "/usr/bin/lagpu", "bfs"], True),
        (["-m", "bfs"], ["python", "-m", "lagpu", "bfs"], True),
        (["-m"], ["python", "-W", "error", "-mlagpu"], True),
        (["-m", "lagpu"], ["python", "-m", "pytest", "lagpu"], False),
        (["my.py", "lagpu"], ["python", "my.py", "lagpu"], False),
        (["-c"], ["python", "-c", "import lagpu"], False),
        ([""], ["python"], False),
        ([], ["embedded"], False),
    ],
)
def test_the_command_is_distinguished_from_other_programs(monkeypatch, argv, orig, expected):
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", orig)
    assert interrupt.is_command() is expected
