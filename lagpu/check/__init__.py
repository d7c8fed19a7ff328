"""Proofs of results by plain NumPy and SciPy: levels, parents, path counts, distances.

Each checker tests local rules, one look at every stored entry, and its docstring proves that they
suffice. So it shares neither code nor idea with the search that it checks.

Row i, column j is the edge i -> j. A graph is a `Matrix` from any backend, a SciPy sparse array, or
a pair ``(col_ptr, row_idx)``; a result is a `Vector` or a pair ``(indices, values)``. No entry
means unreached.
"""

from lagpu.check.distances import check_distances
from lagpu.check.graph import CheckReport
from lagpu.check.levels import check_levels
from lagpu.check.parents import check_parents
from lagpu.check.paths import check_paths

__all__ = ["CheckReport", "check_distances", "check_levels", "check_parents", "check_paths"]
