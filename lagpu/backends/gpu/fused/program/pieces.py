"""A generated loop on the pieces of a grid: one kernel on each device; see program/pieces.cuh."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import CheckedLaunch, Device, Peers, posts_words
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.fused.program.run import NO_LIMIT, GeneratedLoop, counters_of
from lagpu.backends.gpu.fused.program.text import Program
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel
from lagpu.backends.gpu.storage.stores import VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import ORDER
from lagpu.operations import Handle, Product, Statement, Statements, Until

_MEETS = "if (!meet(&all, {}, turn, stop){}) break;"
_ANY_FOUND = " || !all.last->found"


class Numbering(NamedTuple):
    """How the indices of one size are numbered on all pieces; see ``Slots`` of the kernel."""

    size: int
    slots: int  #: That the numbers of the indices take.
    run: int  #: ``1 << run`` consecutive words of slots are of one piece.


#: By size, the arrays of a piece's numberings.
Tables = Mapping[int, tuple[Any, Any]]


class PieceScalars(emit.KernelScalars):
    """Scalars whose parts are left in every window; see `KernelScalars`."""

    def _room(self, make: Any) -> str:
        return self.params.made(["i64"], lambda run: [np.int64(run.sums)])[0]

    def _parts_at(self, which: str) -> str:
        return f"PartsInWindows{{&all, {self._parts} + {which} * LG_PEERS * grid_blocks()}}"


class PieceOperands(emit.Operands):
    """What the statements of a program on pieces name; see `Operands`.

    `numberings` are those of all sizes; `sizes` those of distributed vectors, by the ``id`` of the
    part.
    """

    scalars_of = PieceScalars
    header = "program/pieces.cuh"

    def __init__(
        self, pieces: int, numberings: Sequence[Numbering], sizes: Mapping[int, int], *given: Any
    ) -> None:
        self._pieces, self._sizes = pieces, sizes
        self._numberings = {numbering.size: numbering for numbering in numberings}
        self._named_slots: dict[int, str] = {}
        self._ghosts = posts_words(pieces)  # u64 of a window
        self._meetings = 0  # of all devices, in the lines of an iteration
        self._at = 0  # of the statements, the one whose lines are written
        # By a vector and the matrix whose rows it follows: by which statement it was sent, with
        # values or without, and where.
        self._sent: dict[tuple[int, int], tuple[int, bool, str]] = {}
        self._reuses = False  # whether a product reads what was sent for an earlier one
        self.macros = {"PEERS": str(pieces)}
        super().__init__(*given)

    @property
    def window(self) -> tuple[int, int]:
        """See `Operands`: with a block's parts for each piece."""
        return self._ghosts, self.scalars.words * self._pieces

    def size_of(self, x: VectorStore) -> int:
        return self._sizes.get(id(x), 0)

    def at(self, x: VectorStore) -> str:
        """See `Operands`: the index in the whole vector."""
        return "at" if self.holds(x) else f"{self._slots(self.size_of(x))}.index_of(at)"

    def synchronised(self) -> list[str]:
        """See `Operands`: all devices meet."""
        self._meetings += 1
        return [_MEETS.format(0, "")]

    def begins(self) -> list[str]:
        """See `Operands`: all devices meet, so none still runs an earlier kernel."""
        return [
            "Together all{{piece, epoch, patience, windows}, nullptr, false};",
            "if (!meet(&all, 0, 0, stop)) times = 0;",
        ]

    def condition(self) -> tuple[list[str], list[str], list[str]]:
        """See `Operands`.

        Between reading a ghost and sending it again all devices meet: in the next product's lines
        if that is another one's, else at the end of an iteration.
        """
        empty, unchanged, params = self.empty, self.unchanged, self.params
        if empty is not None and not self.holds(empty):
            words = f"{params.vector(empty)}_words"
            count = f"entries_of_block({params.size(empty.size)}, {words})"
            return [], [_MEETS.format(count, _ANY_FOUND)], []
        if unchanged is not None:
            given = self.remembered()
            end = _MEETS.format(f"remember({given}, false)", _ANY_FOUND)
            return [f"remember({given}, true);"], [], [end]
        top = [] if empty is None else [f"if (!warp_any({self.named(empty).held}.there)) break;"]
        meet = self._meetings < 2 or self._reuses
        return [], [*top, *self.synchronised()] if meet else top, []

    def product(self, s: Statement) -> emit.ProductText:
        """See `Operands`: what is sent must have arrived."""
        self._at = next(k for k, other in enumerate(self.statements) if other is s)
        (*sent, last), result, logged = super().product(s)
        return [*sent, *self.synchronised(), last], result, logged

    def sent(
        self, u: VectorStore, product: Product, A: Handle | None = None
    ) -> tuple[list[str], str, int]:
        """See `Operands`: the ghost of the whole vector, by slots of the rows of `A`."""
        return *self._send(u, product.reads[0], A), self._numberings[self.size_of(u)].slots

    def selector(self, f: VectorStore, nrows: int, product: Product) -> tuple[list[str], str, str]:
        """See `Operands`: a gather has the own columns, a scatter has all."""
        params, rows = self.params, self._slots(nrows)
        if product.transpose:
            lines, columns = list[str](), params.entries(f)
            count, kind = f.size, "SlotSelector"
        else:
            lines, columns = self._send(f, True)
            count = self._numberings[self.size_of(f)].slots
            kind = "OwnSelector"
        made = f"{{{columns}, {params.size(count)}, {params.size(nrows)}}}, {rows}"
        return lines, f"{kind}<{f.dtype.ctype}>", made

    def more_params(self) -> list[str]:
        """See `Operands`: what a device needs to meet the others, and where it reports."""
        return ["u32 piece", "u32 epoch", "u64 patience", "const u64* windows", "u64* result"]

    def after(self) -> list[str]:
        return [*super().after(), "report(all, turn, result);"]

    def _send(
        self, u: VectorStore, with_values: bool, A: Handle | None = None
    ) -> tuple[list[str], str]:
        """Return (the lines that send a vector's entries, if need be, where its ghost is)."""
        at, has_values, ghost = self._sent.get((id(u), id(A)), (0, False, ""))
        written = any(s.out is u for s in self.statements[at : self._at])
        if ghost and has_values >= with_values and not written:
            self._reuses = True
            return [], ghost
        params, kind, size = self.params, u.dtype.ctype, self.size_of(u)
        slots, name = self._slots(size), params.vector(u)
        words = params.size(self._ghost(4 * nwords(self._numberings[size].slots)))
        values, read = words, f"(const {kind}*)nullptr"
        order = "(const i32*)nullptr"
        if A is not None:
            place = params.place(A)
            (order,) = params.made(
                ["const i32*"], lambda run: [run.handles[place].csc().cache.get(ORDER)]
            )
        if with_values:
            values = params.size(self._ghost(u.dtype.numpy.itemsize * self._numberings[size].slots))
            read = f"all.in_own<const {kind}>({values})"
        line = (
            f"send_entries<{str(with_values).lower()}>(&all, {slots}, {params.size(u.size)}, "
            f"{order}, {params.entries(u)}, {words}, {values}, barrier);"
        )
        ghost = f"all.in_own<const u32>({words}), {read}, {name}_iso"
        self._sent[id(u), id(A)] = self._at, with_values, ghost
        return [line], ghost

    def _ghost(self, nbytes: int) -> int:
        """Return where a window has so many new bytes, in words of 8."""
        first = self._ghosts
        self._ghosts += -(-nbytes // 16) * 2
        return first

    def _slots(self, size: int) -> str:
        """Return the name of a numbering, which is defined before the loop."""
        name = self._named_slots.get(size)
        if name is None:
            name = self._named_slots[size] = f"slots{len(self._named_slots)}"
            run = self.params.add("u32", np.uint32(self._numberings[size].run))
            made = self.params.made(["const i32*"] * 2, lambda run: run.tables[size])
            self.before.append(f"const Slots {name}{{piece, {run}, {', '.join(made)}}};")
        return name


class PieceProgram(GeneratedLoop):
    """The part of a generated loop that one of several devices runs, on the parts of its piece."""

    name = "generated loop of pieces"
    kernel: Kernel  # once it is written
    _program_of: tuple[Program, Sequence[Handle]]

    def __init__(
        self, statements: Statements, until: Until, pieces: int,
        numberings: Sequence[Numbering], sizes: Mapping[int, int],
    ) -> None:  # fmt: skip
        super().__init__(statements, until, "")
        self._shared = pieces, tuple(numberings), sizes

    def write(self) -> tuple[int, int, int]:
        """Write the program; return (blocks that fit, u64 of ghosts, u64 of a block's sums)."""
        for x in self.written:
            x.to_writable()
        self._program_of = program, _ = self._program(None)
        self.kernel = program.kernel
        return self.device.max_cooperative_blocks(self.kernel, self._block), *program.window

    def start(
        self, piece: int, peers: Peers, blocks: int, tables: Tables, sums: int
    ) -> tuple[CheckedLaunch, dict[str, Any]]:
        """Return the launch and its arguments, once the program is written."""
        (kernel, arguments, names, counters, _), handles = self._program_of
        run = emit.Run(handles, self.device, blocks, self._scalars, None, self._numbers, tables)
        run.sums = sums
        shared = min(self.device.limits.ranked_bytes, self.device.dynamic_shared_bytes)
        if self.device.max_cooperative_blocks(kernel, self._block, shared) >= blocks:
            run.most_shared = shared
        given = dict(zip(names, arguments.of(run), strict=True))
        zeros = functools.partial(self.device.xp.zeros, GRID_BARRIER, np.uint32)
        for x in self.written:
            x.changes()
        given |= peers.fixed(piece) | peers.turn()
        return launch_of(self.device, kernel, blocks, self._block, run.shared), given | {
            "times": NO_LIMIT if self._until.times is None else self._until.times,
            "counters": counters_of(self.device, counters),
            "barrier": zeros() if run.barrier is None else run.barrier,
            "stop": self.device.stop[0], "result": peers.results[piece],
        }  # fmt: skip

    def ran(self) -> None:
        if self._scalars:
            self._scalars.ran()

    def _apart(self, handles: Sequence[Handle]) -> tuple[Any, ...]:
        pieces, numberings, sizes = self._shared
        return pieces, numberings, tuple(sizes.get(id(x), 0) for x in handles)

    def _named(self, *given: Any) -> emit.Operands:
        return PieceOperands(*self._shared, *given)


@functools.lru_cache(maxsize=256)
def launch_of(
    device: Device, kernel: Kernel, blocks: int, block: int, shared: int = 0
) -> CheckedLaunch:
    """Return the launch of a kernel that runs together with those of other devices."""
    return device.prepare(kernel, blocks * block, block=block, cooperative=True, shared=shared)
