"""Infix operators: pairs, arithmetic, broadcasting and matrix products."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from sys import _getframe
from types import BuiltinFunctionType, FrameType, FunctionType
from typing import Any

import numpy as np

from lagpu.algebra.operators import SIGNS, BinaryOp, Monoid, Parameterized, Semiring
from lagpu.algebra.tables import binary, monoid, semiring, unary
from lagpu.core import arguments, expr
from lagpu.core.expr import OUTPUTS, Call, Expression, Mask, Unassigned
from lagpu.core.hints import NoTruth, is_operand, name_of, object_of
from lagpu.dtypes import BOOL, DType, unify
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.host.source import author
from lagpu.operations import Ewise, Kronecker, Multiply, MultiplySelection, Product, new


class Pair(Unassigned, Expression):
    """Two operands and a sign: ``u @ A``, ``u | v`` or ``u & v``.

    They wait for what is `wanted`: an operator or a semiring, such as `usual`, which calls the
    method that `takes` names. Another operand after a sign of `chains` makes a longer pair.
    """

    __slots__ = ("_result", "left", "right")
    left: Any
    right: Any
    sign: str
    usual: str
    wanted = takes = chains = ""

    def _operands(self, op: Any, *numbers: Any, **options: Any) -> tuple[Any, Any, Any]:
        """Return (left, right, operator); a pair of the same sign among them takes it first.

        In such a chain the operator has the common type of all operands and `numbers`.
        """
        self._mark_used()
        left, right = self.left, self.right
        if isinstance(left, Pair) or isinstance(right, Pair):
            kinds = self._dtypes()
            kind = functools.reduce(unify, kinds)
            for number in numbers:
                kind = unify(kind, arguments.scalar_dtype(number, kind, self.takes))
            if getattr(op, "op", op).dtype is None and {*kinds} != {kind}:
                op = op[kind]
            left, right = (
                getattr(x, self.takes)(op, None, **options) if _joins(x, self.sign) else x
                for x in (left, right)
            )
        return expr.made_of(left), expr.made_of(right), op

    def _dtypes(self) -> list[DType]:
        sides = self.left, self.right
        return [
            kind
            for x in sides
            for kind in (x._dtypes() if _joins(x, self.sign) else [expr.made_of(x).dtype])
        ]

    @property
    def dtype(self) -> DType:
        """Type of the result."""
        return self.call().dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.call().shape

    @property
    def formula(self) -> tuple[Any, ...]:
        """The pair as mathematics."""
        return (self.left, f" {self.sign} ", self.right)

    @property
    def as_line(self) -> str:
        """The pair in the author's names, with ``A.T`` for a transpose."""
        return f"{name_of(self.left)} {self.sign} {name_of(self.right)}"

    @property
    def example(self) -> str:
        """The expression with its operator, in the author's names."""
        return f"{self.usual}({self.as_line})"

    @property
    def _hint(self) -> str:  # type: ignore[override]
        return f"Write {self.example}, or another {self.wanted}."

    def _infix(self, sign: str, other: Any, reflected: bool = False) -> Any:
        if sign not in self.chains:
            return super()._infix(sign, other, reflected)
        return _paired(sign, *((other, self) if reflected else (self, other)))

    def __repr__(self) -> str:
        return expr.format_as_written(self.formula)

    def _output(self, value: Any) -> str:
        w = name_of(value) if getattr(value, "ndim", 0) else "w"
        return f"Write {w} << {self.example}."


def _joins(x: Any, sign: str) -> bool:
    """Whether `x` is a pair of this sign, which takes the operator of the pair around it."""
    return isinstance(x, Pair) and x.sign == sign


# ---- ``u | v`` and ``u & v`` wait for an operator, as in ``binary.plus(u | v)``.
def _is_number(x: Any) -> bool:
    """Whether `x` is a scalar, a number, or two of them that wait for an operator."""
    if type(x) is Joined:
        return _is_number(x.left) and _is_number(x.right)
    return type(x) is OUTPUTS[0] or isinstance(x, (int, float, np.generic))


