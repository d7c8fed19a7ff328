"""Every statement over shapes with a size of 0, by plain loops: where nothing is, nothing is found.

SuiteSparse 9.4.5 stores a matrix without positions as one in which every entry is there.
"""

from itertools import product

import numpy as np
import pytest
import reference
from matches import assert_matches
from reference import How, PlainMatrix, PlainVector
from samples import sampled
from strategies import mask_of, vector
from strategies import matrix as from_entries

from lagpu import BOOL, INT64, Matrix, Vector, binary, indexunary, monoid, semiring, unary

SIZES = (0, 3)
SHAPES = [shape for shape in product(SIZES, repeat=3) if 0 in shape]
NAMES = ("plus_times", "plus_pair", "any_pair", "min_plus", "plus_firsti")
WAYS = [
    (kind, accum, replace)
    for kind, accum, replace in product(
        (None, "S", "~S", "V", "~V"), (None, binary.plus), (False, True)
    )
    if kind is not None or not replace
]


def grid(m, n, dtype=INT64, value=2):
    """A matrix with every entry there, all of one value."""
    x = dtype.numpy.type(value)
    return PlainMatrix(m, n, dtype, {(i, j): x for i in range(m) for j in range(n)})


def matrix(A, backend):
    """The lagpu matrix of a `Grid`; without positions, a part of a matrix of one value."""
    if A.places:
        return from_entries(A, backend)
    whole = from_entries(grid(9, 9, A.dtype), backend)
    return whole[: A.nrows, : A.ncols].new()


def plain(n, dtype=INT64, value=2):
    return PlainVector(n, dtype, {i: dtype.numpy.type(value) for i in range(n)})


def positions(x):
    return {at: [value] for at, value in x.entries.items()}


def check_written(backend, call, result, shape):
    """Write a result in every way, into an output that is empty or full, against the model."""
    two = len(shape) == 2
    live = matrix if two else vector
    for (kind, accum, replace), there in product(WAYS, (False, True)):
        w = (grid if two else plain)(*shape, INT64, 5)
        if not there:
            w.entries = {}
        m = (grid if two else plain)(*shape, INT64, 1)
        for at in list(m.entries)[::2]:
            m.entries[at] = np.int64(0)
        if kind is None:
            how = How(accum=accum, replace=replace)
        else:
            how = How(m, "S" in kind, "~" in kind, accum, replace)
        output, mask = live(w, backend), live(m, backend)
        output(mask_of(how, mask if kind else None), accum=accum, replace=replace) << call()
        expected = reference.write(w, result, INT64, how)
        assert_matches(output, expected)


@pytest.mark.few_on_sim(3)
@pytest.mark.each_value
@pytest.mark.parametrize(("name", "shape"), sampled(product(NAMES, SHAPES), 4))
def test_products(backend, name, shape):
    m, k, n = shape
    op, A, B = semiring[name], grid(m, k), grid(k, n)
    left, right = matrix(A, backend), matrix(B, backend)
    turned = matrix(A.T, backend).T
    expected = reference.mxm(A, B, op)
    check_written(backend, lambda: op(left @ right), expected, (m, n))
    check_written(backend, lambda: op(turned @ right), expected, (m, n))
    check_written(backend, lambda: op(turned @ matrix(B.T, backend).T), expected, (m, n))
    if n == 0:
        u = plain(k)
        expected = reference.product(A, u, op, flip=False)
        check_written(backend, lambda: op(left @ vector(u, backend)), expected, (m,))
        v = plain(m)
        expected = reference.product(A, v, op, flip=True)
        check_written(backend, lambda: op(vector(v, backend) @ left), expected, (k,))
        written = Vector(INT64, k, backend=backend)
        written[:] = 2  # written in place, not read from arrays
        expected = reference.product(A, u, op, flip=False)
        check_written(backend, lambda: op(left @ written), expected, (m,))


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize(("m", "n"), [s for s in product(SIZES, repeat=2) if 0 in s])
def test_statements_on_matrices(backend, m, n):
    A = grid(m, n)
    live, turned, shape = matrix(A, backend), matrix(A.T, backend).T, (m, n)
    ones = {"left_default": 1, "right_default": 1}
    calls = [
        lambda: live.ewise_add(live, "plus"),
        lambda: live.ewise_mult(turned, "times"),
        lambda: live.ewise_union(turned, "plus", **ones),
        lambda: live.apply(unary.ainv),
        lambda: live.apply(indexunary.rowindex),
        lambda: live.select("valuegt", 1),
        lambda: live,
        lambda: turned,
        lambda: 7,
    ]
    for call in calls:
        check_written(backend, call, {}, shape)
    for op in ("plus", "any", "lor"):
        assert live.reduce(op).new().is_empty
        check_written(backend, lambda op=op: live.reduce_rowwise(op), {}, (m,))
        check_written(backend, lambda op=op: live.reduce_columnwise(op), {}, (n,))
    for p, q in product(SIZES, repeat=2):
        check_written(backend, lambda s=(p, q): live.kronecker(matrix(grid(*s), backend), "times"),
                      {}, (m * p, n * q))  # fmt: skip
    assert live.nvals == live.T.new().nvals == live.dup(BOOL).nvals == 0
    assert live.isequal(turned.new())
    assert [len(part) for part in live.to_csc()] == [n + 1, 0, 0]
    everything = Matrix(INT64, m, n, backend=backend)
    everything << 1
    assert everything.nvals == 0
    assert everything.reduce_rowwise("plus").new().nvals == 0


def test_parts_of_a_matrix_that_hold_nothing(backend):
    A = grid(3, 3)
    live = matrix(A, backend)
    for rows, cols in product(([], [0, 2], slice(None)), repeat=2):
        shape = tuple(len(range(3)[i] if isinstance(i, slice) else i) for i in (rows, cols))
        if 0 not in shape:
            continue
        part = live[rows, cols].new()
        assert (part.shape, part.nvals) == (shape, 0)
        assert part.reduce_rowwise("plus").new().nvals == 0
        product_of_part = semiring.plus_pair(part @ live[cols, :].new()).new()
        assert product_of_part.nvals == 0
        C = live.dup()
        C[rows, cols] << part
        C[rows, cols] = 9
        C(accum="plus")[rows, cols] << part
        assert_matches(C, positions(A))
    for rows in ([], [1]):
        k_by_0 = live[rows, []].new()
        assert semiring.plus_pair(k_by_0 @ live[[], :].new()).new().nvals == 0


def test_vectors_of_size_0(backend):
    u = vector(plain(0), backend)
    for call in (
        lambda: u.ewise_add(u, "plus"),
        lambda: u.ewise_mult(u, "plus"),
        lambda: u.ewise_union(u, "plus", 1, 1),
        lambda: u.apply("plus", 1),
        lambda: u.select("valuegt", 0),
        lambda: u[[]],
        lambda: u,
        lambda: 3,
    ):
        check_written(backend, call, {}, (0,))
    assert u.reduce(monoid.plus).new().is_empty
    assert u.diag().nvals == u.diag(0).shape[0] == 0
    w = vector(plain(3), backend)
    w.resize(0)
    assert (w.nvals, w.reduce("plus").new().is_empty) == (0, True)
    A = Matrix(INT64, 3, 0, backend=backend)
    assert semiring.plus_second(A @ w).new().nvals == 0
    assert semiring.plus_pair(A @ w).new().nvals == 0
