"""The log of a real-time run, and its replay."""
