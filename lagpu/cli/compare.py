"""``lagpu crosscheck``: one algorithm on several backends, statement by statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from lagpu import algorithms, backends
from lagpu import check as checkers
from lagpu.backends.guard import overridden
from lagpu.backends.protocol import Backend
from lagpu.cli.check import WHOLE, prove_sides
from lagpu.cli.console import busy, console, print_json
from lagpu.cli.graphs import load_named
from lagpu.cli.names import Names
from lagpu.cli.options import SHORTEST
from lagpu.crosscheck import crosscheck
from lagpu.errors import CrosscheckFailed, InvalidValue, NotSupported

Proof = Callable[..., Any]


class Call(NamedTuple):
    """An algorithm with its arguments besides the graph, and the checker of its result."""

    run: Callable[..., Any]
    vertices: tuple[tuple[str, str], ...] = ()  # by option: the arguments
    named: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    prove: Proof | None = None
    dup_op: str | None = None  # combines the weights of an edge that a file gives twice
    seed_for: str = ""  # what the seed is for, besides a generated graph


#: The outputs of ``bfs``, with their checkers.
BFS: dict[str, tuple[Callable[..., Any], Proof]] = {
    "levels": (algorithms.bfs_levels, checkers.check_levels),
    "parents": (algorithms.bfs_parents, checkers.check_parents),
    "paths": (algorithms.count_shortest_paths, checkers.check_paths),
}

# Algorithms of other commands that take only a graph.
_WHOLE: dict[str, tuple[Callable[..., Any], Proof]] = {
    "pagerank": (algorithms.pagerank, checkers.check_pagerank),
    "bc": (algorithms.betweenness_centrality, WHOLE["betweenness"]),
    "closeness": (algorithms.closeness_centrality, WHOLE["closeness"]),
    "components": (algorithms.connected_components, checkers.check_components),
    "diameter": (algorithms.diameter, checkers.check_diameter),
    "bipartite": (algorithms.bipartite_sides, prove_sides),
    "cores": (algorithms.core_number, checkers.check_core_numbers),
    "order": (algorithms.topological_levels, checkers.check_topological_levels),
    "triangles": (algorithms.triangles, checkers.check_triangles),
}
_FROM_ONE = ("bfs", "sssp", "path")
_NAMES = (*_FROM_ONE, *_WHOLE, "independent")


def call(
    algorithm: str, source: str | None, *, target: str | None, output: str | None, seed: int | None
) -> Call:
    """Return the call for the name and the options of a command.

    Raises
    ------
    InvalidValue
        If there is no such algorithm, an option is missing, or the algorithm does not take one.
    """
    if algorithm not in _NAMES:
        raise InvalidValue(
            f"crosscheck: there is no algorithm {algorithm!r}. Use {', '.join(_NAMES)}."
        )
    if output is not None and algorithm != "bfs":
        raise InvalidValue(f"--output: {algorithm} has only one result. Leave it out.")
    if (target is None) is (algorithm == "path"):
        raise InvalidValue(
            "--target: path needs it. Give --target 0."
            if target is None
            else f"--target: {algorithm} does not take it. Leave it out."
        )
    if source is not None and algorithm not in _FROM_ONE:
        raise InvalidValue(f"--source: {algorithm} does not take it. Leave it out.")
    begin = ("--source", source or "0")
    if algorithm == "bfs":
        run, prove = BFS[output or "levels"]
        return Call(run, (begin,), prove=prove)
    if algorithm == "independent":
        run, prove = algorithms.maximal_independent_set, checkers.check_independent_set
        return Call(run, named={"seed": seed or 0}, prove=prove, seed_for="the algorithm")
    if algorithm == "path":
        ends = (begin, ("--target", target or "0"))
        return Call(algorithms.shortest_path, ends, prove=checkers.check_route)
    if algorithm == "sssp":
        return Call(algorithms.sssp, (begin,), prove=checkers.check_distances, dup_op=SHORTEST)
    run, prove = _WHOLE[algorithm]
    return Call(run, prove=prove)


def compare(
    what: Call,
    graph: str,
    names: str,
    *,
    kernel: str | None,
    policy: str | None,
    directed: bool | None,
    renumber: bool,
    seed: int | None,
    as_json: bool,
) -> None:
    """Crosscheck, print the report, and prove the oracle's result if there is a checker.

    Raises
    ------
    CrosscheckFailed
        After printing, at the first difference.
    CheckFailed
        After printing, if the backends agree on a wrong result.
    LagpuError
        For wrong input.
    """
    places = _places(names, kernel, policy)
    how: dict[str, Any] = {"directed": directed, "seed": seed, "dup_op": what.dup_op}
    if not renumber:  # wrong words are told before a graph is read
        _at(what, Names())
    A, vertices = load_named(graph, "cpu", seed_for=what.seed_for, renumber=renumber, **how)
    args = _at(what, vertices)
    failed = None
    with busy(f"crosschecking on {names}"):
        try:
            report = crosscheck(what.run, A, *args, backends=places, **what.named)
        except CrosscheckFailed as error:
            failed, report = error, error.report
    if as_json:
        print_json({"ok": report.ok, "graph": graph} | asdict(replace(report, result=None)))
    else:
        console().print(repr(report), markup=False, soft_wrap=True)
    if failed is not None:
        raise failed
    if what.prove is not None:
        with busy("checking"):
            what.prove(A, *args, report.result)
            if len(places) == 1:  # the fused result, of which maybe only indices were compared
                again = what.run(A.to(places[0]), *args, **what.named)
                what.prove(A, *args, again)


def _at(what: Call, names: Names) -> tuple[int, ...]:
    """Return the vertices that the user names."""
    return tuple(names.vertex(text, option) for option, text in what.vertices)


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
    return [
        overridden(place, kernel, policy) if place.capabilities.kernels else place
        for place in places
    ]
