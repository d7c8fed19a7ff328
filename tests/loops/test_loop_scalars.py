"""Scalars in loops: sums over a vector are pieces of a program, and numbers are read there."""

import contextlib
import dataclasses
import itertools
import struct
from collections import Counter

import numpy as np
import pytest
from loop_names import loop_name
from nvrtc import ARCHITECTURES, nvrtc_compile
from pass_texts import written_kernels
from samples import sampled
from scalar_loops import (
    PROGRAM,
    added,
    as_floats,
    assert_same,
    both,
    constants,
    counted,
    lagged,
    masked,
    normalised,
    rounded,
    sums,
    thresholds,
    two_loops,
    unions,
    vectors,
)

import lagpu
from lagpu import (
    BOOL,
    FP32,
    FP64,
    INT32,
    INT64,
    UINT64,
    Matrix,
    Scalar,
    Vector,
    binary,
    monoid,
)
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.kernels import from_source
from lagpu.errors import EmptyObject

SIZES = [1, 31, 32, 33, 256, 1023, 1025]
MONOIDS = ("plus", "times", "min", "max", "lor", "land", "lxor", "lxnor", "any")


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["empty", "one", "iso", "sparse", "bitmap", "full"])
@pytest.mark.parametrize("n", SIZES)
def test_sums_of_all_forms_and_sizes(place, n, kind):
    fused, eager = both(
        place,
        sums,
        lambda: vectors(n, INT64, place, kind),
        lambda: Vector(INT64, n, backend=place),
        lambda: Scalar(INT64),
        lambda: monoid.plus,
    )
    assert_same(fused, eager)
    expected = vectors(n, INT64, lagpu.backends.get("cpu"), kind).reduce("plus").new().value
    assert fused[-1].value == expected


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize(
    ("name", "dtype"),
    sampled(itertools.product(MONOIDS, (BOOL, INT32, UINT64, FP32, FP64)), 4),
    ids=str,
)
def test_every_monoid_and_type(place, name, dtype):
    add = monoid[name]
    for n, kind in ((70, "sparse"), (300, "full")):
        fused, eager = both(
            place,
            sums,
            lambda n=n, kind=kind: vectors(n, dtype, place, kind),
            lambda n=n: Vector(dtype, n, backend=place),
            lambda: Scalar(add.types(dtype)[1]),
            lambda: add,
        )
        if name == "any":
            values = fused[0].to_coo()[1]
            assert fused[-1].value in values
            assert eager[-1].value in values
        else:
            assert_same(fused, eager)


def test_sums_of_nan(place):
    """The least of numbers and NaN is a number; that of NaN alone is NaN."""
    for add in (monoid.min, monoid.max, monoid.plus):
        for values in ([np.nan] * 70, [np.nan, 3.0, np.nan, 1.0] * 20):
            fused, eager = both(
                place,
                sums,
                lambda values=values: Vector.from_dense(np.array(values), backend=place),
                lambda values=values: Vector(FP64, len(values), backend=place),
                lambda: Scalar(FP64),
                lambda add=add: add,
            )
            assert_same(fused[-1:], eager[-1:])


def test_a_sum_is_the_same_in_each_run(place):
    rng = np.random.default_rng(7)
    values = rng.random(100_000) * 10.0 ** rng.integers(-8, 8, 100_000)
    v = Vector.from_dense(values, backend=place)
    found = set()
    for _ in range(5):
        s = Scalar(FP64)
        sums(v, Vector(FP64, v.size, backend=place), s, monoid.plus)
        assert loop_name(place) == PROGRAM
        found.add(s.value)
    assert len(found) == 1
    assert found.pop() == pytest.approx(values.sum(), rel=1e-12)


def test_results_are_cast_into_the_scalar(place):
    for dtype in (INT32, BOOL, FP32, UINT64):
        fused, eager = both(
            place,
            sums,
            lambda: Vector.from_dense(np.array([-1.5, 2.0, -7.25]), backend=place),
            lambda: Vector(FP64, 3, backend=place),
            lambda dtype=dtype: Scalar(dtype, 1),
            lambda: monoid.plus,
        )
        assert_same(fused, eager)


@pytest.mark.parametrize("dtype", [FP32, FP64], ids=str)
def test_whole_numbers_become_floats_as_on_the_host(place, dtype):
    for number in (2**62 + 2**38 + 1, -(2**53) - 1, 7):
        fused, eager = both(
            place,
            as_floats,
            lambda number=number: Vector.from_coo([1], [number], INT64, size=2, backend=place),
            lambda: Vector(dtype, 2, backend=place),
            lambda: Scalar(INT64),
        )
        assert fused[1].isequal(eager[1])
        assert fused[2].value == number


