"""Indices in the order of degrees: the first matrix of a size sets it, and no result shows it.

The locks of all places are taken in one order.
"""

import sys
import threading

import numpy as np
import pytest
from grids import Few, own_grid
from pieces_of_search import sims
from ranks import SECONDS
from samples import sampled
from test_backend import PROGRAMS, plain

import lagpu
from lagpu import INT32, Matrix, Vector, backends
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.grid import GridBackend, make
from lagpu.backends.grid.comm import LocalEngine
from lagpu.errors import BackendUnavailable, OutOfMemory


@pytest.mark.parametrize(
    ("pieces", "n", "name"),
    sampled([(p, n, k) for p in (1, 3, (2, 3)) for n in (2, 33, 65) for k in PROGRAMS], 5),
)
def test_as_on_cpu_by_degree(name, pieces, n):
    wanted = plain(PROGRAMS[name](Few("cpu", n)))
    place = own_grid(pieces, "degree")[0]
    assert plain(PROGRAMS[name](Few(place, n))) == wanted
    assert not place.pieces.partition(n).rises


def star(place, hub, n=9, **shape):
    """A graph whose vertex `hub` has most edges, and the last one none."""
    i = [v for v in range(n - 1) if v != hub]
    return Matrix.from_coo(i, [hub] * len(i), backend=place, nrows=n, ncols=n)


@pytest.mark.parametrize("pieces", [3, (2, 3)])
def test_the_first_matrix_of_a_size_gives_its_order(pieces):
    place = own_grid(pieces, "degree")[0]

    def first(n=9):
        return place.pieces.partition(n).index(0, 0), place.pieces.partition(n).rises

    v = Vector.from_coo([2], [5], INT32, size=9, backend=place)
    A = star(place, 4)
    assert first() == (0, True)  # as v was there
    del v, A
    A = star(place, 4)
    assert first() == (4, False)
    B, w = star(place, 7), Vector(INT32, 9, backend=place)
    w[7] = 3
    assert first() == (4, False)  # as A is there
    assert A.to_coo()[1].tolist() == [4] * 7
    assert B.to_coo()[1].tolist() == [7] * 7
    assert w.to_coo()[0].tolist() == [7]
    del A, B
    assert star(place, 6).nvals == 7
    assert first() == (4, False)  # as w is there
    del w
    C = star(place, 6)
    assert first() == (6, False)
    assert C.to_coo()[1].tolist() == [6] * 7
    Matrix.from_coo([0], [3], backend=place, nrows=2, ncols=4)
    assert first(2) == (0, True)  # not square


def test_a_matrix_stays_known_to_be_symmetric():
    place = own_grid(2, "degree")[0]
    assert lagpu.generators.kronecker(5, backend=place).data.symmetric is True


# ------------------------------------------------------------------------------ new vectors
@pytest.mark.parametrize("order", [None, "random", "degree"])
@pytest.mark.parametrize("pieces", [1, 2, 3])
@pytest.mark.parametrize("looked", [False, True])
def test_the_entries_of_a_new_vector(pieces, order, looked):
    """Whether its parts are there before its entries or not."""
    v = Vector(INT32, 65, backend=own_grid(pieces, order)[0])
    for i, x in ((40, 3), (40, 5), (2, 7), (64, 9)):
        assert not looked or len(v.data.parts) == pieces
        v[i] = x
        assert v.get(i) == x
    w = v.dup()
    del v[40]
    assert (v.nvals, [x.tolist() for x in v.to_coo()]) == (2, [[2, 64], [7, 9]])
    assert (w.nvals, w.get(40)) == (3, 5)
    v.clear()
    assert v.nvals == 0
    v[1] = 4
    u = v.dup()
    v[3] = 6
    assert (u.nvals, v.nvals, u.get(1), v.get(3)) == (1, 2, 4, 6)


def test_a_large_vector_is_made_at_once(monkeypatch):
    place = sims(2)
    for piece in place.pieces.places:
        monkeypatch.setattr(piece, "large", 16)
    place = make("small", place.pieces.places)
    monkeypatch.setattr(SimDevice, "free_bytes", lambda self: 100)
    monkeypatch.setattr(SimDevice, "pooled_bytes", lambda self: 0)
    assert Vector(INT32, 15, backend=place).nvals == 0
    with pytest.raises(OutOfMemory, match="Vector: needs"):
        Vector(INT32, 100, backend=place)


# ------------------------------------------------------------------------------------- locks
class Noting:
    """A lock that notes who takes it; `taken` may wait for another thread, or raise."""

    def __init__(self, name, noted, taken=lambda name: None):
        self.lock, self.name, self.noted, self.taken = threading.RLock(), name, noted, taken

    def __enter__(self):
        self.taken(self.name)
        self.lock.acquire()
        self.noted.append(self.name)

    def __exit__(self, *error):
        self.lock.release()
        self.noted.append(f"-{self.name}")


def two_places(**taken):
    noted, places = [], (CpuBackend(), CpuBackend())
    for place, name in zip(places, "ab", strict=True):
        place.lock = Noting(name, noted, **taken)
    return places, noted


