"""Graph search as masked sparse linear algebra: one short loop, run unchanged on CPU and GPU."""
# ruff: noqa: E402

from lagpu.host.interrupt import end_commands as _end_commands

_end_commands()  # before the imports that take long

import importlib as _importlib
import sys as _sys
from typing import Any as _Any

from lagpu import errors
from lagpu.algebra.tables import binary, indexunary, monoid, semiring, unary
from lagpu.backends import use
from lagpu.backends import use_grid as grid
from lagpu.core.aggregates.table import agg
from lagpu.core.infix.described import replace
from lagpu.core.matrix import Matrix
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.crosscheck import crosscheck
from lagpu.dtypes import BOOL, FP32, FP64, INT32, INT64, UINT32, UINT64
from lagpu.loops.loop import eager, loop
from lagpu.loops.sweep import sweep
from lagpu.observe.explain import explain
from lagpu.observe.step import step
from lagpu.observe.trace import trace
from lagpu.versions import __version__ as __version__

__all__ = [
    "BOOL",
    "FP32",
    "FP64",
    "INT32",
    "INT64",
    "UINT32",
    "UINT64",
    "Matrix",
    "Scalar",
    "Vector",
    "agg",
    "algorithms",
    "binary",
    "crosscheck",
    "eager",
    "errors",
    "explain",
    "grid",
    "indexunary",
    "loop",
    "monoid",
    "replace",
    "semiring",
    "step",
    "sweep",
    "trace",
    "unary",
    "use",
]

for _table in (binary, indexunary, monoid, semiring, unary):  # from lagpu.semiring import min_plus
    _sys.modules[f"lagpu.{_table.kind}"] = _table  # type: ignore[assignment]

_LAZY = ("algorithms", "check", "generators", "io", "viz")


def __getattr__(name: str) -> _Any:
    """Import a package of `lagpu` when it is first asked for: ``lagpu.algorithms``."""
    if name in _LAZY:
        return _importlib.import_module(f"lagpu.{name}")
    raise AttributeError(f"module 'lagpu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
