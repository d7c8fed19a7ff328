"""Parquet tables of edges, by pyarrow: columns by name or by place."""

from __future__ import annotations

import importlib
import json
from contextlib import AbstractContextManager
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

__all__ = [
    "MAGIC",
    "columns_of",
    "damage_named",
    "dump",
    "kind_of",
    "opened",
    "parse",
    "vertices",
]

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
    table = opened(file, name)
    rows, n = table.metadata.num_rows, vertices(table)
    header = columns_of(table, options, name)
    wanted = [title for title, _ in header]
    texts = [title for title, kind in header[:2] if _is_text(kind)]
    budget.require(56 * rows, "its rows")
    with damage_named(name):
        # Texts stay in their dictionaries, which are as small as they are in the file.
        file.seek(0)
        how = {"read_dictionary": texts} if texts else {}
        module: Any = needed("parquet", f"read: {name} is Parquet, and")
        found = module.read_table(file, columns=wanted, **how)
    columns = [found.column(column) for column in wanted]
    for column, values in zip(wanted, columns, strict=True):
        if values.null_count:
            raise FileFormatError(
                f"read: {name}: the column {column!r} has {values.null_count} missing values. "
                "Fill or drop them."
            )
    weights = None if len(columns) < 3 else _numbers(columns[2], wanted[2], name, "biuf")
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
    if not options.renumber:  # below 2**53, so that nothing wraps
        u, v = (x.astype(np.int64) if x.dtype.kind == "u" else x for x in (u, v))
    return graph_of(Edges(u, v, weights), budget, options, held=held, n=n)


def opened(file: Any, name: str) -> Any:
    """Return the table in a file, or at a path, of which only the footer has been read.

    Raises
    ------
    FileFormatError
        If it is damaged.
    BackendUnavailable
        If pyarrow is not installed.
    """
    module: Any = needed("parquet", f"read: {name} is Parquet, and")
    with damage_named(name):
        table = module.ParquetFile(file)
        vertices(table)
    return table


def damage_named(name: str) -> AbstractContextManager[None]:
    """Turn errors of pyarrow into those of lagpu."""
    return errors_named(f"read: {name} is no table of Parquet")


def columns_of(table: Any, options: Options, name: str) -> list[tuple[str, Any]]:
    """Return the name and pyarrow's type of sources, of targets, and of weights if there are any.

    Raises
    ------
    InvalidValue, FileFormatError
        As `lagpu.io.formats.columns.chosen`.
    """
    header = list(table.schema_arrow.names)
    places = chosen(header, options.columns, name)
    return [(header[k], table.schema_arrow.field(k).type) for k in places if k is not None]


def kind_of(kind: Any) -> np.dtype[Any] | None:
    """Return NumPy's type for one of pyarrow; None for texts, and for what NumPy has no type."""
    if _is_text(kind):
        return None
    try:
        found: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        return None
    return found


def vertices(table: Any) -> int:
    """Return the number of vertices that lagpu has written, or 0."""
    text = (table.schema_arrow.metadata or {}).get(_SIZE, b"0")
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
