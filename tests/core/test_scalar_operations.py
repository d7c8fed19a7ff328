"""Operations on scalars; and what an empty one, a mask of the input and a mask of a row do."""

import numpy as np
import pytest

from lagpu import BOOL, FP64, INT64, Matrix, Scalar, Vector, agg, binary, monoid, select, unary
from lagpu.errors import (
    DimensionMismatch,
    DomainMismatch,
    EmptyObject,
    IndexOutOfBound,
    InvalidValue,
)

s, t, none = Scalar(INT64, 5, name="s"), Scalar(INT64, 2, name="t"), Scalar(INT64, name="none")


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: binary.plus(s | t), 7),
        (lambda: binary.plus(s | none), 5),
        (lambda: binary.plus(none | none), None),
        (lambda: binary.plus(1 | s | none), 6),
        (lambda: binary.plus(1 | (2 | s)), 8),
        (lambda: binary.plus(s | np.int64(1)), 6),
        (lambda: monoid.min(s & t & 9), 2),
        (lambda: binary.times(s & none), None),
        (lambda: binary.plus(s | none, left_default=1, right_default=10), 15),
        (lambda: binary.plus(none | none, left_default=1, right_default=10), None),
        (lambda: s.ewise_add(t), 7),
        (lambda: s.ewise_mult(3), 15),
        (lambda: s.ewise_mult(none, binary.minus), None),
        (lambda: none.ewise_add(t, binary.minus), 2),
        (lambda: none.ewise_union(t, binary.minus, 10, 0), 8),
        (lambda: s.apply(unary.ainv), -5),
        (lambda: s.apply("-", right=1), 4),
        (lambda: s.apply(binary.minus, left=1), -4),
        (lambda: s.apply("rowindex", 3), 3),
        (lambda: none.apply(unary.ainv), None),
        (lambda: (-s).apply(abs), 5),
        (lambda: unary.abs(s), 5),
        (lambda: unary.abs(-3), 3),
        (lambda: binary.plus(s, 2), 7),
        (lambda: binary.minus(2, s), -3),
        (lambda: binary.minus(s, t), 3),
        (lambda: binary.plus(5, 2), 7),
        (lambda: s.select("valuegt", 3), 5),
        (lambda: select.valuegt(s, 7), None),
        (lambda: s % 3, 2),
        (lambda: 7 % s, 2),
    ],
)
def test_scalars_are_combined_as_entries_are(call, value):
    assert call().new().value == value


def test_types_of_scalar_operations():
    assert binary.plus(s | 1.5).new().dtype is FP64
    assert s.apply(unary.sqrt).new().dtype is FP64
    assert (Scalar(BOOL, True) | Scalar(BOOL, False)).new().value is True
    assert (~Scalar(BOOL, True)).new().value is False
    assert (~Scalar(BOOL)).new().is_empty


def test_what_scalars_refuse():
    u = Vector(INT64, 3, backend="cpu")
    for wrong in (lambda: s.ewise_add(u), lambda: s | u, lambda: ~s, lambda: (s & t) | t):
        with pytest.raises(DomainMismatch):
            wrong()
    with pytest.raises(DomainMismatch):
        (s | t).new()  # no operator, and not BOOL
    with pytest.raises(EmptyObject):
        s.ewise_union(t, binary.plus, 1, none)
    with pytest.raises(DomainMismatch, match="object has no entries"):
        unary.sin(object())


def test_a_value_is_set(backend):
    found = Scalar(INT64, like=Vector(INT64, 3, backend=backend))
    found.value = 12
    assert found.value == 12
    found.value = None
    assert found.is_empty
    with pytest.raises(DomainMismatch, match="does not fit"):
        found.value = 12.5
    with pytest.raises(DomainMismatch, match="like"):
        Scalar(INT64, like=3)


def vector(backend):
    return Vector.from_coo([0, 1, 2, 4], [5, 6, 7, 8], size=6, backend=backend)


def matrix(backend):
    return Matrix.from_coo(
        [0, 0, 1, 2], [0, 2, 1, 2], [1, 2, 3, 4], nrows=3, ncols=3, backend=backend
    )


def test_an_empty_scalar_deletes(backend):
    u, A = vector(backend), matrix(backend)
    u[0] = none
    u[[2, 4]] << none
    assert u.to_dict() == {1: 6}
    u(binary.plus)[[0, 1]] << none
    assert u.to_dict() == {1: 6}
    u[:] = Vector(INT64, 6, backend=backend).reduce().new()
    assert u.nvals == 0
    A[0, :] = none
    assert A.to_dicts() == {1: {1: 3}, 2: {2: 4}}
    with pytest.raises(EmptyObject, match="the scalar none has no value"):
        u << none


