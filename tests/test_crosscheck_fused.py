"""Crosschecks of fused loops and eager ones, on one backend."""

import numpy as np
import pytest
from crosschecked import SEARCHES
from faulty import with_methods

from lagpu import (
    Vector,
    algorithms,
    binary,
    crosscheck,
)
from lagpu.errors import CrosscheckFailed, InvalidValue


@pytest.mark.parametrize("search", SEARCHES, ids=lambda f: f.__name__)
def test_fused_and_eager_agree(search, graph):
    report = crosscheck(search, graph, 1, backends="sim")
    assert report.notes[0].startswith("the last loop ran fused: one kernel")
    rules = {row.formula: row.rule for row in report.rows if "eager and fused" in row.rule}
    alone, exactly = "indices alone, as any chose the values", "exactly"
    wanted = {
        "bfs": {"result[0]": exactly, "result[1]": alone},
        "bfs_levels": {"result": exactly},
        "bfs_parents": {"result": alone},
        "count_shortest_paths": {"result": "within 1e-11"},
    }[search.__name__]
    assert rules == {name: f"eager and fused, {rule}" for name, rule in wanted.items()}


def test_a_fused_kernel_that_is_wrong(graph):
    place = with_methods()
    right = place.run_loop

    def wrong(statements, *more):
        done = right(statements, *more)
        place.vector_set(statements[0].w, 7, np.int32(99))
        return done

    place.run_loop = wrong
    with pytest.raises(CrosscheckFailed) as caught:
        crosscheck(algorithms.bfs_levels, graph, 1, backends=(place,))
    found = caught.value.report.difference
    level = algorithms.bfs_levels(graph, 1).get(7)
    assert found.rows == ((7, level, 99, ""),)
    assert str(caught.value).startswith(
        "crosscheck of bfs_levels: at the end: result: "
        f"at 7 faulty eager has {level}, faulty fused 99."
    )
    place.run_loop = lambda statements, *more: (
        right(statements, *more) and place.vector_remove(statements[0].w, 7) is None
    )
    with pytest.raises(CrosscheckFailed, match=r"at 7 faulty eager has .*, faulty fused none"):
        crosscheck(algorithms.bfs_parents, graph, 1, backends=(place,))


def test_numbers_that_depend_on_a_choice_are_free(graph):
    def program(A):
        parents = algorithms.bfs_parents(A, 1)
        return parents.reduce("plus").new(), parents.nvals, float(parents.get(5))

    report = crosscheck(program, graph, backends=("sim",))
    assert [row.rule for row in report.rows[-3:]] == [
        "eager and fused, indices alone, as any chose the values"
    ] * 3


def test_a_choice_is_forgotten_when_it_is_overwritten(graph):
    def program(A):
        source = Vector.from_coo([1], [1], size=A.nrows, like=A)
        pattern = algorithms.bfs_levels(A, 1)
        parents = algorithms.bfs_parents(A, 1)
        part, gone, valued, masked = parents.dup(), parents.dup(), pattern.dup(), pattern.dup()
        added = parents.dup()
        added(accum=binary.plus) << 7
        part(source.S) << 7
        gone << 7
        valued(parents.V, replace=True) << 7
        masked(parents.S, replace=True) << 7
        return added, part, gone, valued, masked

    report = crosscheck(program, graph, backends=("sim",))
    alone = ["indices alone" in row.rule for row in report.rows[-5:]]
    assert alone == [True, True, False, True, False]


def test_a_wrong_choice_is_found_on_one_backend(graph):
    def wrong_one(place, right, w, desc, A, u, how):
        right(w, desc, A, u, how)
        indices, _ = place.vector_to_coo(w)
        place.vector_set(w, int(indices[-1]), np.int32(indices[-1]))

    with pytest.raises(CrosscheckFailed, match="any may choose one of 1"):
        crosscheck(algorithms.bfs_parents, graph, 1, backends=(with_methods(mxv=wrong_one),))


def test_a_backend_with_one_way_to_run_loops(graph):
    with pytest.raises(InvalidValue, match=r"cpu runs loops in one way only.* Give two"):
        crosscheck(algorithms.bfs_levels, graph, 1, backends=("cpu",))
