"""Graphs from and to SciPy, and from arrays."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from readback import edges, entries

from lagpu.dtypes import BOOL, INT32
from lagpu.errors import (
    BackendUnavailable,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
)
from lagpu.io import (
    from_arrays,
    from_edgelist,
    from_pandas_edgelist,
    from_scipy,
    from_scipy_sparse,
    to_scipy,
    to_scipy_sparse,
)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_scipy_formats(form):
    S = sp.random_array((6, 4), density=0.5, rng=np.random.default_rng(2)).asformat(form)
    A = from_scipy(S, backend="cpu")
    assert isinstance(to_scipy(A), sp.csc_array)
    assert (to_scipy(A) != S).nnz == 0


def test_scipy_by_the_names_of_python_graphblas():
    S = sp.coo_array(([2, 3], ([0, 1], [1, 0])), shape=(2, 2))
    A = from_scipy_sparse(S, dtype="INT32", name="A", backend="cpu")
    assert (A.name, A.dtype, entries(A)) == ("A", INT32, [(0, 1, 2), (1, 0, 3)])
    assert isinstance(to_scipy_sparse(A), sp.csr_array)
    assert isinstance(to_scipy_sparse(A, "coo"), sp.coo_array)
    assert (to_scipy_sparse(A) != S).nnz == 0


def test_scipy_array_is_left_as_it_is():
    S = sp.csc_array(
        (np.array([1, 2, 3]), np.array([2, 0, 0]), np.array([0, 3, 3, 3])), shape=(3, 3)
    )
    assert entries(from_scipy(S, backend="cpu")) == [(0, 0, 5), (2, 0, 1)]
    assert S.indices.tolist() == [2, 0, 0]
    assert S.data.tolist() == [1, 2, 3]


def test_a_matrix_keeps_no_array_of_scipy(backend):
    S = sp.csc_array(np.array([[0.0, 1.0], [2.0, 0.0]]))
    A = from_scipy(S, backend=backend)
    S.data *= 5
    S.indices[:] = 0
    assert entries(A) == [(0, 1, 1.0), (1, 0, 2.0)]


def test_zeros_of_both_signs_are_not_one_value(backend):
    S = sp.csc_array(([-0.0, 0.0], ([0, 1], [1, 0])), shape=(2, 2))
    B, _ids = from_edgelist([(0, 1, -0.0), (1, 0, 0.0)], backend=backend)
    for A in (from_scipy(S, backend=backend), B):
        assert np.signbit(A.to_coo()[2]).tolist() == [True, False]


def test_scipy_types():
    assert from_scipy(sp.eye_array(3, dtype=np.int8), backend="cpu").dtype is INT32
    with pytest.raises(DomainMismatch):
        from_scipy(sp.eye_array(3, dtype=complex), backend="cpu")
    with pytest.raises(DomainMismatch, match="ndarray is not a 2-D sparse array"):
        from_scipy(np.eye(3), backend="cpu")


class OnDevice:
    """What an array on a device shows of itself."""

    __cuda_array_interface__ = {"shape": (1,), "typestr": "<i8", "data": (0, True), "version": 3}  # noqa: RUF012


class ThroughDLPack:
    """An array of another library, on the host."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays():
    rows, cols = np.array([0, 2]), ThroughDLPack(np.array([1, 0]))
    A = from_arrays(rows, cols, [4, 5], nrows=3, ncols=3, backend="cpu")
    assert entries(A) == [(0, 1, 4), (2, 0, 5)]
    assert from_arrays([0], [1], backend="cpu").dtype is BOOL
    with pytest.raises(IndexOutOfBound):
        from_arrays([0], [3], nrows=3, ncols=3, backend="cpu")


def test_device_arrays_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(BackendUnavailable, match="need CuPy"):
        from_arrays(OnDevice(), OnDevice(), backend="cpu")


def test_device_arrays_come_to_the_host(monkeypatch):
    class Copied:
        def get(self):
            return np.array([1])

    class CuPy:
        asarray = staticmethod(lambda source: Copied())

    monkeypatch.setitem(sys.modules, "cupy", CuPy)
    assert edges(from_arrays(OnDevice(), OnDevice(), backend="cpu")) == [(1, 1)]


@pytest.mark.parametrize("form", ["csc", "csr", "coo"])
def test_scipy_formats_out(form):
    S = sp.random_array((6, 4), density=0.5, rng=np.random.default_rng(2)).asformat(form)
    S.data[0] = 0
    found = to_scipy(from_scipy(S, backend="cpu"), format=form)
    assert (type(found), found.shape, found.nnz) == (type(S), S.shape, S.nnz)
    assert (found != S).nnz == 0
    with pytest.raises(InvalidValue, match=r"no format 'bsr'\. Use csc, csr or coo"):
        to_scipy(from_scipy(S, backend="cpu"), format="bsr")


@pytest.mark.parametrize(("kind", "value"), [(np.int8, 100), (np.uint8, 200), (np.int16, 30000)])
def test_types_that_widen_are_summed_afterwards(kind, value):
    twice = np.array([value, value], kind)
    S = sp.coo_array((twice, ([0, 0], [1, 1])), shape=(2, 2))
    T = sp.csr_array((twice, np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2))
    for A in (
        *(from_scipy(x, backend="cpu") for x in (S, T)),
        from_edgelist([(0, 1), (0, 1)], twice, backend="cpu")[0],
        from_edgelist([(0, 1, twice[0]), (1, 0, twice[1])], directed=False, backend="cpu")[0],
    ):
        assert A.get(0, 1) == 2 * value
    assert T.nnz == 2


@pytest.mark.extra
def test_two_columns_of_one_name_are_no_table():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([[1, 2, 3]], columns=["source", "source", "target"])
    with pytest.raises(InvalidValue, match="two columns are called 'source'"):
        from_pandas_edgelist(table, backend="cpu")
