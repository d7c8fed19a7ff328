"""What NVRTC is asked to compile, seen through a stand-in for CuPy."""

from types import SimpleNamespace

import pytest

from lagpu.backends.gpu.device import compiled as shipped
from lagpu.backends.gpu.device.compiled import compiled
from lagpu.backends.gpu.kernels import kernel
from lagpu.errors import KernelCompileError

COUNT = kernel("elementwise/bitmap.cu", "count_bits")


class Nvrtc:
    """Compiles every text to the options that it is given."""

    NVRTCError = ValueError

    def __init__(self, broken=False):
        self.broken, self.programs, self.compiled = broken, {}, 0

    def getSupportedArchs(self):
        return [80, 90, 100]

    def getVersion(self):
        return 13, 0

    def createProgram(self, text, name, headers, include_names):
        self.programs[len(self.programs) + 1] = text
        return len(self.programs)

    def compileProgram(self, program, options):
        self.compiled += 1
        self.options = options
        if self.broken:
            raise self.NVRTCError("NVRTC_ERROR_COMPILATION")

    def getProgramLog(self, program):
        return "elementwise/bitmap.cu(3): error"

    def getCUBIN(self, program):
        return b"cubin " + " ".join(self.options).encode()

    def getPTX(self, program):
        return b"ptx " + " ".join(self.options).encode()

    def destroyProgram(self, program):
        del self.programs[program]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and nothing that was compiled before."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("LAGPU_CACHE_DIR", str(folder))
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "cubins")
    return folder


def compile_with(nvrtc, capability=90, flags=(), driver=13000):
    runtime = SimpleNamespace(driverGetVersion=lambda: driver)
    cupy = SimpleNamespace(cuda=SimpleNamespace(nvrtc=nvrtc, runtime=runtime))
    return compiled(cupy, COUNT, capability, flags, "gpu")


def test_a_kernel_is_compiled_once_for_each_gpu_and_set_of_options(cache):
    nvrtc = Nvrtc()
    assert compile_with(nvrtc) == compile_with(nvrtc) == b"cubin -arch=sm_90 -std=c++17"
    assert nvrtc.compiled == 1
    assert compile_with(nvrtc, 80) == b"cubin -arch=sm_80 -std=c++17"
    assert compile_with(nvrtc, 90, ("-lineinfo",)).endswith(b" -lineinfo")
    assert nvrtc.compiled == 3
    assert len(list(cache.iterdir())) == 3
    assert not nvrtc.programs


def test_a_gpu_newer_than_nvrtc_gets_ptx(cache):
    assert compile_with(Nvrtc(), 120) == b"ptx -arch=compute_100 -std=c++17"
    assert [file.suffix for file in cache.iterdir()] == [".ptx"]


def test_an_error_has_the_log_and_leaves_nothing(cache):
    nvrtc = Nvrtc(broken=True)
    with pytest.raises(KernelCompileError, match=r"bitmap.cu\(3\): error") as error:
        compile_with(nvrtc)
    assert isinstance(error.value.__cause__, ValueError)
    assert not list(cache.iterdir())
    assert not nvrtc.programs


def test_what_was_shipped_is_not_compiled(cache):
    """It is kept like what was compiled, and only the same text and options find it."""
    name = shipped.member(shipped.options_of("sm_90", COUNT), COUNT)
    shipped.write_archive(90, 13000, {name: b"shipped"})
    nvrtc = Nvrtc()
    assert compile_with(nvrtc) == b"shipped"
    (kept,) = cache.iterdir()
    assert kept.read_bytes().startswith(b"shipped")
    assert compile_with(nvrtc) == b"shipped"
    assert nvrtc.compiled == 0
    assert compile_with(nvrtc, 80).startswith(b"cubin")
    assert compile_with(nvrtc, 90, ("-lineinfo",)).startswith(b"cubin")
    assert nvrtc.compiled == 2


def test_an_older_driver_gets_what_its_nvrtc_compiles(cache):
    name = shipped.member(shipped.options_of("sm_90", COUNT), COUNT)
    shipped.write_archive(90, 13010, {name: b"shipped"})
    assert compile_with(Nvrtc()).startswith(b"cubin")
