"""Other programs that a process starts, and the end of all of them with it."""

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_PROCESSES = Path("/proc")
_SET_CHILD_SUBREAPER = 36  # of prctl: orphans below this process become its children


class Done(NamedTuple):
    """How a program has ended: its exit code, and its output as text."""

    code: int
    out: str
    err: str


def run(
    command: Sequence[str], text: str = "", *, seconds: float, folder: str | None = None
) -> Done:
    """Run a program for at most `seconds` and return how it has ended; it never outlives this call.

    `command` is its path and its arguments, `text` its standard input, `folder` where it keeps
    temporary files. If it takes longer, it and all that it has started are ended, and TimeoutError
    is raised.
    """
    pipe = subprocess.PIPE
    environment = None if folder is None else os.environ | {"TMPDIR": folder}
    # In a group of its own: a terminal interrupts this process alone, which then ends all below it.
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, process_group=0
    ) as process:
        try:
            out, err = process.communicate(text.encode(), timeout=seconds)
        except BaseException as error:  # Ctrl-C too
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"{command[0]} has not ended after {seconds:g} s") from error
            raise
    return Done(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def end_all() -> None:
    """End every process that this one has started, and theirs, and wait until they have ended."""
    own = os.getpid()
    if not _descendants(own):
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    while found := _descendants(own):
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:  # theirs, and no child of this process
            return


def _descendants(root: int) -> list[int]:
    """Return the processes below one, by their parents in ``/proc``; nearer ones first."""
    below: dict[int, list[int]] = {}
    for status in _PROCESSES.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # pid (name) state parent: a name may have spaces and brackets
            parent = int(status.read_text(errors="replace").rpartition(")")[2].split()[1])
            below.setdefault(parent, []).append(int(status.parent.name))
    found = list(below.get(root, ()))
    for pid in found:
        found += below.get(pid, ())
    return found
