"""Statements of a loop that Python runs wait for each other, and run as one program."""

import signal
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from batches import batches_at_once, full, launches, place  # noqa: F401
from drawn_loops import batched_loops, compare, load
from hypothesis import strategies as st
from strategies import for_all

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix, Scalar, Vector, binary, monoid, semiring
from lagpu.backends.gpu.backend import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.fused.emit import Run
from lagpu.backends.gpu.fused.program import batch as program_batch
from lagpu.core import recorder
from lagpu.errors import EmptyObject, KernelLaunchError, OutOfMemory


def graph(place, n=70):
    rng = np.random.default_rng(3)
    i, j = rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n)
    return Matrix.from_coo(i, j, 1.0, FP64, nrows=n, ncols=n, dup_op=binary.first, backend=place)


# ---- bodies that authors write, each with a line that no loop of lagpu statements has
def counter_plus_one(A):
    levels, q = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    q[0] = True
    depth = 0
    while q.nvals:
        levels(q.S) << depth + 1
        q(~levels.S, replace=True) << semiring.any_pair(q @ A)
        depth += 1
    return levels


def heat(A):
    x, total = Vector(FP64, A.nrows, like=A), Vector(FP64, A.nrows, like=A)
    x << 1.0
    for k in lagpu.loop(times=6):
        x << semiring.plus_second(x @ A)
        x << x * (0.5 / (k + 1))
        total(binary.plus) << x
    return total


def found_target(A):
    levels, q = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    q[0] = True
    for depth in lagpu.loop(until_empty=q):
        levels(q.S) << depth
        q(~levels.S, replace=True) << semiring.any_pair(q @ A)
        if depth == 3:
            break
    return levels


def tolerance(A):
    x, y, d = (Vector(FP64, A.nrows, like=A) for _ in range(3))
    x << 1.0 / A.nrows
    changes = []
    for _ in range(20):
        y << semiring.plus_second(x @ A)
        y << y * 0.05 + 0.5
        d << abs(y - x)
        x << y
        changes.append(d.reduce(monoid.plus).get())
        if changes[-1] < 1e-3:
            break
    return x


def constant_test(A):
    x = Vector(FP64, A.nrows, like=A)
    x << 1.0
    for _ in lagpu.loop(times=4):
        if A.nrows > 5:
            x << semiring.plus_second(x @ A)
            x << x * 0.25
    return x


def helper(A):
    def step(x, A):
        return semiring.plus_second(x @ A)

    x, y = Vector(FP64, A.nrows, like=A), Vector(FP64, A.nrows, like=A)
    x << 1.0
    for _ in lagpu.loop(times=4):
        y << step(x, A)
        x << y * 0.25
    return x


def norm(A):
    x, s = Vector(FP64, A.nrows, like=A), Scalar(FP64)
    x << 1.0
    for _ in range(5):
        x(binary.plus) << semiring.plus_second(x @ A)
        s << x.reduce(monoid.max)
        x << x / s
        pass
    return x


def temporaries(A):
    x = Vector(FP64, A.nrows, like=A)
    x << 1.0
    for _ in range(4):
        y = semiring.plus_second(x @ A).new()
        x << (y * 0.25 + x).new()
    return x


def copied(A):
    x = Vector(FP64, A.nrows, like=A)
    x << 1.0
    for k in range(6):
        x << semiring.plus_second(x @ A) * 0.1
        y = x.dup()
        y *= k
        x << y + abs(x - y.dup()) / 2
    return x


def printed(A):
    x, lines = Vector(FP64, A.nrows, like=A), []
    x << 1.0
    for k in lagpu.loop(times=4):
        x << semiring.plus_second(x @ A)
        x << x * 0.25
        lines.append(f"{k}: {x.nvals}")
    assert len(lines) == 4
    return x


def one_index(A):
    x = Vector(FP64, A.nrows, like=A)
    x << 1.0
    for k in lagpu.loop(times=4):
        x << semiring.plus_second(x @ A)
        x << x * 0.25
        x[k % 3] << 0.5
        x(accum=binary.plus)[2] << k
    return x


BODIES = (
    *(counter_plus_one, heat, found_target, tolerance, constant_test, helper, norm),
    *(temporaries, copied, printed, one_index),
)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_body_means_the_same(place, body):
    expected = body(graph("cpu"))
    for _ in range(2):
        found = body(graph(place))
        assert found.to("cpu").isclose(expected, rel_tol=1e-12)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_an_iteration_is_one_launch(place, body):
    A = graph(place)
    body(A).wait()  # forms of the matrix are made
    with launches(place) as names:
        body(A).wait()
    turns = {"tolerance": 20, "counter_plus_one": 8, "norm": 6}.get(body.__name__, 7)
    assert names.count("program") <= turns
    assert len(names) <= turns + 6  # before the loop, and reading


