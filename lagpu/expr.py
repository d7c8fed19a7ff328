"""Deferred calls, masks and `assign`, the one funnel from notation to a backend.

Everything is checked here, before any backend is asked: a call is checked against its inputs
when it is written, and against its output, mask and accumulator when it is assigned.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from lagpu import display
from lagpu.backends.base import Descriptor, Product
from lagpu.dtypes import BOOL, DType, lookup
from lagpu.errors import (
    BackendMismatch,
    DimensionMismatch,
    DomainMismatch,
    InvalidValue,
    NotSupported,
    UnusedCall,
)
from lagpu.operands import binary_operator
from lagpu.operators import Semiring
from lagpu.refusals import Deferred, Later, NoArithmetic, NoTruth, how_to_join, spoken

if TYPE_CHECKING:
    from lagpu.matrix import Matrix
    from lagpu.scalar import Scalar
    from lagpu.transposed import TransposedMatrix
    from lagpu.vector import Vector

__all__ = [
    "Call",
    "Mask",
    "MatMul",
    "Updater",
    "assign",
    "constant",
    "is_operand",
    "mixed_backends",
    "product",
    "spell",
    "unfit",
]


def is_operand(x: Any, ndim: int) -> bool:
    """Whether `x` is a Vector (1) or a Matrix or its transpose (2), and not some array."""
    return isinstance(x, NoTruth) and getattr(x, "ndim", None) == ndim


class Mask(Deferred):
    """Where a result may be written: ``m.S`` its entries, ``m.V`` its entries that are not zero.

    ``~mask`` keeps the other positions. `vector` is a matrix if the output is one.
    """

    __slots__ = ("complement", "structure", "vector")
    _hint = "Use it as w(mask) << call, or make a vector of it with .new()."

    def __init__(self, vector: Any, structure: bool, complement: bool = False) -> None:
        self.vector = vector
        self.structure = structure
        self.complement = complement

    def __invert__(self) -> Mask:
        return Mask(self.vector, self.structure, not self.complement)

    def __repr__(self) -> str:
        kind = "S" if self.structure else "V"
        return f"{'~' * self.complement}{self.vector.name}.{kind}"

    def _repr_html_(self) -> str:
        return display.mask_html(self)

    def new(self, *, name: str | None = None) -> Any:
        """Return the mask as a vector or a matrix: True at every position it keeps."""
        out = type(self.vector)(BOOL, *self.vector.shape, like=self.vector, name=name)
        Updater(out, self) << True
        return out


class Call(Deferred):
    """One operation that waits for its output: ``w << call``, ``w(mask) << call``, ``call.new()``.

    Attributes
    ----------
    method : str
        Name of the `Backend` method.
    inputs : tuple of Vector and Matrix
        The operands, for checks and for the formula.
    args : tuple
        What the method gets after output and descriptor.
    dtype : DType
        Type of the result.
    shape : tuple of int
        Shape of the result; ``()`` for a scalar.
    formula : str
        The right-hand side as mathematics.
    """

    __slots__ = ("_used", "args", "backend", "dtype", "formula", "inputs", "method", "shape")
    _hint = "Assign it with w << call first, or make an object of it with call.new()."
    value = Later()

    def __init__(
        self,
        method: str,
        inputs: tuple[Any, ...],
        args: tuple[Any, ...],
        dtype: DType,
        shape: tuple[int, ...],
        formula: tuple[Any, ...],
    ) -> None:
        self._used = False
        backend = inputs[0].backend
        for other in inputs[1:]:
            if other.backend is not backend:
                self._used = True  # one error is enough
                raise mixed_backends(method, inputs)
        self.method = method
        self.inputs = inputs
        self.args = args
        self.dtype = dtype
        self.shape = shape
        self.formula = formula
        self.backend = backend

    def __del__(self) -> None:
        if not getattr(self, "_used", True):
            warnings.warn(
                f"{self!r} was never used. Write w << call, or call.new(); w = call only names it.",
                UnusedCall,
                stacklevel=2,
            )

    def __repr__(self) -> str:
        return spell(self.formula)

    def _excuse(self) -> None:
        self._used = True

    def _repr_html_(self) -> str:
        return display.call_html(self)

    def new(self, dtype: Any = None, *, mask: Mask | None = None, name: str | None = None) -> Any:
        """Return the result as a new object of type `dtype`, by default the call's own."""
        self._used = True
        wanted = self.dtype if dtype is None else lookup(dtype)
        return new_output(self, wanted, mask, name)


def spell(formula: tuple[Any, ...], names: Mapping[int, str] | None = None) -> str:
    """Return a formula as text; `names` maps the ``id`` of an object to a better name."""
    return "".join(x if type(x) is str else _spelled(x, names or {}) for x in formula)


