"""Crosschecks: backends agree, what may differ may, and a planted fault is found where it is."""

import dataclasses
import functools
import inspect
from typing import NamedTuple

import numpy as np
import pytest

from lagpu import (
    FP32,
    FP64,
    INT64,
    Matrix,
    Scalar,
    Vector,
    algorithms,
    backends,
    binary,
    crosscheck,
    explain,
    generators,
    loop,
    semiring,
    trace,
)
from lagpu.backends.base import Backend
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.sim import SimDevice
from lagpu.cli.steer import steered
from lagpu.crosscheck import lockstep, twin
from lagpu.errors import CrosscheckFailed, InvalidValue, NotSupported

BOTH = ("cpu", "sim")
CPU = {"backend": "cpu"}
SEARCHES = (
    algorithms.bfs,
    algorithms.bfs_levels,
    algorithms.bfs_parents,
    algorithms.count_shortest_paths,
)


@pytest.fixture(scope="module")
def graph():
    return generators.kronecker(7, backend="cpu")


# ------------------------------------------------------------------------------- agreement


@pytest.mark.parametrize("search", SEARCHES, ids=lambda f: f.__name__)
def test_backends_agree(search, graph):
    report = crosscheck(search, graph, 1, backends=BOTH)
    assert report.ok
    assert report.iterations >= 3
    assert report.statements == sum(row.runs for row in report.rows)
    per_turn = sum(row.runs == report.iterations for row in report.rows)
    assert per_turn == {"bfs": 3}.get(search.__name__, 2)
    text = repr(report)
    assert f"{search.__name__} on cpu and sim: {report.statements} statements" in text
    assert "frontier[source] = " in text


def test_the_result_is_the_oracles(graph):
    report = crosscheck(algorithms.bfs_levels, graph, 1, backends=("sim", "cpu"))
    assert report.result.backend is backends.get("sim")
    assert report.result.to("cpu").isequal(algorithms.bfs_levels(graph, 1))
    assert report.backends == ("sim", "cpu")


def test_parents_may_differ_and_the_oracles_go_on(graph):
    report = crosscheck(algorithms.bfs_parents, graph, 1, backends=BOTH)
    row = next(row for row in report.rows if "any_secondi" in row.formula)
    assert row.rule == "any of what met"
    assert row.chosen > 0, "no freedom in this graph: the test shows nothing"
    assert report.result.isequal(algorithms.bfs_parents(graph, 1)), "the oracle's own parents"


def test_arguments_stay_as_they_are_and_move_wherever_they_stand(graph):
    def program(A, things, *, v):
        w, number = things["w"], things["s"]
        w(accum=binary.plus) << v
        v << semiring.plus_times(A.T @ w)
        number << v.reduce("plus")
        return [w, (v, number)], A.T.new()

    w = Vector.from_coo([1], [2], size=graph.nrows, backend="sim", name="w")
    v = Vector.from_coo([2], [3], size=graph.nrows, backend="cpu", name="v")
    s = Scalar(INT64, 7)
    report = crosscheck(program, graph, {"w": w, "s": s}, v=v, backends=BOTH)
    assert (w.nvals, v.nvals, s.value) == (1, 1, 7)
    (w2, (_, s2)), B = report.result
    assert w2.to_coo()[0].tolist() == [1, 2]
    assert w2.backend is B.backend is backends.get("cpu")
    assert s2.value > 0
    assert [row.rule for row in report.rows] == ["exactly"] * 4


def test_statements_are_shown_as_written_and_with_the_authors_names(graph):
    def program(B):
        reached = Vector(INT64, B.nrows, like=B)
        reached[1] = 1
        reached(
            accum=binary.max,
        ) << semiring.max_first(
            reached @ B,  # a comment
        )
        return reached.reduce("max").new()

    rows = crosscheck(program, graph, backends=BOTH).rows
    assert [row.formula for row in rows] == [
        "reached[1] << 1",
        "reached(accum=binary.max) << reached max_first B",
        "s << max(reached)",
    ]
    assert [row.place.text for row in rows][::2] == [
        "reached[1] = 1",
        'reached.reduce("max").new()',
    ]
    assert rows[1].place.text.startswith("reached( accum=binary.max, ) << semiring.max_first(")
    _, line = inspect.getsourcelines(program)
    assert [row.place.line - line for row in rows] == [2, 3, 8]


