"""What a device was asked for while a program ran."""

import pytest

from lagpu.backends.gpu.device.cuda import CudaLaunch


@pytest.fixture
def recorded(place, monkeypatch):
    """What is asked of the device, in order; kernels by their names."""
    found, device = [], place.device

    def telling(name, own):
        def tell(self, *args):
            found.append(args[0].name if name == "run" else name.strip("_"))
            return own(self, *args)

        return tell

    for name in ("run", "_from_host", "_to_host", "_read", "timer"):
        monkeypatch.setattr(type(device), name, telling(name, getattr(type(device), name)))

    def telling_quick(own):  # it does not ask the device
        def tell(self, *args):
            found.append(self.kernel.name)
            return own(self, *args)

        return tell

    for name in ("_launch", "again"):
        monkeypatch.setattr(CudaLaunch, name, telling_quick(getattr(CudaLaunch, name)))
    return found
