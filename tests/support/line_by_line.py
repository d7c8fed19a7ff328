"""Programs for python-graphblas, run line by line there and, with changed imports, on lagpu.

The sources are those of the installed package graphblas-algorithms. Each statement runs in
python-graphblas, and the same text on lagpu's objects; then the values of its names are compared.
After a line that fails, lagpu's objects are made again from python-graphblas'.
"""

import ast
import builtins
import contextlib
import importlib
import inspect
import types
import warnings
from typing import NamedTuple

import numpy as np
from both_libraries import converted, graph_classes, plain, same

import lagpu

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import graphblas_algorithms

THEIRS = "graphblas_algorithms"


class Line(NamedTuple):
    """A line that failed: its function, its number in the file, its text, and the fault."""

    function: str
    number: int
    text: str
    fault: str


class Graph:
    """What the algorithms ask of a graph, with the matrices and vectors of lagpu."""

    def __init__(self, A, key_to_id=None, their=None, backend=None):
        self._A = A
        self._their = their
        self._backend = A.backend if backend is None else backend
        self._key_to_id = dict(zip(range(A.nrows), range(A.nrows), strict=True))
        self._key_to_id = self._key_to_id if key_to_id is None else key_to_id
        self._found = {}

    def __getattr__(self, name):
        return getattr(self._their, name)

    def __len__(self):
        return self._A.nrows

    def __iter__(self):
        return iter(self._key_to_id)

    def __contains__(self, key):
        return not isinstance(key, list) and key in self._key_to_id

    def get_property(self, name, *, mask=None):
        if name == "A":
            return self._A
        if name not in self._found:
            self._found[name] = converted(self._their.get_property(name), self._backend, {})
        found = self._found[name]
        return found if mask is None else _masked(found, mask)

    def get_properties(self, names, *, mask=None):
        split = names.replace(",", " ").split()
        return [self.get_property(name, mask=mask) for name in split]


def _masked(x, mask):
    out = type(x)(x.dtype, *x.shape, like=x)
    out(mask) << x
    return out


graph_classes[graphblas_algorithms.Graph] = lambda x, A: Graph(A, dict(x._key_to_id), x)
graph_classes[Graph] = None


class Changed:
    """The modules of graphblas-algorithms with their imports changed to lagpu."""

    def __init__(self):
        self._modules = {}

    def namespace(self, name):
        """Return the names of a module, loaded once."""
        if name not in self._modules:
            module = types.ModuleType(name)
            self._modules[name] = module
            found = importlib.import_module(name)
            module.__package__ = found.__package__
            module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import}
            exec(compile(inspect.getsource(found), found.__file__, "exec"), module.__dict__)
        return self._modules[name]

    def _import(self, name, names=None, local=None, wanted=(), level=0):
        if level:
            package = names["__package__"].rsplit(".", level - 1)[0]
            name = f"{package}.{name}" if name else package
        if name == THEIRS:
            return types.SimpleNamespace(Graph=Graph, DiGraph=Graph)
        if name.startswith(THEIRS) and not name.endswith("exceptions"):
            return self.namespace(name)
        if name == "graphblas.core.utils":  # not public there either
            return types.SimpleNamespace(output_type=type)
        if name.split(".")[0] == "graphblas":
            return _Partly("lagpu" + name.removeprefix("graphblas"))
        return builtins.__import__(name, names, local, wanted, 0)