def test_parts_are_deleted(backend):
    u, A = vector(backend), matrix(backend)
    del u[[0, 2]]
    del u[4:]
    assert u.to_dict() == {1: 6}
    del u[5]
    del A[0, [0, 1]]
    assert A.to_dicts() == {0: {2: 2}, 1: {1: 3}, 2: {2: 4}}
    del A[:, 2]
    assert A.to_dicts() == {1: {1: 3}}
    del A[1, 1]
    del A[1, 1]
    assert A.nvals == 0
    with pytest.raises(IndexOutOfBound):
        del u[[9]]


def test_a_mask_of_the_input(backend):
    u, A = vector(backend), matrix(backend)
    m = Vector.from_coo([1, 4], [0, 1], size=6, backend=backend)
    assert u[[1, 2, 4]].new(input_mask=m.S).to_dict() == {0: 6, 2: 8}
    assert u[[1, 2, 4]].new(input_mask=m.V).to_dict() == {2: 8}
    w = Vector.from_coo([1], [9], size=3, backend=backend)
    w(input_mask=m.S) << u[[1, 2, 4]]
    assert w.to_dict() == {0: 6, 1: 9, 2: 8}
    w(binary.plus, input_mask=m.S).update(u[[1, 2, 4]])
    assert w.to_dict() == {0: 12, 1: 9, 2: 16}
    M = Matrix.from_coo([0, 2], [2, 2], True, nrows=3, ncols=3, backend=backend)
    assert A[0, [0, 2]].new(input_mask=M.S).to_dict() == {1: 2}
    assert A[[0, 1], [1, 2]].new(input_mask=M.S).to_dicts() == {0: {1: 2}}
    row = Vector.from_coo([2], [True], size=3, backend=backend)
    assert A[0, [0, 2]].new(input_mask=row.S).to_dict() == {1: 2}
    assert A[[1, 2], 2].new(input_mask=row.S).to_dict() == {1: 4}
    MT = M.T.new()
    assert A.T[[0, 2], 0].new(input_mask=MT.S).to_dict() == {1: 2}
    assert A.T[[0, 2], 0].new(input_mask=row.S).to_dict() == {1: 2}
    for wrong, error in (
        (lambda: u[[1]].new(input_mask=row.S), DimensionMismatch),
        (lambda: A[0, [1]].new(input_mask=m.S), DimensionMismatch),
        (lambda: A[[0], [1]].new(input_mask=row.S), DomainMismatch),
        (lambda: A[0, 1].new(input_mask=M.S), InvalidValue),
        (lambda: u[[1]].new(input_mask=m.S, mask=m.S), DomainMismatch),
        (lambda: w(input_mask=m.S).update(1), DomainMismatch),
    ):
        with pytest.raises(error, match="input_mask"):
            wrong()


def test_a_mask_of_a_row_and_of_a_column(backend):
    A, v = matrix(backend), Vector.from_coo([0, 1], [7, 8], size=3, backend=backend)
    m = Vector.from_coo([1, 2], [True, False], size=3, backend=backend)
    A(m.S)[0, :] << v
    assert A.to_dicts()[0] == {0: 1, 1: 8}
    A(m.V, replace=True)[:, 2] = 5
    assert A.to_dicts() == {0: {0: 1, 1: 8}, 1: {1: 3, 2: 5}}
    A(~m.S, binary.plus)[0, [0, 1]] << [10, 10]
    assert A.to_dicts()[0] == {0: 11, 1: 8}


def test_a_mask_of_a_matrix_over_a_diagonal(backend):
    A = matrix(backend)
    A.setdiag(9, mask=A.S)
    assert A.diag().to_dict() == {0: 9, 1: 9, 2: 9}
    A.setdiag(7, 1, mask=~A.S)
    assert A.diag(1).to_dict() == {0: 7, 1: 7}
    A.setdiag(1, 1, mask=A.S, accum="plus")
    assert A.diag(1).to_dict() == {0: 8, 1: 8}


