"""Shared objects from C++ text, compiled once and kept on disk for the sim device."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from lagpu.errors import BackendUnavailable, KernelCompileError

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


def cache_folder() -> Path:
    """Return the folder of compiled objects: ``LAGPU_CACHE_DIR``, or one under the user's cache."""
    chosen = os.environ.get("LAGPU_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lagpu"


@functools.cache
def compiler() -> tuple[str, str]:
    """Return the path and the version line of the C++ compiler: ``CXX``, or ``g++``.

    Raises
    ------
    BackendUnavailable
        When there is none.
    """
    wanted = os.environ.get("CXX") or "g++"
    path = shutil.which(wanted)
    if path is None:
        raise BackendUnavailable(
            f"sim: no C++ compiler {wanted!r}. Install one, such as `apt install g++`."
        )
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    return path, version.stdout.splitlines()[0]


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
        When there is no compiler.
    """
    path, version = compiler()
    key = hashlib.sha256(
        "\0".join((version, *_FLAGS, *_LIBRARIES, *flags, _headers(), source)).encode()
    )
    kept = cache_folder() / f"{key.hexdigest()}.so"
    if not _is_whole(kept):
        _build([path, *_FLAGS, *flags, f"-I{SIM_FOLDER}"], source, what, kept)
    return kept


@functools.cache
def _headers() -> str:
    return "\0".join(header.read_text("utf-8") for header in sorted(SIM_FOLDER.glob("*.hpp")))


def _build(command: list[str], source: str, what: str, kept: Path) -> None:
    """Compile aside, then rename: other processes see the whole object or none."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        built = Path(folder) / "built.so"
        done = subprocess.run(
            [*command, "-x", "c++", "-", "-o", str(built), *_LIBRARIES],
            input=source,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise KernelCompileError(f"{what}: does not compile. The log says:\n{done.stderr}")
        content = built.read_bytes()
        built.write_bytes(content + hashlib.sha256(content).digest())
        built.replace(kept)


def _is_whole(kept: Path) -> bool:
    """Whether the object ends in its own hash: loading a truncated one would kill the process."""
    try:
        content = kept.read_bytes()
    except OSError:
        return False
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    return hashlib.sha256(body).digest() == digest
