"""Prove many searches at once: each row of a matrix by the rules of one search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu.check.graph import CheckReport, Pattern
from lagpu.check.levels import check_levels
from lagpu.check.parents import check_parents
from lagpu.errors import CheckFailed, DimensionMismatch

__all__ = ["check_levels_multi", "check_parents_multi"]


def check_levels_multi(A: Any, sources: Any, levels: Any) -> tuple[CheckReport, ...]:
    """Prove that each row of a matrix has the distances from its source, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module.
    sources : list of int, (k,)
        Row r belongs to ``sources[r]``.
    levels : Matrix or SciPy sparse array, (k, n)
        Level of each reached vertex; a stored zero is a level.

    Returns
    -------
    tuple of CheckReport
        The report of `check_levels` for each row.

    Raises
    ------
    CheckFailed
        At the first broken rule, with row, source and vertex.
    IndexOutOfBound, DimensionMismatch
        If a source or the matrix does not fit the graph.
    """
    return _rows(check_levels, "check_levels_multi", A, sources, levels)


def check_parents_multi(A: Any, sources: Any, parents: Any) -> tuple[CheckReport, ...]:
    """Prove that each row of a matrix is a breadth-first tree from its source, or raise.

    Parameters
    ----------
    A, sources
        As in `check_levels_multi`.
    parents : Matrix or SciPy sparse array, (k, n)
        Parent of each reached vertex; a stored zero is a parent.

    Returns
    -------
    tuple of CheckReport
        The report of `check_parents` for each row.

    Raises
    ------
    CheckFailed, IndexOutOfBound, DimensionMismatch
        As `check_levels_multi`.
    """
    return _rows(check_parents, "check_parents_multi", A, sources, parents)


def _rows(
    check: Callable[..., CheckReport], name: str, A: Any, sources: Any, found: Any
) -> tuple[CheckReport, ...]:
    """Check a result row by row."""
    pattern = Pattern(A)
    wanted = (len(sources), pattern.n)
    if tuple(found.shape) != wanted:
        raise DimensionMismatch(
            f"{name}: the result has shape {tuple(found.shape)} != {wanted}, a row for each source."
        )
    if hasattr(found, "to_csr"):
        start, vertices, values = found.to_csr()
    else:
        rows = sp.csr_array(found)
        start, vertices, values = rows.indptr, rows.indices, rows.data
    reports = []
    for r, source in enumerate(np.asarray(sources).tolist()):
        one = slice(start[r], start[r + 1])
        try:
            reports.append(check(pattern, source, (vertices[one], values[one])))
        except CheckFailed as error:
            raise CheckFailed(f"{name}: row {r}, source {source}: {error}") from None
    return tuple(reports)
