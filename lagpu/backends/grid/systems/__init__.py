"""The papers' systems of many GPUs: searches by levels, with the host's loop and messages."""

from lagpu.backends.grid.systems.clusters import GridClusters, cluster_size
from lagpu.backends.grid.systems.loop import SystemLoop, plan_system, require_no_system
from lagpu.backends.grid.systems.policy import SYSTEMS, policies_with_systems

__all__ = [
    "SYSTEMS",
    "GridClusters",
    "SystemLoop",
    "cluster_size",
    "plan_system",
    "policies_with_systems",
    "require_no_system",
]
