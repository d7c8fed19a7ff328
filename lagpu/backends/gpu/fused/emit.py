"""The text of generated kernels: parameters, expressions, scalars, and what statements name.

`lagpu.backends.gpu.fused.program.text` writes a kernel for any loop, `FusedSweep` one for a sweep.
Both write statements as calls of the functions of common/entry.cuh.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

import lagpu.operations as ops
from lagpu.algebra.tables import unary
from lagpu.backends.gpu.device.protocol import Device, HostNotification
from lagpu.backends.gpu.kernels import Prelude, accumulator, constant, macros_of
from lagpu.backends.gpu.ops.elementwise import EWISE_MODES, bound_operand, mask_bits
from lagpu.backends.gpu.ops.strategies import sums_every_entry
from lagpu.backends.gpu.storage.forms import csr_of, is_symmetric, may_make_csr
from lagpu.backends.gpu.storage.stores import CscMatrix, VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import ORDER, heads_of, index_types, push_space, ranked
from lagpu.backends.match import distinct, holds
from lagpu.dtypes import BOOL, DType, lookup
from lagpu.operations import Descriptor, Handle, Product, Statement, Statements, operands_of

Array = Any
T = TypeVar("T")
Question = Callable[[Sequence[Handle]], T]  # to handles, by their places
WORDS = constant("kScalarWords")
UNASKED = 1 << 17  # numbers, for whose memory the device is not asked before


@dataclass(slots=True)
class Run:
    """One run of a kernel: what its arguments are made of."""

    handles: Sequence[Handle]  # vectors and matrices, by their places
    device: Device
    blocks: int = 0  # of threads
    scalars: Any = None
    barrier: Array = None  # of the grid, that of a workspace, once an argument needs that
    numbers: Sequence[Any] = ()  # of a batch's statements
    tables: Any = None  # of a program on pieces: by size, the arrays of its numbering
    rooms: list[Array] | None = None  # what `room` returned in an earlier run of the program
    most_shared: int = 0  # bytes of shared memory that a block may have for what is read often,
    shared: int = 0  # and those that it needs
    sums: int = 0  # of a program on pieces: where these are in a window
    _taken: int = 0

    def room(self, count: int, dtype: Any) -> Array:
        """Return memory for `count` numbers: that of an earlier run, or uninitialised."""
        if self.rooms is not None:
            self._taken += 1
            if self._taken <= len(self.rooms):
                return self.rooms[self._taken - 1]
        if count > UNASKED:  # of less, the pool knows best
            self.device.require(count * np.dtype(dtype).itemsize, "fused loop")
        made = self.device.xp.empty(count, dtype)
        if self.rooms is not None:
            self.rooms.append(made)
        return made


Make = Callable[[Run], Sequence[Any]]


class Number(NamedTuple):
    """A number of a batch, which `Run.numbers` has: programs that differ in numbers are one."""

    place: int
    dtype: DType


class Arguments:
    """The arguments of a kernel, for one run after the other, on other handles each time.

    So they hold numbers alone. What belongs to handles is made of them in each run, and what the
    text takes for granted of handles is checked before.
    """

    def __init__(self) -> None:
        self.fixed: list[Any] = []  # those that are the same in each run
        self.vectors: list[tuple[int, int]] = []  # first of three, and the place of the vector
        self.made: list[tuple[int, int, Make]] = []  # first, end, and what makes them
        self.each: list[tuple[int, int, Make]] = []  # these change though no handle's arrays do
        self.places: list[int] = []  # of the numbers among them
        self.asked: list[tuple[Question[Any], Any]] = []  # with the answers

    def fit(self, handles: Sequence[Handle]) -> bool:
        """Whether all answers are the same for these handles."""
        return all(question(handles) == answer for question, answer in self.asked)

    def of(self, run: Run) -> list[Any]:
        found, handles = list(self.fixed), run.handles
        for first, place in self.vectors:
            found[first : first + 3] = handles[place].readable()
        for first, end, make in (*self.made, *self.each):
            found[first:end] = make(run)
        return found


class Parameters:
    """The names in the text of a kernel, each with its argument, and the functors it uses."""

    def __init__(self, handles: Sequence[Handle] = ()) -> None:
        self.handles: list[Handle] = list(handles)  # that have a place; others get the next ones
        # These, and the functions given to `made` and `ask`, may outlive the handles: they have
        # places instead.
        self.arguments = Arguments()
        self._names: dict[int, str] = {}
        self.text: list[str] = []  # "type name" of each parameter
        self.structs: list[str] = []  # of the products' types
        self.scalars: dict[int, str] = {}  # the variables of the loop's scalars, by `id`
        self.prelude = Prelude()

    def add(self, ctype: str, value: Any, name: str = "") -> str:
        """Add a parameter whose argument is the same in each run; return its name."""
        name = name or f"p{len(self.text)}"
        self.text.append(f"{ctype} {name}")
        self.arguments.fixed.append(value)
        return name

    def number(self, ctype: str, value: Any) -> str:
        """Return the text for a number of a statement: a parameter, or the value of a scalar."""
        if type(value) is Number:
            self.arguments.places.append(value.place)
            return self.made([ctype], lambda run: [run.numbers[value.place]], True)[0]
        if type(value) is ops.CounterRef:
            return f"cast<{ctype}>({self._formula(value.formula)[1]})"
        if type(value) is not ops.ScalarRef:
            return self.add(ctype, value)
        return f"number_of<{ctype}>({self.scalars[id(value.scalar)]})"

    def there(self, s: Statement) -> str:
        """Return whether the number that a statement assigns is there."""
        return f"{self.scalars[id(s.scalars[0].scalar)]}.there" if s.may_delete else "true"

    def _formula(self, x: Any) -> tuple[str, str]:
        """Return (type, text) of what a formula computes; see `why_no_counters`."""
        if x is None:
            return "i64", "i64(depth)"
        if not isinstance(x, ops.Formula):
            kind = lookup(x.dtype).ctype
            return kind, self.number(kind, x)
        (left, y), (right, z) = map(self._formula, x[1:])
        if x.sign != "/" and left == right == "i64":
            return "i64", f"({y} {x.sign[0]} {z})"
        return "f64", f"as_stored(f64({y}) {x.sign} f64({z}))"  # no compiler joins two of them

    def made(self, ctypes: Sequence[str], make: Make, each: bool = False) -> list[str]:
        """Add parameters whose arguments `make` returns, for `each` run; return their names."""
        names = [f"p{k}" for k, _ in enumerate(ctypes, len(self.text))]
        first = len(self.text)
        self.text += map("{} {}".format, ctypes, names)
        given = self.arguments
        given.fixed += [None] * (len(self.text) - first)
        (given.each if each else given.made).append((first, len(self.text), make))
        return names

    def room(self, ctype: str, count: int, dtype: Any) -> str:
        """Add room for `count` numbers, which the kernel calls `ctype`; return its name."""
        return self.made([f"{ctype}*"], lambda run: [run.room(count, dtype)])[0]

    def size(self, size: int) -> str:
        return self.add("i64", np.int64(size))

    def place(self, x: Handle) -> int:
        for place, other in enumerate(self.handles):
            if other is x:
                return place
        self.handles.append(x)
        return len(self.handles) - 1

    def ask(self, question: Question[T]) -> T:
        """Return the answers of handles that the text takes for granted; types need no question."""
        answer = question(self.handles)
        self.arguments.asked.append((question, answer))
        return answer

    def vector(self, x: VectorStore, written: bool = False, bytewise: Any = None) -> str:
        """Return a vector's name, to which ``_words``, ``_values`` and ``_iso`` are added.

        One that the kernel writes must be added as such before it is read. `bytewise` has presence,
        a byte each, and values in place of the vector's own arrays.
        """
        name = self._names.get(id(x))
        if name is None:
            name = self._names[id(x)] = f"v{len(self._names)}"
            const, kind, presence = "" if written else "const ", x.dtype.ctype, "u32"
            if bytewise is None:
                self.arguments.vectors.append((len(self.text), self.place(x)))
                self.arguments.fixed += [None] * 3
            else:
                presence = "bool"
                self.arguments.fixed += *bytewise, x.number
            words, values = f"{const}{presence}* {name}_words", f"{const}{kind}* {name}_values"
            self.text += words, values, f"{kind} {name}_iso"
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
    kind = values.ctype
    return f"const {types['PTR']}*", f"const {types['IDX']}*", f"const {kind}*", kind


def columns_of(form: CscMatrix | None, values: DType, idx: Any = None) -> tuple[Any, ...]:
    """Return the arguments of a ``Columns``, null if there is no form; `idx` replaces indices."""
    if form is None:
        return None, None, None, values.numpy.type(0)
    return form.col_ptr, form.row_idx if idx is None else idx, form.values, form.number


def whole_types(types: dict[str, str], u: DType, result: DType) -> tuple[str, ...]:
    return (
        *("const u32*", "const u32*", "const i32*", "const u32*", "bool", "i64", "i64", "i64"),
        *(f"{result.ctype}*", f"const {types['IDX']}*", "const i32*", f"{u.ctype}*", "u32"),
    )


def whole_sums(
    form: CscMatrix | None, rows: CscMatrix | None, u: DType, most_shared: int
) -> tuple[list[Any], int]:
    """Return the arguments of a ``MaybeWhole``, and the shared memory for values by rank.

    `form` and `rows` are the matrix by the columns of the outputs, and of the inputs; pointers are
    null if there is no such form. `u` is the type of the product's vector. Room for a sum of each
    warp, at `_PARTS`, is left to each run.
    """
    heads: Any = None if form is None else heads_of(form)
    sizes, idx, rank, room, near = [np.int64(0)] * 3, None, None, None, 0
    if form is not None and heads is not None:
        rank, idx, words, _ = ranked(form, rows, u.numpy.itemsize)
        idx = form.row_idx if idx is None else idx
        room = None if words is None else words.view(u.numpy)
        sizes = [np.int64(size) for size in (form.nvals, *form.shape[::-1])]
        if (words is not None or ORDER in form.cache) and not heads.are_short:
            near = min(most_shared // u.numpy.itemsize, form.shape[0] - 1)
    heads = heads or (None, None, None, None, np.False_)
    given = [*heads, *sizes, None, idx, rank, room, np.uint32(near)]
    return given, near * u.numpy.itemsize


_PARTS = 8


def accum_type(params: Parameters, desc: Descriptor, w: DType, z: DType) -> str:
    """Return the accumulator's type for results of type `z`; without one, that which assigns."""
    return f"Accum<{', '.join(accumulator(desc.accum, w, z, params.prelude))}>"


