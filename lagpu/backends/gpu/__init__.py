"""The gpu backend: storage forms, planner and kernels on a CUDA device or on its simulation."""

from lagpu.backends.gpu.backend import GpuBackend

__all__ = ["GpuBackend", "make_gpu", "make_sim"]


def make_gpu(index: int = 0) -> GpuBackend:
    """Return the backend on a CUDA device, or raise `BackendUnavailable`."""
    from lagpu.backends.gpu.device.cuda import CudaDevice

    return GpuBackend(f"gpu:{index}" if index else "gpu", CudaDevice(index))


def make_sim(index: int = 0) -> GpuBackend:
    """Return the backend on the simulated device of a number; it needs a C++ compiler."""
    from lagpu.backends.gpu.device.sim import SimDevice

    name = f"sim:{index}" if index else "sim"
    return GpuBackend(name, SimDevice(backend=name))
