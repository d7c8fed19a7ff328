"""Selection matrices: gathers and scatters by plain loops, fused as eager, live, and refused."""

import contextlib
import itertools

import numpy as np
import pytest
import reference
from hypothesis import strategies as st
from loop_names import GENERATED, loop_name
from matches import assert_matches
from nvrtc import ARCHITECTURES, nvrtc_compile
from product_cases import FLOATS, inexact, product
from programs import TILED
from reference import PlainMatrix
from samples import picked, sampled
from selections import operands, scatter_all, shortcut, shortcut_by_name
from strategies import (
    ACCUMS,
    SEMIRINGS,
    TYPES,
    combination,
    for_all,
    how_written,
    mask_of,
    plain_vector,
    vector,
)

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, UINT64, Matrix, Vector, binary, loop, semiring
from lagpu.backends.gpu.device.protocol import CUDA_LIMITS
from lagpu.backends.gpu.fused.program import text
from lagpu.backends.gpu.kernels import from_source, kernel
from lagpu.backends.gpu.ops import spmv

INTEGERS = tuple(t for t in TYPES if not (t.is_float or t.is_bool))
SIZES = (0, 1, 2, 5, 31, 32, 33, 65)
ODD = (1, 31, 32, 33, 1025)
FAR = (-1, -(2**31), 2**31 - 1, -(2**63), 2**63 - 1, 2**63, 2**64 - 1)


def rows_of(f, nrows):
    """The matrix that a plain vector selects with."""
    inside = ((int(i), j) for j, i in f.entries.items())
    where = {(i, j): np.True_ for i, j in inside if 0 <= i < nrows}
    return PlainMatrix(nrows, f.size, BOOL, where)


def selector(draw, nrows, size, dtype):
    """Draw row numbers: some outside, and often many of one row."""
    seed = draw(st.integers(0, 2**16), label="seed")
    rng = np.random.default_rng(seed)
    f = plain_vector(draw, size, dtype)
    low, high = int(dtype.smallest), int(dtype.largest)
    far = [x for x in (*FAR, nrows, nrows + 1) if low <= x <= high]
    hub = draw(st.sampled_from((0.0, 0.5, 1.0)), label="hub")
    for j in f.entries:
        row = rng.integers(0, max(nrows, 1))
        if rng.random() < hub:
            row = nrows // 2
        elif rng.random() < 0.2:
            row = far[rng.integers(0, len(far))]
        f.entries[j] = np.array(row).astype(dtype.numpy)[()]
    return f


@for_all(cpu=300, compiled=60)
def test_products_by_plain_loops(backend, draw):
    """Every semiring, type, form, mask, accumulator; the output may be an input or the mask."""
    pick = combination(draw, backend, op=SEMIRINGS, f=INTEGERS, u=TYPES, w=TYPES, accum=ACCUMS)
    op = pick["op"]
    if inexact(op, BOOL, pick["u"]) and not op.monoid.has_any_terminal:
        pick["w"] = FLOATS[TYPES.index(pick["w"]) % 2]
    flip, transpose = draw(st.booleans(), label="flip"), draw(st.booleans(), label="transpose")
    size = draw(st.sampled_from(SIZES), label="size")
    nrows = size if draw(st.booleans(), label="square") else draw(st.sampled_from(SIZES))
    f = selector(draw, nrows, size, pick["f"])
    used = rows_of(f, nrows).T if transpose else rows_of(f, nrows)
    n_in, n_out = (used.nrows, used.ncols) if flip else (used.ncols, used.nrows)
    u, w = plain_vector(draw, n_in, pick["u"]), plain_vector(draw, n_out, pick["w"])
    how = how_written(draw, n_out, pick["accum"])
    names = {"f": vector(f, backend), "u": vector(u, backend), "w": vector(w, backend)}
    mask = how.mask and vector(how.mask, backend)
    if nrows == size:
        alias = draw(st.sampled_from(("", "w=u", "w=f", "u=f", "m=f", "all")), label="alias")
        if alias in ("u=f", "all"):
            u, names["u"] = f, names["f"]
        if alias in ("w=u", "all"):
            w, names["w"] = u, names["u"]
        if alias == "w=f":
            w, names["w"] = f, names["f"]
        if how.mask is not None and alias in ("m=f", "all"):
            how.mask, mask = f, names["f"]
    if inexact(op, BOOL, u.dtype) and not (w.dtype.is_float or op.monoid.has_any_terminal):
        return
    dtype = op.types(*((u.dtype, BOOL) if flip else (BOOL, u.dtype)))[1]
    expected = reference.write(w, reference.product(used, u, op, flip=flip), dtype, how)
    P = names["f"].selection(nrows)
    to = names["w"](mask_of(how, mask), accum=how.accum, replace=how.replace)
    to << product(P, names["u"], op, flip=flip, transpose=transpose)
    assert_matches(names["w"], expected, dtype)


