"""A type checker knows every operator by name, and what a product is."""

import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

import lagpu

PROGRAM = """
from typing import assert_type
import lagpu
from lagpu import FP64, Matrix, Vector, agg, binary, monoid, select, semiring, unary
from lagpu.core.expr import Call
from lagpu.algebra.operators import BinaryOp, Monoid, Semiring, UnaryOp

A = Matrix.from_coo([0], [1], [1.0], nrows=2, ncols=2)
u = Vector.from_dict({0: 1.0}, size=2)
assert_type(A, Matrix)
assert_type(u, Vector)
assert_type(semiring.any_pair, Semiring)
assert_type(semiring.plus_cdiv, Semiring)
assert_type(binary.floordiv, BinaryOp)
assert_type(unary.floor, UnaryOp)
assert_type(monoid.bor, Monoid)
assert_type(semiring.min_plus["FP64"], Semiring)
assert_type(semiring.any_pair(u @ A), Call)
assert_type(unary.abs(u), Call)
assert_type(A.reduce_rowwise(agg.mean), Call)
assert_type(A.T.reduce_rowwise(monoid.plus), Call)
assert_type(A.dup(), Matrix)
assert_type(u.dup(clear=True).wait(), Vector)
select.tril(A, -1).new()
u << semiring.min_plus(u @ A)
"""
WRONG = (
    "semiring.any_piar(u @ A)", "binary.pluss", "unary.flor", "monoid.orr", "agg.meen",
    "select.trill", "semiring.any_pair(3)", "u.nvalls",
)  # fmt: skip


def test_the_package_is_typed():
    assert resources.files(lagpu).joinpath("py.typed").is_file()


@pytest.mark.ci
def test_mypy_finds_a_wrong_name(tmp_path):
    pytest.importorskip("mypy")  # of the group lint
    program = tmp_path / "program.py"
    lines = [*PROGRAM.splitlines(), *WRONG]
    program.write_text("\n".join(lines), "utf-8")
    options = ("--strict", "--no-error-summary", "--hide-error-context", "--cache-dir", "mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(program)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={"PYTHONPATH": "", "MYPYPATH": str(Path(lagpu.__file__).parents[1]), "PATH": ""},
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    at = {int(line.split(":")[1]) for line in errors if line.startswith(program.name)}
    first = len(lines) - len(WRONG) + 1
    assert at == set(range(first, len(lines) + 1)), done.stdout + done.stderr
