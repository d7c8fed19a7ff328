"""Steps of algorithms as text, as drawings and as a page."""

import html
import itertools
import json
import math
import re

import numpy as np
import pytest
from browser import browse, check_page, needs_browser

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix, Scalar, Vector, algorithms, generators, semiring
from lagpu.cli import main
from lagpu.draw.look import (
    CHANGED,
    DROP,
    DROPPED,
    EDGE,
    ENTRY,
    IDLE,
    KEPT,
    NONE,
    OUT,
    TOUCHED,
    TREE,
    USED,
    VEIL,
    ZERO,
    cell_style,
    line_style,
)
from lagpu.draw.shapes import fitting
from lagpu.errors import LimitExceeded
from lagpu.observe.step import drawing
from lagpu.observe.step.drawing import GraphDrawing


def page_of(steps, title, facts=None, *, what="page"):
    return drawing.page_of_runs({(): steps}, title, facts, what=what)


@pytest.fixture
def A(backend):
    return generators.path(4, backend=backend)


def test_a_step_as_text(A):
    s = list(lagpu.step(algorithms.bfs_levels, A, 1))[3]
    line = s.line
    assert repr(s).splitlines() == [
        f"step 4: level 1, bfs.py:{line}",
        "  levels(frontier.S) << 1",
        "> levels    1 0 1 .",
        "  frontier  1 . 1 .",
    ]


def test_words_have_the_number_of_a_scalar_and_few_digits(A):
    graph = GraphDrawing("A", found := list(lagpu.step(algorithms.degree_centrality, A)))
    assert found[-1].words.startswith("Step 6: share << times(share, 0.3333). share has 0: 0.333")
    assert 'aria-label="The graph of A. Step 1: ' in graph.draw(found[0])
    counted = lagpu.step(algorithms.triangle_count, A)
    assert any(one.words.endswith(": s << max(degree). s is 2.") for one in counted)
    lone = lagpu.step(algorithms.harmonic_centrality, Matrix(BOOL, 1, 1, like=A))
    assert list(lone)[-1].words.endswith(": s << plus(t). s is empty.")


def test_long_vectors_and_scalars_as_text(backend):
    def wide(n):
        u = Vector.from_coo([0, 30], [0.5, 1 / 3], size=n, backend=backend)
        s = Scalar(FP64)
        u << u.apply("ainv")
        s << u.reduce()
        return s

    first, last = lagpu.step(wide, 40)
    assert "  ... 16 more, 2 entries" in repr(first)
    assert "-0.5" in repr(first)
    assert repr(first).splitlines()[-1] == "  s  ."
    assert repr(last).splitlines()[-1].startswith("> s  -0.83")


def cells(drawn, kind):
    """Return the upper left corners of the squares of a kind."""
    paths = re.findall(r'<path d="([^"]*)" ([^>]*)/>', drawn)
    found = [d for d, style in paths if style == cell_style(kind)]
    return [tuple(map(float, xy)) for d in found for xy in re.findall(r"M([\d.]+) ([\d.]+)", d)]


def test_a_drawing_shows_what_a_product_touches(A):
    s = list(lagpu.step(algorithms.bfs_levels, A, 1))[4]  # frontier {0, 2}, levels {0, 1, 2}
    drawn = drawing.draw(s)
    assert (len(cells(drawn, USED)), len(cells(drawn, DROP))) == (
        1,
        2,
    )  # 2 -> 3; 0 -> 1 and 2 -> 1
    assert len(cells(drawn, IDLE)) == A.nvals - 3
    assert len(cells(drawn, TOUCHED)) == 2
    assert len(cells(drawn, VEIL)) == len(cells(drawn, OUT)) == 3
    assert len(cells(drawn, KEPT)) == 1
    assert len(cells(drawn, CHANGED)) == 3
    assert len(cells(drawn, ZERO)) == 1
    assert len(cells(drawn, NONE)) == 2 + 1 + 3  # factor, levels, frontier


