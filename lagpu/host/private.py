"""Folders and files that nobody but the user may change, for what is loaded and run."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["FILE_MODE", "NotPrivate", "folder", "read_bytes"]

FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ROOT, _UNMAPPED = 0, 65534  # a user of the host that a container does not know


class NotPrivate(Exception):
    """Somebody else may change a folder or a file.

    Attributes
    ----------
    remedy : str
        What the user can do, without the final full stop.
    """

    def __init__(self, fact: str, remedy: str) -> None:
        super().__init__(fact)
        self.remedy = remedy


def folder(path: Path) -> Path:
    """Return a folder with its links resolved, after making it and its parents if they are missing.

    Parameters
    ----------
    path : Path
        The folder; what is made has mode 0700, whatever the umask.

    Raises
    ------
    NotPrivate
        If the folder belongs to another user or is writable by group or others; if a folder above
        it belongs to another user than root, or is writable by others without the sticky bit. The
        group of a folder above is trusted.
    OSError
        If it cannot be made, or is no folder.
    """
    found = Path(os.path.realpath(path))
    _make(found)
    _require_own(found, found.stat(), f"run `chmod 700 {found}` if you trust what it holds")
    for parent in found.parents:
        _require_safe(parent)
    return found


def _make(path: Path) -> None:
    """Make a folder and its parents; another process may do the same meanwhile."""
    if path.is_dir():
        return
    if path.parent != path:
        _make(path.parent)
    try:
        path.mkdir(_FOLDER_MODE)
    except FileExistsError:
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "a file is in its place", path) from None
    else:
        path.chmod(_FOLDER_MODE)  # the umask may have taken bits of the user's own


def _require_safe(parent: Path) -> None:
    """Raise if another user may replace what lies in a folder above."""
    state = parent.stat()
    if state.st_uid not in (os.geteuid(), _ROOT, _UNMAPPED):
        raise NotPrivate(f"{parent} belongs to another user", "move the cache")
    if state.st_mode & stat.S_IWOTH and not state.st_mode & stat.S_ISVTX:
        raise NotPrivate(f"{parent} is writable by everybody", f"run `chmod o-w {parent}`")


def _require_own(path: Path, state: os.stat_result, remedy: str) -> None:
    if state.st_uid != os.geteuid():
        raise NotPrivate(f"{path} belongs to another user", "remove it")
    if state.st_mode & _OTHERS:
        raise NotPrivate(f"{path} is writable by other users", remedy)


def read_bytes(file: Path) -> bytes:
    """Return the content of a file in a private folder.

    Raises
    ------
    NotPrivate
        If it is a link or no file, belongs to another user, or is writable by group or others.
    OSError
        If it cannot be read.
    """
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        if file.is_symlink():
            raise NotPrivate(f"{file} is a link", "remove it") from None
        raise
    with os.fdopen(opened, "rb") as stream:
        state = os.fstat(opened)
        if not stat.S_ISREG(state.st_mode):
            raise NotPrivate(f"{file} is no file", "remove it")
        _require_own(file, state, "remove it")
        return stream.read()
