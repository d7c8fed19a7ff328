"""Pages name files, functions, modules and headings that exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = [
    *(ROOT / name for name in HEADS),
    *sorted(page for page in ROOT.glob("docs/**/*.md") if "_build" not in page.parts),
]
KINDS = ("py", "cu", "cuh", "hpp", "cpp")
OTHERS = ("md", "json", "toml", "cff", "svg")
FILES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for folder in ("lagpu", "tests", ".ci", "docs", "examples", ".")
    for kind in (*KINDS, *OTHERS)
    for path in (ROOT / folder).glob("*." + kind if folder == "." else "**/*." + kind)
    if "_build" not in path.parts
}
FOLDERS = {str(Path(name).parent) for name in FILES}
#: What a page tells its reader to make, or a program of its own.
TO_MAKE = {
    "lagpu/algorithms/widest.py",
    "tests/algorithms/test_widest.py",
    "program.py",
    "search.py",
    "report.json",
    "lagpu/backends/gpu/device/cubins/",
}
FILE = rf"[\w./-]+\.(?:{'|'.join((*KINDS, *OTHERS))})"
WORDS = {
    word
    for name, text in FILES.items()
    if name.endswith(KINDS)
    for word in re.findall(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+", text)
}


def prose(page):
    """Return the page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def found(file):
    """Return the texts of the files that a page means by a path's end."""
    return [text for name, text in FILES.items() if f"/{name}".endswith(f"/{file}")]


def missing_files(text):
    """Return the files and folders in `text` that the repository lacks."""
    named = set(re.findall(rf"`({FILE})`", text))
    places = set(re.findall(r"`((?:lagpu|tests|docs|examples|\.ci)/[\w/.]*)`", text))
    lost = [file for file in named - TO_MAKE if not found(file)]
    lost += [
        place
        for place in places - named - TO_MAKE
        if place.strip("/") not in FOLDERS and not (ROOT / place).exists()
        if not place.isupper() and "NAME" not in place
    ]
    return sorted(lost)


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


def missing_constants(text):
    """Return the names such as `MOST_GROUP` in `text` that no source file has."""
    return sorted(set(re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", text)) - WORDS)


def missing_modules(text):
    """Return the dotted names of lagpu, in prose and in commands, that cannot be imported."""
    named = re.findall(r"`(lagpu(?:\.\w+)+)(?:\(.*?\))?`|python -m (lagpu[\w.]+)", text)
    return sorted({name for pair in named for name in pair if name and not is_there(name)})


def is_there(name):
    """Return whether a dotted name is a module, or a name in one."""
    module, _, last = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ImportError:
        if not module:
            return False
        if is_there(module):
            parts = module.split(".")
            thing = importlib.import_module(parts[0])
            for part in (*parts[1:], last):
                thing = getattr(thing, part, None)
            return thing is not None
        return False
    return True


def headings(page):
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.M)
    plain = [re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles]
    return {*plain, *re.findall(r"^\(([\w-]+)\)=$", page.read_text("utf-8"), re.M)}


def missing_links(text, page):
    """Return the targets of links that are no file, or no heading of one."""
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub("`[^`]*`", "", text)):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if target.startswith("https://"):
            continue
        if not file.exists() or (anchor and anchor not in headings(file)):
            lost.append(target)
    return lost


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page):
    text, whole = prose(page), page.read_text("utf-8")
    assert (missing_files(text), missing_names(text), missing_constants(text)) == ([], [], [])
    assert (missing_modules(whole), missing_links(text, page)) == ([], [])


def test_a_search_on_the_command_line_has_a_source():
    found = [
        line
        for page in PAGES
        for line in re.findall(r"lagpu bfs \w[^`\n]*", page.read_text("utf-8"))
    ]
    assert found
    assert [line for line in found if not re.search(r" --sources? ", line)] == []


def test_what_is_not_there_is_found():
    text = (
        "`fused/none.py`, `plan_loop` and `nowhere` in `fused/plan.py`; `ops/planner.py` `nobody`"
        " `tests/none` `lagpu.none` `lagpu.algorithms.bfs` python -m lagpu.nothing"
        f" `MOST_GROUP` `{'_'.join(('SEARCH', 'BETA'))}`"
    )
    assert missing_files(text) == ["fused/none.py", "tests/none"]
    assert missing_names(text) == [("nowhere", "fused/plan.py"), ("nobody", "ops/planner.py")]
    assert missing_constants(text) == ["_".join(("SEARCH", "BETA"))]
    assert missing_modules(text) == ["lagpu.none", "lagpu.nothing"]
    links = "[a](README.md) [b](README.md#install) [c](README.md#nothing) [d](none.md) `[e](no)`"
    assert missing_links(links, ROOT / "x.md") == ["README.md#nothing", "none.md"]


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "_static").glob("*.svg")))
def test_what_a_picture_names_is_there(picture):
    text = re.sub(r"<[^>]*>", " ", picture.read_text("utf-8"))
    named = re.findall(r"[\w./-]+\.(?:pyi?|cuh?)\b", text)
    assert [file for file in named if not found(file)] == []
