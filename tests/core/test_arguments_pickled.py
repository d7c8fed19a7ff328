"""Copies share nothing; pickles bring objects, types and operators to another process."""

import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import types

import numpy as np
import pytest
import sent

import lagpu
from lagpu import (
    BOOL,
    FP32,
    FP64,
    INT32,
    INT64,
    UINT64,
    Matrix,
    Scalar,
    Vector,
    backends,
    binary,
    indexunary,
    loop,
    monoid,
    semiring,
    unary,
)
from lagpu.algebra import operators as registry
from lagpu.backends.cpu import CpuBackend
from lagpu.errors import (
    DomainMismatch,
    InvalidValue,
    NotSupported,
    UnknownOperator,
)

WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "pickle 2": lambda x: pickle.loads(pickle.dumps(x, 2)),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def vectors(place):
    return (
        Vector.from_coo([0, 2], [1, 2], size=3, backend=place, name="few"),
        Vector.from_dense([1.5, np.nan, -0.0], backend=place),
        Vector.from_dense([0.0, -0.0], backend=place),
        Vector.from_coo([1, 5], True, size=9, backend=place),
        Vector.from_coo([0, 1, 2], np.uint64(2**63), backend=place),
        Vector(FP32, 4, backend=place),
        Vector(INT32, 0, backend=place),
        Vector.from_coo([2**40], [7], size=2**50, backend=place) if place == "cpu" else None,
    )


def matrices(place):
    return (
        Matrix.from_coo([0, 1], [2, 0], [1.5, 2.5], nrows=3, ncols=4, backend=place, name="G"),
        Matrix.from_coo([0, 1, 2], [2, 0, 1], True, backend=place),
        Matrix.from_coo([0, 1], [1, 0], [0.0, -0.0], backend=place),
        Matrix.from_coo(np.arange(40) % 7, np.arange(40) % 11, 2, dup_op="plus", backend=place),
        Matrix(UINT64, 3, 2, backend=place),
        Matrix(BOOL, 0, 5, backend=place),
    )


def bits(x):
    """All that is stored, to the sign of zeros."""
    *where, values = x.to_coo()
    return [a.tolist() for a in where], values.dtype, values.tobytes()


@each_way
def test_a_copy_is_equal(backend, way):
    for x in (*vectors(backend.name), *matrices(backend.name)):
        if x is None:
            continue
        y = way(x)
        assert (type(y), y.dtype, y.shape, y.name) == (type(x), x.dtype, x.shape, x.name)
        assert y.backend is backend
        assert bits(y) == bits(x)


@each_way
def test_a_copy_is_independent(backend, way):
    v = Vector.from_coo([0], [1], size=3, backend=backend)
    w = way(v)
    w[1] = 5
    w << w.apply(unary.ainv)
    assert (v.nvals, v[0].value) == (1, 1)
    A = v.diag()
    B = way(A)
    B[2, 2] << 3
    assert (A.nvals, B.nvals) == (1, 2)
    v[2] = 4
    assert w.nvals == 2


def test_a_uniform_value_stays_one_number(backend):
    """Its pickle does not grow with the number of entries."""
    n = 10_000
    v = Vector.from_coo(np.arange(n), True, backend=backend)
    assert len(pickle.dumps(v)) < 1000
    assert pickle.loads(pickle.dumps(v)).isequal(v)


@each_way
def test_scalars_are_copied(way):
    for s in (Scalar(INT32, 3, name="count"), Scalar(FP64), Scalar(UINT64, 2**64 - 1)):
        t = way(s)
        assert (t.dtype, t.value, t.name) == (s.dtype, s.value, s.name)
        t << 7
        assert s.value != 7


@each_way
def test_a_scalar_of_a_loop_is_copied(backend, way):
    v, s = Vector.from_dense([1.0, 2.0], backend=backend), Scalar(FP64)
    for _ in loop(times=2):
        v << v.apply(binary.times, 2)
        s << v.reduce("plus")
    assert way(s).value == 12


