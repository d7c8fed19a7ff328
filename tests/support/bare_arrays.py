"""A sim device whose arrays do only what CuPy does without compiling a kernel of its own."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from lagpu.backends.gpu.device.sim import SimDevice


class BareArray(np.ndarray):
    """Memory to be copied, sliced and viewed; other operations are errors."""

    def __array_ufunc__(self, ufunc, method, *args, **how):
        raise AssertionError(f"CuPy compiles {ufunc.__name__}")

    def __array_function__(self, function, types, args, how):
        raise AssertionError(f"CuPy compiles {function.__name__}")

    def astype(self, kind, **how):
        assert np.dtype(kind) == self.dtype, "CuPy compiles astype"
        return super().astype(kind, **how)

    def copy(self, order="C"):
        raise AssertionError("CuPy compiles copy")

    def fill(self, value):
        assert value == 0, "CuPy compiles fill"
        super().fill(value)

    def __getitem__(self, key):
        assert not isinstance(key, np.ndarray), "CuPy compiles indexing by an array"
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        raise AssertionError("CuPy compiles assignment")


def _bare(make):
    return lambda *args, **how: make(*args, **how).view(BareArray)


class BareDevice(SimDevice):
    xp = SimpleNamespace(
        ndarray=np.ndarray,
        empty=_bare(np.empty),
        zeros=_bare(np.zeros),
        ascontiguousarray=_bare(np.ascontiguousarray),
    )

    def copy_of(self, array):
        return array.view(np.ndarray).copy().view(BareArray)

    def order_of(self, keys):  # by Thrust, which is compiled with CuPy
        return np.argsort(keys.view(np.ndarray), kind="stable").view(BareArray)

    def running_sum(self, counts):  # by CUB, as well
        return np.cumsum(counts.view(np.ndarray), dtype=np.int64).view(BareArray)

    def _from_host(self, array):
        return np.array(array, order="C").view(BareArray)

    def _to_host(self, array):
        return array.view(np.ndarray).copy()

    def _read(self, array):
        return array.view(np.ndarray).item()
