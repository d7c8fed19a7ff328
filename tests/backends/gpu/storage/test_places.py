"""Some of a matrix' entries as a matrix: around words of 32, and where all or none stay."""

import numpy as np
import pytest

from lagpu import BOOL, FP64, INT64, Matrix, indexunary, semiring
from lagpu.backends.gpu.storage import forms
from lagpu.generators import kronecker

SIZES = (0, 1, 31, 32, 33, 1023, 1025)


def drawn(count, place, dtype=INT64):
    """A matrix of so many entries: empty columns, one of many entries, rows up to the last."""
    rng = np.random.default_rng(count)
    n = max(count, 4)
    cols = np.sort(np.where(rng.random(count) < 0.3, n // 2, rng.integers(0, n, count)))
    at = np.unique(cols * n + rng.integers(0, n, count))
    while len(at) < count:
        at = np.unique(np.append(at, rng.integers(0, n * n, count - len(at))))
    values = rng.integers(-3, 4, count).astype(dtype.numpy)
    return Matrix.from_coo(at % n, at // n, values, dtype, nrows=n, ncols=n, backend=place)


OPS = (
    ("tril", -1), ("triu", 1), ("offdiag", 0), ("diag", 2), ("rowgt", 3), ("colle", 5),
    ("valuene", 0), ("valuegt", 2), ("valuegt", 9), ("valuele", 9),
)  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_select_keeps_what_the_oracle_keeps(place, size):
    for dtype in (INT64, FP64):
        A, B = drawn(size, place, dtype), drawn(size, "cpu", dtype)
        assert A.nvals == size
        for name, thunk in OPS:
            found, wanted = (x.select(name, thunk).new() for x in (A, B))
            assert found.to("cpu").isequal(wanted), (name, thunk)
            assert found.nvals == wanted.nvals
        again = A.select("valuene", 0).new().select("tril").new()  # of what was taken
        assert again.to("cpu").isequal(B.select("valuene", 0).new().select("tril").new())


@pytest.mark.parametrize("size", SIZES)
def test_a_mask_by_value_is_one_by_structure(place, size):
    found, wanted = (
        semiring.plus_times(A @ A).new(mask=A.V) for A in (drawn(size, place), drawn(size, "cpu"))
    )
    assert found.to("cpu").isequal(wanted)


@pytest.mark.parametrize(("value", "kept"), [(0.0, 0), (-0.0, 0), (2.0, 3), (np.nan, 3)])
def test_a_mask_of_one_value_keeps_all_or_nothing(place, value, kept):
    M = Matrix.from_coo([0, 1, 2], [1, 2, 0], value, FP64, nrows=3, ncols=3, backend=place)
    ones = Matrix.from_coo([0, 0, 0], [0, 1, 2], 1, nrows=3, ncols=3, backend=place)
    full = semiring.any_pair(ones.T @ ones).new()
    assert full.nvals == 9
    assert semiring.any_pair(full @ full).new(mask=M.V).nvals == kept


def test_where_all_entries_stay_arrays_are_shared(place):
    A = kronecker(6, backend=place)
    same = A.select("offdiag").new()
    assert same.data.store is not A.data.store
    assert same.data.store.row_idx is A.data.store.row_idx
    fewer = A.select("tril").new()
    assert fewer.data.store.row_idx is not A.data.store.row_idx
    same << same.apply("one")  # the other one stays as it is
    assert A.isequal(kronecker(6, backend=place))


def test_an_operator_on_equal_values_makes_equal_values(place):
    A = kronecker(5, backend=place)
    for made, value in (
        (A.apply("one").new(INT64), 1),
        (A.apply("identity").new(FP64).apply("truediv", right=3).new(), 1 / 3),
        (A.apply("identity").new(FP64).apply("minus", left=0.25).new(), -0.75),
        (drawn(33, place).apply("one").new(), 1),  # whatever they were
        (Matrix(BOOL, 3, 3, backend=place).apply("one").new(), True),
    ):
        assert made.data.csc().values is None
        assert set(made.to_coo()[2].tolist()) <= {value}
    assert A.apply(indexunary.rowindex).new().data.csc().values is not None
    assert drawn(33, place).apply("ainv").new().data.csc().values is not None


def test_what_is_known_to_be_symmetric_stays_so(place, monkeypatch):
    def refuse(*_args):
        raise AssertionError("entries are sorted by row")

    A = kronecker(6, backend=place)
    W = A.dup(INT64)
    W(mask=A.S) << semiring.plus_pair(A @ A)  # values, and looked at once
    assert W.is_symmetric
    monkeypatch.setattr(forms, "transpose", refuse)
    for B in (A, W):
        for made in (
            B.select("offdiag").new(),
            B.select("diag").new(),
            B.select("valuegt", 0).new(),
            B.apply("one").new(),
            B.apply("ainv").new(),
        ):
            assert made.is_symmetric
    monkeypatch.undo()
    for made in (
        A.select("tril").new(),
        A.select("diag", 1).new(),
        A.select("offdiag", 1).new(),
        A.apply(indexunary.rowindex).new(),
    ):
        assert not made.is_symmetric
