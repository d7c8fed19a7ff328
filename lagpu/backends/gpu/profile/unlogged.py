"""The rows of a fused loop whose kernel keeps no log: one a statement, for all levels."""

from __future__ import annotations

from collections.abc import Sequence

from lagpu.backends.profile import LoopRow, Measured

__all__ = ["PRODUCTS", "rows_of_all"]

PRODUCTS = ("mxv", "matrix_mxm")
_WHY = "one kernel for all levels, which keeps no log"


def rows_of_all(methods: Sequence[str], kernel_ms: float) -> list[LoopRow]:
    """Return a row for each statement of the body; the time of them all stands on the product's.

    Parameters
    ----------
    methods : sequence of str
        Of the statements; one is a product.
    kernel_ms : float
        What the loop's launches took.
    """
    of_all = Measured(kernel_ms, None, kernel="fused", reason=_WHY)
    with_it = Measured(0.0, None, kernel="fused", reason=f"{_WHY}; timed with the product")
    return [
        LoopRow(k, None, None, None, of_all if method in PRODUCTS else with_it)
        for k, method in enumerate(methods)
    ]
