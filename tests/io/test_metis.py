"""METIS: weights, sizes, comments, and graphs that contradict their headers."""

import pytest
from readback import edges, entries, read_cpu

from lagpu.dtypes import BOOL, INT64
from lagpu.errors import FileFormatError, InvalidValue, LimitExceeded
from lagpu.host import memory
from lagpu.io import read, write

# The graph of the manual: seven vertices, eleven edges.
LINES = ["5 3 2", "1 3 4", "5 4 2 1", "2 3 6 7", "1 3 6", "5 4 7", "6 4"]
EDGES = sorted((i, int(j) - 1) for i, line in enumerate(LINES) for j in line.split())


def graph(save, *lines):
    return save("\n".join(lines) + "\n", "a.graph")


@pytest.mark.parametrize("head", ["7 11", "7 11 0", "7 11 000", "% a comment\n7 11"])
def test_the_graph_of_the_manual(save, head):
    A = read_cpu(graph(save, head, *LINES[:3], "% inside", *LINES[3:]))
    assert (A.shape, A.dtype) == ((7, 7), BOOL)
    assert edges(A) == EDGES


@pytest.mark.parametrize(
    ("head", "before", "weighted"),
    [
        ("7 11 1", "", True),
        ("7 11 10", "9 ", False),
        ("7 11 010 3", "9 8 7 ", False),
        ("7 11 100", "5 ", False),
        ("7 11 111 2", "5 9 8 ", True),
    ],
)
def test_weights_of_edges_are_values_and_those_of_vertices_are_left_out(
    save, head, before, weighted
):
    lines = [
        before + " ".join(f"{j} {i + 1 + int(j)}" if weighted else j for j in line.split())
        for i, line in enumerate(LINES)
    ]
    A = read_cpu(graph(save, head, *lines))
    assert edges(A) == EDGES
    assert A.dtype is (INT64 if weighted else BOOL)
    if weighted:
        assert all(x == i + j + 2 for i, j, x in entries(A))


def test_weights_at_the_limit_of_64_bits(save):
    largest = 2**63 - 1
    A = read_cpu(graph(save, "3 2 001", f"2 {largest}", f"1 {largest}\t3 7", "2 7"))
    assert entries(A) == [(0, 1, largest), (1, 0, largest), (1, 2, 7), (2, 1, 7)]
    with pytest.raises(FileFormatError, match=r"line 2: '2 9.*8' is not made of whole numbers of"):
        read_cpu(graph(save, "2 1 001", f"2 {largest + 1}", f"1 {largest + 1}"))


def test_blank_lines_are_vertices_without_edges(save):
    assert edges(read_cpu(graph(save, "3 1", "3", "", "1"))) == [(0, 2), (2, 0)]
    assert read_cpu(graph(save, "2 0", "", "", "", "")).shape == (2, 2)
    assert read_cpu(graph(save, "0 0")).shape == (0, 0)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["3 1", "2", "1"], "the header says 3 vertices, 2 lines follow. It is truncated"),
        (["1 0", "", "1"], "the header says 1 vertices, 2 lines follow"),
        (["2 2", "2", "1"], "the header says 2 edges, .* have 2 neighbours, not 4"),
        (["2 1", "3", "1"], r"vertex 3 is outside 1 \.\. 2"),
        (["2 1", "0", "1"], r"vertex 0 is outside 1 \.\. 2"),
        (["2 1 1", "2 5", "1"], "the line of vertex 2 has 1 numbers, which does not fit"),
        (["2 1 10", "2", ""], "the line of vertex 2 has 0 numbers"),
        (["3 1", "2", "3", ""], "the line of vertex 1 has the edge to 2, that of 2 not the same"),
        (["2 1 1", "2 5", "1 6"], "the line of vertex . has the edge to ., that of . not the"),
        (["2 1", "x", "1"], "line 2: 'x' is not made of whole numbers"),
        (["2 1", "2", "1.5"], "line 3: '1.5' is not made of whole numbers"),
        (["2 1", "2", "99999999999999999999"], "line 3: .* is not made of whole numbers"),
        (["source target", "0 1"], "is not the header `n m` of a METIS graph. If the file is an"),
        (["5 1 7"], "is not the header"),
    ],
)
def test_malformed_graphs(save, lines, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(graph(save, *lines))


def test_graphs_in_several_pieces(save, monkeypatch):
    monkeypatch.setattr("lagpu.io.reading.PIECE", 8)
    assert edges(read_cpu(graph(save, "7 11", *LINES))) == EDGES


def test_a_header_of_many_vertices_is_refused_before_they_are_made(save, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**15)
    with pytest.raises(FileFormatError, match=r"says 100000000000 vertices, 1 lines follow"):
        read_cpu(graph(save, "100000000000 1", "2"))
    monkeypatch.setenv("LAGPU_READ_LIMIT", "20e6")
    with pytest.raises(LimitExceeded, match=r"its lines: needs"):
        read_cpu(graph(save, "2000000 0", "\n" * 2_000_000))


def test_what_metis_has_no_place_for(tmp_path, save):
    with pytest.raises(InvalidValue, match=r"METIS has no self-loops"):
        write(read(save("0 0\n0 1\n1 0\n"), backend="cpu"), tmp_path / "a.graph")
    for weight in (".5", "-3"):
        A = read(save(f"0 1 {weight}\n1 0 {weight}\n"), backend="cpu")
        with pytest.raises(InvalidValue, match=r"METIS has whole weights from 0 on"):
            write(A, tmp_path / "a.graph")
    with pytest.raises(
        InvalidValue, match=r"METIS has no place for directed edges, such as 0 -> 1"
    ):
        write(read(save("0 1\n"), backend="cpu"), tmp_path / "a.graph")
