"""Crosschecks of loops that run as one program with their statements."""

import numpy as np
import pytest
from crosschecked import BOTH, SEARCHES
from faulty import with_kernels, with_loops, with_operations
from loop_names import GRID

from lagpu import (
    FP32,
    FP64,
    INT64,
    Matrix,
    Scalar,
    Vector,
    algorithms,
    binary,
    crosscheck,
    generators,
    loop,
    semiring,
    unary,
)
from lagpu.errors import CrosscheckFailed, InvalidValue, OutOfMemory

ANY, ALONE = "any of the candidates", "indices only, as any chose the values"
FREE = "not compared, as its indices depend on what any chose"


def rules(report):
    """Return, for each loop, how its results were compared."""
    assert all(row.rule.startswith("as one program on sim, ") for row in report.loops)
    found = [row.rule.partition(": ")[2] for row in report.loops]
    return [[rule for rule in (ANY, ALONE, FREE, "exactly", "within") if rule in x] for x in found]


def vector(A, *values, dtype=INT64):
    return Vector.from_dense([*values], dtype=dtype, like=A)


@pytest.mark.parametrize("backends", [BOTH, ("sim",)])
@pytest.mark.parametrize("search", SEARCHES, ids=lambda f: f.__name__)
def test_a_loop_gives_the_same_as_one_program(search, graph, backends):
    report = crosscheck(search, graph, 1, backends=backends)
    (row,) = report.loops
    assert row.rule.startswith(f"as one program on sim, {GRID}: ")
    assert (row.runs, "in loop(until_empty=frontier)" in row.place.text) == (1, True)
    wanted = {"bfs": ANY, "bfs_parents": ANY, "count_shortest_paths": "within 1e-11"}
    assert wanted.get(search.__name__, "exactly") in row.rule
    assert str(row) in repr(report)
    assert report.result is not None
    assert report.notes == []


def test_loops_without_a_fused_form_are_noted(graph):
    report = crosscheck(lambda A: A.nvals, graph, backends=("sim",))
    assert report.notes == ["no loop ran as one program"]
    assert crosscheck(lambda A: A.nvals, graph, backends=BOTH).notes == []


@pytest.mark.parametrize("oracle", [(), ("cpu",)], ids=["by itself", "with an oracle"])
def test_a_fused_kernel_that_is_wrong(graph, oracle):
    place = with_loops(lambda place, w: place.vector_set(w, 7, np.int32(99)))
    with pytest.raises(CrosscheckFailed) as caught:
        crosscheck(algorithms.bfs_levels, graph, 1, backends=(*oracle, place))
    found = caught.value.report.difference
    level = algorithms.bfs_levels(graph, 1).get(7)
    assert found.rows == ((7, level, 99, ""),)
    assert (found.formula, found.place.text) == ("levels(frontier.S) << depth",) * 2
    assert "crosscheck of bfs_levels: at the end of the loop (lagpu/algorithms/bfs.py:" in (
        str(caught.value)
    )
    assert f"grid search: at 7 faulty eager has {level}, faulty fused 99." in str(caught.value)
    place = with_loops(lambda place, w: place.vector_remove(w, 7))
    with pytest.raises(CrosscheckFailed, match=r"at 7 faulty eager has .*, faulty fused none"):
        crosscheck(algorithms.bfs_parents, graph, 1, backends=(*oracle, place))


def test_what_follows_reads_what_the_fused_loop_has_written(graph):
    seen = []
    place = with_loops(lambda place, w: seen.append(w))

    def program(A):
        levels = algorithms.bfs_levels(A, 1)
        seen.append(levels.data.parts[1])
        return levels

    report = crosscheck(program, graph, backends=("cpu", place))
    assert seen[0] is seen[1], "the handle is another one"
    assert report.result.isequal(algorithms.bfs_levels(graph, 1))


