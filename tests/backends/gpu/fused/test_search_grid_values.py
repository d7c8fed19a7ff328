"""Searches from frontiers of any type and any values: fused, eager and cpu find the same."""

from itertools import product

import numpy as np
import pytest
from samples import sampled

import lagpu
from lagpu import (
    BOOL,
    FP64,
    INT32,
    INT64,
    UINT32,
    Matrix,
    Vector,
    algorithms,
    loop,
    semiring,
)
from lagpu.backends.gpu.backend import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.generators import kronecker


def depths(A, f, x, y, op, **turns):
    for depth in loop(until_empty=f, **turns):
        x(f.S) << depth
        f(~x.S, replace=True) << op(f @ A)


def values(A, f, x, y, op, **turns):
    for _ in loop(until_empty=f, **turns):
        x(f.S) << f
        f(~x.S, replace=True) << op(f @ A)


def both(A, f, x, y, op, **turns):
    for depth in loop(until_empty=f, **turns):
        x(f.S) << depth
        y(f.S) << f
        f(~x.S, replace=True) << op(f @ A.T)


def afterwards(A, f, x, y, op, **turns):
    x(f.S) << 0
    for depth in loop(until_empty=f, **turns):
        f(~x.S, replace=True) << op(f @ A)
        x(f.S) << depth


def values_right(A, f, x, y, op, **turns):
    for _ in loop(until_empty=f, **turns):
        x(f.S) << f
        f(~x.S, replace=True) << op(A.T @ f)


SOURCES = {
    "false": ([0], [0]),
    "true": ([0], [1]),
    "three": ([0], [3]),
    "some false": ([0, 3, 5], [0, 1, 0]),
    "all false": ([0, 3, 5], [0, 0, 0]),
    "many": ([0, 3, 5], [2, 0, 7]),
}


def found(backend, search, dtype, out, sources, op, turns):
    where, what = SOURCES[sources]
    rows, cols = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (5, 6), (6, 2), (1, 6)]).T
    A = Matrix.from_coo(rows, cols, nrows=40, ncols=40, backend=backend)
    f = Vector.from_coo(where, np.array(what).astype(dtype.numpy), dtype, size=40, backend=backend)
    x, y = (Vector(out, 40, backend=backend) for _ in "xy")
    search(A, f, x, y, semiring[op], **turns)
    return [[part.tolist() for part in v.to_coo()] for v in (x, y, f)]


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize(
    ("dtype", "search", "op", "times"),
    sampled(
        product(
            (BOOL, UINT32, FP64),
            (depths, values, both, afterwards),
            ("lor_pair", "any_first"),
            (None, 1, 3),
        ),
        10,
    ),
)
def test_any_frontier(place, search, dtype, op, times):
    turns = {} if times is None else {"times": times}
    for sources in SOURCES:
        if op == "any_first" and sources in ("some false", "many"):
            continue  # which value is found is free
        arguments = search, dtype, INT64, sources, op, turns
        expected = found("cpu", *arguments)
        assert found(place.name, *arguments) == expected, sources
        with lagpu.eager():
            assert found(place.name, *arguments) == expected, sources


def test_a_search_from_floats_is_still_a_grid_search(place):
    found(place.name, depths, FP64, INT64, "many", "lor_pair", {"times": 2})
    assert place.last_loop.startswith("grid search")


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize(
    ("search", "op"),
    [(depths, "any_second"), (values, "any_second"), (values_right, "any_first")],
)
def test_searches_of_one_matrix_with_and_without_a_bound(place, search, op):
    """Only the bounded one leaves a frontier; its values come from the matrix, by column."""
    rows, cols, _ = kronecker(8, backend="cpu").to_coo()
    source, n = int(np.bincount(rows).argmax()), 256

    def run(A, turns):
        f, x = Vector(INT64, n, like=A), Vector(INT64, n, like=A)
        f[source] = 5
        search(A, f, x, None, semiring[op], **turns)
        return [part.tolist() for v in (x, f) for part in v.to_coo()]

    A, B = (
        Matrix.from_coo(rows, cols, cols + 1, nrows=n, ncols=n, backend=b) for b in (place, "cpu")
    )
    for turns in ({}, {"times": 1}, {}, {"times": 2}):
        assert run(A, turns) == run(B, turns)
        assert place.last_loop.startswith("grid search")


