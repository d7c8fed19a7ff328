"""Products by every strategy where columns are longer than one warp, or one block, looks at."""

import numpy as np
import pytest
from samples import picked

from lagpu import BOOL, FP32, INT32, INT64, Matrix, Vector, semiring
from lagpu.backends.gpu.ops.strategies import STRATEGIES

# A plain run leaves out kernels that share the code for long columns with another one.
SHARING = {"push_cooc", "push_vertex", "pull_scalar_all", "pull_warp_all"}
KERNELS = picked(
    list(STRATEGIES), *(name for name in STRATEGIES if name not in SHARING), rest="exhaustive"
)

# kAlone, a warp, kAtOnce warps and kHub of the kernels, and their neighbours; a block's rounds
LENGTHS = (0, 1, 7, 8, 9, 12, 31, 32, 33, 41, 127, 128, 129, 1023, 1025, 2047, 2048, 2049, 2055)
LONGEST = (2056, 2057, 4095, 4097, 4104, 5000)


def long_columns(place, many):
    """A column of each length; or more columns than a block puts off, each of many entries."""
    n = 5000
    lengths = np.array([2100] * 40 if many else [*LENGTHS, *LONGEST])
    rng = np.random.default_rng(len(lengths))
    rows = np.concatenate([np.sort(rng.permutation(n)[:k]) for k in lengths])
    cols = np.repeat(np.arange(len(lengths)), lengths)
    values = rng.integers(1, 9, len(rows))
    A = Matrix.from_coo(rows, cols, values, INT64, nrows=n, ncols=len(lengths), backend=place)
    where = np.flatnonzero(rng.random(n) < 0.7)
    return A, Vector.from_coo(where, where % 5 + 1, INT64, size=n, backend=place)


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_entry_of_a_long_column_counts_once(place, kernel, many):
    A, u = long_columns(place, many)
    B, v = long_columns("cpu", many)
    kept = Vector.from_dense(np.arange(A.ncols) % 3 > 0, backend=place)
    R, S = A.T.new(), B.T.new()  # rows of many entries: a pull from them, a push along them
    for op in (semiring.min_plus, semiring.plus_times, semiring.lor_land):
        wanted = op(v @ B).new()
        for call in (op(u @ A, kernel=kernel), op(R @ u, kernel=kernel)):
            found = call.new()
            assert found.nvals == wanted.nvals  # as the kernel counts them
            assert found.to("cpu").isequal(wanted), op
        found = op(u @ A, kernel=kernel).new(mask=kept.V).to("cpu")
        assert found.isequal(op(v @ B).new(mask=kept.to("cpu").V)), op
        found = op(found.to(place) @ R, kernel=kernel).new().to("cpu")
        assert found.isequal(op(op(v @ B).new(mask=kept.to("cpu").V) @ S).new()), op


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_entry_far_behind_is_found(place, kernel):
    """The last entry of a long column, which alone has a partner."""
    n = 5000
    for length in (9, 33, 129, 2048, 2057, 4097, n):
        rows = np.arange(length)
        A = Matrix.from_coo(rows, 0 * rows, 3, INT64, nrows=n, ncols=2, backend=place)
        u = Vector.from_coo([length - 1], [2], INT64, size=n, backend=place)
        found = semiring.plus_times(u @ A, kernel=kernel).new()
        assert [x.tolist() for x in found.to_coo()] == [[0], [6]]


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_sum_is_cast_to_the_type_of_the_output_once(place, kernel):
    """Of 1 and -1, and of 2**40 and -2**40 + 1, which are other sums in other types."""
    values = [1, -1, 2**40, 1 - 2**40]
    A = Matrix.from_coo([0, 1, 2, 3], [0, 0, 1, 1], values, nrows=4, ncols=2, backend=place)
    u = Vector.from_dense(np.ones(4, np.int64), backend=place)
    for dtype, sums in ((BOOL, [False, True]), (INT32, [0, 1]), (FP32, [0.0, 1.0])):
        w = Vector(dtype, 2, backend=place)
        w << semiring.plus_times(u @ A, kernel=kernel)
        assert w.to_dense().tolist() == sums


def test_infinity_times_zero_is_a_product_without_a_warning(place):
    A = Matrix.from_coo([0, 1], [1, 2], float("inf"), FP32, nrows=3, ncols=3, backend=place)
    u = Vector.from_coo([0, 1], 0.0, FP32, size=3, backend=place)
    found = semiring.max_times(u @ A).new()
    assert found.nvals == 2
    assert np.isnan(found.to_coo()[1]).all()
