"""Imports point one way, `import lagpu` is light, public names are there, tests mirror the code."""

import ast
import collections
import functools
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from in_one import in_one

import lagpu

ROOT = Path(lagpu.__file__).parent

# A package imports from those in the lines above its own, and from itself; never from a neighbour
# on its line. The longest name that fits counts. The last line is `lagpu` itself.
ORDER = (
    ("errors",),
    ("dtypes", "versions"),
    ("host",),
    ("algebra",),
    ("operations",),
    ("backends.protocol", "backends.policies", "backends.match"),
    ("backends.guard",),
    ("backends.cpu", "backends.gpu"),
    ("backends.grid",),
    ("backends",),
    ("core",),
    ("loops",),
    ("draw",),
    ("observe",),
    ("io",),
    ("generators",),
    ("algorithms", "check", "viz"),
    ("catalog",),
    ("nx",),
    ("crosscheck", "selftest", "bench"),
    ("papers",),
    ("cli",),
    ("",),
)
BACKENDS = ("backends.cpu", "backends.gpu", "backends.grid")
# The same inside `backends.gpu`: a room imports from those before it, and from itself.
ROOMS = ("kernels", "device", "storage", "profile", "ops", "fused", "backend")

MOST_LINES = 1000
ARGUED_FOR: dict[str, str] = {}  # longer files, each with its reason


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def place(module):
    """Return (line of ORDER, package there) of a module."""
    found = [
        (len(package), line, package)
        for line, packages in enumerate(ORDER)
        for package in packages
        if package == "" or module == package or module.startswith(package + ".")
    ]
    return max(found)[1:]


def room(module):
    """Return the room of a module of `backends.gpu`, counted from 0."""
    name = ([*module.split("."), "", ""])[2]
    return ROOMS.index(name if name in ROOMS else "backend")


