"""Parquet tables of edges, read in shares: the pieces take the groups of rows by turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lagpu import dtypes
from lagpu.errors import LagpuError
from lagpu.io.budget import Budget
from lagpu.io.formats import parquet
from lagpu.io.reading import Edges, Extent, Options
from lagpu.io.slices.share import Chunk, Sliced

__all__ = ["sliced_parquet"]

_MOST = 1 << 20  # rows at a time
_LARGEST = 2**53  # vertices are below, as in the reader of whole files


def sliced_parquet(file: Path, options: Options, budget: Budget) -> Sliced | None:
    """Return a table of which pieces can read shares, or None.

    None also where the reader of whole files has something to say of its columns: vertices that are
    no whole numbers, a column that is not there, a damaged file, or a library that is missing.
    """
    try:
        table = parquet.opened(file, budget.name)
        columns = parquet.columns_of(table, options, budget.name)
    except LagpuError:
        return None
    kinds = [parquet.kind_of(kind) for _, kind in columns]
    if any(kind is None or kind.kind not in "iu" for kind in kinds[:2]):
        return None
    known = {of.numpy for of in dtypes.ALL}  # narrow ones are widened once they are added up
    if any(kind is None or kind not in known for kind in kinds[2:]):
        return None
    return _Table(table, [name for name, _ in columns], kinds, budget.name)


class _Table:
    """A table of edges; see `Sliced`.

    Parameters
    ----------
    table : pyarrow.parquet.ParquetFile
        The file.
    titles : list of str
        The columns of sources, targets, and weights if there are any.
    kinds : list of dtype
        Their types.
    name : str
        Name of the file in messages.
    """

    undirected, mirror, head = False, 0, 0

    def __init__(self, table: Any, titles: list[str], kinds: list[Any], name: str) -> None:
        self._table, self._titles, self._name = table, titles, name
        self.pattern = len(titles) == 2
        self.kind: np.dtype[Any] | None = None if self.pattern else kinds[2]
        self._vertices = parquet.vertices(table)
        groups = range(table.metadata.num_row_groups)
        self._rows = [table.metadata.row_group(g).num_rows for g in groups]

    def bytes_of(self, count: int) -> int:
        """See `Sliced`."""
        most = max((sum(self._rows[piece::count]) for piece in range(count)), default=0)
        return 48 * most

    def chunks(self, pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        """See `Sliced`."""
        for group in range(len(self._rows)):
            if group % count in pieces:
                with parquet.damage_named(self._name):
                    batches = self._table.iter_batches(_MOST, [group], self._titles)
                    for k, batch in enumerate(batches):
                        yield group % count, self._chunk(group << 32 | k, batch)

    def _chunk(self, key: int, batch: Any) -> Chunk:
        columns = [batch.column(batch.schema.get_field_index(title)) for title in self._titles]
        nothing = Edges.join([])
        if any(column.null_count for column in columns):
            return Chunk(key, 0, nothing, whole=True)
        u, v, *weights = (column.to_numpy(zero_copy_only=False) for column in columns)
        if len(u) and not 0 <= min(u.min(), v.min()) <= max(u.max(), v.max()) < _LARGEST:
            return Chunk(key, 0, nothing, whole=True)
        u, v = u.astype(np.int64), v.astype(np.int64)
        return Chunk(key, 0, Edges(u, v, weights[0] if weights else None))

    def shape(self, extent: Extent) -> tuple[int, int, Edges]:
        """See `Sliced`."""
        n = max(self._vertices, 1 + max(extent.top))
        return n, n, Edges.join([])
