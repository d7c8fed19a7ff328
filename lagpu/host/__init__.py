"""What any program needs of its machine: memory, files, pages, displays, source text."""

__all__: list[str] = []