def write_here(w: str, types: str, z: str, i: str) -> str:
    """Return the lines that write entry `z`, of index `i`, into `w`, as memory would have it."""
    return f"{w} = written<{types}>({w}, {z}, {i}); {w}.value = as_stored({w}.value);"


# ------------------------------------------------------------------------------- expressions
class Writer(abc.ABC):
    """Writes the parts that `expression` composes, of entries that are variables."""

    params: Parameters
    at: str

    @abc.abstractmethod
    def operand(self, x: VectorStore) -> str:
        """Return the text for a vector."""

    def constant(self, ctype: str, value: str, there: str = "true") -> str:
        """Return the text for an entry of value `value` everywhere, if it is `there`."""
        return f"Entry<{ctype}>{{{there}, {value}}}"

    def call(self, name: str, types: str, args: str) -> str:
        """Return a call of ``mapped``, ``selected`` or ``combined`` of common/entry.cuh."""
        return f"{name}<{types}>({args}, {self.at})"


def expression(s: Statement, write: Writer) -> tuple[DType, str]:
    """Return (type, text) of an element-wise statement's results."""
    operation, params = s.operation, write.params
    functor = params.prelude.functor
    if isinstance(operation, (ops.AssignScalar, ops.Constant)):
        z = s.dtype if s.writes_scalar else s.out.dtype
        return z, write.constant(z.ctype, params.number(z.ctype, operation.value), params.there(s))
    if isinstance(operation, (ops.Assign, ops.Extract)):
        u = operation.operand
        return u.dtype, _mapped(write, u, ops.BoundOperator(unary.identity, u.dtype, u.dtype))
    if isinstance(operation, ops.Apply):
        return operation.function.result, _mapped(write, operation.operand, operation.function)
    if isinstance(operation, ops.Select):
        u, kind = operation.operand, lookup(operation.thunk.dtype).ctype
        x = write.operand(u)
        types = f"{functor(operation.op)}, {kind}, {u.dtype.ctype}"
        thunk = params.number(kind, operation.thunk)
        return u.dtype, write.call("selected", types, f"{x}, {thunk}")
    assert isinstance(operation, ops.Ewise)
    left, right = operation.left, operation.right
    domain, result = operation.op.types(left.dtype, right.dtype)
    x, y = write.operand(left), write.operand(right)
    missing = [params.number(domain.ctype, d) for d in operation.defaults or (domain.zero,) * 2]
    types = ", ".join(t.ctype for t in (domain, result, left.dtype, right.dtype))
    args = ", ".join([str(EWISE_MODES[operation.kind]), x, y, *missing])
    return result, write.call("combined", f"{functor(operation.op)}, {types}", args)


