"""Numbers below the least normal float are numbers on every backend, and not taken for 0."""

import numpy as np
import pytest

from lagpu import FP32, FP64, Matrix, Vector, binary, monoid, semiring, unary

LEAST = {FP32: 2.0**-149, FP64: 2.0**-1074}
DTYPES = pytest.mark.parametrize("dtype", [FP32, FP64], ids=str)


def vector(values, dtype, backend):
    return Vector.from_dense(np.array(values, dtype.numpy), backend=backend)


@pytest.mark.few_on_sim(2)
@DTYPES
def test_products(backend, dtype):
    tiny = LEAST[dtype]
    A = Matrix.from_coo([0, 0, 1], [0, 1, 1], [tiny, 3 * tiny, 1.0], dtype, backend=backend)
    v = vector([1, 2], dtype, backend)
    if backend.name == "gpu" and dtype is FP32:  # see docs/design/crosscheck.md
        assert semiring.plus_times(v @ A).new().to_dense().tolist()[1] == 2
        A = A.dup(FP64)
    for call, expected in (
        (semiring.plus_times(A @ v), [7 * tiny, 2]),
        (semiring.plus_times(v @ A), [tiny, 3 * tiny + 2]),
        (semiring.min_plus(A @ vector([tiny, tiny], dtype, backend)), [2 * tiny, 1 + tiny]),
        (semiring.max_second(A @ vector([0, tiny], dtype, backend)), [tiny, tiny]),
    ):
        assert call.new().to_dense().tolist() == expected
    assert semiring.plus_times(A @ A).new()[0, 0].new().value == A.dtype.numpy.type(tiny) ** 2
    assert semiring.plus_first(A @ A).new()[0, 1].new().value == 4 * tiny


@DTYPES
def test_entry_by_entry(backend, dtype):
    tiny = LEAST[dtype]
    u, v = vector([tiny, 2 * tiny, 0], dtype, backend), vector([tiny, -tiny, tiny], dtype, backend)
    for call, expected in (
        (u.ewise_add(v, binary.plus), [2 * tiny, tiny, tiny]),
        (u.ewise_mult(v, binary.max), [tiny, 2 * tiny, tiny]),
        (u.ewise_mult(v, binary.gt), [False, True, False]),
        (u.apply(unary.ainv), [-tiny, -2 * tiny, 0]),
        (u.apply(unary.lnot), [0, 0, 1]),
        (u.apply(binary.times, right=4), [4 * tiny, 8 * tiny, 0]),
    ):
        assert call.new().to_dense().tolist() == expected
    assert u.select("valuegt", 0).new().nvals == 2
    assert v.reduce(monoid.plus).new().value == tiny


@DTYPES
def test_casts_and_comparisons(backend, dtype):
    tiny = LEAST[dtype]
    v = vector([tiny, 0, -tiny, -0.0], dtype, backend)
    assert v.dup("BOOL").to_dense().tolist() == [True, False, True, False]
    assert not v.isequal(vector([0, 0, 0, 0], dtype, backend))
    assert v.isequal(v.dup())
    M, zeros = v.diag(), vector([0, 0, 0, 0], dtype, backend).diag()
    assert M.dup("BOOL").to_coo()[2].tolist() == [True, False, True, False]
    assert not M.isequal(zeros)
    assert semiring.plus_times(M @ M).new(mask=M.V).nvals == 2


def test_casts_between_floats(backend):
    tiny = LEAST[FP32]
    v = vector([tiny, -3 * tiny, 2.0**-127], FP32, backend)
    assert v.dup(FP64).to_dense().tolist() == [tiny, -3 * tiny, 2.0**-127]
    assert v.diag().dup(FP64).to_coo()[2].tolist() == [tiny, -3 * tiny, 2.0**-127]
    w = vector([tiny, 1.6 * tiny, 0.4 * tiny, -(2.0**-127)], FP64, backend)
    assert w.dup(FP32).to_dense().tolist() == [tiny, 2 * tiny, 0.0, -(2.0**-127)]
    assert w.diag().dup(FP32).to_coo()[2].tolist() == [tiny, 2 * tiny, 0.0, -(2.0**-127)]


@DTYPES
def test_duplicates(backend, dtype):
    tiny = LEAST[dtype]
    A = Matrix.from_coo(
        [0, 0, 1, 1], [0, 0, 1, 1], [tiny, 2 * tiny, tiny, 0.0], dtype,
        dup_op=binary.plus, backend=backend,
    )  # fmt: skip
    assert A.to_coo()[2].tolist() == [3 * tiny, tiny]


@DTYPES
def test_the_sign_of_zero_is_kept(backend, dtype):
    """Values that compare equal are not all the same."""
    values = np.array([0.0, -0.0], dtype.numpy)
    A = Matrix.from_coo([0, 1], [0, 1], values, backend=backend)
    B = Matrix.from_csc([0, 1, 2], [0, 1], values, nrows=2, backend=backend)
    v = Vector.from_dense(values, backend=backend)
    for x in (A, B, v, v.diag(), A.dup()):
        assert x.apply(unary.minv).new().to_coo()[-1].tolist() == [np.inf, -np.inf]
    C = Matrix.from_coo([0, 1], [1, 0], values, backend=backend)  # equal to its transpose, not it
    u = Vector.from_coo([0], [1.0], dtype, size=2, backend=backend)
    for call, inverse in (
        (semiring.any_second(u @ C), np.inf),
        (semiring.any_first(C @ u), -np.inf),
    ):
        assert call.new().apply(unary.minv).new().to_coo()[1].tolist() == [inverse]
