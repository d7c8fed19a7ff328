"""Every argument is read: nonsense in its place is refused, a switch changes something."""

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import lagpu
from lagpu import INT64, Matrix, Scalar, Vector, algorithms, generators
from lagpu.core.views import TransposedMatrix
from lagpu.errors import LagpuError

#: A call of each public method and function, in which each switch that is left out matters.
CALLS = """
Vector(INT64, 3)
Vector.from_coo([0, 0], [1.5, 2.5], dup_op="plus")
Vector.from_dense([1.5, 2.5])
Vector.from_dict({0: 1.5})
Vector.from_pairs([(0, 1.5)])
Vector.from_scalar(1, 3)
v.apply(binary.plus, 2)
v.apply(binary.plus, left=2)
empty.build([0], [2])
v.build([0], [2], clear=True)
v.clear()
v.diag()
v.dup()
v.ewise_add(v)
v.ewise_mult(v)
v.ewise_union(v, "plus", 1, 2)
v.get(1)
v.inner(v)
v.isclose(near)
v.isclose(w)
v.isequal(w)
v.outer(v)
v.reduce()
empty.reduce()
v.reposition(1)
v.resize(2)
v.select("valuegt", 1)
v.selection()
v.to("cpu")
v.to_coo()
partial.to_dense(0)
v.to_dict()
v.update(v)
v.vxm(A)
v.wait()
v(mask=v.S)
v[[0, 1, 2]](mask=v.S)
Matrix(INT64, 3, 3)
Matrix.from_coo([0, 0], [1, 1], [1.5, 2.5], dup_op="plus")
Matrix.from_csc([0, 1, 1], [0], [2], nrows=2)
Matrix.from_csr([0, 1, 1], [0], [2], ncols=2)
Matrix.from_dcsc([1], [0, 1], [0], [2])
Matrix.from_dcsr([1], [0, 1], [0], [2])
Matrix.from_dense([[1.5, 2.5]])
Matrix.from_dicts({0: {1: 2}})
Matrix.from_edgelist([(0, 1)])
Matrix.from_scalar(1, 2, 3)
A.apply(binary.plus, 2)
none.build([0], [1], [2])
A.build([0], [1], [2], clear=True)
A.clear()
A.diag()
A.dup()
A.ewise_add(A)
A.ewise_mult(A)
A.ewise_union(A, "plus", 1, 2)
A.get(0, 0)
A.isclose(A.dup("FP64"))
A.isclose((A * 1.01).new())
A.isequal(A.dup("FP64"))
A.kronecker(A)
A.mxm(A)
A.mxv(v)
A.power(2)
A.reduce()
none.reduce()
A.reduce_columnwise()
A.reduce_rowwise()
A.reduce_scalar()
none.reduce_scalar()
A.reposition(1, 0)
A.resize(2, 2)
A.select("valuegt", 1)
A.setdiag(2)
A.to("cpu")
A.to_coo()
A.to_csc()
A.to_csr()
A.to_dcsc()
A.to_dcsr()
A.to_dense(0)
A.to_dicts()
A.to_edgelist()
A.update(A)
A.wait()
A(mask=A.S)
A[0, :](mask=v.S)
A.T.diag(1)
A.T.get(0, 0)
A.T.new()
A.T.reduce()
A.T.reduce_columnwise()
A.T.reduce_rowwise()
A.T.reduce_scalar()
A.T.to_coo("FP32", rows=False, columns=True, values=True, sort=True)
A.T.to_csc()
A.T.to_csr()
A.T.to_dcsc()
A.T.to_dcsr()
A.T.to_dense(0)
A.T.wait()
Scalar(INT64, 3)
Scalar.from_value(3)
s.clear()
s.dup()
s.get()
s.isclose(Scalar(FP64, 3.0))
s.isclose(3.1)
s.isequal(Scalar(FP64, 3.0))
s.apply(binary.plus, 2)
s.apply(binary.plus, left=2)
s.ewise_add(2)
s.ewise_mult(2)
s.ewise_union(empty.reduce().new(), "plus", 1, 2)
empty.reduce().new().ewise_union(s, "plus", 1, 2)
s.select("valuegt", 1)
s.update(3)
s.wait()
s(accum="plus")
(v + v).new()
v.S.new()
v[[0, 1]].new()
binary.isclose()
algorithms.average_clustering(P)
algorithms.average_clustering(W, weight=True)
algorithms.bellman_ford(G, 0)
algorithms.betweenness_centrality(G, 2, seed=1)
algorithms.betweenness_centrality(G, None, False)
algorithms.betweenness_estimate(G, 2, seed=1)
algorithms.bfs(G, 0)
algorithms.bfs_levels(G, 0)
algorithms.bfs_levels_joint(G, [0, 1])
algorithms.bfs_levels_multi(G, [0, 1])
algorithms.bfs_parents(G, 0)
algorithms.bfs_parents_multi(G, [0, 1])
algorithms.bipartite_sides(G)
algorithms.center(G)
algorithms.closeness_centrality(P)
algorithms.clustering(G)
algorithms.connected_components(G)
algorithms.core_number(G)
algorithms.count_shortest_paths(G, 0)
algorithms.delta_stepping(G, 0)
algorithms.diameter(G)
algorithms.eccentricity(G)
algorithms.edge_betweenness_centrality(G, 2, seed=1)
algorithms.harmonic_centrality(G)
algorithms.has_path(G, 0, 2)
algorithms.is_bipartite(G)
algorithms.k_core(G)
algorithms.k_hop(G, [0], 1)
algorithms.maximal_independent_set(G)
algorithms.neighborhood(G, [0])
algorithms.pagerank(W)
algorithms.periphery(G)
algorithms.pseudo_diameter(G)
algorithms.radius(G)
algorithms.shortest_path(G, 0, 2)
algorithms.sssp(G, 0)
algorithms.strongly_connected_components(G)
algorithms.topological_levels(D)
algorithms.topological_order(D)
algorithms.transitivity(G)
algorithms.triangle_count(G)
algorithms.triangles(G)
algorithms.betweenness_centrality(W, weight=True)
algorithms.betweenness_centrality(G, sources=[0])
algorithms.edge_betweenness_centrality(W, weight=True)
algorithms.edge_betweenness_centrality(G, sources=[0])
algorithms.center(S, weight=True)
algorithms.closeness_centrality(W, distance=True)
algorithms.clustering(W, weight=True)
algorithms.contraction(W, labels)
algorithms.degree_centrality(W)
algorithms.in_degree_centrality(W)
algorithms.out_degree_centrality(W)
algorithms.diameter(S, weight=True)
algorithms.eccentricity(S, weight=True)
algorithms.ego_graph(W, 0, 1)
algorithms.eigenvector_centrality(W)
algorithms.find_negative_cycle(N, 0)
algorithms.floyd_warshall(W)
algorithms.harmonic_centrality(W, distance=True)
algorithms.hits(W)
algorithms.k_hop_sizes(W, 1)
algorithms.k_truss(G, 3)
algorithms.katz_centrality(W)
algorithms.label_propagation(S)
algorithms.laplacian_matrix(S)
algorithms.largest_component(D)
algorithms.louvain(square([9, 1, 9, 1]), seed=1)
algorithms.louvain(square([1, 9, 1, 9]), seed=1)
algorithms.maximal_matching(S, seed=1)
algorithms.minimum_spanning_forest(S)
algorithms.modularity(S, labels)
algorithms.modularity(looped, labels)
algorithms.overall_reciprocity(W)
algorithms.path_weight(W, [0, 1])
algorithms.periphery(S, weight=True)
algorithms.radius(S, weight=True)
algorithms.reciprocity(W)
algorithms.shortest_path(W, 0, 2, weight=True)
algorithms.similarity(G, [(0, 1)])
algorithms.square_clustering(G)
algorithms.sssp(W, 0, target=2)
algorithms.sssp_parents(W, 0)
algorithms.triangle_centrality(G)
generators.chains(3)
generators.complete(3)
generators.cycle(3)
generators.delaunay(3)
generators.from_spec("gnm:8:9")
generators.gnm(4, 5)
generators.grid2d(2, 3)
generators.hubs(9, 2)
generators.kronecker(3)
generators.mycielskian(3)
generators.path(3)
generators.road(2)
generators.star(3)
generators.uniform(3)
""".strip().splitlines()


