"""What goes in and out of vectors and matrices: foreign objects, arrays, copies and pickles."""

__all__: list[str] = []
