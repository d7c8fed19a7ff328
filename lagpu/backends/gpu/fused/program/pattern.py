"""Generated loops over sparse matrices whose entries stay within those of one of them.

As in a k-truss: ``C(C.S) << plus_pair(C @ C.T)`` never adds an entry. So the pattern that C has
before the loop serves all iterations. Each matrix is a vector over its entries, and the statements
are those of vectors; an entry that is deleted is one that the vector lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import lagpu.operations as ops
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.fused.loop import KernelLoop, if_fits
from lagpu.backends.gpu.fused.program import run
from lagpu.backends.gpu.fused.program.text import Program
from lagpu.backends.gpu.storage import forms, stores
from lagpu.backends.gpu.storage.bitmap import MatrixHandle
from lagpu.backends.gpu.storage.stores import Counters, CscMatrix, VectorStore, nwords
from lagpu.backends.match import holds, method
from lagpu.operations import Handle, Rejection, Statement, Statements, Until, operands_of

Array = Any


def generated_pattern_loop(
    counters: Counters, statements: Statements, until: Until, why: str
) -> KernelLoop | Rejection:
    """Return the kernel of a loop within a pattern, or why it has none; `why`: no other fits."""
    masks = [s.desc.mask for s in statements if isinstance(s.operation, ops.Multiply)]
    if not masks or masks[0] is None:
        return Rejection("no product is at the entries of a mask")
    A: MatrixHandle = masks[0]
    if A.shape[0] != A.shape[1] or not 0 < A.csc().nvals <= run.MOST_ENTRIES or A.shape[0] >= 2**31:
        fact = f"has none or more than {run.MOST_ENTRIES} entries"
        return Rejection(f"the mask is not square, or {fact}")
    named = [x for s in statements for x in (s.out, s.desc.mask, *operands_of(s.operation))]
    used = run.matrices((*named, *until[:2]))
    for x in used:
        if x.shape != A.shape or (x is not A and x.csc().nvals):
            return Rejection("a matrix may have entries outside of the mask of a product")
    lacking = next(filter(None, map(_why_not_within, statements)), "")
    if lacking:
        return Rejection(lacking)
    entries = {id(x): VectorStore(A.device, counters, x.dtype, A.csc().nvals) for x in used}
    made = [ops.moved(s, entries) for s in statements]
    lacking = emit.why_no_scalars(made) or emit.why_no_counters(made)
    if lacking:
        return Rejection(lacking)
    return if_fits(GeneratedPatternLoop(A, used, entries, made, until, why))


def _why_not_within(s: Statement) -> str:
    """Return why a statement may leave the pattern, or is no statement on entries."""
    operation, desc = s.operation, s.desc
    fills = isinstance(operation, (ops.Multiply, ops.AssignScalar))
    if fills and (desc.mask is None or desc.complement):
        return f"{method(s)} is not at the entries of a mask"
    if isinstance(operation, ops.Multiply) and operation.product.is_named:
        return "the product names a kernel or a policy"
    return run.why_not_on_entries(s, None, (ops.Assign,)) or run.why_not_anywhere(s)


class GeneratedPatternLoop(run.GeneratedLoop):
    """A kernel, its arguments, and the entries of the matrices it writes; see `GeneratedLoop`."""

    keeps_log = False

    def __init__(
        self, A: MatrixHandle, used: Sequence[MatrixHandle], entries: dict[int, VectorStore],
        statements: Statements, until: Until, why: str,
    ) -> None:  # fmt: skip
        self._pattern, first = A.csc(), entries[id(A)]
        values = self._pattern.values
        first.set_full(None if values is None else values.copy(), self._pattern.iso)
        super().__init__(statements, until.on(entries), why)
        written = ((x, entries[id(x)]) for x in used)
        self._handles = [(x, v) for x, v in written if holds(self.written, v)]

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: lists of the rows besides."""
        return super().nbytes + 16 * self._pattern.nvals

    def _kept(self) -> tuple[list[Program], Sequence[Handle]]:
        """See `GeneratedLoop`; the pattern has the last place."""
        kept, handles = super()._kept()
        return kept, [*handles, self._pattern]

    def _named(self, *given: Any) -> PatternOperands:
        return PatternOperands(self._pattern, *given)

    def _store(self) -> None:
        for handle, v in self._handles:
            handle.store = forms.take(self._pattern.with_values(v.dtype, v.values, None), v.words)


class PatternOperands(emit.Operands):
    """What statements within a pattern name; see `Operands`."""

    header = "program/pattern.cuh"
    most_held = 0
    shared = ()

    def __init__(self, pattern: CscMatrix, *given: Any) -> None:
        super().__init__(*given)
        self._pattern = pattern
        self._lists: dict[bool, str] = {}

    def _lists_of(self, rows: bool) -> str:
        if rows not in self._lists:
            at = self.params.place(self._pattern)
            lists = _by_rows if rows else _by_columns
            names = self.params.made(["const i32*"] * 3, lambda run: lists(run.handles[at]))
            self._lists[rows] = f"Lists{{{', '.join(names)}}}"
        return self._lists[rows]

    def _by_matrix(self, s: Statement, operation: ops.Multiply) -> emit.ProductText:
        u, product, params = operation.operand, operation.product, self.params
        a: Any = operation.matrix  # the vector of its entries
        lines, mask, complement = self.mask_words(s.desc)
        name, kind = f"Product{len(params.structs)}", product.result.ctype
        params.product(product, u.dtype, a.dtype, name)
        words = params.room("u32", nwords(s.out.size), np.uint32)
        values = params.room(kind, s.out.size, product.result.numpy)
        left, right = map(self._lists_of, (not operation.transposed, not product.transpose))
        n, at = params.size(s.out.size), params.place(self._pattern)
        (ncols,) = params.made(["i64"], lambda run: [np.int64(run.handles[at].shape[1])])
        x, y = params.entries(u), params.entries(a)
        dot = f"DotProduct<{name}>{{{left}, {right}, {{{x}}}, {{{y}}}}}"
        line = (
            f"multiply_within<{name}>({n}, {ncols}, {self._lists_of(False)}, {dot}, "
            f"Mask{{{mask}, {complement}, {n}}}, {{{words}, {values}}}, barrier);"
        )
        result = emit.Operand(words, values, f"{kind}(0)", product.result)
        return [*lines, line], result, emit.Logged("kPulls")


def _by_columns(A: CscMatrix) -> tuple[Array, Array, None]:
    return A.col_ptr, A.row_idx, None


def _by_rows(A: CscMatrix) -> tuple[Array, Array, Array]:
    """Return the rows as lists: where each begins, its columns, and which entries these are."""
    device = A.device
    order = device.order_of(A.row_idx)
    rows = stores.gather(device, A.row_idx, order, np.int32)
    columns = stores.gather(device, A.columns(kind=np.int32), order)
    starts = stores.bounds(device, rows, range(A.shape[0] + 1), kind=np.int32)
    return starts, columns, stores.as_type(device, order, np.int32)
