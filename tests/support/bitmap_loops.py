"""Loops over blocks that are no search: a user's own, as their tests run them.

Functions of their own, without assert, so that pytest leaves their code alone.
"""

import numpy as np

from lagpu import BOOL, FP64, INT32, INT64, Matrix, Scalar, Vector, agg, binary, loop, semiring


def block(like, entries, k, dtype):
    """Return a k x n matrix with these (row, column, value)."""
    rows, cols, values = zip(*entries, strict=True) if entries else ((), (), ())
    return Matrix.from_coo(
        np.array(rows, np.int64), np.array(cols, np.int64), np.array(values, dtype.numpy), dtype,
        nrows=k, ncols=like.ncols, like=like,
    )  # fmt: skip


def sources(A, k, dtype, value=None):
    """Return k x n: row r has an entry, r unless there is a `value`, at r times a stride."""
    n = A.ncols
    each = max(1, n // k)
    return block(A, [(r, r * each, r if value is None else value) for r in range(k)], k, dtype)


# ---------------------------------------------------------------- what somebody may want to know


def reached_in(A, k, steps):
    """How many of the walks of each number of steps end at a vertex, from each of k sources."""
    walks, total = sources(A, k, INT64, 1), sources(A, k, INT64, 1)
    for _ in loop(times=steps):
        walks << semiring.plus_first(walks @ A)
        total(accum=binary.plus) << walks
    return walks, total


def least_label(A, k):
    """The least seed from which a vertex is reached, once a row for each offset of the seeds."""
    label = sources(A, k, INT64)
    for _ in loop(until_unchanged=label):
        label(accum=binary.min) << semiring.min_first(label @ A)
    return (label,)


def distances(A, k, times=None):
    """Bellman-Ford from k sources: only what became nearer is looked at again."""
    d, changed = sources(A, k, INT64, 0), sources(A, k, INT64, 0)
    new = Matrix(INT64, k, A.ncols, like=A)
    nearer = Matrix(BOOL, k, A.ncols, like=A)
    for _ in loop(until_empty=changed, times=times):
        new << semiring.min_plus(changed @ A)
        nearer << new.ewise_mult(d, binary.lt)
        changed(nearer.V, replace=True) << new
        changed(~d.S) << new
        d(accum=binary.min) << new
    return d, changed


def within(A, k, steps=4):
    """Sums that look at the matrix' values alone: of one number, they are bits."""
    x, near = sources(A, k, FP64, 2), sources(A, k, INT32, 2)
    for _ in loop(times=steps):
        x << semiring.min_second(x @ A)
        near(accum=binary.max) << x
        x(~near.S, replace=True) << semiring.max_second(near @ A)
    return x, near


def exactly(A, k, steps=3):
    """Where a walk of so many steps may end: what it had reached before is forgotten."""
    x, last = sources(A, k, BOOL, True), Matrix(INT32, k, A.ncols, like=A)
    for depth in loop(times=steps):
        x << semiring.any_pair(x @ A)
        last(x.S) << depth
    return x, last


def inside(A, mask, first):
    """Bits of two products where a mask has entries."""
    f, x = first.dup(), Matrix(BOOL, *first.shape, like=A)
    for _ in loop(times=2):
        x(mask.S, replace=True) << semiring.any_pair(f @ A)
        f << x
    return (x,)


def outside(A, mask, first):
    """Bits of two products where a mask has no entries."""
    f, x = first.dup(), Matrix(BOOL, *first.shape, like=A)
    for _ in loop(times=2):
        x(~mask.S) << semiring.any_pair(f @ A)
        f << x
    return (x,)


def counts(A, k):
    frontier, paths = sources(A, k, FP64, 1), Matrix(FP64, k, A.ncols, like=A)
    for _ in loop(until_empty=frontier):
        paths(frontier.S) << frontier
        frontier(~paths.S, replace=True) << semiring.plus_first(frontier @ A)
    return frontier, paths


def masked_by_value(A, k):
    frontier, levels = sources(A, k, BOOL, True), Matrix(INT32, k, A.ncols, like=A)
    for depth in loop(until_empty=frontier):
        levels(frontier.V) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    return frontier, levels


def without_replace(A, k, times=3):
    frontier, levels = sources(A, k, BOOL, True), Matrix(INT32, k, A.ncols, like=A)
    for depth in loop(until_empty=frontier, times=times):
        levels(frontier.S) << depth
        frontier(~levels.S) << semiring.any_pair(frontier @ A)
    return frontier, levels


def accumulated(A, k):
    frontier, levels = sources(A, k, BOOL, True), Matrix(INT32, k, A.ncols, like=A)
    for depth in loop(until_empty=frontier):
        levels(frontier.S, accum=binary.plus) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    return frontier, levels


def against(A, k, times=2):
    """The matrix' rows, and sums that are masked by a structure."""
    frontier, seen = sources(A, k, INT64, 1), sources(A, k, INT64, 5)
    for _ in loop(times=times):
        frontier(seen.S) << semiring.max_times(frontier @ A.T)
        seen << semiring.plus_second(frontier @ A)
    return frontier, seen


def filled(A, k, times=2):
    """Numbers at all positions, and at those that a mask leaves out."""
    x, y, z = (sources(A, k, kind, 2) for kind in (INT32, INT64, FP64))
    near = Matrix(INT64, k, A.ncols, like=A)
    for depth in loop(times=times):
        y(~x.S, accum=binary.plus) << 3
        near << semiring.plus_first(y @ A)
        x << depth
        z(~y.V, replace=True) << 7
        z(accum=binary.plus) << x
        x(~z.S) << 1
    return x, y, z, near


def two_shapes(A, B, k):
    """Products with a matrix that is not square: blocks of two widths."""
    x, y = sources(A, k, INT64, 1), Matrix(INT64, k, B.ncols, like=A)
    for _ in loop(times=3):
        y(accum=binary.max) << semiring.plus_first(x @ B)
        x << semiring.min_first(y @ B.T)
        x << semiring.plus_first(x @ A)
    return x, y


# ------------------------------------------------------------------------ what is no such program


def with_a_vector(A, k):
    frontier, levels = sources(A, k, BOOL, True), Matrix(INT32, k, A.ncols, like=A)
    seen = Vector(INT32, A.ncols, like=A)
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        seen << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    return frontier, levels


def products_of_both(A, k):
    """The vector gets what the product before it has written."""
    x, u = sources(A, k, INT64, 1), Vector.from_dense(np.arange(k), like=A)
    y = Vector(INT64, A.ncols, like=A)
    for _ in loop(until_empty=x, times=1):
        x << semiring.plus_first(x @ A)
        y << semiring.plus_times(x.T @ u)
    return x, y


def summed_beside(A, k):
    x, total = sources(A, k, INT64, 1), Vector(INT64, 1, like=A)
    s = Scalar(INT64, name="s")
    for _ in loop(until_unchanged=x, times=1):
        x(accum=binary.plus) << semiring.plus_first(x @ A)
        s << x.reduce("plus")
        total << s
    return x, total


def with_sums(A, k):
    """Its scalars are sums, read by statements on matrices and on scalars, and end the loop."""
    x, total = sources(A, k, INT64, 1), Scalar(INT64, 0)
    most, mean, ended = Scalar(INT64), Scalar(FP64), Scalar(BOOL)
    for turn in loop(until=ended, times=9):
        x(accum=binary.plus) << semiring.plus_first(x @ A)
        most << x.reduce("max")
        x << x.apply("plus", right=most)
        total(accum=binary.plus) << turn * x.reduce()
        mean << x.reduce(agg.mean)
        ended << (most > 900)
    found = [float(s.value) for s in (total, most, mean, ended)]
    return x, Vector.from_dense(found, like=A)


def until_it_is_counted(A, k):
    """A search that is none, as a scalar has the number of entries found."""
    seen, f, found = sources(A, k, INT64, 1), sources(A, k, INT64), Scalar(INT64, 0)
    for _ in loop(until_empty=f):
        seen(f.S) << 1
        found(accum=binary.plus) << f.reduce(agg.count)
        f(~seen.S, replace=True) << semiring.any_first(f @ A)
    return seen, Vector.from_dense([found.value], like=A)


def with_a_scalar(A, k):
    """It is read before any statement is recorded, and between two."""
    x, s = sources(A, k, INT64, 1), Scalar(INT64, 4, name="s")
    for _ in loop(times=2):
        x << x.apply("plus", right=s)
        x << semiring.plus_first(x @ A)
        x << x.apply("times", left=s)
    return (x,)


def by_rows(A, k):
    x, where = sources(A, k, INT64, 1), Matrix(INT64, k, A.ncols, like=A)
    for _ in loop(times=2):
        where << x.apply("colindex", 0)
        x << semiring.plus_first(where @ A)
    return x, where


def by_places(A, k):
    x = sources(A, k, INT64, 1)
    for _ in loop(times=2):
        x << semiring.plus_first(x @ A)
        x << x.select("rowle", 0)
    return (x,)


def turned(A, k):
    """A block's transpose is none."""
    x, y = sources(A, k, INT64, 1), Matrix(INT64, A.ncols, k, like=A)
    for _ in loop(times=2):
        y << semiring.plus_first(A @ x.T)
        x(accum=binary.plus) << semiring.max_first(x @ A)
    return x, y


def writes_its_matrix(A, k):
    """The right operand is a block too, and written."""
    few = Matrix(INT64, A.ncols, 3 * A.ncols, like=A)
    x = sources(A, k, INT64, 1)
    y = Matrix(INT64, k, 3 * A.ncols, like=A)
    for _ in loop(times=2):
        few << 1
        y(accum=binary.plus) << semiring.plus_first(x @ few)
    return few, y


def all_large(A, k):
    x = A.dup()
    for _ in loop(times=k):
        x << semiring.any_pair(x @ A)
    return (x,)


def raising(A, k):
    x, short = sources(A, k, INT64, 1), Matrix(INT64, k, A.ncols + 1, like=A)
    try:
        for _ in loop(times=2):
            x << semiring.plus_first(x @ A)
            x(short.S) << 1
    finally:
        LEFT.append(x)


#: What `raising` had written.
LEFT = []
