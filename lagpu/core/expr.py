"""Expressions: operations that wait for an output, and warnings for those never used."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from types import CodeType, FrameType
from typing import Any, ClassVar, NoReturn

import numpy as np

from lagpu import errors, operations
from lagpu.algebra.operators import mark_used as mark_used
from lagpu.algebra.tables import indexunary
from lagpu.backends.protocol import Backend
from lagpu.core import hints
from lagpu.core.arguments import binary_operator
from lagpu.core.hints import Deferred, NoArithmetic, NoTruth, is_operand, name_of, object_of
from lagpu.core.recorder import (
    current_observer,
    current_recorder,
    observed,
    queue,
    recording,
    run_statement,
)
from lagpu.dtypes import BOOL, DType, lookup
from lagpu.host import display
from lagpu.host.source import drops_an_error, expression_at, is_notation, operation_at, taken_by
from lagpu.operations import Assign, AssignScalar, Descriptor, Operation, Statement, new

_warned: dict[str, dict[Any, Any]] = {}  # by file, Python's registry of lines that have warned


class Unassigned:
    """One side of a statement, which does nothing by itself.

    A subclass sets `_used`. An object that is dropped unused warns if the expression that made it
    is a statement of its own. An exception drops such objects as well, as it drops ``w(mask)`` in
    ``w(mask) << x`` if `x` raises; then there is no warning.
    """

    __slots__ = ("_used",)
    _used: bool
    _remedy: ClassVar[str]  # {0} is the author's expression
    _without_finalizer: ClassVar[type[Any] | None] = None

    def __init_subclass__(cls) -> None:
        """Make the same class once more, for objects that are used.

        An interrupt (Ctrl-C) that comes in a finalizer written in Python is lost. So an object that
        is used changes its class to one whose finalizer is compiled.
        """
        if "__del__" not in vars(cls):
            body = {"__slots__": (), "__del__": staticmethod(tuple), "__module__": cls.__module__}
            cls._without_finalizer = type(cls.__name__, (cls,), body)

    def _mark_used(self) -> None:
        """Mark this object as used, so that no warning follows an error that is being raised."""
        self.__class__ = self._without_finalizer  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        refuse: Callable[[str], NoReturn] = self.refuse  # type: ignore[attr-defined]
        refuse("cannot be copied or pickled")

    def __del__(self) -> None:
        try:
            if self._used:
                return
        except AttributeError:  # its constructor raised
            return
        origin = self._origin(sys._getframe().f_back)
        if origin is None:
            return
        code, instruction = origin
        found, file = expression_at(code, instruction), code.co_filename
        message = self._remedy.format(found.text or repr(self))
        known = _warned.setdefault(file, {})
        warnings.warn_explicit(message, errors.UnusedCall, file, found.line, registry=known)

    def _origin(self, frame: FrameType | None) -> tuple[CodeType, int] | None:
        """Return the instruction that made the object, which `frame` drops; None: do not warn."""
        if frame is None or operation_at(frame) != "POP_TOP" or drops_an_error(frame):
            return None
        return frame.f_code, frame.f_lasti


# ---- Deferred calls, masks and `assign`, the one funnel from notation to a backend.
#
# Every statement is checked before a backend sees it: a call against its inputs when it is
# written, and against its output, mask and accumulator when it is assigned.
#: Instructions that drop a call only if there is an error: w << call, w[I] = call, end of except.
_UNWINDS = ("BINARY_OP", "STORE_SUBSCR", "POP_EXCEPT")
#: Instructions that use a call at once: w << call, w[I] = call, call.new() and w.update(call).
_USES = ("BINARY_OP", "STORE_SUBSCR", "STORE_SLICE", "PRECALL", "CALL", "CALL_KW")
#: A comparison with a float as one with a whole number: i < 2.5 is i <= ceil(2.5) - 1.
_PLACES: dict[str, tuple[str, Any, int]] = {
    "le": ("le", math.floor, 0), "lt": ("le", math.ceil, -1),
    "gt": ("gt", math.floor, 0), "ge": ("gt", math.ceil, -1),
}  # fmt: skip
#: The classes of results, by their number of dimensions: `Scalar`, `Vector` and `Matrix`.
OUTPUTS: dict[int, Any] = {}


class Mask(Deferred):
    """The positions at which a result may be written: ``m.S`` entries, ``m.V`` nonzero entries.

    ``~mask`` keeps the other positions. `vector` is a matrix if the output is one.
    """

    __slots__ = ("__weakref__", "complement", "structure", "vector")
    _hint = "Use it as w(mask) << call, or make a vector of it with .new()."

    def __init__(self, vector: Any, structure: bool, complement: bool = False) -> None:
        self.vector = vector
        self.structure = structure
        self.complement = complement

    def __invert__(self) -> Mask:
        return Mask(self.vector, self.structure, not self.complement)

    def _infix(self, sign: str, other: Any, reflected: bool = False) -> Any:
        if sign not in ("&", "|"):
            self.refuse(f"has no {sign}")
        other = as_mask(self.vector, other)
        way, op = ("ewise_mult", "land") if sign == "&" else ("ewise_add", "lor")
        return Mask(getattr(self.new(), way)(other.new(), op).new(), True)

    @property
    def parent(self) -> Any:
        """The vector or the matrix of the mask: `vector`, under its name in python-graphblas."""
        return self.vector

    @property
    def value(self) -> bool:
        """Whether entries of value zero do not count: the opposite of `structure`."""
        return not self.structure

    @property
    def formula(self) -> tuple[Any, ...]:
        """The mask as mathematics, for `format_formula`."""
        return ("~" * self.complement, self.vector, ".S" if self.structure else ".V")

    def __repr__(self) -> str:
        return format_as_written(self.formula)

    _repr_html_ = display.mask_html

    def _output(self, value: Any) -> str:
        return f"Write w({self!r}) << {name_of(value)}."

    def new(
        self, dtype: Any = BOOL, *, complement: bool = False,
        mask: Mask | None = None, name: str | None = None,
    ) -> Any:  # fmt: skip
        """Return a vector or a matrix of True (1) at all positions that the mask, or both, keep.

        With `complement`, at those that this mask does not keep.
        """
        dtype = BOOL if dtype is None else dtype
        out = type(self.vector)(dtype, *self.vector.shape, like=self.vector, name=name)
        kept = ~self if complement else self
        Updater(out, kept if mask is None else kept & mask, replace=True) << True
        return _part(out)


class Expression(Deferred):
    """An expression that becomes a call; a subclass has the slot `_result`."""

    __slots__ = ()
    _result: Any

    def call(self) -> Call:
        """Return the deferred operation."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """Number of dimensions of the result; 0 for a scalar."""
        return len(self.call().shape)

    def _inplace(self, sign: str, other: Any) -> Any:
        mark_used(other)
        self.refuse(f"has no {sign}=", "Make an object of it with .new() first.")

    size = property(lambda self: self.call().shape[0])
    nrows, ncols = size, property(lambda self: self.call().shape[1])

    def _computed(self) -> Any:
        """Return the result as an object, or raise if `Config` has `autocompute` off."""
        if not hints.config["autocompute"]:
            self.refuse("is not computed, as config has autocompute off")
        return self._made()

    def _made(self) -> Any:
        """Return the result as an object, computed once; a recorded body has it as a statement."""
        self._mark_used()
        if not hasattr(self, "_result"):
            self._result = self.call().new()
        return self._result

    def new(
        self, dtype: Any = None, *, mask: Mask | None = None,
        name: str | None = None, is_cscalar: bool | None = None,
    ) -> Any:  # fmt: skip
        """Return the result as a new object of type `dtype`, by default the result's own type.

        `is_cscalar` is accepted as in python-graphblas; there is one kind of scalar.
        """
        call = self.call()
        call.__class__ = _UsedCall
        kind = call.dtype if dtype is None else lookup(dtype)
        where = {"backend": call.backend} if call.shape else {}
        out = OUTPUTS[len(call.shape)](kind, *call.shape, name=name, **where)
        if mask is None:
            write(out, call)
        else:  # replace: a recorded body writes the same object in each iteration
            assign(Updater(out, mask, replace=True), call)
        return _part(out)


class Call(Unassigned, Expression):
    """An operation that waits for its output: ``w << call``, ``w(mask) << call``, ``call.new()``.

    The `operation` is on handles, `inputs` are the operands, for checks and for the `formula`, the
    right-hand side as mathematics. `dtype` and `shape`, () of a scalar, are those of the result;
    `backend` is that of the inputs, None for a number.
    """

    __slots__ = (
        *("_at", "_code"),  # where the call is written; a frame would keep its variables alive
        "_result",  # once a value was read
        *("backend", "dtype", "formula", "inputs", "operation", "shape"),
        "__weakref__",
    )
    _remedy = "{0} was never used. Write w << call, or call.new(); w = call only names it."
    _hint = "Assign it with w << call first, or make an object of it with call.new()."

    def __init__(
        self, operation: Operation, inputs: tuple[Any, ...], dtype: DType,
        shape: tuple[int, ...], formula: tuple[Any, ...], by: FrameType | None = None,
    ) -> None:  # fmt: skip
        backend: Backend | None = inputs[0].backend if inputs else None
        self.operation = operation
        self.inputs = inputs
        self.dtype = dtype
        self.shape = shape
        self.formula = formula
        self.backend = backend
        if len(inputs) == 2 and inputs[1].backend is not backend:
            raise mixed_backends(self.method, inputs)
        if by is not None:
            self._code, self._at = by.f_code, by.f_lasti
        self._used = by is None

    @property
    def method(self) -> str:
        """Name of the operation in messages; a trace names what the backend runs."""
        ndim = len(self.shape) or (self.inputs[0].ndim if self.inputs else 1)
        name = operations.method_of(self.operation, ndim)
        return "vxm" if name == "mxv" and self.formula[0].ndim == 1 else name

    def _origin(self, frame: FrameType | None) -> tuple[CodeType, int] | None:
        if taken_by(self._code, self._at) in _USES:
            return None  # an error or an interrupt ended it, whose frames held the call until now
        if frame is not None:
            unwound = (frame.f_code, frame.f_lasti) == (self._code, self._at)
            if unwound or is_notation(frame) or operation_at(frame) in _UNWINDS:
                return None  # an error or an interrupt ended what was about to use it
        return self._code, self._at  # not where it is dropped: w = call lives on in w

    def _written_in(self, by: FrameType | None, formula: tuple[Any, ...] | None = None) -> Call:
        """Set the author's frame, if it is known, for an operator that was called; or a formula."""
        if by is not None:
            self._code, self._at = by.f_code, by.f_lasti
        if formula is not None:
            self.formula = formula
        return self

    def __repr__(self) -> str:
        return format_as_written(self.formula)

    def _output(self, value: Any) -> str:
        w = name_of(value) if is_operand(value, 1) or is_operand(value, 2) else "w"
        return f"Write {w} << call, with the output on the left."

    @property
    def compared(self) -> tuple[str, Any] | None:
        """The comparison and its number, as ``("gt", 3)`` of ``A > 3``; None if this is none."""
        function: Any = getattr(self.operation, "function", None)
        op = getattr(function, "op", None)
        if op is None or f"value{op.name}" not in indexunary:
            return None
        if function.right is None:
            return op.flips_to or op.name, function.left
        return op.name, function.right

    def kept(self, by: str = "value") -> Call:
        """Return the deferred selection for a comparison: ``A.select("valuegt", 3)`` for ``A > 3``.

        `by` says what the number is compared with, as names of operators begin: value, row, col,
        index.
        """
        self._mark_used()
        if self.compared is None:
            self.refuse("is no comparison with a number", "Write A > 3, for instance.")
        name, number = self.compared
        if by != "value":
            if name not in _PLACES:
                self.refuse(f"{by} has no {name}", "Write A <= 5, or an index such as A[[5], :].")
            bits = np.finfo(number.dtype).nmant if number.dtype.kind == "f" else 62
            if not abs(number.item()) < 2**bits:  # NaN is not, either
                self.refuse(
                    f"comparing {by} with {number} is not exact", f"Write A.select('{by}le', 5)."
                )
            name, whole, step = _PLACES[name]
            number = np.int64(whole(number.item()) + step)
        x, op = self.inputs[0], indexunary[f"{by}{name}"]
        formula = (op.name, "(", x, f", {number})")
        return Call(operations.Select(x.data, op, number), (x,), x.dtype, x.shape, formula)

    def call(self) -> Call:
        """Return the call itself, as other expressions return their call."""
        return self


