"""Kernels that were compiled before, kept on disk.

What is loaded from the disk runs as the user, so the folder and its files must be the user's own,
and writable by nobody else; each file ends in its own hash, which is verified first.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lagpu.errors import BackendUnavailable
from lagpu.host import files, interrupt

_DIGEST_BYTES = 32
_ELSEWHERE = "or set LAGPU_CACHE_DIR to another folder."


class Kept(NamedTuple):
    """A file of the cache: its path, and its content without the hash at its end."""

    path: Path
    content: bytes


def cache_folder(backend: str) -> Path:
    """Return the folder of compiled kernels: ``LAGPU_CACHE_DIR``, or one under the user's cache.

    Raises
    ------
    BackendUnavailable
        If no variable names a folder, and the user has no home.
    """
    chosen = os.environ.get("LAGPU_CACHE_DIR")
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lagpu"
    except RuntimeError as error:
        raise BackendUnavailable(
            f"{backend}: there is no home folder for the cache. "
            "Set HOME, or LAGPU_CACHE_DIR to a folder."
        ) from error


def kept(
    backend: str, decisive: tuple[str, ...], suffix: str, build: Callable[[str], bytes]
) -> Kept:
    """Return a file of the cache, built if it is not there or not whole.

    Parameters
    ----------
    backend : str
        What error messages call the backend.
    decisive : tuple of str
        All that decides the content; the file is named by the hash of it.
    suffix : str
        The end of the file's name.
    build : callable
        Makes the content. It gets the path of an empty folder, which is removed after it.

    Raises
    ------
    BackendUnavailable
        When there is no folder that only the user may write.
    """
    with _cache(backend) as folder:
        path = folder / f"{hashlib.sha256(chr(0).join(decisive).encode()).hexdigest()}{suffix}"
        content = _whole(path)
        if content is None:
            content = _build(path, build)
    return Kept(path, content)


@contextmanager
def _cache(backend: str) -> Iterator[Path]:
    """Yield the folder, made if it is missing; errors of the operating system become ours."""
    folder = cache_folder(backend)
    what = f"{backend}: the cache of compiled kernels"
    try:
        yield files.folder(folder)
    except files.NotPrivate as error:
        raise BackendUnavailable(
            f"{what}: {error}. Its content is run: {error.remedy}, {_ELSEWHERE}"
        ) from error
    except OSError as error:
        raise BackendUnavailable(
            f"{what}: {error.filename or folder}: {error.strerror or error}. "
            f"Make room or give permission there, {_ELSEWHERE}"
        ) from error


def _build(path: Path, build: Callable[[str], bytes]) -> bytes:
    """Build aside, then rename: other processes see the whole file or none."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, interrupt.removed(folder):
        content = build(folder)
        built = Path(folder) / path.name
        built.write_bytes(content + hashlib.sha256(content).digest())
        built.chmod(files.FILE_MODE)
        built.replace(path)
    return content


def _whole(path: Path) -> bytes | None:
    """Return the content of a file that ends in its own hash: a truncated one kills the process."""
    try:
        read = files.read_bytes(path)
    except FileNotFoundError:
        return None
    content, digest = read[:-_DIGEST_BYTES], read[-_DIGEST_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None
