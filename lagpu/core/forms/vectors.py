"""What a `Vector` is made from and what it becomes, beyond indices and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from sys import _getframe
from typing import Any, Self

import numpy as np

from lagpu.core.arguments import as_size, integer, scalar_dtype
from lagpu.core.expr import Call, Updater, assign
from lagpu.dtypes import INT64, cast, lookup
from lagpu.operations import Assign

__all__ = ["VectorForms", "as_type", "filled", "split"]


def filled(out: Any, value: Any) -> Any:
    """Return `out` with `value` at every position."""
    assign(Updater(out), value)
    return out


def as_type(values: Any, dtype: Any) -> Any:
    """Return an array cast to `dtype`, or as it is for None."""
    return values if dtype is None else np.asarray(cast(values, lookup(dtype)))


class VectorForms:
    """Constructors and conversions of `Vector`."""

    __slots__ = ()

    @classmethod
    def from_scalar(cls, value: Any, size: int, dtype: Any = None, **where: Any) -> Self:
        """Return a full vector of one value.

        Parameters
        ----------
        value : scalar
            The value of every entry.
        size : int
            Length.
        dtype : DType, optional
            Type of the values; by default that of `value`.
        **where
            ``like``, ``backend`` and ``name``, as in `Vector`.
        """
        kind = scalar_dtype(value, INT64, "from_scalar") if dtype is None else dtype
        new: Self = filled(cls(kind, size, **where), value)  # type: ignore[call-arg]
        return new

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[int, Any]], dtype: Any = None, **options: Any
    ) -> Self:
        """Return a vector of (index, value) pairs.

        Parameters
        ----------
        pairs : iterable of (int, scalar)
            The entries.
        dtype : DType, optional
            Type of the values; by default that of the values.
        **options
            ``size``, ``dup_op``, ``like``, ``backend`` and ``name``, as in `from_coo`.

        Raises
        ------
        DomainMismatch, IndexOutOfBound, InvalidValue
            As `from_coo` raises them.
        """
        indices, values = split(pairs, 2)
        new: Self = cls.from_coo(indices, values, dtype, **options)  # type: ignore[attr-defined]
        return new

    @classmethod
    def from_dict(cls, entries: Mapping[int, Any], dtype: Any = None, **options: Any) -> Self:
        """Return a vector of a dict ``{index: value}``; options as in `from_pairs`."""
        return cls.from_pairs(entries.items(), dtype, **options)

    def to_dict(self) -> dict[int, Any]:
        """Return ``{index: value}`` with Python numbers, indices rising."""
        indices, values = self.to_coo()  # type: ignore[attr-defined]
        return dict(zip(indices.tolist(), values.tolist(), strict=True))

    def __iter__(self) -> Iterator[int]:
        """Yield the indices of the entries, rising."""
        return iter(self.to_coo()[0].tolist())  # type: ignore[attr-defined]

    def reposition(self: Any, offset: int, *, size: int | None = None) -> Call:
        """Move the entries: ``w[i + offset] = u[i]``; an entry outside of `w` is left out.

        Parameters
        ----------
        offset : int
            How far each entry moves to the right; a negative number moves to the left.
        size : int, optional
            Length of the result; by default that of this vector.
        """
        by = integer(offset, "reposition: offset")
        n = self.size if size is None else as_size(size, "reposition")
        first, last = max(0, -by), min(self.size, n - by)
        new = type(self)(self.dtype, n, like=self, name=self.name)
        if first < last:
            new[first + by : last + by] = self[first:last].new()
        return Call(Assign(new.data), (new,), new.dtype, new.shape, (new,), _getframe(1))


def split(rows: Iterable[Any], width: int) -> list[list[Any]]:
    """Return the columns of an iterable of tuples of this width."""
    listed = [tuple(row) for row in rows]
    return [list(column) for column in zip(*listed, strict=True)] if listed else [[]] * width
