"""The papers' metrics, by hand."""

import pytest

from lagpu.papers.experiments import Measured, metric

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
    ("one", "value"),
    [
        (metric("EDGES_BY_MEAN"), 7e6 / (3.5 / 3) / 1e3),
        (metric("MEDIAN_TEPS"), 2.0),
        (metric("MEAN_TEPS"), 2 * (1 + 2 + 6) / 3),
        (metric("HARMONIC_TEPS"), 3 / (1 + 1 / 2 + 1 / 6)),
        (metric("MEAN_MS"), 3.5 / 3),
        (metric("SHARE"), 50.0),
        (metric("SPEEDUP", "x"), 3 / 3.5),
        (metric("ENERGY", "x"), 6.0),
        (metric("ENERGY_DELAY", "x"), 6.0 * 3.5 / 3),
    ],
)
def test_the_definitions(one, value):
    assert one.of(FOUND) == pytest.approx(value)


def test_without_a_counter_there_is_no_energy():
    for one in (metric("ENERGY", "x"), metric("ENERGY_DELAY", "x")):
        assert one.of(FOUND._replace(joules=None)) is None


def test_a_directed_edge_counts_once():
    assert metric("MEAN_TEPS").of(FOUND._replace(symmetric=False)) == pytest.approx(3)
