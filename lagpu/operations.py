"""Statements, operations, scalars and recorded loops, which the front end gives to a backend."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator, Semiring
from lagpu.dtypes import Array, DType, cast, lookup


class Formula(NamedTuple):
    """``left sign right``: each side is a NumPy number, the counter of a loop (None), or such."""

    sign: str
    left: Any
    right: Any


_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


def number_at(formula: Any, depth: int) -> Any:
    """Return what Python computes by a formula in iteration `depth`."""
    if isinstance(formula, Formula):
        return _SIGNS[formula.sign](*(number_at(side, depth) for side in formula[1:]))
    if formula is None:
        return depth
    return formula.item() if isinstance(formula, np.generic) else formula


def _counts(sign: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Counter, other: Any) -> Any:
        if isinstance(other, np.generic) or not isinstance(other, (int, float, Counter)):
            return NotImplemented
        sides = (other, self) if reflected else (self, other)
        return Counter(self.start, Formula(sign, *map(_side, sides)))

    return method


def _side(x: Any) -> Any:
    """Return a side of a formula; a whole number that INT64 does not hold stays as it is."""
    if isinstance(x, Counter):
        return x.formula
    if isinstance(x, float):
        return np.float64(x)
    return np.int64(x) if -(2**63) <= x < 2**63 else int(x)


class Counter:
    """The counter of a loop whose body is being recorded, or what is computed with it.

    It is the value in every iteration, by the `formula`; `first` is that in iteration
    `start`, where the recording begins.
    """

    __slots__ = ("first", "formula", "start")
    __array_ufunc__ = None  # NumPy's numbers would compute with one value

    def __init__(self, start: int = 0, formula: Any = None) -> None:
        self.start, self.formula, self.first = start, formula, number_at(formula, start)

    __add__, __radd__ = _counts("+"), _counts("+", True)
    __sub__, __rsub__ = _counts("-"), _counts("-", True)
    __mul__, __rmul__ = _counts("*"), _counts("*", True)
    __truediv__, __rtruediv__ = _counts("/"), _counts("/", True)
    __floordiv__, __rfloordiv__ = _counts("//"), _counts("//", True)
    __mod__, __rmod__ = _counts("%"), _counts("%", True)

    def __neg__(self) -> Counter:
        return self * -1

    def __str__(self) -> str:
        return formula_text(self.formula)


def formula_text(formula: Any) -> str:
    """Return a formula as Python writes it, with the counter under the name ``iteration``."""
    if not isinstance(formula, Formula):
        return "iteration" if formula is None else str(formula)
    return f"({formula_text(formula.left)} {formula.sign} {formula_text(formula.right)})"


class ScalarValue:
    """The value of a scalar, a NumPy scalar of its type or None, on the host or still on a device.

    `location` and `holder` are the device memory that has the value and its device, as `defer` got
    them, None once the host has it. `is_there` says whether there is a value for sure, wherever it
    is. `kind` is what the text of a program depends on: the type; `stamp` is no more than that.
    """

    __slots__ = ("_fetch", "_value", "dtype", "holder", "is_there", "kind", "location", "stamp")

    def __init__(self, dtype: DType, value: Any = None) -> None:
        self.dtype = dtype
        self.kind = self.stamp = (dtype,)
        self.set(value)

    def get(self) -> Any:
        """Return the value as a NumPy scalar, or None; waits if a device has the value."""
        fetch = self._fetch
        if fetch is None:
            return self._value
        value = fetch()
        if self._fetch is fetch:  # no other thread has set a value meanwhile
            self.set(value)
        return value

    def set(self, value: Any) -> None:
        """Replace the value by a NumPy scalar of the type, or by None."""
        self._value, self.is_there = value, value is not None
        self._fetch: Callable[[], Any] | None = None
        self.location: Any = None
        self.holder: Any = None

    def defer(self, fetch: Callable[[], Any], location: Any, holder: Any, is_there: bool) -> None:
        """Note that `holder` has the value in `location`; `fetch` copies it to the host."""
        self._fetch, self.location, self.holder = fetch, location, holder
        self.is_there = is_there

    def write(self, accum: BinaryOp | None, dtype: DType, new: Any) -> None:
        """Assign a number of type `dtype`, or None, as GraphBLAS writes a scalar."""
        if accum is not None:
            before = self.get()
            if new is None:
                return
            if before is not None:
                domain, _ = accum.types(self.dtype, dtype)
                new = accum.evaluate(domain, before, dtype.numpy.type(new))
        if new is not None:
            new = dtype.numpy.type(new) if dtype is self.dtype else cast(new, self.dtype)
        self.set(new)


class ScalarRef(NamedTuple):
    """A scalar whose value a recorded statement reads when it runs, cast to `dtype`.

    `read` returns it of any scalar, or raises the error that a statement would raise if it ran now.
    """

    scalar: ScalarValue
    dtype: DType
    name: str
    read: Callable[[ScalarValue], Any]

    def now(self) -> Any:
        """Return the value that a statement reads now; see `read`."""
        return self.read(self.scalar)

    def __str__(self) -> str:
        return self.name


class CounterRef(NamedTuple):
    """The counter of a recorded loop, or what `formula` computes with it, cast to `dtype`.

    `now` returns a value as a NumPy number, or raises the error of one that does not fit.
    """

    dtype: DType
    formula: Any = None
    now: Callable[[Any], Any] | None = None

    def __str__(self) -> str:
        return formula_text(self.formula)


def parts_in(x: Any, kind: type) -> Iterator[Any]:
    """Yield the parts of a class in an operand or a record, such as references to a counter."""
    if type(x) is kind:
        yield x
    elif isinstance(x, tuple):
        for part in x:
            yield from parts_in(part, kind)


def replaced(x: Any, change: Callable[[Any], Any], kind: type) -> Any:
    """Return an operand or a record in which `change` has replaced each part of a class."""
    if isinstance(x, kind):
        return change(x)
    if not isinstance(x, tuple):
        return x
    parts = [replaced(part, change, kind) for part in x]
    if all(map(operator.is_, parts, x)):
        return x
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)


def read(x: Any, depth: int) -> Any:
    """Return an operand with the values of its scalars, in iteration `depth` of a loop."""
    if type(x) is ScalarRef:
        return x.now()
    if type(x) is CounterRef:
        found = number_at(x.formula, depth)
        return x.dtype.numpy.type(found) if x.now is None else x.now(found)
    for part in x:
        if isinstance(part, tuple):
            break
    else:
        return x
    parts = [read(part, depth) if isinstance(part, tuple) else part for part in x]
    if all(map(operator.is_, parts, x)):
        return x
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)


# ---- A statement is an output, a descriptor and an operation. The operation of a matrix of k rows
# is the same record as that of a vector. Operands are *handles*, a backend's own objects.
#
# A backend obeys the GraphBLAS rule: with ``T`` the operation's result, ``Z = T``, or with an
# accumulator ``Z = W (+) T`` (entries of only one side stay as they are); where the mask holds,
# ``W`` becomes ``Z`` (an entry that ``Z`` lacks is deleted); elsewhere ``W`` stays, or is deleted
# if `replace` is set. The output may be one of the operands.
Handle = Any
"""A backend's own object for a vector or a matrix; it stays the same when it is written."""
Indices = tuple[Array | None, ...] | None
"""An index list for each dimension, None for all its indices; None alone for the whole object."""
Transposed = tuple[bool, bool]
"""For each of two matrices, whether the operation uses its transpose."""