def test_copies_inside_a_loop(backend):
    """What is recorded so far has run."""
    v, seen = Vector.from_dense([1, 2], backend=backend), []
    for _ in loop(times=2):
        v << v.apply(binary.plus, 1)
        seen.append(copy.copy(v))
    assert [x.to_coo()[1].tolist() for x in seen] == [[2, 3], [3, 4]]


@each_way
def test_objects_in_containers(backend, way):
    v = Vector.from_dense([1, 2], backend=backend)
    held = types.SimpleNamespace(v=v, twice=[v, v], masks=(v.S, ~v.V), A=v.diag().T, part=v[1])
    other = way(held)
    if way is not copy.copy:
        assert other.v is not v
        assert other.twice[0] is other.twice[1] is other.v
        assert other.masks[1].vector is other.v
        assert other.part.of is other.v
    assert other.masks[1].complement
    assert other.A.new().isequal(v.diag())


@each_way
def test_calls_that_wait_are_not_copied(backend, way):
    v = Vector.from_dense([1, 2], backend=backend)
    for make in (lambda: v.apply("ainv"), lambda: v(v.S), lambda: v.diag() @ v):
        with pytest.raises(DomainMismatch, match=r"cannot be copied or pickled\. "):
            way(make())


# --------------------------------------------------------------------------- types, operators


@each_way
def test_types_operators_and_backends_are_themselves(backend, way):
    rows = [x for table in (unary, binary, indexunary, monoid, semiring) for x in table]
    typed = [binary.plus[INT64], unary.sqrt[FP32], monoid.min[FP64], semiring.min_plus[INT32]]
    for x in (FP64, INT32, *rows, *typed, unary, binary, indexunary, monoid, semiring, backend):
        assert way(x) is x


@each_way
def test_an_operator_of_no_table_is_refused(way):
    for made in (
        type(semiring.plus_times)(monoid.plus, binary.eq),
        type(binary.plus)("plus", np.add, "Plus"),
        type(monoid.plus)("plus", binary.plus, lambda t: t.zero),
    ):
        with pytest.raises(InvalidValue, match="is not an operator of a table"):
            way(made)


@pytest.fixture
def registered(monkeypatch):
    """An operator, its monoid and its semiring, for this test alone."""
    for table in (binary, monoid, semiring):
        monkeypatch.setattr(table, "_rows", dict(table._rows))
    op = sent.register()
    return op, monoid.register("sent_monoid", op, 0), semiring.register(monoid.plus, op)


def test_a_registered_operator_is_pickled_by_name(registered, monkeypatch):
    pickles = [pickle.dumps(op) for op in (*registered, registered[0][INT64])]
    assert pickle.loads(pickles[0]) is registered[0]
    assert pickle.loads(pickles[2]) is registered[2]
    assert all(b"x + 2 * y" in data and b"lambda" not in data for data in pickles)
    for table in (binary, monoid, semiring):
        monkeypatch.setattr(table, "_rows", {})
    for data in pickles:
        with pytest.raises(UnknownOperator, match=r"in this process\. Register it here too"):
            pickle.loads(data)


def test_an_operator_of_another_meaning_is_refused(registered, monkeypatch):
    data = [pickle.dumps(op) for op in registered]
    rows = {n: row for n, row in binary._rows.items() if n != sent.DOUBLED}
    monkeypatch.setattr(binary, "_rows", rows)
    other = binary.register(sent.DOUBLED, lambda x, y: x, "x")
    assert pickle.loads(pickle.dumps(other)) is other
    with pytest.raises(InvalidValue, match="is registered with another text in this process"):
        pickle.loads(data[0])


def test_a_monoid_with_other_ends_is_refused(registered, monkeypatch):
    data = pickle.dumps(registered[1])
    for other in ({"identity": 1}, {"identity": 0, "terminal": 9}):
        monkeypatch.setattr(monoid, "_rows", {})
        monoid.register("sent_monoid", registered[0], **other)
        with pytest.raises(InvalidValue, match="is registered with another text"):
            pickle.loads(data)


