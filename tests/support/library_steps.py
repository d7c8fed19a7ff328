"""A simulated device whose arrays note the steps for which an array library compiles a kernel."""

import numpy as np

from lagpu.backends.gpu.device.sim import SimDevice

# CuPy has these compiled, or they compute nothing.
COMPILED = {"empty_like", "ndim"}
_MAKERS = ("empty", "zeros", "empty_like", "ascontiguousarray", "asarray")


def plain(x):
    if isinstance(x, Noted):
        return x.view(np.ndarray)
    return type(x)(map(plain, x)) if isinstance(x, (tuple, list)) else x


def noted(x):
    if isinstance(x, np.generic):
        x = np.asarray(x)
    return x.view(Noted) if isinstance(x, np.ndarray) else x


class Noted(np.ndarray):
    """An array of a `NotingDevice`."""

    steps: set[str] = set()  # noqa: RUF012  # of all arrays, by name

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **how):
        self.steps.add(ufunc.__name__)
        if out is not None:
            how["out"] = plain(out)
        return noted(getattr(ufunc, method)(*plain(inputs), **how))

    def __array_function__(self, function, types, args, kwargs):
        self.steps.add(function.__name__)
        return noted(function(*plain(args), **{name: plain(x) for name, x in kwargs.items()}))

    def astype(self, dtype, **how):
        if np.dtype(dtype) != self.dtype:
            self.steps.add("astype")
        return noted(plain(self).astype(dtype, **how))

    def copy(self, order="C"):
        self.steps.add("copy")
        return noted(plain(self).copy(order))

    def __getitem__(self, key):
        if any(isinstance(k, np.ndarray) for k in (key if isinstance(key, tuple) else (key,))):
            self.steps.add("take")
        return noted(plain(self)[plain(key)])

    def __setitem__(self, key, value):
        self.steps.add("put")
        plain(self)[plain(key)] = plain(value)

    def fill(self, value):
        if value:
            self.steps.add("fill")
        plain(self).fill(value)


class Library:
    """NumPy with arrays that note."""

    ndarray = np.ndarray

    def __getattr__(self, name):
        function = getattr(np, name)
        if isinstance(function, type) or not callable(function):
            return function

        def step(*args, **how):
            if name not in _MAKERS:
                Noted.steps.add(name)
            return noted(function(*plain(args), **{key: plain(x) for key, x in how.items()}))

        return step


class NotingDevice(SimDevice):
    """See the module."""

    name = "noting"
    xp = Library()

    def run(self, kernel, threads, args, how):
        super().run(kernel, threads, plain(args), how)

    def _from_host(self, array):
        return noted(np.array(array, order="C"))

    def _to_host(self, array):
        if not array.flags.c_contiguous:
            Noted.steps.add("copy of every so many-th")
        return np.array(plain(array))

    # by the driver, and by parts of CuPy that are compiled
    def copy_of(self, array):
        return noted(plain(array).copy())

    def order_of(self, keys):
        return noted(np.argsort(plain(keys), kind="stable"))

    def running_sum(self, counts):
        return noted(np.cumsum(plain(counts), dtype=np.int64))
