"""The five papers by number and by the names of their systems."""

from __future__ import annotations

from collections.abc import Sequence

from lagpu.errors import InvalidValue
from lagpu.papers.experiment import Experiment, Paper
from lagpu.papers.turbobfs import TURBOBFS

__all__ = ["PAPERS", "experiments_of", "paper_of"]

PAPERS = (TURBOBFS,)


def paper_of(name: str) -> Paper:
    """Return the paper of a number or a system's name.

    Raises
    ------
    InvalidValue
        If there is none; the message lists all.
    """
    for paper in PAPERS:
        if name.lower() in (paper.number, *paper.names):
            return paper
    known = ", ".join(f"{paper.number} ({' or '.join(paper.names)})" for paper in PAPERS)
    raise InvalidValue(f"paper: there is no {name!r}. Use {known}.")


def experiments_of(paper: Paper, table: str | None, figure: str | None) -> Sequence[Experiment]:
    """Return the experiments of a table or a figure; without either all of the paper.

    Raises
    ------
    InvalidValue
        If both are given, or nothing of that number can be run; the message says what can.
    """
    if table is None and figure is None:
        return paper.experiments
    if table is not None and figure is not None:
        raise InvalidValue("--figure: --table names the experiment. Give one of the two.")
    part = f"table {table}" if figure is None else f"figure {figure}"
    found = [one for one in paper.experiments if one.part == part]
    if found:
        return found
    can = ", ".join(f"--{one.part}" for one in paper.experiments)
    why = paper.left_out.get(part)
    fact = f"{part} is left out: {why}" if why else f"there is no {part} to run"
    raise InvalidValue(f"paper {paper.number}: {fact}. Use {can}.")
