"""A loop that was recorded on objects alike runs from that record; on others it is recorded."""

import gc
import sys
import weakref

import known_loops
import numpy as np
import pytest
from known_loops import blend, both, by_identity, carry, relax, search, search_from, several

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix, Scalar, Vector, binary, loop, semiring
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.gpu.storage.stores import VectorStore
from lagpu.core.recorder import Recorder
from lagpu.errors import BackendMismatch, DimensionMismatch, EmptyObject
from lagpu.generators import kronecker
from lagpu.loops import loop as known


def graph(place, seed=3, scale=5):
    return kronecker(scale, backend=place, seed=seed)


def start(A, source, dtype=INT32):
    levels, frontier = Vector(dtype, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    frontier[source] = True
    return levels, frontier


def levels_of(A, source, dtype=INT32, ring=semiring.any_pair):
    levels, frontier = start(A, source, dtype)
    search(A, levels, frontier, ring)
    assert not frontier.nvals
    return levels


def right(A, source):
    with lagpu.eager():
        return lagpu.algorithms.bfs_levels(A.to("cpu"), source)


def test_a_loop_is_recorded_once(place, opened):
    for seed in (3, 4):  # another graph of the same size
        A = graph(place, seed)
        for source in (1, 2, 1):
            assert levels_of(A, source).to("cpu").isequal(right(A, source))
            assert place.last_loop.startswith("grid search: ")
    assert len(opened) == 1


@pytest.mark.parametrize("unasked", [0, 1 << 20])
def test_a_search_allocates_the_buffers_of_the_next(place, monkeypatch, unasked):
    A, counters, found = graph(place), place.runtime.counters, []
    for _ in range(2):  # recorded, and planned
        levels_of(A, 1)
    monkeypatch.setattr(place.device, "unasked", unasked)
    monkeypatch.setattr(counters, "ahead", {})
    for k, source in enumerate((1, 2, 3)):
        ahead = [x for buffers in counters.ahead.values() for x in buffers]
        assert len(ahead) == (2 if k and unasked else 0)
        found.append(levels_of(A, source))
        mine = found[-1].data.words, found[-1].data.values
        assert not ahead or all(x is y for x, y in zip(ahead, mine, strict=True))
    for source, levels in zip((1, 2, 3), found, strict=True):
        assert levels.to("cpu").isequal(right(A, source))


def test_a_search_that_cannot_allocate_for_the_next_has_ended(place, monkeypatch):
    A, counters, calls, inner = graph(place), place.runtime.counters, [], VectorStore.spare_values
    for _ in range(2):
        levels_of(A, 1)

    def spare_values(self, dtype):
        calls.append(dtype)
        if len(calls) == 2:
            raise MemoryError
        return inner(self, dtype)

    monkeypatch.setattr(place.device, "unasked", 1 << 20)
    monkeypatch.setattr(counters, "ahead", {})
    monkeypatch.setattr(VectorStore, "spare_values", spare_values)
    assert levels_of(A, 2).to("cpu").isequal(right(A, 2))
    assert (len(calls), counters.ahead) == (2, {})


def test_what_is_not_alike_is_recorded(place, opened):
    A = graph(place)
    for k, (other, dtype, ring) in enumerate(
        [
            (A, INT32, semiring.any_pair),
            (A, INT64, semiring.any_pair),  # another type
            (graph(place, scale=6), INT64, semiring.any_pair),  # another size
            (A, INT64, semiring.any_second),  # another operator
        ]
    ):
        for source in (1, 2):
            found = levels_of(other, source, dtype, ring)
            assert found.dtype is dtype
            assert np.array_equal(found.to_dense(-1), right(other, source).to_dense(-1))
        assert len(opened) == k + 1


def test_an_object_of_another_backend_is_refused_as_at_first(place, opened):
    for A, levels_on in ((graph(place), "cpu"), (graph("cpu"), place)):
        for _ in range(2):
            levels_of(A, 1)
            levels, frontier = Vector(INT32, 32, backend=levels_on), start(A, 1)[1]
            with pytest.raises(BackendMismatch):
                search(A, levels, frontier)
            assert (levels.nvals, frontier.nvals) == (0, 1)


def test_a_number_is_a_part_of_the_loop(place, opened):
    A = Matrix.from_coo([0, 1], [1, 2], [1.0, 1.0], nrows=3, ncols=3, backend=place)
    for k, addend in enumerate((1, 2, 2)):
        width = Vector.from_coo([0], 0.0, dtype=FP64, size=3, backend=place)
        relax(A, width, addend)
        assert width.to_dense(-1).tolist() == [[1, 1, 2], [2, 2, 3], [2, 2, 3]][k]
        assert len(opened) == (1, 2, 2)[k]


def test_what_objects_hold_is_asked_again(place, opened):
    """Whether a search keeps values and pulls follows from entries, which no record has."""
    both_ways = graph(place)
    rows, cols, _ = both_ways.to_coo()
    ahead = rows < cols
    one_way = Matrix.from_coo(rows[ahead], cols[ahead], nrows=32, ncols=32, backend=place)
    for A in (both_ways, one_way, both_ways):
        for start in ({1: 1}, {1: 7}, {1: 2, 3: 2}, {}, {1: 1}):
            found, right = (Vector(INT64, 32, like=A) for _ in range(2))
            for carried, how in ((found, carry), (right, lagpu.eager()(carry))):
                frontier = Vector(INT64, 32, like=A)
                for i, value in start.items():
                    frontier[i] = value
                how(A, carried, frontier)
            assert found.isequal(right)
    assert len(opened) == 1


@pytest.mark.parametrize("body", [search, search_from])
def test_a_search_again_keeps_what_was_found_before(place, opened, body):
    """After those from empty levels it begins from some, once they are known and once not."""
    A = graph(place)
    for k, before in enumerate([{}, {}, {}, {5: 1}, {}, {2: 9, 7: 8}, {6: 1}, {}]):
        found, right = (Vector.from_dict(before, INT32, size=32, like=A) for _ in range(2))
        for levels, how in ((found, body), (right, lagpu.eager()(body))):
            if k == 6:
                levels << levels  # a bitmap, whose entries no one has counted
            frontier = Vector(BOOL, 32, like=A)
            frontier[1] = True
            how(A, levels, frontier)
        assert found.isequal(right), before
    assert len(opened) == 1


def test_one_object_under_two_names_is_another_loop(place, opened):
    """Its statements are others."""
    A = graph(place)
    for k, same in enumerate((False, False, True, True, False)):
        u = Vector.from_coo([1], 1, size=32, like=A)
        v = u if same else Vector(INT64, 32, like=A)
        blend(A, u, v)
        assert len(opened) == (1, 1, 2, 2, 3)[k]
        other = graph("cpu")
        x = Vector.from_coo([1], 1, size=32, like=other)
        y = x if same else Vector(INT64, 32, like=other)
        with lagpu.eager():
            blend(other, x, y)
        assert u.to("cpu").isequal(x)
        assert v.to("cpu").isequal(y)


def test_a_view_of_one_matrix_stays_with_it(place, opened):
    """Its name is another than the matrix'; that may come to mean another matrix, and it not."""
    first, second = graph(place, 3), graph(place, 4)
    f = Vector.from_dense(np.arange(32) % 7, backend=place)
    narrow = f.dup(INT32)
    for k, view in enumerate((first.T, f.selection(32), narrow.selection(32), first.T)):
        for A in (first, first, second, first):
            x, y, expected, right = (Vector.from_coo([1], 1, size=32, like=A) for _ in range(4))
            both(A, view, x, y)
            with lagpu.eager():
                relay(view, expected)
                relay(A, right)
            assert x.isequal(expected)
            assert y.isequal(right)
        # A loop over first.T and first is not that over first.T and second.
        assert len(opened) == (3, 4, 5, 8)[k]


def relay(A, x):
    for _ in range(2):
        x << semiring.plus_times(x @ A)


def test_who_looks_on_sees_the_body(place, opened):
    A = graph(place)
    levels_of(A, 1)
    with lagpu.trace() as t:
        levels_of(A, 1)
    assert len(opened) == 2
    assert [row for row in t.rows if "levels" in str(row)]
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        levels_of(A, 1)
    finally:
        sys.settrace(before)
    assert len(opened) == 3
    levels_of(A, 1)
    assert len(opened) == 3


def test_errors_come_as_before(place, opened):
    A = graph(place)
    for _ in range(2):
        levels_of(A, 1)
        frontier = start(A, 1)[1]
        with pytest.raises(DimensionMismatch):
            search(A, Vector(INT32, 31, like=A), frontier)
        assert frontier.nvals == 1


def test_an_empty_frontier_runs_no_iteration(place, opened):
    A = graph(place)
    levels_of(A, 1)
    levels, frontier = start(A, 1)
    frontier.clear()
    search(A, levels, frontier)
    assert place.last_loop == "no iteration"
    assert levels.nvals == 0


def test_a_bound_holds_each_time(place, opened):
    A = graph(place)
    for times in (2, 1, 1, 0, 0, 2):
        x, y = (Vector.from_coo([1], 1, size=32, like=A) for _ in "xy")
        several(A, x, times)
        with lagpu.eager():
            for _ in range(times):
                relay_once(A, y)
        assert x.isequal(y)
    assert len(opened) == 1


@pytest.mark.parametrize("end", ["empty", "unchanged"])
def test_a_loop_may_watch_an_object_of_the_other_kind(place, opened, end):
    """A vector ends a loop over matrices that none has ended before, or the other way round."""
    A = graph(place)
    for x, watched in ((A.dup(INT64), A[0, :].new()), (A[0, :].new(INT64), A)):
        found = []
        for ends in ({}, {end: watched}, {end: watched}, {}):
            y = x.dup()
            known_loops.watching(y, **ends)
            found.append(y.reduce_scalar("plus") if y.ndim == 2 else y.reduce("plus"))
        once = 2 if end == "unchanged" else 4
        assert [s.new().value // x.nvals for s in found] == [4, once, once, 4]


def test_what_an_if_finds_identical_is_a_part_of_the_loop(place, opened):
    A, number = graph(place), 10**9
    first, second = A.T, A.T
    u, v = (Vector(INT64, 3, like=A) for _ in "uv")
    pairs = [(None, None), (1, None), (None, None), (u, None), (v, None), (u, u), (v, v), (u, v)]
    pairs += [(first, first), (first, second), (number, number), (number, int("1" + 9 * "0"))]
    for one, other in pairs:
        x = Vector.from_scalar(1, 3, like=A)
        by_identity(x, one, other)
        assert x.to_dict()[1] == (4 if one is other else 9), (one, other)
    by_identity(x, u)
    before = len(opened)
    by_identity(x, v)
    assert len(opened) == before  # the types decide


def after(how, place, *given):
    """Return what a loop makes of 1."""
    x = Vector.from_scalar(1, 3, INT64, backend=place)
    how(x, *given)
    return x.to_dict()[1]


def test_a_global_or_a_cell_that_changes_is_seen(place, opened, monkeypatch):
    by_cell, change, _ = known_loops.cell(2)
    for k, number in enumerate((2, 2, 3, 3, 2.0, 3)):
        monkeypatch.setattr(known_loops, "number", number)
        change(number)
        assert after(known_loops.by_global, place) == number
        assert after(by_cell, place) == number
        assert len(opened) == 2 * (1, 1, 2, 2, 3, 4)[k]
    monkeypatch.delattr(known_loops, "number")
    with pytest.raises(NameError):
        after(known_loops.by_global, place)


def test_a_function_that_changes_is_seen(place, opened, monkeypatch):
    function = known_loops.function
    for now, right in [(function, 2), (lambda x: x * 3, 3), (function, 2)]:
        monkeypatch.setattr(known_loops, "function", now)
        assert [after(known_loops.by_function, place) for _ in range(3)] == [right] * 3
    monkeypatch.setattr(function, "__code__", (lambda x: x + 4).__code__)
    assert after(known_loops.by_function, place) == 5


class Box:
    n: int


def test_an_attribute_that_changes_is_seen(place, opened, monkeypatch):
    box = Box()
    for k, box.n in enumerate((2, 2, 3, 3)):
        assert after(known_loops.by_attribute, place, box) == box.n
        assert len(opened) == (1, 1, 2, 2)[k]
    other = Box()
    other.n = 7
    assert after(known_loops.by_attribute, place, other) == 7
    monkeypatch.setattr(Box, "n", property(lambda self: 9), raising=False)
    assert after(known_loops.by_attribute, place, other) == 9
    assert place.last_loop.startswith("eager: ")


def test_a_variable_without_a_value_is_none_of_the_module(place, opened):
    for number in (5, 5):
        assert after(known_loops.by_local, place, number, False) == 5
    with pytest.raises(UnboundLocalError):
        after(known_loops.by_local, place, 5, True)
    assert after(known_loops.by_local, place, 5, False) == 5
    assert len(opened) == 2  # when it was recorded, and where its first line raised


def test_a_cell_without_a_value_is_none_of_the_module(place, opened, monkeypatch):
    by_cell, change, delete = known_loops.cell(5)
    monkeypatch.setattr(known_loops, "n", 5, raising=False)
    assert [after(by_cell, place) for _ in range(2)] == [5, 5]
    delete()
    with pytest.raises(NameError):
        after(by_cell, place)
    change(5)
    assert after(by_cell, place) == 5


def test_the_backend_is_that_of_the_objects(place, opened):
    other = GpuBackend("sim", SimDevice())
    where = [(place, place), (place, place), (other, other), (other, place), ("cpu", "cpu")]
    where += [(place, other), ("cpu", place), (place, place)]
    for k, backends in enumerate(where):
        x, y = (Vector.from_scalar(1, 3, INT64, backend=b) for b in backends)
        place.last_loop = other.last_loop = ""
        known_loops.of_two(x, y)
        assert (x.to_dict()[1], y.to_dict()[1]) == (2, 2)
        fused = [b.last_loop.startswith("generated loop") for b in (place, other)]
        assert fused == [all(b is one for b in backends) for one in (place, other)], k
    assert len(opened) == 1


def test_what_is_no_object_is_asked_nothing(place, opened):
    class Other:
        backend = property(lambda self: pytest.fail("its code runs"))

    x, y = (Vector.from_scalar(1, 3, INT64, backend=place) for _ in "xy")
    known_loops.of_two(x, y)
    with pytest.raises(TypeError):
        known_loops.of_two(Other(), y)


def relay_once(A, x):
    x << semiring.plus_times(x @ A)


def test_a_statement_on_what_has_no_name_is_not_kept(place):
    x, y = (Vector(INT64, 3, backend=place) for _ in "xy")
    recorder = Recorder(place)
    recorder.open()
    try:
        x << y
        statements = list(recorder.statements)
    finally:
        recorder.close()
    loop = known.KnownLoop(search.__code__, [("x", x)])
    assert not loop.learn(statements, [x.data])
    assert known.KnownLoop(search.__code__, [("x", x), ("y", y)]).learn(
        statements, [x.data, y.data]
    )


def test_statement_by_statement_it_is_the_same_record(place, opened):
    A = graph(place)
    for _ in range(2):
        with lagpu.eager():
            assert levels_of(A, 1).to("cpu").isequal(right(A, 1))
            assert place.last_loop.startswith("eager: ")
    assert len(opened) <= 1 + 2  # `right` is a loop of its own, on cpu


def test_it_keeps_no_vector_alive(place, opened, own_garbage):
    A = graph(place)
    levels, frontier = start(A, 1)
    search(A, levels, frontier)
    kept = [weakref.ref(x.data) for x in (levels, frontier) if hasattr(x.data, "__weakref__")]
    (loop,) = known._known.values()
    record = loop.record
    held = gc.get_referents(
        loop, *loop._likes, *vars(record).values(), *record.statements, *record.found.values()
    )
    held += [x for s in record.statements for x in (*s.desc, *s.operation)]
    assert any(x is record.places[0] for x in held), "they stand on places"
    assert not any(x is y.data for x in held for y in (levels, frontier, A))
    del levels, frontier, held
    gc.collect()
    assert not any(x() for x in kept)


def sums(A, value, times=None):
    """A search whose products are the frontier's values, added up."""
    total, f = Vector(FP64, A.nrows, like=A), Vector(FP64, A.nrows, like=A)
    f[1] = value
    for _ in loop(until_empty=f, times=times):
        total(f.S) << f
        f(~total.S, replace=True) << semiring.plus_first(f @ A)
    return total, f


def firsts(A, value, times=None):
    """A search that finds in each vertex the value of some vertex before it."""
    found, f = Vector(INT32, A.nrows, like=A), Vector(INT32, A.nrows, like=A)
    f[1] = value
    for _ in loop(until_empty=f, times=times):
        found(f.S) << f
        f(~found.S, replace=True) << semiring.min_first(f @ A)
    return found, f


@pytest.mark.parametrize("body", [sums, firsts])
def test_a_plan_of_a_search_is_of_its_frontier_and_its_bound(place, opened, body):
    """With 1 as the value all products may be 1, which needs no values; a bound leaves some."""
    A = graph(place, scale=6)
    B = A.to("cpu")
    for value, times in ((1, None), (1, None), (3, None), (1, 1), (3, 2), (1, None), (3, None)):
        for x, y in zip(body(A, value, times), body(B, value, times), strict=True):
            assert x.to("cpu").isclose(y), (value, times)


def test_a_plan_of_a_search_is_of_the_forms_that_the_matrix_may_keep(place, opened):
    A = graph(place).select("triu", 0).new()
    for orientation, way in (("auto", ""), ("csc", "only"), ("auto", ""), ("csc", "only")):
        A.orientation = orientation
        for source in (0, 1):
            assert levels_of(A, source).to("cpu").isequal(right(A, source))
            assert ("only" in place.last_loop) == bool(way), place.last_loop


def test_a_search_that_was_planned_is_not_planned_again(place, opened, monkeypatch):
    A, planned, inner = graph(place), [], search_grid._Plan.__init__
    monkeypatch.setattr(search_grid._Plan, "__init__", lambda *x: (planned.append(1), inner(*x))[1])
    for source in (1, 2, 3):
        assert levels_of(A, source).to("cpu").isequal(right(A, source))
    assert len(planned) == 2  # when it was recorded, and when it was known


def test_a_plan_does_not_keep_its_matrix(place, opened):
    A = graph(place)
    for source in (1, 2, 3):
        levels_of(A, source)
    form = weakref.ref(A.data.csc())
    del A
    gc.collect()
    assert form() is None


def ranked(A, ranks, total, close, enough):
    for _ in loop(times=9, until=close):
        ranks << semiring.plus_times(ranks @ A)
        total << ranks.reduce("plus")
        ranks << ranks / total
        total(accum=binary.times) << 2
        close << (total < enough)


def of_scalars(A, value, enough, start=None):
    ranks = Vector.from_scalar(value, A.nrows, FP64, like=A)
    total, close = Scalar(FP64, start), Scalar(BOOL)
    ranked(A, ranks, total, close, enough)
    return ranks, total, close


def test_a_loop_with_scalars_is_recorded_once(place, opened):
    """The number may be computed again; whether a scalar has a value is asked each time."""
    A, B = graph(place), graph("cpu")
    for k, (value, enough, start) in enumerate(
        [(1, 2.5, None), (3, 5 / 2, None), (1, 2.5, 7), (1, 1e9, 7), (2, 1e9, None), (2, 2.5, 1)]
    ):
        found, right = of_scalars(A, value, enough, start), of_scalars(B, value, enough, start)
        assert found[0].to("cpu").isclose(right[0])
        assert [x.value for x in found[1:]] == pytest.approx([x.value for x in right[1:]])
        assert len(opened) == (1, 1, 1, 2, 2, 3)[k]


def scaled(x, s, t, number):
    for _ in loop(times=2):
        x << x * s
        t << s * number


def test_a_scalar_without_a_value_is_refused_each_time(place, opened):
    for value in (2, 3, None, 2, None):
        x, s, t = Vector.from_scalar(1, 33, like=graph(place)), Scalar(INT64, value), Scalar(INT64)
        if value is None:
            with pytest.raises(EmptyObject, match="s has no value"):
                scaled(x, s, t, 5)
        else:
            scaled(x, s, t, 5)
            assert (x.to_dict()[7], t.value) == (value**2, 5 * value)
    assert len(opened) == 1


def test_an_error_names_the_scalar_of_this_call(place, opened):
    for name in ("one", "other"):
        x, s = Vector.from_scalar(1, 33, like=graph(place)), Scalar(INT64, name=name)
        with pytest.raises(EmptyObject, match=f"the scalar {name} has no value"):
            scaled(x, s, Scalar(INT64), 5)


def test_numbers_that_differ_in_a_bit_or_a_type_are_others(place, opened):
    for k, number in enumerate((0.0, -0.0, -0.0, 0, float("nan"), float("nan"), 2.0, 2, 4 / 2)):
        x, s, t = Vector.from_scalar(1.0, 3, like=graph(place)), Scalar(FP64, 1.0), Scalar(FP64)
        scaled(x, s, t, number)
        assert repr(t.value) == repr(float(number))
        assert len(opened) == (1, 2, 2, 3, 4, 5, 6, 7, 8)[k]


def test_a_scalar_under_two_names(place, opened):
    for k, same in enumerate((False, True, True, False)):
        x, s = Vector.from_scalar(1, 3, like=graph(place)), Scalar(INT64, 3)
        t = s if same else Scalar(INT64)
        scaled(x, s, t, 2)
        assert (x.to_dict()[1], t.value) == ((3 * 6, 12) if same else (9, 6))
        assert len(opened) == (1, 2, 2, 3)[k]


def test_a_scalar_that_another_device_has(place, opened):
    other = GpuBackend("sim", SimDevice())
    for k in range(3):
        x, y = (Vector.from_scalar(k, 3, backend=b) for b in (place, other))
        s, t = Scalar(INT64), Scalar(INT64)
        scaled_by_most(y, s)
        assert s.data.holder is other.device
        scaled(x, s, t, 2)
        assert s.data.location is None  # this device cannot read it there
        assert (x.to_dict()[1], t.value) == (k * (k + 2) ** 2, 2 * (k + 2))
    assert len(opened) == 2


def scaled_by_most(y, s):
    for _ in loop(times=2):
        y << y + 1
        s << y.reduce("max")


def counted(A, levels, frontier, total, last):
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        total(accum=binary.plus) << frontier.reduce("lor")
        last << levels.reduce("max")
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)


@pytest.mark.parametrize("where", ["place", "grid:2:sim"])
def test_a_search_that_counts_is_no_search(place, opened, where):
    """Its scalars have places too, which are none of vectors."""
    A = graph(place if where == "place" else where)
    for source in (1, 2, 3):
        levels, frontier = start(A, source)
        total, last = Scalar(INT64, 0), Scalar(INT64)
        counted(A, levels, frontier, total, last)
        assert A.backend.last_loop.startswith("generated loop")
        assert np.array_equal(levels.to_dense(-1), right(A, source).to_dense(-1))
        assert (last.value, total.value) == (levels.to_dense(-1).max(), last.value + 1)
