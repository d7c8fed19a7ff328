"""Vectors as matrices: what becomes of their entries, and where they are on the way."""

import numpy as np
import pytest

from lagpu import FP32, FP64, INT64, Vector, binary
from lagpu.core.infix import as_column

SIZES = (1, 31, 32, 33, 1025)


def drawn(size, share, dtype, place):
    rng = np.random.default_rng(size)
    at = np.flatnonzero(rng.random(size) < share)
    return Vector.from_coo(at, rng.integers(-3, 4, len(at)), dtype, size=size, backend=place)


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_rows_and_columns_have_the_entries(backend, share):
    for size in SIZES:
        v = drawn(size, share, FP64, backend)
        at, values = (x.tolist() for x in v.to_coo())
        column, row = as_column(v), as_column(v).T.new()
        assert (column.shape, row.shape) == ((size, 1), (1, size))
        assert [x.tolist() for x in column.to_coo()] == [at, [0] * len(at), values]
        assert [x.tolist() for x in row.to_coo()] == [[0] * len(at), at, values]
        assert column.dtype is row.dtype is FP64
        before = v.dup()
        column(column.S) << 7  # the vector stays
        assert v.isequal(before)


@pytest.mark.parametrize("share", [0.5, 1])
def test_an_outer_product_of_two_and_of_one(backend, share):
    for size in SIZES[:-1]:
        u, v = drawn(size, share, INT64, backend), drawn(size, 1, INT64, backend)
        for x, y in ((u, v), (v, u), (u, u)):
            (i, a), (j, b) = x.to_coo(), y.to_coo()
            made = x.outer(y, binary.minus).new()
            assert made.nvals == len(i) * len(j)
            rows, cols, values = made.to_coo()
            assert (values.reshape(len(i), len(j)) == np.subtract.outer(a, b)).all()
            assert (np.unique(rows) == i).all()
            assert (np.unique(cols) == j).all()


def test_an_operator_of_one_type_keeps_it(backend):
    v = drawn(33, 0.5, INT64, backend)
    made = v.outer(v, binary.minus[FP32]).new()
    assert made.dtype is FP32
    assert made.nvals == v.nvals**2


def test_a_full_vector_is_not_copied_to_the_host(backend, monkeypatch):
    v = drawn(33, 1, INT64, backend)
    A = v.outer(v).new()

    def refuse(*_args, **_options):
        raise AssertionError("entries are copied to the host")

    monkeypatch.setattr(Vector, "to_coo", refuse)
    assert v.outer(v).new(mask=A.S).isequal(A)
    assert as_column(v).T.new().nvals == 33