def test_numbers_are_arguments(place):
    """Statements with other numbers are the same program."""
    known = place.capabilities.batches._known
    u, w, x = full(place), Vector(FP64, 70, backend=place), Vector(FP64, 70, backend=place)
    before = len(known)
    for k in range(5):
        w << u * (k + 1)
        x << w.apply(binary.minus, left=k)
        assert x.to_coo()[1].tolist() == [k - i * (k + 1) for i in range(70)]
    assert len(known) == before + 1


def test_equal_numbers_become_different(place):
    """One object for two equal numbers, as small integers are, is two arguments."""
    w, x = Vector(INT64, 70, backend=place), Vector(INT64, 70, backend=place)
    for one, two in ((1, 1), (1, 2), (2, 1)):
        w << one
        x << two
        assert (w.to_coo()[1][0], x.to_coo()[1][0]) == (one, two)


def test_batches_alike_on_other_objects(place):
    """Each time other ones of the names are one object, in lines that are the same."""

    def body(w, u, x):
        w << u * 2
        x << w.ewise_add(x, binary.plus)
        w << x.ewise_mult(u, binary.minus)
        return w.nvals

    for turn in range(3):
        for names in ("wux", "wuu", "www", "wuw", "uux", "wux"):
            ours, theirs = (
                {name: full(of, start=k + turn) for k, name in enumerate("wux")}
                for of in (place, "cpu")
            )
            body(*(ours[name] for name in names))
            body(*(theirs[name] for name in names))
            for name in "wux":
                assert ours[name].to("cpu").isequal(theirs[name]), (turn, names, name)


@pytest.mark.parametrize("scalar", [False, True])
def test_a_launch_comes_again(place, monkeypatch, scalar):
    """With new numbers alone, until something replaces the arrays of a vector or of the matrix."""
    came, launch = [], place.device.prepared_launch
    again = launch.again
    monkeypatch.setattr(launch, "again", lambda *x: (came.append(1), again(*x))[1])
    ours, theirs = (
        {"A": graph(of), "u": full(of), "w": full(of, start=1), "s": Scalar(FP64), "of": of}
        for of in (place, "cpu")
    )
    for x in (ours, theirs):
        x["v"] = Vector.from_coo(np.arange(0, 70, 3), 2.0, size=70, backend=x["of"])

    def other_values(x):
        x["u"] << 3  # a full vector keeps one of them

    def other_arrays(x):
        x["w"].clear()
        x["w"][7] = 2.0

    def other_entries(x):
        x["v"][4] = 9.0  # all had the same value

    def of_another_product(x):
        x["u"] << semiring.plus_second(x["u"] @ x["A"])
        x["u"] << x["u"].apply(binary.min, right=9.0)

    def no_rows(x):
        x["A"].orientation = "csc"

    def another_matrix(x):
        x["A"] = graph(x["of"])

    def another_vector(x):
        x["w"] = full(x["of"], start=5)

    def another_size(x):
        x["w"].resize(60)
        x["w"].resize(70)

    changes = other_values, other_arrays, other_entries, of_another_product, no_rows, another_matrix
    for change in (None, *changes, another_vector, another_size, None):
        for k in range(4):
            for x in (ours, theirs):
                if change is not None and k == 2:
                    change(x)
                    x["u"].wait()
                A, u, v, w, s = x["A"], x["u"], x["v"], x["w"], x["s"]
                if scalar:
                    s << 0.5 + k
                w(u.S) << semiring.plus_second(u @ A)
                u << w.apply(binary.min, right=float(k))
                u << u * (s if scalar else 0.5 + k)
                u << u.ewise_add(v, binary.max)
                x["nvals"] = u.nvals
            assert ours["nvals"] == theirs["nvals"]
            assert all(ours[x].to("cpu").isclose(theirs[x]) for x in "uw"), (change, k)
        assert came, change
        came.clear()


