"""Loops over blocks whose frontier carries values, as their tests run them."""

import numpy as np

from lagpu import FP64, INT32, Matrix, loop


def frontier_of(like, entries, k, dtype):
    rows, cols, values = zip(*entries, strict=True) if entries else ((), (), ())
    return Matrix.from_coo(
        np.array(rows, np.int64), np.array(cols, np.int64), np.array(values, dtype.numpy), dtype,
        nrows=k, ncols=like.ncols, like=like,
    )  # fmt: skip


def empty(dtype, f):
    return Matrix(dtype, *f.shape, like=f)


# ---- loops: functions of their own, without assert, so that pytest leaves their code alone


def levels_and_values(A, f, levels, values, semi, times=None):
    for depth in loop(until_empty=f, times=times):
        levels(f.S) << depth
        values(f.S) << f
        f(~levels.S, replace=True) << semi(f @ A)
    return levels, values, f


def against_the_edges(A, f, levels, values, semi, times=None):
    for depth in loop(until_empty=f, times=times):
        levels(f.S) << depth
        values(f.S) << f
        f(~levels.S, replace=True) << semi(f @ A.T)
    return levels, values, f


def three_assigned(A, f, levels, values, reached, semi, times=None):
    for depth in loop(until_empty=f, times=times):
        values(f.S) << f
        reached(f.S) << 7
        levels(f.S) << depth
        f(~values.S, replace=True) << semi(f @ A)
    return levels, values, reached, f


def four_assigned(A, f, levels, values, reached, more, semi):
    for depth in loop(until_empty=f):
        values(f.S) << f
        reached(f.S) << 7
        more(f.S) << 8
        levels(f.S) << depth
        f(~values.S, replace=True) << semi(f @ A)
    return levels, values, reached, more


def behind(A, f, levels, semi):
    for depth in loop(until_empty=f):
        f(~levels.S, replace=True) << semi(f @ A)
        levels(f.S) << depth
    return (levels,)


def levels_alone(A, f, levels, semi):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semi(f @ A)
    return (levels,)


def searched(A, entries, k, semi, dtype=FP64, times=None, search=levels_and_values):
    f = frontier_of(A, entries, k, dtype)
    return search(A, f, empty(INT32, f), empty(dtype, f), semi, times)
