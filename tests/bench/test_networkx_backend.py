"""`docs/benchmarks/networkx_backend.py` compares every result with that of NetworkX."""

import importlib.util
import itertools
from pathlib import Path

import pytest

nx = pytest.importorskip("networkx")
FILE = Path(__file__).parents[2] / "docs" / "benchmarks" / "networkx_backend.py"
spec = importlib.util.spec_from_file_location("networkx_backend", FILE)
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)


def test_each_call_has_a_row(monkeypatch):
    monkeypatch.setattr(program, "TURNS", 1)
    rows = program.measured("karate", ["cpu"])
    assert [row["call"] for row in rows] == list(program.calls_on(nx.karate_club_graph()))
    assert all(row["networkx_s"] > 0 < row["cpu_s"] for row in rows)


def test_a_result_that_differs_ends_the_measurement(monkeypatch):
    monkeypatch.setattr(program, "TURNS", 1)
    names = itertools.count()
    monkeypatch.setattr(program, "calls_on", lambda _: {"drawn": lambda G, b: next(names)})
    with pytest.raises(SystemExit, match="drawn on cpu differs from NetworkX on karate"):
        program.measured("karate", ["cpu"])


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        ({1: 0.5}, {1: 0.50000001}, True),
        ({1: 0.5}, {1: 0.6}, False),
        ({1: 0.5}, {2: 0.5}, False),
        ([(1, 2.0)], [(1, 2.0)], True),
        ([1], [1, 2], False),
        ({frozenset({1})}, {frozenset({2})}, False),
    ],
)
def test_what_agrees(found, wanted, same):
    assert program.agree("", None, found, wanted) is same


def test_communities_agree_if_they_are_as_good():
    G = nx.connected_caveman_graph(4, 5)
    good = [set(range(5 * k, 5 * k + 5)) for k in range(4)]
    assert program.agree("louvain_communities", G, good[::-1], good)
    assert not program.agree("louvain_communities", G, [set(G)], good)
