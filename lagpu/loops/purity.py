"""Purity: prove from the source of a loop's body that it is nothing but lagpu statements.

Only such a body may run as one program: recording it once would freeze a counter, an append to a
list, a branch or any other call. So the body must consist of ``w(...) << call`` statements whose
names are lagpu objects and numbers; every other body runs eagerly, with the reason.
"""

import ast
import functools
import linecache
from collections.abc import Iterable
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import Monoid, Operator, Semiring, Table
from lagpu.algebra.tables import Operators, Selector, Selectors, select
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.collection import Aggregator
from lagpu.core.infix import Replace
from lagpu.core.views import SelectionMatrix, TransposedMatrix
from lagpu.dtypes import DType
from lagpu.host.source import SYNTAX
from lagpu.operations import PURE

_PURE = PURE | {"S", "V", "T", "new"}  # attributes and methods without side effects
_NUMBERS = (bool, int, float, np.generic)
_BUILTIN = {"abs": abs}  # of Python, and applies to vectors
_UNKNOWN: Any = object()  # what a name means that leads to no object without running code
_CALLED = (abs, select.value)  # the place in a row or a column is compared with a number alone
VIEWS = (TransposedMatrix, SelectionMatrix)  # of a matrix or a vector that may have a name too
_KNOWN = (
    *(Vector, Matrix, *VIEWS, Scalar),
    *(Operator, Monoid, Semiring, Selector, DType, Replace, *_NUMBERS),
)


class Names(dict[str, set[str]]):
    """The names of a body, each once, with what it is there.

    That is a ``value``; a ``function`` that is called; an ``index``, which may be a list too; in
    the ``test`` of an ``if``, where it must be a number, a word or None; any object whose
    ``identity`` an ``if`` tests, as in ``x is None``; a number beside the
    ``counter`` in arithmetic, where one of NumPy's would compute with the first value; an object
    ``compared`` with the counter; or ``written`` by ``w += x``, which would rebind a number.
    """

    def add(self, name: str, what: str) -> None:
        """Add a name."""
        self.setdefault(name, set()).add(what)


class LoopBody(NamedTuple):
    """The body of a loop, as read from its source."""

    statements: int = 0  #: How many the body runs; 0 if it cannot be recorded.
    names: Names = Names()  #: Dotted names that must refer to lagpu objects or numbers.
    reason: str = ""  #: Why the body cannot be recorded, or an empty string.
    scalar: str = ""  #: One of the names, which refers to a `Scalar`, or an empty string.
    #: The name of the counter of a loop outside a function, where any later code may read it.
    counter: str = ""
    #: For each statement 1; for an ``if``, (code of the test, lines if it is true, other lines).
    lines: tuple[Any, ...] = ()


class Impure(Exception):
    """The body contains something that recording would freeze."""


def read_body(frame: FrameType, callee: str = "loop") -> LoopBody:
    """Return the body of the ``for`` statement whose iterable `frame` is calling now.

    The iterable is a call of `callee`: ``loop`` yields a counter, ``sweep`` two vectors.
    """
    body = _read(frame.f_code, frame.f_lineno, callee)
    local, outer = frame.f_locals, frame.f_globals  # f_locals makes a new mapping at each access
    if body.counter and local is not outer:
        return LoopBody(reason="it is in the body of a class, where any code may read its counter")
    return _bound(body, local, outer) if body.statements else body


class WhileBody(NamedTuple):
    """The body of ``while q.nvals:``, which is that of a `loop`, and what Python does besides."""

    body: LoopBody
    tested: str  #: The dotted name of ``q``.
    code: CodeType  #: Of the body's lines, without that of the counter.
    counter: str  #: The number that a line ``depth += 1`` counts; "" if there is none.
    step: int
    advances_first: bool  #: Whether the lines that read the counter follow that line.

    def counted(self, start: Any, turn: Any) -> Any:
        """Return what the lines read as the counter, `start` before the first iteration.

        It is added even if it is 0, so that loops are alike wherever they begin.
        """
        start += self.step * self.advances_first
        return (turn if self.step == 1 else turn * self.step) + start