# ---- loops; functions of their own, so that pytest leaves their code alone


def gather_all(P, u, w, m, op):
    for _ in loop(times=2):
        w(m.S) << op(u @ P)
        w(~m.V, replace=True) << op(P.T @ w)
        u(accum=binary.min) << op(w @ P)


OPS = ("min_first", "plus_second", "any_pair", "any_first", "max_first", "lor_land", "plus_times")
KINDS = (INT64, FP64, BOOL, INT32, FP64, BOOL, INT64)


@pytest.mark.few_on_sim(3)
@pytest.mark.each_value
@pytest.mark.parametrize(
    ("name", "dtype"),
    picked(
        zip(OPS, KINDS, strict=True), ("plus_second", FP64), ("any_first", INT32), rest="exhaustive"
    ),
    ids=str,
)
@pytest.mark.parametrize(
    ("n", "kind"), sampled(itertools.product(ODD, ("some", "hub", "empty")), 2)
)
def test_fused_and_eager_give_what_cpu_gives(backend, n, kind, name, dtype):
    """Counts of 1.0 add up exactly, in whatever order."""
    for function in (gather_all, scatter_all):
        found = []
        for place, fused in ((backend, True), (backend, False), ("cpu", True)):
            f, u, w, m = operands(place, n, kind, dtype)
            op = semiring[name]
            if fused:
                function(f.selection(), u, w, m, op)
            else:
                with lagpu.eager():
                    function(f.selection(), u, w, m, op)
            if place is backend and backend.capabilities.fuses:
                assert loop_name(backend) == (GENERATED if fused else "eager"), backend.last_loop
            found.append((u.to("cpu"), w.to("cpu")))
        if name == "any_first":  # which one is free
            found = [tuple(x.apply(lagpu.unary.one).new() for x in pair) for pair in found]
        for u, w in found[:2]:
            assert u.isequal(found[2][0]), (function, name)
            assert w.isequal(found[2][1]), (function, name)


def test_more_words_than_warps(backend):
    for n, function in itertools.product(TILED.get(backend.name, ()), (gather_all, scatter_all)):
        found = []
        for place in (backend, "cpu"):
            f, u, w, m = operands(place, n, "some", INT64)
            function(f.selection(), u, w, m, semiring.plus_second)
            found.append((u.to("cpu"), w.to("cpu")))
        assert all(x.isequal(y) for x, y in zip(*found, strict=True)), (n, function)


def there_and_back(P, u, v):
    for _ in loop(times=2):
        v << semiring.plus_first(u @ P)
        u(accum=binary.plus) << semiring.plus_second(P @ v)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("values", ["iso", "full", "single"])
