"""What a type checker knows: every operator by name, and what a product is.

`mypy` reads this text with lagpu's: it must refuse each line that ignores an error, and no other.
"""

from typing import assert_type

from lagpu import Matrix, Vector, agg, binary, monoid, select, semiring, unary
from lagpu.algebra.operators import BinaryOp, Monoid, Semiring, UnaryOp
from lagpu.core.expr import Call

A = Matrix.from_coo([0], [1], [1.0], nrows=2, ncols=2)
u = Vector.from_dict({0: 1.0}, size=2)
assert_type(A, Matrix)
assert_type(u, Vector)
assert_type(semiring.any_pair, Semiring)
assert_type(semiring.plus_cdiv, Semiring)
assert_type(binary.floordiv, BinaryOp)
assert_type(unary.floor, UnaryOp)
assert_type(monoid.bor, Monoid)
assert_type(semiring.min_plus["FP64"], Semiring)
assert_type(semiring.any_pair(u @ A), Call)
assert_type(unary.abs(u), Call)
assert_type(A.reduce_rowwise(agg.mean), Call)
assert_type(A.T.reduce_rowwise(monoid.plus), Call)
assert_type(A.dup(), Matrix)
assert_type(u.dup(clear=True).wait(), Vector)
select.tril(A, -1).new()
u << semiring.min_plus(u @ A)
semiring.any_piar(u @ A)  # type: ignore[attr-defined]
binary.pluss(u, u)  # type: ignore[attr-defined]
unary.flor(u)  # type: ignore[attr-defined]
monoid.orr(u)  # type: ignore[attr-defined]
agg.meen(u)  # type: ignore[attr-defined]
select.trill(A)  # type: ignore[attr-defined]
semiring.any_pair(3)  # type: ignore[arg-type]
u.nvalls()  # type: ignore[attr-defined]
