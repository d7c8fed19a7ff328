"""A page for each algorithm of `lagpu.catalog`, made of docstring, source, steps and data.

The pages are files of ``docs/algorithms`` while Sphinx runs. A new row of the catalog has its page.
"""

import ast
import inspect
import json
import re
import shutil
import textwrap
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import figures
import numpy as np

import lagpu
from lagpu import Matrix, Vector, algorithms, catalog, generators
from lagpu.errors import LagpuError, LimitExceeded
from lagpu.host.display import short
from lagpu.observe.step import drawing

MEASURED = "h200-algorithms.json"
_WIDE = 480  # pixels of a picture that has a line to itself
_SHOWN = 12  # entries of a vector in text
_LINES, _LONG = 45, 25  # of code
_STATEMENTS, _PICTURES, _RECORDED = 12, 4, 100
_FACTS = {"source": 0, "target": 5, "sources": [0, 4], "few": [0, 4], "radius": 2, "sampled": 3}
_RULE = re.compile(r"\n\n(\w[\w ]*)\n-+\n")
#: Questions that users ask, and the semirings in the loops of the algorithms that answer.
TOPICS = {
    "levels": ("how many edges away? from which vertex?", "`any_pair`, `any_secondi`"),
    "nearest": ("from the nearest of several vertices? within k edges?", "`any_pair`"),
    "each": ("from each of several vertices, all at once?", "`any_pair`, `any_secondi`"),
    "paths": ("along how many shortest paths?", "`plus_first`"),
    "route": ("on which path?", "`any_secondi`"),
    "weights": ("how far, by weights?", "`min_plus`, `any_secondi`"),
    "across": ("how large is the graph across?", "those of `bfs_levels`"),
    "parts": ("which vertices are connected?", "`min_first`, `min_second`, `any_pair`"),
    "central": ("which vertices are central?", "`plus_first`, `plus_second`, `plus_times`"),
    "sides": ("two colours, or an odd cycle?", "`any_first`, `any_secondi`"),
    "order": ("what depends on what?", "`plus_pair`"),
    "core": ("which vertices are in the dense core?", "`plus_pair`"),
    "triangles": ("whose friends are friends?", "`plus_pair`"),
    "communities": ("which vertices belong together?", "`plus_first`, `plus_second`, `any_eq`"),
    "forest": ("the cheapest edges that connect?", "`min_first`, `min_second`, `lor_second`"),
    "similar": ("whose neighbours are alike?", "`plus_first`"),
    "mutual": ("which edges have a reverse? what is the Laplacian?", "`plus_times`"),
    "pairs": ("a choice of edges without a common end?", "`min_first`, `min_second`"),
    "apart": ("a largest possible choice without two neighbours?", "`max_first`, `any_pair`"),
}
_QUOTED = re.compile(r"``(.+?)``|`([^`]+)`", re.S)


# ------------------------------------------------------------------------------------ graphs


def small(kind, without=None):
    """Return a graph of seven vertices of a kind of the catalog, `without` one of its edges."""
    if kind == "undirected":
        edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6)]
    else:
        edges = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5), (5, 1), (6, 0)]
    lengths = dict(zip(edges, [7.0, 2.0, 1.0, 4.0, 3.5, 1.0, 6.0, 1.0, 5.0], strict=False))
    if kind == "acyclic":
        edges.remove((5, 1))
    edges = [edge for edge in edges if edge != without]
    values = [lengths[edge] for edge in edges] if kind in ("weighted", "FP32") else True
    rows, cols = (list(ends) for ends in zip(*edges, strict=True))
    if kind == "undirected":
        rows, cols = rows + cols, cols + rows
    return Matrix.from_coo(rows, cols, values, nrows=7, ncols=7, name="A", backend="cpu")


def larger(kind, slow):
    """Yield names and graphs, each kind of graph in two sizes, or one."""
    for small_one in (True, False)[: 1 if slow else 2]:
        scale, side = (6, 8) if small_one else (8, 16)
        yield f"kron:{scale}", _as(kind, _connected(generators.kronecker(scale, backend="cpu")))
        yield f"grid:{side}x{side}", _as(kind, generators.grid2d(side, side, backend="cpu"))


