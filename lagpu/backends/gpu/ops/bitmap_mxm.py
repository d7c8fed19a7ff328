"""Products of a block with a matrix: bits or values, pulled or pushed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import Semiring
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.kernels.functors import monoid_functor, operator_functor
from lagpu.backends.gpu.ops import elementwise
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.ops.spmv_launch import by_inputs, by_outputs
from lagpu.backends.gpu.storage.bitmap import BlockStore, described, require, stride
from lagpu.backends.gpu.storage.casts import cast_number
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.forms import is_symmetric
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.gpu.storage.workspaces import index_types
from lagpu.backends.protocol import Descriptor, Product

__all__ = ["PUSH_COST", "Chunks", "choose", "chunks_of", "multiply", "product_of"]

LONG = 1024  # as kLongColumn in bitmap/sums.cuh
#: A push of bits costs so many times a pull's look at an entry (docs/design/blocks.md).
PUSH_COST = 8


class Chunks(NamedTuple):
    """The long columns of a matrix, and the chunks they are cut into, first chunks first."""

    columns: Any
    column: Any
    start: Any
    nbytes: int


def product_of(Q: MatrixStore, A: MatrixStore, semiring: Semiring, transpose: bool) -> Product:
    """Return what ``Q (+.x) A``, or ``Q (+.x) A'``, is for each row of `Q`."""
    domain, result = semiring.types(Q.dtype, A.dtype)
    return Product(semiring, domain, result, not transpose, True)


