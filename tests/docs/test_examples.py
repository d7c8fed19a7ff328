"""Every example runs as a script, and prints what it should."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from samples import picked

import lagpu
from lagpu import io

EXAMPLES = Path(__file__).parents[2] / "examples"

SAYS = {
    "01_bfs_by_hand.py": ["level 1: 34 modules", "613 of 628 modules", "2 imports away"],
    "02_semirings.py": ["[1 2 1 2 1 2 0]", "{0: 0.0, 1: 7.0, 2: 2.0, 3: 6.0, 4: 5.0, 5: 7.0}"],
    "03_masks.py": ["~levels.S [0 1 2 3]", "~levels.V [2 1 2 3]", "town 2 None", "84 runs; 9 "],
    "04_push_and_pull.py": [
        "push 96,868, pull 56,422, the better at each level 5,358",
        "level 3:   267 -> pull_bitmap pulled before",
    ],
    "05_gpu_kernels.py": ["True 341 neighbours", "grid search: "],
    "06_cross_checking.py": [
        "bfs_levels on cpu and sim: 11 statements agree, loops of at most 5 iterations",
        "at 2 cpu has 1.0, sim -1.0",
        "all backends agree",
    ],
    "07_your_own.py": [
        "14 components",
        "generated loop: ",
        "[1.    0.81  0.45  0.656 0.401 0.357]",
        "holds: the source has level 0",
    ],
    "09_five_papers.py": ["alpha 1        ..^^.", "threshold 0.1  ..^^^", "agrees: True"],
    "08_exercises.py": ["at most 12 blocks", "[ 0.  2.  2.  7. 10.]", "[3 4 5]"],
}

#: What else they say where there is no C++ compiler: what is left of the lesson.
WITHOUT_COMPILER = {
    "04_push_and_pull.py": ["the better at each level 5,358", "SuiteSparse saxpy"],
    "05_gpu_kernels.py": ["road:64               79%     10%", "on cpu)"],
    "06_cross_checking.py": ["cpu: 232 vertices reached, levels proved"],
    "07_your_own.py": [
        "14 components",
        "[1.    0.81  0.45  0.656 0.401 0.357]",
        "holds: the source has level 0",
    ],
}


def script(path: Path, *args: object, **variables: str) -> str:
    places = [str(Path(lagpu.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))} | variables
    done = subprocess.run(
        [sys.executable, str(path), *map(str, args)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_examples_are_tested():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SAYS)


@pytest.mark.parametrize("name", picked(SAYS, "01_bfs_by_hand.py", "08_exercises.py"))
def test_example(name):
    out = script(EXAMPLES / name)
    for words in SAYS[name]:
        assert words in out


@pytest.mark.parametrize(
    "name",
    [
        *picked(WITHOUT_COMPILER, "06_cross_checking.py"),
        *picked([name for name in SAYS if name not in WITHOUT_COMPILER], rest="exhaustive"),
    ],
)
def test_an_example_needs_no_compiler(name, tmp_path):
    """With an empty ``PATH`` there is none, and with an empty cache nothing was compiled before."""
    lacks = {"PATH": str(tmp_path), "CXX": "", "LAGPU_CACHE_DIR": str(tmp_path / "cache")}
    out = script(EXAMPLES / name, **lacks)
    for words in WITHOUT_COMPILER.get(name, SAYS[name]):
        assert words in out
    assert ("simulated GPU: sim: no C++ compiler" in out) == (name in WITHOUT_COMPILER)


@pytest.mark.ci
def test_the_graph_can_be_made_again(tmp_path):
    """From this Python's library, which differs by version; the form must be the same."""
    made = tmp_path / "made.txt.gz"
    script(EXAMPLES / "data" / "stdlib_imports.py", made)
    shipped = EXAMPLES / "data" / "stdlib-imports.txt.gz"
    for file in (made, shipped):
        A = io.read(file, backend="cpu")
        lines = gzip.decompress(file.read_bytes()).decode().splitlines()
        names = [line.split()[2] for line in lines[3:] if line.startswith("#")]
        assert A.nrows == len(names)
        assert A.is_symmetric
        assert A.get(names.index("argparse"), names.index("gettext"))  # argparse translates
        assert A.get(names.index("json"), names.index("json.decoder"))