def test_the_backend_has_every_method():
    """A new method of `Backend` needs a place among the forms that lockstep knows."""
    by_form = lockstep.WRITING | lockstep.EDITING | lockstep.SUMMING | lockstep.READING
    known = by_form | twin.MAKING.keys() | vars(lockstep.Lockstep).keys()
    methods = {name for name in dir(Backend) if not name.startswith("_")}
    assert methods - known == {"run_loop"}, "loops run statement by statement"
    assert by_form | twin.MAKING.keys() <= methods


def test_what_a_program_shows_does_not_differ(graph):
    def program(A):
        v = Vector.from_coo([1], [2], size=A.nrows, like=A)
        product = semiring.any_first(v @ A)
        shown = [repr(v), repr(A), explain(product)]
        A.orientation = "auto"
        v.wait()
        return [*shown, A.orientation, 1 in v, A.is_symmetric, A.get(1, 1)]

    shown = crosscheck(program, graph, backends=BOTH).result
    assert "1 entry" in shown[0]
    assert "on cpu+sim)" in shown[0]
    assert "cpu: SuiteSparse" in shown[2]
    assert "sim: push" in shown[2]
    assert shown[3:6] == ["auto", True, True]
    with pytest.raises(NotSupported, match="no trace inside"):
        crosscheck(traced, graph, backends=BOTH)


def traced(A):
    with trace():
        algorithms.bfs_levels(A, 1)


def test_more_than_two_backends(graph):
    report = crosscheck(algorithms.bfs_parents, graph, 1, backends=("cpu", "sim", "cpu"))
    assert report.ok


def test_float_sums_are_compared_with_a_tolerance():
    rng = np.random.default_rng(5)
    rows, cols = np.divmod(np.arange(60 * 60), 60)

    def sums(A, u):
        w = Vector(A.dtype, 60, like=A)
        for _ in loop(times=2):
            w << semiring.plus_times(u @ A)
            u << w
        return w.reduce("plus").new()

    for dtype in (FP32, FP64):
        values = rng.normal(size=len(rows)) * 10.0 ** rng.integers(-3, 4, len(rows))
        A = Matrix.from_coo(rows, cols, values, dtype, nrows=60, ncols=60, backend="cpu")
        u = Vector.from_dense(rng.normal(size=60), dtype=dtype, backend="cpu")
        report = crosscheck(sums, A, u, backends=BOTH)
        rules = [row.rule for row in report.rows]
        assert rules == [f"within {1e-4 if dtype is FP32 else 1e-11:g}", "exactly", rules[0]]


def test_terms_that_cancel():
    """1e8 + 1 - 1e8 is 0 or 1 in FP32: relative to what was added, both are right."""

    def sums(A, u):
        w = Vector(FP32, 1, like=A)
        w << semiring.plus_times(A @ u)
        return w

    A = Matrix.from_coo([0, 0, 0], [0, 1, 2], [1e8, 1.0, -1e8], FP32, nrows=1, backend="cpu")
    u = Vector.from_dense([1, 1, 1], dtype=FP32, backend="cpu")
    assert crosscheck(sums, A, u, backends=("cpu", with_methods(mxv=holding([0], [5e3])))).ok
    found = difference(sums, A, u, faulty=with_methods(mxv=holding([0], [5e4])))
    assert found.rows[0][2] == 5e4


# --------------------------------------------------------------------------- planted faults


class FaultyDevice(SimDevice):
    """The simulated device, which compiles kernels with one thing changed in their text."""

    def __init__(self, right, wrong, at=None):
        super().__init__()
        self.right, self.wrong, self.at = right, wrong, at
        self.changed = {}

    def launch(self, kernel, *args, **more):
        if self.right in kernel.source and (self.at is None or self.at in kernel.source):
            if kernel not in self.changed:
                before, after = kernel.source.split(self.at, 1) if self.at else ("", kernel.source)
                text = before + (self.at or "") + after.replace(self.right, self.wrong, 1)
                self.changed[kernel] = dataclasses.replace(kernel, source=text)
            kernel = self.changed[kernel]
        super().launch(kernel, *args, **more)


def with_kernels(right, wrong, at=None, kernel=None):
    """Return a copy of sim whose kernels have `wrong` for `right`, the first one behind `at`."""
    place = GpuBackend("faulty", FaultyDevice(right, wrong, at))
    return steered(place, kernel, None), place.device


def with_methods(**methods):
    """Return a copy of sim with other methods: ``method(backend, right, *args)``."""
    place = GpuBackend("faulty", SimDevice())
    for name, wrong in methods.items():
        setattr(place, name, functools.partial(wrong, place, getattr(place, name)))
    return place


