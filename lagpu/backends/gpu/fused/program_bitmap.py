"""Loops over blocks as programs: a block's entries are a vector, but for products and rows past k.

What is no search of bits, and whose rows are not worked on apart, is one kernel all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import IndexUnaryOp
from lagpu.backends.gpu.device.protocol import has_free
from lagpu.backends.gpu.fused.body import OnEntries, on_entries
from lagpu.backends.gpu.fused.log import LoopLog
from lagpu.backends.gpu.fused.program import Program, why_no_program
from lagpu.backends.gpu.ops.bitmap_mxm import PUSH_COST, chunks_of
from lagpu.backends.gpu.ops.spmv import iso_result
from lagpu.backends.gpu.ops.spmv_launch import by_inputs, by_outputs
from lagpu.backends.gpu.storage.bitmap import stride
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.forms import is_symmetric
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import index_types
from lagpu.backends.protocol import Product, Statement
from lagpu.dtypes import DType

__all__ = ["BlockProgram", "blockprogram_of"]


def blockprogram_of(
    counters: Counters,
    statements: list[Statement],
    until_empty: MatrixStore | None,
    unchanged: MatrixStore | None,
) -> BlockProgram | str:
    """Return the program of a loop's body that writes blocks, or why there is none."""
    watched = tuple(A for A in (until_empty, unchanged) if A is not None)
    for s in statements:
        if s.method == "matrix_mxm" and any(s.args[1] is other.w for other in statements):
            return "the body writes the matrix of a product"
    found = on_entries(counters, statements, watched)
    if isinstance(found, str):
        return found
    why = why_no_program(found.statements) or next(filter(None, map(_misfit, found.statements)), "")
    if why:
        return why
    made = BlockProgram(found, until_empty, unchanged)
    if not has_free(made.device, made.nbytes):
        return "the workspace of a program over blocks does not fit"
    return made


def _misfit(s: Statement) -> str:
    """Return why a statement on entries cannot be a piece, though one on a vector could."""
    if nwords(s.w.size) >= 2**32:  # kernels number them so
        return "a matrix has 2**32 words of presence bits or more"
    if s.method == "mxv":
        return _without_columns(s.args[0], s.args[2])
    if s.method in ("apply", "select"):
        op = s.args[1]
        if isinstance(op, IndexUnaryOp) and (op.body or not op.name.startswith("value")):
            return f"{s.method} looks at rows and columns"
    return ""


def _without_columns(A: MatrixStore, how: Product) -> str:
    """Return why the columns that a product pulls from are not to be had, or nothing."""
    if _bytes_to_turn(A, how) and not A.turnable and not is_symmetric(A):
        return "a product needs rows, and the matrix' orientation is csc"
    return ""


def _bytes_to_turn(A: MatrixStore, how: Product) -> int:
    """Return the bytes that it takes to make the columns a product pulls from, if they lack."""
    at_hand = how.transpose or A.symmetric or A.rows is not None
    return 0 if at_hand else A.nbytes + 32 * A.nvals


