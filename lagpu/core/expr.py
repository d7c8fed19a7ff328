"""Deferred calls, masks and `assign`, the one funnel from notation to a backend.

Everything is checked here, before any backend is asked: a call is checked against its inputs
when it is written, and against its output, mask and accumulator when it is assigned.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from lagpu.backends.protocol import Descriptor
from lagpu.core.arguments import binary_operator
from lagpu.core.hints import Deferred, Later, NoArithmetic, NoTruth, how_to_join, spoken
from lagpu.core.unused import Unfinished
from lagpu.dtypes import BOOL, DType, lookup
from lagpu.errors import BackendMismatch, DimensionMismatch, DomainMismatch
from lagpu.host import display

if TYPE_CHECKING:
    from lagpu.core.matrix import Matrix
    from lagpu.core.scalar import Scalar
    from lagpu.core.vector import Vector

__all__ = [
    "Call",
    "Mask",
    "Updater",
    "assign",
    "constant",
    "is_operand",
    "mixed_backends",
    "spell",
    "told",
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

    @property
    def formula(self) -> tuple[Any, ...]:
        """The mask as mathematics, for `spell`."""
        return ("~" * self.complement, self.vector, ".S" if self.structure else ".V")

    def __repr__(self) -> str:
        return told(self.formula)

    def _repr_html_(self) -> str:
        return display.mask_html(self)

    def _output(self, value: Any) -> str:
        return f"Write w({self!r}) << {spoken(value)}."

    def new(self, *, name: str | None = None) -> Any:
        """Return the mask as a vector or a matrix: True at every position it keeps."""
        out = type(self.vector)(BOOL, *self.vector.shape, like=self.vector, name=name)
        Updater(out, self) << True
        return out


class Call(Unfinished, Deferred):
    """One operation that waits for its output: ``w << call``, ``w(mask) << call``, ``call.new()``.

    Attributes
    ----------
    method : str
        Name of the `Backend` method.
    inputs : tuple of Vector and Matrix
        The operands, one or two, for checks and for the formula.
    args : tuple
        What the method gets after output and descriptor.
    dtype : DType
        Type of the result.
    shape : tuple of int
        Shape of the result; ``()`` for a scalar.
    formula : str
        The right-hand side as mathematics.
    by : FrameType, optional
        The frame of whoever wrote it; None if the notation makes it, and uses it at once.
    """

    __slots__ = (
        *("_at", "_code"),  # where it was written: a frame would keep its variables alive
        *("args", "backend", "dtype", "formula", "inputs", "method", "shape"),
    )
    _remedy = "{0} was never used. Write w << call, or call.new(); w = call only names it."
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
        by: FrameType | None = None,
    ) -> None:
        backend = inputs[0].backend
        if len(inputs) == 2 and inputs[1].backend is not backend:
            raise mixed_backends(method, inputs)
        self.method = method
        self.inputs = inputs
        self.args = args
        self.dtype = dtype
        self.shape = shape
        self.formula = formula
        self.backend = backend
        if by is not None:
            self._code, self._at = by.f_code, by.f_lasti
        self._used = by is None

    def _place(self, frame: FrameType | None) -> tuple[CodeType, int]:
        return self._code, self._at  # w = call names it, until the function ends

    def _written_in(self, by: FrameType) -> Call:
        """Say who wrote it: whoever called an operator."""
        self._code, self._at = by.f_code, by.f_lasti
        return self

    def __repr__(self) -> str:
        return told(self.formula)

    def _repr_html_(self) -> str:
        return display.call_html(self)

    def _output(self, value: Any) -> str:
        w = spoken(value) if is_operand(value, 1) or is_operand(value, 2) else "w"
        return f"Write {w} << call, the output left of it."

    def new(self, dtype: Any = None, *, mask: Mask | None = None, name: str | None = None) -> Any:
        """Return the result as a new object of type `dtype`, by default the call's own."""
        self._used = True
        wanted = self.dtype if dtype is None else lookup(dtype)
        return new_output(self, wanted, mask, name)


