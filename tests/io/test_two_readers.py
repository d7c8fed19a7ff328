"""Large texts: pyarrow's reader, where it is installed, and NumPy's give the same graph and errors.

Every text counts as large here, and the pieces and blocks of both are short.
"""

import io
import math
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from readback import entries

from lagpu.errors import LagpuError
from lagpu.io import edge_list, read, reading

pytestmark = pytest.mark.extra
pytest.importorskip("pyarrow")

_ENDS = ["0", "1", "2", "3", "7", "07", "12", "-0", "2147483648", "9007199254740991"]
_WEIGHTS = [*_ENDS[:5], "-4", "1.5", ".5", "2.", "-1e-3", "1e+2", "1e400", "nan", "-inf", "5.0"]
_NAMES = ["ann", "bob", "é", "3", "x", "n(1)", "'", "Ann"]
_ODD = [
    "", " ", '"', '"1"', '"a,b"', '"a""b"', '"c" ', ' "d"', '"e\n2"', 'f"g', "+1", "1.0", "0x1F",
    "nan(1)", "infinity", "1_0", "1.5D+01", "-1", "9007199254740992", "9223372036854775807",
    "9223372036854775808", "18446744073709551616", "99999999999999999999", "1e19", "true", "NA",
    "null", "2019-01-01", "12:30", "\xa01", "\t1", "1 ", "\ufeff1", "\x0b1", "#1", "%", "-", "1e",
]  # fmt: skip
_LINES = ["", " ", "# c", "% 1,2", "#1,2", ",", "0", "0,1,2,3", "\r", "source,target,weight"]
_TOPS = ["", "\ufeff", "# c\n", "# Nodes: 9\n", "# Undirected graph\n\n", "\ufeff# é\n", "% sym\n"]


@st.composite
def cases(draw):
    """Return a suffix, a text that is mostly a table of edges, and options of `read`."""

    def maybe(usual, *others):
        return draw(st.sampled_from([usual] * 5 * len(others) + [*others]))

    suffix, mark = draw(
        st.sampled_from([(".csv", ","), (".csv", ";"), (".tsv", "\t"), (".txt", " ")])
    )
    named = draw(st.booleans())
    ends = st.sampled_from(_NAMES if named else draw(st.sampled_from([_ENDS[:-2], _ENDS])))
    weights = st.sampled_from(draw(st.sampled_from([_WEIGHTS, _WEIGHTS[:6], _WEIGHTS[5:]])))
    more = st.sampled_from(draw(st.sampled_from([_WEIGHTS, ["note", "é", '"a,b"']])))
    width = draw(st.integers(2, 3 if suffix == ".txt" else 4))
    rows = draw(st.lists(st.tuples(*[ends, ends, weights, more][:width]), min_size=1, max_size=12))
    for _ in range(maybe(0, 1, 2)):
        k, place = draw(st.integers(0, len(rows) - 1)), draw(st.integers(0, width - 1))
        rows[k] = (*rows[k][:place], draw(st.sampled_from(_ODD)), *rows[k][place + 1 :])
    lines = [mark.join(row) for row in rows]
    if odd := maybe(None, *_LINES):
        lines.insert(draw(st.integers(0, len(lines))), odd)
    header = None if suffix == ".txt" else maybe("source", None, "a", "weight")
    if header:
        last = "source" if header == "weight" else "weight"
        lines.insert(0, mark.join([header, "target", last, "time"][:width]))
    end = maybe("\n", "\r\n")
    text = maybe("", *_TOPS) + end.join(lines) + maybe(end, "")
    options = {"renumber": maybe(named, not named), "header": maybe(None, True, False)}
    if suffix != ".txt":
        options["columns"] = maybe(None, ("source", "target"), ("target", "source", "time"))
    return suffix, text, options


def outcome(text, suffix, options):
    """Return all of the graph, or the error."""
    file = io.BytesIO(text.encode("utf-8", "surrogateescape"))
    file.name = f"graph{suffix}"
    try:
        found = read(file, backend="cpu", **options)
    except LagpuError as error:
        return type(error), re.sub(r"[0-9.,]+ GB free", "", str(error))
    A, ids = found if options.get("renumber") else (found, np.empty(0))
    values = [(i, j, "nan" if math.isnan(x) else float(x)) for i, j, x in entries(A)]
    return A.shape, A.dtype, sorted(map(repr, values)), ids.dtype, ids.tolist()


@given(case=cases(), sizes=st.sampled_from([(64, 64), (64, 1 << 24), (1 << 17, 1 << 24)]))
def test_both_readers_say_the_same(case, sizes):
    (suffix, text, options), (line, piece) = case, sizes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_LINE", line)
        patch.setattr(reading, "PIECE", piece)
        patch.setattr(reading, "_SHARE", piece)
        patch.setattr(reading, "LARGE", math.inf)
        expected = outcome(text, suffix, options)
        patch.setattr(reading, "LARGE", 0)
        assert outcome(text, suffix, options) == expected


