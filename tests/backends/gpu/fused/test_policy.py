"""Which matrices allow per-source execution: one thread block for each source."""

import pytest

from lagpu import BOOL, FP64, generators
from lagpu.backends.gpu.fused import search_many as policy
from lagpu.backends.gpu.fused.search_many import why_not_per_source
from lagpu.backends.gpu.storage import bitmap


def why_not(A, k):
    return why_not_per_source(A.data.store, k)


def test_which_graphs(place):
    """Sparse ones, and of them those without hubs; of one row none."""
    fits = {
        "road": generators.road(30, backend=place),
        "delaunay": generators.delaunay(9, backend=place),
        "star": generators.star(400, backend=place),
        "kron": generators.kronecker(11, 4, backend=place),
        "dense": generators.kronecker(9, 16, backend=place),
    }
    assert fits["kron"].nvals <= 8 * fits["kron"].nrows
    found = {name: why_not(A, 2).partition(" ")[0] for name, A in fits.items()}
    assert found == {"road": "", "delaunay": "", "star": "hubs", "kron": "hubs", "dense": "mean"}
    assert {why_not(A, 1) for A in fits.values()} == {"only one source"}


def test_hubs_are_counted_once(place, monkeypatch):
    A = generators.road(20, backend=place)
    assert not why_not(A, 2)
    monkeypatch.setattr(type(A.data.store), "col_ptr", property(lambda self: 1 / 0), raising=False)
    assert not why_not(A, 64)


def test_batches_by_levels_and_sources(place, monkeypatch):
    """64 or 32 sources where levels are few, else a power of two that a road network can take."""
    road, star = (
        A.data.store
        for A in (generators.road(20, backend=place), generators.star(400, backend=place))
    )
    few = policy._MOST_SHALLOW_LEVELS

    def sizes(A, levels, *sources):
        return [policy.batch_size(A, k, levels, [(FP64, 2)]) for k in sources]

    assert sizes(road, few, 100, 64, 63, 32, 31) == [64, 64, 32, 32, 1]
    assert sizes(road, few + 1, 200, 128, 127, 64, 7, 4, 3) == [128, 128, 64, 64, 4, 4, 1]
    assert sizes(star, few, 100) == [64]
    short = generators.path(100, backend=place).data.store  # too short for 64 rows as a bitmap
    assert sizes(short, few, 100) == [32]
    assert sizes(star, few + 1, 100) == [1]
    monkeypatch.setattr(place.device, "free_bytes", lambda: 0)
    assert sizes(road, few, 100) == [1]


def test_matrices_count_twice_and_four_of_the_widest_besides():
    n, k = 10_000, 64
    wide, narrow = bitmap.bytes_of(FP64, (k, n)), bitmap.bytes_of(BOOL, (k, n))
    live = [(FP64, 2), (BOOL, 3)]
    needed = 2 * (2 * wide + 3 * narrow) + 4 * wide
    assert policy._fit(live, k, n, needed, per_source=False)
    assert not policy._fit(live, k, n, needed - 1, per_source=False)
    assert not policy._fit(live, k, n, needed, per_source=True)
    assert not policy._fit([(FP64, 1)], k, 2 * k - 1, 1 << 40, per_source=False)  # not wide


@pytest.mark.parametrize("n", [1, 2, 3, 34, 63])
def test_batches_of_a_small_matrix_are_wide(place, n):
    """Half of its rows: products of sparse matrices take what CuPy compiles, for seconds."""
    A = generators.path(n, backend=place)
    rows = policy.batch_size(A.data.store, n, 3, [(FP64, 2)])
    assert rows == max(1, n // 2)
    assert n == 1 or bitmap.fits(place.device, FP64, (rows, n))
    assert policy.batch_size(A.data.store, 1, 3, [(FP64, 2)]) == 1
