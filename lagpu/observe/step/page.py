"""The steps of an algorithm as one self-contained HTML page."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Iterable, Mapping
from types import CodeType

from lagpu.draw.look import fill, text
from lagpu.errors import LimitExceeded
from lagpu.host.source import SYNTAX, file_name
from lagpu.observe.step.drawing import LARGEST, GraphDrawing, Layout, Step, draw, legend

#: Most steps on a page.
MOST = 1000


def require_size(size: int, name: str, what: str) -> None:
    """Raise `LimitExceeded` if an object is larger than a page draws."""
    if size > LARGEST:
        raise LimitExceeded(
            f"{what}: {name} has size {size:,} > {LARGEST}, the largest that a page draws. "
            "Use a smaller graph, such as kron:4 or grid:4x5."
        )


def page(
    steps: Iterable[Step],
    title: str,
    facts: Mapping[str, object] | None = None,
    *,
    what: str = "page",
) -> str:
    """Return a page that shows one step at a time, and prints all of them.

    An error message begins with `what`. Raises `LimitExceeded` if there are more than `MOST` steps,
    or a vector or matrix is larger than `LARGEST`.
    """
    small = []
    for step in steps:
        for name, state in step.vectors.items():
            require_size(state.size, name, what)
        for name, A in step.matrices.items():
            require_size(max(A.shape), name, what)
        small.append(step)
    if len(small) > MOST:
        raise LimitExceeded(
            f"{what}: {len(small):,} steps > {MOST}, the most that a page shows. "
            "Use a graph of fewer levels, or fewer iterations."
        )
    layout = Layout.of(small)
    codes = list(dict.fromkeys(step.code for step in small if step.code is not None))
    shared: dict[str, str] = {}

    def share(element: str) -> str:
        if len(element) < 200:
            return element
        name = shared.setdefault(element, f"p{len(shared)}")
        return f'<use href="#{name}"/>'

    graph = _graph(layout, small)
    sections = [
        _section(
            step,
            codes,
            draw(step, layout, share),
            "" if graph is None else graph.draw(step, share),
        )
        for step in small
    ]
    return fill(
        "step.html",
        title=text(title),
        facts=text(", ".join(f"{k} {v}" for k, v in (facts or {}).items())),
        count=str(max(len(small), 1)),
        shared="".join(f'<g id="{name}">{element}</g>' for element, name in shared.items()),
        codes="".join(_listing(k, code, small) for k, code in enumerate(codes)),
        steps="".join(sections),
        legend=legend(),
    )


def _graph(layout: Layout, steps: list[Step]) -> GraphDrawing | None:
    """Return the drawing of the graph whose matrix the products use, if it is square."""
    name = layout.matrix or ""
    found = next((step.matrices[name] for step in steps if name in step.matrices), None)
    return None if found is None or found.nrows != found.ncols else GraphDrawing(name, steps)


def _section(step: Step, codes: list[CodeType], drawing: str, graph: str) -> str:
    code = codes.index(step.code) if step.code is not None else -1
    level = str(step.level) if step.level >= 0 else ""
    return (
        f'<section class="step" data-code="{code}" data-line="{step.line}" '
        f'data-last="{step.last_line}" data-level="{level}">'
        f'<div class="state"><h2>step {step.number}, {text(step.where)}</h2>'
        f'<p>{text(step.source or step.formula)}</p>{drawing}</div><div class="graph">{graph}</div>'
        "</section>"
    )


def _listing(number: int, code: CodeType, steps: list[Step]) -> str:
    """Return the source of a function as HTML, or those statements of a script that ran."""
    whole = code.co_name == "<module>"
    try:
        lines, first = (
            (linecache.getlines(code.co_filename), 1) if whole else inspect.getsourcelines(code)
        )
    except OSError:
        lines, first = [], code.co_firstlineno
    lines = textwrap.dedent("".join(lines) or "# the source cannot be read").splitlines()
    hidden = _hidden(lines, {step.line for step in steps if step.code is code} if whole else None)
    spans = ""
    for k, line in enumerate(lines):
        if k + 1 not in hidden:
            bare, n = line.strip(), first + k
            indent = len(line) - len(line.lstrip())  # of the line's continuation where it wraps
            shown = f'<code style="--in:{indent}">{text(bare)}</code>'
            spans += f'<span id="c{number}-{n}" data-n="{n}">{shown}</span>'
    name = text(file_name(code.co_filename))
    return f'<div class="code"><h2>{name}</h2><pre>{spans}</pre></div>'


def _hidden(lines: list[str], ran: set[int] | None) -> set[int]:
    """Return the lines, from 1, that a listing leaves out.

    Those of a function's docstring after the first; or, of a script, the outermost statements
    without one of the lines `ran`.
    """
    try:
        with SYNTAX:
            body = ast.parse("\n".join(lines)).body
    except SyntaxError:
        return set()
    if ran is not None:
        spans = [range(node.lineno, (node.end_lineno or 0) + 1) for node in body]
        kept = {n for span in spans if ran.intersection(span) for n in span}
        return set(range(1, len(lines) + 1)) - kept if kept else set()
    function = next(iter(body), None)
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(function):
        docstring = function.body[0]
        return set(range(docstring.lineno + 1, (docstring.end_lineno or 0) + 1))
    return set()