def _mapped(write: Writer, u: VectorStore, function: ops.BoundOperator) -> str:
    x, name = write.operand(u), write.params.prelude.functor(function.op)
    scalar, is_left = bound_operand(function)
    bound = write.params.number(function.domain.ctype, scalar)
    types = f"{name}, {function.domain.ctype}, {function.result.ctype}, {u.dtype.ctype}"
    return write.call("mapped", types, f"{x}, {bound}, {str(is_left).lower()}")


# ----------------------------------------------------------------------------------- scalars
def why_no_scalars(statements: Statements) -> str:
    """Return why a kernel cannot hold the scalars of statements, or an empty string."""
    for ref in (ref for s in statements for ref in s.scalars):
        source, target = ref.scalar.dtype, ref.dtype
        if not (source.is_float or target.is_float or target.is_bool):  # integers may not fit
            low, high = int(target.smallest), int(target.largest)
            if int(source.smallest) < low or int(source.largest) > high:
                return f"{ref.name} of type {source} may not fit {target}"
    return ""


_MOST = 2**30  # iterations, for which a formula is shown to fit; so many take an hour


def why_no_counters(statements: Statements) -> str:
    """Return why a kernel cannot compute with the counter as Python does, or an empty string."""
    for ref in (ref for s in statements for ref in s.counters if ref.formula is not None):
        kind, found = ref.dtype, _range(ref.formula)
        if found is None or kind.is_bool or isinstance(found[0], float) > kind.is_float:
            return "what it computes with the counter may raise an error"
        if not kind.is_float and not kind.smallest <= found[0] <= found[1] <= kind.largest:
            return f"what it computes with the counter may not fit {kind}"
    return ""


