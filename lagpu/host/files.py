"""Write files atomically, and keep folders and files that no other user may change."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from lagpu.errors import FileMissing, InvalidValue, LagpuError

_YOUNG = 60  # seconds, where locks of another machine may not be seen
_unfinished: set[Path] = set()
_elsewhere: list[bool] = []  # not empty inside `nowhere`


@contextmanager
def nowhere() -> Iterator[None]:
    """Write no file in the block: another process of the job writes the same ones."""
    _elsewhere.append(True)
    try:
        yield
    finally:
        _elsewhere.pop()


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path`, and rename it to `path` at the end.

    A link stays a link; a pipe or a device, such as ``/dev/stdout``, is written to directly. The
    temporary file is locked; one that a killed process left behind, and that is not locked, is
    removed by the next call for `path`.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    if _elsewhere:
        import tempfile  # takes long to import

        with tempfile.TemporaryFile() as file:  # writers of archives seek
            yield file
        return
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError
    _remove_leftovers(target)
    while True:
        temporary = target.with_name(f"{_mark(target)}{_machine()}-{os.urandom(8).hex()}.tmp")
        _unfinished.add(temporary)
        try:
            with temporary.open("xb") as file:
                _lock(file)
                if not os.fstat(file.fileno()).st_nlink:
                    continue  # another process took it for a leftover before it was locked
                yield file
                file.flush()
                temporary.replace(target)  # under the lock
                return
        except BaseException:  # Ctrl-C too
            temporary.unlink(missing_ok=True)
            raise
        finally:
            _unfinished.discard(temporary)


def _mark(target: Path) -> str:
    """Return how the names of the temporary files of `target` begin; a name has 255 bytes."""
    name = target.name.encode()[:200].decode("utf-8", "ignore")
    return f".{name}.lagpu-"


def _machine() -> str:
    """Return a word for this machine, whose processes see each other's locks."""
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"


def _lock(file: IO[bytes], how: int = fcntl.LOCK_EX) -> bool:
    """Lock a file while it is open, and return whether it is locked."""
    try:
        fcntl.flock(file, how)
    except OSError:  # another process has locked it, or the file system has no locks
        return False
    return True


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary files of `target` whose processes have ended."""
    mark, past = _mark(target), time.time() - _YOUNG
    for path in target.parent.iterdir():
        if path.name.startswith(mark) and path.name.endswith(".tmp") and path.is_file():
            with contextlib.suppress(OSError), path.open("rb") as file:
                here = path.name.startswith(f"{mark}{_machine()}-")
                old = os.fstat(file.fileno()).st_mtime < past
                if (here or old) and _lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    path.unlink()


def return_or_write(path: str | Path | None, text: str) -> str | None:
    """Return a text, or write it to the file `path` and return None."""
    if path is None:
        return text
    with replacing(Path(path)) as file:
        file.write(text.encode())
    return None


def probe(path: Path) -> None:
    """Check that `replacing` could write `path`, before minutes of work; no file is left behind."""
    if _elsewhere:
        return
    if path.is_dir():
        raise IsADirectoryError
    if path.is_file() or not path.exists():  # no pipe and no device
        import tempfile

        tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent).close()


def discard() -> None:
    """Remove unfinished temporary files, in a process that ends without unwinding."""
    for temporary in tuple(_unfinished):
        temporary.unlink(missing_ok=True)


def require_writable(path: Path | None, what: str) -> None:
    """Check, before minutes of work, that a report can be written."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise FileMissing(f"{what}: there is no folder {path.parent}. Create it first.")
    with os_errors_named(what, path):
        probe(path)


def write_json(report: dict[str, Any], path: Path, what: str) -> None:
    """Write a report under a temporary name and rename it."""
    with os_errors_named(what, path):
        return_or_write(path, json.dumps(report, indent=1) + "\n")


@contextmanager
def os_errors_named(what: str, path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one of lagpu that names `what` and `path`."""
    try:
        yield
    except LagpuError:
        raise
    except IsADirectoryError as error:
        raise InvalidValue(f"{what}: {path} is a folder. Give a file.") from error
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        if is_missing and what == "read":
            raise FileMissing(f"read: there is no file {path}. Check the name.") from error
        if is_missing and not path.parent.is_dir():
            missing = f"{what}: there is no folder {path.parent}. Create it first."
            raise FileMissing(missing) from error
        raise InvalidValue(f"{what}: {path}: {error.strerror or error}.") from error


# ------------------------------------------------------------------------------------------
# Folders and files that only the user may change, for what is loaded and run.


FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ROOT, _UNMAPPED = 0, 65534  # a user of the host that a container does not know


class NotPrivate(Exception):
    """Somebody else may change a folder or a file; `remedy` says what the user can do."""

    def __init__(self, fact: str, remedy: str) -> None:
        super().__init__(fact)
        self.remedy = remedy


def folder(path: Path) -> Path:
    """Return a folder with its links resolved, made with mode 0700 if it is missing.

    Raises
    ------
    NotPrivate
        If another user or group may write it, or may replace a folder above it. The group of a
        folder above is trusted.
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
    """Return the content of a file in a private folder."""
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
