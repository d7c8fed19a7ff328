"""Claims without atomics: the list of all neighbours of a frontier, sorted, each of them once.

Paper: Mastrostefano and Bernaschi 2013, to which Bisson and others 2016 compare their atomics.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.storage.forms import csr_of
from lagpu.backends.grid.pieces import entries_of
from lagpu.backends.protocol import Backend
from lagpu.operations import Handle

__all__ = ["Listed", "Neighbours"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the place


class Listed(NamedTuple):
    """The entries that leave a frontier, on the place, one after the other.

    Attributes
    ----------
    targets, sources : array of int, (k,)
        Positions in the part.
    """

    targets: Array
    sources: Array

    @property
    def nbytes(self) -> int:
        """The bytes of both lists."""
        return int(self.targets.nbytes + self.sources.nbytes)


class Neighbours:
    """A piece's part by its sources, where the place computes.

    Parameters
    ----------
    place : Backend
        The place.
    part : Handle
        A matrix of sources and targets.
    sources : int
        Its rows.
    """

    def __init__(self, place: Backend, part: Any, sources: int) -> None:
        self._device = place.device if isinstance(place, GpuBackend) else None
        if self._device is None:
            self._xp: Any = np
            self._ptr, self._targets = _by_rows(place, part, sources)
            return
        self._xp = self._device.xp
        with self._device.alone():
            form = csr_of(part.csc())
            self._ptr, self._targets = form.col_ptr, form.row_idx

    def listed(self, front: np.ndarray[Any, Any]) -> Listed:
        """Return the entries in the rows of a frontier, rising sources first."""
        xp = self._xp
        with self._alone():
            rows = xp.asarray(front.astype(np.int64))
            starts, ends = self._ptr[rows].astype(np.int64), self._ptr[rows + 1].astype(np.int64)
            before = xp.cumsum(ends - starts)
            total = int(before[-1]) if len(front) else 0
            if self._device is not None:
                self._device.require(48 * total, "claims=sort")
            place = xp.arange(total)
            of = xp.searchsorted(before, place, side="right")
            at = (ends - before)[of] + place
            return Listed(self._targets[at], rows[of])

    def distinct(self, listed: Listed) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return, on the host, the targets rising and each once, with the first source of each."""
        xp = self._xp
        with self._alone():
            order = xp.argsort(listed.targets, kind="stable")
            targets, sources = listed.targets[order], listed.sources[order]
            new = xp.ones(len(order), bool)
            new[1:] = targets[1:] != targets[:-1]
            found = targets[new], sources[new]
            if self._device is not None:
                found = self._device.to_host(found[0]), self._device.to_host(found[1])
        return found[0].astype(np.int64), found[1].astype(np.int64)

    def _alone(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._device is None else self._device.alone()


def _by_rows(place: Backend, part: Handle, count: int) -> tuple[Array, Array]:
    """Return (pointers, columns) of the entries of a part by rows."""
    rows, columns, _ = entries_of(place, part, 2)
    ptr = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=ptr[1:])
    return ptr, columns[np.argsort(rows, kind="stable")]
