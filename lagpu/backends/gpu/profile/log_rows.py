"""Make the rows of a trace from the records of a fused loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu.kernels import constant
from lagpu.backends.gpu.profile.traffic import SearchTraffic, StatementTraffic
from lagpu.backends.profile import LoopRow, Measured
from lagpu.operations import (
    Constant,
    Multiply,
    MultiplySelection,
    Statement,
    operands_of,
)

__all__ = ["ProgramRows", "SearchRows", "why_level", "why_push_cost"]

_PUSHES_ALONE, _PULLS = constant("kPushesAlone"), constant("kPulls")
_PUSHES_IN_CLUSTER = constant("kPushesInCluster")
_PUSHES_INTO_WORDS = constant("kPushesIntoWords")
_FINDS_NOTHING = constant("kFindsNothing")
_UNKNOWN = constant("kUnknown")
Count = Callable[[], int]


class SearchRows:
    """The rows of a search; each record covers all statements of one level.

    Parameters
    ----------
    statements : sequence of Statement
        The body.
    had : list of callable or None
        For each assignment a callable that returns its output's entries before the loop, or None.
    why : callable
        Returns why a level went in its direction: ``why(record, how)`` with what the record before
        says of how, 0 for the first.
    traffic : SearchTraffic, optional
        What a level moves; by default what the statements say, on one device.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        had: Sequence[Count | None],
        why: Callable[[Any, int], str],
        traffic: SearchTraffic | None = None,
    ) -> None:
        self._traffic = traffic or SearchTraffic.of(statements)
        self._had, self._why, self._count = had, why, len(statements)
        is_product = [isinstance(s.operation, Multiply) for s in statements]
        self._product = is_product.index(True)
        self.assigns_after = self._product == 0
        self._others = [k for k in range(self._count) if k != self._product]
        # an assignment of the depth has no operand: its row counts its output's old entries
        self._reads_itself = [not operands_of(statements[k].operation) for k in self._others]

    def __call__(self, records: np.ndarray[Any, Any]) -> list[LoopRow]:
        """Return the rows."""
        return list(self._rows(records))

    def _rows(self, records: np.ndarray[Any, Any]) -> Iterator[LoopRow]:
        product, traffic = self._product, self._traffic
        assigns_after = self.assigns_after
        before = [0 if count is None else count() for count in self._had]
        last, reached, how = list(before), 0, 0
        made = Measured(0.0, None, kernel="fused", reason="made with the level's product")
        for r, ms in _timed(records):
            entered, found = int(r["in"]), int(r["out"])
            assigned = found if assigns_after else entered
            left = traffic.positions - reached - (0 if assigns_after else entered)
            reached += assigned
            level, pulls = int(r["iteration"]), r["how"] == _PULLS
            if r["how"] == _FINDS_NOTHING:
                pulls = r["frontier_edges"] == _UNKNOWN  # in words, for a pull
            rows = []
            for k, statement in enumerate(self._others):
                into = last[k] if self._reads_itself[k] else assigned
                last[k] = before[k] + (reached if self._had[k] is None else int(r["added"][k]))
                written = made._replace(bytes=assigned * traffic.assigned[k])
                rows.append(LoopRow(statement, level, into, last[k], written))
            measured = Measured(
                ms,
                None,
                direction="pull" if pulls else "push",
                kernel="fused",
                reason=self._why(r, how),
                edges=_known(r["edges"]),
                bytes=_bytes_of_level(traffic, r, left),
            )
            rows.insert(product, LoopRow(product, level, entered, found, measured))
            how = int(r["how"])
            yield from rows


def _bytes_of_level(traffic: SearchTraffic, r: Any, left: int) -> int | None:
    edges, entered, found = _known(r["edges"]), int(r["in"]), int(r["out"])
    if r["how"] == _FINDS_NOTHING:
        return 0
    if edges is None:
        return None
    if r["how"] == _PULLS:
        return traffic.pull(edges, entered, found, left)
    return traffic.push(edges, entered, found, r["how"] in (_PUSHES_ALONE, _PUSHES_IN_CLUSTER))


