"""Measure every algorithm on every system, compare the answers, and keep to a time budget.

Each question, such as "the components of this graph", is put to the backends of lagpu and to other
libraries. Each system works in its own process, which ends when its time is over; so no question
can delay the others, and no estimate of its time is needed.
"""

from lagpu.bench.algorithms.run import Plan, run
from lagpu.bench.algorithms.table import markdown, tables

__all__ = ["Plan", "markdown", "run", "tables"]
