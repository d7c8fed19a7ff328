"""Every row of the operator tables compiles for real GPUs, as the backend asks for it."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from limits import set_limits
from nvrtc import ARCHITECTURES, nvrtc_compile
from samples import picked

from lagpu import Matrix, Vector, binary, indexunary, monoid, semiring, unary
from lagpu.algebra.operators import BinaryOp
from lagpu.backends.gpu.device.protocol import CUDA_LIMITS
from lagpu.backends.gpu.fused import search_many
from lagpu.backends.gpu.fused.search_grid import GridSearch, grid_search
from lagpu.backends.gpu.kernels import Prelude, kernel
from lagpu.backends.gpu.ops import strategies
from lagpu.backends.match import (
    DEPTH,
    NUMBER,
    VALUE,
    Assignment,
    SearchBody,
    match_search,
)
from lagpu.dtypes import ALL, BOOL, FP32, FP64, INT32, INT64
from lagpu.operations import Assign, AssignScalar, Descriptor, Product, Statement

EVERY = pytest.mark.parametrize("arch", ARCHITECTURES)


def with_types(table):
    """Each row with another type and another GPU: all of each are covered without all triples.

    A plain run compiles one row of each table.
    That every file compiles for every GPU is tests/test_kernels_compile.py's.
    """
    types, kinds = itertools.cycle(ALL), itertools.cycle(ARCHITECTURES)
    rows = list(zip(built_in(table), types, kinds, strict=False))
    return picked(rows, next(row for row in rows if row[2] == "sm_90"))


def built_in(table):
    """The rows of algebra.cuh; those with a text are tests/algebra/test_arithmetic.py's."""
    return [row for row in table if not has_text(row) and "test_" not in row.name]


def has_text(row):
    op = getattr(row, "multiply", row)
    adds = getattr(getattr(row, "monoid", row), "op", op)
    return bool(getattr(op, "body", "") or adds.body)


def graph(dtype):
    values = np.array([0, 1, 1]).astype(dtype.numpy)
    return Matrix.from_coo([0, 1, 2], [1, 2, 0], values, backend="sim")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("s", "dtype", "arch"), with_types(semiring), ids=str)
def test_products(s, dtype, arch, every):
    """Only the exhaustive run compiles all three kernels for each semiring."""
    flip = len(s.name) % 2 == 0  # mxv for some, vxm for the others
    A = graph(dtype)
    u = Vector.from_coo([0, 1], np.array([0, 1]).astype(dtype.numpy), size=3, backend="sim")
    call = u.vxm(A, s) if flip else A.mxv(u, s)
    call._used = True
    how = call.operation.product
    listed = ("spmv_push_queue", "spmv_push_active", "spmv_push_virtual")[len(s.name) % 3]
    columns = ("spmv_csc_warp", "spmv_csc_bitmap")[len(s.name) % 2]
    three = (
        ("spmv/edge.cu", "spmv_csc_edge", {"TRANSPOSE": str(int(flip))}),
        ("spmv/push.cu", listed, {}),
        ("spmv/pull.cu", columns, {}),
    )
    for file, name, more in three if every else three[len(s.name) % 3 :][:1]:
        job = strategies.Job("", how, dtype, False, how.result, False)
        made = strategies._kernel(file, name, A.data.csc(), job, **more)
        assert nvrtc_compile(made, arch)


@pytest.mark.parametrize(
    ("op", "dtype", "arch"), with_types(op for op in binary if not op.positional), ids=str
)
def test_binary(op, dtype, arch):
    domain, result = op.types(dtype)
    macros = {"OP": op.cuda, "T": domain.ctype, "Z": result.ctype, "U": dtype.ctype}
    accum = {"ACCUM": op.cuda, "ACCUM_T": domain.ctype, "ACCUM_Z": result.ctype}
    assert nvrtc_compile(
        kernel(
            "elementwise/combine.cu", "combine", V=dtype.ctype, W=dtype.ctype, **macros, **accum
        ),
        arch,
    )
    assert nvrtc_compile(kernel("elementwise/map.cu", "map", W=dtype.ctype, **macros), arch)


@pytest.mark.parametrize(("op", "dtype", "arch"), with_types(unary), ids=str)
def test_unary(op, dtype, arch):
    domain, result = op.types(dtype)
    macros = {"OP": op.cuda, "T": domain.ctype, "Z": result.ctype, "U": dtype.ctype}
    assert nvrtc_compile(kernel("elementwise/map.cu", "map", W=FP32.ctype, **macros), arch)


@pytest.mark.parametrize(("op", "dtype", "arch"), with_types(indexunary), ids=str)
def test_indexunary(op, dtype, arch):
    domain = dtype if op.uses_value else INT64
    macros = {"OP": op.cuda, "T": domain.ctype, "Z": op.result(domain).ctype, "U": dtype.ctype}
    assert nvrtc_compile(kernel("elementwise/map.cu", "map", W=INT64.ctype, **macros), arch)


