"""Bodies of loops with more than statements on vectors, which still run as one kernel.

Each function takes a matrix whose columns add up to at most 1 and returns what its loop writes.
"""

import numpy as np

from lagpu import (
    BOOL,
    FP32,
    FP64,
    INT32,
    INT64,
    Scalar,
    Vector,
    agg,
    binary,
    loop,
    select,
    semiring,
    unary,
)


def full(A, value=1.0, dtype=FP64):
    return Vector.from_scalar(value, A.nrows, dtype, like=A)


def numbered(A, dtype=FP64):
    return Vector.from_dense(np.arange(1, A.nrows + 1), dtype=dtype, like=A)


def search(A):
    levels, q = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    q[0] = True
    return levels, q


# ---- scalars


def root(A):
    """A norm that is computed of scalars, and scalars of scalars."""
    x, s, t = numbered(A), Scalar(FP64), Scalar(FP64, 2.0)
    for _ in loop(times=5):
        x << semiring.plus_times(x @ A)
        s << x @ x
        s << s.apply(unary.sqrt)
        t << t * 2 + s / (t + 1)
        x << x / (s * 0.5)
        x << x + t
    return x, s, t


def empties(A):
    """Scalars without a value on either side of each way to combine two."""
    x, none = full(A), Vector(FP64, A.nrows, like=A)
    e, a, b, c, d = (Scalar(FP64) for _ in range(5))
    for _ in loop(times=3):
        e << none.reduce("plus")
        a << e + 2.5
        b << e * 2.5
        c << 1.0 - e
        d << e - a
        a << a.select("valuegt", d)
        x << x * 0.5
    return x, e, a, b, c, d


def integers(A):
    """Scalars of other types, with operators of one and of two operands, and accumulators."""
    x, i, u, f, flag = (
        full(A, 3, INT64),
        Scalar(INT64, 7),
        Scalar(INT32, 2),
        Scalar(FP32),
        Scalar(BOOL),
    )
    for _ in loop(times=4):
        i << i * u + 1
        i(accum=binary.plus) << -u
        f << i / u
        f << abs(f)
        flag << (i > 20)
        flag << ~flag
        u << u.apply("plus", left=1)
        x << x + i
    return x, i, u, f, flag


def swapped(A):
    """Scalars that read each other before and after they are written."""
    x, a, b = full(A), Scalar(FP64, 1), Scalar(FP64, 1)
    for _ in loop(times=6):
        x << x * a
        a << a + b
        b << a - b
        x << x / b
        a << a * x.reduce("max")
    return x, a, b


# ---- until=


def close(A):
    x, y, change, done = full(A), full(A), Scalar(FP64), Scalar(BOOL)
    for _ in loop(times=100, until=done):
        y << 0.5 * semiring.plus_times(x @ A) + 0.5
        x << abs(y - x)
        change << x.reduce("plus")
        done << (change < 1e-4)
        x << y
    return x, change, done


def never_bounded(A):
    """No other bound: it ends when the scalar has a value that is not 0."""
    x, n, left = full(A), Scalar(INT64, 0), Scalar(INT64, 5)
    for _ in loop(until=left):
        n << n + 1
        x << x + n
        left << n // 4
        left << left.select("valuene", 0)
    return x, n, left


def target(A, goal=9):
    levels, q = search(A)
    found = Scalar(BOOL)
    for depth in loop(until_empty=q, until=found):
        levels(q.S) << depth
        found << q[goal]
        q(~levels.S, replace=True) << semiring.any_pair(q @ A)
    return levels, q, found


def settled(A):
    """With until_unchanged: the first of both ends it."""
    x, n, enough = numbered(A, INT64), Scalar(INT64), Scalar(BOOL)
    for _ in loop(until_unchanged=x, until=enough):
        x << binary.min(x | semiring.min_second(A @ x))
        n << x.reduce("plus")
        enough << (n < 30)
    return x, n, enough


# ---- the counter


def next_level(A):
    levels, q = search(A)
    for d in loop(until_empty=q):
        levels(q.S) << d + 1
        q(~levels.S, replace=True) << semiring.any_pair(q @ A)
    return levels, q


def heat(A, t=2.0):
    x, total = full(A), full(A)
    for k in loop(times=8):
        x << semiring.plus_times(x @ A)
        x << x * (t / (k + 1))
        total(binary.plus) << x
    return x, total


