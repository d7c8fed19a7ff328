"""Every matrix operation x type, by plain loops; and all forms in and out."""

import numpy as np
import pytest
import reference
import scipy.sparse
from hypothesis import strategies as st
from matches import assert_matches
from strategies import (
    ACCUMS,
    BINARY,
    INDEXUNARY,
    MONOIDS,
    SELECTORS,
    TYPES,
    UNARY,
    VALUES,
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

from lagpu import (
    BOOL,
    FP64,
    INT32,
    INT64,
    UINT64,
    Matrix,
    Vector,
    binary,
    indexunary,
    monoid,
    semiring,
    unary,
)
from lagpu.core.arguments import bound_operator, selected
from lagpu.errors import (
    BackendMismatch,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
)


def draw_matrix(draw, dtype, *, square=False):
    nrows = draw(sizes(), label="nrows")
    ncols = nrows if square else draw(sizes(), label="ncols")
    return plain_matrix(draw, nrows, ncols, dtype, iso=draw(st.booleans(), label="iso"))


def as_options(grid):
    return {where: [x] for where, x in grid.entries.items()}


@for_all(cpu=60)
def test_all_forms_in_and_out(backend, draw):
    A = draw_matrix(draw, draw(st.sampled_from(TYPES)))
    live = matrix(A, backend)
    assert live.shape == (A.nrows, A.ncols)
    assert_matches(live, as_options(A))
    where = {"dtype": A.dtype, "backend": backend}
    col_ptr, row_idx, values = live.to_csc()
    assert col_ptr.dtype == row_idx.dtype == np.int64
    narrow = live.backend.matrix_to_csc(live.data, narrow=True)
    assert [x.tolist() for x in narrow[:2]] == [col_ptr.tolist(), row_idx.tolist()]
    assert narrow[1].dtype == (np.int64 if live.backend.device is None else np.int32)
    again = Matrix.from_csc(col_ptr, row_idx, values, nrows=A.nrows, **where)
    assert_matches(again, as_options(A))
    row_ptr, col_idx, values = live.to_csr()
    again = Matrix.from_csr(row_ptr, col_idx, values, ncols=A.ncols, **where)
    assert again.shape == live.shape
    assert_matches(again, as_options(A))
    rows, cols, values = live.to_coo()
    assert sorted(zip(rows.tolist(), cols.tolist(), strict=True)) == sorted(A.entries)
    if len(rows) and not A.dtype.is_float:
        mine = scipy.sparse.csc_array((values, (rows, cols)), shape=live.shape).toarray()
        other = live.to_csc()
        theirs = scipy.sparse.csc_array((other[2], other[1], other[0]), shape=live.shape)
        assert (theirs.toarray() == mine).all()


@for_all()
def test_dup_casts(backend, draw):
    pick = combination(draw, backend, A=TYPES, C=TYPES)
    A = draw_matrix(draw, pick["A"])
    copy = matrix(A, backend).dup(pick["C"], name="copy")
    assert (copy.dtype, copy.name) == (pick["C"], "copy")
    expected = {where: [reference.cast(x, pick["C"])] for where, x in A.entries.items()}
    assert_matches(copy, expected)


@for_all()
def test_apply(backend, draw):
    ops = (*UNARY, *BINARY, *INDEXUNARY)
    pick = combination(draw, backend, A=TYPES, op=ops, C=TYPES)
    A = draw_matrix(draw, pick["A"])
    op = pick["op"]
    bound = None
    if op not in UNARY:
        bound = draw(st.sampled_from((0, 1, 2, -1)), label="bound")
    how = bound_operator(A.dtype, op, None, bound)
    expected = reference.apply(A.entries, op, how)
    got = matrix(A, backend).apply(op, bound).new()
    assert got.dtype is how.result
    assert_matches(got, expected)
    C = Matrix(pick["C"], A.nrows, A.ncols, backend=backend)
    C << matrix(A, backend).apply(op, bound)
    cast = {w: [reference.cast(x, pick["C"]) for x in xs] for w, xs in expected.items()}
    assert_matches(C, cast, how.result)


@for_all()
def test_apply_with_the_left_operand_bound(backend, draw):
    pick = combination(draw, backend, A=TYPES, op=BINARY)
    A = draw_matrix(draw, pick["A"])
    left = draw(st.sampled_from(VALUES[A.dtype.name]), label="left")
    left = A.dtype.numpy.type(left)
    how = bound_operator(A.dtype, pick["op"], left, None)
    got = matrix(A, backend).apply(pick["op"], left=left).new()
    assert_matches(got, reference.apply(A.entries, pick["op"], how))


@for_all()
def test_select(backend, draw):
    pick = combination(draw, backend, A=TYPES, op=SELECTORS)
    A = draw_matrix(draw, pick["A"])
    thunk = draw(st.sampled_from((0, 1, -1, 2, 40)), label="thunk")
    op, number, domain = selected(A.dtype, pick["op"], thunk)
    got = matrix(A, backend).select(op, thunk).new()
    assert_matches(got, reference.select(A.entries, op, domain, number))


@for_all()
def test_reduce_to_a_scalar(backend, draw):
    pick = combination(draw, backend, A=TYPES, op=MONOIDS)
    A = draw_matrix(draw, pick["A"])
    possible = reference.reduce(list(A.entries.values()), A.dtype, pick["op"])
    got = matrix(A, backend).reduce(pick["op"]).new()
    assert got.is_empty is (not possible)
    kind = got.dtype
    assert not possible or any(reference.close(got.value, x, kind, kind) for x in possible)


@for_all()
def test_reduce_to_a_vector(backend, draw):
    pick = combination(draw, backend, A=TYPES, op=MONOIDS, w=TYPES, accum=ACCUMS)
    A, op = draw_matrix(draw, pick["A"]), pick["op"]
    result_type = op.types(A.dtype)[1]
    if not op.is_exact(result_type) and op.name != "any" and not pick["w"].is_float:
        pick["w"] = FP64
    columnwise = draw(st.booleans(), label="columnwise")
    n = A.ncols if columnwise else A.nrows
    how, w = how_written(draw, n, pick["accum"]), plain_vector(draw, n, pick["w"])
    result = reference.reduce_rows(A.T if columnwise else A, op)
    expected = reference.write(w, result, result_type, how)
    live, mask = vector(w, backend), how.mask and vector(how.mask, backend)
    call = matrix(A, backend).reduce_columnwise if columnwise else matrix(A, backend).reduce_rowwise
    live(mask_of(how, mask), accum=how.accum, replace=how.replace) << call(op)
    assert_matches(live, expected, result_type)


@for_all()
def test_extract_row_column_entry(backend, draw):
    pick = combination(draw, backend, A=TYPES, w=TYPES, accum=ACCUMS)
    A = draw_matrix(draw, pick["A"])
    by_row = draw(st.booleans(), label="by row")
    count, n = (A.nrows, A.ncols) if by_row else (A.ncols, A.nrows)
    if not count:
        return
    k = draw(st.integers(0, count - 1), label="index")
    live = matrix(A, backend)
    B = A if by_row else A.T
    line = {j: [x] for (i, j), x in B.entries.items() if i == k}
    how, w = how_written(draw, n, pick["accum"]), plain_vector(draw, n, pick["w"])
    expected = reference.write(w, line, A.dtype, how)
    out, mask = vector(w, backend), how.mask and vector(how.mask, backend)
    to = out(mask_of(how, mask), accum=how.accum, replace=how.replace)
    to << (live[k, :] if by_row else live[:, k])
    assert_matches(out, expected)
    if n:
        j = draw(st.integers(0, n - 1), label="other index")
        where = (k, j) if by_row else (j, k)
        got = live.get(*where, "none")
        there = A.entries.get(where)
        assert got == "none" if there is None else reference.close(got, there, A.dtype, A.dtype)
        assert live[where].new().is_empty is (there is None)


@for_all()
def test_transpose(backend, draw):
    pick = combination(draw, backend, A=TYPES, C=TYPES)
    A = draw_matrix(draw, pick["A"])
    live = matrix(A, backend)
    assert live.T.shape == (A.ncols, A.nrows)
    assert live.T.T is live
    assert_matches(live.T.new(), as_options(A.T))
    C = Matrix(pick["C"], A.ncols, A.nrows, backend=backend)
    C << live.T
    expected = {where: [reference.cast(x, pick["C"])] for where, x in A.T.entries.items()}
    assert_matches(C, expected)
    if A.nrows == A.ncols:
        live << live.T
        assert_matches(live, as_options(A.T))


@for_all(cpu=80)
def test_diag(backend, draw):
    pick = combination(draw, backend, A=TYPES)
    A = draw_matrix(draw, pick["A"])
    live = matrix(A, backend)
    for k in (0, 1, -1, 3):
        size = min(A.nrows, A.ncols - k) if k >= 0 else min(A.nrows + k, A.ncols)
        if size > 0:
            line = {min(i, j): [x] for (i, j), x in A.entries.items() if j - i == k}
            got = live.diag(k)
            assert got.size == size
            assert_matches(got, line)
    v = plain_vector(draw, draw(sizes(), label="size"), pick["A"])
    for k in (0, 2, -1):
        D = vector(v, backend).diag(k)
        assert D.shape == (v.size + abs(k),) * 2
        expected = {(i + max(-k, 0), i + max(k, 0)): [x] for i, x in v.entries.items()}
        assert_matches(D, expected)


@for_all(cpu=80)
def test_isequal_and_symmetry(backend, draw):
    A = draw_matrix(draw, draw(st.sampled_from(TYPES)), square=True)
    A.entries = {where: x for where, x in A.entries.items() if x == x}  # NaN equals nothing
    live = matrix(A, backend)
    assert live.isequal(matrix(A, backend))
    assert live.isequal(live.T.new()) is (A.T.entries == A.entries)
    assert live.is_symmetric is (A.T.entries == A.entries)
    both = dict(A.entries) | A.T.entries
    lower = {(i, j): x for (i, j), x in both.items() if i >= j}
    A.entries = lower | {(j, i): x for (i, j), x in lower.items()}
    symmetric = matrix(A, backend)
    assert symmetric.is_symmetric
    if A.entries:
        where = draw(st.sampled_from(sorted(A.entries)))
        other = dict(A.entries)
        other[where] = A.dtype.numpy.type(9) if not A.dtype.is_bool else ~A.entries[where]
        assert not symmetric.isequal(
            matrix(reference.PlainMatrix(A.nrows, A.ncols, A.dtype, other), backend)
        )
        del other[where]
        assert not symmetric.isequal(
            matrix(reference.PlainMatrix(A.nrows, A.ncols, A.dtype, other), backend)
        )
    assert not live.isequal(Matrix(A.dtype, A.nrows, A.ncols + 1, backend=backend))


@pytest.mark.parametrize("dtype", ["FP32", "FP64"])
@pytest.mark.parametrize(
    ("values", "symmetric"),
    [
        ([2.0, 2.0, 5.0], True),
        ([2.0, 3.0, 5.0], False),
        ([np.nan, np.nan, 5.0], False),
        ([np.nan, np.nan, np.nan], False),  # perhaps stored as one value
        ([2.0, 2.0, np.nan], False),
        ([0.0, -0.0, 5.0], True),
        ([0.0, 1.0, -0.0], False),
        ([np.inf, np.inf, -0.0], True),
    ],
)
def test_symmetry_is_that_of_numbers(backend, dtype, values, symmetric):
    A = Matrix.from_coo([0, 1, 2], [1, 0, 2], values, dtype, nrows=3, ncols=3, backend=backend)
    assert A.is_symmetric is symmetric is A.isequal(A.T.new())
    assert A.is_symmetric is symmetric  # as remembered
    assert A.to("cpu").is_symmetric is A.to("sim").is_symmetric is symmetric  # as passed on
    # What a backend knows of the bits may not make it read A for A' where they differ.
    u = Vector.from_coo([0, 1, 2], [1.0, 2.0, 3.0], dtype, backend=backend)
    sums = semiring.plus_second(u @ A), semiring.plus_first(A.T.new() @ u)
    np.testing.assert_array_equal(*(call.new().to_dense(7.0) for call in sums))


def test_duplicates_are_combined_or_refused(backend):
    triplets = ([1, 0, 1, 1], [2, 0, 2, 2], [1, 5, 2, 4])
    with pytest.raises(InvalidValue, match="given twice"):
        Matrix.from_coo(*triplets, backend=backend)
    for op, expected in ((binary.plus, 7), (binary.max, 4), (binary.times, 8)):
        A = Matrix.from_coo(*triplets, dup_op=op, backend=backend)
        assert (A.nvals, A.get(1, 2), A.get(0, 0)) == (2, expected, 5)
    B = Matrix.from_coo(triplets[0], triplets[1], True, dup_op=binary.lor, backend=backend)
    assert (B.dtype, B.nvals, B.get(1, 2)) == (BOOL, 2, True)
    C = Matrix.from_coo(triplets[0], triplets[1], 1, INT32, dup_op=binary.plus, backend=backend)
    assert (C.dtype, C.get(1, 2), C.get(0, 0)) == (INT32, 3, 1)


@pytest.mark.parametrize(
    ("op", "dtype", "values", "kept"),
    [
        (binary.lor, FP64, [2.5, 3.0, 7.0, -4.0], [1.0, 7.0, -4.0]),
        (binary.lxnor, INT64, [2, 0, 7, -4], [0, 7, -4]),
        (binary.lt, INT64, [2, 3, 7, -4], [1, 7, -4]),
        (binary.truediv, UINT64, [6, 3, 2**63 + 1, 5], [2, 2**63 + 1, 5]),
    ],
)
def test_an_entry_given_once_keeps_its_value(backend, op, dtype, values, kept):
    A = Matrix.from_coo([0, 0, 1, 2], [2, 2, 1, 0], values, dtype, dup_op=op, backend=backend)
    assert [x.tolist() for x in A.to_coo()] == [[0, 1, 2], [2, 1, 0], kept]


@pytest.mark.parametrize("value", [True, 7, 2.5])
def test_an_entry_given_twice_is_one_entry_where_all_have_one_value(backend, value):
    A = Matrix.from_coo([1, 0, 1, 1], [2, 0, 2, 2], value, nrows=2, ncols=3, backend=backend)
    assert A.to_dicts() == {0: {0: value}, 1: {2: value}}
    B = Matrix.from_edgelist([(0, 1), (2, 3), (0, 1)], value, backend=backend)
    assert B.to_dicts() == {0: {1: value}, 2: {3: value}}
    with pytest.raises(InvalidValue, match="given twice"):  # an array may hold other values
        Matrix.from_coo([1, 1], [2, 2], [value, value], backend=backend)


def test_an_entry_given_twice_without_a_value_is_one_edge(backend):
    A = Matrix.from_coo([1, 0, 1], [2, 0, 2], nrows=3, ncols=3, backend=backend)
    assert (A.dtype, A.nvals) == (BOOL, 2)
    q = Vector.from_coo([1], True, size=3, backend=backend)
    assert semiring.plus_pair(q @ A).new().to_dense(0).tolist() == [0, 0, 1]


def test_shape_is_inferred_from_the_indices(backend):
    A = Matrix.from_coo([1, 4], [2, 0], [1.5, 2.5], backend=backend)
    assert (A.shape, A.dtype) == ((5, 3), FP64)


def test_scalar_values_make_an_iso_matrix(backend):
    A = Matrix.from_csc([0, 1, 1, 3], [0, 0, 1], 7, nrows=2, backend=backend)
    assert (A.shape, A.dtype) == ((2, 3), INT64)
    assert A.to_coo()[2].tolist() == [7, 7, 7]
    assert A.apply(binary.times, 2).new().reduce(monoid.plus).new().value == 42
    B = Matrix.from_csr([0, 2, 3], [0, 2, 2], True, ncols=3, backend=backend)
    assert (B.shape, B.dtype, B.nvals) == ((2, 3), BOOL, 3)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_matrices_of_nothing(backend, shape):
    A = Matrix(INT32, *shape, backend=backend)
    assert (A.shape, A.nvals) == (shape, 0)
    assert A.T.new().shape == shape[::-1]
    assert A.dup().isequal(A)
    assert A.apply(unary.ainv).new().nvals == 0
    assert A.select(indexunary.tril).new().nvals == 0
    assert A.reduce(monoid.plus).new().is_empty
    assert A.reduce_rowwise(monoid.plus).new().size == shape[0]
    assert A.reduce_columnwise(monoid.plus).new().size == shape[1]
    assert [len(x) for x in A.to_csc()] == [shape[1] + 1, 0, 0]
    assert [len(x) for x in A.to_csr()] == [shape[0] + 1, 0, 0]


def test_large_unsigned_values_survive(backend):
    big = 2**63 + 12345
    A = Matrix.from_coo([0, 1], [1, 0], np.array([big, 1], np.uint64), backend=backend)
    assert A.get(0, 1) == big
    assert A.reduce(monoid.max).new().value == big
    assert Matrix.from_coo([0], [0], big, backend=backend).get(0, 0) == big
    assert Matrix.from_csc([0, 1], [0], big, nrows=1, backend=backend).get(0, 0) == big
    v = Vector.from_coo([0, 2], big, size=3, backend=backend)
    assert v.to_dense(0).tolist() == [big, 0, big]
    v[1] = big - 1
    assert v.reduce(monoid.min).new().value == big - 1
    assert v.apply(binary.minus, big - 1).new().to_dense().tolist() == [1, 0, 1]
    assert v.ewise_union(v, binary.plus, big, big).new().get(0) == (2 * big) % 2**64


# ----------------------------------------------------------------------- built of vectors


def test_vectors_may_say_where_entries_are(backend):
    """They are read where they are, and written later without a change of the matrix."""
    f = Vector.from_dense(np.array([2, 0, 2], np.int32), backend=backend, name="f")
    own = Vector.from_dense(np.arange(3), backend=backend)
    x = Vector.from_dense(np.array([1.5, 2.5, 3.5]), backend=backend)
    each = Vector.from_dense(np.arange(4), backend=backend)
    same = Vector.from_dense(np.full(3, 1), backend=backend)
    made = (
        Matrix.from_coo(f, own, x, nrows=3, ncols=3, like=f),
        Matrix.from_csc(each, f, x, nrows=3, like=f),
        Matrix.from_csr(each, f, x, ncols=3, like=f).T.new(),
        Matrix.from_csr(each, f, x, ncols=5, like=f)[:, :3].new().T.new(),
    )
    f[0] = 0
    x[0] = 9
    for matrix_of_them in made:
        rows, cols, values = matrix_of_them.to_coo()
        assert (rows.tolist(), cols.tolist()) == ([0, 2, 2], [1, 0, 2])
        assert values.tolist() == [2.5, 1.5, 3.5]
    f[0] = 2
    iso = Matrix.from_coo(own, same, nrows=3, ncols=3, like=f)
    assert iso.dtype is BOOL
    assert [part.tolist() for part in iso.to_coo()[:2]] == [[0, 1, 2], [1, 1, 1]]
    for _ in range(2):  # a matrix made of an output is not that output
        P = Matrix.from_csc(each, f, nrows=3, like=f, name="P")
        f << semiring.min_first(f @ P)
    assert f.to_dense().tolist() == [2, 2, 2]


def test_vectors_that_say_no_places(backend):
    u = Vector.from_coo([0, 2], [1, 2], size=3, backend=backend, name="u")
    full = Vector.from_dense(np.arange(3), backend=backend)
    with pytest.raises(InvalidValue, match=r"from_coo: u has 2 of 3 entries\. Give a full vector"):
        Matrix.from_coo(u, full, like=full)
    with pytest.raises(DomainMismatch, match="indices are float64"):
        Matrix.from_coo(full.dup("FP64"), full, like=full)
    with pytest.raises(IndexOutOfBound, match="row 2 is outside"):
        Matrix.from_coo(full, full, nrows=2, like=full)
    with pytest.raises(DimensionMismatch, match="3 rows != 2 columns"):
        Matrix.from_coo(full, full[:2].new(), like=full)
    if backend.name != "cpu":
        with pytest.raises(BackendMismatch, match=r"from_csc: .* is on .*, the new object on cpu"):
            Matrix.from_csc(full, np.arange(2), nrows=3, backend="cpu")
        with pytest.raises(BackendMismatch, match=r"from_csr: .* is on .*, the new object on cpu"):
            Matrix.from_csr(full, np.arange(2), ncols=3, backend="cpu")


@pytest.mark.parametrize("shape", [(2, 5), (5, 2), (3, 3)])
def test_every_diagonal_of_wide_and_tall_matrices(backend, shape):
    dense = np.arange(1, 1 + shape[0] * shape[1]).reshape(shape)
    rows, cols = np.nonzero(dense)
    A = Matrix.from_coo(
        rows, cols, dense[rows, cols], nrows=shape[0], ncols=shape[1], backend=backend
    )
    for k in range(1 - shape[0], shape[1]):
        found = A.diag(k)
        assert found.size == len(np.diagonal(dense, k))
        assert found.to_dense().tolist() == np.diagonal(dense, k).tolist()
        found << 1
        assert found.nvals == found.size


def test_matrices_that_differ_in_one_thing_are_not_equal(backend):
    A = Matrix.from_coo([0, 1], [0, 1], [1, 2], nrows=2, ncols=3, backend=backend)
    for rows, cols, values in (
        ([0, 1], [0, 2], [1, 2]),
        ([0, 0], [0, 1], [1, 2]),
        ([0, 1], [0, 1], [1, 3]),
        ([0], [0], [1]),
    ):
        assert not A.isequal(Matrix.from_coo(rows, cols, values, nrows=2, ncols=3, backend=backend))
    assert A.isequal(Matrix.from_coo([1, 0], [1, 0], [2, 1], nrows=2, ncols=3, backend=backend))


def test_matrices_of_one_value_are_equal_by_it(backend):
    def one(value, where):
        return Matrix.from_coo(where, where, value, INT64, nrows=3, ncols=3, backend=backend)

    assert one(2, [0, 1]).isequal(one(2, [0, 1]))
    assert not one(2, [0, 1]).isequal(one(3, [0, 1]))
    assert one(2, []).isequal(one(3, []))
