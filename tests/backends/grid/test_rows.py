"""A search on rows and columns of devices is one kernel, by every system and in every form."""

import numpy as np
import pytest
from pieces_of_search import edges_of, fails_at_each_call, gpus_for, is_tree, matrix

import lagpu
from lagpu import BOOL, INT32, Vector, algorithms, loop, semiring
from lagpu.backends import grid
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.protocol import Peers
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.grid import statements, systems
from lagpu.backends.grid.partition import Partition
from lagpu.backends.grid.search import row_slots
from lagpu.backends.guard import overridden
from lagpu.errors import GridTimeout, OutOfMemory
from lagpu.operations import Multiply

GRIDS = [(1, 1), (2, 1), (1, 2), (2, 2), (2, 3)]
POLICIES = [
    "auto",
    *systems.SYSTEMS,
    "kepler:messages=list,parents=sent",
    "bfs2d:ratio=0,messages=bitmap",
    "bfs2d:ratio=0.3,messages=list,share=no",
    "hiragushi:parents=late,alpha=1000,beta=1e9",
]


@pytest.fixture
def host(monkeypatch):
    """Return the products that did not run in one kernel."""
    found, usual = [], statements.LOCALIZED[Multiply]

    def multiply(*args):
        found.append(args)
        return usual(*args)

    monkeypatch.setitem(statements.LOCALIZED, Multiply, multiply)
    return found


def on(shape, policy="auto", order=None, **options):
    count = shape[0] * shape[1]
    places = [GpuBackend(f"s{p}", SimDevice(backend=f"s{p}", **options)) for p in range(count)]
    place = grid.make(f"grid of {shape}", places, shape, order)
    return place if policy == "auto" else overridden(place, None, policy)


def searched(place, kind, n, sources=()):
    i, j = edges_of(kind, n)
    A, B = matrix(n, i, j, place), matrix(n, i, j, "cpu")
    for source in sources or (int(i[0]), n - 1):
        want = algorithms.bfs_levels(B, source).to_dense(-1)
        for _ in range(2):
            found = algorithms.bfs_levels(A, source)
            assert found.to_dense(-1).tolist() == want.tolist()
            assert found.nvals == (want >= 0).sum()
        levels, parents = algorithms.bfs(A, source)
        assert levels.to_dense(-1).tolist() == want.tolist()
        assert is_tree(i, j, want, parents.to_dense(-1), source)


@pytest.mark.each_value
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", GRIDS)
def test_levels_and_parents(shape, policy, host):
    place = on(shape, policy)
    least = 128 * place.pieces.grid[0] * place.pieces.grid[1]  # whole lines of words
    for kind, n in (("hubs", least + 100), ("both ways", 1025), ("path", least + 1)):
        searched(place, kind, n)
    assert host == []


def test_no_piece_sends_while_another_one_still_pulls(host):
    """In one column, where nothing is folded, all wait all the same: the frontier is written."""
    searched(on((2, 1), "bfs2d"), "random", 5000)
    assert host == []


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_threads(seed, host):
    for policy in ("bfs2d", "hiragushi:parents=late"):
        searched(on((2, 2), policy, seed=seed, preempt=1 + seed * 8), "both ways", 1500, (7,))
    assert host == []


@pytest.mark.gpu
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", [(2, 1), (1, 2)])
def test_on_gpus(shape, policy, host):
    places = [GpuBackend("gpu", device) for device in gpus_for(2)]
    place = grid.make(f"grid of {shape}", places, shape)
    place = place if policy == "auto" else overridden(place, None, policy)
    for kind, n in (("hubs", 1500), ("both ways", 20_001), ("path", 800)):
        searched(place, kind, n)
    assert host == []


def searched_backwards(A, excluded, sources):
    """A loop outside of the test, whose text pytest changes: so it would run by statement."""
    levels, marked, frontier = (Vector(kind, A.nrows, like=A) for kind in (INT32, BOOL, BOOL))
    for v in excluded:
        levels[v] = 7
    for v in sources:
        frontier[v] = True
    for depth in loop(until_empty=frontier):
        frontier(~levels.S, replace=True) << semiring.any_pair(A @ frontier)
        levels(frontier.S) << depth
        marked(frontier.S) << frontier
    return levels.to_dense(-1).tolist(), marked.to_coo()[0].tolist(), frontier.nvals


def test_the_other_direction_random_order_and_what_is_excluded(host):
    n = 1400
    i, j = edges_of("hubs", n)
    found = []
    for place in (on((2, 2), order="random"), "cpu"):
        A = matrix(n, i, j, place)
        found.append(searched_backwards(A, (int(i[3]), 5), (n - 1, int(i[0]))))
    assert found[0] == found[1]
    searched(on((2, 2), order="random"), "hubs", n)
    assert host == []


