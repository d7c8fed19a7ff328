"""Meetings of devices one behind the other, as they are measured."""

import pytest

from lagpu import backends
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.grid.meetings import meeting_us
from lagpu.errors import NotSupported


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_meetings_in_a_row_end_in_any_order_of_threads(pieces):
    for seed in range(20):
        devices = [SimDevice(seed=seed, preempt=1 + seed % 4) for _ in range(pieces)]
        assert meeting_us(devices, told=bool(seed % 2), times=60) > 0


def test_devices_that_cannot_meet_are_refused():
    device = SimDevice()
    with pytest.raises(NotSupported, match="two pieces are on one device"):
        meeting_us([device, device])


def test_a_grid_measures_its_own():
    found = backends.get("grid:2:sim").capabilities.parts.meetings()
    assert list(found) == ["16 blocks", "16 blocks, told", "all blocks", "all blocks, told"]
    assert all(us > 0 for us in found.values())