def _range(x: Any) -> tuple[Any, Any] | None:
    """Return the least and the largest value of a formula, or None if it may have none."""
    if not isinstance(x, ops.Formula):
        number = x.item() if isinstance(x, np.generic) else x
        if x is None or not abs(number) < 2**53:
            return (0, _MOST) if x is None else None
        return number, number
    left, right = map(_range, x[1:])
    if left is None or right is None:
        return None
    if "/" in x.sign or x.sign == "%":
        whole = not isinstance(left[0], float) and not isinstance(right[0], float)
        if right[0] <= 0 <= right[1] or (x.sign != "/" and not (whole and left[0] >= 0 < right[0])):
            return None
    if x.sign == "%":
        return 0, right[1]
    ends = [ops.number_at(ops.Formula(x.sign, y, z), 0) for y in left for z in right]
    return (min(ends), max(ends)) if max(map(abs, ends)) < 2**53 else None  # False if one is NaN


class LoopScalars:
    """The scalars of a loop's body: what a run of its kernel takes of them, and leaves in them.

    `written` are those that statements write, `all` has those that are only read too. `unsure` are
    the reads that may find no value, in order, each with the ``id`` of its statement; the kernel
    leaves the number of the first that did, from 1, or 0. `sure` says for each scalar written
    whether it has a value after an iteration in which no read failed.
    """

    def __init__(
        self, device: Device, written: list[ops.ScalarValue],
        found: list[ops.ScalarValue], unsure: list[tuple[int, ops.ScalarRef]], sure: Sequence[bool],
    ) -> None:  # fmt: skip
        self._device, self.written, self.all, self.unsure = device, written, found, unsure
        self.sure = sure
        self._out: Array = None  # of the run between `room` and `ran`

    @classmethod
    def of(cls, statements: Statements, device: Device) -> LoopScalars:
        written = distinct(s.out for s in statements if s.writes_scalar)
        found = distinct([*written, *(x for s in statements for x in s.scalars_read)])
        unsure, full = _unsure(statements, found)
        return cls(device, written, found, unsure, [id(x) in full for x in written])

    def on_places(self, of: Mapping[int, int]) -> ScalarPlaces:
        """Return it with a place for each scalar, which `of` has by its ``id``."""
        written, found = ([of[id(x)] for x in scalars] for scalars in (self.written, self.all))
        unsure = [(of[id(ref.scalar)], ref) for _, ref in self.unsure]
        return ScalarPlaces(written, found, unsure, self.sure)

    def room(self) -> Array:
        """Return new room for what a run leaves: the scalars written, and which read failed."""
        self._out = self._device.xp.empty(WORDS * len(self.written) + 1, np.uint64)
        return self._out

    def given(self, k: int) -> tuple[Any, Any, Array]:
        """Return (number, whether there is one, where it is on the device) of a scalar."""
        x = self.all[k]
        value = x.get() if x.location is None else None
        number = x.dtype.numpy.type(0) if value is None else value
        return number, np.bool_(value is not None), x.location

    def ran(self, notification: HostNotification | None = None, once: bool = False) -> None:
        """Leave the scalars on the device; wait if a statement may have read one without a value.

        A notification has the last scalar written. A body that runs `once` has had its iteration,
        while a loop may have had none. `EmptyObject` if a statement has read a scalar without a
        value; the loop ended before that statement.
        """
        if not self.all:
            return
        device, out = self._device, self._out
        found = device.to_host(out) if self.unsure else None
        for k, x in enumerate(self.written):
            part = slice(WORDS * k, WORDS * (k + 1))
            if found is None:
                heard = notification if x is self.written[-1] else None
                words = out[part] if k else out  # to cut it out takes as long as a launch
                fetch = functools.partial(_fetch, device, words, x.dtype, heard)
                x.defer(fetch, words, device, once and self.sure[k])
            else:
                x.set(_value(found[part], x.dtype))
        if found is not None and found[-1]:
            self.unsure[int(found[-1]) - 1][1].now()  # raises as it would have there


class ScalarPlaces(NamedTuple):
    """The `LoopScalars` of all runs of a record, with the places of scalars instead of these."""

    written: Sequence[int]
    found: Sequence[int]
    unsure: Sequence[tuple[int, ops.ScalarRef]]
    sure: Sequence[bool]

    def on(self, handles: Sequence[Handle], device: Device) -> LoopScalars:
        scalars: Any = handles
        written, found = ([scalars[k] for k in places] for places in self[:2])
        unsure = [(k, ref._replace(scalar=scalars[k])) for k, ref in self.unsure]
        return LoopScalars(device, written, found, unsure, self.sure)


def _fetch(
    device: Device, words: Array, dtype: DType, notification: HostNotification | None
) -> Any:
    with device.lock, device.entered():
        if notification is None:
            return _value(device.to_host(words), dtype)
        return _value(np.array(device.wait_for(notification, words), np.uint64), dtype)


def _value(words: np.ndarray[Any, Any], dtype: DType) -> Any:
    return words[:1].view(dtype.numpy)[0] if words[1] else None


