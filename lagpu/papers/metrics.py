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
    "SHARE",
    "Measured",
    "Metric",
    "energy",
    "energy_delay",
    "speedup",
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
    parts : tuple of float
        The part of each time that is compared, where there is one.
    """

    ms: tuple[float, ...]
    edges: tuple[int, ...]
    entries: int
    symmetric: bool
    joules: float | None = None
    parts: tuple[float, ...] = ()


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
    over : str
        The variant by whose value each value is divided; an empty string for none.
    """

    unit: str
    definition: str
    of: Callable[[Measured], float | None]
    more: bool = True
    over: str = ""


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
SHARE = Metric(
    "% of the time",
    "share of this part in the time of all searches, by the times of a trace",
    lambda found: 100 * sum(found.parts) / sum(found.ms),
)


def speedup(over: str) -> Metric:
    """Return the speed-up over a variant."""
    definition = f"mean time of {over} / mean time"
    return Metric("speed-up", definition, lambda found: 1 / fmean(found.ms), over=over)


def energy(over: str) -> Metric:
    """Return the energy of a search beside that of a variant."""
    definition = f"energy of a search / that of {over}, all power of the GPU"
    return Metric("energy (relative)", definition, lambda found: found.joules, False, over)


def energy_delay(over: str) -> Metric:
    """Return the energy-delay product of a search beside that of a variant."""

    def of(found: Measured) -> float | None:
        return None if found.joules is None else found.joules * fmean(found.ms)

    definition = f"energy * mean time / that of {over}, all power of the GPU"
    return Metric("EDP (relative)", definition, of, False, over)
