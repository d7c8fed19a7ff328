"""Compare all searches from the same root."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.errors import CheckFailed
from lagpu.host.threads import mapped

__all__ = ["Agreement"]

Array = np.ndarray[Any, Any]

_PART = 1 << 21  # numbers of an array that are digested together


class Agreement:
    """Stores digests of the first search from each root, and compares others with them.

    Levels must be equal; for parents and path counts, which may differ or be rounded, only the
    reached vertices are compared, and the results of the last root are proved, each result once.
    """

    def __init__(self) -> None:
        self._proved: set[tuple[int, str, bytes]] = set()
        self._known: dict[tuple[int, str], tuple[bytes, str]] = {}

    def compare(self, root: int, output: str, who: str, indices: Array, values: Array) -> str:
        """Return how a search differs from the first one of its root, or an empty string."""
        order = _order(indices)
        found = {"vertices reached": _digest(indices[order])}
        if output == "levels":
            found["levels"] = found["vertices reached"] + _digest(values[order])
        for what, digest in found.items():
            known, other = self._known.setdefault((root, what), (digest, who))
            if known != digest:
                return f"{what} from vertex {root} differ between {other} and {who}"
        return ""

    def prove(
        self, root: int, output: str, result: tuple[Array, Array], prove: Callable[[], object]
    ) -> str:
        """Return why a result is not proved, or an empty string; an equal one was proved before.

        Parameters
        ----------
        root : int
            Where the search began.
        output : str
            What it found.
        result : pair of ndarray, (k,)
            Vertices and values.
        prove : callable
            Proves the result, or raises `CheckFailed`.
        """
        indices, values = result
        order = _order(indices)
        digest = _digest(indices[order]) + _digest(values[order], values.dtype)
        key = (root, f"{output} {values.dtype}", digest)
        if key not in self._proved:
            try:
                prove()
            except CheckFailed as error:
                return str(error)
            self._proved.add(key)
        return ""


def _order(indices: Array) -> Any:
    return np.argsort(indices) if (indices[1:] < indices[:-1]).any() else slice(None)


def _digest(array: Array, kind: Any = np.int64) -> bytes:
    """Return a digest of the digests of an array's parts, which threads make."""

    def of(first: int) -> bytes:
        part = np.ascontiguousarray(array[first : first + _PART], kind)
        return hashlib.blake2b(part.data, digest_size=16).digest()

    parts = mapped(of, range(0, len(array), _PART))
    return hashlib.blake2b(b"".join(parts), digest_size=16).digest()
