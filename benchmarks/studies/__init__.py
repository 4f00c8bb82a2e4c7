"""Studies behind the guides: each is a command that prints tables."""