def _unsure(
    statements: Statements, scalars: Sequence[ops.ScalarValue]
) -> tuple[list[tuple[int, ops.ScalarRef]], set[int]]:
    """Return the reads that may find no value, and the scalars that have one afterwards.

    Each read comes with the ``id`` of its statement; the scalars, by ``id``, have a value after an
    iteration in which no read failed.

    A number fills a scalar; a sum may empty it unless there is an accumulator. A scalar that was
    read before has a value. What has one at the top of an iteration depends on the end of the one
    before, so fewer and fewer are taken to have one, until those have it at the end.
    """
    known = {id(x) for x in scalars if x.is_there}
    reads = [(s, [] if s.may_delete else s.scalars) for s in statements]
    while True:
        unsure: list[tuple[int, ops.ScalarRef]] = []
        full = set(known)
        for s, needed in reads:
            unsure += [(id(s), ref) for ref in needed if id(ref.scalar) not in full]
            full.update(id(ref.scalar) for ref in needed)
            if s.writes_scalar:
                if _has_value(s.operation, full):
                    full.add(id(s.out))
                elif s.desc.accum is None:
                    full.discard(id(s.out))
        if known <= full:
            return unsure, full
        known &= full


def _has_value(operation: ops.Operation, full: set[int]) -> bool:
    """Whether what an operation gives a scalar is a value for sure; `full` are scalars with one."""
    if isinstance(operation, ops.Constant):
        return True
    if not isinstance(operation, (ops.Apply, ops.Ewise)):
        return False
    there = [id(x) in full for x in operands_of(operation)]
    is_union = getattr(operation, "kind", "") in ("ewise_add", "ewise_union")
    return any(there) if is_union else all(there)


class KernelScalars(Writer):
    """The scalars of a loop in its kernel: variables of every thread, and the `Writer` of them."""

    at = "0, 0"

    def __init__(self, scalars: LoopScalars, sums: int, params: Parameters) -> None:
        self._scalars, self.params, self._names = scalars, params, params.scalars
        self._names |= {id(x): f"s{k}" for k, x in enumerate(scalars.all)}
        self._sums = 0  # whose text is written
        self.words = 0
        self.before: list[str] = []
        if not scalars.all:
            return
        (self._out,) = params.made(["u64*"], lambda run: [run.scalars.room()], True)
        #: u64 of a block's parts of all sums, with a place for each of two turns.
        self.words = words = 2 * max(1, sums) * WORDS
        self._parts = self._room(lambda run: run.room(words * run.blocks, np.uint64))
        self.before.append("u64 failed = 0;")
        self.before += [self._load(k, x) for k, x in enumerate(scalars.all)]

    def __bool__(self) -> bool:
        return bool(self._names)

    def _room(self, make: Callable[[Run], Array]) -> str:
        return self.params.made(["u64*"], lambda run: [make(run)])[0]

    def _load(self, k: int, x: ops.ScalarValue) -> str:
        """Return the line before the loop that makes scalar `k` a variable."""
        kinds = (x.dtype.ctype, "bool", "const u64*")
        number, there, place = self.params.made(kinds, lambda run: run.scalars.given(k), True)
        return f"Entry<{kinds[0]}> {self._names[id(x)]} = load_scalar({place}, {there}, {number});"

    def checks(self, s: Statement) -> list[str]:
        """Return the lines that end the loop before a statement if it would read no value."""
        return [
            f"if (!{self._names[id(ref.scalar)]}.there) {{ failed = {number}; break; }}"
            for number, (statement, ref) in enumerate(self._scalars.unsure, 1)
            if statement == id(s)
        ]

    def operand(self, x: Any) -> str:
        return self._names[id(x)]

    def computes(self, s: Statement) -> str:
        """Return the line of a statement that gives a scalar a number, or what others make."""
        return self.writes(s, expression(s, self)[1])

    def writes(self, s: Statement, z: str) -> str:
        """Return the line that writes a result, an ``Entry``, into a statement's scalar."""
        accum = accum_type(self.params, s.desc, s.out.dtype, s.dtype)
        return write_here(self._names[id(s.out)], accum, z, "0")

    def new_parts(self) -> str:
        """Return where blocks leave parts of the next sum, by turns: slow ones may still read."""
        self._sums += 1
        return self._parts_at(f"({2 * self._sums - 2} + (turn & 1)) * {WORDS}")

    def _parts_at(self, which: str) -> str:
        return f"{self._parts} + {which} * grid_blocks()"

    def count(self, s: Statement) -> str:
        """Return how many values the scalar has that a statement writes, counted by one thread."""
        return f"u64(global_thread() == 0 && {self._names[id(s.out)]}.there)"

    def last_written(self) -> str:
        """Return the variable of the last scalar written; an empty string if there is none."""
        written = self._scalars.written
        return self._names[id(written[-1])] if written else ""

    def after(self) -> list[str]:
        if not self._names:
            return []
        out, written = self._out, [self._names[id(x)] for x in self._scalars.written]
        stores = [f"store_scalar({out} + {WORDS * k}, {x});" for k, x in enumerate(written)]
        failed = f"{out}[{WORDS * len(written)}] = failed;"
        return ["if (global_thread() == 0) {", *stores, failed, "}"]


# -------------------------------------------------------------------- what statements name
PRODUCTS = (ops.Multiply, ops.MultiplySelection)
SUMMED = (ops.Reduce, ops.ExtractElement)  # to a scalar; an element is a sum of one entry

# A statement reads vectors from memory, where other threads may have written them, or from
# registers of every warp, if they are small. A product leaves its sums in a vector of its own,
# which the statement's output then takes over as that of any other result.


