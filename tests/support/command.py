"""The command line as tests call it: in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys


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
