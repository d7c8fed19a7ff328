"""Every vector operation x mask x complement x accumulator x replace x type, by plain loops."""

import numpy as np
import pytest
import reference
from hypothesis import strategies as st
from matches import assert_matches
from reference import How
from strategies import (
    ACCUMS,
    BIG_SIZES,
    BINARY,
    INDEXUNARY,
    MONOIDS,
    SELECTORS,
    TYPES,
    UNARY,
    VALUES,
    combination,
    for_all,
    how_written,
    mask_of,
    plain_vector,
    sizes,
    vector,
)

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Vector, binary, indexunary, monoid, unary
from lagpu.core.arguments import bound_operator, selected, with_defaults

ALIASES = ("none", "w is u", "w is v", "m is w", "m is u", "u is v", "all")


def operands(draw, backend, pick, *, alias=True):
    """Draw w, u, v and how to write, some of them one object; and the same on the backend."""
    n = draw(sizes(), label="size")
    how = how_written(draw, n, pick["accum"])
    plain = {
        "w": plain_vector(draw, n, pick["w"]),
        "u": plain_vector(draw, n, pick["u"]),
        "v": plain_vector(draw, n, pick["v"]),
        "m": how.mask,
    }
    names = {name: name for name in plain}
    if alias:
        shared = draw(st.sampled_from(ALIASES), label="alias")
        pairs = {"all": ("uw", "vw", "mw")}.get(shared, (shared[0] + shared[-1],))
        for one, other in pairs if shared != "none" else ():
            if one != "m" or how.mask is not None:
                plain[one], names[one] = plain[other], names[other]
    how.mask = plain["m"]
    live = {k: vector(plain[k], backend) for k in set(names.values()) if plain[k] is not None}
    return plain, {k: live.get(names[k]) for k in names}, how


def updater(live, how):
    mask = mask_of(how, live["m"])
    return live["w"](mask, accum=how.accum, replace=how.replace)


def choose(draw, backend, **more):
    return combination(draw, backend, w=TYPES, u=TYPES, v=TYPES, accum=ACCUMS, **more)


@for_all(cpu=250)
def test_ewise_add(backend, draw):
    pick = choose(draw, backend, op=BINARY)
    plain, live, how = operands(draw, backend, pick)
    result = reference.ewise_add(plain["u"], plain["v"], pick["op"])
    dtype = pick["op"].types(plain["u"].dtype, plain["v"].dtype)[1]
    expected = reference.write(plain["w"], result, dtype, how)
    updater(live, how) << live["u"].ewise_add(live["v"], pick["op"])
    assert_matches(live["w"], expected)


@for_all(cpu=250)
def test_ewise_mult(backend, draw):
    pick = choose(draw, backend, op=BINARY)
    plain, live, how = operands(draw, backend, pick)
    result = reference.ewise_mult(plain["u"], plain["v"], pick["op"])
    dtype = pick["op"].types(plain["u"].dtype, plain["v"].dtype)[1]
    expected = reference.write(plain["w"], result, dtype, how)
    updater(live, how) << live["u"].ewise_mult(live["v"], pick["op"])
    assert_matches(live["w"], expected)


@for_all()
def test_ewise_union(backend, draw):
    pick = choose(draw, backend, op=BINARY)
    plain, live, how = operands(draw, backend, pick)
    left, right = draw(st.sampled_from(((0, 1), (3, 2), (1, 0))), label="defaults")
    types = plain["u"].dtype, plain["v"].dtype
    op, _ = with_defaults(pick["op"], *types, (left, right))  # a 3 beside BOOL is of INT64
    result = reference.ewise_union(plain["u"], plain["v"], op, left, right)
    expected = reference.write(plain["w"], result, op.types(*types)[1], how)
    updater(live, how) << live["u"].ewise_union(live["v"], pick["op"], left, right)
    assert_matches(live["w"], expected)


