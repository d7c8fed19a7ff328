"""Write and run one cooperative kernel for the recorded body of a sweep; see sweep.cuh.

The text depends on operations and types alone, so sweeps of one structure share one kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra import unary
from lagpu.backends.base import Applied, Statement
from lagpu.backends.gpu.functors import monoid_functor, operator_functor
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, from_source
from lagpu.backends.gpu.levels import VectorLevels
from lagpu.backends.gpu.products import by_outputs
from lagpu.backends.gpu.storage import VectorStore, nwords
from lagpu.backends.gpu.sweepmatch import Matched, inputs_of
from lagpu.backends.gpu.workspaces import index_types
from lagpu.dtypes import DType, lookup

__all__ = ["Sweep"]

# One block a multiprocessor; a level that one block runs alone has a vertex a thread.
BLOCK, SIM_BLOCK = 1024, 256
BYTE_MARKS = 255  # levels up to which a mark is a byte: four times as many in a cache
_PARAMS = (
    "i64 count", "i64 deepest", "const i32* order", "const i32* level", "const i64* offsets",
    "i64 num_words", "i64 num_marks", "u32* marks", "u32* entries", "i64* reached",
    "GridBarrier* barrier",
)  # fmt: skip
MODES = {"ewise_add": 0, "ewise_mult": 1, "ewise_union": 2}
Array = Any


class Sweep:
    """The text of a kernel, its arguments, and the vectors it writes.

    Parameters
    ----------
    body : Matched
        The statements.
    here, above : VectorStore
        The masks that they name.
    levels : VectorLevels
        The levels; at least two.
    """

    def __init__(
        self, body: Matched, here: VectorStore, above: VectorStore, levels: VectorLevels
    ) -> None:
        self._body, self._here, self._above, self._levels = body, here, above, levels
        self._device = here.device
        self._blank = [*body.replaced, body.product.w]  # without entries but in the last turn
        statements = (*body.before, body.product, *body.after)
        self._written = list({id(s.w): s.w for s in statements}.values())
        self._kept = [w for w in self._written if not any(w is x for x in self._blank)]
        read = {id(x): x for s in (*body.before, *body.after) for x in inputs_of(s)}
        own = [*self._written, here, above]
        self._read = [x for x in read.values() if not any(x is y for y in own)]
        self._names: dict[int, str] = {}
        self._params: list[str] = []
        self._args: list[Any] = []
        self._texts: dict[str, None] = {}  # of users' functors, each once

    # ---------------------------------------------------------------------------- running
    def run(self) -> None:
        """Run the sweep to its end; nothing is waited for."""
        device, xp, levels = self._device, self._device.xp, self._levels
        for x in self._blank:
            x.set_empty()
            x.to_blank()
        for x in self._kept:
            x.to_writable()
        kernel = self._kernel()
        block = SIM_BLOCK if device.name == "sim" else BLOCK
        grid = device.max_cooperative_blocks(kernel, block)
        size = levels.size if levels.deepest > BYTE_MARKS else -(-levels.size // 4)
        marks, entries = (xp.empty(k, np.uint32) for k in (size, levels.deepest + 1))
        device.launch(
            kernel, grid * block, *self._args, np.int64(len(levels.order)),
            np.int64(levels.deepest), levels.order, levels.level.astype(np.int32, copy=False),
            levels.offsets, np.int64(nwords(levels.size)), np.int64(size), marks, entries,
            xp.empty(1, np.int64), xp.zeros(GRID_BARRIER, np.uint32),
            block=block, cooperative=True,
        )  # fmt: skip
        for x in self._written:
            x.counted(None)
            x.forget()

    def _kernel(self) -> Kernel:
        """Write the text; `_args` gets what its parameters stand for."""
        body = self._body
        for x in (*self._written, *self._read):
            self._vector(x)
        columns, spec = self._columns(), self._spec()
        x, y = (self._names[id(v)] for v in (body.product.args[1], body.product.w))
        kind = body.product.w.dtype.ctype
        after = [line for s in body.after for line in self._statement(s)]
        before = [line for s in body.before for line in self._statement(s)]
        near = [self._names[id(v)] for v in (*self._kept, *self._read)]
        text = "\n".join(
            [
                '#include "sweep.cuh"',
                spec,
                f"typedef {self._mark()} Mark;",
                'extern "C" __global__ void __launch_bounds__(LG_BLOCK, 1)',
                "sweep(" + ", ".join([*self._params, *_PARAMS]) + ") {",
                "LG_SHARED(Later<Product>, later, 1);",
                f"const Swept<Product, Mark> s{{{columns}, {x}_values, "
                "reinterpret_cast<Mark*>(marks), order, offsets, entries};",
                "const i64 thread = global_thread(), threads = global_threads();",
                "for (i64 k = thread; k < num_marks; k += threads) marks[k] = 0;",
                "for (i64 k = thread; k <= deepest; k += threads) entries[k] = 0;",
                "for (i64 k = thread; k < num_words; k += threads) {",
                *(f"{self._names[id(w)]}_words[k] = 0;" for w in self._blank),
                "}",
                "const auto visit = [&](i32 v, i64 d, Entry<Product::Z> sum) {",
                *self._loads(),
                "if (d < deepest) {",
                *self._masks(here=False),
                f"{y} = {{sum.there, cast<{kind}>(sum.value)}};",
                *after,
                "}",
                "if (d > 0) {",
                *self._masks(here=True),
                *before,
                "}",
                *self._stores(x, y),
                "};",
                "const auto fetch = [&](i32 v) {",
                *(f"if ({name}_values) prefetch(&{name}_values[v]);" for name in near),
                "(void)v;",
                "};",
                "visit_levels(s, level, count, deepest, reached, later, barrier, visit, fetch);",
                "}",
            ]
        )
        block = SIM_BLOCK if self._device.name == "sim" else BLOCK
        prelude = "".join(self._texts)
        return from_source(text, "sweep", file="sweep.cu", prelude=prelude, BLOCK=str(block))

    def _mark(self) -> str:
        return "u32" if self._levels.deepest > BYTE_MARKS else "unsigned char"

    # --------------------------------------------------------------------------- parameters
    def _param(self, ctype: str, value: Any) -> str:
        """Add a parameter; return its name."""
        name = f"p{len(self._params)}"
        self._params.append(f"{ctype} {name}")
        self._args.append(value)
        return name

    def _vector(self, x: VectorStore) -> None:
        """Add the parameters of a vector: ``_words``, ``_values`` and ``_iso``."""
        name = self._names[id(x)] = f"v{len(self._names)}"
        const = "" if any(x is w for w in self._written) else "const "
        words, values, number = x.readable()
        for what, ctype, value in (
            ("words", f"{const}u32*", words),
            ("values", f"{const}{x.dtype.ctype}*", values),
            ("iso", x.dtype.ctype, number),
        ):
            self._params.append(f"{ctype} {name}_{what}")
            self._args.append(value)

    def _columns(self) -> str:
        """Add the parameters of the matrix; return the initialiser of its ``Columns``."""
        A, _, how = self._body.product.args
        form = by_outputs(A, how)
        types = index_types(form)
        parts = (
            self._param(f"const {types['PTR']}*", form.col_ptr),
            self._param(f"const {types['IDX']}*", form.row_idx),
            self._param(f"const {A.dtype.ctype}*", form.values),
            self._param(A.dtype.ctype, form.number),
        )
        return "{" + ", ".join(parts) + "}"

    def _spec(self) -> str:
        """Return the struct of the product's types."""
        A, x, how = self._body.product.args
        kinds = {
            "ADD": self._functor(monoid_functor(how.semiring.monoid)),
            "MUL": self._functor(operator_functor(how.semiring.multiply)),
            "U": x.dtype.ctype, "A": A.dtype.ctype, "T": how.domain.ctype, "Z": how.result.ctype,
            **index_types(by_outputs(A, how)),
        }  # fmt: skip
        body = " ".join(f"typedef {kind} {what};" for what, kind in kinds.items())
        flags = f"static constexpr bool flip = {str(how.flip).lower()}, iso = false;"
        return f"struct Product {{ {body} {flags} }};"

    def _functor(self, pair: tuple[str, str]) -> str:
        name, text = pair
        if text:
            self._texts[text] = None
        return name

    # ------------------------------------------------------------------------ at one vertex
    def _loads(self) -> list[str]:
        """Return the lines that make each vector a variable; a blank one has no entry yet."""
        lines = []
        for x in (*self._kept, *self._read):
            name, kind = self._names[id(x)], x.dtype.ctype
            args = f"{name}_words, {name}_values, {name}_iso, v"
            lines.append(f"Entry<{kind}> {name} = entry_at<{kind}>({args});")
        lines += [f"const bool had_{n} = {n}.there;" for n in self._names_of(self._kept)]
        for x in self._blank:
            kind = x.dtype.ctype
            lines.append(f"Entry<{kind}> {self._names[id(x)]}{{false, {kind}(0)}};")
        return lines

    def _masks(self, here: bool) -> list[str]:
        """Return the lines that make the masks variables."""
        inside, outside = "{true, true}", "{false, false}"
        return [
            f"const Entry<bool> here{inside if here else outside};",
            f"const Entry<bool> above{outside if here else inside};",
            "(void)here, (void)above;",
        ]

    def _stores(self, x: str, y: str) -> list[str]:
        """Return the lines that put the vectors back; blank ones keep the last turn's entries."""
        lines = []
        for name in self._names_of(self._kept):
            lines.append(f"put_back({name}_words, {name}_values, v, {name}, had_{name});")
        for name in self._names_of(self._blank):
            last = f"if ({name}.there && d == {int(name != y)})"
            if name == x:  # its neighbours read it
                lines.append(
                    f"if ({x}.there) {{ {x}_values[v] = {x}.value; s.marks[v] = Mark(d); }}"
                )
                lines.append(f"{last} set_bit({x}_words, v);")
            else:
                lines.append(f"{last} put_back({name}_words, {name}_values, v, {name}, false);")
        return lines

    def _names_of(self, vectors: list[VectorStore]) -> list[str]:
        return [self._names[id(x)] for x in vectors]

    def _statement(self, s: Statement) -> list[str]:
        """Return the lines of an element-wise statement."""
        z, source = self._source(s)
        accum = "Accum<NoAccum, bool, bool>"
        if s.desc.accum is not None:
            domain, result = s.desc.accum.types(s.w.dtype, z)
            name = self._functor(operator_functor(s.desc.accum))
            accum = f"Accum<{name}, {domain.ctype}, {result.ctype}>"
        w = self._names[id(s.w)]
        return [f"{w} = written<{accum}, {s.w.dtype.ctype}, {z.ctype}>({w}, {source}, v);"]

    def _source(self, s: Statement) -> tuple[DType, str]:
        """Return the type of a statement's result at v, and the expression that makes it."""
        args, method = s.args, s.method
        if method == "assign_scalar":
            kind = s.w.dtype.ctype
            return s.w.dtype, f"Entry<{kind}>{{true, {self._param(kind, args[0])}}}"
        u = args[0]
        if method in ("assign", "extract"):
            return u.dtype, self._mapped(u, unary.identity, Applied(u.dtype, u.dtype))
        if method == "apply":
            return args[2].result, self._mapped(u, args[1], args[2])
        x = self._name(u)
        if method == "select":
            _, op, thunk = args
            kind = lookup(thunk.dtype).ctype
            name = self._functor(operator_functor(op))
            types = f"{name}, {kind}, {u.dtype.ctype}"
            return u.dtype, f"chosen<{types}>({x}, {self._param(kind, thunk)}, v)"
        other, op = args[1:3]
        domain, result = op.types(u.dtype, other.dtype)
        zero = domain.numpy.type(0)
        defaults = args[3] if method == "ewise_union" else (zero, zero)
        missing = ", ".join(self._param(domain.ctype, d) for d in defaults)
        types = ", ".join(t.ctype for t in (domain, result, u.dtype, other.dtype))
        name = self._functor(operator_functor(op))
        what = f"{MODES[method]}, {x}, {self._name(other)}, {missing}, v"
        return result, f"combined<{name}, {types}>({what})"

    def _mapped(self, u: VectorStore, op: Any, how: Applied) -> str:
        name = self._functor(operator_functor(op))
        scalar = how.right if how.left is None else how.left
        zero = how.domain.numpy.type(0)
        bound = self._param(how.domain.ctype, zero if scalar is None else scalar)
        types = f"{name}, {how.domain.ctype}, {how.result.ctype}, {u.dtype.ctype}"
        side = "true" if how.left is not None else "false"
        return f"mapped<{types}>({self._name(u)}, {bound}, {side}, v)"

    def _name(self, x: VectorStore) -> str:
        if x is self._here or x is self._above:
            return "here" if x is self._here else "above"
        return self._names[id(x)]
