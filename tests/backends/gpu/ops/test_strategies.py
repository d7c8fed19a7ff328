"""The strategies after the papers: searches by them on graphs that hurt, and what they look at."""

from types import SimpleNamespace

import numpy as np
import pytest
from graphs import AWKWARD, both_ways, matrix, random_edges
from nvrtc import ARCHITECTURES, nvrtc_compile
from samples import picked

import lagpu
from lagpu import INT64, Matrix, Vector, algorithms, binary, semiring
from lagpu.backends.gpu import kernels
from lagpu.backends.gpu.ops.planner import plan_of
from lagpu.backends.gpu.ops.strategies import STRATEGIES, _bind_listed, edges_of_outputs
from lagpu.check import check_parents
from lagpu.errors import InvalidValue, NotSupported, OutOfMemory

#: Those of the papers, in all their forms, and the other pulls in order.
NAMES = [
    f"{name}{variant}"
    for name in STRATEGIES
    for variant in ("", *(f":{one}" for one in STRATEGIES[name].variants))
    if variant or name in ("pull_gather", "push_merrill", "push_scatter")
]
GRAPHS = {
    **{name: (n, both_ways(edges)) for name, (n, edges) in AWKWARD.items()},
    "directed": (129, random_edges(129, 500, 4)),
    "hubs": (700, both_ways([(h, v) for h in (3, 350, 699) for v in range(0, 700, 2)])),
}


def search(A, source, op, **choice):
    """Levels or parents, product by product; parents are drawn from `any_secondi`."""
    found, q = Vector(INT64, A.nrows, like=A), Vector(INT64, A.nrows, like=A)
    q[source] = source
    found[source] = 0 if op is semiring.any_pair else source
    for depth in range(1, A.nrows + 1):
        q(~found.S, replace=True) << op(q @ A, **choice)
        if not q.nvals:
            break
        found(q.S) << (depth if op is semiring.any_pair else q)
    return found


