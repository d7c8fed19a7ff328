"""An array, a graph or a number where the type belongs is refused, with the line to write."""

import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import lagpu
from lagpu import FP64, INT64, Matrix, Scalar, Vector
from lagpu.errors import DomainMismatch


class Table:
    """As a DataFrame of pandas."""

    columns = ("source", "target")
    ndim = 2


class Column:
    """As a Series of pandas: it has a type, and is none."""

    def __init__(self, values):
        self.values, self.dtype, self.ndim = values, values.dtype, 1

    def __array__(self, dtype=None, copy=None):
        return self.values


S = sp.csr_array(np.array([[0, 2.0], [3.0, 0]]))
v = Vector.from_coo([1], [2.0], backend="cpu")
DATA = {
    "scipy": (S, "lagpu.io.from_scipy(x)"),
    "old scipy": (sp.csr_matrix(S), "lagpu.io.from_scipy(x)"),
    "networkx": (nx.path_graph(3), "lagpu.io.from_networkx(x)"),
    "array": (np.ones(3), "Vector.from_dense(x), or Vector.from_coo(indices, values)"),
    "column": (Column(np.ones(3)), "Vector.from_dense(x), or Vector.from_coo(indices, values)"),
    "list": ([1, 2], "Vector.from_dense(x), or Vector.from_coo(indices, values)"),
    "2-D": (S.toarray(), "Matrix.from_dense(x, missing_value=0), which drops zeros"),
    "lists": ([[1, 0], [0, 1]], "Matrix.from_dense(x, missing_value=0), which drops zeros"),
    "dict": ({0: 1.5}, "Vector.from_coo(list(x.keys()), list(x.values()))"),
    "table": (Table(), "Matrix.from_coo(x['row'], x['column'], x['value'])"),
    "vector": (v, "x.dup() for a copy, x.new() for an expression, or x.dtype for its type"),
    "matrix": (v.diag(), "x.dup() for a copy"),
    "expression": (v.S, "x.dup() for a copy, x.new() for an expression"),
}


@pytest.mark.parametrize("make", [Vector, Matrix, Scalar])
@pytest.mark.parametrize(("x", "instead"), DATA.values(), ids=DATA)
def test_data_is_no_type(make, x, instead):
    with pytest.raises(DomainMismatch) as caught:
        make(x)
    start = f"{make.__name__}: {type(x).__name__} is not a type of values. Write "
    assert str(caught.value).startswith(start + instead)


@pytest.mark.parametrize("name", ["scipy", "old scipy", "networkx", "array", "list", "2-D", "dict"])
def test_what_is_advised_works(name):
    x, advice = DATA[name]
    written = {"lagpu": lagpu, "Matrix": Matrix, "Vector": Vector, "x": x}
    assert eval(re.split(", (?:or|which) ", advice)[0], written).nvals


def test_numbers_are_no_type():
    with pytest.raises(DomainMismatch, match=r"Vector: int is not a type .*Vector\(FP64, \.\.\.\)"):
        Vector(3)
    with pytest.raises(DomainMismatch, match=r"Write Scalar\.from_value\(x\)"):
        Scalar(np.float64(3.5))


@pytest.mark.parametrize("dtype", [S, Column(np.ones(3)), np.float64(3), np.ones(2), v])
def test_what_has_a_type_is_none(dtype):
    kind = type(dtype).__name__
    with pytest.raises(DomainMismatch, match="is not a lagpu type") as caught:
        Vector.from_coo([0], [1], dtype, backend="cpu")
    assert f"an object of {kind}" in str(caught.value) or kind == "float64"
    with pytest.raises(DomainMismatch):
        v.dup(dtype)


def test_types_are_types():
    for dtype in (FP64, "FP64", "float64", np.float64, np.dtype("float64"), float):
        assert Vector(dtype, 2, backend="cpu").dtype is FP64
    assert Scalar(int, 3).dtype is INT64
