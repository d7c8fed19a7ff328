"""Sparse matrices: operations on one pattern, products, and products at the entries of a mask."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp, Monoid
from lagpu.algebra.tables import monoid
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.ops import elementwise
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.profile import Runtime
from lagpu.backends.gpu.storage import forms, stores
from lagpu.backends.gpu.storage.bitmap import MatrixHandle
from lagpu.backends.gpu.storage.stores import Counters, CscMatrix, VectorStore, specialised
from lagpu.backends.gpu.storage.workspaces import index_ctype, index_types, lengths_of
from lagpu.dtypes import DType
from lagpu.errors import NotSupported
from lagpu.operations import Descriptor, Ewise, Kronecker, Multiply, Product

Array = Any
Runs = tuple[Array, Array, Array, Array]
Algebra = tuple[Monoid, BinaryOp, DType, DType]
Region = tuple[Array | None, Array | None]  #: Rows and columns, each None for all.
_DOTS = dict.fromkeys(("a_idx", "b_idx", "a_values", "b_values"), ("edges", 0.5))
#: The part of its arrays that each kernel moves, by the kernel's name (docs/design/trace.md).
TRAFFIC: dict[str, dict[str, tuple[str, float]]] = {
    "sum_products": dict.fromkeys(("a_values", "b_values", "b_rows"), ("edges", 1.0)),
    "dot_products": _DOTS,
    "table_products": _DOTS,
}
_FEW = 1 << 16  # entries of a pattern whose positions are kept
#: Steps of dot products that take as long as one product that is listed and sorted.
OF_A_PRODUCT = 8
FEW_ROWS = 8  #: Rows up to which searching a column is as fast as a table of it.
#: Rows of a table at most, and the logarithm of its slots: eight fit on a multiprocessor.
MOST_ROWS, TABLE_BITS = 1 << 10, 12


class Left(NamedTuple):
    """The left matrix of a product: a matrix by columns, or its transpose."""

    form: CscMatrix
    transposed: bool

    def there(self, rows: bool) -> CscMatrix | None:
        """Return the matrix by columns, or by rows, if it is there."""
        return self.form if rows == self.transposed or self.form.symmetric else self.form.csr

    def made(self, rows: bool) -> CscMatrix:
        return self.there(rows) or forms.rows_of(self.form)


class AtMask(NamedTuple):
    """A product at the entries of a mask."""

    whole: CscMatrix  #: The mask's entries, each with a value.
    found: Array  #: array of u32: bits of the entries where there is a product.

    def csc(self) -> CscMatrix:
        return forms.take(self.whole, self.found)


def count_steps(A: Left, B: CscMatrix, mask: CscMatrix | None = None) -> tuple[int, int, int]:
    """Return the number of all products, and the steps of dot products at a mask's entries.

    These are the entries of the mask, and of the shorter of row and column of each. The last number
    are the steps in columns with a table; 0 if no table is worth its making.
    """
    device, lengths = B.device, _lengths(A, rows=False)
    found = device.xp.zeros(3, np.uint64)
    types = {"LEN": index_ctype(lengths), "IDX": index_ctype(B.row_idx)}
    run = kernel("spgemm/steps.cu", "count_products", **types)
    device.launch(run, B.nvals, B.nvals, B.row_idx, lengths, found)
    if mask is None:
        return int(device.read(found[:1])), 0, 0
    rows = A.there(rows=True)
    if rows is not None and forms.has_one_each(rows) and forms.has_one_each(B):
        return int(device.read(found[:1])), 2 * mask.nvals, 0
    lengths = _lengths(A, rows=True)
    types = {"LEN": index_ctype(lengths), "B": index_ctype(B.col_ptr)} | index_types(mask)
    run = kernel("spgemm/steps.cu", "count_steps", **types)
    device.launch(
        run, mask.nvals, **mask.arguments(), least=FEW_ROWS, most=MOST_ROWS, a_lengths=lengths,
        b_ptr=B.col_ptr, total=found[1:],
    )  # fmt: skip
    products, steps, in_tables = device.to_host(found).tolist()
    in_tables = in_tables if in_tables >= device.limits.table_steps else 0
    return products, steps + mask.nvals, in_tables


def _lengths(A: Left, rows: bool) -> Array:
    """Return the number of entries in each column, or in each of the `rows`."""
    form, other = A.there(rows), A.form
    if form is not None:
        return lengths_of(other.device, form.col_ptr)
    lengths = other.device.xp.zeros(other.shape[0], other.col_ptr.dtype)
    types = {"LEN": index_ctype(lengths), "IDX": index_ctype(other.row_idx)}
    run = kernel("spgemm/steps.cu", "count_rows", **types)
    other.device.launch(run, other.nvals, other.nvals, other.row_idx, lengths)
    return lengths


def _of_two(A: CscMatrix, B: CscMatrix, algebra: Algebra) -> dict[str, Any]:
    return dict(zip(("A", "B", "ADD", "MUL", "T", "Z"), (A.dtype, B.dtype, *algebra), strict=True))


def _algebra(product: Product) -> Algebra:
    return product.semiring.monoid, product.semiring.multiply, product.domain, product.result


def dot_products(
    R: CscMatrix, B: CscMatrix, mask: CscMatrix, product: Product, tables: bool, edges: Array | None
) -> AtMask:
    """Return the products of rows and columns at the entries of the mask; `R` is ``A'``."""
    device, xp, n, result = R.device, R.device.xp, mask.nvals, product.result
    device.require(n * (1 + result.numpy.itemsize), "mxm")
    macros = _of_two(R, B, _algebra(product))
    values, found = xp.empty(n, result.numpy), forms.no_places(device, n)
    given = {
        "ncols": mask.shape[1], "col_ptr": mask.col_ptr, "row_idx": mask.row_idx,
        "a_ptr": R.col_ptr, "a_idx": R.row_idx, "a_values": R.values, "a_iso": R.number,
        "b_ptr": B.col_ptr, "b_idx": B.row_idx, "b_values": B.values, "b_iso": B.number,
        "z": values, "found": found, "edges": edges,
    }  # fmt: skip
    macros |= index_types(mask) | index_types(R, "A") | index_types(B, "B")
    macros |= {"EDGES": None if edges is None else "1"}
    macros |= {name: "1" for name, M in (("A_ONE", R), ("B_ONE", B)) if forms.has_one_each(M)}
    run = specialised("spgemm/dots.cu", "dot_products", **macros)
    device.launch(run, n, least=FEW_ROWS, most=MOST_ROWS if tables else 0, nvals=n, **given)
    if tables:
        run = specialised("spgemm/dots.cu", "table_products", **macros)
        shared = (B.row_idx.dtype.itemsize + 2) << TABLE_BITS  # an index and its place in a column
        device.launch(
            run, device.resident_threads, shared=shared, most_bits=TABLE_BITS,
            upto=_parts(B, mask), next=xp.zeros(1, np.uint64), **given,
        )  # fmt: skip
    return AtMask(mask.with_values(result, values, None), found)


