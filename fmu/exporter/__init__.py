"""Export: an FMU is a plan and the engine, zipped."""
