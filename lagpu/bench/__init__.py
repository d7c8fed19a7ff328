"""Measuring: suites of graphs against peers, the Graph500 benchmark, and where time goes."""

__all__: list[str] = []
