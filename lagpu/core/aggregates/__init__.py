"""Aggregators: sums that are more than a monoid, as `count`, `mean` and `argmin`."""

__all__: list[str] = []
