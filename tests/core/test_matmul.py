"""Matrix-vector products: every semiring, type, direction, transposition, mask, by plain loops."""

import itertools

import numpy as np
import pytest
import reference
from hypothesis import strategies as st
from loop_names import is_fused
from matches import assert_matches
from product_cases import FLOATS, inexact, product
from reference import How, PlainMatrix, PlainVector
from samples import covering
from strategies import (
    ACCUMS,
    BIG_SIZES,
    SEMIRINGS,
    TYPES,
    combination,
    for_all,
    how_written,
    mask_of,
    matrix,
    plain_matrix,
    plain_vector,
    sizes,
    vector,
)

import lagpu
from lagpu import BOOL, FP32, FP64, INT32, INT64, Matrix, Vector, binary, semiring
from lagpu.backends.gpu.ops.strategies import STRATEGIES
from lagpu.errors import InvalidValue, NotSupported

KERNELS = (None, *STRATEGIES, "push_virtual:3")


def draw_product(draw, backend):
    pick = combination(draw, backend, op=SEMIRINGS, w=TYPES, u=TYPES, A=TYPES, accum=ACCUMS)
    op = pick["op"]
    if inexact(op, pick["A"], pick["u"]) and not op.monoid.has_any_terminal:
        pick["w"] = FLOATS[TYPES.index(pick["w"]) % 2]
    flip, transpose = draw(st.booleans(), label="flip"), draw(st.booleans(), label="transpose")
    nrows, ncols = draw(sizes(), label="nrows"), draw(sizes(), label="ncols")
    if draw(st.booleans(), label="square"):
        ncols = nrows
    A = plain_matrix(draw, nrows, ncols, pick["A"], iso=draw(st.booleans(), label="iso"))
    used = A.T if transpose else A
    n_in, n_out = (used.nrows, used.ncols) if flip else (used.ncols, used.nrows)
    u = plain_vector(draw, n_in, pick["u"])
    how = how_written(draw, n_out, pick["accum"])
    w = plain_vector(draw, n_out, pick["w"])
    return A, u, w, how, op, flip, transpose


