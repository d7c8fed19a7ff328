"""A page for each algorithm of `lagpu.catalog`, made of docstring, source, steps and data.

The pages are files of ``docs/algorithms`` while Sphinx runs. A new row of the catalog has its page.
"""

import ast
import html
import inspect
import json
import re
import shutil
import sys
import textwrap
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import figures
import numpy as np

import lagpu
from lagpu import Matrix, Vector, algorithms, catalog, generators
from lagpu.errors import LagpuError
from lagpu.host.display import short
from lagpu.observe.step import drawing

MEASURED, ON_CPU = "h200-algorithms.json", "cpu-algorithms.json"
_MANY = 12  # entries of a matrix that are compared one by one
_AS_GOOD = {  # what an algorithm chooses, by its docstring: other answers of an exercise
    "possible parents": "A vertex may have another one of its possible parents.",
    "cycle of odd length": "Another odd cycle is right, too.",
    "One of the paths": "Another path of least length is right, too.",
}
_WIDE = 480  # pixels of a picture that has a line to itself
_SHOWN = 49  # entries in text: all of a small graph
_LINES, _FEWER = 100, 60  # of code: of what helps much, and of the rest
_WEIGHTED = ("weighted", "FP32", "forest", "negative")
_FEW = 4  # statements of a function that is shown beside the one that calls it
_STATEMENTS, _PICTURES = 32, 4
_GIVEN = {"sampled": "{} sampled sources", "few": "for vertices {}", "radius": "`{1}={0}`"}
_IN_SHORT = {"sampled": "sampled sources", "few": "vertices"}
_COUNTED = {  # the arguments of what is counted on larger graphs
    "source": "from the vertex with most edges",
    "sources": "from the vertex with most edges and from vertex 0",
    "target": "to vertex 5",
    "few": "for vertices 0 and 4",
    "sampled": "with 3 sampled sources",
}
_WHY = {  # a cell of a table has no number
    "too large": "the other system is measured only on smaller graphs",
    "over 10 s": "stopped after 10 s",
    "no time left": "the measurement of all algorithms ran out of time",
    "not connected": "the answer is infinite",
    "NoPath": "the graph is not connected",
    "NotConverged": "it does not converge, or not in the iterations allowed",
    "LimitExceeded": "more than 1.8e308 shortest paths, the most that FP64 holds",
    "vertices apart": "so many vertices are outside of the largest component, and each of their "
    "components would take a search",
}
_GIVEN_TO = {  # arguments that a row of the catalog makes, in words
    "contraction": "with the label v % 5 for vertex v",
    "modularity": "with the label v % 5 for vertex v",
    "path_weight": "for a path of least length from 0 to 5",
}
_SHORT = {  # options with which the steps are of vectors, or not too many to read
    "betweenness_centrality": {"batch": 1},
    "betweenness_estimate": {"batch": 1},
    "pagerank": {"max_iter": 10, "tol": None},
    "eigenvector_centrality": {"tol": 0.01},
    "hits": {"tol": 0.01},
}
_FACTS = {"source": 0, "target": 5, "sources": [0, 4], "few": [0, 4], "radius": 2, "sampled": 3}
_WORD = re.compile(r"[\w.+-]+")
_PRODUCT = re.compile(r" \w+[._]\w+ ")
_AS = {  # the cost of an algorithm is that of another one
    "bfs": "bfs_parents",
    "bfs_levels_joint": "bfs_levels",
    "sssp": "bellman_ford",
    "bfs_parents_multi": "bfs_levels_multi",
    "neighborhood": "bfs_levels",
    "k_hop": "bfs_levels",
    "has_path": "shortest_path",
    "in_degree_centrality": "degree_centrality",
    "out_degree_centrality": "degree_centrality",
    "is_bipartite": "bipartite_sides",
    "k_core": "core_number",
    "radius": "eccentricity",
    "center": "eccentricity",
    "periphery": "eccentricity",
    "topological_order": "topological_levels",
    "triangles": "triangle_count",
    "average_clustering": "clustering",
}
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
    "parts": (
        "which vertices are connected?",
        "`min_first`, `min_second`, `max_second`, `any_pair`",
    ),
    "central": (
        "which vertices are central?",
        "`plus_times`, `plus_first`, `plus_second`, `any_pair`",
    ),
    "sides": ("two colours, or an odd cycle?", "`any_first`, `any_secondi`"),
    "order": ("what depends on what?", "`plus_pair`"),
    "core": ("which vertices are in the dense core?", "`plus_second`, `plus_pair`"),
    "triangles": ("whose friends are friends?", "`plus_pair`, `plus_second`"),
    "communities": ("which vertices belong together?", "`plus_first`, `plus_second`, `any_eq`"),
    "forest": ("the cheapest edges that connect?", "`min_first`, `min_second`, `lor_second`"),
    "similar": ("whose neighbours are alike?", "`plus_first`"),
    "mutual": ("which edges have a reverse?", "no products"),
    "laplacian": ("what is the Laplacian?", "`plus_times`"),
    "pairs": ("a choice of edges without a common end?", "`min_first`, `min_second`, `any_pair`"),
    "apart": (
        "a choice without two neighbours, to which none can be added?",
        "`max_first`, `any_pair`",
    ),
}
_NUMBER = r"-?(?:[\d.]+(?:e[+-]?\d+)?|inf|nan)|True|False"
_REDUCED = r"\w[\w.]*(?:\([^()]*\))?\.reduce\([^()]*\)\.new\(\)\.value"
_VIEW = re.compile(r"^ +([A-Z][A-Z, ]*(?:, left)?) = (.*\.(?:selection|diag)\(.*)$", re.M)
_QUOTED = re.compile(r"``(.+?)``|`([^`]+)`", re.S)


# ------------------------------------------------------------------------------------ graphs


def small(kind, without=None):
    """Return a graph of seven vertices of a kind of the catalog, `without` one of its edges."""
    if kind in ("undirected", "forest"):
        edges = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6)]
    else:
        edges = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5), (5, 1), (6, 0)]
    lengths = dict(zip(edges, [7.0, 2.0, 1.0, 4.0, 3.5, 1.0, 6.0, 1.0, 5.0], strict=False))
    if kind == "negative":
        lengths[5, 1] = -4.0
    if kind == "acyclic":
        edges.remove((5, 1))
    if kind == "mutual":
        edges += [(2, 0), (3, 2)]
    edges = [edge for edge in edges if edge != without]
    values = [lengths[edge] for edge in edges] if kind in _WEIGHTED else True
    rows, cols = (list(ends) for ends in zip(*edges, strict=True))
    if kind in ("undirected", "forest"):
        rows, cols = rows + cols, cols + rows
        values = values if values is True else values + values
    return Matrix.from_coo(rows, cols, values, nrows=7, ncols=7, name="A", backend="cpu")