class BlockProgram(Program):
    """The text of a kernel, its arguments, and the blocks it writes.

    Parameters
    ----------
    found : OnEntries
        The body, on entries.
    until_empty, unchanged : MatrixStore or None
        The loop's condition.

    Attributes
    ----------
    statements : list of Statement
        The body, on entries.
    nbytes : int
        Bytes that it asks for.
    """

    header = "program/bitmap.cuh"
    shared = ("LG_SHARED(u64, sums, LG_BLOCK);", "LG_SHARED(u32, found, 32);",
              "(void)sums; (void)found;")  # fmt: skip
    one_way = "sums of blocks are pulled, and what has no other form"

    def __init__(
        self, found: OnEntries, until_empty: MatrixStore | None, unchanged: MatrixStore | None
    ) -> None:
        entries = {of: A.entries for of, A in found.blocks.items()}
        ends = [None if A is None else entries[id(A)] for A in (until_empty, unchanged)]
        super().__init__(found.statements, *ends)
        self.statements, self._outputs = found.statements, found.outputs
        self._shapes = {id(A.entries): A.shape for A in found.blocks.values()}
        self.nbytes = _bytes_needed(found, ends[1])

    def run(self, times: int | None, log: LoopLog | None = None) -> None:
        """See `Program`."""
        super().run(times, log)
        for out, made in self._outputs:
            made.changed()
            out.data = made

    def _source(self, s: Statement) -> tuple[DType, str]:
        """See `Program`: a number for all positions is one for those of rows."""
        z, source = super()._source(s)
        if s.method == "assign_scalar":
            k, _ = self._shapes[id(s.w)]
            each, rows = (self._params.size(x) for x in (stride(k), k))
            source = f"InRows<Filled<{z.ctype}>>{{{source}, {each}, {rows}}}"
        return z, source

    def _product(self, s: Statement) -> list[str]:
        """See `Program`."""
        A, u, how = s.args
        form, (k, n) = by_outputs(A, how), self._shapes[id(s.w)]
        known = iso_result(A, u, how)  # of what the body writes the values are stored
        iso = known is not None
        name = self._params.product(how, u.dtype, A.dtype, iso, **index_types(form))
        x, kind = self._params.vector(u), how.result.ctype
        add, xp = self._params.add, self.device.xp
        lines, mask, complement = self._mask(s.desc)
        words = add("u32*", xp.zeros(nwords(s.w.size), np.uint32))
        values = add(f"{kind}*", None if iso else xp.empty(s.w.size, how.result.numpy))
        shape = ", ".join(self._params.size(size) for size in (n, stride(k) // 32, k))
        product = (
            f"{{{self._columns(form, form)}, {{{x}_words, {x}_values, {x}_iso}}, {{{shape}}}, "
            f"{mask}, {complement}, {{{words}, {values}}}}}, {self._long(form)}"
        )
        number = add(kind, known) if iso else f"{kind}(0)"
        read = f"Mapped<Identity, {kind}, {kind}, {kind}>"
        read += f"{{{words}, {values}, {number}, {kind}(0), false}}"
        multiply = self._bits if iso else self._values
        call, logged = multiply(s, form, f"<{name}>({product}")
        write = self._write(s.w, s.desc, how.result, read, logged)
        return [*lines, f"{call}, barrier);", *write, "warp_sync();"]

    def _values(self, s: Statement, form: MatrixStore, of: str) -> tuple[str, tuple[str, ...]]:
        """Return the call of a product with values, but its end, and what is logged of it."""
        place = self._counters
        self._counters += self._log.on
        logged = ("kPulls", f"load_volatile(at + {place} * kFar)", "kUnknown")
        return f"multiply_block{of}, sums, found, now + {place} * kFar", logged

    def _bits(self, s: Statement, form: MatrixStore, of: str) -> tuple[str, tuple[str, ...]]:
        """Return what `_values` does, of a product whose sums have one value."""
        A, u, how = s.args
        rows = self._by_inputs(A, how, form)
        n = self._shapes[id(u)][1]
        long = "0, nullptr" if rows is None else self._long(rows)
        nvals, cost = (self._params.add("u64", np.uint64(x)) for x in (A.nvals, PUSH_COST))
        pushing = (
            f"{{{self._columns(rows, form)}, {self._params.size(n)}, {long}, {nvals}, {cost}}}"
        )
        place = self._counters
        self._counters += 1 + self._log.on
        pulls = f"const bool pulls{place} = " if self._log.on else ""
        logged = (
            f"pulls{place} ? kPulls : kPushes",
            f"load_volatile(at + {place + 1} * kFar)",
            "kUnknown" if rows is None else f"load_volatile(at + {place} * kFar)",
        )
        return f"{pulls}multiply_bits{of}, found, {pushing}, now + {place} * kFar", logged

    def _long(self, form: MatrixStore) -> str:
        """Return how many columns are long, and which."""
        long = chunks_of(form).columns
        return f"{self._params.size(len(long))}, {self._params.add('const i64*', long)}"

    def _by_inputs(self, A: MatrixStore, how: Product, form: MatrixStore) -> MatrixStore | None:
        """Return the form that a push goes through, or None if there is none beside `form`."""
        if how.transpose and not (is_symmetric(A) or A.rows is not None):
            nbytes = self.nbytes + A.nbytes + 32 * A.nvals
            if not (A.turnable and has_free(self.device, nbytes)):
                return None
        found = by_inputs(A, how)
        return found if index_types(found) == index_types(form) else None


def _bytes_needed(found: OnEntries, copied: VectorStore | None) -> int:
    """Return the bytes that a program asks for; one vector may be copied for its condition."""
    blocks = {id(A): A.entries for A in found.blocks.values()}
    products = [s for s in found.statements if s.method == "mxv"]
    uses = [(A, how) for A, _, how in (s.args for s in products) if not how.transpose]
    turned = {id(A): _bytes_to_turn(A, how) for A, how in uses}
    return (
        sum(map(_bytes_to_make, blocks.values()))
        + sum(turned.values())
        + sum(_bytes_of(s.w.size, s.args[2].result) for s in products)
        + sum(4 * nwords(s.w.size) for s in found.statements if not s.desc.structure)
        + (0 if copied is None else _bytes_of(copied.size, copied.dtype))
    )


def _bytes_of(size: int, dtype: DType) -> int:
    return 4 * nwords(size) + size * dtype.numpy.itemsize


def _bytes_to_make(x: VectorStore) -> int:
    """Return the bytes of what a vector lacks to be written."""
    stored: list[Any] = [x.words, x.values] if x.form == "bitmap" else [None, None]
    each = (4 * nwords(x.size), np.dtype(x.dtype.numpy).itemsize * x.size)
    return sum(size for size, there in zip(each, stored, strict=True) if there is None)
