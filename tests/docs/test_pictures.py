"""Every picture of a page has words for readers who do not see it."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
from alternatives import alternatives, pictured, words  # noqa: E402

PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)
MARKDOWN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
DRAWN = [page for page in PAGES if any(draws for _, draws in pictured(page.read_text("utf-8")))]


@pytest.mark.parametrize("page", DRAWN, ids=lambda page: page.stem)
def test_a_picture_that_a_cell_draws_has_words(page):
    text = page.read_text("utf-8")
    for (code, draws), said in zip(pictured(text), alternatives(text), strict=True):
        assert len(said) > 20 or not draws, code


@pytest.mark.parametrize("page", DRAWN, ids=lambda page: page.stem)
def test_words_and_picture_name_an_object_alike(page):
    """The words have a variable's name, and the picture has the name of its object."""
    cells = [code for code, _ in pictured(page.read_text("utf-8"))]
    named = dict(re.findall(r'(?m)^(\w+) = [^=]+\(.*name="([^"]+)"\)$', "\n".join(cells)))
    for code in cells:
        for drawn in re.findall(r"^viz\.(?:vector|matrix)\(([\w, ]+)\)", code, re.M):
            assert [named.get(x, x) for x in drawn.split(", ")] == drawn.split(", ")


def test_a_cell_of_an_operation_draws_one_picture():
    for page in (ROOT / "docs" / "operations").glob("*.md"):
        for code, _ in pictured(page.read_text("utf-8")):
            assert len(re.findall(r"^viz\.\w+\(", code, re.M)) <= 1, page.name


def test_images_have_words():
    found = [(page.name, said) for page in MARKDOWN for said in images(page.read_text("utf-8"))]
    assert len(found) >= 2
    assert [page for page, said in found if len(said) < 40] == []


def images(text):
    """Return the words of each image of a page."""
    named = re.findall(r"!\[([^\]]*)\]\(", text)
    tags = re.findall("<img.*?>", text)
    return named + ["".join(re.findall(r'alt="(.*?)"', tag)) for tag in tags]


def test_the_words_are_those_of_the_call():
    said = words("x = viz.product(semiring.any_pair(q @ A), mask=~m.S)")
    assert said.startswith("The product semiring.any_pair(q @ A) under the mask ~m.S:")
    assert words("viz.vector(u, w)") == "Vectors, a row of cells each: u, w."
    assert words("print(u)") == ""


def test_a_comment_replaces_them():
    text = "Words.\n\n% picture: Two bars.\n```{code-cell}\n:tags: [picture]\nplt.show()\n```\n"
    assert alternatives(text) == ["Two bars."]
    assert pictured(text) == [("plt.show()\n", True)]
    assert alternatives(text.replace("% picture", "% other")) == [""]
    assert images('![](a.svg) <img src="a" alt="b"> <img src="c">') == ["", "b", ""]