def kind_of(row):
    """Return the kind of the small graph of an algorithm; some need reverse edges, or weights."""
    if row.name == "find_negative_cycle":
        return "negative"
    if row.topic == "core":
        return "undirected"  # which the algorithms make of any other graph
    return row.topic if row.topic in ("mutual", "forest") else row.graph


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
    return prepared(row, A, **facts)()


def prepared(row, A, **facts):
    """Return the call of an algorithm, without what only makes its arguments."""
    given = SimpleNamespace(**(_FACTS | facts), vertices=A.nrows)
    if row.name != "path_weight":
        return lambda: row.run(A, given)
    path = algorithms.shortest_path(A, given.source, given.target, weight=True)
    return lambda: algorithms.path_weight(A, path)


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

    linked = re.sub(r"docs/(\w+/(\w+)\.md)", r"[\2](../\1)", text)
    return _QUOTED.sub(quoted, linked)


def formula(step):
    """Return a statement in the notation of the docs: ``q⟨¬s(v), r⟩ = q any.pair A``."""
    left, right = _by_source(step, *step.formula.split(" << ", 1))
    sign = re.search(r"accum=binary\.(\w+)", left)
    left = re.sub(r", accum=[\w.]+|accum=[\w.]+,? ?", "", left).replace("()", "")
    left = re.sub(r"\((~?)([\w ()]+)\.([SV])(?:, (replace))?\)$", _mask, left)
    right = re.sub(r" ([a-z]+)_([a-z]+) ", r" \1.\2 ", right)
    right = re.sub(r"offdiag\((\w+), 0\)", r"offdiag(\1)", right)
    return rounded(re.sub(r" \((old|\d)\)", "", f"{left} {sign[1] if sign else ''}= {right}"))


def _by_source(step, left, right):
    """Return both sides of a statement with what its source names instead of a run's values."""
    try:
        tree = ast.parse(step.source + " pass" * step.source.endswith(":"))
    except SyntaxError:
        return left, right
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and "[" in left:  # before[source] = forth[source] = source
            for target in map(ast.unparse, node.targets):
                if target.startswith(left.split("[")[0] + "["):
                    left, right = target, ast.unparse(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift):
            if right.isidentifier() and _is_local(step, node.right):
                right = node.right.id
            elif re.fullmatch(_NUMBER, right):  # the counter, not its value
                right = ast.unparse(node.right)
            elif found := re.match(r"(\w+)\.diag\(", ast.unparse(node.right)):
                right = f"diag({found[1]})"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            first, second = r"^\S+(?: \(\d\))?(?= \w+_)", r"(?<= )\S+$"
            for side, at in ((node.left, first), (node.right, second)):
                if found := re.fullmatch(r"(\w+)\.diag\(\)", ast.unparse(side)):
                    right = re.sub(at, f"diag({found[1]})", right)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            op = ast.unparse(node.args[0]).strip("'").split(".")[-1]
            if "agg." in ast.unparse(node.args[0]):  # several statements that have no name
                return _target(tree) or left, f"{op}({ast.unparse(node.func.value)})"
            operands = {one.arg: one.value for one in node.keywords}
            if node.func.attr == "ewise_union":
                given = [*node.args[2:], *operands.values()]
                right = f"{right[:-1]}, {', '.join(map(ast.unparse, given))})"
            if len(node.args) > 1:
                operands["right"] = node.args[1]
            if _is_local(step, node.func.value):  # two names of one object
                right = re.sub(
                    rf"^{re.escape(op)}\([a-z]\w*(?=[,) ])", f"{op}({node.func.value.id}", right
                )
            first, second = rf"(?<=\()(?:{_NUMBER})(?=,)", rf"(?:{_NUMBER})(?=\)$)"
            for side, at in (("left", first), ("right", second)):
                if right.startswith(f"{op}(") and side in operands:
                    right = re.sub(at, lambda _, x=operands[side]: _short(x), right)
            sums = "reduce_columnwise" if right.endswith("')") else "reduce_rowwise"
            if node.func.attr == sums and left == "t":
                left = _target(tree, node) or left
            elif node.func.attr == "reduce" and left == "s":
                left = _target(tree, node) or left
                if isinstance(tree.body[0], ast.Return) and ", " not in ast.unparse(tree)[7:]:
                    whole = step.source.removeprefix("return ")
                    right = re.sub(rf"\({_REDUCED} or [\d.]+\)|{_REDUCED}", right, whole)
                    right = re.sub(r"^float\((.*?)\)(?= if )", r"\1", right)
            elif node.func.attr == "from_scalar" and re.fullmatch(_NUMBER, right):
                right = ast.unparse(node.args[0])
        elif isinstance(node, ast.Subscript) and ":" in right:  # D[:, k]
            with_names = ast.unparse(node)
            if re.sub(r"\w+(?=[,\]])", "", with_names) == re.sub(r"\d+(?=[,\]])", "", right):
                right = with_names
    returned = isinstance(tree.body[0], ast.Return) and ast.unparse(tree.body[0])
    whole = r"\.value\b[^.]*$|^return float" if left == "s" else r"\.new\(\)$|where_any\(.*\.new\("
    if left in ("s", "t", "T") and returned and re.search(whole, returned):
        left = "result"
        right = f"one({right})" if "where_any(" in returned else right
    return left, right


def _is_local(step, node):
    """Whether a part of a statement is a name that the function assigns, not an argument."""
    arguments = step.code.co_varnames[: step.code.co_argcount] if step.code else ()
    return isinstance(node, ast.Name) and node.id.isidentifier() and node.id not in arguments


def _short(node):
    """Return an operand in words; one that is computed in place from a vector has the name s."""
    text = ast.unparse(node)
    return "s" if ".reduce(" in text else re.sub(r"^(?:float|int)\((.*)\)$", r"\1", text)


