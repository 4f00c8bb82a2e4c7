"""Couplings of blocks with internal solvers."""
