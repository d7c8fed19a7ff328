"""Logic that adds products of arithmetic: each product is made first, then cast (types, rule 8)."""

from itertools import product

import numpy as np
import pytest
from loop_names import GENERATED, loop_name
from samples import sampled

from lagpu import BOOL, Matrix, Vector, binary, loop, monoid
from lagpu.algebra.operators import Semiring

PRODUCTS = [  # what multiplies, the type, the operands, and whether the product is true
    ("plus", "FP64", 0.5, 0.25, True),
    ("plus", "FP32", 0.5, -0.5, False),
    ("minus", "FP64", 0.5, 0.25, True),
    ("min", "INT64", 0, -1, True),
    ("max", "FP64", -1.0, 0.0, False),
    ("times", "INT64", 2**32, 2**32, False),
    ("times", "INT32", 2**16, 2**16, False),
    ("times", "UINT32", 2**16, 2**16, False),
    ("plus", "INT64", 2**63 - 1, -(2**63), True),
    ("plus", "UINT64", 2**64 - 1, 1, False),
    ("plus", "BOOL", True, True, True),
    ("minus", "BOOL", True, True, False),
    ("first", "FP64", 0.5, 0.0, True),
    ("second", "INT64", 0, 2**40, True),
    ("truediv", "INT64", 1, 2, True),
]


def multiply(flag, op, u, A):  # without assert, so that pytest leaves its code alone
    for _ in loop(times=2):
        flag << op(u @ A)


@pytest.mark.few_on_sim(4)
@pytest.mark.parametrize(("add", "product"), sampled(product(["lor", "land"], PRODUCTS), 2))
def test_a_product_is_cast_after_it_is_made(backend, add, product):
    times, dtype, x, y, true = product
    op = Semiring(monoid[add], binary[times])
    A = Matrix.from_coo([0, 0], [0, 1], [y, y], dtype, nrows=2, ncols=2, backend=backend)
    u = Vector.from_coo([0], [x], dtype, size=2, backend=backend)
    w = op(u @ A).new()
    assert (w.dtype, w.to_dense().tolist()) == (BOOL, [true, true])
    C = op(u.diag() @ A).new()
    assert (C.dtype, C.to_coo()[2].tolist()) == (BOOL, [true, true])
    flag = Vector(BOOL, 2, backend=backend)
    multiply(flag, op, u, A)
    assert flag.to_dense().tolist() == [true, true]
    if backend.capabilities.fuses:
        assert loop_name(backend) == GENERATED


def test_an_operand_alone_may_be_cast_first():
    """No value is lost there, and BOOL is what the kernels and SuiteSparse have."""
    for name in ("first", "second", "pair"):
        op = Semiring(monoid.lor, binary[name])
        u = Vector.from_dense(np.array([0.5]), backend="cpu")
        assert op.types(u.dtype, u.dtype) == (BOOL, BOOL)
