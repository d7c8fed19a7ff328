"""End a command within a second after Ctrl-C, whatever code is running."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lagpu.host import children, files
from lagpu.host.interrupt import before_end, end, on_interrupt

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
    timer = threading.Timer(_GRACE_SECONDS, end)
    timer.daemon = True

    def start() -> None:
        if timer.ident is None:
            timer.start()

    try:
        with on_interrupt(start):
            yield
    finally:
        timer.cancel()