#: ``new(Apply, (u, f))`` is ``Apply(u, f)`` in a third of the time, for what each statement makes.
new = tuple.__new__


class Descriptor(NamedTuple):
    """Mask, accumulator and replace: how a result is written.

    The mask is a vector for a vector, a matrix for a matrix. By `structure` it keeps every position
    at which it has an entry, else those at which the entry is not zero; with `complement` it keeps
    the other positions. With `replace` the output's entries outside the mask are deleted.
    """

    mask: Handle | None = None
    structure: bool = True
    complement: bool = False
    accum: BinaryOp | None = None
    replace: bool = False

    @property
    def is_fresh(self) -> bool:
        """Whether the statement discards the output's earlier content."""
        return self.accum is None and (self.replace or self.mask is None)


class Product(NamedTuple):
    """The algebra of a product of a matrix with a vector, ``w = A u`` or ``w = A' u``.

    Operands are cast to `domain`, products to `result`, the type of the sums. With `transpose`,
    ``w[j] = (+)_i A[i, j] u[i]``. With `flip` the vector is the left operand of the multiplication.
    ``u @ A`` has both, ``A.T @ u`` the first, ``u @ A.T`` the second, and ``A @ u`` neither.
    `kernel` and `policy` are the author's choice, where a backend offers one.
    """

    semiring: Semiring
    domain: DType
    result: DType
    transpose: bool
    flip: bool
    kernel: str | None = None
    policy: str | None = None

    @property
    def reads(self) -> tuple[bool, bool]:
        """Whether the multiplication reads the vector's values, and the matrix' values."""
        reads = self.semiring.multiply.reads
        return reads if self.flip else reads[::-1]

    @property
    def is_output_index(self) -> bool:
        """Whether each product is the index of the output."""
        return self.semiring.multiply.positional == ("j" if self.flip else "i")

    @property
    def is_named(self) -> bool:
        """Whether the author names a kernel or a policy."""
        return self.kernel is not None or self.policy is not None


