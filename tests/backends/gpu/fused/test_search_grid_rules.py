"""Grid searches by a named policy, and over one form of a directed matrix."""

import numpy as np
import pytest
from hubs import directions
from limits import set_limits
from samples import picked
from searches import graph, levels_and_paths, levels_behind, parents, start

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Vector, algorithms, generators, loop, semiring
from lagpu.backends import get
from lagpu.backends.guard import overridden
from lagpu.errors import InvalidValue

POLICIES = (
    "auto",
    "beamer:alpha=3,beta=9",
    "hiragushi",
    "bfs2d:ratio=0.3",
    "density:threshold=0.2",
)


def with_policy(A, policy):
    """The matrix on a backend that has this policy for every product."""
    there = overridden(A.backend, None, policy)
    return type(A)._of(A.data, A.dtype, A.shape, there, A.name)


def beamer(A, f, levels):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A, policy="beamer:alpha=3,beta=9")


def tdbu(A, f, levels):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A, policy="tdbu")


def vbfs(A, f, levels):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A, policy="vbfs:7")


def mgbc(A, f, levels):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A, policy="mgbc")


def unmasked(A, f, levels):
    for _ in loop(until_empty=f, times=1):
        f << semiring.any_pair(f @ A, policy="beamer")
        levels(f.S) << 1


def wrong(A, f, levels):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A, policy="vbfs:x=1")


def along(A, f, levels):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)


def against(A, f, levels):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(A @ f)


def paths_against(A, f, levels, paths):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        paths(f.S) << f
        f(~levels.S, replace=True) << semiring.plus_second(A @ f)


def expected_directions(levels, degree, pulls):
    """The directions by a rule of (found, size, active, unexplored, unvisited, pulled)."""
    found, pulled, unexplored, unvisited = [], False, int(degree.sum()), len(levels)
    for depth in range(levels.max() + 1):
        here = levels == depth
        active = int(degree[here].sum())
        unexplored -= active
        unvisited -= int(here.sum())
        pulled = pulls(int(here.sum()), len(levels), active, unexplored, unvisited, pulled)
        found.append("pull" if pulled else "push")
    return found


def edges_rule(alpha, beta):
    return lambda k, n, active, left, _, pulled: k * beta >= n if pulled else active * alpha > left


RULES = {
    "beamer:alpha=3,beta=9": edges_rule(3, 9),
    "beamer:alpha=0,beta=1": edges_rule(0, 1),
    "hiragushi": edges_rule(48, 20),
    "bfs2d:ratio=0.3": lambda k, n, _a, _l, left, _p: not left or k / left >= 0.3,
    "bfs2d:ratio=0": lambda *_: True,
    "density:threshold=0.2": lambda k, n, _a, _l, _u, pulled: pulled or k / n >= 0.2,
    "density:threshold=2": lambda *_: False,
}


@pytest.mark.parametrize(
    "policy", picked(list(RULES), "beamer:alpha=3,beta=9", "hiragushi", "bfs2d:ratio=0.3")
)
def test_directions_are_those_of_the_rule(place, policy, monkeypatch):
    set_limits(monkeypatch, solo=0)  # no block goes on alone, whatever the rule says
    A = with_policy(generators.uniform(9, 4, seed=3, backend=place), policy)
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, 3)
    assert A.backend.last_loop == (
        f"grid search: the body is a search from one frontier; policy {policy}"
    )
    there = algorithms.bfs_levels(A.to("cpu"), 3)
    assert levels.to("cpu").isequal(there)
    found = np.full(512, -1)
    indices, values = there.to_coo()
    found[indices] = values
    wanted = expected_directions(found, np.diff(A.to_csc()[0]), RULES[policy])
    assert directions(t) == wanted
    reasons = [row.reason for row in t.rows if row.method == "mxv"]
    assert all(any(c.isdigit() for c in reason) for reason in reasons), reasons


