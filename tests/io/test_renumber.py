"""Vertices with names, or numbers with gaps: their numbers and the ids."""

import numpy as np
import pytest

from lagpu.io.reading import Edges, Names, renumbered, whole_numbers


def test_numbers_ascend_and_those_without_gaps_stay():
    u, v, ids = renumbered(np.array([10**9, 5, 7]), np.array([5, 7, 7]))
    assert (u.tolist(), v.tolist(), ids.tolist()) == ([2, 0, 1], [0, 1, 1], [5, 7, 10**9])
    u, v, ids = renumbered(np.array([2, 0]), np.array([1, 1]))
    assert (u.tolist(), v.tolist(), ids.tolist()) == ([2, 0], [1, 1], [0, 1, 2])


def named(*pairs):
    names = Names()
    u = names.codes([a for a, _ in pairs], len(pairs))
    v = names.codes([b for _, b in pairs], len(pairs))
    (u, v, _), ids = names.ordered(Edges(u, v))
    return [(ids[i], ids[j]) for i, j in zip(u, v, strict=True)], ids


@pytest.mark.parametrize(
    ("pairs", "ids", "kind"),
    [
        ([("bob", "alice"), ("alice", "carol")], ["alice", "bob", "carol"], "O"),
        ([("10", "9"), ("-3", "9")], [-3, 9, 10], "i"),
        ([("18446744073709551615", "1"), ("1", "2")], [1, 2, 2**64 - 1], "u"),
        ([("18446744073709551616", "1")], ["1", "18446744073709551616"], "O"),
        ([(2.5, 1.0), (1.0, 3.0)], [1.0, 2.5, 3.0], "f"),
        ([((1, 2), (0, 9)), ((0, 9), (0, 1))], [(0, 1), (0, 9), (1, 2)], "O"),
        ([("b", 1), (1, "a")], ["b", 1, "a"], "O"),  # no order: as they come
        ([], [], "i"),
    ],
)
def test_names(pairs, ids, kind):
    if pairs and pairs[0][0] == "b":
        found, _ = named(("b", 1), (1, "a"))
        assert found == pairs
        return
    found, order = named(*pairs)
    assert order.tolist() == ids
    assert order.dtype.kind == kind
    if kind != "O" and pairs and isinstance(pairs[0][0], str):
        pairs = [(int(a), int(b)) for a, b in pairs]
    assert found == pairs


def test_the_same_number_written_twice_is_one_vertex():
    found, ids = named(("007", "7"), ("8", "+7"))
    assert (found, ids.tolist()) == ([(7, 7), (8, 7)], [7, 8])


def test_what_is_a_whole_number():
    assert whole_numbers([True, 1]) is None
    assert whole_numbers(["1", "x"]) is None
    assert whole_numbers([1, "1"]) is None
    assert whole_numbers([-1, 2**63]) is None
    assert whole_numbers([np.int32(4), 5]).tolist() == [4, 5]