class BoundOperator(NamedTuple):
    """An operator of one operand: unary, binary with one operand bound, or index-unary.

    Entries and the bound operand are cast to `domain`; the output has the type `result`. The bound
    operand, or in `right` the thunk of an `IndexUnaryOp`, is a NumPy scalar or a ScalarRef.
    """

    op: Operator
    domain: DType
    result: DType
    left: Any = None
    right: Any = None


# ---- operations
#: The methods of vectors and matrices that make operations, and have no side effect.
PURE: set[str] = set()
T = TypeVar("T")


def operation(
    on_vectors: str, on_matrices: str, *, reads: str = "", pure: str = "", refers: str = ""
) -> Callable[[type[T]], type[T]]:
    """Return the decorator of a class of operations.

    Its names in messages and traces come first, "" where there is none. `reads` are the fields with
    the handles that it reads; `pure` the methods that make it, which a recorded loop may call, and
    an expression takes from its result; `refers` the field that may be, or may have, a `ScalarRef`
    or a `CounterRef`.
    """

    def described(cls: Any) -> Any:
        cls.names, cls.reads, cls.refers = (on_vectors, on_matrices), tuple(reads.split()), refers
        PURE.update(pure.split())
        return cls

    return described


@operation("mxv", "matrix_mxm", reads="matrix operand", pure="vxm mxv mxm outer")
class Multiply(NamedTuple):
    """``w = A u``, ``w = A' u``, or the same for each row of a matrix: ``C = Q A``.

    The operand is the vector ``u``, or the left one of two matrices, ``Q``, whose rows are such
    vectors; `transposed`: the transpose of ``Q`` is used. `transpose` and `flip` of the product are
    those of ``u @ A`` for each row ``u`` of ``Q``: so `transpose` is True for ``Q A``.
    """

    matrix: Handle
    operand: Handle
    product: Product
    transposed: bool = False


@operation("mxv_selection", "", reads="indices operand", pure="selection")
class MultiplySelection(NamedTuple):
    """``w = P u`` or ``w = P' u``, where P has an entry (f[j], j) for each entry j of a vector f.

    `indices` is f, of an integer type; a value outside of P's rows makes no entry.
    """

    indices: Handle
    operand: Handle
    product: Product


@operation("", "", reads="left right", pure="ewise_add ewise_mult ewise_union", refers="defaults")
class Ewise(NamedTuple):
    """An element-wise combination ``u (+) v`` or ``u (x) v``.

    The kind ``"ewise_add"`` is on the union, where an entry of one side alone stays as it is,
    ``"ewise_mult"`` on the intersection, and ``"ewise_union"`` on the union, with `defaults` in
    place of missing entries of the left and the right side, in the operator's domain.
    """

    kind: str
    left: Handle
    right: Handle
    op: BinaryOp
    defaults: tuple[Any, Any] | None = None
    transposed: Transposed = (False, False)