def test_a_drawing_of_a_product_from_the_right(backend):
    def right(A):
        u = Vector.from_coo([0], [1.0], size=3, like=A)
        w = Vector(FP64, 2, like=A)
        m = Vector.from_coo([1], [1.0], size=2, like=A)
        w(m.V) << semiring.plus_times(A @ u)

    A = Matrix.from_coo([0, 1, 1], [0, 0, 2], 2.0, nrows=2, ncols=3, backend=backend)
    (s,) = lagpu.step(right, A)
    drawn = drawing.draw(s)
    assert (len(cells(drawn, USED)), len(cells(drawn, DROP)), len(cells(drawn, IDLE))) == (
        1,
        1,
        1,
    )
    ((x, y),) = cells(drawn, TOUCHED)
    assert len(cells(drawn, KEPT)) == 1
    assert s.product == ("A", False, "u", False)
    assert all(px >= x for px, _ in cells(drawn, USED))
    assert y > 0


def test_a_matrix_that_is_written_is_drawn_and_all_are_listed(A):
    def squares(A):
        q = Vector.from_coo([0], True, size=4, like=A)
        M = Matrix(INT64, 4, 4, like=A)
        M << semiring.plus_pair(A @ A)
        q << semiring.any_pair(q @ A)

    first, last = lagpu.step(squares, A)
    drawn = drawing.draw(first)
    assert len(cells(drawn, ENTRY)) == first.matrices["M"].nvals + 1  # and of q
    assert len(cells(drawn, IDLE)) == A.nvals
    texts = re.findall(r">([^<>]*)</text>", drawn)
    assert "\u25b6 M" in texts
    values = sorted(map(str, first.matrices["M"].to_coo()[2].tolist()))
    behind = texts.index("\u25b6 M") + 1 + 4  # and the numbers of its rows
    assert sorted(texts[behind:][: len(values)]) == values
    assert "A: 4 x 4, 6 entries" in texts
    assert f"\u25b6 M: 4 x 4, {len(values)} entries" in texts
    texts = re.findall(r">([^<>]*)</text>", drawing.draw(last))
    assert texts[texts.index("q @") + 1] == "A"  # in two lines
    assert f"M: 4 x 4, {len(values)} entries" in texts
    alone = next(lagpu.step(algorithms.bfs_levels, A, 0))
    assert "entries" not in drawing.draw(alone)  # the only matrix is drawn


def test_a_product_of_a_long_vector_has_its_name_in_two_lines(backend):
    """In one line the factor beside the matrix would hide its end."""
    steps = list(lagpu.step(algorithms.maximal_matching, generators.path(12, backend=backend)))
    layout = drawing.Layout(steps)
    found = next(s for s in steps if s.product is not None and s.product.vector == "found")
    assert ">found @</text>" in drawing.draw(found, layout)


def test_nothing_jumps_where_matrices_of_two_shapes_are_drawn(A):
    found = list(lagpu.step(algorithms.bfs_levels_multi, A, [0, 3, 1]))
    layout = drawing.Layout(found)
    assert (layout.matrix, layout.nrows, layout.ncols, layout.written) == ("A", 4, 4, 3)
    heights = {re.search(r'height="([\d.]+)"', drawing.draw(s, layout))[1] for s in found}
    assert len(heights) == 1


def test_a_matrix_that_its_statement_reads_is_drawn_as_before(backend):
    found = list(lagpu.step(algorithms.k_truss, generators.complete(4, backend=backend), 3))
    layout = drawing.Layout(found)
    k = next(k for k, s in enumerate(found) if s.formula.startswith("C << valuege"))
    name, before, transposed = layout.drawn(found[k])
    assert (name, transposed) == ("C before", False)
    assert before.isequal(found[k - 1].matrices["C"])
    assert ">C before</text>" in drawing.draw(found[k], layout)
    written = [drawing.draw(s, layout) for s in found if s.output in s.matrices]
    assert not any("no matrix written" in x for x in written)


