"""The text of a kernel for the recorded body of a sweep: one function of a vertex.

It depends on operations and types alone, so sweeps of one structure share one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lagpu.algebra.tables import unary
from lagpu.backends.gpu.fused.level_order import InOrder
from lagpu.backends.gpu.fused.sweepmatch import Matched, inputs_of
from lagpu.backends.gpu.kernels.functors import monoid_functor, operator_functor
from lagpu.backends.gpu.ops.spmv_launch import by_outputs
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.gpu.storage.workspaces import index_types
from lagpu.backends.protocol import Applied, Statement
from lagpu.dtypes import DType, lookup

__all__ = ["Frame", "SweepText"]

MODES = {"ewise_add": 0, "ewise_mult": 1, "ewise_union": 2}


class Frame(NamedTuple):
    """What stands around the function of a vertex.

    Attributes
    ----------
    params : tuple of str
        Parameters behind those of the body.
    bounds : str
        Arguments of ``__launch_bounds__``.
    at : str
        The type that says where entries stand.
    swept : str
        What ``Swept`` has behind the columns and the operand's values.
    made : str
        What notes an entry of the multiplied vector, ``{x}`` at vertex ``v``, for its neighbours.
    before, after : tuple of str
        Lines that open the kernel, and that use ``visit`` and ``fetch``.
    """

    params: tuple[str, ...]
    bounds: str
    at: str
    swept: str
    made: str
    before: tuple[str, ...]
    after: tuple[str, ...]


class SweepText:
    """The function of a vertex, and what its parameters stand for.

    Parameters
    ----------
    body : Matched
        The statements; of a sweep over blocks, on the vectors that their entries are.
    here, above : VectorStore
        The masks that they name.

    Attributes
    ----------
    blank : list of VectorStore
        What has entries in the last turn alone.
    kept : list of VectorStore
        What keeps its entries from turn to turn.
    written : list of VectorStore
        Both of these.
    read : list of VectorStore
        What is read alone.
    x : VectorStore
        What the product multiplies; it is blank.
    prelude : str
        The text of users' functors, once `write` has run.
    args : list
        The arguments for the body's parameters, once `write` has run.
    """

    def __init__(self, body: Matched, here: VectorStore, above: VectorStore) -> None:
        self._body, self._here, self._above = body, here, above
        self.blank = [*body.replaced, body.product.w]
        statements = (*body.before, body.product, *body.after)
        self.written = list({id(s.w): s.w for s in statements}.values())
        self.x: VectorStore = body.product.args[1]
        self.kept = [w for w in self.written if not any(w is x for x in self.blank)]
        read = {id(x): x for s in (*body.before, *body.after) for x in inputs_of(s)}
        own = [*self.written, here, above]
        self.read = [x for x in read.values() if not any(x is y for y in own)]
        self._names: dict[int, str] = {}
        self._params: list[str] = []
        self.args: list[Any] = []
        self._texts: dict[str, None] = {}  # of users' functors, each once

    @property
    def prelude(self) -> str:
        """See the class."""
        return "".join(self._texts)

    def make_room(self) -> None:
        """Store bits and values of all that is written; the bits of what is blank are not set."""
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

    def changed(self) -> None:
        """Forget what was known of the vectors written."""
        for x in self.written:
            x.counted(None)
            x.forget()

    def write(self, framed: Callable[[SweepText], Frame], inorder: InOrder | None = None) -> str:
        """Return the text of the kernel ``sweep``; `framed` is asked once vectors have names.

        Kept and read vectors are in order if `inorder` is given.
        """
        body = self._body
        for v in (*self.written, *self.read):
            self._vector(v, inorder)
        frame = framed(self)
        columns, spec = self._columns(), self._spec()
        x, y = (self._names[id(v)] for v in (self.x, body.product.w))
        values = f"{x}_values" if inorder is None else f"{x}_made"
        kind = body.product.w.dtype.ctype
        after = [line for s in body.after for line in self._statement(s)]
        before = [line for s in body.before for line in self._statement(s)]
        near = self._names_of([*self.kept, *self.read])
        # A line of words serves many vertices, so it is near already; one of bytes may not be.
        bytes_near = near if inorder is not None else []
        return "\n".join(
            [
                '#include "sweep/levels.cuh"',
                spec,
                f'extern "C" __global__ void __launch_bounds__({frame.bounds})',
                "sweep(" + ", ".join([*self._params, *frame.params]) + ") {",
                f"typedef {frame.at} At;",
                "typedef Later<Product, At> Deferred;",
                "LG_SHARED(Deferred, later, 1);",
                *frame.before,
                f"const Swept<Product, At> s{{{columns}, {values}, {frame.swept}}};",
                "const auto visit = [&](const Place<Product, At>& its, i64 d, "
                "Entry<Product::Z> sum) {",
                "const i32 v = its.v;",
                "const i64 at = s.at.home(v, its.rank), in_block = s.at.block(v);",
                "const i64 i = s.at.i(v), j = s.at.j(v);",
                "(void)i, (void)j, (void)in_block;",
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

    def _param(self, ctype: str, value: Any) -> str:
        """Add a parameter; return its name."""
        name = f"p{len(self._params)}"
        self._params.append(f"{ctype} {name}")
        self.args.append(value)
        return name

    def _vector(self, x: VectorStore, inorder: InOrder | None) -> None:
        """Add the parameters of a vector: ``_words``, ``_values`` and ``_iso``.

        In order what stands for words is presence, a byte each. The multiplied vector has ``_has``
        and ``_made`` there while the sweep runs, and its words in the end.
        """
        name = self._names[id(x)] = f"v{len(self._names)}"
        const = "" if any(x is w for w in self.written) else "const "
        kind, presence = x.dtype.ctype, "u32"
        words, values, number = x.readable()
        if inorder is not None and not any(x is b for b in self.blank):
            (words, values), presence = inorder.of(x), "bool"
        parts = [
            ("words", f"{const}{presence}*", words),
            ("values", f"{const}{kind}*", values),
            ("iso", kind, number),
        ]
        if inorder is not None and x is self.x:
            has, made = inorder.of(x)
            parts += [("has", "bool*", has), ("made", f"{kind}*", made)]
        for what, ctype, value in parts:
            self._params.append(f"{ctype} {name}_{what}")
            self.args.append(value)

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
                lines += [made.format(x=x), f"{last} set_bit({x}_words, in_block);"]
            else:
                what = f"{name}_words, {name}_values, in_block, {name}, false"
                lines.append(f"{last} put_back({what});")
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
        return [f"{w} = written<{accum}, {s.w.dtype.ctype}, {z.ctype}>({w}, {source}, i);"]

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
            return u.dtype, f"chosen<{types}>({x}, {self._param(kind, thunk)}, i, j)"
        other, op = args[1:3]
        domain, result = op.types(u.dtype, other.dtype)
        zero = domain.numpy.type(0)
        defaults = args[3] if method == "ewise_union" else (zero, zero)
        missing = ", ".join(self._param(domain.ctype, d) for d in defaults)
        types = ", ".join(t.ctype for t in (domain, result, u.dtype, other.dtype))
        name = self._functor(operator_functor(op))
        what = f"{MODES[method]}, {x}, {self._name(other)}, {missing}, i, j"
        return result, f"combined<{name}, {types}>({what})"

    def _mapped(self, u: VectorStore, op: Any, how: Applied) -> str:
        name = self._functor(operator_functor(op))
        scalar = how.right if how.left is None else how.left
        zero = how.domain.numpy.type(0)
        bound = self._param(how.domain.ctype, zero if scalar is None else scalar)
        types = f"{name}, {how.domain.ctype}, {how.result.ctype}, {u.dtype.ctype}"
        side = "true" if how.left is not None else "false"
        return f"mapped<{types}>({self._name(u)}, {bound}, {side}, i, j)"

    def _name(self, x: VectorStore) -> str:
        if x is self._here or x is self._above:
            return "here" if x is self._here else "above"
        return self._names[id(x)]
