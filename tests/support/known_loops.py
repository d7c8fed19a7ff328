"""A loop that is called again and again, on objects that are like those before or are not."""

from lagpu import binary, loop, semiring

RING = semiring.any_pair
number = 2
gone = 5  # for a local variable of this name that has no value


def function(x):
    return x * 2


def search(A, levels, frontier, ring=RING):
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << ring(frontier @ A)


def search_from(A, levels, frontier):
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth + 3
        frontier(~levels.S, replace=True) << RING(frontier @ A)


def relax(A, width, addend=1):
    for _ in loop(until_unchanged=width):
        width(accum=binary.min) << semiring.min_plus(width @ A)
        width << width.apply(binary.max, right=addend)


def blend(A, u, v):
    for _ in loop(until_empty=u, times=2):
        v(u.S) << u
        u(~v.S, replace=True) << semiring.any_pair(u @ A)


def both(A, ahead, x, y):
    for _ in loop(times=2):
        x << semiring.plus_times(x @ ahead)
        y << semiring.plus_times(y @ A)


def several(A, x, times):
    for _ in loop(times=times):
        x << semiring.plus_times(x @ A)


def watching(x, empty=None, unchanged=None):
    for _ in loop(until_empty=empty, until_unchanged=unchanged, times=2):
        x << x * 2


def carry(A, found, frontier):
    for _ in loop(until_empty=frontier):
        found(frontier.S) << frontier
        frontier(~found.S, replace=True) << semiring.any_first(frontier @ A)


def by_identity(x, one, other=None):
    for _ in loop(times=2):
        if one is other:
            x << x * 2
        else:
            x << x * 3


def by_global(x):
    for _ in loop(times=1):
        x << x * number


def cell(n):
    """Return a loop that reads the cell of n, what sets it, and what deletes it."""

    def by_cell(x):
        for _ in loop(times=1):
            x << x * n

    def change(other):
        nonlocal n
        n = other

    def delete():
        nonlocal n
        del n

    return by_cell, change, delete


def by_function(x):
    for _ in loop(times=1):
        x << function(x)


def by_attribute(x, box):
    for _ in loop(times=1):
        x << x * box.n


def by_local(x, gone, delete):
    if delete:
        del gone
    for _ in loop(times=1):
        x << x * gone


def of_two(x, y):
    for _ in loop(times=1):
        x << x * 2
        y << y * 2
