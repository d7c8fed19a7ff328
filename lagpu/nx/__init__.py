"""The NetworkX backend: ``nx.pagerank(G, backend="lagpu")``.

NetworkX finds it by the entry points of the distribution, converts a graph once, and calls the
functions of ``lagpu.nx.interface``; what they do not take it runs itself.
"""

from lagpu.nx.graph import Graph, convert_from_nx, convert_to_nx

__all__ = ["Graph", "convert_from_nx", "convert_to_nx"]
