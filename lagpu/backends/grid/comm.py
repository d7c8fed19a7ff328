"""Collectives of the pieces of a grid: in one process, by MPI, and by NCCL between GPUs."""

from __future__ import annotations

import atexit
import functools
import importlib
import operator
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.grid.processes import Bytes, Processes
from lagpu.errors import GridTimeout, NotSupported
from lagpu.host.interrupt import uninterrupted

T = TypeVar("T")
Arrays = tuple[Any, ...]
"""What one piece sends to another: arrays of one dimension."""


class LocalEngine:
    """The pieces of a grid and their collectives, all in this process.

    Every process of a grid calls each method, in the same order. What a piece receives is in the
    order of the pieces, so that every process computes the same bits; it is read only, since pieces
    of one process may share it.

    Parameters
    ----------
    size : int
        The number of pieces, at least 1.
    devices : sequence of Device, optional
        The device of each piece, if each has one whose memory kernels of the others can address.

    Attributes
    ----------
    local : sequence of int
        The numbers of the pieces of this process, rising, from ``0 .. size-1``.
    sent : int
        Bytes that pieces of this process have sent to other pieces so far.
    between_devices : bool
        Whether it can exchange arrays of the pieces' devices.
    """

    alone = True  # whether all pieces are in this process
    beside = 1  # processes of the grid on this host, which share its memory
    turn = 0  # the number of the statement that runs

    def __init__(self, size: int, devices: Sequence[Device] = ()) -> None:
        self.size = size
        self._devices = tuple(devices)
        self.local: Sequence[int] = range(size)
        self.sent = 0
        self.between_devices = bool(devices)

    def gather(self, parts: Sequence[Arrays]) -> list[list[Arrays]]:
        """Return, for each local piece, what every piece gives; `parts` has the local ones'."""
        self.sent += (self.size - 1) * sum(map(_nbytes, parts))
        return [list(parts)] * self.size

    def exchange(
        self, parts: Sequence[Mapping[int, Arrays]], on_devices: bool = False
    ) -> list[dict[int, Arrays]]:
        """Send messages from piece to piece.

        Parameters
        ----------
        parts : sequence of mapping
            For each local piece its messages, by receiver.
        on_devices : bool
            Whether arrays are on the pieces' devices, and stay there; only `between_devices`.

        Returns
        -------
        list of dict
            For each local piece what it receives, by sender in the order of the pieces.
        """
        found: list[dict[int, Arrays]] = []
        for d in self.local:
            given = {s: to[d] for s, to in enumerate(parts) if d in to}
            self.sent += sum(_nbytes(arrays) for s, arrays in given.items() if s != d)
            if on_devices:
                device = self._devices[d]
                with device.alone():
                    for s in given.keys() - {d}:
                        given[s] = tuple(device.fetched(x, self._devices[s]) for x in given[s])
            found.append(given)
        return found

    def sum(self, numbers: Sequence[float]) -> float:
        """Return the sum of a number from each piece, added in their order."""
        return functools.reduce(operator.add, numbers)  # `sum` of Python 3.12 corrects the rounding

    def window(self, nbytes: int) -> Sequence[Any] | None:
        """Return an array of u64 on each piece's device that all can address, or None."""
        if not self._devices:
            return None
        made = []
        for device in self._devices:
            with device.alone():
                made.append(device.shared_zeros(-(-nbytes // 8)))
        return made

    def barrier(self) -> None:
        """Return when every process has called it."""


def _nbytes(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays)


# ------------------------------------------------------------------------------------------
# MPI: arrays as bytes.


_WORD = 8  # each array begins at a multiple of so many bytes, as the widest type needs


def to_bytes(messages: Sequence[Arrays]) -> Bytes:
    """Return messages as one array of bytes.

    It begins with the number of messages and the number of arrays of each; then come the type and
    the length of every array, and the arrays.
    """
    arrays = [np.ascontiguousarray(array) for one in messages for array in one]
    head = np.array([len(messages), *map(len, messages)], np.int64)
    types = np.array([array.dtype.str.encode() for array in arrays], f"S{_WORD}")
    lengths = np.array([len(array) for array in arrays], np.int64)
    parts = [part.view(np.uint8) for part in (head, types.view(np.int64), lengths)]
    for array in arrays:
        parts += [array.view(np.uint8), np.zeros(-array.nbytes % _WORD, np.uint8)]
    return np.concatenate(parts)


def from_bytes(message: Bytes) -> list[Arrays]:
    """Return the messages, which share the memory of the bytes and are read only."""
    (count,) = message[:_WORD].view(np.int64).tolist()
    at = (1 + count) * _WORD
    widths = message[_WORD:at].view(np.int64).tolist()
    types, lengths = message[at : at + 2 * sum(widths) * _WORD].reshape(2, -1)
    at, found = at + 2 * sum(widths) * _WORD, []
    each = zip(types.view(f"S{_WORD}"), lengths.view(np.int64), strict=True)
    for width in widths:
        arrays = []
        for _ in range(width):
            name, length = next(each)
            dtype = np.dtype(name.decode())
            array = message[at : at + length * dtype.itemsize].view(dtype)
            array.flags.writeable = False
            arrays.append(array)
            at += array.nbytes + -array.nbytes % _WORD
        found.append(tuple(arrays))
    return found


class MpiEngine:
    """The pieces of a grid in the processes of a job, as many in each. See `LocalEngine`.

    The local pieces have `devices` of these numbers on this host, from `first_device` on.
    """

    alone = False
    between_devices = False

    def __init__(self, processes: Processes, pieces: int = 1, first_device: int = 0) -> None:
        self._processes = processes
        self._pieces = pieces
        self.size = processes.size * pieces
        self.local: Sequence[int] = range(processes.rank * pieces, (processes.rank + 1) * pieces)
        self.devices: Sequence[int] = range(first_device, first_device + pieces)
        self.beside = processes.beside
        self.sent = 0
        self.begin, self.agree, self.fail = processes.begin, processes.agree, processes.fail
        self.barrier, self.inside = processes.agree, processes.inside

    @property
    def turn(self) -> int:
        """See `LocalEngine`."""
        return self._processes.turn

    def gather(self, parts: Sequence[Arrays]) -> list[list[Arrays]]:
        """See `LocalEngine`: one list for all local pieces."""
        message = to_bytes(parts)
        self.sent += (self._processes.size - 1) * len(message)
        lists = [of for one in self._processes.gather(message) for of in from_bytes(one)]
        return [lists] * self._pieces

    def exchange(
        self, parts: Sequence[Mapping[int, Arrays]], on_devices: bool = False
    ) -> list[dict[int, Arrays]]:
        """See `LocalEngine`: one message to each process; from piece to piece, it may be empty."""
        if on_devices:
            raise NotSupported("grid: MPI sends no arrays of devices. Exchange them on the host.")
        pieces = self._pieces
        messages = [
            to_bytes([to.get(d, ()) for to in parts for d in range(first, first + pieces)])
            for first in range(0, self.size, pieces)
        ]
        rank = self._processes.rank
        self.sent += sum(len(message) for p, message in enumerate(messages) if p != rank)
        lists = [from_bytes(message) for message in self._processes.exchange(messages)]
        found = []
        for d in range(pieces):
            given = enumerate(of for one in lists for of in one[d::pieces])
            found.append({s: arrays for s, arrays in given if arrays})
        return found

    def sum(self, numbers: Sequence[float]) -> float:
        """See `LocalEngine`: numbers are whole if they are so on every piece."""
        given = self.gather([(np.array([number]),) for number in numbers])[0]
        total: float = functools.reduce(operator.add, [number.item() for (number,) in given])
        return total

    def window(self, nbytes: int) -> Sequence[Any] | None:
        """See `LocalEngine`: a process does not address the memory of another one."""
        return None

    def group(self, pieces: int) -> MpiEngine:
        """Return the engine of so many pieces that follow each other, for use inside `inside`.

        ``pieces`` divides the number of all, and is a multiple of those of a process.
        """
        group = self._processes.group(pieces // self._pieces)
        return MpiEngine(group, self._pieces, self.devices[0])


Engine = LocalEngine | MpiEngine


# ------------------------------------------------------------------------------------------
# NCCL carries arrays of GPUs in several processes, MPI all else.
#
# NCCL comes with CuPy (`cupy.cuda.nccl`), and is imported when a job has more than one GPU. Its
# calls have no timeout, so each runs in a thread that is given up after `PATIENCE`; the
# communicators are aborted then.


#: Seconds after which a process gives up an exchange, or the start of the communicators.
PATIENCE, PATIENCE_TO_MEET = 10.0, 60.0


def connected(joined: MpiEngine, devices: Sequence[Device], nccl: Any = None) -> MpiEngine:
    """Return an engine that exchanges arrays of devices by NCCL; `joined` itself if it cannot be.

    Every process calls it, with the device of each local piece. NCCL takes no GPU twice, and every
    process has to have it. `nccl` is CuPy's binding or a substitute.

    Raises
    ------
    GridTimeout
        If another process does not start NCCL in time.
    """
    if nccl is None and devices and devices[0].xp.__name__ == "cupy":
        with suppress(ImportError):
            nccl = importlib.import_module("cupy.cuda.nccl")
    names = [device.identity if nccl else "" for device in devices]
    given = [(np.frombuffer(name.encode(), np.uint8),) for name in names]
    all_names = [one.tobytes() for (one,) in joined.gather(given)[0]]
    if len(all_names) == 1 or not all(all_names) or len(set(all_names)) < len(all_names):
        return joined
    made = NcclEngine(joined, devices, nccl)
    atexit.register(made.close)
    return made


class NcclEngine(MpiEngine):
    """Exchanges arrays of devices by NCCL, and does all else as `MpiEngine`; see `connected`."""

    between_devices = True

    def __init__(self, joined: MpiEngine, devices: Sequence[Device], nccl: Any) -> None:
        super().__init__(joined._processes, len(joined.local), joined.devices[0])
        self._of_piece, self._nccl, self._pid = tuple(devices), nccl, os.getpid()
        os.environ["NCCL_NVLS_ENABLE"] = "0"  # no multicast: it outlives a process that hangs
        first = self.local[0] == 0
        own = np.frombuffer(nccl.get_unique_id(), np.uint8) if first else np.empty(0, np.uint8)
        number = self.gather([(own,)] * len(self.local))[0][0][0].tobytes()
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
        self, parts: Sequence[Mapping[int, Arrays]], on_devices: bool = False
    ) -> list[dict[int, Arrays]]:
        """See `LocalEngine`: all gather lengths, allocate and synchronize, then send.

        Raises
        ------
        GridTimeout
            If another process does not send or receive in time; no array of a device can be sent
            after that.
        """
        if not on_devices:
            return super().exchange(parts)
        if not self._communicators:
            raise GridTimeout("grid: NCCL was given up before. Start the processes again.")
        kinds = self._kinds(parts)
        found: list[dict[int, Arrays]] = []
        for device, p, own in zip(self._of_piece, self.local, parts, strict=True):
            with device.alone():
                found.append(
                    {
                        s: own[p] if s == p else tuple(device.xp.empty(n, of) for of, n in to[p])
                        for s, to in enumerate(kinds)
                        if p in to
                    }
                )
        self.barrier()  # a process without enough memory fails here, before any one sends
        self._send(parts, found)
        return found

    def _kinds(
        self, parts: Sequence[Mapping[int, Arrays]]
    ) -> list[dict[int, list[tuple[np.dtype[Any], int]]]]:
        """Return, for every piece and each of its receivers, the type and length of each array."""
        given = []
        for to in parts:
            every = [array for arrays in to.values() for array in arrays]
            types = np.array([array.dtype.str.encode() for array in every], "S8").view(np.int64)
            counts = np.array([len(arrays) for arrays in to.values()], np.int64)
            lengths = np.array([len(array) for array in every], np.int64)
            given.append((np.array([*to], np.int64), counts, types, lengths))
        found = []
        for receivers, counts, types, lengths in self.gather(given)[0]:
            names = [np.dtype(name.decode()) for name in types.view("S8")]
            each = iter(zip(names, lengths.tolist(), strict=True))
            to_each = zip(receivers.tolist(), counts.tolist(), strict=True)
            found.append({d: [next(each) for _ in range(count)] for d, count in to_each})
        return found

    def _send(
        self, parts: Sequence[Mapping[int, Arrays]], found: Sequence[Mapping[int, Arrays]]
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
                    for q in sorted(parts[k].keys() | found[k].keys()):
                        if q != p:
                            _each(by.send, parts[k].get(q, ()), q, *how)
                            _each(by.recv, found[k].get(q, ()), q, *how)
            self._nccl.groupEnd()  # it may set up connections, which needs other processes

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
            time.sleep(0)

    def _end(self, how: str) -> None:
        held, self._communicators = self._communicators, []
        for communicator in held:
            with suppress(GridTimeout):
                _within(PATIENCE, getattr(communicator, how), "to an end")

    def close(self) -> None:
        """End the communicators, while all processes are still there."""
        if os.getpid() == self._pid:  # a child of a fork has none of them
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
