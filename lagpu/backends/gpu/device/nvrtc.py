"""CUDA C++ compiled by NVRTC for one GPU.

CuPy's own compiler takes FP32 numbers below 1.2e-38 for 0 (``-ftz=true``, which it adds to the
options of everybody), and links kernels that are launched cooperatively a second time.
"""

from __future__ import annotations

from typing import Any

from lagpu.backends.gpu.device import cache, shipped
from lagpu.backends.gpu.kernels import Kernel
from lagpu.errors import KernelCompileError


def compiled(
    cupy: Any, kernel: Kernel, capability: int, flags: tuple[str, ...], backend: str
) -> bytes:
    """Return a module for CUDA's driver with one kernel, from the cache if it is there and whole.

    What is not there is taken from the kernels that lagpu was shipped with, or compiled.

    Parameters
    ----------
    cupy : module
        CuPy, which holds NVRTC and knows the driver.
    kernel : Kernel
        What to compile.
    capability : int
        The compute capability of the GPU, 90 for 9.0.
    flags : tuple of str
        Further options of NVRTC.
    backend : str
        What error messages call the backend.

    Returns
    -------
    bytes
        Machine code, or PTX where NVRTC is older than the GPU.

    Raises
    ------
    KernelCompileError
        With the compiler's log.
    BackendUnavailable
        When there is no folder for compiled kernels that only the user may write.
    """
    nvrtc = cupy.cuda.nvrtc
    known = max(int(arch) for arch in nvrtc.getSupportedArchs())
    is_known = capability <= known
    arch = f"sm_{capability}" if is_known else f"compute_{known}"
    options = shipped.options_of(arch, kernel, flags)
    version = ".".join(map(str, nvrtc.getVersion()))

    def build(_folder: str) -> bytes:
        driver = int(cupy.cuda.runtime.driverGetVersion())
        return shipped.find(capability, options, kernel, driver) or compiled_now()

    def compiled_now() -> bytes:
        program = nvrtc.createProgram(kernel.alone, kernel.file, (), ())
        try:
            nvrtc.compileProgram(program, options)
            module: bytes = nvrtc.getCUBIN(program) if is_known else nvrtc.getPTX(program)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program)
            raise KernelCompileError(
                f"{kernel!r}: does not compile. The log says:\n{log}"
            ) from error
        finally:
            nvrtc.destroyProgram(program)
        return module

    decisive = (version, *options, kernel.name, kernel.alone)
    return cache.kept(backend, decisive, ".cubin" if is_known else ".ptx", build).content
