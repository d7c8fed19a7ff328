"""The graphs of the zoo are what their names say; a ratio is the worst root's."""

import itertools

import numpy as np

from lagpu import algorithms
from lagpu.bench import zoo


def graphs(family, s=8):
    return [zoo.graph(family, made, "cpu") for made in zoo.zoo(s)[family]]


def degrees(A):
    return np.diff(A.to_csc()[0])


def test_there_are_graphs_of_all_families():
    made = {name: graphs(name) for name in zoo.zoo(8)}
    assert len(made) > 15
    assert sum(map(len, made.values())) > 50
    assert all(A.nvals for found in made.values() for A in found)
    assert {name for name, found in made.items() if not found[0].is_symmetric} == {"webs"}


def test_graphs_have_the_shape_of_their_family():
    for A in graphs("hypercubes"):
        assert set(degrees(A)) == {np.log2(A.nrows)}
    assert set(degrees(graphs("rings")[0])) == {32}
    hub_of, *_, chained = graphs("cliques")
    assert degrees(hub_of)[-1] == hub_of.nrows // 32
    assert algorithms.bfs_levels(chained, 0).to_coo()[1].max() == 2 * chained.nrows // 16 - 1
    assert [A.nvals // 2 == A.nrows - 1 for A in graphs("trees")] == [True] * 4
    assert all(algorithms.is_bipartite(A) for A in graphs("bipartite"))
    squares, cubes = graphs("meshes")[2:]
    assert (degrees(squares).max(), degrees(cubes).max()) == (8, 26)
    assert (degrees(squares) == 3).sum() == 4
    for A in graphs("disconnected"):
        assert len(np.unique(algorithms.connected_components(A).to_dense(-1))) > 1


def test_the_ratio_is_that_of_the_worst_root(monkeypatch):
    monkeypatch.setattr(zoo, "zoo", lambda s: {"stars": [f"star:{1 << s}"]})
    monkeypatch.setattr(zoo, "POLICIES", ("auto", "beamer:alpha=0", "beamer:alpha=1e9,beta=1e9"))
    report, _ = zoo.run("zoo:10", "sim", ["levels"], 2, *[lambda _: None] * 3)
    (row,) = rows = report["rows"]
    assert report["scale"] == 10
    assert all(len(cost) == 2 for cost in row["costs"].values())
    assert row["ratio"] == max(
        a / b
        for cost in row["costs"].values()
        for a, b in zip(row["costs"]["auto"], cost, strict=True)
    )
    assert zoo.table(rows).row_count == 1


def test_the_smaller_of_two_rounds_counts(monkeypatch):
    """A time may be half as long again by chance, so policies are timed by turns, twice."""
    costs = itertools.count(100, -1)
    monkeypatch.setattr(zoo.Clock, "has_device", True)
    monkeypatch.setattr(zoo, "cost_of", lambda *_: float(next(costs)))
    A = zoo.graph("rings", zoo.zoo(8)["rings"][0], "sim")
    (row,) = zoo.measured("ring", A, ("levels",), 1, 1)
    assert row["costs"] == {name: [94.0 - k] for k, name in enumerate(zoo.POLICIES)}