def choose(Q: BlockStore, A: MatrixStore, how: Product, iso: Any) -> Plan:
    """Return direction, kernel and reason of a product; `iso` as `iso_result` returns it."""
    why: tuple[Any, ...] | str
    if iso is None:
        columns = A.shape[1 if how.transpose else 0]
        why = "values of type {} are added up in {} columns, never pushed", how.result, columns
        return Plan("pull", "block_sums", why)
    if how.transpose and not A.turnable and A.rows is None and not is_symmetric(A):
        why = "a push needs the rows, and the matrix' orientation is csc"
        return Plan("pull", "block_bits", why)
    entries = Q.entries
    count = entries.nvals  # heeds the signal, which says what leaves as well
    leaving, about = entries.leaving, ""
    if leaving is None:
        leaving = min(count, Q.shape[1]) * A.nvals // max(Q.shape[1], 1)
        about = "about "
    looks = A.nvals * max(1, stride(Q.shape[0]) // 64)
    # pulled if the edges of all frontiers together cost more than a look at each
    pulls = leaving * PUSH_COST > looks
    why = "edges {}{} {} {} / {}", about, leaving, ">" if pulls else "<=", looks, PUSH_COST
    return Plan("pull" if pulls else "push", "block_bits", why)


def multiply(
    counters: Counters,
    Q: BlockStore,
    A: MatrixStore,
    how: Product,
    iso: Any,
    plan: Plan,
    desc: Descriptor,
    edges: Any = None,
) -> BlockStore:
    """Return ``Q (+.x) A``, or ``Q (+.x) A'``, where the mask keeps.

    `iso` is the one value of all results, or None; `edges`, unless None, counts the entries of `A`
    that are looked at.
    """
    result = how.result
    mask = elementwise.mask_words(described(counters, desc))
    shape = (Q.shape[0], A.shape[1 if how.transpose else 0])
    size = stride(shape[0]) * shape[1]
    made = VectorStore(A.device, counters, result, size)
    require(A.device, shape, None if iso is not None else result, "mxm")
    words = made.spare_words()
    product = BlockStore(A.device, result, shape, made)
    counts, signal = counters.take(3), A.device.signal()
    tell = (counts, signal.place, signal.serial, edges)
    if iso is None:
        values = made.spare_values(result)
        _sums(Q, A, how, mask, words, values, tell)
        made.set_bitmap(words, values, None, None)
    else:
        product.alive = _bits(Q, A, how, plan, mask, words, tell, counters)
        made.set_bitmap(words, None, cast_number(iso, result), None)
    made.counted(counts, signal)
    product.under = desc
    return product


def _lengths(A: MatrixStore, how: Product, form: MatrixStore) -> Any:
    """Return where to read the edges that leave an output, if the matrix' rows are at hand."""
    if A.shape[0] != A.shape[1]:
        return None
    rows = A if not how.transpose or is_symmetric(A) else A.rows
    return rows.col_ptr if rows is not None and rows.col_ptr.dtype == form.col_ptr.dtype else None


def _bits(
    Q: BlockStore,
    A: MatrixStore,
    how: Product,
    plan: Plan,
    mask: tuple[Any, bool],
    words: Any,
    tell: tuple[Any, ...],
    counters: Counters,
) -> Any:
    """Launch ``block_bits``, either way; return the rows that are alive after it."""
    k = Q.shape[0]
    each = stride(k)
    q_words, _, _ = Q.entries.readable()
    pulls = plan.direction == "pull"
    form = by_outputs(A, how) if pulls else by_inputs(A, how)
    groups, word = (each // 64, "u64") if each % 64 == 0 else (each // 32, "u32")
    words.fill(0)
    alive = counters.take(groups)
    macros = {"WORD": word, "PUSH": "0" if pulls else "1", **index_types(form), **_counting(tell)}
    run = kernel("bitmap/products.cu", "block_bits", **macros)
    chunks, n = chunks_of(form), form.shape[1]
    A.device.launch(
        run, n * groups, n, groups, k, form.col_ptr, form.row_idx, q_words, *mask, Q.alive,
        _lengths(A, how, form), len(chunks.column), chunks.column, chunks.start, words, alive,
        *tell,
    )  # fmt: skip
    return alive


def _counting(tell: tuple[Any, ...]) -> dict[str, str]:
    """Return the macro that makes a kernel count what it looks at, if somebody asks."""
    return {} if tell[3] is None else {"EDGES": "1"}


def chunks_of(form: MatrixStore) -> Chunks:
    """Return the chunks of a form's long columns, made at the first call."""
    if "chunks" not in form.spaces:
        xp = form.device.xp
        lengths = xp.diff(form.col_ptr).astype(np.int64)
        columns = xp.flatnonzero(lengths > LONG).astype(np.int64)
        parts = (lengths[columns] + LONG - 1) // LONG
        ends = xp.cumsum(parts)
        each = xp.arange(int(ends[-1]) if len(columns) else 0, dtype=np.int64)
        owner = xp.searchsorted(ends, each, side="right")
        part = each - (ends - parts)[owner]
        order = xp.argsort(part, kind="stable")  # what a first chunk finds, later ones leave out
        start = form.col_ptr[columns].astype(np.int64)[owner] + part * LONG
        column, start = columns[owner][order], start[order]
        nbytes = int(columns.nbytes + column.nbytes + start.nbytes)
        form.spaces["chunks"] = Chunks(columns, column, start, nbytes)
    found: Chunks = form.spaces["chunks"]
    return found


def _sums(
    Q: BlockStore,
    A: MatrixStore,
    how: Product,
    mask: tuple[Any, bool],
    words: Any,
    values: Any,
    tell: tuple[Any, ...],
) -> None:
    """Launch ``block_sums_long`` and ``block_sums``."""
    form, k = by_outputs(A, how), Q.shape[0]
    n, per = form.shape[1], stride(k) // 32
    add, add_text = monoid_functor(how.semiring.monoid)
    name, text = operator_functor(how.semiring.multiply)
    macros = {
        "ADD": add,
        "MUL": name,
        "U": Q.dtype.ctype,
        "A": A.dtype.ctype,
        "T": how.domain.ctype,
        "Z": how.result.ctype,
        "ISO": "0",
        **index_types(form),
        **_counting(tell),
    }
    prelude = add_text + (text if text != add_text else "")
    operands = (form.col_ptr, form.row_idx, form.values, form.number, *Q.entries.readable(), *mask)
    lengths, columns = _lengths(A, how, form), chunks_of(form).columns
    if len(columns):
        run = kernel("bitmap/products.cu", "block_sums_long", prelude=prelude, **macros)
        A.device.launch(
            run, len(columns) * per * 1024, len(columns), columns, per, k, *operands, lengths,
            words, values, tell[0], tell[3], block=1024,
        )  # fmt: skip
    run = kernel("bitmap/products.cu", "block_sums", prelude=prelude, **macros)
    A.device.launch(run, n * per * 32, n, per, k, *operands, lengths, words, values, *tell)
