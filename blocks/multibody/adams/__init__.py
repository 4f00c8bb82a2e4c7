"""Mechanisms from Adams View command files."""
