"""What ran and why: explanations, traces and steps."""

__all__: list[str] = []