def spell(formula: tuple[Any, ...], names: Mapping[int, str] | None = None) -> str:
    """Return a formula as text; `names` maps the ``id`` of an object to a better name."""
    return "".join(x if type(x) is str else _spelled(x, names or {}) for x in formula)


def told(formula: tuple[Any, ...]) -> str:
    """Return a formula as text, in the names of whoever asks."""
    stored = [getattr(x, "stored", x) for x in formula if isinstance(x, NoArithmetic)]
    return spell(formula, {id(x): spoken(x) for x in stored})


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
    from lagpu.core.matrix import Matrix
    from lagpu.core.scalar import Scalar
    from lagpu.core.vector import Vector

    out: Vector | Matrix | Scalar
    if len(call.shape) == 1:
        out = Vector(dtype, call.shape[0], backend=call.backend, name=name)
    elif len(call.shape) == 2:
        out = Matrix(dtype, *call.shape, backend=call.backend, name=name)
    else:
        out = Scalar(dtype, name=name)
    assign(Updater(out, mask), call)
    return out


def unfit(x: Any) -> str:
    """Return what `x` is, for an error; a call that is dropped with it will not warn as well."""
    if isinstance(x, Unfinished):
        x._excuse()
    return type(x).__name__


def _as_mask(x: Any) -> str:
    """Return how to make a mask of what was given as one."""
    if is_operand(x, 1):
        v = spoken(x)
        return f"Write {v}.S for where {v} has entries, {v}.V for where they are not zero."
    return (
        "Write m.S for the entries of m, m.V for those that are not zero, accum= for an operator."
    )


class Updater(Unfinished, NoArithmetic):
    """``w(mask, accum=, replace=)``: an output with how to write it, waiting for ``<<``."""

    __slots__ = ("accum", "indices", "mask", "out", "replace")
    _remedy = "{0} writes nothing by itself. Write {0} << call."

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
        self._used = False

    @property
    def formula(self) -> tuple[Any, ...]:
        """The left-hand side as mathematics, for `spell`."""
        mask = self.mask
        how: list[tuple[Any, ...]] = []
        if mask is not None:
            how.append(mask.formula)
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
        return told(self.formula)

    def _repr_html_(self) -> str:
        return display.updater_html(self)

    def __getitem__(self, indices: Any) -> Updater:
        """``w(mask)[I]``: write only at the indices `I`."""
        self._used = True
        return Updater(self.out, self.mask, self.accum, self.replace, indices)

    def __setitem__(self, indices: Any, value: Any) -> None:
        assign(self[indices], value)

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        assign(self, value)

    __lshift__ = update


def assign(to: Updater, value: Any) -> None:
    """Check one operation, then hand it whole, mask included, to the output's backend."""
    to._used = True
    out = to.out
    call = value
    if type(value) is not Call or to.indices is not None or len(value.shape) < out.ndim:
        if type(value) is Call:
            value._used = True  # if it does not fit, one error is enough
        call = out._call_for(value, to)
    call._used = True
    if call.shape != out.shape and not (to.indices is not None and call.method.endswith("assign")):
        raise DimensionMismatch(
            f"{call.method}: {spoken(out)} has shape {out.shape} != {call.shape} of {call!r}."
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
                f"of {spoken(out)}."
            )
        if vector.backend is not out.backend:
            raise mixed_backends(call.method, (out, vector))
        desc = Descriptor(vector.data, mask.structure, mask.complement, to.accum, to.replace)
    out._write(call, desc, to)


def mixed_backends(what: str, objects: tuple[Any, ...]) -> BackendMismatch:
    """Return the error that names each object's backend."""
    places = ", ".join(f"{spoken(o)} is on {o.backend.name}" for o in objects)
    first, other = next((a, b) for a in objects for b in objects if a.backend is not b.backend)
    return BackendMismatch(f"{what}: {places}. {how_to_join(first, other)}")