def read_while(frame: FrameType, watched: Any) -> WhileBody | None:
    """Return the body of the loop ``while q.nvals:`` whose condition `frame` is testing now.

    None if its condition is another one, ``q`` is not `watched`, or the body is not proved to be
    that of a `loop`, whose counter nothing else reads.
    """
    code, line, local, outer = frame.f_code, frame.f_lineno, frame.f_locals, frame.f_globals
    at = _while_at(code, line)
    advanced = [_advance(x)[0] for x in at[0].body] if at else []
    numbers = [name for name in advanced if type(local.get(name)) is int]
    found = _read_while(code, line, *numbers[:1])
    if found is None or lookup(found.tested, local, outer) is not watched:
        return None
    if any(is_unbound(name, code, local) for name in found.body.names):  # Python raises
        return None
    body = _bound(found.body, local, outer)
    return found._replace(body=body) if body.statements else None


def _bound(body: LoopBody, local: Any, outer: dict[str, Any]) -> LoopBody:
    """Return a body with what its names mean now; without statements if it is none for a loop."""
    scalar = ""
    for name, uses in body.names.items():
        found = lookup(name, local, outer)
        try:
            why = _why_not(name, uses, found, local, outer, body.counter)
        except RecursionError:
            why = f"{name} may call itself"
        if not why and "written" in uses and not isinstance(found, (Vector, Matrix)):
            kind = type(found).__name__
            why = f"{name} is of type {kind}, and += binds the name to another object"
        if why:
            return LoopBody(reason=why)
        if type(found) is Scalar:
            scalar = name
    try:
        count = _count(body.lines, local, outer)
    except Exception:  # Python will raise it there
        return LoopBody(reason="the test of an if raises an error")
    if not count:
        return LoopBody(reason="the body has no statement")
    return body._replace(scalar=scalar, statements=count)


def _count(lines: tuple[Any, ...], local: Any, outer: dict[str, Any]) -> int:
    """Return how many statements run; the tests of ``if`` have no side effects."""
    found = 0
    for line in lines:
        if isinstance(line, tuple):
            test, then, other = line
            found += _count(then if eval(test, outer, local) else other, local, outer)
        else:
            found += line
    return found


def _why_not(
    name: str, uses: set[str], found: Any, local: dict[str, Any],
    outer: dict[str, Any], counter: str = "",
) -> str:  # fmt: skip
    """Return why what a name refers to may not be used so, or an empty string.

    `counter` is a name that a function must not read.
    """
    if "counter" in uses and isinstance(found, np.generic):
        return f"{name} is a number of NumPy's in arithmetic with the counter"
    if "test" in uses and not isinstance(found, (*_NUMBERS, str, DType, type(None))):
        return f"an if tests {name}, which may change"
    if "compared" in uses and not isinstance(found, (Vector, Matrix)):
        return f"{name} is compared with the counter, and is neither a vector nor a matrix"
    if "function" in uses and isinstance(found, FunctionType):
        why = _why_impure(found, counter)
        return why and f"{name}(...) is called, and {why}"
    listed = "index" in uses and isinstance(found, (np.ndarray, list, tuple, range))
    if listed or _is_known(found) or not uses & {"value", "index", "function"}:
        return ""
    base, _, last = name.rpartition(".")
    if last == "value" and isinstance(lookup(base, local, outer), Scalar):
        return f"{name} is read on the host; write {base} instead"
    return f"{name} is neither a lagpu object nor a number"


def _why_impure(function: FunctionType, counter: str) -> str:
    """Return why a function is not one ``return`` of lagpu calls, or an empty string."""
    names = _read_function(function.__code__)
    if isinstance(names, str):
        return names
    if function.__defaults__ or function.__kwdefaults__ or counter in names:
        return "it has defaults" if counter not in names else f"it reads {counter}"
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    try:
        local = {name: cell.cell_contents for name, cell in cells}
    except ValueError:
        return "one of its variables has no value yet"
    outer = function.__globals__
    for name, uses in names.items():
        if why := _why_not(name, uses, lookup(name, local, outer), local, outer, counter):
            return why
    return ""