def holding(indices, values):
    """Return a method that writes these entries, whatever it should write."""

    def method(place, right, w, desc, *args):
        wrong = place.vector_from_coo(np.array(indices), np.array(values), w.dtype, w.size)
        place.assign(w, desc._replace(mask=None), wrong, None)

    return method


def difference(algorithm, *args, faulty):
    with pytest.raises(CrosscheckFailed) as caught:
        crosscheck(algorithm, *args, backends=("cpu", faulty))
    error = caught.value
    assert isinstance(error, AssertionError)
    assert not error.report.ok
    found = error.report.difference
    assert found.headline in str(error)
    assert found.headline in repr(error.report)
    assert (found.oracle, found.other) == ("cpu", "faulty")
    return found


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return next(first + k for k, line in enumerate(lines) if text in line)


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
    assert (cpu.backend, cpu.kernel) == ("cpu", "")
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

    def unmasked(place, right, w, desc, A, u, how):
        right(w, desc, A, u, how)
        if place.vector_nvals(w) > 10:
            place.vector_set(w, 1, np.int32(1))

    found = difference(algorithms.bfs_parents, graph, 1, faulty=with_methods(mxv=unmasked))
    assert found.place.line == line_of(algorithms.bfs_parents, "any_secondi(")
    assert found.rows == ((1, None, 1, ""),)
    assert found.what == "mxv"


def test_a_parent_that_is_no_neighbour(graph):
    def wrong_one(place, right, w, desc, A, u, how):
        right(w, desc, A, u, how)
        indices, _ = place.vector_to_coo(w)
        place.vector_set(w, int(indices[-1]), np.int32(indices[-1]))

    found = difference(algorithms.bfs, graph, 1, faulty=with_methods(mxv=wrong_one))
    ((index, here, there, remark),) = found.rows
    assert there == index
    assert (found.number, found.level) == (4, 0)  # the set entry, levels, parents, the product
    assert remark == "any may choose one of 1"
    assert here == 1


def test_an_assignment_that_ignores_its_mask(graph):
    def unmasked(place, right, w, desc, *args):
        right(w, desc._replace(mask=None), *args)

    found = difference(algorithms.bfs, graph, 1, faulty=with_methods(assign=unmasked))
    assert found.place.text == "parents(frontier.S) << frontier"
    assert found.level == 1, "in iteration 0 there is nothing to lose"
    assert found.rows[0][1:3] == (1, None)
    assert found.plans == ()


def test_a_wrong_sum_a_wrong_count_and_a_wrong_copy(graph):
    def total(A):
        w = A.reduce_rowwise("plus").new()
        return w.reduce("plus").new()

    ones = Matrix.from_csc(*graph.to_csc()[:2], 1, nrows=graph.nrows, backend="cpu")
    found = difference(total, ones, faulty=with_methods(reduce=lambda _, right, *args: 5))
    assert found.rows == ((None, ones.nvals, 5, ""),)
    assert found.what == "reduce over plus"
    found = difference(
        algorithms.bfs_levels, graph, 1, faulty=with_methods(vector_nvals=lambda *_: 2)
    )
    assert found.what == "vector_nvals"
    assert found.rows == ((None, "1", "2", ""),)
    assert "until_empty=frontier" in found.place.text
    directed = Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3, backend="cpu")
    found = difference(
        lambda A: A.T.new(), directed, faulty=with_methods(matrix_transpose=lambda _, right, A: A)
    )
    assert found.what == "matrix_transpose"
    assert [row[0] for row in found.rows] == [(1, 0), (0, 1), (2, 1), (1, 2)]


def test_an_error_on_one_backend_says_where(graph):
    def fails(*_):
        raise NotSupported("faulty: no products.")

    with pytest.raises(NotSupported, match="no products") as caught:
        crosscheck(algorithms.bfs_levels, graph, 1, backends=("cpu", with_methods(mxv=fails)))
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

    def wrong(place, right, w, desc, value, indices):
        right(w, desc, value + (value > 0), indices)

    found = difference(program, graph, faulty=with_methods(assign_scalar=wrong))
    assert ran == [0, 1]
    assert found.rows == ((0, 1, 2, ""), (1, 1, 2, ""), (2, 1, 2, ""))
    assert (found.number, found.level, found.count) == (2, 1, 3)


def test_wrong_arguments(graph):
    with pytest.raises(InvalidValue, match=r"no backend. Give backends="):
        crosscheck(algorithms.bfs_levels, graph, 1, backends=())
    with pytest.raises(InvalidValue, match="there is no 'tpu'"):
        crosscheck(algorithms.bfs_levels, graph, 1, backends=("cpu", "tpu"))


