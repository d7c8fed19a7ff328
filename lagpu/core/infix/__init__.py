"""Python's operators between vectors, matrices, scalars, numbers and expressions."""

__all__: list[str] = []
