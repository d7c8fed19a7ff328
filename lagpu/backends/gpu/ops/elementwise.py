"""Launching element-wise operations: the kernels of elementwise/."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator
from lagpu.algebra.tables import unary
from lagpu.backends.gpu.device.protocol import VARIES, Bound
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.kernels.functors import monoid_functor, operator_functor
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.backends.protocol import Applied, Descriptor
from lagpu.dtypes import DType, lookup

__all__ = [
    "accum_of",
    "apply_entries",
    "assign_value",
    "combine",
    "gather",
    "map_entries",
    "mask_words",
    "reduce_entries",
    "scatter",
    "select_entries",
    "write",
]

BLOCK = 512  # threads
MODES = {"ewise_add": 0, "ewise_mult": 1, "ewise_union": 2}


def mask_words(desc: Descriptor) -> tuple[Any, bool]:
    """Return the mask as (presence words or None, complement), as ``mask_bits`` takes them."""
    mask: VectorStore | None = desc.mask
    if mask is None:
        return None, False
    if desc.structure and mask.form == "bitmap":  # quickly: it is within each level's time
        return mask.words, desc.complement
    if not desc.structure and mask.values is None and not mask.number and mask.nvals:
        return None, not desc.complement  # all entries are zero, so none is kept
    words, values, _ = mask.readable()
    if desc.structure or values is None:
        return words, desc.complement
    true = mask.device.xp.empty(nwords(mask.size), np.uint32)
    run = kernel("elementwise/bitmap.cu", "true_bits", U=mask.dtype.ctype)
    mask.device.launch(run, mask.size, mask.size, words, values, true)
    return true, desc.complement


def accum_of(accum: BinaryOp | None, dtype: DType, result: DType) -> tuple[str, dict[str, str]]:
    """Return the accumulator's functor text and macros."""
    if accum is None:
        return "", {}
    domain, out = accum.types(dtype, result)
    name, text = operator_functor(accum)
    return text, {"ACCUM": name, "ACCUM_T": domain.ctype, "ACCUM_Z": out.ctype}


def write(w: VectorStore, desc: Descriptor, t: VectorStore, region: Any = None) -> None:
    """Write `t` into `w`, cast; with `region` only at the indices whose bit is set."""
    map_entries(w, desc, t, unary.identity, _as_it_is(t.dtype), region)


@functools.cache
def _as_it_is(dtype: DType) -> Applied:
    return Applied(dtype, dtype)


def map_entries(
    w: VectorStore,
    desc: Descriptor,
    u: VectorStore,
    op: Operator,
    how: Applied,
    region: Any = None,
) -> None:
    """``w<m> = f(u)``."""
    mask, complement = mask_words(desc)
    words, values, number = u.readable()
    w.to_writable()
    count = w.counters.take()
    types = (u.dtype, how.domain, how.result, w.dtype)
    run = _over(w.device, w.size, "map", op, types, desc.accum, 12)
    scalar, left = _bound(how)
    run(
        *own_words(u, w, words), values, number, scalar, left,
        mask, complement, desc.replace, region, w.words, w.values, count,
    )  # fmt: skip
    w.counted(count)
    w.forget()


def own_words(u: VectorStore, w: VectorStore, words: Any) -> tuple[Any]:
    """Return the words `u` has now: making `w` writable may have changed its form, if it is `w`."""
    return (w.words if u is w else words,)


def _bound(how: Applied) -> tuple[Any, bool]:
    if how.left is not None:
        return how.left, True
    return (how.domain.zero if how.right is None else how.right), False


def select_entries(
    w: VectorStore, desc: Descriptor, u: VectorStore, op: IndexUnaryOp, thunk: Any
) -> None:
    """``w<m> = u`` where `op` holds."""
    mask, complement = mask_words(desc)
    words, values, number = u.readable()
    w.to_writable()
    count = w.counters.take()
    types = (u.dtype, lookup(thunk.dtype), u.dtype, w.dtype)
    run = _over(w.device, w.size, "choose", op, types, desc.accum, 10)
    run(
        *own_words(u, w, words), values, number, thunk,
        mask, complement, desc.replace, w.words, w.values, count,
    )  # fmt: skip
    w.counted(count)
    w.forget()


@functools.lru_cache(maxsize=1024)
def _over(
    device: Any,
    size: int,
    name: str,
    op: Operator | None,
    types: tuple[DType, DType, DType, DType],
    accum: BinaryOp | None,
    varying: int,
) -> Bound:
    """Return a launch from elementwise/map.cu over all of a vector; all but the size varies.

    `types` are those of what is read, of the operator's domain and result, and of the output.
    """
    read, domain, result, written = types
    text, macros = accum_of(accum, written, result)
    if name != "fill":
        macros |= {"U": read.ctype, "T": domain.ctype}
    if name == "map":
        macros["Z"] = result.ctype
    if op is not None:
        macros["OP"], own = operator_functor(op)
        text = own + text
    run = kernel("elementwise/map.cu", name, prelude=text, W=written.ctype, **macros)
    # Each block adds what it counts to one number. Stores wait for nothing: few threads do.
    most, block = device.resident_threads, BLOCK
    if name == "fill":
        most, block = most // 2, block // 2
    made: Bound = device.bound(run, min(size, most), size, *(VARIES,) * varying, block=block)
    return made


