"""``lagpu check``, ``lagpu crosscheck`` and ``lagpu selftest``."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from lagpu import algorithms, backends, io
from lagpu import check as checkers
from lagpu import crosscheck as crosschecked
from lagpu.algorithms.inputs import source_vertex, source_vertices
from lagpu.backends.guard import overridden
from lagpu.backends.protocol import Backend
from lagpu.catalog import ALGORITHMS, FINDS, PROOFS
from lagpu.cli.commands import RESULTS, SHORTEST, Options
from lagpu.cli.console import busy, print_json, print_lines, print_written, show
from lagpu.cli.graphs import Begin, Names, load, require_no_device
from lagpu.errors import CrosscheckFailed, FileFormatError, InvalidValue, NotSupported
from lagpu.host.files import require_writable, write_json
from lagpu.io.files import read_vector

#: Searches by `Begin.kind` and by what they find.
SEARCHES = {
    "": FINDS | {"distances": "sssp"},
    "jointly": {"levels": "bfs_levels_joint"},
    "of each": {"levels": "bfs_levels_multi", "parents": "bfs_parents_multi"},
}
#: Algorithms without a source, by the option for a file with their result.
WHOLE = {row.option: row.name for row in ALGORITHMS if row.option}
#: Algorithms of ``lagpu crosscheck``, by their commands.
CROSSCHECKED = {row.command: row.name for row in ALGORITHMS if row.command}
_FROM_ONE = ("bfs", "sssp", "path")
_BESIDE_LEVELS = ("parents", "paths")
_OF_VERTICES = ("parents", "components", "strong")  # results whose values are vertices


def check(
    options: Options, source: str | None, sources: str | None, each: bool, as_json: bool,
    **results: Path | None,
) -> None:  # fmt: skip
    """Check the results in some files, and print the rules that hold, or raise at a broken one."""
    begin = Begin(source, sources, each)
    files = {name: path for name, path in results.items() if path is not None}
    if not files:
        *most, last = (f"--{name}" for name in RESULTS.split())
        raise InvalidValue(
            f"check: there is nothing to check. Give {', '.join(most)} or {last} with a file."
        )
    searched = [name for name in files if name in SEARCHES[""]]
    if begin != Begin() and not searched:
        option = "--source" if source is not None else "--sources and --each"
        raise InvalidValue(f"{option}: no given result is of a search. Leave it out.")
    if searched:
        begin.require_one("check")
        if not options.renumber:
            begin.start("check")
    searches = SEARCHES[begin.kind]
    for name in searched:
        if name not in searches:
            raise InvalidValue(f"--{name}: is for one source. Give --source 0.")
    alone = [*files] == ["distances"]  # a graph from a pipe cannot be read again
    A, names, _ = load(options, dup_op=SHORTEST if alone else None)
    start = begin.start("check", names) if searched else None
    lengths = load(options, dup_op=SHORTEST).A if "distances" in files and not alone else A
    if start is not None:
        (source_vertices if isinstance(start, list) else source_vertex)(A, start)
    found = {
        name: read_result(path, each and name in searches, names, name in _OF_VERTICES)
        for name, path in files.items()
    }
    reports: dict[str, Any] = {}
    with busy("checking"):
        for name in files:
            if name in searched:
                beside = name in _BESIDE_LEVELS and not begin.kind and "levels" in found
                more = (found["levels"],) if beside else ()
                weighted = lengths if name == "distances" else A
                reports[name] = PROOFS[searches[name]](weighted, start, found[name], *more)
            else:
                result = (found[name], None) if name == "sides" else found[name]
                reports[name] = PROOFS[WHOLE[name]](A, result)
    _show(options.graph, begin, names.shown(start), reports, as_json)


def read_result(path: Path, is_matrix: bool, names: Names, of_vertices: bool) -> Any:
    """Read a result from a file; its values must be numbers."""
    require_no_device(path)
    if is_matrix:
        found = io.read(path, backend="cpu", directed=True)
        _require_numbers(found.to_coo()[2], path)
        return found
    if names.ids is not None:
        words, values = read_vector(path, ids=True, texts=of_vertices)
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
    far: list[checkers.CheckReport] = []  # of the first search
    rules: dict[str, list[str]] = {}
    for name, report in reports.items():
        of_each = report if isinstance(report, tuple) else (report,)
        rows = [row for row in of_each if isinstance(row, checkers.CheckReport)]
        far, rules[name] = far or rows, list(rows[0].rules if rows else report)
    if far:
        found |= {"reached": sum(one.reached for one in far),
                  "depth": max(one.depth for one in far),
                  "edges_traversed": sum(one.edges for one in far)}  # fmt: skip
    if as_json:
        print_json(found | {"rules": rules})
        return
    for name, lines in rules.items():
        show(f"{name}: passed", *(f"  {rule}" for rule in lines))
    if far:
        show(f"{found['reached']:,} vertices reached, depth {found['depth']:,}")


def crosscheck(
    options: Options, algorithm: str, source: str | None, backends: str, output: str | None,
    target: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Crosscheck, print the report, prove the oracle's result; raise a failure at the end."""
    if algorithm not in CROSSCHECKED:
        raise InvalidValue(
            f"crosscheck: there is no algorithm {algorithm!r}. Use {', '.join(CROSSCHECKED)}."
        )
    if output is not None and algorithm != "bfs":
        raise InvalidValue(f"--output: {algorithm} has only one result. Leave it out.")
    if target is None and algorithm == "path":
        raise InvalidValue("--target: path needs it. Give --target 0.")
    takes = {"target": algorithm == "path", "source": algorithm in _FROM_ONE}
    for option, given in {"target": target, "source": source}.items():
        if given is not None and not takes[option]:
            raise InvalidValue(f"--{option}: {algorithm} does not take it. Leave it out.")
    name = CROSSCHECKED[algorithm] if output is None else SEARCHES[""][output]
    run, prove = getattr(algorithms, name), PROOFS[name]
    vertices = {"--source": source or "0"} if algorithm in _FROM_ONE else {}
    vertices |= {} if target is None else {"--target": target}
    is_random = algorithm == "independent"
    more = {"seed": options.seed or 0} if is_random else {}
    places = _places(backends, options.kernel, options.policy)

    def start(names: Names) -> list[int]:
        return [names.vertex(text, option) for option, text in vertices.items()]

    if not options.renumber:
        start(Names())
    dup_op = SHORTEST if algorithm == "sssp" else None
    A, names, _ = load(options, dup_op=dup_op, seed_for="the algorithm" if is_random else "")
    args = start(names)
    failed = None
    with busy(f"crosschecking on {backends}"):
        try:
            report = crosschecked(run, A, *args, backends=places, **more)
        except CrosscheckFailed as error:
            failed, report = error, error.report
    if as_json:
        print_json({"ok": report.ok, "graph": options.graph} | asdict(replace(report, result=None)))
    else:
        show(repr(report))
    if failed is not None:
        raise failed
    with busy("checking"):
        prove(A, *args, report.result)
        if len(places) == 1:  # of fused loops perhaps only the indices were compared
            prove(A, *args, run(A.to(places[0]), *args, **more))