def _spelled(part: Any, names: Mapping[int, str]) -> str:
    stored = getattr(part, "stored", part)  # of a transposed matrix
    name = names.get(id(stored))
    if name is not None:
        return name if stored is part else f"{name}'"
    return getattr(part, "name", None) or str(part)


def constant(number: Any, dtype: DType, method: str = "constant", backend: Any = None) -> Call:
    """Return the call of a number that nothing has to be computed for."""
    call = Call.__new__(Call)
    call._used = True
    call.method, call.inputs, call.args, call.formula = method, (), (number,), (number,)
    call.dtype, call.shape, call.backend = dtype, (), backend
    return call


def new_output(call: Call, dtype: DType, mask: Mask | None, name: str | None) -> Any:
    """Make a vector, a matrix or a scalar for a call's result and assign it."""
    from lagpu.matrix import Matrix
    from lagpu.scalar import Scalar
    from lagpu.vector import Vector

    out: Vector | Matrix | Scalar
    if len(call.shape) == 1:
        out = Vector(dtype, call.shape[0], backend=call.backend, name=name)
    elif len(call.shape) == 2:
        out = Matrix(dtype, *call.shape, backend=call.backend, name=name)
    else:
        out = Scalar(dtype, name=name)
    assign(Updater(out, mask), call)
    return out


class MatMul(Deferred):
    """``u @ A``, ``A @ u`` or ``A @ B``: a product that still needs its semiring."""

    __slots__ = ("left", "right")
    new, value = Later(), Later()

    def __init__(self, left: Any, right: Any) -> None:
        for operand in (left, right):
            if not (is_operand(operand, 1) or is_operand(operand, 2)):
                raise DomainMismatch(
                    f"@: {unfit(operand)} is neither a Vector nor a Matrix. "
                    + (operand._hint if isinstance(operand, Deferred) else "")
                    + "Make one with from_dense or from_coo." * (not isinstance(operand, Deferred))
                )
        self.left = left
        self.right = right

    @property
    def _hint(self) -> str:  # type: ignore[override]
        return f"Write semiring.plus_times({spoken_product(self)}), or another semiring."

    def __repr__(self) -> str:
        return f"{self.left.name} @ {self.right.name}"

    def __matmul__(self, other: Any) -> NoReturn:
        self.refuse("a second @ needs the first product's result", self._one_each(other))

    def _one_each(self, other: Any) -> str:
        one = spoken_product(self)
        return f"Write w << semiring.plus_times({one}), then w @ {spoken(other)}."

    def times(self, semiring: Semiring, **options: Any) -> Call:
        """Return the deferred product over `semiring`."""
        left, right = self.left, self.right
        if left.ndim == right.ndim == 1:
            raise NotSupported(
                f"{semiring!r}: the inner product is not there. "
                "Write u.ewise_mult(v, op), then reduce."
            )
        if left.ndim == right.ndim:
            if options:
                raise InvalidValue(f"mxm: takes no {', '.join(options)}. Leave it out.")
            both: Call = left.mxm(right, semiring)
            return both
        call: Call = (left.vxm if left.ndim == 1 else left.mxv)(right, semiring, **options)
        return call


def spoken_product(pair: MatMul) -> str:
    """Return ``u @ A`` in the author's names."""
    return f"{spoken(pair.left)} @ {spoken(pair.right)}"


def unfit(x: Any) -> str:
    """Return what `x` is, for an error; a call that is dropped with it will not warn as well."""
    if isinstance(x, Call):
        x._used = True
    return type(x).__name__


def _turned(A: Any, u: Any, flip: bool) -> str:
    """Return the product that fits, for one whose matrix is the wrong way round."""
    a, v = spoken(A), spoken(u)
    turned = a.removesuffix(".T") if a.endswith(".T") else f"{a}.T"
    ways = (f"{v} @ {turned}", f"{a} @ {v}") if flip else (f"{turned} @ {v}", f"{v} @ {a}")
    return f" Is it {ways[0]} you mean, or {ways[1]}?"


def _as_mask(x: Any) -> str:
    """Return how to make a mask of what was given as one."""
    if is_operand(x, 1):
        v = spoken(x)
        return f"Write {v}.S for where {v} has entries, {v}.V for where they are not zero."
    return (
        "Write m.S for the entries of m, m.V for those that are not zero, accum= for an operator."
    )


