"""Matrices of cupyx go in and out; SciPy's have the same attributes, and stand in for them."""

import sys
import types

import exporters
import numpy as np
import pytest
import scipy.sparse as sp

from lagpu import BOOL, FP32, FP64, INT64, Matrix, Vector, binary, loop, semiring
from lagpu.errors import (
    BackendMismatch,
    BackendUnavailable,
    DomainMismatch,
    InvalidValue,
    LimitExceeded,
)
from lagpu.io import arrays, from_cupyx, to_cupyx


def random_matrix(form, dtype=float, seed=3):
    S = sp.random_array((7, 5), density=0.4, rng=np.random.default_rng(seed), format=form)
    return S.astype(dtype)


def same(A, S):
    """Whether a matrix has the entries of a SciPy matrix, stored zeros too."""
    S = S.tocsr()
    assert A.shape == S.shape
    ptr, idx, values = A.to_csr()
    return (ptr.tolist(), idx.tolist(), values.tolist()) == (
        S.indptr.tolist(), S.indices.tolist(), S.data.tolist()
    )  # fmt: skip


@pytest.fixture
def cupyx(backend, monkeypatch):
    """`cupyx.scipy.sparse` on gpu; on sim a stand-in of that name, whose arrays are NumPy's."""
    if backend.name == "gpu":
        return pytest.importorskip("cupyx.scipy.sparse")
    if backend.name != "sim":
        pytest.skip("has no device")
    stand_in = types.ModuleType("cupyx.scipy.sparse")
    stand_in.csc_matrix, stand_in.csr_matrix = sp.csc_matrix, sp.csr_matrix
    stand_in.coo_matrix = sp.coo_matrix
    for name, module in (("cupyx", "scipy"), ("cupyx.scipy", "sparse"), ("cupyx.scipy.sparse", "")):
        held = stand_in if not module else types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, held)
    monkeypatch.setattr(arrays, "is_on_gpu", lambda place: True)
    return stand_in


def of_the_host(S):
    return S.get() if hasattr(S, "get") else S


def given(cupyx, form, S):
    """A matrix of SciPy as one of `cupyx`, or of its stand-in."""
    return S if cupyx is None else getattr(cupyx, f"{form}_matrix")(S)


@pytest.mark.parametrize("form", ["csc", "csr", "coo"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, bool])
def test_in_and_out(backend, cupyx, form, dtype):
    S = random_matrix(form, dtype)
    A = from_cupyx(given(cupyx, form, S), backend=backend)
    assert same(A, S)
    assert A.dtype.numpy == dtype
    for out in ("csc", "csr", "coo"):
        found = to_cupyx(A, format=out)
        assert isinstance(found, getattr(cupyx, f"{out}_matrix"))
        found = of_the_host(found)
        assert (found.shape, found.dtype) == (S.shape, S.dtype)
        assert same(A, found)


def test_what_goes_out_is_a_copy(backend, cupyx):
    A = from_cupyx(given(cupyx, "csc", random_matrix("csc")), backend=backend)
    before = A.dup()
    for form in ("csc", "csr", "coo"):
        S = to_cupyx(A, format=form)
        S.data[:] = 0
        assert A.isequal(before)


def address(array):
    return array.data.ptr if hasattr(array.data, "ptr") else array.ctypes.data


def test_columns_are_not_copied_on_the_device(backend, cupyx):
    S = given(cupyx, "csc", random_matrix("csc"))
    stored = from_cupyx(S, backend=backend).data.csc()
    assert address(stored.values) == address(S.data)
    assert address(stored.row_idx) == address(S.indices)
    assert address(stored.col_ptr) == address(S.indptr)


def test_in_a_loop_the_statements_before_have_run(backend, cupyx):
    A = from_cupyx(given(cupyx, "csc", random_matrix("csc")), backend=backend)
    sums = []
    for _ in loop(times=2):
        A << A.apply(binary.times, 2)
        sums.append([float(of_the_host(to_cupyx(A, format=f)).sum()) for f in ("csc", "csr")])
    total = float(random_matrix("csc").sum())
    assert np.allclose(sums, [[2 * total] * 2, [4 * total] * 2])


