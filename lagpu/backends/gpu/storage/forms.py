"""Stored forms of a matrix on a device: CSC, CSR, lists of columns, and where they are."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.gpu.device.protocol import Device, format_bytes, has_free
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.storage import stores
from lagpu.backends.gpu.storage.stores import Counters, CscMatrix, VectorStore, specialised
from lagpu.backends.gpu.storage.workspaces import index_ctype, index_types
from lagpu.dtypes import DType, index_kind, lookup
from lagpu.errors import InvalidValue
from lagpu.host.columns import Entries, least_bytes, shares_for, sorted_columns

_BLOCK = 1 << 26  # entries whose columns are listed at once
_BYTES_IN_BLOCK = 40  # of such an entry
DIAGONAL = "diagonal"  #: The fact of a matrix whose entries all lie on its diagonal.

Array = Any


def empty(device: Device, dtype: DType, shape: tuple[int, int]) -> CscMatrix:
    device.require(4 * shape[1], "Matrix")
    none, ptr = device.xp.empty(0, np.int32), device.xp.zeros(shape[1] + 1, np.int32)
    return CscMatrix(device, dtype, shape, ptr, none, None, dtype.numpy.type(0))


def from_csc(
    device: Device, col_ptr: Any, row_idx: Any, values: Any, dtype: DType, shape: tuple[int, int]
) -> CscMatrix:
    """Return a matrix of valid, sorted CSC arrays; `values` is an array or one scalar."""
    count = len(row_idx)
    iso = values if np.ndim(values) == 0 else _only_value(device, values)
    width = np.dtype(index_kind(shape[0])).itemsize + (dtype.numpy.itemsize if iso is None else 0)
    device.require(count * width + len(col_ptr) * 8, "Matrix")
    ptr = on_device(device, _narrow(device, col_ptr, count))
    idx = on_device(device, _narrow(device, row_idx, shape[0]))
    packed = None if iso is not None else on_device(device, values)
    return CscMatrix(device, dtype, shape, ptr, idx, packed, iso)


def _only_value(device: Device, values: Any) -> Any:
    """Return the value that all have, or None if they differ or there are none."""
    if not len(values):
        return None
    first = values[:1]
    if isinstance(values, device.xp.ndarray):
        packed = device.xp.ascontiguousarray(values)
        is_only = _are_same(device, packed[1:], packed[:-1])
    else:
        is_only = bool((stores.bits(values) == stores.bits(first)).all())  # -0.0 is not 0.0
    return first.dtype.type(first[0].item()) if is_only else None


def _narrow(device: Device, indices: Any, largest: int) -> Any:
    """Return host indices in the type they are stored in, before they are copied."""
    if isinstance(indices, device.xp.ndarray) or not isinstance(indices, np.ndarray):
        return indices
    return indices.astype(index_kind(largest), copy=False)


def diagonal(A: CscMatrix, k: int, counters: Counters, rows: Array | None = None) -> VectorStore:
    """Return diagonal `k`, or the entries of some rows, as a vector; see `Backend.diagonal`."""
    device, (m, n) = A.device, A.shape
    first, size = (0, n) if rows is not None else (max(k, 0), min(m + min(k, 0), n - max(k, 0)))
    words = no_places(device, A.nvals)
    run = kernel("elementwise/take.cu", "diagonal_places", **index_types(A))
    wanted = None if rows is None else on_device(device, rows)
    device.launch(run, A.nvals, **A.arguments(), k=k, rows=wanted, words=words)
    found = stores.list_bits(device, words)[0]
    values = None if A.values is None else stores.gather(device, A.values, found)
    where = stores.bounds(device, A.col_ptr[1:], found, upto=True)
    v = VectorStore(device, counters, A.dtype, max(size, 0))
    v.set_sparse(stores.shifted(device, where, -first), values, A.iso)
    return v


def entry(A: CscMatrix, i: int, j: int) -> Any:
    first, last = A.column_range(j)
    at = first + A.device.read(stores.bounds(A.device, A.row_idx[first:last], range(i, i + 1)))
    if at == last or int(A.row_idx[at]) != i:
        return None
    return A.number.item() if A.values is None else A.device.read(A.values[at : at + 1])


def from_coo(
    device: Device, rows: Array, cols: Array, values: Any,
    dtype: DType, shape: tuple[int, int], dup_op: BinaryOp | None,
) -> CscMatrix:  # fmt: skip
    # Keys, their order, the sorted copies, and the pointer twice (docs/design/memory.md).
    width = 58 + (2 * dtype.numpy.itemsize if np.ndim(values) else 0)
    device.require(len(rows) * width + 17 * shape[1], "from_coo")
    rows, cols = (stores.as_type(device, on_device(device, x), np.int64) for x in (rows, cols))
    order = _by_column(device, rows, cols, shape)
    take = functools.partial(stores.gather, device)
    iso = values if np.ndim(values) == 0 else None
    packed = None if iso is not None else take(on_device(device, values), order)
    rows, cols = take(rows, order), take(cols, order)
    del order
    starts = stores.run_starts(device, cols, rows)
    if len(starts) < len(rows):
        if dup_op is None and packed is not None:
            raise InvalidValue("from_coo: an entry is given twice. Give dup_op=, e.g. binary.plus.")
        if dup_op is not None:
            if packed is None:
                packed, iso = stores.filled(device, len(rows), dtype, iso), None
            packed = _merge(device, packed, starts, dup_op, dtype)
        rows, cols = take(rows, starts), take(cols, starts)
    ptr = stores.pointer(device, cols, shape[1])
    return CscMatrix(device, dtype, shape, ptr, rows, packed, iso)


def _by_column(device: Device, rows: Array, cols: Array, shape: tuple[int, int]) -> Array:
    """Return the stable order by column and then by row."""
    if shape[0] * shape[1] < 2**63:
        return device.order_of(stores.join_positions(device, shape[0], cols, rows))
    order = device.order_of(rows)
    return stores.gather(device, order, device.order_of(stores.gather(device, cols, order)))


def at_positions(
    device: Device, dtype: DType, shape: tuple[int, int], where: Array, values: Any, iso: Any
) -> CscMatrix:
    """Return the matrix with entries at rising positions, which are numbered column by column."""
    cols, rows = stores.split_positions(device, where, max(shape[0], 1))
    ptr = stores.pointer(device, cols, shape[1])
    return CscMatrix(device, dtype, shape, ptr, rows, values, iso)


def _merge(device: Device, values: Array, starts: Array, op: BinaryOp, dtype: DType) -> Array:
    """Combine the runs of values that begin at `starts`, each from left to right."""
    domain, result = op.types(dtype)
    types = {"OP": op, "U": lookup(values.dtype), "T": domain, "Z": result}
    run = specialised("elementwise/reduce.cu", "fold_runs", **types)
    out = device.xp.empty(len(starts), values.dtype)
    device.launch(run, len(starts), len(starts), len(values), starts, values, out)
    return out


def on_device(device: Device, array: Any) -> Array:
    """Return an array on the device; one that is there already does not move."""
    if isinstance(array, device.xp.ndarray):
        return device.xp.ascontiguousarray(array)  # a step of a longer one is copied
    if hasattr(array, "get"):  # a CuPy array bound for the sim device
        array = array.get()
    return device.from_host(np.asarray(array))


def own_on_device(device: Device, array: Any, kind: Any) -> Array:
    """Return an array on the device that nothing else holds: vectors are written in place."""
    made: Array = on_device(device, array).astype(kind, copy=False)
    return device.copy_of(made) if made is array else made


def transpose(
    A: CscMatrix, what: str = "transpose",
    remedy: str = "Use A.T in a product instead of A.T.new().", rows_rise: bool = True,
) -> CscMatrix:  # fmt: skip
    """Return ``A'``; `rows_rise` says whether rows rise in each column of `A`."""
    device, xp, (nrows, ncols) = A.device, A.device.xp, A.shape
    device.require(_bytes_beside(A), what, remedy)
    shares = _shares(A)
    if shares:
        return _transposed_by_shares(A, shares)
    rises = ncols == 1 and rows_rise  # Columns rise in A, so they rise in each row.
    order = stores.count_up(device, A.nvals, np.int64) if rises else device.order_of(A.row_idx)
    ptr = xp.empty(nrows + 1, A.col_ptr.dtype)
    cols = xp.empty(A.nvals, index_kind(ncols))
    values = None if A.values is None else xp.empty(A.nvals, A.values.dtype)
    types = {"OUT": index_ctype(cols), "U": None if values is None else A.dtype}
    device.launch(
        specialised("elementwise/forms.cu", "transposed", **index_types(A), **types),
        max(A.nvals, nrows + 1), **A.arguments(), nrows=nrows, values=A.values, order=order,
        out_ptr=ptr, out_idx=cols, out_values=values,
    )  # fmt: skip
    return CscMatrix(device, A.dtype, (ncols, nrows), ptr, cols, values, A.iso)