def test_matrices_of_few_rows_are_drawn_as_vectors_are(A):
    """Operand and mask too, and with rings at what has changed."""
    found = list(lagpu.step(algorithms.bfs_levels_multi, A, [0, 3]))
    layout = drawing.Layout(found)
    assert (layout.matrix, layout.flat, layout.written) == ("A", {"frontier": 2, "levels": 2}, 0)
    drawn = [drawing.draw(step, layout) for step in found]
    assert all(">frontier<" in x or ">\u25b6 frontier<" in x for x in drawn)
    assert all(">levels<" in x or ">\u25b6 levels<" in x for x in drawn)
    assert len({re.search(r'height="([\d.]+)"', x)[1] for x in drawn}) == 1
    ring = found[0].overwritten, found[0].matrices["levels"], found[1].overwritten
    assert [x.nvals for x in ring] == [0, 2, 2]
    assert cell_style(CHANGED) in drawn[1]
    page = page_of(found, "two searches")  # its legend has no sign that it does not show
    assert "other entry of a matrix" in page
    assert "kept by the mask" not in page


def test_numbers_are_short_in_cells(backend):
    def thirds():
        v = Vector(FP64, 4, backend=backend)
        v[0], v[1] = 1 / 3, -2.0
        v[2] = 1e-9

    drawn = drawing.draw(list(lagpu.step(thirds))[-1])
    assert re.findall(r">([^<>]*)</text>", drawn)[-3:] == ["0.33", "-2", "1e-9"]
    size = re.search(r'font-size="([\d.]+)"[^>]*>0.33<', drawn)[1]
    assert 13.5 < float(size) < 14  # a point is half as wide as a digit; it keeps off the border


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (123456, "123456"),
        (1234567, "1.2e6"),
        (-(2**62), "-4.6e18"),
        (12345.6, "12346"),
        (0.00029, "3e-4"),
        (-2.9e-5, "-3e-5"),
        (3.14159, "3.14"),
        (float("nan"), "NaN"),
        (0.1449, "0.14"),
        (0.0671, ".067"),  # as wide as a cell lets be read
        (-0.0094, "-.009"),
        (1.5, "1.5"),
        (True, "1"),
    ],
)
def test_long_numbers_become_powers_of_ten(value, word):
    assert fitting(value) == word


def test_notebooks_get_a_drawing_or_text(A, backend):
    found = list(lagpu.step(algorithms.bfs_levels, A, 1))
    assert found[2]._repr_html_().count("<svg") == 1
    check_page(found[2]._repr_html_())
    large = generators.path(drawing.LARGEST + 1, backend=backend)
    first = next(lagpu.step(algorithms.bfs_levels, large, 0))
    assert first._repr_html_().startswith("<pre>step 1:")


# ----------------------------------------------------------------------------------- the page


@pytest.fixture(scope="module")
def page():
    A = generators.grid2d(3, 4, backend="cpu")
    return page_of(lagpu.step(algorithms.bfs_levels, A, 0), "Levels <1>", {"graph": "a & b"})


def sections(page):
    return re.findall(r'<section class="step".*?</section>', page, re.DOTALL)


def test_the_page_holds_every_step_and_nothing_from_outside(page):
    check_page(page)
    assert "<h1>Levels &lt;1&gt;</h1>" in page
    assert "graph a &amp; b" in page
    assert len(sections(page)) == 13
    assert "hidden" not in "".join(sections(page))  # without a script all are shown
    assert (
        "frontier(~levels.S, replace=True) &lt;&lt; semiring<wbr>.any_pair(frontier @ A)"
        in sections(page)[2]
    )
    assert "@media print" in page
    for meaning in ("entry", "entry that is zero", "no entry"):
        assert f">{meaning}</text>" in page