def test_a_launch_comes_again_on_the_objects_of_its_lines(place):
    """A program was launched once on other ones in between."""

    def body(w, u, k):
        w << u.apply(binary.plus, right=k)
        u << w.apply(binary.min, right=9.0)
        return u.nvals

    ours, theirs = (
        [(full(of, start=k), full(of, start=k + 2)) for k in range(2)] for of in (place, "cpu")
    )
    for turn, k in enumerate((0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1)):
        assert body(*ours[k], turn / 2) == body(*theirs[k], turn / 2)
        for x, y in zip(ours[k], theirs[k], strict=True):
            assert x.to("cpu").isequal(y), turn


@contextmanager
def launches_again(place):
    """Yield a list that grows with each launch that comes again."""
    launch, came = place.device.prepared_launch, []
    again = launch.again
    with mock.patch.object(launch, "again", lambda *x: (came.append(1), again(*x))[1]):
        yield came


def test_a_launch_comes_again_with_new_scalars(place, monkeypatch):
    """A sum that is read is another scalar each time; one that stays is known to have a value."""
    monkeypatch.setattr(program_batch, "_LONG", 10)  # the product ends a batch
    copied, to_host = [], place.device.to_host
    monkeypatch.setattr(place.device, "to_host", lambda x: (copied.append(1), to_host(x))[1])

    def run(of):
        A, x, y, lost, sums = graph(of), full(of), full(of), Scalar(FP64), []
        for k in range(6):
            lost << k
            lost(accum=binary.plus) << x.reduce(monoid.max)
            y << semiring.plus_second(A @ x)
            copied.clear()
            y << y / lost
            x << y.ewise_mult(x, binary.minus)
            sums.append(x.reduce(monoid.plus).get())
            copies.append(len(copied))
        return x, sums, lost.value

    copies = []
    x, sums, lost = run("cpu")
    for _ in range(2):
        with launches_again(place) as came:
            found = run(place)
        assert found[0].to("cpu").isclose(x)
        assert found[1] == pytest.approx(sums)
        assert found[2] == pytest.approx(lost)
        assert copies[-4:] == [0] * 4
    assert len(came) >= 7  # of the second run: a GPU's kernels have been launched twice


def test_a_launch_comes_again_with_other_scalars(place):
    """One for two, of another type, without a value, or read by the host: each is noticed."""
    ours, theirs = ((full(of), Vector(FP64, 70, backend=of)) for of in (place, "cpu"))

    def body(u, w, r, s):
        w << u * r
        w << w.apply(binary.plus, right=s)
        s << w.reduce(monoid.max)
        r << 1
        r(accum=binary.plus) << u.reduce(monoid.min)
        return w.nvals

    def scalars(kind, one=False):
        r, s = Scalar(kind, 2), Scalar(kind, 3)
        return (r, r if one else s), (kind, one)

    came_with = set()
    for of_int, one in ((FP64, False), (FP64, True), (INT64, False), (INT64, True), (FP64, False)):
        mine, of = scalars(of_int, one)
        its, _ = scalars(of_int, one)
        for turn in range(5):
            with launches_again(place) as came:
                assert body(*ours, *mine) == body(*theirs, *its)
            if came:
                came_with.add(of)
            assert ours[1].to("cpu").isequal(theirs[1]), (of, turn)
            if turn % 2:
                assert [x.value for x in mine] == [x.value for x in its], (of, turn)
        mine[1].clear()
        with pytest.raises(EmptyObject):
            body(*ours, *mine)
    assert came_with == {(x, y) for x in (FP64, INT64) for y in (False, True)}


def test_one_scalar_in_the_places_of_two(place):
    def run(of):
        u, w = full(of, start=1.0), Vector(FP64, 70, backend=of)
        r, s = Scalar(FP64, 2), Scalar(FP64, 3)
        for x, y in (*[(r, s)] * 9, *[(s, s)] * 2, *[(r, s)] * 2):
            w << u * x
            x(accum=binary.plus) << w.reduce(monoid.min)
            y(accum=binary.minus) << w.reduce(monoid.min)
            assert w.nvals == 70
        return w.to_coo()[1].tolist(), r.value, s.value

    assert run(place) == run("cpu")


def test_the_same_scalar_without_its_value(place):
    u, w, s = full(place), Vector(FP64, 70, backend=place), Scalar(FP64)
    none = Vector(FP64, 70, backend=place)

    def body():
        s(accum=binary.plus) << none.reduce(monoid.plus)
        w << u * s
        return w.get(2)

    for number in (2, None, 3, 4, None, None, 5):
        s.clear()
        if number is not None:
            s.value = number
            assert body() == 2 * number
            continue
        with pytest.raises(EmptyObject):
            body()


