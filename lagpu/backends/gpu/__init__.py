"""The gpu backend: storage forms, planner and kernels on a CUDA device or on its simulation."""

from lagpu.backends.gpu.backend import GpuBackend

__all__ = ["GpuBackend", "make_gpu", "make_sim"]


def make_gpu() -> GpuBackend:
    """Return the backend on the first CUDA device.

    Raises
    ------
    BackendUnavailable
        If CuPy or a device is missing.
    """
    from lagpu.backends.gpu.device.cuda import CudaDevice

    return GpuBackend("gpu", CudaDevice())


def make_sim() -> GpuBackend:
    """Return the backend on the simulated device.

    Raises
    ------
    BackendUnavailable
        If there is no C++ compiler.
    """
    from lagpu.backends.gpu.device.sim import SimDevice

    return GpuBackend("sim", SimDevice())
