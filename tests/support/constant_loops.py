"""Loops over blocks whose frontier has one known value, as their tests run them."""

import numpy as np
from loop_names import BITS, PER_SOURCE

from lagpu import BOOL, FP64, Matrix, loop, semiring

APART = PER_SOURCE
OF_BITS = BITS


def tuned(monkeypatch, backend, **constants):
    if backend.capabilities.fuses:
        from lagpu.backends.gpu.fused import search_many

        for name, value in constants.items():
            monkeypatch.setattr(search_many, name, value)


def with_bits(monkeypatch, backend, fit):
    """Whether the bits of what a row has found fit in shared memory; small graphs' do."""
    if not fit and backend.capabilities.fuses:
        from lagpu.backends.gpu.fused import search_many

        monkeypatch.setattr(search_many.PerSourceSearch, "_has_bits", lambda s: False)


def assert_per_source(backend):
    if backend.capabilities.fuses:
        assert backend.last_loop.startswith(APART)


def assert_of_bits(backend, why=None):
    if backend.capabilities.fuses:
        assert backend.last_loop.startswith(OF_BITS)
        assert why is None or backend.last_loop == f"{OF_BITS}: {why}"


def frontier_of(A, entries, k, dtype=BOOL, value=1):
    rows, cols = np.array(entries, np.int64).reshape(-1, 2).T
    values = dtype.numpy.type(value)
    return Matrix.from_coo(rows, cols, values, dtype, nrows=k, ncols=A.nrows, like=A)


# ---- loops: functions of their own, without assert, so that pytest leaves their code alone


def in_front(A, f, levels, times=None, semi=semiring.any_pair):
    for depth in loop(until_empty=f, times=times):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semi(f @ A)
    return levels, f


def behind(A, f, levels, times=None):
    for depth in loop(until_empty=f, times=times):
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)
        levels(f.S) << depth
    return levels, f


def turned(A, f, levels, times=None):
    for depth in loop(until_empty=f, times=times):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A.T)
    return levels, f


def several(A, f, levels, times=None):
    reached, other = Matrix(BOOL, *f.shape, like=A), Matrix(FP64, *f.shape, like=A)
    other[0, 1] = 2
    for depth in loop(until_empty=f, times=times):
        reached(f.S) << True
        levels(f.S) << depth
        other(f.S) << 2.5
        f(~reached.S, replace=True) << semiring.any_pair(f @ A)
    return levels, reached, other, f


def several_behind(A, f, levels, times=None):
    reached, other = Matrix(BOOL, *f.shape, like=A), Matrix(FP64, *f.shape, like=A)
    other[0, 1] = 2
    for depth in loop(until_empty=f, times=times):
        f(~reached.S, replace=True) << semiring.any_pair(f @ A.T)
        reached(f.S) << True
        levels(f.S) << depth
        other(f.S) << 2.5
    return levels, reached, other, f


LOOPS = [in_front, behind, turned, several, several_behind]
