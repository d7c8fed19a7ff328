"""DIMACS: arcs with lengths, edges without, and lines at fault."""

import pytest
from readback import edges, entries, read_cpu

from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.errors import FileFormatError, LimitExceeded, NotSupported
from lagpu.host import memory

TOP = "c a road network\nc\np sp 4 3\n"


def test_arcs(save):
    A = read_cpu(save(TOP + "a 1 2 30\nc between\na 2 1 30\n\na 4 1 7\n"))
    assert (A.shape, A.dtype) == ((4, 4), INT64)
    assert entries(A) == [(0, 1, 30), (1, 0, 30), (3, 0, 7)]
    B = read_cpu(save("p sp 2 2\r\na 1 2 .5\r\na 1 2 1e1\r\n"), dup_op="min")
    assert (B.dtype, entries(B)) == (FP64, [(0, 1, 0.5)])
    assert read_cpu(save("p sp 3 0\n")).shape == (3, 3)


def test_edges_have_two_directions(save):
    text = "p edge 4 2\ne 1 2\ne 3 3\n"
    A = read_cpu(save(text))
    assert (A.dtype, A.nrows) == (BOOL, 4)
    assert edges(A) == [(0, 1), (1, 0), (2, 2)]
    assert edges(read_cpu(save(text), directed=True)) == [(0, 1), (2, 2)]
    both = "p col 2 1\ne 1 2\ne 2 1\n"  # as some files are: m counts an edge once
    assert edges(read_cpu(save(both))) == [(0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOP + "a 1 2 3\n", "the header says 3 lines `a u v w`, the file has 1. It is truncated"),
        (TOP + "a 1 2 3\na 1 x 3\na 1 2 3\n", "line 5: 'a 1 x 3' is no line `a u v w`"),
        (TOP + "a 1 2\na 1 2 3\na 1 2 3\n", "line 4: 'a 1 2' is no line"),
        (TOP + "a 1 2 3\na 1 2 3\ne 1 2\n", "line 6: 'e 1 2' is no line"),
        (TOP + "a 1 2 3\na 1 2 3\na 1 5 3\n", r"vertex 5 is outside 1 \.\. 4"),
        (TOP + "a 1 2 3\na 1 2 3\na 0 1 3\n", r"vertex 0 is outside 1 \.\. 4"),
        (TOP + "a 1 2 99999999999999999999\n", "numbers of 64 bits"),
        ("p edge 6 1\ne 6. 1\n", "line 2: 'e 6. 1' is no line `e u v`"),
        ("p edge 6 2\ne 2 3\ne 6 1e0\n", "line 3: 'e 6 1e0' is no line `e u v`"),
        ("p sp 6 2\na 2 3 .5\na 6.0 1 1\n", "line 3: 'a 6.0 1 1' is no line `a u v w`"),
        ("p edge 2 1\ne 1 2 3\n", "line 2: 'e 1 2 3' is no line `e u v`"),
    ],
)
def test_lines_at_fault(save, text, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(text))


def test_a_line_at_fault_in_a_later_piece(save, monkeypatch):
    monkeypatch.setattr("lagpu.io.reading.PIECE", 20)
    rows = [f"a {k} {k + 1} 5" for k in range(1, 31)]
    assert read_cpu(save("\n".join(["p sp 31 30", *rows]))).nvals == 30
    rows[20] = "a 1"
    with pytest.raises(FileFormatError, match=r"line 22: 'a 1' is no line"):
        read_cpu(save("\n".join(["p sp 31 30", *rows])))


def test_other_problems_and_what_does_not_fit(save, monkeypatch):
    with pytest.raises(NotSupported, match=r"DIMACS of the problem 'max'. Give `p sp`"):
        read_cpu(save("p max 4 5\nn 1 s\n"))
    with pytest.raises(FileFormatError, match=r"has no line `p sp n m`"):
        read_cpu(save("0 1\n"), format=".gr")
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**15)
    with pytest.raises(LimitExceeded, match=r"100000000 vertices: needs"):
        read_cpu(save("p sp 100000000 1\na 1 2 3\n"))
