"""What can be no index, and a mask that does not fit, are refused where they are written."""

import numpy as np
import pytest

from lagpu import FP64, Matrix, Scalar, Vector, binary
from lagpu.errors import (
    BackendMismatch,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    NotComputed,
)


@pytest.fixture
def v(backend):
    return Vector.from_coo([0, 2], [1, 2], size=3, backend=backend, name="v")


@pytest.fixture
def A(v):
    return v.diag()


NO_INDEX = ["a", 1.5, None, True, {}, {1}, [1.5], ["a"], [True, False, True], [[0], [0, 1]],
            np.array([0.0]), slice(0, "a"), slice(0.5, 2)]  # fmt: skip


@pytest.mark.parametrize("index", NO_INDEX, ids=map(str, range(len(NO_INDEX))))
def test_no_index_of_a_vector_or_a_matrix(v, A, index):
    errors = DomainMismatch, DimensionMismatch  # the second one: lists of several lengths
    with pytest.raises(errors, match=r"not an (index|integer)|(not|of) integers|not 1-D"):
        v[index]
    for where in ((index, 0), (0, index), (index, slice(None))):
        with pytest.raises(errors):
            A[where]


def test_an_ellipsis_is_everything_and_no_part(v, A):
    assert v[...].new().isequal(v)
    assert A[...].new().isequal(A)
    with pytest.raises(DomainMismatch, match=r"is not an index\. Write A\[:, :\]"):
        A[..., 0]


def test_places_that_are_not_there(v, A):
    for wrong in (lambda: v[3], lambda: v[np.int64(3)], lambda: A[3, 0], lambda: A[:, 3]):
        with pytest.raises(IndexOutOfBound, match=r"index 3 is outside 0 \.\. 2"):
            wrong()
    part = v[[0, 3]]  # of a list, where it is used
    with pytest.raises(IndexOutOfBound, match=r"index 3 is outside 0 \.\. 2"):
        part.new()


def test_masks_and_vectors_are_no_index(v, A):
    for wrong, hint in (
        (lambda: v[v.S], r"a mask is not an index\. Write v\(v\.S\) << x to write there"),
        (lambda: A[A.S], r"a mask is not an index\. Write A\(A\.S\) << x to write there"),
        (lambda: A[v.S, 0], r"a mask is not an index\. Give integers"),
        (lambda: v[v] << 1, r"a vector is not an index\. Write v\(v\.S\) << x"),
        (lambda: v[v] << 1, r"v\(binary.second\) << semiring.any_second\(v.selection\(3\) @ x\)"),
        (lambda: A[v, 0], r"a vector is not an index\. Write v\.to_coo\(\)\[0\] for its indices"),
        (lambda: A[0, v], r"a vector is not an index"),
    ):
        with pytest.raises(DomainMismatch, match=hint):
            wrong()


def test_a_matrix_has_two_indices(A):
    for wrong, shown in (
        (lambda: A[0], "0"),
        (lambda: A[:], ":"),
        (lambda: A["a"], "'a'"),
        (lambda: A[0, 1, 2], "0, 1, 2"),
        (lambda: A[[0, 1]], "[0, 1]"),
        (lambda: A[np.eye(2)], "[[1.0, 0.0], [0.0, 1.0]]"),
    ):
        with pytest.raises(DimensionMismatch) as caught:
            wrong()
        assert f"[{shown}]: a matrix has two indices. Write A[i, :] for a row" in str(caught.value)


def test_indices_are_shown_as_written(v, A):
    assert repr(v[[0, 2]]) == repr(v[np.array([0, 2])]) == "v[[0, 2]]"
    assert repr(v[range(1, 3)]) == "v[[1, 2]]"
    assert repr(A[[0], 1:]) == "A[[0], 1:]"
    assert repr(v[list(range(3)) * 3]) == "v[I]"
    assert v[[0, 2]].new().to_coo()[1].tolist() == [1, 2]
    v[np.array([], np.int64)] << 5
    v[[]] << 5
    assert v.nvals == 2


def test_a_part_outlives_a_change_of_size(v):
    part, every = v[2], v[:]
    v.resize(2)
    with pytest.raises(IndexOutOfBound):
        part.new()
    assert every.new().size == 2


def test_all_indices_take_a_vector_of_their_size(v):
    for longer in (Vector(FP64, 4, like=v), Vector(FP64, 2, like=v)):
        with pytest.raises(DimensionMismatch, match=rf"size {longer.size} != 3 indices"):
            v[:] << longer
    v[:] << Vector.from_dense([5.0, 6, 7], like=v)
    assert v.to_dense().tolist() == [5, 6, 7]


# ------------------------------------------------------------------------------------- masks


