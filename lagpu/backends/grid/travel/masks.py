"""Masks travel to the pieces that find partial results, which find and send no others then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from lagpu.backends.grid.devices import collected
from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.pieces import Pieces, each_once, entries_of, from_entries
from lagpu.backends.grid.travel.entries import by_position, places
from lagpu.backends.grid.travel.operands import Need
from lagpu.backends.grid.travel.presence import length, packed, unpacked
from lagpu.backends.protocol import Backend
from lagpu.dtypes import BOOL
from lagpu.operations import Descriptor, Handle

__all__ = ["of_owners", "pays"]

Array = np.ndarray[Any, Any]


def of_owners(
    pieces: Pieces,
    desc: Descriptor,
    shape: tuple[int, ...],
    need: Need,
    expected: Sequence[float],
    width: int,
) -> list[Descriptor]:
    """Return, for each local piece, the mask of its partial result, as how that is written.

    Between devices all masks travel, where they can be put together there. By way of the host an
    owner tells the places of its mask, or that it does not: then none of its results is left out.
    So each owner decides by itself, and nobody has to agree.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    desc : Descriptor
        How the whole result is written.
    shape : tuple of int
        The shape of the whole result.
    need : Need
        Which part of its last dimension each piece finds.
    expected : sequence of float
        About how many entries the partial result of each local piece has without a mask.
    width : int
        Bytes of a value of it, as it travels.
    """
    if desc.mask is None:
        return [Descriptor() for _ in pieces]
    parts = collected(pieces, cast(GridHandle, desc.mask), need.by, need.part)
    if parts is not None:
        return [Descriptor(one, desc.structure, desc.complement, None, True) for one in parts]
    own, groups, size = pieces.layout(shape), need.groups(), pieces.engine.size
    shapes = [own.shape(p) for p in range(size)]
    silent = packed(np.zeros(0, np.int64), 0), np.zeros(0, bool)
    given: list[list[Arrays]] = []
    for k, p, place in pieces:
        mates, message = groups[need.part[p]], silent
        part, here = shapes[p], math.prod(shapes[p])
        mask, numbers = desc.mask.parts[k], None
        if not desc.structure:
            numbers = _places(place, mask, part, not_zero=True)
        count = place.nvals(mask) if numbers is None else len(numbers)
        left_out = count if desc.complement else here - count
        if pays(count, left_out, here, expected[k] / len(mates), width):
            if numbers is None:
                numbers = _places(place, mask, part)
            message = packed(numbers, here), np.ones(1, bool)
        given.append([message if d in mates else silent for d in range(size)])
    received = pieces.engine.exchange(given, groups)

    def received_by(item: tuple[int, Backend, int]) -> Handle | None:
        k, place, part = item
        heard = {s: received[k][s] for s in groups[part]}
        if not any(len(says) for _, says in heard.values()):
            return None
        lists = []
        for s, (where, says) in heard.items():
            here = math.prod(shapes[s])
            if len(says):
                numbers = unpacked(where, here)
            else:  # all of its results are kept
                numbers = np.arange(0 if desc.complement else here)
            *rows, last = own.index(s, *places(shapes[s], numbers))
            lists.append((*rows, need.by.position(last), np.ones(len(numbers), bool)))
        entries = tuple(map(np.concatenate, zip(*lists, strict=True)))
        return from_entries(place, entries, BOOL, (*shape[:-1], need.by.count(part)))

    items = [(k, place, need.part[p]) for k, p, place in pieces]
    masks = each_once(items, [(id(place), part) for _, place, part in items], received_by)
    return [
        Descriptor() if one is None else Descriptor(one, True, desc.complement, None, True)
        for one in masks
    ]


def pays(count: int, left_out: int, size: int, expected: float, width: int) -> bool:
    """Whether the places of a mask have fewer bytes than the results that it leaves out.

    Parameters
    ----------
    count : int
        The places of the mask.
    left_out : int
        The places of results that it leaves out, of `size`.
    size : int
        All places of an owner.
    expected : float
        About how many results a piece would send to the owner without the mask.
    width : int
        Bytes of the value of one.
    """
    if not left_out:
        return False
    found = min(expected, size)
    kept = found * (size - left_out) / size
    saved = length(found, size) - length(kept, size) + width * (found - kept)
    return length(count, size) + 1 < saved


def _places(place: Backend, x: Handle, shape: tuple[int, ...], not_zero: bool = False) -> Array:
    """Return where a part has an entry, or one that is not zero."""
    *at, values = entries_of(place, x, len(shape))
    numbers = by_position(shape, tuple(at))
    return numbers[values != 0] if not_zero else numbers