class _Partly:
    """A module of lagpu; a name that it lacks fails where it is used, not where it is imported."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(importlib.import_module(self._name), name)
        except (ImportError, AttributeError):
            return _Lacking()


class _Lacking:
    """A name that lagpu lacks."""


class _Ended(Exception):
    """The function has returned, or its loop has ended."""


class _Break(_Ended):
    pass


class _Continue(_Ended):
    pass


class Run:
    """One call of a function, line by line in both libraries.

    Attributes
    ----------
    lines : set of int
        The lines that ran.
    failed : dict of int to Line
        Those that failed at least once.
    """

    def __init__(self, module, name, changed, backend, arguments, options):
        self.name, self.backend = name, backend
        self.lines, self.failed = set(), {}
        found = importlib.import_module(module)
        function = getattr(found, name)
        self._seen = {}
        self._before = frozenset(vars(found))
        self.their = dict(vars(found))
        self.ours = dict(vars(changed.namespace(module)))
        bound = inspect.signature(function).bind(*arguments, **options)
        bound.apply_defaults()
        for key, value in bound.arguments.items():
            self.their[key] = value
            self.ours[key] = converted(value, backend, self._seen)
        self._text = inspect.getsource(found).splitlines()
        tree = ast.parse("\n".join(self._text))
        node = next(x for x in ast.walk(tree) if getattr(x, "name", "") == name)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            with contextlib.suppress(_Ended):
                self._body(node.body)

    def _fail(self, node, fault):
        text = ast.unparse(node).splitlines()[0]
        self.failed.setdefault(node.lineno, Line(self.name, node.lineno, text, fault))
        self._seen = {}  # the objects of python-graphblas have changed since
        names = [n for n in self.their if n in self._names]
        for name in names:
            self.ours[name] = converted(self.their[name], self.backend, self._seen)
        for name in set(self.ours) & self._names - set(self.their):
            del self.ours[name]

    _names: frozenset = frozenset()

    def _both(self, node, shown, their, ours, names):
        """Run a line in both libraries, and compare the values of `names` and of the results."""
        self.lines.add(shown.lineno)
        self._names |= frozenset(x.id for x in ast.walk(node) if isinstance(x, ast.Name)) & (
            frozenset(self.their) - self._before | frozenset(names)
        )
        expected = their()
        try:
            found = ours()
            pairs = [(expected, found), *((self.their.get(n), self.ours.get(n)) for n in names)]
            fault = ""
            if not all(same(plain(x), plain(y)) for x, y in pairs):
                fault = "other values"
        except Exception as error:  # whatever it is, the line does not run
            fault = f"{type(error).__name__}: {error}".splitlines()[0]
        self._names |= frozenset(names)
        if fault:
            self._fail(shown, fault)
        return expected, None if fault else found

    def _expression(self, node, shown):
        code = compile(ast.Expression(node), self.name, "eval")
        return self._both(
            node, shown, lambda: eval(code, self.their), lambda: eval(code, self.ours), ()
        )

    def _simple(self, node):
        code = compile(ast.Module([node], []), self.name, "exec")
        names = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
        names -= self._before - {
            x.id for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)
        }
        self._both(
            node, node, lambda: exec(code, self.their), lambda: exec(code, self.ours), sorted(names)
        )

    def _test(self, node):
        return self._truth(node.test, node)[0]

    def _truth(self, test, shown):
        call = ast.Call(ast.Name("bool", ast.Load()), [test], [])
        return self._expression(ast.copy_location(ast.fix_missing_locations(call), test), shown)

    def _body(self, nodes):
        for node in nodes:
            self._one(node)

    def _one(self, node):
        if isinstance(node, ast.If):
            self._body(node.body if self._test(node) else node.orelse)
        elif isinstance(node, ast.While):
            while self._test(node):
                try:
                    self._body(node.body)
                except _Break:
                    return
                except _Continue:
                    continue
        elif isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, ast.Try):
            self._body(node.body)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self._expression(node.value, node)
            raise _Ended
        elif isinstance(node, ast.Break):
            raise _Break
        elif isinstance(node, ast.Continue):
            raise _Continue
        elif isinstance(node, ast.Raise):
            raise _Ended
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield):
            self._expression(node.value.value, node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        else:
            self._simple(node)

    def _for(self, node):
        call = ast.Call(ast.Name("list", ast.Load()), [node.iter], [])
        call = ast.copy_location(ast.fix_missing_locations(call), node)
        theirs, ours = self._expression(call, node)
        for k, item in enumerate(theirs):
            self.their["_item"] = item
            same_length = ours is not None and len(ours) == len(theirs)
            self.ours["_item"] = (
                ours[k] if same_length else converted(item, self.backend, self._seen)
            )
            assign = ast.Assign([node.target], ast.Name("_item", ast.Load()))
            code = compile(
                ast.Module([ast.fix_missing_locations(ast.copy_location(assign, node))], []),
                self.name,
                "exec",
            )
            exec(code, self.their)
            exec(code, self.ours)
            self._names |= {x.id for x in ast.walk(node.target) if isinstance(x, ast.Name)}
            try:
                self._body(node.body)
            except _Break:
                return
            except _Continue:
                continue
        self._body(node.orelse)


class Measured(NamedTuple):
    """What ran unchanged: lines and functions, of how many, and the lines that failed."""

    lines: int
    lines_whole: int
    functions: int
    functions_whole: int
    failed: list

    @property
    def summary(self):
        """The figures in one line."""
        return (
            f"{self.lines_whole} of {self.lines} lines, "
            f"{self.functions_whole} of {self.functions} functions run unchanged"
        )


def measured(calls, graphs, backend):
    """Run each call line by line, and return what ran unchanged."""
    changed = Changed()
    lines, failed, functions = set(), {}, {}
    for module, function, names, arguments, options in calls:
        given = [*(graphs[name] for name in names), *arguments]
        with lagpu.use(backend):  # of the objects that the function itself makes
            run = Run(module, function, changed, backend, given, options)
        lines |= {(module, number) for number in run.lines}
        failed |= {(module, number): line for number, line in run.failed.items()}
        functions.setdefault((module, function), []).extend(run.failed)
    whole = sum(not found for found in functions.values())
    shown = [failed[key] for key in sorted(failed)]
    return Measured(len(lines), len(lines) - len(failed), len(functions), whole, shown)
