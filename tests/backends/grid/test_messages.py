"""Arrays are read from bytes as they were, and are aligned as their types need."""

import numpy as np
import pytest

from lagpu.backends.grid.comm import from_bytes, to_bytes

TYPES = ("?", "i1", "u2", "i4", "u8", "f4", "f8")


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_arrays_come_back(pieces, count):
    lists = [
        tuple((np.arange(count + p) * (p + 1)).astype(dtype) for dtype in TYPES)
        for p in range(pieces)
    ]
    found = from_bytes(to_bytes(lists))
    assert len(found) == pieces
    for piece, mine in zip(found, lists, strict=True):
        assert [x.dtype for x in piece] == [x.dtype for x in mine]
        assert [x.tolist() for x in piece] == [x.tolist() for x in mine]
        assert all(x.flags.aligned and not x.flags.writeable for x in piece)


def test_a_part_of_an_array_is_sent_alone():
    array = np.arange(20)[::2]
    ((found,),) = from_bytes(to_bytes([(array,)]))
    assert found.tolist() == array.tolist()
    assert (
        len(to_bytes([(array,)])) == 8 + 16 + 80
    )  # the length of the head, the head, and ten numbers


def test_pieces_may_have_other_types():
    found = from_bytes(to_bytes([(np.array([1]),), (np.array([1.5]),)]))
    assert [x.item() for (x,) in found] == [1, 1.5]


def test_messages_may_have_other_numbers_of_arrays():
    found = from_bytes(to_bytes([(), (np.array([1]), np.zeros(0)), (np.array([1.5]),)]))
    assert [[x.tolist() for x in arrays] for arrays in found] == [[], [[1], []], [[1.5]]]