def test_the_page_shows_the_text_of_the_algorithm(page):
    listing = re.search(r'<div class="code">.*?</div>', page, re.DOTALL)[0]
    assert "def bfs_levels(A: Matrix, source: int) <bdi>-&gt;</bdi> Vector:" in listing
    assert "Return each vertex&#x27;s distance" in listing
    assert "Raises" not in listing
    line = re.search(r'data-line="(\d+)"', sections(page)[2])[1]
    assert re.search(rf'id="c0-{line}"[^>]*><code[^>]*>frontier\(~levels.S', listing)


def test_the_text_has_no_comments_for_tools():
    A = generators.path(3, backend="cpu")
    with lagpu.steps() as steps:
        algorithms.ego_graph(A, 0)
    page = steps.to_html()
    assert ") <bdi>-&gt;</bdi> Matrix:</code>" in page  # an arrow that no line's end tears
    assert "fmt: skip" not in page


def test_the_graph_stands_beside_the_matrix(page):
    for section in sections(page):
        assert section.count("<svg") == 2
        graph = section[section.index('<div class="graph">') :]
        assert all(f">{i}</text>" in graph for i in range(12))
    caption = (
        "filled: entries of frontier, ringed: changed; "
        "orange arrows: from frontier before to frontier after; "
        "light orange arrows: dropped by the mask"
    )
    products = sections(page)[2::2]
    assert [caption in section for section in products] == [False] + [True] * 5
    assert caption.rpartition("; ")[0] in products[0]  # where the mask drops none
    assert "filled: entries of levels, ringed: changed<" in sections(page)[1]
    for line in caption.split("; "):  # one line of both is wider than the picture
        assert f">{line}</text>" in products[1]


def test_the_graph_stays_where_another_function_names_it(A):
    def helper(B):
        u = Vector.from_coo([0], [1.0], size=4, like=B)
        return semiring.plus_times(u @ B).new()

    def outer(A):
        helper(A)
        return semiring.plus_times(Vector.from_coo([1], [1.0], size=4, like=A) @ A).new()

    found = list(lagpu.step(outer, A))
    drawing_of = GraphDrawing("A", found)
    assert {*found[0].matrices} == {"B"}
    assert all("The graph of A; " in drawing_of.draw(step) for step in found)


def test_a_graph_shows_what_a_product_touches(A):
    def right(A):
        u = Vector.from_coo([0, 1], [1, 2], size=3, like=A)
        w = Vector(INT64, 3, like=A)
        w << semiring.plus_times(u @ A.T)

    def rectangle(A):
        Vector(BOOL, 2, like=A)(~Vector(BOOL, 2, like=A).S) << semiring.any_pair(
            Vector(BOOL, 3, like=A) @ Matrix(BOOL, 3, 2, like=A)
        )

    looks = {"used": line_style(TREE), "met": line_style(DROPPED), "dot": line_style(EDGE)}
    s = list(lagpu.step(algorithms.bfs_levels, A, 1))[4]  # frontier {0, 2}, levels {0, 1, 2}
    drawn = GraphDrawing("A", [s]).draw(s)
    lines = {
        look: sum(
            d.count("M") for d in re.findall(rf'<path d="([^"]*)" {re.escape(text)}/>', drawn)
        )
        for look, text in looks.items()
    }
    assert lines == {"used": 3 * 1, "met": 3 * 2, "dot": A.nvals - 3}  # arrows have three strokes
    B = Matrix.from_coo([0, 0, 2], [0, 1, 0], 1, nrows=3, ncols=3, backend=A.backend)
    (s,) = lagpu.step(right, B)  # entry (2, 0) leads from 0 to 2
    drawn = GraphDrawing("A", [s]).draw(s)
    used = "".join(re.findall(rf'<path d="([^"]*)" {re.escape(looks["used"])}/>', drawn))
    assert used.count("M") == 1 + 3 + 3  # a self-loop, 1 -> 0 and 0 -> 2
    made = page_of(lagpu.step(rectangle, B), "no graph")
    assert '<div class="graph"></div>' in made


