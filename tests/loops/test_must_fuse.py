"""``with lagpu.fused():`` raises where a loop is not one program."""

import pytest
from loop_names import GENERATED, SWEEP, loop_name

import lagpu
from lagpu import INT64, Matrix, Vector, algorithms, backends, generators, loop, semiring, sweep
from lagpu.errors import NotSupported

REMEDY = r"\. Change the body, or take the loop out of lagpu\.fused\(\)\."


def start(place):
    A = Matrix.from_coo([0, 1, 2], [1, 2, 0], 2, INT64, nrows=3, ncols=3, backend=place)
    return A, Vector.from_coo([0], 1, size=3, backend=place)


def known(A, x):
    for _ in loop(times=2):
        x << semiring.plus_times(x @ A)


def test_loops_that_are_one_program_run(place):
    A, x = start(place)
    with lagpu.fused():
        known(A, x)
        known(A, x)  # the second time from the record
        assert loop_name(place) == GENERATED
        algorithms.betweenness_estimate(generators.path(4, backend=place), 1, seed=0)
        assert loop_name(place) == SWEEP
        for _ in loop(until_empty=x, times=0):
            print("no iteration needs no program")
    assert x.to_coo()[1].tolist() == [16]


def printing(A, x):
    for _ in loop(times=2):
        x << semiring.plus_times(x @ A)
        print(end="")


def of_a_known_record(A, x):
    with lagpu.eager():
        known(A, x)


def printing_sweep(A, x):
    for here, _ in sweep(algorithms.bfs_levels(A, 0)):
        x(here.S) << 1
        print(end="")


def nothing():
    for _ in loop(times=2):
        print(end="")


REFUSED = {
    printing: "is not a w << call statement",
    of_a_known_record: r"inside lagpu\.eager\(\)",
    printing_sweep: "is not a w << call statement",
}


@pytest.mark.parametrize("program", REFUSED, ids=lambda f: f.__name__)
def test_the_reason_is_raised_before_anything_runs(place, program):
    A, x = start(place)
    with lagpu.fused(), pytest.raises(NotSupported, match=REFUSED[program] + REMEDY) as caught:
        program(A, x)
    assert str(caught.value).startswith(f"loop: it does not run as one program on {place.name}: ")
    assert x.to_coo()[1].tolist() == [1], "it has run"
    program(A, x)  # outside it runs
    assert x.to_coo()[1].tolist() != [1]


def test_what_the_backend_refuses_raises_too(place):
    A, x = start(place)

    def body():
        for _ in loop(times=2):
            x << semiring.plus_times(x @ A, kernel="push_list")

    with lagpu.fused(), pytest.raises(NotSupported, match=REMEDY):
        body()
    assert x.to_coo()[1].tolist() == [1]


def test_a_backend_that_never_fuses_requires_what_every_one_does(place):
    place = backends.get("cpu")
    A, x = start(place)
    with lagpu.fused():
        known(A, x)
        assert place.last_loop == "eager: this backend runs each statement by itself"
        for program in (printing, printing_sweep):
            with pytest.raises(NotSupported, match=r"on any backend: line .* is not a w << call"):
                program(A, x)
        with pytest.raises(NotSupported, match="on no backend, or on several"):
            nothing()
    assert x.to_coo()[1].tolist() == [4]


def test_crosschecks_and_traces_inside():
    with lagpu.fused():
        A = generators.path(5, backend="cpu")
        report = lagpu.crosscheck(algorithms.bfs_levels, A, 0, backends=("cpu", "sim"))
        assert len(report.loops) == 1
        B = A.to("sim")
        with lagpu.trace() as t:
            algorithms.bfs_levels(B, 0)
        assert {row.mode for row in t.rows} >= {"fused"}
        with lagpu.trace(fuse=False), pytest.raises(NotSupported, match="on sim: "):
            algorithms.bfs_levels(B, 0)
