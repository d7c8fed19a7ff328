"""Calls of every algorithm on a graph of each kind, so that its kernels are compiled.

A wheel has the kernels that these calls launch on a simulated device (``.ci/cubins.py``), and
``lagpu compile`` makes the calls on a GPU.
"""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from lagpu import algorithms, backends
from lagpu.backends.protocol import Backend
from lagpu.catalog import ALGORITHMS, Algorithm
from lagpu.dtypes import BOOL, FP32, FP64, INT64, DType
from lagpu.errors import InvalidValue, NoPath, NotConverged
from lagpu.generators import grid2d, kronecker
from lagpu.host.interrupt import deaf
from lagpu.selftest.algorithms import Inputs
from lagpu.selftest.cases import Graph

#: The types of values by kind of graph; a pattern has BOOL. Searches depend on the mean degree,
#: which is above 8, above 4, or less.
TYPES: Mapping[str, tuple[DType, ...]] = {
    "hubs": (BOOL, FP64, INT64, FP32),
    "directed": (BOOL, FP64),
    "road": (BOOL, FP64, INT64, FP32),
}
_SIZES = {"hubs": (7, 5), "directed": (7, 5), "road": (12, 5)}  # and for what takes long
_MULTI = next(row.key for row in ALGORITHMS if row.name == "bfs_levels_multi")
_BETWEENNESS = next(row.key for row in ALGORITHMS if row.name == "betweenness_centrality")
_BATCHES = (64, 32)  # sources that a batch takes, where levels are few
_EDGES = next(row.key for row in ALGORITHMS if row.name == "edge_betweenness_centrality")
_MANY = list(range(64))  # sources, which take other kernels than a few
_ROOM = 25_000  # bytes of shared memory: tables fit, and bits of all vertices do not


def calls(place: Backend, seed: int = 1) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the key and the call of each algorithm, by kind of graph and type of values."""
    # The last calls take place on a device that takes small graphs for large ones, where it
    # matters: if degrees are small, and for products of matrices. A call returns None where the
    # graph has no path that the algorithm needs.
    yield from selected(place, seed, TYPES, ALGORITHMS)
    with _for_large(place.device):
        yield from selected(place, seed, {k: TYPES[k] for k in ("directed", "road")}, ALGORITHMS)
        of_products = [row for row in ALGORITHMS if row.topic == "triangles"]
        yield from selected(place, seed, {"hubs": TYPES["hubs"]}, of_products)
    searches = [row for row in ALGORITHMS if row.topic in ("levels", "paths")]
    for limits in ({"spread_entries": 0}, {"spread_entries": 0, "lasts": 0}, {"cached": 0}):
        with _for_large(place.device, **limits):
            yield from selected(place, seed, dict.fromkeys(("hubs", "road"), (BOOL,)), searches)
    # What depends on how even degrees are, or on the levels of a few sources.
    more = [row for row in ALGORITHMS if row in of_products or "between " in row.key]
    yield from selected(place, seed + 4, dict.fromkeys(("hubs", "directed"), (BOOL,)), more)
    yield _EDGES, functools.partial(_checks_arrays, place.device)


def _checks_arrays(device: Any) -> None:
    """Check compressed arrays, as edge betweenness does with those that are on a real device."""
    ptr, idx = np.arange(3), np.zeros(2, np.int32)
    device.compressed_faults(*map(device.from_host, (ptr, idx)))


def compile_all(backend: str, jobs: int) -> None:
    """Make all calls on a backend in so many processes; the user's cache keeps what they compile.

    Raises `InvalidValue` if the backend compiles nothing.
    """
    if backends.get(backend).device is None:
        raise InvalidValue(f"compile: {backend} has no kernels. Use gpu or sim.")
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        with deaf():
            made = pool.map(_make_share, [backend] * jobs, [jobs] * jobs, range(jobs))
        list(made)


def _make_share(backend: str, jobs: int, share: int) -> None:
    """Make the calls of every so many-th algorithm: those of one algorithm share kernels."""
    order = list(dict.fromkeys(row.key for row in ALGORITHMS))
    for key, call in calls(backends.get(backend)):
        if order.index(key) % jobs == share:
            call()


def selected(
    place: Backend, seed: int, kinds: Mapping[str, tuple[DType, ...]], rows: Iterable[Algorithm]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what `calls` does for some kinds of graphs and some rows of the table."""
    for kind, types in kinds.items():
        graph, small = (_graph(kind, size, seed) for size in _SIZES[kind])
        for dtype in types:
            inputs, few = (Inputs.of(g.matrix(dtype, place), seed) for g in (graph, small))
            for row in rows:
                weighted = row.graph in ("weighted", "positive") or row.name == "pagerank"
                if dtype is BOOL or weighted or not (row.slow or kind == "road"):
                    whole = dtype is BOOL or weighted or row.topic == "triangles"
                    long = row.slow or not whole
                    yield row.key, functools.partial(_called, row, few if long else inputs)
        A = graph.matrix(BOOL, place)
        yield _MULTI, functools.partial(algorithms.bfs_levels_multi, A, _MANY)
        if kind != "road":  # whose levels are many
            central = functools.partial(algorithms.betweenness_centrality, seed=1)
            for k in _BATCHES:
                yield _BETWEENNESS, functools.partial(central, A, k)
            B = small.matrix(BOOL, place)  # a batch of half of the vertices, and one vertex
            yield _BETWEENNESS, functools.partial(central, B, B.nrows // 2 + 1, endpoints=True)


def _called(row: Algorithm, inputs: Inputs) -> Any:
    with suppress(NoPath, NotConverged):
        return row.read(row.run(inputs.graphs[row.graph], inputs))


def _graph(kind: str, size: int, seed: int) -> Graph:
    """Return a graph with hubs, six edges a vertex of it, or a grid, which is connected."""
    if kind == "road":
        made = grid2d(size, size + seed, backend="cpu")
    else:
        made = kronecker(size, 8, seed=seed, backend="cpu")
    rows, cols, _ = made.to_coo()
    if kind == "directed":
        kept = np.argsort((7919 * rows + 104729 * cols) % 65537, kind="stable")[: 6 * made.nrows]
        rows, cols = rows[kept], cols[kept]
    return Graph(kind, made.nrows, rows, cols)


@contextmanager
def _for_large(device: Any, **limits: int) -> Iterator[None]:
    """Have a device treat small graphs like large ones, whose searches may take long."""
    before = device.limits, device.dynamic_shared_bytes
    device.limits = device.limits._replace(**(limits or {"lasts": 0, "table_steps": 1}))
    device.dynamic_shared_bytes = _ROOM
    try:
        yield
    finally:
        device.limits, device.dynamic_shared_bytes = before
