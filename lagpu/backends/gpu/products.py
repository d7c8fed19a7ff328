"""Launching masked products: storage and macros for the kernels of the spmv files."""

from __future__ import annotations

import functools
import weakref
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.base import Product
from lagpu.backends.gpu.build import by_rows, is_symmetric
from lagpu.backends.gpu.casts import cast_array, cast_number
from lagpu.backends.gpu.device import VARIES, Bound, Signal, format_bytes
from lagpu.backends.gpu.functors import monoid_functor, operator_functor, reads
from lagpu.backends.gpu.kernels import Kernel, kernel
from lagpu.backends.gpu.leavings import Listing, Trail
from lagpu.backends.gpu.plan import Plan
from lagpu.backends.gpu.storage import MatrixStore, VectorStore, nwords
from lagpu.backends.gpu.workspaces import index_types, pull_space, push_space
from lagpu.dtypes import DType
from lagpu.errors import NotSupported

__all__ = [
    "COUNTERS",
    "IDEMPOTENT",
    "Arguments",
    "Prepared",
    "arguments",
    "by_inputs",
    "by_outputs",
    "iso_result",
    "memory_of",
    "multiply",
    "prepare",
    "start",
]

# Sums of equal values: with these monoids the value itself.
IDEMPOTENT = ("any", "min", "max", "lor", "land")


class Prepared(NamedTuple):
    """All of a product that serves the next one like it.

    Attributes
    ----------
    launch : Bound
        Takes the vector as (words, values, number), the mask as (words, complement), then lists if
        the kernel has such, then words and values of the result, counters, the place and the
        serial of a signal, and the edge counter.
    dtype : DType
        Type of the values that it writes.
    counters : int
        How many it needs.
    reset : Bound or None
        Clears words and values of the result before.
    lists : tuple
        The lists of the matrix' workspace.
    """

    launch: Bound
    dtype: DType
    counters: int = 3
    reset: Bound | None = None
    lists: tuple[Any, ...] = ()


class Arguments(NamedTuple):
    """What one product takes beside what was prepared; none of it depends on its direction.

    Attributes
    ----------
    operand : tuple
        The vector as (words, values, number).
    mask : tuple
        As in `multiply`.
    iso : object or None
        The one value of all sums.
    words, values : array
        Of the result; without values if there is one for all.
    counts, signal : array, Signal
        Where the kernel counts, and tells.
    """

    operand: tuple[Any, Any, Any]
    mask: tuple[Any, bool]
    iso: Any
    words: Any
    values: Any
    counts: Any
    signal: Signal


class Job(NamedTuple):
    """What a product's launch is specialised by; see `multiply`."""

    A: MatrixStore
    u: VectorStore
    how: Product
    plan: Plan
    dtype: DType
    iso: bool


def multiply(
    w: VectorStore,
    A: MatrixStore,
    u: VectorStore,
    how: Product,
    plan: Plan,
    mask: tuple[Any, bool],
    dtype: DType,
    edges: Any,
) -> VectorStore:
    """Return ``A (+.x) u`` or ``A' (+.x) u`` where the mask keeps, as a new store.

    Parameters
    ----------
    w : VectorStore
        The output, whose spare buffers are used.
    A, u, how, plan
        The product and its plan.
    mask : (words or None, complement)
        Presence words of the mask.
    dtype : DType
        Type wanted for the values; sums made by atomics have the type `how.result` instead.
    edges : array or None
        Counter of the matrix entries looked at.

    Raises
    ------
    NotSupported
        If the kernel's lists cannot hold the vector's indices.
    """
    iso = iso_result(A, u, how)
    prepared = prepare(A, u, how, plan, dtype, iso)
    if u.form == "sparse":
        u.to_bitmap()
    lists = prepared.lists
    if plan.keep and u.nvals:
        lists = tuple(w.device.xp.empty(u.nvals, one.dtype) for one in lists)
        u.listing = Listing(weakref.ref(by_inputs(A, how)), *lists)
    elif plan.listing is not None:
        lists = (len(plan.listing.vertex), plan.listing.vertex, plan.listing.offset)
    given = arguments(w, u, mask, iso, prepared.dtype, prepared.counters)
    return start(w, A, u, plan, prepared, given, edges, lists)


def prepare(
    A: MatrixStore, u: VectorStore, how: Product, plan: Plan, dtype: DType, iso: Any
) -> Prepared:
    """Return what starts a product; see `multiply`. `iso` is the one value of all sums, or None."""
    if plan.kernel == "push_edge" or (
        plan.kernel.startswith(("push", "pull_active")) and how.semiring.monoid.name != "any"
    ):
        dtype = how.result  # made by atomics in the type of the sum
    return _prepared(Job(A, u, how, plan, dtype, iso is not None))


def arguments(
    w: VectorStore,
    u: VectorStore,
    mask: tuple[Any, bool],
    iso: Any,
    dtype: DType,
    counters: int,
) -> Arguments:
    """Return what a product for `w` of `u`, which has presence words, takes; see `multiply`."""
    operand = (u.words, None, False) if iso is not None else (u.words, u.values, u.number)
    words = w.spare_words()
    values = None if iso is not None else w.spare_values(dtype)
    counts, signal = w.counters.take(counters), w.device.signal()
    return Arguments(operand, mask, iso, words, values, counts, signal)


