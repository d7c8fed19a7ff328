"""Compare all searches from the same root."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

__all__ = ["Agreement"]

Array = np.ndarray[Any, Any]


class Agreement:
    """Stores digests of the first search from each root, and compares others with them.

    Levels must be equal; for parents and path counts, which may differ or be rounded, only the
    reached vertices are compared, and the results of the last root are proved.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[bytes, str]] = {}

    def compare(self, root: int, output: str, who: str, indices: Array, values: Array) -> str:
        """Return how a search differs from the first one of its root, or an empty string."""
        order = np.argsort(indices) if (indices[1:] < indices[:-1]).any() else slice(None)
        found = {"vertices reached": _digest(indices[order])}
        if output == "levels":
            found["levels"] = found["vertices reached"] + _digest(values[order])
        for what, digest in found.items():
            known, other = self._known.setdefault((root, what), (digest, who))
            if known != digest:
                return f"{what} from vertex {root} differ between {other} and {who}"
        return ""


def _digest(array: Array) -> bytes:
    whole = np.ascontiguousarray(array, np.int64)
    return hashlib.blake2b(whole.data, digest_size=16).digest()
