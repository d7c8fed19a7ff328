"""One object in python-graphblas and in lagpu, and its values in a form that both have."""

import re
import warnings

import numpy as np

import lagpu
from lagpu.core.expr import Mask
from lagpu.core.hints import Deferred
from lagpu.core.views import TransposedMatrix

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from graphblas.core.mask import Mask as TheirMask
    from graphblas.core.operator.base import OpBase, ParameterizedUdf, TypedOpBase

_OPERATORS = (OpBase, TypedOpBase, ParameterizedUdf)
#: Classes of graphs, which have their matrix in `_A` -> what makes lagpu's counterpart of one.
graph_classes = {}


def converted(x, backend, seen):
    """Return lagpu's counterpart of an object of python-graphblas; one for each object."""
    if id(x) in seen:
        return seen[id(x)][1]
    found = _converted(x, backend, seen)
    seen[id(x)] = (x, found)  # the object itself lives on, and so keeps its id
    return found


def _converted(x, backend, seen):
    kind = type(x).__name__
    if isinstance(x, (list, tuple)):
        parts = [converted(part, backend, seen) for part in x]
        return x._make(parts) if hasattr(x, "_make") else type(x)(parts)
    if isinstance(x, tuple(graph_classes)):
        return graph_classes[type(x).__mro__[-2]](x, converted(x._A, backend, seen))
    if isinstance(x, TheirMask):
        parent = converted(x.parent, backend, seen)
        mask = parent.S if x.structure else parent.V
        return ~mask if x.complement else mask
    if kind == "TransposedMatrix":
        return converted(x.T, backend, seen).T
    if kind.endswith(("Expression", "Expr")) and hasattr(x, "new"):
        return converted(x.new(), backend, seen)
    if kind == "Scalar":
        return lagpu.Scalar(x.dtype.name, x.value)
    if kind == "Vector":
        indices, values = x.to_coo()
        return lagpu.Vector.from_coo(
            indices, values, x.dtype.name, size=x.size, backend=backend, name=x.name
        )
    if kind == "Matrix":
        rows, cols, values = x.to_coo()
        shape = {"nrows": x.nrows, "ncols": x.ncols}
        return lagpu.Matrix.from_coo(
            rows, cols, values, x.dtype.name, backend=backend, name=x.name, **shape
        )
    if isinstance(x, _OPERATORS):
        table = re.sub("Typed|Builtin|User|Op$", "", kind).lower()
        op = getattr(getattr(lagpu, table), x.name.split("[")[0])
        return op[x.type.name] if isinstance(x, TypedOpBase) else op
    return x


def plain(x):
    """Return the values of an object of either library, or None if they cannot be compared."""
    if isinstance(x, (list, tuple)):
        return [plain(part) for part in x]
    if isinstance(x, type):
        return None
    if isinstance(x, tuple(graph_classes)):
        return plain(x._A)
    if isinstance(x, (Mask, TheirMask)):
        return plain(x.new())
    if isinstance(x, (Deferred, TransposedMatrix)):
        x = x.new()
    kind = type(x).__name__
    if kind == "TransposedMatrix" or (kind.endswith(("Expression", "Expr")) and hasattr(x, "new")):
        x = x.new()
    if type(x).__name__ == "Scalar":
        return x.value
    if hasattr(x, "to_coo"):
        *where, values = x.to_coo()
        order = np.lexsort(tuple(where)[::-1])
        return [x.shape, *(np.asarray(i)[order].astype(int) for i in where), values[order]]
    if isinstance(x, (np.ndarray, np.generic, int, float, bool, str)) or x is None:
        return x
    return None


def same(x, y):
    """Whether two values of `plain` are equal, up to rounding in their own type."""
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(same, x, y))
    if x is None or y is None or isinstance(x, str):
        return x is y or x == y
    first, second = np.asarray(x), np.asarray(y)
    least = 1e-7 if first.dtype == second.dtype == np.float32 else 1e-9
    return first.shape == second.shape and np.allclose(first, second, 1e-6, least, equal_nan=True)
