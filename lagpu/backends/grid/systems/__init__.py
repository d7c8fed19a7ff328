"""The papers' systems of many GPUs: searches by levels, with the host's loop and messages."""

from lagpu.backends.grid.systems.policy import (
    SYSTEMS,
    GridClusters,
    cluster_size,
    policies_with_systems,
)
from lagpu.backends.grid.systems.search import SystemLoop, plan_system, require_no_system

__all__ = [
    "SYSTEMS",
    "GridClusters",
    "SystemLoop",
    "cluster_size",
    "plan_system",
    "policies_with_systems",
    "require_no_system",
]
