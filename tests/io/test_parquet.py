"""Parquet: columns by name, texts in dictionaries, and what is missing."""

import datetime
import decimal

import numpy as np
import pytest
from readback import entries, read_cpu

from lagpu.dtypes import BOOL, FP32, INT64
from lagpu.errors import FileFormatError, InvalidValue, LagpuError

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


# ------------------------------------------------------------------- every type in every role
_DAY = datetime.datetime(2020, 1, 1, 1)
# Python's values, and the types of Arrow that have them; each is there twice in a column.
KINDS = [
    (1, [pa.int8(), pa.int16(), pa.int32(), pa.int64()], "number"),
    (1, [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()], "number"),
    (np.float16(1.5), [pa.float16(), pa.float32(), pa.float64()], "real"),
    (True, [pa.bool_()], "real"),
    ("a", [pa.string(), pa.large_string(), pa.string_view()], "text"),
    (b"a", [pa.binary(), pa.large_binary()], "text"),
    (b"a", [pa.binary_view(), pa.binary(1)], "other"),
    (None, [pa.null()], "other"),
    (None, [pa.int64(), pa.float64(), pa.string(), pa.bool_()], "missing"),
    (_DAY.date(), [pa.date32(), pa.date64()], "other"),
    (_DAY.time(), [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")], "other"),
    (_DAY, [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")], "other"),
    (_DAY, [pa.timestamp("us", "UTC")], "other"),
    (_DAY - _DAY, [pa.duration(unit) for unit in ("s", "ms", "us", "ns")], "other"),
    (decimal.Decimal(1), [pa.decimal128(20, 0), pa.decimal256(50, 1)], "other"),
    ([1], [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 1)], "other"),
    ({"a": 1}, [pa.struct([("a", pa.int64())])], "other"),
    ({"target": 1}, [pa.struct([("target", pa.int64())])], "other"),
    ({"a\nb": 1}, [pa.struct([("a\nb", pa.int64())])], "other"),
    ([("a", 1)], [pa.map_(pa.string(), pa.int64())], "other"),
]
EVERY = [(value, kind, family) for value, kinds, family in KINDS for kind in kinds]
IN_DICTIONARIES = [1, np.float16(1.5), 1.5, True, "a", b"a", _DAY, decimal.Decimal(1)]


def columns_of_every_kind():
    for value, kind, family in EVERY:
        yield f"{kind} {family}", pa.array([value] * 2, kind), family
    for value, family in zip(
        IN_DICTIONARIES, ["number", *["real"] * 3, "text", "text", "other", "other"], strict=True
    ):
        # Not dictionary_encode, which not every pyarrow has for every type.
        column = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array([value]))
        yield str(column.type), column, family
    ids = pa.array([b"a" * 16] * 2, pa.binary(16))
    yield "uuid", pa.ExtensionArray.from_storage(pa.uuid(), ids), "other"


@pytest.mark.parametrize("renumber", [False, True])
@pytest.mark.parametrize("role", ["source", "target", "weight"])
@pytest.mark.parametrize(("what", "column", "family"), [*columns_of_every_kind()])
def test_every_type_in_every_role(table, what, column, family, role, renumber):
    """It is read, or refused in one line that names the column: never an error of pyarrow."""
    path = table(**{"source": [0, 1], "target": [1, 2], "weight": [5, 6]} | {role: column})
    read = {"number"} | ({"real"} if role == "weight" else {"real", "text"} if renumber else set())
    if family in read:
        found = read_cpu(path, renumber=renumber)
        assert (found[0] if renumber else found).nvals == 2
        return
    with pytest.raises(LagpuError, match=rf"^read: a\.parquet: the column.* '{role}'") as caught:
        read_cpu(path, renumber=renumber)
    assert type(caught.value) is FileFormatError
    assert len(str(caught.value).splitlines()) == 1


def test_weights_of_half_precision(table):
    weights = pa.array(np.array([1.5, np.inf], np.float16))
    A = read_cpu(table(source=[0, 1], target=[1, 2], weight=weights))
    assert (A.dtype, entries(A)) == (FP32, [(0, 1, 1.5), (1, 2, np.inf)])


@pytest.mark.parametrize("names", [("source", "target", "source"), ("target", "source", "source")])
def test_two_columns_of_one_name(tmp_path, names):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([[0], [1], [2]], names), path)
    for columns in (None, ("source", "target")):
        with pytest.raises(
            (FileFormatError, InvalidValue), match="two columns are called 'source'"
        ):
            read_cpu(path, columns=columns)
    pq.write_table(pa.table([[0], [1], [2], [3]], ["source", "target", "x", "x"]), path)
    assert entries(read_cpu(path)) == [(0, 1, True)]  # they are not needed
