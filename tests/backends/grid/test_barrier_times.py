"""Barriers of devices in a row, as they are measured."""

import pytest
from barrier_times import barriers, main

from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.errors import NotSupported


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_barriers_in_a_row_end_in_any_order_of_threads(pieces):
    for seed in range(20):
        devices = [SimDevice(seed=seed, preempt=1 + seed % 4) for _ in range(pieces)]
        barriers(devices, 60, None, bool(seed % 2))()


def test_devices_that_cannot_run_one_kernel_are_refused():
    device = SimDevice()
    with pytest.raises(NotSupported, match="two pieces are on one device"):
        barriers([device, device], 1, None, False)


def test_the_times_of_a_grid_are_printed(capsys):
    main("grid:2:sim", times=7)
    lines = capsys.readouterr().out.splitlines()
    kinds = ["16 blocks", "16 blocks, ordered", "all blocks", "all blocks, ordered"]
    assert [line.partition(":")[0] for line in lines] == kinds
