"""Tests of results that several programs find."""

from __future__ import annotations

import numpy as np

from lagpu.bench.harness import Agreement
from lagpu.errors import CheckFailed


def test_equal_results_are_proved_once() -> None:
    agreement, proofs = Agreement(), []

    def prove(root: int, output: str, indices: object, values: object) -> str:
        result = (np.array(indices), np.array(values))
        return agreement.prove(root, output, result, lambda: proofs.append(output))

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


def test_a_result_that_fails_is_refused_each_time() -> None:
    agreement, result = Agreement(), (np.array([0]), np.array([1]))

    def fail() -> None:
        raise CheckFailed("check_levels: level[0] is 1, not 0.")

    for _ in range(2):
        assert agreement.prove(0, "levels", result, fail) == "check_levels: level[0] is 1, not 0."


def test_results_of_many_parts_are_distinguished_by_each_part(monkeypatch) -> None:
    monkeypatch.setattr("lagpu.bench.harness._PART", 4)
    vertices = np.arange(10)
    for changed in vertices:
        agreement = Agreement()
        assert not agreement.compare(0, "levels", "a", vertices, vertices)
        assert not agreement.compare(0, "levels", "b", vertices, vertices)
        other = np.where(vertices == changed, 99, vertices)
        assert "levels from vertex 0" in agreement.compare(0, "levels", "c", vertices, other)
