"""A random program: its objects on a backend, the same in the plain reference, and its text."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lagpu.algebra.operators import BinaryOp
from lagpu.algebra.tables import binary, indexunary, semiring, unary
from lagpu.backends.protocol import Backend
from lagpu.dtypes import BOOL, FP64, INT32, DType
from lagpu.errors import NotSupported
from lagpu.selftest import reference
from lagpu.selftest.reference import Container, Grid, How, Options, Plain
from lagpu.selftest.soak import draw as drawn
from lagpu.selftest.soak.kind import Draw, Failed

_TABLES = {"unary": unary, "binary": binary, "indexunary": indexunary, "semiring": semiring}
_POOL = 4
_MOST_ENTRIES = 600  # of a matrix
_HEADER = (
    "import numpy as np",
    "",
    "from lagpu import *",
    "from lagpu.selftest.reference import close, difference",
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
        return drawn.combination(self.draw, pool, generator, **choices)

    def vector(self, size: int, dtype: DType, tame: str = "") -> tuple[str, Any]:
        """Return (name, plain) of a vector: one that is there, or a new one."""

        def make() -> Plain:
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

        def make() -> Grid:
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
        if isinstance(plain, Plain):
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

        A look ends what a backend has put off, so some programs leave the outputs alone of which
        the reference knows every bit. Else the plain one gets the values of the backend.
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
    return (x.size,) if isinstance(x, Plain) else (x.nrows, x.ncols)


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
    if isinstance(x, Grid) and values and len({repr(v) for v in values}) == 1:
        text = values[0]  # an iso-valued matrix
    where = list(x.entries)
    end = f"np.array({text}, '{x.dtype.numpy.name}'), {x.dtype}, "
    if isinstance(x, Plain):
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
