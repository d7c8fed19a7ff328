"""Parquet tables of edges, by pyarrow: columns by name or by place."""

from __future__ import annotations

import importlib
import json
from typing import IO, Any

import numpy as np

from lagpu.errors import FileFormatError
from lagpu.host import memory
from lagpu.io.budget import Budget
from lagpu.io.csc import CSC
from lagpu.io.formats.columns import chosen
from lagpu.io.formats.extras import needed
from lagpu.io.npz import errors_named
from lagpu.io.reading import NAMES_HINT, Edges, Options, Parsed, graph_of
from lagpu.io.renumber import Names

__all__ = ["MAGIC", "dump", "parse"]

MAGIC = b"PAR1"
_SIZE = b"lagpu_vertices"  # in the file's metadata: the number of vertices, as JSON

Array = np.ndarray[Any, Any]


def parse(file: IO[bytes], budget: Budget, options: Options) -> Parsed:
    """Return the graph of a table.

    Parameters
    ----------
    file : binary file
        The table, from its first byte; it must allow seeking.
    budget : Budget
        Name of the file in messages, and the memory that it may take.
    options : Options
        `columns`, `renumber` and `dup_op`.

    Raises
    ------
    FileFormatError
        If it is damaged, an end or a weight is missing, or a column has another type.
    InvalidValue
        If there is no such column.
    BackendUnavailable
        If pyarrow is not installed.
    OutOfMemory, LimitExceeded
        If the graph does not fit.
    """
    name = budget.name
    parquet = needed("parquet", f"read: {name} is Parquet, and")
    with errors_named(f"read: {name} is no table of Parquet"):
        table = parquet.ParquetFile(file)
        header = list(table.schema_arrow.names)
        rows = table.metadata.num_rows
        n = _vertices(table.schema_arrow.metadata or {})
    source, target, weight = chosen(header, options.columns, name)
    texts = [header[k] for k in (source, target) if _is_text(table.schema_arrow.field(k).type)]
    budget.require(56 * rows, "its rows")
    wanted = [header[k] for k in (source, target, weight) if k is not None]
    with errors_named(f"read: {name} is no table of Parquet"):
        # Texts stay in their dictionaries, which are as small as they are in the file.
        file.seek(0)
        how = {"read_dictionary": texts} if texts else {}
        found = parquet.read_table(file, columns=wanted, **how)
    columns = [found.column(column) for column in wanted]
    for column, values in zip(wanted, columns, strict=True):
        if values.null_count:
            raise FileFormatError(
                f"read: {name}: the column {column!r} has {values.null_count} missing values. "
                "Fill or drop them."
            )
    weights = None if weight is None else _numbers(columns[2], wanted[2], name, "biuf")
    held = 24 * rows
    if texts or not all(_kind(column) in "iu" for column in columns[:2]):
        if not options.renumber:
            raise FileFormatError(
                f"read: {name}: the columns {wanted[0]!r} and {wanted[1]!r} are not of whole "
                f"numbers. {NAMES_HINT}."
            )
        u, v, ids = _named(columns[:2])
        edges = Edges(u, v, weights)
        return graph_of(edges, budget, options, held=held, ids=ids)
    u, v = (_numbers(c, w, name, "iu") for c, w in zip(columns[:2], wanted[:2], strict=True))
    if options.renumber and u.dtype != v.dtype:  # together they would be FP64
        u, v, ids = _named(columns[:2])
        return graph_of(Edges(u, v, weights), budget, options, held=held, ids=ids)
    ends = (u.min(initial=0), v.min(initial=0), u.max(initial=0), v.max(initial=0))
    if not options.renumber and not 0 <= min(ends) <= max(ends) < 2**53:
        bad = min(ends) if min(ends) < 0 else max(ends)
        raise FileFormatError(
            f"read: {name}: vertex {bad} is not a whole number 0, 1, 2, ... below 2**53. "
            f"{NAMES_HINT}."
        )
    return graph_of(Edges(u, v, weights), budget, options, held=held, n=n)


def _vertices(metadata: dict[bytes, bytes]) -> int:
    """Return the number of vertices that lagpu has written, or 0."""
    text = metadata.get(_SIZE, b"0")
    count = json.loads(text)
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"{text[:20]!r} is not a number of vertices")
    return count


def _is_text(kind: Any) -> bool:
    if str(kind).startswith("dictionary"):
        return True
    return str(kind) in ("string", "large_string", "binary", "large_binary", "string_view")


def _kind(column: Any) -> str:
    return str(np.dtype(column.type.to_pandas_dtype()).kind)


def _numbers(column: Any, title: str, name: str, kinds: str) -> Array:
    if _kind(column) not in kinds:
        raise FileFormatError(
            f"read: {name}: the column {title!r} has the type {column.type}, which is no number."
        )
    found: Array = column.to_numpy()
    return found


def _named(columns: list[Any]) -> tuple[Array, Array, Array]:
    """Return the ends of edges as numbers, and the id of each."""
    names = Names()
    u, v = (_codes(column, names) for column in columns)
    return names.ordered(u, v)


def _codes(column: Any, names: Names) -> Array:
    parts = [np.empty(0, np.int64)]
    for chunk in column.chunks:
        kept = chunk if str(chunk.type).startswith("dictionary") else chunk.dictionary_encode()
        words = kept.dictionary.to_pylist()
        parts.append(names.codes(words, len(words))[kept.indices.to_numpy(zero_copy_only=False)])
    return np.concatenate(parts)


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write the columns ``source``, ``target``, and ``weight`` unless all values are True."""
    parquet = needed("parquet", "write: Parquet")
    memory.require(40 * csc.nvals, "write", "Use .npz.")
    columns = {"source": csc.row_idx, "target": csc.columns()}
    if not csc.is_pattern:
        columns["weight"] = csc.dense_values()
    table = importlib.import_module("pyarrow").table(columns)
    parquet.write_table(table.replace_schema_metadata({_SIZE: json.dumps(csc.nrows)}), file)
