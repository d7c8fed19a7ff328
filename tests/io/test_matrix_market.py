"""Matrix Market: what SciPy's parser must not see, and what it would misread."""

import json
import subprocess
import sys

import pytest
from readback import BANNER, entries, read_cpu

from lagpu import Matrix
from lagpu.dtypes import UINT64
from lagpu.errors import FileFormatError, LimitExceeded, NotSupported
from lagpu.io import write

SIZES = "line 2: .* is not `rows columns entries`, the sizes of a matrix"
READ = """
import json, sys, lagpu
for path in sys.argv[1:]:
    try:
        print(json.dumps(lagpu.io.read(path, backend="cpu").nvals), flush=True)
    except lagpu.errors.FileFormatError as error:
        print(json.dumps(str(error)), flush=True)
"""


def test_a_last_line_that_is_cut_does_not_end_the_process(tmp_path):
    """In another process: SciPy's parser reads beyond the end of such a file."""
    ends = ["2.153187e", "2.5\r", "2.5\t", "2.5 x", "2.5e+", "2.5\0", "2.5", "2.5\r\r"]
    paths = [tmp_path / f"{k}.mtx" for k in range(len(ends))]
    for path, end in zip(paths, ends, strict=True):
        path.write_bytes(f"{BANNER}real general\n8 8 1\n5 2 {end}".encode())
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [k for k, answer in enumerate(answers) if answer == 1] == [1, 2, 6, 7]
    assert answers[0] == "read: 0.mtx, line 3: '5 2 2.153187e' is not 3 numbers, which the field " \
        "real needs."  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("real general\n3 3 2\n1 2 3abc\n2 3 1\n", "line 3: '1 2 3abc' is not 3 numbers"),
        ("real general\n3 3 2\n1 2 3\n2 3 1 7\n", "line 4: '2 3 1 7' is not 3 numbers"),
        ("real general\n3 3 1\n1 2 0x10\n", "line 3: '1 2 0x10' is not 3 numbers"),
        ("real general\n3 3 1\n1 2 1d\n", "line 3: '1 2 1d' is not 3 numbers"),
        ("real general\n3 3 1\n1 2 1.2.3\n", r"line 3: '1 2 1\.2\.3' is not 3 numbers"),
        ("real general\n3 3 2\r1 2 1\r2 3 1\n", SIZES),
        ("pattern general\n3 3 1x\n1 2\n", SIZES),
        ("pattern general\n3 3 -1\n1 2\n", SIZES),
        ("pattern general\n3 3 1 x\n1 2\n", SIZES),
        ("pattern skew-symmetric\n3 3 1\n2 1\n", "cannot have the field pattern"),
        ("pattern general\n3 3\n1 2\n", SIZES),
        ("pattern general\n3 3 1 4\n1 2\n", SIZES),
        ("pattern general\n3 3 99999999999999999999\n1 2\n", SIZES),
        ("pattern general\n", SIZES),
        ("pattern general\n% a\n\n# 3\n3 3 1\n1 2\n", SIZES.replace("2", "4")),
        ("pattern general\n3 3 1\n% a\n1 2\n", "line 3: '% a' is not 2 numbers"),
        ("pattern general\n3 3 1\n4 2\n", "line 3: '4 2' is outside 3 x 3, the shape in"),
        ("integer general\n3 3 1\n1 2 9223372036854775808\n", "line 3: .* not of 64 bits"),
        ("unsigned-integer general\n3 3 1\n1 2 18446744073709551616\n", "line 3: .* of 64 bits"),
        ("pattern general\n3 3 1\n99999999999999999999 1\n", "line 3: .* is outside 3 x 3"),
        ("pattern general\n3 3 2\n1    2\n\n\n", "header says 2 entries, the file has 1"),
        ("unsigned-integer skew-symmetric\n3 3 1\n2 1 1\n", "line 1: a skew-symmetric matrix ca"),
        ("unsigned-integer general\n3 3 1\n2 1 -1\n", "line 3: '2 1 -1' is not 3 numbers"),
        ("quaternion general\n3 3 1\n2 1 -1\n", "line 1: a general matrix cannot have the field"),
        ("pattern lopsided\n3 3 1\n2 1\n", "line 1: a lopsided matrix cannot have the field"),
        ("pattern general x\n3 3 1\n1 2\n", "line 1: .* is not a banner of five words"),
    ],
)
def test_what_the_parser_would_misread_is_refused(save, content, message):
    with pytest.raises(FileFormatError, match=message) as caught:
        read_cpu(save(BANNER + content))
    assert "\n" not in str(caught.value)


