"""Loops in whose statements a user's operator stands more than once.

One kernel then has one functor of it, however many parts of the statement name it.
"""

from lagpu import BOOL, binary, indexunary, loop, monoid, semiring

TWICE = binary.register("test_twice", lambda x, y: x + 3 * y, "x + 3 * y")
UPPER = binary.register("test_upper", lambda x, y: x if x > y else y, "x > y ? x : y")
LARGEST = monoid.register("test_largest", UPPER, 0)  # its functor has the operator's text
LONGEST = semiring.register(LARGEST, TWICE)
PAST = indexunary.register("test_past", lambda x, i, j, y: x > i + y, "x > i + y", result=BOOL)


# ---- functions of their own, so that pytest leaves their code alone


def applied(A, u, v, w, s):
    for _ in loop(times=2):
        w(accum=TWICE) << u.apply(TWICE, right=1)


def applied_to_itself(A, u, v, w, s):
    for _ in loop(times=2):
        w(v.S, accum=TWICE) << w.apply(TWICE, left=2)


def met(A, u, v, w, s):
    for _ in loop(times=2):
        w(accum=TWICE) << u.ewise_mult(v, TWICE)
        w(accum=TWICE) << u.ewise_add(v, TWICE)
        w(accum=TWICE) << u.ewise_union(v, TWICE, 1, 2)


def selected(A, u, v, w, s):
    for _ in loop(times=2):
        w(accum=TWICE) << u.apply(TWICE, right=1)
        w(accum=TWICE) << u.select(PAST, -2)
        v(accum=UPPER) << w.select(PAST, 1)


def reduced(A, u, v, w, s):
    for _ in loop(times=2):
        w(accum=UPPER) << u.apply(UPPER, right=1)
        s(accum=UPPER) << w.reduce(LARGEST)
        w(accum=TWICE) << v.apply(TWICE, right=s)


def multiplied(A, u, v, w, s):
    for _ in loop(times=2):
        w(accum=TWICE) << LONGEST(u @ A)
        v(accum=UPPER) << LONGEST(A @ w)


LOOPS = (applied, applied_to_itself, met, selected, reduced, multiplied)
