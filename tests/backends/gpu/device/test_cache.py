"""Compiled kernels on disk: built once, whole, and in a folder of the user's own."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lagpu.backends.gpu.device.compiled import cache_folder, kept
from lagpu.errors import BackendUnavailable


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LAGPU_CACHE_DIR", str(tmp_path))
    return tmp_path


def build(text: str = "a text that says what is built") -> Path:
    path, content = kept("sim", (text, "and how"), ".txt", lambda _: text.encode())
    assert content == text.encode()
    return path


def test_objects_are_built_once(cache):
    built = build()
    assert built.parent == cache
    stamp = built.stat().st_mtime_ns
    assert build() == built
    assert built.stat().st_mtime_ns == stamp
    assert build("another text") != built
    assert sorted(entry.suffix for entry in cache.iterdir()) == [".txt", ".txt"]


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


def test_a_build_has_a_folder_of_its_own_that_is_removed(cache):
    def made(folder: str) -> bytes:
        (Path(folder) / "left behind").write_text("")
        return b"made"

    assert kept("gpu", ("text",), "", made)[1] == b"made"
    assert [entry.is_file() for entry in cache.iterdir()] == [True]


def test_a_build_that_fails_leaves_nothing(cache):
    def fails(_folder: str) -> bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        kept("gpu", ("text",), "", fails)
    assert not list(cache.iterdir())


def test_cache_folder(monkeypatch):
    monkeypatch.delenv("LAGPU_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder("sim") == Path("/somewhere/lagpu")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder("sim") == Path.home() / ".cache" / "lagpu"


def test_no_home(monkeypatch):
    monkeypatch.delenv("LAGPU_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(BackendUnavailable, match=r"gpu: .* Set HOME, or LAGPU_CACHE_DIR") as error:
        cache_folder("gpu")
    assert isinstance(error.value.__cause__, RuntimeError)


def test_a_home_that_does_not_exist_is_made_for_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("LAGPU_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert build().parent == tmp_path / "home" / ".cache" / "lagpu"
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


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