def why_level(n: int, kind: str, alpha: float, beta: float, r: Any, before: int) -> str:
    """Return why a level of a grid search went in its direction, in numbers.

    Parameters
    ----------
    n : int
        Vertices.
    kind : str
        The kernel's constant of the rule.
    alpha, beta : float
        The numbers of the rule.
    r : record
        The level.
    before : int
        How the level before was run.
    """
    pulls, found, pulled = r["how"] == _PULLS, int(r["in"]), before == _PULLS
    if r["how"] == _FINDS_NOTHING:
        return f"vertices {found}, none of which leads on: not run"
    if r["how"] == _PUSHES_ALONE:
        return f"vertices {found}, few for several levels: one thread block alone"
    if r["how"] == _PUSHES_IN_CLUSTER:
        return f"vertices {found}, few for several levels: one cluster of thread blocks alone"
    if kind in ("kOnlyPushes", "kOnlyPulls"):
        return f"vertices {found}; one form of the matrix {'pulls' if pulls else 'pushes'}"
    if kind == "kByUnvisited":
        share = found / int(r["other"]) if r["other"] else float("inf")
        return f"frontier / unvisited {share:.3g} {'>=' if pulls else '<'} {alpha:g}"
    if kind == "kByDensity":
        if pulled:
            return f"pulled before; vertices {found}"
        return f"density {found / n:.2%} {'>=' if pulls else '<'} {100 * alpha:g}%"
    if before == _PUSHES_INTO_WORDS:
        return f"pushed into words before; vertices {found}"
    if pulled:
        return f"pulled before; vertices {found} {'>=' if pulls else '<'} {n} / {beta:g}"
    sign, into = ">" if pulls else "<=", ": into words" if r["how"] == _PUSHES_INTO_WORDS else ""
    return f"edges {r['frontier_edges']} {sign} unexplored {r['other']} / {alpha:g}{into}"


def why_push_cost(cost: int, r: Any, before: int) -> str:
    """Return why a level of a bit-parallel search went in its direction, in numbers."""
    return (
        f"edges {r['frontier_edges']} {'>' if r['how'] == _PULLS else '<='} {r['other']} / {cost}"
    )


class ProgramRows:
    """The rows of a generated loop, with a record for each statement and iteration.

    Parameters
    ----------
    statements : sequence of Statement
        The body, on vectors.
    inputs : list
        For each statement the vector or scalar whose entries are the row's input.
    counts : dict
        By a vector's ``id``, a callable that returns its entries before the loop.
    bounds : dict
        For each product of a matrix (entries, factor): it pulls where the frontier edges times the
        factor exceed the entries.
    why : dict
        For each product why it has no direction to choose, where it has none.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        inputs: list[Any],
        counts: dict[int, Count],
        bounds: dict[int, tuple[int, int]],
        why: dict[int, str],
    ) -> None:
        self._traffic = [StatementTraffic.of(s) for s in statements]
        self._counts, self._bounds, self._why = counts, bounds, why
        self._writes = [id(s.out) for s in statements]
        self._reads = [id(x) for x in inputs]
        self._operations = [type(s.operation) for s in statements]

    def __call__(self, records: np.ndarray[Any, Any]) -> list[LoopRow]:
        """Return the rows."""
        return list(self._rows(records))

    def _rows(self, records: np.ndarray[Any, Any]) -> Iterator[LoopRow]:
        counts = {of: count() for of, count in self._counts.items()}
        for r, ms in _timed(records):
            k = int(r["statement"])
            operation, pulls = self._operations[k], r["how"] == _PULLS
            measured = Measured(
                ms, None, kernel="fused", reason="a statement of one generated loop"
            )
            if operation in (Multiply, MultiplySelection):
                direction = "pull" if pulls else "push"
                measured = measured._replace(
                    direction=direction, reason=self._reason(k, r), edges=_known(r["edges"])
                )
            if operation is Constant:
                continue  # a number for a scalar has no row, as it has none in an eager loop
            entered = counts[self._reads[k]]
            found = counts[self._writes[k]] = int(r["out"])
            moved = self._traffic[k].moved(measured.edges, entered, found, pulls)
            row = measured._replace(bytes=moved)
            yield LoopRow(k, int(r["iteration"]), entered, found, row)

    def _reason(self, k: int, r: Any) -> str:
        frontier_edges = _known(r["frontier_edges"])
        if frontier_edges is None or k not in self._bounds:
            return self._why[k]
        entries, factor = self._bounds[k]
        return f"edges {frontier_edges} {'>' if r['how'] == _PULLS else '<='} {entries} / {factor}"


def _timed(records: np.ndarray[Any, Any]) -> Iterator[tuple[Any, float]]:
    """Yield each record after the first with the milliseconds since the one before it."""
    ns = records["ns"].astype(np.int64)
    for k in range(1, len(records)):
        yield records[k], max(int(ns[k] - ns[k - 1]), 0) / 1e6


def _known(number: Any) -> int | None:
    return None if number == _UNKNOWN else int(number)