def test_a_program_of_many_vectors_draws_those_that_are_there_and_the_graph_it_begins_with(A):
    def many(A, count):
        found, _ = {}, A.apply("one").new()
        P = Vector.from_coo([0, 1], [1, 1], size=3, like=A).selection()
        _ = semiring.plus_first(Vector.from_dense([1, 2, 3], like=A) @ P).new(name="first")
        for k in range(count):
            found[k] = Vector.from_dense([k, k, k], like=A, name=f"v{k}")
            found[k] << found[k].apply("plus", right=1)
        return found

    def names(count):
        page = page_of(lagpu.step(many, A, count), "many")
        assert "the graph of A" in page
        assert ">_</text>" not in page
        return [len(re.findall(r">(?:\u25b6 )?v\d+</text>", s)) for s in sections(page)]

    assert names(2) == [2] * 4
    assert names(20) == [0, 0] + [1] * 20


def test_labels_are_readable(page):
    for section in sections(page):
        assert min(map(float, re.findall(r'font-size="([\d.]+)"', section))) >= 14


def test_values_beside_vertices_stay_inside_the_picture():
    tails, heads = [0, 0, 1, 2, 2, 3, 4, 5, 6], [1, 2, 3, 3, 4, 5, 5, 1, 0]
    A = Matrix.from_coo(tails, heads, True, nrows=7, ncols=7, name="A", backend="cpu")
    step = next(s for s in lagpu.step(algorithms.hits, A) if s.output == "full")
    drawn = GraphDrawing("A", [step]).draw(step)
    values = re.findall(r'<text x="([\d.]+)"([^>]*) font-weight="600"[^>]*>0.14<', drawn)
    assert len(values) == 7
    for x, style in values:
        share = 0 if "end" in style else 0.5 if "middle" in style else 1  # to the right of x
        assert float(x) + share * 9 * len("0.14") <= 460


def test_values_beside_vertices_keep_off_the_edges():
    A = Matrix.from_coo([0, 0, 0], [1, 2, 3], 1.0, nrows=4, ncols=4, name="A", backend="cpu")
    drawing_of = GraphDrawing("A", lagpu.step(algorithms.bfs_levels, A, 0))
    for ways in ([(0.7, -0.7)], [(0.7, -0.7), (-0.7, -0.7)]):
        drawing_of._at[0] = drawing._WIDTH / 2, drawing._HEIGHT / 2
        drawing_of._ways[0] = np.array(ways)
        corner = np.array(drawing_of._corner(0, 30))
        assert all(corner @ way < 1 for way in ways)
    drawing_of._at[0] = drawing._WIDTH - 20, 9.0  # there is no room on the right, or around
    assert drawing_of._corner(0, 60)[0] == -1
    drawing_of._at[0], drawing_of._ways[0] = (35, 150), np.array([(0, -1), (0.9, -0.4), (0.9, 0.4)])
    assert drawing_of._corner(0, 50) == (0, 1)  # below: both corners on the right have edges
    drawing_of._at[0] = 30, 150
    assert drawing_of._corner(0, 0.75 * drawing_of._radius + 60) == (0, 1)  # as 3.3e10


def test_the_numbers_of_columns_are_just_above_the_matrix():
    def from_the_right(A):
        u = Vector.from_coo([0], [1], size=4, like=A)
        u << semiring.plus_times(A @ u)
        u << u.apply("ainv")

    steps = list(lagpu.step(from_the_right, generators.path(4, backend="cpu")))
    row, column = re.findall(
        r' y="([\d.]+)"[^>]*>1<', drawing.draw(steps[-1], drawing.Layout(steps))
    )[:2]
    assert 34 <= float(row) - float(column) <= 68


