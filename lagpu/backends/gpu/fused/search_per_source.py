"""Running a fused search of many sources, each by itself: rows apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu.backends.gpu.fused import rowsapart
from lagpu.backends.gpu.kernels import Kernel, kernel
from lagpu.backends.gpu.kernels.functors import monoid_functor, operator_functor
from lagpu.backends.gpu.ops.spmv_launch import by_inputs
from lagpu.backends.gpu.storage.bitmap import BlockStore, as_block, own, stride
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import index_types, push_space
from lagpu.backends.protocol import Product

__all__ = [
    "DEPTH",
    "MOST",
    "NUMBER",
    "VALUE",
    "RowAssignment",
    "RowSearch",
    "bytes_of",
    "run",
]

LOOK = 1  # look at a vertex before claiming it: a load more, but fewer atomics; 0: claim at once
SOLO = 2048  # vertices of a level in shared memory
EARLY = 256  # vertices of a level up to which each load is made as soon as it can be
DEPTH, VALUE, NUMBER = 1, 2, 3  # what is assigned, as LG_X0 has it
MOST = 3  # assignments
FOREVER = 2**31 - 1


@dataclass(frozen=True)
class RowAssignment:
    """``x(f.S) << depth``, ``x(f.S) << f`` or ``x(f.S) << number``.

    Attributes
    ----------
    x : MatrixStore
        What is assigned.
    what : int
        `DEPTH`, `VALUE` or `NUMBER`.
    number : NumPy scalar or None
        The constant.
    out : object
        Whose attribute `data` is to be `x` as it is after the loop.
    """

    x: MatrixStore
    what: int
    number: Any
    out: Any


@dataclass(frozen=True)
class RowSearch:
    """A loop over blocks that one kernel runs, each row by itself; see search/per_source.cu.

    Attributes
    ----------
    A, f, v : MatrixStore
        Matrix, frontier, and the matrix whose entries are not searched again.
    f_out : object
        Whose attribute `data` is to be the frontier after the loop.
    how : Product
        The product ``f(~v.S, replace=True) << f (+.x) A``.
    sums : bool
        Whether the products of one level add up; else the first one of a vertex stands.
    assignments : tuple of RowAssignment
        What is assigned to the frontier's entries.
    number : NumPy scalar or None
        The value of each entry that a product makes; None if they vary and are stored. With a
        number none is stored, so no assignment assigns `VALUE`.
    before : bool
        Whether the assignments stand before the product; they do where values are stored.
    why : str
        What made this way the better one, if there was another.
    """

    A: MatrixStore
    f: MatrixStore
    v: MatrixStore
    f_out: Any
    how: Product
    sums: bool
    assignments: tuple[RowAssignment, ...]
    number: Any = None
    before: bool = True
    why: str = ""

    @property
    def keep(self) -> bool:
        """Whether values are stored."""
        return self.number is None

    @property
    def said(self) -> str:
        """What it is called, and why it was chosen."""
        return f"rows apart: {self.why}" if self.why else "rows apart"


def bytes_of(s: RowSearch, times: int | None) -> int:
    """Return the bytes that a search will ask for."""
    k, n = s.f.shape
    size = stride(k) * n
    made = [a.x.dtype.numpy.itemsize for a in s.assignments]
    if times is not None:
        made.append(_value_bytes(s))
    blocks = sum(size * each + 4 * nwords(size) for each in made)
    return _workspace_bytes(s, _blocks(s, _search_kernel(s))) + blocks


def _value_bytes(s: RowSearch) -> int:
    """Return the bytes of a value that is stored."""
    return s.f.dtype.numpy.itemsize if s.keep else 0


def _workspace_bytes(s: RowSearch, blocks: int) -> int:
    """Return the bytes of the rows' state, and of the lists of so many blocks."""
    k, n = s.f.shape
    form = by_inputs(s.A, s.how)
    lists = n * (8 + int(form.col_ptr.itemsize)) + 4 * _most_large(form)
    return k * n * (4 + _value_bytes(s)) + blocks * lists


def _most_large(form: MatrixStore) -> int:
    """Return how many columns are followed by a warp or a block, at most."""
    return push_space(form).num_chunks


def _search_kernel(s: RowSearch) -> Kernel:
    macros = {
        "KEEP": str(int(s.keep)),
        "LOOK": str(LOOK),
        "BITS": str(int(_has_bits(s))),
        "BLOCK": str(rowsapart.block_size(s.A.device)),
        "BLOCKS": str(rowsapart.BLOCKS),
        **index_types(by_inputs(s.A, s.how)),
    }
    if not s.keep:
        return kernel("search/per_source.cu", "row_search", **macros)
    add, prelude = monoid_functor(s.how.semiring.monoid)
    mul, text = operator_functor(s.how.semiring.multiply)
    return kernel(
        "search/per_source.cu",
        "row_search",
        prelude=prelude + (text if text != prelude else ""),
        ADD=add,
        MUL=mul,
        U=s.f.dtype.ctype,
        A=s.A.dtype.ctype,
        T=s.how.domain.ctype,
        Z=s.how.result.ctype,
        SUM=str(int(s.sums)),
        **macros,
    )


def _write_kernel(s: RowSearch, times: int | None) -> Kernel:
    macros = {"KEEP": str(int(s.keep)), "REST": str(int(times is not None)), "X0": "0"}
    if s.keep:
        macros["U"] = s.f.dtype.ctype
    for q, a in enumerate(s.assignments):
        macros |= {f"X{q}": str(a.what), f"X{q}_T": a.x.dtype.ctype}
    return kernel("search/per_source.cu", "row_write", **macros)


