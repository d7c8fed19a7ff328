"""What only the cpu backend has: SuiteSparse's forms, Numba for users' functions, its memory."""

import subprocess
import sys

import numpy as np
import pytest

from lagpu import BOOL, FP32, FP64, INT32, INT64, Matrix, Vector, binary, monoid, semiring, unary
from lagpu.errors import BackendMismatch


def test_a_product_is_one_call_of_the_library():
    """By-row storage is what a sparse frontier pushes along."""
    A = Matrix.from_csc([0, 1, 2], [1, 0], nrows=2, backend="cpu")
    assert A.data.gb.ss.orientation == "rowwise"
    B = Matrix.from_coo([0, 1], [1, 0], nrows=2, ncols=2, backend="cpu")
    assert B.data.gb.ss.orientation == "rowwise"


def test_a_boolean_matrix_stores_one_value():
    A = Matrix.from_csc([0, 1, 2], [1, 0], True, nrows=2, backend="cpu")
    assert A.data.gb.ss.is_iso
    B = Matrix.from_coo([0, 1], [1, 0], True, backend="cpu")
    assert B.data.gb.ss.is_iso


def test_copies_are_apart():
    v = Vector.from_dense([1, 2], backend="cpu")
    copy = v.dup()
    v[0] = 9
    assert copy.get(0) == 1
    values = np.array([1, 2])
    w = Vector.from_dense(values, backend="cpu")
    values[0] = 9
    assert w.get(0) == 1
    col_ptr, row_idx = np.array([0, 1]), np.array([0])
    A = Matrix.from_csc(col_ptr, row_idx, nrows=2, backend="cpu")
    row_idx[0] = 1
    assert A.get(0, 0) is True


@pytest.mark.parametrize("indices", [slice(None), np.arange(400)[::-1]], ids=["all", "list"])
def test_a_full_vector_is_accumulated_at_a_sparse_mask(indices):
    """SuiteSparse 9.4.5 alone crashes at this: sparse output and mask, full input."""
    u = Vector.from_dense(np.arange(400), backend="cpu")
    for k in range(1, 40, 3):
        where = np.arange(400 - k, 400)
        w = Vector.from_coo([0, *where], 1000, size=400, backend="cpu")
        mask = Vector.from_coo(where, True, size=400, backend="cpu")
        w(mask.S, accum="plus")[indices] << u
        assert w.get(0) == 1000
        order = np.arange(400)[indices]
        wanted = 1000 + np.argsort(order)[where]
        assert w.to_coo()[1][1:].tolist() == wanted.tolist()


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("mask_type", ["structure", "values"])
def test_something_is_accumulated_at_a_full_mask(mask_type, replace):
    """SuiteSparse 9.4.5 alone crashes at this: sparse output, sparse input, full mask."""
    for n in (33, 100, 1000):
        for k in range(0, n, 7):
            mask = Vector.from_dense(np.ones(n), backend="cpu")
            kept = mask.S if mask_type == "structure" else mask.V
            w = Vector.from_coo([0], 2, size=n, backend="cpu")
            u = Vector.from_coo(np.arange(k, n, 50), 3, size=n, backend="cpu")
            w(kept, accum="plus", replace=replace) << u
            w(kept, accum="plus", replace=replace) << u.ewise_mult(u, "first")
            w(kept, accum="plus", replace=replace) << u.apply("identity")
            assert w.get(0) == (11 if k == 0 else 2)
            assert w.get(k) == (11 if k == 0 else 9)
    for m, n in ((33, 33), (9, 33)):
        A = Matrix.from_coo([1, 2], [3, 0], 1.5, nrows=m, ncols=n, backend="cpu")
        C = Matrix.from_coo([1], [3], 1.0, nrows=m, ncols=n, backend="cpu")
        rows, cols = np.divmod(np.arange(m * n), n)
        full = Matrix.from_coo(rows, cols, np.ones(m * n), nrows=m, ncols=n, backend="cpu")
        C(full.S if mask_type == "structure" else full.V, accum="plus", replace=replace) << A
        assert C.get(1, 3) == 2.5


@pytest.mark.parametrize("shuffled", [False, True], ids=["sorted", "shuffled"])
def test_a_few_thousand_indices_of_a_long_vector(shuffled):
    """SuiteSparse 9.4.5 alone claims to be out of memory here, and leaves w as no object."""
    n, m = 2**20, 4000
    random = np.random.default_rng(0)
    at = random.choice(n, m, replace=False)
    at = at if shuffled else np.sort(at)
    u = Vector.from_dense(np.arange(m), backend="cpu")
    first = int(at[0])
    w = Vector.from_coo([first], [1], size=n, backend="cpu")
    w(accum="plus")[at] << u
    w(accum="plus")[at] = 2
    wanted = np.arange(m) + 2
    wanted[0] = 3
    assert w[at].new().to_dense().tolist() == wanted.tolist()
    assert w.nvals == m
    short = Vector.from_coo([first], [7], size=n, backend="cpu")
    assert short[at].new().to_coo()[1].tolist() == [7]
    same = Vector.from_coo(at, True, BOOL, size=n, backend="cpu")
    assert np.array_equal(same.to_coo()[0], np.sort(at))


