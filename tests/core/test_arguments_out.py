"""A vector as a dense array: of the host, of its device, and through DLPack."""

import types

import exporters
import numpy as np
import pytest

from lagpu import BOOL, FP64, INT32, INT64, Matrix, Vector, binary, loop
from lagpu.core import vector
from lagpu.core.arguments import dlpack_device
from lagpu.errors import DomainMismatch, InvalidValue


@pytest.fixture
def some(backend):
    return Vector.from_coo([0, 2], [1.75, -2.5], size=4, backend=backend, name="some")


@pytest.mark.parametrize("fill", [7, 2.0, np.int32(-1)])
@pytest.mark.parametrize("dtype", [None, INT32, "FP32", bool])
@pytest.mark.parametrize("large", [1, 1 << 18])
def test_on_the_device_as_on_the_host(some, fill, dtype, large, monkeypatch):
    monkeypatch.setattr(vector, "_LARGE", large)
    full = some.dup()
    full(~some.S) << 5.25
    uniform = Vector.from_coo(np.arange(4), 3, size=4, like=some)
    for v in (some, full, uniform, some.dup(BOOL), Vector(INT64, 3, like=some)):
        here, there = v.to_dense(fill, dtype), v.to_dense(fill, dtype, on_device=True)
        there = there.get() if hasattr(there, "get") else there
        want = v.to("cpu").to_dense(fill, dtype)
        for found in (here, there):
            assert (found.dtype, found.tolist()) == (want.dtype, want.tolist())


def test_without_a_fill_value_every_entry_is_needed(some):
    for on_device in (False, True):
        with pytest.raises(DomainMismatch, match=r"to_dense: some has 2 of 4 entries\. Give fill"):
            some.to_dense(on_device=on_device)
        with pytest.raises(DomainMismatch, match=r"1\.5 does not fit INT64"):
            some.dup("INT64").to_dense(1.5, "INT64", on_device=on_device)
        wide = some.dup("INT64").to_dense(1.5, on_device=on_device)  # of the type that holds both
        assert wide.dtype == np.float64
        assert 1.5 in wide
        assert len(Vector(FP64, 0, like=some).to_dense(on_device=on_device)) == 0


def test_an_array_is_a_copy(backend):
    v = Vector.from_dense([1, 2], backend=backend)
    for array in (v.to_dense(), v.to_dense(on_device=True)):
        array[0] = 9
        assert v[0].value == 1
    array = v.to_dense(on_device=True)
    v << 5
    assert array.tolist() == [1, 2]


def test_in_a_loop_the_statements_before_have_run(backend):
    v, seen = Vector.from_dense([1, 2], backend=backend), []
    for _ in loop(times=2):
        v << v.apply(binary.plus, 1)
        seen.append(v.to_dense(on_device=True).tolist())
    assert seen == [[2, 3], [3, 4]]


# ------------------------------------------------------------------------------------ DLPack


@pytest.mark.parametrize("dtype", ["BOOL", "INT32", "INT64", "UINT32", "UINT64", "FP32", "FP64"])
def test_dlpack_hands_out_every_type(backend, dtype):
    v = Vector.from_dense([1, 0, 1], dtype=dtype, backend=backend)
    if backend.name == "gpu":
        cupy = pytest.importorskip("cupy")
        array = cupy.from_dlpack(v).get()
        assert np.from_dlpack(v, device="cpu").tolist() == array.tolist()
    else:
        array = np.from_dlpack(v)
        assert v.__dlpack_device__() == (1, 0)
    assert array.tolist() == [1, 0, 1]
    assert array.dtype == v.dtype.numpy
    other = Vector.from_dense(v, backend=backend)
    assert other.isequal(v, check_dtype=True)


def test_what_is_given_out_is_a_copy(backend):
    v = Vector.from_dense([1.0, 2.0], backend=backend)
    array = v.to_dense() if backend.name == "gpu" else np.from_dlpack(v)
    v << 5
    assert array.tolist() == [1, 2]
    with pytest.raises(InvalidValue, match=r"exports a copy.*Leave out copy=False"):
        v.__dlpack__(copy=False)
    assert v.__dlpack__(copy=True) is not None


def test_an_absent_entry_is_not_given_out(some):
    with pytest.raises(InvalidValue, match=r"some has 2 of 4 entries\. Export some\.to_dense\("):
        some.__dlpack__()


def test_a_gpu_is_named():
    device = types.SimpleNamespace(name="cuda:1", xp=exporters.pretended_cupy())
    v = types.SimpleNamespace(backend=types.SimpleNamespace(device=device))
    assert dlpack_device(v) == (2, 1)


def test_full_vectors_are_arrays_too(backend):
    where = Vector.from_dense([2, 0], backend=backend)
    values = Vector.from_dense([1.5, 2.5], backend=backend)
    v = Vector.from_coo(where, values, backend=backend)
    assert [x.tolist() for x in v.to_coo()] == [[0, 2], [2.5, 1.5]]
    assert Vector.from_dense(values, 1.5, backend=backend).nvals == 1
    A = Matrix.from_coo(where, where, values, backend=backend)
    assert A.to_coo()[2].tolist() == [2.5, 1.5]
    with pytest.raises(InvalidValue, match="has 1 of 3 entries"):
        Vector.from_dense(Vector.from_coo([1], [2], size=3, backend=backend), backend=backend)


@pytest.mark.gpu
def test_a_gpu_hands_out_device_memory():
    cupy = pytest.importorskip("cupy")
    v = Vector.from_dense([1.0, 2.0], backend="gpu")
    assert isinstance(v.to_dense(on_device=True), cupy.ndarray)
    assert isinstance(Vector(FP64, 3, backend="gpu").to_dense(0, on_device=True), cupy.ndarray)
    assert v.__dlpack_device__() == cupy.empty(0).__dlpack_device__()
    assert isinstance(cupy.from_dlpack(v), cupy.ndarray)