@for_all()
def test_apply_unary(backend, draw):
    pick = choose(draw, backend, op=UNARY)
    plain, live, how = operands(draw, backend, pick)
    applying = bound_operator(plain["u"].dtype, pick["op"], None, None)
    result = reference.apply(plain["u"].entries, pick["op"], applying)
    expected = reference.write(plain["w"], result, applying.result, how)
    updater(live, how) << live["u"].apply(pick["op"])
    assert_matches(live["w"], expected, applying.result)  # exp may differ in the last bit


@for_all()
def test_apply_bound_binary(backend, draw):
    pick = choose(draw, backend, op=BINARY, side=("left", "right"))
    plain, live, how = operands(draw, backend, pick)
    bound = draw(st.sampled_from(VALUES[plain["v"].dtype.name]), label="bound")
    number = {pick["side"]: plain["v"].dtype.numpy.type(bound)}
    applying = bound_operator(plain["u"].dtype, pick["op"], number.get("left"), number.get("right"))
    result = reference.apply(plain["u"].entries, pick["op"], applying)
    expected = reference.write(plain["w"], result, applying.result, how)
    updater(live, how) << live["u"].apply(pick["op"], **number)
    assert_matches(live["w"], expected)


@for_all()
def test_apply_index(backend, draw):
    pick = choose(draw, backend, op=INDEXUNARY)
    plain, live, how = operands(draw, backend, pick)
    thunk = draw(st.sampled_from((0, 1, -1, 2, 40)), label="thunk")
    applying = bound_operator(plain["u"].dtype, pick["op"], None, thunk)
    result = reference.apply(plain["u"].entries, pick["op"], applying)
    expected = reference.write(plain["w"], result, applying.result, how)
    updater(live, how) << live["u"].apply(pick["op"], thunk)
    assert_matches(live["w"], expected)


@for_all()
def test_select(backend, draw):
    pick = choose(draw, backend, op=SELECTORS)
    plain, live, how = operands(draw, backend, pick)
    thunk = draw(st.sampled_from((0, 1, -1, 2, 40)), label="thunk")
    op, number, domain = selected(plain["u"].dtype, pick["op"], thunk)
    result = reference.select(plain["u"].entries, op, domain, number)
    expected = reference.write(plain["w"], result, plain["u"].dtype, how)
    updater(live, how) << live["u"].select(op, thunk)
    assert_matches(live["w"], expected)


@for_all()
def test_assign_all(backend, draw):
    pick = choose(draw, backend)
    plain, live, how = operands(draw, backend, pick)
    expected = reference.assign(plain["w"], plain["u"], range(plain["w"].size), how)
    updater(live, how) << live["u"]
    assert_matches(live["w"], expected)


def index_list(draw, n, *, distinct):
    """Draw indices out of order; perhaps some twice; perhaps a slice."""
    whole = (slice(None), slice(1, None, 2), slice(None, None, -1))
    if draw(st.booleans(), label="slice"):
        chosen = draw(st.sampled_from(whole))
        return chosen, list(range(n))[chosen]
    count = draw(st.integers(0, n if distinct else 2 * n), label="count") if n else 0
    generator = np.random.default_rng(draw(st.integers(0, 99), label="order"))
    chosen = generator.permutation(n)[:count] if distinct else generator.integers(0, n, count)
    return chosen, chosen.tolist()


@for_all()
def test_assign_to_indices(backend, draw):
    pick = choose(draw, backend)
    plain, live, how = operands(draw, backend, pick, alias=False)
    where, chosen = index_list(draw, plain["w"].size, distinct=True)
    u = plain_vector(draw, len(chosen), pick["u"])
    expected = reference.assign(plain["w"], u, chosen, how)
    updater(live, how)[where] << vector(u, backend)
    assert_matches(live["w"], expected)


@for_all()
def test_assign_scalar(backend, draw):
    pick = choose(draw, backend)
    plain, live, how = operands(draw, backend, pick)
    where, chosen = index_list(draw, plain["w"].size, distinct=False)
    value = plain["w"].dtype.numpy.type(draw(st.sampled_from(VALUES[plain["w"].dtype.name])))
    expected = reference.assign_scalar(plain["w"], value, chosen, how)
    updater(live, how)[where] = value
    assert_matches(live["w"], expected)


