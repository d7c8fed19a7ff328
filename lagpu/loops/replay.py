"""Run a recorded body again and again, each statement by itself."""

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
) -> int:
    """Run the iterations of a recorded loop, of which there is at least one; return how many.

    The body is proved to be the same in every iteration but for counter and scalars. The condition
    is tested as late in an iteration as possible, so that the device has work meanwhile.

    Parameters
    ----------
    backend : Backend
        The backend of the statements.
    body : sequence of Statement
        The recorded statements.
    empty, unchanged, times
        When the loop ends; see `loop`.
    """
    idle = 0 if empty is None else _count_idle(body, empty)
    first, others = body[:idle], body[idle:]
    done = 0
    while done != times:
        _run(backend, first, done)
        if empty is not None and not empty.nvals:
            return done
        before = None if unchanged is None else unchanged.dup()
        _run(backend, others, done)
        done += 1
        if before is not None and before.isequal(unchanged):
            return done
    return done


def _count_idle(body: Sequence[Statement], empty: Vector | Matrix) -> int:
    """Return how many statements at the start have no effect once `empty` has no entry."""
    for k, s in enumerate(body):
        desc = s.desc
        masked = desc.mask is empty.data and not desc.complement and not desc.replace
        if not masked or s.out is empty.data:
            return k
    return len(body)


def _run(backend: Backend, statements: Sequence[Statement], depth: int) -> None:
    for s in statements:
        run_statement(backend, s, depth)
