"""The C++ compiler of the sim device."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lagpu.backends.gpu.device import sim as compiler
from lagpu.errors import BackendUnavailable, KernelCompileError


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LAGPU_CACHE_DIR", str(tmp_path))
    return tmp_path


def build(text: str = "int answer() { return 42; }") -> Path:
    return compiler.shared_object(text, "text", ())


def test_failed_builds_leave_nothing(cache):
    with pytest.raises(KernelCompileError, match=r"text: does not compile"):
        build("int answer( {")
    assert not list(cache.iterdir())


@pytest.fixture
def chosen(cache, monkeypatch):
    """Choose a compiler by CXX; a text is a script of its own."""
    compiler.compiler.cache_clear()

    def choose(words: str, script: str = "") -> None:
        if script:
            program = cache.parent / "chosen"
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o700)
            words = str(program)
        monkeypatch.setenv("CXX", words)

    yield choose
    compiler.compiler.cache_clear()


# ------------------------------------------------------------------------------- the compiler


@pytest.mark.parametrize("words", ["no-such-compiler", "''", "no-such-launcher g++"])
def test_no_compiler(chosen, words):
    chosen(words)
    with pytest.raises(BackendUnavailable, match="apt install g\\+\\+"):
        build()


def test_a_compiler_of_several_words(chosen):
    chosen("env 'A B=c' g++")
    assert compiler.compiler()[0][1:] == ("A B=c", "g++")
    assert build().is_file()


BROKEN = {
    "false": ("/bin/false", "", "it ends with exit code 1"),
    "silent": ("", "exit 0", "it ends with exit code 0"),
    "killed": ("", "kill -9 $$", "it ends with exit code -9"),
    "a quote": ("g++ 'x", "", "No closing quotation"),
    "no program": ("", "\0", ""),
}


@pytest.mark.parametrize(("words", "script", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_compiler(chosen, words, script, message):
    chosen(words, script)
    if not message:  # an executable that the system cannot run
        Path(os.environ["CXX"]).write_bytes(b"\x7fELF nothing")
        message = "Exec format error"
    with pytest.raises(BackendUnavailable, match=message):
        build()


BREAKS = {
    "says no": ("exit 3", "does not compile"),
    "writes nothing": ("exit 0", "has written nothing"),
    "says odd bytes": ("printf '\\377' >&2; exit 1", "The log says:\n\N{REPLACEMENT CHARACTER}"),
}


@pytest.mark.parametrize(("script", "message"), BREAKS.values(), ids=BREAKS)
def test_a_compiler_that_breaks_after_its_version(chosen, cache, script, message):
    chosen("", f'[ "$1" = --version ] && echo 1.0 && exit 0\n{script}')
    with pytest.raises(KernelCompileError, match=message):
        build()
    assert not list(cache.iterdir())


def test_a_compiler_that_hangs_ends_with_all_that_it_started(chosen, cache, monkeypatch):
    monkeypatch.setattr(compiler, "_COMPILE_SECONDS", 3.0)  # in which a shell has begun
    note = cache.parent / "pid"
    chosen("", f'[ "$1" = --version ] && echo 1 && exit 0\nsleep 999 & echo $! > {note}; wait')
    with pytest.raises(KernelCompileError, match=r"has not ended after 3\.0 s") as error:
        build()
    assert isinstance(error.value.__cause__, TimeoutError)
    assert not list(cache.iterdir())
    assert has_ended(int(note.read_text()))


def test_a_compiler_that_hangs_at_its_version(chosen, monkeypatch):
    monkeypatch.setattr(compiler, "_VERSION_SECONDS", 0.2)
    chosen("", "sleep 999")
    with pytest.raises(BackendUnavailable, match=r"does not report its version in 0\.2 s"):
        build()


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or dead and only not yet waited for, in a while."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_processes_that_build_the_same_agree(cache):
    command = [sys.executable, "-c", BUILDER]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    paths = {process.communicate()[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(paths) == 1
    assert len(list(cache.iterdir())) == 1


BUILDER = """
import ctypes
from lagpu.backends.gpu.device import sim as compiler
path = compiler.shared_object('extern "C" int answer() { return 42; }', "text", ())
assert ctypes.CDLL(str(path)).answer() == 42
print(path)
"""
