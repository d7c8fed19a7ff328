"""The papers' metrics, by hand."""

import pytest

from lagpu.papers import metrics
from lagpu.papers.metrics import Measured

# Rates of 1, 2 and 6 * 10**9 edges a second.
FOUND = Measured(
    (1.0, 2.0, 0.5),
    (10**6, 4 * 10**6, 3 * 10**6),
    7 * 10**6,
    symmetric=True,
    joules=6.0,
    parts=(0.5, 1.0, 0.25),
)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (metrics.EDGES_BY_MEAN, 7e6 / (3.5 / 3) / 1e3),
        (metrics.MEDIAN_TEPS, 2.0),
        (metrics.MEAN_TEPS, 2 * (1 + 2 + 6) / 3),
        (metrics.HARMONIC_TEPS, 3 / (1 + 1 / 2 + 1 / 6)),
        (metrics.MEAN_MS, 3.5 / 3),
        (metrics.SHARE, 50.0),
        (metrics.speedup("x"), 3 / 3.5),
        (metrics.energy("x"), 6.0),
        (metrics.energy_delay("x"), 6.0 * 3.5 / 3),
    ],
)
def test_the_definitions(metric, value):
    assert metric.of(FOUND) == pytest.approx(value)


def test_without_a_counter_there_is_no_energy():
    for metric in (metrics.energy("x"), metrics.energy_delay("x")):
        assert metric.of(FOUND._replace(joules=None)) is None


def test_a_directed_edge_counts_once():
    assert metrics.MEAN_TEPS.of(FOUND._replace(symmetric=False)) == pytest.approx(3)
