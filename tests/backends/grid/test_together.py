"""On several processes all do a statement, or none does; no process waits for one that failed."""

import signal
import types

import numpy as np
import pytest
from faults import STATEMENTS, Objects
from grids import Few, Own
from ranks import on_grids
from test_backend import PROGRAMS, plain

import lagpu
from lagpu import FP32, INT64, Matrix, Vector, algorithms, binary, generators, semiring
from lagpu.algorithms.betweenness import sample
from lagpu.backends.cpu import CpuBackend
from lagpu.errors import InvalidValue, LagpuError, OutOfMemory, ProcessFailed

RANKS = [(3, 1), (2, 2)]  # processes, pieces in each


@pytest.mark.each_value
@pytest.mark.parametrize(("ranks", "pieces"), RANKS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_on_cpu_in_processes(name, ranks, pieces):
    wanted = plain(PROGRAMS[name](Few("cpu", 33)))
    found = on_grids(ranks, lambda place: plain(PROGRAMS[name](Few(place, 33))), pieces, chunk=256)
    assert found == [wanted] * ranks


def test_algorithms_agree_in_processes():
    A = generators.kronecker(6, backend="cpu")
    wanted = plain(algorithms.bfs_levels(A, 3))
    sums = algorithms.betweenness_centrality(A, 4, seed=1).to_dense(0)

    def program(place):
        B = A.to(place)
        found = algorithms.betweenness_centrality(B, 4, seed=1).to_dense(0)
        np.testing.assert_allclose(found, sums)
        return plain(algorithms.bfs_levels(B, 3)), found.tolist()

    found = on_grids(3, program)
    assert found == [(wanted, found[0][1])] * 3


@pytest.mark.parametrize("kept_by", [None, 1])
def test_all_processes_deal_by_the_same_degrees(kept_by):
    """Also where one of them still has an object that the others have dropped."""
    A = generators.kronecker(6, backend="cpu")
    wanted, hub = plain(A), int(np.argmax(np.diff(A.to_csc()[0])))

    def program(place):
        rank = place.pieces.engine.local[0]
        v = Vector(INT64, 64, backend=place)
        if kept_by != rank:
            del v
        B = A.to(place)
        levels = algorithms.bfs_levels(B, hub)
        assert plain(B) == wanted
        first = int(place.pieces.partition(64).index(0, 0))
        return first, plain(levels)

    found = on_grids(3, program, order="degree")
    first = hub if kept_by is None else 0
    assert found == [(first, plain(algorithms.bfs_levels(A, hub)))] * 3


def test_what_changes_nothing_waits_for_no_process(monkeypatch):
    """Unless its arguments are compared; a failure in it is reported at the next statement."""
    monkeypatch.setenv("LAGPU_COMPARE", "0")

    def program(place):
        engine = place.pieces.engine
        u = Vector(INT64, 33, backend=place)
        calls, usual = [], engine._processes._comm.Allgather
        engine._processes._comm.Allgather = lambda *given: calls.append(1) or usual(*given)
        v = Vector(INT64, 33, backend=place)
        silent = len(calls)
        try:
            if engine.local[0] == 1:
                place.pieces.places[0].vector = lambda *given: 1 / 0
            w = Vector(INT64, 33, backend=place)
            v << u
            w << u
        except ZeroDivisionError:
            del place.pieces.places[0].vector
            error = "own"
        except ProcessFailed as failed:
            error = str(failed)
        v[3] = 7
        u << v  # all go on together
        return silent, error, u.to_coo()[0].tolist()

    first, second = on_grids(2, program)
    assert (first[0], second[0]) == (0, 0)
    assert second[1] == "own"
    assert "process 1 of 2: ZeroDivisionError" in first[1]
    assert first[2] == second[2] == [3]


def test_what_is_drawn_is_the_same_in_all_processes():
    """Without a seed: sources that differed would give each process its own part of a sum."""
    A = generators.kronecker(6, backend="cpu")

    def program(place):
        return [sample(A.to(place), 4, None) for _ in range(8)]

    found = on_grids(3, program)
    assert found == [found[0]] * 3
    for drawn in (found[0], [sample(A, 4, None) for _ in range(8)]):
        assert len(set(map(tuple, drawn))) > 1


def test_sums_are_the_same_bits_in_any_number_of_processes():
    values = np.random.default_rng(1).random(1000).astype(np.float32)

    def program(place):
        u = Vector.from_dense(values, backend=place)
        A = Matrix.from_coo(np.arange(1000) % 7, np.arange(1000), values, FP32, backend=place)
        sums = u.reduce("plus").new().value, *A.reduce_rowwise("plus").new().to_coo()[1].tolist()
        return [np.float64(x).tobytes() for x in sums]

    (one,) = on_grids(1, program, pieces=6)
    for ranks, pieces in ((2, 3), (3, 2), (6, 1)):
        assert on_grids(ranks, program, pieces) == [one] * ranks


def own_parts(o):
    """The entries of each object that are with this rank, and what is known of it."""
    found = []
    for x in vars(o).values():
        if isinstance(x, (Vector, Matrix)):
            place, (part,) = x.backend.pieces.places[0], x.data.parts
            read = place.vector_to_coo if x.ndim == 1 else place.matrix_to_csc
            found.append((x.shape, [array.tolist() for array in read(part)]))
    return found


def failing_place():
    """A place that fails at a chosen call."""
    return Own(types.SimpleNamespace(calls=0, at=None, error=None))


ERRORS = (OutOfMemory("a piece is full"), KeyboardInterrupt(), ValueError("boom"))


@pytest.mark.parametrize(
    ("name", "error"), [(name, ERRORS[i % 3]) for i, name in enumerate(STATEMENTS)]
)
def test_a_process_fails(name, error):
    """The first call on a place of the second rank fails, then the last: all raise."""

    def program(place):
        shared = place.pieces.places[0].shared
        failing = place.pieces.engine.local[0] == 1
        trial = Objects(place)
        before = shared.calls
        STATEMENTS[name](trial)
        calls = int(place.pieces.engine.sum([shared.calls - before if failing else 0]))
        o = Objects(place)
        for call in sorted({0, calls - 1} if calls else ()):
            seen = own_parts(o)
            if failing:
                shared.at, shared.error = shared.calls + call, error
            others = type(error) if isinstance(error, LagpuError) else ProcessFailed
            with pytest.raises(type(error) if failing else others) as raised:
                STATEMENTS[name](o)
            assert failing or "process 1 of 3: " in str(raised.value)
            assert own_parts(o) == seen
        STATEMENTS[name](o)
        assert own_parts(o) == own_parts(trial)
        return calls

    found = on_grids(3, program, place=failing_place)
    assert isinstance(found[0], int), found
    assert found == [found[0]] * 3


def on_one_rank(method, error):
    """A program that makes objects, then has a place's method fail on the second rank."""

    def program(place, work):
        o = Few(place, 33)
        seen = plain([o.u, o.w, o.A])
        first = place.pieces.places[0]
        if place.pieces.engine.local[0] == 1:

            def fail(*_args):
                delattr(first, method)
                raise error

            setattr(first, method, fail)
        with pytest.raises(LagpuError) as raised:
            work(o)
        assert plain([o.u, o.w, o.A]) == seen
        work(o)
        return raised.type

    return program


@pytest.mark.parametrize(
    ("method", "work"),
    [
        ("vector_set", lambda o: o.u.__setitem__(2, 5)),
        ("vector_remove", lambda o: o.u.__delitem__(2)),
        ("vector", lambda o: Vector(INT64, 5, like=o.u)),
        ("vector", lambda o: o.u.clear()),
        ("set_values", lambda o: o.u.backend.set_values(o.u.data, np.arange(o.u.nvals))),
        ("isequal", lambda o: o.A.is_symmetric),
        ("matrix_to_csc", lambda o: semiring.plus_times(o.A @ o.u).new()),
        ("matrix_from_csc", lambda o: semiring.plus_times(o.A @ o.u).new()),  # of the transpose
        ("vector_to_coo", lambda o: o.u.to_coo()),
        ("nvals", lambda o: o.u.nvals),
        ("vector_from_coo", lambda o: o.u.resize(9)),
    ],
)
def test_what_is_no_statement_fails(method, work):
    program = on_one_rank(method, OutOfMemory("full"))
    found = on_grids(3, lambda place: program(place, work), place=CpuBackendOfItsOwn)
    assert found == [OutOfMemory] * 3


class CpuBackendOfItsOwn(CpuBackend):
    """One whose methods a test may replace."""


def test_a_transpose_is_remembered_by_all_or_none():
    def program(place):
        o = Few(place, 33)
        first = place.pieces.places[0]
        if place.pieces.engine.local[0] == 1:

            def fail(*_args):
                del first.execute
                raise OutOfMemory("full")

            first.execute = fail
        with pytest.raises(OutOfMemory):
            semiring.plus_times(o.A @ o.u).new()
        assert o.A.data.transpose is None
        semiring.plus_times(o.A @ o.u).new()
        return o.A.data.transpose is not None

    assert on_grids(3, program, place=CpuBackendOfItsOwn) == [True] * 3


def test_an_interrupt_behind_the_agreement_comes_behind_the_changes():
    def program(place):
        u = Vector.from_dense(np.arange(9), backend=place)
        v, engine = u.dup(), place.pieces.engine
        agree, interrupted = engine.agree, []

        def late():
            agree()
            if engine.local[0] == 0:
                signal.raise_signal(signal.SIGINT)

        engine.agree = late
        try:
            v(accum=binary.plus) << u
        except KeyboardInterrupt:
            interrupted.append(True)
        engine.agree = agree
        return interrupted, v.to_coo()[1].tolist()

    found = on_grids(2, program, first_here=True)
    assert [x for x, _ in found] == [[True], []]
    assert [values for _, values in found] == [list(range(0, 18, 2))] * 2


def test_what_all_refuse():
    def program(place):
        with pytest.raises(InvalidValue, match="given twice"):
            Matrix.from_coo([1, 1], [2, 2], [3, 4], nrows=3, ncols=3, backend=place)
        return Few(place, 9).u.nvals

    found = on_grids(2, program)
    assert found[0] == found[1] == Few("cpu", 9).u.nvals


def test_a_trace_of_each_process_has_its_own_pieces():
    def program(place):
        o = Few(place, 33)
        with lagpu.trace() as t:
            o.v << semiring.plus_times(o.u @ o.A)
        (row,) = t.rows
        return row.edges, row.nvals_out, row.reason.startswith("2 pieces; ")

    P = Few("cpu", 33)
    with lagpu.trace() as one:
        P.v << semiring.plus_times(P.u @ P.A)
    first, second = on_grids(2, program)
    assert first[0] + second[0] == one.rows[0].edges
    assert first[1:] == second[1:] == (one.rows[0].nvals_out, True)


def test_a_program_that_differs_is_noticed():
    def program(place):
        u = Vector.from_dense(np.arange(9), backend=place)
        if place.pieces.engine.local[0]:
            u << u.apply("ainv")
        else:
            u.clear()

    for found in on_grids(2, program):
        assert isinstance(found, ProcessFailed)
        assert "process 0 is at vector_clear (statement " in str(found)
        assert "process 1 is at execute (statement " in str(found)


def test_the_memory_of_all_pieces_counts():
    free = iter([7_000, 5_000, 9_000])

    class Small(CpuBackend):
        def __init__(self):
            self.free = next(free)

        def free_bytes(self):
            return self.free

    assert on_grids(3, lambda place: place.free_bytes(), place=Small) == [5_000] * 3


def test_a_host_holds_an_operand_for_each_of_its_processes(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "lagpu.backends.grid.exchange.require", lambda nbytes, *_: asked.append(nbytes)
    )

    def program(place):
        o = Few(place, 33)
        semiring.plus_times(o.A @ o.B).new()
        return o.A.nvals * 56

    apart, beside = on_grids(2, program), on_grids(2, program, beside=2)
    assert asked == [*apart, *(2 * nbytes for nbytes in beside)]
