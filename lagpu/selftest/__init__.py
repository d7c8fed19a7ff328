"""The proof of an installation: one backend against the cpu oracle, operation by operation.

Every case is one program that runs twice, on the backend and on python-graphblas, from the same
data; the results must agree to the bit and to the type. Values are small whole numbers, so sums are
exact in every type and order. Searches are proved by `lagpu.check` besides.
"""

from lagpu.selftest.report import show
from lagpu.selftest.runner import run

__all__ = ["run", "show"]
