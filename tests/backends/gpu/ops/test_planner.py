"""The planner: what it decides by, what it says, and every strategy on graphs that hurt."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from samples import sampled

import lagpu
from lagpu import (
    BOOL,
    FP64,
    INT32,
    INT64,
    Matrix,
    Vector,
    algorithms,
    binary,
    generators,
    loop,
    semiring,
    sweep,
)
from lagpu.backends.gpu.ops.planner import POLICIES
from lagpu.backends.gpu.ops.strategies import STRATEGIES
from lagpu.errors import DomainMismatch, InvalidValue, NotSupported

SIZES = (1, 2, 31, 32, 33, 1023, 1025)


def hub_graph(n, backend, symmetric):
    """Random edges, a hub with an edge to every third vertex, self-loops, isolated vertices."""
    rng = np.random.default_rng(n)
    rows, cols = rng.integers(0, n, 2 * n), rng.integers(0, max(1, 3 * n // 4), 2 * n)
    thirds = np.arange(0, n, 3)
    rows = np.r_[rows, np.full(len(thirds), n // 2), np.arange(0, n, 7)]
    cols = np.r_[cols, thirds, np.arange(0, n, 7)]
    if symmetric:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    values = rng.integers(1, 9, len(rows))
    return Matrix.from_coo(
        rows, cols, values, INT64, nrows=n, ncols=n, dup_op=binary.first, backend=backend
    )


def vectors(n, backend):
    """A sparse vector with values, and masks: none, some, all."""
    rng = np.random.default_rng(7)
    where = np.unique(np.r_[rng.integers(0, n, n // 4 + 1), n // 2])
    u = Vector.from_coo(where, where % 5 + 1, INT64, size=n, backend=backend)
    some = Vector.from_coo(np.arange(0, n, 2), True, size=n, backend=backend)
    full = Vector.from_dense(np.ones(n, bool), backend=backend)
    return u, (None, some.S, ~some.S, full.S, ~full.S)


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("kernel", "n", "symmetric", "name"),
    sampled(
        itertools.product(
            [*STRATEGIES, "push_virtual:5"],
            SIZES,
            (True, False),
            ("min_plus", "plus_times", "lor_land"),
        ),
        19,
    ),
)
def test_every_strategy_computes_the_same_product(place, kernel, n, symmetric, name):
    A = hub_graph(n, place, symmetric)
    B = A.to("cpu")
    u, masks = vectors(n, place)
    v, masks_there = vectors(n, "cpu")
    op = semiring[name]
    for mask, mask_there in zip(masks, masks_there, strict=True):
        got = op(u @ A, kernel=kernel).new(mask=mask)
        assert got.to("cpu").isequal(op(v @ B).new(mask=mask_there)), mask
    assert op(A @ u, kernel=kernel).new().to("cpu").isequal(op(B @ v).new())


def search(A, source, **choice):
    """Levels, with the reason of each product."""
    levels, q = Vector(INT64, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    q[source] = True
    with lagpu.trace() as t:
        for depth in lagpu.loop(until_empty=q):
            levels(q.S) << depth
            q(~levels.S, replace=True) << semiring.any_pair(q @ A, **choice)
    return levels, [row for row in t.rows if row.method == "mxv"]


@pytest.mark.each_value
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("policy", [*POLICIES, "tdbu:vector", "vbfs:3", "beamer:alpha=99,beta=2"])
def test_every_policy_finds_the_levels(place, policy, symmetric):
    A = hub_graph(1025, place, symmetric)
    levels, products = search(A, 5, policy=policy)
    assert levels.to("cpu").isequal(algorithms.bfs_levels(A.to("cpu"), 5))
    assert all(any(c.isdigit() for c in p.reason) for p in products), products


def test_beamer_counts_the_edges_of_the_frontier(place):
    """A path into a star: the hub's edges are more than what is left, until all is found."""
    n = 1000
    rows = np.r_[0, 1, np.full(n - 3, 2)]
    cols = np.r_[1, 2, np.arange(3, n)]
    A = Matrix.from_coo(
        np.r_[rows, cols], np.r_[cols, rows], nrows=n, ncols=n, backend=place, name="A"
    )
    _, products = search(A, 0, policy="beamer")
    assert [p.direction for p in products] == ["push", "push", "pull", "pull"]
    total = 2 * (n - 1)
    assert products[1].reason == f"edges 2 <= unexplored {total - 1 - 2} / 14"
    assert products[2].reason == f"edges {n - 2} > unexplored {total - 1 - 2 - (n - 2)} / 14"
    assert "vertices" in products[3].reason


