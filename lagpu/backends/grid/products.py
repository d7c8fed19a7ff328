"""Products: a piece collects what it needs of the left operand, and multiplies its own part."""

from __future__ import annotations

import numpy as np

from lagpu.algebra.operators import Semiring
from lagpu.algebra.tables import binary
from lagpu.backends.grid.handles import GridHandle, GridMatrix
from lagpu.backends.grid.pieces import Pieces, entries_of, from_entries
from lagpu.backends.grid.systems import require_no_system
from lagpu.backends.grid.travel import folded, needed, spread, whole
from lagpu.dtypes import BOOL, INT64
from lagpu.operations import (
    Assign,
    Descriptor,
    Handle,
    Kronecker,
    Multiply,
    MultiplySelection,
    Operation,
    Product,
    SelectionToMatrix,
    Statement,
)


def multiply(pieces: Pieces, op: Multiply, out: GridHandle, desc: Descriptor) -> list[Operation]:
    """``w = u A`` or ``C = Q A``: the pieces' products, or their sums where A's rows are cut.

    A product of two matrices whose result is cut by rows is made where it belongs: each piece
    collects the rows of the left operand and the columns of the right one.
    """
    require_no_system(pieces.places[0], op.product.policy)
    if _is_cut_by_rows(pieces, out.shape):
        return _of_collected(pieces, op, out)
    A, inner, products = local_products(pieces, op)
    layout = pieces.layout(A.shape)
    if layout.dims[inner].whole:
        return list(products)
    dtype, semiring = op.product.result, op.product.semiring
    expected = [
        place.nvals(local.operand) * place.nvals(local.matrix) / max(rows, 1)
        for local, (_, p, place) in zip(products, pieces, strict=True)
        for rows in [layout.shape(p)[inner]]
    ]
    width = 0 if semiring.multiply.name == "pair" else dtype.numpy.itemsize
    return folded(
        pieces,
        products,
        layout,
        1 - inner,
        semiring.monoid,
        dtype,
        out.shape,
        desc,
        expected,
        width,
    )


def local_products(pieces: Pieces, op: Multiply) -> tuple[GridMatrix, int, list[Multiply]]:
    """Return (the matrix, its dimension that is summed over, the product of each local piece).

    A piece multiplies its part of the matrix by what it needs of the left operand.
    """
    A, product = op.matrix, op.product
    if not product.transpose and not _is_cut_by_rows(pieces, A.shape[::-1]):
        A, product = pieces.turned(A), product._replace(transpose=True)  # sums stay in the pieces
    inner = 0 if product.transpose else 1
    layout, parts, numbered = pieces.layout(A.shape), A.parts, None
    position = product.semiring.multiply.positional
    if position == _index_of_output(product) and not layout.dims[1 - inner].whole:
        product, parts = _taking(product, of_matrix=True), _indices(pieces, A, 1 - inner)
    elif position == "k" and not layout.dims[inner].whole:
        product, numbered = _taking(product, of_matrix=False), -1
    # `spread` numbers by dimension 0 or 1 of what it returns: the last one is that of the sum.
    left = spread(pieces, op.operand, needed(layout, inner), "mxm", -1, op.transposed, numbered)
    return A, inner, [Multiply(parts[k], left[k], product) for k, _, _place in pieces]


def _of_collected(pieces: Pieces, op: Multiply, out: GridHandle) -> list[Operation]:
    """Return the product of the rows and the columns that the result of each piece needs."""
    product, position = op.product, op.product.semiring.multiply.positional
    by, right_is_turned = pieces.layout(out.shape), not product.transpose
    product = product._replace(transpose=True)
    if position in ("i", "j"):
        product = _taking(product, of_matrix=position == "j")
    left = spread(
        pieces, op.operand, needed(by, 0), "mxm", 0, op.transposed, 0 if position == "i" else None
    )
    right = spread(
        pieces, op.matrix, needed(by, 1), "mxm", 1, right_is_turned, 1 if position == "j" else None
    )
    return [Multiply(right[k], left[k], product) for k, _, _place in pieces]


