"""Import: an FMU of another tool as a block of a diagram."""
