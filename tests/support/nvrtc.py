"""Compile kernels for real GPUs without having one."""

from __future__ import annotations

import functools
import os
from importlib.metadata import version

import pytest

from lagpu.backends.gpu.device.compiled import kept
from lagpu.backends.gpu.kernels import Kernel

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


@functools.cache
def _cuda_core():
    """cuda.core, or a skip where it is not installed; never a skip in CI."""
    try:
        import cuda.core

        cuda.core.Program("", "c++", cuda.core.ProgramOptions(arch="sm_90")).close()
    except Exception as error:  # a missing package and a missing NVRTC raise different things
        if os.environ.get("CI"):
            raise
        return error
    return cuda.core


def nvrtc_compile(kernel: Kernel, arch: str, *, optimised: bool = False) -> bytes:
    """Return the cubin of `kernel` for `arch`; raises with the compiler's log.

    Options are those that CuPy passes, with no include path: kernels include nothing. Whether a
    specialisation compiles takes no optimiser, which is most of the time, nor the other kernels of
    its file; all of those are proved optimised, by the file's defaults. What has compiled is kept
    under the hash of all that decides it, as lagpu keeps kernels.
    """
    core = _cuda_core()
    if isinstance(core, Exception):
        pytest.skip(f"NVRTC is missing: {core}")
    from cuda.bindings import nvrtc

    text = kernel.source if optimised else kernel.alone
    macros = [tuple(macro) for macro in kernel.macros] or None
    options = {"arch": arch, "std": "c++17", "define_macro": macros}
    options["ofast_compile"] = None if optimised else "max"

    def build(_folder: str) -> bytes:
        program = core.Program(text, "c++", core.ProgramOptions(**options))
        try:
            return bytes(program.compile("cubin").code)
        finally:
            program.close()

    decisive = (version("cuda-core"), repr(nvrtc.nvrtcVersion()), repr(options), text)
    return kept("nvrtc", decisive, ".cubin", build)[1]
