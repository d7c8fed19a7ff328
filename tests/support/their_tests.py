"""python-graphblas' own tests, run on either library: which of their checks hold.

Run as ``python their_tests.py cpu`` it writes the outcomes of lagpu on a backend as JSON, with
``graphblas`` those of python-graphblas itself. The tests are those of the installed wheel, read
when they run; nothing of them is kept here.

A check is an ``assert``, a ``with pytest.raises`` or a call of an ``assert_*`` of NumPy. Every
statement of a test runs, also after one that has failed; what a failed assignment would have bound
is unbound, so that no check holds by an older value. A check holds if it does each time that it
runs. The type of an error counts, its message does not. Left out are the tests of SuiteSparse's
own storage, `test_ss_...`; what other tests check of its operators and aggregators counts.
"""

import ast
import builtins
import contextlib
import functools
import importlib.util
import inspect
import itertools
import json
import random
import re
import sys
import types
import warnings
from pathlib import Path

import pytest

#: The modules of tests that are about the notation.
FILES = ("infix", "mask", "matrix", "op", "resolving", "scalar", "vector")
_FAILURES = (Exception, pytest.fail.Exception)


# ------------------------------------------------------------------------------------------
# Each statement of a test in a block of its own.


class Checks:
    """The outcomes of the checks of one test, by line."""

    errors = _FAILURES

    def clear(self):
        """Forget those of the last test."""
        self.outcomes, self.lost = {}, ""

    def failed(self, line, counts, error):
        """Note the error of a statement, which is a check if it `counts`."""
        if isinstance(error, pytest.skip.Exception):
            raise error
        follows = isinstance(error, NameError) and self.lost
        if counts and self.outcomes.get(line, "holds") == "holds":
            shown = f"{type(error).__name__}: {error}"[:300]
            self.outcomes[line] = f"follows: {self.lost}" if follows else f"differs: {shown}"
        self.lost = self.lost or f"line {line}: {type(error).__name__}: {error}"[:300]

    def passed(self, line, counts):
        """Note that a statement has run."""
        if counts:
            self.outcomes.setdefault(line, "holds")


def _is_check(node):
    if isinstance(node, ast.With):
        return any("raises" in ast.unparse(item.context_expr) for item in node.items)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func).rpartition(".")[2].startswith("assert_")
    return isinstance(node, ast.Assert)


_WRAPPED = """
try:
    pass
except __checks__.errors as __error__:
    __checks__.failed({line}, {counts}, __error__)
    {unbind}
else:
    __checks__.passed({line}, {counts})
"""
_LEFT = (
    *(ast.FunctionDef, ast.ClassDef, ast.Return, ast.Continue, ast.Break, ast.Pass),
    *(ast.Import, ast.ImportFrom),
)


