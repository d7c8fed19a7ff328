"""Names in pictures are text: no formula of Matplotlib, no markup of SVG."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import pytest

from lagpu import Matrix, Vector, semiring, viz

mpl = pytest.importorskip("matplotlib")  # of the group test
mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

NAMES = [r"$\frac{$", r"$x$", "</svg><script>alert(1)</script>", '"><script>alert(1)</script>']


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.mark.each_value
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["vector", "matrix", "large matrix", "mask", "product", "aligned"])
def test_names_are_text(kind, name):
    n = 150 if kind == "large matrix" else 3
    A = Matrix.from_coo([0, 1], [1, 2], [1, 1], nrows=n, ncols=n, backend="cpu", name=name)
    u = Vector.from_coo([0], [1], size=n, backend="cpu", name=name)
    ax = {
        "vector": lambda: viz.vector(u),
        "matrix": lambda: viz.matrix(A),
        "large matrix": lambda: viz.matrix(A),
        "mask": lambda: viz.mask(~u.S),
        "product": lambda: viz.product(semiring.plus_times(u @ A), mask=~u.S, layout="equation"),
        "aligned": lambda: viz.product(semiring.plus_times(u @ A), layout="aligned"),
    }[kind]()
    with mpl.rc_context({"svg.fonttype": "none"}):  # text as text
        out = io.BytesIO()
        ax.figure.savefig(out, format="svg")
    root = ElementTree.fromstring(out.getvalue())
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    shown = " ".join(element.text or "" for element in root.iter() if element.tag.endswith("text"))
    assert name in shown or kind == "mask"


@pytest.mark.parametrize("name", ["A", "levels", "selection(parents)"])
@pytest.mark.parametrize("kind", ["matrix", "vector first", "matrix first"])
def test_the_name_of_a_matrix_covers_no_other_text(kind, name):
    A = Matrix.from_coo([0, 1], [1, 2], [1, 1], nrows=7, ncols=7, backend="cpu", name=name)
    u = Vector.from_coo([0], [1], size=7, backend="cpu", name="u")
    ax = {
        "matrix": lambda: viz.matrix(A),
        "vector first": lambda: viz.product(semiring.plus_times(u @ A)),
        "matrix first": lambda: viz.product(semiring.plus_times(A @ u)),
    }[kind]()
    ax.figure.canvas.draw()
    (mine,) = [text for text in ax.texts if text.get_text() == name]
    others = [text for text in [*ax.texts, ax.title] if text is not mine and text.get_text()]
    boxes = [patch.get_window_extent() for patch in ax.patches]
    covered = [text.get_text() for text in others
               if text.get_window_extent().overlaps(mine.get_window_extent())]  # fmt: skip
    assert not covered
    assert not any(box.overlaps(mine.get_window_extent()) for box in boxes)
