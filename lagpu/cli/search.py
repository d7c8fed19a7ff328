"""``lagpu bfs``: run, measure, prove and show a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lagpu import algorithms, backends, io, versions
from lagpu import check as checkers
from lagpu.algorithms.inputs import source_vertex, source_vertices
from lagpu.backends.guard import overridden
from lagpu.cli.console import busy, console, print_json, tell_written
from lagpu.cli.graphs import facts_of, timed_load
from lagpu.cli.pages import (
    SAVED,
    require_apart,
    require_file,
    require_numbers,
    require_small,
    write_steps,
    write_trace,
)
from lagpu.cli.start import Begin
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import CheckFailed, InvalidValue
from lagpu.generators.load import Facts
from lagpu.host.fitting import FittingTable
from lagpu.observe.trace import Row, Trace, trace

# By output: from one source, jointly from several, and from each of several.
_ALGORITHMS: dict[str, Callable[[Matrix, Any], Any]] = {
    "levels": algorithms.bfs_levels,
    "parents": algorithms.bfs_parents,
    "paths": algorithms.count_shortest_paths,
    "levels jointly": algorithms.bfs_levels_joint,
    "levels of each": algorithms.bfs_levels_multi,
    "parents of each": algorithms.bfs_parents_multi,
}
_CHECKERS: dict[str, Callable[..., Any]] = {
    "levels": checkers.check_levels,
    "parents": checkers.check_parents,
    "paths": checkers.check_paths,
    "levels jointly": checkers.check_levels_joint,
    "levels of each": checkers.check_levels_multi,
    "parents of each": checkers.check_parents_multi,
}
Array = np.ndarray[Any, Any]
_FIRST, _LAST = 24, 8  # rows of a long table
_PHASES = ("expand", "share", "expansion", "sort", "fold", "update", "agree", "parents")


@dataclass(frozen=True)
class Request:
    """The request of a user; see `lagpu bfs --help`."""

    graph: str
    begin: Begin
    backend: str
    output: str
    kernel: str | None
    policy: str | None
    orientation: str
    directed: bool | None
    renumber: bool
    seed: int | None

    @property
    def search(self) -> str:
        """The key of the algorithm.

        Raises
        ------
        InvalidValue
            If searches from several sources do not have this output.
        """
        found = f"{self.output} {self.begin.kind}".rstrip()
        if found not in _ALGORITHMS:
            each = self.begin.each
            valid = "levels or parents with --each" if each else "levels, or add --each for parents"
            raise InvalidValue(
                f"--output: {self.output} is for one source. From several, use {valid}."
            )
        return found


@dataclass(frozen=True, eq=False)
class _Run:
    """A search: its result, its time, and two traced runs, of which the first compiles."""

    result: Vector | Matrix
    ms: float
    cold: Trace
    traced: Trace
    depth: int  # the last level

    @property
    def products(self) -> list[Row]:
        """The rows of products."""
        return _products(self.traced)

    @property
    def rows(self) -> list[Array]:
        """The vertices that each search has reached."""
        if isinstance(self.result, Vector):
            return [self.result.to_coo()[0]]
        start, vertices, _ = self.result.to_csr()
        return np.split(vertices, start[1:-1])


def search(
    request: Request,
    *,
    check: bool,
    save: Path | None,
    as_json: bool,
    trace_file: Path | None = None,
    step_file: Path | None = None,
) -> None:
    """Run the search, prove and save the result if requested, and print it.

    Raises
    ------
    CheckFailed
        After printing, and without saving, if the result is wrong.
    LagpuError
        For wrong input, before anything runs.
    """
    require_file("--trace", trace_file, (".html", ".json"))
    require_file("--step", step_file, (".html",))
    require_apart(trace_file, step_file)
    several = request.begin.kind != ""
    request.begin.require_one("bfs")
    if request.renumber:
        _require_names_fit(request, save, step_file)
    else:  # wrong words are told before a graph is read
        request.begin.start("bfs")
    kind = request.search
    if several and step_file is not None:
        raise InvalidValue("--step: shows one search. Give --source, or leave it out.")
    if request.begin.each and save is not None and save.suffix not in (".npz", ".mtx"):
        raise InvalidValue(
            f"--save: {save.name} cannot have a row for each source. Use .npz or .mtx."
        )
    require_file("--save", save, (".npz", ".mtx") if request.begin.each else SAVED)
    place = overridden(backends.get(request.backend), request.kernel, request.policy)
    how: dict[str, Any] = {"directed": request.directed, "seed": request.seed}
    how |= {"renumber": request.renumber, "orientation": request.orientation}
    A, names, load_ms = timed_load(request.graph, place, **how)
    start = request.begin.start("bfs", names)
    if several:
        source_vertices(A, start)
    else:
        source_vertex(A, start)
    require_small(step_file, A)
    facts = facts_of(A)
    run = _measured(A, kind, start)
    refusal = _refusal(A, kind, start, run.result) if check else None
    found = _report(request, facts, run, load_ms, None if not check else refusal is None)
    found |= {"sources" if several else "source": names.shown(start)}
    if save is not None and refusal is None:
        if isinstance(run.result, Matrix):
            io.write(run.result, save)
        else:
            indices, values = run.result.to_coo()
            parents = request.output == "parents"
            io.write_vector(names.of(indices), names.of(values) if parents else values, save)
    if trace_file is not None:
        write_trace(run.traced, trace_file, _facts(found, run))
    if step_file is not None and isinstance(start, int):
        algorithm = _ALGORITHMS[kind]
        title = f"{algorithm.__name__} from vertex {start}"
        write_steps(lambda: algorithm(A, start), title, A, request.graph, step_file)
    if as_json:
        print_json(found)
    else:
        _print(found)
    saved = save if refusal is None else None
    files = {"--save": saved, "--trace": trace_file, "--step": step_file}
    tell_written(files, as_json=as_json)
    if refusal is not None:
        raise refusal


def _require_names_fit(request: Request, save: Path | None, step_file: Path | None) -> None:
    """Raise if a file would show vertices by numbers that the user does not know."""
    require_numbers(step_file, request.renumber)
    if request.begin.each and save is not None:
        raise InvalidValue(
            "--save: a matrix has no place for names. Leave --each or --renumber out."
        )


def _measured(A: Matrix, kind: str, start: Any) -> _Run:
    """Search to warm up (kernels compile), to be timed, to warm up again, and to be traced.

    A traced search that is fused runs another variant of the timed one's kernel: one that logs; or
    the same one, if that has no such variant.
    """
    algorithm = _ALGORITHMS[kind]
    with busy(f"searching on {A.backend.name}"):
        _wait(algorithm(A, start))
        begin = time.perf_counter()
        result = algorithm(A, start)
        _wait(result)
        ms = (time.perf_counter() - begin) * 1e3
        with trace() as cold:
            algorithm(A, start)
        with trace() as traced:
            algorithm(A, start)
        depth = _depth(A, start, traced)
    return _Run(result, ms, cold, traced, depth)


def _products(traced: Trace) -> list[Row]:
    return [row for row in traced.rows if row.method in ("mxv", "matrix_mxm")]


def _depth(A: Matrix, start: Any, traced: Trace) -> int:
    """Return the last level, levels that did not fit the log included."""
    if traced.totals().unlogged:  # no rows by level; another search has the same depth
        return int(algorithms.bfs_levels_multi(A, start).reduce("max").new().value)
    a_level = sum(row.level == 0 for row in traced.rows)
    return len(_products(traced)) + traced.totals().unrecorded // max(a_level, 1) - 1


def _wait(result: Vector | Matrix) -> None:
    if isinstance(result, Vector):  # the loop has counted the entries of a matrix
        result.wait()


def _facts(found: dict[str, Any], run: _Run) -> dict[str, object]:
    """Return the facts at the head of a trace."""
    return {
        "graph": found["graph"],
        "vertices": f"{found['vertices']:,}",
        "edges": f"{found['edges']:,} {found['edges_kind']}",
        "search": f"{found['output']} from {_begin(found)}, {found['reached']:,} reached",
        "backend": f"{found['backend']}, lagpu {found['versions']['lagpu']}",
        "untraced": f"{run.ms:.3f} ms, after a warm-up",
        "compiling": f"{run.cold.totals().compile_ms:.1f} ms in the traced run before this one",
    }


def _begin(found: dict[str, Any]) -> str:
    """Return the sources of the search in words."""
    if "source" in found:
        return f"vertex {found['source']}"
    return f"{'each of' if found['each'] else 'the nearest of'} {len(found['sources'])} vertices"


def _refusal(
    A: Matrix, kind: str, start: int | list[int], result: Vector | Matrix
) -> CheckFailed | None:
    with busy(f"checking {kind}"):
        try:
            _CHECKERS[kind](A, start, result)
        except CheckFailed as error:
            return error
    return None


def _report(
    request: Request, facts: Facts, run: _Run, load_ms: float, checked: bool | None
) -> dict[str, Any]:
    traversed, count, products = 0, 0, run.products
    for vertices in run.rows:
        reached = np.zeros(facts.vertices, bool)
        reached[vertices] = True
        traversed += facts.edges_from(reached)
        count += len(vertices)
    begin: dict[str, Any] = {"source": None}  # the caller fills in how they are shown
    if request.begin.kind:
        begin = {"sources": None, "each": request.begin.each}
    return {
        "graph": request.graph,
        "vertices": facts.vertices,
        "edges": facts.edges,
        "edges_kind": facts.kind,
        **begin,
        "output": request.output,
        "reached": count,
        "depth": run.depth,  # the product of this level is empty
        "load_ms": load_ms,
        "ms": run.ms,
        "edges_traversed": traversed,
        "mteps": traversed / run.ms / 1e3,
        "backend": run.result.backend.name,
        "checked": checked,
        "levels": [_level(row) for row in products],
        "versions": versions.versions(),
    }


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


def _print(found: dict[str, Any]) -> None:
    out = console()
    verdict = {None: "not requested (--check)", True: "passed", False: "FAILED"}[found["checked"]]
    rows = len(found["sources"]) if found.get("each") else 1
    share = found["reached"] / (found["vertices"] * rows)
    facts = {
        "graph": found["graph"],
        "vertices": f"{found['vertices']:,}",
        "edges": f"{found['edges']:,} {found['edges_kind']}",
        "reached": f"{found['reached']:,} ({share:.1%}) from {_begin(found)}",
        "depth": f"{found['depth']:,}",
        "load": f"{found['load_ms']:,.3f} ms to make or read the graph and bring it to "
        f"{found['backend']}",
        "time": f"{found['ms']:,.3f} ms for {found['output']} on {found['backend']}, "
        "untraced, after a warm-up",
        "rate": f"{found['mteps']:,.1f} MTEPS: each of {found['edges_traversed']:,} edges once",
        "check": verdict,
    }
    for name, text in facts.items():
        out.print(f"{name:>8}  {text}", markup=False, soft_wrap=True)
    out.print(_table(found["levels"]))
    for table in _phases_tables(found["levels"]):
        out.print(table)


def _table(levels: list[dict[str, Any]]) -> FittingTable:
    """Return the table of levels, with one row for the middle of a long one."""
    by_level = all(level["level"] is not None for level in levels)
    what = "is for the product alone" if by_level else "is for the kernel, which keeps no log"
    table = FittingTable(caption=f"from a second, traced run; ms {what}")
    for name in ("level", "frontier", "edges examined"):
        table.add_column(name, justify="right")
    table.add_column("direction")
    table.add_column("kernel")
    table.add_column("ms", justify="right")
    _add_rows(table, levels, _cells, _summary)
    return table


def _add_rows(
    table: FittingTable,
    levels: list[dict[str, Any]],
    cells: Callable[[dict[str, Any]], Iterable[str]],
    summary: Callable[[list[dict[str, Any]]], Iterable[str]],
) -> None:
    short = len(levels) <= _FIRST + _LAST + 1
    for level in levels if short else levels[:_FIRST]:
        table.add_row(*cells(level))
    if not short:
        table.add_row(*summary(levels[_FIRST:-_LAST]))
        for level in levels[-_LAST:]:
            table.add_row(*cells(level))


def _phases_tables(levels: list[dict[str, Any]]) -> Iterator[FittingTable]:
    """Yield the tables of a grid's search: ms by phase or piece, and what was sent, by form."""
    phases = _phases(levels)
    if not phases:
        return

    def ms(several: list[dict[str, Any]], name: str) -> str:
        own = [phase["ms"] for phase in _phases(several) if phase["name"] == name]
        return f"{sum(own):.3f}" if own else "-"

    def messages(several: list[dict[str, Any]], form: str) -> str:
        own = [sent for sent in _sent(several) if sent["form"] == form]
        count, nbytes = (sum(sent[x] for sent in own) for x in ("messages", "bytes"))
        return f"{nbytes:,} in {count:,}" if own else "-"

    names = list(dict.fromkeys(phase["name"] for phase in phases))
    names.sort(key=lambda name: _PHASES.index(name) if name in _PHASES else len(_PHASES))
    of = "phase" if names[0] in _PHASES else "piece"
    forms = {sent["form"] for sent in _sent(levels)}
    yield _by_level(levels, names, ms, f"ms of this process, by {of}")
    if forms:
        yield _by_level(
            levels, sorted(forms), messages, "bytes that this process sent, in messages, by form"
        )


