"""The states of vectors before and after a statement, and the fields of a step."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from lagpu.core.matrix import Matrix
from lagpu.dtypes import DType
from lagpu.host.source import file_name

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class State:
    """The entries of a vector at one moment.

    Attributes
    ----------
    size : int
        Length of the vector.
    dtype : DType
        Type of the values.
    indices : ndarray of INT64, (nvals,)
        Indices of the entries, rising.
    values : ndarray, (nvals,)
        Values of the entries; a zero is an entry like any other.
    """

    size: int
    dtype: DType
    indices: Array
    values: Array

    @property
    def nvals(self) -> int:
        """Number of entries."""
        return len(self.indices)

    @property
    def pattern(self) -> Array:
        """Where there is an entry, BOOL, (size,)."""
        found = np.zeros(self.size, bool)
        found[self.indices] = True
        return found

    def to_dict(self) -> dict[int, Any]:
        """Return {index: value} of the entries."""
        return dict(zip(self.indices.tolist(), self.values.tolist(), strict=True))

    def to_dense(self, missing_value: Any) -> Array:
        """Return all values, (size,), with `missing_value` where there is no entry."""
        kind = np.result_type(self.values.dtype, np.min_scalar_type(missing_value))
        dense = np.full(self.size, missing_value, kind)
        dense[self.indices] = self.values
        return dense

    def same_as(self, other: State) -> bool:
        """Return True if both have the same entries with the same values; NaN equals NaN."""
        return (
            self.size == other.size
            and self.dtype is other.dtype
            and self.indices.tobytes() == other.indices.tobytes()
            and self.values.tobytes() == other.values.tobytes()
        )


class Masking(NamedTuple):
    """The mask of a statement.

    Attributes
    ----------
    formula : str
        The mask with the author's names.
    kept : ndarray of BOOL, (size,), or None
        The positions of a vector that the mask keeps; None for the mask of a matrix.
    """

    formula: str
    kept: Array | None


class Multiplied(NamedTuple):
    """The operands of a product, ``u @ A`` if `vector_left`, else ``A @ u``."""

    matrix: str
    transposed: bool
    vector: str
    vector_left: bool


@dataclass(frozen=True, eq=False)
class StepRecord:
    """The fields of a `Step`; its docstring describes each."""

    number: int
    level: int
    formula: str
    source: str
    code: CodeType | None
    file: str
    line: int
    last_line: int
    output: str
    vectors: dict[str, State]
    before: dict[str, State]
    scalars: dict[str, Any]
    matrices: dict[str, Matrix]
    mask: Masking | None
    product: Multiplied | None

    @property
    def kept(self) -> Array | None:
        """The positions that the mask keeps; None without a mask, or for a matrix."""
        return None if self.mask is None else self.mask.kept

    def meeting(self, begins: Array, ends: Array) -> tuple[Array, Array]:
        """Return which matrix entries meet an entry of the product's vector; which the mask keeps.

        Parameters
        ----------
        begins, ends : ndarray of int, (nvals,)
            Of each entry, the index in the vector, and the index in the result.
        """
        assert self.product is not None
        met = self.before[self.product.vector].pattern[begins]
        return met, np.ones(len(ends), bool) if self.kept is None else self.kept[ends]

    @property
    def place(self) -> str:
        """``file.py:line``."""
        return f"{file_name(self.file)}:{self.line}"
