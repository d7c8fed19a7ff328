"""What a process alone knows, as its clock or its free memory, is not what it decides by."""

import itertools
import random
import threading
import time

import networkx as nx
import numpy as np
import pytest
from networkx.utils import create_py_random_state
from ranks import on_grids, on_ranks
from soak import __main__ as soaking

import lagpu
from lagpu import Matrix, algorithms, generators, io
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.comm import MpiEngine
from lagpu.backends.protocol import of_all
from lagpu.crosscheck import crosscheck
from lagpu.errors import LagpuError, OutOfMemory
from lagpu.io import files, networkx_graphs
from lagpu.nx import graph, interface


class Node:
    """A node that each process puts elsewhere in a set, as it does with strings."""

    def __init__(self, name, salt):
        self.name, self.salt = name, salt

    def __hash__(self):
        return hash((self.name * 7919 + self.salt) % 64)

    def __eq__(self, other):
        return self.name == other.name


class Place(CpuBackend):
    """A backend that has so many bytes free."""

    def __init__(self, free, name="cpu"):
        self.free, self.name = free, name

    def free_bytes(self):
        return self.free

    def batch_size(self, A, sources, levels, live):
        return min(sources, max(1, self.free // 10**6))


@pytest.fixture
def clocks(monkeypatch):
    """Have the clock of the second process run so many times as fast."""
    times, started = threading.local(), {}
    numbers = itertools.count()

    def change(module, name, faster):
        real = getattr(module.time, name)

        def read():
            if not hasattr(times, "rank"):
                times.rank = next(numbers) % 2
            began = started.setdefault(times.rank, real())
            return began + (real() - began) * (faster if times.rank else 1)

        monkeypatch.setattr(module.time, name, read)

    return change


def test_numbers_of_all_processes():
    ranks = itertools.count()

    def program(place):
        mine = next(ranks)
        return mine, of_all(place, mine, 2.5)

    found = on_grids(3, program, pieces=2)
    orders = {tuple(map(tuple, of_each)) for _, of_each in found}
    assert len(orders) == 1
    assert sorted(orders.pop()) == sorted((rank, 2.5) for rank, _ in found for _ in range(2))
    assert of_all(lagpu.backends.get("grid:3:cpu"), 4) == of_all(CpuBackend(), 4) == [[4]]


def test_nodes_in_a_set_are_searched_in_one_order():
    ranks = itertools.count(3, 11)

    def program(place):
        nodes = [Node(name, next(ranks) if name == 0 else 0) for name in range(12)]
        for node in nodes:
            node.salt = nodes[0].salt
        G = nx.path_graph(nodes)
        G.add_edge(nodes[0], nodes[5])
        asked = nodes[:7]
        order = [node.name for node in set(asked)]
        with lagpu.use(place):
            found = interface.harmonic_centrality(interface.convert_from_nx(G), asked)
        expected = nx.harmonic_centrality(G, asked)
        close = all(np.isclose(found[node], expected[node]) for node in asked)
        return order, close and list(found) == list(expected)

    found = on_grids(2, program)
    assert found[0][0] != found[1][0]
    assert [same for _, same in found] == [True, True]


def test_sources_are_those_that_one_generator_has_drawn():
    seeds = itertools.count()

    def program(place):
        A = generators.kronecker(6, backend=place)
        drawn = random.Random(next(seeds))
        return algorithms.betweenness_centrality(A, 5, seed=drawn).to_dense().tolist()

    one, other = on_grids(2, program)
    assert one == other
    A = generators.kronecker(6, backend="cpu")
    known = [algorithms.betweenness_centrality(A, 5, seed=random.Random(k)) for k in range(2)]
    assert any(np.allclose(one, x.to_dense()) for x in known)


def test_an_independent_set_is_one_of_all_processes():
    def program(place):
        G = nx.path_graph(40)
        with lagpu.use(place):
            seed = create_py_random_state(None)  # as of a caller who gives none
            return set(interface.maximal_independent_set(interface.convert_from_nx(G), seed=seed))

    one, other = on_grids(2, program)
    assert one == other
    assert not any(v + 1 in one for v in one)
    assert all({v - 1, v, v + 1} & one for v in range(40))


@pytest.mark.parametrize("uneven", [False, True])
def test_hosts_may_have_more_processes_and_fewer(uneven):
    A = generators.kronecker(6, backend="cpu")
    needed = 24 * A.nvals + 120 * A.nrows

    def program(processes):
        processes.beside = [2, 2, 1][processes.rank] if uneven else 1
        place = GridBackend("grid", MpiEngine(processes, 1), [Place(3 * needed)])
        return algorithms.betweenness_centrality(
            generators.kronecker(6, backend=place), 8, seed=1
        ).nvals

    assert on_ranks(3, program)[0] == [64] * 3


def test_a_soak_ends_after_the_same_round(clocks, monkeypatch):
    clocks(soaking, "monotonic", 50)
    monkeypatch.setitem(soaking._ROUND, "graphs", (lambda *_: time.sleep(0.02) or 1, 1))

    def program(place):
        return soaking.soak(place, 3.0, 1, ["graphs"])["kinds"]["graphs"]["count"]

    one, other = on_grids(2, program)
    assert one == other >= 1


def test_a_crosscheck_takes_as_many_sources_at_once():
    free = itertools.count(2 * 10**6, 3 * 10**6)

    def program(place):
        A = generators.kronecker(5, backend=place)
        beside = Place(next(free), "beside")
        report = crosscheck(
            algorithms.betweenness_centrality, A, 8, seed=1, backends=[place, beside]
        )
        return str(report)

    one, other = on_grids(2, program)
    assert "agree" in one
    assert one == other


def short_in_one(real, what):
    """Return a function that has no memory the second time that it is called."""
    calls = itertools.count()

    def short(*args, **options):
        if next(calls) == 1:
            raise OutOfMemory(f"{what}: short")
        return real(*args, **options)

    return short


def test_a_file_that_one_process_has_no_memory_for_is_read_by_none(tmp_path, monkeypatch):
    """Each may go on with another one, as the others do."""
    file = tmp_path / "small.txt"
    file.write_text("0 1\n1 2\n")
    monkeypatch.setattr(files, "_parse", short_in_one(files._parse, "read"))

    def program(place):
        with pytest.raises(LagpuError, match="short"):
            io.read(file, backend=place)
        return io.read(file, backend=place).nvals

    assert on_grids(2, program) == [2, 2]


def test_a_graph_that_one_process_has_no_memory_for_goes_to_none(monkeypatch):
    require = short_in_one(networkx_graphs.memory.require, "to_networkx")
    monkeypatch.setattr(networkx_graphs.memory, "require", require)

    def program(place):
        A = Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3, backend=place)
        with pytest.raises(LagpuError, match="short"):
            io.to_networkx(A)
        return io.to_networkx(A).number_of_edges()

    assert on_grids(2, program) == [2, 2]


def test_networkx_runs_its_own_function_in_all_processes_or_in_none(monkeypatch):
    monkeypatch.setattr(graph, "adjacency", short_in_one(graph.adjacency, "from_networkx"))

    def program(place):
        G = nx.path_graph(9)
        with lagpu.use(place):
            with pytest.raises(NotImplementedError, match="short"):
                interface.convert_from_nx(G)
            return interface.is_bipartite(interface.convert_from_nx(G))

    assert on_grids(2, program) == [True, True]