@pytest.mark.parametrize("kernel", picked(NAMES, "pull_gather", "push_scatter"))
def test_a_search_by_one_kernel_is_right_on_graphs_that_hurt(place, kernel):
    for name, (n, edges) in GRAPHS.items():
        A = matrix(n, edges, place)
        levels = search(A, n // 2, semiring.any_pair, kernel=kernel)
        assert levels.to("cpu").isequal(algorithms.bfs_levels(A.to("cpu"), n // 2)), name
        parents = search(A, n // 2, semiring.any_secondi, kernel=kernel)
        check_parents(A.to("cpu"), n // 2, parents.to("cpu"))


@pytest.mark.parametrize("kernel", picked(NAMES, "pull_gather"))
@pytest.mark.parametrize("n", picked([8191, 20001], 20001))
def test_many_vertices_take_several_rounds(place, kernel, n):
    """Of one tile of words, more wanted vertices than a thread block gathers at once."""
    rng = np.random.default_rng(n)
    rows, cols = rng.integers(0, n, (2, 3 * n))
    A = Matrix.from_coo(rows, cols, True, nrows=n, ncols=n, dup_op=binary.first, backend=place)
    where = np.flatnonzero(rng.random(n) < 0.3)
    u = Vector.from_coo(where, where, INT64, size=n, backend=place)
    some = Vector.from_coo(np.arange(0, n, 3), True, size=n, backend=place)
    for mask, there in ((None, None), (~some.S, ~some.to("cpu").S)):
        found = semiring.any_pair(u @ A, kernel=kernel).new(mask=mask)
        wanted = semiring.any_pair(u.to("cpu") @ A.to("cpu")).new(mask=there)
        assert found.nvals == wanted.nvals
        assert found.to("cpu").isequal(wanted)


PUSHES = [name for name in NAMES if name.startswith("push")]


@pytest.mark.parametrize("kernel", picked(PUSHES, "push_merrill", "push_active:4"))
def test_lists_of_every_length_meet_in_one_row(place, kernel):
    """Vertices of each class, most with the same ends: what is dropped as a duplicate is one."""
    lengths = [*range(34), 63, 64, 65, 255, 256, 257, 300, 511, 513, *range(40), 700, 1, 0, 2, 1024]
    n = 1100
    rows = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.array([(7 * k) % 50 for k in range(len(lengths))])
    ends = np.concatenate([np.arange(s, s + k) for s, k in zip(starts, lengths, strict=True)])
    A = Matrix.from_coo(rows, ends, ends % 7 + rows, INT64, nrows=n, ncols=n, backend=place)
    where = np.flatnonzero(np.arange(len(lengths)) % 13 > 0)
    u = Vector.from_coo(where, where + 2, INT64, size=n, backend=place)
    B, v = A.to("cpu"), u.to("cpu")
    for op in (semiring.any_pair, semiring.min_plus, semiring.plus_times):
        with lagpu.trace() as t:
            found = op(u @ A, kernel=kernel).new()
        assert t.rows[0].edges == sum(lengths[k] for k in where)
        assert found.nvals == op(v @ B).new().nvals
        assert found.to("cpu").isequal(op(v @ B).new()), op
    ends, parents = semiring.any_secondi(u @ A, kernel=kernel).new().to_coo()
    assert ends.size == found.nvals
    assert np.isin(parents, where).all()
    wanted = set(zip(*(x.tolist() for x in A.to_coo()[:2]), strict=True))
    assert set(zip(parents.tolist(), ends.tolist(), strict=True)) <= wanted


def test_rows_of_one_place_in_a_hash_table_are_not_taken_for_one(place):
    """Ends that lie 128 and 1024 apart, as the two tables of `push_merrill` are long."""
    n = 1024 * 70
    ends = np.unique(np.r_[np.arange(5, 128 * 50, 128), np.arange(7, n, 1024)])
    A = Matrix.from_coo(0 * ends, ends, True, nrows=n, ncols=n, backend=place)
    u = Vector.from_coo([0], True, size=n, backend=place)
    found = semiring.any_pair(u @ A, kernel="push_merrill").new()
    assert found.to_coo()[0].tolist() == ends.tolist()


def looked_at(A, u, kernel):
    """How many entries a Boolean product looks at."""
    with lagpu.trace() as t:
        w = semiring.any_pair(u @ A, kernel=kernel).new()
    return t.rows[0].edges, w


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_pull_in_order_looks_at_the_heaviest_row_first(place, symmetric):
    """The last row has the most entries, and alone has an entry in the vector."""
    n = 300
    rows = np.r_[np.full(n - 1, n - 1), np.arange(n - 1), np.arange(n - 2)]
    cols = np.r_[np.arange(n - 1), np.full(n - 1, n - 1), np.arange(1, n - 1)]
    if symmetric:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    A = Matrix.from_coo(rows, cols, True, nrows=n, ncols=n, dup_op=binary.first, backend=place)
    u = Vector.from_coo([n - 1], True, size=n, backend=place)
    columns = A.to_csc()[1].copy()
    for name in ("pull_scalar", "pull_gather"):
        (plain, w), (ordered, x) = (looked_at(A, u, name + more) for more in ("", ":order"))
        assert ordered == n - 1 + A.to_csc()[0][n] - A.to_csc()[0][n - 1]  # its own column: all
        assert plain > 1.4 * ordered
        assert x.isequal(w)
    hint = looked_at(A, u, "pull_bitmap")[0]
    assert hint < looked_at(A, u, "pull_bitmap:plain")[0]
    assert np.array_equal(A.to_csc()[1], columns)  # the matrix has its indices as before


@pytest.mark.parametrize("along", [True, False])
def test_a_hint_is_the_row_of_most_entries(place, along):
    """Rows 1 and 2 are in column 0; row 2 is long, and so is column 1."""
    others = np.arange(3, 40)
    rows = np.r_[1, 2, np.full(37, 2), others]
    cols = np.r_[0, 0, others, np.full(37, 1)]
    A = Matrix.from_coo(*((rows, cols) if along else (cols, rows)), nrows=40, ncols=40,
                        backend=place)  # fmt: skip
    u = Vector.from_coo([2], True, size=40, backend=place)
    found = semiring.any_pair(*[u @ A if along else A @ u], kernel="pull_bitmap").new()
    assert found.to_coo()[0].tolist() == [0, *others]
    form = A.data.csc() if along else A.data.csc().csr
    assert place.device.to_host(form.cache["pull"].hint)[0] == 2


def test_offsets_of_outputs_are_those_of_a_square_matrix(place):
    """Only then an output can be the next frontier."""
    for shape, there in (((40, 40), True), ((40, 30), False), ((30, 40), False)):
        A = Matrix.from_coo([0], [1], True, nrows=shape[0], ncols=shape[1], backend=place)
        found = edges_of_outputs(A.data.csc(), SimpleNamespace(transpose=False), A.data.csc())
        assert (found is not None) == there


def test_a_list_of_columns_has_indices_of_32_bits():
    long = SimpleNamespace(shape=(1, 2**31))
    job = SimpleNamespace(kernel="push_queue", product=SimpleNamespace(transpose=False))
    with pytest.raises(NotSupported, match=r"push_queue: lists at most 2\*\*31 columns"):
        _bind_listed(long, job)


def test_an_order_is_made_when_it_is_asked_for_and_counts_as_memory(backend):
    if not backend.capabilities.kernels:
        pytest.skip(f"{backend.name} has no kernels")
    A = matrix(129, both_ways(random_edges(129, 500, 4)), backend)
    u = Vector.from_coo([5], True, size=129, backend=backend)

    def workspaces(kernel):
        semiring.any_pair(u @ A, kernel=kernel).new()
        return str(lagpu.explain(semiring.any_pair(u @ A, kernel=kernel))).rpartition(" ")[0]

    assert workspaces("pull_scalar").endswith("workspaces 0")
    assert workspaces("pull_scalar:order").endswith(f"workspaces {4 * A.nvals / 1e3:.1f}")


def test_an_order_serves_sums_of_one_product_alone(place):
    A = Matrix.from_coo([0, 1], [1, 2], [2, 3], INT64, nrows=3, ncols=3, backend=place)
    u = Vector.from_coo([0, 1], [4, 5], INT64, size=3, backend=place)
    assert semiring.any_second(A.T @ u, kernel="pull_scalar:order").new().to_coo()[1].tolist() == [
        4, 5
    ]  # fmt: skip
    for op in (semiring.plus_times, semiring.min_second, semiring.any_times):
        with pytest.raises(NotSupported, match=r"more of a column than its first row.*Use pull_g"):
            op(u @ A, kernel="pull_gather:order").new()


def test_an_order_that_does_not_fit_is_one_line(place, monkeypatch):
    A = matrix(129, both_ways(random_edges(129, 500, 4)), place)
    u = Vector.from_coo([5], True, size=129, backend=place)
    semiring.any_pair(u @ A, kernel="pull_scalar").new()
    monkeypatch.setattr(place.device, "free_bytes", lambda: 100)
    monkeypatch.setattr(place.device, "pooled_bytes", lambda: 100)
    with pytest.raises(OutOfMemory, match=r"rows by degree: needs .*Leave out :order"):
        semiring.any_pair(u @ A, kernel="pull_scalar:order").new()


@pytest.mark.parametrize("kernel", NAMES)
def test_a_kernel_is_named_with_its_variant(kernel):
    plan = plan_of(kernel, "why")
    assert f"{plan.kernel}:{plan.variant}".removesuffix(":") == kernel
    assert plan.direction == kernel.partition("_")[0]
    assert plan.reason == "why"


@pytest.mark.parametrize("wrong", ["pull_gather:", "pull_gather:4", "pull_warp:plain"])
def test_an_unknown_variant_lists_those_there_are(wrong):
    name = wrong.partition(":")[0]
    with pytest.raises(InvalidValue, match=f"there is no '{wrong}'. Use {name} or {name}:order"):
        plan_of(wrong, "")


FILES = {
    "pull_gather": ("spmv/gather.cu", {}),
    "push_merrill": ("spmv/merrill.cu", {}),
    "push_active": ("spmv/push.cu", {"EACH": "8"}),
    "push_scatter": ("spmv/scatter.cu", {}),
}


@pytest.mark.parametrize("arch", picked(ARCHITECTURES, "sm_90"))
@pytest.mark.parametrize("name", picked(FILES, "push_merrill"))
def test_nvrtc_compiles_sums_and_wide_indices(name, arch):
    wide = {"PTR": "i64", "IDX": "i64", "ISO": "0", "W": "f64", "Z": "f64", "T": "f64"}
    types = {"U": "f64", "A": "f64", "ADD": "Plus", "MUL": "Times"}
    parents = {"ISO": "0", "W": "i32", "Z": "i32", "MUL": "Secondi"}
    file, more = FILES[name]
    for macros in ({**wide, **types}, parents):
        run = kernels.kernel(file, STRATEGIES[name].kernel, **macros, **more)
        assert nvrtc_compile(run, arch)


def search_in_a_loop(A, q, levels):
    for depth in lagpu.loop(until_empty=q):
        levels(q.S) << depth
        q(~levels.S, replace=True) << semiring.any_pair(q @ A, policy="hiragushi:push=active:4")


def test_a_policy_takes_the_two_steps_of_the_paper(place):
    """Statement by statement, since a fused search has no such kernels."""
    n, edges = 200, both_ways(random_edges(200, 700, 5))
    A = matrix(n, edges, place)
    with lagpu.trace() as t:
        levels = search(A, 7, semiring.any_pair, policy="hiragushi:pull=gather:order,push=merrill")
    assert levels.to("cpu").isequal(algorithms.bfs_levels(A.to("cpu"), 7))
    kernels = [row.kernel for row in t.rows if row.method == "mxv"]
    assert set(kernels) == {"push_merrill", "pull_gather"}
    levels, q = Vector(INT64, n, like=A), Vector(INT64, n, like=A)
    q[7] = 1
    search_in_a_loop(A, q, levels)
    assert "eager: policy hiragushi: a fused search has kernels of its own" in place.last_loop
    assert levels.to("cpu").isequal(algorithms.bfs_levels(A.to("cpu"), 7))
    for wrong in ("push=bitmap", "pull=gather:plain", "push=active:3"):
        with pytest.raises(InvalidValue, match=f"{wrong} is not one of "):
            semiring.any_pair(q @ A, policy=f"hiragushi:{wrong}").new()