# ------------------------------------------------------------------------- fused and eager


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


# ------------------------------------------------------------------------ what any may choose


def setting(index, value):
    """Return a method that is right but for one entry, or for the number it returns."""

    def method(place, right, *args):
        found = right(*args)
        if index is None:
            return value
        w = args[0]
        place.vector_set(w, index, w.dtype.numpy.type(value))
        return found

    return method


# A program of w, u, v and A on one backend; the method, an index, a value it may have, one not.
CHOICES = {
    "product from the left": (
        lambda o: o.w << semiring.any_first(o.u @ o.A),
        ("mxv", 2, (10, 11), 12),
    ),
    "product from the right": (
        lambda o: o.w << semiring.any_second(o.A @ o.u),
        ("mxv", 0, (12, 13), 10),
    ),
    "index of a product": (
        lambda o: o.w << semiring.any_firstj(o.A @ o.u),
        ("mxv", 0, (2, 3), 1),
    ),
    "row of the output": (
        lambda o: o.w << semiring.any_firsti(o.A @ o.u),
        ("mxv", 0, (0,), 2),
    ),
    "values multiplied": (
        lambda o: o.w << semiring.any_times(o.u @ o.A),
        ("mxv", 2, (10 * 1, 11 * 3), 10 * 3),
    ),
    "accumulated": (
        lambda o: o.w(accum=binary.plus) << semiring.any_first(o.u @ o.A),
        ("mxv", 2, (110, 111), 11),
    ),
    "masked by values": (
        lambda o: o.w(o.v.V) << semiring.any_first(o.u @ o.A),
        ("mxv", 2, (100,), 10),  # v[2] is 0: the old value stays
    ),
    "element-wise union": (
        lambda o: o.w << o.u.ewise_add(o.v, "any"),
        ("ewise_add", 1, (11, 21), 0),
    ),
    "one side alone": (lambda o: o.w << o.u.ewise_add(o.v, "any"), ("ewise_add", 3, (13,), 0)),
    "element-wise intersection": (
        lambda o: o.w << o.u.ewise_mult(o.v, "any"),
        ("ewise_mult", 0, (10, 20), 11),
    ),
    "with defaults": (
        lambda o: o.w << o.u.ewise_union(o.v, "any", 7, 8),
        ("ewise_union", 3, (13, 8), 7),
    ),
    "bound operand": (lambda o: o.w << o.u.apply("any", 5), ("apply", 1, (11, 5), 10)),
    "accumulator": (lambda o: o.w(accum="any") << o.u, ("assign", 2, (100, 12), 10)),
    "accumulator at indices": (
        lambda o: o.w(accum="any")[[3, 2]] << o.v[[0, 1]],
        ("assign", 2, (100, 21), 20),
    ),
    "accumulated number": (
        lambda o: o.w(accum="any") << 5,
        ("assign_scalar", 2, (100, 5), 6),
    ),
    "accumulated part": (
        lambda o: o.w(accum="any") << o.u[[3, 2, 1, 0]],
        ("extract", 2, (100, 11), 12),
    ),
    "columns of a matrix": (
        lambda o: o.w << o.A.reduce_columnwise("any"),
        ("reduce_vector", 2, (1, 3), 2),
    ),
    "rows of a matrix": (
        lambda o: o.w << o.A.reduce_rowwise("any"),
        ("reduce_vector", 0, (1, 2), 3),
    ),
    "all entries": (lambda o: o.s << o.u.reduce("any"), ("reduce", None, (10, 13), 20)),
    "all of a matrix": (lambda o: o.s << o.A.reduce("any"), ("matrix_reduce", None, (1, 3), 4)),
}


class Objects(NamedTuple):
    u: Vector
    v: Vector
    w: Vector
    A: Matrix
    s: Scalar


@pytest.fixture(scope="module")
def objects():
    where = {"backend": "cpu"}
    u = Vector.from_dense([10, 11, 12, 13], name="u", **where)
    v = Vector.from_coo([0, 1, 2], [20, 21, 0], size=4, name="v", **where)
    w = Vector.from_coo([2], [100], size=4, name="w", **where)
    A = Matrix.from_coo([0, 0, 1], [2, 3, 2], [1, 2, 3], nrows=4, ncols=4, name="A", **where)
    return Objects(u, v, w, A, Scalar(INT64, name="s"))