LISTED = """
import numpy as np
from lagpu import Matrix
n, m = 2**20, 4000
at = np.sort(np.random.default_rng(0).choice(n, m, replace=False))
A = Matrix.from_coo([0, 1, 2], [9, int(at[0]), int(at[5])], 1, nrows=3, ncols=n, backend="cpu")
print(A[:, at].new().nvals)
A[1, at] = 5
A[[0, 2], at] = 3
print(A.nvals)
C = Matrix("INT64", 3, n, backend="cpu")
C[:, at] << A[:, at].new()
print(C.nvals, C.get(1, int(at[7])))
"""


def test_a_few_thousand_columns_of_a_wide_matrix():
    """SuiteSparse 9.4.5 ends the process here, so another one tries it."""
    done = run(LISTED)
    assert done.stdout.split() == ["2", "12001", "12000", "5"], done.stderr


@pytest.mark.parametrize("method", ["ewise_add", "ewise_mult"])
def test_full_vectors_are_combined_into_one_of_equal_values(method):
    """SuiteSparse 9.4.5 alone writes out of bounds at this."""
    u = Vector.from_dense(np.arange(1000.0), backend="cpu")
    for _ in range(300):
        w = Vector.from_dense(np.zeros(1000), backend="cpu")
        w << 0.0
        w << getattr(u, method)(u, "plus")
    assert w.isequal(u.apply("times", right=2).new())


def test_arrays_given_out_may_be_written():
    v = Vector.from_dense([1, 2], backend="cpu")
    v.to_coo()[1][0] = 9
    assert v.get(0) == 1


def test_a_device_array_does_not_move_by_itself():
    class OnDevice(np.ndarray):
        __cuda_array_interface__ = {}  # noqa: RUF012

    rows = np.array([0]).view(OnDevice)
    with pytest.raises(BackendMismatch, match=r"the array is on a GPU\. Copy it first"):
        Matrix.from_coo(rows, rows, backend="cpu")


def test_typed_operators_are_remembered():
    """A loop that names its type makes no new operator on every turn."""
    from lagpu.backends.cpu.handles import typed_operator

    v = Vector.from_dense([1.0, 2.0], backend="cpu")
    v.apply(unary.abs["FP32"]).new()
    before = typed_operator.cache_info().currsize
    for _ in range(5):
        v.apply(unary.abs["FP32"]).new()
        semiring.plus_times["FP32"]
    assert typed_operator.cache_info().currsize == before


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import lagpu
A = lagpu.Matrix.from_coo([0, 1], [1, 0], backend="cpu")
print(lagpu.algorithms.bfs_levels(A, 0).to_dense().tolist())
square = lagpu.unary.register("square", lambda x: x * x, "x * x")
try:
    square(lagpu.Vector.from_dense([3], backend="cpu")).new()
except lagpu.errors.BackendUnavailable as error:
    print(error)
