"""Objects of python-graphblas in and out, and one text of algorithms on both libraries."""

import ast
import importlib
import inspect
import re
import sys
from typing import Any

import graphblas as gb
import numpy as np
import pytest

from lagpu import FP64, INT32, Matrix, Scalar, Vector, algorithms, generators, io, loop
from lagpu.errors import DomainMismatch, InvalidValue

#: One object of each kind, and what its values are in lagpu.
OBJECTS = {
    "vector": gb.Vector.from_coo([0, 3], [1.5, -2.5], size=5, name="u"),
    "full": gb.Vector.from_scalar(7, 4, dtype="UINT64"),
    "small": gb.Vector.from_coo([1], [3], dtype="INT8", size=2),
    "empty": gb.Vector("BOOL", 3),
    "none": gb.Vector("FP32", 0),
    "matrix": gb.Matrix.from_coo([0, 2], [1, 0], [True, False], nrows=3, ncols=2, name="A"),
    "one value": gb.Matrix.from_coo([0, 1], [1, 0], 2.5),
}


def entries(x):
    return [part.tolist() for part in x.to_coo()]


@pytest.mark.parametrize("x", OBJECTS.values(), ids=OBJECTS)
def test_an_object_comes_in_and_goes_out(backend, x):
    ours = io.from_graphblas(x, backend=backend)
    assert ours.backend is backend
    assert ours.dtype.name == {"INT8": "INT32"}.get(x.dtype.name, x.dtype.name)
    assert (ours.shape, ours.name) == (x.shape, x.name)
    assert entries(ours) == entries(x)
    back = io.to_graphblas(ours)
    assert back.isequal(x)
    assert back.name == x.name


@pytest.mark.parametrize("value", [3, 2.5, None])
def test_a_scalar_comes_in_and_goes_out(value):
    s = gb.Scalar.from_value(value, "FP64", name="s")
    ours = io.from_graphblas(s)
    assert (ours.dtype, ours.value, ours.name) == (FP64, value, "s")
    assert io.to_graphblas(ours).isequal(s)


def test_expressions_are_computed(backend):
    u = gb.Vector.from_coo([0, 1], [1.0, 2.0])
    assert entries(io.from_graphblas(u + u, backend=backend)) == [[0, 1], [2.0, 4.0]]
    v = io.from_graphblas(u, backend=backend)
    assert io.to_graphblas(v + v).isequal((u + u).new())
    A = gb.Matrix.from_coo([0], [1], [2.0])
    assert io.from_graphblas(A.T, backend=backend).shape == A.shape[::-1]
    assert io.to_graphblas(io.from_graphblas(A, backend=backend).T).isequal(A.T.new())


@pytest.mark.parametrize("name", ["vector", "matrix"])
def test_copies_are_independent(backend, name):
    x = OBJECTS[name].dup()
    before = x.dup()
    ours = io.from_graphblas(x, backend=backend)
    x.clear()
    assert entries(ours) == entries(before)
    out = io.to_graphblas(ours)
    ours.clear()
    assert out.isequal(before)


@pytest.mark.parametrize("name", ["vector", "matrix", "none"])
def test_memory_moves_on_cpu(name):
    x = OBJECTS[name].dup()
    before, handle = x.dup(), x.gb_obj[0]
    ours = io.from_graphblas(x, copy=False, backend="cpu")
    assert x.nvals == 0
    assert x.shape == before.shape
    assert entries(ours) == entries(before)
    moved = io.to_graphblas(ours, copy=False)
    assert (moved.gb_obj[0] == handle) is (name != "none")  # that of size 0 is made again
    assert (ours.nvals, ours.shape) == (0, before.shape)
    assert moved.isequal(before)
    ours << 1  # the object that is left is one like any other
    x << 1
    assert moved.isequal(before)


def test_what_cannot_move_is_refused():
    u = gb.Vector.from_coo([0], [1.5])
    with pytest.raises(InvalidValue, match="takes a copy"):
        io.from_graphblas(u, copy=False, backend="sim")
    with pytest.raises(InvalidValue, match="FP64 becomes INT32 on cpu"):
        io.from_graphblas(u, copy=False, dtype=INT32, backend="cpu")
    with pytest.raises(InvalidValue, match="sim has memory of its own"):
        io.to_graphblas(Vector(FP64, 3, backend="sim"), copy=False)
    assert u.nvals == 1


@pytest.mark.parametrize("x", [1, np.ones(3), Vector(FP64, 2, backend="cpu")])
def test_only_their_objects_come_in(x):
    with pytest.raises(DomainMismatch, match="no object of python-graphblas"):
        io.from_graphblas(x)


