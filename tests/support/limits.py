"""Other limits for the devices of a test."""

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.device.sim import SimDevice


def set_limits(monkeypatch, **changed):
    """Change limits of all devices, of GPUs and of sim."""
    for kind in (Device, SimDevice):
        monkeypatch.setattr(kind, "limits", kind.limits._replace(**changed))
