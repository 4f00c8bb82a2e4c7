"""Equations of motion in redundant coordinates, for the analyses and the reference formulations."""
