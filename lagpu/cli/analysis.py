"""Run an algorithm on a graph; time, prove, show and save the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lagpu import algorithms, backends, io, versions
from lagpu.backends.guard import overridden
from lagpu.backends.processes import of_all
from lagpu.cli.console import busy, console, print_json, tell_written
from lagpu.cli.graphs import facts_of, timed_load
from lagpu.cli.names import Names
from lagpu.cli.pages import SAVED, require_file, require_numbers, require_small, write_steps
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import CheckFailed
from lagpu.host.fitting import FittingTable

# The longest run that is repeated, to be timed without what only the first one does; and where
# that compiles kernels.
_AGAIN_MS, _AGAIN_COMPILED_MS = 1000.0, 10_000.0
_TOP = 10
_HEADINGS = {"farthest": "distance"}


@dataclass(frozen=True)
class Place:
    """The graph and the backend: options that all commands share."""

    graph: str
    backend: str
    kernel: str | None
    policy: str | None
    orientation: str
    directed: bool | None
    seed: int | None
    renumber: bool


@dataclass(frozen=True, eq=False)
class Job:
    """The algorithm of a command, with its proof and its output.

    Attributes
    ----------
    name : str
        Name of the algorithm.
    run : callable
        Returns the result for (matrix, *vertices).
    prove : callable
        Checks (matrix, result, *vertices), raises `CheckFailed`.
    tell : callable
        Returns the facts to print of (result, *vertices); a list of pairs is a ranking of vertices.
    vector : callable
        Returns the vector to save of a result.
    vertices : dict
        The vertices that the user names, by option.
    of_vertices : bool
        Whether the values of the result are vertices.
    dup_op : str, optional
        Combines the weights of an edge that a file gives twice; by default they are summed.
    seed_for : str
        What the seed is for, besides a generated graph.
    """

    name: str
    run: Callable[..., Any]
    prove: Callable[..., Any]
    tell: Callable[..., dict[str, Any]]
    vector: Callable[[Any], Vector | None] = lambda result: result
    dup_op: str | None = None
    seed_for: str = ""
    vertices: dict[str, str] = field(default_factory=dict)
    of_vertices: bool = False


def analyse(
    place: Place,
    job: Job,
    *,
    check: bool,
    save: Path | None,
    as_json: bool,
    step_file: Path | None = None,
) -> None:
    """Run the job, prove and save the result if requested, and print it.

    Raises
    ------
    CheckFailed
        After printing, and without saving, if the result is wrong.
    LagpuError
        For wrong input.
    """
    require_file("--save", save, SAVED)
    require_file("--step", step_file, (".html",))
    require_numbers(step_file, place.renumber)
    where = overridden(backends.get(place.backend), place.kernel, place.policy)
    if not place.renumber:  # wrong words are told before a graph is read
        _at(job, Names())
    how: dict[str, Any] = {"directed": place.directed, "seed": place.seed, "dup_op": job.dup_op}
    how |= {"renumber": place.renumber, "seed_for": job.seed_for}
    how |= {"orientation": place.orientation}
    A, names, load_ms = timed_load(place.graph, where, **how)
    require_small(step_file, A)
    at = _at(job, names)
    facts = facts_of(A)
    result, ms, warm = _timed(A, job, at)
    refusal = _refusal(A, job, result, at) if check else None
    found: dict[str, Any] = {
        "graph": place.graph,
        "vertices": facts.vertices,
        "edges": facts.edges,
        "edges_kind": facts.kind,
        "algorithm": job.name,
        **_named(job.tell(result, *at), names),
        "load_ms": load_ms,
        "ms": ms,
        "warm": warm,
        "backend": A.backend.name,
        "checked": None if not check else refusal is None,
        "versions": versions.versions(),
    }
    entries = job.vector(result)
    written = save if refusal is None and entries is not None else None
    if written is not None and entries is not None:
        indices, values = entries.to_coo()
        values = names.of(values) if job.of_vertices else values
        io.write_vector(names.of(indices), values, written)
    if as_json:
        print_json(found)
    else:
        _print(found)
    if step_file is not None:
        write_steps(lambda: job.run(A, *at), job.name, A, place.graph, step_file)
    tell_written({"--save": written, "--step": step_file}, as_json=as_json)
    if refusal is not None:
        raise refusal


def _at(job: Job, names: Names) -> tuple[int, ...]:
    """Return the vertices that the user names."""
    return tuple(names.vertex(text, option) for option, text in job.vertices.items())


_VERTICES = ("source", "target", "begin", "end", "path", "odd_cycle")


def _named(found: dict[str, Any], names: Names) -> dict[str, Any]:
    """Return facts with what stands for each vertex."""
    return {
        name: [[names.shown(pair[0]), *pair[1:]] for pair in value]
        if _is_ranking(value)
        else names.shown(value)
        if name in _VERTICES
        else value
        for name, value in found.items()
    }


def _timed(A: Matrix, job: Job, at: tuple[int, ...]) -> tuple[Any, float, bool]:
    """Return the result, its time, and whether this is the time of a second run."""
    with busy(f"{job.name} on {A.backend.name}"):
        result, ms = _once(A, job, at)
        compiles = A.backend.capabilities.sources_hash
        slowest = max(its for (its,) in of_all(A.backend, ms))
        warm = slowest <= (_AGAIN_COMPILED_MS if compiles else _AGAIN_MS)
        if warm:
            result, ms = _once(A, job, at)
    return result, ms, warm


def _once(A: Matrix, job: Job, at: tuple[int, ...]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = job.run(A, *at)
    if isinstance(result, Vector):
        result.wait()
    return result, (time.perf_counter() - start) * 1e3


def _refusal(A: Matrix, job: Job, result: Any, at: tuple[int, ...]) -> CheckFailed | None:
    with busy(f"checking {job.name}"):
        try:
            job.prove(A, result, *at)
        except CheckFailed as error:
            return error
    return None


def ranking(v: Vector) -> list[list[Any]]:
    """Return the vertices of the largest values, largest first, as [vertex, value]."""
    indices, values = v.to_coo()
    order = np.argsort(-values.astype(float), kind="stable")[:_TOP]
    return [[int(indices[k]), values[k].item()] for k in order if np.isfinite(values[k])]


_APART = ("algorithm", "edges_kind", "warm", "load_ms", "ms", "backend", "checked", "versions")


def _print(found: dict[str, Any]) -> None:
    out = console()
    verdict = {None: "not requested (--check)", True: "passed", False: "FAILED"}[found["checked"]]
    lines = {name: value for name, value in found.items() if name not in _APART}
    lines["edges"] = f"{found['edges']:,} {found['edges_kind']}"
    lines["load"] = (
        f"{found['load_ms']:,.3f} ms to make or read the graph and bring it to {found['backend']}"
    )
    lines["time"] = f"{found['ms']:,.3f} ms for {found['algorithm']} on {found['backend']}, " + (
        "after a warm-up" if found["warm"] else "the first run"
    )
    lines["check"] = verdict
    width = max(map(len, lines))
    for name, value in lines.items():
        if not _is_ranking(value):
            text = name.replace("_", " ")
            out.print(f"{text:>{width}}  {_shown(value)}", markup=False, soft_wrap=True)
    rankings = {name: value for name, value in lines.items() if _is_ranking(value)}
    if rankings:
        out.print(_ranked(rankings))


def _ranked(rankings: dict[str, list[list[Any]]]) -> FittingTable:
    """Return the table of a ranking, with further numbers of the same vertices."""
    names = [_HEADINGS.get(name, name.replace("_", " ")) for name in rankings]
    table = FittingTable("vertex", *names)
    for pairs in zip(*rankings.values(), strict=True):
        table.add_row(str(pairs[0][0]), *(_shown(number) for _, number in pairs))
    if table.row_count == _TOP:
        table.caption = f"the {_TOP} largest"
    return table


def _is_ranking(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value)


def list_algorithms(*, as_json: bool) -> None:
    """Print each algorithm with the first line of its docstring."""
    lines = {
        name: (getattr(algorithms, name).__doc__ or "").strip().splitlines()[0]
        for name in algorithms.__all__
    }
    if as_json:
        print_json(lines)
        return
    table = FittingTable("algorithm", "result")
    for name, line in lines.items():
        table.add_row(name, line)
    console().print(table)
