"""Bindings: which parts of a diagram are real devices; see rig.toml."""
