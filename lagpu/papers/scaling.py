"""Graphs dealt to grids: larger ones with more pieces, or one graph in more and more."""

from __future__ import annotations

from collections.abc import Mapping

from lagpu.papers.experiment import Claim, Experiment, PaperGraph, Variant
from lagpu.papers.metrics import Metric

__all__ = ["strong", "weak"]

#: Rows and columns of the grids by pieces, as the papers have them; more than a host has are left
#: to the processes of a cluster.
_GRIDS = {1: "1x1", 2: "1x2", 4: "2x2", 8: "2x4", 16: "4x4"}
_QUICK = (1, 4)
_SEED = "the same generator's parameters with another seed, without repeated edges"
_PIECES = "A graph is run only where there are as many GPUs; with -b cpu or sim this host has all."


def weak(
    part: str,
    title: str,
    scale: int,
    factors: tuple[int, ...],
    variants: tuple[Variant, ...],
    metric: Metric,
    reported: Mapping[int, Mapping[str, float]],
    machine: str,
    claims: tuple[Claim, ...] = (),
    kind: str = "searches",
    notes: tuple[str, ...] = (),
) -> Experiment:
    """Return an experiment with ``2**scale`` vertices on one piece, and twice on twice as many."""
    graphs = tuple(
        _graph(scale + pieces.bit_length() - 1, factor, pieces, reported.get(pieces, {}))
        for factor in factors
        for pieces in _GRIDS
    )
    notes = (*notes, _PIECES)
    return Experiment(part, title, graphs, variants, metric, claims, 64, machine, kind, notes=notes)


def strong(
    part: str,
    title: str,
    scale: int,
    factor: int,
    variants: tuple[Variant, ...],
    metric: Metric,
    machine: str,
) -> Experiment:
    """Return an experiment with one graph on more and more pieces."""
    graphs = tuple(_graph(scale, factor, pieces, {}) for pieces in _GRIDS)
    return Experiment(part, title, graphs, variants, metric, (), 64, machine, notes=(_PIECES,))


def _graph(scale: int, factor: int, pieces: int, reported: Mapping[str, float]) -> PaperGraph:
    return PaperGraph(
        f"R-MAT S{scale} EF{factor}, {_GRIDS[pieces]}",
        f"kron:{scale}:{factor}",
        _SEED,
        f"kron:{5 + pieces.bit_length()}:{factor // 2}" if pieces in _QUICK else None,
        f"EF{factor}",
        reported,
        pieces=_GRIDS[pieces],
    )
