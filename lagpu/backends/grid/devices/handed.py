"""Partial results are cut by their owners on the devices that found them, and handed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lagpu.backends.gpu.storage.vector import VectorStore, bytes_of, nwords
from lagpu.backends.grid.dealing import Partition
from lagpu.backends.grid.devices.told import BITS, Told, groups_of, heads, run_of_turns, told_by
from lagpu.backends.grid.pieces import Pieces
from lagpu.dtypes import DType
from lagpu.operations import Handle

__all__ = ["handed"]

Array = Any


def handed(
    pieces: Pieces,
    found: Sequence[Handle],
    shape: tuple[int, ...],
    by: Partition,
    part: Sequence[int],
    dtype: DType,
) -> list[list[Handle]] | None:
    """Return, for each local piece, what each of its group has found of its entries; or None.

    None where it has to go by way of the host: devices that do not hand over arrays, indices that
    are not dealt by turns, matrices. Who has found nothing at all is left out.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    found : sequence of Handle
        The partial result of each local piece, by position in its part.
    shape : tuple of int
        The shape of the whole result.
    by : Partition
        The parts of its last dimension.
    part : sequence of int
        The part of each piece; those with the same one are a group.
    dtype : DType
        The type of the result.
    """
    own = pieces.partition(shape[-1])
    run = run_of_turns(own, by, part)
    if len(shape) > 1 or not run or not pieces.engine.between_devices:
        return None
    partial = cast("Sequence[VectorStore]", found)
    groups, own_told, given = groups_of(by, part), [], []
    for k, p, _ in pieces:
        with partial[k].device.alone():
            message = told_by(partial[k], run)
            own_told.append(message)
            given.append(_cut(partial[k], message, run, [own.count(d) for d in groups[part[p]]]))
    told = heads(pieces, own_told, True, dtype)
    assert told is not None
    received = pieces.engine.hand(given, groups)
    terms: list[list[Handle]] = []
    for k, p, _ in pieces:
        device, counters, count = partial[k].device, partial[k].counters, own.count(p)
        mine: list[Handle] = []
        with device.alone():
            device.require(len(received[k]) * bytes_of(count, dtype), "mxv")
            for s, (where, *values) in zip(groups[part[p]], received[k], strict=True):
                if not told[s].nvals or (told[s].is_list and not len(where)):
                    continue
                term = VectorStore(device, counters, dtype, count)
                one = None if values else told[s].number
                if told[s].is_list:
                    term.set_sparse(where, *values or (None, one))
                else:
                    term.set_bitmap(where, values[0] if values else None, one, None)
                mine.append(term)
        terms.append(mine)
    return terms


def _cut(v: VectorStore, message: Told, run: int, counts: Sequence[int]) -> list[tuple[Array, ...]]:
    """Return the arrays for each owner, whose runs follow each other by turns.

    Parameters
    ----------
    v : VectorStore
        The partial result.
    message : Told
        The same as a message to all.
    run : int
        Indices of a run.
    counts : sequence of int
        How many indices each owner has.
    """
    turns = len(counts)
    if message.is_list:
        lists = []
        turn, round_ = message.where // run % turns, message.where // (run * turns)
        at = round_ * run + message.where % run
        for t in range(turns):
            its = turn == t
            lists.append(tuple(x[its] for x in (at, *message.arrays[1:])))
        return lists
    words = _by_turns(v, message.where, run // BITS, [nwords(count) for count in counts])
    if message.values is None:
        return [(of,) for of in words]
    return list(zip(words, _by_turns(v, message.values, run, counts), strict=True))


def _by_turns(v: VectorStore, array: Array, width: int, counts: Sequence[int]) -> list[Array]:
    """Return, for each owner, the runs of an array that are its own, one behind the other."""
    xp, turns = v.device.xp, len(counts)
    rounds = -(-len(array) // (width * turns))
    padded = xp.zeros(rounds * turns * width, array.dtype)
    padded[: len(array)] = array
    rows = padded.reshape(rounds, turns, width)
    return [xp.ascontiguousarray(rows[:, t]).reshape(-1)[:count] for t, count in enumerate(counts)]
