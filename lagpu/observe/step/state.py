"""What `step` yields: the state of every vector before and after a statement."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from lagpu.core.matrix import Matrix
from lagpu.dtypes import DType

__all__ = ["Masking", "Multiplied", "State", "Step"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class State:
    """What stood in a vector at one moment.

    Attributes
    ----------
    size : int
        Its length.
    dtype : DType
        Type of its values.
    indices : ndarray of INT64, (nvals,)
        Where its entries are, rising.
    values : ndarray, (nvals,)
        Their values; a zero is an entry as any other.
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
        """Whether both have the same entries with the same values, NaN like NaN."""
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
        As it was written.
    kept : ndarray of BOOL, (size,), or None
        The positions of a vector that it keeps; None if it masks a matrix.
    """

    formula: str
    kept: Array | None


class Multiplied(NamedTuple):
    """The operands of a product, ``u @ A`` if the vector stands left, else ``A @ u``."""

    matrix: str
    transposed: bool
    vector: str
    vector_left: bool


@dataclass(frozen=True, eq=False)
class Step:
    """The program after one statement.

    Attributes
    ----------
    number : int
        Of the statement, from 1.
    level : int
        Iteration of the enclosing `loop`, from 0; -1 outside of one.
    formula : str
        The statement as mathematics, with the author's names.
    source : str
        The statement as it is written, on one line; empty if its source cannot be read.
    code : CodeType or None
        The function it stands in.
    file : str
        Where that is written.
    line, last_line : int
        Of the statement.
    output : str
        Name of what it wrote.
    vectors, before : dict of str to State
        Every vector in sight by its name, after the statement and before it.
    scalars : dict of str to number or None
        Every `Scalar` in sight; None if it is empty.
    matrices : dict of str to Matrix
        Every matrix in sight; of a selection the matrix that it was before the statement.
    mask : Masking or None
        The mask.
    product : Multiplied or None
        The operands, if the statement is a product of a matrix and a vector.
    """

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
        """The positions of the output that its mask keeps, if it is a vector and has one."""
        return None if self.mask is None else self.mask.kept

    @property
    def place(self) -> str:
        """``file.py:line``."""
        name = self.file.replace("\\", "/").rsplit("/", 1)[-1]
        return f"{name}:{self.line}"

    def __repr__(self) -> str:
        from lagpu.observe.step.text import told

        return told(self)

    def _repr_html_(self) -> str:
        from lagpu.observe.step.drawing import framed

        return framed(self)
