"""Products and sums that are written under masks of every kind."""

import numpy as np

from lagpu import INT64, Matrix, Vector, binary, monoid, semiring


def written(place, n, kind):
    """Return outputs of products and sums under masks of a kind, on some place."""
    rng, where = np.random.default_rng(n), {"backend": place}
    count = 4 * n

    def matrix(rows):
        i, j = rng.integers(0, rows, count), rng.integers(0, n, count)
        values = rng.integers(-3, 9, count)
        shape = {"nrows": rows, "ncols": n, "dup_op": binary.min}
        return Matrix.from_coo(i, j, values, INT64, **shape, **where)

    share = {"empty": 0.0, "full": 1.0, "sparse": 0.1, "dense": 0.8}[kind]

    def mask(rows=None):
        there = np.flatnonzero(rng.random(n * (rows or 1)) < share)
        values = rng.integers(0, 2, len(there))  # some are zero
        if rows is None:
            return Vector.from_coo(there, values, INT64, size=n, **where)
        shape = {"nrows": rows, "ncols": n}
        return Matrix.from_coo(*np.divmod(there, n), values, INT64, **shape, **where)

    def vector():
        at = np.flatnonzero(rng.random(n) < 0.4)
        return Vector.from_coo(at, rng.integers(-4, 9, len(at)), INT64, size=n, **where)

    A, Q, R = matrix(n), matrix(2), matrix(2)
    u, w, m, M = vector(), vector(), mask(), mask(2)
    plus = semiring.plus_times
    for of, block in ((m.S, M.S), (m.V, M.V), (~m.S, ~M.S), (~m.V, ~M.V)):
        for how in ({}, {"replace": True}, {"accum": binary.plus}):
            for product in (u @ A, A @ u, u @ A.T):
                v = w.dup()
                v(of, **how) << plus(product)
                yield v
            for product in (Q @ A, Q @ A.T):
                C = R.dup()
                C(block, **how) << plus(product)
                yield C
            for x in (A.reduce_rowwise(monoid.plus), A.reduce_columnwise(monoid.min)):
                v = w.dup()
                v(of, **how) << x
                yield v
    v = m.dup()
    v(~v.S, accum=binary.plus, replace=True) << semiring.min_firsti(u @ A)
    yield v
