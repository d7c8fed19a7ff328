"""Pages in a headless browser: what is loaded, what a script finds, whether tags are closed."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")


VOID = {"wbr", "br", "col", "hr", "img", "input", "link", "meta"}


class Checker(HTMLParser):
    """Tells unbalanced tags and whatever a page would load."""

    def __init__(self):
        super().__init__()
        self.open, self.loads = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "action", "data") and not value.startswith(
                "#"
            ):
                self.loads.append((tag, name, value))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_page(page):
    """Balanced, and without anything from outside."""
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert checker.loads == []
    assert not re.search(r"https?:|@import|url\(|{{|}}", page)


def browse(page, tmp_path, script="", *options):
    """Return the document after its own scripts and then `script` have run."""
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", *options]
    done = subprocess.run(
        [*command, f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=1000",
         file.as_uri()],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return done.stdout


def cells(dom):
    """Return the texts of the rows of the list of statements, without the reasons."""
    body = dom.split('id="rows"')[1].split("<tbody>")[1].split("</tbody>")[0]
    body = re.sub(r"<div.*?</div>|</?code>", "", body)
    return [
        [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", line)]
        for line in body.split("<tr>")[1:]
    ]


def packed(page):
    """Return {column: its values} of the list of statements."""
    found = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    columns = {}
    for column in found["columns"]:
        values = column.get("values", [column.get("all")] * found["count"])
        texts = found["strings"]
        name = column["name"] + (" ms" if column["digits"] else "")
        columns[name] = [texts[v] for v in values] if column["text"] else values
    return columns
