"""Several devices run one kernel together: they meet, add up, and no wait is without an end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pieces_of_search import gpus_for

from lagpu.backends.gpu.device.protocol import Peers, posts_words
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.kernels import GRID_BARRIER, constant, from_source
from lagpu.errors import GridTimeout, KernelLaunchError

TEXT = (Path(__file__).parents[3] / "support" / "peers_kernels.cu").read_text("utf-8")
GAVE_UP, OTHER_GAVE_UP = constant("kGaveUp"), constant("kOtherGaveUp")
VERDICT, MISSING, EPOCH = constant("kVerdict"), constant("kMissing"), constant("kEpoch")
LONG, SHORT = 60 * 10**9, 10**8  # nanoseconds: never spent, and always spent


def kernel_of(pieces):
    return from_source(TEXT, "barriers", file="peers_kernels.cu", PEERS=str(pieces))


@pytest.fixture(params=["sim", pytest.param("gpu", marks=pytest.mark.gpu)])
def barriers(request):
    """Return a function that makes the barriers of some devices, on sim or on GPUs of this host."""
    if request.param == "sim":
        return lambda pieces, **options: Barriers([SimDevice(**options) for _ in range(pieces)])

    def on_gpus(pieces, **_options):
        devices = gpus_for(pieces)
        if why := devices[0].why_apart(devices):
            pytest.skip(why)
        return Barriers(devices)

    return on_gpus


class Barriers:
    """Windows of some devices that meet again and again."""

    def __init__(self, devices):
        self.devices = devices
        self.blocks = 3
        windows = []
        for device in devices:
            with device.lock, device.entered():
                count = posts_words(len(devices)) + len(devices) * self.blocks
                windows.append(device.shared_zeros(count))
        self.peers = Peers(devices, windows)

    def launches(self, times, silent=None, block=64):
        """Return a launch for each device; from round ``silent[1]`` on one comes to no barrier."""
        kernel, launches = kernel_of(len(self.devices)), []
        for p, device in enumerate(self.devices):
            with device.lock, device.entered():
                last = times + 1 if silent is None or p != silent[0] else silent[1]
                launch = device.prepare(kernel, self.blocks * block, block=block, cooperative=True)
                given = self.peers.fixed(p) | self.peers.turn() | {"times": times, "silent": last}
                given["barrier"] = device.xp.zeros(GRID_BARRIER, np.uint32)
                np.asarray(self.peers._seen[p])[:] = 0  # at once: a kernel would do so later
                launches.append((launch, given | {"result": self.peers.results[p]}))
        return launches

    def run(self, launches):
        """Run launches of some devices, and return what all report."""
        launches[0][0].device.run_together(launches)
        return [self.peers._reported(p) for p in range(len(self.devices))]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_all_meet_and_add_up(barriers, pieces, seed):
    all_of = barriers(pieces, seed=seed, preempt=1 if seed == 4 else 16)
    for times in (1, 7):  # the second time among the posts of the first
        for result in all_of.peers.run(all_of.launches(times)):
            assert result[: VERDICT + 1].tolist() == [times, 0, 0]
    assert all_of.peers.turn()["epoch"] == 16


@pytest.mark.parametrize("absent", [{0}, {1}, {2}, {0, 2}])
def test_a_device_that_never_comes_is_named(barriers, absent):
    three = barriers(3)
    three.peers.patience = SHORT
    launches = [launch for p, launch in enumerate(three.launches(4)) if p not in absent]
    for p, result in enumerate(three.run(launches)):
        if p not in absent:
            assert result[0] == 0
            assert result[VERDICT] == GAVE_UP
            assert result[MISSING] == sum(1 << q for q in absent)


@pytest.mark.parametrize("pieces", [2, 3])
def test_a_device_that_comes_no_more_ends_all(barriers, pieces):
    some = barriers(pieces)
    some.peers.patience = SHORT
    results = some.run(some.launches(9, silent=(1, 5)))
    assert results[1][: VERDICT + 1].tolist() == [5, 0, 0]
    for result in (results[0], *results[2:]):
        assert result[: VERDICT + 1].tolist() == [5, 0, GAVE_UP]
        assert result[MISSING] == 1 << 1


def test_blocks_of_a_device_give_up_together():
    """Posts arrive while patience ends; a block left behind would wait at the next barrier."""
    for seed in range(80):
        some = Barriers([SimDevice(seed=seed, preempt=1 + seed % 3) for _ in range(3)])
        some.peers.patience = 2000 << seed % 7
        for result in some.run(some.launches(20)):
            assert result[1] == 0
            assert (result[0] < 20) == (result[VERDICT] > 0)


def test_who_gives_up_tells_the_others(barriers):
    """What a device posts when it has given up ends the next barrier of the others at once."""
    both = barriers(2)
    both.peers.patience = SHORT
    assert both.run(both.launches(3)[:1])[0][VERDICT] == GAVE_UP
    both.peers.patience = LONG
    late = both.run(both.launches(3)[1:])[1]  # the other one comes after all
    assert late[: VERDICT + 1].tolist() == [0, 0, OTHER_GAVE_UP]
    assert late[EPOCH] == 2  # it has met at 1, as the post of that was there


def test_a_timeout_is_an_error_after_which_all_meet_again(barriers):
    two = barriers(2)
    two.peers.patience = SHORT
    two.peers.run(two.launches(2))
    with pytest.raises(GridTimeout, match=r"piece 0 has heard nothing of piece 1 in turn 5\. "):
        two.peers.run(two.launches(9, silent=(1, 5)))
    two.peers.patience = LONG
    assert [int(result[0]) for result in two.peers.run(two.launches(3))] == [3, 3]


def test_an_interrupt_leaves_no_post(barriers, monkeypatch):
    two = barriers(2)

    def interrupted(*_args):
        raise KeyboardInterrupt

    launches = two.launches(2)
    with monkeypatch.context() as patch:
        patch.setattr(two.peers, "_reported", interrupted)
        with pytest.raises(KeyboardInterrupt):
            two.peers.run(launches)
    assert [int(result[0]) for result in two.peers.run(two.launches(3))] == [3, 3]


def test_only_equal_cooperative_launches_run_together():
    device = SimDevice()
    kernel = from_source(
        '#include "common/prims.cuh"\nextern "C" __global__ void k(u32* x) { x[0] = 1; }', "k"
    )
    x = np.zeros(1, np.uint32)
    some, other = (device.prepare(kernel, n, x=x, block=b) for n, b in ((64, 64), (96, 32)))
    with pytest.raises(KernelLaunchError, match="is not how the first one runs"):
        device.run_together([(some, {})])
    some.cooperative = other.cooperative = True
    with pytest.raises(KernelLaunchError, match="is not how the first one runs"):
        device.run_together([(some, {}), (other, {})])
    assert x[0] == 0