def grid_of(*places):
    return GridBackend("grid", LocalEngine(len(places)), places)


def test_every_grid_takes_locks_in_one_order():
    (a, b), noted = two_places()
    for places in ((a, b), (b, a), (b, b, a)):
        with grid_of(*places).lock:
            noted.append("in")
    half = len(noted) // 3
    assert noted[:half] == noted[half : 2 * half] == noted[2 * half :]
    assert sorted(noted[:2]) == ["a", "b"]
    assert noted[3:half] == [f"-{name}" for name in reversed(noted[:2])]


def test_a_lock_that_is_refused_leaves_none_taken():
    def refuse(name):
        if refused and name == refused[0]:
            raise BackendUnavailable("forked")

    refused = []
    (a, b), noted = two_places(taken=refuse)
    place = grid_of(a, b)
    with place.lock:
        refused.append(noted[1])
    noted.clear()
    with pytest.raises(BackendUnavailable), place.lock:
        pass
    assert len(noted) == 2
    assert noted[1] == f"-{noted[0]}"


def free(locks):
    """Return which locks another thread can take."""
    found = []

    def take():
        for lock in locks:
            found.append(lock.acquire(blocking=False))
            if found[-1]:
                lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return found


def test_an_interrupt_after_any_call_leaves_no_lock_taken():
    """Python raises it after a call of C, so one of them takes a lock and notes that."""
    place = sims(2)
    locks = [x.lock for x in place.pieces.places]
    for at in range(20):
        calls = []

        def interrupt(frame, event, _arg, calls=calls, at=at):
            if event == "c_return" and frame.f_code.co_name in ("__enter__", "__exit__"):
                calls.append(event)
                if len(calls) - 1 == at:
                    raise KeyboardInterrupt

        sys.setprofile(interrupt)
        try:
            with place.lock:
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        assert free(locks) == [True, True]
        if len(calls) <= at:
            break
    assert 3 < at < 19


def test_grids_of_the_same_devices_in_another_order_do_not_block_each_other():
    devices = [backends.get("sim"), backends.get("sim:1")]
    grids = [make("there", devices), make("back", devices[::-1])]
    met, done = threading.Barrier(2), []

    def search(place):
        A = lagpu.generators.kronecker(4, backend=place)
        met.wait(SECONDS)
        for _ in range(3):
            done.append(lagpu.algorithms.bfs_levels(A, 1).nvals)

    threads = [threading.Thread(target=search, args=(of,), daemon=True) for of in grids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(set(done)) == 1
    assert len(done) == 6


@pytest.mark.parametrize("order", ["random", "degree"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_piece_in_another_order(name, order):
    """It has all indices, but not at their own positions."""
    wanted = plain(PROGRAMS[name](Few("cpu", 33)))
    assert plain(PROGRAMS[name](Few(own_grid(1, order)[0], 33))) == wanted


@pytest.mark.parametrize("count", [0, 1, 60, 1000])
@pytest.mark.parametrize("order", [None, "random"])
@pytest.mark.parametrize("pieces", [1, 3])
def test_entries_of_a_vector_rise(pieces, order, count):
    """Of few of its indices, and of so many that they are put in their places without a sort."""
    rng = np.random.default_rng(count)
    indices, values = rng.permutation(1000)[:count], rng.integers(0, 9, count)
    place = own_grid(pieces, order)[0]
    u = Vector.from_coo(indices, values, INT32, size=1000, backend=place)
    i, x = u.to_coo()
    assert i.tolist() == sorted(indices.tolist())
    assert x.tolist() == values[np.argsort(indices)].tolist()


@pytest.mark.parametrize("order", [None, "random", "degree"])
@pytest.mark.parametrize("pieces", [1, 3, (1, 2), (2, 3)])
def test_each_piece_has_its_columns_and_all_are_put_together(pieces, order):
    place = own_grid(pieces, order)[0]
    A = Few(place, 33).A
    parts = place.capabilities.parts
    rows, cols, values = [], [], []
    for ptr, idx, own, of_row, of_col in parts.columns(A.data).values():
        at = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        rows.append(idx if of_row is None else of_row[idx])
        cols.append(at if of_col is None else of_col[at])
        values.append(own)
    rows, cols, values = map(np.concatenate, (rows, cols, values))
    by_columns = np.lexsort((rows, cols))
    i, j, x = A.to_coo()
    wanted = np.lexsort((i, j))
    for found, want in ((rows, i), (cols, j), (values, x)):
        assert np.array_equal(found[by_columns], want[wanted])

    def counts(dim):
        def of(_home, piece):
            ptr, idx, *_ = parts.columns(A.data)[piece]
            shape = place.pieces.layout(A.shape).shape(piece)
            return np.diff(ptr) if dim else np.bincount(idx, minlength=shape[0])

        return parts.reduced(of, A.shape, dim, np.add)

    assert counts(0).tolist() == np.bincount(i, minlength=33).tolist()
    assert counts(1).tolist() == np.bincount(j, minlength=33).tolist()
