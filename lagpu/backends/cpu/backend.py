"""The cpu backend: each operation is one GraphBLAS C call through python-graphblas; the oracle.

Objects, operators and user-defined functions are python-graphblas'. The calls go straight to the
C library it carries, because its own checks and dispatch, which lagpu's front end has already
made, take three times as long as a BFS level on a road network (docs/design/cpu.md).
"""

from __future__ import annotations

from typing import Any

from lagpu.algebra.operators import Semiring
from lagpu.backends.cpu.handles import Box
from lagpu.backends.cpu.matrices import WholeMatrices
from lagpu.backends.cpu.meter import CpuMeter
from lagpu.backends.cpu.shared import require_no_choice
from lagpu.backends.cpu.vectors import VectorOperations
from lagpu.backends.matrices import Turned
from lagpu.backends.profile import Meter
from lagpu.backends.protocol import Product, Statement
from lagpu.dtypes import DType
from lagpu.host.memory import available_bytes

__all__ = ["CpuBackend"]


class CpuBackend(VectorOperations, WholeMatrices):
    """python-graphblas: the oracle, and the default where there is no GPU."""

    name = "cpu"
    recorder = None

    def __repr__(self) -> str:
        return f"<lagpu backend {self.name}>"

    def run_loop(self, statements: list[Statement], until_empty: Box, times: int | None) -> bool:
        """See `Backend`: SuiteSparse runs each statement by itself."""
        return False

    def repeated(self, s: Statement) -> None:
        """See `Backend`."""

    def block_bytes(self, dtype: DType, nrows: int, ncols: int) -> None:
        """See `Backend`: there are no blocks."""

    def rows_apart(self, A: Any, k: int) -> bool:
        """See `Backend`."""
        return False

    def meter(self) -> Meter:
        """See `Backend`."""
        return CpuMeter()

    def explain(self, A: Any, u: Any, how: Product) -> list[str]:
        """See `Backend`."""
        require_no_choice(how)
        return ["SuiteSparse:GraphBLAS chooses its own method and does not tell"]

    def explain_selection(self, f: Any, u: Any, how: Product) -> list[str]:
        """See `Backend`."""
        require_no_choice(how)
        return ["SuiteSparse:GraphBLAS multiplies with the matrix, which is made of the vector"]

    def explain_mxm(self, A: Any, B: Any, semiring: Semiring, turned: Turned) -> list[str]:
        """See `Backend`."""
        return ["SuiteSparse:GraphBLAS chooses its own method and does not tell"]

    def free_bytes(self) -> int:
        """See `Backend`."""
        return available_bytes()
