"""`loop`: its three conditions, alone and together, and what it refuses."""

import pytest

import lagpu
from lagpu import INT32, INT64, Vector, binary, loop
from lagpu.errors import DomainMismatch, InvalidValue


def test_until_empty(backend):
    v = Vector.from_coo([0, 1, 2], [1, 2, 3], size=3, backend=backend)
    seen = []
    for k in loop(until_empty=v):
        seen.append((k, v.nvals))
        del v[k]
    assert seen == [(0, 3), (1, 2), (2, 1)]


def test_a_backend_that_fuses_no_loop_says_so_and_a_plain_loop_changes_nothing():
    A = lagpu.generators.path(4, backend="cpu")
    place = A.backend
    for run in (
        lambda: lagpu.algorithms.bfs_levels(A, 0),
        lambda: list(lagpu.sweep(lagpu.algorithms.bfs_levels(A, 0))),
        lambda: limited(Vector(INT64, 4, like=A)),
    ):
        place.last_loop = ""
        run()
        assert place.last_loop == "eager: this backend runs each statement by itself"
    place.last_loop = "of before"
    v = Vector(INT64, 4, like=A)
    for k in range(2):
        v << k
    assert place.last_loop == "of before"


def limited(v):
    for _ in loop(times=2):
        v << 1


def test_until_empty_of_an_empty_vector_runs_no_body(backend):
    assert list(loop(until_empty=Vector(INT32, 3, backend=backend))) == []


def test_until_unchanged(backend):
    v = Vector.from_dense([5, 2, 9], backend=backend)
    steps = []
    for k in loop(until_unchanged=v):
        steps.append(k)
        v << v.apply(binary.min, right=4 - k if k < 3 else 2)
    assert v.to_dense().tolist() == [2, 2, 2]
    assert steps == [0, 1, 2, 3]


def test_until_unchanged_sees_structure_too(backend):
    v = Vector(INT32, 3, backend=backend)
    steps = 0
    for k in loop(until_unchanged=v):
        steps += 1
        if k < 2:
            v[k] = 0
    assert steps == 3


@pytest.mark.parametrize("times", [0, 1, 4])
def test_times(times):
    assert list(loop(times=times)) == list(range(times))


def test_times_bounds_another_condition(backend):
    v = Vector.from_dense([1], backend=backend)
    assert list(loop(until_empty=v, times=3)) == [0, 1, 2]
    assert list(loop(until_unchanged=v, times=3)) == [0]


def test_break_and_nesting(backend):
    v = Vector.from_dense([1, 1], backend=backend)
    seen = []
    for outer in loop(until_empty=v):
        for inner in loop(times=9):
            seen.append((outer, inner))
            if inner == 1:
                break
        del v[outer]
    assert seen == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("conditions", "error", "message"),
    [
        ({}, InvalidValue, "give until_empty=, until_unchanged=, until= or times="),
        ({"times": -1}, InvalidValue, "times -1 < 0"),
        ({"times": 1.5}, DomainMismatch, "times 1.5 is not an integer"),
        ({"times": True}, DomainMismatch, "not an integer"),
        ({"until_empty": [1]}, DomainMismatch, "list is neither a Vector nor a Matrix"),
        ({"until_unchanged": 3}, DomainMismatch, "int is neither a Vector nor a Matrix"),
    ],
)
def test_refuses_at_the_call(conditions, error, message):
    with pytest.raises(error, match=message):
        loop(**conditions)


def test_refuses_two_vectors():
    v = Vector(INT64, 1, backend="cpu")
    with pytest.raises(InvalidValue, match="not both"):
        loop(until_empty=v, until_unchanged=v)
    A = lagpu.Matrix(INT64, 1, 1, backend="cpu")
    with pytest.raises(InvalidValue, match="not both"):
        loop(until_empty=A, until_unchanged=v)


def test_a_matrix_may_be_the_condition(backend):
    """A row of Q loses its first entry an iteration, and comes to rest when it is empty."""
    Q = lagpu.Matrix.from_coo([0, 0, 1], [0, 1, 2], 1, nrows=2, ncols=4, backend=backend)
    shift = lagpu.Matrix.from_coo([0, 1, 2], [1, 2, 3], 1, nrows=4, ncols=4, like=Q)
    seen = []
    for depth in loop(until_empty=Q):
        seen.append((depth, Q.nvals))
        Q << lagpu.semiring.any_pair(Q @ shift)
    assert seen == [(0, 3), (1, 3), (2, 2), (3, 1)]
    assert list(loop(until_empty=Q)) == []
    reach = shift.dup()
    for _ in loop(until_unchanged=reach):
        reach(accum=lagpu.binary.max) << lagpu.semiring.any_pair(reach @ shift)
    assert reach.nvals == 6
    if backend.capabilities.fuses:
        assert backend.last_loop.startswith("eager: its source differs from the code")  # by pytest


def test_a_condition_needs_its_name():
    v, k = Vector(INT64, 3, backend="cpu", name="v"), 3
    with pytest.raises(DomainMismatch, match=r"v is given .*Write loop\(until_empty=v\)"):
        loop(v)
    with pytest.raises(DomainMismatch, match=r"k is given .*Write loop\(times=k\)"):
        loop(k)
