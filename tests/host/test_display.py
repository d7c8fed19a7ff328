"""What a terminal and a notebook show: true, small, harmless, and never an error."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import lagpu
from lagpu import (
    BOOL,
    FP64,
    INT32,
    Matrix,
    Vector,
    generators,
    loop,
    semiring,
    unary,
)
from lagpu.core.recorder import Recorder, current_recorder
from lagpu.host import display


def cells(text):
    """Return (title, content) of each cell of the grid in some HTML."""
    return re.findall(r'<td title="([^"]+)"[^>]*>([^<]*)</td>', text)


def form(x):
    return x.backend.form(x.data)


def of_one_piece(stored):
    """The form without the number of pieces of a grid."""
    return re.sub(r"^\d+ pieces, ", "", stored)


# ------------------------------------------------------------------------------------ vectors


def test_a_vector_in_text(backend):
    v = Vector.from_coo([0, 2], [1, 0], size=3, name="u", backend=backend)
    assert (
        repr(v) == f"Vector(INT64, size 3, 2 entries, {form(v)} on {backend.name}) {{0: 1, 2: 0}}"
    )
    one = Vector.from_coo([5], [True], size=2000, backend=backend)
    assert repr(one).startswith("Vector(BOOL, size 2,000, 1 entry, ")
    assert repr(one).endswith("{5: True}")
    many = Vector.from_dense(np.arange(9.0), backend=backend)
    assert repr(many).endswith("7: 7.0, ...}")
    assert repr(Vector.from_dense(np.arange(8), backend=backend)).endswith("7: 7}")
    assert repr(Vector(FP64, 0, backend=backend)).endswith("{}")


def test_a_vector_in_html(backend):
    v = Vector.from_coo([0, 2, 50], [0, 3, 7], size=60, name="<u>", backend=backend)
    text = v._repr_html_()
    assert "&lt;u&gt;: Vector(INT64, size 60, 3 entries, " in text
    assert "<u>" not in text
    assert cells(text) == [
        ("an entry that is zero", "0"),
        ("no entry", "·"),
        ("entry", "3"),
        ("no entry", "47 without"),
        ("entry", "7"),
        ("no entry", "9 without"),
    ]
    short = Vector.from_coo([1], [5], size=16, backend=backend)._repr_html_()
    assert cells(short).count(("no entry", "·")) == 15
    many = Vector.from_dense(np.arange(20), backend=backend)._repr_html_()
    assert len(cells(many)) == 8
    assert "…" in many


@pytest.mark.parametrize("make", ["sparse", "bitmap", "full", "single", "iso"])
def test_the_first_entries_of_every_form(backend, make):
    size = 200_000  # more words than the first step looks at
    where = np.array([70_001, 70_002, 199_999])
    v = Vector.from_coo(where, [4, 0, -6], INT32, size=size, backend=backend)
    expected = list(zip(where.tolist(), [4, 0, -6], strict=True))
    if make == "bitmap":
        v[3] = 1
        del v[3]
    elif make == "full":
        v = Vector.from_dense(np.arange(size), dtype=INT32, backend=backend)
        expected = [(k, k) for k in range(9)]
    elif make == "single":
        v = Vector(INT32, size, backend=backend)
        v[9] = 5
        expected = [(9, 5)]
    elif make == "iso":
        v << 3
        expected = [(k, 3) for k in range(9)]
    before = form(v)
    indices, values = backend.vector_head(v.data, 9)
    assert list(zip(indices.tolist(), values.tolist(), strict=True)) == expected
    assert values.dtype == np.int32
    assert form(v) == before
    if backend.capabilities.kernels:
        forms = {"sparse": "sparse", "bitmap": "bitmap", "full": "full", "single": "sparse, iso"}
        assert of_one_piece(before) == forms.get(make, of_one_piece(before))


def test_the_first_entries_of_a_result(backend):
    A = generators.path(100, backend=backend)
    q = Vector.from_coo([40, 60], True, size=100, backend=backend)
    found = semiring.any_pair(q @ A).new()
    assert repr(found).endswith("{39: True, 41: True, 59: True, 61: True}")


# ----------------------------------------------------------------------------------- matrices


def test_a_small_matrix_in_text(backend):
    A = Matrix.from_coo([0, 1, 1], [1, 0, 2], [1, 0, 12], nrows=2, ncols=3, backend=backend)
    assert repr(A) == (
        f"Matrix(INT64, 2 x 3, 3 entries, {form(A)} on {backend.name})\n"
        "   0  1   2\n"
        "0  .  1   .\n"
        "1  0  .  12"
    )
    assert repr(A.T) == (
        f"TransposedMatrix(INT64, 3 x 2, 3 entries, {form(A)} on {backend.name})\n"
        "   0   1\n"
        "0  .   0\n"
        "1  1   .\n"
        "2  .  12"
    )


def test_a_large_matrix_shows_its_corner(backend):
    A = generators.path(1000, backend=backend)
    lines = repr(A).splitlines()
    assert lines[0].startswith("Matrix(BOOL, 1,000 x 1,000, 1,998 entries, ")
    assert lines[1] == "   0  1  2  3  4  5  6  7  ..."
    assert lines[2] == "0  .  1  .  .  .  .  .  .  ..."
    assert len(lines) == 11
    assert lines[-1] == " ..."
    text = A._repr_html_()
    assert len(cells(text)) == 64
    assert cells(text).count(("entry", "1")) == 14
    empty = Matrix.from_coo([900], [0], nrows=1000, ncols=1, backend=backend)
    assert "\n" not in repr(empty)


def test_zero_and_no_entry_differ_in_html(backend):
    A = Matrix.from_coo([0, 1], [0, 1], [0.0, 2.5], nrows=2, ncols=2, name="A", backend=backend)
    zero, none, _, two = cells(A._repr_html_())
    assert (zero, none, two) == (
        ("an entry that is zero", "0"),
        ("no entry", "·"),
        ("entry", "2.5"),
    )
    assert cells(A.T._repr_html_())[0] == zero
    assert "A&#x27;: TransposedMatrix" in A.T._repr_html_()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_matrices_without_entries(backend, shape):
    A = Matrix(BOOL, *shape, backend=backend)
    assert repr(A).startswith(f"Matrix(BOOL, {shape[0]} x {shape[1]}, 0 entries, ")
    assert len(cells(A._repr_html_())) == shape[0] * shape[1]


def test_the_form_says_what_is_stored(backend):
    A = generators.path(5, backend=backend)
    i, j = np.divmod(np.arange(100), 10)  # each piece of a grid has several values
    weighted = Matrix.from_coo(i, j, np.arange(100.0), nrows=10, ncols=10, backend=backend)
    assert ", iso on " in repr(A)
    assert ", iso on " not in repr(weighted)
    if backend.capabilities.kernels:
        assert "csc, iso on" in repr(A)


# -------------------------------------------------------------- small transfers, never an error


def test_only_a_corner_is_copied(backend, monkeypatch):
    """No whole object comes to the host, and what comes is a few hundred numbers at most."""
    A = generators.kronecker(10, backend=backend)
    v = A.reduce_rowwise("plus").new()
    monkeypatch.setattr(type(backend), "vector_to_coo", None)
    read = backend.matrix_to_csc

    def matrix_to_csc(x, *how):
        assert x.shape <= (9, 9)
        return read(x, *how)

    monkeypatch.setattr(backend, "matrix_to_csc", matrix_to_csc)
    if backend.name == "cpu":
        monkeypatch.setattr(type(v.data.gb), "to_coo", None)
    sizes = []
    device = getattr(backend, "device", None)
    if device is not None:
        fetch = device.to_host
        monkeypatch.setattr(device, "to_host", lambda x: sizes.append(x.size) or fetch(x))
    for x in (A, v, A.T):
        assert "not readable" not in repr(x) + x._repr_html_()
    assert v.S._repr_html_()
    assert sum(sizes) < 2000
    assert device is None or sizes


def test_huge_objects(backend):
    if backend.name == "cpu":
        v = Vector.from_coo([2**59], [1], size=2**60, backend=backend)
        A = Matrix.from_coo([2**59], [0], [1], nrows=2**60, ncols=2**60, backend=backend)
        assert f"size {2**60:,}, 1 entry" in repr(v)
        assert f"{2**60:,} x {2**60:,}, 1 entry" in repr(A)
        assert "without" in v._repr_html_()
        assert "…" in A._repr_html_()


def test_lost_objects_are_still_shown(backend, monkeypatch):
    """As when a device is gone: every question raises."""
    A = generators.path(3, backend=backend)
    v = Vector(BOOL, 3, backend=backend)

    def lost(*_args):
        raise RuntimeError("the device is lost")

    for name, method in list(vars(type(backend)).items()):
        if callable(method) and not name.startswith("_"):
            monkeypatch.setattr(type(backend), name, lost)
    place = backend.name
    assert repr(v) == (
        f"Vector(BOOL, size 3, not readable: RuntimeError, {place}) {{not readable: RuntimeError}}"
    )
    assert repr(A).startswith("Matrix(BOOL, 3 x 3, not readable: RuntimeError, ")
    for x in (v, A, A.T, v.S):
        assert "not readable: RuntimeError" in x._repr_html_()


def test_looking_does_not_disturb_a_recording(backend):
    A = generators.path(6, backend=backend)

    def search():
        frontier = Vector.from_coo([0], True, size=6, like=A)
        levels = Vector(INT32, 6, like=A)
        for depth in loop(until_empty=frontier):
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
        return levels

    expected = search().to_dense().tolist()
    seen = []
    if backend.capabilities.fuses:
        v = Vector(BOOL, 6, like=A)
        recorder = Recorder(backend)
        recorder.open()
        try:
            v << True
            seen.append(repr(v))
            other = Vector.from_dense([7, 8], backend="cpu")  # depends on nothing that is recorded
            assert "0: 7, 1: 8" in repr(other)
            assert other.nvals == 2
            assert current_recorder() is recorder
            assert len(recorder.statements) == 1
        finally:
            recorder.flush()
        assert "a loop is being recorded" in seen[0]
        assert v.nvals == 6
    assert search().to_dense().tolist() == expected


# ------------------------------------------------------------ masks, calls, operators, names


def test_waiting_things_are_shown_by_the_authors_names(backend):
    q = Vector.from_coo([0, 2], [0, 1], size=3, backend=backend)
    graph = Matrix(BOOL, 3, 3, backend=backend)
    call = semiring.any_pair(q @ graph.T)
    assert list(map(repr, (q.S, ~q.V, q[0], graph[0, :], q @ graph, q(~q.S), call))) == [
        "q.S",
        "~q.V",
        "q[0]",
        "graph[0, :]",
        "q @ graph",
        "q(~q.S)",
        "q any_pair graph'",
    ]
    call.new()


def test_a_backend_says_its_name(backend):
    assert repr(backend) == f"<lagpu backend {backend.name}>"


@pytest.mark.parametrize(
    ("take", "rule"),
    [
        (lambda v: v.S, "u.S: Mask, lets through where u has an entry"),
        (lambda v: v.V, "u.V: Mask, lets through where u has an entry that is not zero"),
        (lambda v: ~v.S, "~u.S: Mask, lets through where u has no entry"),
        (lambda v: ~v.V, "~u.V: Mask, lets through where u has no entry, or a zero"),
    ],
)
def test_masks_in_html(backend, take, rule):
    u = Vector.from_coo([0, 2], [0, 1], size=3, name="u", backend=backend)
    text = take(u)._repr_html_()
    assert f"{rule}</code>" in text
    assert ("an entry that is zero", "0") in cells(text)


def test_tables_list_their_operators():
    assert repr(unary).startswith("unary: ")
    assert ", ainv, abs, " in repr(unary)
    assert f"semiring: {len(semiring)} operators, any_pair, " in repr(semiring)


def test_values_are_short():
    values = [True, np.inf, -np.inf, np.nan, 1 / 3, 12345678, -7, np.float32(2.0)]
    shown = [display.short(x) for x in values]
    assert shown == ["1", "∞", "-∞", "NaN", "0.333", "1.2e7", "-7", "2"]


def test_the_package_still_has_no_display_of_its_own():
    assert "display" not in lagpu.__all__


def test_objects_without_a_name_are_distinguished():
    """A number for each, when it is first shown; in formulas it is a letter until then."""
    made = [make() for make in (
        lambda: Vector(FP64, 2, backend="cpu"), lambda: Matrix(FP64, 2, 2, backend="cpu"),
    ) for _ in range(2)]  # fmt: skip
    assert [x.name for x in made] == ["v", "v", "A", "A"]
    titles = [re.search(r"([^<>]*): (?:Vector|Matrix)", x._repr_html_())[1] for x in made]
    assert len(set(titles)) == len(titles)
    assert [title.rstrip("0123456789") for title in titles] == ["v_", "v_", "A_", "A_"]
    assert titles == [x.name for x in made]
    assert titles[0] in made[0]._repr_html_()
    assert f"{titles[2]}&#x27;:" in made[2].T._repr_html_()


def test_a_copy_of_an_object_without_a_name_has_none():
    v = Vector(FP64, 2, backend="cpu")
    copies = [v.dup(), v.to("sim"), copy.copy(v), pickle.loads(pickle.dumps(v))]
    assert len({display.own_name(x) for x in (v, *copies)}) == 5
    named = Vector(FP64, 2, backend="cpu", name="v")
    assert display.own_name(named) == display.own_name(named.dup()) == "v"


def test_lines_are_shown_as_print_shows_them():
    A = generators.path(3, backend="cpu")
    q = Vector.from_coo([0], True, size=3, backend="cpu")
    with lagpu.trace() as t:
        reported = lagpu.explain(semiring.any_pair(q @ A))
        q << semiring.any_pair(q @ A)
    for text in (reported, t.table()):
        assert "\n" in text
        assert repr(text) == str(text) == text