def test_lines_that_differ_in_one_thing(place):
    """Each is the first line of a batch that is the same otherwise."""

    def body(w, u, write, call):
        write(w) << call(u)
        w << w + 1
        return w.nvals

    def m(w):
        return Vector.from_coo([1, 5, 40], [0.0, 2.0, 3.0], size=70, backend=w.backend)

    writes = [
        *(lambda w: w(m(w).S), lambda w: w(~m(w).S), lambda w: w(m(w).V), lambda w: w(~m(w).V)),
        *(lambda w: w(m(w).S, replace=True), lambda w: w(m(w).S, accum=binary.plus)),
        *(lambda w: w(m(w).S, accum=binary.times), lambda w: w(accum=binary.plus), lambda w: w()),
    ]
    calls = [
        *(lambda u: u.apply(binary.minus, left=3), lambda u: u.apply(binary.minus, right=3)),
        *(lambda u: u.apply(binary.plus, left=3), lambda u: u.select("valuegt", 3)),
        *(lambda u: u.select("valuelt", 3.5), lambda u: u.ewise_add(u, binary.plus)),
        *(lambda u: u.ewise_mult(u, binary.plus), lambda u: u.ewise_union(u, "plus", 1, 2)),
    ]
    for write, call in ((w, c) for w in writes for c in calls if w is writes[0] or c is calls[0]):
        for _ in range(2):
            ours, theirs = full(place, start=2), full("cpu", start=2)
            u, v = full(place), full("cpu")
            body(ours, u, write, call)
            body(theirs, v, write, call)
            assert ours.to("cpu").isequal(theirs)


def test_only_the_last_program_keeps_its_rooms(place, monkeypatch):
    monkeypatch.setattr(program_batch, "_MOST_WITH_ROOMS", 1)
    A, u, w = graph(place), full(place), Vector(FP64, 70, backend=place)
    batches = place.capabilities.batches
    monkeypatch.setattr(batches, "_latest", [])

    def one():
        w << semiring.plus_second(u @ A)
        w << w * 2
        return w.nvals

    def other():
        w << semiring.plus_second(A @ u)
        w << w * 2
        return w.nvals

    expected = []
    for body in (one, one, other, other):
        body()
        expected.append(w.to_coo()[1].tolist())
    kept = batches._latest[-1]
    rooms = list(kept.rooms)
    assert rooms
    other()
    assert all(x is y for x, y in zip(rooms, kept.rooms, strict=True))
    assert w.to_coo()[1].tolist() == expected[3]
    one()
    assert not kept.rooms
    assert batches._latest[-1].rooms
    assert w.to_coo()[1].tolist() == expected[1]
    monkeypatch.setattr(program_batch, "_MOST_ROOM", 8)
    batches._latest[-1].forget()
    for _ in range(2):
        one()
        assert batches._latest[-1].rooms is None
        assert w.to_coo()[1].tolist() == expected[1]


def test_a_program_enters_its_device(place, monkeypatch):
    """It may run in a thread that has not used the device yet, or on another stream."""
    u, w, entered = full(place), Vector(FP64, 70, backend=place), []
    monkeypatch.setattr(place.device, "enter", lambda: entered.append(threading.get_ident()))

    def body():
        w << u
        w << w * 2

    body()
    assert w.nvals  # the program is made
    body()
    entered.clear()
    with launches(place) as names:
        other = threading.Thread(target=lambda: recorder.flush(place, w.data))
        other.start()
        other.join()
    assert names[-1:] == ["program"]
    assert entered == [other.ident]


@pytest.mark.parametrize("n", [14, 70])
def test_a_mask_by_values_that_the_batch_writes(place, n):
    """Before, it has no entries, or one value for all, which no mask of the program may rely on."""
    u = Vector.from_dense(np.arange(n) % 3, dtype=INT64, backend=place)
    one = Vector.from_scalar(1, n, INT64, backend=place)

    def kept(m, complement):
        w = Vector(INT64, n, backend=place)
        m << u.ewise_mult(one, binary.eq)
        w(~m.V if complement else m.V) << 5
        return w.to_coo()[0].tolist()

    where = [i for i in range(n) if i % 3 == 1]
    others = [i for i in range(n) if i % 3 != 1]
    for _ in range(3):
        new, full_one = Vector(BOOL, n, backend=place), Vector(BOOL, n, backend=place)
        full_one << True
        recorder.queue.flush()
        assert [kept(new, False), kept(full_one, False)] == [where] * 2
        assert kept(Vector(BOOL, n, backend=place), True) == others


