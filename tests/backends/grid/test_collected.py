"""What a piece needs of a vector is put together on its device, from bits or lists."""

import numpy as np
import pytest
from pieces_of_search import gpu_grid, sims

from lagpu import FP64, INT32, Matrix, Vector, backends, binary, semiring
from lagpu.backends import grid
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.ops import strategies
from lagpu.backends.grid.exchange import collected
from lagpu.backends.grid.partition import Need, block_cyclic

SIZES = [1, 33, 1000, 5000]


def entries(n, count, iso, seed=0):
    rng = np.random.default_rng(seed)
    at = np.sort(rng.choice(n, min(count, n), replace=False))
    return at, 2.0 if iso else rng.integers(1, 9, len(at)) * 1.0


def edges(n):
    i, j, w = np.random.default_rng(n).integers(0, n, (3, 4 * n))
    return i, j, w % 5 + 1.0


def multiplied(place, n, at, values):
    """Return u A and Q A, for the vector of some entries and a matrix of three rows of them."""
    i, j, w = edges(n)
    A = Matrix.from_coo(i, j, w, nrows=n, ncols=n, dup_op=binary.plus, backend=place)
    u = Vector.from_coo(at, values, size=n, dtype=FP64, backend=place)
    rows = np.arange(len(at)) % 3
    Q = Matrix.from_coo(rows, at, values, nrows=3, ncols=n, dtype=FP64, backend=place)
    r, C = Vector(FP64, n, backend=place), Matrix(FP64, 3, n, backend=place)
    r << semiring.plus_times(u @ A)
    C << semiring.plus_times(Q @ A)
    return [x.tolist() for x in (*r.to_coo(), *C.to_coo())]


