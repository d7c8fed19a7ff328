"""Look at each built page in a browser, as wide as a telephone and as a laptop.

Usage: python .ci/pages.py FOLDER   (what sphinx-build wrote; without Chromium nothing is looked at)

Of each page it reports what is wider than the window or too long to find anything, boxes that
scroll sideways and so cut what they hold, words that a line break tears, links to nothing, names of
parameters that are links, pictures that are missing or have no words, text and formulas that are
small, pictures that are shrunk until their labels are, cells of a table whose sentences have no
room or that have only a label, columns that are empty or nearly so, empty items of lists, sentences
that lack their last word, markup that is not set, comments for tools, defaults that are addresses,
headings that are not larger than those below them, and code whose wrapped lines hide its
indentation.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTHS = (390, 1280)
LONGEST = 30_000  # pixels of a page; the Python interface, in which a reader searches, has more
AT_ONCE = 12  # pages for one start of the browser
LEFT_OUT = {"genindex.html", "search.html", "py-modindex.html"}

# One page after another in a frame: a browser's own window is never as narrow as a telephone.
LOOK = """
<!doctype html><body style="margin:0"><pre id="found"></pre><script>
const pages = PAGES, width = WIDTH, found = {};
const frame = document.createElement("iframe");
frame.style = `width:${width}px;height:900px;border:0`;
function dedents(page, line) {  // does the rest of a line of code begin at its left or before?
  const words = page.createTreeWalker(line, NodeFilter.SHOW_TEXT), range = page.createRange();
  for (let first = null, text; (text = words.nextNode()); ) {
    const at = text.nodeValue.search(/\\S/);
    if (at < 0) continue;
    range.setStart(text, at);
    range.setEnd(text, text.length);
    for (const box of range.getClientRects()) {
      first ??= box;
      if (box.width > 1 && box.top > first.bottom - 2 && box.left <= first.left) return true;
    }
  }
  return false;
}
function faults(page) {
  const faults = [], root = page.querySelector("article") || page.body;
  if (page.documentElement.scrollWidth > width)
    faults.push(`is ${page.documentElement.scrollWidth} pixels wide`);
  if (page.documentElement.scrollHeight > LONGEST && !page.querySelector("dl.py"))
    faults.push(`is ${page.documentElement.scrollHeight} pixels long`);
  for (const closed of root.querySelectorAll("details")) closed.open = true;
  const size = e => parseFloat(getComputedStyle(e).fontSize);
  const headings = [1, 2, 3].map(k => root.querySelector(`section > h${k}`)).filter(Boolean);
  for (let k = 1; k < headings.length; k++)
    if (size(headings[k]) >= size(headings[k - 1]))
      faults.push(`a heading as large as the one above it: ${headings[k].textContent}`);
  for (const part of root.querySelectorAll("math, math *"))
    if (size(part) < (part === part.closest("math") ? 10 : 9))
      faults.push(`small: ${part.textContent}`);
  for (const link of root.querySelectorAll("a[href^='#']"))
    if (link.hash && !page.getElementById(decodeURIComponent(link.hash.slice(1))))
      faults.push(`a link to nothing: ${link.hash}`);
  for (const entry of root.querySelectorAll("dl.py")) {
    const names = [...entry.querySelectorAll(":scope > dt em.sig-param")];
    const own = new Set(names.map(e => e.querySelector(".n")?.textContent));
    for (const link of entry.querySelectorAll(":scope > dd a:not(.headerlink)"))
      if (link.closest("dl.py") === entry && own.has(link.textContent))
        faults.push(`a parameter is a link: ${link.textContent}`);
  }
  for (const code of root.querySelectorAll(".highlight pre"))
    if (!code.querySelector(".line")) faults.push(`no lines: ${code.textContent.trim()}`);
  for (const line of root.querySelectorAll("pre .line"))
    if (dedents(page, line)) faults.push(`wraps to its left: ${line.textContent.trim()}`);
  for (const cell of root.querySelectorAll("td[data-label]"))
    if (!cell.textContent.trim() && !cell.querySelector("img") && cell.getClientRects().length)
      faults.push(`a label alone: ${cell.dataset.label}`);
  const words = page.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let text; (text = words.nextNode()); ) {
    const e = text.parentElement;
    if (!text.nodeValue.trim() || !e.getClientRects().length) continue;
    if (e.closest("svg, math, .headerlink, script, style")) continue;
    if (e.closest(".sig") && !e.closest(".sig-name, .sig-prename")) continue;
    const code = e.closest("pre"), size = parseFloat(getComputedStyle(e).fontSize);
    if (size < (code ? 8 : 9)) faults.push(`small: ${text.nodeValue.trim()}`);
    if (code && !e.closest(".cell_input, [class*=highlight-]")) continue;
    const tiny = /[\u1d62-\u1d6a\u2080-\u209c]/.exec(text.nodeValue);
    if (tiny) faults.push(`small: ${tiny[0]}`);
    const unset = /\\]\\(|``|<!--|\\*\\*$|docs\\/\\w+\\/\\w+\\.md/;
    if (unset.test(text.nodeValue) && !code && !e.closest("code"))
      faults.push(`markup: ${text.nodeValue.trim()}`);
    for (const word of text.nodeValue.matchAll(code ? /\\w+/g : /\\d{4}-\\d\\d-\\d\\d|[\\w.]+/g)) {
      const range = page.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (lines.size > 1) faults.push(`torn: ${word[0]}`);
    }
  }
  const alone = /# fmt: \\w+|# noqa\\b|<(?:function|factory|object)\\b[^>]*>/g;
  for (const found of root.textContent.matchAll(alone))
    faults.push(`means nothing to a reader: ${found[0]}`);
  for (const cell of root.querySelectorAll("table.docutils td"))
    if (cell.textContent.length > 40 && cell.clientWidth < 120)
      faults.push(`${cell.clientWidth} pixels for: ${cell.textContent}`);
  for (const table of root.querySelectorAll("table.docutils")) {
    const rows = [...table.querySelectorAll("tbody tr")].map(row => [...row.cells]);
    for (let k = 0; k < rows[0]?.length && rows.length > 1; k++) {
      const found = rows.map(row => row[k]?.textContent.trim() || row[k]?.querySelector("img"));
      const none = rows.length > 40 && found.filter(x => !x).length > rows.length / 2;
      if (found.every(x => !x || x === "-") || (k && none))
        faults.push(`an empty column: ${table.rows[0].cells[k].textContent}`);
    }
  }
  for (const item of root.querySelectorAll("li"))
    if (!item.textContent.trim() && !item.querySelector("img")) faults.push("an empty list item");
  for (const p of root.querySelectorAll("p"))
    if (/\\w \\.$/.test(p.textContent.trim())) faults.push(`lacks a word: ${p.textContent}`);
  for (const img of root.querySelectorAll("img")) {
    const name = img.src.split("/").pop();
    if (!img.naturalWidth) faults.push(`missing: ${name}`);
    else if (img.width < (width > 500 ? 0.72 : 0.45) * img.naturalWidth)
      faults.push(`${name} is ${img.width} of ${img.naturalWidth} pixels wide`);
    if (img.alt.length < 15 || /[0-9a-f]{20}/.test(img.alt))
      faults.push(`${name} has no words: ${img.alt}`);
  }
  for (const e of root.querySelectorAll("*")) {
    const { scrollWidth: wide, clientWidth: room } = e;
    if (wide > room + 1 && room && getComputedStyle(e).overflowX !== "visible")
      faults.push(`cut: ${room} of ${wide} pixels of <${e.localName}> ${e.textContent.trim()}`);
  }
  return faults;
}
async function look() {
  document.body.append(frame);
  for (const page of pages) {
    await new Promise(done => { frame.onload = done; frame.src = page; });
    found[page] = faults(frame.contentDocument);
  }
  document.getElementById("found").textContent = JSON.stringify(found);
}
look();
</script></body>
"""


def seen(browser: str, folder: Path, pages: list[str], width: int) -> dict[str, list[str]]:
    """Return {page: what is wrong with it} of some pages below a folder."""
    with tempfile.TemporaryDirectory() as private:
        harness = folder / f".look-{width}.html"
        made = LOOK.replace("PAGES", json.dumps(pages)).replace("WIDTH", str(width))
        made = made.replace("LONGEST", str(LONGEST))
        harness.write_text(made, "utf-8")
        try:
            dom = subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                 "--allow-file-access-from-files", f"--user-data-dir={private}",
                 "--window-size=1400,1000", "--virtual-time-budget=60000", harness.as_uri()],
                capture_output=True, text=True, check=True, timeout=300,
            ).stdout  # fmt: skip
        finally:
            harness.unlink()
    text = re.search(r'<pre id="found">(.*?)</pre>', dom, re.S)
    if not text or not text[1]:
        return {page: ["the browser has said nothing of it"] for page in pages}
    return json.loads(html.unescape(text[1]))


def main(folder: Path) -> int:
    """Print what is wrong; return 1 if anything is."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium: pages are not looked at")
        return 0
    folder = folder.resolve()
    files = [file for file in folder.rglob("*.html") if "_static" not in file.parts]
    pages = sorted(str(f.relative_to(folder)) for f in files if f.name not in LEFT_OUT)
    wrong = 0
    for width in WIDTHS:
        for k in range(0, len(pages), AT_ONCE):
            for page, faults in seen(browser, folder, pages[k : k + AT_ONCE], width).items():
                for line in faults:
                    print(f"{page} at {width} pixels: {line[:160]}")
                wrong += bool(faults)
    print(f"{len(pages)} pages looked at, at {' and '.join(map(str, WIDTHS))} pixels")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
