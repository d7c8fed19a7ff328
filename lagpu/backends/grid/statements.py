"""Each operation of a grid as operations on its pieces: products, element-wise, indexing, sums."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lagpu import operations as ops
from lagpu.algebra.operators import IndexUnaryOp, Semiring
from lagpu.algebra.tables import binary, indexunary
from lagpu.backends.gpu.storage.stores import VectorStore
from lagpu.backends.grid.exchange import FORMS, folded, spread, whole
from lagpu.backends.grid.partition import GridHandle, Layout, Partition, needed
from lagpu.backends.grid.pieces import (
    Entries,
    Pieces,
    by_own_columns,
    computed,
    entries_of,
    from_entries,
    may_gather,
    on_host,
)
from lagpu.backends.grid.systems import on_one_piece, policies_with_systems, system_of
from lagpu.backends.policies import require_policy
from lagpu.dtypes import BOOL, INT64, DType
from lagpu.operations import Handle, Operation, Statement

Array = np.ndarray[Any, Any]
Lists = list[Array | None]


def _assigned(pieces: Pieces, given: Sequence[Entries], s: Statement) -> list[Operation]:
    """Return, for each local piece, the assignment of the entries that it owns."""
    return [ops.Assign(part) for part in pieces.sent(given, s.dtype, s.out.shape).parts]


# ---- Products: a piece collects what it needs of the left operand, and multiplies its own part.
def multiply(pieces: Pieces, op: ops.Multiply, s: Statement) -> list[Operation]:
    """``w = u A`` or ``C = Q A``: the pieces' products, or their sums where A's rows are cut.

    A product of two matrices whose result is cut by rows is made where it belongs: each piece
    collects the rows of the left operand and the columns of the right one.
    """
    policy = op.product.policy
    if policy is not None:
        require_policy(policies_with_systems(pieces.places[0]), policy)
    system = system_of(policy)
    form, share = "shorter", True
    if system is not None:
        op = op._replace(product=on_one_piece(system, pieces.places[0], op.product))
        form = system.messages if system.messages in FORMS else form
        share = system.share == "yes"
    if _is_cut_by_rows(pieces, s.out.shape):
        return _of_collected(pieces, op, s.out)
    A, inner, products = local_products(pieces, op, form)
    pieces.mark("expand")
    layout = pieces.layout(A.shape)
    if layout.dims[inner].whole:
        return list(products)
    semiring = op.product.semiring
    expected = [
        place.nvals(local.operand) * place.nvals(local.matrix) / max(layout.shape(p)[inner], 1)
        for local, (_, p, place) in zip(products, pieces, strict=True)
    ]
    # equal values are sent once
    width = 0 if semiring.multiply.name == "pair" else s.dtype.numpy.itemsize
    need = needed(layout, 1 - inner)
    return folded(pieces, products, need, semiring.monoid, s, expected, width, form, share)


def local_products(
    pieces: Pieces, op: ops.Multiply, form: str = "shorter"
) -> tuple[GridHandle, int, list[ops.Multiply]]:
    """Return (the matrix, its dimension that is summed over, the product of each local piece)."""
    A, product = op.matrix, op.product
    if not product.transpose and not _is_cut_by_rows(pieces, A.shape[::-1]):
        # a piece has whole columns of the transpose, so all terms of its sums
        A, product = pieces.transpose(A), product._replace(transpose=True)
    inner = 0 if product.transpose else 1
    layout, parts, numbered = pieces.layout(A.shape), A.parts, None
    if product.is_output_index and not layout.dims[1 - inner].whole:
        product, parts = _taking(product, of_matrix=True), _indices(pieces, A, 1 - inner)
    elif product.semiring.multiply.positional == "k" and not layout.dims[inner].whole:
        product, numbered = _taking(product, of_matrix=False), -1
    # The index k is that of the operand's last dimension, which is summed over.
    need = needed(layout, inner)
    left = spread(pieces, op.operand, need, "mxm", -1, op.transposed, numbered, form)
    return A, inner, [ops.Multiply(parts[k], left[k], product) for k, _, _place in pieces]


def _of_collected(pieces: Pieces, op: ops.Multiply, out: GridHandle) -> list[Operation]:
    """Return the product of the rows and the columns that the result of each piece needs."""
    product, position = op.product, op.product.semiring.multiply.positional
    by, transposed = pieces.layout(out.shape), not product.transpose
    product = product._replace(transpose=True)
    if position in ("i", "j"):
        product = _taking(product, of_matrix=position == "j")
    row, column = (0 if position == "i" else None), (1 if position == "j" else None)
    left = spread(pieces, op.operand, needed(by, 0), "mxm", 0, op.transposed, row)
    right = spread(pieces, op.matrix, needed(by, 1), "mxm", 1, transposed, column)
    return [ops.Multiply(right[k], left[k], product) for k, _, _place in pieces]


def _is_cut_by_rows(pieces: Pieces, shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and not pieces.layout(shape).dims[0].whole


def multiply_selection(pieces: Pieces, op: ops.MultiplySelection, s: Statement) -> list[Operation]:
    """``w = P' u``, where each piece has its part of f; else as a product with the matrix."""
    f, u = op.indices, op.operand
    product = op.product
    if product.transpose and not product.is_output_index:
        left = whole(pieces, u, "mxv")
        return [ops.MultiplySelection(f.parts[k], left[k], product) for k, _, _place in pieces]
    nrows = u.shape[0] if product.transpose else s.out.shape[0]
    return multiply(pieces, ops.Multiply(_selection(pieces, f, nrows), u, product), s)