def _phases(levels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [phase for level in levels for phase in level.get("phases", ())]


def _sent(levels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [sent for phase in _phases(levels) for sent in phase["sent"]]


def _by_level(
    levels: list[dict[str, Any]],
    names: list[str],
    text: Callable[[list[dict[str, Any]], str], str],
    caption: str,
) -> FittingTable:
    """Return a table with a row for each level, whose cells are the texts of some names."""
    table = FittingTable(caption=caption)
    for name in ("level", *names):
        table.add_column(name, justify="right")

    def cells(level: dict[str, Any]) -> list[str]:
        return [str(level["level"]), *(text([level], name) for name in names)]

    def summary(several: list[dict[str, Any]]) -> list[str]:
        return [f"{len(several)} more", *(text(several, name) for name in names)]

    _add_rows(table, levels, cells, summary)
    return table


def _cells(level: dict[str, Any]) -> Iterable[str]:
    edges = level["edges"]
    frontier = level["frontier"]
    return (
        "all" if level["level"] is None else str(level["level"]),
        "-" if frontier is None else f"{frontier:,}",
        "-" if edges is None else f"{edges:,}",
        level["direction"] or "-",
        level["kernel"] or "-",
        f"{level['ms']:.3f}",
    )


def _summary(levels: list[dict[str, Any]]) -> Iterable[str]:
    """Return one row for many levels, with their sums."""
    return (
        f"{len(levels)} more",
        f"{sum(level['frontier'] for level in levels):,}",
        f"{sum(level['edges'] or 0 for level in levels):,}",
        "...",
        "...",
        f"{sum(level['ms'] for level in levels):.3f}",
    )
