"""Sums that take every entry of a matrix: the kernel for full vectors, and a loop that has it."""

import numpy as np
import pytest
from limits import set_limits

from lagpu import BOOL, FP32, FP64, INT32, INT64, Matrix, Vector, binary, loop, semiring
from lagpu.backends.gpu.device.protocol import CUDA_LIMITS
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.storage.workspaces import TILE, heads_of
from lagpu.dtypes import lookup

# Columns, and entries a column: below, at and past what a lane, a row of lanes and a warp takes;
# columns that many warps share; many without entries.
SHAPES = {
    "one entry": [1],
    "short": [0, 1, 2, 3, 0, 4, 5, 0, 7, 8, 9] * 20,
    "up to the longest for a lane": [0, 31, 32, 1, 4, 29] * 30,
    "short beside one too long": [0, 1, 2, 3, 0, 4, 5, 0, 7, 8, 33] * 20,
    "a tile each": [TILE] * 30,
    "one off a tile": [TILE - 1, TILE + 1] * 15,
    "over warps": [2, 3000, 0, 1, 2999, 5],
    "long": [1, *[2999] * 12, 3],  # each warp has several tiles inside a column
    "one of many": [0] * 400 + [17] + [0] * 400,
}


def columns(lengths, place, dtype, values):
    n = max(3001, len(lengths))
    rng = np.random.default_rng(len(lengths))
    rows = np.concatenate([np.sort(rng.permutation(n)[:k]) for k in lengths])
    cols = np.repeat(np.arange(len(lengths)), lengths)
    packed = rng.integers(1, 9, len(rows)).astype(dtype.numpy) if values else dtype.numpy.type(3)
    return Matrix.from_coo(rows, cols, packed, dtype, nrows=n, ncols=n, backend=place)


def full(n, place, dtype):
    return Vector.from_dense(np.arange(n).astype(dtype.numpy) % 5 + 1, backend=place)


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("values", [False, True])
def test_sums_of_all_entries(place, shape, values):
    for dtype in (FP32, FP64, INT64):
        A, B = (columns(SHAPES[shape], on, dtype, values) for on in (place, "cpu"))
        x, y = (full(A.nrows, on, dtype) for on in (place, "cpu"))
        for op in (semiring.plus_times, semiring.plus_first, semiring.min_plus):
            found, wanted = op(x @ A).new(), op(y @ B).new()
            assert "pull_bitmap" in str(A.backend.last_product.kernel)
            assert found.nvals == wanted.nvals == len(A.data.csc().cache["heads"].column)
            assert found.to("cpu").isequal(wanted), (op, dtype)


@pytest.mark.parametrize("cached", [0, CUDA_LIMITS.cached])
def test_values_are_read_by_ranks_or_where_they_are(place, cached, monkeypatch):
    """Of 1 byte each as well, whose room is made of words of 4."""
    set_limits(monkeypatch, cached=cached)
    A, B = (columns(SHAPES["over warps"], on, BOOL, values=False) for on in (place, "cpu"))
    where = np.arange(A.nrows) % 3 > 0
    x, y = (Vector.from_dense(where, backend=on) for on in (place, "cpu"))
    found = semiring.plus_first(x @ A).new().to("cpu")
    assert found.isequal(semiring.plus_first(y @ B).new())
    ranks = A.data.csc().cache["ranks, 1 bytes a vertex"]
    assert (ranks.rank is None) is (cached == 0)
    assert cached == 0 or ranks.words.nbytes >= A.nrows


@pytest.mark.parametrize(
    ("dtype", "number", "equal"),
    [(INT32, 2**31 - 5, True), (INT64, -3, True), (FP64, 1, True), (FP32, 3, False)],
)
def test_equal_products_add_up_to_lengths(place, dtype, number, equal):
    """Modulo the range of integers; floating-point numbers only where no sum is rounded."""
    A, B = (columns(SHAPES["over warps"], on, dtype, values=False) for on in (place, "cpu"))
    x, y = (Vector.from_scalar(number, A.nrows, dtype, backend=on) for on in (place, "cpu"))
    for op in (semiring.plus_first, semiring.plus_pair, semiring.plus_times):
        found = op(x @ A).new()
        assert found.nvals == 5
        assert found.to("cpu").isequal(op(y @ B).new()), op
    found = semiring.plus_pair(A @ x).new()  # by rows, of a matrix that has its columns
    assert found.to("cpu").isequal(semiring.plus_pair(B @ y).new())
    assert ("heads" in A.data.csc().cache) is (not equal or dtype is FP64)  # all values are 3


def test_the_order_of_threads_does_not_change_a_sum(place):
    A = columns(SHAPES["over warps"], place, FP64, values=True)
    x = Vector.from_dense(np.random.default_rng(1).random(A.nrows), backend=place)
    first, again = (semiring.plus_times(x @ A).new().to_coo()[1] for _ in range(2))
    assert first.tolist() == again.tolist()


def test_a_number_alone_is_the_sum(place):
    """Of min, whose identity is no NaN, and of plus, whose identity is no negative zero."""
    A = Matrix.from_coo([0, 1], [0, 1], 1.0, nrows=2, ncols=2, backend=place)
    x = Vector.from_dense(np.array([np.nan, -0.0]), backend=place)
    found = semiring.min_first(x @ A).new().to_dense()
    assert np.isnan(found[0])
    assert np.signbit(semiring.plus_first(x @ A).new().to_dense()[1])


