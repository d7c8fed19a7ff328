"""Check the files of a wheel and of an sdist: all that the repository has, and nothing else.

Usage: python .ci/wheel.py FOLDER TREE   (the folder that both are in, and a clean copy of the tree)
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

# What an sdist leaves out, and what it adds.
LEFT_OUT, ADDED = {".gitattributes"}, {"PKG-INFO"}
MUST = (
    "lagpu/backends/gpu/kernels/spmv/push.cu",
    "lagpu/backends/gpu/kernels/program/program.cuh",
    "lagpu/backends/gpu/device/sim_runtime/runtime.cpp",
    "lagpu/draw/step.html",
    "lagpu/py.typed",
)


def main(folder: Path, tree: Path) -> None:
    """Exit with a message at the first difference."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    files = {str(f.relative_to(tree)) for f in tree.rglob("*") if f.is_file()}
    with zipfile.ZipFile(wheel) as packed:
        inside = {name for name in packed.namelist() if ".dist-info/" not in name}
    same(
        wheel.name,
        inside,
        {
            name
            for name in files
            if name.startswith(("lagpu/", "_lagpu_networkx.py", "_lagpu_pytest.py"))
        },
    )
    with tarfile.open(sdist) as unpacked:
        named = {m.name.partition("/")[2] for m in unpacked.getmembers() if m.isfile()}
    same(sdist.name, named, files - LEFT_OUT | ADDED)
    missing = [name for name in MUST if name not in inside]
    if missing:
        sys.exit(f"{wheel.name} lacks {', '.join(missing)}")
    print(f"{wheel.name}: {len(inside)} files; {sdist.name}: {len(named)} files")


def same(what: str, found: set[str], wanted: set[str]) -> None:
    """Exit if a set of names is another."""
    lacks, more = sorted(wanted - found), sorted(found - wanted)
    if lacks or more:
        sys.exit(f"{what} lacks {lacks[:5]} and has {more[:5]} more")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
