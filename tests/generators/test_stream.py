"""Random numbers by position: the same wherever they are drawn."""

import numpy as np
import pytest

from lagpu import backends
from lagpu.generators.edges import key, labels, words

MASK = 2**64 - 1
GOLD = [852867, 128072, 299769, 542374, 726409, 395005, 497721, 496095]


def philox(counter, key):
    """Philox4x64-10, as its authors define it, in Python's own numbers."""
    x, k = list(counter), list(key)
    for _ in range(10):
        a, b = x[0] * 0xD2E7470EE14C6C93, x[2] * 0xCA5A826395121157
        x = [b >> 64 ^ x[1] ^ k[0], b & MASK, a >> 64 ^ x[3] ^ k[1], a & MASK]
        k = [k[0] + 0x9E3779B97F4A7C15 & MASK, k[1] + 0xBB67AE8584CAA73B & MASK]
    return x


def test_the_words_are_philoxs():
    numbers = key(7)
    drawn = words(None, numbers, 3, 16, 8)
    block = philox((3, 3, 0, 0), numbers.tolist())  # block 2 has the counter 3
    assert drawn.tolist() == [half for x in block for half in (x & 0xFFFFFFFF, x >> 32)]


@pytest.mark.parametrize(
    ("first", "count"), [(0, 1), (0, 8), (5, 20), (7, 1), (8, 16), (1000, 1025), (2**40 + 3, 33)]
)
def test_a_device_draws_the_same(backend, first, count):
    device = backends.get(backend).device
    if device is None:
        pytest.skip("the host draws these itself")
    for seed, stream in ((0, 0), (1, 31), (2**70, 2**32)):
        found = device.to_host(words(device, key(seed), stream, first, count))
        assert found.dtype == np.uint32
        assert found.tolist() == words(None, key(seed), stream, first, count).tolist()


def test_parts_are_those_of_the_whole():
    whole = words(None, key(1), 0, 0, 100).tolist()
    for first in (0, 1, 8, 13):
        assert words(None, key(1), 0, first, 50).tolist() == whole[first : first + 50]


def test_labels_do_not_change_with_versions():
    found = labels(key(1), 20).forward(np.arange(8, dtype=np.uint32))
    assert found.tolist() == GOLD


def test_labels_depend_on_the_seed():
    x = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)
    one, two = (labels(key(seed), 32).forward(x.copy()) for seed in (1, 2))
    assert not set(one.tolist()) & set(two.tolist())


def test_neighbours_are_spread():
    n = 1 << 14
    found = labels(key(1), 14).forward(np.arange(n, dtype=np.uint32)).astype(float)
    assert abs(np.corrcoef(found, np.arange(n))[0, 1]) < 0.05
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.05
    for bit in range(14):  # no bit of a label follows a bit of the number
        flipped = found[np.arange(n) ^ 1 << bit].astype(int) ^ found.astype(int)
        changed = [(flipped >> other & 1).mean() for other in range(14)]
        assert sum(changed) > 3
