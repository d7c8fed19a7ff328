"""A grid does what its local backend does, in any number of pieces, and all of it or nothing."""

import numpy as np
import pytest
from faults import STATEMENTS, Objects
from grids import Few, own_grid, plain
from samples import sampled

import lagpu
from lagpu import (
    BOOL,
    FP32,
    FP64,
    INT32,
    INT64,
    Matrix,
    Vector,
    algorithms,
    backends,
    binary,
    indexunary,
    monoid,
    semiring,
)
from lagpu.backends.cpu import csgraph
from lagpu.errors import BackendMismatch, InvalidValue, NotSupported, OutOfMemory
from lagpu.generators.load import load

ERRORS = [OutOfMemory("a piece is full"), KeyboardInterrupt()]
PIECES = [1, 2, 3, 5]
GRIDS = [(1, 2), (2, 1), (2, 2), (2, 3), (4, 4)]  # rows and columns of pieces
CASES = [
    *((p, n) for p in PIECES for n in (0, 2, 33)),  # with pieces that own nothing
    *((3, n) for n in (1, 31, 32, 65, 1025)),
    (40, 33),
    *((grid, n) for grid in GRIDS for n in (0, 2, 33)),
    *(((2, 3), n) for n in (1, 31, 65, 1025)),
]


@pytest.fixture(
    params=[*((p, False) for p in (*PIECES, (1, 2), (2, 3))), (3, True), ((2, 3), True)]
)
def place(request):
    return own_grid(*request.param)[0]


def _assigned(o):
    o.w(~o.t.S, accum=binary.plus)[o.shuffled] << o.u
    o.v(o.t.V, replace=True)[o.some] << o.u[o.some]
    o.u[o.some] << 7
    return o.w, o.v, o.u


def _assigned_blocks(o):
    C, D, E = o.A.dup(), o.A.dup(), o.A.dup()
    C[o.some, o.some] << o.B[o.some, o.some]
    D(o.B.S, accum=binary.plus)[:, o.shuffled] << o.B
    E(~o.B.S, replace=True)[o.some, :] << 5
    return C, D, E


