"""Search for wrong answers: random programs on a backend against a plain model, for a given time.

``python -m lagpu.selftest.soak --minutes 10 --backend gpu`` draws statements, loops, searches and
graphs with Hypothesis, which also makes the first failing program small; it is printed as a test.
"""

__all__: list[str] = []
