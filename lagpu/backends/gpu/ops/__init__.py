"""Single operations on a device: planner, products, element-wise operations."""

__all__: list[str] = []
