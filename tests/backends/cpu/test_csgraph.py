"""Long loops as one call of csgraph: every vector is as the statements leave it, or they run."""

import numpy as np
import pytest

import lagpu
from lagpu import (
    BOOL,
    FP64,
    INT32,
    INT64,
    Matrix,
    Vector,
    algorithms,
    binary,
    check,
    loop,
    semiring,
    sweep,
)
from lagpu.backends.cpu import csgraph

BY_ITSELF = "eager: this backend runs each statement by itself"
PLACE = lagpu.backends.get("cpu")
N = 90


@pytest.fixture(autouse=True, params=[0, 3])
def least(request, monkeypatch):
    """Loops are long from the first iteration on, or from the fourth."""
    monkeypatch.setattr(csgraph, "SMALL", 0)
    monkeypatch.setattr(csgraph, "LEAST", request.param)
    return request.param


def graph(kind, seed=0):
    """Long graphs, with isolated vertices, self-loops, and edges in one direction alone."""
    rng = np.random.default_rng(seed)
    rows = np.arange(N - 10)
    cols = rows + rng.integers(1, 4, len(rows))
    more = rng.integers(0, N - 10, (2, 8))
    rows, cols = np.r_[rows, more[0], 7], np.r_[cols, more[1] // 2, 7]
    if kind == "undirected":
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    weights = rng.integers(0, 9, len(rows))
    if kind == "floats":
        weights = weights / 7
    return Matrix.from_coo(rows, cols, weights, nrows=N, ncols=N, dup_op=binary.min, backend="cpu")


KINDS = ("directed", "undirected", "floats")


def entries(x):
    return [a.tolist() for a in x.to_coo()]


def as_statements(program, ran, rounded=False):
    """Run a program as a whole and by statements; all vectors that it returns must be equal."""
    PLACE.last_loop = ""
    found = program()
    assert PLACE.last_loop.startswith(f"SciPy {ran}: "), PLACE.last_loop
    with lagpu.eager():
        expected = program()
        assert PLACE.last_loop == BY_ITSELF
    for x, y in zip(found, expected, strict=True):
        if rounded:
            assert entries(x)[0] == entries(y)[0]
            np.testing.assert_allclose(x.to_coo()[1], y.to_coo()[1], rtol=1e-13)
        else:
            assert entries(x) == entries(y), (x.name, entries(x), entries(y))


def start(A, dtype=BOOL, at=(2,), values=True):
    frontier = Vector.from_coo(at, values, dtype, size=N, like=A, name="frontier")
    return Vector(INT32, N, like=A, name="levels"), frontier


def along(A, at):
    levels, frontier = start(A, at=at)
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    return levels, frontier


def against(A, at):
    levels, frontier = start(A, at=at)
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(A @ frontier)
    return levels, frontier


def product_first(A, at):
    levels, frontier = start(A, INT64, at=at, values=5)
    seen = Vector(BOOL, N, like=A)
    seen[at] = True
    for depth in loop(until_empty=frontier):
        frontier(~seen.S, replace=True) << semiring.min_pair(A @ frontier)
        levels(frontier.S) << depth
        seen(frontier.S) << 1
    return levels, seen, frontier


def values(A, at):
    levels, frontier = start(A, INT32, at=at, values=7)
    kept = Vector(FP64, N, like=A)
    for _ in loop(until_empty=frontier):
        levels(frontier.S) << 3
        kept(frontier.S) << frontier
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    return levels, kept, frontier


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [[12], [12, 40, 60]])
@pytest.mark.parametrize("program", [along, against, product_first, values])
def test_searches(program, kind, at):
    A = graph(kind)
    as_statements(lambda: program(A, at), "breadth_first_order")


def back_to_the_first(A, at):
    levels, frontier = start(A, at=at)
    for depth in loop(until_empty=frontier):
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
        levels(frontier.S) << depth
    return levels, frontier


@pytest.mark.parametrize("at", [[12], [12, 13, 60]])
def test_a_search_that_may_find_where_it_begins(at):
    A = graph("undirected")
    for _ in range(2):  # once it is known as one of many levels
        found = back_to_the_first(A, at)
        with lagpu.eager():
            for x, y in zip(found, back_to_the_first(A, at), strict=True):
                assert entries(x) == entries(y)


@pytest.mark.parametrize("kind", KINDS)
def test_vertices_of_the_mask_are_not_entered_and_keep_their_values(kind):
    A = graph(kind)

    def program():
        levels, _ = start(A)
        levels[[4, 5, 30, 31]] = 77
        paths = Vector(FP64, N, like=A)
        count = Vector.from_coo([2, 50], [2, 3], FP64, size=N, like=A)
        for depth in loop(until_empty=count):
            levels(count.S) << depth
            paths(count.S) << count
            count(~levels.S, replace=True) << semiring.plus_first(count @ A)
        return levels, paths, count

    as_statements(program, "breadth_first_order")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("back", [False, True])