_FIRST = "To the right of << write brackets, as w << (u & v): Python computes w << u first."
_WAYS = {"|": ("ewise_add", "plus", "lor"), "&": ("ewise_mult", "times", "land")}


class Joined(Pair):
    """Two operands on the union, ``u | v``, or on the intersection, ``u & v``.

    Without an operator they are the logical or and and, for BOOL only.
    """

    __slots__ = ("sign", "usual")
    ndim = property(lambda self: max(getattr(x, "ndim", 0) for x in (self.left, self.right)))
    _remedy = "{0} has no operator, and was never used. Write w << binary.plus({0})."
    wanted, takes, chains = "operator", "combined", "|&"

    def __init__(self, left: Any, right: Any, sign: str) -> None:
        self.sign, self.usual = sign, f"binary.{_WAYS[sign][1]}"
        scalars = _is_number(left) and _is_number(right)
        if scalars:
            left, right = (
                x if isinstance(x, (Joined, OUTPUTS[0])) else OUTPUTS[0].from_value(x)
                for x in (left, right)
            )
        self.left, self.right, self._used = left, right, False
        expr.mark_used(left, right)
        for operand in (left, right):
            if isinstance(operand, Joined) and operand.sign != sign:
                self.refuse(f"{sign} next to {operand.sign} has two meanings", operand._hint)
            if isinstance(operand, Mask) or not (scalars or isinstance(operand, NoTruth)):
                hint = _FIRST if operand is None else f"With a number, write {self.usual}(u, x)."
                self.refuse(f"{type(operand).__name__} is neither a Vector nor a Matrix", hint)

        if not isinstance(left, Expression) and not isinstance(right, Expression) and not scalars:
            x, y = left.shape, right.shape
            fits = x == y if len(x) == len(y) else x[0] == y[0] if len(x) == 1 else x[1] == y[0]
            if not fits:
                self.combined(binary.first, None)  # raises

    def combined(self, op: BinaryOp, by: FrameType | None, **defaults: Any) -> Call:
        """Return the deferred element-wise operation with `op`, of a chain ``u | v | w`` too.

        ``left_default=`` and ``right_default=``, both, fill in for missing entries of a union.
        """
        left, right, op = self._operands(op, *defaults.values(), **defaults)
        if defaults:
            if self.sign == "&" or set(defaults) != {"left_default", "right_default"}:
                self.refuse(
                    f"takes no {', '.join(defaults)}",
                    "Give both left_default= and right_default= to the operator of u | v.",
                )
            call: Call = left.ewise_union(right, op, **defaults)
        else:
            call = getattr(left, _WAYS[self.sign][0])(right, op)
        return call._written_in(by)

    def call(self) -> Call:
        """Return the deferred ``or`` or ``and`` of BOOL operands."""
        parts = [x.call() if isinstance(x, Pair) else x for x in (self.left, self.right)]
        kinds = [x.dtype for x in parts]
        if any(kind is not BOOL for kind in kinds):
            expr.mark_used(*parts)
            self.refuse(
                f"{self.as_line} has no operator, and its types {kinds[0]} and {kinds[1]} are not "
                "both BOOL"
            )
        return self.combined(binary[_WAYS[self.sign][2]], None)


# ---- A vector with a matrix: on the left it is for the rows, on the right for the columns.
@functools.lru_cache(maxsize=256)  # one object for each: backends remember semirings by identity
def _any_of(op: BinaryOp) -> Semiring:
    """Return the semiring that multiplies by `op`, for products of one term in each sum."""
    name = f"any_{op.name}"
    known = op.dtype is None and not op.body and name in semiring
    return semiring[name] if known else Semiring(monoid.any, op)


