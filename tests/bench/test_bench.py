"""The measurements: their records, and how path counts are proved."""

from __future__ import annotations

import numpy as np
import pytest

from lagpu import algorithms, generators
from lagpu.bench import suite
from lagpu.bench.graphs import HostGraph
from lagpu.errors import InvalidValue, OutOfMemory
from lagpu.host.files import write_json


def test_a_record_that_cannot_be_written(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(InvalidValue, match=r"bench: .*taken"):
        write_json({}, tmp_path / "taken", "bench")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_path_counts_are_proved_with_levels_that_are_proved_too(monkeypatch):
    A = generators.path(4, backend="cpu")
    tested = suite.Tested("path", HostGraph.of(A), [0])
    monkeypatch.setattr("lagpu.check.graph.Slices.search", None)  # no search on the host
    assert not suite.searched(tested, A, "eager", "paths").refusal
    wrong = algorithms.bfs_levels(A, 3)
    found = tested.prove("paths", np.arange(4), np.array([1, 1, 1, 2]), lambda _root: wrong)
    assert "level[0] is 3" in found


def test_path_counts_are_proved_where_levels_do_not_fit():
    A = generators.path(4, backend="cpu")
    tested = suite.Tested("path", HostGraph.of(A), [0])

    def levels_of(root):
        raise OutOfMemory("bfs_levels: no memory")

    assert not tested.prove("paths", np.arange(4), np.ones(4, int), levels_of)
    assert "check_paths" in tested.prove("paths", np.arange(4), np.arange(1, 5), levels_of)
