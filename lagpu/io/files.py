"""Read graph files by their content, and write them by their suffix, atomically."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from lagpu.algebra.operators import BinaryOp, Monoid
from lagpu.backends.protocol import Backend
from lagpu.core.arguments import binary_operator
from lagpu.core.matrix import Matrix
from lagpu.errors import DimensionMismatch, FileFormatError, FileMissing, InvalidValue, LagpuError
from lagpu.host import memory
from lagpu.host.files import probe, replacing
from lagpu.io import edge_list, matrix_market, npz
from lagpu.io.budget import Budget
from lagpu.io.csc import CSC, symmetrise
from lagpu.io.text import PIECE, is_binary, write_rows

__all__ = ["read", "require_writable", "write", "write_vector"]

_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # with members, without members
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Dump = Callable[[CSC, IO[bytes]], None]
_GRAPH_FORMATS: dict[str, Dump] = {
    ".mtx": matrix_market.dump,
    ".npz": npz.dump,
    ".txt": edge_list.dump,
}


def read(
    path: str | os.PathLike[str],
    *,
    backend: str | Backend | None = None,
    directed: bool | None = None,
    header: bool | None = None,
    dup_op: BinaryOp | Monoid | str | None = None,
) -> Matrix:
    """Return the graph in a file; the content, not the name, decides the format.

    Parameters
    ----------
    path : str or path
        A Matrix Market coordinate file or an edge list (both plain or compressed by gzip), or an
        ``.npz`` archive of `write` or of `scipy.sparse.save_npz`.
    backend : str or Backend, optional
        Where the matrix will live.
    directed : bool, optional
        False adds the reverse of every edge. None and True keep the entries of the file, except
        that None symmetrises an edge list with the comment ``# Undirected graph``.
    header : bool, optional
        Whether the first line of an edge list is a header ``n m``; by default it is if it has two
        numbers, exactly m >= 1 lines follow, and all their vertices are below n.
    dup_op : BinaryOp, Monoid or str, optional
        Combines the values of an entry that a text file gives twice; by default they are summed.
        Shortest paths over weights need ``"min"``, the length of the shortest edge.

    Returns
    -------
    Matrix
        BOOL for patterns and edge lists without weights, INT64 for whole and FP64 for other
        numbers, the type of the archive for ``.npz``. Entry (i, j) is the edge i -> j. Values of an
        entry given twice are combined by `dup_op`; without values the two are merged. If all
        values are equal, one is stored.

    Raises
    ------
    FileMissing
        If there is no such file.
    InvalidValue
        If it is a folder or may not be read, or `directed` is False and the matrix is not square or
        an edge has a different value in each direction.
    FileFormatError
        If it is empty, malformed, truncated, binary, or its content contradicts its header.
    NotSupported
        If it contains complex numbers or a dense matrix.
    OutOfMemory, LimitExceeded
        If it needs more memory than is free, or than a file of its size should (one gigabyte, or a
        hundred times its bytes; ``LAGPU_READ_LIMIT`` replaces this limit); raised before the memory
        is allocated.
    """
    file, op = Path(path), None if dup_op is None else binary_operator(dup_op)
    with memory.shortage_named(f"read: {file.name}"):
        with _named_errors("read", file), file.open("rb") as stream:
            csc, undirected = _parse(stream, Budget.of(file.name, stream), header, op)
        if directed is False or (undirected and directed is None):
            csc = symmetrise(csc, f"read: {file.name}")
        return csc.matrix(backend)


def _parse(
    stream: io.BufferedReader, budget: Budget, header: bool | None, dup_op: BinaryOp | None
) -> tuple[CSC, bool]:
    """Return the matrix in an open file, and whether the file calls itself undirected."""
    if stream.peek(4).startswith(_ZIP):
        return npz.parse(stream, budget), False
    data = _text(stream, budget)
    if data.startswith(matrix_market.BANNER):
        return matrix_market.parse(data, budget, dup_op), False
    return edge_list.parse(data, budget, header=header, dup_op=dup_op)


def _text(stream: io.BufferedReader, budget: Budget) -> bytes:
    """Return a text file, unpacked if it is gzipped; its last line is whole."""
    packed = stream.peek(2).startswith(_GZIP)
    source: Any = gzip.GzipFile(fileobj=stream) if packed else stream
    try:
        data = _whole(source, budget)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileFormatError(f"read: {budget.name} is truncated or damaged: {error}") from error
    if not data:
        raise FileFormatError(f"read: {budget.name} is empty.")
    if is_binary(data[: 1 << 16]):
        raise FileFormatError(
            f"read: {budget.name} is binary. "
            "Give Matrix Market, an edge list (also gzipped), or .npz."
        )
    return data


def _whole(source: Any, budget: Budget) -> bytes:
    """Read to the end without a byte order mark, and end the last line.

    Each piece is asked for before it is read, since a small file may unpack to any size.
    """
    content = io.BytesIO()  # `getvalue` returns what it holds, without a copy
    part = b""
    while True:
        # Growing, the content may be moved: old and new exist at the same time.
        have = content.tell()
        budget.require(PIECE + have // 8, "its text", held=have)
        part = source.read(PIECE)
        if not part:
            break
        content.write(part if have else part.removeprefix(_BYTE_ORDER_MARK))
    if content.tell() and content.getbuffer()[-1] != ord("\n"):
        content.write(b"\n")
    return content.getvalue()


def write(A: Matrix, path: str | os.PathLike[str]) -> None:
    """Write a matrix in the format of the suffix, and never leave a half-written file.

    Parameters
    ----------
    A : Matrix
        A matrix on any backend.
    path : str or path
        ``.mtx`` or ``.mtx.gz`` (Matrix Market), ``.npz`` (fastest to read), ``.txt`` or
        ``.txt.gz`` (edge list).

    Raises
    ------
    InvalidValue
        If the suffix is not one of these, or the file cannot be written.
    FileMissing
        If there is no such folder.
    """
    file = Path(path)
    dump = _dump_of(file)
    csc = CSC.of(A)
    with _named_errors("write", file), replacing(file) as stream:
        if file.suffix == ".gz":
            # mtime=0, so that the same matrix gives the same bytes
            with gzip.GzipFile("", "wb", 6, stream, mtime=0) as packing:
                dump(csc, cast(IO[bytes], packing))
        else:
            dump(csc, stream)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise the errors of `write` now, before minutes of work, if it cannot write `path`."""
    file = Path(path)
    _dump_of(file)
    with _named_errors("write", file):
        probe(file)