def _connected(A):
    parts = algorithms.connected_components(A).to_dense()
    inside = np.flatnonzero(parts == np.bincount(parts).argmax())
    return A[inside, inside].new()


def _as(kind, A):
    if kind == "acyclic":
        return A.select("triu", 1).new()
    if kind in ("weighted", "FP32"):
        rows, cols, _ = A.to_coo()
        lengths = 1.0 + (7 * np.minimum(rows, cols) + 11 * np.maximum(rows, cols)) % 10
        return Matrix.from_coo(rows, cols, lengths, nrows=A.nrows, ncols=A.ncols, backend="cpu")
    return A


def run(row, A, **facts):
    """Return the result of an algorithm, with the arguments of the small graph or others."""
    return row.run(A, SimpleNamespace(**(_FACTS | facts), vertices=A.nrows))


# ------------------------------------------------------------------------------------- words


def sections(function):
    """Return the summary of a docstring, and its sections by name."""
    summary, *rest = _RULE.split("\n\n" + inspect.cleandoc(function.__doc__))
    return summary.strip(), dict(zip(rest[::2], rest[1::2], strict=True))


def plain(text):
    """Return the text of a docstring as Markdown; the names of algorithms become links."""

    def quoted(found):
        code, name = found.groups()
        if code:
            return f"`{code}`"
        return f"[`{name}`]({name}.md)" if name in algorithms.__all__ else f"`{name}`"

    return _QUOTED.sub(quoted, text)


def formula(step):
    """Return a statement in the notation of the docs: ``q⟨¬s(v), r⟩ = q any.pair A``."""
    left, right = step.formula.split(" << ", 1)
    if re.fullmatch(r"-?[\d.e+-]+|True|False", right) and "<<" in step.source:
        right = step.source.split("<<", 1)[1].strip()  # the counter, not its value
    operand = re.search(r"right=(?:float\()?([a-z_]\w*)", step.source)
    if operand:  # a scalar, not its value
        right = re.sub(r"-?[\d.]+(e[+-]\d+)?\)$", f"{operand[1]})", right)
    sign = re.search(r"accum=binary\.(\w+)", left)
    left = re.sub(r", accum=[\w.]+|accum=[\w.]+,? ?", "", left).replace("()", "")
    left = re.sub(r"\((~?)([\w ()]+)\.([SV])(?:, (replace))?\)$", _mask, left)
    right = re.sub(r" ([a-z]+)_([a-z]+) ", r" \1.\2 ", right)
    return rounded(f"{left} {sign[1] if sign else ''}= {right}")


def rounded(text):
    """Return a statement whose long numbers have four digits."""
    return re.sub(r"-?\d*\.\d{5,}(e[+-]\d+)?", lambda found: f"{float(found[0]):.4g}", text)


def _mask(found):
    complement, name, structure, replaced = found.groups()
    mask = f"s({name})" if structure == "S" else name
    return f"⟨{'¬' * bool(complement)}{mask}{', r' * bool(replaced)}⟩"


def written(step):
    """Return a statement with its product as a program has it: ``w << plus_times(u @ A)``."""
    text = rounded(step.formula).replace(", replace)", ", replace=True)")
    return re.sub(r"([^ ]+) ([a-z]+_[a-z]+\d*) ([^ ]+)$", r"\2(\1 @ \3)", text)


def relevant(steps):
    """Return the steps without those that only check arguments, with their new numbers."""
    kept = [step for step in steps if Path(step.file).name != "inputs.py"]
    return [replace(step, number=k) for k, step in enumerate(kept, 1)]


_PROPER = ("BFS", "SSSP", "PageRank", "HITS", "Bellman-Ford", "Floyd-Warshall", "Katz", "Louvain")


def title(name):
    """Return the name of a function in words."""
    words = re.sub(r"\bk ", "k-", name.replace("_", " "))
    for word in _PROPER:
        words = words.replace(word.lower().replace("-", " "), word)
    return words[0].upper() + words[1:]


def value(x):
    """Return a result in words."""
    if isinstance(x, Vector):
        return entries(dict(zip(*(part.tolist() for part in x.to_coo()), strict=True)))
    if isinstance(x, Matrix):
        rows, cols, values = (part.tolist() for part in x.to_coo())
        return entries(dict(zip(zip(rows, cols, strict=True), values, strict=True)))
    if isinstance(x, tuple):
        return "; ".join(value(part) for part in x)
    return str(x) if isinstance(x, list | bool) or x is None else short(x)


