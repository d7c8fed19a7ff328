"""The command line as tests call it: in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

#: The environment of a process under a limit of its addresses (`ulimit -v`). Each thread of
#: OpenBLAS and of OpenMP takes addresses too, and these libraries end the process where that fails:
#: OpenBLAS inside `import numpy`, before lagpu runs. With one thread a test does the same on any
#: machine.
ONE_THREAD = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def spawn(*args: object, **more) -> subprocess.Popen[str]:
    """Start it; an interrupt reaches it though whoever runs the tests may ignore them."""
    return subprocess.Popen(
        [sys.executable, "-m", "lagpu", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **more,
    )