def test_a_product_of_another_type_tells_the_next_one_too(place):
    """Parents are INT32, what the semiring gives is INT64; the count of edges is not lost."""
    A = hub_graph(1023, place, True)
    with lagpu.trace(fuse=False) as t:
        algorithms.bfs_parents(A, 5)
    products = [row for row in t.rows if row.method == "mxv"]
    assert len(products) > 3
    assert not any("about" in row.reason for row in products[2:]), products


@pytest.mark.parametrize("policy", ["hiragushi:push=merrill,pull=gather", "beamer:alpha=48"])
def test_the_edges_of_the_first_frontier_are_exact(place, policy):
    """All edges of a star leave its hub, 150 times the mean."""
    A = generators.star(300, backend=place)
    _, products = search(A, 0, policy=policy)
    assert products[0].direction == "pull"
    assert products[0].reason.startswith("edges 299 > unexplored 299")
    _, products = search(A, 7, policy=policy)  # a leaf, then the hub
    assert products[0].reason.startswith("edges 1 <= unexplored 597")
    assert products[1].reason.startswith("edges 299 > unexplored 298")


def test_density_never_pushes_again(place):
    A = hub_graph(1023, place, True)
    _, products = search(A, 5, policy="density")
    directions = [p.direction for p in products]
    assert directions == sorted(directions, reverse=True)
    assert {"push_edge"} == {p.kernel for p in products if p.direction == "push"}


@pytest.mark.parametrize("kernel", ["scalar", "vector"])
def test_tdbu_looks_at_all_entries_first_and_never_again(place, kernel):
    """Top-down steps pull by every entry of an open column, bottom-up ones up to the first hit."""
    A = hub_graph(1023, place, True)
    _, products = search(A, 5, policy=f"tdbu:{kernel}")
    name = {"scalar": "pull_scalar", "vector": "pull_warp"}[kernel]
    kernels = [p.kernel for p in products]
    assert kernels == sorted(kernels, reverse=True)
    assert set(kernels) == {name, f"{name}_all"}
    assert kernels.count(name) > 1  # it stays where the frontier is sparse again
    degree = np.diff(A.to_csc()[0])
    assert products[0].edges == degree.sum() - degree[5]


def test_a_pull_without_an_early_stop_looks_at_every_entry(place):
    A = hub_graph(1025, place, True)
    u = Vector.from_dense(np.ones(1025, bool), backend=place)
    with lagpu.trace() as t:
        for name in ("pull_scalar", "pull_warp"):
            stops, whole = (
                semiring.any_pair(u @ A, kernel=kernel).new() for kernel in (name, f"{name}_all")
            )
            assert stops.isequal(whole)
    edges = {row.kernel: row.edges for row in t.rows}
    assert edges["pull_scalar_all"] == edges["pull_warp_all"] == A.nvals
    assert edges["pull_scalar"] == whole.nvals < edges["pull_warp"] < A.nvals


