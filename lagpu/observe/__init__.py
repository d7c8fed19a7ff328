"""Observe a program: explanations, traces and steps."""
