"""Products under a mask: columns in tables and without, of every length and many entries."""

import numpy as np
import pytest
from samples import picked

import lagpu
from lagpu import BOOL, FP64, INT64, Matrix, semiring
from lagpu.backends.gpu.device.cuda import CudaDevice
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.ops import sparse as masked

ENTRIES = (0, 1, 31, 32, 33, 64, 1023, 1024, 1025, 2049)  # of the mask's columns
ROWS = (0, 1, 8, 9, 33, 1023, 1024, 1025, 3000, 5000)  # of the columns of B
INNER = 1 << 13
OPERATORS = ("plus_pair", "plus_times", "min_secondi", "any_pair", "max_firstj", "plus_minus")


@pytest.fixture
def tables(monkeypatch):
    """Every column that may have a table has one."""
    tables_from(1, monkeypatch)


def tables_from(steps, monkeypatch):
    for kind in (SimDevice, CudaDevice):
        monkeypatch.setattr(kind, "limits", kind.limits._replace(table_steps=steps))


def columns_of(lengths, nrows, rng, place, dtype, step=1):
    """A matrix with columns of these lengths; rows are multiples of `step`, which may collide."""
    rows = [np.sort(rng.permutation(nrows // step)[:k]) * step for k in lengths]
    cols = np.repeat(np.arange(len(lengths)), [len(x) for x in rows])
    rows = np.concatenate(rows)
    values = rng.integers(-2, 5, len(rows)).astype(dtype.numpy)
    return Matrix.from_coo(
        rows, cols, values, dtype, nrows=nrows, ncols=len(lengths), backend=place
    )


def operands(place, dtype, step=1, seed=0):
    """A by rows, B by columns, and a mask: each number of entries in columns of each length."""
    rng = np.random.default_rng(seed)
    count = len(ENTRIES) * len(ROWS)
    nrows = 2100
    lengths = rng.choice([0, 1, 5, 40, 400], nrows, p=[0.3, 0.3, 0.3, 0.08, 0.02])
    A = columns_of(np.minimum(lengths, INNER // step), INNER, rng, place, dtype, step)
    B = columns_of([ROWS[k % len(ROWS)] for k in range(count)], INNER, rng, place, dtype, step)
    M = columns_of([ENTRIES[k // len(ROWS)] for k in range(count)], nrows, rng, place, BOOL)
    return A.T.new(), B, M


def kernel_of(run):
    with lagpu.trace() as t:
        run()
    return [row.kernel for row in t.rows if row.method == "matrix_mxm"][-1]


@pytest.mark.parametrize("name", picked(OPERATORS, "plus_times", "min_secondi"))
def test_columns_of_every_length(place, tables, name):
    op, dtype = semiring[name], FP64 if name == "plus_minus" else INT64
    (A, B, M), (X, Y, N) = (operands(where, dtype) for where in (place, "cpu"))
    wanted = op(X @ Y).new(mask=N.S)
    assert 0 < wanted.nvals < N.nvals
    flipped = op(X @ Y).new(mask=N.S)
    for call in (op(A @ B), op(A.T.new().T @ B), op(A @ B.T.new().T)):
        found = call.new(mask=M.S)
        assert found.to("cpu").isequal(wanted)
        assert found.nvals == flipped.nvals
    assert op(A @ B).new(mask=M.V).to("cpu").isequal(op(X @ Y).new(mask=N.V))


def test_which_kernel_ran(place, tables, monkeypatch):
    A, B, M = operands(place, INT64)
    call = semiring.plus_times(A @ B)
    assert kernel_of(lambda: call.new(mask=M.S)) == "table_products"
    with lagpu.trace() as t:
        in_tables = call.new(mask=M.S)
    assert "of them in columns with a table" in t.rows[-1].reason
    assert t.rows[-1].edges > 0
    tables_from(1 << 40, monkeypatch)
    assert kernel_of(lambda: call.new(mask=M.S)) == "dot_products"
    assert call.new(mask=M.S).isequal(in_tables)


def test_the_work_of_dot_products(place, tables):
    """An entry of the mask, and the shorter of its row and its column; those of tables apart."""
    A, B, M = operands(place, INT64)
    left = masked.Left(A.data.csc(), False)
    _, steps, in_tables = masked.count_steps(left, B.data.csc(), M.data.csc())
    rows, cols, _ = M.to_coo()
    lengths = [np.bincount(X.to_coo()[k], minlength=X.shape[k]) for X, k in ((A, 0), (B, 1))]
    shorter = np.minimum(lengths[0][rows], lengths[1][cols])
    assert steps == len(rows) + shorter.sum()
    in_table = (lengths[1] > masked.FEW_ROWS) & (lengths[1] <= masked.MOST_ROWS)
    in_table &= np.bincount(cols, minlength=M.ncols) >= 32
    assert in_tables == shorter[in_table[cols]].sum()


def test_few_steps_need_no_tables(place):
    rng = np.random.default_rng(1)
    A = columns_of([9] * 40, 50, rng, place, INT64)
    M = columns_of([40] + [0] * 39, 40, rng, place, BOOL)
    assert kernel_of(lambda: semiring.plus_times(A.T @ A).new(mask=M.S)) == "dot_products"


@pytest.mark.parametrize("step", [2, 16, 128])
def test_indices_that_meet_in_a_table(place, tables, step):
    """Multiples of one number have the same low bits."""
    (A, B, M), (X, Y, N) = (operands(where, INT64, step, 3) for where in (place, "cpu"))
    found = semiring.plus_times(A @ B).new(mask=M.S).to("cpu")
    assert found.isequal(semiring.plus_times(X @ Y).new(mask=N.S))


@pytest.mark.parametrize("rows", [9, 100, 1000])
def test_a_table_goes_on_at_its_first_slot(place, tables, rows):
    """All indices of the columns belong at the last slots."""
    inner = 1 << 16
    hashed = np.arange(inner, dtype=np.uint64) * 2654435769 % (1 << 32)
    last = np.sort(np.argsort(hashed)[-rows:])
    made = []
    for where in (place, "cpu"):
        few = np.repeat(last[:: max(1, rows // 9)], 3)
        cols = np.arange(len(few)) % 40  # rows of A
        A = Matrix.from_coo(
            cols, few, 1 + cols, INT64, nrows=40, ncols=inner, dup_op="plus", backend=where
        )
        B = Matrix.from_coo(last, np.zeros(rows, int), last, nrows=inner, ncols=1, backend=where)
        M = Matrix.from_coo(
            np.arange(40), np.zeros(40, int), True, nrows=40, ncols=1, backend=where
        )
        made.append(semiring.plus_times(A @ B).new(mask=M.S).to("cpu"))
    assert made[1].nvals > 9
    assert made[0].isequal(made[1])


def test_rows_much_longer_than_the_column(place, tables):
    """Such rows are searched: by a column whose indices lie behind them, too."""

    def both(where):
        rng = np.random.default_rng(5)
        A = columns_of([0, 1, 4000, 150, 8000] * 20, INNER, rng, where, INT64)
        B = columns_of([1, 2, 30, 1500], INNER, rng, where, INT64)
        return A.T.new(), B

    full = np.indices((100, 4)).reshape(2, -1)
    for op in (semiring.plus_times, semiring.min_secondi):
        made = [
            op(A @ B).new(mask=Matrix.from_coo(*full, True, nrows=100, ncols=4, backend=where).S)
            for where, (A, B) in (("cpu", both("cpu")), (place, both(place)))
        ]
        assert made[1].to("cpu").isequal(made[0])


def test_a_mask_with_accumulator_replace_and_complement(place, tables):
    made = []
    for where in ("cpu", place):
        A, B, M = operands(where, INT64, seed=7)
        C = semiring.plus_pair(A @ B).new(mask=M.S)
        C(M.S, accum="plus") << semiring.plus_times(A @ B)
        few = columns_of([3] * B.ncols, A.nrows, np.random.default_rng(1), where, BOOL)
        C(few.S) << semiring.max_firstj(A @ B)
        D = C.dup()
        D(~M.S, replace=True) << semiring.plus_pair(A @ B)
        made.append((C.to("cpu"), D.to("cpu")))
    assert made[0][0].isequal(made[1][0])
    assert made[0][1].isequal(made[1][1])
