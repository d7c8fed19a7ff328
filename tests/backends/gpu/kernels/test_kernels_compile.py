"""Kernel sources: headers, macros and signatures; and every one compiles for real GPUs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import nvrtc
import pytest
from nvrtc import ARCHITECTURES, nvrtc_compile
from samples import picked

import lagpu.backends.gpu
from lagpu.backends.gpu.kernels import Param, from_source, kernel, sources_hash
from lagpu.errors import InvalidValue

PACKAGE = Path(lagpu.backends.gpu.__file__).parent
KERNELS = PACKAGE / "kernels"
HERE = Path(nvrtc.__file__).parent  # of the tests' own kernels
PRIMITIVES = HERE / "device_kernels.cu"
CPP = sorted(
    path
    for folder in (PACKAGE, HERE)
    for path in folder.rglob("*")
    if path.suffix in (".cu", ".cuh", ".hpp", ".cpp")
)
_NAMES = re.compile(
    r"__global__\s+(?:__launch_bounds__\([^)]*\)\s+)?void\s+"
    r"(?:__launch_bounds__\([^)]*\)\s+)?(?:LG_CLUSTER_BLOCKS\s+)?(\w+)"
)

# One kernel a file: compiling it compiles the whole file with its default macros.
FILES = sorted(str(path.relative_to(KERNELS)) for path in KERNELS.rglob("*.cu"))


def kernel_names(path: Path) -> list[str]:
    return _NAMES.findall(path.read_text("utf-8"))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("file", picked(FILES, "bitmap/products.cu", "spmv/pull.cu"))
def test_nvrtc_compiles_every_file(file, arch):
    made = kernel(file, kernel_names(KERNELS / file)[0])
    assert nvrtc_compile(made, arch, optimised=True)


# Of a relaxation of FP32.
RELAXED = dict.fromkeys("FUATZ", "f32") | {"ISO": "0"}

# Kernels by macros that no file has by default.
# Values that are sent between several devices.
VALUES = {
    "PEERS": "3",
    "KEEP": "1",
    "SENDS_VALUES": "1",
    "ISO": "0",
    "MUL": "First",
    "X0": "kValue",
}
VALUES |= dict.fromkeys(("F", "U", "T", "Z", "X0_T"), "f64")
COUNTS = {k: v for k, v in VALUES.items() if k != "PEERS"}
COUNTS |= {"ADD": "Plus", "SUM": "1", "RANKS": "1"}
# A search for parents on rows and columns of devices.
ROWS = {"KEEP": "1", "SENDS_VALUES": "0", "ISO": "0", "MUL": "Secondi", "X0": "kValue"}
ROWS |= dict.fromkeys(("F", "U", "T", "Z", "X0_T"), "i64")
SPECIAL = [
    ("spmv/pull.cu", "spmv_csc_scalar", {"WHOLE": "1"}),
    ("spmv/pull.cu", "spmv_csc_warp", {"WHOLE": "1"}),
    ("spmv/edge.cu", "spmv_csc_cooc", {"COL": "i64", "TRANSPOSE": "0"}),
    *(
        ("search/grid.cu", "grid_search", {"RULE": rule, "X0": "kDepth", "X0_T": "i32"})
        for rule in ("kByUnvisited", "kByDensity", "kOnlyPushes", "kOnlyPulls")
    ),
    ("search/grid.cu", "grid_search", {"CLUSTER": "8", "X0": "1", "X0_T": "i32"}),
    ("search/grid.cu", "grid_search", COUNTS),
    ("search/grid.cu", "grid_search", COUNTS | {"SPREAD": "2048"}),
    ("search/grid.cu", "grid_search", {"SPREAD": "2048", "X0": "1", "X0_T": "i32"}),
    ("search/relax.cu", "relax", RELAXED | {"ADD": "Max", "MUL": "Min", "STEPS": "0"}),
    ("search/relax.cu", "relax", RELAXED | {"ADD": "Min", "MUL": "Plus", "STEPS": "1"}),
    ("search/peers.cu", "peers_search", VALUES | {"ADD": "Plus", "SUM": "1", "LOG": "64"}),
    ("search/peers.cu", "peers_search", VALUES | {"SUM": "0"}),
    ("search/peers.cu", "peers_search", COUNTS | {"PEERS": "2", "SENDS_VALUES": "1"}),
    ("search/rows.cu", "rows_search", ROWS | {"PEERS": "6", "PEER_ROWS": "2"}),
    ("search/rows.cu", "rows_search", ROWS | {"PEERS": "2", "PEER_ROWS": "1", "LATE": "0"}),
]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("file", "name", "macros"), picked(SPECIAL, SPECIAL[1]))
def test_nvrtc_compiles_special_kernels(file, name, macros, arch):
    if "CLUSTER" in macros and arch == "sm_80":
        pytest.skip("no GPU before Hopper has clusters")
    assert nvrtc_compile(kernel(file, name, **macros), arch)


@pytest.mark.parametrize("file", picked(FILES, "search/per_source.cu", rest="exhaustive"))
def test_a_kernel_is_compiled_without_the_others_of_its_file(file):
    names = kernel_names(KERNELS / file)
    for name in names:
        one = kernel(file, name)
        assert re.findall(r"\b__global__\b", re.sub(r"//.*", "", one.alone)) == ["__global__"]
        assert len(one.alone.splitlines()) == len(one.source.splitlines())
        found = nvrtc_compile(one, "sm_90")
        assert name.encode() in found
        others = [other for other in names if other != name]
        assert not [other for other in others if b".text." + other.encode() + b"\0" in found]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("ctype", picked(["i32", "u32", "i64", "u64", "f32", "f64"], "u64"))
def test_nvrtc_compiles_the_primitives(ctype, arch):
    text = PRIMITIVES.read_text("utf-8")
    primitives = from_source(text, "contend", file="device_kernels.cu", X=ctype)
    assert nvrtc_compile(primitives, arch, optimised=True)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("devices", picked([1, 2, 3, 32], 2))
def test_nvrtc_compiles_barriers(devices, arch):
    text = (HERE / "peers_kernels.cu").read_text("utf-8")
    barriers = from_source(text, "barriers", file="peers_kernels.cu", PEERS=str(devices))
    assert nvrtc_compile(barriers, arch, optimised=True)


@pytest.mark.parametrize("file", FILES)
def test_kernels_of_one_device_have_nothing_of_several(file):
    """The compiler sees none of what stands under LG_PEERS."""
    text = kernel(file, kernel_names(KERNELS / file)[0]).source
    if "LAGPU_PEERS_CUH" not in text:
        command = ["g++", "-E", "-P", "-x", "c++", "-"]
        seen = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        assert not re.search(r"acquire_system|cas_system|TwoWords|kPostWords|own_next", seen.stdout)


@pytest.mark.parametrize(
    "path",
    picked(
        [*(KERNELS / file for file in FILES), PRIMITIVES],
        KERNELS / "elementwise/combine.cu",
        rest="exhaustive",
    ),
    ids=str,
)
def test_nvcc_compiles_every_file_alone(path, tmp_path):
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is missing")
    # To PTX: that there is machine code for it is NVRTC's test.
    done = subprocess.run(
        [nvcc, "-std=c++17", "-I", KERNELS, "-ptx", path, "-o", tmp_path / "out.ptx"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", FILES)
def test_every_signature_is_understood(file):
    names = kernel_names(KERNELS / file)
    assert names
    for name in names:
        assert kernel(file, name).params


def test_format():
    tool = shutil.which("clang-format")
    if tool is None:
        try:
            import clang_format
        except ImportError:
            if os.environ.get("CI"):
                raise
            pytest.skip("clang-format is missing")
        tool = clang_format.get_executable("clang-format")
    done = subprocess.run(
        [tool, "--dry-run", "-Werror", *CPP], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_intrinsics_stay_in_the_primitives():
    forbidden = re.compile(
        r"\b(threadIdx|blockIdx|blockDim|gridDim|__sync\w*|__shfl\w*|__ballot\w*|__ldg|__shared__"
        r"|atomic[A-Z]\w*|asm|cooperative_groups|cub)\b"
    )
    for path in (path for path in CPP if path.suffix in (".cu", ".cuh")):
        code = re.sub(r"//.*", "", path.read_text("utf-8"))
        if path != KERNELS / "common/prims.cuh":
            assert not forbidden.findall(code), path.name


# ---- sources


def test_headers_are_pasted_once_and_recursively():
    pasted = kernel("elementwise/bitmap.cu", "count_bits").source
    assert "#include" not in re.sub(r'#include "prims.hpp"', "", pasted)
    assert pasted.count("#define LAGPU_PRIMS_CUH") == 1
    assert pasted.count("#define LAGPU_COLLECTIVES_CUH") == 1
    headers = ("prims", "collectives", "prims")
    twice = "".join(f'#include "common/{name}.cuh"\n' for name in headers) + GOOD
    assert from_source(twice, "k").source.count("#define LAGPU_PRIMS_CUH") == 1


def test_lines_are_reported_as_written():
    source = kernel("elementwise/bitmap.cu", "count_bits").source
    lines = source.splitlines()
    at = next(i for i, line in enumerate(lines) if "__global__ void count_bits" in line)
    mark = max(i for i in range(at) if lines[i].startswith("#line"))
    reported = int(lines[mark].split()[1]) + at - mark - 1
    assert lines[mark].endswith('"elementwise/bitmap.cu"')
    written = (KERNELS / "elementwise/bitmap.cu").read_text("utf-8").splitlines()
    assert "__global__ void count_bits" in written[reported - 1]


GOOD = """
#ifndef LG_X
#define LG_X f64
#define LG_INDEX u32  // and its index
#endif
using Value = LG_X;
// extern "C" __global__ void k(commented out);
extern "C" __global__ void __launch_bounds__(256, 2)
    k(const LG_X* __restrict__ u_values, Value* const w, LG_INDEX n, const bool flag /* why, n */,
      GridBarrier* barrier) {}
