"""Blocks for what runs outside the engine: Python code, devices, asynchronous models."""