def _changed(o):
    if o.n:
        o.u[o.n - 1], o.u[0] = 3, 4
        del o.u[o.n // 2]
    o.v.resize(o.n + 40)
    o.w.resize(o.n // 3)
    o.t.clear()
    return o.u, o.v, o.w, o.t


def _elements(o):
    vectors = [o.u.get(i, None) for i in range(min(o.n, 40))]
    return vectors, [o.A.get(i, 0, None) for i in range(min(o.n, 40))], o.A.nvals, o.u.nvals


def _written(o):
    C = o.A.dup()
    C(o.B.V, accum=binary.plus) << semiring.plus_times(o.A @ o.B)
    o.w(o.t.V, accum=binary.min) << semiring.min_plus(o.u @ o.A)
    o.v(~o.t.S, replace=True) << semiring.plus_times(o.A @ o.u)
    return C, o.w, o.v


def _positional(o):
    names = ("firsti", "firstj", "secondi", "secondj")
    for add in ("min", "plus"):
        for op in (getattr(semiring, f"{add}_{name}") for name in names):
            yield from (op(o.u @ o.A).new(), op(o.A @ o.u).new(), op(o.L @ o.u).new())
            yield from (op(o.short @ o.L).new(), op(o.Q @ o.A).new(), op(o.Q @ o.L.T).new())
            yield from (op(o.u @ o.f.selection()).new(), op(o.u @ o.f.selection().T).new())


def _selected(o):
    for name in ("tril", "triu", "diag", "offdiag", "rowle", "colgt", "valuegt"):
        yield o.A.select(name, 1).new()
        yield o.L.select(name, 1).new()
    for name in ("rowle", "rowgt", "valuene"):
        yield o.u.select(name, 5).new()
    for name in ("rowindex", "colindex", "diagindex"):
        yield o.A.apply(name, 2).new()
    yield o.u.apply("rowindex", 1).new()


#: What each returns is compared with what it returns on cpu.
PROGRAMS = {
    "u @ A": lambda o: (
        semiring.plus_times(o.u @ o.A).new(),
        semiring.min_plus(o.full @ o.A).new(),
    ),
    "A @ u": lambda o: (
        semiring.plus_times(o.A @ o.u).new(),
        semiring.plus_times(o.A.T @ o.u).new(),
    ),
    "rectangular": lambda o: (
        semiring.plus_times(o.L @ o.u).new(),
        semiring.plus_times(o.short @ o.L).new(),
        semiring.plus_times(o.u @ o.L.T).new(),
    ),
    "written": _written,
    "mxm": lambda o: (
        semiring.plus_times(o.Q @ o.A).new(),
        semiring.plus_times(o.Q @ o.A.T).new(),
        semiring.plus_times(o.A.T @ o.B).new(),
        semiring.plus_times(o.L.T @ o.L).new(),
    ),
    "positional": _positional,
    "selection": lambda o: (
        semiring.plus_times(o.u @ o.f.selection()).new(),
        semiring.plus_times(o.u @ o.f.selection().T).new(),
        Matrix(BOOL, o.n, o.n, like=o.u).dup(),
        o.f.selection().new(),
        o.f.selection().T.new(),
    ),
    "ewise": lambda o: (
        o.u.ewise_add(o.v, "minus").new(),
        o.u.ewise_mult(o.v, "times").new(),
        o.u.ewise_union(o.v, "plus", 10, 20).new(),
        o.A.ewise_add(o.B.T, "minus").new(),
        o.A.T.ewise_mult(o.B, "times").new(),
        o.A.ewise_union(o.B, "minus", 1, 2).new(),
    ),
    "apply, select": _selected,
    "assign": _assigned,
    "assign blocks": _assigned_blocks,
    "extract": lambda o: (
        o.u[o.shuffled].new(),
        o.u[o.often].new(),
        o.A[o.often, o.shuffled].new(),
        o.A[o.some, :].new(),
        o.A[:, o.often].new(),
        o.L[:, o.some].new(),
    ),
    "row, column": lambda o: (
        [o.A[:, 0].new(), o.A[0, :].new(), o.L[:, o.n - 1].new(), o.A[o.n - 1, :].new()]
        if o.n
        else []
    ),
    "reduce": lambda o: (
        o.A.reduce_rowwise("plus").new(),
        o.L.reduce_rowwise("min").new(),
        o.L.reduce_columnwise("max").new(),
        o.A.reduce("plus").new(),
        o.u.reduce("min").new(),
        o.u.reduce(monoid.lor).new(),
    ),
    "transpose": lambda o: (o.L.T.new(), o.A.T.new(), o.A.dup(FP64), o.u.dup(BOOL)),
    "diag": lambda o: (
        [o.A.diag(k) for k in (0, 1, -2) if abs(k) < o.n],
        [o.L.diag(1) for _ in range(o.n > 1)],
        [o.u.diag(k) for k in (0, 3, -1)],
    ),
    "change": _changed,
    "elements": _elements,
}


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("name", "pieces", "n"), sampled([(name, *case) for name in PROGRAMS for case in CASES], 5)
)
def test_as_on_cpu(name, pieces, n):
    wanted = plain(PROGRAMS[name](Few("cpu", n)))
    assert plain(PROGRAMS[name](Few(own_grid(pieces)[0], n))) == wanted


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("pieces", "n", "name"),
    sampled([(p, n, k) for p in (1, 3, (2, 3)) for n in (2, 33, 65) for k in PROGRAMS], 5),
)
def test_as_on_cpu_at_random(name, pieces, n):
    wanted = plain(PROGRAMS[name](Few("cpu", n)))
    assert plain(PROGRAMS[name](Few(own_grid(pieces, "random")[0], n))) == wanted


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"positional"}))  # compiles for long
def test_as_on_cpu_in_pieces_on_devices(name):
    wanted = plain(PROGRAMS[name](Few("cpu", 33)))
    assert plain(PROGRAMS[name](Few("grid:2:sim", 33))) == wanted


