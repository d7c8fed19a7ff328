"""``lagpu bench``, ``lagpu graph500`` and ``lagpu paper``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lagpu.bench import algorithms, graph500, suite, zoo
from lagpu.bench.graphs import SMALL_SUITE, SUITE
from lagpu.bench.harness import machine_line
from lagpu.cli.commands import Forms, Output
from lagpu.cli.console import busy, print_written, show
from lagpu.errors import CheckFailed, InvalidValue
from lagpu.host.files import require_writable, write_json
from lagpu.papers.experiments import PaperGraph, experiments_of, on_gpus, paper_of
from lagpu.papers.run import Request, lines_of, run, table_of

Report = dict[str, Any]
_QUICK = "--quick shows that everything runs and is right: its times say nothing about the paper's."


def _measure(
    what: str, file: Path | None, work: Callable[..., tuple[Report, Sequence[str]]],
    show_report: Callable[[Report], None], *, written: bool = True,
) -> None:  # fmt: skip
    """Run a measurement, write its report, print it, and refuse what is not checked."""
    # `work` is called with two functions: one that shows what runs, and one that writes the report,
    # for measurements that write it after each graph.
    require_writable(file, what)

    def keep(found: Report) -> None:
        if file is not None:
            write_json(found, file, what)

    with busy("beginning") as say:
        found, refusals = work(say, keep)
    try:
        keep(found)
    finally:  # show the result even if writing it fails
        show_report(found)
    if written:
        print_written({"--json": file})
    if refusals:
        more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
        raise CheckFailed(f"{what}: {refusals[0]}{more}")


def bench(
    graphs: Sequence[str] | None, backend: Sequence[str] | None, mode: str | None,
    output: Sequence[str] | None, policy: Sequence[str] | None, orientation: str,
    algorithm: Sequence[str] | None, peers: Sequence[str] | None, seed: int | None, renumber: bool,
    json_file: Path | None, **given: Any,
) -> None:  # fmt: skip
    times = {name: given.pop(name) for name in ("repeats", "seconds", "limit", "budget")}
    csc = orientation if orientation == Forms.CSC else None
    chosen = {"mode": mode, "output": output, "policy": policy, "orientation": csc, **given}
    common: dict[str, Any] = {"peers": peers or (), "seed": seed, "renumber": renumber}
    if algorithm:
        _refuse_options("without --algorithm", chosen)
        places = tuple(backend or ("auto", "cpu"))
        common |= {name: value for name, value in times.items() if value is not None}
        family = algorithms.Plan(graphs or (), algorithm, places, **common)

        def show_family(found: Report) -> None:
            show(
                *algorithms.tables(found["rows"]),
                "ms until the device has ended, device time in brackets; ? if no other system "
                f"confirms the answer; {machine_line(found)}",
            )

        _measure("bench", json_file, partial(algorithms.run, family), show_family)
        return
    _refuse_options("with --algorithm", times)
    if graphs and zoo.scale_of(graphs[0]) is not None:
        roots, outputs = chosen.pop("roots"), chosen.pop("output") or [Output.LEVELS]
        rest = {**chosen, **common, "renumber": renumber or None, "peers": peers or None}
        _refuse_options("without zoo", rest)
        (place, *more), name = backend or ["auto"], graphs[0]
        if len(graphs) + len(more) > 1:
            raise InvalidValue("bench zoo: takes one backend, and no other graph. Leave them out.")

        def show_zoo(found: Report) -> None:
            what = f"At the slowest root, by {found['cost']}; {machine_line(found)}"
            show(zoo.table(found["rows"]), what)

        searched = partial(zoo.run, name, place, [*map(str, outputs)], roots, show=show)
        _measure("bench", json_file, searched, show_zoo)
        return
    plan = suite.Plan(
        graphs or (), tuple(dict.fromkeys(backend or ["auto"])),
        mode=None if mode is None else str(mode),
        outputs=tuple(dict.fromkeys(map(str, output or [Output.LEVELS]))),
        policies=tuple(dict.fromkeys(policy or ())), orientation=str(orientation),
        **common, **given,
    )  # fmt: skip

    def show_rows(found: Report) -> None:
        show(
            suite.table(found["rows"]),
            "ms is device time if there is a device, wall ms ends when the device has ended; "
            f"{machine_line(found)}",
        )
        if not graphs and {row["graph"] for row in found["rows"]} <= {*SMALL_SUITE}:
            show(
                "These are small graphs, since no GPU takes part. On one, the default is "
                f"{' '.join(SUITE)}; any of them can be named here too."
            )

    _measure("bench", json_file, lambda say, _: suite.run(plan, say), show_rows)


def _refuse_options(when: str, options: dict[str, Any]) -> None:
    """Raise for an option of another kind of measurement."""
    for name, value in options.items():
        if value not in (None, []):
            raise InvalidValue(f"--{name}: is only for lagpu bench {when}. Leave it out.")


def run_graph500(json_file: Path | None, **how: Any) -> None:
    """Run Graph500, print the required fields, and write the report unless a search is invalid."""
    _measure(
        "graph500", json_file, lambda say, _: (graph500.run(**how, say=say), ()),
        lambda found: print("\n".join(graph500.lines(found["fields"]))), written=False,
    )  # fmt: skip


def run_paper(
    name: str, table: str | None, figure: str | None, section: str | None, gpus: int | None,
    files: Sequence[str] | None, only: Sequence[str] | None, memory: float | None,
    seconds: float | None, json_file: Path | None, **how: Any,
) -> None:  # fmt: skip
    """Run experiments of a paper, print their tables, and write the report after each graph."""
    paper = paper_of(name)
    experiments = experiments_of(paper, table=table, figure=figure, section=section)
    if gpus is not None:
        experiments = on_gpus(experiments, gpus)
    sources = _files_of(files or (), [graph for one in experiments for graph in one.graphs])
    if memory is not None and not 0 < memory < 1e9:
        raise InvalidValue(f"--memory: {memory:g} GB. Give more than 0, as 12.")
    limit = None if memory is None else int(memory * 1e9)
    most = math.inf if seconds is None else seconds
    request = Request(files=sources, only=tuple(only or ()), memory=limit, seconds=most, **how)

    def show_tables(found: Report) -> None:
        show(f"{paper.number}: {paper.title}. {paper.where}")
        said: set[str] = set()
        for experiment in found["experiments"]:
            new = [line for line in lines_of(experiment) if line not in said]
            said.update(new)
            show(table_of(experiment) if experiment["rows"] else experiment["part"], "\n".join(new))
        if request.quick:
            show(_QUICK)

    _measure("paper", json_file, partial(run, paper, experiments, request), show_tables)


def _files_of(given: Sequence[str], graphs: Sequence[PaperGraph]) -> dict[str, str]:
    """Return the files of ``--graph NAME=FILE`` and ``--graph FOLDER`` by the paper's name."""
    # A file in a folder, or in one below, is known by its name in the SuiteSparse collection, up
    # to its first dot; ``-`` and ``_`` are the same.
    found = {}
    for text in given:
        name, equals, file = text.partition("=")
        if Path(text).is_dir():
            below = sorted(Path(text).rglob("*.*"))
            files = {_key(x.name.partition(".")[0]): str(x) for x in below}
            here = {x.name: files[_key(x.file)] for x in graphs if _key(x.file) in files}
            if not here:
                names = ", ".join(dict.fromkeys(graph.file for graph in graphs))
                raise InvalidValue(f"--graph: {text} has no file of {names}.")
            found.update(here)
        elif name and equals and file:
            found[name] = file
        else:
            raise InvalidValue(f"--graph: {text!r} is no folder, and no NAME=FILE.")
    return found


def _key(name: str) -> str:
    return name.casefold().replace("_", "-")
