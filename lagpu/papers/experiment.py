"""The records of which a paper's experiments are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lagpu.papers.metrics import Metric

__all__ = ["BEST", "Claim", "Experiment", "Paper", "PaperGraph", "Row", "Variant"]

Row = dict[str, Any]

#: Instead of a variant's name: whichever variant was best, as a paper reports it.
BEST = "best"


@dataclass(frozen=True)
class Variant:
    """One of the programs that a paper compares.

    Attributes
    ----------
    name : str
        The paper's name.
    output : str
        What it computes: ``levels``, ``parents``, ``paths``.
    kernel, policy : str, optional
        What it is in lagpu; a variant with neither is lagpu as it runs by itself.
    peer : str, optional
        Instead, a library of `lagpu.bench.peers`.
    note : str
        How it differs from the paper's program, if it does.
    part : str
        Where shares of the time are compared, its part: ``push``, ``pull``, or a phase of a search
        by a grid's policy (`lagpu.backends.profile.Phase`).
    fused : bool
        Whether its loop may run as one kernel, which pushes and pulls in ways of its own; else it
        runs product by product, as the paper's kernels do.
    ours : bool
        Whether it is lagpu's and not among the paper's variants.
    """

    name: str
    output: str = "levels"
    kernel: str | None = None
    policy: str | None = None
    peer: str | None = None
    note: str = ""
    part: str = ""
    fused: bool = False
    ours: bool = False

    @property
    def of_paper(self) -> bool:
        """Whether the paper proposes it: neither a library nor ours."""
        return self.peer is None and not self.ours


@dataclass(frozen=True)
class PaperGraph:
    """A graph of a paper.

    Attributes
    ----------
    name : str
        The paper's name.
    made : str, optional
        A text for `lagpu.generators`; None where only a file gives the graph.
    why : str
        How the graph that is made differs from the paper's: it is a stand-in. An empty string if
        it is made as the paper's is.
    quick : str, optional
        A small graph of its kind, for ``--quick``, which leaves out the others.
    kind : str
        The classes in which the paper puts it, such as ``regular``, with commas.
    reported : mapping of str to float
        The paper's figures in the metric, by variant or for `BEST`.
    size : tuple of float, optional
        The paper's vertices and stored entries.
    pieces : str
        Rows and columns of the grid that it is dealt to, such as ``2x2``; an empty string for none.
    """

    name: str
    made: str | None = None
    why: str = ""
    quick: str | None = None
    kind: str = ""
    reported: Mapping[str, float] = field(default_factory=dict)
    size: tuple[float, float] | None = None
    pieces: str = ""


class Claim(Protocol):
    """What a paper says of its figures."""

    def says(self, rows: Sequence[Row]) -> str:
        """Return a sentence with our figures beside the paper's; an empty string without any."""


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of a paper.

    Attributes
    ----------
    part : str
        ``table 2``, ``figure 4a`` or ``section 3.3``.
    title : str
        What it compares.
    graphs, variants
        Every variant runs on every graph.
    metric : Metric
        The paper's.
    claims : tuple of Claim
        What the paper concludes.
    roots : int
        Searches a graph.
    machine : str
        Where the paper measured.
    kind : str
        The way to measure, of `lagpu.papers.measure.WAYS`.
    energy : bool
        Whether the metric needs the energy of a search.
    notes : tuple of str
        What a reader must know to compare.
    """

    part: str
    title: str
    graphs: tuple[PaperGraph, ...]
    variants: tuple[Variant, ...]
    metric: Metric
    claims: tuple[Claim, ...] = ()
    roots: int = 64
    machine: str = ""
    kind: str = "searches"
    energy: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A paper.

    Attributes
    ----------
    number : str
        ``000`` to ``004``.
    names : tuple of str
        Its systems, as `lagpu paper` takes them.
    title, where : str
        Where to read it, by DOI.
    experiments : tuple of Experiment
        What can be run.
    left_out : mapping of str to str
        Tables and figures that cannot, and why.
    """

    number: str
    names: tuple[str, ...]
    title: str
    where: str
    experiments: tuple[Experiment, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
