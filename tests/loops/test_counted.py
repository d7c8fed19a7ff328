"""Loops at the level of a module: fused as in a function, with a counter that knows its value."""

import linecache

import numpy as np
import pytest

import lagpu
from lagpu import backends

BEGIN = """
import numpy as np
import lagpu
from lagpu import *

rng, n = np.random.default_rng(seed), 60
rows, cols = rng.integers(0, n, 150), rng.integers(0, n, 150)
A = Matrix.from_coo(rows, cols, True, nrows=n, ncols=n, dup_op=binary.any, backend=backend)
levels = Vector(INT32, n, like=A)
frontier = Vector(BOOL, n, like=A)
frontier[seed] = True
label = Vector.from_dense(np.arange(n), like=A)
x = Vector.from_dense(np.ones(n), like=A)
total = Scalar(INT64, 0)
Q = Matrix.from_coo([0, 1], [3, 5], True, nrows=2, ncols=n, like=A)
L = Matrix(INT32, 2, n, like=A)
"""
LOOPS = {
    "a search": """
for depth in loop(until_empty=frontier):
    levels(frontier.S) << depth
    frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
""",
    "a bounded search": """
for depth in loop(until_empty=frontier, times=2):
    levels(frontier.S) << depth
    frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
""",
    "a search that assigns last": """
levels[seed] = 0
for depth in loop(until_empty=frontier):
    frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    levels(frontier.S) << 7
""",
    "two searches": """
for first in loop(until_empty=frontier):
    levels(frontier.S) << first
    frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
levels.clear()
frontier[seed] = True
for depth in loop(until_empty=frontier, times=1):
    levels(frontier.S) << depth
    frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
depth = (first, depth)
""",
    "until unchanged": """
for depth in loop(until_unchanged=label):
    label(accum=binary.min) << semiring.min_second(A @ label)
""",
    "so many times": """
for depth in loop(times=5):
    x << semiring.plus_first(x @ A)
    total(accum=binary.plus) << x.reduce("plus")
""",
    "in place": """
for depth in loop(times=3):
    x *= 2
    x += 0.5 * x
""",
    "counter in arithmetic": """
for depth in loop(times=3):
    x << x * (depth + 1)
""",
    "matrices": """
for depth in loop(until_empty=Q):
    L(Q.S) << depth
    Q(~L.S, replace=True) << semiring.any_pair(Q @ A)
""",
    "a branch": """
for depth in loop(times=3):
    if depth < 2:
        x << x * 2
""",
    "read inside": """
for depth in loop(times=3):
    x << x * max(depth, 1)
""",
}
FUSED = tuple(LOOPS)[:9]


def run(tmp_path, loop, backend, seed=3):
    """Return the names of a module with this loop."""
    path = tmp_path / "module.py"
    path.write_text(BEGIN + LOOPS[loop], "utf-8")
    linecache.checkcache(str(path))
    names = {"seed": seed, "backend": backend, "__name__": "module"}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), names)
    return names


def contents(names):
    objects = [names[name].to_coo() for name in ("levels", "frontier", "label", "x", "Q", "L")]
    return [*objects, [[names["total"].value]]]


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_outside_a_function(tmp_path, backend, name):
    expected, found = run(tmp_path, name, "cpu"), run(tmp_path, name, backend.name)
    for ours, right in zip(contents(found), contents(expected), strict=True):
        for mine, its in zip(ours, right, strict=True):
            np.testing.assert_allclose(mine, its)
    if backend.capabilities.fuses:
        why = backends.get(backend.name).last_loop
        assert why.startswith("eager") is (name not in FUSED), why
        if "search" in name and "last" not in name:
            assert why.startswith("grid search"), why
    assert repr(found["depth"]) == repr(expected["depth"])


ERRORS = {
    "of the body": ("x << x[n]", 0),
    "of the counter": ("x << x + 1 / (2 - depth)", 2),
    "of a scalar": ("x << x * total; total << frontier.reduce('plus'); frontier << none", 2),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_leaves_the_number_of_its_iteration(tmp_path, backend, name, monkeypatch):
    body, iteration = ERRORS[name]
    text = (
        "none = frontier.dup(clear=True)\ntry:\n    for depth in loop(times=4):\n"
        f"        {body}\nexcept (ArithmeticError, LookupError, ValueError):\n    pass\n"
    )
    monkeypatch.setitem(LOOPS, name, text)
    found = run(tmp_path, name, backend.name)
    assert (type(found["depth"]), found["depth"]) == (int, iteration)


def test_a_search_that_runs_eagerly_counts_its_levels(tmp_path, backend):
    with lagpu.eager():
        found = run(tmp_path, "a search", backend.name)
    assert found["depth"] == max(found["levels"].to_coo()[1])


def test_the_counter_knows_its_value_after_later_searches(tmp_path, backend):
    """The device keeps the depth of each search in the same words."""
    names = [run(tmp_path, "a search", backend.name, seed) for seed in (1, 2, 3, 4)]
    found = [int(one["depth"]) for one in names]
    assert found == [int(run(tmp_path, "a search", "cpu", seed)["depth"]) for seed in (1, 2, 3, 4)]


@pytest.mark.parametrize("places", [("cpu", "sim"), ("sim",)])
def test_a_crosscheck_of_a_loop_outside_a_function(tmp_path, places):
    path = tmp_path / "module.py"
    path.write_text(LOOPS["a search"] + LOOPS["in place"], "utf-8")
    linecache.checkcache(str(path))
    code = compile(path.read_text("utf-8"), str(path), "exec")

    def program(A):
        names = {"A": A, "loop": lagpu.loop, "semiring": lagpu.semiring}
        names["levels"] = lagpu.Vector(lagpu.INT32, A.nrows, like=A)
        names["frontier"] = lagpu.Vector(lagpu.BOOL, A.nrows, like=A)
        names["x"] = lagpu.Vector(lagpu.FP64, A.nrows, like=A)
        names["frontier"][0] = True
        names["x"] << 1
        exec(code, names)
        return names["levels"], names["x"], int(names["depth"])

    A = lagpu.generators.path(6, backend="cpu")
    report = lagpu.crosscheck(program, A, backends=places)
    assert report.ok
    assert report.result[2] == 2


def test_a_counter_that_is_called_underscore_is_not_kept(tmp_path):
    LOOPS["underscore"] = "for _ in loop(times=3):\n    x << x * 2\n"
    try:
        names = run(tmp_path, "underscore", "sim")
    finally:
        del LOOPS["underscore"]
    assert backends.get("sim").last_loop.startswith("generated loop")
    assert "_" not in names


def test_a_loop_in_the_body_of_a_class_is_not_fused(tmp_path):
    LOOPS["class"] = "class Program:\n    for depth in loop(times=3):\n        x << x * 2\n"
    try:
        names = run(tmp_path, "class", "sim")
    finally:
        del LOOPS["class"]
    assert names["Program"].depth == 2