@st.composite
def coordinates(draw):
    """Return a text that is mostly a Matrix Market file."""
    field = draw(st.sampled_from(["real", "real", "integer", "pattern", "unsigned-integer"]))
    ends = st.sampled_from(["1", "2", "3", "03"])
    values = st.sampled_from(draw(st.sampled_from([_WEIGHTS, _WEIGHTS[6:], ["1", "-0"]])))
    rows = draw(st.lists(st.tuples(ends, ends, values), max_size=8))
    if draw(st.booleans()) and rows:
        k, place = draw(st.integers(0, len(rows) - 1)), draw(st.integers(0, 2))
        word = draw(st.sampled_from([*_ODD, "-0", "-0.0", "0", "4", "1e-999"]))
        rows[k] = (*rows[k][:place], word, *rows[k][place + 1 :])
    width = 3 - (field == "pattern" and draw(st.integers(0, 4)) > 0)
    lines = [" ".join(row[:width]) for row in rows]
    if draw(st.integers(0, 4)) == 0:
        odd = draw(st.sampled_from([*_LINES, " 1 2 3", "1  2 3", "1 2 3 ", "1\t2\t3"]))
        lines.insert(draw(st.integers(0, len(lines))), odd)
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = end.join(lines) + draw(st.sampled_from([end, end, ""]))
    return f"%%MatrixMarket matrix coordinate {field} general\n3 3 {len(rows)}\n{text}"


@given(text=coordinates(), size=st.sampled_from([64, 1 << 24]))
def test_both_readers_say_the_same_of_coordinates(text, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PIECE", size)
        patch.setattr(reading, "_SHARE", size)
        patch.setattr(reading, "LARGE", math.inf)
        expected = outcome(text, ".mtx", {})
        patch.setattr(reading, "LARGE", 0)
        assert outcome(text, ".mtx", {}) == expected


@pytest.mark.parametrize(
    ("text", "suffix", "options"),
    [
        ("0,1\n1,2\n", ".csv", {}),
        ('source;é;target;weight\n3000000000;é;1;5\n7;"a\nb";7;.5\n', ".csv", {"renumber": True}),
        ("source\ttarget\nann\tbob\nbob\tx\n", ".tsv", {"renumber": True}),
        ("# c\n0 1 2.5\r\n1 2 3\r\n", ".txt", {}),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 .5\n2 1 7\n", ".mtx", {}),
        ("%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 5\n2 1 7\n", ".mtx", {}),
        ("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 1\n", ".mtx", {}),
    ],
)  # fmt: skip
def test_a_large_text_is_read_by_pyarrow_where_it_is_installed(monkeypatch, text, suffix, options):
    expected = outcome(text, suffix, options)
    monkeypatch.setattr(reading, "LARGE", 0)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow.csv", None)
        assert outcome(text, suffix, options) == expected
    monkeypatch.delattr(np, "fromstring")
    monkeypatch.delattr(np, "loadtxt")
    monkeypatch.delattr(scipy.io, "mmread")
    monkeypatch.setattr(edge_list, "_of_words", None)
    assert outcome(text, suffix, options) == expected


@pytest.mark.parametrize("loaded", [True, False])
def test_a_small_text_is_read_by_pyarrow_where_it_is_loaded(monkeypatch, loaded):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", pyarrow)
    if not loaded:
        monkeypatch.delitem(sys.modules, "pyarrow")
    seen, columns = [], reading._columns_of
    monkeypatch.setattr(reading, "_columns_of", lambda *x: seen.append(1) or columns(*x))
    for lines in (1_000, 20_000):  # 8 and 160 kB
        outcome("1 2 0.5\n" * lines, ".txt", {})
        assert bool(seen) == (loaded and lines > 1_000)


@pytest.mark.ci
def test_no_reader_loads_pandas_in_which_an_interrupt_would_be_lost(tmp_path):
    pytest.importorskip("pandas")
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    columns = {"source": [0, 1], "target": [1, 2], "weight": [True, False]}
    pq.write_table(pa.table(columns), tmp_path / "graph.parquet")
    (tmp_path / "graph.txt").write_text("0 1 2.5\n1 2 3\n")
    (tmp_path / "graph.csv").write_text("source,target,weight\nann,bob,2.5\nbob,eve,3\n")
    program = (
        "import sys; from lagpu import io; from lagpu.io import reading; reading.LARGE = 0\n"
        "print(*(io.read(f'graph.{x}', renumber=True)[0].nvals for x in ('txt', 'csv', 'parquet')))"
        "\nprint('pyarrow' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["2", "2", "2", "True", "False"]
