"""Pages of the course as notebooks: they hold the pages' cells, and run by themselves."""

import importlib.util
import os
import re
from pathlib import Path

import pytest
from samples import picked

nbclient = pytest.importorskip("nbclient", reason="of the extra teach")  # of the group files
pytest.importorskip("ipykernel", reason="of the extra teach")

pytestmark = pytest.mark.extra

DOCS = Path(__file__).parents[2] / "docs"
COURSE = sorted((DOCS / "course").glob("*.md"))


@pytest.fixture(scope="module")
def notebooks():
    """The module with which the pages are built."""
    spec = importlib.util.spec_from_file_location("notebooks", DOCS / "_ext" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sources(made, kind):
    return [cell.source for cell in made.cells if cell.cell_type == kind]


@pytest.mark.parametrize("page", COURSE, ids=lambda page: page.stem)
def test_a_notebook_holds_the_cells_of_its_page(page, notebooks):
    text = page.read_text("utf-8")
    made = notebooks.notebook(text)
    install, *cells = sources(made, "code")
    assert '%pip install -q "lagpu[teach] @ {CLONE}"' in install
    pattern = r"^```\{code-cell\}\n(?::tags: .*?\n)?(.*?)^```$"
    assert [re.sub(r"\A# @title.*\n", "", cell) for cell in cells] == [
        code.rstrip("\n") for code in re.findall(pattern, text, re.M | re.S)
    ]
    assert made.cells[0].source.startswith(f"# {page.stem[1]}. ")
    words = "\n".join(sources(made, "markdown"))
    assert not re.search(r"^(```|:::)\{|file_format|\.md\b", words, re.M)
    for chapter in re.findall(r"\]\((.*?)\.ipynb", words):
        assert (DOCS / "course" / f"{chapter}.md").exists()


def test_formulas_links_and_solutions_are_those_of_notebooks(notebooks):
    made = notebooks.notebook(
        "---\na: b\n---\n\n# T\n\n```{math}\nx_i\n```\n\n"
        "See [the next](02_b.md#c), [far](../f.md), [web](https://a.b/c.md) and\n[here](#d).\n\n"
        "```{code-cell}\n:tags: [hide-cell]\nx = 1\n```\n"
    )
    title, _, solution = made.cells
    assert title.source == (
        "# T\n\n$$\nx_i\n$$\n\n"
        "See [the next](02_b.ipynb#c), far, [web](https://a.b/c.md) and\nhere."
    )
    assert solution.source == "# @title Solution 1\nx = 1"
    assert solution.metadata == {
        "tags": ["hide-cell"], "cellView": "form", "jupyter": {"source_hidden": True}
    }  # fmt: skip


@pytest.mark.ci  # a kernel for each
@pytest.mark.parametrize(
    "page", picked(COURSE, COURSE[-1], rest="exhaustive"), ids=lambda page: page.stem
)
def test_a_notebook_runs(page, notebooks, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    made = notebooks.notebook(page.read_text("utf-8"))
    client = nbclient.NotebookClient(
        made, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute(env=dict(os.environ))
    outputs = [output for cell in made.cells for output in cell.get("outputs", ())]
    assert not [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    pictured = any("picture" in cell.metadata.get("tags", ()) for cell in made.cells)
    assert any("image/png" in o.get("data", ()) for o in outputs) == pictured
