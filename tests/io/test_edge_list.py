"""Edge lists: headers that would be edges, lines that are named, numbers at their limits."""

import gzip

import pytest
from readback import edges, entries, read_cpu

from lagpu.errors import FileFormatError, LimitExceeded, OutOfMemory
from lagpu.host import memory


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("4 3\n1 2\n2 3\n3 4\n", r"'4 3' looks like a header of vertices 1 \.\. 4\. Give"),
        ("3 2\n1 2 5\n2 3 6\n", r"'3 2' looks like a header of vertices 1 \.\. 3\. Give"),
        ("3 3 2\n1 2 5\n2 3 6\n", "'3 3 2' looks like the sizes of a Matrix Market file. Give"),
        ("3 5 2\n3 1 9\n1 5 9\n", "'3 5 2' looks like the sizes of a Matrix Market file. Give"),
        ("3 3 2\n1 2\n2 3\n", "'3 3 2' looks like the sizes of a Matrix Market file. Give"),
    ],
)
def test_a_header_of_vertices_from_one_is_refused(save, content, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(content))


def test_what_looks_like_a_header_is_an_edge_when_the_user_says_so(save):
    assert read_cpu(save("4 3\n1 2\n2 3\n3 4\n"), header=False).nvals == 4
    assert read_cpu(save("3 3 2\n1 2 5\n2 3 6\n"), header=False).nvals == 3


def test_three_numbers_that_do_not_fit_as_sizes_are_an_edge(save):
    for first in ("3 3 5", "1 3 2", "3 1 2"):  # another count, a larger row, a larger column
        assert read_cpu(save(f"{first}\n1 2 5\n2 3 6\n")).nvals == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 1\n1,2\n", "line 2: '1,2' has 1 numbers, not 2. Separate them by spaces or tabs"),
        ("# c\n\n0 1\n1, 2\n", "line 4: '1, 2' is not made of numbers. Separate them"),
        ("0 1 5\n1;2;3\n", "line 2: '1;2;3' has 1 numbers"),
        ("0:1\n1:2\n", "line 1: '0:1' has 1 numbers, not 2. Separate them by spaces or tabs"),
        ("source target\n0 1\n1 2\n", "line 1: 'source target' is not made of numbers"),
        ("a b\nb c\n", "line 1: 'a b' is not made of numbers. If they are names, give renumber="),
        ("0 1 2 3\n1 2 3 4\n", "line 1: '0 1 2 3' has 4 numbers"),
        ("0 9007199254740992\n", "line 1: .* has a vertex beyond 9007199254740991, the largest"),
        ("0 1\n9007199254740993 2\n", "line 2: .* has a vertex beyond 9007199254740991"),
        (b"0 1\n0 \xff2\n", r"line 2: .* is not made of numbers"),
        ("0 1 5\n0 2 5\n0 1\n2 3 4 5\n", "line 3: '0 1' has 2 numbers, not 3"),
        ("0 1\n0 1.5\n", "line 2: .* has a vertex that is not a whole number"),
        ("0 1 9223372036854775808\n", "line 1: .* has a weight beyond 64 bits"),
        ("0 1 1\n0 2 -9223372036854775809\n", "line 2: .* has a weight beyond 64 bits"),
    ],
)
def test_the_line_at_fault_is_named(save, content, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(content))


def test_weights_at_the_limits_of_64_bits(save):
    most, least = 2**63 - 1, -(2**63)
    A = read_cpu(save(f"0 1 {most}\n1 2 {least}\n2 0 1\n"))
    assert entries(A) == [(0, 1, most), (1, 2, least), (2, 0, 1)]


def test_a_huge_vertex_is_named_with_its_line(save, monkeypatch):
    content = "# c\n0 1\n1 9007199254740991\n"
    with pytest.raises(OutOfMemory, match=r"graph, vertex 9007199254740991 in line 3: needs"):
        read_cpu(save(content))
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**15)
    with pytest.raises(
        LimitExceeded,
        match=r"graph, vertex 500000000 in line 1: needs .* GB, more than the limit 1\.0 GB for a "
        r"file of 12 bytes\. Give renumber=True, on the command line --renumber, or number the "
        r"vertices from 0 without gaps, or set LAGPU_READ_LIMIT=",
    ):
        read_cpu(save("500000000 5\n"))
    with pytest.raises(OutOfMemory, match=r"graph, 99999999999999999999 vertices: needs"):
        read_cpu(save("# Nodes: 99999999999999999999\n0 1\n"))


def test_a_file_of_one_line_that_is_no_edge(save):
    with pytest.raises(FileFormatError, match="line 1: 'matrix coordinate' is not made of numbers"):
        read_cpu(save("matrix coordinate\n\r% a comment\n"))
    with pytest.raises(FileFormatError, match=r"line 1: 'a b c d \(' has 5 numbers"):
        read_cpu(save("a b c d (\n\r% a comment\n"))


def test_a_count_of_nodes_stands_in_its_line(save):
    assert read_cpu(save("# Nodes:\n7 1\n")).nrows == 8


def test_a_file_of_no_vertices(save):
    assert read_cpu(save("# Nodes: 0\n")).shape == (0, 0)


def test_only_edges_given_twice_are_combined(save):
    content = "0 2 4\n0 1 5\n0 1 6\n1 2 8\n1 1 9\n2 1 1\n0 1 2\n"
    found = entries(read_cpu(save(content), dup_op="first"))
    assert found == [(0, 1, 5), (0, 2, 4), (1, 1, 9), (1, 2, 8), (2, 1, 1)]


def test_packed_text_is_bounded_by_a_limit_that_can_be_raised(save, monkeypatch):
    bomb = save(gzip.compress(b"0 1\n" * 10**6, mtime=0))
    monkeypatch.setenv("LAGPU_READ_LIMIT", "2e7")
    with pytest.raises(LimitExceeded, match=r"its .*: needs .* or set LAGPU_READ_LIMIT=\de\+\d\d"):
        read_cpu(bomb)
    monkeypatch.setenv("LAGPU_READ_LIMIT", "2e9")
    assert edges(read_cpu(bomb)) == [(0, 1)]


def test_a_line_of_millions_of_numbers(save, monkeypatch):
    monkeypatch.setattr("lagpu.io.reading.PIECE", 40)
    with pytest.raises(FileFormatError, match=r"line 2: .* is longer than 40 bytes"):
        read_cpu(save("0 1\n" + "1 2 " * 20 + "\n0 1\n"))
    with pytest.raises(FileFormatError, match=r"line 1: .* is longer than 40 bytes"):
        read_cpu(save("1 2 " * 20))


@pytest.mark.parametrize(("lines", "other"), [("0 1", "1 2 5"), ("0 1 5", "1 2")])
def test_lines_of_another_width_in_a_later_piece_of_the_file(save, monkeypatch, lines, other):
    monkeypatch.setattr("lagpu.io.reading.PIECE", 30)
    count = 1 + 2 * (30 // len(f"{lines}\n"))  # the first line alone, and two whole pieces
    content = f"{lines}\n" * count + f"{other}\n" * 20
    message = rf"line {count + 1}: '{other}' has \d numbers, not \d"
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(content))


@pytest.mark.parametrize("end", ["", "\n"])
def test_one_line_alone_is_one_edge(save, end):
    path = save("1 0 5" + end)
    assert entries(read_cpu(path)) == [(1, 0, 5)]
    assert entries(read_cpu(path, directed=False)) == [(0, 1, 5), (1, 0, 5)]
