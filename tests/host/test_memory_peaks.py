"""What reading, making, generating and converting take at their peak was asked for before."""

import itertools

import peaks
import pytest
from samples import picked

SOME = [("from_coo", "cpu"), ("real mtx", "cpu"), ("path", "cpu")]
TASKS = [*peaks.READING, *peaks.MAKING, *peaks.GENERATING, *peaks.CONVERTING]
ALL = [*itertools.product(TASKS, ("cpu", "sim"))]
KNOWN_TO_SUITESPARSE_ALONE = ("transpose", "cpu")  # what it takes
MORE = [case for case in ALL if case not in (*SOME, KNOWN_TO_SUITESPARSE_ALONE)]


@pytest.mark.parametrize(
    ("task", "name"), [*picked(SOME, SOME[0]), *picked(MORE, rest="exhaustive")]
)
@pytest.mark.parametrize("shape", [(10_000, 2_000_000), (2_000_000, 2_000)], ids=["m", "n"])
def test_what_is_taken_was_asked_for(task, name, shape):
    """But for some megabytes, which are not worth a question."""
    n, m = (shape[0] // 8, shape[1] // 8) if "networkx" in task else shape
    if task in peaks.GENERATING:
        n, m = (1 << 19, 1 << 21) if shape[0] < shape[1] else (1 << 20, 1 << 20)
    peak, asked = peaks.measured(task, name, n, m)
    assert peak <= asked * 1.02 + (8 << 20)