def product(
    A: Matrix | TransposedMatrix,
    u: Vector,
    semiring: Semiring,
    flip: bool,
    kernel: str | None,
    policy: str | None,
) -> Call:
    """Return the deferred ``A @ u``, or ``u @ A`` if `flip`."""
    if not (is_operand(A, 2) and is_operand(u, 1)):
        raise DomainMismatch(
            f"{semiring!r}: takes a Matrix and a Vector, not {unfit(A)} and {unfit(u)}. "
            f"Write {semiring.name}(q @ A)."
        )
    if u.size != (A.nrows if flip else A.ncols):
        op, side = ("vxm", "nrows") if flip else ("mxv", "ncols")
        raise DimensionMismatch(
            f"{op}: {u.name}.size {u.size} != {A.name}.{side} {getattr(A, side)}."
            + (_turned(A, u, flip) if u.size == (A.ncols if flip else A.nrows) else "")
        )
    left, right = (u, A) if flip else (A, u)
    domain, result = semiring.types(left.dtype, right.dtype)
    stored = A.stored
    how = Product(semiring, domain, result, flip is (A is stored), flip, kernel, policy)
    held = getattr(stored, "operand", stored)  # of a selection its vector
    return Call(
        "mxv" if held is stored else "mxv_selection",
        (held, u),
        (held.data, u.data, how),
        result,
        (A.ncols if flip else A.nrows,),
        (left, f" {semiring.name} ", right),
    )


class Updater(NoArithmetic):
    """``w(mask, accum=, replace=)``: an output with how to write it, waiting for ``<<``."""

    __slots__ = ("accum", "indices", "mask", "out", "replace")

    def __init__(
        self,
        out: Any,
        mask: Mask | None = None,
        accum: Any = None,
        replace: bool = False,
        indices: Any = None,
    ) -> None:
        if mask is not None and not isinstance(mask, Mask):
            raise DomainMismatch(f"{out.name}(...): {unfit(mask)} is not a mask. {_as_mask(mask)}")
        self.out = out
        self.mask = mask
        self.accum = None if accum is None else binary_operator(accum)
        self.replace = replace
        self.indices = indices

    @property
    def formula(self) -> tuple[Any, ...]:
        """The left-hand side as mathematics, for `spell`."""
        mask = self.mask
        how: list[tuple[Any, ...]] = []
        if mask is not None:
            how.append(("~" * mask.complement, mask.vector, ".S" if mask.structure else ".V"))
        if self.accum is not None:
            how.append((f"accum={self.accum!r}",))
        if self.replace:
            how.append(("replace",))
        parts = [part for one in how for part in (", ", *one)]
        inside = ("(", *parts[1:], ")") if parts else ()
        where = f"[{self.indices}]" if isinstance(self.indices, int) else "[I]"
        where = "[I, J]" if isinstance(self.indices, tuple) else where
        return (self.out, *inside, *(() if self.indices is None else (where,)))

    def __repr__(self) -> str:
        return spell(self.formula)

    def __getitem__(self, indices: Any) -> Updater:
        """``w(mask)[I]``: write only at the indices `I`."""
        return Updater(self.out, self.mask, self.accum, self.replace, indices)

    def __setitem__(self, indices: Any, value: Any) -> None:
        assign(self[indices], value)

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        assign(self, value)

    __lshift__ = update


def assign(to: Updater, value: Any) -> None:
    """Check one operation, then hand it whole, mask included, to the output's backend."""
    out = to.out
    call = value
    if type(value) is not Call or to.indices is not None or len(value.shape) < out.ndim:
        if type(value) is Call:
            value._used = True  # if it does not fit, one error is enough
        call = out._call_for(value, to)
    call._used = True
    if call.shape != out.shape and not (to.indices is not None and call.method.endswith("assign")):
        raise DimensionMismatch(
            f"{call.method}: {out.name} has shape {out.shape} != {call.shape} of {call!r}."
        )
    if call.backend is not out.backend and call.shape:
        raise mixed_backends(call.method, (out, *call.inputs))
    mask = to.mask
    if mask is None:
        desc = Descriptor(None, True, False, to.accum, to.replace)
    else:
        vector = mask.vector
        if vector.shape != out.shape:
            raise DimensionMismatch(
                f"{call.method}: the mask {mask!r} has shape {vector.shape} != {out.shape} "
                f"of {out.name}."
            )
        if vector.backend is not out.backend:
            raise mixed_backends(call.method, (out, vector))
        desc = Descriptor(vector.data, mask.structure, mask.complement, to.accum, to.replace)
    out._write(call, desc, to)


def mixed_backends(what: str, objects: tuple[Any, ...]) -> BackendMismatch:
    """Return the error that names each object's backend."""
    places = ", ".join(f"{o.name} is on {o.backend.name}" for o in objects)
    first, other = next((a, b) for a in objects for b in objects if a.backend is not b.backend)
    return BackendMismatch(f"{what}: {places}. {how_to_join(first, other)}")