def _part(out: Any) -> Any:
    """Return a new object; note it as a part of an expression if a body is recorded."""
    recorder = current_recorder()
    if recorder is not None and recorder.statements and recorder.statements[-1].out is out.data:
        recorder.parts.append(out.data)
    return out


def format_formula(formula: tuple[Any, ...], names: Mapping[int, str] | None = None) -> str:
    """Return a formula as text; `names` maps the ``id`` of an object to a better name."""
    return "".join(x if type(x) is str else _format_part(x, names or {}) for x in formula)


def format_as_written(formula: tuple[Any, ...]) -> str:
    """Return a formula as text, with the author's names."""
    stored = [getattr(x, "stored", x) for x in formula if isinstance(x, NoArithmetic)]
    return format_formula(formula, {id(x): name_of(x) for x in stored})


def _format_part(part: Any, names: Mapping[int, str]) -> str:
    stored = getattr(part, "stored", part)  # of a transposed matrix
    name = names.get(id(stored))
    if name is not None:
        return name if stored is part else f"{name}'"
    return getattr(part, "name", None) or str(part)


def constant(number: Any, dtype: DType, formula: Any = None) -> Call:
    """Return the call of a number, which needs no computation."""
    shown = number if formula is None else formula
    return Call(operations.Constant(number), (), dtype, (), (shown,))


