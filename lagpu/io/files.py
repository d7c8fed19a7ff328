"""Read graph files by their content, and write them by their suffix, atomically; vectors too."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, Literal, TypedDict, Unpack, overload

import numpy as np

from lagpu import backends
from lagpu.algebra.operators import BinaryOp, Monoid
from lagpu.backends.protocol import Backend, in_step
from lagpu.core import Matrix
from lagpu.core.arguments import binary_operator
from lagpu.dtypes import Array, as_array
from lagpu.errors import DimensionMismatch, FileFormatError, InvalidValue
from lagpu.host import memory
from lagpu.host.files import os_errors_named, probe, replacing
from lagpu.io import formats, reading, slices, suites
from lagpu.io.csc import CSC, bytes_for_entries, symmetrise
from lagpu.io.npz import Archive
from lagpu.io.opening import MANY, Input, content, graph_in, opened, path_of, unpacked
from lagpu.io.reading import Options, Parsed

__all__ = ["read", "write", "write_vector"]


class ReadOptions(TypedDict, total=False):
    """The options of `read` that do not change the type of its result."""

    backend: str | Backend | None
    directed: bool | None
    header: bool | None
    dup_op: BinaryOp | Monoid | str | None
    columns: Sequence[str] | None
    format: str | None


Source = str | os.PathLike[str] | IO[Any]


@overload
def read(
    path: Source, *, renumber: Literal[False] = False, **how: Unpack[ReadOptions]
) -> Matrix: ...


@overload
def read(
    path: Source, *, renumber: Literal[True], **how: Unpack[ReadOptions]
) -> tuple[Matrix, Array]: ...


def read(
    path: Source, *, backend: str | Backend | None = None,
    directed: bool | None = None, header: bool | None = None,
    dup_op: BinaryOp | Monoid | str | None = None, renumber: bool = False,
    columns: Sequence[str] | None = None, format: str | None = None,
) -> Matrix | tuple[Matrix, Array]:  # fmt: skip
    """Return the graph in a file; its content decides the format, and then its name.

    Parameters
    ----------
    path : str, path or open file
        A file of one of the formats in :doc:`/files`, which may be packed by gzip, bzip2 or xz, or
        be in a tar or .zip archive. ``"-"`` is the standard input. An open file, binary or of text,
        is read from where it is to its end.
    backend : str or Backend, optional
        Where the matrix will live.
    directed : bool, optional
        False adds the reverse of every edge. None and True keep the entries of the file, except
        that None symmetrises a file that says that its edges are undirected.
    header : bool, optional
        Whether the first line is a header: of an edge list ``n m``, or the names of columns. By
        default it is ``n m`` if it has two numbers, exactly m >= 1 lines follow, and all their
        vertices are below n; and names if none of its fields is a number.
    dup_op : BinaryOp, Monoid or str, optional
        Combines the values of an entry that a file gives twice; by default they are summed.
        Shortest paths over weights need ``"min"``, the length of the shortest edge.
    renumber : bool
        Return (matrix, ids) instead, where ids[v] is the id of vertex v in the file: a number, with
        gaps or beyond 2**53, or a text. Vertices without an edge are not there.
    columns : sequence of str, optional
        Names of the columns with the sources, the targets, and maybe the weights. By
        default ``source`` and ``target`` (or ``src`` and ``dst``, ``from`` and ``to``) and
        ``weight``, or else the two that are not called as weights are.
    format : str, optional
        A suffix, such as ``".graph"``, that decides the format instead.

    Returns
    -------
    matrix : Matrix
        BOOL for patterns and edge lists without weights, INT64 for whole and FP64 for other
        numbers, the type of the file for ``.npz``, Parquet and Binsparse. Entry (i, j) is the edge
        i -> j. Values of an entry given twice are combined by `dup_op`; without values the two are
        merged. If all values are equal, one is stored.
    ids : ndarray, (n,)
        If `renumber`: the ids in ascending order, INT64 (or UINT64) if all are whole numbers, also
        in text, else objects.

    Raises
    ------
    FileMissing
        If there is no such file.
    InvalidValue
        If it is a folder or may not be read, an option has no effect on this format, or `directed`
        is False and the matrix is not square or an edge has a different value in each direction.
    FileFormatError
        If it is empty, malformed, truncated, of a kind that is not read, or its content contradicts
        its header.
    NotSupported
        If it contains complex numbers or a dense matrix.
    BackendUnavailable
        If a library that the format needs is not installed.
    OutOfMemory, LimitExceeded
        If it needs more memory than is free, or than a file of its size should (one gigabyte, or a
        hundred times its bytes; ``LAGPU_READ_LIMIT`` replaces this limit); raised before the memory
        is allocated.
    """
    file = path_of(path)
    op = None if dup_op is None else binary_operator(dup_op)
    asked = None if format is None else formats.asked_for(format)
    grid = backends.choose(None, backend)
    by_rows = grid.capabilities.by_rows and directed is not False
    options = Options(header, op, renumber, _three(columns), by_rows)
    with memory.shortage_named(f"read: {file.name}"):
        if grid.capabilities.parts is not None and not hasattr(path, "read") and str(file) != "-":
            with os_errors_named("read", file):
                shared = slices.read(file, options, asked, directed, grid)
            if shared is not None:
                return shared
        csc, ids = in_step(grid, lambda: _columns(path, options, asked, directed))
        A = csc.matrix(backend)
        return A if ids is None else (A, ids)


def _columns(
    source: Any, options: Options, asked: formats.Format | None, directed: bool | None
) -> tuple[CSC, Any]:
    """Return the matrix of a file as columns, and the ids of its vertices or None."""
    with opened(source) as found:
        given = graph_in(found)
        budget, parsed = given.budget, _parse(given, options, asked)
    csc = parsed.csc
    if directed is False or (parsed.undirected and directed is None):
        both = bytes_for_entries(2 * csc.nvals, csc.ncols, values=not csc.iso)
        budget.require(both, f"{csc.ncols} vertices", held=csc.nbytes)
        csc = symmetrise(csc, f"read: {budget.name}")
    return csc, parsed.ids


def _three(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return names of columns as they must be."""
    if columns is None:
        return None
    names = () if isinstance(columns, str) else tuple(columns)
    if len(names) not in (2, 3) or not all(isinstance(name, str) for name in names):
        raise InvalidValue(
            f"read: columns {columns!r} are not two or three names. Write "
            '("source", "target") or ("source", "target", "weight").'
        )
    return names


