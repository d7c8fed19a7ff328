"""Prove results by plain NumPy and SciPy: levels, parents, path counts and more.

Where possible, a checker tests local rules, with one look at every stored entry. The docstring
proves that the rules suffice, unless they are the definition. Otherwise a checker computes the
answer in another way. So it shares neither code nor idea with the algorithm that it checks.

Row i, column j is the edge i -> j. A graph is a `Matrix` on any backend, a SciPy sparse array, or a
pair ``(col_ptr, row_idx)``, or a `Pattern` of one of these, which many checks of a graph share; a
result, (n,), is a `Vector` or a pair ``(indices, values)``. A vertex without an entry is unreached.
The argument `A` is a graph, (n, n), unless a docstring says more; vertices are ``0 .. n-1``.

A checker returns the rules that hold, as texts, or a `CheckReport` with them. It raises
`CheckFailed` at the first vertex, edge or place that breaks a rule, with both values and how many
break it; `IndexOutOfBound` for a number that is not a vertex; and `DimensionMismatch` if an
argument does not fit the graph.

On a grid each piece looks at the edges of its own part, and every process of the grid calls the
checker, which says the same in all. No process collects the graph, but for betweenness.
"""

import inspect

from lagpu.check.centrality import *
from lagpu.check.graph import *
from lagpu.check.searches import *
from lagpu.check.structure import *

__all__ = [
    *("CheckReport", "Pattern"),
    *sorted(name for name, x in globals().items() if inspect.isfunction(x)),
]
