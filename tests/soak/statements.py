"""Random statements on random vectors and matrices, each compared with the plain reference."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import reference
import strategies as drawn
from batches import batches_at_once
from hypothesis import strategies as st
from reference import Container, How, Options, PlainMatrix, PlainVector
from strategies import ACCUMS, TYPES, Draw, Failed

from lagpu.algebra.operators import BinaryOp
from lagpu.algebra.tables import binary, indexunary, semiring, unary
from lagpu.backends.protocol import Backend
from lagpu.core.arguments import bound_operator, selected
from lagpu.dtypes import BOOL, FP32, FP64, INT32, DType
from lagpu.errors import NotSupported

_TABLES = {"unary": unary, "binary": binary, "indexunary": indexunary, "semiring": semiring}
_POOL = 4
_MOST_ENTRIES = 600  # of a matrix
_HEADER = (
    "import numpy as np",
    "",
    "from lagpu import *",
    "from reference import close, difference",
    "",
    "",
)


class Program:
    """The objects of one program: plain ones, those of the backend, and the program's text.

    Parameters
    ----------
    draw : callable
        ``data.draw`` of Hypothesis.
    backend : Backend
        The backend.
    seed : int
        Chooses the pool of operators and types on a backend that compiles.
    """

    def __init__(self, draw: Draw, backend: Backend, seed: int) -> None:
        self.draw = draw
        self._backend = backend
        self._seed = seed
        self._plain: dict[str, Container] = {}
        self._live: dict[str, Any] = {}
        self._first: dict[str, Container] = {}
        self._lines: list[str] = []
        self._unseen: set[str] = set()
        self._looks_late = draw(st.booleans())
        big = draw(st.integers(0, 19)) == 19
        self.sizes = (
            draw(st.sampled_from(drawn.BIG_SIZES if big else drawn.SIZES)),
            draw(st.sampled_from(drawn.SIZES[:7])),
        )

    def size(self) -> int:
        """Draw one of the two sizes of this program."""
        return int(self.draw(st.sampled_from(self.sizes)))

    def pick(self, kind: str, **choices: Any) -> dict[str, Any]:
        """Draw operators and types."""
        pool = _POOL if self._backend.capabilities.kernels else 0
        generator = random.Random(f"{self._seed} {kind}")
        return drawn.chosen_together(self.draw, pool, generator, **choices)

    def vector(self, size: int, dtype: DType, tame: str = "") -> tuple[str, Any]:
        """Return (name, plain) of a vector: one that is there, or a new one."""

        def make() -> PlainVector:
            return drawn.plain_vector(self.draw, size, dtype, tame)

        return self._any("u", (size,), dtype, tame, make)

    def matrix(self, nrows: int, ncols: int, dtype: DType, tame: str = "") -> tuple[str, Any]:
        """Return (name, plain) of a matrix, perhaps transposed."""
        if self.draw(st.booleans()):
            name, plain = self.stored(ncols, nrows, dtype, tame)
            return f"{name}.T", plain.T
        return self.stored(nrows, ncols, dtype, tame)

    def stored(self, nrows: int, ncols: int, dtype: DType, tame: str = "") -> tuple[str, Any]:
        """Return (name, plain) of a matrix: one that is there, or a new one."""

        def make() -> PlainMatrix:
            iso = self.draw(st.booleans())
            return drawn.plain_matrix(
                self.draw, nrows, ncols, dtype, iso=iso, most=_MOST_ENTRIES, tame=tame
            )

        return self._any("A", (nrows, ncols), dtype, tame, make)

    def container(self, shape: tuple[int, ...], dtype: DType) -> tuple[str, Any]:
        """Return (name, plain) of a vector or of a matrix, as `shape` says."""
        if len(shape) == 1:
            return self.vector(shape[0], dtype)
        return self.matrix(shape[0], shape[1], dtype)

    def output(self, shape: tuple[int, ...], dtype: DType, tame: str = "") -> tuple[str, Any]:
        """Return (name, plain) of a vector or of a matrix that is not transposed."""
        if len(shape) == 1:
            return self.vector(shape[0], dtype, tame)
        return self.stored(shape[0], shape[1], dtype, tame)

    def shape(self) -> tuple[int, ...]:
        """Draw the shape of a vector or of a matrix."""
        two = self.draw(st.booleans())
        return (self.size(), self.size()) if two else (self.size(),)

    def _any(
        self,
        letter: str,
        shape: tuple[int, ...],
        dtype: DType,
        tame: str,
        make: Callable[[], Container],
    ) -> tuple[str, Container]:
        there = [
            name
            for name, x in self._plain.items()
            if _shape(x) == shape
            and x.dtype is dtype
            and name[0] == letter
            and all(drawn.is_tame(value, tame) for value in x.entries.values())
        ]
        chosen = self.draw(st.sampled_from([*there, ""])) if there else ""
        if chosen:
            return chosen, self._plain[chosen]
        name, plain = f"{letter}{len(self._plain)}", make()
        self._plain[name], self._first[name] = plain, replace(plain, entries=dict(plain.entries))
        if isinstance(plain, PlainVector):
            self._live[name] = drawn.vector(plain, self._backend)
        else:
            self._live[name] = drawn.matrix(plain, self._backend)
        return name, plain

    def write(
        self,
        out: tuple[str, Container],
        call: str,
        result: Options,
        dtype: DType,
        accum: BinaryOp | None,
        computed: DType | None = None,
    ) -> None:
        """Run ``out(mask, accum, replace) << call`` and compare."""
        name, w = out
        how, text = self.how(w, accum)
        expected = reference.write(w, result, dtype, how)
        self.run(f"{name}{text} << {call}", name, expected, computed or dtype)

    def how(self, w: Container, accum: BinaryOp | None) -> tuple[How, str]:
        """Draw mask, complement and replace; return them, and their text."""
        kind = self.draw(st.sampled_from(("", "S", "V", "~S", "~V")))
        replaces = self.draw(st.booleans())
        accumulates = [] if accum is None else [f"accum=binary.{accum.name}"]
        if not kind:
            return How(accum=accum), f"({', '.join(accumulates)})" if accum else ""
        dtype = self.draw(st.sampled_from((BOOL, INT32, FP64)))
        name, mask = self.output(_shape(w), dtype)
        parts = [f"{'~' * ('~' in kind)}{name}.{kind[-1]}", *accumulates]
        parts += ["replace=True"] if replaces else []
        how = How(mask, "S" in kind, "~" in kind, accum, replaces)
        return how, f"({', '.join(parts)})"

    def run(self, line: str, out: str, expected: Options, computed: DType) -> None:
        """Run a line, and compare the output now or at the end of the program.

        Reading an output ends what a backend has put off, so some programs do not read outputs
        whose every bit the reference knows. Else the plain one gets the values of the backend.
        """
        if not self._executed(line):
            return
        live, plain = self._live[out], self._plain[out]
        exact = not (live.dtype.is_float or computed.is_float)
        if self._looks_late and exact and all(len(v) == 1 for v in expected.values()):
            self._unseen.add(out)
            of = plain.dtype.numpy.type
            plain.entries = {place: of(value) for place, (value,) in expected.items()}
            return
        self._unseen.discard(out)
        self._compare(out, expected, computed)
        plain.entries = _entries(live)

    def finish(self) -> None:
        """Compare the outputs that no statement has looked at."""
        for out in sorted(self._unseen):
            plain = self._plain[out]
            self._compare(out, {place: [v] for place, v in plain.entries.items()}, plain.dtype)

    def _compare(self, out: str, expected: Options, computed: DType) -> None:
        """Raise if an output is none that the reference allows."""
        live = self._live[out]
        found = reference.difference(live, expected, computed)
        if found:
            wanted = ", ".join(f"{k}: [{', '.join(map(number, v))}]" for k, v in expected.items())
            kind = "" if computed is live.dtype else f", {computed}"
            raise Failed(
                f"{self._source()}    assert not difference({out}, {{{wanted}}}{kind})\n"
                f"    # {found}\n"
            )

    def reduced(self, line: str, possible: list[Any], dtype: DType) -> None:
        """Run ``s = call.new()`` and compare the scalar."""
        if not self._executed(line):
            return
        s = self._live["s"]
        right = s.is_empty is (not possible) and s.dtype is dtype
        if right and possible:
            right = any(reference.close(s.value, x.item(), dtype, dtype) for x in possible)
        if not right:
            wanted = f"[{', '.join(map(number, possible)) or 'None'}]"
            test = f"    assert any(close(s.value, x, {dtype}, {dtype}) for x in {wanted})\n"
            if not possible:
                test = "    assert s.is_empty\n"
            raise Failed(f"{self._source()}{test}    # s is {s!r}\n")

    def _executed(self, line: str) -> bool:
        """Run a line; return False if the backend refuses it by name, as NotSupported."""
        self._lines.append(line)
        try:
            exec(line, _TABLES | {"np": np}, self._live)
        except NotSupported:
            self._lines.pop()
            return False
        except Exception as error:
            raise Failed(self._source() + f"    # {type(error).__name__}: {error}\n") from error
        return True

    def _source(self) -> str:
        """Return the program as the text of a test, without its last assertion."""
        body = "\n".join(self._lines)
        lines = [*_HEADER, "def test_soak():", f"    backend = {self._backend.name!r}"]
        lines += [f"    {_made(k, x)}" for k, x in self._first.items() if k in body]
        return "\n".join([*lines, *(f"    {line}" for line in self._lines)]) + "\n"


def _shape(x: Container) -> tuple[int, ...]:
    return (x.size,) if isinstance(x, PlainVector) else (x.nrows, x.ncols)


def _entries(live: Any) -> dict[Any, Any]:
    *where, values = live.to_coo()
    places = where[0].tolist()
    if len(where) == 2:
        places = list(zip(places, where[1].tolist(), strict=True))
    return dict(zip(places, values, strict=True))  # NumPy scalars


def _made(name: str, x: Container) -> str:
    """Return the line that makes a vector or a matrix."""
    values = [number(v) for v in x.entries.values()]
    text = f"[{', '.join(values)}]"
    if isinstance(x, PlainMatrix) and values and len({repr(v) for v in values}) == 1:
        text = values[0]  # an iso-valued matrix
    where = list(x.entries)
    end = f"np.array({text}, '{x.dtype.numpy.name}'), {x.dtype}, "
    if isinstance(x, PlainVector):
        return f"{name} = Vector.from_coo({where}, {end}size={x.size}, backend=backend)"
    rows, cols = [i for i, _ in where], [j for _, j in where]
    shape = f"nrows={x.nrows}, ncols={x.ncols}"
    return f"{name} = Matrix.from_coo({rows}, {cols}, {end}{shape}, backend=backend)"


def number(x: Any) -> str:
    """Return the text of a value."""
    value = np.asarray(x).item()
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


# ---- the statements

_FLOATS = (FP32, FP64)
_ROUNDED = ("exp", "log", "sqrt")  # the last bit is the library's
_STATEMENTS = 16


def run(draw: Draw, backend: Backend, seed: int) -> int:
    """Draw some statements, run them, compare each output at once or at the end."""
    program = Program(draw, backend, seed)
    count = len(draw(st.lists(_statement(program), min_size=1, max_size=_STATEMENTS)))
    program.finish()
    return count


def waiting(draw: Draw, backend: Backend, seed: int) -> int:
    """Do the same with statements that wait for each other; few programs compile their batches."""
    never = 10**9
    after = draw(st.sampled_from((never,) * 9 + (0,)), label="after")
    try:
        with batches_at_once(after):
            return run(draw, backend, seed)
    except Failed as failed:
        raise Failed(f"# inside batches_at_once({after}) of tests/support\n{failed}") from failed


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
    if isinstance(w, PlainVector):
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
    if isinstance(w, PlainVector):
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
    if isinstance(w, PlainVector):
        where = _indices(program, w.size, distinct=False)
        expected = reference.assign_scalar(w, value, where, how)
        line = f"{out}{text or '()'}[{where}] = {number(value)}"
    else:
        u = PlainMatrix(w.nrows, w.ncols, w.dtype, dict.fromkeys(w.places, value))
        expected = reference.assign_submatrix(w, u, range(w.nrows), range(w.ncols), how)
        line = f"{out}{text} << {number(value)}"
    program.run(line, out, expected, w.dtype)


def _extract(program: Program) -> None:
    pick = program.pick("extract", u=TYPES, w=TYPES, accum=ACCUMS)
    shape = program.shape()
    name, u = program.output(shape, pick["u"])
    where = [_indices(program, n, distinct=False) for n in shape]
    if isinstance(u, PlainVector):
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
