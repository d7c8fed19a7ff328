"""help() of an operator says what this one does."""

import pydoc

import pytest

from lagpu import binary, indexunary, monoid, semiring, unary
from lagpu.algebra.operators import Semiring


def helped(x):
    return pydoc.plain(pydoc.render_doc(x))


@pytest.mark.parametrize("table", [unary, binary, indexunary], ids=lambda t: t.kind)
def test_every_operator_has_a_formula(table):
    assert all(op.formula for op in table)


def test_help_is_of_the_operator():
    assert "binary.plus: z = x + y." in helped(binary.plus)
    assert "FP32 -> FP32" in helped(binary.plus)
    text = helped(semiring.any_pair)
    assert "⊗ is binary.pair: x ⊗ y = 1, whatever x and y are." in text
    assert "w[j] = ⊕_i u[i] ⊗ A[i, j]" in text
    assert "Write w << semiring.any_pair(u @ A)" in text
    text = helped(monoid.min)
    assert "Identity: BOOL: True, INT32: 2147483647" in text
    assert "A sum ends early at" in text
    assert "A sum ends early" not in helped(monoid.plus)
    assert "whether j <= i + t" in helped(indexunary.tril)
    assert "FP64 -> BOOL" in helped(unary.isnan)
    assert "unary.sqrt[FP32]" in helped(unary.sqrt["FP32"])


def test_help_of_a_class_is_of_the_class():
    assert Semiring.__doc__.startswith("A `Monoid` that adds and a `BinaryOp` that multiplies")


def test_a_users_operator_shows_its_text():
    op = unary.register("test_described", lambda x: x + 1, "x + 1")
    assert "unary.test_described: z = x + 1." in helped(op)
