"""Every algorithm on every system: a row each, the answers compared, all within a given time.

One question, such as "the components of this graph", is put to lagpu's backends and to other
libraries. Each system works in a process of its own, which ends when its time is over; so no
question can hold up the others, and none needs a guess of how long it will take.
"""

from lagpu.bench.algorithms.run import Plan, run
from lagpu.bench.algorithms.table import markdown, tables

__all__ = ["Plan", "markdown", "run", "tables"]
