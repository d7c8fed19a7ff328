"""Imports only ever point down; `import lagpu` is light; public names are sorted and complete."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import lagpu

ROOT = Path(lagpu.__file__).parent

# Lowest first. A module may import its own layer and those below; the longest prefix counts.
LAYERS = (
    ("errors",),
    ("display", "distinct", "dtypes", "memory", "watch", "wholefile", "written"),
    ("refusals", "unused"),
    ("operators",),
    ("table",),
    ("algebra",),
    ("backends.cell",),
    ("backends.base", "backends.levels", "backends.matrices", "backends.measure"),
    ("backends.recording",),
    ("backends.cpu", "backends.gpu.kernels", "backends.gpu.gxx", "backends.gpu.functors"),
    ("backends.cpu.backend",),
    ("backends.gpu.device", "backends.gpu.casts"),
    ("backends.gpu.cudabound", "backends.gpu.events"),
    ("backends.gpu.cuda", "backends.gpu.sim", "backends.gpu.counters"),
    ("backends.gpu.later", "backends.gpu.leavings"),
    ("backends.gpu.storage",),
    ("backends.gpu",),  # everything else of it: free among themselves, but without a cycle
    ("backends.gpu.backend",),
    ("backends",),
    ("operands",),
    ("expr",),
    ("pairs",),
    ("products",),
    ("indexing", "compressed", "transposed", "collection", "explain", "submatrix"),
    ("selection",),
    ("vector",),
    ("matrix", "scalar"),
    ("loopsite",),
    ("loop", "csc", "sweep"),
    ("algorithms", "generators", "io", "check"),
    ("",),  # applications: the command line, the self-test, the package itself
)
APPLICATION = len(LAYERS) - 1
REGISTRY = next(k for k, names in enumerate(LAYERS) if "backends" in names)

# A package's __init__ stands above its own modules.
TOPS = {
    "backends.cpu": "backends.cpu.backend",
    "backends.gpu": "backends.gpu.backend",
}

# What may only be imported inside a function, each because the other way round is the rule.
LATE = {
    ("expr", "matrix"),  # a call makes its own output
    ("expr", "scalar"),
    ("expr", "vector"),
    ("vector", "matrix"),  # v.diag() is a matrix
    ("backends.gpu", "backends.gpu.cuda"),  # CuPy is loaded for a device alone
    ("backends.gpu", "backends.gpu.sim"),
}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def layer(module):
    module = TOPS.get(module, module)
    found = [
        (len(prefix), k)
        for k, prefixes in enumerate(LAYERS)
        for prefix in prefixes
        if prefix == "" or module == prefix or module.startswith(prefix + ".")
    ]
    return max(found)[1]


def imports(tree):
    """Yield (module of lagpu, whether it is imported inside a function), types apart."""
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    late = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
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
                yield name.removeprefix("lagpu").removeprefix("."), id(node) in late


IMPORTS = {name: list(imports(ast.parse(path.read_text()))) for name, path in FILES.items()}


@pytest.mark.parametrize("module", [m for m in FILES if layer(m) < APPLICATION])
def test_imports_point_down(module):
    for imported, late in IMPORTS[module]:
        if late:
            down = layer(imported) < layer(module)
            assert down or (module, imported) in LATE, f"{module} imports {imported} late"
        else:
            assert layer(imported) <= layer(module), f"{module} imports {imported}"


def test_backends_never_import_the_front_end():
    inside = [m for m in FILES if m.startswith("backends.")]
    assert inside
    for module in inside:
        for imported, _late in IMPORTS[module]:
            assert layer(imported) < REGISTRY, f"{module} imports {imported}"


def test_there_is_no_cycle():
    edges = {m: {i for i, late in IMPORTS[m] if not late} for m in FILES}
    done, path = set(), []

    def visit(module):
        assert module not in path, f"cycle: {path[path.index(module) :]}"
        if module in done:
            return
        path.append(module)
        for other in edges.get(module, ()):
            # `from lagpu.package import module` runs the package's __init__ too: not followed
            visit(other)
        path.pop()
        done.add(module)

    for module in FILES:
        visit(module)


def test_the_layers_are_not_empty_words():
    """Each prefix names a module, and each late import is still one."""
    for prefixes in LAYERS[:-1]:
        for prefix in prefixes:
            assert prefix in FILES, prefix
    late = {(m, i) for m in FILES for i, is_late in IMPORTS[m] if is_late}
    assert late >= LATE


def test_the_reader_of_imports_sees_them():
    tree = ast.parse(
        "from typing import TYPE_CHECKING\nimport lagpu.errors\nfrom lagpu import dtypes\n"
        "from lagpu.expr import Call\nif TYPE_CHECKING:\n    from lagpu.matrix import Matrix\n"
        "def f():\n    from lagpu.vector import Vector\n"
    )
    found = [("errors", False), ("dtypes", False), ("expr", False), ("vector", True)]
    assert list(imports(tree)) == found
    assert layer("matrix") > layer("vector") > layer("expr") > layer("operands")
    assert (
        layer("backends.gpu.kernels") < layer("backends.gpu.storage") < layer("backends.gpu.plan")
    )
    assert layer("backends.gpu") == layer("backends.gpu.backend")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_import_is_light():
    heavy = ("cupy", "graphblas", "numba", "networkx", "typer", "rich", "matplotlib")
    done = run(f"import sys, lagpu; print([m for m in {heavy!r} if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


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


@pytest.mark.parametrize("name", ["lagpu", *MODULES])
def test_public_names(name):
    """`__all__` is sorted as ruff sorts it, complete, and what it lists is there."""
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None)
    assert listed is not None, f"{name} has no __all__"
    assert len(set(listed)) == len(listed)
    for public in listed:
        assert hasattr(module, public), f"{name}.{public}"


def test_the_package_lists_all_it_shows():
    shown = {n for n in vars(lagpu) if not n.startswith("_")}
    modules = {m.split(".")[1] for m in MODULES}
    assert shown - modules <= set(lagpu.__all__)
    assert lagpu.__all__ == sorted(
        lagpu.__all__, key=lambda n: (not n.isupper(), not n[0].isupper(), n)
    )


TESTS = {path.name: path for path in sorted(Path(__file__).parent.glob("*.py"))}
SOURCES = {
    path.name: path
    for path in sorted(ROOT.rglob("*"))
    if path.suffix in (".cu", ".cuh", ".hpp", ".cpp")
}
WRITTEN = FILES | TESTS | SOURCES


def test_every_file_is_measured():
    assert len(WRITTEN) == len(FILES) + len(TESTS) + len(SOURCES)  # no two of one name
    assert {"rowsearch.cu", "sweep.cuh", "runtime.cpp"} <= SOURCES.keys()


@pytest.mark.parametrize("name", WRITTEN)
def test_small_files(name):
    lines = len(WRITTEN[name].read_text().splitlines())
    assert lines <= 400, f"{name} has {lines} lines: split it, or argue for it here"
