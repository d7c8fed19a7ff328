"""What the pictures of a page show, in words, for readers who do not see them.

The words come from the call of `lagpu.viz` in a code cell; above a cell that draws in another way
a comment ``% picture: ...`` has them.
"""

import ast
import re

_CELL = re.compile(r"^```\{code-cell\}\n((?::\w+:[^\n]*\n)*)(.*?)^```$", re.M | re.S)
_SAID = re.compile(r"^% picture: (.*)\n\s*\Z", re.M)
_DRAWS = re.compile(r"^viz\.(?!save)\w+\(|^graph\(|^plt\.show\(|^t\.plot\(", re.M)
_ELSEWHERE = {("graph", ""), ("plot", "t")}
_WORDS = {
    "matrix": "The entries of the matrix {first} by row and column, blank where there is none.",
    "vector": "Vectors, a row of cells each: {all}.",
    "mask": "The positions that these masks keep, a row of cells each: {all}.",
    "product": "The product {first}{mask}: the vector, the matrix and the result; entries that are "
    "multiplied have a strong colour.",
    "graph": "Circles for the vertices of {first}{more}, lines or arrows for its edges{parents}.",
    "frontier": "The matrix {first} at one level of a search: blue rows of the frontier, grey "
    "columns of vertices that have a level, and edges to new vertices in red.",
    "frontiers": "The matrix {first} at several levels of a search, a panel each: blue rows of the "
    "frontier, grey columns of vertices that have a level, and edges to new vertices in red.",
    "level_histogram": "Bars: how many vertices each level has in {first}.",
    "plot": "Bars: the kernel time of each level of the trace {object}, by direction; a line: the "
    "entries of the vector multiplied.",
}


def alternatives(text):
    """Return the words for the picture of each code cell of a page; "" for a cell without one."""
    found = []
    for cell in _CELL.finditer(text):
        said = _SAID.search(text[: cell.start()])
        found.append(said[1] if said else words(cell[2]))
    return found


def pictured(text):
    """Return the code of each cell of a page, and whether it draws."""
    return [(cell[2], bool(_DRAWS.search(cell[2]))) for cell in _CELL.finditer(text)]


def words(code):
    """Return what the calls of `lagpu.viz` in a cell draw, in words."""
    said = []
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        name, place = _called(node.func)
        if name not in _WORDS or (place != "viz" and (name, place) not in _ELSEWHERE):
            continue
        given = [ast.unparse(arg) for arg in node.args if not isinstance(arg, ast.Starred)]
        if not given and name != "plot":
            continue
        named = {key.arg: ast.unparse(key.value) for key in node.keywords}
        said.append(
            _WORDS[name].format(
                first=given[0] if given else "",
                all=", ".join(given),
                more=f", coloured by {given[1]}" if len(given) > 1 else "",
                mask=f" under the mask {named['mask']}" if "mask" in named else "",
                parents=f", thick in the tree {named['parents']}" if "parents" in named else "",
                object=place,
            )
        )
    return " ".join(said)


def _called(function):
    """Return a called function's name, and what it is an attribute of."""
    if isinstance(function, ast.Attribute):
        return function.attr, ast.unparse(function.value)
    return (function.id, "") if isinstance(function, ast.Name) else ("", "")
