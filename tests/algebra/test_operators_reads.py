"""Which operands an operator reads: the table, its functor and every backend's results agree."""

import re
from pathlib import Path

import numpy as np
import pytest
from samples import covering

from lagpu import FP64, Matrix, Vector, binary, semiring
from lagpu.backends.gpu import kernels
from lagpu.backends.gpu.kernels import Prelude

BUILT_IN = [op for op in binary if not op.body and not op.name.startswith("test_")]
VALUED = [op for op in BUILT_IN if not op.positional]
_ALGEBRA = re.sub(
    r"//.*", "", (Path(kernels.__file__).parent / "common/algebra.cuh").read_text("utf-8")
)
_STRUCT = re.compile(r"struct (\w+)(?: : (\w+))? \{(.*?)\n\};", re.DOTALL)
_READS = re.compile(r"\breads_([xy]) = (true|false)")
FUNCTORS = {name: (base, body) for name, base, body in _STRUCT.findall(_ALGEBRA)}
# `any` may take either operand, so it needs both, whichever its functor takes.
TAKES_ONE = {"any"}
PARTIAL = [s for s in semiring if not all(s.multiply.reads) and not s.name.startswith("test_")]


def reads_of(name):
    """Return what a functor says that it reads: (x, y)."""
    base, body = FUNCTORS[name]
    inherited = dict(zip("xy", reads_of(base), strict=True)) if base else {}
    said = {operand: value == "true" for operand, value in _READS.findall(body)}
    return tuple((inherited | said)[operand] for operand in "xy")


@pytest.mark.parametrize("op", BUILT_IN, ids=lambda op: op.name)
def test_the_functor_says_the_same(op):
    assert reads_of(op.cuda) == op.reads
    call = re.search(r"LG_CALL \{(.*?)\} *$", FUNCTORS[op.cuda][1], re.MULTILINE)[1]
    for operand, read in zip("xy", op.reads, strict=True):
        if op.name not in TAKES_ONE:
            assert bool(re.search(rf"\b{operand}\b", call)) == read


def test_users_functors_read_both():
    op = binary.register("test_reads_both", lambda x, y: x - y, "x - y")
    prelude = Prelude()
    prelude.functor(op)
    assert dict(_READS.findall(prelude.text)) == {"x": "true", "y": "true"}
    assert op.reads == (True, True)


NUMBERS = [0.0, 1.0, 2.0, 5.0]


def results(op, backend, x, y):
    """What two vectors of one entry become on the intersection."""
    u, v = (Vector.from_coo([0], [z], size=1, dtype=FP64, backend=backend) for z in (x, y))
    return u.ewise_mult(v, op).new().get(0)


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("op", VALUED, ids=lambda op: op.name)
def test_a_result_depends_on_what_is_read(backend, op):
    if op.name in TAKES_ONE:
        pytest.skip("which operand it takes is free")
    table = np.array([[results(op, backend, x, y) for y in NUMBERS] for x in NUMBERS], FP64.numpy)
    for axis, read in enumerate(op.reads):
        same = np.array_equal(*(table.take(k, axis) for k in (1, 3)), equal_nan=True)
        same &= np.array_equal(*(table.take(k, axis) for k in (0, 2)), equal_nan=True)
        assert same != read


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    "s",
    covering(PARTIAL, lambda s: s.monoid.name, lambda s: s.multiply.name),
    ids=lambda s: s.name,
)
def test_a_product_does_not_depend_on_the_rest(backend, s, count):
    """Its kernel does not load what is not read; with the matrix on one side, or on either."""
    rows, cols = [0, 0, 1, 2, 3], [1, 2, 3, 0, 2]
    if s.monoid.has_any_terminal:  # which product it takes is free: one of each sum
        rows, cols = rows[1:], [2, 3, 0, 1]

    def product(left, right, flip):
        numbers = [z + np.arange(len(rows)) for z in (left, right)]
        matrix, vector = numbers[::-1] if flip else numbers
        A = Matrix.from_coo(rows, cols, matrix, nrows=4, ncols=4, backend=backend)
        u = Vector.from_dense(vector[:4], backend=backend)
        return s(u @ A).new() if flip else s(A @ u).new()

    for flip in ((False, True) * 2)[PARTIAL.index(s) % 2 :][:count]:
        for operand, read in enumerate(s.multiply.reads):
            changed = [2.0, 2.0]
            changed[operand] = 7.0
            if not read:
                assert product(2.0, 2.0, flip).isequal(product(*changed, flip), check_dtype=True)