"""


def test_numba_is_needed_for_users_functions_only():
    done = run(WITHOUT_NUMBA)
    levels, message = done.stdout.splitlines()
    assert levels == "[0, 1]"
    assert message == "cpu: unary.square needs Numba. Install it with: pip install numba"


def test_without_python_graphblas_the_message_names_it():
    code = (
        'import sys; sys.modules["graphblas"] = None\nimport lagpu\n'
        'try: lagpu.Vector("INT32", 1, backend="cpu")\n'
        "except lagpu.errors.BackendUnavailable as error: print(error)"
    )
    assert "pip install python-graphblas" in run(code).stdout


def test_a_full_table_of_accumulators():
    """Accumulators cast to the operator's domain, whatever the output's type."""
    u = Vector.from_dense([2, 3], backend="cpu")
    w = Vector.from_dense(np.array([1, 5], np.int32), backend="cpu")
    w(accum=binary.plus) << u
    w(accum=monoid.max) << u
    assert (w.dtype, w.to_dense().tolist()) == (INT32, [3, 8])


FULL = """
import numpy as np
from lagpu import Vector, binary, unary
w, u = (Vector.from_dense(np.arange(65), backend="cpu") for _ in "wu")
m = Vector.from_coo([3, 64], [1, 0], size=65, backend="cpu")
w(m.S, accum=binary.plus) << u
w(m.V, accum=binary.plus) << u.apply(unary.ainv)
w(m.S, accum=binary.plus)[:] = 7
print([w.get(i) for i in (2, 3, 63, 64)])
"""


def test_accumulating_under_a_small_mask_into_a_full_vector():
    """SuiteSparse 9.4.5 ends the process here, so another one tries it."""
    done = run(FULL)
    assert done.stdout.split() == ["[2,", "10,", "63,", "135]"], done.stderr


WIDER = [(BOOL, INT32), (BOOL, INT64), (INT32, INT64), (INT32, FP64), (FP32, FP64)]


@pytest.mark.parametrize(("narrow", "wide"), WIDER, ids=str)
@pytest.mark.parametrize("op", ["plus_first", "plus_second", "plus_times", "min_plus"])
def test_accumulating_a_cast_product_into_a_full_vector(op, narrow, wide):
    """SuiteSparse 9.4.5 reads the narrow values as wide ones here."""
    add = op.split("_")[0]
    narrow_u = Vector.from_dense(np.ones(3, narrow.numpy), backend="cpu")
    wide_u = Vector.from_dense(np.full(3, 2, wide.numpy), backend="cpu")
    A = Matrix.from_coo([0, 1, 2], [1, 2, 0], np.ones(3, narrow.numpy), backend="cpu")
    B = A.dup(wide)
    for product in (A @ wide_u, wide_u @ A, B @ narrow_u, narrow_u @ B):
        w, expected = wide_u.dup(), wide_u.dup()
        w(accum=add) << semiring[op](product)
        expected(accum=add) << semiring[op](product).new()
        assert w.isequal(expected), f"{product}: {w} != {expected}"


@pytest.mark.parametrize("op", ["plus_first", "min_pair", "max_plus", "any_pair"])
def test_accumulating_sums_of_nothing_into_a_full_vector(op):
    """SuiteSparse 9.4.5 fails here."""
    A, u = Matrix(INT32, 3, 0, backend="cpu"), Vector(INT32, 0, backend="cpu")
    for product in (A @ u, u @ A.T):
        w = Vector.from_dense(np.array([4, 5, 6], np.int32), backend="cpu")
        w(accum=op.split("_")[0]) << semiring[op](product)
        assert w.to_dense().tolist() == [4, 5, 6]
    w(accum=binary.plus) << A.reduce_rowwise(monoid.plus)
    assert w.to_dense().tolist() == [4, 5, 6]


def test_accumulating_a_cast_row_sum_into_a_full_vector():
    A = Matrix.from_coo([0, 0, 1, 2], [0, 1, 2, 0], True, backend="cpu")
    for sums in (A.reduce_rowwise, A.reduce_columnwise):
        w = Vector.from_dense([10, 10, 10], backend="cpu")
        w(accum=binary.plus) << sums(monoid.plus)
        assert sorted(w.to_dense().tolist()) == [11, 11, 12]


def test_semirings_of_the_table_are_the_librarys_own():
    from lagpu.backends.cpu import handles

    A = Matrix.from_coo([0], [0], [1.5], backend="cpu")
    u = Vector.from_dense([2.0], backend="cpu")
    semiring.plus_times["FP64"](A @ u).new()
    before = len(handles.KEPT)
    handles.c_semiring.cache_clear()
    assert semiring.plus_times(A @ u).new().get(0) == 3.0
    assert len(handles.KEPT) == before


@pytest.mark.parametrize("name", ["max_firsti", "any_firsti", "max_firstj", "max_secondj"])
@pytest.mark.parametrize("transposed", [False, True])
def test_numbers_of_rows_where_most_rows_are_empty(name, transposed):
    """SuiteSparse 9.4.5 may store such a matrix without its empty rows, and count those it has."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        rows, k = int(rng.integers(20, 40)), int(rng.integers(1, 5))
        there = rng.random((rows, k)) < 0.04
        if transposed:
            A = Matrix.from_coo(*np.nonzero(there.T), True, nrows=k, ncols=rows, backend="cpu").T
        else:
            A = Matrix.from_coo(*np.nonzero(there), True, nrows=rows, ncols=k, backend="cpu")
        B = Matrix.from_coo(np.arange(k), [0] * k, True, nrows=k, ncols=1, backend="cpu")
        turned = name == "max_secondj"  # the numbers are those of the columns of the right operand
        found = semiring[name](B.T @ A.T if turned else A @ B).new()
        at = found.to_coo()[1 if turned else 0]
        met = [np.flatnonzero(there[row]).max() for row in at]
        assert found.to_coo()[2].tolist() == list(met if name == "max_firstj" else at)
