"""Measurements of device work for traces."""

__all__: list[str] = []
