"""The numbers that kernels and the host share, read from common/constants.cuh."""

from __future__ import annotations

import functools
import re
from importlib import resources

__all__ = ["FILE", "constant", "read"]

FILE = "common/constants.cuh"
_CONSTANT = re.compile(r"constexpr [iu](?:32|64) (k[A-Z]\w*) = (\d+|0x[0-9a-f]+);")
_OTHER = re.compile(r"(?://.*|#(?:ifndef|ifdef|define|endif)\b.*)?")


def read(text: str) -> dict[str, int]:
    """Return the constants of a header by name.

    Raises
    ------
    ValueError
        For a line of any other form, and for a name that is there twice.
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        if _OTHER.fullmatch(line):
            continue
        one = _CONSTANT.fullmatch(line)
        if one is None or one[1] in found:
            raise ValueError(f"{FILE}: not a new constant of a known form: {line!r}")
        found[one[1]] = int(one[2], 0)
    return found


@functools.cache
def _constants() -> dict[str, int]:
    return read(resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def constant(name: str) -> int:
    """Return a constant by the name that kernels know it by."""
    return _constants()[name]