def test_masks_meet_vectors(backend):
    u = Vector.from_coo([0, 1], [True, False], size=3, backend=backend)
    m = Vector.from_coo([1, 2], [1, 1], size=3, backend=backend)
    assert (m.S | u).new().to_coo()[0].tolist() == [0, 1, 2]
    assert (u & m.S).new().nvals == 0
    assert m.S.new(mask=~u.V).to_coo()[0].tolist() == [1, 2]
    assert m.S.new(mask=u.S, name="x").to_coo()[0].tolist() == [1]


def test_operands_that_do_not_fit_are_refused_where_they_are_written(backend):
    u, w, A = (
        Vector(BOOL, 2, backend=backend),
        Vector(BOOL, 3, backend=backend),
        Matrix(BOOL, 2, 3, backend=backend),
    )
    for wrong in (
        *(lambda: u | w, lambda: u & w, lambda: A | A.T, lambda: w | A, lambda: A & u),
        *(lambda: u @ w, lambda: w @ A, lambda: A @ u, lambda: A @ A),
    ):
        with pytest.raises(DimensionMismatch):
            wrong()


def test_aggregators_are_called_and_typed(backend):
    A, u = matrix(backend), vector(backend)
    assert agg.sum(u).new().value == 26
    assert agg.mean(u + u).new().value == 13
    assert agg.count(A, rowwise=True).new().to_dict() == {0: 2, 1: 1, 2: 1}
    assert agg.max(A, columnwise=True).new().to_dict() == {0: 1, 1: 3, 2: 4}
    assert u.reduce(agg.sum[float]).new().dtype is FP64
    assert A.reduce_rowwise(agg.count["INT32"]).new().dtype == "INT32"
    assert agg.count["INT32"] is agg.count["INT32"]
    assert repr(agg.count["INT32"]) == "agg.count[INT32]"


def test_smaller_forms_of_python_graphblas(backend):
    A, u = matrix(backend), vector(backend)
    assert Matrix.from_csr(*A.to_csr(), backend=backend).isequal(A)
    assert Matrix.from_csc(*A.to_csc(), backend=backend).isequal(A)
    assert A.diag(9).size == 0
    assert A.diag(0, "FP64").dtype is FP64
    assert u.diag(1, float).dtype is FP64
    assert A.power(0).new().isequal(Vector.from_scalar(1, 3, backend=backend).diag())
    q, r = divmod(u, 3)
    assert binary.plus((3 * q).new() | r).new().isequal(u)
    q, r = divmod(9, u)
    assert binary.plus((q * u).new() | r).new().isequal((9 * unary.one(u)).new())
    u.build([9], [1], clear=True, size=10)
    assert (u.size, u.to_dict()) == (10, {9: 1})
    A.build([4], [1], [1], clear=True, nrows=5)
    assert A.shape == (5, 3)


def test_sizes_that_nothing_says(backend):
    for make in (
        lambda: Vector.from_coo([], [], backend=backend),
        lambda: Vector.from_pairs([], backend=backend),
        lambda: Matrix.from_coo([], [], [], backend=backend),
        lambda: Matrix.from_edgelist([], backend=backend),
    ):
        with pytest.raises(InvalidValue, match="the size is not known"):
            make()
    assert Vector.from_coo([], [], size=0, backend=backend).size == 0
    assert Vector.from_dict({}, backend=backend).size == 0
    assert Matrix.from_dicts({}, backend=backend).shape == (0, 0)
    assert Matrix.from_dicts([{}, {}], ncols=3, backend=backend).shape == (2, 3)


def test_a_transpose_is_read_in_the_order_of_the_matrix(backend):
    A = matrix(backend)
    rows, cols, values = A.to_coo()
    there = A.T.to_coo(dtype=float)
    assert [x.tolist() for x in there] == [x.tolist() for x in (cols, rows, values)]
    assert list(A.T) == [(j, i) for i, j in A]
    assert A.T.to_coo(rows=False, values=False)[1].tolist() == rows.tolist()


def test_the_first_and_the_last_value_of_a_matrix(backend):
    A = Matrix.from_coo([0, 0, 1], [2, 1, 0], [5, 6, 7], backend=backend)
    assert (A.reduce(agg.first).value, A.reduce(agg.last).value) == (6, 7)
    assert A.dup(clear=True).reduce(agg.first).value is None


def test_a_fill_value_widens_a_matrix_too(backend):
    A = Matrix.from_coo([0], [1], [3], nrows=1, ncols=2, backend=backend)
    assert A.to_dense(0).dtype == np.int64
    assert A.to_dense(0.5).tolist() == [[0.5, 3.0]]
