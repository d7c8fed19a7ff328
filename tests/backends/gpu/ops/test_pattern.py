"""Masked products of matrices: how they are added to a matrix of the mask's entries."""

import numpy as np
import pytest

import lagpu
from lagpu import Matrix, Vector, algorithms, binary, generators, semiring
from lagpu.backends.gpu.ops import sparse as masked
from lagpu.backends.gpu.ops import sparse as pattern

SHAPES = [(1, 1, 1), (31, 5, 33), (32, 40, 31), (33, 3, 1025), (1023, 64, 70)]


def drawn(shape, share, seed, backend, dtype="FP64"):
    """Random entries, with columns and rows that have none."""
    rng = np.random.default_rng(seed)
    there = rng.random(shape) < share
    there[rng.random(shape[0]) < 0.2] = False
    there[:, rng.random(shape[1]) < 0.2] = False
    rows, cols = there.nonzero()
    values = rng.integers(0, 4, len(rows))
    kind = getattr(lagpu, dtype)
    return Matrix.from_coo(
        rows, cols, values.astype(kind.numpy), kind, nrows=shape[0], ncols=shape[1], backend=backend
    )


def same(A, B):
    return all(x.tolist() == y.tolist() for x, y in zip(A.to_coo(), B.to_coo(), strict=True))


@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
@pytest.mark.parametrize("way", ["same", "by value", "other", "empty", "replace"])
def test_a_masked_product_is_accumulated(place, m, k, n, way):
    found = []
    for backend in (place, "cpu"):
        A, B = drawn((m, k), 0.4, 1, backend), drawn((n, k), 0.4, 2, backend, "INT32")
        M = drawn((m, n), 0.3, 3, backend)
        C = drawn((m, n), 0.3, 4 if way == "other" else 3, backend, "INT64")
        if way == "empty":
            C.clear()
        mask = M.V if way == "by value" else M.S
        C(mask, accum=binary.plus, replace=way == "replace") << semiring.plus_times(A @ B.T)
        found.append(C)
    assert same(*found)


@pytest.mark.parametrize("accum", ["minus", "max"])
@pytest.mark.parametrize("traced", [False, True])
def test_entries_of_the_mask_are_not_sought(place, monkeypatch, accum, traced):
    """A matrix that was assigned under the mask has its entries, and keeps them."""
    found = []
    for backend in ("cpu", place):
        A = drawn((70, 70), 0.3, 5, backend)
        C = Matrix(lagpu.FP64, 70, 70, like=A)
        if backend is place:
            for name in ("write", "positions"):
                monkeypatch.setattr(pattern, name, None)
        C(A.S) << 3
        for _ in range(2):
            if traced:
                with lagpu.trace():
                    C(A.S, accum=binary[accum]) << semiring.plus_times(A.T @ A)
            else:
                C(A.S, accum=binary[accum]) << semiring.plus_times(A.T @ A)
        found.append(C)
    assert same(*found)
    C, A = C.data.csc(), A.data.csc()
    assert C.row_idx is A.row_idx
    assert C.col_ptr is A.col_ptr


@pytest.mark.parametrize("way", ["a product at its entries", "fewer entries"])
def test_values_that_another_matrix_has_too_are_not_written_to(place, way):
    A = drawn((40, 40), 0.3, 5, place)
    C = Matrix(lagpu.FP64, 40, 40, like=A)
    C(A.S) << 3
    C(A.S, accum=binary.plus) << semiring.plus_times(A @ A.T)
    D, before = C.select("valuegt", -1).new(), C.to_coo()[2].tolist()
    assert D.data.csc().values is C.data.csc().values
    if way == "fewer entries":
        C(accum=binary.plus) << C.select("tril").new()
    else:
        C(A.S, accum=binary.plus) << semiring.plus_pair(A @ A.T)
    assert C.to_coo()[2].tolist() != before
    assert D.to_coo()[2].tolist() == before


def test_edges_are_not_numbered(place, monkeypatch):
    """Edge betweenness of an undirected graph finds no entry by its position."""
    A = generators.kronecker(8, backend=place)
    expected = algorithms.edge_betweenness_centrality(A.to("cpu"), 5, seed=2)
    monkeypatch.setattr(pattern, "positions", None)
    found = algorithms.edge_betweenness_centrality(A, 5, seed=2)
    for x, y in zip(found.to_coo(), expected.to_coo(), strict=True):
        assert x == pytest.approx(y, rel=1e-12)


