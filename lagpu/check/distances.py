"""Prove distances over weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lagpu.check.graph import CheckReport, Graph, refuse
from lagpu.errors import CheckFailed

__all__ = ["DISTANCE_RULES", "check_distances", "edges"]

Array = np.ndarray[Any, Any]

DISTANCE_RULES = (
    "the source has distance 0",
    "an edge from a reached vertex ends at a reached vertex",
    "no edge is a shortcut: its end is at most its length farther than its begin",
    "a path from the source to each reached vertex is as long as the distance",
)


def check_distances(A: Any, source: int, distances: Any) -> CheckReport:
    """Prove that distances are the lengths of shortest paths from a source, or raise.

    Parameters
    ----------
    A : Matrix or SciPy sparse array, (n, n)
        Entries are lengths, zero included.
    source : int
        ``0 <= source < n``.
    distances : result, (n,)
        Distance of each reached vertex.

    Returns
    -------
    CheckReport
        `depth` is the largest number of edges of a shortest path, counting the path with fewest.

    Raises
    ------
    CheckFailed, IndexOutOfBound, DimensionMismatch
        As `check_levels`.

    Notes
    -----
    The rules of `DISTANCE_RULES` suffice: by 1 and 4 every distance is the length of a walk from
    the source, so it is not too small; by 1, 2 and 3, and induction along any walk, it is not too
    large, and no reachable vertex is left out. A sum of floats is rounded once, and compared
    exactly.
    """
    graph = Graph(A, source)
    distance, present = graph.dense(distances, "distances")
    name = "check_distances"
    if not present[graph.source] or distance[graph.source] != 0:
        found = distance[graph.source] if present[graph.source] else "none"
        raise CheckFailed(f"{name}: {DISTANCE_RULES[0]}: distance[{source}] is {found}, not 0.")
    rows, cols, lengths = edges(A)
    kept = present[rows]
    rows, cols, lengths = rows[kept], cols[kept], lengths[kept]
    missed = np.zeros(graph.n, bool)
    missed[cols[~present[cols]]] = True
    refuse(missed, f"{name}: {DISTANCE_RULES[1]}", lambda v: "no distance")
    through = distance[rows] + lengths
    short = np.zeros(graph.n, bool)
    short[cols[~(distance[cols] <= through)]] = True

    def shortcut(v: int) -> str:
        k = int(np.argmax((cols == v) & ~(distance[cols] <= through)))
        return f"distance {distance[v]}, but {through[k]} by way of {rows[k]}"

    refuse(short, f"{name}: {DISTANCE_RULES[2]}", shortcut)
    tight = distance[cols] == through
    steps = _steps(graph, rows[tight], cols[tight])
    refuse(
        present & ~np.isfinite(steps),
        f"{name}: {DISTANCE_RULES[3]}",
        lambda v: f"distance {distance[v]}, but no path from {source} is that long",
    )
    return CheckReport(DISTANCE_RULES, int(present.sum()), int(steps[present].max()), len(rows))


def edges(A: Any) -> tuple[Array, Array, Array]:
    """Return (rows, columns, lengths); integers and BOOL as INT64, so that True counts 1."""
    if hasattr(A, "to_coo"):
        rows, cols, lengths = A.to_coo()
    else:
        entries = sp.coo_array(A)
        rows, cols, lengths = entries.row, entries.col, entries.data
    return rows, cols, lengths if lengths.dtype.kind == "f" else lengths.astype(np.int64)


def _steps(graph: Graph, rows: Array, cols: Array) -> Array:
    """Return the number of edges from the source to each vertex, (n,), infinite if unreached.

    SciPy computes it by Dijkstra's algorithm.
    """
    pattern = sp.csr_array((np.ones(len(rows)), (rows, cols)), shape=(graph.n, graph.n))
    search: Any = csgraph.dijkstra  # SciPy's stubs lack csr_array here
    found: Array = search(pattern, indices=graph.source, unweighted=True)
    return found
