"""Matrix Market and edge lists: what is read, and what malformed text gets."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from readback import BANNER, edges, entries, read_cpu

from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.errors import (
    FileFormatError,
    InvalidValue,
    NotSupported,
    OutOfMemory,
    UnknownOperator,
)
from lagpu.io import reading


@pytest.mark.parametrize(
    ("kind", "body", "dtype", "expected"),
    [
        ("pattern general", "3 3 2\n1 2\n3 1\n", BOOL, [(0, 1, True), (2, 0, True)]),
        ("integer general", "2 3 2\n1 3 -7\n2 1 8\n", INT64, [(0, 2, -7), (1, 0, 8)]),
        ("real general", "2 2 2\n1 2 1.5\n2 2 0\n", FP64, [(0, 1, 1.5), (1, 1, 0.0)]),
        ("pattern symmetric", "3 3 2\n2 1\n3 3\n", BOOL, [(0, 1, 1), (1, 0, 1), (2, 2, 1)]),
        ("integer skew-symmetric", "3 3 1\n3 1 5\n", INT64, [(0, 2, -5), (2, 0, 5)]),
        ("integer general", "2 2 3\n1 2 5\n1 2 6\n2 2 1\n", INT64, [(0, 1, 11), (1, 1, 1)]),
        ("pattern general", "2 2 3\n1 2\n1 2\n2 2\n", BOOL, [(0, 1, True), (1, 1, True)]),
        ("pattern general", "4 4 0\n", BOOL, []),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_matrix_market(save, kind, body, dtype, expected, packed):
    content = f"{BANNER}{kind}\n% a comment\n{body}".encode()
    A = read_cpu(save(gzip.compress(content, mtime=0) if packed else content))
    assert A.dtype is dtype
    assert (A.nrows, A.ncols) == tuple(int(size) for size in body.split()[:2])
    assert entries(A) == expected


def test_matrix_market_with_returns_blank_lines_and_byte_order_mark(save):
    content = f"\ufeff{BANNER}pattern general\r\n\r\n3 3 1\r\n\r\n1 2\r\n\r\n"
    assert edges(read_cpu(save(content))) == [(0, 1)]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("pattern general\n3 3 3\n1 2\n2 3\n", FileFormatError, "Truncated|truncated"),
        ("pattern general\n3 3 1\n1 2\n2 3\n", FileFormatError, "says 1 entries, the file has 2"),
        (
            "pattern general\n3 3 99999999999\n1 2\n",
            FileFormatError,
            "99999999999 entries, the file has 1",
        ),
        ("pattern general\n3 3 1\n1 4\n", FileFormatError, "line 3: '1 4' is outside 3 x 3"),
        ("pattern general\n3 3 1\n0 1\n", FileFormatError, "line 3: .* is outside 3 x 3"),
        ("pattern general\n3 3 1\n-1 1\n", FileFormatError, "line 3: .* is outside 3 x 3"),
        ("pattern general\n3 3 1\n1 x\n", FileFormatError, "line 3: '1 x' is not 2 numbers"),
        ("pattern general\n3 3 1\n1 2 7\n", FileFormatError, "line 3: '1 2 7' is not 2 numbers"),
        ("real general\n3 3 1\n1 2\n", FileFormatError, "line 3: '1 2' is not 3 numbers"),
        ("integer general\n3 3 2\n1 2 3\n1 3 1.5\n", FileFormatError, "line 4: a real number"),
        ("integer general\n3 3 1\n1 2 99999999999999999999\n", FileFormatError, "not of 64 bits"),
        ("pattern symmetric\n3 4 1\n2 1\n", FileFormatError, "nrows 3 != ncols 4"),
        ("pattern general\n", FileFormatError, "line 2: '' is not `rows columns entries`"),
        ("nonsense general\n3 3 0\n", FileFormatError, "nonsense"),
        ("complex general\n3 3 1\n1 2 1 1\n", NotSupported, "complex"),
        ("pattern general\n2 99999999999999 0\n", OutOfMemory, "needs .* GB, .* GB free"),
    ],
)
def test_malformed_matrix_market(save, content, error, message):
    with pytest.raises(error, match=message):
        read_cpu(save(BANNER + content))


def test_dense_matrix_market_is_refused(save):
    with pytest.raises(NotSupported, match="array"):
        read_cpu(save("%%MatrixMarket matrix array real general\n1 1\n1\n"))


# -------------------------------------------------------------------------------- edge lists
@pytest.mark.parametrize(
    "content",
    [
        "0 1\n2 0\n",
        "# a comment\n% another\n\n0\t1\n  # inside\n2   0",
        "0 1\r\n2 0\r\n",
        "\ufeff0 1\n2 0\n",
        "3 2\n0 1\n2 0\n",
        "0 1\n2 0\n0 1\n",
        "2 0\n0 1\n\n \n",
    ],
    ids=["plain", "comments", "crlf", "bom", "header", "twice", "blank end"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_edge_list(save, content, packed):
    A = read_cpu(save(gzip.compress(content.encode(), mtime=0) if packed else content))
    assert (A.nrows, A.ncols, A.dtype) == (3, 3, BOOL)
    assert edges(A) == [(0, 1), (2, 0)]


def test_edge_list_with_weights(save):
    A = read_cpu(save("0 1 5\n1 2 -3\n0 1 2\n"))
    assert A.dtype is INT64
    assert entries(A) == [(0, 1, 7), (1, 2, -3)]
    B = read_cpu(save("0 1 .5\n1 2 1e3\n2 0 inf\n"))
    assert B.dtype is FP64
    assert entries(B) == [(0, 1, 0.5), (1, 2, 1000.0), (2, 0, np.inf)]


@pytest.mark.parametrize(
    ("content", "options", "n", "expected"),
    [
        ("4 2\n0 1\n1 2\n", {}, 4, [(0, 1), (1, 2)]),
        ("4 2\n0 1\n1 2\n", {"header": False}, 5, [(0, 1), (1, 2), (4, 2)]),
        ("4 3\n0 1\n1 2\n", {}, 5, [(0, 1), (1, 2), (4, 3)]),  # not as many lines
        ("2 2\n0 1\n1 2\n", {}, 3, [(0, 1), (1, 2), (2, 2)]),  # too small for vertex 2
        ("1 0\n", {}, 2, [(1, 0)]),  # no line follows
        ("5 0\n", {"header": True}, 5, []),
        ("9 2\n0 1 4\n1 2 4\n", {"header": None}, 9, [(0, 1), (1, 2)]),
        ("# Nodes: 6 Edges: 1\n0 1\n", {}, 6, [(0, 1)]),
    ],
)
def test_header_line(save, content, options, n, expected):
    A = read_cpu(save(content), **options)
    assert A.nrows == A.ncols == n
    assert edges(A) == expected


@pytest.mark.parametrize("renumber", [False, True])
@pytest.mark.parametrize("lines", ["", "0 1\n", "2 0\n0 1\n"])
def test_a_list_that_lacks_edges_of_its_comment_is_refused(save, lines, renumber):
    with pytest.raises(FileFormatError, match=rf"says 3 edges, and {lines.count(' ')} follow"):
        read_cpu(save(f"# Directed graph\n# Nodes: 3 Edges: 3\n{lines}"), renumber=renumber)


@pytest.mark.parametrize("content", ["4 3\n0 1\n1 2\n", "2 2\n0 1\n1 2\n", "x 2\n0 1\n1 2\n"])
def test_promised_header_that_does_not_fit(save, content):
    with pytest.raises(FileFormatError, match=r"the header .* does not fit: 2 lines follow"):
        read_cpu(save(content), header=True)


def test_header_over_vertices_from_one_is_refused(save):
    content = "3 4\n1 2\n2 3\n3 1\n1 3\n"
    with pytest.raises(FileFormatError, match=r"looks like a header of vertices 1 \.\. 3"):
        read_cpu(save(content))
    assert read_cpu(save(content), header=False).nrows == 5


@pytest.mark.parametrize(
    ("comment", "directed", "symmetric"),
    [
        ("", None, False),
        ("", False, True),
        ("# Undirected graph: x\n", None, True),
        ("# Undirected graph: x\n", True, False),
        ("# Directed graph (each unordered pair of nodes is saved once): x\n", None, False),
    ],
)
def test_direction(save, comment, directed, symmetric):
    A = read_cpu(save(comment + "0 1\n1 1\n1 2\n2 1\n"), directed=directed)
    expected = [(0, 1), (1, 1), (1, 2), (2, 1)]
    assert edges(A) == sorted([*expected, (1, 0)]) if symmetric else edges(A) == expected


def test_direction_of_other_formats(save, tmp_path):
    path = save(BANNER + "real general\n3 3 3\n1 2 4\n2 1 4\n3 1 5\n")
    A = read_cpu(path, directed=False)
    assert entries(A) == [(0, 1, 4.0), (0, 2, 5.0), (1, 0, 4.0), (2, 0, 5.0)]
    sp.save_npz(tmp_path / "a.npz", sp.coo_array(([True], ([0], [1])), shape=(2, 2)))
    assert edges(read_cpu(tmp_path / "a.npz", directed=False)) == [(0, 1), (1, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "0 1 5\n2 0 1\n0 1 2\n0 1 4\n",
        BANNER + "integer general\n3 3 4\n1 2 5\n3 1 1\n1 2 2\n1 2 4\n",
    ],
)
@pytest.mark.parametrize(("op", "value"), [(None, 11), ("min", 2), ("first", 5), ("second", 4)])
def test_entries_given_twice_are_combined(save, text, op, value):
    assert entries(read_cpu(save(text), dup_op=op)) == [(0, 1, value), (2, 0, 1)]


def test_what_has_no_values_is_merged_whatever_the_operator(save):
    assert edges(read_cpu(save("0 1\n0 1\n1 2\n"), dup_op="plus")) == [(0, 1), (1, 2)]
    with pytest.raises(UnknownOperator):
        read_cpu(save("0 1\n"), dup_op="blah")


def test_directions_that_disagree(save):
    with pytest.raises(InvalidValue, match=r"edge 1 -> 0 has value 4, 0 -> 1 has 3\. Give"):
        read_cpu(save("0 1 3\n1 0 4\n"), directed=False)
    with pytest.raises(InvalidValue, match="nrows 2 != ncols 3"):
        read_cpu(save(BANNER + "pattern general\n2 3 1\n1 2\n"), directed=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 1\n# c\n1 x\n", "line 3: '1 x' is not made of numbers"),
        ("0 1\n1 2\n\n-1 2\n", "line 4: '-1 2' has a vertex"),
        ("0 1\n1 2.5\n", r"line 2: '1 2\.5' has a vertex"),
        ("0 1\n1 99999999999999999999\n", "line 2: .* has a vertex"),
        ("0 1\n1\n", "line 2: '1' has 1 numbers, not 2"),
        ("0 1\n1 2 3\n", "line 2: '1 2 3' has 3 numbers, not 2"),
        ("0 1 5\n1 2\n", "line 2: '1 2' has 2 numbers, not 3"),
        ("0 1 5\n1 2 99999999999999999999\n", "line 2: .* has a weight beyond 64 bits"),
        ("0 1\n1 2 3 4\n0 1\n", "line 2: .* has 4 numbers, not 2"),
        ("0 1 2 3\n", "line 1: .* has 4 numbers"),
        ("0 1 2\n3\n", "line 2: '3' has 1 numbers"),  # as many numbers as two lines of two
        ("0 1\n0 1\n2\n3\n4 5\n", "line 3: '2' has 1 numbers"),
        ("0 1\n0 1\n2 3 4 5\n", "line 3: '2 3 4 5' has 4 numbers"),
        ("0 1\n1 2 # no comment\n", "line 2: .* has 5 numbers"),
        ("0 1\n1 -\n", "line 2: '1 -' is not made of numbers"),
        ("0 1\n1-2 3\n", "line 2: '1-2 3' is not made of numbers"),
        ("0 1\n1,2\n", "line 2: '1,2' has 1 numbers"),
        ("0 1\n1_0 2\n", "line 2: '1_0 2' is not made of numbers"),
        ("0 1\n0x1 2\n", "line 2: '0x1 2' is not made of numbers"),
        ("0 1\nnan 2\n", "line 2: 'nan 2' has a vertex"),
        ("0 1\n1 \u00b2\n", "line 2: .* is not made of numbers"),
        ("hello world\n", "line 1: 'hello world' is not made of numbers"),
        ("# only\n% comments\n\n", "has no edges"),
        ("\n \n", "has no edges"),
    ],
)
def test_malformed_edge_list(save, content, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(content))


def test_fault_in_a_later_piece_has_its_line_number(save, monkeypatch):
    monkeypatch.setattr("lagpu.io.reading.PIECE", 10)
    lines = [f"{i} {i + 1}" for i in range(50)]
    assert read_cpu(save("\n".join(lines))).nvals == 50
    lines[33] = "1 x"
    with pytest.raises(FileFormatError, match="line 34: '1 x'"):
        read_cpu(save("\n".join(lines)))
    lines[33] = "1 2 3"
    with pytest.raises(FileFormatError, match="line 34: '1 2 3' has 3 numbers, not 2"):
        read_cpu(save("\n".join(lines)))


def test_single_edge_and_blank_lines(save):
    assert edges(read_cpu(save("2 0\n\n\n"))) == [(2, 0)]


def test_binary_after_a_long_text(save):
    with pytest.raises(FileFormatError, match=r"line 20001: .* is not made of numbers"):
        read_cpu(save(b"0 1\n" * 20000 + b"0 \x001\n"))


def test_pieces_with_and_without_fractions_join(save, monkeypatch):
    monkeypatch.setattr("lagpu.io.reading.PIECE", 10)
    A = read_cpu(save("0 1 2\n1 2 2\n2 3 0.5\n3 4 7\n"))
    assert entries(A) == [(0, 1, 2.0), (1, 2, 2.0), (2, 3, 0.5), (3, 4, 7.0)]


@pytest.mark.parametrize("content", ["0 999999999999999\n", "# Nodes: 999999999999999\n0 1\n"])
def test_vertex_beyond_memory(save, content):
    with pytest.raises(OutOfMemory, match=r"read: graph, .*999999999999999.*: needs .* GB free"):
        read_cpu(save(content))


def test_pieces_end_with_their_lines():
    lines = b"aa\nbb\ncccccc\ndd\nlonger than a piece"
    found = [(0, b"aa\nbb\n"), (6, b"cccccc\n"), (13, b"dd\n"), (16, b"longer than a piece")]
    assert [(at, lines[at:stop]) for at, stop in reading.cuts(lines, 0, 6)] == found
    assert list(reading.cuts(b"\nlonger\n1\n", 0, 6)) == [(0, 1), (1, 8), (8, 10)]


_NUMBERS = ["0", "7", "12", "-3", "", "-", ".", "1.5", "-.5", "5.", "-0.0", "1e3", "nan", "+1", "x"]
_NUMBERS += ["-1.5e-05", "5.E+2", "2E3", "-0.e5", "5e-0", "5e", "5E-", "5.e+", "e5", ".e5", "5e-+3"]
_NUMBERS += ["1e5e5", "1e.5", "5e3.", "1e999", "1e-999"]
_NUMBERS += ["1-2", "1.2.3", "9" * 18, "9" * 19, "-" + "9" * 25, "9" * 400 + ".", "0." + "0" * 400]


@given(data=st.data())
def test_the_usual_form_is_read_as_any_other(data):
    """Texts that are almost in the usual form: the quick parser is right, or leaves them alone."""
    mark = data.draw(st.sampled_from(["\t", " ", ","]))
    width, lines = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    rows = [[str(data.draw(st.integers(0, 99))) for _ in range(width)] for _ in range(lines)]
    for _ in range(data.draw(st.integers(0, 2))):
        row = data.draw(st.sampled_from(rows))
        row[data.draw(st.integers(0, width - 1))] = data.draw(st.sampled_from(_NUMBERS))
    end = data.draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = "".join(mark.join(row) + end for row in rows).encode()
    odd = data.draw(st.sampled_from([b""] * 9 + [b" ", b"\n", b"\t", b"\0", b"\r", b"-", b"."]))
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + odd + text[at:] * (data.draw(st.integers(0, 19)) > 0)
    if not text.endswith(b"\n"):
        text += b"\n"
    same_as_any_other(text, "," if mark == "," else None)


@pytest.mark.parametrize("word", _NUMBERS)
def test_each_odd_word_in_each_place(word):
    for mark in "\t", " ", ",":
        for place in range(9):
            words = [str(k) for k in range(9)]
            words[place] = word
            for width in (1, 3):
                rows = [mark.join(words[k : k + width]) for k in range(0, 9, width)]
                text = "".join(f"{row}\n" for row in rows).encode()
                same_as_any_other(text, "," if mark == "," else None)


def same_as_any_other(text, separator):
    """Read a text twice, the second time as one that is not in the usual form."""
    found = reading._usual_table(text, separator)
    if found is None or not text.strip():
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_usual_table", lambda *_: None)
        expected = reading.table(text, separator)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("text", "separator", "width"),
    [
        (b"0\t1\n2\t3\n", None, 2),
        (b"0 1 -5\r\n2 3 4\r\n", None, 3),
        (b"0,1,.5\n2,3,-4\n", ",", 3),
        (b"0 1 -1.5e-05\n2 3 4E+2\n", None, 3),
    ],
)
def test_what_is_the_usual_form(text, separator, width):
    found = reading._usual_table(text, separator)
    assert found is not None
    assert found.shape == (2, width)
