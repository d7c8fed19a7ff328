"""Measurements: graphs and algorithms beside other libraries, Graph500, and overhead on cpu."""
