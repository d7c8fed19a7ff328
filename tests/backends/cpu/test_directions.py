"""Directions of products on cpu: the choice by numbers, its reasons, and the same answers."""

import numpy as np
import pytest

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
    check,
    loop,
    semiring,
)
from lagpu.backends.cpu.statements import PATIENCE, POLICIES
from lagpu.errors import NotSupported

N = 2048


def hub_graph(symmetric, n=N):
    """Random edges, a hub with an edge to every third vertex, self-loops, isolated vertices."""
    rng = np.random.default_rng(n)
    rows, cols = rng.integers(0, 3 * n // 4, 8 * n), rng.integers(0, 3 * n // 4, 8 * n)
    thirds = np.arange(0, n, 3)
    rows = np.r_[rows, np.full(len(thirds), n // 2), np.arange(0, n, 7)]
    cols = np.r_[cols, thirds, np.arange(0, n, 7)]
    if symmetric:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    return Matrix.from_coo(rows, cols, True, nrows=n, ncols=n, dup_op=binary.lor, backend="cpu")


def patient(A):
    """Let the next product that lacks the second form make it."""
    A.data.counts = None
    semiring.any_pair(Vector(BOOL, A.nrows, like=A) @ A).new()
    A.data.counts.lacked = (PATIENCE + 1) * A.nvals
    return A


def search(A, source, right=False, **choice):
    """Return levels, and (direction, reason) of the products; `right` goes along A'."""
    levels, frontier = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    frontier[source] = True
    with lagpu.trace() as t:
        for depth in loop(until_empty=frontier):
            levels(frontier.S) << depth
            call = semiring.any_pair(A @ frontier if right else frontier @ A, **choice)
            frontier(~levels.S, replace=True) << call
    return levels, [(row.direction, row.reason) for row in t.rows if row.kernel]


def directions(products):
    return [direction for direction, _ in products]


@pytest.mark.parametrize("right", [False, True], ids=["u @ A", "A @ u"])
@pytest.mark.parametrize("symmetric", [False, True], ids=["directed", "symmetric"])
@pytest.mark.parametrize("policy", POLICIES)
def test_levels_are_the_same_in_every_direction(policy, symmetric, right):
    A = patient(hub_graph(symmetric))
    for source in (5, N // 2, N - 1):
        levels, _ = search(A, source, right, policy=policy)
        check.check_levels(A.T.new() if right else A, source, levels)
    assert A.is_symmetric is symmetric


@pytest.mark.parametrize("symmetric", [False, True], ids=["directed", "symmetric"])
def test_a_search_pushes_pulls_and_pushes(symmetric):
    A = patient(hub_graph(symmetric))
    levels, products = search(A, 5)
    assert "second form made" in " ".join(reason for _, reason in products)
    again, products = search(A, 5)
    assert again.isequal(levels)
    reasons = dict(reversed(products))
    assert directions(products)[0] == "push"
    assert "unexplored" in products[0][1]
    assert " > unexplored " in reasons["pull"]
    assert any(reason.startswith("pulled before; vertices ") for _, reason in products)
    assert (A.data.transposed is None) is symmetric


def test_a_search_of_many_levels_counts_no_edges():
    A = lagpu.generators.path(500, backend="cpu")
    levels, products = search(A, 0)
    assert set(directions(products)) == {"push"}
    assert levels.reduce("max").new().value == 499
    assert products[0][1] == "edges about 1 <= unexplored 997 / 8"
    assert products[1][1] == "vertices 1 <= 1 before"
    assert A.data.counts.lacked == 0


def test_beamers_rule_has_its_own_numbers():
    A = patient(hub_graph(True))
    search(A, 5)
    _, products = search(A, 5, policy="beamer")
    assert "pull" in directions(products)
    assert any(reason.endswith(" / 14") for _, reason in products)
    assert any(reason.endswith(f" {N} / 24") for _, reason in products)


def test_what_is_asked_for_is_done():
    A = hub_graph(False)
    for policy in ("push", "pull"):
        _, products = search(A, 5, policy=policy)
        assert set(products) == {(policy, "asked for")}
    assert A.data.transposed is not None


def test_the_second_form_is_made_once_it_would_have_paid():
    A = hub_graph(False)
    seen = []
    for _ in range(4 * PATIENCE):
        _, products = search(A, 5)
        seen.append((A.data.transposed is not None, "pull" in directions(products)))
        if seen[-1][0]:
            break
        why = f" of {PATIENCE} x {A.nvals} entries looked at for lack of it"
        assert any("second form is missing: " in r and r.endswith(why) for _, r in products)
    assert seen[-1] == (True, True)
    assert len(seen) > PATIENCE
    made = A.data.transposed
    search(A, 6)
    assert A.data.transposed is made
    A[0, 1] = True
    assert A.data.transposed is None
    assert A.data.counts is None


def test_a_product_from_the_right_is_pushed_where_it_was_pulled():
    A = patient(hub_graph(False))
    levels, products = search(A, 5, right=True)
    assert {"push", "pull"} == set(directions(products))
    assert directions(products)[0] == "push"
    A.orientation = "csc"
    again, products = search(A, 5, right=True)
    assert set(directions(products)) == {"pull"}
    assert again.isequal(levels)


def test_orientation_csc_forbids_the_second_form():
    A = patient(hub_graph(False))
    levels, _ = search(A, 5)
    assert A.data.transposed is not None
    A.orientation = "csc"
    assert A.orientation == "csc"
    assert A.data.transposed is None
    again, products = search(A, 5)
    assert again.isequal(levels)
    assert set(directions(products)) == {"push"}
    assert any("missing: its orientation is csc" in reason for _, reason in products)
    with pytest.raises(NotSupported, match=r"orientation is csc\. .*set orientation to auto"):
        search(A, 5, policy="pull")
    A.orientation = "auto"
    assert set(directions(search(A, 5, policy="pull")[1])) == {"pull"}


def test_the_second_form_is_not_made_where_memory_is_short(monkeypatch):
    A = patient(hub_graph(False))
    monkeypatch.setattr("lagpu.backends.cpu.statements.available_bytes", lambda: 1000)
    monkeypatch.setattr("lagpu.backends.cpu.statements._LARGE", 1)
    levels, products = search(A, 5)
    check.check_levels(A, 5, levels)
    assert A.data.transposed is None
    assert any("missing: making it needs 0." in reason for _, reason in products)
    with pytest.raises(NotSupported, match=r"0\.0 MB free\. .*free some memory"):
        search(A, 5, policy="pull")


@pytest.mark.parametrize("policy", POLICIES)
def test_parents_are_valid_in_every_direction(policy):
    A = patient(hub_graph(False))
    parents, frontier = Vector(INT64, N, like=A), Vector(INT64, N, like=A)
    frontier[5] = 5
    for _ in loop(until_empty=frontier):
        parents(frontier.S) << frontier
        frontier(~parents.S, replace=True) << semiring.any_secondi(frontier @ A, policy=policy)
    check.check_parents(A, 5, parents)


@pytest.mark.parametrize("full", [False, True], ids=["empty mask", "full mask"])
@pytest.mark.parametrize("policy", POLICIES)
def test_masks_that_keep_all_or_nothing(policy, full):
    A = patient(hub_graph(False))
    u = Vector.from_coo(range(0, N, 2), range(N // 2), INT64, size=N, backend="cpu")
    m = Vector.from_dense(np.arange(N), backend="cpu") if full else Vector(INT64, N, like=A)
    w = Vector.from_coo([1], [1], INT64, size=N, backend="cpu")
    w(~m.S, replace=True) << semiring.min_first(u @ A, policy=policy)
    if full:
        assert w.nvals == 0
    else:
        assert w.isequal(semiring.min_first(u @ A, policy="push").new())


def test_numbers_that_round_and_masks_that_say_where_are_left_to_the_library():
    A = patient(hub_graph(False))
    u = Vector.from_dense(np.arange(N, dtype=float), backend="cpu")
    w, m = Vector(FP64, N, like=A), Vector.from_coo([3], [True], size=N, backend="cpu")
    with lagpu.trace() as t:
        w << semiring.plus_first(u @ A)
        w(m.S) << semiring.min_first(u @ A)
        w(accum=binary.min) << semiring.min_first(u @ A)
    assert [row.kernel for row in t.rows] == ["SuiteSparse"] * 3
    said = [row.reason.removeprefix("SuiteSparse chooses its own method: ") for row in t.rows]
    assert said == [
        "plus of FP64 may round",
        "the mask says where results are wanted",
        "the result is accumulated",
    ]
    assert {row.direction for row in t.rows} == {""}


def test_explain_says_what_would_run_and_makes_nothing():
    A = hub_graph(False)
    u = Vector.from_dense(np.ones(N, bool), backend="cpu", name="u")
    said = lagpu.explain(semiring.any_pair(u @ A)).splitlines()
    assert said[1].startswith(f"push, SuiteSparse saxpy: edges {A.nvals} > unexplored 0 / 8, but")
    assert said[2].startswith("by rows 0.")
    patient(A)
    said = lagpu.explain(semiring.any_pair(u @ A)).splitlines()
    assert said[1].startswith("pull, SuiteSparse dot: edges ")
    assert said[1].endswith("; second form made")
    assert A.data.transposed is None
    semiring.any_pair(u @ A).new()
    said = lagpu.explain(semiring.any_pair(u @ A)).splitlines()
    assert "by columns" in said[2]


def test_what_wrote_the_frontier_last_decides():
    """The statistics of a product are those of its result, until something else writes it."""
    A = patient(hub_graph(True))
    search(A, 5)
    u = Vector.from_dense(np.ones(N, bool), backend="cpu")
    w = semiring.any_pair(u @ A).new()
    assert w.data.stats.pulled
    for write in (
        lambda: w.__setitem__(3, True),
        lambda: w.__delitem__(3),
        w.clear,
        lambda: w << u,
        lambda: w(u.S) << True,
    ):
        w << semiring.any_pair(u @ A)
        assert w.data.stats is not None
        write()
        assert w.data.stats is None


def test_levels_of_algorithms_are_those_of_the_plain_push():
    A = patient(hub_graph(False))
    for source in (5, N // 2):
        plain, _ = search(A, source, policy="push")
        assert algorithms.bfs_levels(A, source).isequal(plain)


def test_a_product_of_matrices_has_a_choice_of_its_own():
    A = hub_graph(True, 64)
    q = Vector.from_coo([1], True, size=64, like=A)
    semiring.any_pair(q @ A).new()
    assert A.backend.last_product.direction == "push"
    semiring.any_pair(A @ A).new()
    plan = A.backend.last_product
    assert (plan.direction, plan.kernel) == ("", "SuiteSparse")
    assert plan.reason == "SuiteSparse chooses its own method"
