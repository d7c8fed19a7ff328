"""The metrics of the papers, each by its own definition."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean, median
from typing import NamedTuple

from lagpu.bench.report import harmonic_gteps

__all__ = [
    "EDGES_BY_MEAN",
    "HARMONIC_TEPS",
    "MEAN_MS",
    "MEAN_TEPS",
    "MEDIAN_TEPS",
    "Measured",
    "Metric",
]


class Measured(NamedTuple):
    """A variant on a graph.

    Attributes
    ----------
    ms : tuple of float
        The time of each search.
    edges : tuple of int
        The edges that each has traversed, as Graph500 counts: an undirected one once.
    entries : int
        Stored entries of the matrix.
    symmetric : bool
        Whether the graph is undirected, so that an edge is two entries.
    joules : float, optional
        Energy of a search, the mean.
    """

    ms: tuple[float, ...]
    edges: tuple[int, ...]
    entries: int
    symmetric: bool
    joules: float | None = None


class Metric(NamedTuple):
    """A metric.

    Attributes
    ----------
    unit : str
        Its name in tables.
    definition : str
        What it is, in words.
    of : callable
        Its value for a `Measured`; None where that lacks what it needs.
    more : bool
        Whether more is better.
    """

    unit: str
    definition: str
    of: Callable[[Measured], float | None]
    more: bool = True


def _teps(found: Measured) -> list[float]:
    """Return the rates of the searches in 10**9 edges a second, an undirected edge once."""
    return [m / t / 1e6 for m, t in zip(found.edges, found.ms, strict=True)]


EDGES_BY_MEAN = Metric(
    "MTEPS",
    "stored entries / mean ms / 1000, whatever part of the graph was reached",
    lambda found: found.entries / fmean(found.ms) / 1e3,
)
MEDIAN_TEPS = Metric(
    "GTEPS (median)",
    "median of the rates of all searches",
    lambda found: median(_teps(found)),
)
MEAN_TEPS = Metric(
    "GTEPS (mean)",
    "mean of the rates of all searches, each undirected edge counted in both directions",
    lambda found: fmean(_teps(found)) * (2 if found.symmetric else 1),
)
HARMONIC_TEPS = Metric(
    "GTEPS (harmonic)",
    "harmonic mean of the rates of all searches, as Graph500",
    lambda found: harmonic_gteps(found.ms, found.edges),
)
MEAN_MS = Metric("ms (mean)", "mean time", lambda found: fmean(found.ms), more=False)
