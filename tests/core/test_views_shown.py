"""What a selection matrix shows and refuses; in traces, crosschecks, steps and pictures."""

import numpy as np
import pytest
from faulty import difference, line_of, with_kernels
from selections import operands, scatter_all, shortcut, shortcut_by_name

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Vector, binary, loop, semiring
from lagpu.errors import (
    BackendMismatch,
    DimensionMismatch,
    DomainMismatch,
    NotSupported,
)


def test_how_it_is_shown(backend):
    f = Vector.from_coo([0, 1, 3], [2, 2, 9], INT32, size=4, backend=backend, name="f")
    P = f.selection(nrows=3)
    assert repr(P).splitlines() == [
        f"SelectionMatrix(BOOL, 3 x 4, 2 entries, selection of f on {backend.name})",
        "   0  1  2  3",
        "0  .  .  .  .",
        "1  .  .  .  .",
        "2  1  1  .  .",
    ]
    assert repr(P.T).splitlines()[1:3] == ["   0  1  2", "0  .  .  1"]
    assert "selection of f" in P._repr_html_()
    assert "TransposedSelection" in P.T._repr_html_()
    long = Vector.from_dense(np.arange(100) // 2, backend=backend, name="long").selection()
    assert repr(long).splitlines()[5] == "3  .  .  .  .  .  .  1  1  ..."
    call = semiring.min_first(f @ f.selection())
    assert repr(call) == "f min_first selection(f)"
    f << call


def test_explain_and_trace(backend):
    f = Vector.from_coo([0, 1, 3], [2, 2, 9], INT32, size=4, backend=backend, name="f")
    u = Vector.from_dense([1, 2, 3, 4], backend=backend, name="u")
    P = f.selection()
    gather, scatter = semiring.min_first(u @ P), semiring.min_first(u @ P.T)
    said = [lagpu.explain(gather), lagpu.explain(scatter)]
    w = Vector(INT64, 4, backend=backend)
    with lagpu.trace(fuse=False) as t:
        w << gather
        w(accum=binary.plus) << scatter
    rows = t.rows
    assert [row.formula for row in rows] == [
        "w << u min_first P",
        "w(accum=binary.plus) << u min_first P'",
    ]
    assert [row.edges for row in rows] == [2, 2]
    assert [(row.nvals_in, row.nvals_out) for row in rows] == [(4, 2), (4, 3)]
    assert all(row.bytes > 0 for row in rows)
    if not backend.capabilities.fuses:
        assert backend.capabilities.kernels or "SuiteSparse" in str(said[0])
        return
    assert [(row.direction, row.kernel) for row in rows] == [
        ("pull", "selection_gather"),
        ("push", "selection_scatter"),
    ]
    for row, text in zip(rows, said, strict=True):
        assert f"{row.direction}, {row.kernel}: {row.reason}" in text


def test_a_fused_loop_is_logged(backend):
    if not backend.capabilities.fuses:
        pytest.skip("cpu fuses nothing")
    f, u, w, m = operands(backend, 70, "some", INT64)
    copies = f.dup(), u.dup(), w.dup(), m.dup()
    with lagpu.trace() as fused:
        scatter_all(f.selection(), u, w, m, semiring.plus_second)
    f, u, w, m = copies
    with lagpu.trace(fuse=False) as eager:
        scatter_all(f.selection(), u, w, m, semiring.plus_second)
    assert all(row.mode == "fused" and row.direction == "push" for row in fused.rows)
    what = ("level", "formula", "nvals_in", "nvals_out", "edges", "direction", "reason")
    first, other = (
        [[getattr(row, name) for name in what] for row in t.rows] for t in (fused, eager)
    )
    assert first == other
    assert all(row.edges for row in fused.rows)


# ------------------------------------------------------------------------------ what is refused


def test_what_a_view_refuses(backend):
    f = Vector.from_coo([0, 1, 2], [1, 1, 2], size=3, backend=backend, name="f")
    P = f.selection()
    for x in (P, P.T):
        with pytest.raises(DomainMismatch, match="has no truth value"):
            bool(x)
    with pytest.raises(DomainMismatch, match="is neither a Vector nor a Matrix"):
        next(loop(until_empty=P))
    with pytest.raises(DomainMismatch, match="SelectionMatrix is not a Matrix"):
        lagpu.algorithms.bfs_levels(P, 0)


def test_wrong_operands(backend):
    f = Vector.from_coo([0, 1, 2], [1, 1, 2], size=3, backend=backend, name="f")
    P = f.selection(nrows=4)
    u = Vector.from_dense([1, 2, 3], backend=backend, name="u")
    with pytest.raises(DimensionMismatch, match=r"u\.size 3 != P\.nrows 4. Did you mean u @ P\.T"):
        semiring.plus_times(u @ P)
    with pytest.raises(DimensionMismatch, match="has shape"):
        u << semiring.plus_times(P @ u)
    for dtype in (FP64, BOOL):
        g = Vector(dtype, 3, backend=backend)
        with pytest.raises(DomainMismatch, match=rf"g is of type {dtype}.*g\.dup\('INT64'\)"):
            g.selection()
    with pytest.raises(DimensionMismatch, match="selection: size -1 < 0"):
        f.selection(nrows=-1)
    with pytest.raises(DomainMismatch, match=r"selection: .* is not an integer"):
        f.selection(nrows=1.5)
    if backend.name.startswith("grid"):  # there a selection is a matrix, which has the choice
        return
    for option in ({"kernel": "push_edge"}, {"policy": "auto"}):
        w = Vector(INT64, 4, backend=backend)
        with pytest.raises(NotSupported, match="Leave kernel= and policy= out"):
            w << semiring.plus_times(P @ u, **option)


def test_backends_do_not_mix():
    f = Vector.from_coo([0], [0], size=2, backend="cpu", name="f")
    u = Vector.from_dense([1, 2], backend="sim", name="u")
    with pytest.raises(BackendMismatch, match="f is on cpu, u is on sim"):
        semiring.plus_times(u @ f.selection())


# ------------------------------------------------------------------------- crosscheck and steps


def hook(f, u):
    w = Vector(u.dtype, f.size, like=f, name="w")
    P = f.selection()
    w << semiring.min_second(P @ u)
    w(accum=binary.min) << semiring.min_first(u @ P)
    return w


def pair(size=70):
    rng = np.random.default_rng(1)
    f = Vector.from_dense(rng.integers(0, size, size), backend="cpu")
    return f, Vector.from_dense(rng.integers(5, 99, size), backend="cpu")


@pytest.mark.parametrize(
    ("right", "wrong", "text"),
    [
        ("adds && !joins", "false && !joins", "P @ u"),
        ("return 0 <= i && i < nrows ? i : -1;", "return 0 <= i && i < nrows - 9 ? i : -1;", "P @"),
        ("mask.bits(k) & entry_bits(f.words", "31 & entry_bits(f.words", "u @ P"),
    ],
)
def test_a_planted_fault_is_found(right, wrong, text):
    place, device = with_kernels(right, wrong, "const Select& f" if "row" not in right else None)
    found = difference(hook, *pair(), faulty=place)
    assert device.changed, "the fault is not in this text any more"
    assert found.place.line == line_of(hook, text)
    assert found.plans[1].kernel.startswith("selection_")


def choose(f, u):
    P = f.selection()
    w = semiring.any_second(P @ u).new(name="w")
    sums = semiring.plus_second(P @ u).new(name="sums")
    return w, sums, P, P.T


def test_a_crosscheck_knows_what_met():
    f, u = pair()
    for x in (u, u.dup(FP64)):
        report = lagpu.crosscheck(choose, f, x, backends=("cpu", "sim"))
        assert report.ok
        assert report.statements == 2
        assert lagpu.crosscheck(choose, f, x, backends=("sim",)).ok
    place, device = with_kernels("w.values[i] = selected<S>(u, j, i)", "w.values[i] = 3")
    assert difference(choose, f, u, faulty=place).count
    assert device.changed


def test_views_as_arguments():
    def alone(P, Q, u):
        return semiring.min_first(u @ P).new(), semiring.min_first(u @ Q).new()

    f, u = pair()
    assert lagpu.crosscheck(alone, f.selection(), f.selection().T, u, backends=("cpu", "sim")).ok


def test_steps_show_the_matrix_as_it_was(backend):
    f = Vector.from_dense([0, 0, 1, 2], backend=backend)
    found = list(lagpu.step(shortcut_by_name, f, semiring.min_first))
    assert [s.product for s in found] == [("P", False, "f", True)] * 3
    assert found[0].formula == "f << f min_first P"
    rows = [s.matrices["P"].to_coo()[0].tolist() for s in found]
    columns = [s.matrices["P"].to_coo()[1].tolist() for s in found]
    assert rows[:2] == [[0, 0, 1, 2], [0, 0, 0, 1]]
    assert columns[0] == [0, 1, 2, 3]
    assert "<svg" in found[0]._repr_html_()
    inline = list(
        lagpu.step(shortcut, Vector.from_dense([0, 0, 1], backend=backend), semiring.min_first)
    )
    assert inline[0].product.matrix == "selection(f)"
