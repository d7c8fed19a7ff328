"""Pieces of a row receive the mask, and then neither find nor send what it leaves out."""

import itertools

import numpy as np
import pytest
from grids import own_grid, plain
from masked import written
from samples import sampled

import lagpu
from lagpu import INT64, Matrix, Vector, binary, semiring
from lagpu.backends.grid import exchange
from lagpu.backends.grid.exchange import pays
from lagpu.operations import Multiply, ReduceRows

GRIDS = [(1, 2), (1, 3), (2, 2), (2, 3), (3, 2), (3, 3)]
SIZES = [1, 5, 33, 200]
ORDERS = [None, "random", "degree"]
WHO = ["all", "none", "some", "as it pays"]
KINDS = ["empty", "full", "sparse", "dense"]


@pytest.fixture(params=WHO)
def sent_by(request, monkeypatch):
    """Let all owners send their masks, or none, or every second one."""
    turns = itertools.count()
    rule = {
        "all": lambda *_: True,
        "none": lambda *_: False,
        "some": lambda *_: next(turns) % 2 == 0,
        "as it pays": pays,
    }
    monkeypatch.setattr(exchange, "pays", rule[request.param])
    return request.param


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("grid", "order", "n", "kind"),
    sampled(list(itertools.product(GRIDS, ORDERS, SIZES, KINDS)), 19),
)
def test_as_on_cpu(grid, order, n, kind, sent_by):
    place, _ = own_grid(grid, order)
    assert plain(written(place, n, kind)) == plain(written("cpu", n, kind))


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_as_on_cpu_in_pieces_on_devices(kind, monkeypatch):
    monkeypatch.setattr(exchange, "pays", lambda *_: True)
    assert plain(written("grid:1x2:sim", 33, kind)) == plain(written("cpu", 33, kind))


def graph(place, n=900):
    i, j = np.random.default_rng(1).integers(0, n, (2, 20 * n))
    return Matrix.from_coo(i, j, 1, INT64, nrows=n, ncols=n, dup_op=binary.any, backend=place)


@pytest.mark.parametrize("complement", [False, True])
@pytest.mark.parametrize("name", ["u @ A", "A @ u", "sums"])
def test_a_piece_finds_nothing_that_the_mask_leaves_out(name, complement, monkeypatch):
    place, _ = own_grid((2, 3))
    A, n, found = graph(place), 900, []
    u = Vector.from_dense(np.arange(n), backend=place)
    at = np.flatnonzero(np.random.default_rng(2).random(n) < 0.7)
    mask, w = Vector.from_coo(at, 1, size=n, backend=place), Vector(INT64, n, backend=place)
    run = place.pieces.execute

    def watched(k, statement):
        run(k, statement)
        if isinstance(statement.operation, (Multiply, ReduceRows)):
            found.append(place.pieces.places[k].vector_to_coo(statement.out)[0])

    monkeypatch.setattr(place.pieces, "execute", watched)
    what = {
        "u @ A": (lambda: semiring.plus_times(u @ A), 1),
        "A @ u": (lambda: semiring.plus_times(A @ u), 0),
        "sums": (lambda: A.reduce_rowwise("plus"), 0),
    }
    expression, dim = what[name]
    w(~mask.S if complement else mask.S) << expression()
    assert len(found) == 6
    layout, kept = place.pieces.layout((n, n)), set(range(n)) ^ set(at.tolist())
    for p, where in enumerate(found):
        index = layout.dims[dim].index(layout.parts(p)[dim], where)
        assert len(index)
        assert not set(index.tolist()) & (set(at.tolist()) if complement else kept)


def bytes_of_search(search, grid):
    place, _ = own_grid(grid)
    A = lagpu.generators.kronecker(9, backend=place)
    before = place.pieces.engine.sent
    search(A, 1)
    return place.pieces.engine.sent - before


@pytest.mark.parametrize("grid", [(2, 3), (3, 2)])
def test_a_search_sends_less_where_masks_are_sent(grid, monkeypatch):
    """Parents have values; levels alone are sent as a bitmap, and a mask would be as long."""
    parents, levels = lagpu.algorithms.bfs, lagpu.algorithms.bfs_levels
    with_masks = bytes_of_search(parents, grid), bytes_of_search(levels, grid)
    monkeypatch.setattr(exchange, "pays", lambda *_: False)
    without = bytes_of_search(parents, grid), bytes_of_search(levels, grid)
    assert with_masks[0] < 0.9 * without[0]
    assert with_masks[1] <= without[1]


@pytest.mark.parametrize(
    ("search", "times"), [(lagpu.algorithms.bfs_levels, 8), (lagpu.algorithms.bfs, 1.8)]
)
@pytest.mark.parametrize("grid", [(2, 3), (3, 1)])
def test_a_search_sends_less_than_lists(search, times, grid, monkeypatch):
    shorter = bytes_of_search(search, grid)
    monkeypatch.setattr(exchange, "to_message", lambda _, at, values, form="": (*at, values))
    monkeypatch.setattr(exchange, "from_message", lambda _, message: message)
    assert times * shorter < bytes_of_search(search, grid)


def test_a_mask_costs_nothing_where_it_would_not_pay():
    """A path has one vertex a level; the bits of what it has visited are many more bytes."""
    n, sent = 2000, []
    for complement in (False, True):
        place, _ = own_grid((2, 3))
        A = Matrix.from_coo(np.arange(n - 1), np.arange(1, n), 1, nrows=n, ncols=n, backend=place)
        q = Vector.from_coo([7], 1, size=n, backend=place)
        seen = Vector.from_coo(np.arange(0, n, 2), 1, size=n, backend=place)
        w, before = Vector(INT64, n, backend=place), place.pieces.engine.sent
        w(~seen.S if complement else seen.S) << semiring.plus_times(q @ A)
        sent.append(place.pieces.engine.sent - before)
    assert max(sent) <= 12 + 2 * 12  # the vertex to its column, and the next one to its owner


@pytest.mark.parametrize("width", [0, 1, 8])
def test_when_a_mask_pays(width):
    assert not pays(500, 0, 1000, 1e6, width)  # nothing is left out
    assert not pays(500, 500, 1000, 0.0, width)  # nothing is found
    assert not pays(500, 500, 1000, 4.0, width)  # bits are longer than the results
    assert pays(3, 990, 1000, 300.0, width)
    assert pays(10, 990, 1000, 1e6, width)  # no more than all places are found
    if width:
        assert pays(500, 500, 1000, 300.0, width)
    else:
        assert not pays(500, 500, 1000, 300.0, width)  # bits for bits
