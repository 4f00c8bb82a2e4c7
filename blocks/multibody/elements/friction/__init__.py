"""Friction in joints: with given efforts, and from reactions; smooth, or with a stick mode."""
