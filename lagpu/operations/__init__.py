"""What the front end hands to a backend."""

__all__: list[str] = []