def _target(tree, value=None):
    """Return the name that a statement assigns, if its value is that of a call, or an empty one."""
    (one,) = tree.body
    if isinstance(one, ast.Assign) and isinstance(one.value, ast.Tuple):  # inside, out = ..., ...
        pairs = zip(getattr(one.targets[0], "elts", ()), one.value.elts, strict=False)
        return next((ast.unparse(x) for x, made in pairs if value in ast.walk(made)), "")
    if isinstance(one, ast.Expr) and isinstance(one.value, ast.BinOp):
        return ast.unparse(one.value.left)
    found = one.value if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
    while found is not None and found is not value:
        if isinstance(found, ast.Call) and getattr(found.func, "attr", "new") != "new":
            return ""  # of another statement, which has this value as an operand
        parts = [*getattr(found, "values", ()), getattr(found, "func", None)]
        found = parts[0] or getattr(found, "value", None)
    return "" if found is None else ast.unparse(one.targets[0])


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
    text = re.sub(r" \((?:old|\d)\)", "", text)
    if indices := re.search(r"\[(\w+)\] <<", step.source):
        text = text.replace("[I] <<", f"[{indices[1]}] <<")
    text = re.sub(r"([a-z]+) outer\((\w+), (\w+)\)", r'\2.outer(\3, "\1")', text)
    text = re.sub(r"([^ ]+) ([a-z]+_[a-z]+\d*) ([^ ]+)$", r"\2(\1 @ \3)", text)
    text = re.sub(r"\b(selection|diag)\((\w+)\)", r"\2.\1()", text)
    text = re.sub(r"(\w+)\((\S+) ([⊗⊕]) (\S+)\)$", _ewise, text)
    text = re.sub(r"(?<= )(\w+)\(([^(), ]+?)('?)\)$", partial(_called, step), text)
    text = re.sub(r"(?<= )(\w+)\((\w+'?), ([^() ]+)\)$", partial(_bound, step), text)
    text = text.replace('select("offdiag", 0)', 'select("offdiag")')
    return re.sub(r"(?<=\w)'", ".T", text)


def _ewise(found):
    op, first, sign, second = found.groups()
    return f'{first}.ewise_{"mult" if sign == "⊗" else "add"}({second}, "{op}")'


def _called(step, found):
    """Return a reduction or an operator of one argument as a program has it."""
    op, x, transposed = found.groups()
    of, into = step.matrices.get(x), step.matrices.get(step.output)
    if op not in dir(lagpu.monoid) or into is not None:
        return f'{x}{".T" * bool(transposed)}.apply("{op}")'
    rows = "_columnwise" if transposed else "_rowwise"
    return f'{x}.reduce{rows * (of is not None and step.output in step.vectors)}("{op}")'


def _bound(step, found):
    """Return an operator with a number as a program has it."""
    op, x, number = found.groups()
    if op in dir(lagpu.binary):
        return f'{x}.apply("{op}", right={number})'
    return f'{x}.select("{op}", {number})' if op in dir(lagpu.indexunary) else found[0]


def relevant(steps):
    """Return the steps without those that only check arguments, with their new numbers.

    They are without the matrices that callers have under the same name, too, and without the
    search that decides how many sources to take at once.
    """
    kept = [step for step in steps if Path(step.file).name != "inputs.py"]
    names = [step.code.co_name if step.code else "" for step in kept]
    if "batch_size" in names:
        kept = kept[names.index("batch_size") + 1 :]
    return [
        replace(step, number=k, matrices={
            name: A for name, A in step.matrices.items()
            if " of " not in name or re.search(rf"(?<!\w){name}(?!\w)", step.formula)
        })
        for k, step in enumerate(kept, 1)
    ]  # fmt: skip


def ended(row, steps, result):
    """Return the steps, the last one with what the algorithm returns."""
    *before, last = steps
    text = f"{last.source or last.formula}\n# {row.name} returns {_unbroken(result)}"
    return [*before, replace(last, source=text)]


def _unbroken(text):
    """Return a text of entries in which no line ends within a pair, or between key and value."""
    text = re.sub(r"(?<=\(\d,) (?=\d\))", "\u00a0", text).replace("e-0", "e\u20110")
    return re.sub(r"(?<=[\d)]:) (?=\S)", "\u00a0", text)


_PROPER = ("BFS", "SSSP", "PageRank", "HITS", "Bellman-Ford", "Floyd-Warshall", "Katz", "Louvain")


def _said(row, given):
    """Return the name of an argument; a radius has that of its parameter."""
    names = list(inspect.signature(getattr(algorithms, row.name)).parameters)[1:]
    return names[row.given.index(given)] if given == "radius" else given


def _numbers(found):
    """Return a number, or two of a list, in words."""
    return " and ".join(map(str, found)) if isinstance(found, list) else str(found)


def title(name):
    """Return the name of a function in words."""
    words = re.sub(r"\b(k|in|out) (?=\w)", r"\1-", name.replace("_", " "))
    for word in _PROPER:
        words = words.replace(word.lower().replace("-", " "), word)
    return words[0].upper() + words[1:]


def value(x, names=()):
    """Return a result in words, its parts with their names."""
    if isinstance(x, Vector):
        return entries(dict(zip(*(part.tolist() for part in x.to_coo()), strict=True)))
    if isinstance(x, Matrix):
        rows, cols, values = (part.tolist() for part in x.to_coo())
        return entries(dict(zip(zip(rows, cols, strict=True), values, strict=True)))
    if isinstance(x, tuple):
        heads = [f"{name} = " for name in names] if len(names) == len(x) else [""] * len(x)
        return "; ".join(head + value(part) for head, part in zip(heads, x, strict=True))
    return str(x) if isinstance(x, list | bool) or x is None else short(x)


def entries(found):
    """Return the entries of a dictionary in words."""
    shown = list(found.items())[:_SHOWN]
    is_set = all(v is True for v in found.values())
    listed = [str(k) if is_set else f"{k}: {_number(v)}" for k, v in shown]
    more = f", ... {len(found) - _SHOWN} more" * (len(found) > _SHOWN)
    return "{" + ", ".join(listed) + more + "}"


def names_of_parts(said):
    """Return the names of the parts of a result, by its docstring."""
    heads = re.findall(r"^(\w+(?:, \w+)*) : ", said.get("Returns", ""), re.M)
    return [name for head in heads for name in head.split(", ")]


def _number(x):
    return f"{x:.4g}" if isinstance(x, float) else str(int(x) if isinstance(x, bool) else x)


# -------------------------------------------------------------------------------------- code


