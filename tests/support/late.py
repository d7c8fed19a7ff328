"""A sim device whose kernels run while the host goes on, as those of a GPU do."""

import threading

from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice


class LateDevice(SimDevice):
    """A generated loop is run by a thread, which other kernels and what waits join."""

    returns_early = True

    def __init__(self):
        super().__init__()
        self._running = threading.Thread()
        self._running.start()

    def run(self, kernel, threads, args, how):
        self._running.join()
        if kernel.name != "program":
            super().run(kernel, threads, args, how)
            return
        self.load(kernel)
        given = kernel, threads, args, how
        self._running = threading.Thread(target=super().run, args=given, daemon=True)
        self._running.start()
        self.began = True

    def _synchronize(self):
        self._running.join()

    def _read(self, array):
        self._running.join()
        return super()._read(array)

    def _to_host(self, array):
        self._running.join()
        return super()._to_host(array)

    def _wait_for(self, notification, counts):
        self._running.join()
        return super()._wait_for(notification, counts)


def late():
    """Return a backend on such a device."""
    return GpuBackend("late", LateDevice())
