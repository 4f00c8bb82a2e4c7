"""Blocks that run outside the engine: Python code, devices, asynchronous models."""
