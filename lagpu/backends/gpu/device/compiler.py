"""Shared objects from C++ text, compiled once and kept on disk for the sim device.

What is loaded from the disk runs as the user, so the folder and its files must be the user's own,
and writable by nobody else; each object ends in its own hash, which is verified first.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lagpu.errors import BackendUnavailable, KernelCompileError
from lagpu.host import children, interrupt, private

__all__ = ["SIM_FOLDER", "cache_folder", "compiler", "shared_object"]

#: Where the sim device's C++ lies; texts may include its headers.
SIM_FOLDER = Path(__file__).parent / "sim_runtime"

# Half the compile time of -O2 at its speed: of what -O2 adds, only tail calls count, since the
# fibers' waits end in calls. Kernels look at values as bits, which the CUDA compilers allow.
_FLAGS = (
    "-std=c++17", "-O1", "-foptimize-sibling-calls", "-fPIC", "-shared", "-fno-strict-aliasing",
    "-pipe",
)  # fmt: skip
_LIBRARIES = ("-lm", "-lgcc")  # named, for those who compile with -nostdlib; behind the text
_DIGEST_BYTES = 32
_VERSION_SECONDS, _COMPILE_SECONDS = 60, 600  # a compiler that takes longer hangs
_ELSEWHERE = "or set LAGPU_CACHE_DIR to another folder."
_ANOTHER = "Set CXX to a compiler that works, or leave it out for g++."


def cache_folder() -> Path:
    """Return the folder of compiled objects: ``LAGPU_CACHE_DIR``, or one under the user's cache.

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
            "sim: there is no home folder for the cache. Set HOME, or LAGPU_CACHE_DIR to a folder."
        ) from error


@functools.cache
def compiler() -> tuple[tuple[str, ...], str]:
    """Return the command of the C++ compiler and its version line: ``CXX``, or ``g++``.

    ``CXX`` may have several words, as in ``ccache g++``.

    Raises
    ------
    BackendUnavailable
        When there is none, or it does not work.
    """
    wanted = os.environ.get("CXX") or "g++"
    try:
        words = shlex.split(wanted)
    except ValueError as error:
        raise BackendUnavailable(
            f"sim: CXX={wanted!r}: {error}. Write it as in a shell."
        ) from error
    path = shutil.which(words[0]) if words else None
    if path is None:
        raise BackendUnavailable(
            f"sim: no C++ compiler {wanted!r}. Install one, such as `apt install g++`."
        )
    command = (path, *words[1:])
    refused = f"sim: the C++ compiler {wanted!r} does not tell its version"
    try:
        done = children.run([*command, "--version"], seconds=_VERSION_SECONDS)
    except TimeoutError as error:
        raise BackendUnavailable(f"{refused} in {_VERSION_SECONDS} s. {_ANOTHER}") from error
    except OSError as error:
        raise BackendUnavailable(f"{refused}: {error.strerror or error}. {_ANOTHER}") from error
    if done.code or not done.out.strip():
        raise BackendUnavailable(f"{refused}: it ends with exit code {done.code}. {_ANOTHER}")
    return command, done.out.splitlines()[0]


def shared_object(source: str, what: str, flags: tuple[str, ...]) -> Path:
    """Return the path of `source` compiled, from the cache if it is there and whole.

    Parameters
    ----------
    source : str
        C++ text.
    what : str
        What an error message calls it.
    flags : tuple of str
        Further compiler options.

    Returns
    -------
    pathlib.Path
        Named by the hash of all that decides its content.

    Raises
    ------
    KernelCompileError
        With the compiler's log.
    BackendUnavailable
        When there is no compiler that works, or no folder that only the user may write.
    """
    command, version = compiler()
    key = hashlib.sha256(
        "\0".join((version, *_FLAGS, *_LIBRARIES, *flags, _headers(), source)).encode()
    )
    with _cache() as folder:
        kept = folder / f"{key.hexdigest()}.so"
        if not _is_whole(kept):
            _build([*command, *_FLAGS, *flags, f"-I{SIM_FOLDER}"], source, what, kept)
    return kept


@contextmanager
def _cache() -> Iterator[Path]:
    """Yield the folder, made if it is missing; errors of the operating system become ours."""
    folder = cache_folder()
    try:
        yield private.folder(folder)
    except private.NotPrivate as error:
        raise BackendUnavailable(
            f"sim: the cache of compiled kernels: {error}. Its content is run: {error.remedy}, "
            f"{_ELSEWHERE}"
        ) from error
    except OSError as error:
        raise BackendUnavailable(
            f"sim: the cache of compiled kernels: {error.filename or folder}: "
            f"{error.strerror or error}. Make room or give permission there, {_ELSEWHERE}"
        ) from error


@functools.cache
def _headers() -> str:
    return "\0".join(header.read_text("utf-8") for header in sorted(SIM_FOLDER.glob("*.hpp")))


def _build(command: list[str], source: str, what: str, kept: Path) -> None:
    """Compile aside, then rename: other processes see the whole object or none."""
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder, interrupt.removed(folder):
        built = Path(folder) / "built.so"
        words = [*command, "-x", "c++", "-", "-o", str(built), *_LIBRARIES]
        try:
            done = children.run(words, source, seconds=_COMPILE_SECONDS, folder=folder)
        except TimeoutError as error:
            raise KernelCompileError(
                f"{what}: the compiler has not ended after {_COMPILE_SECONDS} s. {_ANOTHER}"
            ) from error
        except OSError as error:
            raise BackendUnavailable(
                f"{what}: the compiler cannot be started: {error.strerror or error}. {_ANOTHER}"
            ) from error
        if done.code:
            raise KernelCompileError(f"{what}: does not compile. The log says:\n{done.err}")
        if not built.is_file():
            raise KernelCompileError(f"{what}: the compiler has written nothing. {_ANOTHER}")
        content = built.read_bytes()
        built.write_bytes(content + hashlib.sha256(content).digest())
        built.chmod(private.FILE_MODE)
        built.replace(kept)


def _is_whole(kept: Path) -> bool:
    """Whether the object ends in its own hash: loading a truncated one would kill the process."""
    try:
        content = private.read_bytes(kept)
    except FileNotFoundError:
        return False
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    return hashlib.sha256(body).digest() == digest
