"""Graph algorithms, each a short loop of public lagpu; the same text runs on every backend.

Entry (i, j) of a matrix, whatever its value, is the edge i -> j, unless an algorithm says
otherwise.

Every algorithm raises `DimensionMismatch` if the matrix is not square or another argument does not
fit it, `DomainMismatch` if an argument has a wrong type, `IndexOutOfBound` if a number is not a
vertex, and `InvalidValue` if a list of vertices is empty or repeats one, or if a number or an
option is not among those it accepts. The docstrings say what else an algorithm raises.

In formulas, ``A'`` is the transpose of A, ``plus.times`` a product over a semiring, ``C⟨s(M)⟩``
writes C only where M has an entry, ``r`` clears the rest, and 1 may be a vector of ones.
"""

import inspect

from lagpu.algorithms.betweenness import *
from lagpu.algorithms.bfs import *
from lagpu.algorithms.centrality import *
from lagpu.algorithms.communities import *
from lagpu.algorithms.similarity import *
from lagpu.algorithms.sssp import *
from lagpu.algorithms.structure import *
from lagpu.algorithms.subgraphs import *

__all__ = sorted(name for name, x in globals().items() if inspect.isfunction(x))
