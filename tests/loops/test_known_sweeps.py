"""A sweep whose body was recorded on objects alike runs from that record, as a loop does."""

import numpy as np
import pytest

import lagpu
from lagpu import FP32, FP64, INT32, Matrix, Vector, algorithms, binary, semiring, sweep
from lagpu.algorithms.betweenness import count_paths, dependencies
from lagpu.backends.gpu.fused import sweep as kernels
from lagpu.generators import path
from lagpu.loops import loop as known


def graph(place, n, seed):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, n, (2, 3 * n))
    return Matrix.from_coo(i, j, True, nrows=n, ncols=n, dup_op=binary.any, backend=place)


def plain(x):
    return [part.tolist() for part in x.to_coo()]


def delayed(A, levels, share, came, total, step=1.0, both=False):
    for here, above in sweep(levels):
        share(here.S, replace=True) << total.apply(binary.plus, right=step)
        came(above.S, replace=True) << semiring.plus_first(share @ A.T)
        total(accum=binary.plus) << came
        if both:
            total(above.S, accum=binary.plus) << 1


def twice(A, levels, share, came, total):
    """Two products, so the generated loop runs it, whose body makes the masks."""
    for here, above in sweep(levels):
        share(here.S, replace=True) << total.apply(binary.plus, right=1)
        came(above.S, replace=True) << semiring.plus_first(share @ A.T)
        total(above.S, accum=binary.max) << semiring.max_first(share @ A.T)
        total(accum=binary.plus) << came


def marked(A, levels, share, came, total):
    """It writes the levels, which no kernel does."""
    for here, above in sweep(levels):
        share(here.S, replace=True) << total.apply(binary.plus, right=1)
        came(above.S, replace=True) << semiring.plus_first(share @ A.T)
        total(accum=binary.plus) << came
        levels(here.S) << 0


def run(place, work, n, seed, source=1, dtype=FP64, **how):
    A = graph(place, n, seed)
    levels = algorithms.bfs_levels(A, source)
    share, came = (Vector(dtype, n, like=A) for _ in range(2))
    total = Vector.from_scalar(0, n, dtype, like=A)
    work(A, levels, share, came, total, **how)
    return [plain(x) for x in (share, came, total)], place and A.backend.last_loop


@pytest.mark.parametrize(
    ("work", "how"), [(delayed, "sweep"), (twice, "generated loop"), (marked, "eager")]
)
def test_a_sweep_is_recorded_once(place, opened, work, how):
    records = []
    for seed in range(6):
        found, last = run(place, work, 70, seed, source=seed)
        assert found == run("cpu", work, 70, seed, source=seed)[0]
        assert last == "no iteration" or last.startswith(how)
        records.append(len(opened))
    assert records[-1] == records[1]


def test_another_sweep_is_recorded_again(place, opened):
    """A number, a test, a size, a type, or an object that is another one, as the record has it."""
    given = [
        {}, {"step": 2.0}, {"step": 2.0, "both": True}, {"both": True}, {"dtype": FP32},
        {"dtype": INT32, "step": 1}, {},
    ]  # fmt: skip
    for n in (33, 70):
        for how in given * 2:
            found, last = run(place, delayed, n, 5, **how)
            assert found == run("cpu", delayed, n, 5, **how)[0]
            assert last.startswith("sweep")


def test_two_names_of_one_vector_are_not_those_of_two(place, opened):
    found = []
    for x in (graph(place, 33, 1), graph("cpu", 33, 1)):
        for one in (False, True, False, True):
            levels, total = algorithms.bfs_levels(x, 1), Vector.from_scalar(0, 33, FP64, like=x)
            share, came = (Vector(FP64, 33, like=x) for _ in range(2))
            delayed(x, levels, share, share if one else came, total)
            found.append((plain(share), plain(total)))
    assert found[:4] == found[4:] == [*found[:2]] * 2


@pytest.fixture
def written(monkeypatch):
    """The texts of sweeps' kernels; no loop is known before."""
    monkeypatch.setattr(known, "_known", {})
    texts, inner = [], kernels.from_source
    monkeypatch.setattr(kernels, "from_source", lambda *a, **k: texts.append(a) or inner(*a, **k))
    return texts


@pytest.mark.parametrize("name", ["sim", "grid:2:sim"])
def test_levels_of_more_bytes_have_another_kernel(name, written):
    for deep in (True, False, True, False):
        found = []
        for place in (name, "cpu"):
            A = path(600, backend=place) if deep else graph(place, 600, 2)
            share, came = (Vector(FP64, 600, like=A) for _ in range(2))
            total = Vector.from_scalar(0, 600, FP64, like=A)
            delayed(A, algorithms.bfs_levels(A, 5), share, came, total)
            found.append([plain(x) for x in (share, came, total)])
        assert found[0] == found[1]
    assert len({text for text, _ in written}) == 2
    assert len(written) == (6 if name.startswith("grid") else 3)


@pytest.mark.parametrize("name", ["sim", "grid:2:sim", "grid:3:sim"])
def test_the_text_of_its_kernel_is_written_once(name, written):
    place, counts = lagpu.backends.get(name), []
    for seed in range(6):
        A, B = (graph(x, 90, seed) for x in (place, "cpu"))
        A, B = (x.ewise_add(x.T, binary.any).new() for x in (A, B))
        found = [plain(dependencies(x, *count_paths(x, [seed]))) for x in (A, B)]
        assert found[0][0] == found[1][0]
        assert np.allclose(found[0][1], found[1][1])
        counts.append(len(written))
    assert counts[-1] == counts[1]


def test_a_trace_sees_each_body(place, opened):
    for _ in range(2):
        run(place, delayed, 40, 3)
    with lagpu.trace() as t:
        run(place, delayed, 40, 3)
    assert any("test_known_sweeps.py:" in row.where and "came" in row.formula for row in t.rows)
    with lagpu.eager():
        assert run(place, delayed, 40, 3)[1].startswith("eager")