# ---------------------------------------------------------------------------------- whole loops


@pytest.fixture
def guards(monkeypatch):
    """Numbers behind the room of each kernel, which no kernel is to write."""
    kept = []

    def room(self, count, dtype):
        made = self.device.xp.full(count + 64, 77, dtype)
        kept.append(made[count:])
        return made[:count]

    monkeypatch.setattr(emit.Run, "room", room)
    return kept


@pytest.mark.parametrize("n", SIZES)
def test_loops_of_a_user(place, n, guards):
    rng = np.random.default_rng(n)
    rows, cols = rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n)

    def graph():
        values = 1.0 + np.arange(4 * n) % 3
        return Matrix.from_coo(
            [*rows, *range(n)], [*cols, *range(n)], [*values, *[1.0] * n],
            nrows=n, ncols=n, dup_op=binary.first, backend=place,
        )  # fmt: skip

    def full():
        return Vector.from_dense(np.arange(n) % 7 + 1.0, backend=place)

    def some():
        return Vector.from_coo(np.arange(0, n, 2), np.arange(0, n, 2) % 5, size=n, backend=place)

    def blank():
        return Vector(FP64, n, backend=place)

    for function, *make in (
        (normalised, graph, full, blank, lambda: Scalar(FP64), lambda: 4),
        (masked, full, blank, some, lambda: Scalar(FP64)),
        (masked, full, blank, some, lambda: Scalar(INT64, 5)),
        (lagged, full, blank, lambda: Scalar(FP64), lambda: Scalar(FP64, 2.5)),
        (thresholds, full, full, lambda: Scalar(FP64), lambda: Scalar(FP64), blank),
        (unions, some, some, blank, lambda: Scalar(INT64), lambda: Scalar(INT64)),
        (constants, blank, lambda: Scalar(INT64)),
        (counted, full, lambda: Vector.from_coo([0], 1.0, size=1, backend=place),
         lambda: Scalar(FP64, 9)),
        (two_loops, full, blank, lambda: Scalar(FP64), lambda: Scalar(FP64)),
    ):  # fmt: skip
        assert_same(*both(place, function, *make))
    assert guards
    assert all((guard == 77).all() for guard in guards)


def test_what_the_loops_leave_is_right(backend):
    """On every backend, cpu too: numbers worked out by hand."""
    ones = Vector.from_dense(np.ones(40), backend=backend)
    blank = Vector(FP64, 40, backend=backend)
    before, s = Scalar(FP64), Scalar(FP64, 2)
    lagged(ones, blank, before, s)
    assert (before.value, s.value) == (2 + 3 + 0 + 1 + 2, 2 + 4 + 0 + 1 + 2 + 3)
    one, total = Vector.from_coo([0], 1.0, size=1, backend=backend), Scalar(FP64)
    counted(ones, one, total)
    assert (one.nvals, total.value) == (0, 40 / 64)
    counts, last = Vector.from_dense(np.zeros(3), backend=backend), Scalar(INT64)
    constants(counts, last)
    assert (counts.to_dense().tolist(), last.value) == ([10.0] * 3, 4)
    s, t = Scalar(FP64), Scalar(FP64)
    two_loops(Vector.from_dense(np.ones(40), backend=backend), blank, s, t)
    assert (s.value, t.value) == (2, 40 * 40 * 4)


def test_a_scalar_is_rounded_between_two_statements(place):
    """A compiler may make one instruction of a product and a sum, which rounds once."""
    near, less = 1 + 2.0**-30, -(1 + 2.0**-29)
    found = both(
        place,
        rounded,
        lambda: Vector.from_dense(np.zeros(3), backend=place),
        lambda: Scalar(FP64),
        lambda: Scalar(FP64, near),
        lambda: Scalar(FP64, less),
    )
    assert [(s.value, v.to_dense().tolist()) for v, s, *_ in found] == 2 * [(0.0, 3 * [0.0])]


def test_a_scalar_comes_to_another_device_by_way_of_the_host(monkeypatch):
    here, there = lagpu.backends.get("sim"), lagpu.backends.get("sim:1")
    s, reads, to_host = Scalar(FP64, 0.0), [], here.device.to_host
    monkeypatch.setattr(here.device, "to_host", lambda a: reads.append(a) or to_host(a))
    w = Vector(FP64, 4, backend=here)
    added(Vector.from_dense(np.arange(4.0), backend=here), w, s)
    assert not reads
    w = Vector(FP64, 4, backend=there)
    added(Vector.from_dense(np.ones(4), backend=there), w, s)
    assert len(reads) == 1  # as its memory is not the other device's
    assert loop_name(here) == loop_name(there) == "generated loop"
    assert (s.value, w.to_dense().tolist()) == (10, [10] * 4)


