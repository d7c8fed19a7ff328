"""Barriers of several devices in a row, to be timed; see ``common/peers.cuh``.

``python tests/support/barrier_times.py grid:2:gpu`` prints the microseconds of one, with few blocks
and with all, where blocks order what they have written to other devices and where they do not.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence

from lagpu import backends
from lagpu.backends.gpu.device.protocol import Device, Peers, posts_words
from lagpu.backends.gpu.kernels import from_source
from lagpu.bench.harness import Span, devices_of
from lagpu.errors import NotSupported

_RESIDENT = 2048  # threads of a multiprocessor, at most
_BARRIERS = """#include "common/peers.cuh"
extern "C" __global__ void barriers(u32 piece, u32 epoch, u64 patience, const u64* windows,
                                    u32 times, bool ordered, u64* result) {
  Peers peers{piece, epoch, patience, windows};
  Totals all{0, 0, 0, 0, 0};
  u32 turn = 0;
  for (; turn < times && !all.verdict; ++turn) all = barrier_of_all(&peers, 1, 1, ordered);
  if (global_thread() == 0) report_barriers(peers, all, turn, result);
}
"""


def barriers(
    devices: Sequence[Device], times: int, blocks: int | None, ordered: bool
) -> Callable[[], None]:
    """Return a function that runs a kernel of `times` barriers on devices of one host.

    Each has some thread blocks, by default one a multiprocessor, as a search has; `ordered` says
    whether each block orders what it may have written to memory of other devices.

    Raises
    ------
    NotSupported
        If the devices cannot run one kernel together.
    """
    with devices[0].lock, devices[0].entered():
        why = devices[0].why_apart(devices)
    if why:
        raise NotSupported(f"grid: {why}.")
    windows, launches = [], []
    block = 64 if devices[0].name.startswith("sim") else 1024
    for device in devices:
        with device.lock, device.entered():
            windows.append(device.shared_zeros(posts_words(len(devices))))
    peers = Peers(devices, windows)
    made = from_source(_BARRIERS, "barriers", file="barriers.cu", PEERS=str(len(devices)))
    for device in devices:
        with device.lock, device.entered():
            one_each = device.resident_threads // _RESIDENT
            count = min(device.max_cooperative_blocks(made, block), blocks or one_each)
            launches.append(device.prepare(made, count * block, block=block, cooperative=True))

    how = {"times": times, "ordered": ordered}

    def run() -> None:
        with devices[0].lock, devices[0].entered():
            peers.run(
                [
                    (launch, {**peers.fixed(p), **peers.turn(), **how, "result": peers.results[p]})
                    for p, launch in enumerate(launches)
                ]
            )

    return run


def main(grid: str, times: int = 500) -> None:
    """Print the time of a barrier of a grid's devices."""
    devices = devices_of(backends.get(grid))
    for blocks, ordered in itertools.product((16, None), (False, True)):
        run = barriers(devices, times, blocks, ordered)
        run()  # which compiles
        with Span(devices, together=True) as span:
            run()
        what = f"{blocks or 'all'} blocks{', ordered' * ordered}"
        print(f"{what}: {span.together_ms * 1e3 / times:.3g} us")


if __name__ == "__main__":
    main(sys.argv[1])
