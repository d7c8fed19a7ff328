"""Parts of a grid's objects that travel from device to device, without the host."""

from lagpu.backends.grid.devices.collected import collected
from lagpu.backends.grid.devices.nccl import NcclEngine, connected

__all__ = ["NcclEngine", "collected", "connected"]
