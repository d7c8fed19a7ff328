"""PageRank by power iteration.

A random walker follows an edge with probability alpha and otherwise jumps, by the distribution p;
from a vertex without edges out the walker goes on by the distribution d::

    x = (x alpha / out) (+.*) A + alpha lost d + (1 - alpha) p
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.inputs import number, require_finite, require_square
from lagpu.core.arguments import integer
from lagpu.core.matrix import Matrix
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.dtypes import FP64
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue, NotConverged
from lagpu.loops.loop import loop

Weights = Vector | Mapping[int, float]

FARTHEST = 2.0  # the largest possible sum of changes of the ranks
LARGE = 1e290  # sums of weights between 1 / LARGE and LARGE are used as they are
MOST = 1e-3  # the largest sum of changes, of ranks with sum 1, at which the iteration may stop


def pagerank(
    A: Matrix,
    alpha: float = 0.85,
    personalization: Weights | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Weights | None = None,
    weight: bool = True,
    dangling: Weights | None = None,
) -> Vector:
    """Return the PageRank of each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) >= 0 is the weight of the edge i -> j; True counts 1.
    alpha : float
        Probability of following an edge, 0 to 1.
    personalization : Vector or dict, optional
        Weights >= 0 of the vertices at which a jump ends, 0 without an entry; by default equal.
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when the sum of all changes is less than ``min(n * tol, 1e-3)``.
    nstart : Vector or dict, optional
        Weights of the first ranks; by default equal.
    weight : bool
        Whether values are weights; else each edge counts 1.
    dangling : Vector or dict, optional
        Weights of the vertices to which the walker goes from a vertex without edges out; by default
        `personalization`.

    Returns
    -------
    Vector, (n,), FP64
        Full; the ranks have the sum 1.

    Raises
    ------
    NotConverged
        If `max_iter` iterations are not enough.
    InvalidValue
        If a weight, `alpha`, `max_iter` or `tol` is out of range or NaN, or the weights of an
        argument have the sum 0.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or an argument does not fit it.

    Notes
    -----
    One product per iteration; on `gpu` and `sim` all iterations are one kernel. Source: Page, Brin,
    Motwani and Winograd 1999; parameters, stopping and treatment of dangling vertices as in
    NetworkX, but for the bound 1e-3: NetworkX stops below ``n * tol`` alone, and the sum of all
    ranks is 1, so for more than a million vertices the default of NetworkX stops after the first
    iteration. With the default `tol` the bound matters from 1000 vertices on. After a change by r
    the ranks are within ``r * alpha / (1 - alpha)`` of the exact ones.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> pagerank(star(3, backend="cpu")).to_dense().round(3).tolist()
    [0.486, 0.257, 0.257]
    """
    require_square(A)
    if weight:
        require_finite(A, "pagerank")
        least = A.reduce("min").new().value
        if least is not None and least < 0:
            raise InvalidValue(f"pagerank: a weight is {least} < 0. Use weight=False to ignore it.")
    if not 0 <= number(alpha, "pagerank: alpha") <= 1:
        raise InvalidValue(f"pagerank: alpha {alpha} is not a probability, 0 to 1.")
    if not 0 < number(tol, "pagerank: tol") < np.inf:
        raise InvalidValue(f"pagerank: tol {tol} is not above 0 and finite. Give a tolerance.")
    n, max_iter = A.nrows, integer(max_iter, "pagerank: max_iter")
    if max_iter < 0:
        raise InvalidValue(f"pagerank: max_iter {max_iter} < 0. Give 0 or more.")
    ones = Vector(FP64, n, like=A, name="ones")
    ones << 1
    jumps = _distribution(A, personalization, "personalization", 1 - alpha)
    if dangling is None:
        sent = _distribution(A, personalization, "personalization", alpha)
    else:
        sent = _distribution(A, dangling, "dangling", alpha)
    ranks = _distribution(A, nstart, "nstart").dup(name="ranks")
    out, left, new = (Vector(FP64, n, like=A) for _ in range(3))
    add_up, follow = (
        (semiring.plus_times,) * 2 if weight else (semiring.plus_second, semiring.plus_first)
    )
    out << add_up(A @ ones)
    if weight and _is_extreme(out):
        A = _with_largest_1(A)
        out << add_up(A @ ones)
    if weight:
        out << out.select("valuegt", 0)
    rate = out.apply("truediv", left=alpha).new()
    enough = min(n * tol, MOST)
    lost, moved = Scalar(FP64, name="lost"), Scalar(FP64, FARTHEST, name="moved")
    apart = Vector.from_coo([0], FARTHEST, size=1, like=A, name="apart")
    for _ in loop(until_empty=apart, times=max_iter if n else 0):
        left(~rate.S, replace=True) << ranks
        lost << 0
        lost(accum=binary.plus) << left.reduce("plus")
        new << ranks.ewise_mult(rate, binary.times)
        new << follow(new @ A)
        new(accum=binary.plus) << sent.apply("times", right=lost)
        new(accum=binary.plus) << jumps
        ranks << ranks.ewise_mult(new, binary.minus)
        ranks << ranks.apply("abs")
        moved << ranks.reduce("plus")
        ranks << new
        apart << moved
        apart << apart.select("valuege", enough)
    if n and not moved.value < enough:  # also for NaN
        raise NotConverged(
            f"pagerank: ranks still change by {moved.value:.3g} in sum, not below {enough:.3g}, "
            f"after {max_iter} iterations. Allow more with max_iter="
            + (", or a larger tol=." if enough < MOST else ".")
        )
    return ranks


def _is_extreme(out: Vector) -> bool:
    """Return True if a rank divided by a vertex's sum of weights may overflow or lose digits."""
    most = out.reduce("max").new().value or 1
    least = out.select("valuegt", 0).new().reduce("min").new().value or 1
    return not (most < LARGE and least > 1 / LARGE)


def _with_largest_1(A: Matrix) -> Matrix:
    """Return `A` with each row divided by its largest weight; ranks depend on ratios alone."""
    largest = A.reduce_rowwise("max").new()
    largest << largest.select("valuegt", 0)
    by_columns = semiring.plus_truediv(A.T @ largest.diag()).new()
    scaled: Matrix = by_columns.T.new()
    return scaled


def _distribution(A: Matrix, weights: Weights | None, what: str, total: float = 1) -> Vector:
    """Return weights as a full vector with the sum `total`; equal ones for None."""
    n = A.nrows
    full = Vector(FP64, n, like=A, name=what)
    given: Any = weights
    if given is None:
        full << total / max(n, 1)
        return full
    if not isinstance(given, (Vector, Mapping)):
        raise DomainMismatch(f"pagerank: {what} is neither a Vector nor a dict of weights.")
    if not isinstance(given, Vector):
        values = [number(x, f"pagerank: {what}") for x in given.values()]
        given = Vector.from_coo(list(given), values, FP64, size=n, like=A, name=what)
    if given.size != n:
        raise DimensionMismatch(f"pagerank: {what}.size {given.size} != {n} vertices.")
    found = given.to_coo()[1].astype(float)
    if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
        raise InvalidValue(f"pagerank: {what} needs finite weights >= 0, at least one above 0.")
    full << 0
    largest = float(found.max())  # first, so that the sum of large weights does not overflow
    full(given.S) << given
    full << full.apply("truediv", right=largest)
    full << full.apply("truediv", right=float((found / largest).sum()))
    if total != 1:
        full << full.apply("times", right=total)
    return full
