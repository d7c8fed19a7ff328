"""Fused searches whose products add up: every way in which a pull looks at the frontier."""

import numpy as np
import pytest
from hubs import directions
from limits import set_limits

import lagpu
from lagpu import Matrix, Vector, algorithms, loop, semiring
from lagpu.backends.gpu.fused import search_grid

SIZES = (1, 31, 32, 33, 1023, 1025)
WORDS = {"none": 0, "folded": 4, "all": 64}  # of shared memory; 64 have all vertices of all sizes


def edges(n, directed, seed=0):
    """Random edges with loops; some vertices are isolated, and a tenth are next to vertex 0."""
    rng = np.random.default_rng(seed + n)
    rows, cols = rng.integers(0, n, (2, 12 * n))
    live = (rows % 7 != 3) & (cols % 7 != 3) & (rows != 0) & (cols != 0)
    few = np.arange(1, n)[::10]
    rows, cols = np.append(rows[live], np.zeros_like(few)), np.append(cols[live], few)
    if not directed:
        rows, cols = np.append(rows, cols), np.append(cols, rows)
    key = np.unique(rows * n + cols)
    return key // n, key % n


def paths(A, source, op, dtype, out):
    """Return what a search of levels that carries sums finds."""
    x, f, op = Vector(out, A.nrows, like=A), Vector(dtype, A.nrows, like=A), semiring[op]
    f[source] = 1
    for _ in loop(until_empty=f):
        x(f.S) << f
        f(~x.S, replace=True) << op(f @ A)
    return x


def same(x, y):
    return all(a.tolist() == b.tolist() for a, b in zip(x.to_coo(), y.to_coo(), strict=True))


@pytest.fixture(params=WORDS)
def words(request, monkeypatch):
    set_limits(monkeypatch, near_bytes=4 * WORDS[request.param])
    return WORDS[request.param]


@pytest.mark.parametrize("directed", [False, True])
def test_path_counts_of_every_size(place, words, directed):
    for n in SIZES:
        rows, cols = edges(n, directed)
        A, B = (Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend=b) for b in (place, "cpu"))
        for source in {0, n // 2, n - 1}:
            found = algorithms.count_shortest_paths(A, source)
            assert place.last_loop.startswith("grid search")
            assert same(found, algorithms.count_shortest_paths(B, source)), (n, source)


@pytest.mark.parametrize(
    ("op", "dtype", "out", "kind"),
    [
        ("plus_first", "FP32", "FP64", "BOOL"),
        ("plus_times", "FP64", "FP64", "FP32"),
        ("plus_secondj", "INT64", "INT64", "BOOL"),
        *(
            pytest.param(*case, marks=pytest.mark.ci)
            for case in (
                ("plus_second", "INT32", "INT64", "INT32"),
                ("plus_times", "UINT64", "UINT64", "UINT32"),
                ("plus_pair", "INT64", "INT64", "BOOL"),
                ("min_plus", "FP64", "FP64", "FP64"),
                ("max_first", "INT32", "INT32", "BOOL"),
                ("min_firsti", "INT64", "INT64", "BOOL"),
            )
        ),
    ],
)
def test_semirings_and_types(place, op, dtype, out, kind):
    n = 1025
    rows, cols = edges(n, True)
    kind, dtype, out = (getattr(lagpu, name) for name in (kind, dtype, out))
    values = np.random.default_rng(1).integers(1, 9, len(rows)).astype(kind.numpy)
    A, B = (
        Matrix.from_coo(rows, cols, values, kind, nrows=n, ncols=n, backend=b)
        for b in (place, "cpu")
    )
    found = paths(A, 0, op, dtype, out)
    assert place.last_loop.startswith("grid search")
    assert same(found, paths(B, 0, op, dtype, out))


def test_lists_are_pulled_twice_in_a_search(place, monkeypatch):
    """What is in shared memory is of one frontier, and lists use that memory too."""
    monkeypatch.setattr(search_grid, "beta_of", lambda sums: 1)  # push if a level is not all
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 1e9)  # and pull again
    n = 1023
    rows, cols = edges(n, False)
    A, B = (Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend=b) for b in (place, "cpu"))
    with lagpu.trace() as t:
        found = algorithms.count_shortest_paths(A, 0)
    assert directions(t)[:3] == ["pull", "pull", "pull"]
    assert same(found, algorithms.count_shortest_paths(B, 0))


