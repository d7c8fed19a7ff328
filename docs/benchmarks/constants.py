"""The constants of a search's directions, chosen on one half of the zoo and judged on the other.

Each constant of `lagpu/backends/gpu/ops/planner.py` is multiplied by each factor, all others as
they are. Every other graph of the zoo chooses the factor: the one with the least time, by the
geometric mean over these graphs. The other graphs show what it does.

    python docs/benchmarks/constants.py gpu --scale 18 --json h200-constants.json
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import numpy as np
import typer

from lagpu import backends
from lagpu.backends.gpu.fused import search_grid
from lagpu.bench.harness import Clock, Report, Row, envelope
from lagpu.bench.suite import ALGORITHMS
from lagpu.bench.zoo import cost_of, graph, named, sources_of
from lagpu.core.matrix import Matrix
from lagpu.host import progress
from lagpu.host.files import require_writable, write_json

#: By the name of what the rule asks for; see `lagpu.backends.gpu.ops.planner`.
FACTORS = {
    "alpha": (0.25, 0.5, 2.0, 4.0),
    "beta": (0.0625, 0.25, 4.0),
    "gamma": (0.0, 0.5, 2.0),
    "delta": (0.25, 0.5, 2.0, 4.0),
}
_AS_IS, _ROOTS, _ENOUGH_MS = "as it is", 3, 25.0
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def costs(A: Matrix, output: str, roots: list[int]) -> dict[str, float]:
    """Return, by constant and factor, the cost of all roots as in `lagpu bench zoo`.

    It is the less of two turns.
    """
    clock, found = Clock(A.backend, enough_ms=_ENOUGH_MS), dict[str, float]()
    search = partial(ALGORITHMS[output], A)
    for key, name, factor in [*_variants()] * 2:
        with times(name, factor):
            forget(A)
            search(roots[0])
            cost = sum(cost_of(clock, partial(search, root)) for root in roots)
        found[key] = min(cost, found.get(key, cost))
    forget(A)
    return found


def _variants() -> Iterator[tuple[str, str, float]]:
    yield _AS_IS, "alpha", 1.0
    for name, factors in FACTORS.items():
        for factor in factors:
            yield f"{name} * {factor:g}", name, factor


@contextmanager
def times(name: str, factor: float) -> Iterator[None]:
    """Multiply a constant of the rule."""
    ask = getattr(search_grid, f"{name}_of")

    def changed(*of: Any, **how: Any) -> float:
        return factor * float(ask(*of, **how))

    with mock.patch.object(search_grid, f"{name}_of", changed):
        yield


def forget(A: Matrix) -> None:
    """Forget the plans and launches that a matrix keeps, which have the numbers of the rule."""
    A.data.store.kernels.clear()
    for kept in A.data.store.cache.values():
        getattr(kept, "launches", {}).clear()


def chosen(searches: list[Row]) -> Iterator[Row]:
    """Yield a row for each constant: the factor of the first half, and the means of both."""
    for sums in (False, True):
        of = [x for x in searches if (x["output"] == "paths") == sums]
        for name in FACTORS if of else ():
            keys = [_AS_IS, *(key for key in of[0]["costs"] if key.startswith(f"{name} *"))]
            first, second = ({key: mean_of(of, half, key) for key in keys} for half in (0, 1))
            best = min(first, key=first.__getitem__)
            yield {"search": "path counts" if sums else "levels, parents", "constant": name,
                   "factor": "1" if best == _AS_IS else best.split()[-1],
                   "first": first[best], "second": second[best], "least": min(second.values()),
                   "graphs": len(of)}  # fmt: skip


def mean_of(searches: list[Row], half: int, key: str) -> float:
    """Return the geometric mean of the time over that of the constants as they are."""
    of = [x["costs"] for x in searches if x["half"] == half] or [{key: 1.0, _AS_IS: 1.0}]
    return float(np.exp(np.mean([np.log(ms[key] / ms[_AS_IS]) for ms in of])))


@app.command()
def main(
    backend: Annotated[str, typer.Argument(help="Such as gpu.")],
    scale: Annotated[int, typer.Option(help="Graphs of about 2**SCALE vertices.")] = 18,
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
) -> None:
    """Measure every graph of the zoo with each constant changed."""
    require_writable(json, "bench")
    place = backends.get(backend)
    searches: list[Row] = []
    report: Report = envelope([place], {}) | {"scale": scale, "searches": searches}
    for number, (label, family, one) in enumerate(progress.over(named(scale), "zoo")):
        A = graph(family, one, place)
        roots = sources_of(A, _ROOTS, scale)
        for output in ALGORITHMS:
            found = costs(A, output, roots)
            searches.append({"graph": label, "half": number % 2, "output": output, "costs": found})
        del A
        report["rows"] = [*chosen(searches)]
        if json is not None:  # should the machine's time end
            write_json(report, json, "bench")
    for row in report["rows"]:
        print("{search}, {constant} * {factor}: {first:.3f}, {second:.3f}".format_map(row))


if __name__ == "__main__":
    app()
