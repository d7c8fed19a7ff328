"""A matrix whose second form does not fit: everything runs with the one that is there."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from loop_names import GRID, loop_name

import lagpu
from lagpu import BOOL, FP64, INT64, Matrix, Vector, algorithms, semiring
from lagpu.backends.gpu import backend as of_gpu
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.storage import forms, stores
from lagpu.backends.gpu.storage.stores import CscMatrix
from lagpu.errors import NotSupported
from lagpu.generators import kronecker


@pytest.fixture
def scarce():
    """A backend of its own, and what leaves it too few free bytes to sort a matrix by row."""
    device = SimDevice()
    device.pooled_bytes = lambda: 0

    def fill(A):
        device.free_bytes = lambda: 32 * A.nvals - 8

    return of_gpu.GpuBackend("scarce", device), fill


def directed(place):
    G = kronecker(5, backend="cpu", seed=3).to_coo()
    keep = (G[0] < G[1]) | (G[0] % 3 == 0)
    return Matrix.from_coo(G[0][keep], G[1][keep], nrows=32, ncols=32, backend=place)


@pytest.mark.parametrize("known", [False, True])
def test_products_and_loops_run_without_rows(scarce, known):
    place, fill = scarce
    A = directed(place)
    right = algorithms.bfs_levels(directed("cpu"), 1)
    if known:
        assert not A.is_symmetric
    fill(A)
    q = Vector.from_coo([1], True, size=32, like=A)
    found = semiring.any_pair(q @ A, kernel="push_edge").new()
    assert found.nvals == right.select("valueeq", 1).new().nvals
    assert "second form is missing: making it needs" in lagpu.explain(semiring.any_pair(q @ A))
    with pytest.raises(NotSupported, match=r"making it needs .*, .* free. Use push_edge, or free"):
        semiring.any_pair(q @ A, kernel="push_queue").new()
    assert algorithms.bfs_levels(A, 1).to("cpu").isequal(right)
    assert loop_name(place) == "grid search"  # by one form
    with lagpu.eager():
        assert algorithms.bfs_levels(A, 1).to("cpu").isequal(right)
    assert A.data.store.csr is None
    assert not A.is_symmetric  # which takes no room


def test_a_symmetric_matrix_is_known_without_room(scarce):
    place, fill = scarce
    A = kronecker(5, backend=place, seed=3)
    A.data.store.symmetric = None
    fill(A)
    q = Vector.from_coo([1], True, size=32, like=A)
    assert "missing" not in lagpu.explain(semiring.any_pair(q @ A))
    assert semiring.any_pair(q @ A, kernel="push_queue").new().nvals > 0


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1023, 1025])
def test_one_entry_without_its_mirror_image_is_found(place, size):
    rng = np.random.default_rng(size)
    i, j = rng.integers(0, size, (2, 2 * size))
    values = rng.integers(1, 9, 2 * size)
    both = np.r_[i, j, 0, size - 1], np.r_[j, i, size - 1, 0], np.r_[values, values, 1, 1]
    for dtype in (BOOL, INT64, FP64):
        A = Matrix.from_coo(
            *both[:2], both[2].astype(dtype.numpy), nrows=size, ncols=size, dup_op="max",
            backend=place,
        )  # fmt: skip
        assert A.is_symmetric
        rows, cols, values = A.to_coo()
        if size == 1:
            continue
        for at in np.flatnonzero(rows != cols)[:: max(1, A.nvals // 7)]:
            fewer = (np.delete(x, at) for x in (rows, cols, values))
            assert not Matrix.from_coo(*fewer, nrows=size, ncols=size, backend=place).is_symmetric
            if dtype is not BOOL:
                other = values.copy()
                other[at] = -1
                B = Matrix.from_coo(rows, cols, other, nrows=size, ncols=size, backend=place)
                assert not B.is_symmetric


def test_rows_are_sorted_once(monkeypatch):
    """Whether a matrix is symmetric is known before."""
    place = of_gpu.GpuBackend("roomy", SimDevice())
    sorted_, sort = [], forms.transpose
    monkeypatch.setattr(forms, "transpose", lambda A, *how: sorted_.append(A) or sort(A, *how))
    L = directed(place).select("tril", -1).new()
    known = kronecker(5, backend=place)  # as every generated graph says
    symmetric = Matrix.from_csc(*known.to_csc(), nrows=32, backend=place)
    for A in (L, symmetric, known):
        for _ in range(2):
            semiring.plus_pair(A @ A.T).new(mask=A.S)
    assert sorted_ == [L.data.store]
    assert symmetric.data.store.symmetric
    assert (L.data.store.symmetric, symmetric.data.store.symmetric) == (False, True)
    assert symmetric.data.store.csr is None


def test_rows_that_are_there_need_no_room(scarce):
    """A search that has made them runs as one kernel still once nothing else fits."""
    place, fill = scarce
    A = directed(place)
    right = algorithms.bfs_levels(A, 1)
    assert loop_name(place) == GRID
    fill(A)
    assert algorithms.bfs_levels(A, 1).isequal(right)
    assert loop_name(place) == GRID


@pytest.mark.parametrize("shape", [(3, 4), (4, 3)])
def test_the_rows_of_a_matrix_that_is_not_square(place, shape):
    A = Matrix.from_coo([0, 2, 1], [1, 2, 2], [5, 6, 7], nrows=shape[0], ncols=shape[1],
                        backend=place)  # fmt: skip
    rows = forms.csr_of(A.data.csc())
    assert rows.shape == shape[::-1]
    assert forms.csr_of(A.data.csc()) is rows
    found = [place.device.to_host(x).tolist() for x in (rows.col_ptr, rows.row_idx, rows.values)]
    assert found == [[0, 1, 2, 3, 3][: shape[0] + 1], [1, 2, 2], [5, 7, 6]]
    assert not A.is_symmetric


@pytest.mark.parametrize(("nrows", "wide"), [(5, False), (2**31 - 1, False), (2**31, True)])
def test_rows_past_two_to_the_31_take_eight_bytes(place, nrows, wide):
    """However many columns there are."""
    xp = place.device.xp
    for ncols in (2, 2**31 + 7):  # the pointer's length does not matter here
        ptr, rows = xp.zeros(3, np.int64), xp.zeros(4, np.int64) + (nrows - 1)
        made = CscMatrix(place.device, BOOL, (nrows, ncols), ptr, rows, None, np.True_)
        assert made.row_idx.dtype == (np.int64 if wide else np.int32)
        assert made.col_ptr.dtype == np.int32
        assert int(made.row_idx[0]) == nrows - 1


@pytest.mark.parametrize("values", [2.5, [1.0, 2.0, 3.0], [4.0, 4.0, 4.0]])
def test_what_is_asked_for_is_what_is_held(place, values, monkeypatch):
    asked = []
    monkeypatch.setattr(place.device, "require", lambda nbytes, *_: asked.append(nbytes))
    given = np.float64(values) if np.ndim(values) == 0 else np.array(values)
    made = forms.from_csc(
        place.device, np.array([0, 1, 3, 3, 3]), np.array([2, 0, 1]), given, FP64, (3, 4)
    )
    assert (made.values is None) is (values != [1.0, 2.0, 3.0])
    pointers = 8 * 5  # INT64 as they come, INT32 as they are kept
    assert asked == [made.nbytes - made.col_ptr.nbytes + pointers]
    asked.clear()
    rows = np.array([2, 0, 1])
    made = forms.from_csc(place.device, rows, rows, given, FP64, (3, 2**31))
    assert asked == [made.row_idx.nbytes + (0 if made.values is None else made.values.nbytes) + 24]


@pytest.mark.parametrize(("nrows", "ncols", "count"), [(50, 3, 40), (3, 50, 0), (40, 40, 1000)])
def test_rows_are_those_that_scipy_finds(place, nrows, ncols, count):
    rng = np.random.default_rng(count)
    shape = (nrows, ncols)
    position = np.unique(rng.integers(0, nrows * ncols, count))
    values = rng.permutation(len(position)) + 0.5
    there = scipy.sparse.coo_array((values, np.unravel_index(position, shape)), shape)
    right = there.tocsr()
    csc = there.tocsc()
    A = Matrix.from_csc(csc.indptr, csc.indices, csc.data, nrows=nrows, backend=place)
    rows = forms.transpose(A.data.csc())
    found = [
        place.device.to_host(x)
        for x in (rows.col_ptr, rows.row_idx, stores.spread(rows, rows.values))
    ]
    for mine, theirs in zip(found, (right.indptr, right.indices, right.data), strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize(("values", "same"), [([-0.0, 0.0], False), ([np.nan, np.nan], True)])
def test_a_matrix_is_its_rows_too_if_the_bits_of_its_values_are(place, values, same):
    A = Matrix.from_coo([0, 1, 2], [1, 0, 2], [*values, 1.0], nrows=3, ncols=3, backend=place)
    assert forms.is_symmetric(A.data.csc()) is same


@pytest.mark.parametrize("shares", [1, 2, 5, 64])
@pytest.mark.parametrize(
    ("shape", "count"), [((1, 1), 1), ((33, 7), 0), ((33, 70), 400), ((70, 33), 900), ((5, 1), 5)]
)
def test_rows_that_are_sorted_by_shares_are_the_same(place, shape, count, shares, monkeypatch):
    rng = np.random.default_rng(count)
    i, j = rng.integers(0, shape[0], count), rng.integers(0, shape[1], count)
    i[: count // 2] = shape[0] // 2  # a hub
    A = Matrix.from_coo(i, j, True, BOOL, nrows=shape[0], ncols=shape[1], backend=place)
    wanted = A.T.new()
    monkeypatch.setattr(forms, "_BLOCK", 100)
    monkeypatch.setattr(forms, "_shares", lambda A: shares)
    cuts = []
    usual = forms.sorted_columns
    monkeypatch.setattr(
        forms, "sorted_columns", lambda *given: cuts.append(given[-1]) or usual(*given)
    )
    turned = forms.transpose(A.data.csc())
    lengths = np.diff(wanted.to_csc()[0])
    of_share = [lengths[a:b].sum() for a, b in itertools.pairwise(cuts[0])]
    assert len(of_share) == shares
    assert max(of_share) <= A.nvals / shares + lengths.max()
    for found, right in zip((turned.col_ptr, turned.row_idx), wanted.to_csc()[:2], strict=True):
        assert place.device.to_host(found).tolist() == right.tolist()
    assert turned.shape == shape[::-1]
    assert turned.col_ptr.dtype == A.data.csc().col_ptr.dtype


def test_a_matrix_with_too_little_room_for_one_sort_has_its_rows_by_shares(monkeypatch):
    """Of one value; one with values keeps one form, as its places must be sorted too."""
    device = SimDevice()
    device.pooled_bytes = lambda: 0
    place = of_gpu.GpuBackend("scarce", device)
    monkeypatch.setattr(forms, "_BLOCK", 64)
    i, j = np.random.default_rng(1).integers(0, 300, (2, 9000))
    right = algorithms.bfs_levels(Matrix.from_coo(i, j, nrows=300, ncols=300, backend="cpu"), 1)
    made = []
    usual = forms._transposed_by_shares
    monkeypatch.setattr(forms, "_transposed_by_shares", lambda A, n: made.append(n) or usual(A, n))
    for values, how in ((True, {}), (np.arange(9000.0), {"dup_op": "max"})):
        A = Matrix.from_coo(i, j, values, nrows=300, ncols=300, **how, backend=place)
        device.free_bytes = lambda A=A: 30 * A.nvals
        assert algorithms.bfs_levels(A, 1).to("cpu").isequal(right)
        assert (A.data.store.csr is None) == (values is not True)
        del device.free_bytes
    assert made == [2]