def _in_blocks(node, lines):
    """Return a statement that goes on after an error; add the line of each check to `lines`."""
    if isinstance(node, _LEFT):
        return node
    counts = _is_check(node)
    if counts:
        lines.append(node.lineno)
    else:
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(node, name, [])
            setattr(node, name, [_in_blocks(part, lines) for part in inner])
    bound = (x for target in getattr(node, "targets", ()) for x in ast.walk(target))
    names = {x.id for x in bound if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
    unbind = "".join(f"{name} = None; del {name}; " for name in sorted(names)) or "pass"
    text = _WRAPPED.format(line=node.lineno, counts=counts, unbind=unbind)
    block = ast.parse(text).body[0]
    ast.fix_missing_locations(ast.copy_location(block, node))
    block.body = [node]
    return block


# ------------------------------------------------------------------------------------------
# A module of tests with the names of one library, and its tests one after another.


def path_of(file):
    """Return where a module of tests is."""
    where = Path(importlib.util.find_spec("graphblas").origin).parent
    return where / "tests" / f"test_{file}.py"


def load(file, names):
    """Return (the module's globals, {test: the lines of its checks}, `Checks`)."""
    path = path_of(file)
    tree = ast.parse(path.read_text("utf-8"))
    lines = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and re.match("test_(?!ss_)", node.name):
            found = lines[node.name] = []
            node.body = [_in_blocks(part, found) for part in node.body]

    def find(name, space=None, local=None, fromlist=(), level=0):
        full = f"graphblas.tests.{name}" if level else name
        if full in names:
            return names[full]
        if full.startswith("graphblas.") and "graphblas" in names:
            return Names(full, None)
        return builtins.__import__(full, space, local, fromlist)

    kept = ("mark", "skip", "importorskip", "param", "warns")
    shim = {name: getattr(pytest, name) for name in kept}
    names = names | {"pytest": types.SimpleNamespace(**shim, raises=_raises, fixture=_fixture)}
    checks = Checks()
    inside = {**vars(builtins), "__import__": find}
    space = {"__name__": f"test_{file}", "__builtins__": inside, "__checks__": checks}
    exec(compile(tree, str(path), "exec"), space)
    space["suitesparse"] = True
    return space, lines, checks


@contextlib.contextmanager
def _raises(expected, match=None):
    """Do what `pytest.raises` does, whatever the message."""
    with pytest.raises(expected) as found:
        yield found


def _fixture(function=None, **options):
    if function is None:
        return functools.partial(_fixture, **options)
    function.is_fixture = True
    return function


def _cases(function):
    """Return the arguments of each case of a test, by its marks."""
    sets = []
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == "parametrize":
            names = [n.strip() for n in mark.args[0].split(",")]
            rows = [v if len(names) > 1 else [v] for v in mark.args[1]]
            sets.append([dict(zip(names, row, strict=True)) for row in rows])
    for chosen in itertools.product(*sets):
        yield {k: v for one in chosen for k, v in one.items()}


def outcomes(file, names):
    """Run the tests of a module: {(test, line): "holds", or "differs: ..." and the like}."""
    space, lines, checks = load(file, names)
    found = {}

    def made(name):
        fixture = space[name]
        return fixture(*map(made, inspect.signature(fixture).parameters))

    for test, of_test in lines.items():
        function = space[test]
        skips = (m.args[0] for m in getattr(function, "pytestmark", ()) if m.name == "skipif")
        if any(eval(x, space) if isinstance(x, str) else x for x in skips):
            continue
        checks.clear()
        random.seed(1)
        for case in _cases(function):
            wanted = [n for n in inspect.signature(function).parameters if n not in case]
            try:
                function(**case, **{n: made(n) for n in wanted})
            except (*_FAILURES, pytest.skip.Exception) as error:  # of a fixture
                checks.lost = checks.lost or f"{type(error).__name__}: {error}"[:300]
        for line in of_test:
            found[test, line] = checks.outcomes.get(line, f"not reached: {checks.lost}")
    return found


# ------------------------------------------------------------------------------------------
# The names of python-graphblas, with lagpu behind them.


class _Lacks:
    """A name that lagpu lacks: the tests import it, and fail where they use it."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        raise AttributeError(f"lagpu has no {self._name}")

    def __call__(self, *args, **options):
        raise AttributeError(f"lagpu has no {self._name}")


class Names(types.ModuleType):
    """A module of some names and of those that an object `has`."""

    def __init__(self, name, has, **more):
        super().__init__(name)
        self.__dict__.update(more)
        self._has = has

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._has, name, None) or _Lacks(f"{self.__name__}.{name}")


class _OfTable(type):
    """A class of operators that registers in the table of its kind."""

    def __instancecheck__(cls, x):
        return isinstance(x, cls.table.row)

    def __getattr__(cls, name):
        return getattr(cls.table, name)

    def __call__(cls, *given, **options):  # only aggregators are made by their class
        return cls.table.Aggregator(*given, **options)


class _Config:
    """Options: those that lagpu has, and SuiteSparse's, which change nothing."""

    def __getitem__(self, name):
        return self.get(name)

    def get(self, name, default=None):
        import lagpu

        return lagpu.config.get(name, default)

    def set(self, *, mapnumpy=False, **options):
        import lagpu

        return lagpu.config.set(**options)


def _autocompute(test):
    """Return a test that runs with autocompute on, as the mark of that name says."""

    @functools.wraps(test)
    def run(*given, **named):
        with _Config().set(autocompute=True):
            return test(*given, **named)

    return run


def _resolved(part):
    """Return the indices that a part of an object stands for, as lists and numbers."""
    from lagpu.core import arguments, views

    found = []
    for index, size, name in views._each(part.of, part.indices):
        if isinstance(index, int):
            found.append(index)
        else:
            listed = arguments.index_array(index, size, name)
            found.append(slice(None) if listed is None else listed)
    return types.SimpleNamespace(py_indices=found[0] if part.of.ndim == 1 else tuple(found))


def _typed_op(op, dtype, other=None, *, kind=""):
    """Return an operator, or the one of a text, of a type: `get_typed_op` with lagpu's tables."""
    import lagpu

    names = kind.replace("aggregator", "agg").split("|") if isinstance(op, str) else []
    tables = [getattr(lagpu, name or "op") for name in names]
    known = [table for table in tables if op in table] or tables[:1]
    found = [table.from_string(op) for table in known]
    found = found[0] if names else op
    typed = isinstance(op, str) and "[" in op
    return found if typed else found[dtype if other is None else lagpu.dtypes.unify(dtype, other)]


def _ensured(x, kind):
    """Return an object, computed if it is an expression, of a class or of one of some."""
    from lagpu.core.expr import made_of

    found = made_of(x)
    if not isinstance(found, kind):
        raise TypeError(f"{type(found).__name__} is not {kind}")
    return found


def ours():
    """Return modules by their names in python-graphblas."""
    import lagpu
    from lagpu.algebra import operators
    from lagpu.algebra.tables import Selector

    # What the tests ask of inner workings, where lagpu has one answer.
    lagpu.Scalar.is_cscalar = lagpu.Scalar._is_cscalar = True
    lagpu.dtypes.DType._is_udt = lagpu.Matrix._is_transposed = False
    lagpu.core.views.TransposedMatrix._is_transposed = True
    lagpu.Vector._as_matrix = lagpu.core.infix.as_column
    lagpu.Matrix._as_vector = lambda A: A[:, 0].new()
    lagpu.core.views.IndexExpr.resolved_indexes = property(_resolved)
    tables = (lagpu.unary, lagpu.binary, lagpu.indexunary, lagpu.monoid, lagpu.semiring)
    classes = {t.row.__name__: _OfTable(t.row.__name__, (), {"table": t}) for t in tables}
    aggregators = _OfTable("Aggregator", (), {"table": lagpu.agg})
    narrow = {f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16)}
    errors = lagpu.errors
    modules = {
        "exceptions": Names(
            "exceptions",
            errors,
            OutputNotEmpty=errors.InvalidValue,
            InvalidObject=errors.LagpuError,
            UdfParseError=errors.DomainMismatch,
            NotImplementedException=errors.NotSupported,
        ),
        "dtypes": Names(
            "dtypes",
            lagpu.dtypes,
            DataType=lagpu.dtypes.DType,
            _supports_complex=False,
            **{name: lagpu.dtypes.lookup(name) for name in narrow},
        ),
        "core.operator": Names(
            "core.operator",
            operators,
            SelectOp=Selector,
            Aggregator=aggregators,
            OpPath=operators.Path,
            get_typed_op=_typed_op,
            get_semiring=lagpu.semiring.register_anonymous,
            **classes,
        ),
        # ``u & v`` once it is used; see `lagpu.core.expr.Unassigned`.
        "core.infix": Names(
            "core.infix",
            None,
            VectorEwiseMultExpr=lagpu.core.infix.Joined._without_finalizer,
            MatrixEwiseMultExpr=lagpu.core.infix.Joined._without_finalizer,
        ),
        "core.utils": Names("core.utils", None, ensure_type=_ensured),
        "core.mask": lagpu.core.expr,
        "core.expr": lagpu.core.expr,
        "tests.conftest": types.SimpleNamespace(
            autocompute=_autocompute, compute=lambda x: x, pypy=False, shouldhave=hasattr
        ),
    }
    modules |= {t.kind: t for t in (*tables, lagpu.op, lagpu.select)}
    rows = {row.name: row for row in lagpu.agg}
    modules["agg"] = Names("agg", lagpu.agg, Aggregator=aggregators, **rows)
    modules["core"] = Names("core", None, _supports_udfs=True, operator=modules["core.operator"])
    top = {name: modules[name] for name in ("exceptions", "dtypes", "core", "agg")}
    lagpu.config.set(autocompute=False)
    top["config"] = _Config()
    top["ss"] = Names("ss", None, diag=lambda x, k=0, dtype=None, **options: x.diag(k, dtype))
    modules |= {"": Names("graphblas", lagpu, backend="lagpu", **top)}
    return {f"graphblas.{name}".rstrip("."): module for name, module in modules.items()}


def theirs():
    """Return the only name that is not python-graphblas' own: what configures its tests."""
    import graphblas as gb

    gb.config.set(autocompute=False, mapnumpy=False)
    gb.init("suitesparse", blocking=True)
    import graphblas.tests.conftest as support

    return {"graphblas.tests.conftest": support}


def main(which):
    """Write the outcomes of a backend of lagpu, or of ``graphblas``, as JSON."""
    warnings.simplefilter("ignore")
    to, sys.stdout = sys.stdout, sys.stderr  # some tests print
    names, scope = (theirs(), contextlib.nullcontext()) if which == "graphblas" else (ours(), None)
    if scope is None:
        import lagpu

        scope = lagpu.use(which)
    with scope:
        found = {
            f"{file} {test} {line}": outcome
            for file in FILES
            for (test, line), outcome in outcomes(file, names).items()
        }
    json.dump(found, to)


if __name__ == "__main__":
    main(sys.argv[1])