def as_column(v: Any) -> Any:
    """Return the n x 1 matrix with the entries of a vector; a full one stays on its device."""
    place = v._flushed()
    if v.nvals == v.size:
        both = v.apply("index").new(), v
        indices, values = (x._flushed().vector_values(x.data, True) for x in both)
    else:
        indices, values = v.to_coo()
    shape = (v.size, 1)
    data = place.matrix_from_csc(np.array([0, len(indices)]), indices, values, v.dtype, shape)
    return OUTPUTS[2]._of(data, v.dtype, shape, place, None)


def outer_product(u: Any, v: Any, op: BinaryOp) -> Call:
    """Return the deferred matrix ``C[i, j] = u[i] (x) v[j]``."""
    column = as_column(u)
    product: Call = column.mxm(column.T if v is u else as_column(v).T, _any_of(op))
    return product._written_in(None, (op.name, " outer(", u, ", ", v, ")"))


def broadcast(kind: str, x: Any, y: Any, op: BinaryOp, defaults: Any, by: FrameType | None) -> Call:
    """Return the deferred element-wise operation on a vector and a matrix.

    On the intersection it is a product with a diagonal matrix. On the union each entry of the
    vector is written into its whole row or column, so the result has up to that many entries.
    """
    left = x.ndim == 1
    v, A = (x, y) if left else (y, x)
    size, other = A.shape if left else A.shape[::-1]
    if v.size != size:
        side = "nrows" if left else "ncols"
        raise DimensionMismatch(
            f"{kind}: {name_of(v)}.size {v.size} != {name_of(A)}.{side} {size}. A vector on the "
            "left counts for the rows of a matrix, on the right for its columns."
        )
    if kind == "ewise_mult":
        ways = (v.diag(), A) if left else (A, v.diag())
        call: Call = ways[0].mxm(ways[1], _any_of(op))
    else:
        ones = OUTPUTS[1](v.dtype, other, like=v)
        ones << 1
        pair, value = ((v, ones), binary.first) if left else ((ones, v), binary.second)
        whole = outer_product(*pair, value).new()
        ways = (whole, A) if left else (A, whole)
        call = getattr(ways[0], kind)(ways[1], op, *(defaults or ()))
    sign = " ⊗ " if kind == "ewise_mult" else " ⊕ "
    return call._written_in(by, (op.name, "(", x, sign, y, ")"))


# ---- Products with ``@``, and the operations on two matrices: expressions become calls.
_PLUS_TIMES = semiring.plus_times


class MatMul(Pair):
    """A product without a semiring yet: ``u @ A``, ``A @ B``. If none is given it is plus_times.

    In a chain ``A @ B @ C`` one semiring is that of all products.
    """

    __slots__ = ("ndim",)
    _remedy = "{0} has no semiring, and was never used. Write w << semiring.plus_times({0})."
    sign = chains = "@"
    usual, wanted, takes = "semiring.plus_times", "semiring", "times"
    ndim: int

    def __init__(self, left: Any, right: Any) -> None:
        left, of_left = _side(left, right)
        right, of_right = _side(right, left)
        self.ndim = of_left + of_right - 2
        self.left, self.right, self._used = left, right, False
        paired = isinstance(left, Pair) or isinstance(right, Pair)
        if not paired and left.shape[-1] != right.shape[0]:
            self.call()  # raises

    def call(self) -> Call:
        """Return the deferred product over plus_times, as in linear algebra."""
        return self.times(_PLUS_TIMES, None)

    def times(self, semiring: Semiring, by: FrameType | None, **options: Any) -> Call:
        """Return the deferred product over `semiring`, written in the frame `by`."""
        left, right = self.left, self.right
        if isinstance(left, Pair) or isinstance(right, Pair):
            left, right, semiring = self._operands(semiring, **options if self.ndim == 1 else {})
        self._mark_used()
        if left.ndim == right.ndim:
            if options and by is not None:  # they are for the products of a vector in a chain
                raise InvalidValue(f"mxm: takes no {', '.join(options)}. Leave it out.")
            product = inner_product if left.ndim == 1 else _matrix_product
            return product(left, right, semiring, by)
        if left.ndim == 1:
            return vector_product(right, left, semiring, True, by, **options)
        return vector_product(left, right, semiring, False, by, **options)


