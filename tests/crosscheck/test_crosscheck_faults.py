"""Crosschecks: a planted fault is found where it is, with its statement and line."""

import numpy as np
import pytest
from faulty import difference, line_of, with_kernels, with_methods, with_operations

from lagpu import INT64, Matrix, Vector, algorithms, backends, binary, crosscheck, loop, semiring
from lagpu.errors import BackendMismatch, DomainMismatch, InvalidValue, NotSupported


def shortest(A, source):
    distance = Vector(INT64, A.nrows, like=A, name="distance")
    distance[source] = 0
    for _ in loop(until_unchanged=distance):
        distance(accum=binary.min) << semiring.min_plus(distance @ A)
    return distance


@pytest.fixture(scope="module")
def weighted():
    rng = np.random.default_rng(2)
    i, j = np.triu_indices(40, 1)
    keep = rng.random(len(i)) < 0.1
    weights = rng.integers(5, 9, keep.sum())
    rows, cols = np.r_[i[keep], j[keep]], np.r_[j[keep], i[keep]]
    return Matrix.from_coo(rows, cols, np.r_[weights, weights], nrows=40, ncols=40, backend="cpu")


def test_no_fault_is_found_where_there_is_none(graph, weighted):
    place, _ = with_kernels("no such text", "", kernel="push_queue")
    assert crosscheck(shortest, weighted, 0, backends=("cpu", place)).ok
    assert crosscheck(algorithms.bfs_parents, graph, 1, backends=("cpu", with_methods())).ok


def test_a_wrong_identity(weighted):
    place, device = with_kernels("Limits<Z>::largest()", "Z(3)", "struct Min :", "push_queue")
    found = difference(shortest, weighted, 0, faulty=place)
    assert device.changed, "the fault is not in this text any more"
    assert (found.number, found.level) == (3, 0)  # the set entry, the loop's copy, the product
    assert found.place.line == line_of(shortest, "min_plus")
    assert found.place.text == "distance(accum=binary.min) << semiring.min_plus(distance @ A)"
    assert found.formula == "distance(accum=binary.min) << distance min_plus A"
    assert all(x >= 5 and y == 3 for _, x, y, _ in found.rows)
    assert found.count == weighted[0, :].new().nvals


def test_a_mask_ignored(graph):
    right = "return has_entry(words, i) != complement;"
    place, device = with_kernels(right, "return true;", kernel="push_queue")
    found = difference(algorithms.bfs_levels, graph, 1, faulty=place)
    assert device.changed, "the fault is not in this text any more"
    assert found.place.line == line_of(algorithms.bfs_levels, "any_pair")
    assert found.place.file == algorithms.bfs_levels.__code__.co_filename
    levels = algorithms.bfs_levels(graph, 1)
    assert found.rows
    for index, here, there, _ in found.rows:
        assert (here, there) == (None, True)
        assert levels.get(index) <= found.level, "a vertex found before"
    assert len(found.rows) == min(found.count, 10)
    cpu, faulty = found.plans
    assert (cpu.backend, cpu.kernel) == ("cpu", "SuiteSparse saxpy")
    assert (faulty.direction, faulty.kernel, faulty.reason) == ("push", "push_queue", "asked for")


def test_an_off_by_one_in_a_kernel(graph):
    right, wrong = "p + lane_id() < end)", "p + lane_id() < end - 1)"
    place, device = with_kernels(right, wrong, kernel="pull_warp")
    found = difference(algorithms.count_shortest_paths, graph, 1, faulty=place)
    assert device.changed, "the fault is not in this text any more"
    assert found.place.line == line_of(algorithms.count_shortest_paths, "plus_first")
    assert found.plans[1].kernel == "pull_warp"


def test_an_unmasked_parent(graph):
    """A parent for the source again, in one of the products."""

    def unmasked(place, right, s):
        right(s)
        if place.nvals(s.out) > 10:
            place.vector_set(s.out, 1, np.int32(1))

    found = difference(algorithms.bfs_parents, graph, 1, faulty=with_operations(mxv=unmasked))
    assert found.place.line == line_of(algorithms.bfs_parents, "any_secondi(")
    assert found.rows == ((1, None, 1, ""),)
    assert found.what == "mxv"


def test_a_parent_that_is_no_neighbour(graph):
    def wrong_one(place, right, s):
        right(s)
        indices, _ = place.vector_to_coo(s.out)
        place.vector_set(s.out, int(indices[-1]), np.int32(indices[-1]))

    found = difference(algorithms.bfs, graph, 1, faulty=with_operations(mxv=wrong_one))
    ((index, here, there, remark),) = found.rows
    assert there == index
    assert (found.number, found.level) == (4, 0)  # the set entry, levels, parents, the product
    assert remark == "any may choose one of 1"
    assert here == 1


