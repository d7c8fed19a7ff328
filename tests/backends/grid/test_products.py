"""Products on rows and columns of pieces: who sends what, and what a sum may choose."""

import numpy as np
import pytest
from grids import Few, own_grid
from samples import sampled

import lagpu
from lagpu import FP64, INT64, Matrix, Vector, binary, generators, monoid, semiring

GRIDS = [(3, 1), (1, 3), (2, 2), (2, 3), (3, 2), (4, 4)]
SHAPES = [(n, m) for n in (1, 5, 12, 40) for m in (1, 5, 12, 40)]


def random_matrix(place, rows, cols, seed=0):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, rows, 60), rng.integers(0, cols, 60)
    return Matrix.from_coo(
        i, j, rng.integers(1, 9, 60), INT64, nrows=rows, ncols=cols, dup_op="min", backend=place
    )


def entries(x):
    return x.shape, [part.tolist() for part in x.to_coo()]


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("grid", "m", "k", "n"),
    sampled([(grid, m, k, n) for grid in GRIDS for m, k in SHAPES for n in (1, 5, 12, 40)], 17),
)
def test_products_of_matrices_of_every_shape(grid, m, k, n):
    """Cut by columns or by both, on either side and in the result."""

    def products(place):
        A, B = random_matrix(place, m, k, 1), random_matrix(place, k, n, 2)
        S, T = random_matrix(place, k, m, 3), random_matrix(place, n, k, 4)
        C = random_matrix(place, m, n, 5)
        C(C.S, accum=binary.plus) << semiring.plus_times(A @ B)
        for op in (semiring.plus_times, semiring.min_firsti, semiring.max_secondj):
            yield from (op(A @ B).new(), op(S.T @ B).new(), op(A @ T.T).new())
        yield from (semiring.min_firstj(A @ B).new(), semiring.min_secondi(S.T @ T.T).new(), C)

    place, _ = own_grid(grid)
    assert [entries(x) for x in products(place)] == [entries(x) for x in products("cpu")]


@pytest.mark.parametrize("grid", GRIDS)
def test_a_piece_sends_to_its_row_and_its_column_alone(grid):
    rows, columns = grid
    place, _ = own_grid(grid)
    o = Few(place, 900)
    engine = place.pieces.engine
    semiring.plus_times(o.full @ o.A).new()
    most = rows + columns - 2
    assert [len(partners) for partners in engine.partners] == [most] * engine.size
    semiring.plus_times(o.full @ o.A.T).new()
    semiring.any_secondi(o.Q @ o.A).new()
    o.A.reduce_rowwise("plus").new()
    o.A.reduce_columnwise("plus").new()
    if columns > 1:  # else the transpose is sent
        assert [len(partners) for partners in engine.partners] == [most] * engine.size
    else:
        assert o.A.data.transpose is not None


@pytest.mark.parametrize("grid", GRIDS)
def test_what_a_product_sends(grid):
    """The table of docs/design/grid.md."""
    rows, columns = grid
    place, _ = own_grid(grid)
    o, engine = Few(place, 900), place.pieces.engine
    before = engine.sent
    w = semiring.plus_times(o.full @ o.A).new()
    sent = engine.sent - before
    own = [place.pieces.partition(900).count(p) for p in range(engine.size)]
    expanded = (rows - 1) * sum(-(-count // 8) + 8 * count for count in own)
    folded_at_most = 12 * w.nvals * (columns - 1)
    assert expanded + (columns > 1) <= sent <= expanded + folded_at_most


@pytest.mark.each_value
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("n", [1, 7, 33, 200])
def test_parents_are_neighbours_in_the_frontier(grid, n):
    """Of what several pieces have chosen one is taken, with the source's own number."""
    place, _ = own_grid(grid)
    A, q = Few(place, n).A, Few(place, n).u
    edges = set(zip(*(x.tolist() for x in A.to_coo()[:2]), strict=True))
    frontier = set(q.to_coo()[0].tolist())
    for found, edge in (
        (semiring.any_secondi(q @ A).new(), lambda target, source: (source, target)),
        (semiring.any_firstj(q @ A).new(), lambda target, source: (source, target)),
        (semiring.any_secondi(A @ q).new(), lambda target, source: (target, source)),
    ):
        targets, parents = (x.tolist() for x in found.to_coo())
        reached = [t for t in range(n) if any(edge(t, s) in edges for s in frontier)]
        assert targets == reached
        assert all(edge(t, s) in edges for t, s in zip(targets, parents, strict=True))
        assert frontier.issuperset(parents)


def test_of_several_choices_that_of_the_first_piece_counts():
    place, _ = own_grid((1, 3))
    everywhere = np.divmod(np.arange(36 * 36), 36)
    A = Matrix.from_coo(*everywhere, True, nrows=36, ncols=36, backend=place)
    q = Vector.from_dense(np.ones(36, bool), backend=place)
    parents = semiring.any_secondi(q @ A).new().to_coo()[1]
    assert set(place.pieces.partition(36).owner(parents).tolist()) == {0}
    assert set(A.reduce_columnwise("any").new().to_coo()[1].tolist()) == {True}


def test_sums_of_partial_results_are_the_same_bits_on_every_run():
    rng = np.random.default_rng(3)
    i, j = rng.integers(0, 60, (2, 900))
    place, _ = own_grid((2, 3))
    A = Matrix.from_coo(
        i,
        j,
        rng.random(900) * 10.0 ** rng.integers(-9, 9, 900),
        FP64,
        nrows=60,
        ncols=60,
        dup_op=binary.first,
        backend=place,
    )
    u = Vector.from_dense(rng.random(60), backend=place)
    first, *others = [semiring.plus_times(u @ A).new().to_coo()[1] for _ in range(3)]
    assert all(x.tobytes() == first.tobytes() for x in others)
    dense = np.zeros((60, 60))
    rows, cols, values = A.to_coo()
    dense[rows, cols] = values
    found = semiring.plus_times(u @ A).new().to_dense(fill_value=0)
    assert np.allclose(found, u.to_dense() @ dense)


@pytest.mark.parametrize("add", ["any", "lor", "lxor", "min", "times"])
def test_sums_over_rows_and_columns(add):
    place, _ = own_grid((2, 3))
    op = getattr(monoid, add)
    for shape in ((33, 33), (3, 40), (40, 3)):
        x = random_matrix(place, *shape)
        for by in ("reduce_rowwise", "reduce_columnwise"):
            found, wanted = (getattr(y, by)(op).new().to_coo() for y in (x, x.to("cpu")))
            assert found[0].tolist() == wanted[0].tolist()
            if add != "any":
                assert found[1].tolist() == wanted[1].tolist()


@pytest.mark.parametrize("grid", ["2", "2x2"])
def test_the_second_product_of_a_part_looks_at_the_entries_of_its_vector(grid):
    """It makes the form that a push needs; without it each level of a search looks at all."""
    with lagpu.grid(grid, "sim"):
        A = generators.grid2d(12, 12)
    with lagpu.trace() as t:
        for vertex in (13, 14, 15):
            u = Vector.from_coo([vertex], True, size=144, backend=A.backend)
            semiring.any_pair(u @ A).new()
    assert [row.edges for row in t.rows if row.direction] == [A.nvals, 4, 4]
