"""Traced loops over blocks: the one kernel's log says what the single statements say."""

import re
import sys

import numpy as np
import pytest
from bit_searches import FUSED, direction, frontier_of, of_bits, random_graph  # noqa: F401
from bitmap_traces import both
from nvrtc import ARCHITECTURES, nvrtc_compile
from traces import LOGS, preprocessed, same

import lagpu
from lagpu import BOOL, INT32, INT64, Matrix, algorithms, generators, loop, semiring
from lagpu.backends.gpu import kernels
from lagpu.backends.gpu import profile as log
from lagpu.backends.gpu.fused import search_many


def behind(A, sources, times):
    """The source has no level, and the first vertices found have level 0."""
    f, levels, seen = (
        frontier_of(A, sources),
        Matrix(INT64, len(sources), A.nrows, like=A, name="levels"),
        Matrix(BOOL, len(sources), A.nrows, like=A, name="seen"),
    )
    for depth in loop(until_empty=f, times=times):
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)
        levels(f.S) << depth
        seen(f.S) << True
    return f, levels, seen


def in_front(A, sources, times):
    f = frontier_of(A, sources)
    levels = Matrix(INT32, *f.shape, like=A, name="levels")
    seen = Matrix(BOOL, *f.shape, like=A, name="seen")
    for depth in loop(until_empty=f, times=times):
        seen(f.S) << True
        levels(f.S) << depth
        f(~seen.S, replace=True) << semiring.lor_land(f @ A)
    return f, levels, seen


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("k", "n"), [(1, 2), (2, 31), (33, 66), (65, 1025)])
def test_rows_are_those_of_the_single_statements(place, direction, k, n, directed):
    A = random_graph(n, 2, directed).to(place)
    sources = [*range(k - 1), n - 1]
    fused, eager = both(lambda: (algorithms.bfs_levels_multi(A, sources),), place)
    assert same(fused, eager)
    assert {row.mode for row in fused.rows} == {"fused"}
    products = [row for row in fused.rows if row.method == "matrix_mxm"]
    assert [row.level for row in products] == list(range(len(products)))
    assert all(row.kernel == "fused" and "edges " in row.reason for row in products)
    assert all(row.kernel_ms >= 0 and row.host_ms is None for row in fused.rows)
    if direction != "as it is chosen":
        at_all = {row.direction for row in products if not row.reason.startswith("edges 0 ")}
        assert at_all <= {direction}
    pushes = [row for row in products if row.direction == "push"]
    assert all(row.reason.startswith(f"edges {row.edges} <= ") for row in pushes)
    groups = -(-k // 64)
    # a level may pull some rows and push others
    assert all(0 <= row.edges <= groups * (2 * A.nvals + n) for row in products)
    assert any(row.edges for row in products)


@pytest.mark.parametrize("times", [None, 1, 3, 50])
@pytest.mark.parametrize("search", [behind, in_front])
def test_several_assignments_and_bounds(place, search, times):
    A = random_graph(70, 2, directed=True).to(place)
    with lagpu.trace() as nothing:
        pass
    fused, eager = (
        both(lambda: search(A, [3, 0, 69], times), place) if times != 0 else (nothing,) * 2
    )
    assert same(fused, eager)
    assert fused.totals().fused == len(fused.rows)


def test_more_levels_than_the_kernel_keeps_times_of(place):
    A = generators.path(90, backend=place)
    fused, eager = both(lambda: (algorithms.bfs_levels_multi(A, [0, 80]),), place)
    assert same(fused, eager)
    assert len(fused.rows) == 180
    products = [row for row in fused.rows if row.method == "matrix_mxm"]
    assert any(row.kernel_ms > 0 for row in products[70:])
    # two edges a vertex; both rows are at vertex 40 in level 40, and a word is looked at once
    assert [row.edges for row in products[20:89]] == [4] * 20 + [2] + [4] * 39 + [3] + [2] * 8


def edges_of_a_star(place, monkeypatch, enough):
    """Return the edges of two searches that pull: from the middle of a star and from a leaf."""
    monkeypatch.setattr(search_many, "SEARCH_PUSH_COST", 1 << 31)
    monkeypatch.setattr(search_many, "ENOUGH", enough)
    A = generators.star(3000, backend=place)
    with lagpu.trace() as t:
        algorithms.bfs_levels_multi(A, [0])
        algorithms.bfs_levels_multi(A, [1])
    rows = [row for row in t.rows if row.method == "matrix_mxm"]
    assert {row.direction for row in rows} == {"pull"}
    return [row.edges for row in rows]


LEAVES = 2999


def test_a_pull_counts_what_it_looks_at(place, monkeypatch):
    """Of a star: a leaf looks at its hint, which is its only edge; the middle until it is done."""
    edges = edges_of_a_star(place, monkeypatch, enough=1 << 30)  # no row is pushed beside
    assert edges[0] == LEAVES  # all of them find the middle
    assert edges[1] == 0  # all rows are done
    assert LEAVES - 1 < edges[2] <= 2 * LEAVES  # all leaves but one look in vain
    assert edges[3] == LEAVES - 1


def test_a_level_counts_the_edges_of_rows_pushed_beside(place, monkeypatch):
    edges = edges_of_a_star(place, monkeypatch, enough=16)
    assert edges[2] == 1  # of the leaf, which has found none of the heaviest yet
    assert edges[3] == LEAVES  # of the middle, one of many


def test_loops_of_one_trace_share_a_log(place):
    A = generators.path(12, backend=place)
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 0)
        algorithms.bfs_levels_multi(A, [0, 5])
        algorithms.bfs_levels(A, 0)
        algorithms.bfs_levels_multi(A, [0, 5])
    rows = [(row.level, row.method, row.nvals_in, row.nvals_out) for row in t.rows]
    assert rows[: len(rows) // 2] == rows[len(rows) // 2 :]
    assert len(rows) == 2 * (25 + 24)


def test_a_full_log_says_how_much_is_missing(place, monkeypatch):
    A = generators.path(30, backend=place)
    monkeypatch.setattr(log, "CAPACITY", 11)
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels_multi(A, [0])
    assert levels.nvals == 30
    assert [row.level for row in t.rows] == [k // 2 for k in range(20)]
    assert t.totals().unrecorded == 40


def test_a_trace_lets_go_of_matrices(place):
    A = random_graph(70, 2, directed=True).to(place)
    before = sys.getrefcount(A)
    with lagpu.trace():
        levels = algorithms.bfs_levels_multi(A, [3, 0])
        assert sys.getrefcount(A) == before
        assert sys.getrefcount(levels) == 2


def test_untraced_kernels_have_no_log(place, monkeypatch):
    asked = []

    def recorded(*args, **macros):
        asked.append(kernels.kernel(*args, **macros))
        return asked[-1]

    monkeypatch.setattr(search_many, "kernel", recorded)
    A = generators.path(12, backend=place)
    algorithms.bfs_levels_multi(A, [0, 5])
    plain = asked[0]
    assert "LG_LOG" not in dict(plain.macros)
    assert not LOGS.search(preprocessed(plain))
    asked.clear()
    with lagpu.trace():
        algorithms.bfs_levels_multi(A, [0, 5])
    logs = asked[0]
    assert dict(logs.macros)["LG_LOG"] == str(log.CAPACITY)
    assert LOGS.search(preprocessed(logs))
    assert logs.params == plain.params


@pytest.mark.ci
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("groups", ["1", "2"])
def test_nvrtc_compiles_what_logs(arch, groups):
    made = kernels.kernel("search/bits.cu", "bits_search", LOG="65536", GROUPS=groups)
    assert nvrtc_compile(made, arch)


# ---------------------------------------------------------------------- statement by statement


def products_of(run):
    """The rows of a program's products of matrices, run statement by statement."""
    with lagpu.trace(fuse=False) as t:
        run()
    # A number that fills a vector moves none, nor do the ones of a pattern.
    assert all(row.bytes or row.method in ("assign_scalar", "matrix_apply") for row in t.rows)
    return [row for row in t.rows if row.method == "matrix_mxm"]


@pytest.mark.parametrize("k", [3, 33, 65])
def test_products_of_bits_say_what_products_of_vectors_say(place, k):
    A = generators.kronecker(8, backend=place)
    degrees = np.diff(A.to_csc()[0])
    sources = np.argsort(-degrees, kind="stable")[:k].tolist()
    rows = products_of(lambda: algorithms.bfs_levels_multi(A, sources))
    groups = max(1, -(-k // 64))
    assert {row.kernel for row in rows} == {"bitmap_mxm_bits"}
    assert {row.direction for row in rows} == {"push", "pull"}
    for row in rows:
        sign = ">" if row.direction == "pull" else "<="
        assert re.fullmatch(rf"edges (about )?\d+ {sign} {A.nvals * groups} / 8", row.reason)
        assert 0 <= row.edges <= A.nvals * groups + groups * A.nrows
        if row.direction == "push" and "about" not in row.reason:
            assert row.reason.startswith(f"edges {row.edges} ")
    # beside four bytes an edge, all arrays whole, either way
    assert len({row.bytes - 4 * row.edges for row in rows[1:]}) == 1
    assert len({row.edges for row in rows}) > 2


def test_a_first_push_looks_at_the_edges_of_its_sources(place):
    A = generators.star(3000, backend=place)
    rows = products_of(lambda: algorithms.bfs_levels_multi(A, [0, 7, 9]))
    assert rows[0].edges == 2999 + 2  # of the middle, by chunks, and of two leaves


def test_products_of_values(place):
    A = generators.kronecker(8, backend=place)
    rows = products_of(
        lambda: algorithms.betweenness_centrality(A, k=70, seed=1, batch=64, directed=False)
    )
    assert {(row.kernel, row.direction) for row in rows} == {("bitmap_mxm_sums", "pull")}
    assert {row.reason for row in rows} == {
        f"values of type FP64 are added up in {A.nrows} columns, never pushed"
    }
    assert all(0 <= row.edges <= 2 * A.nvals for row in rows)
    first = rows[0]
    degrees = np.diff(A.to_csc()[0])
    assert first.edges == 2 * degrees.sum()  # each word of 32 rows looks at all, at first


def test_other_products_of_matrices(place):
    A = generators.kronecker(6, backend=place)
    degrees = np.diff(A.to_csc()[0])
    C = Matrix(INT64, *A.shape, like=A, name="C")
    hubs = np.argsort(-degrees)[:2]
    few = Matrix.from_coo(hubs, hubs[::-1], True, nrows=64, ncols=64, like=A, name="few")
    every, dots, some = products_of(
        lambda: (
            C << semiring.plus_pair(A @ A),
            C(few.S, replace=True) << semiring.plus_pair(A @ A),
            C(~few.S, replace=True) << semiring.plus_pair(A @ A),
        )
    )
    assert (every.kernel, dots.kernel, some.kernel) == (
        "sum_products",
        "dot_products",
        "sum_products",
    )
    assert every.edges == some.edges == (degrees**2).sum()
    assert every.reason == f"products {(degrees**2).sum()}, listed and sorted"
    assert re.fullmatch(r"steps of dot products at .* entries \d+ <= 8 x products \d+", dots.reason)
    assert 0 < dots.edges < every.edges
    assert {row.direction for row in (every, dots, some)} == {""}


def test_products_count_only_for_a_trace(place, monkeypatch):
    from lagpu.backends.gpu.ops import bits
    from lagpu.backends.gpu.storage import stores

    asked, products = [], ("bitmap/products.cu", "spgemm/dots.cu", "spgemm/mxm.cu")
    for module in (bits, stores):

        def recorded(*args, **macros):
            if args[0] in products:
                asked.append(macros)
            return kernels.kernel(*args, **macros)

        monkeypatch.setattr(module, "kernel", recorded)
    A = generators.kronecker(6, backend=place)

    def run():
        stores.specialised.cache_clear()
        Q = frontier_of(A, [1, 2])
        semiring.any_pair(Q @ A).new()
        semiring.plus_times(Q @ A).new()
        semiring.plus_pair(A @ A).new(mask=A.S)

    run()
    assert len(asked) == 3
    assert not any("EDGES" in macros for macros in asked)
    asked.clear()
    with lagpu.trace():
        run()
    assert [macros.get("EDGES") for macros in asked] == ["1", "1", "1"]


def test_explain(place):
    A = generators.kronecker(6, backend=place)
    Q = Matrix.from_coo([0, 1], [1, 2], True, nrows=2, ncols=64, like=A, name="Q")
    call = semiring.any_pair(Q @ A)
    said = lagpu.explain(call).splitlines()
    with lagpu.trace() as t:
        call.new()
    (row,) = t.rows
    assert said[0].startswith("Q any_pair ")
    assert said[1] == f"{row.direction}, {row.kernel}: {row.reason}"
    assert said[2].startswith("by columns ")
    said = lagpu.explain(semiring.plus_times(Q @ A.T)).splitlines()
    assert said[1].startswith(
        "pull, bitmap_mxm_sums: values of type INT64 are added up in 64 columns"
    )
    said = lagpu.explain(semiring.plus_times(A @ A.T)).splitlines()
    assert said[1].startswith("sum_products: products ")


def test_explain_on_cpu():
    A = generators.path(3, backend="cpu")
    assert "does not report it" in lagpu.explain(semiring.plus_times(A @ A))
    with lagpu.trace() as t:
        semiring.plus_times(A @ A).new()
    assert t.rows[0].kernel == "SuiteSparse"


@pytest.mark.ci
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("bitmap/products.cu", "bitmap_mxm_bits"),
        ("bitmap/products.cu", "bitmap_mxm_sums"),
        ("bitmap/products.cu", "bitmap_mxm_sums_long"),
        ("spgemm/dots.cu", "dot_products"),
        ("spgemm/dots.cu", "table_products"),
    ],
)
def test_nvrtc_compiles_what_counts(arch, file, name):
    assert nvrtc_compile(kernels.kernel(file, name, EDGES="1"), arch)
