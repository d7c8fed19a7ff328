"""Products of matrices at the entries of a mask: a row and a column for each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp, Monoid
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.kernels.source import Prelude
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.storage.forms import has_one_each, no_places, rows_of, take
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.workspaces import index_ctype, index_types
from lagpu.dtypes import DType
from lagpu.operations import Product

Array = Any

#: The part of its arrays that each kernel moves, by the kernel's name (docs/design/trace.md).
TRAFFIC: dict[str, dict[str, tuple[str, float]]] = {
    name: dict.fromkeys(("a_idx", "b_idx", "a_values", "b_values"), ("edges", 0.5))
    for name in ("dot_products", "table_products")
}
#: Steps of dot products that take as long as one product that is listed and sorted.
OF_A_PRODUCT = 8
#: Steps from which columns are put in tables; two launches more take as long as some 100,000.
TABLE_STEPS = 1 << 17
#: Rows up to which a column is searched as fast as it is looked up.
FEW_ROWS = 8
#: Rows of a table at most, and the logarithm of its slots: eight fit on a multiprocessor.
MOST_ROWS, TABLE_BITS = 1 << 10, 12


class Left(NamedTuple):
    """The left matrix of a product by columns, by rows, or both, as far as it is there.

    Attributes
    ----------
    cols, rows : CscMatrix or None
        The matrix and its transpose.
    """

    cols: CscMatrix | None
    rows: CscMatrix | None

    @classmethod
    def of(cls, A: CscMatrix, transposed: bool) -> Left:
        """Return `A` or its transpose."""
        other = A if A.symmetric else A.csr
        return cls(other, A) if transposed else cls(A, other)

    @property
    def some(self) -> CscMatrix:
        """One of both."""
        form = self.cols or self.rows
        assert form is not None
        return form

    @property
    def nrows(self) -> int:
        """Number of rows."""
        return self.some.shape[0 if self.cols else 1]

    def by_columns(self) -> CscMatrix:
        """Return the matrix."""
        return self.cols or rows_of(self.some)

    def by_rows(self) -> CscMatrix:
        """Return its transpose."""
        return self.rows or rows_of(self.some)


class AtMask(NamedTuple):
    """A product at the entries of a mask.

    Attributes
    ----------
    mask : CscMatrix
        The mask.
    dtype : DType
        Type of the values.
    values : array
        A value for each entry of the mask, in the order of its columns.
    found : array of u32
        Bits of the entries where there is a product.
    """

    mask: CscMatrix
    dtype: DType
    values: Array
    found: Array

    def csc(self) -> CscMatrix:
        """Return the product by itself."""
        return take(self.mask.with_values(self.dtype, self.values, None), self.found)


class Steps(NamedTuple):
    """The work of dot products.

    Attributes
    ----------
    total : int
        Entries of the mask, and of the shorter of row and column of each.
    in_tables : int
        The steps, of `total`, in columns with a table; 0 if no table is worth its making.
    """

    total: int
    in_tables: int


def plan(steps: Steps, products: int) -> Plan:
    """Return how products at the entries of a mask are made."""
    why = "steps of dot products at the mask's entries {} <= {} x products {}"
    numbers = steps.total, OF_A_PRODUCT, products
    if not steps.in_tables:
        return Plan("", "dot_products", (why, *numbers))
    why += "; {} of them in columns with a table"
    return Plan("", "table_products", (why, *numbers, steps.in_tables))


def count_products(A: Left, B: CscMatrix) -> int:
    """Return the number of all products of ``A (+.x) B``."""
    found = B.device.xp.zeros(1, np.uint64)
    _add_products(A, B, found)
    return int(B.device.read(found))


def _add_products(A: Left, B: CscMatrix, found: Array) -> None:
    lengths = _lengths(A.cols, A.some)
    types = {"LEN": index_ctype(lengths), "IDX": index_ctype(B.row_idx)}
    run = kernel("spgemm/steps.cu", "count_products", **types)
    B.device.launch(run, B.nvals, B.nvals, B.row_idx, lengths, found)


def count_steps(A: Left, B: CscMatrix, mask: CscMatrix) -> tuple[int, Steps]:
    """Return the number of all products, and the work of dot products at a mask's entries."""
    device = B.device
    found = device.xp.zeros(3, np.uint64)
    _add_products(A, B, found)
    if A.rows is not None and has_one_each(A.rows) and has_one_each(B):
        return int(device.read(found[:1])), Steps(2 * mask.nvals, 0)
    lengths = _lengths(A.rows, A.some)
    types = {"LEN": index_ctype(lengths), "B": index_ctype(B.col_ptr)} | index_types(mask)
    run = kernel("spgemm/steps.cu", "count_steps", **types)
    device.launch(
        run, mask.nvals, nvals=mask.nvals, ncols=mask.shape[1], least=FEW_ROWS, most=MOST_ROWS,
        col_ptr=mask.col_ptr, row_idx=mask.row_idx, a_lengths=lengths, b_ptr=B.col_ptr,
        total=found[1:],
    )  # fmt: skip
    products, steps, in_tables = device.to_host(found).tolist()
    return products, Steps(steps + mask.nvals, in_tables if in_tables >= TABLE_STEPS else 0)


