"""Loops over sparse matrices whose entries stay within one pattern, and some that leave it."""

from lagpu import (
    BOOL,
    FP64,
    INT32,
    INT64,
    Matrix,
    Scalar,
    Vector,
    agg,
    binary,
    loop,
    semiring,
    unary,
)


def empty(A, dtype=INT64):
    return Matrix(dtype, *A.shape, like=A)


def truss(A, k=4):
    C = A.apply(unary.one).new(INT64)
    for _ in loop(until_unchanged=C):
        C(C.S, replace=True) << semiring.plus_pair(C @ C.T)
        C << C.select("valuege", k - 2)
        C << C.apply(unary.one)
    return (C,)


def until_few_are_left(A):
    """Its scalars are a sum that a matrix takes, and one that ends the loop."""
    C, total, few = A.apply(unary.one).new(INT64), Scalar(INT64, 0), Scalar(BOOL)
    for turn in loop(until=few, times=6):
        C(C.S, replace=True) << semiring.plus_pair(C @ C.T)
        C << C.select("valuegt", turn)
        total(accum=binary.plus) << C.reduce()
        few << (total > 40 * C.reduce(agg.count))
        C << C.apply(binary.min, right=total)
    return C, Vector.from_dense([total.value, few.get(-1)], like=A)


def until_it_is_empty(A):
    """Each iteration keeps what has more than the iteration's number of common neighbours."""
    C, S = A.apply(unary.one).new(INT64), empty(A)
    for k in loop(until_empty=C, times=20):
        S(C.S, replace=True) << semiring.plus_pair(C @ C)
        S << S.select("valuegt", k)
        C(S.S, replace=True) << 1
    return C, S


def sides(A):
    """Each way to transpose a side; other types; masks by value, accumulators."""
    C, T, F = A.dup(FP64), empty(A, FP64), empty(A, INT32)
    for _ in loop(times=3):
        T(C.S) << semiring.plus_times(C.T @ C)
        F(T.S, accum=binary.max) << semiring.max_min(C @ T.T)
        C(C.S) << semiring.min_plus(C.T @ T.T)
        F(F.V, replace=True) << semiring.plus_second(T @ C)
        C << C.select("valuelt", 40)
        T(C.S, replace=True) << semiring.plus_first(C @ C)
        C << C.apply(binary.minus, right=0.5)
    return C, T, F


def entrywise(A):
    """Statements on entries, with masks that keep what is not in the pattern."""
    C, T, B = A.dup(), empty(A), empty(A, BOOL)
    for _ in loop(times=3):
        T(C.S, replace=True) << semiring.plus_times(C @ C)
        B << T.ewise_mult(C, binary.gt)
        C(~B.V) << C.ewise_add(T, binary.min)
        T(~C.S, replace=True) << T
        C(accum=binary.plus) << T
        T(B.V) << 7
        C << C.ewise_union(T, binary.minus, 1, 2)
        C << C.select("valuele", 100)
    return C, T, B


def any_of(A):
    C = A.apply(unary.one).new(BOOL)
    for _ in loop(times=2):
        C(C.S, replace=True) << semiring.any_pair(C @ C)
    return (C,)


def of_places(A):
    """The multiplication reads the rows and columns of a product."""
    C = A.dup()
    for _ in loop(times=2):
        C(C.S, replace=True) << semiring.max_secondi(C @ C.T)
    return (C,)


WITHIN = (truss, until_few_are_left, until_it_is_empty, sides, entrywise, any_of, of_places)


def unmasked(A):
    C = A.dup()
    for _ in loop(times=2):
        C << semiring.plus_times(C @ C)
        C << C.apply("min", right=9)
    return (C,)


def complemented(A):
    C = A.dup()
    for _ in loop(times=2):
        C(~C.S) << semiring.plus_times(C @ C)
    return (C,)


def of_another(A):
    """A matrix with entries of its own, which may be elsewhere."""
    C, B = A.dup(), A.T.new()
    for _ in loop(times=2):
        C(C.S) << semiring.plus_times(C @ B)
        C << C.ewise_add(B, binary.max)
    return (C,)


def filled(A):
    C = A.dup()
    for _ in loop(times=2):
        C(C.S) << semiring.plus_times(C @ C.T)
        C(~C.S) << 1
    return (C,)


def by_place(A):
    C = A.dup()
    for _ in loop(times=2):
        C(C.S) << semiring.plus_times(C @ C.T)
        C << C.select("tril", -1)
    return (C,)


def transposed(A):
    C, T = A.dup(), empty(A)
    for _ in loop(times=2):
        T(C.S, replace=True) << semiring.plus_times(C @ C.T)
        C << C.ewise_add(T.T, binary.min)
    return C, T


def chosen(A):
    C = A.dup()
    for _ in loop(times=2):
        C(C.S) << semiring.plus_times(C @ C.T)
        C[0, 0] << 3
    return (C,)


OUTSIDE = {
    unmasked: "the body writes the matrix of a product",
    complemented: "the body writes the matrix of a product",
    of_another: "generated loop: ",  # of bitmap matrices
    filled: "the body writes the matrix of a product",
    by_place: "the body writes the matrix of a product",
    transposed: "the body writes the matrix of a product",
    chosen: "eager: ",
}