@pytest.mark.parametrize("pieces", [2, 3])
def test_parts_of_a_bitmap_matrix_are_converted_on_their_devices(pieces):
    """A product by rows takes the transpose, whose entries go from device to device."""
    found = []
    for place in (f"grid:{pieces}:sim", "cpu"):
        A = Matrix.from_coo([0, 1], [2, 69], [2, 3], nrows=2, ncols=70, backend=place)
        u = Vector.from_coo([2, 69], [7, 11], size=70, backend=place)
        found.append(plain(semiring.plus_times(A @ u).new()))
    assert found[0] == found[1]


def test_the_entries_of_a_new_vector_are_known():
    v = Vector(INT64, 9, backend=backends.get("grid:3:cpu"))
    counts = [v.nvals]
    for change in (
        lambda: v.__setitem__(3, 1),
        lambda: v.__setitem__(3, 2),
        lambda: v.__setitem__(4, 2),
        lambda: v.__delitem__(3),
        v.clear,
        lambda: v.__setitem__(5, 2),
        lambda: v(v.S) << 7,
        lambda: v << 7,
    ):
        change()
        counts.append(v.nvals)
    assert counts == [0, 1, 1, 2, 1, 0, 1, 1, 9]


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_piece_is_its_place(name):
    """It runs whole statements, in place; facts about a matrix of before do not hold then."""
    assert plain(PROGRAMS[name](Few("grid:1:cpu", 33))) == plain(PROGRAMS[name](Few("cpu", 33)))
    place = backends.get("grid:1:cpu")
    A = Matrix.from_coo([0, 1], [1, 0], 1.0, nrows=3, ncols=3, backend=place)
    assert A.is_symmetric
    A[0, 2] << 5.0
    assert not A.is_symmetric


@pytest.mark.parametrize(
    ("place", "search", "labels"),
    [("cpu", "eager: ", "SciPy connected_"), ("sim", "grid search: ", "generated loop: ")],
)
def test_one_piece_runs_loops_as_its_place(place, search, labels, monkeypatch):
    """Its results are as those of the place, and it knows their entries."""
    monkeypatch.setattr(csgraph, "SMALL", 0)
    found = []
    for name in (place, f"grid:1:{place}"):
        A, loops = load("kron:9", name), []
        for f in (lambda A: algorithms.bfs_levels(A, 1), algorithms.connected_components):
            v = f(A)
            loops.append(A.backend.last_loop)
            found.append((v.nvals, plain(v)))
        assert loops[0].startswith(search)
        assert loops[1].startswith(labels)
    assert found[:2] == found[2:]


@pytest.mark.parametrize("name", ["u @ A", "A @ u", "written", "mxm", "reduce", "extract"])
def test_as_on_cpu_in_rows_and_columns_of_devices(name):
    wanted = plain(PROGRAMS[name](Few("cpu", 33)))
    assert plain(PROGRAMS[name](Few("grid:2x2:sim", 33))) == wanted


@pytest.mark.each_value
@pytest.mark.parametrize(("m", "n"), [(0, 3), (1, 1), (5, 7)])
def test_kronecker(place, m, n):
    def products(where):
        A = Matrix.from_coo(
            [0] * (m > 0), [n - 1] * (m > 0), 3, INT64, nrows=m, ncols=n, backend=where
        )
        B = Few(where, 4).L
        return [A.kronecker(B, "times").new(), B.T.kronecker(A, "minus").new()]

    assert plain(products(place)) == plain(products("cpu"))


def test_entries_are_spread():
    place, _ = own_grid(3)
    u, A = Vector.from_dense(np.arange(70), backend=place), Few(place, 70).A
    assert [place.pieces.places[p].nvals(u.data.parts[p]) for p in range(3)] == [24, 24, 22]
    assert all(place.pieces.places[p].nvals(A.data.parts[p]) > 9 for p in range(3))


