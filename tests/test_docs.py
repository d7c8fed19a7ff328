"""The pages say what is so: their code runs, and the course's code is that of the examples."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "{code-cell}" in page.read_text("utf-8"))
COURSE = [page for page in PAGES if page.parent.name == "course"]


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


def name(page):
    return str(page.relative_to(DOCS))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_code_of_a_page_runs(page, monkeypatch):
    monkeypatch.chdir(page.parent)
    monkeypatch.setattr(plt, "show", lambda: None)
    world = {"__name__": "page"}
    with contextlib.redirect_stdout(io.StringIO()):
        for _tags, code in cells(page):
            exec(compile(code, str(page), "exec"), world)
    plt.close("all")


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


def test_prose_has_no_long_dashes():
    for page in (*(DOCS / "course").glob("*.md"), *(DOCS / "operations").glob("*.md")):
        assert "\N{EM DASH}" not in page.read_text("utf-8"), page
