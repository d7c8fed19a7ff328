"""Stepping through algorithms: states, names, masks, limits."""

import numpy as np
import pytest
from loop_names import is_fused

import lagpu
from lagpu import BOOL, FP64, INT32, Scalar, Vector, algorithms, generators, loop, semiring
from lagpu.errors import DomainMismatch, LimitExceeded


@pytest.fixture
def A(backend):
    return generators.path(4, backend=backend)


def run(steps):
    """Exhaust a generator: (what it yielded, what it returned)."""
    found = []
    while True:
        try:
            found.append(next(steps))
        except StopIteration as stop:
            return found, stop.value


def test_a_search_state_by_state(A):
    found, result = run(lagpu.step(algorithms.bfs_levels, A, 1))
    assert result.to_dense(-1).tolist() == [1, 0, 1, 2]
    assert [s.number for s in found] == list(range(1, 8))
    assert [s.level for s in found] == [-1, 0, 0, 1, 1, 2, 2]
    assert [s.output for s in found] == ["frontier"] + ["levels", "frontier"] * 3
    assert all(list(s.vectors) == ["levels", "frontier"] for s in found)
    levels = [s.vectors["levels"].to_dict() for s in found]
    frontiers = [s.vectors["frontier"].to_dict() for s in found]
    full = {0: 1, 1: 0, 2: 1, 3: 2}
    assert levels == [{}, {1: 0}, {1: 0}, *[{0: 1, 1: 0, 2: 1}] * 2, *[full] * 2]
    yes = True
    assert frontiers == [*[{1: yes}] * 2, *[{0: yes, 2: yes}] * 2, *[{3: yes}] * 2, {}]
    assert found[3].before["levels"].to_dict() == {1: 0}
    assert found[2].formula == "frontier(~levels.S, replace) << frontier any_pair A"
    assert found[2].source == (
        "frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)"
    )
    assert found[2].file.endswith("bfs.py")
    assert found[2].code is algorithms.bfs_levels.__code__
    assert found[2].mask.formula == "~levels.S"
    assert found[2].mask.kept.tolist() == [True, False, True, True]
    assert found[2].product == ("A", False, "frontier", True)
    assert found[2].matrices["A"].isequal(A)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("name", ["bfs_levels", "bfs_parents", "bfs", "count_shortest_paths"])
def test_the_last_state_is_the_result(A, name):
    algorithm = getattr(algorithms, name)
    found, result = run(lagpu.step(algorithm, A, 0))
    vectors = result if isinstance(result, tuple) else [result]
    for vector in vectors:
        state = found[-1].vectors[vector.name]
        indices, values = vector.to_coo()
        assert np.array_equal(state.indices, indices)
        assert np.array_equal(state.values, values)
    again = algorithm(A, 0)
    others = again if isinstance(again, tuple) else [again]
    assert all(one.isequal(other) for one, other in zip(vectors, others, strict=True))


def test_loops_run_eagerly_and_are_fused_again_afterwards(A):
    list(lagpu.step(algorithms.bfs_levels, A, 0))
    if not A.backend.capabilities.fuses:
        pytest.skip("this backend fuses nothing")
    assert A.backend.last_loop == "eager: it is stepped through"
    algorithms.bfs_levels(A, 0)
    assert is_fused(A.backend.last_loop)


def helped(u, twice):
    w = u.dup()
    w << w.apply("ainv")
    if twice:
        w << w.apply("ainv")
    return w


def outer(A):
    u = Vector(INT32, A.nrows, like=A)
    u[0] = 5
    w = helped(u, False)
    total = Scalar(INT32)
    total << w.reduce()
    w = semiring.plus_first(
        A.T @ w,
    ).new()
    w = semiring.plus_first(w @ A).new()
    u.clear()
    w(u.V) << 0
    B = A.apply("one").new()
    return B


def test_names_frames_scalars_and_matrices(A):
    found, B = run(lagpu.step(outer, A))
    assert [s.formula for s in found] == [
        "u[0] << 5",
        "w << ainv(w)",
        "total << plus(w)",
        "w << A' plus_first w (old)",
        "w << w (old) plus_first A",
        "w(u.V) << 0",
        "B << one(A)",
    ]
    inside = found[1]
    assert inside.code is helped.__code__
    assert inside.vectors["w"].to_dict() == {0: -5}
    assert inside.vectors["u"].to_dict() == {0: 5}  # the same vector in both frames, once
    assert found[2].scalars == {"total": -5}
    assert found[2].output == "total"
    assert (found[3].line + 2, found[3].source) == (
        found[3].last_line, "w = semiring.plus_first( A.T @ w, ).new()"
    )  # fmt: skip
    assert found[3].product == ("A", True, "w (old)", False)
    assert found[3].vectors["w (old)"].to_dict() == {0: -5}
    assert found[4].before["w"].to_dict() == {}
    assert found[5].vectors["u"].nvals == 0  # cleared between two statements
    assert not found[5].mask.kept.any()
    assert set(found[6].matrices) == {"A", "B"}
    assert found[6].matrices["B"].isequal(B)