def test_a_scalar_stays_on_the_device_until_it_is_asked_for(place, monkeypatch):
    v = Vector.from_dense(np.arange(40.0), backend=place)
    w, s, t = Vector(FP64, 40, backend=place), Scalar(FP64, 0.0), Scalar(FP64, 0.0)
    masked(v, w, Vector(BOOL, 40, backend=place), s)
    reads = []
    to_host = place.device.to_host
    monkeypatch.setattr(place.device, "to_host", lambda a: reads.append(a) or to_host(a))
    masked(v, w, Vector(BOOL, 40, backend=place), s)
    masked(v, w, Vector(BOOL, 40, backend=place), t)
    assert not reads
    assert (s.value, t.value) == (4 * 780, 2 * 780)
    assert len(reads) == 2
    assert (s.value, t.value) == (4 * 780, 2 * 780)
    assert len(reads) == 2
    s << 1.0
    t.clear()
    for x in (s, t):
        masked(v, w, Vector(BOOL, 40, backend=place), x)
    assert (s.value, t.value) == (1 + 2 * 780, 2 * 780)


def test_a_scalar_as_ever(backend):
    s = Scalar(INT32, 3)
    s(accum=binary.plus) << 4
    s << s
    assert (s.value, s.nvals, repr(s)) == (7, 1, "Scalar(INT32, 7)")
    t = Scalar(FP64)
    t << s
    assert t.value == 7.0
    s.clear()
    assert s.is_empty
    with pytest.raises(EmptyObject):
        t << s


# ------------------------------------------------------------------------------------ the compiler


@pytest.fixture
def made(monkeypatch):
    """The kernels of generated loops that a test has written; none is kept from before."""
    return written_kernels(monkeypatch)


@pytest.mark.ci
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("traced", [False, True])
def test_nvrtc_compiles_programs_with_sums(arch, traced, made):
    sim = lagpu.backends.get("sim")
    with lagpu.trace() if traced else contextlib.nullcontext():
        for name, dtype in zip(MONOIDS, (*lagpu.dtypes.ALL, *lagpu.dtypes.ALL), strict=False):
            add = monoid[name]
            v = vectors(33, dtype, sim, "sparse")
            sums(v, Vector(dtype, 33, backend=sim), Scalar(add.types(dtype)[1]), add)
        blank = Vector(FP64, 33, backend=sim)
        lagged(v.dup(FP64), blank, Scalar(FP64), Scalar(FP32, 1))
        thresholds(v.dup(FP64), v.dup(FP64), Scalar(INT64), Scalar(BOOL), blank)
    assert len(made) == len(MONOIDS) + 2
    for kernel in made[ARCHITECTURES.index(arch) :: 3]:  # each for one GPU, and each GPU some
        assert nvrtc_compile(kernel, arch)


def operations(code):
    """How often each operation stands in the machine code of a cubin, by its number."""
    sections, (size, count, of_names) = _at("Q", code, 0x28)[0], _at("HHH", code, 0x3A)
    headers = [_at("IIQQQQ", code, sections + k * size) for k in range(count)]
    names = headers[of_names][4]
    texts = [h for h in headers if code[names + h[0] :].startswith(b".text.")]
    return Counter(
        _at("Q", code, at)[0] & 0xFFF for h in texts for at in range(h[4], h[4] + h[5], 16)
    )


def _at(form, code, offset):
    return struct.unpack_from(f"<{form}", code, offset)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_ptxas_contracts_no_two_statements(kind, arch):
    """As `as_stored` promises; without it the product and the sum are one operation."""

    def made(product):
        text = '#include "common/prims.cuh"\n' + (
            f'extern "C" __global__ void once({kind}* x) {{ x[3] = {product} + x[2]; }}'
        )
        return operations(nvrtc_compile(from_source(text, "once"), arch, optimised=True))

    rounded = "__fmul_rn" if kind == "f32" else "__dmul_rn"
    contracted = made("x[0] * x[1]").keys() - made(f"{rounded}(x[0], x[1])").keys()
    assert contracted
    assert not contracted & made("as_stored(x[0] * x[1])").keys()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_ptxas_contracts_no_scalars(arch, made):
    sim = lagpu.backends.get("sim")
    numbers = [Scalar(FP64), Scalar(FP64, 2.0), Scalar(FP64, 3.0)]
    rounded(Vector.from_dense(np.zeros(3), backend=sim), *numbers)
    (kernel,) = made
    stored = operations(nvrtc_compile(kernel, arch, optimised=True))
    bare = dataclasses.replace(kernel, source=kernel.source.replace("= as_stored(s", "= (s"))
    before = operations(nvrtc_compile(bare, arch, optimised=True))
    assert before.keys() - stored.keys()  # the operation of both
