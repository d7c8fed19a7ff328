"""Compiled kernels: kept on disk, shipped with a wheel, or compiled by NVRTC."""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from lagpu.backends.gpu.kernels import Kernel, Param
from lagpu.backends.protocol import NotCompiled
from lagpu.errors import BackendUnavailable, KernelCompileError
from lagpu.host import files, interrupt

_DIGEST_BYTES = 32
#: Whether what would have to be compiled now raises `NotCompiled`.
in_background: ContextVar[bool] = ContextVar("lagpu_in_background", default=False)
_ELSEWHERE = "or set LAGPU_CACHE_DIR to another folder."


def require_now() -> None:
    """Raise `NotCompiled` where kernels are compiled in the background."""
    if in_background.get():
        raise NotCompiled


def cache_folder(backend: str) -> Path:
    """Return the folder of compiled kernels: ``LAGPU_CACHE_DIR``, or one under the user's cache."""
    chosen = os.environ.get("LAGPU_CACHE_DIR")
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lagpu"
    except RuntimeError as error:
        raise BackendUnavailable(
            f"{backend}: there is no home folder for the cache. "
            "Set HOME, or LAGPU_CACHE_DIR to a folder."
        ) from error


def kept(
    backend: str, decisive: tuple[str, ...], suffix: str, build: Callable[[str], bytes]
) -> tuple[Path, bytes]:
    """Return path and content of a file of the cache, built if it is not there or not whole.

    Its name is the hash of the `decisive` texts, and `build` returns its content; `build` gets the
    path of an empty folder, which is removed afterwards. Raises `BackendUnavailable` if there is no
    folder that only the user may write.
    """
    with _cache(backend) as folder:
        path = folder / f"{hashlib.sha256(chr(0).join(decisive).encode()).hexdigest()}{suffix}"
        content = _whole(path)
        if content is None:
            content = _build(path, build)
    return path, content


@contextmanager
def _cache(backend: str) -> Iterator[Path]:
    """Yield the folder, made if it is missing; errors of the operating system become ours."""
    folder = cache_folder(backend)
    what = f"{backend}: the cache of compiled kernels"
    try:
        yield files.folder(folder)
    except files.NotPrivate as error:
        fact = f"{what}: {error}. Its content is run: {error.remedy}, {_ELSEWHERE}"
        raise BackendUnavailable(fact) from error
    except OSError as error:
        raise BackendUnavailable(
            f"{what}: {error.filename or folder}: {error.strerror or error}. "
            f"Make room or give permission there, {_ELSEWHERE}"
        ) from error


