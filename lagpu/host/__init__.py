"""Services that know nothing of linear algebra: memory, files, programs, pages, source text."""