def test_types_of_users_are_refused():
    with pytest.raises(DomainMismatch, match="FC64"):
        io.from_graphblas(gb.Vector("FC64", 2))
    with pytest.raises(DomainMismatch, match="no object of lagpu"):
        io.to_graphblas([1, 2])


@pytest.mark.parametrize("make", [Vector, Matrix, Scalar])
@pytest.mark.parametrize("x", [*OBJECTS.values(), gb.Scalar("INT8")])
def test_a_constructor_names_the_door(make, x):
    with pytest.raises(DomainMismatch, match=re.escape("Write lagpu.io.from_graphblas(x).")):
        make(x)


# ------------------------------------------------------------------------------------------
# One text on both libraries: the source of `lagpu/algorithms/bfs.py`, with other imports.


class _Theirs(type):
    """A class of python-graphblas, whose objects all live in one place: `like` says nothing."""

    def __call__(cls, dtype, *shape, like=None, name=None):
        return cls.theirs(dtype, *shape, name=name)

    def __instancecheck__(cls, x):
        return isinstance(x, cls.theirs)

    def from_coo(cls, *arrays, like=None, **options):
        return cls.theirs.from_coo(*arrays, **options)


class TheirVector(metaclass=_Theirs):
    """python-graphblas' vector."""

    theirs = gb.Vector


class TheirMatrix(metaclass=_Theirs):
    """python-graphblas' matrix."""

    theirs = gb.Matrix


def _on_theirs(path):
    """Return the names of a module of `lagpu.algorithms` whose text runs on python-graphblas."""
    ours = sys.modules[path]
    instead = {
        "lagpu.core": {"Matrix": TheirMatrix, "Vector": TheirVector},
        "lagpu.dtypes": {**vars(gb.dtypes), "DType": gb.dtypes.DataType},
    }
    names: dict[str, Any] = {"__name__": path}
    tree = ast.parse(inspect.getsource(ours))
    for node in [n for n in tree.body if isinstance(n, ast.ImportFrom)]:
        found = instead.get(node.module) or vars(importlib.import_module(node.module))
        if node.module == "lagpu.algorithms.inputs":
            found = _on_theirs(node.module)
        if node.module == "lagpu.algebra.tables":
            found = {name: getattr(gb, name) for name in ("binary", "semiring")}
        names |= {x.asname or x.name: found[x.name] for x in node.names if x.name in found}
        if node.module != "__future__":
            tree.body.remove(node)
    exec(compile(tree, ours.__file__, "exec"), names)
    return names


@pytest.fixture(scope="module")
def theirs():
    return _on_theirs("lagpu.algorithms.bfs")


#: A call of each function of bfs.py.
CALLS = {
    "bfs": (3,),
    "bfs_levels": (3,),
    "bfs_parents": (3,),
    "count_shortest_paths": (3,),
    "bfs_levels_multi": ([3, 0, 9],),
    "bfs_parents_multi": ([3, 0, 9],),
    "bfs_levels_joint": ([3, 9],),
    "neighborhood": ([3], 2),
    "k_hop": (3, 2),
}


@pytest.mark.filterwarnings("ignore:.*any_secondi:DeprecationWarning")
@pytest.mark.parametrize(("name", "given"), CALLS.items(), ids=CALLS)
def test_the_text_of_bfs_runs_on_both_libraries(backend, theirs, name, given):
    A = generators.kronecker(5, backend=backend)
    mine = getattr(algorithms, name)(A, *given)
    found = theirs[name](io.to_graphblas(A), *given)
    mine, found = ((x,) if not isinstance(x, tuple) else x for x in (mine, found))
    for k, (x, other) in enumerate(zip(mine, found, strict=True)):
        assert type(other).__module__.startswith("graphblas.")
        if "parents" in name or k:  # any one of several
            assert x.S.new().isequal(io.from_graphblas(other, backend=backend).S.new())
        else:
            assert io.to_graphblas(x).isequal(other, check_dtype=True)


def test_every_function_of_bfs_is_called():
    path = "lagpu.algorithms.bfs"
    own = [f for f in vars(sys.modules[path]).values() if getattr(f, "__module__", "") == path]
    assert {f.__name__ for f in own if not f.__name__.startswith("_")} == CALLS.keys()


def test_a_loop_takes_their_objects():
    u = gb.Vector.from_coo([0], [5])
    assert list(loop(until_unchanged=u)) == [0]
    assert list(loop(until_empty=u, times=2)) == [0, 1]
    turns = 0
    for k in loop(until_empty=u):
        u << u.select("valuegt", k)
        turns += 1
    assert turns == 6
