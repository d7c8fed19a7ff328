"""Edge lists whose vertices have names, or numbers with gaps."""

import numpy as np
import pytest
from readback import entries, read_cpu

from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.errors import FileFormatError, LimitExceeded
from lagpu.host import memory
from lagpu.io import read


def by_ids(path, **options):
    A, ids = read_cpu(path, renumber=True, **options)
    assert A.shape == (len(ids), len(ids))
    return A, [(ids[i], ids[j], x) for i, j, x in entries(A)]


def test_two_edges_with_ids_of_a_milliard(save, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**15)
    path = save("1000000000\t5\n5\t7\n")
    with pytest.raises(LimitExceeded, match=r"vertex 1000000000 in line 1: .*--renumber"):
        read(path, backend="cpu")
    A, found = by_ids(path)
    assert A.nrows == 3
    assert found == [(5, 7, True), (10**9, 5, True)]


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("alice bob\nbob carol\n", BOOL, [("alice", "bob", 1), ("bob", "carol", 1)]),
        ("# c\nb a 2\n\n% d\nb a 3\na c -1\n", INT64, [("a", "c", -1), ("b", "a", 5)]),
        ("b\ta\t.5\na\tb\t1\n", FP64, [("a", "b", 1.0), ("b", "a", 0.5)]),
        ("\u00e9 \u4e2d\n", BOOL, [("\u00e9", "\u4e2d", 1)]),
        # beyond 2**53, which FP64 does not hold
        ("9007199254740993 9007199254740992 .5\n", FP64, [(2**53 + 1, 2**53, 0.5)]),
        ("18446744073709551615 0\n", BOOL, [(2**64 - 1, 0, 1)]),
        ("-5 3\n", BOOL, [(-5, 3, 1)]),
        ("source target\na b\n", BOOL, [("a", "b", 1)]),  # usual names of columns
        ("a b\nfrom to\n", BOOL, [("a", "b", 1), ("from", "to", 1)]),
        ("3 2\n1 2\n2 3\n", BOOL, [(1, 2, 1), (2, 3, 1)]),  # a header of vertices from 1
        ("9 2\n1 2\n2 3\n", BOOL, [(1, 2, 1), (2, 3, 1)]),
        ("9 3\n1 2\n2 3\n", BOOL, [(1, 2, 1), (2, 3, 1), (9, 3, 1)]),
        ("1 1\n70 80\n", BOOL, [(1, 1, 1), (70, 80, 1)]),  # no header: 80 is beyond
    ],
)
def test_ids_of_any_kind(save, text, dtype, expected):
    A, found = by_ids(save(text))
    assert A.dtype is dtype
    assert sorted(found) == expected


def test_ids_of_numbers_are_an_array_of_them_and_others_of_objects(save):
    _, ids = read_cpu(save("30 2\n"), renumber=True)
    assert (ids.dtype, ids.tolist()) == (np.int64, [2, 30])
    _, ids = read_cpu(save("b a\n"), renumber=True)
    assert (ids.dtype, ids.tolist()) == (object, ["a", "b"])


def test_a_header_that_the_user_says_is_one(save):
    assert by_ids(save("x y\na b\n"), header=True)[1] == [("a", "b", True)]
    assert by_ids(save("source target\na b\n"), header=False)[1] == [
        ("a", "b", True),
        ("source", "target", True),
    ]
    assert by_ids(save("7 1\n100 200\n"), header=True)[1] == [(100, 200, True)]


def test_undirected_names(save):
    _, found = by_ids(save("# Undirected graph\nb a\n"))
    assert found == [("a", "b", True), ("b", "a", True)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\nb c d e\n", "line 2: 'b c d e' has 4 words, not 2"),
        ("a\n", "line 1: 'a' has 1 words, not 2"),
        ("a b 1\nb c x\n", "line 2: 'b c x' has the weight 'x', which is no number"),
        ("a b 1\nb c 99999999999999999999\n", "line 2: .* has a weight beyond 64 bits"),
        (b"a b\nb \xff\n", r"'.' is not UTF-8. Convert"),
        ("# nothing\n", "has no edges"),
    ],
)
def test_malformed_names(save, text, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(text), renumber=True)


@pytest.mark.parametrize("other", ["a b 1", "a b"])
def test_names_in_several_pieces(save, monkeypatch, other):
    monkeypatch.setattr("lagpu.io.reading.PIECE", 12)
    weight = other.removeprefix("a b")
    lines = [f"v{k} v{k + 1}{weight}" for k in range(30)]
    A, found = by_ids(save("\n".join(lines)))
    assert A.nvals == 30
    assert ("v29", "v30") in [edge[:2] for edge in found]
    with pytest.raises(FileFormatError, match=r"line 31: .* has \d words, not \d"):
        read_cpu(save("\n".join([*lines, "a b" if weight else "a b 1"])), renumber=True)
    with pytest.raises(FileFormatError, match=r"line 31: .* is longer than 12 bytes"):
        read_cpu(save("\n".join([*lines, "a " + "b" * 20])), renumber=True)
