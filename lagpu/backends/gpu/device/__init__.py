"""A CUDA device or its simulation: memory, compilation and launches."""
