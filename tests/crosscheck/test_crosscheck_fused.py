"""Crosschecks of fused loops and eager ones, on one backend."""

import numpy as np
import pytest
from crosschecked import SEARCHES
from faulty import with_kernels, with_loops, with_methods, with_operations
from loop_names import GRID

from lagpu import (
    FP64,
    INT64,
    Matrix,
    Vector,
    algorithms,
    binary,
    crosscheck,
    semiring,
)
from lagpu.errors import CrosscheckFailed, InvalidValue


@pytest.mark.parametrize("search", SEARCHES, ids=lambda f: f.__name__)
def test_fused_and_eager_agree(search, graph):
    report = crosscheck(search, graph, 1, backends="sim")
    assert report.notes[0].startswith(f"the last loop ran {GRID}: ")
    rules = {row.formula: row.rule for row in report.rows if "eager and fused" in row.rule}
    met, exactly = "any of the candidates", "exactly"
    wanted = {
        "bfs": {"result[0]": exactly, "result[1]": met},
        "bfs_levels": {"result": exactly},
        "bfs_parents": {"result": met},
        "count_shortest_paths": {"result": "within 1e-11"},
    }[search.__name__]
    assert rules == {name: f"eager and fused, {rule}" for name, rule in wanted.items()}


def test_a_fused_kernel_that_is_wrong(graph):
    place = with_loops(lambda place, w: place.vector_set(w, 7, np.int32(99)))
    with pytest.raises(CrosscheckFailed) as caught:
        crosscheck(algorithms.bfs_levels, graph, 1, backends=(place,))
    found = caught.value.report.difference
    level = algorithms.bfs_levels(graph, 1).get(7)
    assert found.rows == ((7, level, 99, ""),)
    assert str(caught.value).startswith(
        "crosscheck of bfs_levels: at the end: result: "
        f"at 7 faulty eager has {level}, faulty fused 99."
    )
    place = with_loops(lambda place, w: place.vector_remove(w, 7))
    with pytest.raises(CrosscheckFailed, match=r"at 7 faulty eager has .*, faulty fused none"):
        crosscheck(algorithms.bfs_parents, graph, 1, backends=(place,))


def test_numbers_that_depend_on_a_choice_are_free(graph):
    def program(A):
        parents = algorithms.bfs_parents(A, 1)
        return parents.reduce("plus").new(), parents.nvals, float(parents.get(5))

    report = crosscheck(program, graph, backends=("sim",))
    assert [row.rule for row in report.rows[-3:]] == [
        "eager and fused, indices only, as any chose the values"
    ] * 3


def test_a_choice_is_forgotten_when_it_is_overwritten(graph):
    def program(A):
        source = Vector.from_coo([1], [1], size=A.nrows, like=A)
        pattern = algorithms.bfs_levels(A, 1)
        parents = algorithms.bfs_parents(A, 1)
        part, gone, valued, masked = parents.dup(), parents.dup(), pattern.dup(), pattern.dup()
        added, some = parents.dup(), parents.dup()
        added(accum=binary.plus) << 7
        part(source.S) << 7
        gone << 7
        valued(parents.V, replace=True) << 7
        masked(parents.S, replace=True) << 7
        some[[1, 2]] << 7
        return added, part, gone, valued, masked, some

    report = crosscheck(program, graph, backends=("sim",))
    exact = [row.rule.endswith("exactly") for row in report.rows[-6:]]
    assert exact == [False, False, True, False, True, False]


def test_choices_in_matrices_are_forgotten_when_they_are_overwritten(graph):
    def program(A):
        parents = algorithms.bfs_parents_multi(A, [1, 2])
        whole, part = parents.dup(), parents.dup()
        whole << Matrix.from_coo([0], [0], [1], nrows=2, ncols=A.nrows, like=A)
        part[[0], [0]] << 1
        return whole, part

    report = crosscheck(program, graph, backends=("sim",))
    assert [row.rule for row in report.rows[-2:]] == [
        "eager and fused, exactly",
        "eager and fused, indices only, as any chose the values",
    ]


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

    report = crosscheck(algorithms.bfs_parents_multi, graph, [1, 2], backends=(with_methods(),))
    assert report.rows[-1].rule == "eager and fused, any of the candidates"
    place = with_loops(wrong)
    with pytest.raises(CrosscheckFailed, match="any may choose one of"):
        crosscheck(algorithms.bfs_parents_multi, graph, [1, 2], backends=(place,))