def _parts(B: CscMatrix, mask: CscMatrix) -> Array:
    """Return how many parts each column and all columns before it are divided into."""
    device, ncols = B.device, mask.shape[1]
    parts = device.xp.empty(ncols, np.int64)
    types = {"PTR": index_ctype(mask.col_ptr), "BPTR": index_ctype(B.col_ptr)}
    run = kernel("spgemm/dots.cu", "list_parts", **types)
    device.launch(
        run, ncols, ncols=ncols, least=FEW_ROWS, most=MOST_ROWS, col_ptr=mask.col_ptr,
        b_ptr=B.col_ptr, parts=parts,
    )  # fmt: skip
    return device.running_sum(parts)


# Matrices become vectors over the positions at which one of them has an entry. So mask,
# accumulator, replace and element-wise combinations run the kernels of vectors; no other position
# gets an entry.


def positions(A: CscMatrix) -> Array:
    """Return the entries' positions column by column, as single numbers that rise."""
    require_numbered(A.shape)
    if "positions" in A.of_pattern:
        return A.of_pattern["positions"]
    made = stores.join_positions(A.device, A.shape[0], A.columns(), A.row_idx)
    if A.nvals <= _FEW:  # small loops ask often, and a launch takes longer than the work
        A.of_pattern["positions"] = made
    return made


def require_numbered(shape: tuple[int, int]) -> None:
    """Raise unless each position of a matrix has an INT64 number."""
    if shape[0] * shape[1] >= 2**63:
        raise NotSupported(
            f"gpu: a {shape[0]} x {shape[1]} result has 2**63 positions or more. "
            "Use the cpu backend, or a smaller shape."
        )


class Pattern:
    """The positions over which matrices become vectors; each of the `forms` has exactly these."""

    def __init__(self, forms: tuple[CscMatrix, ...], numbers: Array = None) -> None:
        self.forms, self._numbers = forms, numbers

    def __len__(self) -> int:
        return self.forms[0].nvals if self.forms else len(self._numbers)

    @property
    def numbers(self) -> Array:
        if self._numbers is None:
            self._numbers = positions(self.forms[0])
        return self._numbers


