"""The engine of GPUs in several processes: NCCL carries their arrays, MPI all else.

NCCL comes with CuPy (`cupy.cuda.nccl`), and is imported when a job has more than one GPU. It has no
wait with an end of its own: what waits for other processes here is given up after `PATIENCE`, and
the communicators are aborted then.
"""

from __future__ import annotations

import atexit
import importlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.grid.mpi import MpiEngine
from lagpu.errors import GridTimeout
from lagpu.host.interrupt import uninterrupted

__all__ = ["NcclEngine", "connected"]

Array = Any
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
        for to_each in parts:
            every = [array for arrays in to_each for array in arrays]
            kinds = np.array([array.dtype.str.encode() for array in every], "S8")
            counts = [len(to_each), *map(len, every)]
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
        for to_each, p in zip(parts, self.local, strict=True):
            others = [given for s, given in zip(group_of[p], to_each, strict=True) if s != p]
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