def _is_known(x: Any) -> bool:
    """Return True for a number, ``abs``, ``select.value``, or an object of a class of lagpu."""
    if isinstance(x, _NUMBERS) or any(x is known for known in _CALLED):
        return True
    # a subclass of such a class may do anything
    ours = isinstance(x, _KNOWN) and type(x).__module__.startswith("lagpu.")
    return ours or (type(x) is Aggregator and x.is_ours)


def backend_of(body: LoopBody, frame: FrameType) -> Any:
    """Return the one backend of the objects that a body names, or None if there are several.

    If the body names no vector, all local variables count: ``loop(times=3)`` names none either.
    """
    local, outer = frame.f_locals, frame.f_globals
    named = _backends(lookup(name, local, outer) for name in body.names)
    found = named or _backends(local.values())
    return next(iter(found.values())) if len(found) == 1 else None


def _backends(objects: Iterable[Any]) -> dict[int, Any]:
    return {id(x.backend): x.backend for x in objects if isinstance(x, (Vector, Matrix))}


def is_unbound(dotted: str, code: CodeType, local: dict[str, Any]) -> bool:
    """Whether a dotted name begins with a variable of a function that has no value."""
    first, own = dotted.split(".")[0], (code.co_varnames, code.co_cellvars, code.co_freevars)
    return first not in local and any(first in names for names in own)


def lookup(dotted: str, local: dict[str, Any], outer: dict[str, Any]) -> Any:
    """Return the object of a dotted name; `_UNKNOWN` if only running code finds it.

    The sizes and the type of an object of lagpu are properties too, which no statement changes.
    """
    if dotted in local:
        return local[dotted]
    first, *rest = dotted.split(".")
    value: Any = (local if first in local else outer).get(first, _BUILTIN.get(first, _UNKNOWN))
    for name in rest:
        kind = type(value)
        if isinstance(value, (Table, Operators, Selectors)):
            return getattr(value, name) if name in value else _UNKNOWN
        if kind in (Vector, Matrix, Scalar, *VIEWS) and name in _FIXED:
            value = getattr(value, name, _UNKNOWN)
            continue
        attributes = getattr(value, "__dict__", {})
        computes = hasattr(kind, name) or isinstance(kind.__getattribute__, FunctionType)
        if computes or name not in attributes:  # a property could run any code
            return _UNKNOWN
        value = attributes[name]
    return value


def _tree_of(code: CodeType) -> ast.Module | str:
    """Return the syntax of the file of running code; or why it is not known, as a text."""
    try:
        tree, compiled = _parsed("".join(linecache.getlines(code.co_filename)), code.co_filename)
    except (SyntaxError, ValueError):
        return "its source cannot be read"
    behaviour = _behaviour(code)
    if any(_behaviour(c) == behaviour for part in compiled for c in _codes(part, code)):
        return tree
    return "its source differs from the code that runs, or cannot be read"


