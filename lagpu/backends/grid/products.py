"""Products: every piece collects the left operand, and multiplies it by its own part."""

from __future__ import annotations

import numpy as np

from lagpu.algebra.operators import Semiring
from lagpu.algebra.tables import binary
from lagpu.backends.grid.handles import GridHandle, GridMatrix
from lagpu.backends.grid.pieces import Pieces, entries_of
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

__all__ = ["kronecker", "multiply", "multiply_selection", "selection_to_matrix"]


def multiply(pieces: Pieces, op: Multiply, _out: GridHandle) -> list[Operation]:
    """``w = A' u`` or ``C = Q A``, where A or its transpose has the output's indices as columns."""
    A = op.matrix if op.product.transpose else pieces.turned(op.matrix)
    u: GridHandle = op.operand
    product, parts = op.product._replace(transpose=True), A.parts
    if _is_index_of_output(product):
        product, parts = _of_known_indices(product), _indices_of_columns(pieces, A)
    left = pieces.whole(u) if len(u.shape) == 1 else pieces.whole_matrix(op.operand, "mxm")
    return [Multiply(parts[k], left[k], product, op.transposed) for k, _, _place in pieces]


def multiply_selection(pieces: Pieces, op: MultiplySelection, out: GridHandle) -> list[Operation]:
    """``w = P' u``, where each piece has its part of f; else by way of the matrix."""
    f, u = op.indices, op.operand
    if op.product.transpose and not _is_index_of_output(op.product):
        whole = pieces.whole(u)
        return [MultiplySelection(f.parts[k], whole[k], op.product) for k, _, _place in pieces]
    nrows = u.shape[0] if op.product.transpose else out.shape[0]
    return multiply(pieces, Multiply(_selection(pieces, f, nrows), u, op.product), out)


def selection_to_matrix(pieces: Pieces, op: SelectionToMatrix, _out: GridHandle) -> list[Operation]:
    """Make the columns of each part of f; the transpose is dealt anew."""
    made = _selection(pieces, op.indices, op.nrows)
    found = pieces.turned(made) if op.transposed else made
    return [Assign(part) for part in found.parts]


def _selection(pieces: Pieces, f: GridHandle, nrows: int) -> GridMatrix:
    made: GridMatrix = pieces.evaluated(
        [SelectionToMatrix(part, nrows) for part in f.parts], BOOL, (nrows, f.shape[0])
    )
    return made


def kronecker(pieces: Pieces, op: Kronecker, out: GridHandle) -> list[Operation]:
    """Combine each part of A with all of B; the blocks of A's columns are dealt anew."""
    A = pieces.turned(op.left) if op.transposed[0] else op.left
    B: GridMatrix = op.right
    right, transposed = pieces.whole_matrix(B, "kronecker"), (False, op.transposed[1])
    p, q = reversed(B.shape) if op.transposed[1] else B.shape
    dtype = op.op.types(A.dtype, B.dtype)[1]
    given = []
    for k, piece, place in pieces:
        columns = pieces.local_shape(A.shape, piece)[1]
        block = place.matrix(dtype, (A.shape[0] * p, columns * q))
        local = Kronecker(A.parts[k], right[k], op.op, transposed)
        place.execute(Statement(block, Descriptor(), local, dtype))
        rows, cols, values = entries_of(place, block, 2)
        left = pieces.partition(A.shape[1]).index(piece, cols // max(q, 1))
        given.append((rows, left * q + cols % max(q, 1), values))
    return [Assign(part) for part in pieces.sent(given, dtype, out.shape).parts]


# ---------------------------------------------------------------------- indices as products
def _is_index_of_output(product: Product) -> bool:
    """Whether each product is the index of the output, which a piece numbers by position."""
    return product.semiring.multiply.positional == ("j" if product.flip else "i")


def _of_known_indices(product: Product) -> Product:
    """Return the algebra that takes the indices of the output from the values of the matrix."""
    takes = binary.second if product.flip else binary.first
    return product._replace(semiring=Semiring(product.semiring.monoid, takes), domain=INT64)


def _indices_of_columns(pieces: Pieces, A: GridMatrix) -> list[Handle]:
    """Return the parts of a matrix with each entry's column as its value."""
    found = []
    for k, p, place in pieces:
        col_ptr, rows, _ = place.matrix_to_csc(A.parts[k])
        columns = np.repeat(pieces.partition(A.shape[1]).own(p), np.diff(col_ptr))
        shape = A.shape[0], len(col_ptr) - 1
        found.append(place.matrix_from_csc(col_ptr, rows, columns, INT64, shape))
    return found
