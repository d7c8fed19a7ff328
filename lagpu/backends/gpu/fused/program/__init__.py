"""Generated loops: a kernel is written for the body of any loop over vectors or matrices."""
