"""The matrix in a tar archive, as the SuiteSparse Collection has them: ``name/name.mtx``.

Nothing is unpacked to a disk, and no name in the archive is a path here.
"""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import PurePosixPath

from lagpu.errors import FileFormatError
from lagpu.io.npz import errors_named
from lagpu.io.reading import Budget

_NAMED = re.compile(r"(.*?)(\.mtx)?(\.tar|\.tar\.gz|\.tgz)", re.IGNORECASE)
_MOST = 1000  # members


def is_tar(data: bytes) -> bool:
    """Return whether a content is a tar archive."""
    return data[257:262] == b"ustar"


def matrix_of(data: bytes, budget: Budget) -> bytes:
    """Return the content of the Matrix Market file in an archive; its last line has an end.

    It is the only one, or else the one that is called as the archive is.

    Raises
    ------
    FileFormatError
        If the archive is damaged, or has no such file, or several.
    OutOfMemory, LimitExceeded
        If the file does not fit beside the archive.
    """
    name = budget.name
    files: list[tarfile.TarInfo] = []
    with (
        errors_named(f"read: {name} is a damaged tar archive"),
        tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive,
    ):
        for member in archive:
            if member.size < 0 or len(files) == _MOST:  # Python might never end
                raise ValueError(f"it has a size below 0, or more than {_MOST} files")
            if member.isreg():
                files.append(member)
    matrices = [x for x in files if PurePosixPath(x.name).suffix.lower() == ".mtx"]
    if len(matrices) > 1:
        stem = _NAMED.fullmatch(name)
        alike = [x for x in matrices if stem and PurePosixPath(x.name).stem == stem[1]]
        matrices = alike if len(alike) == 1 else matrices
    if len(matrices) != 1:
        shown = ", ".join(repr(x.name[:60]) for x in (matrices or files)[:8])
        what = f"{len(matrices)} .mtx files" if matrices else "no .mtx file"
        raise FileFormatError(
            f"read: {name} is a tar archive with {what} ({shown}). Unpack it, and give the one "
            "that is the graph."
        )
    (found,) = matrices
    end = found.offset_data + found.size
    if found.issparse() or end > len(data):
        raise FileFormatError(f"read: {name}: {found.name[:60]!r} is truncated or has holes.")
    budget.require(found.size, "its matrix", held=len(data))
    text = data[found.offset_data : end]
    return text if text.endswith(b"\n") else text + b"\n"
