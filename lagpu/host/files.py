"""Write files atomically, and keep folders and files that no other user may change."""

import difflib
import errno
import itertools
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from lagpu.errors import FileMissing, InvalidValue, LagpuError

_COMPARED = 2000  # most names of a folder that are compared with that of a missing file
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
    """Open a temporary file without a name, and put it in the place of `path` at the end.

    So a process that is killed leaves nothing behind; where the file system has no files without
    a name, it leaves a hidden one. A link stays a link; a pipe or a device, such as
    ``/dev/stdout``, is written to directly. `OSError` if the file cannot be written.
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
    name = target.name.encode()[:200].decode("utf-8", "ignore")  # a name has 255 bytes
    temporary = target.with_name(f".{name}.lagpu-{os.urandom(8).hex()}.tmp")
    _unfinished.add(temporary)
    try:
        try:
            unnamed = os.open(target.parent, os.O_TMPFILE | os.O_RDWR, 0o666)
        except OSError:
            opened = temporary.open("x+b")
        else:
            opened = os.fdopen(unnamed, "w+b")
        with opened as file:
            yield file
            file.flush()
            if not temporary.exists():  # `src_dir_fd` has Python call linkat, which follows links
                os.link(f"/proc/self/fd/{file.fileno()}", temporary, src_dir_fd=file.fileno())
            temporary.replace(target)
    finally:  # after Ctrl-C too
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


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


def _nearest(path: Path) -> str:
    """Return a question for the file of the nearest name in a folder, or advice."""
    with suppress(OSError), os.scandir(path.parent) as entries:
        if path.is_symlink():
            return f"It is a link to {path.readlink()}, which is missing."
        names = [entry.name for entry in itertools.islice(entries, _COMPARED)]
        near = difflib.get_close_matches(path.name, names, 1)
        if near:
            return f"Did you mean {path.with_name(near[0])}?"
    return "Check the name."


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
            raise FileMissing(f"read: there is no file {path}. {_nearest(path)}") from error
        if is_missing and not path.parent.is_dir():
            missing = f"{what}: there is no folder {path.parent}. Create it first."
            raise FileMissing(missing) from error
        raise InvalidValue(f"{what}: {path}: {error.strerror or error}.") from error


# ---- Folders and files that only the user may change, for what is loaded and run.
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

    `NotPrivate` if another user or group may write it, or may replace a folder above it, whose
    group is trusted; `OSError` if it cannot be made, or is no folder.
    """
    found = Path(os.path.realpath(path))
    _make(found)
    _require_own(found, found.stat(), f"run `chmod 700 {found}` if you trust what it holds")
    for parent in found.parents:
        _require_safe(parent)
    return found


def _make(path: Path) -> None:
    """Make a folder and its parents, which another process may do at the same time."""
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