def test_handles_stay():
    place, _ = own_grid(3)
    o = Few(place, 33)
    for x in (o.u, o.A):
        handle = x.data
        x << x.apply("ainv")
        x(accum=binary.plus) << x
        assert x.data is handle


def test_a_transpose_is_made_once_and_forgotten_when_the_matrix_is_written():
    place, _ = own_grid(3)
    A, u = Few(place, 33).A, Few(place, 33).u
    first = semiring.plus_times(A @ u).new()
    turned = A.data.transpose
    again = semiring.plus_times(A @ u).new()
    assert turned is not None
    assert A.data.transpose is turned
    assert first.isequal(again)
    A << A.apply("ainv")
    assert A.data.transpose is None
    assert semiring.plus_times(A @ u).new().isequal(first.apply("ainv").new())


def test_a_symmetric_matrix_is_its_own_transpose():
    place, _ = own_grid(3)
    A = Few(place, 33).A
    S = A.ewise_add(A.T, "plus").new()
    assert not A.is_symmetric
    assert S.is_symmetric
    semiring.plus_times(S @ Few(place, 33).u).new()
    assert S.data.transpose is None


def test_values_are_replaced_in_the_order_in_which_they_are_read(place):
    o = Few(place, 33)
    for x in (o.u, o.A):
        before = [part.tolist() for part in x.to_coo()[:-1]]
        place.set_values(x.data, np.arange(x.nvals))
        *_, values = x.to_coo() if x is o.u else x.to_csc()
        assert values.tolist() == list(range(x.nvals))
        assert [part.tolist() for part in x.to_coo()[:-1]] == before
    assert place.vector_values(o.u.data).tolist() == list(range(o.u.nvals))


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("pieces", "name", "error"),
    [
        *((3, name, error) for name in STATEMENTS for error in ERRORS),
        *(((2, 2), name, ERRORS[1]) for name in STATEMENTS if "product" in name),
    ],
)
def test_a_piece_fails_behind_the_others(name, error, pieces):
    """The last call of a statement fails: what other pieces have made is dropped."""
    place, shared = own_grid(pieces)
    trial = Objects(place)
    before = shared.calls
    STATEMENTS[name](trial)
    calls = shared.calls - before
    o = Objects(place)
    seen = o.seen()
    if not calls:
        return  # one piece alone, or none
    shared.at, shared.error = shared.calls + calls - 1, error
    with pytest.raises(type(error)):
        STATEMENTS[name](o)
    assert o.seen() == seen
    STATEMENTS[name](o)
    assert o.seen() == trial.seen()


def test_sums_are_the_same_bits_on_every_run():
    place, _ = own_grid(3)
    values = np.random.default_rng(1).random(1000).astype(np.float32)
    u = Vector.from_dense(values, backend=place)
    sums = {u.reduce("plus").new().value for _ in range(3)}
    assert len(sums) == 1
    assert sums.pop() == pytest.approx(values.sum(), rel=1e-5)
    assert u.reduce("plus").new().dtype is FP32


@pytest.mark.parametrize("order", [None, "random", "degree"])
def test_dense_vectors_come_and_go(order):
    place, _ = own_grid(3, order)
    values = np.random.default_rng(1).random(1000)
    full = Vector.from_dense(values, backend=place)
    assert full.to_dense().tolist() == values.tolist()
    assert full.to_dense(dtype="INT64").tolist() == [0] * 1000
    kept = Vector.from_dense(values, values[7], backend=place)
    assert kept.to_dense(9).tolist() == [*values[:7], 9, *values[8:]]
    full << 2.5
    assert full.to_dense().tolist() == [2.5] * 1000


def test_algorithms_agree(place):
    A = lagpu.generators.kronecker(7, backend="cpu")
    B = A.to(place)
    assert plain(lagpu.algorithms.bfs_levels(B, 3)) == plain(lagpu.algorithms.bfs_levels(A, 3))
    assert place.last_loop.startswith("eager: ")