class Operand(NamedTuple):
    """A vector in the text: where words and values are, its number and the type of all values.

    One that is a number at every index has neither words nor values, and one that every warp holds
    has the name of the registers, an ``Entry``, besides.
    """

    words: str
    values: str
    number: str
    dtype: DType
    held: str = ""


class Logged(NamedTuple):
    """What the log of a trace has of a statement beside the entries it writes, as expressions."""

    how: str = "kWrites"
    edges: str = "kUnknown"
    frontier_edges: str = "kUnknown"


#: The lines of a product, which have a barrier, their result, and what a log has of them.
ProductText = tuple[list[str], Operand, Logged]


def sizes_to_hold(
    statements: Statements, unchanged: Any, size_of: Callable[[Any], int], most: int
) -> set[int]:
    """Return the sizes, at most `most`, whose vectors every warp may hold; of a matrix it is 0.

    A product reads and writes memory, and so its vectors are not held, nor are those of their
    sizes, with which they may be combined; nor is a vector that is compared with a copy.
    """
    sizes: set[int] = set()
    others = {0} if unchanged is None else {0, size_of(unchanged)}
    for s in statements:
        multiplies = isinstance(s.operation, PRODUCTS)
        vectors = [*operands_of(s.operation), *([] if s.writes_scalar else [s.out])]
        (others if multiplies else sizes).update(map(size_of, vectors))
    return {size for size in sizes - others if size <= most}