def test_what_the_host_searches(host):
    """Few vertices, and an order that has no words of one owner."""
    for place, n in (
        (on((2, 2), "bfs2d"), 90),
        (on((2, 2), "bfs2d", order="degree"), 1500),
    ):
        searched(place, "both ways", n, (3,))
        assert host
        host.clear()
    place = on((1, 2))
    A = matrix(90, *edges_of("hubs", 90), place)
    algorithms.bfs_levels(A, 3)
    assert "do not fill words" in place.last_loop
    algorithms.count_shortest_paths(matrix(1500, *edges_of("hubs", 1500), place), 3)
    assert "products of a level add up" in place.last_loop


@pytest.mark.parametrize("policy", ["bfs2d", "bfs2d:share=no", "kepler:messages=bitmap"])
@pytest.mark.parametrize("shape", [(2, 1), (1, 2), (2, 3)])
def test_a_trace_counts_entries_and_bytes(shape, policy, host):
    n, (R, C) = 6 * 32 * 8, shape
    i, j = edges_of("both ways", n)
    A, B = matrix(n, i, j, on(shape, policy)), matrix(n, i, j, "cpu")
    with lagpu.trace() as mine:
        algorithms.bfs_levels(A, 7)
    with lagpu.trace(fuse=False) as theirs:
        algorithms.bfs_levels(B, 7)
    rows, others = ([r for r in t.rows if r.direction] for t in (mine, theirs))
    numbers = [[(r.level, r.nvals_in, r.nvals_out) for r in t] for t in (rows, others)]
    assert numbers[0] == numbers[1]
    degrees = np.bincount(np.unique(np.c_[i, j], axis=0)[:, 0], minlength=n)
    levels = algorithms.bfs_levels(B, 7).to_dense(-1)
    bitmap = n // 32 * 4  # bytes of all owners' words together
    assert any(row.phases for row in rows)
    for row in [row for row in rows if "not run" not in row.reason]:
        frontier = degrees[levels == row.level].sum()
        if row.direction == "push":
            assert row.edges == frontier  # each entry by one piece
        sent = {phase.name: {s.form: s.bytes for s in phase.sent} for phase in row.phases}
        lists = policy != "kepler:messages=bitmap" and frontier <= n // (32 * R * C)
        if lists:
            assert sent["fold"].get("list", 0) <= 4 * frontier
            assert sent["expand"].get("list", 0) == 4 * row.nvals_out * (R - 1)
        else:
            assert sent["fold"].get("bitmap", 0) == bitmap * (C - 1)
            assert sent["expand"].get("bitmap", 0) == bitmap * (R - 1)
        shares = policy == "bfs2d" and C > 1 and not lists
        assert sent.get("share", {}) == ({"bitmap": bitmap * (C - 1)} if shares else {})
    assert host == []


def test_lists_are_short_unless_a_system_wants_them_long():
    """A window has bits for its column and its row, and lists as long as those words."""
    by = Partition(1 << 20, 4, 1024)
    slots = row_slots(by, (2, 2), long=False)
    assert (slots.own, slots.room) == (1 << 13, 1 << 13)
    assert 8 * slots.window_words(4, 0) < 1.5 * (1 << 20)  # bytes a vertex, of each piece
    assert row_slots(by, (2, 2), long=True).room == 1 << 18


class Search:
    def __init__(self):
        n = 1300
        self.A = matrix(n, *edges_of("both ways", n), on((1, 2)))
        self.levels, self.frontier = Vector(INT32, n, like=self.A), Vector(BOOL, n, like=self.A)
        self.levels[4], self.frontier[11] = 3, True
        self.before = self.state()

    def run(self):
        levels, frontier, A = self.levels, self.frontier, self.A
        for depth in loop(until_empty=frontier):
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)

    def state(self):
        return self.levels.to_dense(-1).tolist(), self.frontier.to_coo()[0].tolist()


@pytest.mark.parametrize("method", ["shared_zeros", "run_together", "_from_host"])
def test_all_or_nothing(method, monkeypatch):
    fails_at_each_call(Search(), SimDevice, method, OutOfMemory("full"), monkeypatch)


def test_a_device_that_does_not_come(monkeypatch):
    search, run = Search(), SimDevice.run_together
    with monkeypatch.context() as patch:
        patch.setattr(Peers, "patience", 10**8, raising=False)
        patch.setattr("lagpu.backends.gpu.device.protocol.PATIENCE", 10**8)
        patch.setattr(SimDevice, "run_together", lambda self, both: run(self, both[:1]))
        with pytest.raises(GridTimeout, match="piece 0 has heard nothing of piece 1"):
            search.run()
    assert search.state() == search.before
    search.run()
    assert search.state()[1] == []