def test_a_crosscheck_follows_every_statement():
    A = lagpu.generators.kronecker(6, backend="cpu")
    report = lagpu.crosscheck(
        lagpu.algorithms.betweenness_centrality, A, backends=("cpu", "grid:3:cpu")
    )
    assert report


# -------------------------------------------------------------------------- shown, and measured
@pytest.mark.parametrize("order", [None, "random", "degree"])
def test_shown(order):
    place, _ = own_grid(3, order)
    u = Vector.from_coo([40, 3, 20], [1, 2, 3], INT32, size=70, backend=place)
    A = Few(place, 33).A
    assert "3 entries, 3 pieces, " in repr(u)
    assert "{3: 2, 20: 3, 40: 1}" in repr(u)
    assert repr(A).splitlines()[1:] == repr(A.to("cpu")).splitlines()[1:]
    said = str(lagpu.explain(semiring.plus_times(Few(place, 33).u @ A)))
    assert "each of 3 pieces collects the left operand" in said
    assert "SuiteSparse" in said


def test_a_trace_says_what_was_sent():
    place, _ = own_grid(3)
    o = Few(place, 33)
    with lagpu.trace() as t:
        o.v << semiring.plus_times(o.u @ o.A)
        o.w << semiring.plus_times(o.u @ o.A)
        o.w << o.w.apply("ainv")
    _, product, apply = t.rows
    sent = 2 * (3 * 2 + 8 * o.u.nvals)  # eleven bits a piece, and the values
    assert product.kernel == "SuiteSparse saxpy"
    assert product.reason.startswith(f"3 pieces; {sent} bytes sent; edges")
    assert [phase.name for phase in product.phases] == ["expand", "expansion"]
    assert [(of.form, of.messages) for of in product.phases[0].sent] == [("bitmap", 6)]
    assert product.nvals_out == apply.nvals_in == o.w.nvals
    assert apply.reason == ""
    P = Few("cpu", 33)
    with lagpu.trace() as one:
        P.w << semiring.plus_times(P.u @ P.A)
    assert product.edges == one.rows[0].edges > 0


def test_a_trace_of_rows_and_columns_has_the_products_of_the_pieces():
    place, _ = own_grid((2, 3))
    o, P = Few(place, 33), Few("cpu", 33)
    with lagpu.trace() as t:
        o.w << semiring.plus_times(o.u @ o.A)
    with lagpu.trace() as one:
        P.w << semiring.plus_times(P.u @ P.A)
    (row,) = [row for row in t.rows if row.edges]
    assert row.kernel == "SuiteSparse saxpy"
    assert row.edges == one.rows[0].edges
    assert row.bytes > 0
    assert row.reason.startswith("6 pieces; ")


def test_an_explanation_says_what_a_piece_collects_and_sends():
    o = Few(own_grid((2, 3))[0], 33)
    said = str(lagpu.explain(semiring.plus_times(o.u @ o.A)))
    assert (
        "each of 6 pieces collects one of 3 parts of the left operand, and sends its sums" in said
    )


# ------------------------------------------------------------------------------------- refusals
def test_the_left_operand_must_fit(monkeypatch):
    place, _ = own_grid(3)
    o = Few(place, 33)
    monkeypatch.setattr("lagpu.host.memory.available_bytes", lambda: 1000)
    with pytest.raises(OutOfMemory, match=r"mxm: needs .* every piece: use fewer of its rows"):
        semiring.plus_times(o.A @ o.B).new()
    assert semiring.plus_times(o.u @ o.B).new().size == 33


def test_arrays_of_a_gpu_are_not_copied_silently():
    place, _ = own_grid(2)

    class OnGpu(np.ndarray):
        __cuda_array_interface__ = {}  # noqa: RUF012

    with pytest.raises(BackendMismatch, match="grid: the array is on a GPU"):
        place.vector_from_coo(None, np.arange(3).view(OnGpu), INT64, 3)


