"""Graph search as masked sparse linear algebra: one short loop, run unchanged on CPU and GPU."""
# ruff: noqa: E402

import importlib as _importlib
import sys as _sys
from typing import Any as _Any

from lagpu.host import interrupt as _interrupt
from lagpu.versions import __version__ as __version__

# Before the imports that take long.
_interrupt.end_commands()
if _interrupt.is_command() and _sys.argv[1:] in (["--version"], ["-V"]):
    from lagpu.host.job import first_reports as _first_reports

    with _first_reports():
        print(f"lagpu {__version__}")
    raise SystemExit

from lagpu import errors
from lagpu.algebra.tables import binary, indexunary, monoid, op, select, semiring, unary
from lagpu.backends import use
from lagpu.backends import use_grid as grid
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.collection import agg
from lagpu.core.hints import config
from lagpu.core.infix import replace
from lagpu.crosscheck import crosscheck
from lagpu.dtypes import BOOL, FP32, FP64, INT32, INT64, UINT32, UINT64
from lagpu.loops.loop import eager, fused, loop, sweep
from lagpu.observe.step import explore, step, steps
from lagpu.observe.trace import explain, ranges, trace

__all__ = [
    "BOOL", "FP32", "FP64", "INT32", "INT64", "UINT32", "UINT64", "Matrix", "Scalar",
    "Vector", "agg", "algorithms", "binary", "config", "crosscheck", "eager", "errors", "explain",
    "explore", "fused", "grid", "indexunary", "loop", "monoid", "op", "ranges",
    "replace", "select", "semiring", "step", "steps", "sweep", "trace", "unary", "use",
]  # fmt: skip

for _table in (agg, binary, indexunary, monoid, op, select, semiring, unary):
    _sys.modules[f"lagpu.{_table.kind}"] = _table  # type: ignore[assignment]  # as modules

_LAZY = ("algorithms", "check", "generators", "io", "viz")


#: What to write instead of names of python-graphblas that have no place here.
_INSTEAD = {
    "Recorder": "Write with lagpu.trace() as t:, and t.table(), to see each statement.",
    "init": "Nothing is to be started. lagpu.use('gpu') chooses the default backend.",
    "backend": "lagpu.use names and chooses the default backend; A.backend is that of an object.",
    "ss": "Only the cpu backend uses SuiteSparse. A.orientation, kernel= and policy= are "
    "what can be chosen here.",
    "MAX_SIZE": "The largest size is 2**60.",
    "last_loop": "A.backend.last_loop is how the last loop on A's backend ran.",
    "dtypes": "The seven types are lagpu.BOOL, INT32, INT64, UINT32, UINT64, FP32 and FP64.",
}


def __getattr__(name: str) -> _Any:
    """Import a package of `lagpu` at its first use: ``lagpu.algorithms``."""
    if name in _LAZY:
        return _importlib.import_module(f"lagpu.{name}")
    if name == "exceptions":  # the name in python-graphblas
        return errors
    hint = _INSTEAD.get(name) or ("" if name.startswith("_") else _elsewhere(name))
    raise AttributeError(f"lagpu: there is no {name!r}. {hint}".rstrip())


def _elsewhere(name: str) -> str:
    """Return which package has a name, in words."""
    for package in ("io", "algorithms", "generators"):
        if name in _importlib.import_module(f"lagpu.{package}").__all__:
            return f"Write lagpu.{package}.{name}."
    return ""


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, "backends", "__version__", "__doc__", "__file__", "__name__"})