def entries(found):
    """Return the entries of a dictionary in words."""
    listed = [f"{k}: {_number(v)}" for k, v in list(found.items())[:_SHOWN]]
    more = f", ... {len(found) - _SHOWN} more" * (len(found) > _SHOWN)
    return "{" + ", ".join(listed) + more + "}"


def _number(x):
    return f"{x:.4g}" if isinstance(x, float) else str(int(x) if isinstance(x, bool) else x)


# -------------------------------------------------------------------------------------- code


def code_of(row, steps):
    """Return the function and those that it calls in its file, and the algorithms that it calls.

    Those with most statements of loops and products come first, as far as there is room.
    """
    public = getattr(algorithms, row.name).__code__
    counted = {}
    for step in steps:
        if step.code is not None:
            weight = 20 if step.product is not None or step.level >= 0 else 1
            counted[step.code] = counted.get(step.code, 0) + weight
    counted.pop(public, None)
    called = {*public.co_names, *(code.co_name for code in counted)} & {*algorithms.__all__}
    shown, names = [_without_docstring(public)], {row.name}
    for code in sorted(counted, key=counted.get, reverse=True):
        around, *inside = code.co_qualname.split(".<locals>.")
        if inside and around in names:
            continue  # it is a part of what is shown
        if code.co_name not in called and code.co_filename == public.co_filename:
            text = _without_docstring(code)
            if sum(map(len, map(str.splitlines, [*shown, text]))) <= _LINES:
                shown.append(text)
                names.add(code.co_name)
    return "\n\n".join(shown), called


def _without_docstring(code):
    """Return a function's lines without its docstring; of a long one only its loops."""
    text = inspect.getsource(code).replace("  # fmt: skip", "")
    lines = textwrap.dedent(text).splitlines()
    function = ast.parse("\n".join(lines)).body[0]
    if not isinstance(function, ast.FunctionDef):
        return "\n".join(lines)
    body = function.body[1:] if ast.get_docstring(function) else function.body
    head = lines[: function.body[0].lineno - 1]
    if len(lines) - body[0].lineno < _LONG:
        return "\n".join([*head, *lines[body[0].lineno - 1 :]])
    shown = [f"def {function.name}(...):", "    ..."]
    for loop in (node for node in ast.walk(function) if isinstance(node, ast.For | ast.While)):
        inside = lines[loop.lineno - 1 : loop.end_lineno]
        if any("<<" in line for line in inside) and not set(inside) <= set(shown):
            shown += [*inside, f"{' ' * loop.col_offset}..."]
    return "\n".join(shown if len(shown) > 2 else [*head, *lines[body[0].lineno - 1 :]])


# -------------------------------------------------------------------------------------- page


def markdown(row, folder, measured):
    """Return the page of an algorithm, and write its pictures and its step page to `folder`."""
    function = getattr(algorithms, row.name)
    summary, said = sections(function)
    A = small(row.graph)
    result = run(row, A)
    with suppress(LimitExceeded), lagpu.steps(limit=_RECORDED) as recorded:
        run(row, A)
    steps = relevant(recorded)
    lines = [
        f"# {title(row.name)}\n",
        f"{{py:obj}}`lagpu.algorithms.{row.name}`: {plain(summary)}\n",
        *_formulas(row, steps),
        *_code(row, steps),
        *_pictures(row, A, steps, folder, value(result), whole=len(recorded) < _RECORDED),
        *_cost(row, said),
        *_speed(row, measured),
        *_exercises(row, steps, result),
        *_others(row),
    ]
    if steps:
        runs, names = {(): steps}, {}
        if "source" in row.given:
            names = {"source": tuple(map(str, range(A.nrows)))}
            found = lagpu.explore(lambda source: run(row, A, source=source), source=range(A.nrows))
            runs = {(source,): relevant(found[source]) for source in names["source"]}
        page = drawing.page_of_runs(runs, title(row.name), names=names)
        (folder / f"{row.name}-steps.html").write_text(page, "utf-8")
    return "\n".join(lines)


