"""`explain`: how a backend would run a deferred product, and why, without running it."""

from __future__ import annotations

from typing import Any

from lagpu.core.expr import Call, mark_used
from lagpu.core.infix import MatMul
from lagpu.errors import DomainMismatch
from lagpu.host.display import Lines
from lagpu.operations import Multiply, MultiplySelection


def explain(call: Any) -> str:
    """Return how a deferred product would run: direction, kernel, the reason in numbers, memory.

    Parameters
    ----------
    call : Call
        A product with its semiring, such as ``semiring.any_pair(q @ A)``, of a vector or of a
        matrix. It is not run, and may be assigned afterwards.

    Returns
    -------
    str
        A few lines, which a prompt shows as `print` does. A mask belongs to the assignment, so the
        lines are about the product without a mask; for matrices a mask may change the choice.

    Raises
    ------
    DomainMismatch
        If it is not a deferred product.
    InvalidValue, NotSupported
        If the product names a kernel or a policy that is unknown or cannot run it.

    Examples
    --------
    >>> import lagpu
    >>> A = lagpu.generators.path(9, backend="cpu").dup(name="A")
    >>> q = lagpu.Vector.from_coo([0], True, size=9, backend="cpu", name="q")
    >>> explain(lagpu.semiring.any_pair(q @ A))
    q any_pair A on cpu
    push, SuiteSparse saxpy: edges 1 <= unexplored 15 / 8
    by rows 0.0 MB
    """
    mark_used(call)
    if isinstance(call, MatMul):
        raise DomainMismatch(
            f"explain: {call!r} has no semiring. Write semiring.any_pair({call!r})."
        )
    if not isinstance(call, Call) or not isinstance(call.operation, (Multiply, MultiplySelection)):
        kind = type(call).__name__
        fact = f"{call!r} is not a product" if isinstance(call, Call) else f"{kind} is not a Call"
        raise DomainMismatch(f"explain: {fact}. Give a product such as semiring.any_pair(q @ A).")
    backend = call.backend
    assert backend is not None
    return Lines("\n".join([f"{call!r} on {backend.name}", *backend.explain(call.operation)]))
