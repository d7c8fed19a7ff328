"""KONECT's lists, and LDBC's edges beside their vertices."""

import gzip
import sys
import tarfile

import numpy as np
import pytest
from readback import edges, entries, read_cpu

from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io import from_arrays, read, write

BOTH = [(0, 1), (1, 0), (1, 2), (2, 1)]


# ---------------------------------------------------------------------------------------- KONECT
@pytest.mark.parametrize("words", ["unweighted", "positive", "weighted \f", "", "signed\r"])
@pytest.mark.parametrize("sizes", ["", "% 2 3 3\n"])
def test_the_first_line_of_konect(save, words, sizes):
    text = f"{sizes}1 2\n2 3\n"
    assert edges(read_cpu(save(f"% sym {words}\n{text}", "out.x"))) == BOTH
    assert edges(read_cpu(save(f"% asym {words}\n{text}", "out.x"))) == BOTH[::2]
    assert edges(read_cpu(save(f"% sym {words}\n{text}", "out.x"), directed=True)) == BOTH[::2]
    with pytest.raises(FileFormatError, match=r"line 1: .* bipartite graph of KONECT"):
        read_cpu(save(f"% bip {words}\n{text}", "out.x"))
    # No first line: a list of edges, whose vertices keep their numbers.
    assert edges(read_cpu(save(f"# x\n% sym {words}\n{text}"))) == [(1, 2), (2, 3)]


def test_weights_and_times_of_konect(save):
    text = "1\t2 3.5 2019\n2\t3 -1 2021\n3\t1 2 2020\n"
    path = save("% asym weighted\n% 3 5 5\n" + text, "out.x")
    A = read_cpu(path)
    assert (A.dtype, A.nrows) == (FP64, 5)
    assert entries(A) == [(0, 1, 3.5), (1, 2, -1.0), (2, 0, 2.0)]
    B = read_cpu(path, columns=("source", "target", "time"))
    assert entries(B) == [(0, 1, 2019.0), (1, 2, 2021.0), (2, 0, 2020.0)]
    assert entries(read_cpu(path, columns=("target", "source")))[0] == (0, 2, True)
    with pytest.raises(InvalidValue, match=r"out\.x has no column 'hour'"):
        read_cpu(path, columns=("source", "target", "hour"))
    with pytest.raises(InvalidValue, match=r"KONECT numbers its vertices without gaps"):
        read_cpu(path, renumber=True)


@pytest.mark.parametrize(("kind", "expected"), [("unweighted", True), ("positive", 5)])
def test_parallel_edges_of_konect(save, kind, expected):
    A = read_cpu(save(f"% asym {kind}\n1 2 2 7\n1 2 3 8\n", "out.x"))
    assert (A.dtype, entries(A)) == (BOOL if expected is True else INT64, [(0, 1, expected)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("% sym\n0 1\n", r"vertex 0 is outside 1 \.\. "),
        ("% sym\n% 1 2 2\n1 3\n", r"vertex 3 is outside 1 \.\. 2"),
        ("% asym dynamic\n1 2 1\n1 2 -1\n", "line 1: .* edges that come and go"),
        ("% asym weighted\n1 2 1\n1 2\n", "line 3: '1 2' has 2 numbers, not 3"),
        ("% asym weighted\n1 2 3 4 5\n", "line 2: '1 2 3 4 5' has 5 numbers, not 4"),
        ("% asym weighted\n1 2 3 4\n1 2 7-inf 4\n", "line 3: '1 2 7-inf 4' is not made of numbers"),
        ("% asym weighted\n1 2 x 4\n", "line 2: '1 2 x 4' is not made of numbers"),
        (f"% asym weighted\n1 2 {2**63} 4\n", "line 2: .* has a weight beyond 64 bits"),
        ("% asym weighted\n1 x 3 4\n", "line 2: '1 x 3 4' is not made of numbers"),
    ],
)
def test_what_is_wrong_in_a_list_of_konect(save, text, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(text, "out.x"))


