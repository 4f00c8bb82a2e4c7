"""Logic and switches, vectors of signals, and sinks."""
