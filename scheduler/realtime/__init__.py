"""Runs against the wall clock: their loop, log and replay."""
