"""A report written as JSON, so that no reader ever finds half of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lagpu.errors import FileMissing, InvalidValue
from lagpu.host.files import probe, replacing

__all__ = ["require", "write"]


def require(path: Path | None, what: str) -> None:
    """Check, before minutes of work, that a report can be written.

    Parameters
    ----------
    path : Path, optional
        The file.
    what : str
        Who writes, as the message of an error begins.

    Raises
    ------
    FileMissing
        If its folder is not there.
    InvalidValue
        If the file cannot be written.
    """
    if path is None:
        return
    if not path.parent.is_dir():
        raise FileMissing(f"{what}: there is no folder {path.parent}. Make it first.")
    with _named(path, what):
        probe(path)


def write(report: dict[str, Any], path: Path, what: str) -> None:
    """Write a report under a temporary name and rename it.

    Parameters
    ----------
    report : dict
        Ready for JSON.
    path : Path
        The file.
    what : str
        Who writes, as the message of an error begins.

    Raises
    ------
    InvalidValue
        If the file cannot be written.
    """
    text = json.dumps(report, indent=1) + "\n"
    with _named(path, what), replacing(path) as file:
        file.write(text.encode())


@contextmanager
def _named(path: Path, what: str) -> Iterator[None]:
    """Turn what the operating system refuses into one named error."""
    try:
        yield
    except IsADirectoryError as error:
        raise InvalidValue(f"{what}: {path} is a folder. Give a file.") from error
    except OSError as error:
        raise InvalidValue(f"{what}: {path}: {error.strerror or error}.") from error