def code_of(row, steps):
    """Return the function and those that it calls in its file, called algorithms, codes shown.

    Of the functions that what is shown has called, those with most statements of loops and
    products come first, their own and of what they call, as far as there is room: others than
    these are on short pages.
    """
    function = getattr(algorithms, row.name)
    public, around, ran = function.__code__, sys.modules[function.__module__], _ran(row)
    counted = {}
    for step in steps:
        if step.code is not None:
            name = step.code.co_qualname.split(".")[0]
            weight = 20 if step.product is not None or step.level >= 0 else 1
            counted[name] = counted.get(name, 0) + weight

    def calls(code):
        """Return the functions of the file that a function calls, and that are no algorithms."""
        found = {}
        for name in _names(code):
            one = getattr(getattr(around, name, None), "__code__", None)
            private = one in ran and one.co_name not in algorithms.__all__
            if private and one.co_filename == public.co_filename:
                found[name] = one
        return found

    def weight(name, code, seen=()):
        inside = calls(code).items()
        seen = {*seen, name}
        public = sum(counted.get(x, 0) for x in {*_names(code)} & {*algorithms.__all__} - seen)
        helpers = sum(weight(*x, seen) for x in inside if x[0] not in seen)
        return counted.get(name, 0) + public + helpers

    shown, left, codes = {public: _without_docstring(public)}, calls(public), {row.name: public}
    while left := {name: code for name, code in left.items() if name not in codes}:
        name = max(left, key=lambda name: weight(name, left[name]))
        code = codes[name] = left[name]
        text = _without_docstring(code)
        lines = sum(map(len, map(str.splitlines, [*shown.values(), text])))
        much = weight(name, code) >= min(_FEW, sum(counted.values()) / 20)
        if lines <= (_LINES if much else _FEWER):
            shown[code] = text
            left |= calls(code)
    used = {name for code in codes.values() for name in _names(code)}
    called = {getattr(getattr(around, name, None), "__name__", name) for name in used}
    text = "\n\n".join(shown.values())
    numbers = re.findall(r"^_?[A-Z][A-Z_]* = \d.*\n", inspect.getsource(around), re.M)
    numbers = [line for line in numbers if re.search(rf"\b{line.split()[0]}\b", text)]
    text = "".join([*numbers, *"\n" * bool(numbers), text])
    return text, called & {*algorithms.__all__}, set(shown)


def _ran(row):
    """Return the functions that run, each with the line from which it returned at last."""
    ran = {}
    sys.setprofile(lambda frame, *_: ran.__setitem__(frame.f_code, frame.f_lineno))
    try:
        run(row, small(kind_of(row)))
    finally:
        sys.setprofile(None)
    return ran


def _names(code):
    """Yield the global names in a function and in what it defines, each at least once."""
    yield from code.co_names
    for inside in code.co_consts:
        if inspect.iscode(inside):
            yield from _names(inside)


def _without_docstring(code):
    """Return a function's lines without its docstring."""
    text = drawing.FOR_TOOLS.sub("", inspect.getsource(code))
    lines = textwrap.dedent(text).splitlines()
    function = ast.parse("\n".join(lines)).body[0]
    if isinstance(function, ast.FunctionDef) and ast.get_docstring(function):
        lines[function.body[0].lineno - 1 : function.body[1].lineno - 1] = []
    return "\n".join(lines)


# -------------------------------------------------------------------------------------- page


def markdown(row, folder, measured):
    """Return the page of an algorithm, and write its pictures and its step page to `folder`."""
    function = getattr(algorithms, row.name)
    summary, said = sections(function)
    A, whole = small(kind_of(row)), row
    row = replace(row, options={**row.options, **_SHORT.get(row.name, {})})
    if row.name in _GIVEN_TO:
        row = replace(row, given=())
    call = prepared(row, A)
    result = call()
    with lagpu.steps() as recorded:
        call()
    steps = relevant(recorded)
    code, called, shown = code_of(row, steps)
    shows = partial(value, names=names_of_parts(said))
    lines = [
        f"# {title(row.name)}\n",
        f"{{py:obj}}`lagpu.algorithms.{row.name}`: {plain(summary)}\n",
        *_formulas(row, steps, shown),
        *_code(row, code, called),
        *_pictures(row, A, steps, shown, folder, shows(result)),
        *_cost(whole, said, len({step.code for step in steps if step.level >= 0})),
        *_speed(row, measured),
        *_exercises(row, steps, shown, result, shows),
        *_others(row),
    ]
    if steps:
        runs, names = {(): ended(row, steps, shows(result))}, {}
        if "source" in row.given:
            names, runs = {"source": tuple(map(str, range(A.nrows)))}, {}
            for source in range(A.nrows):
                with lagpu.steps() as recorded:
                    result = run(row, A, source=source)
                runs[str(source),] = ended(row, relevant(recorded), shows(result))
        weights = {"weights": _unbroken(_weights(row, A))} if _weights(row, A) else {}
        given = {_IN_SHORT.get(x) or _said(row, x): _FACTS[x] for x in row.given if x not in names}
        facts = {**given, **row.options, **weights}
        page = drawing.page_of_runs(runs, title(row.name), facts, names=names)
        back = rf'<h1><a href="{row.name}.html">\1</a></h1>'
        page = re.sub("<h1>(.*?)</h1>", back, page, count=1)
        (folder / f"{row.name}-steps.html").write_text(page, "utf-8")
    return "\n".join(lines)


def _weights(row, A):
    """Return the weights of the small graph in words, each once, or an empty string."""
    return _edges(A) if kind_of(row) in _WEIGHTED else ""


def _edges(A):
    return value(A.select("triu").new() if A.is_symmetric else A)


