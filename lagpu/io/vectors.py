"""Read vectors from files of `lagpu.io.write_vector` and of other programs."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lagpu.errors import FileFormatError, FileMissing, InvalidValue
from lagpu.io.npz import Archive, errors_named
from lagpu.io.reading import Budget

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
    with _named_errors(file):
        if file.suffix == ".npz":
            indices, values = _archive(file)
            return indices.astype(np.int64), values
        content = file.read_bytes()
    return _lines(content, file.name)


def read_named_vector(path: str | os.PathLike[str], *, texts: bool = False) -> tuple[Array, Array]:
    """Return the entries of a vector whose indices are ids, numbers or texts.

    Parameters
    ----------
    path : str or path
        As in `read_vector`; ids of ``.csv`` may be in quotes.
    texts : bool
        Whether the values are ids too.

    Returns
    -------
    ids : ndarray, (nvals,)
        Ids in the order of the file.
    values : ndarray, (nvals,)
        Ids, or numbers as in `read_vector`.

    Raises
    ------
    FileMissing, InvalidValue, FileFormatError
        As in `read_vector`.
    """
    file = Path(path)
    with _named_errors(file):
        if file.suffix == ".npz":
            return _archive(file, "US")
        content = file.read_bytes().decode("utf-8", "replace")
    name = file.name
    if file.suffix == ".csv":
        rows = [row for row in csv.reader(io.StringIO(content, newline="")) if row]
        rows = rows[1:] if rows[:1] == [["index", "value"]] else rows
    else:
        rows = [line.split() for line in content.splitlines() if line.strip()]
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise FileFormatError(f"read: {name}: row {number} is not an id and a value.")
    ids = np.fromiter((row[0] for row in rows), object, len(rows))
    values = [row[1] for row in rows]
    if texts:
        return ids, np.fromiter(values, object, len(rows))
    try:
        return ids, np.array([_number(value.encode()) for value in values])
    except (ValueError, OverflowError):
        raise FileFormatError(f"read: {name}: a value is no number of 64 bits.") from None


@contextmanager
def _named_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissing(f"read: there is no file {file}. Check the name.") from error
    except OSError as error:
        raise InvalidValue(f"read: {file}: {error.strerror or error}.") from error


def _archive(file: Path, kinds: str = "") -> tuple[Array, Array]:
    with file.open("rb") as stream:
        budget = Budget.of(file.name, stream)
        with errors_named(f"read: {file.name} has no arrays `indices` and `values`"):
            archive = Archive(stream, budget, texts=bool(kinds))
            indices, values = archive["indices"], archive["values"]
    if indices.ndim != 1 or indices.shape != values.shape or indices.dtype.kind not in "iu" + kinds:
        raise FileFormatError(
            f"read: {file.name}: indices {indices.dtype} {indices.shape} do not fit "
            f"values {values.shape}."
        )
    return indices, values


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
