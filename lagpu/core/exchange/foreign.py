"""Objects that stand where a type belongs, as in ``Matrix(S)``: refused, with the line to write."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.core.hints import NoArithmetic
from lagpu.dtypes import DType, lookup
from lagpu.errors import DomainMismatch


def dtype_for(dtype: Any, what: str) -> DType:
    """Return the `DType` for the constructor that `what` names.

    Raises
    ------
    DomainMismatch
        If it is no type; for data, such as an array or a graph, the message says how to make a
        vector or a matrix of it.
    """
    if type(dtype) is DType:
        return dtype
    instead = "" if isinstance(dtype, (str, type, np.dtype)) else _instead(dtype, what)
    if instead:
        kind = type(dtype).__name__
        raise DomainMismatch(f"{what}: {kind} is not a type of values. Write {instead}.")
    return lookup(dtype)


def _instead(x: Any, what: str) -> str:
    """Return what to write instead of ``what(x)``, or an empty string."""
    if isinstance(x, NoArithmetic):
        return "x.dup() for a copy, x.new() for an expression, or x.dtype for its type"
    if hasattr(x, "tocoo"):
        of = "cupyx" if type(x).__module__.startswith("cupyx") else "scipy"
        return f"lagpu.io.from_{of}(x)"
    if hasattr(x, "is_directed") and hasattr(x, "adj"):
        return "lagpu.io.from_networkx(x)"
    if hasattr(x, "columns"):
        return "Matrix.from_coo(x['row'], x['column'], x['value']), with its names of columns"
    ndim = getattr(x, "ndim", None)
    if ndim is None and isinstance(x, (list, tuple, range, dict, set)):
        ndim = 2 if any(isinstance(row, (list, tuple)) for row in x) else 1
    if isinstance(x, (bool, int, float, np.generic)) or ndim == 0:
        return "Scalar.from_value(x)" if what == "Scalar" else f"{what}(FP64, ...), the type first"
    if isinstance(x, (dict, set)):
        return "Vector.from_coo(list(x.keys()), list(x.values()))" * isinstance(x, dict)
    if ndim == 1:
        return "Vector.from_dense(x), or Vector.from_coo(indices, values)"
    if ndim == 2:
        return "Matrix.from_dense(x, missing_value=0), which drops zeros"
    return ""