def _is_cut_by_rows(pieces: Pieces, shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and not pieces.layout(shape).dims[0].whole


def multiply_selection(
    pieces: Pieces, op: MultiplySelection, out: GridHandle, desc: Descriptor
) -> list[Operation]:
    """``w = P' u``, where each piece has its part of f; else by way of the matrix."""
    f, u = op.indices, op.operand
    product = op.product
    if product.transpose and product.semiring.multiply.positional != _index_of_output(product):
        left = whole(pieces, u, "mxv")
        return [MultiplySelection(f.parts[k], left[k], product) for k, _, _place in pieces]
    nrows = u.shape[0] if product.transpose else out.shape[0]
    return multiply(pieces, Multiply(_selection(pieces, f, nrows), u, product), out, desc)


def selection_to_matrix(
    pieces: Pieces, op: SelectionToMatrix, _out: GridHandle, _desc: Descriptor
) -> list[Operation]:
    """Make the matrix of the entries of f."""
    made = _selection(pieces, op.indices, op.nrows)
    found = pieces.turned(made) if op.transposed else made
    return [Assign(part) for part in found.parts]


def _selection(pieces: Pieces, f: GridHandle, nrows: int) -> GridMatrix:
    given = []
    for columns, rows in pieces.entries(f):
        there = (rows >= 0) & (rows < nrows)
        rows = rows[there].astype(np.int64)
        given.append((rows, columns[there], np.ones(len(rows), bool)))
    made: GridMatrix = pieces.sent(given, BOOL, (nrows, f.shape[0]))
    return made


def kronecker(pieces: Pieces, op: Kronecker, out: GridHandle, _desc: Descriptor) -> list[Operation]:
    """Combine each part of A with all of B; the blocks of A's entries travel to their owners."""
    A = pieces.turned(op.left) if op.transposed[0] else op.left
    B: GridMatrix = op.right
    right, transposed = whole(pieces, B, "kronecker"), (False, op.transposed[1])
    p, q = reversed(B.shape) if op.transposed[1] else B.shape
    dtype = op.op.types(A.dtype, B.dtype)[1]
    by, given = pieces.layout(A.shape), []
    for k, piece, place in pieces:
        nrows, ncols = by.shape(piece)
        block = place.matrix(dtype, (nrows * p, ncols * q))
        local = Kronecker(A.parts[k], right[k], op.op, transposed)
        place.execute(Statement(block, Descriptor(), local, dtype))
        rows, cols, values = entries_of(place, block, 2)
        i, j = by.index(piece, rows // max(p, 1), cols // max(q, 1))
        given.append((i * p + rows % max(p, 1), j * q + cols % max(q, 1), values))
    return [Assign(part) for part in pieces.sent(given, dtype, out.shape).parts]


# ---------------------------------------------------------------------- indices as products
def _index_of_output(product: Product) -> str:
    """Return what a positional operator reads if each product is the index of the output."""
    return "j" if product.flip else "i"


def _taking(product: Product, of_matrix: bool) -> Product:
    """Return the algebra that takes the values of the matrix, or else those of the left operand."""
    takes = binary.second if product.flip == of_matrix else binary.first
    return product._replace(semiring=Semiring(product.semiring.monoid, takes), domain=INT64)


def _indices(pieces: Pieces, A: GridMatrix, dim: int) -> list[Handle]:
    """Return the parts of a matrix with each entry's index in a dimension as its value."""
    by, found = pieces.layout(A.shape), []
    for k, p, place in pieces:
        rows, cols, _ = entries_of(place, A.parts[k], 2)
        index = by.index(p, rows, cols)[dim]
        found.append(from_entries(place, (rows, cols, index), INT64, by.shape(p)))
    return found