def _transposed_by_shares(A: CscMatrix, shares: int) -> CscMatrix:
    """Return ``A'`` of a matrix of one value, shares of about as many entries one by one."""
    device, xp, (nrows, ncols) = A.device, A.device.xp, A.shape

    def entries() -> Iterator[Entries]:
        for begin in range(0, A.nvals, _BLOCK):
            end = min(begin + _BLOCK, A.nvals)
            yield A.columns(begin, end), A.row_idx[begin:end], True

    before = xp.zeros(nrows, np.int64)  # entries of each row, then those up to it
    for begin in range(0, A.nvals, _BLOCK):
        before += xp.bincount(A.row_idx[begin : begin + _BLOCK], minlength=nrows)
    xp.cumsum(before, out=before)
    wanted = xp.asarray([A.nvals * s // shares for s in range(1, shares)], np.int64)
    ends = [0, *device.to_host(xp.searchsorted(before, wanted) + 1).tolist(), nrows]
    del before
    ptr, cols = sorted_columns(xp, entries, ends)
    made = ptr.astype(A.col_ptr.dtype), cols.astype(index_kind(ncols), copy=False)
    return CscMatrix(device, A.dtype, (ncols, nrows), *made, None, A.iso)


def degree_behind_edges(successors: CscMatrix, predecessors: CscMatrix) -> float:
    """Return the mean out-degree of the vertices that edges lead to, over all edges."""
    device, n = successors.device, successors.shape[1]
    if not successors.nvals:
        return 0.0
    total = device.xp.zeros(1, np.uint64)
    run = kernel("elementwise/forms.cu", "count_walks", PTR=index_ctype(successors.col_ptr))
    device.launch(run, n, n, predecessors.col_ptr, successors.col_ptr, total)
    return int(device.read(total)) / successors.nvals


def is_equal(A: CscMatrix, B: CscMatrix) -> bool:
    """Whether two matrices of one shape have the same entries with equal values."""
    return has_same_pattern(A, B) and stores.have_equal_values((A, A.values), (B, B.values))


def has_same_pattern(A: CscMatrix, B: CscMatrix) -> bool:
    """Whether two matrices of one shape have entries at the same positions."""
    if A.nvals != B.nvals:
        return False
    if A.row_idx is B.row_idx and A.col_ptr is B.col_ptr:
        return True
    return _are_same(A.device, A.col_ptr, B.col_ptr) and _are_same(A.device, A.row_idx, B.row_idx)


def has_one_each(A: CscMatrix) -> bool:
    """Whether each column has one entry; the answer is remembered."""
    if A.nvals != A.shape[1]:
        return False
    device, ptr = A.device, A.col_ptr
    each = lambda: _are_same(device, ptr, stores.count_up(device, len(ptr), ptr.dtype))  # noqa: E731
    return bool(A.fact("one each", each))


def _are_same(device: Device, x: Array, y: Array) -> bool:
    """Whether two arrays of one length have the same bits."""
    y = stores.as_type(device, y, x.dtype)  # indices may be wider than they need be
    return stores.are_equal(device, stores.bits(x), stores.bits(y))


def is_symmetric(A: CscMatrix) -> bool:
    """Whether ``A' == A``, bit for bit; the answer is remembered."""
    if A.symmetric is None and A.shape[0] != A.shape[1]:
        A.symmetric = False
    if A.symmetric is None:
        A.symmetric = _is_mirrored(A, None if A.values is None else stores.bits(A.values))
    return A.symmetric


def _is_mirrored(A: CscMatrix, values: Array | None) -> bool:
    """Whether each entry below the diagonal has an equal mirror; those above are counted."""
    value = None if values is None else lookup(values.dtype)
    run = specialised("elementwise/forms.cu", "find_unmirrored", U=value, **index_types(A))
    unmirrored = A.device.xp.zeros(2, np.uint64)
    A.device.launch(run, A.nvals, **A.arguments(), values=values, unmirrored=unmirrored)
    return not A.device.to_host(unmirrored).any()


def equals_transpose(A: CscMatrix) -> bool:
    """Whether ``A' == A`` as numbers: NaN equals nothing, and -0.0 equals 0.0."""
    same = is_symmetric(A)
    if not A.dtype.is_float or A.shape[0] != A.shape[1]:
        return same
    values = A.values
    if values is None:
        return same and (A.nvals == 0 or bool(A.iso == A.iso))

    def compare() -> bool:
        has_nan = not stores.are_equal(A.device, values, values)
        return not has_nan and (same or _is_mirrored(A, values))

    return bool(A.fact("equals its transpose", compare))


def csr_of(A: CscMatrix) -> CscMatrix:
    """Return ``A'``, made at the first call and kept; `A` itself if it is symmetric."""
    if is_symmetric(A):
        return A
    if A.csr is None:
        A.csr = transpose(A, "rows of the matrix", "")
    return A.csr


def rows_of(A: CscMatrix) -> CscMatrix:
    """Return ``A'``, kept beside `A` unless its author forbade that."""
    return csr_of(A) if A.may_keep_csr else transpose(A)


def may_make_csr(A: CscMatrix) -> bool:
    """Whether the second form of a matrix may be made: it is allowed, and there is room."""
    return A.may_keep_csr and has_free(A.device, A.nbytes + _bytes_beside(A))


def why_no_second_form(A: CscMatrix) -> str:
    if not A.may_keep_csr:
        return "its orientation is csc"
    need, free = A.nbytes + _bytes_beside(A), A.device.free_bytes()
    return f"making it needs {format_bytes(need)}, {format_bytes(free)} free"


def why_no_csr(A: CscMatrix) -> str:
    """Return why a matrix cannot have its form by rows, or an empty string."""
    there = A.symmetric or A.csr is not None or may_make_csr(A) or is_symmetric(A)
    return "" if there else why_no_second_form(A)


def _bytes_beside(A: CscMatrix) -> int:
    """Return the fewest bytes that sorting the entries by row takes, beside the result."""
    at_once, beside = _bytes_to_sort(A)
    return at_once if beside is None else min(at_once, least_bytes(A.nvals) + beside)


def _shares(A: CscMatrix) -> int:
    """Return in how many shares entries are sorted by row; 0: all at once, which is quicker."""
    at_once, beside = _bytes_to_sort(A)
    if beside is None or has_free(A.device, A.nbytes + at_once):
        return 0
    return shares_for(A.nvals, A.device.free_bytes() - A.nbytes - beside)


def _bytes_to_sort(A: CscMatrix) -> tuple[int, int | None]:
    """Return the bytes to sort entries at once, and those beside shares, None without shares."""
    beside = 24 * A.shape[0] + _BYTES_IN_BLOCK * min(A.nvals, _BLOCK)
    has_shares = A.values is None and max(A.shape) < 2**31  # a pair of indices fits 64 bits
    return 32 * A.nvals + 16 * A.shape[0], beside if has_shares else None


def no_places(device: Device, nvals: int) -> Array:
    """Return room for a bit for each of so many entries, in the order of their columns."""
    return device.xp.empty(-(-nvals // 32), np.uint32)


def take(A: CscMatrix, kept: Array) -> CscMatrix:
    """Return the entries whose bits are set; index arrays are shared if these are all."""
    device, xp = A.device, A.device.xp
    if not A.nvals:
        return A.with_values(A.dtype, A.values, A.iso)
    counts = xp.empty(len(kept), np.int64)
    device.launch(kernel("elementwise/take.cu", "count_places"), len(kept), len(kept), kept, counts)
    upto = device.running_sum(counts)
    count = int(device.read(upto[-1:]))
    if count == A.nvals:
        return A.with_values(A.dtype, A.values, A.iso)
    ptr, idx = xp.empty_like(A.col_ptr), xp.empty(count, A.row_idx.dtype)
    values = None if A.values is None else xp.empty(count, A.values.dtype)
    value = None if values is None else A.dtype
    device.launch(
        specialised("elementwise/take.cu", "take_entries", U=value, **index_types(A)),
        max(A.nvals, A.shape[1] + 1), **A.arguments(), words=kept, upto=upto, values=A.values,
        out_ptr=ptr, out_idx=idx, out_values=values,
    )  # fmt: skip
    return CscMatrix(device, A.dtype, A.shape, ptr, idx, values, A.iso)


def take_true(A: CscMatrix) -> CscMatrix:
    """Return the entries whose value is true, as a mask by value keeps them."""
    if A.values is None:
        return A if A.nvals == 0 or A.number else empty(A.device, A.dtype, A.shape)
    kept = no_places(A.device, A.nvals)
    run = specialised("elementwise/bitmap.cu", "true_bits", U=A.dtype)
    A.device.launch(run, A.nvals, A.nvals, None, A.values, kept)
    return take(A, kept)
