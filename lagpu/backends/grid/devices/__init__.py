"""Parts of a grid's objects that travel from device to device, without the host."""

from lagpu.backends.grid.devices.collected import collected
from lagpu.backends.grid.devices.handed import handed
from lagpu.backends.grid.devices.nccl import NcclEngine, connected
from lagpu.backends.grid.devices.told import groups_of

__all__ = ["NcclEngine", "collected", "connected", "groups_of", "handed"]
