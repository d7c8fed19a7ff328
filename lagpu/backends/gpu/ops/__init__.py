"""Single operations on a device: planner, products, element-wise operations."""
