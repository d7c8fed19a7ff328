"""Prove an installation: compare a backend with the cpu oracle, operation by operation.

Every case is a program that runs twice on the same data, on the backend and on python-graphblas;
the results must agree to the bit and to the type. Values are small whole numbers, so sums are exact
in every type and order. Searches are also proved by `lagpu.check`.
"""

from lagpu.selftest.runner import run, table

__all__ = ["run", "table"]
