"""What reading, making, generating and converting take at their peak was asked for before."""

import peaks
import pytest

SOME = [("real mtx", "cpu"), ("from_coo", "cpu"), ("path", "cpu")]
TASKS = [*peaks.READING, *peaks.MAKING, *peaks.GENERATING, *peaks.CONVERTING]


@pytest.mark.parametrize(
    ("task", "name"),
    [
        pytest.param(task, name, marks=() if (task, name) in SOME else pytest.mark.exhaustive)
        for task in TASKS
        for name in ("cpu", "sim")
        if (task, name) != ("transpose", "cpu")  # only SuiteSparse knows what it takes
    ],
)
@pytest.mark.parametrize("shape", [(10_000, 2_000_000), (2_000_000, 2_000)], ids=["m", "n"])
def test_what_is_taken_was_asked_for(task, name, shape):
    """But for some megabytes, which are not worth a question."""
    n, m = (shape[0] // 8, shape[1] // 8) if "networkx" in task else shape
    if task in peaks.GENERATING:
        n, m = (1 << 19, 1 << 21) if shape[0] < shape[1] else (1 << 20, 1 << 20)
    peak, asked = peaks.measured(task, name, n, m)
    assert peak <= asked * 1.02 + (8 << 20)