def _formulas(row, steps, shown):
    """Yield the statements of the loop, each once; without a loop all, or of many the products.

    A function that calls the loop of another one has its own statements, too. One that has only
    sums of what another one makes has no formula: its notes do.
    """
    code = getattr(algorithms, row.name).__code__
    loops = _best(steps, shown, lambda step: step.level >= 0)
    codes = {step.code for step in loops}
    its_own = [step for step in steps if step.code is code or step.code in shown - codes]
    others = {*algorithms.__all__} - {row.name}
    if all(step.code is not code for step in loops):
        loops = [step for step in steps if step in loops or step in its_own]
    seen, listed, owners, places, new = set(), [], [], [], None
    whole = None  # of a number that the next statement uses
    for step, later in zip(loops, [*loops[1:], None], strict=True):
        text = formula(step)
        if whole:
            text, whole = re.sub(r"\bs\)$", f"{whole})", text), None
        if _is_aside(step):
            continue
        if later and (later.code, later.line) == (step.code, step.line):
            whole = text[4:] if text[:4] == "s = " and formula(later)[-4:] == ", s)" else None
            if whole:
                continue
        without_numbers = re.sub(r" \(\w+\)|-?\d[\d.e+-]*|inf", "", text)  # of an iteration
        key, level = (step.code, step.line, without_numbers), (step.code, step.level)
        again = level == new and step.level >= 0 and text != listed[-1]  # in the same iteration
        if again or (key not in seen and text not in listed):
            listed.append(text)
            owners.append(step.code.co_qualname.split(".")[0] if step.code else row.name)
            places.append((step.code, step.line))
        new = None if key in seen else level
        seen.add(key)
    if not listed:
        return
    if many := len(listed) > _STATEMENTS:
        kept = [k for k, x in enumerate(listed) if _PRODUCT.search(x)] or range(_STATEMENTS)
        listed, owners = ([some[k] for k in kept] for some in (listed, owners))
    codes = dict.fromkeys(step.code for step in loops if step.code)
    for code, line, text in () if many else [x for one in codes for x in _of_scalars(one, steps)]:
        before = [k for k, (one, at) in enumerate(places, 1) if one is code and at < line]
        k = max(before, default=0)
        listed.insert(k, text)
        owners.insert(k, code.co_qualname.split(".")[0])
        places.insert(k, (code, line))
    ran, public = _ran(row), getattr(algorithms, row.name).__code__
    for code in () if many else codes:
        if result := _returned_sum(code, steps, ran):
            k = max(k for k, (one, _) in enumerate(places, 1) if one is code)
            k = len(listed) if code is public else k
            listed.insert(k, f"result = {result}")
            owners.insert(k, code.co_qualname.split(".")[0])
            places.insert(k, (code, ran[code]))
    views = {view: None for one in codes for view in _views(one, "\n".join(listed))}
    live = [x for x, view in views if re.match(r"selection\(", view)
            and re.search(rf"^{view[10:-1]}\b", "\n".join(listed), re.M)]  # fmt: skip
    for name, view in reversed(views):  # the values of a diagonal are computed before
        used = [k for k, x in enumerate(listed) if re.search(rf"\b{name}\b", x)]
        k = used[0] if view.startswith("diag") else 0
        listed.insert(k, f"{name} = {view}")
        owners.insert(k, owners[k])
    text = "\n".join(listed)
    first = [name != before for name, before in zip(owners, ["", *owners], strict=False)]
    several = len({*owners}) > 1 or owners[0] in others
    heads = [f"# {name}\n" * (several and new) for name, new in zip(owners, first, strict=True)]
    lines = "\n".join(head + line for head, line in zip(heads, listed, strict=True))
    yield f"## Formula\n\n```text\n{lines}\n```\n"
    if many:
        yield "Only the statements with a product are listed.\n"
    left = [step for step in steps if step not in loops and not _is_aside(step)]
    part = sorted({x.code.co_qualname.split(".")[0] for x in left if x.code in codes})
    if several and part and not many:
        loop = "their loops" if part[1:] else "the loop"
        yield f"Of {_listed(part)} only the statements of {loop} are listed.\n"
    elif any(x.code in shown for x in left) and not several and not many:
        before = " and its selections" * any("selection(" in view for _, view in views)
        yield f"Only the statements of the loop{before} are listed.\n"
    given = ", and `A` in them is its argument" * bool(re.search(r"\bA\b", text))
    of_each = [f"the lines below `# f` are those of a function f{given}"] * several
    change = [f"{_listed([x])} changes with its vector" for x in live[:1]]
    if live[1:]:
        change = [f"{_listed(live)} change with their vectors"]
    said = "; ".join([*_explained(text), *change, *of_each])
    if said:
        yield f"The [notation](../notation.md): {said}.\n"
    yield from _unnamed(re.sub(" .*", "", text), codes)
    if free := _free(text):
        yield f"From the code or its arguments: {_listed(free)}.\n"


def _of_scalars(code, steps):
    """Yield (code, line, statement) where a loop that ran writes a scalar by numbers of the host.

    Such a statement is no step.
    """
    source = textwrap.dedent(inspect.getsource(code))
    scalars = re.findall(r"^ +([\w, ]+) = Scalar\(", source, re.M)
    names = {name for group in scalars for name in group.split(", ")}
    ran = {step.line for step in steps if step.code is code}
    for block in ast.walk(ast.parse(source)):
        body = block.body if isinstance(block, ast.For | ast.While | ast.If) else []
        lines = [one.lineno + code.co_firstlineno - 1 for one in body]
        for line, one in zip(lines, body, strict=True) if ran & {*lines} else ():
            found = re.fullmatch(r"(\w+)(?:\(accum=binary\.(\w+)\))? << (.+)", ast.unparse(one))
            if found and found[1] in names and line not in ran and line > min(ran):
                yield code, line, f"{found[1]} {found[2] or ''}= {found[3].strip('()')}"


