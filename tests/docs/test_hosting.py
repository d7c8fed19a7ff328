"""What publishes lagpu: the owner's addresses in one place, and what reads them."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="of the extra teach")
yaml = pytest.importorskip("yaml", reason="of python-graphblas")

pytestmark = pytest.mark.extra

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import notebooks  # noqa: E402

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OWNER = "https://github.com/me/lagpu"


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_and_commands_name_what_is_there(file):
    jobs = yaml.safe_load(file.read_text("utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name) for name in used)
    commands = "\n".join(step["run"] for step in steps if "run" in step)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    assert set(re.findall(r"--group (\w+)", commands)) <= set(groups)
    for place in re.findall(r"(?:bash|python|sphinx .*?-j 2) ((?:\.ci|docs)\b[\w/.]*)", commands):
        assert (ROOT / place).exists(), place


def test_the_addresses_of_the_owner_are_in_one_place(tmp_path):
    project = tmp_path / "pyproject.toml"
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert notebooks.source() == ""  # until there is an owner
    project.write_text(text.replace("# Source", "Source").replace("OWNER", "me"), "utf-8")
    assert notebooks.source(project) == OWNER
    shown = notebooks.runs_at("course/03_masks", OWNER)
    assert shown == {
        "Binder": "https://mybinder.org/v2/gh/me/lagpu/HEAD?urlpath=lab/tree/course/03_masks.ipynb",
        "Colab": "https://colab.research.google.com/github/me/lagpu/blob/gh-pages/"
        "course/03_masks.ipynb",
    }
    assert notebooks.runs_at("course/03_masks", "") == {}


def test_a_notebook_installs_from_there_and_promises_no_index():
    page = "# T\n\n```{code-cell}\nx = 1\n```\n"
    first = [notebooks.notebook(page, address).cells[1].source for address in (OWNER, "")]
    assert f'CLONE = "git+{OWNER}"' in first[0]
    assert 'CLONE = "file:///' in first[1]
    for cell in first:
        assert '%pip install -q "lagpu[teach] @ {CLONE}"' in cell
        assert not re.search(r'pip install [^@\n]*"lagpu\[\w+\]"', cell)


def test_binder_makes_the_notebooks_that_its_links_name(tmp_path, monkeypatch):
    script = (ROOT / ".binder" / "postBuild").read_text("utf-8")
    command = re.search(r"^python (docs/\S+) (\w+)$", script, re.M)
    monkeypatch.setattr(sys, "argv", [command[1], str(tmp_path / command[2])])
    exec(compile((ROOT / command[1]).read_text("utf-8"), str(ROOT / command[1]), "exec"),
         {"__name__": "__main__", "__file__": str(ROOT / command[1])})  # fmt: skip
    made = {file.stem for file in (tmp_path / command[2]).glob("*.ipynb")}
    assert made == {page.stem for page in (ROOT / "docs" / "course").glob("*.md")}
    address = notebooks.runs_at(f"{command[2]}/01_bfs_by_hand", OWNER)["Binder"]
    assert address.endswith(f"lab/tree/{command[2]}/01_bfs_by_hand.ipynb")


def test_each_picture_of_the_gallery_has_a_script_and_a_notebook():
    text = (ROOT / "docs" / "gallery.md").read_text("utf-8")
    made = list(notebooks.pictures(text))
    assert (
        len({name for name, *_ in made})
        == len(made)
        == len(re.findall(r"^(?:viz|t)\.\w+\(", text, re.M))
    )
    for name, script, book in made:
        call = name.rsplit("-", 1)[0]
        assert len(re.findall(r"^(?:viz|t)\.\w+\(", script, re.M)) == 1
        assert re.search(rf"^(?:viz|t)\.{call}\(.*\nplt\.show\(\)\n\Z", script, re.M | re.S)
        compile(script, name, "exec")
        code = "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")
        assert script.split("\n")[0] in code
