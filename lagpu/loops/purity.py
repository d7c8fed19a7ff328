"""Purity: prove from the source of a loop's body that it is nothing but lagpu statements.

Only such a body may run as one program: recording it once would freeze a counter, an append to a
list, a branch or any other call. So the body must consist of ``w(...) << call`` statements whose
names are lagpu objects and numbers; every other body runs eagerly, with the reason.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import Monoid, Operator, Semiring, Table
from lagpu.algebra.tables import Operators, Selector, Selectors, select
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.infix import Replace
from lagpu.core.views import SelectionMatrix, TransposedMatrix
from lagpu.dtypes import DType
from lagpu.host.source import SYNTAX
from lagpu.operations import PURE

_PURE = PURE | {"S", "V", "T"}  # attributes and methods without side effects
_NUMBERS = (bool, int, float, np.generic)
_BUILTIN = {"abs": abs}  # of Python, and applies to vectors
_CALLED = (abs, select.value)  # the place in a row or a column is compared with a number alone
VIEWS = (TransposedMatrix, SelectionMatrix)  # of a matrix or a vector that may have a name too
_KNOWN = (
    *(Vector, Matrix, *VIEWS, Scalar),
    *(Operator, Monoid, Semiring, Selector, DType, Replace, *_NUMBERS),
)


class LoopBody(NamedTuple):
    """The body of a loop, as read from its source.

    Attributes
    ----------
    statements : int
        Number of statements in the body; 0 if it cannot be recorded.
    names : tuple of str
        Dotted names that must refer to lagpu objects or numbers.
    reason : str
        Why the body cannot be recorded, or an empty string.
    scalar : str
        One of the names, which refers to a `Scalar`, or an empty string.
    written : tuple of str
        The names that ``w += x`` writes: of vectors or matrices, as a number would be rebound.
    counter : str
        The name of the counter of a loop outside a function, where any later code may read it.
    """

    statements: int = 0
    names: tuple[str, ...] = ()
    reason: str = ""
    scalar: str = ""
    written: tuple[str, ...] = ()
    counter: str = ""


class Impure(Exception):
    """The body contains something that recording would freeze."""


def read_body(frame: FrameType, callee: str = "loop") -> LoopBody:
    """Return the body of the ``for`` statement whose iterable `frame` is calling now.

    The iterable is a call of `callee`: ``loop``, which yields a counter, or ``sweep``, which yields
    two vectors.
    """
    body = _read(frame.f_code, frame.f_lineno, callee)
    if not body.statements:
        return body
    local, outer = frame.f_locals, frame.f_globals  # f_locals makes a new mapping at each access
    if body.counter and local is not outer:
        return LoopBody(reason="it is in the body of a class, where any code may read its counter")
    scalar = ""
    for name in body.names:
        found = lookup(name, local, outer)
        if not _is_known(found):
            base, _, last = name.rpartition(".")
            if last == "value" and isinstance(lookup(base, local, outer), Scalar):
                return LoopBody(reason=f"{name} is read on the host; write {base} instead")
            return LoopBody(reason=f"{name} is neither a lagpu object nor a number")
        if name in body.written and not isinstance(found, (Vector, Matrix)):
            kind = type(found).__name__
            why = f"{name} is of type {kind}, and += binds the name to another object"
            return LoopBody(reason=why)
        if type(found) is Scalar:
            scalar = name
    return body._replace(scalar=scalar) if scalar else body


def _is_known(x: Any) -> bool:
    """Return True for a number, ``abs``, ``select.value``, or an object of a class of lagpu.

    A subclass of such a class may do anything.
    """
    return (
        any(x is known for known in _CALLED)
        or isinstance(x, _NUMBERS)
        or (isinstance(x, _KNOWN) and type(x).__module__.startswith("lagpu."))
    )


def backend_of(body: LoopBody, frame: FrameType) -> Any:
    """Return the one backend of the objects that a body names, or None if there are several.

    If the body names no vector, all local variables count: ``loop(times=3)`` names none either.
    """
    local, outer = frame.f_locals, frame.f_globals
    named = _backends(lookup(name, local, outer) for name in body.names)
    found = named or _backends(local.values())
    return next(iter(found.values())) if len(found) == 1 else None


def _backends(objects: Iterable[Any]) -> dict[int, Any]:
    """Return the backends of the vectors and matrices among some objects, each once."""
    return {id(x.backend): x.backend for x in objects if isinstance(x, (Vector, Matrix))}


def lookup(dotted: str, local: dict[str, Any], outer: dict[str, Any]) -> Any:
    """Return the object of a dotted name; None if it is unknown or only running code finds it."""
    if dotted in local:
        return local[dotted]
    first, *rest = dotted.split(".")
    value: Any = (local if first in local else outer).get(first, _BUILTIN.get(first))
    for name in rest:
        if isinstance(value, (Table, Operators, Selectors)):
            return getattr(value, name) if name in value else None
        attributes = getattr(value, "__dict__", {})
        if name not in attributes or hasattr(type(value), name):  # a property could run any code
            return None
        value = attributes[name]
    return value


@functools.lru_cache(maxsize=512)
def _read(code: CodeType, line: int, callee: str) -> LoopBody:
    """Read the loop at `line` of `code`, if the source file matches the running code."""
    try:
        tree, compiled = _parsed("".join(linecache.getlines(code.co_filename)), code.co_filename)
    except (SyntaxError, ValueError):
        return LoopBody(reason="its source cannot be read")
    if not any(_behaviour(c) == _behaviour(code) for part in compiled for c in _codes(part, code)):
        return LoopBody(reason="its source differs from the code that runs, or cannot be read")
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.For)
        and isinstance(node.iter, ast.Call)
        and node.iter.lineno <= line <= (node.iter.end_lineno or line)
    ]
    if len(found) != 1:
        return LoopBody(reason=f"{callee}(...) is not the iterable of exactly one for statement")
    try:
        targets = _targets(found[0], callee)
        around = _function_around(found[0], tree)
        if around is None and callee != "loop":
            raise Impure("it is outside a function, where any code may read its masks")
        if around is not None:
            kind = "counter " if callee == "loop" else ""
            _require_unread(found[0], around, targets, code, kind)
        body = _check(found[0], targets, callee)
        return body if around is not None else body._replace(counter=targets[0])
    except Impure as impure:
        return LoopBody(reason=str(impure))


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
    found = [code] if named else []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += _codes(constant, like)
    return found


def _targets(loop: ast.For, callee: str) -> tuple[str, ...]:
    """Return the names that a ``for`` statement assigns: one for a loop, two for a sweep."""
    named = _dotted(loop.iter.func)  # type: ignore[attr-defined]
    if named is None or named.split(".")[-1] != callee:
        raise Impure(f"{callee}(...) is wrapped in another call")
    target = loop.target
    if callee == "loop":
        parts = [target]
    else:
        parts = list(target.elts) if isinstance(target, ast.Tuple) else []
    names = tuple(part.id for part in parts if isinstance(part, ast.Name))
    if loop.orelse or len(set(names)) != (1 if callee == "loop" else 2):
        fault = "unpacks its counter" if callee == "loop" else "does not name here and above"
        raise Impure(f"the for statement has an else, or {fault}")
    return names


def _function_around(loop: ast.For, tree: ast.Module) -> ast.AST | None:
    """Return the function whose variables a loop assigns; None for a module or a class."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    around: ast.AST | None = None
    for node in ast.walk(tree):  # the innermost is the last
        if not isinstance(node, scopes):
            continue
        near = node.lineno <= loop.lineno <= (node.end_lineno or loop.lineno)
        if near and any(inner is loop for inner in ast.walk(node)):
            around = node
    return None if isinstance(around, ast.ClassDef) else around


