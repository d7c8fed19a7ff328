"""``lagpu crosscheck``: one algorithm on several backends, statement by statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from lagpu import algorithms, backends
from lagpu import check as checkers
from lagpu.algorithms.source import source_vertex
from lagpu.backends.base import Backend
from lagpu.cli.console import busy, console, print_json
from lagpu.cli.graphs import load
from lagpu.cli.steer import steered
from lagpu.crosscheck import crosscheck
from lagpu.errors import CrosscheckFailed, InvalidValue, NotSupported
from lagpu.matrix import Matrix

__all__ = ["ALGORITHMS", "compare"]

#: What the command runs, by algorithm and output, and who proves its result.
ALGORITHMS: dict[tuple[str, str], tuple[Callable[[Matrix, int], Any], Callable[..., Any]]] = {
    ("bfs", "levels"): (algorithms.bfs_levels, checkers.check_levels),
    ("bfs", "parents"): (algorithms.bfs_parents, checkers.check_parents),
    ("bfs", "paths"): (algorithms.count_shortest_paths, checkers.check_paths),
}


def compare(
    algorithm: str,
    graph: str,
    source: int,
    names: str,
    *,
    output: str,
    kernel: str | None,
    policy: str | None,
    directed: bool | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Crosscheck, print, and prove the oracle's result.

    Raises
    ------
    CrosscheckFailed
        After printing, at the first difference.
    CheckFailed
        After printing, if the backends agree on a wrong result.
    LagpuError
        For wrong input, before anything runs.
    """
    if not any(known == algorithm for known, _ in ALGORITHMS):
        known = ", ".join(dict.fromkeys(name for name, _ in ALGORITHMS))
        raise InvalidValue(f"crosscheck: there is no algorithm {algorithm!r}. Use {known}.")
    run, prove = ALGORITHMS[algorithm, output]
    places = _places(names, kernel, policy)
    A = load(graph, "cpu", directed=directed, seed=seed)
    source_vertex(A, source)
    failed = None
    with busy(f"crosschecking on {names}"):
        try:
            report = crosscheck(run, A, source, backends=places)
        except CrosscheckFailed as error:
            failed, report = error, error.report
    if as_json:
        facts = {"ok": report.ok, "graph": graph, "source": source}
        print_json(facts | asdict(replace(report, result=None)))
    else:
        console().print(repr(report), markup=False, soft_wrap=True)
    if failed is not None:
        raise failed
    with busy("checking"):
        prove(A, source, report.result)
        if len(places) == 1:  # what any chose in a fused loop was not compared
            prove(A, source, run(A.to(places[0]), source))


def _places(names: str, kernel: str | None, policy: str | None) -> list[Backend]:
    """Return the backends; those that have kernels use the ones that were asked for."""
    words = [name.strip() for name in names.split(",") if name.strip()]
    if not words:
        raise InvalidValue("--backends: there is none. Give names with commas, as in cpu,sim.")
    places = [backends.get(name) for name in words]
    if kernel is None and policy is None:
        return places
    if not any(hasattr(place, "device") for place in places):
        raise NotSupported(
            f"--kernel: none of {', '.join(words)} has kernels to choose from. "
            "Add gpu or sim to --backends, or leave out --kernel and --policy."
        )
    return [
        steered(place, kernel, policy) if hasattr(place, "device") else place for place in places
    ]
