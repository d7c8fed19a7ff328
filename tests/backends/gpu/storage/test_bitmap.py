"""Matrices of few rows and many columns: the block form gives what every form gives."""

import numpy as np
import pytest
import reference
from hypothesis import strategies as st
from matches import assert_matches
from reference import PlainMatrix
from strategies import (
    ACCUMS,
    BINARY,
    SEMIRINGS,
    TYPES,
    combination,
    for_all,
    how_matrix_written,
    matrix,
    plain_matrix,
    updater,
)

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix, algorithms, binary, monoid, semiring
from lagpu.algorithms.bfs import bfs_levels_multi
from lagpu.backends.gpu.storage import bitmap
from lagpu.generators import path, star

BLOCKS = st.sampled_from(
    ((1, 1), (1, 2), (2, 31), (1, 33), (2, 32), (31, 65), (32, 65), (33, 67), (63, 130), (65, 131))
)
TERMS = 20_000  # of a product at most, as each is worked out by a plain loop
LARGE = [(64, 1025), (130, 1023)]


def block(grid, backend):
    """A lagpu matrix that began empty, so that a backend with blocks makes it one."""
    made = Matrix(grid.dtype, grid.nrows, grid.ncols, backend=backend)
    made(made.S) << made.dtype.numpy.type(1)  # no entry, but written to
    made(accum=binary.second) << matrix(grid, backend)
    return made


def draw_make(draw):
    return draw(st.sampled_from((block, matrix)), label="form")


