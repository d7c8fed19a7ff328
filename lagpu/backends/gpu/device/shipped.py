"""Kernels compiled before lagpu was installed, so that a first search on a common GPU need not.

There is an archive for each GPU, a tar compressed as a whole: kernels are much alike. A member is
named by the hash of all that decides it, so one of another text is not found, and is compiled.
`.ci/cubins.py` makes the archives, which are part of a wheel and not of the repository.
"""

from __future__ import annotations

import functools
import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from lagpu.backends.gpu.kernels import Kernel

FOLDER = Path(__file__).parent / "cubins"
_TOOLKIT = "toolkit"  # the member that has the version of CUDA, as drivers tell theirs


def options_of(arch: str, kernel: Kernel, flags: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the options of NVRTC by which a kernel is compiled."""
    return (f"-arch={arch}", *kernel.flags, *flags)


def member(options: tuple[str, ...], kernel: Kernel) -> str:
    """Return the name of a kernel in an archive."""
    decisive = (*options, kernel.name, kernel.alone)
    return hashlib.sha256(chr(0).join(decisive).encode()).hexdigest()


def find(capability: int, options: tuple[str, ...], kernel: Kernel, driver: int) -> bytes | None:
    """Return the machine code of a kernel, or None if it was not compiled before.

    Parameters
    ----------
    capability : int
        The compute capability of the GPU, 90 for 9.0.
    options : tuple of str
        As from `options_of`.
    kernel : Kernel
        Which one.
    driver : int
        The newest CUDA that the driver knows, 13000 for 13.0; an older one may not load the code.
    """
    members = _members(_archive(capability))
    if driver < int(members.get(_TOOLKIT, b"0")):
        return None
    return members.get(member(options, kernel))


def write(capability: int, toolkit: int, code: Mapping[str, bytes]) -> Path:
    """Write the archive of a GPU, the same bytes for the same code; return its path.

    Parameters
    ----------
    capability : int
        As in `find`.
    toolkit : int
        The CUDA that compiled, 13000 for 13.0.
    code : mapping of str to bytes
        Machine code by the name from `member`.
    """
    path = _archive(capability)
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name, content in sorted({_TOOLKIT: str(toolkit).encode(), **code}.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    _members.cache_clear()
    return path


def _archive(capability: int) -> Path:
    return FOLDER / f"sm_{capability}.tar.xz"


@functools.cache
def _members(path: Path) -> dict[str, bytes]:
    """Return the content of each member; none if there is no archive, as in a clone."""
    if not path.is_file():
        return {}
    with tarfile.open(path, "r:xz") as archive:
        return {
            entry.name: file.read() for entry in archive if (file := archive.extractfile(entry))
        }