def made_of(x: Any) -> Any:
    """Return an operand of a longer expression: `x` itself, or its result."""
    return x._made() if isinstance(x, Expression) else object_of(x)


def kind_of(x: Any) -> str:
    """Return the type name of `x` for an error, and mark a deferred expression as used."""
    mark_used(x)
    return type(x).__name__


def as_mask(out: Any, x: Any) -> Mask:
    """Return a mask, or the mask ``x.V`` of a BOOL object that was given where one belongs."""
    if isinstance(x, Mask):
        return x
    found = object_of(x)
    if isinstance(found, NoTruth) and getattr(found, "dtype", None) is BOOL:
        return found.V  # type: ignore[attr-defined]
    hint = "Write m.S for the entries of m, m.V for those that are not zero."
    if isinstance(found, NoTruth):
        v = name_of(x)
        hint = f"Write {v}.S for where {v} has entries, {v}.V for where they are not zero."
    raise errors.DomainMismatch(f"{out.name}(...): {kind_of(x)} is not a mask. {hint}")


def mask_does_not_fit(mask: Mask, out: Any) -> errors.LagpuError:
    """Return the error for a mask of another shape or another backend than the output."""
    vector, name = mask.vector, name_of(out)
    if vector.shape == out.shape:
        return mixed_backends(f"{name}(...)", (out, vector))
    fits = vector.size in out.shape if vector.ndim < out.ndim else vector.ndim > out.ndim > 0
    kind = errors.DomainMismatch if fits else errors.DimensionMismatch
    return kind(
        f"{name}(...): the mask {mask!r} has shape {vector.shape} != {out.shape} of {name}."
    )


