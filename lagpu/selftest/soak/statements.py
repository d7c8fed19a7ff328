"""Random statements on random vectors and matrices, each compared with the plain reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lagpu.backends.protocol import Backend
from lagpu.core.arguments import bound_operator, selected
from lagpu.dtypes import FP32, FP64
from lagpu.selftest import reference
from lagpu.selftest.reference import Grid, Plain
from lagpu.selftest.soak import draw as drawn
from lagpu.selftest.soak.draw import ACCUMS, TYPES
from lagpu.selftest.soak.kind import Draw
from lagpu.selftest.soak.program import Program, number

_FLOATS = (FP32, FP64)
_ROUNDED = ("exp", "log", "sqrt")  # the last bit is the library's
_STATEMENTS = 16


def run(draw: Draw, backend: Backend, seed: int) -> int:
    """Draw some statements, run them, compare each output at once or at the end; see `Run`."""
    program = Program(draw, backend, seed)
    count = len(draw(st.lists(_statement(program), min_size=1, max_size=_STATEMENTS)))
    program.finish()
    return count


@st.composite
def _statement(draw: Draw, program: Program) -> str:
    """Draw a statement and run it; Hypothesis can leave out any of them."""
    program.draw = draw
    kind = draw(st.sampled_from(_KINDS))
    kind(program)
    return str(kind.__name__)


# ------------------------------------------------------------------------------- statements


def _product(program: Program) -> None:
    pick = program.pick(
        "product",
        op=drawn.SEMIRINGS,
        w=TYPES,
        u=TYPES,
        A=TYPES,
        accum=ACCUMS,
    )
    op = pick["op"]
    flip = program.draw(st.booleans())
    left, right = ("u", "A") if flip else ("A", "u")
    if drawn.inexact(op, pick[left], pick[right]) and not pick["w"].is_float:
        pick["w"] = _FLOATS[TYPES.index(pick["w"]) % 2]
    n_in, n_out = program.size(), program.size()
    tame = drawn.summed(op.monoid, op.types(pick[left], pick[right])[1])
    text, A = program.matrix(*((n_in, n_out) if flip else (n_out, n_in)), pick["A"], tame)
    name, u = program.vector(n_in, pick["u"], tame)
    result = reference.product(A, u, op, flip=flip)
    call = (
        f"semiring.{op.name}({name} @ {text})" if flip else f"semiring.{op.name}({text} @ {name})"
    )
    out = program.vector(n_out, pick["w"])
    program.write(out, call, result, op.types(pick[left], pick[right])[1], pick["accum"])


def _mxm(program: Program) -> None:
    pick = program.pick("mxm", op=drawn.SEMIRINGS, A=TYPES, B=TYPES, C=TYPES, accum=ACCUMS)
    op = pick["op"]
    if drawn.inexact(op, pick["A"], pick["B"]) and not pick["C"].is_float:
        pick["C"] = FP64
    m, k, n = (min(program.size(), 65) for _ in range(3))
    dtype = op.types(pick["A"], pick["B"])[1]
    tame = drawn.summed(op.monoid, dtype)
    a, A = program.matrix(m, k, pick["A"], tame)
    b, B = program.matrix(k, n, pick["B"], tame)
    result = reference.mxm(A, B, op)
    out = program.stored(m, n, pick["C"])
    program.write(out, f"semiring.{op.name}({a} @ {b})", result, dtype, pick["accum"])


def _ewise(program: Program) -> None:
    methods = ("ewise_add", "ewise_mult", "ewise_union")
    pick = program.pick(
        "ewise",
        op=drawn.BINARY,
        u=TYPES,
        v=TYPES,
        w=TYPES,
        accum=ACCUMS,
        method=methods,
    )
    shape, op, method = program.shape(), pick["op"], pick["method"]
    a, u = program.container(shape, pick["u"])
    b, v = program.container(shape, pick["v"])
    defaults = (1, 0) if method == "ewise_union" else ()
    result = getattr(reference, method)(u, v, op, *defaults)
    call = f"{a}.{method}({', '.join([b, f'binary.{op.name}', *map(str, defaults)])})"
    out = program.output(shape, pick["w"])
    program.write(out, call, result, op.types(pick["u"], pick["v"])[1], pick["accum"])


def _apply(program: Program) -> None:
    ops = (*drawn.UNARY, *drawn.BINARY, *drawn.INDEXUNARY)
    pick = program.pick("apply", op=ops, u=TYPES, w=TYPES, accum=ACCUMS)
    shape, op = program.shape(), pick["op"]
    name, u = program.output(shape, pick["u"])
    bound: dict[str, Any] = {"left": None, "right": None}
    table = "unary"
    if op in drawn.INDEXUNARY:
        table, bound["right"] = "indexunary", program.draw(st.sampled_from((0, 1, -1, 2, 40)))
    elif op in drawn.BINARY:
        side = program.draw(st.sampled_from(("left", "right")))
        table, bound[side] = "binary", program.draw(st.sampled_from((0, 1, 2, 3)))
    how = bound_operator(u.dtype, op, bound["left"], bound["right"])
    if op.name in _ROUNDED and not pick["w"].is_float:
        pick["w"] = FP64
    given = [f"{side}={x}" for side, x in bound.items() if x is not None]
    call = f"{name}.apply({', '.join([f'{table}.{op.name}', *given])})"
    result = reference.apply(u.entries, op, how)
    program.write(program.output(shape, pick["w"]), call, result, how.result, pick["accum"])


def _select(program: Program) -> None:
    pick = program.pick("select", op=drawn.SELECTORS, u=TYPES, w=TYPES, accum=ACCUMS)
    shape = program.shape()
    name, u = program.output(shape, pick["u"])
    thunk = program.draw(st.sampled_from((0, 1, -1, 2, 40)))
    op, number, domain = selected(u.dtype, pick["op"], thunk)
    result = reference.select(u.entries, op, domain, number)
    call = f"{name}.select(indexunary.{op.name}, {thunk})"
    program.write(program.output(shape, pick["w"]), call, result, u.dtype, pick["accum"])


def _assign(program: Program) -> None:
    """Assign a vector or a matrix of the same shape."""
    pick = program.pick("assign", u=TYPES, w=TYPES, accum=ACCUMS)
    shape = program.shape()
    name, u = program.container(shape, pick["u"])
    out, w = program.output(shape, pick["w"])
    how, text = program.how(w, pick["accum"])
    if isinstance(w, Plain):
        expected = reference.assign(w, u, range(w.size), how)
    else:
        expected = reference.assign_submatrix(w, u, range(w.nrows), range(w.ncols), how)
    program.run(f"{out}{text} << {name}", out, expected, u.dtype)


def _assign_to_indices(program: Program) -> None:
    pick = program.pick("indices", u=TYPES, w=TYPES, accum=ACCUMS)
    shape = program.shape()
    out, w = program.output(shape, pick["w"])
    where = [_indices(program, n, distinct=True) for n in shape]
    name, u = program.container(tuple(len(x) for x in where), pick["u"])
    how, text = program.how(w, pick["accum"])
    if isinstance(w, Plain):
        expected = reference.assign(w, u, where[0], how)
    else:
        expected = reference.assign_submatrix(w, u, where[0], where[1], how)
    line = f"{out}{text or '()'}[{', '.join(map(str, where))}] << {name}"
    program.run(line, out, expected, u.dtype)


def _assign_scalar(program: Program) -> None:
    pick = program.pick("constant", w=TYPES, accum=ACCUMS)
    shape = program.shape()
    out, w = program.output(shape, pick["w"])
    how, text = program.how(w, pick["accum"])
    value = w.dtype.numpy.type(program.draw(st.sampled_from(drawn.VALUES[w.dtype.name])))
    if isinstance(w, Plain):
        where = _indices(program, w.size, distinct=False)
        expected = reference.assign_scalar(w, value, where, how)
        line = f"{out}{text or '()'}[{where}] = {number(value)}"
    else:
        u = Grid(w.nrows, w.ncols, w.dtype, dict.fromkeys(w.places, value))
        expected = reference.assign_submatrix(w, u, range(w.nrows), range(w.ncols), how)
        line = f"{out}{text} << {number(value)}"
    program.run(line, out, expected, w.dtype)


def _extract(program: Program) -> None:
    pick = program.pick("extract", u=TYPES, w=TYPES, accum=ACCUMS)
    shape = program.shape()
    name, u = program.output(shape, pick["u"])
    where = [_indices(program, n, distinct=False) for n in shape]
    if isinstance(u, Plain):
        result = reference.extract(u, where[0])
    else:
        result = reference.submatrix(u, where[0], where[1])
    out = program.output(tuple(len(x) for x in where), pick["w"])
    call = f"{name}[{', '.join(map(str, where))}]"
    program.write(out, call, result, u.dtype, pick["accum"])


def _reduce(program: Program) -> None:
    pick = program.pick("reduce", op=drawn.MONOIDS, u=TYPES)
    tame = drawn.summed(pick["op"], pick["u"])
    name, u = program.output(program.shape(), pick["u"], tame)
    possible = reference.reduce([x for _, x in sorted(u.entries.items())], u.dtype, pick["op"])
    line = f"s = {name}.reduce('{pick['op'].name}').new()"
    program.reduced(line, possible, pick["op"].types(u.dtype)[1])


def _reduce_lines(program: Program) -> None:
    pick = program.pick("lines", op=drawn.MONOIDS, A=TYPES, w=TYPES, accum=ACCUMS)
    op, dtype = pick["op"], pick["op"].types(pick["A"])[1]
    if not op.is_exact(dtype) and not pick["w"].is_float:
        pick["w"] = FP64
    tame = drawn.summed(op, dtype)
    name, A = program.stored(program.size(), program.size(), pick["A"], tame)
    side = program.draw(st.sampled_from(("rowwise", "columnwise")))
    lines = A if side == "rowwise" else A.T
    out = program.vector(lines.nrows, pick["w"])
    call = f"{name}.reduce_{side}('{op.name}')"
    program.write(out, call, reference.reduce_rows(lines, op), dtype, pick["accum"])


def _line(program: Program) -> None:
    """Extract a row or a column."""
    pick = program.pick("line", A=TYPES, w=TYPES, accum=ACCUMS)
    name, A = program.stored(program.size(), program.size(), pick["A"])
    by_row = program.draw(st.booleans())
    lines = A if by_row else A.T
    if not lines.nrows:
        return
    k = program.draw(st.integers(0, lines.nrows - 1))
    result = {j: [x] for (i, j), x in lines.entries.items() if i == k}
    out = program.vector(lines.ncols, pick["w"])
    call = f"{name}[{k}, :]" if by_row else f"{name}[:, {k}]"
    program.write(out, call, result, A.dtype, pick["accum"])


def _kronecker(program: Program) -> None:
    pick = program.pick("kronecker", op=drawn.BINARY, A=TYPES, B=TYPES, C=TYPES)
    shapes = [min(program.size(), 5) for _ in range(4)]
    a, A = program.matrix(shapes[0], shapes[1], pick["A"])
    b, B = program.matrix(shapes[2], shapes[3], pick["B"])
    result = reference.kronecker(A, B, pick["op"])
    out = program.stored(A.nrows * B.nrows, A.ncols * B.ncols, pick["C"])
    call = f"{a}.kronecker({b}, binary.{pick['op'].name})"
    program.write(out, call, result, pick["op"].types(A.dtype, B.dtype)[1], None)


def _single_entry(program: Program) -> None:
    """Set, delete, empty: what changes an object in place."""
    pick = program.pick("entry", w=TYPES)
    name, w = program.vector(program.size(), pick["w"])
    where = program.draw(st.integers(0, max(w.size - 1, 0)))
    expected = {i: [x] for i, x in w.entries.items()}
    if not w.size or program.draw(st.integers(0, 3)) == 3:
        program.run(f"{name}.clear()", name, {}, w.dtype)
    elif where in w.entries:
        del expected[where]
        program.run(f"del {name}[{where}]", name, expected, w.dtype)
    else:
        value = program.draw(st.sampled_from(drawn.VALUES[w.dtype.name]))
        expected[where] = [w.dtype.numpy.type(value)]
        program.run(f"{name}[{where}] = {number(value)}", name, expected, w.dtype)


def _indices(program: Program, n: int, *, distinct: bool) -> list[int]:
    count = program.draw(st.integers(0, n if distinct else n + 3)) if n else 0
    generator = np.random.default_rng(program.draw(st.integers(0, 99)))
    chosen = generator.permutation(n)[:count] if distinct else generator.integers(0, n, count)
    found: list[int] = chosen.tolist()
    return found


_KINDS = (
    _product,
    _product,
    _mxm,
    _ewise,
    _apply,
    _select,
    _assign,
    _assign_to_indices,
    _assign_scalar,
    _extract,
    _reduce,
    _reduce_lines,
    _line,
    _kronecker,
    _single_entry,
)
