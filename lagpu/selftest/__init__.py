"""Prove an installation: compare a backend with the cpu oracle, operation by operation.

Every case is a program that runs twice on the same data, on the backend and on python-graphblas;
the results must agree to the bit and to the type. Values are small whole numbers, so sums are exact
in every type and order. Searches are also proved by `lagpu.check`.
"""

from __future__ import annotations

import functools
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from lagpu import backends, versions
from lagpu.backends.protocol import Backend
from lagpu.host import progress
from lagpu.host.fitting import FittingTable
from lagpu.host.interrupt import deaf
from lagpu.selftest import algorithms, operations
from lagpu.selftest.cases import Case, kind_of

__all__ = ["run", "table"]


def run(backend: str = "auto", *, quick: bool = False, jobs: int = 1) -> dict[str, Any]:
    """Run every case on a backend, or with `quick` one of each kind; return a report for JSON."""
    # It has ``date backend device versions sources_hash commit rows totals``, and each row
    # ``group case passed ms detail``. A progress bar is on stderr. `jobs` processes share the
    # cases; each takes memory of the GPU. Raises `BackendUnavailable` if the backend or
    # python-graphblas is missing.
    place, oracle = backends.get(backend), backends.get("cpu")
    start = time.perf_counter()
    cases = _chosen(place, quick)
    if jobs > 1:
        # A process forked from one that has a CUDA context cannot use the GPU.
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            with deaf():
                found = pool.map(functools.partial(_row_of, backend, quick), range(len(cases)))
            rows = list(_shown(cases, found))
    else:
        rows = list(_shown(cases, (_row(case, place, oracle) for case in cases)))
    device = place.device
    passed = sum(row["passed"] for row in rows)
    totals = {"cases": len(rows), "passed": passed, "failed": len(rows) - passed,
              "seconds": round(time.perf_counter() - start, 1)}  # fmt: skip
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "backend": place.name,
        "device": device.describe() if device is not None else {"device": "host"},
        "versions": versions.versions(), "sources_hash": place.capabilities.sources_hash,
        "commit": versions.commit(), "rows": rows, "totals": totals,
    }  # fmt: skip


def _cases(place: Backend) -> Iterator[Case]:
    yield from operations.cases((*place.capabilities.kernels, ""))
    yield from algorithms.cases()


def _chosen(place: Backend, quick: bool) -> list[Case]:
    """Return the cases of a run, which every process lists in the same order."""
    # If it is quick, one of each kernel, operation and algorithm, by its brief run if it has one;
    # the first of a kind are degenerate.
    cases = list(_cases(place))
    kinds: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        kinds.setdefault(kind_of(case.group, case.name), []).append(case)
    some = [members[len(members) // 3] for members in kinds.values()]
    return [replace(case, run=case.brief or case.run) for case in some] if quick else cases


def _shown(cases: list[Case], rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the cases while a progress bar on stderr names the case that runs."""
    with progress.bar("self-test", len(cases), after=0) as done:
        for k, case in enumerate(cases):
            done(k, what=f"{case.group}: {case.name}")
            yield next(rows)


@functools.cache
def _listed(backend: str, quick: bool) -> list[Case]:
    return _chosen(backends.get(backend), quick)


def _row_of(backend: str, quick: bool, k: int) -> dict[str, Any]:
    """Run case number `k` of a run, in a process of its own."""
    return _row(_listed(backend, quick)[k], backends.get(backend), backends.get("cpu"))


def _row(case: Case, place: Backend, oracle: Backend) -> dict[str, Any]:
    """Run one case; any error is a failure of this case and does not stop the others."""
    start = time.perf_counter()
    try:
        passed, detail = True, case.run(place, oracle)
    except Exception as error:
        passed, detail = False, f"{type(error).__name__}: {error}"
    ms = round((time.perf_counter() - start) * 1e3, 3)
    return {"group": case.group, "case": case.name, "passed": passed, "ms": ms, "detail": detail}


def table(rows: list[dict[str, Any]]) -> FittingTable:
    """Return a table with a row for each kind of case."""
    found = FittingTable("group", "of", title="self-test against python-graphblas")
    for name in ("passed", "failed", "ms"):
        found.add_column(name, justify="right")
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(kind_of(row["group"], row["case"]), []).append(row)
    for (group, kind), members in kinds.items():
        passed = sum(row["passed"] for row in members)
        failed = len(members) - passed
        ms = sum(row["ms"] for row in members)
        counts = (Text(str(count), "red" if failed else "green") for count in (passed, failed))
        found.add_row(group, kind, *counts, f"{ms:,.0f}")
    return found