@operation("", "matrix_kronecker", reads="left right")
class Kronecker(NamedTuple):
    """The Kronecker product: ``A[i, j] (x) B`` in the place of each entry of ``A``."""

    left: Handle
    right: Handle
    op: BinaryOp
    transposed: Transposed = (False, False)


@operation("apply", "matrix_apply", reads="operand", pure="apply", refers="function")
class Apply(NamedTuple):
    """``f(u)``, entry by entry."""

    operand: Handle
    function: BoundOperator


@operation("select", "matrix_select", reads="operand", pure="select", refers="thunk")
class Select(NamedTuple):
    """The entries for which an operator of value, index and thunk is true.

    The operator has a BOOL result; the thunk is a NumPy scalar or a ScalarRef in its domain.
    """

    operand: Handle
    op: IndexUnaryOp
    thunk: Any


@operation("assign", "matrix_assign", reads="operand")
class Assign(NamedTuple):
    """``w(I) = u`` or ``C(I, J) = A``; the indices of a list are distinct."""

    operand: Handle
    indices: Indices = None
    transposed: bool = False


@operation("assign_scalar", "matrix_assign_scalar", refers="value")
class AssignScalar(NamedTuple):
    """``w(I) = value`` or ``C(I, J) = value``; the indices of a list rise.

    The value is a NumPy scalar, a ScalarRef or a CounterRef, of the output's type.
    """

    value: Any
    indices: Indices = None


@operation("extract", "matrix_extract", reads="operand")
class Extract(NamedTuple):
    """``u(I)`` or ``A(I, J)``; indices may repeat."""

    operand: Handle
    indices: Indices = None


@operation("extract_column", "", reads="matrix")
class ExtractColumn(NamedTuple):
    """``A(:, j)``, or ``A(j, :)'`` if `transposed`, as a vector."""

    matrix: Handle
    column: int
    transposed: bool = False


@operation("reduce_vector", "", reads="matrix", pure="reduce_rowwise reduce_columnwise")
class ReduceRows(NamedTuple):
    """``w[i] = (+)_j A[i, j]``, or over the rows of ``A'`` if `transposed`."""

    matrix: Handle
    monoid: Monoid
    transposed: bool = False


@operation("", "matrix_selection", reads="indices")
class SelectionToMatrix(NamedTuple):
    """The BOOL matrix with an entry (f[j], j) for each entry j of f, or (j, f[j]) if `transposed`.

    Values of `indices` outside ``0 .. nrows-1`` have no entry.
    """

    indices: Handle
    nrows: int
    transposed: bool = False


@operation("reduce", "matrix_reduce", reads="operand", pure="reduce reduce_scalar inner")
class Reduce(NamedTuple):
    """The sum of all entries: a scalar, empty if there are none."""

    operand: Handle
    monoid: Monoid


@operation("vector_get", "matrix_get", reads="operand")
class ExtractElement(NamedTuple):
    """``u[i]`` or ``A[i, j]``: a scalar, empty if there is no entry."""

    operand: Handle
    position: tuple[int, ...]


def of_scalars(operation: Any) -> Any:
    """Return the number that an operation on scalars makes, or None.

    A scalar counts as a vector of one index, with an entry where it has a value.
    """
    if isinstance(operation, Constant):
        return operation.value
    numbers = [x.get() for x in operands_of(operation)]
    if isinstance(operation, Ewise):
        kinds, op = (operation.left.dtype, operation.right.dtype), operation.op
        present = [x for x in numbers if x is not None]
        domain, result = op.types(*kinds)
        if operation.defaults is not None:
            pairs = zip(numbers, operation.defaults, strict=True)
            numbers = [default if x is None else x for x, default in pairs]
        if len(present) == 2 or (present and operation.defaults is not None):
            return op.evaluate(domain, *numbers)
        return cast(present[0], result) if present and operation.kind == "ewise_add" else None
    (number,) = numbers
    if number is None:
        return None
    if isinstance(operation, Select):
        at = cast(number, lookup(operation.thunk.dtype))
        return number if operation.op.numpy(at, 0, 0, operation.thunk) else None
    function = operation.function
    if isinstance(function.op, IndexUnaryOp):
        found = function.op.numpy(cast(number, function.domain), 0, 0, function.right)
        return cast(found, function.result)
    sides = (function.left, number, function.right)
    return function.op.evaluate(function.domain, *(x for x in sides if x is not None))


