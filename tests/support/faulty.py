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
from lagpu.backends.gpu.storage.stores import VectorStore
from lagpu.backends.guard import overridden
from lagpu.errors import CrosscheckFailed
from lagpu.operations import Assign, Rejection, method_of


class FaultyDevice(SimDevice):
    """The simulated device, which compiles kernels with one thing changed in their text."""

    def __init__(self, right, wrong, at=None):
        super().__init__()
        self.right, self.wrong, self.at = right, wrong, at
        self.changed = {}

    def packed(self, kernel, *args):  # of every launch
        if self.right in kernel.source and (self.at is None or self.at in kernel.source):
            if kernel not in self.changed:
                before, after = kernel.source.split(self.at, 1) if self.at else ("", kernel.source)
                text = before + (self.at or "") + after.replace(self.right, self.wrong, 1)
                self.changed[kernel] = dataclasses.replace(kernel, source=text)
            kernel = self.changed[kernel]
        return super().packed(kernel, *args)


class SpoiledLoop:
    """A loop that runs as one program, and what is done behind it."""

    def __init__(self, loop, spoil):
        self.loop, self.spoil = loop, spoil
        self.name, self.why, self.nbytes = loop.name, loop.why, loop.nbytes

    def run(self):
        self.loop.run()
        self.spoil()


def with_kernels(right, wrong, at=None, kernel=None):
    """Return a copy of sim whose kernels have `wrong` for `right`, the first one behind `at`."""
    place = GpuBackend("faulty", FaultyDevice(right, wrong, at))
    return overridden(place, kernel, None), place.device


def with_methods(**methods):
    """Return a copy of sim with other methods: ``method(backend, right, *args)``."""
    place = GpuBackend("faulty", SimDevice())
    for name, wrong in methods.items():
        setattr(place, name, functools.partial(wrong, place, getattr(place, name)))
    return place


def with_operations(**wrong):
    """Return a copy of sim that runs some operations wrong, by the names that messages give them.

    Statements call ``wrong(backend, right, statement)``, numbers ``wrong(backend, right,
    operation)``; ``right(...)`` runs either.
    """
    place = GpuBackend("faulty", SimDevice())
    execute, evaluate = place.execute, place.evaluate

    def run(right, x, operation, handle):
        name = method_of(operation, 1 if isinstance(handle, VectorStore) else 2)
        return wrong[name](place, right, x) if name in wrong else right(x)

    place.execute = lambda s: run(execute, s, s.operation, s.out)
    place.evaluate = lambda x: run(evaluate, x, x, x.operand)
    return place


def with_loops(spoil):
    """Return a copy of sim whose loops that run as one program end with ``spoil(backend, out)``.

    `out` is what the first statement of the body writes.
    """
    place = GpuBackend("faulty", SimDevice())
    right = place.plan_loop

    def plan_loop(body, turns):
        loop = right(body, turns)
        if isinstance(loop, Rejection):
            return loop
        return SpoiledLoop(loop, lambda: spoil(place, body[0].out))

    place.plan_loop = plan_loop
    return place


def holding(indices, values):
    """Return an operation that writes these entries, whatever it should write."""

    def operation(place, right, s):
        wrong = place.vector_from_coo(np.array(indices), np.array(values), s.out.dtype, s.out.size)
        right(s._replace(desc=s.desc._replace(mask=None), operation=Assign(wrong)))

    return operation


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
