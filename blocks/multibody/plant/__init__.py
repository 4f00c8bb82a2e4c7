"""A system as a block: its tree, tables, parameters, signals."""
