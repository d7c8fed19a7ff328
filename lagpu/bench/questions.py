"""The questions of ``lagpu bench --algorithm``: rows of the table of algorithms, and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.algebra.tables import semiring
from lagpu.catalog import ALGORITHMS, RANK_ERROR, Algorithm, Answer, Array, dense, directed
from lagpu.core import Matrix, Vector
from lagpu.errors import InvalidValue

#: Products of the matrix with a full vector of FP32, beside the algorithms, by their semirings.
PRODUCTS = ("plus_second", "plus_times")


def factors(n: int) -> Array:
    return (1 + np.arange(n) % 64 / 64).astype(np.float32)


def _product(name: str) -> Algorithm:
    """Return a product as a question; the vector is made at the first run, before any is timed."""
    made: list[Any] = []

    def call(A: Matrix, _facts: Any) -> Any:
        if not made or made[0] is not A:
            made[:] = [A, Vector.from_dense(factors(A.ncols), backend=A.backend)]
        return semiring[name](A @ made[1]).new()

    graph = "pattern" if name == "plus_second" else "FP32"
    return Algorithm("product", label=f"{name} FP32", graph=graph, read=dense(0), rule="FP32",
                     why_not=directed, call=call)  # fmt: skip


#: Every question, expensive ones last.
QUESTIONS = (*(row for row in ALGORITHMS if not row.measured_as), *map(_product, PRODUCTS))


def chosen(names: Sequence[str]) -> list[Algorithm]:
    """Return the questions about some algorithms; ``all`` or an empty list means every one."""
    known = list(dict.fromkeys(row.name for row in QUESTIONS))
    others = {row.name: row.measured_as for row in ALGORITHMS if row.name not in known}
    words = [word for text in names for word in text.split(",")] or ["all"]
    for word in words:
        if word in others:
            raise InvalidValue(f"--algorithm: {word} is measured as {others[word]}. Use this name.")
        if word != "all" and word not in known:
            remedy = f"Use all or some of {', '.join(known)}."
            raise InvalidValue(f"--algorithm: there is no {word!r}. {remedy}")
    return [row for row in QUESTIONS if "all" in words or row.name in words]


def differs(rule: str, first: Answer, other: Answer) -> bool:
    x, y = first.same, other.same
    if x.shape != y.shape:
        return True
    if rule == "equal":
        return not np.array_equal(x, y)
    if rule == "close":
        return not np.allclose(x, y, rtol=1e-6, atol=0, equal_nan=True)
    if rule == "FP32":  # sums of positive numbers, in any order
        return not np.allclose(x, y, rtol=1e-4, atol=0)
    # Two iterations that contract by 0.85 and stop at a change below e differ by at most this.
    return not np.abs(x - y).sum() <= 2 * RANK_ERROR / (1 - 0.85)
