"""Tables with commas, tabs and semicolons: headers, columns, quotes, and rows at fault."""

import pytest
from readback import entries, read_cpu

from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.errors import FileFormatError, InvalidValue


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("0,1\n1,2\n", BOOL, [(0, 1, 1), (1, 2, 1)]),
        ("0;1;5\n1;2;3\n", INT64, [(0, 1, 5), (1, 2, 3)]),
        ("# c\n\n0, 1\n1, 2\n", BOOL, [(0, 1, 1), (1, 2, 1)]),
        ("0,1,2.5\n0,1,1\n", FP64, [(0, 1, 3.5)]),
        ("source,target\r\n0,1\r\n", BOOL, [(0, 1, 1)]),
        ("weight,to,from\n2,0,1\n3,1,0\n", INT64, [(0, 1, 3), (1, 0, 2)]),
        ("src,dst,time,weight,note\n0,1,9,4,x\n", INT64, [(0, 1, 4)]),
        ("src,dst,time,note\n0,1,9,x\n", BOOL, [(0, 1, 1)]),
        ("src,dst,weight,time\n0,1,4,1.5\n", INT64, [(0, 1, 4)]),
        ("src,dst,weight,time\n0,1,4,1.5\n1,0,.5,2\n", FP64, [(0, 1, 4.0), (1, 0, 0.5)]),
        ("a,b\n0,1\n", BOOL, [(0, 1, 1)]),
        ('"0","1"\n', BOOL, [(0, 1, 1)]),
        ("source\ttarget\tweight\n0\t1\t2\n", INT64, [(0, 1, 2)]),
        ("source,target\n", BOOL, []),
        ('source,target,"two\nlines"\n0,1,2\n', BOOL, [(0, 1, 1)]),
        ("source,target\n\n0,1\n\n", BOOL, [(0, 1, 1)]),
        ("0,1,9223372036854775807\n1,0,1\n", INT64, [(0, 1, 2**63 - 1), (1, 0, 1)]),
    ],
)
def test_tables(save, text, dtype, expected):
    A = read_cpu(save(text))
    assert entries(A) == expected
    assert A.dtype is dtype or not expected


def test_columns_that_are_given(save):
    path = save("when,who,whom,how much\n9,0,1,4\n9,1,2,6\n")
    assert entries(read_cpu(path, columns=("who", "whom"))) == [(0, 1, 1), (1, 2, 1)]
    assert entries(read_cpu(path, columns=["whom", "who", "how much"])) == [(1, 0, 4), (2, 1, 6)]
    with pytest.raises(FileFormatError, match=r"has 4 columns \(when, who.* Say which are the"):
        read_cpu(path)
    with pytest.raises(InvalidValue, match=r"has no column 'x'. It has when, who, whom"):
        read_cpu(path, columns=("who", "x"))
    with pytest.raises(InvalidValue, match=r"columns 'who' are not two or three names"):
        read_cpu(path, columns="who")
    with pytest.raises(InvalidValue, match=r"has no header, so columns have no names"):
        read_cpu(save("0,1\n"), columns=("a", "b"), header=False)


def test_names_of_vertices(save):
    text = 'source,target,weight\n"Smith, A",Berg,2\nBerg,"say ""hi""",3\n'
    A, ids = read_cpu(save(text), renumber=True)
    assert ids.tolist() == ["Berg", "Smith, A", 'say "hi"']
    assert entries(A) == [(0, 2, 3), (1, 0, 2)]
    A, ids = read_cpu(save("1000000000,5\n5,7\n"), renumber=True)
    assert (A.nrows, ids.tolist()) == (3, [5, 7, 10**9])
    assert read_cpu(save("a,b\n#tag,c\n"), renumber=True, header=True)[1].tolist() == ["#tag", "c"]


def test_a_first_line_that_may_be_an_edge(save):
    path = save("ann,bob\nbob,eve\n")
    with pytest.raises(
        FileFormatError, match=r"line 1: 'ann,bob' may be names of columns or an ed"
    ):
        read_cpu(path, renumber=True)
    assert read_cpu(path, renumber=True, header=False)[0].nvals == 2
    assert read_cpu(path, renumber=True, header=True)[0].nvals == 1
    assert read_cpu(save("id,friend\n3,4\n"), renumber=True)[1].tolist() == [3, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1\n1\n", "line 2: '1' has 1 fields, not 2"),
        ("0,1\n1,2,3\n", "line 2: '1,2,3' has 3 fields, not 2"),
        ("0,1\n,0 1\n", "line 2: ',0 1' has an empty end"),
        ("0,1\n1,\n", "line 2: '1,' has an empty end"),
        ("a,b\n\n0,1\nann,1\n", "line 4: 'ann,1' has the vertex 'ann', .* If they are names, give"),
        ("0,1\n-1,1\n", "line 2: '-1,1' has the vertex '-1'"),
        ("0,1\n1.5,1\n", r"line 2: '1\.5,1' has the vertex '1\.5'"),
        ("0,1,1\n0,1,x\n", "line 2: '0,1,x' has the weight 'x', which is no number of 64 bits"),
        ("0,1,1\n0,1,99999999999999999999\n", "line 2: .* has the weight '9999"),
        ("0,1\n0,9007199254740992\n", "line 2: .* below 2"),
        ("x,\n", "line 1: 'x,' is the only line, and no edge"),
        ('0,1\n1,"' + "2" * 140000, "line 2: a field is longer than 131,072 characters. Close"),
        ("0,1\r1,2\r", "has a carriage return alone. End its lines by a line feed"),
        (b"a,b\n0,\xff\n", "is not UTF-8"),
        ('0,1\n"0,1\n', "has 1 fields, not 2|unexpected end"),
    ],
)
def test_rows_at_fault(save, text, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(text))


def test_a_fault_below_many_rows_has_its_line(save, monkeypatch):
    monkeypatch.setattr("lagpu.io.edge_list._ROWS", 7)
    rows = [f"{k},{k + 1}" for k in range(40)]
    assert read_cpu(save("\n".join(['"0",1', *rows]))).nvals == 40
    with pytest.raises(FileFormatError, match=r"line 31: 'x,1' has the vertex 'x'"):
        read_cpu(save("\n".join([*rows[:30], "x,1", *rows])))


def test_tables_in_several_pieces(save, monkeypatch):
    monkeypatch.setattr("lagpu.io.reading.PIECE", 12)
    rows = [f"{k},{k + 1},{k}.5" for k in range(40)]
    assert entries(read_cpu(save("\n".join(rows))))[-1] == (39, 40, 39.5)
