"""Random graphs made part by part: those of the host, without the whole of them anywhere."""

import numpy as np
import pytest

from lagpu import backends, generators
from lagpu.backends.override import overridden
from lagpu.errors import InvalidValue, OutOfMemory
from lagpu.generators import parts

GRIDS = [
    "grid:1:cpu",
    "grid:3:cpu",
    "grid:2x3:cpu",
    "grid:3-random:cpu",
    "grid:2x3-degree:cpu",
    "grid:2:sim",
]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("make", [generators.kronecker, generators.uniform])
def test_the_graph_is_that_of_the_host(grid, make, monkeypatch):
    monkeypatch.setattr(parts, "_CHUNK_ON_HOST", 100)
    for scale, edge_factor, seed in ((0, 1, 1), (1, 3, 1), (6, 3, 2), (8, 4, 5)):
        A = make(scale, edge_factor, seed=seed, backend=grid)
        expected = make(scale, edge_factor, seed=seed, backend="cpu")
        assert A.is_symmetric
        assert A.data.symmetric is True  # known, so that no operation has to find out
        for found, wanted in zip(A.to_csc(), expected.to_csc(), strict=True):
            assert np.array_equal(found, wanted)


def test_no_piece_has_the_whole():
    A = generators.kronecker(8, backend="grid:4:cpu")
    places = A.backend.pieces.places
    counts = [place.nvals(part) for part, place in zip(A.data.parts, places, strict=True)]
    assert sum(counts) == A.nvals
    assert max(counts) < A.nvals / 2


@pytest.mark.parametrize("grid", GRIDS)
def test_entries_travel_to_the_pieces_that_own_them(grid):
    """As often as they are given, by their positions in the piece."""
    pieces = backends.get(grid).pieces
    n, count = 11, pieces.engine.size
    rows, cols = np.random.default_rng(7).integers(0, n, (2, 40))
    own = backends.get(grid).capabilities.parts.owned(
        lambda _, piece: (rows[piece::count], cols[piece::count]), (n, n)
    )
    layout = pieces.layout((n, n))
    assert sorted(own) == list(range(count))
    for piece, found in own.items():
        mine = layout.owner(rows, cols) == piece
        wanted = layout.position(rows[mine], cols[mine])
        assert sorted(zip(*found, strict=True)) == sorted(zip(*wanted, strict=True))


def test_sizes_are_checked():
    with pytest.raises(InvalidValue, match="scale 32"):
        generators.kronecker(32, backend="grid:2:cpu")
    with pytest.raises(OutOfMemory, match="uniform"):
        generators.uniform(31, 2**20, backend="grid:2:cpu")


def test_a_backend_that_chooses_kernels_has_parts_too():
    place = overridden(backends.get("grid:2:sim"), "pull_scalar", None)
    A = generators.kronecker(5, backend=place)
    assert A.backend is place
    assert A.to("cpu").isequal(generators.kronecker(5, backend="cpu"))
