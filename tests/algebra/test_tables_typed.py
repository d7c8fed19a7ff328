"""Type checkers find the types of an installed lagpu; `typed_names.py` says what they know."""

from importlib import resources

import lagpu


def test_the_package_is_typed():
    assert resources.files(lagpu).joinpath("py.typed").is_file()
