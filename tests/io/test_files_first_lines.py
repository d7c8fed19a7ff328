"""A first line is names of columns, or an edge, or refused."""

import gzip

import pytest
from readback import edges, entries, read_cpu

from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.errors import FileFormatError, InvalidValue

TABLES = {"a.csv": ",", "a.tsv": "\t", "a.txt": ","}


@pytest.fixture(params=["plain", "packed"])
def kept(save, request):
    """Save a text, also packed by gzip."""

    def keep(text, name="a.txt"):
        data = text.encode()
        return save(data, name) if request.param == "plain" else save(
            gzip.compress(data, mtime=0), f"{name}.gz")  # fmt: skip

    return keep


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("first", ["0,1x", "O,1", "0,-", "0,1,2.5x", "0,", ",0", "source,target,7"])
@pytest.mark.parametrize("rest", [["1,2", "2,3"], ["1,2,3"], []])
def test_a_broken_first_line_is_refused_by_its_number(kept, name, first, rest):
    text = "".join(f"{line}\n" for line in [first, *rest]).replace(",", TABLES[name])
    with pytest.raises(FileFormatError, match=r"a\.\w+(\.gz)?, line 1: .* neither .* give header="):
        read_cpu(kept(text, name))


def test_a_broken_first_line_below_comments_has_its_number(kept):
    with pytest.raises(FileFormatError, match=r"line 3: '0,1x' is neither names of columns nor"):
        read_cpu(kept("# made\n\n0,1x\n1,2\n"))
    with pytest.raises(FileFormatError, match=r"line 1: '3,4 1' is neither"):
        read_cpu(kept("3,4 1\n"))


def test_the_user_decides_what_a_first_line_is(kept):
    path = kept("source,target,2019\n0,1,5\n", "a.csv")
    assert entries(read_cpu(path, header=True)) == [(0, 1, True)]
    assert entries(read_cpu(path, columns=("source", "target", "2019"))) == [(0, 1, 5)]
    A, ids = read_cpu(kept("ann,0\nbob,1\n", "a.csv"), renumber=True)
    assert (A.nvals, ids.tolist()) == (2, ["0", "1", "ann", "bob"])
    with pytest.raises(FileFormatError, match=r"line 1: .* has the weight '2x'"):
        read_cpu(kept("ann,0,2x\nbob,1,3\n", "a.csv"), renumber=True)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_header_alone(kept, name):
    for text in ("source,target\n", "from,to,weight\n"):
        assert read_cpu(kept(text.replace(",", TABLES[name]), name)).shape == (0, 0)
    for text in ("a,b\n", "x,\n"):
        with pytest.raises(FileFormatError, match=r"the only line, and no edge"):
            read_cpu(kept(text.replace(",", TABLES[name]), name))
    assert read_cpu(kept("a,b\n", "a.csv"), columns=("a", "b")).nvals == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (",source,target\n0,5,6\n1,6,7\n", [(5, 6, True), (6, 7, True)]),
        ("Unnamed: 0,source,target\n0,5,6\n", [(5, 6, True)]),
        ("source,target,since\n5,6,2019\n", [(5, 6, True)]),
        (",source,target,weight\n0,5,6,3\n", [(5, 6, 3)]),
        (",who,whom\n0,5,6\n", [(5, 6, True)]),
        ("who,whom,weight\n5,6,3\n", [(5, 6, 3)]),
        ("weight,who,whom\n3,5,6\n", [(5, 6, 3)]),
        ("source,dest,weight\n5,6,3\n", [(5, 6, 3)]),
        ("5,6,3\n", [(5, 6, 3)]),
        ("source,target,distance\n5,6,3\n", [(5, 6, 3)]),
    ],
)  # fmt: skip
def test_a_column_is_a_weight_only_by_name_or_below_no_header(kept, text, expected):
    assert entries(read_cpu(kept(text, "a.csv"))) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c\n1,2,3\n", r"has 3 columns \(a, b, c\). Say which are the sources, targets"),
        ("source,weight\n1,2\n", r"has 2 columns \(source, weight\). Say which are"),
        (",source,weight\n0,1,2\n", r"has 2 columns \(source, weight\). Say which are"),
        ("dest,source\n1,2\n", r"has 2 columns \(dest, source\). Say which are"),
        ("v,w\n1,2\n", r"has 2 columns \(v, w\). Say which are"),
        (",a\n1,2\n", r"has one column \(a\), and an edge has two ends"),
        ("1,2,3,4\n", r"line 1: .* 4 fields and no names of columns. Write source,target,weight"),
        ("source,source,target\n1,2,3\n", r"two columns are called 'source'"),
    ],
)
def test_columns_that_can_be_two_things(kept, text, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(kept(text, "a.csv"))


def test_two_columns_of_a_name_that_is_given(save):
    with pytest.raises(InvalidValue, match=r"two columns are called 'x'"):
        read_cpu(save("x,x,y\n1,2,3\n", "a.csv"), columns=("x", "y"))


def test_names_of_columns_with_spaces(kept):
    A, ids = read_cpu(kept("from to weight\na b 2\n"), renumber=True)
    assert (entries(A), ids.tolist()) == ([(0, 1, 2)], ["a", "b"])
    A, ids = read_cpu(kept("u v 3\nu w 4\n"), renumber=True)  # names of vertices
    assert (A.nvals, ids.tolist()) == (2, ["u", "v", "w"])
    for text in ("to from\na b\n", "from to since\na b 2019\n", "weight from to\n1 a 2\n"):
        with pytest.raises(FileFormatError, match=r"line 1: .* names of columns in another order"):
            read_cpu(kept(text), renumber=True)


# ------------------------------------------------------------------------------ comments on top
@pytest.mark.parametrize("name", TABLES)
def test_comments_count_in_tables_too(kept, name):
    text = "# Undirected graph\n# Nodes: 5\nsource,target\n0,1\n".replace(",", TABLES[name])
    A = read_cpu(kept(text, name))
    assert (A.shape, edges(A)) == ((5, 5), [(0, 1), (1, 0)])


# ------------------------------------------------------------------------------ Fortran's numbers
@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("0 1 1.5D+01\n1 0 2\n", FP64, [(0, 1, 15.0), (1, 0, 2.0)]),
        ("0,1,1.5D+01\n1,0,2d0\n", FP64, [(0, 1, 15.0), (1, 0, 2.0)]),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1.5D+01\n2 1 .5d1\n", FP64,
         [(0, 1, 15.0), (1, 0, 5.0)]),
        ("%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 3\n", INT64, [(0, 1, 3)]),
        ("% asym weighted\n1 2 1.5D+01 7\n2 1 2 8D0 \n", FP64, [(0, 1, 15.0), (1, 0, 2.0)]),
        ("p sp 2 2\na 1 2 1.5D+01\na 2 1 2\n", FP64, [(0, 1, 15.0), (1, 0, 2.0)]),
    ],
)  # fmt: skip
def test_exponents_of_fortran(kept, text, dtype, expected):
    A = read_cpu(kept(text))
    assert (A.dtype, entries(A)) == (dtype, expected)


def test_vertices_have_no_exponents_of_fortran(kept):
    with pytest.raises(FileFormatError, match=r"line 1: '0 1d1' is not made of numbers"):
        read_cpu(kept("0 1d1\n"))
    A, ids = read_cpu(kept("1d1 2d2 3D0\n"), renumber=True)
    assert (entries(A), ids.tolist()) == ([(0, 1, 3.0)], ["1d1", "2d2"])
    assert read_cpu(kept("0 1\n")).dtype is BOOL
