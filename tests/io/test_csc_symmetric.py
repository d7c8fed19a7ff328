"""A graph that is undirected by the way it was made says so, and never after a write."""

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from lagpu import FP32, FP64, INT32, Matrix, binary, generators, io, semiring
from lagpu.io import csc

SPECS = ["kron:5", "urand:5", "road:6", "grid:4x5", "delaunay:5", "mycielskian:4"]
SPECS += ["path:9", "cycle:9", "star:9", "complete:7"]
BANNER = "%%MatrixMarket matrix coordinate {} symmetric\n3 3 {}\n"
FILES = {
    "pattern.mtx": BANNER.format("pattern", 3) + "1 1\n2 1\n3 2\n",
    "real.mtx": BANNER.format("real", 2) + "2 1 1.5\n3 2 2.5\n",
    "integer.mtx": BANNER.format("integer", 2) + "2 1 1\n3 2 4\n",
    "metis.graph": "3 2\n2\n1 3\n2\n",
    "weights.graph": "3 2 001\n2 5\n1 5 3 7\n2 7\n",
    "graph.graphml": "".join(nx.generate_graphml(nx.path_graph(3))),
    "lengths.col": "p edge 3 2\ne 1 2\ne 2 3\n",
}


def is_symmetric(A):
    rows, cols, values = A.to_coo()
    there = dict(zip(zip(rows.tolist(), cols.tolist(), strict=True), values.tolist(), strict=True))
    return all(there.get((j, i)) == x for (i, j), x in there.items())


def known(A):
    return A.data.symmetric


@pytest.fixture
def store(backend):
    if backend.name == "grid":
        pytest.skip("has its own tests")
    return backend


@pytest.mark.parametrize("spec", SPECS)
def test_generated_graphs(spec, store):
    A = generators.from_spec(spec, backend=store)
    assert known(A)
    assert is_symmetric(A)


@pytest.mark.parametrize("name", FILES)
def test_files(name, store, save):
    A = io.read(save(FILES[name], name), backend=store)
    assert known(A)
    assert A.nvals
    assert is_symmetric(A)


def test_lists_of_edges(store, save):
    path = save("0 1 2.5\n1 2 1\n2 2 7\n", "edges.txt")
    assert not known(io.read(path, backend=store))
    both = io.read(path, directed=False, backend=store)
    assert known(both)
    assert is_symmetric(both)
    plain = io.read(save("0 1\n1 2\n", "plain.txt"), directed=False, backend=store)
    assert known(plain)
    io.write(plain, path.with_suffix(".sg"))
    assert known(io.read(path.with_suffix(".sg"), backend=store))


@pytest.mark.parametrize("make", [nx.Graph, nx.MultiGraph])
def test_networkx(make, store):
    G = make([(0, 1, {"w": 1.5}), (0, 1, {"w": 0.1}), (1, 2, {"w": 2.5}), (1, 1, {"w": 1.0})])
    for weight in (None, "w"):
        A = io.from_networkx(G, weight=weight, backend=store)
        assert known(A)
        assert is_symmetric(A)
    assert not known(io.from_networkx(nx.DiGraph([(0, 1)]), backend=store))
    half = nx.subgraph_view(nx.path_graph(4), filter_edge=lambda u, v: u < v)  # one way alone
    A = io.from_networkx(half, backend=store)
    assert not known(A)
    assert not is_symmetric(A)


@pytest.mark.extra
def test_igraph(store):
    igraph = pytest.importorskip("igraph")
    assert known(io.from_igraph(igraph.Graph.Ring(4), backend=store))
    assert not known(io.from_igraph(igraph.Graph.Ring(4, directed=True), backend=store))


def test_sums_of_what_a_file_gives_twice_say_nothing(store, save):
    twice = BANNER.format("real", 3) + "2 1 1.5\n2 1 0.1\n3 2 2.5\n"
    A = io.read(save(twice, "twice.mtx"), backend=store)
    assert known(A) is None
    assert A.is_symmetric
    merged = BANNER.format("pattern", 3) + "2 1\n2 1\n3 2\n"
    assert known(io.read(save(merged, "merged.mtx"), backend=store))


@pytest.mark.parametrize("values", ["nan nan", "0.0 -0.0", "-0.0 1"])
def test_what_differs_from_itself_or_in_its_sign_says_nothing(values, store, save):
    one, other = values.split()
    text = f"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 {one}\n2 1 {other}\n"
    path = save(text, "zeros.mtx")
    if one == other or float(one) != float(other):
        assert not known(io.read(path, backend=store))
    else:
        assert not known(io.read(path, directed=False, backend=store))
    half = f"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 {one}\n"
    assert not known(io.read(save(half, "half.mtx"), directed=False, backend=store))


