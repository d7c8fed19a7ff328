"""Read vectors from files of `lagpu.io.write_vector` and of other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from lagpu.errors import FileFormatError, FileMissing, InvalidValue
from lagpu.io.budget import Budget
from lagpu.io.npz import Archive, errors_named

__all__ = ["read_vector"]

Array = np.ndarray[Any, Any]


def read_vector(path: str | os.PathLike[str]) -> tuple[Array, Array]:
    """Return the entries of a vector.

    Parameters
    ----------
    path : str or path
        ``.npz`` with the arrays ``indices`` and ``values``; any other file has lines of an index
        and a value, separated by a space or a comma. The first line may be a header of names, and
        lines that begin with ``#`` are comments.

    Returns
    -------
    indices : ndarray of INT64, (nvals,)
        Indices in the order of the file.
    values : ndarray, (nvals,)
        INT64 if all are whole, else FP64; from ``.npz`` in the type of the archive.

    Raises
    ------
    FileMissing, InvalidValue
        If there is no such file, or it may not be read.
    FileFormatError
        If the file has another format.
    """
    file = Path(path)
    try:
        content = file.read_bytes() if file.suffix != ".npz" else b""
        return _archive(file) if file.suffix == ".npz" else _lines(content, file.name)
    except FileNotFoundError as error:
        raise FileMissing(f"read: there is no file {file}. Check the name.") from error
    except OSError as error:
        raise InvalidValue(f"read: {file}: {error.strerror or error}.") from error


def _archive(file: Path) -> tuple[Array, Array]:
    with file.open("rb") as stream:
        budget = Budget.of(file.name, stream)
        with errors_named(f"read: {file.name} has no arrays `indices` and `values`"):
            archive = Archive(stream, budget)
            indices, values = archive["indices"], archive["values"]
    if indices.ndim != 1 or indices.shape != values.shape or indices.dtype.kind not in "iu":
        raise FileFormatError(
            f"read: {file.name}: indices {indices.dtype} {indices.shape} do not fit "
            f"values {values.shape}."
        )
    return indices.astype(np.int64), values


def _lines(content: bytes, name: str) -> tuple[Array, Array]:
    indices: list[int] = []
    values: list[int | float] = []
    for number, line in enumerate(content.splitlines(), 1):
        words = line.split(b"#", 1)[0].replace(b",", b" ").split()
        if not words or (number == 1 and words == [b"index", b"value"]):
            continue
        try:
            index, value = words
            indices.append(int(index))
            values.append(_number(value))
        except ValueError:
            raise FileFormatError(
                f"read: {name}: line {number} is not an index and a value."
            ) from None
    if not indices:
        raise FileFormatError(f"read: {name} has no entry.")
    try:
        return np.array(indices, np.int64), np.array(values)
    except OverflowError:
        raise FileFormatError(f"read: {name}: a number is beyond 64 bits.") from None


def _number(word: bytes) -> int | float:
    try:
        return int(word)
    except ValueError:
        return float(word)