def test_columns_of_entries_are_made_once_and_counted(place):
    A = hub_graph(1025, place, False)
    u = Vector.from_coo([5], True, size=1025, backend=place)
    semiring.any_pair(u @ A, kernel="push_edge").new()
    assert "columns" not in A.data.store.cache
    semiring.any_pair(u @ A, kernel="push_cooc").new()
    columns = A.data.store.cache["columns"]
    assert columns.dtype == np.int32
    assert columns.tolist() == np.repeat(np.arange(1025), np.diff(A.to_csc()[0])).tolist()
    assert f"workspaces {4 * A.nvals / 1e3:.1f} kB" in lagpu.explain(semiring.any_pair(u @ A))
    semiring.any_pair(A @ u, kernel="push_cooc").new()
    assert A.data.store.cache["columns"] is columns
    assert A.data.store.csr is None


def test_a_directed_matrix_gets_its_rows_once_and_only_for_a_loop(place):
    A = hub_graph(1025, place, False)
    u = Vector.from_coo([5], True, size=1025, backend=place)
    semiring.any_pair(u @ A).new()
    assert A.data.store.csr is None
    _, products = search(A, 5, policy="beamer")
    assert any("second form made" in p.reason for p in products)
    rows = A.data.store.csr
    assert rows is not None
    search(A, 6, policy="beamer")
    assert A.data.store.csr is rows


def test_orientation_csc_forbids_rows(place):
    A = hub_graph(1025, place, False)
    A.orientation = "csc"
    assert A.orientation == "csc"
    levels, products = search(A, 5)
    assert levels.to("cpu").isequal(algorithms.bfs_levels(A.to("cpu"), 5))
    assert A.data.store.csr is None
    assert any("orientation is csc" in p.reason for p in products)
    assert algorithms.bfs_levels(A, 5).isequal(levels)  # however the loop runs
    assert A.data.store.csr is None
    u = Vector.from_coo([5], True, size=1025, backend=place)
    with pytest.raises(NotSupported, match=r"orientation is csc\. .*set orientation to auto"):
        semiring.any_pair(u @ A, kernel="push_queue").new()
    A.orientation = "auto"
    assert semiring.any_pair(u @ A, kernel="push_queue").new().nvals > 0
    with pytest.raises(InvalidValue, match="auto or csc"):
        A.orientation = "rows"


def test_without_room_for_the_second_form(place, monkeypatch):
    A = hub_graph(1025, place, False)
    u = Vector.from_coo([5], True, size=1025, backend=place)
    monkeypatch.setattr("lagpu.backends.gpu.storage.forms.has_free", lambda *_: False)
    with pytest.raises(NotSupported, match="Use push_edge, or free some memory"):
        semiring.any_pair(u @ A, kernel="push_queue").new()


def test_explain_says_what_would_run_and_runs_nothing(place):
    A = hub_graph(33, place, True)
    u = Vector.from_coo([0], True, size=33, backend=place, name="u")
    call = semiring.any_pair(u @ A, policy="density")
    lines = lagpu.explain(call).splitlines()
    assert lines[0] == f"u any_pair A on {place.name}"
    assert lines[1] == "push, push_edge: density 3.03% < 10%"
    assert lines[2].startswith("by columns ")
    assert call.new().nvals == int(np.diff(A.to_csc()[0])[0])
    with pytest.raises(DomainMismatch, match="no semiring"):
        lagpu.explain(u @ A)
    with pytest.raises(DomainMismatch, match="is not a product"):
        lagpu.explain(u.apply(lagpu.unary.identity))
    with pytest.raises(DomainMismatch, match="is not a Call"):
        lagpu.explain(u)