def _parse(given: Input, options: Options, asked: formats.Format | None) -> Parsed:
    """Return the graph in an open file that is unpacked."""
    stream, file, budget = given
    form = formats.of_start(stream.peek(MANY)[:MANY], budget.name)
    if form is not None:
        _require_heeded(form, options, budget.name)
        # A file that is packed can be entered in its middle only slowly.
        can_seek = stream.seekable() and isinstance(stream.raw, io.FileIO | io.BytesIO)
        whole = stream if can_seek else io.BytesIO(content(stream, budget))
        return form.read(whole, budget, options)
    data = content(stream, budget)
    if not data:
        raise FileFormatError(f"read: {budget.name} is empty.")
    form = formats.of_content(data, file, asked, budget.name)
    _require_heeded(form, options, budget.name)
    try:
        return form.read(data, budget, options)
    except FileFormatError as error:
        if form.guessed and suites.looks_like_metis(data):
            remedy = 'If it is a METIS graph, name it .graph, or give format=".graph".'
            raise FileFormatError(f"{error} {remedy}") from None
        raise


def _require_heeded(form: formats.Format, options: Options, name: str) -> None:
    """Raise for an option that has no effect on a format."""
    rows = (
        ("renumber", options.renumber, "numbers its vertices without gaps"),
        ("columns", options.columns is not None, "has no columns with names"),
    )
    for option, given, why in rows:
        if given and option not in form.heeds:
            raise InvalidValue(f"read: {name}: {form.name} {why}. Leave {option} out.")


