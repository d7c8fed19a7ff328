"""Services without linear algebra: memory, files, processes, Ctrl-C, display, source text."""
