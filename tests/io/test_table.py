"""All formats: what is written is read back, and what has no place is refused by name."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from readback import entries, read_cpu

from lagpu.dtypes import BOOL, FP32, FP64, INT32, INT64, UINT32, UINT64
from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io import formats as table
from lagpu.io import from_scipy, write
from lagpu.io.formats import FORMATS

LIBRARIES = {"nx": "networkx", "parquet": "pyarrow", "hdf5": "h5py"}
SUFFIXES = [(suffix, form) for form in FORMATS for suffix in form.suffixes]
EVERY = pytest.mark.parametrize(
    ("suffix", "form"),
    [
        pytest.param(
            suffix,
            form,
            id=suffix.removeprefix("."),
            marks=[pytest.mark.extra] if form.extra in ("parquet", "hdf5") else [],
        )
        for suffix, form in SUFFIXES
    ],
)
KINDS = [BOOL, INT32, INT64, UINT32, UINT64, FP32, FP64]
KEEPS_TYPES = {".npz", ".parquet", ".h5", ".hdf5"}
ALWAYS_VALUES = {".gr", ".wsg", ".wel"}  # True comes back as 1


def matrix(n, rows, cols, values=True, ncols=None):
    values = np.broadcast_to(np.asarray(values), len(rows))
    return from_scipy(
        sp.coo_array((values, (np.array(rows, int), np.array(cols, int))), shape=(n, ncols or n)),
        backend="cpu",
    )


GRAPHS = {
    "directed": matrix(5, [0, 1, 3, 3, 0], [1, 2, 3, 0, 4]),
    "undirected": matrix(4, [0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]),
    "with a loop": matrix(3, [0, 1, 2, 2], [1, 0, 2, 1]),
    "last vertices alone": matrix(6, [0, 1], [1, 0]),
    "no edges": matrix(3, [], []),
    "one vertex": matrix(1, [], []),
    "no vertices": matrix(0, [], []),
}


def kept(form, A, suffix):
    """Whether a file has a place for all of a matrix."""
    csc = table.CSC.of(A)
    try:
        form.require_fit(csc, "a")
    except InvalidValue:
        return False
    loops = any(i == j for i, j, _ in entries(A))
    if suffix in (".el", ".wel", ".e") and not A.nvals:
        return False
    return not (suffix in (".graph", ".metis") and loops)


def library(form):
    if form.extra:
        pytest.importorskip(LIBRARIES[form.extra])


@pytest.mark.each_value
@EVERY
@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_written_is_read_back(tmp_path, suffix, form, name):
    library(form)
    A, path = GRAPHS[name], tmp_path / f"a.b{suffix}"
    if not kept(form, A, suffix):
        with pytest.raises(InvalidValue, match=r"write: .* has no .*\. (Use|Remove)"):
            write(A, path)
        assert not path.exists()
        return
    write(A, path)
    B = read_cpu(path)
    assert B.shape == A.shape
    assert entries(B) == entries(A)
    assert B.dtype is BOOL or (suffix in ALWAYS_VALUES and A.nvals)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.each_value
@EVERY
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_values_of_all_types_are_read_back(tmp_path, suffix, form, kind):
    library(form)
    values = np.array([3, 1, 1, 2, 5, 5, 2, 1]).astype(kind.numpy)
    values = values + np.array(0.5, kind.numpy) if kind.is_float else values
    rows, cols = [0, 1, 3, 3, 0, 2, 1, 1], [0, 0, 1, 2, 3, 1, 2, 1]
    if suffix in (".graph", ".metis"):  # both directions, no loops
        rows, cols, values = [0, 1, 1, 3], [1, 0, 3, 1], values[[0, 0, 3, 3]]
    A, path = matrix(4, rows, cols, values), tmp_path / f"a{suffix}"
    whole = not kind.is_float
    if not kept(form, A, suffix) or (suffix in (".graph", ".metis", ".wsg") and not whole):
        with pytest.raises(InvalidValue, match=r"write: .* has "):
            write(A, path)
        return
    write(A, path)
    B = read_cpu(path)
    assert entries(B) == entries(A)
    if suffix in KEEPS_TYPES:
        assert B.dtype is kind


@EVERY
def test_any_floating_point_number_comes_back_or_is_refused(tmp_path, suffix, form):
    """Also where two numbers differ less than FP32 can say."""
    library(form)
    values = np.array([0.1, 1 / 3, 1e-7, -np.inf], np.float32)
    A, path = matrix(4, [0, 1, 2, 3], [1, 2, 3, 2], values), tmp_path / f"a{suffix}"
    if not kept(form, A, suffix) or suffix in (".graph", ".metis", ".wsg"):
        with pytest.raises(InvalidValue, match=r"write: .* has "):
            write(A, path)
    else:
        write(A, path)
        assert entries(read_cpu(path)) == entries(A)


@EVERY
def test_a_first_edge_is_no_header(tmp_path, suffix, form):
    """As ``5 3`` before three edges between smaller vertices."""
    library(form)
    ends = ([5, 0, 1, 2], [3, 4, 4, 4]), ([5, 1, 2, 3], [3, 5, 5, 5]), ([2, 5, 0, 1], [3, 3, 4, 4])
    for rows, cols in ends:
        A, path = matrix(6, rows, cols), tmp_path / f"a{suffix}"
        if "directed" in form.holds:
            write(A, path)
            assert entries(read_cpu(path)) == entries(A)


@EVERY
def test_a_stored_false_is_no_true(tmp_path, suffix, form):
    library(form)
    A, path = matrix(2, [0, 1], [1, 0], [True, False]), tmp_path / f"a{suffix}"
    if suffix in (".sg", ".col", ".graph", ".metis", ".el"):
        with pytest.raises(InvalidValue, match=r"write: .* has no place for"):
            write(A, path)
    else:
        write(A, path)
        assert entries(read_cpu(path)) == [(0, 1, 1), (1, 0, 0)]


@EVERY
def test_text_is_packed_by_a_second_suffix(tmp_path, suffix, form):
    library(form)
    A, path = GRAPHS["undirected"], tmp_path / f"a{suffix}.gz"
    if form.magic:
        with pytest.raises(InvalidValue, match=r"use \.mtx, \.npz or \.txt"):
            write(A, path)
        return
    write(A, path)
    assert gzip.decompress(path.read_bytes())
    assert entries(read_cpu(path)) == entries(A)


@EVERY
def test_a_rectangular_matrix(tmp_path, suffix, form):
    library(form)
    A, path = matrix(2, [0, 1], [2, 0], ncols=3), tmp_path / f"a{suffix}"
    if "rectangular" not in form.holds:
        with pytest.raises(InvalidValue, match=r"a matrix of 2 x 3, which is not square"):
            write(A, path)
    else:
        write(A, path)
        assert read_cpu(path).shape == (2, 3)


def test_a_format_that_is_given_decides(save):
    text = "3 2\n2\n1 3\n2\n"
    with pytest.raises(
        FileFormatError, match=r"line 2: .* If it is a METIS graph, name it \.graph"
    ):
        read_cpu(save(text))
    expected = [(0, 1, True), (1, 0, True), (1, 2, True), (2, 1, True)]
    assert entries(read_cpu(save(text), format=".graph")) == expected
    assert entries(read_cpu(save(text, "a.metis"))) == expected
    with pytest.raises(InvalidValue, match=r"format='\.xyz' is none of \.mtx, "):
        read_cpu(save(text), format=".xyz")
    with pytest.raises(FileFormatError, match=r"is no NumPy archive"):
        read_cpu(save(text), format=".npz")


def test_options_without_effect_are_refused(save):
    path = save("%%MatrixMarket matrix coordinate pattern general\n1 1 0\n")
    with pytest.raises(InvalidValue, match=r"Matrix Market numbers its vertices without gaps"):
        read_cpu(path, renumber=True)
    with pytest.raises(InvalidValue, match=r"Matrix Market has no columns with names"):
        read_cpu(path, columns=("a", "b"))