def _either(A: CscMatrix, B: CscMatrix, on_both: bool = False) -> Pattern:
    """Return the positions of either, or of the smaller one if only those `on_both` count.

    Nothing is sorted if one has all positions of the other.
    """
    A.device.require((A.nvals + B.nvals) * 96, "matrix operation", "Use fewer or smaller matrices.")
    if on_both:
        return Pattern((min(A, B, key=lambda M: M.nvals),))
    if forms.has_same_pattern(A, B):
        return Pattern((A, B))
    if not (A.nvals and B.nvals):
        return Pattern((A if A.nvals else B,))
    device, a, b = A.device, positions(A), positions(B)
    more = stores.found(device, b, a, complement=True)
    if not len(more):
        return Pattern((A,), a)
    if len(b) - len(more) == len(a):
        return Pattern((B,), b)
    return Pattern((), stores.merged(device, a, stores.gather(device, b, more)))


def _on_pattern(
    counters: Counters, A: CscMatrix, pattern: Pattern, inside: bool = True
) -> VectorStore:
    """Return `A` as a vector over `pattern`, without its other entries if not all are `inside`."""
    v = VectorStore(A.device, counters, A.dtype, len(pattern))
    device, known = A.device, pattern.forms
    if any(A is form for form in known) or (
        not inside and known and forms.has_same_pattern(A, known[0])
    ):
        v.set_full(A.values, A.iso)
    elif len(pattern) and A.nvals:
        numbers, own, values = pattern.numbers, positions(A), A.values
        if not inside:
            here = stores.found(device, own, numbers)
            own = stores.gather(device, own, here)
            values = None if values is None else stores.gather(device, values, here)
        v.set_sparse(stores.bounds(device, numbers, own), values, A.iso)
    return v


def _from_pattern(v: VectorStore, pattern: Pattern, shape: tuple[int, int]) -> CscMatrix:
    """Return a vector over `pattern` as a matrix."""
    if pattern.forms:
        is_full = v.nvals == v.size
        if not is_full:
            v.to_bitmap()
        whole = pattern.forms[0].with_values(v.dtype, v.values, v.iso if v.values is None else None)
        return whole if is_full else forms.take(whole, v.words)
    indices, values = v.listed()
    where = stores.gather(v.device, pattern.numbers, indices)
    return forms.at_positions(v.device, v.dtype, shape, where, values, v.iso)


def accumulate(counters: Counters, C: CscMatrix, desc: Descriptor, product: AtMask) -> CscMatrix:
    """Return `C` with a product at a mask's entries, which are those of `C`, accumulated to it."""
    w, v = (VectorStore(C.device, counters, x.dtype, C.nvals) for x in (C, product.whole))
    w.set_full(None if C.values is None else w.device.copy_of(C.values), C.iso)  # it is written to
    v.set_bitmap(product.found, product.whole.values, None, None)
    elementwise.write(w, Descriptor(accum=desc.accum), v)
    return _from_pattern(w, Pattern((C,)), C.shape)


def form_of(A: MatrixHandle, transposed: bool) -> CscMatrix:
    return forms.rows_of(A.csc()) if transposed else A.csc()


def combine(runtime: Runtime, op: Ewise) -> CscMatrix:
    A, B = map(form_of, (op.left, op.right), op.transposed)
    on_both = op.kind == "ewise_mult"
    pattern, dtype = _either(A, B, on_both), op.op.types(A.dtype, B.dtype)[1]
    w = VectorStore(A.device, runtime.counters, dtype, len(pattern))
    u, v = (_on_pattern(runtime.counters, M, pattern, not on_both) for M in (A, B))
    elementwise.combine(runtime, w, Descriptor(), op._replace(left=u, right=v))
    return _from_pattern(w, pattern, A.shape)


def write(
    counters: Counters, C: CscMatrix, desc: Descriptor, T: CscMatrix, inside: Region = (None, None)
) -> CscMatrix:
    """Return `C` after ``C<M>(I, J) = T``; the mask is by columns, `inside` is I and J."""
    pattern = _either(C, T)
    if desc.mask is not None:
        desc = desc._replace(mask=_on_pattern(counters, desc.mask, pattern, inside=False))
    w, v = _on_pattern(counters, C, pattern), _on_pattern(counters, T, pattern)
    w.values = None if w.values is None else w.device.copy_of(w.values)  # it is written to
    elementwise.write(w, desc, v, _region(w, C, pattern, inside))
    return _from_pattern(w, pattern, C.shape)