NEXT = {
    "number": lambda w, _: w << 2.0,
    "number at indices": lambda w, _: w.__setitem__(np.arange(w.size), 2.0),
    "accumulated": lambda w, full: w(accum=binary.plus) << full,
    "vector": lambda w, full: w << full,
    "masked": lambda w, full: w(full.S) << 2.0,
}


@pytest.mark.parametrize("n", [3, 33, 1000])
@pytest.mark.parametrize("follows", NEXT)
def test_deleted_entries_are_not_counted_later(backend, follows, n):
    """Nothing looks at the vector between the deletion and what follows it."""
    full = Vector.from_dense(np.full(n, 2.0), backend=backend)
    for delete in ("entry", "masked"):
        w = Vector.from_coo([0], 1.0, FP64, size=n, backend=backend)
        if delete == "entry":
            del w[0]
        else:
            w(full.S) << Vector(FP64, n, backend=backend)
        NEXT[follows](w, full)
        assert w.nvals == n
        assert w.reduce("plus").new().value == 2 * n
        assert w.to_coo()[1].tolist() == [2.0] * n


@for_all()
def test_extract(backend, draw):
    pick = choose(draw, backend)
    n = draw(sizes(), label="size of u")
    where, chosen = index_list(draw, n, distinct=False)
    u = plain_vector(draw, n, pick["u"])
    how = how_written(draw, len(chosen), pick["accum"])
    w = plain_vector(draw, len(chosen), pick["w"])
    expected = reference.write(w, reference.extract(u, chosen), u.dtype, how)
    live = {"w": vector(w, backend), "m": how.mask and vector(how.mask, backend)}
    updater(live, how) << vector(u, backend)[where]
    assert_matches(live["w"], expected)


@for_all()
def test_reduce(backend, draw):
    pick = combination(draw, backend, op=MONOIDS, u=TYPES)
    u = plain_vector(draw, draw(sizes(), label="size"), pick["u"])
    possible = reference.reduce(list(u.entries.values()), u.dtype, pick["op"])
    found = vector(u, backend).reduce(pick["op"]).new()
    assert found.dtype is pick["op"].types(u.dtype)[1]
    if not possible:
        assert found.is_empty
    else:
        kind = found.dtype
        assert any(reference.close(found.value, x.item(), kind, kind) for x in possible)


@for_all()
def test_dup_casts(backend, draw):
    pick = combination(draw, backend, u=TYPES, w=TYPES)
    u = plain_vector(draw, draw(sizes(), label="size"), pick["u"])
    live = vector(u, backend)
    copy = live.dup(pick["w"])
    assert_matches(copy, {i: [reference.cast(x, pick["w"])] for i, x in u.entries.items()})
    copy.clear()  # the copy is one of its own
    assert_matches(live, {i: [x] for i, x in u.entries.items()})


@for_all()
def test_single_entries(backend, draw):
    u = plain_vector(draw, draw(sizes().filter(bool)), draw(st.sampled_from(TYPES)))
    live = vector(u, backend)
    for i in draw(st.lists(st.integers(0, u.size - 1), max_size=5)):
        assert (i in live) is (i in u.entries)
        got = live.get(i, "none")
        if i in u.entries:
            assert reference.close(got, u.entries[i].item(), u.dtype, u.dtype)
            assert type(got) is type(u.entries[i].item())
            del live[i], u.entries[i]
        else:
            assert got == "none"
            value = u.dtype.numpy.type(draw(st.sampled_from(VALUES[u.dtype.name])))
            live[i] = value
            u.entries[i] = value
        assert_matches(live, {i: [x] for i, x in u.entries.items()})


@for_all()
def test_resize(backend, draw):
    u = plain_vector(draw, draw(sizes()), draw(st.sampled_from(TYPES)))
    live = vector(u, backend)
    for n in draw(st.lists(sizes(), min_size=1, max_size=3)):
        live.resize(n)
        u.entries = {i: x for i, x in u.entries.items() if i < n}
        assert live.size == n
        assert_matches(live, {i: [x] for i, x in u.entries.items()})