@pytest.mark.parametrize("n", [1, 33, 1025])
@pytest.mark.parametrize("single", ["both", "left", "right"])
def test_rows_and_columns_of_one_entry(place, n, single):
    """Where each row or column has one entry its offsets are not read."""
    found, rng = [], np.random.default_rng(n)
    rows, values = rng.integers(0, 4, (2, 2, n))
    for backend in ("cpu", place):
        P, S = (
            Matrix.from_csc(np.arange(n + 1), r, v, nrows=4, backend=backend)
            for r, v in zip(rows, values, strict=True)
        )
        other = drawn((4, n), 0.4, 7, backend, "INT64")
        P, S = (other if single == "right" else P), (other if single == "left" else S)
        M = drawn((n, n), min(1, 30 / n), 6, backend)
        C = Matrix(lagpu.INT64, n, n, like=M)
        C(M.S) << 1
        C(M.S, accum=binary.plus) << semiring.plus_times(P.T @ S)
        found.append(C)
        if backend is place and single == "both":
            left = masked.Left(P.data.csc(), True)
            products, steps, _ = masked.count_steps(left, S.data.csc(), M.data.csc())
            assert products == sum((rows[0] == k).sum() * (rows[1] == k).sum() for k in range(4))
            assert steps == 2 * M.nvals
    assert same(*found)


SCALED = [
    lambda A, D, E: semiring.plus_times(D @ A),
    lambda A, D, E: semiring.any_first(A.T @ D),
    lambda A, D, E: semiring.any_minus(A @ E.T),
    lambda A, D, E: semiring.min_secondi(E @ A.T),
    lambda A, D, E: semiring.min_firstj(D.T @ A),
    lambda A, D, E: semiring.plus_second(E @ E),
    lambda A, D, E: binary.truediv(A & E.diag()),
    lambda A, D, E: semiring.plus_times(D @ A[:, :0].new()),
]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("k", range(len(SCALED)))
def test_a_product_with_a_diagonal_matrix_lists_no_products(place, monkeypatch, share, k):
    found = []
    for backend in ("cpu", place):
        A = drawn((40, 33), 0.3, 5, backend)
        D, E = (
            Vector.from_coo(x, x + 2, size=n, backend=backend).diag()
            for n in A.shape
            for x in [np.flatnonzero(np.random.default_rng(1).random(n) < share)]
        )
        if backend is place:
            monkeypatch.setattr(pattern, "_all", None)
        with lagpu.trace() as t:
            found.append(SCALED[k](A, D, E).new())
        assert t.rows[-1].edges == found[-1].nvals or k == 6 or backend == "cpu"
        found.append(SCALED[k](A, D, E).new())
    assert same(found[0], found[2])
    assert same(found[1], found[3])
    assert found[0].dtype is found[2].dtype


def test_explain_says_that_a_matrix_is_diagonal(place):
    A = drawn((8, 8), 0.5, 6, place)
    D = Vector.from_scalar(2, 8, like=A).diag()
    assert "diagonal" in str(lagpu.explain(semiring.plus_times(D @ A)))
    assert "diagonal" not in str(lagpu.explain(semiring.plus_times(D.dup() @ A)))


@pytest.mark.parametrize("complement", [False, True])
def test_an_empty_matrix_is_written_under_a_mask_without_a_merge(place, monkeypatch, complement):
    found = []
    for backend in ("cpu", place):
        A, M = (drawn((40, 33), 0.3, seed, backend) for seed in (5, 6))
        if backend is place:
            monkeypatch.setattr(pattern.stores, "merged", None)
        found += [A.dup(mask=~M.V if complement else M.V), A.ewise_add(A.dup(clear=True)).new()]
    assert same(found[0], found[2])
    assert same(found[1], found[3])


def test_an_intersection_merges_no_positions_and_a_product_is_counted_once(place, monkeypatch):
    found = []
    for backend in ("cpu", place):
        A, B = (drawn((40, 40), share, 5, backend) for share in (0.3, 0.1))
        if backend is place:
            monkeypatch.setattr(pattern.stores, "merged", None)
            monkeypatch.setattr(pattern, "count_steps", None)
        found += [A.ewise_mult(B, "minus").new(), B.ewise_mult(A.T, "first").new()]
        with lagpu.trace() as t:
            found.append(semiring.plus_times(A @ B).new())
    assert all(map(same, found[:3], found[3:]))
    numbers = semiring.plus_pair(A.to("cpu") @ B.to("cpu")).new()
    assert t.rows[0].edges == numbers.reduce("plus").new().value
    assert f"products {t.rows[0].edges}" in t.rows[0].reason


def test_positions_of_small_patterns_are_found_once(place, monkeypatch):
    A = drawn((40, 40), 0.3, 5, place)
    C = A.apply("abs").new()
    where = pattern.positions(A.data.csc())
    assert pattern.positions(C.data.csc()) is where
    monkeypatch.setattr(pattern, "_FEW", 3)
    B = drawn((40, 40), 0.3, 5, place)
    again = pattern.positions(B.data.csc())
    assert pattern.positions(B.data.csc()) is not again
    assert again.tolist() == where.tolist()


@pytest.mark.parametrize("kind", ["ewise_add", "ewise_mult"])
def test_memory_is_asked_for_before_two_patterns_are_combined(place, monkeypatch, kind):
    A, B = (drawn((40, 40), share, 5, place) for share in (0.3, 0.1))
    monkeypatch.setattr(place.device, "free_bytes", lambda: 40 * (A.nvals + B.nvals))
    monkeypatch.setattr(place.device, "pooled_bytes", lambda: 0)
    with pytest.raises(lagpu.errors.OutOfMemory, match="matrix operation"):
        getattr(A, kind)(B, "plus").new()
