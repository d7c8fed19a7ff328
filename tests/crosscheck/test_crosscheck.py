"""Crosschecks: backends agree, and what may differ may."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from crosschecked import BOTH, SEARCHES
from faulty import difference, holding, with_operations

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
    loop,
    semiring,
    sweep,
    trace,
)
from lagpu.backends.protocol import Backend
from lagpu.core.recorder import Observer
from lagpu.crosscheck.lockstep import Crosscheck
from lagpu.crosscheck.report import Place, Report
from lagpu.errors import NotSupported
from lagpu.operations import Rejection, Until

KERNEL = "push_edge"


@pytest.mark.parametrize("search", SEARCHES, ids=lambda f: f.__name__)
def test_backends_agree(search, graph):
    report = crosscheck(search, graph, 1, backends=BOTH)
    assert report.ok
    assert report.iterations >= 3
    assert report.statements == sum(row.runs for row in report.rows)
    per_turn = sum(row.runs == report.iterations for row in report.rows)
    assert per_turn == {"bfs": 3}.get(search.__name__, 2)
    text = repr(report)
    assert (
        f"{search.__name__} on cpu and sim: {report.statements} statements agree, loops of" in text
    )
    assert "frontier[source] = " in text


def test_a_resized_vector_is_compared(graph):
    def program(A):
        u = Vector.from_coo([1, 5, 7], [1, 2, 3], size=9, like=A)
        u.resize(6)
        u.resize(20)
        return u.apply("plus", 1).new()

    report = crosscheck(program, graph, backends=BOTH)
    assert "u.resize(6): 1 x exactly" in repr(report)
    assert repr(report).startswith(
        f"program on cpu and sim: {report.statements} statements agree\n"
    )
    assert report.result.to_coo()[1].tolist() == [2, 3]


def test_the_result_is_the_oracles(graph):
    report = crosscheck(algorithms.bfs_levels, graph, 1, backends=("sim", "cpu"))
    assert report.result.backend is backends.get("sim")
    assert report.result.to("cpu").isequal(algorithms.bfs_levels(graph, 1))
    assert report.backends == ("sim", "cpu")


def test_parents_may_differ_and_the_oracles_go_on(graph):
    report = crosscheck(algorithms.bfs_parents, graph, 1, backends=BOTH)
    row = next(row for row in report.rows if "any_secondi" in row.formula)
    assert row.rule == "any of the candidates"
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


def test_new_objects_have_the_name_they_will_get(graph):
    def program(A, v):
        w = semiring.plus_times(v @ A).new()
        w = semiring.plus_times(w @ A).new()
        P = semiring.plus_times(
            A @ A.T,
        ).new()
        u = v.apply("exp").new().apply("abs").new()
        return w.reduce("plus").new(), u, (lambda: P.T.new())()

    v = Vector.from_dense(np.ones(graph.nrows), backend="cpu")
    rows = crosscheck(program, graph, v, backends=BOTH).rows
    assert [row.formula for row in rows] == [
        "w << v plus_times A",
        "w << w (old) plus_times A",
        "P << A plus_times A'",
        "t << exp(v)",
        "u << abs(t)",
        "s << plus(w)",
        "T << P'",
    ]


def test_what_a_sweep_does_stands_in_its_first_line(graph):
    def program(A):
        levels = algorithms.bfs_levels(A, 1)
        w = Vector(INT64, A.nrows, like=A)
        for here, above in sweep(levels):
            w(here.S) << 1
            w(above.S) << 2
        return w

    rows = crosscheck(program, graph, backends=BOTH).rows
    texts = [row.place.text for row in rows[-3:]]
    assert texts == ["for here, above in sweep(levels)", "w(here.S) << 1", "w(above.S) << 2"]


def test_the_backend_has_every_method():
    """A new method of `Backend`, or a new parameter of one, needs its place in lockstep."""
    wanted, own = methods_of(Backend), methods_of(Crosscheck)
    assert wanted == {name: own.get(name) for name in wanted}
    called = {"begin", *methods_of(Observer)}  # by the plugin of pytest, by statements and loops
    assert own.keys() - wanted.keys() <= called, "nothing calls these"
    lockstep = Crosscheck([backends.get("cpu")], Report("", ("cpu",)))
    attributes = {*Backend.__annotations__, *vars(Backend)} - wanted.keys()
    for name in (name for name in attributes if not name.startswith("_")):
        assert hasattr(lockstep, name), name
    assert isinstance(lockstep.plan_loop([], Until()), Rejection), "loops run by statements"
    assert lockstep.levels(lockstep.vector(INT64, 3)) is None, "so do sweeps"


def methods_of(cls):
    """The public methods of a class itself, and the names of their parameters."""
    return {
        name: list(inspect.signature(x).parameters)
        for name, x in vars(cls).items()
        if inspect.isfunction(x) and not name.startswith("_")
    }


def test_a_kernel_is_chosen_where_there_are_any(graph):
    def program(A):
        w = Vector(INT64, A.nrows, like=A)
        w << semiring.plus_first(Vector.from_coo([1], [2], size=A.nrows, like=A) @ A, kernel=KERNEL)
        return w

    report = crosscheck(program, graph, backends=BOTH)
    assert report.statements == 2
    assert backends.get("sim").last_product.kernel == KERNEL


def test_a_matrix_is_shown_although_backends_read_its_corner_in_other_orders():
    A = Matrix.from_coo([0, 0, 2], [1, 2, 1], [1, 2, 3], nrows=3, ncols=3, backend="cpu")
    assert crosscheck(repr, A, backends=BOTH).result == repr(A).replace("cpu", "cpu+sim")


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
    assert "cpu: push, SuiteSparse saxpy: edges about 13" in shown[2]
    assert "sim: push" in shown[2]
    assert shown[3:6] == ["auto", True, True]
    with pytest.raises(NotSupported, match="cannot be traced"):
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
    assert crosscheck(sums, A, u, backends=("cpu", with_operations(mxv=holding([0], [5e3])))).ok
    found = difference(sums, A, u, faulty=with_operations(mxv=holding([0], [5e4])))
    assert found.rows[0][2] == 5e4


def test_places_in_lagpu_have_no_path_of_the_machine(graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = crosscheck(algorithms.bfs_levels, graph, 1, backends=BOTH)
    folder = str(Path(inspect.getfile(algorithms.bfs_levels)).parent)
    assert "  lagpu/algorithms/bfs.py:" in repr(report)
    assert folder not in repr(report)
    assert str(Place("/tmp/ipykernel_17/2171.py", 8, "")) == "cell:8"
    assert str(Place(str(tmp_path / "mine.py"), 8, "")) == "mine.py:8"