def test_an_operator_of_another_type_is_refused(registered, monkeypatch):
    data = pickle.dumps(registered[0])
    monkeypatch.setattr(binary, "_rows", {})
    binary.register(sent.DOUBLED, lambda x, y: x + 2 * y, "x + 2 * y", result=INT32)
    with pytest.raises(InvalidValue, match="is registered with another text"):
        pickle.loads(data)


def test_no_pickle_calls_what_it_names():
    """What lagpu puts into a pickle are a few functions of its own, and NumPy's arrays."""
    assert registry._table("binary") is binary
    with pytest.raises(KeyError):
        registry._table("os")


# ----------------------------------------------------------------------------- other processes


@pytest.fixture(scope="module")
def worker():
    """A process that has inherited nothing, as joblib's and dask's."""
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        yield pool


def test_another_process_computes(backend, worker):
    A = sent.graph(backend.name)
    q = Vector.from_coo([1], [2.0], size=3, like=A)
    w, where, process = worker.submit(sent.step, A, q, semiring.min_plus).result()
    assert w.isequal(semiring.min_plus(q @ A).new())
    assert (where, w.name) == (backend.name, "w")
    assert process != os.getpid()


def test_another_process_runs_loops(backend, worker):
    levels, deepest = worker.submit(sent.reached, sent.graph(backend.name), 0).result()
    assert (levels.to_coo()[1].tolist(), deepest) == ([0, 1, 2], 2)
    assert levels.backend is backend


@pytest.mark.ci
def test_many_tasks_go_to_a_pool_of_multiprocessing():
    A = sent.graph("cpu")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.starmap(sent.reached, [(A, source) for source in range(3)])
    assert [levels.to_coo()[1].tolist() for levels, _ in found] == [[0, 1, 2], [2, 0, 1], [1, 2, 0]]


def test_an_operator_that_another_process_lacks(registered, worker):
    error = worker.submit(sent.error_of, pickle.dumps(registered[0])).result()
    assert error.startswith(f"UnknownOperator: binary: there is no {sent.DOUBLED!r} in this proc")
    worker.submit(sent.register).result()
    assert worker.submit(sent.unpickled, pickle.dumps(registered[0])).result() == repr(
        registered[0]
    )


def test_a_backend_that_another_process_lacks(worker, monkeypatch):
    here = Own()
    monkeypatch.setattr(backends, "_loaded", backends._loaded.copy())
    backends.register(here)
    data = pickle.dumps(Vector.from_dense([1, 2], backend=here))
    assert pickle.loads(data).backend is here
    error = worker.submit(sent.error_of, data).result()
    assert error.startswith(
        "BackendUnavailable: unpickle: the object was on own, which is not here"
    )
    assert "inside with lagpu.use('cpu'):" in error
    assert worker.submit(sent.unpickled_on, data, "sim").result() == "sim"


class Own(CpuBackend):
    """A backend that the other process does not know."""

    def __init__(self):
        super().__init__()
        self.name = "own"


def test_a_backend_without_a_name_is_refused():
    v = Vector.from_dense([1, 2], backend=Own())
    assert copy.copy(v).isequal(v)
    with pytest.raises(NotSupported, match=r"no other process finds the backend own.*x\.to\('cpu'"):
        pickle.dumps(v)
    assert pickle.loads(pickle.dumps(v.to("cpu"))).backend.name == "cpu"


def test_an_object_in_pieces_of_several_processes_is_refused(monkeypatch):
    v = Vector.from_dense([1, 2], backend="grid:2:cpu")
    assert pickle.loads(pickle.dumps(v)).isequal(v)
    monkeypatch.setattr(backends, "launched", lambda: (2, 0))
    with pytest.raises(NotSupported, match="has pieces in several processes"):
        pickle.dumps(v)
    assert copy.copy(v).isequal(v)
    assert pickle.loads(pickle.dumps(v.to("cpu"))).nvals == 2


def test_a_pickle_inside_a_crosscheck_is_refused():
    def copied(A):
        w = copy.copy(A.reduce_rowwise("plus").new())
        with pytest.raises(NotSupported, match="no other process finds the backend"):
            pickle.dumps(w)
        return w

    assert lagpu.crosscheck(copied, sent.graph("cpu"), backends=("cpu", "sim")).ok
