"""Slides: all code runs, all pictures are drawn, and the file needs no other."""

import html
import importlib.util
import re
import sys
from pathlib import Path

import pytest
from browser import browse, needs_browser

pytest.importorskip("matplotlib").use("Agg")  # of the group test

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = (DOCS / "slides" / "bfs.md").read_text("utf-8")


@pytest.fixture(scope="module")
def slides():
    """The module with which the slides are made."""
    sys.path.insert(0, str(DOCS / "_ext"))
    spec = importlib.util.spec_from_file_location("slides", DOCS / "_ext" / "slides.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(slides):
    return slides.slides(SOURCE, "A <title>", html.escape)


def sections(page):
    return re.findall(r'<section id="s\d+".*?</section>', page, re.S)


def test_each_slide_is_made_and_each_picture_drawn(page):
    made = sections(page)
    assert len(made) == len(SOURCE.split("\n---\n"))
    assert "<title>A &lt;title&gt;</title>" in page
    drawing = re.compile(r"^(?:viz\.|graph\().*\n```", re.M)
    assert page.count("<svg") >= len(drawing.findall(SOURCE)) > 10
    words = re.findall(r'<svg role="img" aria-label="(.*?)"', page)
    assert len(words) >= len(drawing.findall(SOURCE))
    assert "Picture" not in words
    assert page.count('<iframe title="steps"') == 1
    assert "[ 0  1  1  2  2  3 -1]" in page
    assert "{{" not in page


def test_the_lecture_takes_90_minutes_and_has_a_solution_for_each_exercise(page):
    assert sum(map(int, re.findall(r"<td>(\d+)</td>\s*<td>[A-Z]", page))) == 90
    titles = [re.search(r"<h1>(.*?)</h1>", section)[1] for section in sections(page)]
    exercises = [re.match(r"Exercise (\d)", title)[1] for title in titles if "Exercise" in title]
    assert exercises == ["1", "2", "3", "4", "5"]
    for number in exercises:
        at = next(k for k, title in enumerate(titles) if title.startswith(f"Exercise {number}"))
        assert titles[at + 1] == f"Solution {number}"
        asked, solved = (sections(page)[k].count("<li>") for k in (at, at + 1))
        assert asked == solved, number


def test_the_file_needs_no_other_and_names_no_folder(page):
    text = html.unescape(page)
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)|url\((?!#)|@import""", text)
    assert not re.search(
        r"https?://(?!www\.w3\.org/)", re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    )
    assert str(DOCS.parent) not in text
    assert sys.prefix not in text


@needs_browser
def test_pictures_are_whole_on_a_telephone(page, tmp_path):
    script = (
        "const drawn = [...document.querySelectorAll('.pictures svg')];"
        "const cut = svg => svg.getBoundingClientRect().right > innerWidth || !svg.viewBox.baseVal;"
        "const size = text => parseFloat(getComputedStyle(text).fontSize)"
        " * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b) * 390"
        " / document.documentElement.clientWidth;"  # without the scrollbar
        "document.title = [drawn.length, drawn.filter(cut).length,"
        " document.documentElement.scrollWidth <= innerWidth,"
        " Math.min(...[...document.querySelectorAll('.pictures svg text')].map(size))].join(' ');"
    )
    dom = browse(page, tmp_path, script, "--window-size=500,900")
    drawn, cut, fits, least = re.search(r"<title>(.*)</title>", dom)[1].split()
    assert int(drawn) > 10
    assert (cut, fits) == ("0", "true")
    assert float(least) >= 10  # pixels of text on a telephone of 390


def test_ids_that_drawings_refer_to_are_of_one_slide_each(page):
    """A browser takes the first of two equal ids, which may be on a slide that is hidden."""
    found = [set(re.findall(r'url\(#([^)]+)\)|href="#(\w+)"', s)) for s in sections(page)]
    for k, here in enumerate(found):
        assert not any(here & other for other in found[k + 1 :])


def test_what_a_cell_shows(slides):
    page = slides.slides(
        "# A\n\n```{math}\nx<y\n```\n\n```{code-cell}\nx = 1 < 2\nprint(x)\n```\n---\n"
        "# Exercise\n\n```{code-cell}\n:tags: [hide]\nprint('said')\n```\n",
        "t",
        html.escape,
    )
    first, second = sections(page)
    assert '<div class="formula">x&lt;y</div>' in first
    assert '<pre class="said">True</pre>' in first
    assert "&lt;" in first
    assert 'class="slide exercise"' in second
    assert re.findall("<pre.*?</pre>", second) == ['<pre class="said">said</pre>']


@needs_browser
def test_code_breaks_before_a_method_and_not_in_an_arrow(slides):
    made = slides._coloured("def f(A) -> int:\n    return A.select('x').new()")
    assert made.count('<span class="line"') == 2
    line = slides.lined('<span class="c">x -1</span> lagpu bfs g --param=a-b=0 -b cpu')
    assert re.findall('<span class="whole">(.*?)</span>', line) == ["--param=a-b", "-b"]
    assert "--in:0" in slides.lined(" " * 86)  # of a terminal: nothing, and not wider than its box
    commented = '<span class="m">1</span>  <span class="c1"># below</span>'
    assert 'class="c1 after"' in slides.lined(commented)
    assert "after" not in slides.lined('  <span class="c1"># a line of its own</span>')
    assert '--in:4">' in made
    assert '<wbr><span class="o">.</span><span class="n">new' in made
    assert '<span class="o whole">-&gt;</span>' in made


def test_code_is_as_large_as_text_and_each_slide_fits_a_screen(page, tmp_path):
    script = """
        const size = e => parseFloat(getComputedStyle(e).fontSize);
        const slides = [...document.querySelectorAll(".slide")], tall = [];
        slides.forEach((slide, k) => {
            slides.forEach((other, j) => { other.hidden = j !== k; });
            if (slide.scrollHeight > innerHeight + 1) tall.push(k + 1);
        });
        const less = [...document.querySelectorAll("pre")].filter(
            pre => size(pre) < size(pre.parentElement)).length;
        document.title = `${tall};${less};${document.querySelectorAll("pre").length}`;
    """
    dom = browse(page, tmp_path, script, "--window-size=1280,807")
    tall, less, code = re.search(r"<title>(.*)</title>", dom)[1].split(";")
    assert (tall, less) == ("", "0")
    assert int(code) > 15
