"""All that NetworkX calls of its backend lagpu, the entry point ``networkx.backends``."""

from lagpu.nx import paths as _paths  # noqa: F401, it declares its functions
from lagpu.nx import structure as _structure  # noqa: F401
from lagpu.nx.answers import DECLARED, can_run, should_run
from lagpu.nx.graph import convert_from_nx, convert_to_nx

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run"]

# NetworkX looks for each function here at every call: an attribute is found at once.

globals().update({name: rules.function for name, rules in DECLARED.items()})
