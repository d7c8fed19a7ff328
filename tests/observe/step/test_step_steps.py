"""`steps`: the steps of an author's own program, in ``with``, as a page and in a notebook."""

import contextlib
import html
import re
from pathlib import Path

import pytest
from loop_names import is_fused

import lagpu
from lagpu import INT64, Vector, algorithms, binary, generators, loop, semiring
from lagpu.errors import DomainMismatch, InvalidValue, LimitExceeded


@pytest.fixture
def A(backend):
    return generators.path(4, backend=backend)


def least_labels(A):
    """Return the least vertex of each vertex's component."""
    labels = Vector.from_dense([0, 1, 2, 3], dtype=INT64, like=A)
    for _ in loop(until_unchanged=labels):
        labels(accum=binary.min) << semiring.min_first(labels @ A)
    return labels


def test_a_function_of_the_author_is_stepped_through(A):
    with lagpu.steps() as s:
        result = least_labels(A)
    assert result.to_dense().tolist() == [0, 0, 0, 0]
    assert repr(s) == "Steps(4 statements)"
    stepped = list(lagpu.step(least_labels, A))
    assert [x.formula for x in s] == [x.formula for x in stepped]
    assert [x.vectors["labels"].to_dict() for x in s] == [
        x.vectors["labels"].to_dict() for x in stepped
    ]
    assert all(list(x.vectors) == ["labels"] and list(x.matrices) == ["A"] for x in s)
    assert s[-1].number == 4
    assert [x.number for x in s[1:3]] == [2, 3]
    if A.backend.capabilities.fuses:
        assert A.backend.last_loop == "eager: it is stepped through"
        least_labels(A)
        assert is_fused(A.backend.last_loop)


def test_statements_in_the_body_see_what_it_mentions_alone(A):
    other = Vector(INT64, 1_000_000)
    other << 1
    frontier = Vector.from_coo([0], [True], size=4, like=A)
    levels = Vector(INT64, 4, like=A)
    _last_shown = frontier
    assert other.nvals == 1_000_000
    with lagpu.steps() as s:
        levels(frontier.S) << 0
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A.T)
    assert [x.formula for x in s] == [
        "levels(frontier.S) << 0",
        "frontier(~levels.S, replace) << frontier any_pair A'",
    ]
    assert [sorted(x.vectors) for x in s] == [["frontier", "levels"]] * 2
    assert [list(x.matrices) for x in s] == [["A"], ["A"]]


def test_a_function_sees_of_the_body_what_it_has_used_alone(A):
    labels = Vector.from_dense([9, 9], dtype=INT64)
    assert labels.nvals == 2
    with lagpu.steps() as s:
        labels = least_labels(A)
    assert [list(x.vectors) for x in s] == [["labels"]] * 4
    assert labels.nvals == 4


def test_the_body_of_a_script_shows_its_own_statements(A, tmp_path):
    text = "u = 1\n\nwith steps() as s:\n    for depth in range(2):\n        v << depth\n\nw = 2\n"
    file = str(tmp_path / "mine.py")
    Path(file).write_text(text)
    world = {"steps": lagpu.steps, "v": Vector(INT64, 3, like=A, name="v")}
    exec(compile(text, file, "exec"), world)
    made = world["s"].to_html(title="a <script>")
    listed = re.findall(r'data-n="(\d+)"', made)
    assert listed == ["3", "4", "5"]
    assert "<h2>mine.py</h2>" in made
    assert "<h1>a &lt;script&gt;</h1>" in made
    cell = f"{tmp_path}/ipykernel_7/123.py"
    Path(cell).parent.mkdir()
    Path(cell).write_text(text)
    exec(compile(text, cell, "exec"), world)
    assert world["s"][0].place == "cell:5"
    assert "<h2>cell</h2>" in world["s"].to_html()
    assert "ipykernel" not in world["s"].to_html()


def test_a_page_is_written_and_shown_in_a_notebook(A, tmp_path):
    with lagpu.steps() as s:
        least_labels(A)
    file = tmp_path / "steps.html"
    assert s.to_html(file, facts={"graph": "path:4"}) is None
    assert file.read_text() == s.to_html(facts={"graph": "path:4"})
    assert s.to_html().count('<section class="step"') == 4
    (shown,) = re.findall(r'srcdoc="([^"]*)"', s._repr_html_())
    assert html.unescape(shown) == s.to_html()


def test_what_is_too_large_says_so(backend):
    with lagpu.steps() as s:
        algorithms.bfs_levels(generators.path(80, backend=backend), 0)
    assert len(s) == 161
    with pytest.raises(LimitExceeded, match=r"steps: \w+ has size 80 > 64, .* Use a smaller graph"):
        s.to_html()
    assert s._repr_html_().startswith("<p>steps: ")
    with pytest.raises(InvalidValue, match="steps: no statement ran inside"):
        lagpu.steps().to_html()
    assert "no statement" in lagpu.steps()._repr_html_()


def test_limits_end_the_body_and_keep_the_steps_before(A):
    v = Vector(INT64, 3, like=A)

    def too_many(s):
        with s:
            for k in range(5):
                v << k

    s = lagpu.steps(limit=3)
    with pytest.raises(LimitExceeded, match=r"^steps: more than 3 statements.*limit="):
        too_many(s)
    assert [x.vectors["v"].to_dict()[0] for x in s] == [0, 1, 2]
    v << 7
    assert len(s) == 3
    with pytest.raises(DomainMismatch, match="steps: limit 'x' is not an integer"):
        lagpu.steps(limit="x")


def test_an_error_in_the_body_keeps_the_steps_before(A):
    s = lagpu.steps()

    def breaks():
        with s:
            least_labels(A)
            raise KeyError

    with pytest.raises(KeyError):
        breaks()
    assert len(s) == 4


def test_a_trace_around_goes_on_after_it(A):
    v = Vector(INT64, 3, like=A)
    with lagpu.trace() as t, contextlib.ExitStack() as stack:
        v << 1
        s = stack.enter_context(lagpu.steps())
        v << 2
        stack.close()
        v << 3
    assert [row.formula for row in t.rows] == ["v << 1", "v << 3"]
    assert [(x.formula, x.output) for x in s] == [("v << 2", "v")]