@operation("constant", "constant", refers="value")
class Constant(NamedTuple):
    """A number for a scalar: a NumPy scalar, ScalarRef or CounterRef."""

    value: Any


_Product = Multiply | MultiplySelection | Kronecker
_Entrywise = Ewise | Apply | Select
_Part = Assign | AssignScalar | Extract | ExtractColumn | ExtractElement
_Other = ReduceRows | Reduce | SelectionToMatrix | Constant
Operation = _Product | _Entrywise | _Part | _Other


def operands_of(operation: Operation) -> tuple[Handle, ...]:
    """Return the vectors and matrices that an operation reads, in the order of its fields."""
    kind: Any = type(operation)
    return tuple(getattr(operation, name) for name in kind.reads)


def method_of(operation: Operation, ndim: int) -> str:
    """Return an operation's name in messages and traces, on vectors (1) or matrices (2)."""
    if isinstance(operation, Ewise):
        return operation.kind if ndim == 1 else f"matrix_{operation.kind}"
    if isinstance(operation, Assign) and ndim == 2 and operation.indices is None:
        return "matrix_transpose" if operation.transposed else "matrix_dup"
    kind: Any = type(operation)
    return kind.names[ndim - 1]


class Statement(NamedTuple):
    """A checked operation and its output, a handle or a `ScalarValue`.

    `dtype` is the type of the operation's result, before the cast to the type of the output.
    """

    out: Any
    desc: Descriptor
    operation: Operation
    dtype: DType

    @property
    def counters(self) -> list[CounterRef]:
        """The references to the counter of the loop that records it."""
        return self._parts(CounterRef)

    @property
    def scalars(self) -> list[ScalarRef]:
        """The scalars whose values are read when the statement runs."""
        return self._parts(ScalarRef)

    def _parts(self, kind: type) -> list[Any]:
        field: str = type(self.operation).refers  # type: ignore[union-attr]
        operand = getattr(self.operation, field) if field else None
        return [*parts_in(operand, kind)] if isinstance(operand, tuple) else []

    @property
    def may_delete(self) -> bool:
        """Whether it gives entries a scalar's value: without one it deletes them."""
        operation = self.operation
        if not isinstance(operation, AssignScalar) or operation.indices is None:
            return False
        return type(operation.value) is ScalarRef

    @property
    def scalars_read(self) -> list[ScalarValue]:
        """The scalars that the statement reads, also those that may have no value."""
        found = [x for x in operands_of(self.operation) if type(x) is ScalarValue]
        return found + [ref.scalar for ref in self.scalars]

    @property
    def writes_scalar(self) -> bool:
        """Whether the output is a scalar."""
        return type(self.out) is ScalarValue


def resolved(operation: Operation, depth: int = 0) -> Operation:
    """Return an operation with the values of its scalars; `EmptyObject` if one has none."""
    field: str = type(operation).refers  # type: ignore[union-attr]
    operand = getattr(operation, field) if field else None
    if not isinstance(operand, tuple):  # as references are
        return operation
    found = read(operand, depth)
    return operation if found is operand else operation._replace(**{field: found})


# ---- Loops: when they end, their plans, and the record of their bodies.
class Until(NamedTuple):
    """The conditions that end a loop; each that is not None is checked.

    It ends before an iteration in which the vector or matrix `empty` has no entry, after one that
    left `unchanged` as it was, after `times` iterations, and after one that leaves the scalar
    `holds` with a value that is true; the first `done` iterations have run.
    """

    empty: Handle | None = None
    unchanged: Handle | None = None
    times: int | None = None
    done: int = 0
    holds: ScalarValue | None = None

    def on(self, of: Mapping[int, Any]) -> Until:
        """Return it on other handles, which `of` has by the ``id`` of its own."""
        return self._replace(empty=of.get(id(self.empty)), unchanged=of.get(id(self.unchanged)))


