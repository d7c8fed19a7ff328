"""Devices of one host that run one kernel together: their windows, and how such a run ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from lagpu.backends.gpu.device.protocol import CheckedLaunch, Device, give_way, named_error
from lagpu.backends.gpu.kernels import constant
from lagpu.errors import GridTimeout

Array = Any
MOST_PEERS = constant("kMostPeers")
#: Nanoseconds after which a device that has heard nothing of another one gives up.
PATIENCE = 10 * 10**9
_GLANCES, _ROUNDS = 100, 1000  # at a report, some milliseconds in all
_RESULTS, _EPOCH, _VERDICT = constant("kResults"), constant("kEpoch"), constant("kVerdict")


def posts_words(count: int) -> int:
    """Return the u64 at the beginning of each window that `count` devices take for their posts."""
    return constant("kPostTurns") * count * constant("kPostWords")


class Peers:
    """Windows and reports of devices that run one kernel together; see common/peers.cuh.

    Each device of this process, whose pieces are numbered from `first`, has a window: zeroed memory
    that all can address, with `posts_words` u64, and after these what a kernel keeps there.
    `everywhere` has for each device the addresses there of all windows, if other processes have
    some.
    """

    def __init__(
        self, devices: Sequence[Device], windows: Sequence[Array],
        everywhere: Sequence[Sequence[int]] = (), first: int = 0,
    ) -> None:  # fmt: skip
        self.patience = PATIENCE  #: Nanoseconds that a device waits for another one.
        self._devices, self._windows, self._first = tuple(devices), tuple(windows), first
        #: Whether the posts are as a run expects them; `clear` makes them so.
        self.ready, self._epoch = True, 0
        self.layout: Any = None  #: What all kernels since the last `clear` keep in the windows.
        where = [d.address(window) for d, window in zip(devices, windows, strict=True)]
        self.addresses: list[Array] = []  #: Of all windows, u64, for each device.
        self.results: list[Array] = []  #: Where the kernel of each reports: u64 on the host.
        self._seen: list[memoryview] = []
        self.nbytes = sum(int(window.nbytes) for window in windows)
        for device, known in zip(devices, everywhere or [where] * len(where), strict=True):
            with device.alone():
                self.addresses.append(device.from_host(np.array(known, np.uint64)))
                result, seen = device.pinned_zeros(_RESULTS)
            self.results.append(result)
            self._seen.append(seen)
        self.count = len(self.addresses[0])  #: The pieces of all processes.

    def fixed(self, k: int) -> dict[str, Any]:
        """Return the arguments of the k-th piece of this process that are the same in each run."""
        return {"piece": self._first + k, "windows": self.addresses[k]}

    def turn(self) -> dict[str, Any]:
        """Return those of the next run."""
        return {"epoch": self._epoch, "patience": self.patience}

    def run(
        self,
        launches: Sequence[tuple[CheckedLaunch, Any]],
        results: Sequence[Array] = (), meanwhile: Callable[[], object] | None = None,
    ) -> list[Array]:  # fmt: skip
        """Run the launches of all devices, in their order; return what each reports, on the host.

        The caller holds the devices' locks. The kernels have nothing to wait for but those of other
        processes; if there is an error they have ended, and what they wrote is of no use:
        `GridTimeout` if a device has waited too long for another one, `KeyboardInterrupt` if the
        host has stopped them. They report to `results` on the devices, by default to those above,
        which the host sees sooner, and which hold a report until the next run. The host calls
        `meanwhile` while they run; the thread has entered one of the devices.
        """
        if not self.ready:
            self.clear()
        for seen in self._seen:
            seen[_EPOCH] = self._epoch
        self.ready, first = False, self._devices[0]
        try:
            first.run_together(launches)
            if meanwhile is not None:
                meanwhile()
            found = [self._reported(k, results) for k in range(len(self._devices))]
            if any(report[_VERDICT] for report in found):
                self._fail(found)
        except BaseException as error:
            self._wait()  # which their patience bounds
            named = named_error(first, error, "device") if isinstance(error, Exception) else None
            if named is None:
                raise
            raise named from error
        self._epoch, self.ready = int(found[0][_EPOCH]), True
        return found

    def _reported(self, k: int, results: Sequence[Array] = ()) -> Array:
        device = self._devices[k]
        if results:
            with device.alone():
                return device.to_host(results[k][:_RESULTS])
        seen, before = self._seen[k], self._epoch
        for _ in range(_ROUNDS):
            for _ in range(_GLANCES):
                if seen[_EPOCH] != before:
                    return seen
            give_way()  # other threads may have work for other devices
        with device.alone():
            device.synchronize()
        return seen

    def _wait(self) -> None:
        for device in self._devices:
            with device.alone():
                device.synchronize()

    def clear(self) -> None:
        """Empty this process' windows while no kernel runs; none begins before all are empty."""
        for device, window in zip(self._devices, self._windows, strict=True):
            with device.alone():
                window[:] = 0
        self._wait()
        self._epoch, self.ready = 0, True

    def _fail(self, results: Sequence[Array]) -> NoReturn:
        verdicts = [result[_VERDICT] for result in results]
        if constant("kStopped") in verdicts:
            raise KeyboardInterrupt
        gave_up = constant("kGaveUp")
        k = verdicts.index(gave_up if gave_up in verdicts else constant("kOtherGaveUp"))
        turn, missing = (int(results[k][constant(name)]) for name in ("kTurn", "kMissing"))
        who = " and ".join(str(p) for p in range(self.count) if missing >> p & 1)
        raise GridTimeout(
            f"grid: piece {self._first + k} has heard nothing of piece {who or '?'} in turn "
            f"{turn}. Nothing was written. See that each device works, and that no other program "
            "keeps it busy."
        )