@pytest.mark.each_value
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("place", ["grid:3:sim", "grid:2x2:sim", "grid:2x2-random:sim"])
def test_products_are_those_of_cpu(place, n):
    for count in (0, 1, n // 20, n):
        for iso in (True, False):
            given = entries(n, count, iso)
            assert multiplied(place, n, *given) == multiplied("cpu", n, *given)


@pytest.mark.parametrize("iso", [True, False])
@pytest.mark.parametrize("pieces", [2, 3])
def test_a_full_vector_is_full_on_every_piece(pieces, iso, monkeypatch):
    """So sums of all entries have their kernel; of one number nothing is sent."""
    n, found, bind = 5000, [], strategies._bind_sums
    monkeypatch.setattr(
        strategies, "_bind_sums", lambda A, x, job: found.append(job.sums) or bind(A, x, job)
    )
    i, j = np.unique(edges(n)[:2], axis=1).astype(int)
    place, values = sims(pieces), 1.0 if iso else np.arange(n) + 1.0
    A, w = (
        Matrix.from_coo(i, j, True, nrows=n, ncols=n, backend=place),
        Vector(FP64, n, backend=place),
    )
    u = Vector.from_coo(np.arange(n), values, size=n, dtype=FP64, like=A)
    sent = place.pieces.engine.sent
    w << semiring.plus_times(u @ A)
    assert found == ["equal" if iso else "all"] * pieces
    assert (place.pieces.engine.sent > sent) != iso
    count = np.bincount(i, minlength=n)
    assert w.reduce("plus").new().value == (count * values).sum()


@pytest.mark.gpu
@pytest.mark.parametrize("pieces", [2, 3])
def test_products_on_gpus(pieces):
    for n in SIZES[1:]:
        for count in (1, n // 20, n):
            given = entries(n, count, count == 1)
            assert multiplied(gpu_grid(pieces), n, *given) == multiplied("cpu", n, *given)


def product(place, n, u):
    i, j, _ = edges(n)
    A = Matrix.from_coo(i, j, 1.0, nrows=n, ncols=n, dup_op=binary.any, backend=place)
    r = Vector(FP64, n, backend=place)
    return lambda: r << semiring.plus_first(u @ A)


@pytest.mark.parametrize("forms", ["full", "list", "both"])
def test_nothing_goes_by_way_of_the_host(forms, monkeypatch):
    n, place = 5000, sims(2)
    u = Vector(FP64, n, backend=place)
    if forms == "full":
        u << 2.0
    else:
        u[9] = 3.0
    if forms == "both":
        first, second = map(place.pieces.partition(n).own, range(2))
        u = Vector.from_coo(first, first * 1.0, size=n, backend=place)
        u[int(second[1])] = 3.0
        assert [part.form for part in u.data.parts] == ["full", "sparse"]
    run = product(place, n, u)
    with monkeypatch.context() as patch:
        patch.setattr(SimDevice, "_to_host", lambda *_: pytest.fail("a copy by the host"))
        run()


@pytest.mark.parametrize(
    ("count", "iso", "width"), [(5000, True, 0), (5000, False, 8), (40, True, 0), (40, False, 8)]
)
def test_the_shorter_form_is_sent(count, iso, width):
    """Bits and a value for each index, or an index of 8 bytes and a value for each entry.

    Of one number at every index nothing is sent.
    """
    n, place = 5000, sims(2)
    at, values = entries(n, count, iso)
    u = Vector.from_coo(at, values, size=n, dtype=FP64, backend=place)
    run, engine = product(place, n, u), place.pieces.engine
    by = place.pieces.partition(n)
    before = engine.sent
    run()
    shorter = []
    for p in range(2):
        own = int(np.sum(by.owner(at) == p))
        bits = 4 * -(-by.count(p) // 32) + width * by.count(p)
        shorter.append(min(own * (8 + width), bits))
    assert engine.sent - before == (0 if count == n and iso else sum(shorter))


N = 5000
FIRST, SECOND = (block_cyclic(N, 2).own(p) for p in range(2))
PARTS = {
    "one value each that differ": ((FIRST[7:8], 3.0), (SECOND[9:10], 5.0)),
    "the same value": ((FIRST[7:8], 3.0), (SECOND[9:10], 3.0)),
    "one is empty": ((FIRST[7:8], 3.0), (SECOND[:0], 0.0)),
    "one value and bits": ((FIRST[7:8], 3.0), (SECOND[1:], SECOND[1:] / 2)),
    "one value and a list": ((FIRST[7:8], 3.0), (SECOND[1:90:3], SECOND[1:90:3] / 2)),
    "bits of one value and a list": ((FIRST, 2.0), (SECOND[1:90:3], SECOND[1:90:3] / 2)),
}


@pytest.mark.parametrize("parts", PARTS)
def test_each_piece_has_the_entries_of_all(parts):
    place, parts = sims(2), PARTS[parts]
    vectors = [Vector.from_coo(*part, FP64, size=N, backend=place).data.parts for part in parts]
    u = place.pieces.handle([vectors[p][p] for p in range(2)], FP64, (N,))
    rows = place.pieces.layout((N, N)).dims[0]
    at = np.concatenate([at for at, _ in parts])
    values = np.concatenate([np.broadcast_to(x, at.shape) for at, x in parts])
    order = np.argsort(at)
    found_by_all = collected(place.pieces, u, Need(rows, (0, 0)))
    for there, v in zip(place.pieces.places, found_by_all, strict=True):
        indices, found = there.vector_to_coo(v)
        assert indices.tolist() == at[order].tolist()
        assert found.tolist() == values[order].tolist()
        assert v.nvals == len(at)
        assert (v.values is None) == (len(set(values.tolist())) == 1)


def test_pieces_on_one_device_and_on_cpu_are_as_ever():
    one = backends.get("sim")
    twice = grid.make("twice", [one, one])
    mixed = grid.make("mixed", [one, backends.get("cpu")])
    given = entries(257, 60, False)
    want = multiplied("cpu", 257, *given)
    assert multiplied(twice, 257, *given) == want
    assert not mixed.pieces.engine.between_devices
    assert multiplied(mixed, 257, *given) == want


def test_an_error_on_the_way_leaves_all_as_it_was(monkeypatch):
    n, place = 257, grid.make("two", [GpuBackend(f"s{p}", SimDevice()) for p in range(2)])
    u, r = (Vector.from_coo(*entries(n, 60, False), size=n, backend=place) for _ in range(2))
    A = Matrix.from_coo(*edges(n), nrows=n, ncols=n, dup_op=binary.any, backend=place)
    before = r.to_dense(0).tolist()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SimDevice, "fetched", interrupted)
        with pytest.raises(KeyboardInterrupt):
            r(accum=binary.plus) << semiring.plus_first(u @ A)
    assert r.to_dense(0).tolist() == before
    assert Vector(INT32, 3, backend=place).nvals == 0