def counted(A, n=5):
    x, y, s = full(A), full(A, 2, INT64), Scalar(FP64, 1)
    for k in loop(times=7):
        s << s * (k + 1)
        s << s + k
        x << x + 1 / (3 + k * s)
        x << x.select("valuegt", -k * 0.1)
        y << y + (2 * k + n) // 2 + (k % 3 - (k + 7) // 2)
        y << y.apply("times", left=n - k)
        x << x.ewise_union(y, binary.plus, k, 0.5 * k)
    return x, y, s


def of_small_floats(A):
    """The counter in a vector of FP32, where a number of Python is one of FP32."""
    x = full(A, 0.1, FP32)
    for k in loop(times=9):
        x << x * (0.1 / (k + 3)) + k
    return (x,)


# ---- tests and functions


def doubled(x):
    """One return, with text before it."""
    return x * 2


def branches(A, damped=True, tolerance=None, name="a"):
    def step(x):
        return semiring.plus_times(doubled(x) @ A)

    mix = lambda x, a: a * x + 0.15  # noqa: E731
    x, y = full(A), full(A)
    for _ in loop(times=5):
        if A.nrows > 5 and tolerance is None:
            x << step(x)
        else:
            x << x + 1
            x << x * 2
        if damped:
            x << mix(x, 0.85)
        pass
        if not damped or name == "b":
            x << x / y.reduce("max")
        elif x.dtype is y.dtype:
            y << y + 1
    return x, y


def other_branches(A):
    return branches(A, False, 1.0, "b")


factor = 2.0


def by_factor(x):
    return x * factor


def of_a_function(x):
    for _ in loop(times=3):
        x << by_factor(x)


# ---- elements


def elements(A, i=2):
    x, s, t = numbered(A), Scalar(FP64), Scalar(FP64)
    for _ in loop(times=4):
        x << semiring.plus_times(x @ A)
        x[i] << 3.0
        x[i + 1 - 1] = 4.0
        s << x[0]
        t << x[-1]
        x << x + s
        x[5] << s
        s << x[5]
    return x, s, t


def held_elements(A):
    """The same of vectors that each warp holds."""
    x, s, t = Vector.from_dense([1.0, 2, 3], like=A), Scalar(FP64), Scalar(FP64)
    y = full(A)
    for _ in loop(times=4):
        x[1] << 0.5
        s << x[1]
        s << s + x.reduce("plus")
        t << x[2]
        x << x * s
        y << y * t
    return x, y, s, t


def deleting(A, i=4):
    """A scalar without a value deletes an entry, by either way to write it."""
    x, y, s = numbered(A), Vector.from_dense([1.0, 2, 3], like=A), Scalar(FP64)
    for k in loop(times=5):
        s << x[i]
        s << s.select("valuelt", k * 3)
        x[i + 1] << s
        x[0] = s
        y[1] << s
        x(x.S) << x + 1
        y << y + 1
        x[i] << k
    return x, y, s


# ---- aggregators


def means(A):
    x, s, t, i = numbered(A), Scalar(FP64), Scalar(FP64), Scalar(INT64)
    none, whole = Vector(FP64, A.nrows, like=A), numbered(A, INT64)
    whole << whole * 7 % 31  # without ties by rounding
    for _ in loop(times=3):
        x << semiring.plus_times(x @ A)
        s << x.reduce(agg.mean)
        t << x.reduce(agg.stdp)
        x << x + s
        i << whole.reduce(agg.argmax)
        none << select.value(x < 0)
        s << none.reduce(agg.L2norm)
    return x, s, t, i


# ---- vectors as indices


def jumping(A):
    p = Vector.from_dense(np.maximum(np.arange(A.nrows) - 1, 0), like=A)
    for _ in loop(until_unchanged=p):
        p << p[p]
    return (p,)


def gathers(A):
    """Of other sizes, with indices that are missing, and values that are."""
    n = A.nrows
    p = Vector.from_coo([0, 1, 3], [n - 1, 0, 2], dtype=INT32, size=5, like=A)
    x, y, z = numbered(A), Vector(FP64, 5, like=A), Vector(FP64, 5, like=A)
    for _ in loop(times=3):
        x << semiring.plus_times(x @ A)
        y << x[p]
        x << x.select("valuegt", 3)
        z(y.S, accum=binary.plus) << x[p]
    return x, y, z


