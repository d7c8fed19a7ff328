"""Serialized graphs of the GAP suite, as its own converter lays them out."""

import numpy as np
import pytest
from readback import entries, read_cpu

from lagpu.dtypes import BOOL, INT32
from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io import write


def laid_out(directed, n, out, back=None, weights=None):
    """The bytes of a graph: neighbours of each vertex, and for a directed one backwards."""
    parts = [bytes([directed]), np.array([sum(map(len, out)), n], "<i8").tobytes()]
    for lists in [out, back][: 1 + directed]:
        ends = [end for line in lists for end in line]
        ptr = np.cumsum([0, *map(len, lists)]).astype("<i8")
        items = np.array(ends, "<i4")
        if weights is not None:
            items = np.column_stack([items, np.array(weights[lists is back], "<i4")])
        parts += [ptr.tobytes(), items.astype("<i4").tobytes()]
    return b"".join(parts)


def test_both_kinds(save, tmp_path):
    plain = laid_out(0, 3, [[1], [0], []])
    A = read_cpu(save(plain, "a.sg"))
    assert (A.shape, A.dtype, entries(A)) == ((3, 3), BOOL, [(0, 1, 1), (1, 0, 1)])
    write(A, tmp_path / "b.sg")
    assert (tmp_path / "b.sg").read_bytes() == plain
    arcs = laid_out(1, 3, [[1, 2], [], [1]], [[], [0, 2], [0]], ([7, 8, 9], [7, 9, 8]))
    B = read_cpu(save(arcs, "b.bin"))  # known by its sizes
    assert (B.dtype, entries(B)) == (INT32, [(0, 1, 7), (0, 2, 8), (2, 1, 9)])
    write(B, tmp_path / "b.wsg")
    assert (tmp_path / "b.wsg").read_bytes() == arcs


@pytest.mark.parametrize("directed", [0, 1])
def test_no_vertices(save, directed):
    assert read_cpu(save(laid_out(directed, 0, [], []), "a.sg")).shape == (0, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "sizes of a serialized GAP graph do not fit"),
        (lambda data: data[:17] + bytes([9]) + data[18:], "offsets do not rise from 0 to 2"),
        (lambda data: data[:-4] + bytes([9, 0, 0, 0]), r"a neighbour is outside 0 \.\. 2"),
    ],
)
def test_damaged(save, change, message):
    data = change(laid_out(0, 3, [[1], [0], []]))
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(data, "a.sg"), format=".sg")


def test_sizes_that_are_not_there(save):
    with pytest.raises(FileFormatError, match=r"is binary"):
        read_cpu(save(bytes([0]) + np.array([10**15, 10**15], "<i8").tobytes() + bytes(30), "a.sg"))


def test_weights_that_do_not_fit(save, tmp_path):
    for weight in ("0.5", "4000000000", "-0.0"):
        A = read_cpu(save(f"0 1 {weight}\n1 0 1\n"))
        with pytest.raises(InvalidValue, match=r"\.wsg has whole weights of 32 bits alone"):
            write(A, tmp_path / "a.wsg")