@pytest.mark.parametrize("n", [2, 12, 30, 64])
def test_vertices_of_a_long_path_stand_apart(n):
    found = list(lagpu.step(algorithms.bfs_levels, generators.path(n, backend="cpu"), 0))
    drawn = GraphDrawing("A", found).draw(found[0])
    circles = re.findall(r'd="M([\d.]+) ([\d.]+)a([\d.]+) ', drawn)
    at = {(float(x), float(y)) for x, y, _ in circles}  # a vertex that changed has two
    assert len(at) == n
    nearest = min(math.dist(*pair) for pair in itertools.combinations(at, 2))
    assert nearest >= min(2 * float(circles[0][2]), 15)


def test_shared_drawings_are_there(page):
    used = set(re.findall(r'<use href="#(\w+)"/>', page))
    assert used
    assert used <= set(re.findall(r'<g id="(\w+)">', page))


def state(dom):
    """Return what a browser shows: steps not hidden, lines marked, the counter."""
    shown = [k for k, s in enumerate(sections(dom)) if "hidden" not in s.split(">")[0]]
    marked = re.findall(r'id="c0-(\d+)" data-n="\d+" class="now"', dom)
    counter = re.search(r'id="where"[^>]*>([^<]*)<', dom)[1]
    return shown, list(map(int, marked)), counter


def key(name):
    return f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: {json.dumps(name)}}}));"


STEPS = [
    ("", 0),
    (key("ArrowRight") * 2, 2),
    (key("ArrowRight") * 3 + key("ArrowLeft"), 2),
    (key("ArrowRight") + key(" ") + key("PageDown") + key("ArrowDown") + key("ArrowUp"), 1),
    (key("ArrowLeft"), 0),
    (key("End"), 12),
    (key("End") + key("ArrowRight"), 12),
    (key("End") + key("Home"), 0),
    ("document.getElementById('on').click();" * 4
     + "document.getElementById('back').click();", 3),
    ("const s = document.getElementById('slider'); s.value = 7;"
     "s.dispatchEvent(new Event('input'));", 6),
]  # fmt: skip


@needs_browser
def test_keys_and_buttons_step(page, tmp_path):
    """One after the other, each from the first step."""
    parts = [f"{{{script}}} seen.push(document.documentElement.outerHTML);" for script, _ in STEPS]
    reported = "document.body.replaceChildren(JSON.stringify(seen));"
    dom = browse(page, tmp_path, f"const seen = []; {key('Home').join(parts)} {reported}")
    seen = json.loads(html.unescape(re.search(r"<body[^>]*>(.*?)</body>", dom, re.DOTALL)[1]))
    first = next(lagpu.step(algorithms.bfs_levels, generators.path(2, backend="cpu"), 0)).line
    for (script, at), found in zip(STEPS, seen, strict=True):
        line = first if at == 0 else first + (2 if at % 2 else 3)
        level = "" if at == 0 else f", level {(at - 1) // 2}"
        assert state(found) == ([at], [line], f"step {at + 1} of 13{level}"), script


@needs_browser
def test_a_large_drawing_scrolls_and_code_wraps_on_a_telephone(tmp_path):
    def search(A):
        address = (
            "https_an_address_of_which_no_part_stands_alone_and_which_is_wider_than_telephones"
        )
        frontier = Vector(BOOL, A.nrows, like=A, name=address)
        frontier[0] = True
        frontier << semiring.any_pair(frontier @ A)

    found = list(lagpu.step(search, generators.grid2d(8, 8, backend="cpu")))
    script = """
        const see = selector => document.querySelector(".step:not([hidden])" + selector);
        const box = see(" .state"), svg = see(" .state svg");
        box.scrollLeft = 30;
        document.getElementById("on").click();
        const code = document.querySelector(".code");
        document.title = [
            svg.viewBox.baseVal.width > innerWidth, see(" .state").scrollLeft,
            see(" .state").scrollWidth > see(" .state").clientWidth,
            code.scrollWidth > code.clientWidth,
            document.documentElement.scrollWidth <= innerWidth,
            see(" .state svg").getBoundingClientRect().width / svg.viewBox.baseVal.width].join(" ");
    """
    dom = browse(page_of(found, "wide"), tmp_path, script, "--window-size=500,900")
    wide, left, *cut, fits, scale = re.search(r"<title>(.*)</title>", dom)[1].split()
    assert (wide, left, cut, fits) == ("true", "30", ["true", "false"], "true")
    assert round(float(scale), 2) == 0.6


