"""Launching masked products: what is known of a result beforehand, and what it leaves."""

from __future__ import annotations

import functools
import weakref
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import Signal, format_bytes
from lagpu.backends.gpu.kernels.functors import reads
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.ops.spmv_launch import Job, Prepared, bind_product, by_inputs
from lagpu.backends.gpu.storage.casts import cast_array, cast_number
from lagpu.backends.gpu.storage.stats import Listing, Trail
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Product
from lagpu.dtypes import DType

__all__ = [
    "IDEMPOTENT",
    "Arguments",
    "arguments",
    "iso_result",
    "known_result",
    "memory_of",
    "multiply",
]

# Sums of equal values: with these monoids the value itself.
IDEMPOTENT = ("any", "min", "max", "lor", "land")


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
    if plan.kernel == "push_edge" or (
        plan.kernel.startswith(("push", "pull_active")) and how.semiring.monoid.name != "any"
    ):
        dtype = how.result  # made by atomics in the type of the sum
    prepared = _prepared(Job(A, u, how, plan, dtype, iso is not None))
    if u.form == "sparse":
        u.to_bitmap()
    lists = prepared.lists
    if plan.keep and u.nvals:
        lists = tuple(w.device.xp.empty(u.nvals, one.dtype) for one in lists)
        u.listing = Listing(weakref.ref(by_inputs(A, how)), *lists)
    elif plan.listing is not None:
        lists = (len(plan.listing.vertex), plan.listing.vertex, plan.listing.offset)
    given = arguments(w, u, mask, iso, dtype, prepared.counters)
    operand, mask, _, words, values, counts, signal = given
    if prepared.reset is not None:
        prepared.reset(words, values)
    prepared.launch(
        *operand, *mask, *lists, words, values, counts, signal.place, signal.serial, edges
    )
    made = VectorStore(w.device, w.counters, dtype, w.size)
    value = None if iso is None else cast_number(iso, dtype)
    made.hold_product(words, values, value, counts, signal, _trail(A, u, plan, counts))
    return made


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


def _trail(A: MatrixStore, u: VectorStore, plan: Plan, counts: Any) -> Trail:
    """Return the trail of the product's result."""
    nvals, leaving, trail = u.nvals, u.leaving, u.trail
    if leaving is None:
        leaving = A.nvals * nvals // max(u.size, 1)
    pulled = plan.direction == "pull"
    if trail is not None and trail.matrix() is A:
        visited, explored = trail.visited + nvals, trail.explored + leaving
        return Trail(trail.matrix, pulled, visited, explored, counts)
    return Trail(weakref.ref(A), pulled, nvals, leaving, counts)


def _prepared(job: Job) -> Prepared:
    """Return the launch of a product, from those that ran on this matrix before."""
    A, u, how, plan, dtype, iso = job
    key = (
        plan.kernel, plan.group, how.semiring, how.domain, how.transpose, how.flip, u.dtype,
        u.values is None, dtype, iso,
    )  # fmt: skip
    found: tuple[Any, Prepared] | None = A.kernels.get(key)
    if found is None or found[0] != (A.symmetric, A.rows is None):  # it may use them now
        made = bind_product(job)
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


def known_result(how: Product) -> Any:
    """Return the one value all sums have whatever is multiplied, or None."""
    return _operands_read(how)[2]


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


def memory_of(A: MatrixStore) -> str:
    """Return a line on what a matrix holds on the device: forms, and workspaces of kernels."""
    forms = [A] if A.rows is None else [A, A.rows]
    spaces = sum(space.nbytes for form in forms for space in form.spaces.values())
    rows = "" if A.rows is None else f", by rows {format_bytes(A.rows.nbytes)}"
    return f"by columns {format_bytes(A.nbytes)}{rows}, workspaces {format_bytes(spaces)}"
