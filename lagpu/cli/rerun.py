"""The body of ``lagpu paper``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lagpu.cli.console import console, tell_written, telling
from lagpu.errors import CheckFailed, InvalidValue
from lagpu.host.files import require_writable, write_json
from lagpu.papers.experiments import experiments_of, paper_of
from lagpu.papers.run import Request, lines_of, run, table_of

_QUICK = "--quick shows that everything runs and is right: its times say nothing of the paper's."


def rerun(name: str, part: dict[str, str | None], request: Request, json_file: Path | None) -> None:
    """Run experiments of a paper, print their tables, and write the report.

    Parameters
    ----------
    name : str
        A paper, by its number or its system.
    part : dict
        ``table figure section``, of which one at most is given.
    request : Request
        How.
    json_file : Path, optional
        The file of the report, which is written after each graph.

    Raises
    ------
    CheckFailed
        At the end, if any row is not checked.
    """
    paper = paper_of(name)
    experiments = experiments_of(paper, **part)
    require_writable(json_file, "paper")

    def keep(found: dict[str, Any]) -> None:
        if json_file is not None:
            write_json(found, json_file, "paper")

    with telling("beginning") as tell:
        found, refusals = run(paper, experiments, request, tell, keep)
    try:
        keep(found)
    finally:  # show the result even if writing it fails
        out = console()
        out.print(f"{paper.number}: {paper.title}. {paper.where}", soft_wrap=True)
        said: set[str] = set()
        for experiment in found["experiments"]:
            out.print(table_of(experiment) if experiment["rows"] else experiment["part"])
            new = [line for line in lines_of(experiment) if line not in said]
            said.update(new)
            out.print("\n".join(new), soft_wrap=True)
        if request.quick:
            out.print(_QUICK, soft_wrap=True)
    tell_written({"--json": json_file})
    if refusals:
        more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
        raise CheckFailed(f"paper: {refusals[0]}{more}")


def files_of(given: Sequence[str]) -> dict[str, str]:
    """Return the files of ``--graph NAME=FILE`` by name.

    Raises
    ------
    InvalidValue
        If one does not have this form.
    """
    found = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise InvalidValue(f"--graph: {text!r} does not have the form NAME=FILE.")
        found[name] = file
    return found