def selection_to_matrix(pieces: Pieces, op: ops.SelectionToMatrix, s: Statement) -> list[Operation]:
    made = _selection(pieces, op.indices, op.nrows)
    found = pieces.transpose(made) if op.transposed else made
    return [ops.Assign(part) for part in found.parts]


def _selection(pieces: Pieces, f: GridHandle, nrows: int) -> GridHandle:
    given = []
    for columns, rows in pieces.entries(f):
        there = (rows >= 0) & (rows < nrows)
        rows = rows[there].astype(np.int64)
        given.append((rows, columns[there], np.ones(len(rows), bool)))
    return pieces.sent(given, BOOL, (nrows, f.shape[0]))


def kronecker(pieces: Pieces, op: ops.Kronecker, s: Statement) -> list[Operation]:
    """Combine each part of A with all of B; the blocks of A's entries are sent to their owners."""
    A = pieces.transpose(op.left) if op.transposed[0] else op.left
    B: GridHandle = op.right
    right, transposed = whole(pieces, B, "kronecker"), (False, op.transposed[1])
    p, q = reversed(B.shape) if op.transposed[1] else B.shape
    by, given = pieces.layout(A.shape), []
    for k, piece, place in pieces:
        nrows, ncols = by.shape(piece)
        local = ops.Kronecker(A.parts[k], right[k], op.op, transposed)
        block = computed(place, local, s.dtype, (nrows * p, ncols * q))
        rows, cols, values = entries_of(place, block, 2)
        i, j = by.index(piece, rows // max(p, 1), cols // max(q, 1))
        given.append((i * p + rows % max(p, 1), j * q + cols % max(q, 1), values))
    return _assigned(pieces, given, s)


def _taking(product: ops.Product, of_matrix: bool) -> ops.Product:
    """Return the algebra that takes the values of the matrix, or else those of the left operand."""
    takes = binary.second if product.flip == of_matrix else binary.first
    return product._replace(semiring=Semiring(product.semiring.monoid, takes), domain=INT64)


def _indices(pieces: Pieces, A: GridHandle, dim: int) -> list[Handle]:
    """Return the parts of a matrix with each entry's index in a dimension as its value."""
    by, found = pieces.layout(A.shape), []
    for k, p, place in pieces:
        rows, cols, _ = entries_of(place, A.parts[k], 2)
        index = by.index(p, rows, cols)[dim]
        found.append(from_entries(place, (rows, cols, index), INT64, by.shape(p)))
    return found


# ---- Element-wise operations: each piece by itself; operators of indices see the global ones
def ewise(pieces: Pieces, op: ops.Ewise, s: Statement) -> list[Operation]:
    """Combine the parts; a transposed matrix is redistributed first."""
    each = zip((op.left, op.right), op.transposed, strict=True)
    left, right = (pieces.transpose(x) if transposed else x for x, transposed in each)
    straight = op._replace(transposed=(False, False))
    return [straight._replace(left=left.parts[k], right=right.parts[k]) for k, _, _place in pieces]


def each_part(pieces: Pieces, op: ops.Apply | ops.Select, s: Statement) -> list[Operation]:
    x: GridHandle = op.operand
    if not reads_indices(op):
        return [op._replace(operand=part) for part in x.parts]
    by, found = pieces.layout(x.shape), list[Operation]()
    if are_by_formula(pieces, op):
        return [ops.Assign(_numbers(by.dims[0], p, place, s.dtype)) for _, p, place in pieces]
    if may_gather(pieces, x) and by.dims[1].rises:
        for k, _, place in pieces:
            wide = op._replace(operand=by_own_columns(pieces, x, k, x.parts[k].csc()))
            made: Any = computed(place, wide, s.dtype, x.shape)
            found.append(ops.Assign(by_own_columns(pieces, x, k, made.csc())))
        return found
    for k, p, place in pieces:  # the operator gets global indices, so the part gets them too
        entries = by.indexed(p, entries_of(place, x.parts[k], len(x.shape)))
        wide = from_entries(place, entries, x.dtype, x.shape)
        made = computed(place, op._replace(operand=wide), s.dtype, x.shape)
        entries = by.placed(entries_of(place, made, len(x.shape)))
        found.append(ops.Assign(from_entries(place, entries, s.dtype, by.shape(p))))
    return found


def reads_indices(op: Operation) -> bool:
    if not isinstance(op, (ops.Apply, ops.Select)):
        return False
    function: Any = op.function.op if isinstance(op, ops.Apply) else op.op
    return isinstance(function, IndexUnaryOp) and (function.of_numbers or not function.uses_value)


def are_by_formula(pieces: Pieces, op: Operation) -> bool:
    """Whether the results are the indices of a full vector on devices, which need no kernel."""
    if not isinstance(op, ops.Apply) or op.function.op is not indexunary.index:
        return False
    x: GridHandle = op.operand
    if type(op.function.right) is ops.ScalarRef or op.function.right or len(x.shape) > 1:
        return False
    are_full = (isinstance(part, VectorStore) and part.size in (0, part.known) for part in x.parts)
    return pieces.engine.all(all(are_full) and pieces.partition(x.shape[0]).rises)


def _numbers(by: Partition, piece: int, place: Any, dtype: DType) -> Handle:
    """Return the indices that a piece has, by position."""
    made = place.vector(dtype, by.count(piece))
    with place.device.lock, place.device.entered():
        made.set_full(by.index(piece, place.device.xp.arange(made.size)).astype(dtype.numpy))
    return made


# ---- Indexing: entries are sent to the owners of their places in the result
def assign(pieces: Pieces, op: ops.Assign, s: Statement) -> list[Operation]:
    x = pieces.transpose(op.operand) if op.transposed else op.operand
    lists = _on_host(op.indices, x)
    by, own = pieces.layout(s.out.shape), pieces.layout(x.shape)
    if _in_place(lists, own, by):
        return [ops.Assign(part, op.indices) for part in x.parts]
    # Indices of `x` are the places in the index lists.
    given = pieces.entries(x)
    places = [
        [number if of is None else of[number] for of, number in zip(lists, numbers, strict=True)]
        for *numbers, _ in given
    ]
    received = pieces.routed(given, [by.owner(*at) for at in places])
    operations: list[Operation] = []
    for k, p, place in pieces:
        mine, shape = _own(by, lists, p)
        *numbers, values = received[k]
        each = zip(mine, numbers, by.dims, strict=True)
        local = [
            dim.position(n) if of is None else np.searchsorted(of[0], n) for of, n, dim in each
        ]
        part = from_entries(place, (*local, values), x.dtype, shape)
        operations.append(ops.Assign(part, _positions(mine)))
    return operations


def assign_scalar(pieces: Pieces, op: ops.AssignScalar, s: Statement) -> list[Operation]:
    lists, by = _on_host(op.indices, s.out), pieces.layout(s.out.shape)
    found: list[Operation] = []
    for _, p, _place in pieces:
        positions = _positions(_own(by, lists, p)[0])
        if positions is not None:
            positions = tuple(None if at is None else np.sort(at) for at in positions)
        found.append(op._replace(indices=positions))
    return found


def extract(pieces: Pieces, op: ops.Extract, s: Statement) -> list[Operation]:
    """Extract at the own indices; the entries are sent to the owners of the results."""
    x: GridHandle = op.operand
    lists, by = _on_host(op.indices, x), pieces.layout(x.shape)
    if _in_place(lists, pieces.layout(s.out.shape), by):
        return [ops.Extract(part, op.indices) for part in x.parts]
    given = []
    for k, p, place in pieces:
        mine, shape = _own(by, lists, p)
        found = computed(place, ops.Extract(x.parts[k], _positions(mine)), x.dtype, shape)
        *where, values = entries_of(place, found, len(shape))
        # Indices of the result are the places in the index lists.
        each = zip(mine, where, by.dims, by.parts(p), strict=True)
        numbers = [dim.index(q, at) if of is None else of[0][at] for of, at, dim, q in each]
        given.append((*numbers, values))
    return _assigned(pieces, given, s)


def extract_column(pieces: Pieces, op: ops.ExtractColumn, s: Statement) -> list[Operation]:
    """Extract a column or a row from the parts that have it; then send it to its owners."""
    A: GridHandle = op.matrix
    by, dim = pieces.layout(A.shape), 0 if op.transposed else 1
    owner, position = by.dims[dim].owner(op.column), by.dims[dim].position(op.column)
    if by.dims[dim].whole:
        return [op._replace(matrix=part, column=position) for part in A.parts]
    given = []
    for k, p, place in pieces:
        parts, size = by.parts(p), by.shape(p)[1 - dim]
        found = place.vector(A.dtype, size)
        if parts[dim] == owner:
            local = op._replace(matrix=A.parts[k], column=position)
            place.execute(Statement(found, ops.Descriptor(), local, A.dtype))
        where, values = place.vector_to_coo(found)
        given.append((by.dims[1 - dim].index(parts[1 - dim], where), values))
    return _assigned(pieces, given, s)


def _in_place(lists: Lists, one: Layout, other: Layout) -> bool:
    """Whether the entries of each piece stay there: dimensions with a list have one owner."""
    each = zip(lists, one.dims, other.dims, strict=True)
    return all(a == b if of is None else a.whole and b.whole for of, a, b in each)


def _own(
    by: Layout, lists: Lists, piece: int
) -> tuple[list[tuple[Array, Array] | None], tuple[int, ...]]:
    """Return (places in the list, local positions) of a piece's indices by dimension; its shape."""
    found: list[tuple[Array, Array] | None] = []
    for of, dim, part in zip(lists, by.dims, by.parts(piece), strict=True):
        mine = None if of is None else np.flatnonzero(dim.owner(of) == part)
        found.append(None if of is None or mine is None else (mine, dim.position(of[mine])))
    sizes = zip(found, by.shape(piece), strict=True)
    return found, tuple(size if of is None else len(of[0]) for of, size in sizes)


def _positions(own: Sequence[tuple[Array, Array] | None]) -> tuple[Array | None, ...] | None:
    return None if all(of is None for of in own) else tuple(of and of[1] for of in own)


def _on_host(indices: Any, x: GridHandle) -> Lists:
    if indices is None:
        return [None] * len(x.shape)
    return [None if of is None else np.asarray(on_host(of), np.int64) for of in indices]


# ---- Sums: each piece adds its entries, then their sums are added in the order of the pieces.
def reduce_rows(pieces: Pieces, op: ops.ReduceRows, s: Statement) -> list[Operation]:
    """Add up the rows or columns of each part; if they are cut, the owners add the parts' sums."""
    A: GridHandle = op.matrix
    layout, kept = pieces.layout(A.shape), 1 if op.transposed else 0
    local = [op._replace(matrix=part) for part in A.parts]
    if layout.dims[1 - kept].whole:
        return list(local)
    expected = [place.nvals(A.parts[k]) for k, _, place in pieces]
    need, width = needed(layout, kept), s.dtype.numpy.itemsize
    return folded(pieces, local, need, op.monoid, s, expected, width)


def reduce(pieces: Pieces, op: ops.Reduce) -> Any:
    x: GridHandle = op.operand
    dtype = op.monoid.types(x.dtype)[1]
    found = [place.evaluate(ops.Reduce(x.parts[k], op.monoid)) for k, _, place in pieces]
    values = _known(pieces, found, dtype)
    if not len(values):
        return None
    if op.monoid.op.of_numbers:
        place = pieces.places[0]
        sums = from_entries(place, (np.arange(len(values)), values), dtype, (len(values),))
        return place.evaluate(ops.Reduce(sums, op.monoid))
    add = functools.partial(op.monoid.op.evaluate, dtype)
    return dtype.numpy.type(functools.reduce(add, values)).item()


def element(pieces: Pieces, op: ops.ExtractElement) -> Any:
    """Return the value at an index or two, or None: the owner sends it to all."""
    x: GridHandle = op.operand
    by, found = pieces.layout(x.shape), []
    owner, at = by.owner(*op.position), by.position(*op.position)
    for k, p, place in pieces:
        found.append(place.evaluate(ops.ExtractElement(x.parts[k], at)) if p == owner else None)
    values = _known(pieces, found, x.dtype)
    return values[0].item() if len(values) else None


def _known(pieces: Pieces, found: Sequence[Any], dtype: DType) -> Array:
    """Gather one value a piece, `found` from the local ones; those that are None are left out."""
    given = [(np.array([] if x is None else [x], dtype.numpy),) for x in found]
    return np.concatenate([values for (values,) in pieces.engine.gather(given)])


#: The function of each operation, ``localized(pieces, operation, statement)``. For each local piece
#: it returns an operation on the piece's parts, whose result is the piece's part of the result.
LOCALIZED: dict[type, Callable[[Pieces, Any, Statement], list[Operation]]] = {
    ops.Multiply: multiply,
    ops.MultiplySelection: multiply_selection,
    ops.Ewise: ewise,
    ops.Kronecker: kronecker,
    ops.Apply: each_part,
    ops.Select: each_part,
    ops.Assign: assign,
    ops.AssignScalar: assign_scalar,
    ops.Extract: extract,
    ops.ExtractColumn: extract_column,
    ops.ReduceRows: reduce_rows,
    ops.SelectionToMatrix: selection_to_matrix,
}
