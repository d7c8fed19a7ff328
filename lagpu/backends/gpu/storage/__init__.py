"""Vectors and matrices on a device: their storage forms and workspaces."""
