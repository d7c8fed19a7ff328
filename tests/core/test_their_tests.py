"""python-graphblas' own tests: how many of their checks hold here, as docs/notation.md says."""

import json
import re
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parent / "docs" / "notation.md").read_text("utf-8")
_ROW = re.compile(r"^\| (\w+) \| (\d+) \| (\d+) \|$", re.MULTILINE)


def outcomes(library):
    """Return the outcome of each check, from a process that may change tables of operators."""
    command = [sys.executable, TESTS / "support" / "their_tests.py", library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def cpu():
    if f"python-graphblas {version('python-graphblas')}" not in PAGE:
        pytest.skip("the page counts the tests of another version")
    return outcomes("cpu")


#: A check for scalars of C, which python-graphblas does not reach as it runs by default.
ELSEWHERE = {"scalar test_set_value 164"}


def counted(found):
    held = {key for key, outcome in found.items() if outcome == "holds"}
    return Counter(key.split()[0] for key in held - ELSEWHERE)


@pytest.mark.ci
def test_as_many_checks_hold_as_the_page_says(cpu):
    """More or fewer are a change of the page: fewer need a reason."""
    said = {file: int(held) for file, _, held in _ROW.findall(PAGE)}
    assert counted(cpu) == said
    held, total = re.search(r"lagpu passes (\d+) of the (\d+) checks", PAGE).groups()
    assert int(held) == sum(said.values())
    assert int(total) == sum(int(n) for _, n, _ in _ROW.findall(PAGE))


@pytest.mark.exhaustive
def test_what_holds_on_cpu_holds_on_sim(cpu):
    """But for functions of Python, and for a vector whose size fits no device."""
    sim = outcomes("sim")
    other = [key for key, outcome in cpu.items() if outcome == "holds" and sim[key] != "holds"]
    source = {file: _functions(file) for file in counted(cpu)}
    assert [
        key
        for key in other
        if "test_large_vector" not in key and not source[key.split()[0]][key.split()[1]]
    ] == []


def _functions(file):
    """Return whether each test of a module makes operators of Python functions."""
    sys.path.insert(0, str(TESTS / "support"))
    import their_tests

    text = their_tests.path_of(file).read_text("utf-8")
    parts = re.split(r"^def (test_\w+)", text, flags=re.MULTILINE)[1:]
    return {
        n: "register_" in t or "lambda" in t for n, t in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.exhaustive
def test_all_of_these_checks_hold_in_python_graphblas(cpu):
    theirs = outcomes("graphblas")
    assert {file: int(n) for file, n, _ in _ROW.findall(PAGE)} == counted(theirs)
    there = {key for key, outcome in theirs.items() if outcome == "holds"}
    assert {key for key, outcome in cpu.items() if outcome == "holds"} - there == ELSEWHERE
