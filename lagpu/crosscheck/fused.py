"""Compare an algorithm run as it comes, loops as one program, with the same run eagerly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lagpu.backends.base import Backend, Descriptor
from lagpu.crosscheck.compare import Unequal, compare
from lagpu.crosscheck.host import Entries
from lagpu.crosscheck.report import Difference, Place, Report, Row
from lagpu.crosscheck.rules import TOLERANCE, Rule, Written
from lagpu.dtypes import DType, lookup
from lagpu.errors import InvalidValue
from lagpu.matrix import Matrix
from lagpu.scalar import Scalar
from lagpu.selection import SelectionMatrix, TransposedSelection
from lagpu.transposed import TransposedMatrix
from lagpu.vector import Vector

__all__ = ["compare_results", "require_fusing"]


def require_fusing(place: Backend) -> None:
    """Raise InvalidValue for a backend that has only one way to run a loop."""
    if not hasattr(place, "last_loop"):
        raise InvalidValue(
            f"crosscheck: {place.name} runs loops in one way only, so there is nothing to compare "
            "it with. Give two backends."
        )


def compare_results(
    eager: Any, fused: Any, free_reads: bool, place: Backend, report: Report
) -> None:
    """Raise for the first difference of two results.

    Parameters
    ----------
    eager : object
        What the algorithm returned in lockstep, statement by statement.
    fused : object
        What it returned as it comes.
    free_reads : bool
        Whether the program read numbers that depend on what `any` chose.
    place : Backend
        Where both ran.
    report : Report
        Gets a row a result.
    """
    ways = f"{place.name} eager", f"{place.name} fused"
    left, right = list(_leaves(eager, "result")), list(_leaves(fused, "result"))
    if len(left) != len(right) and not free_reads:
        row = (None, f"{len(left)} parts", f"{len(right)} parts", "")
        raise report.failed(
            Difference(0, "", Place("", 0, "result"), -1, *ways, "result", 1, (row,))
        )
    for (name, x), (_, y) in zip(left, right, strict=False):
        free = getattr(getattr(x, "data", None), "free", free_reads and np.ndim(x) == 0)
        first, other = _entries(x), _entries(y)
        rule = Rule(tolerance=TOLERANCE.get(first.dtype.name, 0.0))
        if free:
            first, other = (e._replace(values=np.zeros_like(e.values)) for e in (first, other))
        by = Written("result", (), Descriptor(), None, first) if rule.tolerance else None
        found = compare(first, other, rule, by)
        where = Place("", 0, name)
        if isinstance(found, Unequal):
            raise report.failed(Difference(0, "", where, -1, *ways, name, found.count, found.rows))
        how = "indices alone, as any chose the values" if free else str(rule)
        report.rows.append(Row(where, name, f"eager and fused, {how}", 1))
    report.notes.append(f"the last loop ran {place.last_loop}")


def _leaves(x: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the vectors, matrices and numbers in a result, named."""
    if isinstance(x, (list, tuple)):
        for k, one in enumerate(x):
            yield from _leaves(one, f"{name}[{k}]")
    elif isinstance(x, dict):
        for key, one in x.items():
            yield from _leaves(one, f"{name}[{key!r}]")
    elif isinstance(x, SelectionMatrix | TransposedSelection):
        yield name, x.new()
    elif isinstance(x, TransposedMatrix):
        yield name, x.stored
    elif isinstance(x, (Vector, Matrix, Scalar, bool, int, float, np.generic)):
        yield name, x


def _entries(x: Any) -> Entries:
    if isinstance(x, Vector):
        return Entries(*x.to_coo(), x.dtype, x.size)
    if isinstance(x, Matrix):
        ptr, idx, values = x.to_csc()
        keys = np.repeat(np.arange(x.ncols), np.diff(ptr)) * x.nrows + idx
        return Entries(keys, values, x.dtype, x.nrows * x.ncols, x.nrows)
    value = x.value if isinstance(x, Scalar) else x
    dtype: DType = x.dtype if isinstance(x, Scalar) else lookup(np.asarray(x).dtype)
    where = np.zeros(int(value is not None), np.int64)
    return Entries(where, np.full(len(where), value or 0, dtype.numpy), dtype, 0)
