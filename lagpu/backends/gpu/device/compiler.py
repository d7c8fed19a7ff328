"""Shared objects from C++ text, for the sim device."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
from pathlib import Path

from lagpu.backends.gpu.device import cache
from lagpu.errors import BackendUnavailable, KernelCompileError
from lagpu.host import children

__all__ = ["SIM_FOLDER", "compiler", "shared_object"]

#: Where the sim device's C++ lies; texts may include its headers.
SIM_FOLDER = Path(__file__).parent / "sim_runtime"

# Half the compile time of -O2 at its speed: of what -O2 adds, only tail calls count, since the
# fibers' waits end in calls. Kernels look at values as bits, which the CUDA compilers allow. A
# product and a sum are rounded each, on every processor.
_FLAGS = (
    "-std=c++17", "-O1", "-foptimize-sibling-calls", "-fPIC", "-shared", "-fno-strict-aliasing",
    "-ffp-contract=off", "-pipe",
)  # fmt: skip
_LIBRARIES = ("-lm", "-lgcc")  # named, for those who compile with -nostdlib; behind the text
_VERSION_SECONDS, _COMPILE_SECONDS = 60, 600  # a compiler that takes longer hangs
_ANOTHER = "Set CXX to a compiler that works, or leave it out for g++."


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
    options = [*command, *_FLAGS, *flags, f"-I{SIM_FOLDER}"]
    decisive = (version, *_FLAGS, *_LIBRARIES, *flags, _headers(), source)
    return cache.kept(
        "sim", decisive, ".so", lambda folder: _build(options, source, what, folder)
    ).path


@functools.cache
def _headers() -> str:
    return "\0".join(header.read_text("utf-8") for header in sorted(SIM_FOLDER.glob("*.hpp")))


def _build(command: list[str], source: str, what: str, folder: str) -> bytes:
    """Return the object; the compiler writes into `folder` alone."""
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
    return built.read_bytes()