def _nodes_that_see(targets: tuple[str, ...], around: ast.AST, code: CodeType) -> list[ast.AST]:
    """Return the nodes of a function that may read its variables.

    A function inside reads them only if the compiler has made cells of them.
    """
    found: list[ast.AST] = [around]
    shared = not set(targets).isdisjoint(code.co_cellvars)
    for node in found:
        parts = list(ast.iter_child_nodes(node))
        if node is not around and not shared and isinstance(node, _FUNCTIONS):
            body: list[Any] = node.body if isinstance(node.body, list) else [node.body]
            parts = [x for x in parts if x not in body]
        found += parts
    return found


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _require_unread(
    loop: ast.For, around: ast.AST, targets: tuple[str, ...], code: CodeType, kind: str
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


def _in_other_loops(around: ast.AST, loop: ast.For, targets: tuple[str, ...]) -> set[int]:
    """Return the ids of the nodes in the bodies of other loops that assign all the targets.

    There a target has the value of that other loop, whatever this loop left in it. Functions that
    are defined in such a body are left out, as they may be called later.
    """
    others = [
        node
        for node in ast.walk(around)
        if isinstance(node, ast.For)
        and node is not loop
        and set(targets) <= {x.id for x in ast.walk(node.target) if isinstance(x, ast.Name)}
        and not any(inner is loop for inner in ast.walk(node))
    ]
    left: list[ast.AST] = [part for node in others for part in node.body]
    found: set[int] = set()
    while left:
        node = left.pop()
        if not isinstance(node, _CALLED_LATER):
            found.add(id(node))
            left += ast.iter_child_nodes(node)
    return found


_CALLED_LATER = (*_FUNCTIONS, ast.GeneratorExp)


def _check(loop: ast.For, targets: tuple[str, ...], callee: str) -> LoopBody:
    """Return the body of a ``for`` statement."""
    counter = targets[0] if callee == "loop" else ""
    names: dict[str, None] = {}
    written: dict[str, None] = {}
    for statement in loop.body:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            if not isinstance(statement.op, _INPLACE):
                raise Impure(f"line {statement.lineno} is not a w << call statement")
            written[statement.target.id] = None
            for part in (statement.target, statement.value):
                _visit(part, counter, names)
            continue
        shift = statement.value if isinstance(statement, ast.Expr) else None
        if not (isinstance(shift, ast.BinOp) and isinstance(shift.op, ast.LShift)):
            raise Impure(f"line {statement.lineno} is not a w << call statement")
        _visit(shift.left, counter, names)
        if not (counter and isinstance(shift.right, ast.Name) and shift.right.id == counter):
            _visit(shift.right, counter, names)
    read = tuple(n for n in names if counter or n not in targets)
    return LoopBody(len(loop.body), read, written=tuple(written))


def _visit(node: ast.expr, counter: str, names: dict[str, None]) -> None:
    """Collect the names of an expression without side effects, or raise `Impure`."""
    if isinstance(node, ast.Constant):
        return
    dotted = _dotted(node)
    if dotted is not None and counter in dotted.split(".")[:1]:
        raise Impure(f"line {node.lineno} computes with the counter {counter}")
    parts: list[ast.expr]
    if isinstance(node, ast.Attribute) and node.attr in _PURE:
        parts = [node.value]
    elif dotted is not None:
        names[dotted] = None
        return
    elif isinstance(node, ast.Call):
        if any(isinstance(a, ast.Starred) for a in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            raise Impure(f"line {node.lineno} unpacks arguments")
        parts = [node.func, *node.args, *(k.value for k in node.keywords)]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.USub):
        parts = [node.operand]
    elif isinstance(node, ast.BinOp) and not isinstance(node.op, ast.LShift | ast.RShift):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _ORDER):
        parts = [node.left, *node.comparators]
    else:
        kind = _KINDS.get(type(node), "an expression")
        raise Impure(f"line {node.lineno} has {kind} that is not a lagpu call")
    for part in parts:
        _visit(part, counter, names)


_ORDER = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_INPLACE = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow),
    *(ast.BitAnd, ast.BitOr, ast.BitXor, ast.MatMult),
)

# Names of expressions in messages.
_KINDS: dict[type[ast.expr], str] = {
    ast.BinOp: "arithmetic",
    ast.BoolOp: "a Boolean expression",
    ast.Compare: "a comparison",
    ast.IfExp: "a conditional expression",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "an assignment expression",
    ast.Subscript: "an index",
    ast.UnaryOp: "arithmetic",
}


def _dotted(node: ast.expr) -> str | None:
    """Return ``a.b.c`` for such an expression, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None
