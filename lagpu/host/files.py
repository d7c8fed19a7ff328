"""Files that are written under a temporary name and renamed: no reader ever finds half of one."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["discard", "probe", "replacing"]

_unfinished: set[Path] = set()


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path`, and rename it once all is written.

    A link stays a link; a pipe or a device, such as ``/dev/stdout``, is written to as it is.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    _unfinished.add(temporary)
    try:
        with temporary.open("xb") as file:
            yield file
        temporary.replace(target)
    except BaseException:  # Ctrl-C too
        temporary.unlink(missing_ok=True)
        raise
    finally:
        _unfinished.discard(temporary)


def probe(path: Path) -> None:
    """Raise as `replacing` would, before minutes of work; nothing is left.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    if path.is_dir():
        raise IsADirectoryError
    if path.is_file() or not path.exists():  # no pipe and no device
        tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent).close()


def discard() -> None:
    """Remove what is not finished, for a process that ends without unwinding."""
    for temporary in tuple(_unfinished):
        temporary.unlink(missing_ok=True)
