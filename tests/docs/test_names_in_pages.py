"""Pages about the code name files that exist, and functions and classes that are in them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/design/*.md"), *ROOT.glob("docs/kernels/*.md")]
)
KINDS = ("py", "cu", "cuh", "hpp", "cpp")
FILES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for folder in ("lagpu", "tests", ".ci", "docs", "examples", ".")
    for kind in KINDS
    for path in (ROOT / folder).glob("*." + kind if folder == "." else "**/*." + kind)
    if "_build" not in path.parts
}
#: What a page tells its reader to make.
TO_MAKE = {"lagpu/algorithms/widest.py", "tests/algorithms/test_widest.py"}
FILE = rf"[\w./-]+\.(?:{'|'.join(KINDS)})"


def prose(page):
    """Return the page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def found(file):
    """Return the texts of the files that a page means by a path's end."""
    return [text for name, text in FILES.items() if f"/{name}".endswith(f"/{file}")]


def missing_files(text):
    """Return the files in `text` that the repository lacks."""
    named = set(re.findall(rf"`({FILE})`", text))
    return sorted(file for file in named - TO_MAKE if not found(file))


def missing_names(text):
    """Return the (name, file) of "`name` in `file`" and "`file` `name`" that are not so."""
    listed = re.findall(rf"((?:`[\w.]+`(?:, | and | or ))*`[\w.]+`) in `({FILE})`", text)
    listed += [
        (names, file) for file, names in re.findall(rf"`({FILE})` ((?:`\w+`(?:, )?)+)", text)
    ]
    pairs = [(name, file) for names, file in listed for name in re.findall(r"`([\w.]+)`", names)]
    return [
        (name, file)
        for name, file in pairs
        if not re.fullmatch(FILE, name) and found(file)
        if not any(re.search(rf"\b{name.split('.')[-1]}\b", code) for code in found(file))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_names_is_there(page):
    text = prose(page)
    assert (missing_files(text), missing_names(text)) == ([], [])


def test_what_is_not_there_is_found():
    text = (
        "`fused/none.py`, `plan_loop` and `nowhere` in `fused/plan.py`; `ops/planner.py` `nobody`"
    )
    assert missing_files(text) == ["fused/none.py"]
    assert missing_names(text) == [("nowhere", "fused/plan.py"), ("nobody", "ops/planner.py")]
