"""Processes that give different things to one statement: all raise what differs, before it runs."""

import copy
import dataclasses
import gc
import os
import re
import subprocess
import sys
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
from differing import KINDS, objects, read
from ranks import on_grids
from test_start import Job, real, said

from lagpu import INT64, Matrix, Vector, binary, loop
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.grid.processes import checksum
from lagpu.errors import ProcessFailed
from lagpu.operations import Apply, Reduce


class Own(CpuBackend):
    """One whose methods a test may replace."""


def command(text, **env):
    """Return what a process of Python prints."""
    run = [sys.executable, "-c", text]
    return subprocess.run(run, env=os.environ | env, check=True, capture_output=True).stdout


@pytest.mark.parametrize("name", KINDS)
def test_what_differs_is_named_in_every_process(name):
    work, words = KINDS[name]

    def program(place):
        rank = place.pieces.engine.local[0]
        o = objects(place)
        before = read(o)
        with pytest.raises(ProcessFailed) as raised:
            work(o, rank)
        assert read(o) == before
        work(o, 0)  # they are in step, and the objects are what they were
        return str(raised.value)

    one, other = on_grids(2, program)
    assert one == other
    assert re.search(words, one), one
    assert one.endswith(". Give every process the same.")


ALL_KINDS = """
import re, sys
from differing import KINDS, objects, read
from lagpu import algorithms, backends, binary
from lagpu.errors import ProcessFailed
from lagpu.host.job import launched

rank, o = launched().rank, objects(backends.get("grid:cpu"))
for name, (work, words) in KINDS.items():
    before = read(o)
    try:
        work(o, rank)
    except ProcessFailed as error:
        assert re.search(words, str(error)), (name, error)
    else:
        raise AssertionError(name)
    assert read(o) == before, name
binary.register("differs", [lambda x, y: x + y, lambda x, y: x - y][rank], "x + y")
try:
    o.w << binary.differs(o.u | o.v)
except ProcessFailed as error:
    assert "op is binary.differs (checksum " in str(error), error
else:
    raise AssertionError("functions")
algorithms.bfs_levels(o.A, 1)
if rank == 0:
    print(len(KINDS))
o.w << 1 + rank
"""


@real
@pytest.mark.ci
def test_under_mpirun(monkeypatch):
    """All kinds in one job, which goes on after each; the last error is not caught."""
    monkeypatch.setenv("LAGPU_COMPARE", "all")
    code, out, err = Job(2, ALL_KINDS).ended()
    assert out.partition("\n")[0] == str(len(KINDS)), err
    (line,) = said(err)
    words = "value is 1 in process 0 and 2 in process 1, in assign_scalar (statement "
    assert words in err, err
    assert line.startswith("lagpu: process "), err
    assert code not in (0, None)


def test_a_sub_cluster_whose_processes_differ():
    """The others hear of it when they are ready, and all are in step again."""

    def program(place):
        rank = place.pieces.engine.local[0]
        A = Matrix.from_coo([0, 1], [1, 2], nrows=9, ncols=9, backend=place)
        shared = place.capabilities.clusters(A.data, 2)

        def work():
            size = 6 if rank == 3 else 5
            return shared.inside(lambda: Vector(INT64, size, backend=shared.backends[0]).nvals)

        with pytest.raises(ProcessFailed, match="size is 5 in process 2 and 6 in process 3"):
            shared.run(work)
        assert shared.run(lambda: shared.inside(lambda: rank)) == rank
        return A.nvals

    assert on_grids(4, program) == [2] * 4


@pytest.mark.parametrize(("given", "compared"), [("", 100), ("3", 3), ("all", 200)])
def test_how_many_statements_are_compared(monkeypatch, given, compared):
    monkeypatch.setenv("LAGPU_COMPARE", given)

    def program(place):
        rank, engine = place.pieces.engine.local[0], place.pieces.engine
        v = Vector(INT64, 4, backend=place)
        while engine.turn < compared - 1:
            v << 1
        with pytest.raises(ProcessFailed):
            v << rank
        while engine.turn < 200:
            v << 1
        with pytest.raises(ProcessFailed) if given == "all" else nullcontext():
            v << rank

    assert on_grids(2, program) == [None] * 2


