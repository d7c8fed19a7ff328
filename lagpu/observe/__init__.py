"""Observe a program: explanations, traces and steps."""

__all__: list[str] = []
