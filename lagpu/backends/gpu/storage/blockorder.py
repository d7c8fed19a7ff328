"""The orders in which searches of blocks take a matrix's columns and keep its vertices' words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import Array, has_free
from lagpu.backends.gpu.ops.bitmap_mxm import LONG
from lagpu.backends.gpu.storage.vector import MatrixStore, nwords

__all__ = ["Ranked", "batches", "ranked"]

# Vertices are ranked if those whose words L1 holds have such a share of the entries
# (docs/design/blocks.md).
CACHED, SHARE = 200_000, 1 / 4
ROUND = 128  # entries that a warp looks at together


def batches(form: MatrixStore, groups: int) -> Array:
    """Return the batches of 32 words, those with most entries first; made at the first call.

    So blocks have equal work, and the batches that are taken last are short. Long columns, which
    are taken by chunks, do not count.

    Parameters
    ----------
    form : MatrixStore
        The matrix by the columns that are pulled into.
    groups : int
        Words a vertex.

    Returns
    -------
    array of u32
    """
    place = f"batches, {groups} words a vertex"
    if place not in form.spaces:
        xp, n = form.device.xp, form.shape[1]
        lengths = xp.diff(form.col_ptr)
        before = xp.zeros(n + 1, np.int64)
        xp.cumsum(xp.where(lengths > LONG, 0, lengths), out=before[1:])
        ends = xp.arange(nwords(n * groups) + 1, dtype=np.int64) * 32
        first, last = ends[:-1] // groups, xp.minimum(n, (ends[1:] + groups - 1) // groups)
        rounds = (before[last] - before[first]) // ROUND
        form.spaces[place] = xp.argsort(-rounds, kind="stable").astype(np.uint32)
    found: Array = form.spaces[place]
    return found


class Ranked(NamedTuple):
    """Vertices in the order of how many entries lead from them; all None if that is no use.

    The words that are looked at most then share lines of L1.

    Attributes
    ----------
    rank : array of i32
        Of each vertex.
    idx : array
        The matrix's row indices by ranks.
    words : array of u32
        Room for a frontier's words by ranks.
    """

    rank: Array | None
    idx: Array | None
    words: Array | None

    @property
    def nbytes(self) -> int:
        """Bytes of all these."""
        return sum(int(x.nbytes) for x in self if x is not None)


def ranked(form: MatrixStore, rows: MatrixStore, each: int) -> Ranked:
    """Return the vertices by ranks, made at the first call, which may wait for the device.

    Parameters
    ----------
    form : MatrixStore
        The matrix by the columns that are pulled into.
    rows : MatrixStore
        The same matrix by rows.
    each : int
        Bytes of a vertex' words.
    """
    place = f"ranks, {each} bytes a vertex"
    if place not in form.spaces:
        form.spaces[place] = _rank(form, rows, each)
    found: Ranked = form.spaces[place]
    return found


def _rank(form: MatrixStore, rows: MatrixStore, each: int) -> Ranked:
    """Rank, unless degrees are too even or memory is short: see `Ranked` for what it takes."""
    xp, n, idx = form.device.xp, form.shape[0], form.row_idx
    none = Ranked(None, None, None)
    if not form.nvals or not has_free(form.device, 8 * (int(idx.nbytes) + each * n)):
        return none
    lengths = xp.diff(rows.col_ptr)
    order = xp.argsort(-lengths, kind="stable")
    if int(lengths[order[: CACHED // each]].sum()) < SHARE * form.nvals:
        return none
    rank = xp.empty(n, np.int32)
    rank[order] = xp.arange(n, dtype=np.int32)
    return Ranked(rank, rank.astype(idx.dtype, copy=False)[idx], xp.empty(n * each // 4, np.uint32))
