"""``lagpu check`` and ``lagpu selftest``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import typer

from lagpu import check as checkers
from lagpu import io
from lagpu.algorithms.betweenness import is_directed
from lagpu.algorithms.inputs import source_vertex, source_vertices
from lagpu.cli.console import busy, console, print_json, tell_written
from lagpu.cli.graphs import load_named, require_no_device
from lagpu.cli.names import Names
from lagpu.cli.options import SHORTEST
from lagpu.cli.start import Begin
from lagpu.core.matrix import Matrix
from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io.files import read_named_vector, read_vector

# Checkers of searches from one source, by the option that names the file.
_FROM_ONE: dict[str, Callable[..., Any]] = {
    "levels": checkers.check_levels,
    "parents": checkers.check_parents,
    "paths": checkers.check_paths,
    "distances": checkers.check_distances,
}
_JOINTLY: dict[str, Callable[..., Any]] = {"levels": checkers.check_levels_joint}
_OF_EACH: dict[str, Callable[..., Any]] = {
    "levels": checkers.check_levels_multi,
    "parents": checkers.check_parents_multi,
}
_BESIDE_LEVELS = ("parents", "paths")


def _betweenness(A: Matrix, found: Any) -> Any:
    return checkers.check_betweenness(A, found, directed=is_directed(A))


def _strong(A: Matrix, found: Any) -> Any:
    return checkers.check_components(A, found, strong=True)


def _closeness(A: Matrix, found: Any) -> Any:
    return checkers.check_remoteness(A, found, "closeness")


def _harmonic(A: Matrix, found: Any) -> Any:
    return checkers.check_remoteness(A, found, "harmonic")


def prove_sides(A: Matrix, found: tuple[Any, Any]) -> Any:
    """Prove a result of `lagpu.algorithms.bipartite_sides`: sides, or an odd cycle."""
    sides, cycle = found
    if sides is None:
        return checkers.check_odd_cycle(A, cycle)
    return checkers.check_sides(A, sides)


#: Checkers of results without a source, by the option that names the file.
WHOLE: dict[str, Callable[[Matrix, Any], Any]] = {
    "components": checkers.check_components,
    "strong": _strong,
    "sides": checkers.check_sides,
    "cores": checkers.check_core_numbers,
    "order": checkers.check_topological_levels,
    "independent": checkers.check_independent_set,
    "triangles": checkers.check_triangles,
    "clustering": checkers.check_clustering,
    "pagerank": checkers.check_pagerank,
    "betweenness": _betweenness,
    "closeness": _closeness,
    "harmonic": _harmonic,
}


def prove(
    graph: str,
    begin: Begin,
    files: dict[str, Path],
    *,
    directed: bool | None,
    renumber: bool,
    seed: int | None,
    as_json: bool,
) -> None:
    """Check the results in some files, and print the rules that hold.

    Raises
    ------
    CheckFailed
        At the first broken rule.
    """
    if not files:
        *most, last = (f"--{name}" for name in (*_FROM_ONE, *WHOLE))
        raise InvalidValue(
            f"check: there is nothing to check. Give {', '.join(most)} or {last} with a file."
        )
    searched = [name for name in files if name in _FROM_ONE]
    if begin.is_given and not searched:
        option = "--source" if begin.source is not None else "--sources and --each"
        raise InvalidValue(f"{option}: no given result is of a search. Leave it out.")
    if searched:
        begin.require_one("check")
        if not renumber:  # wrong words are told before a graph is read
            begin.start("check")
    checks = {"": _FROM_ONE, "jointly": _JOINTLY, "of each": _OF_EACH}[begin.kind]
    for name in searched:
        if name not in checks:
            raise InvalidValue(f"--{name}: is for one source. Give --source 0.")
    how: dict[str, Any] = {"directed": directed, "renumber": renumber, "seed": seed}
    A, names = load_named(graph, "cpu", **how)
    start = begin.start("check", names) if searched else None
    lengths = A
    if "distances" in files:
        lengths = load_named(graph, "cpu", **how, dup_op=SHORTEST)[0]
    if start is not None:
        (source_vertices if isinstance(start, list) else source_vertex)(A, start)
    results = {
        name: _read(path, begin.each and name in checks, names, name in _OF_VERTICES)
        for name, path in files.items()
    }
    reports: dict[str, Any] = {}
    with busy("checking"):
        for name in searched:
            beside = name in _BESIDE_LEVELS and not begin.kind and "levels" in results
            more = (results["levels"],) if beside else ()
            weighted = lengths if name == "distances" else A
            reports[name] = checks[name](weighted, start, results[name], *more)
        for name in files.keys() - checks.keys():
            reports[name] = WHOLE[name](A, results[name])
    _show(graph, begin, names.shown(start), {name: reports[name] for name in files}, as_json)


# Results whose values are vertices.
_OF_VERTICES = ("parents", "components", "strong")


def _read(path: Path, is_matrix: bool, names: Names, of_vertices: bool) -> Any:
    """Return a result whose values are numbers; anything else is no result, right or wrong."""
    require_no_device(path)
    if is_matrix:
        found = io.read(path, backend="cpu", directed=True)
        _require_numbers(found.to_coo()[2], path)
        return found
    if names.ids is not None:
        words, values = read_named_vector(path, texts=of_vertices)
        if of_vertices:
            values = names.places(values.tolist(), path.name)
        indices = names.places(words.tolist(), path.name)
    else:
        indices, values = read_vector(path)
    _require_numbers(values, path)
    return indices, values


def _require_numbers(values: Any, path: Path) -> None:
    if values.dtype.kind not in "biuf":
        raise FileFormatError(f"read: {path.name}: values of type {values.dtype} are no numbers.")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise FileFormatError(f"read: {path.name}: a value is NaN, which is no number.")


def _show(graph: str, begin: Begin, start: Any, reports: dict[str, Any], as_json: bool) -> None:
    """Print the rules that hold, and the size and depth of the searches."""
    found: dict[str, Any] = {"graph": graph, "checked": True}
    if start is not None:
        found |= {"sources": start, "each": begin.each} if begin.kind else {"source": start}
    rows = [_rows(report) for report in reports.values()]
    far = next((row for row in rows if row), None)
    if far is not None:
        found |= {
            "reached": sum(one.reached for one in far),
            "depth": max(one.depth for one in far),
            "edges_traversed": sum(one.edges for one in far),
        }
    rules = {
        name: list(row[0].rules if row else report)
        for (name, report), row in zip(reports.items(), rows, strict=True)
    }
    if as_json:
        print_json(found | {"rules": rules})
        return
    out = console()
    for name, lines in rules.items():
        out.print(f"{name}: passed", markup=False)
        for rule in lines:
            out.print(f"  {rule}", markup=False, soft_wrap=True)
    if far is not None:
        out.print(f"{found['reached']:,} vertices reached, depth {found['depth']:,}")


def _rows(report: Any) -> list[checkers.CheckReport]:
    """Return the report of each search; an empty list for results that are not searches."""
    rows = report if isinstance(report, tuple) else (report,)
    return [row for row in rows if isinstance(row, checkers.CheckReport)]


def prove_installation(backend: str, json_file: Path | None, *, quick: bool = False) -> None:
    """Run the self-test, `quick` or whole, print its table, and exit with 1 if a case fails."""
    from lagpu import selftest
    from lagpu.host.files import require_writable, write_json

    require_writable(json_file, "selftest")
    report = selftest.run(backend, quick=quick)
    if json_file is not None:
        write_json(report, json_file, "selftest")
    selftest.show(report, console())
    tell_written({"--json": json_file})
    if report["totals"]["failed"]:
        raise typer.Exit(1)