def start(
    w: VectorStore,
    A: MatrixStore,
    u: VectorStore,
    plan: Plan,
    prepared: Prepared,
    given: Arguments,
    edges: Any,
    lists: tuple[Any, ...] = (),
) -> VectorStore:
    """Launch a product; see `multiply`."""
    operand, mask, iso, words, values, counts, signal = given
    if prepared.reset is not None:
        prepared.reset(words, values)
    prepared.launch(
        *operand, *mask, *lists, words, values, counts, signal.place, signal.serial, edges
    )
    dtype, trail = prepared.dtype, _trail(A, u, plan)
    value = None if iso is None else cast_number(iso, dtype)
    return VectorStore.of_product(w, dtype, words, values, value, counts, signal, trail)


def _trail(A: MatrixStore, u: VectorStore, plan: Plan) -> Trail:
    """Return the trail of the product's result."""
    nvals, leaving, trail = u.nvals, u.leaving, u.trail
    if leaving is None:
        leaving = A.nvals * nvals // max(u.size, 1)
    pulled = plan.direction == "pull"
    if trail is not None and trail.matrix() is A:
        return Trail(trail.matrix, pulled, trail.visited + nvals, trail.explored + leaving)
    return Trail(weakref.ref(A), pulled, nvals, leaving)


def _prepared(job: Job) -> Prepared:
    """Return the launch of a product, from those that ran on this matrix before."""
    A, u, how, plan, dtype, iso = job
    key = (
        plan.kernel, plan.group, how.semiring, how.domain, how.transpose, how.flip, u.dtype,
        u.values is None, dtype, iso,
    )  # fmt: skip
    found: tuple[Any, Prepared] | None = A.kernels.get(key)
    if found is None or found[0] != (A.symmetric, A.rows is None):  # it may use them now
        made = _LAUNCH[plan.kernel](job)
        found = A.kernels[key] = (A.symmetric, A.rows is None), made
    return found[1]


def iso_result(A: MatrixStore, u: VectorStore, how: Product) -> Any:
    """Return the one value all sums have, or None if they may differ."""
    reads_left, reads_right, known = _operands_read(how)
    if reads_left or reads_right:
        left, right = (u, A) if how.flip else (A, u)
        if (reads_left and left.values is not None) or (reads_right and right.values is not None):
            return None
        return _one_product(how, left.number, right.number)
    return known


@functools.lru_cache(maxsize=256)
def _operands_read(how: Product) -> tuple[bool, bool, Any]:
    """Return whether an iso result depends on the operands, else that result or None."""
    multiply = how.semiring.multiply
    if multiply.positional or how.semiring.monoid.name not in IDEMPOTENT:
        return False, False, None
    read = reads(multiply)
    return *read, None if any(read) else _one_product(how, None, None)


def _one_product(how: Product, x: Any, y: Any) -> Any:
    """Return ``x (x) y``; None stands for an operand that is not looked at."""
    domain = how.domain
    pair = (np.zeros(1, domain.numpy) if z is None else np.array([z]) for z in (x, y))
    left, right = (cast_array(np, z, domain) for z in pair)
    return cast_array(np, np.asarray(how.semiring.multiply.numpy(left, right)), how.result)[0]


def _kernel(
    file: str, name: str, A: MatrixStore, u: VectorStore, how: Product, iso: bool, **more: str
) -> Kernel:
    """Return the kernel for these types; what it does not read does not specialise it."""
    indices = index_types(A)
    if iso:
        return kernel(file, name, **indices, **{k: v for k, v in more.items() if k != "W"})
    add, add_text = monoid_functor(how.semiring.monoid)
    mul, mul_text = operator_functor(how.semiring.multiply)
    return kernel(
        file,
        name,
        prelude=add_text + mul_text,
        ADD=add,
        MUL=mul,
        U=u.dtype.ctype,
        A=A.dtype.ctype,
        T=how.domain.ctype,
        Z=how.result.ctype,
        FLIP=str(int(how.flip)),
        ISO="0",
        **indices,
        **more,
    )


def _matrix(A: MatrixStore, iso: bool) -> tuple[Any, Any]:
    """Return (values, iso) of the matrix for a kernel."""
    return (None, False) if iso else (A.values, A.number)


def by_outputs(A: MatrixStore, how: Product) -> MatrixStore:
    """Return the form whose columns are the output's entries, made and kept if need be."""
    return A if how.transpose else by_rows(A)


def by_inputs(A: MatrixStore, how: Product) -> MatrixStore:
    """Return the form whose columns are the input's entries, made and kept if need be."""
    return by_rows(A) if how.transpose else A


def _lengths(A: MatrixStore, how: Product, form: MatrixStore) -> Any:
    """Return where to read the edges that leave an output, if it can be the next input."""
    if A.shape[0] != A.shape[1]:
        return None
    rows = A if not how.transpose or is_symmetric(A) else A.rows
    if rows is None or rows.col_ptr.dtype != form.col_ptr.dtype:
        return None
    return rows.col_ptr