def write(A: Matrix, path: str | os.PathLike[str]) -> None:
    """Write a matrix in the format of the suffix, and never leave a half-written file.

    The suffix of `path` is one of those in :doc:`/files`; ``.gz``, ``.bz2`` or ``.xz`` after it
    packs a text. ``.npz`` is the fastest to read. `InvalidValue` if there is no such format, the
    file cannot be written, or the format has no place for something of the matrix;
    `BackendUnavailable` if a library that the format needs is not installed; `FileMissing` if there
    is no such folder.
    """
    file = Path(path)
    form = _format_of(file)
    csc = CSC.of(A)
    form.require_fit(csc, file.name)
    with os_errors_named("write", file), replacing(file) as stream:
        if file.suffix in formats.PACKINGS:
            with formats.PACKINGS[file.suffix].writer(stream) as packing:
                form.dump(csc, packing)
        else:
            form.dump(csc, stream)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise the errors of `write` now, before minutes of work, if it cannot write `path`."""
    file = Path(path)
    form = _format_of(file)
    if form.extra:
        reading.needed(form.extra, f"write: {file.name}")
    with os_errors_named("write", file):
        probe(file)


def _format_of(file: Path) -> formats.Format:
    """Return the format that a file is to be written in, by its suffix."""
    form = formats.by_suffix(file)
    if form is None:
        others = ", ".join(x for x in formats.suffixes() if x not in (".mtx", ".npz", ".txt"))
        raise InvalidValue(
            f"write: {file.name}: use .mtx, .npz or .txt, or else {others}; .gz after a text."
        )
    return form


def write_vector(indices: Any, values: Any, path: str | os.PathLike[str]) -> None:
    """Write a vector's entries in the format of the suffix, and never leave a half-written file.

    `indices` and `values`, (nvals,), are as `Vector.to_coo` returns them; or ids, which may be
    texts, in the place of vertices. The suffix of `path` is ``.npz`` (arrays ``indices`` and
    ``values``), ``.txt`` (lines ``index value``) or ``.csv`` (the same with commas, after a line of
    names). In text, BOOL is written as 0 and 1. `DimensionMismatch` if the arrays differ in length;
    `InvalidValue` for another suffix, an id with a space in ``.txt``, or a file that cannot be
    written; `FileMissing` if there is no such folder.
    """
    file, columns = Path(path), [np.asarray(indices), np.asarray(values)]
    shapes = [column.shape for column in columns]
    if columns[0].ndim != 1 or shapes[0] != shapes[1]:
        raise DimensionMismatch(f"write: indices {shapes[0]} != values {shapes[1]}.")
    if file.suffix not in (".npz", ".txt", ".csv"):
        raise InvalidValue(f"write: {file.name}: use .npz, .txt or .csv.")
    columns = [_texts(column, file) if column.dtype.kind in "OU" else column for column in columns]
    with os_errors_named("write", file), replacing(file) as stream:
        if file.suffix == ".npz":
            np.savez(stream, allow_pickle=False, indices=columns[0], values=columns[1])
            return
        if file.suffix == ".csv":
            stream.write(b"index,value\n")
        reading.write_rows(stream, columns, "," if file.suffix == ".csv" else " ")


def _texts(ids: Array, file: Path) -> Array:
    """Return ids as texts that a file of this suffix can hold."""
    words = [str(name) for name in ids.tolist()]
    if file.suffix == ".npz":
        return np.array(words, str)
    if file.suffix == ".csv":
        for k, word in enumerate(words):
            if any(mark in word for mark in ',"\r\n'):
                words[k] = '"' + word.replace('"', '""') + '"'
    elif odd := next((word for word in words if word.split() != [word]), None):
        raise InvalidValue(
            f"write: {file.name}: the id {odd[:60]!r} has a space. Use .csv or .npz."
        )
    return np.fromiter(words, object, len(words))


# ---- Vectors, from files of `write_vector` and of other programs.


def read_vector(
    path: str | os.PathLike[str], *, ids: bool = False, texts: bool = False
) -> tuple[Array, Array]:
    """Return the entries of a vector: INT64 indices in the order of the file, and values.

    ``.npz`` has the arrays ``indices`` and ``values``; any other file has lines of an index and a
    value, separated by a space or a comma. The first line may be a header of names, and lines that
    begin with ``#`` are comments. Values are INT64 if all are whole, else FP64; from ``.npz`` in
    the type of the archive. With `ids` the indices are ids, numbers or texts, which may be in
    quotes in ``.csv``; with `texts` the values are ids too. `FileMissing` or `InvalidValue` if
    there is no such file, or it may not be read; `FileFormatError` if it has another format.
    """
    file = Path(path)
    with opened(path) as (stream, _, budget):
        if file.suffix == ".npz":
            kinds = "iuUS" if ids else "iu"
            with reading.errors_named(f"read: {budget.name} has no arrays `indices` and `values`"):
                archive = Archive(stream, budget, texts=ids)
                indices, values = archive["indices"], archive["values"]
            shapes = f"{indices.dtype} {indices.shape} do not fit values {values.shape}"
            fits = indices.ndim == 1 and indices.shape == values.shape
            if not fits or indices.dtype.kind not in kinds:
                raise FileFormatError(f"read: {budget.name}: indices {shapes}.")
            return indices if ids else indices.astype(np.int64), values
        text = content(unpacked(stream), budget).decode("utf-8", "replace")
    quoted, lines = ids and file.suffix == ".csv", text.splitlines()
    rows: Iterable[list[str]] = map(str.split, lines)
    if quoted:
        rows = csv.reader(io.StringIO(text, newline=""))
    elif not ids:
        rows = (line.split("#", 1)[0].replace(",", " ").split() for line in lines)
    found: list[tuple[Any, Any]] = []
    for number, words in enumerate(rows, 1):
        if not words or (number == 1 and words == ["index", "value"] and (quoted or not ids)):
            continue
        try:
            index, value = words
            shown = value if texts else reading.number(value.encode())
            found.append((index if ids else int(index), shown))
        except ValueError:
            lack = f"line {number} is not an {'id' if ids else 'index'} and a value"
            raise FileFormatError(f"read: {file.name}: {lack}.") from None
    if not found and not ids:
        raise FileFormatError(f"read: {file.name} has no entry.")
    try:
        indices = np.fromiter((k for k, _ in found), object if ids else np.int64, len(found))
        values = [x for _, x in found]
        return indices, np.array(values, object) if texts else as_array(values)
    except OverflowError:
        raise FileFormatError(f"read: {file.name}: a number is beyond 64 bits.") from None
