"""The kernel of a known loop is kept: it is the one that would be written for the operands."""

import functools
import gc
import sys
import tempfile
import weakref
from pathlib import Path

import numpy as np
import pytest
from drawn_loops import NAMES, load, random_graph, vector_loops
from hypothesis import strategies as st
from programs import relax
from strategies import for_all

import lagpu
from lagpu import FP64, INT32, INT64, Vector, binary, loop, semiring
from lagpu.backends.gpu.fused.program import run as program_run
from lagpu.backends.gpu.fused.program.run import GeneratedLoop
from lagpu.loops import loop as known

N = 70
RECORDED = 1  # texts of a loop that is not known yet: its kernel stays with its signature


class Written:
    """The texts that are written; each program that runs is the one that they would give."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr(known, "_known", {})
        monkeypatch.setattr(program_run, "_programs", {})
        self.count, self.kernels = 0, []
        inner, write = GeneratedLoop._program, program_run.write_program

        def counted(*given):
            self.count += 1
            return write(*given)

        def checked(loop, log):
            found, operands = inner(loop, log)
            again = write(loop._operands(log is not None), 0)
            assert (found.kernel, found.counters) == (again.kernel, again.counters)
            self.kernels.append(found.kernel)
            return found, operands

        monkeypatch.setattr(program_run, "write_program", counted)
        monkeypatch.setattr(GeneratedLoop, "_program", checked)


@pytest.fixture
def written(monkeypatch):
    return Written(monkeypatch)


def vector(how, dtype, place, rng, n=N):
    """A vector in one of its forms: its values stored, one value for all, or none."""
    where = np.flatnonzero(rng.random(n) < 0.4)
    if how == "one entry":
        x = Vector(dtype, n, backend=place)
        x[n // 2] = 1
    elif how in ("one value", "zeros"):
        x = Vector.from_coo(where, dtype.numpy.type(how != "zeros"), dtype, size=n, backend=place)
    elif how == "full":
        x = Vector.from_dense(rng.integers(0, 4, n).astype(dtype.numpy), backend=place)
    else:
        values = rng.integers(0, 4, len(where)).astype(dtype.numpy)
        x = Vector.from_coo(where, values, dtype, size=n, backend=place)
    if how == "empty":
        x.clear()
    if how.startswith("bitmap"):
        x.data.to_bitmap()
    return x


FORMS = ("one entry", "one value", "zeros", "full", "empty", "listed", "bitmap")


def graph(place, seed, pointers=np.int32):
    """A graph whose columns begin at numbers of this type, INT64 as those of a larger one."""
    A = random_graph(N, 3 * N, place, seed, directed=seed % 2 == 0)
    A.data.store.col_ptr = A.data.store.col_ptr.astype(pointers)
    return A


def run(function, *args):
    """Run a loop; its objects are then as it leaves them on cpu, statement by statement."""
    expected = [x if isinstance(x, int) else x.to("cpu") for x in args]
    with lagpu.eager():
        function(*expected)
    function(*args)
    assert args[0].backend.last_loop.startswith(("generated loop: ", "no iteration"))
    for x, y in zip(args, expected, strict=True):
        assert x is y or x.to("cpu").isequal(y, check_dtype=True)


def masked(A, m, x, y):
    for _ in loop(times=2):
        x(m.V, accum=binary.plus) << semiring.plus_times(y @ A)
        y(~m.V) << x


def started(place, seed, mask="listed"):
    rng = np.random.default_rng(seed)
    return (
        vector(mask, INT64, place, rng),
        *(vector("listed", INT64, place, rng) for _ in range(2)),
    )


def test_a_loop_that_was_seen_has_no_text_written(place, written):
    for seed in range(5):
        run(masked, graph(place, seed), *started(place, seed))
    assert written.count == RECORDED + 1


def test_another_size_is_another_record(place, written):
    for n in (N, 33, N):
        A, rng = random_graph(n, n, place), np.random.default_rng(n)
        run(masked, A, *(vector("listed", INT64, place, rng, n) for _ in "mxy"))
    assert written.count == 2 * RECORDED  # the first one is kept by its signature


def test_indices_of_another_width_have_another_kernel(place, written):
    for seed in range(3):
        for pointers in (np.int64, np.int32):
            run(masked, graph(place, seed, pointers), *started(place, seed))
    assert written.count == RECORDED + 2
    assert len(set(written.kernels)) == 2


def test_a_mask_of_other_contents_has_another_kernel(place, written):
    """Its entries have values to look at, are all true, or none is."""
    for seed in range(3):
        for mask in FORMS:
            run(masked, graph(place, 1), *started(place, seed, mask))
    assert written.count == RECORDED + 3
    assert len(set(written.kernels)) == 3


def test_forms_of_vectors_and_matrices_share_a_kernel(place, written):
    rng = np.random.default_rng(1)
    for k, (form, other) in enumerate(zip(FORMS, FORMS[::-1], strict=True)):
        A = graph(place, k)
        if k % 3 == 0:
            A.orientation = "csc"
        m = vector("listed", INT64, place, rng)
        run(masked, A, m, *(vector(how, INT64, place, rng) for how in (form, other)))
    assert written.count == RECORDED + 1


def double(x, watched):
    for _ in loop(until_unchanged=watched, times=2):
        x << x.apply(binary.plus, right=1)


def test_a_condition_on_a_vector_beside_the_body_is_part_of_the_kernel(place, written):
    """The record does not say what it is like."""
    for dtype in (INT64, FP64, INT32, INT64):
        rng = np.random.default_rng(2)
        run(double, vector("listed", INT64, place, rng), vector("listed", dtype, place, rng))
    assert written.count == 4
    assert len(set(written.kernels)) == 3


def until(x, y, times):
    ends = {"until_empty": x} if times else {"until_unchanged": x}
    for _ in loop(**ends, times=times or 3):
        y << x
        x << x.select("valuegt", 2)
        x << x.apply(binary.minus, right=1)


def test_another_condition_is_another_kernel(place, written):
    rng = np.random.default_rng(3)
    for times in (0, 5, 0, 5, 1):
        run(until, *(vector("listed", INT64, place, rng) for _ in "xy"), times)
    assert written.count == RECORDED + 2
    assert len(set(written.kernels)) == 2


def test_what_is_kept_keeps_no_operand(place, own_garbage):
    rng = np.random.default_rng(4)
    for _ in range(2):
        A = graph(place, 2)
        args = vector("listed", INT64, place, rng), *started(place, 4)[1:]
        relax(A, *args)
        assert place.last_loop.startswith("generated loop: ")
        kept = [weakref.ref(A.data.store), *(weakref.ref(x.data.values) for x in args[:2])]
        del A, args
        gc.collect()
        assert not any(x() is not None for x in kept)


@for_all(cpu=1, compiled=12)
def test_random_bodies_on_varied_operands(backend, draw):
    source, seed = draw(vector_loops(), label="loop"), draw(st.integers(0, 99), label="seed")
    if backend.name == "cpu":
        return
    rng = np.random.default_rng(seed)
    function = load(source, Path(tempfile.mkdtemp()) / "body.py")
    with pytest.MonkeyPatch.context() as monkeypatch:
        Written(monkeypatch)
        monkeypatch.setattr(sys, "gettrace", lambda: None)  # Hypothesis may trace; a debugger does
        for k in range(8):
            A = graph(backend, k, (np.int32, np.int64)[rng.integers(2)])
            A.orientation = ("auto", "csc")[rng.integers(2)]
            forms = [FORMS[rng.integers(len(FORMS))] for _ in NAMES]
            types = zip(forms, NAMES.values(), strict=True)
            run(
                functools.partial(function, r=None, s=None),
                A,
                *(vector(how, dtype, backend, rng) for how, dtype in types),
            )
