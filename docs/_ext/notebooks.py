"""A page of the course as a Jupyter notebook, which runs by itself wherever lagpu can be installed.

Its cells are those of the page; what only Sphinx understands becomes plain Markdown.

Usage: python docs/_ext/notebooks.py FOLDER   (writes the notebooks of the course)
"""

import re
import sys
import tomllib
from pathlib import Path

import nbformat
from alternatives import pictured, words
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
INSTALL = """\
# On a machine without lagpu: the address or the folder of a clone.
CLONE = "{clone}"
from importlib.util import find_spec

if not (find_spec("lagpu") and find_spec("matplotlib")):
    %pip install -q "lagpu[teach] @ {{CLONE}}"\
"""
SOLUTION = "# @title Solution {}\n"  # Colab hides the code below such a line

_CELL = re.compile(r"^```\{code-cell\}\n(?::tags: \[(.*?)\]\n)?(.*?)^```$", re.M | re.S)
_HEAD = re.compile(r"\A---\n.*?^---\n", re.M | re.S)
_PICTURE = re.compile(r"^% picture: .*\n", re.M)  # what a picture shows, for Sphinx
_MATH = re.compile(r"^```\{math\}\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#]*)(#[^)]*)?\)")


def source(project=PROJECT):
    """Return the address of the repository, from ``[project.urls]``; empty if it has none."""
    table = tomllib.loads(project.read_text("utf-8"))["project"].get("urls", {})
    return table.get("Source", "").rstrip("/")


def runs_at(page, address):
    """Return {name: address} of services that run a page of the course; ``course/01_bfs_by_hand``.

    Binder builds the repository by ``.binder``; Colab reads the notebook that is published.
    """
    repository = address.removeprefix("https://github.com/")
    if repository == address:
        return {}
    return {
        "Binder": f"https://mybinder.org/v2/gh/{repository}/HEAD?urlpath=lab/tree/{page}.ipynb",
        "Colab": "https://colab.research.google.com/github/"
        f"{repository}/blob/gh-pages/{page}.ipynb",
    }


def notebook(page, address=None):
    """Return the notebook of a page's text: MyST Markdown with code cells."""
    address = source() if address is None else address
    install = INSTALL.format(clone=f"git+{address}" if address else "file:///home/me/lagpu")
    page = _PICTURE.sub("", _HEAD.sub("", page))
    cells, at, solutions = [new_code_cell(install)], 0, 0
    for found in _CELL.finditer(page):
        cells.append(new_markdown_cell(_plain(page[at : found.start()])))
        tags, code = (found[1] or "").split(", ") if found[1] else [], found[2].rstrip("\n")
        metadata = {"tags": tags} if tags else {}
        if "hide-cell" in tags:
            solutions += 1
            code = SOLUTION.format(solutions) + code
            metadata |= {"cellView": "form", "jupyter": {"source_hidden": True}}
        cells.append(new_code_cell(code, metadata=metadata))
        at = found.end()
    cells.append(new_markdown_cell(_plain(page[at:])))
    cells = [cell for cell in cells if cell.source]
    cells.insert(0, cells.pop(1))  # the title stands first
    for k, cell in enumerate(cells):
        cell.id = f"cell-{k}"  # the same in each build
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.validate(made)
    return made


def pictures(page):
    """Yield, for each cell of the gallery that draws, a name, a script and a notebook.

    Both begin with the cells before it that draw nothing.
    """
    before, seen = [], {}
    for code, draws in pictured(page):
        if not draws:
            before.append(code)
            continue
        call = re.findall(r"^(?:viz|t)\.(\w+)\(", code, re.M)[-1]
        seen[call] = seen.get(call, 0) + 1
        name = f"{call}-{seen[call]}"
        script = "\n".join([*before, "import matplotlib.pyplot as plt\n", f"{code}plt.show()\n"])
        cells = "\n".join(f"```{{code-cell}}\n{one}```\n" for one in (*before, code))
        yield name, script, notebook(f"# {words(code)}\n\n{cells}")


def write(page, file):
    """Write the notebook of the file `page`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook(Path(page).read_text("utf-8")), file)


def _plain(text):
    """Return Markdown that any notebook shows: formulas in dollars, links to chapters alone."""
    return _LINK.sub(_linked, _MATH.sub(r"$$\n\1$$", text)).strip()


def _linked(found):
    label, target, part = found[1], found[2], found[3] or ""
    if "://" in target:
        return found[0]
    if "/" in target or not target:  # to another page, or within this one
        return label
    return f"[{label}]({target.removesuffix('.md')}.ipynb{part})"


if __name__ == "__main__":
    for chapter in sorted((PROJECT.parent / "docs" / "course").glob("*.md")):
        write(chapter, Path(sys.argv[1], f"{chapter.stem}.ipynb"))