def test_copies_know_it_too(store):
    A = generators.path(5, backend=store)
    for copy in (A.dup(), A.dup(FP32), A.to("cpu"), A.to("sim")):
        assert known(copy)
        assert is_symmetric(copy)
    lopsided = Matrix.from_coo([0, 1], [1, 0], [1.25, 1.75], backend=store)
    assert not lopsided.is_symmetric
    assert lopsided.dup(INT32).is_symmetric  # cast, both are 1


WRITES = {
    "an entry": lambda A, B: A.__setitem__((0, 3), 2),
    "an entry deleted": lambda A, B: A.__delitem__((0, 1)),
    "a row": lambda A, B: A[0, :].__lshift__(B[1, :]),
    "a product": lambda A, B: A << semiring.plus_times(A @ B),
    "an accumulated product": lambda A, B: A(binary.plus) << semiring.plus_times(A @ B),
    "under a mask": lambda A, B: A(B.S) << A,
    "assigned": lambda A, B: A << B,
    "a part": lambda A, B: A[[0, 1], [1, 2]].__lshift__(3),
    "an operator of Python": lambda A, B: A.__iadd__(B),
    "cleared": lambda A, B: A.clear(),
    "resized": lambda A, B: A.resize(4, 5),
    "a diagonal": lambda A, B: A.setdiag(7, k=1),
    "selected": lambda A, B: A << A.select("triu"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_clears_it(write, store):
    A = generators.path(4, backend=store).dup(FP64)
    B = Matrix.from_coo([0, 1, 2], [1, 3, 2], [2.0, 3.0, 4.0], nrows=4, ncols=4, backend=store)
    assert known(A)
    write(A, B)
    assert known(A) is not True
    assert A.is_symmetric is (A.nrows == A.ncols and is_symmetric(A))


def test_values_put_in_place_clear_it(store):
    A = generators.path(3, backend=store).dup(FP64)
    store.set_values(A.data, np.arange(A.nvals, dtype=float))
    assert not known(A)
    assert not A.is_symmetric


def test_what_a_user_gives_is_looked_at(store):
    S = sparse.csc_array(np.array([[0, 1.0], [1.0, 0]]))
    for A in (io.from_scipy(S, backend=store), Matrix.from_coo([0, 1], [1, 0], backend=store)):
        assert known(A) is None
        assert A.is_symmetric


def test_a_number_that_is_none_has_no_equal_one_across():
    one = np.array([0, 1], np.int32)
    values = np.array([2.0, np.nan])
    assert csc.asymmetry(csc.CSC(2, 2, np.array([0, 1, 2]), one, values)) == (1, 1)
    assert csc.asymmetry(csc.CSC(2, 2, np.array([0, 1, 2]), one, values[[0, 0]])) is None


@pytest.mark.parametrize(("row", "col"), [(0, 1), (1, 0)])
def test_one_entry_is_united_with_one_elsewhere(row, col):
    own = csc.from_entries(np.array([row]), np.array([col]), np.array([5]), 2, 2)
    back = csc.from_entries(np.array([col]), np.array([row]), np.array([5]), 2, 2)
    merged, conflict = csc.united(own, back)
    assert (merged.row_idx.tolist(), merged.col_ptr.tolist(), conflict) == ([1, 0], [0, 1, 2], None)
    other = csc.from_entries(np.array([row]), np.array([col]), np.array([6]), 2, 2)
    assert csc.united(own, other)[1] == (row, col, 5, 6)


@pytest.mark.parametrize("op", [None, binary.first, binary.max])
@pytest.mark.parametrize("kind", [None, bool, np.int8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 25, 300])
def test_entries_that_do_not_fit_keys_are_sorted_alike(op, kind, count):
    drawn = np.random.default_rng(count)
    rows, cols = drawn.integers(0, 9, count), drawn.integers(1, 11, count)  # empty columns, too
    values = None if kind is None else drawn.integers(0, 90, count).astype(kind)
    if kind is bool and op is not None:
        op = binary.lor
    few, sparse_ones = (csc.from_entries(rows, cols, values, n, 12, op) for n in (9, 2**61))
    assert few.iso == sparse_ones.iso
    for name in ("col_ptr", "row_idx", "values"):
        x, y = getattr(few, name), getattr(sparse_ones, name)
        assert np.array_equal(x, y)
        assert x.dtype == y.dtype or name == "row_idx"
    if values is not None and op is None and kind is not bool and count:
        dense = np.zeros((9, 12), kind)
        np.add.at(dense, (rows, cols), values)
        assert np.array_equal(dense[few.row_idx, few.columns()], few.dense_values())
