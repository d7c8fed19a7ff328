"""Mutated files of every format: the right matrix or a named error, within bounds."""

import fuzzed_files
import pytest


@pytest.mark.parametrize(
    "count", [1000, pytest.param(20_000, marks=pytest.mark.exhaustive)], ids=["some", "many"]
)
def test_a_mutated_file_is_read_rightly_or_refused_by_name(count):
    """Nothing else: no other error, no end of the process, no 5 seconds, no gigabyte."""
    assert fuzzed_files.faults(0, count) == []