@pytest.mark.parametrize(
    ("choice", "fact"),
    [
        ({"kernel": "push_virtual:0"}, "1 to 4096"),
        ({"kernel": "push_virtual:x"}, "1 to 4096"),
        ({"kernel": "push_queue:4"}, "pull_bitmap"),
        ({"kernel": "fast"}, "push_active"),
        ({"policy": "fast"}, "hiragushi"),
        ({"kernel": "push_edge", "policy": "auto"}, "not both"),
        ({"policy": ""}, "hiragushi"),
        ({"kernel": "push_virtual:"}, "1 to 4096"),
        ({"kernel": "push_edge:"}, "pull_bitmap"),
        ({"policy": "hiragushi:"}, "there is no 'hiragushi:'"),
        ({"policy": "hiragushi:gamma=3"}, "no argument 'gamma=3'. Use alpha=, beta="),
        ({"policy": "hiragushi:48"}, "no argument '48'"),
        ({"policy": "hiragushi:alpha"}, "no argument 'alpha'"),
        ({"policy": "beamer:alpha=1,alpha=2"}, "alpha= twice"),
        ({"policy": "beamer:alpha=nan"}, "alpha=nan is not a number of 0 or more"),
        ({"policy": "bfs2d:ratio=-1"}, "ratio=-1 is not a number"),
        ({"policy": "vbfs:0"}, "group=0 is not a whole number from 1 to 4096"),
        ({"policy": "vbfs:4097"}, "group=4097 is not"),
        ({"policy": "vbfs:2.0"}, "group=2.0 is not"),
        ({"policy": "tdbu:fast"}, "kernel=fast is not one of length, scalar, vector"),
        ({"policy": "auto:alpha=3"}, "no argument 'alpha=3'. Use auto alone"),
    ],
)
def test_unknown_choices_list_the_names(place, choice, fact):
    A = hub_graph(2, place, True)
    u = Vector.from_coo([0], True, size=2, backend=place)
    with pytest.raises(InvalidValue, match=fact):
        semiring.any_pair(u @ A, **choice).new()


def sweeps(A, policy):
    """Path counts forward and dependencies backward, with the products' rows."""
    names = ("paths", "frontier", "share", "pulled", "delta")
    paths, frontier, share, pulled, delta = (
        Vector(FP64, A.nrows, like=A, name=name) for name in names
    )
    levels = Vector(INT32, A.nrows, like=A, name="levels")
    frontier[0] = 1
    delta << 0
    with lagpu.trace() as t:
        for depth in loop(until_empty=frontier):
            levels(frontier.S) << depth
            paths(frontier.S) << frontier
            frontier(~levels.S, replace=True) << semiring.plus_first(frontier @ A, policy=policy)
        for here, above in sweep(levels):
            share(here.S, replace=True) << delta.apply("plus", right=1)
            share(here.S) << share.ewise_mult(paths, "truediv")
            pulled(above.S, replace=True) << semiring.plus_second(A @ share, policy=policy)
            delta(accum="plus") << pulled.ewise_mult(paths, "times")
    return [levels, paths, delta], [row for row in t.rows if row.method == "mxv"]


@pytest.mark.each_value
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("n", [33, 1025])
def test_a_backward_sweep_takes_lists_of_its_levels(place, n, symmetric):
    """Under mgbc all are made by one scan; under active each product numbers its own."""
    A = hub_graph(n, place, symmetric)
    expected, _ = sweeps(A.to("cpu"), None)
    for policy in ("active", "mgbc"):
        found, products = sweeps(A, policy)
        assert all(x.to("cpu").isclose(y) for x, y in zip(found, expected, strict=True))
        assert {row.kernel for row in products} == {"push_active", "pull_active"}
        backward = [row for row in products if row.kernel == "pull_active"]
        assert len(backward) == found[0].reduce("max").new().value
        listed = [row for row in backward if "listed by an earlier" in row.reason]
        assert len(listed) == (len(backward) if policy == "mgbc" else 0)


def test_a_level_is_listed_with_the_edges_before_each_of_its_vertices(place):
    A = hub_graph(33, place, False)
    levels = Vector.from_coo([0, 3, 5, 9, 20], [0, 1, 1, 3, 1], INT32, size=33, backend=place)
    for here, above in sweep(levels):
        form = A.data.store
        for x in (here, above):
            found, vertices = x.data.edge_offsets(form), x.to_coo()[0]
            if not len(vertices):
                assert found is None
                continue
            assert found.vertex.tolist() == vertices.tolist()
            lengths = np.diff(A.to_csc()[0])[vertices]
            assert found.offset.tolist() == [0, *np.cumsum(lengths)[:-1].tolist()]
        here(here.S) << True
        assert here.data.edge_offsets is None


