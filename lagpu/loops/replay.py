"""Running a recorded body again and again, each statement by itself."""

from __future__ import annotations

from collections.abc import Sequence

from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.core.recorder import run_statement
from lagpu.core.vector import Vector
from lagpu.operations import Statement

__all__ = ["replay"]


def replay(
    backend: Backend,
    body: Sequence[Statement],
    empty: Vector | Matrix | None,
    unchanged: Vector | Matrix | None,
    times: int | None,
) -> None:
    """Run the iterations of a recorded loop, which has at least one.

    The body has been proved to say the same in every iteration but for counter and scalars. Whether
    the loop goes on is asked as late as it may be: until then a device has work.

    Parameters
    ----------
    backend : Backend
        Whose statements.
    body : sequence of Statement
        As recorded.
    empty, unchanged, times
        When the loop ends; see `loop`.
    """
    early = 0 if empty is None else _count_idle(body, empty)
    first, others = body[:early], body[early:]
    done = 0
    while done != times:
        _run(backend, first, done)
        if empty is not None and not empty.nvals:
            return
        before = None if unchanged is None else unchanged.dup()
        _run(backend, others, done)
        done += 1
        if before is not None and before.isequal(unchanged):  # type: ignore[arg-type]
            return


def _count_idle(body: Sequence[Statement], empty: Vector | Matrix) -> int:
    """Return how many of the first statements do nothing once `empty` has no entry."""
    for k, s in enumerate(body):
        desc = s.desc
        masked = desc.mask is empty.data and not desc.complement and not desc.replace
        if not masked or s.out is empty.data:
            return k
    return len(body)


def _run(backend: Backend, statements: Sequence[Statement], depth: int) -> None:
    for s in statements:
        run_statement(backend, s, depth)
