"""The rows that the records of a fused loop stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.ops.bitmap_mxm import PUSH_COST
from lagpu.backends.gpu.ops.selection import reason
from lagpu.backends.gpu.profile.traffic import PieceMoves, SearchMoves
from lagpu.backends.gpu.profile.unlogged import PRODUCTS
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.profile import LoopRow, Measured
from lagpu.backends.protocol import Statement

__all__ = [
    "BEGINS",
    "RECORD",
    "Loop",
    "rows_of_program",
    "rows_of_search",
    "vectors_of",
    "why_block",
    "why_level",
]

PULL_FIRST, PULL_SUMS = 14, 3  # as kPullFirst and kPullSums in program/program.cuh
# As in common/log.cuh.
BEGINS, _WRITES, _PUSHES, _PUSHES_ALONE, _PULLS = range(5)
_FIELDS = ("how", "statement", "iteration", "in", "out", "edges", "leaving", "other", "ns")
RECORD = np.dtype([*((name, np.uint64) for name in _FIELDS), ("added", np.uint64, 3)])
_UNKNOWN = 2**64 - 1


class Loop(NamedTuple):
    """What the host knows of a fused loop, to make rows of its records.

    Attributes
    ----------
    methods : list of str
        Of its statements.
    writes, reads : list of int
        Which vector each writes, and which goes in and is counted; its own if there is none.
    bounds : dict
        For each product the entries of its matrix, and how many times the edges that leave the
        vector must exceed them for a program to pull.
    """

    methods: list[str]
    writes: list[int]
    reads: list[int]
    bounds: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, statements: Sequence[Statement]) -> Loop:
        """Return it."""
        place = {key: k for k, key in enumerate(vectors_of(statements))}
        return cls(
            [s.method for s in statements],
            [place[id(s.w)] for s in statements],
            [place[id(_counted_input(s))] for s in statements],
            {k: _bound(s) for k, s in enumerate(statements) if s.method == "mxv"},
        )


def vectors_of(statements: Sequence[Statement]) -> dict[int, Any]:
    """Return the vectors and scalars that are counted, by their ``id``."""
    return {id(v): v for s in statements for v in (s.w, _counted_input(s))}


def _counted_input(s: Statement) -> Any:
    """Return the vector whose entries are counted: of a block's statement the first, else the last.

    A constant goes into the output itself.
    """
    found = [x for x in s.args if type(x) is VectorStore]
    return found[-1 if s.out is None else 0] if found else s.w


def _bound(s: Statement) -> tuple[int, int]:
    """Return what a product's edges must exceed for a program to pull, and how many times."""
    A, _, how = s.args
    if s.out is None:
        return A.nvals, PULL_FIRST if how.semiring.monoid.name == "any" else PULL_SUMS
    return A.nvals * (s.w.size // A.shape[1 if how.transpose else 0] // 32), PUSH_COST


def rows_of_search(
    loop: Loop,
    moves: SearchMoves,
    records: np.ndarray[Any, Any],
    had: list[Callable[[], int] | None],
    why: Callable[[Any, bool], str],
) -> Iterator[LoopRow]:
    """Yield the rows of each level: one record stands for all statements."""
    product = next(k for k, method in enumerate(loop.methods) if method in PRODUCTS)
    behind = product == 0
    others = [k for k in range(len(loop.methods)) if k != product]
    before = [0 if count is None else count() for count in had]
    last, reached, pulled = list(before), 0, False
    made = Measured(0.0, None, kernel="fused", reason="made with the level's product")
    for r, ms in _timed(records):
        entered, found = int(r["in"]), int(r["out"])
        assigned = found if behind else entered
        left = moves.positions - reached - (0 if behind else entered)
        reached += assigned
        level, pulls = int(r["iteration"]), r["how"] == _PULLS
        rows = []
        for k, statement in enumerate(others):
            into = last[k] if loop.reads[statement] == loop.writes[statement] else assigned
            last[k] = before[k] + (reached if had[k] is None else int(r["added"][k]))
            written = made._replace(bytes=assigned * moves.assigned[k])
            rows.append(LoopRow(statement, level, into, last[k], written))
        measured = Measured(
            ms,
            None,
            direction="pull" if pulls else "push",
            kernel="fused",
            reason=why(r, pulled),
            edges=_known(r["edges"]),
            bytes=_bytes_of_level(moves, r, left),
        )
        rows.insert(product, LoopRow(product, level, entered, found, measured))
        pulled = pulls
        yield from rows


def _bytes_of_level(moves: SearchMoves, r: Any, left: int) -> int | None:
    edges, entered, found = _known(r["edges"]), int(r["in"]), int(r["out"])
    if edges is None:
        return None
    if r["how"] == _PULLS:
        return moves.pull(edges, entered, found, left)
    return moves.push(edges, entered, found, r["how"] == _PUSHES_ALONE)


def why_level(n: int, alpha: float, beta: float, r: Any, pulled: bool) -> str:
    """Return why a level went in its direction, in numbers."""
    if r["how"] == _PUSHES_ALONE:
        return f"vertices {r['in']}, few for some levels: one block alone"
    if pulled:
        sign = ">=" if r["how"] == _PULLS else "<"
        return f"pulled before; vertices {r['in']} {sign} {n} / {beta:g}"
    sign = ">" if r["how"] == _PULLS else "<="
    return f"edges {r['leaving']} {sign} unexplored {r['other']} / {alpha:g}"


def why_block(cost: int, r: Any, pulled: bool) -> str:
    """Return why a level of a search of a block went in its direction, in numbers."""
    return f"edges {r['leaving']} {'>' if r['how'] == _PULLS else '<='} {r['other']} / {cost}"


def rows_of_program(
    loop: Loop,
    moves: list[PieceMoves],
    records: np.ndarray[Any, Any],
    before: Sequence[Callable[[], int]],
    one_way: str,
) -> Iterator[LoopRow]:
    """Yield the rows of a program: a record a statement and iteration."""
    counts = [count() for count in before]
    for r, ms in _timed(records):
        k = int(r["statement"])
        measured = Measured(ms, None, kernel="fused", reason="a piece of one program")
        if k in loop.bounds:
            measured = _product(measured, r, *loop.bounds[k], one_way)
        if loop.methods[k] == "mxv_selection":
            direction = "pull" if r["how"] == _PULLS else "push"
            measured = measured._replace(
                direction=direction, reason=reason(direction), edges=_known(r["edges"])
            )
        if loop.methods[k] == "constant":
            continue  # a number for a scalar has no row, as it has none in an eager loop
        entered = counts[loop.reads[k]]
        found = counts[loop.writes[k]] = int(r["out"])
        moved = moves[k].moved(measured.edges, entered, found, r["how"] == _PULLS)
        yield LoopRow(k, int(r["iteration"]), entered, found, measured._replace(bytes=moved))


def _product(measured: Measured, r: Any, nvals: int, factor: int, one_way: str) -> Measured:
    pulled, leaving, why = r["how"] == _PULLS, _known(r["leaving"]), one_way
    if leaving is not None:
        why = f"edges {leaving} {'>' if pulled else '<='} {nvals} / {factor}"
    direction = "pull" if pulled else "push"
    return measured._replace(direction=direction, reason=why, edges=_known(r["edges"]))


def _timed(records: np.ndarray[Any, Any]) -> Iterator[tuple[Any, float]]:
    """Yield each record behind the first with the milliseconds since the one before it."""
    ns = records["ns"].astype(np.int64)
    for k in range(1, len(records)):
        yield records[k], max(int(ns[k] - ns[k - 1]), 0) / 1e6


def _known(number: Any) -> int | None:
    return None if number == _UNKNOWN else int(number)