@functools.lru_cache(maxsize=512)
def _read_function(code: CodeType) -> Names | str:
    """Return the names of a function that is one ``return``, or why it is none, as a text."""
    tree = _tree_of(code)
    if isinstance(tree, str):
        return tree
    defined = (x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef | ast.Lambda))
    found = [node for node in defined if node.lineno == code.co_firstlineno]
    if len(found) != 1:
        return "another function is defined in its first line"
    (node,) = found
    body: Any = node.body
    if isinstance(node, ast.FunctionDef):
        lines = node.body[ast.get_docstring(node) is not None :]
        body = lines[0].value if len(lines) == 1 and isinstance(lines[0], ast.Return) else None
    given = {x.arg for x in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    names = Names()
    try:
        if body is None or node.args.vararg or node.args.kwarg:
            raise Impure("it is more than one return")
        _visit(body, "", names)
    except Impure as impure:
        return str(impure)
    for name in [x for x in names if x.split(".")[0] in given]:
        if not names.pop(name) <= {"value", "identity"} or "." in name:
            return f"it uses {name} as more than an operand"
    return names


@functools.lru_cache(maxsize=512)
def _read(code: CodeType, line: int, callee: str) -> LoopBody:
    """Read the loop at `line` of `code`, if the source file matches the running code."""
    tree = _tree_of(code)
    if isinstance(tree, str):
        return LoopBody(reason=tree)
    loops = (x for x in ast.walk(tree) if isinstance(x, ast.For) and isinstance(x.iter, ast.Call))
    found = [x for x in loops if x.iter.lineno <= line <= (x.iter.end_lineno or line)]
    if len(found) != 1:
        return LoopBody(reason=f"{callee}(...) is not the iterable of exactly one for statement")
    try:
        targets = _targets(found[0], callee)
        around = _function_around(found[0], tree)
        if around is None and callee != "loop":
            raise Impure("it is outside a function, where any code may read its masks")
        if around is not None:
            _require_unread(found[0], around, targets, code, "counter " if callee == "loop" else "")
        names = Names()
        lines = _check_lines(found[0].body, targets[0] if callee == "loop" else "", names)
        for name in () if callee == "loop" else targets:
            names.pop(name, None)
        return LoopBody(1, names, counter=targets[0] if around is None else "", lines=lines)
    except Impure as impure:
        return LoopBody(reason=str(impure))


@functools.lru_cache(maxsize=512)
def _while_at(code: CodeType, line: int) -> tuple[ast.While, ast.Module] | None:
    """Return the ``while`` statement that begins at `line` of `code`, and the tree of its file."""
    is_while = linecache.getline(code.co_filename, line).lstrip().startswith("while")
    tree = _tree_of(code) if is_while else ""
    if isinstance(tree, str):
        return None
    whiles = (x for x in ast.walk(tree) if isinstance(x, ast.While) and x.lineno == line)
    found = next(whiles, None)  # none where a text has such a line
    return (found, tree) if found and found.test.lineno == line and not found.orelse else None


def _advance(line: ast.stmt) -> tuple[str, int]:
    """Return the name and the step of a line such as ``depth += 1``; the name of others is ""."""
    if isinstance(line, ast.AugAssign) and isinstance(line.target, ast.Name):
        step = getattr(line.value, "value", None)
        if isinstance(line.op, ast.Add | ast.Sub) and type(step) is int:
            return line.target.id, step if isinstance(line.op, ast.Add) else -step
    return "", 0


@functools.lru_cache(maxsize=512)
def _read_while(code: CodeType, line: int, counter: str = "") -> WhileBody | None:
    """Read the ``while`` statement at `line` of `code`, for which see `read_while`."""
    found = _while_at(code, line)
    if found is None:
        return None
    loop, tree = found
    tested = _tested(loop.test)
    advances = [_advance(x) if counter else ("", 0) for x in loop.body]
    place = next((k for k, (name, _) in enumerate(advances) if name == counter != ""), None)
    first, then = loop.body[:place], [] if place is None else loop.body[place + 1 :]
    names_in = (map(ast.walk, part) for part in (first, then))
    reads = [any(getattr(x, "id", None) == counter for y in part for x in y) for part in names_in]
    around, names = _function_around(loop, tree), Names()
    if counter and (around is None or all(reads) or not _is_set_before(loop, around, counter)):
        return None
    try:
        if around is not None and counter:
            _require_unread(loop, around, (counter,), code, "counter ")
        lines = _check_lines([*first, *then], counter, names)
    except Impure:
        return None
    for name in filter(None, (tested, counter)):
        names.add(name, "value")
    with SYNTAX:
        own = compile(ast.Module([*first, *then], []), code.co_filename, "exec", dont_inherit=True)
    body = LoopBody(1, names, lines=lines)
    step = 1 if place is None else advances[place][1]
    return WhileBody(body, tested, own, counter, step, reads[1]) if tested else None


def _tested(test: Any) -> str:
    """Return the dotted name of ``q`` in the test ``q.nvals``, or that with ``> 0`` or ``!= 0``."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        test = test.left if ast.unparse(test).endswith((".nvals > 0", ".nvals != 0")) else None
    is_count = isinstance(test, ast.Attribute) and test.attr == "nvals"
    return (_dotted(test.value) or "") if is_count else ""


def _is_set_before(loop: ast.While, around: ast.AST, name: str) -> bool:
    """Whether a name is set whenever `loop` is reached: by a line before it in the same block."""
    for node in ast.walk(around):
        for block in ("body", "orelse", "finalbody"):
            lines = getattr(node, block, ())
            if isinstance(lines, list) and loop in lines:
                before = lines[: lines.index(loop)]
                targets = [x.targets for x in before if isinstance(x, ast.Assign)]
                return any(isinstance(x, ast.Name) and x.id == name for y in targets for x in y)
    return False


@functools.lru_cache(maxsize=16)
def _parsed(text: str, file: str) -> tuple[ast.Module, list[CodeType]]:
    """Return the tree of a file, and its code: of the whole, and of each statement by itself."""
    with SYNTAX:
        tree = ast.parse(text)
        parts = [tree, *(ast.Module([statement], []) for statement in tree.body)]
        # A notebook compiles each statement without the __future__ imports before it.
        return tree, [compile(part, file, "exec", dont_inherit=True) for part in parts]


def _behaviour(code: CodeType) -> tuple[Any, ...]:
    """Return everything that decides the behaviour of a code object, but the functions inside."""
    constants = tuple(c for c in code.co_consts if not isinstance(c, CodeType))
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_code, repr(constants), *names


def _codes(code: CodeType, like: CodeType) -> list[CodeType]:
    """Return the code objects inside `code` with the name and the first line of `like`."""
    named = (code.co_name, code.co_firstlineno) == (like.co_name, like.co_firstlineno)
    inside = (c for x in code.co_consts if isinstance(x, CodeType) for c in _codes(x, like))
    return [*([code] if named else ()), *inside]


def _targets(loop: ast.For, callee: str) -> tuple[str, ...]:
    named = _dotted(loop.iter.func)  # type: ignore[attr-defined]
    if named is None or named.split(".")[-1] != callee:
        raise Impure(f"{callee}(...) is wrapped in another call")
    parts = [loop.target] if callee == "loop" else getattr(loop.target, "elts", ())
    names = tuple(part.id for part in parts if isinstance(part, ast.Name))
    if loop.orelse or len(set(names)) != (1 if callee == "loop" else 2):
        fault = "unpacks its counter" if callee == "loop" else "does not name here and above"
        raise Impure(f"the for statement has an else, or {fault}")
    return names


def _function_around(loop: ast.stmt, tree: ast.Module) -> ast.AST | None:
    """Return the function whose variables a loop assigns; None for a module or a class."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    around: ast.AST | None = None
    for node in ast.walk(tree):  # the innermost is the last
        near = isinstance(node, scopes) and node.lineno <= loop.lineno <= (node.end_lineno or 0)
        if near and any(inner is loop for inner in ast.walk(node)):
            around = node
    return None if isinstance(around, ast.ClassDef) else around


def _nodes_that_see(targets: tuple[str, ...], around: ast.AST, code: CodeType) -> list[ast.AST]:
    """Return the nodes of a function that may read its variables.

    A function inside reads them only if the compiler has made cells of them, and a comprehension
    over variables of these names reads its own.
    """
    found: list[ast.AST] = [around]
    shared = not set(targets).isdisjoint(code.co_cellvars)
    for node in found:
        parts = list(ast.iter_child_nodes(node))
        if node is not around and not shared and isinstance(node, _FUNCTIONS):
            body: list[Any] = node.body if isinstance(node.body, list) else [node.body]
            parts = [x for x in parts if x not in body]
        if isinstance(node, _COMPREHENSIONS):
            assigned = (x for g in node.generators for x in ast.walk(g.target))
            own = {x.id for x in assigned if isinstance(x, ast.Name)}
            parts = [node.generators[0].iter] if own.issuperset(targets) else parts
        found += parts
    return found


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _require_unread(
    loop: ast.stmt, around: ast.AST, targets: tuple[str, ...], code: CodeType, kind: str
) -> None:
    """Raise `Impure` if a target may be read outside the loop: recording leaves the first value.

    `kind` is the word before the target's name in messages.
    """
    inside = {id(node) for node in ast.walk(loop)} | _in_other_loops(around, loop, targets)
    for node in _nodes_that_see(targets, around, code):
        named = node.id if isinstance(node, ast.Name) else ""
        if named in ("locals", "eval", "exec", "vars"):
            raise Impure(f"line {node.lineno} may read the {kind}{targets[0]}")  # type: ignore[attr-defined]
        stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if named in targets and id(node) not in inside and not stored:
            raise Impure(f"line {node.lineno} reads the {kind}{named}")  # type: ignore[attr-defined]
        if isinstance(node, ast.Global | ast.Nonlocal):
            for name in targets:
                if name in node.names:
                    raise Impure(f"the {kind}{name} is not local")


def _in_other_loops(around: ast.AST, loop: ast.stmt, targets: tuple[str, ...]) -> set[int]:
    """Return the ids of the nodes in the bodies of other loops that assign all the targets.

    There a target has the value of that other loop, whatever this loop left in it. Functions that
    are defined in such a body are left out, as they may be called later.
    """

    def is_other(node: ast.For) -> bool:
        names = {x.id for x in ast.walk(node.target) if isinstance(x, ast.Name)}
        return names >= {*targets} and not any(inner is loop for inner in ast.walk(node))

    loops = (node for node in ast.walk(around) if isinstance(node, ast.For))
    left: list[ast.AST] = [part for node in loops if is_other(node) for part in node.body]
    found: set[int] = set()
    while left:
        node = left.pop()
        if not isinstance(node, _CALLED_LATER):
            found.add(id(node))
            left += ast.iter_child_nodes(node)
    return found


_CALLED_LATER = (*_FUNCTIONS, ast.GeneratorExp)


def _check_lines(lines: list[ast.stmt], counter: str, names: Names) -> tuple[Any, ...]:
    """Return `LoopBody.lines`, and collect names."""
    found: list[Any] = []
    for line in lines:
        if isinstance(line, ast.Pass):
            continue
        if isinstance(line, ast.If):
            both = [_check_lines(x, counter, names) for x in (line.body, line.orelse)]
            _visit_test(line.test, counter, names)
            found.append((compile(ast.Expression(line.test), "<an if>", "eval"), *both))
            continue
        left, right = _sides(line)
        if isinstance(line, ast.AugAssign):
            names.add(left.id, "written")  # type: ignore[attr-defined]
        _visit(left, counter, names)
        _visit(right, counter, names, True)
        found.append(1)
    return tuple(found)


def _visit_test(node: ast.expr, counter: str, names: Names) -> None:
    """Collect the names of a test that has one result in all iterations, or raise `Impure`."""
    dotted = _dotted(node)
    parts: list[ast.expr] = []
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        plain = all(isinstance(x, ast.Name | ast.Constant) for x in parts)
        if plain and all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):  # of any objects
            named = [x for x in parts if isinstance(x, ast.Name)]
            parts = [x for x in named if x.id == counter]
            for x in named:
                names.add(x.id, "identity")
    elif isinstance(node, ast.BoolOp | ast.BinOp | ast.UnaryOp):
        parts = _parts(node)
    elif dotted is not None and dotted != counter:
        names.add(dotted, "test")
    elif not isinstance(node, ast.Constant):
        raise Impure(f"line {node.lineno} tests what may change")
    for part in parts:
        _visit_test(part, counter, names)


