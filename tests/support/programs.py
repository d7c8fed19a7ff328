"""Loops that run as generated loops."""

from lagpu import FP64, Vector, binary, loop, semiring, unary


def components(A, label):
    for _ in loop(until_unchanged=label):
        label(accum=binary.min) << semiring.min_second(A @ label)


def within(A, reached, frontier, k):
    for depth in loop(times=k):
        reached(frontier.S) << depth
        frontier << semiring.any_pair(frontier @ A)


def walks(A, x, total, k):
    for _ in loop(times=k):
        x << semiring.plus_times(x @ A)
        total(accum=binary.plus) << x


def shortest_paths(A, source):
    paths, frontier = (Vector(FP64, A.nrows, like=A) for _ in range(2))
    frontier[source] = 1
    for _ in loop(until_empty=frontier):
        paths(frontier.S) << frontier
        frontier(~paths.S, replace=True) << semiring.plus_first(frontier @ A)
    return paths


def relax(A, d, changed, new):
    for _ in loop(until_empty=changed):
        new << semiring.min_plus(changed @ A)
        changed << new.ewise_mult(d, binary.lt)
        changed(changed.V, replace=True) << new
        changed(~d.S) << new
        d(accum=binary.min) << new


def normalise(A, x, y, k):
    for _ in loop(times=k):
        y(~x.V, replace=True) << 7
        y << x.apply(binary.minus, right=1)
        x(y.V, accum=binary.plus) << y.apply(unary.abs)
        x(x.S, replace=True) << x.ewise_union(y, binary.max, left_default=0, right_default=3)
        y << semiring.max_plus(A @ x)


# Sizes at which a warp of a program takes 2, 4 and 32 words at once; on a GPU 2 and 32.
TILED = {"sim": (2049, 4127, 33_001), "gpu": (300_001, 4_400_001), "cpu": ()}
