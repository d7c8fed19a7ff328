"""The text of generated kernels: parameters, the expression of a statement, the lines of a log.

`lagpu.backends.gpu.fused.program` writes a kernel for any loop, `emit_sweep` one for a sweep. Both
write statements as calls of the functions of common/entry.cuh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from lagpu.algebra.tables import unary
from lagpu.backends.gpu.kernels.functors import Prelude, accumulator, macros_of
from lagpu.backends.gpu.ops.elementwise import EWISE_MODES, bound_operand
from lagpu.backends.gpu.storage.heads import heads_of
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.gpu.storage.workspaces import Ranked, index_types, ranked
from lagpu.dtypes import DType, lookup
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    BoundOperator,
    Descriptor,
    Ewise,
    Extract,
    Multiply,
    Product,
    Select,
    Statement,
)

__all__ = [
    "LogLines",
    "Parameters",
    "Writer",
    "accum_type",
    "columns_of",
    "expression",
    "whole_sums",
]


class Parameters:
    """The names in the text of a kernel, each with its argument, and the functors it uses.

    Attributes
    ----------
    text : list of str
        ``"type name"`` of each parameter.
    structs : list of str
        The structs of the products' types.
    prelude : Prelude
        The texts of users' operators.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._args: list[Any] = []
        self.text: list[str] = []
        self.structs: list[str] = []
        self.prelude = Prelude()

    def add(self, ctype: str, value: Any) -> str:
        """Add a parameter; return its name.

        A callable `value` is called with the number of thread blocks, and returns the argument.
        """
        name = f"p{len(self.text)}"
        self._append(f"{ctype} {name}", value)
        return name

    def size(self, size: int) -> str:
        """Add a number of indices."""
        return self.add("i64", np.int64(size))

    def vector(self, x: VectorStore, written: bool = False) -> str:
        """Return the name of a vector: ``_words``, ``_values`` and ``_iso`` follow it.

        One that the kernel writes must be added as such before it is read.
        """
        name = self._names.get(id(x))
        if name is None:
            words, values, number = x.readable()
            const = "" if written else "const "
            parts = (
                ("words", f"{const}u32*", words),
                ("values", f"{const}{x.dtype.ctype}*", values),
                ("iso", x.dtype.ctype, number),
            )
            name = self.declare(x, parts)
        return name

    def declare(self, x: VectorStore, parts: Sequence[tuple[str, str, Any]]) -> str:
        """Add a vector as parameters (what, type, argument); return its name, as `vector` does."""
        name = self._names[id(x)] = f"v{len(self._names)}"
        for what, ctype, value in parts:
            self._append(f"{ctype} {name}_{what}", value)
        return name

    def product(self, product: Product, u: DType, a: DType, name: str, /, **more: str) -> str:
        """Add the struct of a product's types; return its name.

        Parameters
        ----------
        product : Product
            The algebra.
        u, a : DType
            Types of the vector and of the matrix.
        name : str
            Of the struct.
        **more
            Further types by their names.
        """
        macros, _ = macros_of(product, u, a, self.prelude)
        kinds = {what: macros[what] for what in ("ADD", "MUL", "U", "A", "T", "Z")} | more
        body = " ".join(f"typedef {kind} {what};" for what, kind in kinds.items())
        flags = f"flip = {str(product.flip).lower()}, iso = false"
        self.structs.append(f"struct {name} {{ {body} static constexpr bool {flags}; }};")
        return name

    def arguments(self, blocks: int = 0) -> list[Any]:
        """Return the kernel's arguments for a grid of `blocks` thread blocks."""
        return [x(blocks) if callable(x) else x for x in self._args]

    def _append(self, text: str, value: Any) -> None:
        self.text.append(text)
        self._args.append(value)