def test_a_sweep_and_a_loop_over_matrices_are_compared_too():
    grid = generators.road(8)
    report = crosscheck(algorithms.betweenness_centrality, grid, backends=BOTH)
    ways = [row.rule.partition(": ")[0].partition(", ")[2] for row in report.loops]
    assert ways == ["grid search", "per-source search", "per-source sweep"]

    report = crosscheck(algorithms.betweenness_estimate, grid, 3, backends=BOTH, seed=1)
    assert "sweep: within 1e-11" in report.loops[-1].rule

    def later(place, w):  # the sums of a sweep
        if place.last_loop == "spoiled":
            place.vector_set(w, 7, np.float64(9))
        place.last_loop = "spoiled"

    place = with_loops(later)
    with pytest.raises(CrosscheckFailed, match=r"sweep: at 7 faulty eager has .* fused 9\.0"):
        crosscheck(algorithms.betweenness_estimate, grid, 1, backends=(place,), seed=1)


def test_a_number_is_compared():
    def program(A, u):
        s = Scalar(FP64)
        for _ in loop(times=3):
            u << semiring.plus_times(u @ A)
            s << u.reduce("plus")
        return s

    A = Matrix.from_coo([0, 1], [1, 0], [2.0, 3.0], backend="cpu")
    report = crosscheck(program, A, vector(A, 1, 2, dtype=FP64), backends=BOTH)
    assert report.loops[0].rule.endswith(": within 1e-11")
    assert report.result.value == 48
    place = with_loops(lambda place, w: place.vector_clear(w))  # and the sum is right
    with pytest.raises(CrosscheckFailed, match=r"at 0 faulty eager has 36\.0, faulty fused none"):
        crosscheck(program, A, vector(A, 1, 2, dtype=FP64), backends=(place,))


def test_an_error_says_that_the_loop_was_fused(graph):
    def fail(place, w):
        raise OutOfMemory("gpu: no memory is left.")

    with pytest.raises(OutOfMemory) as caught:
        crosscheck(algorithms.bfs_levels, graph, 1, backends=("cpu", with_loops(fail)))
    (note,) = caught.value.__notes__
    assert note.startswith("crosscheck: on faulty, as one program, lagpu/algorithms/bfs.py:")


def test_rounding_errors_are_relative_to_what_cancels():
    rng = np.random.default_rng(3)
    rows, cols = np.divmod(np.arange(400), 20)
    A = Matrix.from_coo(rows, cols, rng.random(400) / 10, dtype=FP32, nrows=20, ncols=20)

    def power(A, u):
        v, change, s = (Vector(FP32, 20, like=A) for _ in range(3))
        for _ in loop(times=40):  # in the end, the change is what rounding leaves
            v << semiring.plus_times(u @ A)
            v << v / v.reduce("plus")
            change << v - u
            s << change.apply(unary.abs)
            u << v
        return s

    u = Vector.from_dense(rng.random(20), dtype=FP32)
    report = crosscheck(power, A, u, backends=BOTH)
    assert report.result.reduce("max").new().value < 1e-6
    assert report.loops[0].rule.endswith(": within 0.0001")


def test_a_choice_is_followed_as_far_as_it_is_copied(graph):
    """In a loop each result has the values that another run may choose, while they are copied."""

    def program(A, kind):
        n = A.nrows
        u, mask = vector(A, *range(n)), Vector.from_coo([1, 5], [1, 0], size=n, like=A)
        chosen, out = Vector(INT64, n, like=A), vector(A, *range(n))
        computed = Vector(FP64, n, like=A)
        if kind == "copy":
            for _ in loop(times=2):
                chosen << semiring.any_first(u @ A)
                computed << chosen
        elif kind == "part":
            for _ in loop(times=2):
                chosen << semiring.any_first(u @ A)
                out(mask.V) << chosen
        elif kind == "old":
            for _ in loop(times=2):
                chosen << semiring.any_first(u @ A)
                chosen(mask.S) << mask
        elif kind == "computed":
            for _ in loop(times=2):
                chosen << semiring.any_first(u @ A)
                out << chosen.apply(binary.plus, right=1)
        elif kind == "again":
            for _ in loop(times=2):
                chosen << semiring.any_first(u @ A)
                out << semiring.any_first(chosen @ A)
        elif kind == "gone":
            for _ in loop(times=2):
                chosen << semiring.any_first(u @ A)
                chosen << 7
        elif kind == "valued":
            for _ in loop(times=2):
                chosen << semiring.any_first(u @ A)
                out(chosen.V, replace=True) << 7
        elif kind == "masked":
            for _ in loop(times=2):
                chosen << semiring.any_first(u @ A)
                out(chosen.S, replace=True) << 7
        return out

    wanted = {
        "copy": [ANY],
        "part": [ANY],
        "old": [ANY],
        "computed": [ANY, ALONE],
        "again": [ANY, ALONE],
        "gone": ["exactly"],
        "valued": [ANY, FREE],
        "masked": [ANY, "exactly"],
    }
    for kind, expected in wanted.items():
        assert rules(crosscheck(program, graph, kind, backends=("sim",))) == [expected], kind


