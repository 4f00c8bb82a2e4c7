"""Joints of a mechanism: each kind is one entry."""
