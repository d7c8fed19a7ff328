"""The loop constructs, and which bodies a backend may run as a whole."""

__all__: list[str] = []
