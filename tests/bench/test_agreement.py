"""Tests of results that several programs find."""

from __future__ import annotations

import numpy as np
import pytest

from lagpu import Vector, generators
from lagpu.bench import suite
from lagpu.bench.graphs import HostGraph
from lagpu.errors import CheckFailed


def a_graph(n):
    """Return a path under test."""
    return suite.Tested("path", HostGraph.of(generators.path(n, backend="cpu")), [0])


@pytest.fixture
def proofs(monkeypatch):
    found = []
    for name in suite.PROOFS:
        monkeypatch.setitem(suite.PROOFS, name, lambda *given: found.append(given))
    return found


def test_equal_results_are_proved_once(proofs) -> None:
    tested = a_graph(3)

    def prove(root: int, output: str, indices: object, values: object) -> str:
        tested.roots = [root]
        return tested.prove(output, np.array(indices), np.array(values))

    assert not prove(3, "levels", [0, 2], [1, 0])
    assert not prove(3, "levels", [2, 0], [0, 1])  # in another order
    assert len(proofs) == 1
    for other in (
        (4, "levels", [0, 2], [1, 0]),
        (3, "paths", [0, 2], [1, 0]),
        (3, "levels", [0, 2], [1, 2]),
        (3, "levels", [0, 1], [1, 0]),
        (3, "levels", [0, 2], [1.0, 0.0]),
        (3, "levels", [0, 2], [1.25, 0.0]),
        (3, "levels", [0, 2], [0, 0]),
        (3, "levels", [0, 2], [0.0, 0.0]),  # the same bytes
    ):
        before = len(proofs)
        assert not prove(*other)
        assert len(proofs) == before + 1, other


def test_a_result_that_fails_is_refused_each_time(monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise CheckFailed("check_levels: level[0] is 1, not 0.")

    monkeypatch.setitem(suite.PROOFS, "bfs_levels", fail)
    tested = a_graph(1)
    for _ in range(2):
        found = tested.prove("levels", np.array([0]), np.array([1]))
        assert found == "check_levels: level[0] is 1, not 0."


def test_results_that_differ_anywhere_are_proved(proofs) -> None:
    vertices, tested = np.arange(10), a_graph(10)
    for kind in (np.int32, np.float64):
        for changed in (-1, *vertices):
            values = np.where(vertices == changed, 99, vertices).astype(kind)
            tested.prove("levels", vertices, values)
    assert len(proofs) == 22


@pytest.mark.parametrize("name", ["sim", "grid:1x2:cpu"])
def test_sums_are_those_of_the_host_wherever_a_result_is(name) -> None:
    for output in ("levels", "parents"):
        tested = a_graph(9)
        for indices, values in (([3, 0, 2], [5, 1, 8]), ([], [])):
            found = np.array(indices, int), np.array(values, int)
            v = Vector.from_coo(*found, size=9, backend=name)
            there = tested.sums(output, v)
            assert there == tested.sums(output, found)
            numbers = tested._numbers[found[0]]
            wanted = {"vertices reached": numbers.sum(), "levels": (numbers * found[1]).sum()}
            assert there == {what: wanted[what] for what in there}
            assert ("levels" in there) == (output == "levels")


def test_a_result_that_differs_at_one_vertex_is_seen() -> None:
    vertices = np.arange(10)
    tested = a_graph(11)

    def differs(output, indices, values):
        return tested.compare(0, output, "b", (indices, values))

    assert not differs("levels", vertices, vertices)
    assert not differs("levels", vertices[::-1], vertices[::-1])
    assert not differs("parents", vertices, vertices[::-1])
    for changed in vertices:
        other = np.where(vertices == changed, 10, vertices)
        assert "levels from vertex 0" in differs("levels", vertices, other)
        assert "vertices reached from" in differs("parents", other, vertices)
        assert "vertices reached from" in differs(
            "parents", np.delete(vertices, changed), other[:9]
        )
