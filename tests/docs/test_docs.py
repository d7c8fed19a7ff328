"""The pages say what is so: their code runs, and the course's code is that of the examples."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import re
from pathlib import Path

import pytest
from samples import picked

import lagpu
from lagpu import backends, binary, semiring, viz
from lagpu.errors import BackendUnavailable

mpl = pytest.importorskip("matplotlib")  # of the group test
mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if "{code-cell}" in page.read_text("utf-8") and page.parent.name != "slides"  # test_slides.py
)
LONG = ("command_line.md",)
COURSE = [page for page in PAGES if page.parent.name == "course"]
SOME = [page for page in PAGES if page.name not in LONG and page not in COURSE][::5]  # all: sphinx


def cells(page):
    """Return (tags, code) of each cell of a page."""
    found = re.findall(r"^```\{code-cell\}\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    split = [re.match(r"(?::tags: \[(.*?)\]\n)?(.*)", body, re.S) for body in found]
    return [(match[1] or "", match[2]) for match in split]


def statements(code):
    """Return what the code does, without imports and names alone."""
    body = ast.parse(code).body
    shown = (ast.Name, ast.Attribute)
    return [
        ast.dump(node)
        for node in body
        if not isinstance(node, (ast.Import, ast.ImportFrom))
        and not (isinstance(node, ast.Expr) and isinstance(node.value, shown))
    ]


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def name(page):
    return str(page.relative_to(DOCS))


TEXT = 728  # pixels that a picture has on a page 1280 pixels wide
STYLE = {"svg.fonttype": "none", "font.size": 10.5}  # as in conf.py


def small_labels():
    """Return (text, pixels) of labels below 14 pixels, as a page shows the open pictures."""
    found = []
    for number in plt.get_fignums():
        figure = plt.figure(number)
        figure.canvas.draw()
        wide = 72 * (figure.get_tightbbox().width + 0.2)  # points, with the margins of a notebook
        scale = min(4 / 3, TEXT / wide)
        found += [
            (label.get_text(), label.get_fontsize() * scale)
            for label in figure.findobj(mpl.text.Text)
            if label.get_visible() and label.get_text().strip()
        ]
    return [(label, size) for label, size in found if size < 13.9]


def run(page, monkeypatch):
    """Run the cells of a page, and return the names that they have made; forget its operators."""
    monkeypatch.setattr(plt, "show", lambda: None)
    for table in (binary, semiring):
        monkeypatch.setattr(table, "_rows", dict(table._rows))
    world = {"__name__": "page"}
    with contextlib.redirect_stdout(io.StringIO()), mpl.rc_context(STYLE):
        for k, (_tags, code) in enumerate(cells(page)):
            file = f"{page}:{k}"  # with its text, as a notebook keeps it
            lines = code.splitlines(keepends=True)
            monkeypatch.setitem(linecache.cache, file, (len(code), None, lines, file))
            exec(compile(code, file, "exec"), world)
            assert not (small_labels() if page in COURSE else ()), code
            plt.close("all")
    return world


def test_small_labels_are_found():
    with mpl.rc_context(STYLE):
        _, ax = plt.subplots(figsize=(10, 1), layout="constrained")
        ax.set_axis_off()
        ax.text(0, 0, "wide")
        ax.text(1, 0, "large", fontsize=20)
    assert [label for label, _ in small_labels()] == ["wide"]


@pytest.mark.parametrize("page", picked(PAGES, *SOME, rest="exhaustive"), ids=name)
def test_the_code_of_a_page_runs(page, monkeypatch):
    monkeypatch.chdir(page.parent)
    run(page, monkeypatch)


@pytest.fixture
def no_compiler(monkeypatch):
    """As on a machine without one, whatever was found and loaded before."""

    def make_sim():
        raise BackendUnavailable("sim: no C++ compiler.")

    monkeypatch.delitem(backends._loaded, "sim", raising=False)
    monkeypatch.setattr("lagpu.backends.gpu.make_sim", make_sim)


@pytest.mark.parametrize(
    "page", picked(COURSE, DOCS / "course" / "05_gpu_kernels.md", rest="exhaustive"), ids=name
)
def test_a_page_of_the_course_needs_no_compiler_and_no_other_file(
    page, monkeypatch, tmp_path, no_compiler
):
    monkeypatch.chdir(tmp_path)
    assert not run(page, monkeypatch).get("has_sim")


@pytest.mark.parametrize("page", COURSE, ids=name)
def test_an_example_does_what_its_page_does(page):
    """Each statement of the page, pictures apart, stands in the script, in the same order."""
    script = statements((ROOT / "examples" / f"{page.stem}.py").read_text("utf-8"))
    at = 0
    for tags, code in cells(page):
        for statement in statements(code) if tags != "picture" else ():
            assert statement in script[at:], f"{page.name}: {code}"
            at = script.index(statement, at) + 1


def test_every_page_of_the_course_has_an_example_and_the_other_way_round():
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert {page.stem for page in (DOCS / "course").glob("*.md")} == scripts


def test_the_gallery_has_every_picture():
    code = "".join(code for _tags, code in cells(DOCS / "gallery.md"))
    drawn = set(re.findall(r"^viz\.(\w+)\(", code, re.M))
    assert drawn == set(viz.__all__) - {"draw", "save"}  # another name of graph; to a file
    assert "t.plot()" in code


def test_every_public_name_is_in_the_interface():
    said = (DOCS / "api.md").read_text("utf-8")
    constants = {"BOOL", "INT32", "INT64", "UINT32", "UINT64", "FP32", "FP64"}
    tables = {"unary", "binary", "indexunary", "monoid", "semiring", "agg", "op", "select"}
    for public in set(lagpu.__all__) - constants - tables:
        assert f"lagpu.{public}\n" in said, public


def test_prose_has_no_long_dashes():
    for page in (*(DOCS / "course").glob("*.md"), *(DOCS / "operations").glob("*.md")):
        assert "\N{EM DASH}" not in page.read_text("utf-8"), page


# ----------------------------------------------------------------------------------- notation


def rows_of_notation():
    """Return (lagpu, python-graphblas) of each row of the tables."""
    text = (DOCS / "notation.md").read_text("utf-8")
    rows = re.findall(r"^\* - .*\n  - `(.*)`\n  - (.*)\n  - .*$", text, re.M)
    return [(ours, ours if theirs == "=" else theirs.strip("`")) for ours, theirs in rows]


def objects(library):
    """Return the names that the lines use, in one of the two libraries."""
    if library == "lagpu":
        from lagpu import (
            FP64,
            INT64,
            Matrix,
            Scalar,
            Vector,
            binary,
            monoid,
            replace,
            semiring,
            unary,
        )

        namespaces = lagpu
        where = {"backend": "cpu"}
    else:
        import graphblas as namespaces
        from graphblas import Matrix, Scalar, Vector, binary, monoid, replace, semiring, unary
        from graphblas.dtypes import FP64, INT64

        where = {}
    I, J, X = [0, 0, 1, 2, 3], [1, 2, 2, 0, 3], [1.0, 4.0, 2.0, 0.5, 3.0]  # noqa: E741
    n = 4
    world = {"n": n, "FP64": FP64, "Matrix": Matrix, "Vector": Vector}
    world |= {"binary": binary, "monoid": monoid, "semiring": semiring, "unary": unary}
    world["replace"] = replace
    world |= {name: getattr(namespaces, name) for name in ("agg", "op", "select")}
    world["A"] = Matrix.from_coo(I, J, X, nrows=n, ncols=n, **where)
    world["B"] = Matrix(FP64, n, n, **where)
    world["P"] = Matrix.from_coo([0, 1, 2], [1, 2, 0], [1, 1, 1], nrows=n, ncols=n, **where)
    world["p"] = Vector.from_coo([0, 2], [0, 2], size=n, **where)
    world["s"] = Scalar(FP64)
    world["x"] = None
    for name, indices, values in (
        ("u", [0, 1, 3], [4.0, 2.5, 9.0]),
        ("v", [1, 2], [0.0, 1.0]),
        ("w", [0, 2], [7.0, 8.0]),
        ("m", [0, 1, 3], [1.0, 0.0, 1.0]),
        ("q", [0, 1], [1.0, 1.0]),
        ("t", [0, 1], [5.0, 6.0]),
    ):
        size = 2 if name == "t" else n
        world[name] = Vector.from_coo(indices, values, FP64, size=size, **where)
    world |= {"I": [0, 2], "J": J, "X": X, "INT64": INT64}
    return world


def content(world):
    found = {k: [part.tolist() for part in world[k].to_coo()] for k in "ABPpuvwmqt"}
    s = world["s"]
    return found | {"s": s if s is None else s.value, "x": world["x"]}


@pytest.mark.parametrize(("ours", "theirs"), rows_of_notation())
def test_both_notations_mean_the_same(ours, theirs):
    found, before = [], []
    for library, line in (("lagpu", ours), ("graphblas", theirs)):
        world = objects(library)
        world["I"] = world["I"] if "from_coo" not in line else [0, 0, 1, 2, 3]
        before.append(content(world))
        exec(line, world)
        found.append(content(world))
    assert before[0] == before[1]
    assert found[0] == found[1]
    if not line.startswith("w = Vector(FP64, n)"):
        assert found[0] != before[0] or "dup" in line or ours == theirs


def test_the_notation_covers_every_operation():
    rows = rows_of_notation()
    assert len(rows) > 30
    said = " ".join(ours for ours, _ in rows)
    for word in (
        "@",
        "ewise_add",
        "ewise_mult",
        "ewise_union",
        "apply",
        "select",
        "reduce",
        "diag",
    ):
        assert word in said
    pages = {page.stem for page in (DOCS / "operations").glob("*.md")} - {"index"}
    assert pages >= {"vxm", "mxv", "ewise_add", "ewise_mult", "ewise_union", "apply", "select"}
    assert pages >= {
        "reduce",
        "reduce_rowwise",
        "assign",
        "extract",
        "transpose",
        "selection",
        "diag",
    }