class Operands:
    """The vectors of a program under their names, its masks, and the lines of its products.

    `written` are the vectors that the loop writes, or compares with what they were. If `traced`,
    the loop has a log: then every statement works on memory, and products count.
    """

    once = False  # one iteration, whose kernel writes a host notification
    counted: VectorStore | None = None  # whose entries that has; else the last scalar written
    scalars_of: type[KernelScalars] = KernelScalars
    macros: Mapping[str, str] = {}

    header = "program/program.cuh"
    most_held = 32  # entries of a vector that every warp may hold, one a lane
    #: Of a block of threads, for the lines of products.
    shared: tuple[str, ...] = ("LG_SHARED(PutOff, later, 1);", "(void)later;")

    def __init__(
        self, statements: Statements, scalars: LoopScalars, written: Sequence[VectorStore],
        until: ops.Until, block: int, traced: bool, handles: Sequence[Handle] = (),
    ) -> None:  # fmt: skip
        self.block, self.traced, self.device = block, traced, written[0].device
        self.statements, self._written = statements, written
        self.empty: Any = until.empty
        self.unchanged: Any = until.unchanged
        self.until = until.holds
        self.params = Parameters(handles)
        self.counters = 2  # of an iteration: entries of `empty`, changes of `unchanged`, and more
        for x in written:
            self.params.vector(x, written=True)
        sums = sum(isinstance(s.operation, SUMMED) for s in statements)
        self.scalars = self.scalars_of(scalars, sums, self.params)
        self.before = list(self.scalars.before)
        given = statements, until.unchanged, self.size_of, self.most_held
        self._sizes_held = set() if traced else sizes_to_hold(*given)
        self._registers: dict[int, str] = {}  # of vectors held, by `id`

    def new_counters(self, count: int) -> int:
        """Return the number of the first of so many more counters of an iteration."""
        first = self.counters
        self.counters += count
        return first

    def new_words(self, size: int) -> str:
        """Add room for the presence words of `size` entries; return its name."""
        return self.params.room("u32", nwords(size), np.uint32)

    # ----------------------------------------------------------------------------- vectors
    def named(self, x: VectorStore) -> Operand:
        """Return a vector in the text; one that is held is loaded before the loop."""
        name, place = self.params.vector(x), self.params.place(x)
        stored = Operand(f"{name}_words", f"{name}_values", f"{name}_iso", x.dtype)
        if self.holds(x):
            return stored._replace(held=self._held(x))
        if not holds(self._written, x) and self.params.ask(lambda at: at[place].is_number):
            return stored._replace(words="", values="")
        return stored

    def space(self, s: Statement) -> Any:
        """Return what two statements have in common if they are over one index space."""
        return self.size_of(s.operation.operand if isinstance(s.operation, SUMMED) else s.out)

    @property
    def window(self) -> tuple[int, int]:
        """Of a program on pieces the u64 of a window, and those of each block that follow them."""
        return 0, 0

    def size_of(self, x: VectorStore) -> int:
        """Return the number of a vector's indices, on pieces of those of all; 0 of a matrix."""
        return x.size if type(x) is VectorStore else 0

    def at(self, x: VectorStore) -> str:
        """Return the index of the entry at ``at`` in a pass over such vectors."""
        return "at"

    def synchronised(self) -> list[str]:
        return ["grid_sync(barrier);"]

    def begins(self) -> list[str]:
        return ["grid_sync(barrier);"]

    def condition(self) -> tuple[list[str], list[str], list[str]] | None:
        """Return the condition's lines: before the loop, at its top and end; None: one device's."""
        return None

    def filled(self, s: Statement) -> str:
        """Return the bits of word ``k`` that an assigned number gets, of ``all``."""
        return "all"

    def filling(self, s: Statement, source: str) -> str:
        """Return the whole vector that an assigned number is; `source` has each entry."""
        return source

    def holds(self, x: VectorStore) -> bool:
        """Whether every warp holds the vectors of this size in registers, a lane an index."""
        return self.size_of(x) in self._sizes_held

    def _held(self, x: VectorStore) -> str:
        """Return the registers of a vector, which are loaded before the loop."""
        found = self._registers.get(id(x))
        if found is None:
            found = self._registers[id(x)] = f"held{len(self._registers)}"
            load = f"load_held({self._sized(x)})"
            self.before.append(f"Entry<{x.dtype.ctype}> {found} = {load};")
        return found

    def after(self) -> list[str]:
        """Return the lines after the loop, which store what it writes in registers."""
        held = [x for x in self._written if id(x) in self._registers]
        stores = [f"store_held({self._registers[id(x)]}, {self._sized(x)});" for x in held]
        return [*stores, *self.scalars.after(), *self._notifying()]

    def more_params(self) -> list[str]:
        """Return the kernel's last parameters: those of the notification."""
        return ["u64* counts", "u64* notification", "u64 serial"] if self.once else []

    def _notifying(self) -> list[str]:
        """Return the lines after the loop that write the notification."""
        x = self.counted
        if x is not None:
            words = f"{self.params.vector(x)}_words"
            return [
                "Tallied tally{0, 0, 0};",
                f"each_tile({self.params.size(x.size)}, [&](i64 k, bool mine) "
                f"{{ tally.found += mine ? bit_popc({words}[k]) : 0; }});",
                "add_counts(tally, counts, notification, serial, nullptr);",
            ]
        scalar = self.scalars.last_written() if self.once else ""
        store = f"store_scalar(notification, {scalar}); system_fence();"
        serial = "store_volatile(&notification[2], serial);"
        return [f"if (global_thread() == 0) {{ {store} {serial} }}"] if scalar else []

    def _sized(self, x: VectorStore) -> str:
        entries = self.params.entries(x)
        return f"{self.params.size(x.size)}, {entries}"

    def remembered(self) -> str:
        """Return `unchanged` and room for a copy of it, as arguments of ``remember``."""
        x, params = self.unchanged, self.params
        name, words = params.vector(x), self.new_words(x.size)
        values = params.room(x.dtype.ctype, x.size, x.dtype.numpy)
        return f"{params.size(x.size)}, {name}_words, {name}_values, {words}, {values}"

    # ------------------------------------------------------------------------------- masks
    def mask_of(self, desc: Descriptor) -> tuple[str, bool]:
        """Return what `mask_bits` says of a mask, and take it for granted."""
        m: VectorStore | None = desc.mask
        if m is None or desc.structure:
            return mask_bits(desc)
        if holds(self._written, m):  # it has values by then, whatever it has now
            return "values", desc.complement
        place, rest = self.params.place(m), desc[1:]
        return self.params.ask(lambda handles: mask_bits(Descriptor(handles[place], *rest)))

    def mask_words(self, desc: Descriptor) -> tuple[list[str], str, str]:
        """Return (lines that make them, words of a mask's bits, whether it is complemented)."""
        m: VectorStore | None = desc.mask
        bits, complemented = self.mask_of(desc)
        complement = str(complemented).lower()
        if m is None or bits == "nowhere":
            return [], "(const u32*)nullptr", complement
        x = self.params.vector(m)
        if bits == "presence":
            return [], f"{x}_words", complement
        true = self.new_words(m.size)
        size = self.params.size(m.size)
        lines = [f"write_true_bits({size}, {x}_words, {x}_values, {true});", "warp_sync();"]
        return lines, true, complement

    # ---------------------------------------------------------------------------- products
    def product(self, s: Statement) -> ProductText:
        operation: Any = s.operation
        by_matrix = isinstance(operation, ops.Multiply)
        return (self._by_matrix if by_matrix else self._by_selection)(s, operation)

    def _by_matrix(self, s: Statement, operation: ops.Multiply) -> ProductText:
        A, u, product = operation.matrix, operation.operand, operation.product
        params, matrix = self.params, self.params.place(operation.matrix)
        types = index_types(A.csc())
        params.ask(lambda handles: handles[matrix].csc().widths)
        spec = params.product(product, u.dtype, A.dtype, f"Product{len(params.structs)}", **types)
        lines, mask, sums, result = self._target(s, product, spec)
        sent, x, size = self.sent(u, product, A)
        lines += sent
        first = self.new_counters(3 + self.traced)
        adds_all = s.desc.mask is None and not s.desc.complement and sums_every_entry(product)
        kinds = [
            *("i32*", f"{types['PTR']}*", "u32*", "u64*"),
            *column_types(types, A.dtype) * 2,
            *(whole_types(types, u.dtype, product.result) if adds_all else ()),
            "u64",
        ]
        warps = self.block // 32 if adds_all else 0
        made = params.made(kinds, functools.partial(_on_forms, matrix, product, u.dtype, warps))
        lists, incoming, outgoing, whole = (
            f"{{{', '.join(part)}}}" for part in (made[:3], made[4:8], made[8:12], made[12:-1])
        )
        whole = f"MaybeWhole<{spec}>{{{whole}}}" if adds_all else f"NoWhole<{spec}>{{}}"
        pulls = f"const bool pulls{first} = " if self.traced else ""
        lines += [
            f"{pulls}multiply_all<{spec}>({{{incoming}, {outgoing}, {made[-1]}, "
            f"{{{x}}}, {params.size(size)}, {mask}, {sums}, "
            f"{lists}, {made[3]}}}, {whole}, now + {first} * kCounterStride, barrier, later);"
        ]
        one_way = self.traced and None in _both_ways(A.csc(), product)
        out_edges = "kUnknown" if one_way else counted(first)
        how = f"pulls{first} ? kPulls : kPushes"
        return lines, result, Logged(how, counted(first + 3), out_edges)

    def sent(
        self, u: VectorStore, product: Product, A: Handle | None = None
    ) -> tuple[list[str], str, int]:
        """Return (lines that make a product's vector ready, where it is, its indices)."""
        return [], self.params.entries(u), u.size

    def selector(self, f: VectorStore, nrows: int, product: Product) -> tuple[list[str], str, str]:
        """Return (lines that make it ready, the type of a ``Selector``, what it is made of)."""
        x, params = self.params.entries(f), self.params
        made = f"{x}, {params.size(f.size)}, {params.size(nrows)}"
        return [], f"Selector<{f.dtype.ctype}>", made

    def _by_selection(self, s: Statement, operation: ops.MultiplySelection) -> ProductText:
        f, u, product = operation
        params = self.params
        spec = params.product(product, u.dtype, BOOL, f"Product{len(params.structs)}")
        lines, mask, sums, result = self._target(s, product, spec)
        nrows = self.size_of(u if product.transpose else s.out)
        prepared, selector, made = self.selector(f, nrows, product)
        sent, y, _ = self.sent(u, product)
        lines += [*prepared, *sent]
        count = self.new_counters(int(self.traced))
        looked_at = f"now + {count} * kCounterStride" if self.traced else "(u64*)nullptr"
        types = f"{spec}, {str(product.transpose).lower()}"
        lines.append(
            f"select_all<{types}>({selector}{{{made}}}, {{{y}}}, {mask}, "
            f"{sums}, {looked_at}, barrier);"
        )
        return lines, result, Logged("kPulls" if product.transpose else "kPushes", counted(count))

    def _target(
        self, s: Statement, product: Product, spec: str
    ) -> tuple[list[str], str, str, Operand]:
        """Return a product's (lines of the mask, ``Mask``, ``Sums``, vector with these)."""
        lines, mask, complement = self.mask_words(s.desc)
        kind, size = product.result.ctype, self.params.size(s.out.size)
        words = self.new_words(s.out.size)
        values = self.params.room(kind, s.out.size, product.result.numpy)
        sums = f"{{{words}, {values}}}"
        self.before.append(f"clear_sums<{spec}, {kind}>({sums}, {size});")
        result = Operand(words, values, f"{kind}(0)", product.result)
        return lines, f"{{{mask}, {complement}, {size}}}", sums, result