def _side(x: Any, other: Any) -> tuple[Any, int]:
    """Return an operand of ``@``, and the dimensions of the object that it is or will be."""
    if isinstance(x, Arithmetic):
        return x, x.ndim  # type: ignore[attr-defined]  # a vector, a matrix or a view
    if isinstance(x, MatMul):
        x._mark_used()
        return x, x.ndim
    found = expr.made_of(x)
    ndim = getattr(found, "ndim", 0) if isinstance(x, NoTruth) else 0
    if not ndim:
        expr.mark_used(other)
        raise DomainMismatch(
            f"@: {expr.kind_of(x)} is neither a Vector nor a Matrix. "
            "Make one with from_dense or from_coo."
        )
    return found, ndim


def _paired(sign: str, left: Any, right: Any) -> Pair:
    """Return two operands that wait for their operator or their semiring."""
    return MatMul(left, right) if sign == "@" else Joined(left, right, sign)


def inner_product(u: Any, v: Any, semiring: Semiring, by: FrameType | None) -> Call:
    """Return the deferred ``u @ v``: the products are computed now; their sum waits."""
    if u.size != v.size:
        raise DimensionMismatch(f"inner: {name_of(u)}.size {u.size} != {name_of(v)}.size {v.size}.")
    domain, result = semiring.types(u.dtype, v.dtype)
    products = u.ewise_mult(v, semiring.multiply[domain]).new(result)
    total = products.reduce(semiring.monoid)
    return Call(total.operation, (products,), result, (), (u, f" {semiring.name} ", v), by)


def _other_ways(A: Any, u: Any, flip: bool) -> str:
    """Return the hint with the two products that would fit if A were transposed."""
    a, v = name_of(A), name_of(u)
    transposed = a.removesuffix(".T") if a.endswith(".T") else f"{a}.T"
    ways = (f"{v} @ {transposed}", f"{a} @ {v}") if flip else (f"{transposed} @ {v}", f"{v} @ {a}")
    return f" Did you mean {ways[0]} or {ways[1]}?"


def vector_product(
    A: Any, u: Any, semiring: Semiring, flip: bool, by: FrameType | None,
    kernel: str | None = None, policy: str | None = None,
) -> Call:  # fmt: skip
    """Return the deferred ``A @ u``, or ``u @ A`` if `flip`, as written in the frame `by`."""
    usual = type(A) is OUTPUTS[2] and type(u) is OUTPUTS[1]
    if not usual and not (is_operand(A, 2) and is_operand(u, 1)):
        raise DomainMismatch(
            f"{semiring!r}: takes a Matrix and a Vector, not {expr.kind_of(A)} and "
            f"{expr.kind_of(u)}. Write {semiring.name}(q @ A)."
        )
    inner, outer = A.shape if flip else A.shape[::-1]
    if u.shape[0] != inner:
        op, side = ("vxm", "nrows") if flip else ("mxv", "ncols")
        raise DimensionMismatch(
            f"{op}: {name_of(u)}.size {u.size} != {name_of(A)}.{side} {inner}."
            + (_other_ways(A, u, flip) if u.size == outer else "")
        )
    if kernel is not None and policy is not None:
        op = "vxm" if flip else "mxv"
        raise InvalidValue(f"{op}: give one of kernel={kernel!r} and policy={policy!r}, not both.")
    left, right = (u, A) if flip else (A, u)
    stored = A if usual else A.stored
    product = _algebra(semiring, left.dtype, right.dtype, flip is (A is stored), flip)
    if kernel is not None or policy is not None:
        product = product._replace(kernel=kernel, policy=policy)
    operation: Multiply | MultiplySelection
    if usual or isinstance(stored, OUTPUTS[2]):
        source = stored
        operation = new(Multiply, (stored.data, u.data, product, False))
    else:
        source = stored.operand  # the vector of a selection
        operation = MultiplySelection(source.data, u.data, product)
    formula = (left, f" {semiring.name} ", right)
    return Call(operation, (source, u), product.result, (outer,), formula, by)