def outside(p, x, y):
    for _ in loop(times=4):
        x << x + 1
        y << x[p]
        p << p + 3


# ---- vectors beside the counter


def compared(A):
    """A number of each iteration kept, and the levels of a search tested."""
    x, at, s = full(A), Vector.from_dense(np.arange(3), like=A), Scalar(FP64)
    sums, late = Vector(FP64, 3, like=A), Vector(BOOL, A.nrows, like=A)
    for k in loop(times=3):
        x << semiring.plus_times(x @ A) / A.nrows
        s << x.reduce("plus")
        sums((at == k).V) << s
        late << (k + 1 < x)
    return x, s, sums, late


BODIES = (
    *(root, empties, integers, swapped, close, never_bounded, target, settled),
    *(next_level, heat, counted, of_small_floats, branches, other_branches),
    *(elements, held_elements, deleting, means, jumping, gathers, compared),
)


# ---- what is not one kernel, and why


def divides(A):
    x = full(A)
    for k in loop(times=3):
        x << x / (1.0 + 1 / (k + 1 - 0.5))
    return (x,)


def divides_by_nothing(A):
    x = full(A)
    for k in loop(times=3):
        x << x + 1 / (k - 5)
    return (x,)


def too_large(A):
    x = full(A, 1, INT32)
    for k in loop(times=3):
        x << x + k * 5
    return (x,)


def halves(A):
    x = full(A, 1, INT64)
    for k in loop(times=1):
        x << k / 2
    return (x,)


def of_numpy(A):
    x, h = full(A), np.float64(0.5)
    for k in loop(times=3):
        x << x * (h * k + 1)
    return (x,)


def of_numpy_in_parentheses(A):
    x, h = full(A), np.float64(0.5)
    for k in loop(times=3):
        x << x * (-h * (k + 1))
    return (x,)


def compares_numbers(A):
    x, n = full(A), 2
    for k in loop(times=3):
        x << x + (n > k)
    return (x,)


def tests_counter(A):
    x = full(A)
    for k in loop(times=3):
        if k % 2:
            x << x + 1
        x << x * 2
    return (x,)


def tests_scalar(A):
    x, s = full(A), Scalar(FP64, 0)
    for _ in loop(times=3):
        if s:
            x << x + 1
        s << 1
        x << x * 2
    return x, s


seen = []


def notes(A):
    def step(x):
        seen.append(1)
        return semiring.plus_times(x @ A)

    x = full(A)
    before = len(seen)
    for _ in loop(times=3):
        x << step(x)
    return x, len(seen) - before


def calls_another(A):
    f = lambda x: seen.append(1) or x  # noqa: E731
    x = full(A)
    before = len(seen)
    for _ in loop(times=3):
        x << f(x)
    return x, len(seen) - before


def unwritten(A):
    x, s = full(A), Scalar(BOOL, False)
    for _ in loop(times=3, until=s):
        x << x * 2
    return x, s


def own_aggregator(A):
    def finalize(x, opts):
        seen.append(1)
        return unary.sqrt(x)

    norm = agg.Aggregator("norm", composite=[agg.sum_of_squares], finalize=finalize)
    x, s = full(A), Scalar(FP64)
    before = len(seen)
    for _ in loop(times=3):
        s << x.reduce(norm)
        x << x + s
    return x, s, len(seen) - before


REFUSED = {
    divides_by_nothing: "what it computes with the counter may raise an error",
    too_large: "what it computes with the counter may not fit INT32",
    halves: "what it computes with the counter may raise an error",
    of_numpy: "h is a number of NumPy's in arithmetic with the counter",
    of_numpy_in_parentheses: "h is a number of NumPy's in arithmetic with the counter",
    compares_numbers: "n is compared with the counter, and is neither a vector nor a matrix",
    tests_counter: "tests what may change",
    tests_scalar: "an if tests s, which may change",
    notes: r"step\(\.\.\.\) is called, and it is more than one return",
    calls_another: r"f\(\.\.\.\) is called, and line \d+ has a Boolean expression",
    unwritten: "the body does not write the scalar of until=",
    own_aggregator: "norm is neither a lagpu object nor a number",
}


def levels_until(A, levels, frontier, ends):
    for depth in loop(until_empty=frontier, until=ends):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
