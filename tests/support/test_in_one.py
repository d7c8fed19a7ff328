"""Cases in one test: each is run, and all that fail are named."""

import pytest
from in_one import in_one


@pytest.fixture
def seen():
    """Collect the cases of a test: it must have had both."""
    seen = []
    yield seen
    assert seen == [3, 4]


@pytest.mark.parametrize("left", [1, 2])
@in_one("right", [3, 4])
def test_each_case_is_run_beside_other_arguments(left, right, seen):
    assert left in (1, 2)
    seen.append(right)


def test_all_that_fail_are_named():
    @in_one("x", [1, 2, 3, 4])
    def fails(x):
        if x == 4:
            pytest.skip("no case")
        assert x == 2

    with pytest.raises(ExceptionGroup, match="x: 2 of 4 cases fail") as failed:
        fails()
    assert [error.__notes__ for error in failed.value.exceptions] == [["x = 1"], ["x = 3"]]


def test_an_interrupt_ends_the_test():
    @in_one("x", [1, 2])
    def interrupted(x):
        assert x == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_no_case_is_refused():
    with pytest.raises(ValueError, match="x has no case"):
        in_one("x", [])
