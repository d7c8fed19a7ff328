"""Parquet tables of edges, by pyarrow: columns by name or by place."""

from __future__ import annotations

import importlib
import json
from contextlib import AbstractContextManager
from typing import IO, Any

import numpy as np

from lagpu.errors import FileFormatError
from lagpu.host import memory
from lagpu.io import reading
from lagpu.io.csc import CSC
from lagpu.io.edge_list import chosen
from lagpu.io.reading import NAMES_HINT, Budget, Edges, Names, Options, Parsed

MAGIC = b"PAR1"
_WIDTHS = (8, 16, 32, 64)
_NUMBERS = {f"{sign}int{k}": np.dtype(f"{sign}int{k}") for sign in ("", "u") for k in _WIDTHS}
_NUMBERS |= {"bool": np.dtype("bool"), "halffloat": np.dtype("float16")}
_NUMBERS |= {"float": np.dtype("float32"), "double": np.dtype("float64")}
_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary")
_SIZE = b"lagpu_vertices"  # in the file's metadata: the number of vertices, as JSON


def parse(file: IO[bytes], budget: Budget, options: Options) -> Parsed:
    """Return the graph of a table."""
    name = budget.name
    table = opened(file, name)
    header, n = columns_of(table, options, name), vertices(table)
    titles = [title for title, _ in header]
    texts = [title for title, kind in header[:2] if _is_text(kind)]
    for title, kind in header:
        if kind_of(kind) is None and title not in texts:
            what = "no number" if title in titles[2:] else "no whole number and no text"
            fact = f"the column {title!r} has the type {str(kind)[:40]}, which is {what}"
            raise FileFormatError(f"read: {name}: {fact}.")
    kinds = {str(kind_of(kind)) for _, kind in header[:2]}
    whole = not texts and not kinds & {"bool", "float16", "float32", "float64"}
    if not whole and not options.renumber:
        raise FileFormatError(
            f"read: {name}: the columns {titles[0]!r} and {titles[1]!r} are not of whole numbers. "
            f"{NAMES_HINT}."
        )
    rows = table.metadata.num_rows
    unpacked, groups = 0, table.metadata.num_row_groups
    if texts:  # as the file says; pyarrow ends the process if the size of one column is damaged
        of_groups = (table.metadata.row_group(g).total_byte_size for g in range(groups))
        unpacked = sum(max(0, size) for size in of_groups)
    budget.require(max(56 * rows, unpacked), "its rows")
    file.seek(0)
    with damage_named(name):
        # Texts stay in their dictionaries, which are as small as they are in the file.
        found = opened(file, name, texts or None).read(columns=titles)
        columns = [found.column(title) for title in titles]
        missing = next((k for k, column in enumerate(columns) if column.null_count), None)
        if missing is not None:
            raise FileFormatError(
                f"read: {name}: the column {titles[missing]!r} has {columns[missing].null_count} "
                "missing values. Fill or drop them."
            )
        weights = reading.array_of(columns[2]) if len(columns) == 3 else None
        if weights is not None and weights.dtype == np.float16:
            weights = weights.astype(np.float32)
        # Of two types, both would become FP64.
        ids = None
        if options.renumber and (not whole or len(kinds) == 2):
            names = Names()
            u, v = (names.codes_of(budget, x, held=56 * rows) for x in columns[:2])
            (u, v, _), ids = names.ordered(Edges(u, v))
        else:
            u, v = map(reading.array_of, columns[:2])
    held = 8 * rows
    if options.renumber:
        return reading.graph_of(Edges(u, v, weights), budget, options, held=held, ids=ids)
    least, most = (min(u.min(initial=0), v.min(initial=0)), max(u.max(initial=0), v.max(initial=0)))
    if not 0 <= least <= most < 2**53:
        fact = f"vertex {least if least < 0 else most} is not a whole number 0, 1, 2, ..."
        raise FileFormatError(f"read: {name}: {fact} below 2**53. {NAMES_HINT}.")
    # Below 2**53, so that nothing wraps.
    u, v = (x.astype(np.int64) if x.dtype.kind == "u" else x for x in (u, v))
    return reading.graph_of(Edges(u, v, weights), budget, options, held=held, n=n)


def opened(file: Any, name: str, texts: list[str] | None = None) -> Any:
    """Return the table in a file, or at a path; only its footer is read."""
    # The columns `texts` will be read as dictionaries.
    module: Any = reading.needed("parquet", f"read: {name} is Parquet, and")
    with damage_named(name):
        table = module.ParquetFile(file, read_dictionary=texts)
        vertices(table)
    return table


def damage_named(name: str) -> AbstractContextManager[None]:
    """Turn errors of pyarrow into those of lagpu."""
    return reading.errors_named(f"read: {name} is no table of Parquet")


def columns_of(table: Any, options: Options, name: str) -> list[tuple[str, Any]]:
    """Return name and type of the columns of sources, targets, and weights if there are any."""
    header = list(table.schema_arrow.names)
    places = chosen(header, options.columns, name)
    return [(header[k], table.schema_arrow.field(k).type) for k in places]


def kind_of(kind: Any) -> np.dtype[Any] | None:
    """Return NumPy's type for one of pyarrow's numbers; None for all others."""
    return _NUMBERS.get(str(kind))


def vertices(table: Any) -> int:
    """Return the number of vertices that lagpu has written, or 0."""
    text = (table.schema_arrow.metadata or {}).get(_SIZE, b"0")
    count = json.loads(text)
    if type(count) is not int or count < 0:
        raise ValueError(f"{text[:20]!r} is not a number of vertices")
    return count


def _is_text(kind: Any) -> bool:
    words = str(kind)
    if words.startswith("dictionary"):
        return str(kind.value_type) in _TEXTS or kind_of(kind.value_type) is not None
    return words in _TEXTS


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write the columns ``source``, ``target``, and ``weight`` unless all values are True."""
    parquet = reading.needed("parquet", "write: Parquet")
    memory.require(40 * csc.nvals, "write", "Use .npz.")
    columns = dict(zip(("source", "target", "weight"), csc.entries(), strict=False))
    table = importlib.import_module("pyarrow").table(columns)
    parquet.write_table(table.replace_schema_metadata({_SIZE: json.dumps(csc.nrows)}), file)
