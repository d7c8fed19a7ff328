"""The check of the built pages finds what a reader would stumble over, and nothing else."""

import importlib.util
import re
from pathlib import Path

import pytest
from browser import needs_browser

ROOT = Path(__file__).parents[2]
HEAD = "<!doctype html><html><head><meta charset='utf-8'></head><body><article>"

GOOD_CODE = (
    "<pre style='white-space:pre-wrap'><span class='line' style='display:block;"
    f"padding-left:8ch;text-indent:-8ch'>    {'call() ' * 30}\n</span></pre>"
)


@pytest.fixture
def look():
    spec = importlib.util.spec_from_file_location("pages", ROOT / ".ci" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


@pytest.mark.ci
@needs_browser
def test_what_is_wrong_with_a_page_is_reported(look, tmp_path, capsys):
    good = f"{HEAD}<h1>Good</h1><p>Some words.</p>{GOOD_CODE}"
    (tmp_path / "good.html").write_text(good, "utf-8")
    assert look(tmp_path) == 0
    word = "betweenness_centrality"
    (tmp_path / "wrong.html").write_text(
        f"{HEAD}<div style='width:999px'>wide</div><p style='font-size:5px'>tiny</p>"
        f"<p style='width:4em;overflow-wrap:anywhere'>{word}</p><img src='none.svg'>"
        f"<div style='overflow-x:auto;width:90px'><pre>{'long code ' * 9}</pre></div>"
        f"<img src='p.svg' alt='../{'0123456789abcdef' * 4}.svg'>"
        "<section><h1 style='font-size:20px'>Title</h1></section>"
        "<section><h2 style='font-size:24px'>Larger</h2></section>"
        "<a href='#nowhere'>there</a><table><tr><td data-label='needs'></td></tr></table>"
        "<math style='font-size:7px'><mi>x</mi></math>"
        "<details><summary>More</summary><p style='font-size:5px'>hidden</p></details>"
        f"<pre style='width:9em;white-space:pre-wrap'><span class='line'>    {'call() ' * 9}\n"
        "</span></pre><div class='highlight'><pre>bare</pre></div>"
        "<div class='cell_output'><pre style='font-size:5px'>printed</pre></div>"
        "<div style='height:31000px'></div>",
        "utf-8",
    )
    (tmp_path / "names.html").write_text(
        f"{HEAD}<dl class='py'><dt>f(<em class='sig-param'><span class='n'>k</span></em>)</dt>"
        "<dd>Of <a href='good.html'>k</a>, see docs/design/grid.md.</dd></dl>"
        "<p style='width:5em'>of 2026-11-21</p>"
        "<p>f(domain=&lt;function same&gt;)</p><pre>) -> Any:  # fmt: skip</pre>",
        "utf-8",
    )
    assert look(tmp_path) == 1
    reported = capsys.readouterr().out
    for fault in (
        "at 390 pixels: is ",
        "small: tiny",
        f"torn: {word}",
        "missing: none.svg",
        "cut: 90 of ",
        "p.svg has no words: ../0123456789",
        "pixels long",
        "a parameter is a link: k",
        "markup: , see docs/design/grid.md",
        "a heading as large as the one above it: Larger",
        "a link to nothing: #nowhere",
        "a label alone: needs",
        "small: x",
        "small: hidden",
        "small: printed",
        "wraps to its left: call()",
        "no lines: bare",
        "torn: 2026-11-21",
        "means nothing to a reader: <function same>",
        "means nothing to a reader: # fmt: skip",
    ):
        assert fault in reported
    assert "good.html" not in reported
    assert not list(tmp_path.glob(".look*"))


@pytest.mark.parametrize("picture", [f.name for f in (ROOT / "docs" / "_static").glob("*.svg")])
def test_labels_of_a_drawn_picture_have_14_pixels_in_the_column_of_a_page(picture):
    svg = (ROOT / "docs" / "_static" / picture).read_text("utf-8")
    sizes = re.findall(r"font-size=\"([\d.]+)|font(?:-size)?: ([\d.]+)px", svg)
    points = 4 / 3 if re.search(r'<svg [^>]*width="[\d.]+pt"', svg) else 1  # Matplotlib's unit
    assert min(float(a or b) for a, b in sizes) * points >= 14
    assert float(re.search(r'viewBox="0 0 ([\d.]+) ', svg)[1]) <= 736  # no page shrinks it
