"""Arrays sent between devices of one host, or by NCCL between processes."""

from __future__ import annotations

import atexit
import importlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, MatrixHandle, require, stride
from lagpu.backends.gpu.storage.vector import VectorStore, bytes_of, nwords
from lagpu.backends.grid.dealing import Dealt, Partition, Relabelled
from lagpu.backends.grid.engine import to_each
from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.mpi import MpiEngine
from lagpu.backends.grid.pieces import Pieces
from lagpu.dtypes import INT64, DType
from lagpu.errors import GridTimeout
from lagpu.host.interrupt import uninterrupted
from lagpu.operations import Handle

Array = Any
BITS = 32  # of a word


class Told(NamedTuple):
    """What a piece tells of its part: presence bits or a list of indices, whichever is shorter.

    Attributes
    ----------
    is_list : bool
        Whether `where` has indices, INT64, with packed values; else presence words, with a value
        for each index.
    where : array
        As above.
    values : array or None
        None if all are `number`.
    number : NumPy scalar
        The one value, where there is one.
    nvals : int
        How many entries there are.
    """

    is_list: bool
    where: Array
    values: Array | None
    number: Any
    nvals: int

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What travels."""
        return (self.where,) if self.values is None else (self.where, self.values)


def groups_of(by: Partition, part: Sequence[int]) -> list[list[int]]:
    """Return the pieces that need each part."""
    return [[p for p, q in enumerate(part) if q == r] for r in range(by.pieces)]


def run_of_turns(own: Partition, by: Partition, part: Sequence[int]) -> int:
    """Return the indices that the pieces with a part have by turns in its order; 0 if they do not.

    Parameters
    ----------
    own : Partition
        Whose entries they are.
    by : Partition
        The parts.
    part : sequence of int
        The part that each piece needs.
    """
    if isinstance(own, Relabelled) and isinstance(by, Relabelled) and own.new == by.new:
        own, by = own.by, by.by  # both deal the same new numbers
    if not isinstance(own, Dealt) or not isinstance(by, Dealt):
        return 0
    together, given = len(part) // by.pieces, list(part)
    if by.whole:
        return own.run
    if by.run == own.run * together and given == [p // together for p in range(len(part))]:
        return own.run
    if by.run == own.run and given == [p % by.pieces for p in range(len(part))]:
        return own.run
    return 0


def told_by(v: VectorStore, run: int) -> Told:
    """Return the shorter form of a part, which is kept: the next one asks for it again."""
    each = 0 if v.values is None else v.dtype.numpy.itemsize
    if run % BITS or v.nvals * (8 + each) < 4 * nwords(v.size) + each * v.size:
        indices, values = v.listed()
        return Told(True, indices, values, v.number, v.nvals)
    v.to_bitmap()
    return Told(False, v.words, v.values, v.number, v.nvals)


def heads(pieces: Pieces, own_told: list[Told], is_stored: bool, dtype: DType) -> list[Told] | None:
    """Return what every piece tells, without the arrays of other processes.

    None if some piece has no such part, which all processes learn alike.
    """
    if pieces.engine.alone:
        return own_told if is_stored else None
    given = [
        (np.array([m.is_list, m.nvals, is_stored], np.int64), np.array([m.number], dtype.numpy))
        for m in own_told
    ]
    absent = (np.zeros(3, np.int64), np.zeros(1, dtype.numpy))
    given += [absent] * (len(pieces.engine.local) - len(given))
    found = pieces.engine.gather(given)[0]
    if not all(head[2] for head, _ in found):
        return None
    return [Told(bool(head[0]), None, None, number[0], int(head[1])) for head, number in found]


# ------------------------------------------------------------------------------------------
# What a piece needs of a vector or a bitmap matrix, put together on its device.


def collected(
    pieces: Pieces, x: GridHandle, by: Partition, part: Sequence[int], numbered: bool = False
) -> list[Handle] | None:
    """Return, for each local piece, a handle of the part that it needs; or None.

    None where it has to go by way of the host: devices that do not hand over arrays, indices that
    are not dealt by turns, or not by their own numbers where these are the values, and matrices by
    columns.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    x : GridHandle
        A vector, or a matrix of few rows, whose columns are dealt as the entries of a vector.
    by : Partition
        The parts of the last dimension.
    part : sequence of int
        The part that each piece needs.
    numbered : bool
        Whether the value of each entry of a vector is its index.
    """
    if numbered and not isinstance(by, Dealt):
        return None
    run = run_of_turns(pieces.partition(x.shape[-1]), by, part)
    if not run or not pieces.engine.between_devices:
        return None
    parts = [v for v in map(_stored, x.parts) if v is not None]
    devices = [v.device for v in parts]
    each = 1 if len(x.shape) == 1 else stride(x.shape[0])
    run *= each
    own_told = []
    for device, v in zip(devices, parts, strict=True):
        with device.alone():
            own_told.append(told_by(v, run))
    told = heads(pieces, own_told, len(parts) == len(x.parts), x.dtype)
    if told is None:
        return None
    groups = groups_of(by, part)
    given = to_each([message.arrays for message in own_told], pieces.engine.local, groups)
    received = pieces.engine.hand(given, groups)
    found: list[Handle] = []
    for k, p, _ in pieces:
        device, count = devices[k], by.count(part[p])
        messages = [
            told[s]._replace(where=where, values=values[0] if values else None)
            for s, (where, *values) in zip(groups[part[p]], received[k], strict=True)
        ]
        with device.alone():
            if len(x.shape) == 2:
                require(device, (x.shape[0], count), x.dtype, "mxm")
            else:
                device.require(bytes_of(count, x.dtype), "mxv")
            v = VectorStore(device, parts[k].counters, x.dtype, count * each)
            _put_together(v, messages, run)
            if numbered:
                v = _numbered(v, by, part[p])
            found.append(_handle(device, v, x, count))
    return found


def _stored(handle: Any) -> VectorStore | None:
    """Return the entries of a vector or a bitmap matrix, position by position."""
    if isinstance(handle, VectorStore):
        return handle
    store = handle.store
    return store.entries if isinstance(store, BitmapMatrix) else None


def _handle(device: Device, v: VectorStore, x: GridHandle, count: int) -> Handle:
    if len(x.shape) == 1:
        return v
    return MatrixHandle(BitmapMatrix(device, x.dtype, (x.shape[0], count), v))


def _put_together(v: VectorStore, messages: Sequence[Told], run: int) -> None:
    """Become the vector whose runs the senders of messages have by turns."""
    xp, turns = v.device.xp, len(messages)
    rounds = -(-v.size // (run * turns))
    numbers = [m.number for m in messages if m.nvals]
    iso = all(m.values is None for m in messages if m.nvals) and len(set(numbers)) <= 1
    number = numbers[0] if numbers else v.dtype.zero
    length = rounds * turns * run
    words = xp.zeros(nwords(length), np.uint32)
    values = None if iso else xp.empty(length, v.dtype.numpy)
    for turn, m in enumerate(messages):
        if not m.nvals:
            continue
        if m.is_list:
            at = (m.where // run * turns + turn) * run + m.where % run
            packed = m.values
            if values is not None and packed is None:
                packed = xp.full(m.nvals, m.number, v.dtype.numpy)
            scatter = kernel("elementwise/bitmap.cu", "scatter_entries", U=v.dtype.ctype)
            v.device.launch(scatter, m.nvals, m.nvals, at, packed, words, values)
            continue
        _deal(words.reshape(rounds, turns, run // BITS)[:, turn], m.where)
        if values is not None:
            target = values.reshape(rounds, turns, run)[:, turn]
            if m.values is None:
                target[:] = m.number
            else:
                _deal(target, m.values)
    count = sum(m.nvals for m in messages)
    kept = None if values is None else values[: v.size]
    v.set_bitmap(words[: nwords(v.size)], kept, number if iso else None, count)


def _numbered(v: VectorStore, by: Partition, part: int) -> VectorStore:
    """Return a vector of the same entries, whose values are the indices of a part's positions."""
    made = VectorStore(v.device, v.counters, INT64, v.size)
    if v.nvals:
        at, _ = v.listed()
        v.device.require(2 * at.nbytes, "mxv")
        made.set_sparse(at, by.index(part, at))
    return made


