"""Scalars in a program: what a kernel holds of them, and what is known of them behind it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.fused.parameters import Parameters
from lagpu.backends.gpu.kernels.functors import monoid_functor, operator_functor
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.protocol import Descriptor, Statement
from lagpu.dtypes import DType
from lagpu.operations.scalar import Cell, Held, held_in

__all__ = ["Cells", "why_no_cell"]

Array = Any
WORDS = 2  # u64 a cell in memory, as in program/scalars.cuh


def why_no_cell(statements: Sequence[Statement]) -> str:
    """Return why scalars that statements write or read cannot be a kernel's, or nothing."""
    for s in statements:
        for held in held_in(s.args):
            if not _always_fits(held.cell.dtype, held.dtype):
                return f"{held.name} of type {held.cell.dtype} may not fit {held.dtype}"
    return ""


def _always_fits(source: DType, target: DType) -> bool:
    """Whether a number of one type is refused as none of the other: only whole ones may be."""
    if source.is_float or target.is_float or target.is_bool:
        return True
    low, high = int(target.smallest), int(target.largest)
    return low <= int(source.smallest) and int(source.largest) <= high


class Cells:
    """The scalars of a loop's body.

    Parameters
    ----------
    statements : sequence of Statement
        The body; `why_no_cell` has nothing against it.
    params : Parameters
        Of the kernel.
    device : Device
        Where it runs.
    """

    def __init__(self, statements: Sequence[Statement], params: Parameters, device: Device) -> None:
        self._params, self._device = params, device
        written = [s.w for s in statements if type(s.w) is Cell]
        read = [held.cell for s in statements for held in held_in(s.args)]
        self._written = list({id(cell): cell for cell in written}.values())
        self._all = list({id(cell): cell for cell in [*written, *read]}.values())
        self._names = {id(cell): f"s{k}" for k, cell in enumerate(self._all)}
        self._unsure = _unsure(statements, self._all)
        self._checked: list[Held] = []  # what the kernel asks for a value, in order
        self._partial = ""
        self._out: Array = None
        self._out_name = ""

    def __bool__(self) -> bool:
        return bool(self._all)

    # ---------------------------------------------------------------------- the kernel's text
    def opening(self) -> list[str]:
        """Return the lines before the loop."""
        if not self._all:
            return []
        xp, add = self._device.xp, self._params.add
        self._out = xp.empty(WORDS * len(self._written) + 1, np.uint64)
        self._out_name = add("u64*", self._out)
        self._partial = add("u64*", lambda blocks: xp.empty(2 * WORDS * blocks, np.uint64))
        lines = ["u64 failed = 0;", "u32 sums = 0;"]
        for cell in self._all:
            kind, here = cell.dtype, cell.place is None
            value = cell.get() if here else None
            number = add(kind.ctype, kind.numpy.type(0) if value is None else value)
            there = add("bool", np.bool_(value is not None))
            place = add("const u64*", cell.place)
            name = self._names[id(cell)]
            lines.append(f"Cell<{kind.ctype}> {name} = load_cell({place}, {number}, {there});")
        return lines

    def number(self, ctype: str, value: Any) -> str:
        """Return what stands for a number of a statement: a parameter, or a scalar as it is."""
        if type(value) is not Held:
            return self._params.add(ctype, value)
        return f"number_of<{ctype}>({self._names[id(value.cell)]})"

    def checks(self, s: Statement) -> list[str]:
        """Return the lines that end the loop before a statement if it would read no value."""
        lines = []
        for held in held_in(s.args):
            if (id(s), id(held.cell)) in self._unsure:
                self._checked.append(held)
                failed = f"{{ failed = {len(self._checked)}; break; }}"
                lines.append(f"if (!{self._names[id(held.cell)]}.there) {failed}")
        return lines

    def statement(self, s: Statement) -> list[str]:
        """Return the lines of one that writes a scalar."""
        kind, made = s.w.dtype, s.dtype
        assert made is not None
        if s.method == "reduce":
            z = self._sum(s.args[0], s.args[1], made)
        else:
            value = f"cast<{made.ctype}>(i64(depth))"
            if not s.is_counter:
                value = self.number(made.ctype, s.args[0])
            z = f"Cell<{made.ctype}>{{{value}, true}}"
        accum = accum_of(self._params, s.desc, kind, made)
        return [f"write_cell<{accum}>(&{self._names[id(s.w)]}, {z});"]

    def count(self, s: Statement) -> str:
        """Return how many values the scalar has that a statement writes, counted by one thread."""
        return f"u64(global_thread() == 0 && {self._names[id(s.w)]}.there)"

    def closing(self) -> list[str]:
        """Return the lines behind the loop."""
        if not self._all:
            return []
        stores = [
            f"store_cell({self._out_name} + {WORDS * k}, {self._names[id(cell)]});"
            for k, cell in enumerate(self._written)
        ]
        failed = f"{self._out_name}[{WORDS * len(self._written)}] = failed;"
        return ["if (global_thread() == 0) {", *stores, failed, "}"]

    def _sum(self, u: VectorStore, monoid: Any, result: DType) -> str:
        x, params = self._params.vector(u), self._params
        add = params.functor(monoid_functor(monoid))
        which = f"{self._partial} + (sums++ & 1) * {WORDS} * grid_blocks()"
        what = f"{params.size(u.size)}, {x}_words, {x}_values, {x}_iso, {which}, barrier"
        return f"reduce_all<{add}, {result.ctype}>({what})"

    # ------------------------------------------------------------------------- when it has run
    def ran(self) -> None:
        """Leave the scalars on the device; wait if a statement may have read one without a value.

        Raises
        ------
        EmptyObject
            If one has: the loop ended there, with all before it done.
        """
        if not self._all:
            return
        device, out = self._device, self._out
        for k, cell in enumerate(self._written):
            words = out[WORDS * k : WORDS * (k + 1)]
            cell.put_off(functools.partial(_fetch, device, words, cell.dtype), words)
        if not self._checked:
            return
        found = device.to_host(out)
        for k, cell in enumerate(self._written):
            cell.set(_value(found[WORDS * k : WORDS * (k + 1)], cell.dtype))
        failed = int(found[-1])
        if failed:
            self._checked[failed - 1].now()  # raises as it would have there