extern "C" __global__ void none() {}
"""
HEAD = '#include "common/prims.cuh"\n'


def test_signature():
    assert from_source(HEAD + GOOD, "k").params == (
        Param("u_values", "f64", pointer=True, const=True),
        Param("w", "f64", pointer=True, const=False),
        Param("n", "u32", pointer=False, const=False),
        Param("flag", "bool", pointer=False, const=False),
        Param("barrier", "GridBarrier", pointer=True, const=False),
    )
    assert from_source(HEAD + GOOD, "none").params == ()


def test_macros_specialise():
    chosen = from_source(HEAD + GOOD, "k", X="bool", INDEX="i64")
    assert [param.ctype for param in chosen.params[:3]] == ["bool", "bool", "i64"]
    assert chosen.flags == ("-std=c++17", "-DLG_INDEX=i64", "-DLG_X=bool")
    assert repr(chosen) == "generated.cu:k(INDEX=i64, X=bool)"
    assert from_source(HEAD + GOOD, "k", INDEX="i64", X="bool") is not None


def test_kernels_are_kept():
    assert kernel("elementwise/bitmap.cu", "count_bits") is kernel(
        "elementwise/bitmap.cu", "count_bits"
    )


def test_prelude_stands_behind_the_primitives():
    prelude = "struct Twice { LG_DEVICE i32 operator()(i32 x) const { return 2 * x; } };"
    source = from_source(HEAD + GOOD, "k", prelude=prelude).source
    assert source.index("struct GridBarrier") < source.index(prelude) < source.index("using Value")
    with pytest.raises(InvalidValue, match=r"includes none of .*prims\.cuh"):
        from_source(GOOD, "k", prelude=prelude)


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        (lambda: kernel("no.cu", "k"), "no file no.cu"),
        (lambda: kernel("elementwise/bitmap.cu", "nothing"), "has no extern"),
        (lambda: kernel("elementwise/bitmap.cu", "count_bits", Z="f64"), "does not use LG_Z"),
        (lambda: from_source(HEAD + GOOD, "k", X="unsigned int"), "is not one word"),
        (lambda: from_source(HEAD + GOOD, "k", X="i16"), "i16 in .* is none of"),
        (lambda: from_source(HEAD + GOOD.replace("bool flag", "bool"), "k"), "not plain"),
        (lambda: from_source('#include "no.cuh"\n', "k"), "not among the headers"),
    ],
)
def test_what_a_kernel_cannot_be(call, fact):
    with pytest.raises(InvalidValue, match=fact):
        call()


def test_sources_hash_covers_every_source(tmp_path):
    assert re.fullmatch(r"[0-9a-f]{64}", sources_hash())
    assert sources_hash() == sources_hash()


def test_sources_are_shipped_with_the_package():
    package = resources.files("lagpu.backends.gpu")
    assert package.joinpath("kernels/common/prims.cuh").is_file()
    assert package.joinpath("device/sim_runtime/runtime.cpp").is_file()