def assign(to: Updater, value: Any) -> None:
    """Check one statement, then record it, or run it as a whole on the output's backend."""
    to.__class__ = _UsedUpdater
    out, mask, call, desc = to.out, to.mask, value, _WHOLE
    if type(value) is not Call or to.indices is not None or len(value.shape) < out.ndim:
        if type(value) is Call:
            value.__class__ = _UsedCall  # if it does not fit, one error is enough
        call = out._call_for(value, to.indices)
    if mask is not None:
        m = mask.vector
        if m.shape != out.shape:  # one of them was resized since the mask was given
            call.__class__ = _UsedCall
            raise mask_does_not_fit(mask, out)
        desc = new(Descriptor, (m.data, mask.structure, mask.complement, to.accum, to.replace))
    elif to.accum is not None:
        desc = Descriptor(accum=to.accum)
    write(out, call, desc, to)


_WHOLE = Descriptor()


def write(out: Any, call: Call, desc: Descriptor = _WHOLE, to: Updater | None = None) -> None:
    """Check a statement whose right side is a call, then record or run it; see `assign`."""
    call.__class__ = _UsedCall
    if call.shape != out.shape and not (
        to is not None and to.indices is not None and type(call.operation) in (Assign, AssignScalar)
    ):
        raise errors.DimensionMismatch(
            f"{call.method}: {name_of(out)} has shape {out.shape} != {call.shape} of {call!r}."
        )
    backend = call.backend
    if call.shape and backend is not out.backend:
        raise mixed_backends(call.method, (out, *call.inputs))
    if desc.accum is not None:
        desc.accum.types(out.dtype, call.dtype)  # raises unless it takes these
    s = new(Statement, (out.data, desc, call.operation, call.dtype))
    recorder = observer = None
    if recording.get() is not None or observed.get() is not None:
        recorder, observer = current_recorder(), current_observer()
    if recorder is None and observer is None:
        if not queue.takes(s, backend, sys._getframe(2)):
            run_statement(backend, s)
        return
    if observer is not None and to is None:
        to = _UsedUpdater(out)
    if recorder is not None and recorder.takes(s, out.ndim, backend):
        if observer is not None:
            observer.notes.append(observer.noted(to, call))
    elif observer is not None and backend is not None:
        observer.statement(to, call, partial(run_statement, backend, s))
    else:  # the recorder does not take it, or it is a number for a scalar
        run_statement(backend, s)