def test_no_memory_names_the_grid(monkeypatch):
    place, _ = own_grid(2)
    u = Vector(INT64, 5, backend=place)

    def full(*_args):
        raise MemoryError

    monkeypatch.setattr(place.pieces, "entries", full)
    with pytest.raises(OutOfMemory, match="grid is out of memory"):
        u.resize(9)
    assert u.size == 5


def test_what_a_local_backend_refuses():
    place, _ = own_grid(2)
    o = Few(place, 33)
    o.A.orientation = "csc"
    assert o.A.orientation == "csc"
    with pytest.raises(NotSupported, match="orientation is csc"):
        semiring.any_pair(o.u @ o.A, policy="pull").new()
    with pytest.raises(InvalidValue, match="given twice"):
        Matrix.from_coo([1, 1], [2, 2], [3, 4], nrows=3, ncols=3, backend=place)


# ---------------------------------------------------------------------------------------- names
def test_names():
    place = backends.get("grid:3:cpu")
    assert (place.name, place.pieces.engine.size) == ("grid:3:cpu", 3)
    assert place is backends.get("grid:3:cpu")
    assert backends.get("grid:1") is backends.get(f"grid:1:{backends.get('auto').name}")
    assert backends.get("grid:cpu") is backends.get("grid:1:cpu")
    assert not any(name.startswith("grid") for name in backends.names())
    with lagpu.use("grid:3:cpu"):
        assert Vector(INT32, 4).backend is place
    with pytest.raises(BackendMismatch, match="is on grid:3:cpu"):
        Vector(INT32, 3, backend=place).ewise_add(Vector(INT32, 3, backend="cpu"), "plus")


def test_rows_and_columns_of_pieces():
    place = backends.get("grid:2x3:cpu")
    assert (place.pieces.engine.size, place.pieces.grid) == (6, (2, 3))
    assert backends.get("grid:3:cpu").pieces.grid == (3, 1)
    assert backends.get("grid:2x3:cpu").pieces.order is None
    assert backends.get("grid:2x3-random:cpu").pieces.order == "random"
    assert backends.get("grid-degree:cpu") is backends.get("grid:1-degree:cpu")
    assert backends.get("grid:1x1").name == f"grid:1x1:{backends.get('auto').name}"


def test_each_piece_has_a_device():
    place = backends.get("grid:2:sim")
    assert [x.name for x in place.pieces.places] == ["sim", "sim:1"]
    assert not place.capabilities.fuses
    assert place.capabilities.kernels


@pytest.mark.parametrize(
    "name",
    [
        "grid:",
        "grid:cpuu",
        "grid:0",
        "grid:01:cpu",
        "grid:2:",
        "grid:2:cpuu",
        "grid:2x0:cpu",
        "grid:2x:cpu",
        "grid:x2:cpu",
        "grid:2x03:cpu",
        "grid:2x2x2:cpu",
        "grid:40x25:cpu",
        "grid:3-:cpu",
        "grid:3-size:cpu",
        "grid-size:cpu",
    ],
)
def test_a_grid_has_a_number_of_pieces_and_a_kind(name):
    with pytest.raises(
        InvalidValue, match=f"there is no '{name}'. A grid is grid, grid:KIND"
    ) as raised:
        backends.get(name)
    assert "\n" not in str(raised.value)


def test_a_function_of_indices_gets_those_of_the_whole_object():
    v = Vector.from_coo([0, 1, 3, 4, 6], [1, 1, 2, 0, 0], size=7, backend="grid:2:cpu")
    place = indexunary.register_anonymous(lambda x, i, j, t: i + t)
    below = indexunary.register_anonymous(lambda x, i, j, t: i < t)
    assert v.apply(place, 10).new().to_coo()[1].tolist() == [10, 11, 13, 14, 16]
    assert v.select(below, 4).new().to_coo()[0].tolist() == [0, 1, 3]
