"""Whole matrices against plain loops: products, combinations, parts, and the rule of writing."""

from itertools import product

import numpy as np
import pytest
import reference
from hypothesis import strategies as st
from matches import assert_matches
from reference import PlainMatrix
from samples import sampled
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
from lagpu import BOOL, FP64, INT64, Matrix, binary, crosscheck, semiring
from lagpu.errors import DomainMismatch
from lagpu.generators import star

SHAPES = st.sampled_from((0, 1, 2, 3, 5, 9, 33))


def draw_operand(draw, m, n, dtype, backend):
    """A plain matrix of this shape; the live one, stored as it is or transposed."""
    grid = plain_matrix(draw, m, n, dtype, iso=draw(st.booleans(), label="iso"))
    if draw(st.booleans(), label="transposed"):
        return grid, matrix(grid.T, backend).T
    return grid, matrix(grid, backend)


def safe_type(pick, result, exact):
    """A sum of floats whose order is free is not cast to an integer."""
    return lagpu.FP64 if result.is_float and not exact and not pick.is_float else pick


@for_all(cpu=200, compiled=40)
def test_mxm(backend, draw):
    pick = combination(draw, backend, op=SEMIRINGS, A=TYPES, B=TYPES, C=TYPES, accum=ACCUMS)
    m, k, n = (draw(SHAPES, label="shape") for _ in range(3))
    op = pick["op"]
    result_type = op.types(pick["A"], pick["B"])[1]
    kind = safe_type(pick["C"], result_type, op.monoid.is_exact(result_type))
    A, left = draw_operand(draw, m, k, pick["A"], backend)
    B, right = draw_operand(draw, k, n, pick["B"], backend)
    how, C = how_matrix_written(draw, (m, n), pick["accum"]), plain_matrix(draw, m, n, kind)
    expected = reference.write(C, reference.mxm(A, B, op), result_type, how)
    live = matrix(C, backend)
    updater(live, how, backend) << op(left @ right)
    assert_matches(live, expected, result_type)


@for_all()
def test_ewise(backend, draw):
    methods = ("ewise_add", "ewise_mult", "ewise_union")
    pick = combination(
        draw, backend, op=BINARY, A=TYPES, B=TYPES, C=TYPES, accum=ACCUMS, method=methods
    )
    m, n, op, method = draw(SHAPES), draw(SHAPES), pick["op"], pick["method"]
    A, left = draw_operand(draw, m, n, pick["A"], backend)
    B, right = draw_operand(draw, m, n, pick["B"], backend)
    defaults = (1, 0) if method == "ewise_union" else ()
    result = getattr(reference, method)(A, B, op, *defaults)
    how, C = how_matrix_written(draw, (m, n), pick["accum"]), plain_matrix(draw, m, n, pick["C"])
    result_type = op.types(A.dtype, B.dtype)[1]
    expected = reference.write(C, result, result_type, how)
    live = matrix(C, backend)
    updater(live, how, backend) << getattr(left, method)(right, op, *defaults)
    assert_matches(live, expected, result_type)


def test_a_comparison_of_matrices_is_one_of_truth_values(backend):
    A = Matrix.from_coo([0], [1], [2.5], nrows=2, ncols=2, backend=backend)
    for found in (A.ewise_mult(A, binary.lt), A.ewise_add(A, binary.eq)):
        assert found.dtype is found.new().dtype is BOOL


@pytest.mark.parametrize("other", [3, "A", None, np.ones((2, 2))])
def test_a_union_needs_a_matrix(backend, other):
    A = Matrix(FP64, 2, 2, backend=backend)
    with pytest.raises(DomainMismatch, match=r"^ewise_union: .* is not a Matrix"):
        A.ewise_union(other, binary.plus, 0, 0)


