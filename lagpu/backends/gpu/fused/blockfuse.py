"""Which loops over blocks one kernel can run, and why others cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lagpu.backends.gpu.device.protocol import has_free
from lagpu.backends.gpu.fused import search_per_source
from lagpu.backends.gpu.fused.policy import bound_of, depth_of
from lagpu.backends.gpu.fused.rowsapart import WHY_NOT, rows_apart
from lagpu.backends.gpu.fused.search_bits import BlockAssignment, BlockSearch, bytes_of
from lagpu.backends.gpu.fused.search_per_source import RowAssignment, RowSearch
from lagpu.backends.gpu.ops.spmv import iso_result
from lagpu.backends.gpu.storage.bitmap import BlockStore, fits, stride
from lagpu.backends.gpu.storage.casts import cast_number
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.forms import by_rows, why_no_rows
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Product, Statement

__all__ = ["search_of"]


def search_of(
    counters: Counters, statements: list[Statement], f: MatrixStore, times: int | None
) -> BlockSearch | RowSearch | str:
    """Return the search that these statements are, repeated until `f` is empty, or why not."""
    places = [k for k, s in enumerate(statements) if s.method == "matrix_mxm"]
    if len(places) != 1:
        return f"{len(places)} products in the body; a search of a block has one"
    place = places[0]
    product = statements[place]
    Q, A, semiring, turned = product.args
    mask = product.desc
    if product.w is not f or Q is not f or turned[0]:
        return "the product does not map the frontier to itself"
    if A.shape[0] != A.shape[1] or any(A is s.w for s in statements):
        return "the matrix is not square, or is written"
    if mask.accum is not None or not mask.replace or mask.mask is None:
        return "the product has an accumulator, or no mask with replace"
    if not (mask.structure and mask.complement):
        return "the product's mask is not the complement of a structure"
    assigned = _assignments(statements, f)
    if isinstance(assigned, str):
        return assigned
    if not any(mask.mask is a.x for a in assigned):
        return "what the mask excludes is not assigned in the body"
    before = place > 0
    if before and place != len(statements) - 1:
        return "assignments stand on both sides of the product"
    domain, result = semiring.types(f.dtype, A.dtype)
    how = Product(semiring, domain, result, not turned[1], True)
    number = _value_left(A, f, how)
    if number is None or any(a.what == search_per_source.VALUE for a in assigned):
        return _with_values(
            RowSearch(A, f, mask.mask, product.out, how, _sums(how), assigned), before, times
        )
    rows = RowSearch(A, f, mask.mask, product.out, how, False, assigned, number, before)
    return _with_one_value(counters, rows, times)


def _assignments(statements: list[Statement], f: MatrixStore) -> tuple[RowAssignment, ...] | str:
    """Return what is assigned to the frontier's entries, or why something else is."""
    found: list[RowAssignment] = []
    for s in statements:
        if s.method == "matrix_mxm":
            continue
        desc = s.desc
        if desc.mask is not f or not desc.structure or desc.complement:
            return f"{s.method} is not masked by the frontier's structure"
        if desc.accum is not None or desc.replace or s.w is f:
            return f"{s.method} has an accumulator or replace, or writes the frontier"
        what, number = search_per_source.DEPTH, None
        if s.method == "matrix_dup" and s.args[0] is f:
            what = search_per_source.VALUE
        elif s.method != "matrix_assign_scalar" or s.args[1] is not None or s.args[2] is not None:
            return f"{s.method} assigns neither the depth, the frontier nor a number to its entries"
        elif not s.is_counter:
            what, number = search_per_source.NUMBER, s.args[0]
        if any(a.x is s.w for a in found):
            return "a matrix is assigned twice"
        found.append(RowAssignment(s.w, what, number, s.out))
    return tuple(found)