def accum_of(params: Parameters, desc: Descriptor, w: DType, z: DType) -> str:
    """Return the type of an accumulator for results of type `z`; one that assigns for none."""
    if desc.accum is None:
        return "Accum<NoAccum, bool, bool>"
    domain, result = desc.accum.types(w, z)
    name = params.functor(operator_functor(desc.accum))
    return f"Accum<{name}, {domain.ctype}, {result.ctype}>"


def _fetch(device: Device, words: Array, dtype: DType) -> Any:
    return _value(device.to_host(words), dtype)


def _value(words: np.ndarray[Any, Any], dtype: DType) -> Any:
    """Return what two words say, a NumPy scalar or None."""
    return words[:1].view(dtype.numpy)[0] if words[1] else None


def _unsure(statements: Sequence[Statement], cells: Sequence[Cell]) -> set[tuple[int, int]]:
    """Return (statement, cell), by ``id``, of the reads that may find no value.

    A number fills a scalar; a sum may empty it unless there is an accumulator. One that has been
    read has a value.
    """
    known = {id(c) for c in cells if c.place is None and c.get() is not None}
    while True:
        unsure, full = set(), set(known)
        for s in statements:
            for held in held_in(s.args):
                if id(held.cell) not in full:
                    unsure.add((id(s), id(held.cell)))
                    full.add(id(held.cell))
            if type(s.w) is Cell:
                if s.method == "constant":
                    full.add(id(s.w))
                elif s.desc.accum is None:
                    full.discard(id(s.w))
        if known <= full:
            return unsure
        known &= full