def _formulas(row, steps):
    """Yield the statements of the loop, or of the products without a loop, each once."""
    found = {}
    for step in _best(row, steps, lambda step: step.level >= 0):
        found.setdefault((step.code, step.line), formula(step))
    if found:
        listed = list(dict.fromkeys(found.values()))
        listed[_STATEMENTS:] = ["..."] * (len(listed) > _STATEMENTS)
        text = "\n".join(listed)
        yield f"## Formula\n\n```text\n{text}\n```\n"
        signs = (r"[⟨¬]s\(", "s(v) is where v has entries"), (", r⟩", "r clears the rest")
        said = ", ".join(words for sign, words in signs if re.search(sign, text))
        if said:
            yield f"The [notation](../notation.md): {said}.\n"


def _code(row, steps):
    code, called = code_of(row, steps)
    yield f"## Code\n\n```python\n{code}\n```\n"
    links = [f"[`{name}`]({name}.md)" for name in sorted(called - {row.name})]
    if links:
        yield f"It calls {', '.join(links)}.\n"


def _best(row, steps, good):
    """Return the good steps of the function itself, or those of all, or all steps."""
    code = getattr(algorithms, row.name).__code__
    found = [step for step in steps if good(step)]
    return [step for step in found if step.code is code] or found or list(steps)


def _multiplies(step):
    """Whether a step is the product of a vector that has entries: others draw nothing."""
    return step.product is not None and step.before[step.product.vector].nvals > 0


