"""Meetings of several devices in a row, to be timed; see ``common/peers.cuh``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lagpu.backends.gpu.device.peers import Peers, posts_words
from lagpu.backends.gpu.device.protocol import PER_CALL, Device
from lagpu.backends.gpu.kernels import from_source
from lagpu.errors import NotSupported

__all__ = ["meetings"]

_RESIDENT = 2048  # threads of a multiprocessor, at most
_MEETINGS = """#include "common/peers.cuh"
extern "C" __global__ void meetings(u32 piece, u32 epoch, u64 patience, const u64* windows,
                                    u32 times, bool told, u64* result) {
  Peers peers{piece, epoch, patience, windows};
  Totals all{0, 0, 0, 0, 0};
  u32 turn = 0;
  for (; turn < times && !all.verdict; ++turn) all = meet(&peers, 1, 1, told);
  if (global_thread() == 0) report_meetings(peers, all, turn, result);
}
"""


def meetings(
    devices: Sequence[Device], times: int, blocks: int | None, told: bool
) -> Callable[[], None]:
    """Return a function that has devices meet again and again; see `Parts.meetings`.

    Parameters
    ----------
    devices : sequence of Device
        Devices of one host.
    times, blocks, told
        As of `Parts.meetings`.

    Raises
    ------
    NotSupported
        If the devices cannot run one kernel together.
    """
    with devices[0].alone():
        why = devices[0].why_apart(devices)
    if why:
        raise NotSupported(f"grid: {why}.")
    windows, launches = [], []
    block = 64 if devices[0].name.startswith("sim") else 1024
    for device in devices:
        with device.alone():
            windows.append(device.shared_zeros(posts_words(len(devices))))
    peers = Peers(devices, windows)
    made = from_source(_MEETINGS, "meetings", file="meetings.cu", PEERS=str(len(devices)))
    for device in devices:
        with device.alone():
            one_each = device.resident_threads // _RESIDENT
            count = min(device.max_cooperative_blocks(made, block), blocks or one_each)
            launch = device.prepare(
                made, count * block, *(PER_CALL,) * 7, block=block, cooperative=True
            )
            launches.append(launch)

    def run() -> None:
        with devices[0].alone():
            peers.run(
                [
                    (launch, (*peers.arguments(p), np.uint32(times), told, peers.results[p]))
                    for p, launch in enumerate(launches)
                ]
            )

    return run