@for_all()
def test_isequal_and_isclose(backend, draw):
    u = plain_vector(draw, draw(sizes()), draw(st.sampled_from(TYPES)))
    u.entries = {i: x for i, x in u.entries.items() if x == x}  # NaN equals nothing
    live = vector(u, backend)
    other = vector(u, backend)
    assert live.isequal(other)
    assert live.isclose(other)
    assert not live.isequal(Vector(u.dtype, u.size + 1, backend=backend))
    if u.entries:
        i = draw(st.sampled_from(sorted(u.entries)))
        other[i] = 9 if not u.dtype.is_bool else not u.entries[i]
        assert not live.isequal(other)
        assert not live.isclose(other)
        del other[i]
        assert not live.isequal(other)
        assert not live.isclose(other)


@for_all(cpu=60, compiled=12)
def test_coo_and_dense_round_trip(backend, draw):
    u = plain_vector(draw, draw(sizes()), draw(st.sampled_from(TYPES)))
    live = vector(u, backend)
    indices, values = live.to_coo()
    shuffled = np.random.default_rng(0).permutation(len(indices))
    again = Vector.from_coo(
        indices[shuffled], values[shuffled], size=u.size, dtype=u.dtype, backend=backend
    )
    assert_matches(again, {i: [x] for i, x in u.entries.items()})
    dense = live.to_dense(fill_value=1)
    assert dense.shape == (u.size,)
    for i in range(u.size):
        assert reference.close(dense[i], u.entries.get(i, 1), u.dtype, u.dtype)


@pytest.mark.parametrize("n", BIG_SIZES)
def test_sizes_around_a_block(backend, n):
    """Words, warps and blocks end at 32 and 1024: none may lose or invent an entry."""
    u = Vector.from_dense(np.arange(n), backend=backend)
    even = u.select(indexunary.valueeq, 0).new()
    even << u.apply(binary.land, 1)
    even[::2] = False
    w = Vector(INT64, n, backend=backend)
    w(even.V, replace=True) << u
    assert w.to_coo()[0].tolist() == list(range(1, n, 2))
    w(~even.V, accum=binary.plus) << u.apply(binary.plus, 1)
    assert w.to_dense().tolist() == [i + 1 - i % 2 for i in range(n)]
    assert w.reduce(monoid.max).new().value == n - 1 + n % 2
    assert u[:5].new().to_dense().tolist() == [0, 1, 2, 3, 4]
    assert u[[n - 1, 0, n - 1]].new().to_dense().tolist() == [n - 1, 0, n - 1]


def test_duplicates_are_combined_or_refused(backend):
    with pytest.raises(lagpu.errors.InvalidValue, match="index 2 is given twice"):
        Vector.from_coo([2, 0, 2], [1, 2, 3], backend=backend)
    summed = Vector.from_coo([2, 0, 2], [1, 2, 3], dup_op=binary.plus, backend=backend)
    assert summed.to_dense(-1).tolist() == [2, -1, 4]
    first = Vector.from_coo([2, 0, 2], [1, 2, 3], dup_op=binary.first, backend=backend)
    assert first.to_dense(-1).tolist() == [2, -1, 1]
    counted = Vector.from_coo([1, 1, 1], True, INT32, dup_op=binary.plus, backend=backend)
    assert counted.to_dense(-1).tolist() == [-1, 3]


def test_an_index_given_twice_is_one_entry_where_all_have_one_value(backend):
    v = Vector.from_coo([2, 0, 2], 7, size=4, backend=backend)
    assert v.to_dict() == {0: 7, 2: 7}
    assert Vector.from_coo([1, 1], True, size=2, backend=backend).to_dict() == {1: True}
    with pytest.raises(lagpu.errors.InvalidValue, match="index 2 is given twice"):
        Vector.from_coo([2, 2], [7, 7], backend=backend)