@pytest.mark.parametrize(("nrows", "ncols"), [(1, 70), (70, 1), (33, 1025), (1025, 33)])
def test_rows_and_columns_differ(backend, nrows, ncols, values):
    """And the vector that selects stores one value alone, or no presence, or one index."""
    found = []
    for place, fused in ((backend, True), (backend, False), ("cpu", True)):
        rows = np.arange(ncols) * 7 % (nrows + 2)
        f = {
            "iso": Vector.from_coo(np.arange(0, ncols, 3), nrows // 2, size=ncols, backend=place),
            "full": Vector.from_dense(rows, backend=place),
            "single": Vector(INT32, ncols, backend=place),
        }[values]
        if values == "single":
            f[ncols // 2] = nrows - 1
        u, v = Vector.from_dense(np.arange(nrows), backend=place), Vector(INT64, ncols, like=f)
        with contextlib.nullcontext() if fused else lagpu.eager():
            there_and_back(f.selection(nrows), u, v)
        found.append((u.to("cpu"), v.to("cpu")))
    for u, v in found[:2]:
        assert u.isequal(found[2][0])
        assert v.isequal(found[2][1])
    assert found[0][1].nvals


@pytest.mark.parametrize("n", ODD)
@pytest.mark.parametrize("function", [shortcut, shortcut_by_name])
def test_a_view_is_live(backend, n, function):
    """A path of parents becomes a star: each round reads what the one before has written."""
    f = Vector.from_dense(np.maximum(np.arange(n) - 1, 0), backend=backend)
    function(f, semiring.min_first)
    assert f.to_dense().tolist() == [0] * n
    if backend.capabilities.fuses:
        assert loop_name(backend) == GENERATED


def test_a_view_follows_its_vector_outside_of_loops(backend):
    f = Vector.from_coo([0, 2], [1, 1], size=3, backend=backend, name="f")
    P, fixed = f.selection(), f.selection(nrows=2)
    u = Vector.from_dense([10, 20, 30], backend=backend)
    assert dict(zip(*semiring.any_first(u @ P).new().to_coo(), strict=True)) == {0: 20, 2: 20}
    f[1] = 2
    assert semiring.any_first(u @ P).new().to_dense().tolist() == [20, 30, 20]
    assert semiring.plus_first(P @ u).new().get(1) == 2
    assert (P.nvals, fixed.nvals, P.shape, fixed.shape) == (3, 2, (3, 3), (2, 3))
    f.resize(2)
    assert (P.shape, fixed.shape, P.T.shape, P.nvals) == ((2, 2), (2, 2), (2, 2), 1)


def test_what_is_no_row_selects_nothing(backend):
    values = np.array([0, 2**64 - 1, 2**63, 3, 4, 1], np.uint64)
    f = Vector.from_coo(range(6), values, UINT64, size=6, backend=backend)
    P = f.selection(nrows=4)
    u = Vector.from_dense(np.arange(4.0), backend=backend)
    w = semiring.min_first(u @ P).new()
    assert dict(zip(*w.to_coo(), strict=True)) == {0: 0.0, 3: 3.0, 5: 1.0}
    ones = Vector.from_dense(np.ones(6), backend=backend)
    assert semiring.plus_second(P @ ones).new().to_dense(0).tolist() == [1, 1, 0, 1]
    assert P.new().to_coo()[1].tolist() == [0, 5, 3]


@pytest.mark.parametrize(
    "text",
    [
        "semiring.plus_first(A @ P)",
        "semiring.plus_first(A @ P.T)",
        "semiring.plus_second(P.T @ A)",
        "semiring.plus_pair(P @ P.T)",
        "P.mxm(A, 'plus_second') + A",
        "A.ewise_add(P.T, 'plus')",
        "P.ewise_mult(A, 'times')",
        "binary.second(P & A)",
        "f * P",
        "P.T.kronecker(A, 'second')",
        "P.power(2)",
    ],
)
def test_an_operation_on_matrices_makes_the_matrix(backend, text):
    f = Vector.from_coo([0, 1, 3], [1, 1, 0], INT64, size=4, backend=backend, name="f")
    A = Matrix.from_coo([0, 1, 2, 3, 0], [1, 2, 3, 0, 3], range(5), like=f, name="A")
    P = f.selection()
    found, expected = (eval(text, globals(), {"f": f, "A": A, "P": Q}) for Q in (P, P.new()))
    assert found.new().isequal(expected.new())
    A[:, :] << P
    assert A.isequal(P.new(A.dtype))


def test_a_view_is_a_mask(backend):
    f = Vector.from_coo([0, 1, 3], [1, 1, 0], INT64, size=4, backend=backend, name="f")
    for view in (f.selection(), f.selection().T, f.selection().new().T):
        C = Matrix(INT64, 4, 4, like=f)
        C(view) << 1
        assert C.isequal(view.new(INT64))


def votes(A, f, counts):
    P = f.selection()
    for _ in loop(times=2):
        counts << semiring.plus_pair(A @ P.T)
        f << counts.reduce_rowwise("max")


def test_a_loop_makes_the_matrix_in_each_turn(backend):
    A = Matrix.from_coo([0, 0, 1, 2], [1, 2, 2, 0], nrows=3, ncols=3, backend=backend)
    f = Vector.from_coo([1, 2], [0, 0], size=3, like=A)
    counts = Matrix(INT64, 3, 3, like=A)
    votes(A, f, counts)  # f is [2, 1, -] after the first turn
    assert dict(zip(*f.to_coo(), strict=True)) == {0: 1, 2: 1}
    assert [x.tolist() for x in counts.to_coo()] == [[0, 2], [1, 2], [1, 1]]


def test_a_matrix_of_it(backend):
    f = Vector.from_coo([0, 1, 3], [2, 2, -1], INT32, size=4, backend=backend, name="f")
    P = f.selection(nrows=3)
    made, turned = P.new(name="M"), P.T.new(FP64)
    assert (made.shape, made.dtype, made.nvals, made.name) == ((3, 4), BOOL, 2, "M")
    assert made.isequal(Matrix.from_coo([2, 2], [0, 1], nrows=3, ncols=4, backend=backend))
    assert turned.dtype is FP64
    assert turned.isequal(made.T.new(FP64))
    C = Matrix(BOOL, 3, 4, backend=backend)
    C << P
    f[0] = 0
    assert C.isequal(made)
    assert not P.new().isequal(made)
    C(made.S) << P.T.T
    assert C.nvals == 1
    assert P.T.T is P
    none = Vector(INT32, 0, backend=backend).selection()
    assert (none.nvals, none.new().shape) == (0, (0, 0))


# ------------------------------------------------------------------------------- for real GPUs


@pytest.mark.parametrize("k", picked(range(0, len(SEMIRINGS), 7), 7))
def test_kernels_compile(k, monkeypatch):
    """Each with another type and another GPU."""
    op, dtype, arch = SEMIRINGS[k], TYPES[k % len(TYPES)], ARCHITECTURES[k % len(ARCHITECTURES)]
    asked = []

    def caught(*args, **macros):
        asked.append((args, macros))
        raise InterruptedError

    monkeypatch.setattr(spmv, "kernel", caught)
    f = Vector.from_coo([0], [0], INTEGERS[k % 4], size=2, backend="sim")
    u = Vector.from_coo([0, 1], np.array([0, 1]).astype(dtype.numpy), size=2, backend="sim")
    with pytest.raises(InterruptedError):
        op(u @ f.selection()).new()
    [((file, _), macros)] = asked
    for name in ("selection_gather", "selection_scatter"):
        assert nvrtc_compile(kernel(file, name, **macros), arch)


@pytest.mark.ci
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("traced", [False, True])
def test_programs_compile(traced, arch, monkeypatch):
    """Both pieces, for sums of floats and for what any chooses, with a log and without."""
    made = []

    def caught(*args, **macros):
        made.append(from_source(*args, **macros | {"BLOCK": str(CUDA_LIMITS.loop_block)}))
        raise InterruptedError

    monkeypatch.setattr(text, "from_source", caught)
    for function, name, dtype in (
        (gather_all, "min_first", INT32),
        (scatter_all, "plus_second", FP64),
        (scatter_all, "any_first", BOOL),
    ):
        f, u, w, m = operands("sim", 33, "some", dtype)
        log = lagpu.trace() if traced else contextlib.nullcontext()
        with pytest.raises(InterruptedError), log:
            function(f.selection(), u, w, m, semiring[name])
        kernel = made.pop()
        assert "select_all" in kernel.source
        assert ("LG_LOG" in dict(kernel.macros)) is traced
        assert nvrtc_compile(kernel, arch)