@EVERY
@pytest.mark.parametrize(
    ("m", "dtype"),
    list(zip(built_in(monoid), itertools.cycle([BOOL, INT32, FP64]), strict=False)),
    ids=str,
)
def test_monoids(m, dtype, arch):
    result = m.types(dtype)[1]
    add = Prelude().functor(m)
    assert nvrtc_compile(
        kernel("elementwise/reduce.cu", "reduce_entries", ADD=add, U=dtype.ctype, Z=result.ctype),
        arch,
    )


@EVERY
@pytest.mark.parametrize(
    ("s", "dtype"),
    picked(
        [
            (semiring.any_pair, BOOL),
            (semiring.any_secondi, INT32),
            (semiring.plus_first, FP64),
            (semiring.min_plus, INT64),
            (semiring.max_second, FP32),
            (semiring.plus_times, INT64),
        ],
        (semiring.any_pair, BOOL),
    ),
    ids=str,
)
def test_traversals(s, dtype, arch):
    A, f = graph(dtype), Vector(dtype, 3, backend="sim")
    f[0] = 1
    v, x = Vector(INT32, 3, backend="sim"), Vector(dtype, 3, backend="sim")
    at = Descriptor(f.data)
    call = f.vxm(A, s)
    call._used = True
    call = f.vxm(A, s)
    call._used = True
    statements = [
        Statement(v.data, at, AssignScalar(np.int32(0)), INT32),
        Statement(x.data, at, Assign(f.data), dtype),
        Statement(f.data, Descriptor(v.data, True, True, None, True), call.operation, call.dtype),
    ]
    # a number and a depth are the same to the kernel's text
    body = match_search(statements, f.data)
    assert isinstance(body, SearchBody), body
    depths = body.assignments[0]._replace(what=DEPTH, number=None)
    both = (depths, body.assignments[1])
    found = grid_search(body._replace(A=A.data.csc(), assignments=both), None)
    assert isinstance(found, GridSearch), found
    space = SimpleNamespace(block=1024, cluster=1, parts=0, degree=16.0)
    assert nvrtc_compile(found._kernel(space, {}, ranks=False), arch)


@EVERY
@pytest.mark.parametrize(
    ("s", "dtype", "look"),
    picked(
        [
            (semiring.any_second, BOOL, 0),
            (semiring.plus_first, FP64, 0),
            (semiring.min_plus, INT64, 1),
        ],
        (semiring.min_plus, INT64, 1),
    ),
    ids=str,
)
def test_row_searches(s, dtype, look, arch, monkeypatch):
    set_limits(monkeypatch, row_block=CUDA_LIMITS.row_block)
    monkeypatch.setattr(search_many, "LOOK", look)
    A, f, x = graph(dtype), Matrix(dtype, 2, 3, backend="sim"), Matrix(INT32, 2, 3, backend="sim")
    how = Product(s, *s.types(dtype, dtype), True, True)
    assigned = tuple(Assignment(y.data, what) for y, what in ((x, DEPTH), (f, VALUE), (x, NUMBER)))
    body = SearchBody(A.data.csc(), f.data, x.data, how, assigned, True, ())
    counters = f.backend.runtime.counters
    for times in (None, 2):
        search = search_many.PerSourceSearch(counters, body, times, None, "")
        assert nvrtc_compile(search._search_kernel(), arch)
        assert nvrtc_compile(search._write_kernel(), arch)


@pytest.mark.ci
@EVERY
def test_row_searches_of_one_value(arch, monkeypatch):
    set_limits(monkeypatch, row_block=CUDA_LIMITS.row_block)
    A, f, x = (Matrix(dtype, 3, 3, backend="sim") for dtype in (BOOL, BOOL, INT64))
    how = Product(semiring.any_pair, BOOL, BOOL, True, True)
    assigned = (Assignment(x.data, DEPTH), Assignment(x.data, NUMBER, np.int64(7)))
    for before in (True, False):
        body = SearchBody(A.data.csc(), f.data, x.data, how, assigned, before, ())
        for times in (None, 2):
            counters = f.backend.runtime.counters
            search = search_many.PerSourceSearch(counters, body, times, np.True_, "")
            assert nvrtc_compile(search._search_kernel(), arch)
            assert nvrtc_compile(search._write_kernel(), arch)


@EVERY
@pytest.mark.parametrize("body", ["x * x + y", "x < y ? INFINITY : NAN", "fmin(x, fmax(y, 1.0))"])
def test_a_users_operator(arch, body):
    prelude = Prelude()
    name = prelude.functor(BinaryOp("f", None, "User_f", body=body))
    types = dict.fromkeys(("U", "T", "Z", "W"), "f64")
    assert nvrtc_compile(
        kernel("elementwise/map.cu", "map", prelude=prelude.text, OP=name, **types), arch
    )
