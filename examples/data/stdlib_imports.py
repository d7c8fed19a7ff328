"""Make stdlib-imports.txt.gz: which modules of Python's standard library import which.

    python stdlib_imports.py stdlib-imports.txt.gz

Vertices are the library's modules written in Python, by name; an edge joins two modules of which
one imports the other, anywhere in its text. The file is a fact about CPython, not a copy of it, and
nobody's licence covers it.
"""

import ast
import gzip
import platform
import sys
import sysconfig
from pathlib import Path

LIBRARY = Path(sysconfig.get_path("stdlib"))
NOT_LIBRARY = {"site-packages", "test", "tests", "idle_test", "lib2to3", "__pycache__"}


def module_files() -> dict[str, Path]:
    """Return the file of each module by its dotted name."""
    found = {}
    for file in LIBRARY.rglob("*.py"):
        parts = file.relative_to(LIBRARY).with_suffix("").parts
        if all(part.isidentifier() and part not in NOT_LIBRARY for part in parts):
            found[".".join(parts).removesuffix(".__init__")] = file
    return found


def imported(name: str, file: Path, modules: dict[str, Path]) -> set[str]:
    """Return the modules among `modules` that one file imports."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    wanted = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            wanted |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - max(node.level - 1, 0)]
            origin = [*(above if node.level else []), *([node.module] if node.module else [])]
            base = ".".join(origin)
            wanted |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return wanted & modules.keys()


def main(out: str) -> None:
    modules = module_files()
    number = {name: k for k, name in enumerate(sorted(modules))}
    edges = set()
    for name, file in modules.items():
        for other in imported(name, file, modules) - {name}:
            edges.add((min(number[name], number[other]), max(number[name], number[other])))
    lines = [
        "# Undirected graph: imports between the modules of the Python standard library",
        f"# CPython {platform.python_version()}, {sys.platform}; made by stdlib_imports.py",
        f"# Nodes: {len(modules)} Edges: {len(edges)}",
        *(f"# {k} {name}" for name, k in number.items()),
        *(f"{i} {j}" for i, j in sorted(edges)),
    ]
    with gzip.GzipFile("", "wb", 9, Path(out).open("wb"), mtime=0) as file:
        file.write(("\n".join(lines) + "\n").encode())
    print(f"{out}: {len(modules)} modules, {len(edges)} edges")


if __name__ == "__main__":
    main(sys.argv[1])
