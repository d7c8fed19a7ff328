"""The text of generated kernels: parameters, and the expression of a statement.

`lagpu.backends.gpu.fused.program.text` writes a kernel for any loop, `emit_sweep` one for a sweep.
Both write statements as calls of the functions of common/entry.cuh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from lagpu.algebra.tables import unary
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import Prelude, accumulator, macros_of
from lagpu.backends.gpu.ops.elementwise import EWISE_MODES, bound_operand
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.gpu.storage.workspaces import Ranked, heads_of, ranked
from lagpu.dtypes import DType, lookup
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    BoundOperator,
    Descriptor,
    Ewise,
    Extract,
    Handle,
    Product,
    Select,
    Statement,
)

Array = Any
T = TypeVar("T")
Question = Callable[[Sequence[Handle]], T]  # to handles, by their places


class Run:
    """One run of a kernel: what its arguments are made of.

    Attributes
    ----------
    handles : sequence of Handle
        The vectors and matrices, by their places.
    blocks : int
        Thread blocks.
    barrier : array or None
        A barrier of the grid that a matrix' workspace has, once an argument needs that workspace.
    """

    def __init__(
        self, handles: Sequence[Handle], device: Device, blocks: int = 0, scalars: Any = None
    ) -> None:
        self.handles, self.device, self.blocks, self.scalars = handles, device, blocks, scalars
        self.barrier: Array = None

    def room(self, count: int, dtype: Any) -> Array:
        """Return uninitialised memory for `count` numbers."""
        self.device.require(count * np.dtype(dtype).itemsize, "fused loop")
        return self.device.xp.empty(count, dtype)


Make = Callable[[Run], Sequence[Any]]


class Arguments:
    """The arguments of a kernel, for one run after the other, on other handles each time.

    So they hold numbers alone. What belongs to handles is made of them in each run, and what the
    text takes for granted of handles is asked of them before.
    """

    def __init__(self) -> None:
        self._fixed: list[Any] = []
        self._made: list[tuple[int, int, Make]] = []
        self._asked: list[tuple[Question[Any], Any]] = []

    def fix(self, value: Any) -> None:
        """Add an argument that is the same in each run."""
        self._fixed.append(value)

    def make(self, count: int, make: Make) -> None:
        """Add so many arguments, which `make` returns for a run."""
        first = len(self._fixed)
        self._fixed += [None] * count
        self._made.append((first, first + count, make))

    def ask(self, question: Question[T], handles: Sequence[Handle]) -> T:
        """Return an answer that the text is going to take for granted."""
        answer = question(handles)
        self._asked.append((question, answer))
        return answer

    def fit(self, handles: Sequence[Handle]) -> bool:
        """Whether all answers are the same for these handles."""
        return all(question(handles) == answer for question, answer in self._asked)

    def of(self, run: Run) -> list[Any]:
        """Return the arguments of a run."""
        found = list(self._fixed)
        for first, end, make in self._made:
            found[first:end] = make(run)
        return found


class Parameters:
    """The names in the text of a kernel, each with its argument, and the functors it uses.

    Attributes
    ----------
    handles : list of Handle
        Vectors and matrices that have a place; others get the next ones.
    arguments : Arguments
        One for each name. They, and all functions given to `made` and `ask`, may outlive the
        handles, so they name them by their places.
    text, structs : list of str
        ``"type name"`` of each parameter, and the structs of the products' types.
    """

    def __init__(self, handles: Sequence[Handle] = ()) -> None:
        self.handles: list[Handle] = list(handles)
        self.arguments = Arguments()
        self._names: dict[int, str] = {}
        self.text: list[str] = []
        self.structs: list[str] = []
        self.prelude = Prelude()

    def add(self, ctype: str, value: Any, name: str = "") -> str:
        """Add a parameter whose argument is the same in each run; return its name."""
        name = name or f"p{len(self.text)}"
        self.text.append(f"{ctype} {name}")
        self.arguments.fix(value)
        return name

    def made(self, ctypes: Sequence[str], make: Make) -> list[str]:
        """Add parameters whose arguments `make` returns in each run; return their names."""
        names = [f"p{k}" for k, _ in enumerate(ctypes, len(self.text))]
        self.text += [f"{ctype} {name}" for ctype, name in zip(ctypes, names, strict=True)]
        self.arguments.make(len(names), make)
        return names

    def room(self, ctype: str, count: int, dtype: Any) -> str:
        """Add room for `count` numbers, which the kernel calls `ctype`; return its name."""
        return self.made([f"{ctype}*"], lambda run: [run.room(count, dtype)])[0]

    def size(self, size: int) -> str:
        """Add a number of indices."""
        return self.add("i64", np.int64(size))

    def place(self, x: Handle) -> int:
        """Return the place of a handle."""
        for place, other in enumerate(self.handles):
            if other is x:
                return place
        self.handles.append(x)
        return len(self.handles) - 1

    def ask(self, question: Question[T]) -> T:
        """Return what handles answer, which the text is going to take for granted.

        Types and shapes need no question.
        """
        return self.arguments.ask(question, self.handles)

    def vector(self, x: VectorStore, written: bool = False) -> str:
        """Return the name of a vector: ``_words``, ``_values`` and ``_iso`` follow it.

        One that the kernel writes must be added as such before it is read.
        """
        name = self._names.get(id(x))
        if name is None:
            name = self._names[id(x)] = f"v{len(self._names)}"
            const, kind, place = "" if written else "const ", x.dtype.ctype, self.place(x)
            self.text.append(f"{const}u32* {name}_words")
            self.text.append(f"{const}{kind}* {name}_values")
            self.text.append(f"{kind} {name}_iso")
            self.arguments.make(3, lambda run: run.handles[place].readable())
        return name

    def entries(self, x: VectorStore) -> str:
        """Return where a vector is, as three arguments: words, values and number."""
        name = self.vector(x)
        return f"{name}_words, {name}_values, {name}_iso"

    def product(self, product: Product, u: DType, a: DType, name: str, /, **more: str) -> str:
        """Add the struct of a product's types; return its name."""
        macros, _ = macros_of(product, u, a, self.prelude)
        kinds = {what: macros[what] for what in ("ADD", "MUL", "U", "A", "T", "Z")} | more
        body = " ".join(f"typedef {kind} {what};" for what, kind in kinds.items())
        flags = f"flip = {str(product.flip).lower()}, iso = false"
        self.structs.append(f"struct {name} {{ {body} static constexpr bool {flags}; }};")
        return name