def test_parents_are_one_level_above(kind, back):
    A = graph(kind)
    A = A.T.new() if back else A
    for source in (20, 40):
        parents = algorithms.bfs_parents(A, source)
        assert PLACE.last_loop.startswith("SciPy breadth_first_order: ")
        assert check.check_parents(A, source, parents)
        levels, parents = algorithms.bfs(A, source)
        assert check.check_parents(A, source, parents, levels)
        with lagpu.eager():
            assert entries(algorithms.bfs_levels(A, source)) == entries(levels)


def test_numbers_of_paths_beyond_integers_are_cast_by_statements():
    """A ladder of 64 steps has 2**64 paths to its last step."""
    steps = np.arange(64)
    rows = np.r_[3 * steps, 3 * steps, 3 * steps + 1, 3 * steps + 2]
    cols = np.r_[3 * steps + 1, 3 * steps + 2, 3 * steps + 3, 3 * steps + 3]
    A = Matrix.from_coo(rows, cols, True, nrows=193, ncols=193, backend="cpu")

    def counted():
        counts, frontier = Vector(INT64, 193, like=A), Vector(FP64, 193, like=A)
        frontier[0] = 1
        for _ in loop(until_empty=frontier):
            counts(frontier.S) << frontier
            frontier(~counts.S, replace=True) << semiring.plus_first(frontier @ A)
        return entries(counts)

    found = counted()
    assert found[1][-1] == 2**63 - 1
    with lagpu.eager():
        assert counted() == found


def test_the_counter_is_kept():
    A, last = graph("directed"), {}
    text = (
        "for depth in loop(until_empty=frontier):\n"
        "    levels(frontier.S) << depth\n"
        "    frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)\n"
    )
    import linecache

    for name, lines in (("whole", text), ("printed", text + "    print(end='')\n")):
        linecache.cache[name] = (len(lines), None, lines.splitlines(True), name)
        levels, frontier = start(A)
        space = {"loop": loop, "semiring": semiring, "A": A, "levels": levels, "frontier": frontier}
        exec(compile(lines, name, "exec"), space)
        last[name] = int(space["depth"])
        assert PLACE.last_loop.startswith("SciPy") == (name == "whole")
    assert last["whole"] == last["printed"]


def relax(A, numbers, known=(), times=N + 1, marks=()):
    kind = FP64 if A.dtype.is_float else INT64

    def program():
        distances, nearer = Vector(kind, N, like=A), Vector(kind, N, like=A)
        for v, number in known:
            distances[v] = number
        for v, number in numbers:
            nearer[v] = number
        worse = Vector.from_coo(list(marks), True, BOOL, size=N, like=A)
        for _ in loop(until_empty=nearer, times=times):
            nearer(~worse.V, replace=True) << nearer
            distances(nearer.S) << nearer
            nearer << semiring.min_plus(nearer @ A)
            worse << nearer.ewise_mult(distances, binary.ge)
        return distances, nearer, worse

    return program


@pytest.mark.parametrize("kind", KINDS)
def test_relaxations(kind):
    A = graph(kind)
    for numbers in ([(2, 0)], [(2, 3)], [(2, 1), (40, 0), (60, 2)]):
        as_statements(relax(A, numbers), "dijkstra")
    with lagpu.eager():
        expected = algorithms.sssp(A, 3)
    assert entries(algorithms.sssp(A, 3)) == entries(expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [0, 2.5, 20, 45])
def test_relaxations_with_a_limit(kind, limit):
    A = graph(kind)
    most = limit if kind == "floats" else int(limit)

    def program():
        distances, nearer = (Vector(FP64 if A.dtype.is_float else INT64, N, like=A) for _ in "dn")
        worse = Vector(BOOL, N, like=A)
        nearer[12] = 0
        for _ in loop(until_empty=nearer):
            nearer(~worse.V, replace=True) << nearer
            nearer << nearer.select("valuele", most)
            distances(nearer.S) << nearer
            nearer << semiring.min_plus(nearer @ A)
            worse << nearer.ewise_mult(distances, binary.ge)
        return distances, nearer, worse

    found = program()
    with lagpu.eager():
        assert [*map(entries, found)] == [*map(entries, program())]
        expected = algorithms.sssp(A, 12).select("valuele", most).new()
    if limit > 10:
        as_statements(program, "dijkstra")
    assert entries(algorithms.sssp(A, 12, limit=limit)) == entries(expected)