@for_all(cpu=80)
def test_kronecker(backend, draw):
    pick = combination(draw, backend, op=BINARY, A=TYPES, B=TYPES)
    small = st.sampled_from((0, 1, 2, 5))
    A, left = draw_operand(draw, draw(small), draw(small), pick["A"], backend)
    B, right = draw_operand(draw, draw(small), draw(small), pick["B"], backend)
    got = left.kronecker(right, pick["op"]).new()
    assert got.shape == (A.nrows * B.nrows, A.ncols * B.ncols)
    expected = reference.kronecker(A, B, pick["op"])
    assert_matches(got, expected, pick["op"].types(A.dtype, B.dtype)[1])


def draw_indices(draw, size, *, distinct):
    """What the user writes, and the list that it means."""
    if not size or draw(st.booleans(), label="slice"):
        step = draw(st.sampled_from((slice(None), slice(1, None), slice(None, None, -2))))
        return step, list(range(size))[step]
    listed = draw(st.lists(st.integers(0, size - 1), max_size=6, unique=distinct))
    return listed, listed


@for_all()
def test_extract(backend, draw):
    pick = combination(draw, backend, A=TYPES, C=TYPES, accum=ACCUMS)
    A = plain_matrix(draw, draw(SHAPES), draw(SHAPES), pick["A"])
    (wrote_rows, rows), (wrote_cols, cols) = (
        draw_indices(draw, size, distinct=False) for size in (A.nrows, A.ncols)
    )
    C = plain_matrix(draw, len(rows), len(cols), pick["C"])
    how = how_matrix_written(draw, (len(rows), len(cols)), pick["accum"])
    expected = reference.write(C, reference.submatrix(A, rows, cols), A.dtype, how)
    live = matrix(C, backend)
    updater(live, how, backend) << matrix(A, backend)[wrote_rows, wrote_cols]
    assert_matches(live, expected)


@for_all()
def test_assign(backend, draw):
    pick = combination(draw, backend, A=TYPES, C=TYPES, accum=ACCUMS)
    C = plain_matrix(draw, draw(SHAPES), draw(SHAPES), pick["C"])
    (wrote_rows, rows), (wrote_cols, cols) = (
        draw_indices(draw, size, distinct=True) for size in (C.nrows, C.ncols)
    )
    A, value = draw_operand(draw, len(rows), len(cols), pick["A"], backend)
    if draw(st.booleans(), label="scalar"):
        value = 1
        ones = {(i, j): C.dtype.numpy.type(1) for i in range(len(rows)) for j in range(len(cols))}
        A = PlainMatrix(len(rows), len(cols), C.dtype, ones)
    how, live = how_matrix_written(draw, (C.nrows, C.ncols), pick["accum"]), matrix(C, backend)
    updater(live, how, backend)[wrote_rows, wrote_cols] << value
    assert_matches(live, reference.assign_submatrix(C, A, rows, cols, how))


@pytest.mark.each_value
@pytest.mark.parametrize("kind", [INT64, FP64])
@pytest.mark.parametrize("old", [{}, {(0, 0): 7, (0, 1): 5, (1, 1): 3, (2, 2): 9}])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("accum", [None, binary.plus])
@pytest.mark.parametrize("complement", [False, True])
@pytest.mark.parametrize("structure", [False, True])
def test_every_way_to_write_a_product(backend, structure, complement, accum, replace, old, kind):
    A = PlainMatrix(3, 3, INT64, {(0, 1): 2, (1, 0): 3, (1, 2): 4, (2, 0): 5})
    M = PlainMatrix(3, 3, INT64, {(0, 0): 1, (0, 2): 0, (1, 1): 1, (2, 1): 1, (2, 2): 1})
    C = PlainMatrix(3, 3, kind, {at: kind.numpy.type(x) for at, x in old.items()})
    how = reference.How(M, structure, complement, accum, replace)
    expected = reference.write(C, reference.mxm(A, A, semiring.plus_times), INT64, how)
    live, operand = matrix(C, backend), matrix(A, backend)
    updater(live, how, backend) << semiring.plus_times(operand @ operand)
    assert_matches(live, expected, INT64)