def test_the_first_process_that_differs_is_named():
    def program(place):
        o = objects(place)
        with pytest.raises(ProcessFailed, match="1 in process 0 and 2 in process 2") as raised:
            o.w << (2 if place.pieces.engine.local[0] >= 4 else 1)
        return raised.value.process

    assert on_grids(4, program, pieces=2) == [2] * 4


def test_loops_that_end_elsewhere():
    """What follows is another statement, so the processes diverge."""

    def program(place):
        o = objects(place)
        for _ in loop(times=2 + place.pieces.engine.local[0]):
            o.w(accum=binary.plus) << o.u
        return o.w.nvals

    found = on_grids(2, program)
    words = "process 0 is at nvals .* process 1 is at execute"
    assert all(isinstance(x, ProcessFailed) and re.search(words, str(x)) for x in found), found


def test_what_differs_is_reported_where_it_makes_one_process_fail(monkeypatch):
    """The error of that one would hide why there is one."""
    o = {}

    def program(place):
        rank = place.pieces.engine.local[0]
        o[rank] = objects(place)
        if rank:
            own = place.pieces.places[0]
            monkeypatch.setattr(own, "vector_from_coo", lambda *_: 1 // 0, raising=False)
        with pytest.raises(ProcessFailed, match="values is 1 int64") as raised:
            Vector.from_coo([1], [5 + rank], size=9, backend=place)
        return type(raised.value.__context__)

    assert on_grids(2, program, place=Own) == [type(None), ZeroDivisionError]


def test_interrupts_and_errors_leave_the_numbers_of_objects_alike():
    """One that fails has made fewer objects in the statement than the others."""

    def program(place):
        rank, o = place.pieces.engine.local[0], objects(place)
        own = place.pieces.places[0]
        if rank:
            own.vector = lambda *_: 1 // 0
        with pytest.raises((ProcessFailed, ZeroDivisionError)):
            Vector(INT64, 5, backend=place)
        vars(own).pop("vector", None)
        made = [Vector(INT64, 5, backend=place) for _ in range(3)]
        made[1] << 3
        o.w << o.u
        return [x.data.number for x in made]

    one, other = on_grids(2, program, place=Own)
    assert one == other
    assert len(set(one)) == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, None),
        (np.int64(-1), np.int64(-2)),
        (-1, -2),
        ((1, (2, 3)), (1, 2, 3)),
        (np.array([1, 2]), np.array([1, 2], np.int32)),
        (np.zeros(4), np.zeros((2, 2))),
        (np.arange(5000), np.arange(5000)[::-1]),
        (np.arange(5000), np.r_[1, 0, np.arange(2, 5000)]),
        (np.arange(5000)[::2], np.arange(5000)[1::2]),
        (np.zeros(9001, bool), np.arange(9001) == 9000),
        (binary.plus, binary.plus[INT64]),
        (binary.plus, dataclasses.replace(binary.plus, body="x + y + 1")),
        (Apply(1, 2), Reduce(1, 2)),
    ],
)
def test_checksums_differ(one, other):
    assert checksum(one) == checksum(copy.copy(one)) != checksum(other)


def test_one_name_of_two_functions_is_noticed():
    functions = [
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x + y + 1,
        lambda x, y: x + y + 2,
        lambda x, y: np.add(x, y),
        lambda x, y: np.subtract(x, y),
        lambda x, y: x + y,
    ]
    sums = [checksum(dataclasses.replace(binary.plus, numpy=f, name="own")) for f in functions]
    assert sums[0] == sums[-1]
    assert len(set(sums)) == 6


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_statement_was_given_is_not_kept(fails):
    def program(place):
        array = np.arange(9)
        kept = weakref.ref(array)
        if fails:
            place.pieces.places[0].vector_from_coo = lambda *_: 1 // 0
        with pytest.raises(ZeroDivisionError) if fails else nullcontext():
            Vector.from_dense(array, backend=place)
        del array
        gc.collect()
        return kept() is None

    assert on_grids(2, program, place=Own) == [True, True]


def test_checksums_are_those_of_any_process():
    """Not of its addresses, nor of its salt for the hashes of strings."""
    text = (
        "from lagpu import *; from lagpu.operations import *; import numpy as np\n"
        "from lagpu.backends.grid.processes import checksum\n"
        "print(checksum((semiring.min_plus, 'a', np.arange(9000), Apply(None, unary.abs), FP64)))"
    )
    assert len({command(text, PYTHONHASHSEED=str(k)) for k in range(2)}) == 1