def same_name_further_in(A):
    v = Vector(INT32, 2, like=A)

    def inner(A):
        v = Vector(INT32, 2, like=A)
        v << 2
        return v

    v << 1
    v << inner(A)


def test_equal_names_of_two_frames_are_distinguished(A):
    found = list(lagpu.step(same_name_further_in, A))
    assert found[1].output == "v"
    assert found[1].vectors["v"].to_dict() == {0: 2, 1: 2}
    assert found[1].vectors["v of same_name_further_in"].to_dict() == {0: 1, 1: 1}
    assert found[2].vectors["v"].to_dict() == {0: 2, 1: 2}


def test_vectors_without_a_variable_keep_their_own_names(A):
    def unnamed(A):
        both = [Vector(INT32, 2, like=A, name="x"), Vector(INT32, 2, like=A, name="x")]
        both[0] << 1
        both[1] << both[0]

    found = list(lagpu.step(unnamed, A))
    assert found[1].formula == "x << x (2)"
    assert found[1].vectors["x (2)"].to_dict() == {0: 1, 1: 1}


def test_zero_and_nothing_differ(A):
    def zeros(A):
        v = Vector(FP64, 3, like=A)
        v[0] = 0.0
        v[2] = -0.0

    state = list(lagpu.step(zeros, A))[-1].vectors["v"]
    assert state.pattern.tolist() == [True, False, True]
    assert (state.nvals, state.to_dict()) == (2, {0: 0.0, 2: 0.0})


def test_an_error_follows_the_steps_before_it(A):
    def breaks(A):
        v = Vector(BOOL, 2, like=A)
        v << True
        raise KeyError("mine")

    steps = lagpu.step(breaks, A)
    assert next(steps).vectors["v"].nvals == 2
    with pytest.raises(KeyError, match="mine"):
        next(steps)


def test_limits_are_stated(A, monkeypatch):
    def endless(A):
        v = Vector(INT32, 3, like=A)
        k = 0
        while True:
            v << k
            k += 1

    steps = lagpu.step(endless, A, limit=7)
    assert len([next(steps) for _ in range(7)]) == 7
    with pytest.raises(LimitExceeded, match=r"more than 7 statements.*limit="):
        next(steps)
    monkeypatch.setitem(lagpu.step.__globals__, "ENTRIES", 30)
    with pytest.raises(LimitExceeded, match="more than 30 entries"):
        list(lagpu.step(endless, A))


@pytest.mark.parametrize("limit", [None, 2.5, "7", True])
def test_a_limit_is_a_number(A, limit):
    with pytest.raises(DomainMismatch, match=r"step: limit .* is not an integer\. Leave it out"):
        next(lagpu.step(lagpu.algorithms.bfs_levels, A, 0, limit=limit))


def test_states_that_stay_are_kept_once(A):
    def stays(A):
        v = Vector(INT32, 3, like=A)
        w = Vector(INT32, 3, like=A)
        v << 1
        for k in loop(times=4):
            w << k

    found = list(lagpu.step(stays, A))
    assert len({id(s.vectors["v"]) for s in found}) == 1
    assert len({id(s.vectors["w"]) for s in found[1:]}) == 4


def test_what_is_no_function_is_refused(A):
    with pytest.raises(DomainMismatch, match="int cannot be called"):
        list(lagpu.step(3))


def test_a_trace_inside_sees_its_own(A):
    def traced(A):
        v = Vector(INT32, 2, like=A)
        v << 1
        with lagpu.trace() as t:
            v << 2
        return t

    found, t = run(lagpu.step(traced, A))
    assert (len(found), len(t.rows)) == (1, 1)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("bfs_levels_multi", ([1, 2],)),
        ("bfs_parents_multi", ([0, 3],)),
        ("triangle_count", ()),
        ("betweenness_centrality", ()),
    ],
)
def test_matrices_and_their_masks(backend, name, args):
    A = generators.path(5, backend=backend)
    algorithm = getattr(algorithms, name)
    steps, result = run(lagpu.step(algorithm, A, *args))
    right = algorithm(A, *args)
    assert result == right if name == "triangle_count" else result.isequal(right)
    masked = [s for s in steps if s.mask is not None and s.output in s.matrices]
    assert masked
    assert all(s.kept is None and s.mask.formula in s.formula for s in masked)
    for s in steps:
        assert s.formula in repr(s)
        assert s._repr_html_().startswith("<")


def test_a_matrix_is_shown_row_by_row():
    A = generators.path(5, backend="cpu")
    steps = list(lagpu.step(algorithms.bfs_levels_multi, A, [1, 4]))
    assert repr(steps[-2]).splitlines()[-2:] == [
        "> levels[0]  1 0 1 2 3",
        "> levels[1]  4 3 2 1 0",
    ]
    A = generators.path(12, backend="cpu")
    many = list(lagpu.step(algorithms.bfs_levels_multi, A, list(range(10))))
    assert repr(many[-2]).splitlines()[-1] == "> ... 2 more rows, 120 entries"