def _build(path: Path, build: Callable[[str], bytes]) -> bytes:
    """Build aside, then rename: other processes see the whole file or none."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, interrupt.removed(folder):
        content = build(folder)
        built = Path(folder) / path.name
        built.write_bytes(content + hashlib.sha256(content).digest())
        built.chmod(files.FILE_MODE)
        built.replace(path)
    return content


def _whole(path: Path) -> bytes | None:
    """Return the content of a file that ends in its own hash: a truncated one kills the process."""
    try:
        read = files.read_bytes(path)
    except FileNotFoundError:
        return None
    content, digest = read[:-_DIGEST_BYTES], read[-_DIGEST_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None


# ---- in the background
_CHILD = (
    "import json, os, sys; os.nice(10); given = json.load(sys.stdin); sys.path[:] = given['path']; "
    "from lagpu.backends.gpu.device.compiled import build_given; build_given(given)"
)
_MOST = 2  # processes at once
_running: list[subprocess.Popen[bytes]] = []


def beside(build: Callable[..., object], kernel: Kernel, *values: Any) -> Callable[[], bool | None]:
    """Have another process, which ends with this one, call a function of a module.

    Return a function that says whether the call has succeeded, or None while it waits or runs. Few
    calls run at once: each begins when that function is called and there is room.
    """
    started: list[subprocess.Popen[bytes]] = []

    def done() -> bool | None:
        if not started:
            _running[:] = [process for process in _running if process.poll() is None]
            if len(_running) >= _MOST:
                return None
            try:
                started.append(_started(build, kernel, values))
            except OSError:
                return False
            _running.append(started[0])
        code = started[0].poll()
        return None if code is None else code == 0

    return done


def _started(
    build: Callable[..., object], kernel: Kernel, values: tuple[Any, ...]
) -> subprocess.Popen[bytes]:
    params = [(x.name, x.ctype, x.pointer, x.const) for x in kernel.params]
    parts = kernel.file, kernel.name, kernel.macros, kernel.source, params
    given = {"path": sys.path, "build": (build.__module__, build.__name__), "kernel": parts}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:  # for a pipe we might wait
        json.dump(given | {"values": values}, file)
        file.seek(0)
        return subprocess.Popen(
            [sys.executable, "-c", _CHILD], stdin=file, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, process_group=0,
        )  # fmt: skip


def build_given(given: dict[str, Any]) -> None:
    module, name = given["build"]
    file, kernel, macros, source, params = given["kernel"]
    made = Kernel(file, kernel, tuple(map(tuple, macros)), source, tuple(Param(*x) for x in params))
    values = (tuple(x) if isinstance(x, list) else x for x in given["values"])
    getattr(importlib.import_module(module), name)(made, *values)


@atexit.register
def _end_running() -> None:
    for process in _running:
        process.kill()
        process.wait()


# ---- shipped
# There is an archive for each GPU. A member has all kernels of one source file, compressed as a
# whole: they are much alike, and a search reads few of the files. A kernel is named by the hash of
# all that decides it, so one of another text is not found, and is compiled. `.ci/cubins.py` makes
# the archives, which are part of a wheel and not of the repository.
FOLDER = Path(__file__).parent / "cubins"
_TOOLKIT = "toolkit"  # the member with the version of CUDA, written as drivers do


def options_of(arch: str, kernel: Kernel, flags: tuple[str, ...] = ()) -> tuple[str, ...]:
    return (f"-arch={arch}", *kernel.flags, *flags)


def member(options: tuple[str, ...], kernel: Kernel) -> str:
    """Return the name of a kernel in an archive: its file, and a hash."""
    decisive = (*options, kernel.name, kernel.alone)
    return f"{kernel.file}/{hashlib.sha256(chr(0).join(decisive).encode()).hexdigest()}"


def find_shipped(
    capability: int, options: tuple[str, ...], kernel: Kernel, driver: int
) -> bytes | None:
    """Return the machine code of a kernel, or None if it was not compiled before.

    `capability` is 90 for 9.0, and `driver` the newest CUDA that the driver knows, 13000 for 13.0:
    an older one may not load the code.
    """
    path = _archive(capability)
    if driver < _toolkit_of(path):
        return None
    file, _, name = member(options, kernel).rpartition("/")
    kernels = _kernels_of(path, file)
    return kernels.read(name) if kernels is not None and name in kernels.NameToInfo else None


def write_archive(capability: int, toolkit: int, code: Mapping[str, bytes]) -> Path:
    """Write the archive of a GPU by the CUDA `toolkit`, the same bytes for the same code."""
    path = _archive(capability)
    path.parent.mkdir(exist_ok=True)
    files: dict[str, dict[str, bytes]] = {}
    for name, content in sorted(code.items()):
        file, _, own = name.rpartition("/")
        files.setdefault(file, {})[own] = content
    members = {file: _zipped(kernels, zipfile.ZIP_STORED) for file, kernels in files.items()}
    path.write_bytes(_zipped({_TOOLKIT: str(toolkit).encode(), **members}, zipfile.ZIP_LZMA))
    _kernels_of.cache_clear()
    _toolkit_of.cache_clear()
    return path


def _zipped(members: Mapping[str, bytes], method: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return made.getvalue()


def _archive(capability: int) -> Path:
    return FOLDER / f"sm_{capability}.zip"


@functools.cache
def _toolkit_of(path: Path) -> float:
    """Return the CUDA that compiled an archive; infinity if there is none."""
    return int(_file_of(path, _TOOLKIT) or 0) if path.is_file() else math.inf


@functools.cache
def _kernels_of(path: Path, file: str) -> zipfile.ZipFile | None:
    """Return the kernels of a source file by their names; None if the archive has none of it."""
    packed = _file_of(path, file)
    return None if packed is None else zipfile.ZipFile(io.BytesIO(packed))


def _file_of(path: Path, name: str) -> bytes | None:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name) if name in archive.NameToInfo else None


# CuPy's own compiler takes FP32 numbers below 1.2e-38 for 0 (``-ftz=true``, which it adds to the
# options of everybody), and links kernels that are launched cooperatively a second time.


def compile_for(kernel: Kernel, capability: int, flags: tuple[str, ...], backend: str) -> None:
    """Compile a kernel into the cache, in a process that uses no GPU."""
    import cupy

    compiled(cupy, kernel, capability, flags, backend)


def compiled(
    cupy: Any, kernel: Kernel, capability: int, flags: tuple[str, ...], backend: str
) -> bytes:
    """Return machine code of a kernel for CUDA's driver, or PTX where NVRTC is older than the GPU.

    From the cache if it is there and whole, else from what lagpu was shipped with, or compiled;
    `KernelCompileError` has the compiler's log.
    """
    nvrtc = cupy.cuda.nvrtc
    known = max(int(arch) for arch in nvrtc.getSupportedArchs())
    is_known = capability <= known
    arch = f"sm_{capability}" if is_known else f"compute_{known}"
    options = options_of(arch, kernel, flags)
    version = ".".join(map(str, nvrtc.getVersion()))

    def build(_folder: str) -> bytes:
        driver = int(cupy.cuda.runtime.driverGetVersion())
        if found := find_shipped(capability, options, kernel, driver):
            return found
        require_now()
        program = nvrtc.createProgram(kernel.alone, kernel.file, (), ())
        try:
            nvrtc.compileProgram(program, options)
            module: bytes = nvrtc.getCUBIN(program) if is_known else nvrtc.getPTX(program)
        except nvrtc.NVRTCError as error:
            fact = f"{kernel!r}: does not compile. The log says:\n{nvrtc.getProgramLog(program)}"
            raise KernelCompileError(fact) from error
        finally:
            nvrtc.destroyProgram(program)
        return module

    decisive = (version, *options, kernel.name, kernel.alone)
    return kept(backend, decisive, ".cubin" if is_known else ".ptx", build)[1]