def test_an_assignment_that_ignores_its_mask(graph):
    def unmasked(place, right, s):
        right(s._replace(desc=s.desc._replace(mask=None)))

    found = difference(algorithms.bfs, graph, 1, faulty=with_operations(assign=unmasked))
    assert found.place.text == "parents(frontier.S) << frontier"
    assert found.level == 1, "in iteration 0 there is nothing to lose"
    assert found.rows[0][1:3] == (1, None)
    assert found.plans == ()


def test_a_wrong_sum_a_wrong_count_and_a_wrong_copy(graph):
    def total(A):
        w = A.reduce_rowwise("plus").new()
        return w.reduce("plus").new()

    ones = Matrix.from_csc(*graph.to_csc()[:2], 1, nrows=graph.nrows, backend="cpu")
    found = difference(total, ones, faulty=with_operations(reduce=lambda *_: 5))
    assert found.rows == ((None, ones.nvals, 5, ""),)
    assert found.what == "reduce over plus"
    found = difference(algorithms.bfs_levels, graph, 1, faulty=with_methods(nvals=lambda *_: 2))
    assert found.what == "vector_nvals"
    assert found.rows == ((None, "1", "2", ""),)
    assert "until_empty=frontier" in found.place.text
    directed = Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3, backend="cpu")

    def as_it_is(place, right, s):
        right(s._replace(operation=s.operation._replace(transposed=False)))

    faulty = with_operations(matrix_transpose=as_it_is)
    found = difference(lambda A: A.T.new(), directed, faulty=faulty)
    assert found.what == "matrix_transpose"
    assert [row[0] for row in found.rows] == [(1, 0), (0, 1), (2, 1), (1, 2)]


def test_an_error_on_one_backend_says_where(graph):
    def fails(*_):
        raise NotSupported("faulty: no products.")

    with pytest.raises(NotSupported, match="no products") as caught:
        crosscheck(algorithms.bfs_levels, graph, 1, backends=("cpu", with_operations(mxv=fails)))
    (note,) = caught.value.__notes__
    assert "on faulty, statement 3" in note
    assert "any_pair" in note


def test_what_differs_last_is_reported_first(graph):
    """Only the first difference counts: the run stops there."""
    ran = []

    def program(A):
        w = Vector(INT64, 3, like=A)
        for k in loop(times=3):
            ran.append(k)
            w << k
        return w

    def wrong(place, right, s):
        value = s.operation.value
        right(s._replace(operation=s.operation._replace(value=value + (value > 0))))

    found = difference(program, graph, faulty=with_operations(assign_scalar=wrong))
    assert ran == [0, 1]
    assert found.rows == ((0, 1, 2, ""), (1, 1, 2, ""), (2, 1, 2, ""))
    assert (found.number, found.level, found.count) == (2, 1, 3)


def test_wrong_arguments(graph):
    with pytest.raises(InvalidValue, match=r"backends= is empty. Give backends="):
        crosscheck(algorithms.bfs_levels, graph, 1, backends=())
    with pytest.raises(InvalidValue, match="there is no 'tpu'"):
        crosscheck(algorithms.bfs_levels, graph, 1, backends=("cpu", "tpu"))
    with pytest.raises(InvalidValue, match="every loop eagerly"):
        crosscheck(algorithms.bfs_levels, graph, 1, backends=backends.get("cpu"))
    for no_function, kind in ((5, "int"), ("bfs", "str")):
        with pytest.raises(DomainMismatch, match=f"{kind} cannot be called. Give a function"):
            crosscheck(no_function, graph, 1)
    generator = lambda A: (algorithms.bfs_levels(A, v) for v in range(3))  # noqa: E731
    with pytest.raises(DomainMismatch, match="is a generator"):
        crosscheck(generator, graph, backends=("cpu", "cpu"))
    for no_backends in (None, 5):
        with pytest.raises(DomainMismatch, match=f"backends={no_backends} is not a sequence"):
            crosscheck(algorithms.bfs_levels, graph, 1, backends=no_backends)
    with pytest.raises(DomainMismatch, match="int is neither a name nor a Backend"):
        crosscheck(algorithms.bfs_levels, graph, 1, backends=("cpu", 5))


def test_a_vector_from_outside_is_an_argument_to_be(graph):
    outside = Vector.from_dense(np.arange(graph.nrows), backend="cpu")

    def multiplied(A):
        return semiring.any_secondi(outside @ A).new()

    def written(A):
        w = Vector(INT64, A.nrows, like=A)
        w << outside

    def made(A):
        return Matrix.from_coo(outside, outside, like=A)

    for program in (multiplied, written, made):
        with pytest.raises(BackendMismatch) as caught:
            crosscheck(program, graph, backends=("cpu", "sim"))
        text = str(caught.value)
        assert "Give outside to the algorithm as an argument" in text
        assert "to('cpu+sim')" not in text