def _parts(node: ast.expr) -> list[ast.expr]:
    return [x for x in ast.iter_child_nodes(node) if isinstance(x, ast.expr)]


_FIXED = ("nrows", "ncols", "size", "dtype", "ndim")  # of an object


def _sides(statement: ast.stmt) -> tuple[ast.expr, ast.expr]:
    """Return the sides of ``w << call``, ``w += call`` or ``w[i] = call``, or raise `Impure`."""
    match statement:
        case ast.AugAssign(ast.Name() as w, op, call) if isinstance(op, _INPLACE):
            return w, call
        case ast.Assign([ast.Subscript() as w], call):
            return w, call
        case ast.Expr(ast.BinOp(w, ast.LShift(), call)):
            return w, call
    hint = _INSTEAD.get(type(statement), "")
    raise Impure(f"line {statement.lineno} is not a w << call statement{hint}")


_INSTEAD: dict[type[ast.stmt], str] = {
    ast.Assign: "; make objects before the loop, and write them with <<",
    ast.Break: "; with loop(until=s) a scalar ends the loop",
    ast.For: "; of nested loops the inner one may be one kernel",
}


def _visit_index(node: ast.expr, counter: str, names: Names) -> None:
    """Collect the names of an index: a number, a name, a slice, or several of these."""
    if isinstance(node, ast.Name):
        if node.id == counter:
            raise Impure(f"line {node.lineno} has the counter {counter} as an index")
        names.add(node.id, "index")
    elif isinstance(node, ast.UnaryOp | ast.Slice | ast.Tuple | ast.List):
        for part in _parts(node):
            _visit_index(part, counter, names)
    else:
        _visit(node, counter, names)


