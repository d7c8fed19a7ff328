"""Scalars of a generated loop: in its kernel, and on the host after the loop."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.fused.emit import Parameters, accum_type, write_here
from lagpu.backends.gpu.kernels import constant
from lagpu.dtypes import DType
from lagpu.operations import Constant, ScalarRef, ScalarValue, Statement

Array = Any
WORDS = constant("kScalarWords")


def why_no_scalars(statements: Sequence[Statement]) -> str:
    """Return why a kernel cannot hold the scalars of statements, or an empty string."""
    for s in statements:
        for ref in s.scalars:
            if not _always_fits(ref.scalar.dtype, ref.dtype):
                return f"{ref.name} of type {ref.scalar.dtype} may not fit {ref.dtype}"
    return ""


def _always_fits(source: DType, target: DType) -> bool:
    """Whether every value of `source` fits `target`; only integer targets can fail."""
    if source.is_float or target.is_float or target.is_bool:
        return True
    low, high = int(target.smallest), int(target.largest)
    return low <= int(source.smallest) and int(source.largest) <= high


class LoopScalars:
    """The scalars of a loop's body: what a run of its kernel takes of them, and leaves in them.

    Parameters
    ----------
    statements : sequence of Statement
        The body, which `why_no_scalars` accepts.
    device : Device
        Where it runs.

    Attributes
    ----------
    written, all : list of ScalarValue
        Those that statements write, and with them those that are only read.
    unsure : list of (int, ScalarRef)
        The reads that may find no value, in order, each with the ``id`` of its statement. The
        kernel leaves the number of the first that did, from 1, or 0.
    """

    def __init__(self, statements: Sequence[Statement], device: Device) -> None:
        self._device = device
        written = [s.out for s in statements if s.writes_scalar]
        read = [ref.scalar for s in statements for ref in s.scalars]
        self.written: list[ScalarValue] = list({id(x): x for x in written}.values())
        self.all: list[ScalarValue] = list({id(x): x for x in [*written, *read]}.values())
        self.unsure = _unsure(statements, self.all)
        self._out: Array = None  # of the run between `room` and `ran`

    def room(self) -> Array:
        """Return new room for what a run leaves: the scalars written, and which read failed."""
        self._out = self._device.xp.empty(WORDS * len(self.written) + 1, np.uint64)
        return self._out

    def given(self, k: int) -> tuple[Any, Any, Array]:
        """Return (number, whether there is one, where it is on the device) of a scalar."""
        x = self.all[k]
        value = x.get() if x.location is None else None
        number = x.dtype.numpy.type(0) if value is None else value
        return number, np.bool_(value is not None), x.location

    def ran(self) -> None:
        """Leave the scalars on the device; wait if a statement may have read one without a value.

        Raises
        ------
        EmptyObject
            If a statement has read a scalar without a value; the loop ended before that statement.
        """
        if not self.all:
            return
        device, out = self._device, self._out
        found = device.to_host(out) if self.unsure else None
        for k, x in enumerate(self.written):
            part = slice(WORDS * k, WORDS * (k + 1))
            if found is None:
                fetch = functools.partial(_fetch, device, out[part], x.dtype)
                x.defer(fetch, out[part], device)
            else:
                x.set(_value(found[part], x.dtype))
        if found is None:
            return
        failed = int(found[-1])
        if failed:
            self.unsure[failed - 1][1].now()  # raises as it would have there


def _fetch(device: Device, words: Array, dtype: DType) -> Any:
    with device.alone():
        return _value(device.to_host(words), dtype)


def _value(words: np.ndarray[Any, Any], dtype: DType) -> Any:
    """Return the scalar in two words of a kernel, a NumPy scalar or None."""
    return words[:1].view(dtype.numpy)[0] if words[1] else None


def _unsure(
    statements: Sequence[Statement], scalars: Sequence[ScalarValue]
) -> list[tuple[int, ScalarRef]]:
    """Return the reads that may find no value, each with the ``id`` of its statement.

    A number fills a scalar; a sum may empty it unless there is an accumulator. A scalar that was
    read before has a value. What has one at the top of an iteration depends on the end of the one
    before, so fewer and fewer are taken to have one, until those have it at the end.
    """
    known = {id(x) for x in scalars if x.location is None and x.get() is not None}
    while True:
        unsure: list[tuple[int, ScalarRef]] = []
        full = set(known)
        for s in statements:
            unsure += [(id(s), ref) for ref in s.scalars if id(ref.scalar) not in full]
            full.update(id(ref.scalar) for ref in s.scalars)
            if s.writes_scalar:
                if isinstance(s.operation, Constant):
                    full.add(id(s.out))
                elif s.desc.accum is None:
                    full.discard(id(s.out))
        if known <= full:
            return unsure
        known &= full


class KernelScalars:
    """The scalars of a loop's body in the text of its kernel, variables that every thread has.

    Parameters
    ----------
    scalars : LoopScalars
        The scalars.
    sums : int
        How many sums over vectors the body has.
    params : Parameters
        Of the kernel; those of scalars are added to it.

    Attributes
    ----------
    before : list of str
        The lines before the loop.
    """

    def __init__(self, scalars: LoopScalars, sums: int, params: Parameters) -> None:
        self._scalars, self._params = scalars, params
        self._names = {id(x): f"s{k}" for k, x in enumerate(scalars.all)}
        self._sums = 0  # of which the text is written
        self.before: list[str] = []
        if not scalars.all:
            return
        (self._out,) = params.made(["u64*"], lambda run: [run.scalars.room()])
        words = 2 * max(1, sums) * WORDS  # a place for each of two turns
        parts = params.made(["u64*"], lambda run: [run.room(words * run.blocks, np.uint64)])
        self._parts = parts[0]
        self.before.append("u64 failed = 0;")
        self.before += [self._load(k, x) for k, x in enumerate(scalars.all)]

    def __bool__(self) -> bool:
        return bool(self._names)

    def _load(self, k: int, x: ScalarValue) -> str:
        """Return the line before the loop that makes scalar `k` a variable."""
        kind = x.dtype.ctype
        kinds = [kind, "bool", "const u64*"]
        number, there, place = self._params.made(kinds, lambda run: run.scalars.given(k))
        return f"Entry<{kind}> {self._names[id(x)]} = load_scalar({place}, {there}, {number});"

    def number(self, ctype: str, value: Any) -> str:
        """Return the text for a number of a statement: a parameter, or the value of a scalar."""
        if type(value) is not ScalarRef:
            return self._params.add(ctype, value)
        return f"number_of<{ctype}>({self._names[id(value.scalar)]})"

    def counter(self, ctype: str) -> str:
        """Return the text for the loop's counter."""
        return f"cast<{ctype}>(i64(depth))"

    def checks(self, s: Statement) -> list[str]:
        """Return the lines that end the loop before a statement if it would read no value."""
        return [
            f"if (!{self._names[id(ref.scalar)]}.there) {{ failed = {number}; break; }}"
            for number, (statement, ref) in enumerate(self._scalars.unsure, 1)
            if statement == id(s)
        ]

    def constant(self, s: Statement) -> str:
        """Return the line of a statement that gives a scalar a number."""
        kind, operation = s.dtype.ctype, s.operation
        assert isinstance(operation, Constant)
        value = self.counter(kind) if s.assigns_counter else self.number(kind, operation.value)
        return self.writes(s, f"Entry<{kind}>{{true, {value}}}")

    def writes(self, s: Statement, z: str) -> str:
        """Return the line that writes a result, an ``Entry``, into a statement's scalar."""
        accum = accum_type(self._params, s.desc, s.out.dtype, s.dtype)
        return write_here(self._names[id(s.out)], accum, z, "0")

    def new_parts(self) -> str:
        """Return where blocks leave their parts of the next sum.

        That is another place in the next iteration: a block may be there while a slower one still
        reads this one.
        """
        self._sums += 1
        which = f"({2 * self._sums - 2} + (turn & 1))"
        return f"{self._parts} + {which} * {WORDS} * grid_blocks()"

    def count(self, s: Statement) -> str:
        """Return how many values the scalar has that a statement writes, counted by one thread."""
        return f"u64(global_thread() == 0 && {self._names[id(s.out)]}.there)"

    def after(self) -> list[str]:
        """Return the lines after the loop."""
        if not self._names:
            return []
        written = self._scalars.written
        stores = [
            f"store_scalar({self._out} + {WORDS * k}, {self._names[id(x)]});"
            for k, x in enumerate(written)
        ]
        failed = f"{self._out}[{WORDS * len(written)}] = failed;"
        return ["if (global_thread() == 0) {", *stores, failed, "}"]