def imports(tree):
    """Yield every module of lagpu that is imported: late, and for types alone, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [n if n.removeprefix("lagpu.") in FILES else node.module for n in whole]
        else:
            continue
        for name in names:
            if name == "lagpu" or name.startswith("lagpu."):
                yield name.removeprefix("lagpu").removeprefix(".")


@functools.cache
def imports_of(module):
    """Return the modules of lagpu that a module imports."""
    return sorted(set(imports(ast.parse(FILES[module].read_text()))))


def why_not(module, imported):
    """Return why one module may not import another, or an empty string."""
    (line, package), (other, theirs) = place(module), place(imported)
    if other > line or (other == line and theirs != package):
        return f"{package or 'lagpu'} does not import {theirs or 'lagpu'}"
    inside = package == theirs == "backends.gpu"
    if inside and room(imported) > room(module):
        return f"{ROOMS[room(module)]} does not import {ROOMS[room(imported)]}"
    return ""


@in_one("module", FILES)
def test_imports_point_one_way(module):
    for imported in imports_of(module):
        assert not why_not(module, imported), f"{module} imports {imported}"


def test_nothing_outside_backends_imports_one():
    for module in FILES:
        if not module.startswith("backends"):
            taken = [i for i in imports_of(module) if i.startswith(BACKENDS)]
            assert not taken, (module, taken)


def test_there_is_no_circle():
    done, path = set(), []

    def visit(module):
        if module in path:
            raise AssertionError(" -> ".join([*path[path.index(module) :], module]))
        if module in done:
            return
        path.append(module)
        for other in imports_of(module) if module in FILES else ():
            # `from lagpu.package import module` runs the package's __init__ too: not followed
            visit(other)
        path.pop()
        done.add(module)

    for module in FILES:
        visit(module)


def test_every_package_has_its_place():
    packages = {package for line in ORDER for package in line if package}
    assert packages <= FILES.keys()
    top = {name.split(".")[0] for name in FILES if name} - {"__main__"}
    assert top <= {package.split(".")[0] for package in packages}
    rooms = {name.split(".")[2] for name in FILES if name.startswith("backends.gpu.")}
    assert set(ROOMS) <= rooms


def test_the_reader_of_imports_sees_them():
    tree = ast.parse(
        "from typing import TYPE_CHECKING\nimport lagpu.errors\nfrom lagpu import dtypes\n"
        "from lagpu.core.expr import Call\nif TYPE_CHECKING:\n"
        "    from lagpu.core.matrix import Matrix\n"
        "def f():\n    from lagpu.core.vector import Vector\n"
    )
    assert list(imports(tree)) == [
        "errors", "dtypes", "core.expr", "core.matrix", "core.vector"
    ]  # fmt: skip
    assert why_not("core.expr", "loops.loop")
    assert why_not("check.levels", "algorithms.bfs")
    assert why_not("backends.gpu.device.cuda", "backends.gpu.ops.spmv")
    assert not why_not("backends.gpu.ops.spmv", "backends.gpu.device.cuda")
    assert not why_not("loops.loop", "core.expr")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_import_is_light():
    heavy = (
        "cupy",
        "graphblas",
        "numba",
        "networkx",
        "typer",
        "rich",
        "matplotlib",
        "scipy",
        "pandas",
    )
    done = run(f"import sys, lagpu; print([m for m in {heavy!r} if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
    # What else takes long is many modules: there are 56 of ours and 26 of Python's.
    code = "import numpy, sys; n = len(sys.modules); import lagpu; print(len(sys.modules) - n)"
    assert int(run(code).stdout) < 100


def test_the_version_is_printed_without_the_rest(monkeypatch):
    watched = (
        "import atexit, runpy, sys; sys.argv = sys.orig_argv = ['lagpu', {0!r}]\n"
        "atexit.register(lambda: print('numpy' in sys.modules, 'lagpu.core' in sys.modules))\n"
        "import lagpu"
    )
    for option in ("--version", "-V"):
        done = run(watched.format(option))
        assert (done.returncode, done.stdout) == (0, f"lagpu {lagpu.__version__}\nFalse False\n")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    assert run(watched.format("-V")).stdout == "False False\n"
    assert run(watched.format("--help")).stdout == "True True\n"


def test_names_of_other_libraries_name_the_right_call():
    A = lagpu.Matrix.from_coo([0], [1], nrows=2, ncols=2, backend="cpu")
    for ask, answer in (
        (lambda: A.to_scipy(), r"lagpu\.io\.to_scipy\(A\)"),
        (lambda: A[0, :].new().to_numpy(), "to_dense"),
        (lambda: lagpu.read("x.mtx"), r"Write lagpu\.io\.read\."),
        (lambda: lagpu.pagerank(A), r"Write lagpu\.algorithms\.pagerank\."),
        (lambda: lagpu.kronecker(3), r"Write lagpu\.generators\.kronecker\."),
        (lambda: lagpu._read, r"there is no '_read'\.$"),
        (lambda: lagpu.nothing, r"there is no 'nothing'\.$"),
    ):
        with pytest.raises(AttributeError, match=answer):
            ask()


def test_a_loaded_package_is_noticed():
    done = run(
        "import sys, graphblas, lagpu; print([m for m in ('graphblas',) if m in sys.modules])"
    )
    assert done.stdout.strip() == "['graphblas']"


MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(lagpu.__path__, "lagpu.")
    if not name.endswith(("__main__", ".cuda"))
]


@in_one("name", ["lagpu", *MODULES])
def test_public_names(name):
    """What `__all__` lists is there, once."""
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", ())
    assert len(set(listed)) == len(listed)
    for public in listed:
        assert hasattr(module, public), f"{name}.{public}"


def test_the_package_lists_all_it_shows():
    shown = {n for n in vars(lagpu) if not n.startswith(("_", "@"))}  # "@": names of pytest
    modules = {m.split(".")[1] for m in MODULES}
    assert shown - modules <= set(lagpu.__all__)
    assert lagpu.__all__ == sorted(
        lagpu.__all__, key=lambda n: (not n.isupper(), not n[0].isupper(), n)
    )


SOURCES = {
    str(path.relative_to(ROOT)): path
    for path in sorted(ROOT.rglob("*"))
    if path.suffix in (".py", ".cu", ".cuh", ".hpp", ".cpp")
}
TESTS = {
    str(path.relative_to(Path(__file__).parent)): path
    for path in sorted(Path(__file__).parent.rglob("*.py"))
}


@in_one("name", [*SOURCES, *TESTS])
def test_long_files_are_argued_for(name):
    lines = len((SOURCES.get(name) or TESTS[name]).read_text().splitlines())
    assert (lines > MOST_LINES) == (name in ARGUED_FOR), f"{name} has {lines} lines"


def test_kernels_are_among_the_files_measured():
    assert {"backends/gpu/kernels/search/grid.cu", "core/expr.py"} <= SOURCES.keys()


# ------------------------------------------------------------------------------------ the tests

HERE = Path(__file__).parent
FOLDERS = {"support", "docs", "soak"}  # of no package: shared code, the pages, random programs


@in_one("name", [n for n in TESTS if Path(n).stem.startswith("test_")])
def test_a_test_lives_where_its_code_lives(name):
    package = ".".join(Path(name).parent.parts)
    assert package in FILES or package in FOLDERS, f"tests/{name}: there is no lagpu/{package}"


def test_every_package_has_its_tests():
    tested = {".".join(Path(name).parent.parts) for name in TESTS}
    packages = {m.rpartition(".")[0] for m in FILES if m.count(".")} - {""}
    for package in packages:
        assert any(t == package or t.startswith(package + ".") for t in tested), package


def test_names_of_tests_are_unique():
    """Their folders stand side by side on Python's path."""
    names = collections.Counter(Path(name).name for name in TESTS)
    assert [name for name, count in names.items() if count > 1] == []
    assert not {Path(name).stem for name in TESTS} & set(sys.stdlib_module_names)


def test_tests_share_by_support_alone():
    for name, path in TESTS.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in TEST_MODULES:
                assert (path.parent / f"{node.module}.py").exists(), (name, node.module)


TEST_MODULES = {Path(name).stem for name in TESTS if Path(name).stem.startswith("test_")}
