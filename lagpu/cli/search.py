"""``lagpu bfs``: measure a search, and show the cost of each level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from lagpu import algorithms
from lagpu.algorithms.inputs import source_vertex, source_vertices
from lagpu.cli.algorithms import Job
from lagpu.cli.check import SEARCHES
from lagpu.cli.commands import Options
from lagpu.cli.console import console, print_lines
from lagpu.cli.graphs import Begin, Names
from lagpu.cli.run import Command, Measured, load_and_time, verdict
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import InvalidValue
from lagpu.generators.load import Facts
from lagpu.host.fitting import FittingTable
from lagpu.observe.trace import Row, Trace, trace

Level = dict[str, Any]
Text = Callable[[list[Level]], str]  # the cell of one level, or of several together
_FIRST, _LAST = 24, 8  # rows of a long table
_WORDS = ("direction", "kernel")
_PHASES = ("expand", "share", "expansion", "sort", "fold", "update", "agree", "parents")


def bfs(
    options: Options,
    source: str | None,
    sources: str | None,
    each: bool,
    output: str,
    **given: Any,
) -> None:
    """Run the search, prove and save the result if requested, and print it."""
    Search(options, Begin(source, sources, each), str(output)).run(**given)


class Search(Command):
    """A search from one vertex, from the nearest of several, or from each of several."""

    def __init__(self, options: Options, begin: Begin, output: str) -> None:
        self.begin, self.output = begin, output
        name = SEARCHES[begin.kind].get(output, "")
        super().__init__(options, Job(name, of_vertices=output == "parents"))

    def require(self, save: Path | None, step_file: Path | None) -> None:
        """Raise for options that do not fit together."""
        begin = self.begin
        begin.require_one("bfs")
        if self.options.renumber and begin.each and save is not None:
            raise InvalidValue(
                "--save: a matrix has no place for names. Leave --each or --renumber out."
            )
        if not self.options.renumber:
            begin.start("bfs")
        if not self.job.algorithm:
            valid = "levels, or add --each for parents"
            valid = "levels or parents with --each" if begin.each else valid
            raise InvalidValue(
                f"--output: {self.output} is for one source. From several, use {valid}."
            )
        if begin.kind and step_file is not None:
            raise InvalidValue("--step: shows one search. Give --source, or leave it out.")
        if begin.each:
            self.saved_as = (".npz", ".mtx")
        if begin.each and save is not None and save.suffix not in self.saved_as:
            raise InvalidValue(
                f"--save: {save.name} cannot have a row for each source. Use .npz or .mtx."
            )

    def start(self, names: Names) -> tuple[Any, ...]:
        """Return the source, or the list of sources."""
        return (self.begin.start("bfs", names),)

    def require_vertices(self, A: Matrix, start: tuple[Any, ...]) -> None:
        """Raise for sources that the graph does not have."""
        (source_vertices if self.begin.kind else source_vertex)(A, *start)

    def measure(self, A: Matrix, start: tuple[Any, ...], facts: Facts) -> Measured:
        """Search to warm up (kernels compile), to be timed, to warm up again, and to be traced.

        A traced search that is fused runs another variant of the timed one's kernel: one that logs;
        or the same one, if that has no such variant.
        """
        self.timed(A, start)
        result, ms = self.timed(A, start)
        with trace() as cold:
            self.job.run(A, *start)
        with trace() as traced:
            self.job.run(A, *start)
        depth = _depth(A, start[0], traced)
        traversed = count = 0
        for vertices in _rows(result):
            reached = np.zeros(facts.vertices, bool)
            reached[vertices] = True
            traversed += facts.edges_from(reached)
            count += len(vertices)
        begin = {"sources": start[0], "each": self.begin.each}
        return Measured(
            result,
            ms,
            {
                **(begin if self.begin.kind else {"source": start[0]}),
                "output": self.output,
                "reached": count,
                "depth": depth,  # the product of this level is empty
            },
            {"edges_traversed": traversed, "mteps": traversed / ms / 1e3},
            {"levels": [_level(row) for row in _products(traced)]},
            traced,
            cold.totals().compile_ms,
        )

    def title(self, start: tuple[Any, ...]) -> str:
        """Return the title of a page of steps."""
        return f"{self.job.algorithm} from vertex {start[0]}"

    def head(self, found: dict[str, Any], measured: Measured) -> dict[str, object]:
        """Return the facts at the head of a trace."""
        return {
            "graph": found["graph"],
            "vertices": f"{found['vertices']:,}",
            "edges": f"{found['edges']:,} {found['edges_kind']}",
            "search": f"{found['output']} from {_begin(found)}, {found['reached']:,} reached",
            "backend": f"{found['backend']}, lagpu {found['versions']['lagpu']}",
            "untraced": f"{measured.ms:.3f} ms, after a warm-up",
            "compiling": f"{measured.compile_ms:.1f} ms in the traced run before this one",
        }

    def print(self, found: dict[str, Any]) -> None:
        """Print a search for a reader."""
        searches = len(found["sources"]) if found.get("each") else 1
        share = found["reached"] / (found["vertices"] * searches)
        times = load_and_time(found, found["output"])
        print_lines(
            {
                "graph": found["graph"],
                "vertices": f"{found['vertices']:,}",
                "edges": f"{found['edges']:,} {found['edges_kind']}",
                "reached": f"{found['reached']:,} ({share:.1%}) from {_begin(found)}",
                "depth": f"{found['depth']:,}",
                "load": times["load"],
                "time": times["time"] + "untraced, after a warm-up",
                "rate": f"{found['mteps']:,.1f} MTEPS: each of {found['edges_traversed']:,} edges "
                "once",
                "check": verdict(found),
            }
        )
        out = console()
        out.print(_table(found["levels"]))
        for table in _phases_tables(found["levels"]):
            out.print(table)


def _rows(result: Vector | Matrix) -> list[np.ndarray[Any, Any]]:
    """Return the vertices that each search has reached."""
    if isinstance(result, Vector):
        return [result.to_coo()[0]]
    start, vertices, _ = result.to_csr()
    return np.split(vertices, start[1:-1])


def _products(traced: Trace) -> list[Row]:
    return [row for row in traced.rows if row.method in ("mxv", "matrix_mxm")]


def _depth(A: Matrix, start: Any, traced: Trace) -> int:
    """Return the last level, levels that did not fit the log included."""
    if traced.totals().unlogged:  # no rows by level; another search has the same depth
        return int(algorithms.bfs_levels_multi(A, start).reduce("max").new().value)
    a_level = sum(row.level == 0 for row in traced.rows)
    return len(_products(traced)) + traced.totals().unrecorded // max(a_level, 1) - 1


def _begin(found: dict[str, Any]) -> str:
    """Return the sources of the search in words."""
    if "source" in found:
        return f"vertex {found['source']}"
    return f"{'each of' if found['each'] else 'the nearest of'} {len(found['sources'])} vertices"


def _level(row: Row) -> dict[str, Any]:
    return {
        "level": row.level,
        "frontier": row.nvals_in,
        "edges": row.edges,
        "direction": row.direction or None,
        "kernel": row.kernel or None,
        "reason": row.reason or None,
        "ms": row.kernel_ms,
        **({"phases": [asdict(phase) for phase in row.phases]} if row.phases else {}),
    }


def _table(levels: list[Level]) -> FittingTable:
    """Return the table of levels."""

    def count(name: str) -> Text:
        def text(several: list[Level]) -> str:
            known = [level[name] for level in several if level[name] is not None]
            return f"{sum(known):,}" if known or len(several) > 1 else "-"

        return text

    def word(name: str) -> Text:
        return lambda several: several[0][name] or "-" if len(several) == 1 else "..."

    by_level = all(level["level"] is not None for level in levels)
    what = "is for the product alone" if by_level else "is for the kernel, which keeps no log"
    columns: dict[str, Text] = {
        "frontier": count("frontier"),
        "edges examined": count("edges"),
        "direction": word("direction"),
        "kernel": word("kernel"),
        "ms": lambda several: f"{sum(level['ms'] for level in several):.3f}",
    }
    return _by_level(levels, columns, f"from a second, traced run; ms {what}")


def _phases_tables(levels: list[Level]) -> Iterator[FittingTable]:
    """Yield the tables of a grid's search: ms by phase or piece, and what was sent, by form."""

    def phases(several: list[Level]) -> list[dict[str, Any]]:
        return [phase for level in several for phase in level.get("phases", ())]

    def sent(several: list[Level]) -> list[dict[str, Any]]:
        return [message for phase in phases(several) for message in phase["sent"]]

    def ms(name: str) -> Text:
        def text(several: list[Level]) -> str:
            own = [phase["ms"] for phase in phases(several) if phase["name"] == name]
            return f"{sum(own):.3f}" if own else "-"

        return text

    def messages(form: str) -> Text:
        def text(several: list[Level]) -> str:
            own = [message for message in sent(several) if message["form"] == form]
            count, nbytes = (sum(message[x] for message in own) for x in ("messages", "bytes"))
            return f"{nbytes:,} in {count:,}" if own else "-"

        return text

    names = list(dict.fromkeys(phase["name"] for phase in phases(levels)))
    names.sort(key=lambda name: _PHASES.index(name) if name in _PHASES else len(_PHASES))
    if names:
        of = "phase" if names[0] in _PHASES else "piece"
        columns = {name: ms(name) for name in names}
        yield _by_level(levels, columns, f"ms of this process, by {of}")
    forms = sorted({message["form"] for message in sent(levels)})
    if forms:
        columns = {form: messages(form) for form in forms}
        yield _by_level(levels, columns, "bytes that this process sent, in messages, by form")


def _by_level(levels: list[Level], columns: dict[str, Text], caption: str) -> FittingTable:
    """Return a table with a row for each level, and one row for the middle of a long one."""
    table = FittingTable(caption=caption)
    for name in ("level", *columns):
        table.add_column(name, justify="left" if name in _WORDS else "right")
    groups = [[level] for level in levels]
    if len(levels) > _FIRST + _LAST + 1:
        groups[_FIRST:-_LAST] = [levels[_FIRST:-_LAST]]
    for group in groups:
        level = "all" if group[0]["level"] is None else str(group[0]["level"])
        label = level if len(group) == 1 else f"{len(group)} more"
        table.add_row(label, *(text(group) for text in columns.values()))
    return table
