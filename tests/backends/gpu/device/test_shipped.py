"""Archives of compiled kernels: whole, the same bytes each time, and of the text that there is."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from library_steps import Noted, NotingDevice
from samples import picked

import lagpu
from lagpu import BOOL, FP64, INT64
from lagpu.backends.gpu.backend import GpuBackend
from lagpu.backends.gpu.device import compiled as shipped
from lagpu.backends.gpu.kernels import kernel
from lagpu.catalog import ALGORITHMS
from lagpu.selftest import kernels
from lagpu.selftest.kernels import selected

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


@pytest.fixture(scope="module")
def cubins():
    pytest.importorskip("cuda.bindings.nvrtc")
    spec = importlib.util.spec_from_file_location("cubins", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


#: One type of values for each kind of graph. A changed text or rule changes kernels of each type.
SOME = {"hubs": (BOOL,), "directed": (FP64,), "road": (INT64,)}


@pytest.mark.parametrize(
    "types", picked([SOME, kernels.TYPES], SOME, rest="exhaustive"), ids=["some types", "all types"]
)
@pytest.mark.ci
def test_archives_are_of_the_kernels_that_there_are(cubins, types, monkeypatch):
    """Those of all algorithms, with the blocks of a GPU; a stale archive is to be remade."""
    monkeypatch.setattr(kernels, "TYPES", types)
    cubins.common_kernels.cache_clear()
    made = cubins.common_kernels(8)
    searches = [dict(k.macros) for k in made if k.name == "grid_search"]
    assert {(one["LG_BLOCK"], one.get("LG_CLUSTER"), one.get("LG_STOPS")) for one in searches} >= {
        ("1024", None, "0"),
        ("512", None, "0"),
        ("512", None, None),
        ("512", "8", "0"),
        ("512", "8", None),
    }
    names = {k.name for k in made}
    assert names >= {"program", "bits_search", "per_source_search", "list_bits", "table_products"}
    assert names >= {"find_unmirrored", "transposed"}
    for path in sorted(shipped.FOLDER.glob("*.zip")):
        arch = path.name.partition(".")[0]
        capability = int(arch[3:])
        made = cubins.common_kernels(cubins.blocks_of_cluster(capability))
        of_arch = [(shipped.options_of(arch, k), k) for k in made]
        stale = [k for options, k in of_arch
                 if not shipped.find_shipped(capability, options, k, 99999)]  # fmt: skip
        assert not stale, f"{path}: run python .ci/cubins.py {arch}"
    cubins.common_kernels.cache_clear()


@pytest.mark.exhaustive
def test_algorithms_need_no_others(cubins):
    """Check the algorithms on other graphs, with values of a type for each row of the table."""
    device, known = cubins.Recorder(8), set(cubins.common_kernels(8))
    place, called = GpuBackend("recorder", device), set()
    for kind, dtype in (("hubs", FP64), ("directed", BOOL), ("road", BOOL)):
        for key, call in selected(place, 7, {kind: (dtype,)}, ALGORITHMS):
            del device.kernels[:]
            call()
            called.add(key)
            assert not set(device.kernels) - known, f"{key}, {kind}, {dtype}"
    assert called == {row.key for row in ALGORITHMS}


def test_algorithms_leave_nothing_to_the_compiler_of_the_array_library():
    """For each step CuPy would compile a kernel in a first call, a fifth of a second."""
    place = GpuBackend("noting", NotingDevice())
    for key, call in selected(place, 1, {"hubs": (BOOL, FP64), "directed": (FP64,)}, ALGORITHMS):
        Noted.steps.clear()
        call()
        assert not Noted.steps, key


def test_steps_are_noted_with_their_lines():
    device = NotingDevice()
    Noted.steps.clear()
    x = device.copy_of(device.from_host(np.arange(4)))
    assert device.to_host(x[1:3].view(np.uint64)).tolist() == [1, 2]
    assert not Noted.steps
    for step in (lambda: x + 1, lambda: x[x], lambda: device.xp.ones(3), lambda: x.all()):
        Noted.steps.clear()
        step()
        line = step.__code__.co_firstlineno
        assert [one.partition(", ")[2] for one in Noted.steps] == [f"test_shipped.py:{line}"]