@pytest.mark.parametrize("case", CHOICES)
def test_what_any_may_choose(objects, case):
    statement, (method, index, may, may_not) = CHOICES[case]

    def program(*things):
        o = Objects(*things)
        statement(o)
        return o.w, o.s

    results = []
    for value in may:
        other = with_methods(**{method: setting(index, value)})
        report = crosscheck(program, *objects, backends=("cpu", other))
        w, s = report.result
        results.append(s.value if index is None else w.get(index))
        assert report.rows[-1].chosen >= (value != results[-1])
    assert len(set(results)) == 1, "the oracle's value stands"
    assert results[0] in may
    assert report.rows[-1].rule == "any of what met"
    found = difference(program, *objects, faulty=with_methods(**{method: setting(index, may_not)}))
    assert found.rows[0][:3] == (index, results[0], may_not)
    assert found.count == 1


@pytest.mark.parametrize("name", [s.name for s in semiring if s.monoid.name == "any"])
@pytest.mark.parametrize("flip", [False, True])
def test_no_choice_of_the_oracle_is_refused(name, flip):
    """Terms, mask and accumulator as NumPy sees them hold whatever GraphBLAS takes of them."""
    rng = np.random.default_rng(len(name) + flip)
    ran = 0

    def program(A, u, m, w, how):
        product = u @ A if flip else A @ u
        w(**how(m)) << semiring[name](product)
        return w

    for k in range(24):
        rows, cols = np.nonzero(rng.random((7, 7)) < 0.4)
        A = Matrix.from_coo(rows, cols, rng.integers(-3, 4, len(rows)), nrows=7, ncols=7, **CPU)
        u, m, w = (
            Vector.from_coo(i, rng.integers(-2, 3, len(i)), size=7, **CPU)
            for i in (np.flatnonzero(rng.random(7) < p) for p in (0.6, 0.5, 0.4))
        )
        if k % 3 == 0:
            u = u.dup(FP32)
        mask = (None, lambda m: m.S, lambda m: m.V, lambda m: ~m.S, lambda m: ~m.V)[k % 5]

        def how(m, k=k, mask=mask):
            return {
                "mask": None if mask is None else mask(m),
                "accum": (None, binary.plus, binary.min)[k // 2 % 3],
                "replace": bool(k % 2),
            }

        report = crosscheck(program, A, u, m, w, how, backends=("cpu", "cpu"))
        assert report.rows[-1].rule == "any of what met"
        ran += report.statements
    assert ran == 24


def test_inexact_functions_and_sums_of_reductions(objects):
    def program(u):
        w = Vector(FP32, u.size, like=u, name="w")
        w << u.apply("exp")
        w(accum=binary.times) << u.apply("log")
        return w, w.reduce("times").new()

    u = objects.u.dup(FP32)
    for method, wrong, fails in (
        ("apply", lambda x: x * (1 + 1e-6), False),
        ("apply", lambda x: x * 1.01, True),
    ):

        def changed(place, right, w, desc, *args, wrong=wrong):
            right(w, desc, *args)
            indices, values = place.vector_to_coo(w)
            other = place.vector_from_coo(indices, wrong(values), w.dtype, w.size)
            place.assign(w, type(desc)(), other, None)

        other = with_methods(**{method: changed})
        if fails:
            assert difference(program, u, faulty=other).place.text == 'w << u.apply("exp")'
        else:
            report = crosscheck(program, u, backends=("cpu", other))
            assert [row.rule for row in report.rows] == ["within 0.0001"] * 3


def test_the_least_of_nothing_but_nan_is_free(objects):
    """`min` passes over NaN, and a kernel that begins with the identity ends with it."""

    def program(o):
        w = Vector(FP64, 4, like=o.u)
        w << semiring.min_first(o.u @ o.A)
        return Objects(w, *o[1:])

    u = Vector.from_dense([np.nan] * 4, like=objects.u)
    things = objects._replace(u=u)
    for number in (np.nan, np.inf):
        other = with_methods(mxv=setting(2, number))
        report = crosscheck(program, things, backends=("cpu", other))
        assert isinstance(report.result, Objects)
        assert report.rows[0].rule == "exactly"
    for number in (-np.inf, 0.0):
        found = difference(program, things, faulty=with_methods(mxv=setting(2, number)))
        assert found.rows[0][2] == number


def test_nan_is_like_nan(objects):
    def program(u):
        w = u.apply(binary.truediv, left=0.0).new()
        w << w.apply(binary.truediv, left=0.0)
        return w.isequal(w)

    u = Vector.from_dense([0.0, 1.0, np.inf, np.nan], backend="cpu")
    assert crosscheck(program, u, backends=BOTH).statements == 2
