"""The text of a kernel for the recorded body of a sweep: one function of a vertex.

It depends on operations and types alone, so sweeps of one structure share one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lagpu.backends.gpu.fused.emit import (
    Parameters,
    Run,
    accum_type,
    column_types,
    columns_of,
    expression,
    write_here,
)
from lagpu.backends.gpu.fused.level_order import LevelOrder
from lagpu.backends.gpu.fused.match import SweepBody
from lagpu.backends.gpu.ops.strategies import by_outputs
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.gpu.storage.workspaces import index_types
from lagpu.operations import Statement, operands_of

__all__ = ["Frame", "SweepText"]


class Frame(NamedTuple):
    """The frame of a sweep's kernel, around the function of a vertex.

    Attributes
    ----------
    params : tuple of str
        Parameters after those of the body.
    bounds : str
        Arguments of ``__launch_bounds__``.
    at : str
        The type of sweep/vertex.cuh that locates entries.
    swept : str
        The fields of ``Swept`` after the columns and the operand's values.
    made : str
        The statement that stores an entry of the multiplied vector, ``{x}`` at vertex ``v``.
    before, after : tuple of str
        The first lines of the kernel, and those that call ``visit`` and ``fetch``.
    """

    params: tuple[str, ...]
    bounds: str
    at: str
    swept: str
    made: str
    before: tuple[str, ...]
    after: tuple[str, ...]


class SweepText:
    """The function of a vertex, and its parameters.

    Parameters
    ----------
    body : SweepBody
        The statements, on vectors; for a sweep over a matrix, those that store its entries.
    here, above : VectorStore
        The masks of the sweep.

    Attributes
    ----------
    params : Parameters
        Of the kernel; those of the body, once `write` has run.
    blank : list of VectorStore
        Vectors that have entries in the last iteration alone.
    kept : list of VectorStore
        Vectors that keep their entries from iteration to iteration.
    written : list of VectorStore
        Blank and kept vectors.
    read : list of VectorStore
        Vectors that are only read.
    x : VectorStore
        The operand of the product; it is blank.
    """

    def __init__(self, body: SweepBody, here: VectorStore, above: VectorStore) -> None:
        self._body, self._here, self._above = body, here, above
        self.blank: list[VectorStore] = [*body.replaced, body.product.out]
        statements = (*body.before, body.product, *body.after)
        self.written = list({id(s.out): s.out for s in statements}.values())
        self.x: VectorStore = body.multiply.operand
        self.kept = [w for w in self.written if not any(w is x for x in self.blank)]
        around = (*body.before, *body.after)
        read = {id(x): x for s in around for x in operands_of(s.operation)}
        own = [*self.written, here, above]
        self.read = [x for x in read.values() if not any(x is y for y in own)]
        self._names: dict[int, str] = {}
        self.params = Parameters()

    def make_room(self) -> None:
        """Allocate bits and values of all vectors written; the bits of blank ones are not set."""
        for x in self.blank:
            x.set_empty()
            x.to_blank()
        for x in self.kept:
            x.to_writable()

    def names_of_blank(self) -> list[str]:
        """Return the names of the blank vectors in the text."""
        return self._names_of(self.blank)

    def name_of(self, x: VectorStore) -> str:
        """Return the name of a vector in the text."""
        return self._names[id(x)]

    def arguments(self) -> list[Any]:
        """Return the arguments of the kernel that `write` has written."""
        return self.params.arguments.of(Run(self.params.handles, self.x.device))

    def changed(self) -> None:
        """Forget the counts and statistics of the vectors that the kernel writes."""
        for x in self.written:
            x.changes()

    def write(
        self, framed: Callable[[SweepText], Frame], level_order: LevelOrder | None = None
    ) -> str:
        """Return the text of the kernel ``sweep``; `framed` is asked once vectors have names.

        Kept and read vectors are in level order if `level_order` is given.
        """
        body = self._body
        for v in (*self.written, *self.read):
            self._vector(v, level_order)
        frame = framed(self)
        columns, types = self._columns(), index_types(by_outputs(*self._matrix()))
        A, product = self._matrix()
        self.params.product(product, self.x.dtype, A.dtype, "Product", **types)
        x, y = (self._names[id(v)] for v in (self.x, body.product.out))
        values = f"{x}_values" if level_order is None else f"{x}_made"
        kind = body.product.out.dtype.ctype
        after = [line for s in body.after for line in self._statement(s)]
        before = [line for s in body.before for line in self._statement(s)]
        near = self._names_of([*self.kept, *self.read])
        # A line of words serves many vertices, so it is near already; one of bytes may not be.
        bytes_near = near if level_order is not None else []
        return "\n".join(
            [
                '#include "sweep/levels.cuh"',
                *self.params.structs,
                f'extern "C" __global__ void __launch_bounds__({frame.bounds})',
                "sweep(" + ", ".join([*self.params.text, *frame.params]) + ") {",
                f"typedef {frame.at} At;",
                "typedef Later<Product, At> Deferred;",
                "LG_SHARED(Deferred, later, 1);",
                *frame.before,
                f"const Swept<Product, At> s{{{columns}, {values}, {frame.swept}}};",
                "const auto visit = [&](const Place<Product, At>& its, i64 d, "
                "Entry<Product::Z> sum) {",
                "const i32 v = its.v;",
                "const i64 at = s.at.home(v, its.rank), in_bitmap = s.at.in_bitmap(v);",
                "const i64 i = s.at.i(v), j = s.at.j(v);",
                "(void)i, (void)j, (void)in_bitmap;",
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
                *self._stores(x, y, frame.made),
                "};",
                "const auto fetch = [&](const Place<Product, At>& next) {",
                "const i64 at = s.at.home(next.v, next.rank);",
                *(f"if ({name}_values) prefetch(&{name}_values[at]);" for name in near),
                *(f"if ({name}_words) prefetch(&{name}_words[at]);" for name in bytes_near),
                "};",
                *frame.after,
                "}",
            ]
        )

    def _vector(self, x: VectorStore, level_order: LevelOrder | None) -> None:
        """Add the parameters of a vector: ``_words``, ``_values`` and ``_iso``.

        In level order presence is a byte each, in place of words. The multiplied vector has
        ``_has`` and ``_made`` there while the sweep runs, and its words in the end.
        """
        const = "" if any(x is w for w in self.written) else "const "
        kind, presence = x.dtype.ctype, "u32"
        words, values, number = x.readable()
        if level_order is not None and not any(x is b for b in self.blank):
            (words, values), presence = level_order.of(x), "bool"
        parts = [
            ("words", f"{const}{presence}*", words),
            ("values", f"{const}{kind}*", values),
            ("iso", kind, number),
        ]
        if level_order is not None and x is self.x:
            has, made = level_order.of(x)
            parts += [("has", "bool*", has), ("made", f"{kind}*", made)]
        name = self._names[id(x)] = f"v{len(self._names)}"
        for what, ctype, argument in parts:
            self.params.add(ctype, argument, f"{name}_{what}")

    def _matrix(self) -> tuple[Any, Any]:
        """Return the matrix by columns and the algebra of the product."""
        return self._body.multiply.matrix.csc(), self._body.multiply.product

    def _columns(self) -> str:
        """Add the parameters of the matrix; return the initialiser of its ``Columns``."""
        A, product = self._matrix()
        form = by_outputs(A, product)
        kinds = column_types(index_types(form), A.dtype)
        return "{" + ", ".join(map(self.params.add, kinds, columns_of(form, A.dtype))) + "}"

    # ------------------------------------------------------------------------ at one vertex
    def _loads(self) -> list[str]:
        """Return the lines that make each vector a variable; a blank one has no entry yet."""
        lines = []
        for x in (*self.kept, *self.read):
            name, kind = self._names[id(x)], x.dtype.ctype
            args = f"{name}_words, {name}_values, {name}_iso, at"
            lines.append(f"Entry<{kind}> {name} = entry_at<{kind}>({args});")
        lines += [f"const bool had_{n} = {n}.there;" for n in self._names_of(self.kept)]
        for x in self.blank:
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

    def _stores(self, x: str, y: str, made: str) -> list[str]:
        """Return the lines that put the vectors back; blank ones keep the last turn's entries."""
        lines = []
        for name in self._names_of(self.kept):
            lines.append(f"put_back({name}_words, {name}_values, at, {name}, had_{name});")
        for name in self._names_of(self.blank):
            last = f"if ({name}.there && d == {int(name != y)})"
            if name == x:
                lines += [made.format(x=x), f"{last} set_bit({x}_words, in_bitmap);"]
            else:
                what = f"{name}_words, {name}_values, in_bitmap, {name}, false"
                lines.append(f"{last} put_back({what});")
        return lines

    def _names_of(self, vectors: list[VectorStore]) -> list[str]:
        return [self._names[id(x)] for x in vectors]

    def _statement(self, s: Statement) -> list[str]:
        """Return the lines of an element-wise statement."""
        z, source = expression(s, self)
        w, kind = self._names[id(s.out)], s.out.dtype
        accum = accum_type(self.params, s.desc, kind, z)
        return [write_here(w, f"{accum}, {kind.ctype}, {z.ctype}", source, "i")]

    def operand(self, x: VectorStore) -> str:
        """See `Writer`: the variable that is the vector's entry at the vertex."""
        if x is self._here or x is self._above:
            return "here" if x is self._here else "above"
        return self._names[id(x)]

    def number(self, ctype: str, value: Any) -> str:
        """See `Writer`."""
        return self.params.add(ctype, value)

    def counter(self, ctype: str) -> str:
        """See `Writer`."""
        raise AssertionError(f"a sweep has no counter of type {ctype}")

    def constant(self, ctype: str, value: str) -> str:
        """See `Writer`."""
        return f"Entry<{ctype}>{{true, {value}}}"

    def call(self, name: str, types: str, args: str) -> str:
        """See `Writer`: a function of the entries at the vertex."""
        return f"{name}<{types}>({args}, i, j)"