def columns_of(params: Parameters, form: CscMatrix | None, A: CscMatrix) -> str:
    """Return the initialiser of the ``Columns`` of a form, null if it is not there."""
    types = index_types(A)
    ptr, idx, values = (
        (None, None, None) if form is None else (form.col_ptr, form.row_idx, form.values)
    )
    number = A.dtype.numpy.type(0) if form is None else form.number
    parts = (
        params.add(f"const {types['PTR']}*", ptr),
        params.add(f"const {types['IDX']}*", idx),
        params.add(f"const {A.dtype.ctype}*", values),
        params.add(A.dtype.ctype, number),
    )
    return "{" + ", ".join(parts) + "}"


def whole_sums(
    params: Parameters,
    spec: str,
    forms: tuple[CscMatrix | None, CscMatrix | None],
    A: CscMatrix,
    operation: Multiply,
    parts: Callable[[int], Any],
) -> str:
    """Return the ``MaybeWhole`` of a product, whose pointers are null if it has no such form.

    Parameters
    ----------
    params : Parameters
        Of the kernel.
    spec : str
        The struct of the product's types.
    forms : tuple
        The matrix by the columns of the outputs, and of the inputs, if they are there.
    A : CscMatrix
        The matrix as it is stored.
    operation : Multiply
        The product.
    parts : callable
        Makes room for a sum of each warp, of a number of thread blocks.
    """
    u, kind = operation.operand.dtype, operation.product.result.ctype
    form, rows = forms
    heads = None if form is None else heads_of(form)
    ranks, sizes = Ranked(None, None, None), [np.int64(0)] * 3
    if form is not None and heads is not None:
        ranks = ranked(form, rows, u.numpy.itemsize)
        ranks = ranks if ranks.idx is not None else ranks._replace(idx=form.row_idx)
        sizes = [np.int64(size) for size in (form.nvals, *form.shape[::-1])]
    room = None if ranks.words is None else ranks.words.view(u.numpy)
    arrays = heads or (None,) * 4
    idx = index_types(A)["IDX"]
    names = (
        *zip(("const u32*", "const u32*", "const i32*", "const u32*"), arrays, strict=True),
        *(("i64", size) for size in sizes),
        (f"{kind}*", parts),
        *((f"const {idx}*", ranks.idx), ("const i32*", ranks.rank), (f"{u.ctype}*", room)),
    )
    given = ", ".join(params.add(ctype, value) for ctype, value in names)
    return f"MaybeWhole<{spec}>{{{{{given}}}}}"


def accum_type(params: Parameters, desc: Descriptor, w: DType, z: DType) -> str:
    """Return the accumulator's type for results of type `z`; without one, that which assigns."""
    return f"Accum<{', '.join(accumulator(desc.accum, w, z, params.prelude))}>"


# ------------------------------------------------------------------------------- expressions
class Writer(Protocol):
    """Writes the parts that `expression` composes, as one kind of kernel spells them.

    Attributes
    ----------
    params : Parameters
        Of the kernel.
    """

    params: Parameters

    def operand(self, x: VectorStore) -> str:
        """Return the text for a vector."""

    def number(self, ctype: str, value: Any) -> str:
        """Return the text for a number of a statement, a NumPy scalar or a ScalarRef."""

    def counter(self, ctype: str) -> str:
        """Return the text for the loop's counter."""

    def constant(self, ctype: str, value: str) -> str:
        """Return the text for an entry of value `value` everywhere."""

    def call(self, name: str, types: str, args: str) -> str:
        """Return a call of ``mapped``, ``selected`` or ``combined`` of common/entry.cuh."""


