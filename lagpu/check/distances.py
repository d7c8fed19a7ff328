"""Prove distances over weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.check.graph import CheckReport, Graph, refuse, weighted
from lagpu.check.slices import Edges
from lagpu.errors import CheckFailed

__all__ = ["DISTANCE_RULES", "check_distances"]

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
    edges = weighted(A)
    begun = edges.at_ends(lambda e: present[e.begin], np.logical_or, False)
    refuse(begun & ~present, f"{name}: {DISTANCE_RULES[1]}", lambda v: "no distance")

    def through(e: Edges) -> Array:
        found: Array = distance[e.begin] + e.lengths
        return found

    def is_short(e: Edges) -> Array:
        return present[e.begin] & ~(distance[e.end] <= through(e))

    def shortcut(v: int) -> str:
        u = edges.first(lambda e: is_short(e) & (e.end == v))[v]
        way = edges.lengths(u, v).min()
        return f"distance {distance[v]}, but {distance[u] + way} by way of {u}"

    short = edges.at_ends(is_short, np.logical_or, False)
    refuse(short, f"{name}: {DISTANCE_RULES[2]}", shortcut)
    tight = edges.along(lambda e: present[e.begin] & (distance[e.end] == through(e)))
    steps = tight.search(np.array([graph.source]))
    refuse(
        present & (steps == graph.unreached),
        f"{name}: {DISTANCE_RULES[3]}",
        lambda v: f"distance {distance[v]}, but no path from {source} is that long",
    )
    reached = edges.total(lambda e: present[e.begin])
    return CheckReport(DISTANCE_RULES, int(present.sum()), int(steps[present].max()), reached)
