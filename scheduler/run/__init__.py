"""Offline runs: simulation, sweeps, linearization."""
