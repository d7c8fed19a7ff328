"""Bounded searches keep what outputs had at vertices that are left in the frontier."""

import drawn_loops as loops
import pytest
from pieces_of_search import RUNS
from strategies import for_all

from lagpu import BOOL, FP64, INT64, Matrix, Vector, backends, loop, semiring

n = 70


def depths(A, f, levels, seen, op, times):
    for depth in loop(until_empty=f, times=times):
        levels(f.S) << depth
        seen(f.S) << depth
        f(~levels.S, replace=True) << op(f @ A)


def depths_last(A, f, levels, seen, op, times):
    for depth in loop(until_empty=f, times=times):
        seen(f.S) << depth
        levels(f.S) << depth
        f(~levels.S, replace=True) << op(f @ A)


def values(A, f, levels, seen, op, times):
    for depth in loop(until_empty=f, times=times):
        seen(f.S) << f
        levels(f.S) << depth
        f(~levels.S, replace=True) << op(f @ A)


def depths_of_values(A, f, levels, seen, op, times):
    for depth in loop(until_empty=f, times=times):
        levels(f.S) << f
        seen(f.S) << depth
        f(~levels.S, replace=True) << op(f @ A)


def after(A, f, levels, seen, op, times):
    levels(f.S) << 0
    for depth in loop(until_empty=f, times=times):
        f(~levels.S, replace=True) << op(f @ A)
        seen(f.S) << depth
        levels(f.S) << depth


def found(place, search, op, times, there):
    """Search a path with a branch at each vertex; return all outputs."""
    half = list(range(n // 2 - 1))
    rows, cols = half + half, [v + 1 for v in half] + [v + n // 2 for v in half]
    A = Matrix.from_coo(rows, cols, 2, INT64, nrows=n, ncols=n, backend=place)
    dtype = BOOL if op == "any_pair" else FP64 if op == "plus_first" else INT64
    f = Vector.from_coo([0], 1, dtype, size=n, backend=place)
    levels = Vector(INT64, n, backend=place)
    seen = Vector.from_coo(there, -7, INT64, size=n, backend=place)
    search(A, f, levels, seen, getattr(semiring, op), times)
    return [[part.tolist() for part in x.to_coo()] for x in (f, levels, seen)]


@pytest.mark.parametrize("there", [range(n), range(0, n, 3)], ids=["full", "some"])
@pytest.mark.parametrize(
    ("search", "op"),
    [
        (depths, "any_pair"),
        (depths_last, "min_first"),
        (values, "any_first"),
        (values, "plus_first"),
        (depths_of_values, "plus_first"),
        (after, "any_pair"),
    ],
)
def test_what_is_left_keeps_its_entries(backend, search, op, there):
    runs = {"cpu": "", "sim": "grid search: ", "gpu": "grid search: "}
    places = {backend.name: runs[backend.name]}
    if backend.name == "sim":
        places["grid:2:sim"] = "generated loop of pieces: " if search is after else RUNS
    for times in (1, 2, 4):
        want = found("cpu", search, op, times, there)
        for place, name in places.items():
            assert found(place, search, op, times, there) == want
            assert backends.get(place).last_loop.startswith(name)


@for_all(cpu=3, compiled=24)
def test_random_searches(backend, draw):
    """Of vectors and rows, with entries nowhere, somewhere and everywhere, and sweeps."""
    assert loops.searches(draw, backend, 0)
