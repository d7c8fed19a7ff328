"""Services that know nothing of linear algebra: memory, files, pages, displays, source text."""

__all__: list[str] = []