def _dump_of(file: Path) -> Dump:
    """Return the function that writes a graph in the format of the suffix."""
    packed = file.suffix == ".gz"
    suffix = file.with_suffix("").suffix if packed else file.suffix
    dump = _GRAPH_FORMATS.get(suffix)
    if dump is None or (packed and suffix == ".npz"):
        raise InvalidValue(f"write: {file.name}: use .mtx, .mtx.gz, .npz, .txt or .txt.gz.")
    return dump


def write_vector(indices: Any, values: Any, path: str | os.PathLike[str]) -> None:
    """Write a vector's entries in the format of the suffix, and never leave a half-written file.

    Parameters
    ----------
    indices, values : array_like, (nvals,)
        As `Vector.to_coo` returns them.
    path : str or path
        ``.npz`` (arrays ``indices`` and ``values``), ``.txt`` (lines ``index value``) or ``.csv``
        (the same with commas, after a line of names). In text, BOOL is written as 0 and 1.

    Raises
    ------
    DimensionMismatch
        If the arrays differ in length.
    InvalidValue
        If the suffix is not one of these, or the file cannot be written.
    FileMissing
        If there is no such folder.
    """
    file, where, what = Path(path), np.asarray(indices), np.asarray(values)
    if where.ndim != 1 or where.shape != what.shape:
        raise DimensionMismatch(f"write: indices {where.shape} != values {what.shape}.")
    if file.suffix not in (".npz", ".txt", ".csv"):
        raise InvalidValue(f"write: {file.name}: use .npz, .txt or .csv.")
    with _named_errors("write", file), replacing(file) as stream:
        if file.suffix == ".npz":
            np.savez(stream, allow_pickle=False, indices=where, values=what)
            return
        if file.suffix == ".csv":
            stream.write(b"index,value\n")
        write_rows(stream, [where, what], "," if file.suffix == ".csv" else " ")


@contextlib.contextmanager
def _named_errors(operation: str, path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one of lagpu that names the path."""
    try:
        yield
    except LagpuError:
        raise
    except FileNotFoundError as error:
        if operation == "write":
            missing = f"write: there is no folder {path.parent}. Create it first."
            raise FileMissing(missing) from error
        raise FileMissing(f"read: there is no file {path}. Check the name.") from error
    except IsADirectoryError as error:
        raise InvalidValue(f"{operation}: {path} is a folder. Give a file.") from error
    except OSError as error:
        raise InvalidValue(f"{operation}: {path}: {error.strerror or error}.") from error