def assign_value(w: VectorStore, desc: Descriptor, value: Any, region: Any = None) -> None:
    """``w<m>(I) = value``."""
    mask, complement = mask_words(desc)
    w.to_writable()
    count = w.counters.take()
    fill = _over(w.device, w.size, "fill", None, (w.dtype,) * 4, desc.accum, 8)
    fill(value, mask, complement, desc.replace, region, w.words, w.values, count)
    w.counted(count)
    w.forget()


def combine(
    mode: str,
    w: VectorStore,
    desc: Descriptor,
    u: VectorStore,
    v: VectorStore,
    op: BinaryOp,
    defaults: tuple[Any, Any] | None,
) -> None:
    """``w<m> = u (+) v`` or ``u (x) v``."""
    domain, _ = op.types(u.dtype, v.dtype)
    mask, complement = mask_words(desc)
    zero = domain.zero
    u_args, v_args = u.readable(), v.readable()
    w.to_writable()
    if u is w:
        u_args = u.readable()
    if v is w:
        v_args = v.readable()
    count = w.counters.take()
    run = _of_two(w.device, w.size, op, (u.dtype, v.dtype, w.dtype), desc.accum)
    run(
        MODES[mode], *u_args, *v_args, *(defaults or (zero, zero)),
        mask, complement, desc.replace, w.words, w.values, count,
    )  # fmt: skip
    w.counted(count)
    w.forget()


@functools.lru_cache(maxsize=1024)
def _of_two(
    device: Any,
    size: int,
    op: BinaryOp,
    types: tuple[DType, DType, DType],
    accum: BinaryOp | None,
) -> Bound:
    """Return the launch that combines vectors of these types into one; all but the size varies."""
    domain, result = op.types(*types[:2])
    text, macros = accum_of(accum, types[2], result)
    name, own = operator_functor(op)
    run = kernel(
        "elementwise/combine.cu",
        "combine",
        prelude=own + (text if text != own else ""),
        OP=name,
        U=types[0].ctype,
        V=types[1].ctype,
        T=domain.ctype,
        Z=result.ctype,
        W=types[2].ctype,
        **macros,
    )
    threads = min(size, device.resident_threads)
    made: Bound = device.bound(run, threads, size, *(VARIES,) * 15, block=BLOCK)
    return made


def scatter(like: VectorStore, indices: Any, u: VectorStore) -> VectorStore:
    """Return a vector as long as `like` with entry k of `u` at ``indices[k]``."""
    where, packed = u.listed()
    made = VectorStore(like.device, like.counters, u.dtype, like.size)
    target = indices[where]
    order = like.device.xp.argsort(target)
    made.set_sparse(target[order], None if packed is None else packed[order], u.iso)
    return made


def gather(u: VectorStore, indices: Any) -> VectorStore:
    """Return the vector of the entries of `u` at `indices`."""
    xp, count = u.device.xp, len(indices)
    words, values, _ = u.readable()
    made = VectorStore(u.device, u.counters, u.dtype, count)
    out_words = xp.empty(nwords(count), np.uint32)
    out = None if values is None else xp.empty(count, u.dtype.numpy)
    run = kernel("elementwise/bitmap.cu", "gather_entries", U=u.dtype.ctype)
    u.device.launch(run, count, count, indices, words, values, out_words, out)
    made.set_bitmap(out_words, out, u.iso, None)
    return made


def reduce_entries(u: VectorStore, monoid: Monoid) -> Any:
    """Return the sum of all entries as a NumPy scalar of the result type, or None."""
    if not u.nvals:
        return None
    words, values, number = u.readable()
    return reduce_values(u.device, u.size, words, values, number, u.dtype, monoid)


def reduce_values(
    device: Any, n: int, words: Any, values: Any, number: Any, dtype: DType, monoid: Monoid
) -> Any:
    """Reduce in two launches: a sum a block, then the sum of those."""
    xp = device.xp
    result = monoid.types(dtype)[1]
    add, text = monoid_functor(monoid)
    blocks = min(1024, -(-n // 256))
    partial, found = xp.empty(blocks, result.numpy), xp.zeros(blocks, bool)
    macros = {"ADD": add, "Z": result.ctype}
    run = kernel("elementwise/reduce.cu", "reduce_entries", prelude=text, U=dtype.ctype, **macros)
    device.launch(run, blocks * 256, n, words, values, number, partial, found)
    keep = xp.flatnonzero(found)
    sums = partial[keep]
    total, one = xp.empty(1, result.numpy), xp.empty(1, bool)
    again = kernel(
        "elementwise/reduce.cu", "reduce_entries", prelude=text, U=result.ctype, **macros
    )
    zero = result.numpy.type(0)
    device.launch(again, 256, len(sums), None, sums, zero, total, one)
    return device.read(total)


def apply_entries(device: Any, A: Any, op: Operator, how: Applied, dtype: DType) -> Any:
    """Return ``f`` of each entry of a matrix, in the order of its columns."""
    name, text = operator_functor(op)
    out = device.xp.empty(A.nvals, dtype.numpy)
    run = kernel(
        "elementwise/map.cu",
        "apply_values",
        prelude=text,
        OP=name,
        U=A.dtype.ctype,
        T=how.domain.ctype,
        Z=how.result.ctype,
        W=dtype.ctype,
    )
    scalar, left = _bound(how)
    rows = A.row_idx.astype(np.int64)
    device.launch(run, A.nvals, A.nvals, rows, A.columns(), A.values, A.number, scalar, left, out)
    return out
