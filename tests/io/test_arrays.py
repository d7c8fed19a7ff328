"""Graphs from and to SciPy, NetworkX and arrays."""

import sys

import networkx as nx
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
    from_networkx,
    from_scipy,
    to_networkx,
    to_scipy,
)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_scipy_formats(form):
    S = sp.random_array((6, 4), density=0.5, rng=np.random.default_rng(2)).asformat(form)
    A = from_scipy(S, backend="cpu")
    assert isinstance(to_scipy(A), sp.csc_array)
    assert (to_scipy(A) != S).nnz == 0


def test_scipy_array_is_left_as_it_is():
    S = sp.csc_array(
        (np.array([1, 2, 3]), np.array([2, 0, 0]), np.array([0, 3, 3, 3])), shape=(3, 3)
    )
    assert entries(from_scipy(S, backend="cpu")) == [(0, 0, 5), (2, 0, 1)]
    assert S.indices.tolist() == [2, 0, 0]
    assert S.data.tolist() == [1, 2, 3]


def test_scipy_types():
    assert from_scipy(sp.eye_array(3, dtype=np.int8), backend="cpu").dtype is INT32
    with pytest.raises(DomainMismatch):
        from_scipy(sp.eye_array(3, dtype=complex), backend="cpu")
    with pytest.raises(DomainMismatch, match="ndarray is not a 2-D sparse array"):
        from_scipy(np.eye(3), backend="cpu")


def test_networkx_order_and_direction():
    G = nx.Graph([("b", "a"), ("b", "b")])
    assert edges(from_networkx(G, backend="cpu")) == [(0, 0), (0, 1), (1, 0)]
    D = nx.DiGraph([("b", "a"), ("a", "c")])
    assert edges(from_networkx(D, backend="cpu")) == [(0, 1), (1, 2)]
    assert from_networkx(nx.empty_graph(3), backend="cpu").nvals == 0


def test_networkx_weights():
    loop = nx.Graph([(0, 0, {"w": 2}), (0, 1, {"w": 3})])
    assert entries(from_networkx(loop, weight="w", backend="cpu")) == [
        (0, 0, 2),
        (0, 1, 3),
        (1, 0, 3),
    ]
    G = nx.MultiDiGraph([(0, 1, {"w": 2}), (0, 1, {"w": 3}), (1, 0)])
    assert entries(from_networkx(G, weight="w", backend="cpu")) == [(0, 1, 5), (1, 0, 1)]
    assert from_networkx(G, backend="cpu").dtype is BOOL
    with pytest.raises(DomainMismatch, match="not always a number"):
        from_networkx(nx.Graph([(0, 1, {"w": "x"})]), weight="w", backend="cpu")


def test_to_networkx():
    A = from_scipy(sp.coo_array(([2.5], ([0], [1])), shape=(3, 3)), backend="cpu")
    G = to_networkx(A)
    assert list(G) == [0, 1, 2]
    assert list(G.edges(data="weight")) == [(0, 1, 2.5)]
    with pytest.raises(InvalidValue, match="not symmetric"):
        to_networkx(A, directed=False)
    C = from_networkx(nx.cycle_graph(4), backend="cpu")
    assert nx.utils.graphs_equal(to_networkx(C, directed=False), nx.cycle_graph(4))
    rectangle = from_scipy(sp.coo_array(([1], ([0], [1])), shape=(1, 3)), backend="cpu")
    with pytest.raises(InvalidValue, match="nrows 1 != ncols 3"):
        to_networkx(rectangle)


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


def test_networkx_that_is_not_installed(monkeypatch):
    A = from_arrays([0], [1], nrows=2, ncols=2, backend="cpu")
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(BackendUnavailable, match=r"NetworkX is missing. Install it"):
        to_networkx(A)


@pytest.mark.parametrize("form", ["csc", "csr", "coo"])
def test_scipy_formats_out(form):
    S = sp.random_array((6, 4), density=0.5, rng=np.random.default_rng(2)).asformat(form)
    S.data[0] = 0
    found = to_scipy(from_scipy(S, backend="cpu"), format=form)
    assert (type(found), found.shape, found.nnz) == (type(S), S.shape, S.nnz)
    assert (found != S).nnz == 0
    with pytest.raises(InvalidValue, match=r"no format 'bsr'\. Use csc, csr or coo"):
        to_scipy(from_scipy(S, backend="cpu"), format="bsr")