def test_what_no_relaxation_has_left_is_left_to_the_statements(least):
    """A number that was not relaxed, or a mark that does not fit, changes what a loop finds."""
    A = graph("directed")
    for more in ({"known": [(3, 1)]}, {"marks": [2]}, {"marks": [2, 40]}):
        program = relax(A, [(2, 0), (40, 0)], **more)
        found = program()
        whole = PLACE.last_loop
        with lagpu.eager():
            assert [*map(entries, found)] == [*map(entries, program())], more
        assert least or whole == BY_ITSELF


def test_what_csgraph_cannot_runs_by_statements():
    A = graph("directed")

    def one_statement():
        v = Vector.from_dense(np.arange(N), like=A)
        for _ in loop(until_empty=v, times=30):
            v << semiring.max_first(v @ A)
        return (v,)

    def ewise():
        v, w = Vector.from_dense(np.arange(N), like=A), Vector(INT64, N, like=A)
        for _ in loop(until_unchanged=v):
            w << semiring.min_first(v @ A)
            v(accum=binary.min) << w
        return v, w

    negative = A.dup()
    negative << A.apply("minus", right=4)
    negative = negative.select("triu", 1).new()
    large = A.apply("times", right=2**50).new()
    wide = A.apply("times", right=1e300).new(FP64)
    for program in (
        relax(negative, [(2, 0)]),
        relax(large, [(2, 0)]),
        relax(wide.apply("times", right=1e8).new(), [(2, 0)]),
        relax(A, [(2, -999)]),
        relax(A, [(2, 0)], times=7),
        lambda: (algorithms.neighborhood(A, 2, 9),),
        lambda: (algorithms.delta_stepping(A, 2),),
        one_statement,
        ewise,
    ):
        found = program()
        assert PLACE.last_loop == BY_ITSELF
        with lagpu.eager():
            assert [*map(entries, found)] == [*map(entries, program())]


def label(A, labels):
    A = A.apply("one").new()  # values of an edge and its reverse may differ

    def program():
        parents = Vector.from_coo(range(N), labels, INT32, size=N, like=A, name="parents")
        P, grand = parents.selection(), parents.dup(name="grand")
        least = Vector(INT32, N, like=A, name="least")
        for _ in loop(until_unchanged=parents):
            grand << semiring.min_first(parents @ P)
            least << semiring.min_first(grand @ A)
            parents(accum=binary.min) << semiring.min_second(P @ least)
            parents(accum=binary.min) << least
            parents(accum=binary.min) << grand
        return parents, grand, least

    return program


def test_components():
    A = graph("undirected")
    apart = A.select("rowle", 40).new().select("colle", 40).new()
    for B in (A, apart):
        as_statements(label(B, range(N)), "connected_components")
        assert check.check_components(B, algorithms.connected_components(B))
    nearest = np.arange(N)
    nearest[[6, 9, 12]] = 3
    as_statements(label(A, nearest), "connected_components")


def test_labels_of_other_components_are_left_to_the_statements():
    A = graph("undirected")
    labels = np.arange(N)
    labels[20] = N - 1  # isolated, and larger
    for program in (label(A, labels), label(graph("directed"), range(N))):
        found = program()
        assert PLACE.last_loop == BY_ITSELF
        with lagpu.eager():
            assert [*map(entries, found)] == [*map(entries, program())]


def counted_along(A, at):
    levels, paths = Vector(INT32, N, like=A), Vector(FP64, N, like=A, name="paths")
    frontier = Vector.from_coo(at, [1, 2], FP64, size=N, like=A)
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        paths(frontier.S) << frontier
        frontier(~levels.S, replace=True) << semiring.plus_first(frontier @ A)
    return levels, paths


def counted_against(A, at):
    levels, paths = Vector(INT32, N, like=A), Vector(FP64, N, like=A, name="paths")
    frontier = Vector.from_coo(at, [1, 2], FP64, size=N, like=A)
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        paths(frontier.S) << frontier
        frontier(~levels.S, replace=True) << semiring.plus_second(A @ frontier)
    return levels, paths


def vectors_of_sweep(A, paths):
    delta, share, pulled = (Vector(FP64, N, like=A, name=x) for x in ("delta", "share", "pulled"))
    delta(paths.S) << 0
    delta(paths.S, accum=binary.plus) << paths.select("valuegt", 2).new()
    return delta, share, pulled


def swept_along(A, levels, paths):
    delta, share, pulled = vectors_of_sweep(A, paths)
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta.apply(binary.plus, right=1)
        share(here.S) << share.ewise_mult(paths, binary.truediv)
        pulled(above.S, replace=True) << semiring.plus_first(share @ A.T)
        delta(accum=binary.plus) << pulled.ewise_mult(paths, binary.times)
    return delta, share, pulled


