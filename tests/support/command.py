"""The command line as tests call it: in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

#: After so many seconds a process that has to end soon is taken to hang; machines may be busy.
PATIENCE = 300

#: The environment of a process under a limit of its addresses (`ulimit -v`). Each thread of
#: OpenBLAS and of OpenMP takes addresses too, and these libraries end the process where that fails:
#: OpenBLAS inside `import numpy`, before lagpu runs. With one thread a test does the same on any
#: machine.
ONE_THREAD = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def spawn(*args: object, **more) -> subprocess.Popen[str]:
    """Start it; an interrupt reaches it even if the tests' parent ignores them."""
    return subprocess.Popen(
        [sys.executable, "-m", "lagpu", *map(str, args)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **{"stdout": subprocess.PIPE} | more,
    )


def wait_for_handler(process):
    """Wait until the first import of lagpu: before it, Python itself prints the traceback."""
    wanted = 1 << (signal.SIGINT - 1)
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = int(re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)[1], 16)
        mapped = "numpy" in Path(f"/proc/{process.pid}/maps").read_text()
        if caught & wanted and mapped:
            return
        time.sleep(0.002)