def _with_values(s: RowSearch, before: bool, times: int | None) -> RowSearch | str:
    """Return the search if its rows can be searched apart, or why not."""
    A, f, how = s.A, s.f, s.how
    if not rows_apart(A, f.shape[0]):
        return f"the frontier carries values, and {WHY_NOT}"
    if not before:
        return "the frontier carries values, and the assignments stand behind the product"
    if len(s.assignments) > search_per_source.MOST:
        return f"{len(s.assignments)} assignments; at most {search_per_source.MOST} fit"
    if s.sums and f.dtype is not how.result:
        return f"sums of type {how.result} do not fit a frontier of {f.dtype}"
    if s.sums and f.dtype.numpy.itemsize < 4:
        return f"sums of type {f.dtype} have no atomic"
    lacking = why_no_rows(A) if how.transpose else ""
    if lacking:
        return f"a search needs the matrix by rows, and {lacking}"
    why = _why_no_blocks(A, f, [a.x for a in s.assignments])
    if why:
        return why
    if not has_free(A.device, search_per_source.bytes_of(s, times)):
        return "the workspace of a search of rows apart does not fit"
    return s


def _with_one_value(
    counters: Counters, rows: RowSearch, times: int | None
) -> BlockSearch | RowSearch | str:
    """Return the search with its rows apart, if that is the better way, or of bits, or why not."""
    A, f, how = rows.A, rows.f, rows.how
    lacking = why_no_rows(A)
    if lacking:
        return f"a search of a block needs the matrix by rows too, and {lacking}"
    why = _why_no_blocks(A, f, [a.x for a in rows.assignments])
    if why:
        return why
    apart, why = _apart(counters, rows, times)
    if apart:
        return replace(rows, why=why)
    found = tuple(BlockAssignment(a.x, a.number, a.out) for a in rows.assignments)
    if not has_free(A.device, bytes_of(A, f, found, times)):
        return "the workspace of a search of a block does not fit"
    forms = (A, by_rows(A)) if how.transpose else (by_rows(A), A)
    return BlockSearch(forms, A, f, rows.v, rows.f_out, rows.number, found, rows.before, why)


def _apart(counters: Counters, rows: RowSearch, times: int | None) -> tuple[bool, str]:
    """Return whether rows apart are better than bits, and why, as far as that was asked."""
    A, (k, n) = rows.A, rows.f.shape
    if not rows_apart(A, k) or len(rows.assignments) > search_per_source.MOST:
        return False, ""
    if min(n, n if times is None else times) <= bound_of(A):  # levels, at most
        return False, ""
    deep, why, _ = depth_of(counters, A, rows.how)
    if deep and not has_free(A.device, search_per_source.bytes_of(rows, times)):
        return False, "rows apart do not fit"
    return deep, why


def _sums(how: Product) -> bool:
    """Whether the products of one level add up; else the first one of a vertex stands."""
    return not how.semiring.monoid.has_any_terminal


def _value_left(A: MatrixStore, f: MatrixStore, how: Product) -> Any:
    """Return the value of each entry of the frontier after any product, or None if it varies."""
    entries = VectorStore.__new__(VectorStore)
    entries.dtype, entries.values, entries.iso = f.dtype, _values(f), _number(f)
    number = None
    for _ in range(2):
        found = iso_result(A, entries, how)
        if found is None:
            return None
        before, number = number, cast_number(found, f.dtype)
        entries.values, entries.iso = None, number
    return number if before == number else None


def _values(f: MatrixStore) -> Any:
    return f.entries.values if isinstance(f, BlockStore) else f.values


def _number(f: MatrixStore) -> Any:
    return f.entries.number if isinstance(f, BlockStore) else f.number


def _why_no_blocks(A: MatrixStore, f: MatrixStore, assigned: list[MatrixStore]) -> str:
    """Return why frontier and outputs cannot be blocks, or nothing."""
    k, n = f.shape
    if n >= 2**31 or n * stride(k) // 32 >= 2**31:
        return "the frontier has 2**31 words or more"
    if not all(
        isinstance(x, BlockStore) or fits(A.device, x.dtype, x.shape) for x in (f, *assigned)
    ):
        return "a matrix is no block, and does not fit as one"
    return ""