def test_build_fills_in_place(backend):
    v = Vector(INT32, 4, backend=backend)
    doubled = v.apply(binary.times, 2)
    v.build([3, 1], [7, 5])
    assert doubled.new().to_dense(0).tolist() == [0, 10, 0, 14]
    with pytest.raises(lagpu.errors.InvalidValue, match="has entries"):
        v.build([0], [1])
    v.build([0], [1], clear=True)
    assert v.to_dense(0).tolist() == [1, 0, 0, 0]


def test_build_that_fails_keeps_the_entries(backend):
    v = Vector.from_coo([1], [5], size=3, backend=backend)
    with pytest.raises(lagpu.errors.IndexOutOfBound):
        v.build([9], [1], clear=True)
    assert v.to_dense(0).tolist() == [0, 5, 0]


def test_mask_as_a_vector(backend):
    m = Vector.from_coo([0, 2], [False, True], size=4, backend=backend)
    assert m.S.new().to_coo()[0].tolist() == [0, 2]
    assert m.V.new().to_coo()[0].tolist() == [2]
    assert (~m.S).new().to_coo()[0].tolist() == [1, 3]
    assert (~m.V).new().to_coo()[0].tolist() == [0, 1, 3]
    assert m.V.new().dtype is BOOL


def test_new_with_mask_and_type(backend):
    u = Vector.from_coo([0, 1, 3], [1, 2, 3], size=4, backend=backend)
    m = Vector.from_coo([1, 3], True, size=4, backend=backend)
    got = u.apply(unary.ainv).new(FP64, mask=~m.S, name="got")
    assert (got.name, got.dtype) == ("got", FP64)
    assert got.to_coo()[0].tolist() == [0]
    assert got.to_coo()[1].tolist() == [-1.0]


def test_a_scalar_result_into_a_vector(backend):
    u = Vector.from_coo([0, 1, 3], [1, 2, 3], size=4, backend=backend)
    w = Vector(INT64, 4, backend=backend)
    w << u.reduce(monoid.plus)
    assert w.to_dense().tolist() == [6, 6, 6, 6]
    w[2] << u[1]
    w[[0, 3]] = u.reduce(monoid.max)
    assert w.to_dense().tolist() == [3, 6, 2, 3]


def test_accumulating_a_scalar_twice_at_one_index_does_it_once(backend):
    w = Vector.from_dense([1, 1], backend=backend)
    w(accum=binary.plus)[[0, 0]] = 5
    assert w.to_dense().tolist() == [6, 1]


def test_replace_with_an_index_list_clears_outside_the_mask_everywhere(backend):
    """GraphBLAS' assign, unlike subassign, masks all of w."""
    w = Vector.from_dense([1, 2, 3, 4], backend=backend)
    m = Vector.from_coo([1, 3], True, size=4, backend=backend)
    w(m.S, replace=True)[[0, 1]] = 9
    assert w.to_dense(0).tolist() == [0, 9, 0, 4]


def test_the_reference_keeps_masks_apart():
    """The reference itself, on an example small enough to read."""
    w = reference.PlainVector(3, INT32, {0: np.int32(1), 1: np.int32(2)})
    m = reference.PlainVector(3, INT32, {0: np.int32(0), 2: np.int32(7)})
    result = {0: [np.int32(5)], 1: [np.int32(6)], 2: [np.int32(7)]}

    def written(structure, complement, accum=None, replace=False):
        how = How(m, structure, complement, accum, replace)
        return {i: x[0].item() for i, x in reference.write(w, result, INT32, how).items()}

    assert written(True, False) == {0: 5, 1: 2, 2: 7}
    assert written(False, False) == {0: 1, 1: 2, 2: 7}
    assert written(True, True) == {0: 1, 1: 6}
    assert written(False, True) == {0: 5, 1: 6}
    assert written(True, False, replace=True) == {0: 5, 2: 7}
    assert written(True, False, binary.plus) == {0: 6, 1: 2, 2: 7}
