"""Pictures of what cannot be drawn are refused, before anything is sent."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest
from pictures import small, world

from lagpu import BOOL, FP64, INT32, Matrix, Vector, generators, semiring, viz
from lagpu.algorithms import bfs_levels
from lagpu.errors import (
    BackendUnavailable,
    DimensionMismatch,
    DomainMismatch,
    FileMissing,
    InvalidValue,
)

mpl = pytest.importorskip("matplotlib")  # of the group test
mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


WRONG = {
    "a list": (lambda o: viz.matrix([1]), DomainMismatch, "list is not a Matrix"),
    "a matrix as vector": (
        lambda o: viz.vector(o.A),
        DomainMismatch,
        "Matrix is not a Vector. See viz.matrix",
    ),
    "a vector as mask": (lambda o: viz.mask(o.q), DomainMismatch, "Write v.S or ~v.V"),
    "a long vector": (
        lambda o: viz.vector(Vector(BOOL, 1000, backend="cpu")),
        InvalidValue,
        r"viz.vector: 1,000 cells > 40. Draw a part",
    ),
    "no vector at all": (lambda o: viz.vector(), InvalidValue, "Give at least one"),
    "vectors of two sizes": (
        lambda o: viz.vector(o.q, Vector(BOOL, 5, backend="cpu", name="r")),
        DimensionMismatch,
        r"viz.vector: q.size 4 != r.size 5",
    ),
    "a large mask of a matrix": (
        lambda o: viz.mask(Matrix(BOOL, 3, 21, backend="cpu").S),
        InvalidValue,
        r"viz.mask: 21 rows or columns > 20. Draw a part, such as A\[:20, :20\].new\(\)",
    ),
    "masks of a vector and of a matrix": (
        lambda o: viz.mask(o.q.S, o.A.S),
        DimensionMismatch,
        r"viz.mask: q has 1 x 4 cells != 4 x 4 of A. Draw them separately",
    ),
    "a long mask": (
        lambda o: viz.mask(Vector(BOOL, 41, backend="cpu").S),
        InvalidValue,
        r"viz.mask: 41 cells > 40",
    ),
    "a product without its semiring": (
        lambda o: viz.product(o.q @ o.A),
        DomainMismatch,
        r"q @ A is not a product .* Give one such as semiring.any_pair\(q @ A\)",
    ),
    "no product": (
        lambda o: viz.product(o.call),
        DomainMismatch,
        r"abs\(q\) is not a product .* Give one such as semiring.any_pair\(q @ A\)",
    ),
    "an array as product": (lambda o: viz.product(3), DomainMismatch, "3 is not a product"),
    "a large product": (
        lambda o: viz.product(o.large),
        InvalidValue,
        r"viz.product: 21 rows or columns > 20. Use a small graph",
    ),
    "a strange product layout": (
        lambda o: viz.product(o.good, layout="round"),
        InvalidValue,
        r"there is no layout 'round'. Use one of \('aligned', 'equation'\)",
    ),
    "a large frontier": (
        lambda o: viz.frontier(Matrix(BOOL, 121, 121, backend="cpu"), o.levels, 0),
        InvalidValue,
        r"viz.frontier: 121 vertices > 120. Use viz.level_histogram",
    ),
    "a level that there is not": (
        lambda o: viz.frontier(o.A, o.levels, 99),
        InvalidValue,
        r"viz.frontier: there is no level 99. Use one of 0 .. 3.",
    ),
    "vertices without a level": (
        lambda o: viz.frontier(o.A, o.levels, -1),
        InvalidValue,
        r"there is no level -1",
    ),
    "a fraction of a level": (
        lambda o: viz.frontiers(o.A, o.levels, [0, 1.5]),
        InvalidValue,
        r"viz.frontiers: there is no level 1.5. Use one of 0 .. 3.",
    ),
    "no level to draw": (
        lambda o: viz.frontier(o.A, Vector(INT32, 4, backend="cpu"), 0),
        InvalidValue,
        r"viz.frontier: no vertex has a level. Give levels of a search",
    ),
    "many frontiers": (
        lambda o: viz.frontiers(
            generators.path(14, backend="cpu"), bfs_levels(generators.path(14, backend="cpu"), 0)
        ),
        InvalidValue,
        r"14 levels > 12. Choose some with depths=",
    ),
    "no frontiers": (
        lambda o: viz.frontiers(o.A, Vector(INT32, 4, backend="cpu")),
        InvalidValue,
        "no vertex has a level",
    ),
    "levels of another graph": (
        lambda o: viz.frontier(o.A, Vector(INT32, 5, backend="cpu"), 0),
        DimensionMismatch,
        r"4 x 4 matrix != 5 levels",
    ),
    "levels that are no integers": (
        lambda o: viz.graph(o.A, Vector(FP64, 4, backend="cpu")),
        DomainMismatch,
        "levels are a Vector of integers. See bfs_levels",
    ),
    "a histogram of floats": (
        lambda o: viz.level_histogram(Vector(FP64, 4, backend="cpu")),
        DomainMismatch,
        "Vector of integers",
    ),
    "a negative level": (
        lambda o: viz.level_histogram(Vector.from_dense([0, -1], backend="cpu")),
        DomainMismatch,
        r"level -1 < 0. Levels begin at 0",
    ),
    "a large graph": (
        lambda o: viz.graph(Matrix(BOOL, 501, 501, backend="cpu")),
        InvalidValue,
        r"viz.graph: 501 vertices > 500. Draw viz.matrix",
    ),
    "a dense graph": (
        lambda o: viz.graph(generators.complete(101, backend="cpu")),
        InvalidValue,
        r"viz.graph: 10,100 entries > 10,000",
    ),
    "a graph that is not square": (
        lambda o: viz.graph(Matrix(BOOL, 3, 4, backend="cpu")),
        DimensionMismatch,
        "3 rows != 4 columns",
    ),
    "a strange layout": (
        lambda o: viz.graph(o.A, layout="round"),
        InvalidValue,
        r"layout 'round' is not 'levels'",
    ),
    "layout levels without levels": (
        lambda o: viz.graph(o.A, layout="levels"),
        InvalidValue,
        r"or levels= is missing",
    ),
    "places of another graph": (
        lambda o: viz.graph(o.A, layout=np.zeros((3, 2))),
        InvalidValue,
        r"layout has shape \(3, 2\) != \(4, 2\)",
    ),
}


class Objects:
    def __init__(self):
        self.A, self.q, _ = world("cpu")
        self.levels = bfs_levels(self.A, 0)
        self.call = self.q.apply("abs")
        self.good = semiring.any_pair(self.q @ self.A)
        B = generators.path(21, backend="cpu")
        self.large = semiring.any_pair(Vector(BOOL, 21, backend="cpu") @ B)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input(case):
    o = Objects()
    wrong, error, message = WRONG[case]
    with pytest.raises(error, match=message) as caught:
        wrong(o)
    assert str(caught.value).endswith((".", ")", "?"))
    for call in (o.call, o.good, o.large):
        call.new()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: viz.product(small().apply("abs")),
        lambda: viz.product(semiring.any_pair(small() @ small())),
        lambda: viz.product(bfs_levels(small(), 0) @ small()),
        lambda: viz.product(semiring.any_pair(bfs_levels(small(), 0) @ small()), layout="round"),
        lambda: viz.product(semiring.any_pair(Vector(BOOL, 21, backend="cpu") @ path())),
    ],
)
@pytest.mark.usefixtures("own_garbage")
def test_a_product_that_is_refused_is_no_unused_call(draw, recwarn):
    with pytest.raises((DomainMismatch, InvalidValue)):
        draw()
    gc.collect()
    assert [str(w.message) for w in recwarn] == []


def path():
    return generators.path(21, backend="cpu")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileMissing, match=r"viz.save: there is no folder .*none\. Create it first"):
        viz.save(viz.matrix(small()), tmp_path / "none" / "a.svg")


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(InvalidValue, match=r"viz.save: .*a\.svg: .*\."):
        viz.save(viz.matrix(small()), tmp_path / "a.svg")


def test_too_many_entries_are_refused_before_they_are_sent(monkeypatch):
    A = small()
    monkeypatch.setattr(type(A.backend), "nvals", lambda self, x: 10**9)
    monkeypatch.setattr(type(A.backend), "matrix_to_csc", None)
    for matrix in (A, A.T):
        with pytest.raises(InvalidValue, match=r"viz.matrix: 1,000,000,000 entries > 100,000,000"):
            viz.matrix(matrix)


def test_without_matplotlib_the_error_names_the_package(monkeypatch):
    A = small()
    levels = bfs_levels(A, 0)
    call = semiring.any_pair(levels @ A)
    for name in [m for m in sys.modules if m.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    needs = r'matplotlib.* Install it with: pip install "lagpu\[viz\]"'
    for draw in (
        lambda: viz.matrix(A),
        lambda: viz.vector(levels),
        lambda: viz.mask(levels.S),
        lambda: viz.product(call),
        lambda: viz.frontier(A, levels, 0),
        lambda: viz.frontiers(A, levels),
        lambda: viz.level_histogram(levels),
        lambda: viz.graph(A, levels),
    ):
        with pytest.raises(BackendUnavailable, match=needs):
            draw()
    call.new()


def test_the_module_can_be_imported_without_matplotlib():
    code = "import sys; sys.modules['matplotlib'] = None; from lagpu import viz; print(viz.matrix)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
