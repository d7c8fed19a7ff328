"""Recognise relaxations, and those whose result does not depend on the order of relaxing edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lagpu.algebra.operators import BinaryOp, Semiring
from lagpu.algebra.tables import binary, monoid, semiring
from lagpu.backends.gpu.fused.match import matched
from lagpu.backends.gpu.ops.elementwise import reduce_matrix
from lagpu.backends.gpu.storage.forms import why_no_csr
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import BOOL
from lagpu.operations import (
    Assign,
    Descriptor,
    Ewise,
    Multiply,
    Product,
    RecordedBody,
    Rejection,
    Statement,
    Until,
)

__all__ = ["RelaxationBody", "match_relaxation", "why_not_in_any_order"]

# By semiring: the comparison that says "is not better", and whether no product is better than the
# number it is made of, from the least and the largest value of the matrix.
_ORDERED: dict[Semiring, tuple[BinaryOp, Callable[[Any, Any], bool]]] = {
    semiring.min_plus: (binary.ge, lambda least, _: least >= 0),
    semiring.max_plus: (binary.le, lambda _, largest: largest <= 0),
    semiring.min_max: (binary.ge, lambda *_: True),
    semiring.max_min: (binary.le, lambda *_: True),
}


class RelaxationBody(NamedTuple):
    """The body of a relaxation.

    Attributes
    ----------
    A : CscMatrix, (n, n)
        The matrix by columns; of a body that `match_relaxation` returns, the product's handle.
    frontier, numbers, worse : VectorStore
        ``f``, ``d`` and ``worse`` of ``f(~worse.V, replace=True) << f``, ``d(f.S) << f``,
        ``f << f (+.x) A`` and ``worse << f.ewise_mult(d, "is not better")``.
    product : Product
        The algebra.
    statements : sequence of Statement
        The body.
    """

    A: CscMatrix
    frontier: VectorStore
    numbers: VectorStore
    worse: VectorStore
    product: Product
    statements: Sequence[Statement]

    def on(self, body: RecordedBody) -> RelaxationBody:
        """Return the relaxation of a recorded body; this one has places instead of its handles."""
        A, frontier, numbers, worse, product, _ = self
        places: tuple[Any, ...] = (A, frontier, numbers, worse)
        A, frontier, numbers, worse = [body.handles[x.number] for x in places]
        return RelaxationBody(A, frontier, numbers, worse, product, body)


_NONE = Rejection("")


def match_relaxation(statements: Sequence[Statement], frontier: Any) -> RelaxationBody | Rejection:
    """Return the parts of a relaxation that runs until `frontier` is empty, or a rejection.

    The caller puts the matrix by columns in the place of the product's handle.
    """
    found: RelaxationBody | Rejection = matched(_match_relaxation, statements, frontier)
    return found


def _match_relaxation(statements: Sequence[Statement], frontier: Any) -> RelaxationBody | Rejection:
    if len(statements) != 4:
        return _NONE
    keep, assign, multiply, compare = (s.operation for s in statements)
    f = frontier
    if not (isinstance(keep, Assign) and isinstance(assign, Assign)):
        return _NONE
    if not (isinstance(multiply, Multiply) and isinstance(compare, Ewise)):
        return _NONE
    d, worse, product = statements[1].out, statements[3].out, multiply.product
    if [s.out for s in statements] != [f, d, f, worse] or len({id(f), id(d), id(worse)}) != 3:
        return _NONE
    wanted = (
        Descriptor(worse, False, True, None, True),
        Descriptor(f, True, False, None, False),
    )
    if [s.desc for s in statements[:2]] != list(wanted) or not all(
        s.desc.is_fresh and s.desc.mask is None for s in statements[2:]
    ):
        return _NONE
    if (keep, assign) != (Assign(f), Assign(f)) or multiply.operand is not f:
        return _NONE
    ordered = _ORDERED.get(product.semiring)
    if ordered is None or compare != Ewise("ewise_mult", f, d, ordered[0]):
        return _NONE
    if product.kernel is not None or product.policy is not None:
        return _NONE
    handle: Any = multiply.matrix
    return RelaxationBody(handle, f, d, worse, product, statements)


def why_not_in_any_order(body: RelaxationBody, until: Until) -> str:
    """Return why the order of relaxing may change the result, or an empty string.

    It does not where it begins at one vertex, no product is better than the number it is made of,
    and each number is better than none. Then n iterations relax all shortest paths, and one more
    finds that nothing is left.
    """
    A, f, d, product = body.A, body.frontier, body.numbers, body.product
    if body.worse.dtype is not BOOL:
        return f"marks are of {body.worse.dtype}"
    if f.dtype is not d.dtype or f.dtype is not product.result or f.dtype.numpy.itemsize < 4:
        return f"numbers of {f.dtype}, {d.dtype} and {product.result} are not of one wide type"
    if A.shape[0] >= 2**31:
        return "the matrix has 2**31 rows or more"
    if until.times is not None and until.times <= A.shape[0]:
        return f"at most {until.times} iterations, where {A.shape[0] + 1} reach every number"
    if f.single < 0 or d.known != 0 or body.worse.known != 0:
        return "it does not begin with one vertex alone"
    lacking = "" if not product.transpose else why_no_csr(A)
    if lacking:
        return f"relaxing edges needs the matrix by rows, and {lacking}"
    least, largest = values = _values(A)
    if not _ORDERED[product.semiring][1](least, largest):
        return f"a product may be better than its vertex, with values of {least} to {largest}"
    return _why_worse_than_none(body, values)


def _why_worse_than_none(body: RelaxationBody, values: tuple[Any, Any]) -> str:
    """Return why a number may be no better than none at all, or an empty string."""
    number, kind, n = body.frontier.number.item(), body.frontier.dtype, body.A.shape[0]
    reached = [number, *values]
    if body.product.semiring.multiply is binary.plus:  # a half: room for rounding
        reached += [2 * (number + n * value) for value in values]
    low, high = kind.smallest, kind.largest
    if body.product.semiring.monoid is monoid.min:  # of which none at all is the largest number
        fits = all(low <= x < high for x in reached)
    else:
        fits = all(low < x <= high for x in reached)
    return "" if fits else f"numbers up to {max(map(abs, reached))} may not fit {kind}"


def _values(A: CscMatrix) -> tuple[Any, Any]:
    """Return the least and the largest value; NaN for both if one is not a finite number."""
    if A.dtype.is_bool or not A.nvals:
        return 0, int(A.nvals > 0)
    if A.dtype.is_float and not math.isfinite(reduce_matrix(A, monoid.plus)):
        return math.nan, math.nan
    return reduce_matrix(A, monoid.min), reduce_matrix(A, monoid.max)
