"""Generators: shapes against NetworkX, random ones by their properties, and specs."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from lagpu import generators
from lagpu.dtypes import BOOL
from lagpu.errors import InvalidValue, NotSupported, OutOfMemory
from lagpu.generators import from_spec, is_spec
from lagpu.host import memory
from lagpu.io import to_networkx, to_scipy
from lagpu.io.csc import column_blocks, undirected

SHAPES = {
    "path:1": nx.path_graph(1),
    "path:2": nx.path_graph(2),
    "path:10": nx.path_graph(10),
    "cycle:3": nx.cycle_graph(3),
    "cycle:10": nx.cycle_graph(10),
    "star:1": nx.star_graph(0),
    "star:10": nx.star_graph(9),
    "complete:1": nx.complete_graph(1),
    "complete:7": nx.complete_graph(7),
    "grid:1x1": nx.path_graph(1),
    "grid:1x4": nx.path_graph(4),
    "grid:3x4": nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4)),
    "mycielskian:2": nx.path_graph(2),
    "mycielskian:5": nx.mycielski_graph(5),
}
RANDOM = ["kron:8", "kron:9:4", "urand:8", "urand:9:3", "road:20", "delaunay:7"]
RANDOM += ["road:20:4", "chains:6:5", "hubs:300:5"]


@pytest.mark.parametrize("spec", SHAPES)
def test_shapes(spec):
    A = from_spec(spec, backend="cpu")
    assert A.dtype is BOOL
    expected = SHAPES[spec]
    if spec.startswith("mycielskian"):  # NetworkX numbers the copies otherwise
        assert nx.is_isomorphic(to_networkx(A, directed=False), expected)
    else:
        assert nx.utils.graphs_equal(to_networkx(A, directed=False), expected)


def test_directed_shapes():
    path = generators.path(4, directed=True, backend="cpu")
    assert to_networkx(path).edges == nx.path_graph(4, nx.DiGraph).edges
    cycle = generators.cycle(4, directed=True, backend="cpu")
    assert to_networkx(cycle).edges == nx.cycle_graph(4, nx.DiGraph).edges


def test_mycielskian_has_the_sizes_of_the_suitesparse_collection():
    A = generators.mycielskian(11, backend="cpu")
    assert (A.nrows, A.nvals) == (1535, 134710)


@pytest.mark.parametrize("spec", RANDOM)
def test_random_graphs_are_simple_symmetric_and_repeatable(spec):
    A = from_spec(spec, backend="cpu")
    S = to_scipy(A)
    assert A.dtype is BOOL
    assert S.has_canonical_format
    assert S.nnz > A.nrows
    assert (S != S.T).nnz == 0
    assert not S.diagonal().any()
    assert A.isequal(from_spec(spec, backend="cpu"))
    other = from_spec(spec, seed=99, backend="cpu")
    assert not A.isequal(other)
    assert other.isequal(from_spec(spec, seed=99, backend="cpu"))


@pytest.mark.parametrize(("n", "m"), [(1, 0), (2, 2), (20, 380), (60, 900), (5000, 3000)])
def test_gnm_has_exactly_its_edges(n, m):
    A = from_spec(f"gnm:{n}:{m}", seed=3, backend="cpu")
    S = to_scipy(A)
    assert (A.dtype, A.nrows, A.nvals) == (BOOL, n, m)
    assert not S.diagonal().any()
    assert A.isequal(generators.gnm(n, m, seed=3, backend="cpu"))
    if m in (900, 3000):
        assert not A.isequal(generators.gnm(n, m, seed=4, backend="cpu"))
        assert (S != S.T).nnz  # directed
        assert S.sum(0).min() < S.sum(0).max()


def test_gnm_draws_every_edge_alike():
    some = (generators.gnm(5, 10, seed=k, backend="cpu") for k in range(400))
    drawn = sum(to_scipy(A).toarray().astype(int) for A in some)
    assert ((drawn == 0) == np.eye(5, dtype=bool)).all()
    assert 150 < drawn[drawn > 0].min() <= drawn.max() < 250


def test_kronecker_labels_are_permuted():
    degrees = np.diff(generators.kronecker(10, backend="cpu").to_csc()[0])
    # Without the permutation vertex 0 has the most edges, and halves fall off by 0.76 to 0.24.
    halves = degrees[:512].sum() / degrees.sum()
    assert 0.4 < halves < 0.6


def test_kronecker_odd_chunk_sizes(monkeypatch):
    monkeypatch.setattr("lagpu.generators.graphs._CHUNK", 7)
    A = generators.kronecker(4, 5, backend="cpu")
    assert A.nrows == 16
    assert 0 < A.nvals <= 2 * 80
    assert generators.kronecker(0, backend="cpu").nvals == 0


def test_uniform_has_nearly_all_its_edges():
    A = generators.uniform(12, 8, backend="cpu")
    assert 0.98 * 2 * 8 * 4096 < A.nvals <= 2 * 8 * 4096


def contracted(graph):
    """Return a graph with an edge in place of each chain between vertices of other degrees."""
    graph = nx.MultiGraph(graph)
    for v in [v for v, degree in graph.degree if degree == 2]:
        neighbours = [other for _, other in graph.edges(v)]
        if v not in neighbours and len(neighbours) == 2:
            graph.remove_node(v)
            graph.add_edge(*neighbours)
    return graph


@pytest.mark.parametrize(
    ("short", "long"), [("road:12", "road:12:6"), ("chains:5:1", "chains:5:7")]
)
def test_chains_take_the_place_of_links(short, long):
    """Between vertices of degree 3 and more the graph is the same; chains have random lengths."""
    short, long = (
        to_networkx(from_spec(spec, seed=3, backend="cpu"), directed=False)
        for spec in (short, long)
    )
    links = short.number_of_edges()
    assert 4 < long.number_of_edges() / links < 9
    high = [v for v in short if short.degree(v) > 2]
    assert all(long.degree(v) >= short.degree(v) for v in high)
    assert {v for v in long if long.degree(v) > 2} <= {*short}
    assert max(dict(contracted(long).degree).values()) == max(dict(long.degree).values())


def test_chains_of_a_road_keep_its_junctions():
    short, long = (
        to_networkx(generators.road(15, chain, seed=5, backend="cpu"), directed=False)
        for chain in (1, 5)
    )
    for v in short:
        assert long.degree(v) == short.degree(v)
    assert nx.number_connected_components(long) == nx.number_connected_components(short)
    one, other = contracted(short), contracted(long)
    assert sorted(one.edges()) == sorted(other.edges())


def test_hubs_have_half_of_the_leaves_each():
    A = generators.hubs(800, 6, backend="cpu")
    graph = to_networkx(A, directed=False)
    assert nx.is_tree(graph)
    degrees = [graph.degree(v) for v in range(6)]
    assert all(1.4 < one / other < 2.9 for one, other in pairwise(degrees[:3]))
    assert max(graph.degree(v) for v in range(6, 800)) == 1
    assert max(nx.single_source_shortest_path_length(graph, 0).values()) == 6
    assert (
        to_networkx(generators.hubs(5, 5, backend="cpu"), directed=False).edges
        == nx.path_graph(5).edges
    )
    with pytest.raises(InvalidValue, match="hubs"):
        generators.hubs(3, 4)


SIZES = {
    "grid2d": (12, 11), "path": 100, "cycle": 100, "star": 100, "complete": 100, "gnm": (90, 99),
    "mycielskian": 7, "kronecker": (7, 2), "uniform": (7, 2), "road": (12, 3), "chains": (4, 90),
    "hubs": (100, 8), "delaunay": 7,
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_numbers_of_numpy_too(name):
    """Of INT8, in which neither the counts of edges nor the bytes of a graph fit."""
    make = getattr(generators, name)
    numbers = np.atleast_1d(SIZES[name]).tolist()
    assert make(*map(np.int8, numbers), backend="cpu").isequal(make(*numbers, backend="cpu"))


@pytest.mark.parametrize("name", ["gnm", "kronecker", "uniform", "road", "chains", "hubs"])
@pytest.mark.parametrize("seed", [None, -1, 1.5, [1, 2]])
def test_a_seed_is_a_number(name, seed):
    """For None NumPy draws another graph for each piece of a grid."""
    make, numbers = getattr(generators, name), np.atleast_1d(SIZES[name]).tolist()
    with pytest.raises(InvalidValue, match=r": seed .* is not"):
        make(*numbers, seed=seed, backend="grid:2:cpu")


def test_road_is_a_grid_without_a_fifth_of_its_links():
    grid, road = generators.grid2d(60, 60, backend="cpu"), generators.road(60, backend="cpu")
    links = to_scipy(grid) > to_scipy(road)
    assert links.nnz == grid.nvals - road.nvals
    assert links.nnz / grid.nvals == pytest.approx(0.2, abs=0.03)


def test_delaunay_is_planar():
    G = to_networkx(generators.delaunay(8, backend="cpu"), directed=False)
    assert nx.is_planar(G)
    assert nx.is_connected(G)
    assert G.number_of_edges() > 2 * 256


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("foo:3", r"no graph 'foo:3'. Use one of kron:S or kron:S:E, .*complete:N"),
        ("kron", "'kron' does not have the form kron:S or kron:S:E"),
        ("kron:", "'kron:' does not have the form kron:S"),
        ("kron:x", "'kron:x' does not have the form kron:S"),
        ("kron:-1", "'kron:-1' does not have the form kron:S"),
        ("kron:4:4:4", "does not have the form kron:S"),
        ("grid:30", "'grid:30' does not have the form grid:RxC"),
        ("kron:99", r"scale 99 is not in 0 \.\. 60"),
        ("kron:4:0", "edge_factor 0 is not >= 1"),
        ("path:0", "n 0 is not >= 1"),
        ("gnm:3:7", r"m 7 is not in 0 \.\. 6"),
        ("gnm:3", "'gnm:3' does not have the form gnm:N:M. Write gnm:128:2874"),
        ("cycle:2", "n 2 is not >= 3"),
        ("delaunay:1", r"scale 1 is not in 2 \.\. 31"),
        ("mycielskian:1", r"k 1 is not in 2 \.\. 60"),
        ("path:" + "9" * 5000, r"does not have the form path:N"),
    ],
)
def test_wrong_specs(spec, message):
    with pytest.raises(InvalidValue, match=message):
        from_spec(spec, backend="cpu")


@pytest.mark.parametrize(
    "spec",
    [
        "kron:40",
        "kron:31:1000000",
        "urand:40",
        "road:10000000",
        "road:30000:9",
        "chains:27:90",
        "hubs:90000000000",
        "gnm:99999999:999999999999",
        "gnm:9999999:9999999999999",
        "grid:99999999x99999999",
        "mycielskian:60",
        "path:99999999999999999999",
        "complete:100000000",
    ],
)
def test_graphs_too_large_for_memory_are_refused_at_once(spec):
    with pytest.raises(OutOfMemory, match=r"needs [0-9,.]+ GB, [0-9,.]+ GB free"):
        from_spec(spec, backend="cpu")


@pytest.mark.parametrize("value", [2.0, "3", None])
def test_sizes_are_whole_numbers(value):
    with pytest.raises(InvalidValue, match="is not a whole number"):
        generators.kronecker(value, backend="cpu")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kron:16", True),
        ("kron16", True),
        ("kron16e8", True),
        ("grid3x4", True),
        ("kron16.mtx", False),
        ("kron16e", False),
        ("./kron16", False),
        ("kron:oops", True),
        ("foo:16", True),
        ("grid:3x4", True),
        ("kron", False),
        ("a.mtx", False),
        ("C:16", False),
        ("folder/kron:16", False),
        ("http://x", False),
    ],
)
def test_is_spec(text, expected):
    assert is_spec(text) is expected


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("kron6", "kron:6"),
        ("kron6e4", "kron:6:4"),
        ("urand6e4", "urand:6:4"),
        ("road5", "road:5"),
        ("grid3x4", "grid:3x4"),
        ("path9", "path:9"),
    ],
)
def test_names_of_benchmarks_are_specs(name, spec):
    A, B = (
        from_spec(text, seed=1 if name[0] != "g" else None, backend="cpu") for text in (name, spec)
    )
    assert A.isequal(B)


def test_duplicates_across_chunks_are_dropped(monkeypatch):
    monkeypatch.setattr("lagpu.io.csc._CHUNK", 2)
    u, v = np.array([0, 1, 0, 1, 2, 2, 1]), np.array([1, 0, 1, 0, 1, 2, 2])
    csc = undirected(u, v, 3)
    assert csc.col_ptr.tolist() == [0, 1, 3, 4]
    assert csc.row_idx.tolist() == [1, 0, 2, 1]


def test_column_blocks_cover_all_columns_once():
    col_ptr = np.cumsum([0, 3, 0, 10, 1, 1, 0, 0])
    for size in (1, 2, 4, 100):
        blocks = list(column_blocks(col_ptr, size))
        assert blocks[0][0] == 0
        assert blocks[-1][1] == 7
        assert all(a[1] == b[0] for a, b in pairwise(blocks))
    assert list(column_blocks(np.zeros(4, int))) == [(0, 3)]


# ----------------------------------------------------------------------------------- memory
def test_available_bytes_obeys_control_groups(tmp_path, monkeypatch):
    for name in ("meminfo", "self_cgroup"):
        monkeypatch.setattr(
            memory, {"meminfo": "_MEMINFO"}.get(name, "_MEMBERSHIP"), tmp_path / name
        )
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "groups")
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 64 kB\n")
    assert memory.available_bytes() == 64 * 1024

    def group(folder, *files):
        (tmp_path / "groups" / folder).mkdir(parents=True, exist_ok=True)
        for name, content in files:
            (tmp_path / "groups" / folder / name).write_text(content)

    (tmp_path / "self_cgroup").write_text("0::/job/step\n")
    group("job/step", ("memory.max", "max\n"), ("memory.current", "5\n"), ("memory.stat", ""))
    assert memory.available_bytes() == 64 * 1024
    stat = ("memory.stat", "anon 7\ninactive_file 500\n")
    group("job", ("memory.max", "9000\n"), ("memory.current", "2000\n"), stat)  # of the parent
    assert memory.available_bytes() == 9000 - 2000 + 500

    (tmp_path / "self_cgroup").write_text("4:cpu:/x\n3:memory:/x\n")
    stat = ("memory.stat", "total_inactive_file 100\n")
    limits = ("memory.limit_in_bytes", "3000\n"), ("memory.usage_in_bytes", "1000\n")
    group("memory", *limits, stat)  # a container that sees only its own group, at the root
    assert memory.available_bytes() == 2100


def test_require(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 9_100_000_000)
    memory.require(9_100_000_000, "bfs")
    with pytest.raises(OutOfMemory, match=r"^bfs: needs 12\.4 GB, 9\.1 GB free\. Use sim\.$"):
        memory.require(12_400_000_000, "bfs", "Use sim.")


def test_more_vertices_than_32_bits_number(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**15)
    with pytest.raises(NotSupported, match=r"4294967296 vertices > 2\*\*31"):
        from_spec("kron:32:1", backend="cpu")