class Levels(Protocol):
    """The entries of an integer vector or matrix, by value; without any they are 0 and -1."""

    lowest: int
    deepest: int

    def cut(self, d: int) -> Handle:
        """Return the BOOL vector or matrix that is True where the value is `d`."""


class Sweep(NamedTuple):
    """The iterations of a sweep: one for each level, the deepest first, down to level 1.

    `here` and `above` are the masks of the first iteration, which the body names: the deepest
    level, and the one before it. `levels`, at least two, are as `Backend.levels` returned them.
    """

    here: Handle
    above: Handle
    levels: Levels


class FusedLoop(Protocol):
    """A loop that runs as one program."""

    @property
    def name(self) -> str:
        """How it runs, such as ``"grid search"``."""

    @property
    def why(self) -> str:
        """Why this way was chosen."""

    @property
    def nbytes(self) -> int:
        """Bytes that the loop allocates besides its operands."""

    def run(self) -> None:
        """Run the loop to its end; the host waits only if it must know a scalar or a count."""


class Rejection(NamedTuple):
    """Why a loop does not run as one program."""

    why: str


Statements = Sequence[Statement]
Turns = Until | Sweep  # what repeats a body
Planned = FusedLoop | Rejection


# ---- The record of a loop's body: its statements on places, which other handles take another time.
@dataclass(eq=False, slots=True)
class Place:
    """The place of a handle in a record."""

    number: int
    shape: tuple[int, ...]


class Record:
    """The statements of a loop's body, on places: one for each handle, which has a given shape.

    `found` is what backends have found out that holds for any handles, by the function.
    """

    def __init__(
        self, statements: Sequence[Statement],
        handles: Sequence[Handle], shapes: Sequence[tuple[int, ...]],
    ) -> None:  # fmt: skip
        self.places = [Place(k, shape) for k, shape in enumerate(shapes)]
        of = {id(x): place for x, place in zip(handles, self.places, strict=True)}
        self.statements = [moved(s, of) for s in statements]
        self.has_scalars = () in shapes
        self.found: dict[Any, Any] = {}


class RecordedBody(Statements):
    """The statements of a record on other handles, one for each place; made when they are read."""

    def __init__(self, record: Record, handles: list[Handle]) -> None:
        self.record, self.handles = record, handles

    @functools.cached_property
    def _made(self) -> list[Statement]:
        of = {id(p): x for p, x in zip(self.record.places, self.handles, strict=True)}
        return [moved(s, of) for s in self.record.statements]

    def __len__(self) -> int:
        return len(self.record.statements)

    def __getitem__(self, k: Any) -> Any:
        return self._made[k]

    def __iter__(self) -> Iterator[Statement]:
        return iter(self._made)

    def place_of(self, handle: Handle) -> Place | None:
        """Return the place of a handle, or None."""
        pairs = zip(self.record.places, self.handles, strict=True)
        return next((place for place, x in pairs if x is handle), None)


def outputs_of(statements: Sequence[Statement]) -> list[Any]:
    """Return the output of each statement."""
    if not isinstance(statements, RecordedBody):
        return [s.out for s in statements]
    return [statements.handles[s.out.number] for s in statements.record.statements]


def once(statements: Sequence[Statement], find: Callable[[Sequence[Statement]], T]) -> T:
    """Return ``find(statements)``; for the body of a record it is found once, and kept.

    What is found may depend on operations, types and shapes, not on what handles are or hold.
    """
    if not isinstance(statements, RecordedBody):
        return find(statements)
    kept = statements.record.found
    if find not in kept:
        kept[find] = find(statements)
    return kept[find]


def moved(s: Statement, of: Mapping[int, Any]) -> Statement:
    """Return a statement on other handles, which `of` has by the ``id`` of those that it has."""
    out, desc, operation, dtype = s

    def referring(ref: ScalarRef) -> ScalarRef:
        return ref._replace(scalar=of.get(id(ref.scalar), ref.scalar))

    moved_desc = Descriptor(of.get(id(desc.mask)), *desc[1:])
    moved_operation = type(operation)(*(of.get(id(x), x) for x in operation))
    if s.scalars:
        moved_operation = replaced(moved_operation, referring, ScalarRef)
    return Statement(of.get(id(out), out), moved_desc, moved_operation, dtype)