def _pictures(row, A, steps, folder, result, whole):
    """Yield some steps with their pictures, which are written to `folder`."""
    yield "## Steps\n"
    arguments = ", ".join(f"{name} {_FACTS[name]}" for name in row.given)
    lengths = f"; the edges have the weights `{value(A)}`" * (row.graph in ("weighted", "FP32"))
    yield f"On a graph of seven vertices{', ' * bool(arguments)}{arguments}{lengths}:\n"
    layout = drawing.Layout(steps)
    graph = drawing.graph_of(layout, list(steps))
    chosen = _best(row, steps, _multiplies)
    chosen = [chosen[k] for k in np.unique(np.linspace(0, len(chosen) - 1, _PICTURES).astype(int))]
    pictures = []
    for step in chosen if len(steps) else ():
        drawn = graph.draw(step) if graph and step.output in step.vectors else ""
        pictures.append((step, drawn or drawing.draw(step)))
    widths = [float(re.search(r'<svg [^>]*?width="([\d.]+)"', made)[1]) for _, made in pictures]
    yield "::::{container} steps" + " wide" * (max(widths, default=0) > _WIDE)
    for step, made in pictures:
        file = folder / f"{row.name}-{step.number}.svg"
        file.write_text(made.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
        level = f", level {step.level}" if step.level >= 0 else ""
        yield f":::{{figure}} {file.name}\n:alt: {step.words}\n"
        yield f"Step {step.number}{level}: `{written(step)}`\n:::"
    yield "::::\n"
    yield f"The result: `{result}`.\n"
    if len(steps):
        which = "all" if whole else "the first"
        source = " Each vertex can be the source." if "source" in row.given else ""
        link = f'<a href="{row.name}-steps.html">Step through {which} {len(steps)} statements.</a>'
        yield f"{link}{source}\n"


def _cost(row, said):
    yield "## Cost\n"
    if "Notes" in said:
        yield plain(said["Notes"]) + "\n"
    lines = []
    for name, A in larger(row.graph, row.slow):
        hub = int(np.bincount(A.to_coo()[0]).argmax())
        with suppress(LagpuError), lagpu.trace() as t:  # one may not converge or have no path
            run(row, A, source=hub, sources=[hub, 0])
        products = [one for one in t.rows if "mxv" in one.method or "mxm" in one.method]
        read = sum(one.edges or 0 for one in products)
        lines.append([name, A.nrows, A.nvals, len(t.rows), len(products), read])
    heads = ["graph", "vertices", "entries", "statements", "products", "read"]
    kept = [k for k in range(6) if any(line[k] for line in lines)]
    yield "Counted on `cpu`, on grids and on the largest component of Kronecker graphs" + (
        ".\n*Read* are the entries that products of a vector look at:\n" if 5 in kept else ":\n"
    )
    yield f"| {' | '.join(heads[k] for k in kept)} |"
    yield "|---|" + "---:|" * (len(kept) - 1)
    for line in lines:
        cells = (line[k] if k == 0 else f"{line[k]:,}" if line[k] else "-" for k in kept)
        yield f"| {' | '.join(cells)} |"
    yield ""


def _speed(row, measured):
    names = [name for name in (row.name, *row.measured_as.split(", ")) if name in measured]
    yield "## Speed\n"
    if not names:
        yield "Not measured yet; `lagpu bench` measures it.\n"
    for name in names[:1]:
        instead = f" of [`{name}`]({name}.md), which `lagpu bench` measures in its place"
        options = measured[name]
        same = f", {min(options)}" if len(options) == 1 and "" not in options else ""
        yield f"Median milliseconds{instead * (name != row.name)}{same}, each result verified:\n"
        index = "graph" if same else "graph,options"
        table = f"index={index} columns=system value=median_ms"
        yield f"<!-- pivot {MEASURED} {table} where=algorithm:{name} -->\n"


def _exercises(row, steps, result):
    yield "## Exercises\n"
    products = [
        step
        for step in _best(row, steps, lambda step: step.product is not None)
        if step.product is not None
        if step.output in step.before
        and not step.vectors[step.output].same_as(step.before[step.output])
    ]
    if products:
        step = products[len(products) // 2]
        left, right = step.formula.split(" << ", 1)
        read = right if "(" not in left else step.formula  # a mask and the output, too
        before = "; ".join(
            f"`{name}` is `{entries(state.to_dict())}`"
            for name, state in step.before.items()
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", read)
        )
        yield f"1. Before step {step.number} {before}. What does `{written(step)}` write?\n"
        after = entries(step.vectors[step.output].to_dict())
        yield _solution(f"{step.output} is {after}.")
    found = _changed(row, value(result))
    if found:
        (i, j), other = found
        number = 1 + bool(products)
        yield f"{number}. Take away the edge from {i} to {j}. What changes in the result?\n"
        yield _solution(f"Before: {value(result)}. Then: {other}.")


def _changed(row, before):
    """Return an edge without which the result is another one, and that result."""
    A = small(row.graph)
    for edge in zip(*(part.tolist() for part in A.to_coo()[:2]), strict=True):
        try:
            after = value(run(row, small(row.graph, edge)))
        except LagpuError:
            continue
        if after != before:
            return edge, after
    return None


def _solution(text):
    shown = text.replace("&", "&amp;").replace("<", "&lt;")
    return f"<details><summary>Solution</summary><p>{shown}</p></details>\n"


def _others(row):
    for topic, (question, _) in TOPICS.items():
        names = dict.fromkeys(one.name for one in catalog.ALGORITHMS if one.topic == topic)
        if row.name in names and len(names) > 1:
            links = ", ".join(f"[`{name}`]({name}.md)" for name in names if name != row.name)
            yield f"Others that answer “{question}”: {links}.\n"


# -------------------------------------------------------------------------------------- build


def rows():
    """Return the first row of each algorithm."""
    found = {}
    for row in catalog.ALGORITHMS:
        found.setdefault(row.name, row)
    return found


def with_questions(page):
    """Return the text of a page with the table of questions, if the page has its line."""
    lines = ["| question | function | semirings in its loop |", "|---|---|---|"]
    for topic, (question, semirings) in TOPICS.items():
        names = [row.name for row in catalog.ALGORITHMS if row.topic == topic]
        links = ", ".join(f"[`{name}`](algorithms/{name}.md)" for name in names)
        lines.append(f"| {question} | {links} | {semirings} |")
    return page.replace("<!-- questions -->", "\n".join(lines))


def write(folder, only=None):
    """Write the pages, with their pictures, to a folder that is made for them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    data = json.loads((figures.FOLDER / MEASURED).read_text("utf-8"))
    measured = {}
    for one in data["rows"]:
        measured.setdefault(one["algorithm"], set()).add(one["options"])
    for name, row in rows().items():
        if only is None or name in only:
            (folder / f"{name}.md").write_text(markdown(row, folder, measured), "utf-8")
