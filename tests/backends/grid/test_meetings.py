"""Meetings of devices in a row, as they are measured."""

import pytest

from lagpu import backends
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.grid.meetings import meetings
from lagpu.errors import NotSupported


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_meetings_in_a_row_end_in_any_order_of_threads(pieces):
    for seed in range(20):
        devices = [SimDevice(seed=seed, preempt=1 + seed % 4) for _ in range(pieces)]
        meetings(devices, 60, None, bool(seed % 2))()


def test_devices_that_cannot_meet_are_refused():
    device = SimDevice()
    with pytest.raises(NotSupported, match="two pieces are on one device"):
        meetings([device, device], 1, None, False)


def test_a_grid_has_its_devices_meet_again_and_again():
    run = backends.get("grid:2:sim").capabilities.parts.meetings(7, blocks=2, told=True)
    run()
    run()
