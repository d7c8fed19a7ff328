"""What travels around a local operation, and in which form: operands, masks, partial results."""

from lagpu.backends.grid.travel.fold import folded
from lagpu.backends.grid.travel.operands import Need, needed, spread, whole

__all__ = ["Need", "folded", "needed", "spread", "whole"]
