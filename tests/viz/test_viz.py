"""Pictures show what the objects hold: read back from the artists, and from the SVG's text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from pictures import small, world

from lagpu import BOOL, INT32, Matrix, Vector, generators, semiring, viz
from lagpu.algorithms import bfs, bfs_levels
from lagpu.core.expr import format_formula
from lagpu.draw.look import ENTRY, NONE, USED, level_colours
from lagpu.errors import DomainMismatch, InvalidValue

mpl = pytest.importorskip("matplotlib")  # of the group test
mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def kinds(ax, name):
    """Return {(i, j): kind} of the cells of one object, by the ids that an SVG shows."""
    found = {}
    for patch in ax.patches:
        match = re.fullmatch(rf"{re.escape(name)}-(\d+)-(\d+)-(\w+)", patch.get_gid() or "")
        if match:
            found[int(match[1]), int(match[2])] = match[3]
    return found


def texts(ax):
    return [text.get_text() for text in ax.texts]


def of_kind(cells, kind):
    return sorted(where for where, found in cells.items() if found == kind)


# ----------------------------------------------------------------------- matrices and vectors


def test_a_small_matrix_shows_each_entry(backend):
    ax = viz.matrix(small(backend))
    cells = kinds(ax, "A")
    assert len(cells) == 9
    assert of_kind(cells, "entry") == [(0, 1), (1, 2), (2, 0), (2, 2)]
    assert of_kind(cells, "zero") == [(0, 2)]
    assert sorted(t for t in texts(ax) if t not in "012") == ["2.5", "5", "7", "A"]


def test_no_entry_and_zero_look_different():
    ax = viz.matrix(small())
    by_kind = {}
    for patch in ax.patches:
        kind = (patch.get_gid() or "").rpartition("-")[2]
        look = (patch.get_edgecolor(), patch.get_linestyle(), patch.get_facecolor())
        by_kind.setdefault(kind, set()).add(look)
    assert all(len(by_kind[kind]) == 1 for kind in ("none", "zero", "entry"))
    assert len({*by_kind["none"], *by_kind["zero"], *by_kind["entry"]}) == 3
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert labels == ["entry", "entry that is zero", "no entry"]


def test_a_transpose_is_drawn_transposed():
    cells = kinds(viz.matrix(small().T), "A'")
    assert of_kind(cells, "zero") == [(2, 0)]


def test_a_selection_is_drawn_as_its_matrix():
    f = Vector.from_coo([0, 1, 3], [2, 2, 1], INT32, size=4, backend="cpu", name="f")
    u = Vector.from_dense([1, 2, 3, 4], backend="cpu", name="u")
    P = f.selection()
    assert of_kind(kinds(viz.matrix(P), "selection(f)"), "entry") == [(1, 3), (2, 0), (2, 1)]
    assert len(of_kind(kinds(viz.matrix(P.T), "selection(f)'"), "entry")) == 3
    ax = viz.product(semiring.min_first(u @ P.T))
    assert ax.get_title() == "w << min_first(u @ selection(f)')"
    assert len(of_kind(kinds(ax, "selection(f)'"), "used")) == 3


def test_squares_of_a_middling_matrix():
    values = np.arange(60) % 3
    A = Matrix.from_coo(np.arange(60), np.arange(60)[::-1], values, nrows=60, ncols=80)
    ax = viz.matrix(A.to("cpu"))
    drawn = {c.get_gid(): len(c.get_paths()) for c in ax.collections}
    assert drawn == {"entry": 40, "entry-zero": 20}
    first = next(c for c in ax.collections if c.get_gid() == "entry-zero").get_paths()[0]
    assert np.allclose(first.get_extents().get_points().mean(0), [59, 0])
    assert ax.get_title() == "A: 60 x 80, 60 entries"


def test_density_counts_every_entry():
    A = generators.kronecker(9, backend="cpu").select("triu").new()  # not symmetric
    (image,) = viz.matrix(A).images
    counts = image.get_array()
    white = counts.mask.sum()
    counts = counts.filled(0)
    assert counts.shape == (128, 128)
    assert counts.sum() == A.nvals
    rows, cols, _ = A.to_coo()
    assert np.array_equal(counts, np.histogram2d(rows // 4, cols // 4, 128, [(0, 128)] * 2)[0])
    assert white == 128 * 128 - len(set(zip(rows // 4, cols // 4, strict=True)))


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (1, 1), (300, 0), (300, 2)])
def test_matrices_without_entries(shape, tmp_path):
    viz.save(viz.matrix(Matrix(BOOL, *shape, backend="cpu")), tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 1000


def test_a_vector_shows_each_entry(backend):
    v = Vector.from_coo([0, 2], [0, 3], INT32, size=4, name="u", backend=backend)
    ax = viz.vector(v)
    assert kinds(ax, "u") == {(0, 0): "zero", (0, 1): "none", (0, 2): "entry", (0, 3): "none"}
    assert texts(ax).count("3") == 2  # the value, and an index


@pytest.mark.parametrize(
    ("take", "kept"),
    [
        (lambda v: v.S, {0, 2}),
        (lambda v: v.V, {2}),
        (lambda v: ~v.S, {1, 3}),
        (lambda v: ~v.V, {0, 1, 3}),
    ],
)
def test_masks_show_what_they_keep(take, kept, backend):
    m = take(Vector.from_coo([0, 2], [0, 3], size=4, name="u", backend=backend))
    cells = kinds(viz.mask(m), repr(m))
    assert {j for _, j in of_kind(cells, "kept")} == kept
    assert {j for _, j in of_kind(cells, "out")} == {0, 1, 2, 3} - kept


@pytest.mark.parametrize(
    ("take", "kept"),
    [
        (lambda A: A.S, {(0, 1), (1, 2)}),
        (lambda A: A.V, {(1, 2)}),
        (lambda A: ~A.V, {(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)}),
    ],
)
def test_masks_of_a_matrix_show_what_they_keep(take, kept, backend):
    M = Matrix.from_coo([0, 1], [1, 2], [0, 5], nrows=2, ncols=3, name="A", backend=backend)
    ax = viz.mask(take(M))
    cells = kinds(ax, format_formula(take(M).formula))
    assert set(of_kind(cells, "kept")) == kept
    assert len(of_kind(cells, "out")) == 6 - len(kept)
    assert kinds(ax, "A")[0, 1] == "zero"
    frames = {p.get_gid(): p for p in ax.patches if "frame" in (p.get_gid() or "")}
    below, above = (frames[f"{name}-frame"] for name in (format_formula(take(M).formula), "A"))
    assert below.get_y() >= above.get_y() + above.get_height(), "they do not cover one another"
    assert texts(ax).count("1") == 3, "a column, and a row of each"


def test_vectors_and_masks_stand_below_one_another():
    u = Vector.from_coo([0, 2], [0, 3], size=4, name="u", backend="cpu")
    v = Vector.from_coo([1], [5], size=4, name="v", backend="cpu")
    ax = viz.vector(u, v)
    assert of_kind(kinds(ax, "v"), "entry") == [(0, 1)]
    frames = {p.get_gid(): p.get_y() for p in ax.patches if "frame" in (p.get_gid() or "")}
    assert frames["v-frame"] > frames["u-frame"] + 1
    ax = viz.mask(u.S, ~u.V, v.S)
    names = [t for t in texts(ax) if not t.isdigit()]
    assert names == ["u", "u.S", "~u.V", "v", "v.S"]


# ----------------------------------------------------------------------------------- products


@pytest.mark.parametrize("layout", ["equation", "aligned"])
def test_a_product_shows_what_meets(backend, layout):
    A, q, seen = world(backend)
    ax = viz.product(semiring.plus_times(q @ A), mask=~seen.S, layout=layout)
    cells = kinds(ax, "A")
    assert of_kind(cells, "used") == [(1, 2), (2, 3)]
    assert of_kind(cells, "out") == [(i, 0) for i in range(4)]
    assert of_kind(cells, "touched") == [(1, 1), (1, 3), (2, 1), (2, 2)]
    assert of_kind(cells, "entry") == [(0, 1)]
    assert of_kind(kinds(ax, "q"), "used") == (
        [(0, 1), (0, 2)] if layout == "equation" else [(1, 0), (2, 0)]
    )
    assert kinds(ax, "w") == {
        (0, 0): "out", (0, 1): "none", (0, 2): "result", (0, 3): "result"
    }  # fmt: skip
    assert ax.get_title() == "w(~seen.S, replace) << plus_times(q @ A)"
    assert "row of an entry of q" in [t.get_text() for t in ax.get_legend().get_texts()]


@pytest.mark.parametrize("layout", ["equation", "aligned"])
def test_a_product_from_the_right(layout):
    A, q, _ = world("cpu")
    ax = viz.product(semiring.plus_times(A @ q), layout=layout)
    assert of_kind(kinds(ax, "A"), "used") == [(0, 1), (1, 2)]
    assert of_kind(kinds(ax, "w"), "result") == [(0, 0), (1, 0)]
    assert viz.product(semiring.plus_times(A @ q), name="out").get_title().startswith("out << ")
    drawn = viz.product(semiring.plus_times(q @ A.T), name="frontier")
    (label,) = [text for text in drawn.texts if text.get_text() == "frontier"]
    assert label.get_position()[0] < -1.5  # all of it is left of the cells
    ax = viz.product(semiring.plus_times(A.T @ q), layout=layout)
    assert of_kind(kinds(ax, "A'"), "used") == [(0, 1), (2, 1), (3, 2)]


def test_a_drawn_call_can_still_be_assigned():
    A, q, _ = world("cpu")
    call = semiring.any_pair(q @ A)
    viz.product(call)
    assert call.new().nvals == 3


# ----------------------------------------------------------------------------------- searches


def test_a_frontier_marks_rows_columns_and_edges(backend):
    A = generators.path(5, backend=backend)
    levels = bfs_levels(A, 1)
    ax = viz.frontier(A, levels, 1)
    bands = {p.get_gid() for p in ax.patches if (p.get_gid() or "").startswith(("front", "seen"))}
    assert bands == {"front-0", "front-2", "seen-0", "seen-1", "seen-2"}
    places = {
        c.get_gid(): sorted(
            tuple(p.get_extents().get_points().mean(0).round().astype(int)[::-1].tolist())
            for p in c.get_paths()
        )
        for c in ax.collections
    }
    assert places["new"] == [(2, 3)]
    assert places["back"] == [(0, 1), (2, 1)]
    assert len(places["idle"]) == 5
    assert ax.get_title() == "level 1: 2 vertices, 1 new"


def test_frontiers_has_a_panel_a_level():
    A = generators.path(5, backend="cpu")
    figure = viz.frontiers(A, bfs_levels(A, 0))
    titles = [ax.get_title() for ax in figure.axes]
    assert [t.partition(":")[0] for t in titles if t] == [f"level {k}" for k in range(5)]
    figure = viz.frontiers(A, bfs_levels(A, 0), depths=[3])
    assert figure.axes[0].get_title() == "level 3: 1 vertex, 1 new"


@pytest.mark.parametrize("size", [4, 40])
def test_level_histogram(backend, size):
    v = Vector.from_coo(np.arange(size), np.arange(size) // 2, size=size + 3, backend=backend)
    ax = viz.level_histogram(v)
    heights = {p.get_gid(): p.get_height() for p in ax.patches}
    expected = {f"level-{k}": 2 for k in range(size // 2)} | {"no-level": 3}
    assert heights == expected


def test_histogram_of_no_levels():
    ax = viz.level_histogram(Vector(INT32, 5, backend="cpu"))
    assert [p.get_height() for p in ax.patches] == [5]


# ------------------------------------------------------------------------------------- graphs


def dots(ax):
    return {
        c.get_gid(): len(c.get_offsets()) for c in ax.collections if "level" in (c.get_gid() or "")
    }


def lines(ax):
    return {
        c.get_gid(): len(c.get_segments()) for c in ax.collections if hasattr(c, "get_segments")
    }


def test_a_graph_shows_vertices_by_level_and_each_edge_once(backend):
    A = Matrix.from_coo([0, 1, 1, 2, 3], [1, 0, 2, 1, 3], nrows=5, ncols=5, backend=backend)
    levels, parents = bfs(A, 2)  # parents have the larger numbers
    ax = viz.graph(A, levels, parents=parents)
    assert dots(ax) == {"level-0": 1, "level-1": 1, "level-2": 1, "no-level": 2}
    assert lines(ax) == {"edges": 0, "tree": 2}
    assert [len(c.get_offsets()) for c in ax.collections if c.get_gid() == "loops"] == [1]
    assert texts(ax) == list("01234")


def test_a_directed_graph_has_arrows():
    A = generators.cycle(4, directed=True, backend="cpu")
    ax = viz.graph(A, *bfs(A, 0)[:1], parents=bfs(A, 0)[1])
    ids = {t.get_gid() for t in ax.texts if t.get_gid()}
    assert ids == {"tree-0-1", "tree-1-2", "tree-2-3", "edges-3-0"}


def test_layouts():
    A = generators.grid2d(3, 4, backend="cpu")
    levels = bfs_levels(A, 0)

    def places(**options):
        ax = viz.graph(A, levels, **options)
        found = np.zeros((12, 2))
        for text in ax.texts:
            found[int(text.get_text())] = text.get_position()
        return found

    by_level = places(layout="levels")
    assert by_level[:, 0].tolist() == levels.to_dense().tolist()
    mine = np.arange(24.0).reshape(12, 2)
    assert np.array_equal(places(layout=mine), mine)
    found = places()
    assert np.array_equal(places(), found)
    apart = np.linalg.norm(found[:, None] - found[None], axis=2)  # neighbours are nearer
    near = A.to("cpu").to_coo()[:2]
    assert apart[near].mean() < 0.6 * apart[np.triu_indices(12, 1)].mean()
    assert apart[np.triu_indices(12, 1)].min() > 0


def test_deep_graphs_get_a_bar_of_levels():
    A = generators.path(30, backend="cpu")
    ax = viz.graph(A, bfs_levels(A, 0))
    assert ax.get_legend() is None
    assert [other.get_ylabel() for other in ax.figure.axes if other is not ax] == ["level"]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_graphs(n):
    A = Matrix(BOOL, n, n, backend="cpu")
    assert sum(dots(viz.graph(A)).values()) == n


# --------------------------------------------------------------------------- axes and files


def every(A, v, levels, ax):
    yield viz.matrix(A, ax=ax)
    yield viz.vector(v, ax=ax)
    yield viz.mask(v.S, ax=ax)
    yield viz.product(semiring.any_pair(v @ A), ax=ax)
    yield viz.frontier(A, levels, 0, ax=ax)
    yield viz.level_histogram(levels, ax=ax)
    yield viz.graph(A, levels, ax=ax)


def test_pictures_go_where_one_wants_them():
    A = small()
    levels = bfs_levels(A, 0)
    _, ax = plt.subplots()
    drawn = list(every(A, levels, levels, ax))
    assert len(drawn) == 7
    assert all(found is ax for found in drawn)
    assert len(plt.get_fignums()) == 1
    with pytest.raises(DomainMismatch, match=r"ax is Figure, not Axes. Use plt.subplots"):
        viz.matrix(A, ax=plt.gcf())


def test_text_in_an_svg_is_text(tmp_path):
    A, q, seen = world("cpu")
    for name in ("one.svg", "two.svg"):
        viz.save(viz.product(semiring.plus_times(q @ A), mask=~seen.S), tmp_path / name)
    svg = (tmp_path / "one.svg").read_text("utf-8")
    said = [e.text for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert "w(~seen.S, replace) << plus_times(q @ A)" in said
    assert "entry that takes part" in said
    assert svg.count('id="A-1-2-used"') == 1
    assert svg == (tmp_path / "two.svg").read_text("utf-8")
    viz.save(viz.frontiers(A, bfs_levels(A, 0)), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes()[1:4] == b"PNG"
    with pytest.raises(InvalidValue, match=r"'xyz' is not a format. Use one of .*svg"):
        viz.save(viz.matrix(A), tmp_path / "a.xyz")


def test_colours_stay_apart_for_the_colour_blind():
    """By lightness alone, which every reader sees, or by a border or hatch."""
    looks = [
        mpl.colors.to_rgb(kind.face) @ np.array([0.299, 0.587, 0.114])
        for kind in (USED, ENTRY, NONE)
    ]
    assert min(np.diff(sorted(looks))) > 0.1
    levels = [np.dot(c[:3], (0.299, 0.587, 0.114)) for c in level_colours(8)]
    assert min(np.diff(levels)) > 0.03
