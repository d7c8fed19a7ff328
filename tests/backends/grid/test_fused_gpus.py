"""Searches of pieces on GPUs: of this host, or of one that they share."""

import numpy as np
import pytest
from pieces_of_search import PIECES, RUNS, Paths, Search, edges_of, gpu_grid, is_tree, matrix

import lagpu
from lagpu import algorithms
from lagpu.errors import GridTimeout

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize(("kind", "n"), [("path", 400), ("both ways", 3000), ("hubs", 60_000)])
def test_levels_and_parents(kind, n, pieces):
    place = gpu_grid(pieces)
    i, j = edges_of(kind, n)
    A, B = (matrix(n, i, j, x) for x in (place, "cpu"))
    for source in (0, n - 1, int(i[0])):
        want = algorithms.bfs_levels(B, source).to_dense(-1)
        levels, parents = algorithms.bfs(A, source)
        assert place.last_loop.startswith(RUNS)
        assert levels.to_dense(-1).tolist() == want.tolist()
        assert is_tree(i, j, want, parents.to_dense(-1), source)


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("n", [90, 5000])
def test_path_counts(n, pieces):
    mine, theirs = Paths(gpu_grid(pieces), n), Paths("cpu", n)
    mine.run()
    theirs.run()
    assert gpu_grid(pieces).last_loop.startswith(RUNS)
    assert mine.state() == theirs.state()


def test_a_trace_has_a_row_a_level():
    found = []
    for place in (gpu_grid(2), lagpu.backends.get("gpu")):
        search = Search(place, 5000)
        with lagpu.trace() as traced:
            search.run()
        found.append([(r.level, r.method, r.nvals_in, r.nvals_out) for r in traced.rows])
    assert found[0] == found[1]
    assert len({level for level, *_ in found[0]}) > 3


def test_a_piece_that_never_comes(monkeypatch):
    place = gpu_grid(2)
    search = Search(place, 90)
    search.run()
    search = Search(place, 90)
    device = type(place.pieces.places[0].device)
    run = device.run_together
    monkeypatch.setattr("lagpu.backends.gpu.device.protocol.PATIENCE", 10**8)
    with monkeypatch.context() as patch:
        patch.setattr(device, "run_together", lambda self, launches: run(self, launches[:1]))
        with pytest.raises(GridTimeout, match="heard nothing of piece 1 in turn 0"):
            search.run()
    assert search.state() == search.before
    search.run()
    assert np.array_equal(search.state()[0][11:12], [0])
