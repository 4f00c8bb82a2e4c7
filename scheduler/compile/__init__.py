"""Compiling: from a diagram to a plan."""