def _visit(node: ast.expr, counter: str, names: Names, may: bool = False) -> None:
    """Collect the names of an expression without side effects, or raise `Impure`.

    It `may` be the counter, or a formula with it, where a statement takes a number.
    """
    if isinstance(node, ast.Constant):
        return
    dotted = _dotted(node)
    if dotted is not None and counter in dotted.split(".")[:1]:
        if may and dotted == counter:
            return
        raise Impure(f"line {node.lineno} computes with the counter {counter}")
    parts: list[ast.expr]
    if isinstance(node, ast.Subscript):
        _visit_index(node.slice, counter, names)
        parts, may = [node.value], True  # of an object: a number has no such part
    elif isinstance(node, ast.Attribute) and node.attr in _PURE:
        parts, may = [node.value], True
    elif dotted is not None:
        names.add(dotted, "value")
        return
    elif isinstance(node, ast.Call):
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        if starred or any(k.arg is None for k in node.keywords):
            raise Impure(f"line {node.lineno} unpacks arguments")
        given = [*node.args, *(k.value for k in node.keywords)]
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = _dotted(node.func)
        if called and method not in _PURE and called.split(".")[0] != counter:
            names.add(called, "function")
        else:
            _visit(node.func, counter, names, True)
        for part in given:
            _visit(part, counter, names, method in _TAKES_NUMBERS)
        return
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.USub):
        may = may and isinstance(node.op, ast.USub)
        parts = [node.operand]
    elif isinstance(node, ast.BinOp) and not isinstance(node.op, ast.LShift | ast.RShift):
        parts = [node.left, node.right]
        if isinstance(node.op, _ARITHMETIC):
            operands = _operands(node)
            for name in operands if counter in operands else ():
                if name != counter:
                    names.add(name, "counter")
        else:
            may = isinstance(node.op, ast.MatMult)  # of objects, which refuse a number
    elif isinstance(node, ast.IfExp):
        _visit_test(node.test, counter, names)
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _ORDER):
        parts, may = [node.left, *node.comparators], False
        for side, other in zip(parts, map(_dotted, parts[::-1]), strict=True):
            if counter in _operands(side) and other not in (None, counter):
                names.add(other or "", "compared")
                may = True
    else:
        kind = _KINDS.get(type(node), "an expression")
        raise Impure(f"line {node.lineno} has {kind} that is not a lagpu call")
    for part in parts:
        _visit(part, counter, names, may)


def _operands(node: ast.expr) -> list[str]:
    """Return the dotted names that arithmetic has as operands."""
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.IfExp):
        return [name for part in _parts(node) for name in _operands(part)]
    return list(filter(None, [_dotted(node)]))


_TAKES_NUMBERS = ("apply", "select", "ewise_union")  # methods that may be given the counter
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_ORDER = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_INPLACE = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow),
    *(ast.BitAnd, ast.BitOr, ast.BitXor, ast.MatMult),
)

# Names of expressions in messages.
_KINDS: dict[type[ast.expr], str] = {
    ast.BinOp: "arithmetic", ast.BoolOp: "a Boolean expression", ast.Compare: "a comparison",
    ast.Lambda: "a lambda", ast.NamedExpr: "an assignment expression", ast.UnaryOp: "arithmetic",
}  # fmt: skip


def _dotted(node: ast.expr) -> str | None:
    """Return ``a.b.c`` for such an expression, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None