def test_a_list_is_dropped_with_the_entries_it_was_made_of(place):
    A = hub_graph(33, place, True)
    B = A.to("cpu")
    changes = {
        "set": lambda v: v.__setitem__(20, 1.0),
        "remove": lambda v: v.__delitem__(int(v.to_coo()[0][0])),
        "fill": lambda v: v << 2.0,
        "resize": lambda v: v.clear(),
        "accumulate": lambda v: v(accum="plus") << v,
    }
    for change in changes.values():
        q = Vector.from_coo([0, 5, 9], [1.0, 2.0, 3.0], size=33, backend=place)
        semiring.plus_first(q @ A, policy="mgbc").new()
        assert q.data.edge_offsets is not None
        change(q)
        u = Vector.from_dense(np.arange(33.0), backend=place)
        got = semiring.plus_second(A @ u, policy="mgbc").new(mask=q.S)
        there = semiring.plus_second(B @ u.to("cpu")).new(mask=q.to("cpu").S)
        assert got.to("cpu").isequal(there)


def test_a_vector_without_entries_leaves_no_list(place):
    A = hub_graph(33, place, True)
    q, u = Vector(FP64, 33, like=A), Vector.from_dense(np.arange(33.0), backend=place)
    assert semiring.plus_first(q @ A, policy="mgbc").new().nvals == 0
    assert q.data.edge_offsets is None
    assert semiring.plus_second(A @ u, policy="mgbc").new(mask=q.S).nvals == 0


def test_kernel_and_policy_are_not_both_given(backend):
    A = hub_graph(2, backend, True)
    u = Vector.from_coo([0], True, size=2, backend=backend)
    for name in ("auto", "fast"):
        with pytest.raises(InvalidValue, match=f"kernel='push_edge' and policy='{name}', not both"):
            semiring.any_pair(u @ A, kernel="push_edge", policy=name)


def test_explain_refuses_what_the_product_refuses():
    A = hub_graph(2, "cpu", True)
    u = Vector.from_coo([0], True, size=2, backend="cpu")
    for choice, error, said in (
        ({"kernel": "push_edge"}, NotSupported, "SuiteSparse chooses its own"),
        ({"policy": "mgbc"}, InvalidValue, "there is no 'mgbc'"),
        ({"policy": ""}, InvalidValue, "there is no ''"),
    ):
        call = semiring.any_pair(u @ A, **choice)
        with pytest.raises(error, match=said):
            lagpu.explain(call)
        with pytest.raises(error, match=said):
            call.new()


def test_every_strategy_has_its_page():
    pages = Path(__file__).parents[4] / "docs" / "kernels"
    index = (pages / "index.md").read_text("utf-8")
    for name in STRATEGIES:
        assert (pages / f"{name}.md").exists()
        assert index.count(name) >= 2, (
            f"docs/kernels/index.md: {name} needs a row and a contents line"
        )


def test_neighbours_that_end_early_leave_the_others_their_turn(place):
    """Of two columns side by side one is done at once, one with its last entry alone."""
    n = 70
    rows = [0, *range(1, n)]
    cols = [2, *[3] * (n - 1)]
    A = Matrix.from_coo(rows, cols, True, nrows=n, ncols=n, backend=place)
    u = Vector.from_coo([0, n - 1], True, size=n, backend=place)
    for name in STRATEGIES:
        w = Vector(BOOL, n, backend=place)
        w << semiring.any_pair(u @ A, kernel=name)
        assert w.to_coo()[0].tolist() == [2, 3], name
