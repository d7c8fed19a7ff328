"""Graph search as masked sparse linear algebra: one short loop, run unchanged on CPU and GPU."""

from lagpu import algorithms, errors
from lagpu.algebra import binary, indexunary, monoid, semiring, unary
from lagpu.backends import use
from lagpu.crosscheck import crosscheck
from lagpu.dtypes import BOOL, FP32, FP64, INT32, INT64, UINT32, UINT64
from lagpu.explain import explain
from lagpu.loop import eager, loop
from lagpu.matrix import Matrix
from lagpu.scalar import Scalar
from lagpu.step import step
from lagpu.sweep import sweep
from lagpu.trace import trace
from lagpu.vector import Vector

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