def test_a_choice_is_followed_as_far_as_it_is_copied(graph):
    def program(A):
        mask = Vector.from_coo([1, 5], [1, 0], size=A.nrows, like=A)
        parents = algorithms.bfs_parents(A, 1)
        copy, part, old = parents.dup(FP64), Vector(INT64, A.nrows, like=A), parents.dup()
        part(mask.V) << parents
        old(mask.S) << mask
        computed = parents.apply(binary.plus, right=1).new()
        again = Vector(INT64, A.nrows, like=A)
        again << semiring.any_first(parents @ A)
        edited = parents.dup()
        edited[1] = 1
        return copy, part, old, computed, again, edited

    report = crosscheck(program, graph, backends=("sim",))
    rules = [row.rule.removeprefix("eager and fused, ") for row in report.rows[-6:]]
    alone = "indices only, as any chose the values"
    assert rules == [*["any of the candidates"] * 3, *[alone] * 3]


def results(kind):
    """Return a program whose levels leave it in one way or another."""

    def program(A, out):
        levels = algorithms.bfs_levels(A, 1)
        numbers = levels.to_dense(-1)
        if kind == "written":
            out["levels"][0](levels.S) << levels
        elif kind == "filled":
            out["array"][:] = numbers
        else:
            ways = {
                "array": numbers,
                "table": numbers.reshape(-1, 2),
                "number": int(levels.reduce("plus").new()),
                "text": ",".join(map(str, numbers)),
                "texts": numbers.astype(str),
                "transposed": levels.diag().T,
            }
            return [ways[kind]]
        return None

    return program


@pytest.mark.parametrize(
    "kind", ["written", "filled", "array", "table", "number", "text", "texts", "transposed"]
)
def test_results_and_arguments_of_all_kinds(graph, kind):
    out = {
        "levels": [Vector(INT64, graph.nrows, backend="cpu")],
        "array": np.zeros(graph.nrows, np.int32),
        "unchanged": "text",
    }
    report = crosscheck(results(kind), graph, out, backends=(with_methods(),))
    wanted = {"written": "args[1]['levels'][0]", "filled": "args[1]['array']"}.get(
        kind, "result[0]"
    )
    rows = [(row.formula, row.rule) for row in report.rows if "eager" in row.rule]
    assert rows == [(wanted, "eager and fused, exactly")]
    assert len(report.notes) == 1
    assert (out["levels"][0].nvals, out["array"].any()) == (0, False), "copies were written"

    place = with_loops(lambda place, w: place.vector_set(w, 7, np.int32(99)))
    with pytest.raises(CrosscheckFailed, match="faulty eager has") as caught:
        crosscheck(results(kind), graph, out, backends=(place,))
    assert caught.value.report.difference.what == wanted


def test_what_cannot_be_compared_is_named(graph):
    def program(A):
        levels = algorithms.bfs_levels(A, 1)
        return {"of": (x for x in levels.to_dense(-1)), "none": None}

    report = crosscheck(program, graph, backends=("sim",))
    loop = f"the last loop ran {GRID}: the body is a search from one frontier"
    nothing = "nothing of the result could be compared"
    assert report.notes == ["result['of']: generator was not compared", nothing, loop]

    def chosen(A):
        parents = algorithms.bfs_parents(A, 1)
        return str(parents.to_dense(-1)), np.zeros(int(parents.get(2))), float(parents.get(2))

    report = crosscheck(chosen, graph, backends=("sim",))
    assert report.rows[-1].rule.startswith("eager and fused, indices only")
    assert crosscheck(lambda A: None, graph, backends=("sim",)).notes == [
        nothing,
        "no loop ran as one program",
    ]


def test_results_of_different_kinds_and_lengths(graph):
    seen = []

    def program(A, *kinds):
        seen.append(None)
        return kinds[len(seen) % 2]

    for kinds, what in (
        (([1], [1, 2]), "result: faulty eager has 2 parts, faulty fused 1 parts"),
        ((np.zeros(3), np.zeros(4)), r"result: faulty eager has \(4,\), faulty fused \(3,\)"),
        (("a" * 99, "b"), "result: faulty eager has 'b', faulty fused 'aaa"),
        ((None, 3), "result: faulty eager has 3, faulty fused None"),
    ):
        with pytest.raises(CrosscheckFailed, match=what):
            crosscheck(program, graph, *kinds, backends=(with_methods(),))

    def chosen(A, *kinds):
        algorithms.bfs_parents(A, 1).get(2)
        return program(A, *kinds)

    for kinds in ((np.zeros(3), np.zeros(4)), ("a", "b")):
        report = crosscheck(chosen, graph, *kinds, backends=("sim",))
        assert "result: was not compared, it may depend on what any chose" in report.notes


def test_a_backend_with_one_way_to_run_loops(graph):
    with pytest.raises(InvalidValue, match=r"cpu runs every loop eagerly.* Give two"):
        crosscheck(algorithms.bfs_levels, graph, 1, backends=("cpu",))