@pytest.mark.parametrize("others", [0, 3, 150])
def test_the_last_column_of_a_warp_takes_several_rounds(place, monkeypatch, others):
    """The lanes that its last round leaves free have parts of its sum from those before."""
    monkeypatch.setattr(search_grid, "beta_of", lambda sums: 1e9)  # once pulled, always
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 1e9)
    n, between = 1100, np.arange(32, 1099)
    for length in (127, 129, 161, 250, 300, 513, 1067):
        into = [between[: others * (v % 3) if v < 31 else length] for v in range(32)]
        rows = np.concatenate([np.full(len(between), n - 1), *into])
        cols = np.concatenate([between, *(np.full(len(x), v) for v, x in enumerate(into))])
        A = Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend=place)
        with lagpu.trace() as t:
            found = algorithms.count_shortest_paths(A, n - 1)
        assert directions(t)[1] == "pull"
        assert found.to_dense(0)[:32].tolist() == [len(x) for x in into]


@pytest.mark.parametrize(
    ("dtype", "start"),
    [
        *((t, s) for t in ("FP64", "INT64", "UINT64") for s in (1, 254, 255, 2**24 - 1, 2**24, 0)),
        *(("FP32", s) for s in (1, 254, 255, 0)),
    ],
)
def test_counts_by_ranks(place, words, dtype, start):
    """Bytes hold up to 254, memory the rest; no table where a value is 0 or too large for it."""
    n = 1025
    rows, cols = edges(n, directed=True, seed=3)
    found = []
    for backend in (place, "cpu"):
        A = Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend=backend)
        x, f = Vector(dtype, n, like=A), Vector(dtype, n, like=A)
        f[0] = start
        for _ in loop(until_empty=f):
            x(f.S) << f
            f(~x.S, replace=True) << semiring.plus_first(f @ A)
        found.append(x)
    assert same(*found)


@pytest.mark.parametrize("start", [0.5, 1.5, -3.0])
def test_values_that_are_no_counts(place, words, start):
    n = 1025
    rows, cols = edges(n, directed=False)
    A, B = (Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend=b) for b in (place, "cpu"))
    found = []
    for M in (A, B):
        x, f = Vector("FP64", n, like=M), Vector("FP64", n, like=M)
        f[0] = start
        for _ in loop(until_empty=f):
            x(f.S) << f
            f(~x.S, replace=True) << semiring.plus_second(f @ M)
        found.append(x)
    assert same(*found)


@pytest.fixture
def wide(monkeypatch):
    """Degrees are taken for even, so that large pushes add up into words, each by all blocks."""
    set_limits(monkeypatch, solo=0, cluster_solo=0, cached=0)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("directed", [False, True])
def test_large_pushes_add_up_into_words(place, wide, monkeypatch, directed, alpha):
    """With alpha 0 all frontiers are pushed but those in words."""
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: alpha)
    monkeypatch.setattr(search_grid, "gamma_of", lambda *_: 1e30)
    wide_pushes = 0
    for n in SIZES:
        rows, cols = edges(n, directed)
        A, B = (Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend=b) for b in (place, "cpu"))
        for source in {0, n // 2, n - 1}:
            with lagpu.trace() as t:
                found = algorithms.count_shortest_paths(A, source)
            assert same(found, algorithms.count_shortest_paths(B, source)), (n, source)
            assert same(found, algorithms.count_shortest_paths(A, source))  # without a log
            wide_pushes += sum("into words" in row.reason for row in t.rows)
    assert wide_pushes


def test_a_push_into_words_lists_no_clique(place, wide):
    """Of a hub with cliques around it; each of their vertices would have a chunk."""
    count, size = 40, 40
    u, v = np.triu_indices(size, 1)
    inside = [(size * np.arange(count)[:, None] + end).ravel() for end in (u, v)]
    hub, n = np.full(count * size, count * size), count * size + 1
    u, v = np.r_[inside[0], hub], np.r_[inside[1], np.arange(count * size)]
    A = Matrix.from_coo(np.r_[u, v], np.r_[v, u], nrows=n, ncols=n, backend=place)
    algorithms.count_shortest_paths(A, 5)
    (space,) = (x for x in A.data.store.cache.values() if isinstance(x, search_grid.Workspace))
    chunks = space.lists(False)["chunks_a"]
    chunks[:] = blank = np.uint64(2**64 - 1)
    found = algorithms.count_shortest_paths(A, 5)
    listed = np.count_nonzero(place.device.to_host(chunks) != blank)
    assert listed < 3 * size  # the clique, twice in turns, and the hub
    assert found.to_coo()[1].tolist() == [1.0] * n