def _deal(rows: Array, run_after_run: Array) -> None:
    """Put runs into rows, one each; the last one may be shorter."""
    width = rows.shape[1]
    whole, rest = divmod(len(run_after_run), width)
    rows[:whole] = run_after_run[: whole * width].reshape(whole, width)
    if rest:
        rows[whole, :rest] = run_after_run[whole * width :]


# ------------------------------------------------------------------------------------------
# Partial results are cut by their owners on the devices that found them, and handed over.


def handed(
    pieces: Pieces,
    found: Sequence[Handle],
    shape: tuple[int, ...],
    by: Partition,
    part: Sequence[int],
    dtype: DType,
) -> list[list[Handle]] | None:
    """Return, for each local piece, what each of its group has found of its entries; or None.

    None where it has to go by way of the host: devices that do not hand over arrays, indices that
    are not dealt by turns, matrices. Who has found nothing at all is left out.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    found : sequence of Handle
        The partial result of each local piece, by position in its part.
    shape : tuple of int
        The shape of the whole result.
    by : Partition
        The parts of its last dimension.
    part : sequence of int
        The part of each piece; those with the same one are a group.
    dtype : DType
        The type of the result.
    """
    own = pieces.partition(shape[-1])
    run = run_of_turns(own, by, part)
    if len(shape) > 1 or not run or not pieces.engine.between_devices:
        return None
    partial = cast("Sequence[VectorStore]", found)
    groups, own_told, given = groups_of(by, part), [], []
    for k, p, _ in pieces:
        with partial[k].device.alone():
            message = told_by(partial[k], run)
            own_told.append(message)
            given.append(_cut(partial[k], message, run, [own.count(d) for d in groups[part[p]]]))
    told = heads(pieces, own_told, True, dtype)
    assert told is not None
    received = pieces.engine.hand(given, groups)
    terms: list[list[Handle]] = []
    for k, p, _ in pieces:
        device, counters, count = partial[k].device, partial[k].counters, own.count(p)
        mine: list[Handle] = []
        with device.alone():
            device.require(len(received[k]) * bytes_of(count, dtype), "mxv")
            for s, (where, *values) in zip(groups[part[p]], received[k], strict=True):
                if not told[s].nvals or (told[s].is_list and not len(where)):
                    continue
                term = VectorStore(device, counters, dtype, count)
                one = None if values else told[s].number
                if told[s].is_list:
                    term.set_sparse(where, *values or (None, one))
                else:
                    term.set_bitmap(where, values[0] if values else None, one, None)
                mine.append(term)
        terms.append(mine)
    return terms