def _region(w: VectorStore, C: CscMatrix, pattern: Pattern, inside: Region) -> Array | None:
    """Return presence words of the positions in these rows and columns, or None for all."""
    rows, cols = inside
    if rows is None and cols is None:
        return None
    take = functools.partial(stores.gather, C.device)
    here = stores.count_up(C.device, len(pattern), np.int64)
    own = stores.split_positions(C.device, pattern.numbers, max(C.shape[0], 1))
    for wanted, numbers in zip((cols, rows), own, strict=True):
        if wanted is not None:
            rising = take(wanted, C.device.order_of(wanted), np.int64)
            here = take(here, stores.found(C.device, take(numbers, here, np.int64), rising))
    return elementwise.region_at(w, here)


def operands(op: Multiply) -> tuple[Left, CscMatrix]:
    """Return both matrices as the product means them, the right one by columns."""
    return Left(op.operand.csc(), op.transposed), form_of(op.matrix, not op.product.transpose)


def multiply(runtime: Runtime, desc: Descriptor, op: Multiply) -> CscMatrix | AtMask:
    """Return ``A (+.x) B``."""
    # At the entries of a mask that is not complemented, dot products of rows and columns may take
    # fewer steps than all products.
    (A, B), product, edges = operands(op), op.product, runtime.edges
    require_numbered((A.form.shape[A.transposed], B.shape[1]))
    mask = desc.mask
    if mask is None and (forms.DIAGONAL in A.form.facts or forms.DIAGONAL in B.facts):
        runtime.last.plan = plan(op)
        made = _scaled(A.made(rows=False), B, product)
        if edges is not None:
            edges.fill(made.nvals)
        return made
    if mask is not None and not desc.structure:
        mask = forms.take_true(mask)
    why: Any = ()
    if mask is not None and not desc.complement:
        products, steps, in_tables = count_steps(A, B, mask)
        if steps <= OF_A_PRODUCT * products:
            name, more = "dot_products", ""
            if in_tables:
                name, more = "table_products", "; {} of them in columns with a table"
            why = "steps of dot products at the mask's entries {} <= {} x products {}" + more
            runtime.last.plan = Plan("", name, (why, steps, OF_A_PRODUCT, products, in_tables))
            return dot_products(A.made(rows=True), B, mask, product, in_tables > 0, edges)
        text = "{} x products {} < steps of dot products at the mask's entries {}"
        why = text, OF_A_PRODUCT, products, steps
    made, products = _all(A.made(rows=False), B, product, mask, desc.complement)
    runtime.last.plan = Plan("", "sum_products", why) if why else _plan(products)
    if edges is not None:
        edges.fill(products)
    return made


def plan(op: Multiply) -> Plan:
    A, B = operands(op)
    if forms.DIAGONAL in A.form.facts or forms.DIAGONAL in B.facts:
        return Plan("", "sum_products", ("a matrix is diagonal: one product an entry",))
    return _plan(count_steps(A, B)[0])


def _plan(count: int) -> Plan:
    return Plan("", "sum_products", ("products {}, listed and sorted", count))


def _scaled(A: CscMatrix, B: CscMatrix, product: Product) -> CscMatrix:
    """Return the product of two matrices, one of them diagonal: no entry has two products."""
    device, is_left = A.device, forms.DIAGONAL in A.facts
    D, other = (A, B) if is_left else (B, A)
    device.require(other.nvals * 64, "mxm", "Take fewer rows at a time.")
    lines = other.row_idx if is_left else other.columns()
    if D.nvals < D.shape[0]:
        wanted, there = (stores.as_type(device, x, np.int64) for x in (lines, D.row_idx))
        other = forms.take(other, stores.bits_of(device, wanted, there))
        lines = other.row_idx if is_left else other.columns()
    each = stores.count_up(device, other.nvals, np.int64)
    both = (D, stores.gather(device, D.col_ptr, lines, np.int64)), (other, each)
    (A, a), (B, b) = both if is_left else both[::-1]
    values = _sums(A, B, (a, b, each, positions(other)), other.shape, _algebra(product))
    return other.with_values(product.result, values, None)