class Nonsense:
    """What no argument can be."""

    def __repr__(self):
        return "nonsense"


def square(lengths):
    i, j = [0, 1, 2, 3], [1, 2, 3, 0]
    return Matrix.from_coo(i + j, j + i, lengths * 2, nrows=4, ncols=4, backend="cpu")


def world():
    at = {"backend": "cpu"}
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)]
    rows, cols = (list(x) for x in zip(*edges, strict=True))
    G = Matrix.from_coo(rows + cols, cols + rows, 1, nrows=5, ncols=5, **at)
    P = Matrix.from_coo(rows + cols, cols + rows, nrows=6, ncols=6, **at)
    lengths = [1, 2, 3, 4, 5, 6]
    S = Matrix.from_coo(rows + cols, cols + rows, lengths + lengths, nrows=5, ncols=5, **at)
    v = Vector.from_coo([0, 1, 2], [1, 2, 3], **at)
    return {
        "v": v,
        "w": v.dup("FP64"),
        "near": (v * 1.01).new(),
        "empty": Vector(INT64, 3, **at),
        "partial": Vector.from_coo([0], [1], size=3, **at),
        "A": Matrix.from_coo([0, 1, 1], [1, 2, 0], [1, 2, 3], nrows=3, ncols=3, **at),
        "none": Matrix(INT64, 3, 3, **at),
        "G": G,
        "P": P,
        "W": Matrix.from_coo(rows, cols, [1, 2, 3, 4, 5, 6], nrows=5, ncols=5, **at),
        "S": S,
        "N": Matrix.from_coo([0, 1, 2], [1, 2, 0], [1, -3, 1], nrows=3, ncols=3, **at),
        "square": square,
        "looped": Matrix.from_coo([0, 0, 2], [0, 2, 0], 1, nrows=5, ncols=5, **at),
        "labels": Vector.from_coo([0, 1, 2, 3, 4], [0, 0, 1, 1, 1], **at),
        "D": Matrix.from_coo([0, 1], [1, 2], 1, nrows=3, ncols=3, **at),
        "s": Scalar(INT64, 3),
        **vars(lagpu),
    }