def _places(names: str, kernel: str | None, policy: str | None) -> list[Backend]:
    """Return the backends; those with kernels are overridden to use the requested one."""
    words = [name.strip() for name in names.split(",")]
    if not all(words):
        what = "is empty" if not any(words) else f"{names!r} has an empty name"
        raise InvalidValue(f"--backends: {what}. Give names with commas, as in cpu,sim.")
    places = [backends.get(name) for name in words]
    for k, place in enumerate(places):
        if place in places[:k]:
            raise InvalidValue(
                f"--backends: {place.name} is compared with itself. Give two backends, or one "
                "backend once, whose fused loops are compared with its eager ones."
            )
    if kernel is None and policy is None:
        return places
    if not any(place.capabilities.kernels for place in places):
        option = "--kernel" if policy is None else "--policy"
        raise NotSupported(
            f"{option}: none of {', '.join(words)} has kernels to choose from. "
            f"Add gpu or sim to --backends, or leave out {option}."
        )
    return [overridden(x, kernel, policy) if x.capabilities.kernels else x for x in places]


def compile_kernels(backend: str, jobs: int | None) -> None:
    from lagpu.selftest.kernels import compile_all

    began = time.perf_counter()
    compile_all(backend, jobs or min(8, os.cpu_count() or 1))
    show(f"the kernels of all algorithms are compiled, in {time.perf_counter() - began:.0f} s")


def selftest(backend: str, quick: bool, jobs: int | None, json_file: Path | None) -> None:
    """Run the self-test, `quick` or whole, print its table, and exit with 1 if a case fails."""
    from lagpu import selftest as tests  # every case: much to import for the other commands

    require_writable(json_file, "selftest")
    report = tests.run(backend, quick=quick, jobs=jobs or 1)
    if json_file is not None:
        write_json(report, json_file, "selftest")
    totals = report["totals"]
    versions = {name: version or "missing" for name, version in report["versions"].items()}
    of = {"sources": report["sources_hash"][:16], "commit": report["commit"] or "unknown"}
    print_lines({"backend": report["backend"], **report["device"], **versions, **of})
    failed = (row for row in report["rows"] if not row["passed"])
    show(
        tests.table(report["rows"]),
        *(f"FAILED {row['group']}: {row['case']}: {row['detail']}" for row in failed),
        f"{totals['passed']} of {totals['cases']} passed, {totals['failed']} failed, "
        f"in {totals['seconds']} s",
    )
    print_written({"--json": json_file})
    if totals["failed"]:
        raise typer.Exit(1)
