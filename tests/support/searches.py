"""Loops that are searches and loops that are nearly one, and the graphs they run on."""

import numpy as np

from lagpu import (
    Matrix,
    Vector,
    binary,
    loop,
    semiring,
)


def graph(n, symmetric, backend, seed=0):
    """Random, with a hub (chunks of edges), self-loops, duplicates and isolated vertices."""
    rng = np.random.default_rng(seed)
    count = 4 * n
    rows, cols = rng.integers(0, n, count), rng.integers(0, max(1, 3 * n // 4), count)
    rows[: n // 2] = 0
    if symmetric:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    return Matrix.from_coo(rows, cols, nrows=n, ncols=n, dup_op=binary.lor, backend=backend)


def levels_and_paths(A, f, levels, paths, times):
    for depth in loop(until_empty=f, times=times):
        levels(f.S) << depth
        paths(f.S) << f
        f(~levels.S, replace=True) << semiring.plus_first(f @ A)


def levels_behind(A, f, levels, times):
    for depth in loop(until_empty=f, times=times):
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)
        levels(f.S) << depth


def parents(A, f, levels, found, times):
    for depth in loop(until_empty=f, times=times):
        levels(f.S) << depth
        found(f.S) << f
        f(~levels.S, replace=True) << semiring.min_secondi(f @ A)


def twice(A, f, levels, other):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        other(f.S) << 7
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)


def raising(A, f, levels, short):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        short(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)


def start(dtype, n, sources, value, like):
    return Vector.from_coo(sources, value, dtype, size=n, like=like)