def test_a_number_that_depends_on_a_choice_ends_the_comparison(graph):
    def program(A):
        s, u = Scalar(INT64), vector(A, *range(A.nrows))
        chosen, out = Vector(INT64, A.nrows, like=A), Vector(INT64, A.nrows, like=A)
        for _ in loop(times=2):
            chosen << semiring.any_first(u @ A)
            s << chosen.reduce("plus")
            out << s
        return out

    report = crosscheck(program, graph, backends=("sim",))
    assert rules(report) == [[FREE]]
    assert report.result.nvals == graph.nrows


def test_a_number_that_any_chooses_is_free(graph):
    def program(A):
        s, u = Scalar(INT64), vector(A, *range(A.nrows))
        for _ in loop(times=2):
            u << u.apply(binary.plus, right=1)
            s << u.reduce("any")
        return s

    place = with_loops(lambda place, w: None)
    right = place.plan_loop

    def other_choice(body, turns):
        planned = right(body, turns)
        run, s = planned.run, body[-1].out
        planned.run = lambda: (run(), s.set(np.int64(2 + graph.nrows // 2)))
        return planned

    place.plan_loop = other_choice
    report = crosscheck(program, graph, backends=(place,))
    assert report.loops[0].rule.endswith(FREE)


def test_what_was_chosen_before_the_loop_is_the_same_in_both_runs(graph):
    def program(A):
        u = semiring.any_first(vector(A, *range(A.nrows)) @ A).new()
        for _ in loop(times=2):
            u << u.apply(binary.plus, right=1)
        return u

    assert rules(crosscheck(program, graph, backends=("sim",))) == [["exactly"]]


def test_a_wrong_choice_is_found_on_one_backend(graph):
    def wrong_one(place, right, s):
        right(s)
        indices, _ = place.vector_to_coo(s.out)
        place.vector_set(s.out, int(indices[-1]), np.int32(indices[-1]))

    with pytest.raises(CrosscheckFailed, match="any may choose one of 1"):
        crosscheck(algorithms.bfs_parents, graph, 1, backends=(with_operations(mxv=wrong_one),))


PARENT = "assign<LG_X0>(s.x0, v, depth, z);"


def test_wrong_parents_of_a_fused_kernel(graph):
    place, device = with_kernels(PARENT, PARENT.replace("z", "z + 1"))
    with pytest.raises(CrosscheckFailed, match="any may choose one of") as caught:
        crosscheck(algorithms.bfs_parents, graph, 1, backends=(place,))
    assert device.changed, "the fault is not in this text any more"
    found = caught.value.report.difference
    reached = algorithms.bfs_levels(graph, 1)
    for index, here, there, _ in found.rows:
        around = graph[:, index].new().to_coo()[0]
        above = [k for k in around if reached.get(int(k)) == reached.get(index) - 1]
        assert there not in (above or [1]), "a parent after all"
        assert here != there


def test_wrong_parents_of_several_fused_searches(graph):
    def wrong(place, C):
        _, _, values = place.matrix_to_csc(C)
        values[-1] += 1
        place.set_values(C, values)

    report = crosscheck(algorithms.bfs_parents_multi, graph, [1, 2], backends=("sim",))
    assert rules(report) == [[ANY, ALONE]]
    place = with_loops(wrong)
    with pytest.raises(CrosscheckFailed, match="any may choose one of"):
        crosscheck(algorithms.bfs_parents_multi, graph, [1, 2], backends=(place,))


def test_a_backend_with_one_way_to_run_loops(graph):
    with pytest.raises(InvalidValue, match=r"cpu runs every loop eagerly.* Give two"):
        crosscheck(algorithms.bfs_levels, graph, 1, backends=("cpu",))