@functools.lru_cache(maxsize=1024)
def _algebra(semiring: Semiring, left: DType, right: DType, transpose: bool, flip: bool) -> Product:
    return Product(semiring, *semiring.types(left, right), transpose, flip)


class MatrixOperand(NoTruth):
    """A matrix or a view of one, as the left operand of an operation on two matrices."""

    __slots__ = ()
    shape: Any

    @property
    def stored(self) -> Any:
        """The matrix itself; of a transpose, the matrix that is stored."""
        return self

    @property
    def nrows(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def ncols(self) -> int:
        """Number of columns."""
        return self.shape[1]

    def __iter__(self: Any) -> Iterator[tuple[int, int]]:
        """Yield the (row, column) of the entries, in the order of `to_coo`."""
        rows, cols, _ = self.to_coo()
        return zip(rows.tolist(), cols.tolist(), strict=True)

    def mxv(
        self: Any, u: Any, op: Semiring | str = _PLUS_TIMES, *,
        kernel: str | None = None, policy: str | None = None,
    ) -> Call:  # fmt: skip
        """Multiply by a vector, as ``op(A @ u)``: ``w[i] = ⊕_j A[i, j] ⊗ u[j]``.

        Parameters
        ----------
        u : Vector, (ncols,)
            The vector.
        op : Semiring
            The algebra.
        kernel, policy : str, optional
            The strategy, or the rule that chooses one, on a backend that offers them.
        """
        return vector_product(
            self, object_of(u), semiring.lookup(op), False, _getframe(1), kernel, policy
        )

    def mxm(self: Any, B: Any, op: Semiring | str = _PLUS_TIMES) -> Call:
        """Multiply by a matrix, as ``op(A @ B)``: ``C[i, j] = ⊕_k A[i, k] ⊗ B[k, j]``.

        Parameters
        ----------
        B : Matrix or its transpose, (ncols, m)
            The right operand.
        op : Semiring
            The algebra.
        """
        B = _require_matrix("mxm", B)
        return _matrix_product(self, B, semiring.lookup(op), _getframe(1))

    def kronecker(self: Any, B: Any, op: Any = binary.times) -> Call:
        """Return the Kronecker product with a matrix `B` of shape (p, q).

        ``C[i p + k, j q + l] = A[i, j] ⊗ B[k, l]``
        """
        found = arguments.binary_operator(op)
        B = _require_matrix("kronecker", B)
        nrows = arguments.as_size(self.nrows * B.nrows, "kronecker")
        ncols = arguments.as_size(self.ncols * B.ncols, "kronecker")
        left, right, transposed = _stored(self, B)
        operation = Kronecker(left.data, right.data, found, transposed)
        result = found.types(self.dtype, B.dtype)[1]
        formula = (found.name, " kronecker(", self, ", ", B, ")")
        return Call(operation, (left, right), result, (nrows, ncols), formula, _getframe(1))

    def power(self: Any, n: int, op: Semiring | str = _PLUS_TIMES) -> Call:
        """Return the product of `n` times this square matrix, ``A @ A @ ... @ A``.

        For 0 it is the diagonal of the identity of the multiplication, if that has one.

        Raises
        ------
        InvalidValue
            If `n` is less than 0.
        DimensionMismatch
            If the matrix is not square.
        """
        algebra, n = semiring.lookup(op), arguments.integer(n, "power: n", 0)
        if self.nrows != self.ncols:
            raise DimensionMismatch(f"power: {name_of(self)} has shape {self.shape}: not square.")
        if n == 0:
            times = algebra.multiply.monoid
            if times is None:
                raise InvalidValue(f"power: {algebra.multiply!r} has no identity, so n is above 0.")
            kind = algebra.types(self.dtype, self.dtype)[1]
            one = OUTPUTS[1].from_scalar(times.identity(kind), self.nrows, kind, like=self)
            return one.diag().copying()._written_in(_getframe(1))
        square, done = self, None
        while n > 1:  # by the bits of n: few products
            if n % 2:
                done = square if done is None else done.mxm(square, algebra).new()
            square, n = square.mxm(square, algebra).new(), n // 2
        call: Call = square.copying() if done is None else done.mxm(square, algebra)
        return call._written_in(_getframe(1))


def _matrix_product(A: Any, B: Any, semiring: Semiring, by: FrameType | None) -> Call:
    if A.ncols != B.nrows:
        raise DimensionMismatch(
            f"mxm: {name_of(A)}.ncols {A.ncols} != {name_of(B)}.nrows {B.nrows}."
            + (f" Did you mean {_transpose_of(B)}?" if A.ncols == B.ncols else "")
        )
    domain, result = semiring.types(A.dtype, B.dtype)
    left, right, (left_transposed, right_transposed) = _stored(A, B)
    product = Product(semiring, domain, result, not right_transposed, True)
    operation = Multiply(right.data, left.data, product, left_transposed)
    formula = (A, f" {semiring.name} ", B)
    return Call(operation, (left, right), result, (A.nrows, B.ncols), formula, by)


def made(x: Any) -> Any:
    """Return a matrix or its transpose as it is, and the matrix of a selection, made now."""
    return x if isinstance(x.stored, OUTPUTS[2]) else x._computed()


def _stored(A: Any, B: Any) -> tuple[Any, Any, tuple[bool, bool]]:
    """Return the stored matrices of two operands, and whether each operand is the transpose."""
    A, B = made(A), made(B)
    return A.stored, B.stored, (A is not A.stored, B is not B.stored)


def _transpose_of(A: Any) -> str:
    return f"{name_of(A)}.T" if A.stored is A else name_of(A.stored)


def _require_matrix(what: str, B: Any) -> Any:
    """Return `B`, computed if it is an expression, if that is a matrix."""
    found = object_of(B)
    if not is_operand(found, 2):
        raise DomainMismatch(f"{what}: {expr.kind_of(found)} is not a Matrix.")
    return found


def require_vector(what: str, u: Any, other: Any) -> Any:
    """Return `other`, computed if it is an expression, if it is a vector as `u` is."""
    found = object_of(other)
    if is_operand(found, 1):
        return found
    hint = "" if is_operand(found, 2) else f" With a number, write {name_of(u)}.apply(op, x)."
    raise DomainMismatch(f"{what}: {expr.kind_of(found)} is not a Vector.{hint}")


def _ewise(
    by: FrameType, kind: str, x: Any, other: Any, op: Any, sign: str, given: Any = None
) -> Call:
    """Return the deferred element-wise operation on two objects; a union has `given` defaults."""
    y = other
    if type(y) is not type(x):  # an expression, a view, or of the other kind
        y = object_of(y)
        if not is_operand(y, 3 - x.ndim):
            y = require_vector(kind, x, y) if x.ndim == 1 else _require_matrix(kind, y)
    found, defaults = arguments.binary_operator(op), None
    if given is not None:
        found, defaults = arguments.with_defaults(op, x.dtype, y.dtype, given)
    if x.ndim != y.ndim:
        return broadcast(kind, x, y, found, defaults, by)
    if x.shape != y.shape and x.ndim == 1:
        names = name_of(x), name_of(y)
        raise DimensionMismatch(f"{kind}: {names[0]}.size {x.size} != {y.size} of {names[1]}.")
    if x.shape != y.shape:
        raise DimensionMismatch(
            f"{kind}: {name_of(x)} has shape {x.shape} != {y.shape} of {name_of(y)}."
            + (f" Did you mean {_transpose_of(y)}?" if x.shape == y.shape[::-1] else "")
        )
    left, right, transposed = (x, y, (False, False)) if x.ndim == 1 else _stored(x, y)
    operation = new(Ewise, (kind, left.data, right.data, found, defaults, transposed))
    formula = (found.name, "(", x, sign, y, ")")
    return Call(operation, (left, right), found.types(x.dtype, y.dtype)[1], x.shape, formula, by)


# ---- ``u + v``, ``2 * u``, ``A == 3``, ``u *= v``: Python's operators as element-wise operations.
#: sign -> element-wise operation on two vectors or two matrices, as in python-graphblas: in a sum a
#: missing entry is neutral, a product needs both entries.
WAYS = {
    **{"+": "ewise_add", "^": "ewise_add", "-": "ewise_union"},
    **dict.fromkeys(("*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">="), "ewise_mult"),
}
UNARY = {"-": "ainv", "abs()": "abs", "~": "lnot"}


@functools.cache
def operator_of(sign: str) -> BinaryOp:
    """Return the operator of a sign such as ``"+"``."""
    name = SIGNS[sign]
    if name not in binary:
        raise DomainMismatch(
            f"{sign}: there is no binary.{name}. Make one with binary.register({name!r}, python, "
            f"cuda), then use u.apply(binary.{name}, x) or binary.{name}(u & v)."
        )
    return binary[name]


class Arithmetic(NoTruth):
    """The operators of a vector, a matrix or a view of one.

    With a number or a scalar they apply to each entry. Of two objects ``+`` and ``^`` are
    `ewise_add`, ``-`` is `ewise_union` with 0 for a missing entry, and all others are `ewise_mult`.
    ``u | v`` and ``u & v`` wait for an operator: ``binary.plus(u | v)``.
    """

    __slots__ = ()

    def ewise_add(self: Any, other: Any, op: Any = monoid.plus) -> Call:
        """Combine on the union: ``w = u ⊕ v``, ``C = A ⊕ B``. An entry of one side alone stays.

        With a matrix, the entries of a vector on the right are repeated in each row.
        """
        return _ewise(_getframe(1), "ewise_add", self, other, op, " ⊕ ")

    def ewise_mult(self: Any, other: Any, op: Any = binary.times) -> Call:
        """Combine on the intersection: ``w = u ⊗ v``, ``C = A ⊗ B``."""
        return _ewise(_getframe(1), "ewise_mult", self, other, op, " ⊗ ")

    def ewise_union(self: Any, other: Any, op: Any, left_default: Any, right_default: Any) -> Call:
        """Combine on the union: ``w = u ⊕ v``, ``C = A ⊕ B``, with defaults for missing entries."""
        given = left_default, right_default
        return _ewise(_getframe(1), "ewise_union", self, other, op, " ⊕ ", given)

    def __matmul__(self, other: Any) -> MatMul:
        return MatMul(self, other)

    def __rmatmul__(self, other: Any) -> MatMul:
        return MatMul(other, self)

    def _infix(self: Any, sign: str, other: Any, reflected: bool = False) -> Any:
        plain = type(other) in arguments.PLAIN
        if other is None:
            word = {"==": "is", "!=": "is not"}.get(sign)
            same = f"Write {name_of(self)} {word} None. " if word else ""
            self.refuse(f"has no {sign} with None", same + _FIRST)
        if sign in "@|&":
            if isinstance(other, Mask) and sign != "@":
                return other._infix(sign, self)
            return _paired(sign, *((other, self) if reflected else (self, other)))
        op, other = operator_of(sign), other if plain else object_of(other)
        if sign == "^":
            self._require_bool(sign, self)
            self._require_bool(sign, other)
        if plain or getattr(other, "ndim", 0) == 0:
            left, right = (other, None) if reflected else (None, other)
            return self._applied(op, left, right, author(2))
        known = isinstance(other, Arithmetic)  # else `self` says what it is
        left, right = (other, self) if reflected and known else (self, other)
        if WAYS[sign] == "ewise_union":
            call = left.ewise_union(right, op, False, False)
        else:
            call = getattr(left, WAYS[sign])(right, op)
        return call._written_in(author(2))

    def _applied(self: Any, op: Any, left: Any, right: Any, by: FrameType | None) -> Call:
        """Return the deferred `apply` with an operand bound, written in the frame `by`."""
        return self.apply(op, right, left=left)._written_in(by)

    def _inplace(self: Any, sign: str, other: Any) -> Any:
        if getattr(other, "ndim", 0) > self.ndim and sign != "@":
            expr.mark_used(other)
            self.refuse(f"has no {sign}= that keeps its shape", "Write << and another output.")
        alike = getattr(other, "shape", None) == self.shape
        if sign in "|^&" and getattr(object_of(other), "ndim", 0) == 0:
            self._require_bool(f"{sign}=", self)
            self << self.apply(binary[SIGNS[sign]], other)
        elif alike and sign in "+|^":
            if sign != "+":
                self._require_bool(f"{sign}=", other)
            self(accum=binary[SIGNS[sign]]) << other
        else:
            self << self._infix(sign, other)
        return self

    def _require_bool(self, sign: str, x: Any) -> None:
        kind = getattr(x, "dtype", None) or arguments.scalar_dtype(x, BOOL, sign)
        if kind is not BOOL:
            expr.mark_used(x)
            self.refuse(f"has no {sign} for {kind}", "It is for BOOL alone.")

    def _alone(self: Any, sign: str) -> Any:
        if sign == "~" and self.dtype is not BOOL:
            me = name_of(self)
            mask = f"write ~{me}.S for where {me} has no entry, ~{me}.V where none but 0."
            bits = "" if self.dtype.is_float else f" Of bits, write unary.bnot({me})."
            self.refuse(f"has no ~ for {self.dtype}", f"As a mask, {mask}{bits}")
        return self.apply(unary[UNARY[sign]])._written_in(author())


# ---- Mask, accumulator and `replace` by position: ``w(binary.min, m.S, replace) << call``.
class Replace:
    """`lagpu.replace`: delete the output's entries outside the mask, as in ``w(m.S, replace)``."""

    def __repr__(self) -> str:
        return "replace"

    def __reduce__(self) -> str:
        return "replace"  # pickled by its name: there is one


replace = Replace()
_OPERATORS = (BinaryOp, Monoid, Parameterized, str, FunctionType, BuiltinFunctionType)


def described(
    out: Any, given: tuple[Any, ...], mask: Any, accum: Any, replaces: bool
) -> tuple[Any, Any, bool]:
    """Return (mask, accumulator, replace) of an output that was called with `given` by position."""
    for x in given:
        if x is None:
            continue
        if x is replace:
            replaces = True
        elif isinstance(x, _OPERATORS):
            accum = _only(out, "accumulator", accum, x)
        elif isinstance(x, NoTruth):
            mask = _only(out, "mask", mask, x)
        else:
            raise DomainMismatch(
                f"{name_of(out)}(...): {expr.kind_of(x)} is no mask, accumulator or replace. "
                "Write m.S for the entries of m, m.V for those that are not zero, binary.plus for "
                "an accumulator."
            )
    return mask, accum, replaces


def _only(out: Any, what: str, before: Any, x: Any) -> Any:
    if before is not None:
        raise DomainMismatch(f"{name_of(out)}(...): takes one {what}, not two. Leave one out.")
    return x