def _returned_sum(code, steps, ran):
    """Return what a function computes from numbers in the line that it returned from, or None."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    first = code.co_firstlineno - 1
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
    last = next((x for x in nodes if x.lineno + first <= ran[code] <= x.end_lineno + first), tree)
    text = ast.unparse(last)
    for step in steps:  # their number of entries
        if step.code is code and step.line == getattr(last, "lineno", 0) + first:
            text = re.sub(r"\(\w.*\.new\(\)(?=\.nvals)", f"({step.output}", text)
            if f"({step.output}.nvals" not in text:
                return None
    found = re.fullmatch(r"return float\((.*)\)", text)
    return found and re.sub(r"(\w+)\.nvals", r"nvals(\1)", found[1])


def _unnamed(text, codes):
    """Yield that the code has no name for some results in a text."""
    source = "\n".join(map(_without_docstring, codes))
    found = [x for x in ("T", "t", "s") if re.search(rf"(?<![\w.]){x}(?![\w(])", text)
             and not re.search(rf"\b{x}\b[^=\n(]*= ", source)]  # fmt: skip
    if found:
        yield f"{_listed(found)} {'have' if found[1:] else 'has'} no name in the code.\n"


_COMPARED = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "equal to", "ne": "other than"}
_SIGNS = (  # of a formula, and what they mean
    (r"[⟨¬]s\(", "`s(v)` is where v has entries"),
    (r"⟨¬?(?!s\()\w", "`⟨v⟩` is where v is not zero"),
    (r"¬", "`¬` is the complement"),
    (r", r⟩", "`r` clears the rest"),
    (r"= selection", "`selection(v)` has an entry (v[j], j) for each entry j of v"),
    (r" (\w+)\.(\w+) ", "the [semiring](../operators.md) `{0}.{1}` multiplies by {1} and "
     "adds by {0}"),
    (r"\bpair[ (]", "`pair(x, y)` is 1"),
    (r"\bfirst[ (]", "`first(x, y)` is x"),
    (r"\bsecond[ (]", "`second(x, y)` is y"),
    (r"\.secondi ", "`secondi(x, y)` is the row of y"),
    (r" any\.", "`any` keeps one of several"),
    (r"= depth", "`depth` counts the iterations from 0"),
    (r"s\(here\)", "`here` and `above` are the vertices of a level and of the one before it, from "
     "the last level to the first"),
    (r"\w'(?!\w)", "`'` transposes"),
    (r" \w+= ", "`x op= y` merges y into x by op"),
    (r"⊗", "`f(x ⊗ y)` has entries where x and y have"),
    (r"⊕", "`f(x ⊕ y)` has entries where x or y has"),
    (r"⊕ \w+, ", "`f(x ⊕ y, a, b)` takes a for a missing x and b for a missing y"),
    (r"\b(eq|[gln][et])\(\w+ ⊗", "`{0}(x ⊗ y)` is whether x is {2} y"),
    (r"value(\w\w)\(", "`value{0}(x, y)` keeps the entries {2} y"),
    (r"\.eq ", "`eq(x, y)` is whether x is y"),
    (r"\btruediv\(", "`truediv(x, y)` is x / y"),
    (r"\bfloordiv\(", "`floordiv(x, y)` is x / y rounded down"),
    (r"\bhypot\(", "`hypot(x)` is the Euclidean length of x"),
    (r"\bainv\(", "`ainv(x)` is -x"),
    (r"\bindex\(", "`index(x)` has the index of each entry"),
    (r"\bcolindex\(", "`colindex(x)` has the column of each entry"),
    (r"offdiag\(", "`offdiag` leaves out the diagonal"),
    (r"A\.nrows", "`A.nrows` is the number of vertices"),
    (r"\bnvals\(", "`nvals(x)` is the number of entries of x"),
    (r"\bone\(", "`one(x)` is x with 1 for each entry"),
    (r"\bdiag\(", "`diag(v)` has v on the diagonal"),
    (r"(?<!\w)(?:plus|min|max)\(\w+'?\)", "`plus`, `min` and `max` of one argument reduce all "
     "its values to a number, or each row if the result is a vector"),
    (r" outer\(", "`op outer(x, y)` has op(x[i], y[j]) at (i, j)"),
    (r"\[:, ", "`D[:, k]` is column k, `D[k, :]` row k"),
    (r"(?:^|\n)result = ", "`result` is what the function returns"),
)  # fmt: skip


def _explained(text):
    """Yield what the signs of a formula mean."""
    for sign, words in _SIGNS:
        found = dict.fromkeys(x.groups() for x in re.finditer(sign, text))
        for parts in list(found)[:1] if "semiring" in words else found:
            compared = _COMPARED.get(parts[0], "") if parts else ""
            yield words.format(*parts, *[""] * (2 - len(parts)), compared)


def _free(text):
    """Return the names that a formula uses without a statement for them."""
    assigned, used = {"A", "depth", "r", "if", "else", "or", "and", "not", "float"}, {}
    for line in text.splitlines():
        left, _, right = re.match(r"(.*?)( \w+)?= (.*)", line).groups()
        assigned.add(re.match(r"\w+", left)[0])
        right = re.sub(r" \w+\.\w+ |\w+ (?=outer)", " ", right)
        names = r"(?<![\w.])[A-Za-z_]\w*(?![\w(.]|' ')"
        used |= dict.fromkeys(re.findall(names, " ".join([*re.findall(r"[⟨[](.*)", left), right])))
    assigned -= {"above"} if "s(here)" in text else set()  # of the sweep, though of others, too
    return [x for x in used if x not in assigned and x not in ("True", "False")]


def _listed(names):
    """Return names in words: `a`, `b` and `c`."""
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def _views(code, text):
    """Yield the selections and diagonals of a function that a text names without a statement."""
    for left, right in _VIEW.findall(inspect.getsource(code)):
        of = re.findall(r"(\w+)\.(selection|diag)\([^()]*\)(?:, |$)", right)
        for name, (v, view) in zip(left.split(", "), of, strict=False):
            if re.search(rf"\b{name}\b(?! =)", text) and f"\n{name} = " not in f"\n{text}":
                yield name, f"{view}({v})"


def _code(row, code, called):
    yield f"## Code\n\n```python\n{code}\n```\n"
    links = [f"[`{name}`]({name}.md)" for name in sorted(called - {row.name})]
    if links:
        yield f"It calls {', '.join(links)}.\n"


def _best(steps, shown, good):
    """Return the good steps of the code shown, or those of all, or all steps."""
    found = [step for step in steps if good(step)]
    return [step for step in found if step.code in shown] or found or list(steps)


def _is_aside(step):
    """Whether a step is part of another statement, or of a check."""
    text = formula(step)
    if step.source.startswith("if "):
        return re.match(r"[a-z] = ", text) is not None
    return text.startswith("t = index(") and "index" not in step.source


def _multiplies(step):
    """Whether a step is the product of a vector that has entries: others draw nothing."""
    return step.product is not None and step.before[step.product.vector].nvals > 0


def _turned(step, A):
    """Return a note if a product is with the graph's edges reversed, or in both directions."""
    name = step.product.matrix if step.product is not None else None
    if name is None or A.is_symmetric:
        return ""
    ways = {"reversed graph": A.T.new(), "graph with its edges in both directions": _both(A)}
    used = next((way for way, B in ways.items() if step.matrices[name].isequal(B)), None)
    return f"; `{name}` is the {used}" if used else ""


def _both(A):
    return A.ewise_add(A.T, "any").new()


def _of_vertices(step, A, others=True):
    """Whether a step writes a vector of the vertices, or, with `others`, something else."""
    written = step.vectors.get(step.output)
    return others if written is None else written.size == A.nrows


