"""Compile the kernels of all algorithms for common GPUs: for a wheel, and for clones.

Usage: python .ci/cubins.py [--jobs 2] [GPU ...]   (by default sm_80 sm_90 sm_100)

Calls of the algorithms on the simulated GPU say which kernels these are
(`lagpu/selftest/kernels.py`). Kernels that an archive has stay. Needs g++
and the packages of the group `compile`; `python -m build` takes what lies there. The repository has
the archive of sm_90. A text that changes later has another hash and is compiled by its user, so an
old archive is of less use but does no harm.
"""

from __future__ import annotations

import argparse
import functools
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from cuda.bindings import nvrtc

from lagpu.backends.gpu.backend import GpuBackend
from lagpu.backends.gpu.device import compiled as shipped
from lagpu.backends.gpu.device.cuda import blocks_of_cluster
from lagpu.backends.gpu.device.protocol import CUDA_LIMITS
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.fused.program import batch
from lagpu.backends.gpu.kernels import Kernel
from lagpu.core import recorder
from lagpu.selftest.kernels import calls

GPUS = ("sm_80", "sm_90", "sm_100")


class Recorder(SimDevice):
    """A simulated GPU that keeps the kernels it runs: by its limits those of a real one."""

    name = "recorder"
    limits = CUDA_LIMITS

    def __init__(self, cluster: int) -> None:
        super().__init__(blocks=max(3, cluster))
        self.cluster_blocks = cluster
        self.kernels: list[Kernel] = []

    def max_cooperative_blocks(self, kernel: Kernel, block: int = 256, shared: int = 0) -> int:
        """Return the fewest blocks, which take the least time."""
        return kernel.cluster

    def run(self, kernel: Kernel, *how: object) -> None:  # type: ignore[override]
        """Run a kernel and keep it."""
        if kernel not in self.kernels:
            self.kernels.append(kernel)
        super().run(kernel, *how)  # type: ignore[arg-type]


@functools.cache
def common_kernels(cluster: int, seed: int = 1) -> list[Kernel]:
    """Return the kernels that the algorithms launch.

    Parameters
    ----------
    cluster : int
        Thread blocks of a cluster on the GPU.
    seed : int
        Of the graphs.
    """
    device = Recorder(cluster)
    place = GpuBackend("recorder", device)
    for hot in {10**9, recorder.HOT}:  # in a new process no statement waits for others yet
        # However busy this machine is, programs of statements are compiled before they are wanted.
        with mock.patch.object(recorder, "HOT", hot), mock.patch.object(batch, "WAITS", True):
            for _, call in calls(place, seed):
                call()
    return device.kernels


def compiled(kernel: Kernel, arch: str) -> bytes:
    """Return the machine code of a kernel; exits with the compiler's log."""
    program = asked(
        nvrtc.nvrtcCreateProgram(kernel.alone.encode(), kernel.file.encode(), 0, [], [])
    )
    options = [option.encode() for option in shipped.options_of(arch, kernel)]
    if nvrtc.nvrtcCompileProgram(program, len(options), options)[0]:
        log = b" " * asked(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(f"{kernel!r} for {arch}: {log.decode()}")
    code = b" " * asked(nvrtc.nvrtcGetCUBINSize(program))
    asked(nvrtc.nvrtcGetCUBIN(program, code))
    asked(nvrtc.nvrtcDestroyProgram(program))
    return code


def asked(answer: tuple) -> object:
    """Return what a call of NVRTC returns behind its error, which must be none."""
    error, *found = answer
    if error:
        raise SystemExit(f"NVRTC: {error}")
    return found[0] if len(found) == 1 else found


def main() -> None:
    """Write an archive for each GPU."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gpu", nargs="*", default=GPUS, help="such as sm_90")
    parser.add_argument("--jobs", type=int, default=2, help="kernels compiled at once")
    given = parser.parse_args()
    major, minor = asked(nvrtc.nvrtcVersion())
    for arch in given.gpu:
        began = time.perf_counter()
        capability = int(arch.removeprefix("sm_"))
        kernels = common_kernels(blocks_of_cluster(capability))
        toolkit = 1000 * major + 10 * minor
        code: dict[str, bytes] = {}
        missing: dict[str, Kernel] = {}
        for kernel in kernels:
            options = shipped.options_of(arch, kernel)
            known = shipped.find_shipped(capability, options, kernel, toolkit)
            if known is None:
                missing[shipped.member(options, kernel)] = kernel
            else:
                code[shipped.member(options, kernel)] = known
        with ThreadPoolExecutor(given.jobs) as pool:
            made = pool.map(functools.partial(compiled, arch=arch), missing.values())
            code.update(zip(missing, made, strict=True))
        path = shipped.write_archive(capability, toolkit, code)
        took = time.perf_counter() - began
        print(
            f"{path}: {len(kernels)} kernels, {len(missing)} of them new, "
            f"{path.stat().st_size:,} bytes, {took:.0f} s"
        )


if __name__ == "__main__":
    main()