@pytest.mark.parametrize("value", [3, [3, 4, 5, 6]], ids=["iso", "values"])
def test_matrices_of_one_pattern_stay_apart(backend, value):
    """They may share where their entries are, never what these are."""
    rows, cols = [0, 0, 1, 2], [1, 2, 2, 0]
    where = {"nrows": 3, "ncols": 3, "backend": backend}
    A = Matrix.from_coo(rows, cols, value, INT64, **where)
    before = [x.tolist() for x in A.to_coo()]
    some = Matrix.from_coo(rows[1:3], cols[1:3], 10, INT64, **where)
    other = Matrix.from_coo([1, 2], [0, 2], 20, INT64, **where)
    numbers = np.array(before[2])

    def of(C):
        return [x.tolist() for x in C.to_coo()]

    B = A.dup()
    held = B.dup()  # as an observer may
    B(accum=binary.plus) << A
    assert of(B) == [rows, cols, (2 * numbers).tolist()]
    assert of(held) == before
    B(accum=binary.plus) << some
    assert of(B) == [rows, cols, (2 * numbers + [0, 10, 10, 0]).tolist()]
    C = A.ewise_mult(A, binary.minus).new()
    C(some.S) << A.ewise_add(some, binary.plus)
    assert of(C) == [rows, cols, (numbers * [0, 1, 1, 0] + [0, 10, 10, 0]).tolist()]
    C(C.S, accum=binary.plus) << C
    C(accum=binary.plus) << other
    assert C.nvals == 6
    assert of(some.ewise_add(A, binary.second).new()) == before
    assert of(A) == before
    assert A.ewise_mult(other, binary.plus).new().nvals == 0


def test_the_output_may_be_operand_and_mask(backend):
    C = Matrix.from_coo([0, 0, 1, 2], [1, 2, 2, 0], [1, 2, 3, 4], nrows=3, ncols=3, backend=backend)
    C << semiring.plus_times(C @ C)
    assert [x.tolist() for x in C.to_coo()] == [[0, 0, 1, 2, 2], [0, 2, 0, 1, 2], [8, 3, 12, 4, 8]]
    C(~C.S, accum=binary.plus) << C.ewise_add(C.T, binary.plus)
    assert [x.tolist() for x in C.to_coo()] == [
        [0, 0, 0, 1, 1, 2, 2, 2], [0, 1, 2, 0, 2, 0, 1, 2], [8, 12, 3, 12, 4, 3, 4, 8],
    ]  # fmt: skip


def test_a_hub_and_both_ways_of_a_masked_product(backend):
    n = 3000
    A = star(n, backend=backend)
    plus_pair = semiring.plus_pair
    C = plus_pair(A @ A).new(mask=A.S)  # a star has no triangle
    assert C.nvals == 0
    corner = Matrix.from_coo([0, 1], [0, 2], nrows=n, ncols=n, backend=backend)
    C = plus_pair(A @ A).new(mask=corner.S)
    assert (C.get(0, 0), C.get(1, 2), C.nvals) == (n - 1, 1, 2)
    few = Matrix.from_coo([0], [1], nrows=n, ncols=n, backend=backend)
    everything = Matrix(BOOL, n, n, backend=backend)
    everything(few.S) << True
    assert plus_pair(few @ A).new(mask=A.S).nvals == 0
    assert plus_pair(few @ A).new(mask=~A.S).get(0, 0) == 1


LENGTHS = (0, 1, 31, 32, 33, 64, 65, 200)  # around the 32 entries that a thread walks by itself


