"""Backends with a planted fault, and the difference that a crosscheck must find."""

import dataclasses
import functools
import inspect

import numpy as np
import pytest

from lagpu import (
    crosscheck,
)
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.override import steered
from lagpu.errors import CrosscheckFailed


class FaultyDevice(SimDevice):
    """The simulated device, which compiles kernels with one thing changed in their text."""

    def __init__(self, right, wrong, at=None):
        super().__init__()
        self.right, self.wrong, self.at = right, wrong, at
        self.changed = {}

    def launch(self, kernel, *args, **more):
        if self.right in kernel.source and (self.at is None or self.at in kernel.source):
            if kernel not in self.changed:
                before, after = kernel.source.split(self.at, 1) if self.at else ("", kernel.source)
                text = before + (self.at or "") + after.replace(self.right, self.wrong, 1)
                self.changed[kernel] = dataclasses.replace(kernel, source=text)
            kernel = self.changed[kernel]
        super().launch(kernel, *args, **more)


def with_kernels(right, wrong, at=None, kernel=None):
    """Return a copy of sim whose kernels have `wrong` for `right`, the first one behind `at`."""
    place = GpuBackend("faulty", FaultyDevice(right, wrong, at))
    return steered(place, kernel, None), place.device


def with_methods(**methods):
    """Return a copy of sim with other methods: ``method(backend, right, *args)``."""
    place = GpuBackend("faulty", SimDevice())
    for name, wrong in methods.items():
        setattr(place, name, functools.partial(wrong, place, getattr(place, name)))
    return place


def holding(indices, values):
    """Return a method that writes these entries, whatever it should write."""

    def method(place, right, w, desc, *args):
        wrong = place.vector_from_coo(np.array(indices), np.array(values), w.dtype, w.size)
        place.assign(w, desc._replace(mask=None), wrong, None)

    return method


def difference(algorithm, *args, faulty):
    with pytest.raises(CrosscheckFailed) as caught:
        crosscheck(algorithm, *args, backends=("cpu", faulty))
    error = caught.value
    assert isinstance(error, AssertionError)
    assert not error.report.ok
    found = error.report.difference
    assert found.headline in str(error)
    assert found.headline in repr(error.report)
    assert (found.oracle, found.other) == ("cpu", "faulty")
    return found


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return next(first + k for k, line in enumerate(lines) if text in line)
