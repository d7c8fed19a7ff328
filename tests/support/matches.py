"""Assert that a vector or a matrix is what the reference allows."""

from reference import difference


def assert_matches(actual, expected, computed=None):
    """Compare a lagpu vector or matrix with the possible entries of the reference."""
    found = difference(actual, expected, computed)
    assert not found, found