def test_vectors_with_gaps_masks_and_positions_have_other_kernels(place):
    A, B = (columns(SHAPES["short"], on, INT64, values=True) for on in (place, "cpu"))
    x, y = (full(A.nrows, on, INT64) for on in (place, "cpu"))
    kept, same = (
        Vector.from_dense(np.arange(A.ncols) % 3 > 0, backend=on) for on in (place, "cpu")
    )
    for op in (semiring.plus_times, semiring.min_secondi, semiring.lor_land):
        wanted = op(y @ B).new(mask=same.V)
        assert op(x @ A, kernel="pull_bitmap").new(mask=kept.V).to("cpu").isequal(wanted)
    assert "heads" not in A.data.csc().cache
    found = semiring.min_secondi(x @ A).new().to("cpu")
    assert found.isequal(semiring.min_secondi(y @ B).new())
    del x[3], y[3]
    found = semiring.plus_times(x @ A).new().to("cpu")
    assert found.isequal(semiring.plus_times(y @ B).new())
    assert "heads" not in A.data.csc().cache


def test_arrays_that_begin_anywhere_have_another_kernel(place):
    """A lane loads four indices at once, from multiples of 16 bytes."""
    A = columns(SHAPES["short"], place, BOOL, values=False)
    xp, idx = A.backend.device.xp, A.data.csc().row_idx
    room = xp.empty(len(idx) + 1, idx.dtype)
    A.data.csc().row_idx = room[1:]
    A.data.csc().row_idx[:] = idx
    assert heads_of(A.data.csc()) is None
    x = full(A.nrows, place, FP32)
    found = semiring.plus_first(x @ A).new().to("cpu")
    B, y = columns(SHAPES["short"], "cpu", BOOL, values=False), full(A.nrows, "cpu", FP32)
    assert found.isequal(semiring.plus_first(y @ B).new())


def repeated(A, x, times):
    w = Vector(x.dtype, A.ncols, like=A)
    for _ in loop(times=times):
        w << semiring.plus_first(x @ A)
        x << w
    return w


@pytest.mark.parametrize("dtype", ["FP32", "INT64"])
@pytest.mark.parametrize("lengths", [SHAPES["short"], [3] * 300, [40] * 300])
def test_a_loop_sums_all_entries_and_then_some(place, dtype, lengths):
    """Its vector is full at first; then it lacks the columns without entries, if there are any.

    Where columns are long, shared memory holds some of its values (on sim two numbers or four).
    """
    n, kind = len(lengths), lookup(dtype)
    rng = np.random.default_rng(n)
    rows = np.concatenate([np.sort(rng.permutation(n)[:k]) for k in lengths])
    cols = np.repeat(np.arange(n), lengths)
    A, B = (Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend=on) for on in (place, "cpu"))
    found, wanted = (repeated(M, full(n, M.backend, kind), 3) for M in (A, B))
    assert place.last_loop.startswith("generated loop")
    assert "heads" in A.data.csc().cache
    assert found.to("cpu").isequal(wanted)


@pytest.mark.parametrize("lacks", ["memory", "rows"])
def test_a_loop_takes_what_a_matrix_lacked_before(place, lacks, monkeypatch):
    """What it makes of the forms is kept once they are all there, until they are forgotten."""
    A, B = (columns([3, 40] * 150, on, INT64, values=True) for on in (place, "cpu"))
    A.orientation = "csc" if lacks == "rows" else "auto"
    for k in range(5):
        with monkeypatch.context() as m:
            if lacks == "memory" and k in (0, 1):
                m.setattr(emit, "heads_of", lambda form: None)
            found, wanted = (repeated(M, full(M.nrows, M.backend, INT64), 2) for M in (A, B))
        assert found.to("cpu").isequal(wanted)
        form = A.data.csc()
        kept = [x for of, x in form.kernels.items() if type(of) is tuple and emit._on_forms in of]
        assert len(kept) == (k > 1)
        if k == 1:
            A.orientation = "auto"
    A.orientation = "csc"
    assert not form.kernels


def sides(A, x, w, times):
    for _ in loop(times=times):
        w << semiring.plus_first(x @ A)
        x << x.apply(binary.plus, right=1)


@pytest.mark.parametrize("shape", [(40, 300), (300, 40)])
def test_a_loop_sums_all_entries_of_a_matrix_that_is_not_square(place, shape):
    m, n = shape
    rng = np.random.default_rng(m)
    rows = np.concatenate([np.sort(rng.permutation(m)[:30]) for _ in range(n)])
    found = []
    for on in (place, "cpu"):
        A = Matrix.from_coo(rows, np.repeat(np.arange(n), 30), nrows=m, ncols=n, backend=on)
        x, w = full(m, on, INT64), Vector(INT64, n, like=A)
        sides(A, x, w, 3)
        found.append(w.to("cpu"))
        if on is place:
            assert place.last_loop.startswith("generated loop")
            assert "heads" in A.data.csc().cache
    assert found[0].isequal(found[1])
