"""Print the size of the project and its limits; exit with 1 if a limit is exceeded.

Usage: python .ci/bars.py
"""

import ast
import io
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Whether an exceeded limit fails; set it once all of them hold.
ENFORCED = True
#: What is measured, its limit, and the unit.
BARS = {
    "lines of lagpu/": (60_300, ""),
    "lines of code": (40_800, ""),
    "files": (290, ""),
    "imports of code": (9.0, " %"),
    "pages": (350.0, " kB"),
    "CHANGELOG.md": (4.0, " kB"),
    "README.md": (9.0, " kB"),
    "CONTRIBUTING.md": (9.0, " kB"),
}
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _lines_of(node):
    return set(range(node.lineno, node.end_lineno + 1))


def count(text):
    """Return the lines of a module that are code, and those of them that import or list names."""
    tree = ast.parse(text)
    docstrings, imports, code = set(), set(), set()
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstrings |= _lines_of(node.body[0])
        names = getattr(node, "targets", ())
        lists = any(getattr(name, "id", "") == "__all__" for name in names)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or lists:
            imports |= _lines_of(node)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            code |= set(range(token.start[0], token.end[0] + 1))
    code -= docstrings
    return len(code), len(code & imports)


def measured(root=ROOT):
    """Return the value of each bar."""
    texts = [file.read_text("utf-8") for file in sorted((root / "lagpu").rglob("*.py"))]
    code, imports = map(sum, zip(*map(count, texts), strict=True))
    pages = [f for f in (root / "docs").rglob("*.md") if "_build" not in f.parts]
    values = [
        sum(text.count("\n") for text in texts),
        code,
        len(texts),
        100 * imports / code,
        sum(f.stat().st_size for f in pages) / 1000,
        *((root / name).stat().st_size / 1000 for name in list(BARS)[5:]),
    ]
    return dict(zip(BARS, values, strict=True))


def main():
    """Print the table."""
    exceeded = []
    for name, value in measured().items():
        most, unit = BARS[name]
        shown = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
        over = value > most
        exceeded += [name] if over else []
        print(f"{name:18} {shown:>8}{unit:3} of {most:>8,}{unit:3} {'too large' if over else ''}")
    return int(ENFORCED and bool(exceeded))


if __name__ == "__main__":
    sys.exit(main())
