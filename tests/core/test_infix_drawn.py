"""Nested expressions and statements, drawn: one text in python-graphblas and in lagpu."""

from pathlib import Path

import graphblas as gb
import hypothesis
import numpy as np
import pytest
from both_libraries import converted, plain, same
from drawn_lines import lines
from samples import picked
from their_types import RULES, Typed, rows

import lagpu
from lagpu.errors import LagpuError

NAMES = ("binary", "unary", "monoid", "semiring", "select", "replace")
TYPES = Path(__file__).parents[2] / "docs" / "design" / "types.md"


def their_objects():
    """Return objects of python-graphblas, of several types, most with missing entries."""
    V, M, size = gb.Vector.from_coo, gb.Matrix.from_coo, {"nrows": 4, "ncols": 4}
    return {
        "x": V([0, 2, 3], [3.0, -1.0, 0.5], size=4, name="x"),
        "y": V([1, 2], [5.0, 2.0], size=4, name="y"),
        "i": V([0, 1, 3], [7, 2, -3], size=4, name="i"),
        "k": V([0, 2], [4, -2], "INT32", size=4, name="k"),
        "b": V([0, 1], [True, False], size=4, name="b"),
        "c": V([1, 2], [True, True], size=4, name="c"),
        "e": gb.Vector(float, 4, name="e"),
        "A": M([0, 0, 1, 3], [1, 2, 2, 0], [1.0, 4.0, 2.0, 0.5], **size, name="A"),
        "B": M([0, 1, 2], [1, 1, 3], [2.0, 3.0, -6.0], **size, name="B"),
        "N": M([0, 1, 2, 2], [1, 3, 0, 2], [2, -1, 3, 1], **size, name="N"),
        "C": M([0, 1, 3], [1, 0, 3], [True, False, True], **size, name="C"),
        "s": gb.Scalar.from_value(2.5, name="s"),
        "t": gb.Scalar.from_value(3, name="t"),
    }


def world(library, backend):
    objects = their_objects()
    if library is lagpu:
        seen = {}
        objects = {name: converted(x, backend, seen) for name, x in objects.items()}
    return {name: getattr(library, name) for name in NAMES} | {"z": None} | objects


def run(text, library, backend=None):
    """Return the type of `z` and all values after a line; or the error's text."""
    names = world(library, backend)
    refusal = LagpuError if library is lagpu else Exception
    try:
        exec(text, names)
    except refusal as error:
        return str(error)  # with the error itself its frames would stay
    z = names["z"]
    return [None if z is None else z.dtype.name, *(plain(names[n]) for n in ("z", *OBJECTS))]


OBJECTS = tuple(their_objects())


def type_of(text, names):
    """Return the type of an operand of lagpu by its text; that of a number is Python's."""
    try:
        found = eval(text, names)
        found = found.new() if hasattr(found, "new") else found
    except LagpuError:
        return "refused"
    return found.dtype.name if hasattr(found, "dtype") else type(found).__name__


def check(line):
    """Both libraries give one answer, both refuse, or a row of docs/design/types.md says why."""
    found, expected = run(line.text, lagpu, "cpu"), run(line.text, gb)
    refused = [isinstance(x, str) for x in (found, expected)]
    if all(refused) or (not any(refused) and same(found, expected)):
        return
    names = world(lagpu, "cpu")
    steps = [Typed(s.what, s.op, tuple(type_of(x, names) for x in s.operands)) for s in line.steps]
    assert rows(steps), (line.text, found, expected, steps)


@pytest.mark.parametrize("count", picked([300, 20_000], 300, rest="exhaustive"))
@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning",  # of NumPy and Numba in python-graphblas
    "ignore::pytest.PytestUnraisableExceptionWarning",  # it divides by 0 in a callback of C
)
def test_a_drawn_line_means_the_same_in_both_libraries(count):
    quiet = hypothesis.settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    with np.errstate(all="ignore"):
        quiet(hypothesis.given(lines())(check))()


@pytest.mark.parametrize(
    "text",
    [
        "z = semiring.min_plus(A @ A @ A).new()",
        "x @= A",
        "z = (x - i).new()",
        "A(~B.S, binary.plus, replace) << A @ B",
    ],
)
def test_the_comparison_sees_a_difference(text, monkeypatch):
    """Of a line that no row covers; without the comparison's own text nothing is equal."""
    assert same(run(text, lagpu, "cpu"), run(text, gb))
    other = text.replace("A @ A @ A", "A @ (A @ A).new()").replace("x @= A", "x @= B")
    other = other.replace("x - i", "i - x").replace("~B.S", "~A.S")
    assert not same(run(other, lagpu, "cpu"), run(text, gb))


def test_a_rule_is_a_row_of_the_page():
    table = [line.split("|")[1].strip() for line in TYPES.read_text().splitlines() if "|" in line]
    assert [row for row in RULES if row not in table] == []
