"""`lagpu bench --algorithm`: what is asked, who answers, and what is proved."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from loop_names import is_fused
from problems import GRAPHS, UNDIRECTED, answer, matrix, problem_of, question

from lagpu import Matrix, algorithms, backends, catalog, io
from lagpu.bench import peers
from lagpu.bench.algorithms import Backend, Bench
from lagpu.bench.graphs import HostGraph, make
from lagpu.bench.peers import ANSWERING, PEERS, least_labels
from lagpu.catalog import ALGORITHMS, QUESTIONS, Answer, depths, differs, questions_of
from lagpu.errors import BackendUnavailable, CheckFailed, InvalidValue, NotSupported


@pytest.fixture(params=GRAPHS)
def kind(request):
    return request.param


@pytest.fixture
def given(kind, tmp_path):
    return problem_of(kind, tmp_path)


def test_every_algorithm_is_measured_or_named_with_another():
    asked = {q.name for q in QUESTIONS}
    assert asked == {*algorithms.__all__, "product"} - {
        row.name for row in ALGORITHMS if row.measured_as not in ("", row.name)
    }
    for row in ALGORITHMS:
        assert {*row.measured_as.split(", ")} <= {*asked, ""}
    assert all(q.read is not Answer for q in QUESTIONS)


def test_names_are_chosen():
    assert [q.key for q in questions_of(["bfs,pagerank"])] == ["bfs", "pagerank"]
    assert [q.label for q in questions_of(["connected_components"])] == ["fastsv", "bfs"]
    assert len(questions_of([])) == len(questions_of(["all"])) == len(QUESTIONS)
    with pytest.raises(InvalidValue, match="measured as bellman_ford, delta_stepping"):
        questions_of(["sssp"])
    with pytest.raises(InvalidValue, match=r"no 'girth'.*bfs_levels"):
        questions_of(["girth"])


def test_answers_that_differ():
    x = Answer(np.array([1.0, 2.0]))
    for rule in ("equal", "close", "sum"):
        assert not differs(rule, x, Answer(x.same.copy()))
        assert differs(rule, x, Answer(np.array([1.0, 2.5])))
        assert differs(rule, x, Answer(np.array([1.0])))
        assert differs(rule, x, Answer(np.array([1.0, np.nan])))
    near = Answer(x.same * (1 + 1e-9))
    assert differs("equal", x, near)
    assert not differs("close", x, near)
    assert not differs("close", Answer(np.array([np.nan])), Answer(np.array([np.nan])))


def test_depths_and_labels():
    assert depths(np.array([1, 1, 0, 2, -1])).tolist() == [1, 0, 2, 3, -1]
    assert depths(np.array([0, 0, 1, 2, 3, 4, 5, 6, 7])).tolist() == list(range(9))
    assert least_labels(np.array([7, 3, 7, 3, 5])).tolist() == [0, 1, 0, 1, 4]


@pytest.mark.parametrize(
    ("key", "kind", "fault"),
    [
        ("bfs_parents", "even", lambda a: (a.proof[0], np.full(4, a.proof[0][0]))),
        ("bfs", "undirected", lambda a: (None, (a.proof[1][0][1:], a.proof[1][1][1:]))),
        ("shortest_path", "directed", lambda a: (None, [*a.proof[1], a.proof[1][-1]])),
        ("shortest_path", "undirected", lambda a: (None, [5, *a.proof[1][1:]])),
        ("bipartite_sides", "even", lambda a: ((a.proof[0][0], np.zeros(4, int)), None)),
        ("bipartite_sides", "undirected", lambda a: (None, [0, 1, 3])),
        ("bipartite_sides", "undirected", lambda a: (None, [0, 1])),
        ("bipartite_sides", "apart", lambda a: (tuple(x[1:] for x in a.proof[0]), None)),
    ],
)
def test_what_may_differ_is_proved(key, kind, fault, tmp_path):
    given = problem_of(kind, tmp_path)
    right = answer(Backend("cpu", given), key)
    prove, A = question(key).prove, given.pattern
    prove(A, given.facts, right.proof)
    with pytest.raises(CheckFailed):
        prove(A, given.facts, fault(right))


# ---------------------------------------------------------------------------------- the problem


def test_facts(kind, given):
    facts, A = given.facts, matrix(kind)
    assert (facts.vertices, facts.entries) == (A.nrows, A.nvals)
    assert facts.graph == "graph.npz"
    assert facts.symmetric is (kind in UNDIRECTED)
    assert facts.acyclic is (kind == "acyclic")
    assert facts.connected is (kind in ("undirected", "even"))
    assert (facts.outside > 0) is (kind == "apart")
    levels = algorithms.bfs_levels(A, int(np.argmax(A.reduce_rowwise("plus").new().to_dense(0))))
    assert facts.depth == levels.reduce("max").new().value
    assert set(facts.sources) == set(levels.to_coo()[0].tolist())
    assert algorithms.has_path(A, facts.source, facts.target)
    assert (facts.source, facts.target) == (facts.sources[0], facts.sources[-1])


def test_edges_and_lengths(given):
    A = given.rows.toarray()
    assert A[A > 0].min() >= 1
    both = (A > 0) & (A.T > 0)
    assert np.array_equal(A[both], A.T[both])


def test_lengths_differ(tmp_path):
    make("kron:6", backends.get("cpu"), 3, tmp_path)
    weights = HostGraph.read(tmp_path).weights
    assert len(np.unique(weights)) > 100
    assert 100 < weights.mean() < 156


def test_a_graph_without_an_edge(tmp_path):
    io.write(Matrix.from_coo([0], [0], nrows=3, ncols=3, backend="cpu"), tmp_path / "loop.npz")
    with pytest.raises(InvalidValue, match="no vertex has an edge"):
        make(str(tmp_path / "loop.npz"), backends.get("cpu"), None, tmp_path)


# ---------------------------------------------------------------------------------- the systems


@pytest.mark.each_value
@pytest.mark.parametrize("name", ["scipy", "networkx"])
def test_libraries_find_what_the_oracle_finds(name, given):
    oracle, other = Backend("cpu", given), PEERS[name].open(given)
    asked = 0
    for q in QUESTIONS:
        if q.key in PEERS[name].keys and not q.why_not(given.facts):
            right = answer(oracle, q.key)
            assert not differs(q.rule, right, answer(other, q.key)), q.key
            wrong = right.same.copy()
            wrong[-1] = not wrong[-1] if wrong.dtype == bool else wrong[-1] + 1
            assert differs(q.rule, Answer(wrong), answer(other, q.key)), q.key
            asked += 1
    assert asked >= 4


@pytest.mark.few_on_sim(2)
def test_backends_find_what_the_oracle_finds(backend, given):
    oracle, other = Backend("cpu", given), Backend(backend.name, given)
    for q in QUESTIONS:
        if not q.why_not(given.facts):
            right, found = answer(oracle, q.key), answer(other, q.key)
            found = pickle.loads(pickle.dumps(found))  # it comes from another process
            assert not differs(q.rule, right, found), q.key
            if found.proof is not None:
                q.prove(given.pattern, given.facts, found.proof)
            if q.rounds is not None:
                assert q.rounds(given.facts, found) >= 1


def test_one_matrix_is_held_at_a_time(tmp_path):
    given = problem_of("acyclic", tmp_path)
    system = Backend("cpu", given)
    for key, kind in (("bfs", "pattern"), ("topological_levels", "acyclic"), ("bfs", "pattern")):
        system.prepare(question(key))
        assert list(system._kept) == [kind]
    ask, _ = system.prepare(question("bellman_ford"))
    assert ask.args[0].dtype.name == "INT64"
    assert ask.args[0].to_csc()[2].tolist() == given.weights.tolist()


def test_a_triangle_is_counted(monkeypatch, tmp_path):
    monkeypatch.setattr(algorithms, "triangle_count", lambda A: 2, raising=False)
    given = problem_of("undirected", tmp_path)
    systems = Backend("cpu", given), PEERS["networkx"].open(given)
    counts = [answer(system, "triangle_count") for system in systems]
    assert not differs("equal", *counts)


def test_searches_from_each_are_read_row_by_row():
    levels = Matrix.from_coo([0, 1, 1], [0, 1, 2], [0, 0, 1], nrows=2, ncols=3, backend="cpu")
    assert catalog._levels_of_each(levels).same.tolist() == [[0, -1, -1], [-1, 0, 1]]


def test_what_rules_a_question_out(tmp_path):
    facts = problem_of("apart", tmp_path).facts
    assert question("diameter").why_not(facts) == "not connected"
    many = replace(facts, outside=10**6, vertices=4 * 10**6, depth=4000)
    assert question("connected_components bfs").why_not(many) == "1,000,000 vertices apart"
    assert question("bfs_levels").why_not(many) == ""
    assert PEERS["networkx"].why_not("bfs_levels", 10**7) == "too large"
    assert PEERS["networkx"].why_not("bfs_levels", 10**5) == ""
    assert PEERS["networkx"].why_not("diameter", 10**5) == "too large"


def test_pylibcugraph_by_its_documented_interface(monkeypatch, kind, given):
    """It needs a GPU and gigabytes; a stand-in with its signatures shows that calls are right."""
    n, order = given.facts.vertices, np.random.default_rng(0).permutation(given.facts.vertices)

    class SGGraph:
        def __init__(self, handle, properties, src, dst, *, weight_array, store_transposed,
                     renumber, do_expensive_check):  # fmt: skip
            assert src.dtype == dst.dtype == np.int32
            values = np.ones(len(src)) if weight_array is None else weight_array
            self.S = sp.csr_array((values, (src, dst)), shape=(n, n))

    def far(distances, dtype, largest):
        return np.where(np.isinf(distances), largest, distances).astype(dtype)[order]

    def bfs(handle, graph, sources, direction_optimizing, limit, predecessors, expensive):
        hops = sp.csgraph.shortest_path(graph.S, unweighted=True, indices=sources[0])
        return far(hops, np.int32, np.iinfo(np.int32).max), None, order

    def sssp(handle, graph, source, cutoff, predecessors, expensive):
        assert predecessors
        lengths = sp.csgraph.dijkstra(graph.S, indices=source)
        return order, far(lengths, float, np.finfo(float).max), None

    def pagerank(handle, graph, weights_of, sums, guess_of, guess, alpha, epsilon, most, expensive):
        nx = pytest.importorskip("networkx")
        G = nx.from_scipy_sparse_array(graph.S, create_using=nx.DiGraph)
        found = nx.pagerank(G, alpha, tol=epsilon, max_iter=most, weight=None)
        return order, np.array([found[v] for v in order])

    def weakly_connected_components(handle, graph, offsets, indices, weights, labels, expensive):
        return order, 9 - sp.csgraph.connected_components(graph.S)[1][order]

    def core_number(handle, graph, degree_type, expensive):
        assert degree_type in ("incoming", "outgoing", "bidirectional")
        return order, algorithms.core_number(matrix(kind)).to_dense()[order]

    def triangle_count(handle, graph, start_list, expensive):
        S = graph.S
        return order, ((S @ S).multiply(S).sum(axis=1) / 2).astype(int)[order]

    cupy = SimpleNamespace(
        asarray=np.asarray,
        asnumpy=np.asarray,
        cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None)),
    )
    plc = ModuleType("pylibcugraph")
    plc.ResourceHandle = plc.GraphProperties = lambda **_: None
    calls = (SGGraph, bfs, sssp, pagerank, weakly_connected_components, core_number, triangle_count)
    for call in calls:
        setattr(plc, call.__name__, call)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "pylibcugraph", plc)
    S = given.rows.astype(bool).astype(int)
    count = int(((S @ S).multiply(S)).sum()) // 6
    monkeypatch.setattr(algorithms, "triangle_count", lambda A: count, raising=False)
    oracle, other = Backend("cpu", given), PEERS["pylibcugraph"].open(given)
    for key in PEERS["pylibcugraph"].keys:
        if kind in ("even", "apart") or key in ("bfs_levels", "delta_stepping", "pagerank"):
            assert not differs(question(key).rule, answer(oracle, key), answer(other, key)), key
        else:
            with pytest.raises(NotSupported, match="needs an undirected graph without self-loops"):
                other.prepare(question(key))


@pytest.fixture
def bench(backend, tmp_path):
    problem_of("undirected", tmp_path)
    held = Bench()
    held.open(backend.name, tmp_path)
    return held


def test_runs_are_counted(bench, backend):
    bench.prepare("bfs_levels")
    found, ours = bench.measure(3, 60.0, 60.0)
    assert (found["runs"], found["note"]) == (3, "")
    assert 0 < found["min_ms"] <= found["median_ms"] <= found["max_ms"]
    assert is_fused(found["loop"]) is (backend.name != "cpu")
    assert (found["bytes"] is None) is (backend.name == "cpu")
    assert (found["device_ms"] is None) is (backend.name != "gpu")
    right = answer(Backend("cpu", bench._system._given), "bfs_levels")
    assert ours.same.tolist() == right.same.tolist()


def test_no_more_runs_than_time(bench, backend):
    bench.prepare("pagerank")
    found, _ = bench.measure(10**6, 1e-9, 60.0)
    assert found["runs"] == 1
    assert bool(found["note"]) is (backend.name == "cpu")  # else the first one compiles
    assert bench.measure(10**6, 1e-9, 1e-9)[0]["note"] == "first run"


def test_what_compiles_is_not_the_time_of_a_run(bench, backend, monkeypatch):
    """A first run of 40 s: if 39 of them compiled, there is time for others."""
    if backend.name == "cpu":
        pytest.skip("the cpu backend compiles nothing")
    bench.prepare("bfs_levels")
    took = iter((40e3, 1e3, 1e3, 1e3))
    compiled = iter((5e3, 44e3))
    answers = bench._asked[0]()
    monkeypatch.setattr(bench._clock, "wall", lambda run: (next(took), answers))
    monkeypatch.setattr(bench._clock, "queued", lambda run: (1e3, answers))
    monkeypatch.setattr(bench._clock, "compile_ms", lambda: next(compiled))
    found, _ = bench.measure(3, 60.0, 60.0)
    assert (found["runs"], found["max_ms"], found["note"]) == (3, 1e3, "")
    took, compiled = iter((40e3,)), iter((5e3, 5e3))
    assert bench.measure(3, 60.0, 60.0)[0]["note"] == "first run"


def test_cusparse_by_its_documented_interface(monkeypatch, kind, given):
    """It needs a GPU; a stand-in with its signatures shows that calls are right."""

    def spmv(rows, x, y):
        assert rows.dtype == x.dtype == y.dtype == np.float32
        y[:] = rows @ x

    stream = SimpleNamespace(synchronize=lambda: None)
    cupy = SimpleNamespace(
        asarray=np.asarray, asnumpy=np.array, zeros=np.zeros,
        cuda=SimpleNamespace(get_current_stream=lambda: stream),
    )  # fmt: skip
    modules = {name: ModuleType(name) for name in ("cupyx", "cupyx.scipy", "cupyx.scipy.sparse")}
    modules["cupyx"].cusparse = SimpleNamespace(spmv=spmv)
    modules["cupyx.scipy.sparse"].csr_matrix = sp.csr_matrix
    for name, module in ({"cupy": cupy} | modules).items():
        monkeypatch.setitem(sys.modules, name, module)
    oracle, other = Backend("cpu", given), PEERS["cusparse"].open(given)
    for key in PEERS["cusparse"].keys:
        q = question(key)
        if not q.why_not(given.facts):
            right = answer(oracle, key)
            assert not differs(q.rule, right, answer(other, key)), key
            assert differs(q.rule, Answer(right.same + 1), answer(other, key))


def test_cusparse_is_named_where_it_is_missing_and_searches_nothing(monkeypatch):
    monkeypatch.setattr(peers, "_installed", lambda name: name != "cusparse")
    with pytest.raises(BackendUnavailable, match=r"cusparse is missing.*cupy"):
        peers.chosen(["cusparse"], ANSWERING)
    assert "cusparse" not in peers.chosen(["all"], ANSWERING)
    with pytest.raises(InvalidValue, match="no 'cusparse'"):
        peers.chosen(["cusparse"])
