"""Continuous and discrete dynamics: integrators, delays, linear systems."""
