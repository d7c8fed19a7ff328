"""End a command within a second after Ctrl-C, whatever code is running."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lagpu.host import children, files
from lagpu.host.interrupt import before_end, end

__all__ = ["interruptible"]

_GRACE_SECONDS = 0.7  # for the running code to stop by itself

before_end(children.end_all)
before_end(files.discard)


@contextmanager
def interruptible() -> Iterator[None]:
    """End the process soon after Ctrl-C, even from inside a long call of compiled code.

    Python handles an interrupt only between bytecodes, by `lagpu.host.interrupt`; a sort, a kernel
    or a transfer of a large graph can take too long to wait. So a thread watches for the signal,
    and ends the process if the interrupt is not handled soon. No file is half-written then: files
    are renamed when complete, and incomplete ones are removed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receive, send = os.pipe()
    os.set_blocking(send, False)
    before = signal.set_wakeup_fd(send, warn_on_full_buffer=False)
    over = threading.Event()

    def watch() -> None:
        while (seen := os.read(receive, 1)) and seen[0] != signal.SIGINT:
            pass
        if seen and not over.wait(_GRACE_SECONDS):
            end()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(send)
        watcher.join()
        os.close(receive)
