"""Mechanisms that `multibody.py` runs, and what it measures of them."""
