"""Graphs from lists of edges with any ids, from tables, and from and to igraph."""

import numpy as np
import pytest
from readback import entries

from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.io import from_edgelist, from_igraph, from_pandas_edgelist, to_igraph


def found(pair):
    A, ids = pair
    assert A.shape == (len(ids), len(ids))
    return [(ids[i], ids[j], x) for i, j, x in entries(A)]


def cpu(edges, values=None, **options):
    return from_edgelist(edges, values, backend="cpu", **options)


def test_edges_of_any_kind():
    assert found(cpu([("b", "a"), ("a", "c")])) == [("a", "c", True), ("b", "a", True)]
    assert found(cpu([(10**18, 5), (5, 7)])) == [(5, 7, True), (10**18, 5, True)]
    assert found(cpu({("x", (1, 2))})) == [("x", (1, 2), True)]
    assert found(cpu(np.array([[9, 3], [3, 4]]))) == [(3, 4, True), (9, 3, True)]
    assert found(cpu([("b", "a", 2), ("b", "a", 3)])) == [("b", "a", 5)]
    assert found(cpu([("b", "a", 2), ("b", "a", 3)], dup_op="min")) == [("b", "a", 2)]
    assert found(cpu([("b", "a")], [0.5])) == [("b", "a", 0.5)]
    assert found(cpu([("b", "a")], 4)) == [("b", "a", 4)]
    assert found(cpu(iter([]))) == []
    A, ids = cpu(np.array([[0.5, 1.5, 3.0]]))
    assert (A.dtype, ids.tolist()) == (FP64, [0.5, 1.5])


def test_undirected_edges_may_be_given_in_either_direction():
    both = [("a", "b", 3), ("b", "a", 1), ("c", "c", 9)]
    assert found(cpu(both, directed=False)) == [("a", "b", 4), ("b", "a", 4), ("c", "c", 9)]
    assert found(cpu(both, directed=False, dup_op="min"))[0] == ("a", "b", 1)


@pytest.mark.parametrize(
    ("edges", "values", "error", "message"),
    [
        ([(0, 1), (1,)], None, DimensionMismatch, r"the edge \(1,\) has 1 items"),
        ([(0, 1, 2, 3)], None, DimensionMismatch, "has 4 items, not 2 or 3"),
        (np.zeros((2, 4)), None, DimensionMismatch, r"edges \(2, 4\), not \(k, 2\)"),
        ([(0, 1)], [1, 2], DimensionMismatch, r"values \(2,\) != \(1,\) edges"),
        ([(0, 1, 2)], [1], DimensionMismatch, "edges with weights, and values too"),
        ([(0, [1])], None, DomainMismatch, "an id is not hashable"),
        ([("a", None)], None, DomainMismatch, "an id is None, which names no vertex"),
        ([("a", float("nan"))], None, DomainMismatch, "an id is nan"),
        (np.array([[0, np.nan]]), None, DomainMismatch, "an id is NaN"),
        ([(0, 1)], ["x"], DomainMismatch, "a weight is no number"),
        ([(0, 1), (1, 2)], [1.0, None], InvalidValue, "the weight of edge 1 is missing"),
    ],
)
def test_edges_that_are_none(edges, values, error, message):
    with pytest.raises(error, match=rf"from_edgelist: .*{message}"):
        cpu(edges, values)


def test_tables_of_any_library():
    table = {"source": np.array([30, 20]), "target": np.array([20, 10]), "w": [1, 2]}
    assert found(from_pandas_edgelist(table, backend="cpu")) == [(20, 10, True), (30, 20, True)]
    A, ids = from_pandas_edgelist(table, "target", "source", "w", backend="cpu")
    assert (A.dtype, ids.tolist()) == (INT64, [10, 20, 30])
    with pytest.raises(InvalidValue, match=r"there is no column 'x'. It has source, target, w"):
        from_pandas_edgelist(table, "x", backend="cpu")


@pytest.mark.extra
def test_tables_of_pandas():
    pd = pytest.importorskip("pandas")
    df = pd.DataFrame({"who": ["bob", "al"], "whom": ["al", "cy"], "n": [1.5, 2.5]})
    for kind in (df, df.astype({"who": "category", "whom": "category"})):
        A, ids = from_pandas_edgelist(kind, "who", "whom", "n", backend="cpu")
        assert ids.tolist() == ["al", "bob", "cy"]
        assert entries(A) == [(0, 2, 2.5), (1, 0, 1.5)]
    df.loc[1, "n"] = None
    with pytest.raises(InvalidValue, match=r"the weight of edge 1 is missing"):
        from_pandas_edgelist(df, "who", "whom", "n", backend="cpu")
    df.loc[1, "whom"] = None
    with pytest.raises(DomainMismatch, match=r"which names no vertex. Drop its row"):
        from_pandas_edgelist(df, "who", "whom", backend="cpu")
    whole = pd.DataFrame({"source": pd.array([1, None], "Int64"), "target": [2, 3]})
    with pytest.raises(DomainMismatch, match=r"which names no vertex. Drop its row"):
        from_pandas_edgelist(whole, backend="cpu")


@pytest.mark.extra
def test_igraph_there_and_back():
    igraph = pytest.importorskip("igraph")
    g = igraph.Graph([(0, 1), (1, 0), (2, 2)], n=4)
    g.es["w"] = [2, 3, 4]
    A = from_igraph(g, backend="cpu")
    assert (A.shape, A.dtype) == ((4, 4), BOOL)
    assert entries(A) == [(0, 1, 1), (1, 0, 1), (2, 2, 1)]
    assert entries(from_igraph(g, "w", backend="cpu")) == [(0, 1, 5), (1, 0, 5), (2, 2, 4)]
    low = from_igraph(g, "w", dup_op="min", backend="cpu")
    assert entries(low)[0] == (0, 1, 2)
    h = to_igraph(low)
    assert (h.is_directed(), h.vcount(), h.ecount()) == (False, 4, 2)
    assert sorted(h.es["weight"]) == [2, 4]
    assert to_igraph(low, directed=True).ecount() == 3
    arcs = from_igraph(igraph.Graph([(0, 1)], directed=True), backend="cpu")
    assert entries(from_igraph(to_igraph(arcs), backend="cpu")) == [(0, 1, True)]
    with pytest.raises(InvalidValue, match=r"the matrix is not symmetric"):
        to_igraph(arcs, directed=False)
    with pytest.raises(InvalidValue, match=r"edges have no attribute 'x'. They have w"):
        from_igraph(g, "x")
    g.es["w"] = [2, None, 4]
    with pytest.raises(InvalidValue, match=r"the weight of edge 1 is missing"):
        from_igraph(g, "w")
    assert to_igraph(from_igraph(igraph.Graph(), backend="cpu")).vcount() == 0


def test_what_is_no_igraph():
    with pytest.raises(DomainMismatch, match=r"from_igraph: int is no igraph\.Graph"):
        from_igraph(5)