# ------------------------------------------------------------------ arguments of a matrix' forms
def column_types(types: dict[str, str], values: DType) -> tuple[str, ...]:
    """Return the types of the parameters of a ``Columns``; `types` are those of indices."""
    kind = values.ctype
    return f"const {types['PTR']}*", f"const {types['IDX']}*", f"const {kind}*", kind


def columns_of(form: CscMatrix | None, values: DType) -> tuple[Any, ...]:
    """Return the arguments of a ``Columns``, null if the form is not there."""
    if form is None:
        return None, None, None, values.numpy.type(0)
    return form.col_ptr, form.row_idx, form.values, form.number


def whole_types(types: dict[str, str], u: DType, result: DType) -> tuple[str, ...]:
    """Return the types of the parameters of a ``MaybeWhole``."""
    return (
        *("const u32*", "const u32*", "const i32*", "const u32*", "i64", "i64", "i64"),
        *(f"{result.ctype}*", f"const {types['IDX']}*", "const i32*", f"{u.ctype}*"),
    )


def whole_sums(
    form: CscMatrix | None, rows: CscMatrix | None, u: DType, parts: Array
) -> tuple[Any, ...]:
    """Return the arguments of a ``MaybeWhole``, whose pointers are null if there is no such form.

    `form` and `rows` are the matrix by the columns of the outputs, and of the inputs, if they are
    there; `u` is the type of the product's vector, `parts` has room for a sum of each warp.
    """
    heads = None if form is None else heads_of(form)
    ranks, sizes = Ranked(None, None, None), [np.int64(0)] * 3
    if form is not None and heads is not None:
        ranks = ranked(form, rows, u.numpy.itemsize)
        ranks = ranks if ranks.idx is not None else ranks._replace(idx=form.row_idx)
        sizes = [np.int64(size) for size in (form.nvals, *form.shape[::-1])]
    room = None if ranks.words is None else ranks.words.view(u.numpy)
    return (*(heads or (None,) * 4), *sizes, parts, ranks.idx, ranks.rank, room)


def accum_type(params: Parameters, desc: Descriptor, w: DType, z: DType) -> str:
    """Return the accumulator's type for results of type `z`; without one, that which assigns."""
    return f"Accum<{', '.join(accumulator(desc.accum, w, z, params.prelude))}>"


def write_here(w: str, types: str, z: str, i: str) -> str:
    """Return the lines that write entry `z`, of index `i`, into the entry in the variable `w`.

    Its value is what memory would give back, as between statements that run by themselves.
    """
    return f"{w} = written<{types}>({w}, {z}, {i}); {w}.value = as_stored({w}.value);"


# ------------------------------------------------------------------------------- expressions
class Writer(Protocol):
    """Writes the parts that `expression` composes, as one kind of kernel spells them."""

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