def _pictures(row, A, steps, shown, folder, result):
    """Yield some steps with their pictures, which are written to `folder`."""
    yield "## Steps\n"
    arguments = ", ".join(
        [
            *([_GIVEN_TO[row.name]] if row.name in _GIVEN_TO else []),
            *(
                _GIVEN.get(x, "{1} {0}").format(_numbers(_FACTS[x]), _said(row, x))
                for x in row.given
            ),
            *(f"`{name}={x}`" for name, x in row.options.items()),
        ]
    )
    weights = "have the weights" if kind_of(row) in _WEIGHTED else "are"
    both = ", in both directions," * A.is_symmetric
    lengths = f"; the edges{both} {weights} `{_edges(A)}`"
    graph = drawing.graph_of(list(steps))
    yield f"On a graph of seven vertices{', ' * bool(arguments)}{arguments}{lengths}:\n"
    chosen = _best(steps, shown, lambda step: _multiplies(step) and _of_vertices(step, A))
    chosen = [step for step in chosen if not _is_aside(step)]
    chosen = [x for x in chosen if x.output in {*x.vectors, *x.matrices}] or chosen
    said = {step.words.split(": ", 1)[1]: step for step in reversed(chosen)}  # each once
    chosen = sorted(said.values(), key=lambda step: step.number)
    chosen = [chosen[k] for k in np.unique(np.linspace(0, len(chosen) - 1, _PICTURES).astype(int))]
    pictures = []
    for step in chosen if len(steps) else ():
        drawn = graph.draw(step) if graph and _of_vertices(step, A, others=False) else ""
        made = re.sub(r"(entries of \w+) \(\d\)", r"\1", drawn) or drawing.draw(step)
        pictures.append((step, made))
    widths = [float(re.search(r'<svg [^>]*?width="([\d.]+)"', made)[1]) for _, made in pictures]
    yield "::::{container} steps" + " wide" * (max(widths, default=0) > _WIDE)
    for step, made in pictures:
        file = folder / f"{row.name}-{step.number}.svg"
        file.write_text(made.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
        level = f", level {step.level}" if step.level >= 0 else ""
        drawn = html.unescape(re.search('aria-label="(.*?)"', made)[1])
        drawn = re.sub(r"offdiag\((\w+), 0\)", r"offdiag(\1)", drawn)
        if not re.search(r">[^<]* \(\d\)", made):  # the picture has no second one to distinguish
            drawn = re.sub(r" \(\d\)", "", drawn)
        yield f":::{{figure}} {file.name}\n:alt: {_cells(step, made)}{drawn}\n"
        turned = _turned(step, A).replace(";", ",")
        yield f"Step {step.number}{level}{turned}: `{written(step)}`\n:::"
    yield "::::\n"
    if pictures:
        cells = any(_cells(*one) for one in pictures)
        marks = "<span>\u25b6 written by the step</span>" * cells
        yield f'<div class="legend">{drawing.legend(str(pictures))}{marks}</div>\n'
    codes = {step.code for step in chosen if step.code}
    drawn = re.findall(r">(?:\u25b6 )?(\w+(?: \(\d\))?)(?=[:=< ])", str(pictures))
    yield from _unnamed("\n".join([*map(written, chosen), *drawn]), codes)
    if any("(" in name for name in drawn):
        yield "`(2)` is a second result.\n"
    yield f"The result: `{result}`.\n"
    yield f"In general: {_returned(row)}\n"
    if len(steps):
        source = " Each vertex can be the source." if "source" in row.given else ""
        many = ("the statement", "both statements", f"all {len(steps)} statements")
        many = many[min(len(steps), 3) - 1]
        link = f'<a href="{row.name}-steps.html">Step through {many}.</a>'
        yield f"{link}{source}\n"


def _returned(row):
    """Return the section of the docstring about the result as a sentence or several."""
    text = sections(getattr(algorithms, row.name))[1]["Returns"]
    return " ".join(f"`{head}`: {plain(_in_full(said))}" for head, said in _parts_of(text))


def _parts_of(text):
    return re.findall(r"^(\S.*)\n((?: +.*\n?)*)", text + "\n", re.M)


def _in_full(said):
    """Return what is said of a result, that of the algorithms to which it refers instead of As."""
    words = " ".join(said.split())
    found = re.fullmatch(r"As (`\w+`(?: and `\w+`)*)(?: returns? (?:it|them))?\.", words)
    others = re.findall(r"\w{4,}", found[1]) if found else []
    texts = [sections(getattr(algorithms, name))[1]["Returns"] for name in others]
    return " ".join(_in_full(_parts_of(text)[0][1]) for text in texts) or words


def _cells(step, drawn):
    """Return what a drawing shows as cells, in words; an empty string for a graph."""
    if "The graph of " in drawn:
        return ""
    read, *_ = drawing.Layout([step]).drawn(step)
    names = [read, *step.vectors, *{step.output} & {*step.matrices}]
    return f"Cells of {_listed(filter(None, dict.fromkeys(names)))}. ".replace("`", "")


def _last_loop(row):
    """Return how the loop of an algorithm runs on a GPU; an empty string without a loop."""
    A = small(kind_of(row)).to("sim")
    call = prepared(row, A)
    A.backend.last_loop = ""
    call()
    return A.backend.last_loop


def _cost(row, said, loops):
    yield "## Method and cost\n"
    if "Notes" in said:
        yield plain(said["Notes"]) + "\n"
    if row.name in _AS:
        yield f"As [`{_AS[row.name]}`]({_AS[row.name]}.md#method-and-cost).\n"
    if how := _last_loop(row):
        how, _, why = how.removesuffix(": only one source").partition(": ")  # of the last batch
        why = f" ({why})" * bool(why)
        last = "last " * (loops > 1)
        link = f"[How its {last}loop runs](../design/gpu.md#the-ways-to-run-a-loop)"
        yield f"{link} on [`sim`](../backends.md), on the small graph: *{how}*{why}.\n"
    lines, kinds = [], set()
    for name, A in larger(row.graph, row.slow):
        hub = int(np.bincount(A.to_coo()[0]).argmax())
        call = prepared(row, A, source=hub, sources=[hub, 0])
        with lagpu.trace() as t:
            try:
                call()
            except LagpuError as error:  # such as NotConverged
                name = f"{name} ({type(error).__name__})"
        products = [one for one in t.rows if "mxv" in one.method or "mxm" in one.method]
        kinds |= {"mxm" in one.method for one in products}
        read = sum(one.edges or 0 for one in products)
        lines.append([name, A.nrows, A.nvals, len(t.rows), len(products), read])
    heads = ["graph", "vertices n", "entries m", "statements", "products", "read"]
    kept = [k for k in range(6) if any(line[k] for line in lines)]
    read = "; *read* are the entries that products with a vector look at" * (5 in kept)
    read += " (products of two matrices are left out)" * (5 in kept and len(kinds) > 1)
    stopped = any("NotConverged" in line[0] for line in lines)
    given = (_COUNTED.get(x, f"with `{_said(row, x)}={_FACTS[x]}`") for x in row.given)
    yield (
        ", ".join(["Counted on `cpu`", *given])
        + ", on grids and on the largest component of Kronecker graphs"
        + ", without edges to a lower number" * (row.graph == "acyclic")
        + " (kron:6 has 2**6 vertices in all)"
        + read
        + "; *NotConverged*: the iterations allowed were not enough" * stopped
        + ":\n"
    )
    yield f"| {' | '.join(heads[k] for k in kept)} |"
    yield "|---|" + "---:|" * (len(kept) - 1)
    for line in lines:
        yield f"| {' | '.join(line[k] if k == 0 else f'{line[k]:,}' for k in kept)} |"
    yield ""


def _speed(row, measured):
    yield "## Speed\n"
    others = [f"[`{x}`]({x}.md#speed)" for x in row.measured_as.split(", ") if x in measured]
    nearest = f"; the nearest that it measures: {' and '.join(others)}" * bool(others)
    rows = measured.get(row.name, [])
    on_cpu = all(one.get("system") == "cpu" for one in rows)
    if rows:
        options = {one["options"] for one in rows}
        same = f", {min(options)}" if len(options) == 1 and "" not in options else ""
        same = re.sub(r"from (each of )?8", r"\g<0> sources", same)
        verified = ", each result verified" * (row.check is not None or not on_cpu)
        what = "processor time on `cpu`, one thread" if on_cpu else "wall time"
        rules = "[graphs and rules](../benchmarks/README.md#every-algorithm-beside-other-systems)"
        yield f"Median milliseconds of {what}{same}{verified}{f'; {rules}' * (not on_cpu)}:\n"
        index = "graph" if same or on_cpu else "graph,options"
        table = f"index={index} columns=system value=median_ms"
        file = ON_CPU if on_cpu else MEASURED
        yield f"<!-- pivot {file} {table} where=algorithm:{row.name} -->\n"
        notes = {one["note"] for one in rows if one["median_ms"] is None}
        why = [f"*{sign}*: {said}" for sign, said in _WHY.items() if any(sign in x for x in notes)]
        if index != "graph" and len(options) > 1:
            why.append("*-*: the system has the other method")
        if why:
            yield f"{'; '.join(why)}.\n"
    if on_cpu:
        yield f"`lagpu bench` does not measure it{nearest}.\n"


def _exercises(row, steps, shown, result, shows):
    products = [
        step
        for step in _best(steps, shown, lambda step: step.product is not None)
        if step.product is not None and re.search(r"\b(A|edges)\b", step.formula)
        if step.output in step.before
        and not step.vectors[step.output].same_as(step.before[step.output])
    ]
    found = _changed(row, shows(result), shows)
    if products or found:
        yield "## Exercises\n"
    if products:
        found_some = [one for one in products if one.vectors[one.output].nvals] or products
        step = found_some[len(found_some) // 2]
        left, right = step.formula.split(" << ", 1)
        read = right if "(" not in left else step.formula  # a mask and the output, too
        before = "; ".join(
            f"`{name}` is `{entries(state.to_dict())}`"
            for name, state in step.before.items()
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", read)
        )
        before += _turned(step, small(kind_of(row)))
        yield f"1. Before step {step.number} {before}. What does `{written(step)}` write?\n"
        after = entries(step.vectors[step.output].to_dict())
        yield _solution(f"{step.output} is {after}.{_also(step)}")
    if found:
        (i, j), other = found
        number = 1 + bool(products)
        way = "between {} and {}" if small(kind_of(row)).is_symmetric else "from {} to {}"
        way = f"{number}. Run it without the edge {way.format(i, j)}"
        yield f"{way}. What changes in the result?\n"
        free = "".join(f" {words}" for x, words in _AS_GOOD.items() if x in _returned(row))
        yield _solution(_compared(shows(result), other) + free)


def _compared(before, after):
    """Return two results in words; of many entries of a matrix those that differ."""
    found = [re.findall(r"\(\d, \d\): [^,}]+", text) for text in (before, after)]
    if max(map(len, found)) <= _MANY:
        return f"Before: {before}. Then: {after}."
    apart = [[x for x in some if x not in others] for some, others in (found, found[::-1])]
    before, after = (", ".join(some) or "no entry" for some in apart)
    return f"Before: {before}. Then: {after}. The other entries stay."


def _also(step):
    """Return what `any` could keep in place of what a product wrote, or an empty string."""
    p, op = step.product, re.search(r" any_(first|secondi) ", step.formula)
    if op is None or (op[1] == "first" and not p.vector_left):
        return ""
    wrote, read = step.vectors[step.output].to_dict(), step.before[p.vector].to_dict()
    other = {}
    for ends in zip(*(part.tolist() for part in step.matrices[p.matrix].to_coo()[:2]), strict=True):
        i, j = ends[::-1] if p.transposed == p.vector_left else ends
        found = i if op[1] == "secondi" else read.get(i)
        if i in read and j in wrote and found != wrote[j]:
            other[j] = found
    return f" As any keeps one of several, {entries(other)[1:-1]} is right, too." if other else ""


def _changed(row, before, shows):
    """Return an edge without which the result is another one, and that result."""
    A = small(kind_of(row))
    for edge in zip(*(part.tolist() for part in A.to_coo()[:2]), strict=True):
        try:
            after = shows(run(row, small(kind_of(row), edge)))
        except LagpuError:
            continue
        if Counter(_WORD.findall(after)) != Counter(_WORD.findall(before)):  # not only the order
            return edge, after
    return None


def _solution(text):
    shown = _unbroken(text).replace("&", "&amp;").replace("<", "&lt;")
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


def recorded():
    """Return the measurements of each algorithm on a GPU and beside it, or on `cpu` alone."""
    found = {name: [] for name in rows()}
    for file in (MEASURED, ON_CPU):
        for one in json.loads((figures.FOLDER / file).read_text("utf-8"))["rows"]:
            if one["algorithm"] in found:  # "product" is a question of bench, and has no page
                found[one["algorithm"]].append(one)
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
    measured = recorded()
    for name, row in rows().items():
        if only is None or name in only:
            (folder / f"{name}.md").write_text(markdown(row, folder, measured), "utf-8")