def swept_against(A, levels, paths):
    delta, share, pulled = vectors_of_sweep(A, paths)
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta.apply(binary.plus, right=1)
        share(here.S) << share.ewise_mult(paths, binary.truediv)
        pulled(above.S, replace=True) << semiring.plus_first(share @ A)
        delta(accum=binary.plus) << pulled.ewise_mult(paths, binary.times)
    return delta, share, pulled


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("count", "program", "at"),
    [(counted_along, swept_along, [1, 33]), (counted_against, swept_against, [70, 33])],
)
def test_sweeps(kind, count, program, at):
    """Also where the levels are of the search before, which keeps its edges, and of another one."""
    A = graph(kind)
    as_statements(lambda: count(A, at), "breadth_first_order")
    levels, paths = count(A, at)
    for _ in range(2):
        as_statements(lambda: program(A, levels, paths), "spsolve_triangular", rounded=True)
    count(A, [20, 50])
    as_statements(lambda: program(A, levels, paths), "spsolve_triangular", rounded=True)


def test_betweenness(least):
    A = graph("directed")
    found = algorithms.betweenness_centrality(A, 9, seed=4)
    assert least or PLACE.last_loop.startswith("SciPy spsolve_triangular")
    with lagpu.eager():
        expected = algorithms.betweenness_centrality(A, 9, seed=4, batch=2)
    np.testing.assert_allclose(found.to_dense(), expected.to_dense(), rtol=1e-12)


def test_other_sweeps_run_by_statements():
    """Levels of other vertices than the paths, and another body."""
    A = graph("directed")
    levels, paths = counted_along(A, [1, 33])
    more = levels.dup()
    more[N - 1] = 2

    def doubled():
        v = Vector(FP64, N, like=A)
        for here, _above in sweep(levels):
            v(here.S) << paths.apply("times", right=2)
        return (v,)

    for program in (lambda: swept_along(A, more, paths), doubled):
        found = program()
        assert PLACE.last_loop == BY_ITSELF
        with lagpu.eager():
            assert [*map(entries, found)] == [*map(entries, program())]


@pytest.mark.parametrize("number", [0.0, float("inf")])
def test_sweeps_of_numbers_that_are_not_finite_run_by_statements(number):
    A = graph("directed")
    levels, paths = counted_along(A, [1, 33])
    paths(paths.select("valuege", 2).new().S) << number
    found = swept_along(A, levels, paths)
    assert PLACE.last_loop.startswith("eager")
    with lagpu.eager():
        expected = swept_along(A, levels, paths)
    for x, y in zip(found, expected, strict=True):
        assert entries(x)[0] == entries(y)[0]
        np.testing.assert_array_equal(x.to_coo()[1], y.to_coo()[1])


def test_a_matrix_that_changed_is_read_anew():
    A = graph("directed")
    algorithms.bfs_levels(A, 0)
    assert A.data.long
    A << A.select("triu", 3).new()
    assert not A.data.long
    assert check.check_levels(A, 0, algorithms.bfs_levels(A, 0))


def test_traces_crosschecks_and_policies_run_statements():
    A = graph("undirected")
    for kind in (algorithms.bfs_levels, algorithms.sssp):
        with lagpu.trace() as t:
            kind(A, 0)
        assert PLACE.last_loop == BY_ITSELF
        assert len(t.rows) > 20
    A = A.apply("one").new()
    assert lagpu.crosscheck(algorithms.bfs_levels, A, 0, backends=("cpu", "sim")).loops
    with lagpu.fused():
        algorithms.bfs_levels(A, 0)
        assert PLACE.last_loop == BY_ITSELF


def test_an_interrupt_leaves_whole_iterations(monkeypatch, least):
    """Nothing is written before everything is found."""
    A = graph("undirected")

    def interrupted(*_):
        raise KeyboardInterrupt

    for place, program in (
        ("ordered", lambda: along(A, [12])),
        ("_distances", relax(A, [(12, 0)])),
        ("_labels", label(A, range(N))),
    ):
        monkeypatch.setattr(csgraph, place, interrupted)
        with pytest.raises(KeyboardInterrupt):
            program()
    levels, frontier = start(A, at=[12])
    assert stopped(A, levels, frontier)
    assert set(levels.to_coo()[1]) == set(range(least))


def stopped(A, levels, frontier):
    try:
        for depth in loop(until_empty=frontier):
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    except KeyboardInterrupt:
        return True
    return False


def test_small_graphs_and_short_loops_run_by_statements(monkeypatch):
    A = graph("undirected")
    monkeypatch.setattr(csgraph, "LEAST", 1000)
    algorithms.bfs_levels(A, 0)
    assert PLACE.last_loop == BY_ITSELF
    monkeypatch.setattr(csgraph, "LEAST", 0)
    monkeypatch.setattr(csgraph, "SMALL", 1000)
    algorithms.connected_components(A)
    assert PLACE.last_loop == BY_ITSELF