class Updater(Unassigned, NoArithmetic):
    """An output with mask, accumulator and replace, waiting for ``<<``: ``w(mask, accum=op)``."""

    __slots__ = ("accum", "indices", "mask", "out", "replace")
    _remedy = "{0} writes nothing by itself. Write {0} << call."

    def __init__(
        self, out: Any, mask: Mask | None = None, accum: Any = None,
        replace: bool = False, indices: Any = None,
    ) -> None:  # fmt: skip
        if mask is not None:
            mask = mask if type(mask) is Mask else as_mask(out, mask)
            vector = mask.vector
            if vector.backend is not out.backend or vector.shape != out.shape:
                lines = out.shape if out.ndim == 2 and vector.backend is out.backend else ()
                if vector.ndim == 2 or vector.size not in lines:  # A(v.S)[i, :] may follow
                    raise mask_does_not_fit(mask, out)
        elif replace:
            raise errors.DomainMismatch(
                f"{name_of(out)}(...): replace deletes what a mask leaves out, and there is no "
                "mask. Give one, or leave out replace."
            )
        self.out = out
        self.mask = mask
        self.accum = None if accum is None else binary_operator(accum)
        self.replace = replace
        self.indices = indices
        self._used = False

    @property
    def formula(self) -> tuple[Any, ...]:
        """The left-hand side as mathematics, for `format_formula`."""
        parts: tuple[Any, ...] = () if self.mask is None else (", ", *self.mask.formula)
        parts += () if self.accum is None else (", ", f"accum={self.accum!r}")
        parts += (", ", "replace") if self.replace else ()
        inside = ("(", *parts[1:], ")") if parts else ()
        where = f"[{self.indices}]" if isinstance(self.indices, int) else "[I]"
        where = "[I, J]" if isinstance(self.indices, tuple) else where
        return (self.out, *inside, *(() if self.indices is None else (where,)))

    def __repr__(self) -> str:
        return format_as_written(self.formula)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        self.refuse("has no truth value")

    def __eq__(self, other: object) -> Any:
        mark_used(other)
        self.refuse("has no ==")

    def __getitem__(self, indices: Any) -> Updater:
        """Return ``w(mask)[I]``, which writes only at the indices `I`."""
        if self.indices is not None:
            self.refuse("has its indices already", f"Write {name_of(self.out)}[I] << x.")
        if not self.out.ndim:
            self.refuse("a scalar has no indices", f"Write {name_of(self.out)} << x.")
        self.__class__ = _UsedUpdater
        out, mask = self.out, self.mask
        if mask is not None and mask.vector.ndim < out.ndim:  # of the row or the column
            pair = indices if isinstance(indices, tuple) else ()
            single = [not isinstance(x, slice) and np.ndim(x) == 0 for x in pair]
            if single in ([True, False], [False, True]):
                line = [x if one else slice(None) for x, one in zip(pair, single, strict=True)]
                found: Updater = out[tuple(line)]._updater(mask, self.accum, self.replace)
                found.indices = indices
                return found
            raise mask_does_not_fit(mask, out)
        return Updater(out, mask, self.accum, self.replace, indices)

    def __setitem__(self, indices: Any, value: Any) -> None:
        assign(self[indices], value)

    def __delitem__(self, indices: Any) -> None:
        assign(self[indices], OUTPUTS[0](self.out.dtype))

    update = __lshift__ = assign


# What is used changes its class: see `Unassigned`.
_UsedCall: Any = Call._without_finalizer
_UsedUpdater: Any = Updater._without_finalizer


def mixed_backends(what: str, objects: tuple[Any, ...]) -> errors.BackendMismatch:
    """Return the error that names each object's backend."""
    facts = ", ".join(f"{name_of(o)} is on {o.backend.name}" for o in objects)
    x, y = next((a, b) for a in objects for b in objects if a.backend is not b.backend)
    usual = (
        f"Move one with .to, as in {name_of(y)}.to({x.backend.name!r}); nothing is copied for you."
    )
    entered = hints.how_to_enter(x.backend, y) or hints.how_to_enter(y.backend, x)
    return errors.BackendMismatch(f"{what}: {facts}. {entered or usual}")