def test_a_frontier_that_is_not_read_may_have_any_one_value(place):
    """Each product is the matrix' 1, so no value is kept, and depths may come afterwards."""

    def run(backend):
        A = Matrix.from_coo([0, 1, 2], [1, 2, 3], np.int64(1), nrows=4, ncols=4, backend=backend)
        f = Vector.from_coo([0], np.int64(5), size=4, backend=backend)
        x = Vector(INT64, 4, backend=backend)
        afterwards(A, f, x, None, semiring.any_second, times=2)
        return [part.tolist() for v in (x, f) for part in v.to_coo()]

    assert run(place) == run("cpu") == [[0, 1, 2], [0, 0, 1], [2], [1]]
    assert place.last_loop.startswith("grid search")


def test_a_search_that_keeps_values_has_its_assignments_before_the_product(place):
    def run(backend):
        A = Matrix.from_coo([0, 0, 1, 2], [1, 2, 3, 3], [5, 3, 1, 2], nrows=4, ncols=4,
                            backend=backend)  # fmt: skip
        f, x = Vector.from_coo([0], 7, size=4, backend=backend), Vector(INT64, 4, backend=backend)
        for _ in loop(until_empty=f, times=2):
            f(~x.S, replace=True) << semiring.min_second(f @ A)
            x(f.S) << f
        return [v.to_dense(0).tolist() for v in (x, f)]

    assert run(place) == run("cpu") == [[0, 5, 3, 1], [0, 0, 0, 1]]
    assert place.last_loop.endswith(
        "no search: the frontier carries values, and the assignments follow the product"
    )


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize(
    ("dtype", "op", "last", "fused"),
    [
        (INT32, "plus_times", 2, "grid search"),
        (FP64, "plus_times", 2, "grid search"),
        (BOOL, "lxor_land", 0, "generated loop"),
    ],
)
def test_sums_need_an_atomic_operation_of_their_type(place, dtype, op, last, fused):
    def run(backend):
        A = Matrix.from_coo([0, 0, 1, 2], [1, 2, 3, 3], dtype.numpy.type(1), nrows=4, ncols=4,
                            backend=backend)  # fmt: skip
        f = Vector.from_coo([0], dtype.numpy.type(1), size=4, backend=backend)
        x, y = (Vector(dtype, 4, backend=backend) for _ in "xy")
        both(A.T.new(), f, x, y, semiring[op])
        return y.to_dense().tolist()

    assert run(place) == run("cpu") == [1, 1, 1, last]
    assert place.last_loop.startswith(fused)


def test_a_device_of_little_shared_memory():
    """Lists in shared memory are as long as it allows; more is refused at the launch."""
    device = SimDevice()
    device.dynamic_shared_bytes = 3100  # a pull takes 3072
    place = GpuBackend("little", device)
    graph = kronecker(8, backend="cpu")
    for search in (algorithms.bfs_levels, algorithms.count_shortest_paths):
        assert search(graph.to(place), 3).to("cpu").isequal(search(graph, 3))
        assert place.last_loop.startswith("grid search")


def test_products_that_are_1_at_first_alone(place):
    """Of 5 - 4 and then of 1 - 4: what the first product gives says nothing of the next."""

    def run(backend):
        A = Matrix.from_coo([0, 1, 2], [1, 2, 3], np.int64(4), nrows=4, ncols=4, backend=backend)
        f = Vector.from_coo([0], np.int64(5), size=4, backend=backend)
        x, y = (Vector(INT64, 4, backend=backend) for _ in "xy")
        both(A.T.new(), f, x, y, semiring.min_minus)
        return y.to_dense().tolist()

    assert run(place) == run("cpu") == [5, 1, -3, -7]
    assert place.last_loop.startswith("grid search")


def test_shared_memory_is_as_large_as_its_lists(place):
    """Two of vertices, of the places of their edges, and of degrees."""
    A = kronecker(8, backend=place)
    algorithms.bfs_levels(A, 3)
    store = A.data.store
    space = store.cache["grid search"]
    assert space.shared == 2 * int(space.solo) * (4 + store.col_ptr.itemsize + 4)
