"""Revolute joints with clearance: the contact, its laws and wear."""