def test_a_long_product_ends_a_batch(place, monkeypatch):
    """So the device works while the statements after it wait; a scalar may stay there."""
    monkeypatch.setattr(program_batch, "_LONG", 10)
    A, x, y, s = graph(place), full(place), Vector(FP64, 70, backend=place), Scalar(FP64)
    B, u, v, t = graph("cpu"), full("cpu"), Vector(FP64, 70, backend="cpu"), Scalar(FP64)

    def body(A, x, y, s):
        waiting = []
        for _ in range(5):
            s << x.reduce(monoid.max)
            y << semiring.plus_second(A @ x)
            waiting.append(len(recorder.queue.statements))
            y << y / s
            held.append(s.data.holder)
            x << y + 1
            waiting.append(len(recorder.queue.statements))
            assert x.nvals
        return waiting

    for _ in range(2):
        held = []
        with launches(place) as names:
            assert body(A, x, y, s) == [0, 2] * 5
        assert held[2:] == [place.device] * 3
        body(B, u, v, t)
        assert x.to("cpu").isclose(u)
        assert s.value == pytest.approx(t.value)
    assert names.count("program") == 10


def test_a_batch_sums_with_values_in_shared_memory(place):
    """As a fused loop does where columns are long, and its launch comes again with it."""
    n, k = 300, np.arange(300 * 40)

    def run(of):
        A = Matrix.from_coo(k * 7 % n, k // 40, 1.0 + k % 3, nrows=n, ncols=n, backend=of)
        x, y, s = full(of, n), Vector(FP64, n, backend=of), Scalar(FP64)
        for _ in range(6):
            y << semiring.plus_times(x @ A)
            x << y * 0.01
            s << x.reduce(monoid.plus)
            assert s.value
        return x, s.value

    x, total = run("cpu")
    with launches_again(place) as came:
        found = run(place)
    assert found[0].to("cpu").isclose(x)
    assert found[1] == pytest.approx(total)
    assert place.capabilities.batches._latest[-1].shared
    assert came


@pytest.mark.parametrize("waits", [True, False])
def test_a_scalar_of_what_is_no_statement(place, waits):
    """Its number is needed at once, whether the statement waits that writes it or has run."""
    u, w = full(place), Vector(FP64, 70, backend=place)
    uses = (
        *(lambda s: Scalar(FP64, s).value == 70, lambda s: Scalar.from_value(s).value == 70),
        lambda s: Vector.from_coo([1, 2], s, size=5, backend=place).get(2) == 70,
        lambda s: Vector.from_scalar(s, 5, FP64, backend=place).get(4) == 70,
        *(lambda s: s + 1 == 71, lambda s: s.dup().value == 70, lambda s: s == 70),
    )
    for use in uses:
        for _ in range(2):
            s = Scalar(FP64)
            w << u + 1
            s << w.reduce(monoid.max)
            if not waits:
                recorder.queue.flush()
            assert use(s)
            w[3] = s
            assert w.get(3) == 70


def test_a_scalar_that_another_device_has(place):
    other = GpuBackend("sim", SimDevice())
    u, v, w = full(place), full(other), full(other)
    s, held = Scalar(FP64), []
    for k in range(4):
        u << u + 1
        s << u.reduce(monoid.max)
        recorder.queue.flush()
        held.append(s.data.holder is place.device)
        w << v * s
        assert s.data.location is None  # the other device cannot read it there
        s(accum=binary.plus) << v.reduce(monoid.min)
        assert w.get(2) == 2 * (70 + k)
        assert s.value == 70 + k
    assert held[2:] == [True, True]


def test_a_read_runs_what_waits(place):
    u, w = full(place), Vector(FP64, 70, backend=place)
    readers = (
        *(lambda: w.nvals == 70, lambda: w.to_coo()[1][3] == 4, lambda: w[3].value == 4),
        *(lambda: w.reduce().value == 70 * 71 / 2, lambda: w.get(3) == 4),
        *(lambda: w.dup().get(3) == 4, lambda: w.to("cpu").get(3) == 4),
        *(lambda: w.isequal(full(place, start=1)), lambda: "70" in repr(w)),
        lambda: np.from_dlpack(w.to("cpu"))[3] == 4,
    )
    for read in readers:
        w.clear()
        w << u
        w(accum=binary.plus) << 1
        assert recorder.queue.statements
        assert read()
        assert not recorder.queue.statements


def test_a_scalar_that_waits(place):
    u, w, s = full(place), Vector(FP64, 70, backend=place), Scalar(FP64, 5)
    s << u.reduce(monoid.max)
    w << u / s
    assert len(recorder.queue.statements) == 2
    s << 2  # after the statement that reads it
    assert w.to_coo()[1][69] == 1
    assert s.value == 2


def test_an_empty_scalar_is_an_error_when_it_is_read(place):
    u, w, s = Vector(FP64, 70, backend=place), Vector(FP64, 70, backend=place), Scalar(FP64)
    w << 3
    s << u.reduce(monoid.plus)
    w << s
    w << 4
    with pytest.raises(EmptyObject):
        w.to_coo()
    assert w.to_coo()[1][0] == 3  # as if the program had ended there


def test_a_scalar_that_becomes_empty_is_no_line(place):
    """The host finds that there is no number, so a program would have none to write."""
    x, total, factor = full(place), Scalar(FP64, name="total"), Scalar(FP64, 2.0, name="factor")
    for k in range(6):
        total.value = None if k else 1.0
        x << x.apply("plus", right=1)
        total << total * factor
        x << x.apply("times", right=2)
        assert total.value == (None if k else 2.0)
    assert x.to_dense().tolist() == [64 * k + 126 for k in range(70)]


def test_what_cannot_join_runs_what_waits(place):
    u, w = full(place), Vector(FP64, 70, backend=place)
    w << u
    w[[1, 2]] << 7.0
    assert not recorder.queue.statements
    assert w.to_coo()[1][:4].tolist() == [0, 7, 7, 3]


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1025])
def test_one_index(place, n):
    for _ in range(2):  # the second time as a program
        w, v = (Vector.from_dense(np.arange(n), dtype=INT64, backend=of) for of in (place, "cpu"))
        for x in (w, v):
            x[n // 2] << 7
            x(accum=binary.plus)[n - 1] << 3
            x << x + 1
            x[n // 2] << 5
        assert [x.tolist() for x in w.to_coo()] == [x.tolist() for x in v.to_coo()]


def test_two_scalars(place):
    u, w, s, t = full(place), Vector(FP64, 70, backend=place), Scalar(FP64), Scalar(FP64)
    for k in range(1, 4):
        w << u * k
        s << w.reduce(monoid.max)
        t << w.reduce(monoid.min)
        assert (s.value, t.value) == (69 * k, 0)


def test_few_statements_wait(place, monkeypatch):
    monkeypatch.setattr(program_batch, "_MOST_INDICES", 1 << 21)
    u, w = full(place), Vector(FP64, 70, backend=place)
    for _ in range(3):
        w << u
        w << u
        assert len(recorder.queue.statements) == 2  # the first line again ends a batch
    recorder.queue.flush()
    exec(compile("\n".join(["w << u"] * 65), "<lines>", "exec"), {"w": w, "u": u})
    assert len(recorder.queue.statements) == 1  # the 64th has ended a batch
    big = Vector(FP64, 1 << 20, backend=place)
    lines = "\n".join(["big << 1.0"] * 6)
    recorder.queue.flush()
    exec(compile(lines, "<lines>", "exec"), {"big": big})
    assert len(recorder.queue.statements) < 6


def test_each_backend_in_its_turn(place):
    u, w, s = full(place), Vector(FP64, 70, backend=place), Scalar(FP64)
    v = full("cpu")
    w << u * 2
    s << w.reduce(monoid.max)
    v << v * s
    assert not recorder.queue.statements
    assert v.get(2) == 2 * 138


def test_two_backends_with_batches(place):
    other = GpuBackend("sim", SimDevice())
    u, v = full(place), full(other)
    u << u * 2
    v << v * 3
    assert recorder.queue.backend is other
    u << u + 1
    assert (u.get(3), v.get(3)) == (7, 9)


@pytest.mark.parametrize("name", ["grid:2:sim", "grid:2x2:sim"])
def test_scalars_of_a_grid_wait_for_nothing(name):
    x = Vector.from_dense([1, 2, 3], backend=name)
    with batches_at_once():
        r, s = Scalar(INT64), Scalar(INT64, 2)
        for _ in range(3):
            r << x.reduce(monoid.plus)
            s(accum=binary.plus) << r
            r << 4
            s(accum=binary.plus) << r
            assert not recorder.queue.statements
        assert s.value == 32


def test_a_number_that_no_notification_has(place, monkeypatch):
    """Then it is copied: places for notifications are used again."""
    place_of = place.device.notification

    def unheard():
        made = place_of()
        return made._replace(host=memoryview(bytes(32)).cast("Q"))

    monkeypatch.setattr(place.device, "notification", unheard)
    u, w, s = full(place), Vector(FP64, 70, backend=place), Scalar(FP64)
    for least in (10, 20, 30):
        w << u.select("valuege", least)
        w << w + 1
        assert w.nvals == 70 - least
        w << u * least
        s << w.reduce(monoid.max)
        assert s.value == 69 * least


def test_eager_waits_for_nothing(place):
    u, w = full(place), Vector(FP64, 70, backend=place)
    w << u
    with lagpu.eager():
        assert not recorder.queue.statements
        w << u * 2
        assert not recorder.queue.statements
    w << u * 3
    with lagpu.trace() as rows:
        assert not recorder.queue.statements
        w << u * 4
    assert len(rows.rows) == 1
    assert w.get(1) == 4


def test_lines_wait_once_they_came_often(place, monkeypatch):
    monkeypatch.setattr(recorder, "HOT", 3)
    backend = place
    u, w, waiting = full(backend), Vector(FP64, 70, backend=backend), []
    for _ in range(recorder.HOT + 2):
        w << u
        waiting.append(len(recorder.queue.statements))
        w << u * 2
        waiting.append(len(recorder.queue.statements))
    assert waiting == [0, 0] * recorder.HOT + [1, 2] * 2
    recorder.queue.flush()


def test_a_line_that_no_other_joins_does_not_wait(place):
    u, w, waiting = full(place), Vector(FP64, 70, backend=place), []
    for k in range(4):
        w << u * k
        waiting.append(len(recorder.queue.statements))
    assert waiting == [1, 0, 0, 0]
    assert w.get(1) == 3


def test_a_line_that_runs_alone_again_and_again_does_not_wait(place):
    """The statement after it cannot join, or it is read."""
    u, w, waiting = full(place), Vector(FP64, 70, backend=place), []
    for _ in range(3):
        w << u
        waiting.append(len(recorder.queue.statements))
        w[[1, 2]] << 7.0
    for k in range(3):
        w << u * k
        waiting.append(len(recorder.queue.statements))
        assert w.get(2) == 2 * k
    assert waiting == [1, 0, 0] * 2


def test_a_line_that_once_runs_alone_waits_again(place):
    u, w, waiting = full(place), Vector(FP64, 70, backend=place), []
    for _ in range(3):
        for _ in range(3):
            w << w * 2
            w << w + u
            waiting.append(len(recorder.queue.statements))
            assert w.nvals
        w << u
        assert w.nvals  # alone, at the end
    assert waiting[:7] == [2, 2, 2, 2, 2, 2, 2]


def test_an_interrupt_comes_when_all_have_run(place, monkeypatch):
    u, w, x = full(place), Vector(FP64, 70, backend=place), Vector(FP64, 70, backend=place)
    w << u
    x << u * 2
    real = recorder.run_statement

    def interrupted(backend, s, depth=0):
        signal.raise_signal(signal.SIGINT)
        real(backend, s, depth)

    monkeypatch.setattr(program_batch, "AFTER", 9)
    monkeypatch.setattr(recorder, "run_statement", interrupted)
    with pytest.raises(KeyboardInterrupt):
        w.to_coo()
    monkeypatch.undo()
    assert (w.get(3), x.get(3)) == (3, 6)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("scalar", [False, True])
def test_an_interrupt_of_a_launch_that_comes_again(place, monkeypatch, when, scalar):
    """Nothing runs twice, and what had not run waits for the next value that is read."""
    u, w, x, s = full(place), Vector(FP64, 70, backend=place), full(place), Scalar(FP64, 1)

    def body():
        w << u * 2
        x << x.ewise_add(w, binary.plus)
        if scalar:
            s(accum=binary.plus) << w.reduce(monoid.max)
        return x.get(1)

    for k in range(4):
        assert body() == 1 + 2 * (k + 1)
    launch = place.device.prepared_launch
    again = launch.again

    def interrupted(self, values):
        if when == "before":
            signal.raise_signal(signal.SIGINT)
        again(self, values)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(launch, "again", interrupted)
    with pytest.raises(KeyboardInterrupt):
        body()
    assert bool(recorder.queue.statements) == (when == "before")
    monkeypatch.setattr(launch, "again", again)
    assert x.get(1) == 11
    assert body() == 13
    assert s.value == (1 + 6 * 138 if scalar else 1)


def test_a_launch_that_finds_no_memory_runs_by_itself(place, monkeypatch):
    u, w, x = full(place), Vector(FP64, 70, backend=place), full(place)

    def body():
        w << u * 2
        x << x.ewise_add(w, binary.plus)
        return x.nvals, x.get(1)

    def fails(*_):
        raise MemoryError

    for k in range(4):
        assert body() == (70, 1 + 2 * (k + 1))
    monkeypatch.setattr(place.device, "notification", fails)
    monkeypatch.setattr(place.device.prepared_launch, "again", fails)
    assert body() == (70, 11)


def test_a_launch_that_comes_again_and_is_refused_is_the_end(place, monkeypatch):
    """What waited does not wait on, as after any other error."""
    u, w, x = full(place), Vector(FP64, 70, backend=place), full(place)

    def body():
        w << u * 2
        x << x.ewise_add(w, binary.plus)
        return x.get(1)

    def refused(*_):
        raise KernelLaunchError("refused")

    for k in range(4):
        assert body() == 1 + 2 * (k + 1)
    with monkeypatch.context() as patched:
        patched.setattr(place.device.prepared_launch, "again", refused)
        with pytest.raises(KernelLaunchError, match="refused"):
            body()
    assert not recorder.queue.statements
    assert x.get(1) == 9
    assert body() == 11


def test_no_memory_for_the_program(place, monkeypatch):
    """Then the statements run one by one."""
    u = full(place)

    def refuse(run, count, dtype):
        raise OutOfMemory("planted")

    monkeypatch.setattr(Run, "room", refuse)
    for _ in range(2):
        w = Vector(FP64, 70, backend=place)
        w << semiring.plus_second(u @ graph(place))
        w << w * 0
        with launches(place) as names:
            assert w.get(2) == 0
        assert "program" not in names


def test_an_error_ends_the_batch(place, monkeypatch):
    u, w, x = full(place), Vector(FP64, 70, backend=place), Vector(FP64, 70, backend=place)
    w << u
    x << u * 2
    w << u * 3
    real, ran = recorder.run_statement, []

    def fails(backend, s, depth=0):
        if ran:
            raise OutOfMemory("planted")
        ran.append(s)
        real(backend, s, depth)

    monkeypatch.setattr(program_batch, "AFTER", 9)
    monkeypatch.setattr(recorder, "run_statement", fails)
    with pytest.raises(OutOfMemory, match="planted"):
        w.to_coo()
    monkeypatch.undo()
    assert w.to_coo()[1].tolist() == list(range(70))
    assert x.nvals == 0


def test_a_program_is_made_in_the_background(backend, monkeypatch, tmp_path):
    if backend.capabilities.batches is None:
        pytest.skip("cpu runs each statement by itself")
    monkeypatch.setenv("LAGPU_CACHE_DIR", str(tmp_path))
    u, w = full(backend, 71), Vector(FP64, 71, backend=backend)
    with batches_at_once(after=1):
        program_batch.WAITS = False
        ran = []
        for _ in range(2000):
            w << u * 2
            w << w.ewise_mult(u, binary.minus)
            with launches(backend) as names:
                assert w.get(2) == 2
            ran.append("program" in names)
            if ran[-1]:
                break
            threading.Event().wait(0.05)
    assert ran[-1]
    assert not ran[0]


def test_what_does_not_compile_runs_one_by_one(place, monkeypatch):
    monkeypatch.setattr(program_batch, "WAITS", False)
    monkeypatch.setattr(place.device, "compile_beside", lambda kernel: lambda: False)
    u, w = full(place, 72), Vector(FP64, 72, backend=place)
    for _ in range(3):
        w << u + 2
        w << abs(w)
        with launches(place) as names:
            assert w.get(2) == 4
        assert "program" not in names


@for_all(cpu=1, compiled=24)
def test_drawn_bodies(backend, draw):
    if backend.capabilities.batches is None:
        pytest.skip("cpu runs each statement by itself")
    source = draw(batched_loops(), label="loop")
    n = draw(st.sampled_from((1, 31, 33, 70, 1025)), label="n")
    with tempfile.TemporaryDirectory() as folder, batches_at_once():
        function = load(source, Path(folder) / "body.py")
        for seed in range(4):
            compare(function, backend, n, 0, seed, runs_eager=False)
