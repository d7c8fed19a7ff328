"""The command line as tests call it: in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def spawn(*args: object, **more) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "lagpu", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )
