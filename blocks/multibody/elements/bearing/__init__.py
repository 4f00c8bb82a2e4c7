"""Journal bearings in a mechanism: as a force and as a constraint."""
