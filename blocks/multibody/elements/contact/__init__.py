"""Compliant contact between shapes on two bodies."""