DOTS = ("plus_times", "plus_pair", "min_secondi", "any_firstj", "lor_land")


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize(("name", "shift"), sampled(product(DOTS, range(len(LENGTHS))), 3))
def test_dot_products_of_long_and_short_rows(backend, name, shift):
    op, rng = semiring[name], np.random.default_rng(shift)
    kind = BOOL if name == "lor_land" else INT64
    size, count = 300, 2 * len(LENGTHS)  # two rows and columns of each length

    def side(its_last):
        entries = {}
        for r in range(count):
            there = its_last if r == count - 1 else np.arange(size)
            length = min(LENGTHS[r % len(LENGTHS)], len(there))
            for k in rng.choice(there, length, replace=False):
                entries[r, int(k)] = kind.numpy.type(rng.integers(0, 4))
        return PlainMatrix(count, size, kind, entries)

    # the last row and the last column do not meet
    A, B = side(np.arange(size // 2)), side(np.arange(size // 2, size)).T
    pairs = [(r, (r + shift) % count) for r in range(count)]
    mask = PlainMatrix(count, count, BOOL, dict.fromkeys(pairs, True))
    expected = {at: x for at, x in reference.mxm(A, B, op).items() if at in mask.entries}
    call, kept = op(matrix(A, backend) @ matrix(B, backend)), matrix(mask, backend).S
    assert_matches(call.new(mask=kept), expected)
    with lagpu.trace() as t:  # another kernel: it counts
        assert_matches(call.new(mask=kept), expected)
    assert t.rows[-1].kernel in {"dot_products", "SuiteSparse"}


@pytest.mark.parametrize("length", [3, 33, 64])
def test_dot_products_look_at_nothing_behind_a_row(backend, length):
    def rows(*them):
        entries = {(r, k): np.int64(1) for r, row in enumerate(them) for k in row}
        return PlainMatrix(3, 200, INT64, entries)

    short, longer = [*range(length - 1), 150], range(length + 40)
    # what stands behind the first rows would meet
    one, other = rows(short, [length + 10], short), rows(longer, [150], longer)
    corner = matrix(PlainMatrix(3, 3, BOOL, {(0, 0): True}), backend)
    for A, B in ((one, other), (other, one)):
        live = matrix(A, backend), matrix(B.T, backend)
        made = semiring.plus_pair(live[0] @ live[1]).new(mask=corner.S)
        assert [x.tolist() for x in made.to_coo()] == [[0], [0], [length - 1]]


def test_masks_of_a_matrix_as_matrices(backend):
    M = Matrix.from_coo([0, 1], [1, 0], [0, 5], INT64, nrows=2, ncols=2, backend=backend)
    assert repr(~M.V) == "~M.V"
    assert "Mask" in M.S._repr_html_()
    kept = {rule: sorted(zip(*(x.tolist() for x in rule.new().to_coo()[:2]), strict=True))
            for rule in (M.S, M.V, ~M.S, ~M.V)}  # fmt: skip
    assert list(kept.values()) == [
        [(0, 1), (1, 0)], [(1, 0)], [(0, 0), (1, 1)], [(0, 0), (0, 1), (1, 1)],
    ]  # fmt: skip


def matrix_program(A):
    """Every operation on whole matrices, in floats."""
    W = A.dup(FP64)
    C = semiring.plus_times(W @ W.T).new(mask=W.S)
    C(accum=binary.plus) << W.ewise_union(C, binary.minus, 0, 0)
    C(~A.V, replace=True) << semiring.min_first(C @ W)
    C[[0, 1], :2] << C.kronecker(C, "times").new()[:2, [2, 1]]
    C(C.S)[[0], :] << 0.1
    C << semiring.any_second(C @ W)
    return C.reduce("plus").new()


def test_a_watched_program_says_what_it_says_alone(backend):
    A = Matrix.from_coo([0, 0, 1, 2], [1, 2, 2, 0], [1, 2, 3, 4], nrows=3, ncols=3, backend=backend)
    alone = matrix_program(A)
    with lagpu.trace() as seen:
        assert matrix_program(A).value == alone.value
    methods = [row.method for row in seen.rows]
    assert {"matrix_mxm", "matrix_assign", "matrix_extract", "matrix_kronecker"} <= set(methods)
    assert any("A.S" in row.formula or "W.S" in row.formula for row in seen.rows)
    report = crosscheck(matrix_program, A, backends=("cpu", backend.name))
    assert report.statements > 7
