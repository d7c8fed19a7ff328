"""What kernels and the host both know is written once, and both use it."""

import re
from pathlib import Path

import pytest

import lagpu.backends.gpu
from lagpu.backends.gpu.kernels import FILE, constant, read
from lagpu.backends.gpu.profile import RECORD

PACKAGE = Path(lagpu.backends.gpu.__file__).parent
KERNELS = PACKAGE / "kernels"
CONSTANTS = read((KERNELS / FILE).read_text("utf-8"))
CUDA = "\n".join(
    re.sub(r"//.*", "", path.read_text("utf-8"))
    for path in sorted(KERNELS.rglob("*.cu*"))
    if path != KERNELS / FILE
)
HOST = "\n".join(path.read_text("utf-8") for path in sorted(PACKAGE.parent.rglob("*.py")))
# Files of the kernels do not name these: kEwiseUnion is neither of the other two kinds, and kWrites
# stands in the text of generated kernels.
UNNAMED = {"kEwiseUnion", "kWrites"}


@pytest.mark.parametrize("name", CONSTANTS)
def test_both_sides_use_it_and_neither_has_its_own(name):
    assert (name in UNNAMED) != bool(re.search(rf"\b{name}\b", CUDA))
    assert re.search(rf"\b{name}\b", HOST)
    assert constant(name) == CONSTANTS[name]
    assert not re.search(rf"\b(?:const|constexpr)\b[^;()]*\b{name} =", CUDA)


def test_the_host_asks_for_no_other():
    assert set(re.findall(r'\bconstant\("(\w+)"\)', HOST)) <= CONSTANTS.keys()


GOOD = "// a comment\n#ifndef X\n#define X\n\nconstexpr u32 kOne = 1;\n#endif  // X\n"


def test_what_is_read():
    more = "constexpr u64 kAll = 0xffffffffffffffff;\nconstexpr i32 kNone = 0;\n"
    assert read(GOOD + more) == {"kOne": 1, "kAll": 2**64 - 1, "kNone": 0}


@pytest.mark.parametrize(
    "line",
    [
        "constexpr u32 kTwo = 1 + 1;",
        "constexpr u32 kTwo = kOne;",
        "constexpr f32 kTwo = 2.5;",
        "const u32 kTwo = 2;",
        "constexpr u32 kTwo = 2, kThree = 3;",
        "constexpr u32 two = 2;",
        "constexpr u32 kTwo = 2;  // two",
        "constexpr u32 kOne = 1;",
        "enum Number : u32 { kTwo = 2 };",
        '#include "common/prims.cuh"',
    ],
)
def test_what_is_refused(line):
    with pytest.raises(ValueError, match=re.escape(repr(line))):
        read(f"{GOOD}{line}\n")


def test_a_record_of_the_log_has_the_same_fields():
    body = re.search(r"struct Record \{(.*?)\};", CUDA, re.DOTALL)[1]
    named = [name.strip() for line in re.findall(r"u64 ([^;]*);", body) for name in line.split(",")]
    sizes = [
        f"{name}[{RECORD[name].shape[0]}]" if RECORD[name].shape else name for name in RECORD.names
    ]
    assert named == sizes
    assert body.count(";") == body.count("u64")
