"""The experiments of the five papers that lagpu implements, to be run again.

An `experiment.Experiment` is data: graphs, variants by the paper's names, a metric, claims. One
module a paper has them, `run` measures them by `lagpu.bench`, `table` prints them.
"""

__all__: list[str] = []
