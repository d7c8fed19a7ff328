"""The five papers by number and by the names of their systems."""

from __future__ import annotations

from collections.abc import Sequence

from lagpu.errors import InvalidValue
from lagpu.papers.bfs2d import BFS2D
from lagpu.papers.experiment import Experiment, Paper
from lagpu.papers.hiragushi import HIRAGUSHI
from lagpu.papers.kepler import KEPLER
from lagpu.papers.turbobfs import TURBOBFS
from lagpu.papers.vbfs import VBFS

__all__ = ["PAPERS", "experiments_of", "paper_of"]

PAPERS = (HIRAGUSHI, VBFS, BFS2D, TURBOBFS, KEPLER)


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


def experiments_of(
    paper: Paper,
    *,
    table: str | None = None,
    figure: str | None = None,
    section: str | None = None,
) -> Sequence[Experiment]:
    """Return the experiments of a table, a figure or a section; without one all of the paper.

    Raises
    ------
    InvalidValue
        If several are given, or nothing of that number can be run; the message says what can.
    """
    given = {"table": table, "figure": figure, "section": section}
    asked = [f"{kind} {number}" for kind, number in given.items() if number is not None]
    if not asked:
        return paper.experiments
    if len(asked) > 1:
        raise InvalidValue(f"--{asked[1]}: --{asked[0]} names the experiment. Give one of them.")
    (part,) = asked
    found = [one for one in paper.experiments if one.part == part]
    if found:
        return found
    can = ", ".join(f"--{one.part}" for one in paper.experiments)
    why = paper.left_out.get(part)
    fact = f"{part} is left out: {why}" if why else f"there is no {part} to run"
    raise InvalidValue(f"paper {paper.number}: {fact}. Use {can}.")