def _shared(s: RowSearch) -> tuple[int, int]:
    """Return (vertices of a level that shared memory holds, its bytes)."""
    each = _near_bytes(s)
    solo = min(SOLO, s.A.device.dynamic_shared_bytes // each)
    return solo, solo * each + (_bits_bytes(s) if _has_bits(s) else 0)


def _near_bytes(s: RowSearch) -> int:
    """Return the bytes of a vertex in the lists of two levels in shared memory."""
    return 2 * (8 + int(by_inputs(s.A, s.how).col_ptr.itemsize))


def _bits_bytes(s: RowSearch) -> int:
    return 4 * nwords(s.f.shape[1])


def _has_bits(s: RowSearch) -> bool:
    """Whether the bits of what a row has found stand in shared memory, beside whole lists.

    Where products are summed a vertex' level is asked for in any case.
    """
    free = s.A.device.dynamic_shared_bytes - SOLO * _near_bytes(s)
    return not s.sums and _bits_bytes(s) <= free


def _blocks(s: RowSearch, code: Kernel) -> int:
    """Return how many rows are searched at once."""
    most = s.A.device.max_cooperative_blocks(code, rowsapart.block_size(s.A.device), _shared(s)[1])
    return min(most, s.f.shape[0])


def run(s: RowSearch, counters: Counters, times: int | None) -> None:
    """Run the loop to its end; nothing is waited for unless `times` may have ended it."""
    device, (k, n) = s.A.device, s.f.shape
    xp, form = device.xp, by_inputs(s.A, s.how)
    code, (solo, shared) = _search_kernel(s), _shared(s)
    blocks, most_large = _blocks(s, code), _most_large(form)
    device.require(bytes_of(s, times), "row search", "Take fewer rows at a time.")
    frontier, excluded = _sources(counters, s.f, s.keep), _excluded(counters, s.v)
    matrix = (form.values, form.number) if s.keep else (None, False)
    outputs = [own(counters, a.x) for a in s.assignments]
    last = np.int32(FOREVER if times is None else min(times, FOREVER - 1))
    found_in, sums = xp.empty(k * n, np.int32), _values(s, k * n)
    # A cooperative launch only because the device counts blocks, and allows much shared memory, for
    # such a one: no block waits for another.
    device.launch(
        code, blocks * rowsapart.block_size(s.A.device),
        n, k, stride(k), form.col_ptr, form.row_idx, *matrix, excluded, *frontier, not s.before,
        last, solo, 0 if _has_bits(s) else EARLY, found_in, sums, xp.empty(blocks * n, np.int32),
        xp.empty(blocks * n, form.col_ptr.dtype), xp.empty(blocks * n, np.uint32),
        xp.empty(blocks * most_large, np.int32), most_large,
        block=rowsapart.block_size(s.A.device), cooperative=True, shared=shared,
    )  # fmt: skip
    rest = VectorStore(device, counters, s.f.dtype, stride(k) * n)
    f_words, f_values, left = None, None, counters.take()
    if times is not None:
        f_words, f_values = xp.empty(nwords(rest.size), np.uint32), _values(s, rest.size)
    _write(s, outputs, times, last, (found_in, sums), (f_words, f_values, left))
    if f_words is not None:
        count = int(device.read(left))
        if count:
            rest.set_bitmap(f_words, f_values, s.number, count)
    s.f_out.data = BlockStore(device, s.f.dtype, (k, n), rest)


def _values(s: RowSearch, count: int) -> Any:
    """Return room for so many values, or None if none is stored."""
    return s.A.device.xp.empty(count, s.f.dtype.numpy) if s.keep else None


def _sources(counters: Counters, f: MatrixStore, keep: bool) -> tuple[Any, int, Any, Any, Any]:
    """Return the frontier: (words, entries of a list, list, values, number), words or a list."""
    entries = as_block(counters, f).entries
    if entries.form == "sparse" and entries.nvals <= f.shape[1]:  # each block reads all of a list
        listed, values = entries.listed()
        where = None, len(listed), listed
    else:
        entries.to_bitmap()
        where, values = (entries.words, 0, None), entries.values
    return *where, *((values, entries.number) if keep else (None, False))


def _excluded(counters: Counters, v: MatrixStore) -> Any:
    """Return the presence words of what is not searched, or None."""
    entries = as_block(counters, v).entries
    if entries.form == "sparse" and not entries.nvals:
        return None
    entries.to_bitmap()
    return entries.words


def _write(
    s: RowSearch,
    outputs: list[BlockStore],
    times: int | None,
    last: Any,
    state: tuple[Any, Any],
    rest: tuple[Any, Any, Any],
) -> None:
    """Assign what the search has found."""
    device, (k, n) = s.A.device, s.f.shape
    numbers: list[Any] = [np.int32(0)] * MOST
    values, words = ([None] * MOST for _ in range(2))
    blank = 0
    for q, (a, made) in enumerate(zip(s.assignments, outputs, strict=True)):
        w = made.entries
        if w.to_blank():
            blank |= 1 << q
        else:
            w.to_writable()
        zero = w.dtype.numpy.type(0)
        numbers[q] = zero if a.number is None else a.number
        values[q], words[q] = w.values, w.words
    per = stride(k) // 32
    device.launch(
        _write_kernel(s, times), n * per * 8, n, k, per, *state, last, not s.before, *numbers,
        *values, *words, np.uint32(blank), *rest,
    )  # fmt: skip
    for a, made in zip(s.assignments, outputs, strict=True):
        made.entries.counted(None)
        made.entries.forget()
        made.changed()
        a.out.data = made
