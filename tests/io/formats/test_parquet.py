"""Parquet: columns by name, texts in dictionaries, and what is missing."""

import pytest
from readback import entries, read_cpu

from lagpu.dtypes import BOOL, FP32, INT64
from lagpu.errors import FileFormatError, InvalidValue

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.extra


@pytest.fixture
def table(tmp_path):
    def save(metadata=None, **columns):
        found = pa.table(columns)
        pq.write_table(found.replace_schema_metadata(metadata), tmp_path / "a.parquet")
        return tmp_path / "a.parquet"

    return save


def test_columns(table):
    path = table(
        when=[9, 9],
        target=[1, 2],
        source=[0, 1],
        weight=pa.array([1.5, 2.5], pa.float32()),
        cost=[4, 6],
    )
    A = read_cpu(path)
    assert (A.dtype, entries(A)) == (FP32, [(0, 1, 1.5), (1, 2, 2.5)])
    B = read_cpu(path, columns=("target", "source", "cost"))
    assert (B.dtype, entries(B)) == (INT64, [(1, 0, 4), (2, 1, 6)])
    assert read_cpu(path, columns=("source", "target")).dtype is BOOL
    with pytest.raises(InvalidValue, match=r"has no column 'x'"):
        read_cpu(path, columns=("source", "x"))


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
def test_texts(table, kind):
    u, v = pa.array(["bob", "alice"] * 50), pa.array(["alice", "carol"] * 50)
    u, v = (c.dictionary_encode() if kind == "dictionary" else c.cast(kind) for c in (u, v))
    path = table(source=u, target=v)
    A, ids = read_cpu(path, renumber=True)
    assert ids.tolist() == ["alice", "bob", "carol"]
    assert entries(A) == [(0, 2, True), (1, 0, True)]
    with pytest.raises(FileFormatError, match=r"are not of whole numbers. If they are names"):
        read_cpu(path)


def test_numbers_with_gaps(table):
    A, ids = read_cpu(table(source=[10**9, 5], target=[5, 7]), renumber=True)
    assert (A.nrows, ids.tolist()) == (3, [5, 7, 10**9])
    A, ids = read_cpu(
        table(source=pa.array([2**63 + 5], pa.uint64()), target=pa.array([1], pa.uint64())),
        renumber=True,
    )
    assert ids.tolist() == [1, 2**63 + 5]
    mixed = table(source=pa.array([2**63 + 5], pa.uint64()), target=[1])
    assert read_cpu(mixed, renumber=True)[1].tolist() == [1, 2**63 + 5]
    with pytest.raises(FileFormatError, match=r"vertex 9223372036854775813 is not .* below 2"):
        read_cpu(mixed)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"source": [0, None], "target": [1, 2]}, "the column 'source' has 1 missing values"),
        ({"source": [0], "target": [1], "weight": ["x"]}, "'weight' has the type string"),
        ({"source": [-1], "target": [1]}, "vertex -1 is not a whole number"),
        ({"source": [0.5], "target": [1.5]}, "are not of whole numbers"),
        ({"source": [0]}, "has one column"),
        ({"a": [0], "b": [0], "c": [0], "d": [0]}, "has 4 columns"),
    ],
)
def test_tables_that_are_no_graph(table, columns, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(table(**columns))


def test_damaged(table, save):
    path = table(source=[0, 1], target=[1, 2])
    data = path.read_bytes()
    for damaged in (data[:40], data[:-9] + bytes(9), b"PAR1"):
        with pytest.raises(FileFormatError, match=r"is no table of Parquet"):
            read_cpu(save(damaged, "b.txt"))
    with pytest.raises(FileFormatError, match=r"is not a number of vertices"):
        read_cpu(table({b"lagpu_vertices": b"-4"}, source=[0], target=[1]))


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint32(), pa.uint64()])
def test_ends_without_a_sign(table, kind):
    """Which have no -1, the largest vertex of none."""
    A = read_cpu(table(source=pa.array([0, 1], kind), target=pa.array([3, 2], kind)))
    assert (A.nrows, entries(A)) == (4, [(0, 3, True), (1, 2, True)])
