"""Elements of a mechanism: each kind of force, contact and constraint is one entry."""
