"""A simulated device whose arrays note the steps for which an array library compiles a kernel."""

import sys
from pathlib import Path

import numpy as np

from lagpu.backends.gpu.device.sim import SimDevice

# CuPy has these compiled, or they compute nothing.
COMPILED = {"empty_like", "ndim"}
_MAKERS = ("empty", "zeros", "empty_like", "ascontiguousarray", "asarray")


def note(step):
    """Note a step with the line that takes it."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ or "numpy" in frame.f_globals["__name__"]:
        frame = frame.f_back
    if step not in COMPILED:
        Noted.steps.add(f"{step}, {Path(frame.f_code.co_filename).name}:{frame.f_lineno}")


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

    steps: set[str] = set()  # noqa: RUF012  # of all arrays, with the lines

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **how):
        note(ufunc.__name__)
        if out is not None:
            how["out"] = plain(out)
        return noted(getattr(ufunc, method)(*plain(inputs), **how))

    def __array_function__(self, function, types, args, kwargs):
        note(function.__name__)
        return noted(function(*plain(args), **{name: plain(x) for name, x in kwargs.items()}))

    def astype(self, dtype, **how):
        if np.dtype(dtype) != self.dtype:
            note("astype")
        return noted(plain(self).astype(dtype, **how))

    def copy(self, order="C"):
        note("copy")
        return noted(plain(self).copy(order))

    def __getitem__(self, key):
        if any(isinstance(k, np.ndarray) for k in (key if isinstance(key, tuple) else (key,))):
            note("take")
        return noted(plain(self)[plain(key)])

    def __setitem__(self, key, value):
        note("put")
        plain(self)[plain(key)] = plain(value)

    def fill(self, value):
        if value:
            note("fill")
        plain(self).fill(value)


class Library:
    """NumPy with arrays that note."""

    ndarray = np.ndarray

    def __getattr__(self, name):
        function = getattr(np, name)
        if isinstance(function, type) or not callable(function):
            return function

        def step(*args, **how):
            given = args[0] if args else None
            if name not in _MAKERS or (isinstance(given, Noted) and not given.flags.contiguous):
                note(name)
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
            note("copy of every so many-th")
        return np.array(plain(array))

    # by the driver, and by parts of CuPy that are compiled
    def copy_of(self, array):
        return noted(plain(array).copy())

    def order_of(self, keys):
        return noted(np.argsort(plain(keys), kind="stable"))

    def running_sum(self, counts):
        return noted(np.cumsum(plain(counts), dtype=np.int64))
