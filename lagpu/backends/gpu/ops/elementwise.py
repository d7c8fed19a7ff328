"""Launching element-wise operations: the kernels of elementwise/."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator
from lagpu.algebra.tables import unary
from lagpu.backends.gpu.device.protocol import CheckedLaunch, Device
from lagpu.backends.gpu.kernels import constant
from lagpu.backends.gpu.profile import Runtime
from lagpu.backends.gpu.storage import stores
from lagpu.backends.gpu.storage.forms import no_places
from lagpu.backends.gpu.storage.stores import CscMatrix, VectorStore, nwords, specialised
from lagpu.backends.gpu.storage.workspaces import index_types
from lagpu.dtypes import DType, lookup
from lagpu.host.columns import distinct
from lagpu.operations import Apply, AssignScalar, BoundOperator, Descriptor, Ewise, Indices, Select

BLOCK = 512  # threads
#: The macros of each kernel that are types of operands, of the domain and of the result.
_TYPES = {"map": "UTZ", "select_entries": "UT", "fill": "", "combine": "UVTZ"}
#: The kinds of `Ewise`, as kernels number them.
EWISE_MODES = {
    "ewise_add": constant("kEwiseAdd"),
    "ewise_mult": constant("kEwiseMult"),
    "ewise_union": constant("kEwiseUnion"),
}


def mask_bits(desc: Descriptor) -> tuple[str, bool]:
    """Return where the bits of a mask are, and whether they are complemented.

    ``"nowhere"`` if no bits are needed: a null mask keeps all, and complemented nothing. Else
    ``"presence"``, or ``"values"`` if the entries that are not zero have to be found.
    """
    mask: VectorStore | None = desc.mask
    if mask is None:
        return "nowhere", False
    if desc.structure:
        return "presence", desc.complement
    if mask.values is not None:
        return "values", desc.complement
    if not mask.number and mask.nvals:  # all entries are zero, so none is kept
        return "nowhere", not desc.complement
    return "presence", desc.complement


def mask_words(desc: Descriptor) -> tuple[Any, bool]:
    """Return the mask as (presence words or None, complement), as ``kept_bits`` takes them."""
    mask: VectorStore | None = desc.mask
    if mask is not None and desc.structure and mask.form == "bitmap":
        return mask.words, desc.complement  # quickly: it is within each level's time
    bits, complement = mask_bits(desc)
    if mask is None or bits == "nowhere":
        return None, complement
    words, values, _ = mask.readable()
    if bits == "presence":
        return words, complement
    true = mask.device.xp.empty(nwords(mask.size), np.uint32)
    run = specialised("elementwise/bitmap.cu", "true_bits", U=mask.dtype)
    mask.device.launch(run, mask.size, mask.size, words, values, true)
    return true, complement


def write(w: VectorStore, desc: Descriptor, t: VectorStore, region: Any = None) -> None:
    """Write `t` into `w`, cast; with `region` only at the indices whose bit is set."""
    given = {"scalar": t.dtype.zero, "scalar_left": False, "region": region}
    _update(w, desc, "map", unary.identity, t.dtype, (t.dtype,) * 3, {"u_": t}, given)


def apply(_runtime: Runtime, w: VectorStore, desc: Descriptor, op: Apply) -> None:
    """``w<m> = f(u)``."""
    u, function = op.operand, op.function
    scalar, left = bound_operand(function)
    given = {"scalar": scalar, "scalar_left": left, "region": None}
    types = u.dtype, function.domain, function.result
    _update(w, desc, "map", function.op, function.result, types, {"u_": u}, given)


def select(_runtime: Runtime, w: VectorStore, desc: Descriptor, op: Select) -> None:
    """``w<m> = u`` where the operator holds."""
    u, given = op.operand, {"thunk": op.thunk}
    types = u.dtype, lookup(op.thunk.dtype)
    _update(w, desc, "select_entries", op.op, u.dtype, types, {"u_": u}, given)


def assign_value(_runtime: Runtime, w: VectorStore, desc: Descriptor, op: AssignScalar) -> None:
    """``w<m>(I) = value``."""
    region = region_of(w, op.indices)
    if w.size and region is None and desc.mask is None and desc.accum is None:
        w.become(w.set_full, None, op.value)
    else:
        _update(w, desc, "fill", None, w.dtype, (), {}, {"scalar": op.value, "region": region})


def combine(_runtime: Runtime, w: VectorStore, desc: Descriptor, op: Ewise) -> None:
    """``w<m> = u (+) v`` or ``u (x) v``."""
    u, v = op.left, op.right
    domain, result = op.op.types(u.dtype, v.dtype)
    u_default, v_default = op.defaults or (domain.zero,) * 2
    given = {"mode": EWISE_MODES[op.kind], "u_default": u_default, "v_default": v_default}
    types = u.dtype, v.dtype, domain, result
    _update(w, desc, "combine", op.op, result, types, {"u_": u, "v_": v}, given)


def _update(
    w: VectorStore, desc: Descriptor, name: str, op: Operator | None, result: DType,
    types: tuple[DType, ...], operands: dict[str, VectorStore], given: dict[str, Any],
) -> None:  # fmt: skip
    """Run a kernel over all of `w`: its operands by prefix, and the types of `_TYPES`."""
    mask, complement = mask_words(desc)
    w.to_writable()  # before it is read as an operand
    for prefix, u in operands.items():
        given |= u.arguments(prefix)
    count = w.counters.take()
    run = _launch(w.device, w.size, name, op, desc.accum, (w.dtype, result, *types))
    w.changes()
    run({
        **given, "m_words": mask, "complement": complement, "replace": desc.replace,
        "w_words": w.words, "w_values": w.values, "nvals": count,
    })  # fmt: skip
    w.counted(count)


@functools.lru_cache(maxsize=1024)
def accumulated(accum: BinaryOp | None, w: DType, z: DType) -> dict[str, Any]:
    """Return the macros of an accumulator of results of type `z` to entries of type `w`."""
    if accum is None:
        return {}
    domain, result = accum.types(w, z)
    return {"ACCUM": accum, "ACCUM_T": domain, "ACCUM_Z": result}


@functools.lru_cache(maxsize=1024)
def _launch(device: Any, size: int, name: str, op: Any, accum: Any, types: Any) -> CheckedLaunch:
    """Return a launch over all of a vector; all but the size varies."""
    file, (w, result, *read) = "combine" if name == "combine" else "map", types
    by = dict(zip(_TYPES[name], read, strict=True)) | accumulated(accum, w, result)
    run = specialised(f"elementwise/{file}.cu", name, OP=op, W=w, **by)
    # Each block adds what it counts to one number. Stores wait for nothing: few threads do.
    most, block = device.resident_threads, BLOCK
    if name == "fill":
        most, block = most // 2, block // 2
    return device.prepare(run, min(size, most), n=size, block=block)


def bound_operand(function: BoundOperator) -> tuple[Any, bool]:
    """Return the bound operand, or a zero; and whether it is the left one, as ``mapped`` asks."""
    if function.left is not None:
        return function.left, True
    return (function.domain.zero if function.right is None else function.right), False


def region_of(w: VectorStore, indices: Indices) -> Any:
    """Return the presence words of a list of indices, or None for all."""
    if indices is None or indices[0] is None:
        return None
    return region_at(w, w.device.from_host(distinct(indices[0])))


def region_at(w: VectorStore, indices: Any) -> Any:
    region = VectorStore(w.device, w.counters, w.dtype, w.size)
    region.set_sparse(indices, None, w.dtype.zero)
    region.to_bitmap()
    return region.words


def scatter(like: VectorStore, indices: Any, u: VectorStore) -> VectorStore:
    """Return a vector as long as `like` with entry k of `u` at ``indices[k]``."""
    where, packed = u.listed()
    made = VectorStore(like.device, like.counters, u.dtype, like.size)
    take = functools.partial(stores.gather, like.device)
    target = take(indices, where)
    order = like.device.order_of(target)
    made.set_sparse(take(target, order), None if packed is None else take(packed, order), u.iso)
    return made


def gather(u: VectorStore, indices: Any) -> VectorStore:
    xp, count = u.device.xp, len(indices)
    words, values, _ = u.readable()
    made = VectorStore(u.device, u.counters, u.dtype, count)
    out_words = xp.empty(nwords(count), np.uint32)
    out = None if values is None else xp.empty(count, u.dtype.numpy)
    run = specialised("elementwise/bitmap.cu", "gather_entries", U=u.dtype)
    u.device.launch(
        run, count, count=count, indices=indices, words=words, values=values,
        out_words=out_words, out=out,
    )  # fmt: skip
    made.set_bitmap(out_words, out, u.iso, None)
    return made


def reduce_entries(u: VectorStore, monoid: Monoid) -> Any:
    """Return the sum of all entries as a Python number, or None."""
    if u.known == 0:
        return None
    words, values, number = u.readable()
    return reduce_values(u.device, u.size, words, values, number, u.dtype, monoid)


def reduce_values(
    device: Device, n: int, words: Any, values: Any, number: Any, dtype: DType, monoid: Monoid
) -> Any:
    """Return the sum of entries or None: for many a sum for each thread block, then of those."""
    xp, result = device.xp, monoid.types(dtype)[1]
    if n > _ONE_BLOCK:
        blocks = min(1024, -(-n // 256))
        partial, found = xp.empty(blocks, result.numpy), xp.zeros(nwords(blocks), np.uint32)
        _reduction(device, blocks, monoid, dtype)({
            "n": n, "words": words, "values": values, "iso": number, "partial": partial,
            "found": found, "ended": None, "notification": None, "serial": 0,
        })  # fmt: skip
        n, words, values, number, dtype = blocks, found, partial, result.zero, result
    ended, notification = xp.empty(2, np.uint64), device.notification()
    _reduction(device, 1, monoid, dtype)({
        "n": n, "words": words, "values": values, "iso": number, "partial": None, "found": None,
        "ended": ended, "notification": notification.memory, "serial": notification.serial,
    })  # fmt: skip
    bits, some = device.wait_for(notification, ended)
    return np.array([bits], np.uint64).view(result.numpy)[0].item() if some else None


_ONE_BLOCK = 4096  # entries that one thread block sums


@functools.lru_cache(maxsize=1024)
def _reduction(device: Any, blocks: int, monoid: Monoid, dtype: DType) -> CheckedLaunch:
    result = monoid.types(dtype)[1]
    run = specialised("elementwise/reduce.cu", "reduce_entries", ADD=monoid, Z=result, U=dtype)
    return device.prepare(run, blocks * 256)


def reduce_matrix(A: CscMatrix, monoid: Monoid) -> Any:
    """Return the sum of all entries as `reduce_entries` does; it is kept with the matrix."""
    if not A.nvals:
        return None
    what = None, A.values, A.number, A.dtype, monoid
    reduce = functools.partial(reduce_values, A.device, A.nvals, *what)
    return reduce() if monoid.registered else A.fact(f"sum by {monoid!r}", reduce)


def apply_entries(A: CscMatrix, function: BoundOperator, dtype: DType) -> Any:
    """Return ``f`` of each entry of a matrix, cast to `dtype`, in the order of its columns."""
    scalar, left = bound_operand(function)
    out = A.device.xp.empty(A.nvals, dtype.numpy)
    run = specialised(
        "elementwise/map.cu", "apply_values", OP=function.op, U=A.dtype, T=function.domain,
        Z=function.result, W=dtype, **index_types(A),
    )  # fmt: skip
    A.device.launch(
        run, A.nvals, **A.arguments(), values=A.values, iso=A.number, scalar=scalar,
        scalar_left=left, out=out,
    )  # fmt: skip
    return out


def kept_places(A: CscMatrix, op: IndexUnaryOp, thunk: Any) -> Any:
    """Return bits of the entries that an operator keeps, as `take` wants them."""
    kept, types = no_places(A.device, A.nvals), {"U": A.dtype, "T": lookup(thunk.dtype)}
    run = specialised("elementwise/take.cu", "select_places", OP=op, **types, **index_types(A))
    given = {"values": A.values, "iso": A.number, "thunk": thunk, "words": kept}
    A.device.launch(run, A.nvals, **A.arguments(), **given)
    return kept
