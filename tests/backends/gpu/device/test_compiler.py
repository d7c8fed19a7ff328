"""The cache of compiled objects."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lagpu.backends.gpu.device import compiler
from lagpu.errors import BackendUnavailable, KernelCompileError


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LAGPU_CACHE_DIR", str(tmp_path))
    return tmp_path


def build(text: str = "int answer() { return 42; }") -> Path:
    return compiler.shared_object(text, "text", ())


def test_objects_are_built_once(cache):
    built = build()
    assert built.parent == cache
    stamp = built.stat().st_mtime_ns
    assert build() == built
    assert built.stat().st_mtime_ns == stamp
    assert build("int answer() { return 43; }") != built
    assert sorted(entry.suffix for entry in cache.iterdir()) == [".so", ".so"]


def flipped(content: bytes) -> bytes:
    """Change one byte in the middle."""
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b + b"x", flipped]
)
def test_damaged_objects_are_rebuilt(cache, damage):
    built = build()
    whole = built.read_bytes()
    built.write_bytes(damage(whole))
    assert build() == built
    assert built.read_bytes() == whole


def test_failed_builds_leave_nothing(cache):
    with pytest.raises(KernelCompileError, match=r"text: does not compile"):
        build("int answer( {")
    assert not list(cache.iterdir())


def test_cache_folder(monkeypatch):
    monkeypatch.delenv("LAGPU_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert compiler.cache_folder() == Path("/somewhere/lagpu")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert compiler.cache_folder() == Path.home() / ".cache" / "lagpu"


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


def test_no_home(monkeypatch):
    monkeypatch.delenv("LAGPU_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    with pytest.raises(BackendUnavailable, match="Set HOME, or LAGPU_CACHE_DIR") as error:
        compiler.cache_folder()
    assert isinstance(error.value.__cause__, RuntimeError)


def test_a_home_that_does_not_exist_is_made_for_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("LAGPU_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert build().parent == tmp_path / "home" / ".cache" / "lagpu"
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


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
    monkeypatch.setattr(compiler, "_COMPILE_SECONDS", 0.5)
    note = cache.parent / "pid"
    chosen("", f'[ "$1" = --version ] && echo 1 && exit 0\nsleep 999 & echo $! > {note}; wait')
    with pytest.raises(KernelCompileError, match=r"has not ended after 0\.5 s") as error:
        build()
    assert isinstance(error.value.__cause__, TimeoutError)
    assert not list(cache.iterdir())
    assert has_ended(int(note.read_text()))


def test_a_compiler_that_hangs_at_its_version(chosen, monkeypatch):
    monkeypatch.setattr(compiler, "_VERSION_SECONDS", 0.2)
    chosen("", "sleep 999")
    with pytest.raises(BackendUnavailable, match=r"does not tell its version in 0\.2 s"):
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


# --------------------------------------------------------------------------------- the folder


def test_the_folder_is_made_for_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("LAGPU_CACHE_DIR", str(tmp_path / "a" / "b"))
    before = os.umask(0)
    try:
        built = build()
    finally:
        os.umask(before)
    assert built.parent.stat().st_mode & 0o777 == 0o700
    assert built.parent.parent.stat().st_mode & 0o777 == 0o700
    assert built.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_may_write_is_refused(cache, mode):
    cache.chmod(mode)
    with pytest.raises(BackendUnavailable, match=f"{cache} is writable by other users") as error:
        build()
    assert f"chmod 700 {cache}" in str(error.value)
    assert "LAGPU_CACHE_DIR" in str(error.value)
    cache.chmod(0o700)
    assert build().is_file()


@pytest.mark.parametrize(("mode", "safe"), [(0o777, False), (0o1777, True), (0o775, True)])
def test_a_folder_above_is_not_everybody_s_except_with_the_sticky_bit(
    tmp_path, monkeypatch, mode, safe
):
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(mode)
    monkeypatch.setenv("LAGPU_CACHE_DIR", str(above / "cache"))
    if safe:
        assert build().is_file()
        return
    with pytest.raises(BackendUnavailable, match=f"{above} is writable by everybody"):
        build()


def test_a_link_to_a_folder_that_others_may_write_is_refused(tmp_path, monkeypatch):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    monkeypatch.setenv("LAGPU_CACHE_DIR", str(tmp_path / "link"))
    with pytest.raises(BackendUnavailable, match="open is writable by other users"):
        build()


@pytest.mark.parametrize("place", ["folder", "file"])
def test_what_another_user_owns_is_refused(cache, monkeypatch, place):
    built = build()
    if place == "folder":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(BackendUnavailable, match=f"{cache} belongs to another user"):
            build()
        return
    state = list(built.stat())
    state[4] += 1  # the owner
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result(state))
    with pytest.raises(BackendUnavailable, match=f"{built} belongs to another user"):
        build()


def test_files_that_others_may_write_are_refused(cache):
    built = build()
    built.chmod(0o666)
    with pytest.raises(BackendUnavailable, match=f"{built} is writable by other users"):
        build()
    built.unlink()
    assert build() == built


def test_links_in_the_folder_are_refused(cache):
    built = build()
    built.rename(cache / "real")
    built.symlink_to(cache / "real")
    with pytest.raises(BackendUnavailable, match=f"{built} is a link"):
        build()


def test_a_pipe_in_the_folder_is_refused(cache):
    built = build()
    built.unlink()
    os.mkfifo(built)
    with pytest.raises(BackendUnavailable, match=f"{built} is no file"):
        build()


@pytest.mark.parametrize("below", ["", "cache"])
def test_a_file_in_its_place(tmp_path, monkeypatch, below):
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("LAGPU_CACHE_DIR", str(tmp_path / "taken" / below))
    with pytest.raises(BackendUnavailable, match="taken: a file is in its place") as error:
        build()
    assert isinstance(error.value.__cause__, OSError)


def test_a_folder_that_cannot_be_made(monkeypatch):
    monkeypatch.setenv("LAGPU_CACHE_DIR", "/proc/lagpu")
    with pytest.raises(BackendUnavailable, match=r"/proc/lagpu: .*give permission there, or set"):
        build()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_no_space_and_no_permission(cache, monkeypatch, code):
    def full(path: Path, _content: bytes) -> int:
        raise OSError(code, os.strerror(code), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(BackendUnavailable, match=os.strerror(code)) as error:
            build()
    assert isinstance(error.value.__cause__, OSError)
    assert not list(cache.iterdir())
    assert build().is_file()


def test_processes_that_build_the_same_agree(cache):
    command = [sys.executable, "-c", BUILDER]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    paths = {process.communicate()[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(paths) == 1
    assert len(list(cache.iterdir())) == 1


BUILDER = """
import ctypes
from lagpu.backends.gpu.device import compiler
path = compiler.shared_object('extern "C" int answer() { return 42; }', "text", ())
assert ctypes.CDLL(str(path)).answer() == 42
print(path)
"""