@needs_browser
def test_a_small_drawing_fits_a_telephone(tmp_path):
    found = list(lagpu.step(algorithms.bfs_levels, generators.path(10, backend="cpu"), 0))
    script = """
        const boxes = [...document.querySelectorAll(".step:not([hidden]) > div")];
        document.title = [innerWidth, ...boxes.map(box => box.scrollWidth - box.clientWidth)];
    """
    dom = browse(page_of(found, "small"), tmp_path, script, "--window-size=500,900")
    assert re.search(r"<title>(.*)</title>", dom)[1] == "500,0,0"


def test_text_on_a_page_is_escaped(backend):
    def evil(A):
        holder = {"x": Vector(INT32, 2, like=A, name="</svg><script>alert(1)</script>")}
        holder["x"] << 1

    found = list(lagpu.step(evil, generators.path(2, backend=backend)))
    made = page_of(found, "</title><script>")
    check_page(made)
    assert "<script>alert" not in made
    assert "<script>alert" not in found[0]._repr_html_()


def test_a_page_of_no_steps():
    check_page(page_of([], "nothing"))


def test_large_graphs_are_refused_with_the_limit(monkeypatch):
    A = generators.path(drawing.LARGEST + 1, backend="cpu")
    with pytest.raises(LimitExceeded, match="65 > 64"):
        page_of(lagpu.step(algorithms.bfs_levels, A, 0), "large")
    monkeypatch.setattr(drawing, "MOST", 5)
    with pytest.raises(LimitExceeded, match="7 steps > 5"):
        page_of(lagpu.step(algorithms.bfs_levels, generators.path(3, backend="cpu"), 0), "long")


@pytest.mark.ci
def test_a_page_has_room_for_the_ranks_of_a_small_directed_graph():
    edges = [0, 0, 1, 2, 2, 3, 4, 5, 6], [1, 2, 3, 3, 4, 5, 5, 1, 0]
    A = Matrix.from_coo(*edges, nrows=7, ncols=7, backend="cpu")  # of the course
    assert page_of(lagpu.step(algorithms.pagerank, A), "ranks").count("<section") > 400


def test_bfs_writes_its_steps(tmp_path, capsys):
    file = tmp_path / "s.html"
    args = ["bfs", "grid:3x3", "-s", "4", "-b", "sim", "--output", "parents", "--json"]
    assert main([*args, "--step", str(file)]) == 0
    page = file.read_text("utf-8")
    check_page(page)
    assert "bfs_parents from vertex 4" in page
    assert json.loads(capsys.readouterr().out)["reached"] == 9


def test_bfs_refuses_what_no_page_has_room_for(tmp_path, capsys):
    file = tmp_path / "s.html"
    assert main(["bfs", "path:65", "-s", "0", "-b", "cpu", "--step", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("lagpu: --step: the graph has size 65 > 64")
    assert not file.exists()
    assert main(["bfs", "path:5", "-s", "0", "-b", "cpu", "--step", "s.json"]) == 2
    assert "does not end in .html" in capsys.readouterr().err


def test_a_step_without_the_matrix_of_the_products_draws_another(backend):
    def wide(A):
        u = Vector(BOOL, A.nrows, like=A)
        u[0] = True  # there is no other matrix yet
        B = A.dup(name="B")
        u << semiring.any_pair(u @ B)
        return u

    steps = list(lagpu.step(wide, generators.path(4, backend=backend)))
    layout = drawing.Layout(steps)
    assert layout.matrix == "B"
    drawn = drawing.draw(steps[0], layout)
    assert len(cells(drawn, IDLE)) == 6
    assert ">A</text>" in drawn