def expression(s: Statement, write: Writer) -> tuple[DType, str]:
    """Return (type, text) of an element-wise statement's results."""
    operation, functor = s.operation, write.params.prelude.functor
    if isinstance(operation, AssignScalar):
        kind = s.out.dtype.ctype
        value = write.counter(kind) if s.assigns_counter else write.number(kind, operation.value)
        return s.out.dtype, write.constant(kind, value)
    if isinstance(operation, (Assign, Extract)):
        u = operation.operand
        return u.dtype, _mapped(write, u, BoundOperator(unary.identity, u.dtype, u.dtype))
    if isinstance(operation, Apply):
        return operation.function.result, _mapped(write, operation.operand, operation.function)
    if isinstance(operation, Select):
        u, kind = operation.operand, lookup(operation.thunk.dtype).ctype
        x = write.operand(u)
        types = f"{functor(operation.op)}, {kind}, {u.dtype.ctype}"
        thunk = write.number(kind, operation.thunk)
        return u.dtype, write.call("selected", types, f"{x}, {thunk}")
    assert isinstance(operation, Ewise)
    left, right = operation.left, operation.right
    domain, result = operation.op.types(left.dtype, right.dtype)
    x, y = write.operand(left), write.operand(right)
    missing = [write.number(domain.ctype, d) for d in operation.defaults or (domain.zero,) * 2]
    types = ", ".join(t.ctype for t in (domain, result, left.dtype, right.dtype))
    args = ", ".join([str(EWISE_MODES[operation.kind]), x, y, *missing])
    return result, write.call("combined", f"{functor(operation.op)}, {types}", args)


def _mapped(write: Writer, u: VectorStore, function: BoundOperator) -> str:
    x, name = write.operand(u), write.params.prelude.functor(function.op)
    scalar, is_left = bound_operand(function)
    bound = write.number(function.domain.ctype, scalar)
    types = f"{name}, {function.domain.ctype}, {function.result.ctype}, {u.dtype.ctype}"
    return write.call("mapped", types, f"{x}, {bound}, {str(is_left).lower()}")


# -------------------------------------------------------------------------------- the log
class LogLines:
    """The lines by which a generated loop logs its statements; none without a log.

    Parameters
    ----------
    statements : int
        How many the body has.
    on : bool
        Whether there is a log.
    """

    def __init__(self, statements: int, on: bool) -> None:
        self.on = on
        self._statements = statements
        self._fills: list[str] = []

    def written(
        self, total: str, counter: int, how: str, edges: str, frontier_edges: str
    ) -> list[str]:
        """Return lines that run `total`, count the entries it wrote, and stamp its record."""
        k, many = len(self._fills), self._statements
        self._fills.append(
            f"log->fill({k}, {many}, load_volatile(at + {counter} * kCounterStride), {edges}, "
            f"{frontier_edges});"
        )
        return [
            f"add_total({total}, now + {counter} * kCounterStride);",
            f"if (global_thread() == 0) log->stamp({k}, {many}, depth, {how});",
        ]

    def params(self) -> list[str]:
        """Return the kernel's last parameters."""
        return self._if_on("u64* log_words", "bool log_is_new")

    def opening(self) -> list[str]:
        """Return the lines before the loop; call it after all statements are written."""
        return self._if_on(
            "LG_SHARED(LoopLog, log, 1);",
            "if (global_thread() == 0) log->open(log_words, log_is_new);",
            "bool open = false;",
            "const auto flush = [&](const u64* at) {",
            "open = false;",
            "if (global_thread() != 0) return;",
            *self._fills,
            f"log->next({self._statements});",
            "};",
        )

    def at_top(self, counters: int) -> list[str]:
        """Return the lines after the barrier at the top of an iteration."""
        before = f"counters + (turn + 2) % kTurns * {counters} * kCounterStride"
        return self._if_on(f"if (open) flush({before});", "block_sync();")

    def at_end(self) -> list[str]:
        """Return the lines after the barrier at the end of an iteration."""
        return self._if_on("flush(now);", "block_sync();")

    def pending(self) -> list[str]:
        """Return the last line of an iteration whose counts are complete in the next one."""
        return self._if_on("open = true;")

    def closing(self, counters: int) -> list[str]:
        """Return the lines after the loop."""
        before = f"counters + (turn + 2) % kTurns * {counters} * kCounterStride"
        return self._if_on(
            f"if (open) {{ grid_sync(barrier); flush({before}); }}",
            "if (global_thread() == 0) log->close();",
        )

    def _if_on(self, *lines: str) -> list[str]:
        return list(lines) if self.on else []
