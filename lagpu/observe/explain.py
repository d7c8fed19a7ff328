"""`explain`: what a backend would do with a deferred product, and why, without doing it."""

from __future__ import annotations

from typing import Any

from lagpu.core.expr import Call, kind_of
from lagpu.core.matmul import MatMul
from lagpu.errors import DomainMismatch
from lagpu.operations import Multiply, MultiplySelection

__all__ = ["explain"]


def explain(call: Any) -> str:
    """Return how a deferred product would run: direction, kernel, the reason in numbers, memory.

    Parameters
    ----------
    call : Call
        A product that has its semiring, such as ``semiring.any_pair(q @ A)``; of a vector or of a
        matrix. It is not run, and may be assigned afterwards.

    Returns
    -------
    str
        A few lines to print. A mask belongs to the assignment and takes no part in the choice;
        so of a product of matrices, where it may decide, this is how it runs without one.

    Raises
    ------
    DomainMismatch
        If it is not a deferred product.
    InvalidValue, NotSupported
        If the product names a kernel or a policy that there is not, or that does not suit.

    Examples
    --------
    >>> import lagpu
    >>> A = lagpu.Matrix.from_coo([0, 1], [1, 0], backend="cpu", name="A")
    >>> q = lagpu.Vector.from_coo([0], True, size=2, backend="cpu", name="q")
    >>> print(explain(lagpu.semiring.any_pair(q @ A)))
    q any_pair A on cpu
    SuiteSparse:GraphBLAS chooses its own method and does not tell
    """
    kind_of(call)  # looked at: neither a warning, nor one beside an error
    if isinstance(call, MatMul):
        raise DomainMismatch(
            f"explain: {call!r} has no semiring. Write semiring.any_pair({call!r})."
        )
    if not isinstance(call, Call) or not isinstance(call.operation, (Multiply, MultiplySelection)):
        what = f"{call!r} is no product" if isinstance(call, Call) else "this is no deferred call"
        raise DomainMismatch(f"explain: {what}. Give one such as semiring.any_pair(q @ A).")
    backend = call.backend
    assert backend is not None
    return "\n".join([f"{call!r} on {backend.name}", *backend.explain(call.operation)])
