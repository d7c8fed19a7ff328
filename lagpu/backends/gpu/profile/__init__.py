"""What a trace learns of the work of a device."""

__all__: list[str] = []