@for_all(cpu=100, compiled=40)
def test_mxm(backend, draw):
    pick = combination(draw, backend, op=SEMIRINGS, A=TYPES, B=TYPES, accum=ACCUMS)
    k, n = draw(BLOCKS, label="shape")
    op = pick["op"]
    result_type = op.types(pick["A"], pick["B"])[1]
    Q = plain_matrix(draw, k, n, pick["A"], iso=draw(st.booleans(), label="iso Q"))
    A = plain_matrix(draw, n, n, pick["B"], iso=draw(st.booleans(), label="iso A"), most=TERMS // k)
    how, C = how_matrix_written(draw, (k, n), pick["accum"]), plain_matrix(draw, k, n, result_type)
    turned = draw(st.booleans(), label="transposed")
    right = matrix(A.T, backend).T if turned else matrix(A, backend)
    if draw(st.booleans(), label="columns alone") and backend.name != "cpu":
        right.stored.orientation = "csc"
    expected = reference.write(C, reference.mxm(Q, A, op), result_type, how)
    live = draw_make(draw)(C, backend)
    updater(live, how, backend, draw_make(draw)) << op(block(Q, backend) @ right)
    assert_matches(live, expected, result_type)


@for_all(compiled=40)
def test_ewise(backend, draw):
    methods = ("ewise_add", "ewise_mult", "ewise_union")
    pick = combination(
        draw, backend, op=BINARY, A=TYPES, B=TYPES, C=TYPES, accum=ACCUMS, method=methods
    )
    shape, op, method = draw(BLOCKS), pick["op"], pick["method"]
    A, B = plain_matrix(draw, *shape, pick["A"]), plain_matrix(draw, *shape, pick["B"])
    defaults = (1, 0) if method == "ewise_union" else ()
    result = getattr(reference, method)(A, B, op, *defaults)
    how, C = how_matrix_written(draw, shape, pick["accum"]), plain_matrix(draw, *shape, pick["C"])
    result_type = op.types(A.dtype, B.dtype)[1]
    expected = reference.write(C, result, result_type, how)
    live = draw_make(draw)(C, backend)
    left, right = draw_make(draw)(A, backend), draw_make(draw)(B, backend)
    updater(live, how, backend, draw_make(draw)) << getattr(left, method)(right, op, *defaults)
    assert_matches(live, expected, result_type)


@for_all(compiled=40)
def test_assign(backend, draw):
    pick = combination(draw, backend, A=TYPES, C=TYPES, accum=ACCUMS)
    shape = draw(BLOCKS)
    C, A = plain_matrix(draw, *shape, pick["C"]), plain_matrix(draw, *shape, pick["A"])
    value = draw_make(draw)(A, backend)
    if draw(st.booleans(), label="scalar"):
        value = 1
        ones = {at: C.dtype.numpy.type(1) for at in C.places}
        A = PlainMatrix(*shape, C.dtype, ones)
    how, live = how_matrix_written(draw, shape, pick["accum"]), draw_make(draw)(C, backend)
    updater(live, how, backend, draw_make(draw)) << value
    whole = [list(range(size)) for size in shape]
    assert_matches(live, reference.assign_submatrix(C, A, *whole, how))


@for_all(compiled=40)
def test_what_reads_a_block(backend, draw):
    shape = draw(BLOCKS)
    kind = draw(st.sampled_from((BOOL, INT64, FP64)))
    A = plain_matrix(draw, *shape, kind, iso=draw(st.booleans(), label="iso"))
    A.entries = {at: x for at, x in A.entries.items() if x == x and abs(float(x)) < 1e9}
    live, plain = block(A, backend), matrix(A, backend)
    assert live.nvals == len(A.entries)
    assert live.isequal(plain)
    assert live.dup().isequal(plain)
    assert live.dup(FP64).isequal(plain.dup(FP64))
    assert live.T.new().isequal(plain.T.new())
    assert live.get(0, 0) == plain.get(0, 0)
    assert live.get(shape[0] - 1, shape[1] - 1) == plain.get(shape[0] - 1, shape[1] - 1)
    assert live[:, [0]].new().isequal(plain[:, [0]].new())
    assert (
        live.apply("ainv" if kind is not BOOL else "lnot")
        .new()
        .isequal(plain.apply("ainv" if kind is not BOOL else "lnot").new())
    )
    assert live.apply("rowindex").new().isequal(plain.apply("rowindex").new())
    assert live.select("valueeq", 1).new().isequal(plain.select("valueeq", 1).new())
    assert live.select("tril", 0).new().isequal(plain.select("tril", 0).new())
    assert live.reduce("max").new().value == plain.reduce("max").new().value
    add = monoid.max
    rows, cols = live.reduce_rowwise(add).new(), live.reduce_columnwise(add).new()
    assert_matches(rows, reference.reduce_rows(A, add))
    assert_matches(cols, reference.reduce_rows(A.T, add))
    assert repr(live)


@pytest.mark.each_value
@pytest.mark.parametrize("shape", LARGE)
@pytest.mark.parametrize("directed", [False, True])
def test_searches_of_a_block(backend, shape, directed):
    """Hubs longer than a chunk, self-loops, sources in a component of their own."""
    k, n = shape
    n += 2000
    generator = np.random.default_rng(k)
    rows, cols = generator.integers(0, n - 50, (2, 4 * n))
    hub = np.arange(1, n - 50)
    rows, cols = (np.r_[a, b, 7] for a, b in ((rows, np.zeros_like(hub)), (cols, hub)))
    if not directed:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    A = Matrix.from_coo(rows, cols, True, nrows=n, ncols=n, dup_op=binary.any, backend=backend)
    sources = [*range(k - 1), n - 1]
    levels = bfs_levels_multi(A, sources)
    with lagpu.eager():  # by single products
        assert bfs_levels_multi(A, sources).isequal(levels)
    for row in (0, 1, k - 1):
        alone = algorithms.bfs_levels(A, sources[row])
        assert levels[row, :].new().isequal(alone)
    counts = algorithms.betweenness_centrality(A, k=40, seed=2, batch=40).to_dense()
    alone = algorithms.betweenness_centrality(A, k=40, seed=2, batch=1).to_dense()
    assert np.allclose(counts, alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("graph", [star(3000, backend="cpu"), path(80, backend="cpu")])
def test_counts_of_paths_over_a_hub(backend, graph):
    A = graph.to(backend)
    Q = Matrix(FP64, 33, A.nrows, backend=backend)
    Q << 2.0
    assert Q.nvals == Q.dup().nvals == 33 * A.nrows
    got = semiring.plus_first(Q @ A).new()
    degrees = A.dup(FP64).apply("one").new().reduce_columnwise("plus").new()
    assert got.reduce_columnwise("max").new().isequal(degrees.apply("times", right=2.0).new())
    assert got.reduce_columnwise("min").new().isequal(degrees.apply("times", right=2.0).new())


def test_a_copy_does_not_change_with_its_original(backend):
    L = Matrix(INT32, 3, 40, backend=backend)
    one = Matrix.from_coo([1], [5], nrows=3, ncols=40, backend=backend)
    L(one.S) << 4
    L(L.S) << 6
    copy, kept = L.dup(), L.S.new()
    L(~L.S) << 1
    L(kept.S) << 9
    assert (L.nvals, copy.nvals, copy.get(1, 5), L.get(1, 5), L.get(0, 0)) == (120, 1, 6, 9, 1)
    other = Matrix(INT32, 3, 40, backend=backend)
    other << L
    L(L.S, replace=True) << 2
    assert (other.get(1, 5), L.get(1, 5)) == (9, 2)


@pytest.mark.parametrize("complement", [False, True])
def test_one_value_is_not_stored(backend, complement):
    """Neither of a mask's entries nor of all others; what is written later differs."""
    made = []
    for place in ("cpu", backend):
        C = Matrix(INT32, 33, 90, backend=place)
        mask = Matrix.from_coo([0, 32, 5], [0, 89, 40], True, nrows=33, ncols=90, backend=place)
        C(~mask.S if complement else mask.S) << 7
        assert C.nvals == (33 * 90 - 3 if complement else 3)
        assert C.reduce("plus").new().value == 7 * C.nvals
        if hasattr(C.data, "entries"):
            assert C.data.entries.values is None
        once = C.dup()
        C(mask.S) << 2
        C(accum=binary.plus) << once
        made.append(C.to("cpu"))
    assert made[0].isequal(made[1], check_dtype=True)


def test_what_does_not_fit_is_no_block(backend, monkeypatch):
    if backend.name == "cpu":
        pytest.skip("cpu has no blocks")
    wide = Matrix(FP64, 64, 1 << 21, backend=backend)
    assert backend.form(wide.data) == "bitmap"
    monkeypatch.setattr(backend.device, "free_bytes", lambda: 1 << 27)
    few = Matrix.from_coo([3, 5], [7, 1 << 20], 2.0, nrows=64, ncols=1 << 21, backend=backend)
    wide(few.S) << 1.5
    assert backend.form(wide.data) != "bitmap"
    assert (wide.nvals, wide.get(3, 7)) == (2, 1.5)


def test_one_source_a_row_is_a_bitmap_matrix_at_once(place, monkeypatch):
    shape = (3, 4000)

    def made(rows, cols, values, *options):
        return bitmap.from_few_entries(
            place.runtime.counters, np.array(rows), np.array(cols), values, *options
        )

    found = made([0, 1, 2], [3, 0, 3], np.array([5, 6, 7]), INT64, shape)
    assert isinstance(found, bitmap.BitmapMatrix)
    assert found.entries.nvals == 3
    assert made([0, 1, 2, 2], [3, 0, 3, 1], 1, INT64, shape) is None  # more than one a row
    assert made([0, 0], [3, 3], 1, INT64, shape) is None  # a position given twice
    assert made([0, 1, 1], [3, 7, 7], 1, INT64, shape) is None
    monkeypatch.setattr(bitmap, "fits", lambda *_: False)
    assert made([0, 1, 2], [3, 0, 3], 1, INT64, shape) is None


def test_columns_take_whole_words_and_no_more():
    rows = (1, 31, 32, 33, 63, 64, 65, 126, 128, 129)
    assert [bitmap.stride(k) for k in rows] == [32] * 3 + [64] * 3 + [128] * 3 + [192]


def test_bits_and_values_fit_four_times_or_the_pool_has_them(place, monkeypatch):
    shape = (64, 1 << 20)
    needed = bitmap.bytes_of(FP64, shape)
    assert needed == 64 * (1 << 20) * 8 + 8 * (1 << 20)
    for pooled, free, fits in ((0, 4 * needed, True), (0, 4 * needed - 1, False), (needed, 0, True),
                               (needed - 1, 0, False)):  # fmt: skip
        monkeypatch.setattr(place.device, "pooled_bytes", lambda pooled=pooled: pooled)
        monkeypatch.setattr(place.device, "free_bytes", lambda free=free: free)
        assert bitmap.fits(place.device, FP64, shape) is fits
    assert bitmap.fits(place.device, BOOL, (32, 1 << 20))  # few MB always do
    assert not bitmap.fits(place.device, BOOL, (32, 63))
    assert bitmap.fits(place.device, BOOL, (32, 64))


def test_a_copy_asks_for_its_bits_and_values(place, monkeypatch):
    asked = []
    monkeypatch.setattr(place.device, "require", lambda nbytes, *_: asked.append(nbytes))
    positions = bitmap.stride(33) * 70
    bitmap.require(place.device, (33, 70), None, "test")
    bitmap.require(place.device, (33, 70), FP64, "test")
    assert asked == [positions // 8, positions // 8 + 8 * positions]
    C = Matrix(INT64, 33, 70, backend=place)
    C << 7
    asked.clear()
    C.data.store.copy(FP64)
    assert asked == ([positions // 8] if C.data.store.entries.form == "bitmap" else [])
    C.data.store.entries.to_writable()
    asked.clear()
    C.data.store.copy(FP64)
    assert asked == [positions // 8 + 8 * positions]
    few = bitmap.from_few_entries(
        place.runtime.counters,
        np.array([0]),
        np.array([3]),
        np.int64(1),
        INT64,
        (33, 70),
    )
    asked.clear()
    few.copy(FP64)
    assert asked == []  # a list of one entry