@for_all(cpu=500, compiled=60)
def test_product(backend, draw):
    A, u, w, how, op, flip, transpose = draw_product(draw, backend)
    chosen = "kernel" if backend.capabilities.kernels else "policy"
    choices = KERNELS if chosen == "kernel" else [None, *backend.capabilities.policies]
    choice = {chosen: draw(st.sampled_from(choices), label=chosen)}
    names = {"A": matrix(A, backend), "u": vector(u, backend), "w": vector(w, backend)}
    mask = how.mask and vector(how.mask, backend)
    if w.size == u.size:  # the output may be the input, and the mask either of them
        alias = draw(st.sampled_from(("", "w=u", "m=w", "m=u", "all")), label="alias")
        if alias in ("w=u", "all"):
            w, names["w"] = u, names["u"]
        if how.mask is not None and alias in ("m=w", "m=u", "all"):
            mask, how.mask = (names["u"], u) if alias == "m=u" else (names["w"], w)
    result = reference.product(A.T if transpose else A, u, op, flip=flip)
    dtype = op.types(*((u.dtype, A.dtype) if flip else (A.dtype, u.dtype)))[1]
    if inexact(op, A.dtype, u.dtype) and not (w.dtype.is_float or op.monoid.has_any_terminal):
        return  # aliased to an integer output: see `inexact`
    expected = reference.write(w, result, dtype, how)
    to = names["w"](mask_of(how, mask), accum=how.accum, replace=how.replace)
    try:
        to << product(names["A"], names["u"], op, flip=flip, transpose=transpose, **choice)
    except NotSupported:
        assert choice.get("kernel") is not None  # a strategy may not suit, a policy always does
        return
    assert_matches(names["w"], expected, dtype)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("count", [1, pytest.param(4, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    "op",
    covering(SEMIRINGS, lambda op: op.monoid.name, lambda op: op.multiply.name),
    ids=lambda op: op.name,
)
def test_every_semiring_runs_in_all_types_and_forms(backend, op, count):
    """All types and forms on cpu.

    Where each costs a compilation, one type, another for each semiring, and one form, another for
    each semiring, of four: each operand on each side, and the matrix both ways. Positions differ in
    all four.
    """
    k = SEMIRINGS.index(op)
    types, forms = TYPES, list(itertools.product((False, True), repeat=2))
    if backend.capabilities.kernels:
        types = (TYPES[k % len(TYPES)],)
        if not op.multiply.positional:
            forms = [forms[(k + more) % 4] for more in range(count)]
    where = [(0, 1), (0, 2), (1, 2), (2, 0), (2, 2), (3, 2), (3, 0)]
    for dtype in types:
        values = np.array([1, 0, 2, 3, 1, 2, 5]).astype(dtype.numpy)
        A = PlainMatrix(4, 3, dtype, dict(zip(where, values, strict=True)))
        live = matrix(A, backend)
        for flip, transpose in forms:
            used = A.T if transpose else A
            n_in, n_out = (used.nrows, used.ncols) if flip else (used.ncols, used.nrows)
            u = PlainVector(n_in, dtype, {i: dtype.numpy.type(x) for i, x in ((0, 2), (2, 3))})
            got = product(live, vector(u, backend), op, flip=flip, transpose=transpose).new()
            assert got.dtype is op.types(dtype, dtype)[1]
            expected = reference.product(used, u, op, flip=flip)
            assert got.size == n_out
            assert_matches(got, expected)


def test_any_gives_one_of_the_products(backend):
    """And the checker of this property does refuse another value."""
    A = Matrix.from_coo([0, 1, 2], [3, 3, 3], nrows=4, ncols=4, backend=backend)
    u = Vector.from_dense([10, 20, 30, 40], backend=backend)
    got = semiring.any_first(u @ A).new()
    assert got.get(3) in (10, 20, 30)
    parents = semiring.any_secondi(u @ A).new()
    assert parents.get(3) in (0, 1, 2)
    possible = {3: [np.int64(x) for x in (10, 20, 30)]}
    assert_matches(got, possible)
    got[3] = 40
    with pytest.raises(AssertionError, match="must be one of"):
        assert_matches(got, possible)


def test_positional_operators_count_from_the_product(backend):
    A = Matrix.from_coo([0, 1, 2, 2], [1, 2, 0, 3], nrows=4, ncols=5, backend=backend)
    u = Vector.from_coo([0, 1, 2], True, size=4, backend=backend)
    v = Vector.from_coo([0, 1, 2, 3], True, size=5, backend=backend)

    def dense(call):
        return call.new().to_dense(-1).tolist()

    assert dense(semiring.min_firsti(u @ A)) == [0, 0, 0, 0, -1]
    assert dense(semiring.min_secondi(u @ A)) == [2, 0, 1, 2, -1]
    assert dense(semiring.min_secondj(u @ A)) == [0, 1, 2, 3, -1]
    assert dense(semiring.min_firsti(A @ v)) == [0, 1, 2, -1]
    assert dense(semiring.min_firstj(A @ v)) == [1, 2, 0, -1]
    assert dense(semiring.min_secondj(A @ v)) == [0, 0, 0, -1]


@pytest.mark.parametrize("n", BIG_SIZES)
def test_sizes_around_a_block(backend, n):
    """A cycle with a hub: each vertex has one neighbour, vertex 0 has all."""
    rows = np.concatenate([np.arange(n), np.zeros(n - 2, int)])
    cols = np.concatenate([(np.arange(n) + 1) % n, np.arange(2, n)])
    A = Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend=backend)
    u = Vector.from_coo([0], True, size=n, backend=backend)
    m = Vector.from_coo(np.arange(0, n, 2), True, size=n, backend=backend)
    w = Vector(BOOL, n, backend=backend)
    w(~m.S, replace=True) << semiring.any_pair(u @ A)
    assert w.to_coo()[0].tolist() == list(range(1, n, 2))
    full = Vector.from_dense(np.ones(n, np.int64), backend=backend)
    degrees = semiring.plus_first(full @ A).new().to_dense().tolist()
    assert degrees == [1, 1] + [2] * (n - 2)
    assert semiring.plus_second(A @ full).new().get(0) == n - 1
    assert semiring.plus_pair(full @ A.T).new().get(0) == n - 1


def test_product_with_itself_as_output_and_mask(backend):
    """The frontier of a search is input, output and mask at once."""
    A = Matrix.from_coo([0, 1, 2], [1, 2, 0], nrows=3, ncols=3, backend=backend)
    q = Vector.from_coo([0], True, size=3, backend=backend)
    q(~q.S, replace=True) << semiring.any_pair(q @ A)
    assert q.to_coo()[0].tolist() == [1]
    q(q.S) << semiring.any_pair(q @ A)
    assert q.nvals == 0


def test_a_typed_semiring_computes_in_its_type(backend):
    A = Matrix.from_coo([0, 1], [0, 0], [2**31 - 1, 1], INT32, nrows=2, ncols=1, backend=backend)
    u = Vector.from_dense(np.ones(2, np.int32), backend=backend)
    assert semiring.plus_times(u @ A).new().get(0) == -(2**31)  # INT32 wraps
    wide = semiring.plus_times["INT64"](u @ A).new()
    assert wide.dtype is INT64
    assert wide.get(0) == 2**31
    assert semiring.plus_times[FP64](u @ A).new().dtype is FP64


def test_mxv_and_vxm_are_the_same_as_the_infix_form(backend):
    A = Matrix.from_coo([0, 1], [1, 0], [2, 3], nrows=2, ncols=2, backend=backend)
    u = Vector.from_dense([5, 7], backend=backend)
    assert u.vxm(A, semiring.plus_times).new().to_dense().tolist() == [21, 10]
    assert A.mxv(u, "plus_times").new().to_dense().tolist() == [14, 15]
    assert A.T.mxv(u, "plus_times").new().to_dense().tolist() == [21, 10]
    assert u.vxm(A + A, semiring.plus_times).new().to_dense().tolist() == [42, 20]
    assert A.mxv(u + u, "plus_times").new().to_dense().tolist() == [28, 30]
    w = Vector(INT64, 2, backend=backend)
    w.update(semiring.plus_times(u @ A.T))
    assert w.to_dense().tolist() == [14, 15]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_products_of_nothing(backend, shape):
    A = Matrix(INT32, *shape, backend=backend)
    u = Vector.from_coo([], [], INT32, size=shape[0], backend=backend)
    w = Vector.from_dense(np.ones(shape[1], np.int32), backend=backend)
    w(accum=binary.plus) << semiring.plus_times(u @ A)
    assert w.to_dense().tolist() == [1] * shape[1]
    w << semiring.plus_times(u @ A)
    assert w.nvals == 0


def test_the_reference_product_by_hand():
    """The reference itself, on an example small enough to read."""
    A = PlainMatrix(2, 3, INT32, {(0, 0): np.int32(2), (1, 0): np.int32(3), (1, 2): np.int32(4)})
    u = PlainVector(2, INT32, {0: np.int32(10), 1: np.int32(100)})

    def value(op):
        return {
            j: [x.item() for x in xs] for j, xs in reference.product(A, u, op, flip=True).items()
        }

    assert value(semiring.plus_times) == {0: [320], 2: [400]}
    assert value(semiring.min_first) == {0: [10], 2: [100]}
    assert value(semiring.any_second) == {0: [2, 3], 2: [4]}
    assert value(semiring.any_secondi) == {0: [0, 1], 2: [1]}
    w = PlainVector(3, INT32, {1: np.int32(7)})
    how = How(accum=binary.plus)
    total = reference.write(w, reference.product(A, u, semiring.plus_pair, flip=True), INT32, how)
    assert {i: x[0].item() for i, x in total.items()} == {0: 2, 1: 7, 2: 1}


def test_what_the_cpu_backend_does_not_offer_is_refused():
    A = Matrix.from_coo([0], [0], backend="cpu")
    u = Vector.from_coo([0], True, backend="cpu")
    w = Vector.from_dense([True], backend="cpu")
    with pytest.raises(NotSupported, match="chooses its own"):
        w << semiring.any_pair(u @ A, kernel="pull_warp")
    with pytest.raises(InvalidValue, match=r"'density' here\. Use auto, beamer, push or pull"):
        w << semiring.any_pair(u @ A, policy="density")
    assert w.get(0) is True


def test_unknown_kernel_lists_the_names(backend):
    if not backend.capabilities.kernels:
        pytest.skip("cpu has no kernels to choose from")
    A = Matrix.from_coo([0], [0], backend=backend)
    u = Vector.from_coo([0], True, backend=backend)
    with pytest.raises(InvalidValue, match="pull_warp"):
        semiring.any_pair(u @ A, kernel="pul_warp").new()


@pytest.mark.few_on_sim(3)
@pytest.mark.each_value
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("name", "dtype"), [("min_second", FP64), ("max_second", FP32)])
def test_no_number(backend, kernel, name, dtype):
    """NaN gives way to any number, but a sum of NaN alone is NaN."""
    if not backend.capabilities.kernels and kernel is not None:
        pytest.skip("the cpu backend has no kernels")
    nan, inf = np.nan, np.inf
    rows, cols = [0, 0, 1, 2, 0, 0, 1, 2], [1, 2, 3, 3, 4, 5, 6, 6]
    values = np.array([nan, nan, 2, nan, inf, -inf, nan, nan])
    A = Matrix.from_coo(rows, cols, values, dtype, nrows=40, ncols=40, backend=backend)
    u = Vector.from_coo([0, 1, 2], [1, 1, 1], dtype, size=40, backend=backend)
    w = getattr(semiring, name)(u @ A, kernel=kernel).new()
    expected = [(1, nan), (2, nan), (3, 2), (4, inf), (5, -inf), (6, nan)]
    for found, right in zip(w.to_coo(), zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(found, right)


def search(A, frontier, values, op):
    for _ in lagpu.loop(until_empty=frontier):
        values(frontier.S) << frontier
        frontier(~values.S, replace=True) << op(frontier @ A)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("name", ["min_second", "max_second"])
def test_no_number_in_a_loop(backend, name):
    nan, n = np.nan, 400
    steps = np.where(np.arange(n - 1) % 3, nan, 5.0)
    A = Matrix.from_coo(np.arange(n - 1), np.arange(1, n), steps, nrows=n, ncols=n, backend=backend)
    frontier, values = Vector(FP64, n, like=A), Vector(FP64, n, like=A)
    frontier[0] = 1
    search(A, frontier, values, getattr(semiring, name))
    if backend.capabilities.fuses:
        assert is_fused(backend.last_loop)
    np.testing.assert_array_equal(values.to_dense(), [1, *steps])
