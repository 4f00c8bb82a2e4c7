"""Blocks that evaluate a mechanism at a measured state, for controllers."""
