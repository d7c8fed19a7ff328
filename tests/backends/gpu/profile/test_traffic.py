"""The bytes that a trace estimates for the statements of a fused loop, by docs/design/trace.md."""

import json

import numpy as np
from loop_names import GENERATED, loop_name
from programs import walks
from searches import levels_and_paths, levels_behind, start, twice

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Vector, algorithms, generators
from lagpu.backends.gpu.fused import search_grid

INDEX = OFFSET = 4  # bytes of small matrices
PLACE = 8 + OFFSET  # a vertex in a list: its number, its edges and where they begin


def bits(n):
    return 4 * -(-n // 32)


def fused(run):
    with lagpu.trace() as t:
        run()
    rows = [row for row in t.rows if row.mode == "fused"]
    assert t.totals().bytes == sum(row.bytes or 0 for row in t.rows)
    return rows


def split(rows, method):
    """The rows of the products, and the others."""
    return [r for r in rows if r.method == method], [r for r in rows if r.method != method]


def test_levels_of_a_search(place):
    n = 1024
    A = generators.kronecker(10, backend=place)
    products, others = split(fused(lambda: algorithms.bfs_levels(A, 1)), "mxv")
    assert {row.direction for row in products} == {"push", "pull"}
    *run, last = products
    assert "not run" in last.reason
    assert last.bytes == 0
    reached = 0
    for row in run:
        reached += row.nvals_in
        e, u, w = row.edges, row.nvals_in, row.nvals_out
        if row.direction == "pull":
            expected = INDEX * e + 2 * OFFSET * (n - reached) + 3 * bits(n)
        else:
            expected = INDEX * e + min(4 * e, bits(n)) + 2 * OFFSET * w + PLACE * (u + w)
        assert row.bytes == expected
    assert [row.bytes for row in others] == [4 * row.nvals_in for row in products]


def test_one_block_alone_has_its_lists_in_shared_memory(place):
    A = generators.path(200, backend=place)
    products, _ = split(fused(lambda: algorithms.bfs_levels(A, 0)), "mxv")
    alone = [r.bytes for r in products if "one thread block alone" in r.reason]
    assert alone[:100] == [2 * INDEX + 2 * 4 + 2 * OFFSET] * 100
    assert products[1].bytes == alone[0] + 2 * PLACE  # the first levels are not


def test_values_that_are_carried_and_those_that_are_assigned(place, monkeypatch):
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 14.0)  # pull from the hub
    n = 64
    A = generators.star(n, backend=place)

    def run():
        f, paths = start(FP64, n, [0], 1, A), Vector(INT64, n, like=A)
        levels_and_paths(A, f, Vector(INT32, n, like=A), paths, None)

    products, others = split(fused(run), "mxv")
    out = products[0]
    assert (out.nvals_in, out.nvals_out, out.direction) == (1, n - 1, "pull")
    assert out.bytes == INDEX * out.edges + 2 * OFFSET * (n - 1) + 3 * bits(n) + 8 * n
    assert [row.bytes for row in others[:4]] == [4, 8, 4 * (n - 1), 8 * (n - 1)]


def test_sources_that_are_not_assigned_are_not_reached(place):
    """Where the product stands first."""
    n = 64
    A = generators.star(n, backend=place)

    def run():
        levels_behind(A, start(BOOL, n, [0], True, A), Vector(INT32, n, like=A), None)

    products, others = split(fused(run), "mxv")
    out = products[0]
    assert out.direction == "pull"
    assert out.bytes == INDEX * out.edges + 2 * OFFSET * n + 3 * bits(n)
    assert [row.bytes for row in others] == [4 * row.nvals_out for row in products]


def test_levels_of_a_search_of_a_block(place):
    A = generators.kronecker(8, backend=place)
    levels = fused(lambda: algorithms.bfs_levels_multi(A, [1, 2, 3]))
    products, others = split(levels, "matrix_mxm")
    word, n, rows = 4, A.nrows, 3
    reached = 0
    for row in products:
        reached += row.nvals_in
        e, u = row.edges, row.nvals_in
        if row.direction == "pull":
            left = min(rows * n - reached, n)
            expected = INDEX * e + 2 * OFFSET * left + 3 * word * n
        else:
            expected = INDEX * e + min(word * e, word * n) + (word + 2 * OFFSET) * min(u, n)
        assert row.bytes == expected
    assert [row.bytes for row in others] == [4 * row.nvals_in for row in products]


def test_statements_of_a_program(place):
    n = 300
    A = generators.uniform(8, 4, backend=place)
    n = A.nrows

    def run():
        x, total = start(INT64, n, [1], 1, A), Vector(INT64, n, like=A)
        walks(A, x, total, 3)

    products, sums = split(fused(run), "mxv")
    for row in products:
        columns = n if row.direction == "pull" else row.nvals_in
        most = max(row.nvals_in, row.nvals_out)
        whole = 2 * bits(n) + (8 + 8) * most  # of x, and of what the products add up to
        assert row.bytes == whole + INDEX * row.edges + 2 * OFFSET * columns
    for row in sums:
        assert row.bytes == 2 * bits(n) + (8 + 8) * max(row.nvals_in, row.nvals_out)


def test_bits_alone_where_all_values_are_equal(place):
    n = 33
    A = generators.path(n, backend=place)

    def run():
        f, levels = start(BOOL, n, [0], True, A), Vector(INT32, n, like=A)
        twice(A, f, levels, Vector(INT32, n, like=A))

    products, assigned = split(fused(run), "mxv")
    assert loop_name(place) == GENERATED
    first, constant = assigned[0], assigned[1]
    assert first.bytes == constant.bytes == 2 * bits(n) + 4 * 1  # of one entry, and the mask's
    row = products[0]
    columns = row.nvals_in if row.direction == "push" else n
    assert row.bytes == 3 * bits(n) + INDEX * row.edges + 2 * OFFSET * columns


def test_algorithms_have_bytes_for_each_statement_that_is_logged(place):
    A = generators.kronecker(7, backend=place)
    for run in (algorithms.pagerank, algorithms.connected_components, algorithms.core_number):
        rows = fused(lambda run=run: run(A))
        assert rows
        assert all(row.bytes is not None and row.bytes >= 4 * (row.edges or 0) for row in rows)
        json.dumps([row.bytes for row in rows])  # no number of NumPy
        assert np.ptp([row.bytes for row in rows]) > 0
