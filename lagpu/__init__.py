"""Graph search as masked sparse linear algebra: one short loop, run unchanged on CPU and GPU."""

from lagpu import algorithms, errors
from lagpu.algebra.tables import binary, indexunary, monoid, semiring, unary
from lagpu.backends import use
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

__version__ = "0.1.0"

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
    "algorithms",
    "binary",
    "crosscheck",
    "eager",
    "errors",
    "explain",
    "indexunary",
    "loop",
    "monoid",
    "semiring",
    "step",
    "sweep",
    "trace",
    "unary",
    "use",
]
