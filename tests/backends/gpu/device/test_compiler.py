"""The cache of compiled objects."""

from __future__ import annotations

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


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b + b"x"])
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


def test_no_compiler(monkeypatch):
    compiler.compiler.cache_clear()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BackendUnavailable, match="apt install g\\+\\+"):
        compiler.compiler()
    compiler.compiler.cache_clear()
