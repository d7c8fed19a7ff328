"""Every row of the operator tables compiles for real GPUs, as the backend asks for it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from nvrtc import ARCHITECTURES, nvrtc_compile

from lagpu import Matrix, Vector, binary, indexunary, monoid, semiring, unary
from lagpu.algebra.operators import BinaryOp
from lagpu.backends.gpu.fused import match, rowsapart, search_grid, search_per_source
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.kernels.functors import monoid_functor, operator_functor
from lagpu.backends.gpu.ops import spmv_launch
from lagpu.backends.protocol import Descriptor, Product
from lagpu.dtypes import ALL, BOOL, FP32, FP64, INT32, INT64

EVERY = pytest.mark.parametrize("arch", ARCHITECTURES)


def with_types(table):
    """Each row with another type and another GPU: all of each are covered without all triples.

    That every file compiles for every GPU is tests/test_kernels_compile.py's.
    """
    types, kinds = itertools.cycle(ALL), itertools.cycle(ARCHITECTURES)
    return list(zip(built_in(table), types, kinds, strict=False))


def built_in(table):
    """The rows that other test modules have not registered."""
    return [row for row in table if not getattr(row, "body", "") and "test_" not in row.name]


def graph(dtype):
    values = np.array([0, 1, 1]).astype(dtype.numpy)
    return Matrix.from_coo([0, 1, 2], [1, 2, 0], values, backend="sim")


@pytest.mark.parametrize(("s", "dtype", "arch"), with_types(semiring), ids=str)
def test_products(s, dtype, arch):
    flip = len(s.name) % 2 == 0  # mxv for some, vxm for the others
    A = graph(dtype)
    u = Vector.from_coo([0, 1], np.array([0, 1]).astype(dtype.numpy), size=3, backend="sim")
    call = u.vxm(A, s) if flip else A.mxv(u, s)
    call._used = True
    how = call.args[2]
    listed = ("spmv_push_queue", "spmv_push_active", "spmv_push_virtual")[len(s.name) % 3]
    columns = ("spmv_csc_warp", "spmv_csc_bitmap")[len(s.name) % 2]
    for file, name, more in (
        ("spmv/edge.cu", "spmv_csc_edge", {"TRANSPOSE": str(int(flip))}),
        ("spmv/push.cu", listed, {"W": how.result.ctype}),
        ("spmv/pull.cu", columns, {"W": how.result.ctype}),
        ("spmv/either.cu", "spmv_either", {"W": how.result.ctype}),
    ):
        made = spmv_launch._kernel(file, name, A.data, u.data, how, False, **more)
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
    add = monoid_functor(m)[0]
    assert nvrtc_compile(
        kernel("elementwise/reduce.cu", "reduce_entries", ADD=add, U=dtype.ctype, Z=result.ctype),
        arch,
    )


@EVERY
@pytest.mark.parametrize(
    ("s", "dtype"),
    [
        (semiring.any_pair, BOOL),
        (semiring.any_secondi, INT32),
        (semiring.plus_first, FP64),
        (semiring.min_plus, INT64),
        (semiring.max_second, FP32),
        (semiring.plus_times, INT64),
    ],
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
        match.Statement("assign_scalar", v.data, at, (np.int32(0), None), True),
        match.Statement("assign", x.data, at, (f.data, None), False),
        match.Statement(
            "mxv", f.data, Descriptor(v.data, True, True, None, True), call.args, False
        ),
    ]
    found = match.traversal_of(statements, f.data, None)
    assert isinstance(found, search_grid.Traversal), found
    assert nvrtc_compile(
        search_grid._specialise(found, A.data, ((1, "i32"), (2, dtype.ctype)), 1024, {}), arch
    )


@EVERY
@pytest.mark.parametrize(
    ("s", "dtype", "look"),
    [(semiring.any_second, BOOL, 0), (semiring.plus_first, FP64, 0), (semiring.min_plus, INT64, 1)],
    ids=str,
)
def test_row_searches(s, dtype, look, arch, monkeypatch):
    monkeypatch.setattr(rowsapart, "SIM_BLOCK", rowsapart.BLOCK)
    monkeypatch.setattr(search_per_source, "LOOK", look)
    A, f, x = graph(dtype), Matrix(dtype, 2, 3, backend="sim"), Matrix(INT32, 2, 3, backend="sim")
    how = Product(s, *s.types(dtype, dtype), True, True)
    assigned = [
        (x, search_per_source.DEPTH),
        (f, search_per_source.VALUE),
        (x, search_per_source.NUMBER),
    ]
    assignments = tuple(
        search_per_source.RowAssignment(y.data, what, None, y) for y, what in assigned
    )
    search = search_per_source.RowSearch(
        A.data, f.data, x.data, f, how, dtype is not BOOL, assignments
    )
    assert nvrtc_compile(search_per_source._search_kernel(search), arch)
    assert nvrtc_compile(search_per_source._write_kernel(search, 2), arch)


@EVERY
def test_row_searches_of_one_value(arch, monkeypatch):
    monkeypatch.setattr(rowsapart, "SIM_BLOCK", rowsapart.BLOCK)
    A, f, x = (Matrix(dtype, 3, 3, backend="sim") for dtype in (BOOL, BOOL, INT64))
    how = Product(semiring.any_pair, BOOL, BOOL, True, True)
    assigned = ((search_per_source.DEPTH, None), (search_per_source.NUMBER, np.int64(7)))
    assignments = tuple(search_per_source.RowAssignment(x.data, *what, x) for what in assigned)
    for before in (True, False):
        search = search_per_source.RowSearch(
            A.data, f.data, x.data, f, how, False, assignments, np.True_, before
        )
        assert nvrtc_compile(search_per_source._search_kernel(search), arch)
        for times in (None, 2):
            assert nvrtc_compile(search_per_source._write_kernel(search, times), arch)


@EVERY
def test_a_users_operator(arch):
    name, text = operator_functor(BinaryOp("f", None, "User_f", body="x * x + y"))
    types = dict.fromkeys(("U", "T", "Z", "W"), "i32")
    assert nvrtc_compile(kernel("elementwise/map.cu", "map", prelude=text, OP=name, **types), arch)
