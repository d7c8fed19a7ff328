"""Archives of compiled kernels: whole, the same bytes each time, and of the text that there is."""

import hashlib
import importlib.util
from pathlib import Path

import pytest

import lagpu
from lagpu.backends.gpu.device import compiled as shipped
from lagpu.backends.gpu.kernels import kernel

COUNT = kernel("elementwise/bitmap.cu", "count_bits")
OPTIONS = shipped.options_of("sm_90", COUNT)
SCRIPT = Path(lagpu.__file__).parents[1] / ".ci" / "cubins.py"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "cubins")
    return tmp_path / "cubins"


def test_an_archive_gives_back_what_it_got(folder):
    code = {shipped.member(OPTIONS, COUNT): b"one" * 1000, "another": b""}
    path = shipped.write_archive(90, 13000, code)
    assert path.parent == folder
    assert shipped.find_shipped(90, OPTIONS, COUNT, 13000) == b"one" * 1000
    assert shipped.find_shipped(80, OPTIONS, COUNT, 13000) is None
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    assert hashlib.sha256(shipped.write_archive(90, 13000, code).read_bytes()).hexdigest() == before


@pytest.mark.parametrize("change", ["text", "options", "kernel"])
def test_code_of_another_text_is_not_found(folder, change):
    shipped.write_archive(90, 13000, {shipped.member(OPTIONS, COUNT): b"code"})
    other, options = COUNT, OPTIONS
    if change == "text":
        other = kernel("elementwise/bitmap.cu", "count_bits", prelude="// a word")
    elif change == "kernel":
        other = kernel("elementwise/bitmap.cu", "set_all_bits")
    else:
        options = (*OPTIONS, "-lineinfo")
    assert shipped.find_shipped(90, options, other, 13000) is None


def test_without_archives_nothing_is_found(folder):
    assert shipped.find_shipped(90, OPTIONS, COUNT, 13000) is None


@pytest.mark.ci
def test_archives_are_of_the_kernels_that_there_are():
    """Those of the common searches, with the blocks of a GPU; a stale archive is to be remade."""
    pytest.importorskip("cuda.bindings.nvrtc")
    spec = importlib.util.spec_from_file_location("cubins", SCRIPT)
    cubins = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cubins)
    kernels = cubins.common_kernels(8)
    searches = [dict(k.macros) for k in kernels if k.name == "grid_search"]
    assert {(one["LG_BLOCK"], one.get("LG_CLUSTER")) for one in searches} == {
        ("1024", None),
        ("512", "8"),
    }
    names = {k.name for k in kernels}
    assert names >= {"program", "bits_search", "per_source_search", "list_bits"}
    assert names >= {"find_unmirrored", "transposed"}
    for path in sorted(shipped.FOLDER.glob("*.tar.xz")):
        arch = path.name.partition(".")[0]
        capability = int(arch[3:])
        kernels = cubins.common_kernels(cubins.blocks_of_cluster(capability))
        made = [(shipped.options_of(arch, k), k) for k in kernels]
        stale = [k for options, k in made
                 if not shipped.find_shipped(capability, options, k, 99999)]  # fmt: skip
        assert not stale, f"{path}: run python .ci/cubins.py {arch}"
