"""Ctrl-C where Python cannot see it, and files that are whole or not there."""

import os
import signal
import subprocess
import sys
import time

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

graphs.load = load
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
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
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
