"""Test processes that share one GPU: a test that fills its memory runs while no other test does."""

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(tempfile.gettempdir())
HELD = "LAGPU_TESTS_SHARE_GPU"  # set for processes that a test starts: they are part of it


@contextmanager
def place_on_gpu(*, alone=False, folder=FOLDER):
    """Wait for a place among the tests that run, of any process of this user, or to be alone.

    Who waits to be alone stands in the door, so that none enters before.
    """
    if HELD in os.environ:
        yield
        return
    door, room = (folder / f"lagpu-tests-{os.getuid()}-{name}.lock" for name in ("door", "room"))
    with door.open("w") as enter, room.open("w") as inside:
        fcntl.flock(enter, fcntl.LOCK_EX)
        fcntl.flock(inside, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(enter, fcntl.LOCK_UN)
        os.environ[HELD] = "yes"
        try:
            yield
        finally:  # closing gives the place back
            del os.environ[HELD]
