"""Mutated files of every format: the right matrix or a named error, within bounds."""

import fuzzed_files
import pytest
from samples import picked


@pytest.mark.parametrize("count", [200, *picked([20_000], rest="exhaustive")])
def test_a_mutated_file_is_read_rightly_or_refused_by_name(count):
    """Nothing else: no other error, no end of the process, no 5 seconds, no gigabyte."""
    assert fuzzed_files.faults(0, count) == []


@pytest.mark.extra
@pytest.mark.parametrize("first", [0, 9700, *picked([1000], rest="exhaustive")])
def test_a_mutated_binary_file_is_read_or_refused_by_name(first):
    """Parquet, HDF5 and tar, within the same bounds; 9735 once ended the process."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("h5py")
    assert fuzzed_files.faults(first, 9000 if first == 1000 else 80, "binary") == []