def test_a_mask_that_does_not_fit_is_refused_where_it_is_given(v, A):
    w, longer = Vector(FP64, 3, like=v), Vector(FP64, 4, like=v)
    for wrong, shapes in (
        (lambda: w(mask=A.S), r"the mask A\.S has shape \(3, 3\) != \(3,\) of w"),
        (lambda: w(~longer.V, accum=binary.plus), r"~longer\.V has shape \(4,\) != \(3,\) of w"),
        (lambda: A(longer.S), r"the mask longer\.S has shape \(4,\) != \(3, 3\) of A"),
        (lambda: A(v.S).update(A), r"the mask v\.S has shape \(3,\) != \(3, 3\) of A"),
        (lambda: A(v.S)[:, :], r"the mask v\.S has shape \(3,\) != \(3, 3\) of A"),
        (lambda: v.apply("ainv").new(mask=A.S), r"the mask A\.S has shape"),
    ):
        with pytest.raises((DimensionMismatch, DomainMismatch), match=shapes):
            wrong()


def test_a_mask_of_another_backend_is_refused_where_it_is_given(v):
    other = Vector(FP64, 3, backend="sim" if v.backend.name == "cpu" else "cpu")
    with pytest.raises(BackendMismatch, match=r"v\(\.\.\.\): v is on .*, other is on "):
        v(other.S)
    A = Matrix(FP64, 3, 3, like=v)
    with pytest.raises(BackendMismatch):
        A(other.diag().V, replace=True)


def test_a_mask_is_looked_at_again_after_a_change_of_size(v):
    mask = Vector.from_coo([0], [1], size=3, like=v)
    to, late = v(mask.S), v(mask.S)
    to << 5
    assert v[0].value == 5
    mask.resize(4)
    with pytest.raises(DimensionMismatch, match=r"the mask mask\.S has shape \(4,\) != \(3,\)"):
        late << 6


def test_an_array_of_another_shape_than_the_part(v, A):
    for x, where, array in (
        (v, [0, 1], [[1, 2]]),
        (A, ([0, 1], 1), [0]),
        (A, ([0, 1], [1, 2]), [1, 2]),
    ):
        with pytest.raises(DimensionMismatch):
            x[where] = array
    A[[0, 1], 1] = [5, 6]
    assert A[:, 1].new().to_dict() == {0: 5, 1: 6}


def test_an_output_has_its_indices_once_and_no_truth(v):
    for wrong in (lambda: v[[0, 1]]()[0], lambda: v()[[0, 1]][0]):
        with pytest.raises(DomainMismatch, match="has its indices already"):
            wrong()
    for refused in (bool, lambda to: to == to, lambda to: to != to):
        with pytest.raises(DomainMismatch, match=r"has no (truth value|==|!=)"):
            refused(v())


def test_an_expression_is_not_changed_in_place(v, A):
    for x in (v.apply("abs"), v | v, A @ A, v.reduce("plus")):
        with pytest.raises(DomainMismatch, match=r"has no \+=.*new\(\)"):
            x += 1
    v[0] += 1  # a part is assigned
    assert v.to_dict() == {0: 2, 2: 2}


@pytest.mark.filterwarnings("ignore::lagpu.errors.UnusedCall")
def test_the_dimensions_of_what_waits(v, A):
    assert [x.ndim for x in (v | v, v + v, A @ v, v[:], A[0, :])] == [1] * 5
    assert [x.ndim for x in (A | A, A & v, A @ A, A.T, A[:, [0]])] == [2] * 5
    assert [x.ndim for x in (v @ v, v.reduce(), v[0], A[0, 0])] == [0] * 4


def test_a_scalar_has_no_indices_and_a_part_no_value(v):
    s = Scalar(FP64)
    with pytest.raises(DomainMismatch, match="a scalar has no indices"):
        del s()[0]
    with pytest.raises(NotComputed, match="is a vector, not one entry"):
        v[[0, 1]].value  # noqa: B018
    with pytest.raises(DomainMismatch, match="one entry takes a number"):
        v()[0] = [1.0]
    with pytest.raises(DomainMismatch, match="is not an integer"):
        v[Scalar(FP64, 1.0)]
    with pytest.raises(NotComputed, match="a FP64 is not an index"):
        range(Scalar(FP64, 1.0))
    del v()[:]
    assert v.nvals == 0


def test_the_mask_of_a_row_has_its_size(A):
    mask = Vector.from_coo([0], size=A.ncols + A.nrows, like=A).S
    with pytest.raises(DimensionMismatch, match="has shape"):
        A(mask)[0, :] << 1
    with pytest.raises(DimensionMismatch, match="has shape"):
        A.setdiag(1, mask=Matrix(FP64, 9, 9, like=A).S)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint64"])
def test_a_part_keeps_its_indices(v, A, dtype):
    """Whatever becomes of the array that they were in."""
    index = np.array([0, 1], dtype)
    part, block, to_write = v[index], A[index, index], v[index]
    index += 1
    assert part.new().to_dict() == {0: 1}
    assert block.new().nvals == 1
    to_write << 5
    assert v.to_dict() == {0: 5, 1: 5, 2: 2}


@pytest.mark.parametrize("large", [2**63, -(2**63) - 1, 2**70])
def test_an_index_too_large_for_int64_is_outside(backend, large):
    """In a list, too, where NumPy makes floats or objects of all."""
    v = Vector.from_dense([1, 2, 3], backend=backend)
    for index in (large, [0, large], [large]):
        with pytest.raises(IndexOutOfBound, match=r"is outside 0 \.\. 2"):
            v[index].new()
