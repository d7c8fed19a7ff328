"""Loops that run as one kernel."""
