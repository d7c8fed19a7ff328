"""One page for all combinations of options: each has the steps of its own run."""

import base64
import gzip
import html
import json
import re

import pytest
from browser import browse, check_page, needs_browser

import lagpu
from lagpu import FP64, INT32, Vector, generators, loop, semiring
from lagpu.errors import DomainMismatch, InvalidValue, LimitExceeded


def search(A, source, semiring, mask):
    levels = Vector(INT32, A.nrows, like=A)
    frontier = Vector(FP64, A.nrows, like=A)
    frontier[source] = 2
    for depth in loop(until_empty=frontier, times=4):
        levels(frontier.S) << depth
        frontier(mask(levels), replace=True) << semiring(frontier @ A)


MASKS = {"~levels.S": lambda v: ~v.S, "levels.S": lambda v: v.S}
SEMIRINGS = [semiring.plus_first, semiring.min_plus]


@pytest.fixture
def A(backend):
    return generators.path(3, backend=backend)


@pytest.fixture
def found(A):
    return lagpu.explore(search, A, source=range(3), semiring=SEMIRINGS, mask=MASKS)


def packed(page):
    """Return the steps of each run that a page holds."""
    (inside,) = re.findall(r'id="others">(.*?)</script>', page)
    return json.loads(gzip.decompress(base64.b64decode(inside)))


def words(sections):
    """Return what the drawings of some steps say that they show."""
    return [html.unescape(said) for said in re.findall(r'aria-label="(Step .*?)"', sections)]


def test_each_combination_has_the_steps_of_its_own_run(A, found):
    runs = packed(found.to_html())
    assert len(runs) == len(found) == 12
    at = 0
    for source in range(3):
        for ring in SEMIRINGS:
            for label, mask in MASKS.items():
                alone = list(lagpu.step(search, A, source, ring, mask))
                assert words(runs[at]) == [step.words for step in alone]
                assert len(found[str(source), str(ring), label]) == len(alone)
                at += 1
    assert len({tuple(words(run)) for run in runs}) == 12


def test_the_page_shows_the_first_run_and_offers_the_values(found):
    page = found.to_html(title="All", facts={"graph": "path"})
    check_page(page)
    shown = page.split("<main>")[1].split("</main>")[0]
    assert words(shown) == words(packed(page)[0])
    (choices,) = re.findall(r'id="choices" hidden>(.*?)</span>', page)
    assert re.findall("<label>([^ ]*) <select>", choices) == ["source", "semiring", "mask"]
    assert "<option>~levels.S</option><option>levels.S</option>" in choices
    assert repr(found) == "Explored(source, semiring, mask: 12 combinations)"
    frame = found._repr_html_()
    assert frame.startswith("<iframe")
    assert ' onload="this.style.height=' in frame.split(" srcdoc=")[0]  # shows all of the page


def test_a_page_of_one_run_offers_nothing(A):
    with lagpu.steps() as s:
        search(A, 0, SEMIRINGS[0], MASKS["~levels.S"])
    assert '<script type="application/gzip" id="others"></script>' in s.to_html()
    assert "<select" not in s.to_html()


@needs_browser
def test_a_choice_shows_its_run(found, tmp_path):
    page = found.to_html()
    script = (
        "const all = [...document.querySelectorAll('select')];"
        "all.forEach((one, k) => { one.selectedIndex = [2, 1, 0][k]; });"
        "all[0].dispatchEvent(new Event('change'));"
        "setTimeout(() => { document.getElementById('last').click();"
        " const now = document.querySelector('.step:not([hidden]) .state svg');"
        " document.title = now.getAttribute('aria-label')"
        "  + '|' + document.getElementById('where').textContent; }, 300);"
    )
    dom = browse(page, tmp_path, script)
    said, where = html.unescape(re.search(r"<title>(.*?)</title>", dom)[1]).split("|")
    run = words(packed(page)[2 * 4 + 1 * 2 + 0])
    assert said == run[-1]
    assert where.startswith(f"step {len(run)} of {len(run)}")


def test_what_cannot_be_explored(A):
    with pytest.raises(DomainMismatch, match="explore: int cannot be called"):
        lagpu.explore(3, source=[0])
    for options in ({}, {"source": []}):
        with pytest.raises(InvalidValue, match="has no value"):
            lagpu.explore(search, A, **options)
    with pytest.raises(LimitExceeded, match="600 combinations > 500"):
        lagpu.explore(search, A, source=range(20), semiring=range(30))
    with pytest.raises(InvalidValue, match="explore: no statement ran in one of the runs"):
        lagpu.explore(lambda x: x, x=[1]).to_html()