@pytest.mark.parametrize("policy", picked(POLICIES, "auto", "hiragushi", rest="exhaustive"))
@pytest.mark.parametrize(("n", "symmetric"), [(1, True), (33, False), (1025, True)])
def test_a_policy_finds_what_the_statements_find(place, policy, n, symmetric):
    """Levels with `times`, path counts, parents, from several sources, to the last bit."""
    A = graph(n, symmetric, place)
    B, A = A.to("cpu"), with_policy(A, policy)
    sources = sorted({0, n // 2, n - 1})

    def run(M, times):
        found = [Vector(kind, n, like=M) for kind in (INT32, FP64, INT32, INT64, INT32)]
        levels_and_paths(M, start(FP64, n, [0], 1.0, M), found[0], found[1], times)
        parents(M, start(INT64, n, sources, sources, M), found[2], found[3], times)
        f = start(BOOL, n, sources, True, M)
        levels_behind(M, f, found[4], times)
        return [*found, f]

    for times in (None, 2):
        for x, y in zip(run(A, times), run(B, times), strict=True):
            assert x.to("cpu").isclose(y), times
        assert A.backend.last_loop.startswith("grid search: ")


def test_a_product_of_a_body_names_its_policy(place):
    A = graph(33, True, place)
    levels = Vector(INT32, 33, like=A)
    beamer(A, start(BOOL, 33, [0], True, A), levels)
    assert place.last_loop.endswith("one frontier; policy beamer:alpha=3,beta=9")
    assert levels.to("cpu").isequal(algorithms.bfs_levels(A.to("cpu"), 0))


@pytest.mark.parametrize(
    ("search", "why"),
    [
        (tdbu, "all entries of a column"),
        (vbfs, "groups of entries"),
        (mgbc, "lists of active edges"),
    ],
)
def test_what_no_fused_search_follows_runs_eagerly_and_says_why(place, search, why):
    A = graph(33, True, place)
    levels = Vector(INT32, 33, like=A)
    search(A, start(BOOL, 33, [0], True, A), levels)
    assert place.last_loop.startswith(f"eager: policy {search.__name__}: ")
    assert why in place.last_loop
    assert levels.to("cpu").isequal(algorithms.bfs_levels(A.to("cpu"), 0))
    assert not overridden(place, None, search.__name__).capabilities.fuses
    with pytest.raises(InvalidValue, match="no argument 'x=1'"):
        wrong(A, start(BOOL, 33, [0], True, A), Vector(INT32, 33, like=A))


def test_a_policy_of_a_loop_that_is_no_search(place):
    A = graph(33, True, place)
    levels, f = Vector(INT32, 33, like=A), start(BOOL, 33, [0], True, A)
    unmasked(A, f, levels)
    assert place.last_loop.startswith("eager: policy beamer: no search: ")
    B = graph(33, False, place)
    B.orientation = "csc"
    beamer(B, start(BOOL, 33, [0], True, B), Vector(INT32, 33, like=B))
    assert place.last_loop == (
        "eager: policy beamer:alpha=3,beta=9 needs the matrix by rows too, "
        "and its orientation is csc"
    )


@pytest.mark.each_value
@pytest.mark.parametrize("n", [1, 2, 31, 33, 1025])
@pytest.mark.parametrize("search", [along, against])
def test_one_form_of_a_directed_matrix_searches_in_one_direction(place, n, search):
    A = graph(n, False, place)
    A.orientation = "csc"
    B = A.to("cpu")
    for sources in ([0], sorted({0, n // 2, n - 1})):
        levels, there = Vector(INT32, n, like=A), Vector(INT32, n, like=B)
        with lagpu.trace() as t:
            search(A, start(BOOL, n, sources, True, A), levels)
        search(B, start(BOOL, n, sources, True, B), there)
        assert levels.to("cpu").isequal(there)
        way = "pull" if search is along else "push"
        if not A.is_symmetric:
            assert place.last_loop == (
                f"grid search: the body is a search from one frontier; it only {way}"
                f"{'s' if way == 'pull' else 'es'}, by columns alone: its orientation is csc"
            )
            assert set(directions(t)) == {way}
        assert A.data.store.csr is None


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("times", [None, 0, 1, 3])
def test_values_over_one_form(place, times):
    """Paths and parents along the edges, pulled; paths against them, pushed."""
    n = 1025
    A = graph(n, False, place)
    A.orientation = "csc"
    B = A.to("cpu")

    def run(M):
        found = [Vector(kind, n, like=M) for kind in (INT32, FP64, INT32, INT64, INT32)]
        f, g, h = start(FP64, n, [0], 1.0, M), start(INT64, n, [0, 7], [0, 7], M), None
        levels_and_paths(M, f, found[0], found[1], times)
        parents(M, g, found[2], found[3], times)
        h = start(BOOL, n, [0, 900], True, M)
        levels_behind(M, h, found[4], times)
        return [*found, f, g, h]

    for x, y in zip(run(A), run(B), strict=True):
        assert x.to("cpu").isclose(y)
    back, there = ([Vector(kind, n, like=M) for kind in (INT32, FP64)] for M in (A, B))
    paths_against(A, start(FP64, n, [5], 1.0, A), *back)
    paths_against(B, start(FP64, n, [5], 1.0, B), *there)
    assert all(x.to("cpu").isclose(y) for x, y in zip(back, there, strict=True))
    assert "only pushes" in place.last_loop
    assert A.data.store.csr is None


@pytest.mark.ci
def test_entries_before_the_loop_are_kept_over_one_form(place):
    A = graph(1025, False, place)
    A.orientation = "csc"
    B = A.to("cpu")
    for search in (along, against):
        found = []
        for M in (A, B):
            levels = Vector.from_coo(np.arange(0, 1025, 5), -1, INT32, size=1025, like=M)
            search(M, start(BOOL, 1025, [3], True, M), levels)
            found.append(levels.to("cpu"))
        assert found[0].isequal(found[1])


def test_one_form_takes_less_memory(place):
    """A pull keeps no lists, a push no hints; neither keeps rows."""
    made = {}
    for name, search in (("pull", along), ("push", against)):
        A = graph(1025, False, place)
        A.orientation = "csc"
        search(A, start(BOOL, 1025, [0], True, A), Vector(INT32, 1025, like=A))
        made[name] = A.data.store
    assert sorted(made["pull"].cache) == ["grid search by one form", "pull"]
    assert sorted(made["push"].cache) == ["grid search against the edges by one form", "push"]
    used = {k: sum(int(x.nbytes) for x in form.cache.values()) for k, form in made.items()}
    assert used["pull"] < 5 * 1025
    assert used["push"] < 30 * 1025
    A = graph(1025, False, place)
    along(A, start(BOOL, 1025, [0], True, A), Vector(INT32, 1025, like=A))
    forms = [A.data.store, A.data.store.csr]
    assert sum(int(x.nbytes) for form in forms for x in form.cache.values()) > used["push"]


def test_launches_are_kept_by_numbers_and_not_by_words(place):
    """A reason that names free bytes is another one each time."""
    A = graph(33, True, place)
    for policy in ("beamer:alpha=3", "beamer:alpha=3,beta=24", "beamer:alpha=3.0", None):
        algorithms.bfs_levels(A if policy is None else with_policy(A, policy), 0)
    (space,) = (x for name, x in A.data.store.cache.items() if name == "grid search")
    assert len(space.launches) == 2


def test_orientation_may_change_between_searches(place):
    A = graph(1025, False, place)
    wanted = algorithms.bfs_levels(A.to("cpu"), 0)
    for orientation in ("csc", "auto", "csc", "auto"):
        A.orientation = orientation
        assert algorithms.bfs_levels(A, 0).to("cpu").isequal(wanted)
        assert ("only pulls" in place.last_loop) == (orientation == "csc")
        assert (A.data.store.csr is None) == (orientation == "csc")


def test_the_oracle_has_no_rules():
    assert get("cpu").capabilities.fused_policies == ()