#: Arguments that change nothing here, each with its reason.
NOTHING = {
    "default": "a value that is given back, whatever it is",
    "sort": "accepted as in python-graphblas; the entries always come in order",
    "is_cscalar": "accepted as in python-graphblas; there is one kind of scalar",
    "on_device": "the cpu backend has no device",
    "value": "what an update writes is read by the statement",
}


def said(x):
    """What a result holds, with its type and its name."""
    if isinstance(x, (tuple, list)):
        return [said(part) for part in x]
    if isinstance(x, np.ndarray):
        return str(x.dtype), x.tolist()
    if isinstance(x, type):
        return x.__name__
    if hasattr(x, "dtype") and hasattr(x, "new"):
        x = x.new()
    if hasattr(x, "to_coo"):
        return str(x.dtype), x.shape, str(x.name), said(x.to_coo())
    return repr(x), str(getattr(x, "name", ""))


def run(line, parameter=None, change=None):
    """Return what a call gives and leaves, with another value of one parameter if one is named."""
    names = world()
    call = ast.parse(line, mode="eval").body
    function = callee(call, names)
    args = [eval(ast.unparse(x), names) for x in call.args]
    given = {x.arg: eval(ast.unparse(x.value), names) for x in call.keywords}
    bound = inspect.signature(function).bind(*args, **given)
    if parameter is not None:
        bound.arguments[parameter] = change
    result = function(*bound.args, **bound.kwargs)
    owner = names.get(ast.unparse(call.func).partition(".")[0])
    return said(result), said(owner) if hasattr(owner, "dtype") else None