def counted(counter: int) -> str:
    """Return the number in a counter of the iteration that a log's record is of."""
    return f"load_volatile(at + {counter} * kCounterStride)"


def _on_forms(matrix: int, product: Product, u: DType, warps: int, run: Run) -> list[Any]:
    """Return a product's arguments that belong to its matrix: lists, both forms, sums, entries."""
    A = run.handles[matrix].csc()
    key = _on_forms, product, u, run.most_shared if warps else None
    kept = A.kernels.get(key)
    if kept is None:
        incoming, outgoing = _both_ways(A, product)
        space = None if outgoing is None else push_space(outgoing)
        lists = ("barrier", "vertex", "start", "degree", "chunks")
        given = [getattr(space, name, None) for name in lists]
        given += [*columns_of(incoming, A.dtype), *columns_of(outgoing, A.dtype)]
        whole, shared = whole_sums(incoming, outgoing, u, run.most_shared) if warps else ([], 0)
        kept = [*given, *whole, np.uint64(A.nvals)], len(given) + _PARTS - 1, shared
        is_whole = not warps or whole[0] is not None
        if is_whole and incoming is not None and outgoing is not None:  # else they may come later
            A.kernels[key] = kept
    (barrier, *found), parts, shared = kept
    if barrier is not None:
        run.barrier = barrier
    if warps:
        found[parts] = run.room(run.blocks * warps, product.result.numpy)
        run.shared = max(run.shared, shared)
    return found


def _both_ways(A: CscMatrix, product: Product) -> tuple[CscMatrix | None, CscMatrix | None]:
    """Return the forms of a product's matrix by outputs and by inputs, None if one is lacking."""
    there = is_symmetric(A) or A.csr is not None or may_make_csr(A)
    other = csr_of(A) if there else None
    if other is not None and other.col_ptr.dtype != A.col_ptr.dtype:  # of two widths: one form
        other = None
    return (A, other) if product.transpose else (other, A)