def _all(
    A: CscMatrix, B: CscMatrix, product: Product, mask: CscMatrix | None, complement: bool
) -> tuple[CscMatrix, int]:
    """List and count every product, sort those that the mask keeps by entry, add each run."""
    device, shape = A.device, (A.shape[0], B.shape[1])
    take = functools.partial(stores.gather, device)
    starts, ends = _parts_of(A, B.row_idx)
    products = stores.last(device, ends)
    device.require(products * 64, "mxm", "Give a mask, or take fewer rows at a time.")
    b, a = stores.expanded(device, starts, ends, products)
    key = stores.join_positions(device, shape[0], B.columns(), A.row_idx, b, a)
    if mask is not None:
        kept = stores.found(device, key, positions(mask), complement)
        a, b, key = (take(x, kept) for x in (a, b, key))
    order = device.order_of(key)
    a, b, key = (take(x, order) for x in (a, b, key))
    starts = stores.run_starts(device, key)
    return _summed(A, B, (a, b, starts, take(key, starts)), shape, _algebra(product)), products


def _parts_of(A: CscMatrix, columns: Array) -> tuple[Array, Array]:
    """Return where each of some columns begins, and how many entries they have up to each one."""
    take = functools.partial(stores.gather, A.device, at=columns, kind=np.int64)
    return take(A.col_ptr), A.device.running_sum(take(lengths_of(A.device, A.col_ptr)))


def _summed(
    A: CscMatrix, B: CscMatrix, runs: Runs, shape: tuple[int, int], algebra: Algebra
) -> CscMatrix:
    """Return the matrix of the sums of products, which lie in runs.

    `runs` has the entries of `A` and of `B` in each product, where the runs begin, and the
    positions of their sums; `algebra` the sum, the product, and their types.
    """
    values = _sums(A, B, runs, shape, algebra)
    return forms.at_positions(A.device, algebra[-1], shape, runs[-1], values, None)


def _sums(
    A: CscMatrix, B: CscMatrix, runs: Runs, shape: tuple[int, int], algebra: Algebra
) -> Array:
    """Return the sums of products; see `_summed`."""
    (a, b, starts, where), result = runs, algebra[-1]
    macros = {"BIDX": index_ctype(B.row_idx), **_of_two(A, B, algebra)}
    run = specialised("spgemm/mxm.cu", "sum_products", **macros)
    values = A.device.xp.empty(len(starts), result.numpy)
    A.device.launch(
        run, len(starts), runs=len(starts), products=len(a), starts=starts, a=a, b=b,
        a_values=A.values, a_iso=A.number, b_values=B.values, b_iso=B.number,
        b_rows=B.row_idx, nrows=max(shape[0], 1), where=where, z=values,
    )  # fmt: skip
    return values


def kronecker(_runtime: Runtime, op: Kronecker) -> CscMatrix:
    """Return a block ``A[i, j] (x) B`` for each entry of `A`."""
    A, B = map(form_of, (op.left, op.right), op.transposed)
    device, (p, q) = A.device, B.shape
    shape = (A.shape[0] * p, A.shape[1] * q)
    require_numbered(shape)
    device.require(A.nvals * B.nvals * 80, "kronecker")
    join, take = (functools.partial(f, device) for f in (stores.join_positions, stores.gather))
    each = stores.count_up(device, A.nvals * B.nvals, np.int64)
    a, b = stores.split_positions(device, each, max(B.nvals, 1))
    b = stores.as_type(device, b, np.int64)
    rows, cols = join(p, A.row_idx, B.row_idx, a, b), join(q, A.columns(), B.columns(), a, b)
    key = join(shape[0], cols, rows)
    order = device.order_of(key)
    runs = take(a, order), take(b, order), each, take(key, order)  # each sum has one product
    return _summed(A, B, runs, shape, (monoid.any, op.op, *op.op.types(A.dtype, B.dtype)))


def extract(A: CscMatrix, rows: Array | None, cols: Array | None) -> CscMatrix:
    """Return ``A(I, J)``; indices may repeat, None means all."""
    device, take = A.device, functools.partial(stores.gather, A.device)
    columns = stores.count_up(device, A.shape[1], np.int64) if cols is None else cols
    j, place = stores.expanded(device, *_parts_of(A, columns))
    i = take(A.row_idx, place, np.int64)
    if rows is not None:  # each entry once for every time its row is listed
        order = device.order_of(rows)
        rising = take(rows, order)
        low = stores.bounds(device, rising, i)
        counts = stores.bounds(device, rising, i, upto=True, minus=low)
        entry, at = stores.expanded(device, low, device.running_sum(counts))
        i, j, place = take(order, at), take(j, entry), take(place, entry)
    shape = (A.shape[0] if rows is None else len(rows), len(columns))
    values = A.number if A.values is None else take(A.values, place)
    return forms.from_coo(device, i, j, values, A.dtype, shape, None)