def test_uniform_values_go_out_one_by_one(backend, cupyx):
    A = Matrix.from_coo([0, 2], [1, 1], True, nrows=3, ncols=3, backend=backend)
    assert of_the_host(to_cupyx(A)).toarray().sum() == 2
    empty = of_the_host(to_cupyx(Matrix(FP64, 3, 2, backend=backend), format="coo"))
    assert (empty.shape, empty.nnz) == ((3, 2), 0)


# --------------------------------------------------------------------- in, on every backend


@pytest.mark.parametrize("form", ["csc", "csr", "coo", "dia", "lil"])
def test_every_format_on_every_backend(backend, form):
    S = random_matrix(form)
    A = from_cupyx(S, backend=backend)
    assert (A.backend, same(A, S)) == (backend, True)
    w = semiring.plus_times(A @ Vector.from_dense(np.ones(5), like=A)).new()
    assert np.allclose(w.to_dense(0), S.toarray().sum(1))


@pytest.mark.parametrize("form", ["csc", "csr"])
def test_unsorted_and_double_entries(backend, form):
    make = getattr(sp, f"{form}_array")
    S = make((np.array([1.0, 2, 3]), np.array([2, 0, 0]), np.array([0, 3, 3, 3])), shape=(3, 3))
    A = from_cupyx(S, backend=backend)
    assert sorted(A.to_coo()[2].tolist()) == [1, 5]
    assert (S.indices.tolist(), S.data.tolist()) == ([2, 0, 0], [1, 2, 3])


def test_double_triplets(backend):
    for values, total in ((np.array([2.0, 3.0]), 5), (np.array([True, True]), True)):
        S = sp.coo_array((values, ([1, 1], [0, 0])), shape=(2, 2))
        A = from_cupyx(S, backend=backend)
        assert (A.dtype, A.to_coo()[2].tolist()) == (BOOL if total is True else FP64, [total])


class OfGpu:
    """As `cupyx.scipy.sparse.csc_matrix` on a machine whose CuPy is pretended."""

    format, has_canonical_format = "csc", True

    def __init__(self, S):
        self.shape = S.shape
        self.data, self.indices, self.indptr = map(
            exporters.OnDevice, (S.data, S.indices, S.indptr)
        )

    def tocoo(self):
        raise AssertionError("not asked for")


def test_a_matrix_of_a_gpu_is_copied_to_the_host(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", exporters.pretended_cupy())
    S = random_matrix("csc")
    for place in ("cpu", "sim", "grid:2:cpu"):
        assert same(from_cupyx(OfGpu(S), backend=place), S)


# ---------------------------------------------------------------------------------- refused


def test_what_is_no_sparse_matrix_is_refused():
    for wrong in (np.eye(2), [[1]], None):
        with pytest.raises(DomainMismatch, match=r"is not a sparse matrix\. Wrap it"):
            from_cupyx(wrong, backend="cpu")
    with pytest.raises(DomainMismatch, match="is not a lagpu type"):
        from_cupyx(random_matrix("csc", complex), backend="cpu")


def test_what_cupyx_lacks_is_refused(backend, cupyx):
    A = Matrix(INT64, 2, 2, backend=backend, name="A")
    with pytest.raises(DomainMismatch, match=r"of INT64\. Convert it: A\.dup\('FP64'\)"):
        to_cupyx(A)
    with pytest.raises(InvalidValue, match=r"no format 'bsr'\. Use csc, csr or coo"):
        to_cupyx(A, format="bsr")
    with pytest.raises(LimitExceeded, match="cupyx counts in 32 bits"):
        to_cupyx(types.SimpleNamespace(
            backend=backend, dtype=FP32, nrows=2**31, ncols=1, nvals=0, name="A"
        ))  # fmt: skip


def test_a_matrix_elsewhere_is_refused(backend):
    if backend.name == "gpu":
        pytest.skip("is a GPU")
    with pytest.raises(BackendMismatch, match=r"Move it first: A\.to\('gpu'\), or use to_scipy"):
        to_cupyx(Matrix(FP64, 2, 2, backend=backend))


def test_cupyx_that_is_not_installed(backend, cupyx, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse", None)
    with pytest.raises(BackendUnavailable, match="needs CuPy"):
        to_cupyx(Matrix(FP64, 2, 2, backend=backend))