def test_a_vector_is_named(save):
    with pytest.raises(NotSupported, match=r"line 1: .* is a vector. Give a matrix"):
        read_cpu(save("%%MatrixMarket vector coordinate real general\n3 1\n2 1.0\n"))


@pytest.mark.parametrize(
    "banner",
    ["%%matrixmarket", "%%MATRIXMARKET", "%MatrixMarket", "%% MatrixMarket", "# a\n%%MatrixMarket"],
)
def test_an_odd_banner_is_refused_and_not_a_comment(save, banner):
    content = f"{banner} matrix coordinate real general\n3 3 2\n1 2 5\n2 3 6\n"
    with pytest.raises(FileFormatError, match=r"looks like the banner of Matrix Market\. Make it"):
        read_cpu(save(content))


def test_spaces_signs_and_line_ends_of_all_kinds(save):
    content = BANNER + "real general\r\n3 3 3\r\n 1\t2   -1.5e0 \r\n\n2 3 .5\n3 1 Inf"
    assert entries(read_cpu(save(content))) == [(0, 1, -1.5), (1, 2, 0.5), (2, 0, float("inf"))]


def test_a_line_of_one_blank_is_no_entry(save):
    assert entries(read_cpu(save(BANNER + "pattern general\n3 3 0\n \n"))) == []
    assert entries(read_cpu(save(BANNER + "pattern general\n3 3 1\n \n1 2\n"))) == [(0, 1, True)]


def test_numbers_without_a_sign(save):
    A = read_cpu(save(BANNER + "unsigned-integer general\n2 2 1\n1 2 18446744073709551615\n"))
    assert A.dtype is UINT64
    assert entries(A) == [(0, 1, 2**64 - 1)]


VALUES = "-1.5e-05 5.E+2 2E3 -0.e5 5e-0 1e999 1e-999 5e 5E- 5.e+ e5 .e5 -e5 5e-+3 1e5e5 1e.5 5e3."


@pytest.mark.parametrize("field", ["real", "integer"])
@pytest.mark.parametrize("word", [*VALUES.split(), ".", "-", "-0", "--1", "", "1-", "2\r"])
def test_values_in_the_usual_form_are_read_as_others(save, monkeypatch, word, field):
    content = f"{BANNER}{field} general\n3 3 3\n1 2 1\n2 3 {word}\n3 1 7\n"

    def read():
        try:
            return repr(entries(read_cpu(save(content))))
        except FileFormatError as error:
            return str(error)

    found = read()
    monkeypatch.setattr("lagpu.io.reading.regular", lambda *_: (0, 0, False))
    assert found == read()


def test_entries_given_twice_may_have_no_sum(save):
    """Without a warning of NumPy, which the tests make an error."""
    A = read_cpu(save(f"{BANNER}real general\n2 2 2\n1 2 inf\n1 2 -inf\n"))
    assert repr(entries(A)) == "[(0, 1, nan)]"


def test_sizes_that_a_small_file_may_not_ask_for(save, monkeypatch):
    monkeypatch.setattr("lagpu.host.memory.available_bytes", lambda: 10**15)
    with pytest.raises(LimitExceeded, match=r"read: graph, 2 x 999999999: needs .* more than the"):
        read_cpu(save(BANNER + "pattern general\n2 999999999 0\n"))


@pytest.mark.parametrize("values", [[0.5, 1e300], [300, -(2**40)], [True, False], [True, True]])
def test_what_is_written_reads_back(tmp_path, values):
    A = Matrix.from_coo([0, 1], [1, 2], values, nrows=3, ncols=3, backend="cpu")
    write(A, tmp_path / "a.mtx")
    assert entries(read_cpu(tmp_path / "a.mtx")) == [(0, 1, values[0]), (1, 2, values[1])]
