"""Formulas that read outputs of the same mechanism."""