# What each run gives: the vector, the mask, and behind what stands the result and its counts.
_IN, _OUT = (VARIES,) * 5, (VARIES,) * 6


def _pull(job: Job) -> Prepared:
    """Bind ``pull_scalar``, ``pull_warp`` or ``pull_bitmap``."""
    A, u, how, plan, dtype, iso = job
    form = by_outputs(A, how)
    n = form.shape[1]
    name, threads = "spmv_csc_scalar", nwords(n) * 32
    extra: tuple[Any, ...] = ()
    if plan.kernel == "pull_warp":
        name, threads = "spmv_csc_warp", nwords(n) * 256
    elif plan.kernel == "pull_bitmap":
        other = A if form is not A else A.rows if not is_symmetric(A) else A
        space = pull_space(form, other)
        name, extra = "spmv_csc_bitmap", (space.empty, _hint(form, how, iso, space.hint))
    run = _kernel("spmv.cu", name, form, u, how, iso, W=dtype.ctype)
    launch = A.device.bound(
        run, threads, n, form.col_ptr, form.row_idx, *_matrix(form, iso), *_IN, *extra,
        _lengths(A, how, form), *_OUT,
    )  # fmt: skip
    return Prepared(launch, dtype)


def _hint(form: MatrixStore, how: Product, iso: bool, hint: Any) -> Any:
    """Return the hint if one product, whose matrix entry need not be known, is a whole sum."""
    if iso:
        return hint
    reads_matrix = reads(how.semiring.multiply)[1 if how.flip else 0]
    if how.semiring.monoid.name != "any" or (reads_matrix and form.values is not None):
        return None
    return hint


def _push_edge(job: Job) -> Prepared:
    """Bind ``push_edge``, and what clears its result before."""
    A, u, how, _, _, iso = job
    more = {"TRANSPOSE": str(int(how.transpose))}
    bound, size = A.device.bound, A.shape[1 if how.transpose else 0]
    reset = _kernel("spmv_edge.cu", "spmv_edge_reset", A, u, how, iso, **more)
    run = _kernel("spmv_edge.cu", "spmv_csc_edge", A, u, how, iso, **more)
    launch = bound(
        run, A.nvals, A.shape[0], A.shape[1], A.nvals, A.col_ptr, A.row_idx, *_matrix(A, iso),
        *_IN, _lengths(A, how, A), *_OUT,
    )  # fmt: skip
    return Prepared(launch, job.dtype, reset=bound(reset, size, size, VARIES, VARIES))


def _listed(job: Job) -> Prepared:
    """Bind ``push_queue``, ``push_active``, ``push_virtual`` or ``pull_active``."""
    A, u, how, plan, dtype, iso = job
    pulls = plan.kernel == "pull_active"
    form = by_outputs(A, how) if pulls else by_inputs(A, how)
    if form.shape[1] >= 2**31:
        raise NotSupported(f"{plan.kernel}: lists at most 2**31 columns. Use push_edge.")
    space = push_space(form)
    stand: tuple[Any, ...] = (space.vertex, space.start, space.degree, space.chunks)
    lists: tuple[Any, ...] = ()
    more = {"W": dtype.ctype}
    if plan.kernel in ("push_active", "pull_active"):
        lists = (-1,) * pulls + (space.vertex, space.start)
        stand = (space.shares,) + (VARIES,) * len(lists)
    elif plan.kernel == "push_virtual":
        stand = (space.groups(plan.group),)
        more["GROUP"] = str(plan.group)
    run = _kernel("spmv_push.cu", f"spmv_{plan.kernel}", form, u, how, iso, **more)
    blocks = A.device.max_cooperative_blocks(run)
    launch = A.device.bound(
        run, blocks * 256, *(form.shape[1:] if pulls else form.shape[::-1]), form.col_ptr,
        form.row_idx, *_matrix(form, iso), *_IN, _lengths(A, how, form), *stand, *_OUT,
        space.barrier, cooperative=True,
    )  # fmt: skip
    return Prepared(launch, dtype, counters=COUNTERS, lists=lists)


def memory_of(A: MatrixStore) -> str:
    """Return a line on what a matrix holds on the device: forms, and workspaces of kernels."""
    forms = [A] if A.rows is None else [A, A.rows]
    spaces = sum(space.nbytes for form in forms for space in form.spaces.values())
    rows = "" if A.rows is None else f", by rows {format_bytes(A.rows.nbytes)}"
    return f"by columns {format_bytes(A.nbytes)}{rows}, workspaces {format_bytes(spaces)}"


LINE = 16  # as in spmv_push.cu
COUNTERS = 3 * LINE  # the most that a product takes
_LAUNCH = {
    "pull_scalar": _pull,
    "pull_warp": _pull,
    "pull_bitmap": _pull,
    "push_edge": _push_edge,
    "push_queue": _listed,
    "push_active": _listed,
    "push_virtual": _listed,
    "pull_active": _listed,
}
