"""Sweeps over vectors, and the graphs they run on."""

import numpy as np

from lagpu import Matrix, binary, semiring, sweep


def brandes(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta.apply(binary.plus, right=1)
        share(here.S) << share.ewise_mult(paths, binary.truediv)
        pulled(above.S, replace=True) << semiring.plus_first(share @ A.T)
        delta(accum=binary.plus) << pulled.ewise_mult(paths, binary.times)


def by_the_pulled(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << paths.apply("minv")
        share(here.S, accum=binary.plus) << pulled.ewise_mult(paths, binary.truediv)
        pulled(above.S, replace=True) << semiring.plus_times(share @ A)
        pulled << pulled.ewise_mult(paths, binary.times)


def heights(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta.apply(binary.plus, right=1)
        pulled(above.S, replace=True) << semiring.max_first(share @ A.T)
        delta(accum=binary.max) << pulled


def many(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        paths(here.S, replace=True) << levels
        share(here.S, replace=True) << delta.ewise_union(
            paths, binary.minus, left_default=2, right_default=5
        )
        share(here.S) << share.select("valuegt", -4)
        pulled(above.S, replace=True) << semiring.min_plus(share @ A)
        pulled << pulled.ewise_mult(above, binary.first)
        delta(above.S) << pulled.ewise_add(delta, binary.min)


def graph(n, backend, seed, symmetric, hub=True):
    """Random, with a hub, self-loops and isolated vertices; values 1 to 7."""
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, n, 3 * n), rng.integers(0, max(1, 3 * n // 4), 3 * n)
    if hub:
        rows[: n // 2] = 0
    if symmetric:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    values = (np.arange(len(rows)) % 7 + 1).astype(np.int64)
    return Matrix.from_coo(rows, cols, values, nrows=n, ncols=n, dup_op="first", backend=backend)


def twins(hubs, leaves, backend):
    """Vertex 0, `hubs` whose rows are one row, and `leaves` that each of them has."""
    n, ends = 1 + hubs + leaves, np.r_[hubs, hubs + leaves * np.arange(1, hubs + 1)]
    indptr = np.r_[0, ends, np.full(leaves, ends[-1])]
    indices = np.r_[1 : hubs + 1, np.tile(np.arange(hubs + 1, n), hubs)]
    return Matrix.from_csr(indptr, indices, np.ones(len(indices), bool), ncols=n, backend=backend)
