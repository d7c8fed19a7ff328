"""Protocols of `Vector` and `Matrix`, for modules that those two import."""

from __future__ import annotations

from typing import Any, Protocol

from lagpu.backends.protocol import Backend
from lagpu.dtypes import DType
from lagpu.operations import Handle


class VectorLike(Protocol):
    """The attributes of a `Vector`."""

    dtype: DType
    size: int
    name: str
    backend: Backend
    data: Handle

    @property
    def shape(self) -> tuple[int]:
        """``(size,)``."""


class MatrixLike(Protocol):
    """The attributes of a `Matrix`, its transpose, or another view.

    Attributes
    ----------
    stored : Matrix or SelectionMatrix
        The object of which a transpose is a view; any other object itself.
    """

    @property
    def dtype(self) -> DType:
        """Type of the values."""

    @property
    def name(self) -> str:
        """Name in formulas and messages."""

    @property
    def nrows(self) -> int:
        """Number of rows."""

    @property
    def ncols(self) -> int:
        """Number of columns."""

    @property
    def shape(self) -> tuple[int, int]:
        """``(nrows, ncols)``."""

    @property
    def backend(self) -> Backend:
        """The backend."""

    @property
    def stored(self) -> Any:
        """See above."""