def callee(call, names):
    found = eval(ast.unparse(call.func), names)
    return found if inspect.isroutine(found) or isinstance(found, type) else found.__call__


def changes(parameter):
    """Return values that must make a difference, one of them at least."""
    if "bool" in str(parameter.annotation):
        return [True, False]
    return ["another"] if parameter.name == "name" else [Nonsense()]


def is_read(line, parameter):
    """Whether another value of a parameter is refused, or changes what the call does."""
    before = run(line)
    for value in changes(parameter):
        try:
            if run(line, parameter.name, value) != before:
                return True
        except (LagpuError, TypeError, ValueError, AttributeError):
            return True
    return False


@pytest.mark.filterwarnings("ignore::lagpu.errors.UnusedCall")
@pytest.mark.filterwarnings("ignore:Input data contained duplicate")
def test_every_argument_is_read():
    read = {}
    for line in CALLS:
        call = ast.parse(line, mode="eval").body
        name = re.sub("^(v|w|empty|partial|near)(?=[.(\\[])", "Vector", ast.unparse(call.func))
        name = re.sub("^(A|none)(?=[.(\\[])", "Matrix", name)
        for parameter in inspect.signature(callee(call, world())).parameters.values():
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                key = name, parameter.name
                read[key] = read.get(key, False) or is_read(line, parameter)
    unread = [key for key, found in read.items() if not found and key[1] not in NOTHING]
    assert unread == []


def test_every_public_method_and_function_is_called_above():
    text = "\n".join(CALLS)
    owners = {"Vector": (Vector, "v empty partial"), "Matrix": (Matrix, "A none"),
              "Scalar": (Scalar, "s")}  # fmt: skip
    internal = {"refuse", "copying"}
    for name, (owner, objects) in owners.items():
        for method in set(filter(lambda n: callable(getattr(owner, n)), dir(owner))) - internal:
            if not method.startswith("_"):
                ways = [f"{x}.{method}(" for x in (name, *objects.split())]
                assert any(way in text for way in ways), (name, method)
    for method, x in vars(TransposedMatrix).items():
        if inspect.isfunction(x) and not method.startswith("_") and method not in internal:
            assert f"A.T.{method}(" in text, method
    for module in (algorithms, generators):
        for function in module.__all__:
            if callable(getattr(module, function)) and function != "is_spec":
                assert f".{function}(" in text, function


#: Parameters that a function's own text never loads, with the reason.
UNLOADED = {
    "lazy": "accepted as in python-graphblas; every function is compiled at its first use",
    "sort": "accepted as in python-graphblas; the entries always come in order",
    "is_cscalar": "accepted as in python-graphblas; there is one kind of scalar",
    "types": "accepted as in python-graphblas; those of `composite` count",
    "reflected": "an operand may stand on either side",
}
#: Functions with a signature that someone else has fixed: of a protocol, Python or NetworkX.
FIXED = (
    *("backends", "nx", "draw", "observe", "crosscheck", "bench", "papers", "cli", "selftest"),
    *("core/recorder.py", "io/npz.py", "io/slices", "io/suites.py"),
)


def unloaded(function):
    """Return the parameters of a function that its body never loads, unless it has no body."""
    body = [
        s
        for s in function.body
        if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
    ]
    if all(isinstance(s, (ast.Raise, ast.Pass)) for s in body):
        return set()
    loads = (n for s in body for n in ast.walk(s) if isinstance(n, ast.Name))
    loaded = {n.id for n in loads if isinstance(n.ctx, ast.Load)}
    args = function.args
    names = {x.arg for x in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    names = {name for name in names if not name.startswith("_")}
    return names - loaded - {"self", "cls"} - UNLOADED.keys()


def test_every_parameter_of_a_public_function_is_loaded():
    root = Path(lagpu.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root).as_posix()
        if not where.startswith(FIXED):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    found += [(where, node.name, name) for name in unloaded(node)]
    assert found == []