def _cut(v: VectorStore, message: Told, run: int, counts: Sequence[int]) -> list[tuple[Array, ...]]:
    """Return the arrays for each owner, whose runs follow each other by turns.

    Parameters
    ----------
    v : VectorStore
        The partial result.
    message : Told
        The same as a message to all.
    run : int
        Indices of a run.
    counts : sequence of int
        How many indices each owner has.
    """
    turns = len(counts)
    if message.is_list:
        lists = []
        turn, round_ = message.where // run % turns, message.where // (run * turns)
        at = round_ * run + message.where % run
        for t in range(turns):
            its = turn == t
            lists.append(tuple(x[its] for x in (at, *message.arrays[1:])))
        return lists
    words = _by_turns(v, message.where, run // BITS, [nwords(count) for count in counts])
    if message.values is None:
        return [(of,) for of in words]
    return list(zip(words, _by_turns(v, message.values, run, counts), strict=True))


def _by_turns(v: VectorStore, array: Array, width: int, counts: Sequence[int]) -> list[Array]:
    """Return, for each owner, the runs of an array that are its own, one behind the other."""
    xp, turns = v.device.xp, len(counts)
    rounds = -(-len(array) // (width * turns))
    padded = xp.zeros(rounds * turns * width, array.dtype)
    padded[: len(array)] = array
    rows = padded.reshape(rounds, turns, width)
    return [xp.ascontiguousarray(rows[:, t]).reshape(-1)[:count] for t, count in enumerate(counts)]


# ------------------------------------------------------------------------------------------
# The engine of GPUs in several processes: NCCL carries their arrays, MPI all else.
#
# NCCL comes with CuPy (`cupy.cuda.nccl`), and is imported when a job has more than one GPU. It
# has no wait with an end of its own: what waits for other processes here is given up after
# `PATIENCE`, and the communicators are aborted then.


#: Seconds after which a process gives up an exchange, or the first meeting of all in NCCL.
PATIENCE, PATIENCE_TO_MEET = 10.0, 60.0


def connected(joined: MpiEngine, devices: Sequence[Device], nccl: Any = None) -> MpiEngine:
    """Return an engine that shares arrays of devices by NCCL; `joined` itself if it cannot be.

    Every process calls it. NCCL takes no GPU twice, and every process has to have it.

    Parameters
    ----------
    joined : MpiEngine
        The processes.
    devices : sequence of Device
        The device of each local piece.
    nccl : module, optional
        CuPy's binding, or what stands in for it.

    Raises
    ------
    GridTimeout
        If the processes do not meet in NCCL.
    """
    nccl = nccl or _binding(devices)
    names = [device.identity if nccl else "" for device in devices]
    given = [(np.frombuffer(name.encode(), np.uint8),) for name in names]
    told = [one.tobytes() for (one,) in joined.gather(given)[0]]
    if len(told) == 1 or not all(told) or len(set(told)) < len(told):
        return joined
    made = NcclEngine(joined, devices, nccl)
    atexit.register(made.close)
    return made


def _binding(devices: Sequence[Device]) -> Any:
    if not devices or devices[0].xp.__name__ != "cupy":
        return None
    try:
        return importlib.import_module("cupy.cuda.nccl")
    except ImportError:
        return None


class NcclEngine(MpiEngine):
    """Hands over arrays of devices by NCCL, and does all else as `MpiEngine`. See `Engine`.

    Parameters
    ----------
    joined : MpiEngine
        The processes.
    devices : sequence of Device
        The device of each local piece.
    nccl : module
        CuPy's binding.
    """

    between_devices = True

    def __init__(self, joined: MpiEngine, devices: Sequence[Device], nccl: Any) -> None:
        super().__init__(joined._processes, len(joined.local), joined.devices[0])
        self._of_piece, self._nccl, self._pid = tuple(devices), nccl, os.getpid()
        os.environ["NCCL_NVLS_ENABLE"] = "0"  # no multicast: it outlives a process that hangs
        first = self.local[0] == 0
        own = np.frombuffer(nccl.get_unique_id(), np.uint8) if first else np.empty(0, np.uint8)
        number = self.gather([(own,)] * len(self.local))[0][0][0].tobytes()
        self._communicators: list[Any] = []
        _within(PATIENCE_TO_MEET, lambda: self._meet(number), "in NCCL")

    def _meet(self, number: bytes) -> None:
        made = []
        self._nccl.groupStart()
        for device, p in zip(self._of_piece, self.local, strict=True):
            with device.chosen():
                made.append(self._nccl.NcclCommunicator(self.size, number, p))
        self._nccl.groupEnd()
        self._communicators = made

    def hand(
        self, parts: Sequence[Sequence[tuple[Array, ...]]], among: Sequence[Sequence[int]]
    ) -> list[list[tuple[Array, ...]]]:
        """See `Engine`: the processes tell each other lengths, make room, and meet; then all send.

        Raises
        ------
        GridTimeout
            If another process does not send or receive in time; no array is handed over any more.
        """
        if not self._communicators:
            raise GridTimeout("grid: NCCL was given up before. Start the processes again.")
        group_of = {p: group for group in among for p in group}
        lengths = self._lengths(parts)
        found: list[list[tuple[Array, ...]]] = []
        for k, p in enumerate(self.local):
            device, group = self._of_piece[k], group_of[p]
            at = group.index(p)
            with device.alone():
                found.append(
                    [
                        parts[k][at]
                        if s == p
                        else tuple(device.xp.empty(n, kind) for kind, n in lengths[s][at])
                        for s in group
                    ]
                )
        self.barrier()  # a process that has no room says so here, and nobody sends
        self._send(parts, found, group_of)
        return found

    def _lengths(
        self, parts: Sequence[Sequence[tuple[Array, ...]]]
    ) -> list[list[list[tuple[Any, int]]]]:
        """Return, for every piece and each of its group, the type and the length of each array."""
        given = []
        for to_all in parts:
            every = [array for arrays in to_all for array in arrays]
            kinds = np.array([array.dtype.str.encode() for array in every], "S8")
            counts = [len(to_all), *map(len, every)]
            given.append((kinds.view(np.int64), np.array(counts, np.int64)))
        found = []
        for kinds, (receivers, *counts) in self.gather(given)[0]:
            types = [np.dtype(kind.decode()) for kind in kinds.view("S8")]
            every = list(zip(types, map(int, counts), strict=True))
            each = len(every) // int(receivers)
            found.append([every[r * each : (r + 1) * each] for r in range(receivers)])
        return found

    def _send(
        self,
        parts: Sequence[Sequence[tuple[Array, ...]]],
        found: Sequence[Sequence[tuple[Array, ...]]],
        group_of: dict[int, Sequence[int]],
    ) -> None:
        streams, ended = [], []
        for device in self._of_piece:
            with device.alone():
                streams.append(device.stream)

        def begin() -> None:  # a group is of one thread
            self._nccl.groupStart()
            for k, p in enumerate(self.local):
                device, by = self._of_piece[k], self._communicators[k]
                how = device, self._nccl.NCCL_UINT8, streams[k]
                with device.chosen():
                    for s, given, taken in zip(group_of[p], parts[k], found[k], strict=True):
                        if s != p:
                            _each(by.send, given, s, *how)
                            _each(by.recv, taken, s, *how)
            self._nccl.groupEnd()  # it may set up connections, which takes others

        try:
            with uninterrupted():  # both waits have an end
                _within(PATIENCE, begin, "in an exchange")
                for device in self._of_piece:
                    with device.alone():
                        ended.append(device.mark())
                self._wait(ended)
        except BaseException:
            self._end("abort")
            raise
        for to_all, p in zip(parts, self.local, strict=True):
            others = [given for s, given in zip(group_of[p], to_all, strict=True) if s != p]
            self.sent += sum(array.nbytes for given in others for array in given)

    def _wait(self, ended: Sequence[Callable[[], bool]]) -> None:
        """Wait until every device has done its part, or NCCL tells an error, or time is up."""
        until = time.monotonic() + PATIENCE
        while not all(has() for has in ended):
            for communicator in self._communicators:
                communicator.check_async_error()
            if time.monotonic() > until:
                raise _late("in an exchange", PATIENCE)
            time.sleep(0)

    def _end(self, how: str) -> None:
        held, self._communicators = self._communicators, []
        for communicator in held:
            with suppress(GridTimeout):
                _within(PATIENCE, getattr(communicator, how), "to an end")

    def close(self) -> None:
        """See `Engine`: the communicators end, while all processes are still there."""
        if os.getpid() == self._pid:  # a child of a fork has nothing of them
            self._end("destroy")


def _each(
    call: Callable[..., Any],
    arrays: Sequence[Array],
    peer: int,
    device: Device,
    kind: int,
    stream: int,
) -> None:
    for array in arrays:
        if array.nbytes:
            call(device.address(array), array.nbytes, kind, peer, stream)


def _within(seconds: float, work: Callable[[], None], where: str) -> None:
    """Do some work of NCCL, which may wait for other processes; give up after so many seconds."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="lagpu NCCL", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise _late(where, seconds)
    if raised:
        raise raised[0]


def _late(where: str, seconds: float) -> GridTimeout:
    return GridTimeout(
        f"grid: other processes did not come {where} for {seconds:g} seconds. Nothing was written. "
        "See that each process runs and that its GPU works, and start them again."
    )