def test_an_empty_graph_of_konect(save):
    A = read_cpu(save("% sym unweighted\n% 0 3 3\n", "out.x"))
    assert (A.shape, A.nvals) == ((3, 3), 0)


@pytest.mark.parametrize("values", [True, np.array([3, 4])])
def test_konect_is_written(tmp_path, values):
    A = from_arrays([0, 2], [1, 2], values, nrows=4, ncols=4, backend="cpu")
    write(A, tmp_path / "a.konect")
    B = read_cpu(tmp_path / "a.konect")
    assert (B.shape, B.dtype, entries(B)) == (A.shape, A.dtype, entries(A))


# ------------------------------------------------------------------------------------------ LDBC
@pytest.fixture
def graph(save):
    """Edges 2 -> 9 and 9 -> 30 of the vertices 2, 5, 9, 30."""
    save("30\n2\n9\n5\n", "g.v")
    save("graph.g.vertex-file = g.v\ngraph.g.directed = true\n", "g.properties")
    return save("2 9 0.5\n9 30 1\n", "g.e")


@pytest.mark.parametrize("place", ["cpu", "grid:3:cpu"])
def test_vertices_beside_edges(graph, place):
    A, ids = read(graph, renumber=True, backend=place)
    assert (ids.tolist(), A.nrows, A.dtype) == ([2, 5, 9, 30], 4, FP64)
    assert entries(A) == [(0, 2, 0.5), (2, 3, 1.0)]
    B = read(graph, backend=place)
    assert (B.nrows, entries(B)) == (31, [(2, 9, 0.5), (9, 30, 1.0)])


def test_the_properties_say_whether_edges_have_a_direction(graph, save):
    save("graph.g.directed = false\n", "g.properties")
    assert edges(read_cpu(graph)) == [(2, 9), (9, 2), (9, 30), (30, 9)]
    assert edges(read_cpu(graph, directed=True)) == [(2, 9), (9, 30)]
    with graph.open("rb") as stream:  # nothing is beside an open file
        assert read_cpu(stream, renumber=True)[1].tolist() == [2, 9, 30]


def test_vertices_that_are_missing_or_malformed(graph, save):
    save("2\n9\n", "g.v")
    with pytest.raises(FileFormatError, match=r"g\.e: vertex 30 is not in its \.v file"):
        read_cpu(graph)
    save("2\n30\n", "g.v")
    with pytest.raises(FileFormatError, match=r"g\.e: vertex 9 is not in its \.v file"):
        read_cpu(graph)
    save("2\n9 x\n", "g.v")
    with pytest.raises(FileFormatError, match=r"the \.v of g\.e, line 2: '9 x' is not one vertex"):
        read_cpu(graph)
    save("", "g.v")
    with pytest.raises(FileFormatError, match=r"vertex 2 is not in its"):
        read_cpu(graph)
    save("4\n", "g.v")
    A, ids = read_cpu(save("# none\n", "g.e"), renumber=True)
    assert (A.shape, A.nvals, ids.tolist()) == ((1, 1), 0, [4])


def test_ldbc_that_is_packed(graph, tmp_path, monkeypatch):
    for name in ("g.e", "g.v"):
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data))
    assert read_cpu(tmp_path / "g.e.gz", renumber=True)[1].tolist() == [2, 5, 9, 30]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-.v").write_text("1\n")
    (tmp_path / "piped").write_text("2 9\n")
    with (tmp_path / "piped").open() as stream:  # nothing is beside the standard input
        monkeypatch.setattr(sys, "stdin", stream)
        assert edges(read_cpu("-", format=".e")) == [(2, 9)]


def test_ldbc_in_an_archive(graph, tmp_path):
    with tarfile.open(tmp_path / "g.tar.xz", "w:xz") as out:
        for name in ("g.e", "g.v", "g.properties"):
            out.add(tmp_path / name, f"deep/{name}")
        out.add(tmp_path / "g.v", "deep/g-BFS")
    A, ids = read_cpu(tmp_path / "g.tar.xz", renumber=True)
    assert (ids.tolist(), edges(A)) == ([2, 5, 9, 30], [(0, 2), (2, 3)])