def _lengths(form: CscMatrix | None, other: CscMatrix) -> Array:
    """Return the number of entries in each column of `form`; that is in each row of `other`."""
    device, xp = other.device, other.device.xp
    if form is not None:
        return xp.diff(form.col_ptr)
    lengths = xp.zeros(other.shape[0], other.col_ptr.dtype)
    types = {"LEN": index_ctype(lengths), "IDX": index_ctype(other.row_idx)}
    run = kernel("spgemm/steps.cu", "count_rows", **types)
    device.launch(run, other.nvals, other.nvals, other.row_idx, lengths)
    return lengths


def macros_of_two(
    A: CscMatrix, B: CscMatrix, add: Monoid, multiply: BinaryOp, domain: DType, result: DType
) -> tuple[dict[str, str], str]:
    """Return the macros of types and functors, and the prelude."""
    prelude = Prelude()
    types = {"A": A.dtype, "B": B.dtype, "T": domain, "Z": result}
    macros = {"ADD": prelude.functor(add), "MUL": prelude.functor(multiply)}
    return macros | {name: dtype.ctype for name, dtype in types.items()}, prelude.text


def dot_products(
    R: CscMatrix,
    B: CscMatrix,
    mask: CscMatrix,
    product: Product,
    steps: Steps,
    edges: Array | None,
) -> AtMask:
    """Return the products of rows and columns at the entries of the mask; `R` is ``A'``."""
    device, xp, n = R.device, R.device.xp, mask.nvals
    semiring, domain, result = product.semiring, product.domain, product.result
    device.require(n * (1 + result.numpy.itemsize), "mxm")
    macros, prelude = macros_of_two(R, B, semiring.monoid, semiring.multiply, domain, result)
    indices = {
        "APTR": R.col_ptr, "AIDX": R.row_idx, "BPTR": B.col_ptr, "BIDX": B.row_idx,
        "PTR": mask.col_ptr, "IDX": mask.row_idx,
    }  # fmt: skip
    macros |= {name: index_ctype(array) for name, array in indices.items()}
    macros |= {} if edges is None else {"EDGES": "1"}
    macros |= {name: "1" for name, M in (("A_ONE", R), ("B_ONE", B)) if has_one_each(M)}
    values, found = xp.empty(n, result.numpy), no_places(device, n)
    given = {
        "ncols": mask.shape[1], "col_ptr": mask.col_ptr, "row_idx": mask.row_idx,
        "a_ptr": R.col_ptr, "a_idx": R.row_idx, "a_values": R.values, "a_iso": R.number,
        "b_ptr": B.col_ptr, "b_idx": B.row_idx, "b_values": B.values, "b_iso": B.number,
        "z": values, "found": found, "edges": edges,
    }  # fmt: skip
    most = MOST_ROWS if steps.in_tables else 0
    run = kernel("spgemm/dots.cu", "dot_products", prelude=prelude, **macros)
    device.launch(run, n, least=FEW_ROWS, most=most, nvals=n, **given)
    if steps.in_tables:
        run = kernel("spgemm/dots.cu", "table_products", prelude=prelude, **macros)
        shared = (B.row_idx.dtype.itemsize + 2) << TABLE_BITS  # an index and its place in a column
        device.launch(
            run, device.resident_threads, shared=shared, most_bits=TABLE_BITS,
            upto=_parts(B, mask), next=xp.zeros(1, np.uint64), **given,
        )  # fmt: skip
    return AtMask(mask, result, values, found)


def _parts(B: CscMatrix, mask: CscMatrix) -> Array:
    """Return the parts into which the columns up to each one are divided, itself included."""
    device, ncols = B.device, mask.shape[1]
    parts = device.xp.empty(ncols, np.int64)
    types = {"PTR": index_ctype(mask.col_ptr), "BPTR": index_ctype(B.col_ptr)}
    run = kernel("spgemm/dots.cu", "list_parts", **types)
    device.launch(
        run, ncols, ncols=ncols, least=FEW_ROWS, most=MOST_ROWS, col_ptr=mask.col_ptr,
        b_ptr=B.col_ptr, parts=parts,
    )  # fmt: skip
    return device.xp.cumsum(parts)
